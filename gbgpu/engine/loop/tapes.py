"""Where a round is written down, and what runs it: a CUDA graph on a GPU; a list of calls on CPU devices."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NoReturn

import numpy as np

from ... import settings
from ...device.cpu import CpuDevice
from ...interrupts import held, imported
from ...kernels import resident
from ...kernels.cpu import load
from ...kernels.interface import Late
from ...kernels.resident import Code, Part, Program, Round, Unknown
from ...semiring._types import INT64
from .condition import Condition, CpuCondition, CudaCondition
from .journal import Journal, NotCompiled

SHORT = 1e-5  # seconds of a round's passes over rows from which they want all the threads that a graph gives them
_CHUNK, _PATIENCE = 64, 0.02  # rounds, at first, and seconds for which Ctrl-C waits


class CudaTape:
    """A CUDA graph whose body is what the device was given."""

    def __init__(self, session: Any):
        self._session, self._device = session, session.devices[0]
        self._kernels: list[Any] = []  # a graph does not keep the code that it launches
        self._graph = imported("gbgpu.device.graph").WhileGraph(session.devices)
        self.state = self._device.zeros(8, np.int64)  # the round, whether it is over, whether it is too wide
        self.condition: type[Condition] = CudaCondition

    @contextmanager
    def recording(self, journal: Journal, thin: bool, seconds: float = 0.0) -> Iterator[None]:
        """`thin`: most works on short lists, but for passes over rows that take so many seconds."""
        session, before = self._session, self._session.late
        self._journal, self._stays = journal, thin and seconds < SHORT
        try:
            with self._graph.body(journal, self._device.processors if thin else 0):
                session.late = _late
                yield
        finally:
            session.late = before

    def turn(self, text: str, arrays: list[Any], most: int | None, changed: list[Any]) -> None:
        """The last kernel of a round, which writes the arrays `changed`."""
        graph, handle = self._graph, np.uint64(int(self._graph.handle))
        self._changed = [self.state, *changed]
        own = handle, self.state, graph.abort, most or 2**62, graph.words, graph.used
        self._once(imported("gbgpu.device.nvrtc").compile_ptx, text, "turn", (*own, *arrays))

    def _once(self, compile: Callable[[str, str], bytes], text: str, name: str, args: tuple) -> None:
        """Launch a kernel of a text, with one thread."""
        self._kernels.append(self._device.load(compile(text, self._device.arch), text, alone=True)(name))
        self._device.launch(self._kernels[-1], 1, 1, args)

    def number(self) -> CudaCondition:
        """For a text that is computed within a round."""
        return _within(CudaCondition(), self.state)

    def compute(self, dtype: Any, condition: Any, text: str) -> Any:
        """Two words: the value of a text, and that there is one."""
        both = self._device.empty(2, np.int64)
        text = condition.computing(text, dtype)
        self._once(imported("gbgpu.device.nvrtc").compile_cubin, text, "number", (both, *condition.arrays))
        return both

    @contextmanager
    def guarded(self, condition: Any, text: str) -> Iterator[None]:
        """What is captured inside is passed over unless the text holds."""
        handle = self._graph.condition()
        args = np.uint64(int(handle)), *condition.arrays
        self._once(imported("gbgpu.device.nvrtc").compile_ptx, condition.guarding(text), "guard", args)
        with self._graph.guarded(handle):
            yield
        self._journal.did("", "end")

    def replaced(self, pairs: list[tuple[Any, Any]]) -> bool:
        """Whether buffers could be given in place of others once all is written down."""
        return False

    def finish(self) -> None:
        self.how = f"a graph of {self._graph.nodes} nodes a round"
        self._code: Code | None = None
        how = settings.resident
        if how == "always" or self._stays and how != "never":
            with suppress(Unknown):
                self._program = Program([self.round()])
                self._code = Code.of(self._program.text, self._device.arch)
        self._ready(how in ("now", "always"))
        if not self._graph.stays:
            self._graph.finish()

    def round(self, abort: int | None = None) -> Round:
        """The parts of a round; its end looks at another word whether it is to stop."""
        *parts, last = self._parts()
        if abort is not None:
            last = last._replace(args=(*last.args[:2], abort, *last.args[3:]))
        return Round([*parts, last], self._changed, self._graph.words, self._graph.used)

    def crossing(self) -> Round:
        return Round(self._parts(), (), self._graph.words, self._graph.used)

    def _parts(self) -> list[Part]:
        """Raises Unknown if the graph has something that the devices did not tell of."""
        parts = [Part(*part) for part in self._journal.parts]
        if self._graph.nodes != sum(part.name != "end" for part in parts):
            raise Unknown("what has no text")
        return parts

    @property
    def abort(self) -> int:
        return int(self._graph.abort)

    @property
    def kind(self) -> int:
        """Of the round that the last launch ended in."""
        return int(self._graph.ended[0])

    def begin(self, rounds: int) -> None:
        self._graph.expect(0, rounds)
        if rounds:
            self._device.copy(self.state, np.array([rounds, *[0] * 7]))
        else:
            self._device.clear(self.state)

    @property
    def ended(self) -> Sequence[int]:
        """Rounds, whether the loop is over, whether a frontier is too wide."""
        stays = self._graph.stays
        return self._graph.ended[1:] if stays else self._device.get(self.state)[:3].tolist()

    def clear(self) -> None:
        """Make counters zero, as rounds find and leave them."""
        self._device.clear(self._graph.words)

    def stay(self, code: Code, program: Program) -> None:
        """One kernel does it all from now on."""
        self._graph.stay(code.loaded(self._device), resident.THREADS, resident.BLOCKS, program)

    def _ready(self, now: bool = False) -> None:
        if self._code is not None and self._code.ready(now):
            self.stay(self._code, self._program)
            self._code, self.how = None, f"one kernel, whose blocks meet {self._program.meetings} times a round"

    def launch(self, until: int | None) -> None:
        self._ready()
        start = perf_counter()
        self._graph.launch()
        if self._code is not None:
            self._code.wanted(perf_counter() - start)

    def run(self, kind: int, rounds: int) -> None:
        """One kernel, from rounds of a kind on."""
        self._graph.expect(kind, rounds)
        self._graph.launch(kind)


class CpuTape:
    """Calls of kernels, which one function goes through on the caller's thread."""

    def __init__(self, session: Any):
        self._session = session
        self._replay = imported("gbgpu.kernels.replay").Replay()
        self.state = self._replay.state
        self.condition: type[Condition] = CpuCondition
        self._most = 2**62

    @contextmanager
    def recording(self, journal: Journal, thin: bool, seconds: float = 0.0) -> Iterator[None]:
        """Devices and kernels of the session write down what they are given; plans that have others are put aside."""
        session, replay = self._session, self._replay
        names = ("devices", "device_set", "kernels", "plans", "late")
        before = [getattr(session, name) for name in names]
        devices = [_Writing(device, replay, journal) for device in session.devices]
        written: tuple[Any, ...] = devices, _Inline(devices), _Kernels(session.kernels, replay, journal), {}, _late
        try:
            _give(session, names, written)
            yield
        finally:
            held(lambda: _give(session, names, before))

    def turn(self, text: str, arrays: list[Any], most: int | None, changed: list[Any]) -> None:
        self._most = most or self._most
        self._replay.call(load("turn", text), (self.state, *arrays))

    def number(self) -> CpuCondition:
        """For a text that is computed within a round."""
        return _within(CpuCondition(), self.state)

    def compute(self, dtype: Any, condition: Any, text: str) -> np.ndarray:
        """Two words: the value of a text, and that there is one."""
        both = np.full(2, -1)
        out = both.view(dtype.np_type)[:1]
        self._replay.call(load("number", condition.computing(text)), (out, *condition.arrays))
        return both

    @contextmanager
    def guarded(self, condition: Any, text: str) -> Iterator[None]:
        """What is written down inside is passed over unless the text holds."""
        flag = self.compute(INT64, condition, condition.holds(text))
        self._replay.begin(flag[:1])
        yield
        self._replay.end()

    def replaced(self, pairs: list[tuple[Any, Any]]) -> bool:
        for buffer, other in pairs:
            self._replay.replace(buffer, other)
        return True

    def finish(self) -> None:
        self._replay.finish()
        self.how = f"{self._replay.length} calls a round"

    def begin(self, rounds: int) -> None:
        self.state[:] = rounds, *[0] * (len(self.state) - 1)

    @property
    def ended(self) -> Sequence[int]:
        return self.state[:3].tolist()

    def launch(self, until: int | None) -> None:
        """Some rounds at a time: Ctrl-C waits for compiled code of its own thread."""
        state, chunk, most = self.state, _CHUNK, min(until or self._most, self._most)
        while not (state[1] or state[2] or state[0] >= most):
            start = perf_counter()
            self._replay.rounds(min(int(state[0]) + chunk, most))
            if perf_counter() - start < _PATIENCE:
                chunk *= 2


