"""Centralities against NetworkX on small graphs of every awkward kind; the verifiers against results that are wrong."""

import random
import sys

import networkx as nx
import numpy as np
import pytest
from programs import WIDE
from test_algos import as_dict, both_ways, changed, digraph, matrix, random_arcs

import algos
import gbgpu as gb
from algos.betweenness import check_betweenness
from algos.closeness import check_closeness
from algos.clustering import check_clustering
from algos.verify import VerificationError
from gbgpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue


def side_by_side(*graphs):
    """One graph of all."""
    n, arcs = 0, []
    for size, some in graphs:
        arcs += [(n + i, n + j) for i, j in some]
        n += size
    return n, arcs


PARTS = {
    "loops": (4, [(0, 0), (2, 2)]),
    "one arc": (2, [(0, 1)]),
    "path": (7, [(i, i + 1) for i in range(6)]),
    "cycle": (5, [(i, (i + 1) % 5) for i in range(5)]),
    "out-star": (6, [(4, i) for i in range(6) if i != 4]),
    "complete": (5, [(i, j) for i in range(5) for j in range(5)]),
    "thin": random_arcs(18, 1.5, 1),
    "dense": random_arcs(12, 4, 2),
}
GRAPHS = {
    "one vertex": (1, []),
    "no arcs": (3, []),
    "all kinds": side_by_side(*PARTS.values()),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
ALL = GRAPHS["all kinds"]


def undirected(graph):
    """An undirected graph as a Matrix and as NetworkX has it."""
    graph = both_ways(graph)
    return matrix(graph), digraph(graph).to_undirected()


def near(found, expected, **tolerance):
    assert found.dtype == "FP64"
    assert as_dict(found) == pytest.approx(dict(expected), **{"rel": 1e-9, "abs": 1e-12, **tolerance})


# -- betweenness


@every_graph
def test_betweenness(devices, graph):
    for A, G in ((matrix(graph), digraph(graph)), undirected(graph)):
        near(algos.betweenness(A), nx.betweenness_centrality(G))
        found = algos.betweenness(A, normalized=False, directed=G.is_directed())
        near(found, nx.betweenness_centrality(G, normalized=False))


@every_graph
def test_edge_betweenness(devices, graph):
    for A, G in ((matrix(graph), digraph(graph)), undirected(graph)):
        for normalized in (True, False):
            E = algos.edge_betweenness(A, normalized=normalized, directed=G.is_directed())
            found = {(i, j): value for i, j, value in zip(*(part.tolist() for part in E.to_coo()), strict=True)}
            expected = nx.edge_betweenness_centrality(G, normalized=normalized)
            assert {edge: found[edge] for edge in expected} == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert len(found) == A.nvals and E.dtype == "FP64"


class Drawn(random.Random):
    """Numbers for NetworkX that draw these vertices."""

    def sample(self, vertices, k):
        return self.drawn


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("k", [1, 9])
def test_sampled_betweenness(devices, k, normalized):
    draw = Drawn()
    draw.drawn = np.random.default_rng(k).permutation(18)[:k].tolist()
    for A, G in ((matrix(PARTS["thin"]), digraph(PARTS["thin"])), undirected(PARTS["thin"])):
        expected = nx.betweenness_centrality(G, k=k, normalized=normalized, seed=draw)
        near(algos.betweenness(A, draw.drawn, normalized), expected, nan_ok=True)
    E = algos.edge_betweenness(A, draw.drawn, normalized)
    expected = nx.edge_betweenness_centrality(G, k=k, normalized=normalized, seed=draw)
    assert E.reduce_scalar().new().value == pytest.approx(2 * sum(expected.values()))


def test_drawn_sources_are_the_same_for_the_same_seed(devices):
    A = matrix(PARTS["dense"])
    first = algos.betweenness(A, 5)
    assert first.isequal(algos.betweenness(A, 5)) and not first.isclose(algos.betweenness(A, 5, seed=1))
    near(algos.betweenness(A, 12), as_dict(algos.betweenness(A)))


def test_sources_in_several_batches(devices, monkeypatch):
    A = matrix(PARTS["thin"])
    whole = algos.betweenness(A), algos.edge_betweenness(A)
    monkeypatch.setattr(sys.modules["algos.betweenness"], "ENTRIES", 5 * (A.nvals + A.nrows))
    parts = algos.betweenness(A), algos.edge_betweenness(A)
    assert all(x.isclose(y) for x, y in zip(whole, parts, strict=True))


@pytest.mark.parametrize(
    ("sources", "error", "text"),
    [([5], IndexOutOfBound, "0 to 4"), ([-1], IndexOutOfBound, "0 to 4"), ([1, 1], InvalidValue, "twice"),
     (6, InvalidValue, "0 to 5"), (-1, InvalidValue, "0 to 5"), ("all", TypeError, "list"), ([0.5], TypeError, "list")],
)
def test_bad_sources(devices, sources, error, text):
    for algorithm in (algos.betweenness, algos.edge_betweenness, algos.closeness, algos.harmonic):
        with pytest.raises(error, match=text):
            algorithm(matrix(PARTS["cycle"]), sources)


@pytest.mark.skipif(not WIDE, reason="long")
def test_too_many_paths_to_count(devices):
    layers, width = 343, 8  # each layer joined to all of the next: eight times as many paths
    arcs = [(i, i - i % width + width + j) for i in range(layers * width) for j in range(width)]
    with pytest.raises(InvalidValue, match="1024"):
        algos.betweenness(matrix(((layers + 1) * width, arcs)), [0])


def test_verify_finds_wrong_betweenness(devices):
    A = matrix(PARTS["thin"])
    right = algos.betweenness(A, 7)
    check_betweenness(A, right, 7)
    top = int(right.to_dense().argmax())
    for change, check in ((None, "presence"), (0.5, "betweenness")):
        with pytest.raises(VerificationError, match=check):
            check_betweenness(A, changed(right, {top: change}), 7)


# -- closeness


@every_graph
def test_closeness_and_harmonic(devices, graph):
    for A, G in ((matrix(graph), digraph(graph)), undirected(graph)):
        near(algos.closeness(A), nx.closeness_centrality(G), nan_ok=True)
        near(algos.harmonic(A), nx.harmonic_centrality(G), nan_ok=True)
    found = algos.closeness(A, wf_improved=False)
    near(found, nx.closeness_centrality(G, wf_improved=False), nan_ok=True)


@pytest.mark.parametrize("listed", [[5], [1, 9, 30, 17]])
def test_closeness_to_some(devices, listed):
    A, G = matrix(ALL), digraph(ALL)
    lengths = [nx.single_source_shortest_path_length(G, source) for source in listed]
    reach, total, parts = {}, {}, {}
    for vertex in G:
        found = [length[vertex] for length in lengths if length.get(vertex)]
        count = len(set(listed) - {vertex}) or np.nan
        reach[vertex] = sum(found) and len(found) ** 2 / sum(found) / count
        parts[vertex] = sum(1 / length for length in found) * (ALL[0] - 1) / count
        total[vertex] = count
    expected = {vertex: reach[vertex] if total[vertex] == total[vertex] else np.nan for vertex in G}
    near(algos.closeness(A, listed), expected, nan_ok=True)
    near(algos.harmonic(A, listed), parts, nan_ok=True)
    check_closeness(A, algos.closeness(A, 3), 3)


def test_verify_finds_wrong_closeness(devices):
    A = matrix(PARTS["dense"])
    right = algos.closeness(A)
    check_closeness(A, right)
    for change, check in ((None, "presence"), (0.1, "closeness")):
        with pytest.raises(VerificationError, match=check):
            check_closeness(A, changed(right, {3: change}))


def test_searches_from_several_sources(devices):
    A, G = matrix(ALL), digraph(ALL)
    sources = [*range(0, ALL[0], 7), 0]
    levels = algos.multi_source_bfs(A, sources)
    assert (levels.shape, levels.dtype) == ((len(sources), ALL[0]), "INT64")
    for row, source in enumerate(sources):
        assert as_dict(levels[row, :].new()) == nx.single_source_shortest_path_length(G, source)
    assert algos.multi_source_bfs(A, []).shape == (0, ALL[0])
    with pytest.raises(IndexOutOfBound):
        algos.multi_source_bfs(A, [ALL[0]])


# -- triangles and clustering


@every_graph
def test_triangles_and_clustering(devices, graph):
    A, G = undirected(graph)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    count = algos.triangles(A)
    assert count.dtype == "INT64" and as_dict(count) == nx.triangles(G)
    found = algos.clustering(A)
    near(found, nx.clustering(G))
    check_clustering(A, found)
    assert algos.transitivity(A) == pytest.approx(nx.transitivity(G))
    assert algos.average_clustering(A) == pytest.approx(nx.average_clustering(G))
    if any(nx.triangles(G).values()):
        expected = nx.average_clustering(G, count_zeros=False)
        assert algos.average_clustering(A, count_zeros=False) == pytest.approx(expected)
    with pytest.raises(VerificationError, match="presence|clustering"):
        check_clustering(A, changed(found, {0: None if graph[0] < 9 else 0.5}))


def test_triangles_of_vertices_in_the_order_of_degrees(devices):
    G = nx.barabasi_albert_graph(40, 4, seed=3)
    A = gb.Matrix.from_scipy_sparse(nx.to_scipy_sparse_array(G))
    assert as_dict(algos.triangles(A)) == nx.triangles(G)


# -- all


UNDIRECTED = [algos.triangles, algos.clustering, algos.transitivity, algos.average_clustering]
EVERY = [algos.betweenness, algos.edge_betweenness, algos.closeness, algos.harmonic, *UNDIRECTED]


@pytest.mark.parametrize("algorithm", EVERY)
def test_graphs_without_vertices_and_bad_matrices(devices, algorithm):
    algorithm(gb.Matrix(int, 0, 0))
    with pytest.raises(DimensionMismatch, match="2 x 3"):
        algorithm(gb.Matrix(int, 2, 3))
    with pytest.raises(TypeError, match="Matrix"):
        algorithm(np.eye(3))


@pytest.mark.parametrize("algorithm", UNDIRECTED)
def test_undirected_graphs_have_both_arcs(devices, algorithm):
    with pytest.raises(InvalidValue, match="reverse"):
        algorithm(matrix((3, [(0, 1), (1, 0), (1, 2)])))
