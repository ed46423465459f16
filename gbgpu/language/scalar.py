"""Scalars: one value or none, on the devices until it is asked for. Arithmetic between scalars is done on the host."""

from typing import Any

import numpy as np

from ..errors import EmptyObject, message
from ..semiring._lower import cast_program, to_python
from ..semiring._names import registries
from ..semiring._types import INT64, DataType, exact, lookup_dtype, of_value
from .expr import Composed, Expression, Lazy, Operand, Statement, _kinds, bound, like, plain, read, thunk
from .handle import Handle, close, told
from .masks import values_of
from .recording import later
from .typed import dtype_or, elementwise, selected, united
from .update import Place, Updater

ALIKE = "eq", "ne"  # of numbers that may be missing: always has a value


class Scalar(Handle):
    """One value of a dtype, or none.

    `s << v.reduce(monoid)` leaves the value on the devices; `s.value` reads it.

    Parameters
    ----------
    dtype : dtype
        The type of the value.
    is_cscalar : bool
        Ignored; python-graphblas has it.
    name : str, optional
        The name in plans and traces.
    """

    __slots__ = ("_value",)
    ndim = 0
    is_cscalar, is_grbscalar = False, True

    def __init__(self, dtype: Any = float, *, is_cscalar: bool = False, name: str | None = None):
        super().__init__(dtype, (), name)
        self._value: Any = None  # a host value, or None; a result still on the devices is in _store

    @classmethod
    def from_value(
        cls, value: Any, dtype: Any = None, *, is_cscalar: bool = False, name: str | None = None
    ) -> "Scalar":
        """A scalar that holds a value.

        Parameters
        ----------
        value : scalar
            A number, or another Scalar (which may be empty).
        dtype : dtype, optional
            By default that of `value`.
        is_cscalar : bool
            Ignored; python-graphblas has it.
        name : str, optional
            The scalar's name.

        Returns
        -------
        Scalar
            A new one.
        """
        if isinstance(value, Operand) and value.ndim == 0:
            scalar = value._computed()
            return scalar.dup(dtype, name=name)
        scalar = cls(of_value(value) if dtype is None else dtype, name=name)
        scalar.value = value
        return scalar

    # -- the value

    @property
    def value(self) -> Any:
        """The value as a Python number, None if there is none.

        The first access after a computation reads from the devices. While a loop is recorded, a recorded scalar.
        """
        if self._session.recorders:
            found = later(self, self.dtype, self.name, lambda: self.value, "value")
            if found is not None:
                return found
        self._session.computed(self)
        return self._read()

    @value.setter
    def value(self, value: Any) -> None:
        if self._session.recording:
            self << value
            return
        if isinstance(value, Operand):
            found: Any = value if value.ndim else value._computed()  # plain refuses vectors and matrices
            value = None if not found.ndim and found.value is None else plain(found)
        held = None if value is None else exact(value, self.dtype).item()
        with self._session.lock:  # a captured loop of another thread may be at it
            self._store, self._value = None, held
            self._session.filled(self)

    @property
    def waits(self) -> bool:
        """Whether there is a value, which lies on the devices and was not read yet."""
        store = self._store  # another thread may read it meanwhile
        return store is not None and store[2] is not None

    def get(self, default: Any = None) -> Any:
        """The value, or `default` if there is none. While a loop is recorded, a recorded scalar."""
        found = later(self, self.dtype, self.name, lambda: self.get(default))
        return found if found is not None else default if self.value is None else self.value

    @property
    def nvals(self) -> Any:
        """1 if there is a value, else 0. While a loop is recorded, a recorded scalar."""
        found = later(self, INT64, f"{self.name}.nvals", lambda: self.nvals)
        return found if found is not None else 0 if self.value is None else 1

    def clear(self) -> None:
        """Make it empty."""
        self.value = None

    def _scalar_source(self, value: Any, wanted: tuple) -> Expression:
        """Like a handle's, but None empties it."""
        if value is None:
            return Expression("fill", None, self, None, self.dtype, (), None)
        return super()._scalar_source(value, wanted)

    def dup(
        self, dtype: Any = None, *, clear: bool = False, is_cscalar: bool | None = None, name: str | None = None
    ) -> "Scalar":
        """A copy.

        Parameters
        ----------
        dtype : dtype, optional
            By default that of the scalar.
        clear : bool
            Whether the copy is empty.
        is_cscalar : bool, optional
            Ignored; python-graphblas has it.
        name : str, optional
            The copy's name.

        Returns
        -------
        Scalar
            A new one.
        """
        target = dtype_or(dtype, self.dtype)
        copy = Scalar(target, name=name)
        if self._session.recording:
            copy << (None if clear else self)
        elif not clear and self.value is not None:
            copy.value = self.value if target is self.dtype else cast(self.value, self.dtype, target)
        return copy

    # -- as a number

    def _number(self) -> Any:
        if self.value is None:
            raise EmptyObject(message("a scalar with a value", "an empty one", ".get(default)"))
        return self.value

    def _read(self) -> Any:
        return self._value if self._store is None else self._session.settle(self)

    def __bool__(self) -> bool:
        return bool(self.value)  # False if empty, as in python-graphblas

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.dtype.np_type.kind not in "iu":
            raise TypeError(message("an integer scalar as an index", self.dtype))
        return int(self._number())

    def __array__(self, dtype: Any = None, *, copy: Any = None) -> np.ndarray:
        return np.array(self.value, dtype=self.dtype.np_type if dtype is None else dtype)

    def isequal(self, other: Any, *, check_dtype: bool = False) -> bool:
        """Whether both are empty or have equal values.

        Parameters
        ----------
        other : Scalar or number
            None stands for an empty scalar.
        check_dtype : bool
            Whether dtypes must be the same. That of a plain number is not checked.

        Returns
        -------
        bool
            While a loop is recorded, a recorded BOOL.

        Raises
        ------
        TypeError
            If `other` is a Vector or a Matrix.
        """
        if (found := told(self, other, "isequal", check_dtype=check_dtype)) is not None:
            return found
        other, check_dtype = _compared(other, check_dtype)
        if check_dtype and self.dtype is not other.dtype:
            return False
        return bool(self.value == other.value) if other.value is not None else self.value is None

    def isclose(self, other: Any, *, rel_tol: float = 1e-7, abs_tol: float = 0.0, check_dtype: bool = False) -> bool:
        """Whether both are empty, or |a - b| <= max(rel_tol * max(|a|, |b|), abs_tol).

        Parameters
        ----------
        other : Scalar or number
            None stands for an empty scalar.
        rel_tol, abs_tol : float
            The relative and the absolute tolerance.
        check_dtype : bool
            Whether dtypes must be the same. That of a plain number is not checked.

        Returns
        -------
        bool
            While a loop is recorded, a recorded BOOL.
        """
        given = {"rel_tol": rel_tol, "abs_tol": abs_tol, "check_dtype": check_dtype}
        if (found := told(self, other, "isclose", **given)) is not None:
            return found
        other, check_dtype = _compared(other, check_dtype)
        if (check_dtype and self.dtype is not other.dtype) or self.nvals != other.nvals:
            return False
        return self.value is None or close(self.value, other.value, rel_tol, abs_tol)

    # -- operators, on the host

    @staticmethod
    def _applied(x: Any, op: Any, right: Any, left: Any) -> Expression:
        found, option = bound(op, x.dtype, right, left)

        def work(value: Any) -> Any:
            side, scalar = thunk(found, option)
            if side:
                return _call(found, value, scalar) if side == "right" else _call(found, scalar, value)
            return _call(found, value) if len(found.dtypes) == 1 else _call(found, value, 0, 0, scalar)

        unary = found if len(found.program.params) == 1 else None
        return _mapped(x, work, found.return_type, f"{x.name}.apply({found!r})", unary)

    @staticmethod
    def _selected(x: Any, op: Any, limit: Any) -> Expression:
        found, fixed = selected(op, x.dtype, like(limit), not isinstance(limit, Operand))
        limit = limit if isinstance(limit, Operand) else fixed
        return _kept(x, lambda value: _call(found, value, 0, 0, read(limit, found.dtypes[1])), repr(found))

    @staticmethod
    def _selected_inside(x: Any, op: Any) -> Expression:
        if not isinstance(op, Operand) or op.ndim:
            values_of(op)
            raise TypeError(message("a scalar condition to select a scalar by", type(op).__name__))
        return _kept(x, lambda value: op._node()._read(), "condition")

    @staticmethod
    def _ewise(kind: str, left: Any, right: Any, op: Any, defaults: Any) -> Expression:
        """op(left, right) of two scalars; "union": the value that is there, where the other is missing."""
        left, right = (Scalar(bool) if side is None and kind in ALIKE else side for side in (left, right))
        x, y = (side._node() if isinstance(side, Operand) else _literal(side) for side in (left, right))
        if defaults is None:
            found = elementwise(op, x.dtype, y.dtype)
        else:
            found = united(op, (x.dtype, y.dtype), (like(defaults[0]), like(defaults[1])))[0]

        def compute(a: Any, b: Any) -> Any:
            if kind in ALIKE and (a is None or b is None):
                return (a is b) == (kind == "eq")
            if (a is None and b is None) or ((a is None or b is None) and kind == "intersect"):
                return None
            if defaults is not None:
                a = exact(plain(defaults[0]), found.dtypes[0]) if a is None else a
                b = exact(plain(defaults[1]), found.dtypes[1]) if b is None else b
            if a is None or b is None:
                value, dtype = (b, y.dtype) if a is None else (a, x.dtype)
                return cast(value, dtype, found.return_type)
            return _call(found, cast(a, x.dtype, found.dtypes[0]), cast(b, y.dtype, found.dtypes[-1]))

        text = f"{found!r}({x.name} {'|' if kind == 'union' else '&'} {y.name})"
        how = kind if defaults is None else "defaults"
        return Expression("number", found, x, y, found.return_type, (), Composed(compute, text, how))

    def _as_vector(self, *, name: str | None = None) -> Any:
        vector = _kinds["vector"](self.dtype, 1, name=name)
        vector[0] << self
        return vector

    def __reduce__(self) -> Any:
        return _restored, (self.value, self.dtype.name, self._name)


