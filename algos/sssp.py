"""Single-source shortest paths: rounds of relaxation that extend the near vertices only.

A vertex whose distance fell in the last round is near up to a limit, else far. Near ones are extended: t holds the
lengths of the paths one arc longer; those that are shorter than what is known are q, and each is near or far in its
turn. When no vertex is near, the limit rises by a step above the least distance that is left among the far ones. While
near vertices are many, all known distances are extended, which is quicker to look up, as almost every neighbour has
one, and leaves nothing far but q.

Where all arcs weigh the same they are counted, by a breadth-first search.

Where rounds would be many, as in road maps, `gb.fixpoint` finds the same distances without them.

Every vertex is near (Bellman-Ford) where few rounds reach all, as through hubs on a GPU, and where weights are
negative: without a negative cycle no shortest path has more than n - 1 arcs, so none is left after n rounds.

Parents are found after distances. The length of a path and the vertex before its end are packed into one number of 64
bits. A min-plus product of such numbers gives the least length, and of the vertices that give it the first.

Source: Davidson, Baxter, Garland, Owens, "Work-Efficient Parallel GPU Methods for Single-Source Shortest Paths", IPDPS
2014, near-far; Ben-Nun, Sutton, Pai, Pingali, "Groute", PPoPP 2017, without rounds; Bellman 1958, Ford 1956; as masked
min-plus products in Kepner, Gilbert, "Graph Algorithms in the Language of Linear Algebra", SIAM 2011.
"""

from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np

from algos import verify
from algos._inputs import rounds_are_cheap, row_lengths, square, vertex, without_rounds
from algos.bfs import levels_from, search
from algos.runs import ALGORITHMS, SOURCE, Algorithm, Result
from gbgpu import (
    Matrix,
    Scalar,
    Vector,
    binary,
    fixpoint,
    indexunary,
    loop,
    monoid,
    program,
    replace,
    select,
    semiring,
    unary,
)
from gbgpu.errors import InvalidValue, message
from gbgpu.semiring import any_eq, any_plus, min_plus

MANY = 16  # near vertices are many from a sixteenth of all
ROADS, FARTHEST = 8, 128  # a mean degree below which a graph is as thin as a road map; times there
LEAST, THIN = 2, 10  # where rounds cost what they reach: so many times, and further from this mean degree down
LONELY, CROWD, MEANS = 16, 256, 16  # near vertices that are few, and many; mean weights
SKEWED = 32  # a vertex of so many times the mean degree is a hub
# Above all lengths of paths. What is not reached begins at twice that; arcs of less than nothing do not bring it below.
NEVER = {"INT64": 1 << 61, "FP32": inf, "FP64": inf}


class Step(NamedTuple):
    """How far the limit of near distances rises when no vertex is near.

    It rises by `least` at first, and again after many vertices were near. After each round of few near vertices it
    rises twice as far, up to `most`.
    """

    least: float
    most: float


class Paths(NamedTuple):
    """Distances (size n) and the vertex before each on its path (INT64, size n)."""

    distances: Vector
    parents: Vector


def sssp(A: Matrix, source: int) -> Vector:
    """Lengths of the shortest paths from `source`.

    Parameters
    ----------
    A : Matrix
        Weights of arcs, n x n; negative ones are allowed. Every entry of a BOOL matrix weighs 1.
    source : int
        The vertex at which all paths begin.

    Returns
    -------
    Vector
        Distances, size n: 0 at the source, no entry where `source` does not reach. The dtype is that of `A` for FP32
        and FP64, else INT64.

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `source` is not a whole number.
    DimensionMismatch
        If `A` is not square.
    IndexOutOfBound
        If `source` is not a vertex of `A`.
    InvalidValue
        If a weight is NaN or -inf, if the sum of a path of integers may reach 2**61, or if the source reaches a
        negative cycle.

    References
    ----------
    Davidson, Baxter, Garland, Owens, "Work-Efficient Parallel GPU Methods for Single-Source Shortest Paths", IPDPS
    2014. Bellman 1958; Ford 1956.
    """
    n = square(A)
    sources = Vector(bool, size=n, name="sources")
    sources[vertex(source, n)] = True
    return paths_from(A, sources)


