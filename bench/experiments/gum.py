"""GUM's experiments with stealing and folding (ICDE 2023, section VI), on a simulated DGX-1 of eight V100s.

    python -m bench.experiments.gum [--data DIR] [--times 64]

Searches run in rounds, on CPU devices with a block for each GPU; what their frontiers were is decided again by each
policy, and seconds are predicted: an edge takes 200 ps, a link carries 8 bytes of it, a device that takes part adds 20
us to a round. `--times`: as if every block's frontier were that many times larger (GUM's graphs have 0.1 to 5 G edges).
What devices send each other after a round is not in it. DIR: graphs in Matrix Market files beside the generated ones.
Files whose weights are all equal get whole ones from 1 to 255, without which shortest paths are breadth-first searches.
Writes bench/results/balance.md and the pictures beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import gbgpu as gb
from algos import bfs, connected_components, pagerank, sssp
from algos.balancing import BYTES, EDGE, MEETING, POLICIES, plot
from algos.gap import weighed
from bench.experiments.fixpoints import in_rounds
from bench.record import RESULTS, Table, page
from gbgpu import balance
from gbgpu.balance import Policy, Round, Tally, Topology, constant, replay, rounds, summary

HOST = "sim:dgx1-v100"
PARTITIONS: dict[str, Callable[[], Any]] = {
    "segments": gb.partition.equal_edges,
    "random": gb.partition.random,
    "metis": gb.partition.metis,
}
FILES = ("soc-Slashdot0902", "uk-2007-05_100000", "osm-andorra")
RUNS = {
    "BFS": lambda A, source: bfs(A, source),
    "SSSP": lambda A, source: sssp(A, source),
    "PageRank": lambda A, source: pagerank(A, max_iterations=20, tol=0.0),
    "components": lambda A, source: connected_components(A),
}


def graphs(data: Path | None) -> Iterator[tuple[str, gb.Matrix]]:
    """Name and matrix, each in a session of its own devices."""
    yield "rmat-17", gb.io.generate.rmat(17, 16, seed=1, weights=(1, 255), dtype="INT64")
    yield "luxembourg_osm", weighed(gb.io.mmread("data/luxembourg_osm.mtx.gz"))
    if data:
        for name in FILES:
            yield name, weighed(gb.io.mmread(data / f"{name}.mtx.gz"))


def recorded(arrays: tuple, algorithm: str, partition: str, devices: int, times: int) -> list[Round]:
    """The rounds of one search from the vertex of highest degree."""
    gb.init(f"cpu:{devices}", PARTITIONS[partition](), balance="off")
    indptr, indices, values = arrays
    A = gb.Matrix.from_csr(indptr, indices, values, ncols=len(indptr) - 1)
    source = int(np.diff(indptr).argmax())
    with in_rounds(), gb.trace() as records:
        RUNS[algorithm](A, source)
    return [Round(one.direction, tuple(larger(tally, times) for tally in one.tallies)) for one in rounds(records)]


def larger(tally: Tally, times: int) -> Tally:
    """A frontier of so many vertices of each degree."""
    into = None if tally.into is None else larger(tally.into, times)
    return Tally(tally.vertices * times, tally.edges * times, tally.histogram * times, into)


def first(host: Topology, m: int) -> Topology:
    """The m devices that a reduction keeps longest."""
    kept = np.sort(balance.reduction(host.links)[:m])
    pairs = np.ix_(kept, kept)
    return Topology(host.name, host.links[pairs], host.bandwidth[pairs], host.latency[pairs], host.into[kept],
                    host.out[kept])  # fmt: skip


def replayed(found: list[Round], host: Topology, policy: str) -> list[balance.Outcome]:
    return replay(found, host, constant(EDGE), POLICIES[policy], BYTES, MEETING)


def scaling(kept: dict, host: Topology) -> Table:
    """Figure 6: seconds by number of devices."""
    rows = []
    for (graph, algorithm), at in kept.items():
        seconds = [summary(replayed(found, first(host, m), "auto")).seconds for m, found in at.items()]
        rows.append([graph, algorithm, *(f"{1e3 * s:.2f}" for s in seconds), f"{seconds[0] / seconds[-1]:.1f}x"])
    note = "ms with stealing and folding. GUM, 8 GPUs over 1: up to 6.5x (BFS), 5.3x (SSSP), 7.5x (PageRank)."
    return Table(["graph", "algorithm", "1", "2", "4", "8", "1 over 8"], rows, "Strong scaling (figure 6)", note)


def critical(found: dict[str, list[Round]], host: Topology) -> Table:
    """Figure 8: the longest rounds, left alone and with stealing."""
    rows = []
    for graph, recorded in found.items():
        outcomes = sorted(replayed(recorded, host, "steal"), key=lambda one: -one.decision.plain)[:2]
        for one in outcomes:
            alone, stolen = one.home.max(), one.busy.max()
            wait = [f"{1 - part.mean() / part.max():.0%}" for part in (one.home, one.busy)]
            rows.append([graph, str(one.decision.round), f"{1e3 * alone:.2f}", f"{1e3 * stolen:.2f}", *wait])
    note = "SSSP, ms of computing; stalled: of all devices' time. GUM (sinaweibo): 43 -> 32 ms, stalled 72% -> 4%."
    columns = ["graph", "round", "alone", "stealing", "stalled alone", "stalled"]
    return Table(columns, rows, "Critical rounds (figure 8)", note)


def steps(kept: dict, host: Topology) -> Table:
    """Figures 9 and 10: what each action adds."""
    rows = []
    for (graph, algorithm), at in kept.items():
        told = {policy: summary(replayed(at[8], host, policy)) for policy in POLICIES}
        alone = told["off"].seconds
        sizes = [len(one.decision.devices) for one in replayed(at[8], host, "auto")]
        few = f"{np.mean(np.array(sizes) < 8):.0%}"
        gains = [f"{alone / told[policy].seconds:.2f}x" for policy in ("steal", "fold", "auto")]
        rows.append([graph, algorithm, str(len(sizes)), f"{1e3 * alone:.2f}", *gains, few])
    note = "Gain over rounds left alone. GUM: stealing about 3.2x (BFS, SSSP of soc-orkut), folding 3.2x on road-USA."
    columns = ["graph", "algorithm", "rounds", "alone, ms", "stealing", "folding", "both", "rounds of fewer than 8"]
    return Table(columns, rows, "Incremental gains (figures 9, 10)", note)


def overhead(kept: dict, host: Topology) -> Table:
    """Table IV: what deciding takes on this machine, against what it brings."""
    rows = []
    for (graph, algorithm), at in kept.items():
        if algorithm != "SSSP":
            continue
        replayed(at[8], host, "auto")  # loaded
        start = process_time()
        outcomes = replayed(at[8], host, "auto")
        spent, told = process_time() - start, summary(outcomes)
        won = told.alone - told.seconds
        each = f"{1e6 * spent / len(outcomes):.0f}"
        rows.append([graph, str(len(outcomes)), each, f"{1e3 * spent:.2f}", f"{1e3 * won:.2f}", f"{won / spent:.1f}x"])
    charged, took = 1e6 * Policy().overhead, [float(row[2]) for row in rows]
    worth = [row[0] for row in rows if float(row[-1][:-1]) > 1]
    note = f"""Processor time of `replay`, all of it, in Python. GUM: at most 13 ms, 25.6x on average.

