"""Loops that go round by themselves, as CUDA graphs or as lists of calls: the same as by statements."""

from __future__ import annotations

import dataclasses
import gc
import operator
import os
import signal
import sys
import threading
import weakref
from contextlib import nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import assignments
import numpy as np
import programs as p
import pytest
import statements
from conftest import present
from hypothesis import given, note, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra
from test_loops import KINDS, agree, certain, numbers

import algos
import algos.verify
import gbgpu as gb
from gbgpu import balance, binary, interrupts, modes, monoid, replace, select
from gbgpu.device import nvrtc
from gbgpu.device import rounds as on_gpus
from gbgpu.device.cpu import CpuDevice
from gbgpu.distribute.blocks import VectorStore
from gbgpu.engine import dealing, direction, moving, sharing
from gbgpu.engine.loop import body, captured, captured_loops, journal, limits, single_device, tapes, ways, writing
from gbgpu.engine.loop import condition as condition_module
from gbgpu.engine.loop import device as compiled
from gbgpu.engine.loop.loans import Loans
from gbgpu.errors import DeviceError
from gbgpu.kernels import resident as resident_kernels
from gbgpu.language import recording
from gbgpu.semiring import any_pair, any_secondi, min_plus, min_second, plus_times
from gbgpu.semiring._types import BOOL, FP32
from gbgpu.trace import beside, counters

# Devices, shares, and whether one kernel runs a loop of a GPU; whether several GPUs never leave it to one of them;
# whether a thread for each CPU device goes through a round.
SETS = [("cpu:1", None, ""), ("cpu:3", (2, 5, 3), ""), ("cpu:7", None, "")]
SETS += [("cpu:2", (2, 5), "side by side"), ("cuda:0-1", None, "always")]
SETS += [(*each, how) for each in (("cuda:0", None), ("cuda:0*3", (2, 5, 3))) for how in ("always", "never")]
SETS += [("cuda:0-1", None, f"{how} together") for how in ("always", "never")]
SETS += [("cuda:0-1*2", (1, 4, 2, 3), "always together"), ("cuda:0-3", None, "always")]
SETS += [("cuda:0-3", (1, 97, 1, 1), f"{how} together") for how in ("always", "never")]
SETS += [("cuda:0-3*2", None, "always together")]
SETS = present(SETS)
# The ordinary run goes through random bodies on each set. The other tests have one device, three of unequal shares and
# GPUs; seven devices do what three do. Threads that meet in each round have the tests of how rounds go on.
SEVEN, BESIDE = SETS[2:4]
LEFT = ("cuda:0-1", "cuda:0-3")  # GPUs that may leave loops to the first of them, in some of the sets
ORDINARY = SETS if p.WIDE else [each for each in SETS if each not in (SEVEN, BESIDE)]
GPUS = [each for each in ORDINARY if each[0].startswith("cuda")]


def named(each) -> str:
    return f"{each[0]} {each[2]}".strip()


@pytest.fixture(params=ORDINARY, ids=named)
def machine(request, monkeypatch):
    """Devices on which kernels are compiled, and loops as soon as may be."""
    spec, shares, resident = request.param
    if spec.startswith("cuda"):
        if not pytest.importorskip("gbgpu.device.graph").available():
            pytest.skip("needs cuda-bindings and CUDA 12.4")
    monkeypatch.setattr(gb.settings, "interpret", False)
    if "together" in resident:
        monkeypatch.setattr(compiled, "MET", -1)
    if resident == "side by side":
        monkeypatch.setattr(tapes, "SHARED", -1.0)
        monkeypatch.setattr(tapes, "cores", lambda: [0, 1])
    monkeypatch.setattr(gb.settings, "resident", resident.split(" ")[0])
    monkeypatch.setattr(resident_kernels, "SOON", not p.WIDE)
    gb.init(spec, partition=shares and gb.partition.shares(*shares))
    return spec


def on(sets):
    """The sets on which a test runs, where they are not the ordinary ones."""
    return pytest.mark.parametrize("machine", sets, indirect=True, ids=named)


every_set = on(SETS)
threads_too = on(SETS if p.WIDE else [*ORDINARY, BESIDE])


def by_itself(it) -> bool:
    return not it.how.startswith("statements")


def road(n: int = 1500, seed: int = 1):
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


def by_python(A, source=0):
    level, q, depth = gb.Vector(int, A.nrows), gb.Vector(bool, A.nrows), 0
    q[source] = True
    while q.nvals:
        level(q.S) << depth
        q(~level.S, replace) << any_pair(q @ A)
        depth += 1
    return level, depth


@threads_too
def test_levels(machine):
    A = road()
    it, level, q = levels(A)
    expected, depth = by_python(A)
    assert level.isequal(expected) and it.rounds == depth and it.converged and q.nvals == 0
    assert by_itself(it), it.how
    level << level + 1  # what a loop leaves is written as anything else
    assert level.isequal((expected + 1).new())


@threads_too
def test_the_number_of_the_round_is_never_frozen(machine):
    v, w, x = (gb.Vector.from_dense(np.zeros(5, int)) for _ in range(3))
    with gb.loop(20) as it:
        v << it.index
        w << w + v
        x << x + (it.index * 2 + 1)
    assert v[4].value == 19 and w[0].value == sum(range(20)) and x[2].value == 400


@threads_too
def test_guards_and_numbers(machine):
    A, found = road(500), []
    for by_devices in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "ALIKE", 3)
            patch.setattr(compiled, "SOON", 3)
            if not by_devices:
                patch.setattr(compiled.DeviceLoop, "of", lambda *loop: None)
            q, level, sums = gb.Vector(bool, 500), gb.Vector(int, 500), gb.Vector.from_dense(np.zeros(500))
            limit, most, odd = gb.Scalar.from_value(2.0), gb.Scalar.from_value(0), gb.Scalar.from_value(1)
            q[0] = True
            with gb.loop() as it:
                with it.when(it.index >= 0):
                    level(q.S) << it.index
                with it.when(q.nvals > 10**6):
                    q.clear()
                q(~level.S, replace) << any_pair(q @ A)
                most << binary.max(most | level.reduce(monoid.max, allow_empty=False))
                with it.when((most % 3) == 1):
                    limit << limit * 1.5 + odd
                    odd << odd + 2
                    sums << sums.apply(binary.plus, limit)
                    sums << sums.select("<", limit)
                    sums(~sums.S) << limit
                t = q.dup()
                it.until(q.nvals == 0)
            told = it.rounds, level.to_dict(), sums.to_dict(), limit.value, most.value, odd.value, t.nvals, q.nvals
            found.append(told)
            assert by_itself(it) == by_devices, it.how
    assert found[0] == found[1] and found[0][0] > 100