@program
def paths_from(A: Matrix, sources: Vector) -> Vector:
    """Lengths as of `sssp`, of the paths from any of `sources` (BOOL)."""
    n, A = sources.size, lengths_of(A)
    lowest, total = check_weights(A)
    dtype = A.dtype.name if A.dtype.name in ("FP32", "FP64") else "INT64"
    if one_weight(A, lowest, total):
        return levels_from(A, sources).apply(binary.times, right=lowest).new(dtype=dtype, name="d")
    d = Vector(dtype, size=n, name="d")
    d(sources.S) << 0
    if not relax(A, d, lowest, total, n):
        what = f"distances that still fall after {n} rounds"
        raise InvalidValue(message("no negative cycle within reach of the source", what))
    if dtype != "INT64" and total > float(np.finfo(d.dtype.np_type).max):  # paths of infinite length lead further
        d(binary.first) << levels_from(A, sources).apply(binary.second, right=inf)
    return d


def shortest_path_tree(A: Matrix, source: int) -> Paths:
    """Distances as of `sssp`, and the vertex before each on a shortest path.

    Parameters
    ----------
    A : Matrix
        Weights of arcs, n x n, as for `sssp`.
    source : int
        The root of the tree.

    Returns
    -------
    Paths
        `distances` as of `sssp`, and `parents` (INT64, size n); the source's parent is the source. Parents form a tree
        even if arcs of length 0 form cycles.

    Raises
    ------
    TypeError, DimensionMismatch, IndexOutOfBound, InvalidValue
        As `sssp`.

    Notes
    -----
    Two matrices as large as `A` are made, unless the length of a path and a vertex fit into one number of 64 bits. For
    that, weights must not be negative, and either

    - the type is an integer, paths are shorter than 2**32, and n is at most 2**31;
    - or it is FP32, distances are finite, and n is at most 2**28.
    """
    n = square(A)
    A = lengths_of(A)
    source = vertex(source, n)
    d = sssp(A, source)
    sources = Vector(int, size=n, name="sources")
    sources[source] = source
    return Paths(d, (parents_of if fits(A, d) else along_tight_arcs)(A, d, sources))


@program
def parents_of(A: Matrix, d: Vector, sources: Vector) -> Vector:
    """The parent of each vertex with a distance: of the possible ones the first.

    The first product takes arcs that make a path longer. Arcs that do not may form cycles: a search finds the parents
    that these arcs lead to, from the vertices that have one already.
    """
    pack, min_longer, min_path, vertex_of = PACKED[d.dtype.name]
    parents, late = Vector(int, size=d.size, name="parents"), Vector(bool, size=d.size, name="late")
    ends = pack(d & indexunary.rowindex(d)).new(name="ends")
    dtype = ends.dtype.name
    t = min_longer[dtype](ends @ A).new(name="t")
    parents << select.valuelt(vertex_of(t & d), d.size)  # others are reached by longer paths only
    parents(sources.S) << sources
    late(d.S) << True
    q = ends.dup(name="q")
    new = parents.dup(name="new")
    with loop() as it:
        q(new.S, replace) << ends
        late(~new.S, replace) << late
        with it.when(late.nvals > 0):
            t(late.S, replace) << min_path[dtype](q @ A)
            new << select.valuelt(vertex_of(t & d), d.size)
            parents(new.S) << new
        it.until((late.nvals == 0) | (new.nvals == 0))
    return parents


def fits(A: Matrix, d: Vector) -> bool:
    """Whether the length of each path and a vertex fit into one number of 64 bits; see PACKED."""
    if A.is_empty or check_weights(A)[0] < 0 or d.dtype.name not in PACKED:
        return False
    longest = d.reduce(monoid.max).new().value
    if d.dtype.name == "FP32":
        return d.size <= 1 << 28 and longest < inf
    return d.size <= 1 << 31 and longest + A.reduce_scalar(monoid.max).new().value < 1 << 32


def _ulp(x):
    """The unit in the last place of an FP64 number that is not negative."""
    return nextafter(x, inf) - x


def _path(x, a):
    """The path x and one more arc. The sum of the lengths is rounded as FP32 numbers are."""
    d = float(np.float32(x))
    s = float(np.float32(d + a))
    return s + (x - d) / _ulp(d) * _ulp(s) if s < inf else inf


