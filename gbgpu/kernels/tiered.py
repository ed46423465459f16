"""CPU kernels that run uncompiled until that has cost as much as compiling them would, in one process or in several: on
small objects numba is never imported. Both ways run the same text."""

import atexit
import struct
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any
from weakref import WeakSet

import numpy as np

from ..device import store
from ..interrupts import apart
from .alike import bare
from .interface import KINDS, XLIST

# Seconds that plain Python takes for an element; for an operation on each of all rows. Once so many elements were
# looked at, what they took is known.
ELEMENT, OPERATION, KNOWN = 1.5e-6, 1.5e-7, 1000
COMPILE, LOAD, IMPORT = 0.3, 0.02, 0.7  # seconds: a kernel's machine code made, or found on disk; numba imported
_HOMES = 256
_NOTED = 0.02  # seconds by one kernel of which the next process is told

_spent = 0.0  # by all kernels of the process, uncompiled


class Tiered:
    """A kernel of which nobody knows yet whether it is worth compiling. `name`: in the store. `homes`: where it is
    kept, by key: the compiled one takes its place there."""

    __slots__ = (
        *("kind", "plain", "compile", "name", "before", "seconds", "rows", "limit", "compiled", "homes"),
        "__weakref__",
    )

    def __init__(self, kind: str, plain: Any, compile: Callable[[], Any], name: str):
        self.kind, self.plain, self.compile, self.name, self.compiled = kind, plain, compile, name, None
        stored = store.has("numba", name)
        told = store.get("spent", name) if not stored and store.has("spent", name) else None
        self.before: float = 0.0 if told is None else struct.unpack("d", told)[0]  # by other processes
        self.seconds, self.limit = self.before, LOAD if stored else COMPILE
        self.rows = 0, 0.0  # passes over all rows: elements, seconds
        self.homes: list[tuple[dict, Any]] = []
        _all.add(self)

    def __call__(self, *arguments: Any) -> None:
        global _spent
        if self.compiled is None:
            elements, dense = work(self.kind, arguments)
            if self._pays(self._predicted(elements, int(arguments[0]) if dense else 0)):
                self.settled()
        if self.compiled is not None:
            return self.compiled(*arguments)
        start = perf_counter()
        self.plain(*arguments)
        took = perf_counter() - start
        self.seconds += took
        _spent += took
        if dense:
            self.rows = self.rows[0] + elements, self.rows[1] + took

    def _predicted(self, elements: int, rows: int) -> float:
        """Seconds that plain Python takes, of passes over all rows as before."""
        known, seconds = self.rows
        if rows and known > KNOWN:
            return elements * seconds / known
        return elements * ELEMENT + rows * OPERATION * float(self.plain.operations)

    def _pays(self, seconds: float) -> bool:
        """Whether compiling costs less than what was spent until now and another call."""
        ready = _spent + seconds > IMPORT or "numba" in sys.modules
        return ready and self.seconds + seconds > self.limit

    def settled(self) -> Any:
        """The compiled kernel, which is compiled now if it was not before."""
        if self.compiled is None:
            self._settle()
        return self.compiled

    def _settle(self) -> None:
        self.compiled = apart(lambda: self.compiled or self.compile())  # threads of devices may come together
        for home, key in self.homes:
            if home.get(key) is self:
                home[key] = self.compiled
        self.homes.clear()

    def kept(self, home: dict, key: Any) -> None:
        """It is in `home` now, which asks for it by `key`."""
        if len(self.homes) < _HOMES:
            self.homes.append((home, key))


_all: WeakSet[Tiered] = WeakSet()


@atexit.register
def _tell() -> None:
    """The next process goes on where this one ends."""
    for kernel in [*_all]:
        if kernel.compiled is None and kernel.limit == COMPILE and kernel.seconds - kernel.before > _NOTED:
            store.put("spent", kernel.name, struct.pack("d", kernel.seconds))


def price(kernels: Iterable[Any]) -> float:
    """Seconds that it takes to load or to compile those that are not yet compiled."""
    left = sum(kernel.limit for kernel in map(bare, kernels) if type(kernel) is Tiered and kernel.compiled is None)
    return left + IMPORT if left and "numba" not in sys.modules else left


def work(kind: str, arguments: tuple) -> tuple[int, bool]:
    """(elements that a call looks at, at most: those of its longest array, or its rows, of which one value may be all
    there is; terms, of products of matrices; whether it goes over all rows)."""
    longest = max(getattr(argument, "size", 1) for argument in arguments)
    names = KINDS[kind]
    dense = names[0] == "n" and not ("flags" in names and arguments[names.index("flags")] & XLIST)
    if dense:
        longest = max(longest, int(arguments[0]))
    if not kind.startswith("mxm"):
        return longest, dense
    given = dict(zip(KINDS[kind], arguments, strict=False))  # there may be numbers after them
    cols, lengths = given["cols"], np.diff(given["bptr"])
    if kind == "mxm_dot":
        rows = np.diff(given["indptr"])
        return max(longest, len(given["mcols"]) * int(max(rows, default=0) + max(lengths, default=0))), False
    return max(longest, int(lengths[cols].sum()) if len(lengths) else 0), False
