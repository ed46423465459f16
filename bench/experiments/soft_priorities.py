"""Windows of gb.fixpoint, soft priorities: python -m bench.experiments.soft_priorities [--devices cuda:0] [GRAPH ...]

Shortest paths from the vertex of highest degree (FP32 or FP64 weights 1 to 255) without rounds, with windows of several
widths and without any, and in rounds; after Groute's table 5 (Ben-Nun, Sutton, Pai, Pingali, PPoPP 2017: soft
priorities on and off) and Atos's tables of overwork (Chen and others, ICPP 2022). Median ms of five whole calls (of
one, where that takes a second), the devices synchronised, kernels compiled. Distances are compared with those of
algos.sssp, and where the graph is small with SciPy's.

- `updates`: vertices extended; `overwork`: updates for each vertex reached.
- A number in the first column: the width of the windows, in mean weights.
- "w/d": 32 mean weights over the mean degree, the width of Davidson and others (IPDPS 2014), and with which ADDS (Wang,
  Fussell, Lin, PPoPP 2021) begins.
- "auto": the width that `gb.fixpoint` chooses.
- "a kernel a window": the same width, but each window is a kernel of its own, and windows do not grow.
- "none": no windows; "rounds": `schedule="rounds"`; "algos.sssp": the schedule that this function chooses.

Graphs are those of bench.gpu on GPUs, or files of data/. The last graph is drawn for docs/fixpoint.md with --picture.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csgraph

import algos
import gbgpu as gb
from bench.record import Table, experiment, interleaved, markdown, page, synchronized
from gbgpu import binary, monoid
from gbgpu.semiring import min_plus

WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # mean weights
COLUMNS = ["window, mean weights", "ms", "windows", "updates", "overwork"]
LONG = 1.0  # seconds of a call from which on one is timed
PICTURE = Path(__file__).parents[2] / "docs/windows.svg"


def graph(name: str, data: str) -> tuple[gb.Matrix, int]:
    """Weighted arcs, both ways, and the vertex of highest degree."""
    if gb.settings.session().home.kind == "cuda":
        from bench.device_graphs import make

        made = make(name, data)
        return gb.Matrix.from_csr(made.indptr, made.indices, made.weights, ncols=made.n), made.sources[0]
    pattern = gb.io.mmread(Path(data, f"{name}.mtx.gz")).to_scipy_sparse().tocsr()
    weights = np.random.default_rng(1).integers(1, 256, pattern.nnz).astype(float)
    A = gb.Matrix.from_csr(pattern.indptr, pattern.indices, weights, ncols=pattern.shape[1])
    return A, int(np.diff(pattern.indptr).argmax())


def paths(A: gb.Matrix, source: int, product: Any = min_plus, dtype: Any = None, **how: Any) -> tuple[gb.Vector, Any]:
    """Distances, and the fixpoint that found them."""
    d = gb.Vector(dtype or A.dtype, size=A.nrows)
    d[source] = 0
    with gb.fixpoint(**how) as it:
        d(binary.min) << product[d.dtype](d @ A)
    return d, it


def measured(A: gb.Matrix, source: int, rounds: int = 5) -> list[list[Any]]:
    """The rows of one graph."""
    mean = A.reduce_scalar(monoid.plus["FP64"]).new().value / A.nvals
    ways: dict[str, Any] = {f"{width:g}": {"window": width * mean, "schedule": "free"} for width in WIDTHS}
    ways |= {
        "w/d": {"window": 32 * mean * A.nrows / A.nvals, "schedule": "free"},
        "auto": {"schedule": "free"},
        "a kernel a window": {"schedule": "free", "on_window": lambda windows: None},
        "none": {"window": None, "schedule": "free"},
        "rounds": {"schedule": "rounds"},
    }
    wanted = csgraph.dijkstra(A.to_scipy_sparse(), indices=source) if A.nvals < 1 << 22 else None
    own = algos.sssp(A, source)
    rows = []
    for name, how in ways.items():
        start = time.perf_counter()
        found, it = paths(A, source, **how)
        assert found.isequal(own) and it.converged
        assert wanted is None or np.array_equal(found.to_dense(np.inf), wanted)
        many = rounds if time.perf_counter() - start < LONG else 1
        seconds = interleaved([synchronized(partial(paths, A, source, **how))], many, 1, 20)[0]
        rows.append([name, 1e3 * seconds, it.windows, it.updates, it.overwork])
    rows.append(["algos.sssp", 1e3 * interleaved([synchronized(lambda: algos.sssp(A, source))], rounds, 3, 20)[0]])
    return rows


def draw(name: str, rows: list[list[Any]], devices: str) -> None:
    """Time and overwork by the width of windows."""
    import matplotlib.pyplot as plt

    widths = [row for row in rows if row[0] in {f"{width:g}" for width in WIDTHS}]
    auto, none = (next(row for row in rows if row[0] == what) for what in ("auto", "none"))
    plt.rcParams["svg.hashsalt"] = "windows"
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    figure.suptitle(f"Shortest paths of {name} on {devices}, compiled kernels: the width of windows", fontsize=11)
    x = [float(row[0]) for row in widths]
    left.plot(x, [row[1] for row in widths], "o-", color="#1565c0")
    left.axhline(none[1], color="#9e9e9e", linestyle="--", label="no windows")
    left.axhline(auto[1], color="#e65100", label='window="auto"')
    left.set(xscale="log", xlabel="window, mean weights", ylabel="ms a call", ylim=(0, None), xticks=x)
    left.set_xticklabels([f"{width:g}" for width in x])
    left.legend(frameon=False, fontsize=9)
    right.plot(x, [row[4] for row in widths], "o-", color="#1565c0", label="overwork")
    right.axhline(none[4], color="#9e9e9e", linestyle="--", label="overwork without windows")
    right.set(xscale="log", xlabel="window, mean weights", ylabel="updates a vertex", xticks=x)
    right.set_xticklabels([f"{width:g}" for width in x])
    right.set_ylim(1, None)
    right.legend(frameon=False, fontsize=9, loc="center")
    for axes in (left, right):
        axes.minorticks_off()
    figure.savefig(PICTURE, metadata={"Date": None})
    print("drawn:", PICTURE)


def main() -> None:
    parser = experiment(__doc__, ["luxembourg_osm"], "cpu:1")
    parser.add_argument("--picture", action="store_true")
    given = parser.parse_args()
    gb.init(given.devices)
    parts = []
    for name in given.graphs:
        A, source = graph(name, given.data)
        rows = measured(A, source)
        parts.append(Table(COLUMNS, rows, f"{name}: {A.nrows:,} vertices, {A.nvals:,} arcs, {A.dtype.name}"))
        print(markdown(parts[-1]), flush=True)
    page(given.results, f"Windows of gb.fixpoint on {given.devices}", __doc__, parts)
    if given.picture:
        draw(name, rows, given.devices)


if __name__ == "__main__":
    main()