@threads_too
@pytest.mark.parametrize("name", ["FP32", "INT64"] + ["FP64"] * p.WIDE)
def test_shortest_paths(machine, in_rounds, monkeypatch, name):
    """Guards at the beginning that hold or not, one at the end, and a limit that rounds compute."""
    loops, begin = [], recording.Loop.__enter__
    monkeypatch.setattr(recording.Loop, "__enter__", lambda it: loops.append(it) or begin(it))
    for n in (900, 20000):  # of few vertices, forms may differ from round to round
        A = road(n).dup(name)
        algos.verify.sssp(A, n // 2, algos.sssp(A, n // 2))
    assert loops[-1].rounds > 1000 and by_itself(loops[-1]), loops[-1].how


@threads_too
def test_few_rounds(machine):
    """Little enough for tools that watch each access of a kernel."""
    n = 48
    i = np.arange(n)
    rows, cols = np.r_[i, (i + 1) % n], np.r_[(i + 1) % n, i]
    A = gb.Matrix.from_coo(rows, cols, np.ones(2 * n, np.float32), nrows=n, ncols=n)
    far = np.minimum(i, n - i)
    for _ in range(2):
        it, level, _ = levels(A)
        assert (level.to_dense() == far).all() and it.rounds == n // 2 + 1
        d = gb.Vector.from_coo([0], [0], size=n, dtype="FP32")
        new = d.dup()
        with gb.loop() as it:
            new << min_plus(new @ A)
            d(binary.min) << new
            it.until(it.index == 25)
        assert (d.to_dense() == far).all()


@threads_too
def test_parts_of_rounds_that_never_ran_before(machine):
    """What others use as well must last, though it is made while a round is captured, in a part that may never run."""
    found, rows = [], gb.Vector.from_dense(np.arange(400.0))
    for alike in (3, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "ALIKE", alike)
            patch.setattr(compiled, "SOON", alike)
            gb.settings.session().loops.clear()
            x, y, z = (gb.Vector.from_dense(np.arange(1, 401, dtype=np.float32)) for _ in range(3))
            least, never = gb.Scalar.from_value(9.0), gb.Scalar.from_value(0.0)
            with gb.loop(60) as it:
                y << y + 1
                with it.when(it.index > 30):
                    x << x.apply(binary.plus, 2) * 0.5
                    least << y.reduce(monoid.min, allow_empty=False) - 1.5
                with it.when(it.index > 1000):
                    z << binary.times(z & x)
                    z(y.V) << 777
                    never << rows.reduce(monoid.plus, allow_empty=False)
            found.append(((x.to_dict(), y.to_dict(), z.to_dict(), least.value, never.value, it.rounds), it))
            x[:] = 777
            assert x.reduce().new().value == 777 * 400 and rows.reduce().new().value == 400 * 399 / 2
    (one, itself), (two, other) = found
    assert one == two and one[3:5] == (59.5, 0)
    assert by_itself(itself) and not by_itself(other), (itself.how, other.how)


@pytest.mark.few(6)
@threads_too
@pytest.mark.parametrize("stop", range(0, 16, 3 if p.WIDE else 5))
def test_captures_that_break_off_leave_all_as_it_was(machine, monkeypatch, stop):
    """Shortest paths, with guards and numbers, whatever operation can't be captured."""
    perform, count = captured.Captured._perform, iter(range(10**9))

    def some(self, operations, condition):
        done = []
        for operation in operations:
            if next(count) % 17 >= stop:
                raise captured.NotCompiled("it stops here")
            done += perform(self, [operation], condition)
        return done

    monkeypatch.setattr(captured.Captured, "_perform", some)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        i, j = rng.integers(0, 400, (2, 1200))
        A = gb.Matrix.from_coo(i, j, 1 << rng.integers(0, 20, 1200), nrows=400, ncols=400, dup_op="min")
        algos.verify.sssp(A, 5, algos.sssp(A, 5))


@on(GPUS)
@pytest.mark.parametrize("stop", range(0, 16, 3))
def test_captures_that_a_driver_breaks_off(machine, monkeypatch, stop):
    """What no stream can capture, in the round or in a part that is guarded: the loop goes by statements."""
    import cupy

    perform, count = captured.Captured._perform, iter(range(10**9))

    def some(self, operations, condition):
        done = []
        for operation in operations:
            if next(count) % 17 == stop:
                cupy.cuda.get_current_stream().synchronize()
            done += perform(self, [operation], condition)
        return done

    monkeypatch.setattr(captured.Captured, "_perform", some)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        i, j = rng.integers(0, 400, (2, 1200))
        A = gb.Matrix.from_coo(i, j, 1 << rng.integers(0, 20, 1200), nrows=400, ncols=400, dup_op="min")
        algos.verify.sssp(A, 5, algos.sssp(A, 5))
        gc.collect()
        gb.synchronize()


@pytest.mark.parametrize("first", ["written down", "done"])
@on([each for each in SETS if each[0].startswith("cpu")])
def test_conversions_that_are_written_down_are_not_done(machine, first):
    """And those that are done are not written down: what is planned of one is not the other's."""
    session, v = gb.settings.session(), gb.Vector.from_coo([3, 70, 500], [1.5, 2.5, 3.5], size=600)
    expected, store = v.to_dict(), v._store

    def done():
        w = gb.Vector("FP64", 600)
        w._store = moving.moved(session, store, "bitmap", store.map)
        assert w.to_dict() == expected and w._store.form == "bitmap"

    def written_down():
        tape = tapes.CpuTape(session)
        with tape.recording(journal.Journal({}), False):
            moving.moved(session, store, "bitmap", store.map)
        assert tape._replay.length >= store.map.p

    for one in (done, written_down, done) if first == "done" else (written_down, done, written_down):
        one()


def test_parts_that_run_now_and_then_leave_other_forms(machine):
    """Peeling: where a guard holds, the frontier is chosen of all vertices (a bitmap), else of those that arrived."""
    A = gb.io.generate.rmat(11, 16, seed=3, dtype="BOOL")
    A << binary.any(A | A.T)
    for _ in range(4):
        with gb.trace(rounds=True) as records:
            found = algos.core_numbers(A)
        assert algos.verify.core_numbers(A, found) is None
    assert sum(record.step.endswith("round") for record in records) > 20


def test_rounds_read_the_vectors_that_name_indices(machine):
    """Nothing but an index reads p, which the next round takes from the one before: 40 steps of 3 on a ring."""
    ring = np.arange(100)
    steps, p, t = gb.Vector.from_dense((ring + 3) % 100), gb.Vector.from_dense(ring), gb.Vector(int, 100)
    with gb.loop(40) as it:
        t << steps[p]
        p << t
    np.testing.assert_array_equal(p.to_dense(), (ring + 120) % 100)
    carried, inside = body.written(it.body)
    assert [x.name for x in carried] == [p.name] and [x.name for x in inside] == [t.name]


def test_rounds_begin_in_the_forms_that_they_leave(machine):
    """Peeling of a small graph, again and again: what is written down at once goes on from a round in which the guard
    held."""
    rng, n = np.random.default_rng(0), 2000
    i, j = rng.integers(0, n, (2, 6000))
    i, j = i[i != j], j[i != j]
    A = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=n, ncols=n, dup_op="any")
    for _ in range(8):
        with gb.trace(rounds=True) as records:
            found = algos.core_numbers(A)
        assert algos.verify.core_numbers(A, found) is None
    assert sum(record.step.endswith("round") for record in records) > 10


@threads_too
def test_blocks_without_rows_have_no_values(machine, monkeypatch):
    """More devices than rows: a round that was captured takes a vector that was made elsewhere."""
    monkeypatch.setattr(compiled, "SOON", 1)
    monkeypatch.setattr(compiled, "ALIKE", 1)
    A = gb.Matrix.from_coo([0], [0], [2.0], nrows=1, ncols=1)
    for x in (gb.Vector.from_dense([3.0]), gb.Vector(float, 1), gb.Vector.from_scalar(3.0, 1), gb.Vector(float, 1)):
        start = x.get(0, 0.0)
        with gb.loop(60) as it:
            x("+") << A.reduce_rowwise(gb.monoid.plus)
            it.until(it.index < 0)
        assert x.to_dict() == {0: start + 120.0} and it.rounds == 60
    assert by_itself(it)


def test_counts_are_not_read_where_a_round_is_written_down(machine, monkeypatch):
    """Nothing has run then that would have left one. Sums of rows keep those who decide about owners at work."""
    asked, probed = [], direction._probed

    def noted(session, *rest):
        found = probed(session, *rest)
        asked.append((session.counts_unknown, found is not None and any(found[0])))
        return found

    monkeypatch.setattr(direction, "_probed", noted)
    A, mask = road(900), gb.Vector.from_coo([3, 70, 500], True, size=900)
    total = gb.Vector(float, 900)
    with gb.loop(60) as it:
        with it.when(it.index % 2 == 0):
            total(mask.S, binary.plus) << A.reduce_rowwise(monoid.plus)
        it.until(it.index < 0)
    sums = A.reduce_rowwise(monoid.plus).new().to_dict()
    assert total.to_dict() == {i: 30 * sums[i] for i in (3, 70, 500)}
    assert (True, True) not in asked and ((False, True) in asked or not asked)
    if machine.startswith("cpu"):
        assert bool(asked) == (len(gb.settings.session().devices) > 1)


def test_statements_after_rounds_choose_by_counts(machine):
    """A search that is thin at first, then too wide for rounds by themselves."""
    A = gb.io.generate.uniform(1 << 17, 8, seed=3, dtype="BOOL")
    for _ in range(4):
        levels(A)

    def ways(records):
        """The direction of each product by the entries that it left."""
        found = {}
        for r in records:
            if r.step == "move" and r.direction and r.nvals is not None:
                found.setdefault(r.statement, [r.direction, 0])[1] += r.nvals
        return {(total, direction) for direction, total in found.values()}

    with gb.trace() as records:
        by_statements = levels(A)[1]
    with gb.trace(rounds=True) as other:
        found = levels(A)[1]
    assert found.isequal(by_statements)
    if machine in ("cpu:1", "cpu:3", "cuda:0"):
        assert {way for _, way in ways(records)} == {"push", "pull"} and ways(other) <= ways(records)


def test_pulls_for_few_vertices_end(machine):
    """Peeling that is wide at first, then long and thin."""
    n = 2000
    i = np.arange(n)
    rows = np.r_[i[:-1], np.zeros(n - 1, int)]
    cols = np.r_[i[1:], i[1:]]
    A = gb.Matrix.from_coo(np.r_[rows, cols], np.r_[cols, rows], True, nrows=n, ncols=n, dup_op="any")
    expected = algos.core_numbers(A)
    for _ in range(8):
        assert algos.core_numbers(A).isequal(expected)
    assert algos.verify.core_numbers(A, expected) is None


def test_rounds_leave_records(machine):
    A = road()
    levels(A)
    sizes = np.bincount(levels(A)[1].to_dense())
    for limit in (None, 40):
        with gb.trace(rounds=True) as records:
            it, *_ = levels(A, limit)
        found = [r for r in records if r.step.endswith("round")]
        if limit is not None and not by_itself(it):
            continue
        assert found[-1].text == f"{it!r}: {it.how}"  # a second kind of rounds may have come later
        names = [device.name for device in gb.settings.session().devices]
        first, there = [r for r in found if r.device == names[0]], {r.device for r in found}
        left = machine in LEFT and there == {names[0]}  # to the first GPU, as rounds are that small
        assert (left or there == set(names)) and len(found) == len(first) * len(there)
        assert [r.nvals for r in first] == [[*sizes, 0][r.round + 1] for r in first]
        numbers = [r.round for r in first]
        assert numbers == sorted(set(numbers)) and numbers[-1] < it.rounds
        assert {r.direction for r in first} <= {"push", "pull"} and all(r.change is None for r in first)
        assert all(r.start <= r.end <= after.start for r, after in zip(first, first[1:], strict=False))
    for again in range(2):  # numbers that conditions compare
        with gb.trace(rounds=True) as records:
            ranks = algos.pagerank(A, tol=1e-9)
        changes = [r.change for r in records if r.change is not None]
        assert len(changes) > 20 * again and (not changes or 1e-11 < changes[-1] < 1e-9 < changes[-2])
    with gb.trace() as records:  # by statements
        plain = algos.pagerank(A, tol=1e-9)
    assert plain.iterations == ranks.iterations and not any(r.step.endswith("round") for r in records)


