"""Products from slices of pieces against the ordinary kernels. Collected where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from test_slices import prepared, skewed
from test_streams_gpu import SHAPES

import gbgpu as gb
from gbgpu import semiring
from gbgpu.device import cuda
from gbgpu.device.cpu import CpuDevices
from gbgpu.distribute.blocks import MatrixBlock
from gbgpu.kernels import gpu_slices as slices
from gbgpu.kernels import gpu_streams as streams
from gbgpu.kernels.gpu_tuning import TUNING

__test__ = bool(cuda.available())

PRODUCTS = [  # semiring, type of A, type of x
    ("plus_times", "FP32", "FP32"),
    ("plus_times", "FP64", "FP64"),
    ("plus_times", "INT64", "INT64"),
    ("plus_second", "BOOL", "FP64"),
    ("plus_second", "BOOL", "FP32"),
    ("min_plus", "FP32", "FP32"),
    ("min_second", "BOOL", "UINT32"),
    ("max_second", "INT16", "INT16"),
    ("times_plus", "INT8", "INT8"),
    ("lxor_land", "BOOL", "BOOL"),
]


@pytest.fixture
def session(monkeypatch):
    for name in ("least", "wide", "pulls", "launches", "short"):
        monkeypatch.setattr(TUNING, name, 0)
    return gb.init("cuda:0")


@pytest.mark.parametrize("segments, shared", [(1, 0), (3, 256), (16, 256), (2, 4096)])
@pytest.mark.parametrize("shape", SHAPES)
def test_slices_give_what_rows_give(session, shape, segments, shared, monkeypatch):
    """`shared`: bytes of a segment; 0: all that a block may have, so that mostly all columns are in the first one."""
    device = session.devices[0]
    monkeypatch.setattr(device, "shared", shared + slices.SPARE if shared else device.shared)
    monkeypatch.setattr(slices, "best", lambda *given: segments)
    n, m, where = SHAPES[shape]
    rng = np.random.default_rng(7)
    rows, cols = where(rng)
    mask = gb.Vector.from_coo(rng.permutation(n)[: n // 2], True, size=n)
    for name, a, x in PRODUCTS:
        what = rng.integers(0, 50, len(rows)).astype(gb.dtypes.lookup_dtype(a).np_type)
        held = rng.integers(0, 50, m).astype(gb.dtypes.lookup_dtype(x).np_type)
        if x in ("FP32", "FP64"):
            held[::97] = np.nan
        v = gb.Vector.from_dense(held)
        for values in (what, what[0]):
            A = gb.Matrix.from_coo(rows, cols, values, nrows=n, ncols=m, dup_op="first")
            product = getattr(semiring, name)[a, x](A @ v)
            session.plans.clear()
            found = [product.new(direction="pull") for _ in range(2)]
            assert any(key[0] == "slices" for key in A._store.blocks[0].views if isinstance(key, tuple))
            masked = product.new(direction="pull", mask=mask.S)
            with monkeypatch.context() as plain:
                plain.setattr(slices, "slices_of", lambda *given: (None, []))
                plain.setattr(streams, "streams_of", lambda *given: ())
                session.plans.clear()
                expected = product.new(direction="pull")
                expected_masked = product.new(direction="pull", mask=mask.S)
            for y, right in ((found[0], expected), (found[1], expected), (masked, expected_masked)):
                ids, vals = y.to_coo()
                assert np.array_equal(ids, right.to_coo()[0]) and y.nvals == len(ids), (name, shape)
                assert np.allclose(vals, right.to_coo()[1], rtol=1e-5, equal_nan=True), (name, shape)
            assert np.array_equal(found[0].to_coo()[1], found[1].to_coo()[1], equal_nan=x in ("FP32", "FP64"))


def test_loops_take_slices(session, monkeypatch):
    monkeypatch.setattr(slices, "best", lambda *given: 3)
    monkeypatch.setattr(session.devices[0], "shared", 4096 + slices.SPARE)
    n = 20_000
    matrix = skewed(n, n, 300_000)
    matrix.sum_duplicates()
    A = gb.Matrix.from_csr(matrix.indptr, matrix.indices, matrix.data, ncols=n)
    x = np.random.default_rng(1).random(n).astype(np.float32)
    expected = x.astype(float)
    for _ in range(20):
        expected = (matrix @ expected) * 1e-3
    for _ in range(3):
        y = gb.Vector.from_dense(x)
        with gb.loop(20) as it:
            y << semiring.plus_times(A @ y)
            y << y.apply(gb.binary.times, right=1e-3)
        np.testing.assert_allclose(y.to_dense(0), expected, rtol=1e-3, atol=1e-30)
    assert not it.how.startswith("statements"), it.how


@pytest.mark.parametrize("ptr", [np.int32, np.int64])
@pytest.mark.parametrize("segments", [1, 3, 16])
@pytest.mark.parametrize("n, m, held", [(300, 2000, 4), (40_000, 900, 8), (1, 5000, 1), (700, 40, 4)])
def test_slices_are_those_of_numpy(session, n, m, held, segments, ptr, monkeypatch):
    """The kernels that make them, against their texts in NumPy."""
    monkeypatch.setattr(slices, "best", lambda *given: segments)
    host, device = prepared(CpuDevices(1).devices[0], monkeypatch), session.devices[0]
    monkeypatch.setattr(device, "shared", host.shared)
    monkeypatch.setattr(host, "processors", device.processors)
    A = skewed(n, m, 30_000)
    A.sum_duplicates()
    found = []
    for dtype in (np.float32, np.float64, np.int8, np.int16):
        vals = np.arange(A.nnz).astype(dtype)
        for one in (host, device):
            indptr, cols, values = (one.put(each) for each in (A.indptr.astype(ptr), A.indices.astype(np.int32), vals))
            block = MatrixBlock(n, indptr, cols, values, 1, A.nnz, True)
            made, parts = slices.slices_of(one, block, m, held, True)
            found.append([each if isinstance(each, int) else one.get(each) for each in (*made, *parts)])
        ours, theirs = found[-2:]
        for i, (mine, his) in enumerate(zip(ours[:-2], theirs[:-2], strict=True)):
            np.testing.assert_array_equal(mine, his, err_msg=slices.Slices._fields[i])
        for part, where in ((0, "near"), (1, "far")):  # what is beside entries is never read
            on = np.zeros(len(ours[part - 2]), bool)
            offs, split = made.offs.get(), made.split
            for s in range(split) if where == "near" else range(split, len(offs) - 1):
                begin = 128 * (offs[s] - (0 if where == "near" else offs[split]))
                lengths = ours[slices.Slices._fields.index("lengths")][32 * s : 32 * s + 32]
                groups = offs[s + 1] - offs[s]
                each = (np.arange(4 * groups) < lengths[:, None]).reshape(32, groups, 4).swapaxes(0, 1).ravel()
                on[begin : begin + 128 * groups] = each
            assert np.array_equal(ours[part - 2][on], theirs[part - 2][on])
