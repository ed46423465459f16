"""Katz centrality: the walks that end at a vertex, each the shorter the more it counts.

x = alpha x A + beta, so that a walk of k arcs counts alpha^k. The rounds converge if alpha times the largest
eigenvalue is below 1.

Source: Katz, "A New Status Index Derived from Sociometric Analysis", Psychometrika 1953.
"""

from typing import Any

import numpy as np

from algos._inputs import square
from algos._iterations import check_limits, check_settled, difference, flat, largest_sum, products
from algos.runs import WEIGHTED, ranking
from algos.verify import check, dense
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, program
from gbgpu.errors import DimensionMismatch, message

SAFE = 0.85  # of the alpha from which rounds may not converge


@program
def katz(
    A: Matrix,
    alpha: float | None = None,
    beta: Any = 1.0,
    tol: float = 1e-6,
    max_iterations: int = 1000,
    *,
    normalized: bool = True,
    weighted: bool = False,
) -> Vector:
    """Katz centrality: `alpha` times the sum over a vertex's in-neighbours, plus `beta`.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n.
    alpha : float, optional
        The weight of each further arc of a walk. By default 0.85 over a bound of the eigenvalues, which always settles.
    beta : float or Vector
        What each vertex has by itself: a number for all, or a Vector of size n (no entry: 0).
    tol : float
        Iterations end when an entry changes by less than `tol` in the mean.
    max_iterations : int
        At most so many iterations, 1 or more.
    normalized : bool
        Whether to divide by the root of the sum of squares.
    weighted : bool
        Whether arcs count by the values of `A`. By default each stored entry counts 1.

    Returns
    -------
    Vector
        Centralities (FP64, size n, all entries).

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square, or the size of `beta` is not n.
    InvalidValue
        If `tol` is below 0 or `max_iterations` below 1.
    ConvergenceError
        If the last of `max_iterations` still changes the entries by `tol` or more: `alpha` may be too large.

    References
    ----------
    Katz, "A New Status Index Derived from Sociometric Analysis", Psychometrika 1953.
    """
    n = square(A)
    check_limits(tol, max_iterations)
    alpha = default_alpha(A, weighted) if alpha is None else alpha
    first, x, y, t = (flat(n, 0, name) for name in ("first", "x", "y", "t"))
    change = Scalar(float, name="change")
    if isinstance(beta, Vector):
        if beta.size != n:
            raise DimensionMismatch(message(f"beta of size {n}", beta.size))
        first(binary.plus) << beta
    else:
        first[:] = beta
    if n == 0:
        return x
    with loop(max_iterations) as it:
        y << x.apply(binary.times, right=alpha)
        t << first
        t(binary.plus) << products(weighted)(A.T @ y)
        change << difference(t, x)
        x << t
        it.until(change < tol * n)
    check_settled(it, tol, "alpha must be below 1 / the largest eigenvalue")
    length = binary.times(x & x).reduce(monoid.plus).new().value ** 0.5
    return x.apply(binary.truediv, right=length).new(name="katz") if normalized and length else x


def default_alpha(A: Matrix, weighted: bool = False) -> float:
    """0.85 over a bound of the eigenvalues; 0.85 without arcs."""
    return SAFE / (largest_sum(A, weighted) or 1.0)


def check_katz(A: Matrix, found: Vector, *, weighted: bool = False) -> None:
    """What alpha times the in-neighbours' sum leaves is beta's share, the same for every vertex."""
    x, present = dense(found, 0.0)
    check(present, "presence: a vertex without a number")
    rows, cols, values = A.to_coo()
    came = np.bincount(cols, x[rows] * (values if weighted else 1), A.nrows)
    rest = x - default_alpha(A, weighted) * came
    if rest.size:
        off = np.abs(rest / rest.mean() - 1)
        check(np.array([off.mean() <= 1e-5]), "residual: not beta's", [off.argmax()])


ranking(
    "katz",
    "centrality",
    run=lambda A, weighted: katz(A, weighted=weighted),
    verify=lambda A, weighted, found: check_katz(A, found, weighted=weighted),
    options=(WEIGHTED,),
    rehearse=lambda A: katz(A, weighted=True),
)
