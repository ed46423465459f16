"""What is asked of arrays on a GPU, and of the rows of matrices, by kernels of bytes.cu and arrays.cu."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from .nvrtc import BYTES

BLOCK = 256  # threads
ROWS = "list_counts", "pieced"
PIECES = "piece_counts", "piece_keys", "piece_cells", "row_pieces", "row_cells", "evenly"
TEXT = BYTES + (Path(__file__).parent / "arrays.cu").read_text()


def functions() -> list[str]:
    """The kernels of bytes.cu and arrays.cu, by names and sizes of what they take."""
    sized = "fill", "copy", "take", "fetch", "cut", "empties", "longest", "differ", "kept", "where", "spread"
    names = [f"{work}{size}" for work in sized for size in (1, 2, 4, 8)]
    doubled = "checked", "counts", "lengths", "begun", "ranks", "before", "tiles", "scan", "used_first", "long_counts"
    names += [f"{work}{size}" for work in (*doubled, "long_pieces", *ROWS) for size in (4, 8)]
    pairs = [f"{one}{two}" for one in (4, 8) for two in (4, 8)]
    names += [f"{work}{pair}" for work in ("owners", "first", "low", "bent") for pair in pairs]
    names += ["copy_bytes", "at_once", "cut_counts", "truths", "set_bits", "tops", "counted", "listed", "joined"]
    return [*names, "falling", "ranked", "packed", *PIECES]


def id_code(ids: Any) -> int:
    """The type of ids, as bytes.cu has it."""
    return int(ids.itemsize) if ids.dtype.kind in "ub" else -int(ids.itemsize)


class Arrays(ABC):
    """A part of a device. CuPy's own reductions take a second or more to compile."""

    @abstractmethod
    def empty(self, n: int, dtype: Any) -> Any: ...

    @abstractmethod
    def zeros(self, n: int, dtype: Any) -> Any: ...

    @abstractmethod
    def full(self, n: int, value: Any, dtype: Any) -> Any: ...

    @abstractmethod
    def clear(self, buffer: Any) -> None: ...

    @abstractmethod
    def get(self, buffer: Any) -> np.ndarray: ...

    @abstractmethod
    def uncaptured(self) -> AbstractContextManager: ...

    @abstractmethod
    def run(self, name: str, n: int, args: tuple, text: str = TEXT) -> None: ...

    def owners(self, indptr: Any, total: int) -> Any:
        """The row of each entry, as int64."""
        return self._owners(indptr, total, None, 0)

    def _owners(self, indptr: Any, total: int, cols: Any, bits: int) -> Any:
        out = self.empty(total, np.int64)
        if total:
            name = f"owners{indptr.itemsize}{4 if cols is None else cols.itemsize}"
            args = indptr, len(indptr) - 1, 0 if cols is None else cols, bits, out, total
            self.run(name, (total + 7) // 8, args)  # a block takes 2048
        return out

    def truths(self, flags: Any) -> Any:
        out = self.zeros(1, np.int64)
        self.run("truths", flags.size, (flags, out, flags.size))
        return out

    def set_bits(self, words: Any) -> Any:
        out = self.zeros(1, np.int64)
        self.run("set_bits", words.size, (words, out, words.size))
        return out

    def has_empty(self, indptr: Any) -> bool:
        return self._flag(f"empties{indptr.itemsize}", len(indptr) - 1, indptr)

    def longest(self, indptr: Any) -> int:
        out = self.zeros(1, np.int64)
        self.run(f"longest{indptr.itemsize}", len(indptr) - 1, (indptr, out, len(indptr) - 1))
        return int(self.get(out)[0])

    def lengths(self, indptr: Any, vals: Any, words: Any, count: Any) -> None:
        n = len(indptr) - 1
        into = vals if vals.dtype == np.int64 else self.empty(n, np.int64)
        if n:
            self.run(f"lengths{indptr.itemsize}", n, (indptr, into, words, count, n))
        if into is not vals:
            vals[...] = into

    def equal(self, one: Any, two: Any) -> bool:
        return one.size == two.size and not self._flag(f"differ{one.itemsize}", one.size, one, two)

    def _flag(self, name: str, n: int, *arrays: Any) -> bool:
        out = self.zeros(1, np.int64)
        if n > 0:
            self.run(name, n, (*arrays, out, n))
        return bool(self.get(out)[0])

    def counts(self, ids: Any, n: int, step: int = 1) -> Any:
        """How often each of 0 .. n - 1 is among ids (of 4 or 8 bytes), of which each `step`-th is looked at, as int64.
        CuPy's bincount takes n words for each of hundreds of blocks."""
        out, looked = self.zeros(n, np.int64), -(-ids.size // step)
        if looked:
            self.run(f"counts{ids.itemsize}", looked, (ids, out, step, looked))
        return out

    def offsets(self, lengths: Any) -> Any:
        n, found = lengths.size, self.empty(lengths.size + 1, np.int64)
        if not n:
            self.clear(found)
            return found
        tiles, size = -(-n // 2048), lengths.itemsize
        sums = self.empty(tiles, np.int64)
        self.run(f"tiles{size}", tiles * BLOCK, (lengths, sums, n))
        self.run("tops", 1, (sums, tiles))
        self.run(f"scan{size}", tiles * BLOCK, (lengths, sums, found, n))
        return found

    def rows_of(self, words: Any, n: int) -> Any:
        upto = self._upto(words)
        found = self.empty(int(self.get(upto[-1:])[0]), np.int32)
        if found.size:
            self.run("listed", n, (words, upto, 0, found, n))
        return found

    def kept(self, keep: Any, n: int, indptr: Any, arrays: Sequence[Any]) -> tuple[Any, int, list[Any]]:
        if keep.dtype == np.bool_ and n:
            flags, keep = keep, self.empty((n + 63) // 64, np.int64)
            self.run("packed", 64 * keep.size, (flags, keep, n))
        upto, offsets = self._upto(keep), self.empty(len(indptr), np.int64)
        self.run(f"before{indptr.itemsize}", len(indptr), (keep, upto, indptr, offsets, n, len(indptr)))
        total = int(self.get(upto[-1:])[0])
        if total == n:
            return offsets, total, list(arrays)
        found = [self.empty(total, array.dtype) for array in arrays]
        for array, part in zip(arrays, found, strict=True):
            if total:
                self.run(f"kept{array.itemsize}", n, (keep, upto, array, part, n))
        return offsets, total, found

    def _upto(self, words: Any) -> Any:
        """How many bits are set before each half of a word, and in all."""
        counts = self.empty(2 * words.size, np.int64)
        if words.size:
            self.run("counted", counts.size, (words, counts, counts.size))
        return self.offsets(counts)

    def is_line(self, indptr: Any, cols: Any, first: int) -> bool:
        n = len(indptr) - 1
        return cols.size == n and not self._flag(f"bent{indptr.itemsize}{cols.itemsize}", n, indptr, cols, first)

    def cut(
        self, codes: Any, low: int, high: int, source: Any, begins: Any, ranks: Any, rows: int = 0
    ) -> tuple[Any, Any]:
        """(source at the entries with codes of low .. high - 1; of so many rows, where those of each begin, and their
        end). `begins`, `ranks`: of a stream (engine/streams.py)."""
        n, tiles = codes.size, ranks.size - 1
        counts = self.empty(tiles, np.int64)
        self.run("cut_counts", tiles * 32, (codes, n, low, high, counts))
        offsets = self.offsets(counts)
        total = int(self.get(offsets[-1:])[0])
        out, firsts = self.empty(total, source.dtype), self.full(rows + 1, total, np.int64) if rows else 0
        args = codes, n, low, high, offsets, source, out, begins, ranks, firsts
        self.run(f"cut{source.itemsize}", tiles * 32, args)
        return out, firsts

    def checked(self, ids: Any, n: int, dtype: str) -> tuple[Any, Any]:
        """(ids, with -1 in place of those outside 0 .. n - 1; whether there are any)."""
        slots, bad = self.empty(ids.size, dtype), self._flag_of_ids()
        if ids.size:
            self.run(f"checked{slots.itemsize}", ids.size, (ids, id_code(ids), ids.size, n, slots, bad))
        return slots, bad

    def at(self, vals: Any, ids: Any) -> Any:
        return self.take(vals, ids, vals.size)[0]

    def take(self, vals: Any, ids: Any, n: int) -> tuple[Any, Any]:
        """(vals[ids]; whether there are ids outside 0 .. n - 1, in whose place any value is)."""
        out, bad = self.empty(ids.size, vals.dtype), self._flag_of_ids()
        if ids.size:
            self.run(f"take{vals.itemsize}", ids.size, (ids, id_code(ids), ids.size, n, vals, out, bad))
        return out, bad

    def _flag_of_ids(self) -> Any:
        """It stays set through the rounds of a loop that is captured."""
        with self.uncaptured():
            return self.zeros(1, np.int64)

    def firsts(self, keys: Any, bits: int, m: int, dtype: Any) -> Any:
        """Where those of each of m columns begin among sorted keys, whose lower bits are others'; and the end."""
        begins = self.empty(m + 1, dtype)
        self.run(f"first{keys.itemsize}{begins.itemsize}", m + 1, (keys, keys.size, bits, begins, m + 1))
        return begins

    def low_bits(self, keys: Any, bits: int, out: Any) -> Any:
        """out, with the lower bits of keys."""
        self.run(f"low8{out.itemsize}", out.size, (keys, out, (1 << bits) - 1, out.size))
        return out
