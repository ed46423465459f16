"""Helpers under the name that python-graphblas gives SuiteSparse's: `A.ss`, `v.ss`, `Matrix.ss`, and this module.

Imports, exports, and what orders the entries of a row go through the host.
"""

from typing import Any, NoReturn

import numpy as np

from .. import settings
from ..errors import DimensionMismatch, checked_text, message, no_attribute
from ..semiring._lower import to_python
from .arrays import array_of, checked_size, room_for
from .compose import by_rows, integral, of_ndim
from .expr import Expression, _kinds, computed, is_tensor, new_like
from .imports import by_format, dense, first, first_values, guessed, imported, lines_of, sizes
from .typed import dtype_or, reducer


def concat(tiles: Any, dtype: Any = None, *, name: str | None = None) -> Any:
    """One matrix of tiles, or one vector of vectors.

    Parameters
    ----------
    tiles : list
        A list of lists of matrices (or vectors, as columns) of one length each; or a list of vectors.
    dtype : dtype, optional
        By default that of the first tile.
    name : str, optional
        The object's name.

    Returns
    -------
    Matrix or Vector
        A new one.

    Raises
    ------
    TypeError
        If a tile is something else.
    ValueError
        If rows of tiles are empty or differ in length.
    DimensionMismatch
        If tiles do not fit together.
    """
    if not isinstance(tiles, (list, tuple)):
        raise TypeError(message("a list of lists of matrices, or a list of vectors", type(tiles).__name__))
    grid = [list(row) if isinstance(row, (list, tuple)) else [row] for row in tiles]
    if not all(grid) or len({len(row) for row in grid}) != 1:
        raise ValueError(message("rows of tiles, of one length from 1 on", [len(row) for row in grid]))
    if not all(is_tensor(x) for row in grid for x in row):
        raise TypeError(message("a list of lists of matrices, or a list of vectors", repr(tiles)[:60]))
    if all(x.ndim == 1 for row in grid for x in row) and not any(isinstance(row, (list, tuple)) for row in tiles):
        return _stacked([row[0]._computed() for row in grid], dtype, name)
    return _tiled([[_as_matrix(x) for x in row] for row in grid], dtype, name)


def _as_matrix(x: Any) -> Any:
    x = x._materialized()
    return x if x.ndim == 2 else x._as_matrix()


def _common(tiles: list, dtype: Any) -> Any:
    return dtype_or(dtype, tiles[0].dtype)


def _stacked(vectors: list, dtype: Any, name: str | None) -> Any:
    made = new_like((sum(v.size for v in vectors),), _common(vectors, dtype), name)
    start = 0
    for v in vectors:
        made[start : start + v.size] << v
        start += v.size
    return made


def _tiled(grid: list[list], dtype: Any, name: str | None) -> Any:
    heights, widths = [row[0].nrows for row in grid], [x.ncols for x in grid[0]]
    for i, row in enumerate(grid):
        if any(x.shape != (heights[i], w) for x, w in zip(row, widths, strict=True)):
            raise DimensionMismatch(message("tiles that fit together", [[x.shape for x in row] for row in grid]))
    made = new_like((sum(heights), sum(widths)), _common([x for row in grid for x in row], dtype), name)
    tiles = [[x if x.dtype is made.dtype else x.dup(made.dtype) for x in row] for row in grid]
    made << Expression("concat", None, tiles[0][0], None, made.dtype, made.shape, tiles)
    return made


def diag(x: Any, k: int = 0, dtype: Any = None, *, name: str | None = None) -> Any:
    """The k'th diagonal of a matrix as a Vector, or a matrix with a vector on it.

    Parameters
    ----------
    x : Matrix or Vector
        The object.
    k : int
        Which diagonal: 0 the main one, above it positive.
    dtype : dtype, optional
        By default that of `x`.
    name : str, optional
        The object's name.

    Returns
    -------
    Vector or Matrix
        A new one.
    """
    made = computed(x).diag(k)
    return made if dtype is None and name is None else made.dup(dtype, name=name)


# how names begin that python-graphblas has, or formats that there are not -> what to write
_INSTEAD = {
    "pack_": "Matrix.ss.import_csr(...) and its like, which copy the arrays into a new object",
    "unpack": "A.ss.export() copies the arrays",
    "export_": 'A.ss.export("csr") and its like',
    "import_": "import_any(...) takes every format that there is",
    "serialize": "pickle.dumps(A), or gb.io.save to a file",
    "deserialize": "pickle.loads, or gb.io.load from a file",
    "config": "nothing need be set: formats are chosen as they are needed",
}


