"""Trusses, colours, labels, similarity and factors against NetworkX and NumPy; the verifiers against wrong results."""

import networkx as nx
import numpy as np
import pytest
from test_algos import as_dict, changed, matrix
from test_centrality import ALL, GRAPHS, near, side_by_side, undirected

import algos
import gbgpu as gb
from algos import coloring
from algos.coloring import check_coloring
from algos.factors import check_model
from algos.labels import check_labels
from algos.similarity import check_jaccard
from algos.truss import check_k_truss, check_truss_numbers
from algos.verify import VerificationError
from gbgpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue


def simple(graph):
    """An undirected graph, the Matrix with its loops, NetworkX's without."""
    A, G = undirected(graph)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    return A, G


def cliques():
    """Cliques of 3 to 7 with some edges between them: trusses of several numbers."""
    G = nx.disjoint_union_all([nx.complete_graph(k) for k in range(3, 8)])
    G.add_edges_from((k, (5 * k + 3) % 25) for k in range(0, 25, 2) if k != (5 * k + 3) % 25)
    return 25, [tuple(edge) for edge in G.edges]


CLIQUES = cliques()
ALL = side_by_side(ALL, CLIQUES)
every_graph = pytest.mark.parametrize("graph", [*list(GRAPHS.values())[:2], ALL], ids=[*list(GRAPHS)[:2], "all kinds"])


def edges(M):
    return {(i, j): value for i, j, value in zip(*(part.tolist() for part in M.to_coo()), strict=True)}


def altered(M, changes):
    entries = edges(M) | changes
    kept = {edge: value for edge, value in entries.items() if value is not None}
    rows, cols = zip(*kept, strict=True)
    return gb.Matrix.from_coo(rows, cols, list(kept.values()), M.dtype, nrows=M.nrows, ncols=M.ncols)


# -- trusses


@every_graph
def test_trusses(devices, graph):
    A, G = simple(graph)
    numbers = algos.truss_numbers(A)
    assert numbers.dtype == "INT64"
    check_truss_numbers(A, numbers)
    found = edges(numbers)
    for k in range(2, 9, 2):
        expected = {tuple(sorted(edge)) for edge in nx.k_truss(G, k).edges}
        assert {(i, j) for (i, j), number in found.items() if number >= k and i < j} == expected
        assert all(found[j, i] == number for (i, j), number in found.items())
    for k in (2, 4):
        truss = algos.k_truss(A, k)
        check_k_truss(A, k, truss)
        assert edges(truss) == {edge: 1 for edge, number in found.items() if number >= k}


def test_a_truss_keeps_values(first):
    A = matrix((4, [(i, j) for i in range(3) for j in range(4)] + [(3, 0), (3, 1), (3, 2)]), np.arange(15.0))
    truss = algos.k_truss(A, 3)
    assert truss.dtype == "FP64" and edges(truss) == {(i, j): value for (i, j), value in edges(A).items() if i != j}


@pytest.mark.parametrize(("k", "error"), [(1, InvalidValue), (2.5, TypeError)])
def test_bad_k(first, k, error):
    with pytest.raises(error):
        algos.k_truss(matrix(ALL), k)


def test_verify_finds_wrong_trusses(first):
    A = simple(CLIQUES)[0]
    numbers, truss = algos.truss_numbers(A), algos.k_truss(A, 4)
    for changes in ({(0, 1): 4}, {(0, 1): None}, {(20, 21): 3}):
        with pytest.raises(VerificationError, match="truss"):
            check_truss_numbers(A, altered(numbers, changes))
    for changes, check in (({(0, 1): 1}, "truss"), ({(20, 21): None}, "truss"), ({(20, 21): 7}, "values")):
        with pytest.raises(VerificationError, match=check):
            check_k_truss(A, 4, altered(truss, changes))


# -- colours


@every_graph
def test_coloring(devices, graph):
    A, G = simple(graph)
    for method in ("speculative", "jones-plassmann"):
        color = algos.greedy_color(A, method)
        assert color.dtype == "INT64"
        check_coloring(A, color)
        assert color.isequal(algos.greedy_color(A, method))
    degree = np.array([G.degree(v) for v in range(A.nrows)])
    order = gb.Vector.from_dense(degree * A.nrows - np.arange(A.nrows))  # as NetworkX sorts them
    assert as_dict(algos.greedy_color(A, "jones-plassmann", order=order)) == nx.greedy_color(G)


