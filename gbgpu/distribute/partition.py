"""Rows -> owners: pure arithmetic. A partition makes block bounds for a size; a RowMap translates user ids and
slots."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from ..errors import InvalidValue, message

WORD = 64  # rows of a presence word; every block starts on one


class Partition:
    """How rows are divided among p devices. `bounds(n, p, lengths)` gives p + 1 user ids; `lengths` are entries a row,
    an empty array where no row has any, or None."""

    def __init__(self, name: str, bounds: Callable[[int, int, np.ndarray | None], np.ndarray]):
        self.name = name
        self.bounds = bounds

    def __repr__(self) -> str:
        return f"partition.{self.name}"


def _cut(n: int, weights: np.ndarray) -> np.ndarray:
    """Bounds of blocks whose sizes are as weights: each row goes to one block, sizes differ from the exact share by
    less than one row."""
    share = np.concatenate([[0], np.cumsum(weights)]) / weights.sum()
    return np.floor(share * n + 0.5).astype(np.int64)


def equal_rows() -> Partition:
    """The same number of rows for every device."""
    return Partition("equal_rows()", lambda n, p, lengths: _cut(n, np.ones(p)))


def equal_edges() -> Partition:
    """About the same number of rows plus entries for every device (rows count, because a probe of an empty row is work
    too)."""

    def bounds(n: int, p: int, lengths: np.ndarray | None) -> np.ndarray:
        if lengths is None or n == 0:
            return _cut(n, np.ones(p))
        if len(lengths):
            work = np.cumsum(lengths, dtype=np.int64) + np.arange(1, n + 1)
            inner = np.minimum(np.searchsorted(work, work[-1] * np.arange(1, p) / p, side="left") + 1, n)
        else:
            inner = -(-n * np.arange(1, p) // p)
        if n >= p * WORD * WORD:  # whole words: slots are then the user ids, and nothing has to be translated
            inner = inner // WORD * WORD
        return np.concatenate([[0], inner, [n]]).astype(np.int64)

    return Partition("equal_edges()", bounds)


def shares(*weights: float) -> Partition:
    """Blocks in proportion to `weights`, one for each device: `shares(1, 5, 3)`. Raises InvalidValue on a negative
    weight or a zero sum."""
    if not weights or not all(0 <= weight < float("inf") for weight in weights) or sum(weights) <= 0:
        raise InvalidValue(message("non-negative weights with a positive sum", weights, "one weight for each device"))

    def bounds(n: int, p: int, lengths: np.ndarray | None) -> np.ndarray:
        if p != len(weights):
            raise InvalidValue(message(f"one weight for each of the {p} devices", f"{len(weights)} weights: {weights}"))
        return _cut(n, np.asarray(weights, float))

    return Partition(f"shares{weights}", bounds)


class Task(NamedTuple):
    """Rows lo .. hi - 1 of a block, for a device to work on. Who stores and writes a block is another matter."""

    device: int
    block: int
    lo: int
    hi: int


class RowMap:
    """User id <-> slot of one index space. Block b owns user ids bounds[b]..bounds[b+1]; its slots begin at starts[b],
    a multiple of 64."""

    __slots__ = (
        *("n", "p", "bounds", "starts", "nslots", "rows", "tasks", "seconds", "plain", "_bounds", "_starts", "_tables"),
    )

    def __init__(self, bounds: np.ndarray):
        self.bounds = np.asarray(bounds, np.int64)
        self.n = int(self.bounds[-1])
        self.p = len(self.bounds) - 1
        self.rows = [int(r) for r in np.diff(self.bounds)]
        self.seconds: float | None = None  # predicted, of a pass over a block's rows
        self.tasks = tuple(Task(b, b, 0, n) for b, n in enumerate(self.rows))  # each block whole, by its owner
        padded = [-(-r // WORD) * WORD for r in self.rows]
        self.starts = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
        self.nslots = int(self.starts[-1])
        self.plain = bool((self.starts[:-1] == self.bounds[:-1]).all())  # slots are the user ids
        self._bounds, self._starts = self.bounds.tolist(), self.starts.tolist()  # NumPy scalars are slow to pass around
        self._tables: dict[Any, tuple[Any, Any]] = {}

    def first(self, b: int) -> int:
        """User id of block b's first row."""
        return self._bounds[b]

    def first_slot(self, b: int) -> int:
        """Slot of block b's first row."""
        return self._starts[b]

    def owner(self, ids: Any) -> Any:
        """The block of each user id."""
        return np.searchsorted(self.bounds, ids, side="right") - 1

    def slots(self, ids: np.ndarray) -> np.ndarray:
        """Slots of user ids, int64."""
        if self.p == 1:
            return np.asarray(ids, np.int64)
        if len(ids) > self.n:
            return self.slots(np.arange(self.n))[ids]
        block = self.owner(ids)
        return ids + (self.starts[:-1] - self.bounds[:-1])[block]

    def to_slots(self, ids: np.ndarray) -> None:
        """Turn user ids into slots where they lie, a piece that stays in the caches after another."""
        shifts = self.starts[:-1] - self.bounds[:-1]
        steps = [(self.bounds[b], np.int8(shifts[b] - shifts[b - 1])) for b in range(self.p - 1, 0, -1)]
        steps = [(ids.dtype.type(bound), step) for bound, step in steps if step]
        for at in range(0, len(ids) if steps else 0, 1 << 16):
            part = ids[at : at + (1 << 16)]
            for bound, step in steps:  # from the last block, so that what was moved stays above the other bounds
                part += (part >= bound).view(np.int8) * step

    def users(self, slots: np.ndarray) -> np.ndarray:
        """User ids of slots, int64."""
        if self.p == 1:
            return np.asarray(slots, np.int64)
        if len(slots) > self.nslots:  # each slot looked up once
            return self.users(np.arange(self.nslots))[slots]
        block = np.searchsorted(self.starts, slots, side="right") - 1
        return slots + (self.bounds[:-1] - self.starts[:-1])[block]

    def tables(self, device: Device) -> tuple[Any, Any]:
        """(starts, bounds) in the device's memory."""
        found = self._tables.get(device.name)
        if found is None:
            found = self._tables[device.name] = device.put(self.starts), device.put(self.bounds)
        return found

    def slot_type(self) -> str:
        """Column slots are 32-bit while they fit."""
        return "int32" if self.nslots < 2**31 else "int64"
