"""What holds while a `with` goes on is over with it, whatever cuts it: Ctrl-C before any step of the interpreter."""

import contextlib
import gc
import os
import signal
import sys
from _thread import interrupt_main
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import binary, interrupts, modes
from gbgpu.kernels import ahead
from gbgpu.language import recording
from gbgpu.language.recording import recorder
from gbgpu.trace import by_steps, listeners, now

PACKAGE = str(Path(gb.__file__).parent)
# In the ordinary run Ctrl-C comes in what begins and ends modes only.
TRACE = sys.modules["gbgpu.trace"]  # gb.trace is a function
MACHINERY = tuple(module.__file__ for module in (gb, gb.settings, modes, interrupts, recording, TRACE))
LONG = os.environ.get("GBGPU_TEST_PROFILE") == "long"
PLACES, STRIDE = ((PACKAGE,), 23) if LONG else (MACHINERY, 19)


pytestmark = pytest.mark.usefixtures("terminal")


def looped(v):
    with gb.loop(2):
        v << v + 1


def nested(v):
    with gb.loop(2), gb.loop(1):
        v << v + 1


def guarded(v):
    with gb.loop(3) as it, it.when(it.index < 2):
        v << v + 1


def kept(v):
    s = gb.Scalar(int)
    s << 2
    with gb.loop(1):
        n = s.value
        s << 5  # so that what it was is kept
        v << v + n


def explained(v):
    with gb.explain() as text:
        v << v + 1
    assert len(text) == 1
    v << v + 2


def explained_loop(v):
    with gb.loop(2):
        v << v + 1
    with gb.explain(), gb.loop(2):
        v << v + 1


def traced(v):
    with gb.trace() as records:
        v << v + 2
    assert records


def traced_loop(v):
    with gb.trace(rounds=True), gb.loop(2):
        v << v + 1


def cut(work, v, k: int, failures: list) -> bool:
    """work(v) with Ctrl-C before step k of it; whether it came to that. What is raised is kept: where Python looks for
    signals next, which it does after calls, where functions begin and where they jump back."""
    steps = 0

    def step(frame, event, _):
        nonlocal steps
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == k:
                sys.settrace(None)
                [_] = map(interrupt_main, [signal.SIGINT])  # no call: after those Python looks, and this is no step
        return step

    def called(frame, event, _):
        file = frame.f_code.co_filename
        here = frame.f_code is work.__code__ or file.startswith(PLACES) or file == contextlib.__file__
        return step(frame, event, _) if here else None

    others = sys.gettrace()
    try:
        sys.settrace(called)
        work(v)
        sys.settrace(others)  # Python looks here at the latest
    except KeyboardInterrupt as failure:
        failures.append(failure)
    finally:
        sys.settrace(others)
    return steps >= k


@pytest.fixture(scope="module", autouse=True)
def each_step() -> None:
    """Python 3.12 tells of steps from the second call of sys.settrace on after somebody asked for them."""
    cut(lambda v: None, None, 1 << 62, [])


WORKS = looped, nested, guarded, kept, explained, explained_loop, traced, traced_loop


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_ctrl_c_before_any_step(work):
    session = gb.init("cpu:1")
    v, w = gb.Vector.from_dense(np.zeros(3, int)), gb.Vector.from_dense(np.zeros(3, int))
    for _ in range(2):  # what is compiled, or planned once
        work(v)
    before, handlers = list(gc.callbacks), [signal.getsignal(n) for n in interrupts._SIGNALS]
    heard = set(listeners), set(by_steps)
    k, failures, came = 1, [], True
    while came:
        v << 0
        came = cut(work, v, k, failures)
        assert not session.lock._is_owned(), k
        w << 1
        w(binary.plus) << 1
        assert w.to_dense().tolist() == [2, 2, 2], k
        assert recorder(session) is None and session.explaining is None and not session.changes, k
        assert not session.looping and session.made is None and session.watched is None, k
        assert (listeners, by_steps) == heard and gc.callbacks == before, k
        assert [signal.getsignal(n) for n in interrupts._SIGNALS] == handlers, k
        assert v.to_dense().tolist() in [[done] * 3 for done in range(3)], k
        v << 0
        work(v)
        assert v.to_dense().tolist() == [2] * 3, k
        k += STRIDE
        del failures[:-3]
    assert k > 10 * STRIDE and failures


def test_modes_by_hand():
    """ExitStack, and calls of `__enter__` and `__exit__`."""
    gb.init("cpu:1")
    v, before = gb.Vector.from_dense(np.zeros(3, int)), list(gc.callbacks)
    with ExitStack() as stack:
        records = stack.enter_context(gb.trace())
        stack.enter_context(gb.loop(2))
        v << v + 1
    assert v.to_dense().tolist() == [2] * 3 and records and gc.callbacks == before
    planning, it = gb.explain(), gb.loop(3)
    text = planning.__enter__()
    v << v + 5
    planning.__exit__(None, None, None)
    it.__enter__()
    v << v + 1
    it.__exit__(None, None, None)
    assert len(text) == 1 and v.to_dense().tolist() == [5] * 3
    it = gb.loop(3)
    it.__enter__()
    v << 7
    del it  # whose body was not ended
    v << v + 1
    assert v.to_dense().tolist() == [6] * 3
    left = gb.trace()
    left.__enter__()
    del left
    assert gc.callbacks == before


