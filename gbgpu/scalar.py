"""Scalars: one value or none, on the devices until it is asked for."""

from typing import Any

from .errors import EmptyObject, message
from .expr import Handle, Updater, _kinds
from .semiring._types import lookup_dtype, of_value


class Scalar(Handle):
    """One value of `dtype`, or none. `.value` reads it; `s << v.reduce(monoid)` leaves it where it was computed."""

    __slots__ = ("_value",)
    ndim = 0

    def __init__(self, dtype: Any = float, *, name: str | None = None):
        super().__init__(dtype, (), name)
        self._value: Any = None  # a host value, or None; a result still on the devices is in _store

    @classmethod
    def from_value(cls, value: Any, dtype: Any = None, *, name: str | None = None) -> "Scalar":
        """A scalar that holds `value`."""
        scalar = cls(of_value(value) if dtype is None else dtype, name=name)
        scalar.value = value
        return scalar

    @property
    def value(self) -> Any:
        """The value as a Python scalar, None if there is none. The first access of a computed value reads from the
        devices."""
        if self._store is not None:
            self._value, self._store = self._session.read_scalar(self._store), None
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._store = None
        self._value = None if value is None else self.dtype.np_type.type(value).item()

    def get(self, default: Any = None) -> Any:
        """The value, or `default`."""
        return default if self.value is None else self.value

    @property
    def nvals(self) -> int:
        return 0 if self.value is None else 1

    def clear(self) -> None:
        """Make it empty."""
        self.value = None

    def __lshift__(self, expr: Any) -> Any:
        return super().__lshift__(Scalar(self.dtype) if expr is None else expr)

    def dup(self, dtype: Any = None, *, clear: bool = False, name: str | None = None) -> "Scalar":
        copy = Scalar(self.dtype if dtype is None else lookup_dtype(dtype), name=name)
        copy.value = None if clear else self.value
        return copy

    def _number(self) -> Any:
        if self.value is None:
            raise EmptyObject(message("a scalar with a value", "an empty one", ".get(default)"))
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)  # False if empty, as in python-graphblas

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __index__(self) -> int:
        if self.dtype.np_type.kind not in "iu":
            raise TypeError(message("an integer scalar as an index", self.dtype))
        return int(self._number())

    def __eq__(self, other: Any) -> bool:
        return self.value == (other.value if isinstance(other, Scalar) else other)

    __hash__ = Handle.__hash__

    def isequal(self, other: Any, *, check_dtype: bool = False) -> bool:
        """Both empty, or equal values."""
        if other is None:
            return self.value is None
        other = other if isinstance(other, Scalar) else Scalar.from_value(other)
        return (not check_dtype or self.dtype is other.dtype) and self.value == other.value

    def __repr__(self) -> str:
        return f'"{self.name}" gb.Scalar dtype={self.dtype} value={self.value}'


class Element:
    """`v[i]` or `A[i, j]`: one element, read by `.new()`, `.value`, or used as a number."""

    __slots__ = ("parent", "position")

    def __init__(self, parent: Handle, position: tuple[int, ...]):
        self.parent, self.position = parent, position

    @property
    def value(self) -> Any:
        """The value, or None."""
        return self.parent._session.element(self.parent, self.position)

    def new(self, dtype: Any = None, *, name: str | None = None) -> Scalar:
        """The element as a Scalar."""
        scalar = Scalar(self.parent.dtype if dtype is None else dtype, name=name)
        scalar.value = self.value
        return scalar

    def get(self, default: Any = None) -> Any:
        value = self.value
        return default if value is None else value

    def __lshift__(self, value: Any) -> Any:
        return Updater(self.parent)[self.position[0]] << value

    def __eq__(self, other: Any) -> bool:
        return self.value == (other.value if isinstance(other, (Scalar, Element)) else other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self.new())

    def __int__(self) -> int:
        return int(self.new())

    def __float__(self) -> float:
        return float(self.new())

    def __repr__(self) -> str:
        return f"{self.parent.name}[{', '.join(map(str, self.position))}] = {self.value}"


_kinds["scalar"] = Scalar
_kinds["element"] = Element
