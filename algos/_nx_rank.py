"""Centralities, link analysis, clusters and communities for NetworkX."""

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np

from algos import similarity
from algos._iterations import ConvergenceError, products
from algos._lanczos import top_eigenvector
from algos._nx_graph import Arrays
from algos._nx_offers import offer
from algos._nx_search import known
from algos._nx_structure import no_loops
from algos.betweenness import betweenness, edge_betweenness
from algos.coloring import greedy_color as colors
from algos.eigenvector import eigenvector
from algos.katz import katz
from algos.labels import label_propagation
from algos.pagerank import pagerank as ranks
from algos.triangles import triangles as triangles_by_vertex
from algos.truss import k_truss as truss
from gbgpu import Matrix, Vector

Node = Hashable


def _vector(arrays: Arrays, values: dict[Node, float]) -> Vector:
    """The values of the graph's nodes."""
    known = {arrays.numbers[node]: value for node, value in values.items() if node in arrays.numbers}
    if not sum(known.values()) > 0:
        raise NotImplementedError("a distribution with a sum above 0")
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
    weights = G._arrays.weights(weight)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise NotImplementedError("weights of at least 0")
    if not 0 <= alpha < 1:
        raise NotImplementedError("alpha in [0, 1)")
    if personalization is not None and not any(personalization.get(node, 0) for node in arrays.nodes):
        raise ZeroDivisionError
    given = (personalization, dangling, nstart)
    if any(value < 0 for values in given if values for value in values.values()):
        raise NotImplementedError("distributions of numbers of at least 0")
    jumps, lost, start = (None if values is None else _vector(arrays, values) for values in given)
    _rounds(max_iter, tol)
    even = bool((weights == weights[:1]).all() and weights[:1].all())  # where all are 0, all nodes dangle
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
    return np.array([G._arrays.numbers[node] for node in seed.sample(list(G._arrays.nodes), k)], int)


def _none_drawn(given: dict[str, Any]) -> str | None:
    return "a mean over no nodes" if given.get("k") == 0 else None


@offer(only=("weight", "endpoints"), parallel=True, refuses=_none_drawn)
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


