"""A third backend: devices of a kind that nothing in the engine knows by name."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
import scipy.sparse.csgraph as csgraph
from conftest import Devices
from hypothesis import given, settings
from oracle import Run
from test_statements import KINDS

import algos
import gbgpu as gb
from algos import verify
from gbgpu.device.cpu import CpuDevice, CpuDevices
from gbgpu.kernels import backends
from gbgpu.kernels.cpu import CpuKernels
from gbgpu.semiring import min_plus, plus_times


class OtherDevice(CpuDevice):
    """A device of another kind. The host does not see what its buffers hold."""

    kind, shares_memory, captures = "other", False, ""

    def __init__(self, index: int):
        super().__init__(index)
        self.name = f"other:{index}"

    def peek(self, buffer):
        return None


class OtherDevices(CpuDevices):
    def __init__(self, k: int):
        super().__init__(k)
        self.devices = [OtherDevice(i) for i in range(k)]


class OtherKernels(CpuKernels):
    kind = "other"


@pytest.fixture(params=["other:0", "other:0*3"])
def others(request, monkeypatch):
    """A session on devices of a kind that is one more row of BACKENDS."""

    def opened(parts, spec):
        return OtherDevices(parts[0].copies), OtherKernels()

    monkeypatch.setitem(backends.BACKENDS, "other", opened)
    count = 3 if "*" in request.param else 1
    return gb.init(request.param, gb.partition.shares(1, 5, 3) if count == 3 else None)


@settings(max_examples=300 if p.WIDE else 15)
@given(program=p.programs(KINDS["mixed"]))
def test_random_statements(others, program):
    devices = Devices(others.spec, "shares(1, 5, 3)" * (len(others.devices) > 1), "never")
    devices.start()
    Run(program, devices).all()


def graph():
    return gb.io.rmat(7, 6, seed=3, weights=(1, 255), dtype="INT64")


def test_statements_and_estimates(others):
    A, x = graph(), np.arange(128)
    S, w = A.to_scipy_sparse(), gb.Vector(int, 128)
    for way in ("push", "pull"):
        w(direction=way) << plus_times(A @ gb.Vector.from_dense(x))
        assert np.array_equal(w.to_dense(0), S @ x)
    assert ((A @ A).new().to_scipy_sparse() != S @ S).nnz == 0
    held, peak = gb.estimate_memory(1000, 1000, 10_000)
    assert 80_000 // len(others.devices) < held <= peak < 2_000_000


def test_loops(others):
    """They go by statements, and say why."""
    A, d, q = graph(), gb.Vector(int, 128), gb.Vector(int, 128)
    hops = csgraph.dijkstra(A.to_scipy_sparse(), indices=0)
    for _ in range(3):
        for x in (d, q):
            x.clear()
            x[0] = 0
        with gb.loop() as it:
            q << min_plus(q @ A)
            d(gb.binary.min) << q
            it.until(it.index == 30)
        assert np.array_equal(d.to_dense(-1), np.where(hops < np.inf, hops, -1))
        assert it.how == "statements, as devices of the kind other do not capture rounds"


def test_fixpoints(others):
    """Without rounds, by the numbers of their own kernels; or in rounds, if these have no such kernel."""
    A, kernels = graph(), others.kernels
    hops = csgraph.dijkstra(A.to_scipy_sparse(), indices=0)
    for most, how in ((kernels.relaxing.most, "free"), (0, "rounds")):
        kernels.relaxing = kernels.relaxing._replace(most=most)
        d = gb.Vector(int, 128)
        d[0] = 0
        with gb.fixpoint() as it:
            d(gb.binary.min) << min_plus(d @ A)
        assert np.array_equal(d.to_dense(-1), np.where(hops < np.inf, hops, -1)) and it.how.startswith(how)


def test_algorithms(others):
    A = graph()
    tree = algos.bfs(A, 0)
    verify.bfs(A, 0, *tree)
    verify.pagerank(A, algos.pagerank(A, tol=1e-9).ranks)
    _, labels = csgraph.connected_components(A.to_scipy_sparse(), directed=False)
    found = algos.connected_components(A).to_dense()
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == len(set(labels.tolist()))
