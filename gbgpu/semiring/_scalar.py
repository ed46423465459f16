"""The typed scalar program: a small immutable expression graph, and the symbolic values that build it.

A `Node` is one typed operation; equal nodes are one object, so a program is a graph without repeats. A `Sym` wraps
a node and behaves like a NumPy scalar: calling a plain Python function with Syms traces it. Python literals (and what
`int()`, `float()` and `math.*` return) are weak, as in NumPy: they take the type of what they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from gbgpu.errors import UdfParseError
from gbgpu.semiring._types import BOOL, FP64, INT32, INT64, DataType, lookup_dtype, of_value, unify


class Branches(Exception):
    """A traced function asked for the truth or the number behind a Sym: its source has to be read instead."""


class Node:
    """One typed operation: `op` its kind, `args` its operands, `value` a literal, parameter or function name."""

    __slots__ = ("op", "dtype", "args", "value")

    def __init__(self, op: str, dtype: DataType, args: tuple[Node, ...], value: Any) -> None:
        self.op = op
        self.dtype = dtype
        self.args = args
        self.value = value


_nodes: dict[tuple, Node] = {}


def node(op: str, dtype: DataType, args: tuple[Node, ...] = (), value: object = None) -> Node:
    """The one Node with these parts."""
    key = (op, dtype, tuple(map(id, args)), repr(value))
    found = _nodes.get(key)
    return found if found is not None else _nodes.setdefault(key, Node(op, dtype, args, value))


def constant(value: object, dtype: DataType) -> Node:
    """A literal of exactly this type."""
    return node("const", dtype, (), dtype.np_type.type(value))


class Program:
    """A typed scalar function: `params` ((name, DataType), ...), `result` DataType, `body` Node.

    `uses` has the names that the body really reads; `key` is its whole text with types, for cache keys.
    """

    __slots__ = ("params", "result", "body", "uses", "key")

    def __init__(self, params: Sequence[tuple[str, DataType]], result: DataType, body: Node) -> None:
        self.params = tuple(params)
        self.result = result
        self.body = body
        order = ordered(body)
        self.uses = frozenset(str(n.value) for n in order if n.op == "param")
        self.key = self._text(order)

    def _text(self, order: list[Node]) -> str:
        number = {id(n): i for i, n in enumerate(order)}
        lines = [_line(n, [f"%{number[id(a)]}" for a in n.args]) for n in order]
        head = ", ".join(f"{name}: {dtype.name}" for name, dtype in self.params)
        return f"({head}) -> {self.result.name} {{{'; '.join(lines)}}}"

    def __repr__(self) -> str:
        return f"Program{self.key}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _line(n: Node, args: list[str]) -> str:
    # repr(np.float64(nan)) and friends are stable, and tell -0.0 from 0.0.
    value = "" if n.value is None else f" {n.value if isinstance(n.value, str) else repr(n.value.item())}"
    return f"{n.op}.{n.dtype.name}{value}({', '.join(args)})"


def ordered(body: Node) -> list[Node]:
    """Every node below `body` once, operands before users."""
    seen: set[int] = set()
    order: list[Node] = []
    stack = [(body, False)]
    while stack:
        n, done = stack.pop()
        if done:
            order.append(n)
        elif id(n) not in seen:
            seen.add(id(n))
            stack.append((n, True))
            stack.extend((a, False) for a in reversed(n.args))
    return order


# --- symbolic values -------------------------------------------------------------------------------------------------


def _infix(function: str, swap: bool = False) -> Callable:
    def method(self, other):
        apply = globals()[function]
        return apply(other, self) if swap else apply(self, other)

    return method


def _needs_source(self, *args):
    raise Branches


class Sym:
    """A symbolic scalar. Its operators build nodes; asking for its truth or its number raises Branches."""

    __slots__ = ("node", "weak")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, n: Node, weak: bool = False) -> None:
        self.node = n
        self.weak = weak

    @property
    def dtype(self) -> DataType:
        return self.node.dtype

    __add__, __radd__ = _infix("add"), _infix("add", True)
    __sub__, __rsub__ = _infix("sub"), _infix("sub", True)
    __mul__, __rmul__ = _infix("mul"), _infix("mul", True)
    __truediv__, __rtruediv__ = _infix("truediv"), _infix("truediv", True)
    __floordiv__, __rfloordiv__ = _infix("floordiv"), _infix("floordiv", True)
    __mod__, __rmod__ = _infix("mod"), _infix("mod", True)
    __pow__, __rpow__ = _infix("power"), _infix("power", True)
    __and__, __rand__ = _infix("bit_and"), _infix("bit_and", True)
    __or__, __ror__ = _infix("bit_or"), _infix("bit_or", True)
    __xor__, __rxor__ = _infix("bit_xor"), _infix("bit_xor", True)
    __lshift__, __rshift__ = _infix("shift_left"), _infix("shift_right")
    __eq__, __ne__ = _infix("eq"), _infix("ne")
    __lt__, __le__, __gt__, __ge__ = _infix("lt"), _infix("le"), _infix("gt"), _infix("ge")
    __bool__ = __int__ = __float__ = __index__ = __round__ = __trunc__ = __floor__ = __ceil__ = _needs_source

    def __neg__(self) -> Sym:
        return negative(self)

    def __pos__(self) -> Sym:
        return self

    def __abs__(self) -> Sym:
        return absolute(self)

    def __invert__(self) -> Sym:
        return invert(self)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        raise Branches  # the reader of the source knows NumPy's functions


def param(name: str, dtype: DataType) -> Sym:
    return Sym(node("param", dtype, (), name))


def sym(value: object) -> Sym:
    """A Sym for a Sym, a Python literal (weak) or a NumPy scalar. TypeError for anything else."""
    if isinstance(value, Sym):
        return value
    dtype = of_value(value)
    return Sym(constant(value, dtype), weak=not isinstance(value, np.generic))


_RANK = {"b": 0, "i": 1, "f": 2}


def common_dtype(syms: Sequence[Sym]) -> DataType:
    """NumPy's result type: strong types promote, a weak one only lifts the kind."""
    strong = [s.dtype for s in syms if not s.weak]
    target = reduce(unify, strong or [s.dtype for s in syms])
    for weak in (s.dtype for s in syms if s.weak):
        if _RANK[weak.kind] > _RANK[target.kind]:
            target = FP64 if weak.kind == "f" else INT64
    return target


