"""Components, cores, trees, degrees and other structure for NetworkX."""

from collections.abc import Hashable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from algos import components, strong
from algos._nx_graph import Arrays
from algos._nx_offers import offer, seeded
from algos._nx_search import hashed
from algos.bfs import bfs_levels
from algos.cores import core_numbers
from algos.forest import of_ordered
from algos.independent import maximal_independent_set as independent_set
from gbgpu import binary

Node = Hashable


# -- components


def _weak(G: Any) -> np.ndarray:
    """The smallest number in each node's component."""
    A = G._arrays.pattern()
    return G._arrays.kept("weak", lambda: components.connected_components(A).to_coo()[1])


def _strong(G: Any) -> np.ndarray:
    A = G._arrays.pattern()
    return G._arrays.kept("strong", lambda: strong.strongly_connected_components(A).to_coo()[1])


def _sets(arrays: Arrays, labels: np.ndarray, chosen: np.ndarray | None = None) -> Iterator[set]:
    """The nodes of each label, in the order of labels; of the chosen ones only."""
    numbers = np.arange(len(labels)) if chosen is None else np.flatnonzero(np.isin(labels, chosen))
    order = numbers[np.argsort(labels[numbers], kind="stable")]
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    return (set(arrays.labels(some)) for some in np.split(order, starts[1:]) if len(some))


def _count(labels: np.ndarray) -> int:
    return len(np.unique(labels))


def _whole(G: Any, labels: Any) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return not labels(G).any()  # all nodes are in the first one's component


@offer(parallel=True)
@offer(parallel=True, name="weakly_connected_components")
def connected_components(G: Any) -> Iterator[set]:
    return _sets(G._arrays, _weak(G))


@offer(parallel=True)
@offer(parallel=True, name="number_weakly_connected_components")
def number_connected_components(G: Any) -> int:
    return _count(_weak(G))


@offer(parallel=True)
@offer(parallel=True, name="is_weakly_connected")
def is_connected(G: Any) -> bool:
    return _whole(G, _weak)


@offer(parallel=True)
def node_connected_component(G: Any, n: Node) -> set:
    arrays = G._arrays
    return set(arrays.labels(bfs_levels(arrays.pattern(), hashed(arrays, n, KeyError(n))).to_coo()[0]))


def _downwards(G: Any) -> Iterator[set]:
    """Strong components, each after those that it leads to."""
    _, number = np.unique(_strong(G), return_inverse=True)
    height = strong.heights(G._arrays.pattern(), number)
    place = np.empty(len(height), int)
    place[np.argsort(height, kind="stable")] = np.arange(len(height))
    return _sets(G._arrays, place[number])


@offer(parallel=True)
def strongly_connected_components(G: Any) -> Iterator[set]:
    return _downwards(G)


@offer(parallel=True, only=("source",))
def kosaraju_strongly_connected_components(G: Any, source: Any = None) -> Iterator[set]:
    return _downwards(G)


@offer(parallel=True)
def number_strongly_connected_components(G: Any) -> int:
    return _count(_strong(G))


@offer(parallel=True)
def is_strongly_connected(G: Any) -> bool:
    return _whole(G, _strong)


@offer(parallel=True)
def is_directed_acyclic_graph(G: Any) -> bool:
    """Whether each node is a strong component, without a loop."""
    arrays = G._arrays
    if not G.is_directed() or (arrays.tails == arrays.heads).any():
        return False
    return _count(_strong(G)) == len(arrays)


def _attracting(G: Any) -> np.ndarray:
    """The labels of strong components that no arc leaves."""
    arrays, labels = G._arrays, _strong(G)
    left = labels[arrays.tails[labels[arrays.tails] != labels[arrays.heads]]]
    return np.setdiff1d(labels, left)


@offer(parallel=True)
def attracting_components(G: Any) -> Iterator[set]:
    return _sets(G._arrays, _strong(G), _attracting(G))


@offer(parallel=True)
def number_attracting_components(G: Any) -> int:
    return len(_attracting(G))


@offer(parallel=True)
def is_attracting_component(G: Any) -> bool:
    return len(_attracting(G)) == 1 and _count(_strong(G)) == 1


# -- trees


def _edges(G: Any) -> int:
    """How many edges there are, parallel ones too."""
    arrays = G._arrays
    total = int(arrays.degrees(G.is_directed()).sum())
    return total if G.is_directed() else total // 2


def _some(G: Any) -> None:
    if not len(G):
        raise nx.NetworkXPointlessConcept("G has no nodes.")


