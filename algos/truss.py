"""Trusses: edges that lie in triangles with one another.

S holds at each edge its support, the triangles that it lies in. Edges of a k-truss have k - 2 of them inside it; those
of less support go together, and the others lose the triangles that went. With Q what goes and R all that was there,
both symmetric, (Q R + R Q - Q Q) says how many at each edge.

Source: Cohen, "Trusses: Cohesive Subgraphs for Social Network Analysis", NSA, 2008; as matrix products: Low et al.,
"Linear Algebraic Formulation of Edge-centric K-truss Algorithms with Adjacency Matrices", HPEC 2018; counts that follow
what goes: Davis, "Graph Algorithms via SuiteSparse:GraphBLAS: Triangle Counting and K-truss", HPEC 2018.
"""

from operator import index
from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Option
from algos.triangles import at_edges
from gbgpu import Matrix, binary, monoid, replace, select
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import plus_pair


def k_truss(A: Matrix, k: int) -> Matrix:
    """The k-truss: the largest subgraph whose edges each lie in k - 2 or more of its triangles.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Loops are ignored.
    k : int
        2 or more.

    Returns
    -------
    Matrix
        The entries of `A` that are left (its dtype, n x n).

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `k` is not a whole number.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If an arc has no reverse, or `k` is below 2.

    References
    ----------
    Cohen, "Trusses: Cohesive Subgraphs for Social Network Analysis", NSA, 2008. Low et al., "Linear Algebraic
    Formulation of Edge-centric K-truss Algorithms with Adjacency Matrices", HPEC 2018.
    """
    if index(k) < 2:
        raise InvalidValue(message("k of at least 2", k))
    undirected(A)
    left = peeled(support(A), min(index(k), A.nrows + 2))  # there is none of more than n
    found = Matrix(A.dtype, A.nrows, A.ncols, name="truss")
    found(left.S) << A
    return found


def truss_numbers(A: Matrix) -> Matrix:
    """The truss number of every edge: the largest k such that it lies in the k-truss.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    Matrix
        Numbers of 2 or more (INT64, n x n) at both arcs of each edge, loops left out.

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue
        As `k_truss`.
    """
    undirected(A)
    S = support(A)
    numbers = Matrix(int, A.nrows, A.ncols, name="truss_numbers")
    while S.nvals:
        k = int(S.reduce_scalar(monoid.min).new().value) + 2
        numbers(S.S) << k
        S = peeled(S, k + 1)
    return numbers


def support(A: Matrix) -> Matrix:
    """The triangles at each edge without loops, 0 too."""
    A = select.offdiag(A).new(name="A")
    S = at_edges(A, degrees(A))
    return binary.plus(S | S.T).new(name="S")


def peeled(S: Matrix, k: int) -> Matrix:
    """The supports inside the k-truss, of those inside a larger subgraph."""
    n = S.nrows
    one, both = Matrix(int, n, n, name="one"), Matrix(int, n, n, name="both")
    while True:
        R, Q = S, select.valuelt(S, k - 2).new(name="Q")
        if not Q.nvals:
            return S
        S = select.valuege(S, k - 2).new(name="S")
        if not S.nvals:
            return S
        one(S.S, replace) << plus_pair[int](Q @ R)
        both(S.S, replace) << plus_pair[int](Q @ Q)
        S(binary.plus) << both
        S(binary.minus) << binary.plus(one | one.T)


def check_truss_numbers(A: Matrix, numbers: Matrix) -> None:
    """The edges from each number on are what SciPy leaves of those before."""
    rows, cols, found = numbers.to_coo()
    left = verify.edges(A)
    S = verify.supports(left)
    for k in [2, *(np.unique(found) + 1)]:
        left, S = _by_scipy(left, S, k)
        _check_edges(left, rows[found >= k], cols[found >= k], k)


def check_k_truss(A: Matrix, k: int, truss: Matrix) -> None:
    """The entries are those of A at the edges that SciPy leaves."""
    rows, cols, values = truss.to_coo()
    left = verify.edges(A)
    _check_edges(_by_scipy(left, verify.supports(left), k)[0], rows, cols, k)
    mine, theirs, given = A.to_coo()
    kept = np.isin(mine * A.ncols + theirs, rows * A.ncols + cols)
    verify.check(given[kept] == values, "values: not those of the graph", rows)


def _by_scipy(left: Any, S: Any, k: int) -> tuple[Any, Any]:
    """Edges and supports after those of too few are taken away, again and again."""
    while True:
        low = left * (k - 2) - S > 0
        if not low.nnz:
            return left, S
        gone = left * low
        S = S - gone @ left - left @ gone + gone @ gone
        left = left - gone
        left.eliminate_zeros()
        S = S * left


def _check_edges(left: Any, rows: np.ndarray, cols: np.ndarray, k: int) -> None:
    n = left.shape[0]
    theirs = left.tocoo()
    wrong = np.setxor1d(theirs.row.astype(np.int64) * n + theirs.col, rows * n + cols)
    verify.check(np.zeros(wrong.size, bool), f"edges: in the {k}-truss or not, other than by SciPy", wrong // max(n, 1))


def _summary(truss: Matrix) -> dict[str, Any]:
    return {"edges": truss.nvals // 2, "vertices": truss.reduce_rowwise(monoid.any).new().nvals}


K = Option("k", int, "{}: edges in k - 2 triangles (default: 4)", lambda A, asked: 4 if asked is None else asked)

ALGORITHMS["truss"] = Algorithm(
    run=k_truss, verify=check_k_truss, summary=_summary, options=(K,), rehearse=truss_numbers
)
