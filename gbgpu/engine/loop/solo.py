"""Thin loops on several GPUs. Rounds that give each of them microseconds of work take longer to hand out and to
exchange than to do, so the first GPU does it all: on replicas of matrices, which are kept, and on vectors brought
together, which go back to where they came from when the loop is over.

This is folding as GUM has it (Meng et al., section 4), with all devices but one evicted for a whole loop.
"""

from typing import Any

import numpy as np

from ...distribute.blocks import MatrixStore, VectorStore
from ..matrix.csr import Rows, gathered, of_users, slots_of, store_of, take_rows
from .body import handles, reads_of, statements_of
from .buffers import moved

ROOM = 3  # times the bytes of a matrix that must be free for its replica, which may be turned round too


class Solo:
    """A loop on the first device alone, from `enter` to `leave`."""

    def __init__(self, session: Any, loop: Any):
        self._session = session
        found = {id(x): x for statement in statements_of(loop.body) for x in (statement.output, *reads_of(statement))}
        for operation in loop.body:
            if operation.kind == "until":
                found.update((id(x), x) for x in handles(operation.what))
        self._changed = {id(statement.output) for statement in statements_of(loop.body)}
        self._handles = [x for x in found.values() if x.ndim]
        self._before: list[tuple[Any, Any]] = []

    @property
    def entered(self) -> bool:
        return bool(self._before)

    @property
    def whole(self) -> bool:
        """Whether all that is there lies on the first device."""
        stores = [x._store for x in self._handles if x._store is not None]
        maps = [map for x in stores for map in ((x.map,) if isinstance(x, VectorStore) else (x.rowmap, x.colmap))]
        return all(map.p == 1 for map in maps)

    def fits(self) -> bool:
        """Whether the first device has room for all of it."""
        stores = [x._store for x in self._handles if x._store is not None]
        need = sum(map(_matrix_bytes, (store for store in stores if isinstance(store, MatrixStore))))
        need += sum(store.map.n * 16 for store in stores if isinstance(store, VectorStore))
        return ROOM * need < self._session.devices[0].memory()[0]

    def enter(self) -> None:
        session = self._session
        self._before = [(x, x._store) for x in self._handles]
        session.maps.alone = True
        for x, store in self._before:
            if isinstance(store, MatrixStore):
                x._store = replica(session, store)
            elif store is not None and store.map.p > 1:
                x._store = moved(session, store, store.form, session.maps.whole(store.map.n))

    def leave(self) -> None:
        """Vectors that changed go to the rows that they had, or to those that their size has."""
        session, before, self._before = self._session, self._before, []
        session.maps.alone = False
        for x, store in before:
            if id(x) not in self._changed:
                x._store = store
            elif x._store is not None:
                map = session.maps.of(x.size) if store is None else store.map
                x._store = moved(session, x._store, x._store.form, map)


def replica(session: Any, store: MatrixStore) -> MatrixStore:
    """The matrix whole on the first device, made at the first need and kept with it."""
    if store.rowmap.p == 1 and store.colmap.p == 1:
        return store
    if store.replica is None:
        rowmap, colmap = (session.maps.whole(map.n) for map in (store.rowmap, store.colmap))
        made = session.over(rowmap.tasks, lambda task: _whole(session, store, task.device), 0.0)
        store.replica = store_of(session, rowmap, colmap, store.dtype, store.iso, made)
        store.replica.symmetric = store.symmetric
        if store.transposed is not None:
            store.replica.transposed = turned = replica(session, store.transposed)
            turned.transposed = store.replica
    return store.replica


def _whole(session: Any, store: MatrixStore, d: int) -> Rows:
    """All rows on device d, rows and columns by their user ids."""
    device, rows = session.devices[d], gathered(session, store, d)
    if store.rowmap.plain:
        rows = rows._replace(indptr=rows.indptr[: store.rowmap.n + 1])
    else:
        rows = take_rows(session, device, rows, slots_of(device, store.rowmap, device.xp.arange(store.rowmap.n)))
    return rows if store.colmap.plain else of_users(device, rows, store.colmap)


def _matrix_bytes(store: MatrixStore) -> int:
    each = np.dtype(store.idx).itemsize + (0 if store.iso else store.dtype.np_type.itemsize)
    return 0 if store.replica is not None or store.rowmap.p == 1 else store.nvals * each + 8 * store.rowmap.n
