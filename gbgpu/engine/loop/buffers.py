"""Buffers of what a round hands to the next: copies that nobody shares, in the form and on the rows that are wanted;
and how results come back to their places."""

from typing import Any

from ...device.base import address
from ...distribute.blocks import VectorBlock, VectorStore
from ..run.steps import copied


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


def apart(one: Any, two: Any) -> bool:
    return one is not two and address(one) != address(two)
