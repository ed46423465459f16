"""CPU kernels as numba compiles them: modules that live in memory, with their machine code in the store on disk."""

import platform
import sys
import weakref
from functools import cache
from pickle import loads
from types import ModuleType
from typing import Any

import llvmlite
import numba
import numpy.ma  # noqa: F401  (numba asks for it, on the main thread, where it first sees an array)
from llvmlite.binding import newpassmanagers
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.targetconfig import TargetConfig
from numba.core.types import Boolean, Function, Number

from ..device import store
from ..trace import compiling
from .cpu_bodies import POPCOUNT

OPERATORS = 1024  # uses of an operator, by types of arguments, that are known
_VERSIONS = numba.__version__, llvmlite.__version__, platform.python_version()


def compiled(kind: str, text: str) -> Any:
    """The function `kernel` of a module text; machine code is loaded or made when it is first called."""
    stored = store.code_name(text)  # its files begin so
    module = ModuleType(f"gbgpu_{kind}_{stored}")
    exec(compile(text, f"<{module.__name__}>", "exec"), module.__dict__)  # our own text
    if "popcount" in module.__dict__:
        module.__dict__["popcount"] = _popcount()
    # numba's tables hold the globals of what it compiled: with the kernel among them it would stay for ever.
    kernel = module.__dict__.pop("kernel")
    weakref.finalize(kernel, _forget, module).atexit = False
    kernel._cache = _Stored(kind, stored, module)
    return kernel


@cache
def _popcount() -> Any:
    """The one that all modules have, compiled once."""
    held: dict[str, Any] = {}
    exec("import numpy as np\nfrom numba import njit as _njit\nnjit = _njit(nogil=True)" + POPCOUNT, held)
    return held["popcount"]


def _forget(module: ModuleType) -> None:
    """The module of a kernel that is gone."""
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]
    module.__dict__.clear()


class _Stored(NullCache):
    """Where numba looks for the machine code of one kernel, and leaves it."""

    def __init__(self, kind: str, name: str, module: ModuleType) -> None:
        self._kind, self._of_text, self._module = kind, name, module

    def _name(self, sig: Any, codegen: Any) -> str:
        """Of the text, the types of the arguments, the processor and the compiler."""
        return f"{self._of_text}-{store.code_name(repr((str(sig), codegen.magic_tuple(), _VERSIONS)))}.code"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        compiling.kernel(self._kind)
        sys.modules[self._module.__name__] = self._module  # numba asks there for the globals of what it loads
        target_context.refresh()
        found = store.get("numba", self._name(sig, target_context.codegen()))
        return None if found is None else CompileResult._rebuild(target_context, *loads(found))

    def save_overload(self, sig: Any, cres: Any) -> None:
        store.put("numba", self._name(sig, cres.codegen), dumps(cres._reduce()))


def _free_pass_managers() -> None:
    """llvmlite's pass managers inherit a `_dispose` that does nothing before the one that frees them (seen in 0.50):
    each compilation would leave 0.9 MB behind."""
    freed = newpassmanagers.NewPassManager._dispose
    for kind in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
        if kind._dispose is not freed:
            kind._dispose = freed


def _flags_at_once() -> None:
    """numba compares all its flags for each call that it types, and asks for each by a property: a fifteenth of what
    compiling takes."""
    defaults: dict[type, dict[str, Any]] = {}

    def values(self: Any) -> dict[str, Any]:
        kind = type(self)
        if kind not in defaults:
            defaults[kind] = {name: option.default for name, option in kind.options.items()}
        return {**defaults[kind], **self._values}

    TargetConfig.values = values  # type: ignore[method-assign]


def _operators_typed_once() -> None:
    """numba asks everything that implements an operator what each use of it gives; for numbers that is the same each
    time: a twelfth of what compiling takes."""
    typed, numbers = Function.get_call_type, (Number, Boolean)

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(arg, numbers) for arg in args):
            return typed(self, context, args, kws)
        known, key = vars(self).setdefault("_gbgpu_known", {}), tuple(args)
        found = known.get(key)
        if found is None:
            if len(known) >= OPERATORS:  # each literal has a type of its own
                known.clear()
            found = known[key] = typed(self, context, args, kws)
        return found

    Function.get_call_type = get_call_type  # type: ignore[method-assign]


_free_pass_managers()
_flags_at_once()
_operators_typed_once()
# numba imports what it knows of NumPy when it first compiles: a second, for which others would wait.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
