"""Vectors and matrices as row blocks. A block's buffers are private to its device, and the owner writes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from ..device.remote import AWAY
from ..errors import NotImplementedException, message
from .rowmap import RowMap, Task

KNOWN = ("full", "bitmap", "list")  # forms that every step takes; for steps that don't take others, plans make bitmaps


class VectorBlock:
    """Rows of one owner. Form `full`: vals. `bitmap`: vals and words. `list`: slots and vals, count[0] entries. stride
    0: one value for all.
    `count` holds the number of entries, on the device (unused in form full). Lists and blocks of one value are never
    changed, so vectors share them; the others are, in place, when their vector is an output."""

    __slots__ = ("n", "vals", "stride", "words", "slots", "count")

    def __init__(self, n: int, vals: Any, stride: int, words: Any = None, slots: Any = None, count: Any = None):
        self.n, self.vals, self.stride, self.words, self.slots, self.count = n, vals, stride, words, slots, count

    @property
    def listed(self) -> tuple[Any, Any, Any, int]:
        """A list, as kernels take it."""
        return self.count, self.slots, self.vals, self.stride

    @property
    def full(self) -> bool:
        """Whether it is of form `full`."""
        return self.words is None and self.slots is None


class VectorStore:
    """A vector's content: one block for each device, all of one form."""

    __slots__ = ("map", "dtype", "form", "iso", "blocks", "nvals", "__weakref__")

    def __init__(
        self, map: RowMap, dtype: Any, form: str, iso: bool, blocks: list[VectorBlock], nvals: int | None = None
    ):
        self.map, self.dtype, self.form, self.iso, self.blocks = map, dtype, form, iso, blocks
        self.nvals = map.n if form == "full" else nvals  # None: only the devices know


class MatrixBlock:
    """CSR rows of one owner: offsets local to the block, columns as global slots, ascending in a row."""

    __slots__ = (
        *("n", "indptr", "cols", "vals", "stride", "nnz", "empty_rows", "whole", "views", "slices"),
        "__weakref__",
    )

    def __init__(self, n: int, indptr: Any, cols: Any, vals: Any, stride: int, nnz: int, empty_rows: bool):
        self.n, self.indptr, self.cols, self.vals, self.stride, self.nnz = n, indptr, cols, vals, stride, nnz
        self.empty_rows, self.whole = empty_rows, True  # whole: not a part of another
        self.views: dict[Any, Any] = {}  # of the pattern, prepared by backends
        self.slices: dict[Any, list[Any]] = {}  # values in the order of views that have another one

    @property
    def csr(self) -> tuple[Any, Any, Any, int]:
        """As kernels take it."""
        return self.indptr, self.cols, self.vals, self.stride

    def with_values(self, vals: Any, stride: int) -> "MatrixBlock":
        """The same pattern, shared, with other values."""
        made = MatrixBlock(self.n, self.indptr, self.cols, vals, stride, self.nnz, self.empty_rows)
        made.views = self.views
        return made

    def part(self, lo: int, hi: int) -> "MatrixBlock":
        """Rows lo .. hi - 1: views, with what is known of the rows as a whole scaled down."""
        if (lo, hi) == (0, self.n):
            return self
        nnz = self.nnz * (hi - lo) // max(self.n, 1)
        made = MatrixBlock(hi - lo, self.indptr[lo : hi + 1], self.cols, self.vals, self.stride, nnz, self.empty_rows)
        made.whole = False
        return made

    def same_pattern(self, other: "MatrixBlock") -> bool:
        """Whether they share one."""
        return self.indptr is other.indptr and self.cols is other.cols


class MatrixNumbers(NamedTuple):
    """What is known of a matrix wherever it is used, whoever holds its blocks: maps, types, entries of each block."""

    rowmap: RowMap
    colmap: RowMap
    dtype: Any
    iso: bool
    ptr: str  # type of row offsets, in all blocks
    lengths: tuple[int, ...]
    empty_rows: bool  # whether any row has no entry


