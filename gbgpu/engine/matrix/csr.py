"""Rows of matrices on one device, in terms of its array module: take, keep, place and sort entries.

Nothing here knows types or operators; values only move. `Rows` has int64 offsets or those of a block; results have
int64 offsets, and `store_of` gives all blocks of a matrix the same narrow type.
"""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ...device.base import Device
from ...device.remote import AWAY
from ...distribute import needs
from ...distribute.blocks import (
    MatrixBlock,
    MatrixStore,
    VectorBlock,
    VectorStore,
    ascending,
    assembled,
    matrix_block,
    offset_type,
    split_matrix,
)
from ...distribute.needs import Dense
from ...distribute.rowmap import RowMap, Task
from ...kernels.interface import ADJOINING, RENAMED, Spec
from ...language.index import consecutive
from ...semiring._types import UNSIGNED
from ..context import Context


class Rows(NamedTuple):
    """CSR arrays in one device's memory; stride 0: one value for all entries."""

    indptr: Any
    cols: Any
    vals: Any
    stride: int

    @property
    def n(self) -> int:
        return len(self.indptr) - 1


def read(device: Device, buffer: Any, at: int) -> int:
    """One integer of a buffer on the host."""
    return int(device.get(buffer[at:][:1])[0])


def offsets(device: Device, lengths: Any) -> tuple[Any, int]:
    """(int64 offsets, their last) of row lengths."""
    indptr = device.offsets(lengths)
    return indptr, read(device, indptr, -1)


def entries_of(device: Device, block: VectorBlock) -> tuple[Any, Any]:
    """(local rows ascending, values or the one value) of a block."""
    if block.slots is not None:
        rows = block.slots[: read(device, block.count, 0)]
        order = device.order(rows)
        return rows[order], block.vals[: len(rows)][order] if block.stride else block.vals
    if block.full:
        return device.xp.arange(block.n), block.vals[: block.n] if block.stride else block.vals
    rows = device.rows_of(block.words, block.n)
    return rows, device.at(block.vals, rows) if block.stride else block.vals


def take_rows(session: Any, device: Any, rows: Rows, slots: Any) -> Rows:
    """Row k of the result is row slots[k] of `rows`, empty where that is -1."""
    if not len(slots) or not rows.n:
        return Rows(device.zeros(len(slots) + 1, np.int64), rows.cols[:0], rows.vals[: 1 - rows.stride], rows.stride)
    slots = slots.astype(np.int64, copy=False)
    if device.shares_memory and slots[0] >= 0 and consecutive(slots):
        indptr = rows.indptr[slots[0] : slots[-1] + 2].astype(np.int64)
        begin, end = int(indptr[0]), int(indptr[-1])
        vals = rows.vals[begin:end].copy() if rows.stride else rows.vals
        return Rows(indptr - begin, rows.cols[begin:end].copy(), vals, rows.stride)
    indptr, total = offsets(device, rows.indptr[1:][slots] - rows.indptr[slots])  # -1, the last of both, gives 0
    cols = device.empty(total, rows.cols.dtype)
    vals = device.empty(total, rows.vals.dtype) if rows.stride else None
    move_rows(session, device, rows, slots, indptr[:-1], cols, vals, adjoining=True)
    return Rows(indptr, cols, rows.vals if vals is None else vals, rows.stride)


def move_rows(
    session: Any,
    device: Any,
    rows: Rows,
    slots: Any,
    begins: Any,
    cols: Any,
    vals: Any,
    names: Any = None,
    adjoining: bool = False,
) -> None:
    """Put row slots[k] of `rows` at begins[k] and on of `cols` and (unless None) `vals`; `names`: the new ids of all
    columns; `adjoining`: each row begins where the one before ends."""
    size, iso = rows.vals.itemsize, vals is None
    ptr, idx = (f"int{8 * ids.itemsize}" for ids in (rows.indptr, rows.cols))  # a dtype's name takes microseconds
    spec = Spec(a=BITS[size], ptr=ptr, idx=idx, iso=iso)
    old, new = (x.view(f"u{size}") for x in (rows.vals, rows.vals if iso else vals))
    ids = cols if names is None else names
    kernel = session.kernels.get("move_rows", spec)
    how = RENAMED * (names is not None) | ADJOINING * adjoining
    kernel(len(slots), slots, rows.indptr, rows.cols, old, rows.stride, ids, how, begins, cols, new)


BITS = {
    dtype.np_type.itemsize: dtype for dtype in UNSIGNED
}  # values that only move are the bits that they are made of


