"""The algorithms against NetworkX on small graphs of every awkward kind and against their verifiers on real ones; the
verifiers against results that are wrong.
"""

import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import WIDE

import algos
import gbgpu as gb
from algos import verify
from gbgpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue

DATA = Path(__file__).resolve().parent.parent / "data"


def random_arcs(n: int, degree: float, seed: int):
    """Arcs of a random directed graph with self-loops, none twice."""
    key = np.unique(np.random.default_rng(seed).integers(0, n * n, int(n * degree)))
    return n, list(zip((key // n).tolist(), (key % n).tolist(), strict=True))


GRAPHS = {
    "one vertex": (1, []),
    "no arcs": (5, []),
    "loops only": (4, [(0, 0), (2, 2)]),
    "path": (70, [(i, i + 1) for i in range(69)]),
    "path, both ways": (200, [arc for i in range(199) for arc in ((i, i + 1), (i + 1, i))]),
    "cycle": (65, [(i, (i + 1) % 65) for i in range(65)]),
    "out-star": (130, [(64, i) for i in range(130) if i != 64]),
    "in-star": (130, [(i, 64) for i in range(130) if i != 64]),
    "two cliques": (14, [(i, j) for i in range(14) for j in range(14) if i != j and (i < 7) == (j < 7)]),
    "complete": (20, [(i, j) for i in range(20) for j in range(20)]),
    "thin": random_arcs(150, 1.1, 1),
    "dense": random_arcs(90, 12, 2),
}


def matrix(graph, values=1, dtype=None):
    n, arcs = graph
    rows, cols = np.array(arcs, dtype=np.int64).reshape(-1, 2).T
    return gb.Matrix.from_coo(rows, cols, values, dtype, nrows=n, ncols=n)


def digraph(graph, weights=None):
    n, arcs = graph
    G = nx.DiGraph()
    G.add_nodes_from(range(n))
    weights = [1] * len(arcs) if weights is None else weights
    G.add_weighted_edges_from((i, j, w) for (i, j), w in zip(arcs, weights, strict=True))
    return G


def weights_of(graph, low, high, seed=5):
    return np.random.default_rng(seed).integers(low, high, len(graph[1]))


def as_dict(vector):
    indices, values = vector.to_coo()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def both_ways_of(call):
    """What a call gives where rounds that reach few vertices cost something, and where they don't: the same."""
    found = []
    for cheap in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            for name in ("algos.components", "algos.sssp"):
                patch.setattr(sys.modules[name], "rounds_are_cheap", lambda cheap=cheap: cheap)
            found.append(call())
    assert found[0].isequal(found[1])
    return found[0]


every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


# -- breadth-first search


@every_graph
def test_bfs(devices, graph):
    A, G = matrix(graph), digraph(graph)
    for source in {0, graph[0] // 2, graph[0] - 1}:
        levels, parents = algos.bfs(A, source)
        assert as_dict(levels) == nx.single_source_shortest_path_length(G, source)
        assert (levels.dtype, parents.dtype, levels.size) == ("INT64", "INT64", graph[0])
        assert algos.bfs_levels(A, source).isequal(levels, check_dtype=True)
        verify.bfs(A, source, levels, parents)


@pytest.mark.parametrize("dtype", ["BOOL", "INT32", "FP32"])
def test_bfs_does_not_look_at_values(devices, dtype):
    graph = GRAPHS["thin"]
    A = matrix(graph, np.zeros(len(graph[1])), dtype)  # a stored zero is an arc
    assert as_dict(algos.bfs(A, 3)[0]) == nx.single_source_shortest_path_length(digraph(graph), 3)


# -- shortest paths


# Each type is compiled anew, which takes most of the time: the tests below have the other ones too, on a graph or two.
@every_graph
@pytest.mark.parametrize("dtype", ["INT32", "INT64", "FP32", "FP64"] if WIDE else ["INT64", "FP32"])
def test_sssp(devices, graph, dtype):
    weights = weights_of(graph, 0, 9)
    A, G = matrix(graph, weights, dtype), digraph(graph, weights.tolist())
    distances = both_ways_of(lambda: algos.sssp(A, 0))
    assert distances.dtype == ("INT64" if dtype.startswith("INT") else dtype)
    assert as_dict(distances) == nx.single_source_dijkstra_path_length(G, 0)
    verify.sssp(A, 0, distances)


def test_sssp_with_fractions_is_exact_in_its_type(devices):
    graph = GRAPHS["dense"]
    for dtype in ("FP32", "FP64"):
        A = matrix(graph, np.random.default_rng(1).random(len(graph[1])), dtype)
        distances = algos.sssp(A, 7)
        verify.sssp(A, 7, distances)
        G = nx.DiGraph()
        G.add_weighted_edges_from(zip(*(column.tolist() for column in A.to_coo()), strict=True))
        assert as_dict(distances) == pytest.approx(nx.single_source_dijkstra_path_length(G, 7), rel=1e-6)


def test_sssp_weighs_every_entry_of_a_boolean_matrix_one(devices):
    graph = GRAPHS["thin"]
    distances = algos.sssp(matrix(graph, np.zeros(len(graph[1]), bool)), 3)
    assert distances.dtype == "INT64"
    assert as_dict(distances) == nx.single_source_shortest_path_length(digraph(graph), 3)


@pytest.mark.parametrize("dtype", ["INT64", "FP32"])
@pytest.mark.parametrize("kind", ["even", "hub", "far apart", "zero", "dense"])
def test_sssp_in_any_order_of_extension(devices, kind, dtype):
    """Graphs whose vertices are near and far in turn, and those with a hub, where all are near."""
    rng = np.random.default_rng(11)
    n = 400
    arcs = rng.integers(0, n, (40 * n if kind == "dense" else 3 * n, 2))
    if kind == "hub":
        arcs = np.concatenate([arcs, [(0, i) for i in range(1, n)]])
    weights = rng.integers(1, 256, len(arcs)) * (0 if kind == "zero" else 1)
    if kind == "far apart":
        weights = 1 << rng.integers(0, 20, len(arcs))
    arcs, first = np.unique(arcs, axis=0, return_index=True)
    A = matrix((n, arcs), weights[first], dtype)
    verify.sssp(A, 5, both_ways_of(lambda: algos.sssp(A, 5)))


def test_sssp_allows_negative_weights(devices):
    n = 60
    arcs = [(i, j) for i in range(n) for j in range(i + 1, min(n, i + 6))]  # without cycles
    weights = weights_of((n, arcs), -9, 9)
    A = matrix((n, arcs), weights)
    distances = algos.sssp(A, 0)
    assert as_dict(distances) == nx.single_source_bellman_ford_path_length(digraph((n, arcs), weights.tolist()), 0)
    verify.sssp(A, 0, distances)


@pytest.mark.parametrize("dtype", ["INT64", "FP64"])
def test_sssp_does_not_see_what_is_out_of_reach(devices, dtype):
    """Not even arcs that come from there, of a cycle whose length is negative."""
    n = 40
    arcs = [(i, j) for i in range(n) for j in (i + 1, i + 3) if j < n] + [(n, n + 1), (n + 1, n), (n, 5), (n + 1, 0)]
    weights = np.r_[np.arange(len(arcs) - 4) % 7 - 2, [-3, -3, -9, -9]]
    distances = algos.sssp(matrix((n + 3, arcs), weights, dtype), 0)
    assert as_dict(distances) == nx.single_source_bellman_ford_path_length(
        digraph((n, arcs[:-4]), weights[:-4].tolist()), 0
    )


@pytest.mark.parametrize("dtype", ["INT32", "FP64"])
def test_sssp_finds_negative_cycles(devices, dtype):
    graph = (5, [(0, 1), (1, 2), (2, 1), (3, 4), (4, 4)])
    A = matrix(graph, [1, 2, -3, 1, -1], dtype)
    with pytest.raises(InvalidValue, match="negative cycle"):
        algos.sssp(A, 0)
    with pytest.raises(InvalidValue, match="negative cycle"):
        algos.sssp(A, 4)
    zero = matrix(graph, [1, 3, -3, 1, 0], dtype)  # a cycle of length 0 is no negative cycle
    assert as_dict(algos.sssp(zero, 0)) == {0: 0, 1: 1, 2: 4}


@pytest.mark.parametrize("weight", [np.nan, -np.inf])
@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_sssp_refuses_weights_without_an_order(devices, weight, dtype):
    with pytest.raises(InvalidValue, match="NaN"):
        algos.sssp(matrix((3, [(0, 1), (1, 2)]), [1.0, weight], dtype), 0)


def test_sssp_takes_infinite_and_huge_weights(devices):
    distances = algos.sssp(matrix((4, [(0, 1), (1, 2), (0, 3)]), [1.0, np.inf, -1e308]), 0)
    assert as_dict(distances) == {0: 0, 1: 1, 2: np.inf, 3: -1e308}
    distances = algos.sssp(matrix((5, [(0, 1), (1, 2), (2, 3)]), [3e38, 3e38, 1], "FP32"), 0)
    assert as_dict(distances) == {0: 0, 1: np.float32(3e38), 2: np.inf, 3: np.inf}
    with pytest.raises(InvalidValue, match="below 2"):
        algos.sssp(matrix((3, [(0, 1), (1, 2)]), [2**62, 2**62]), 0)


# -- PageRank


def test_results_have_names(devices):
    A = matrix(GRAPHS["cycle"])
    tree, ranks = algos.bfs(A, 0), algos.pagerank(A)
    assert tree.levels is tree[0] and tree.parents is tree[1]
    assert (ranks.ranks, ranks.iterations, ranks.converged) == tuple(ranks) and ranks.converged


@every_graph
def test_pagerank(devices, graph):
    A, G = matrix(graph), digraph(graph)
    ranks, iterations, converged = algos.pagerank(A, tol=1e-12, max_iterations=500)
    assert converged
    assert iterations >= 1
    assert ranks.dtype == "FP64"
    assert as_dict(ranks) == pytest.approx(nx.pagerank(G, tol=1e-14, max_iter=1000), abs=1e-11)
    verify.pagerank(A, ranks, tol=1e-12)


@every_graph
def test_weighted_pagerank(devices, graph):
    weights = weights_of(graph, 0, 4)
    A, G = matrix(graph, weights), digraph(graph, weights.tolist())
    ranks, _, converged = algos.pagerank(A, tol=1e-12, max_iterations=500, weighted=True)
    assert converged
    verify.pagerank(A, ranks, tol=1e-12, weighted=True)
    assert as_dict(ranks) == pytest.approx(nx.pagerank(G, tol=1e-14, max_iter=1000), abs=1e-11)


def test_pagerank_of_bools_weighs_them_as_one_and_nothing(devices):
    arcs = [(0, 1), (1, 2), (2, 0), (0, 2), (3, 1)]
    ranks = [
        algos.pagerank(matrix((4, arcs), np.array([1, 1, 1, 0, 0], kind), kind), tol=1e-12, weighted=True).ranks
        for kind in (bool, float)
    ]
    assert as_dict(ranks[0]) == pytest.approx(as_dict(ranks[1]), abs=1e-12)


def test_pagerank_in_float32_and_with_parameters(devices):
    A, G = matrix(GRAPHS["dense"]), digraph(GRAPHS["dense"])
    ranks, _, converged = algos.pagerank(A, 0.5, 1e-5, dtype="FP32")
    assert converged
    assert ranks.dtype == "FP32"
    assert as_dict(ranks) == pytest.approx(nx.pagerank(G, alpha=0.5), abs=1e-5)
    verify.pagerank(A, ranks, 0.5, 1e-5)


def test_pagerank_stops_at_the_limit(devices):
    A = matrix(GRAPHS["path"])
    _, iterations, converged = algos.pagerank(A, tol=0, max_iterations=3)
    assert (iterations, converged) == (3, False)


@pytest.mark.parametrize(
    "keywords",
    [{"damping": 1}, {"damping": -0.1}, {"damping": np.nan}, {"tol": -1}, {"tol": np.nan}, {"max_iterations": 0}],
)
def test_pagerank_refuses_bad_parameters(devices, keywords):
    with pytest.raises(InvalidValue, match=next(iter(keywords))):
        algos.pagerank(matrix(GRAPHS["cycle"]), **keywords)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_pagerank_refuses_bad_weights(devices, weight):
    A = matrix((3, [(0, 1), (1, 2)]), [1.0, weight])
    assert algos.pagerank(A)[2]  # values are not looked at unless asked
    with pytest.raises(InvalidValue, match="weights"):
        algos.pagerank(A, weighted=True)


def test_pagerank_refuses_integer_types(devices):
    with pytest.raises(TypeError, match="FP32 or FP64"):
        algos.pagerank(matrix(GRAPHS["cycle"]), dtype="INT64")


# -- components


def components_of(A):
    return both_ways_of(lambda: algos.connected_components(A))


@every_graph
def test_connected_components(devices, graph):
    A = matrix(graph)
    labels = components_of(A)
    expected = {v: min(part) for part in nx.weakly_connected_components(digraph(graph)) for v in part}
    assert as_dict(labels) == expected
    assert labels.dtype == "INT64"
    verify.connected_components(A, labels)


@pytest.mark.parametrize("path", [3, 20, 60, 400], ids=lambda length: f"path of {length}")
@pytest.mark.parametrize("directed", [False, True], ids=["edges", "arcs"])
def test_components_beside_the_busiest(devices, monkeypatch, directed, path):
    """Few vertices pass their labels on, which a long path takes too many rounds for; of many a forest is made."""
    rng, n, busy = np.random.default_rng(path), 1200, 500
    ids = rng.permutation(n)
    i = np.r_[np.zeros(busy - 1, int), np.arange(busy, busy + path - 1), busy + path, busy + path + 2]
    j = np.r_[np.arange(1, busy), np.arange(busy + 1, busy + path), busy + path + 1, busy + path]
    turned = rng.random(len(i)) < 0.5
    graph = n, [*zip(ids[np.where(turned, j, i)].tolist(), ids[np.where(turned, i, j)].tolist(), strict=True)]
    graph = graph if directed else both_ways(graph)
    labels = components_of(matrix(graph))
    expected = {v: min(part) for part in nx.weakly_connected_components(digraph(graph)) for v in part}
    assert as_dict(labels) == expected
    monkeypatch.setattr(sys.modules["algos._inputs"], "THIN", 0)  # a search first, where rounds are cheap, too
    assert components_of(matrix(graph)).isequal(labels)


def both_ways(graph):
    n, arcs = graph
    return n, sorted({arc for i, j in arcs for arc in ((i, j), (j, i))})


@every_graph
def test_triangles(devices, graph):
    graph = both_ways(graph)
    A = matrix(graph)
    G = digraph(graph).to_undirected()
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    count = algos.triangle_count(A)
    assert count == sum(nx.triangles(G).values()) // 3
    verify.triangles(A, count)
    with pytest.raises(verify.VerificationError, match="triangles"):
        verify.triangles(A, count + 1)


def test_triangles_in_both_orders_and_of_any_values(devices):
    hubs = nx.barabasi_albert_graph(300, 6, seed=3)
    even = nx.random_regular_graph(8, 120, seed=3)
    for G in (hubs, even):
        arcs = [arc for i, j in G.edges for arc in ((i, j), (j, i))]
        A = matrix((G.number_of_nodes(), arcs), np.zeros(len(arcs)), "FP32")
        assert algos.triangle_count(A) == sum(nx.triangles(G).values()) // 3


def test_triangles_need_both_directions(devices):
    with pytest.raises(InvalidValue, match="reverse"):
        algos.triangle_count(matrix((4, [(0, 1), (1, 0), (1, 2)])))


@every_graph
def test_core_numbers(devices, graph):
    A, G = matrix(both_ways(graph)), digraph(both_ways(graph)).to_undirected()
    core = algos.core_numbers(A)
    verify.core_numbers(A, core)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    assert as_dict(core) == nx.core_number(G)
    assert core.dtype == "INT64"


@pytest.mark.parametrize(("changes", "check"), [({2: None}, "presence"), ({2: 3}, "fewer"), ({3: 0}, "peeling")])
def test_verify_finds_wrong_core_numbers(devices, changes, check):
    A = matrix(both_ways((7, [(0, 1), (1, 2), (2, 0), (2, 3), (4, 5)])))
    right = algos.core_numbers(A)
    assert as_dict(right) == {0: 2, 1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 0}
    with pytest.raises(verify.VerificationError, match=check):
        verify.core_numbers(A, changed(right, changes))


def test_core_numbers_need_both_directions(devices):
    with pytest.raises(InvalidValue, match="reverse"):
        algos.core_numbers(matrix((4, [(0, 1), (1, 0), (1, 2)])))


@every_graph
def test_maximal_independent_set(devices, graph):
    A = matrix(both_ways(graph))
    chosen = algos.maximal_independent_set(A)
    verify.maximal_independent_set(A, chosen)
    assert set(as_dict(chosen).values()) == {True} and chosen.dtype == "BOOL"
    assert chosen.isequal(algos.maximal_independent_set(A))
    first = next(iter(as_dict(chosen)))
    with pytest.raises(verify.VerificationError, match="maximality|independence"):
        verify.maximal_independent_set(A, changed(chosen, {first: None}))


def test_verify_finds_joined_vertices(devices):
    A = matrix(both_ways((4, [(0, 1), (1, 2), (2, 3)])))
    for seed in range(4):
        verify.maximal_independent_set(A, algos.maximal_independent_set(A, seed))
    with pytest.raises(verify.VerificationError, match="independence"):
        verify.maximal_independent_set(A, gb.Vector.from_coo([0, 1, 3], True, size=4))
    with pytest.raises(InvalidValue, match="reverse"):
        algos.maximal_independent_set(matrix((4, [(0, 1), (1, 0), (1, 2)])))


def test_components_do_not_look_at_values(devices):
    graph = GRAPHS["thin"]
    values = np.full(len(graph[1]), np.nan)
    values[::2] = 0
    expected = algos.connected_components(matrix(graph))
    assert algos.connected_components(matrix(graph, values, "FP32")).isequal(expected)


# -- all four


def test_graphs_without_vertices(devices):
    A = gb.Matrix(int, 0, 0)
    assert algos.connected_components(A).size == algos.strongly_connected_components(A).size == 0
    assert algos.core_numbers(A).size == algos.maximal_independent_set(A).size == 0
    ranks, iterations, converged = algos.pagerank(A)
    assert (ranks.size, iterations, converged) == (0, 0, True)
    for algorithm in (algos.bfs, algos.sssp):
        with pytest.raises(IndexOutOfBound, match="no vertex"):
            algorithm(A, 0)


@pytest.mark.parametrize("algorithm", [algos.bfs, algos.sssp])
def test_bad_sources(devices, algorithm):
    A = matrix(GRAPHS["cycle"])
    for source in (-1, 65, 2**70):
        with pytest.raises(IndexOutOfBound, match="from 0 to 64"):
            algorithm(A, source)
    for source in (1.0, "1", None):
        with pytest.raises(TypeError, match="vertex"):
            algorithm(A, source)
    algorithm(A, np.int32(64))


@pytest.mark.parametrize(
    "run", [lambda A: algos.bfs(A, 0), lambda A: algos.sssp(A, 0), algos.pagerank, algos.connected_components]
)
def test_bad_matrices(devices, run):
    with pytest.raises(DimensionMismatch, match="2 x 3"):
        run(gb.Matrix(int, 2, 3))
    for other in (np.eye(3), None, gb.Vector(int, 3)):
        with pytest.raises(TypeError, match="Matrix"):
            run(other)


@st.composite
def weighted_graphs(draw):
    """(graph, weights from 0 to 20, a vertex)."""
    n = draw(st.integers(1, 40))
    vertex = st.integers(0, n - 1)
    arcs = draw(st.lists(st.tuples(vertex, vertex), unique=True, max_size=120))
    return (n, arcs), draw(st.lists(st.integers(0, 20), min_size=len(arcs), max_size=len(arcs))), draw(vertex)


@settings(max_examples=2000 if WIDE else 20)
@given(weighted_graphs())
def test_random_graphs(devices, drawn):
    graph, weights, source = drawn
    A, G = matrix(graph, np.array(weights, np.int64)), digraph(graph, weights)
    levels, parents = algos.bfs(A, source)
    verify.bfs(A, source, levels, parents)
    assert as_dict(levels) == nx.single_source_shortest_path_length(G, source)
    distances = both_ways_of(lambda: algos.sssp(A, source))
    assert as_dict(distances) == nx.single_source_dijkstra_path_length(G, source)
    labels = components_of(A)
    assert as_dict(labels) == {v: min(part) for part in nx.weakly_connected_components(G) for v in part}
    verify.pagerank(A, algos.pagerank(A)[0])


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["PGPgiantcompo", "luxembourg_osm"])
def test_real_graphs(devices, name):
    A = gb.io.mmread(DATA / f"{name}.mtx.gz")
    source = 17
    levels, parents = algos.bfs(A, source)
    verify.bfs(A, source, levels, parents)
    assert levels.nvals == A.nrows  # both are connected
    distances = algos.sssp(A, source)
    verify.sssp(A, source, distances)
    assert distances.isequal(levels)
    ranks, _, converged = algos.pagerank(A)
    assert converged
    verify.pagerank(A, ranks)
    labels = components_of(A)
    verify.connected_components(A, labels)
    assert labels.reduce(gb.monoid.max).new().value == 0


# -- the verifiers find what is wrong


def changed(vector, changes):
    """A copy with other entries; None deletes one."""
    entries = as_dict(vector) | changes
    kept = {vertex: value for vertex, value in entries.items() if value is not None}
    return gb.Vector.from_coo(list(kept), list(kept.values()), vector.dtype, size=vector.size)


#    0 -> 1 -> 2 -> 3     4 -> 5      and 0 -> 6 -> 3
ARCS = (7, [(0, 1), (1, 2), (2, 3), (4, 5), (0, 6), (6, 3)])

WRONG_TREES = [
    ({2: None}, {}, "both or neither", 2),
    ({}, {3: 99}, "not a vertex", 3),
    ({0: 1}, {}, "root", 0),
    ({}, {0: 1}, "root", 0),
    ({3: 3}, {}, "neighbouring levels", 3),
    ({}, {3: 4}, "neighbouring levels", 3),
    ({4: 0, 5: 1}, {4: 4, 5: 4}, "neighbouring levels", 4),  # a second root
    ({}, {2: 6}, "arc of the graph", 2),
    ({2: None}, {2: None}, "spans all", 2),
    ({3: 3}, {3: 2}, "at most one level", 3),
]


@pytest.mark.parametrize(("levels", "parents", "check", "vertex"), WRONG_TREES)
def test_verify_finds_wrong_trees(devices, levels, parents, check, vertex):
    A = matrix(ARCS)
    right = algos.bfs(A, 0)
    verify.bfs(A, 0, *right)
    with pytest.raises(verify.VerificationError, match=rf"{check}.*\(vertex {vertex}\)"):
        verify.bfs(A, 0, changed(right[0], levels), changed(right[1], parents))


WRONG_DISTANCES = [
    ({0: 1}, "source", 0),
    ({0: None}, "source", 0),
    ({3: None}, "reach", 3),
    ({3: 9}, "triangle", 3),
    ({3: 1}, "tight", 3),
    ({4: 0, 5: 1}, "tight", 4),
    ({4: 0, 5: 0}, "tight", 4),
]


@pytest.mark.parametrize(("changes", "check", "vertex"), WRONG_DISTANCES)
@pytest.mark.parametrize("dtype", ["INT64", "FP32"])
def test_verify_finds_wrong_distances(devices, changes, check, vertex, dtype):
    A = matrix(ARCS, 1, dtype)
    right = algos.sssp(A, 0)
    verify.sssp(A, 0, right)
    with pytest.raises(verify.VerificationError, match=rf"{check}.*\(vertex {vertex}\)"):
        verify.sssp(A, 0, changed(right, changes))


def test_verify_is_not_fooled_by_a_cycle_of_length_zero(devices):
    A = matrix((4, [(0, 1), (1, 2), (2, 3), (3, 2)]), [5, 5, 0, 0])
    right = algos.sssp(A, 0)
    with pytest.raises(verify.VerificationError, match="tight"):
        verify.sssp(A, 0, changed(right, {2: 7, 3: 7}))


@pytest.mark.parametrize(
    ("change", "check"), [(None, "presence"), (-0.1, "range"), (np.nan, "range"), (0.9, "sum"), ("swap", "residual")]
)
def test_verify_finds_wrong_ranks(devices, change, check):
    A = matrix(ARCS)
    right = algos.pagerank(A)[0]
    verify.pagerank(A, right)
    entries = as_dict(right)
    wrong = changed(right, {0: entries[3], 3: entries[0]} if change == "swap" else {2: change})
    with pytest.raises(verify.VerificationError, match=check):
        verify.pagerank(A, wrong)


WRONG_LABELS = [
    ({2: None}, "presence", 2),
    ({2: 3}, "smallest", 2),
    ({2: -1}, "smallest", 2),
    ({3: 2}, "another label", 3),
    ({5: 5}, "edge", 4),
    ({4: 0, 5: 0}, "count", 4),
]


@pytest.mark.parametrize(("changes", "check", "vertex"), WRONG_LABELS)
def test_verify_finds_wrong_labels(devices, changes, check, vertex):
    A = matrix(ARCS)
    right = algos.connected_components(A)
    verify.connected_components(A, right)
    with pytest.raises(verify.VerificationError, match=rf"{check}.*\(vertex {vertex}\)"):
        verify.connected_components(A, changed(right, changes))
