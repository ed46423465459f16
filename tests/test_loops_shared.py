"""Captured loops share their session: other threads' statements, reads, `gb.init` and forks come between two rounds, as
they do while a loop goes by statements."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import binary, monoid
from gbgpu.engine.loop.tapes import CpuTape
from gbgpu.engine.turns import Turns
from gbgpu.exceptions import InvalidValue

N, MANY, SECONDS = 300, 2000, 100
MOMENT = 1e-3  # between two looks at a loop, which would wait for one after the other otherwise


@pytest.fixture(autouse=True)
def bounded():
    """What waits for ever fails: the main thread hears of the alarm while it waits for a lock."""

    def late(*_) -> None:
        raise AssertionError(f"it took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["cpu:1", "cpu:3"])
def session(request):
    return gb.init(request.param)


def counter(form: str = "full") -> gb.Vector:
    """A vector of zeros: what a loop adds to."""
    ids = np.arange(N) if form == "full" else np.arange(0, N, 60 if form == "list" else 2)
    return gb.Vector.from_dense(np.zeros(N, int)) if form == "full" else gb.Vector.from_coo(ids, 0, int, size=N)


class Endless:
    """A loop that counts rounds in `x`, on a thread of its own, until somebody writes into `stop`. Leaving the block
    ends it; one that does not end fails."""

    def __init__(self, form: str = "full", **keywords):
        self.x, self.stop, self.error, self.loop = counter(form), gb.Vector(bool, N), None, None
        self.total = gb.Scalar(int)
        self.keywords = keywords
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        try:
            with gb.loop(**self.keywords) as self.loop:
                self.x << self.x + 1
                self.total << self.x.reduce(monoid.max)
                self.loop.until(self.stop.nvals == 1)
        except Exception as error:
            self.error = error

    def at(self, rounds: int) -> int:
        """Wait for so many rounds; returns how many there were."""
        limit = time.monotonic() + SECONDS
        while (now := self.value()) < rounds:
            assert time.monotonic() < limit and self.thread.is_alive(), (now, self.error, self.loop and self.loop.how)
            time.sleep(MOMENT)
        return now

    def value(self) -> int:
        values = set(self.x.to_coo()[1].tolist())
        assert len(values) == 1  # whole rounds
        return values.pop()

    def join(self) -> None:
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()

    def __enter__(self) -> "Endless":
        self.thread.start()
        return self

    def __exit__(self, kind, *failure) -> None:
        if kind is None:
            self.stop[0] = True
            self.join()
            assert self.error is None and captured(self.loop) and self.value() == self.loop.rounds


def captured(it) -> bool:
    """Interpreted kernels are not."""
    return "calls a round" in it.how or gb.settings.interpret


@contextmanager
def launches(monkeypatch):
    """How often captured rounds are launched."""
    plain, found = CpuTape.launch, []

    def launch(tape, *arguments):
        found.append(tape)
        return plain(tape, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(CpuTape, "launch", launch)
        yield found


OFTEN = {"nobody": {}, "told": {"on_iteration": lambda rounds: None, "every": 700}}


@pytest.mark.parametrize("told", OFTEN)
@pytest.mark.parametrize("form", ["full", "list", "bitmap"])
def test_what_others_read_of_a_captured_loop_is_of_whole_rounds(session, form, told):
    with Endless(form, **OFTEN[told]) as endless:
        now, before = endless.at(MANY), 0
        for _ in range(30):
            copy = endless.x.dup()
            after = endless.at(now + 1)
            assert now < after and set(copy.to_coo()[1].tolist()) <= set(range(now, after + 1))
            now = after
        for _ in range(30):
            total = endless.total.value
            assert before <= total <= endless.value()
            before = total
    assert endless.total.value == endless.loop.rounds


def test_who_asks_for_a_value_again_and_again_sees_it_change(session):
    """It is not answered by what was read before."""
    with Endless() as endless:
        first = endless.at(MANY)
        limit = time.monotonic() + SECONDS
        while endless.total.value < first + MANY:
            assert time.monotonic() < limit


CHANGES = {
    "a number": lambda x, one, most: setattr(most, "value", 0),
    "an addend": lambda x, one, most: setattr(one, "value", 10**12),
    "the vector": lambda x, one, most: x << 10**12,
    "one entry": lambda x, one, most: x.__setitem__(7, 10**12),
    "in place": lambda x, one, most: x(binary.plus) << 10**12,
}


@pytest.mark.parametrize("told", OFTEN)
@pytest.mark.parametrize("change", CHANGES)
def test_captured_loops_see_what_others_write(session, change, told):
    x, one, most = counter(), gb.Scalar.from_value(1, int), gb.Scalar.from_value(10**9, int)
    loops = []

    def run() -> None:
        with gb.loop(**OFTEN[told]) as it:
            loops.append(it)
            x << x + one
            it.until(it.index > most)
            it.until(x.reduce(monoid.max) > 10**11)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while x.get(0) < MANY:
        assert thread.is_alive()
        time.sleep(MOMENT)
    CHANGES[change](x, one, most)
    thread.join(SECONDS)
    assert not thread.is_alive() and loops[0].converged and captured(loops[0])


def test_clear_waits_for_the_round(session):
    with Endless() as endless:
        endless.at(MANY)
        endless.x.clear()
        assert endless.x.nvals == 0
        endless.x << gb.Vector.from_dense(np.full(N, endless.loop.rounds))
        endless.stop[0] = True
        endless.join()
        endless.x << gb.Vector.from_dense(np.full(N, endless.loop.rounds))


def test_two_captured_loops_go_on_side_by_side(session):
    with Endless() as one, Endless("list") as other:
        for rounds in range(1, 6):
            one.at(rounds * MANY)
            other.at(rounds * MANY)


def test_inner_loops_share_the_session_too(session):
    x, stop, rounds = counter(), gb.Vector(bool, N), []

    def run() -> None:
        with gb.loop(2) as outer:
            stop << gb.Vector(bool, N)
            with gb.loop() as inner:
                x << x + 1
                inner.until(stop.nvals == 1)
        rounds.append((outer.rounds, captured(inner)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while x.get(0) < MANY:
        assert thread.is_alive()
        time.sleep(MOMENT)
    limit = time.monotonic() + SECONDS
    while thread.is_alive() and time.monotonic() < limit:
        stop[0] = True  # once for each inner loop
        thread.join(0.05)
    assert rounds == [(2, True)]


def test_a_session_that_another_thread_ends_ends_its_captured_loop(session):
    endless = Endless()
    endless.thread.start()
    endless.at(MANY)
    gb.init("cpu:2")
    endless.join()
    assert isinstance(endless.error, InvalidValue) and endless.loop.rounds >= MANY and captured(endless.loop)


@pytest.mark.parametrize("every, at", [(1, 3), (1, 400), (5000, 10_000)])
def test_a_session_that_on_iteration_ends_ends_the_loop(session, every, at):
    x = counter()

    def hear(rounds: int) -> None:
        if rounds == at:
            gb.init("cpu:2")

    with pytest.raises(InvalidValue, match=r"gb\.init"), gb.loop(20_000, on_iteration=hear, every=every) as it:
        x << x + 1
    assert it.rounds == at


def test_on_iteration_may_wait_for_another_thread(session):
    x, y, found = counter(), counter(), []

    def hear(rounds: int) -> None:
        other = threading.Thread(target=lambda: y << y + x, daemon=True)
        other.start()
        other.join(SECONDS)
        found.append((rounds, other.is_alive()))

    with gb.loop(40, on_iteration=hear) as it:
        x << x + 1
    assert captured(it) and found == [(rounds, False) for rounds in range(1, 41)]
    assert y.get(0) == 40 * 41 // 2


@pytest.mark.parametrize("form", ["full", "list", "bitmap"])
def test_what_on_iteration_keeps_does_not_change(session, form):
    """Lists, and vectors of one value, are shared by those that are copied from them."""
    x, y, kept = counter(form), gb.Vector.from_coo(np.arange(N), 0, int, size=N), []
    with gb.loop(200, on_iteration=lambda rounds: kept.append((x.dup(), y.dup(), rounds)), every=20) as it:
        x << binary.plus(x, 1)
        y << binary.plus(y, 1)
    assert captured(it) and len(kept) == 10
    assert [{*a.to_coo()[1].tolist(), *b.to_coo()[1].tolist()} for a, b, _ in kept] == [{k} for *_, k in kept]


def test_a_fork_comes_between_two_rounds(session):
    def use() -> int:
        signal.alarm(60)
        first = endless.value()
        endless.x << endless.x + 1
        return 0 if endless.value() == first + 1 and first >= MANY else 1

    with Endless() as endless:
        endless.at(MANY)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = use()
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        endless.at(endless.value() + MANY)


def test_a_captured_loop_that_nobody_waits_for_is_launched_once(session, monkeypatch):
    x = counter()
    with launches(monkeypatch) as found, gb.loop(30_000) as it:
        x << x + 1
    assert captured(it) and len(found) == (not gb.settings.interpret)


# -- the lock


def test_ctrl_c_that_comes_with_a_turn_gives_it_back(monkeypatch):
    plain, lock, held, go = Turns._wait, Turns(), threading.Event(), threading.Event()

    def interrupted(lock, taken) -> None:
        plain(lock, taken)
        raise KeyboardInterrupt

    def hold() -> None:
        with lock:
            held.set()
            go.wait(SECONDS)

    monkeypatch.setattr(Turns, "_wait", interrupted)
    other = threading.Thread(target=hold, daemon=True)
    other.start()
    assert held.wait(SECONDS)
    threading.Timer(0.05, go.set).start()
    with pytest.raises(KeyboardInterrupt), lock:
        raise AssertionError("the body ran")
    other.join(SECONDS)
    assert not (lock.wanted or lock.owned)


def test_threads_that_wait_have_the_lock_before_it_is_taken_again():
    lock, turns = Turns(), []

    def take() -> None:
        with lock:
            turns.append("other")

    with lock:
        others = [threading.Thread(target=take, daemon=True) for _ in range(3)]
        for other in others:
            other.start()
        limit = time.monotonic() + SECONDS
        while len(lock._waiting) < 3:
            assert time.monotonic() < limit
        lock.give_way()  # it is still held: there is nothing to wait for
        assert turns == [] and lock.wanted
    lock.give_way()
    with lock:
        turns.append("this")
    assert turns == ["other"] * 3 + ["this"]


def test_a_thread_that_takes_the_lock_again_and_again_lets_others_in(monkeypatch):
    """A reader in a tight loop and a captured loop, which takes the lock for each slice."""
    monkeypatch.setattr("gbgpu.engine.turns.SLICE", 0.0)
    lock, had, over = Turns(), threading.Event(), threading.Event()

    def take() -> None:
        with lock:
            had.set()
        over.wait(SECONDS)

    with lock:
        other = threading.Thread(target=take, daemon=True)
        other.start()
        limit = time.monotonic() + SECONDS
        while not lock.wanted:
            assert time.monotonic() < limit
    with lock:  # at once, but for who waits
        assert had.is_set()
    over.set()
    other.join(SECONDS)