def _packed(pack: Any, path: Any, vertex_of: Any, never: float) -> tuple[Any, Any, Any, Any]:
    """Operators on numbers that pack the length of a path and a vertex.

    These are four:

    - an operator that packs both;
    - a semiring of the least path, with an arc more where that makes it longer, else `never`;
    - the same with any arc more;
    - an operator that gives the vertex if the path has a given length, else a number above all vertices.
    """

    def longer(x, a):
        end = path(x, a)
        return end if end > x else never

    ops = pack, longer, path, vertex_of
    pack, *extend, vertex_of = map(binary.register_anonymous, ops, ("pack", "longer", "path", "vertex_of"))
    least = (semiring.register_anonymous(monoid.min, op, f"min_{op.name}") for op in extend)
    return pack, *least, vertex_of


# FP64 has 29 bits more than FP32: 28 hold a vertex. The first one stays 0, so that rounding to FP32 gives the length.
PACKED = {
    "FP32": _packed(lambda d, i: d + i * _ulp(d), _path, lambda x, d: int((x - d) / _ulp(d)), inf),
    "INT64": _packed(lambda d, i: (d << 31) + i, lambda x, a: x + (a << 31), lambda x, d: x - (d << 31), (1 << 63) - 1),
}


def along_tight_arcs(A: Matrix, d: Vector, sources: Vector) -> Vector:
    """The parents of a breadth-first search along the arcs that end as early as they can."""
    return search(tight(A, d), sources).parents


def lengths_of(A: Matrix) -> Matrix:
    """A, but that every entry of a BOOL matrix is 1."""
    return unary.one(A).new(dtype="INT64") if A.dtype.name == "BOOL" else A


def tight(A: Matrix, d: Vector) -> Matrix:
    """The arcs that end as early as they can."""
    lengths, D = through(A, d)
    return select.valuene(any_eq(lengths @ D).new(), False).new(name="tight")


def through(A: Matrix, d: Vector) -> tuple[Matrix, Matrix]:
    """d_i + A_ij at each arc that begins where d is known; and d as a diagonal."""
    D = d.diag()
    return any_plus[d.dtype.name](D @ A).new(name="through"), D


