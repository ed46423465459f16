"""Whether results on large graphs are right, by CuPy alone: nothing here comes from gbgpu.

Each check raises AssertionError with what is wrong. Levels, distances and ranks are checked by their properties over
all edges; components and triangles against another computation.
"""

from __future__ import annotations

from collections.abc import Callable

import cupy
import numpy as np
from cupyx import scatter_add, scatter_min
from cupyx.scipy.sparse import csr_matrix
from numba import njit

from bench.device_graphs import Graph

# Triangles: for each edge (u, v), u before v, the successors that both have, by merging their lists.
TRIANGLES = r"""
extern "C" __global__ void count(const long long *indptr, const int *heads, const int *tails, long long edges,
                                 unsigned long long *total) {
    unsigned long long found = 0;
    const long long step = gridDim.x * (long long)blockDim.x;
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < edges; e += step) {
        long long i = indptr[tails[e]], j = indptr[heads[e]];
        const long long iend = indptr[tails[e] + 1], jend = indptr[heads[e] + 1];
        while (i < iend && j < jend) {
            const int a = heads[i], b = heads[j];
            found += a == b;
            i += a <= b;
            j += b <= a;
        }
    }
    atomicAdd(total, found);
}
"""


def rows_of(graph: Graph) -> cupy.ndarray:
    """The row of each entry."""
    marks = cupy.zeros(graph.nnz, cupy.int32)
    degrees = cupy.diff(graph.indptr)
    present = cupy.flatnonzero(degrees)
    steps = cupy.diff(present, prepend=cupy.zeros(1, present.dtype)).astype(cupy.int32)
    marks[graph.indptr[present]] = steps
    return cupy.cumsum(marks, dtype=cupy.int32)


def levels(graph: Graph, source: int, found: np.ndarray) -> None:
    """`found`: levels, -1 where not reached. Ends of an edge differ by one at most, and every reached vertex has a
    neighbour one level above."""
    level = cupy.asarray(found.astype(np.int32))
    here, there = level[rows_of(graph)], level[graph.indices]
    assert level[source] == 0 and int((level == 0).sum()) == 1, "the root is not alone on level 0"
    assert not bool(((here < 0) != (there < 0)).any()), "an edge leaves what was reached"
    assert not bool((abs(here - there) > 1).any()), "an edge skips a level"
    above = cupy.full(graph.n, 2**31 - 1, cupy.int32)
    scatter_min(above, graph.indices, cupy.where(here < 0, 2**31 - 1, here))
    lower = level > 0
    assert not bool((above[lower] != level[lower] - 1).any()), "a vertex without a parent"


def parents(graph: Graph, levels: np.ndarray, found: np.ndarray) -> None:
    """`found`: a neighbour one level above, where there is a level above 0; the source itself at the source."""
    level, parent = cupy.asarray(levels.astype(np.int32)), cupy.asarray(found)
    assert bool(((level < 0) == (parent < 0)).all()), "a parent too many, or one too few"
    assert int(parent[level == 0][0]) == int(cupy.flatnonzero(level == 0)[0]), "the source has another parent"
    below = cupy.flatnonzero(level > 0)
    assert bool((level[parent[below]] == level[below] - 1).all()), "a parent on another level"
    rows, joined = rows_of(graph), cupy.zeros(graph.n, bool)
    joined[graph.indices[parent[graph.indices] == rows]] = True
    assert bool(joined[below].all()), "a parent that is no neighbour"


def searched(graph: Graph, source: int) -> list[tuple[cupy.ndarray, cupy.ndarray]]:
    """The edges from each level to the next."""
    level, depth = cupy.full(graph.n, -1, cupy.int32), 0
    level[source] = 0
    frontier, steps = cupy.array([source]), []
    while frontier.size:
        tails, heads = edges_of(graph, frontier)
        level[heads[level[heads] < 0]] = depth + 1
        onward = level[heads] == depth + 1
        steps.append((tails[onward], heads[onward]))
        frontier, depth = cupy.unique(heads[onward]), depth + 1
    return steps


def edges_of(graph: Graph, some: cupy.ndarray) -> tuple[cupy.ndarray, cupy.ndarray]:
    """(tails, heads) of the entries of some rows."""
    first, lengths = graph.indptr[some], graph.indptr[some + 1] - graph.indptr[some]
    ends = cupy.cumsum(lengths)
    each = cupy.arange(int(ends[-1])) if some.size else cupy.zeros(0, cupy.int64)
    of = cupy.searchsorted(ends, each, side="right")
    return some[of], graph.indices[first[of] + each - (ends - lengths)[of]]


def betweenness(graph: Graph, sources: list[int], found: np.ndarray) -> None:
    """Paths counted forth and summed back an edge at a time, scaled for undirected graphs and some sources."""
    total = cupy.zeros(graph.n)
    for source in sources:
        steps = searched(graph, source)
        paths, depends = cupy.zeros(graph.n), cupy.zeros(graph.n)
        paths[source] = 1
        for tails, heads in steps:
            scatter_add(paths, heads, paths[tails])
        for tails, heads in reversed(steps):
            scatter_add(depends, tails, paths[tails] / paths[heads] * (1 + depends[heads]))
        depends[source] = 0
        total += depends
    counts = cupy.full(graph.n, len(sources))
    counts[cupy.asarray(sources)] -= 1  # a source has no part in its own paths
    right = total / (counts * (graph.n - 2))
    off = float((abs(right - cupy.asarray(found)) / cupy.maximum(right, 1e-12 * float(right.max()))).max())
    assert off < 1e-6, f"a vertex is off by {off:.1e} of itself"


