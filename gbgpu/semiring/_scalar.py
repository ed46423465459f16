"""The typed scalar program: a small immutable expression graph, and the symbolic values that build it.

A `Node` is one typed operation; equal nodes are one object, so a program is a graph without repeats. A `Sym` wraps
a node and behaves like a NumPy scalar: calling a plain Python function with Syms traces it. Python literals (and what
`int()`, `float()`, `math.*` and comparisons return) are weak, as in NumPy: they take the type of what they meet. A weak
BOOL is Python's bool, an int to arithmetic; BOOL values of built-in operators are strong, and their sum is `or`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import reduce
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gbgpu.errors import UdfParseError
from gbgpu.semiring._types import (
    BOOL,
    FP32,
    FP64,
    INT8,
    INT64,
    UINT64,
    DataType,
    convert,
    of_value,
    unify,
)


class Branches(TypeError):
    """A traced function asked for the truth or the number behind a Sym."""


# What answers `bool(sym)` while a function is traced, given the node of the question; None: nobody does.
deciding: ContextVar[Callable[[Node], bool] | None] = ContextVar("deciding", default=None)


class Node:
    """One typed operation: `op` its kind, `args` its operands, `value` a literal, parameter or function name."""

    __slots__ = ("op", "dtype", "args", "value", "__weakref__")

    def __init__(self, op: str, dtype: DataType, args: tuple[Node, ...], value: Any) -> None:
        self.op = op
        self.dtype = dtype
        self.args = args
        self.value = value


_nodes: WeakValueDictionary[tuple, Node] = WeakValueDictionary()  # a node goes with the last program that has it


def node(op: str, dtype: DataType, args: tuple[Node, ...] = (), value: object = None) -> Node:
    """The one Node with these parts."""
    key = (op, dtype, tuple(map(id, args)), repr(value))
    found = _nodes.get(key)
    return found if found is not None else _nodes.setdefault(key, Node(op, dtype, args, value))


def constant(value: object, dtype: DataType) -> Node:
    """A literal of exactly this type."""
    return node("const", dtype, (), convert(value, dtype))


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
    value = "" if n.value is None else f" {n.value.item()!r}" if isinstance(n.value, np.generic) else f" {n.value}"
    return f"{n.op}.{n.dtype.name}{value}({', '.join(args)})"


def ordered(body: Node) -> list[Node]:
    """Every node below `body` once, operands before users."""
    return in_order(body, lambda n: n.args[::-1])


def in_order(root: Any, operands: Callable[[Any], Sequence[Any]]) -> list[Any]:
    """Every node below `root` once, after its operands; of these the last one first.

    Graphs may be deep, and share nodes.
    """
    order: list[Any] = []
    seen: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting += [(node, True), *((inner, False) for inner in operands(node))]
    return order


# --- symbolic values -------------------------------------------------------------------------------------------------


def _infix(function: str, swap: bool = False) -> Callable:
    def method(self, other):
        apply = globals()[function]
        return apply(other, self) if swap else apply(self, other)

    return method


def _number(self, *args):
    raise Branches("an operand stands where Python needs the number itself")


class Sym:
    """A symbolic scalar.

    Its operators build nodes; asking for its number raises Branches, for its truth what `deciding` says.
    """

    __slots__ = ("node", "weak")
    __array_ufunc__ = None  # so that NumPy's scalars leave their operators to ours

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
    __int__ = __float__ = __index__ = __round__ = __trunc__ = __floor__ = __ceil__ = _number
    __hash__ = __repr__ = __str__ = __format__ = _number

    def __bool__(self) -> bool:
        decide = deciding.get()
        if decide is None:
            raise Branches("the truth of an operand is asked")
        return decide(truth(self).node)

    def __neg__(self) -> Sym:
        return negative(self)

    def __pos__(self) -> Sym:
        return positive(self)

    def __abs__(self) -> Sym:
        return absolute(self)

    def __invert__(self) -> Sym:
        return invert(self)


def param(name: str, dtype: DataType) -> Sym:
    return Sym(node("param", dtype, (), name))


def user_params(params: Sequence[tuple[str, DataType]]) -> list[Sym]:
    """The parameters as a user's function sees them: BOOL values are Python's bools."""
    return [Sym(node("param", dtype, (), name), weak=dtype is BOOL) for name, dtype in params]


def sym(value: object) -> Sym:
    """A Sym for a Sym, a Python literal (weak) or a NumPy scalar. TypeError for anything else."""
    if isinstance(value, Sym):
        return value
    if type(value) is int and not fits(value, INT64):
        return Sym(node("const", INT64, (), value), weak=True)  # waits for the type that it meets
    dtype = of_value(value)
    return Sym(constant(value, dtype), weak=not isinstance(value, np.generic))


def fits(value: int, dtype: DataType) -> bool:
    """Whether an integer type holds the value."""
    info = np.iinfo(dtype.np_type)
    return info.min <= value <= info.max


def _literal(s: Sym) -> int | None:
    """The value of an integer literal, else None."""
    return int(s.node.value) if s.weak and s.node.op == "const" and s.dtype is INT64 else None


_RANK = {"b": 0, "i": 1, "u": 1, "f": 2}


def common_dtype(syms: Sequence[Sym]) -> DataType:
    """NumPy's result type: strong types promote, a weak one only lifts the kind."""
    strong = [s.dtype for s in syms if not s.weak]
    target = reduce(unify, strong or [s.dtype for s in syms])
    for weak in (s.dtype for s in syms if s.weak):
        if _RANK[weak.kind] > _RANK[target.kind]:
            target = FP64 if weak.kind == "f" else INT64
    return target