def test_rounds_are_told(machine):
    A, told = road(300), []
    for every in (1, 7, 50):
        level, q, heard = gb.Vector(int, 300), gb.Vector(bool, 300), []

        def hear(rounds, heard=heard, level=level, q=q):
            heard.append((rounds, level.nvals, q.nvals))
            if rounds == 21:
                level[299] = 1000  # it goes on from there

        q[0] = True
        with gb.loop(on_iteration=hear, every=every) as it:
            level(q.S) << it.index
            q(~level.S, replace) << any_pair(q @ A)
            it.until(q.nvals == 0)
        told.append((heard[: 50 // every], it.rounds, level[298].value))
        assert [rounds for rounds, *_ in heard] == list(range(every, it.rounds + 1, every))
        assert by_itself(it) == (gb.settings.session().devices[0].kind == "cpu")
    first = dict((rounds, counts) for rounds, *counts in told[0][0])
    assert all(first[rounds] == counts for heard, *_ in told for rounds, *counts in heard)
    assert all(first[rounds][0] >= rounds for rounds in first)


CHANGES = {
    "a vector": lambda v, c, A, most: v << 5,
    "all of a vector": lambda v, c, A, most: v[:] << 5,
    "in place": lambda v, c, A, most: v(binary.plus) << 4,
    "nothing left": lambda v, c, A, most: v.clear(),
    "a number": lambda v, c, A, most: setattr(c, "value", 5),
    "a matrix": lambda v, c, A, most: A << binary.plus(A, 4),
    "an element": lambda v, c, A, most: operator.setitem(A, (3, 3), 7),
    "a condition": lambda v, c, A, most: setattr(most, "value", 25),
    "a guard": lambda v, c, A, most: setattr(most, "value", 2000),
}


@pytest.mark.parametrize("change", CHANGES)
def test_who_is_told_of_a_round_may_change_what_rounds_only_read(machine, change):
    n, found = 50, []

    def told(rounds):
        if rounds == 20:
            CHANGES[change](v, c, A, most)

    for by_steps in (True, False):
        ids = np.arange(n)
        A = gb.Matrix.from_coo(ids, ids, 1, nrows=n, ncols=n)
        x, v = gb.Vector.from_dense(np.zeros(n, int)), gb.Vector.from_dense(np.ones(n, int))
        c, most = gb.Scalar.from_value(1, int), gb.Scalar.from_value(1000, int)
        with gb.trace() if by_steps else nullcontext(), gb.loop(60, on_iteration=told) as it:
            x << plus_times(A @ x)
            x << binary.plus(x & v)
            x << x + c
            with it.when(most > 1500):
                x << x + 100
            it.until(it.index > most)
        found.append((x.to_dict(), it.rounds))
    assert by_itself(it) == (gb.settings.session().devices[0].kind == "cpu")
    assert found[0] == found[1]


def test_loops_are_explained(machine):
    A = road(300)
    it, level, q = levels(A)
    text = str(gb.explain(it))
    assert it.how in text and f"{it.rounds} rounds" in text and "until" in text
    assert ("push" in text and "drain" in text or "pull" in text) and "write" in text and "<<" in text
    before = level.to_dict(), q.nvals
    with gb.explain() as plans, gb.loop() as it:
        level(q.S) << it.index
        with it.when(q.nvals > 5):
            q(~level.S, replace) << any_pair(q @ A)
        it.until(q.nvals == -1)
    assert str(plans).count("<<") == 2 and it.rounds == 0 and (level.to_dict(), q.nvals) == before


SWAPS = ["t = a.dup(); a << b; b << t", "a << b; b << c; c << a", "t = c.dup(); c << b; b << a; a << t"]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("body", SWAPS)
def test_vectors_may_change_places(machine, body, full):
    rounds, found = 20, []
    for repeat in (True, False):
        make = gb.Vector.from_dense if full else (lambda x: gb.Vector.from_coo(x, x, size=1000))
        a, b, c = (make(np.array(x)) for x in ([1, 5, 7], [2, 9, 3], [4, 1, 6]))
        if repeat:
            with gb.loop(rounds):
                exec(body)
        else:
            for _ in range(rounds):
                exec(body)
        found.append([x.to_dict() for x in (a, b, c)])
    assert found[0] == found[1]


@threads_too
def test_rounds_are_limited(machine):
    A = road()
    for rounds in (1, 5, 8, 9, 10, 11, 50):
        it, level, _ = levels(A, rounds)
        assert it.rounds == rounds and not it.converged and int(level.reduce("max").new().value) == rounds - 1


@threads_too
def test_parents(machine):
    A = road()
    levels_, parents, q = (gb.Vector(int, A.nrows) for _ in range(3))
    q[0] = 0
    with gb.loop() as it:
        levels_(q.S) << it.index
        parents(q.S) << q
        q(~parents.S, replace) << any_secondi(q @ A)
        it.until(q.nvals == 0)
    assert by_itself(it), it.how
    algos.verify.bfs(A, 0, levels_, parents)


def test_distances(machine):
    A = road()
    d, q = gb.Vector("FP32", A.nrows), gb.Vector("FP32", A.nrows)
    d[0], q[0] = 0, 0
    with gb.loop() as it:
        new = min_plus(q @ A).new()
        q(replace, mask=new.S) << new
        better = binary.islt["FP32"](new & d).new()
        d(better.V) << new  # nothing is nearer than where it began
        q << new
        it.until(it.index == 40)
    assert it.rounds == 41
    step = gb.Vector("FP32", A.nrows)
    step[0] = 0
    for _ in range(41):
        step << min_plus(step @ A)
    assert q.isclose(step) and d.to_dict() == {0: 0.0}


def test_components(machine):
    A = road()
    label, before = gb.Vector.from_dense(np.arange(A.nrows)), gb.Vector(int, A.nrows)
    with gb.loop() as it:
        before << label
        label(binary.min) << min_second(A @ label)
        it.until(binary.isne(before & label).reduce("max") == 0)
    assert label.to_dense().max() == 0 and by_itself(it), it.how


def test_ranks(machine):
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
    assert by_itself(it), it.how


EMPTY = "a scalar may be empty (.reduce(..., allow_empty=False) always has a value)"
NUMBERS = {  # a statement that reads an expression of scalars, and NumPy's
    "fill": ("r[:] = s / n", lambda r, s, n, k: np.full_like(r, s / n)),
    "fill of a round's number": ("r[:] = s * (it.index + 1)", lambda r, s, n, k: np.full_like(r, s * (k + 1))),
    "accumulated": ("r(binary.plus) << s / n", lambda r, s, n, k: r + s / n),
    "masked": ("r(r.S) << s / n", lambda r, s, n, k: np.full_like(r, s / n)),
    "right": ("r << r / (s + n)", lambda r, s, n, k: r / (s + n)),
    "left": ("r << (s - 1) * r", lambda r, s, n, k: (s - 1) * r),
    "both": ("r << (r - s / n) * (s + 1)", lambda r, s, n, k: (r - s / n) * (s + 1)),
    "limit": ("r << binary.max(r | r.select('>', s / n))", lambda r, s, n, k: r),
    "in it.when": ("with it.when(it.index > 3): r(binary.plus) << s / n", lambda r, s, n, k: r + (k > 3) * s / n),
}


@pytest.mark.few(9)
@pytest.mark.parametrize("name", NUMBERS)
def test_expressions_of_scalars_are_computed_in_each_round(machine, name):
    text, expected = NUMBERS[name]
    A, values = road(), np.linspace(0.5, 1.5, 1500)
    r, s, n = gb.Vector.from_dense(values), gb.Scalar.from_value(1.0), A.nrows
    with gb.loop(60) as it:
        s << r.reduce("max", allow_empty=False)
        exec(text, {"r": r, "s": s, "n": n, "it": it, "binary": binary})
        r << binary.min(r, 2.0)
    for k in range(60):
        values = np.minimum(expected(values, values.max(), n, k), 2.0)
    np.testing.assert_allclose(r.to_dense(), values, rtol=1e-12)
    assert by_itself(it), it.how


def test_what_prevents_compiling_is_named(machine):
    """By its statement, in the words of the loop that asks, whichever was tried before."""
    for _ in range(3):
        r, s = gb.Vector.from_dense(np.linspace(1, 2, 3000)), gb.Scalar(float)
        with gb.loop(60) as it:
            s << r.reduce("plus")  # empty if r is
            r << r / s
        assert it.how == f"statements, as {EMPTY}: {r.name} << {r.name}.apply(binary.truediv[FP64], right={s.name})"
    np.testing.assert_allclose(r.to_dense().sum(), 1)


@threads_too
def test_a_wide_frontier_goes_back_to_statements(machine):
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


def bands(n: int, near: int):
    """Each vertex and those that are near; what a search from 0 is, which pushes all the time."""
    i = np.repeat(np.arange(n), near)
    j = i + np.tile(np.arange(1, near + 1), n)
    i, j = i[j < n], j[j < n]
    A = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=n, ncols=n)

    def search():
        level, q = gb.Vector(int, n), gb.Vector(bool, n)
        q[0] = True
        with gb.loop() as it:
            level(q.S) << it.index
            q(~level.S, replace, direction="push") << any_pair(q @ A)
            it.until(q.nvals == 0)
        np.testing.assert_array_equal(level.to_dense(-1), -(-np.arange(n) // near))
        assert it.rounds == n // near + 1
        return it

    return A, search


@on(GPUS)  # CPU devices go on where a round is over soon
def test_rounds_that_are_left_again_and_again_take_wider_frontiers(machine, monkeypatch):
    monkeypatch.setattr(limits, "THIN", 20)
    _, search = bands(20_000, 200)
    for _ in range(12):
        search()
    assert gb.settings.session().loops._outgrown
    with gb.trace(rounds=True) as records:
        it = search()
    assert by_itself(it) and sum("round" in record.step for record in records) >= 100


@on(GPUS)  # CPU devices have one kind of rounds
def test_a_tail_of_thin_frontiers_is_left_to_rounds_of_few_blocks(machine, monkeypatch):
    """And to the first of several GPUs, until frontiers grow again."""
    monkeypatch.setattr(limits, "THIN", 20)
    monkeypatch.setattr(limits, "FEWER", 20)
    monkeypatch.setattr(condition_module, "TAIL", 8)
    monkeypatch.setattr(compiled, "SPARED", 0.0)  # several stay together where frontiers may grow
    n, near, tail = 20_000, 200, 400
    i = np.repeat(np.arange(n), near)
    j = i + np.tile(np.arange(1, near + 1), n)
    i, j = i[j < n], j[j < n]
    path, last = np.arange(n - 1, n + tail), n + tail
    i, j = np.r_[i, path, i + last], np.r_[j, path + 1, j + last]
    A = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=last + n, ncols=last + n)
    wide = -(-np.arange(n) // near)
    wanted = np.r_[wide, wide[-1] + np.arange(1, tail + 1), wide[-1] + tail + 1 + wide]
    for _ in range(12):
        level, q = gb.Vector(int, A.nrows), gb.Vector(bool, A.nrows)
        q[0] = True
        with gb.loop() as it:
            level(q.S) << it.index
            q(~level.S, replace, direction="push") << any_pair(q @ A)
            it.until(q.nvals == 0)
        np.testing.assert_array_equal(level.to_dense(-1), wanted)
        assert it.rounds == wanted[-1] + 1 and by_itself(it)
    (kept,) = gb.settings.session().loops._captured.values()
    assert {one.often for one in kept} == {False, True}
    folded = machine in LEFT and compiled.MET > 0
    assert [one.alone for one in kept if not one.often] == [folded] and not any(one.alone for one in kept if one.often)


@on([each for each in GPUS if each[0] in LEFT and "together" not in each[2]])
def test_a_loop_that_was_left_to_the_first_gpu_begins_there(machine, monkeypatch):
    """Also where it is over before a round is captured."""
    begun, gone_solo = [], compiled.DeviceLoop._gone_solo

    def noted(self, *given, **how):
        gone = gone_solo(self, *given, **how)
        begun.extend([self.loop.rounds] * gone)
        return gone

    monkeypatch.setattr(compiled.DeviceLoop, "_gone_solo", noted)
    A = road()
    for _ in range(20):
        v = gb.Vector.from_dense(np.ones(A.nrows, np.float32))
        with gb.loop(3):
            v << plus_times(A @ v) * 0.25
    x, dense = np.ones(A.nrows, np.float32), A.to_scipy_sparse()
    for _ in range(3):
        x = dense @ x * np.float32(0.25)
    np.testing.assert_allclose(v.to_dense(), x, rtol=1e-5)
    assert begun[0] > 0 and begun[-5:] == [0] * 5


@on([each for each in GPUS if each[0] in LEFT and "together" not in each[2]])
@pytest.mark.parametrize("policy", ["off", balance.Policy(fold=False), balance.Policy(steal=False)])
def test_policies_say_whether_the_first_gpu_is_left_anything(machine, policy):
    """Whole loops, and calls of functions that are marked so."""
    session = gb.init(machine, balance=policy)
    A = road()
    expected, depth = by_python(A)
    for _ in range(2):
        with gb.trace(rounds=True) as records:
            it, level, _ = levels(A)
        assert level.isequal(expected) and it.rounds == depth and by_itself(it), it.how
    folds = policy == balance.Policy(steal=False)
    there = {record.device for record in records if record.step.endswith("round")}
    assert (len(there) == 1) is folds is (session.folding is not None)
    with gb.trace() as records:
        assert algos.bfs_levels(A, 0).isequal(expected)
    assert sum(record.step == "call" for record in records) == folds


@on([each for each in GPUS if each[0] in LEFT and each[2].startswith("never")])  # others tell of few rounds
@pytest.mark.parametrize("case", ["dealt", "alone", "no time lost", "no use"])
def test_frontiers_that_others_wait_for_are_dealt_out(machine, case, monkeypatch):
    """Or left to the first GPU, where that is faster."""
    monkeypatch.setattr(limits, "THIN", 20)
    monkeypatch.setattr(sharing, "LAID", np.inf if case == "alone" else 0.0)
    monkeypatch.setattr(dealing, "OTHERS", 0)
    session = gb.settings.session()
    session.sharing.policy = balance.Policy(overhead=1.0 if case == "no time lost" else 0.0)
    monkeypatch.setattr(dealing, "USE", 1e-9 if case == "no use" else np.inf)
    if case == "dealt":
        monkeypatch.setattr(session.replicas, "fit", lambda *_: False)
    A, search = bands(20_000, 200)
    hows = [search().how for _ in range(40)]
    dealt, alone = (["frontiers split among GPUs" in how for how in hows], [" GPUs" not in how for how in hows])
    assert any(dealt) == bool(A._store.copies) == (case in ("dealt", "no use"))
    assert dealt[-1] == (case == "dealt") and alone[-1] == (case == "alone"), hows
    assert any(alone[20:]) == (case == "alone") or case == "no use", hows


GUARDS = ["", "", "", "it.index % 2 == 0", "(it.index * 3) % 4 < 2", "it.index < 100", "it.index > 100"]
MATRICES = statements.mxm, statements.outer, assignments.diag, assignments.setdiag


@every_set
def test_random_bodies(machine):
    """From the third round on they go round by themselves, where that can be; many do."""
    hows = []

    @settings(max_examples=1500 if p.WIDE else 25)
    @given(data=st.data())
    def run(data):
        program = data.draw(p.programs([kind for kind in KINDS if kind not in MATRICES], most=4, small=True))
        bodies = [statement.text() for statement in certain(program) if len(statement.target.space) < 2]
        body = [(data.draw(st.sampled_from(GUARDS)), text) for text in bodies]
        rounds = data.draw(st.integers(7, 12))
        note(f"{rounds} rounds of {body}")
        inputs = [key for key in program.contents if len(key.space) == 2]
        matrices = {key.name: p.build(gb, key, program.contents[key], program.shape) for key in inputs}
        for seed in range(3 if body else 0):  # later ones may take what the first has captured
            contents = {key: x._replace(seed=x.seed + seed) for key, x in program.contents.items()}
            hows.append(agree(dataclasses.replace(program, contents=contents), body, rounds, 1e-5, matrices))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "ALIKE", 1)
        patch.setattr(compiled, "SOON", 1)
        run()
    captured = sum(how != "error" and not how.startswith("statements") for how in hows)
    others = settings.get_current_profile_name() == "drawn"  # than those that were counted: now and then fewer
    several = machine in LEFT  # they work together for some rounds first
    assert captured > len(hows) / (20 if several else 10 if others else 5)


def test_numbers_are_what_they_were_where_they_are_read(machine):
    hows = []

    @settings(max_examples=400 if p.WIDE else 25)
    @given(data=st.data())
    def run(data):
        hows.append(numbers(data, 9, most=False))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "ALIKE", 1)
        patch.setattr(compiled, "SOON", 1)
        run()
    assert any(not how.startswith("statements") for how in hows) or machine in LEFT


def test_values_end_loops_as_their_scalars_do(machine):
    s, last = gb.Scalar.from_value(0), gb.Scalar(int)
    v = gb.Vector.from_dense(np.zeros(50))
    for _ in range(20):
        s << 0
        with gb.loop(200) as it:
            before = s.value
            s << s.value + 1
            last << before
            v << v + 1
            it.until(s.value > 100)
        assert (it.rounds, s.value, last.value) == (101, 101, 100)
    assert by_itself(it) or machine in LEFT, it.how


@threads_too
def test_a_loop_without_end_is_stopped(machine):
    import _thread

    A = road()
    v = gb.Vector.from_dense(np.ones(A.nrows, np.float32))
    with gb.loop(40) as it:  # what it needs is compiled
        v << plus_times(A @ v) * 0.01
        it.until(it.index < 0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind them without
    try:
        for seconds in (0.7 if machine.startswith("cpu") else 4.0, 8.0, 30.0):  # longer where others keep it waiting
            threading.Timer(seconds, _thread.interrupt_main).start()
            with pytest.raises(KeyboardInterrupt), gb.loop() as it:
                v << plus_times(A @ v) * 0.01
                it.until(it.index < 0)
            if it.rounds > 1000:
                break
    finally:
        signal.signal(signal.SIGINT, before)
    assert it.rounds > 1000
    v << 1
    assert v.nvals == A.nrows


def test_statements_of_signal_handlers_are_no_part_of_the_round(machine, monkeypatch):
    A, counted, came = road(), gb.Vector.from_dense(np.zeros(9)), []

    def handler(*_):
        came.append(session.capturing)
        counted(binary.plus) << 1

    session, perform = gb.settings.session(), writing.Written._perform

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGUSR1)
        done = perform(*arguments)
        signal.raise_signal(signal.SIGUSR1)
        return done

    monkeypatch.setattr(writing.Written, "_perform", interrupted)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        it, level, _ = levels(A)
    finally:
        signal.signal(signal.SIGUSR1, before)
    expected, _ = by_python(A)
    assert by_itself(it) and level.isequal(expected)
    assert len(came) > 1 and not any(came)
    assert counted.to_dense().tolist() == [len(came)] * 9


@on([each for each in SETS if each[0] == "cpu:1"])
@pytest.mark.parametrize("anew, step", [(False, 3), (True, 41)])
def test_ctrl_c_anywhere_leaves_loops_as_they_were(machine, anew, step):
    """At every so many lines of what records loops and takes kept rounds, or captures them. No round stays at a loop
    that is gone, no thread records, and the session is as it was."""
    parts = recording, captured, captured_loops, interrupts, modes, *[compiled, writing] * anew
    A, ours = road(200), [part.__file__ for part in parts]
    for _ in range(20):
        it, right, _ = levels(A)
    assert by_itself(it)
    session, place, lines = gb.settings.session(), 0, []
    usual = "devices", "device_set", "kernels", "assigner", "counts_unknown", "writing", "capturing", "late"
    values = [getattr(session, name) for name in usual]

    def traced(frame, event, _):
        if frame.f_code.co_filename not in ours:
            return None
        if event == "line":
            lines.append(f"{Path(frame.f_code.co_filename).stem}, {frame.f_code.co_name}, {frame.f_lineno}")
            if len(lines) == place:
                signal.raise_signal(signal.SIGINT)
        return traced

    before, others = signal.signal(signal.SIGINT, signal.default_int_handler), sys.gettrace()
    try:
        while place <= len(lines):
            place, lines = place + step, []
            if anew:
                session.loops.clear()
            sys.settrace(traced)
            try:
                levels(A)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(others)
            where = lines[place - 1] if place <= len(lines) else "nowhere"
            taken = [one for alike in session.loops._captured.values() for one in alike if one.loop is not None]
            assert not taken, where
            assert recording.recorder(session) is None, where
            it, found, _ = levels(A)
            assert not session.changes and not session.looping, where
            assert [getattr(session, name) for name in usual] == values, where
            assert found.isequal(right) and by_itself(it), where
    finally:
        signal.signal(signal.SIGINT, before)
    assert place > 200


@threads_too
def test_memory_stays(machine):  # of the process: tests beside it would show
    A = road(400)
    for _ in range(5):
        levels(A)
    before = used()
    for _ in range(1000 if p.WIDE else 40):
        levels(A)
    assert used() - before < (64 if p.WIDE or machine.startswith("cuda") else 8) << 20


def test_loops_of_the_same_statements_share_a_captured_round(machine, in_rounds, monkeypatch):
    A, begun, made, sources = road(700), [], [], (0, 350, 9, 9, 699)
    plain = captured.Captured.__init__

    def noted(self, *rest):
        begun.append(self)
        plain(self, *rest)
        made.append(self)

    monkeypatch.setattr(captured.Captured, "__init__", noted)
    found = [algos.bfs(A, source) for source in sources]
    for source, (levels_, parents) in zip(sources, found, strict=True):  # those of earlier loops are still theirs
        algos.verify.bfs(A, source, levels_, parents)
    most = 1 if machine.startswith("cpu") else 2  # GPUs may pull at first, and push when few are left
    assert 1 <= len(made) <= most
    assert begun == made or machine.startswith("cuda")  # where the other direction may want other forms first
    found = [algos.sssp(A, source) for source in sources]
    for source, distances in zip(sources, found, strict=True):
        algos.verify.sssp(A, source, distances)
    algos.verify.pagerank(A, algos.pagerank(A, tol=1e-12, max_iterations=500)[0])
    less, more = (algos.pagerank(A, tol=0, max_iterations=30, damping=damping)[0] for damping in (0.5, 0.9))
    algos.verify.pagerank(A, less, damping=0.5, tol=1e-3)
    algos.verify.pagerank(A, more, damping=0.9, tol=1e-3)
    made.clear()
    B = road(700, seed=2)
    algos.verify.bfs(B, 3, *algos.bfs(B, 3))
    assert len(made) <= most and (len(made) == 1 or machine.startswith("cuda"))  # of another matrix, if it is worth it


def test_loops_of_new_matrices_are_captured_while_these_are_looked_at_for_the_first_time(machine):
    """What a matrix is prepared by is no read of a round (a GPU cuts it into tiles, and looks for long rows)."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        i, j = rng.integers(0, 3000, (2, 100_000))
        A = gb.Matrix.from_coo(i, j, rng.random(100_000), nrows=3000, ncols=3000, dup_op="first")
        x = gb.Vector.from_dense(np.ones(3000))
        with gb.loop(60) as it:
            x << plus_times(A @ x)
            x << x * 0.05
        expected = np.ones(3000)
        S = A.to_scipy_sparse()
        for _ in range(60):
            expected = (S @ expected) * 0.05
        np.testing.assert_allclose(x.to_dense(), expected, rtol=1e-9)
        assert by_itself(it), it.how


def test_what_the_last_loop_took_is_known_by_its_matrices():
    loops = captured_loops.CapturedLoops()
    one, other = captured_loops.CapturedLoops(), captured_loops.CapturedLoops()  # in place of matrices
    for folded in (True, False):
        loops.ended("a loop", 7, [one], folded)
        assert loops.last("a loop", [one]) == 7 and loops.last("another", [one]) is None
        assert loops.folded("a loop", [one]) == folded and not loops.folded("a loop", [other])
        assert loops.last("a loop", [other]) is None and not loops.folded("another", [one])


def test_a_loop_that_was_captured_once_may_be_again():
    """Whatever was in the way in between, for want of room here."""
    loops = captured_loops.CapturedLoops()
    round = SimpleNamespace(key="a loop", way=((), ()), alone=False, bytes=0, room=1)
    for _ in range(4):
        loops.refuse("a loop", "no room"), loops.refuse("a loop", "no room"), loops.add(round)
        assert loops.has("a loop") and not loops.refused("a loop")
        loops.clear()
    tried = []
    for loop in range(20):
        if loops.refused("a loop") is None:
            loops.refuse("a loop", f"no room for {loop}")
            tried.append(loop)
        else:
            assert loops.refused("another") is None and loops._refused["a loop"][2] == f"no room for {tried[-1]}"
    assert tried == [0, 1, 2, 5, 10, 19]


def test_rounds_of_all_devices_stand_for_none_of_the_first_one():
    """Neither where one is due, nor where there are too many."""
    loops = captured_loops.CapturedLoops()
    ways = [((), ("pull",)), ((), ("push",)), ((), (None,)), ((), ("pull", "push"))]
    made = {
        (way, alone): SimpleNamespace(key="a loop", way=way, alone=alone, bytes=0, room=1)
        for way in ways
        for alone in (False, True)
    }
    loops.add(made[ways[0], False])
    assert loops.goes("a loop", ways[0], False) and not loops.goes("a loop", ways[0], True)
    for way in ways:
        loops.add(made[way, True])
    assert not loops.goes("a loop", ways[1], False) and loops.goes("a loop", ways[1], True)
    assert loops._captured["a loop"] == [made[ways[0], False], *(made[way, True] for way in ways[1:])]


def test_a_loop_that_could_not_be_captured_says_so_and_is_tried_again(machine, monkeypatch):
    A, plain, there = road(400), captured.Captured._capture, [False]

    def capture(self, instead):
        if not there[0]:
            raise journal.NotCompiled("memory is short")
        return plain(self, instead)

    monkeypatch.setattr(captured.Captured, "_capture", capture)
    for _ in range(4):
        it, level, _ = levels(A)
        assert it.how == "statements, as memory is short"
    there[0] = True
    for _ in range(3):
        it, again, _ = levels(A)
        assert again.isequal(level)
    assert by_itself(it)


def test_products_inside_expressions_go_as_statements_of_their_own_do(machine):
    """In one direction, whether a product is the whole of an expression or a part."""
    A, ways, found = road(), {}, []
    for form in ("product", "inside", "of an expression", "both"):
        d, q = gb.Vector("FP64", A.nrows), gb.Vector("FP64", A.nrows)
        d[0], q[0] = 0, 0
        with gb.loop() as it:
            x = q if form in ("product", "inside") else q + 0
            q << (min_plus(x @ A) + 0 if form in ("inside", "both") else min_plus(x @ A))
            q(~d.S, replace) << q
            d(q.S) << q
            it.until(q.nvals == 0)
        assert by_itself(it)
        found.append((d.to_dict(), it.rounds))
        products = [each for each in compiled.statements_of(it.body) if each.expr.kind == "product"]
        ways[form] = [each.carried[1].direction for each in products]
    assert all(each == found[0] for each in found)
    assert ways == dict.fromkeys(ways, ways["product"])


def test_loops_of_new_matrices_are_not_written_down_in_vain(monkeypatch):
    """Others may come to lie where a matrix lay that the last loop read."""
    made, plain = [], captured.Captured.__init__
    monkeypatch.setattr(captured.Captured, "__init__", lambda self, *rest: made.append(self) or plain(self, *rest))
    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:1")
    for _ in range(20):
        it, level, q = levels(gb.io.generate.rmat(8, 8, seed=1, dtype="BOOL"))
        assert it.rounds < compiled.SOON
        del it, level, q
    assert not made


def test_loops_that_go_in_several_ways_are_captured_once(machine, in_rounds, monkeypatch):
    """Few near vertices, many, and few again: rounds that were captured at the beginning are found at the end."""
    rng, n, hubs = np.random.default_rng(1), 4000, 1500
    i, j = rng.zipf(1.3, (2, 12 * n)) % hubs
    tail = np.arange(hubs, n - 1)  # a path, which takes many rounds
    i, j = np.r_[i, 0, tail], np.r_[j, hubs, tail + 1]
    w = rng.integers(1, 256, len(i)).astype(np.float32)
    A = gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], np.r_[w, w], nrows=n, ncols=n, dup_op="min")
    made, plain = [], captured.Captured.__init__
    monkeypatch.setattr(captured.Captured, "__init__", lambda self, *rest: made.append(self) or plain(self, *rest))
    for call in range(12):
        if call == 9:
            assert made
            made.clear()
        algos.verify.sssp(A, 5, algos.sssp(A, 5))
    assert not made


def test_a_first_frontier_may_be_a_bitmap_yet(machine, monkeypatch):
    """A kept round that begins with a list is taken at once all the same, where pushes have little to do."""
    for rounds in ("ALIKE", "SOON"):
        monkeypatch.setattr(compiled, rounds, 3)
    A, by_statements = road(), []
    expected, _ = by_python(A)
    for form in ("list", "list", "list", "bitmap"):
        level, q = gb.Vector(int, A.nrows), gb.Vector(bool, A.nrows)
        q[0] = True
        q << q.apply(gb.unary.identity).new(form=form)
        before = counters.statements
        with gb.loop() as it:
            level(q.S) << it.index
            q(~level.S, replace, direction="push") << any_pair(q @ A)
            it.until(q.nvals == 0)
        by_statements.append(counters.statements - before)
        assert level.isequal(expected)
    if machine not in LEFT or compiled.MET < 0:  # else rounds may be the first GPU's alone when they settle
        assert by_statements[0] and not by_statements[-1], by_statements


@threads_too
@pytest.mark.parametrize("form", ["list", "bitmap"])
def test_rounds_go_on_from_one_another(form, machine, monkeypatch):
    """Twelve rounds in one way, twelve in another: a kept round is given what the other one left, in its forms."""
    n, followed, find = 600, [], compiled.DeviceLoop._heir
    A, weight = road(n), gb.Vector.from_dense(np.arange(n) % 7)

    def program(source):
        x, t, moved = (gb.Vector(int, n, name=name) for name in ("x", "t", "moved"))
        seen, s = gb.Vector(bool, n, name="seen"), gb.Scalar.from_value(0, int, name="s")
        x[source] = 0
        with gb.loop(90) as it:
            with it.when(s < 12):
                t << min_second[int](A.T @ x)
                moved(~seen.S, replace) << t
                seen(t.S) << True
                x << moved
            with it.when(s >= 12):
                t << binary.plus(x & weight)
                x(form=form) << binary.max(t & t)
                seen.clear()
            s << (s + 1) % 24
        return (x, t, moved, seen), s

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled.DeviceLoop, "of", lambda *loop: None)
        expected = [program(source) for source in range(4)]
    for rounds in ("ALIKE", "SOON"):
        monkeypatch.setattr(compiled, rounds, 3)
    monkeypatch.setattr(compiled.DeviceLoop, "_heir", lambda *ended: followed.append(find(*ended)) or followed[-1])
    made = [program(source) for source in range(4)]  # what a loop has left is its own, whatever runs then
    for (found, s), (others, other) in zip(made, expected, strict=True):
        assert s == other and all(one.isequal(two, check_dtype=True) for one, two in zip(found, others, strict=True))
    assert found[0].nvals and (any(followed) or "-" in machine)


@threads_too
def test_what_is_lent_is_no_other_loops_place(machine, monkeypatch):
    """A round that is captured with vectors of which the content lies where another loop's round works: both are taken
    again by others, whose results stay theirs."""
    for rounds in ("ALIKE", "SOON"):
        monkeypatch.setattr(compiled, rounds, 1)
    lends = lambda self, store: isinstance(store, VectorStore) and store.form == "bitmap" and not store.iso  # noqa: E731
    monkeypatch.setattr(Loans, "_lends", lends)
    some = gb.Vector.from_coo(np.arange(0, 900, 3), np.arange(300), size=900)

    def run(v, op, rounds):
        with gb.loop(rounds) as it:
            v(v.S, form="bitmap") << v.apply(op, right=3)
        return it

    def fresh():
        v = gb.Vector(int, 900)
        v(form="bitmap") << binary.plus(some & some)
        return v

    hows = []
    for _ in range(3):
        first = fresh()
        hows.append(run(first, binary.plus, 40).how)
        hows.append(run(first, binary.bxor, 41).how)  # captured where the first round works
        second, third = fresh(), fresh()
        run(second, binary.bxor, 41)
        run(third, binary.plus, 40)
        begun = np.arange(300) * 2
        for v, expected in ((first, (begun + 120) ^ 3), (second, begun ^ 3), (third, begun + 120)):
            np.testing.assert_array_equal(v.to_coo()[1], expected)
    assert not any(how.startswith("statements") for how in hows), hows


@threads_too
def test_threads_do_not_share_a_captured_round(machine):
    A = road(900)
    levels(A)
    wrong = []

    def search(source):
        for _ in range(5):
            try:
                algos.verify.bfs(A, source, *algos.bfs(A, source))
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=search, args=(source,)) for source in (0, 300, 899)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def test_what_is_kept_of_loops_goes_with_its_matrix(machine):
    A, loops = road(700), gb.settings.session().loops
    levels(A)
    assert loops
    kept = weakref.ref(next(iter(loops._captured.values()))[0])
    assert kept() is not None
    del A
    gc.collect()
    assert kept() is None
    for n in range(900, 920):
        levels(road(n))
    assert len(loops._captured) <= 8


def used() -> int:
    """Bytes of this process, or of the GPU."""
    if gb.settings.session().devices[0].kind == "cuda":
        import cupy

        free, total = cupy.cuda.runtime.memGetInfo()
        return total - free
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


CONDITIONS = [
    "q.nvals == 0", "q.nvals < it.index - 30", "v.reduce(monoid.max) > 1e30", "binary.plus(s | 0.5) > 1e9",
    "~(s < 2.0**40)", "(it.index > 50) | (q.nvals == 0)",
    "((q.nvals == 0) & (s > 2)) | (it.index > 50)", "((it.index > 50) | (q.nvals == 0)) & ((s > 2) ^ (s < 0))",
    "s > float('inf')", "abs(s) < 0",
    "v.reduce(monoid.lor['BOOL']) == False", "v.reduce(monoid.plus['INT8']) == 77",
    "(s > 1e9) & (v.reduce('plus') > 1e9)", "s % 2.5 == 2.25",
    "q.reduce(monoid.min, allow_empty=True) == v.reduce(monoid.min, allow_empty=True)",
    "q.reduce(monoid.min, allow_empty=True) != 1", "s == q.reduce(monoid.plus[int], allow_empty=True) * 5",
]  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_are_written_for_both(text, monkeypatch):
    """Once compiled they mean what they mean to statements, on CPU devices; as CUDA text they compile."""
    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:1")
    A, done, seen = road(200), [], []
    text_of, kernel_of = tapes.CpuCondition.text, tapes.CpuCondition.kernel

    def kernel(condition, *given):
        other = condition_module.CudaCondition()
        ends = [other.text(node) for node in seen[:1]]
        limits = condition_module.Limits([], ["3 > 2147483648"], ["3 < 2"], [], [["3", "2"]], ["3 + 2 < 1"])
        text = other.kernel(ends, [("a0", "a0", 8)] * bool(other.arrays), limits)
        assert nvrtc.compile_ptx(text, "sm_90")
        inside = condition_module.CudaCondition()  # a round
        inside.index = f"{inside.array(None)}[0]"
        value = inside.text(seen[0])
        assert nvrtc.compile_ptx(inside.guarding(value), "sm_90")
        assert nvrtc.compile_cubin(inside.computing(inside.cast(value, BOOL, FP32), FP32), "sm_90")
        return kernel_of(condition, *given)

    monkeypatch.setattr(tapes.CpuCondition, "text", lambda self, node: seen.append(node) or text_of(self, node))
    monkeypatch.setattr(tapes.CpuCondition, "kernel", kernel)
    for alike in (3, 10**9):
        for name in ("ALIKE", "SOON", "OFTEN"):
            monkeypatch.setattr(compiled, name, alike)
        gb.settings.session().loops.clear()
        q, v, s = gb.Vector(bool, 200), gb.Vector.from_dense(np.ones(200)), gb.Scalar(float)
        level = gb.Vector(int, 200)
        q[0] = True
        with gb.loop(60) as it:
            level(q.S) << it.index
            q(~level.S, replace) << any_pair(q @ A)
            v << v * 1.5
            s << v.reduce(monoid.plus, allow_empty=False)
            it.until(eval(text, {"q": q, "v": v, "s": s, "it": it, "binary": binary, "monoid": monoid}))
        done.append((it.rounds, it.converged, by_itself(it), level.to_dict(), v[3].value))
    assert seen and done[0][2] and not done[1][2] and done[0][:2] + done[0][3:] == done[1][:2] + done[1][3:]


@threads_too
def test_results_outlive_the_round_that_made_them(machine):
    """Rounds that are taken again write where they wrote before."""
    A, found = road(900), []
    for source in [3, 500, 3, 77, 850] * 4:
        found.append((source, *algos.bfs(A, source)))
    kept = found[-1][1]
    kept(kept.S) << 7  # in place
    other = algos.bfs(A, 3)
    assert set(kept.to_coo()[1]) == {7}
    for one in (*found[:-1], (3, *other)):
        algos.verify.bfs(A, *one)


def test_copies_of_results_outlive_the_round_that_made_them(machine):
    """Copies share lists, and diagonals the values of full vectors, with what a loop has left."""
    A, found = road(900), []
    for source in [3, 500, 3, 77, 850] * 3:
        q, x = gb.Vector(int, 900), gb.Vector.from_dense(np.full(900, float(source)))
        q[source] = source
        seen = q.dup()
        with gb.loop(40) as it:
            x << x + 1
            q(~seen.S, replace) << any_secondi(q @ A)
            seen(q.S) << q
            it.until(q.nvals == 0)
        found.append((q.dup(), x.diag(), x.dup(), seen.dup(), q.to_dict(), x.to_dense(), seen.to_dict()))
        del q, x, seen
    for q, D, x, seen, *right in found:
        assert q.to_dict() == right[0] and seen.to_dict() == right[2]
        np.testing.assert_array_equal(D.diag().to_dense(), right[1])
        np.testing.assert_array_equal(x.to_dense(), right[1])


def cores(n: int = 2000, count: int = 6, size: int = 200):
    """A ring with dense parts: searches of it are thin and wide in turn."""
    rng = np.random.default_rng(3)
    i, j = [np.arange(n)], [(np.arange(n) + 1) % n]
    for start in range(0, n, n // count):
        i.append((start + rng.integers(0, size, 30 * size)) % n)
        j.append((start + rng.integers(0, size, 30 * size)) % n)
    i, j = np.concatenate(i), np.concatenate(j)
    return gb.Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=n, ncols=n, dup_op="any")


@threads_too
def test_two_kinds_of_rounds(machine, monkeypatch):
    """Thin rounds push, wide ones pull; on a GPU one kernel does both."""
    A, kernels, hows = cores(), gb.settings.session().kernels, []
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(push_first=3e-9, push_edge=3e-9, step=0.0))
    monkeypatch.setattr(limits, "THIN", 1000)
    monkeypatch.setattr(compiled, "OFTEN", 0)
    expected, depth = by_python(A)
    for _ in range(12):
        it, level, q = levels(A)
        assert level.isequal(expected) and it.rounds == depth and it.converged and q.nvals == 0
        hows.append(it.how)
    if machine.startswith("cuda:0") and gb.settings.resident == "always":
        assert "two kinds" in hows[-1], hows


@threads_too
def test_searches_that_come_again_lie_both_ways(machine, monkeypatch):
    """On GPUs a second search is captured at once: in both directions, also where the matrix did not lie for pulls."""
    rng, n, kernels = np.random.default_rng(5), 2000, gb.settings.session().kernels
    A = gb.Matrix.from_coo(*rng.integers(0, n, (2, 40 * n)), True, nrows=n, ncols=n, dup_op="any")
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(push_first=1e-6, push_edge=1e-6, turn=1e6, step=0.0))
    monkeypatch.setattr(ways, "THIN", 1000)
    expected, depth = by_python(A)
    for _ in range(4):
        it, level, q = levels(A)
        assert level.isequal(expected) and it.rounds == depth and it.converged and q.nvals == 0
    if machine.startswith("cuda:0") and gb.settings.resident == "always":
        assert A._store.transposed is not None and "two kinds" in it.how, it.how
    elif machine.startswith("cpu"):
        assert A._store.transposed is None and A._store.rented > 0


@threads_too
def test_what_is_lent_may_be_written_in_place(machine, monkeypatch):
    """Rounds count in buffers that statements have no part in, also those that join them later."""
    A, kernels, hows = cores(), gb.settings.session().kernels, []
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(push_first=3e-9, push_edge=3e-9, step=0.0))
    monkeypatch.setattr(limits, "THIN", 1000)
    monkeypatch.setattr(compiled, "OFTEN", 0)
    source = 266  # between two dense parts, as is what is farthest from it: thin rounds count at the end
    (expected, depth), some = by_python(A, source), gb.Vector.from_coo(np.arange(0, A.nrows, 3), True, size=A.nrows)
    for _ in range(12):
        level, q = gb.Vector(int, A.nrows), gb.Vector(bool, A.nrows)
        q[source] = True
        with gb.loop(2 * depth) as it:
            level(q.S) << it.index
            q(~level.S, replace) << any_pair(q @ A)
            it.until(level.nvals == A.nrows)
        assert level.isequal(expected) and it.rounds == depth
        level(some.S) << 7
        hows.append(it.how)
    if machine.startswith("cuda:0") and gb.settings.resident == "always":
        assert "two kinds" in hows[-1], hows


@threads_too
def test_rounds_of_other_matrices_are_not_joined(machine, monkeypatch):
    """Loops of the same statements over matrices of one shape, one of which is searched by pushes."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(push_first=3e-9, push_edge=3e-9, step=0.0))
    monkeypatch.setattr(limits, "THIN", 1000)
    monkeypatch.setattr(compiled, "OFTEN", 0)
    matrices = [road(2000), cores(), cores(2000, 1, 2000)]
    expected = [by_python(A) for A in matrices]
    for _ in range(6):
        for A, (levels_, depth) in zip(matrices, expected, strict=True):
            it, level, _ = levels(A)
            assert level.isequal(levels_) and it.rounds == depth


@threads_too
def test_what_pulls_goes_on_where_a_transpose_has_no_room(machine, monkeypatch):
    """It would push, as frontiers are thin: so say the costs, and how a captured round was left."""

    def short(*_):
        raise MemoryError

    for kind in {type(device) for device in gb.settings.session().devices}:
        monkeypatch.setattr(kind, "transpose", short)
    monkeypatch.setattr(direction, "push_seconds", lambda *_: 1.0)
    monkeypatch.setattr(direction, "pull_seconds", lambda *_: 2.0)
    pinned, asked = compiled.DeviceLoop._pinned, []

    def turned(self):
        self.turned = compiled.way_of(self.loop)
        asked.append(self.turned[1])
        return pinned(self)

    monkeypatch.setattr(compiled.DeviceLoop, "_pinned", turned)
    n = 400
    A = gb.Matrix.from_coo(np.arange(1, n), np.arange(n - 1), True, nrows=n, ncols=n)
    for _ in range(3):
        level, q = gb.Vector(int, n), gb.Vector(bool, n)
        q[0] = True
        with gb.loop() as it:
            level(q.S) << it.index
            q(~level.S, replace, form="bitmap") << any_pair(A @ q)
            it.until(q.nvals == 0)
        np.testing.assert_array_equal(level.to_dense(), np.arange(n))
    assert any("pull" in way for way in asked) and A._store.transposed is None


@pytest.mark.parametrize("large", [False, True])
def test_rounds_are_kept_that_take_little_memory(machine, large, monkeypatch):
    monkeypatch.setattr(captured, "most_rows", lambda *_: 10**18 * large)
    made, init = [], captured.Captured.__init__

    def noted(self, *given, **named):
        beside.seconds += 1000.0  # as if something had been compiled
        init(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(captured.Captured, "__init__", noted)
    A = road(500)
    expected, _ = by_python(A)
    for _ in range(3):
        assert levels(A)[1].isequal(expected)
    assert made and all((one.key is None) == large and one.took < -900 for one in made)
    assert bool(gb.settings.session().loops) == (not large)


@on([each for each in GPUS if each[0].startswith("cuda:0-")])
def test_a_gpu_that_never_comes(machine, monkeypatch):
    """Others end the loop, and say so; the next one runs."""
    A = road()
    expected, depth = by_python(A)
    monkeypatch.setattr(on_gpus, "PATIENCE", 0.5)
    on_gpus.waiting.cache_clear()
    launches = [(kind, kind.launch) for kind in (on_gpus.WhileGraph, on_gpus._Staying)]
    monkeypatch.setattr(compiled, "MET", -1)
    with monkeypatch.context() as patch:
        for kind, launch in launches:
            first = lambda self, *given, launch=launch: self.device.gpu or launch(self, *given)  # noqa: E731
            patch.setattr(kind, "launch", first)
        with pytest.raises(DeviceError, match="cuda:0.* did not come"):
            levels(A)
    for _ in range(3):
        it, level, q = levels(A)
        assert by_itself(it) and level.isequal(expected) and it.rounds == depth
    on_gpus.waiting.cache_clear()


def test_a_thousand_loops(machine):
    """They neither hang nor differ."""
    A, gpu = road(500), machine.startswith("cuda")
    levels_, distances, labels = algos.bfs(A, 7).levels, algos.sssp(A, 7), algos.connected_components(A)
    for _ in range(1000 if gpu else 5):
        assert algos.bfs(A, 7).levels.isequal(levels_)
        assert algos.sssp(A, 7).isequal(distances) and algos.connected_components(A).isequal(labels)


@on([each for each in GPUS if each[0] == "cuda:0-1"])
def test_auto_leaves_small_objects_to_the_first_gpu(machine, monkeypatch):
    monkeypatch.setattr(type(gb.settings.session().kernels), "whole", 10_000)
    gb.init("auto")
    assert len(gb.settings.session().devices) > 1
    for n, blocks in ((2000, 1), (9000, len(gb.settings.session().devices))):
        A = road(n)
        assert A._store.rowmap.p == blocks
        expected, depth = by_python(A)
        it, level, _ = levels(A)
        assert level.isequal(expected) and it.rounds == depth and by_itself(it)
        assert blocks > 1 or "GPUs" not in it.how


@pytest.mark.parametrize("source", [0, 1234])
def test_a_list_of_one_value_starts_a_captured_round(machine, in_rounds, monkeypatch, source):
    """The frontier that a search begins with has one value, those of its rounds have many."""
    begun, hold = [], captured.Captured._hold
    noted = lambda self, loop, *rest: begun.append(loop.rounds) or hold(self, loop, *rest)  # noqa: E731
    monkeypatch.setattr(captured.Captured, "_hold", noted)
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(pull_edge=1.0))  # what is pulled is no list
    A = road(2000)
    for _ in range(4):
        algos.verify.bfs(A, source, *algos.bfs(A, source))
    assert begun[-1] == 0, begun


def test_nothing_waits_for_pythons_search_for_garbage(machine):
    """What a loop worked on goes with its last name: on a device it is in the way of others."""

    def run(A):
        level, q, n, w = (gb.Vector(kind, A.nrows) for kind in (int, bool, int, int))
        q[0], w[:], s = True, 1, gb.Scalar(int)
        with gb.loop(30) as it:
            level(q.S) << it.index
            with it.when(it.index % 2 == 0):
                w << w + it.index
            with gb.loop(2) as inner:
                n << w * 2
                inner.until(n.nvals == 0)
            s << w.reduce(monoid.plus)
            q(~level.S, replace) << any_pair(q @ A)
            it.until(q.nvals == 0)
            it.until(s < 0)
        return [weakref.ref(x) for x in (level, q, n, w, s, it, inner)]

    A = road(300)
    searches = [lambda: [weakref.ref(x) for x in levels(A)], lambda: [weakref.ref(algos.sssp(A, 0))], lambda: run(A)]
    gc.collect()
    gc.disable()
    try:
        for search in searches:
            for _ in range(12):  # by statements, captured, and kept
                kept = [x for x in search() if x() is not None]
                assert not kept, kept
    finally:
        gc.enable()
    it = gb.loop(3)
    index = it.index
    del it
    with pytest.raises(gb.exceptions.InvalidValue, match="a deleted loop"):
        index.new()


@threads_too
def test_what_a_loop_drains_has_no_entries(machine):
    """A search that ends as its frontier is empty leaves none; where rounds are counted too, what it had by then."""
    A = road(900)
    expected, _ = by_python(A)
    for turn in range(6):
        it, level, q = levels(A)
        assert it.converged and q.nvals == 0 and not len(q.to_coo()[0]) and level.isequal(expected)
        q[3] = True
        assert q.to_dict() == {3: True}
        short, level, q = levels(A, 7 + turn)
        assert short.rounds == 7 + turn and not short.converged
        at_end = expected.to_dense(-1)
        assert set(q.to_coo()[0]) == set(np.flatnonzero(at_end == 7 + turn)) and q.nvals
        assert level.nvals == (at_end < 7 + turn).sum() - (at_end < 0).sum()
    assert by_itself(it), it.how


EQUAL = binary.register_anonymous(lambda x, y: x >= y + 3, "eq")  # by its name alone
ENDS = {  # what ends a search that leaves something in its frontier: (what is done in a round, the condition)
    "a number that rounds compute": lambda it, q, s: (s << it.index // 40, q.nvals == s)[1],
    "an operator of that name": lambda it, q, s: EQUAL(q.nvals & 0),
    "of few bits": lambda it, q, s: binary.eq["INT8"](q.nvals & 0),
    "the other count": lambda it, q, s: (it.index - 9) == q.nvals * 0,
}


@threads_too
@pytest.mark.parametrize("ends", ENDS)
def test_what_ends_a_loop_is_not_taken_for_an_empty_frontier(machine, ends):
    n = 900
    path, fan = np.arange(300), np.arange(400, 656)  # 256 vertices behind the one where a path ends
    A = gb.Matrix.from_coo(np.r_[path, fan * 0 + 300], np.r_[path + 1, fan], True, nrows=n, ncols=n)

    def run(**told):
        level, q, s = gb.Vector(int, n), gb.Vector(bool, n), gb.Scalar.from_value(0)
        q[0] = True
        with gb.loop(700, **told) as it:
            level(q.S) << it.index
            q(~level.S, replace) << any_pair(q @ A)
            it.until(ENDS[ends](it, q, s))
        return it, (it.rounds, it.converged, level.to_dict(), q.to_dict(), s.value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled.DeviceLoop, "of", lambda *loop: None)
        expected = run()[1]
    for _ in range(4):
        it, found = run()
        assert found == expected, it.how
    assert expected[1] and expected[3]


@threads_too
def test_conditions_that_read_what_is_not_there_leave_others_alone(machine):
    """A sum of nothing neither ends a loop nor keeps another condition from it."""
    A, n = road(900), 900
    expected, depth = by_python(A)
    for _ in range(4):
        level, q, p, s = gb.Vector(int, n), gb.Vector(bool, n), gb.Vector(int, n), gb.Scalar(int)
        q[0], p[0] = True, 1
        with gb.loop(2 * n) as it:
            level(q.S) << it.index
            p(~level.S, replace) << p
            s << p.reduce(monoid.plus)
            q(~level.S, replace) << any_pair(q @ A)
            it.until(q.nvals == 0)
            it.until(s == 7)
        assert it.converged and it.rounds == depth and level.isequal(expected), it.how


@pytest.fixture
def alone(monkeypatch):
    """From which round on loops of two CPU devices, which stand for GPUs, were left to the first one."""
    gb.init("cpu:2")
    monkeypatch.setattr(CpuDevice, "peers", SimpleNamespace(direct=True), raising=False)
    monkeypatch.setattr(compiled, "SOON", 3)
    begun, go, found = compiled.DeviceLoop.__init__, compiled.DeviceLoop._gone_solo, []

    def begin(self, *given):
        begun(self, *given)
        self.gpus, self.single = 2, single_device.SingleDevice(self.session, self.loop)
        found.append(None)

    def gone(self, *given, **others):
        left = go(self, *given, **others)
        if left:
            found[-1] = self.loop.rounds
        return left

    monkeypatch.setattr(compiled.DeviceLoop, "__init__", begin)
    monkeypatch.setattr(compiled.DeviceLoop, "_gone_solo", gone)
    return found


def walked(A):
    v = gb.Vector.from_dense(np.zeros(A.ncols))
    with gb.loop(40):
        v << plus_times(A @ v)


@pytest.mark.parametrize("short", [0, 5])
def test_a_loop_for_which_memory_was_short_is_left_to_the_first_gpu_later(alone, short, monkeypatch):
    A = road(2000)
    for call in range(8):
        with monkeypatch.context() as patch:
            if call == short:
                patch.setattr(gb.settings.session().replicas, "fit", lambda *given: False)
            walked(A)
    assert alone[short] is None and all(first is not None for first in alone[:short])
    assert alone[short + 1 :] == [0] * (7 - short)


def test_a_kept_round_of_one_matrix_leaves_no_other_to_the_first_gpu(alone):
    n, rng = 2000, np.random.default_rng(1)
    rows, cols = np.repeat(np.arange(n), 500), rng.integers(0, n, 500 * n)
    ids = np.r_[np.arange(n), (np.arange(n) + 1) % n], np.r_[(np.arange(n) + 1) % n, np.arange(n)]
    thin, dense = (gb.Matrix.from_coo(*at, 1.0, nrows=n, ncols=n, dup_op="first") for at in (ids, (rows, cols)))
    for A in (thin, thin, dense, dense, dense, thin):
        walked(A)
    assert alone[1] == alone[-1] == 0 and alone[2:5] == [None] * 3


@threads_too
def test_who_is_told_of_rounds_is_told_of_all(machine):
    """Also where the same loop ran before, and told nobody."""
    A = road(900)
    for every in (1, 7):
        for _ in range(4):
            levels(A)
        told: list[int] = []
        it, _, _ = levels(A, repeat=partial(gb.loop, on_iteration=told.append, every=every))
        assert told == [*range(every, it.rounds + 1, every)]


@threads_too
def test_what_was_traced_is_let_go(machine):
    A = road(900)
    for _ in range(4):
        with gb.trace(rounds=True):
            names = [weakref.ref(x) for x in levels(A)]
        assert not [name() for name in names if name() is not None]


@threads_too
@pytest.mark.parametrize("some", [False, True])
def test_scalars_that_a_part_leaves_empty(machine, some):
    """What ran in no round before may leave one without a value, or with that of nothing."""
    found, n = [], 60
    for alike in (3, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "ALIKE", alike)
            patch.setattr(compiled, "SOON", alike)
            gb.settings.session().loops.clear()
            p, v, s, t = gb.Vector(int, n), gb.Vector(int, n), gb.Scalar.from_value(3), gb.Scalar.from_value(5)
            p[7], v[:] = 1, 1
            with gb.loop(60) as it:
                v << v + 1
                with it.when(it.index > 30):
                    p << select.valuegt(p, 1 - int(some))
                    s << p.reduce(monoid.plus)
                    t << p.reduce(monoid.min, allow_empty=False)
            found.append((s.value, t.value, v.to_dict(), p.nvals))
    assert found[0] == found[1] and found[0][0] == (1 if some else None), it.how
    assert found[0][1] == (1 if some else 2**63 - 1)


@threads_too
def test_the_number_of_the_last_round_is_left(machine):
    n = 60
    for _ in range(3):
        v, w, q = (gb.Vector(int, n) for _ in range(3))
        q[:] = 1
        with gb.loop(40) as it:
            v << q + 1
            v(q.S) << it.index
            w << it.index
        assert set(v.to_dense()) == set(w.to_dense()) == {39} and v.nvals == w.nvals == n, it.how


@pytest.mark.few(4)
@threads_too
@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt])
def test_comparisons_of_scalars_that_may_be_empty(machine, compare):
    """Empty ones are equal to each other, to nothing else, and not less."""
    full, none = gb.Vector.from_coo([0], [2], size=60), gb.Vector(int, 60)
    for one, other in product((full, none), (full, none, 2, 3) + (None,) * (compare is not operator.lt)):
        given = other.reduce(monoid.min, allow_empty=True).new() if isinstance(other, gb.Vector) else other
        said = bool(compare(one.reduce(monoid.min, allow_empty=True).new(), given))
        for _ in range(3):
            x, s, t, hits = gb.Vector.from_scalar(0, 60), gb.Scalar(int), gb.Scalar(int), gb.Scalar.from_value(0)
            with gb.loop(30) as it:
                x << x + 1
                s << one.reduce(monoid.min, allow_empty=True)
                if isinstance(other, gb.Vector):
                    t << other.reduce(monoid.min, allow_empty=True)
                    given = t
                with it.when(compare(s, given)):
                    hits << hits + 1
                it.until(compare(s.value, given))
            rounds = 1 if said else 30
            assert (it.rounds, it.converged, hits.value) == (rounds, said, rounds * said), (one, other, it.how)


@threads_too
@pytest.mark.parametrize("clear", [False, True])
def test_a_matrix_without_content_that_no_round_reads(machine, clear):
    for _ in range(10):
        A, t, c, q = gb.Matrix(int, 60, 60), gb.Scalar.from_value(0), gb.Vector.from_scalar(1, 60), gb.Vector(int, 60)
        q[0] = 1
        if clear:
            A[0, 1] = 1
            A.clear()
        with gb.loop(50) as it:
            with it.when(t > 5):
                c << plus_times(c @ A)
            q(binary.max) << gb.indexunary.index(q)
            q << q.select("<", 9)
            it.until(t == 7)
        assert (it.rounds, c.nvals, q.to_dict()) == (50, 60, {0: 1}), it.how


def test_rounds_of_each_guard_run_as_statements_before_one_is_captured(machine):
    """The second kind pulls, for which the matrix is to lie by columns."""
    n, rng = 3000, np.random.default_rng(4)
    rows, cols = rng.integers(0, n, (2, 12 * n))
    A = gb.Matrix.from_coo(rows, cols, rng.integers(1, 9, 12 * n), "FP64", nrows=n, ncols=n, dup_op=binary.min)
    expected = dijkstra(A.to_scipy_sparse(), indices=0)
    for _ in range(2):
        d, t, near = (gb.Vector("FP64", n) for _ in range(3))
        d[:] = 1e9
        d[0], near[0] = 0, 0
        with gb.loop(400) as it:
            with it.when(near.nvals > n // 8):
                t << min_plus(d @ A)
            with it.when(near.nvals <= n // 8):
                t << min_plus(near @ A)
            near << binary.minus(t & d)
            near << gb.select.valuelt(near, 0)
            near << binary.second(near & t)
            d(binary.min) << t
            it.until(near.nvals == 0)
        np.testing.assert_allclose(d.to_dense(), expected)
        assert it.converged and "failed" not in it.how
