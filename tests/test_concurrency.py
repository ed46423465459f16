"""Threads, forked processes and Ctrl-C: every statement happens as a whole or not at all, and nothing hangs."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import binary, interrupts, monoid, settings
from gbgpu.device.base import cores
from gbgpu.device.cpu import CpuDevice, CpuDevices
from gbgpu.distribute.rowmap import Task
from gbgpu.semiring import plus_times
from gbgpu.trace import counters

N = 5000


def graph(n: int = N) -> gb.Matrix:
    r = np.random.default_rng(0)
    return gb.Matrix.from_coo(r.integers(0, n, 4 * n), r.integers(0, n, 4 * n), 1, int, nrows=n, ncols=n)


def together(*works):
    """The results of functions that run at the same time, each on a thread of its own."""
    start = threading.Barrier(len(works))

    def run(work):
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(run, work) for work in works]]


# -- threads


pytestmark = pytest.mark.usefixtures("terminal")


def tasks(p):
    return [Task(b, b, 0, 1) for b in range(p)]


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_threads_share_a_session(devices, direction):
    A = graph()
    x = gb.Vector.from_coo(np.arange(0, N, 20), 1, int, size=N)

    def total() -> int:
        w = gb.Vector(int, N)
        w(direction=direction) << plus_times(x @ A)
        return w.reduce().new().value

    right = total()
    found = together(*[lambda: [total() for _ in range(20)]] * 3)
    assert {value for values in found for value in values} == {right}


def test_threads_may_write_one_object(devices):
    w, ones = gb.Vector.from_dense(np.zeros(N, int)), gb.Vector.from_dense(np.ones(N, int))

    def add() -> None:
        for _ in range(25):
            w(binary.plus) << ones

    together(add, add, add)
    assert set(w.to_coo()[1].tolist()) == {75}


def test_a_scalar_is_read_by_many_threads(devices):
    v = gb.Vector.from_dense(np.arange(N))
    for _ in range(10):
        total = v.reduce().new()
        assert set(together(*[partial(getattr, total, "value")] * 4)) == {N * (N - 1) // 2}


def test_explaining_is_for_one_thread(devices):
    v, w = gb.Vector.from_dense(np.arange(10)), gb.Vector(int, 10)
    inside, done = threading.Event(), threading.Event()

    def explain() -> str:
        with gb.explain() as text:
            inside.set()
            assert done.wait(60)
            gb.Vector(int, 10) << v
        return str(text)

    def run() -> int:
        assert inside.wait(60)
        w << v
        done.set()
        return w.nvals

    text, count = together(explain, run)
    assert count == 10
    assert len(text.splitlines()[0].split("<<")) == 2 and w.name not in text


def test_a_trace_has_the_statements_of_its_thread(devices):
    v = gb.Vector.from_dense(np.arange(10))
    inside, done = threading.Event(), threading.Event()

    def traced() -> list:
        with gb.trace() as records:
            inside.set()
            assert done.wait(60)
            gb.Vector(int, 10, name="mine") << v
        return records

    def run() -> None:
        assert inside.wait(60)
        gb.Vector(int, 10, name="other") << v
        done.set()

    records, _ = together(traced, run)
    assert {record.text.split(" ")[0] for record in records} == {"mine"}


def test_counters_add_up():
    before = counters.statements, counters.host_reads, counters.exchanged
    device = gb.init("cpu:1").devices[0]
    word = device.zeros(1, np.int64)

    def count() -> None:
        for _ in range(5000):
            device.get(word)
            counters.moved(3)

    together(count, count, count)
    assert (counters.host_reads - before[1], counters.exchanged - before[2]) == (15_000, 45_000)


def test_threads_begin_with_one_session(monkeypatch):
    settings.install(None).close()
    made = []

    def start():
        time.sleep(0.01)  # the others come meanwhile
        made.append(gb.init("cpu:2"))
        return made[-1]

    monkeypatch.setattr(settings, "_start", start)
    vectors = together(*[lambda: gb.Vector.from_coo([0], [1], size=3)] * 4)
    assert len(made) == 1 and [v.nvals for v in vectors] == [1] * 4


def test_threads_may_start_sessions():
    sessions = together(*[lambda: gb.init("cpu:2")] * 4)
    assert [session.alive for session in sessions].count(True) == 1
    assert gb.Vector.from_coo([0], [1], size=3).nvals == 1


def test_a_session_ends_between_statements():
    """`gb.init` in one thread lets another's statement end; the next one raises."""
    gb.init("cpu:2")
    v, w = gb.Vector.from_dense(np.arange(10)), gb.Vector(int, 10)
    session, ended = v._session, threading.Event()
    with session.lock:
        other = threading.Thread(target=lambda: (gb.init("cpu:1"), ended.set()))
        other.start()
        assert not ended.wait(0.05)
        w << v
        assert w.nvals == 10
    other.join(60)
    with pytest.raises(gb.exceptions.InvalidValue):
        w << v


