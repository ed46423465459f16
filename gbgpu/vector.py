"""Vectors."""

import operator
from typing import Any

import numpy as np

from .errors import DimensionMismatch, IndexOutOfBound, InvalidValue, message
from .expr import Expression, Handle, Infix, Updater, _kinds, _product_operand, reduction
from .semiring._types import lookup_dtype


class Vector(Handle):
    """A sparse vector: `size` positions, an entry of `dtype` at some of them. Rows live in blocks on the session's
    devices."""

    __slots__ = ()
    ndim = 1

    def __init__(self, dtype: Any = float, size: int = 0, *, name: str | None = None):
        super().__init__(dtype, (checked_size(size),), name)
        self._session.attach(self)

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
    ) -> "Vector":
        """Entries (indices[k], values[k]); a scalar `values` makes an iso vector. `size` defaults to the largest index
        + 1.

        Raises IndexOutOfBound for a negative or too large index, ValueError for duplicates without `dup_op`."""
        ids = checked_ids(indices, size, "index")
        size = (int(ids.max()) + 1 if len(ids) else 0) if size is None else size
        vals, iso = checked_values(values, len(ids), dtype)
        vector = cls(vals.dtype, size, name=name)
        vector._session.build_vector(vector, ids, vals, iso, dup_op)
        return vector

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None, name: str | None = None
    ) -> "Vector":
        """Every element of a one-dimensional array, except those equal to `missing_value`."""
        array = np.asarray(values)
        if array.ndim != 1:
            raise DimensionMismatch(message("a one-dimensional array", f"{array.ndim} dimensions"))
        if missing_value is None:
            return cls.from_coo(np.arange(len(array)), array, dtype, size=len(array), name=name)
        missing = np.isnan(array) if missing_value != missing_value else array == missing_value
        ids = np.flatnonzero(~missing)
        return cls.from_coo(ids, array[ids], dtype, size=len(array), name=name)

    @classmethod
    def from_scalar(cls, value: Any, size: int, dtype: Any = None, *, name: str | None = None) -> "Vector":
        """A full iso vector."""
        vals, _ = checked_values(value, 1, dtype)
        vector = cls(vals.dtype, size, name=name)
        vector << vals[0]
        return vector

    @property
    def size(self) -> int:
        return self.shape[0]

    def to_coo(
        self, dtype: Any = None, *, indices: bool = True, values: bool = True, sort: bool = True
    ) -> tuple[Any, Any]:
        """(indices int64, values) as NumPy arrays, ascending; None in place of what was not asked for."""
        ids, vals = self._session.vector_to_host(self)
        if dtype is not None:
            vals = vals.astype(lookup_dtype(dtype).np_type)
        return ids if indices else None, vals if values else None

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> np.ndarray:
        """A NumPy array with `fill_value` where no entry is present (required unless all are)."""
        ids, vals = self.to_coo(dtype)
        if len(ids) == self.size:
            return vals
        if fill_value is None:
            raise TypeError(
                message(
                    "a fill_value, since some entries are missing", f"{len(ids)} entries of {self.size}", "to_dense(0)"
                )
            )
        wide = np.result_type(vals.dtype, np.asarray(fill_value).dtype) if dtype is None else vals.dtype
        array = np.full(self.size, fill_value, wide)
        array[ids] = vals
        return array

    def to_dict(self) -> dict[int, Any]:
        """{index: value}."""
        ids, vals = self.to_coo()
        return dict(zip(ids.tolist(), vals.tolist(), strict=True))

    def clear(self) -> None:
        """Delete all entries."""
        self._session.attach(self)

    def build(self, indices: Any, values: Any = 1.0, *, dup_op: Any = None, clear: bool = False) -> None:
        """Fill an empty vector in place (`clear`: whatever it holds). Raises OutputNotEmpty, else as from_coo."""
        ids = checked_ids(indices, self.size, "index")
        vals, iso = checked_values(values, len(ids), self.dtype)
        if not clear:
            self._session.check_empty(self)
        self._session.build_vector(self, ids, vals, iso, dup_op)

    def get(self, index: int, default: Any = None) -> Any:
        """The value at `index`, or `default`."""
        value = self._session.element(self, (position(index, self.size),))
        return default if value is None else value

    def __contains__(self, index: int) -> bool:
        return self.get(index) is not None

    def __getitem__(self, key: Any) -> Any:
        """`v[i]` is one element, `v[a:b]`, `v[list]` an expression that extracts; both are computed by `.new()` or
        `<<`."""
        if is_integer(key):
            return _kinds["element"](self, (position(key, self.size),))
        ids = self._index(key)
        if ids is None:
            return Expression("copy", None, self, None, self.dtype, self.shape)
        return Expression("extract", None, self, None, self.dtype, (len(ids),), ids)

    def __setitem__(self, key: Any, value: Any) -> None:
        Updater(self)[key] << value

    def __delitem__(self, key: Any) -> None:
        index = np.array([position(key, self.size)])
        Updater(self)[index] << Vector(self.dtype, 1)

    def _index(self, key: Any) -> np.ndarray | None:
        """User ids that a subscript names, in its order; None for `v[:]`, all of them."""
        size = self.size
        if isinstance(key, slice):
            start, stop, step = key.indices(size)
            return None if (start, stop, step) == (0, size, 1) else np.arange(start, stop, step)
        if is_integer(key):
            return np.array([position(key, size)])
        array = np.asarray(key)
        if array.dtype == bool or array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(
                message("an int, a slice, or a list of ints", f"{type(key).__name__}", "masks go into w(mask)")
            )
        if array.size and (int(array.max()) >= size or int(array.min()) < -size):
            raise IndexOutOfBound(message(f"indices from {-size} to {size - 1}", f"{array.min()} to {array.max()}"))
        array = array.astype(np.int64)
        return np.where(array < 0, array + size, array)

    def __matmul__(self, other: Any) -> Infix:
        return Infix("@", self, _product_operand(self, other))

    def reduce(self, op: Any = "plus", *, allow_empty: bool = True) -> Expression:
        """All values combined by a monoid: a Scalar expression, without entries empty (or else the identity)."""
        return reduction(self, op, allow_empty)

    def isequal(self, other: "Vector", *, check_dtype: bool = False) -> bool:
        """Same size, same entries, equal values (and the same dtype if asked)."""
        return self._compare(other, check_dtype, lambda a, b: a == b)

    def isclose(
        self, other: "Vector", *, rel_tol: float = 1e-7, abs_tol: float = 0.0, check_dtype: bool = False
    ) -> bool:
        """Same size and entries, values within the tolerances."""
        return self._compare(other, check_dtype, lambda a, b: np.isclose(a, b, rtol=rel_tol, atol=abs_tol))

    def _compare(self, other: "Vector", check_dtype: bool, same: Any) -> bool:
        if not isinstance(other, Vector):
            raise TypeError(message("a Vector to compare with", type(other).__name__))
        if self.shape != other.shape or (check_dtype and self.dtype is not other.dtype) or self.nvals != other.nvals:
            return False
        (ids, vals), (others, theirs) = self.to_coo(), other.to_coo()
        return bool(np.array_equal(ids, others) and np.all(same(vals, theirs)))

    def __repr__(self) -> str:
        head = f'"{self.name}" gb.Vector size={self.size} dtype={self.dtype} nvals={self.nvals}'
        if self.nvals > 12:
            return head
        ids, vals = self.to_coo()
        return head + "".join(f"\n  {i:>6}  {v}" for i, v in zip(ids, vals, strict=True))


