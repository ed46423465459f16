"""The NetworkX backend beside NetworkX: functions as weights, and what iterations are told of rounds and tolerances."""

from __future__ import annotations

import inspect
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import settings
from networkx.utils.backends import _registered_algorithms
from nx_backend import register
from test_nx import outcome, public, same

from algos._lanczos import top_eigenvector
from algos._nx_offers import OFFERS


@pytest.fixture(scope="module", autouse=True)
def registered():
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch)
        yield


# -- functions where an attribute's name may be


def twice(u, v, data):
    return 2 * data.get("weight", 1)


WEIGHTS = {
    name: parameter
    for name in OFFERS
    for parameter in ("weight", "distance")
    if parameter in inspect.signature(_registered_algorithms[name].orig_func).parameters
}


@pytest.mark.parametrize(("kind", "made_by"), [(nx.Graph, "networkx"), (nx.DiGraph, "gbgpu")])
def test_functions_as_weights_are_called_where_networkx_calls_them(kind, made_by):
    """Elsewhere they name an attribute: one edge has it."""
    G = nx.cycle_graph(5, kind, backend=made_by)
    G.add_edges_from([(0, 1, {"weight": 5}), (1, 2, {"weight": 3, twice: 7}), (1, 4, {"weight": 2})])
    told, compared = [], 0
    for name, parameter in WEIGHTS.items():
        needed = inspect.signature(public(name)).parameters.values()
        given = {p.name: {"source": 0, "target": 3, "sources": [0]}[p.name] for p in needed
                 if p.default is p.empty and p.name in ("source", "target", "sources")}
        try:
            mine = outcome(public(name), G, **given, **{parameter: twice}, backend="gbgpu")
        except NotImplementedError:
            told.append(name)
            continue
        plain = kind(G)
        theirs = outcome(public(name), plain, **given, **{parameter: twice}, backend="networkx")
        assert same(mine, theirs), f"{name}: {mine} is not NetworkX's {theirs}"
        compared += 1
    assert compared > 30, told


def test_an_empty_name_is_no_weight_where_networkx_has_it():
    G = nx.Graph([(0, 1, {"": 5}), (1, 2), (2, 0)])
    for name in ("eigenvector_centrality", "katz_centrality", "pagerank"):
        theirs, mine = (public(name)(G, weight="", backend=to) for to in ("networkx", "gbgpu"))
        assert mine == pytest.approx(theirs)


# -- iterations


def weighted(G):
    rng = random.Random(4)
    for _, _, data in G.edges(data=True):
        data["weight"] = rng.uniform(0.1, 2)
    return G


FAMILIES = {
    "lattice": lambda: nx.convert_node_labels_to_integers(nx.triangular_lattice_graph(5, 9)),
    "grid": lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5)),
    "small world": lambda: nx.connected_watts_strogatz_graph(40, 6, 0.02, seed=1),
    "star": lambda: nx.star_graph(6),
    "path": lambda: nx.path_graph(7),
    "three": lambda: nx.complete_graph(3),
    "three arcs": lambda: nx.DiGraph([(0, 1), (1, 2), (0, 2)]),
    "regular": lambda: nx.cycle_graph(9),
    "bipartite": lambda: nx.complete_bipartite_graph(3, 5),
    "disconnected": lambda: nx.disjoint_union(nx.complete_graph(4), nx.cycle_graph(5)),
    "weights": lambda: weighted(nx.barbell_graph(5, 3)),
    "arcs with weights": lambda: weighted(nx.gnp_random_graph(40, 0.15, seed=3, directed=True)),
    "no rounds": lambda: nx.DiGraph([(0, 1), (1, 2), (2, 3)]),
}
LONG = ("lattice", "star", "three", "three arcs", "regular", "bipartite", "disconnected", "weights")  # for the long run
TWO = ("grid", "star", "path", "bipartite", "no rounds")  # pairs of hubs and authorities are right
ENDS = [{}, {"tol": 1e-3}, {"tol": 0.2}, {"max_iter": 1}, {"max_iter": 0}, {"max_iter": -1}, {"tol": 0}, {"tol": -1}]
ASKED = {
    "eigenvector_centrality": [*ENDS, {"weight": "weight", "max_iter": 1000}],
    "katz_centrality": [*ENDS, {"weight": "weight", "alpha": 0.02}, {"beta": 2, "normalized": False}],
    "pagerank": [
        *ENDS,
        {"weight": None, "alpha": 0.99, "tol": 1e-12, "max_iter": 3000},
        {"personalization": {0: 1, 1: 3}},
        {"personalization": {1: 3}, "dangling": {0: 2}},
        {"nstart": {0: 1, 2: 5}, "dangling": {1: 1}},
        {"personalization": {}},
    ],
}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("family", FAMILIES)
def test_iterations_end_where_networkx_ends_them(family, name):
    if family in LONG and settings.get_current_profile_name() == "ci":
        return
    G = FAMILIES[family]()
    for keywords in ASKED[name]:
        theirs, mine = (outcome(public(name), G, **keywords, backend=to) for to in ("networkx", "gbgpu"))
        if isinstance(theirs, type):
            assert mine is theirs, keywords
        else:
            assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12), keywords


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - set(TWO)))
def test_hubs_and_authorities_are_those_of_networkx(family):
    G = FAMILIES[family]()
    theirs, mine = (nx.hits(G, backend=to) for to in ("networkx", "gbgpu"))
    for values, expected in zip(mine, theirs, strict=True):
        assert values == pytest.approx(expected, rel=1e-7, abs=1e-8)
    for keywords, error in (({"max_iter": 0}, nx.PowerIterationFailedConvergence), ({"tol": -1}, ValueError)):
        for to in ("networkx", "gbgpu"):
            with pytest.raises(error):
                nx.hits(G, **keywords, backend=to)


@pytest.mark.parametrize("family", TWO)
def test_of_several_hubs_and_authorities_equal_hubs_lead_to_one(family):
    G = FAMILIES[family]()
    A = nx.to_numpy_array(G)
    values, vectors = np.linalg.eigh(A.T @ A)
    top = vectors[:, values > values[-1] - 1e-9]
    assert top.shape[1] > 1
    authorities = top @ top.T @ A.T @ np.ones(len(G))
    hubs = A @ authorities
    for values, expected in zip(nx.hits(G, backend="gbgpu"), (hubs, authorities), strict=True):
        assert list(values.values()) == pytest.approx(expected / expected.sum(), abs=1e-9)


def test_a_few_bases_find_what_takes_thousands_of_rounds():
    """Eigenvalues as close as those of a long path; the operator is asked ten times a basis."""
    n, asked = 120, []
    exact = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    B = np.eye(n, k=1) + np.eye(n, k=-1) + 2 * np.eye(n)

    def product(v):
        asked.append(1)
        return B @ v

    found = top_eigenvector(product, np.ones(n), 1e-16, 100)
    assert found == pytest.approx(exact / np.linalg.norm(exact), abs=1e-9) and len(asked) < 1000
    assert top_eigenvector(product, np.ones(n), 1e-16, 2) is None