class _Tools:
    """What `A.ss` and `v.ss` share."""

    def __init__(self, parent: Any = None):
        self._parent = parent

    def __getattr__(self, name: str) -> NoReturn:
        instead = next((hint for start, hint in _INSTEAD.items() if name.startswith(start)), None)
        raise no_attribute(f"{type(self).__name__!r} object", name, instead)

    @property
    def is_iso(self) -> bool:
        """Whether all values are one, and stored once."""
        return bool(self._parent._session.seen(self, "_iso"))

    @property
    def _iso(self) -> bool:
        store = self._parent._store
        return bool(store is not None and store.iso)

    @property
    def iso_value(self) -> Any:
        """The one value, as a Scalar. Raises ValueError unless is_iso."""
        if not self.is_iso:
            raise ValueError(message("an iso object: one value for all entries", repr(self._parent.name)))
        x = self._parent
        return (x.reduce("any") if x.ndim == 1 else x.reduce_scalar("any")).new()

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays on the devices, of all ranks together."""
        return int(self._parent._session.seen(self, "_bytes"))

    @property
    def _bytes(self) -> int:
        store = self._parent._store
        blocks = [] if store is None else store.blocks
        held: list[Any] = [getattr(block, slot, None) for block in blocks for slot in _slots(block)]
        own, ranks = sum(int(x.nbytes) for x in held if hasattr(x, "nbytes")), settings.ranks_in_force()
        return own if ranks is None else sum(ranks.gathered(own, "the bytes of an object"))

    def _items(self, seek: int) -> list:
        ids, vals = self._entries()
        start = max(0, len(vals) + seek) if seek < 0 else seek
        return list(zip(ids[start:], vals[start:].tolist(), strict=True))

    def _entries(self) -> tuple[list, np.ndarray]:
        *ids, vals = self._parent.to_coo()
        return (ids[0].tolist() if len(ids) == 1 else list(zip(*(i.tolist() for i in ids), strict=True))), vals

    def iteritems(self, seek: int = 0) -> Any:
        """(index, value) of a vector, (row, column, value) of a matrix, from the entry number `seek` on."""
        matrix = self._parent.ndim == 2
        return iter([(*where, value) if matrix else (where, value) for where, value in self._items(seek)])

    def iterkeys(self, seek: int = 0) -> Any:
        """Indices of entries, from the entry number `seek` on."""
        return iter([where for where, _ in self._items(seek)])

    def itervalues(self, seek: int = 0) -> Any:
        """Values of entries, from the entry number `seek` on."""
        return iter([value for _, value in self._items(seek)])

    def head(self, n: int = 10, dtype: Any = None, *, sort: bool = False) -> tuple:
        """The indices and values of the first n entries, as NumPy arrays."""
        return tuple(part[:n] for part in self._parent.to_coo(dtype))


def _slots(block: Any) -> list[str]:
    return [slot for cls in type(block).__mro__ for slot in getattr(cls, "__slots__", ())] or list(vars(block))


def _rank(lines: np.ndarray) -> np.ndarray:
    """The place of each entry in its row, for ascending rows."""
    starts = np.flatnonzero(np.r_[True, lines[1:] != lines[:-1]]) if len(lines) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(lines)])
    return np.arange(len(lines)) - np.repeat(starts, lengths)


def _lines(x: Any, order: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, value) by row; columns as rows unless `order` is by rows. A vector is one row."""
    if x.ndim == 1:
        ids, vals = x.to_coo()
        return np.zeros(len(ids), np.int64), ids, vals
    return (x if by_rows(order) else x.T).to_coo()


def _built(x: Any, order: str, lines: Any, where: Any, vals: Any, width: int | None = None, name: Any = None) -> Any:
    """An object of rows like `x` (columns, by `order`), of `width`."""
    if x.ndim == 1:
        return _kinds["vector"].from_coo(where, vals, vals.dtype, size=x.size if width is None else width, name=name)
    n = x.shape[0 if by_rows(order) else 1]
    width = x.shape[1 if by_rows(order) else 0] if width is None else width
    if by_rows(order):
        return _kinds["matrix"].from_coo(lines, where, vals, vals.dtype, nrows=n, ncols=width, name=name)
    return _kinds["matrix"].from_coo(where, lines, vals, vals.dtype, nrows=width, ncols=n, name=name)


