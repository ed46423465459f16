"""A maximal independent set: vertices of which no two are joined, and to which no other can be added.

Every vertex has a number, in an order drawn at random. Of those left, the ones above all their neighbours join the set,
and they and their neighbours go. In an order drawn at random few rounds are enough, whatever the graph.

Source: Luby, "A Simple Parallel Algorithm for the Maximal Independent Set Problem", STOC 1985; that one order will do
for all rounds is from Blelloch, Fineman, Shun, "Greedy Sequential Maximal Independent Set and Matching are Parallel on
Average", SPAA 2012.
"""

from typing import Any

from algos import verify
from algos._inputs import drawn
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from gbgpu import Matrix, Vector, binary, loop, program, replace, select
from gbgpu.semiring import any_pair, max_first


@program
def maximal_independent_set(A: Matrix, seed: int = 0) -> Vector:
    """A maximal independent set: no two of its vertices are joined, and none can be added.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    seed : int
        Draws the order of the vertices; the same seed gives the same set.

    Returns
    -------
    Vector
        True at the vertices of the set (BOOL, size n); no entry elsewhere.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If an arc has no reverse.

    References
    ----------
    Luby, "A Simple Parallel Algorithm for the Maximal Independent Set Problem", STOC 1985. Blelloch, Fineman, Shun,
    "Greedy Sequential Maximal Independent Set and Matching are Parallel on Average", SPAA 2012.
    """
    n = undirected(A)
    A = select.offdiag(A).new(name="A")
    left = drawn(n, seed)
    above = Vector(int, n, name="above")
    chosen, won, lost, below = (Vector(bool, n, name=name) for name in ("chosen", "won", "lost", "below"))
    with loop() as it:
        above(left.S, replace) << max_first[int](left @ A)
        below << binary.lt(left & above)
        won << binary.pair[bool](left & left)
        won(below.V) << False
        won << select.valuene(won, False)
        chosen(won.S) << True
        lost << any_pair[bool](won @ A)
        left(~won.S, replace) << left
        left(~lost.S, replace) << left
        it.until(left.nvals == 0)
    return chosen


def _summary(chosen: Vector) -> dict[str, Any]:
    return {"chosen": chosen.nvals}


ALGORITHMS["independent"] = Algorithm(
    run=maximal_independent_set,
    verify=verify.maximal_independent_set,
    summary=_summary,
    result=Result("vertex", "chosen", lambda chosen: chosen.dup(int)),
)
