"""Matrices from parts of others: extract, place, diagonals, vectors as matrices, Kronecker products.

Each device makes its own rows from what it gathers; ids of an index that is a Vector stay on the devices.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...device.base import Device
from ...distribute.blocks import (
    MatrixBlock,
    MatrixStore,
    VectorBlock,
    VectorStore,
    as_symmetric,
    assembled,
    matrix_block,
    offset_type,
)
from ...distribute.rowmap import RowMap, Task
from ...errors import IndexOutOfBound, NotImplementedException, message
from ...kernels.interface import AFULL, BFULL, OUTFULL, Spec
from ...language.index import Index, ascending, consecutive
from ..context import Context
from ..near import near_matrix, near_vector
from .csr import (
    Piece,
    Rows,
    aligned,
    brought,
    by_row_and_column,
    entries_of,
    gathered,
    here,
    joined,
    keep_entries,
    last_of,
    near_pieces,
    of_users,
    offsets,
    part_of,
    side_by_side,
    slots_of,
    store_of,
    take_rows,
    to_slots,
    users_of,
    whole_vector,
)
from .mxm import combined
from .transpose import transpose


class Ids:
    """The ids of an Index on the devices, as slots of a row map; out of range ones of a Vector are -1, and reported
    at the next read."""

    def __init__(self, session: Context, index: Index, map: RowMap, over: RowMap | None = None):
        """`over`: each device asks for the positions alone that it owns there."""
        self.session, self.index, self.map = session, index, map
        self.plain = map.p == 1 or map.plain  # slots are ids
        self.store = None
        if index.vector is not None:
            store = _by_row(session, session.content(index.vector))
            self.store = store if store.map is over and not store.iso else near_vector(session, store)
            session.doubted = session.ranks is not None

    @property
    def ascending(self) -> bool:
        """Whether slots ascend, as far as the host knows."""
        return self.index.vector is None and self.map.order is None and ascending(self.index.ids())

    def all(self, b: int) -> Any:
        """Every one, on device b."""
        device = self.session.devices[b]
        if self.store is None:
            return device.put(self.map.slots(self.index.ids()))
        dense = whole_vector(self.session, self.store, b)
        return self._checked(device, _in_user_order(device, self.store.map, dense.vals, dense.stride))

    def part(self, b: int, over: RowMap) -> Any:
        """Those of the positions that device b owns in `over`."""
        rows = over.part(b)
        if self.store is None:
            return self.session.devices[b].put(self.map.slots(self.index.ids()[rows]))
        if self.store.map is over and not self.store.iso:
            return self._checked(self.session.devices[b], self.store.blocks[b].vals[: over.rows[b]])
        return self.all(b)[rows if isinstance(rows, slice) else self.session.devices[b].put(rows)]

    def take(self, vals: Any, b: int, over: RowMap) -> Any:
        """What a full vector over the map has at those of the positions that device b owns in `over`."""
        index = self.store
        if not self.plain or index is None or index.map is not over or index.iso:
            return vals[self.part(b, over)]
        device = self.session.devices[b]
        taken, bad = device.take(vals, index.blocks[b].vals[: over.rows[b]], self.map.n)
        self._watch(device, bad)
        return taken

    def _checked(self, device: Device, users: Any) -> Any:
        slots, bad = device.checked(users, self.map.n, self.map.slot_type() if self.plain else "int64")
        self._watch(device, bad)
        return slots if self.plain else slots_of(device, self.map, slots)

    def _watch(self, device: Device, bad: Any) -> None:
        found = f"ids from 0 to {self.map.n - 1} in an index"
        self.session.watch(device, bad, IndexOutOfBound, message(found, "one out of range", "ids are indices, from 0"))


def _by_row(session: Context, store: VectorStore) -> VectorStore:
    """The content of a Vector that has every row, with the values in the order of rows."""
    if store.form in ("full", "bitmap"):
        return store

    def part(task: Task) -> VectorBlock:
        block = store.blocks[task.block]
        return VectorBlock(block.n, entries_of(session.devices[task.device], block)[1], block.stride)

    blocks = session.over(store.map.tasks, part, store.map.n * session.kernels.costs.row)
    return VectorStore(store.map, store.dtype, "full", store.iso, blocks)


def _in_user_order(device: Device, map: RowMap, vals: Any, stride: int) -> Any:
    if not stride:
        return device.xp.repeat(vals[:1], map.n)
    return vals if map.p == 1 else vals[device.put(map.slots(np.arange(map.n)))]


def own(store: MatrixStore, b: int) -> Rows:
    """The rows that device b owns."""
    block = store.blocks[b]
    return Rows(*block.csr)


def extract(session: Context, store: MatrixStore, rows: Index, cols: Index) -> MatrixStore:
    """Row k, column l of the result is row rows[k], column cols[l]."""
    whole = store
    if not rows.is_all:
        store = _rows(session, store, rows)
    if cols.is_all:
        return store
    found = _columns(session, store, cols) if cols.vector is None and ascending(cols.ids()) else None
    if found is None:
        found = transpose(session, _rows(session, transpose(session, store), cols))
    alike = rows.vector is cols.vector and (rows.vector is not None or np.array_equal(rows.ids(), cols.ids()))
    return as_symmetric(found, whole) if alike and found.rowmap is found.colmap else found


def _rows(session: Context, store: MatrixStore, index: Index) -> MatrixStore:
    p = store.rowmap.p
    rowmap = session.maps.pair(len(index), 1, p)[0]
    ids = Ids(session, index, store.rowmap, rowmap)

    def part(task: Task) -> Rows:
        b = task.block
        return take_rows(session, session.devices[b], gathered(session, store, b), ids.part(b, rowmap))

    if index.vector is None and p > 1:
        wanted, plain = index.ids(), store.rowmap.order is None and rowmap.order is None
        parts = (_beside if plain and consecutive(wanted) else brought)(session, store, wanted, rowmap)
    else:
        store = near_matrix(session, store)
        parts = session.over(store.rowmap.tasks, part, _seconds(session, store))
    return store_of(session, rowmap, store.colmap, store.dtype, store.iso, parts)


def _beside(session: Context, store: MatrixStore, ids: np.ndarray, rowmap: RowMap) -> list[Rows]:
    """Rows that follow each other, as `brought` gives them: whole pieces of the blocks."""
    wanted = near_pieces(session, store.iso, rowmap.tasks, _pieces(session, store, rowmap.bounds + ids[0]))

    def part(task: Task) -> Rows:
        rows = joined(session, store, task.device, wanted[task.block])
        return rows._replace(vals=store.blocks[task.block].vals) if store.iso else rows

    return session.over(rowmap.tasks, part, _seconds(session, store) * len(ids) / max(store.rowmap.n, 1))


def _columns(session: Context, store: MatrixStore, index: Index) -> MatrixStore | None:
    """Columns by ascending ids, if they keep their order."""
    p = store.rowmap.p
    colmap, ids = session.maps.pair(1, len(index), p)[1], Ids(session, index, store.colmap)
    if colmap.order is not None or store.colmap.order is not None:
        return None

    def part(task: Task) -> Rows:
        b = task.block
        device, held = session.devices[b], own(store, b)
        table = device.xp.full(max(store.colmap.nslots, 1), -1, colmap.slot_type())
        table[ids.all(b)] = device.put(colmap.slots(np.arange(len(index))))
        cols = table[held.cols]
        return keep_entries(device, held._replace(cols=cols), cols >= 0)

    return store_of(
        session,
        store.rowmap,
        colmap,
        store.dtype,
        store.iso,
        session.over(store.rowmap.tasks, part, _seconds(session, store)),
    )


class Tile(NamedTuple):
    """One of the matrices that are put together: its pieces for each block of the result, and the new slots of its
    columns (None: the old ones)."""

    store: MatrixStore
    pieces: list[list[Piece]]
    names: np.ndarray | None


def concat(session: Any, grid: list[list[MatrixStore]], dtype: Any) -> MatrixStore:
    """Matrices of one type, side by side and one below the other. Whole rows move, each to its place."""
    heights, widths = [line[0].rowmap.n for line in grid], [tile.colmap.n for tile in grid[0]]
    nnz = sum(tile.nvals for line in grid for tile in line)
    rowmap, colmap = session.maps.of_matrix(sum(heights), sum(widths), nnz, None)
    maps = {rowmap, colmap, *(map for line in grid for tile in line for map in (tile.rowmap, tile.colmap))}
    if any(map.order is not None for map in maps):
        straight = lambda tile: aligned(session, tile, tile.rowmap.straight(), tile.colmap.straight())  # noqa: E731
        grid = [[straight(tile) for tile in line] for line in grid]
        made = _concat(session, grid, dtype, rowmap.straight(), colmap.straight())
        return aligned(session, made, rowmap, colmap)
    return _concat(session, grid, dtype, rowmap, colmap)


def _concat(session: Any, grid: list[list[MatrixStore]], dtype: Any, rowmap: RowMap, colmap: RowMap) -> MatrixStore:
    """Of matrices whose rows and columns lie in the order of user ids."""
    heights, widths = [line[0].rowmap.n for line in grid], [tile.colmap.n for tile in grid[0]]
    nnz = sum(tile.nvals for line in grid for tile in line)
    lefts, names = np.cumsum([0, *widths]).tolist(), cache(partial(_names, colmap))
    lines, top = [], 0
    for line, height in zip(grid, heights, strict=True):
        filled = [(tile, left) for tile, left in zip(line, lefts, strict=False) if tile.nvals] or [(line[0], 0)]
        pieces = [
            near_pieces(session, tile.iso, rowmap.tasks, _pieces(session, tile, rowmap.bounds - top))
            for tile, _ in filled
        ]
        lines.append(
            [Tile(tile, mine, names(tile.colmap, left)) for (tile, left), mine in zip(filled, pieces, strict=True)]
        )
        top += height

    def part(task: Task) -> Rows:
        b, device = task.block, session.devices[task.device]
        bands = [[(tile, tile.pieces[b]) for tile in line] for line in lines if line[0].pieces[b]]
        sizes = [sum(piece.end - piece.begin for _, pieces in band for piece in pieces) for band in bands]
        indptr, cols = device.zeros(rowmap.rows[b] + 1, np.int64), device.empty(sum(sizes), colmap.slot_type())
        vals, row, at = device.empty(sum(sizes), dtype.np_type), 0, 0
        for band, size in zip(bands, sizes, strict=True):
            found = _band(session, task.device, band, (cols[at : at + size], vals[at : at + size]))
            indptr[row + 1 : row + len(found)] = found[1:] + at
            row, at = row + len(found) - 1, at + size
        return Rows(indptr, cols, vals, 1)

    parts = session.over(rowmap.tasks, part, nnz * session.kernels.costs.pull_edge / rowmap.p)
    return store_of(session, rowmap, colmap, dtype, False, parts)


def _band(session: Any, d: int, band: list[tuple[Tile, list[Piece]]], into: tuple[Any, Any]) -> Any:
    """Put rows of tiles side by side; returns their offsets."""
    device, (tile, pieces) = session.devices[d], band[0]
    if len(band) == 1 and tile.names is None and not tile.store.iso:
        return joined(session, tile.store, d, pieces, into).indptr
    rows = [here(session, tile.store, d, pieces) for tile, pieces in band]
    rows = [one._replace(cols=one.cols.astype(into[0].dtype, copy=False)) for one in rows]
    names = [None if tile.names is None else device.put(tile.names) for tile, _ in band]
    return side_by_side(session, device, rows, *into, names)


def _names(colmap: RowMap, old: RowMap, left: int) -> np.ndarray | None:
    """The new slots of all columns of a tile, by the old ones; None where they are the same."""
    ids = np.arange(old.n)
    was, now = old.slots(ids), colmap.slots(ids + left)
    if old.slot_type() == colmap.slot_type() and np.array_equal(was, now):
        return None
    table = np.zeros(max(old.nslots, 1), colmap.slot_type())
    table[was] = now
    return table


def _pieces(session: Any, store: MatrixStore, bounds: np.ndarray) -> list[list[Piece]]:
    """The rows between each two of `bounds` that the matrix has, as pieces of its blocks."""
    map = store.rowmap
    found: list[list[Piece]] = [[] for _ in bounds[1:]]

    def cut(task: Task) -> tuple[list[int], list[int]]:
        device, cuts = session.devices[task.device], (bounds - map.first(task.block)).clip(0, map.rows[task.block])
        return cuts.tolist(), device.get(store.blocks[task.block].indptr[device.put(cuts)]).tolist()

    every = session.allgather(map.tasks, session.over(map.tasks, cut, 0.0), "tiles")
    for task, (cuts, ends) in zip(map.tasks, every, strict=True):
        rows = Rows(*store.blocks[task.block].csr)
        for b, (lo, hi) in enumerate(zip(cuts, cuts[1:], strict=False)):
            if lo < hi:
                found[b].append(Piece(task.device, rows, lo, hi, ends[b], ends[b + 1]))
    return found


def place(
    session: Context, store: MatrixStore, rows: Index, cols: Index, like: MatrixStore, monoid: Any = None
) -> MatrixStore:
    """A matrix on the maps of `like` with row k of `store` in row rows[k], its column l in cols[l]. Entries that meet
    are combined by `monoid`; without one the last stays."""
    row_ids, col_ids = Ids(session, rows, like.rowmap), Ids(session, cols, like.colmap)
    store = near_matrix(session, store)
    ascending = row_ids.ascending and col_ids.ascending
    combine = monoid is not None and not store.iso

    def part(task: Task) -> Rows:
        b = task.block
        device, lo, n = session.devices[b], like.rowmap.first_slot(b), like.rowmap.rows[b]
        targets = row_ids.all(b)
        mine = device.xp.flatnonzero((targets >= lo) & (targets < lo + n))
        taken = take_rows(session, device, gathered(session, store, b), slots_of(device, store.rowmap, mine))
        line = (targets[mine] - lo)[device.owners(taken.indptr, len(taken.cols))]
        taken = of_users(device, taken, store.colmap)
        columns = col_ids.all(b)[taken.cols]
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

    parts = session.over(like.rowmap.tasks, part, _seconds(session, store))
    return store_of(session, like.rowmap, like.colmap, store.dtype, store.iso, parts)


def _counted(device: Device, line: Any, n: int) -> Any:
    """Offsets of rows from the ascending rows of entries."""
    return device.xp.searchsorted(line, device.xp.arange(n + 1), side="left")


def region(session: Context, store: MatrixStore, rows: Index, cols: Index, inside: bool) -> MatrixStore:
    """The entries whose row and column an index pair names (or, not `inside`, all others)."""
    row_ids, col_ids = Ids(session, rows, store.rowmap), Ids(session, cols, store.colmap)

    def part(task: Task) -> Rows:
        b = task.block
        device, lo, n = session.devices[b], store.rowmap.first_slot(b), store.rowmap.rows[b]
        block, slots = own(store, b), row_ids.all(b)
        chosen = device.zeros(n + 1, np.bool_)
        chosen[slots[(slots >= lo) & (slots < lo + n)] - lo] = True
        named = device.zeros(store.colmap.nslots + 1, np.bool_)  # the last: ids out of range
        named[col_ids.all(b)] = True
        within = chosen[device.owners(block.indptr, len(block.cols))] & named[block.cols]
        return keep_entries(device, block, within if inside else ~within)

    parts = session.over(store.rowmap.tasks, part, _seconds(session, store))
    return store_of(session, store.rowmap, store.colmap, store.dtype, store.iso, parts)


def filled(session: Context, rowmap: RowMap, colmap: RowMap, dtype: Any, value: Any) -> MatrixStore:
    """One value at every position."""
    m = colmap.n

    def block(task: Task) -> MatrixBlock:
        n, device = rowmap.rows[task.block], session.devices[task.device]
        cols = device.xp.tile(device.put(np.sort(colmap.slots(np.arange(m))).astype(colmap.slot_type())), n)
        indptr = (device.xp.arange(n + 1) * m).astype(offset_type(max(rowmap.rows) * m))
        return matrix_block(device, indptr, cols, device.full(1, value, dtype.np_type), 0, n * m)

    made = session.over(rowmap.tasks, block, rowmap.n * m * session.kernels.costs.row / rowmap.p)
    return assembled(rowmap, colmap, dtype, True, made, session.allgather)


# -- vectors as matrices


def column(session: Context, store: VectorStore) -> MatrixStore:
    """A vector as a matrix of one column."""
    map = store.map

    def part(task: Task) -> Rows:
        b = task.block
        device = session.devices[b]
        rows, vals = entries_of(device, store.blocks[b])
        return Rows(_counted(device, rows, map.rows[b]), device.zeros(len(rows), np.int64), vals, 0 if store.iso else 1)

    parts = session.over(map.tasks, part, map.n * session.kernels.costs.row / map.p)
    return store_of(session, map, session.maps.pair(map.n, 1, map.p)[1], store.dtype, store.iso, parts)


def diag(session: Context, store: VectorStore, k: int) -> MatrixStore:
    """A square matrix with the vector on its diagonal k."""
    n, down, right = store.map.n, max(0, -k), max(0, k)
    rowmap, colmap = session.maps.pair(n + abs(k), n + abs(k), store.map.p)
    if k == 0 and store.form == "full" and store.map is rowmap is colmap:
        return _whole_diagonal(session, store)
    single = near_matrix(session, column(session, store))

    def part(task: Task) -> Rows:
        b = task.block
        device = session.devices[b]
        ids = part_of(device, rowmap, b) - down
        taken = take_rows(session, device, gathered(session, single, b), slots_of(device, single.rowmap, ids))
        columns = ids[device.owners(taken.indptr, len(taken.cols))] + right
        return taken._replace(cols=slots_of(device, colmap, columns))

    parts = session.over(rowmap.tasks, part, n * session.kernels.costs.row)
    return store_of(session, rowmap, colmap, store.dtype, store.iso, parts)


def _whole_diagonal(session: Context, store: VectorStore) -> MatrixStore:
    """Every row's value in its own column; nothing moves."""
    map = store.map

    def part(task: Task) -> Rows:
        block, device = store.blocks[task.block], session.devices[task.device]
        lines, first = device.xp.arange(block.n + 1, dtype=offset_type(block.n)), map.first_slot(task.block)
        cols = device.xp.arange(first, first + block.n, dtype=map.slot_type())
        vals = device.empty(len(block.vals), block.vals.dtype)
        device.copy(vals, block.vals)
        return Rows(lines, cols, vals, block.stride)

    parts = session.over(map.tasks, part, map.n * session.kernels.costs.row)
    made = store_of(session, map, map, store.dtype, store.iso, parts)
    made.diagonal = True
    return made


