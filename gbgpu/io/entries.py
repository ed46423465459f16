"""Bodies of text files: a line an entry.

Compiled code reads what is plain (`parse.py`); a line at which it stops is read here, or refused with its number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gbgpu.errors import IndexOutOfBound, message
from gbgpu.io import parse
from gbgpu.io.parse import INTEGER, LARGE, NEGATIVE, NONE, REAL
from gbgpu.io.text import Text, fields, is_real, joined, malformed, passed, shown, whole, words

UNBOUNDED = 1 << 60
_ROOM = 1 << 20  # entries that arrays begin with
_INT64, _UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)


@dataclass
class Layout:
    """What a line holds: `[prefix] [row column] [value]`, and what must hold of it."""

    kind: int = NONE
    ids: bool = True
    prefix: bytes = b""
    comments: bytes = b"\n\n"  # two letters, each of which begins a line to skip
    first: int = 1  # the lowest id
    nrows: int = UNBOUNDED
    ncols: int = UNBOUNDED
    diagonal: bool = True  # whether it may have entries
    seen: int = 0  # what counts as seen before: then values of the other kind are refused
    count: int | None = None  # how many entries there must be
    likely: int = 0  # how many there will be, about, if that is known
    detect: int = NONE  # what values are if the first entry shows one
    widen: bool = False  # the first value that is not an integer makes all of them reals

    delimiter: bytes = b""  # between fields; else blanks are
    columns: tuple[int, ...] = ()  # the fields of row, column and value, if there are others

    @property
    def steps(self) -> tuple[int, int, int, int]:
        """As `parse.lines` takes them."""
        row, col, *value = self.columns or (0, 1, 2)
        return row, col - row, value[0] - col if value else 1, int(bool(self.columns))

    def fields(self, text: bytes) -> list[bytes]:
        """The fields of a line that are read; none if one of them is missing."""
        found = fields(text) if self.delimiter else words(text)
        if not self.columns or not found:
            return found
        return [found[k] for k in self.columns] if max(self.columns) < len(found) else []

    @property
    def text(self) -> str:
        """A line, in words."""
        words = (self.prefix.decode(), "row column" * self.ids, "value" * (self.kind != NONE))
        return " ".join(word for word in words if word)

    @property
    def width(self) -> int:
        """The number of words in a line."""
        return bool(self.prefix) + 2 * self.ids + (self.kind != NONE)


@dataclass
class Entries:
    """Ids from 0 (int64) and values (int64, uint64 or float64; None where lines have none)."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None


def read_entries(text: Text, layout: Layout) -> Entries:
    """The entries of the rest of a text. Raises FileFormatError and IndexOutOfBound with the number of the line."""
    return _Reader(layout, text).read()


