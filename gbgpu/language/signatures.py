"""What tells calls of a program apart, and what was read in them; results with other objects in place of their own."""

from collections.abc import Callable, Collection, Hashable, Iterable
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

from .aggregator import Aggregator
from .expr import Operand, _kinds
from .handle import Handle
from .index import on_gpu

PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
CONSTANT = (Aggregator, Enum, np.dtype, range, type)  # arguments that can't change, beside operators and dtypes


class NotRecordable(BaseException):
    """What a function does that can't be run again; no handler of the function's own is to catch it."""


def own(given: Collection[Any]) -> tuple:
    """Arguments, with copies of arrays, which the function may change later."""
    arrays = (isinstance(x, np.ndarray) or not isinstance(x, Operand) and on_gpu(x) for x in given)
    return tuple(x.copy() if array else x for x, array in zip(given, arrays, strict=True))


def signature(given: Iterable[Any]) -> Hashable:
    """What tells arguments apart: of objects the kind, type, shape and name, of others the value.

    Raises TypeError for what may change, for expressions, for objects in tuples and those of subclasses.
    """
    places: dict[int, int] = {}  # an object that is given twice is the same one
    return tuple(_described(x, places) for x in given)


def _described(x: Any, places: dict[int, int]) -> Hashable:
    if isinstance(x, Handle):
        if type(x) is not _kinds[("scalar", "vector", "matrix")[x.ndim]]:
            raise TypeError(type(x).__name__)
        return type(x), x.dtype, x.shape, x._name, places.setdefault(id(x), len(places))
    return _value(x)


def _value(x: Any) -> Hashable:
    if type(x) is tuple:
        return type(x), *map(_value, x)
    if isinstance(x, PLAIN):
        return _plain(x)
    operator = type(x).__module__.startswith("gbgpu.semiring.")  # or a dtype
    function = isinstance(x, FunctionType) and x.__closure__ is None
    if operator or function or isinstance(x, CONSTANT):
        return type(x), x
    raise TypeError(type(x).__name__)


def _plain(x: Any) -> Hashable:
    """A number or a text, as it is compared: NaN is itself, and -0.0 is not 0.0."""
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    return type(x), repr(x) if isinstance(x, (float, complex)) else x


def frozen(value: Any) -> Any:
    """A value that was read, as it is compared. Raises NotRecordable for an object that may change."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value), *map(frozen, value)
    if isinstance(value, PLAIN):
        return _plain(value)
    raise NotRecordable


def rebuilt(result: Any, new: Callable[[Any], Any]) -> Any:
    """A result with other objects in place of its own.

    Raises NotRecordable for what may hold objects and can't be rebuilt.
    """
    if isinstance(result, Handle):
        return new(result)
    if type(result) is tuple or isinstance(result, tuple) and hasattr(result, "_make"):
        parts = [rebuilt(x, new) for x in result]
        make: Any = getattr(type(result), "_make", tuple)
        return make(parts)
    if type(result) is list:
        return [rebuilt(x, new) for x in result]
    if type(result) is dict:
        frozen((*result,))  # no key is an object
        return {key: rebuilt(x, new) for key, x in result.items()}
    if isinstance(result, PLAIN):
        return result
    raise NotRecordable
