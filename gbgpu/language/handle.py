"""What Vector, Matrix and Scalar share: a name, a session, a type, a shape; masks, calls, `<<`, in-place operators."""

from itertools import count
from typing import Any

import numpy as np

from .. import settings
from ..errors import DimensionMismatch, checked_text, fixed, message
from ..semiring._operators import BinaryOp
from ..semiring._types import BOOL, INT64, lookup_dtype, of_value
from . import formatting
from .expr import Expression, Operand, Statement, _infix, is_tensor, logical, new_like
from .infix import Infix
from .masks import Mask, one_session
from .recording import later
from .update import Place, Updater, reading

_numbers = count()


class Handle(Operand):
    """An object of the session: what it holds lies on the devices."""

    __slots__ = ("_session", "_store", "_name", "_made_as", "_dtype", "_shape", "__weakref__")
    ndim = 0
    dtype = fixed("dtype", "x.dup(dtype) makes an object of another type")
    shape = fixed("shape", "x.resize(...) changes it")

    def __init__(self, dtype: Any, shape: tuple, name: str | None):
        self._session = settings.session()
        self._dtype = lookup_dtype(dtype)
        self._shape = shape
        self._name, self._made_as = name, next(_numbers)
        self._store: Any = None

    @property
    def name(self) -> str:
        """The given name, or one that says how many objects were made before it."""
        return f"{type(self).__name__[0].lower()}_{self._made_as}" if self._name is None else self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    # -- writing

    def __call__(self, *arguments: Any, **keywords: Any) -> Updater:
        """An update of this object with a mask, an accumulator and hints, waiting for `<<`.

        Parameters
        ----------
        *arguments : Mask, operator or `replace`
            A mask (or a BOOL object), a binary operator that accumulates, and `gb.replace`, in any order.
        **keywords : object
            `mask`, `accum` and `replace` by name; the hints `direction` ("push", "pull"), `form` ("list", "bitmap") and
            `method` ("dot", "rows", "hash", "dense", "sort").

        Returns
        -------
        Updater
            `w(mask, accum, replace) << expression` runs it.

        Raises
        ------
        TypeError
            If an argument comes twice, a keyword is unknown, or `replace` is given without a mask.
        ValueError
            If a hint has another value.
        """
        return Updater(self, arguments, keywords)

    def __lshift__(self, value: Any) -> Statement:
        return self._session.run(Statement(self, None, None, False, self._source(value), None, {}))

    def update(self, expr: Any) -> Statement:
        """Assign to the object, as `self << expr` does.

        Parameters
        ----------
        expr : Expression, Vector, Matrix, Scalar or number
            The right-hand side, of this shape.

        Returns
        -------
        Statement
            What ran; `gb.explain` shows its plan.

        Raises
        ------
        DimensionMismatch
            If the shape differs.
        InvalidValue
            If an operand belongs to another session.
        """
        return self << expr

    def _source(self, value: Any, wanted: tuple | None = None) -> Expression:
        """The right-hand side as an expression of the shape `wanted` (default: this output's)."""
        wanted = self.shape if wanted is None else wanted
        if not isinstance(value, Operand):
            return self._scalar_source(value, wanted)
        if value.lazy:
            value = value._node()
        if isinstance(value, Expression) and (value.shape or not self.ndim):
            expr = value
        elif not value.ndim:
            return self._scalar_source(value, wanted)
        else:
            expr = Expression("copy", None, value, None, value.dtype, value.shape)
        if expr.shape != wanted:
            raise DimensionMismatch(message(f"a right-hand side of shape {wanted}", f"{expr.shape}"))
        one_session(expr, self._session)
        return expr

    def _scalar_source(self, value: Any, wanted: tuple) -> Expression:
        """One value everywhere. A scalar operand is read when the statement runs."""
        if isinstance(value, Operand):
            return Expression("fill", None, self, None, value.dtype, wanted, value)
        if not isinstance(value, (bool, int, float, np.generic)):
            raise TypeError(
                message(
                    "an expression, a handle or a scalar to assign",
                    type(value).__name__,
                    "w << semiring(A @ v), w << v, w << 1",
                )
            )
        return Expression("fill", None, self, None, of_value(value), wanted, value)

    # -- in place

    def __iadd__(self, other: Any) -> Any:
        return self._inplace("union", "plus", other, accumulates=True)

    def __isub__(self, other: Any) -> Any:
        return self._inplace("zeros", "minus", other)

    def __imul__(self, other: Any) -> Any:
        return self._inplace("intersect", "times", other)

    def __itruediv__(self, other: Any) -> Any:
        return self._inplace("intersect", "truediv", other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._inplace("intersect", "floordiv", other)

    def __imod__(self, other: Any) -> Any:
        return self._inplace("intersect", "mod", other)

    def __ipow__(self, other: Any) -> Any:
        return self._inplace("intersect", "pow", other)

    def __iand__(self, other: Any) -> Any:
        return self._logical("&=", "intersect", "land", other)

    def __ior__(self, other: Any) -> Any:
        return self._logical("|=", "union", "lor", other)

    def __ixor__(self, other: Any) -> Any:
        return self._logical("^=", "union", "lxor", other)

    def __imatmul__(self, other: Any) -> Any:
        self << Infix("@", self, other)
        return self

    def _inplace(self, kind: str, name: str, other: Any, accumulates: bool = False) -> Any:
        if accumulates and isinstance(other, Operand) and other.ndim == self.ndim:
            Updater(self, (BinaryOp.registry[name],)) << other
        else:
            self << _infix(kind, name, self, other)
        return self

    def _logical(self, sign: str, kind: str, name: str, other: Any) -> Any:
        alike = isinstance(other, Operand) and other.ndim == self.ndim and other.dtype is BOOL
        if kind == "union" and alike and self.dtype is not BOOL:
            return self._inplace(kind, name, other, accumulates=True)
        self << logical(sign, kind, name, self, other)
        return self

    # -- reading

    @property
    def nvals(self) -> int:
        """The number of entries.

        Reads from the devices if the host does not know it. While a loop is recorded, a recorded scalar.
        """
        if self._session.recorders:
            found = later(self, INT64, f"{self.name}.nvals", lambda: self._session.nvals(self), "nvals")
            if found is not None:
                return found  # type: ignore[return-value]
        return self._session.nvals(self)

    def memory(self) -> dict[str, int]:
        """Bytes that each device holds for the content.

        These are the entries, the transpose and other layouts that products left, and a replica. What several objects
        share counts for each.

        Returns
        -------
        dict of str to int
            Bytes by the names of the devices of this process.
        """
        return self._session.held(self)

    @property
    def is_empty(self) -> bool:
        """Whether there is no entry."""
        found: bool = self._session.seen(self, "_empty")
        return found

    @property
    def _empty(self) -> bool:
        return self.nvals == 0

    def wait(self, how: str = "materialize") -> Any:
        """Wait until the devices have computed the content.

        Parameters
        ----------
        how : str
            "materialize" or "complete"; both do the same.

        Returns
        -------
        Vector, Matrix or Scalar
            The object itself.

        Raises
        ------
        ValueError
            If `how` is another word.
        """
        if checked_text(how, "materialize or complete").lower() not in ("materialize", "complete"):
            raise ValueError(message("how: materialize or complete", repr(how)))
        for device in self._session.devices:
            device.synchronize()
        return self

    def __iter__(self) -> Any:
        raise TypeError(f"iteration not defined for {type(self).__name__}. Hint: .get()")

    def __repr__(self) -> str:
        return formatting.handle(self)

    def _repr_html_(self) -> str:
        return formatting.handle_html(self)


class Tensor(Handle):
    """What Vector and Matrix share: masks, subscripts, copies, comparison."""

    __slots__ = ()

    @property
    def S(self) -> Mask:
        """Structural mask: the entries that are present."""
        return Mask(self, True)

    @property
    def V(self) -> Mask:
        """Value mask: the entries that are present and true."""
        return Mask(self, False)

    def __setitem__(self, key: Any, value: Any) -> None:
        updater = Updater(self)
        updater.place = Place(self, key)
        updater << value

    def __delitem__(self, key: Any) -> None:
        del Updater(self)[key]

    def __iter__(self) -> Any:
        """Indices of the entries, as Python ints (pairs of them for a matrix)."""
        ids = [part.tolist() for part in self.to_coo(values=False)[:-1]]  # type: ignore[attr-defined]
        return iter(ids[0]) if self.ndim == 1 else zip(*ids, strict=True)

    def clear(self) -> None:
        """Delete all entries."""
        self._session.clear(self)

    def dup(
        self, dtype: Any = None, *, clear: bool = False, mask: Any = None, name: str | None = None, **hints: Any
    ) -> Any:
        """A copy.

        Parameters
        ----------
        dtype : dtype, optional
            By default that of the object.
        clear : bool
            Whether the copy only has the shape, and no entries.
        mask : Mask, optional
            Which entries to copy.
        name : str, optional
            The copy's name.
        **hints : str
            Hints for the statement, as of `w(mask, **hints)`.

        Returns
        -------
        Vector or Matrix
            A new one.
        """
        copy = new_like(self.shape, self.dtype if dtype is None else lookup_dtype(dtype), name)
        if not clear:
            copy(mask=mask, **hints) << self
        return copy


class Readable(Operand):
    """Reading that Vector, Matrix and transposes share."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """One element (`v[i]`, `A[i, j]`), a row or column, or a part: an expression, which can be assigned to."""
        return reading(self, key)

    def isequal(self, other: Any, *, check_dtype: bool = False) -> bool:
        """Whether shape, entries and values are the same.

        Parameters
        ----------
        other : Vector or Matrix
            Of the same number of dimensions.
        check_dtype : bool
            Whether dtypes must be the same.

        Returns
        -------
        bool
            While a loop is recorded, a recorded BOOL.

        Raises
        ------
        TypeError
            If `other` is something else.
        """
        if (found := told(self, other, "isequal", check_dtype=check_dtype)) is not None:
            return found
        if getattr(other, "matrix", None) is self and self.dtype.kind != "f":
            return bool(self._session.symmetric(self))
        mine, other = self._materialized(), self._comparable(other)
        if not _alike(mine, other, check_dtype):
            return False
        if (known := mine._session.known_equal(mine, other)) is not None:
            return known
        same = mine.ewise_mult(other, BinaryOp.registry["eq"]).new()
        return same.nvals == mine.nvals and _all(same)

    def isclose(self, other: Any, *, rel_tol: float = 1e-7, abs_tol: float = 0.0, check_dtype: bool = False) -> bool:
        """Whether shape and entries are the same, and values are close.

        Values are close if a == b or |a - b| <= max(rel_tol * max(|a|, |b|), abs_tol).

        Parameters
        ----------
        other : Vector or Matrix
            Of the same number of dimensions.
        rel_tol, abs_tol : float
            The relative and the absolute tolerance.
        check_dtype : bool
            Whether dtypes must be the same.

        Returns
        -------
        bool
            While a loop is recorded, a recorded BOOL.

        Raises
        ------
        TypeError
            If `other` is something else.
        """
        given = {"rel_tol": rel_tol, "abs_tol": abs_tol, "check_dtype": check_dtype}
        if (found := told(self, other, "isclose", **given)) is not None:
            return found
        mine, other = self._materialized(), self._comparable(other)
        if not _alike(mine, other, check_dtype):
            return False
        one, two = mine.to_coo(), other.to_coo()
        same = all(np.array_equal(a, b) for a, b in zip(one[:-1], two[:-1], strict=True))
        return same and close(one[-1], two[-1], rel_tol, abs_tol)

    def _comparable(self, other: Any) -> Any:
        if not is_tensor(other) or other.ndim != self.ndim:
            raise TypeError(message(f"a {('Vector', 'Matrix')[self.ndim - 1]} to compare with", type(other).__name__))
        return other._materialized()


def told(x: Any, other: Any, how: str, **given: Any) -> Any:
    """A comparison with another object that a loop will make; None while none is recorded."""
    if not x._session.recording or getattr(other, "lazy", False) or x.ndim and not is_tensor(other):
        return None
    text, beside = f"{x.name}.{how}({getattr(other, 'name', other)})", (other,) * isinstance(other, Operand)
    return later(x, BOOL, text, lambda: getattr(x, how)(other, **given), beside=beside)


def _alike(one: Any, two: Any, check_dtype: bool) -> bool:
    return one.shape == two.shape and (not check_dtype or one.dtype is two.dtype) and one.nvals == two.nvals


def _all(truths: Any) -> bool:
    total = truths.reduce("land") if truths.ndim == 1 else truths.reduce_scalar("land")
    return total.new().value is not False


def close(x: Any, y: Any, rel_tol: float, abs_tol: float) -> bool:
    """Python's rule for closeness, for arrays or scalars."""
    x, y = np.asarray(x), np.asarray(y)
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        bound, gap = np.maximum(rel_tol * np.maximum(abs(a), abs(b)), abs_tol), abs(a - b)
        if x.dtype.kind in "iu" and y.dtype.kind in "iu":  # FP64 does not tell large integers apart
            one, two = x.astype(np.uint64), y.astype(np.uint64)
            gap = np.where(gap < 2.0**62, np.where(x < y, two - one, one - two), gap)
        return bool(np.all((x == y) | (gap <= bound)))


class Tools:
    """The attribute `ss`: of an object its helpers, of a class its import functions."""

    def __init__(self, tools: Any):
        self._tools = tools

    def __get__(self, parent: Any, cls: Any) -> Any:
        return self._tools(parent)
