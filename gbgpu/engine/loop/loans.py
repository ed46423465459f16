"""What objects have of a kept round, until it is taken again."""

from typing import Any
from weakref import ref

from ...distribute.blocks import VectorStore
from .buffers import addresses, owned, with_same


class Loans:
    """Bitmaps, which nobody shares: where content still lies there when the round is taken again, it gets buffers of
    its own. (Lists are shared by copies of them, full vectors by diagonals and by arrays of other libraries.)"""

    def __init__(self, session: Any):
        self._session = session
        self._stores: list[tuple[Any, set[int]]] = []  # weak, with the addresses of what they were lent

    def __bool__(self) -> bool:
        return bool(self._stores)

    def lend(self, x: Any) -> bool:
        """Let a handle have what it holds of the round, if that may be."""
        if not self._lends(x._store):
            return False
        x._store = with_same(x._store)  # statements that write in place put other blocks into it
        self._stores.append((ref(x._store), addresses(x._store.blocks)))
        return True

    def _lends(self, store: Any) -> bool:
        return isinstance(store, VectorStore) and store.form == "bitmap" and not store.iso

    def recall(self, stores: set[int] | None = None) -> None:
        """What still lies where it was lent, all or (by their ids) some, is copied."""
        for weak, places in self._stores:
            store = weak()
            if store is not None and (stores is None or id(store) in stores) and addresses(store.blocks) & places:
                store.blocks = owned(self._session.devices, store).blocks
        if stores is None:
            self._stores.clear()