def _arranged(lines: np.ndarray, vals: np.ndarray, how: str) -> np.ndarray:
    """A permutation of the entries that leaves rows together; equal values stay in order."""
    if how == "first":
        return np.arange(len(lines))
    if how == "last":
        return np.lexsort((-np.arange(len(lines)), lines))
    if how == "random":
        ranks, drawn = settings.ranks_in_force(), np.random.default_rng().random(len(lines))
        drawn = drawn if ranks is None else ranks.gathered(drawn, "what is chosen at random")[0]
        return np.lexsort((drawn, lines))
    if how in ("smallest", "largest"):
        rank = np.unique(vals, return_inverse=True)[1]  # NaN is the largest
        return np.lexsort((rank if how == "smallest" else -rank, lines))
    raise ValueError(message("how: random, first, last, smallest or largest", repr(how)))


def _selectk(x: Any, how: str, k: int, order: str, name: Any) -> Any:
    lines, where, vals = _lines(x, order)
    chosen = _arranged(lines, vals, how)
    chosen = np.sort(chosen[_rank(lines[chosen]) < checked_size(k)])
    return _built(x, order, lines[chosen], where[chosen], vals[chosen], name=name)


def _compactify(x: Any, how: str, k: int | None, order: str, reverse: bool, asindex: bool, name: Any) -> Any:
    lines, where, vals = _lines(x, order)
    chosen = _arranged(lines, vals, how)
    place = _rank(lines[chosen])
    width = (int(place.max()) + 1 if len(place) else 0) if k is None else checked_size(k)
    chosen, place = chosen[place < width], place[place < width]
    if reverse:
        counts = np.bincount(lines[chosen], minlength=1)
        place = counts[lines[chosen]] - 1 - place
    what = (where.astype(np.uint64) if asindex else vals)[chosen]
    return _built(x, order, lines[chosen], place, what, width, name)


def _sorted(x: Any, op: Any, order: str, values: bool, permutation: bool) -> tuple:
    name = str(getattr(op, "name", op)).removeprefix("is")
    name = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge"}.get(name, name)
    if name not in ("lt", "gt", "le", "ge"):
        raise ValueError(message("an ordering such as binary.lt or binary.gt", repr(op)))
    lines, where, vals = _lines(x, order)
    chosen = _arranged(lines, vals, "smallest" if name[0] == "l" else "largest")
    place = _rank(lines)
    first = _built(x, order, lines, place, vals[chosen]) if values else None
    second = _built(x, order, lines, place, where[chosen].astype(np.uint64)) if permutation else None
    return first, second


def _scanned(x: Any, op: Any, order: str, name: Any) -> Any:
    """Every entry replaced by the reduction of its row up to it."""
    monoid = reducer(op, x.dtype)
    combine = to_python(monoid.program)
    lines, where, vals = _lines(x, order)
    out = vals.astype(monoid.dtype.np_type)
    for k in np.flatnonzero(lines[1:] == lines[:-1]):
        out[k + 1] = combine(out[k], out[k + 1])
    return _built(x, order, lines, where, out, name=name)


def _chunks(given: Any, n: int) -> list[int]:
    """Sizes of the pieces of a dimension: one size for all, a list of them (one None: the rest), or None."""
    if given is None:
        return [n]
    if not _sized(given):
        step = checked_size(given)
        if not step:
            raise ValueError(message("chunks of at least 1", 0))
        return [min(step, n - start) for start in range(0, n, step)] or [0]
    parts = list(given)
    sizes = [0 if size is None else checked_size(size) for size in parts]
    if len(rest := [at for at, size in enumerate(parts) if size is None]) > 1:
        raise TypeError(message("at most one None, the rest, in chunks", parts))
    if rest:
        if sum(sizes) > n:
            raise ValueError(message(f"chunks of at most {n} beside None", sum(sizes)))
        sizes[rest[0]] = n - sum(sizes)
    if sum(sizes) != n:
        raise DimensionMismatch(message(f"chunks of {n} in all", sum(sizes)))
    return sizes