@offer(only=("weight",), refuses=_none_drawn)
def edge_betweenness_centrality(
    G: Any, k: int | None = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[tuple[Node, Node], float]:
    A, n, chosen = G._arrays.pattern(), len(G), _draw(G, k, seed)
    found = edge_betweenness(A, chosen, normalized and chosen is not None, G.is_directed())
    scale = 1.0
    if normalized and chosen is None and n > 1:  # in NetworkX's order, which shows in the last bit
        scale = (1 if G.is_directed() else 2) * (1 / (n * (n - 1)))
    return by_edge(G, found, scale)


def by_edge(G: Any, values: Matrix, scale: float) -> dict[tuple[Node, Node], float]:
    """The scaled value at each edge, in the order of edges; the matrix has the graph's arcs."""
    arrays, n = G._arrays, len(G)
    tails, heads = arrays.tails, arrays.heads
    found = np.empty(len(heads))
    found[np.argsort(tails * n + heads)] = scale * values.to_coo(sort=True)[2]
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


@offer()
def triangles(G: Any, nodes: Any = None) -> Any:
    return _of_nodes(G, nodes, G._arrays.by_node(triangles_by_vertex(G._arrays.pattern()).to_dense(0)))


@offer(only=("weight",), refuses=_undirected)
def clustering(G: Any, nodes: Any = None, weight: Any = None) -> Any:
    twice, pairs = _triangles_and_pairs(G._arrays)
    return _of_nodes(G, nodes, G._arrays.by_node(twice / np.maximum(pairs, 1)))


@offer(only=("weight",), refuses=_undirected)
def average_clustering(G: Any, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    found = clustering(G, nodes).values()
    counted = [value for value in found if count_zeros or value > 0]
    return sum(counted) / len(counted)


@offer(refuses=_undirected)
def transitivity(G: Any) -> float:
    twice, pairs = _triangles_and_pairs(G._arrays)
    return int(twice.sum()) / int(pairs.sum()) if twice.any() else 0


# -- eigenvectors


def _weighted(G: Any, weight: Any) -> tuple[Matrix, bool]:
    """The adjacency matrix, and whether its values count."""
    weights = G._arrays.weights(weight)
    if not np.isfinite(weights).all():
        raise NotImplementedError("finite weights")
    if (weights == 1).all():
        return G._arrays.pattern(), False
    return G._arrays.matrix(weights.astype(float)), True


def _rounds(max_iter: int, tol: float) -> None:
    """PowerIterationFailedConvergence without a round, or if no change is below tol."""
    if max_iter < 1 or not tol > 0:
        raise nx.PowerIterationFailedConvergence(max_iter)


@offer(only=("nstart", "normalized"), parallel=True)
def hits(
    G: Any, max_iter: int = 100, tol: float = 1e-8, nstart: dict | None = None, normalized: bool = True
) -> tuple[dict[Node, float], dict[Node, float]]:
    """By Lanczos steps, as NetworkX's solver: power iterations need too many rounds where the largest singular values
    are close. Where several are the largest, what equal hubs lead to."""
    n = len(G)
    if not n:
        return {}, {}
    A, weighted = _weighted(G, "weight")
    if weighted and A.reduce_scalar("min").new().value < 0:
        raise NotImplementedError("weights of at least 0")
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)

    along = products(weighted)

    def pointing(authorities: np.ndarray) -> Vector:
        return along(A @ Vector.from_dense(authorities)).new()

    def pointed(hubs: Vector) -> np.ndarray:
        return along(A.T @ hubs).new().to_dense(0.0)

    start = pointed(Vector.from_dense(np.ones(n)))
    if n == 1 or not start.any():
        raise NotImplementedError("at least two nodes, and an arc whose weight is not 0")
    if not tol >= 0:
        raise ValueError(f"expected tol of at least 0; came {tol}")
    authorities = top_eigenvector(lambda v: pointed(pointing(v)), start, tol**2, max_iter)
    if authorities is None:
        raise nx.PowerIterationFailedConvergence(max_iter)
    hubs = pointing(authorities).to_dense(0.0)
    if min(hubs.sum(), authorities.sum()) <= 0:
        raise NotImplementedError("hubs and authorities with a positive sum")
    return G._arrays.by_node(hubs / hubs.sum()), G._arrays.by_node(authorities / authorities.sum())


@offer(only=("nstart",))
def katz_centrality(
    G: Any,
    alpha: float = 0.1,
    beta: Any = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-6,
    nstart: dict | None = None,
    normalized: bool = True,
    weight: Any = None,
) -> dict[Node, float]:
    arrays = G._arrays
    if not len(arrays):
        return {}
    if isinstance(beta, dict):
        if set(beta) != set(arrays.nodes):
            raise nx.NetworkXError("beta dictionary must have a value for every node")
        beta = Vector.from_dense(np.array([beta[node] for node in arrays.nodes], float))
    elif not isinstance(beta, int | float):
        raise NotImplementedError("a number as beta, or a dictionary")
    A, weighted = _weighted(G, weight)
    _rounds(max_iter, tol)
    try:
        found = katz(A, alpha, beta, tol, max_iter, normalized=normalized, weighted=weighted)
    except ConvergenceError:
        raise nx.PowerIterationFailedConvergence(max_iter) from None
    return arrays.by_node(found.to_dense(0.0))


@offer(only=("nstart",))
def eigenvector_centrality(
    G: Any, max_iter: int = 100, tol: float = 1e-6, nstart: dict | None = None, weight: Any = None
) -> dict[Node, float]:
    if not len(G):
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    A, weighted = _weighted(G, weight or None)  # NetworkX takes no name that is empty
    _rounds(max_iter, tol)
    try:
        return G._arrays.by_node(eigenvector(A, tol, max_iter, weighted=weighted).to_dense(0.0))
    except ConvergenceError:
        raise nx.PowerIterationFailedConvergence(max_iter) from None


# -- communities, colours, trusses


@offer()
def label_propagation_communities(G: Any) -> Any:
    arrays = G._arrays
    if (arrays.tails == arrays.heads).any():
        raise NotImplementedError("a graph without loops, by which nodes would count their own labels")
    found: dict[int, set] = {}
    for node, label in zip(arrays.nodes, label_propagation(arrays.pattern()).to_dense(0).tolist(), strict=True):
        found.setdefault(label, set()).add(node)
    return found.values()


def _largest_first(given: dict[str, Any]) -> str | None:
    usual = given.get("strategy", "largest_first") in ("largest_first", nx.coloring.strategy_largest_first)
    return _undirected(given) if usual else "the strategy is largest_first"


@offer(only=("interchange",), refuses=_largest_first)
def greedy_color(G: Any, strategy: Any = "largest_first", interchange: bool = False) -> dict[Node, int]:
    """The colours of NetworkX's sequential rule."""
    arrays, n = G._arrays, len(G)
    order = arrays.degrees(False) * n + n - 1 - np.arange(n)
    found = colors(arrays.pattern(), "jones-plassmann", order=Vector.from_dense(order)).to_dense(0)
    first = np.argsort(-order)
    return dict(zip(arrays.labels(first), found[first].tolist(), strict=True))


@offer(refuses=lambda given: None if isinstance(given.get("k"), int) else "k is a whole number")
def k_truss(G: Any, k: int) -> Any:
    arrays = G._arrays
    no_loops(arrays)
    rows, cols, _ = truss(arrays.pattern(), max(k, 2)).to_coo()
    n, tails, heads = len(arrays), arrays.tails, arrays.heads
    left = np.isin(tails * n + heads, rows * n + cols) & (tails < heads)
    ends = arrays.labels(tails[left]), arrays.labels(heads[left])
    H = type(G)()  # in the order of G, which a subgraph of few nodes does not keep
    H.graph.update(G.graph)
    H.add_nodes_from((node, G.nodes[node]) for node in arrays.labels(np.unique(rows)))
    H.add_edges_from((u, v, G._adj[u][v]) for u, v in zip(*ends, strict=True))
    return H


# -- pairs of nodes

PAIRS = 1 << 16  # at once


def _of_pairs(G: Any, ebunch: Any, index: Any, kind: type = float) -> Iterator[tuple[Node, Node, Any]]:
    arrays = G._arrays
    if (arrays.tails == arrays.heads).any():
        raise NotImplementedError("a graph without loops")
    pairs = nx.non_edges(G)
    if ebunch is not None:
        pairs = list(ebunch)
        for node in (node for pair in pairs for node in pair):
            known(arrays, node, nx.NodeNotFound(f"Node {node} not in G."))

    def found() -> Iterator[tuple[Node, Node, Any]]:
        rest = iter(pairs)
        while some := list(islice(rest, PAIRS)):
            numbers = np.array([(arrays.numbers[u], arrays.numbers[v]) for u, v in some], np.int64)
            values = index(arrays.pattern(), numbers).to_dense(0.0).astype(kind).tolist()
            yield from ((u, v, value) for (u, v), value in zip(some, values, strict=True))

    return found()


@offer()
def jaccard_coefficient(G: Any, ebunch: Any = None) -> Iterator[tuple[Node, Node, float]]:
    return _of_pairs(G, ebunch, similarity.jaccard_coefficient)


@offer()
def adamic_adar_index(G: Any, ebunch: Any = None) -> Iterator[tuple[Node, Node, float]]:
    return _of_pairs(G, ebunch, similarity.adamic_adar)


@offer()
def resource_allocation_index(G: Any, ebunch: Any = None) -> Iterator[tuple[Node, Node, float]]:
    return _of_pairs(G, ebunch, similarity.resource_allocation)


@offer()
def preferential_attachment(G: Any, ebunch: Any = None) -> Iterator[tuple[Node, Node, int]]:
    return _of_pairs(G, ebunch, similarity.preferential_attachment, int)