def relax(A: Matrix, d: Vector, lowest: float, total: float, rounds: int, most: float | None = None) -> bool:
    """Lower the distances `d`, and reach further vertices, until no arc shortens one.

    `lowest` and `total` are those of `check_weights`. Where all vertices are near, `rounds` bounds the rounds.
    Distances above `most` are dropped. Returns whether the distances converged.
    """
    n, dtype = d.size, d.dtype.name
    if lowest >= 0 and (most is None or rounds_are_cheap()) and without_rounds(A):
        with fixpoint(cutoff=most) as it:
            d(binary.min) << min_plus[dtype](d @ A)
        return it.converged
    step = step_of(A, lowest, total)
    known, t, q, near, far, left = (
        Vector(dtype, size=n, name=name) for name in ("known", "t", "q", "near", "far", "left")
    )
    waiting = Vector(bool, size=n, name="waiting")
    limit = Scalar.from_value(0, dtype, name="limit")
    grows = step is not None and step.most > step.least
    rise = Scalar.from_value(step.least, dtype, name="rise") if grows else step and step.least
    never = NEVER[dtype]
    shorter, up_to, above = JUDGES[never]
    known[:] = 2 * never
    known(d.S) << d
    near << d
    with loop(rounds if step is None else None) as it:
        with it.when(near.nvals > n // MANY):
            t << min_plus(known @ A)
            waiting.clear()  # these are extended as well
        with it.when(near.nvals <= n // MANY):
            t << min_plus(near @ A)
        if most is not None:
            t << select.valuele(t, most)
        q << shorter(t & known)
        known(binary.min) << t
        if step is None:
            near << select.valuelt(q, never)
        else:
            near << up_to(q, limit)
            far << above(q, limit)
            waiting(far.S) << True
            with it.when(near.nvals == 0):
                left(form="list") << binary.second[dtype](waiting & known)
                left << select.valuegt(left, limit)  # the others fell below it, and were extended
                limit << left.reduce(monoid.min, allow_empty=False) + rise
                near << select.valuele(left, limit)
                waiting(~near.S, replace) << waiting
                if grows:
                    rise << binary.min(rise * (1 + (near.nvals < LONELY)) * (near.nvals < CROWD) | step.most)
                    rise << binary.max(rise | step.least)
        it.until(near.nvals == 0)
    d << select.valuelt(known, never)
    return it.converged


def _judges(never: float) -> tuple[Any, Any, Any]:
    """Operators that compare the length of a path with what is known.

    The first gives the length where it is shorter, else `never`. The others select lengths up to a limit, and above it.
    """
    return (
        binary.register_anonymous(lambda x, known: x if (x < known) & (x < never) else never, "shorter"),
        select.register_anonymous(lambda x, i, j, limit: (x <= limit) & (x < never), "up_to"),
        select.register_anonymous(lambda x, i, j, limit: (x > limit) & (x < never), "above"),
    )


JUDGES = {never: _judges(never) for never in set(NEVER.values())}


def check_weights(A: Matrix) -> tuple[float, float]:
    """Return the least weight and the sum of all; InvalidValue for weights that have no shortest paths.

    These are NaN, -inf, and integers so large that the sum of a path may not fit.
    """
    if A.is_empty:
        return 0, 0
    if A.ss.is_iso and abs(A.ss.iso_value.value) * A.nvals < 2**53:
        return A.ss.iso_value.value, A.ss.iso_value.value * A.nvals
    lowest, total = (A.reduce_scalar(op).new().value for op in (monoid.min, monoid.plus["FP64"]))
    if "FP" in A.dtype.name:
        # A sum above -inf proves that no weight is NaN or -inf, in one pass; only another one asks for a look at each.
        if not total > -inf and select.valuegt(A, -inf).new().nvals < A.nvals:
            raise InvalidValue(message("weights above -inf", "a weight that is NaN or -inf"))
    else:
        highest = A.reduce_scalar(monoid.max).new().value
        if max(-int(lowest), int(highest)) * A.nrows >= 1 << 61:
            found = f"weights from {lowest} to {highest}"
            raise InvalidValue(message("path lengths below 2**61", found, "use FP64 weights"))
    return lowest, total


def one_weight(A: Matrix, lowest: float, total: float) -> bool:
    """Whether all arcs weigh the same, and paths so many times that, without rounding: then arcs can be counted."""
    exact = {"FP32": 2**24, "FP64": 2**53}.get(A.dtype.name, 2**63)
    if not 0 < lowest < inf or lowest % 1 or lowest * A.nrows >= exact or total != lowest * A.nvals:
        return False
    return bool(A.ss.is_iso or A.reduce_scalar(monoid.max).new().value == lowest)


def step_of(A: Matrix, lowest: float, total: float) -> Step | None:
    """Return how far the limit rises above the least far distance; None if every vertex is near.

    The step is a multiple of the mean weight over the mean degree:

    - 32, as in Davidson et al.;
    - 128 in road maps, where few vertices are near;
    - None if there are hubs, as few rounds of all vertices reach everything.

    Where a round costs what it reaches, few vertices are to be near whose distances fall again. There the multiple is
    2, and grows as the graph gets sparser (with the cube, as measured). While hardly any vertex is near, the step grows
    to 16 mean weights.
    """
    if lowest < 0 or not A.nvals:
        return None
    mean, weight = A.nvals / A.nrows, total / A.nvals
    if rounds_are_cheap():
        times = min(max(LEAST, (THIN / mean) ** 3), FARTHEST)
        step = max(times * weight / mean, lowest)  # up to the least weight nothing falls again
        most = max(step, MEANS * weight)
    elif row_lengths(A).new(name="degree").reduce(monoid.max).new().value > SKEWED * mean:
        return None
    else:
        most = step = (32 if mean >= ROADS else FARTHEST) * weight / mean
    if "FP" in A.dtype.name:  # twice as far is a number, too
        return Step(step, max(step, min(most, float(np.finfo(A.dtype.np_type).max) / 2)))
    return Step(*(max(int(min(one, NEVER["INT64"])), 1) for one in (step, most)))


def _reached(distances: Vector) -> dict[str, Any]:
    _, lengths = distances.to_coo()
    return {"reached": lengths.size, "farthest": lengths.max()}


DISTANCES = Result("vertex", "distance")

ALGORITHMS["sssp"] = Algorithm(
    run=sssp,
    verify=verify.sssp,
    summary=_reached,
    options=(SOURCE,),
    result=DISTANCES,
    top=DISTANCES,
    rehearse=lambda A: shortest_path_tree(A, 0),
)
