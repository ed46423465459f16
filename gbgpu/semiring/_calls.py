"""Which functions may be called with symbols in place of numbers, told from their bytecode.

A symbol acts as a number in operators, and in functions that use nothing else. So a function is traced if it does
nothing else with its values: no `is`, no attributes, no `except` that would hide what a symbol refuses, no pattern
matching, and no calls but of functions that are known to be harmless. What is not listed here is not traced.
"""

from __future__ import annotations

import builtins
import dis
import functools
import re
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from gbgpu.semiring._known import known

_HARMLESS = {sum, range, len, enumerate, zip, reversed, list, tuple, map, any, all, functools.reduce}
_SCALARS = (bool, int, float, str, type(None), range)
# Instructions of Python 3.11 to 3.14 that use the operators of values, or only move them.
_PLAIN = re.compile(
    r"(BINARY|UNARY)_\w+|(COMPARE|CONTAINS)_OP|TO_BOOL|(LOAD|STORE)_FAST\w*|LOAD_(CONST\w*|SMALL_INT|CLOSURE|DEREF)"
    r"|POP_JUMP_(\w+_)?IF_(TRUE|FALSE)|JUMP_(IF_(TRUE|FALSE)_OR_POP|FORWARD|BACKWARD\w*)|NOT_TAKEN|(GET|FOR|POP)_ITER"
    r"|END_FOR|UNPACK_SEQUENCE|BUILD_(LIST|TUPLE|MAP|CONST_KEY_MAP|SLICE)|LIST_(APPEND|EXTEND|TO_TUPLE)|DICT_MERGE"
    r"|CALL(_KW|_FUNCTION_EX)?|PRECALL|KW_NAMES|PUSH_NULL|MAKE_(CELL|FUNCTION)|SET_FUNCTION_ATTRIBUTE|COPY_FREE_VARS"
    r"|STORE_DEREF|RETURN_(VALUE|CONST|GENERATOR)|YIELD_VALUE|RERAISE|RESUME|COPY|SWAP|POP_TOP|NOP|CACHE|EXTENDED_ARG"
)
_INTRINSICS = {3, 5, 6}  # of CALL_INTRINSIC_1: the end of a generator, unary plus, a list to a tuple
_WORDS = {"IS_OP|NONE": "`is`", "MATCH": "`match`", "IMPORT": "`import`", "EXC": "`try`", "FORMAT": "an f-string"}


class _Obstacle(Exception):
    """Something that a function does, to which a number and a symbol could answer differently."""


def obstacle(function: Callable) -> str | None:
    """What keeps a function from being traced, such as "uses isinstance in line 3"; None: nothing."""
    try:
        _check(function, "", set())
    except _Obstacle as problem:
        return str(problem)
    return None


def _check(value: Any, name: str, seen: set[int]) -> None:
    """Check what a function reads from outside: numbers, containers of them, and functions."""
    if type(value) in _SCALARS or isinstance(value, np.generic) or id(value) in seen:
        return
    seen.add(id(value))
    if type(value) in (list, tuple):
        for item in value:
            _check(item, name, seen)
    elif type(value) is dict:
        _check([*value, *value.values()], name, seen)
    elif type(value) is functools.partial:
        _check([value.func, *value.args, *value.keywords.values()], name, seen)
    elif type(value) is FunctionType:
        _check([*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()], "a default argument", seen)
        closure = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        _instructions(value.__code__, closure, (value.__globals__, vars(builtins)), seen)
    elif not (_listed(value) or type(value) is np.ndarray and value.dtype.kind in "biuf"):
        raise _Obstacle(f"uses {name}" if name else "is not a plain Python function")


def _listed(value: Any) -> bool:
    try:
        return known(value) is not None or value in _HARMLESS
    except TypeError:  # no hash
        return False


def _instructions(code: CodeType, closure: Mapping[str, Any], spaces: tuple[Mapping, ...], seen: set[int]) -> None:
    """Check a function's instructions, and those of the functions inside it."""
    module, line = None, code.co_firstlineno  # the module that the instruction before has read, if one
    for i in dis.get_instructions(code):
        line = (i.positions and i.positions.lineno) or line
        try:
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") or i.opname == "LOAD_DEREF" and i.argval in closure:
                found = _value_of(i.argval, closure if i.opname == "LOAD_DEREF" else {}, spaces)
            elif i.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                if not hasattr(module, i.argval) or module is None:
                    raise _Obstacle(f"uses the attribute {i.argval}")
                found = getattr(module, i.argval)
            else:
                found = None
                _plain(i, module, closure)
            module = found if isinstance(found, ModuleType) else None
            if module is None:
                _check(found, str(i.argval), seen)
        except _Obstacle as problem:
            raise _Obstacle(str(problem) if " in line " in str(problem) else f"{problem} in line {line}") from None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            shared = {name: cell for name, cell in closure.items() if name in inner.co_freevars}
            _instructions(inner, shared, spaces, seen)


def _value_of(name: str, closure: Mapping[str, Any], spaces: tuple[Mapping, ...]) -> Any:
    try:
        if name in closure:
            return closure[name].cell_contents
        return next(space[name] for space in spaces if name in space)
    except (ValueError, StopIteration):  # an empty cell; a name that nothing has
        raise _Obstacle(f"uses {name}, which has no value") from None


def _plain(i: dis.Instruction, module: ModuleType | None, closure: Mapping[str, Any]) -> None:
    """Check an instruction that reads nothing from outside."""
    if module is not None:
        raise _Obstacle(f"uses the module {module.__name__}")
    if i.opname == "STORE_DEREF" and i.argval in closure:
        raise _Obstacle(f"changes {i.argval}")
    if not _PLAIN.fullmatch(i.opname) and not (i.opname == "CALL_INTRINSIC_1" and i.arg in _INTRINSICS):
        words = (word for pattern, word in _WORDS.items() if re.search(pattern, i.opname))
        raise _Obstacle(f"uses {next(words, i.opname)}")


__all__ = ["obstacle"]
