"""Vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import settings
from ..errors import DimensionMismatch, message
from ..semiring._types import cast_array, lookup_dtype
from . import compose
from .arrays import (
    array_of,
    checked_entries,
    checked_ids,
    checked_size,
    checked_values,
    filled,
    ignored,
    numbers,
    present,
)
from .expr import Expression, _kinds, reduction
from .handle import Readable, Tensor, Tools
from .index import on_gpu
from .infix import product
from .recording import known, later
from .update import position
from .vector_tools import VectorTools


class Vector(Readable, Tensor):
    """A sparse vector: entries of one dtype at some of `size` places, in blocks on the session's devices.

    Parameters
    ----------
    dtype : dtype
        The type of the values.
    size : int
        The number of places.
    name : str, optional
        The name in plans and traces.

    Raises
    ------
    InvalidValue
        If `size` is not from 0 to 2**60 - 1.
    """

    __slots__ = ()
    ndim = 1

    def __init__(self, dtype: Any = float, size: int = 0, *, name: str | None = None):
        super().__init__(dtype, (checked_size(size),), name)
        self._session.attach(self)

    # -- constructors

    @classmethod
    def from_coo(
        cls,
        indices: Any,
        values: Any = 1.0,
        dtype: Any = None,
        *,
        size: int | None = None,
        dup_op: Any = None,
        name: str | None = None,
        local: bool = False,
    ) -> "Vector":
        """A vector of the entries (indices[k], values[k]), given in any order.

        Parameters
        ----------
        indices : array of int
            Places.
        values : array or scalar
            As many values as indices, or one for all (an iso vector, for which repeated indices are allowed).
        dtype : dtype, optional
            The type of the values. By default that of `values`.
        size : int, optional
            By default the largest index + 1.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        name : str, optional
            The vector's name.
        local : bool
            Whether, of several ranks, each gives entries of its own; see `Matrix.from_coo`.

        Returns
        -------
        Vector
            A new one.

        Raises
        ------
        IndexOutOfBound
            If an index is negative or too large.
        ValueError
            If lengths differ, or an index comes twice without `dup_op`.
        TypeError
            If indices are no integers, or values no numbers.
        InvalidValue
            If, with `local`, ranks give parts of different types.
        """
        ids = {"index": indices}
        (i,), vals, iso, shape = checked_entries(ids, (size,), values, dtype, dup_op, local, array_of)
        vector = cls(vals.dtype, *shape, name=name)
        vector._session.build_vector(vector, i, vals, iso, ignored(dup_op, iso), local=local)
        return vector

    @classmethod
    def from_pairs(
        cls, pairs: Any, dtype: Any = None, *, size: int | None = None, dup_op: Any = None, name: str | None = None
    ) -> "Vector":
        """A vector of (index, value) pairs.

        Parameters
        ----------
        pairs : iterable of tuples
            (index, value) each.
        dtype : dtype, optional
            The type of the values; FP64 if there are none.
        size : int, optional
            By default the largest index + 1.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        name : str, optional
            The vector's name.

        Returns
        -------
        Vector
            A new one.

        Raises
        ------
        ValueError
            If a tuple has another length; else as `from_coo`.
        """
        ids, vals = _unzipped(pairs, 2)
        return cls.from_coo(ids, vals, _no_values(dtype, vals), size=size, dup_op=dup_op, name=name)

    @classmethod
    def from_dict(cls, d: dict, dtype: Any = None, *, size: int | None = None, name: str | None = None) -> "Vector":
        """A vector of the entries in a dictionary `{index: value}`.

        Parameters
        ----------
        d : dict
            `{index: value}`.
        dtype : dtype, optional
            The type of the values; FP64 if there are none.
        size : int, optional
            By default the largest index + 1.
        name : str, optional
            The vector's name.

        Returns
        -------
        Vector
            A new one.

        Raises
        ------
        TypeError
            If `d` is no dictionary.
        """
        if not isinstance(d, Mapping):
            raise TypeError(message("a dict {index: value}", type(d).__name__))
        vals = list(d.values())
        return cls.from_coo(list(d), vals, _no_values(dtype, vals), size=size, name=name)

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None, name: str | None = None
    ) -> "Vector":
        """A vector of the elements of a one-dimensional array.

        Parameters
        ----------
        values : array
            One-dimensional. An array on a GPU of the session is copied there, not through the host, unless
            `missing_value` is given.
        missing_value : scalar, optional
            Elements equal to it (NaN: that are NaN) become no entries.
        dtype : dtype, optional
            The type of the values. By default that of `values`.
        name : str, optional
            The vector's name.

        Returns
        -------
        Vector
            A new one, of the array's size.

        Raises
        ------
        TypeError
            If `values` is a scalar.
        DimensionMismatch
            If the array has several dimensions.
        """
        adopted = settings.session().home.adopt(values) if on_gpu(values) and missing_value is None else None
        if adopted is not None and adopted.ndim == 1:
            vector = cls(adopted.dtype if dtype is None else dtype, len(adopted), name=name)
            vector._session.adopt_dense(vector, adopted)
            return vector
        array = numbers(values, dtype)
        if array.ndim == 0:
            raise TypeError(message("a one-dimensional array", "a scalar", "Vector.from_scalar fills one"))
        if array.ndim != 1:
            raise DimensionMismatch(message("a one-dimensional array", f"{array.ndim} dimensions"))
        if missing_value is None:
            vector = cls(array.dtype, len(array), name=name)
            vector._session.build_vector(vector, np.arange(len(array)), array, False, None)
            return vector
        ids = np.flatnonzero(present(array if dtype is None else array_of(values), missing_value))
        return cls.from_coo(ids, array[ids], size=len(array), name=name)

    @classmethod
    def from_scalar(cls, value: Any, size: int, dtype: Any = None, *, name: str | None = None) -> "Vector":
        """A vector with one value at every place, which is stored once.

        Parameters
        ----------
        value : scalar
            The value.
        size : int
            The number of places.
        dtype : dtype, optional
            By default that of `value`.
        name : str, optional
            The vector's name.

        Returns
        -------
        Vector
            A new one.
        """
        vals, _ = checked_values(value, 1, dtype)
        vector = cls(vals.dtype, size, name=name)
        vector << vals[0]
        return vector

    def build(
        self, indices: Any, values: Any = 1.0, *, dup_op: Any = None, clear: bool = False, size: int | None = None
    ) -> None:
        """Fill an empty vector in place.

        Parameters
        ----------
        indices : array of int
            Places.
        values : array or scalar
            As many values as indices, or one for all.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        clear : bool
            Whether to delete what the vector holds first.
        size : int, optional
            Another size.

        Raises
        ------
        OutputNotEmpty
            If the vector has entries and `clear` is not given.
        IndexOutOfBound, ValueError, TypeError
            As `from_coo`.
        """
        new_size = self.size if size is None else checked_size(size)
        ids = checked_ids(indices, new_size, "index")
        vals, iso = checked_values(values, len(ids), self.dtype)
        if not clear:
            self._session.check_empty(self)
        built = Vector(self.dtype, new_size, name=self._name)
        self._session.build_vector(built, ids, vals, iso, dup_op)
        if self._session.recording:  # it is built when the loop runs
            self << built
        else:
            self._session.take(self, built)

    # -- reading

    @property
    def size(self) -> int:
        """The number of places."""
        return self.shape[0]

    def to_coo(
        self, dtype: Any = None, *, indices: bool = True, values: bool = True, sort: bool = True, local: bool = False
    ) -> tuple[Any, Any]:
        """Indices and values of all entries on the host, ascending.

        Parameters
        ----------
        dtype : dtype, optional
            The type of the values. By default that of the vector.
        indices, values : bool
            Whether to return this array; if not, None stands in its place.
        sort : bool
            Ignored: entries are always in order.
        local : bool
            Whether to return only the entries that lie in this process, which asks no other rank (docs/clusters.md).

        Returns
        -------
        indices : numpy.ndarray
            INT64, nvals.
        values : numpy.ndarray
            `dtype`, nvals.
        """
        ids, vals = self._session.vector_to_host(self, local)
        if dtype is not None:
            vals = cast_array(vals, lookup_dtype(dtype))
        return ids if indices else None, vals if values else None

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> np.ndarray:
        """The content as a dense NumPy array.

        Parameters
        ----------
        fill_value : scalar, optional
            The value where no entry is present; required unless all entries are.
        dtype : dtype, optional
            The type of the values.

        Returns
        -------
        numpy.ndarray
            (size,).

        Raises
        ------
        TypeError
            If an entry is missing and no `fill_value` is given.
        OutOfMemory
            If the host has no room for the array.
        """
        ids, vals = self.to_coo(dtype)
        return filled(self.shape, (ids,), vals, fill_value, dtype)

    def to_dict(self) -> dict[int, Any]:
        """The content as a dictionary `{index: value}`."""
        ids, vals = self.to_coo()
        return dict(zip(ids.tolist(), vals.tolist(), strict=True))

    @property
    def __cuda_array_interface__(self) -> Any:
        """The values of a full vector that lies whole on one GPU, without a copy, for CuPy, PyTorch and Numba.

        Raises AttributeError for any other vector.
        """
        array = self._session.device_array(self)
        if array is None:
            raise AttributeError("only a full vector on one GPU has an array there. Hint: .to_dense(fill_value)")
        return array.__cuda_array_interface__

    def get(self, index: int, default: Any = None) -> Any:
        """The value at `index`, or `default` if there is no entry.

        Parameters
        ----------
        index : int
            A place; negative ones count from the end.
        default : object
            What to return if there is no entry.

        Returns
        -------
        scalar
            The value as a Python number. While a loop is recorded, a recorded scalar.

        Raises
        ------
        IndexError
            If the index is out of range.
        """
        found = later(self, self.dtype, f"{self.name}[{index}]", lambda: self.get(index, default))
        if found is not None:
            return found
        value = self._session.element(self, (position(index, self.size),))
        return default if value is None else value

    def __contains__(self, index: Any) -> bool:
        return known(self.get(index)) is not None

    def __reduce__(self) -> Any:
        ids, vals = self.to_coo()
        return _restored, (ids, vals, self.dtype.name, self.size, self._name)

    # -- products, reductions, compositions

    def vxm(self, other: Any, op: Any = "plus_times") -> Expression:
        """The product with a matrix, `op(self @ other)`.

        Parameters
        ----------
        other : Matrix
            The right operand, with `size` rows.
        op : semiring or str
            The semiring of the product.

        Returns
        -------
        Expression
            Of a vector, size other.ncols.

        Raises
        ------
        DimensionMismatch
            If the inner sizes differ.
        """
        return product(op, self, compose.of_ndim(other, 2))

    def inner(self, other: Any, op: Any = "plus_times") -> Expression:
        """The inner product `op(self @ other)`.

        Parameters
        ----------
        other : Vector
            Of the same size.
        op : semiring or str
            The semiring of the product.

        Returns
        -------
        Expression
            Of a Scalar; empty if no index is in both.

        Raises
        ------
        DimensionMismatch
            If the sizes differ.
        """
        return product(op, self, compose.of_ndim(other, 1))

    def outer(self, other: Any, op: Any = "times") -> Expression:
        """The outer product: op(self[i], other[j]) where both have an entry.

        Parameters
        ----------
        other : Vector
            Of any size.
        op : operator or str
            The binary operator that combines two values.

        Returns
        -------
        Expression
            Of a matrix, size x other.size.
        """
        return compose.outer(self, other, op)

    def reduce(self, op: Any = "plus", *, allow_empty: bool = True) -> Expression:
        """All values, combined.

        Parameters
        ----------
        op : monoid, aggregator or str
            What combines the values.
        allow_empty : bool
            Whether the result is empty if there is no entry. If not, it is the identity of the monoid.

        Returns
        -------
        Expression
            Of a Scalar.

        Raises
        ------
        ValueError
            If `allow_empty` is False and `op` is no monoid.
        """
        return reduction(self, op, allow_empty)

    def diag(self, k: int = 0, *, name: str | None = None) -> Any:
        """A new square Matrix with this vector on its k'th diagonal.

        Parameters
        ----------
        k : int
            Which diagonal: 0 the main one, above it positive.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            Of size + abs(k) rows and columns.
        """
        k = compose.integral(k, "k")
        n = self.size + abs(k)
        return Expression("diag", None, self, None, self.dtype, (n, n), k).new(name=name)

    def reposition(self, offset: int, *, size: int | None = None) -> Expression:
        """The entries, moved by an offset.

        Parameters
        ----------
        offset : int
            How far entries move; may be negative.
        size : int, optional
            The size of the result. By default that of this vector.

        Returns
        -------
        Expression
            Of a vector; entries that fall outside are dropped.
        """
        offset = compose.integral(offset, "offset")
        return compose.reposition_vector(self, offset, self.size if size is None else checked_size(size))

    def resize(self, size: int) -> None:
        """Change the size in place; entries beyond it are dropped.

        Parameters
        ----------
        size : int
            The new size.
        """
        compose.resize(self, (checked_size(size),))

    ss = Tools(VectorTools)

    def _as_matrix(self, *, name: str | None = None) -> Any:
        return Expression("column", None, self, None, self.dtype, (self.size, 1)).new(name=name)


def _unzipped(rows: Any, width: int) -> list[list]:
    rows = [tuple(row) for row in rows]
    if any(len(row) != width for row in rows):
        raise ValueError(message(f"tuples of {width}", "others"))
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _no_values(dtype: Any, vals: list) -> Any:
    """FP64 is the type of no values, unless another is given."""
    return float if dtype is None and not vals else dtype


def _restored(ids: Any, vals: Any, dtype: str, size: int, name: str | None) -> Vector:
    return Vector.from_coo(ids, vals, dtype, size=size, name=name)


_kinds["vector"] = Vector
