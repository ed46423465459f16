"""Centralities against NetworkX on small graphs of every awkward kind; the verifiers against results that are wrong."""

import gc
import random
import sys

import networkx as nx
import numpy as np
import pytest
from test_algos import as_dict, both_ways, changed, digraph, matrix, random_arcs

import algos
import gbgpu as gb
from algos import verify
from algos.betweenness import check_betweenness
from algos.closeness import check_closeness
from algos.clustering import check_clustering
from algos.eigenvector import check_eigenvector
from algos.hits import check_hits
from algos.katz import check_katz, default_alpha
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
    "wide": random_arcs(24, 8, 3),
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
    near(algos.betweenness(matrix(graph)), nx.betweenness_centrality(digraph(graph)))
    A, G = undirected(graph)
    near(algos.betweenness(A, normalized=False), nx.betweenness_centrality(G, normalized=False))


@every_graph
def test_edge_betweenness(devices, graph):
    for normalized, (A, G) in ((True, undirected(graph)), (False, (matrix(graph), digraph(graph)))):
        E = algos.edge_betweenness(A, normalized=normalized, directed=G.is_directed())
        found = {(i, j): value for i, j, value in zip(*(part.tolist() for part in E.to_coo()), strict=True)}
        expected = nx.edge_betweenness_centrality(G, normalized=normalized)
        assert {edge: found[edge] for edge in expected} == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert len(found) == A.nvals and E.dtype == "FP64"


class Drawn(random.Random):
    """Numbers for NetworkX that draw these vertices."""

    def sample(self, vertices, k):
        return self.drawn


@pytest.mark.parametrize(("k", "normalized"), [(1, False), (9, True)])
def test_sampled_betweenness(first, k, normalized):
    draw = Drawn()
    draw.drawn = np.random.default_rng(k).permutation(18)[:k].tolist()
    for A, G in ((matrix(PARTS["thin"]), digraph(PARTS["thin"])), undirected(PARTS["thin"])):
        expected = nx.betweenness_centrality(G, k=k, normalized=normalized, seed=draw)
        near(algos.betweenness(A, draw.drawn, normalized), expected, nan_ok=True)
    E = algos.edge_betweenness(A, draw.drawn, normalized)
    expected = nx.edge_betweenness_centrality(G, k=k, normalized=normalized, seed=draw)
    assert E.reduce_scalar().new().value == pytest.approx(2 * sum(expected.values()))


def test_drawn_sources_are_the_same_for_the_same_seed(first):
    A = matrix(PARTS["dense"])
    first = algos.betweenness(A, 5)
    assert first.isequal(algos.betweenness(A, 5)) and not first.isclose(algos.betweenness(A, 5, seed=1))
    near(algos.betweenness(A, 12), as_dict(algos.betweenness(A)))


def test_sources_in_several_batches(first, monkeypatch):
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
def test_bad_sources(first, sources, error, text):
    for algorithm in (algos.betweenness, algos.edge_betweenness, algos.closeness, algos.harmonic):
        with pytest.raises(error, match=text):
            algorithm(matrix(PARTS["cycle"]), sources)


def test_copies_of_a_graph_are_kept_with_its_content(devices):
    A, session = matrix(PARTS["cycle"]), gb.settings.session()
    first = algos.betweenness(A, [0, 1, 2])
    kept = [one for made in session.made_of.values() for _, one in made.values()]
    assert kept and first.isclose(algos.betweenness(A, [0, 1, 2]))
    again = [one for made in session.made_of.values() for _, one in made.values()]
    assert [id(one) for one in again] == [id(one) for one in kept]
    for sources in ([0, 1], [0, 1, 2, 3]):  # other numbers of copies take the place of these
        algos.betweenness(A, sources)
        assert sum(map(len, session.made_of.values())) == len(kept)
    del kept, again
    A[0, 3] = True
    arcs = [*PARTS["cycle"][1], (0, 3)]
    near(algos.betweenness(A), nx.betweenness_centrality(digraph((PARTS["cycle"][0], arcs))))
    gc.collect()
    assert A._store in session.made_of and len(session.made_of) <= 2  # the graph's, and that of its pattern


