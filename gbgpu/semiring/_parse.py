"""Reads the source of a user function that branches or calls scalar functions, and builds its program.

Allowed: expressions, local assignments, if / else, conditional expressions, comparison chains, the functions of
`_known`, captured scalars, and calls of other such functions. Both sides of a branch are computed and one is selected,
so a branch costs both; a row of branches costs each of them once, where paths (`_paths`) would multiply.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import linecache
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from gbgpu.errors import UdfParseError
from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._known import known
from gbgpu.semiring._scalar import Program, Sym
from gbgpu.semiring._types import DataType

_BINARY = {
    **{ast.Add: sc.add, ast.Sub: sc.sub, ast.Mult: sc.mul, ast.Div: sc.truediv, ast.FloorDiv: sc.floordiv},
    **{ast.Mod: sc.mod, ast.Pow: sc.power, ast.BitAnd: sc.bit_and, ast.BitOr: sc.bit_or, ast.BitXor: sc.bit_xor},
    **{ast.LShift: sc.shift_left, ast.RShift: sc.shift_right},
}
_UNARY = {ast.USub: sc.negative, ast.UAdd: sc.positive, ast.Invert: sc.invert, ast.Not: sc.logical_not}
_COMPARE = {ast.Eq: sc.eq, ast.NotEq: sc.ne, ast.Lt: sc.lt, ast.LtE: sc.le, ast.Gt: sc.gt, ast.GtE: sc.ge}
_DEEPEST = 20  # calls of functions inside functions


def read(function: Callable, params: Sequence[tuple[str, DataType]], why: str) -> Program:
    """The program of `function`, from its source; `why` it has to be read. Raises UdfParseError with the line."""
    build = known(function) or _Reader(function, 0, why).call
    try:
        return sc.of_result(build(*sc.user_params(params)), params)
    except RecursionError:
        problem = f"a formula of {sc.name_of(function)} is nested too deep to be read"
        raise UdfParseError(f"{problem}; give parts of it names") from None


class _Missing:
    """A name that only one branch has assigned."""


_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_Function = ast.FunctionDef | ast.Lambda


@lru_cache(maxsize=64)
def _source(code: CodeType, file: str) -> tuple[_Function, list[str]]:
    """The syntax tree of a function's code, and the lines of its file. Raises OSError if they can't be had."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if not lines:
        raise OSError("could not get source code")
    trees, codes = _functions("".join(lines), file, code.co_flags & _FUTURE)
    place = code.co_name, code.co_firstlineno
    if not any(_parts(other) == _parts(code) for other in codes.get(place, ())):
        raise OSError(f"{file} has changed since it was loaded")
    found = [tree for tree in trees.get(place, ()) if isinstance(tree, ast.FunctionDef) or _is_lambda(tree, code)]
    if len(found) != 1:
        raise OSError(f"it was not found in {file}")
    return found[0], lines


@lru_cache(maxsize=4)
def _functions(text: str, file: str, flags: int) -> tuple[dict, dict]:
    """The syntax trees and the codes of a file's functions, by name and first line. Raises OSError if it is no Python.

    A file is parsed once, not once for each of its functions.
    """
    trees: defaultdict[tuple[str, int], list[_Function]] = defaultdict(list)
    codes: defaultdict[tuple[str, int], list[CodeType]] = defaultdict(list)
    try:
        tree = ast.parse(text)
        whole = compile(tree, file, "exec", flags, True)
    except (SyntaxError, RecursionError) as error:
        raise OSError(str(error)) from None
    for n in ast.walk(tree):
        if isinstance(n, ast.FunctionDef):
            trees[n.name, min([n.lineno, *(d.lineno for d in n.decorator_list)])].append(n)
        elif isinstance(n, ast.Lambda):
            trees["<lambda>", n.lineno].append(n)
    for code in _codes(whole):
        codes[code.co_name, code.co_firstlineno].append(code)
    return trees, codes


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a module and of every function in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _parts(code: CodeType) -> tuple:
    """What a function does and where, equal for the code of one text."""
    constants = repr([c for c in code.co_consts if not isinstance(c, CodeType)])
    return code.co_name, _places(code), code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _places(code: CodeType) -> set:
    return {place for place in code.co_positions() if None not in place}


def _is_lambda(n: ast.Lambda, code: CodeType) -> bool:
    """Whether this syntax is the code's, by its places: lambdas may share a line."""
    alone = compile(ast.Expression(n), "", "eval").co_consts
    return _places(code) == _places(next(c for c in alone if isinstance(c, CodeType)))


def _python(thing: object) -> Any:
    """A Python function or method for itself or for an object that is called by one, else None."""
    for function in (thing, getattr(thing, "__call__", None)):  # noqa: B004
        if inspect.isfunction(function) or inspect.ismethod(function) and inspect.isfunction(function.__func__):
            return function
    return None


