"""Predicate-based filtering: the values of a large array for which a predicate is true.

The array, which may be larger than the memory of any device, is cut into segments. Each goes to the device that is
free first, is filtered there as a vector is by `select`, and only what stays comes back; a faster device takes more of
them.

Source: Ben-Nun, Sutton, Pai, Pingali, "Groute: An Asynchronous Multi-GPU Programming Model for Irregular
Computations", PPoPP 2017, section 3 (figures 5 and 6).
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import index
from typing import Any

import numpy as np

from gbgpu import Vector, settings
from gbgpu.dtypes import lookup_dtype
from gbgpu.errors import InvalidValue, message


def predicate_filter(
    values: np.ndarray | Iterable[np.ndarray], predicate: Any, thunk: Any = None, *, segment: int = 1 << 20
) -> np.ndarray:
    """The values that `v.select(predicate, thunk)` keeps of a vector `v` of them, in their order: an array of one
    dimension and of their type.

    `values`: an array of one dimension, also a memory-mapped one, or what yields such arrays, all of one type, and does
    not change them any more. One after the other they are the vector; a few more than there are devices are in hand at
    a time; none at all are FP64. What yields them runs on the calling thread, and must leave the session's GPUs alone.
    `predicate`: a select operator, its name, or a function; it sees the indices of the whole. `segment`: how many
    values go to a device at a time, at most. Across ranks each filters its own values on its own devices.

    Raises TypeError (no such arrays, or of several types; no select operator), InvalidValue (segment outside
    1 .. 2**31 - 1), NotImplementedException (a type that vectors can't have)."""
    if not 1 <= index(segment) < 1 << 31:
        raise InvalidValue(message("a segment of 1 to 2**31 - 1 values", segment))
    arrays = iter(values if isinstance(values, Iterable) and not isinstance(values, np.ndarray) else (values,))
    first = next(arrays, np.zeros(0))
    first = _of_one_dimension(first)
    dtype = lookup_dtype(first.dtype)
    kept = Vector(dtype, 1).select(predicate, thunk)
    if kept.kind != "select":
        raise TypeError(message("a select operator", type(predicate).__name__, "gbgpu.select.valuegt, or '>'"))
    found = settings.session().filtered(kept, _segments(chain([first], arrays), first.dtype, segment))
    return np.concatenate([np.zeros(0, first.dtype), *found])


def _of_one_dimension(values: Any) -> np.ndarray:
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        came = f"{values.ndim} dimensions" if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(message("NumPy arrays of one dimension", came))
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _segments(arrays: Iterable[Any], dtype: np.dtype, most: int) -> Iterator[tuple[int, np.ndarray]]:
    """(index of the first value, values) of pieces of at most so many."""
    before = 0
    for array in map(_of_one_dimension, arrays):
        if array.dtype != dtype:
            raise TypeError(message(f"arrays of one type, {dtype}", array.dtype))
        for lo in range(0, len(array), most):
            yield before + lo, array[lo : lo + most]
        before += len(array)
