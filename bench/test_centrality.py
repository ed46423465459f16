"""Centralities, clustering, trusses, colours beside NetworkX and networkit on CPU devices; results are compared."""

from __future__ import annotations

from typing import Any

import networkit
import networkx as nx
import numpy as np
import pytest

import algos
import gbgpu as gb

SMALL, LARGE = 12, 16  # NetworkX takes seconds on the small one already


class Graph:
    """One graph in three forms, without loops; networkit uses two threads."""

    def __init__(self, A: Any):
        gb.init("cpu:2")
        networkit.setNumberOfThreads(2)
        self.A = gb.select.offdiag(gb.Matrix.from_scipy_sparse(A != 0)).new()
        self.n = self.A.nrows
        ends = np.array(self.A.to_coo()[:2])
        edges = ends[:, ends[0] < ends[1]]
        self.networkit = networkit.GraphFromCoo(tuple(edges), n=self.n, directed=False)
        self.networkx = nx.empty_graph(self.n)
        self.networkx.add_edges_from(edges.T.tolist())


@pytest.fixture
def small(rmat: Any) -> Graph:
    return Graph(rmat(SMALL))


@pytest.fixture
def large(rmat: Any) -> Graph:
    return Graph(rmat(LARGE))


def scores(algorithm: Any) -> np.ndarray:
    algorithm.run()
    return np.array(algorithm.scores())


def dense(found: dict) -> np.ndarray:
    return np.array([found[v] for v in range(len(found))])


def test_betweenness(beside, small):
    ours = lambda: algos.betweenness(small.A)  # noqa: E731
    peers = {"networkit": lambda: scores(networkit.centrality.Betweenness(small.networkit, normalized=True))}
    assert np.allclose(ours().to_dense(), peers["networkit"]())
    beside(f"rmat{SMALL}, betweenness", "cpu:2", ours, peers, rounds=3, least=1)


def test_betweenness_from_some(beside, small):
    sources = 64
    ours = lambda: algos.betweenness(small.A, sources)  # noqa: E731
    peers = {"NetworkX, a sixteenth": lambda: nx.betweenness_centrality(small.networkx, k=sources // 16, seed=1)}
    beside(f"rmat{SMALL}, betweenness from {sources}", "cpu:2", ours, peers, rounds=3, least=20 / 16)


def test_sampled_betweenness(beside, large):
    sources = 200
    ours = lambda: algos.betweenness(large.A, sources)  # noqa: E731
    peers = {
        "networkit": lambda: scores(networkit.centrality.EstimateBetweenness(large.networkit, sources, parallel=True))
    }
    beside(f"rmat{LARGE}, betweenness from {sources}", "cpu:2", ours, peers, rounds=3, least=1)


def test_closeness(beside, small):
    ours = lambda: algos.closeness(small.A)  # noqa: E731
    variant = networkit.centrality.ClosenessVariant.GENERALIZED
    peers = {"networkit": lambda: scores(networkit.centrality.Closeness(small.networkit, False, variant))}
    assert np.allclose(ours().to_dense(), peers["networkit"]())
    beside(f"rmat{SMALL}, closeness", "cpu:2", ours, peers, rounds=3, least=1)


@pytest.mark.parametrize("scale", [SMALL, LARGE])
def test_clustering(beside, rmat, scale):
    graph = Graph(rmat(scale))
    ours = lambda: algos.clustering(graph.A)  # noqa: E731
    peers: dict[str, Any] = {
        "networkit, turbo": lambda: scores(networkit.centrality.LocalClusteringCoefficient(graph.networkit, True)),
        "networkit": lambda: scores(networkit.centrality.LocalClusteringCoefficient(graph.networkit, False)),
    }
    assert np.allclose(ours().to_dense(), peers["networkit"]())
    if scale == SMALL:
        peers["NetworkX"] = lambda: nx.clustering(graph.networkx)
    beside(f"rmat{scale}, clustering", "cpu:2", ours, peers, rounds=2, least=1)


def test_cores(beside, large):
    ours = lambda: algos.core_numbers(large.A)  # noqa: E731
    peers = {
        "networkit": lambda: scores(networkit.centrality.CoreDecomposition(large.networkit)),
        "NetworkX": lambda: dense(nx.core_number(large.networkx)),
    }
    assert all((ours().to_dense() == peer()).all() for peer in peers.values())
    beside(f"rmat{LARGE}, core numbers", "cpu:2", ours, peers, rounds=2, least=1)


@pytest.mark.parametrize("k", [5, 20])
def test_k_truss(beside, small, k):
    ours = lambda: algos.k_truss(small.A, k)  # noqa: E731
    peers = {"NetworkX": lambda: nx.k_truss(small.networkx, k)}
    assert ours().nvals == 2 * peers["NetworkX"]().number_of_edges()
    beside(f"rmat{SMALL}, {k}-truss", "cpu:2", ours, peers, rounds=1, least=20)


@pytest.mark.parametrize("method", ["speculative", "jones-plassmann"])
def test_coloring(beside, large, method):
    ours = lambda: algos.greedy_color(large.A, method)  # noqa: E731
    peers = {"NetworkX": lambda: nx.greedy_color(large.networkx)}
    colors = int(ours().reduce(gb.monoid.max).new().value) + 1
    theirs = max(peers["NetworkX"]().values()) + 1
    assert colors <= 1.2 * theirs
    what = f"rmat{LARGE}, colouring, {method}"
    beside(what, "cpu:2", ours, peers, rounds=5, least=1, note=f"{colors} colours, NetworkX {theirs}")


def test_jaccard(beside, small):
    edges = list(small.networkx.edges)
    ours = lambda: algos.jaccard(small.A)  # noqa: E731
    peers = {"NetworkX": lambda: list(nx.jaccard_coefficient(small.networkx, edges))}
    total = sum(value for _, _, value in peers["NetworkX"]())
    assert ours().reduce_scalar().new().value == pytest.approx(2 * total)
    beside(f"rmat{SMALL}, jaccard of all edges", "cpu:2", ours, peers, rounds=1, least=20)


def test_label_propagation(beside, small):
    ours = lambda: algos.label_propagation(small.A)  # noqa: E731
    peers = {"NetworkX": lambda: list(nx.community.label_propagation_communities(small.networkx))}
    assert len(np.unique(ours().to_dense())) == len(peers["NetworkX"]())
    beside(f"rmat{SMALL}, labels", "cpu:2", ours, peers, rounds=1, least=1)
