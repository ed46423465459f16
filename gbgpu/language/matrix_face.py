"""What matrices and their transposes share: reading them, and the expressions that their methods give."""

from typing import Any

import numpy as np

from ..errors import message
from ..interrupts import imported
from ..semiring._types import cast_array, lookup_dtype
from . import compose
from .arrays import checked_size, filled
from .expr import Expression, aggregator_of, reduction
from .handle import Readable
from .index import checked, listed
from .infix import product
from .recording import known, later
from .typed import elementwise, row_reducer
from .update import position


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
            What to return if there is no entry; of lists a number, whose type the array has room for, as of `to_dense`.

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
            If a place of lists has no entry, and no `default` is given, or one that is no number.
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
        return filled(vals.shape, (found,), vals[found], default, None)

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
