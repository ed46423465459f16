"""The other orientation of a distributed matrix, and whether it equals this one."""

from typing import Any

import numpy as np

from ...distribute.blocks import MatrixBlock, MatrixStore, assembled, matrix_block, offset_type
from ...distribute.rowmap import Task
from .csr import Piece, Rows, here, near_pieces, side_by_side, store_of


def transpose(session: Any, store: MatrixStore) -> MatrixStore:
    """The other orientation: the owner of each block of columns collects their entries from the row blocks, in the
    order of rows."""
    seconds = store.nvals * SORTED / store.rowmap.p
    parts = session.over(store.rowmap.tasks, lambda task: _by_column(session, store, task), seconds)
    if store.rowmap.p == 1:

        def only(task: Task) -> MatrixBlock:
            indptr, cols, vals, stride = parts[0]
            indptr = indptr[: store.colmap.n + 1].astype(offset_type(store.nvals), copy=False)
            return matrix_block(session.devices[0], indptr, cols, vals, stride, store.nvals)

        blocks = session.over(store.colmap.tasks, only, 0.0)
        return assembled(store.colmap, store.rowmap, store.dtype, store.iso, blocks, session.allgather)
    map = store.colmap
    ends = np.append(map.starts[:-1], map.nslots)

    def cut(task: Task) -> list[int]:
        device = session.devices[task.device]
        return device.get(parts[task.block].indptr[device.put(ends)]).tolist()

    cuts = session.allgather(store.rowmap.tasks, session.over(store.rowmap.tasks, cut, 0.0), "a transposition")
    owned = list(zip(store.rowmap.tasks, parts, cuts, strict=True))
    wanted = [
        [Piece(owner.device, rows, lo, lo + n, *cut[b : b + 2]) for owner, rows, cut in owned]
        for b, (lo, n) in enumerate(zip(map.starts.tolist(), map.rows, strict=False))
    ]
    wanted = near_pieces(session, store.iso, map.tasks, wanted)

    def part(task: Task) -> Rows:
        b, pieces = task.block, wanted[task.block]
        device, total = session.devices[task.device], sum(piece.end - piece.begin for piece in pieces)
        rows = [here(session, store, task.device, [piece]) for piece in pieces]
        cols = device.empty(total, store.rowmap.slot_type())
        vals = None if store.iso else device.empty(total, store.dtype.np_type)
        indptr = side_by_side(session, device, rows, cols, vals)
        return Rows(indptr, cols, store.blocks[b].vals if vals is None else vals, 0 if store.iso else 1)

    made = session.over(map.tasks, part, seconds)
    return store_of(session, map, store.rowmap, store.dtype, store.iso, made)


SORTED = 2e-8  # seconds an entry that is sorted


def _by_column(session: Any, store: MatrixStore, task: Task) -> Rows:
    """A block as CSR of its transpose over all column slots; its columns are global row slots."""
    block, device = store.blocks[task.block], session.devices[task.device]
    ordered = bool(block.stride and block.nnz)
    width, given = max(store.colmap.nslots, 1), block.vals[: block.nnz] if ordered else None
    indptr, rows, moved = device.transpose(block.n, width, block.indptr, block.cols, given)
    vals = moved if ordered else block.vals
    slots = rows.astype(store.rowmap.slot_type(), copy=False)
    if first := store.rowmap.first_slot(task.block):
        slots = slots + slots.dtype.type(first)
    return Rows(indptr, slots, vals, block.stride)


def same(session: Any, one: MatrixStore, other: MatrixStore) -> bool:
    """Whether two matrices on the same maps have equal entries (compared where they lie; values bit by bit: 0 and -0
    differ)."""
    if one.lengths != other.lengths:
        return False

    def equal(task: Task) -> bool:
        device, a, b = session.devices[task.device], one.blocks[task.block], other.blocks[task.block]
        arrays = ("cols",) if one.iso else ("cols", "vals")  # which may have room for more than entries
        pairs = [(getattr(a, name)[: a.nnz], getattr(b, name)[: a.nnz]) for name in arrays]
        return all(device.equal(*pair) for pair in [(a.indptr, b.indptr), *pairs])

    tasks = one.rowmap.tasks
    return all(session.allgather(tasks, session.over(tasks, equal, 0.0), "whether a matrix is symmetric"))
