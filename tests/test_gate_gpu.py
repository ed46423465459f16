"""Matrices from arrays that lie on a GPU, against the same arrays on the host. Collected where there is a GPU."""

from __future__ import annotations

import os

import numpy as np
import pytest
from conftest import Devices

import gbgpu as gb
from gbgpu import binary, exceptions
from gbgpu.device import cuda
from gbgpu.engine import gate
from gbgpu.trace import counters

__test__ = bool(cuda.available())
SHAPES = [(1, 1, 1), (1, 1, 0), (0, 0, 0), (5, 900, 300), (700, 4, 500), (400, 400, 9000), (3, 2**33, 50)]


SETS = {"cuda:0", "cuda:0*3", *os.environ.get("GBGPU_TEST_DEVICES", "").split()} - {"cuda:0,cpu:2"}


@pytest.fixture(params=sorted(SETS))
def gpu(request):
    Devices(*request.param.partition("/")[::2]).start()
    import cupy

    return cupy


@pytest.fixture(params=[gate.CHUNK, 1000, 300])
def chunk(request, monkeypatch):
    monkeypatch.setattr(gate, "CHUNK", request.param)


def entries(shape, seed=0):
    nrows, ncols, count = shape
    random = np.random.default_rng(seed)
    return random.integers(0, max(nrows, 1), count), random.integers(0, max(ncols, 1), count), random.random(count)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dup_op, dtype", [(binary.minus, np.float32), (binary.first, bool), ("plus", np.int8), (binary.second, np.int64)]
)
def test_from_coo(gpu, chunk, shape, dup_op, dtype):
    rows, cols, vals = entries(shape)
    size = {"nrows": shape[0], "ncols": shape[1], "dup_op": dup_op}
    values = (vals * 9).astype(dtype)
    expected = gb.Matrix.from_coo(rows, cols, values, **size)
    for ids in (np.int64, np.uint32) if shape[1] < 2**32 else (np.uint64,):
        arrays = gpu.asarray(rows.astype(ids)), gpu.asarray(cols.astype(ids)), gpu.asarray(values)
        assert gb.Matrix.from_coo(*arrays, **size).isequal(expected, check_dtype=True)
        assert gb.Matrix.from_coo(*arrays[:2], values, **size).isequal(expected, check_dtype=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_value(gpu, chunk, shape):
    rows, cols, _ = entries(shape)
    size = {"nrows": shape[0], "ncols": shape[1]}
    expected = gb.Matrix.from_coo(rows, cols, 3, **size)
    found = gb.Matrix.from_coo(gpu.asarray(rows), gpu.asarray(cols), 3, **size)
    assert found.isequal(expected, check_dtype=True) and found.ss.is_iso == expected.ss.is_iso


@pytest.mark.parametrize("shape", SHAPES[:-1])
@pytest.mark.parametrize("sort", [True, False])
def test_from_csr(gpu, shape, sort):
    rows, cols, vals = entries(shape)
    expected = gb.Matrix.from_coo(rows, cols, vals, nrows=shape[0], ncols=shape[1], dup_op=binary.first)
    indptr, indices, values = expected.to_csr()
    if not sort:
        order = np.concatenate([np.arange(lo, hi)[::-1] for lo, hi in zip(indptr, indptr[1:], strict=False)] or [[]])
        indices, values = indices[order.astype(int)], values[order.astype(int)]
    arrays = (gpu.asarray(array) for array in (indptr, indices.astype(np.int32), values))
    assert gb.Matrix.from_csr(*arrays, ncols=shape[1]).isequal(expected, check_dtype=True)


@pytest.mark.parametrize("iso", [True, False])
def test_a_row_of_most_entries(gpu, iso):
    """It decides where blocks end; the rows beside it, counted together with it, have nothing."""
    n, hub = 1 << 20, (1 << 19) + 130
    rows, cols, vals = gpu.full(n, hub), gpu.asarray(np.random.default_rng(1).permutation(n)), gpu.arange(float(n))
    found = gb.Matrix.from_coo(rows, cols, 1.0 if iso else vals, nrows=n, ncols=n)
    assert found.nvals == n and found.get(hub, int(cols[7])) == (1.0 if iso else 7.0)


def test_arrays_with_gaps(gpu):
    """Columns of a table, and an array backwards."""
    table = np.random.default_rng(1).permutation(1000 * 1000)[:9000]
    table = gpu.asarray(np.stack([table // 1000, table % 1000, table], axis=1))
    rows, cols, vals = table[:, 0], table[:, 1], table[::-1, 2]
    found = gb.Matrix.from_coo(rows, cols, vals, nrows=1000, ncols=1000).to_coo()
    expected = [array.get() for array in (rows, cols, vals)]
    order = np.lexsort(expected[1::-1])
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two[order])


def test_nothing_goes_to_the_host(gpu):
    rows, cols, vals = (gpu.asarray(array) for array in entries((500, 500, 4000)))
    before = counters.host_reads
    A = gb.Matrix.from_coo(rows, cols, vals, nrows=500, ncols=500, dup_op=binary.plus)
    assert counters.host_reads - before <= 3 + 3 * len(gb.settings.session().devices) and A.nvals  # counts


def test_cupyx_matrices_come_in(gpu):
    from cupyx.scipy.sparse import random

    theirs = random(300, 200, 0.05, format="csr", dtype=np.float32)
    indptr, indices, values = (array.get() for array in (theirs.indptr, theirs.indices, theirs.data))
    expected = gb.Matrix.from_csr(indptr, indices, values, ncols=200)
    assert gb.Matrix.from_scipy_sparse(theirs).isequal(expected, check_dtype=True)
    assert gb.Matrix.from_scipy_sparse(theirs.tocoo(), dup_op=binary.first).isequal(expected, check_dtype=True)


def test_wrong_entries_are_refused(gpu):
    ids = gpu.asarray([0, 1, 1])
    with pytest.raises(ValueError, match="Duplicate"):
        gb.Matrix.from_coo(ids, ids, gpu.asarray([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="one value"):
        gb.Matrix.from_coo(ids, ids, 1, dup_op="plus")
    for bad in (gpu.asarray([0, -1, 1]), gpu.asarray([0, 3, 1])):
        with pytest.raises(exceptions.IndexOutOfBound):
            gb.Matrix.from_coo(bad, ids, 1, nrows=3, ncols=3)
    with pytest.raises(ValueError, match="as many rows as columns"):
        gb.Matrix.from_coo(ids, ids[:2], 1)
    with pytest.raises(exceptions.InvalidValue):
        gb.Matrix.from_csr(gpu.asarray([0, 2, 1, 3]), ids, 1.0)
    with pytest.raises(TypeError):
        gb.Matrix.from_coo(gpu.asarray([0.0, 1.0]), gpu.asarray([0, 1]), 1)


@pytest.mark.parametrize("values", [True, False])
def test_transposes(gpu, values):
    rows, cols, vals = entries((600, 350, 5000))
    A = gb.Matrix.from_coo(rows, cols, vals if values else True, nrows=600, ncols=350, dup_op=binary.first)
    i, j, x = A.to_coo()
    expected = gb.Matrix.from_coo(j, i, x, nrows=350, ncols=600)
    assert A.T.new().isequal(expected)
    y = gb.semiring.plus_pair[int](gb.Vector.from_scalar(1, 600) @ A).new()
    assert y.isequal(gb.Vector.from_coo(*np.unique(j, return_counts=True), size=350))


def test_graph_functions_of_cupys_graphs(gpu):
    """Results of `algos.csgraph` lie where the graph does."""
    import cupyx.scipy.sparse as gpu_sparse
    from scipy import sparse as sp
    from scipy.sparse import csgraph as theirs

    from algos import csgraph as ours

    graph = sp.random(300, 300, 0.02, "csr", random_state=1)
    there = gpu_sparse.csr_matrix(graph)
    for given in (there, there.toarray()):
        found = ours.dijkstra(given, indices=gpu.array([3, 5]))
        assert isinstance(found, gpu.ndarray)
        np.testing.assert_allclose(found.get(), theirs.dijkstra(graph, indices=[3, 5]))
    tree = ours.minimum_spanning_tree(there)
    assert gpu_sparse.issparse(tree) and abs(float(tree.sum()) - theirs.minimum_spanning_tree(graph).sum()) < 1e-9
    count, labels = ours.connected_components(there, directed=False)
    assert count == theirs.connected_components(graph, directed=False)[0] and isinstance(labels, gpu.ndarray)
