"""Matrices from parts of others: extract, place, diagonals, vectors as matrices, Kronecker products.

Each device makes its own rows from what it gathers; ids of an index that is a Vector stay on the devices.
"""

from typing import Any

import numpy as np

from ..distribute import exchange
from ..distribute.blocks import MatrixStore, VectorStore, matrix_block, offset_type
from ..distribute.partition import RowMap
from ..errors import IndexOutOfBound, NotImplementedException, message
from ..index import Index
from ..kernels.interface import AFULL, BFULL, OUTFULL, Spec
from ..trace import counters
from .csr import (
    Rows,
    by_row_and_column,
    entries_of,
    keep_entries,
    last_of,
    offsets,
    slots_of,
    store_of,
    take_rows,
    users_of,
)
from .mxm import combined


class Ids:
    """The ids of an Index on the devices, as slots of a row map; out of range ones of a Vector are -1, and reported
    at the next read."""

    def __init__(self, session: Any, index: Index, map: RowMap):
        self.session, self.index, self.map = session, index, map
        self.ascending = index.vector is None and _ascending(index)

    def all(self, b: int) -> Any:
        """Every one, on device b."""
        device = self.session.devices[b]
        if self.index.vector is None:
            return device.put(self.map.slots(self.index.ids()))
        store = self.session.content(self.index.vector)
        dense, moved = exchange.all_gather(store, self.session.devices, b)
        counters.moved(moved)
        return self._checked(device, _in_user_order(device, store.map, dense.vals, dense.stride))

    def part(self, b: int, over: RowMap) -> Any:
        """Those of the positions that device b owns in `over`."""
        lo, hi = int(over.bounds[b]), int(over.bounds[b + 1])
        if self.index.vector is None:
            return self.session.devices[b].put(self.map.slots(self.index.ids()[lo:hi]))
        store = self.session.content(self.index.vector)
        if store.map is over and not store.iso:
            return self._checked(self.session.devices[b], store.blocks[b].vals[: hi - lo])
        return self.all(b)[lo:hi]

    def take(self, vals: Any, b: int, over: RowMap) -> Any:
        """What a full vector over the map has at those of the positions that device b owns in `over`."""
        index = None if self.index.vector is None else self.session.content(self.index.vector)
        if self.map.p > 1 or index is None or index.map is not over or index.iso:
            return vals[self.part(b, over)]
        device = self.session.devices[b]
        taken, bad = device.take(vals, index.blocks[b].vals[: over.rows[b]], self.map.n)
        self._watch(device, bad)
        return taken

    def _checked(self, device: Any, users: Any) -> Any:
        slots, bad = device.checked(users, self.map.n, "int64" if self.map.p > 1 else self.map.slot_type())
        self._watch(device, bad)
        return slots_of(device, self.map, slots) if self.map.p > 1 else slots

    def _watch(self, device: Any, bad: Any) -> None:
        found = f"ids from 0 to {self.map.n - 1} in an index"
        self.session.watch(device, bad, IndexOutOfBound, message(found, "one out of range", "ids are indices, from 0"))


def _ascending(index: Index) -> bool:
    ids = index.ids()
    return len(ids) < 2 or bool(np.all(ids[1:] > ids[:-1]))


def _in_user_order(device: Any, map: RowMap, vals: Any, stride: int) -> Any:
    if not stride:
        return device.xp.repeat(vals[:1], map.n)
    return vals if map.p == 1 else vals[device.put(map.slots(np.arange(map.n)))]


def gathered(session: Any, store: MatrixStore, b: int) -> Rows:
    """All rows of a matrix on device b, by slot."""
    rows, moved = exchange.all_gather_rows(store, session.devices, b)
    counters.moved(moved)
    return Rows(*rows)


def own(store: MatrixStore, b: int) -> Rows:
    """The rows that device b owns."""
    block = store.blocks[b]
    return Rows(block.indptr, block.cols, block.vals, block.stride)


def extract(session: Any, store: MatrixStore, rows: Index, cols: Index) -> MatrixStore:
    """Row k, column l of the result is row rows[k], column cols[l]."""
    if not rows.is_all:
        store = _rows(session, store, rows)
    if cols.is_all:
        return store
    if cols.vector is None and _ascending(cols):
        return _columns(session, store, cols)
    return session.turned(_rows(session, session.turned(store), cols))