**Deciding takes longer than it is charged.** The policy charges {charged:.0f} us for a decision (`overhead`), and so
do the other tables; it takes {min(took):.0f} to {max(took):.0f} us here. By the last column stealing and folding gain
more than deciding takes on {len(worth)} of {len(rows)} graphs{": " * bool(worth)}{", ".join(worth)}."""
    columns = ["graph", "rounds", "us a round", "deciding, ms", "won, ms", "won over spent"]
    return Table(columns, rows, "Overhead of deciding, SSSP (table IV)", note)


def partitioners(arrays: dict, host: Topology, times: int) -> Table:
    """Experiment 6: partitions with and without."""
    rows = []
    for graph, given in arrays.items():
        for partition in PARTITIONS:
            found = recorded(given, "SSSP", partition, 8, times)
            off, auto = (summary(replayed(found, host, policy)) for policy in ("off", "auto"))
            rows.append([graph, partition, f"{1e3 * off.seconds:.2f}", f"{1e3 * auto.seconds:.2f}",
                         f"{off.seconds / auto.seconds:.2f}x", f"{off.stalled:.0%} -> {auto.stalled:.0%}"])  # fmt: skip
    note = "SSSP, ms. GUM: stealing brings 1.25 to 1.63x on seg, 1.24 to 2.29x on random, 1.19 to 1.60x on metis."
    columns = ["graph", "partition", "alone", "both", "gain", "stalled"]
    return Table(columns, rows, "Partitioners (experiment 6)", note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="graphs beside those that need no files")
    parser.add_argument("--times", type=int, default=64, help="how much larger frontiers are taken to be (default: 64)")
    given = parser.parse_args()
    host, kept = balance.topology(HOST), {}
    gb.init("cpu:1")
    arrays = {name: A.to_csr() for name, A in graphs(given.data)}
    for name, csr in arrays.items():
        for algorithm in RUNS:
            kept[name, algorithm] = {m: recorded(csr, algorithm, "segments", m, given.times) for m in (1, 2, 4, 8)}
            print(name, algorithm, len(kept[name, algorithm][8]), "rounds", file=sys.stderr)
    searches = {name: kept[name, "SSSP"][8] for name in arrays}
    for name in arrays:
        picture = RESULTS / f"balance-{name}.png"
        plot(
            replayed(searches[name], host, "auto"),
            str(picture),
            f"SSSP on {name}, on {host.name}, stealing and folding",
        )
    parts = [scaling(kept, host), critical(searches, host), steps(kept, host), overhead(kept, host)]
    pictures = "\n".join(f"![SSSP on {name}](balance-{name}.png)" for name in arrays)
    parts.append(partitioners(arrays, host, given.times))
    page("balance", "Stealing and folding, predicted", __doc__, [*parts, pictures])


if __name__ == "__main__":
    main()