def test_more_colors_than_a_word_has(first):
    n = 65
    A = matrix((n, [(i, j) for i in range(n) for j in range(n)]))
    color = algos.greedy_color(A)
    assert sorted(as_dict(color).values()) == list(range(n))


def test_many_words_in_a_graph_that_stays(session, monkeypatch):
    monkeypatch.setattr(gb.settings, "interpret", False)  # hundreds of rounds
    session.start()
    n = 200
    A = matrix((n, [(i, j) for i in range(n) for j in range(n) if (i - j) % 7]))  # a colour for each class
    B = matrix((n, [(i, j) for i in range(n) for j in range(n) if i != j]))
    for method in ("speculative", "jones-plassmann"):
        color = algos.greedy_color(A, method)
        check_coloring(A, color)
        assert set(as_dict(color).values()) == set(range(7))
        assert sorted(as_dict(algos.greedy_color(B, method)).values()) == list(range(n))


def test_those_of_high_degree_are_colored_first(devices, monkeypatch):
    G = nx.barabasi_albert_graph(300, 4, 1)
    A = matrix((300, [arc for i, j in G.edges for arc in ((i, j), (j, i))]))
    monkeypatch.setattr(coloring, "SMALL", 10)
    monkeypatch.setattr(coloring, "SHORT", 1)
    monkeypatch.setattr(coloring, "LARGE", 80)
    monkeypatch.setattr(coloring, "has_hubs", lambda degree: True)  # so the first ones are a graph of their own
    right = algos.greedy_color(A, "jones-plassmann")
    assert algos.greedy_color(A).isequal(right)
    check_coloring(A, right)
    B = matrix((90, [(i, j) for i in range(90) for j in range(90) if i != j]))
    assert sorted(as_dict(algos.greedy_color(B)).values()) == list(range(90))
    order = gb.Vector.from_dense(np.random.default_rng(0).permutation(300) / 1000 - 0.1)
    color = algos.greedy_color(A, order=order)
    check_coloring(A, color)
    assert color.isequal(algos.greedy_color(A, "jones-plassmann", order=order))


def test_loops_count_for_nothing(devices):
    A, _ = undirected(ALL)
    colors = algos.greedy_color(A)
    assert colors.isequal(algos.greedy_color(gb.select.offdiag(A).new())) and A.diag().nvals


def test_bad_orders(first):
    A = simple(ALL)[0]
    with pytest.raises(InvalidValue, match="speculative"):
        algos.greedy_color(A, "greedy")
    with pytest.raises(DimensionMismatch, match="order"):
        algos.greedy_color(A, order=gb.Vector(int, 3))
    for order in (gb.Vector(int, A.nrows), gb.Vector.from_scalar(1, A.nrows)):
        with pytest.raises(InvalidValue, match="different"):
            algos.greedy_color(A, order=order)


def test_verify_finds_wrong_colors(first):
    A = simple(CLIQUES)[0]
    right = algos.greedy_color(A)
    of = as_dict(right)
    for changes, check in (({3: None}, "presence"), ({18: of[19]}, "edge"), ({0: 9}, "greedy")):
        with pytest.raises(VerificationError, match=check):
            check_coloring(A, changed(right, changes))


# -- labels


def most_frequent(G, labels, v, lowest):
    counts = {}
    for u in G[v]:
        counts[labels[u]] = counts.get(labels[u], 0) + 1
    return lowest(label for label, count in counts.items() if count == max(counts.values())) if counts else labels[v]


@every_graph
def test_label_propagation(devices, graph):
    A, G = simple(graph)
    labels = algos.label_propagation(A)
    check_labels(A, labels)
    found = labels.to_dense()
    assert labels.dtype == "INT64"
    mine = {frozenset(np.flatnonzero(found == label).tolist()) for label in found}
    assert mine == {frozenset(part) for part in nx.community.label_propagation_communities(G)}
    expected = {v: v for v in G}
    for _ in range(3):
        expected = {v: most_frequent(G, expected, v, min) for v in G}
    assert as_dict(algos.label_propagation(A, True, 3)) == expected


def test_verify_finds_wrong_labels(first):
    A = simple(CLIQUES)[0]
    right = algos.label_propagation(A)
    for change, check in ((None, "presence"), (-1, "no vertex"), (0, "frequency")):
        with pytest.raises(VerificationError, match=check):
            check_labels(A, changed(right, {20: change}))


# -- similarity


