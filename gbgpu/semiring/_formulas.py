"""The formulas of the built-in operators, on Syms: what python-graphblas and SuiteSparse compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._scalar import Sym
from gbgpu.semiring._types import BOOL, FP64, INT32, INT64


def _function(name: str) -> Callable:
    return lambda *values: sc.call(name, *map(sc.as_near_float, values))


def _one(x: Sym, *_: Sym) -> Sym:
    return Sym(sc.constant(1, x.dtype))


def _minus(x: Sym, y: Sym) -> Sym:
    return x ^ y if x.dtype is BOOL else x - y


def swap(function: Callable) -> Callable:
    return lambda x, y: function(y, x)


def _lnot(x: Sym) -> Sym:
    return sc.cast(sc.logical_not(x), x.dtype)


def _logical(function: Callable) -> Callable:
    return lambda x, y: sc.cast(function(sc.truth(x), sc.truth(y)), x.dtype)


def _cdiv(x: Sym, y: Sym) -> Sym:
    """Division that stays in its type: C's truncation for integers; x / 0 is 0 or the extreme with x's sign."""
    if x.dtype is BOOL:
        return x
    if x.dtype.kind == "f":
        return x / y
    floor, number, info = x // y, x.dtype.np_type.type, np.iinfo(x.dtype.np_type)
    at_zero = sc.select(x == 0, number(0), number(info.max))
    if x.dtype.kind == "u":
        return sc.select(y == 0, at_zero, floor)
    at_zero = sc.select(x < 0, number(info.min), at_zero)
    return sc.select(y == 0, at_zero, floor + sc.cast((floor < 0) & (floor * y != x), x.dtype))


def _pow(x: Sym, y: Sym) -> Sym:
    """SuiteSparse's power: integers are computed in floats and cast back with saturation; any NaN gives NaN."""
    if x.dtype is BOOL:
        return x | ~y
    if x.dtype.kind == "f":
        return sc.select(sc.either(sc.isnan(x), sc.isnan(y)), x + y, sc.call("pow", x, y))
    return sc.cast(sc.call("pow", sc.cast(x, FP64), sc.cast(y, FP64)), x.dtype)


def _ainv(x: Sym) -> Sym:
    return x if x.dtype is BOOL else -x


def _signum(x: Sym) -> Sym:
    return sc.sign(sc.as_near_float(x))


def _is(compare: Callable) -> Callable:
    return lambda x, y: sc.cast(compare(x, y), x.dtype)


_FLOAT_FUNCTIONS = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "floor", "ceil", "trunc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
UNARY: dict[str, Callable] = {
    "identity": lambda x: x,
    "ainv": _ainv,
    "abs": sc.absolute,
    "lnot": _lnot,
    "one": _one,
    "minv": lambda x: _cdiv(_one(x), x),
    "signum": _signum,
    "round": lambda x: sc.round_away(sc.as_near_float(x)),
    **{name: _function(name) for name in _FLOAT_FUNCTIONS},
}
_COMPARE = {"eq": sc.eq, "ne": sc.ne, "lt": sc.lt, "le": sc.le, "gt": sc.gt, "ge": sc.ge}
BINARY: dict[str, Callable] = {
    "minus": _minus,
    "rminus": swap(_minus),
    "truediv": sc.truediv,
    "rtruediv": swap(sc.truediv),
    "floordiv": sc.floordiv,
    "rfloordiv": swap(sc.floordiv),
    "cdiv": _cdiv,
    "rdiv": swap(_cdiv),
    "first": lambda x, y: x,
    "second": lambda x, y: y,
    "pow": _pow,
    "absfirst": lambda x, y: sc.absolute(x),
    "abssecond": lambda x, y: sc.absolute(y),
    "atan2": _function("atan2"),
    "copysign": _function("copysign"),
    "fmod": _function("fmod"),
    "lt": sc.lt,
    "le": sc.le,
    "gt": sc.gt,
    "ge": sc.ge,
    "islt": _is(sc.lt),
    "isle": _is(sc.le),
    "isgt": _is(sc.gt),
    "isge": _is(sc.ge),
}
COMMUTATIVE: dict[str, Callable] = {
    "plus": sc.add,
    "times": sc.mul,
    "min": sc.minimum,
    "max": sc.maximum,
    "any": lambda x, y: y,
    "pair": _one,
    "eq": sc.eq,
    "ne": sc.ne,
    "iseq": _is(sc.eq),
    "isne": _is(sc.ne),
    "land": _logical(sc.bit_and),
    "lor": _logical(sc.bit_or),
    "lxor": _logical(sc.bit_xor),
    "hypot": _function("hypot"),
}
# i is the row of the first operand, k the inner index, j the column of the second; names with 1 count from one.
POSITIONAL: dict[str, Callable] = {
    "firsti": lambda i, k, j: i,
    "firstj": lambda i, k, j: k,
    "secondi": lambda i, k, j: k,
    "secondj": lambda i, k, j: j,
    "firsti1": lambda i, k, j: i + 1,
    "firstj1": lambda i, k, j: k + 1,
    "secondi1": lambda i, k, j: k + 1,
    "secondj1": lambda i, k, j: j + 1,
}


def _index(formula: Callable) -> Callable:
    """Index operators of INT32 give INT32, of any other type INT64."""
    return lambda x, i, j, t: sc.cast(formula(i, j, t), INT32 if x.dtype is INT32 else INT64)


INDEX: dict[str, Callable] = {
    "rowindex": _index(lambda i, j, t: i + t),
    "colindex": _index(lambda i, j, t: j + t),
    "diagindex": _index(lambda i, j, t: j - i - t),
    "index": _index(lambda i, j, t: i + t),
}
KEEP_POSITIONS: dict[str, Callable] = {
    "tril": lambda x, i, j, t: j <= i + t,
    "triu": lambda x, i, j, t: j >= i + t,
    "diag": lambda x, i, j, t: j == i + t,
    "offdiag": lambda x, i, j, t: j != i + t,
    "rowle": lambda x, i, j, t: i <= t,
    "rowgt": lambda x, i, j, t: i > t,
    "colle": lambda x, i, j, t: j <= t,
    "colgt": lambda x, i, j, t: j > t,
    "indexle": lambda x, i, j, t: i <= t,
    "indexgt": lambda x, i, j, t: i > t,
}


def _with_thunk(compare: Callable) -> Callable:
    return lambda x, i, j, t: compare(x, t)


KEEP_VALUES: dict[str, Callable] = {f"value{name}": _with_thunk(compare) for name, compare in _COMPARE.items()}
FLOAT_TESTS: dict[str, Callable] = {"isnan": sc.isnan, "isinf": sc.isinf, "isfinite": sc.isfinite}
BITWISE: dict[str, Callable] = {
    "band": sc.bit_and,
    "bor": sc.bit_or,
    "bxor": sc.bit_xor,
    "bxnor": lambda x, y: ~(x ^ y),
}
