"""Graphs that one GPU has no room for: python -m bench.experiments.scale [29] [--devices cuda:0-1] [--sources 4]

An RMAT graph of this scale (edge factor 16, both directions, Graph500's probabilities, vertices renamed at random) is
drawn and built by the GPUs, searched from some vertices that have neighbours, and ranked (PageRank, FP32, to 1e-6).
Levels and ranks are checked by what must hold for every edge, in products that search and ranking don't use. TEPS:
edges between vertices that a search reached, each once, without loops and repeats (which Graph500 would count), by its
time; their harmonic mean. Memory: of the matrix, as `gb.estimate_memory` predicts it and as it is, and the most that
CuPy's pool had.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import numpy as np

import algos
import gbgpu as gb
from bench.record import Row, table, write
from gbgpu import binary, select, unary
from gbgpu.semiring import max_first, min_first, plus_pair, plus_second

DAMPING, TOLERANCE = 0.85, 1e-6
WARM = 14  # searches before


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """(what it gives, milliseconds)."""
    gb.synchronize()
    start = time.perf_counter()
    found = call()
    gb.synchronize()
    return found, (time.perf_counter() - start) * 1e3


def check_levels(A: gb.Matrix, source: int, levels: gb.Vector) -> None:
    """Who has a neighbour that is reached is reached, the nearest of them one level above, and no neighbour further
    than one level away."""
    beyond = gb.Vector(levels.dtype, levels.size)
    beyond(~levels.S) << min_first(levels @ A)
    assert beyond.nvals == 0, "an edge leaves what was reached"
    nearest = binary.minus(levels & min_first(levels @ A).new()).new()
    assert nearest.nvals == levels.nvals and levels.get(source) == 0, "a vertex without a neighbour that is reached"
    apart = select.valuene(nearest, 1).new()
    assert apart.to_dict() == {source: -1}, "a vertex without a parent"
    furthest = binary.minus(max_first(levels @ A).new() & levels).new()
    assert furthest.reduce("max").new().value <= 1, "an edge skips a level"


def check_ranks(A: gb.Matrix, degrees: gb.Vector, ranks: gb.Vector) -> float:
    """How far the ranks move in a round of FP64, in sum."""
    n, ranks = A.nrows, ranks.dup("FP64")
    share = binary.truediv(ranks & degrees).new("FP64")
    with_arcs = binary.first(ranks & degrees).reduce("plus").new().value
    alone = ranks.reduce("plus").new().value - with_arcs
    expected = gb.Vector.from_scalar((1 - DAMPING + DAMPING * alone) / n, n, "FP64")
    expected(binary.plus) << plus_second["FP64"](A @ share).new().apply(binary.times, right=DAMPING)
    moved: float = unary.abs(binary.minus(expected & ranks)).new().reduce("plus").new().value
    assert moved < 2 * TOLERANCE, f"ranks move by {moved}"
    return moved


def most(devices: int) -> list[float]:
    """Gigabytes that CuPy's pool has taken, by GPU."""
    pool, found = cupy.get_default_memory_pool(), []
    for gpu in range(devices):
        with cupy.cuda.Device(gpu):
            found.append(pool.total_bytes() / 1e9)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scale", nargs="?", type=int, default=29)
    parser.add_argument("--devices", default="cuda:0-1")
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--results", action="store_true", help="keep the table")
    given = parser.parse_args()
    session, rows = gb.init(given.devices), []
    gpus = len({device.gpu for device in session.devices})  # type: ignore[attr-defined]
    name = f"rmat{given.scale}"

    def tell(what: str, ours: float, unit: str, note: str = "") -> None:
        rows.append(Row(f"{name}: {what}", given.devices, ours, unit, note=note))
        print(table(rows[-1:]).splitlines()[-1], flush=True)

    A, seconds = timed(lambda: gb.io.rmat(given.scale, 16, seed=1, dtype="BOOL"))
    held = [bytes / 1e9 for bytes in A.memory().values()]
    predicted = gb.estimate_memory(A.nrows, A.ncols, A.nvals, "BOOL", iso=True)
    told = ", ".join(f"{bytes:.1f}" for bytes in held)
    tell("drawn and built", seconds, "ms", f"{A.nvals} entries, the renaming by the host among it")
    tell("memory", max(held), "GB", f"{told} by device; predicted {predicted.held / 1e9:.1f}")
    degrees = plus_pair["INT64"](A @ gb.Vector.from_scalar(True, A.ncols)).new()
    random, speeds, n = np.random.default_rng(1), [], A.nrows
    sources: list[int] = []
    while len(sources) < given.sources:
        v = int(random.integers(n))
        if degrees.get(v):
            sources.append(v)
    for _ in range(WARM):  # kernels are compiled, the order of columns made, the loop captured
        algos.bfs_levels(A, sources[0])
    for source in sources:
        levels, took = timed(partial(algos.bfs_levels, A, source))
        check_levels(A, source, levels)
        edges = binary.second(levels & degrees).reduce("plus").new().value // 2
        speeds.append(edges / took / 1e6)
        depth = levels.reduce("max").new().value
        note = f"{levels.nvals} vertices, depth {depth}, {speeds[-1]:.1f} GTEPS, checked"
        tell(f"BFS from {source}", took, "ms", note)
        del levels
    tell("TEPS, harmonic mean", len(speeds) / sum(1 / speed for speed in speeds), "G/s")
    for again in ("first", "second"):
        (ranks, iterations, _), took = timed(lambda: algos.pagerank(A, DAMPING, TOLERANCE, dtype="FP32"))
        moved = check_ranks(A, degrees, ranks)
        speed = A.nvals * iterations / took / 1e6
        note = f"{iterations} rounds, {speed:.0f} G entries/s, moves by {moved:.1e} more"
        tell(f"PageRank, {again}", took, "ms", note)
        del ranks
    tell("most memory", max(most(gpus)), "GB", ", ".join(f"{each:.1f}" for each in most(gpus)))
    if given.results:
        print(write(f"gpu-{name}", f"python -m bench.experiments.scale {given.scale} --devices {given.devices}", rows))


if __name__ == "__main__":
    main()
