"""Replicas: matrices whole on the first of several GPUs, beside their blocks on all, and rows that other devices than
their owners compute. They are made at the first need and kept with the matrix, as far as memory (or
`gb.init(replicas=...)`) lets; they go before an allocation fails."""

from typing import Any
from weakref import WeakSet

from ..distribute.blocks import MatrixStore
from ..errors import InvalidValue, message
from .matrix.csr import Rows, gathered, of_users, slots_of, store_of, take_rows

ROOM = 3  # times the bytes of a matrix that must be free for its replica, which may be turned round too


class Replicas:
    """`most`: bytes that they may take; "auto", as many as leave room. Raises InvalidValue for anything else."""

    def __init__(self, session: Any, most: Any):
        if most != "auto" and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
            raise InvalidValue(message('replicas="auto", or a number of bytes (0: none)', repr(most)))
        self._session, self.most = session, most
        self._stores: WeakSet[MatrixStore] = WeakSet()  # that have one

    def bytes(self) -> int:
        """What they take now."""
        whole = sum(_bytes(store) for store in self._stores if store.replica is not None)
        rows = sum(store.shared.bytes for store in self._stores if store.shared is not None)
        copies = ((store, block) for store in self._stores for block in store.copies.values())
        blocks = sum(block.nnz * store.entry_bytes + block.indptr.nbytes for store, block in copies)
        bits = sum(words.nbytes for store in self._stores if store.hubs is not None for words in store.hubs.rows)
        beside = sum(x.nbytes for store in self._stores if store.near for x in (*store.near.asked, *store.near.orders))
        return whole + rows + blocks + bits + beside

    def fit(self, stores: list[MatrixStore], beside: int) -> bool:
        """Whether there is room for replicas of these, and so many bytes beside."""
        need = sum(_bytes(store) for store in stores if store.replica is None and not _whole(store))
        return self._allowed(need) and self._session.devices[0].has_room(ROOM * (need + beside))

    def of(self, store: MatrixStore) -> MatrixStore:
        """The matrix whole on the first device."""
        if _whole(store):
            return store
        if store.replica is None:
            session = self._session
            rowmap, colmap = (session.maps.first(map.n) for map in (store.rowmap, store.colmap))
            made = session.over(rowmap.tasks, lambda task: _rows(session, store, task.device), 0.0)
            store.replica = store_of(session, rowmap, colmap, store.dtype, store.iso, made)
            store.replica.symmetric = store.symmetric
            self._stores.add(store)
            if store.transposed is not None:
                store.replica.transposed = turned = self.of(store.transposed)
                turned.transposed = store.replica
        return store.replica

    def room(self, bytes: list[int]) -> bool:
        """Whether devices may take so much for rows that others own."""
        pairs = zip(bytes, self._session.devices, strict=True)
        return self._allowed(sum(bytes)) and all(device.has_room(ROOM * need) for need, device in pairs)

    def _allowed(self, need: int) -> bool:
        """Whether so many bytes more are no more than was said."""
        return not need or self.most == "auto" or self.bytes() + need <= self.most

    def keep(self, store: MatrixStore) -> None:
        """Rows of a matrix are shared from now on."""
        self._stores.add(store)

    def drop(self) -> bool:
        """Give their memory back; whether there were any."""
        stores = list(self._stores)
        self._stores.clear()
        for store in stores:
            store.replica = store.shared = None
            store.copies, store.hubs, store.missed = {}, None, 0.0
            store.near = store.near and False  # it is not looked for again
        return bool(stores)


def _whole(store: MatrixStore) -> bool:
    return store.rowmap.p == 1 and store.colmap.p == 1


def _bytes(store: MatrixStore) -> int:
    """Of a replica."""
    return store.nvals * store.entry_bytes + 8 * store.rowmap.n


def _rows(session: Any, store: MatrixStore, d: int) -> Rows:
    """All rows on device d, rows and columns by their user ids."""
    device, rows = session.devices[d], gathered(session, store, d)
    if store.rowmap.plain:
        rows = rows._replace(indptr=rows.indptr[: store.rowmap.n + 1])
    else:
        rows = take_rows(session, device, rows, slots_of(device, store.rowmap, device.xp.arange(store.rowmap.n)))
    return rows if store.colmap.plain else of_users(device, rows, store.colmap)
