"""What a device does not own it never sees: kernels of a CPU device get its own buffers only, and unwritten memory is
poison."""

import numpy as np
import pytest
from checked import verified

import gbgpu as gb
from gbgpu import settings
from gbgpu.device.cpu import CpuDevice
from gbgpu.distribute import blocks
from gbgpu.io import rmat


def base(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@pytest.fixture
def watched(monkeypatch):
    """Three unequal devices. Every buffer has an owner; new ones hold garbage; a kernel with another device's buffer
    fails the test."""
    owners: dict[int, tuple[str, np.ndarray]] = {}
    broken: list[str] = []

    def own(device: CpuDevice, array: np.ndarray) -> np.ndarray:
        owners[id(base(array))] = device.name, array  # the reference keeps the id from being given again
        return array

    def poisoned(self, n, dtype):
        array = np.empty(n, dtype)
        array.view(np.uint8)[...] = 0xA5 if np.dtype(dtype) != bool else 1
        return own(self, array)

    monkeypatch.setattr(CpuDevice, "empty", poisoned)
    monkeypatch.setattr(CpuDevice, "zeros", lambda self, n, dtype: own(self, np.zeros(n, dtype)))
    monkeypatch.setattr(CpuDevice, "full", lambda self, n, value, dtype: own(self, np.full(n, value, dtype)))
    monkeypatch.setattr(CpuDevice, "put", lambda self, array: own(self, np.array(array)))
    monkeypatch.setattr(settings, "inline", "always")
    monkeypatch.setattr(settings, "staged", True)
    session = gb.init("cpu:3", gb.partition.shares(1, 5, 3))
    current = [""]
    plain_over, plain_get, plain_block = session.device_set.over, session.kernels.get, blocks.MatrixBlock.__init__

    def block(self, *arguments):
        """What a device makes of a matrix is its own, whichever way it was made."""
        plain_block(self, *arguments)
        for array in (self.indptr, self.cols, self.vals) if current[0] else ():
            owners.setdefault(id(base(array)), (current[0], array))

    def over(tasks, work, seconds, whole=False):
        def watched_work(task):
            current[0] = session.devices[task.device].name
            try:
                return work(task)
            finally:
                current[0] = ""

        return plain_over(tasks, watched_work, seconds, whole)

    def get(kind, spec):
        kernel = plain_get(kind, spec)

        def checked(*args):
            for argument in args:
                if current[0] and isinstance(argument, np.ndarray):
                    owner = owners.get(id(base(argument)), (current[0], None))[0]
                    if owner != current[0]:
                        broken.append(f"{kind} on {current[0]} was given a buffer of {owner}")
            return kernel(*args)

        return checked

    monkeypatch.setattr(session.device_set, "over", over)
    monkeypatch.setattr(session.kernels, "atomic", False)  # every call goes through `over`
    monkeypatch.setattr(blocks.MatrixBlock, "__init__", block)
    monkeypatch.setattr(session.kernels, "get", get)
    yield broken
    gb.init("cpu:1")


def test_algorithms_on_poisoned_private_blocks(watched):
    A = rmat(9, 6, seed=3, weights=(1, 255))
    verified(A)
    assert not watched, watched[:5]


@pytest.mark.parametrize("weights", [None, (1, 255)])
def test_rows_come_to_who_asks_for_them(watched, weights):
    A, rows = rmat(9, 6, seed=3, weights=weights), np.random.default_rng(0).integers(0, 512, 700)
    made = [A[some, :].new().to_scipy_sparse() for some in (rows, rows[:1], rows[:0], np.sort(rows))]
    assert not watched, watched[:5]
    S = A.to_scipy_sparse()
    for some, found in zip((rows, rows[:1], rows[:0], np.sort(rows)), made, strict=True):
        assert (found != S[some]).nnz == 0
    settings.staged = False  # then they are taken where they lie
    again = A[rows, :].new()
    assert any("move_rows" in line for line in watched) and (again.to_scipy_sparse() != made[0]).nnz == 0


def test_the_watch_itself_sees_a_foreign_buffer(watched):
    A, x = rmat(6, 4, seed=1), gb.Vector.from_dense(np.ones(64))
    x._store.blocks[1].vals = x._store.blocks[0].vals  # what must never happen
    gb.Vector(float, 64) << x.apply("+", right=1.0)
    assert any("buffer of cpu:0" in line for line in watched)
    assert A.nvals