def _within(condition: Any, state: Any) -> Any:
    """A condition that is looked at before the round is counted."""
    condition.index = f"{condition.array(state)}[0]"
    return condition


def _give(session: Any, names: Sequence[str], values: Sequence[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(session, name, value)


def _late(scalar: Any, dtype: Any) -> Late | None:
    """What stands for the value of a scalar that a round computes."""
    waits = not scalar.lazy and scalar.waits and scalar.dtype is dtype
    return Late(scalar._store[1]) if waits else None


class _Inline:
    """Devices whose tasks are done one after the other, here."""

    switches = False

    def __init__(self, devices: Sequence[Any]):
        self.devices = devices

    def inline(self, p: int, seconds: float) -> bool:
        return True

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        return [work(task) for task in tasks]


class _Kernels:
    """Kernels that are written down when they are called."""

    def __init__(self, kernels: Any, replay: Any, journal: Journal):
        self._kernels, self._replay, self._journal = kernels, replay, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernels, name)

    def get(self, kind: str, spec: Any) -> Callable[..., None]:
        kernel = self._kernels.settled(kind, spec)

        def written(*arguments: Any) -> None:
            self._replay.call(kernel, arguments)
            self._journal.launched([x for x in arguments if isinstance(x, np.ndarray)])

        return written

    def pull_layout(self, *arguments: Any) -> Any:
        layout = self._kernels.pull_layout(*arguments)
        if layout[0] is not None:
            raise NotCompiled("rows are counted without a kernel")
        return layout


class _Writing(CpuDevice):
    """A device that makes buffers, and writes down what would be done to them."""

    def __init__(self, device: CpuDevice, replay: Any, journal: Journal):
        super().__init__(device.index)
        self._replay, self._journal = replay, journal

    def empty(self, n: int, dtype: Any) -> np.ndarray:
        return self._journal.given(super().empty(n, dtype))

    def zeros(self, n: int, dtype: Any) -> np.ndarray:
        buffer = self.empty(n, dtype)
        self.clear(buffer)
        return buffer

    def full(self, n: int, value: Any, dtype: Any) -> np.ndarray:
        buffer = self.empty(n, dtype)
        self.copy(buffer, np.full(n, value, dtype))
        return buffer

    def clear(self, buffer: np.ndarray) -> None:
        self._replay.clear(buffer)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        if target.dtype != source.dtype or target.size != source.size:
            raise NotCompiled("a copy changes types")
        self._journal.launched([target, source])
        self._replay.copy(target, source)

    def copy_counted(self, target: np.ndarray, source: np.ndarray, count: np.ndarray) -> None:
        if min(target.size, source.size):
            self._journal.launched([target, source, count])
            self._replay.copy_counted(target, source, count)

    def peek(self, buffer: np.ndarray) -> Any:
        return None

    def _refused(self, *arguments: Any) -> NoReturn:
        raise NotCompiled("a statement reads from the device")

    put = get = truths = has_empty = longest = equal = owners = checked = take = order = transpose = _refused  # type: ignore[assignment]
    xp: Any = property(_refused)
