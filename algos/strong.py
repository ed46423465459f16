"""Strongly connected components: trimming, then colours from chosen vertices.

A vertex that no other one leads to, or that leads to no other one, is a component of its own, and is trimmed. Every
vertex left has a priority, none twice, and takes as colour the lowest among those that reach it. Where colour and
priority are one, the vertex is a root: its component are the vertices of its colour that reach it, which is a search
backwards. A vertex's colour is no higher than those of vertices that lead to it, so the highest colour of the search
among its successors tells whether one has its own. What is found is taken out, and the rest begins again; priorities at
random make rounds few, whatever the order of vertices.

Source: Orzan, "On Distributed Verification and Verified Distribution", 2004, for colours; McLendon, Hendrickson,
Plimpton, Rauchwerger, "Finding Strongly Connected Components in Distributed Graphs", JPDC 2005, for trimming; both as
in Slota, Rajamanickam, Madduri, IPDPS 2014.
"""

import numpy as np

from algos import verify
from algos._inputs import drawn, square
from algos.components import _counts, _sizes
from algos.runs import ALGORITHMS, Algorithm, Result
from gbgpu import Matrix, Vector, binary, indexunary, loop, program, replace, select
from gbgpu.semiring import any_pair, max_second, min_first, plus_pair


@program
def strongly_connected_components(A: Matrix) -> Vector:
    """The strongly connected component of every vertex, named by its smallest vertex.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values are ignored.

    Returns
    -------
    Vector
        Labels (INT64, size n, all entries): the smallest vertex number of the component.

    Raises
    ------
    TypeError
        If `A` is no Matrix.
    DimensionMismatch
        If `A` is not square.

    References
    ----------
    Orzan, "On Distributed Verification and Verified Distribution", 2004. McLendon, Hendrickson, Plimpton, Rauchwerger,
    "Finding Strongly Connected Components in Distributed Graphs", JPDC 2005. Slota, Rajamanickam, Madduri, IPDPS 2014.
    """
    n = square(A)
    A = select.offdiag(A).new(name="A")
    number = drawn(n, 0)
    labels, left = Vector(int, n, name="labels"), Vector(bool, n, name="left")
    left[:] = True
    while left.nvals:
        trim(A, left)
        colours = spread(A, left, number)
        found = backwards(A, colours, number)
        labels(found.S) << found
        left(~found.S, replace) << left
    labels(~labels.S) << number
    return smallest_of(labels)


def trim(A: Matrix, left: Vector) -> None:
    """Take out of `left` every vertex that no cycle leads to, then every one that leads to no cycle."""
    for side in (A, A.T):
        left(~generations(side, left).S, replace) << left


def generations(A: Matrix, left: Vector) -> Vector:
    """For each vertex of `left` (BOOL) that no cycle within `left` leads to: the most arcs (INT64) of a way to it.

    The vertices without arcs from others are generation 0. They are removed, which leaves others without such arcs.
    `waits` counts, for each vertex, the arcs from vertices that are not removed yet, so each arc is followed once
    (Kahn, "Topological Sorting of Large Networks", Communications of the ACM 1962).
    """
    n = left.size
    waits, generation, q, t = (Vector(int, n, name=name) for name in ("waits", "generation", "q", "t"))
    waits(left.S) << 0
    waits(left.S, binary.plus) << plus_pair[int](left @ A)
    q << select.valueeq(waits, 0)
    with loop() as it:
        generation(q.S) << it.index
        t << plus_pair[int](q @ A)
        t << binary.minus(waits & t)
        waits(t.S) << t
        q << select.valueeq(t, 0)
        it.until(q.nvals == 0)
    return generation


def spread(A: Matrix, left: Vector, number: Vector) -> Vector:
    """The lowest number that reaches each vertex, within those left."""
    n = left.size
    colours, q, t = (Vector(int, n, name=name) for name in ("colours", "q", "t"))
    stale = Vector(bool, n, name="stale")
    colours(left.S) << number
    q << colours
    with loop() as it:
        t(left.S, replace) << min_first[int](q @ A)
        stale << binary.ge(t & colours)
        q(~stale.V, replace) << t
        colours(binary.min) << q
        it.until(q.nvals == 0)
    return colours


def backwards(A: Matrix, colours: Vector, number: Vector) -> Vector:
    """The colours of the components of the roots."""
    n = colours.size
    found, q, t = (Vector(int, n, name=name) for name in ("found", "q", "t"))
    same = Vector(bool, n, name="same")
    same << binary.eq(colours & number)
    q(same.V) << colours
    with loop() as it:
        found(q.S) << q
        t(~found.S, replace) << max_second[int](A @ q)
        same << binary.eq(t & colours)
        q(same.V, replace) << t
        it.until(q.nvals == 0)
    return found


def smallest_of(labels: Vector) -> Vector:
    """The smallest vertex that has the same label, for each vertex."""
    n = labels.size
    least = Vector(int, 2 * n, name="least")
    least[:] = n
    least(binary.min)[labels] << indexunary.rowindex(labels, 0)
    return least[labels].new(name="labels") if n else labels


def heights(A: Matrix, component: np.ndarray) -> np.ndarray:
    """The most arcs of a way from each component, 0 .. k-1, through others: 0 where none leads out."""
    n, k = len(component), int(component.max(initial=-1)) + 1
    S = Matrix.from_coo(np.arange(n), component, True, nrows=n, ncols=k)
    C = select.offdiag(any_pair[bool](S.T @ any_pair[bool](A @ S).new()).new()).new()
    return generations(C.T, Vector.from_scalar(True, k)).to_dense(0)


ALGORITHMS["strong"] = Algorithm(
    run=strongly_connected_components,
    verify=verify.strongly_connected_components,
    summary=_counts,
    result=Result("vertex", "component"),
    top=Result("component", "size", _sizes),
)
