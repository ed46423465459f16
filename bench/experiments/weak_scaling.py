"""Weak scaling of row blocks: python -m bench.experiments.weak_scaling [--scale 14] [--most 8] (needs gbgpu[mpi])

Each rank has one CPU device and as many rows, of an RMAT graph that grows with the ranks (edge factor 16, both ways).
Counted, not timed, as ranks share the cores of one machine: the rounds of a breadth-first search from the vertex of
highest degree and the bytes that came to each device in it; the bytes that came in a later round of PageRank (FP64).

Predicted from these: devices like an H200 with 2**24 rows each, eight a machine. Work takes what the planner says of
that GPU (an entry pulled, a row passed over); bytes come at 375 GB/s within a machine (measured) and 50 GB/s from
others, a round of exchange begins after 9 microseconds within one (measured) and 20 between them, and 1 more for each
device that sends: the figures between machines are assumptions. Bytes a row are those counted, carried on by a power of
the number of other devices, and at most all values that others have. Exchange does not overlap with work. What the
curve says is when row blocks alone stop to scale, not to the millisecond.

With --gpus 2 a rank has a GPU, and --scale is of one GPU's graph: medians of whole calls, devices synchronised. The
last row is the largest graph on one GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import algos
import gbgpu as gb
from algos._inputs import degrees
from bench.experiments.partitions import moved
from bench.record import RESULTS, Table, interleaved, page, synchronized
from gbgpu.distribute.world import wanted
from gbgpu.kernels.gpu import GpuKernels

ROUNDS = 20  # of PageRank that is timed
FACTOR, VALUE, PASSES = 16, 8, 6  # edges a vertex, bytes a value, passes over all rows in a round of PageRank
OWN, HOUSE = 1 << 24, 8  # rows a device, devices a machine, of what is predicted
WITHIN, BETWEEN = (375e9, 9e-6), (50e9, 20e-6)  # bytes a second, seconds until a round of exchange begins
MESSAGE = 1e-6  # seconds for each device that sends
DEVICES = 2 ** np.arange(11)
SEEN = {2: "search 42%, round 79%"}  # weak-scaling-gpu.md: 2.8 / 6.65 ms, 3.05 / 3.85 ms


def counted(scale: int) -> dict:
    """What this rank's device received, and what all know."""
    gb.init("cpu:1")
    A = gb.io.rmat(scale, FACTOR, seed=1)
    source = int(degrees(A).to_dense().argmax())
    with gb.trace() as records:
        levels = algos.bfs_levels(A, source)
    received = {"search": sum(record.bytes for record in records), "round": moved(A)}
    ranks = gb.settings.session().ranks
    each = [received] if ranks is None else ranks.gathered(received, "what came")
    known = {"rows": A.nrows, "entries": A.nvals, "rounds": int(levels.reduce("max").new().value) + 1}
    return known | {key: [one[key] for one in each] for key in received}


def timed(scale: int) -> dict:
    """Milliseconds on the GPU of each rank; alone it has the first one."""
    gb.init("auto" if wanted() else "cuda:0")
    A = gb.io.rmat(scale, FACTOR, seed=1, dtype="BOOL")
    source = int(degrees(A).to_dense().argmax())
    calls = {
        "search": lambda: algos.bfs_levels(A, source),
        "pagerank": lambda: algos.pagerank(A, tol=0, max_iterations=ROUNDS, dtype="FP32").ranks,
    }
    took = {name: 1e3 * interleaved([synchronized(call)], 7, 8)[0] for name, call in calls.items()}
    reached = calls["search"]().nvals
    return {"rows": A.nrows, "entries": A.nvals, "reached": reached, **took}


def run(count: int, scale: int, how: str = "--count") -> dict:
    """The same of so many ranks."""
    command = [sys.executable, "-m", __spec__.name, how, str(scale)]
    if count > 1:
        beside = Path(sys.executable).with_name("mpiexec")
        command = [str(beside) if beside.exists() else "mpiexec", "-n", str(count), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800)
    return {"ranks": count, **json.loads(done.stdout.splitlines()[-1])}


def carried_on(found: list[dict], key: str) -> np.ndarray:
    """Bytes that come to a device for each of its rows, by DEVICES: the largest of the ranks, fitted by a power."""
    several = [one for one in found if one["ranks"] > 1]
    others = np.array([one["ranks"] - 1 for one in several])
    bytes_a_row = np.array([max(one[key]) * one["ranks"] / one["rows"] for one in several])
    power, first = np.polyfit(np.log(others), np.log(np.maximum(bytes_a_row, 1e-9)), 1)
    more = np.maximum(DEVICES - 1, 1e-9)
    return np.where(DEVICES > 1, np.minimum(np.exp(first) * more**power, more * VALUE), 0.0)


def exchange(bytes_a_row: np.ndarray, rounds: float) -> np.ndarray:
    """Seconds of all exchange, by DEVICES."""
    far = np.maximum(DEVICES - HOUSE, 0) / np.maximum(DEVICES - 1, 1)  # share of it from other machines
    moved = bytes_a_row * OWN * ((1 - far) / WITHIN[0] + far / BETWEEN[0])
    begins = np.where(DEVICES > HOUSE, BETWEEN[1], np.where(DEVICES > 1, WITHIN[1], 0.0))
    return moved + rounds * (begins + MESSAGE * (DEVICES - 1))


