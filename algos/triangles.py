"""Triangles: each edge of an acyclic orientation, with what its ends have in common.

L holds one arc of each edge, to the end that comes later in some order. C(L.S) << plus_pair(L @ L.T) counts at the
arc i -> j the vertices that come after both, so each triangle once, at its first two. Any order does; the one by
degree leaves hubs few arcs, which is where the work is. Nothing is renumbered.

Source: Azad, Buluc, Gilbert, "Parallel Triangle Counting and Enumeration Using Matrix Algebra", 2015; the order by
degree where degrees are skewed, told by a sample, is that of Beamer, Asanovic, Patterson, the GAP benchmark, 2015.
"""

import numpy as np

from algos import verify
from algos._inputs import degrees
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm
from gbgpu import Matrix, Vector, binary, indexunary, monoid, replace, select
from gbgpu.semiring import any_first, any_second, plus_pair

SAMPLE = 1000
SKEW = 1.3  # times the median degree, in the sample, from which the mean tells of hubs


def triangle_count(A: Matrix) -> int:
    """The triangles of an undirected graph; values and loops are ignored.

    Raises TypeError (A is no Matrix), DimensionMismatch (A not square), InvalidValue (an arc without its reverse).
    """
    C = first_and_second(oriented(A))
    return int(C.reduce_scalar(monoid.plus).new().value or 0)


def triangles(A: Matrix) -> Vector:
    """The triangles that each vertex lies in (INT64). Errors as `triangle_count`."""
    L = oriented(A)
    C = first_and_second(L)
    count = Vector(int, A.nrows, name="triangles")
    count[:] = 0
    count(binary.plus) << C.reduce_rowwise(monoid.plus)
    count(binary.plus) << C.reduce_columnwise(monoid.plus)
    C(L.S, replace) << plus_pair[int](L @ L)  # the same triangles, at their first and third vertex
    count(binary.plus) << C.reduce_columnwise(monoid.plus)
    return count


def oriented(A: Matrix) -> Matrix:
    """One arc of each edge, in the order that suits the graph."""
    undirected(A)
    degree = degrees(A)
    return by_degree(A, degree) if has_hubs(degree) else select.tril(A, -1).new(name="L")


def first_and_second(L: Matrix) -> Matrix:
    """The number of triangles at the arc from their first vertex to their second."""
    C = Matrix(int, L.nrows, L.ncols, name="C")
    C(L.S) << plus_pair[int](L @ L.T)
    return C


def has_hubs(degree: Vector) -> bool:
    """Whether the mean degree of some vertices with edges is far above their median."""
    drawn = np.random.default_rng(0).integers(0, max(degree.size, 1), SAMPLE if degree.size else 0)
    sample = degree[drawn].new().to_coo()[1]
    sample = sample[sample > 0]
    return bool(sample.size and sample.mean() > SKEW * np.median(sample))


def by_degree(A: Matrix, degree: Vector) -> Matrix:
    """The arcs to the end of higher degree; between equal ones, to the larger vertex number."""
    key = Vector(int, A.nrows, name="key")
    key << degree.apply(binary.times, right=A.nrows)
    key(binary.plus) << indexunary.index(degree)
    return upward(A, key)


def upward(A: Matrix, key: Vector) -> Matrix:
    """The arcs to the end of the larger key."""
    n, D = A.nrows, key.diag()
    row, column = Matrix(int, n, n, name="row"), Matrix(int, n, n, name="column")
    row(A.S) << any_first[int](D @ A)
    column(A.S) << any_second[int](A @ D)
    return select.valuene(binary.lt(row & column).new(), False).new(name="L")


ALGORITHMS["triangles"] = Algorithm(
    run=triangle_count, verify=verify.triangles, summary=lambda count: {"triangles": count}
)