def keep_entries(device: Device, rows: Rows, keep: Any, n: int | None = None) -> Rows:
    """The entries where `keep` is true, or those of n whose bits it has; the same columns, where these are all."""
    arrays = (rows.cols, rows.vals) if rows.stride else (rows.cols,)
    indptr, _, (cols, *vals) = device.kept(keep, len(keep) if n is None else n, rows.indptr, arrays)
    return Rows(indptr, cols, vals[0] if vals else rows.vals, rows.stride)


def by_row_and_column(device: Device, n: int, rows: Any, cols: Any, width: int) -> tuple[Any, Any, Any]:
    """(order, first, indptr): the stable order of entries by row and column, which of them in that order are the first
    of their place, and the offsets of rows of n when only those are kept."""
    xp = device.xp
    keys = rows.astype(np.int64) * width + cols
    order = device.order(keys)
    keys = keys[order]
    first = xp.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    return order, first, xp.searchsorted(keys[first], xp.arange(n + 1) * width)


def sorted_rows(device: Device, rows: Rows, width: int) -> Rows:
    """Columns, below `width`, ascending in each row."""
    return Rows(
        rows.indptr, *ascending(device, rows.indptr, rows.cols, rows.vals, bool(rows.stride), width), rows.stride
    )


def of_users(device: Device, rows: Rows, map: RowMap) -> Rows:
    """Columns, slots of the map, as user ids, ascending in each row."""
    rows = rows._replace(cols=users_of(device, map, rows.cols))
    return rows if map.order is None else sorted_rows(device, rows, map.n)


def to_slots(device: Device, rows: Rows, map: RowMap) -> Rows:
    """Columns that are user ids as slots of the map, ascending in each row."""
    rows = rows._replace(cols=slots_of(device, map, rows.cols))
    return rows if map.order is None else sorted_rows(device, rows, map.nslots)


def part_of(device: Device, map: RowMap, b: int) -> Any:
    """User ids of the rows of block b on the device, in their order."""
    rows = map.part(b)
    return device.xp.arange(rows.start, rows.stop) if isinstance(rows, slice) else device.put(rows)


def last_of(device: Device, first: Any) -> Any:
    """Which entries of sorted runs are the last of theirs."""
    last = device.xp.ones(len(first), bool)
    last[:-1] = first[1:]
    return last


def store_of(session: Context, rowmap: RowMap, colmap: RowMap, dtype: Any, iso: bool, parts: list[Rows]) -> MatrixStore:
    """The matrix whose blocks have these rows."""
    lengths = [0 if part is AWAY else len(part.cols) for part in parts]
    ptr, idx = offset_type(max(session.allgather(rowmap.tasks, lengths, "entries of new rows"))), colmap.slot_type()

    def block(task: Task) -> MatrixBlock:
        part, device = parts[task.block], session.devices[task.device]
        vals = part.vals if len(part.vals) else device.zeros(1, dtype.np_type)
        indptr, cols = part.indptr.astype(ptr, copy=False), part.cols.astype(idx, copy=False)
        return matrix_block(device, indptr, cols, vals, 0 if iso else 1, len(cols))

    seconds = rowmap.n * session.kernels.costs.row / rowmap.p
    return assembled(rowmap, colmap, dtype, iso, session.over(rowmap.tasks, block, seconds), session.allgather)


def aligned(session: Any, store: MatrixStore, rowmap: RowMap, colmap: RowMap) -> MatrixStore:
    """The same matrix on other maps (matrices seldom live on different ones)."""
    if store.rowmap is rowmap and store.colmap is colmap:
        return store
    indptr, cols, vals = session.store_to_host(store)
    vals = vals[:1] if store.iso and len(vals) else vals
    vals = vals if len(vals) else np.zeros(1, store.dtype.np_type)
    return split_matrix(rowmap, colmap, store.dtype, session, indptr, cols, vals, store.iso)


def whole_vector(session: Context, store: VectorStore, d: int) -> Dense:
    """The whole of a full or bitmap vector on device d."""
    dense, transfers = needs.whole_vector(store, session.devices, d)
    session.carry(d, transfers)
    return dense


def gathered(session: Context, store: MatrixStore, d: int) -> Rows:
    """All rows of a matrix on device d, by slot (padding is empty rows)."""
    pieces, transfers = needs.whole_matrix(store, session.devices, d)
    session.carry(d, transfers)
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


class Piece(NamedTuple):
    """Rows lo .. hi - 1 of what device `d` has, which are its entries begin .. end - 1."""

    d: int
    rows: Rows
    lo: int
    hi: int
    begin: int
    end: int