class MatrixStore:
    """A matrix's content: its numbers, and the blocks. `transposed` is the other orientation once it was asked for;
    `symmetric` (None: not known) shares one."""

    __slots__ = (
        *("numbers", "rowmap", "colmap", "dtype", "iso", "ptr", "idx", "lengths", "empty_rows", "nvals", "blocks"),
        *("transposed", "symmetric", "diagonal", "entries", "replica", "pulls", "halo", "rented", "ways", "sums"),
        *("asked", "near", "shared", "lost", "copies", "hubs", "missed", "apart", "successor", "hollow"),
        "__weakref__",
    )

    def __init__(self, numbers: MatrixNumbers, blocks: list[MatrixBlock]):
        self.numbers, self.blocks = numbers, blocks
        self.rowmap, self.colmap, self.dtype, self.iso, self.ptr, self.lengths, self.empty_rows = numbers
        self.nvals, self.idx = sum(numbers.lengths), numbers.colmap.slot_type()
        self.transposed: MatrixStore | None = None
        self.symmetric: bool | None = None
        self.diagonal: bool | None = None  # whether it has every entry of its diagonal, and no other; None: not known
        self.hollow = False  # whether it is known to have no entry on its diagonal
        self.replica: MatrixStore | None = None  # whole on the first device
        self.rented = 0.0  # seconds lost by going without `transposed`
        self.shared: Any = None  # who computes which rows of a pull, if not their owners (engine/sharing.py)
        self.lost = 0.0  # seconds lost by going without `shared`
        self.copies: dict[tuple[int, int], MatrixBlock] = {}  # by (device, block): for frontiers that are dealt out
        self.hubs: Any = None  # where these have rows of hubs alone, which these are (engine/hubs.py)
        self.missed = 0.0  # seconds lost by going without them; less than 0: there was no room
        self.successor: MatrixStore | None = None  # the same on other rows (engine/moving.py)
        self.apart: Any = None  # with rows of delegates where their columns lie (engine/matrix/separate.py)
        self.ways: dict[Any, tuple] = {}  # how small products with it go (engine/direction.py)
        self.sums: dict[Any, tuple] = {}  # what all its values were reduced to, by operator; they never change
        self.pulls, self.halo = 0, None  # from full vectors, and what the second one finds (distribute/halo.py)
        self.asked = 0  # pulls that read x by use, and
        self.near: Any = None  # what these find; False: it does not pay
        self.entries: RowMap | None = None  # the values as the rows of a vector, made at the first reduction

    @property
    def entry_bytes(self) -> int:
        """Of a column slot, and of a value if each entry has its own."""
        return np.dtype(self.idx).itemsize + (0 if self.iso else self.dtype.np_type.itemsize)


def assembled(
    rowmap: RowMap, colmap: RowMap, dtype: Any, iso: bool, blocks: list[MatrixBlock], allgather: Callable[..., Any]
) -> MatrixStore:
    """A matrix of blocks that have just been made; `allgather` completes what is known of them (Context.allgather)."""
    known = [(block.nnz, block.empty_rows, block.indptr is not None and block.indptr.dtype.name) for block in blocks]
    lengths, empty, ptr = zip(*allgather(rowmap.tasks, known, "a new matrix"), strict=True)
    return MatrixStore(MatrixNumbers(rowmap, colmap, dtype, iso, ptr[0], lengths, any(empty)), blocks)


def revalued(pattern: MatrixStore, dtype: Any, iso: bool, blocks: list[MatrixBlock]) -> MatrixStore:
    """The pattern of a matrix with other values."""
    made = MatrixStore(pattern.numbers._replace(dtype=dtype, iso=iso), blocks)
    made.hollow = pattern.hollow
    return made


def as_symmetric(made: MatrixStore, of: MatrixStore) -> MatrixStore:
    """A matrix made of another one such that it equals its transpose if that one does."""
    made.symmetric = of.symmetric or None
    return made


def offset_type(nnz: int) -> str:
    """Row offsets are 32-bit while the entries of every block fit (one type for all blocks: kernels are compiled for
    it)."""
    return "int32" if nnz < 2**31 else "int64"


def split_vector(
    map: RowMap,
    dtype: Any,
    devices: Sequence[Device],
    ids: np.ndarray,
    vals: np.ndarray,
    iso: bool,
    own: bool = False,
    nvals: int | None = None,
) -> VectorStore:
    """Distribute host entries (ids ascending and unique; one value each, or a single one if iso) as lists, or as full
    where dense. `own`: nobody else keeps the values, so blocks may be parts of them. `nvals`: of all ranks, where these
    are the entries of this one's rows."""
    whole, nvals = nvals is None, len(ids) if nvals is None else nvals
    dense = nvals == map.n and map.n > 0
    if map.order is not None:
        order = map.order if dense and whole else np.argsort(map.places(ids))
        ids, vals, own = map.places(ids)[order], vals if iso else vals[order], True
    put = handed_over if own and not iso else lambda device, array: device.put(array)
    cuts = map.bounds if dense and whole else np.searchsorted(ids, map.bounds)
    blocks = []
    for b, device in enumerate(devices[: map.p]):
        if device.kind == "remote":
            blocks.append(AWAY)
            continue
        lo, hi = cuts[b], cuts[b + 1]
        mine = put(device, vals if iso else vals[lo:hi]) if iso or hi > lo else device.empty(1, vals.dtype)
        if dense:
            blocks.append(VectorBlock(map.rows[b], mine, 0 if iso else 1))
        else:
            slots = handed_over(device, (ids[lo:hi] - map.bounds[b]).astype(map.slot_type()))
            blocks.append(
                VectorBlock(map.rows[b], mine, 0 if iso else 1, slots=slots, count=device.full(1, hi - lo, np.int64))
            )
    return VectorStore(map, dtype, "full" if dense else "list", iso, blocks, nvals)


