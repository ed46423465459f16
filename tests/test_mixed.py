"""CPU devices beside what stands for a GPU: a device of the host that tells as little as GPUs do. (test_mixed_gpu.py
has the real ones.)"""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from checked import verified
from conftest import Devices
from hypothesis import given, note, settings
from oracle import Run
from test_statements import KINDS

import gbgpu as gb
from algos import predicate_filter
from gbgpu.device.cpu import CpuDevice
from gbgpu.device.mixed import _Beside
from gbgpu.errors import OutOfMemory
from gbgpu.io import rmat
from gbgpu.kernels import backends
from gbgpu.kernels.cpu import CpuKernels


class Alone(CpuDevice):
    """It is given its tasks by the caller's thread, and the host does not see what it has."""

    kind, shares_memory, gpu = "cuda", False, 0

    def __init__(self):
        super().__init__(0)
        self.name = "cuda:0"

    def peek(self, buffer):
        return None


class StandIn:
    """A set of one such device."""

    switches, one_memory, direct = True, True, True

    def __init__(self):
        self.devices = [Alone()]

    def over(self, tasks, work, seconds, whole=False):
        return [work(task) for task in tasks]

    def streams(self):
        return {}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(backends, "_cuda", lambda parts, spec: (StandIn(), CpuKernels()))


SET = Devices("cuda:0,cpu:2", "shares(1, 5, 3)", "never")


@settings(max_examples=500 if p.WIDE else 25)
@given(program=p.programs(KINDS["mixed"]))
def test_random_statements(stand_in, program):
    note(SET.text())
    SET.start()
    Run(program, SET).all()


def test_segments_go_to_whichever_is_free():
    SET.start()
    values = np.arange(1000) % 17
    assert predicate_filter(values, ">", 11, segment=30).tolist() == values[values > 11].tolist()


def test_algorithms_and_loops():
    SET.start()
    A = rmat(7, 6, seed=3, weights=(1, 255))
    verified(A)
    v = gb.Vector.from_dense(np.ones(9))
    with gb.loop(9) as it:
        v << v + 1
    assert "CPU devices" in it.how and v.reduce().new().value == 90


def test_rows_by_speed():
    gb.init("cuda:0,cpu:2")
    sets = gb.block_sets(rmat(14, 16, seed=1))
    assert 50 * max(sets.entries[1:]) < sets.entries[0] and min(sets.entries) > 0
    gb.init("cuda:0,cpu:2", gb.partition.equal_rows())
    assert gb.block_sets(rmat(10, 8, seed=1)).rows == (341, 342, 341)


def test_what_a_device_raises_is_raised(monkeypatch):
    SET.start()
    A = rmat(8, 8, seed=1)
    x = gb.Vector.from_dense(np.ones(A.nrows))
    for kind in (Alone, _Beside):
        with monkeypatch.context() as patch:

            def full(self, n, dtype):
                raise MemoryError(self.name)

            patch.setattr(kind, "empty", full)
            with pytest.raises(OutOfMemory, match="cuda:0" if kind is Alone else "cpu:"):
                gb.semiring.plus_times(A @ x).new()
        assert gb.semiring.plus_times(A @ x).new().reduce().new().value == float(A.reduce_scalar("plus").new().value)