def promote(*values: object) -> tuple[list[Sym], DataType]:
    """The values as Syms of one common type."""
    syms = [sym(v) for v in values]
    dtype = common_dtype(syms)
    if dtype is INT32:
        for s in syms:
            if s.weak and s.node.op == "const" and not -(2**31) <= int(s.node.value) < 2**31:
                raise UdfParseError(f"the literal {s.node.value} does not fit INT32")
    weak = all(s.weak for s in syms)
    return [Sym(cast(s, dtype).node, weak) for s in syms], dtype


def cast(value: object, dtype: DataType) -> Sym:
    """The value in another type, by SuiteSparse's rules: float to int saturates and NaN gives 0; to BOOL is `!= 0`."""
    s = sym(value)
    if s.dtype is dtype:
        return Sym(s.node)
    if s.node.op == "const" and not (s.dtype.kind == "f" and dtype.kind == "i"):
        return Sym(constant(s.node.value, dtype))
    if dtype is BOOL:
        return ne(s, 0)
    return Sym(node("cast", dtype, (s.node,)))


def _same(op: str, *values: object) -> Sym:
    syms, dtype = promote(*values)
    return Sym(node(op, dtype, tuple(s.node for s in syms)), syms[0].weak)


def _arith(op: str, for_bool: str | None, a: object, b: object) -> Sym:
    if common_dtype([sym(a), sym(b)]) is not BOOL:
        return _same(op, a, b)
    if for_bool is None:
        raise UdfParseError("BOOL values can't be subtracted; use ^ or cast first")
    return _same(for_bool, a, b)


def add(a, b) -> Sym:
    return _arith("add", "or", a, b)


def sub(a, b) -> Sym:
    return _arith("sub", None, a, b)


def mul(a, b) -> Sym:
    return _arith("mul", "and", a, b)


def as_float(value: object) -> Sym:
    """FP32 stays; integers and BOOL become FP64."""
    s = sym(value)
    return s if s.dtype.kind == "f" else Sym(cast(s, FP64).node, s.weak)


def truediv(a, b) -> Sym:
    (x, y), _ = promote(a, b)
    return _same("div", as_float(x), as_float(y))