def test_what_a_generator_holds_open():
    """A mode is over when the generator is gone."""
    gb.init("cpu:1")
    v, heard = gb.Vector.from_dense(np.zeros(3, int)), set(listeners)

    def held_open():
        with gb.trace(), gb.explain() as text:
            yield text

    generator = held_open()
    text = next(generator)
    v << v + 1
    assert len(text) == 1 and len(listeners) == len(heard) + 1
    del generator
    v << v + 1
    assert v.to_dense().tolist() == [1] * 3 and len(text) == 1 and listeners == heard


def test_a_program_that_is_compiled_ahead_leaves_settings(monkeypatch):
    """Also where Ctrl-C comes before any step of what begins and ends it, and for whoever makes a session next."""
    monkeypatch.setattr(ahead, "compile_all", lambda asked, arch: len(asked))
    session = gb.init("cpu:1")
    usual = gb.settings.rehearsal, gb.settings.interpret

    def work(v):
        gb.compile_ahead(lambda: gb.init("cpu:1"), "sm_90")

    k, failures, came = 1, [], True
    while came:
        came = cut(work, None, k, failures)
        assert gb.settings.session() is session, k
        assert (gb.settings.rehearsal, gb.settings.interpret) == usual, k
        k += STRIDE
    assert len(failures) > 10 and session.alive


# -- signals


@pytest.fixture
def handled():
    """Handlers of signals, for a while."""
    before = {}

    def handle(number: int, handler) -> None:
        before.setdefault(number, signal.signal(number, handler))

    yield handle
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_all_signals_wait_for_the_end_of_a_write(handled):
    """They arrive in the order in which they came, each one, though handlers raise; and handlers are as before."""
    came, ours = [], (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM)

    def handler(number, frame):
        came.append(number)
        if number != signal.SIGUSR1:
            raise TimeoutError(number)

    def work():
        for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGTERM):
            signal.raise_signal(number)
        interrupts.held(lambda: signal.raise_signal(signal.SIGALRM))
        came.append("done")

    for number in ours:
        handled(number, handler)
    with pytest.raises(TimeoutError) as failure:
        interrupts.held(work)
    assert came == ["done", signal.SIGALRM, signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM]
    assert failure.value.args == (signal.SIGALRM,) and failure.value.__context__.args == (signal.SIGTERM,)
    assert [signal.getsignal(number) for number in ours] == [handler] * 3
    interrupts.held(lambda: handled(signal.SIGUSR2, handler))  # what `work` sets stays
    assert signal.getsignal(signal.SIGUSR2) is handler


def test_a_signal_while_handlers_are_put_back(handled):
    """The others are put back all the same, and what came before arrives."""
    came = []

    def handler(number, frame):
        came.append(number)
        raise TimeoutError

    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        handled(number, handler)
    plain, put = interrupts.signal, []

    def puts(number, what):
        plain(number, what)
        if what is handler and len(put) == 0:
            put.append(number)
            signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(TimeoutError):
        patch.setattr(interrupts, "signal", puts)
        interrupts.held(lambda: signal.raise_signal(signal.SIGTERM))
    assert came == [*put, signal.SIGTERM]
    assert signal.getsignal(signal.SIGUSR1) is signal.getsignal(signal.SIGUSR2) is handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_that_change_handlers(handled):
    """What came for a handler that is ignored now is ignored, as Python has it."""
    came = []
    handled(signal.SIGUSR1, lambda *_: signal.signal(signal.SIGUSR2, signal.SIG_IGN))
    handled(signal.SIGUSR2, lambda *_: came.append("old"))
    interrupts.held(lambda: list(map(signal.raise_signal, (signal.SIGUSR1, signal.SIGUSR2))))
    assert came == [] and signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN


def test_handlers_that_are_equal(handled):
    """Each is put back as the one that it was."""

    class Equal:
        def __eq__(self, other):
            return np.ones(2, bool)

        def __call__(self, number, frame):
            pass

    for handler in (Equal(), Equal()):
        handled(signal.SIGUSR1, handler)
        interrupts.held(lambda: None)
        assert signal.getsignal(signal.SIGUSR1) is handler


@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3"])
def test_time_limits_leave_writes_whole(spec, handled, monkeypatch):
    """Handlers of SIGALRM that raise; kernels are compiled, interpreted, or run on threads."""

    armed = False

    def limit(number, frame):
        if armed:  # another thread may be the one that is told, and tell this one late
            raise TimeoutError

    handled(signal.SIGALRM, limit)
    rng = np.random.default_rng(0)
    for name, value in ("inline", "auto"), ("interpret", True), ("inline", "never"):
        with monkeypatch.context() as patch:
            patch.setattr(gb.settings, name, value)
            gb.init(spec)
            x, cut = gb.Vector.from_dense(np.zeros(300, int)), 0
            x(binary.plus) << 1
            for _ in range(60):
                start = now()
                x(binary.plus) << 1
                took, before = now() - start, x.to_dense()
                with suppress(TimeoutError):
                    try:
                        armed = True
                        signal.setitimer(signal.ITIMER_REAL, rng.random() * took * 1.2 + 1e-6)
                        x(binary.plus) << 1
                    finally:
                        cut += signal.setitimer(signal.ITIMER_REAL, 0)[0] == 0
                        armed = False
                assert len(set((x.to_dense() - before).tolist())) == 1
            assert cut > 5
