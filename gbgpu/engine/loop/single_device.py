"""Thin loops on several GPUs. Rounds that give each of them microseconds of work take longer to hand out and to
exchange than to do, so the first GPU does it all: on replicas of matrices, which are kept, and on vectors brought
together. What it changed stays there until somebody uses it, which may be another such loop, or nobody.

GUM (Meng and others, ICDE 2023, section IV) chooses before each round how many devices take part. Here a loop runs on
all devices or on the first one alone; `device.py` decides.
"""

from typing import Any

from ...distribute.blocks import MatrixStore, VectorStore
from ...distribute.rowmap import RowMap
from ...language.recording import outputs
from ..moving import brought, moved
from .body import read_only


class SingleDevice:
    """A loop on the first device alone, from `enter` to `leave`."""

    def __init__(self, session: Any, loop: Any):
        self._session = session
        changed = {id(x): x for x in outputs(loop.body)}
        self._changed = set(changed)
        self._handles = [x for x in (*changed.values(), *read_only(loop.body)) if x.ndim]
        self._before: list[tuple[Any, Any]] | None = None  # outside

    @property
    def entered(self) -> bool:
        return self._before is not None

    @property
    def whole(self) -> bool:
        """Whether all that is there lies on the first device, and belongs there."""
        stores = [x._store for x in self._handles if x._store is not None]
        maps = [map for x in stores for map in ((x.map,) if isinstance(x, VectorStore) else (x.rowmap, x.colmap))]
        return all(map.p == 1 and map.successor is None for map in maps)

    def fits(self) -> bool:
        """Whether there is anything, and the first device has room for all of it."""
        stores = [x._store for x in self._handles if x._store is not None]
        matrices = [store for store in stores if isinstance(store, MatrixStore)]
        vectors = sum(store.map.n * 16 for store in stores if isinstance(store, VectorStore))
        return bool(self._handles) and bool(self._session.replicas.fit(matrices, vectors))

    def outside(self, x: Any) -> Any:
        """What a handle holds, or held before."""
        return next((store for y, store in self._before or () if y is x), x._store)

    def enter(self) -> None:
        session = self._session
        self._before = [(x, x._store) for x in self._handles]
        session.maps.alone = True
        apart: dict[RowMap, list[Any]] = {}
        for x, store in self._before:
            if isinstance(store, MatrixStore):
                x._store = session.replicas.of(store)
            elif store is not None and store.map is not session.maps.first(store.map.n):
                apart.setdefault(store.map, []).append(x)
        for map, handles in apart.items():
            stores = brought(session, [x._store for x in handles], None, session.maps.first(map.n))
            for x, store in zip(handles, stores, strict=True):
                x._store = store

    def leave(self) -> None:
        """What did not change is where it was, what did belongs to where others of its size are."""
        session, before, self._before = self._session, self._before or [], None
        maps = session.maps
        maps.alone = False
        for x, store in before:
            if id(x) not in self._changed:
                x._store = store
            elif x._store is not None and not maps.left(x.size) and store is not None and store.map.p > 1:
                x._store = moved(session, x._store, x._store.form, store.map)