@pytest.mark.parametrize("owner", [monoid.plus, gb.semiring.plus_times])
def test_typed_operators_are_one_object(owner, monkeypatch):
    """Whoever looks one up while another thread makes it gets the same."""
    fresh = type(owner).register_anonymous(
        *((owner.binaryop, 0) if owner is monoid.plus else (owner.monoid, owner.binaryop))
    )
    make, met = fresh._make, []

    def meanwhile(dtype):
        if not met:
            met.append(None)
            met[0] = fresh[int]  # as another thread would
        return make(dtype)

    monkeypatch.setattr(type(fresh), "_make", lambda self, dtype: meanwhile(dtype))
    assert fresh[int] is met[0] and fresh[int] is fresh["INT64"]


# -- fork


def child(work) -> int:
    """The exit status of a forked child that runs `work`."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(60)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sums(v) -> int:
    return (v + v).new().reduce().new().value


def test_a_child_starts_its_own_threads(monkeypatch):
    monkeypatch.setattr(settings, "inline", "never")
    gb.init("cpu:3")
    v = gb.Vector.from_dense(np.arange(N))
    right = sums(v)

    def work() -> None:
        assert sums(v) == right
        gb.init("cpu:2")
        assert sums(gb.Vector.from_dense(np.arange(N))) == right

    assert child(work) == 0
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_total, [N, N + 1]).get(60) == [right, right + 2 * N]
    assert sums(v) == right


def _total(n: int) -> int:
    return sums(gb.Vector.from_dense(np.arange(n)))


@pytest.mark.parametrize("pin", [True, False])
def test_threads_of_devices_have_a_core_each(monkeypatch, pin):
    monkeypatch.setattr(settings, "pin", pin)
    monkeypatch.setattr(settings, "inline", "never")
    devices, mine = CpuDevices(3), cores()
    found = devices.over(tasks(3), lambda task: os.sched_getaffinity(0), 0.0)
    devices.close()
    assert found == [set(mine)] + [{mine[d % len(mine)]} if pin else set(mine) for d in (1, 2)]


def test_a_fork_waits_for_the_statements_of_other_threads():
    gb.init("cpu:1")
    v = gb.Vector.from_dense(np.arange(N))
    session, inside, out = v._session, threading.Event(), threading.Event()

    def hold() -> None:
        with session.lock:
            inside.set()
            time.sleep(0.05)
            out.set()

    other = threading.Thread(target=hold)
    other.start()
    inside.wait(60)
    assert child(lambda: (None if out.is_set() else 1 / 0, sums(v))) == 0
    other.join()


def test_a_child_of_cuda_is_told(monkeypatch):
    from gbgpu.device.cuda_devices import CudaDevices

    gb.init("cpu:1")
    v = gb.Vector.from_dense(np.arange(10))
    monkeypatch.setattr(CpuDevices, "forked", CudaDevices.forked)

    def work() -> None:
        for use in (lambda: v.nvals, lambda: sums(v), lambda: gb.Vector(int, 3), lambda: v.to_coo()):
            with pytest.raises(gb.exceptions.GraphblasException, match="spawn"):
                use()
        gb.init("cpu:2")
        assert sums(gb.Vector.from_dense(np.arange(10))) == 90

    assert child(work) == 0
    assert sums(v) == 90


# -- Ctrl-C


@pytest.fixture
def ctrl_c():
    """Presses Ctrl-C so many seconds later; `pressed` of it is how often."""

    def press(*_) -> None:
        later.pressed += 1
        signal.raise_signal(signal.SIGINT)

    def later(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    later.pressed = 0
    old = signal.signal(signal.SIGALRM, press)
    yield later
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture
def storm(ctrl_c):
    """Calls a function and presses Ctrl-C at some random time while it runs, or soon after."""
    rng = random.Random(1)

    def run(work) -> None:
        before = ctrl_c.pressed
        with suppress(KeyboardInterrupt):
            ctrl_c(rng.uniform(1e-6, 400e-6))
            work()
            while ctrl_c.pressed == before:
                time.sleep(0)  # CPython's flag for signals may miss one; whoever takes the interpreter sets it anew

    return run


def test_ctrl_c_leaves_all_blocks_old_or_new(devices, storm):
    w, ones = gb.Vector.from_dense(np.zeros(N, int)), gb.Vector.from_dense(np.ones(N, int))
    for _ in range(300):
        storm(lambda: w(binary.plus) << ones)
        assert len(set(w.to_coo()[1].tolist())) == 1
    some, values = gb.Vector.from_coo(np.arange(0, N, 9), 1, int, size=N), gb.Vector(int, N)
    values << w
    for _ in range(300):
        storm(lambda: values(some.S, binary.plus) << 1)
        assert len(set(values.to_coo()[1][::9].tolist())) == 1


def test_ctrl_c_leaves_counts_and_entries_alike(devices, storm):
    all, even = gb.Vector.from_dense(np.ones(N, int)), gb.Vector.from_coo(np.arange(0, N, 2), True, size=N)
    w = gb.Vector(int, size=N)
    changes = (lambda: w(even.S, gb.replace) << w), (lambda: w(binary.plus) << all)
    for i in range(404):
        if i < 4:
            changes[i % 2]()
        else:
            storm(changes[i % 2])
        ids, _ = w.to_coo()
        assert w.nvals == len(ids) and len(ids) in (0, N, N // 2)


@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3"])
def test_a_write_that_runs_out_of_memory_changes_nothing(spec, monkeypatch):
    """Whichever of its allocations fails."""
    gb.init(spec)
    some, all = gb.Vector.from_coo(np.arange(0, N, 2), 1, int, size=N), gb.Vector.from_dense(np.ones(N, int))
    w = gb.Vector(int, N)
    w(some.S) << all  # a bitmap
    before, plain, left = w.to_coo(), CpuDevice.zeros, [0]

    def zeros(device, n, dtype):
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        return plain(device, n, dtype)

    with monkeypatch.context() as patch:
        patch.setattr(CpuDevice, "zeros", zeros)
        for failing in range(10):
            left[0] = failing
            try:
                w(binary.plus) << all
                break
            except gb.exceptions.OutOfMemory:
                left[0] = 99
                assert w.nvals == len(before[0])
                assert all_equal(w.to_coo(), before)
    assert failing and w.nvals == N and set(w.to_coo()[1].tolist()) == {1, 2}


def all_equal(one, two) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_ctrl_c_while_a_write_runs_on_threads_waits(ctrl_c, monkeypatch):
    monkeypatch.setattr(settings, "inline", "never")
    devices, done = gb.init("cpu:3").device_set, []

    def work(task) -> None:
        if task.block == 1:
            ctrl_c(0.01)
        time.sleep(0.05)
        done.append(task.block)

    with pytest.raises(KeyboardInterrupt):
        interrupts.held(lambda: devices.over(tasks(3), work, 1e-3, whole=True))
    assert sorted(done) == [0, 1, 2]


def test_handlers_of_the_user_are_called_and_stay(ctrl_c):
    came = []

    def mine(number, frame) -> None:
        came.append(number)

    old = signal.signal(signal.SIGINT, mine)
    try:
        interrupts.held(lambda: (ctrl_c(0.01), time.sleep(0.05), came.append("ended")))
        assert came == ["ended", signal.SIGINT] and signal.getsignal(signal.SIGINT) is mine
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        interrupts.held(lambda: (ctrl_c(0.01), time.sleep(0.05)))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, old)


@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3"])
def test_ctrl_c_comes_through_long_steps(spec, ctrl_c):
    """They run on threads, which go on alone; the session works at once, and so does the next one."""
    session, go, ended = gb.init(spec), threading.Event(), threading.Event()
    v = gb.Vector.from_dense(np.arange(N))
    p = len(session.devices)

    def work(task) -> None:
        if task.block == 0:
            ctrl_c(0.02)
        go.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        session.over(tasks(p), work, 1.0)
    assert not ended.is_set()
    assert session.over(tasks(p), lambda task: task.block, 1.0) == list(range(p)) and sums(v) == N * (N - 1)
    gb.init(spec)
    go.set()
    assert ended.wait(60)


def test_a_step_that_was_interrupted_leaves_marks_in_no_workspace(ctrl_c, monkeypatch):
    """The thread that goes on has a workspace of its own."""
    monkeypatch.setattr(settings, "long_seconds", 0.0)
    session, A = gb.init("cpu:2"), graph()
    x = gb.Vector.from_coo(np.arange(0, N, 20), 1, int, size=N)

    def product():
        w = gb.Vector(int, N)
        w(direction="push") << plus_times(x @ A)
        return w.to_dict()

    right, plain, go = product(), session.kernels.get, threading.Event()
    spaces = session.pool._spaces
    session.plans.clear()  # they remember their kernels

    def get(kind, spec):
        kernel = plain(kind, spec)

        def slow(*args):
            if kind == "push":
                ctrl_c(0.01)
                go.wait(60)
            kernel(*args)

        return slow

    with monkeypatch.context() as patch:
        patch.setattr(session.kernels, "get", get)
        with pytest.raises(KeyboardInterrupt):
            product()
    session.plans.clear()
    assert session.pool._spaces is not spaces
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("cpu:")]
    go.set()
    assert product() == right and threads


def test_statements_and_loops_import_nothing_on_the_main_thread():
    """Ctrl-C would cut it."""
    program = """
        import _frozen_importlib as importing, threading
        import numpy as np, gbgpu as gb
        from gbgpu import settings
        plain, found = importing._find_and_load, []
        def look(name, *arguments):
            if threading.current_thread() is threading.main_thread():
                found.append(name)
            return plain(name, *arguments)
        settings.interpret = False
        gb.init("cpu:2")
        importing._find_and_load = look
        w, even = gb.Vector.from_dense(np.zeros(50, int)), gb.Vector.from_coo([0, 2], True, size=50)
        w(even.S, gb.binary.plus) << 1
        with gb.loop(60) as it:
            w << w + 1
        print(found, it.how, w[0].new().value)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split(maxsplit=1)[:1] == ["[]"], done.stdout + done.stderr