@offer(parallel=True)
def is_tree(G: Any) -> bool:
    _some(G)
    return len(G) - 1 == _edges(G) and not _weak(G).any()


@offer(parallel=True)
def is_forest(G: Any) -> bool:
    """A component of k nodes has k - 1 edges at least: all have as many if there are so many in all."""
    _some(G)
    return _edges(G) < len(G) and len(G) - _count(_weak(G)) == _edges(G)


def _at_most_one_in(G: Any) -> bool:
    _some(G)
    return bool(G._backwards.degrees(True).max() <= 1)


@offer(parallel=True)
def is_arborescence(G: Any) -> bool:
    return _at_most_one_in(G) and is_tree(G)


@offer(parallel=True)
def is_branching(G: Any) -> bool:
    return _at_most_one_in(G) and is_forest(G)


def _spanning(G: Any, weight: Any, largest: bool, ignore_nan: bool) -> tuple[list, list]:
    """The ends of the edges of a spanning forest in the order of weights, those that Kruskal's algorithm takes."""
    arrays = G._arrays
    tails, heads, values = arrays.tails, arrays.heads, arrays.weights(weight)
    first = _listed(tails, heads)
    tails, heads, values = tails[first], heads[first], values[first]
    hidden = np.isnan(values)
    if hidden.any():
        if not ignore_nan:
            raise NotImplementedError("no weight that is NaN")
        tails, heads, values = tails[~hidden], heads[~hidden], values[~hidden]
    order = np.argsort(-values if largest else values, kind="stable")
    tails, heads = tails[order], heads[order]
    taken = np.sort(of_ordered(len(arrays.nodes), tails, heads))
    return arrays.labels(tails[taken]), arrays.labels(heads[taken])


