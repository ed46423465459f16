"""A matrix that is turned by parts, by NumPy in place of a GPU's kernels (test_kernels_gpu_matrix.py has these)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gbgpu.device import turning
from gbgpu.device.cpu import CpuDevices


@pytest.fixture
def device():
    found = CpuDevices(1).devices[0]

    def low_bits(keys, bits, out):
        out[:] = keys & (1 << bits) - 1
        return out

    found.firsts = lambda keys, bits, m, dtype: np.searchsorted(keys >> bits, np.arange(m + 1)).astype(dtype)
    found.low_bits = low_bits
    return found


@pytest.mark.parametrize("ptr", ["int32", "int64"])
@pytest.mark.parametrize(("piece", "parts", "samples"), [(1, 8, 3), (7, 3, 1 << 16), (1 << 26, 1, 1), (64, 50, 100)])
def test_the_columns_of_a_matrix(device, ptr, piece, parts, samples, monkeypatch):
    monkeypatch.setattr(turning, "PARTS", parts)
    monkeypatch.setattr(turning, "SAMPLES", samples)
    rng = np.random.default_rng(1)
    for n, m, count in ((1, 1, 1), (5, 1, 5), (1, 90, 30), (300, 70, 900), (40, 500, 60), (50, 50, 2500)):
        places = rng.choice(n * m, count, replace=False)
        rows, cols = np.divmod(places, m)
        A = sparse.coo_array((rng.integers(1, 99, count), (rows, cols)), shape=(n, m)).tocsr()
        A.sort_indices()
        given = A.indptr.astype(ptr), A.indices.astype(np.int32)
        expected = A.tocsc()
        for vals in (A.data, None):
            begins, rows, moved = turning.by_parts(device, m, *given, vals, piece)
            assert (begins.dtype, rows.dtype) == (ptr, np.int32)
            np.testing.assert_array_equal(begins, expected.indptr)
            np.testing.assert_array_equal(rows, expected.indices)
            assert moved is None if vals is None else np.array_equal(moved, expected.data)
