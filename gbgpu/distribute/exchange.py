"""Movements between devices. They copy bytes and never combine: arrivals are combined by a kernel step at the owner.

Each function works for one receiving device and returns what it received and the bytes that came from other devices."""

from typing import Any, NamedTuple

import numpy as np

from .blocks import MatrixStore, VectorStore, matrix_block, offset_type
from .partition import RowMap


class Dense(NamedTuple):
    """A whole vector over the slots of its map, in one device's memory. words is None if every row is present."""

    vals: Any
    stride: int
    words: Any


class Bins(NamedTuple):
    """Entries that one device made, sorted by owner: owner b's lie at starts[b], as many as counts[b]."""

    slots: Any
    vals: Any
    counts: Any


class Message(NamedTuple):
    """Entries for one owner: local rows, values, and how many (on the device)."""

    slots: Any
    vals: Any
    count: Any


def all_gather(store: VectorStore, devices: list, me: int) -> tuple[Dense, int]:
    """The whole of a full or bitmap vector on device `me`. With one device its own buffers serve."""
    blocks, map = store.blocks, store.map
    if map.p == 1:
        return Dense(blocks[0].vals, blocks[0].stride, blocks[0].words), 0
    device, moved = devices[me], 0
    vals = blocks[me].vals if store.iso else device.empty(map.nslots, store.dtype.np_type)
    words = None if store.form == "full" else device.empty(map.nslots // 64, np.int64)
    for b, block in enumerate(blocks):
        if block.n == 0:
            continue
        lo = map.first_slot(b)
        pieces = [] if store.iso else [(vals[lo : lo + block.n], block.vals[: block.n])]
        if words is not None:
            pieces.append((words[lo // 64 : (lo + block.n + 63) // 64], block.words))
        for target, source in pieces:
            device.copy(target, source)
            moved += target.nbytes if b != me else 0
    return Dense(vals, 0 if store.iso else 1, words), moved


def collect(
    bins: list[Bins], map: RowMap, devices: list, me: int, iso: bool
) -> tuple[list[Message], int, list[tuple[Any, int]]]:
    """The messages for device `me`: its own part first, as it lies; then those of the others that are not known to be
    empty.
    Also the bytes moved, and for messages whose length only the devices know (count, bytes an entry)."""
    lo, hi = map.first_slot(me), map.first_slot(me + 1)
    device, messages, moved, unknown = devices[me], [], 0, []
    for b in (me, *(b for b in range(map.p) if b != me)):
        slots, vals, counts = bins[b]
        count = counts[me : me + 1]
        known = devices[b].peek(count)
        if known is not None and known[0] == 0:
            continue
        message = Message(slots[lo:hi], vals if iso else vals[lo:hi], count)
        if b != me:
            size, width = hi - lo if known is None else int(known[0]), slots.itemsize + (0 if iso else vals.itemsize)
            message = _fetch(device, message, size, iso)
            moved += count.nbytes + (0 if known is None else size * width)
            if known is None:
                unknown.append((message.count, width))
        messages.append(message)
    return messages, moved, unknown


def _fetch(device: Any, message: Message, size: int, iso: bool) -> Message:
    """A copy in the receiver's memory, with room for `size` entries; how many there are stays on the devices where the
    host doesn't know."""
    count = device.empty(1, np.int64)
    device.copy(count, message.count)
    slots = device.empty(size, message.slots.dtype)
    device.copy_counted(slots, message.slots, count)
    if iso:
        return Message(slots, message.vals, count)
    vals = device.empty(size, message.vals.dtype)
    device.copy_counted(vals, message.vals, count)
    return Message(slots, vals, count)


def all_gather_rows(store: MatrixStore, devices: list, me: int) -> tuple[tuple[Any, Any, Any, int], int]:
    """All rows of a matrix on device `me`, by slot (padding is empty rows), as (indptr, cols, vals, stride)."""
    blocks, map, device = store.blocks, store.rowmap, devices[me]
    if map.p == 1:
        return (blocks[0].indptr, blocks[0].cols, blocks[0].vals, blocks[0].stride), 0
    indptr = device.empty(map.nslots + 1, offset_type(store.nvals))
    cols, above, moved = device.empty(store.nvals, store.idx), 0, 0
    vals = blocks[me].vals if store.iso else device.empty(max(store.nvals, 1), store.dtype.np_type)
    for b, block in enumerate(blocks):
        lo, hi, pieces = map.first_slot(b), map.first_slot(b + 1), [(cols, block.cols)]
        if not store.iso:
            pieces.append((vals, block.vals[: block.nnz]))
        for target, source in pieces:
            device.copy(target[above : above + block.nnz], source)
        offset = device.empty(block.n + 1, block.indptr.dtype)
        device.copy(offset, block.indptr)
        indptr[lo : lo + block.n + 1] = offset + indptr.dtype.type(above)
        above += block.nnz
        indptr[lo + block.n : hi + 1] = above
        moved += 0 if b == me else offset.nbytes + sum(source.nbytes for _, source in pieces)
    return (indptr, cols, vals, 0 if store.iso else 1), moved


def transpose(store: MatrixStore, devices: list) -> MatrixStore:
    """The other orientation, distributed: each device collects the entries of its columns from the row blocks, in the
    order of rows."""
    devices = devices[: store.rowmap.p]
    parts = [_by_column(store, device, b) for b, device in enumerate(devices)]
    if store.rowmap.p == 1:
        (indptr, cols, vals), block = parts[0], store.blocks[0]
        blocks = [matrix_block(devices[0], indptr, cols, vals, block.stride, block.nnz)]
    else:
        offsets = [device.get(part[0]).astype(np.int64) for device, part in zip(devices, parts, strict=True)]
        ptr = offset_type(store.nvals)
        blocks = [_merge_columns(store, parts, offsets, ptr, device, me) for me, device in enumerate(devices)]
    return MatrixStore(store.colmap, store.rowmap, store.dtype, store.iso, blocks)


def _by_column(store: MatrixStore, device: Any, b: int) -> tuple[Any, Any, Any]:
    """Block b as CSR of its transpose over all column slots; its columns are global row slots."""
    block = store.blocks[b]
    ordered = bool(block.stride and block.nnz)
    indptr, rows, order = device.transpose(block.n, max(store.colmap.nslots, 1), block.indptr, block.cols, ordered)
    vals = block.vals[order] if ordered else block.vals
    slots = rows.astype(store.rowmap.slot_type(), copy=False)
    if first := store.rowmap.first_slot(b):
        slots = slots + slots.dtype.type(first)
    if store.colmap.p == 1:
        indptr = indptr[: store.colmap.n + 1]
    return indptr.astype(offset_type(block.nnz)), slots, vals


def _merge_columns(store: MatrixStore, parts: list, offsets: list[np.ndarray], ptr: str, device: Any, me: int) -> Any:
    """The rows of the transpose that device `me` owns: in each, the pieces of all row blocks side by side."""
    map = store.colmap
    lo, n = map.first_slot(me), map.rows[me]
    mine = [offset[lo : lo + n + 1] for offset in offsets]
    lengths = np.sum([np.diff(offset) for offset in mine], axis=0)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    nnz = int(indptr[-1])
    cols = device.empty(nnz, store.rowmap.slot_type())
    vals = store.blocks[me].vals if store.iso else device.empty(max(nnz, 1), store.dtype.np_type)
    filled = indptr[:-1].copy()
    for part, offset in zip(parts, mine, strict=True):
        first, last, length = int(offset[0]), int(offset[-1]), np.diff(offset)
        if last > first:
            place = device.put(np.repeat(filled - (offset[:-1] - first), length) + np.arange(last - first))
            for target, source in ((cols, part[1]), (vals, part[2])):
                if target is cols or not store.iso:
                    arrived = device.empty(last - first, source.dtype)
                    device.copy(arrived, source[first:last])
                    target[place] = arrived
            filled += length
    return matrix_block(device, device.put(indptr.astype(ptr)), cols, vals, 0 if store.iso else 1, nnz, lengths)


def same(one: MatrixStore, other: MatrixStore) -> bool:
    """Whether two matrices on the same maps have equal entries (compared where they lie; values bit by bit: 0 and -0
    differ)."""
    pairs = zip(one.blocks, other.blocks, strict=True)
    return one.nvals == other.nvals and all(
        a.nnz == b.nnz
        and bool((a.indptr == b.indptr).all())
        and bool((a.cols == b.cols).all())
        and (one.iso or bool((_bits(a.vals) == _bits(b.vals)).all()))
        for a, b in pairs
    )


def _bits(vals: Any) -> Any:
    return vals.view(f"i{vals.itemsize}")
