"""Buffers that statements share: dummies, workspaces of pushes, single values, and whatever is made once a session."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device

LIMIT = 10_000  # things kept


class Placeholders:
    """Arguments of one device that a call does not need, of the right types; and places whose content nobody reads."""

    def __init__(self, device: Device):
        self.words, self.stats, self.scratch = (device.zeros(n, np.int64) for n in (1, 4, 1))
        self._slots = {"int32": device.zeros(1, np.int32), "int64": self.words}

    def slots(self, idx: str) -> Any:
        return self._slots[idx]


class Workspace(NamedTuple):
    """Where a push scatters to: values of slots (`start` where nothing arrived, if backends need that), bits of those
    that were reached, and a list of them."""

    start: Any
    vals: Any
    words: Any
    touched: Any


def workspace(device: Device, n: int, monoid: Any, iso: bool, neutral: bool, touched: Any = None) -> Workspace:
    """Room for `n` slots, and one that is no slot's; between steps words are zero, and vals are all `start` if
    `neutral`. `touched`: a place that nobody reads, instead of the list; then vals may become a result."""
    start, dtype, room = monoid.start, monoid.dtype.np_type, n + (touched is None)
    vals = device.full(room, start, dtype) if neutral and not iso else device.empty(1 if iso else room, dtype)
    if touched is None:
        touched = device.empty(room, np.int32 if n < 2**31 else np.int64)
    return Workspace(start, vals, device.zeros(-(-n // 64), np.int64), touched)


class Pool:
    """What the devices of a session keep between statements."""

    def __init__(self, devices: Sequence[Device], neutral: bool):
        self._devices, self._neutral = devices, neutral
        self.placeholders = [Placeholders(device) for device in devices]
        self._spaces: dict[Any, Workspace] = {}
        self._cached: dict[Any, Any] = {}

    def clear(self) -> None:
        self._spaces.clear()
        self._cached.clear()

    def distrust(self) -> None:
        """A step broke off: it may have left marks in the workspaces, and may go on and leave more."""
        self._spaces = {}

    def workspace(self, d: int, n: int, monoid: Any, iso: bool) -> Workspace:
        key = d, n, monoid, iso
        found = self._spaces.get(key)
        if found is None:
            with self._devices[d].uncaptured():
                found = self._spaces[key] = workspace(self._devices[d], n, monoid, iso, self._neutral)
        return found

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        found = self._cached.get(key)
        if found is None:
            if len(self._cached) > LIMIT:
                self._cached.clear()
            with self._devices[0].uncaptured():
                found = self._cached[key] = make()
        return found

    def scalar(self, d: int, value: Any, dtype: Any) -> Any:
        """One value on device d, which nobody writes."""
        # -0.0 is another float than 0.0
        exact = value if type(value) in (int, bool) else np.array([value], dtype).tobytes()
        return self.once(("scalar", d, dtype, exact), lambda: self._devices[d].full(1, value, dtype))

    def rows(self, d: int, n: int, dtype: str = "int64") -> Any:
        """0..n-1 on device d."""
        return self.once(("rows", d, n, dtype), lambda: self._devices[d].put(np.arange(n, dtype=dtype)))

    def whole(self, d: int, n: int) -> Any:
        """The slot bounds of a single block, on device d."""
        return self.once(("whole", d, n), lambda: self._devices[d].put(np.array([0, max(n, 1)])))

    def ones(self, d: int, n: int) -> Any:
        """Words with the bits of n rows, on device d."""

        def make() -> Any:
            words = np.full((n + 63) >> 6, -1, np.int64)
            if n & 63:
                words[-1] = (1 << (n & 63)) - 1
            return self._devices[d].put(words)

        return self.once(("ones", d, n), make)
