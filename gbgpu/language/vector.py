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


class Vector(Readable, Tensor):
    """A sparse vector: `size` positions, an entry of `dtype` at some of them. Rows live in blocks on the session's
    devices."""

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
        """Entries (indices[k], values[k]); a scalar `values` makes an iso vector, whose
        duplicates are one. `size` defaults to the largest index + 1. `local`: as `Matrix.from_coo` takes it.

        Raises IndexOutOfBound for a negative or too large index, ValueError for duplicates without `dup_op`, and for
        unequal lengths."""
        ids = {"index": indices}
        (i,), vals, iso, shape = checked_entries(ids, (size,), values, dtype, dup_op, local, array_of)
        vector = cls(vals.dtype, *shape, name=name)
        vector._session.build_vector(vector, i, vals, iso, ignored(dup_op, iso), local=local)
        return vector

    @classmethod
    def from_pairs(
        cls, pairs: Any, dtype: Any = None, *, size: int | None = None, dup_op: Any = None, name: str | None = None
    ) -> "Vector":
        """Entries from (index, value) pairs."""
        ids, vals = _unzipped(pairs, 2)
        return cls.from_coo(ids, vals, _no_values(dtype, vals), size=size, dup_op=dup_op, name=name)

    @classmethod
    def from_dict(cls, d: dict, dtype: Any = None, *, size: int | None = None, name: str | None = None) -> "Vector":
        """Entries from {index: value}."""
        if not isinstance(d, Mapping):
            raise TypeError(message("a dict {index: value}", type(d).__name__))
        vals = list(d.values())
        return cls.from_coo(list(d), vals, _no_values(dtype, vals), size=size, name=name)

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None, name: str | None = None
    ) -> "Vector":
        """Every element of a one-dimensional array, except those equal to `missing_value`. One that lies on a GPU of
        the session is copied there, not through the host."""
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
        """A full iso vector."""
        vals, _ = checked_values(value, 1, dtype)
        vector = cls(vals.dtype, size, name=name)
        vector << vals[0]
        return vector

    def build(
        self, indices: Any, values: Any = 1.0, *, dup_op: Any = None, clear: bool = False, size: int | None = None
    ) -> None:
        """Fill an empty vector in place (`clear`: whatever it holds; `size`: resized first). Raises OutputNotEmpty,
        else as from_coo."""
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
        return self.shape[0]

    def to_coo(
        self, dtype: Any = None, *, indices: bool = True, values: bool = True, sort: bool = True, local: bool = False
    ) -> tuple[Any, Any]:
        """(indices int64, values) as NumPy arrays, ascending; None in place of what was not asked for. `local`: of the
        entries that lie in this process, which asks no other rank (docs/clusters.md)."""
        ids, vals = self._session.vector_to_host(self, local)
        if dtype is not None:
            vals = cast_array(vals, lookup_dtype(dtype))
        return ids if indices else None, vals if values else None

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> np.ndarray:
        """A NumPy array with `fill_value` where no entry is present (required unless all are)."""
        ids, vals = self.to_coo(dtype)
        return filled(self.shape, (ids,), vals, fill_value, dtype)

    def to_dict(self) -> dict[int, Any]:
        """{index: value}."""
        ids, vals = self.to_coo()
        return dict(zip(ids.tolist(), vals.tolist(), strict=True))

    @property
    def __cuda_array_interface__(self) -> Any:
        """Of a full vector that lies whole on one GPU: its values, without a copy, for CuPy, PyTorch, Numba and others.
        Not there otherwise."""
        array = self._session.device_array(self)
        if array is None:
            raise AttributeError("only a full vector on one GPU has an array there. Hint: .to_dense(fill_value)")
        return array.__cuda_array_interface__

    def get(self, index: int, default: Any = None) -> Any:
        """The value at `index`, or `default`."""
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
        """`op(self @ A)`: a vector of A.ncols."""
        return product(op, self, compose.of_ndim(other, 2))

    def inner(self, other: Any, op: Any = "plus_times") -> Expression:
        """`op(self @ v)`: a Scalar, empty if no index is in both."""
        return product(op, self, compose.of_ndim(other, 1))

    def outer(self, other: Any, op: Any = "times") -> Expression:
        """A matrix with op(self[i], other[j]) at (i, j) where both have an entry."""
        return compose.outer(self, other, op)

    def reduce(self, op: Any = "plus", *, allow_empty: bool = True) -> Expression:
        """All values combined by a monoid or an aggregator: a Scalar expression, without entries empty (or else the
        identity)."""
        return reduction(self, op, allow_empty)

    def diag(self, k: int = 0, *, name: str | None = None) -> Any:
        """A square Matrix of size + |k| with this vector on its k'th diagonal."""
        k = compose.integral(k, "k")
        n = self.size + abs(k)
        return Expression("diag", None, self, None, self.dtype, (n, n), k).new(name=name)

    def reposition(self, offset: int, *, size: int | None = None) -> Expression:
        """Entries moved by `offset`, into a vector of `size`; those that fall outside are dropped."""
        offset = compose.integral(offset, "offset")
        return compose.reposition_vector(self, offset, self.size if size is None else checked_size(size))

    def resize(self, size: int) -> None:
        """Change the size in place; entries beyond it are dropped."""
        compose.resize(self, (checked_size(size),))

    ss = Tools("VectorTools")

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
