"""Searches and paths with and without rounds: python -m bench.experiments.fixpoints [GRAPH ...] [--devices cuda:0]

Levels (`algos.bfs_levels`), parents (`algos.bfs`) and shortest paths (`algos.sssp`, weights 1 to 255) from the vertex
of highest degree: as these functions choose, by `gb.fixpoint` where that is predicted to take less time; in rounds; and
by SciPy (`breadth_first_order`, `dijkstra`), on CPU devices. Median ms of seven whole calls, the devices synchronised,
kernels compiled, every result compared. Graphs are those of bench.gpu, or files of --data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from scipy.sparse import csgraph

import algos
import gbgpu as gb
from bench.experiments.soft_priorities import graph
from bench.record import Table, experiment, interleaved, page, synchronized

COLUMNS = ["graph", "levels", "in rounds", "SciPy", "parents", "in rounds", "paths", "in rounds", "SciPy"]
ASKED = "without_rounds"  # what both ask, before they choose
FEW = ["luxembourg_osm", "PGPgiantcompo"]


@contextmanager
def in_rounds() -> Iterator[None]:
    """Where searches and paths are loops, whatever the graph."""
    modules = [sys.modules[name] for name in ("algos.bfs", "algos.sssp")]
    before = [getattr(module, ASKED) for module in modules]
    for module in modules:
        setattr(module, ASKED, lambda A, search="": False)
    try:
        yield
    finally:
        for module, kept in zip(modules, before, strict=True):
            setattr(module, ASKED, kept)


def ms(call: Callable[[], object]) -> float:
    return 1e3 * interleaved([synchronized(call)], 7, 4, 20)[0]


def row(name: str, data: str) -> list[str]:
    """The cells of one graph."""
    A, source = graph(name, data)
    levels, paths = partial(algos.bfs_levels, A, source), partial(algos.sssp, A, source)
    calls: list[Callable[[], object]] = [levels, partial(algos.bfs, A, source), paths]
    with in_rounds():
        hops, wanted = levels(), paths()
        rounds = [ms(call) for call in calls]
    assert levels().isequal(hops) and paths().isequal(wanted)
    algos.verify.bfs(A, source, *algos.bfs(A, source))
    free, peers = [ms(call) for call in calls], [float("nan")] * 2
    if gb.settings.session().home.kind == "cpu":
        S = A.to_scipy_sparse().tocsr()
        assert np.array_equal(csgraph.dijkstra(S, indices=source), wanted.to_dense(np.inf))
        peers = [ms(partial(csgraph.breadth_first_order, S, source)), ms(partial(csgraph.dijkstra, S, indices=source))]
    numbers = [free[0], rounds[0], peers[0], free[1], rounds[1], free[2], rounds[2], peers[1]]
    return [name, *("" if number != number else f"{number:.2f}" for number in numbers)]


def main() -> None:
    given = experiment(__doc__, FEW, "cpu:1").parse_args()
    gb.init(given.devices)
    rows = []
    for name in given.graphs:
        rows.append(row(name, given.data))
        print(" | ".join(rows[-1]), flush=True)
    title = f"Searches and paths with and without rounds on {given.devices}"
    page(given.results, title, __doc__, [Table(COLUMNS, rows)])


if __name__ == "__main__":
    main()
