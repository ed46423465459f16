"""The row map of a size: which block and slot a user id has. Pure arithmetic."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device

WORD = 64  # rows of a presence word; every block starts on one
PIECE = 1 << 16  # ids that are translated at once, so that they stay in the caches
FAR = 1 << 62  # kernels/interface.py: `row0` of rows that have an order of their own

Order = np.ndarray | None  # user ids in the order of blocks; None where that is 0, 1, 2 ...


def in_words(n: int, p: int) -> bool:
    """Whether p blocks of consecutive ids begin with whole words.

    Slots are then the user ids, and nothing has to be translated.
    """
    return n >= p * WORD * WORD


class Task(NamedTuple):
    """Rows lo .. hi - 1 of a block, for a device to work on. Who stores and writes a block is another matter."""

    device: int
    block: int
    lo: int
    hi: int


class Tables(NamedTuple):
    """A map in a device's memory.

    ids: what kernels are given as (starts, bounds) to turn slots into user ids; slots: of each user id, and users: of
    each slot, if rows have an order of their own.
    """

    starts: Any
    bounds: Any
    ids: tuple[Any, Any]
    slots: Any
    users: Any


class RowMap:
    """User id <-> slot of one index space.

    Block b owns the places bounds[b]..bounds[b+1]; its slots begin at starts[b], a multiple of 64. `order`: the user id
    at each place; None where places are the user ids, as in a map of one block. `heads`: the map of the delegates, the
    first rows of each block, with slots of their own; None if there are none.
    """

    __slots__ = (
        *("n", "p", "bounds", "starts", "nslots", "rows", "tasks", "seconds", "plain", "order", "heads", "_place"),
        *("_bounds", "_starts", "_tables", "successor", "observed"),
    )

    def __init__(self, bounds: np.ndarray, order: Order = None, delegates: np.ndarray | None = None):
        self.bounds = np.asarray(bounds, np.int64)
        self.n = int(self.bounds[-1])
        self.p = len(self.bounds) - 1
        self.rows = [int(r) for r in np.diff(self.bounds)]
        self.seconds: float | None = None  # predicted, of a pass over a block's rows
        self.tasks = tuple(Task(b, b, 0, n) for b, n in enumerate(self.rows))  # each block whole, by its owner
        padded = [-(-r // WORD) * WORD for r in self.rows]
        self.starts = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
        self.nslots = int(self.starts[-1])
        ascending = order is None or self.p == 1 or bool((order == np.arange(self.n)).all())
        self.order = None if ascending else np.asarray(order, np.int64)
        self._place = None if self.order is None else np.argsort(self.order)
        has = np.diff(self.bounds) > 0  # slots are the user ids, where there are any
        self.plain = self.order is None and bool((self.starts[:-1] == self.bounds[:-1])[has].all())
        self.heads = None if delegates is None else RowMap(np.concatenate([[0], np.cumsum(delegates)]))
        self._bounds, self._starts = self.bounds.tolist(), self.starts.tolist()  # NumPy scalars are slow to pass around
        self._tables: dict[str, Tables] = {}
        self.successor: RowMap | None = None  # where what lies on these rows goes at its next use (engine/moving.py)
        self.observed: Any = None  # what products with these rows took (engine/repartitioning.py)

    def same(self, other: "RowMap") -> bool:
        """Whether rows lie in the same places."""
        mine, its = (np.zeros(0) if map.order is None else map.order for map in (self, other))
        heads = [None if map.heads is None else map.heads.rows for map in (self, other)]
        return np.array_equal(self.bounds, other.bounds) and np.array_equal(mine, its) and heads[0] == heads[1]

    def straight(self) -> "RowMap":
        """The same sizes of blocks, with rows in the order of user ids."""
        return self if self.order is None else RowMap(self.bounds)

    def first(self, b: int) -> int:
        """Place of block b's first row."""
        return self._bounds[b]

    def first_slot(self, b: int) -> int:
        """Slot of block b's first row."""
        return self._starts[b]

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Places of user ids."""
        return ids if self._place is None else self._place[ids]

    def part(self, b: int) -> Any:
        """Where an array in the order of user ids has the rows of block b: a slice, or their ids."""
        rows = slice(self._bounds[b], self._bounds[b + 1])
        return rows if self.order is None else self.order[rows]

    def owner(self, ids: Any) -> Any:
        """The block of each user id."""
        return np.searchsorted(self.bounds, self.places(ids), side="right") - 1

    def slots(self, ids: np.ndarray) -> np.ndarray:
        """Slots of user ids, int64."""
        if self.plain:
            return np.asarray(ids, np.int64)
        if len(ids) > self.n:
            return self.slots(np.arange(self.n))[ids]
        places = self.places(ids)
        block = np.searchsorted(self.bounds, places, side="right") - 1
        return places + (self.starts[:-1] - self.bounds[:-1])[block]

    def by_owner(self, slots: np.ndarray) -> list[np.ndarray]:
        """For each block, which of these slots are its own."""
        below = [slots < end for end in self._starts[1:]]  # faster than a search
        return [np.flatnonzero(below[0]), *(np.flatnonzero(b & ~a) for a, b in pairwise(below))]

    def by_block(self, places: np.ndarray) -> list[np.ndarray]:
        """Ascending places of all rows as rows of each block, of the type of slots."""
        dtype = self.slot_type()
        if self.p == 1:
            return [places.astype(dtype)]
        cuts = np.searchsorted(places, self.bounds)
        return [(places[cuts[b] : cuts[b + 1]] - self.bounds[b]).astype(dtype) for b in range(self.p)]

    def to_slots(self, ids: np.ndarray) -> None:
        """Turn user ids into slots where they lie, one piece after another."""
        pieces = (ids[at : at + PIECE] for at in range(0, len(ids), PIECE))
        if self.order is not None:
            slots: Callable[[np.ndarray], np.ndarray] = self.slots
            if len(ids) > self.n:  # each id is looked up once
                table = np.arange(self.n)
                self.to_slots(table)
                slots = table.__getitem__
            for part in pieces:
                part[:] = slots(part)
            return
        shifts = self.starts[:-1] - self.bounds[:-1]
        steps = [(self.bounds[b], np.int8(shifts[b] - shifts[b - 1])) for b in range(self.p - 1, 0, -1)]
        steps = [(ids.dtype.type(bound), step) for bound, step in steps if step]
        for part in pieces if steps else ():
            for bound, step in steps:  # from the last block, so that what was moved stays above the other bounds
                part += (part >= bound).view(np.int8) * step

    def users(self, slots: np.ndarray) -> np.ndarray:
        """User ids of slots, int64."""
        if self.p == 1:
            return np.asarray(slots, np.int64)
        if len(slots) > self.nslots:  # each slot looked up once
            return self.users(np.arange(self.nslots))[slots]
        block = np.searchsorted(self.starts, slots, side="right") - 1
        places = slots + (self.bounds[:-1] - self.starts[:-1])[block]
        return places if self.order is None else self.order[np.minimum(places, self.n - 1)]  # padding is nobody's

    def tables(self, device: Device) -> Tables:
        """The map in the device's memory."""
        found = self._tables.get(device.name)
        if found is None:
            with device.uncaptured():
                starts, bounds = device.put(self.starts), device.put(self.bounds)
                found = Tables(starts, bounds, (starts, bounds), None, None)
                if self.order is not None:
                    users = device.put(self.users(np.arange(self.nslots)))
                    slots = device.put(self.slots(np.arange(self.n)))
                    found = found._replace(ids=(device.put(self.starts[:1]), users), slots=slots, users=users)
            self._tables[device.name] = found
        return found

    def row_ids(self, device: Device, b: int) -> tuple[int, Any]:
        """(row0, users): how kernels turn rows of block b into user ids."""
        if self.order is None:
            return self._bounds[b], self.tables(device).starts
        return self._starts[b] - FAR, self.tables(device).users

    def slot_type(self) -> str:
        """Column slots are 32-bit while they fit."""
        return "int32" if self.nslots < 2**31 else "int64"
