"""Clustering: how many of the pairs of a vertex's neighbours are joined themselves.

A vertex of degree d has d (d - 1) / 2 pairs of neighbours, and a triangle for each pair that is joined.

Source: Watts, Strogatz, "Collective Dynamics of 'Small-World' Networks", Nature 1998; transitivity: Newman, Strogatz,
Watts, "Random Graphs with Arbitrary Degree Distributions", Physical Review E 2001.
"""

from typing import Any

import numpy as np

from algos._inputs import degrees
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from algos.triangles import at_vertices, triangle_count
from algos.verify import check, dense, triangles_by_vertex
from gbgpu import Matrix, Vector, binary, monoid, select, unary


def clustering(A: Matrix) -> Vector:
    """The clustering coefficient of every vertex: the share of its pairs of neighbours that are joined.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    Vector
        Coefficients (FP64, size n, all entries); 0 where a vertex has fewer than two neighbours.

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
    Watts, Strogatz, "Collective Dynamics of 'Small-World' Networks", Nature 1998.
    """
    undirected(A)
    A = select.offdiag(A).new(name="A")
    degree = degrees(A)
    found = at_vertices(A, degree).dup(float, name="clustering")
    found(binary.times) << unary.minv(pairs(degree))
    return found


def average_clustering(A: Matrix, count_zeros: bool = True) -> float:
    """The mean of `clustering` over the vertices.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    count_zeros : bool
        Whether vertices of coefficient 0 count.

    Returns
    -------
    float
        The mean; 0.0 if no vertex counts.

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue
        As `clustering`.
    """
    found = clustering(A)
    counted = found if count_zeros else select.valuene(found, 0).new()
    return counted.reduce(monoid.plus, allow_empty=False).new().value / max(counted.nvals, 1)


def transitivity(A: Matrix) -> float:
    """The share of pairs of edges with a common end whose other ends are joined.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    float
        Three times the triangles over the pairs; 0.0 if there is no triangle.

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue
        As `clustering`.

    References
    ----------
    Newman, Strogatz, Watts, "Random Graphs with Arbitrary Degree Distributions", Physical Review E 2001.
    """
    count = triangle_count(A)
    if not count:
        return 0.0
    return 3 * count / pairs(degrees(select.offdiag(A).new())).reduce(monoid.plus, allow_empty=False).new().value


def pairs(degree: Vector) -> Vector:
    """The number of pairs of neighbours (FP64), where there are any, of vertices of these degrees."""
    degree = degree.dup(float)
    return select.valuegt(degree * (degree - 1) / 2, 0).new(name="pairs")


def check_clustering(A: Matrix, found: Vector) -> None:
    """The triangles that SciPy counts, over the pairs of neighbours."""
    part, present = dense(found, 0.0)
    check(present, "presence: a vertex without a number")
    rows, cols, _ = A.to_coo()
    degree = np.bincount(rows[rows != cols], minlength=A.nrows)
    right = triangles_by_vertex(A) / np.maximum(degree * (degree - 1) / 2, 1)
    check(np.isclose(part, right, rtol=1e-12, atol=0), "clustering: not what SciPy counts")


def _summary(found: Vector) -> dict[str, Any]:
    _, parts = found.to_coo()
    return {"average": float(parts.mean()) if parts.size else 0.0, "vertices": int(np.count_nonzero(parts))}


CLUSTERING = Result("vertex", "clustering")

ALGORITHMS["clustering"] = Algorithm(
    run=clustering, verify=check_clustering, summary=_summary, result=CLUSTERING, top=CLUSTERING, rehearse=transitivity
)
