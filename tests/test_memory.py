"""`estimate_memory` against what building a matrix really takes: tracemalloc sees NumPy's arrays, a hook of CuPy's pool
those on a GPU."""

from __future__ import annotations

import gc
import pickle
import tracemalloc

import numpy as np
import pytest

import gbgpu as gb
from gbgpu.device import cpu, cuda
from gbgpu.engine import gate, stores

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
    """Bytes of CuPy arrays: held on the first GPU, where most is; the peak is that of all, as it is reached there."""

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

        self.hook, self.before = Hook(), self.used()
        self.hook.__enter__()
        return self

    def used(self) -> int:
        import cupy

        with cupy.cuda.Device(0):
            return cupy.get_default_memory_pool().used_bytes()

    def read(self) -> tuple[int, int]:
        return self.used() - self.before, self.hook.peak

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


TOO_LARGE = [
    "A[5, 7] = 1",
    "A.T.new()",
    "(C @ C).new()",
    "(C + C.T).new()",
    "C.reduce_columnwise().new()",
    "C << 1",
    "C.to_coo()",
    "C.to_dense(0)",
    "C.ss.export('bitmapr')",
    "pickle.dumps(C)",
    "repr(C)",
    "gb.sparse.eye_array(N)",
    "C.diag()",
    "C.resize(2 * N, N)",
    "x.diag()",
    "x.outer(x).new()",
    "C.kronecker(C).new()",
    "full.to_coo()",
    "full.to_dense()",
    "pickle.dumps(full)",
    "(full + x).new()",
    "x[3:].new()",
    "x[3:] << 5",
    "gb.Matrix.from_coo([1], [2], [3], nrows=N, ncols=N)",
    "gb.Matrix.from_coo([N], [2], [3])",
    "gb.Matrix.from_scalar(1, 100, 100)",
    "gb.Matrix.from_coo(np.arange(60), np.arange(60), 1).kronecker(gb.Matrix.from_scalar(1, 10, 10)).new()",
]


@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3"])
@pytest.mark.parametrize("text", TOO_LARGE)
def test_what_does_not_fit_is_refused_before_it_is_touched(monkeypatch, text, spec):
    """The kernel grants more memory than there is, and kills who uses it."""
    N = 5000
    gb.init(spec)
    made = {
        "A": gb.Matrix(int, N, N),
        "C": gb.Matrix.from_coo([1, 2], [3, 4], [5, 6], nrows=N, ncols=N),
        "x": gb.Vector.from_coo([1, 9], [2, 3], size=N),
        "full": gb.Vector.from_scalar(1.5, N),
    }
    with monkeypatch.context() as patched:
        patched.setattr(cpu, "LARGE", 1000)
        patched.setattr(stores, "LARGE", 1000)
        patched.setattr(cpu, "host_memory", lambda: (4000, 100_000))
        with pytest.raises(gb.exceptions.OutOfMemory, match=r"expected \d+ bytes .*came 4000 of 100000 bytes free"):
            exec(text, {"gb": gb, "np": np, "pickle": pickle, "N": N} | made)
    assert [x.nvals for x in made.values()] == [0, 2, 2, N] and made["C"].shape == (N, N)


def test_huge_vectors_of_few_entries_take_no_room():
    gb.init("cpu:3")
    x = gb.Vector(int, 2**50)
    x[2**49] = 3
    x += 4
    assert x.to_dict() == {2**49: 7} and x.reduce().new().value == 7 and "2" in repr(x)
    everywhere = gb.Vector.from_scalar(2, 2**50)
    assert everywhere.nvals == 2**50 and everywhere[2**40].value == 2
    with pytest.raises(gb.exceptions.OutOfMemory, match="of shape"):
        everywhere.to_coo()


def test_the_host_says_what_is_free():
    free, total = cpu.host_memory()
    assert 0 < free <= total
