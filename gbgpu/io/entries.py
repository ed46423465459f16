"""Bodies of text files: a line an entry. Compiled code reads what is plain (`parse.py`); a line at which it stops is
read here, or refused with its number."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from gbgpu.errors import FileFormatError, IndexOutOfBound, message
from gbgpu.interrupts import imported
from gbgpu.io.files import damage, whole_lines

NONE, INTEGER, REAL = range(3)  # what stands after the ids, as in `parse.py`
ANY = -(1 << 62)  # a `gap` that allows every entry
UNBOUNDED = 1 << 60
_LARGE = 2  # `seen` of `parse.py`: an integer above INT64
_ROOM = 1 << 20  # entries that arrays begin with
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_INT64, _UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


@dataclass
class Layout:
    """What a line holds: `[prefix] [row column] [value]`, and what must hold of it."""

    kind: int = NONE
    ids: bool = True
    prefix: bytes = b""
    comments: bytes = b"\0\0"  # two letters, each of which begins a line to skip
    first: int = 1  # the lowest id
    nrows: int = UNBOUNDED
    ncols: int = UNBOUNDED
    gap: int = ANY  # least row - column
    unsigned: bool = False
    count: int | None = None  # how many entries there must be
    detect: int = NONE  # what values are if the first entry shows one
    widen: bool = False  # the first value that is not an integer makes all of them reals

    @property
    def text(self) -> str:
        """A line, in words."""
        words = (self.prefix.decode(), "row column" * self.ids, "value" * (self.kind != NONE))
        return " ".join(word for word in words if word)

    @property
    def width(self) -> int:
        return bool(self.prefix) + 2 * self.ids + (self.kind != NONE)


@dataclass
class Entries:
    """Ids from 0 (int64) and values (int64, uint64 or float64; None where lines have none)."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None


def read_entries(stream: IO[bytes], layout: Layout, line: int) -> Entries:
    """The entries of the rest of a stream, whose first line has the number `line`.

    Raises FileFormatError and IndexOutOfBound with the number of the line.
    """
    return _Reader(layout, line).read(stream)


