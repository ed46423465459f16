"""Frontiers dealt out among GPUs:

    python -m bench.experiments.frontiers [twins24 ...] [--devices cuda:0-1] [--rounds 9] [--balance off auto hubs]

Each graph, made on the GPU, is divided into segments of equal rows, and searches begin inside the first one (twins: two
social networks with few ties; crawl: most neighbours are near; bench/device_graphs.py). `push` is one product with a
frontier of every second vertex of that segment. `balance="off"` leaves frontiers to their owners, "auto" deals them out
(docs/balance.md), "hubs" does so with room for less than a block, so that others cache the rows of hubs, "far" with
none, so that thieves read rows where they lie, in the memory of the other GPU; `cuda:0` is one alone. Medians of whole
calls in ms, in turns, devices synchronised, copies made and loops captured before; results of all rows are compared.
most: of all edges that pushes of one call looked at, the part of the fuller device; dealt: how many of its pushes were,
and whether captured rounds of SSSP, of BFS, do so.
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
from gbgpu.semiring import min_plus

ROOM = 0.45  # of a weighted matrix, which is divided among two
COLUMNS = "graph devices balance push most SSSP most dealt BFS dealt".split() + ["copies, MB"]


def pushes(call) -> tuple[str, str]:
    """The part of the edges of all pushes that the fuller device looked at, and how many pushes were dealt out."""
    with gb.trace(rounds=True) as records:
        call()
    there = any("frontiers split among GPUs" in record.text for record in records)
    found = [record for record in records if record.step == "push"]
    edges: dict[str, int] = {}
    for record in found:
        edges[record.device] = edges.get(record.device, 0) + record.edges
    share = max(edges.values(), default=0) / max(sum(edges.values()), 1)
    return f"{100 * share:.0f}%", f"{sum(record.decision is not None for record in found)}{', rounds too' * there}"


def rows(graph, several: list[tuple[str, str]], rounds: int, warm: int, searches: bool) -> list[list[str]]:
    """The rows of a graph, by devices and balance."""
    half = graph.n // 4  # of the segment: the first vertex from there on that has neighbours
    source = half + int((graph.indptr[half + 1 :] > graph.indptr[half]).argmax())
    ids = np.arange(0, graph.n // 2, 2)

    def side(devices: str, balance: str) -> Side:
        def calls() -> Calls:
            A, W = weighted(graph)
            q = gb.Vector.from_coo(ids, np.ones(ids.size, np.float32), size=graph.n)
            found = {"push": lambda: min_plus(q @ W).new(direction="push")}
            if balance != "far" and searches:
                found["SSSP"], found["BFS"] = lambda: algos.sssp(W, source), lambda: algos.bfs_levels(A, source)
            return found

        room = {"hubs": int(ROOM * 8 * graph.nnz), "far": 0}.get(balance, "auto")
        kept = "off" if balance == "off" else "auto"
        return Side(calls, devices, gb.partition.equal_rows(), balance=kept, replicas=room)

    sides, found = [side(*how) for how in several], []
    for how, one, took in zip(several, sides, in_turns(sides, rounds, warm, 1e-6, {}), strict=True):
        with one as session:
            looked = {name: pushes(call) for name, call in one.calls.items()}
        (most, _), sssp, (_, dealt) = (looked.get(name, ("", "")) for name in ("push", "SSSP", "BFS"))
        cells = [took["push"], most, took.get("SSSP", ""), *sssp, took.get("BFS", ""), dealt]
        copies = f"{session.replicas.bytes() / 1e6:.0f}" if len(session.devices) > 1 else ""
        found.append([graph.name, *how, *cells, copies])
        session.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["twins24", "crawl24", "rmat24"])
    parser.add_argument("--devices", default="cuda:0-1")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm", type=int, default=SETTLED, help="calls, in which copies are made and loops captured")
    parser.add_argument("--pushes", action="store_true", help="no searches, which need four times the memory")
    parser.add_argument("--balance", nargs="*", default=["off", "auto", "hubs"])
    given = parser.parse_args()
    lines = []
    for name in given.graphs:
        several = [("cuda:0", "off"), *((given.devices, balance) for balance in given.balance)]
        for cells in rows(make(name), several, given.rounds, given.warm, not given.pushes):
            lines.append(cells)
            print(*cells, sep=" | ", flush=True)
        gc.collect()
    page("frontiers", "Frontiers dealt out among GPUs", __doc__, [Table(COLUMNS, lines)])


if __name__ == "__main__":
    main()
