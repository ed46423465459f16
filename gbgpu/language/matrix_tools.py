"""The helpers `A.ss` and the import functions `Matrix.ss`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DimensionMismatch, checked_text, message
from .arrays import room_for
from .compose import by_rows, of_ndim
from .expr import _kinds, new_like
from .imports import by_format, dense, guessed, imported, lines_of, sizes
from .row_order import chosen_of_rows, compacted_rows, row_entries, scanned_rows, sorted_rows
from .tools import ObjectTools, chunk_sizes, concat, folded, is_list


class MatrixTools(ObjectTools):
    """The helpers `A.ss` of a matrix; as `Matrix.ss` the import functions."""

    format = property(lambda self: "csr")
    orientation = property(lambda self: "rowwise")

    def build_diag(self, vector: Any, k: int = 0) -> None:
        """The parent becomes the diagonal matrix of a vector."""
        made = of_ndim(vector, 1)._computed().diag(k)
        made.resize(*self._parent.shape) if made.shape != self._parent.shape else None
        self._parent << made

    def build_scalar(self, rows: Any, columns: Any, value: Any) -> None:
        """Fill an empty matrix with one value at the given places."""
        self._parent.build(rows, columns, value)

    def concat(self, tiles: Any) -> None:
        """The parent becomes the matrix of these tiles."""
        self._parent << concat(tiles, self._parent.dtype)

    def split(self, chunks: Any, *, name: str | None = None) -> list[list]:
        """Tiles of the matrix, as a list of rows of tiles.

        Parameters
        ----------
        chunks : int, list or pair
            Sizes for both dimensions, or (rows, columns). Each is a size, a list of sizes (one None: the rest), or None
            (all).
        name : str, optional
            Tiles are named after it, with their place. By default after the matrix.

        Returns
        -------
        list of list of Matrix
            New ones.

        Raises
        ------
        DimensionMismatch
            If sizes do not add up to the dimension.
        """
        A, pair = self._parent, chunks if is_list(chunks) else (chunks, chunks)
        if len(pair) != 2:
            raise ValueError(message("chunks of rows and of columns", f"{len(pair)} of them"))
        tops, lefts = (np.cumsum([0, *chunk_sizes(c, n)]).tolist() for c, n in zip(pair, A.shape, strict=True))
        name = A.name if name is None else name
        return [
            [A[a:b, c:d].new(name=f"{name}_{i}x{j}") for j, (c, d) in enumerate(zip(lefts, lefts[1:], strict=False))]
            for i, (a, b) in enumerate(zip(tops, tops[1:], strict=False))
        ]

    def flatten(self, order: str = "rowwise", *, name: str | None = None) -> Any:
        """A vector of nrows * ncols: rows (or columns) one after another."""
        A = self._parent
        lines, where, vals = row_entries(A, order)
        width = A.shape[1 if by_rows(order) else 0]
        return _kinds["vector"].from_coo(lines * width + where, vals, size=A.nrows * A.ncols, dtype=A.dtype, name=name)

    def reshape(
        self, nrows: int, ncols: int | None = None, order: str = "rowwise", *, inplace: bool = False, name: Any = None
    ) -> Any:
        """The same entries, counted in order, in another shape.

        Parameters
        ----------
        nrows, ncols : int
            The shape; one size may be -1.
        order : str
            "rowwise" or "columnwise": how places are counted.
        inplace : bool
            Whether to change this matrix.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix or None
            A new one; None with `inplace`.

        Raises
        ------
        ValueError
            If the shape has another number of places.
        """
        flat = self.flatten(order)
        made = folded(flat, nrows, ncols, order, name)
        if not inplace:
            return made
        self._parent._session.take(self._parent, made)
        return None

    def selectk(self, how: str, k: int, order: str = "rowwise", *, name: str | None = None) -> Any:
        """At most k entries of each row.

        Parameters
        ----------
        how : str
            "first", "last", "smallest", "largest" (of equal values the first), or "random".
        k : int
            The number of entries.
        order : str
            "rowwise", or "columnwise" for columns.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one, of this shape.
        """
        return chosen_of_rows(self._parent, how, k, order, name)

    def compactify(
        self, how: str = "first", k: int | None = None, order: str = "rowwise", *, reverse: bool = False,
        asindex: bool = False, name: str | None = None,
    ) -> Any:  # fmt: skip
        """The first, last, smallest, largest or random entries of each row, moved to its start.

        Parameters
        ----------
        how : str
            "first", "last", "smallest", "largest" or "random".
        k : int, optional
            At most so many entries of a row. By default all.
        order : str
            "rowwise", or "columnwise" for columns.
        reverse : bool
            Whether to reverse their order.
        asindex : bool
            Whether values become the columns where they were (UINT64).
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one, with k columns, or as many as the longest row has entries.
        """
        return compacted_rows(self._parent, how, k, order, reverse, asindex, name)

    def sort(
        self, op: Any = "lt", order: str = "rowwise", *, values: bool = True, permutation: bool = True
    ) -> tuple[Any, Any]:
        """The values of each row in order, from its start, and where they were.

        Parameters
        ----------
        op : operator or str
            "lt" or "gt", by which values are ordered.
        order : str
            "rowwise", or "columnwise" for columns.
        values, permutation : bool
            Whether to return this matrix; if not, None stands in its place.

        Returns
        -------
        values : Matrix
            The sorted values.
        permutation : Matrix
            The column of each (UINT64).
        """
        return sorted_rows(self._parent, op, order, values, permutation)

    def scan(self, op: Any = "plus", order: str = "rowwise", *, name: str | None = None) -> Any:
        """Each entry becomes the reduction of its row's entries up to it.

        Parameters
        ----------
        op : monoid or str
            What combines the values.
        order : str
            "rowwise", or "columnwise" for columns.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one, of this shape and pattern.
        """
        return scanned_rows(self._parent, op, order, name)

    def declare_symmetric(self) -> None:
        """Declare that the matrix equals its transpose, which is not checked.

        Products then need no transpose. Without the declaration, the first product that needs one builds it, in several
        times the memory of the matrix, and drops it if both are equal. The declaration ends when the content changes.

        Raises
        ------
        DimensionMismatch
            If the matrix is not square.
        """
        A = self._parent
        if A.nrows != A.ncols:
            raise DimensionMismatch(message("a square matrix", f"{A.nrows} x {A.ncols}"))
        A._session.declare_symmetric(A)

    def map_rows(self, function: Callable[..., Any], *others: Any, name: str | None = None) -> Any:
        """The values that a function of arrays gives, called once on each device for the rows that lie there.

        Many small dense problems, one a row, are one call of a batched function: of `np.linalg` on CPU devices, of
        `cupy.linalg` on GPUs.

        Parameters
        ----------
        function : callable
            Takes an array for this matrix and for each of the others: rows x columns, of the matrix's dtype. Rows
            without entries are left out. Arrays are NumPy's on CPU devices and CuPy's on GPUs; they must not be
            changed. Returns an array of the first one's shape, which is cast to this matrix's dtype.
        *others : Matrix or its transpose
            Of as many rows.
        name : str, optional
            The matrix's name.

        Returns
        -------
        Matrix
            A new one, of this shape, pattern and dtype.

        Raises
        ------
        TypeError
            If one of the others is no Matrix.
        InvalidValue
            If a row has some entries only, if other rows have entries in one matrix than in another, or if the function
            returns no array or another shape.

        What the function raises is raised here, too.
        """
        A = self._parent
        made = new_like(A.shape, A.dtype, name)
        made._session.map_rows(made, function, [A, *(of_ndim(other, 2)._materialized() for other in others)])
        return made

    def export(self, format: str | None = None, *, sort: bool = False, raw: bool = False, **opts: Any) -> dict:
        """The content as NumPy arrays of a format.

        Parameters
        ----------
        format : str, optional
            csr (default), csc, hypercsr, hypercsc, coo, coor, cooc, bitmapr, bitmapc, fullr or fullc.
        sort, raw : bool
            Ignored: entries are always in order.
        **opts : object
            Ignored.

        Returns
        -------
        dict
            Arrays and facts by the names that the import functions take.

        Raises
        ------
        ValueError
            If there is no such format.
        """
        format = "csr" if format is None else checked_text(format, "a format").lower()
        exporter = _EXPORTS.get(format)
        if exporter is None:
            raise ValueError(message(f"a format among {', '.join(_EXPORTS)}", format))
        A = self._parent
        made = exporter(A) | {"format": format, "nrows": A.nrows, "ncols": A.ncols, "is_iso": self.is_iso}
        if self.is_iso and A.nvals:
            made["values"] = np.ravel(made["values"])[:1] if "bitmap" not in made else np.array([self.iso_value.value])
        return made

    @classmethod
    def import_csr(cls, *, nrows: int, ncols: int, indptr: Any, values: Any, col_indices: Any, **opts: Any) -> Any:
        """A matrix of the arrays of `export("csr")`; see `Matrix.from_csr`."""
        kept = imported(values, opts, "csr")
        return _kinds["matrix"].from_csr(indptr, col_indices, *kept, **sizes(nrows, ncols, opts))

    @classmethod
    def import_csc(cls, *, nrows: int, ncols: int, indptr: Any, values: Any, row_indices: Any, **opts: Any) -> Any:
        """A matrix of the arrays of `export("csc")`; see `Matrix.from_csc`."""
        kept = imported(values, opts, "csc")
        return _kinds["matrix"].from_csc(indptr, row_indices, *kept, **sizes(nrows, ncols, opts))

    @classmethod
    def import_hypercsr(
        cls, *, nrows: int, ncols: int, rows: Any, indptr: Any, values: Any, col_indices: Any, nvec: Any = None,
        **opts: Any,
    ) -> Any:  # fmt: skip
        """A matrix of the arrays of `export("hypercsr")`; see `Matrix.from_dcsr`."""
        vals, dtype = imported(values, opts, "hypercsr")
        arrays = lines_of(nvec, rows, indptr, col_indices, vals)
        return _kinds["matrix"].from_dcsr(*arrays, dtype, **sizes(nrows, ncols, opts))

    @classmethod
    def import_hypercsc(
        cls, *, nrows: int, ncols: int, cols: Any, indptr: Any, values: Any, row_indices: Any, nvec: Any = None,
        **opts: Any,
    ) -> Any:  # fmt: skip
        """A matrix of the arrays of `export("hypercsc")`; see `Matrix.from_dcsc`."""
        vals, dtype = imported(values, opts, "hypercsc")
        arrays = lines_of(nvec, cols, indptr, row_indices, vals)
        return _kinds["matrix"].from_dcsc(*arrays, dtype, **sizes(nrows, ncols, opts))

    @classmethod
    def import_coo(
        cls, rows: Any, cols: Any, values: Any, *, nrows: int, ncols: int, nvals: Any = None, **opts: Any
    ) -> Any:
        """A matrix of the arrays of `export("coo")`; see `Matrix.from_coo`."""
        kept = imported(values, opts, "coo")
        return _kinds["matrix"].from_coo(rows, cols, *kept, **sizes(nrows, ncols, opts))

    import_coor = import_cooc = import_coo

    @classmethod
    def import_bitmapr(
        cls, *, bitmap: Any, values: Any, nrows: Any = None, ncols: Any = None, nvals: Any = None, **opts: Any
    ) -> Any:
        """A matrix of the values where `bitmap` is true; flat arrays are read by rows."""
        return dense(values, bitmap, nrows, ncols, "bitmapr", opts)

    @classmethod
    def import_bitmapc(
        cls, *, bitmap: Any, values: Any, nrows: Any = None, ncols: Any = None, nvals: Any = None, **opts: Any
    ) -> Any:
        """A matrix of the values where `bitmap` is true; flat arrays are read by columns."""
        return dense(values, bitmap, nrows, ncols, "bitmapc", opts)

    @classmethod
    def import_fullr(cls, values: Any, *, nrows: Any = None, ncols: Any = None, **opts: Any) -> Any:
        """A matrix with a value at every place; a flat array is read by rows."""
        return dense(values, None, nrows, ncols, "fullr", opts)

    @classmethod
    def import_fullc(cls, values: Any, *, nrows: Any = None, ncols: Any = None, **opts: Any) -> Any:
        """A matrix with a value at every place; a flat array is read by columns."""
        return dense(values, None, nrows, ncols, "fullc", opts)

    @classmethod
    def import_any(cls, *, format: str | None = None, **given: Any) -> Any:
        """A matrix of the arrays of any format, known by `format` or by the arrays' names."""
        return by_format(cls, format or guessed(given), given)


