"""Label propagation: a vertex takes the label that most of its neighbours have, so that communities come to agree.

F = A S counts labels, where S has a row for each vertex with an entry in the column of its label. The largest of
(count, label) in a row is the one to take, by one reduction of keys. Semi-synchronous: the vertices of one colour move
together, so no two neighbours do, and who has one of the most frequent labels stays; that comes to an end. Synchronous:
all move together, for so many rounds, and of equal ones the lowest label is taken.

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
from gbgpu import Matrix, Vector, indexunary, monoid, select
from gbgpu.semiring import plus_pair


def label_propagation(A: Matrix, synchronous: bool = False, max_iterations: int = 100) -> Vector:
    """For every vertex of an undirected graph a label (INT64, a vertex number); those of one label are a community.
    Values and loops are ignored.

    It ends when no label changes, or after max_iterations. Colours are given in the order of degrees, between equal
    ones of vertex numbers, so the result is always the same. Raises TypeError (A is no Matrix), DimensionMismatch (A
    not square), InvalidValue (an arc without its reverse; max_iterations below 1)."""
    n = undirected(A)
    check_limits(0, max_iterations)
    A = select.offdiag(A).new(name="A")
    classes = [np.arange(n)] if synchronous else color_classes(A)
    rows = [(ids, A if len(ids) == n else A[ids, :].new(name="rows")) for ids in classes]
    labels = np.arange(n)
    for _ in range(max_iterations):
        before = labels.copy()
        for ids, part in rows:
            found, frequent = most_frequent(part, labels, ids, lowest=synchronous)
            labels[ids[found]] = frequent
        if np.array_equal(labels, before):
            break
    return Vector.from_dense(labels, name="labels")


def color_classes(A: Matrix) -> list[np.ndarray]:
    """The vertices of each colour, those of a neighbour or more."""
    n = A.nrows
    degree = degrees(A).to_dense()
    order = Vector.from_dense(degree * n + n - 1 - np.arange(n))
    color = greedy_color(A, "jones-plassmann", order=order).to_dense()
    return [np.flatnonzero((color == c) & (degree > 0)) for c in range(int(color.max(initial=-1)) + 1)]


def most_frequent(part: Matrix, labels: np.ndarray, ids: np.ndarray, lowest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(rows with neighbours, the label that most of them have): the lowest, or else the own one, or the highest."""
    n = part.ncols
    S = Matrix.from_coo(np.arange(n), labels, True, nrows=n, ncols=n, name="S")
    F = plus_pair[int](part @ S).new(name="F")
    best = F.apply(by_lowest if lowest else by_highest, right=n).new().reduce_rowwise(monoid.max).new()
    found, keys = best.to_coo()
    count, label = keys // n, keys % n
    if lowest:
        return found, n - 1 - label
    mine = Matrix(int, part.nrows, n, name="mine")
    own = Matrix.from_coo(np.arange(len(ids)), labels[ids], True, nrows=part.nrows, ncols=n, name="own")
    mine(own.S) << F
    stays = mine.reduce_rowwise(monoid.max).new().to_dense(0)[found] == count
    return found, np.where(stays, labels[ids[found]], label)


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
