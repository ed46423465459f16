"""`algos.csgraph` against SciPy's: every function and option on drawn graphs of every kind of input. Where SciPy's
answer is the only one it must be equal, values, dtype and shape; trees of shortest paths must be valid ones."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import WIDE
from test_algos import GRAPHS, both_ways, matrix

import algos
import algos.csgraph as ours
import gbgpu as gb
from algos import _csgraph_inputs, _csgraph_paths, verify

TESTS = Path(theirs.__file__).parent / "tests"
WEIGHTS = {
    "natural": st.integers(0, 6),
    "negative": st.integers(-2, 9),
    "real": st.floats(0, 4),
    "special": st.sampled_from([0.0, 1.0, 2.5, np.inf, np.nan]),
}
DTYPES = {"natural": ("bool", "int8", "uint16", "int64", "float32", "float64"), "negative": ("int32", "float64")}


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """Nothing is left to SciPy, which is what all is compared with."""
    monkeypatch.setattr(_csgraph_inputs, "OWN", True)


@st.composite
def graphs(draw, weights="natural", inputs=("raw", "csc", "coo", "lil", "dense", "masked", "sparse", "Matrix")):
    """The graph as it is given to ours and to SciPy's. "raw" is CSR in any order, some entries twice."""
    n, kind = draw(st.integers(0, 8)), draw(st.sampled_from(inputs))
    vertex = st.integers(0, n - 1)
    twice = kind in ("raw", "csc", "coo")
    arcs = draw(st.lists(st.tuples(vertex, vertex), max_size=22, unique=not twice)) if n else []
    values = draw(st.lists(WEIGHTS[weights], min_size=len(arcs), max_size=len(arcs)))
    dtype = draw(st.sampled_from(DTYPES.get(weights, ("float64",))))
    rows, cols = np.array(arcs, int).reshape(-1, 2).T
    values = np.array(values, float).astype(dtype)
    make = draw(st.sampled_from([sp.csr_array, sp.csr_matrix]))
    if kind == "raw":
        order, offsets = np.argsort(rows, kind="stable"), np.r_[0, np.bincount(rows, minlength=n).cumsum()]
        graph = make((values[order], cols[order], offsets[: n + 1]), shape=(n, n))
        return graph, graph
    coo = sp.coo_array((values, (rows, cols)), shape=(n, n))
    if kind in ("csc", "coo", "lil"):
        graph = make(coo).asformat(kind)
        return graph, graph
    if kind in ("dense", "masked"):
        dense = coo.toarray()
        edges = np.zeros((n, n), bool)
        edges[rows, cols] = True
        graph = np.ma.masked_array(dense, ~edges)
        return (graph, graph) if kind == "masked" else (dense, dense)
    graph = sp.csr_array(coo)
    return (gb.sparse.csr_array(graph) if kind == "sparse" else gb.Matrix.from_scipy_sparse(graph)), graph


def outcome(function, *arguments, **keywords):
    """What a call gives, or the error it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = function(*arguments, **keywords)
        except Exception as error:
            return type(error)
    return found if isinstance(found, tuple) else (found,)


def same(name, given_, *arguments, **keywords):
    """Ours gives what SciPy's gives. Returns it."""
    mine = outcome(getattr(ours, name), given_[0], *arguments, **keywords)
    wanted = outcome(getattr(theirs, name), given_[1], *arguments, **keywords)
    if isinstance(wanted, type):
        assert mine is wanted
        return None
    assert not isinstance(mine, type), mine
    for a, b in zip(mine, wanted, strict=True):
        assert type(a) is type(b)
        if sp.issparse(b):
            assert a.format == b.format
            assert a.dtype == b.dtype
            a, b = a.toarray(), b.toarray()
        if isinstance(b, np.ndarray):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)
    return mine


