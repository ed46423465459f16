"""Runs a user function with symbols in place of numbers, once for each path through its branches. Needs no source.

Whatever asks a symbol for its truth (`if`, `and`, `not`, a chain of comparisons, `any`) is answered true at first; each
answer is then changed in turn, and the results are selected by what was asked. `_calls.obstacle` says which functions
may be run so: those whose result depends on nothing but operands and what they captured.
"""

from __future__ import annotations

import builtins
import dis
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from gbgpu.errors import UdfParseError
from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._known import known
from gbgpu.semiring._scalar import Branches, Node, Program, Sym
from gbgpu.semiring._types import DataType

MOST = 64  # paths of one function: both sides of every branch are computed


def program(function: Callable, params: Sequence[tuple[str, DataType]], most: int = MOST) -> Program:
    """The program of a function of at most so many paths. UdfParseError tells why not and where: "... in line 3"."""
    try:
        result = _Paths(_Copies().of(function), sc.user_params(params), most).selected({})
        return sc.of_result(result, params)
    except Exception as error:  # whatever Python or a builder says
        where = _line(error) or getattr(getattr(function, "__code__", None), "co_firstlineno", 1)
        raise UdfParseError(f"can't be traced ({error}) in line {where}") from error


def _line(error: Exception) -> int | None:
    """The line of the innermost function that is not ours."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


class _Paths:
    """The tree of one function's decisions."""

    def __init__(self, function: Callable, values: list[Sym], most: int) -> None:
        self.function = function
        self.values = values
        self.most = most
        self.count = 0

    def selected(self, given: dict[Node, bool]) -> object:
        """The result where these questions, the first ones, have these answers."""
        asked, result = self.run(given)
        trail = list(asked.items())
        for i in reversed(range(len(given), len(trail))):
            test = trail[i][0]
            result = sc.select(Sym(test, weak=True), result, self.selected(dict([*trail[:i], (test, False)])))
        return result

    def run(self, given: dict[Node, bool]) -> tuple[dict[Node, bool], object]:
        """What is asked on one path, with the answers, and what the function returns there."""
        self.count += 1
        asked: dict[Node, bool] = {}
        ahead = iter(given.items())

        def decide(test: Node) -> bool:
            if test.op == "const":
                return bool(test.value)
            if test not in asked:
                _refuse_in(sys._getframe(2))
                expected, answer = next(ahead, (test, True))
                if expected is not test:
                    raise UdfParseError("it asks something else at each call")
                if self.count + len(asked) - len(given) >= self.most:
                    raise Branches(f"it has more than {self.most} paths, or a loop that an operand ends")
                asked[test] = answer
            return asked[test]

        token = sc.deciding.set(decide)
        try:
            result = self.function(*self.values)
        finally:
            sc.deciding.reset(token)
        if result is None:
            raise UdfParseError("every path must return a value")
        return asked, result


def _refuse_in(frame: Any) -> None:
    """`in` asks for identity before equality: no operator of numbers."""
    if dis.opname[frame.f_code.co_code[frame.f_lasti]] == "CONTAINS_OP":
        raise UdfParseError("`in` is not allowed in an operator")


class _List(list):
    """A captured list, which all paths see as it was."""

    def _refuse(self, other):
        raise UdfParseError("it changes a list that it captured")

    __iadd__ = __imul__ = _refuse


class _Module:
    def __init__(self, module: ModuleType, copies: _Copies) -> None:
        self._module = module
        self._copies = copies

    def __getattr__(self, name: str) -> Any:
        return self._copies.of(getattr(self._module, name))


class _Copies:
    """Copies of functions with what they captured.

    What knows numbers only gives way to its builder, and nothing can be changed.
    """

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if (build := known(value)) is not None:
            return functools.partial(_called, value, build)
        kind = type(value)
        if kind is FunctionType:
            return self.made.get(id(value)) or self.function(value)
        if kind is ModuleType:
            return _Module(value, self)
        if kind in (list, tuple):
            return (_List if kind is list else tuple)(map(self.of, value))
        if kind is dict:
            return MappingProxyType({key: self.of(item) for key, item in value.items()})
        if kind is functools.partial:
            return functools.partial(self.of(value.func), *self.of(value.args), **self.of(value.keywords))
        if kind is np.ndarray:
            value = value.view()
            value.flags.writeable = False
        return value

    def function(self, function: FunctionType) -> FunctionType:
        space: dict[str, Any] = {}
        cells = tuple(CellType() for _ in function.__code__.co_freevars)
        made = FunctionType(function.__code__, space, function.__name__, None, cells)
        self.made[id(function)] = made  # before what it captured: it may call itself
        for name in _names(function.__code__):
            found: Mapping[str, Any] = function.__globals__ if name in function.__globals__ else vars(builtins)
            if name in found:
                space[name] = self.of(found[name])
        for cell, old in zip(cells, function.__closure__ or (), strict=True):
            if old != CellType():  # an empty one stays empty
                cell.cell_contents = self.of(old.cell_contents)
        made.__defaults__ = self.of(function.__defaults__)
        made.__kwdefaults__ = dict(self.of(function.__kwdefaults__ or {}))
        return made


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function and those inside it may look up."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _called(function: Callable, build: Callable, *values: Any, **named: Any) -> Any:
    """Symbols are the builder's matter, numbers Python's."""
    symbolic = any(isinstance(v, Sym) for v in (*values, *named.values()))
    return (build if symbolic else function)(*values, **named)


__all__ = ["program"]
