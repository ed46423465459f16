"""Eigenvector centrality: a vertex is as important as those that point to it are together.

Rounds of x + x A, scaled to length 1, lead to the eigenvector of the largest eigenvalue; x itself is added so that
bipartite graphs, whose eigenvalues come in pairs, converge too.

Source: Bonacich, "Power and Centrality: A Family of Measures", American Journal of Sociology 1987; the iteration: von
Mises, Pollaczek-Geiringer, "Praktische Verfahren der Gleichungsauflösung", ZAMM 1929.
"""

import numpy as np

from algos._inputs import square
from algos._iterations import check_limits, check_settled, difference, flat, products
from algos.runs import WEIGHTED, ranking
from algos.verify import check, dense
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, unary


def eigenvector(A: Matrix, tol: float = 1e-6, max_iterations: int = 1000, *, weighted: bool = False) -> Vector:
    """Eigenvector centrality: the left eigenvector of the largest eigenvalue.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n.
    tol : float
        Iterations end when an entry changes by less than `tol` in the mean.
    max_iterations : int
        At most so many iterations, 1 or more.
    weighted : bool
        Whether arcs count by the values of `A`. By default each stored entry counts 1.

    Returns
    -------
    Vector
        Centralities (FP64, size n, all entries); their squares sum to 1. None is negative unless a weight is.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If `tol` is below 0 or `max_iterations` below 1.
    ConvergenceError
        If the last of `max_iterations` still changes the entries by `tol` or more.

    References
    ----------
    Bonacich, "Power and Centrality: A Family of Measures", American Journal of Sociology 1987. The iteration: von
    Mises, Pollaczek-Geiringer, "Praktische Verfahren der Gleichungsauflösung", ZAMM 1929.
    """
    n = square(A)
    check_limits(tol, max_iterations)
    x, t = flat(n, 1 / max(n, 1), "x"), flat(n, 0, "t")  # summing to 1, as NetworkX begins: the first change counts
    change, length = Scalar(float, name="change"), Scalar(float, name="length")
    if n == 0:
        return x
    with loop(max_iterations) as it:
        t << x
        t(binary.plus) << products(weighted)(A.T @ x)
        length << binary.times(t & t).reduce(monoid.plus)
        length << unary.sqrt(length)
        t << t.apply(binary.truediv, right=length)
        change << difference(t, x)
        x << t
        it.until(change < tol * n)
    check_settled(it, tol, "two eigenvalues may be close")
    return x


def check_eigenvector(A: Matrix, found: Vector, tol: float = 1e-6, *, weighted: bool = False) -> None:
    """Length 1, and another round changes a vertex by no more than tol in the mean (and rounding)."""
    x, present = dense(found, 0.0)
    check(present, "presence: a vertex without a number")
    if not x.size:
        return
    check(np.array([abs(np.linalg.norm(x) - 1) < 1e-9]), "length: not 1")
    rows, cols, values = A.to_coo()
    weights = values if weighted else np.ones(rows.size)
    check((x >= 0) | (weights < 0).any(), "sign: a negative number")
    following = x + np.bincount(cols, x[rows] * weights, A.nrows)
    following /= np.linalg.norm(following)
    moved = np.abs(following - x)
    check(np.array([moved.mean() <= tol + 1e-12]), "residual: another round changes it", [moved.argmax()])


ranking(
    "eigenvector",
    "centrality",
    run=lambda A, weighted: eigenvector(A, weighted=weighted),
    verify=lambda A, weighted, found: check_eigenvector(A, found, weighted=weighted),
    options=(WEIGHTED,),
    rehearse=lambda A: eigenvector(A, weighted=True),
)
