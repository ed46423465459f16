"""How alike two vertices are, by the neighbours that they have in common.

At the edges of a graph: the triangles at an edge are what its ends have in common, their degrees are the rest. For
pairs that are given: a product of A with itself inside a mask that has them; a common neighbour counts 1, or what its
degree says.

Source: Jaccard, "The Distribution of the Flora in the Alpine Zone", New Phytologist 1912; overlap: Szymkiewicz 1934,
Simpson 1960; the indices of pairs as in Liben-Nowell, Kleinberg, "The Link-Prediction Problem for Social Networks",
JASIST 2007, and Zhou, Lü, Zhang, "Predicting Missing Links via Local Information", European Physical Journal B 2009.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees, row_lengths, vertex
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm
from algos.truss import support
from gbgpu import Matrix, Vector, binary, select
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import any_first, any_second, plus_first


def jaccard(A: Matrix) -> Matrix:
    """The Jaccard coefficient of the ends of every edge: common neighbours over all neighbours.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    Matrix
        Coefficients (FP64, n x n) at both arcs of each edge, loops left out.

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
    Jaccard, "The Distribution of the Flora in the Alpine Zone", New Phytologist 1912.
    """
    S, tails, heads = _ends(A)
    either = binary.minus(binary.plus(tails & heads).new() & S).new()
    return binary.truediv(S & either).new(dtype=float, name="jaccard")


def overlap(A: Matrix) -> Matrix:
    """The overlap coefficient of the ends of every edge: common neighbours over the smaller degree.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.

    Returns
    -------
    Matrix
        Coefficients (FP64, n x n) at both arcs of each edge, loops left out.

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue
        As `jaccard`.

    References
    ----------
    Szymkiewicz 1934; Simpson 1960.
    """
    S, tails, heads = _ends(A)
    return binary.truediv(S & binary.min(tails & heads).new()).new(dtype=float, name="overlap")


def _ends(A: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """At each edge: the neighbours in common, and the degrees of the two ends."""
    undirected(A)
    S = support(A)
    D = degrees(S).diag()
    return S, any_first[int](D @ S).new(name="tails"), any_second[int](S @ D).new(name="heads")


def common_neighbors(A: Matrix, pairs: Any) -> Vector:
    """The number of neighbours that each of the given pairs of vertices has in common.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    pairs : array of int
        The pairs, k x 2.

    Returns
    -------
    Vector
        Counts (FP64, size k, all entries).

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `pairs` are not whole numbers.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If an arc has no reverse, or `pairs` has another shape.
    IndexOutOfBound
        If a pair has a number that is not a vertex of `A`.

    References
    ----------
    Liben-Nowell, Kleinberg, "The Link-Prediction Problem for Social Networks", JASIST 2007.
    """
    return _between(A, pairs, lambda degree: np.ones(len(degree)))


def adamic_adar(A: Matrix, pairs: Any) -> Vector:
    """The Adamic-Adar index of pairs: the sum of 1 / log(degree) over their common neighbours.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    pairs : array of int
        The pairs, k x 2.

    Returns
    -------
    Vector
        Indices (FP64, size k, all entries).

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue, IndexOutOfBound
        As `common_neighbors`.

    References
    ----------
    Liben-Nowell, Kleinberg, "The Link-Prediction Problem for Social Networks", JASIST 2007.
    """
    return _between(A, pairs, lambda degree: 1 / np.log(degree))


def resource_allocation(A: Matrix, pairs: Any) -> Vector:
    """The resource allocation index of pairs: the sum of 1 / degree over their common neighbours.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    pairs : array of int
        The pairs, k x 2.

    Returns
    -------
    Vector
        Indices (FP64, size k, all entries).

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue, IndexOutOfBound
        As `common_neighbors`.

    References
    ----------
    Zhou, Lü, Zhang, "Predicting Missing Links via Local Information", European Physical Journal B 2009.
    """
    return _between(A, pairs, lambda degree: 1 / degree)


def jaccard_coefficient(A: Matrix, pairs: Any) -> Vector:
    """The Jaccard coefficient of pairs: common neighbours over all neighbours of either.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    pairs : array of int
        The pairs, k x 2.

    Returns
    -------
    Vector
        Coefficients (FP64, size k, all entries); 0 if neither has a neighbour.

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue, IndexOutOfBound
        As `common_neighbors`.

    References
    ----------
    Liben-Nowell, Kleinberg, "The Link-Prediction Problem for Social Networks", JASIST 2007.
    """
    both, sums = common_neighbors(A, pairs).to_dense(), _of_ends(A, pairs, np.add)
    either = sums - both
    return Vector.from_dense(np.divide(both, either, out=np.zeros(len(both)), where=either > 0))


def preferential_attachment(A: Matrix, pairs: Any) -> Vector:
    """The product of the degrees of each of the given pairs of vertices.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    pairs : array of int
        The pairs, k x 2.

    Returns
    -------
    Vector
        Products (FP64, size k, all entries).

    Raises
    ------
    TypeError, DimensionMismatch, InvalidValue, IndexOutOfBound
        As `common_neighbors`.

    References
    ----------
    Liben-Nowell, Kleinberg, "The Link-Prediction Problem for Social Networks", JASIST 2007.
    """
    return Vector.from_dense(_of_ends(A, pairs, np.multiply))


def _of_ends(A: Matrix, pairs: Any, op: Any) -> np.ndarray:
    first, second = _checked(pairs, undirected(A))
    degree = degrees(select.offdiag(A).new()).to_dense().astype(float)
    return op(degree[first], degree[second])


def _between(A: Matrix, pairs: Any, counts: Any) -> Vector:
    """The sum over common neighbours of what counts(degree) gives them."""
    n = undirected(A)
    first, second = _checked(pairs, n)
    A = select.offdiag(A).new(name="A")
    where, degree = row_lengths(A).new().to_coo()
    with np.errstate(divide="ignore"):  # log(1): of a single neighbour, which only a vertex and itself have in common
        D = Vector.from_coo(where, counts(degree.astype(float)), float, size=n).diag()
    weights = any_second[float](A @ D).new(name="weights")
    keys, place = np.unique(first * n + second, return_inverse=True)
    M = Matrix.from_coo(keys // max(n, 1), keys % max(n, 1), 0.0, float, nrows=n, ncols=n, name="M")
    M(M.S, binary.plus) << plus_first[float](weights @ A.T)
    return Vector.from_dense(M.to_coo()[2][place])


def _checked(pairs: Any, n: int) -> np.ndarray:
    """Both columns."""
    listed = np.asarray(pairs)
    if not listed.size:
        return np.zeros((2, 0), int)
    if listed.ndim != 2 or listed.shape[1] != 2:
        raise InvalidValue(message("pairs of vertices, k x 2", f"the shape {listed.shape}"))
    if listed.dtype.kind not in "iu":
        raise TypeError(message("pairs of vertex numbers", listed.dtype))
    vertex(int(listed.min()), n)
    vertex(int(listed.max()), n)
    return listed.T.astype(int)


def check_jaccard(A: Matrix, found: Matrix) -> None:
    """What SciPy counts at the edges."""
    rows, cols, part = found.to_coo()
    pattern = verify.edges(A)
    theirs = pattern.tocoo()
    same = len(rows) == theirs.nnz and (rows == theirs.row).all() and (cols == theirs.col).all()
    verify.check(np.array([same]), "presence: an edge without a number, or a number without an edge", np.array([0]))
    both = verify.supports(pattern) + pattern  # one more, so that there is one everywhere
    degree = np.diff(pattern.indptr)
    common = both.tocsr().sorted_indices().data - 1
    right = common / (degree[rows] + degree[cols] - common)
    verify.check(np.isclose(part, right, rtol=1e-12, atol=0), "jaccard: not what SciPy counts", rows)


def _summary(found: Matrix) -> dict[str, Any]:
    parts = found.to_coo()[2]
    return {"average": float(parts.mean()) if parts.size else 0.0, "highest": float(parts.max(initial=0.0))}


ALGORITHMS["jaccard"] = Algorithm(
    run=jaccard, verify=check_jaccard, summary=_summary, rehearse=lambda A: (overlap(A), adamic_adar(A, [(0, 1)]))
)
