"""Many sources at once: a matrix of frontiers, a row for each source, kept as one vector over copies of the graph side
by side. So the loops and the choices of a single source, push or pull, serve them all."""

from collections.abc import Iterator

import numpy as np

from gbgpu import Matrix, settings, ss


def batches(A: Matrix, sources: np.ndarray, entries: int) -> Iterator[tuple[Matrix, np.ndarray]]:
    """(copies of A, where each of the next sources lies in its own copy), as many at a time as there may be `entries`
    of all; the copies are the same each time, and in later calls."""
    n = A.nrows
    k = int(min(len(sources), max(entries // (A.nvals + n + 1), 1)))
    copies = A if k < 2 else settings.session().derived(A, _copied, k)
    for first in range(0, len(sources), max(k, 1)):
        some = sources[first : first + k]
        yield copies, some + n * np.arange(len(some))


def _copied(A: Matrix, k: int) -> Matrix:
    copies = beside(A, k)
    if settings.session().known_symmetric(A):
        copies.ss.declare_symmetric()
    return copies


def beside(A: Matrix, k: int) -> Matrix:
    """k copies of a graph (at least one)."""
    if k < 2:
        return A
    half = beside(A, k // 2)
    pair = _both(half, half)
    return _both(pair, A) if k % 2 else pair


def _both(A: Matrix, B: Matrix) -> Matrix:
    right, below = Matrix(A.dtype, A.nrows, B.nrows), Matrix(A.dtype, B.nrows, A.nrows)
    return ss.concat([[A, right], [below, B]], name="copies")