def _compressed(A: Any, hyper: bool, by_row: bool) -> dict:
    parts = (A.to_dcsr() if hyper else A.to_csr()) if by_row else (A.to_dcsc() if hyper else A.to_csc())
    other, line = ("col_indices", "rows") if by_row else ("row_indices", "cols")
    names = [line, "indptr", other, "values"] if hyper else ["indptr", other, "values"]
    found = dict(zip(names, parts, strict=True)) | {"sorted_cols" if by_row else "sorted_rows": True}
    return found | ({"nvec": len(parts[0])} if hyper else {})


def _coordinates(A: Any, by_row: bool) -> dict:
    i, j, vals = A.to_coo()
    if not by_row:
        j, i, vals = A.T.to_coo()
    return {"rows": i, "cols": j, "values": vals, "sorted_rows": by_row, "sorted_cols": not by_row or A.nrows < 2}


def _bitmap(A: Any, order: Any) -> dict:
    i, j, vals = A.to_coo()
    room_for(A.shape, vals.dtype)
    bitmap, dense = np.zeros(A.shape, bool, order=order), np.zeros(A.shape, vals.dtype, order=order)
    bitmap[i, j], dense[i, j] = True, vals
    return {"bitmap": bitmap, "values": dense, "nvals": len(vals)}


_EXPORTS: dict[str, Any] = {
    "csr": lambda A: _compressed(A, False, True),
    "csc": lambda A: _compressed(A, False, False),
    "hypercsr": lambda A: _compressed(A, True, True),
    "hypercsc": lambda A: _compressed(A, True, False),
    "coo": lambda A: _coordinates(A, True),
    "coor": lambda A: _coordinates(A, True),
    "cooc": lambda A: _coordinates(A, False),
    "bitmapr": lambda A: _bitmap(A, "C"),
    "bitmapc": lambda A: _bitmap(A, "F"),
    "fullr": lambda A: {"values": A.to_dense()},
    "fullc": lambda A: {"values": np.asfortranarray(A.to_dense())},
}
