"""The functions that user operators may call by their own names: Python's, those of `math`, and NumPy's of scalars.

Each has a builder, which takes Syms (and numbers beside them). What Python and `math` return is a Python number; where
they raise ValueError or OverflowError the result is C's, NaN or an infinity.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce

import numpy as np

from gbgpu.errors import UdfParseError
from gbgpu.semiring import _formulas as formulas
from gbgpu.semiring import _numpy as numpys
from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._scalar import Sym
from gbgpu.semiring._types import BOOL, FP64, INT64, SUPPORTED, UINT64

_ONE = (
    *("sqrt", "cbrt", "exp", "exp2", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
_TWO = ("hypot", "copysign", "fmod", "atan2", "nextafter")


def _weak(value: Sym) -> Sym:
    """What Python's own functions return: a Python number, which takes the type of what it meets."""
    return Sym(value.node, weak=True)


def _fixed(count: int, build: Callable) -> Callable:
    """A builder that takes so many values."""

    def checked(*values):
        if len(values) != count:
            raise UdfParseError(f"expected {count} arguments; came {len(values)}")
        return build(*values)

    return checked


def _math(count: int, build: Callable) -> Callable:
    """A function of `math`: floats of 64 bits."""
    return _fixed(count, lambda *values: _weak(sc.sym(build(*[sc.cast(v, FP64) for v in values]))))


def _numpy(count: int, name: str) -> Callable:
    return _fixed(count, lambda *values: sc.call(name, *map(sc.as_near_float, values)))


def _whole(name: str) -> Callable:
    """math.floor and its kin: a Python int."""

    def whole(value):
        s = sc.sym(value)
        return _weak(sc.cast(sc.call(name, s) if s.dtype.kind == "f" else s, INT64))

    return whole


def _integers(name: str, build: Callable) -> Callable:
    """A function of `math` that takes ints alone, in 64 bits."""

    def of_integers(*values):
        syms = [sc.sym(v) for v in values]
        if len(syms) < 2 or any(s.dtype.kind == "f" for s in syms):
            raise UdfParseError(f"math.{name} takes two integers here")
        return _weak(sc.cast(build(*[s if s.dtype is UINT64 else sc.cast(s, INT64) for s in syms]), INT64))

    return of_integers


def _comb(n: Sym, k: Sym) -> Sym:
    return sc.function("comb", INT64, sc.cast(n, INT64), sc.cast(k, INT64))


def _folded(choose: Callable) -> Callable:
    def fold(first, *rest):
        if not rest:
            raise UdfParseError("min and max take two or more scalars here")
        return reduce(choose, rest, first)

    return fold


def _round(value, digits=None) -> Sym:
    if digits is not None:
        raise UdfParseError("round takes no digits here")
    return _whole("rint")(value)


def _log(value, base=None) -> Sym:
    found = sc.call("log", sc.cast(value, FP64))
    if base is not None:
        divisor = sc.call("log", sc.cast(base, FP64))
        found = found / sc.select(divisor == -math.inf, math.nan, divisor)
    return _weak(found)


def _ldexp(value, exponent) -> Sym:
    power = sc.sym(exponent)
    if power.dtype.kind == "f":
        raise UdfParseError("math.ldexp takes an integer exponent")
    return _weak(formulas.LDEXP(sc.cast(value, FP64), power))


def _isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0) -> Sym:
    if any(not isinstance(tolerance, Sym) and tolerance < 0 for tolerance in (rel_tol, abs_tol)):
        raise UdfParseError("tolerances must be non-negative")
    x, y, relative, absolute = (sc.cast(v, FP64) for v in (a, b, rel_tol, abs_tol))
    gap = sc.absolute(x - y)
    near = [gap <= sc.absolute(relative * x), gap <= sc.absolute(relative * y), gap <= absolute]
    finite = sc.both(sc.isfinite(x), sc.isfinite(y))
    return sc.either(x == y, sc.both(finite, reduce(sc.either, near)))


def _of_python() -> dict[object, Callable]:
    known: dict[object, Callable] = {
        **{abs: sc.absolute, round: _round, bool: sc.truth, pow: sc.power},
        **{min: _folded(sc.minimum), max: _folded(sc.maximum)},
        int: lambda v: _weak(sc.cast(v, INT64)),
        float: lambda v: _weak(sc.cast(v, FP64)),
    }
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"):
        known[getattr(operator, name)] = getattr(sc, name)
    return known


def _of_math() -> dict[object, Callable]:
    floats = {name: (1, name) for name in (*_ONE, "erf", "erfc", "lgamma")} | {name: (2, name) for name in _TWO}
    floats |= {"gamma": (1, "tgamma"), "pow": (2, "pow")}
    known: dict[object, Callable] = {
        getattr(math, name): _math(count, lambda *values, own=own: sc.call(own, *values))
        for name, (count, own) in floats.items()
    }
    known |= {getattr(math, name): _whole(name) for name in ("floor", "ceil", "trunc")}
    known |= {getattr(math, name): _fixed(1, getattr(sc, name)) for name in ("isnan", "isinf", "isfinite")}
    known |= {getattr(math, name): _math(1, numpys.UNARY[name]) for name in ("fabs", "degrees", "radians")}
    known |= {math.log: _log, math.ldexp: _ldexp, math.isclose: _isclose}
    known[math.remainder] = _math(2, formulas.BINARY["remainder"])
    known |= {math.gcd: _integers("gcd", _folded(numpys.gcd)), math.lcm: _integers("lcm", _folded(numpys.lcm))}
    known[math.comb] = _integers("comb", _fixed(2, _comb))
    return known


def _of_numpy() -> dict[object, Callable]:
    known: dict[object, Callable] = {
        **{getattr(np, name): getattr(sc, name) for name in ("isnan", "isinf", "isfinite", "sign")},
        **{np.absolute: sc.absolute, np.fabs: lambda v: sc.absolute(sc.as_float(v)), np.negative: sc.negative},
        **{np.add: sc.add, np.subtract: sc.sub, np.multiply: sc.mul, np.divide: sc.truediv},
        **{np.floor_divide: sc.floordiv, np.remainder: sc.mod, np.power: sc.power, np.square: lambda v: sc.mul(v, v)},
        **{np.fmin: sc.minimum, np.fmax: sc.maximum, np.where: sc.select},
        **{np.minimum: numpys.nan_first(sc.minimum), np.maximum: numpys.nan_first(sc.maximum)},
        **{np.logical_and: sc.both, np.logical_or: sc.either, np.logical_not: sc.logical_not},
    }
    for count, names in ((1, (*_ONE, "log", "floor", "ceil", "trunc", "rint")), (2, _TWO)):
        for name in names:
            known[getattr(np, name.replace("a", "arc", 1) if name.startswith("a") else name)] = _numpy(count, name)
    for dtype in SUPPORTED:
        known[dtype.np_type.type] = sc.truth if dtype is BOOL else (lambda d: lambda v: sc.cast(v, d))(dtype)
    return known


_KNOWN = _of_python() | _of_math() | _of_numpy()


def known(function: object) -> Callable | None:
    """The builder of a function that operators may call by its own name."""
    try:
        return _KNOWN.get(function)
    except TypeError:  # no hash
        return None


__all__ = ["known"]
