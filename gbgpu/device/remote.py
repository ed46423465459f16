"""Devices of other ranks, as a process sees them: they have names and numbers, no memory.

A step goes over the blocks of all devices; here it is carried out on this process's own, and what stands for the rest
is AWAY. What makes buffers on a remote device makes none.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .. import settings
from .base import DeviceSet


class Away:
    """A block that another rank holds, and whatever else a step left there."""

    __slots__ = ()
    n = nnz = stride = 0
    empty_rows = full = False
    vals = words = slots = count = indptr = cols = None
    csr = listed = (None, None, None, 0)

    def with_values(self, vals: Any, stride: int) -> "Away":
        return self

    def same_pattern(self, other: Any) -> bool:
        """The ranks that hold it will tell."""
        return True


AWAY: Any = Away()


def local_results(results: Sequence[Any]) -> list[Any]:
    """The results of this process's own tasks, of those that a step left for all tasks."""
    return [each for each in results if each is not AWAY]


_KNOWN = 64  # row maps whose tasks are remembered


class RemoteDevice:
    """A device of another rank. Buffers of it are None here, and what is copied there or from there is copied there."""

    kind, model, xp = "remote", "device of another rank", None
    shares_memory, captures = False, ""

    def __init__(self, name: str):
        self.name = name

    def _nothing(self, *arguments: Any) -> None: ...

    empty = zeros = full = put = peek = copy = copy_counted = clear = synchronize = _nothing

    def uncaptured(self) -> AbstractContextManager:
        return nullcontext()

    at_once = uncaptured


class SharedDevices:
    """The devices of all ranks, this process's own among them from number `first` on. `failed` hears of what a step of
    ours raised: the other ranks don't."""

    switches, one_memory, direct = True, False, False  # work goes to those that are here

    def __init__(self, own: DeviceSet, names: Sequence[str], first: int, failed: Callable[[BaseException], None]):
        self._own, self._first, self._failed = own, first, failed
        self._here = range(first, first + len(own.devices))
        self._parts: dict[int, tuple] = {}  # of tuples of tasks, which are kept with them
        self.devices: list[Any] = [RemoteDevice(name) for name in names]
        self.devices[first : self._here.stop] = own.devices
        for device, name in zip(own.devices, names[first:], strict=False):
            device.name = name
            if device.kind == "cpu":  # no thread of another rank is kept on the same core
                device.index += first  # type: ignore[attr-defined]

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        """work(task) for the tasks of devices that are here; AWAY for the others."""
        _, own, mine, places = self._parts.get(id(tasks)) or self._part(tasks)
        if not own:
            return [AWAY] * len(tasks)
        try:
            done = self._own.over(own, lambda task: work(mine[task]), seconds, whole)
        except BaseException as error:
            self._failed(error)
            raise
        found = [AWAY] * len(tasks)
        for place, each in zip(places, done, strict=True):
            found[place] = each
        return found

    def _part(self, tasks: Sequence[Any]) -> tuple[Any, list[Any], dict[Any, Any], list[int]]:
        """The tasks of devices that are here, as these know them, of whose tasks that is, and their places. Those of
        row maps, which come with most steps, are known from then on."""
        places = [i for i, task in enumerate(tasks) if task.device in self._here]
        # (_replace takes several times as long as _make.)
        own = [tasks[i]._make((tasks[i].device - self._first, *tasks[i][1:])) for i in places]
        found = tasks, own, {task: tasks[i] for task, i in zip(own, places, strict=True)}, places
        if type(tasks) is tuple:  # which nobody changes
            if len(self._parts) >= _KNOWN:
                self._parts.clear()
            self._parts[id(tasks)] = found
        return found

    def inline(self, p: int, seconds: float) -> bool:
        """No: only `over` knows which tasks are ours."""
        return False

    def forked(self) -> str | None:
        settings.ranks = "0"
        return "a process that a rank forked is no rank. Hint: gb.init() there begins a session of its own"

    def close(self) -> None:
        self._own.close()