def _sized(chunks: Any) -> bool:
    return isinstance(chunks, (list, tuple)) or np.ndim(chunks) > 0


class MatrixTools(_Tools):
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
        A, pair = self._parent, chunks if _sized(chunks) else (chunks, chunks)
        if len(pair) != 2:
            raise ValueError(message("chunks of rows and of columns", f"{len(pair)} of them"))
        tops, lefts = (np.cumsum([0, *_chunks(c, n)]).tolist() for c, n in zip(pair, A.shape, strict=True))
        name = A.name if name is None else name
        return [
            [A[a:b, c:d].new(name=f"{name}_{i}x{j}") for j, (c, d) in enumerate(zip(lefts, lefts[1:], strict=False))]
            for i, (a, b) in enumerate(zip(tops, tops[1:], strict=False))
        ]

    def flatten(self, order: str = "rowwise", *, name: str | None = None) -> Any:
        """A vector of nrows * ncols: rows (or columns) one after another."""
        A = self._parent
        lines, where, vals = _lines(A, order)
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
        made = _folded(flat, nrows, ncols, order, name)
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
        return _selectk(self._parent, how, k, order, name)

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
        return _compactify(self._parent, how, k, order, reverse, asindex, name)

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
        return _sorted(self._parent, op, order, values, permutation)

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
        return _scanned(self._parent, op, order, name)

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


