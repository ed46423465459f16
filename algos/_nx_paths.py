"""Weighted shortest paths for NetworkX, on `algos/_csgraph_paths.py`.

A shortest path may be another one of the same length than NetworkX's. Distances are computed in FP64; they are integers
again where all weights are.
"""

from collections.abc import Iterator
from math import inf
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse.csgraph import NegativeCycleError

from algos import _nx_search as search
from algos._csgraph_paths import Paths, among, check_cycles, each, in_turn
from algos._nx_graph import Arrays
from algos._nx_offers import offer
from algos._nx_search import Node, known, nearest_first
from gbgpu import select


class _Weighted:
    """A graph with weights, and the paths that were asked of it. `calls`: whether NetworkX calls a weight that is a
    function; else it is an attribute's name."""

    def __init__(self, G: Any, weight: Any, *, negative: bool = False, calls: bool = True):
        self.arrays: Arrays = G._called(weight) if calls else G._arrays
        found, hidden = self.arrays.seen(weight, min, calls)
        self.whole = found.dtype.kind == "i"
        self.lowest = found.min(initial=0)
        if self.lowest < 0 and not negative:
            raise NotImplementedError("weights of at least 0")
        total = np.abs(found).sum(dtype=float)
        if not total < (2**53 if self.whole else inf):
            raise NotImplementedError("finite weights, and whole ones with a sum below 2**53")
        self.A = self.arrays.matrix(np.where(hidden, np.nan, found))
        if hidden.any():
            self.A = select.valuele(self.A, inf).new(name="A")

    def number(self, node: Node, text: str = "Node {} not found in graph") -> int:
        return known(self.arrays, node, nx.NodeNotFound(text.format(node)))

    def among(self, sources: list[int], trees: bool, cutoff: float | None = None) -> Paths:
        """From the nearest of the sources."""
        try:
            return among(self.A, np.array(sources), trees, n=len(self.arrays), limit=cutoff)
        except NegativeCycleError:
            raise nx.NetworkXUnbounded("Negative cycle detected.") from None

    def every(self, trees: bool, cutoff: float | None = None) -> Iterator[tuple[int, Paths]]:
        """From each node in turn, many at a time."""
        number = 0
        try:
            for some in in_turn(self.A, np.arange(len(self.arrays)), trees, limit=cutoff):
                for row, distances in enumerate(some.distances):
                    yield number, Paths(distances, some.predecessors[row] if some.predecessors is not None else None)
                    number += 1
        except NegativeCycleError:
            raise nx.NetworkXUnbounded("Negative cycle detected.") from None

    def lengths(self, paths: Paths) -> dict[Node, Any]:
        """The distances of what is reached, nearest first."""
        found = np.flatnonzero(np.isfinite(paths.distances))
        distances = paths.distances[found]
        return nearest_first(self.arrays, found, distances.astype(np.int64) if self.whole else distances)

    def length(self, paths: Paths, target: int) -> Any:
        distance = paths.distances[target].item()
        return int(distance) if self.whole else distance

    def found(self, paths: Paths, target: Any, missing: str) -> tuple:
        """Length and path of a target, or of all that is reached (None). NetworkXNoPath says that it is missing."""
        if target is None:
            return self.lengths(paths), self.paths(paths)
        number = self.arrays.numbers.get(target)
        if number is None or not np.isfinite(paths.distances[number]):
            raise nx.NetworkXNoPath(missing)
        return self.length(paths, number), self.path(paths, number)

    def path(self, paths: Paths, target: int) -> list:
        assert paths.predecessors is not None
        path = [target]
        while paths.predecessors[path[-1]] >= 0:
            path.append(paths.predecessors[path[-1]])
        return self.arrays.labels(np.array(path[::-1]))

    def paths(self, paths: Paths) -> dict[Node, list]:
        """The path to each node, nearest first."""
        assert paths.predecessors is not None
        before, nodes = paths.predecessors.tolist(), self.arrays.nodes
        found = {number: [nodes[number]] for number in np.flatnonzero(paths.distances == 0) if before[number] < 0}
        nearest = np.flatnonzero(np.isfinite(paths.distances))
        nearest = nearest[np.argsort(paths.distances[nearest], kind="stable")].tolist()
        for number in nearest:
            ahead = []
            while number not in found:  # arcs of length 0 may lead from one that comes later
                ahead.append(number)
                number = before[number]
            for following in reversed(ahead):
                found[following] = [*found[number], nodes[following]]
                number = following
        return {nodes[number]: found[number] for number in nearest}


