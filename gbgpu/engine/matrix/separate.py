"""Matrices whose delegates' rows are a second time where their columns lie, so that products ask others for less (Pan,
Pearce, Owens, "Scalable Breadth-First Search on a GPU Cluster", IPDPS 2018, sections III and V)."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...distribute.blocks import MatrixBlock, MatrixStore, assembled, matrix_block
from ...distribute.halo import Halo, halo
from ...distribute.rowmap import FAR, Task
from ...errors import NotImplementedException, message
from ...kernels.interface import Spec
from ..context import Context
from ..plan import Step, Value
from .csr import Piece, Rows, joined, keep_entries, near_pieces, read


class Separated(NamedTuple):
    """normal: the rows of others than delegates, with their owners: of the same maps, and parts of the same columns and
    values. delegates: on each device the rows of all delegates, by the slots of `RowMap.heads`, with the columns that
    it owns. users: (row0, users) of these rows, as kernels turn them into ids. halo: what normal rows read of other
    owners (None: everything), which are `moved` values in all."""

    normal: MatrixStore
    delegates: list[MatrixBlock]
    users: list[tuple[int, Any]]
    halo: Halo | None
    moved: int


def separated(session: Context, store: MatrixStore) -> Separated | None:
    """The matrix with its delegates apart, made at the first need and kept with it; None where it is not there and the
    statement in hand does not run. Raises NotImplementedException where a device would get 2**31 entries of theirs."""
    if store.apart is None:
        into = Value("A", "csr", store.dtype, store.iso, store.rowmap)
        step = Step("separate", into, (), Spec(), "rows of delegates to the owners of their columns, cached with A")
        store.apart = session.aside(step, partial(_made, session, store), lambda: None)
    found: Separated | None = store.apart
    return found


def _made(session: Context, store: MatrixStore) -> Separated:
    map, heads, devices = store.rowmap, store.rowmap.heads, session.devices
    assert heads is not None
    seconds = store.nvals * session.kernels.costs.row / map.p
    slots = np.diff(heads.starts).tolist()

    def cut(task: Task) -> tuple[MatrixBlock, list[Rows]]:
        """The normal rows of a block; and those of its delegates, by who owns the columns."""
        device, block, few = devices[task.device], store.blocks[task.block], heads.rows[task.block]
        first = read(device, block.indptr, few)  # entry of a normal row
        offsets = device.xp.maximum(block.indptr, first) - block.indptr.dtype.type(first)
        apart = bool(block.stride and first < block.nnz)
        vals = block.vals[first:] if apart else block.vals
        normal = matrix_block(device, offsets, block.cols[first:], vals, block.stride, block.nnz - first)
        padding = device.full(slots[task.block] - few, first, block.indptr.dtype)
        offsets, cols = device.xp.concatenate([block.indptr[: few + 1], padding]), block.cols[:first]
        rows = Rows(offsets, cols, block.vals, block.stride)
        owned = [(cols >= lo) & (cols < hi) for lo, hi in pairwise(map.starts.tolist())]
        return normal, [keep_entries(device, rows, keep) for keep in owned]

    parts = session.over(map.tasks, cut, seconds)

    def piece(owner: Task, b: int) -> Piece:
        given, n = parts[owner.block], slots[owner.block]
        if devices[owner.device].kind == "remote":
            return Piece(owner.device, given, 0, n, 0, 0)
        return Piece(owner.device, given[1][b], 0, n, 0, len(given[1][b].cols))

    owners = [task for task in map.tasks if slots[task.block]]
    wanted = near_pieces(session, store.iso, map.tasks, [[piece(owner, b) for owner in owners] for b in range(map.p)])

    def whole(task: Task) -> MatrixBlock:
        device, rows = devices[task.device], joined(session, store, task.device, wanted[task.block])
        if store.ptr == "int32" and len(rows.cols) >= 2**31:
            raise NotImplementedException(message("fewer than 2**31 entries of delegates on a device", len(rows.cols)))
        vals = rows.vals if len(rows.vals) else device.zeros(1, store.dtype.np_type)
        stride = 0 if store.iso else 1
        return matrix_block(device, rows.indptr.astype(store.ptr), rows.cols, vals, stride, len(rows.cols))

    delegates = session.over(map.tasks, whole, seconds)
    blocks = [part[0] if devices[d].kind != "remote" else part for d, part in enumerate(parts)]
    normal = assembled(map, map, store.dtype, store.iso, blocks, session.allgather)

    def over(tasks: Sequence[Task], work: Callable[[Task], Any], seconds: float) -> Any:
        return session.allgather(tasks, session.over(tasks, work, seconds), "a halo")

    thin = halo(normal, devices, over, lambda few, all: few < all)
    moved = (map.p - 1) * map.n if thin is None else sum(one.length for pieces in thin.pieces for one in pieces)
    ids = np.zeros(heads.nslots, np.int64)
    for b, few in enumerate(heads.rows):
        at = heads.first_slot(b)
        ids[at : at + few] = map.users(map.first_slot(b) + np.arange(few))
    return Separated(normal, delegates, [(-FAR, device.put(ids)) for device in devices[: map.p]], thin, moved)
