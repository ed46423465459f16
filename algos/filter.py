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
    """The values of a large host array that `v.select(predicate, thunk)` would keep.

    Segments of the array go to whichever device is free, and only the values that stay come back. Across ranks each
    process filters its own values on its own devices.

    Parameters
    ----------
    values : array or iterable of arrays
        One array of one dimension, memory-mapped or not; or an iterable of such arrays of one dtype, taken one after
        the other. The calling thread runs the iterable, which must not use the session's GPUs or change arrays that it
        gave.
    predicate : operator, str or function
        A select operator, its name, or a function. It sees the indices in the whole array.
    thunk : scalar, optional
        The operator's second argument.
    segment : int
        At most so many values go to a device at a time, 1 to 2**31 - 1. A few more segments than devices are in memory.

    Returns
    -------
    numpy.ndarray
        The values that are kept, in their order and of their dtype; FP64 if the iterable is empty.

    Raises
    ------
    TypeError
        If an array has another number of dimensions or another dtype than the first, or `predicate` does not select.
    InvalidValue
        If `segment` is out of its range.
    NotImplementedException
        If no vector can have the dtype.

    References
    ----------
    Ben-Nun, Sutton, Pai, Pingali, "Groute: An Asynchronous Multi-GPU Programming Model for Irregular Computations",
    PPoPP 2017, section 3.
    """
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
