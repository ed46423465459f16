"""Pulls shared out among GPUs: python -m bench.experiments.sharing [rmat24 ...] [--devices cuda:0-1] [--rounds 9]

Each graph, made on the GPU, is divided into equal blocks, and so that the first or the last device has nine tenths of
the edges; `balance="off"` leaves blocks to their owners, "auto" cuts them anew, or copies rows (docs/balance.md).
Medians of whole calls in ms, devices synchronised, blocks cut and loops captured before; results of all rows are
compared.
"""

from __future__ import annotations

import argparse
import gc
from typing import Any

import numpy as np

import algos
import gbgpu as gb
from bench.device_graphs import make
from bench.record import RESULTS, interleaved, machine, synchronized
from gbgpu.semiring import plus_times

WARM = 40  # calls before, in which rows move and loops are captured
COLUMNS = ("graph", "shares", "balance", "A @ x, FP32", "PageRank x 20", "SSSP", "BFS", "last block, %", "copies, MB")


def measured(graph, devices: str, shares: tuple[int, ...] | None, balance: str, rounds: int, known: dict) -> list[str]:
    """The cells of one division; `known` has what the first one computed."""
    session = gb.init(devices, shares and gb.partition.shares(*shares), balance=balance)
    A, W = (gb.Matrix.from_csr(graph.indptr, graph.indices, vals, ncols=graph.n) for vals in (True, graph.weights))
    x = gb.Vector.from_dense(np.random.default_rng(0).random(graph.n, np.float32))
    source, cells = graph.sources[0], []
    calls = {
        "product": lambda: plus_times(W @ x).new(),
        "ranks": lambda: algos.pagerank(A, tol=0, max_iterations=20, dtype="FP32").ranks,
        "distances": lambda: algos.sssp(W, source),
        "levels": lambda: algos.bfs_levels(A, source),
    }
    for name, call in calls.items():
        cells.append(f"{1e3 * interleaved([synchronized(call)], rounds, WARM)[0]:.2f}")
        found = call().to_coo()[1]
        np.testing.assert_allclose(found, known.setdefault(name, found), rtol=1e-3)
    lengths = A._store.lengths
    return [*cells, f"{100 * lengths[-1] / sum(lengths):.0f}", f"{session.replicas.bytes() / 1e6:.0f}"]


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
            for balance in ("off", "auto"):
                told = "equal" if shares is None else ":".join(map(str, shares))
                cells = [name, told, balance, *measured(graph, given.devices, shares, balance, given.rounds, known)]
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
                gc.collect()
    about = machine()
    head = [f"# Pulls shared out among {p} GPUs", "", __doc__.split("\n\n", 1)[1].strip(), ""]
    head += [f"{', '.join(about['devices'])}; {about['when']}, commit {about['commit']}", ""]
    head += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    (RESULTS / "sharing.md").write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
