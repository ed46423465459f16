"""Breadth-first search: the level and the parent of every vertex that a source reaches.

q holds the vertices of the current level with their parents as values. The next level is every out-neighbour of q
that has no parent yet; `any_secondi` takes some row of A, that is a vertex of q, as its parent.

Source: Bulucc, Mattson, McMillan, Moreira, Yang, "The GraphBLAS C API", the BFS example; Beamer, Asanovic, Patterson,
"Direction-Optimizing Breadth-First Search", SC 2012, for the choice of push or pull, which here is the planner's.
"""

from algos._inputs import square, vertex
from gbgpu import Matrix, Vector, replace
from gbgpu.semiring import any_pair, any_secondi


def bfs(A: Matrix, source: int) -> tuple[Vector, Vector]:
    """Levels and parents (INT64, A.nrows) from `source`: level 0 and parent `source` there, nothing where it does not
    reach.

    Raises TypeError (A is no Matrix), DimensionMismatch (A not square), IndexOutOfBound (source).
    """
    n = square(A)
    source = vertex(source, n)
    levels, parents, q = (Vector(int, size=n, name=name) for name in ("levels", "parents", "q"))
    q[source] = source
    depth = 0
    while True:
        levels(q.S) << depth
        parents(q.S) << q
        if not q.nvals:  # read when all is under way
            return levels, parents
        q(~parents.S, replace) << any_secondi(q @ A)
        depth += 1


def bfs_levels(A: Matrix, source: int) -> Vector:
    """Levels alone, as `bfs` gives them, in fewer statements; errors as `bfs`."""
    n = square(A)
    levels, q = Vector(int, size=n, name="levels"), Vector(bool, size=n, name="q")
    q[vertex(source, n)] = True
    depth = 0
    while True:
        levels(q.S) << depth
        if not q.nvals:
            return levels
        q(~levels.S, replace) << any_pair(q @ A)
        depth += 1