def arcs_of(graph, directed, unweighted=False, summed=True):
    """{(i, j): the least weight} of a graph as SciPy reads it: casts sum what is there twice; floyd_warshall
    makes none."""
    if not sp.issparse(graph):
        graph = theirs.csgraph_from_masked(graph) if np.ma.isMaskedArray(graph) else theirs.csgraph_from_dense(graph)
    graph = (graph.T if graph.format == "csc" and not directed else graph).tocsr()
    graph = graph.astype(float) if summed else graph
    found = {}
    for i in range(graph.shape[0]):
        for k in range(graph.indptr[i], graph.indptr[i + 1]):
            j, w = int(graph.indices[k]), 1.0 if unweighted else float(graph.data[k])
            for arc in ((i, j),) if directed else ((i, j), (j, i)):
                found[arc] = min(w, found.get(arc, np.inf))
    return found


def check_trees(graph, sources, distances, predecessors, directed, unweighted=False, summed=True):
    """Each predecessor begins an arc that ends as early as it can, and leads back to the source."""
    arcs = arcs_of(graph, directed, unweighted, summed)
    assert predecessors.dtype == np.int32 and predecessors.shape == distances.shape
    for source, d, tree in zip(sources, distances, predecessors, strict=True):
        has = np.isfinite(d)
        has[source] = False
        assert (tree[~has] == -9999).all()
        for v in np.flatnonzero(has).tolist():
            assert d[tree[v]] + arcs[int(tree[v]), v] == d[v]
            steps = 0
            while v != source:
                v, steps = int(tree[v]), steps + 1
                assert steps <= len(d)


few = settings(max_examples=400 if WIDE else 10)
directions = st.booleans()


@few
@given(graph=st.one_of(graphs(), graphs("real"), graphs("special")), directed=directions, data=st.data())
def test_shortest_paths(devices, graph, directed, data):
    n = graph[1].shape[0]
    limit = data.draw(st.sampled_from([np.inf, 0, 1, 2.5, 4, 1e300, np.nan]))
    unweighted = data.draw(st.booleans())
    method = data.draw(st.sampled_from(["auto", "FW", "D", "BF", "J"]))
    if method not in ("FW", "auto"):  # sums of other orders
        same("shortest_path", graph, method, directed, False, unweighted)
    same("dijkstra", graph, directed, unweighted=unweighted, limit=limit)
    if n:
        some = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=3))
        asked = data.draw(st.sampled_from([some, some[0], [some, some[::-1]], np.array(some)]))
        same("dijkstra", graph, directed, asked, unweighted=unweighted, limit=limit)
        same("bellman_ford", graph, directed, asked, unweighted=unweighted)
        same("dijkstra", graph, directed, asked, min_only=True, unweighted=unweighted, limit=limit)
    same("breadth_first_order", graph, data.draw(st.integers(0, n - 1)), directed) if n else None


@few
@given(graph=graphs(inputs=("raw", "csc", "dense", "sparse")), directed=directions, unweighted=st.booleans())
def test_predecessors(devices, graph, directed, unweighted):
    n = graph[1].shape[0]
    for name in ("dijkstra", "bellman_ford", "johnson", "floyd_warshall"):
        options = {"directed": directed, "unweighted": unweighted}
        distances, trees = getattr(ours, name)(graph[0], return_predecessors=True, **options)
        np.testing.assert_array_equal(distances, getattr(theirs, name)(graph[1], **options))
        check_trees(graph[1], range(n), distances, trees, directed, unweighted, name != "floyd_warshall")
    if n:
        seeds = [n - 1, 0, 0]
        d, tree, origin = ours.dijkstra(graph[0], indices=seeds, min_only=True, return_predecessors=True, **options)
        np.testing.assert_array_equal(d, theirs.dijkstra(graph[1], indices=seeds, min_only=True, **options))
        reached = np.isfinite(d)
        assert (origin[~reached] == -9999).all() and (tree[~reached] == -9999).all() and (tree[seeds] == -9999).all()
        inner = np.flatnonzero(tree != -9999)
        assert np.isin(origin[reached], seeds).all() and (origin[inner] == origin[tree[inner]]).all()
        arcs = arcs_of(graph[1], directed, unweighted)
        assert all(d[tree[v]] + arcs[int(tree[v]), int(v)] == d[v] for v in inner)


