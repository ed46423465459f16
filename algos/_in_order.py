"""Breadth-first search in the order of a queue.

The value of an arc is its place among those of its tail. A vertex takes the least of (tail's place in its level, arc's
place), a min-plus product; in the order of these the level is the next.
"""

from collections.abc import Iterator

import numpy as np

from gbgpu import Matrix, Vector, replace
from gbgpu.semiring import min_plus


def places(offsets: np.ndarray) -> np.ndarray:
    """The place (INT64) of each entry of a CSR array in its row."""
    return (np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))).astype(np.int64)


def search_in_order(R: Matrix, width: int, seeds: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The levels after the seeds, which are distinct: the vertices in the order in which the queue takes them, and the
    vertex that found each. R (INT64) holds places, all below `width`."""
    n, level = R.nrows, seeds
    seen, t = Vector(bool, n, name="seen"), Vector(int, n, name="t")
    while True:
        q = Vector.from_coo(level, width * np.arange(len(level)), int, size=n, name="q")
        seen(q.S) << True
        t(~seen.S, replace) << min_plus[int](q @ R)
        found, first = t.to_coo()
        if not len(found):
            return
        order = np.argsort(first)
        tails, level = level[first[order] // max(width, 1)], found[order]
        yield level, tails
