"""Partitions of real graphs: python -m bench.experiments.partitions [GRAPH ...] --data DATA [--devices cpu:4]

DATA is a folder of NAME.mtx.gz files. Each graph is divided by each partition (GUM, Meng et al., section
6, experiment 6). `cut`: share of the entries whose row and column have different owners; `rows`, `entries`: of the
largest block by the mean, both of A.T, by whose rows PageRank pulls. KB of a round of FP64 values, all devices
together: `all` that others have, those that blocks `need` of them, what a `push` sends at most, and what was counted in
a round of PageRank (`moved`; it pushes where rows are short). ms: PageRank of 20 rounds, BFS from the vertex among 16
that reaches most, the best of several calls; and the building of the matrix, once. Wall-clock times of a shared machine
with fewer cores than devices: they say whether a partition is out of the question, not which of two is faster.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

import algos
import gbgpu as gb
from bench.record import Table, experiment, page

GRAPHS = ("uk-2007-05_100000", "soc-Slashdot0902", "cit-HepTh", "rail-world", "copter2", "luxembourg_osm")
COLUMNS = ("graph", "partition", "cut", "rows", "entries", "all", "need", "push", "moved", "PageRank", "BFS", "build")


def loaded(path: Path) -> tuple[tuple, int]:
    """The arrays of a graph, and where a search begins."""
    gb.init("cpu:1")
    A = gb.io.mmread(str(path))
    sources = np.random.default_rng(0).integers(0, A.nrows, 16).tolist()
    return A.to_csr(), max(sources, key=lambda source: algos.bfs_levels(A, source).nvals)


def milliseconds(call, rounds: int) -> float:
    """Of the best call after two that are not counted."""
    times = []
    for _ in range(rounds + 2):
        start = perf_counter()
        call()
        gb.synchronize()
        times.append(1e3 * (perf_counter() - start))
    return min(times[2:])


def moved(A: gb.Matrix) -> int:
    """Bytes that came from other devices in a later round of PageRank: what 12 rounds move beyond 4."""
    counts = []
    for rounds in (4, 12):
        with gb.trace() as records:
            algos.pagerank(A, tol=0, max_iterations=rounds)
        counts.append(sum(record.bytes for record in records))
    return (counts[1] - counts[0]) // 8


def measured(csr: tuple, source: int, partition: str, devices: str, rounds: int) -> list[str]:
    """The cells of one graph and partition."""
    gb.init(devices, gb.partition.NAMED[partition]())
    start = perf_counter()
    A = gb.Matrix.from_csr(*csr, ncols=len(csr[0]) - 1)
    build, sets = perf_counter() - start, gb.block_sets(A.T)
    ranks = milliseconds(lambda: algos.pagerank(A, tol=0, max_iterations=20), rounds)
    levels = milliseconds(lambda: algos.bfs(A, source), rounds)
    kilobytes = [sets.pull_bytes(), sets.needed_bytes(), sets.push_bytes(), moved(A)]
    shares = [f"{100 * sets.edge_cut:.2f}%", f"{sets.row_balance:.2f}", f"{sets.edge_balance:.2f}"]
    times = [f"{ranks:.3g}", f"{levels:.3g}", f"{1e3 * build:.0f}"]
    return [*shares, *(f"{count / 1e3:,.1f}" for count in kilobytes), *times]


def main() -> None:
    parser = experiment(__doc__, GRAPHS, "cpu:4")
    parser.add_argument("--rounds", type=int, default=7, help="measured calls of each algorithm (default: 7)")
    arguments = parser.parse_args()
    rows = []
    for graph in arguments.graphs:
        csr, source = loaded(Path(arguments.data, f"{graph}.mtx.gz"))
        for partition in gb.partition.NAMED:
            rows.append([graph, partition, *measured(csr, source, partition, arguments.devices, arguments.rounds)])
            print(*rows[-1], sep=" | ", flush=True)
    title = f"Partitions of real graphs, {arguments.devices}"
    page(arguments.results, title, __doc__, [Table(COLUMNS, rows)])


if __name__ == "__main__":
    main()
