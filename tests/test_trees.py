"""Trees of shortest paths, spanning forests, searches with written directions and PageRank by residuals, against
NetworkX and by what must hold; and that wrong ones are found."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from programs import WIDE
from scipy.sparse import coo_array, csgraph
from test_algos import (
    GRAPHS,
    as_dict,
    both_ways,
    changed,
    digraph,
    every_graph,
    matrix,
    random_arcs,
    weighted_graphs,
    weights_of,
)

import algos
import gbgpu as gb
from algos import verify
from algos.sssp import fits
from algos.verify import VerificationError
from gbgpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue


@every_graph
def test_directions_do_not_change_levels(devices, graph):
    A, G = matrix(graph), digraph(graph)
    for source in {0, graph[0] - 1}:
        levels = algos.direction_optimizing_bfs(A, source)
        assert as_dict(levels) == nx.single_source_shortest_path_length(G, source)
        assert levels.isequal(algos.bfs_levels(A, source), check_dtype=True)


def test_both_directions_are_taken(devices):
    A = gb.io.rmat(8, 8, seed=1)
    source = int(np.bincount(A.to_coo()[0]).argmax())
    with gb.trace() as records:
        algos.direction_optimizing_bfs(A, source)
    assert {"push", "pull"} <= {record.direction for record in records}


# -- shortest paths


@every_graph
@pytest.mark.parametrize("dtype", ["FP32"] + ["INT32"] * WIDE)
def test_trees_of_shortest_paths(devices, graph, dtype):
    weights = weights_of(graph, 0, 5)
    A, G = matrix(graph, weights, dtype), digraph(graph, weights.tolist())
    distances, parents = algos.shortest_path_tree(A, 0)
    assert as_dict(distances) == nx.single_source_dijkstra_path_length(G, 0)
    assert parents.dtype == "INT64"
    verify.shortest_path_tree(A, 0, distances, parents)


def test_a_tree_of_bools_and_of_negative_weights(devices):
    A = matrix(GRAPHS["thin"], np.zeros(len(GRAPHS["thin"][1]), bool))
    found = algos.shortest_path_tree(A, 3)
    assert found.distances.isequal(algos.sssp(A, 3))
    verify.shortest_path_tree(A, 3, *found)
    A = matrix((4, [(0, 1), (0, 2), (2, 1), (1, 3)]), [5, 7, -4, 1])
    assert as_dict(algos.shortest_path_tree(A, 0).parents) == {0: 0, 1: 2, 2: 0, 3: 1}
    for source in (-1, 4):
        with pytest.raises(IndexOutOfBound):
            algos.shortest_path_tree(A, source)


def test_arcs_of_length_zero_make_no_cycle(devices):
    A = matrix((5, [(0, 1), (1, 2), (2, 1), (2, 3), (3, 2), (3, 1)]), [2, 0, 0, 0, 0, 0])
    found = algos.shortest_path_tree(A, 0)
    assert as_dict(found.parents) == {0: 0, 1: 0, 2: 1, 3: 2}
    with pytest.raises(VerificationError, match="parents: no path"):
        verify.shortest_path_tree(A, 0, found.distances, changed(found.parents, {2: 3}))


TREES = {  # type and weights of arcs; whether one number holds the length of a path and a vertex
    "ties": ("UINT64", lambda rng, m: rng.integers(1, 3, m), True),
    "zeros": ("INT32", lambda rng, m: rng.integers(0, 3, m), True),
    "no length": ("UINT8", lambda rng, m: np.zeros(m), True),
    "long": ("INT64", lambda rng, m: rng.integers(1 << 40, 1 << 41, m), False),
    "fractions": ("FP32", lambda rng, m: rng.random(m, np.float32), True),
    "rounded away": ("FP32", lambda rng, m: 10.0 ** rng.integers(-30, 30, m) * (rng.random(m) < 0.9), True),
    "infinite": ("FP32", lambda rng, m: np.where(rng.random(m) < 0.6, np.inf, rng.random(m)), False),
    "too long": ("FP32", lambda rng, m: rng.choice([1e38, 2e38, 3e38], m), False),
    "FP64": ("FP64", lambda rng, m: rng.random(m) * (rng.random(m) < 0.8), False),
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.filterwarnings("ignore:overflow")  # of sums that are infinite
def test_trees_of_all_weights(devices, kind):
    dtype, draw, packed = TREES[kind]
    n, arcs = random_arcs(150, 4, 3)
    weights = draw(np.random.default_rng(7), len(arcs)).astype(gb.dtypes.lookup_dtype(dtype).np_type)
    A = matrix((n, arcs), weights)
    found = algos.shortest_path_tree(A, 2)
    verify.shortest_path_tree(A, 2, *found)
    assert fits(A, found.distances) == packed
    if kind not in ("ties", "long", "fractions"):  # SciPy takes 0 for no arc
        return
    rows, cols = np.array(arcs).T
    right = csgraph.dijkstra(coo_array((weights.astype(float), (rows, cols)), shape=(n, n)).tocsr(), indices=2)
    distances, parents = found.distances.to_dense(0), found.parents.to_dense(-1)
    assert found.distances.to_dense(np.inf) == pytest.approx(right, rel=1e-6)
    if packed:  # every arc makes a path longer: of the vertices that may be the parent it is the first
        tight, first = (right[rows] < np.inf) & (distances[rows] + weights == distances[cols]), np.full(n, n)
        np.minimum.at(first, cols[tight], rows[tight])
        others = (parents >= 0) & (np.arange(n) != 2)
        assert np.array_equal(first[others], parents[others])


@pytest.mark.parametrize(("weight", "packed"), [(2**31 - 1, True), (2**31, False)])
def test_the_longest_paths_that_one_number_holds(devices, weight, packed):
    A = matrix((130, [(0, 1), (0, 128), (1, 129), (128, 129), (129, 129)]), np.array([weight, weight, 1, 0, 0]))
    found = algos.shortest_path_tree(A, 0)
    assert fits(A, found.distances) == packed
    assert as_dict(found.parents) == {0: 0, 1: 0, 128: 0, 129: 128}


@pytest.mark.parametrize(
    ("distances", "parents", "check"),
    [({2: 9}, {}, "triangle"), ({}, {2: None}, "both or neither"), ({}, {0: 1}, "root"), ({}, {3: 1}, "no path")],
)
def test_verify_finds_wrong_trees(devices, distances, parents, check):
    A = matrix((4, [(0, 1), (1, 2), (2, 3), (1, 3)]), [1, 1, 1, 5])
    right = algos.shortest_path_tree(A, 0)
    with pytest.raises(VerificationError, match=check):
        verify.shortest_path_tree(A, 0, changed(right.distances, distances), changed(right.parents, parents))


# -- spanning forests


@every_graph
@pytest.mark.parametrize("dtype", ["INT64"] + ["BOOL", "FP32"] * WIDE)
def test_minimum_spanning_forests(devices, graph, dtype):
    weights = weights_of(graph, 0 if dtype == "BOOL" else -3, 2 if dtype == "BOOL" else 9)
    A = matrix(graph, weights, dtype)
    forest = algos.minimum_spanning_forest(A)
    verify.minimum_spanning_forest(A, forest)
    G = nx.Graph()
    G.add_nodes_from(range(graph[0]))
    for (i, j), weight in zip(graph[1], weights.tolist(), strict=True):
        if i != j and weight <= G.get_edge_data(i, j, {"weight": weight})["weight"]:
            G.add_edge(i, j, weight=weight)
    expected = nx.minimum_spanning_tree(G)
    assert forest.nvals == expected.number_of_edges() and forest.dtype == dtype
    assert sum(forest.to_coo()[2].tolist()) == expected.size("weight")


@pytest.mark.parametrize(
    ("edges", "weights", "check"),
    [
        ([(0, 1), (1, 2), (0, 3)], [1, 2, 3], "edge"),
        ([(0, 1), (1, 2), (2, 3)], [1, 2, 4], "weight: not"),
        ([(0, 1), (1, 2), (0, 2), (2, 3)], [1, 2, 9, 3], "cycle"),
        ([(0, 1), (1, 2)], [1, 2], "reach"),
        ([(0, 1), (0, 2), (2, 3)], [1, 9, 3], "by SciPy's"),
        ([(1, 0), (1, 2), (2, 3)], [1, 2, 3], "edge"),
    ],
)
def test_verify_finds_wrong_forests(devices, edges, weights, check):
    A = matrix((5, [(0, 1), (1, 2), (2, 3), (0, 2)]), [1, 2, 3, 9])
    verify.minimum_spanning_forest(A, algos.minimum_spanning_forest(A))
    with pytest.raises(VerificationError, match=check):
        verify.minimum_spanning_forest(A, matrix((5, edges), weights))


def test_forests_refuse_what_has_no_order(devices):
    with pytest.raises(InvalidValue, match="NaN"):
        algos.minimum_spanning_forest(matrix((3, [(0, 1), (1, 2)]), [1.0, np.nan]))
    with pytest.raises(DimensionMismatch):
        algos.minimum_spanning_forest(gb.Matrix(int, 2, 3))
    assert algos.minimum_spanning_forest(matrix((3, [(0, 1), (1, 2), (2, 0)]), [True, True, False])).nvals == 2
    assert algos.minimum_spanning_forest(gb.Matrix(int, 0, 0)).nvals == 0


# -- PageRank


@pytest.mark.few(12)
@every_graph
@pytest.mark.parametrize("weighted", [False, True])
def test_pagerank_by_residuals(devices, graph, weighted):
    weights = weights_of(graph, 0, 4)
    A = matrix(graph, weights)
    found = algos.pagerank_push(A, tol=1e-10, weighted=weighted)
    assert found.converged
    verify.pagerank(A, found.ranks, tol=1e-10, weighted=weighted)
    expected = nx.pagerank(
        digraph(graph, weights.tolist()), weight="weight" if weighted else None, tol=1e-14, max_iter=999
    )
    assert as_dict(found.ranks) == pytest.approx(expected, abs=1e-9)


def test_pagerank_by_residuals_from_some_vertices(devices):
    graph = both_ways(GRAPHS["thin"])
    A, jumps = matrix(graph), gb.Vector.from_coo([3, 77], [2.0, 1.0], size=graph[0])
    found = algos.pagerank_push(A, 0.5, 1e-5, dtype="FP32", personalization=jumps)
    assert found.ranks.dtype == "FP32"
    verify.pagerank(A, found.ranks, 0.5, 1e-5, personalization=jumps)
    assert algos.pagerank_push(A, max_iterations=2).iterations == 2


@pytest.mark.parametrize("keywords", [{"tol": 0}, {"damping": 1}, {"max_iterations": 0}, {"tol": np.nan}])
def test_pagerank_by_residuals_refuses_bad_parameters(devices, keywords):
    with pytest.raises(InvalidValue, match=next(iter(keywords))):
        algos.pagerank_push(matrix(GRAPHS["cycle"]), **keywords)
    assert algos.pagerank_push(gb.Matrix(int, 0, 0)).ranks.size == 0


@settings(max_examples=500 if WIDE else 20)
@given(weighted_graphs())
def test_random_graphs(devices, drawn):
    graph, weights, source = drawn
    A = matrix(graph, np.array(weights, np.int64))
    verify.shortest_path_tree(A, source, *algos.shortest_path_tree(A, source))
    verify.minimum_spanning_forest(A, algos.minimum_spanning_forest(A))
    verify.pagerank(A, algos.pagerank_push(A).ranks)
    assert algos.direction_optimizing_bfs(A, source).isequal(algos.bfs_levels(A, source))