def _numeric(a, b, what: str) -> tuple[Sym, Sym, DataType]:
    (x, y), dtype = promote(a, b)
    if dtype is BOOL:
        raise UdfParseError(f"{what} of BOOL values is INT8 in NumPy, which gbgpu doesn't have yet; cast first")
    return x, y, dtype


def floordiv(a, b) -> Sym:
    """Integers floor and give 0 on zero; floats as NumPy's floor_divide."""
    x, y, dtype = _numeric(a, b, "//")
    if dtype.kind == "i":
        return _same("floordiv", x, y)
    rest = call("fmod", x, y)
    quotient = (x - rest) / y
    quotient = select(both(rest != 0, (y < 0) != (rest < 0)), quotient - 1.0, quotient)
    low = call("floor", quotient)
    low = select(quotient - low > 0.5, low + 1.0, low)
    low = select(quotient != 0, low, call("copysign", 0.0, x / y))
    return select(y == 0, x / y, low)


def mod(a, b) -> Sym:
    """The remainder with the sign of the divisor; integers give 0 on zero, floats as NumPy's remainder."""
    x, y, dtype = _numeric(a, b, "%")
    if dtype.kind == "i":
        return _same("mod", x, y)
    rest = call("fmod", x, y)
    moved = select((y < 0) != (rest < 0), rest + y, rest)
    return select(rest != 0, moved, select(y == 0, rest, call("copysign", 0.0, y)))


def power(a, b) -> Sym:
    """Small constant integer powers are products, others `pow` on floats."""
    x, y = sym(a), sym(b)
    if y.weak and y.node.op == "const" and y.dtype is INT64 and 0 <= int(y.node.value) <= 16 and x.dtype is not BOOL:
        one = Sym(constant(1, x.dtype), x.weak)
        return reduce(mul, [x] * int(y.node.value)) if int(y.node.value) else one
    _, dtype = promote(x, y)
    if dtype.kind != "f":
        raise UdfParseError("integers take constant powers from 0 to 16; use float(x) ** y")
    return call("pow", x, y)


def negative(a) -> Sym:
    x = sym(a)
    if x.dtype is BOOL:
        raise UdfParseError("a BOOL value has no negative; use ~ or cast first")
    return Sym(node("neg", x.dtype, (x.node,)), x.weak)


def absolute(a) -> Sym:
    x = sym(a)
    return x if x.dtype is BOOL else Sym(node("abs", x.dtype, (x.node,)), x.weak)


def _bits(op: str, a, b) -> Sym:
    (x, y), dtype = promote(a, b)
    if dtype.kind == "f":
        raise UdfParseError("&, | and ^ take BOOL or integers, not floats")
    return _same(op, x, y)


def bit_and(a, b) -> Sym:
    return _bits("and", a, b)


def bit_or(a, b) -> Sym:
    return _bits("or", a, b)


def bit_xor(a, b) -> Sym:
    return _bits("xor", a, b)


def invert(a) -> Sym:
    x = sym(a)
    if x.dtype.kind == "f":
        raise UdfParseError("~ takes BOOL or an integer, not a float")
    return Sym(node("not", x.dtype, (x.node,)), x.weak)


def _shift(op: str, a, count: object) -> Sym:
    x = sym(a)
    bits = x.dtype.np_type.itemsize * 8
    if x.dtype.kind != "i" or not isinstance(count, (int, np.integer)) or not 0 <= count < bits:
        raise UdfParseError("<< and >> take an integer and a constant count smaller than its bits")
    return Sym(node(op, x.dtype, (x.node,), np.int64(count)), x.weak)


def shift_left(a, count) -> Sym:
    return _shift("shl", a, count)


def shift_right(a, count) -> Sym:
    return _shift("shr", a, count)


def _compare(op: str, a, b) -> Sym:
    x, y = sym(a), sym(b)
    if common_dtype([x, y]) is INT32:  # a literal outside INT32 compares exactly, as in NumPy
        wide = [s for s in (x, y) if s.node.op == "const" and abs(int(s.node.value)) >= 2**31]
        if wide:
            x, y = cast(x, INT64), cast(y, INT64)
    (x, y), _ = promote(x, y)
    return Sym(node(op, BOOL, (x.node, y.node)))


