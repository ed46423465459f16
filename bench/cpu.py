"""CPU figures, each beside its peer in the same run: python -m bench.cpu [karate] [spmv] [bfs] [--scale 18]

karate: what a statement costs on a tiny graph, beside python-graphblas. spmv: y = A @ x on an RMAT graph, beside SciPy.
bfs: whole searches on the same graph, beside scipy.sparse.csgraph.breadth_first_order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

import algos
import gbgpu as gb
from bench.record import Row, interleaved, table, write

LIMITS = {"masked vxm": 60, "assign": 30, "min_plus with accum": 60}  # microseconds a statement


def karate_calls(module, synchronize: Callable[[], None]) -> dict[str, Callable[[], None]]:
    """The three statements on Zachary's karate club, on objects that keep their contents from call to call."""
    graph = nx.karate_club_graph().to_directed()
    rows, columns = np.array(graph.edges(), np.int64).T
    n = graph.number_of_nodes()
    pattern = module.Matrix.from_coo(rows, columns, True, dtype=bool, nrows=n, ncols=n)
    weights = module.Matrix.from_coo(rows, columns, 1.0, dtype="FP32", nrows=n, ncols=n)
    q = module.Vector.from_coo([0, 33], True, dtype=bool, size=n)
    visited = module.Vector.from_coo([0, 1, 33], True, dtype=bool, size=n)
    w, level = module.Vector(bool, size=n), module.Vector(int, size=n)
    d = module.Vector.from_coo([0], [0.0], dtype="FP32", size=n)
    semiring, least = module.semiring, module.binary.min

    def product():
        w(~visited.S, module.replace) << semiring.any_pair(q @ pattern)
        synchronize()

    def assign():
        level(q.S) << 3
        synchronize()

    def relax():
        d(least) << semiring.min_plus(d @ weights)
        synchronize()

    return {"masked vxm": product, "assign": assign, "min_plus with accum": relax}


def karate() -> list[Row]:
    import graphblas

    rows = []
    for devices in ("cpu:1", "auto"):
        gb.init(devices)
        ours, theirs = karate_calls(gb, gb.synchronize), karate_calls(graphblas, lambda: None)
        for what, limit in LIMITS.items():
            mine, other = interleaved([ours[what], theirs[what]], rounds=2000, warm=200)
            rows.append(
                Row(
                    f"karate, {what}",
                    devices,
                    mine * 1e6,
                    "us",
                    "python-graphblas",
                    other * 1e6,
                    mine / other,
                    f"<= {limit} us",
                    mine * 1e6 <= limit,
                )
            )
    return rows


def graph(scale: int) -> csr_array:
    """The RMAT graph (edge factor 16, symmetric, relabelled at random) with weights, as SciPy has it."""
    gb.init("cpu:1")
    return gb.io.rmat(scale, 16, seed=1, weights=(1, 255), dtype="FP32").to_scipy_sparse()


def spmv(scale: int) -> list[Row]:
    """`y << plus_times(A @ x)`, x full."""
    A = graph(scale)
    x = np.random.default_rng(2).random(A.shape[0], dtype=np.float32)
    expected, rows, seconds = A @ x, [], {}
    for devices in ("cpu:1", "cpu:2"):
        gb.init(devices)
        B, v = gb.Matrix.from_scipy_sparse(A), gb.Vector.from_dense(x)
        y = gb.Vector("FP32", size=A.shape[0])

        def ours(y=y, B=B, v=v):
            y << gb.semiring.plus_times(B @ v)
            gb.synchronize()

        mine, other = interleaved([ours, lambda: A @ x], rounds=40)
        np.testing.assert_allclose(y.to_dense(0), expected, rtol=1e-4)
        seconds[devices] = mine
        target, met = ("<= 1.35 x SciPy", mine / other <= 1.35) if devices == "cpu:1" else ("", None)
        rows.append(
            Row(
                f"rmat{scale}, FP32 y = A @ x",
                devices,
                mine * 1e3,
                "ms",
                "SciPy",
                other * 1e3,
                mine / other,
                target,
                met,
            )
        )
    gain = seconds["cpu:1"] / seconds["cpu:2"]
    rows.append(
        Row(
            f"rmat{scale}, FP32 y = A @ x",
            "cpu:2",
            seconds["cpu:2"] * 1e3,
            "ms",
            "gbgpu on cpu:1",
            seconds["cpu:1"] * 1e3,
            gain,
            ">= 1.7 x faster",
            gain >= 1.7,
        )
    )
    return rows


def sources(A: csr_array) -> dict[str, int]:
    """The vertex of highest degree, and three random ones whose search reaches over half of the graph."""
    found = {"hub": int(np.argmax(np.diff(A.indptr)))}
    random = np.random.default_rng(3)
    while len(found) < 4:
        source = int(random.integers(A.shape[0]))
        if len(breadth_first_order(A, source, return_predecessors=False)) > A.shape[0] // 2:
            found[f"source {source}"] = source
    return found


def bfs(scale: int) -> list[Row]:
    A = graph(scale)
    gb.init("cpu:2")
    B, rows = gb.Matrix.from_scipy_sparse(A), []
    for name, source in sources(A).items():
        levels, _ = algos.bfs(B, source)
        assert levels.nvals == len(breadth_first_order(A, source, return_predecessors=False))

        def ours(source=source):
            algos.bfs(B, source)
            gb.synchronize()

        mine, other = interleaved([ours, lambda source=source: breadth_first_order(A, source)], rounds=15)
        rows.append(
            Row(
                f"rmat{scale}, BFS from {name}",
                "cpu:2",
                mine * 1e3,
                "ms",
                "SciPy",
                other * 1e3,
                other / mine,
                ">= 2 x faster",
                other / mine >= 2,
            )
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cpu", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["karate", "spmv", "bfs", []], help="default: all")
    parser.add_argument("--scale", type=int, default=18, help="log2 of the vertices of the RMAT graph")
    options = parser.parse_args()
    parts = {"karate": karate, "spmv": lambda: spmv(options.scale), "bfs": lambda: bfs(options.scale)}
    rows = [row for part in options.parts or parts for row in parts[part]()]
    print(table(rows))
    if not options.parts:
        print(f"\nwritten to {write('cpu', 'python -m bench.cpu', rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