class _Reader:
    def __init__(self, layout: Layout, line: int):
        self.layout, self.line, self.count = layout, line, 0
        self.seen = _LARGE if layout.unsigned else 0  # then a negative one is refused
        room = _ROOM if layout.count is None else min(layout.count, 1 << 24)
        self.rows: Any
        self.cols: Any
        self.rows, self.cols = (np.empty(room if layout.ids else 0, np.int64) for _ in range(2))
        self.words: Any = np.empty(room if layout.kind else 0, np.uint64)

    def read(self, stream: IO[bytes]) -> Entries:
        pieces = whole_lines(stream)
        while (piece := self._next(pieces)) is not None:
            self._read_piece(piece)
        layout = self.layout
        if layout.count is not None and self.count < layout.count:
            raise malformed(self.line, f"{layout.count} entries", f"the end of the file after {self.count}")
        return Entries(self.rows[: self.count], self.cols[: self.count], self._values())

    def _next(self, pieces: Iterator[memoryview]) -> memoryview | None:
        with damage(lambda: self.line):
            return next(pieces, None)

    def _read_piece(self, piece: memoryview) -> None:
        """Compiled code up to a line that it leaves, that line, and on."""
        text, at = np.frombuffer(piece, np.uint8), 0
        while at < len(text):
            at = self._compiled(text, at)
            if at < len(text):
                end = at + bytes(piece[at : at + 1024]).find(b"\n") + 1
                end = end if end > at else at + bytes(piece[at:]).find(b"\n") + 1
                at = end if self._read_line(bytes(piece[at:end])) else at

    def _compiled(self, text: np.ndarray, at: int) -> int:
        parse = imported("gbgpu.io.parse")  # which imports numba
        layout = self.layout
        prefix = layout.prefix[0] if layout.prefix else 0
        bounds = layout.nrows, layout.ncols
        at, lines, self.count, self.seen = parse.lines(
            text, at, prefix, tuple(layout.comments), layout.ids, layout.first, bounds, layout.gap, layout.kind,
            self.count, self.seen, self.rows, self.cols, self.words,
        )  # fmt: skip
        self.line += lines
        return at

    def _read_line(self, text: bytes) -> bool:
        """Read or refuse one line; False if it only changed what is expected of lines."""
        layout, words = self.layout, text.split()
        if not words or text.lstrip()[:1] in (layout.comments[:1], layout.comments[1:]):
            self.line += 1
            return True
        if layout.count is not None and self.count == layout.count:
            raise malformed(self.line, f"the end of the file after {layout.count} entries", shown(text))
        if self.count == max(len(self.rows), len(self.words)):
            self._grow()
            return False
        if self._adapt(words):
            return False
        row, col, word = self._settle(words, text)
        if layout.ids:
            self.rows[self.count], self.cols[self.count] = row, col
        if layout.kind:
            self.words[self.count] = word
        self.count, self.line = self.count + 1, self.line + 1
        return True

    def _grow(self) -> None:
        size = 2 * self.count if self.layout.count is None else min(2 * self.count, self.layout.count)
        self.rows, self.cols, self.words = (
            np.concatenate((held, np.empty(size - self.count, held.dtype))) if len(held) else held
            for held in (self.rows, self.cols, self.words)
        )

    def _adapt(self, words: list[bytes]) -> bool:
        """Whether this line made the layout another one: values where none were expected, reals for integers."""
        layout = self.layout
        if layout.detect and self.count == 0 and len(words) == layout.width + 1:
            layout.detect, layout.kind, self.words = NONE, layout.detect, np.empty(len(self.rows), np.uint64)
            return True
        value = words[-1]
        if not (layout.widen and layout.kind == INTEGER and is_real(value) and len(words) == layout.width):
            return False
        if _WHOLE.fullmatch(value) and self._fits(int(value)):
            return False
        read = self._values()[: self.count].astype(np.float64)  # type: ignore[index]
        self.words[: self.count] = read.view(np.uint64)
        layout.kind, self.seen = REAL, 0
        return True

    def _fits(self, value: int) -> bool:
        """Whether a value and those before it are all of INT64 or all of UINT64."""
        lowest = 0 if self.seen & _LARGE else _INT64.min
        highest = _INT64.max if self.seen & 1 else _UINT64.max
        return lowest <= value <= highest

    def _settle(self, words: list[bytes], text: bytes) -> tuple[int, int, Any]:
        """Row, column and the value's 64 bits of one line; raises for what is wrong with it."""
        layout = self.layout
        if len(words) != layout.width or not text.lstrip().startswith(layout.prefix):
            hint = "a comment may not stand here" if text[:1] in b"%#" else ""
            raise malformed(self.line, f'"{layout.text}"', shown(text), hint)
        words = words[1:] if layout.prefix else words
        row, col = self._ids(words, text) if layout.ids else (0, 0)
        return row, col, self._word(words[-1]) if layout.kind else 0

    def _ids(self, words: list[bytes], text: bytes) -> tuple[int, int]:
        layout, ids = self.layout, []
        for word, size, what in zip(words, (layout.nrows, layout.ncols), ("row", "column"), strict=False):
            if not _WHOLE.fullmatch(word):
                raise malformed(self.line, f"a {what} id", shown(word))
            ids.append(int(word) - layout.first)
            if not 0 <= ids[-1] < size:
                limit = f" to {size - 1 + layout.first}" if size < UNBOUNDED else " up"
                expected = f"a {what} id from {layout.first}{limit}"
                hint = f"ids in this file begin at {layout.first}"
                raise IndexOutOfBound(f"line {self.line}: " + message(expected, shown(word), hint))
        if ids[0] - ids[1] < layout.gap:
            part = "the lower triangle" if layout.gap == 0 else "the lower triangle, without the diagonal"
            raise malformed(self.line, part, shown(text), "the other triangle follows from the symmetry")
        return ids[0], ids[1]

    def _word(self, word: bytes) -> Any:
        if self.layout.kind == REAL:
            if not is_real(word):
                raise malformed(self.line, "a real number", shown(word))
            return np.float64(float(word)).view(np.uint64)
        if not _WHOLE.fullmatch(word) or not self._fits(int(word)):
            kind = "an unsigned integer of 64 bits" if self.layout.unsigned else "an integer of 64 bits"
            hint = "negative ones and ones above 2**63 - 1 have no common type" if _WHOLE.fullmatch(word) else ""
            raise malformed(self.line, kind, shown(word), "" if self.layout.unsigned else hint)
        value = int(word)
        self.seen |= (value < 0) | (_LARGE if value > _INT64.max else 0)
        return np.uint64(value % 2**64)

    def _values(self) -> np.ndarray | None:
        layout, words = self.layout, self.words[: self.count]
        if layout.kind == NONE:
            return None
        if layout.kind == REAL:
            return words.view(np.float64)
        return words if self.seen & _LARGE else words.view(np.int64)


def is_real(word: bytes) -> bool:
    """Whether a word is a number as Python and C read them; 1_000 is not."""
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word


def malformed(line: int, expected: str, came: object, hint: str = "") -> FileFormatError:
    return FileFormatError(f"line {line}: {message(expected, came, hint)}")


def shown(text: bytes) -> str:
    return repr(text[:60].decode("latin-1").strip())
