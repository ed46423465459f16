"""The NetworkX backend against NetworkX: every function, through NetworkX's dispatch."""

from __future__ import annotations

import inspect
import json
import math
import pickle
import random
import re
import subprocess
from collections.abc import Iterator, Mapping, Set, ValuesView

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx.utils.backends import _registered_algorithms
from nx_backend import ROOT, SUITE, environment, register, suite

import gbgpu as gb
from _gbgpu_nx import FUNCTIONS, GROUPS
from algos import nx as backend
from algos._nx_graph import Arrays, DiGraph, Graph, from_networkx, to_networkx
from algos._nx_offers import OFFERS


@pytest.fixture(scope="module", autouse=True)
def registered():
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        yield


def weighted(G, seed=0):
    """The same with weights that are all different, so that shortest paths are one."""
    weights = random.Random(seed).sample(range(1, 10**6), G.number_of_edges())
    for (_, _, data), weight in zip(G.edges(data=True), weights, strict=True):
        data["weight"] = weight
    return G


def named(G):
    """Labels of several kinds, in an order that is not theirs."""
    labels = ["b", "a", (0, 1), 3.5, -1, frozenset({2}), "c", "d", 7, "e", "f", "g"]
    return nx.relabel_nodes(G, dict(zip(range(12), labels, strict=True)))


CASES = {
    "undirected": lambda: weighted(named(nx.gnm_random_graph(8, 11, seed=3))),
    "connected": lambda: weighted(nx.compose(nx.cycle_graph(5), nx.gnm_random_graph(6, 7, seed=1))),
    "tree": lambda: weighted(nx.random_labeled_tree(6, seed=2)),
    "directed": lambda: weighted(named(nx.gnm_random_graph(8, 16, seed=4, directed=True))),
    "strong": lambda: weighted(nx.compose(nx.cycle_graph(5, nx.DiGraph), nx.gnm_random_graph(5, 6, 5, directed=True))),
    "acyclic": lambda: weighted(nx.DiGraph((u, v) for u, v in nx.gnm_random_graph(6, 9, seed=6).edges)),
    "loops": lambda: nx.Graph([(0, 1), (1, 1), (1, 2), (3, 3)]),
    "directed loops": lambda: nx.DiGraph([(0, 1), (1, 0), (1, 1), (1, 2), (3, 3)]),
    "parallel": lambda: nx.MultiGraph([(0, 1, {"weight": 3}), (0, 1, {"weight": 2}), (1, 2), (2, 2), (3, 4)]),
    "parallel arcs": lambda: nx.MultiDiGraph([(0, 1), (0, 1), (1, 2), (2, 0), (2, 2), (3, 4)]),
    "no node": nx.Graph,
    "no arc": lambda: nx.empty_graph(3, nx.DiGraph),
    "one node": lambda: nx.empty_graph(["only"]),
}
GIVEN = {  # by a parameter's name, where it has no default
    "source": lambda G: next(iter(G), 0),
    "sources": lambda G: list(G)[:2],
    "target": lambda G: list(G)[-1] if len(G) else 0,
    "n": lambda G: next(iter(G), 0),
    "distance": lambda G: 1,
    "k": lambda G: 3,
}
ALGORITHMS = sorted(name for group, names in GROUPS.items() if "generators" not in group
                    for name in names.split() if name not in ("from_scipy_sparse_array", "maximal_independent_set"))
LONG = ("tree", "strong", "acyclic", "directed loops", "parallel arcs", "no arc")  # left to the long run


def public(name):
    return getattr(nx, name, None) or getattr(nx.community, name)


def plain(found):
    """What can be compared."""
    if isinstance(found, nx.Graph):
        return found.is_directed(), dict(found.nodes(data=True)), {u: dict(row) for u, row in found.adj.items()}
    if isinstance(found, Mapping):
        return {key: plain(value) for key, value in found.items()}
    if hasattr(found, "toarray"):
        return plain(found.toarray().tolist())
    if isinstance(found, np.ndarray):
        return plain(found.tolist())
    if isinstance(found, Iterator | ValuesView | list | tuple):
        listed = [plain(part) for part in found]
        sets = listed and all(isinstance(part, Set) for part in listed)
        return {frozenset(part) for part in listed} if sets else listed
    assert not isinstance(found, np.generic), f"a NumPy scalar: {found!r}"
    return found


