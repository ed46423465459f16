"""Hubs and authorities: good hubs point to good authorities, which good hubs point to.

Authorities are the sums of hubs along arcs, hubs those of authorities against them; each round is scaled to sum 1. They
lead to the first pair of singular vectors.

Source: Kleinberg, "Authoritative Sources in a Hyperlinked Environment", Journal of the ACM 1999.
"""

from typing import NamedTuple

import numpy as np

from algos._inputs import square
from algos._iterations import check_limits, check_settled, difference, flat, products
from algos.runs import ALGORITHMS, WEIGHTED, Algorithm, Result, highest
from algos.verify import check, dense
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, program


class Hits(NamedTuple):
    """Hubs and authorities (FP64, size n each)."""

    hubs: Vector
    authorities: Vector


@program
def hits(A: Matrix, tol: float = 1e-8, max_iterations: int = 1000, *, weighted: bool = False) -> Hits:
    """Hub and authority scores of every vertex (HITS).

    Where several components have the same largest singular value, the result is one of many.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n.
    tol : float
        Iterations end when an authority changes by less than `tol` in the mean.
    max_iterations : int
        At most so many iterations, 1 or more.
    weighted : bool
        Whether arcs count by the values of `A`, which must not be negative. By default each stored entry counts 1.

    Returns
    -------
    Hits
        `hubs` and `authorities` (FP64, size n, all entries). Each sums to 1; without arcs all are 0.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If `tol` is below 0 or `max_iterations` below 1.
    ConvergenceError
        If the last of `max_iterations` still changes the authorities by `tol` or more.

    References
    ----------
    Kleinberg, "Authoritative Sources in a Hyperlinked Environment", Journal of the ACM 1999.
    """
    n = square(A)
    check_limits(tol, max_iterations)
    a, h, t = flat(n, 0, "authorities"), flat(n, 1.0, "hubs"), flat(n, 0, "t")
    change, total = Scalar(float, name="change"), Scalar(float, name="total")
    if not A.nvals:
        h[:] = 0
        return Hits(h, a)
    with loop(max_iterations) as it:
        t[:] = 0
        t(binary.plus) << products(weighted)(A.T @ h)
        total << t.reduce(monoid.plus, allow_empty=False)
        t << t.apply(binary.truediv, right=total)
        change << difference(t, a)
        a << t
        h[:] = 0
        h(binary.plus) << products(weighted)(A @ a)
        total << h.reduce(monoid.plus, allow_empty=False)
        h << h.apply(binary.truediv, right=total)
        it.until(change < tol * n)
    check_settled(it, tol, "two singular values may be close")
    return Hits(h, a)


def check_hits(A: Matrix, found: Hits, tol: float = 1e-8, *, weighted: bool = False) -> None:
    """Sums of 1; hubs follow from authorities, and these from hubs up to tol."""
    hubs, authorities = (dense(v, 0.0)[0] for v in found)
    rows, cols, values = A.to_coo()
    if not rows.size:
        check((hubs == 0) & (authorities == 0), "no arcs: a number that is not 0")
        return
    pairs = (hubs, authorities, rows, cols, 1e-9), (authorities, hubs, cols, rows, tol * A.nrows + 1e-9)
    for name, (mine, other, ends, starts, most) in zip(("hubs", "authorities"), pairs, strict=True):
        right = np.bincount(ends, other[starts] * (values if weighted else 1), A.nrows)
        moved = np.abs(mine - right / right.sum())
        check(np.array([moved.sum() <= most]), f"{name}: not the sums of the others", [moved.argmax()])


HITS = Result("vertex", "authority", lambda found: found.authorities)

ALGORITHMS["hits"] = Algorithm(
    run=lambda A, weighted: hits(A, 1e-6, weighted=weighted),
    verify=lambda A, weighted, outcome: check_hits(A, outcome, 1e-6, weighted=weighted),
    summary=lambda found: highest(found.authorities, "authority"),
    options=(WEIGHTED,),
    result=HITS,
    top=HITS,
    rehearse=lambda A: hits(A, weighted=True),
)
