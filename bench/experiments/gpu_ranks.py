"""One process that drives all GPUs beside a rank for each:

    python -m bench.experiments.gpu_ranks [24] --devices cuda:0-1
    mpiexec -n 2 python -m bench.experiments.gpu_ranks [24] --devices auto

RMAT of this scale, edge factor 16, both directions; medians of whole calls in ms, devices synchronised. The sums of
what is found tell whether all agree: of levels and distances bit by bit, of ranks to six figures.
"""

from __future__ import annotations

import argparse

import algos
import gbgpu as gb
from bench.record import interleaved, synchronized


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scale", nargs="?", type=int, default=24)
    parser.add_argument("--devices", default="cuda:0-1")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    session = gb.init(given.devices)
    A = gb.io.rmat(given.scale, 16, seed=1, dtype="BOOL")
    W = gb.io.rmat(given.scale, 16, seed=1, weights=(1, 255), dtype="FP32")
    source = next(v for v in range(A.nrows) if A[v, :].new().nvals)
    calls = {
        "PageRank x 20": lambda: algos.pagerank(A, tol=0, max_iterations=20, dtype="FP32").ranks,
        "SSSP": lambda: algos.sssp(W, source),
        "BFS": lambda: algos.bfs_levels(A, source),
    }
    ranks = "one process"
    if session.ranks is not None:
        ranks = f"{session.ranks.size} ranks, {'by the host' if session.ranks._direct is None else 'NCCL'}"
    for name, call in calls.items():
        found = call().reduce(gb.monoid.plus["FP64"]).new().value
        took = interleaved([synchronized(call)], given.rounds, warm=6)[0] * 1e3
        if gb.rank() == 0:
            print(f"| rmat{given.scale}: {name} | {ranks} | {took:.2f} ms | {found:.6g} |", flush=True)


if __name__ == "__main__":
    main()