def same(mine, theirs) -> bool:
    if isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list | tuple):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(theirs, float) or isinstance(mine, float):
        return math.isclose(mine, theirs, rel_tol=1e-5, abs_tol=1e-5) or mine != mine and theirs != theirs
    return mine == theirs


def outcome(function, *arguments, **keywords):
    try:
        return plain(function(*arguments, **keywords))
    except (nx.NetworkXException, ZeroDivisionError, ValueError, KeyError) as error:
        return type(error)


def arguments_of(name, G):
    needed = [p for p in inspect.signature(public(name)).parameters.values() if p.default is p.empty]
    return [GIVEN[p.name](G) for p in needed if p.name in GIVEN]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_functions_give_what_networkx_gives(name):
    compared = 0
    for case, make in CASES.items():
        if case in LONG and settings.get_current_profile_name() == "ci":
            continue
        if name == "hits" and case not in ("connected", "strong"):  # one of several results, or none
            continue
        G = make()
        arguments = arguments_of(name, G)
        theirs = outcome(public(name), G, *arguments, backend="networkx")
        try:
            mine = outcome(public(name), G, *arguments, backend="gbgpu")
        except NotImplementedError:
            continue
        compared += isinstance(theirs, type) is False
        if name == "bidirectional_shortest_path" and isinstance(theirs, list):  # one of several
            assert mine[0] == theirs[0] and mine[-1] == theirs[-1] and nx.is_path(G, mine)
            mine, theirs = len(mine), len(theirs)
        assert same(mine, theirs), f"{case}: {mine} is not NetworkX's {theirs}"
        if name in ("pagerank", "degree_centrality", "clustering", "core_number") and isinstance(theirs, dict):
            assert list(mine) == list(theirs)
    assert compared, "left to NetworkX"


GENERATED = {  # arguments of generators; those that are not here have none
    "balanced_tree": [(2, 3), (1, 4), (3, 0)],
    "barbell_graph": [(2, 0), (3, 1), (4, 3)],
    "circular_ladder_graph": [(1,), (2,), (5,)],
    "complete_bipartite_graph": [(2, 3)],
    "complete_graph": [(0,), (1,), (5,), ("abc",), (4, nx.DiGraph)],
    "complete_multipartite_graph": [(1, 2, 3)],
    "cycle_graph": [(0,), (1,), (2,), (5,), ("abc",), (4, nx.DiGraph)],
    "empty_graph": [(0,), (3,), ("ab",), (2, nx.DiGraph)],
    "full_rary_tree": [(2, 0), (2, 1), (3, 8), (2, 5, nx.DiGraph)],
    "grid_2d_graph": [(0, 0), (3, 2), (3, 3, True), (4, 3, (False, True)), (2, 3, False, nx.DiGraph), ([1, 2], "ab")],
    "ladder_graph": [(0,), (1,), (4,)],
    "lollipop_graph": [(2, 0), (3, 1), (4, 3)],
    "path_graph": [(0,), (1,), (4,), ("abc",), (4, nx.DiGraph)],
    "star_graph": [(0,), (3,), ("abc",), (3, nx.DiGraph)],
    "tadpole_graph": [(2, 0), (3, 1), (4, 3)],
    "turan_graph": [(7, 3)],
    "wheel_graph": [(0,), (1,), (2,), (3,), (6,)],
}
GENERATORS = [name for group, names in GROUPS.items() if "generators" in group for name in names.split()
              if not name.endswith(("gnp_random_graph", "gnm_random_graph"))]


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_make_the_graphs_of_networkx(name):
    for arguments in GENERATED.get(name, [()]):
        G, theirs = public(name)(*arguments, backend="gbgpu"), public(name)(*arguments)
        assert isinstance(G, Graph | DiGraph) and type(theirs) in (nx.Graph, nx.DiGraph)
        assert len(G) == len(theirs) and G.number_of_edges() == theirs.number_of_edges()
        assert G._arrays.labels(G._arrays.heads) == [head for row in theirs.adj.values() for head in row]
        assert plain(G) == plain(theirs) and list(G) == list(theirs)


