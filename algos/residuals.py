"""PageRank by residuals: only vertices whose rank still grows much pass something on.

A vertex has a rank and a residual, what has come to it and is not passed on yet; at first that is what jumps bring. A
round adds the residuals above a bound to the ranks, and divides damping times each among the vertex's out-arcs. The
frontier is small where jumps lead to few vertices, or little is left: pushes of few vertices in place of products with
all of them. What is left falls to `damping` of it in a round, so that all ranks of a graph take more rounds than by
`pagerank`, where most differences cancel out.

Ranks and residuals sum to less than 1 where vertices have no out-arcs; divided by the sum of the ranks they are those
of a surfer who jumps from there as from anywhere.

Source: Andersen, Chung, Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006; Berkhin, "Bookmark-Coloring
Approach to Personalized PageRank Computing", Internet Mathematics 2006, for dangling vertices.
"""

from typing import Any

from algos import verify
from algos._inputs import square
from algos.pagerank import RANKS, Ranks, arc_shares, check_parameters, proportions
from algos.runs import ALGORITHMS, WEIGHTED, Algorithm, highest
from gbgpu import Matrix, Vector, binary, loop, monoid, select
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import plus_second, plus_times


def pagerank_push(
    A: Matrix,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iterations: int = 1000,
    dtype: Any = "FP64",
    *,
    weighted: bool = False,
    personalization: Vector | None = None,
) -> Ranks:
    """PageRank of every vertex, where only vertices with much left to pass on take part in a round.

    It ends when all residuals together are below tol / 2 of the sum of the ranks. One more product with all of `A`
    would then change the ranks by less than `tol`. A residual is not passed on if n of its size would be half of this
    bound or less.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n.
    damping : float
        The probability to follow an arc, in [0, 1).
    tol : float
        The bound of the change, above 0.
    max_iterations : int
        At most so many rounds, 1 or more.
    dtype : dtype
        FP32 or FP64, of the ranks and of the computation.
    weighted : bool
        Whether a vertex divides its rank in proportion to the values of `A`.
    personalization : Vector, optional
        The proportion of jumps to each vertex, size n; no entry means none.

    Returns
    -------
    Ranks
        `ranks` (`dtype`, size n, sum 1), `iterations` (the rounds), and `converged`.

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue
        As `pagerank`, and InvalidValue if `tol` is 0.

    References
    ----------
    Andersen, Chung, Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006. Berkhin, "Bookmark-Coloring
    Approach to Personalized PageRank Computing", Internet Mathematics 2006.
    """
    n = square(A)
    check_parameters(damping, tol, max_iterations)
    if tol == 0:
        raise InvalidValue(message("tol above 0", tol, "algos.pagerank does a number of iterations"))
    share_of_arc = arc_shares(A, n, damping, dtype, weighted)
    dtype = share_of_arc.dtype
    r, residual, near, t = (Vector(dtype, size=n, name=name) for name in ("r", "residual", "near", "t"))
    if n == 0:
        return Ranks(r, 0, True)
    spread = (plus_times if weighted else plus_second)[dtype]
    least = (1 - damping) / (4 / tol + 2) / n  # ranks sum to 1 - damping at least, but for the residuals
    r[:] = 0
    residual << proportions(personalization, n).apply(binary.times, right=1 - damping)
    near << select.valuegt(residual, least)
    with loop(max_iterations) as it:
        r(binary.plus) << near
        residual(near.S) << 0
        near << binary.times(near & share_of_arc)
        t << spread(A.T @ near)
        residual(binary.plus) << t
        near << binary.second(t & residual)
        near << select.valuegt(near, least)
        left, total = (v.reduce(monoid.plus["FP64"], allow_empty=False) for v in (residual, r))
        it.until(left < total * (tol / 2))
    r << r.apply(binary.truediv, right=r.reduce(monoid.plus["FP64"]).new().value)
    return Ranks(r, it.rounds, it.converged)


ALGORITHMS["pagerank-push"] = Algorithm(
    run=lambda A, weighted: pagerank_push(A, weighted=weighted),
    verify=lambda A, weighted, outcome: verify.pagerank(A, outcome.ranks, weighted=weighted),
    summary=lambda found: {"rounds": found[1], "converged": found[2], **highest(found[0], "rank")},
    options=(WEIGHTED,),
    result=RANKS,
    top=RANKS,
)
