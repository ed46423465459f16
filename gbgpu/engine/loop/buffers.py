"""Buffers of what a round hands to the next: copies that nobody shares, in the form and on the rows that are wanted;
and how results come back to their places."""

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np

from ...device.base import address
from ...distribute.blocks import VectorBlock, VectorStore
from ..run.steps import copied


def at_once(devices: Any) -> AbstractContextManager:
    """What the devices copy and clear inside is a launch for each."""
    if len(devices) == 1:
        found: AbstractContextManager = devices[0].at_once()
        return found
    stack = ExitStack()
    for device in devices:
        stack.enter_context(device.at_once())
    return stack


def most_rows(session: Any, handles: Iterable[Any]) -> int:
    """Rows for which the GPU where vectors take most has room: lists have it for all of them on each device. CPU
    devices share their memory."""
    rows: Counter[int | None] = Counter()
    for x in (x for x in handles if x.ndim == 1):
        map, listed = session.maps.of(x.size), x._store is not None and x._store.form == "list"
        for task, n in zip(map.tasks, map.rows, strict=True):
            rows[getattr(session.devices[task.device], "gpu", None)] += map.nslots if listed else n
    return max(rows.values(), default=0)


def described(store: VectorStore) -> tuple:
    return store.form, store.iso, store.dtype, store.map


def addresses(blocks: Any) -> set[int]:
    """Where the arrays of blocks are."""
    arrays = [array for block in blocks or () for array in (block.slots, block.vals, block.words)]
    return {address(array) for array in arrays if array is not None and array.size}


def owned(devices: Any, store: VectorStore) -> VectorStore:
    """A copy in buffers that nobody shares."""
    own = _listed if store.form == "list" else _dense
    blocks = [own(device, block, store) for device, block in zip(devices, store.blocks, strict=False)]
    return VectorStore(store.map, store.dtype, store.form, store.iso, blocks)


def _listed(device: Any, block: VectorBlock, store: VectorStore) -> VectorBlock:
    """A list with room for all rows."""
    room, count = store.map.nslots, copied(device, block.count)
    slots, vals = device.empty(room, block.slots.dtype), device.empty(1 if store.iso else room, store.dtype.np_type)
    device.copy_counted(slots, block.slots, block.count)
    if store.iso:
        device.copy(vals, block.vals[:1])
    else:
        device.copy_counted(vals, block.vals, block.count)
    return VectorBlock(block.n, vals, block.stride, slots=slots, count=count)


def _dense(device: Any, block: VectorBlock, store: VectorStore) -> VectorBlock:
    """A full block or a bitmap; of one that has one value, that value."""
    parts = block.vals[:1] if store.iso else block.vals, block.words, block.count
    vals, words, count = (None if part is None else copied(device, part) for part in parts)
    return VectorBlock(block.n, vals, 0 if store.iso else block.stride, words, count=count)


def differing(device: Any, place: VectorBlock, made: VectorBlock, store: VectorStore) -> list[tuple[Any, Any]]:
    """Launches that bring arrays back; pairs of single values that are left to be brought."""
    pairs: list[tuple[Any, Any]] = []
    if made.count is not place.count and made.count is not None and place.count is not None:
        pairs.append((place.count, made.count))
    if store.form == "list":
        if apart(made.slots, place.slots):
            device.copy_counted(place.slots, made.slots, made.count)
        if store.iso:
            pairs += [(place.vals, made.vals)] if apart(made.vals, place.vals) else []
        elif apart(made.vals, place.vals):
            device.copy_counted(place.vals, made.vals, made.count)
        return pairs
    if store.iso and apart(made.vals, place.vals):
        pairs.append((place.vals, made.vals))
    for name in ("words",) if store.iso else ("vals", "words"):
        mine, other = getattr(place, name), getattr(made, name)
        if place.n and mine is not None and apart(mine, other):  # without rows, arrays have none or one
            device.copy(mine, other)
    return pairs


def fetched(devices: Any, into: Any, blocks: Any, place: VectorStore) -> list[tuple[Any, Any]]:
    """The same for all blocks of a vector, `into` those of a place."""
    return [pair for triple in zip(devices, into, blocks, strict=False) for pair in differing(*triple, place)]


def apart(one: Any, two: Any) -> bool:
    return one is not two and address(one) != address(two)


def words_of(scalar: Any) -> np.ndarray:
    """The value that a scalar has on the host, and that there is one, as they lie on devices."""
    both = np.full(2, -1)
    both.view(scalar.dtype.np_type)[:1] = scalar._value
    return both


def copy_of(devices: Any, store: Any) -> Any:
    """A copy of what a handle holds, of a vector or a scalar on the devices."""
    if store is None or isinstance(store, VectorStore):
        return store and owned(devices, store)
    both, vals, empty = store
    mine = copied(devices[0], both)
    return mine, mine.view(vals.dtype)[:1], empty


def with_same(store: VectorStore, blocks: Any = None) -> VectorStore:
    """A store of its own with the same blocks, or with others like them."""
    return VectorStore(store.map, store.dtype, store.form, store.iso, list(store.blocks if blocks is None else blocks))


EXACTLY: frozenset[tuple[str, str]] = frozenset()
THINNER = frozenset([("bitmap", "list")])
EITHER = THINNER | {("list", "bitmap")}


def alike(x: Any, place: Any, turns: frozenset[tuple[str, str]]) -> bool:
    """Whether a place has room for what a handle holds, in its form or one that is soon brought to it: what `turns`
    into what."""
    store = x._store
    if x.ndim == 0:
        return place is not None and (x._value is not None if store is None else store[2] == place[2])
    if store is None or place is None:
        return store is None and (place is None or place.form != "full")
    like = store.form == place.form or (store.form, place.form) in turns
    return like and (store.iso or not place.iso) and (store.dtype, store.map) == (place.dtype, place.map)


def spread(devices: Any, blocks: Any, store: VectorStore) -> None:
    """Give every row, or every entry of a list, the one value that a vector has."""
    for device, block, one in zip(devices, blocks, store.blocks, strict=False):
        listed = store.form == "list"
        if block.n:
            device.copy(block.vals[: store.nvals if listed else None], one.vals[:1])
        if listed:
            device.copy_counted(block.slots, one.slots, one.count)
            device.copy(block.count, one.count)
        if block.words is not None:
            device.copy(block.words, one.words)
            device.copy(block.count, one.count)


def emptied(devices: Any, blocks: Any) -> None:
    """Leave no entry in a list or a bitmap."""
    for device, block in zip(devices, blocks, strict=False):
        for array in (block.words, block.count):
            if array is not None:
                device.clear(array)


def put_back(handles: list[Any], places: list[Any], blocks: list[Any]) -> None:
    """Handles hold what lies in their places."""
    for handle, place, held in zip(handles, places, blocks, strict=True):
        handle._store = place
        if held is not None:
            place.blocks = list(held)


def blocks_of(place: Any) -> Any:
    """The blocks of a vector's place; None for a scalar's."""
    return list(place.blocks) if isinstance(place, VectorStore) else None
