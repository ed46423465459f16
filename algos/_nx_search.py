"""Searches and unweighted paths for NetworkX.

Where NetworkX's order of nodes shows, in edges, trees and paths, the search is in the order of its queue
(`algos/_in_order.py`); distances come from levels (`algos/bfs.py`).
"""

from collections.abc import Hashable, Iterator
from math import ceil, inf
from typing import Any

import networkx as nx
import numpy as np

from algos._csgraph_paths import in_turn
from algos._in_order import Queue, search_in_order
from algos._nx_graph import Arrays, DiGraph
from algos._nx_offers import offer
from algos.bfs import bfs, bfs_levels

Node = Hashable


def known(arrays: Arrays, node: Any, otherwise: Exception) -> int:
    """The number of a node, or the exception."""
    try:
        return arrays.numbers[node]
    except (KeyError, TypeError):
        raise otherwise from None


def hashed(arrays: Arrays, node: Any, otherwise: Exception) -> int:
    """The same. Raises TypeError for what can't be a node, where NetworkX does not ask first whether it is one."""
    hash(node)
    return known(arrays, node, otherwise)


def _source(arrays: Arrays, node: Any) -> int:
    return known(arrays, node, nx.NodeNotFound(f"Source {node} is not in G"))


def _arrays(G: Any, reverse: bool) -> Arrays:
    return G._backwards if reverse else G._arrays


def _depth(cutoff: float | None) -> int | None:
    """How many arcs NetworkX goes: as long as those so far are fewer than the cutoff."""
    return None if cutoff is None or cutoff == inf else max(ceil(cutoff), 0)


# -- in the order of the queue


def in_order(arrays: Arrays, seeds: np.ndarray, depth: float | None = None) -> Queue:
    """The search from the seeds in the order of the queue."""
    return search_in_order(arrays.pattern(), arrays.tails, arrays.heads, seeds, _depth(depth))


def _edges(G: Any, source: Node, reverse: bool, depth_limit: int | None) -> Iterator[tuple[Node, Node]]:
    arrays = _arrays(G, reverse)
    missing = nx.NetworkXError(f"The node {source} is not in the graph.")
    first = np.array([hashed(arrays, source, missing)])

    def edges() -> Iterator[tuple[Node, Node]]:
        nodes, tails, _ = in_order(arrays, first, depth_limit)
        yield from zip(arrays.labels(tails), arrays.labels(nodes[1:]), strict=True)

    return edges()


@offer(only=("sort_neighbors",), parallel=True)
def bfs_edges(
    G: Any, source: Node, reverse: bool = False, depth_limit: int | None = None, sort_neighbors: Any = None
) -> Iterator:
    return _edges(G, source, reverse, depth_limit)


@offer(only=("neighbors",), parallel=True)
def generic_bfs_edges(G: Any, source: Node, neighbors: Any = None, depth_limit: int | None = None) -> Iterator:
    return _edges(G, source, False, depth_limit)


@offer(only=("sort_neighbors",), parallel=True)
def bfs_tree(
    G: Any, source: Node, reverse: bool = False, depth_limit: int | None = None, sort_neighbors: Any = None
) -> DiGraph:
    if source is None:
        raise ValueError("None cannot be a node")
    arrays = _arrays(G, reverse)
    first = np.array([hashed(arrays, source, nx.NetworkXError(f"The node {source} is not in the graph."))])
    nodes, tails, _ = in_order(arrays, first, depth_limit)
    number = np.zeros(len(arrays), np.int64)
    number[nodes] = np.arange(len(nodes))
    return DiGraph.of_arrays(Arrays.of_edges(arrays.labels(nodes), number[tails], number[nodes[1:]], True))


@offer(only=("sort_neighbors",), parallel=True)
def bfs_predecessors(G: Any, source: Node, depth_limit: int | None = None, sort_neighbors: Any = None) -> Iterator:
    return ((head, tail) for tail, head in _edges(G, source, False, depth_limit))


