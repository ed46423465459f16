"""Breadth-first search in the order of a queue.

A search finds the levels. Of the arcs, those from one level to the next are kept, each with its place among those of
its tail. A vertex has a key: within a level, the order of keys is the order in which the queue takes the vertices. The
key of a vertex is the least of (tail's key, arc's place), a min-plus product. Keys grow by the bits of a place in each
level. Before they exceed INT64, ranks within the level replace them.
"""

from typing import NamedTuple

import numpy as np

from algos.bfs import search
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid
from gbgpu.semiring import min_first, min_plus

LARGEST = 2.0**62  # of a key


class Queue(NamedTuple):
    """`nodes`: the vertices in the order in which the queue takes them. `tails`: the vertex that found each of them but
    the seeds. `starts`: where each level begins in `nodes`."""

    nodes: np.ndarray
    tails: np.ndarray
    starts: np.ndarray


def places(offsets: np.ndarray) -> np.ndarray:
    """The place (INT64) of each entry of a CSR array in its row."""
    return (np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))).astype(np.int64)


def search_in_order(
    A: Matrix, tails: np.ndarray, heads: np.ndarray, seeds: np.ndarray, depth: int | None = None
) -> Queue:
    """The search of A from the seeds, which are distinct, by no more than `depth` arcs. The arcs of A: tails ascending,
    arcs of one tail in the order in which the queue takes their heads."""
    n = A.nrows
    levels = search(A, Vector.from_coo(seeds, seeds, int, size=n, name="q"), depth).levels.to_dense(-1)
    onward = (levels[tails] >= 0) & (levels[heads] == levels[tails] + 1)
    tails, heads = tails[onward], heads[onward]
    counts = np.bincount(tails, minlength=n)
    offsets = np.append(0, np.cumsum(counts))
    R = Matrix.from_coo(tails, heads, places(offsets), int, nrows=n, ncols=n, dup_op=binary.min, name="R")
    nodes = np.flatnonzero(levels >= 0)
    nodes = nodes[np.lexsort((keys(R, seeds, counts)[nodes], levels[nodes]))]
    starts = np.searchsorted(levels[nodes], np.arange(levels.max(initial=-1) + 1))
    place = Vector.from_coo(nodes, np.arange(len(nodes)), int, size=n, name="place")
    first = min_first[int](place @ R).new().to_dense(0)  # of those that lead to a vertex, the first in the queue
    return Queue(nodes, nodes[first[nodes[len(seeds) :]]], starts)


def keys(R: Matrix, seeds: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The key of each vertex, 0 where the search does not come. `counts`: arcs of each vertex."""
    n = R.nrows
    key, span = Vector(int, n, name="key"), Vector.from_dense(counts, name="span")
    wide, least, most = (Scalar.from_value(0, name=name) for name in ("wide", "least", "most"))
    found = seeds
    while len(found):
        q = Vector.from_coo(found, np.arange(len(found)), int, size=n, name="q")
        wide << binary.second(q & span).reduce(monoid.max, allow_empty=False)
        with loop() as it:
            key(q.S) << q
            q << q.apply(binary.times, right=wide)
            q << min_plus[int](q @ R)
            least << q.reduce(monoid.min, allow_empty=False)
            most << q.reduce(monoid.max, allow_empty=False)
            q << q.apply(binary.minus, right=least)
            wide << binary.second(q & span).reduce(monoid.max, allow_empty=False)
            it.until(q.nvals == 0)
            it.until((most - least) * (wide * 1.0) >= LARGEST)
        found, ranks = q.to_coo()
        found = found[np.argsort(ranks)]
    return key.to_dense(0)