@few
@given(graph=graphs("negative"), directed=directions)
def test_negative_weights(devices, graph, directed):
    for name in ("bellman_ford", "johnson", "floyd_warshall"):
        found = same(name, graph, directed)
        if found is not None and graph[1].shape[0]:
            distances, trees = getattr(ours, name)(graph[0], directed, return_predecessors=True)
            np.testing.assert_array_equal(distances, found[0])
            if name != "floyd_warshall":
                check_trees(graph[1], range(len(trees)), distances, trees, directed)
    if graph[1].shape[0]:
        same("bellman_ford", graph, directed, 0)
        same("johnson", graph, directed, [0, -1])


def test_dijkstra_warns_of_negative_weights_and_ends(devices):
    graph = sp.csr_array([[0.0, 4, 3], [0, 0, 0], [0, -2, 0]])
    with pytest.warns(UserWarning, match="negative weights"):
        assert ours.dijkstra(graph, indices=0).tolist() == [0, 1, 3]
    with pytest.warns(UserWarning), pytest.raises(ours.NegativeCycleError):
        ours.dijkstra(-graph - graph.T)


@few
@given(graph=st.one_of(graphs(), graphs("special")), directed=directions, data=st.data())
def test_searches_components_and_trees(devices, graph, directed, data):
    n = graph[1].shape[0]
    same("connected_components", graph, directed)
    same("connected_components", graph, directed, return_labels=False)
    same("connected_components", graph, directed, "strong", False)
    same("minimum_spanning_tree", graph)
    if n:
        start = data.draw(st.integers(0, n - 1))
        same("breadth_first_order", graph, start, directed)
        same("breadth_first_order", graph, start, directed, False)
        same("breadth_first_tree", graph, start, directed)
        same("depth_first_order", graph, start, directed)
    count, labels = ours.connected_components(graph[0], connection="strong")
    wanted = theirs.connected_components(graph[1], connection="strong")[1]
    assert labels.dtype == np.int32 and labels.shape == (n,)
    assert len(set(zip(labels.tolist(), wanted.tolist(), strict=True))) == count == len(set(wanted.tolist()))
    assert all(labels[i] >= labels[j] for i, j in arcs_of(graph[1], True))


def test_larger_graphs(devices):
    rng = np.random.default_rng(3)
    n = 28
    graph = sp.random_array((n, n), density=0.1, rng=rng, format="csr")
    for directed in (True, False):
        same("dijkstra", (graph, graph), directed)
        same("dijkstra", (graph, graph), directed, [3, 26], limit=0.4)
        same("breadth_first_order", (graph, graph), 7, directed)
        distances, trees = ours.dijkstra(graph, directed, return_predecessors=True)
        check_trees(graph, range(n), distances, trees, directed)
        np.testing.assert_allclose(ours.floyd_warshall(graph, directed), distances, rtol=1e-14)
        distances = theirs.dijkstra(graph, directed, unweighted=True)
        np.testing.assert_array_equal(ours.shortest_path(graph, directed=directed, unweighted=True), distances)
    same("minimum_spanning_tree", (graph, graph))
    graph.data = rng.integers(0, 4, graph.nnz).astype(float)  # many of one weight
    for limit in range(5):  # which many distances meet
        same("dijkstra", (graph, graph), True, [1, 9], limit=limit)
        same("dijkstra", (graph, graph), False, [1, 9], unweighted=True, limit=limit, min_only=True)
    same("minimum_spanning_tree", (graph, graph))


def test_sources_are_taken_in_portions(devices, monkeypatch):
    graph = sp.random_array((20, 20), density=0.15, rng=np.random.default_rng(1), format="lil")
    wanted, tree = ours.dijkstra(graph, return_predecessors=True)
    monkeypatch.setattr(sys.modules["algos._csgraph_paths"], "ENTRIES", 7 * (graph.nnz + 21))
    for found, expected in zip(ours.dijkstra(graph, return_predecessors=True), (wanted, tree), strict=True):
        np.testing.assert_array_equal(found, expected)
    graph[5, 6], graph[6, 5] = -1, -1
    with pytest.raises(ours.NegativeCycleError, match="on node 3"):
        ours.bellman_ford(graph, indices=[3, 19])


