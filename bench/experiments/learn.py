"""What an edge costs on a GPU, learnt (GUM, section III-B): python -m bench.experiments.learn FILE [--direction pull]

Graphs are made on the GPU, and frontiers of them: the rounds of a search, and vertices drawn at random. A push of each
by `min_plus`, or a pull of as many rows (a mask lets these through), is timed, median of whole calls, devices
synchronised. A sample is seconds an edge beyond the time of one vertex alone, which is the statement's, not its edges'
(thresholds and p have it), of frontiers that fill the GPU: of smaller ones an edge costs more, and their features are
those of larger ones. The model is trained on some graphs and checked on others, and written to FILE, for `gbgpu replay
--model` and gbgpu.balance.Polynomial.load.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console

import algos
import gbgpu as gb
from algos.training import Samples, errors
from bench.device_graphs import Graph, make
from bench.record import interleaved, synchronized
from gbgpu.balance import Tally, features, train
from gbgpu.semiring import min_plus

KNOWN = ("rmat22", "kron21", "urand23", "crawl24", "twins24", "road24m")
UNSEEN = ("rmat24", "urand24", "trail24")
SHARES = 2.0 ** -np.arange(1, 7)  # of the vertices, drawn at random
LEAST = 1 << 22  # edges that fill a GPU


def frontiers(A: gb.Matrix, graph: Graph) -> Iterator[np.ndarray]:
    """Ids of vertices, ascending."""
    levels = algos.bfs_levels(A, graph.sources[1]).to_dense(-1)
    depth = int(levels.max())
    for level in sorted({*range(min(depth, 12) + 1), depth // 2, depth}):
        yield np.flatnonzero(levels == level)
    random = np.random.default_rng(0)
    for share in SHARES:
        yield np.flatnonzero(random.random(graph.n) < share)


def samples(names: Sequence[str], direction: str, rounds: int) -> Samples:
    tallies, seconds = zip(*(pair for name in names for pair in timed(make(name), direction, rounds)), strict=True)
    return Samples(features(tallies), np.array(seconds))


def timed(graph: Graph, direction: str, rounds: int) -> Iterator[tuple[Tally, float]]:
    """Frontiers of a graph, and seconds an edge."""
    A, W = (gb.Matrix.from_csr(graph.indptr, graph.indices, vals, ncols=graph.n) for vals in (True, graph.weights))
    degrees = np.diff(graph.indptr.get())
    known = gb.Vector.from_dense(np.zeros(graph.n, np.float32))
    into = gb.Vector("FP32", graph.n)

    def taken(ids: np.ndarray) -> float:
        near = gb.Vector.from_coo(ids, np.zeros(len(ids), np.float32), size=graph.n)

        def call() -> None:
            if direction == "push":
                min_plus(near @ W).new(direction="push")
            else:
                into(near.S, gb.replace) << min_plus(W @ known)

        return interleaved([synchronized(call)], rounds)[0]

    alone = taken(np.flatnonzero(degrees == degrees[degrees > 0].min())[:1])
    for ids in frontiers(A, graph):
        tally = Tally.of(degrees[ids])
        if tally.edges >= LEAST and (took := taken(ids)) > alone:
            yield tally, (took - alone) / tally.edges


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--direction", choices=("push", "pull"), default="push")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    gb.init(given.device)
    known, unseen = (samples(names, given.direction, given.rounds) for names in (KNOWN, UNSEEN))
    model = train(*known)
    model.save(given.file)
    Console(width=100).print(errors(model, known, unseen, given.direction))
    least, most = 1e12 * known.seconds.min(), 1e12 * known.seconds.max()
    print(f"{gb.device_info()[0]['model']}; {least:.1f} to {most:.1f} ps an edge")


if __name__ == "__main__":
    main()
