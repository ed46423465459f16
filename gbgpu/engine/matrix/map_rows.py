"""A function of arrays, as libraries of linear algebra have them, called for the rows of each device there."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...device.base import Device
from ...distribute.blocks import MatrixBlock, MatrixStore, revalued
from ...distribute.rowmap import RowMap, Task
from ...errors import InvalidValue, message
from .csr import aligned

VALUE = 1e-8  # seconds for each value of a function that takes little: what it takes is not known


def map_rows(session: Any, function: Callable[..., Any], stores: Sequence[MatrixStore]) -> MatrixStore:
    """The first matrix with the values that function(*arrays) gives. An array has those rows of its matrix that have
    entries, and the columns in the order of user ids. Raises InvalidValue if one of these rows lacks entries, or if
    other rows have entries in another matrix."""
    like, tasks = stores[0], stores[0].rowmap.tasks
    elsewhere = (store for store in stores if not store.rowmap.same(like.rowmap))
    there = {store: aligned(session, store, like.rowmap, store.colmap) for store in elsewhere}
    stores = [there.get(store, store) for store in stores]

    def whole(task: Task) -> bool:
        device, b = session.devices[task.device], task.block
        words, counts = zip(*(_with_entries(device, store.blocks[b]) for store in stores), strict=True)
        full = [store.blocks[b].nnz == n * store.colmap.n for n, store in zip(counts, stores, strict=True)]
        return all(full) and all(device.equal(words[0], others) for others in words[1:])

    def work(task: Task) -> Any:
        device, block = session.devices[task.device], like.blocks[task.block]
        if not block.nnz:
            return block.with_values(device.zeros(1, like.dtype.np_type), 1)
        given = [_rows(device, store.blocks[task.block], store.colmap) for store in stores]
        try:
            found = function(*given)
            if (shape := getattr(found, "shape", None)) != given[0].shape:
                came = type(found).__name__ if shape is None else f"shape {shape}"
                raise InvalidValue(message(f"an array of shape {given[0].shape}", came))
        except Exception as error:
            return error
        vals, order = device.empty(block.nnz, like.dtype.np_type), like.colmap.order
        vals[: block.nnz] = (found if order is None else found[:, device.put(order)]).reshape(-1)
        return block.with_values(vals, 1)

    if not all(session.allgather(tasks, session.over(tasks, whole, 0.0), "rows that have entries")):
        raise InvalidValue(message("rows with all entries or with none, the same ones in all matrices", "other rows"))
    blocks = session.over(tasks, work, VALUE * sum(store.nvals for store in stores) / len(tasks))
    failure = next((found for found in blocks if isinstance(found, Exception)), None)
    if session.ranks is not None:
        session.ranks.agreed(failure, "a function of rows")
    elif failure is not None:
        raise failure
    return revalued(like, like.dtype, False, blocks)


def _with_entries(device: Device, block: MatrixBlock) -> tuple[Any, int]:
    """(presence words of the rows that have entries, how many these are)."""
    words, count = device.empty((block.n + 63) // 64, np.int64), device.zeros(1, np.int64)
    device.lengths(block.indptr, device.empty(block.n, np.int64), words, count)
    return words, int(device.get(count)[0])


def _rows(device: Device, block: MatrixBlock, columns: RowMap) -> Any:
    """The values of the rows that have entries, by user ids of columns."""
    vals = block.vals[: block.nnz] if block.stride else device.xp.repeat(block.vals[:1], block.nnz)
    found = vals.reshape(-1, columns.n)
    return found if columns.order is None else found[:, device.put(columns.places(np.arange(columns.n)))]