@offer(only=("sort_neighbors",), parallel=True)
def bfs_successors(G: Any, source: Node, depth_limit: int | None = None, sort_neighbors: Any = None) -> Iterator:
    edges = _edges(G, source, False, depth_limit)

    def successors() -> Iterator[tuple[Node, list]]:
        parent, children = source, []
        for tail, head in edges:
            if tail != parent:
                yield parent, children
                parent, children = tail, []
            children.append(head)
        yield parent, children

    return successors()


@offer(parallel=True)
def bfs_layers(G: Any, sources: Any) -> Iterator[list]:
    arrays = G._arrays
    listed = [sources] if sources in G else list(set(sources))
    missing = (nx.NetworkXError(f"The node {source} is not in the graph.") for source in listed)
    first = np.array([known(arrays, source, error) for source, error in zip(listed, missing, strict=True)], np.int64)

    def layers() -> Iterator[list]:
        if listed:
            yield listed
            nodes, _, starts = in_order(arrays, first)
            for level in np.split(nodes, starts[1:])[1:]:
                yield arrays.labels(level)

    return layers()


def _paths(arrays: Arrays, source: int, depth: int | None, backwards: bool = False) -> dict[Node, list]:
    """A shortest path to each node within reach, that which the queue finds."""
    label = arrays.nodes[source]
    paths = {label: [label]}
    nodes, tails, _ = in_order(arrays, np.array([source]), depth)
    for tail, head in zip(arrays.labels(tails), arrays.labels(nodes[1:]), strict=True):
        paths[head] = [head, *paths[tail]] if backwards else [*paths[tail], head]
    return paths


@offer(parallel=True)
def single_source_shortest_path(G: Any, source: Node, cutoff: float | None = None) -> dict[Node, list]:
    number = known(G._arrays, source, nx.NodeNotFound(f"Source {source} not in G"))
    return _paths(G._arrays, number, _depth(cutoff))


@offer(parallel=True)
def single_target_shortest_path(G: Any, target: Node, cutoff: float | None = None) -> dict[Node, list]:
    number = known(G._arrays, target, nx.NodeNotFound(f"Target {target} not in G"))
    return _paths(G._backwards, number, _depth(cutoff), backwards=True)


@offer(parallel=True)
def all_pairs_shortest_path(G: Any, cutoff: float | None = None) -> Iterator[tuple[Node, dict]]:
    arrays = G._arrays
    return ((label, _paths(arrays, number, _depth(cutoff))) for number, label in enumerate(arrays.nodes))


@offer(parallel=True)
def predecessor(
    G: Any, source: Node, target: Node | None = None, cutoff: float | None = None, return_seen: bool | None = None
) -> Any:
    arrays = G._arrays
    first = np.array([known(arrays, source, nx.NodeNotFound(f"Source {source} not in G"))])
    depth = _depth(max(cutoff, 1)) if cutoff else None  # NetworkX looks at it after a level, and not at 0
    order = in_order(arrays, first, depth).nodes
    place = np.full(len(arrays), -1)
    place[order] = np.arange(len(order))
    level = _levels(G, int(first[0]), False, depth)
    tails, heads = arrays.tails, arrays.heads
    tight = (level[tails] >= 0) & (level[heads] == level[tails] + 1)
    tails, heads = tails[tight], heads[tight]
    by_place = np.lexsort((place[tails], place[heads]))
    pred: dict[Node, list] = {label: [] for label in arrays.labels(order)}
    for head, tail in zip(arrays.labels(heads[by_place]), arrays.labels(tails[by_place]), strict=True):
        pred[head].append(tail)
    seen = dict(zip(pred, level[order].tolist(), strict=True))
    if target is not None:
        return (pred.get(target, []), seen.get(target, -1)) if return_seen else pred.get(target, [])
    return (pred, seen) if return_seen else pred


# -- by levels


def _levels(G: Any, source: int, reverse: bool, depth: int | None) -> np.ndarray:
    """The level of each node by number, -1 where the search does not come."""
    return bfs_levels(_arrays(G, reverse).pattern(), source, depth).to_dense(-1)


