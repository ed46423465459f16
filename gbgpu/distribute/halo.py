"""What blocks of a matrix read of other owners' rows (Lux's update sets). Where that is little, a pull brings single
values, and not whole vectors."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from .blocks import MatrixStore
from .rowmap import WORD, Task


class Piece(NamedTuple):
    """What one owner gives one target: `length` values, from `begin` on of what it packs, to `at` of what arrives."""

    owner: int
    begin: int
    at: int
    length: int


class Halo(NamedTuple):
    """asked: local rows of an owner that others read, one target after another, each with -1 up to the next word of
    bits; placed: (how many values arrive, the slots that they are of) of a target, one owner after another, both on the
    devices; pieces: of each target."""

    asked: list[Any]
    placed: list[tuple[Any, Any]]
    pieces: list[list[Piece]]


class Near(NamedTuple):
    """A halo that is read where it arrives, behind the block's own rows: `asked` as a Halo has it; pieces: of each
    target, `at` their places among these; sizes: how many places there are; orders: of each target, its columns in the
    order in which they are read, as places."""

    asked: list[Any]
    pieces: list[list[Piece]]
    sizes: list[int]
    orders: list[Any]


def near(
    store: MatrixStore,
    devices: Sequence[Device],
    orders: Sequence[Any],
    over: Callable[..., Sequence[Any]],
    pays: Callable[[int, int], bool],
) -> Near | None:
    """What the blocks of a matrix read in these orders of column slots (each once); None unless it `pays`."""
    map, seconds = store.colmap, store.colmap.n * 1e-10
    others = [[o for o in range(map.p) if o != b] for b in range(map.p)]

    def read(task: Task) -> dict[int, Any]:
        """Local rows of each other owner, ascending."""
        b, xp = task.block, devices[task.device].xp
        named = xp.zeros(map.nslots, bool)
        named[orders[b]] = True
        return {o: xp.flatnonzero(named[map.first_slot(o) :][: map.rows[o]]) for o in others[b]}

    rows = over(map.tasks, read, seconds)
    if not pays(sum(len(found) for each in rows for found in each.values()), (map.p - 1) * map.n):
        return None
    sizes, totals = [_padded(n) for n in map.rows], [0] * map.p
    pieces: list[list[Piece]] = [[] for _ in sizes]
    for b, o in [(b, o) for b, mine in enumerate(others) for o in mine]:
        length = len(rows[b][o])
        pieces[b].append(Piece(o, totals[o], sizes[b], length))
        sizes[b], totals[o] = (at + _padded(length) for at in (sizes[b], totals[o]))

    def asked(task: Task) -> Any:
        o, device = task.block, devices[task.device]
        found = device.full(totals[o], -1, np.int64)
        for b in others[o]:
            _, begin, _, length = pieces[b][o - (o > b)]
            device.copy(found[begin : begin + length], rows[b][o])
        return found

    def placed(task: Task) -> Any:
        b, xp = task.block, devices[task.device].xp
        place = xp.zeros(map.nslots, np.int32)
        place[map.first_slot(b) :][: map.rows[b]] = xp.arange(map.rows[b])
        for owner, _, at, length in pieces[b]:
            place[rows[b][owner] + map.first_slot(owner)] = xp.arange(at, at + length)
        return place[orders[b]]

    return Near(list(over(map.tasks, asked, seconds)), pieces, sizes, list(over(map.tasks, placed, seconds)))


def _padded(length: int) -> int:
    """Places up to the next word of bits."""
    return -(-length // WORD) * WORD


def halo(
    store: MatrixStore, devices: Sequence[Device], over: Callable[..., Sequence[Any]], pays: Callable[[int, int], bool]
) -> Halo | None:
    """The halo of a matrix; None unless it `pays` to bring so many values in place of so many. `over(tasks, work,
    seconds)` as a session has it."""
    colmap = store.colmap
    others = (colmap.p - 1) * colmap.n
    if not pays(0, others):
        return None

    def remote(task: Task) -> np.ndarray:
        device, block = devices[task.device], store.blocks[task.block]
        named = device.zeros(colmap.nslots, np.bool_)
        named[block.cols[: block.nnz]] = True
        named[colmap.first_slot(task.block) : colmap.first_slot(task.block + 1)] = False
        return device.get(device.xp.flatnonzero(named))

    slots = over(store.rowmap.tasks, remote, store.nvals * 1e-9)
    if not pays(sum(map(len, slots)), others):
        return None
    asked: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in slots]
    pieces: list[list[Piece]] = [[] for _ in slots]
    for mine, found in zip(pieces, slots, strict=True):
        cuts = np.searchsorted(found, colmap.starts).tolist()
        for owner, (lo, hi) in enumerate(pairwise(cuts)):
            if lo < hi:
                mine.append(Piece(owner, sum(map(len, asked[owner])), lo, hi - lo))
                asked[owner] += [found[lo:hi] - colmap.first_slot(owner), np.full((lo - hi) % WORD, -1)]
    index = [device.put(np.concatenate(parts)) for device, parts in zip(devices, asked, strict=False)]
    counted = ((device, found.astype(colmap.slot_type())) for device, found in zip(devices, slots, strict=False))
    return Halo(index, [(device.full(1, len(one), np.int64), device.put(one)) for device, one in counted], pieces)
