"""Exceptions, under python-graphblas's names, so scripts that catch them keep working.

Messages say expected, came, hint.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NoReturn, TypeVar

_T = TypeVar("_T")


class GraphblasException(Exception):
    """Base of every error that gbgpu raises by a class of its own."""


class NoValue(GraphblasException):
    """A value was asked for where no entry is present."""


class InvalidValue(GraphblasException):
    """An argument's value is not allowed, or an object belongs to an ended session."""


class InvalidIndex(GraphblasException):
    """An index is malformed."""


class DomainMismatch(GraphblasException):
    """Types do not fit the operator."""


class DimensionMismatch(GraphblasException):
    """Shapes do not fit; raised when the expression is built."""


class OutputNotEmpty(GraphblasException):
    """`build` on an object that already has entries."""


class OutOfMemory(GraphblasException):
    """A device ran out of memory; the message has need, free and device. The session goes on."""


class IndexOutOfBound(GraphblasException, IndexError):
    """An index is negative or too large where the data is built or read."""


class EmptyObject(GraphblasException):
    """A scalar without a value was used as a value."""


class NotImplementedException(GraphblasException):
    """A valid request that gbgpu does not carry out yet."""


class Panic(GraphblasException):
    """An inner rule was broken: a defect of gbgpu."""


class UdfParseError(GraphblasException):
    """A user function is outside the language of user operators; the message has the line."""


class DeviceError(GraphblasException):
    """A device does not exist or failed; the message names it."""


class FileFormatError(GraphblasException, ValueError):
    """A file is malformed; the message has the line number."""


def message(expected: str, came: object, hint: str = "") -> str:
    """One error text: what was expected, what came, and a hint."""
    text = f"expected {expected}; came {came}"
    return f"{text}. Hint: {hint}" if hint else text


def no_attribute(owner: str, name: str, instead: str | None = None) -> AttributeError:
    """What to raise for a name that is not there, with what to write in its place, if that is known."""
    text = f"{owner} has no attribute {name!r}"
    return AttributeError(f"{text}. Hint: {instead}" if instead else text)


def checked_text(value: object, what: str) -> str:
    """An argument that must be a string. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(message(f"a string: {what}", type(value).__name__))
    return value


def in_room(work: Callable[[], _T]) -> _T | None:
    """work(), or None where memory runs out."""
    try:
        return work()
    except (MemoryError, OutOfMemory):
        return None


def fixed(name: str, hint: str = "", doc: str | None = None) -> Any:
    """An attribute that users read and only gbgpu writes, as `_name`. To assign or delete it raises AttributeError."""

    def refuse(x: Any, *value: Any) -> NoReturn:
        text = f"{type(x).__name__}.{name} can't be assigned or deleted"
        raise AttributeError(f"{text}. Hint: {hint}" if hint else text)

    return property(attrgetter("_" + name), refuse, refuse, doc)
