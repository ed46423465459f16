"""Whole algorithms on CPU devices beside SciPy, networkit and python-graphblas; every result is checked once."""

from __future__ import annotations

from typing import Any

import graphblas
import networkit
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph, csr_array

import algos
import gbgpu as gb
from algos import verify
from algos.triangles import by_degree

SCALE, CRAWL = 18, "uk-2007-05_100000"


def pattern(A: csr_array) -> gb.Matrix:
    return gb.Matrix.from_csr(A.indptr.astype(np.int64), A.indices.astype(np.int64), True, ncols=A.shape[1])


def hub(A: csr_array) -> int:
    return int(np.argmax(np.diff(A.indptr)))


def sources(A: csr_array, count: int) -> list[int]:
    """Random vertices whose search reaches over half of the graph."""
    random = np.random.default_rng(3)
    found: list[int] = []
    while len(found) < count:
        source = int(random.integers(A.shape[0]))
        if len(csgraph.breadth_first_order(A, source, return_predecessors=False)) > A.shape[0] // 2:
            found.append(source)
    return found


def search(beside: Any, A: csr_array, what: str, devices: str, source: int, **target: Any) -> None:
    gb.init(devices)
    B = pattern(A)
    verify.bfs(B, source, *algos.bfs(B, source))
    peers = {"SciPy": lambda: csgraph.breadth_first_order(A, source)}
    beside(what, devices, lambda: algos.bfs(B, source), peers, rounds=15, source=source, **target)


@pytest.mark.parametrize("start", ["hub", 0, 1, 2])
def test_bfs(beside, rmat, start):
    A = rmat(SCALE)
    source = hub(A) if start == "hub" else sources(A, 3)[start]
    search(beside, A, f"rmat{SCALE}, BFS from {'hub' if start == 'hub' else source}", "cpu:2", source, least=2)


@pytest.mark.parametrize("name", [CRAWL, "rail-world", "luxembourg_osm"])
@pytest.mark.parametrize("k", [0, 3])
def test_bfs_of_real_graphs(beside, real, name, k):
    A = real(name, f"{name}, BFS")
    source = sources(A, k + 1)[k]
    search(beside, A, f"{name}, BFS from {source}", "cpu:1", source, least=1)


@pytest.mark.parametrize("name", [CRAWL, "rail-world", "luxembourg_osm"])
def test_sssp_of_real_graphs(beside, real, name):
    """Weights as given; 1 to 255 where there are none."""
    A = real(name, f"{name}, sssp").astype(np.float32)
    if np.ptp(A.data) == 0:
        A.data[:] = np.random.default_rng(1).integers(1, 256, A.nnz)
    source = hub(A)
    gb.init("cpu:1")
    B = gb.Matrix.from_scipy_sparse(A)
    verify.sssp(B, source, algos.sssp(B, source))
    peers = {"SciPy's dijkstra": lambda: csgraph.dijkstra(A, indices=source)}
    beside(f"{name}, sssp from hub", "cpu:1", lambda: algos.sssp(B, source), peers, rounds=9, least=1)


@pytest.mark.parametrize("name", ["rail-world", "luxembourg_osm", "osm-andorra"])
def test_components_of_road_maps(beside, real, name):
    A = real(name, f"{name}, components")
    gb.init("cpu:1")
    B = pattern(A)
    verify.connected_components(B, algos.connected_components(B))
    peers = {"SciPy": lambda: csgraph.connected_components(A, directed=False)}
    ours = lambda: algos.connected_components(B)  # noqa: E731
    beside(f"{name}, components", "cpu:1", ours, peers, rounds=15, least=1)


def test_pagerank_of_a_crawl(beside, real):
    A = real(CRAWL, f"{CRAWL}, PageRank")
    gb.init("cpu:2")
    networkit.setNumberOfThreads(2)
    B, theirs = pattern(A), networkit.GraphFromCoo(A.tocoo().nonzero(), n=A.shape[0], directed=True)

    def peer() -> None:
        ranks = networkit.centrality.PageRank(theirs, damp=0.85, tol=1e-20)
        ranks.maxIterations = 20
        ranks.run()

    verify.pagerank(B, algos.pagerank(B, tol=1e-9, max_iterations=1000).ranks)
    what = f"{CRAWL}, PageRank, 20 iterations, FP32"
    ours = lambda: algos.pagerank(B, tol=0, max_iterations=20, dtype="FP32")  # noqa: E731
    beside(what, "cpu:2", ours, {"networkit": peer}, rounds=9, least=2)


def test_triangles_of_a_crawl(beside, real):
    A = real(CRAWL, f"{CRAWL}, triangles")
    A = ((A + A.T) > 0).tocsr()
    gb.init("cpu:2")
    graphblas.ss.config["nthreads"] = 2
    B, theirs = pattern(A), graphblas.io.from_scipy_sparse(A)

    def peer(transposed: bool) -> int:
        return count(graphblas, graphblas.select.tril(theirs, -1).new(), transposed)

    assert algos.triangle_count(B) == peer(False)
    peers = {"python-graphblas, L @ L": lambda: peer(False), "python-graphblas, L @ L.T": lambda: peer(True)}
    beside(f"{CRAWL}, triangles", "cpu:2", lambda: algos.triangle_count(B), peers, rounds=3, least=1)


