"""PageRank: the stationary distribution of a surfer who follows random out-arcs and sometimes jumps anywhere.

A jump has the probability 1 - damping. Each round every vertex divides damping times its rank among its out-arcs: t,
what arrives. The ranks sum to 1, so 1 - sum(t) is all that does not travel along arcs, the jumps and the rank of
vertices without out-arcs (dangling); it is spread evenly, or in proportions that are asked for.

Source: Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking", 1999; the treatment of dangling vertices is
that of LDBC Graphalytics and NetworkX.
"""

from math import inf
from typing import Any, NamedTuple

from algos import verify
from algos._inputs import square
from algos._iterations import check_limits, difference, flat
from algos.runs import ALGORITHMS, WEIGHTED, Algorithm, Result, highest
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, program, select
from gbgpu.errors import DimensionMismatch, InvalidValue, message
from gbgpu.semiring import plus_first, plus_pair, plus_second, plus_times


class Ranks(NamedTuple):
    """Ranks of all vertices, the number of iterations, and whether the ranks settled."""

    ranks: Vector
    iterations: int
    converged: bool


@program
def pagerank(
    A: Matrix,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iterations: int = 100,
    dtype: Any = "FP64",
    *,
    weighted: bool = False,
    personalization: Vector | None = None,
    dangling: Vector | None = None,
    nstart: Vector | None = None,
) -> Ranks:
    """PageRank of every vertex.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n.
    damping : float
        The probability to follow an arc, in [0, 1).
    tol : float
        Iterations end when the sum of absolute changes is below `tol`. With 0 the change is not computed, and all
        `max_iterations` are done.
    max_iterations : int
        At most so many iterations, 1 or more.
    dtype : dtype
        FP32 or FP64, of the ranks and of the computation.
    weighted : bool
        Whether a vertex divides its rank in proportion to the values of `A`. By default each stored entry counts the
        same.
    personalization : Vector, optional
        The proportion of jumps to each vertex, size n; no entry means none. By default all are the same.
    dangling : Vector, optional
        Where the rank of vertices without out-arcs goes, in the same form. By default as `personalization`.
    nstart : Vector, optional
        The ranks to begin with, in the same form.

    Returns
    -------
    Ranks
        `ranks` (`dtype`, size n, sum 1), `iterations`, and `converged`: whether the last change was below `tol`.

    Raises
    ------
    TypeError
        If `A` is no Matrix, a vector is no Vector, or `dtype` is not FP32 or FP64.
    DimensionMismatch
        If `A` is not square, or the size of a vector is not n.
    InvalidValue
        If `damping`, `tol` or `max_iterations` is out of its range, if a weight or proportion is negative or not
        finite, or if all proportions are 0.

    References
    ----------
    Page, Brin, Motwani, Winograd, "The PageRank Citation Ranking", 1999.
    """
    n = square(A)
    check_parameters(damping, tol, max_iterations)
    share_of_arc = arc_shares(A, n, damping, dtype, weighted)
    dtype = share_of_arc.dtype
    r, share, t = (Vector(dtype, size=n, name=name) for name in ("r", "share", "t"))
    change = Scalar(dtype, name="change")
    jump = proportions(nstart, n)
    uniform = personalization is None and dangling is None
    if not uniform:
        lands, stays = (proportions(v, n) for v in (personalization, personalization if dangling is None else dangling))
        jumps = lands.apply(binary.times, right=1 - damping).new(name="jumps")
    if n == 0:
        return Ranks(r, 0, True)
    spread = (plus_times if weighted else plus_second)[dtype]
    r << jump
    t[:] = 0
    ranks = binary.plus[dtype](t | jump)  # read where it stands: each use is one pass over t
    with loop(max_iterations) as it:
        share << binary.times(ranks & share_of_arc)
        t << spread(A.T @ share)
        jump[:] = t.reduce(monoid.plus["FP64"], allow_empty=False)  # stays on the devices
        if uniform:
            jump << jump.apply(rest_of_all, right=n)
        else:
            jump << jump.apply(binary.minus, left=damping)  # all that is on dangling vertices
            jump << binary.plus(binary.times(jump & stays) & jumps)
        if tol:
            change << difference(ranks, r)
            r << ranks
            it.until(change < tol)
    r << ranks
    return Ranks(r, it.rounds, it.converged)


rest_of_all = binary.register_anonymous(lambda total, n: (1 - total) / n, "rest_of_all")


def arc_shares(A: Matrix, n: int, damping: float, dtype: Any, weighted: bool) -> Vector:
    """Return the part of a vertex's rank that an arc of weight 1 carries.

    That is damping over the sum of its row's ones, or weights; 0 where the sum is 0.
    """
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


def proportions(given: Vector | None, n: int) -> Vector:
    """Numbers (FP64) of all vertices that sum to 1: as `given`, else all the same."""
    found = flat(n, 0.0 if given is not None else 1 / max(n, 1), "proportions")
    if given is None:
        return found
    if not isinstance(given, Vector):
        raise TypeError(message("a gbgpu Vector", type(given).__name__))
    if given.size != n:
        raise DimensionMismatch(message(f"a vector of size {n}", given.size))
    found(binary.plus) << given
    low, total = (found.reduce(op, allow_empty=False).new().value for op in (monoid.min, monoid.plus))
    if n and not (low >= 0 and 0 < total < inf):
        raise InvalidValue(message("proportions from 0 on, not all 0, with a finite sum", f"least {low}, sum {total}"))
    return found.apply(binary.truediv, right=total).new(name="proportions")


def check_weights(A: Matrix) -> None:
    """Raise InvalidValue unless every value is at least 0 and finite."""
    low, total = (A.reduce_scalar(op).new().value for op in (monoid.min, monoid.plus["FP64"]))
    if A.nvals and not (low >= 0 and total < inf):
        raise InvalidValue(message("weights from 0 on with a finite sum", "a weight that is negative, NaN or infinite"))


def check_parameters(damping: float, tol: float, max_iterations: int) -> None:
    """Raise InvalidValue unless each is in its range; NaN is in none."""
    if not 0 <= damping < 1:
        raise InvalidValue(message("damping in [0, 1)", damping))
    check_limits(tol, max_iterations)


def _in_other_ways(A: Matrix) -> None:
    for dtype in ("FP32", "FP64"):
        pagerank(A, dtype=dtype)
        pagerank(A, dtype=dtype, tol=0, max_iterations=2)
    pagerank(A, weighted=True)


RANKS = Result("vertex", "rank", lambda outcome: outcome.ranks)

ALGORITHMS["pagerank"] = Algorithm(
    run=lambda A, weighted: pagerank(A, weighted=weighted),
    verify=lambda A, weighted, outcome: verify.pagerank(A, outcome.ranks, weighted=weighted),
    summary=lambda found: {"iterations": found[1], "converged": found[2], **highest(found[0], "rank")},
    options=(WEIGHTED,),
    result=RANKS,
    top=RANKS,
    rehearse=_in_other_ways,
)
