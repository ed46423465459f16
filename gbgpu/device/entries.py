"""Entries of matrices on GPUs before they are rows: counted and picked by their rows, told apart once they are sorted,
and drawn as NumPy's generator draws them. A key is a row, counted from the first one that is wanted, beside a column.
"""

from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from .nvrtc import BYTES

TEXT = BYTES + (Path(__file__).parent / "entries.cu").read_text()
TILE, UNITS, BLOCK = 1024, 16, 256  # entries a warp takes; draws a thread takes; threads of a block
BINS = 13  # bits of the numbers of bins
_TIMES, _ALL = 0x2360ED051FC65DA44385DF649FCCF645, (1 << 128) - 1  # PCG64's multiplier; 128 bits
_DRAW = Struct("142Q3d5q")  # as entries.cu has it: a state, 35 jumps, ...
_CODES = {"b": 0, "f4": 5, "f8": 9}


def shift_of(nrows: int) -> int:
    """Bits of a row's number below that of its bin."""
    return max(max(nrows - 1, 1).bit_length() - BINS, 0)


def binned(device: Any, rows: Any, shift: int) -> Any:
    """How many entries each bin has, on the device."""
    bins = device.zeros(1 << BINS, np.int64)
    _run(device, f"binned{rows.itemsize}", len(rows), (rows, len(rows), shift, bins))
    return bins


def picked(device: Any, rows: Any, cols: Any, low: int, high: int, bits: int, most: int, placed: bool) -> tuple:
    """(keys of the entries in rows low .. high - 1, in their order, with room for `most`; their places, if these are
    wanted; where their number is the last)."""
    n, tiles = len(rows), -(-len(rows) // TILE)
    counts, keys = device.empty(tiles, np.int64), device.empty(most, np.int64)
    places = device.empty(most, np.int64) if placed else None
    _run(device, f"picked_counts{rows.itemsize}", tiles * 32, (rows, n, low, high, counts))
    offsets = device.offsets(counts)
    args = rows, cols, n, low, high, bits, offsets, keys, 0 if places is None else places
    _run(device, f"picked{rows.itemsize}{cols.itemsize}", tiles * 32, args)
    return keys, places, offsets[-1:]


def distinct_counts(device: Any, keys: Any) -> Any:
    """Offsets of the sorted keys of each tile that differ from the one before; the last is their number."""
    counts = device.empty(-(-len(keys) // TILE), np.int64)
    _run(device, "distinct_counts", counts.size * 32, (keys, len(keys), counts))
    return device.offsets(counts)


def distinct(device: Any, keys: Any, offsets: Any, total: int) -> Any:
    """These keys."""
    found = device.empty(total, np.int64)
    _run(device, "distinct", (offsets.size - 1) * 32, (keys, len(keys), offsets, found))
    return found


def weighed(device: Any, keys: Any, row0: int, bits: int, n: int, symmetric: bool, weights: tuple, dtype: Any) -> Any:
    """The weights of edges by their keys, a whole number from the first of `weights` to the second."""
    least, most = weights
    vals, code = device.empty(len(keys), dtype), _CODES.get(dtype.str[1:], _CODES.get(dtype.kind, dtype.itemsize))
    args = keys, len(keys), row0, bits, n, int(symmetric), least, most - least + 1, code, vals
    _run(device, "weighed", len(keys), args)
    return vals


class Drawing:
    """Draws first .. last - 1 of a graph, as `recipe` says (io/generate.py), by one device."""

    def __init__(self, device: Any, recipe: Any, labels: Any, first: int, last: int):
        self._device, self._kind, self._labels, self._both = device, recipe.kind, labels, int(recipe.symmetric)
        words = UNITS if recipe.kind == "grid" else UNITS // 2  # a thread takes
        units, blocks = last - first, device.processors * 4
        self._blocks = max(min(-(-units // (UNITS * BLOCK)), blocks), 1)
        state = np.random.PCG64(recipe.seed).state["state"]
        begin, step = state["state"], state["inc"]
        times, plus = _ahead(step, first * words // UNITS)
        jumps = [1, recipe.stride, *(words << i for i in range(32)), words * self._blocks * BLOCK]
        numbers = [*_halves(begin * times + plus)]
        for jump in jumps:
            for wide in _ahead(step, jump):
                numbers += _halves(wide)
        cuts = [*map(float, recipe.cuts), 0.0, 0.0, 0.0][:3]
        self._draw = _DRAW.pack(*numbers, *cuts, first, units, recipe.planes, recipe.n, recipe.side)
        self._units = units

    def bins(self, shift: int) -> Any:
        """How many entries each bin of rows has, on the device."""
        bins = self._device.zeros(1 << BINS, np.int64)
        self._run("bins", (shift, bins))
        return bins

    def keys(self, low: int, high: int, bits: int, most: int) -> tuple[Any, Any]:
        """(keys of the entries in rows low .. high - 1, in any order, with room for `most`; how many there are)."""
        keys, count = self._device.empty(most, np.int64), self._device.zeros(1, np.int64)
        self._run("keys", (low, high, bits, keys, most, count))
        return keys, count

    def _run(self, what: str, args: tuple) -> None:
        if self._units > 0:
            given = self._draw, 0 if self._labels is None else self._labels, self._both, *args
            kernel = self._device.function(f"{self._kind}_{what}", TEXT)
            with self._device.here():
                self._device.launch(kernel, self._blocks, BLOCK, given)


def _run(device: Any, name: str, n: int, args: tuple) -> None:
    device.run(name, n, args, TEXT)


def _ahead(step: int, words: int) -> tuple[int, int]:
    """What leads the generator so many words ahead: a factor, and what is added (Brown, "Random number generation with
    arbitrary strides", 1994)."""
    times, plus, factor, added = 1, 0, _TIMES, step
    while words:
        if words & 1:
            times, plus = times * factor & _ALL, (plus * factor + added) & _ALL
        added, factor, words = (factor + 1) * added & _ALL, factor * factor & _ALL, words >> 1
    return times, plus


def _halves(wide: int) -> tuple[int, int]:
    return wide & (1 << 64) - 1, wide >> 64 & (1 << 64) - 1