def _rows(session: Any, store: MatrixStore, index: Index) -> MatrixStore:
    p = store.rowmap.p
    rowmap, ids = session.maps(len(index), 1, p)[0], Ids(session, index, store.rowmap)

    def part(b: int) -> Rows:
        return take_rows(session.devices[b], gathered(session, store, b), ids.part(b, rowmap))

    return store_of(
        session, rowmap, store.colmap, store.dtype, store.iso, session.each(p, part, _seconds(session, store))
    )


def _columns(session: Any, store: MatrixStore, index: Index) -> MatrixStore:
    """Columns by ascending ids, which keep their order."""
    p = store.rowmap.p
    colmap, ids = session.maps(1, len(index), p)[1], Ids(session, index, store.colmap)

    def part(b: int) -> Rows:
        device, held = session.devices[b], own(store, b)
        table = device.xp.full(max(store.colmap.nslots, 1), -1, np.int64)
        table[ids.all(b)] = device.put(colmap.slots(np.arange(len(index))))
        cols = table[held.cols]
        return keep_entries(device, held, cols >= 0)._replace(cols=cols[cols >= 0])

    return store_of(
        session, store.rowmap, colmap, store.dtype, store.iso, session.each(p, part, _seconds(session, store))
    )


def place(
    session: Any, store: MatrixStore, rows: Index, cols: Index, like: MatrixStore, monoid: Any = None
) -> MatrixStore:
    """A matrix on the maps of `like` with row k of `store` in row rows[k], its column l in cols[l]. Entries that meet
    are combined by `monoid`; without one the last stays."""
    row_ids, col_ids = Ids(session, rows, like.rowmap), Ids(session, cols, like.colmap)
    ascending = row_ids.ascending and col_ids.ascending
    combine = monoid is not None and not store.iso

    def part(b: int) -> Rows:
        device, lo, n = session.devices[b], like.rowmap.first_slot(b), like.rowmap.rows[b]
        targets = row_ids.all(b)
        mine = device.xp.flatnonzero((targets >= lo) & (targets < lo + n))
        taken = take_rows(device, gathered(session, store, b), slots_of(device, store.rowmap, mine))
        line = (targets[mine] - lo)[device.owners(taken.indptr, len(taken.cols))]
        columns = col_ids.all(b)[users_of(device, store.colmap, taken.cols)]
        if cols.vector is not None:  # entries whose column is out of range go nowhere
            line, taken = line[columns >= 0], keep_entries(device, taken, columns >= 0)
            columns = columns[columns >= 0]
        if ascending:
            return Rows(_counted(device, line, n), columns, taken.vals, taken.stride)
        order, first, indptr = by_row_and_column(device, n, line, columns, max(like.colmap.nslots, 1))
        last = order[last_of(device, first)]
        if combine:
            return Rows(indptr, columns[last], combined(session, device, monoid, order, first, taken.vals), 1)
        return Rows(indptr, columns[last], taken.vals[last] if taken.stride else taken.vals, taken.stride)

    parts = session.each(like.rowmap.p, part, _seconds(session, store))
    return store_of(session, like.rowmap, like.colmap, store.dtype, store.iso, parts)


def _counted(device: Any, line: Any, n: int) -> Any:
    """Offsets of rows from the ascending rows of entries."""
    return device.xp.searchsorted(line, device.xp.arange(n + 1), side="left")


def region(session: Any, store: MatrixStore, rows: Index, cols: Index, inside: bool) -> MatrixStore:
    """The entries whose row and column an index pair names (or, not `inside`, all others)."""
    row_ids, col_ids = Ids(session, rows, store.rowmap), Ids(session, cols, store.colmap)

    def part(b: int) -> Rows:
        device, lo, n = session.devices[b], store.rowmap.first_slot(b), store.rowmap.rows[b]
        block, slots = own(store, b), row_ids.all(b)
        chosen = device.zeros(n + 1, np.bool_)
        chosen[slots[(slots >= lo) & (slots < lo + n)] - lo] = True
        named = device.zeros(store.colmap.nslots + 1, np.bool_)  # the last: ids out of range
        named[col_ids.all(b)] = True
        within = chosen[device.owners(block.indptr, len(block.cols))] & named[block.cols]
        return keep_entries(device, block, within if inside else ~within)

    parts = session.each(store.rowmap.p, part, _seconds(session, store))
    return store_of(session, store.rowmap, store.colmap, store.dtype, store.iso, parts)


