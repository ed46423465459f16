"""Rows of matrices on one device, in terms of its array module: take, keep, place and sort entries.

Nothing here knows types or operators; values only move. `Rows` has int64 offsets or those of a block; results have
int64 offsets, and `store_of` gives all blocks of a matrix the same narrow type.
"""

from typing import Any, NamedTuple

import numpy as np

from ...distribute import needs, transport
from ...distribute.blocks import MatrixStore, VectorBlock, VectorStore, assembled, matrix_block, offset_type
from ...distribute.needs import Dense
from ...distribute.partition import RowMap


class Rows(NamedTuple):
    """CSR arrays in one device's memory; stride 0: one value for all entries."""

    indptr: Any
    cols: Any
    vals: Any
    stride: int

    @property
    def n(self) -> int:
        return len(self.indptr) - 1


def read(device: Any, buffer: Any, at: int) -> int:
    """One integer of a buffer on the host."""
    return int(device.get(buffer[at:][:1])[0])


def offsets(device: Any, lengths: Any) -> tuple[Any, int]:
    """(int64 offsets, their last) of row lengths."""
    xp = device.xp
    indptr = device.zeros(len(lengths) + 1, np.int64)
    xp.cumsum(lengths, out=indptr[1:])
    return indptr, read(device, indptr, -1)


def entries_of(device: Any, block: VectorBlock) -> tuple[Any, Any]:
    """(local rows ascending, values or the one value) of a block."""
    xp = device.xp
    if block.slots is not None:
        rows = block.slots[: read(device, block.count, 0)]
        order = device.order(rows)
        return rows[order], block.vals[: len(rows)][order] if block.stride else block.vals
    if block.words is None:
        return xp.arange(block.n), block.vals[: block.n] if block.stride else block.vals
    bits = xp.unpackbits(block.words.view(np.uint8), bitorder="little")[: block.n]
    rows = xp.flatnonzero(bits)
    return rows, block.vals[rows] if block.stride else block.vals


def take_rows(device: Any, rows: Rows, slots: Any) -> Rows:
    """Row k of the result is row slots[k] of `rows`, empty where that is -1."""
    xp = device.xp
    if not len(slots) or not rows.n:
        return Rows(device.zeros(len(slots) + 1, np.int64), rows.cols[:0], rows.vals[: 1 - rows.stride], rows.stride)
    begins = rows.indptr[slots].astype(np.int64)
    lengths = xp.where(slots >= 0, rows.indptr[slots + 1] - begins, 0)
    indptr, total = offsets(device, lengths)
    source = xp.arange(total) + (begins - indptr[:-1])[device.owners(indptr, total)]
    return Rows(indptr, rows.cols[source], rows.vals[source] if rows.stride else rows.vals, rows.stride)


def keep_entries(device: Any, rows: Rows, keep: Any) -> Rows:
    """The entries where `keep` is true."""
    indptr, _ = offsets(device, keep)
    vals = rows.vals[: len(keep)][keep] if rows.stride else rows.vals
    return Rows(indptr[rows.indptr], rows.cols[keep], vals, rows.stride)


def by_row_and_column(device: Any, n: int, rows: Any, cols: Any, width: int) -> tuple[Any, Any, Any]:
    """(order, first, indptr): the stable order of entries by row and column, which of them in that order are the first
    of their place, and the offsets of rows of n when only those are kept."""
    xp = device.xp
    keys = rows.astype(np.int64) * width + cols
    order = device.order(keys)
    keys = keys[order]
    first = xp.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    return order, first, xp.searchsorted(keys[first], xp.arange(n + 1) * width)


def last_of(device: Any, first: Any) -> Any:
    """Which entries of sorted runs are the last of theirs."""
    last = device.xp.ones(len(first), bool)
    last[:-1] = first[1:]
    return last


def store_of(session: Any, rowmap: RowMap, colmap: RowMap, dtype: Any, iso: bool, parts: list[Rows]) -> MatrixStore:
    """The matrix whose blocks have these rows."""
    ptr, idx = offset_type(max(len(part.cols) for part in parts)), colmap.slot_type()
    blocks = []
    for device, part in zip(session.devices, parts, strict=False):
        vals = part.vals if len(part.vals) else device.zeros(1, dtype.np_type)
        indptr, cols = part.indptr.astype(ptr, copy=False), part.cols.astype(idx, copy=False)
        blocks.append(matrix_block(device, indptr, cols, vals, 0 if iso else 1, len(cols)))
    return assembled(rowmap, colmap, dtype, iso, blocks)


def whole_vector(session: Any, store: VectorStore, d: int) -> Dense:
    """The whole of a full or bitmap vector on device d."""
    dense, transfers = needs.whole_vector(store, session.devices, d)
    session.account(d, *transport.carry(session.devices, transfers))
    return dense


def gathered(session: Any, store: MatrixStore, d: int) -> Rows:
    """All rows of a matrix on device d, by slot (padding is empty rows)."""
    pieces, transfers = needs.whole_matrix(store, session.devices, d)
    session.account(d, *transport.carry(session.devices, transfers))
    map = store.rowmap
    if map.p == 1:
        return Rows(pieces.offsets[0], pieces.cols, pieces.vals, pieces.stride)
    indptr, above = session.devices[d].empty(map.nslots + 1, offset_type(store.nvals)), 0
    for b, (offsets, length) in enumerate(zip(pieces.offsets, store.lengths, strict=True)):
        lo, hi, n = map.first_slot(b), map.first_slot(b + 1), map.rows[b]
        indptr[lo : lo + n + 1] = offsets + indptr.dtype.type(above)
        above += length
        indptr[lo + n : hi + 1] = above
    return Rows(indptr, pieces.cols, pieces.vals, pieces.stride)


def slots_of(device: Any, map: RowMap, users: Any) -> Any:
    """Slots of user ids on the device; of ids outside 0 .. n - 1 it is -1."""
    if map.p == 1:
        slots = users
    else:
        starts, bounds = map.tables(device)
        block = (device.xp.searchsorted(bounds, users, side="right") - 1).clip(0, map.p - 1)
        slots = users + (starts[:-1] - bounds[:-1])[block]
    return device.xp.where((users >= 0) & (users < map.n), slots, -1)


def users_of(device: Any, map: RowMap, slots: Any) -> Any:
    """User ids (int64) of slots on the device."""
    slots = slots.astype(np.int64)
    if map.p == 1:
        return slots
    starts, bounds = map.tables(device)
    return slots + (bounds[:-1] - starts[:-1])[device.xp.searchsorted(starts, slots, side="right") - 1]
