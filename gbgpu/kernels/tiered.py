"""CPU kernels: machine code that lies on disk is loaded at the first call, without numba. What does not lie there is
compiled by another process from the first call on. Until then calls run as plain Python, unless they are predicted to
take longer than compiling does. Both ways run the same text."""

import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from time import perf_counter
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from .. import settings
from ..device import store
from ..interrupts import apart, imported
from ..trace import aside, compiling
from . import entry
from .alike import bare
from .background import Request, compiler, machine_code
from .interface import KINDS, XLIST
from .interpreted import interpreted
from .link import Code

# Seconds that plain Python takes for an element; for an operation on each of all rows. Once so many elements were
# looked at, what they took is known.
ELEMENT, OPERATION, KNOWN = 1.5e-6, 1.5e-7, 1000
_HOMES = 256
_FORM = 2  # of entry points: another one with each change of entry.py


class Kernel:
    """A kernel of which the machine code, by types of arguments, is loaded or compiled at the first call.

    `homes`: where it is kept, and by which key; the first machine code takes its place there."""

    __slots__ = (
        *("kind", "text", "name", "seconds", "rows", "codes", "homes", "_begun", "_plain", "_requests"),
        "__weakref__",
    )

    def __init__(self, kind: str, text: str):
        self.kind, self.text, self.name = kind, text, store.code_name(text)
        self.seconds = 0.0  # uncompiled
        self._begun: list[float] = []  # predicted seconds of the calls in hand, of several threads
        self.rows = 0, 0.0  # passes over all rows: elements, seconds
        self.codes: dict[entry.Types, Code] = {}
        self.homes: list[tuple[Any, Any]] = []
        self._plain: Any = None
        self._requests: dict[entry.Types, Request] = {}

    @property
    def plain(self) -> Any:
        """The kernel as plain Python. (Python 3.11 fails where several threads parse at once.)"""
        if self._plain is None:
            self._plain = apart(lambda: self._plain or interpreted(self.kind, self.text))
        return self._plain

    def __call__(self, *arguments: Any) -> None:
        types = entry.types_of(arguments)
        code = self.ready(types)
        if code is None and not settings.tiered:
            code = self.code(types)
        if code is not None:
            return code.call(*map(entry.plain, arguments))
        elements, dense = work(self.kind, arguments)
        seconds = self._predicted(elements, int(arguments[0]) if dense else 0)
        self._begun.append(seconds)  # first, so that one of several threads sees all
        try:
            # Threads take turns in plain Python, so each call waits for all.
            if not self._pays(types, sum(self._begun)):
                return self._uncompiled(arguments, elements if dense else 0)
        finally:
            self._begun.remove(seconds)
        self.code(types).call(*map(entry.plain, arguments))

    def _uncompiled(self, arguments: tuple, elements: int) -> None:
        """One call as plain Python. `elements`: those of a pass over all rows."""
        start = perf_counter()
        self.plain(*arguments)
        took = perf_counter() - start
        self.seconds += took
        if elements:
            self.rows = self.rows[0] + elements, self.rows[1] + took

    def _predicted(self, elements: int, rows: int) -> float:
        """Seconds that plain Python takes, of passes over all rows as before."""
        known, seconds = self.rows
        if rows and known > KNOWN:
            return elements * seconds / known
        return elements * ELEMENT + rows * OPERATION * float(self.plain.operations)

    def _pays(self, types: entry.Types, seconds: float) -> bool:
        """Whether the machine code is there sooner than plain Python would have done the calls in hand, which take
        `seconds`, and those before."""
        return self.seconds + seconds > compiler.price

    def code(self, types: entry.Types) -> Code:
        """The machine code for arguments of these types, which is waited for."""
        found = self.ready(types)
        if found is None:
            request = self._requests.get(types)
            with aside("compile"):
                object = None if request is None else request.wait()
                found = self._made(types) if object is None else self._linked(types, object)
        return found

    def ready(self, types: entry.Types) -> Code | None:
        """The machine code, if it is loaded, on disk or has come; else it is asked for."""
        loaded = self.codes.get(types)
        if loaded is not None:
            return loaded
        request = self._requests.get(types)
        if request is not None:
            return self._linked(types, request.object) if request.object is not None else None
        found = store.get("numba", self._file(types))
        if found is not None:
            with aside("compile"):
                compiling.kernel(self.kind)
                return self._linked(types, found)
        if settings.tiered:
            self._requests[types] = compiler.request(self.kind, self.text, types, self._file(types))
        return None

    def _made(self, types: entry.Types) -> Code:
        """Compiled in this process, by one thread at a time."""

        def make() -> Code:
            found = self.codes.get(types)
            if found is None:
                compiling.kernel(self.kind)
                found = self._linked(types, self._compiled(types))
            return found

        return apart(make)

    def _compiled(self, types: entry.Types) -> bytes:
        object = machine_code(self.kind, self.text, types)
        store.put("numba", self._file(types), object)
        return object

    def _linked(self, types: entry.Types, object: bytes) -> Code:
        found = self.codes[types] = Code(object, self)
        for home, key in self.homes:
            self._take_place(home, key)
        self.homes.clear()
        self._requests.pop(types, None)
        return found

    def _file(self, types: entry.Types) -> str:
        return f"{self.name}-{store.code_name(repr((types, compiler_and_processor())))}.o"

    def kept(self, home: Any, key: Any) -> None:
        """It is in `home` now, a dictionary, which asks for it by `key`; or an object, as its attribute `key`."""
        if self.codes:
            self._take_place(home, key)
        elif len(self.homes) < _HOMES:
            self.homes.append((home, key))

    def _take_place(self, home: Any, key: Any) -> None:
        call = next(iter(self.codes.values())).call
        if not isinstance(home, dict):
            setattr(home, key, call)
        elif home.get(key) is self:
            home[key] = call