def joined(session: Any, store: MatrixStore, d: int, pieces: list[Piece], into: tuple[Any, Any] | None = None) -> Rows:
    """Pieces of a matrix one below the other on device d; `into`: in these columns and values."""
    device, total = session.devices[d], sum(piece.end - piece.begin for piece in pieces)
    made = 1 if store.iso else total
    idx = pieces[0].rows.cols.dtype if pieces else store.idx
    cols, vals = (device.empty(total, idx), device.empty(made, store.dtype.np_type)) if into is None else into
    indptr, transfers, offsets, above, row = device.zeros(1 + sum(p.hi - p.lo for p in pieces), np.int64), [], [], 0, 0
    for s, rows, lo, hi, begin, end in pieces:
        offsets.append(device.empty(hi - lo + 1, rows.indptr.dtype))
        pairs = [(rows.indptr[lo : hi + 1], offsets[-1]), (rows.cols[begin:end], cols[above : above + end - begin])]
        pairs.append((rows.vals[:1], vals) if store.iso else (rows.vals[begin:end], vals[above : above + end - begin]))
        transfers += [needs.Transfer(s, d, data, target) for data, target in pairs]
        above += end - begin
    session.carry(d, transfers)
    above = 0
    for piece, arrived in zip(pieces, offsets, strict=True):
        n = len(arrived) - 1
        indptr[row + 1 : row + n + 1] = arrived[1:]
        indptr[row + 1 : row + n + 1] += above - piece.begin
        row, above = row + n, above + piece.end - piece.begin
    return Rows(indptr, cols, vals, 0 if store.iso else 1)


def near_pieces(session: Context, iso: bool, tasks: Sequence[Task], wanted: list[list[Any]]) -> list[list[Any]]:
    """wanted[b], pieces (or None) for the device of task b, with those that other ranks have brought here."""
    ranks, devices = session.ranks, session.devices
    if ranks is None:
        return wanted
    crossing = [
        (task, i, piece)
        for task, pieces in zip(tasks, wanted, strict=True)
        for i, piece in enumerate(pieces)
        if piece is not None and ranks.here(piece.d) != ranks.here(task.device)
    ]
    arriving = [(task, i, piece) for task, i, piece in crossing if ranks.here(task.device)]
    shapes, sent, coming = {}, [], []
    for task, i, piece in crossing:
        if ranks.here(piece.d):
            (indptr, cols, vals, _), begin, end = piece.rows, piece.begin, piece.end
            arrays = indptr[piece.lo : piece.hi + 1], cols[begin:end], vals[:1] if iso else vals[begin:end]
            shapes[task.block, i] = [(array.size, array.dtype) for array in arrays]
            sent += [(piece.d, ranks.rank_of(task.device), array) for array in arrays]
    told = {place: shape for each in ranks.gathered(shapes, "rows of a matrix") for place, shape in each.items()}
    for task, i, piece in arriving:
        coming += [(ranks.rank_of(piece.d), task.device, *shape) for shape in told[task.block, i]]
    came = iter(ranks.carried(devices, sent, coming, "rows of a matrix"))
    found = [list(pieces) for pieces in wanted]
    for task, i, piece in arriving:
        indptr, cols, vals = next(came), next(came), next(came)
        (indptr,) = session.over([task], partial(_from_zero, indptr), 0.0)
        rows = Rows(indptr, cols, vals, 0 if iso else 1)
        found[task.block][i] = Piece(piece.d, rows, 0, piece.hi - piece.lo, 0, len(cols))
    return found


def _from_zero(offsets: Any, task: Task) -> Any:
    return offsets - offsets[:1]


def here(session: Any, store: MatrixStore, d: int, pieces: list[Piece]) -> Rows:
    """Pieces of a matrix as one: as it lies, if it lies on device d."""
    if len(pieces) != 1 or pieces[0].d != d:
        return joined(session, store, d, pieces)
    piece = pieces[0]
    return piece.rows._replace(indptr=piece.rows.indptr[piece.lo : piece.hi + 1])


def side_by_side(session: Any, device: Any, rows: list[Rows], cols: Any, vals: Any, names: Any = ()) -> Any:
    """Put rows side by side into `cols` and (unless None) `vals`; returns their offsets. `names`: the new ids of the
    columns of each, or None, as `move_rows` takes them."""
    lengths = [device.xp.diff(one.indptr).astype(np.int64, copy=False) for one in rows]
    indptr, slots = offsets(device, sum(lengths))[0], device.xp.arange(len(lengths[0]))
    begins = indptr[:-1]
    for one, length, new in zip_longest(rows, lengths, names):
        move_rows(session, device, one, slots, begins, cols, vals, new)
        begins = begins + length
    return indptr


