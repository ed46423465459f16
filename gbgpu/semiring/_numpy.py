"""NumPy's functions by their names, as python-graphblas has them in `unary.numpy`, `binary.numpy` and `monoid.numpy`.

Most are built-in operators under another name; the others have formulas here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._scalar import Sym
from gbgpu.semiring._types import BOOL, INT8, INT64, UINT64, DataType

_SAME = "cbrt ceil cos cosh exp exp2 expm1 floor isfinite isinf isnan log log10 log1p log2 sin sinh sqrt tan tanh trunc"
UNARY_NAMES = {
    **{name: name for name in _SAME.split()},
    **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    **{"abs": "abs", "absolute": "abs", "bitwise_not": "bnot", "invert": "bnot", "logical_not": "lnot"},
    **{"negative": "ainv", "positive": "identity", "rint": "round"},
}
MONOID_NAMES = {
    **{"add": "plus", "multiply": "times", "fmax": "max", "fmin": "min", "equal": "eq"},
    **{f"bitwise_{name}": f"b{name}" for name in ("and", "or", "xor")},
    **{f"logical_{name}": f"l{name}" for name in ("and", "or", "xor")},
}
BINARY_NAMES = {
    **MONOID_NAMES,
    **{"subtract": "minus", "divide": "truediv", "true_divide": "truediv", "power": "pow", "not_equal": "ne"},
    **{"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"},
    **{"arctan2": "atan2", "copysign": "copysign", "ldexp": "ldexp"},
}


def _number(x: Sym) -> Sym:
    """BOOL as INT8, which NumPy's arithmetic makes of it."""
    return sc.cast(x, INT8) if x.dtype is BOOL else x


def _numbers(function: Callable) -> Callable:
    return lambda *values: function(*map(_number, values))


def _floats(function: Callable) -> Callable:
    return lambda *values: function(*map(sc.as_near_float, values))


def nan_first(choose: Callable) -> Callable:
    """np.minimum and np.maximum: NaN wins."""
    return lambda a, b: sc.select(sc.isnan(a), a, sc.select(sc.isnan(b), b, choose(a, b)))


def _reciprocal(x: Sym) -> Sym:
    """Integers are cut to 0, -1 or 1."""
    if x.dtype.kind == "f":
        return 1.0 / x
    return sc.cast(sc.select(x == 1, 1, sc.select(x == -1, -1, 0) if x.dtype.kind == "i" else 0), x.dtype)


def _signbit(x: Sym) -> Sym:
    return sc.call("copysign", 1.0, x) < 0 if x.dtype.kind == "f" else sc.lt(x, 0)


def _spacing(x: Sym) -> Sym:
    away = sc.call("nextafter", x, sc.select(x < 0, -np.inf, np.inf))
    return sc.select(sc.isinf(x), np.nan, away - x)


def fmod(x: Sym, y: Sym) -> Sym:
    """The remainder with the sign of x; integers give 0 on zero."""
    if x.dtype.kind == "f":
        return sc.call("fmod", x, y)
    rest = sc.mod(x, y)
    return sc.select(sc.both(rest != 0, (rest < 0) != (x < 0)), rest - y, rest)


def _magnitude(x: Sym) -> Sym:
    return sc.cast(x if x.dtype.kind == "u" else sc.absolute(sc.cast(x, INT64)), UINT64)


def gcd(x: Sym, y: Sym) -> Sym:
    """The greatest common divisor of the magnitudes."""
    return sc.cast(sc.function("gcd", UINT64, _magnitude(x), _magnitude(y)), x.dtype)


def lcm(x: Sym, y: Sym) -> Sym:
    """The least common multiple of the magnitudes; 0 if one is 0."""
    a, b = _magnitude(x), _magnitude(y)
    return sc.cast(a // sc.function("gcd", UINT64, a, b) * b, x.dtype)


def _logaddexp(exp: str, log: Callable[[Sym], Sym], twice: float) -> Callable:
    """log(exp(x) + exp(y)) without overflow."""

    def add(x: Sym, y: Sym) -> Sym:
        gap = x - y
        high = sc.select(gap > 0, x, y)
        apart = high + log(sc.call(exp, -sc.absolute(gap)))
        return sc.select(x == y, x + twice, sc.select(sc.isnan(gap), gap, apart))

    return add


logaddexp = _logaddexp("exp", lambda v: sc.call("log1p", v), math.log(2))
logaddexp2 = _logaddexp("exp2", lambda v: sc.call("log1p", v) * math.log2(math.e), 1.0)

UNARY: dict[str, Callable] = {
    **dict.fromkeys(("deg2rad", "radians"), _floats(lambda x: x * (math.pi / 180))),
    **dict.fromkeys(("rad2deg", "degrees"), _floats(lambda x: x * (180 / math.pi))),
    "fabs": _floats(sc.absolute),
    "reciprocal": _numbers(_reciprocal),
    "sign": _numbers(sc.sign),
    "signbit": _signbit,
    "spacing": _floats(_spacing),
    "square": _numbers(lambda x: x * x),
}
BINARY: dict[str, Callable] = {
    "floor_divide": sc.floordiv,
    "fmod": _numbers(fmod),
    "mod": sc.mod,
    "remainder": sc.mod,
    "nextafter": _floats(lambda x, y: sc.call("nextafter", x, y)),
}
COMMUTATIVE: dict[str, Callable] = {
    "logaddexp": _floats(logaddexp),
    "logaddexp2": _floats(logaddexp2),
    "hypot": _floats(lambda x, y: sc.call("hypot", x, y)),
    "maximum": nan_first(sc.maximum),
    "minimum": nan_first(sc.minimum),
}
WHOLE: dict[str, Callable] = {  # of BOOL and integers only
    "gcd": _numbers(gcd),
    "lcm": _numbers(lcm),
    "left_shift": _numbers(sc.shift_left),
    "right_shift": _numbers(sc.shift_right),
}


def float_power(pow_: Callable) -> Callable:
    """The power in floats: FP32 stays, all others are FP64."""
    return lambda x, y: pow_(sc.as_float(x), sc.as_float(y))


def identity(name: str) -> Callable[[DataType], object]:
    """The identities of the monoids that are NumPy's alone."""
    lowest: dict[str, Callable[[DataType], object]] = {
        "gcd": lambda dtype: 0,
        "hypot": lambda dtype: 0.0,
        "logaddexp": lambda dtype: -np.inf,
        "logaddexp2": lambda dtype: -np.inf,
    }
    return lowest[name]