class VectorTools(_Tools):
    """The helpers `v.ss` of a vector; as `Vector.ss` the import functions."""

    @property
    def format(self) -> str:
        """The form in which the vector lies on the devices now: "sparse", "bitmap" or "full"."""
        return str(self._parent._session.seen(self, "_form"))

    @property
    def _form(self) -> str:
        store = self._parent._store
        return store.form if store is not None and store.form in ("bitmap", "full") else "sparse"

    def build_diag(self, matrix: Any, k: int = 0) -> None:
        """The parent becomes a diagonal of a matrix."""
        self._parent << of_ndim(matrix, 2)._computed().diag(k)

    def build_scalar(self, indices: Any, value: Any) -> None:
        """Fill an empty vector with one value at the given indices."""
        self._parent.build(indices, value)

    def concat(self, tiles: Any) -> None:
        """The parent becomes these vectors, one after another."""
        self._parent << concat(tiles, self._parent.dtype)

    def split(self, chunks: Any, *, name: str | None = None) -> list:
        """Pieces of the given size, or sizes; one None in a list of them is the rest."""
        v = self._parent
        ends, name = np.cumsum([0, *_chunks(chunks, v.size)]).tolist(), v.name if name is None else name
        return [v[a:b].new(name=f"{name}_{i}") for i, (a, b) in enumerate(zip(ends, ends[1:], strict=False))]

    def reshape(self, nrows: int, ncols: int | None = None, order: str = "rowwise", *, name: Any = None) -> Any:
        """A matrix filled by rows (or columns) with the vector (one size may be -1)."""
        return _folded(self._parent, nrows, ncols, order, name)

    def selectk(self, how: str, k: int, *, name: str | None = None) -> Any:
        """At most k entries.

        Parameters
        ----------
        how : str
            "first", "last", "smallest", "largest" (of equal values the first), or "random".
        k : int
            The number of entries.
        name : str, optional
            The vector's name.

        Returns
        -------
        Vector
            A new one, of this size.
        """
        return _selectk(self._parent, how, k, "rowwise", name)

    def compactify(
        self, how: str = "first", size: int | None = None, *, reverse: bool = False, asindex: bool = False,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """The first, last, smallest, largest or random entries, moved to the start."""
        return _compactify(self._parent, how, size, "rowwise", reverse, asindex, name)

    def sort(self, op: Any = "lt", *, values: bool = True, permutation: bool = True) -> tuple[Any, Any]:
        """The values in order, from the start, and where they were (UINT64); see `A.ss.sort`."""
        return _sorted(self._parent, op, "rowwise", values, permutation)

    def scan(self, op: Any = "plus", *, name: str | None = None) -> Any:
        """Each entry becomes the reduction of the entries up to it."""
        return _scanned(self._parent, op, "rowwise", name)

    def export(self, format: str | None = None, *, sort: bool = False, raw: bool = False, **opts: Any) -> dict:
        """The content as NumPy arrays of a format: sparse (default), bitmap or full; see `A.ss.export`."""
        v, format = self._parent, "sparse" if format is None else checked_text(format, "a format").lower()
        ids, vals = v.to_coo()
        iso = self.is_iso and len(vals) > 0
        if format == "sparse":
            made = {"size": v.size, "indices": ids, "values": vals[:1] if iso else vals, "sorted_index": True}
            made["nvals"] = len(ids)
        elif format == "bitmap":
            room_for(v.shape, vals.dtype)
            bitmap, dense = np.zeros(v.size, bool), np.zeros(v.size, vals.dtype)
            bitmap[ids], dense[ids] = True, vals
            made = {"bitmap": bitmap, "values": vals[:1] if iso else dense, "nvals": len(ids)}
        elif format == "full":
            made = {"size": v.size, "values": vals[:1] if iso else v.to_dense()}
        else:
            raise ValueError(message("a format among sparse, bitmap, full", format))
        return made | {"format": format, "is_iso": iso}

    @classmethod
    def import_sparse(cls, *, size: int, indices: Any, values: Any, nvals: int | None = None, **opts: Any) -> Any:
        """A vector of the arrays of `export("sparse")`; see `Vector.from_coo`."""
        vals, dtype = imported(values, opts, "sparse")
        if nvals is not None:
            indices, vals = first(nvals, indices), first_values(nvals, vals)
        return _kinds["vector"].from_coo(indices, vals, dtype, size=size, name=opts.get("name"))

    @classmethod
    def import_bitmap(cls, *, bitmap: Any, values: Any, size: int | None = None, nvals: Any = None, **opts: Any) -> Any:
        """A vector of the values where `bitmap` is true."""
        keep, (vals, dtype) = array_of(bitmap).astype(bool), imported(values, opts, "bitmap")
        n = len(keep) if size is None else checked_size(size)
        ids, vals = np.flatnonzero(first(n, keep)), first_values(n, vals)
        kept = vals if np.ndim(vals) == 0 else vals[ids]
        return _kinds["vector"].from_coo(ids, kept, dtype, size=n, name=opts.get("name"))

    @classmethod
    def import_full(cls, values: Any, *, size: int | None = None, **opts: Any) -> Any:
        """A vector with a value at every place; `size` is needed beside one value."""
        vals, dtype = imported(values, opts, "full")
        if np.ndim(vals):
            vals = vals if size is None else first(size, vals)
            return _kinds["vector"].from_dense(vals, dtype=dtype, name=opts.get("name"))
        if size is None:
            raise TypeError(message("a size beside one value", "none"))
        return _kinds["vector"].from_scalar(vals, size, dtype, name=opts.get("name"))

    @classmethod
    def import_any(cls, *, format: str | None = None, **given: Any) -> Any:
        """A vector of the arrays of any format, known by `format` or by the arrays' names."""
        names = {name for name, value in given.items() if value is not None}
        guess = "bitmap" if "bitmap" in names else "sparse" if "indices" in names else "full"
        return by_format(cls, format or guess, given)


def _folded(flat: Any, nrows: int, ncols: int | None, order: str, name: Any) -> Any:
    """A vector as a matrix, filled by rows or columns."""
    shape = (nrows, ncols) if ncols is not None else nrows if isinstance(nrows, (tuple, list)) else (nrows,)
    if len(shape) != 2:
        raise ValueError(message("a shape (nrows, ncols) to reshape into", shape))
    nrows, ncols = integral(shape[0], "nrows"), integral(shape[1], "ncols")
    if min(nrows, ncols) < -1 or nrows == ncols == -1:
        raise ValueError(message("sizes to reshape into, of which one may be -1", f"({nrows}, {ncols})"))
    nrows = flat.size // max(ncols, 1) if nrows == -1 else nrows
    ncols = flat.size // max(nrows, 1) if ncols == -1 else ncols
    if nrows * ncols != flat.size:
        raise ValueError(message(f"a shape of {flat.size} places to reshape into", f"({nrows}, {ncols})"))
    ids, vals = flat.to_coo()
    i, j = np.divmod(ids, ncols) if by_rows(order) else np.divmod(ids, nrows)[::-1]
    return _kinds["matrix"].from_coo(i, j, vals, flat.dtype, nrows=nrows, ncols=ncols, name=name)
