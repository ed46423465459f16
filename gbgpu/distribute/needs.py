"""What must move: arrivals of one device, and the transfers that fill them. `transport.carry` moves them; nothing here
touches a device's content, and arrivals are combined by kernels at the owner."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from ..device.remote import local_results
from .blocks import MatrixStore, VectorStore
from .rowmap import RowMap

OWNERS = 16  # of a vector that is read where it lies, at most


class Transfer(NamedTuple):
    """`into` (of device `target`) gets what `data` (of device `source`) has. `count`: only so many entries, a number
    that the target device holds and the host doesn't know."""

    source: int
    target: int
    data: Any
    into: Any
    count: Any = None


class Dense(NamedTuple):
    """A whole vector over the slots of its map, in one device's memory. words is None if every row is present. `order`:
    if not None, where it has what a pull reads of it (halo.Near), and nothing else. `far`: if not None, vals are the
    device's own, and others' lie where they do."""

    vals: Any
    stride: int
    words: Any
    order: Any = None
    far: "Far | None" = None


class Far(NamedTuple):
    """Slots from `lo` on are the device's own, n of them; those from first[b] on are owner b's. at: (b, where it has
    them) of those of whom any is read."""

    lo: int
    n: int
    first: Sequence[int]
    at: Sequence[tuple[int, Any]]


class Bins(NamedTuple):
    """Entries that a task made on a device, sorted by owner: owner b's lie at the map's first slot of b, as many as
    counts[b]."""

    device: int
    slots: Any
    vals: Any
    counts: Any


class Message(NamedTuple):
    """Entries for one owner: local rows, values, and how many (on the device)."""

    slots: Any
    vals: Any
    count: Any


def whole_vector(store: VectorStore, devices: Sequence[Device], me: int) -> tuple[Dense, list[Transfer]]:
    """The whole of a full or bitmap vector on device `me`. Where it lies on one device, that one's buffers serve."""
    blocks, map = store.blocks, store.map
    if map.p == 1 and me == map.tasks[0].device:
        return Dense(blocks[0].vals, blocks[0].stride, blocks[0].words), []
    device, transfers = devices[me], []
    one = store.iso and map.p > 1  # every device that has a block has the one value
    vals = blocks[me].vals if one else device.empty(1 if store.iso else map.nslots, store.dtype.np_type)
    words = None if store.form == "full" else device.empty((map.nslots + 63) // 64, np.int64)
    for task, block in zip(map.tasks, blocks, strict=True):
        lo, n = map.first_slot(task.block), block.n
        pieces = []
        if not one and n:
            pieces.append((block.vals[:1], vals) if store.iso else (block.vals[:n], vals[lo : lo + n]))
        if words is not None and n:
            pieces.append((block.words, words[lo // 64 : (lo + n + 63) // 64]))
        transfers += [Transfer(task.device, me, data, into) for data, into in pieces]
    return Dense(vals, 0 if store.iso else 1, words), transfers


def messages(
    bins: list[Bins], map: RowMap, devices: Sequence[Device], b: int, iso: bool, brings: bool
) -> tuple[list[Message], list[Transfer]]:
    """The messages for the owner of block b from devices of this process: its own part first, as it lies; then those of
    the others that are not known to be empty, as they lie too unless that `brings` copies."""
    me = map.tasks[b].device
    lo, hi = map.first_slot(b), map.first_slot(b + 1)
    device, found, transfers = devices[me], [], []
    bins = local_results(bins)
    value = next(part.vals for part in bins if part.device == me)  # the one of all, if they are iso
    for part in sorted(bins, key=lambda part: part.device != me):
        count = part.counts[b : b + 1]
        known = devices[part.device].peek(count)
        end = hi if known is None else lo + int(known[0])
        if lo == end:
            continue
        sent = message = Message(part.slots[lo:end], value if iso else part.vals[lo:end], count)
        if part.device != me:
            if brings:
                slots, arrived = (device.empty(len(one), one.dtype) for one in (sent.slots, count))
                message = Message(slots, value if iso else device.empty(end - lo, sent.vals.dtype), arrived)
            counted = message.count if known is None else None
            transfers.append(Transfer(part.device, me, count, message.count))
            pairs = zip(sent[: 1 if iso else 2], message, strict=False)
            transfers += [Transfer(part.device, me, data, into, counted) for data, into in pairs]
        found.append(message)
    return found, transfers


class Pieces(NamedTuple):
    """All rows of a matrix on one device: columns and values in place, row offsets of each block."""

    offsets: list[Any]
    cols: Any
    vals: Any
    stride: int


def whole_matrix(store: MatrixStore, devices: Sequence[Device], me: int) -> tuple[Pieces, list[Transfer]]:
    """All rows of a matrix on device `me`, block after block. Where it lies on one device, that one's buffers serve."""
    blocks, map = store.blocks, store.rowmap
    if map.p == 1 and me == map.tasks[0].device:
        return Pieces([blocks[0].indptr], blocks[0].cols, blocks[0].vals, blocks[0].stride), []
    device, transfers, offsets, above = devices[me], [], [], 0
    cols = device.empty(store.nvals, store.idx)
    one = store.iso and map.p > 1  # every device has the one value
    vals = blocks[me].vals if one else device.empty(1 if store.iso else max(store.nvals, 1), store.dtype.np_type)
    for task, block, nnz in zip(map.tasks, blocks, store.lengths, strict=True):
        offsets.append(device.empty(block.n + 1, store.ptr))
        pairs = [(block.indptr, offsets[-1]), (block.cols[:nnz], cols[above : above + nnz])]
        if not one:
            pairs.append((block.vals[:1], vals) if store.iso else (block.vals[:nnz], vals[above : above + nnz]))
        transfers += [Transfer(task.device, me, data, into) for data, into in pairs]
        above += nnz
    return Pieces(offsets, cols, vals, 0 if store.iso else 1), transfers
