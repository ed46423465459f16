"""CPU kernels as numba compiles them: object files, which link.py makes callable in this process or another one."""

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.ma  # noqa: F401  (numba asks for it, on the main thread, where it first sees an array)
from llvmlite import binding
from llvmlite.binding import newpassmanagers
from numba import from_dtype
from numba.core import compiler, typed_passes, types, untyped_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.core.types import Boolean, Function, Number

from . import entry
from .cpu_bodies import POPCOUNT
from .inline import inlined

# What a kernel needs of numba's passes: its text has no closures, overloads, literal loops or array expressions.
PASSES = (
    *(untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.IRProcessing),
    *(untyped_passes.ReconstructSSA, typed_passes.NopythonTypeInference, typed_passes.PreLowerStripPhis),
    *(typed_passes.IRLegalization, typed_passes.NativeLowering, typed_passes.NoPythonBackend),
)
OPERATORS = 1024  # uses of an operator, by types of arguments, that are known
_NUMBERS = {"int": types.int64, "float": types.float64, "bool": types.boolean}


def compiled(kind: str, text: str, given: entry.Types) -> bytes:
    """The object file of the function `kernel` of a module text for arguments of these types."""
    module = ModuleType(f"gbgpu_{kind}")
    exec(compile(inlined(text), f"<{module.__name__}>", "exec"), module.__dict__)  # our own text
    if "popcount" in module.__dict__:
        module.__dict__["popcount"] = _popcount()
    # numba's tables hold the globals of what it compiled: with the kernel among them it would stay for ever.
    kernel = module.__dict__.pop("kernel")
    try:
        with global_compiler_lock:
            return _object(kernel, given)
    finally:
        module.__dict__.clear()


class _Compiler(compiler.CompilerBase):
    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("kernel")
        for each in PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


def _object(kernel: Any, given: entry.Types) -> bytes:
    flags: Any = compiler.Flags()
    kernel.targetdescr.options.parse_as_flags(flags, kernel.targetoptions)
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True  # `entry` has what calls it
    typing, target = kernel.targetdescr.typing_context, kernel.targetdescr.target_context
    signature = tuple(map(_type, given))
    typing.refresh()
    target.refresh()
    made = compiler.compile_extra(typing, target, kernel.py_func, signature, None, flags, {}, pipeline_class=_Compiler)
    library, name = made.library, made.fndesc.llvm_func_name
    library._finalize_final_module = lambda: None  # numba's own engine never runs it
    library.finalize()
    function = target.call_conv.get_function_type(made.signature.return_type, signature)
    arguments = ["ptr" if kind.is_pointer else str(kind) for kind in function.args[2:]]
    final = library._final_module
    final.link_in(binding.parse_assembly(entry.text(name, given, arguments)))
    return library.codegen._tm.emit_object(final)


def _type(given: str) -> Any:
    if given[0] in "CA":
        return types.Array(from_dtype(np.dtype(given[1:])), 1, "C" if given[0] == "C" else "A")
    return _NUMBERS.get(given) or from_dtype(np.dtype(given))


def assembled(text: str) -> bytes:
    """The object file of a module in LLVM's text."""
    with global_compiler_lock:
        codegen = cpu_target.target_context.codegen()
        return codegen._tm.emit_object(binding.parse_assembly(text))


@cache
def _popcount() -> Any:
    """The one that all modules have, compiled once."""
    held: dict[str, Any] = {}
    exec("import numpy as np\nfrom numba import njit as _njit\nnjit = _njit(nogil=True)" + POPCOUNT, held)
    return held["popcount"]


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