def promote(*values: object) -> tuple[list[Sym], DataType]:
    """The values as Syms of one common type. Raises UdfParseError for an integer literal that doesn't fit it."""
    syms = [sym(v) for v in values]
    dtype = common_dtype(syms)
    weak = all(s.weak for s in syms)
    return [Sym(_fitted(s, dtype), weak) for s in syms], dtype


def _fitted(s: Sym, dtype: DataType) -> Node:
    literal = _literal(s)
    if literal is not None and dtype.kind in "iu" and not fits(literal, dtype):
        raise UdfParseError(f"the literal {literal} does not fit {dtype.name}")
    return cast(s, dtype).node


def cast(value: object, dtype: DataType) -> Sym:
    """The value in another type, by SuiteSparse's rules.

    Float to int saturates and NaN gives 0; to BOOL is `!= 0`; integers wrap.
    """
    s = sym(value)
    if s.node.op == "const":
        return Sym(constant(s.node.value, dtype))
    if s.dtype is dtype:
        return Sym(s.node)
    if dtype is BOOL:
        return ne(s, 0)
    return Sym(node("cast", dtype, (s.node,)))


def _same(op: str, *values: object) -> Sym:
    syms, dtype = promote(*values)
    return Sym(node(op, dtype, tuple(s.node for s in syms)), syms[0].weak)


def _numbers(*values: object) -> list[Sym]:
    """Operands of arithmetic: Python's bools among themselves are ints."""
    syms = [sym(v) for v in values]
    if all(s.weak and s.dtype is BOOL for s in syms):
        return [Sym(cast(s, INT64).node, weak=True) for s in syms]
    return syms


def _arith(op: str, for_bool: str | None, a: object, b: object) -> Sym:
    a, b = _numbers(a, b)
    if common_dtype([a, b]) is not BOOL:
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


def as_near_float(value: object) -> Sym:
    """The type in which NumPy and python-graphblas compute float functions.

    It is FP32 up to 16 bits (NumPy has a smaller one for 8), else FP64.
    """
    s = sym(value)
    return cast(s, FP32) if s.dtype.bits <= 16 else as_float(s)


def truediv(a, b) -> Sym:
    (x, y), _ = promote(a, b)
    return _same("div", as_float(x), as_float(y))


def _numeric(a, b) -> tuple[Sym, Sym, DataType]:
    (x, y), dtype = promote(*_numbers(a, b))
    return (cast(x, INT8), cast(y, INT8), INT8) if dtype is BOOL else (x, y, dtype)


def floordiv(a, b) -> Sym:
    """Integers floor and give 0 on zero, BOOL as INT8; floats as NumPy's floor_divide."""
    x, y, dtype = _numeric(a, b)
    if dtype.kind in "iu":
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
    x, y, dtype = _numeric(a, b)
    if dtype.kind in "iu":
        return _same("mod", x, y)
    rest = call("fmod", x, y)
    moved = select((y < 0) != (rest < 0), rest + y, rest)
    return select(rest != 0, moved, select(y == 0, rest, call("copysign", 0.0, y)))


def power(a, b) -> Sym:
    """Small constant integer powers are products, floats take `pow`; integers wrap, BOOL counts as INT8."""
    x, y = sym(a), sym(b)
    exponent = _literal(y)
    if exponent is not None and 0 <= exponent <= 16 and x.dtype is not BOOL:
        return reduce(mul, [x] * exponent) if exponent else Sym(constant(1, x.dtype), x.weak)
    x, y, dtype = _numeric(x, y)
    return call("pow", x, y) if dtype.kind == "f" else _integer_power(x, y)


def _integer_power(x: Sym, y: Sym) -> Sym:
    """The power x ** y modulo 2 ** bits; a negative power is 0 but for 1 and -1."""
    power = cast(function("ipow", UINT64, cast(x, UINT64), cast(y, UINT64)), x.dtype)
    if x.dtype.kind == "u":
        return power
    root = select(x == 1, 1, select(x == -1, select((y & 1) == 0, 1, -1), 0))
    return select(y < 0, root, power)


def positive(a) -> Sym:
    (x,) = _numbers(a)
    return x


def negative(a) -> Sym:
    (x,) = _numbers(a)
    if x.dtype is BOOL:
        raise UdfParseError("a BOOL value has no negative; use ~ or cast first")
    return Sym(node("neg", x.dtype, (x.node,)), x.weak)


def absolute(a) -> Sym:
    (x,) = _numbers(a)
    return x if x.dtype.kind in "bu" else Sym(node("abs", x.dtype, (x.node,)), x.weak)


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