@every_graph
def test_similarity_at_edges(devices, graph):
    A, G = simple(graph)
    arcs = [arc for i, j in G.edges for arc in ((i, j), (j, i))]
    found = algos.jaccard(A)
    check_jaccard(A, found)
    assert edges(found) == pytest.approx({(i, j): part for i, j, part in nx.jaccard_coefficient(G, arcs)})
    expected = {(i, j): len(set(G[i]) & set(G[j])) / min(G.degree(i), G.degree(j)) for i, j in arcs}
    found = algos.overlap(A)
    assert found.dtype == "FP64" and edges(found) == pytest.approx(expected)


def test_similarity_of_pairs(devices):
    A, G = simple(ALL)
    pairs = np.random.default_rng(2).integers(0, A.nrows, (40, 2))
    pairs = [*pairs[pairs[:, 0] != pairs[:, 1]].tolist(), *G.edges, [0, 1], [1, 0], [0, 1]]
    near(algos.common_neighbors(A, pairs), enumerate(len(list(nx.common_neighbors(G, i, j))) for i, j in pairs))
    for function, theirs in (
        (algos.adamic_adar, nx.adamic_adar_index),
        (algos.resource_allocation, nx.resource_allocation_index),
        (algos.jaccard_coefficient, nx.jaccard_coefficient),
        (algos.preferential_attachment, nx.preferential_attachment),
    ):
        near(function(A, np.array(pairs)), enumerate(value for _, _, value in theirs(G, pairs)))
        assert function(A, []).size == 0


@pytest.mark.parametrize(
    ("pairs", "error"), [([0, 1], InvalidValue), ([[0, 99]], IndexOutOfBound), ([[-1, 0]], IndexOutOfBound),
                         ([[0.5, 1]], TypeError)]
)
def test_bad_pairs(first, pairs, error):
    for algorithm in (algos.common_neighbors, algos.jaccard_coefficient, algos.preferential_attachment):
        with pytest.raises(error):
            algorithm(simple(ALL)[0], pairs)


def test_verify_finds_wrong_similarity(first):
    A = simple(CLIQUES)[0]
    right = algos.jaccard(A)
    for change, check in ((None, "presence"), (0.99, "jaccard")):
        with pytest.raises(VerificationError, match=check):
            check_jaccard(A, altered(right, {(20, 21): change}))


# -- factors


def ratings(n=30, m=20, empty=True):
    """Some of the products of two factors, and a user and an item without a rating."""
    random = np.random.default_rng(6)
    low = random.random((n, 2)) @ random.random((2, m)) * 5
    rows, cols = np.nonzero(random.random((n, m)) < 0.5)
    kept = (rows != 4) & (cols != 7)
    return gb.Matrix.from_coo(rows[kept], cols[kept], low[rows[kept], cols[kept]], nrows=n, ncols=m), low


@pytest.mark.parametrize("method", ["als", "gradient"])
def test_factors(devices, method):
    R, low = ratings()
    model = algos.collaborative_filtering(R, 2, method, 8, 0.001)
    check_model(R, model)
    assert model.users.shape == (30, 2) and model.items.shape == (20, 2) and len(model.rmse) == 9
    assert model.rmse == sorted(model.rmse, reverse=True)
    assert model.rmse[-1] < (0.05 if method == "als" else 0.8 * model.rmse[0])
    if method == "als":
        all_pairs = gb.Matrix.from_dense(np.ones((30, 20)))
        found = algos.predictions(model, all_pairs).to_dense(0.0)
        seen = np.delete(np.delete(np.abs(found - low), 4, 0), 7, 1)
        assert seen.max() < 0.5  # also where no rating was given


def test_a_least_squares_step_by_numpy(first):
    from algos.factors import full, least_squares

    R = ratings()[0]
    given, items = R.to_dense(np.nan), np.random.default_rng(1).random((20, 3))
    users = full(np.ones((30, 3)))
    least_squares(R, users, full(items), 0.1)
    for user, found in enumerate(users.to_dense(0.0)):
        rated = np.flatnonzero(~np.isnan(given[user]))
        V = np.vstack([items[rated], np.sqrt(0.1 * len(rated)) * np.eye(3)])
        expected = np.linalg.lstsq(V, [*given[user, rated], 0, 0, 0])[0] if len(rated) else np.ones(3)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1, 1e-8])
