"""Closeness and harmonic centrality: how near a vertex is to those that reach it.

64 searches go at once, a matrix of frontiers with a column of bits for each source: a word of `front` says which of
them stand at a vertex, `missing` which have not come by yet. One product by `bor_first` takes them all a step on, at
the vertices that miss any; those that come now have their distance, and are counted by the bits that are set.

Source: Freeman, "Centrality in Social Networks", 1978, with the factor of Wasserman, Faust, "Social Network Analysis",
1994, for graphs of several components; Marchiori, Latora, "Harmony in the Small-World", 2000; searches in bits: Then et
al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014; sampled: Eppstein, Wang, "Fast
Approximation of Centrality", 2001.
"""

from typing import Any

import numpy as np

from algos._inputs import others, square, vertices
from algos._iterations import flat
from algos.runs import SAMPLES, ranking
from algos.verify import check, dense, levels_from
from gbgpu import Matrix, Scalar, Vector, binary, loop, replace, select, unary
from gbgpu.semiring import bor_first

BITS = 64
MANY = 16  # vertices are many from a sixteenth of all


def closeness(A: Matrix, sources: Any = None, wf_improved: bool = True, *, seed: int = 0) -> Vector:
    """Closeness centrality: the number of vertices that reach a vertex over the sum of their distances.

    Distances count arcs that lead to the vertex; `closeness(A.T.new())` takes those that lead away from it.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values and loops are ignored.
    sources : int or array of int, optional
        Only distances from these vertices: a number of vertices to draw, or their list. A vertex is no source of its
        own.
    wf_improved : bool
        Whether to multiply by the share of all other vertices that reach it, for graphs of several components.
    seed : int
        Draws the sources, if `sources` is a number.

    Returns
    -------
    Vector
        Centralities (FP64, size n, all entries): 0 where no source reaches, NaN where there is no source but the
        vertex.

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `sources` is neither a whole number nor a list of them.
    DimensionMismatch
        If `A` is not square.
    IndexOutOfBound
        If a source is not a vertex of `A`.
    InvalidValue
        If there are more sources than vertices, or one is listed twice.

    References
    ----------
    Freeman, "Centrality in Social Networks", 1978. Wasserman, Faust, "Social Network Analysis", 1994. Sampled:
    Eppstein, Wang, "Fast Approximation of Centrality", 2001. Searches: Then et al., "The More the Merrier", VLDB 2014.
    """
    n = square(A)
    chosen = vertices(sources, n, seed)
    reach, total = (v.to_dense() for v in sums(A, chosen, lambda length: length))
    return Vector.from_dense(_closeness(reach, total, others(n, chosen), wf_improved), name="closeness")


def harmonic(A: Matrix, sources: Any = None, *, seed: int = 0) -> Vector:
    """Harmonic centrality: the sum of 1 / distance over the other vertices that reach a vertex.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values and loops are ignored.
    sources : int or array of int, optional
        Only distances from these vertices, scaled to all: a number of vertices to draw, or their list.
    seed : int
        Draws the sources, if `sources` is a number.

    Returns
    -------
    Vector
        Centralities (FP64, size n, all entries).

    Raises
    ------
    TypeError, DimensionMismatch, IndexOutOfBound, InvalidValue
        As `closeness`.

    References
    ----------
    Marchiori, Latora, "Harmony in the Small-World", 2000.
    """
    n = square(A)
    chosen = vertices(sources, n, seed)
    _, total = sums(A, chosen, lambda length: 1 / length)
    return Vector.from_dense(total.to_dense() * (n - 1) / others(n, chosen), name="harmonic")


def sums(A: Matrix, sources: np.ndarray, value: Any) -> tuple[Vector, Vector]:
    """How many of the sources reach each vertex, itself not counted, and the sum of value(distance) (FP64)."""
    n = A.nrows
    reach, total, came = (flat(n, 0, name) for name in ("reach", "total", "came"))
    front, missing, t = (Vector("UINT64", n, name=name) for name in ("front", "missing", "t"))
    worth = Scalar(float, name="worth")
    for first in range(0, len(sources), BITS):
        some = sources[first : first + BITS]
        bits = np.uint64(1) << np.arange(len(some), dtype=np.uint64)
        front << Vector.from_coo(some, bits, size=n)
        missing[:] = np.bitwise_or.reduce(bits)
        missing(binary.bxor) << front
        with loop() as it:
            with it.when(front.nvals > n // MANY):
                t(missing.V, replace) << bor_first["UINT64"](front @ A)
            with it.when(front.nvals <= n // MANY):
                t << bor_first["UINT64"](front @ A)  # few: a look at all that is missing would take longer
            front << binary.band(t & missing)
            front << select.valuene(front, 0)
            missing(binary.bxor) << front
            came << popcount(front)
            reach(binary.plus) << came
            worth << value(it.index + 1)
            total(binary.plus) << came.apply(binary.times, right=worth)
            it.until(front.nvals == 0)
    return reach, total


def _closeness(reach: np.ndarray, total: np.ndarray, count: Any, wf_improved: bool) -> np.ndarray:
    near = np.divide(reach, total, out=np.zeros(len(reach)), where=total > 0)
    return near * (reach if wf_improved else count) / count  # NaN where nothing is known


def check_closeness(A: Matrix, found: Vector, sources: Any = None, *, seed: int = 0) -> None:
    """The distances from the same sources by SciPy."""
    n = A.nrows
    chosen = vertices(sources, n, seed)
    rows, cols, _ = A.to_coo()
    reach, total = np.zeros(n), np.zeros(n)
    for source in chosen:
        level = levels_from(n, rows, cols, source)
        reach += level > 0
        total += np.maximum(level, 0)
    near, present = dense(found, 0.0)
    check(present, "presence: a vertex without a number")
    right = _closeness(reach, total, others(n, chosen), True)
    check(np.isclose(near, right, rtol=1e-12, atol=0, equal_nan=True), "closeness: not by SciPy's distances")


def bits_set(x):
    """Return the number of bits that are set in a word of 64."""
    x -= (x >> 1) & 0x5555555555555555
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    return ((x + (x >> 4) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101) >> 56


# The bits that are set, as Warren, "Hacker's Delight", 2012, counts them.
popcount = unary.register_anonymous(bits_set, "popcount")

ranking(
    "closeness",
    "closeness",
    run=closeness,
    verify=lambda A, samples, outcome: check_closeness(A, outcome, samples),
    options=(SAMPLES,),
    rehearse=harmonic,
)