ROADS = sp.csr_array(np.triu(np.random.default_rng(2).integers(0, 9, (40, 40)) * 1.0, 1))
LEFT = [  # and what is worth statements on CPU devices too
    ("dijkstra", {"indices": [3, 5]}, True),
    ("dijkstra", {"indices": [3, 5], "min_only": True}, False),
    ("dijkstra", {"indices": [3, 5], "limit": 4.0}, False),
    ("dijkstra", {"indices": range(9), "unweighted": True}, True),
    ("dijkstra", {"indices": range(9), "unweighted": True, "return_predecessors": True}, False),
    ("bellman_ford", {"indices": 3}, True),
    ("johnson", {"indices": 3}, True),
    ("johnson", {}, False),
    ("floyd_warshall", {}, False),
    ("breadth_first_order", {"i_start": 0}, False),
    ("connected_components", {"directed": False}, True),
    ("connected_components", {"connection": "strong"}, False),
    ("minimum_spanning_tree", {}, False),
]


def _parts(found):
    return [x.toarray() if sp.issparse(x) else x for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name, keywords, worth", LEFT)
def test_what_cpu_devices_leave_to_scipy(monkeypatch, name, keywords, worth):
    """What it takes less time for; as where nothing is left to it."""
    gb.init("cpu:2")
    expected, calls, plain = getattr(ours, name)(ROADS, **keywords), [], getattr(theirs, name)
    monkeypatch.setattr(theirs, name, lambda *given, **more: calls.append(name) or plain(*given, **more))
    monkeypatch.setattr(_csgraph_inputs, "OWN", False)

    def check(count):
        found = called()
        assert len(calls) == count
        several = "connection" in keywords or "return_predecessors" in keywords  # labels, trees: any of some
        pairs = [(found[0], expected[0])] if several else zip(*map(_parts, (found, expected)), strict=True)
        for one, two in pairs:
            np.testing.assert_array_equal(one, two)

    def called():
        return getattr(ours, name)(ROADS, **keywords)

    check(1 if "unweighted" not in keywords or not worth else 0)
    calls.clear()
    for limit in ("MANY", "WIDE", "LARGE", "LONG"):
        monkeypatch.setattr(ours, limit, 1)
    check(0 if worth else 1)


@pytest.mark.parametrize("limit", [0, 10.0, 600.0, 5000.0, 1e9])
def test_a_limit_on_a_road_map(monkeypatch, limit):
    """Several sources, one of them twice, and the nearest of them; a short limit leaves the call to SciPy."""
    gb.init("cpu:2")
    graph = gb.io.mmread(Path(__file__).parents[1] / "data/luxembourg_osm.mtx.gz").to_scipy_sparse()
    graph = graph.tocsr()[:9000, :9000]
    graph.data = np.random.default_rng(1).integers(0, 256, graph.nnz).astype(float)
    sources = [5, 8999, 5, -3]
    for min_only in (False, True):
        want = theirs.dijkstra(graph, indices=sources, limit=limit, min_only=min_only)
        np.testing.assert_array_equal(ours.dijkstra(graph, indices=sources, limit=limit, min_only=min_only), want)
    monkeypatch.setattr(_csgraph_inputs, "OWN", False)
    monkeypatch.setattr(ours, "LARGE", 1)
    calls, of = [], theirs.dijkstra
    monkeypatch.setattr(theirs, "dijkstra", lambda *given: calls.append(given) or of(*given))
    ours.dijkstra(graph, indices=range(9), limit=limit)
    assert len(calls) == (limit < 2 * graph.data.mean() * 9000**0.5)


def test_many_sources_of_a_road_map(monkeypatch):
    """No source is left to SciPy. Each is a run of its own, not one over copies of the graph."""
    gb.init("cpu:2")
    graph = gb.io.mmread(Path(__file__).parents[1] / "data/luxembourg_osm.mtx.gz").to_scipy_sparse().tocsr()
    graph.data = np.random.default_rng(1).integers(1, 256, graph.nnz).astype(float)
    sources = np.random.default_rng(2).integers(0, graph.shape[0], 17)
    expected = theirs.dijkstra(graph, indices=sources)
    monkeypatch.setattr(_csgraph_inputs, "OWN", False)
    monkeypatch.setattr(theirs, "dijkstra", None)
    runs = []

    def relax(A, *rest, of=_csgraph_paths.relax):
        runs.append(A.nrows)
        return of(A, *rest)

    monkeypatch.setattr(_csgraph_paths, "relax", relax)
    np.testing.assert_array_equal(ours.dijkstra(graph, indices=sources), expected)
    assert runs == [graph.shape[0]] * len(sources)


@pytest.mark.parametrize("own", [False, True])
def test_arcs_that_are_there_twice_count_once(monkeypatch, own):
    gb.init("cpu:1")
    monkeypatch.setattr(_csgraph_inputs, "OWN", own)
    rng = np.random.default_rng(4)
    for n in (2, 3, 5, 8) * 6:
        offsets = np.r_[0, rng.multinomial(3 * n, [1 / n] * n).cumsum()]
        graph = sp.csr_array((rng.integers(-1, 2, 3 * n) * 1.0, rng.integers(0, n, 3 * n), offsets), shape=(n, n))
        before, once = graph.copy(), graph.copy()
        once.sum_duplicates()
        count, labels = ours.connected_components(graph, connection="strong")
        wanted = theirs.connected_components(once, connection="strong")
        assert count == wanted[0] == len(set(zip(labels.tolist(), wanted[1].tolist(), strict=True)))
        assert ours.connected_components(graph, connection="strong", return_labels=False) == count
        assert graph.nnz == before.nnz and (graph.indices == before.indices).all()


def test_what_is_overwritten(devices):
    graph = np.array([[0.0, 1, 9], [0, 0, 2], [0, 0, 0]])
    kept = graph.copy()
    ours.shortest_path(graph, "FW")
    np.testing.assert_array_equal(graph, kept)
    assert ours.shortest_path(graph, "FW", overwrite=True) is graph and graph[0, 2] == 3
    csr = sp.csr_array(kept)
    before = csr.copy()
    ours.minimum_spanning_tree(csr, overwrite=True)
    np.testing.assert_array_equal(csr.data, before.data)


GRAPH = sp.csr_array(np.array([[0, 1, 2.0], [0, 0, 1], [3, 0, 0]]))
WRONG = [
    ("dijkstra", (sp.csr_array((2, 3)),), {}),
    ("dijkstra", (np.zeros((2, 3)),), {}),
    ("dijkstra", (np.zeros(3),), {}),
    ("bellman_ford", (sp.coo_array(np.ones(3)),), {}),
    ("dijkstra", (None,), {}),
    ("dijkstra", (GRAPH,), {"indices": 5}),
    ("bellman_ford", (GRAPH,), {"indices": [-1, -4]}),
    ("johnson", (GRAPH,), {"indices": 3}),
    ("dijkstra", (GRAPH,), {"indices": "a"}),
    ("dijkstra", (GRAPH,), {"limit": -1}),
    ("dijkstra", (GRAPH,), {"return_sparse_dist": True}),
    ("shortest_path", (GRAPH, "x"), {}),
    ("shortest_path", (GRAPH, "FW"), {"indices": 0}),
    ("floyd_warshall", (sp.coo_array(GRAPH),), {}),
    ("connected_components", (GRAPH,), {"connection": "x"}),
    ("connected_components", (GRAPH,), {"connection": 3}),
    ("connected_components", (sp.csr_array((2, 3)),), {}),
    ("minimum_spanning_tree", (sp.csr_array((2, 3)),), {}),
    ("breadth_first_tree", (sp.csr_array((2, 3)), 0), {}),
    ("laplacian", (np.zeros((2, 3)),), {}),
    ("bellman_ford", (-GRAPH,), {}),
    ("johnson", (-GRAPH,), {}),
    ("floyd_warshall", (-GRAPH,), {}),
]


@pytest.mark.parametrize(("name", "arguments", "keywords"), WRONG)
def test_errors(devices, name, arguments, keywords):
    raised = []
    for library in (ours, theirs):
        with pytest.raises(Exception) as caught:
            getattr(library, name)(*arguments, **keywords)
        raised.append((caught.type, str(caught.value)))
    assert raised[0][0] is raised[1][0]
    if caught.type is ValueError and keywords != {"indices": "a"}:
        assert raised[0][1] == raised[1][1]


@pytest.mark.parametrize("start", [-1, 3, 2**40])
def test_starts_that_are_not_there(devices, start):
    with pytest.raises(IndexError, match="from 0 to 2"):
        ours.breadth_first_order(GRAPH, start)


FIRST = {  # what functions take beside the graph
    "breadth_first_order": (0,), "depth_first_order": (0,), "breadth_first_tree": (0,), "depth_first_tree": (0,),
    "maximum_flow": (0, 1), "yen": (0, 1, 2),
}  # fmt: skip
OTHERS = {"NegativeCycleError", "construct_dist_matrix", "reconstruct_path"}  # of more than a graph
OTHERS |= {"csgraph_from_dense", "csgraph_from_masked", "csgraph_masked_from_dense"}  # of arrays


def answer(function, *given):
    """What a call gives, in plain words, or raises."""

    def plain(found):
        if isinstance(found, tuple):
            return [plain(part) for part in found]
        if hasattr(found, "flow_value"):
            return int(found.flow_value), plain(found.flow)
        if hasattr(found, "toarray"):
            return found.shape, found.dtype.name, found.toarray().tolist()
        return np.shape(found), getattr(found, "dtype", type(found)), str(np.ma.asarray(found).tolist())

    try:
        return plain(function(*given))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", sorted(set(theirs.__all__) - OTHERS))
def test_the_smallest_graphs(monkeypatch, name):
    """One vertex or a few, no edge or one, of every type: of a Matrix as of SciPy's array of the same entries."""
    for own, dtype in ((True, "float64"), (False, "float64"), (False, "int32")):
        monkeypatch.setattr(_csgraph_inputs, "OWN", own)
        for n, arcs in ((1, []), (1, [0]), (3, []), (3, [2])):
            dense = np.zeros((n, n), dtype)
            dense[0, arcs] = 1
            rows, cols = np.nonzero(dense)
            expected = answer(getattr(theirs, name), sp.csr_array(dense), *FIRST.get(name, ()))
            matrix = gb.Matrix.from_coo(rows, cols, dense[rows, cols], dtype, nrows=n, ncols=n)
            for graph in (matrix,) if own else (matrix, gb.sparse.csr_array(dense)):
                assert answer(getattr(ours, name), graph, *FIRST.get(name, ())) == expected, (own, n, arcs, dtype)
        if name not in FIRST:
            expected = answer(getattr(theirs, name), sp.csr_array((0, 0)))
            assert answer(getattr(ours, name), gb.Matrix(float, 0, 0)) == expected


def test_names_and_signatures():
    assert sorted(ours.__all__) == sorted(theirs.__all__)
    for name in ours.__all__:
        if inspect.isfunction(getattr(ours, name)):
            signatures = (inspect.signature(getattr(library, name)).parameters.values() for library in (ours, theirs))
            mine, wanted = ([(p.name, p.kind, repr(p.default)) for p in one] for one in signatures)
            assert mine == wanted, name
            assert getattr(ours, name).__doc__


class FromGpu:
    """An array, or a sparse one, that lies elsewhere."""

    __module__ = "cupyx.scipy.sparse"

    def __init__(self, held):
        self.held = held

    def get(self):
        return self.held


def test_graphs_of_gbgpu(devices):
    for graph in (gb.Matrix.from_scipy_sparse(GRAPH), gb.Matrix.from_scipy_sparse(GRAPH.T.tocsr()).T):
        np.testing.assert_array_equal(ours.dijkstra(graph), theirs.dijkstra(GRAPH))
        np.testing.assert_array_equal(ours.laplacian(csgraph=graph).toarray(), theirs.laplacian(GRAPH).toarray())
        assert ours.structural_rank(graph) == 3


@pytest.fixture
def arrays(devices, monkeypatch):
    """(sparse matrices, arrays, the types of both) of a GPU, or of something like one where there is none."""
    if devices.spec.startswith("cuda"):
        import cupy
        from cupyx.scipy import sparse

        return sparse.csr_matrix, cupy.asarray, (cupy.ndarray, sparse.spmatrix)
    fake = types.ModuleType("cupy")
    fake.asarray = fake.csr_matrix = fake.coo_matrix = FromGpu
    for name in ("cupy", "cupyx", "cupyx.scipy", "cupyx.scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, fake)
    fake.scipy = fake.sparse = fake
    return FromGpu, FromGpu, FromGpu


def test_results_lie_where_the_graph_does(arrays):
    sparse, dense, there = arrays
    graph = sparse(GRAPH)
    for one in (graph, dense(GRAPH.toarray())):
        np.testing.assert_array_equal(ours.dijkstra(one).get(), theirs.dijkstra(GRAPH))
    distances, before = ours.shortest_path(graph, indices=dense(np.array([0, 2])), return_predecessors=True)
    np.testing.assert_array_equal(distances.get(), theirs.shortest_path(GRAPH, indices=[0, 2]))
    assert isinstance(before, there) and before.get().dtype == np.int32
    found, wanted = ours.laplacian(csgraph=graph), theirs.laplacian(GRAPH)
    assert isinstance(found, there) and (found.get() != wanted).nnz == 0
    count, labels = ours.connected_components(graph)
    assert count == theirs.connected_components(GRAPH)[0] and isinstance(labels, there)
    tree = ours.reconstruct_path(graph, dense(theirs.breadth_first_order(GRAPH, 0)[1]))
    assert tree.get().nnz == theirs.breadth_first_tree(GRAPH, 0).nnz
    assert ours.structural_rank(graph) == 3 and isinstance(ours.dijkstra(GRAPH), np.ndarray)


SMALL = [graph for graph in GRAPHS.values() if len(graph[1]) < 180]  # nothing is compiled here
PATH = 30, [arc for i in range(29) for arc in ((i, i + 1), (i + 1, i))]


@pytest.mark.parametrize("graph", [*SMALL, PATH], ids=lambda graph: f"{graph[0]}, {len(graph[1])}")
def test_strong_components(devices, graph):
    for arcs in (graph, both_ways(graph)):
        A = matrix(arcs)
        labels = algos.strongly_connected_components(A)
        assert labels.dtype == "INT64"
        verify.strongly_connected_components(A, labels)
    wrong = labels.dup()
    wrong[graph[0] - 1] = graph[0]
    with pytest.raises(verify.VerificationError, match="component"):
        verify.strongly_connected_components(A, wrong)


def test_a_chain_of_cycles_takes_few_rounds(devices, monkeypatch):
    """Whatever the order of vertices."""
    strong, rounds = sys.modules["algos.strong"], []
    plain = strong.spread
    monkeypatch.setattr(strong, "spread", lambda *given_: rounds.append(1) or plain(*given_))
    n = 60
    pairs = [arc for i in range(0, n, 2) for arc in ((i, i + 1), (i + 1, i), (i + 1, (i + 2) % n))][:-1]
    A = matrix((n, pairs))
    verify.strongly_connected_components(A, algos.strongly_connected_components(A))
    assert len(rounds) < 12


OWN = "shortest_path traversal connected_components spanning_tree conversions".split()
OWN_LARGE = "1000 or star_graph or random"  # for the long run


@pytest.mark.few(0)
@pytest.mark.skipif(not TESTS.exists(), reason="this SciPy came without its tests")
def test_scipys_own_tests(tmp_path):
    """With functions of ours in place of SciPy's, in a process of its own."""
    here = Path(__file__).parent
    files = [str(TESTS / f"test_{name}.py") for name in OWN]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "scipys_csgraph", "-p", "no:cacheprovider", "-c", os.devnull]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])}
    left = [] if WIDE else ["-k", f"not ({OWN_LARGE})"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), *left, *files], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