def core_numbers(graph: Graph, found: np.ndarray) -> None:
    """Peeling, all that are low at once."""
    left, core, k = cupy.diff(graph.indptr).astype(cupy.int32), cupy.full(graph.n, -1), 0
    while (rest := left[core < 0]).size:
        k = max(k, int(rest.min()))
        low = cupy.flatnonzero((core < 0) & (left <= k))
        core[low] = k
        scatter_add(left, edges_of(graph, low)[1], -1)
    assert bool((core == cupy.asarray(found)).all()), "core numbers differ"


def coloring(graph: Graph, found: np.ndarray, order: np.ndarray) -> None:
    """The colours of the sequential rule, which takes the largest in the order first; that is one by degrees."""
    indptr, turn = graph.indptr.get(), np.argsort(-order)
    degree = np.diff(indptr)[turn]
    assert len(np.unique(order)) == graph.n and (degree[:-1] >= degree[1:]).all(), "not an order by degrees"
    assert (found == greedy(indptr, graph.indices.get(), turn)).all(), "colours differ"


@njit
def greedy(indptr: np.ndarray, indices: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Each vertex, in this order, takes the lowest colour that no neighbour has."""
    n = len(indptr) - 1
    color, seen = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for v in order:
        for e in range(indptr[v], indptr[v + 1]):
            if color[indices[e]] >= 0:
                seen[color[indices[e]]] = v
        c = 0
        while seen[c] == v:
            c += 1
        color[v] = c
    return color


def distances(graph: Graph, source: int, found: np.ndarray) -> None:
    """`found`: distances, infinite where not reached. No edge makes one shorter, and one makes each."""
    distance = cupy.asarray(found.astype(np.float32))
    least = cupy.full(graph.n, np.inf, cupy.float32)
    scatter_min(least, graph.indices, distance[rows_of(graph)] + graph.weights)
    least[source] = 0
    assert not bool((least != distance).any()), "a distance is not the least over its edges"


def ranks(graph: Graph, found: np.ndarray, iterations: int) -> None:
    """Ranks of float32 against the same iterations in float64."""
    further, rank = next_ranks(graph), cupy.full(graph.n, 1 / graph.n)
    for _ in range(iterations):
        rank = further(rank)
    worst = float((abs(rank - cupy.asarray(found)) / rank).max())
    assert worst < 1e-4, f"a rank is off by {worst:.1e} of itself"


def settled(graph: Graph, found: np.ndarray, tol: float) -> None:
    """Another round in float64 changes the ranks by less than tol, and what float32 rounds."""
    rank = cupy.asarray(found, cupy.float64)
    change = float(abs(next_ranks(graph)(rank) - rank).sum())
    assert change < tol + 3e-6, f"another round changes the ranks by {change:.1e}"


def next_ranks(graph: Graph, damping: float = 0.85) -> Callable[[cupy.ndarray], cupy.ndarray]:
    degrees = cupy.diff(graph.indptr).astype(cupy.float64)
    share = cupy.where(degrees > 0, damping / cupy.maximum(degrees, 1), 0)
    ones = cupy.ones(graph.nnz, cupy.float64)
    matrix = csr_matrix((ones, graph.indices, graph.indptr.astype(cupy.int32)), shape=(graph.n, graph.n))

    def further(rank: cupy.ndarray) -> cupy.ndarray:
        arrived = matrix @ (rank * share)
        return arrived + (1 - arrived.sum()) / graph.n

    return further


def components(graph: Graph, found: np.ndarray) -> None:
    """Labels against least labels that spread along edges and pointers until nothing changes."""
    rows, label = rows_of(graph), cupy.arange(graph.n, dtype=cupy.int32)
    while True:
        before = label.copy()
        least = label.copy()
        scatter_min(least, graph.indices, label[rows])
        scatter_min(label, before, least)
        label = cupy.minimum(label, least)
        for _ in range(3):
            label = label[label]
        if not bool((label != before).any()):
            break
    assert not bool((label != cupy.asarray(found)).any()), "labels differ"


def triangles(graph: Graph, found: int) -> None:
    """The count against merging the lists of both ends of every edge, in the order of degrees."""
    degrees = cupy.diff(graph.indptr)
    place = cupy.empty(graph.n, cupy.int64)
    place[cupy.argsort(degrees)] = cupy.arange(graph.n)
    tails, heads = place[rows_of(graph)], place[graph.indices]
    keys = ((tails << np.int64(32)) | heads)[tails < heads]
    keys.sort()
    indptr = cupy.searchsorted(keys, cupy.arange(graph.n + 1) << np.int64(32))
    tails, heads = (keys >> np.int64(32)).astype(cupy.int32), keys.astype(cupy.int32)
    total = cupy.zeros(1, cupy.uint64)
    kernel = cupy.RawKernel(TRIANGLES, "count")
    kernel((132 * 16,), (256,), (indptr, heads, tails, np.int64(keys.size), total))
    assert int(total[0]) == found, f"{int(total[0])} triangles, not {found}"
