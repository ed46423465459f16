"""Helpers under the name that python-graphblas gives SuiteSparse's: `gb.ss`, and what `A.ss` and `v.ss` share.

Imports, exports, and what orders the entries of a row go through the host.
"""

from typing import Any, NoReturn

import numpy as np

from .. import settings
from ..errors import DimensionMismatch, message, no_attribute
from .arrays import checked_size
from .compose import by_rows, integral
from .expr import Expression, _kinds, computed, is_tensor, new_like
from .typed import dtype_or


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


class ObjectTools:
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


def chunk_sizes(given: Any, n: int) -> list[int]:
    """Sizes of the pieces of a dimension: one size for all, a list of them (one None: the rest), or None."""
    if given is None:
        return [n]
    if not is_list(given):
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


def is_list(chunks: Any) -> bool:
    """Whether several sizes of chunks are given."""
    return isinstance(chunks, (list, tuple)) or np.ndim(chunks) > 0


def folded(flat: Any, nrows: int, ncols: int | None, order: str, name: Any) -> Any:
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