def is_integer(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_))


def position(key: Any, size: int) -> int:
    """A subscript as 0 <= i < size; negative ones count from the end. Raises IndexError as Python does."""
    if not is_integer(key):
        raise TypeError(message("an int index", type(key).__name__))
    index = operator.index(key)
    if not -size <= index < size:
        raise IndexError(f"Index out of range: index={index}, size={size}")
    return index + size if index < 0 else index


def checked_size(size: Any) -> int:
    """A dimension as an int. Raises TypeError or InvalidValue."""
    if not is_integer(size):
        raise TypeError(message("an int size", type(size).__name__))
    if not 0 <= size < 2**60:
        raise InvalidValue(message("a size from 0 to 2**60 - 1", size))
    return int(size)


def checked_ids(indices: Any, size: int | None, what: str) -> np.ndarray:
    """Indices as int64, checked against `size` if it is given: no negative ones here."""
    ids, size = np.asarray(indices), None if size is None else checked_size(size)
    if ids.ndim != 1:
        raise InvalidValue(message(f"a one-dimensional array of {what} values", f"{ids.ndim} dimensions"))
    if ids.size == 0:
        return ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise TypeError(message(f"{what} values of an integer type", f"{ids.dtype}"))
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= 2**60 or (size is not None and high >= size):
        bad = low if low < 0 else high
        raise IndexOutOfBound(
            message(
                f"every {what} from 0 to {(size if size is not None else 2**60) - 1}", bad, "ids are indices, from 0"
            )
        )
    return ids.astype(np.int64, copy=False)


def checked_values(values: Any, n: int, dtype: Any) -> tuple[np.ndarray, bool]:
    """(values, iso) for n entries: an array as long as the indices, or a scalar for all."""
    array = np.asarray(values)
    if array.dtype == object:
        raise TypeError(message("numbers or booleans as values", type(values).__name__))
    target = lookup_dtype(array.dtype if dtype is None else dtype).np_type
    if array.ndim == 0:
        return array.reshape(1).astype(target), True
    if array.ndim != 1 or len(array) != n:
        raise InvalidValue(message(f"{n} values, one for each index", f"shape {array.shape}"))
    return array.astype(target, copy=False), False


_kinds["vector"] = Vector
