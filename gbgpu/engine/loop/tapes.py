"""Where a round is written down on CPU devices, and what runs it: a list of calls, which the caller's thread goes
through, or threads do side by side. (`cuda_tape.py` has GPUs'.)"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NoReturn

import numpy as np

from ... import settings
from ...device.base import cores
from ...device.cpu import CpuDevice
from ...distribute.rowmap import Task
from ...kernels.cpu import load
from ...kernels.replay import Replay
from ...modes import Changed
from ...semiring._types import INT64
from .condition import Condition, CpuCondition
from .journal import Journal, NotCompiled

_CHUNK, _PATIENCE = 64, 5e-3  # rounds, at first, and seconds for which Ctrl-C and other threads wait
SHARED = 1e-4  # seconds of a round on each device from which several threads go through it


def threads(session: Any) -> int:
    """How many threads may go through a round: one for each device, if there are as many cores."""
    return 1 if settings.inline == "always" else min(len(session.devices), len(cores()))


class CpuTape:
    """Calls of kernels, which one function goes through."""

    aside = 0  # reads that were no part of the round
    edges, dealt = (0, 0), False  # what GPUs push and wait for, and what they do about it

    def __init__(self, session: Any):
        self._session = session
        self._replay = Replay()
        self.state, self._seen = self._replay.state, np.empty(2)
        self.condition: type[Condition] = CpuCondition
        self._most, self._chunk, self._devices = 2**62, _CHUNK, session.device_set
        self.noted: Any = None  # who traces
        self.few = True  # threads work on lists

    def recording(self, journal: Journal, thin: bool, seconds: float = 0.0) -> Changed:
        """Devices and kernels of the session write down what they are given; plans that have others are put aside."""
        session, replay = self._session, self._replay
        if seconds > SHARED:
            replay.threads, self._chunk = threads(session), min(_CHUNK, 1 + int(_PATIENCE / max(seconds, 1e-4)))
        devices = [_Writing(device, replay, journal) for device in session.devices]
        inline, kernels = _Inline(devices, replay), _Kernels(session.kernels, replay, journal)
        written = {"devices": devices, "device_set": inline, "kernels": kernels, "plans": {}}
        return Changed(session.changes, session, **written)

    def turn(self, text: str, arrays: list[Any], most: int | None, changed: list[Any]) -> None:
        self._most = most or self._most
        self._replay.meet()
        self._replay.call(load("turn", text), (self.state, self._seen, *arrays))

    def number(self) -> CpuCondition:
        """For a text that is computed within a round."""
        return within(CpuCondition(), self.state)

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
        beside = f", on {self._replay.threads} threads" if self._replay.threads > 1 else ""
        self.how = f"{self._replay.length} kernel calls a round{beside}"

    def begin(self, rounds: int, noted: Any, zeroed: bool = False) -> None:
        self.noted = noted
        self.state[:] = rounds, *[0] * (len(self.state) - 1)

    @property
    def ended(self) -> Sequence[int]:
        return self.state[:3].tolist()

    def launch(self, until: int | None, due: Callable[[float], bool]) -> None:
        """Some rounds at a time, as Ctrl-C waits for compiled code of its own thread; as many as the loop has, or as
        are done when `due(start)` says that what began then is to stop."""
        state, chunk, begun, most = self.state, self._chunk, perf_counter(), min(until or self._most, self._most)
        together = self._together if self._replay.threads > 1 else None
        while not (state[1] or state[2] or state[0] >= most):
            start, many = perf_counter(), chunk if self.noted is None else 1
            self._replay.rounds(min(int(state[0]) + many, most), together)
            if self.noted is not None:
                self.noted.add(state, self._seen)
            elif perf_counter() - start < _PATIENCE:
                chunk *= 2
            if due(begun):
                break

    def _together(self, work: Callable[[int], Any]) -> list[Any]:
        tasks = [Task(thread, thread, 0, 0) for thread in range(self._replay.threads)]
        return self._devices.together(tasks, lambda task: work(task.device))


def within(condition: Any, state: Any) -> Any:
    """A condition that is looked at before the round is counted."""
    condition.index = f"{condition.array(state)}[0]"
    return condition


class _Inline:
    """Devices whose tasks are done one after the other, here."""

    switches, one_memory, direct = False, True, True

    def __init__(self, devices: Sequence[Any], replay: Any):
        self.devices, self._replay = devices, replay

    def inline(self, p: int, seconds: float) -> bool:
        return True

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        results = []
        try:
            for task in tasks:
                self._replay.device = task.device
                results.append(work(task))
        finally:
            self._replay.device = 0  # what is done between steps
        return results


class _Kernels:
    """Kernels that are written down when they are called."""

    def __init__(self, kernels: Any, replay: Any, journal: Journal):
        self._kernels, self._replay, self._journal = kernels, replay, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernels, name)

    def get(self, kind: str, spec: Any) -> Callable[..., None]:
        kernel = self._kernels.get(kind, spec)

        def written(*arguments: Any) -> None:
            self._replay.call(kernel, arguments, kind)
            self._journal.launched([x for x in arguments if isinstance(x, np.ndarray)])

        return written

    def pull_layout(self, *arguments: Any) -> Any:
        layout = self._kernels.pull_layout(*arguments)
        if layout[0] is not None:
            raise NotCompiled("a pull prepares its rows on the host")
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
            raise NotCompiled("an array is copied into another type")
        self._journal.launched([target, source])
        self._replay.copy(target, source)

    def copy_counted(self, target: np.ndarray, source: np.ndarray, count: np.ndarray) -> None:
        if min(target.size, source.size):
            self._journal.launched([target, source, count])
            self._replay.copy_counted(target, source, count)

    def peek(self, buffer: np.ndarray) -> Any:
        return None

    def _refused(self, *arguments: Any) -> NoReturn:
        raise NotCompiled.reads()

    put = get = truths = set_bits = has_empty = longest = equal = owners = checked = take = order = transpose = _refused  # type: ignore[assignment]
    offsets = rows_of = kept = is_line = at = where = _refused  # type: ignore[assignment]
    xp: Any = property(_refused)
