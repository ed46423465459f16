"""Breadth-first search: the level and the parent of every vertex that a source reaches.

q holds the vertices of the current level with their parents as values. The next level is every out-neighbour of q
that has no parent yet; `any_secondi` takes some row of A, that is a vertex of q, as its parent.

Where levels would be many, as in road maps on a GPU, `gb.fixpoint` finds the levels without rounds. Parents are found
afterwards, by one product.

Source: Bulucc, Mattson, McMillan, Moreira, Yang, "The GraphBLAS C API", the BFS example; Beamer, Asanovic, Patterson,
"Direction-Optimizing Breadth-First Search", SC 2012, for the choice of push or pull, which here is the planner's.
"""

from typing import Any, NamedTuple

import numpy as np

from algos import verify
from algos._inputs import row_lengths, square, vertex, without_rounds
from algos.runs import ALGORITHMS, SOURCE, Algorithm, Result
from gbgpu import Matrix, Vector, binary, fixpoint, indexunary, loop, monoid, program, replace
from gbgpu.semiring import any_pair, any_secondi, min_first, register_anonymous

MANY = 14  # a frontier has many arcs from a fourteenth of all, as Beamer et al. have it


class Tree(NamedTuple):
    """Levels and parents of a breadth-first search (INT64, size n each)."""

    levels: Vector
    parents: Vector


def bfs(A: Matrix, source: int, depth: int | None = None) -> Tree:
    """Levels and parents of all vertices that `source` reaches.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n: an entry `A[i, j]` is the arc i -> j. Values are ignored.
    source : int
        The vertex at which the search begins.
    depth : int, optional
        The highest level to reach. By default the search ends when no new vertex is found.

    Returns
    -------
    Tree
        `levels` and `parents`, two vectors (INT64, size n). The source has level 0 and itself as parent. A vertex that
        is not reached has no entry.

    Raises
    ------
    TypeError
        If `A` is no Matrix, or `source` is not a whole number.
    DimensionMismatch
        If `A` is not square.
    IndexOutOfBound
        If `source` is not a vertex of `A`.

    References
    ----------
    Bulucc et al., "The GraphBLAS C API", the BFS example. Beamer, Asanovic, Patterson, "Direction-Optimizing
    Breadth-First Search", SC 2012.
    """
    n = square(A)
    sources = Vector(int, size=n, name="sources")
    sources[vertex(source, n)] = source
    return search(A, sources, depth)


def nearest(A: Matrix, d: Vector, sources: Vector) -> Tree:
    """The tree of known levels `d`: the parent of a vertex is the first of its in-neighbours of the lowest level."""
    n, levels = d.size, d.dup(dtype=int, name="levels")
    # The least (level, row) as one number; n is below 2**31, so that it fits.
    key = indexunary.rowindex(levels).new(name="key")
    key(binary.plus) << levels * n
    parents = min_first[int](key @ A).new(name="parents")
    parents << parents % n
    parents(sources.S) << sources
    return Tree(levels, parents)


@program
def search(A: Matrix, sources: Vector, depth: int | None = None) -> Tree:
    """Levels and parents as of `bfs`, from every vertex of `sources`, whose values are the numbers of vertices."""
    n = sources.size
    if depth is None and n < 1 << 31 and without_rounds(A, search="tree"):
        return nearest(A, hops(A, sources), sources)
    q, levels, parents = sources.dup(name="q"), *(Vector(int, size=n, name=name) for name in ("levels", "parents"))
    with loop(rounds(depth)) as it:
        levels(q.S) << it.index
        parents(q.S) << q
        q(~parents.S, replace) << any_secondi(q @ A)
        it.until(q.nvals == 0)
    return Tree(levels, parents)


def rounds(depth: int | None) -> int | None:
    """Return the number of levels, the source's included; None without a bound."""
    return None if depth is None else depth + 1


def bfs_levels(A: Matrix, source: int, depth: int | None = None) -> Vector:
    """Levels of all vertices that `source` reaches, as `bfs` gives them, without parents.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values are ignored.
    source : int
        The vertex at which the search begins.
    depth : int, optional
        The highest level to reach.

    Returns
    -------
    Vector
        Levels (INT64, size n); no entry where `source` does not reach.

    Raises
    ------
    TypeError, DimensionMismatch, IndexOutOfBound
        As `bfs`.
    """
    n = square(A)
    sources = Vector(bool, size=n, name="sources")
    sources[vertex(source, n)] = True
    return levels_from(A, sources, depth)


