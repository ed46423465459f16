"""What GPUs are asked about the rows of a matrix block: which have entries, and where they begin among all of them.
CuPy's own kernels for this would each be compiled at the first use, for a second together."""

from typing import Any

import numpy as np

TILE = 1024  # entries, as in arrays.cu
CUT = 512  # entries of a piece of a long row of a mask
PIECE, WINDOW = 128, 16384  # entries of a piece at most, and rows whose pieces are sorted by length, as there


class Begun:
    """Rows of at least `least` entries: `bits` (words), `upto` (how many before each 32 rows, and all), `total`; with
    `begins`, a bit an entry that is set where such a row begins."""

    def __init__(self, device: Any, indptr: Any, least: int = 1, entries: int | None = None):
        self._device, self._indptr, self.n = device, indptr, len(indptr) - 1
        words = (self.n + 63) >> 6
        self.bits, counts = device.empty(words, np.int64), device.empty(2 * words, np.int64)
        self.begins = None if entries is None else device.zeros(-(-entries // 32) * 4, np.uint8)
        if self.n:
            begins = 0 if self.begins is None else self.begins
            device.run(f"begun{indptr.itemsize}", 64 * words, (indptr, self.n, least, self.bits, counts, begins))
        self.upto = device.offsets(counts)
        self.total = int(device.get(self.upto[-1:])[0])

    def rows(self, names: Any = None) -> Any:
        """These rows, or what they are called (int32)."""
        found = self._device.empty(self.total, np.int32)
        if self.total:
            names = 0 if names is None else names
            self._device.run("listed", self.n, (self.bits, self.upto, names, found, self.n))
        return found

    def ranks(self, entries: int) -> Any:
        """How many of them begin before each tile of entries, and all (int32)."""
        tiles = -(-entries // TILE)
        found = self._device.empty(tiles + 1, np.int32)
        args = self._indptr, self.bits, self.upto, found, self.n, tiles
        self._device.run(f"ranks{self._indptr.itemsize}", tiles + 1, args)
        return found


def cut(device: Any, indptr: Any, mptr: Any, long: int) -> Any:
    """The row and the first entry (int64, one after the other) of each piece of CUT entries of M, of the rows of at
    least so many entries in M or in A, if they have some in both."""
    n = len(indptr) - 1
    counts = device.empty(n, np.int64)
    device.run(f"long_counts{indptr.itemsize}", n, (indptr, mptr, n, long, CUT, counts))
    upto = device.offsets(counts)
    found = device.empty(2 * int(device.get(upto[-1:])[0]), np.int64)
    if found.size:
        device.run(f"long_pieces{indptr.itemsize}", n, (mptr, n, CUT, upto, found))
    return found


def joined(device: Any, rows: Any, count: int, n: int, before: Any = None) -> tuple[Any, int]:
    """(bits of so many of n rows, and those before; how many are new). `rows`: None, if they are the first ones."""
    words = device.zeros((n + 63) >> 6, np.int64)
    if before is not None:
        device.copy(words, before)
    new = device.zeros(1, np.int64)
    if count:
        device.run("joined", 32 * -(-count // 32), (0 if rows is None else rows, words, new, count))
    return words, int(device.get(new)[0])


def ranked(device: Any, counts: Any, most: int = 0) -> tuple[Any, Any, int, int]:
    """(numbers by falling counts, the place of each there, the sum of the `most` highest, how many are not 0)."""
    n = len(counts)
    keys, sums = device.empty(n, np.int64), device.zeros(2, np.int64)
    order, place = (device.empty(n, np.int32) for _ in range(2))
    if n:
        device.run("falling", n, (counts, keys, n))
        device.sort(keys)
        device.run("ranked", n, (keys, counts, order, place, sums, most, n))
    top, used = device.get(sums).tolist()
    return order, place, top, used