def filled(session: Any, rowmap: RowMap, colmap: RowMap, dtype: Any, value: Any) -> MatrixStore:
    """One value at every position."""
    blocks, m = [], colmap.n
    for b, n in enumerate(rowmap.rows):
        device = session.devices[b]
        cols = device.xp.tile(device.put(colmap.slots(np.arange(m)).astype(colmap.slot_type())), n)
        indptr = (device.xp.arange(n + 1) * m).astype(offset_type(max(rowmap.rows) * m))
        blocks.append(matrix_block(device, indptr, cols, device.full(1, value, dtype.np_type), 0, n * m))
    return MatrixStore(rowmap, colmap, dtype, True, blocks)


# -- vectors as matrices


def column(session: Any, store: VectorStore) -> MatrixStore:
    """A vector as a matrix of one column."""
    map = store.map

    def part(b: int) -> Rows:
        device = session.devices[b]
        rows, vals = entries_of(device, store.blocks[b])
        return Rows(_counted(device, rows, map.rows[b]), device.zeros(len(rows), np.int64), vals, 0 if store.iso else 1)

    parts = session.each(map.p, part, map.n * session.kernels.costs.row / map.p)
    return store_of(session, map, session.maps(map.n, 1, map.p)[1], store.dtype, store.iso, parts)


def diag(session: Any, store: VectorStore, k: int) -> MatrixStore:
    """A square matrix with the vector on its diagonal k."""
    single, n = column(session, store), store.map.n
    down, right = max(0, -k), max(0, k)
    rowmap, colmap = session.maps(n + abs(k), n + abs(k), store.map.p)

    def part(b: int) -> Rows:
        device, xp = session.devices[b], session.devices[b].xp
        ids = xp.arange(int(rowmap.bounds[b]), int(rowmap.bounds[b + 1])) - down
        taken = take_rows(device, gathered(session, single, b), slots_of(device, single.rowmap, ids))
        columns = ids[device.owners(taken.indptr, len(taken.cols))] + right
        return taken._replace(cols=slots_of(device, colmap, columns))

    parts = session.each(rowmap.p, part, n * session.kernels.costs.row)
    made = store_of(session, rowmap, colmap, store.dtype, store.iso, parts)
    made.diagonal = k == 0 and store.form == "full"
    return made


def kron(session: Any, one: MatrixStore, two: MatrixStore, op: Any) -> MatrixStore:
    """Each entry of one, an operator, and each entry of two."""
    if op.program.uses & {"i", "j", "k"}:
        raise NotImplementedException(message("an operator of values in kronecker", repr(op)))
    n, m = two.rowmap.n, two.colmap.n
    rowmap, colmap = session.maps(one.rowmap.n * n, one.colmap.n * m, one.rowmap.p)
    kernel = session.kernels.get("ewise", Spec(op=op, a=one.dtype, b=two.dtype, out=op.return_type))

    def part(b: int) -> Rows:
        device, xp, nil = session.devices[b], session.devices[b].xp, session.nil(b)
        rows = xp.arange(int(rowmap.bounds[b]), int(rowmap.bounds[b + 1]))
        left, right = gathered(session, one, b), gathered(session, two, b)
        (begin, count), (start, length) = (
            _spans(left, slots_of(device, one.rowmap, rows // max(n, 1))),
            _spans(right, slots_of(device, two.rowmap, rows % max(n, 1))),
        )
        indptr, total = offsets(device, count * length)
        line = device.owners(indptr, total)
        at = xp.arange(total) - indptr[line]
        e, f = begin[line] + at // length[line], start[line] + at % length[line]
        users = users_of(device, one.colmap, left.cols[e]) * m + users_of(device, two.colmap, right.cols[f])
        vals = device.empty(max(total, 1), op.return_type.np_type)
        x, y = (r.vals[entry] if r.stride else r.vals for r, entry in ((left, e), (right, f)))
        sides = x, left.stride, nil.words, y, right.stride, nil.words, nil.words, 0, nil.words
        kernel(total, *sides, AFULL | BFULL | OUTFULL, 0, 0, 0, vals, nil.words, nil.scratch)
        return Rows(indptr, slots_of(device, colmap, users), vals, 1)

    parts = session.each(rowmap.p, part, one.nvals * two.nvals * session.kernels.costs.pull_edge)
    return store_of(session, rowmap, colmap, op.return_type, False, parts)


def _spans(rows: Rows, slots: Any) -> tuple[Any, Any]:
    """(where rows begin, how long they are)."""
    if not rows.n:
        return slots, slots
    begin = rows.indptr[slots].astype(np.int64)
    return begin, rows.indptr[slots + 1] - begin


def _seconds(session: Any, store: MatrixStore) -> float:
    return store.nvals * session.kernels.costs.pull_edge / store.rowmap.p