@program
def levels_from(A: Matrix, sources: Vector, depth: int | None = None) -> Vector:
    """Levels as of `bfs_levels`, from every vertex of `sources` (BOOL)."""
    if depth is None and without_rounds(A, search="levels"):
        return hops(A, sources).dup(dtype=int, name="levels")
    q, levels = sources.dup(name="q"), Vector(int, size=sources.size, name="levels")
    with loop(rounds(depth)) as it:
        levels(q.S) << it.index
        q(~levels.S, replace) << any_pair(q @ A)
        it.until(q.nvals == 0)
    return levels


def hops(A: Matrix, sources: Vector) -> Vector:
    """The arcs of the shortest path to each vertex from any of `sources`, as INT32 where these can't be more."""
    d = Vector("INT32" if A.nrows < 1 << 31 else "INT64", size=A.nrows, name="d")
    d(sources.S) << 0
    with fixpoint():
        d(binary.min) << min_next[d.dtype.name](d @ A)
    return d


min_next = register_anonymous(
    monoid.min, binary.register_anonymous(lambda x, a: x + 1, "next", is_monotone=True), "min_next"
)


def direction_optimizing_bfs(A: Matrix, source: int) -> Vector:
    """Levels as of `bfs_levels`, with the choice of push or pull written as statements.

    `bfs` and `bfs_levels` leave this choice to the planner. Here a level is a push if the arcs of its frontier are at
    most 1/14 of all arcs, else a pull.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values are ignored.
    source : int
        The vertex at which the search begins.

    Returns
    -------
    Vector
        Levels (INT64, size n); no entry where `source` does not reach.

    Raises
    ------
    TypeError, DimensionMismatch, IndexOutOfBound
        As `bfs`.

    References
    ----------
    Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012.
    """
    n = square(A)
    levels, degree, edges = (Vector(int, size=n, name=name) for name in ("levels", "degree", "edges"))
    q, t = (Vector(bool, size=n, name=name) for name in ("q", "t"))
    q[vertex(source, n)] = True
    degree << row_lengths(A)
    with loop() as it:
        levels(q.S) << it.index
        edges << binary.second(q & degree)
        arcs = edges.reduce(monoid.plus, allow_empty=False).new(name="arcs")
        with it.when(arcs * MANY <= A.nvals):
            t(~levels.S, replace, direction="push") << any_pair[bool](q @ A)
        with it.when(arcs * MANY > A.nvals):
            t(~levels.S, replace, direction="pull") << any_pair[bool](q @ A)
        q << t
        it.until(q.nvals == 0)
    return levels


def multi_source_bfs(A: Matrix, sources: Any) -> Matrix:
    """Levels from each of several sources, one row for each source.

    Parameters
    ----------
    A : Matrix
        Adjacency matrix, n x n. Values are ignored.
    sources : iterable of int
        k vertices; one may be listed more than once.

    Returns
    -------
    Matrix
        Levels (INT64, k x n); row r belongs to the r-th source. No entry where this source does not reach.

    Raises
    ------
    TypeError, DimensionMismatch, IndexOutOfBound
        As `bfs`.
    """
    n = square(A)
    seeds = np.array([vertex(source, n) for source in sources], int)
    F = Matrix.from_coo(np.arange(len(seeds)), seeds, True, bool, nrows=len(seeds), ncols=n, name="F")
    levels, depth = Matrix(int, len(seeds), n, name="levels"), 0
    while F.nvals:
        levels(F.S) << depth
        F(~levels.S, replace) << any_pair[bool](F @ A)
        depth += 1
    return levels


def _reached(outcome: Tree) -> dict[str, Any]:
    _, levels = outcome.levels.to_coo()
    return {"reached": levels.size, "depth": levels.max(initial=0)}


ALGORITHMS["bfs"] = Algorithm(
    run=bfs,
    verify=lambda A, source, outcome: verify.bfs(A, source, *outcome),
    summary=_reached,
    options=(SOURCE,),
    result=Result("vertex", "level", lambda outcome: outcome.levels),
    rehearse=lambda A: (bfs_levels(A, 0), multi_source_bfs(A, [0, 1])),
)
