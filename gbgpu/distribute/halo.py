"""What blocks of a matrix read of other owners' rows (Lux's update sets). Where that is little, a pull brings single
values, and not whole vectors."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from .blocks import MatrixStore
from .partition import WORD, Task


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