def test_least_squares_lie_with_their_rows(devices, scale):
    """Every device solves for its own rows, to NumPy's results, also where ratings alone determine nothing."""
    from algos.factors import full, least_squares

    random, f = np.random.default_rng(3), 5
    R = gb.Matrix.from_coo(*np.nonzero(random.random((200, 40)) < 0.05), scale, nrows=200, ncols=40).dup(float)
    u, v = random.random((200, f)), scale * random.random((40, f))
    users = full(u)
    least_squares(R, users, full(v), 0.01 * scale**2)
    given = R.to_dense(0.0)
    expected = [
        np.linalg.solve(v[rated].T @ v[rated] + 0.01 * scale**2 * len(rated) * np.eye(f), v[rated].T @ row[rated])
        if len(rated) else begin
        for row, begin, rated in zip(given, u, map(np.flatnonzero, given), strict=True)
    ]  # fmt: skip
    assert (given == 0).all(axis=1).any() and (np.count_nonzero(given, axis=1) == 1).any()
    assert np.allclose(users.to_dense(0.0), expected, rtol=1e-9, atol=1e-9)


def test_factors_that_nothing_determines_are_refused(devices):
    R = gb.Matrix.from_coo([0, 0, 1], [0, 1, 1], [1e200, 1e200, 1e200], nrows=3, ncols=2)
    with pytest.raises(InvalidValue, match="larger penalty"):
        algos.collaborative_filtering(R, 3, penalty=1e-300)


def test_a_gradient_step_by_numpy(first):
    from algos.factors import descent, full

    R, random = ratings()[0], np.random.default_rng(1)
    given, u, v = R.to_dense(np.nan), random.random((30, 3)), random.random((20, 3))
    users = full(u)
    descent(R, users, full(v), 0.1)
    for user, found in enumerate(users.to_dense(0.0)):
        rated = np.flatnonzero(~np.isnan(given[user]))
        gradient = (given[user, rated] - v[rated] @ u[user]) @ v[rated] - 0.1 * len(rated) * u[user]
        bound = (v[rated] ** 2).sum() + 0.1 * len(rated)
        assert found == pytest.approx(u[user] + gradient / bound if len(rated) else u[user])


@pytest.mark.parametrize("size", [(0, 0), (3, 0), (3, 2)])
def test_factors_without_ratings(first, size):
    for method in ("als", "gradient"):
        model = algos.collaborative_filtering(gb.Matrix(float, *size), 2, method, 2)
        assert model.rmse == [0.0, 0.0, 0.0] and model.users.shape == (size[0], 2)


def test_factors_refuse_bad_parameters(first):
    R = ratings()[0]
    for keywords in ({"factors": 0}, {"iterations": 0}, {"penalty": 0}, {"penalty": np.nan}, {"method": "sgd"}):
        with pytest.raises(InvalidValue, match=next(iter(keywords))):
            algos.collaborative_filtering(R, **keywords)
    huge = gb.Matrix.from_coo([0, 1], [0, 0], [1e100, 1e100])
    with pytest.raises(InvalidValue, match="singular"):
        algos.collaborative_filtering(huge, 3)
    with pytest.raises(InvalidValue, match="finite"):
        algos.collaborative_filtering(gb.Matrix.from_coo([0], [0], [np.nan]))
    with pytest.raises(TypeError, match="Matrix"):
        algos.collaborative_filtering(np.eye(3))


def test_verify_finds_wrong_models(first):
    R = ratings()[0]
    model = algos.collaborative_filtering(R, 2, iterations=2)
    for wrong in (model._replace(users=model.items), model._replace(rmse=[0.0, *model.rmse[1:]])):
        with pytest.raises((VerificationError, IndexError), match="error|out of bounds"):
            check_model(R, wrong)


# -- all

UNDIRECTED = [lambda A: algos.k_truss(A, 3), algos.truss_numbers, algos.greedy_color, algos.label_propagation,
              algos.jaccard, algos.overlap, lambda A: algos.adamic_adar(A, [])]  # fmt: skip


@pytest.mark.parametrize("algorithm", UNDIRECTED)
def test_bad_matrices(first, algorithm):
    algorithm(gb.Matrix(int, 0, 0))
    with pytest.raises(DimensionMismatch, match="2 x 3"):
        algorithm(gb.Matrix(int, 2, 3))
    with pytest.raises(TypeError, match="Matrix"):
        algorithm(np.eye(3))
    with pytest.raises(InvalidValue, match="reverse"):
        algorithm(matrix((3, [(0, 1), (1, 0), (1, 2)])))