def split_matrix(
    rowmap: RowMap,
    colmap: RowMap,
    dtype: Any,
    session: Any,
    indptr: np.ndarray,
    cols: np.ndarray,
    vals: np.ndarray,
    iso: bool,
    own: bool = False,
) -> MatrixStore:
    """Distribute a host CSR (columns as user ids, ascending in a row; one value an entry, or a single one if iso), of
    which a rank needs the entries of its own rows. `session`: has `devices`, `over`, `allgather` (engine/context.py).

    `own`: nobody else keeps the arrays, so blocks may be parts of them."""
    slots = cols.astype(colmap.slot_type(), copy=not own)
    colmap.to_slots(slots)
    own = own or rowmap.order is not None  # what is taken of the rows in another order is a copy
    put = handed_over if own and not iso else lambda device, array: device.put(array)
    lengths = np.diff(indptr)
    counts = [int(lengths[rowmap.part(task.block)].sum()) for task in rowmap.tasks]
    ptr = offset_type(max(session.allgather(rowmap.tasks, counts, "entries of new rows")))
    del lengths

    def block(task: Task) -> MatrixBlock:
        device = session.devices[task.device]
        local, (columns, *rest) = taken_rows(indptr, rowmap.part(task.block), slots, *() if iso else (vals,))
        local, nnz, mine = local.astype(ptr, copy=False), len(columns), vals if iso else rest[0]
        lengths, offsets = np.diff(local), handed_over(device, local)
        held = put(device, mine) if len(mine) else device.zeros(1, vals.dtype)
        columns = handed_over(device, columns) if own else device.put(columns)
        del local, rest, mine
        if colmap.order is not None:
            columns, held = ascending(device, offsets, columns, held, not iso, colmap.nslots)
        return matrix_block(device, offsets, columns, held, 0 if iso else 1, nnz, lengths)

    return assembled(rowmap, colmap, dtype, iso, session.over(rowmap.tasks, block, 0.0), session.allgather)


def taken_rows(indptr: np.ndarray, rows: Any, *entries: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows of a host CSR, a slice or where they are: offsets, and what the arrays have for their entries."""
    if isinstance(rows, slice):
        first, last = indptr[rows.start], indptr[rows.stop]
        return indptr[rows.start : rows.stop + 1] - first, [array[first:last] for array in entries]
    begins, offsets = indptr[rows], np.zeros(len(rows) + 1, np.int64)
    lengths = indptr[1:][rows] - begins
    np.cumsum(lengths, out=offsets[1:])
    begins -= offsets[:-1]
    places = np.repeat(begins, lengths)
    places += np.arange(offsets[-1])
    return offsets, [array[places] for array in entries]


def ascending(device: Device, indptr: Any, cols: Any, vals: Any, valued: bool, width: int) -> tuple[Any, Any]:
    """Columns, below `width`, ascending in each row, and the values along with them (`valued`: one an entry)."""
    n, idx, ptr = len(indptr) - 1, cols.dtype, indptr.dtype
    if not len(cols):
        return cols, vals
    begins, rows, moved = device.transpose(n, width, indptr, cols, vals[: len(cols)] if valued else None)
    _, cols, moved = device.transpose(width, n, begins.astype(ptr, copy=False), rows.astype(idx, copy=False), moved)
    return cols.astype(idx, copy=False), moved if valued else vals


def handed_over(device: Device, array: np.ndarray) -> Any:
    """A host array that nobody else keeps as the device's: on the CPU as it is, unless it must be padded."""
    return array if device.shares_memory and array.itemsize >= 4 else device.put(array)


def matrix_block(
    device: Device, indptr: Any, cols: Any, vals: Any, stride: int, nnz: int, lengths: Any = None
) -> MatrixBlock:
    """A block with the facts of its row lengths (taken from `indptr` unless the host has them)."""
    n = len(indptr) - 1
    if n >= 2**31:
        raise NotImplementedException(message("blocks of fewer than 2**31 rows", n, "use more devices"))
    if nnz < n:
        return MatrixBlock(n, indptr, cols, vals, stride, nnz, True)
    empty = device.has_empty(indptr) if lengths is None else bool((lengths == 0).any())
    return MatrixBlock(n, indptr, cols, vals, stride, nnz, bool(n) and empty)