def _literal(value: Any) -> Scalar:
    """A number in an expression."""
    scalar = Scalar(of_value(value))
    scalar._value = value if type(value) in (bool, int, float) else exact(value, scalar.dtype).item()
    return scalar


def _kept(x: Any, keep: Any, text: str) -> Expression:
    return _mapped(x, lambda value: value if keep(value) else None, x.dtype, f"{x.name}.select({text})")


def _mapped(x: Any, work: Any, dtype: DataType, text: str, op: Any = None) -> Expression:
    """work(value) of a scalar, on the host."""
    kind = x.dtype.np_type.type
    compute = Composed(lambda value: None if value is None else work(kind(value)), text)
    return Expression("number", op, x, None, dtype, (), compute)


def cast(value: Any, source: DataType, target: DataType) -> Any:
    """A host value of type `source` as one of `target`, as kernels cast."""
    return value if source is target else to_python(cast_program(source, target))(source.np_type.type(value))


def _call(op: Any, *values: Any) -> Any:
    """A typed operator of single values; positional ones are given position 0."""
    given = (*values, 0, 0, 0)[: len(op.program.params)]
    types = [dtype.np_type.type for _, dtype in op.program.params]
    return to_python(op.program)(*[kind(value) for kind, value in zip(types, given, strict=True)])


