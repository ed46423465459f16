"""Workers of gb.fixpoint on a GPU: python -m bench.experiments.workers [--devices cuda:0] [GRAPH ...]

Levels and shortest paths (FP32 weights 1 to 255) from the vertex of highest degree, by workers of a thread, a warp and
a block. After Atos's tables 1 and 4 (Chen, Brock, Porumbescu, Buluc, Yelick, Owens, ICPP 2022). Times are medians of
five whole calls, or of one that takes a second; the devices are synchronised, kernels compiled. All results are
compared with those of the first row. The picture has the paths of the rows with a number in `fetch`.

- `worker`: threads that extend vertices together; none in the last row, which is `schedule="rounds"`.
- `fetch`: vertices that a worker takes at once; "auto": the list shared equally, at most one vertex a thread.
- `kernels`: "one" for all windows, or "one a window", whose windows do not grow.
- `overwork`: updates for each vertex reached.

Workers of one thread append to lists by an atomic for each vertex, others by one for 32: part of their time is that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gbgpu as gb
from algos.bfs import min_next
from bench.experiments.soft_priorities import LONG, graph, paths
from bench.record import RESULTS, Table, experiment, interleaved, markdown, page, synchronized

FETCHES = {"thread": (1, 4), "warp": (1, 4, 32, 128), "block": (32, 256, 1024)}
COLUMNS = ["worker", "fetch", "kernels", "levels, ms", "windows", "overwork", "paths, ms", "windows", "overwork"]


def ways() -> dict[tuple[str, str, str], dict[str, Any]]:
    """What is compared."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {("warp", "auto", "one"): {}}
    found["warp", "auto", "one a window"] = {"on_window": lambda windows: None}
    found["thread", "auto", "one"], found["block", "auto", "one"] = {"worker": "thread"}, {"worker": "block"}
    for worker, fetches in FETCHES.items():
        for fetch in fetches:
            found[worker, str(fetch), "one"] = {"worker": worker, "fetch": fetch}
    return {name: {"schedule": "free", **how} for name, how in found.items()} | {("", "", "rounds"): {}}


def measured(A: gb.Matrix, source: int, rounds: int = 5) -> list[list[Any]]:
    """The rows of one graph."""
    host = A.to_scipy_sparse()
    pattern = gb.Matrix.from_csr(host.indptr, host.indices, True, ncols=A.ncols)
    wanted: list[gb.Vector] = []
    rows = []
    for name, how in ways().items():
        row: list[Any] = [*name]
        chosen = how or {"schedule": "rounds"}
        levels = partial(paths, product=min_next, dtype="INT32")
        problems: list[tuple[Callable[..., Any], gb.Matrix]] = [(levels, pattern), (paths, A)]
        for k, (call, of) in enumerate(problems):
            call(of, source, **chosen)  # compiled now
            start = time.perf_counter()
            found, it = call(of, source, **chosen)
            wanted = wanted if len(wanted) > k else [*wanted, found]
            assert found.isequal(wanted[k]) and it.converged
            many = rounds if time.perf_counter() - start < LONG else 1
            seconds = interleaved([synchronized(partial(call, of, source, **chosen))], many, 1, 20)[0]
            row += [1e3 * seconds, it.windows, it.overwork]
        rows.append(row)
    return rows


def draw(name: str, drawn: dict[str, list[list[Any]]], devices: str) -> None:
    """Time by what a worker takes at once."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(drawn), figsize=(3.4 * len(drawn) + 1, 3.2), layout="constrained", squeeze=False)
    figure.suptitle(f"Shortest paths on {devices}, compiled kernels: workers and what they take at once", fontsize=11)
    for place, (title, rows) in zip(axes[0], drawn.items(), strict=True):
        for worker, color in zip(FETCHES, ("#e65100", "#1565c0", "#2e7d32"), strict=True):
            mine = [row for row in rows if row[0] == worker and row[1].isdigit()]
            place.plot([int(row[1]) for row in mine], [row[6] for row in mine], "o-", color=color, label=worker)
        place.set(title=title, xscale="log", yscale="log", xlabel="vertices taken at once", ylabel="ms a call")
        place.legend(frameon=False, fontsize=9, title="worker")
    figure.savefig(RESULTS / f"{name}.svg", metadata={"Date": None})


def main() -> None:
    given = experiment(__doc__, ["luxembourg_osm"], "cuda:0").parse_args()
    gb.init(given.devices)
    parts: list[str | Table] = [f"![Times of paths by vertices taken at once]({given.results}.svg)"]
    drawn = {}
    for name in given.graphs:
        A, source = graph(name, given.data)
        drawn[name] = rows = measured(A, source)
        table = Table(COLUMNS, rows, f"{name}: {A.nrows:,} vertices, {A.nvals:,} arcs")
        parts.append(table)
        print(markdown(table), flush=True)
    page(given.results, f"Workers of gb.fixpoint on {given.devices}", __doc__, parts)
    if given.results:
        draw(given.results, drawn, given.devices)


if __name__ == "__main__":
    main()
