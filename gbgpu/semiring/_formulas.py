"""The formulas of the built-in operators, on Syms: what python-graphblas and SuiteSparse compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._scalar import Sym
from gbgpu.semiring._types import BOOL, FP64, INT8, INT32, INT64, UINT64


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
    """SuiteSparse's power: integers are computed in floats and cast back with saturation; any NaN gives NaN.

    A GPU's pow may be off by some last digits, so that a whole number must be looked for close by.
    """
    if x.dtype is BOOL:
        return x | ~y
    if x.dtype.kind == "f":
        return sc.select(sc.either(sc.isnan(x), sc.isnan(y)), x + y, sc.call("pow", x, y))
    power = sc.call("pow", sc.cast(x, FP64), sc.cast(y, FP64))
    whole = sc.call("rint", power)
    close = sc.absolute(power - whole) <= sc.absolute(power) * 1e-15
    return sc.cast(sc.select(close, whole, power), x.dtype)


def _remainder(x: Sym, y: Sym) -> Sym:
    """C's remainder: x minus the nearest multiple of y, halves to the even one."""
    (x, y), _ = sc.promote(sc.as_near_float(x), sc.as_near_float(y))
    size, rest = sc.absolute(y), sc.absolute(sc.call("fmod", x, y + y))
    rest = sc.select(
        rest + rest > size, sc.select((rest - size) + (rest - size) >= size, rest - size - size, rest - size), rest
    )
    rest = sc.select(y == 0, np.nan, rest)
    return sc.select(sc.call("copysign", 1.0, x) < 0, -rest, rest)


def _ldexp(x: Sym, y: Sym) -> Sym:
    """2^5000 is infinite and 2^-5000 is zero: larger exponents, which C's int may not hold, say no more."""
    value = sc.as_near_float(x)
    if y.dtype.bits > 16:
        y = sc.minimum(y, sc.cast(sc.sym(5000), y.dtype))
        y = y if y.dtype.kind == "u" else sc.maximum(y, sc.cast(sc.sym(-5000), y.dtype))
    return sc.function("ldexp", value.dtype, value, sc.cast(y, INT32))


def _bit(k: Sym) -> Sym:
    """A word with bit k set, counted from one; 0 if there is no such bit."""
    return sc.shift_left(_one(k), k - 1)


def _bshift(x: Sym, y: Sym) -> Sym:
    """Left by y as INT8, right by -y; the sign's bits come in from the left."""
    count = sc.cast(sc.cast(y, INT8), INT64)
    left = sc.shift_left(x, sc.cast(sc.maximum(count, 0), x.dtype))
    right = sc.shift_right(x, sc.cast(sc.maximum(-count, 0), x.dtype))
    return sc.select(count < 0, right, left)


def _binom(n: Sym, k: Sym) -> Sym:
    """The number of k-subsets of n things in INT64; 0 if it does not fit."""
    return sc.function("binom", INT64, sc.cast(n, INT64), sc.cast(k, INT64))


def isclose(rel_tol: float = 1e-7, abs_tol: float = 0.0) -> Callable:
    """Whether x == y, or |x - y| <= max(rel_tol * max(|x|, |y|), abs_tol) in FP64.

    Differences of integers are exact.
    """

    def close(x: Sym, y: Sym) -> Sym:
        wide, other = sc.cast(x, FP64), sc.cast(y, FP64)
        gap = sc.cast(sc.absolute(x - y), FP64) if x.dtype.kind == "f" else _gap(x, y)
        bound = sc.maximum(sc.maximum(sc.absolute(wide), sc.absolute(other)) * float(rel_tol), float(abs_tol))
        return sc.either(x == y, gap <= bound)

    return close


def _gap(x: Sym, y: Sym) -> Sym:
    low, high = sc.cast(sc.minimum(x, y), UINT64), sc.cast(sc.maximum(x, y), UINT64)
    return sc.cast(high - low, FP64)


def _ainv(x: Sym) -> Sym:
    return x if x.dtype is BOOL else -x


def _signum(x: Sym) -> Sym:
    return sc.sign(sc.as_near_float(x))


def _is(compare: Callable) -> Callable:
    return lambda x, y: sc.cast(compare(x, y), x.dtype)


_FLOAT_FUNCTIONS = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "floor", "ceil", "trunc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "lgamma", "tgamma"),
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
    "rpow": swap(sc.power),
    "absfirst": lambda x, y: sc.absolute(x),
    "abssecond": lambda x, y: sc.absolute(y),
    "atan2": _function("atan2"),
    "copysign": _function("copysign"),
    "fmod": _function("fmod"),
    "remainder": _remainder,
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
FLOAT_PARTS: dict[str, Callable] = {
    "frexpx": lambda x: sc.function("frexpx", x.dtype, x),
    "frexpe": lambda x: sc.function("frexpe", x.dtype, x),
}
BITS: dict[str, Callable] = {
    "bget": lambda x, k: sc.cast((x & _bit(k)) != 0, x.dtype),
    "bset": lambda x, k: x | _bit(k),
    "bclr": lambda x, k: x & ~_bit(k),
    "bshift": _bshift,
    "binom": _binom,
}
LDEXP = _ldexp
# Of a value's own place.
PLACE: dict[str, Callable] = {
    "positioni": lambda i, j: i,
    "positionj": lambda i, j: j,
    "positioni1": lambda i, j: i + 1,
    "positionj1": lambda i, j: j + 1,
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