def _compared(other: Any, check_dtype: bool) -> tuple[Scalar, bool]:
    if other is None:
        return Scalar(bool), False
    if isinstance(other, Operand):
        if other.ndim:
            raise TypeError(message("a Scalar or a number to compare with", type(other).__name__))
        return other._computed(), check_dtype
    return Scalar.from_value(other), False


def _restored(value: Any, dtype: str, name: str | None) -> Scalar:
    scalar = Scalar(dtype, name=name)
    scalar.value = value
    return scalar


class Element(Lazy):
    """`v[i]` or `A[i, j]`: one element, read by `.new()`, `.value`, or used as a number; assigned to by `<<`."""

    __slots__ = ("parent", "position")
    ndim = 0
    shape = ()

    def __init__(self, parent: Any, position: tuple[int, ...]):
        self.parent, self.position = parent, position

    @property
    def dtype(self) -> DataType:  # type: ignore[override]
        """The dtype of the vector or matrix."""
        return self.parent.dtype

    @property
    def _session(self) -> Any:
        return self.parent._session

    @property
    def text(self) -> str:
        """The subscript as text, `v[i]`."""
        return f"{self.parent.name}[{', '.join(map(str, self.position))}]"

    @property
    def value(self) -> Any:
        """The value, or None."""
        return self.parent.get(*self.position)

    def get(self, default: Any = None) -> Any:
        """The value, or `default`."""
        return self.parent.get(*self.position, default)

    def _read(self) -> Any:
        return self.value

    def new(self, dtype: Any = None, *, is_cscalar: bool = False, name: str | None = None, **hints: Any) -> Scalar:
        """The element as a Scalar."""
        scalar = Scalar(self.parent.dtype, name=name)
        scalar.value = self.value
        return scalar if dtype is None or lookup_dtype(dtype) is scalar.dtype else scalar.dup(dtype, name=name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Updater:
        """What an assignment to this element is told: `v[i](mask, accum) << value`."""
        updater = Updater(self.parent, arguments, keywords)
        updater.place, updater.within = Place(self.parent, self._key), updater.mask is not None
        return updater

    def __lshift__(self, value: Any) -> Statement:
        updater = Updater(self.parent)
        updater.place = Place(self.parent, self._key)
        return updater << value

    update = __lshift__

    @property
    def _key(self) -> Any:
        if not hasattr(self.parent, "__setitem__"):
            raise TypeError(
                f"{type(self.parent).__name__!r} object does not support item assignment. Hint: assign to the object"
            )
        return self.position if len(self.position) == 2 else self.position[0]


_kinds["scalar"] = Scalar
_kinds["element"] = Element
registries["number"] = _literal