@pytest.mark.parametrize("directed", [False, True])
def test_random_graphs_have_as_many_edges_as_they_should(directed):
    """A loop, an edge twice, or a pair that is never drawn would show in the counts of many small graphs."""
    n, pairs = 6, 30 if directed else 15
    seen, total = set(), 0
    for _ in range(60):
        G = nx.gnm_random_graph(n, 7, directed=directed, backend="gbgpu")
        assert G.number_of_edges() == 7 and not any(u == v for u, v in G.edges)
        P = nx.gnp_random_graph(n, 0.4, directed=directed, backend="gbgpu")
        seen |= set(P.edges)
        total += P.number_of_edges()
    assert len(seen) == pairs and all(u != v for u, v in seen)
    assert abs(total - 60 * 0.4 * pairs) < 6 * (60 * pairs * 0.4 * 0.6) ** 0.5
    with pytest.raises(NotImplementedError):
        nx.gnp_random_graph(n, 0.4, seed=1, backend="gbgpu")


def test_an_independent_set_is_maximal():
    G = nx.gnm_random_graph(40, 80, seed=1)
    found = nx.maximal_independent_set(G, backend="gbgpu")
    assert not G.subgraph(found).edges and nx.is_dominating_set(G, found)
    for edges, wanted in (([(0, 0), (0, 1)], [1]), ([(0, 1), (1, 1), (1, 2), (3, 3)], [0, 2])):
        for _ in range(8):  # who has a loop is its own neighbour
            assert nx.maximal_independent_set(nx.Graph(edges), backend="gbgpu") == wanted
    for graph, error in ((nx.Graph(), IndexError), (nx.Graph([(0, 0), (0, 1), (1, 1)]), nx.NetworkXUnfeasible)):
        for backend_ in ("networkx", "gbgpu"):
            with pytest.raises(error):
                nx.maximal_independent_set(graph, backend=backend_)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14), st.booleans())
@settings(max_examples=40)
def test_arrays_and_dictionaries_are_the_same_graph(edges, directed):
    theirs = nx.empty_graph(7, nx.DiGraph if directed else nx.Graph)
    theirs.add_edges_from(edges)
    G = (DiGraph if directed else Graph).of_arrays(
        Arrays.of_edges(range(7), [u for u, _ in edges], [v for _, v in edges], directed)
    )
    assert len(G) == 7 and G.number_of_edges() == theirs.number_of_edges()
    read = from_networkx(theirs)
    for mine, other in ((G._arrays, read._arrays), (G._backwards, read._backwards)):
        assert mine.offsets.tolist() == other.offsets.tolist()
        rows = [np.sort(arrays.heads * 7 + arrays.tails).tolist() for arrays in (mine, other)]
        assert rows[0] == rows[1]
    assert G._arrays.heads.tolist() == read._arrays.heads.tolist()
    assert plain(G) == plain(theirs) and plain(to_networkx(G)) == plain(theirs)
    assert all(G._adj[u][v] is G._adj[v][u] for u, v in G.edges if not directed)
    assert plain(pickle.loads(pickle.dumps(G))) == plain(theirs)


def test_a_graph_that_changes_is_read_again():
    G = nx.path_graph(5, backend="gbgpu")
    assert nx.number_connected_components(G) == 1
    G.remove_edge(1, 2)
    G.add_edge("a", "b", weight=3)
    assert nx.number_connected_components(G) == 3
    assert nx.dijkstra_path_length(G, "a", "b") == 3
    assert type(G.copy()) is Graph and type(G.to_directed()) is DiGraph


def test_results_outlive_a_session():
    G = nx.cycle_graph(6, backend="gbgpu")
    assert nx.is_connected(G)
    gb.init("cpu:2")
    assert nx.is_connected(G) and nx.eccentricity(G, 0) == 3