def exactly(n: int, arcs: list, source: int) -> tuple[list, dict]:
    """What vertices and arcs depend on, of a graph whose arcs lead from one level to the next, in whole numbers."""
    order, counts = [source], {source: 1}
    after: dict[int, list[int]] = {i: [] for i in range(n)}
    for i, j in arcs:
        after[i].append(j)
    for i in order:
        for j in after[i]:
            if j not in counts:
                order.append(j)
            counts[j] = counts.get(j, 0) + counts[i]
    vertex, arc = [0.0] * n, {}
    for i in reversed(order):
        for j in after[i]:
            arc[i, j] = counts[i] / counts[j] * (1 + vertex[j])  # of ints of any size
        vertex[i] = sum(arc[i, j] for j in after[i])
    vertex[source] = 0.0
    assert n < 100 or max(counts.values()) > 2**1024
    return vertex, arc


@pytest.mark.parametrize("layers", [3, 700])  # 700 have more paths than FP64 has numbers for
def test_paths_are_counted_however_many_there_are(devices, layers):
    width, rng = 4, np.random.default_rng(layers)
    both = [(i, i - i % width + width + j) for i in range(layers * width) for j in range(width)]
    arcs = [arc for arc, keep in zip(both, rng.random(len(both)) < 0.8, strict=True) if keep]
    n = (layers + 1) * width
    vertex, arc = exactly(n, arcs, 0)
    A = matrix((n, arcs))
    found = algos.betweenness(A, [0], False).to_dense()
    np.testing.assert_allclose(found[1:], np.multiply(vertex, n - 1)[1:], rtol=1e-9)
    rows, cols, found = algos.edge_betweenness(A, [0], False).to_coo()
    expected = [n * arc.get(where, 0.0) for where in zip(rows, cols, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_verify_finds_wrong_betweenness(first):
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
def test_closeness_to_some(first, listed):
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


def test_verify_finds_wrong_closeness(first):
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


# -- repeated products


def weighted(graph):
    values = np.random.default_rng(3).integers(1, 5, len(graph[1]))
    return matrix(graph, values, float), digraph(graph, values.tolist())


def test_eigenvector_and_katz(devices):
    A, G = weighted(PARTS["dense"])
    found = algos.eigenvector(A, 1e-12, weighted=True)
    near(found, nx.eigenvector_centrality(G, 1000, 1e-12, weight="weight"), abs=1e-9)
    check_eigenvector(A, found, 1e-12, weighted=True)
    check_katz(A, algos.katz(A, tol=1e-12, weighted=True), weighted=True)
    for check, other in ((check_eigenvector, algos.eigenvector(A)), (check_katz, algos.katz(A))):
        with pytest.raises(VerificationError, match="residual"):
            check(A, other, weighted=True)  # they are not those of the weights
    alpha = default_alpha(A, True)
    assert alpha < 1 / abs(np.linalg.eigvals(A.to_dense(0.0))).max()
    near(algos.katz(A, tol=1e-12, weighted=True), nx.katz_centrality(G, alpha, tol=1e-12, weight="weight"), abs=1e-9)
    start = gb.Vector.from_coo([1, 3], [2.0, 0.5], size=A.nrows)
    beta = dict(enumerate(start.to_dense(0.0)))
    expected = nx.katz_centrality(G, 0.02, beta, tol=1e-12, normalized=False)
    near(algos.katz(A, 0.02, start, 1e-12, normalized=False), expected, abs=1e-9)


def test_hits(devices):
    A, G = weighted(PARTS["dense"])
    hubs, authorities = algos.hits(A, 1e-13, weighted=True)
    expected = nx.hits(G)
    near(hubs, expected[0], abs=1e-9)
    near(authorities, expected[1], abs=1e-9)
    check_hits(A, algos.hits(A, weighted=True), weighted=True)
    with pytest.raises(VerificationError, match="not the sums"):
        check_hits(A, algos.hits(A), weighted=True)


def test_repeated_products_of_all_kinds_of_graphs(first):
    """Where eigenvalues are equal, what must hold of the result."""
    for graph in GRAPHS.values():
        A = undirected(graph)[0]
        check_eigenvector(A, algos.eigenvector(A))
        check_katz(A, algos.katz(A))
        check_hits(A, algos.hits(A))


def test_what_does_not_settle(first):
    A = matrix(PARTS["dense"])
    for algorithm in (algos.eigenvector, algos.hits, algos.katz):
        with pytest.raises(algos.ConvergenceError, match="after 3"):
            algorithm(A, tol=0, max_iterations=3)
    for algorithm in (algos.eigenvector, algos.hits, algos.katz):
        for keywords in ({"tol": -1}, {"tol": np.nan}, {"max_iterations": 0}):
            with pytest.raises(InvalidValue, match=next(iter(keywords))):
                algorithm(A, **keywords)
    with pytest.raises(DimensionMismatch, match="beta"):
        algos.katz(A, beta=gb.Vector(float, 3))


@pytest.mark.parametrize(
    ("change", "verify", "result"),
    [(0.9, check_eigenvector, algos.eigenvector), (None, check_eigenvector, algos.eigenvector),
     (-0.1, check_eigenvector, algos.eigenvector), (0.9, check_katz, algos.katz), (None, check_katz, algos.katz)],
)
def test_verify_finds_wrong_scores(first, change, verify, result):
    A = matrix(PARTS["dense"])
    right = result(A)
    with pytest.raises(VerificationError, match="presence|sign|length|residual"):
        verify(A, changed(right, {2: change}))


def test_verify_finds_wrong_hubs(first):
    A = matrix(PARTS["dense"])
    hubs, authorities = algos.hits(A)
    for wrong in ((changed(hubs, {2: 0.5}), authorities), (hubs, changed(authorities, {2: None}))):
        with pytest.raises(VerificationError, match="hubs|authorities"):
            check_hits(A, wrong)


def test_personalised_pagerank(devices):
    A, G = weighted(ALL)
    n = ALL[0]
    some = gb.Vector.from_coo([0, 5, n - 1], [1, 3, 2.5], size=n)
    other = gb.Vector.from_coo([2, 7], [1, 1], size=n)
    for kinds in ({"dangling": other}, {"personalization": some, "dangling": other}):
        ranks, _, converged = algos.pagerank(A, 0.5, 1e-9, weighted=True, nstart=some, **kinds)
        assert converged
        expected = nx.pagerank(G, 0.5, tol=1e-12, **{name: as_dict(v) for name, v in kinds.items()})
        near(ranks, expected, abs=1e-8)
        verify.pagerank(A, ranks, 0.5, tol=1e-9, weighted=True, **kinds)
        with pytest.raises(VerificationError, match="residual"):
            verify.pagerank(A, ranks, 0.5, 1e-9, weighted=True)
    assert algos.pagerank(A, 0.5, 1e-8, weighted=True, nstart=ranks, **kinds).iterations < 3


@pytest.mark.parametrize("name", ["personalization", "dangling", "nstart"])
def test_bad_proportions(first, name):
    A = matrix(PARTS["cycle"])
    for values, error in (([0.0], InvalidValue), ([-1.0], InvalidValue), ([np.inf], InvalidValue)):
        with pytest.raises(error, match="proportions"):
            algos.pagerank(A, **{name: gb.Vector.from_coo([1], values, size=5)})
    with pytest.raises(DimensionMismatch, match="size 5"):
        algos.pagerank(A, **{name: gb.Vector(float, 4)})
    with pytest.raises(TypeError, match="Vector"):
        algos.pagerank(A, **{name: {0: 1.0}})


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


def test_triangles_of_vertices_in_the_order_of_degrees(first):
    G = nx.barabasi_albert_graph(40, 4, seed=3)
    A = gb.Matrix.from_scipy_sparse(nx.to_scipy_sparse_array(G))
    assert as_dict(algos.triangles(A)) == nx.triangles(G)


# -- all


UNDIRECTED = [algos.triangles, algos.clustering, algos.transitivity, algos.average_clustering]
REPEATED = [algos.eigenvector, algos.katz, algos.hits]
EVERY = [*REPEATED, algos.betweenness, algos.edge_betweenness, algos.closeness, algos.harmonic, *UNDIRECTED]


@pytest.mark.parametrize("algorithm", EVERY)
def test_graphs_without_vertices_and_bad_matrices(first, algorithm):
    algorithm(gb.Matrix(int, 0, 0))
    with pytest.raises(DimensionMismatch, match="2 x 3"):
        algorithm(gb.Matrix(int, 2, 3))
    with pytest.raises(TypeError, match="Matrix"):
        algorithm(np.eye(3))


@pytest.mark.parametrize("algorithm", UNDIRECTED)
def test_undirected_graphs_have_both_arcs(first, algorithm):
    with pytest.raises(InvalidValue, match="reverse"):
        algorithm(matrix((3, [(0, 1), (1, 0), (1, 2)])))