def _listed(tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Which arcs of an undirected graph NetworkX lists as edges: those to nodes that do not come before."""
    return np.flatnonzero(tails <= heads)


def _spanning_edges(G: Any, weight: Any, data: bool, largest: bool, ignore_nan: bool) -> Iterator[tuple]:
    tails, heads = _spanning(G, weight, largest, ignore_nan)
    if not data:
        return zip(tails, heads, strict=True)
    return ((tail, head, G._adj[tail][head]) for tail, head in zip(tails, heads, strict=True))


def _kruskal(given: dict[str, Any]) -> str | None:
    return None if given.get("algorithm", "kruskal") == "kruskal" else "edges come in the order of Kruskal's algorithm"


@offer(refuses=_kruskal)
def minimum_spanning_edges(
    G: Any,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[tuple]:
    return _spanning_edges(G, weight, data, False, ignore_nan)


@offer(refuses=_kruskal)
def maximum_spanning_edges(
    G: Any,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[tuple]:
    return _spanning_edges(G, weight, data, True, ignore_nan)


def _undirected(given: dict[str, Any]) -> str | None:
    return "NetworkX's own refusal of directed graphs" if given["G"].is_directed() else _kruskal(given)


def _spanning_tree(G: Any, weight: Any, largest: bool, ignore_nan: bool) -> Any:
    tree = type(G)()
    tree.graph.update(G.graph)
    tree.add_nodes_from(G.nodes.items())
    tree.add_edges_from(_spanning_edges(G, weight, True, largest, ignore_nan))
    return tree


@offer(refuses=_undirected)
def minimum_spanning_tree(G: Any, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False) -> Any:
    return _spanning_tree(G, weight, False, ignore_nan)


@offer(refuses=_undirected)
def maximum_spanning_tree(G: Any, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False) -> Any:
    return _spanning_tree(G, weight, True, ignore_nan)


# -- cores


def no_loops(arrays: Arrays) -> None:
    if (arrays.tails == arrays.heads).any():
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )


def _both_ways(given: dict[str, Any]) -> str | None:
    return "directed graphs are left to NetworkX" if given["G"].is_directed() else None


@offer(refuses=_both_ways)
def core_number(G: Any) -> dict[Node, int]:
    arrays = G._arrays
    no_loops(arrays)
    return arrays.by_node(core_numbers(arrays.pattern()).to_coo()[1])


def _core(which: Any) -> Any:
    """What the nodes of some core numbers induce, with the attributes of the graph."""

    def core(G: Any, k: int | None = None, core_number: Any = None) -> Any:
        arrays = G._arrays
        no_loops(arrays)
        if not len(arrays):
            raise NotImplementedError("a graph with nodes")
        numbers = core_numbers(arrays.pattern()).to_coo()[1]
        return G.subgraph(arrays.labels(np.flatnonzero(which(numbers, k)))).copy()

    return core


for _name, _which in {
    "k_core": lambda numbers, k: numbers >= (numbers.max() if k is None else k),
    "k_shell": lambda numbers, k: numbers == (numbers.max() if k is None else k),
    "k_crust": lambda numbers, k: numbers <= (numbers.max() - 1 if k is None else k),
}.items():
    offer(name=_name, only=("core_number",), refuses=_both_ways)(_core(_which))


@offer(only=("nodes",), refuses=seeded)
def maximal_independent_set(G: Any, nodes: Any = None, seed: Any = None) -> list:
    """Of nodes without loops, which are neighbours of themselves."""
    arrays = G._arrays
    if not len(arrays):
        raise IndexError("Cannot choose from an empty sequence")
    free = np.setdiff1d(np.arange(len(arrays)), arrays.heads[arrays.tails == arrays.heads])
    if not len(free):
        raise nx.NetworkXUnfeasible("no node is an independent set: all have loops")
    A = arrays.pattern() if len(free) == len(arrays) else arrays.pattern()[free, free].new(name="A")
    chosen = independent_set(A, seed=seed.getrandbits(63))
    return arrays.labels(free[chosen.to_coo()[0]])


# -- degrees


def _centrality(arrays: Arrays, degrees: np.ndarray) -> dict[Node, float]:
    if len(arrays) <= 1:
        return dict.fromkeys(arrays.nodes, 1)
    return arrays.by_node(degrees * (1.0 / (len(arrays) - 1.0)))


def _total(G: Any) -> np.ndarray:
    if G.is_directed():
        return G._arrays.degrees(True) + G._backwards.degrees(True)
    return G._arrays.degrees(False)


@offer(parallel=True)
def degree_centrality(G: Any) -> dict[Node, float]:
    return _centrality(G._arrays, _total(G))


@offer(parallel=True)
def in_degree_centrality(G: Any) -> dict[Node, float]:
    return _centrality(G._arrays, G._backwards.degrees(True))


@offer(parallel=True)
def out_degree_centrality(G: Any) -> dict[Node, float]:
    return _centrality(G._arrays, G._arrays.degrees(True))


@offer(parallel=True)
def isolates(G: Any) -> Iterator[Node]:
    return iter(G._arrays.labels(np.flatnonzero(_total(G) == 0)))


@offer(parallel=True)
def number_of_isolates(G: Any) -> int:
    return int(np.count_nonzero(_total(G) == 0))


@offer(parallel=True)
def number_of_selfloops(G: Any) -> int:
    arrays = G._arrays
    return int(arrays.parallel[arrays.tails == arrays.heads].sum())


@offer(parallel=True)
def is_regular(G: Any) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Graph has no nodes.")
    sides = [G._arrays.degrees(True), G._backwards.degrees(True)] if G.is_directed() else [_total(G)]
    return all(bool((side == side[0]).all()) for side in sides)


def _mutual(arrays: Arrays) -> np.ndarray:
    """How many of each node's successors are predecessors too."""
    A = arrays.pattern()
    both = binary.pair(A & A.T).new(name="both")
    return both.reduce_rowwise("count").new().to_dense(0)


def _one_way(given: dict[str, Any]) -> str | None:
    return None if given["G"].is_directed() else "undirected graphs are left to NetworkX"


@offer(refuses=_one_way)
def overall_reciprocity(G: Any) -> float:
    arrays = G._arrays
    if not len(arrays.heads):
        raise nx.NetworkXError("Not defined for empty graphs")
    pairs = int(_mutual(arrays).sum()) - number_of_selfloops(G)
    return pairs / len(arrays.heads) if pairs else 0.0


@offer(refuses=_one_way)
def reciprocity(G: Any, nodes: Any = None) -> Any:
    if nodes is None:
        return overall_reciprocity(G)
    arrays = G._arrays
    total = _total(G)
    shares = np.divide(2 * _mutual(arrays), total, out=np.full(len(arrays), -1.0), where=total > 0)
    if nodes in G:
        share = shares[arrays.numbers[nodes]].item()
        if share < 0:
            raise nx.NetworkXError("Not defined for isolated nodes.")
        return share
    found = ((node, shares[arrays.numbers[node]].item()) for node in G.nbunch_iter(nodes))
    return {node: None if share < 0 else share for node, share in found}
