"""Shortest paths for csgraph: from many sources at once, with predecessors.

The distances from k sources are one vector over k copies of the graph side by side, so that the loops of a single
source serve them all: `relax` of algos/sssp.py, `search` of algos/bfs.py. Where `gb.fixpoint` finds distances without
rounds on CPU devices, one source comes after the other: one thread extends vertices, however many copies there are.

Predecessors follow from distances, as in `shortest_path_tree`.

Source: as algos/sssp.py and algos/bfs.py; Johnson 1977 for the distances from everywhere that show negative cycles.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import NegativeCycleError

from algos._copies import batches
from algos._inputs import rounds_are_cheap, without_rounds
from algos.bfs import search
from algos.sssp import relax, through, tight
from gbgpu import Matrix, Vector, binary, monoid, select
from gbgpu.semiring import any_lt, min_plus

NOBODY = -9999
ENTRIES = 1 << 22  # of all copies of a graph together
TOLERANCE = 1e-15  # by so much a cycle may be negative, as in SciPy


class Paths(NamedTuple):
    """Rows of distances (inf: none) and of predecessors (-9999: none), or None."""

    distances: np.ndarray
    predecessors: np.ndarray | None


def each(A: Matrix, sources: np.ndarray, trees: bool, **how: Any) -> Paths:
    """The paths from each source, in a row of its own; `how` as in `among`."""
    found = Paths(np.empty((len(sources), A.nrows)), np.empty((len(sources), A.nrows), np.int32) if trees else None)
    first = 0
    for some in in_turn(A, sources, trees, **how):
        rows = slice(first, first := first + len(some.distances))
        found.distances[rows] = some.distances
        if trees:
            found.predecessors[rows] = some.predecessors
    return found


def in_turn(A: Matrix, sources: np.ndarray, trees: bool, **how: Any) -> Iterator[Paths]:
    """The same, as many rows at a time as there are copies of the graph."""
    n = A.nrows
    rounds = trees or how.get("unweighted")
    alone = not rounds and rounds_are_cheap() and without_rounds(A)
    for copies, seeds in batches(A, sources, 0 if alone else ENTRIES):
        rows, tree = among(copies, seeds, trees, n=n, **how), None
        if trees:
            tree = rows.predecessors.reshape(-1, n)[: len(seeds)]
            tree = np.where(tree == NOBODY, NOBODY, tree % n)
        yield Paths(rows.distances.reshape(-1, n)[: len(seeds)], tree)


def among(
    A: Matrix, seeds: np.ndarray, trees: bool, *, n: int, unweighted: bool = False, limit: float | None = None
) -> Paths:
    """The paths from the nearest of the seeds, in a graph of components of at most n vertices. Raises
    NegativeCycleError."""
    if limit is not None and not limit < np.inf:
        limit = None if limit == np.inf else -1.0  # no path is as short as NaN
    if unweighted:
        return _levels(A, seeds, trees, limit)
    d = Vector(float, A.nrows, name="d")
    if len(seeds):
        d[seeds] = 0.0
    lowest, total = _range(A)
    if not relax(A, d, lowest, total, n, limit) and (late := late_columns(A, d)).size:
        source = seeds[seeds // n == late[0] // n][0] % n
        raise NegativeCycleError(f"Negative cycle detected on node {source}")
    parents = search(tight(A, d), roots(seeds, A.nrows)).parents if trees else None
    return Paths(d.to_dense(np.inf), None if parents is None else _predecessors(parents, seeds))


def _levels(A: Matrix, seeds: np.ndarray, trees: bool, limit: float | None) -> Paths:
    depth = None if limit is None or limit >= A.nrows else max(int(limit), 0)
    tree = search(A, roots(seeds, A.nrows), depth)
    levels = tree.levels.to_dense(-1).astype(float)
    gone = (levels < 0) | ~(levels <= (np.inf if limit is None else limit)) & (levels != 0)
    levels[gone] = np.inf
    if not trees:
        return Paths(levels, None)
    parents = _predecessors(tree.parents, seeds)
    parents[gone] = NOBODY
    return Paths(levels, parents)


def _range(A: Matrix) -> tuple[float, float]:
    """The least weight and their sum."""
    if not A.nvals:
        return 0.0, 0.0
    return A.reduce_scalar(monoid.min).new().value, A.reduce_scalar(monoid.plus).new().value


def roots(seeds: np.ndarray, n: int) -> Vector:
    """Where a search begins: each seed its own parent."""
    found = np.unique(seeds)
    return Vector.from_coo(found, found, int, size=n, name="q")


def _predecessors(parents: Vector, seeds: np.ndarray) -> np.ndarray:
    found = parents.to_dense(NOBODY).astype(np.int32)
    found[seeds] = NOBODY
    return found


def late_columns(A: Matrix, d: Vector) -> np.ndarray:
    """The ends of arcs that shorten a distance still, in order: a negative cycle leads there."""
    lengths, D = through(A, d)
    shorter = any_lt(lengths.apply(binary.plus, right=TOLERANCE).new() @ D).new()
    return np.unique(select.valuene(shorter, False).new().to_coo()[1])


def check_cycles(A: Matrix) -> None:
    """NegativeCycleError if there is a negative cycle anywhere, whose length no path from everywhere escapes."""
    d = Vector(float, A.nrows, name="d")
    d[:] = 0.0
    if not relax(A, d, *_range(A), A.nrows + 1) and (late := late_columns(A, d)).size:
        raise NegativeCycleError(f"Negative cycle detected on node {late[0]}")


def squared(A: Matrix) -> np.ndarray:
    """All distances: paths of twice as many arcs in each round, as products of a full matrix with itself. Raises
    NegativeCycleError."""
    n = A.nrows
    D = A.dup()
    D.setdiag(0.0)
    for _ in range(n.bit_length() + 1):
        before = D.dup()
        D(binary.min) << min_plus(D @ D)
        check_diagonal(D.diag().to_dense(0.0))
        if D.isequal(before):
            break
    return D.to_dense(np.inf)


def check_diagonal(diagonal: np.ndarray) -> None:
    """NegativeCycleError if some vertex reaches itself by less than nothing."""
    if (diagonal < 0).any():
        raise NegativeCycleError(f"Negative cycle in nodes {np.flatnonzero(diagonal < 0)}")


def origins(predecessors: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """The root of each vertex's tree (int32), -9999 where no path leads."""
    own = np.arange(len(predecessors))
    root = Vector.from_coo(own, np.where(predecessors == NOBODY, own, predecessors), int, size=len(own), name="root")
    while True:
        above = root[root].new()
        if above.isequal(root):
            return np.where(np.isfinite(distances), root.to_coo()[1], NOBODY).astype(np.int32)
        root << above
