"""CPU devices beside GPUs in one session. GPUs are given their tasks of a step first, which they do while the CPUs do
theirs; what one of them has for the other is copied, as it is after all that went before."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .cpu import CpuDevice, CpuDevices

if TYPE_CHECKING:
    from .base import Device, DeviceSet


class _Beside(CpuDevice):
    """A CPU device that reads what GPUs have: `read` gives the host's copy."""

    def __init__(self, index: int, read: Callable[[Any], np.ndarray]):
        super().__init__(index)
        self._read = read

    def copy(self, target: np.ndarray, source: Any) -> None:
        target[...] = self._read(source)

    def copy_counted(self, target: np.ndarray, source: Any, count: np.ndarray) -> None:
        target[: count[0]] = self._read(source[: count[0]])


class MixedDevices:
    """Those of two sets, GPUs first."""

    switches, one_memory, direct = True, False, False

    def __init__(self, gpus: Any, cpus: CpuDevices):
        self._gpus, self._cpus = gpus, cpus
        cpus.devices = [_Beside(device.index, self._read) for device in cpus.devices]
        self.devices: list[Any] = [*gpus.devices, *cpus.devices]
        self._streams: dict[int, Any] = {}  # while a step runs

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        first = len(self._gpus.devices)
        above, self._streams = self._streams, self._gpus.streams()  # of the caller's thread
        mine = [task for task in tasks if task.device < first]
        theirs = [task._replace(device=task.device - first) for task in tasks if task.device >= first]

        def beside(task: Any) -> Any:
            return work(task._replace(device=task.device + first))

        try:
            done = iter(self._gpus.over(mine, work, seconds))
            found = iter(self._cpus.over(theirs, beside, seconds, whole) if theirs else ())
        finally:
            self._streams = above
        return [next(done if task.device < first else found) for task in tasks]

    def _read(self, source: Any) -> np.ndarray:
        return source if isinstance(source, np.ndarray) else self._gpus.read(source, self._streams)

    def inline(self, p: int, seconds: float) -> bool:
        """No: others than the caller's thread may be at work."""
        return False

    def forked(self) -> str | None:
        return self._gpus.forked()

    def close(self) -> None:
        self._cpus.close()


if TYPE_CHECKING:  # what mypy holds them against

    def _contract(device: _Beside, devices: MixedDevices) -> tuple[Device, DeviceSet]:
        return device, devices
