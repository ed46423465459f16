"""Colouring: a colour for each vertex, so that no edge joins two of one colour.

Vertices have an order: the higher degree first, between equal ones as drawn at random. Each takes the lowest colour
that no neighbour before it has: what the sequential rule gives in this order. Colours are a bit each of a word, 32 at a
time, so those that are taken are a bit-or product. Who finds all 32 taken waits for the next 32.

Either all do so at once, again and again until no colour changes (speculative). Whoever comes first in the order comes
to rest first, so that part does so as a graph of its own before, and a first part of it before that. Or only those do
whose neighbours before them all have their colour (Jones-Plassmann).

Source: Jones, Plassmann, "A Parallel Graph Coloring Heuristic", SIAM Journal on Scientific Computing 1993; Gebremedhin,
Manne, "Scalable Parallel Graph Coloring Algorithms", Concurrency 2000, for speculation; the order by degree: Welsh,
Powell, "An Upper Bound for the Chromatic Number of a Graph", 1967. That few rounds reach what the sequential rule
gives: Hasenplaugh, Kaler, Schardl, Leiserson, "Ordering Heuristics for Parallel Graph Coloring", SPAA 2014.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees, drawn, sample
from algos.closeness import bits_set
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from algos.triangles import upward
from gbgpu import Matrix, Vector, binary, loop, monoid, replace, select, unary
from gbgpu.errors import DimensionMismatch, InvalidValue, message
from gbgpu.semiring import bor_first, bor_second, plus_pair

COLORS = 32  # in a word
# Of more than SMALL vertices the first one of SHARE in the order, and what a word of colours left, if it is less than
# one of FEW, are graphs of their own.
SMALL, SHARE, FEW = 1 << 14, 16, 4
METHODS = "speculative", "jones-plassmann"
Words = Callable[[Matrix, Vector], Iterator[Vector]]


def greedy_color(A: Matrix, method: str = "speculative", *, order: Vector | None = None, seed: int = 0) -> Vector:
    """A colour for each vertex of an undirected graph, so that no edge joins two of one colour.

    Each vertex has the lowest colour that no neighbour before it has. The result is the same by each method and on all
    devices.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n, with a symmetric pattern. Values and loops are ignored.
    method : str
        "speculative", which takes few rounds, or "jones-plassmann".
    order : Vector, optional
        A different number for each vertex, size n; the largest is coloured first. By default the vertices of higher
        degree.
    seed : int
        Draws the order of vertices of one degree, if `order` is not given.

    Returns
    -------
    Vector
        Colours from 0 on (INT64, size n, all entries).

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `order` no Vector.
    DimensionMismatch
        If `A` is not square, or the size of `order` is not n.
    InvalidValue
        If an arc has no reverse, `method` is another, or `order` has a number twice or a vertex without one.

    References
    ----------
    Jones, Plassmann, "A Parallel Graph Coloring Heuristic", SIAM Journal on Scientific Computing 1993. Gebremedhin,
    Manne, "Scalable Parallel Graph Coloring Algorithms", Concurrency 2000. Welsh, Powell, "An Upper Bound for the
    Chromatic Number of a Graph", 1967. Hasenplaugh, Kaler, Schardl, Leiserson, "Ordering Heuristics for Parallel Graph
    Coloring", SPAA 2014.
    """
    n = undirected(A)
    if method not in METHODS:
        raise InvalidValue(message(f"a method among {', '.join(METHODS)}", repr(method)))
    A = select.offdiag(A).new(name="A")
    order = by_degree(A, seed) if order is None else checked(order, n)
    return colored(upward(A, order), order, speculated if method == METHODS[0] else in_turn)


def colored(first: Matrix, order: Vector, words: Words) -> Vector:
    """Colours of a graph, from the arcs to neighbours that come before.

    Vertices come in the order of the numbers in `order`, the largest first.
    """
    n = first.nrows
    color = Vector(int, n, name="color")
    for word, bits in enumerate(words(first, order) if n else ()):
        color(bits.S) << binary.plus(place["UINT64"](bits), COLORS * word)
        if color.nvals == n:
            break
        if n > SMALL and n - color.nvals < n // FEW:
            left = Vector(bool, n, name="left")
            left(~color.S) << True
            rest = left.to_coo()[0]
            color[rest] << binary.plus(colored(*among(rest, first, order), words), COLORS * (word + 1))
            break
    return color


def speculated(first: Matrix, order: Vector) -> Iterator[Vector]:
    """A word of colours after another: those that get one of these, as a bit."""
    n = first.nrows
    bits, taken, moved = (Vector("UINT32", n, name=name) for name in ("bits", "taken", "moved"))
    left = Vector(bool, n, name="left")
    bits[:] = 1  # who has nobody before has the first colour
    left << first.reduce_rowwise(monoid.any)
    bits(left.S) << 0
    if n > SMALL:  # nobody else comes before one of the first in the order
        limit = np.quantile(sample(order), 1 - 1 / SHARE, method="lower").item()
        ids = select.valuegt(order, limit).new(name="top").to_coo()[0]
        bits(binary.second)[ids] << next(speculated(*among(ids, first, order)))
    while True:
        with loop() as it:
            taken << bor_second["UINT32"](first @ bits)
            moved(left.S, replace) << change(taken & bits)
            moved << select.valuene(moved, 0)
            bits(binary.bxor) << moved
            it.until(moved.nvals == 0)
        found = select.valuene(bits, 0).new(name="found")
        yield found
        left(~found.S, replace) << left
        bits[:] = 0


def in_turn(first: Matrix, order: Vector) -> Iterator[Vector]:
    """The same as `speculated`, where a vertex is next when no vertex before it is left.

    A vertex that finds nothing free is not waited for. `waits` counts, for each vertex, those before it that have not
    had their turn, so each arc is followed once.
    """
    n, later = first.nrows, first.T.new(name="later")
    bits, taken, free, t = (Vector("UINT32", n, name=name) for name in ("bits", "taken", "free", "t"))
    waits, q, fewer = (Vector(int, n, name=name) for name in ("waits", "q", "fewer"))
    left = Vector(bool, n, name="left")
    left[:] = True
    while True:
        taken[:] = 0
        waits(left.S, replace) << 0
        waits(left.S, binary.plus) << plus_pair[int](first @ left)
        q << select.valueeq(waits, 0)
        with loop() as it:
            free << lowest_free(binary.second(q & taken))
            bits(free.S) << free
            t << bor_first["UINT32"](free @ later)
            taken(binary.bor) << t
            fewer << plus_pair[int](q @ later)
            fewer << binary.minus(waits & fewer)
            waits(fewer.S) << fewer
            q << select.valueeq(fewer, 0)
            it.until(q.nvals == 0)
        found = select.valuene(bits, 0).new(name="found")
        yield found
        left(~found.S, replace) << left
        bits.clear()


def among(vertices: np.ndarray, first: Matrix, order: Vector) -> tuple[Matrix, Vector]:
    """The same of some vertices alone."""
    return first[vertices, vertices].new(name="first"), order[vertices].new(name="order")


def by_degree(A: Matrix, seed: int) -> Vector:
    """The default order: higher degrees are larger; those of one degree are drawn by `seed`."""
    numbers = drawn(A.nrows, seed)
    return binary.plus(degrees(A).apply(binary.times, right=2 * A.nrows) & numbers).new(name="order")


def checked(order: Vector, n: int) -> Vector:
    """The ranks of the numbers in `order`; errors as `greedy_color`."""
    if not isinstance(order, Vector):
        raise TypeError(message("a gbgpu Vector with a number for each vertex", type(order).__name__))
    if order.size != n:
        raise DimensionMismatch(message(f"an order of size {n}", order.size))
    numbers, places = np.unique(order.to_coo()[1], return_inverse=True)
    if order.nvals < n or len(numbers) < n:
        raise InvalidValue(message("a different number for each vertex", "one twice, or a vertex without one"))
    return Vector.from_dense(places)


def check_coloring(A: Matrix, color: Vector) -> None:
    """No edge joins two of one colour, and no vertex could have a lower one."""
    found, present = verify.dense(color, -1)
    verify.check(present, "presence: a vertex without a colour")
    rows, cols, _ = A.to_coo()
    rows, cols = rows[rows != cols], cols[rows != cols]
    verify.check(found[rows] != found[cols], "edge: both ends have one colour", rows)
    lower = found[cols] < found[rows]
    pairs = np.unique(np.stack([rows[lower], found[cols[lower]]]), axis=1)
    verify.check(np.bincount(pairs[0], minlength=A.nrows) == found, "greedy: a lower colour is free")


def _summary(color: Vector) -> dict[str, Any]:
    _, found = color.to_coo()
    return {"colors": int(found.max(initial=-1)) + 1, "most_frequent": int(np.bincount(found).max(initial=0))}


place = unary.register_anonymous(lambda x: bits_set(x - 1), "place")
lowest_free = unary.register_anonymous(lambda x: ~x & (x + 1), "lowest_free")  # 0: none
change = binary.register_anonymous(lambda taken, mine: ~taken & (taken + 1) ^ mine, "change")

COLOR = Result("vertex", "color")

ALGORITHMS["coloring"] = Algorithm(
    run=greedy_color,
    verify=check_coloring,
    summary=_summary,
    result=COLOR,
    rehearse=lambda A: greedy_color(A, "jones-plassmann"),
)