def test_conversions_are_kept_and_shared():
    G = weighted(nx.cycle_graph(6))
    nx.pagerank(G, backend="gbgpu")
    nx.is_connected(G, backend="gbgpu")
    [converted] = G.__networkx_cache__["backends"]["gbgpu"].values()
    arrays = converted._arrays
    nx.minimum_spanning_tree(G, backend="gbgpu")  # wants all attributes
    assert {id(graph._arrays) for graph in G.__networkx_cache__["backends"]["gbgpu"].values()} == {id(arrays)}
    G.add_edge(0, 3)
    assert not G.__networkx_cache__
    assert nx.shortest_path_length(G, 0, 3, backend="gbgpu") == 1


def test_weights_are_attributes_or_what_a_function_says():
    G = nx.Graph([(0, 1, {"cost": 5}), (1, 2, {"cost": 1}), (0, 2)])

    def half(u, v, data):
        return None if (u, v) == (0, 2) else data.get("cost", 2) / 2

    for weight in ("cost", "weight", half, None):
        theirs = nx.single_source_dijkstra_path_length(G, 0, weight=weight or (lambda *_: 1))
        assert nx.shortest_path_length(G, 0, weight=weight, backend="gbgpu") == theirs
    assert nx.shortest_path_length(nx.path_graph(4, backend="gbgpu"), 0, 3, weight=lambda u, v, d: 2) == 6
    G[0][1]["cost"] = "five"
    G.__networkx_cache__.clear()
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(G, 0, 2, weight="cost", backend="gbgpu")


@pytest.mark.parametrize("values", [np.array([1.5, 2.5, 4.0]), np.array([3, 4, 5])])
@pytest.mark.parametrize("kind", [None, nx.DiGraph])
def test_sparse_arrays_come_and_go(values, kind):
    from scipy.sparse import coo_array

    A = coo_array((values, ([0, 1, 3], [1, 0, 3])), shape=(5, 5))
    G = nx.from_scipy_sparse_array(A, create_using=kind, backend="gbgpu")
    theirs = nx.from_scipy_sparse_array(A, create_using=kind)
    assert plain(nx.to_scipy_sparse_array(G)) == plain(nx.to_scipy_sparse_array(theirs))
    assert plain(G) == plain(theirs)


def test_what_sparse_arrays_are_done_to_changes_no_graph():
    """Nodes and edges whose order is not ascending, so that columns have to be sorted."""
    G = nx.Graph()
    G.add_nodes_from([2, 0, 1])
    G.add_weighted_edges_from([(2, 1, 7), (2, 0, 1)])
    ours = nx.path_graph(3, backend="gbgpu")
    for graph, how in ((G, {"backend": "gbgpu"}), (ours, {})):
        before = [nx.adjacency_matrix(graph, **how).toarray().tolist()]
        before += [list(nx.bfs_tree(graph, 2, **how)), nx.single_source_dijkstra_path_length(graph, 2, **how)]
        A = nx.adjacency_matrix(graph, **how)
        A.data[:], A.indices[:], A.indptr[:] = 50, 0, 0
        after = [nx.adjacency_matrix(graph, **how).toarray().tolist()]
        after += [list(nx.bfs_tree(graph, 2, **how)), nx.single_source_dijkstra_path_length(graph, 2, **how)]
        assert before == after
        if graph is G:
            assert before[1:] == [list(nx.bfs_tree(G, 2)), nx.single_source_dijkstra_path_length(G, 2)]
    assert list(ours.edges) == [(0, 1), (1, 2)]
    alone = nx.empty_graph(2)
    assert nx.adjacency_matrix(alone, backend="gbgpu").dtype == nx.adjacency_matrix(alone).dtype


# -- what it is asked for


def test_it_says_why_not():
    can, multi = backend.backend.can_run, nx.MultiGraph([(0, 1)])
    assert can("pagerank", (nx.path_graph(3),), {}) is True
    for name, arguments, keywords, reason in [
        ("pagerank", (multi,), {}, "multigraphs"),
        ("betweenness_centrality", (nx.path_graph(3),), {"weight": "weight"}, "weight"),
        ("bfs_edges", (nx.path_graph(3), 0), {"sort_neighbors": sorted}, "sort_neighbors"),
        ("minimum_spanning_tree", (nx.path_graph(3), "weight", "prim"), {}, "Kruskal"),
        ("clustering", (nx.DiGraph(),), {}, "directed"),
        ("is_connected", ([(0, 1)],), {}, "list"),
        ("is_connected", (), {"H": 1}, "G"),
        ("path_graph", (3, nx.MultiGraph), {}, "classes"),
    ]:
        found = can(name, arguments, keywords)
        assert isinstance(found, str) and reason in found, found


