"""Sorts and transposes on GPUs; transposes in parts where memory is short."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import in_room
from ..trace import counters
from .arrays import Arrays

PARTS, PIECE = 8, 1 << 26


def by_parts(device: Any, m: int, indptr: Any, cols: Any, vals: Any, piece: int = PIECE) -> tuple[Any, Any, Any]:
    """`Device.transpose`, of columns with about a PARTS-th of the entries at a time: in little more memory than the
    result, in several times the time. piece: entries that are looked at together."""
    xp, place, size = device.xp, max(cols.size - 1, 1).bit_length(), cols.size
    begins = device.offsets(device.counts(cols, m))
    edges = xp.searchsorted(begins, xp.asarray(size * np.arange(PARTS + 1) // PARTS))
    edges[0], edges[-1] = 0, m
    spans = zip(pairwise(device.get(edges).tolist()), pairwise(device.get(begins[edges]).tolist()), strict=True)
    rows, moved = device.empty(size, cols.dtype), None if vals is None else device.empty(size, vals.dtype)
    for (first, end), (lo, hi) in spans:
        if lo == hi:
            continue
        keys, done = device.empty(hi - lo, np.int64), 0
        for at in range(0, size, piece):
            part = cols[at : at + piece]
            (places,) = xp.nonzero((part >= first) & (part < end))
            keys[done : done + places.size] = (part[places].astype(np.int64) - first << place) + (places + at)
            done += places.size
        keys.sort()
        order = device.low_bits(keys, place, keys)
        rows[lo:hi] = xp.searchsorted(indptr, order, "right") - 1
        if moved is not None:
            moved[lo:hi] = device.at(vals, order)
        del keys, order
    return begins.astype(indptr.dtype, copy=False), rows, moved


@cache
def _packing(cupy: Any) -> Any:
    text = "key = (long long)row << bits | (long long)col"
    return cupy.ElementwiseKernel("R row, C col, int64 bits", "int64 key", text, "gbgpu_keys")


@cache
def _placing(cupy: Any) -> Any:
    return cupy.ElementwiseKernel("C col, int64 bits", "int64 key", "key = (long long)col << bits | i", "gbgpu_places")


class Sorts(Arrays):
    """A part of a device: sorts by CuPy, and transposes by sorts."""

    xp: Any  # CuPy

    @abstractmethod
    def _in_room(self, need: int, work: Callable[[], Any]) -> Any: ...

    def order(self, keys: Any) -> Any:
        """The stable order of keys, as int64."""
        counters.launches += 4
        return self._in_room(keys.size * 24, lambda: self.xp.argsort(keys))  # radix sort: stable

    def keys(self, rows: Any, cols: Any, bits: int) -> Any:
        """Row and column side by side in 64 bits, the column in the lower ones."""
        counters.launches += 1
        return self._in_room(rows.size * 8, lambda: _packing(self.xp)(rows, cols, bits))

    def sort(self, keys: Any) -> None:
        """Sort keys where they are."""
        counters.launches += 4
        self._in_room(keys.size * 8, keys.sort)

    def transpose(self, n: int, m: int, indptr: Any, cols: Any, vals: Any) -> tuple[Any, Any, Any]:
        """(offsets, rows, values if there are any) of the m columns."""
        if not cols.size:
            return self.zeros(m + 1, indptr.dtype), self.empty(0, cols.dtype), vals
        counters.launches += 4
        found = in_room(lambda: self._in_room(cols.size * 20, lambda: self._transposed(n, m, indptr, cols, vals)))
        if found is not None:
            return found
        return self._in_room(cols.size * 12, lambda: by_parts(self, m, indptr, cols, vals))

    def _transposed(self, n: int, m: int, indptr: Any, cols: Any, vals: Any) -> tuple[Any, Any, Any]:
        bits, width, place = (max(size - 1, 1).bit_length() for size in (n, m, cols.size))
        if vals is None and bits + width <= 62:
            keys = self._owners(indptr, cols.size, cols, bits)
            keys.sort()
            rows = self.low_bits(keys, bits, self.empty(cols.size, cols.dtype))
            return self.firsts(keys, bits, m, indptr.dtype), rows, None
        if place + width <= 62:  # the places of entries are sorted along, in half of the memory of a stable order
            keys = _placing(self.xp)(cols, place)
            keys.sort()
            begins, order = self.firsts(keys, place, m, indptr.dtype), self.low_bits(keys, place, keys)
        else:
            order = self.xp.argsort(cols)  # stable: the rows of a column stay ascending
            begins = self.firsts(self.at(cols, order), 0, m, indptr.dtype)
        rows = self.at(self.owners(indptr, cols.size).astype(cols.dtype), order)
        return begins, rows, None if vals is None else self.at(vals, order)
