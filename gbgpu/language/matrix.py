"""Matrices, and their transposes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from ..interrupts import imported
from ..semiring._types import cast_array, lookup_dtype
from . import compose, formatting
from .arrays import (
    array_of,
    checked_entries,
    checked_ids,
    checked_size,
    checked_values,
    filled,
    ignored,
    numbers,
    offsets_of,
    present,
    reader,
)
from .expr import Expression, Transposed, _kinds, aggregator_of, reduction
from .handle import Readable, Tensor, Tools
from .index import checked, listed
from .infix import product
from .recording import known, later
from .typed import elementwise, row_reducer
from .update import position
from .vector import _no_values, _unzipped


class MatrixFace(Readable):
    """Methods that a Matrix and its transpose share."""

    __slots__ = ()
    ndim = 2

    nrows = property(lambda self: self.shape[0])
    ncols = property(lambda self: self.shape[1])

    # -- reading

    def get(self, row: Any, col: Any, default: Any = None) -> Any:
        """The value at (row, col), or `default` if there is no entry; of two lists, the values at their pairs.

        Parameters
        ----------
        row, col : int or list or array of int
            Indices, as many rows as columns; negative ones count from the end.
        default : object
            What to return if there is no entry.

        Returns
        -------
        scalar or numpy.ndarray
            The value as a Python number; while a loop is recorded, a recorded scalar. Of lists, the values at
            (row[k], col[k]).

        Raises
        ------
        IndexError
            If an index is out of range.
        ValueError
            If the lists have different lengths.
        TypeError
            If a place of lists has no entry, and no `default` is given.
        """
        if np.ndim(row) or np.ndim(col):
            return self._listed(row, col, default)
        found = later(self, self.dtype, f"element ({row}, {col})", lambda: self.get(row, col, default))
        if found is not None:
            return found
        value = self._at((position(row, self.shape[0]), position(col, self.shape[1])))
        return default if value is None else value

    def _at(self, where: tuple[int, int]) -> Any:
        raise NotImplementedError

    def _listed(self, row: Any, col: Any, default: Any) -> np.ndarray:
        i, j = (checked(listed(ids), n) for ids, n in zip((row, col), self.shape, strict=True))
        if len(i) != len(j):
            raise ValueError(message("as many rows as columns", f"{len(i)} and {len(j)}", "A[rows, columns]: a block"))
        found, vals = self._at_places(i, j)
        if default is None and not found.all():
            raise TypeError(message("a default, since some entries are missing", f"{found.sum()} of {len(i)}"))
        return vals if default is None else np.where(found, vals, default)

    def _at_places(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def __contains__(self, key: Any) -> bool:
        if not isinstance(key, tuple) or len(key) != 2:
            raise TypeError(message("(row, column), two ints", repr(key), "(i, j) in A"))
        return known(self.get(*key)) is not None

    def _csr(self, dtype: Any = None, bare: bool = False) -> tuple[np.ndarray, Any, np.ndarray]:
        indptr, cols, vals = self._session.matrix_to_host(self._materialized(), bare)  # type: ignore[attr-defined]
        return indptr, cols, vals if dtype is None else cast_array(vals, lookup_dtype(dtype))

    def to_csr(self, dtype: Any = None, *, sort: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The content as CSR arrays on the host.

        Parameters
        ----------
        dtype : dtype, optional
            The type of the values. By default that of the matrix.
        sort : bool
            Ignored: columns always ascend within a row.

        Returns
        -------
        indptr : numpy.ndarray
            INT64, nrows + 1.
        columns : numpy.ndarray
            INT64, nvals.
        values : numpy.ndarray
            `dtype`, nvals.
        """
        return self._csr(dtype)

    def to_csc(self, dtype: Any = None, *, sort: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The content as CSC arrays on the host: `indptr` (ncols + 1), row indices and values; see `to_csr`."""
        return self.T._csr(dtype)  # type: ignore[attr-defined]

    def to_dcsr(self, dtype: Any = None, *, sort: bool = True) -> tuple:
        """The content as CSR arrays of the rows that have entries.

        Returned are these rows, `indptr` over them, columns and values.
        """
        indptr, cols, vals = self.to_csr(dtype)
        rows = np.flatnonzero(np.diff(indptr))
        return rows, np.append(indptr[rows], indptr[-1]), cols, vals

    def to_dcsc(self, dtype: Any = None, *, sort: bool = True) -> tuple:
        """The content as CSC arrays of the columns that have entries.

        Returned are these columns, `indptr` over them, rows and values.
        """
        return self.T.to_dcsr(dtype)  # type: ignore[attr-defined]

    def to_coo(
        self,
        dtype: Any = None,
        *,
        rows: bool = True,
        columns: bool = True,
        values: bool = True,
        sort: bool = True,
        local: bool = False,
    ) -> tuple:
        """Rows, columns and values of all entries on the host, by row and column.

        Parameters
        ----------
        dtype : dtype, optional
            The type of the values. By default that of the matrix.
        rows, columns, values : bool
            Whether to return this array; if not, None stands in its place.
        sort : bool
            Ignored: entries are always in order.
        local : bool
            Whether to return only the entries that lie in this process, which asks no other rank (docs/clusters.md).

        Returns
        -------
        rows : numpy.ndarray
            INT64, nvals.
        columns : numpy.ndarray
            INT64, nvals.
        values : numpy.ndarray
            `dtype`, nvals.
        """
        if local:
            i, cols, vals = self._session.matrix_entries(self._materialized())  # type: ignore[attr-defined]
            vals = vals if dtype is None else cast_array(vals, lookup_dtype(dtype))
        else:
            indptr, cols, vals = self._csr(dtype)
            i = np.repeat(np.arange(self.shape[0]), np.diff(indptr)) if rows else None
        return i if rows else None, cols if columns else None, vals if values else None

    def to_edgelist(self, dtype: Any = None, *, values: bool = True, sort: bool = True) -> tuple:
        """An array (nvals, 2) of pairs of row and column, and the values or None."""
        i, j, vals = self.to_coo(dtype, values=values)
        return np.column_stack([i, j]), vals

    def to_dicts(self, order: str = "rowwise") -> dict[int, dict[int, Any]]:
        """The content as nested dictionaries `{row: {column: value}}`.

        Parameters
        ----------
        order : str
            "rowwise", or "columnwise" for `{column: {row: value}}`.

        Returns
        -------
        dict
            Rows without entries are left out.
        """
        i, j, vals = (self if compose.by_rows(order) else self.T).to_coo()  # type: ignore[attr-defined]
        made: dict[int, dict[int, Any]] = {}
        for row, col, value in zip(i.tolist(), j.tolist(), vals.tolist(), strict=True):
            made.setdefault(row, {})[col] = value
        return made

    def to_scipy_sparse(self, format: str = "csr") -> Any:
        """The content as a SciPy sparse array.

        Parameters
        ----------
        format : str
            A format of SciPy: "csr", "csc", "coo", ...

        Returns
        -------
        scipy.sparse array
            Of this shape and dtype.
        """
        indptr, cols, vals = self._csr()
        return imported("scipy.sparse").csr_array((vals, cols, indptr), shape=self.shape).asformat(format)

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
            (nrows, ncols).

        Raises
        ------
        TypeError
            If an entry is missing and no `fill_value` is given.
        OutOfMemory
            If the host has no room for the array.
        """
        indptr, cols, vals = self._csr(dtype, bare=True)
        if len(vals) == self.shape[0] * self.shape[1]:
            return filled(self.shape, (), vals, fill_value, dtype)
        lengths = np.diff(indptr)
        if cols is None:  # whole rows
            rows = np.flatnonzero(lengths)
            return filled(self.shape, (rows,), vals.reshape(len(rows), self.shape[1]), fill_value, dtype)
        return filled(self.shape, (np.repeat(np.arange(len(lengths)), lengths), cols), vals, fill_value, dtype)

    # -- products, reductions, compositions

    def mxm(self, other: Any, op: Any = "plus_times") -> Expression:
        """The matrix product `op(self @ other)`.

        Parameters
        ----------
        other : Matrix
            The right operand, with as many rows as this matrix has columns.
        op : semiring or str
            The semiring of the product.

        Returns
        -------
        Expression
            Of a matrix, nrows x other.ncols.

        Raises
        ------
        DimensionMismatch
            If the inner sizes differ.
        """
        return product(op, self, compose.of_ndim(other, 2))

    def mxv(self, other: Any, op: Any = "plus_times") -> Expression:
        """The product with a vector, `op(self @ other)`.

        Parameters
        ----------
        other : Vector
            The right operand, of size ncols.
        op : semiring or str
            The semiring of the product.

        Returns
        -------
        Expression
            Of a vector, size nrows.

        Raises
        ------
        DimensionMismatch
            If the inner sizes differ.
        """
        return product(op, self, compose.of_ndim(other, 1))

    def kronecker(self, other: Any, op: Any = "times") -> Expression:
        """The Kronecker product: op(self[i, j], other[k, l]) for each pair of entries.

        Parameters
        ----------
        other : Matrix
            The right operand.
        op : operator or str
            The binary operator that combines two values.

        Returns
        -------
        Expression
            Of a matrix, (nrows * other.nrows) x (ncols * other.ncols).
        """
        other = compose.of_ndim(other, 2)._node()
        found = elementwise(op, self.dtype, other.dtype)
        shape = (self.shape[0] * other.shape[0], self.shape[1] * other.shape[1])
        return Expression("kron", found, self, other, found.return_type, shape)

    def reduce_rowwise(self, op: Any = "plus") -> Expression:
        """The values of each row, combined.

        Parameters
        ----------
        op : monoid, aggregator or str
            What combines the values.

        Returns
        -------
        Expression
            Of a vector, size nrows; no entry where a row is empty.
        """
        aggregator = aggregator_of(op)
        if aggregator is not None:
            return aggregator.reduce_rows(self)
        semiring = row_reducer(op, self.dtype)
        return Expression("reduce_rows", semiring, self, None, semiring.return_type, self.shape[:1])

    def reduce_columnwise(self, op: Any = "plus") -> Expression:
        """The values of each column, combined.

        Parameters
        ----------
        op : monoid, aggregator or str
            What combines the values.

        Returns
        -------
        Expression
            Of a vector, size ncols; no entry where a column is empty.
        """
        return self.T.reduce_rowwise(op)  # type: ignore[attr-defined]

    def reduce_scalar(self, op: Any = "plus", *, allow_empty: bool = True) -> Expression:
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
            If an aggregator can't reduce a matrix, or `allow_empty` is False and `op` is no monoid.
        """
        return reduction(self, op, allow_empty)

    def diag(self, k: int = 0, dtype: Any = None, *, name: str | None = None, **hints: Any) -> Any:
        """The k'th diagonal as a new Vector.

        Parameters
        ----------
        k : int
            Which diagonal: 0 the main one, above it positive.
        dtype : dtype, optional
            By default that of the matrix.
        name : str, optional
            The vector's name.
        **hints : str
            Hints for the statement, as of `w(mask, **hints)`.

        Returns
        -------
        Vector
            A new one, of the diagonal's length.
        """
        k = compose.integral(k, "k")
        shape = (compose.diagonal_size(self.shape, k),)
        return Expression("diagonal", None, self, None, self.dtype, shape, k).new(dtype, name=name, **hints)

    def power(self, n: int, op: Any = "plus_times") -> Expression:
        """The product of n times this matrix, `op(self @ self @ ...)`.

        Parameters
        ----------
        n : int
            The number of factors. For 0 the result has the identity of the semiring's multiplication on the diagonal.
        op : semiring or str
            The semiring of the products.

        Returns
        -------
        Expression
            Of a matrix of this shape.

        Raises
        ------
        DimensionMismatch
            If the matrix is not square.
        ValueError
            If `n` is negative, or 0 for a multiplication without an identity.
        """
        return compose.power(self, n, op)

    def reposition(
        self, row_offset: int, column_offset: int, *, nrows: int | None = None, ncols: int | None = None
    ) -> Expression:
        """The entries, moved by offsets.

        Parameters
        ----------
        row_offset, column_offset : int
            How far entries move; may be negative.
        nrows, ncols : int, optional
            The shape of the result. By default that of this matrix.

        Returns
        -------
        Expression
            Of a matrix; entries that fall outside are dropped.
        """
        sizes = zip((nrows, ncols), self.shape, strict=True)
        rows, columns = (n if given is None else checked_size(given) for given, n in sizes)
        offsets = compose.integral(row_offset, "row_offset"), compose.integral(column_offset, "column_offset")
        return compose.reposition_matrix(self, offsets, (rows, columns))


class Matrix(MatrixFace, Tensor):
    """A sparse matrix: entries of one dtype, in CSR row blocks on the session's devices.

    An adjacency matrix has the arc i -> j at A[i, j]. If all values are one, no array of values is stored (iso).

    Parameters
    ----------
    dtype : dtype
        The type of the values.
    nrows, ncols : int
        The shape.
    name : str, optional
        The name in plans and traces.

    Raises
    ------
    InvalidValue
        If a size is not from 0 to 2**60 - 1.
    """

    __slots__ = ("_held",)  # (the content or None, the log of single entries that it does not have yet or None)
    __networkx_backend__ = "gbgpu"

    @property
    def _store(self) -> Any:
        """The content, which takes what the log has."""
        store, log = self._held
        return self._session.arrived(self) if log else store

    @_store.setter
    def _store(self, store: Any) -> None:
        """The content, with the single entries that were logged."""
        self._held = store, None

    def __init__(self, dtype: Any = float, nrows: int = 0, ncols: int = 0, *, name: str | None = None):
        super().__init__(dtype, (checked_size(nrows), checked_size(ncols)), name)
        self._session.attach(self)

    # -- constructors

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
        local: bool = False,
    ) -> "Matrix":
        """A matrix of the entries (rows[k], columns[k], values[k]), given in any order.

        Parameters
        ----------
        rows, columns : array of int
            Indices, of one length. Arrays that lie on a GPU of the session stay there.
        values : array or scalar
            As many values as indices, or one for all (an iso matrix).
        dtype : dtype, optional
            The type of the values. By default that of `values`.
        nrows, ncols : int, optional
            The shape. By default the largest index + 1.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        name : str, optional
            The matrix's name.
        local : bool
            Whether, of several ranks, each gives entries of its own, any of all (docs/clusters.md). `dup_op` combines
            these by rank, then in the order given.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        IndexOutOfBound
            If an index is negative or too large.
        ValueError
            If lengths differ, or a place comes twice without `dup_op`.
        TypeError
            If indices are no integers, or values no numbers.
        InvalidValue
            If, with `local`, ranks give parts of different types.
        """
        ids, read = {"row": rows, "column": columns}, reader(rows, columns)
        (i, j), vals, iso, shape = checked_entries(ids, (nrows, ncols), values, dtype, dup_op, local, read)
        matrix = cls(vals.dtype, *shape, name=name)
        matrix._session.build_matrix(matrix, i, j, vals, iso, ignored(dup_op, iso), local=local)
        return matrix

    @classmethod
    def from_edgelist(
        cls,
        edgelist: Any,
        values: Any = None,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dup_op: Any = None,
        name: str | None = None,
    ) -> "Matrix":
        """A matrix of the entries in a list of edges.

        Parameters
        ----------
        edgelist : iterable of tuples or array
            (row, column) or (row, column, value) tuples, or an array with two columns.
        values : array or scalar, optional
            Values beside pairs. By default 1.0.
        dtype : dtype, optional
            The type of the values.
        nrows, ncols : int, optional
            The shape. By default the largest index + 1.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        ValueError
            If a tuple has another length or an array another number of columns; else as `from_coo`.
        TypeError
            If values are given both in triples and beside them.
        """
        i, j, vals = _edges(edgelist, values)
        return cls.from_coo(i, j, vals, dtype, nrows=nrows, ncols=ncols, dup_op=dup_op, name=name)

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
        """A matrix of CSR arrays.

        Parameters
        ----------
        indptr : array of int
            The offset of each row's first entry, nrows + 1.
        col_indices : array of int
            The column of each entry, in any order within a row.
        values : array or scalar
            As many values as columns, or one for all.
        dtype : dtype, optional
            The type of the values.
        nrows : int, optional
            Checked against `indptr`, if given.
        ncols : int, optional
            By default the largest column + 1.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        InvalidValue
            If the offsets do not ascend from 0 to the number of columns given.
        DimensionMismatch
            If there are not nrows + 1 offsets.
        IndexOutOfBound
            If a column is out of range.
        ValueError
            If a place comes twice.
        """
        read = reader(indptr, col_indices)
        cols = checked_ids(col_indices, ncols, "column", read)
        offsets = offsets_of(indptr, len(cols), "row", read)
        if nrows is not None and nrows != len(offsets) - 1:
            raise DimensionMismatch(message(f"{nrows + 1} row offsets for {nrows} rows", len(offsets)))
        vals, iso = checked_values(values, len(cols), dtype, read)
        ncols = (int(cols.max()) + 1 if len(cols) else 0) if ncols is None else ncols
        matrix = cls(vals.dtype, len(offsets) - 1, ncols, name=name)
        matrix._session.build_csr(matrix, offsets, cols, vals, iso)
        return matrix

    @classmethod
    def from_csc(
        cls,
        indptr: Any,
        row_indices: Any,
        values: Any = 1.0,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        name: str | None = None,
    ) -> "Matrix":
        """A matrix of CSC arrays.

        Parameters
        ----------
        indptr : array of int
            The offset of each column's first entry, ncols + 1.
        row_indices : array of int
            The row of each entry, in any order within a column.
        values : array or scalar
            As many values as rows, or one for all.
        dtype : dtype, optional
            The type of the values.
        nrows : int, optional
            By default the largest row + 1.
        ncols : int, optional
            Checked against `indptr`, if given.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        InvalidValue, DimensionMismatch, IndexOutOfBound, ValueError
            As `from_csr`.
        """
        rows = checked_ids(row_indices, nrows, "row")
        offsets = offsets_of(indptr, len(rows), "column")
        if ncols is not None and ncols != len(offsets) - 1:
            raise DimensionMismatch(message(f"{ncols + 1} column offsets for {ncols} columns", len(offsets)))
        columns, size = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), len(offsets) - 1
        return cls.from_coo(rows, columns, values, dtype, nrows=nrows, ncols=size, name=name)

    @classmethod
    def from_dcsr(
        cls,
        compressed_rows: Any,
        indptr: Any,
        col_indices: Any,
        values: Any = 1.0,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        name: str | None = None,
    ) -> "Matrix":
        """A matrix of CSR arrays of some rows.

        Parameters
        ----------
        compressed_rows : array of int
            The k rows that have entries.
        indptr : array of int
            The offset of the first entry of each of them, k + 1.
        col_indices : array of int
            The column of each entry.
        values : array or scalar
            As many values as columns, or one for all.
        dtype : dtype, optional
            The type of the values.
        nrows, ncols : int, optional
            The shape. By default the largest index + 1.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        InvalidValue, IndexOutOfBound, ValueError
            As `from_csr`.
        """
        rows = _expanded(compressed_rows, indptr, col_indices, nrows, "row")
        return cls.from_coo(rows, col_indices, values, dtype, nrows=nrows, ncols=ncols, name=name)

    @classmethod
    def from_dcsc(
        cls,
        compressed_cols: Any,
        indptr: Any,
        row_indices: Any,
        values: Any = 1.0,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        name: str | None = None,
    ) -> "Matrix":
        """A matrix of CSC arrays of some columns.

        Parameters
        ----------
        compressed_cols : array of int
            The k columns that have entries.
        indptr : array of int
            The offset of the first entry of each of them, k + 1.
        row_indices : array of int
            The row of each entry.
        values : array or scalar
            As many values as rows, or one for all.
        dtype : dtype, optional
            The type of the values.
        nrows, ncols : int, optional
            The shape. By default the largest index + 1.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        InvalidValue, IndexOutOfBound, ValueError
            As `from_csr`.
        """
        columns = _expanded(compressed_cols, indptr, row_indices, ncols, "column")
        return cls.from_coo(row_indices, columns, values, dtype, nrows=nrows, ncols=ncols, name=name)

    @classmethod
    def from_scipy_sparse(cls, A: Any, *, dup_op: Any = None, name: str | None = None) -> "Matrix":
        """A matrix of a SciPy sparse array or matrix; stored zeros stay entries.

        Parameters
        ----------
        A : scipy.sparse array or matrix
            Two-dimensional, of any format.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one, of the shape and dtype of `A`.

        Raises
        ------
        TypeError
            If `A` is not sparse.
        DimensionMismatch
            If `A` is not two-dimensional.
        ValueError
            If a place comes twice without `dup_op`.
        """
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
        """A matrix of the elements of a two-dimensional array.

        Parameters
        ----------
        values : array
            Two-dimensional.
        missing_value : scalar, optional
            Elements equal to it (NaN: that are NaN) become no entries.
        dtype : dtype, optional
            The type of the values. By default that of `values`.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one, of the array's shape.

        Raises
        ------
        ValueError
            If the array has another number of dimensions.
        TypeError
            If `values` is a scalar.
        """
        array: Any = numbers(values, dtype)
        if array.ndim != 2:
            kind = ValueError if array.ndim else TypeError
            raise kind(message("a two-dimensional array", f"{array.ndim} dimensions", "Matrix.from_scalar fills one"))
        if missing_value is None and isinstance(array, np.ndarray):
            matrix, (n, m) = cls(array.dtype, *array.shape, name=name), array.shape
            vals = np.array(array, matrix.dtype.np_type).reshape(-1)
            columns = np.broadcast_to(np.arange(m, dtype=np.int32 if m < 2**31 else np.int64), (n, m)).flatten()
            matrix._session.build_csr(matrix, np.arange(n + 1) * m, columns, vals, False, trusted=True)
            return matrix
        i, j = np.nonzero(present(array if dtype is None else array_of(values), missing_value))
        return cls.from_coo(i, j, array[i, j], nrows=array.shape[0], ncols=array.shape[1], name=name)

    @classmethod
    def from_scalar(cls, value: Any, nrows: int, ncols: int, dtype: Any = None, *, name: str | None = None) -> "Matrix":
        """A matrix with one value at every place, which is stored once.

        Parameters
        ----------
        value : scalar
            The value.
        nrows, ncols : int
            The shape.
        dtype : dtype, optional
            By default that of `value`.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.
        """
        vals, _ = checked_values(value, 1, dtype)
        matrix = cls(vals.dtype, nrows, ncols, name=name)
        matrix << vals[0]
        return matrix

    @classmethod
    def from_dicts(
        cls,
        nested_dicts: Any,
        dtype: Any = None,
        *,
        order: str = "rowwise",
        nrows: int | None = None,
        ncols: int | None = None,
        name: str | None = None,
    ) -> "Matrix":
        """A matrix of nested dictionaries `{row: {column: value}}`.

        Parameters
        ----------
        nested_dicts : dict or list of dict
            `{row: {column: value}}`, or a list of `{column: value}` for rows 0, 1, ...
        dtype : dtype, optional
            The type of the values.
        order : str
            "rowwise", or "columnwise" if the outer keys are columns.
        nrows, ncols : int, optional
            The shape. By default the largest index + 1; empty inner dictionaries count.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one.

        Raises
        ------
        TypeError
            If something else than dictionaries is inside.
        """
        outer = list(nested_dicts.items() if isinstance(nested_dicts, Mapping) else enumerate(nested_dicts))
        if not all(isinstance(inner, Mapping) for _, inner in outer):
            raise TypeError(message("dicts {column: value} in a dict or a list", type(nested_dicts).__name__))
        i, j, vals = _unzipped(((a, b, value) for a, inner in outer for b, value in inner.items()), 3)
        by_rows = compose.by_rows(order)
        lines = checked_ids([a for a, _ in outer], None, "row" if by_rows else "column")
        size = int(lines.max()) + 1 if len(lines) else 0  # empty dicts count too
        if by_rows:
            nrows = size if nrows is None else nrows
        else:
            i, j, ncols = j, i, size if ncols is None else ncols
        return cls.from_coo(i, j, vals, _no_values(dtype, vals), nrows=nrows, ncols=ncols, name=name)

    def build(
        self,
        rows: Any,
        columns: Any,
        values: Any = 1.0,
        *,
        dup_op: Any = None,
        clear: bool = False,
        nrows: int | None = None,
        ncols: int | None = None,
    ) -> None:
        """Fill an empty matrix in place.

        Parameters
        ----------
        rows, columns : array of int
            Indices, of one length.
        values : array or scalar
            As many values as indices, or one for all.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        clear : bool
            Whether to delete what the matrix holds first.
        nrows, ncols : int, optional
            Another shape.

        Raises
        ------
        OutputNotEmpty
            If the matrix has entries and `clear` is not given.
        IndexOutOfBound, ValueError, TypeError
            As `from_coo`.
        """
        sizes = zip((nrows, ncols), self.shape, strict=True)
        shape = tuple(n if given is None else checked_size(given) for given, n in sizes)
        i, j = checked_ids(rows, shape[0], "row"), checked_ids(columns, shape[1], "column")
        if len(i) != len(j):
            raise ValueError(message("as many rows as columns", f"{len(i)} and {len(j)}"))
        vals, iso = checked_values(values, len(i), self.dtype)
        if not clear:
            self._session.check_empty(self)
        built = Matrix(self.dtype, *shape, name=self._name)
        self._session.build_matrix(built, i, j, vals, iso, dup_op)
        if self._session.recording:  # it is built when the loop runs
            self << built
        else:
            self._session.take(self, built)

    # -- what a transpose does not have

    @property
    def T(self) -> "TransposedMatrix":
        """The transpose, a view: nothing moves until a product needs the other orientation."""
        return TransposedMatrix(self)

    def _at(self, where: tuple[int, int]) -> Any:
        return self._session.element(self, where)

    def _at_places(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found: tuple[np.ndarray, np.ndarray] = self._session.elements(self, i, j)
        return found

    def resize(self, nrows: int, ncols: int) -> None:
        """Change the shape in place; entries outside it are dropped.

        Parameters
        ----------
        nrows, ncols : int
            The new shape.
        """
        compose.resize(self, (checked_size(nrows), checked_size(ncols)))

    def setdiag(self, values: Any, k: int = 0, *, mask: Any = None, accum: Any = None, **hints: Any) -> None:
        """Set the k'th diagonal.

        Parameters
        ----------
        values : scalar, Vector or array
            One value, or as many as the diagonal is long. Without `accum`, a place where a Vector has no entry is
            emptied.
        k : int
            Which diagonal: 0 the main one, above it positive.
        mask : Mask, optional
            A vector mask over the diagonal, or a matrix mask.
        accum : operator or str, optional
            The binary operator that combines old and new values.
        **hints : str
            Hints for the statement, as of `A(mask, **hints)`.

        Raises
        ------
        IndexError
            If the diagonal is outside the matrix.
        DimensionMismatch
            If a length is not that of the diagonal.
        """
        compose.setdiag(self, values, k, mask, accum, hints)

    ss = Tools("MatrixTools")

    def _as_vector(self, *, name: str | None = None) -> Any:
        return self[:, 0].new(name=name)

    def __reduce__(self) -> Any:
        return _restored, (*self.to_csr(), self.dtype.name, self.shape[1], self._name)


class TransposedMatrix(MatrixFace, Transposed):
    """The transpose of a matrix, as of `A.T`: a view that can be read and used in expressions."""

    __slots__ = ()
    T = Transposed.T

    nvals = property(lambda self: self.matrix.nvals)

    def _at(self, where: tuple[int, int]) -> Any:
        return self.matrix.get(*where[::-1])

    def _at_places(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix._at_places(j, i)

    def __reduce__(self) -> Any:
        return getattr, (self.matrix, "T")

    def __iter__(self) -> Any:
        return zip(*(part.tolist() for part in self.to_coo(values=False)[:2]), strict=True)

    def dup(
        self, dtype: Any = None, *, clear: bool = False, mask: Any = None, name: str | None = None, **hints: Any
    ) -> Matrix:
        """The transpose as a new Matrix.

        Parameters
        ----------
        dtype : dtype, optional
            By default that of the matrix.
        clear : bool
            Whether the new matrix only has the shape, and no entries.
        mask : Mask, optional
            Which entries to copy.
        name : str, optional
            The matrix's name.
        **hints : str
            Hints for the statement, as of `w(mask, **hints)`.

        Returns
        -------
        Matrix
            ncols x nrows of the original.
        """
        if clear:
            return Matrix(self.dtype if dtype is None else dtype, *self.shape, name=name)
        return self.new(dtype, mask=mask, name=name, **hints)

    def wait(self, how: str = "materialize") -> "TransposedMatrix":
        """Wait until the devices have computed the matrix; see `Matrix.wait`."""
        self.matrix.wait(how)
        return self

    def __repr__(self) -> str:
        return formatting.handle(self)

    def _repr_html_(self) -> str:
        return formatting.handle_html(self)


def _edges(edgelist: Any, values: Any) -> tuple:
    """(rows, columns, values) of an edge list."""
    if isinstance(edgelist, np.ndarray):
        if edgelist.ndim != 2 or edgelist.shape[1] != 2:
            raise ValueError(message("two columns; values are given beside the array", f"shape {edgelist.shape}"))
        return edgelist[:, 0], edgelist[:, 1], 1.0 if values is None else values
    rows = [tuple(edge) for edge in edgelist]
    width = len(rows[0]) if rows else 2
    if width == 3 and values is not None:
        raise TypeError(message("values in triples or beside pairs", "both"))
    if width not in (2, 3):
        raise ValueError(message("pairs of (row, column), or triples with the value", f"tuples of {width}"))
    columns = _unzipped(rows, width)
    return (*columns[:2], columns[2] if width == 3 else 1.0 if values is None else values)


def _expanded(compressed: Any, indptr: Any, indices: Any, size: int | None, what: str) -> np.ndarray:
    """The row (or column) of each entry of a doubly compressed form."""
    rows, entries = checked_ids(compressed, size, what), len(array_of(indices))
    offsets = offsets_of(indptr, entries, what)
    if len(offsets) != len(rows) + 1:
        raise InvalidValue(message(f"{len(rows) + 1} offsets for {len(rows)} {what}s", len(offsets)))
    return np.repeat(rows, np.diff(offsets))


def _restored(indptr: Any, cols: Any, vals: Any, dtype: str, ncols: int, name: str | None) -> Matrix:
    return Matrix.from_csr(indptr, cols, vals, dtype, ncols=ncols, name=name)


_kinds["matrix"] = Matrix
