"""Colouring: a colour for each vertex, so that no edge joins two of one colour.

Vertices have an order: the higher degree first, between equal ones as drawn at random. Each takes the lowest colour
that is not forbidden, that no neighbour has: a word of 64 colours, whose forbidden ones are a bit-or product. Of
neighbours that try the same one the first in the order gets it (speculative), or only those try whose neighbours
before them all have their colour (Jones-Plassmann: what the sequential rule gives in this order). Who finds all 64
forbidden waits for the next 64.

Source: Jones, Plassmann, "A Parallel Graph Coloring Heuristic", SIAM Journal on Scientific Computing 1993; Gebremedhin,
Manne, "Scalable Parallel Graph Coloring Algorithms", Concurrency 2000, for speculation; the order by degree: Welsh,
Powell, "An Upper Bound for the Chromatic Number of a Graph", 1967.
"""

from typing import Any

import numpy as np

from algos import verify
from algos._inputs import degrees, drawn
from algos.closeness import bits_set
from algos.components import undirected
from algos.runs import ALGORITHMS, Algorithm, Result
from algos.triangles import upward
from gbgpu import Matrix, Vector, binary, loop, replace, select, unary
from gbgpu.errors import DimensionMismatch, InvalidValue, message
from gbgpu.semiring import any_pair, bor_first, bor_second

COLORS = 64  # in a word
FEW, SMALL = 16, 1 << 14  # of more than SMALL vertices, the last one of FEW go on as a graph of their own
METHODS = "speculative", "jones-plassmann"


def greedy_color(A: Matrix, method: str = "speculative", *, order: Vector | None = None, seed: int = 0) -> Vector:
    """Colours (INT64, from 0 on) of an undirected graph; values and loops are ignored. The same on all devices.

    `method`: "speculative", in few rounds, or "jones-plassmann". `order`: a different number for each vertex, the
    largest first, in place of the one by degrees, whose equal ones are drawn by `seed`. Raises TypeError (A is no
    Matrix), DimensionMismatch (A not square; order), InvalidValue (an arc without its reverse; method)."""
    n = undirected(A)
    if method not in METHODS:
        raise InvalidValue(message(f"a method among {', '.join(METHODS)}", repr(method)))
    A = select.offdiag(A).new(name="A")
    first = upward(A, by_degree(A, seed) if order is None else checked(order, n))
    color, vertices = Vector(int, n, name="color"), slice(None)  # type: tuple[Vector, Any]
    for base in range(0, n, COLORS):
        forbidden = Vector("UINT64", A.nrows, name="forbidden")
        forbidden[:] = 0
        bits = colored(A, first, forbidden, method == METHODS[0])
        color[vertices] << binary.plus(place(bits), base)
        rest = missing(bits)
        if not len(rest):
            break
        A, first, vertices = *among(rest, A, first), vertices[rest] if base else rest
    return color


def colored(A: Matrix, first: Matrix, forbidden: Vector, speculative: bool) -> Vector:
    """The colours, a bit each, of those that find one among 64. first: the arcs to neighbours that come before;
    forbidden: the colours of other neighbours than these vertices, to which theirs are added."""
    n = A.nrows
    bits, tried, clash = (Vector("UINT64", n, name=name) for name in ("bits", "tried", "clash"))
    left, few = Vector(bool, n, name="left"), n // FEW if n > SMALL else 0
    left[:] = True
    with loop() as it:
        forbidden(left.S, binary.bor) << bor_first["UINT64"](tried @ A)
        tried << lowest_free(binary.second(left & forbidden))
        tried << select.valuene(tried, 0)
        left(tried.S, replace) << left
        if speculative:
            clash(tried.S, replace) << bor_second["UINT64"](first @ tried)
            clash << binary.band(clash & tried)
            tried(~clash.V, replace) << tried
        else:
            clash(tried.S, replace) << any_pair["UINT64"](first @ tried)
            tried(~clash.S, replace) << tried
        bits(tried.S) << tried
        left(~tried.S, replace) << left
        it.until((tried.nvals == 0) | (left.nvals < few))
    if left.nvals:
        forbidden(left.S, binary.bor) << bor_first["UINT64"](tried @ A)
        rest = left.to_coo()[0]
        bits[rest] << colored(*among(rest, A, first), forbidden[rest].new(), speculative)
    return bits


def among(vertices: np.ndarray, *matrices: Matrix) -> list[Matrix]:
    """The arcs between some vertices."""
    return [A[vertices, vertices].new() for A in matrices]


def missing(bits: Vector) -> np.ndarray:
    """The vertices that have no value."""
    left = Vector(bool, bits.size, name="left")
    left(~bits.S) << True
    return left.to_coo()[0]


def by_degree(A: Matrix, seed: int) -> Vector:
    numbers = drawn(A.nrows, seed)
    return binary.plus(degrees(A).apply(binary.times, right=2 * A.nrows) & numbers).new(name="order")


def checked(order: Vector, n: int) -> Vector:
    if order.size != n:
        raise DimensionMismatch(message(f"an order of size {n}", order.size))
    if order.nvals < n or len(np.unique(order.to_coo()[1])) < n:
        raise InvalidValue(message("a different number for each vertex", "one twice, or a vertex without one"))
    return order


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

COLOR = Result("vertex", "color")

ALGORITHMS["coloring"] = Algorithm(
    run=greedy_color,
    verify=check_coloring,
    summary=_summary,
    result=COLOR,
    rehearse=lambda A: greedy_color(A, "jones-plassmann"),
)
