"""Constructors of matrices."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..errors import DimensionMismatch, message
from . import compose
from .arrays import (
    array_of,
    checked_entries,
    checked_ids,
    checked_size,
    checked_values,
    expanded,
    ignored,
    numbers,
    offsets_of,
    present,
    reader,
)
from .handle import Tensor
from .vector import _no_values, _unzipped


class MatrixConstructors(Tensor):
    """A part of Matrix."""

    __slots__ = ()

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
        local: bool = False,
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
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
        rows = expanded(compressed_rows, indptr, col_indices, nrows, "row")
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
    ) -> Self:
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
        columns = expanded(compressed_cols, indptr, row_indices, ncols, "column")
        return cls.from_coo(row_indices, columns, values, dtype, nrows=nrows, ncols=ncols, name=name)

    @classmethod
    def from_scipy_sparse(cls, A: Any, *, dup_op: Any = None, name: str | None = None) -> Self:
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
    def from_dense(cls, values: Any, missing_value: Any = None, *, dtype: Any = None, name: str | None = None) -> Self:
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
    def from_scalar(cls, value: Any, nrows: int, ncols: int, dtype: Any = None, *, name: str | None = None) -> Self:
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
    ) -> Self:
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