class _Reader:
    """Evaluates one function's syntax tree on Syms and Python constants."""

    def __init__(self, function: Any, depth: int, why: str = "branches or calls functions") -> None:
        name = sc.name_of(function)
        if depth > _DEEPEST:
            raise UdfParseError(f"{name} calls itself, or functions are nested too deep")
        function = _python(function)
        if function is None:
            raise UdfParseError(f"{name} is not a plain Python function, and can't be read")
        self.owner = (function.__self__,) if inspect.ismethod(function) else ()
        self.function = function.__func__ if inspect.ismethod(function) else function
        self.depth = depth
        self.file = self.function.__code__.co_filename
        # inspect.getsource would look for the module, and so import each that others have put off.
        linecache.lazycache(self.file, self.function.__globals__)
        try:
            self.tree, self.lines = _source(self.function.__code__, self.file)
        except OSError as error:
            raise UdfParseError(
                f"{name} {why}, and its source can't be read: {error}. Hint: save it in a file"
            ) from None
        self.spaces = (inspect.getclosurevars(self.function).nonlocals, self.function.__globals__, vars(builtins))

    def call(self, *values: object, **named: object) -> object:
        """The function's result for these arguments; defaults fill the rest."""
        try:
            bound = inspect.signature(self.function, follow_wrapped=False).bind(*self.owner, *values, **named)
        except TypeError as error:
            raise self.error(self.tree, str(error)) from None
        bound.apply_defaults()
        local = dict(bound.arguments)
        if isinstance(self.tree, ast.Lambda):
            return self.value(self.tree.body, local)
        return self.block(self.tree.body, local)

    def error(self, where: ast.AST, problem: str) -> UdfParseError:
        line = getattr(where, "lineno", 1)
        text = self.lines[line - 1].strip() if line <= len(self.lines) else ""
        return UdfParseError(f"{sc.name_of(self.function)}: {problem}\n  {self.file}, line {line}: {text}")

    # statements

    def block(self, body: Sequence[ast.stmt], local: dict[str, object]) -> object:
        """Run statements up to `return`. An `if` that returns on one side takes the rest of the block into both."""
        for position, statement in enumerate(body):
            if isinstance(statement, ast.Return):
                return self.value(statement.value, local) if statement.value else self._no_result(statement)
            if isinstance(statement, ast.If):
                if _returns(statement):
                    return self.branch(statement, body[position + 1 :], local)
                self.merge(statement, local)
            else:
                self.assign(statement, local)
        return self._no_result(self.tree)

    def _no_result(self, where: ast.AST) -> object:
        raise self.error(where, "every path must return a value")

    def branch(self, statement: ast.If, rest: Sequence[ast.stmt], local: dict[str, object]) -> object:
        test = self.value(statement.test, local)
        if not isinstance(test, Sym):
            return self.block([*(statement.body if test else statement.orelse), *rest], local)
        yes = self.block([*statement.body, *rest], dict(local))
        no = self.block([*statement.orelse, *rest], dict(local))
        return self.guard(statement, sc.select, test, yes, no)

    def merge(self, statement: ast.If, local: dict[str, object]) -> None:
        test = self.value(statement.test, local)
        sides = [dict(local), dict(local)]
        for side, body in zip(sides, (statement.body, statement.orelse), strict=True):
            for inner in body:
                self.merge(inner, side) if isinstance(inner, ast.If) else self.assign(inner, side)
        yes, no = sides
        if not isinstance(test, Sym):
            local.update(yes if test else no)
            return
        for name in {*yes, *no}:
            a, b = yes.get(name, _Missing), no.get(name, _Missing)
            local[name] = a if a is b else self.either(statement, test, a, b)

    def either(self, where: ast.AST, test: Sym, a: object, b: object) -> object:
        return _Missing if a is _Missing or b is _Missing else self.guard(where, sc.select, test, a, b)

    def assign(self, statement: ast.stmt, local: dict[str, object]) -> None:
        if isinstance(statement, ast.Pass) or _is_docstring(statement):
            return
        if isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
            value = self.value(statement.value, local)
            local.update({target.id: value for target in statement.targets})  # type: ignore[attr-defined]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            local[statement.target.id] = self.value(statement.value, local)
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            now = self.name(statement.target, local)
            new = self.value(statement.value, local)
            local[statement.target.id] = self.guard(statement, self._operation(statement, statement.op), now, new)
        else:
            raise self.error(statement, f"{_kind(statement)} is not allowed in an operator")

    # expressions

    def value(self, n: ast.expr, local: dict[str, object]) -> object:
        method = getattr(self, f"on_{type(n).__name__}", None)
        if method is None:
            raise self.error(n, f"{_kind(n)} is not allowed in an operator")
        return method(n, local)

    def guard(self, where: ast.AST, function: Callable, *values: object) -> object:
        """Apply a builder; whatever it refuses is told with the line."""
        try:
            return function(*values)
        except UdfParseError as error:
            raise (error if "line " in str(error) else self.error(where, str(error))) from None
        except (TypeError, ValueError, ArithmeticError) as error:
            raise self.error(where, str(error)) from None

    def _operation(self, where: ast.AST, kind: ast.operator) -> Callable:
        if type(kind) not in _BINARY:
            raise self.error(where, f"{_kind(kind)} is not allowed in an operator")
        return _BINARY[type(kind)]

    def on_Constant(self, n: ast.Constant, local: dict[str, object]) -> object:
        if not isinstance(n.value, (bool, int, float)):
            raise self.error(n, f"the constant {n.value!r} is not a number")
        return n.value

    def on_Name(self, n: ast.Name, local: dict[str, object]) -> object:
        return self.name(n, local)

    def name(self, n: ast.Name, local: dict[str, object]) -> object:
        if n.id in local:
            if local[n.id] is _Missing:
                raise self.error(n, f"{n.id} has no value on one of the branches")
            return local[n.id]
        for space in self.spaces:
            if n.id in space:
                return space[n.id]
        raise self.error(n, f"the name {n.id} is not defined")

    def on_Attribute(self, n: ast.Attribute, local: dict[str, object]) -> object:
        owner = self.value(n.value, local)
        if isinstance(owner, Sym) or not hasattr(owner, n.attr):
            raise self.error(n, f"the attribute {n.attr} is not allowed in an operator")
        return getattr(owner, n.attr)

    def on_BinOp(self, n: ast.BinOp, local: dict[str, object]) -> object:
        operation = self._operation(n, n.op)
        left, right = self.value(n.left, local), self.value(n.right, local)
        if not isinstance(left, Sym) and not isinstance(right, Sym):
            return self.guard(n, _plain(n), left, right)
        return self.guard(n, operation, left, right)

    def on_UnaryOp(self, n: ast.UnaryOp, local: dict[str, object]) -> object:
        value = self.value(n.operand, local)
        if isinstance(value, Sym):
            return self.guard(n, _UNARY[type(n.op)], value)
        return self.guard(n, _plain(n), value)

    def on_BoolOp(self, n: ast.BoolOp, local: dict[str, object]) -> object:
        """`and` and `or` give one of their operands, as in Python."""
        result = self.value(n.values[0], local)
        for other in n.values[1:]:
            stops = isinstance(n.op, ast.Or)
            if not isinstance(result, Sym):
                result = result if bool(result) is stops else self.value(other, local)
                continue
            sides = (result, self.value(other, local))
            result = self.guard(n, sc.select, result, *(sides if stops else sides[::-1]))
        return result

    def on_Compare(self, n: ast.Compare, local: dict[str, object]) -> object:
        left, result = self.value(n.left, local), None
        for kind, operand in zip(n.ops, n.comparators, strict=True):
            if type(kind) not in _COMPARE:
                raise self.error(n, f"{_kind(kind)} is not allowed in an operator")
            right = self.value(operand, local)
            one = self.guard(n, _COMPARE[type(kind)], left, right)
            result = one if result is None else sc.both(result, one)
            left = right
        return result

    def on_IfExp(self, n: ast.IfExp, local: dict[str, object]) -> object:
        test = self.value(n.test, local)
        if not isinstance(test, Sym):
            return self.value(n.body if test else n.orelse, local)
        return self.guard(n, sc.select, test, self.value(n.body, local), self.value(n.orelse, local))

    def on_Call(self, n: ast.Call, local: dict[str, object]) -> object:
        function = self.value(n.func, local)
        build = known(function)
        if build is None and _python(function) is None:
            raise self.error(n, f"{getattr(function, '__name__', function)} is not allowed in an operator")
        if any(k.arg is None for k in n.keywords) or any(isinstance(a, ast.Starred) for a in n.args):
            raise self.error(n, "starred arguments are not allowed in an operator")
        values = [self.value(a, local) for a in n.args]
        named = {str(k.arg): self.value(k.value, local) for k in n.keywords}
        call = build or (lambda *v, **k: _Reader(function, self.depth + 1).call(*v, **k))
        return self.guard(n, lambda *v: call(*v, **named), *values)


def _plain(n: ast.expr) -> Callable:
    """The operation of a syntax node, on plain Python constants."""
    py = operator
    table: dict[type, Callable] = {
        **{ast.Add: py.add, ast.Sub: py.sub, ast.Mult: py.mul, ast.Div: py.truediv, ast.FloorDiv: py.floordiv},
        **{ast.Mod: py.mod, ast.Pow: py.pow, ast.BitAnd: py.and_, ast.BitOr: py.or_, ast.BitXor: py.xor},
        **{ast.LShift: py.lshift, ast.RShift: py.rshift, ast.USub: py.neg, ast.UAdd: py.pos, ast.Invert: py.invert},
        ast.Not: py.not_,
    }
    return table[type(n.op)]  # type: ignore[attr-defined]


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Return) for inner in ast.walk(statement))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


_WORDS = {"isnot": "is not", "notin": "not in", "joinedstr": "f-string", "listcomp": "list comprehension"}


def _kind(n: ast.AST) -> str:
    word = type(n).__name__.lower()
    return f"`{_WORDS.get(word, word)}`"


__all__ = ["read"]
