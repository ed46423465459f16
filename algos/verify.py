"""Checks of results by what must hold of them, with NumPy and SciPy only: no engine, no stored answer.

Each function returns None or raises VerificationError, which names the check and a vertex. A is the matrix the result
was made from.

Source: the five checks of the Graph500 specification for search trees; GAP (Beamer, Asanovic, Patterson, 2015) for
the habit.
"""

from typing import Any, NoReturn

import numpy as np

from gbgpu import Matrix, Vector
from gbgpu.errors import GraphblasException


class VerificationError(GraphblasException):
    """A result breaks a property that it must have."""


def bfs(A: Matrix, source: int, levels: Vector, parents: Vector) -> None:
    """Check levels and parents by Graph500's checks for directed graphs.

    They are a tree of arcs of A from the source whose levels are shortest, over all it reaches.
    """
    rows, cols, _ = A.to_coo()
    level, reached = dense(levels, -1)
    parent, has_parent = dense(parents, -1)
    check(reached == has_parent, "levels and parents: a vertex has both or neither")
    inside = (parent >= 0) & (parent < A.nrows)
    check(~reached | inside, "parents: not a vertex")
    _check_source("root: level 0 and its own parent", source, level[source] == 0 and parent[source] == source)
    others = np.flatnonzero(reached & (np.arange(A.nrows) != source))
    above = parent[others]
    check(
        reached[above] & (level[others] == level[above] + 1), "1, 2: a tree whose arcs join neighbouring levels", others
    )
    found = np.zeros(A.nrows, bool)
    found[cols[parent[cols] == rows]] = True
    check(found[others], "5: parent and child are an arc of the graph", others)
    leaving = reached[rows]
    check(reached[cols[leaving]], "4: the tree spans all that is reachable", cols[leaving])
    check(level[cols[leaving]] <= level[rows[leaving]] + 1, "3: an arc spans at most one level", cols[leaving])


def sssp(A: Matrix, source: int, distances: Vector) -> None:
    """Check that no arc shortens a distance, and that tight arcs lead from the source to all it reaches.

    An arc is tight if it is exactly as long as the difference of its distances. Sums are made in the type of the
    distances, where both hold exactly.
    """
    rows, cols, weights = A.to_coo()
    distance, reached = dense(distances, 0)
    weights = np.ones_like(weights) if weights.dtype == bool else weights
    weights = weights.astype(distance.dtype)
    _check_source("source: distance 0", source, reached[source] and distance[source] == 0)
    leaving = reached[rows]
    rows, cols, weights = rows[leaving], cols[leaving], weights[leaving]
    check(reached[cols], "reach: an arc leads out of what is reached", cols)
    through = distance[rows] + weights
    check(distance[cols] <= through, "triangle inequality: an arc shortens the distance", cols)
    tight = distance[cols] == through
    on_path = _reachable(A.nrows, rows[tight], cols[tight], source)
    check(on_path[reached], "tight path: no path of this length from the source", np.flatnonzero(reached))


def shortest_path_tree(A: Matrix, source: int, distances: Vector, parents: Vector) -> None:
    """Check as `sssp`, and that the arcs from parents are tight arcs of A that lead to all vertices reached."""
    sssp(A, source, distances)
    rows, cols, weights = A.to_coo()
    distance, reached = dense(distances, 0)
    parent, has_parent = dense(parents, -1)
    check(reached == has_parent, "distances and parents: a vertex has both or neither")
    _check_source("root: its own parent", source, parent[source] == source)
    weights = np.ones_like(weights) if weights.dtype == bool else weights
    used = (parent[cols] == rows) & (distance[rows] + weights.astype(distance.dtype) == distance[cols])
    on_path = _reachable(A.nrows, rows[used], cols[used], source)
    check(on_path[reached], "parents: no path of this length from the source", np.flatnonzero(reached))


