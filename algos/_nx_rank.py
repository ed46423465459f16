"""Centralities, link analysis, clusters and communities for NetworkX."""

from collections.abc import Hashable
from typing import Any

import networkx as nx
import numpy as np

from algos._nx_graph import Arrays
from algos._nx_offers import offer
from algos.betweenness import betweenness, edge_betweenness
from algos.pagerank import pagerank as ranks
from algos.triangles import triangles as triangles_by_vertex
from gbgpu import Matrix, Vector

Node = Hashable


def _vector(arrays: Arrays, values: dict[Node, float]) -> Vector:
    """The values of the graph's nodes."""
    known = {arrays.numbers[node]: value for node, value in values.items() if node in arrays.numbers}
    return Vector.from_coo(list(known), list(known.values()), float, size=len(arrays))


@offer()
def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: dict | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: dict | None = None,
    weight: Any = "weight",
    dangling: dict | None = None,
) -> dict[Node, float]:
    arrays = G._arrays
    if not len(arrays):
        return {}
    weights = G._weights(weight)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise NotImplementedError("weights of at least 0")
    if not 0 <= alpha < 1 or max_iter < 1 or tol <= 0:
        raise NotImplementedError("alpha in [0, 1), max_iter and tol above 0")
    if personalization is not None and not any(personalization.get(node, 0) for node in arrays.nodes):
        raise ZeroDivisionError
    given = (personalization, dangling, nstart)
    if any(value < 0 for values in given if values for value in values.values()):
        raise NotImplementedError("distributions of numbers of at least 0")
    jumps, lost, start = (None if values is None else _vector(arrays, values) for values in given)
    even = bool((weights == weights[:1]).all())
    found = ranks(
        arrays.pattern() if even else arrays.matrix(weights.astype(float)),
        alpha,
        len(arrays) * tol,
        max_iter,
        weighted=not even,
        personalization=jumps,
        dangling=lost,
        nstart=start,
    )
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return arrays.by_node(found.ranks.to_dense(0.0))


# -- shortest paths that lead through


def _draw(G: Any, k: int | None, seed: Any) -> np.ndarray | None:
    """The numbers of the nodes that NetworkX would draw."""
    if k is None or k == len(G):
        return None
    return np.array([G._arrays.numbers[node] for node in seed.sample(list(G.nodes()), k)], int)


def _none_drawn(given: dict[str, Any]) -> str | None:
    return "a mean over no nodes" if given.get("k") == 0 else None


@offer("more", only=("weight", "endpoints"), parallel=True, refuses=_none_drawn)
def betweenness_centrality(
    G: Any,
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Node, float]:
    arrays = G._arrays
    A, chosen = arrays.pattern(), _draw(G, k, seed)
    return arrays.by_node(betweenness(A, chosen, normalized, G.is_directed()).to_dense(0.0))


@offer("more", only=("weight",), refuses=_none_drawn)
def edge_betweenness_centrality(
    G: Any, k: int | None = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[tuple[Node, Node], float]:
    arrays = G._arrays
    A, chosen = arrays.pattern(), _draw(G, k, seed)
    return by_edge(G, edge_betweenness(A, chosen, normalized, G.is_directed()))


def by_edge(G: Any, values: Matrix) -> dict[tuple[Node, Node], Any]:
    """The value at each edge, in the order of edges; the matrix has the graph's arcs."""
    arrays, n = G._arrays, len(G)
    tails, heads = arrays.tails, arrays.heads
    found = np.empty(len(heads))
    found[np.argsort(tails * n + heads)] = values.to_coo(sort=True)[2]
    if not G.is_directed():
        listed = tails <= heads
        tails, heads, found = tails[listed], heads[listed], found[listed]
    return dict(zip(zip(arrays.labels(tails), arrays.labels(heads), strict=True), found.tolist(), strict=True))


# -- triangles


def _undirected(given: dict[str, Any]) -> str | None:
    return "directed graphs are left to NetworkX" if given["G"].is_directed() else None


def _of_nodes(G: Any, nodes: Any, values: dict[Node, Any]) -> Any:
    """All of them, that of one node, or those of some."""
    if nodes is None:
        return values
    return values[nodes] if nodes in G else {node: values[node] for node in G.nbunch_iter(nodes)}


def _triangles_and_pairs(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Twice the triangles of each node, and the ordered pairs of its neighbours."""
    degree = arrays.degrees(True) - np.bincount(arrays.heads[arrays.tails == arrays.heads], minlength=len(arrays))
    return 2 * triangles_by_vertex(arrays.pattern()).to_dense(0), degree * (degree - 1)


@offer("more")
def triangles(G: Any, nodes: Any = None) -> Any:
    return _of_nodes(G, nodes, G._arrays.by_node(triangles_by_vertex(G._arrays.pattern()).to_dense(0)))


@offer("more", only=("weight",), refuses=_undirected)
def clustering(G: Any, nodes: Any = None, weight: Any = None) -> Any:
    twice, pairs = _triangles_and_pairs(G._arrays)
    return _of_nodes(G, nodes, G._arrays.by_node(twice / np.maximum(pairs, 1)))


@offer("more", only=("weight",), refuses=_undirected)
def average_clustering(G: Any, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    found = clustering(G, nodes).values()
    counted = [value for value in found if count_zeros or value > 0]
    return sum(counted) / len(counted)


@offer("more", refuses=_undirected)
def transitivity(G: Any) -> float:
    twice, pairs = _triangles_and_pairs(G._arrays)
    return int(twice.sum()) / int(pairs.sum()) if twice.any() else 0