@pytest.fixture(scope="module")
def undirected(rmat) -> Any:
    """The RMAT graph in networkit, which uses two threads."""
    A = rmat(SCALE)
    networkit.setNumberOfThreads(2)
    return networkit.GraphFromCoo(scipy.sparse.triu(A.tocoo()).nonzero(), n=A.shape[0], directed=False)


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_pagerank(beside, rmat, undirected, dtype):
    A = rmat(SCALE)
    gb.init("cpu:2")
    B = pattern(A)

    def theirs() -> Any:
        ranks = networkit.centrality.PageRank(undirected, damp=0.85, tol=1e-20)
        ranks.maxIterations = 20
        ranks.run()
        return ranks

    ranks, _, _ = algos.pagerank(B, tol=0, max_iterations=20, dtype=dtype)
    found, other = ranks.to_dense(), np.array(theirs().scores())
    assert theirs().numberOfIterations() == 20
    linked = np.diff(A.indptr) > 0  # vertices without arcs: networkit drops their rank, gbgpu spreads it
    scaled = found[linked] / found[linked].sum(), other[linked] / other[linked].sum()
    np.testing.assert_allclose(*scaled, rtol=2e-2)
    beside(
        f"rmat{SCALE}, PageRank, 20 iterations, iso, {dtype}",
        "cpu:2",
        lambda: algos.pagerank(B, tol=0, max_iterations=20, dtype=dtype),
        {"networkit": theirs},
        rounds=9,
        least=2.5,
        note="networkit: FP64, 2 threads, tol=1e-20 and maxIterations=20; gbgpu: tol=0, so no change is computed",
    )


def test_components(beside, rmat, undirected):
    A = rmat(SCALE)
    gb.init("cpu:2")
    B = pattern(A)
    verify.connected_components(B, algos.connected_components(B))
    peers = {
        "SciPy": lambda: csgraph.connected_components(A, directed=False),
        "networkit": lambda: networkit.components.ConnectedComponents(undirected).run(),
    }
    ours = lambda: algos.connected_components(B)  # noqa: E731
    beside(f"rmat{SCALE}, components", "cpu:2", ours, peers, rounds=11, least=2, of="SciPy")


@pytest.mark.parametrize("start", ["hub", 0])
def test_sssp(beside, rmat, start):
    A = rmat(SCALE)
    source = hub(A) if start == "hub" else sources(A, 1)[0]
    gb.init("cpu:2")
    B = gb.Matrix.from_scipy_sparse(A)
    verify.sssp(B, source, algos.sssp(B, source))
    peers = {"SciPy's dijkstra": lambda: csgraph.dijkstra(A, indices=source)}
    what = f"rmat{SCALE}, weights 1 to 255 FP32, sssp from {'hub' if start == 'hub' else source}"
    beside(what, "cpu:2", lambda: algos.sssp(B, source), peers, rounds=9, least=1, source=source)


def count(module: Any, L: Any, transposed: bool) -> int:
    C = module.Matrix("INT64", L.nrows, L.ncols)
    C(L.S) << module.semiring.plus_pair["INT64"](L @ (L.T if transposed else L))
    return int(C.reduce_scalar(module.monoid.plus).new().value)


def test_triangles(beside, rmat):
    A = rmat(SCALE)
    gb.init("cpu:2")
    graphblas.ss.config["nthreads"] = 2
    B, theirs = pattern(A), graphblas.io.from_scipy_sparse(A.astype(bool))

    def peer(transposed: bool) -> int:
        return count(graphblas, graphblas.select.tril(theirs, -1).new(), transposed)

    assert algos.triangle_count(B) == peer(False)
    peers = {"python-graphblas, L @ L": lambda: peer(False), "python-graphblas, L @ L.T": lambda: peer(True)}
    note = "gbgpu: test of symmetry and order by degree inside; peers: L = tril(A) inside"
    beside(f"rmat{SCALE}, triangles", "cpu:2", lambda: algos.triangle_count(B), peers, rounds=3, least=1, note=note)


@pytest.mark.parametrize("order", ["as numbered", "by degree"])
def test_triangles_of_one_matrix(beside, rmat, order):
    """The product alone, of the same L on both sides."""
    gb.init("cpu:2")
    graphblas.ss.config["nthreads"] = 2
    A = rmat(SCALE)
    B = pattern(A)
    if order == "by degree":
        degree = gb.Vector.from_dense(np.diff(A.indptr).astype(np.int64))
        (L,) = by_degree(B, degree, gb.semiring.any_lt)
    else:
        L = gb.select.tril(B, -1).new()
    rows, cols, _ = L.to_coo()
    M = graphblas.Matrix.from_coo(rows, cols, True, nrows=L.nrows, ncols=L.ncols)
    assert count(gb, L, True) == count(graphblas, M, False)
    peers = {
        "python-graphblas, L @ L": lambda: count(graphblas, M, False),
        "python-graphblas, L @ L.T": lambda: count(graphblas, M, True),
    }
    what = f"rmat{SCALE}, C(L.S) << plus_pair(L @ L.T), L {order}"
    beside(what, "cpu:2", lambda: count(gb, L, True), peers, rounds=3, least=1)