def weighted_rows(G: Any, weight: Any) -> Iterator[np.ndarray]:
    """The distances from each node in turn, by number: inf where no path leads."""
    graph = _Weighted(G, weight)
    for _, found in graph.every(False):
        whole = graph.whole and np.isfinite(found.distances).all()
        yield found.distances.astype(np.int64) if whole else found.distances


def _cutoff(given: dict[str, Any]) -> str | None:
    cutoff = given.get("cutoff")
    return None if cutoff is None or cutoff >= 0 else "a cutoff below 0 is left to NetworkX"


def _sources(graph: _Weighted, sources: Any) -> list[int]:
    if not sources:
        raise ValueError("sources must not be empty")
    return [graph.number(source) for source in sources]


# -- Dijkstra's family


@offer(parallel=True, refuses=_cutoff)
def multi_source_dijkstra(
    G: Any, sources: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple:
    graph = _Weighted(G, weight)
    numbers = _sources(graph, sources)
    if target in sources:
        return 0, [target]
    paths = graph.among(numbers, True, cutoff)
    return graph.found(paths, target, f"No path to {target}.")


@offer(parallel=True, refuses=_cutoff)
def multi_source_dijkstra_path(G: Any, sources: Any, cutoff: float | None = None, weight: Any = "weight") -> dict:
    return multi_source_dijkstra(G, sources, None, cutoff, weight)[1]


@offer(parallel=True, refuses=_cutoff)
def multi_source_dijkstra_path_length(
    G: Any, sources: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict:
    graph = _Weighted(G, weight)
    return graph.lengths(graph.among(_sources(graph, sources), False, cutoff))


@offer(parallel=True, refuses=_cutoff)
def single_source_dijkstra(
    G: Any, source: Node, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple:
    return multi_source_dijkstra(G, {source}, target, cutoff, weight)


@offer(parallel=True, refuses=_cutoff)
def single_source_dijkstra_path(G: Any, source: Node, cutoff: float | None = None, weight: Any = "weight") -> dict:
    return multi_source_dijkstra(G, {source}, None, cutoff, weight)[1]


@offer(parallel=True, refuses=_cutoff)
def single_source_dijkstra_path_length(
    G: Any, source: Node, cutoff: float | None = None, weight: Any = "weight"
) -> dict:
    return multi_source_dijkstra_path_length(G, {source}, cutoff, weight)


@offer(parallel=True)
def dijkstra_path(G: Any, source: Node, target: Node, weight: Any = "weight") -> list:
    return multi_source_dijkstra(G, {source}, target, None, weight)[1]


@offer(parallel=True)
def dijkstra_path_length(G: Any, source: Node, target: Node, weight: Any = "weight") -> Any:
    return _length(_Weighted(G, weight), source, target, "Node {} not reachable from {}")


def _length(graph: _Weighted, source: Node, target: Node, unreachable: str) -> Any:
    first = graph.number(source)
    if source == target:
        return 0
    paths = graph.among([first], False)
    number = graph.arrays.numbers.get(target)
    if number is None or not np.isfinite(paths.distances[number]):
        raise nx.NetworkXNoPath(unreachable.format(target, source))
    return graph.length(paths, number)


@offer(parallel=True)
def bidirectional_dijkstra(G: Any, source: Node, target: Node, weight: Any = "weight") -> tuple:
    """From one end only."""
    arrays = G._arrays
    for end, name in ((source, "Source"), (target, "Target")):
        known(arrays, end, nx.NodeNotFound(f"{name} {end} is not in G"))
    if source == target:
        return 0, [source]
    try:
        return multi_source_dijkstra(G, {source}, target, None, weight)
    except nx.NetworkXNoPath:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.") from None


@offer(parallel=True, refuses=_cutoff)
def all_pairs_dijkstra(G: Any, cutoff: float | None = None, weight: Any = "weight") -> Iterator[tuple]:
    graph, nodes = _Weighted(G, weight), G._arrays.nodes
    return ((nodes[i], (graph.lengths(found), graph.paths(found))) for i, found in graph.every(True, cutoff))


@offer(parallel=True, refuses=_cutoff)
def all_pairs_dijkstra_path(G: Any, cutoff: float | None = None, weight: Any = "weight") -> Iterator[tuple]:
    graph, nodes = _Weighted(G, weight), G._arrays.nodes
    return ((nodes[i], graph.paths(found)) for i, found in graph.every(True, cutoff))


@offer(parallel=True, refuses=_cutoff)
def all_pairs_dijkstra_path_length(G: Any, cutoff: float | None = None, weight: Any = "weight") -> Iterator[tuple]:
    graph, nodes = _Weighted(G, weight), G._arrays.nodes
    return ((nodes[i], graph.lengths(found)) for i, found in graph.every(False, cutoff))


# -- negative weights


@offer(parallel=True)
def single_source_bellman_ford(G: Any, source: Node, target: Any = None, weight: Any = "weight") -> tuple:
    hash(source)
    graph = _Weighted(G, weight, negative=True)
    first = graph.number(source, "Source {} not in G")
    if source == target:
        return 0, [source]
    paths = graph.among([first], True)
    return graph.found(paths, target, f"Target {target} cannot be reached from given sources")


@offer(parallel=True)
def single_source_bellman_ford_path(G: Any, source: Node, weight: Any = "weight") -> dict:
    return single_source_bellman_ford(G, source, None, weight)[1]


@offer(parallel=True)
def single_source_bellman_ford_path_length(G: Any, source: Node, weight: Any = "weight") -> dict:
    hash(source)
    graph = _Weighted(G, weight, negative=True)
    return graph.lengths(graph.among([graph.number(source, "Source {} not in G")], False))


@offer(parallel=True)
def bellman_ford_path(G: Any, source: Node, target: Node, weight: Any = "weight") -> list:
    return single_source_bellman_ford(G, source, target, weight)[1]


@offer(parallel=True)
def bellman_ford_path_length(G: Any, source: Node, target: Node, weight: Any = "weight") -> Any:
    hash(source)
    return _length(_Weighted(G, weight, negative=True), source, target, "node {} not reachable from {}")


@offer(parallel=True)
def all_pairs_bellman_ford_path(G: Any, weight: Any = "weight") -> Iterator[tuple]:
    graph, nodes = _Weighted(G, weight, negative=True), G._arrays.nodes
    return ((nodes[i], graph.paths(found)) for i, found in graph.every(True))


@offer(parallel=True)
def all_pairs_bellman_ford_path_length(G: Any, weight: Any = "weight") -> Iterator[tuple]:
    graph, nodes = _Weighted(G, weight, negative=True), G._arrays.nodes
    return ((nodes[i], graph.lengths(found)) for i, found in graph.every(False))


@offer(parallel=True)
def johnson(G: Any, weight: Any = "weight") -> dict:
    graph = _Weighted(G, weight, negative=True)
    _no_negative_cycle(graph)
    nodes = graph.arrays.nodes
    return {nodes[i]: graph.paths(found) for i, found in graph.every(True)}


def _no_negative_cycle(graph: _Weighted) -> None:
    """Anywhere."""
    if graph.lowest < 0:
        try:
            check_cycles(graph.A)
        except NegativeCycleError:
            raise nx.NetworkXUnbounded("Negative cycle detected.") from None


@offer(parallel=True)
def negative_edge_cycle(G: Any, weight: Any = "weight", heuristic: bool = True) -> bool:
    try:
        _no_negative_cycle(_Weighted(G, weight, negative=True))
    except nx.NetworkXUnbounded:
        return True
    return False


@offer(parallel=True)
def floyd_warshall(G: Any, weight: Any = "weight") -> dict:
    """As a dictionary of dictionaries, with inf where no path leads."""
    graph = _Weighted(G, weight, calls=False)
    nodes = graph.arrays.nodes
    return {nodes[i]: graph.arrays.by_node(found.distances) for i, found in graph.every(False)}


@offer(parallel=True)
def floyd_warshall_numpy(G: Any, nodelist: Any = None, weight: Any = "weight") -> np.ndarray:
    graph = _Weighted(G, weight, calls=False)
    order = np.arange(len(graph.arrays))
    if nodelist is not None:
        listed = list(nodelist)
        if len(listed) != len(order) or set(listed) != set(graph.arrays.nodes):
            raise nx.NetworkXError("nodelist must contain every node in G with no repeats.")
        order = np.array([graph.arrays.numbers[node] for node in listed], int)
    return each(graph.A, order, False).distances[:, order]


# -- what chooses among them


def _methods(given: dict[str, Any]) -> str | None:
    method = given.get("method", "dijkstra")
    return None if method in ("dijkstra", "bellman-ford") else f"method {method!r} is left to NetworkX"


@offer(parallel=True, refuses=_methods)
def shortest_path(G: Any, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra") -> Any:
    if source is None and target is not None:
        return _to_target(G, target, weight, method)
    plain = weight is None
    if source is None:
        every = all_pairs_dijkstra_path if method == "dijkstra" else all_pairs_bellman_ford_path
        return search.all_pairs_shortest_path(G) if plain else every(G, weight=weight)
    if target is None:
        single = single_source_dijkstra_path if method == "dijkstra" else single_source_bellman_ford_path
        return search.single_source_shortest_path(G, source) if plain else single(G, source, weight=weight)
    if plain:
        return search.bidirectional_shortest_path(G, source, target)
    if method == "dijkstra":
        return bidirectional_dijkstra(G, source, target, weight)[1]
    return bellman_ford_path(G, source, target, weight)


def _to_target(G: Any, target: Node, weight: Any, method: str) -> dict[Node, list]:
    if weight is None:
        return search.single_target_shortest_path(G, target)
    single = single_source_dijkstra_path if method == "dijkstra" else single_source_bellman_ford_path
    turned = G.reverse(copy=False) if G.is_directed() else G
    return {node: path[::-1] for node, path in single(turned, target, weight=weight).items()}


@offer(parallel=True, refuses=_methods)
def shortest_path_length(
    G: Any, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    plain, dijkstra = weight is None, method == "dijkstra"
    if source is not None and target is not None:
        if plain:
            return len(search.bidirectional_shortest_path(G, source, target)) - 1
        return (dijkstra_path_length if dijkstra else bellman_ford_path_length)(G, source, target, weight)
    if source is None and target is None:
        every = all_pairs_dijkstra_path_length if dijkstra else all_pairs_bellman_ford_path_length
        return search.all_pairs_shortest_path_length(G) if plain else every(G, weight=weight)
    if plain:
        if source is None:
            return search.single_target_shortest_path_length(G, target)
        return search.single_source_shortest_path_length(G, source)
    turned = G.reverse(copy=False) if source is None and G.is_directed() else G
    single = single_source_dijkstra_path_length if dijkstra else single_source_bellman_ford_path_length
    return single(turned, target if source is None else source, weight=weight)
