"""Betweenness: on how many of the shortest paths between others a vertex, or an edge, lies.

A search counts paths: its frontier holds for each vertex of the level the number s of shortest paths from the source,
and `plus_first(q @ A)`, where no level is known yet, is the next one. Then back, level by level: w of a vertex is
1 / s plus the w of its successors on shortest paths, which are its neighbours one level on, so a product with A under
the previous frontier's mask. What a vertex depends on is s times the w of its successors; an arc from one level to the
next carries s of its tail times w of its head. Many sources go at once, over copies of the graph.

Road maps may have more paths than FP64 has numbers for. Then all of these numbers are logarithms, and sums of them
`logaddexp`: each level adds a relative error of about 1e-16 times the largest logarithm.

Source: Brandes, "A Faster Algorithm for Betweenness Centrality", Journal of Mathematical Sociology 2001, and "On
Variants of Shortest-Path Betweenness Centrality", Social Networks 2008, for edges; in matrices in Robinson, chapter 6
of Kepner, Gilbert, "Graph Algorithms in the Language of Linear Algebra", SIAM 2011. Sampled: Brandes, Pich, "Centrality
Estimation in Large Networks", 2007; scaled as NetworkX does.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from algos._copies import batches
from algos._inputs import is_thin, others, square, vertices
from algos._iterations import flat
from algos.components import has_symmetric_pattern
from algos.runs import SAMPLES, ranking
from algos.verify import check, dense, levels_from
from gbgpu import Matrix, Scalar, Vector, binary, loop, monoid, program, replace, select, settings, unary
from gbgpu.semiring import Semiring, plus_first, plus_second, plus_times

ENTRIES = 1 << 21  # of all copies of a graph together


def betweenness(
    A: Matrix, sources: Any = None, normalized: bool = True, directed: bool | None = None, *, seed: int = 0
) -> Vector:
    """Betweenness centrality: the share of shortest paths between others that lead through each vertex.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values and loops are ignored.
    sources : int or array of int, optional
        Only paths from these vertices, scaled to all: a number of vertices to draw, or their list.
    normalized : bool
        Whether to divide by the number of pairs. If not, a pair of an undirected graph counts once, not in both orders.
    directed : bool, optional
        Whether `A` is a directed graph. By default it is undirected if every arc has its reverse.
    seed : int
        Draws the sources, if `sources` is a number.

    Returns
    -------
    Vector
        Centralities (FP64, size n, all entries).

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `sources` is neither a whole number nor a list of them.
    DimensionMismatch
        If `A` is not square.
    IndexOutOfBound
        If a source is not a vertex of `A`.
    InvalidValue
        If there are more sources than vertices, or if one is listed twice.

    References
    ----------
    Brandes, "A Faster Algorithm for Betweenness Centrality", Journal of Mathematical Sociology 2001. Sampled: Brandes,
    Pich, "Centrality Estimation in Large Networks", 2007, scaled as NetworkX does.
    """
    n = square(A)
    chosen = vertices(sources, n, seed)
    A, directed = prepared(A, directed)
    sums = at_vertices(A, chosen, NUMBERS)
    if not is_finite(sums):
        sums = at_vertices(A, chosen, LOGARITHMS)
    if sums.size > n:
        sums = Vector.from_dense(sums.to_dense().reshape(-1, n).sum(axis=0), name="sums")
    return scaled(sums, chosen, normalized, directed)


def at_vertices(A: Matrix, chosen: np.ndarray, how: "Counting") -> Vector:
    """What each vertex depends on, of each copy of the graph on its own."""
    sums = flat(A.nrows, 0, "sums")
    for copies, seeds in batches(A, chosen, ENTRIES):
        s, t = counted(copies, seeds, how)
        sums = sums if sums.size == s.size else flat(s.size, 0, "sums")
        sums(binary.plus) << how.value(how.times(t & s))
    return sums


def is_finite(sums: Vector) -> bool:
    """Whether there were numbers for all counts of paths."""
    return bool(np.isfinite(sums.reduce(monoid.plus).new().value or 0.0))


def edge_betweenness(
    A: Matrix, sources: Any = None, normalized: bool = True, directed: bool | None = None, *, seed: int = 0
) -> Matrix:
    """Betweenness centrality of each arc: the share of shortest paths that lead through it.

    At an arc i -> j stands the product of a row that has s of i for each source and level, and one that has w of j at
    the level before.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values and loops are ignored.
    sources : int or array of int, optional
        Only paths from these vertices, scaled to all: a number of vertices to draw, or their list.
    normalized : bool
        Whether to divide by the number of pairs.
    directed : bool, optional
        Whether `A` is a directed graph. By default it is undirected if every arc has its reverse.
    seed : int
        Draws the sources, if `sources` is a number.

    Returns
    -------
    Matrix
        Centralities (FP64, n x n, with the pattern of `A`). Both arcs of an undirected edge have the paths of either
        way.

    Raises
    ------
    TypeError, DimensionMismatch, IndexOutOfBound, InvalidValue
        As `betweenness`.

    References
    ----------
    Brandes, "On Variants of Shortest-Path Betweenness Centrality", Social Networks 2008.
    """
    n = square(A)
    chosen = vertices(sources, n, seed)
    A, directed = prepared(A, directed)
    E = at_arcs(A, chosen, NUMBERS)
    if not is_finite(E.reduce_rowwise().new()):
        E = at_arcs(A, chosen, LOGARITHMS)
    if not directed:
        E(A.S, binary.plus) << E.T
    share = 1 / max(n - 1, 1) if normalized else n / (1 if directed else 2)
    return E.apply(binary.times, right=share / max(len(chosen), 1)).new(name="E")


def at_arcs(A: Matrix, chosen: np.ndarray, how: "Counting") -> Matrix:
    """What each arc carries."""
    n = A.nrows
    E = Matrix(float, n, n, name="E")
    E(A.S) << 0.0
    for copies, seeds in batches(A, chosen, ENTRIES):
        S, W = factors(n, copies, seeds, how)
        E(A.S, binary.plus) << how.value(how.both(S @ W.T).new(mask=A.S))
    return E


def prepared(A: Matrix, directed: bool | None) -> tuple[Matrix, bool]:
    """(a matrix of the same arcs, whether the graph is directed).

    A graph with the reverse of every arc is declared symmetric if searches take copies of it: these need no transpose.
    """
    copied = 2 * (A.nvals + A.nrows + 1) <= ENTRIES
    symmetric = (directed is None or copied) and has_symmetric_pattern(A, A.nrows)
    if symmetric and copied:
        A = settings.session().derived(A, _symmetric_pattern)
    return A, not symmetric if directed is None else directed


def _symmetric_pattern(A: Matrix) -> Matrix:
    pattern = unary.one(A).new(dtype=bool, name=A.name)
    pattern.ss.declare_symmetric()
    return pattern


class Counting(NamedTuple):
    """How paths are counted: as numbers, or by their logarithms, where there are more than FP64 can hold."""

    first: Semiring  # of q @ A: what arrives at the heads of arcs
    second: Semiring  # of A @ w: what arrives at their tails
    both: Semiring  # of S @ W.T: s of an arc's tail times w of its head
    plus: Any
    times: Any
    inverse: Any
    value: Any  # gives the numbers themselves
    one: float
    zero: float


NUMBERS = Counting(
    *(each[float] for each in (plus_first, plus_second, plus_times)),
    *(binary.plus, binary.times, unary.minv, lambda x: x, 1.0, 0.0),
)
LOGARITHMS = Counting(
    *(
        Semiring.register_anonymous(monoid.numpy.logaddexp, multiply)[float]
        for multiply in (binary.first, binary.second, binary.plus)
    ),
    *(binary.numpy.logaddexp, binary.plus, unary.ainv, unary.exp, 0.0, -math.inf),
)
LEVELS = 64  # levels whose vertices one list has; to make a list, all vertices are looked at


def counted(A: Matrix, seeds: np.ndarray, how: Counting, level: Vector | None = None) -> tuple[Vector, Vector]:
    """Of each vertex in a search from `seeds`: s, and the sum of w over its successors; its level goes to `level`.

    There is no sum at the seeds.
    """
    q = Vector.from_coo(seeds, how.one, float, size=A.nrows, name="q")
    if not is_thin(A):
        return by_levels(A, q, how, level)
    found, s, t = by_lists(A, q, how is LOGARITHMS)
    if level is not None:
        level << found
    return s, t


def by_levels(A: Matrix, q: Vector, how: Counting, level: Vector | None) -> tuple[Vector, Vector]:
    """The same from a first frontier, of a graph with few levels: the frontier of each is kept."""
    n, levels = A.nrows, []
    s, w, t = Vector(float, n, name="s"), Vector(float, n, name="w"), flat(n, how.zero, "t")
    while q.nvals:
        if level is not None:
            level(q.S) << len(levels)
        s(q.S) << q
        levels.append(q)
        q = Vector(float, n, name="q")
        q(~s.S, replace) << how.first(levels[-1] @ A)
    for depth in range(len(levels) - 1, 1, -1):
        w << how.plus(t & levels[depth].apply(how.inverse))
        t(levels[depth - 1].S, how.plus) << how.second(A @ w)
    return s, t


@program
def by_lists(A: Matrix, q: Vector, logarithms: bool) -> tuple[Vector, Vector, Vector]:
    """(levels, s, sums) of a graph with many levels, all of few vertices, in recorded loops: LEVELS share a list."""
    n, how = A.nrows, LOGARITHMS if logarithms else NUMBERS
    level, some, here = (Vector(int, n, name=name) for name in ("level", "some", "here"))
    s, w = (Vector(float, n, name=name) for name in ("s", "w"))
    q, t = q.dup(name="q"), flat(n, how.zero, "t")
    with loop() as it:
        level(q.S) << it.index
        s(q.S) << q
        q(~s.S, replace) << how.first(q @ A)
        it.until(q.nvals == 0)
    inverse = s.apply(how.inverse).new(name="inverse")
    depth = Scalar(int, name="depth")
    depth << level.reduce(monoid.max)
    depth << binary.max(depth | 2)
    some(form="list") << select.valuegt(level, depth - LEVELS)
    here << select.valueeq(some, depth)
    with loop() as it:
        w << how.plus(binary.second(here & t) & inverse)
        depth << depth - 1
        with it.when(it.index % LEVELS == LEVELS - 1):
            some(form="list") << select.valuegt(level, depth - LEVELS)
            some << select.valuele(some, depth)
        here << select.valueeq(some, depth)
        t(here.S, how.plus) << how.second(A @ w)
        it.until(depth <= 1)
    return level, s, t


def factors(n: int, copies: Matrix, seeds: np.ndarray, how: Counting) -> tuple[Matrix, Matrix]:
    """s, and w one level earlier, of each vertex (rows) for each source and level (columns)."""
    level = Vector(int, copies.nrows, name="level")
    s, t = counted(copies, seeds, how, level)
    where, number = level.to_coo()
    column = number * len(seeds) + where // n
    tails = s.to_coo()[1]
    heads = how.plus(t & s.apply(how.inverse)).new().to_coo()[1]
    width, later = (int(number.max()) + 1) * len(seeds), number > 0
    S = Matrix.from_coo(where % n, column, tails, nrows=n, ncols=width, name="S")
    W = Matrix.from_coo(where[later] % n, column[later] - len(seeds), heads[later], nrows=n, ncols=width, name="W")
    return S, W


def scaled(sums: Vector, chosen: np.ndarray, normalized: bool, directed: bool) -> Vector:
    """The sums over paths from the chosen sources, scaled as if from all.

    A source has no part in its own paths: one fewer counts for it.
    """
    n, k = sums.size, len(chosen)
    if not k:
        return sums.dup(name="betweenness")
    share = [scale(n, k - own, normalized, directed) for own in (0, 1)]
    found = sums.apply(binary.times, right=share[k == n]).new(name="betweenness")
    if k < n:
        own = Vector.from_coo(chosen, share[1], float, size=n, name="own")
        own << binary.times(own & sums)
        found(own.S) << own
    return found


def scale(n: int, count: int, normalized: bool, directed: bool) -> float:
    """What a sum over so many sources is multiplied by; NaN for none."""
    if n < 3:
        return 1.0
    if not count:
        return math.nan
    return 1 / (count * (n - 2)) if normalized else (n - 1) / count / (1 if directed else 2)


def check_betweenness(A: Matrix, centrality: Vector, sources: Any = None, *, seed: int = 0) -> None:
    """The paths from the same sources, counted by NumPy, an arc at a time in the order of levels."""
    n = A.nrows
    chosen = vertices(sources, n, seed)
    rows, cols, _ = A.to_coo()
    total = np.zeros(n)
    for source in chosen:
        level = levels_from(n, rows, cols, source)
        onward = (level[rows] >= 0) & (level[cols] == level[rows] + 1)
        order = np.argsort(level[rows[onward]], kind="stable")
        tails, heads = rows[onward][order], cols[onward][order]
        bounds = np.searchsorted(level[tails], np.arange(level.max() + 1))
        steps = [slice(*pair) for pair in zip(bounds, [*bounds[1:], len(tails)], strict=True)]
        count, depends = np.zeros(n), np.zeros(n)
        count[source] = 1
        for step in steps:
            np.add.at(count, heads[step], count[tails[step]])
        for step in steps[::-1]:
            i, j = tails[step], heads[step]
            np.add.at(depends, i, count[i] / count[j] * (1 + depends[j]))
        depends[source] = 0
        total += depends
    found, present = dense(centrality, 0.0)
    check(present, "presence: a vertex without a number")
    right = total / (others(n, chosen) * (n - 2)) if n > 2 and len(chosen) else total
    check(np.isclose(found, right, rtol=1e-9, atol=1e-12, equal_nan=True), "betweenness: not what NumPy counts")


ranking(
    "betweenness",
    "betweenness",
    run=betweenness,
    verify=lambda A, samples, outcome: check_betweenness(A, outcome, samples),
    options=(SAMPLES,),
    rehearse=lambda A: edge_betweenness(A, 2),
)
