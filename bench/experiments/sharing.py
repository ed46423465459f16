"""Pulls shared out among GPUs: python -m bench.experiments.sharing [rmat24 ...] [--devices cuda:0-1] [--rounds 9]

Each graph, made on the GPU, is divided into equal blocks, and so that the first or the last device has nine tenths of
the edges; `balance="off"` leaves blocks to their owners, "auto" cuts them anew, or copies rows (docs/balance.md).
Medians of whole calls in ms, both in turns, devices synchronised, blocks cut and loops captured before; results of all
rows are compared.
"""

from __future__ import annotations

import argparse
import gc
from typing import Any

import numpy as np

import algos
import gbgpu as gb
from bench.device_graphs import make
from bench.experiments.turns import Calls, Side, in_turns, weighted
from bench.record import Table, page
from gbgpu.semiring import plus_times

WARM = 40  # calls before, in which rows move and loops are captured
COLUMNS = ("graph", "shares", "balance", "A @ x, FP32", "PageRank x 20", "SSSP", "BFS", "last block, %", "copies, MB")


def rows(graph, devices: str, shares: tuple[int, ...] | None, rounds: int, known: dict) -> list[list[str]]:
    """The rows of one division; `known` has what the first one computed."""
    matrices = []

    def calls() -> Calls:
        A, W = weighted(graph)
        x = gb.Vector.from_dense(np.random.default_rng(0).random(graph.n, np.float32))
        matrices.append(A)
        return {
            "product": lambda: plus_times(W @ x).new(),
            "ranks": lambda: algos.pagerank(A, tol=0, max_iterations=20, dtype="FP32").ranks,
            "distances": lambda: algos.sssp(W, graph.sources[0]),
            "levels": lambda: algos.bfs_levels(A, graph.sources[0]),
        }

    divided, ways = shares and gb.partition.shares(*shares), ("off", "auto")
    sides, found = [Side(calls, devices, divided, balance=way) for way in ways], []
    for way, side, A, took in zip(ways, sides, matrices, in_turns(sides, rounds, WARM, 1e-3, known), strict=True):
        lengths = A._store.lengths
        last, copies = f"{100 * lengths[-1] / sum(lengths):.0f}", f"{side.session.replicas.bytes() / 1e6:.0f}"
        found.append([graph.name, ":".join(map(str, shares or ["equal"])), way, *took.values(), last, copies])
        side.session.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["rmat24"])
    parser.add_argument("--devices", default="cuda:0-1")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    p, lines = len(gb.init(given.devices).devices), []
    for name in given.graphs:
        graph = make(name)
        known: dict[str, Any] = {}
        for shares in (None, (1,) * (p - 1) + (9 * (p - 1),), (9 * (p - 1),) + (1,) * (p - 1)):
            for cells in rows(graph, given.devices, shares, given.rounds, known):
                lines.append(cells)
                print(*cells, sep=" | ", flush=True)
            gc.collect()
    page("sharing", f"Pulls shared out among {p} GPUs", __doc__, [Table(COLUMNS, lines)])


if __name__ == "__main__":
    main()