def kron(session: Context, one: MatrixStore, two: MatrixStore, op: Any) -> MatrixStore:
    """Each entry of one, an operator, and each entry of two."""
    if op.program.uses & {"i", "j", "k"}:
        raise NotImplementedException(message("an operator of values in kronecker", repr(op)))
    n, m = two.rowmap.n, two.colmap.n
    rowmap, colmap = session.maps.pair(one.rowmap.n * n, one.colmap.n * m, one.rowmap.p)
    one, two = near_matrix(session, one), near_matrix(session, two)
    kernel = session.kernels.get("ewise", Spec(op=op, a=one.dtype, b=two.dtype, out=op.return_type))

    def part(task: Task) -> Rows:
        b = task.block
        device, xp, unused = session.devices[b], session.devices[b].xp, session.placeholders(b)
        rows = part_of(device, rowmap, b)
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
        sides = x, left.stride, unused.words, y, right.stride, unused.words, unused.words, 0, unused.words
        kernel(total, *sides, AFULL | BFULL | OUTFULL, 0, unused.words, 0, 0, vals, unused.words, unused.scratch)
        return to_slots(device, Rows(indptr, users, vals, 1), colmap)

    parts = session.over(rowmap.tasks, part, one.nvals * two.nvals * session.kernels.costs.pull_edge)
    return store_of(session, rowmap, colmap, op.return_type, False, parts)


def _spans(rows: Rows, slots: Any) -> tuple[Any, Any]:
    """(where rows begin, how long they are)."""
    if not rows.n:
        return slots, slots
    begin = rows.indptr[slots].astype(np.int64)
    return begin, rows.indptr[slots + 1] - begin


def _seconds(session: Context, store: MatrixStore) -> float:
    return store.nvals * session.kernels.costs.pull_edge / store.rowmap.p
