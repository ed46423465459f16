"""Breadth-first search: the level and the parent of every vertex that a source reaches.

q holds the vertices of the current level with their parents as values. The next level is every out-neighbour of q
that has no parent yet; `any_secondi` takes some row of A, that is a vertex of q, as its parent.

Source: Bulucc, Mattson, McMillan, Moreira, Yang, "The GraphBLAS C API", the BFS example; Beamer, Asanovic, Patterson,
"Direction-Optimizing Breadth-First Search", SC 2012, for the choice of push or pull, which here is the planner's.
"""

from typing import Any, NamedTuple

import numpy as np

from algos import verify
from algos._inputs import row_lengths, square, vertex
from algos.runs import ALGORITHMS, SOURCE, Algorithm, Result
from gbgpu import Matrix, Vector, binary, foldable, loop, monoid, replace
from gbgpu.semiring import any_pair, any_secondi

MANY = 14  # a frontier has many arcs from a fourteenth of all, as Beamer et al. have it


class Tree(NamedTuple):
    levels: Vector
    parents: Vector


@foldable
def bfs(A: Matrix, source: int, depth: int | None = None) -> Tree:
    """Levels and parents (INT64, A.nrows) from `source`: level 0 and parent `source` there, nothing where it does not
    reach, or not by `depth` arcs.

    Raises TypeError (A is no Matrix), DimensionMismatch (A not square), IndexOutOfBound (source).
    """
    n = square(A)
    source = vertex(source, n)
    q = Vector(int, size=n, name="q")
    q[source] = source
    return search(A, q, depth)


def search(A: Matrix, q: Vector, depth: int | None = None) -> Tree:
    """The same from every vertex of q, the value of each its number; q is used up."""
    levels, parents = (Vector(int, size=q.size, name=name) for name in ("levels", "parents"))
    with loop(rounds(depth)) as it:
        levels(q.S) << it.index
        parents(q.S) << q
        q(~parents.S, replace) << any_secondi(q @ A)
        it.until(q.nvals == 0)
    return Tree(levels, parents)


def rounds(depth: int | None) -> int | None:
    return None if depth is None else depth + 1


@foldable
def bfs_levels(A: Matrix, source: int, depth: int | None = None) -> Vector:
    """Levels alone, as `bfs` gives them, in fewer statements; errors as `bfs`."""
    n = square(A)
    levels, q = Vector(int, size=n, name="levels"), Vector(bool, size=n, name="q")
    q[vertex(source, n)] = True
    with loop(rounds(depth)) as it:
        levels(q.S) << it.index
        q(~levels.S, replace) << any_pair(q @ A)
        it.until(q.nvals == 0)
    return levels


def direction_optimizing_bfs(A: Matrix, source: int) -> Vector:
    """Levels as `bfs_levels` gives them, with the direction of each level written out in place of the planner's: from a
    frontier with few arcs each of them is followed (push); else every vertex that has no level looks among its
    in-neighbours for one of the frontier (pull). Errors as `bfs`."""
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
    """Levels (INT64) from each of the listed sources in a row of its own, nothing where it does not reach; errors as
    `bfs`.

    A row of F is the frontier of a source."""
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
