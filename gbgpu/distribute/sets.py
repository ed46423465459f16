"""What each block of a matrix reads and writes, and what must come from other owners: the measures of a partition."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device
from .blocks import MatrixStore
from .rowmap import Task


class BlockSets(NamedTuple):
    """Numbers of each row block, of the pull `A @ x` (Lux, Jia et al., VLDB 2017, section 4, equations 7 to 9). In the
    push `x @ A` inputs and outputs change places: updates are then the most that a device has for other owners.

    rows, entries: how many there are. inputs: columns with an entry, which are read. outputs: rows with an entry, which
    are written. updates: inputs of other owners. cut: entries whose column is another owner's. columns: how many the
    block's device owns. delegates: rows that are (`partition.degree_separated`). kinds: entries by row and column,
    normal to normal, normal to delegate, delegate to normal, delegate to delegate (Pan et al., IPDPS 2018, section
    III-B).
    """

    rows: tuple[int, ...]
    entries: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    updates: tuple[int, ...]
    cut: tuple[int, ...]
    columns: tuple[int, ...]
    delegates: tuple[int, ...]
    kinds: tuple[tuple[int, int, int, int], ...]

    @property
    def edge_cut(self) -> float:
        """Share of the entries whose row and column have different owners."""
        return sum(self.cut) / max(sum(self.entries), 1)

    @property
    def row_balance(self) -> float:
        """Rows of the largest block by the mean: 1 is best."""
        return _balance(self.rows)

    @property
    def edge_balance(self) -> float:
        """Entries of the largest block by the mean: 1 is best."""
        return _balance(self.entries)

    def needed_bytes(self, width: int = 8) -> int:
        """Bytes that have to arrive in a pull of all rows from a full vector of `width` bytes a value."""
        return width * sum(self.updates)

    def pull_bytes(self, width: int = 8) -> int:
        """Bytes that do arrive in it: all values of the others."""
        return width * (len(self.rows) - 1) * sum(self.columns)

    def push_bytes(self, width: int = 8, slot: int = 4) -> int:
        """Bytes that arrive at most in a push: a slot and a value for each output of another owner."""
        return (slot + width) * sum(self.updates)

    def held_bytes(self, width: int = 0, slot: int = 4) -> int:
        """Bytes of row offsets, column slots and values of `width` bytes, where products have asked for delegates: with
        their rows a second time, and other offsets for the rest."""
        delegates, apart = sum(self.delegates), sum(sum(kinds[2:]) for kinds in self.kinds)
        offsets = sum(self.rows) * (2 if delegates else 1) + delegates * len(self.rows)
        return slot * offsets + (slot + width) * (sum(self.entries) + apart)


def _balance(counts: Sequence[int]) -> float:
    return max(counts) * len(counts) / sum(counts) if sum(counts) else 1.0


def block_sets(store: MatrixStore, devices: Sequence[Device], over: Callable[..., list[Any]]) -> BlockSets:
    """Counted where the blocks lie; `over(tasks, work, seconds)` as a session has it. A column is a block's own if the
    columns' block of the same number has it."""
    rowmap, colmap, inputs = store.rowmap, store.colmap, max(store.colmap.nslots, 1)

    def counted(task: Task) -> tuple[Any, ...]:
        b, device = task.block, devices[task.device]
        block, lo, hi = store.blocks[b], colmap.first_slot(b), colmap.first_slot(b + 1)
        cols = block.cols[: block.nnz]
        named, own = device.zeros(inputs, np.bool_), (cols >= lo) & (cols < hi)
        named[cols] = True
        written = block.indptr[1:] > block.indptr[:-1]
        few, above = 0 if rowmap.heads is None else rowmap.heads.rows[b], 0
        apart = device.zeros(inputs, np.bool_)  # columns of delegates
        for other, n in enumerate(() if colmap.heads is None else colmap.heads.rows):
            apart[colmap.first_slot(other) : colmap.first_slot(other) + n] = True
        if few:
            above = int(device.get(block.indptr[few : few + 1])[0])  # entries in rows of delegates
        kinds = apart[cols]
        flags = named, written, named[lo:hi], own, kinds[above:], kinds[:above]
        found = [int(device.get(device.truths(each))[0]) for each in flags]
        parts = block.nnz - above - found[4], found[4], above - found[5], found[5]
        asked = found[0], found[1], found[0] - found[2], block.nnz - found[3]
        return block.n, block.nnz, *asked, colmap.rows[b], few, parts

    return BlockSets(*zip(*over(rowmap.tasks, counted, store.nvals * 1e-9), strict=True))
