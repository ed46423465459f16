"""Colouring: a colour for each vertex, so that no edge joins two of one colour.

Vertices have an order: the higher degree first, between equal ones as drawn at random. Each takes the lowest colour
that no neighbour before it has: what the sequential rule gives in this order. Colours are a bit each of a word, so
those that are taken are a bit-or product. A vertex that finds all colours of a word taken waits for the next word.

Either all vertices choose at once, again and again until no colour changes (speculative). The first vertices in the
order come to rest first. So a first part of them chooses until it rests, then as many again, and so on up to all: no
round looks at vertices that rest, or that could not come to rest yet. Of a large graph with hubs the first part is a
graph of its own, as it takes most of the rounds. Or only those vertices choose whose neighbours before them all have
their colour (Jones-Plassmann).

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
from algos.triangles import has_hubs, oriented
from gbgpu import Matrix, Scalar, Vector, agg, binary, loop, monoid, program, replace, select, unary
from gbgpu.errors import DimensionMismatch, InvalidValue, message
from gbgpu.semiring import any_lt, bor_first, bor_second, plus_pair

COLORS = 8, 16, 32, 64  # in a word
SMALL, SHORT = 1 << 14, 4  # vertices, and edges a vertex, up to which halving an order saves less than it takes
PARTS = 6  # times that an order is halved
LARGE = 1 << 19  # vertices from which on the hubs that are left by that are a graph of their own
METHODS = "speculative", "jones-plassmann"
Words = Callable[[Matrix, Vector, Vector, str], Iterator[Vector]]


@program
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
    (first,) = oriented(A, order, any_lt)
    return colored(first, order, speculated if method == METHODS[0] else in_turn)


def colored(first: Matrix, order: Vector, words: Words) -> Vector:
    """Colours of a graph, from the arcs to neighbours that come before.

    Vertices come in the order of the numbers in `order`, the largest first.
    """
    n = first.nrows
    color = Vector(int, n, name="color")
    if not n:
        return color
    before = first.reduce_rowwise(agg.count).new(name="before")
    most = before.reduce(monoid.max).new().value or 0  # a colour more than that is enough, so two words are, mostly
    colors = next((size for size in COLORS if most < 2 * size), COLORS[-1])
    for word, bits in enumerate(words(first, order, before, f"UINT{colors}")):
        color(bits.S) << binary.plus(place["UINT64"](bits), colors * word)
        if color.nvals == n:
            break
    return color


def speculated(first: Matrix, order: Vector, before: Vector, dtype: str) -> Iterator[Vector]:
    """A word of colours after another: those that get one of these, as a bit.

    `before` counts the arcs of each row of `first`. `part` numbers the parts of the order, of those that are left.
    """
    n, colors = first.nrows, int(dtype.removeprefix("UINT"))
    bits, taken, moved = (Vector(dtype, n, name=name) for name in ("bits", "taken", "moved"))
    part, now, k = Vector("INT8", n, name="part"), Vector("INT8", n, name="now"), Scalar("INT64", name="k")
    known = Vector(int, n, name="known")  # colours from those of this word on
    part(before.S) << 0
    limits = halves(order) if n > SMALL and first.nvals > SHORT * n else []
    for limit in limits:
        part(part.S, binary.plus) << order.apply(binary.le, right=limit)
    if limits and n > LARGE and has_hubs(before):  # hubs take most rounds: these pass over no others
        hubs = select.valuegt(order, limits[0]).new(name="hubs").to_coo()[0]
        among = first[hubs, hubs].new(name="first"), order[hubs].new(name="order")
        known[hubs] << colored(*among, speculated)
        part(~known.S, replace) << part
    bits[:] = 1  # who has nobody before has the first colour
    bits(before.S) << 0
    while True:
        if known.nvals:
            bits(binary.second) << as_bit(select.valuelt(known, colors))
            known << binary.minus(known, colors)
            known << select.valuege(known, 0)
        if part.nvals:
            k << 0
            now << select.valueeq(part, 0)
            with loop() as it:
                taken(now.S, replace) << bor_second[dtype](first @ bits)
                moved << change(taken & bits)
                moved << select.valuene(moved, 0)
                bits(binary.bxor) << moved
                with it.when(moved.nvals == 0):
                    k << k + 1
                    now << select.valueeq(part, k)
                it.until(k.value > len(limits))
        found = select.valuene(bits, 0).new(name="found")
        yield found
        part(~found.S, replace) << part
        bits[:] = 0


def halves(order: Vector) -> list[int]:
    """The numbers that the first half, quarter, ... 1 / 2**PARTS of the order are above, by a sample; lowest last."""
    shares = 1 - 0.5 ** np.arange(PARTS, 0, -1)
    return np.unique(np.quantile(sample(order, 1 << PARTS + 5), shares, method="lower"))[::-1].tolist()


def in_turn(first: Matrix, order: Vector, before: Vector, dtype: str) -> Iterator[Vector]:
    """The same as `speculated`, where a vertex is next when no vertex before it is left.

    A vertex that finds nothing free is not waited for. `waits` counts, for each vertex, those before it that have not
    had their turn, so each arc is followed once.
    """
    n, later = first.nrows, first.T.new(name="later")
    bits, taken, free, t = (Vector(dtype, n, name=name) for name in ("bits", "taken", "free", "t"))
    waits, q, fewer = (Vector(int, n, name=name) for name in ("waits", "q", "fewer"))
    left = Vector(bool, n, name="left")
    left[:] = True
    while True:
        taken[:] = 0
        waits(left.S, replace) << 0
        waits(left.S, binary.plus) << plus_pair[int](first @ left)
        q << select.valueeq(waits, 0)
        with loop() as it:
            free << lowest_free(binary.second[dtype](q & taken))
            bits(free.S) << free
            t << bor_first[dtype](free @ later)
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


as_bit = unary.register_anonymous(lambda color: 1 << color, "as_bit")
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
