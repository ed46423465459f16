"""What NetworkX asks of the distances of all pairs, of arcs or weighted."""

from collections.abc import Hashable, Iterator
from math import inf
from typing import Any

import networkx as nx
import numpy as np

from algos._nx_offers import offer
from algos._nx_paths import weighted_rows
from algos._nx_search import each_row, known
from algos._nx_structure import is_connected, is_strongly_connected
from algos.bfs import bfs_levels
from algos.closeness import harmonic, sums

Node = Hashable


@offer(only=("distance",), parallel=True)
def closeness_centrality(G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True) -> Any:
    arrays = G._arrays
    if u is None:
        reach, total = (v.to_dense() for v in sums(arrays.pattern(), np.arange(len(arrays)), lambda length: length))
        near = np.divide(reach, total, out=np.zeros(len(reach)), where=total > 0)
        return arrays.by_node(near * (reach / max(len(arrays) - 1, 1)) if wf_improved else near)
    number = known(arrays, u, nx.NodeNotFound(f"Source {u} is not in G"))
    _, levels = bfs_levels(G._backwards.pattern(), number).to_coo()
    total, others = int(levels.sum()), len(levels) - 1
    if not total:
        return 0.0
    return others / total * (others / (len(arrays) - 1) if wf_improved else 1.0)


@offer(only=("distance", "nbunch", "sources"), parallel=True)
def harmonic_centrality(G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Node, float]:
    return G._arrays.by_node(harmonic(G._arrays.pattern()).to_dense(0.0))


def _rows(G: Any, weight: Any) -> Iterator[np.ndarray]:
    """The distances from each node in turn; what is not reached is negative, or inf."""
    return each_row(G._arrays) if weight is None else weighted_rows(G, weight)


def _eccentricities(G: Any, weight: Any, nodes: Any = None) -> dict[Node, Any]:
    kind = "digraph is not strongly" if G.is_directed() else "graph is not"
    error = nx.NetworkXError(f"Found infinite path length because the {kind} connected")
    wanted = None if nodes is None else set(nodes)
    found = {}
    for label, row in zip(G._arrays.nodes, _rows(G, weight), strict=True):
        if wanted is None or label in wanted:
            if not (np.isfinite(row) & (row >= 0)).all():
                raise error
            found[label] = row.max().item()
    return found


@offer(only=("sp",), parallel=True)
def eccentricity(G: Any, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    if v is None:
        return _eccentricities(G, weight)
    if weight is not None:
        raise NotImplementedError("weighted eccentricities of some nodes")
    found = {}
    for node in [v] if v in G else G.nbunch_iter(v):
        levels = bfs_levels(G._arrays.pattern(), G._arrays.numbers[node]).to_coo()[1]
        if len(levels) < len(G):
            return _eccentricities(G, weight)  # which says so
        found[node] = int(levels.max())
    return found[v] if v in G else found


def _extreme(G: Any, e: dict | None, weight: Any, choose: Any) -> tuple[dict, Any]:
    if not len(G):
        raise NotImplementedError("a graph with nodes")
    found = _eccentricities(G, weight) if e is None else e
    return found, choose(found.values())


@offer(parallel=True)
def diameter(G: Any, e: dict | None = None, usebounds: bool = False, weight: Any = None) -> Any:
    return _extreme(G, e, weight, max)[1]


@offer(parallel=True)
def radius(G: Any, e: dict | None = None, usebounds: bool = False, weight: Any = None) -> Any:
    return _extreme(G, e, weight, min)[1]


@offer(parallel=True)
def periphery(G: Any, e: dict | None = None, usebounds: bool = False, weight: Any = None) -> list:
    found, most = _extreme(G, e, weight, max)
    return [node for node, value in found.items() if value == most]


@offer(parallel=True)
def center(G: Any, e: dict | None = None, usebounds: bool = False, weight: Any = None) -> list:
    found, least = _extreme(G, e, weight, min)
    return [node for node, value in found.items() if value == least]


def _connected(G: Any) -> bool:
    return is_strongly_connected(G) if G.is_directed() else is_connected(G)


def _sum(G: Any, weight: Any) -> Any:
    """Of the distances of all pairs of a connected graph."""
    if weight is not None:
        return sum(row.sum().item() for row in weighted_rows(G, weight))
    return int(sums(G._arrays.pattern(), np.arange(len(G)), lambda length: length)[1].to_dense().sum())


@offer(parallel=True)
def wiener_index(G: Any, weight: Any = None) -> float:
    if not _connected(G):
        return inf
    return _sum(G, weight) if G.is_directed() else _sum(G, weight) / 2


def _usual(given: dict[str, Any]) -> str | None:
    known = (None, "unweighted") if given.get("weight") is None else (None, "dijkstra")
    return None if given.get("method") in known else "this method is left to NetworkX"


@offer(parallel=True, refuses=_usual)
def average_shortest_path_length(G: Any, weight: Any = None, method: str | None = None) -> float:
    n = len(G)
    if not n:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    if not _connected(G):
        raise nx.NetworkXError(f"Graph is not {'strongly ' if G.is_directed() else ''}connected.")
    return _sum(G, weight) / (n * (n - 1))


@offer(parallel=True)
def global_efficiency(G: Any) -> float:
    n = len(G)
    if n < 2:
        return 0
    return float(sums(G._arrays.pattern(), np.arange(n), lambda length: 1 / length)[1].to_dense().sum() / (n * (n - 1)))
