"""Degree separation by threshold: python -m bench.experiments.degree_separation [--scales 16 17 18] [--devices cpu:8]

RMAT graphs (edge factor 16, both ways), divided into contiguous blocks (`edges`), by degree (`sorted`), and by
`degree_separated` with each threshold (Pan, Pearce, Owens, IPDPS 2018, section VI-B and figure 5). Counted, not timed,
as devices share the cores of one machine: KB that came from other devices in a pull of FP64 values as PageRank's (the
second one, without what is made once), in a breadth-first search with parents, in one that wants levels alone, and in
shortest paths with whole weights, all from a vertex of low degree; `rounds` of the search. `delegates`: share of the
rows; `nn`: share of the entries that have none; bytes an entry, without its value, of which an edge list has 16.

With --timed rmat24 --devices cuda:0-1 a graph made on the GPU, timed: medians of whole calls in ms, devices
synchronised, beside the MB that came from other GPUs in a call; `held`: the GB that the fullest GPU has of the matrix.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import algos
import gbgpu as gb
from algos._inputs import degrees
from bench.record import RESULTS, Table, interleaved, page, synchronized
from gbgpu.semiring import plus_second
from gbgpu.trace import counters

COLUMNS = ["partition", "delegates", "nn", "bytes an entry", "pull", "BFS", "levels", "rounds", "SSSP"]
THRESHOLDS = (16, 32, 64, 128, 256, 512)


def kilobytes(call: Callable[[], object]) -> float:
    """That came from other devices, but for what is made once."""
    with gb.trace() as records:
        call()
    return sum(record.bytes for record in records if record.step not in ("separate", "transpose")) / 1e3


def counted(scale: int, devices: str, partition: gb.partition.Partition) -> list[float]:
    """The numbers of a row."""
    gb.init(devices, partition)
    A = gb.io.rmat(scale, 16, seed=1, weights=(1, 255), dtype="INT64")
    source = int(np.flatnonzero(degrees(A).to_dense())[-1])
    x, w, sets = gb.Vector.from_dense(np.arange(A.nrows) / 8), gb.Vector(float, A.nrows), gb.block_sets(A)

    def pull() -> None:
        w(direction="pull") << plus_second(A @ x)

    pull()
    levels = algos.bfs_levels(A, source)
    found = [sum(sets.delegates) / A.nrows, sum(kinds[0] for kinds in sets.kinds) / A.nvals]
    found += [sets.held_bytes() / A.nvals, kilobytes(pull), kilobytes(lambda: algos.bfs(A, source))]
    found += [kilobytes(lambda: algos.bfs_levels(A, source)), levels.reduce("max").new().value + 1]
    return [*found, kilobytes(lambda: algos.sssp(A, source))]


def swept(scale: int, devices: str) -> dict[str, list[float]]:
    """Rows by partition."""
    part = gb.partition
    ways = {"edges": part.equal_edges(), "sorted": part.degree_sorted(), "auto": part.degree_separated()}
    ways |= {str(threshold): part.degree_separated(threshold) for threshold in THRESHOLDS}
    found = {}
    for name, partition in ways.items():
        found[name] = counted(scale, devices, partition)
        print(scale, name, *(f"{number:,.4g}" for number in found[name]), flush=True)
    return found


def measured(graph: Any, devices: str, partition: gb.partition.Partition) -> list[str]:
    """The cells of a row of what is timed."""
    gb.init(devices, partition)
    A = gb.Matrix.from_csr(graph.indptr, graph.indices, True, ncols=graph.n)
    calls = {
        "BFS": lambda: algos.bfs_levels(A, graph.sources[0]),
        "PageRank": lambda: algos.pagerank(A, tol=0, max_iterations=20, dtype="FP32").ranks,
        "components": lambda: algos.connected_components(A),
    }
    found = []
    for call in calls.values():
        found.append(f"{1e3 * interleaved([synchronized(call)], 5, 8)[0]:.2f}")
        before = counters.exchanged
        call()
        found.append(f"{(counters.exchanged - before) / 1e6:,.1f}")
    sets = gb.block_sets(A)
    apart = [f"{100 * sum(sets.delegates) / A.nrows:.1f}%"] if sum(sets.delegates) else [""]
    return [*apart, f"{max(A.memory().values()) / 1e9:.2f}", *found]


def timed(name: str, devices: str) -> None:
    from bench.device_graphs import make

    graph, part, rows = make(name), gb.partition, []
    ways = {"edges": part.equal_edges(), "auto": part.degree_separated()}
    ways |= {str(threshold): part.degree_separated(threshold) for threshold in (32, 128, 512)}
    heads = ["partition", "delegates", "held"]
    heads += [f"{what}, {unit}" for what in ("BFS", "PageRank x 20", "components") for unit in ("ms", "MB")]
    for way, partition in ways.items():
        rows.append([way, *measured(graph, devices, partition)])
        print(*rows[-1], flush=True)
    page("degree-separation-gpu", f"Degree separation, {name} on {devices}", __doc__, [Table(heads, rows, name)])


def cells(name: str, row: list[float]) -> list[str]:
    delegates, normal, held, *kb, rounds, paths = row
    apart = [f"{100 * delegates:.1f}%", f"{100 * normal:.1f}%"] if delegates else ["", ""]
    return [name, *apart, f"{held:.2f}", *(f"{count:,.0f}" for count in kb), str(int(rounds)), f"{paths:,.0f}"]


def picture(found: dict[int, dict[str, list[float]]], path: Path, devices: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, (title, place) in zip(figure.subplots(1, 3), {"pull": 3, "BFS": 4, "SSSP": 7}.items(), strict=True):
        for number, (scale, rows) in enumerate(found.items()):
            by = [rows[str(threshold)][place] / rows["edges"][place] for threshold in THRESHOLDS]
            axes.plot(THRESHOLDS, by, f"C{number}o-", label=f"RMAT-{scale}", ms=4)
            auto = rows["auto"][place] / rows["edges"][place]
            axes.axhline(auto, color=f"C{number}", ls=":", lw=1, label=f"RMAT-{scale}, automatic threshold")
        axes.set(xscale="log", xlabel="threshold (hubs have a higher degree)", title=title)
        axes.set_xticks(THRESHOLDS, [str(threshold) for threshold in THRESHOLDS])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    figure.axes[0].set_ylabel("bytes / bytes with equal_edges()")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"Degree separation on {devices}: bytes received from other devices, counted")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--devices", default="cpu:8", help="default: cpu:8")
    parser.add_argument("--scales", type=int, nargs="+", default=[16, 17, 18], help="of the graphs (default: 16 17 18)")
    parser.add_argument("--timed", help="a graph of bench.device_graphs, on GPUs")
    arguments = parser.parse_args()
    if arguments.timed:
        return timed(arguments.timed, arguments.devices)
    found = {scale: swept(scale, arguments.devices) for scale in arguments.scales}
    parts: list[str | Table] = ["![bytes by threshold](degree-separation.png)"]
    for scale, rows in found.items():
        parts.append(Table(COLUMNS, [cells(*row) for row in rows.items()], f"RMAT-{scale}, {arguments.devices}"))
    page("degree-separation", "Degree separation by threshold", __doc__, parts)
    picture(found, RESULTS / "degree-separation.png", arguments.devices)


if __name__ == "__main__":
    main()
