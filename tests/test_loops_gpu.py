"""Loops that run on a GPU as CUDA graphs: the same as by statements, and on the device where that is promised."""

from __future__ import annotations

import os

import numpy as np
import programs as p
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from test_loops import KINDS, agree

import gbgpu as gb
from gbgpu import binary, monoid, replace
from gbgpu.engine.loop import device as compiled
from gbgpu.semiring import any_pair, any_secondi, min_plus, min_second, plus_times

pytestmark = pytest.mark.skipif("cuda:0" not in os.environ.get("GBGPU_TEST_DEVICES", ""), reason="needs a GPU")


@pytest.fixture
def gpu():
    gb.init("cuda:0")
    if not pytest.importorskip("gbgpu.device.graph").available():
        pytest.skip("needs cuda-bindings and CUDA 12.4")


def road(n: int = 3000, seed: int = 1):
    """A ring with some chords: searches of it take hundreds of rounds."""
    rng = np.random.default_rng(seed)
    i = np.r_[np.arange(n), rng.integers(0, n, 20)]
    j = np.r_[(np.arange(n) + 1) % n, (rng.integers(0, 40, 20) + i[n:]) % n]
    w = rng.integers(1, 9, len(i)).astype(np.float32)
    return gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], np.r_[w, w], nrows=n, ncols=n, dup_op="min")


def levels(A, rounds=None, repeat=gb.loop):
    level, q = gb.Vector(int, A.nrows), gb.Vector(bool, A.nrows)
    q[0] = True
    with repeat(rounds) as it:
        level(q.S) << it.index
        q(~level.S, replace) << any_pair(q @ A)
        it.until(q.nvals == 0)
    return it, level, q


def by_python(A):
    level, q, depth = gb.Vector(int, A.nrows), gb.Vector(bool, A.nrows), 0
    q[0] = True
    while q.nvals:
        level(q.S) << depth
        q(~level.S, replace) << any_pair(q @ A)
        depth += 1
    return level, depth


def test_levels(gpu):
    A = road()
    it, level, q = levels(A)
    expected, depth = by_python(A)
    assert level.isequal(expected) and it.rounds == depth and it.converged and q.nvals == 0
    assert it.how.startswith("a graph"), it.how
    level << level + 1  # what a loop leaves is written as anything else
    assert level.isequal((expected + 1).new())


def test_rounds_are_limited(gpu):
    A = road()
    for rounds in (1, 5, 8, 9, 10, 11, 50):
        it, level, _ = levels(A, rounds)
        assert it.rounds == rounds and not it.converged and int(level.reduce("max").new().value) == rounds - 1


def test_parents(gpu):
    A = road()
    levels_, parents, q = (gb.Vector(int, A.nrows) for _ in range(3))
    q[0] = 0
    with gb.loop() as it:
        levels_(q.S) << it.index
        parents(q.S) << q
        q(~parents.S, replace) << any_secondi(q @ A)
        it.until(q.nvals == 0)
    assert it.how.startswith("a graph"), it.how
    import algos.verify

    algos.verify.bfs(A, 0, levels_, parents)


def test_distances(gpu):
    A = road()
    d, q = gb.Vector("FP32", A.nrows), gb.Vector("FP32", A.nrows)
    d[0], q[0] = 0, 0
    with gb.loop() as it:
        new = min_plus(q @ A).new()
        q(replace, mask=new.S) << new
        better = binary.islt["FP32"](new & d).new()
        q(~better.V & d.S, replace) << q if False else q << new
        it.until(it.index == 40)
    assert it.rounds == 41
    expected, step = gb.Vector("FP32", A.nrows), gb.Vector("FP32", A.nrows)
    step[0] = 0
    for _ in range(41):
        step << min_plus(step @ A)
    assert q.isclose(step) and expected.nvals == 0


def test_components(gpu):
    A = road()
    label, before = gb.Vector.from_dense(np.arange(A.nrows)), gb.Vector(int, A.nrows)
    with gb.loop() as it:
        before << label
        label(binary.min) << min_second(A @ label)
        it.until(binary.isne(before & label).reduce(monoid.lor["BOOL"] if False else "max") == 0)
    assert label.to_dense().max() == 0 and it.how.startswith("a graph"), it.how


def test_ranks(gpu):
    A = road()
    n = A.nrows
    degree = A.reduce_rowwise("plus").new("FP32")
    r, t, change = (gb.Vector("FP32", n) for _ in range(3))
    r[:] = 1 / n
    with gb.loop(200) as it:
        t << plus_times(A.T @ (r / degree).new())
        t << t * 0.85 + 0.15 / n
        change << abs(binary.minus(t & r))
        r << t
        it.until(change.reduce() < 1e-7)
    x, dense = np.full(n, 1 / n, np.float32), A.to_scipy_sparse()
    for _ in range(it.rounds):
        x = (dense.T @ (x / degree.to_dense())) * np.float32(0.85) + np.float32(0.15 / n)
    np.testing.assert_allclose(r.to_dense(), x, rtol=1e-4)
    assert it.how.startswith("a graph"), it.how


def test_a_wide_frontier_goes_back_to_statements(gpu):
    A = gb.io.generate.rmat(14, 8, seed=1, dtype="BOOL")
    rows, cols, _ = A.to_coo()
    n = A.nrows
    tail = np.arange(n, n + 60)
    i, j = np.r_[rows, tail[:-1], [tail[-1]]], np.r_[cols, tail[1:], [int(rows[0])]]
    B = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=n + 60, ncols=n + 60, dup_op="any")
    level, q = gb.Vector(int, n + 60), gb.Vector(bool, n + 60)
    q[n] = True
    with gb.loop() as it:
        level(q.S) << it.index
        q(~level.S, replace) << any_pair(q @ B)
        it.until(q.nvals == 0)
    check, front, depth = gb.Vector(int, n + 60), gb.Vector(bool, n + 60), 0
    front[n] = True
    while front.nvals:
        check(front.S) << depth
        front(~check.S, replace) << any_pair(front @ B)
        depth += 1
    assert level.isequal(check) and it.rounds == depth


@settings(max_examples=600 if p.WIDE else 80)
@given(data=st.data())
def test_random_bodies(gpu, data):
    program = data.draw(p.programs(KINDS, most=4, small=True))
    body = [("", statement.text()) for statement in program.statements]
    rounds = data.draw(st.integers(5, 9))
    note(f"{rounds} rounds of {body}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "ALIKE", 1)
        agree(program, body, rounds, rtol=1e-5)


def test_a_loop_without_end_is_stopped(gpu):
    import _thread
    import threading

    A = road()
    v = gb.Vector.from_dense(np.ones(A.nrows, np.float32))
    threading.Timer(1.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt), gb.loop() as it:
        v << plus_times(A @ v) * 0.01
        it.until(it.index < 0)
    assert it.rounds > 1000
    v << 1
    assert v.nvals == A.nrows


def test_memory_stays(gpu):  # of the process: tests beside it would show
    import cupy

    A = road(400)
    for _ in range(5):
        levels(A)
    before = cupy.cuda.runtime.memGetInfo()[0]
    for _ in range(60):
        levels(A)
    assert before - cupy.cuda.runtime.memGetInfo()[0] < 64 << 20
