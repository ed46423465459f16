"""GPU figures: python -m bench.gpu [rmat22 kron21 ...] [--devices cuda:0] [--rounds 7] [--only spmv] [--no-verify]

The graphs are made on the GPU. Times are medians of whole calls, the devices synchronised before and after, the
matrix on the device (but for `build`) and the kernels compiled. Every result is checked (bench/device_checks.py).
GB/s: the bytes that a call must move at least, each array once, by its time; G/s: entries of the matrix by the time.
Launches, host reads and bytes between devices are counted for each statement of one more call. Of loops that devices go
by themselves: rounds, what one takes by the GPU's clock, all of them of a call that is traced, and what a round is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupyx.scipy.sparse import csr_matrix

import algos
import gbgpu as gb
from algos.coloring import by_degree
from bench import device_checks as checks
from bench.device_graphs import GRAPHS, Graph, make
from bench.record import SETTLED, Row, interleaved, synchronized, table, write
from gbgpu.trace import counters

ITERATIONS = 20  # of PageRank
NAMES = ("rmat22", "kron21", "rmat24", "urand23", "urand24", "road24m", "road2m", "luxembourg_osm", "PGPgiantcompo")
STEPS = ["spmv", "pagerank", "pagerank to 1e-6", "bfs hub", "bfs random", "sssp", "components", "triangles"]
STEPS += ["build", "build weighted", "bfs with parents", "betweenness", "core numbers", "coloring"]
FOUR = 4  # sources of betweenness
SMALL = ("email-Enron", "soc-Slashdot0902", "uk-2007-05_100000")
REAL = (*SMALL, "osm-andorra", "rail-world")  # which the project does not ship: where --data has them
# Milliseconds to reach on an H200, by graph and step.
TARGETS = {
    "rmat22": (0.50, 9.5, 11, 0.38, 1.0, 8, 2, 70, 20, None, 0.9, 25, 40, 30),
    "kron21": (0.52, 11, 10.5, 0.30, 0.8, 8, 2, 150, 28, None, 0.7, 30, 40, 40),
    "rmat24": (2.0, 42, 50, 0.85, 2.6, 24, 3.5, 400, 80, None, 2.2, 80, 90, 90),
    "urand23": (2.4, 48, 20, 1.2, 2.0, 30, 2.2, 35, 40, None, 2.0, 60, 14, 40),
    "road24m": (0.26, 7, 22, 26, None, 26, 4.5, 2, 10, None, 75, 500, 8, 6),
    "road2m": (None, None, 3.0, 6, None, 7.5, 0.8, None, None, None, 20),
    "luxembourg_osm": (None, None, None, 2.2, None, 3, 1.5),
    **dict.fromkeys(SMALL, (None, 0.75, 2.2, 0.30, None, 1.8, 0.9, 1.5, None, None, None, 3)),
}
OMITTED = {(large, s) for large in ("urand24", "rmat26") for s in STEPS[7:]}  # they are there for several GPUs
OMITTED |= {(road, "betweenness") for road in ("road2m", "road24m")}  # more shortest paths than FP64 can count
FEW = ("sssp", "triangles", "build", "build weighted", "betweenness", "core numbers", "coloring")  # slow: timed less


def per_statement(call: Callable[[], object]) -> str:
    """Launches, host reads and bytes between devices, a statement each."""
    names = ("statements", "launches", "host_reads", "exchanged")
    before = [getattr(counters, name) for name in names]
    call()
    done, launches, reads, moved = (getattr(counters, name) - old for name, old in zip(names, before, strict=True))
    each = max(done, 1)
    return (
        f"{done} statements of {launches / each:.1f} launches, {reads / each:.2f} reads, {moved / each:.0f} B between"
    )


def by_rounds(call: Callable[[], object]) -> str:
    """What devices did by themselves in a call: rounds of loops, their median, what a round is, their share of it."""
    with gb.trace(rounds=True) as records:
        start = time.perf_counter()
        call()
        gb.synchronize()
        seconds = time.perf_counter() - start
    took = {r.statement: r.end - r.start for r in records if r.step.endswith("round")}
    if not took:
        return ""
    how = Counter(r.text.partition(": ")[2] for r in records if r.statement in took).most_common(1)[0][0]
    each = np.median([*took.values()]) * 1e6
    share = f"{sum(took.values()) * 1e3:.2f} of {seconds * 1e3:.2f} ms"
    return f"; {len(took)} rounds by themselves, {each:.1f} us each, {share}, {how}"


class Bench:
    """One graph's matrices, vectors and calls."""

    def __init__(self, graph: Graph):
        self.graph, n = graph, graph.n
        self.pattern = gb.Matrix.from_csr(graph.indptr, graph.indices, True, ncols=n)
        self.weighted = gb.Matrix.from_csr(graph.indptr, graph.indices, graph.weights, ncols=n)
        self.x = gb.Vector.from_dense(cupy.random.RandomState(0).random_sample(n, dtype=cupy.float32))
        self.y = gb.Vector("FP32", n)
        self.coo: Any = None

    def call(self, step: str) -> Callable[[], Any]:
        hub, other = self.graph.sources[:2]
        return {
            "spmv": lambda: self.y << gb.semiring.plus_times(self.weighted @ self.x),
            "pagerank": lambda: algos.pagerank(self.pattern, tol=0, max_iterations=ITERATIONS, dtype="FP32")[0],
            "pagerank to 1e-6": lambda: algos.pagerank(self.pattern, tol=1e-6, dtype="FP32")[0],
            "bfs hub": lambda: algos.bfs_levels(self.pattern, hub),
            "bfs random": lambda: algos.bfs_levels(self.pattern, other),
            "sssp": lambda: algos.sssp(self.weighted, other),
            "components": lambda: algos.connected_components(self.pattern),
            "triangles": lambda: algos.triangle_count(self.pattern),
            "bfs with parents": lambda: algos.bfs(self.pattern, hub),
            "betweenness": lambda: algos.betweenness(self.pattern, self.graph.sources[:FOUR], directed=False),
            "core numbers": lambda: algos.core_numbers(self.pattern),
            "coloring": lambda: algos.greedy_color(self.pattern),
            "build": lambda: self.built(True),
            "build weighted": lambda: self.built(self.shuffled()[2]),
        }[step]

    def built(self, values: Any) -> gb.Matrix:
        rows, cols, _ = self.shuffled()
        return gb.Matrix.from_coo(rows, cols, values, nrows=self.graph.n, ncols=self.graph.n)

    def shuffled(self) -> Any:
        """The entries in random order."""
        if self.coo is None:
            order = cupy.argsort(cupy.random.RandomState(5).random_sample(self.graph.nnz, dtype=cupy.float32))
            graph = self.graph
            self.coo = checks.rows_of(graph)[order], graph.indices[order], graph.weights[order]
        return self.coo

    def check(self, step: str, found: Any) -> None:
        """AssertionError unless the step's result is right."""
        graph, (hub, other) = self.graph, self.graph.sources[:2]
        if step == "spmv":
            x = cupy.asarray(self.x.to_dense())
            matrix = csr_matrix((graph.weights.astype(float), graph.indices, graph.indptr), shape=(graph.n, graph.n))
            right = matrix @ x.astype(float)
            off = abs(cupy.asarray(self.y.to_dense(0)) - right) / cupy.maximum(right, 1)
            assert float(off.max()) < 1e-4, "A @ x differs"
        elif step == "pagerank to 1e-6":
            checks.settled(graph, found.to_dense(), 1e-6)
        elif step == "pagerank":
            checks.ranks(graph, found.to_dense(), ITERATIONS)
        elif step == "bfs with parents":
            checks.levels(graph, hub, found.levels.to_dense(-1))
            checks.parents(graph, found.levels.to_dense(-1), found.parents.to_dense(-1))
        elif step == "betweenness":
            checks.betweenness(graph, graph.sources[:FOUR], found.to_dense())
        elif step == "core numbers":
            checks.core_numbers(graph, found.to_dense())
        elif step == "coloring":
            checks.coloring(graph, found.to_dense(), by_degree(self.pattern, 0).to_dense())
        elif step.startswith("bfs"):
            checks.levels(graph, hub if step == "bfs hub" else other, found.to_dense(-1))
        elif step == "sssp":
            checks.distances(graph, other, found.to_dense(np.inf))
        elif step == "components":
            checks.components(graph, found.to_dense())
        elif step == "triangles":
            checks.triangles(graph, found)
        else:
            assert found.isequal(self.pattern if step == "build" else self.weighted), "built another matrix"

    def least_bytes(self, step: str) -> int:
        """Bytes of all arrays that a call reads and writes, each once; 0 where that depends on the graph."""
        n, nnz = self.graph.n, self.graph.nnz
        once = {"spmv": 8 * nnz + 12 * n, "build": 12 * nnz + 4 * n, "build weighted": 20 * nnz + 4 * n}
        return {**once, "pagerank": ITERATIONS * (4 * nnz + 24 * n)}.get(step, 0)

    def row(self, step: str, devices: str, rounds: int, verify: bool) -> Row:
        name, call = self.graph.name, self.call(step)
        if verify:
            found, start = call(), time.perf_counter()
            self.check(step, found)
            del found
            print(f"  {name} {step}: checked in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        note, calls = "", [synchronized(call)]
        target = dict(zip(STEPS, TARGETS.get(name, ()), strict=False)).get(step)
        if step == "spmv":
            graph, x = self.graph, cupy.asarray(self.x.to_dense())
            peer = csr_matrix((graph.weights, graph.indices, graph.indptr.astype(np.int32)), shape=(graph.n, graph.n))
            calls.append(synchronized(lambda: peer @ x))
        elif step.startswith("build"):
            self.shuffled()
        # A matrix often pulled from gets its columns in another order; loops become kernels, and several GPUs try ways.
        one = len(gb.device_info()) == 1
        trying = "bfs", "core", "sssp", "components", *(() if one else ("pagerank",))
        warm = (24 if one else SETTLED) if step.startswith(trying) else 4
        times = [seconds * 1e3 for seconds in interleaved(calls, 3 if step in FEW else rounds, warm)]
        if verify:  # a call that goes as those that were timed
            self.check(step, call())
        note = per_statement(call) + by_rounds(call)
        speed, least = f"{self.graph.nnz / times[0] / 1e6:.1f} G/s", self.least_bytes(step)
        note = f"{speed}{f', {least / times[0] / 1e6:.0f} GB/s' if least else ''}; {note}"
        aim, met = ("", None) if target is None else (f"{target} ms", times[0] <= target)
        theirs = times[1] if len(times) > 1 else None
        ratio = None if theirs is None else times[0] / theirs
        return Row(
            f"{name}: {step}", devices, times[0], "ms", "cuSPARSE" if theirs else "", theirs, ratio, aim, met, note
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "graphs",
        nargs="*",
        help=f"among {', '.join(GRAPHS)}, or names of .mtx.gz files; without any: {', '.join(NAMES)}, and real graphs",
    )
    parser.add_argument("--data", default="data", help="the folder of these files")
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="steps whose name holds one of these texts, with commas")
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--results", help="the name of the file; without it only runs of all steps are kept")
    options = parser.parse_args()
    there = [name for name in REAL if Path(options.data, f"{name}.mtx.gz").exists()]
    missing = [name for name in {*options.graphs} - {*GRAPHS} if not Path(options.data, f"{name}.mtx.gz").exists()]
    if missing:
        parser.error(f"unknown graphs: {', '.join(missing)}")
    gb.settings.resident = "now"  # kernels are compiled
    gb.init(options.devices)
    rows: list[Row] = []
    for name in options.graphs or [*NAMES, *there]:
        bench = Bench(make(name, options.data))
        for step in STEPS:
            if any(text in step for text in options.only.split(",")) and (name, step) not in OMITTED:
                rows.append(bench.row(step, options.devices, options.rounds, not options.no_verify))
                print(table(rows[-1:]).splitlines()[-1], flush=True)
        del bench
        cupy.get_default_memory_pool().free_all_blocks()
    if options.results or not options.only:
        name = "gpu" if options.devices == "cuda:0" else "gpu-" + options.devices.replace(":", "").replace("*", "x")
        print(write(options.results or name, f"python -m bench.gpu {' '.join(sys.argv[1:])}", rows))


if __name__ == "__main__":
    main()
