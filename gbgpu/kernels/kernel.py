"""CPU kernels. Their machine code is loaded from disk at the first call, in a fraction of a millisecond; what does not
lie there is compiled, in some tens."""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

from .. import settings
from ..device import store
from ..interrupts import apart, imported, in_turn
from ..trace import compiling
from . import entry, link
from .alike import bare
from .link import Code

_HOMES = 256
# Machine code that others' versions of these have made does not count.
_MADE_BY = "compiled.py", "entry.py", "llvm.py", "llvm_expressions.py", "llvm_values.py"


class Kernel:
    """A kernel of which the machine code, by types of arguments, is loaded or compiled at the first call.

    `own`: the machine code of its first call, which most others are like; `homes`: where it is kept, and by which key:
    there that takes its place. One text may serve several types: what is called with each is an `instance`."""

    __slots__ = ("kind", "text", "name", "codes", "own", "homes", "__weakref__")

    def __init__(self, kind: str, text: str, alike: "Kernel | None" = None):
        self.kind, self.text = kind, text
        self.name: str = alike.name if alike else store.code_name(text)
        self.codes: dict[entry.Types, Code] = alike.codes if alike else {}
        self.own: Code | None = None
        self.homes: list[tuple[Any, Any]] = []

    def instance(self) -> "Kernel":
        """The same text, for calls with types of their own."""
        return Kernel(self.kind, self.text, self)

    def __call__(self, *arguments: Any) -> None:
        code = self.code(entry.types_of(arguments))
        if self.own is None:
            self.own = code
            for home, key in self.homes:
                self._take_place(home, key)
            self.homes.clear()
        code.call(*map(entry.plain, arguments))

    def code(self, types: entry.Types) -> Code:
        """The machine code for arguments of these types."""
        return self.codes.get(types) or self._made(types)

    def _made(self, types: entry.Types) -> Code:
        file = f"{self.name}-{store.code_name(repr((types, settings.optimize, compiler_and_processor())))}.o"
        object = store.get("cpu", file)
        alone = apart if object is None else in_turn  # long formulas take seconds to compile
        return alone(lambda: self.codes.get(types) or self._linked(types, file, object))

    def _linked(self, types: entry.Types, file: str, object: bytes | None) -> Code:
        compiling.kernel(self.kind)
        if object is None:
            object = imported("gbgpu.kernels.compiled").machine_code(self.text, types)
            store.put("cpu", file, object)
        if not self.text.startswith(entry.ASSEMBLY):
            link.given["caller"] = CALLER.code(()).run
        found = self.codes[types] = Code(object, self)
        return found

    def kept(self, home: Any, key: Any) -> None:
        """It is in `home` now, a dictionary, which asks for it by `key`; or an object, as its attribute `key`."""
        if self.own is not None:
            self._take_place(home, key)
        elif len(self.homes) < _HOMES:
            self.homes.append((home, key))

    def _take_place(self, home: Any, key: Any) -> None:
        assert self.own is not None
        call = self.own.call
        if not isinstance(home, dict):
            setattr(home, key, call)
        elif home.get(key) is self:
            home[key] = call


@cache
def compiler_and_processor() -> tuple:
    """What machine code depends on, besides its text and types."""
    made_by = "".join(Path(__file__).with_name(name).read_text() for name in _MADE_BY)
    return store.code_name(made_by), _version("llvmlite"), sys.version, platform.machine(), _processor()


def _version(name: str) -> str:
    """As the name of the folder tells that pip keeps beside a package. importlib.metadata takes 30 ms to import."""
    for folder in sys.path:
        with suppress(OSError):
            for found in os.listdir(folder or "."):
                if found.startswith(f"{name}-") and found.endswith(".dist-info"):
                    return found
    return str(apart(lambda: imported("importlib.metadata").version(name)))


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


CALLER = Kernel("call", f"{entry.ASSEMBLY}\n{entry.CALLER}")

__all__ = ["CALLER", "Kernel", "compiler_and_processor", "kernel_of"]