def minimum_spanning_forest(A: Matrix, forest: Matrix) -> None:
    """Edges of A without a cycle that join what A joins, together as light as SciPy's."""
    from scipy.sparse import csgraph, csr_array

    n = A.nrows
    rows, cols, weights = A.to_coo()
    rows, cols, weights = rows[rows != cols], cols[rows != cols], weights[rows != cols].astype(float)
    ends = np.minimum(rows, cols) * n + np.maximum(rows, cols)
    order = np.lexsort((weights, ends))
    ends, first = np.unique(ends[order], return_index=True)
    weights = weights[order][first]
    i, j, mine = forest.to_coo()
    place = np.minimum(np.searchsorted(ends, i * n + j), max(len(ends) - 1, 0))
    check((i < j) & (ends[place] == i * n + j if len(ends) else i < 0), "edge: not one of the graph", i)
    check(weights[place] == mine if len(mine) else mine == mine, "weight: not that of the edge", i)
    trees, _ = csgraph.connected_components(_pattern(n, i, j), directed=False)
    check(np.array([len(i) == n - trees]), "cycle: more edges than trees have")
    parts, _ = csgraph.connected_components(_pattern(n, rows, cols), directed=False)
    check(np.array([trees == parts]), f"reach: {trees} trees, {parts} components by SciPy")
    above = 1 - weights.min(initial=0.0)  # so that none is 0, which SciPy takes for no edge
    theirs = csgraph.minimum_spanning_tree(csr_array((weights + above, (ends // n, ends % n)), (n, n)))
    least, found = theirs.sum() - above * len(i), mine.astype(float).sum()
    check(np.array([np.isclose(found, least, rtol=1e-6, atol=1e-6 * above)]), f"weight: {found}, {least} by SciPy's")


def pagerank(
    A: Matrix,
    ranks: Vector,
    damping: float = 0.85,
    tol: float = 1e-6,
    *,
    weighted: bool = False,
    personalization: Vector | None = None,
    dangling: Vector | None = None,
) -> None:
    """Check that ranks are positive, sum to 1, and settled.

    Another round in float64 changes them by no more than tol (and rounding).
    """
    n = A.nrows
    rank, present = dense(ranks, 0)
    check(present, "presence: a vertex without a rank")
    check(np.isfinite(rank) & (rank >= 0), "range: a rank that is negative, NaN or infinite")
    if n == 0:
        return
    allowed = tol + 1024 * float(np.finfo(rank.dtype).eps)  # float32 sums over the long rows of hubs need the room
    rank = rank.astype(np.float64)
    check(np.array([abs(rank.sum() - 1) <= allowed]), f"sum: {rank.sum()!r} is not 1", np.array([rank.argmax()]))
    rows, cols, values = A.to_coo()
    values = values.astype(np.float64) if weighted else np.ones(rows.size)
    degree = np.bincount(rows, values, n)
    share = np.divide(rank, degree, out=np.zeros(n), where=degree > 0)
    following = damping * np.bincount(cols, share[rows] * values, n)
    lands, stays = (
        np.full(n, 1 / n) if v is None else v.to_dense(0.0) / v.to_dense(0.0).sum()
        for v in (personalization, personalization if dangling is None else dangling)
    )
    following += (1 - damping) * lands + damping * rank[degree == 0].sum() * stays
    change = np.abs(following - rank)
    residual = f"residual: another round changes the ranks by {change.sum():.3g}, more than {allowed:.3g}"
    check(np.array([change.sum() <= allowed]), residual, np.array([change.argmax()]))


def connected_components(A: Matrix, labels: Vector) -> None:
    """Check that both ends of an edge have one label, the smallest vertex of its component.

    Components are as many as SciPy's.
    """
    n = A.nrows
    label, present = dense(labels, -1)
    check(present, "presence: a vertex without a label")
    check((label >= 0) & (label <= np.arange(n)), "label: not the smallest vertex of a component")
    check(label[label] == label, "label: a vertex that has another label itself")
    rows, cols, _ = A.to_coo()
    check(label[rows] == label[cols], "edge: its ends have different labels", rows)
    from scipy.sparse import csgraph  # half a second, for those who verify

    count, theirs = csgraph.connected_components(_pattern(n, rows, cols), directed=False)
    _, smallest = np.unique(theirs, return_index=True)
    mine = np.unique(label).size
    check(label == smallest[theirs] if n else present, f"count: {mine} labels, {count} components by SciPy")


def strongly_connected_components(A: Matrix, labels: Vector) -> None:
    """A label is the smallest vertex of its component, and components are those that SciPy finds."""
    label, present = dense(labels, -1)
    check(present, "presence: a vertex without a label")
    rows, cols, _ = A.to_coo()
    from scipy.sparse import csgraph

    count, theirs = csgraph.connected_components(_pattern(A.nrows, rows, cols), connection="strong")
    smallest = np.full(count, A.nrows)
    np.minimum.at(smallest, theirs, np.arange(A.nrows))
    check(label == smallest[theirs], "component: not the smallest vertex of the component by SciPy")


def core_numbers(A: Matrix, core: Vector) -> None:
    """Check the neighbours of every vertex, and peel: what is left after each number k must have a higher one.

    Every vertex has enough neighbours of no lower number. To peel is to take vertices of at most k neighbours away
    until none is left.
    """
    number, present = dense(core, -1)
    check(present, "presence: a vertex without a number")
    rows, cols, _ = A.to_coo()
    rows, cols = rows[rows != cols], cols[rows != cols]
    peers = np.bincount(rows[number[cols] >= number[rows]], minlength=A.nrows)
    check(peers >= number, "core: fewer neighbours in it than its number")
    left = np.ones(A.nrows, bool)
    for k in np.unique(number):
        while True:
            low = left & (np.bincount(rows, minlength=A.nrows) <= k)
            if not low.any():
                break
            left &= ~low
            kept = left[rows] & left[cols]
            rows, cols = rows[kept], cols[kept]
        check(left == (number > k), f"peeling: not in the core after {k}, or not out of it")


def maximal_independent_set(A: Matrix, chosen: Vector) -> None:
    """No two of the set are joined, and every other vertex is joined to one of it."""
    member, _ = dense(chosen, False)
    rows, cols, _ = A.to_coo()
    rows, cols = rows[rows != cols], cols[rows != cols]
    check(~(member[rows] & member[cols]), "independence: two of the set are joined", rows)
    near = member.copy()
    near[cols[member[rows]]] = True
    check(near, "maximality: a vertex that could be added")


def triangles(A: Matrix, count: int) -> None:
    """Three times the count is the sum of what SciPy counts at the vertices."""
    theirs = triangles_by_vertex(A).sum()
    if theirs != 3 * count:
        raise VerificationError(f"check failed: count: {count} triangles, SciPy counts {theirs / 3:g}")


def triangles_by_vertex(A: Matrix) -> np.ndarray:
    """Half of the triangles at the edges of each vertex, loops left out."""
    return supports(edges(A)).sum(axis=1) // 2


def edges(A: Matrix) -> Any:
    """The pattern without loops, as ones of SciPy's."""
    rows, cols, _ = A.to_coo()
    apart = rows != cols
    return _pattern(A.nrows, rows[apart], cols[apart]).astype(np.int64)


def supports(pattern: Any) -> Any:
    """The triangles at each edge of a symmetric pattern, where there are any.

    They are its walks of two steps from end to end, as SciPy counts them, a thousand rows at a time.
    """
    from scipy.sparse import csr_array, vstack

    n = pattern.shape[0]
    blocks = [pattern[first : first + 1000] for first in range(0, n, 1000)]
    walks = [(block @ pattern).multiply(block) for block in blocks]
    return csr_array(vstack(walks)) if walks else pattern


def levels_from(n: int, rows: np.ndarray, cols: np.ndarray, source: int) -> np.ndarray:
    """Levels from a source as SciPy finds them, -1 where it does not reach."""
    from scipy.sparse import csgraph

    found = csgraph.dijkstra(_pattern(n, rows, cols), indices=source, unweighted=True)
    return np.where(np.isfinite(found), found, -1).astype(int)


def dense(vector: Vector, missing: Any) -> tuple[np.ndarray, np.ndarray]:
    """The values at all positions, and which of them are present."""
    where, values = vector.to_coo()
    dense, present = np.full(vector.size, missing, values.dtype), np.zeros(vector.size, bool)
    dense[where], present[where] = values, True
    return dense, present


def check(holds: np.ndarray, check: str, vertices: np.ndarray | None = None) -> None:
    """Raise for the first False; `vertices` numbers the places (without it a place is a vertex)."""
    if not holds.all():
        place = int(np.argmin(holds))
        _fail(check, place if vertices is None else int(vertices[place]))


def _check_source(check: str, source: int, holds: bool) -> None:
    if not holds:
        _fail(check, int(source))


def _fail(check: str, vertex: int) -> NoReturn:
    raise VerificationError(f"check failed: {check} (vertex {vertex})")


def _pattern(n: int, rows: np.ndarray, cols: np.ndarray) -> Any:
    """A pattern as SciPy has it."""
    from scipy.sparse import coo_array

    return coo_array((np.ones(rows.size, np.int8), (rows, cols)), shape=(n, n)).tocsr()


def _reachable(n: int, rows: np.ndarray, cols: np.ndarray, source: int) -> np.ndarray:
    found = np.zeros(n, bool)
    from scipy.sparse import csgraph

    found[csgraph.breadth_first_order(_pattern(n, rows, cols), source, return_predecessors=False)] = True
    return found
