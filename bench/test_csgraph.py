"""`algos.csgraph` on CPU devices beside SciPy's csgraph, of the same sparse arrays; and what it takes if nothing is
left to SciPy."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import pytest
from scipy.sparse import csgraph as scipys
from scipy.sparse import csr_array

import gbgpu as gb
from algos import _csgraph_inputs
from algos import csgraph as ours

GRAPHS = ["rmat18", "uk-2007-05_100000", "luxembourg_osm", "email-Enron"]
CALLS = {
    "dijkstra": lambda module, A, source: module.dijkstra(A, indices=source),
    "dijkstra, 32 sources, unweighted": lambda module, A, source: module.dijkstra(
        A, indices=np.argsort(-np.diff(A.indptr))[:32], unweighted=True
    ),
    "connected_components": lambda module, A, source: module.connected_components(A, directed=False)[1],
    "breadth_first_order": lambda module, A, source: module.breadth_first_order(A, source)[0],
    "minimum_spanning_tree": lambda module, A, source: module.minimum_spanning_tree(A).data,
}


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("name", GRAPHS)
def test_csgraph(beside, rmat, real, monkeypatch, name, what):
    A = (rmat(18) if name == "rmat18" else real(name, f"{name}, csgraph")).astype(np.float64)
    A = csr_array((np.random.default_rng(1).integers(1, 255, A.nnz).astype(float), A.indices, A.indptr), shape=A.shape)
    A.sort_indices()
    source, call = int(np.argmax(np.diff(A.indptr))), CALLS[what]
    gb.init("cpu:2")
    np.testing.assert_array_equal(call(ours, A, source), call(scipys, A, source))
    with monkeypatch.context() as own:
        own.setattr(_csgraph_inputs, "OWN", True)
        times = []
        for _ in range(4):
            start = time.perf_counter()
            call(ours, A, source)
            times.append(time.perf_counter() - start)
    note = f"by statements {median(times[1:]) * 1e3:.3g} ms"
    peers = {"SciPy": lambda: call(scipys, A, source)}
    beside(f"{name}, csgraph.{what}", "cpu:2", lambda: call(ours, A, source), peers, rounds=7, least=0.95, note=note)
