"""`estimate_memory` against what building a matrix really takes: tracemalloc sees NumPy's arrays, a hook of CuPy's pool
those on a GPU."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import gbgpu as gb
from gbgpu.device import cuda
from gbgpu.engine import gate

KINDS = {"FP32": np.float32, "FP64": np.float64, "BOOL": None}


class Host:
    """Bytes of NumPy arrays."""

    xp = np

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        self.before = tracemalloc.get_traced_memory()[0]
        return self

    def read(self) -> tuple[int, int]:
        now, peak = tracemalloc.get_traced_memory()
        return now - self.before, peak - self.before

    def __exit__(self, *error):
        tracemalloc.stop()


class Gpu:
    """Bytes of CuPy arrays."""

    def __enter__(self):
        from cupy.cuda import memory_hook

        class Hook(memory_hook.MemoryHook):
            name = "peak"
            now = peak = 0

            def malloc_postprocess(self, **call):
                self.now += call["mem_size"]
                self.peak = max(self.peak, self.now)

            def free_postprocess(self, **call):
                self.now -= call["mem_size"]

        self.hook = Hook()
        self.hook.__enter__()
        return self

    def read(self) -> tuple[int, int]:
        return self.hook.now, self.hook.peak

    def __exit__(self, *error):
        self.hook.__exit__(*error)


def build(watch, n: int, count: int, dtype: str):
    """(held and peak, the estimate) of a matrix of distinct entries in random order."""
    if isinstance(watch, Host):
        xp = np
    else:
        import cupy as xp
    keys = xp.unique(xp.random.randint(0, n * n, count).astype(np.int64))
    xp.random.shuffle(keys)
    rows, cols = keys // n, keys % n
    values = True if KINDS[dtype] is None else xp.ones(len(keys), KINDS[dtype])
    gb.Matrix.from_coo(rows, cols, values, nrows=n, ncols=n)  # what a session makes once for a size
    with watch:
        A = gb.Matrix.from_coo(rows, cols, values, nrows=n, ncols=n)
        found = watch.read()
    return found, gb.estimate_memory(n, n, A.nvals, dtype, iso=dtype == "BOOL")


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [20_000, 300_000, 1_200_000])
def test_estimates_are_near(devices, n, dtype):
    watch, count = (Host(), 600_000) if devices.spec.startswith("cpu") else (Gpu(), 10_000_000)
    n = n if isinstance(watch, Host) else n * 10
    (held, peak), estimate = build(watch, n, count, dtype)
    assert 0.85 < estimate.held / held < 1.15 and 0.85 < estimate.peak / peak < 1.15, (held, peak, estimate)


if cuda.available():  # host arrays are sorted at once

    @pytest.mark.parametrize("dtype", KINDS)
    def test_building_in_chunks_takes_less(dtype, monkeypatch):
        gb.init("cuda:0")
        (_, whole), _ = build(Gpu(), 100_000, 10_000_000, dtype)
        monkeypatch.setattr(gate, "CHUNK", 1_000_000)
        (_, peak), estimate = build(Gpu(), 100_000, 10_000_000, dtype)
        assert peak < 0.9 * whole and 0.85 < estimate.peak / peak < 1.6, (peak, whole, estimate)


def test_sizes_are_checked():
    with pytest.raises(gb.exceptions.InvalidValue, match="sizes from 0 on"):
        gb.estimate_memory(3, -1, 5)
    assert gb.estimate_memory(0, 0, 0) == (0, 0)
