"""Matrices."""

from typing import Any

import numpy as np

from .errors import DimensionMismatch, InvalidValue, message
from .expr import Expression, Handle, Infix, Transposed, _kinds, _product_operand, reduction, row_reducer
from .semiring._types import lookup_dtype
from .vector import checked_ids, checked_size, checked_values, is_integer, position


class Matrix(Handle):
    """A sparse matrix: CSR row blocks on the session's devices. Without a value array (iso) if all values are one. Arc
    i -> j is A[i, j]."""

    __slots__ = ()
    ndim = 2

    def __init__(self, dtype: Any = float, nrows: int = 0, ncols: int = 0, *, name: str | None = None):
        super().__init__(dtype, (checked_size(nrows), checked_size(ncols)), name)
        self._session.attach(self)

    @classmethod
    def from_coo(
        cls,
        rows: Any,
        columns: Any,
        values: Any = 1.0,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dup_op: Any = None,
        name: str | None = None,
    ) -> "Matrix":
        """Entries (rows[k], columns[k], values[k]) in any order; a scalar `values` makes an iso matrix. Shapes default
        to the largest id + 1.

        Raises IndexOutOfBound for a negative or too large id, ValueError for duplicates without `dup_op`, InvalidValue
        for unequal lengths."""
        i, j = checked_ids(rows, nrows, "row"), checked_ids(columns, ncols, "column")
        if len(i) != len(j):
            raise InvalidValue(message("as many rows as columns", f"{len(i)} and {len(j)}"))
        nrows = (int(i.max()) + 1 if len(i) else 0) if nrows is None else nrows
        ncols = (int(j.max()) + 1 if len(j) else 0) if ncols is None else ncols
        vals, iso = checked_values(values, len(i), dtype)
        matrix = cls(vals.dtype, nrows, ncols, name=name)
        matrix._session.build_matrix(matrix, i, j, vals, iso, dup_op)
        return matrix

    @classmethod
    def from_csr(
        cls,
        indptr: Any,
        col_indices: Any,
        values: Any = 1.0,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        name: str | None = None,
    ) -> "Matrix":
        """CSR arrays, columns in any order within a row. Raises InvalidValue for offsets that don't ascend from 0 to
        the number of columns given,
        IndexOutOfBound for a column out of range, ValueError for duplicates."""
        offsets, cols = np.asarray(indptr), checked_ids(col_indices, ncols, "column")
        if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype.kind not in "iu":
            raise InvalidValue(message("row offsets: nrows + 1 integers", f"{offsets.dtype} of shape {offsets.shape}"))
        offsets = offsets.astype(np.int64, copy=False)  # differences of unsigned ones would wrap
        if nrows is not None and nrows != len(offsets) - 1:
            raise DimensionMismatch(message(f"{nrows + 1} row offsets for {nrows} rows", len(offsets)))
        if offsets[0] != 0 or offsets[-1] != len(cols) or (len(offsets) > 1 and np.any(np.diff(offsets) < 0)):
            raise InvalidValue(
                message(f"row offsets that ascend from 0 to {len(cols)}", f"{offsets[0]} to {offsets[-1]}")
            )
        vals, iso = checked_values(values, len(cols), dtype)
        ncols = (int(cols.max()) + 1 if len(cols) else 0) if ncols is None else ncols
        matrix = cls(vals.dtype, len(offsets) - 1, ncols, name=name)
        matrix._session.build_csr(matrix, offsets, cols, vals, iso)
        return matrix

    @classmethod
    def from_scipy_sparse(cls, A: Any, *, dup_op: Any = None, name: str | None = None) -> "Matrix":
        """A SciPy sparse matrix or array. Stored zeros stay entries; duplicates need `dup_op`."""
        if not hasattr(A, "tocoo"):
            raise TypeError(message("a SciPy sparse matrix or array", type(A).__name__, "from_dense, from_coo"))
        if A.ndim != 2:
            raise DimensionMismatch(message("a two-dimensional sparse array", f"{A.ndim} dimensions"))
        if A.format == "csr" and dup_op is None:
            return cls.from_csr(A.indptr, A.indices, A.data, ncols=A.shape[1], name=name)
        A = A.tocoo()
        return cls.from_coo(A.row, A.col, A.data, nrows=A.shape[0], ncols=A.shape[1], dup_op=dup_op, name=name)

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None, name: str | None = None
    ) -> "Matrix":
        """Every element of a two-dimensional array, except those equal to `missing_value`."""
        array: Any = np.asarray(values)
        if array.ndim != 2:
            raise DimensionMismatch(message("a two-dimensional array", f"{array.ndim} dimensions"))
        if missing_value is None:
            present = np.ones(array.shape, bool)
        else:
            present = ~np.isnan(array) if missing_value != missing_value else array != missing_value
        i, j = np.nonzero(present)
        return cls.from_coo(i, j, array[i, j], dtype, nrows=array.shape[0], ncols=array.shape[1], name=name)

    nrows = property(lambda self: self.shape[0])
    ncols = property(lambda self: self.shape[1])

    @property
    def T(self) -> Transposed:
        """The transpose, lazily."""
        return Transposed(self)

    def to_csr(self, dtype: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(indptr int64, columns int64, values) as NumPy arrays, columns ascending in a row."""
        indptr, cols, vals = self._session.matrix_to_host(self)
        return indptr, cols, vals if dtype is None else vals.astype(lookup_dtype(dtype).np_type)

    def to_coo(
        self, dtype: Any = None, *, rows: bool = True, columns: bool = True, values: bool = True, sort: bool = True
    ) -> tuple:
        """(rows, columns, values) as NumPy arrays, by row and column; None in place of what was not asked for."""
        indptr, cols, vals = self.to_csr(dtype)
        i = np.repeat(np.arange(self.nrows), np.diff(indptr)) if rows else None
        return i, cols if columns else None, vals if values else None

    def to_scipy_sparse(self, format: str = "csr") -> Any:
        """A SciPy sparse array."""
        from scipy.sparse import csr_array

        indptr, cols, vals = self.to_csr()
        return csr_array((vals, cols, indptr), shape=self.shape).asformat(format)

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> np.ndarray:
        """A NumPy array with `fill_value` where no entry is present (required unless all are)."""
        i, j, vals = self.to_coo(dtype)
        if fill_value is None and len(vals) != self.nrows * self.ncols:
            raise TypeError(
                message("a fill_value, since some entries are missing", f"{len(vals)} entries", "to_dense(0)")
            )
        array = np.full(self.shape, 0 if fill_value is None else fill_value, vals.dtype)
        array[i, j] = vals
        return array

    def clear(self) -> None:
        """Delete all entries."""
        self._session.attach(self)

    def build(self, rows: Any, columns: Any, values: Any = 1.0, *, dup_op: Any = None, clear: bool = False) -> None:
        """Fill an empty matrix in place (`clear`: whatever it holds). Raises OutputNotEmpty, else as from_coo."""
        i, j = checked_ids(rows, self.nrows, "row"), checked_ids(columns, self.ncols, "column")
        if len(i) != len(j):
            raise InvalidValue(message("as many rows as columns", f"{len(i)} and {len(j)}"))
        vals, iso = checked_values(values, len(i), self.dtype)
        if not clear:
            self._session.check_empty(self)
        self._session.build_matrix(self, i, j, vals, iso, dup_op)

    def _position(self, key: Any) -> tuple[int, int]:
        if not (isinstance(key, tuple) and len(key) == 2 and is_integer(key[0]) and is_integer(key[1])):
            raise TypeError(
                message(
                    "A[i, j] with two ints",
                    repr(key),
                    "rows and parts of matrices: select, or products with unit vectors",
                )
            )
        return position(key[0], self.nrows), position(key[1], self.ncols)

    def get(self, row: int, column: int, default: Any = None) -> Any:
        """The value at (row, column), or `default`."""
        value = self._session.element(self, self._position((row, column)))
        return default if value is None else value

    def __getitem__(self, key: Any) -> Any:
        """`A[i, j]`: one element."""
        return _kinds["element"](self, self._position(key))

    def __contains__(self, key: Any) -> bool:
        return self._session.element(self, self._position(key)) is not None

    def __matmul__(self, other: Any) -> Infix:
        return Infix("@", self, _product_operand(self, other))

    def reduce_rowwise(self, op: Any = "plus") -> Expression:
        """A vector: the values of each row combined by a monoid; empty rows absent."""
        return _reduce_rows(self, op)

    def reduce_columnwise(self, op: Any = "plus") -> Expression:
        """A vector: the values of each column combined by a monoid; empty columns absent."""
        return _reduce_rows(self.T, op)

    def reduce_scalar(self, op: Any = "plus", *, allow_empty: bool = True) -> Expression:
        """All values combined by a monoid: a Scalar expression, without entries empty (or else the identity)."""
        return reduction(self, op, allow_empty)

    def isequal(self, other: "Matrix", *, check_dtype: bool = False) -> bool:
        """Same shape, same entries, equal values (and the same dtype if asked)."""
        return self._compare(other, check_dtype, lambda a, b: a == b)

    def isclose(
        self, other: "Matrix", *, rel_tol: float = 1e-7, abs_tol: float = 0.0, check_dtype: bool = False
    ) -> bool:
        """Same shape and entries, values within the tolerances."""
        return self._compare(other, check_dtype, lambda a, b: np.isclose(a, b, rtol=rel_tol, atol=abs_tol))

    def _compare(self, other: "Matrix", check_dtype: bool, same: Any) -> bool:
        if not isinstance(other, Matrix):
            raise TypeError(message("a Matrix to compare with", type(other).__name__))
        if self.shape != other.shape or (check_dtype and self.dtype is not other.dtype) or self.nvals != other.nvals:
            return False
        (p, c, v), (q, d, w) = self.to_csr(), other.to_csr()
        return bool(np.array_equal(p, q) and np.array_equal(c, d) and np.all(same(v, w)))

    def __repr__(self) -> str:
        head = f'"{self.name}" gb.Matrix nrows={self.nrows} ncols={self.ncols} dtype={self.dtype} nvals={self.nvals}'
        if self.nvals > 12:
            return head
        return head + "".join(f"\n  ({i}, {j})  {v}" for i, j, v in zip(*self.to_coo(), strict=True))


def _reduce_rows(matrix: Any, op: Any) -> Expression:
    semiring = row_reducer(op, matrix.dtype)
    return Expression("reduce_rows", semiring, matrix, None, semiring.return_type, matrix.shape[:1], False)


_kinds["matrix"] = Matrix
