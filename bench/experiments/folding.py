"""Work of several GPUs that is left to one: python -m bench.experiments.folding [road2m ...] [--devices cuda:0-1]

Loops whose rounds are short run on one GPU, on a replica of the matrix, and so do whole calls that take less so
(docs/devices.md). `A @ x`, FP32, is a statement of all GPUs.
Medians of whole calls in ms, in turns, devices synchronised, loops captured before: on `one` GPU; `folded`, as all GPUs
by default; `apart`, all GPUs without replicas, so that each round is one of all. Results are compared.
"""

from __future__ import annotations

import argparse
import gc

import numpy as np

import algos
import gbgpu as gb
from bench.device_graphs import make
from bench.experiments.turns import Calls, Side, in_turns, weighted
from bench.record import SETTLED, Table, page
from gbgpu.semiring import plus_times

COLUMNS = ["graph", "", "one", "folded", "apart", "folded / one", "apart / folded"]
LONG = {("road24m", "SSSP"), ("trail24", "SSSP")}  # seconds a call


def measured(graph, devices: str, rounds: int) -> list[dict[str, str]]:
    """Milliseconds by step: of one GPU, folded and apart."""

    def calls() -> Calls:
        A, W = weighted(graph)
        x = gb.Vector.from_dense(np.random.default_rng(0).random(graph.n, np.float32))
        found = {
            "BFS": lambda: algos.bfs_levels(A, graph.sources[0]),
            "SSSP": lambda: algos.sssp(W, graph.sources[1]),
            "components": lambda: algos.connected_components(A),
            "A @ x": lambda: plus_times(W @ x).new(),
            "PageRank": lambda: algos.pagerank(A, tol=1e-6, dtype="FP32").ranks,
        }
        return {step: call for step, call in found.items() if (graph.name, step) not in LONG}

    sides = [Side(calls, "cuda:0"), Side(calls, devices), Side(calls, devices, replicas=0)]
    found = in_turns(sides, rounds, SETTLED, 1e-3, {})
    for side in sides:
        side.session.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["road2m"])
    parser.add_argument("--devices", default="cuda:0-1")
    parser.add_argument("--data", default="data", help="the folder of .mtx.gz files")
    parser.add_argument("--rounds", type=int, default=5)
    given, rows = parser.parse_args(), []
    for name in given.graphs:
        found = measured(make(name, given.data), given.devices, given.rounds)
        for step in found[0]:
            cells = [took[step] for took in found]
            one, folded, apart = map(float, cells)
            rows.append([name, step, *cells, f"{folded / one:.2f}", f"{apart / folded:.2f}"])
            print(*rows[-1], flush=True)
        gc.collect()
    rows += [[name, step, "not measured: a call takes seconds"] for name, step in sorted(LONG) if name in given.graphs]
    page("folding", "Loops and calls that are left to one GPU", __doc__, [Table(COLUMNS, rows, "Milliseconds")])


if __name__ == "__main__":
    main()