def predicted(found: list[dict]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(seconds, share of them that is work) by DEVICES, of a search and of a round of PageRank."""
    costs, entries = GpuKernels.costs, OWN * found[-1]["entries"] / found[-1]["rows"]
    work = {
        "search": OWN * costs.row * found[-1]["rounds"] + entries * costs.push_first / 4,  # most are not looked at
        "round": OWN * costs.row * PASSES + entries * costs.pull_edge,
    }
    seconds = {
        key: work[key] + exchange(carried_on(found, key), found[-1]["rounds"] if key == "search" else 1) for key in work
    }
    return {key: (seconds[key], work[key] / seconds[key]) for key in work}


def picture(found: list[dict], told: dict, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = {"search": "breadth-first search", "round": "round of PageRank"}
    for number, (key, name) in enumerate(names.items()):
        several = [one for one in found if one["ranks"] > 1]
        counts = [max(one[key]) * one["ranks"] / one["rows"] for one in several]
        left.plot(DEVICES[1:], carried_on(found, key)[1:], f"C{number}--", lw=1, label=f"{name}, extrapolated")
        left.plot([one["ranks"] for one in several], counts, f"C{number}o", label=f"{name}, counted")
        right.plot(DEVICES, told[key][1], f"C{number}o-", label=name)
    left.plot(DEVICES[1:], VALUE * (DEVICES[1:] - 1), "k:", lw=1, label="bound: all values of other devices")
    left.set(title="Communication", ylabel="bytes received for each row of a device", yscale="log")
    right.set(title="Parallel efficiency, predicted", ylabel="work / (work + exchange)", ylim=(0, 1.05))
    for axes in (left, right):
        axes.set(xscale="log", xlabel="number of devices")
        axes.set_xticks(DEVICES[::2], [str(count) for count in DEVICES[::2]])
        axes.minorticks_off()
        axes.legend(fontsize=8)
    figure.suptitle("Weak scaling of row blocks: bytes counted on CPU devices, times predicted for GPUs like an H200")
    figure.savefig(path, dpi=150)


def measured(most: int, scale: int) -> None:
    """One GPU, and more; the largest graph on one too, as caches and degrees are other ones there."""
    heads, rows = ["GPUs", "rows", "entries", "search, ms", "G entries/s", "round of PageRank, ms", "G entries/s"], []
    steps = range(most.bit_length())
    for gpus, step in [*((1 << step, step) for step in steps), (1, steps[-1])]:
        one = run(gpus, scale + step, "--timed")
        cells = [str(one["ranks"]), f"{one['rows']:,}", f"{one['entries']:,}"]
        for seconds in (one["search"], one["pagerank"] / ROUNDS):
            cells += [f"{seconds:.3g}", f"{one['entries'] / seconds / 1e6:.0f}"]
        rows.append(cells)
        print(*cells, flush=True)
    page("weak-scaling-gpu", "Weak scaling over ranks with a GPU each", __doc__, [Table(heads, rows, "Measured")])


def report(found: list[dict], told: dict) -> list[str | Table]:
    heads = ["ranks", "rows", "entries", "rounds of the search", "KB a device, search", "KB a device, round"]
    rows = []
    for one in found:
        kilobytes = [f"{min(one[key]) / 1e3:,.0f} to {max(one[key]) / 1e3:,.0f}" for key in told]
        rows.append([str(one["ranks"]), f"{one['rows']:,}", f"{one['entries']:,}", str(one["rounds"]), *kilobytes])
    counts = Table(heads, rows, "Counted")
    rows = []
    for i, count in enumerate(DEVICES):
        cells = [(f"{1e3 * seconds[i]:.3g}", f"{100 * share[i]:.0f}%") for seconds, share in told.values()]
        rows.append([str(count), f"2^{24 + i}", *sum(cells, ()), SEEN.get(int(count), "")])
    heads = ["devices", "rows", "search, ms", "work", "round of PageRank, ms", "work", "measured, H200"]
    note = """**The prediction is too good.** "measured": one device's milliseconds over those of so many with as many
times the rows ([weak-scaling-gpu.md](weak-scaling-gpu.md), commit b53ecb7). "work" is what it would be if exchange
alone took time."""
    return ["![bytes and efficiency](weak-scaling.png)", counts, Table(heads, rows, "Predicted", note)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=int, default=14, help="of one rank's graph (default: 14)")
    parser.add_argument("--most", type=int, default=8, help="ranks (default: 8)")
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)  # what a rank is started with
    parser.add_argument("--gpus", type=int, help="ranks with a GPU each, at most: timed instead of counted")
    parser.add_argument("--timed", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.gpus:
        return measured(given.gpus, given.scale)
    if given.count or given.timed:
        found = counted(given.count) if given.count else timed(given.timed)
        if gb.rank() == 0:
            print(json.dumps(found))
        return
    if given.most < 4:
        parser.error("--most: expected 4 ranks or more, as what 2 and 4 count is carried on")
    runs = []
    for step in range(given.most.bit_length()):
        runs.append(run(1 << step, given.scale + step))
        print(runs[-1], flush=True)
    told = predicted(runs)
    page("weak-scaling", "Weak scaling of row blocks", __doc__, report(runs, told))
    picture(runs, told, RESULTS / "weak-scaling.png")


if __name__ == "__main__":
    main()
