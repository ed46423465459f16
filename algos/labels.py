"""Label propagation: a vertex takes the label that most of its neighbours have, so that communities come to agree.

F = A S counts labels, where S has a row for each vertex with an entry in the column of its label. The largest of
(count, label) in a row is the one to take, by one reduction of keys. Semi-synchronous: the vertices of one colour move
together, so no two neighbours do; who has one of the most frequent labels stays, else the highest of them is taken;
that comes to an end. Synchronous: all move together, for so many rounds, and of equal ones the lowest label is taken.

Source: Raghavan, Albert, Kumara, "Near Linear Time Algorithm to Detect Community Structures", Physical Review E 2007;
semi-synchronous: Cordasco, Gargano, "Community Detection via Semi-synchronous Label Propagation Algorithms", 2010;
synchronous: LDBC Graphalytics, CDLP.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees
from algos._iterations import check_limits
from algos.coloring import greedy_color
from algos.components import _sizes, undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from gbgpu import Matrix, Vector, binary, indexunary, monoid, select, unary
from gbgpu.semiring import any_pair, plus_first


def label_propagation(A: Matrix, synchronous: bool = False, max_iterations: int = 100) -> Vector:
    """Communities of an undirected graph: each vertex takes the label that most of its neighbours have.

    By default the vertices of one colour move together. The result is always the same.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    synchronous : bool
        Whether all vertices move together.
    max_iterations : int
        It ends when no label changes, or after so many iterations; 1 or more.

    Returns
    -------
    Vector
        Labels (INT64, size n, all entries), which are vertex numbers; vertices of one label are a community.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.
    InvalidValue
        If an arc has no reverse, or `max_iterations` is below 1.

    References
    ----------
    Raghavan, Albert, Kumara, "Near Linear Time Algorithm to Detect Community Structures", Physical Review E 2007.
    Semi-synchronous: Cordasco, Gargano, "Community Detection via Semi-synchronous Label Propagation Algorithms", 2010.
    Synchronous: LDBC Graphalytics, CDLP.
    """
    n = undirected(A)
    check_limits(0, max_iterations)
    A = unary.one(select.offdiag(A)).new(dtype=int, name="A")
    if synchronous:
        parts = [(np.arange(n), A)]
    else:
        own = with_own(A)
        parts = [(ids, own[ids, :].new(name="part")) for ids in color_classes(A)]
    labels, lines, stale = np.arange(n), np.arange(n + 1), np.zeros(n, bool)  # stale: a neighbour's label has changed
    for ids, _ in parts:
        stale[ids] = True
    S: Matrix | None = None  # the labels, one a row, until they change
    for _ in range(max_iterations):
        if not stale.any():
            break
        for ids, part in parts:
            if not stale[ids].any():
                continue
            if S is None:
                S = Matrix.from_csr(lines, labels, True, ncols=n, name="S")
            F = plus_first[int](part @ S).new(name="F")
            best = F.apply(by_lowest if synchronous else by_highest, right=n).new().reduce_rowwise(monoid.max).new()
            where, keys = best.to_coo()
            stale[ids], ids = False, ids[where]
            found = n - 1 - keys % n if synchronous else keys % n
            moved = ids[labels[ids] != found]
            labels[ids] = found
            if len(moved):
                S = None
                changed = Vector.from_coo(moved, True, size=n)
                stale[any_pair(changed @ A).new().to_coo()[0]] = True
    return Vector.from_dense(labels, name="labels")


def with_own(A: Matrix) -> Matrix:
    """Each arc 2, and 1 for the vertex itself: of the most frequent labels its own counts most."""
    own = A.apply(binary.times, right=2).new(name="own")
    own(binary.plus) << Vector.from_scalar(1, A.nrows).diag()
    return own


def color_classes(A: Matrix) -> list[np.ndarray]:
    """The vertices of each colour, those of a neighbour or more."""
    n = A.nrows
    degree = degrees(A).to_dense()
    order = Vector.from_dense(degree * n + n - 1 - np.arange(n))
    # Speculation repeats a round for each vertex of a chain whose numbers ascend.
    color = greedy_color(A, "jones-plassmann", order=order).to_dense()
    return [np.flatnonzero((color == c) & (degree > 0)) for c in range(int(color.max(initial=-1)) + 1)]


def check_labels(A: Matrix, labels: Vector) -> None:
    """No vertex has neighbours of which more have another label."""
    label, present = verify.dense(labels, -1)
    verify.check(present, "presence: a vertex without a label")
    n = A.nrows
    verify.check((label >= 0) & (label < n), "label: no vertex")
    rows, cols, _ = A.to_coo()
    rows, cols = rows[rows != cols], cols[rows != cols]
    keys, counts = np.unique(rows * n + label[cols], return_counts=True)
    most, own = np.zeros(n, int), np.zeros(n, int)
    np.maximum.at(most, keys // n, counts)
    mine = label[keys // n] == keys % n
    own[keys[mine] // n] = counts[mine]
    verify.check(own == most, "frequency: more neighbours have another label")


def _counts(labels: Vector) -> dict[str, Any]:
    sizes = _sizes(labels).to_coo()[1]
    return {"communities": sizes.size, "largest": sizes.max(initial=0)}


by_highest = indexunary.register_anonymous(lambda x, i, j, n: x * n + j, "by_highest")
by_lowest = indexunary.register_anonymous(lambda x, i, j, n: x * n + n - 1 - j, "by_lowest")

ALGORITHMS["labels"] = Algorithm(
    run=label_propagation,
    verify=check_labels,
    summary=_counts,
    result=Result("vertex", "label"),
    top=Result("label", "size", _sizes),
    rehearse=lambda A: label_propagation(A, True, 2),
)
