"""GUM's experiments with stealing and folding (ICDE 2023, section VI) on the GPUs of this machine.

    python -m bench.experiments.gum_gpus [twins24 ...] [--devices cuda:0-3] [--rounds 5]

Each graph, made on the GPU, is divided into segments of equal rows; searches begin inside the first one
(bench/device_graphs.py). Medians of whole calls in ms, devices synchronised, copies made and loops captured before;
results of all rows are compared. What eight GPUs would do is predicted by bench.experiments.gum (balance.md). Writes
bench/results/balance-gpus.md.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import algos
import gbgpu as gb
from bench.device_graphs import Graph, make
from bench.experiments.folding import LONG
from bench.experiments.turns import weighted
from bench.record import SETTLED, Table, interleaved, page, synchronized
from gbgpu import Matrix, Vector, binary, replace
from gbgpu.semiring import min_plus

WARM = 5.0  # seconds of calls before: what devices waited in them has paid for captures of loops that take as long
COPIED = 4  # calls after which statements that push have the copies that they are worth
POLICIES: dict[str, dict[str, Any]] = {
    "alone": {"balance": "off", "replicas": 0},
    "stealing": {"balance": "auto", "replicas": "auto"},
    "folding": {"balance": "off", "replicas": "auto"},
}


def started(graph: Graph, gpus: list[str], **how: Any) -> tuple[Matrix, Matrix, int]:
    """The pattern and the weighted matrix in segments on these GPUs, and a source inside the first one."""
    gc.collect()
    gb.init(",".join(gpus), gb.partition.shares(*[1] * len(gpus)) if len(gpus) > 1 else None, **how)
    return *weighted(graph), next((v for v in graph.sources if v < graph.n // len(gpus)), graph.sources[0])


def pushed(W: Matrix, source: int, took: list[float] | None = None) -> Vector:
    """Distances, by statements that push from all vertices whose distance fell; `took`: seconds of each push."""
    known = Vector.from_scalar(np.inf, W.nrows, "FP32")
    known[source] = 0
    near = Vector.from_coo([source], [0.0], size=W.nrows, dtype="FP32")
    while near.nvals:
        if took is not None:
            gb.synchronize()
        start = perf_counter()
        t = min_plus(near @ W).new(direction="push")
        if took is not None:
            gb.synchronize()
            took.append(perf_counter() - start)
        shorter = binary.lt(t & known).new()
        near = Vector("FP32", W.nrows)
        near(shorter.V, replace) << t
        known(binary.min) << near
    return known


def searches(A: Matrix, W: Matrix, source: int) -> dict[str, Callable[[], Vector]]:
    return {"BFS": lambda: algos.bfs_levels(A, source), "SSSP": lambda: algos.sssp(W, source)}


def passes(A: Matrix) -> dict[str, Callable[[], Vector]]:
    return {
        "PageRank": lambda: algos.pagerank(A, tol=0, max_iterations=20, dtype="FP32").ranks,
        "components": lambda: algos.connected_components(A),
    }


def median(call: Callable[[], object], rounds: int, warm: int = SETTLED) -> float:
    return 1e3 * interleaved([synchronized(call)], rounds, warm, WARM)[0]


def same(found: Vector, known: dict[str, Any], step: str) -> None:
    vals = found.to_coo()[1]
    np.testing.assert_allclose(vals, known.setdefault(step, vals), rtol=1e-3)


def scaling(graph: Graph, gpus: list[str], counts: list[int], rounds: int) -> list[list[str]]:
    """Figure 6: ms by number of GPUs."""
    found: dict[str, list[float]] = {}
    known: dict[str, Any] = {}
    for m in counts:
        A, W, _ = started(graph, gpus[:m])
        for step, call in {**searches(A, W, graph.sources[0]), **passes(A)}.items():
            if (graph.name, step) not in LONG:
                found.setdefault(step, []).append(median(call, rounds))
                same(call(), known, step)
    return [
        [graph.name, step, *(f"{one:.2f}" for one in took), f"{took[0] / took[-1]:.2f}x"]
        for step, took in found.items()
    ]


def critical(graph: Graph, gpus: list[str], rounds: int) -> tuple[list[list[str]], dict[str, float]]:
    """Figure 8: the longest pushes of a search, left alone and with stealing; and whole searches of figure 9. None
    where these take long."""
    took, edges, whole = {}, {}, {}
    if (graph.name, "SSSP") in LONG:
        return [], {}
    known: dict[str, Any] = {}
    for policy in ("alone", "stealing"):
        _, W, source = started(graph, gpus, **POLICIES[policy])
        whole[policy] = median(partial(pushed, W, source), rounds, COPIED)
        times: list[list[float]] = [[] for _ in range(rounds)]
        for each in times:
            same(pushed(W, source, each), known, "distances")
        took[policy] = np.median(times, axis=0)
        with gb.trace() as records:
            pushed(W, source)
        of: dict[int, dict[str, int]] = {}
        for record in records:
            if record.step == "push":
                here = of.setdefault(record.statement, {})
                here[record.device] = here.get(record.device, 0) + record.edges
        edges[policy] = [list(here.values()) for _, here in sorted(of.items())]
    rows = []
    for i in np.argsort(-took["alone"])[:2]:
        cells = [f"{1e3 * took[policy][i]:.2f}" for policy in took]
        cells += [f"{1 - sum(e) / len(gpus) / max(e):.0%}" for e in (edges[policy][i] for policy in took)]
        rows.append([graph.name, str(i), *cells])
    return rows, whole


def gains(graph: Graph, gpus: list[str], rounds: int, whole: dict[str, float]) -> list[list[str]]:
    """Figure 9: what stealing brings a search that pushes, what folding brings loops."""
    rows = []
    if whole:
        gain = whole["alone"] / whole["stealing"]
        rows.append([graph.name, "SSSP by pushes", f"{whole['alone']:.2f}", f"{gain:.2f}x", ""])
    took: dict[str, dict[str, float]] = {}
    for policy in ("alone", "folding"):
        A, W, source = started(graph, gpus, **POLICIES[policy])
        for step, call in searches(A, W, source).items():
            if (graph.name, step) not in LONG:
                took.setdefault(step, {})[policy] = median(call, rounds)
    for step, one in took.items():
        rows.append([graph.name, step, f"{one['alone']:.2f}", "", f"{one['alone'] / one['folding']:.2f}x"])
    return rows


def write(gpus: list[str], counts: list[int], scaled: Any, longest: Any, won: Any) -> None:
    """The report, of the rows that are there."""
    parts = [
        Table(["graph", "", *map(str, counts), "gain"], scaled, "Strong scaling (figure 6)",
              "ms. GUM, 8 GPUs over 1: up to 6.5x (BFS), 5.3x (SSSP), 7.5x (PageRank)."),
        Table(["graph", "push", "alone", "stealing", "stalled alone", "stalled"], longest, "Critical rounds (figure 8)",
              "ms of the longest two pushes of a search by pushes; stalled: by the edges of each GPU. GUM (sinaweibo): "
              "43 -> 32 ms, stalled 72% -> 4%."),
        Table(["graph", "", "alone, ms", "stealing", "folding"], won, "Incremental gains (figure 9)",
              "Over GPUs left alone, without replicas. GUM: stealing about 3.2x (BFS, SSSP of soc-orkut), folding 3.2x "
              "on road-USA."),
    ]  # fmt: skip
    page("balance-gpus", f"Stealing and folding on {len(gpus)} GPUs", __doc__, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["twins24", "crawl24", "rmat24", "road2m"])
    parser.add_argument("--devices", default="cuda:0-3")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    gb.settings.resident = "now"
    session = gb.init(given.devices)
    gpus = list(dict.fromkeys(f"cuda:{device.gpu}" for device in session.devices))  # type: ignore[attr-defined]
    counts = [m for m in (1, 2, 4, 8) if m <= len(gpus)]
    scaled: list[list[str]] = []
    longest: list[list[str]] = []
    won: list[list[str]] = []
    told = partial(write, gpus, counts, scaled, longest, won)
    for name in given.graphs:
        graph = make(name)
        scaled += scaling(graph, gpus, counts, given.rounds)
        told()  # what follows may run out of time
        rows, whole = critical(graph, gpus, given.rounds)
        longest += rows
        told()
        won += gains(graph, gpus, given.rounds, whole)
        told()


if __name__ == "__main__":
    main()
