"""What handles have of a kept round, until it is taken again."""

from typing import Any
from weakref import ref

from ...distribute.blocks import VectorStore
from .buffers import addresses, owned, with_same


class Lent:
    """Bitmaps, which nobody shares: whoever still has one when the round is taken again gets a copy then. (Lists are
    shared by copies of them, full vectors by diagonals and by arrays of other libraries.)"""

    def __init__(self, session: Any):
        self._session = session
        self._handles: list[tuple[Any, set[int]]] = []  # weak, with the addresses of what they were lent

    def __bool__(self) -> bool:
        return bool(self._handles)

    def lend(self, x: Any) -> bool:
        """Let a handle have what it holds of the round, if that may be."""
        if not self._lends(x._store):
            return False
        self._handles.append((ref(x), addresses(x._store.blocks)))
        x._store = with_same(x._store)  # statements that write in place put other blocks into it
        return True

    def _lends(self, store: Any) -> bool:
        bitmap = isinstance(store, VectorStore) and store.form == "bitmap" and not store.iso
        return bitmap and self._session.devices[0].kind != "cpu"

    def recall(self, ids: set[int] | None = None) -> None:
        """Handles that still have what they were lent, all or some, get copies."""
        for handle, places in self._handles:
            x = handle()
            if x is None or not (ids is None or id(x) in ids) or not isinstance(x._store, VectorStore):
                continue
            if addresses(x._store.blocks) & places:
                x._store = owned(self._session.devices, x._store)
        if ids is None:
            self._handles.clear()