def eq(a, b) -> Sym:
    return _compare("eq", a, b)


def ne(a, b) -> Sym:
    return _compare("ne", a, b)


def lt(a, b) -> Sym:
    return _compare("lt", a, b)


def le(a, b) -> Sym:
    return _compare("le", a, b)


def gt(a, b) -> Sym:
    return _compare("lt", b, a)


def ge(a, b) -> Sym:
    return _compare("le", b, a)


def truth(a) -> Sym:
    """The value as BOOL, as `if` sees it."""
    return cast(a, BOOL)


def both(a, b) -> Sym:
    return bit_and(truth(a), truth(b))


def either(a, b) -> Sym:
    return bit_or(truth(a), truth(b))


def logical_not(a) -> Sym:
    return invert(truth(a))


def select(condition, a, b) -> Sym:
    """`a if condition else b`; both sides are computed."""
    (x, y), dtype = promote(a, b)
    test = truth(condition).node
    if x.node is y.node:
        return x
    if test.op == "const":
        return x if test.value else y
    return Sym(node("select", dtype, (test, x.node, y.node)), x.weak)


def minimum(a, b) -> Sym:
    """The smaller one, NaN ignored, -0.0 below 0.0: the order of the operands never shows."""
    return _same("min", a, b)


def maximum(a, b) -> Sym:
    return _same("max", a, b)


def call(function: str, *values: object) -> Sym:
    """A function of floats by its C name (sqrt, fmod, copysign ...), in the values' common float type."""
    return _float_call(function, [as_float(v) for v in values])


def _float_call(function: str, floats: list[Sym]) -> Sym:
    syms, dtype = promote(*floats)
    return Sym(node("call", dtype, tuple(s.node for s in syms), function), syms[0].weak)


def isnan(a) -> Sym:
    x = sym(a)
    return ne(x, x) if x.dtype.kind == "f" else sym(np.False_)


def isinf(a) -> Sym:
    x = sym(a)
    return eq(absolute(x), np.inf) if x.dtype.kind == "f" else sym(np.False_)


def isfinite(a) -> Sym:
    x = sym(a)
    return lt(absolute(x), np.inf) if x.dtype.kind == "f" else sym(np.True_)


def sign(a) -> Sym:
    """-1, 0 or 1 in the value's type; NaN stays."""
    x = sym(a)
    return select(x > 0, 1, select(x < 0, -1, select(isnan(x), x, 0)))


def round_away(a) -> Sym:
    """C's round: halves away from zero."""
    x = as_float(a)
    whole = call("trunc", x)
    return select(absolute(x - whole) >= 0.5, whole + call("copysign", 1.0, x), whole)


# --- from a function to a program ------------------------------------------------------------------------------------


def trace(function: Callable, params: Sequence[tuple[str, DataType]]) -> Program:
    """The program of a function of Syms."""
    result = sym(function(*[param(name, dtype) for name, dtype in params]))
    return Program(params, result.dtype, result.node)


def from_function(function: Callable, params: Sequence[tuple[str, object]]) -> Program:
    """The program of one plain Python scalar function for parameters ((name, dtype), ...).

    The function is traced; when it branches or calls scalar functions its source is read instead. Raises UdfParseError,
    with the line, for anything outside the language of user operators.
    """
    typed = [(name, lookup_dtype(dtype)) for name, dtype in params]
    first = second = None
    try:
        first, second = trace(function, typed), trace(function, typed)
    except Exception:  # whatever went wrong, the reader of the source does it or tells on which line
        pass
    if first is None or second is None:
        from gbgpu.semiring import _parse

        return _parse.read(function, typed)
    if first.key != second.key:
        problem = f"{_name(function)} gives another formula at each call"
        raise UdfParseError(f"{problem}; an operator must depend on its operands only")
    return first


def _name(function: Callable) -> str:
    return getattr(function, "__name__", repr(function))


def operands(function: Callable, count: int) -> None:
    """Raise TypeError unless the function can be called with `count` positional arguments."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    defaults = len(getattr(function, "__defaults__", None) or ())
    if not code.co_argcount - defaults <= count <= code.co_argcount and not code.co_flags & 0x04:
        raise TypeError(f"{_name(function)} takes {code.co_argcount} arguments; this kind of operator has {count}")