@cache
def compiler_and_processor() -> tuple:
    """What machine code depends on, besides its text and types."""
    versions = map(_version, ("numba", "llvmlite"))
    chosen = sorted((name, value) for name, value in os.environ.items() if name in _CHOSEN)
    return _FORM, *versions, sys.version, entry.HEADER, platform.machine(), _processor(), *chosen


def _version(name: str) -> str:
    """As the name of the folder tells that pip keeps beside a package. importlib.metadata takes 30 ms to import."""
    for folder in sys.path:
        with suppress(OSError):
            for found in os.listdir(folder or "."):
                if found.startswith(f"{name}-") and found.endswith(".dist-info"):
                    return found
    return str(apart(lambda: imported("importlib.metadata").version(name)))


_CHOSEN = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE"}


def _processor() -> str:
    """Its name and what it can do, where the system tells."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = file.read(1 << 14).split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features")))


def kernel_of(kernel: Any) -> Any:
    """The Kernel behind what is called: itself, or its machine code."""
    kernel = bare(kernel)
    return kernel.__self__ if type(kernel) is BuiltinFunctionType else kernel


def ready(kernels: Iterable[Any]) -> bool:
    """Whether none of them runs uncompiled as yet."""
    return all(type(kernel) is not Kernel or bool(kernel.codes) for kernel in map(bare, kernels))


def work(kind: str, arguments: tuple) -> tuple[int, bool]:
    """(elements that a call looks at, at most: those of its longest array, or its rows, of which one value may be all
    there is; of a push from a list, the entries of its rows; terms, of products of matrices; whether it goes over all
    rows)."""
    longest = max(getattr(argument, "size", 1) for argument in arguments)
    names = KINDS[kind]
    dense = names[0] == "n" and not ("flags" in names and arguments[names.index("flags")] & XLIST)
    if dense:
        longest = max(longest, int(arguments[0]))
    given = dict(zip(names, arguments, strict=False))  # there may be numbers after them
    if kind == "push" and not dense:
        rows, words = given["slots"][: given["count"][0]], len(given["acc_words"])
        return int((given["indptr"][rows + 1] - given["indptr"][rows]).sum()) + len(rows) + words, False
    if not kind.startswith("mxm"):
        return longest, dense
    cols, lengths = given["cols"], np.diff(given["bptr"])
    if kind == "mxm_dot":
        rows = np.diff(given["indptr"])
        return max(longest, len(given["mcols"]) * int(max(rows, default=0) + max(lengths, default=0))), False
    return max(longest, int(lengths[cols].sum()) if len(lengths) else 0), False


__all__ = ["Kernel", "compiler_and_processor", "kernel_of", "ready", "work"]
