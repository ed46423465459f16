"""Triangles: each edge of an acyclic orientation, with what its ends have in common.

L holds one arc of each edge, to the end that comes later in some order. plus_pair(L @ L.T) at an edge counts the
vertices that come after both ends, so each triangle once, at its first two. Any order does; the one by degree leaves
hubs few arcs, which is where the work is. Nothing is renumbered. The mask says which end's arcs are marked, while those
of the other ends are looked up one after the other: arcs of vertices of higher degree are marked, as those that come
before them have fewer. For each vertex's own triangles all that an edge's two ends have in common is counted.

Source: Azad, Buluc, Gilbert, "Parallel Triangle Counting and Enumeration Using Matrix Algebra", 2015; the order by
degree where degrees are skewed, told by a sample, is that of Beamer, Asanovic, Patterson, the GAP benchmark, 2015.
"""

import numpy as np

from algos import verify
from algos._inputs import degrees, sample
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm
from gbgpu import Matrix, Vector, binary, indexunary, monoid, select
from gbgpu.semiring import Semiring, any_first, any_gt, any_lt, plus_pair, plus_second

SKEW = 1.3  # times the median degree, in the sample, from which the mean tells of hubs


def triangle_count(A: Matrix) -> int:
    """The number of triangles of an undirected graph.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    int
        Each triangle counts once.

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
    Azad, Buluc, Gilbert, "Parallel Triangle Counting and Enumeration Using Matrix Algebra", 2015.
    """
    undirected(A)
    degree = degrees(A)
    if has_hubs(degree):
        L, marked = by_degree(A, degree, any_lt, any_gt)
    else:
        L = marked = select.tril(A, -1).new(name="L")
    C = Matrix(int, L.nrows, L.ncols, name="C")
    C(marked.S) << plus_pair[int](L @ L.T)
    return int(C.reduce_scalar(monoid.plus).new().value or 0)


def triangles(A: Matrix) -> Vector:
    """The number of triangles that each vertex lies in.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    Vector
        Counts (INT64, size n, all entries).

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue
        As `triangle_count`.
    """
    undirected(A)
    A = select.offdiag(A).new(name="A")
    return at_vertices(A, degrees(A))


def at_vertices(A: Matrix, degree: Vector) -> Vector:
    """Triangles of each vertex of an undirected graph without loops."""
    S = at_edges(A, degree)
    count, ones = Vector(int, A.nrows, name="triangles"), Vector.from_scalar(1, A.nrows, name="ones")
    count[:] = 0
    count(binary.plus) << S.reduce_rowwise(monoid.plus)
    count(binary.plus, direction="push") << plus_second[int](ones @ S)  # S is used once: not worth a transpose
    return count.apply(binary.floordiv, right=2).new(name="triangles")  # each was there at two edges of the vertex


def at_edges(A: Matrix, degree: Vector) -> Matrix:
    """Triangles at each edge of a graph without loops, 0 included.

    An edge's count lies at the arc from its end of higher degree, whose neighbours are marked once for all others.
    """
    (H,) = by_degree(A, degree, any_gt)
    S = Matrix(int, A.nrows, A.ncols, name="S")
    S(H.S) << 0
    S(H.S, binary.plus) << plus_pair[int](A @ A.T)
    return S


def has_hubs(degree: Vector) -> bool:
    """Whether the mean degree of some vertices with edges is far above their median."""
    found = sample(degree)
    found = found[found > 0]
    return bool(found.size and found.mean() > SKEW * np.median(found))


def by_degree(A: Matrix, degree: Vector, *compared: Semiring) -> list[Matrix]:
    """As `oriented`, by degree; between equal ones, by vertex number."""
    key = Vector(int, A.nrows, name="key")
    key << degree.apply(binary.times, right=A.nrows)
    key(binary.plus) << indexunary.index(degree)
    return oriented(A, key, *compared)


def oriented(A: Matrix, key: Vector, *compared: Semiring) -> list[Matrix]:
    """The arcs to the end of the larger key for any_lt, to that of the smaller one for any_gt."""
    D = key.diag()
    row = any_first[int](D @ A).new(name="row")
    chosen = (each[int](row @ D).new(name="chosen") for each in compared)
    return [select.valuene(each, False).new(name="L") for each in chosen]


ALGORITHMS["triangles"] = Algorithm(
    run=triangle_count, verify=verify.triangles, summary=lambda count: {"triangles": count}
)
