"""python-graphblas, the tests' oracle, without most of what it compiles with numba. It compiles an operator that
SuiteSparse does not have for thirteen types as soon as the operator is named, which takes a second each, and the tests
use one or two of the types. Here the types of results are inferred at once, by numba, and machine code is made when
SuiteSparse first calls it. Functions over arrays are run by Python. What is computed stays the same.
"""

from __future__ import annotations

import ctypes
from types import FunctionType, SimpleNamespace
from typing import Any

import numba
from graphblas import Matrix  # noqa: F401  (the parts below need the whole)
from graphblas.core.operator import binary, indexunary, unary
from graphblas.core.ss import matrix, vector
from numba.core import compiler, typed_passes
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass

CALLBACKS: list[Any] = []  # SuiteSparse holds their addresses for as long as the process lives


@register_pass(mutates_CFG=False, analysis_only=True)
class Signature(FunctionPass):
    """The last pass: what is known by now is the result."""

    _name = "signature"

    def __init__(self):
        super().__init__()

    def run_pass(self, state) -> bool:
        state.cr = compiler.compile_result(signature=numba.core.typing.signature(state.return_type, *state.args))
        return False


class Inference(compiler.CompilerBase):
    """numba's compiler up to the types."""

    def define_pipelines(self):
        passes = PassManager("types")
        passes.passes.extend(compiler.DefaultPassBuilder.define_untyped_pipeline(self.state).passes)
        passes.add_pass(typed_passes.NopythonTypeInference, "types")
        passes.add_pass(Signature, "signature")
        passes.finalize()
        return [passes]


class Function:
    """What python-graphblas asks of `numba.njit(function)`: types, a call, and the name in wrappers."""

    def __init__(self, function: FunctionType):
        self.compiled, self.overloads = numba.njit(function), {}
        self._typed = numba.njit(function, pipeline_class=Inference)._compiler

    def compile(self, types: tuple) -> None:
        self.overloads[types] = self._typed.compile(types, None)

    def __call__(self, *values):
        return self.compiled(*values)


def cfunc(signature, nopython: bool):
    """`numba.cfunc`, but compiled in the first call."""
    kinds = [ctypes.c_void_p if isinstance(kind, numba.types.CPointer) else ctypes.c_uint64 for kind in signature.args]
    prototype = ctypes.CFUNCTYPE(None, *kinds)

    def late(wrapper: FunctionType) -> SimpleNamespace:
        made: list[Any] = []

        def call(*given) -> None:
            if not made:
                made.append(numba.cfunc(signature, nopython=nopython)(_with_compiled(wrapper)))
                made.append(prototype(made[0].address))
            made[1](*given)

        CALLBACKS.append(prototype(call))
        address = ctypes.cast(CALLBACKS[-1], ctypes.c_void_p).value
        return SimpleNamespace(cffi=matrix.ffi.cast("void *", address))

    return late


def _with_compiled(wrapper: FunctionType) -> FunctionType:
    """The wrapper of a `Function`, as that of what numba compiles."""

    def real(value):
        return value.compiled if isinstance(value, Function) else value

    space = {name: real(value) for name, value in wrapper.__globals__.items()}
    cells = tuple(type(cell)(real(cell.cell_contents)) for cell in wrapper.__closure__ or ())
    return FunctionType(wrapper.__code__, space, wrapper.__name__, wrapper.__defaults__, cells)


ours = SimpleNamespace(**{**vars(numba), "njit": Function, "cfunc": cfunc})
for module in (binary, indexunary, unary):
    module.numba = ours
for module in (matrix, vector):
    for name, value in vars(module).copy().items():
        if isinstance(value, numba.core.dispatcher.Dispatcher):
            setattr(module, name, value.py_func)
