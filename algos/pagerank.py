"""PageRank: the stationary distribution of a surfer who follows a random out-arc, or jumps anywhere with probability
1 - damping.

Each round every vertex divides damping times its rank among its out-arcs: t, what arrives. The ranks sum to 1, so
1 - sum(t) is all that does not travel along arcs, the jumps and the rank of vertices without out-arcs (dangling); it
is spread evenly.

Source: Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking", 1999; the treatment of dangling vertices is
that of LDBC Graphalytics and NetworkX.
"""

from math import inf
from typing import Any

from algos._inputs import square
from gbgpu import Matrix, Vector, binary, monoid, select, unary
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import plus_first, plus_pair, plus_second, plus_times


def pagerank(
    A: Matrix,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iterations: int = 100,
    dtype: Any = "FP64",
    *,
    weighted: bool = False,
) -> tuple[Vector, int, bool]:
    """Ranks (`dtype`, FP32 or FP64, every vertex, sum 1), the iterations done, and whether the last changed them by
    less than tol.

    The change is the sum of absolute differences; with tol = 0 it is not computed and all iterations are done. With
    `weighted` a vertex divides its rank in proportion to A's values, which must not be negative; else every stored
    entry counts the same. Raises TypeError (A is no Matrix; dtype), DimensionMismatch (A not square), InvalidValue
    (damping outside [0, 1), tol below 0, max_iterations below 1, a weight below 0 or not finite).
    """
    n = square(A)
    check_parameters(damping, tol, max_iterations)
    share_of_arc = arc_shares(A, n, damping, dtype, weighted)
    dtype = share_of_arc.dtype
    r, share, t, change = (Vector(dtype, size=n, name=name) for name in ("r", "share", "t", "change"))
    jump = Vector("FP64", size=n, name="jump")
    if n == 0:
        return r, 0, True
    spread = (plus_times if weighted else plus_second)[dtype]
    r[:] = 1 / n
    ranks: Any = r
    for iteration in range(1, max_iterations + 1):
        share << binary.times(ranks & share_of_arc)
        t << spread(A.T @ share)
        jump[:] = t.reduce(monoid.plus["FP64"], allow_empty=False)  # stays on the devices
        jump << jump.apply(binary.minus, left=1)
        jump << jump.apply(binary.truediv, right=n)
        ranks = binary.plus[dtype](t | jump)  # where it is needed: each use is one pass over t
        if tol:
            change << unary.abs(binary.minus(ranks & r))
            r << ranks
            if change.reduce(monoid.plus).new().value < tol:
                return r, iteration, True
    r << ranks
    return r, max_iterations, False


def arc_shares(A: Matrix, n: int, damping: float, dtype: Any, weighted: bool) -> Vector:
    """What part of a vertex's rank an arc of weight 1 carries: damping over the sum of its row's ones, or weights;
    0 where that is 0."""
    ones, degree, shares = (Vector(dtype, size=n, name=name) for name in ("ones", "degree", "shares"))
    if degree.dtype.name not in ("FP32", "FP64"):
        raise TypeError(message("dtype FP32 or FP64", degree.dtype.name))
    ones[:] = 1
    if weighted:
        check_weights(A)
        degree << plus_first[dtype](A @ ones)
        degree << select.valuegt(degree, 0)
    else:
        degree << plus_pair[dtype](A @ ones)
    shares[:] = 0
    shares(binary.plus) << degree.apply(binary.truediv, left=damping)
    return shares


def check_weights(A: Matrix) -> None:
    """InvalidValue unless every value is at least 0 and finite."""
    low, total = (A.reduce_scalar(op).new().value for op in (monoid.min, monoid.plus))
    if A.nvals and not (low >= 0 and total < inf):
        raise InvalidValue(message("weights from 0 on with a finite sum", "a weight that is negative, NaN or infinite"))


def check_parameters(damping: float, tol: float, max_iterations: int) -> None:
    """InvalidValue unless each is in its range (NaN is in none)."""
    if not 0 <= damping < 1:
        raise InvalidValue(message("damping in [0, 1)", damping))
    if not tol >= 0:
        raise InvalidValue(message("tol of at least 0", tol))
    if not max_iterations >= 1:
        raise InvalidValue(message("max_iterations of at least 1", max_iterations))
