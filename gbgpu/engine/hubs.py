"""The rows of hubs, cached on all devices: where memory is short for copies of whole blocks, thieves of frontiers have
these, as few rows have many of a social network's entries.

Source: Meng and others, "Efficient Multi-GPU Graph Processing with Remote Work Stealing" (GUM), ICDE
2023, pages 191 to 204, section V.
"""

from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from ..distribute.blocks import MatrixBlock, MatrixStore
from ..distribute.rowmap import RowMap, Task
from ..kernels.interface import Spec
from ..semiring._types import INT64
from .context import Context
from .matrix.csr import Rows, take_rows

DIGITS = 64  # binary digits that a length may have
PART = 0.2  # of a matrix's entries, what rows of hubs must have to be worth it


class Hubs(NamedTuple):
    """Blocks with the entries of hubs alone, in the memory of the owners; the bits of their rows; the part of each
    block's entries that they have."""

    blocks: list[MatrixBlock]
    rows: list[Any]
    parts: list[float]


def hubs(session: Context, map: RowMap, matrix: MatrixStore, least: float | None) -> Hubs | None:
    """The hubs of a matrix: the rows of at least `least` entries (None: twice the mean), as a power of two, or of as
    many more as leave room for them on all devices. None where that leaves too little."""
    counted = np.array(session.over(map.tasks, lambda task: _counted(session, matrix, task), 0.0))
    if least is None:
        least = 2 * matrix.nvals / max(map.n, 1)
    if least == inf:  # no row is a hub's
        return None
    for digits in range((ceil(max(least, 1)) - 1).bit_length() + 1, DIGITS):  # rows of 2**(digits - 1) entries
        entries = counted[:, digits:].sum(1)
        if entries.sum() < PART * matrix.nvals:
            break
        if session.replicas.room(_bytes(map, matrix, entries)):
            return _made(session, map, matrix, 1 << digits - 1, entries)
    return None


def _made(session: Context, map: RowMap, matrix: MatrixStore, least: int, entries: np.ndarray) -> Hubs:
    made = session.over(map.tasks, lambda task: _of(session, matrix, task, least), 0.0)
    parts = [float(found / max(length, 1)) for found, length in zip(entries, matrix.lengths, strict=True)]
    return Hubs([block for block, _ in made], [rows for _, rows in made], parts)


def _bytes(map: RowMap, matrix: MatrixStore, entries: np.ndarray) -> list[int]:
    """Of each device: what others own, and the bits of its own rows."""
    rows = np.array(map.rows)
    each = entries.astype(np.int64) * matrix.entry_bytes + (rows + 1) * np.dtype(matrix.ptr).itemsize
    taken: list[int] = (each.sum() - each + (rows + 63) // 64 * 8).tolist()
    return taken


def _lengths(session: Context, matrix: MatrixStore, task: Task) -> Any:
    indptr = matrix.blocks[task.block].indptr
    return (indptr[1:] - indptr[:-1]).astype(np.int64, copy=False)


def _counted(session: Context, matrix: MatrixStore, task: Task) -> np.ndarray:
    """The entries in rows whose lengths have so many binary digits."""
    device = session.devices[task.device]
    xp, lengths = device.xp, _lengths(session, matrix, task)
    if not len(lengths):
        return np.zeros(DIGITS)
    digits = xp.frexp(lengths.astype(np.float64))[1]
    found: np.ndarray = device.get(xp.bincount(digits, weights=lengths.astype(np.float64), minlength=DIGITS))
    return found


def _of(session: Context, matrix: MatrixStore, task: Task, least: int) -> tuple[MatrixBlock, Any]:
    """A block with the rows of at least `least` entries alone, and their bits."""
    device, block = session.devices[task.device], matrix.blocks[task.block]
    lengths = _lengths(session, matrix, task)
    keep = lengths >= least
    slots = device.xp.flatnonzero(keep)
    rows = take_rows(session, device, Rows(*block.csr), slots)
    indptr = device.offsets(device.xp.where(keep, lengths, 0)).astype(matrix.ptr, copy=False)
    words = device.zeros((block.n + 63) >> 6, np.int64)
    if len(slots):
        kernel = session.kernels.get("list_words", Spec(b=INT64, idx=slots.dtype.name))
        kernel(device.full(1, len(slots), np.int64), slots, session.placeholders(task.device).words, 0, 0, words)
    return MatrixBlock(block.n, indptr, rows.cols, rows.vals, rows.stride, len(rows.cols), True), words
