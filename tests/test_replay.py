"""Rounds that several threads go through side by side: as if one did all in order."""

from __future__ import annotations

from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import algos
import gbgpu as gb
from gbgpu.device.cpu import CpuDevice, CpuDevices
from gbgpu.distribute.rowmap import Task
from gbgpu.engine.loop import tapes
from gbgpu.kernels.cpu import load
from gbgpu.kernels.interpreted import interpreted
from gbgpu.kernels.replay import RUNNER, Replay

SIZE = 6  # words of a buffer


HEAD = "def kernel"
MIX = """(target, source):
    for i in range(len(target)):
        target[i] = target[i] * 3 + source[len(source) - 1 - i] + 1
"""
turn = load("turn", HEAD + "(state):\n    state[0] += 1\n    state[3] = state[0] < state[4]\n")
mix = load("mix", HEAD + MIX)
plain_mix = interpreted("mix", HEAD + MIX)
# No machine has that memory, and LLVM can't tell that nothing of it is needed.
FAIL = """(target, source):
    all = np.empty(1 << 60, np.int8)
    all[source[0]] = 1
    target[0] = all[source[1]]
"""
fail = load("fail", HEAD + FAIL)


def together(threads):
    devices = CpuDevices(threads)

    def all(work):
        tasks = [Task(thread, thread, 0, 0) for thread in range(threads)]
        return devices.together(tasks, lambda task: work(task.device))

    return devices, all


calls = st.tuples(st.sampled_from(["copy", "clear", "mix", "part", "guard"]), *[st.integers(0, 4)] * 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(calls, min_size=1, max_size=25), st.integers(2, 4), st.integers(1, 6))
def test_as_if_one_thread_did_all(calls, threads, rounds):
    ours = [np.arange(SIZE) + 10 * i for i in range(5)]
    theirs, replay = [x.copy() for x in ours], Replay()
    replay.threads = threads
    for what, replay.device, i, j in calls:
        if what == "copy":
            replay.copy(ours[i], ours[j])
        elif what == "clear":
            replay.clear(ours[i])
        elif what == "mix":
            replay.call(mix, (ours[i], ours[j]))
        elif what == "part":
            replay.call(mix, (ours[i][: SIZE // 2], ours[j][SIZE // 2 :]))
        else:
            replay.begin(ours[i][:1])
            replay.call(mix, (ours[i], ours[j]))
            replay.end()
    replay.device = 0
    replay.meet()
    replay.call(turn, (replay.state,))
    replay.finish()
    for _ in range(rounds):
        for what, _, i, j in calls:
            a, b = theirs[i], theirs[j]
            if what == "copy":
                a[:] = b
            elif what == "clear":
                a[:] = 0
            elif what == "mix" or what == "guard" and a[0]:
                plain_mix(a, b)
            elif what == "part":
                plain_mix(a[: SIZE // 2], b[SIZE // 2 :])
    devices, all = together(threads)
    replay.rounds(rounds, all)
    devices.close()
    assert replay.state[0] == rounds
    for mine, his in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, his)


@pytest.mark.parametrize("failing", range(3))
def test_who_waits_hears_of_a_failure(failing):
    replay, shared = Replay(), np.zeros(SIZE, int)
    replay.threads = 3
    for thread in range(3):
        replay.device = thread
        replay.call(fail if thread == failing else mix, (np.zeros(SIZE, int), np.zeros(SIZE, int)))
    for thread in range(3):
        replay.device = thread
        replay.call(mix, (shared, np.zeros(SIZE, int)))
    replay.device = 0
    replay.meet()
    replay.call(turn, (replay.state,))
    replay.finish()
    devices, all = together(3)
    with pytest.raises(MemoryError):
        replay.rounds(5, all)
    devices.close()


def test_the_machine_code_stays_while_something_runs_it(monkeypatch):
    """Loops that are captured later ask for it again, and `gb.compile_ahead` has it made anew."""
    assert RUNNER.code(()) is RUNNER.code(())
    replay = Replay()
    replay.call(turn, (replay.state,))
    with monkeypatch.context() as patch:
        patch.setattr(RUNNER, "codes", {})
        replay.finish()
        memory = ref(RUNNER.code(())._memory)
    assert memory() is not None
    replay.rounds(3)
    assert replay.state[0] == 3


def test_what_is_computed_at_once_is_refused():
    """A device that writes down what it is given does nothing with buffers whose content only a run will know."""
    done = {"empty", "zeros", "full", "clear", "copy", "copy_counted", "peek", "at_once", "uncaptured"}  # written down
    known = {"adopt", "memory", "synchronize", "lengths", "here"}  # not of statements, or called by what is refused
    known |= {"has_room", "halves"}  # asked before; views
    known |= {"reach", "mark", "between"}  # of frontiers that are dealt out, which no CPU device is told of
    known |= {"busy"}  # of products that are timed, which captured ones are not
    asked = {name for name, what in vars(CpuDevice).items() if callable(what) and name[0] != "_"}
    assert asked - done - known == {name for name in asked if getattr(tapes._Writing, name) is tapes._Writing._refused}


def test_rounds_that_keep_devices_busy(monkeypatch):
    """Each thread works on the rows of its device; and others' rows, where one has more work."""
    monkeypatch.setattr(gb.settings, "interpret", False)
    monkeypatch.setattr(tapes, "cores", lambda: [0, 1])
    gb.init("cpu:2", partition=gb.partition.shares(1, 3))
    A = gb.io.rmat(13, seed=3)
    for _ in range(2):
        ranks, rounds, _ = algos.pagerank(A, tol=0, max_iterations=40)
    (captured,) = (one for alike in gb.settings.session().loops._captured.values() for one in alike)
    shape = captured.tape._replay._shape()
    assert captured.tape._replay.threads == 2 and {thread for _, thread, _ in shape} == {None, 0, 1} and rounds == 40
    found = ranks.to_dense()
    gb.init("cpu:1")
    expected = algos.pagerank(gb.io.rmat(13, seed=3), tol=0, max_iterations=40)
    np.testing.assert_allclose(found, expected.ranks.to_dense(), rtol=1e-12)
