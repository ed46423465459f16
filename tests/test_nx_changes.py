"""The NetworkX backend on graphs that change through another object: views, graphs on the same dictionaries."""

from __future__ import annotations

import copy

import networkx as nx
import pytest
from nx_backend import register

from algos._nx_graph import CLASSES, Arrays, from_networkx, to_networkx


@pytest.fixture(scope="module", autouse=True)
def registered():
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        yield


HIDDEN = set()  # what the filter of a view hides, which changes
VIEWS = {
    "subgraph": lambda G: G.subgraph([0, 1, 2, 3, 5]),
    "edge_subgraph": lambda G: G.edge_subgraph(list(G.edges)[:4]),
    "reverse": lambda G: G.reverse(copy=False) if G.is_directed() else G.subgraph(G),
    "to_directed": lambda G: G.to_directed(as_view=True),
    "to_undirected": lambda G: G.to_undirected(as_view=True),
    "copy": lambda G: G.copy(as_view=True),
    "restricted_view": lambda G: nx.restricted_view(G, [4], []),
    "subgraph_view": lambda G: nx.subgraph_view(G, filter_node=lambda node: node not in HIDDEN),
}
TRIED = [(name, kind) for name in VIEWS for kind in (nx.Graph, nx.DiGraph)]
TRIED += [("subgraph_view", nx.MultiGraph), ("reverse", nx.MultiDiGraph)]


def ours(kind):
    """A graph of NetworkX's and one of the backend, of the same edges."""
    for G in (kind(), CLASSES[kind().is_directed(), kind().is_multigraph()]()):
        G.add_edges_from((u, v, {"weight": 1 + u}) for u, v in [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 0)])
        yield G


def seen(G, backend):
    """What paths, matrices and components say."""
    lengths = nx.single_source_dijkstra_path_length(G, 2, backend=backend)
    matrix = nx.adjacency_matrix(G, backend=backend).toarray().tolist()
    return sorted(lengths.items()), matrix, nx.descendants(G, 2, backend=backend)


def edges_changed(G):
    G.add_edge(0, 3, weight=1)
    G.remove_edge(2, 3)


def weights_set(G):
    for u, _, data in G.edges(data=True):
        data["weight"] = 5 + u


def filter_changed(G):
    HIDDEN.add(1)


CHANGES = (lambda G: None, edges_changed, weights_set, filter_changed)


@pytest.mark.parametrize(("name", "kind"), TRIED)
def test_views_of_the_backends_graphs_change_with_them(name, kind):
    HIDDEN.clear()
    plain, mine = ours(kind)
    one = [VIEWS[name](G) for G in (plain, mine)]
    two = [VIEWS["subgraph_view"](view) for view in one]
    for change in CHANGES:
        for G in (plain, mine):
            change(G)
        for theirs, view in (one, two):
            assert seen(view, "gbgpu") == seen(theirs, "networkx"), change
            if name == "reverse" and type(theirs) is nx.DiGraph:
                back = nx.reverse(view, copy=False, backend="gbgpu")
                assert seen(back, "gbgpu") == seen(theirs.reverse(copy=False), "networkx"), change


def test_a_view_is_read_once_in_a_call(monkeypatch):
    _, G = ours(nx.DiGraph)
    view, read = G.subgraph([0, 1, 2]), []
    original = Arrays.read.__func__
    monkeypatch.setattr(Arrays, "read", classmethod(lambda cls, *given: read.append(1) or original(cls, *given)))
    nx.average_shortest_path_length(view, backend="gbgpu")
    nx.reciprocity(view, backend="gbgpu")
    assert len(read) <= 4  # both directions, twice
    before = len(read)
    nx.number_weakly_connected_components(G, backend="gbgpu")
    nx.descendants(G, 0, backend="gbgpu")
    assert len(read) == before + 1  # graphs are kept


def test_graphs_on_the_same_dictionaries_change_together():
    for share in (copy.copy, to_networkx):
        _, G = ours(nx.Graph)
        other = share(G)
        assert nx.descendants_at_distance(G, 0, 1, backend="gbgpu") == {1, 2, 5}
        assert nx.descendants_at_distance(other, 0, 1, backend="gbgpu") == {1, 2, 5}
        other.remove_edge(0, 5)
        assert nx.descendants_at_distance(G, 0, 1, backend="gbgpu") == {1, 2}
        G.remove_edge(0, 1)
        assert nx.descendants_at_distance(other, 0, 1, backend="gbgpu") == {2}
    P = nx.path_graph(3, backend="gbgpu")
    other = copy.copy(P)
    P.remove_edge(0, 1)
    assert nx.number_connected_components(other, backend="gbgpu") == 2
    alone = copy.deepcopy(P)
    P.add_edge(0, 1)
    assert nx.number_connected_components(alone, backend="gbgpu") == 2


@pytest.mark.parametrize("remedy", ["clear", "none", "config", "add_edge", "set_edge_attributes"])
def test_weights_set_in_place_in_graphs_of_networkx_count_as_its_page_says(remedy, monkeypatch):
    G = nx.path_graph(4)

    def length():
        return nx.dijkstra_path_length(G, 1, 2, backend="gbgpu")

    assert length() == 1
    if remedy == "config":
        monkeypatch.setattr(nx.config, "cache_converted_graphs", False)
    if remedy == "none":
        G.__networkx_cache__ = None
    for weight in (100, 7):
        if remedy == "add_edge":
            G.add_edge(1, 2, weight=weight)
        elif remedy == "set_edge_attributes":
            nx.set_edge_attributes(G, {(1, 2): weight}, "weight")
        else:
            G[1][2]["weight"] = weight
        if remedy == "clear":
            assert length() != weight  # the conversion that NetworkX keeps
            G.__networkx_cache__.clear()
        assert length() == weight


def test_results_that_are_views_of_a_converted_graph_change_with_it():
    D = nx.path_graph(3, nx.DiGraph)
    back = nx.reverse(D, copy=False, backend="gbgpu")
    assert nx.descendants(back, 2, backend="gbgpu") == {0, 1}
    D.remove_edge(0, 1)
    assert nx.descendants(back, 2, backend="gbgpu") == {1}
    assert from_networkx(back).reverse(copy=False).edges == D.edges