def brought(session: Any, store: MatrixStore, ids: np.ndarray, rowmap: RowMap) -> list[Rows]:
    """Row k of the result, which is on `rowmap`, is row ids[k] of the matrix, on as many devices. Only rows that are
    asked for move; devices in one memory take them where they lie."""
    source, targets = store.rowmap, rowmap.bounds.tolist()
    ids = ids if rowmap.order is None else ids[rowmap.order]
    local = source.slots(ids)
    mine = source.by_owner(local)  # places in the result, ascending
    cuts = [np.searchsorted(places, rowmap.bounds).tolist() for places in mine]
    seconds = len(ids) * (store.nvals / max(source.n, 1) * session.kernels.costs.pull_edge + session.kernels.costs.row)
    wanted = _sent(session, store, local, mine, cuts, rowmap, seconds) if session.apart else []

    def part(task: Task) -> Rows:
        t, device = task.block, session.devices[task.device]
        parts = []
        for b, places in enumerate(mine):
            lo, hi = cuts[b][t : t + 2]
            if lo < hi:
                lies = b == t or not session.apart
                rows = Rows(*store.blocks[b].csr) if lies else joined(session, store, task.device, [wanted[t][b]])
                slots = device.put(local[places[lo:hi]] - source.first_slot(b)) if lies else device.xp.arange(hi - lo)
                lengths = rows.indptr[slots + 1] - rows.indptr[slots]
                if lies and b != t:
                    session.account(task.device, *_bytes(device, lengths, store))
                parts.append((rows, slots, device.put(places[lo:hi] - targets[t]), lengths))
        all = device.zeros(rowmap.rows[t], np.int64)
        for _, _, places, lengths in parts:
            all[places] = lengths
        indptr, total = offsets(device, all)
        cols, vals = device.empty(total, store.idx), None if store.iso else device.empty(total, store.dtype.np_type)
        for rows, slots, places, _ in parts:
            move_rows(session, device, rows, slots, indptr[places], cols, vals)
        return Rows(indptr, cols, store.blocks[t].vals if vals is None else vals, 0 if store.iso else 1)

    return session.over(rowmap.tasks, part, seconds / rowmap.p)


def _bytes(device: Device, lengths: Any, store: MatrixStore) -> tuple[int, list[tuple[Any, int]]]:
    """What rows of these lengths take, as `Session.account` is told."""
    total = lengths.sum(keepdims=True)
    seen = device.peek(total)
    if seen is None:
        return lengths.nbytes, [(total, store.entry_bytes)]
    return lengths.nbytes + int(seen[0]) * store.entry_bytes, []


def _sent(
    session: Any, store: MatrixStore, local: np.ndarray, mine: list, cuts: list, rowmap: RowMap, seconds: float
) -> list[list[Any]]:
    """What goes to each device from each other one, as `brought` asks for it."""
    source = store.rowmap

    def sent(task: Task) -> list[Piece | None]:
        """What goes to each other device, as its owner takes it."""
        b, device = task.block, session.devices[task.device]
        found: list[Piece | None] = [None] * rowmap.p
        for t, (lo, hi) in enumerate(zip(cuts[b], cuts[b][1:], strict=False)):
            if t != b and lo < hi:
                slots = device.put(local[mine[b][lo:hi]] - source.first_slot(b))
                rows = take_rows(session, device, Rows(*store.blocks[b].csr), slots)
                found[t] = Piece(task.device, rows, 0, hi - lo, 0, len(rows.cols))
        return found

    pieces = session.over(source.tasks, sent, seconds / source.p)

    def piece(b: int, t: int) -> Piece | None:
        if pieces[b] is not AWAY:
            return pieces[b][t]
        lo, hi = cuts[b][t : t + 2]
        return Piece(source.tasks[b].device, AWAY, 0, hi - lo, 0, 0) if b != t and lo < hi else None

    wanted: list[list[Any]] = [[piece(b, t) for b in range(source.p)] for t in range(rowmap.p)]
    return near_pieces(session, store.iso, rowmap.tasks, wanted)


def slots_of(device: Device, map: RowMap, users: Any) -> Any:
    """Slots of user ids on the device; of ids outside 0 .. n - 1 it is -1."""
    inside = (users >= 0) & (users < map.n)
    if map.plain:
        slots = users
    elif map.order is not None:
        slots = map.tables(device).slots[device.xp.where(inside, users, 0)]
    else:
        tables = map.tables(device)
        block = (device.xp.searchsorted(tables.bounds, users, side="right") - 1).clip(0, map.p - 1)
        slots = users + (tables.starts[:-1] - tables.bounds[:-1])[block]
    return device.xp.where(inside, slots, -1)


def users_of(device: Device, map: RowMap, slots: Any) -> Any:
    """User ids (int64) of slots on the device."""
    slots = slots.astype(np.int64)
    if map.plain:
        return slots
    tables = map.tables(device)
    if map.order is not None:
        return tables.users[slots]
    block = device.xp.searchsorted(tables.starts, slots, side="right") - 1
    return slots + (tables.bounds[:-1] - tables.starts[:-1])[block]