def _shift(op: str, a, count, beyond: Callable[[Sym], object]) -> Sym:
    """Shifts of integers; `beyond(x)` is the result for a count outside 0 .. bits - 1."""
    (x, n), dtype = promote(*_numbers(a, count))
    if dtype.kind not in "iu":
        raise UdfParseError("<< and >> take integers")
    if n.node.op == "const" and 0 <= int(n.node.value) < dtype.bits:
        return Sym(node(op, dtype, (x.node, n.node)), x.weak)
    inside = both(n >= 0, n < dtype.bits)
    return select(inside, Sym(node(op, dtype, (x.node, select(inside, n, 0).node))), beyond(x))


def shift_left(a, count) -> Sym:
    """As NumPy's left_shift: 0 where the count is negative or not below the number of bits."""
    return _shift("shl", a, count, lambda x: 0)


def shift_right(a, count) -> Sym:
    """As NumPy's right_shift: the sign's bits where the count is negative or not below the number of bits."""
    return _shift("shr", a, count, lambda x: select(x < 0, -1, 0) if x.dtype.kind == "i" else 0)


def _compare(op: str, a, b) -> Sym:
    """A comparison, a Python bool.

    Integers compare exactly, also with a literal outside the type, and INT64 with UINT64.
    """
    x, y = sym(a), sym(b)
    left, right = _literal(x), _literal(y)
    if left is not None and right is not None:
        return sym(_PLAIN[op](left, right))
    dtype = common_dtype([x, y])
    for literal in (left, right):
        if literal is not None and dtype.kind in "iu" and not fits(literal, dtype):
            ends = (literal, 0) if literal is left else (0, literal)
            return sym(_PLAIN[op](*ends))
    if left is None and right is None and {x.dtype, y.dtype} == {INT64, UINT64}:
        return _mixed(op, x, y)
    (x, y), _ = promote(x, y)
    return Sym(node(op, BOOL, (x.node, y.node)), weak=True)


_PLAIN: dict[str, Callable] = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le}


def _mixed(op: str, x: Sym, y: Sym) -> Sym:
    """INT64 against UINT64: as unsigned where the signed one isn't negative; a negative one is below."""
    signed = x if x.dtype is INT64 else y
    ends = (-1, 0) if signed is x else (0, -1)
    unsigned = Sym(node(op, BOOL, (cast(x, UINT64).node, cast(y, UINT64).node)), weak=True)
    return select(signed < 0, sym(_PLAIN[op](*ends)), unsigned)


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
    """The value as a Python bool, as `if` sees it."""
    return Sym(cast(a, BOOL).node, weak=True)


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


def call(name: str, *values: object) -> Sym:
    """A function of floats by its C name (sqrt, fmod, copysign ...), in the values' common float type."""
    syms, dtype = promote(*[as_float(v) for v in values])
    return Sym(function(name, dtype, *syms).node, syms[0].weak)


def function(name: str, dtype: DataType, *values: Sym) -> Sym:
    """A function of the printers (`_lower`), of these values as they are."""
    return Sym(node("call", dtype, tuple(v.node for v in values), name))


def isnan(a) -> Sym:
    x = sym(a)
    return ne(x, x) if x.dtype.kind == "f" else sym(False)


def isinf(a) -> Sym:
    x = sym(a)
    return eq(absolute(x), np.inf) if x.dtype.kind == "f" else sym(False)


def isfinite(a) -> Sym:
    x = sym(a)
    return lt(absolute(x), np.inf) if x.dtype.kind == "f" else sym(True)


def sign(a) -> Sym:
    """-1, 0 or 1 in the value's type; NaN stays."""
    x = sym(a)
    if x.dtype.kind in "bu":
        return cast(x != 0, x.dtype)
    return select(x > 0, 1, select(x < 0, -1, select(isnan(x), x, 0)))


def round_away(a) -> Sym:
    """C's round: halves away from zero."""
    x = as_float(a)
    whole = call("trunc", x)
    return select(absolute(x - whole) >= 0.5, whole + call("copysign", 1.0, x), whole)


# --- from a function to a program ------------------------------------------------------------------------------------


def trace(function: Callable, params: Sequence[tuple[str, DataType]]) -> Program:
    """The program of a function of Syms."""
    return of_result(function(*[param(name, dtype) for name, dtype in params]), params)


def of_result(result: object, params: Sequence[tuple[str, DataType]]) -> Program:
    """The program that computes this Sym or literal."""
    found = sym(result)
    if type(found.node.value) is int:
        raise UdfParseError(f"the literal {found.node.value} does not fit INT64")
    return Program(params, found.dtype, found.node)


def name_of(function: Callable) -> str:
    return getattr(function, "__name__", repr(function))


def operands(function: Callable, count: int) -> None:
    """Raise TypeError unless the function can be called with `count` positional arguments."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    takes = code.co_argcount - isinstance(function, MethodType)  # its object is the first
    defaults = len(getattr(function, "__defaults__", None) or ())
    if not takes - defaults <= count <= takes and not code.co_flags & 0x04:
        what = " (value, row, column, thunk)" * (count == 4)
        raise TypeError(f"{name_of(function)} takes {takes} arguments; this kind of operator has {count}{what}")