class _Reader:
    def __init__(self, layout: Layout, text: Text):
        self.layout, self.text, self.count = layout, text, 0
        self.seen = layout.seen
        room = min(layout.likely or _ROOM if layout.count is None else layout.count, _ROOM)  # more is not yet there
        self.rows: Any
        self.cols: Any
        self.rows, self.cols = (np.empty(room if layout.ids else 0, np.int64) for _ in range(2))
        self.words: Any = np.empty(room if layout.kind else 0, np.uint64)

    def read(self) -> Entries:
        """Compiled code, up to a line that it leaves, that line, and on."""
        layout, text = self.layout, self.text
        while text.more():
            self._compiled()
            if text.at < text.end and self._read_line(text.peek()):
                text.drop()
        if layout.count is not None and self.count < layout.count:
            raise malformed(text.line, f"{layout.count} entries", f"the end of the file after {self.count}")
        return Entries(self.rows[: self.count], self.cols[: self.count], self._values())

    def _compiled(self) -> None:
        layout, text = self.layout, self.text
        prefix = layout.prefix[0] if layout.prefix else 0
        bounds = layout.nrows, layout.ncols
        text.at, lines, self.count, self.seen = parse.lines(
            text.array(), text.at, prefix, layout.comments, layout.ids, layout.first, bounds, layout.diagonal,
            layout.kind, self.count, self.seen, self.rows, self.cols, self.words, bool(layout.delimiter), layout.steps,
        )  # fmt: skip
        text.line += lines

    def _read_line(self, text: bytes) -> bool:
        """Read or refuse one line; False if it only changed what is expected of lines."""
        layout = self.layout
        if passed(words(text), layout.comments):
            return True
        found = layout.fields(text)
        if layout.count is not None and self.count == layout.count:
            raise malformed(self.text.line, f"the end of the file after {layout.count} entries", shown(text))
        if self.count == max(len(self.rows), len(self.words)):
            self._grow()
            return False
        if self._adapt(found):
            return False
        row, col, word = self._settle(found, text)
        if layout.ids:
            self.rows[self.count], self.cols[self.count] = row, col
        if layout.kind:
            self.words[self.count] = word
        self.count += 1
        return True

    def _grow(self) -> None:
        size, likely = 2 * self.count, self.layout.likely
        if self.layout.count is not None:
            size = min(size, self.layout.count)
        elif likely:
            size = max(min(size, likely), self.count + self.count // 8 + 8)
        self.rows, self.cols, self.words = (
            np.concatenate((held, np.empty(size - self.count, held.dtype))) if len(held) else held
            for held in (self.rows, self.cols, self.words)
        )

    def _adapt(self, found: list[bytes]) -> bool:
        """Whether this line made the layout another one: values where none were expected, reals for integers."""
        layout = self.layout
        if layout.detect and self.count == 0 and len(found) == layout.width + 1:
            layout.detect, layout.kind, self.words = NONE, layout.detect, np.empty(len(self.rows), np.uint64)
            return True
        value = found[-1] if found else b""
        if not (layout.widen and layout.kind == INTEGER and is_real(value) and len(found) == layout.width):
            return False
        if self._fits(whole(value)):
            return False
        read = self._values()[: self.count].astype(np.float64)  # type: ignore[index]
        self.words[: self.count] = read.view(np.uint64)
        layout.kind, self.seen = REAL, 0
        return True

    def _fits(self, value: int | None) -> bool:
        """Whether a value is a whole number, and it and those before it are all of INT64 or all of UINT64."""
        lowest = 0 if self.seen & LARGE else _INT64.min
        highest = _INT64.max if self.seen & NEGATIVE else _UINT64.max
        return value is not None and lowest <= value <= highest

    def _settle(self, found: list[bytes], text: bytes) -> tuple[int, int, Any]:
        """Row, column and the value's 64 bits of one line; raises for what is wrong with it."""
        layout = self.layout
        if len(found) != layout.width or (layout.prefix and found[0] != layout.prefix):
            hint = "a comment may not stand here" if text[:1] in b"%#" else ""
            raise malformed(self.text.line, f'"{layout.text}"', shown(text), hint or joined(text))
        found = found[1:] if layout.prefix else found
        row, col = self._ids(found, text) if layout.ids else (0, 0)
        return row, col, self._word(found[-1]) if layout.kind else 0

    def _ids(self, found: list[bytes], text: bytes) -> tuple[int, int]:
        layout, ids = self.layout, []
        for word, size, what in zip(found, (layout.nrows, layout.ncols), ("row", "column"), strict=False):
            number = whole(word)
            if number is None:
                raise malformed(self.text.line, f"a {what} id", shown(word), joined(word))
            ids.append(number - layout.first)
            if not 0 <= ids[-1] < size or word[:1] == b"-":
                limit = f" to {size - 1 + layout.first}" if size < UNBOUNDED else " up"
                expected = f"a {what} id from {layout.first}{limit}"
                hint = f"ids in this file begin at {layout.first}"
                raise IndexOutOfBound(f"{self.text.where()}: " + message(expected, shown(word), hint))
        if ids[0] == ids[1] and not layout.diagonal:
            raise malformed(self.text.line, "two different ids, as no entry may stand on the diagonal", shown(text))
        return ids[0], ids[1]

    def _word(self, word: bytes) -> Any:
        if self.layout.kind == REAL:
            if not is_real(word):
                raise malformed(self.text.line, "a real number", shown(word), joined(word))
            return np.float64(float(word)).view(np.uint64)
        value = whole(word)
        if value is None or not self._fits(value):
            kind = "an unsigned integer of 64 bits" if self.layout.seen == LARGE else "an integer of 64 bits"
            hint = "negative ones and ones above 2**63 - 1 have no common type" if value is not None else ""
            raise malformed(self.text.line, kind, shown(word), "" if self.layout.seen else hint or joined(word))
        self.seen |= (NEGATIVE if value < 0 else 0) | (LARGE if value > _INT64.max else 0)
        return np.uint64(value % 2**64)

    def _values(self) -> np.ndarray | None:
        layout, words = self.layout, self.words[: self.count]
        if layout.kind == NONE:
            return None
        if layout.kind == REAL:
            return words.view(np.float64)
        return words if self.seen & LARGE else words.view(np.int64)
