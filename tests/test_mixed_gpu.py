"""CPU devices beside a GPU in one session. (The other tests run on such a set if GBGPU_TEST_DEVICES names it.)"""

from __future__ import annotations

import numpy as np
import pytest
from checked import verified

import algos
import gbgpu as gb
from gbgpu.device import cuda
from gbgpu.errors import OutOfMemory
from gbgpu.io import rmat
from gbgpu.semiring import plus_times

pytestmark = pytest.mark.skipif(not cuda.available(), reason="needs a GPU")


def start(*shares: float, devices: str = "cuda:0,cpu:2") -> None:
    gb.init(devices, gb.partition.shares(*shares) if shares else None)


def test_devices_and_who_owns_what():
    start()
    assert [info["name"] for info in gb.device_info()] == ["cuda:0", "cpu:0", "cpu:1"]
    assert [info["kind"] for info in gb.device_info()] == ["cuda", "cpu", "cpu"]
    A = rmat(14, 16, seed=1)
    first, *others = gb.block_sets(A).entries
    assert 50 * max(others) < first < A.nvals and min(others) > 0  # by their speeds
    assert set(A.memory()) == {"cuda:0", "cpu:0", "cpu:1"} and A.memory()["cuda:0"] > 10 * A.memory()["cpu:1"]


@pytest.mark.parametrize("shares", [(1, 5, 3), (9, 1, 0), (0, 1, 1), (1, 0, 0)])
def test_algorithms(shares):
    start(*shares)
    A = rmat(11, 8, seed=3, weights=(1, 255))
    for _ in range(2):
        verified(A)


def test_other_streams():
    """Devices of other threads wait for the stream that the caller gives work to."""
    import cupy

    start(1, 1, 1)
    A, x = rmat(16, 8, seed=1), np.random.default_rng(0).integers(0, 9, 1 << 16)
    gb.settings.inline_seconds, before = 0.0, gb.settings.inline_seconds
    try:
        for _ in range(20):
            with cupy.cuda.Stream(non_blocking=True):
                v = gb.Vector.from_dense(x)
                for _ in range(3):
                    v << plus_times(A @ v)
                found = v.to_dense(0)
            rows, cols, vals = A.to_csr()
            expected = x
            for _ in range(3):
                expected = np.add.reduceat(np.append(vals * expected[cols], 0), rows[:-1]) * (np.diff(rows) > 0)
            assert (found == expected).all()
    finally:
        gb.settings.inline_seconds = before


def test_loops_and_traces():
    start(1, 1, 1)
    A = rmat(10, 8, seed=2)
    q, levels = gb.Vector(bool, A.nrows), gb.Vector(int, A.nrows)
    q[5] = True
    with gb.trace() as records, gb.loop() as it:
        levels(q.S) << it.index
        q(~levels.S, gb.replace) << gb.semiring.any_pair(q @ A)
        it.until(q.nvals == 0)
    assert "CPU devices compute beside GPUs" in it.how
    moved = {r.device: 0 for r in records if r.device != "host"}
    for r in records:
        if r.device != "host":
            moved[r.device] += r.bytes
    assert set(moved) == {"cuda:0", "cpu:0", "cpu:1"} and all(moved.values())
    assert levels.isequal(algos.bfs_levels(A, 5))


def test_more_than_the_gpu_holds():
    """With room for a part of a graph on the GPU, the rest lies on the host."""
    import cupy

    i, j = np.random.default_rng(1).integers(0, 1 << 16, (2, 1 << 21))
    w = np.ones(len(i), np.float32)
    pool = cupy.get_default_memory_pool()
    gb.init("cpu:1")
    whole = gb.Matrix.from_coo(i, j, w, nrows=1 << 16, ncols=1 << 16, dup_op="plus")
    ranks = algos.pagerank(whole, tol=1e-9)[0].to_dense()
    pool.free_all_blocks()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + (12 << 20))
    try:
        gb.init("cuda:0")
        with pytest.raises(OutOfMemory):
            A = gb.Matrix.from_coo(i, j, w, nrows=1 << 16, ncols=1 << 16, dup_op="plus")
            algos.pagerank(A)
        A = None
        start(1, 8, 8)
        A = gb.Matrix.from_coo(i, j, w, nrows=1 << 16, ncols=1 << 16, dup_op="plus")
        assert A.memory()["cuda:0"] < 2 << 20 < 7 << 20 < A.memory()["cpu:0"]
        found = algos.pagerank(A, tol=1e-9)[0].to_dense()
        assert abs(found - ranks).sum() < 1e-8
    finally:
        A = None
        gb.init("cpu:1")
        pool.set_limit(size=before)