def nearest_first(arrays: Arrays, found: np.ndarray, distances: np.ndarray) -> dict[Node, Any]:
    """The distances of the nodes found, in the order of distances."""
    order = np.argsort(distances, kind="stable")
    return dict(zip(arrays.labels(found[order]), distances[order].tolist(), strict=True))


def _lengths(G: Any, source: int, reverse: bool, cutoff: float | None) -> dict[Node, int]:
    level = _levels(G, source, reverse, _depth(cutoff))
    found = np.flatnonzero(level >= 0)
    return nearest_first(G._arrays, found, level[found])


@offer(parallel=True)
def single_source_shortest_path_length(G: Any, source: Node, cutoff: float | None = None) -> dict[Node, int]:
    return _lengths(G, _source(G._arrays, source), False, cutoff)


@offer(parallel=True)
def single_target_shortest_path_length(G: Any, target: Node, cutoff: float | None = None) -> dict[Node, int]:
    number = known(G._arrays, target, nx.NodeNotFound(f"Target {target} is not in G"))
    return _lengths(G, number, True, cutoff)


@offer(parallel=True)
def all_pairs_shortest_path_length(G: Any, cutoff: float | None = None) -> Iterator[tuple[Node, dict]]:
    arrays = G._arrays

    def lengths() -> Iterator[tuple[Node, dict]]:
        for label, row in zip(arrays.nodes, each_row(arrays, _depth(cutoff)), strict=True):
            found = np.flatnonzero(row >= 0)
            yield label, nearest_first(arrays, found, row[found])

    return lengths()


def each_row(arrays: Arrays, depth: int | None = None) -> Iterator[np.ndarray]:
    """The levels from each node in turn (INT64 by number, -1: none), many at a time."""
    A = arrays.pattern()
    for some in in_turn(A, np.arange(len(arrays)), False, unweighted=True, limit=depth):
        yield from np.where(np.isfinite(some.distances), some.distances, -1).astype(np.int64)


def _reached(G: Any, source: Node, reverse: bool) -> set:
    arrays = G._arrays
    number = hashed(arrays, source, nx.NetworkXError(f"The node {source} is not in the graph."))
    level = _levels(G, number, reverse, None)
    return set(arrays.labels(np.flatnonzero(level > 0)))


@offer(parallel=True)
def descendants(G: Any, source: Node) -> set:
    return _reached(G, source, False)


@offer(parallel=True)
def ancestors(G: Any, source: Node) -> set:
    return _reached(G, source, True)


@offer(parallel=True)
def descendants_at_distance(G: Any, source: Node, distance: int) -> set:
    arrays = G._arrays
    number = known(arrays, source, nx.NetworkXError(f"The node {source} is not in the graph."))
    try:
        level = int(distance)  # of any type that compares with whole numbers
    except (TypeError, ValueError, OverflowError):
        return set()
    if level != distance or not 0 <= level < len(arrays):
        return set()
    return set(arrays.labels(np.flatnonzero(_levels(G, number, False, level) == level)))


@offer(parallel=True)
def bidirectional_shortest_path(G: Any, source: Node, target: Node) -> list:
    """A path of the tree from `source`: perhaps another one of the shortest than NetworkX's."""
    arrays = G._arrays
    first = _source(arrays, source)
    last = known(arrays, target, nx.NodeNotFound(f"Target {target} is not in G"))
    path = climbed(bfs(arrays.pattern(), first).parents.to_dense(-1), last)
    if path is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return arrays.labels(path)


def climbed(parents: np.ndarray, last: int) -> np.ndarray | None:
    """From the root, which is its own parent, to `last`; None where there is no parent (-1)."""
    if parents[last] < 0:
        return None
    path = [last]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return np.array(path[::-1])


@offer(parallel=True)
def has_path(G: Any, source: Node, target: Node) -> bool:
    arrays = G._arrays
    first = _source(arrays, source)
    last = known(arrays, target, nx.NodeNotFound(f"Target {target} is not in G"))
    return bool(_levels(G, first, False, None)[last] >= 0)
