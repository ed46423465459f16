"""The other orientation of a distributed matrix, and whether it equals this one."""

from typing import Any

import numpy as np

from ...distribute import needs, transport
from ...distribute.blocks import MatrixStore, assembled, matrix_block, offset_type


def transpose(store: MatrixStore, devices: list) -> MatrixStore:
    """The other orientation: the owner of each block of columns collects their entries from the row blocks, in the
    order of rows."""
    parts = [_by_column(store, devices[task.device], task.block) for task in store.rowmap.tasks]
    if store.rowmap.p == 1:
        (indptr, cols, vals), block = parts[0], store.blocks[0]
        blocks = [matrix_block(devices[0], indptr, cols, vals, block.stride, block.nnz)]
    else:
        offsets = [
            devices[t.device].get(part[0]).astype(np.int64) for t, part in zip(store.rowmap.tasks, parts, strict=True)
        ]
        ptr = offset_type(store.nvals)
        blocks = [_merge_columns(store, parts, offsets, ptr, devices, b) for b in range(store.colmap.p)]
    return assembled(store.colmap, store.rowmap, store.dtype, store.iso, blocks)


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


def _merge_columns(store: MatrixStore, parts: list, offsets: list[np.ndarray], ptr: str, devices: list, b: int) -> Any:
    """Block b of the transpose: in each row, the pieces of all row blocks side by side."""
    map = store.colmap
    lo, n, me = map.first_slot(b), map.rows[b], map.tasks[b].device
    device, mine = devices[me], [offset[lo : lo + n + 1] for offset in offsets]
    lengths = np.sum([np.diff(offset) for offset in mine], axis=0)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    nnz = int(indptr[-1])
    cols = device.empty(nnz, store.rowmap.slot_type())
    vals = store.blocks[b].vals if store.iso else device.empty(max(nnz, 1), store.dtype.np_type)
    filled = indptr[:-1].copy()
    for task, part, offset in zip(store.rowmap.tasks, parts, mine, strict=True):
        first, last, length = int(offset[0]), int(offset[-1]), np.diff(offset)
        if last > first:
            place = device.put(np.repeat(filled - (offset[:-1] - first), length) + np.arange(last - first))
            for target, source in ((cols, part[1]),) if store.iso else ((cols, part[1]), (vals, part[2])):
                arrived = device.empty(last - first, source.dtype)
                transport.carry(devices, [needs.Transfer(task.device, me, source[first:last], arrived)])
                target[place] = arrived
            filled += length
    return matrix_block(device, device.put(indptr.astype(ptr)), cols, vals, 0 if store.iso else 1, nnz, lengths)


def same(one: MatrixStore, other: MatrixStore) -> bool:
    """Whether two matrices on the same maps have equal entries (compared where they lie; values bit by bit: 0 and -0
    differ)."""
    pairs = zip(one.blocks, other.blocks, strict=True)
    return one.lengths == other.lengths and all(
        bool((a.indptr == b.indptr).all())
        and bool((a.cols == b.cols).all())
        and (one.iso or bool((_bits(a.vals) == _bits(b.vals)).all()))
        for a, b in pairs
    )


def _bits(vals: Any) -> Any:
    return vals.view(f"i{vals.itemsize}")
