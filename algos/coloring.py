"""Colouring: a colour for each vertex, so that no edge joins two of one colour.

Vertices have an order: the higher degree first, between equal ones as drawn at random. Each takes the lowest colour
that no neighbour before it has: what the sequential rule gives in this order. Colours are a bit each of a word, 64 at a
time, so those that are taken are a bit-or product. Who finds all 64 taken waits for the next 64.

Either all do so at once, and again as long as any colour changes (speculative): those of high degree, which have few
before them, come to rest first, so the others join once these have, at a quarter of the highest degree left. Or only
those do whose neighbours before them all have their colour (Jones-Plassmann).

Source: Jones, Plassmann, "A Parallel Graph Coloring Heuristic", SIAM Journal on Scientific Computing 1993; Gebremedhin,
Manne, "Scalable Parallel Graph Coloring Algorithms", Concurrency 2000, for speculation; the order by degree: Welsh,
Powell, "An Upper Bound for the Chromatic Number of a Graph", 1967; degrees by their logarithm: Hasenplaugh, Kaler,
Schardl, Leiserson, "Ordering Heuristics for Parallel Graph Coloring", SPAA 2014.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees, drawn
from algos.closeness import bits_set
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from algos.triangles import upward
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, replace, select, unary
from gbgpu.errors import DimensionMismatch, InvalidValue, message
from gbgpu.semiring import any_pair, bor_second

COLORS = 64  # in a word
SHARE, FEW, MANY = 64, 4, 64  # above 1/SHARE of the highest degree, and these less than 1/FEW of all, MANY at least: a
# graph of their own
METHODS = "speculative", "jones-plassmann"


def greedy_color(A: Matrix, method: str = "speculative", *, order: Vector | None = None, seed: int = 0) -> Vector:
    """Colours (INT64, from 0 on) of an undirected graph; values and loops are ignored. The same by each method and on
    all devices.

    `method`: "speculative", in few rounds, or "jones-plassmann". `order`: a different number for each vertex, the
    largest first, in place of the one by degrees, whose equal ones are drawn by `seed`. Raises TypeError (A is no
    Matrix), DimensionMismatch (A not square; order), InvalidValue (an arc without its reverse; method)."""
    n = undirected(A)
    if method not in METHODS:
        raise InvalidValue(message(f"a method among {', '.join(METHODS)}", repr(method)))
    order = by_degree(A, seed) if order is None else checked(order, n)
    first, color, vertices = upward(A, order), Vector(int, n, name="color"), slice(None)  # type: tuple[Matrix, Vector, Any]
    for base in range(0, n, COLORS):
        bits = (speculated if method == METHODS[0] else in_turn)(first, order)
        found = select.valuene(bits, 0).new(name="found")
        color[vertices] << binary.plus(place(found), base)
        if found.nvals == found.size:
            break
        left = np.setdiff1d(np.arange(found.size), found.to_coo()[0], assume_unique=True)
        first, order, vertices = *among(left, first, order), vertices[left] if base else left
    return color


def speculated(first: Matrix, order: Vector) -> Vector:
    """Of a word of colours one for each vertex, as a bit, 0 where all are taken. first: the arcs to neighbours that
    come before, by `order`, the largest first, positive where somebody is before."""
    n = first.nrows
    bits, taken, moved = (Vector("UINT64", n, name=name) for name in ("bits", "taken", "moved"))
    ahead, now = (Vector(int, n, name=name) for name in ("ahead", "now"))
    limit = Scalar.from_value(0, int, name="limit")
    bits[:] = 1  # who has nobody before has the first colour
    ahead << first.reduce_rowwise(monoid.any)
    ahead(ahead.S) << order
    bits(ahead.S) << 0
    limit << order.reduce(monoid.max) // SHARE
    now << select.valuegt(ahead, limit)
    if MANY < now.nvals < n // FEW:  # nobody else comes before one of these
        top = select.valuegt(order, limit).new().to_coo()[0]
        bits[top] << speculated(*among(top, first, order))
        ahead << select.valuele(ahead, limit)
    with loop() as it:
        with it.when(moved.nvals == 0):
            limit << ahead.reduce(monoid.max, allow_empty=False) // 4
            now << select.valuegt(ahead, limit)
            ahead << select.valuele(ahead, limit)
        taken(now.S, replace) << bor_second["UINT64"](first @ bits)
        moved << change(taken & bits)
        moved << select.valuene(moved, 0)
        bits(binary.bxor) << moved
        it.until((moved.nvals == 0) & (ahead.nvals == 0))
    return bits


def in_turn(first: Matrix, order: Vector) -> Vector:
    """The same; whoever has nobody before it that is left is next."""
    n = first.nrows
    bits, taken = (Vector("UINT64", n, name=name) for name in ("bits", "taken"))
    left, ready, waits = (Vector(bool, n, name=name) for name in ("left", "ready", "waits"))
    bits[:] = 1
    left << first.reduce_rowwise(monoid.any)
    bits(left.S) << 0
    with loop() as it:
        waits(left.S, replace) << any_pair(first @ left)
        ready(~waits.S, replace) << left
        taken(ready.S, replace) << bor_second["UINT64"](first @ bits)
        bits(taken.S) << lowest_free(taken)
        left(waits.S, replace) << left
        it.until(left.nvals == 0)
    return bits


def among(vertices: np.ndarray, first: Matrix, order: Vector) -> tuple[Matrix, Vector]:
    """The same of some vertices alone."""
    return first[vertices, vertices].new(name="first"), order[vertices].new(name="order")


def by_degree(A: Matrix, seed: int) -> Vector:
    numbers = drawn(A.nrows, seed)
    return binary.plus(degrees(A).apply(binary.times, right=2 * A.nrows) & numbers).new(name="order")


def checked(order: Vector, n: int) -> Vector:
    """The same order by numbers from 1 on."""
    if order.size != n:
        raise DimensionMismatch(message(f"an order of size {n}", order.size))
    ids, places = np.unique(order.to_coo()[1], return_inverse=True)
    if order.nvals < n or len(ids) < n:
        raise InvalidValue(message("a different number for each vertex", "one twice, or a vertex without one"))
    return Vector.from_dense(places + 1)


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
