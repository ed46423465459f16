"""A matrix that is turned by parts, by NumPy in place of a GPU's kernels (test_kernels_gpu_matrix.py has these)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gbgpu.device import transpose
from gbgpu.device.cpu import CpuDevices


@pytest.fixture
def device():
    found = CpuDevices(1).devices[0]

    def low_bits(keys, bits, out):
        out[:] = keys & (1 << bits) - 1
        return out

    found.counts = lambda ids, n: np.bincount(ids, minlength=n)
    found.low_bits = low_bits
    return found


@pytest.mark.parametrize("ptr", ["int32", "int64"])
@pytest.mark.parametrize(("piece", "parts"), [(1, 8), (7, 3), (1 << 26, 1), (64, 50)])
def test_the_columns_of_a_matrix(device, ptr, piece, parts, monkeypatch):
    monkeypatch.setattr(transpose, "PARTS", parts)
    rng = np.random.default_rng(1)
    for n, m, count in ((1, 1, 1), (5, 1, 5), (1, 90, 30), (300, 70, 900), (40, 500, 60), (50, 50, 2500)):
        places = rng.choice(n * m, count, replace=False)
        rows, cols = np.divmod(places, m)
        A = sparse.coo_array((rng.integers(1, 99, count), (rows, cols)), shape=(n, m)).tocsr()
        A.sort_indices()
        given = A.indptr.astype(ptr), A.indices.astype(np.int32)
        expected = A.tocsc()
        for vals in (A.data, None):
            begins, rows, moved = transpose.by_parts(device, m, *given, vals, piece)
            assert (begins.dtype, rows.dtype) == (ptr, np.int32)
            np.testing.assert_array_equal(begins, expected.indptr)
            np.testing.assert_array_equal(rows, expected.indices)
            assert moved is None if vals is None else np.array_equal(moved, expected.data)


@pytest.mark.parametrize("shape", ["equal rows", "a hub"])
def test_no_part_is_large(device, shape, monkeypatch):
    """Of rows of equal length, too; a column is in one part."""
    rng = np.random.default_rng(2)
    n, each = 5000, 8
    cols = np.sort(rng.random((n, n // 4)).argpartition(each)[:, :each], axis=1) if shape == "equal rows" else None
    if cols is None:
        cols = np.stack([np.zeros(n, int), 1 + np.arange(n)], axis=1)
    sizes, low_bits = [], device.low_bits
    monkeypatch.setattr(device, "low_bits", lambda keys, *given: sizes.append(len(keys)) or low_bits(keys, *given))
    indptr, ids = np.arange(n + 1) * cols.shape[1], cols.ravel().astype(np.int32)
    begins, rows, _ = transpose.by_parts(device, n + 1, indptr, ids, None)
    expected = sparse.csr_array((np.ones(ids.size), ids, indptr), shape=(n, n + 1)).tocsc()
    assert np.array_equal(begins, expected.indptr) and np.array_equal(rows, expected.indices)
    assert sum(sizes) == ids.size
    assert max(sizes) <= ids.size // transpose.PARTS + np.bincount(ids).max()