def test_ctrl_c_leaves_what_runs_apart_to_end_in_peace(ctrl_c):
    go, done = threading.Event(), []

    def work():
        assert go.wait(60)
        done.append(1)

    ctrl_c(0.02)
    with pytest.raises(KeyboardInterrupt):
        interrupts.apart(work)
    assert not done
    go.set()
    interrupts.apart(lambda: done.append(2))  # in turn
    assert done == [1, 2]


def program(text: str, cache, *arguments: str) -> subprocess.CompletedProcess:
    """A script in a process of its own, with an empty cache of kernels unless another is named."""
    environment = {**os.environ, "GBGPU_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def test_ctrl_c_in_the_first_statement(tmp_path):
    """It interrupts imports and compilers, and what they do goes on: the next use finds it done."""
    done = program(
        """
        import signal
        import gbgpu as gb
        gb.init("cpu:1")
        v = gb.Vector.from_coo([0, 2, 3], [1, 2, 3], size=4)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        interrupted = 0
        for seconds in (0.005, 0.01, 0.1, 0.2, 0.4):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                gb.binary.plus(v | v).new()
            except KeyboardInterrupt:
                interrupted += 1
            else:
                signal.setitimer(signal.ITIMER_REAL, 0)
        assert gb.binary.plus(v | v).new().to_dict() == {0: 2, 2: 4, 3: 6}
        print(interrupted)
        """,
        tmp_path,
    )
    assert done.returncode == 0 and int(done.stdout) >= 1, done


def test_ctrl_c_ends_a_program_in_a_long_product():
    done = program(
        """
        import os, signal, threading
        import numpy as np
        import gbgpu as gb
        gb.init("cpu:1")
        small = gb.Matrix.from_dense(np.ones((3, 3)))
        gb.semiring.plus_times(small @ small).new(method="rows")  # compiled
        n = 3000
        A = gb.Matrix.from_csr(np.arange(n + 1) * n, np.tile(np.arange(n), n), 1.0, ncols=n)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        gb.semiring.plus_times(A @ A).new(method="rows")  # minutes
        """,
        settings.cache_directory(),
    )
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr, done
