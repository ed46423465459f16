"""Blocks of more than 2**31 and 2**32 entries. Collected where a GPU has the memory."""

from __future__ import annotations

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import semiring
from gbgpu.device import cuda
from gbgpu.exceptions import OutOfMemory

__test__ = bool(cuda.available()) and cuda.info(0)["memory"] > 120e9
N = 1 << 22


def band(xp, width: int) -> tuple:
    """(first column of each row, the matrix): row i holds `width` neighbouring columns from a place that depends on
    i."""
    first = xp.arange(N, dtype=xp.int64) * 7919 % (N - width)
    indptr = xp.arange(N + 1, dtype=xp.int64) * width
    cols = xp.empty(N * width, xp.int32)
    step = 1 << 16
    for row in range(0, N, step):
        some = first[row : row + step, None] + xp.arange(width)
        cols[row * width : (row + step) * width] = some.ravel()
    return first, gb.Matrix.from_csr(indptr, cols, True, ncols=N)


@pytest.mark.parametrize("width", [520, 1100])
def test_more_entries_than_32_bits_count(width):
    gb.init("cuda:0")
    import cupy as xp

    first, A = band(xp, width)
    assert A.nvals == N * width > (1 << 31 if width == 520 else 1 << 32)
    assert A.reduce_scalar(gb.monoid.plus["INT64"]).new().value == A.nvals
    assert A.get(N - 1, int(first[-1]) + width - 1) is True
    assert A.get(N - 1, int(first[-1]) + width) is None

    x = xp.random.RandomState(1).randint(0, 1000, N)  # integers: sums of neighbours are differences of prefix sums
    upto = xp.concatenate([xp.zeros(1, x.dtype), xp.cumsum(x)])
    expected = upto[first + width] - upto[first]
    found = semiring.plus_second(A @ gb.Vector.from_dense(x)).new(direction="pull")
    assert bool((xp.asarray(found.to_dense()) == expected).all())

    some = np.array([0, 5, N - 1])
    v = gb.Vector.from_coo(some, True, size=N)
    reached = semiring.any_pair(v @ A).new(direction="push")
    columns = np.unique(np.concatenate([np.arange(f, f + width) for f in first[some].get().tolist()]))
    assert np.array_equal(reached.to_coo()[0], columns)
    touching = semiring.any_pair(A @ v).new(mask=v.S, direction="pull").to_coo()[0]
    ends = first[some].get()
    meets = [((some >= f) & (some < f + width)).any() for f in ends]
    assert touching.tolist() == some[meets].tolist()
    degrees = semiring.plus_pair(A @ gb.Vector.from_scalar(True, N)).new()
    assert bool((xp.asarray(degrees.to_dense()) == width).all())


def test_the_session_goes_on_after_running_out_of_memory():
    gb.init("cuda:0")
    import cupy as xp

    _, A = band(xp, 1100)
    held = []
    with pytest.raises(OutOfMemory, match=r"bytes.*bytes free"):
        for _ in range(8):
            held.append(A.apply(gb.indexunary.rowindex).new())
    assert 1 < len(held) < 8
    del held
    v = gb.Vector.from_coo([3], True, size=N)
    assert semiring.any_pair(v @ A).new(direction="push").nvals == 1100
