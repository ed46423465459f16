"""Checks of what callers give to readers, writers and generators.

TypeError for another type, InvalidValue out of range. Memory is asked for before it is used.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from gbgpu import host
from gbgpu.errors import InvalidValue, OutOfMemory, message


def whole(name: str, value: Any, low: int = 0, high: int | None = None, *, none: bool = False) -> Any:
    """A whole number from `low` to `high`, as an int; or None where that may be."""
    if value is None and none:
        return None
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(message(f"{name}: a whole number", f"{value!r}, of type {type(value).__name__}"))
    number = value.__index__()
    if number < low or (high is not None and number > high):
        raise InvalidValue(message(f"{name}: {low} " + ("or more" if high is None else f"to {high}"), number))
    return number


def real(name: str, value: Any, low: float, high: float) -> float:
    """A number from `low` to `high`, as a float."""
    try:
        number = float(value) if not isinstance(value, str | bytes) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise TypeError(message(f"{name}: a number", f"{value!r}, of type {type(value).__name__}"))
    if not low <= number <= high:  # NaN neither
        raise InvalidValue(message(f"{name}: {low} to {high}", value))
    return number


def flag(name: str, value: Any, *, none: bool = False) -> None:
    """True or False; or None where that may be."""
    if not (value is None and none) and not isinstance(value, bool | np.bool_):
        raise TypeError(message(f"{name}: True or False" + " or None" * none, repr(value)))


def word(name: str, value: Any, words: tuple[str, ...] = (), *, none: bool = False) -> None:
    """A string, one of `words` if there are any; or None where that may be."""
    if value is None and none:
        return
    if not isinstance(value, str):
        raise TypeError(message(f"{name}: a string", f"{value!r}, of type {type(value).__name__}"))
    if words and value not in words:
        raise InvalidValue(message(f"{name} to be one of {', '.join(words)}", repr(value)))


def path(value: Any, expected: str = "a path") -> str:
    """A file's name."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise TypeError(message(expected, f"{value!r}, of type {type(value).__name__}"))
    return os.fsdecode(value)


def lines(comment: Any) -> list[str]:
    """The lines of a comment, of characters that every file can hold."""
    word("comment", comment)
    return comment.encode("utf-8", "backslashreplace").decode().splitlines()


def fitting(values: np.ndarray, dtype: Any) -> np.ndarray:
    """`values` as another type. InvalidValue for a number that it has not: too large, or not whole."""
    with np.errstate(over="ignore", invalid="ignore"):
        made = values.astype(dtype.np_type)
    if dtype.kind in "iu":
        limits: Any = np.iinfo(dtype.np_type)
        odd = values != np.trunc(values) if values.dtype.kind == "f" else np.zeros(0, bool)
        ends = [values.min().item(), values.max().item(), *values[odd][:1].tolist()] if values.size else []
        wrong = [value for value in ends if not limits.min <= value <= limits.max or value != int(value)]
        expected = f"values of {dtype}: whole ones from {limits.min} to {limits.max}"
    else:
        wrong = values[np.isinf(made) & np.isfinite(values)][:1].tolist()
        expected = f"values of {dtype}"
    if wrong:
        raise InvalidValue(message(expected, wrong[0], "a wider dtype"))
    return made


@contextlib.contextmanager
def memory(what: str, need: int = 0) -> Iterator[None]:
    """A block that takes about `need` bytes of the host's memory.

    OutOfMemory, before it begins, if they are not there, and where NumPy is refused some.
    """
    hint = "fewer entries, or a machine with more memory"
    if need > (free := host.memory()[0]):
        raise OutOfMemory(message(f"{need} bytes for {what}", f"{free} bytes free", hint))
    try:
        yield
    except MemoryError as error:
        raise OutOfMemory(message(f"memory for {what}", f"{host.memory()[0]} bytes free ({error})", hint)) from error
