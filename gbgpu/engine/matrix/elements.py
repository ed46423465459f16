"""Single entries that are set or deleted: a matrix keeps a log of them, and takes them all in one pass. And those of a
list of places, which are looked up in one pass, too."""

from typing import Any

import numpy as np

from ...device.base import Device
from ...distribute.blocks import MatrixBlock, MatrixStore, assembled, matrix_block, offset_type
from ...distribute.rowmap import Task
from ...kernels.interface import Spec
from .csr import BITS


def elements(session: Any, store: MatrixStore, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(whether there is an entry, its value or 0) at each place (i[k], j[k]), on the host."""
    map, size = store.rowmap, store.dtype.np_type.itemsize
    rows, columns = map.slots(i), store.colmap.slots(j)
    mine: list[Any] = [slice(None)] if map.p == 1 else map.by_owner(rows)
    kernel = session.kernels.get("look_up", Spec(a=BITS[size], ptr=store.ptr, idx=store.idx))

    def work(task: Task) -> tuple[np.ndarray, np.ndarray]:
        b, device, block = task.block, session.devices[task.device], store.blocks[task.block]
        (indptr, cols, held, stride), asked = block.csr, columns[mine[b]]
        found, vals = device.zeros(len(asked), np.bool_), device.zeros(len(asked), f"u{size}")
        if len(asked):
            places = device.put(rows[mine[b]] - map.first_slot(b)), device.put(asked)
            kernel(len(asked), *places, indptr, cols, held.view(f"u{size}"), stride, found, vals)
        return device.get(found), device.get(vals).view(store.dtype.np_type)

    seconds = len(i) * session.kernels.costs.row
    parts = session.allgather(map.tasks, session.over(map.tasks, work, seconds / map.p), "values of a list of places")
    found, vals = np.empty(len(i), np.bool_), np.empty(len(i), store.dtype.np_type)
    for places, part in zip(mine, parts, strict=True):
        found[places], vals[places] = part
    return found, vals


def with_elements(session: Any, store: MatrixStore, log: dict[tuple[int, int], Any]) -> MatrixStore:
    """The matrix with the entry at each place (i, j) of a log set to its value, or deleted (None). Blocks of other rows
    are shared; the matrix itself, where nothing changes."""
    rowmap, colmap = store.rowmap, store.colmap
    i, j = (np.array(ids) for ids in zip(*log, strict=True))
    places, slots, values = rowmap.places(i), colmap.slots(j), list(log.values())
    order = np.lexsort((slots, places))
    cuts = np.searchsorted(places[order], rowmap.bounds)
    sets = [value is not None for value in values]
    ptr = np.promote_types(store.ptr, offset_type(max(store.lengths) + sum(sets)))  # alike in all blocks, as is
    iso = store.iso and not any(sets)

    def work(task: Task) -> MatrixBlock:
        b, device, block = task.block, session.devices[task.device], store.blocks[task.block]
        mine = order[cuts[b] : cuts[b + 1]]
        if not iso and not block.stride:
            vals = device.xp.repeat(block.vals[:1], max(block.nnz, 1))
            block = MatrixBlock(block.n, block.indptr, block.cols, vals, 1, block.nnz, block.empty_rows)
        if block.indptr.dtype != ptr:
            indptr, rest = block.indptr.astype(ptr), (block.stride, block.nnz, block.empty_rows)
            block = MatrixBlock(block.n, indptr, block.cols, block.vals, *rest)
        rows = places[mine] - rowmap.first(b)
        return _changed(device, block, rows, slots[mine], [values[e] for e in mine]) if len(mine) else block

    blocks = session.over(rowmap.tasks, work, rowmap.n * session.kernels.costs.row / rowmap.p)
    made = assembled(rowmap, colmap, store.dtype, iso, blocks, session.allgather)
    return store if made.lengths == store.lengths and not any(sets) else made


def _changed(device: Device, block: MatrixBlock, rows: np.ndarray, slots: np.ndarray, values: list) -> MatrixBlock:
    """A block with entries, ascending by row and column, set or (None) deleted."""
    at, old = _found(device, block, rows, slots)
    new = np.array([value is not None for value in values])
    wanted = old | new  # others are deleted where there is nothing
    at, old, new, rows, slots = at[wanted], old[wanted], new[wanted], rows[wanted], slots[wanted]
    values = [value for value in values if value is not None]
    nnz = block.nnz + int(new.sum()) - int(old.sum())
    arrays = [(block.cols, slots[new])] if not (old & new).all() else []
    arrays += [(block.vals, np.array(values, block.vals.dtype))] if block.stride else []
    if not len(at):
        return block
    made = [device.empty(max(nnz, 1), array.dtype) for array, _ in arrays]
    for (array, given), into in zip(arrays, made, strict=True):
        _merged(device, array[: block.nnz], given, into, at, old, new)
    vals = made[-1] if block.stride else block.vals
    if (old & new).all():
        return block.with_values(vals, block.stride)
    indptr, more, row = device.empty(block.n + 1, block.indptr.dtype), 0, 0
    for q in np.flatnonzero(old != new):
        device.xp.add(block.indptr[row : rows[q] + 1], more, out=indptr[row : rows[q] + 1])
        more, row = more + int(new[q]) - int(old[q]), int(rows[q]) + 1
    device.xp.add(block.indptr[row:], more, out=indptr[row:])
    return matrix_block(device, indptr, made[0][:nnz], vals, block.stride, nnz)


def _found(device: Device, block: MatrixBlock, rows: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where in a block each of some places is or would be, and whether it has an entry."""
    at, old = np.empty(len(rows), np.int64), np.zeros(len(rows), bool)
    cuts = [0, *(np.flatnonzero(rows[1:] != rows[:-1]) + 1).tolist(), len(rows)]
    for first, last in zip(cuts[:-1], cuts[1:], strict=True):
        row = int(rows[first])
        begin, end = device.get(block.indptr[row : row + 2]).tolist()
        held, asked = device.get(block.cols[begin:end]), slots[first:last]
        where = np.searchsorted(held, asked)
        at[first:last] = begin + where
        inside = where < len(held)
        old[first:last][inside] = held[where[inside]] == asked[inside]
    return at, old


def _merged(device: Device, array: Any, given: np.ndarray, into: Any, at: Any, old: Any, new: Any) -> None:
    """What a block has for its entries, with what is given at those that are new and without what is deleted."""
    fresh, source, end, taken = device.put(given), 0, 0, 0
    for place, gone, comes in zip(at.tolist(), old.tolist(), new.tolist(), strict=True):
        kept = place - source
        into[end : end + kept] = array[source:place]
        end, source = end + kept, place + gone
        if comes:
            into[end : end + 1] = fresh[taken : taken + 1]
            end, taken = end + 1, taken + 1
    into[end : end + len(array) - source] = array[source:]