def test_the_table_has_what_there_is():
    assert FUNCTIONS.keys() == OFFERS.keys()
    page = (ROOT / "docs/networkx.md").read_text()
    assert FUNCTIONS.keys() <= set(re.findall(r"\w+", page))


@pytest.mark.parametrize("name", sorted(OFFERS))
def test_signatures_are_those_of_networkx(name):
    def parameters(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    mine, theirs = parameters(OFFERS[name].run), parameters(_registered_algorithms[name].orig_func)
    assert mine == theirs


# -- as it is installed

SHORT = ["networkx.algorithms.traversal.tests.test_bfs", "networkx.algorithms.components.tests.test_connected"]


@pytest.mark.few(0)
def test_networkx_passes_its_own_tests_on_it(tmp_path):
    """A few of them: tests/suites has them all. Nothing that ran elsewhere counts."""
    ran = tmp_path / "ran.json"
    env = environment(tmp_path, **SUITE, GBGPU_NX_RAN=str(ran))
    done = subprocess.run(suite(tmp_path, *SHORT), env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = json.loads(ran.read_text())
    assert {"bfs_edges", "bfs_layers", "connected_components", "is_connected"} <= counted.keys()


def attributes_set_in_place(G):
    G[0][1]["weight"] = 7
    for _, _, data in G.edges(data=True):
        data["length"] = 3


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("make", ["path_graph", "krackhardt_kite_graph"])
def test_weights_set_in_place_in_a_graph_of_the_backend_count(kind, make):
    if make != "path_graph" and kind is nx.DiGraph:
        kind = lambda G: G.to_directed()  # noqa: E731
        plain, ours = (kind(getattr(nx, make)(**to)) for to in ({}, {"backend": "gbgpu"}))
    else:
        plain, ours = (getattr(nx, make)(*[4] * (make == "path_graph"), create_using=kind, **to)
                       for to in ({}, {"backend": "gbgpu"}))
    for again in range(2):  # nobody warns of what is kept
        for name in ("weight", "length"):
            wanted = nx.single_source_dijkstra_path_length(plain, 0, weight=name)
            assert nx.single_source_dijkstra_path_length(ours, 0, weight=name) == wanted, (again, name)
        assert nx.adjacency_matrix(ours).toarray().tolist() == nx.adjacency_matrix(plain).toarray().tolist()
        if ours.is_directed():
            assert sorted(nx.ancestors(ours, 1)) == sorted(nx.ancestors(plain, 1))
        attributes_set_in_place(plain)
        attributes_set_in_place(ours)


def test_weights_of_zero_lead_nowhere():
    for value in (0, False, 0.0):
        G = nx.DiGraph([(0, 1, {"weight": value}), (1, 2, {"weight": value})])
        assert nx.pagerank(G, backend="gbgpu") == pytest.approx(nx.pagerank(G))


def test_a_reversed_graph_keeps_what_it_knows():
    P = nx.path_graph(3, create_using=nx.DiGraph, backend="gbgpu")
    assert nx.reverse(P).graph == {} and list(nx.reverse(P).edges) == [(1, 0), (2, 1)]
    P.nodes[0]["colour"], P.graph["name"] = ["red"], "path"
    R = nx.reverse(P)
    assert R.nodes[0] == {"colour": ["red"]} and R.graph == {"name": "path"}
    assert R.nodes[0]["colour"] is not P.nodes[0]["colour"]


def test_views_change_with_their_graph():
    G = nx.path_graph(4)
    part = G.subgraph([0, 1, 2])
    assert nx.number_connected_components(part, backend="gbgpu") == 1
    G.remove_edge(0, 1)
    assert nx.number_connected_components(part, backend="gbgpu") == 2
    D = nx.path_graph(4, create_using=nx.DiGraph)
    back = D.reverse(copy=False)
    assert nx.descendants(back, 3, backend="gbgpu") == {0, 1, 2}
    D.remove_edge(0, 1)
    assert nx.descendants(back, 3, backend="gbgpu") == {1, 2}


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "dok", "lil"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_the_last_of_several_entries_is_an_edges(form, kind):
    from scipy.sparse import coo_array

    rng = np.random.default_rng(3)
    A = coo_array((rng.integers(1, 9, 40), tuple(rng.integers(0, 8, (2, 40)))), shape=(8, 8))
    A = A if form == "coo" else A.asformat(form)
    found, wanted = (nx.from_scipy_sparse_array(A, create_using=kind, **to) for to in ({"backend": "gbgpu"}, {}))
    assert [list(found.adj[u].items()) for u in found] == [list(wanted.adj[u].items()) for u in wanted]


@pytest.mark.parametrize("value", [np.float32(2), np.int32(2), np.uint8(2), True, 2**63, np.uint64(2**64 - 1)])
def test_matrices_have_the_types_of_weights(value):
    G = nx.Graph([(0, 1, {"weight": value}), (1, 2, {"weight": value})])
    found, wanted = nx.adjacency_matrix(G, backend="gbgpu"), nx.adjacency_matrix(G)
    assert found.dtype == wanted.dtype and (found.toarray() == wanted.toarray()).all()
    with pytest.raises(OverflowError):
        nx.adjacency_matrix(nx.Graph([(0, 1, {"weight": np.inf})]), dtype=int, backend="gbgpu")
    with pytest.raises(OverflowError):
        nx.adjacency_matrix(nx.Graph([(0, 1, {"weight": 2**63}), (1, 2)]), dtype=int, backend="gbgpu")


def test_none_hides_an_edge_and_nan_is_left_to_networkx():
    G = nx.Graph([(0, 1, {"weight": 2}), (1, 2, {"weight": None}), (2, 3, {})])
    found = nx.single_source_dijkstra_path_length(G, 0, backend="gbgpu")
    assert found == nx.single_source_dijkstra_path_length(G, 0) and all(type(x) is int for x in found.values())
    G[1][2]["weight"] = float("nan")
    G.__networkx_cache__.clear()
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(G, 0, 1, backend="gbgpu")
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(nx.Graph([(0, 1, {"weight": np.uint64(2**64 - 1)})]), 0, 1, backend="gbgpu")


@pytest.mark.parametrize("limit", [None, 0, -1, 0.5, 1, 1.5, 2, 9, math.inf])
def test_depths_that_are_no_whole_numbers(limit):
    G = nx.path_graph(5, create_using=nx.DiGraph)
    assert list(nx.bfs_edges(G, 0, depth_limit=limit, backend="gbgpu")) == list(nx.bfs_edges(G, 0, depth_limit=limit))
    assert nx.predecessor(G, 0, cutoff=limit, backend="gbgpu") == nx.predecessor(G, 0, cutoff=limit)


@pytest.mark.parametrize("distance", [np.int64(1), 1.0, True, 0, 1.5, 9, 10**30, -1, "1", None, math.nan, math.inf])
def test_distances_are_what_equals_a_whole_number(distance):
    G = nx.path_graph(4)
    wanted = nx.descendants_at_distance(G, 1, distance)
    assert nx.descendants_at_distance(G, 1, distance, backend="gbgpu") == wanted


PARALLEL = {
    "bool": ([True, True, False, True], [None, bool, int, np.uint8, float]),
    "uint8": ([np.uint8(200)] * 3 + [np.uint8(7)], [None, int, np.uint8, bool]),
    "real": ([1.5, 2.5, -1.0, 0.0], [None, int, float, np.float32]),
    "mixed": ([True, 2, 3.5, np.float32(4)], [None, int, bool]),
    "missing": ([3], [None, np.int8]),
}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("name", PARALLEL)
@pytest.mark.parametrize("loop", [False, True])
def test_matrices_sum_parallel_edges_in_the_type_of_all(kind, name, loop):
    weights, dtypes = PARALLEL[name]
    if loop and name == "uint8":
        return  # NetworkX negates the weights of loops
    G = kind()
    for (u, v), weight in zip([(2, 1), (2, 1), (1, 2), (0, 0) if loop else (0, 1)], weights, strict=False):
        G.add_edge(u, v, weight=weight)
    G.add_edge(0, 2) if name == "missing" else None
    for dtype in dtypes:
        if loop and np.dtype(dtype or int).kind == "u":
            continue
        found, wanted = (nx.to_scipy_sparse_array(G, dtype=dtype, backend=to) for to in ("gbgpu", "networkx"))
        assert found.dtype == wanted.dtype and found.toarray().tolist() == wanted.toarray().tolist(), dtype
    assert nx.adjacency_matrix(G, dtype=int, backend="gbgpu").dtype == int


@pytest.mark.parametrize("weight", [None, "3", (1, 2)])
def test_parallel_weights_that_are_no_numbers_are_left_to_networkx(weight):
    G = nx.MultiGraph([(0, 1, {"weight": weight}), (0, 1, {"weight": 2})])
    for name in ("adjacency_matrix", "hits"):
        with pytest.raises(NotImplementedError):
            public(name)(G, backend="gbgpu")
    if weight is not None:
        with pytest.raises(NotImplementedError):
            nx.dijkstra_path(G, 0, 1, backend="gbgpu")


def test_none_hides_one_of_parallel_edges():
    G = nx.MultiGraph([(0, 1, {"weight": None}), (0, 1, {"weight": 5}), (0, 1, {"weight": 7})])
    G.add_edges_from([(1, 2, {"weight": None}), (1, 2, {"weight": None}), (1, 3)])
    assert nx.single_source_dijkstra_path_length(G, 0, backend="gbgpu") == {0: 0, 1: 5, 3: 6}
    assert nx.bellman_ford_path(G, 3, 0, backend="gbgpu") == [3, 1, 0]


@pytest.mark.parametrize("node", [[1], None, "absent"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_errors_of_what_is_no_node_are_those_of_networkx(node, kind):
    G, compared = nx.path_graph(4, kind), 0
    for name in ALGORITHMS:
        parameters = inspect.signature(public(name)).parameters.values()
        usual = {p.name: GIVEN[p.name](G) for p in parameters if p.name in GIVEN and p.default is p.empty}
        for which in {"source", "target", "n", "sources"} & {p.name for p in parameters}:
            if name == "has_path" and node is None:  # NetworkX finds paths to all nodes
                continue
            given_, errors = usual | {which: node}, []
            for to in ("gbgpu", "networkx"):
                try:
                    plain(public(name)(G, **given_, backend=to))
                    errors.append(None)
                except Exception as error:
                    errors.append(type(error))
            if errors[0] is not NotImplementedError:
                assert errors[0] is errors[1], (name, which)
                compared += errors[0] is not None
    assert compared > 20 or node is None


def test_orders_are_those_of_networkx():
    G = nx.Graph()
    G.add_nodes_from([4, 3, 2, 1, 0], side="left")
    G.add_edges_from([(1, 0, {"weight": 3}), (2, 4), (0, 2), (2, 1), (1, 4)])
    G.graph["name"] = "few"
    for graph in (nx.path_graph(4), G, named(nx.gnm_random_graph(9, 14, seed=8)), nx.Graph([(0, 1), (1, 1), (1, 2)])):
        found, wanted = (nx.greedy_color(graph, backend=to) for to in ("gbgpu", "networkx"))
        assert list(found.items()) == list(wanted.items())
    for graph in (nx.Graph([(1, 0)]), G, nx.compose(nx.empty_graph(40), nx.complete_graph([30, 8, 2, 17]))):
        for k in (2, 3, 4, 5):
            found, wanted = (nx.k_truss(graph, k, backend=to) for to in ("gbgpu", "networkx"))
            assert list(found.nodes.items()) == list(wanted.nodes.items()) and found.graph == wanted.graph
            assert [list(found.adj[u].items()) for u in found] == [list(wanted.adj[u].items()) for u in wanted]
            assert not found.edges or found.edges[next(iter(found.edges))] is not graph.edges[next(iter(found.edges))]
