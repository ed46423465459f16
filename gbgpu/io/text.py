"""Texts in large pieces of whole lines, and their words.

Lines end in a newline, a carriage return, or both. Blanks are space, tab, carriage return; no other byte is.
"""

import re
from itertools import islice
from typing import IO

import numpy as np

from gbgpu.errors import FileFormatError, message
from gbgpu.io import parse
from gbgpu.io.files import damage

CHUNK = 1 << 22  # bytes read at once: large beside a line, small beside the caches
_WORDS = re.compile(rb"[^ \t\r\n]+")
_WHOLE = re.compile(rb"([+-]?)(?=[0-9])0*+([0-9]*+)")
_REAL = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_NEWLINE, _RETURN = 10, 13
_ALONE = re.compile(rb"\r(?=[^\n])", re.DOTALL)
_BETWEEN = b"\x1f"  # as in `parse.py`
_MARK = b"\xef\xbb\xbf".decode("latin-1")  # of UTF-8's beginning, as some editors put it there
MOST = 24  # words looked at in a line; no form has as many
_BEYOND = 10**20  # stands for every number of more digits than 64 bits have


class Text:
    """What is left of a text: lines in `data[at:end]`, and more in the stream. `line` is the number of the first."""

    def __init__(self, stream: IO[bytes]):
        self._stream, self.data = stream, bytearray(CHUNK)
        self.at = self.end = self._held = self._before = 0
        self.line, self._table = 1, b""

    def delimit(self, sign: bytes) -> None:
        """Have byte 31, which ends a word and is no blank, in place of a delimiter. Called before anything is read."""
        self._table = bytes.maketrans(b"\x1f" + sign, b"\x01\x1f") if sign else b""

    def more(self) -> bool:
        """Whether a line is left; the next piece is read where one ends."""
        if self.at == self.end:
            with damage(self.where):
                self._read()
        return self.at < self.end

    def _read(self) -> None:
        """Fill the room, beginning with the part of a line that was left; it grows for a line that is longer."""
        rest = self._held - self.end
        self._before += self.end
        self.data[:rest] = self.data[self.end : self._held]
        self.at, self.end, self._held = 0, 0, rest
        while not self.end:
            free = memoryview(self.data)[self._held : -1]  # the last byte ends a last line that has no end
            got = self._stream.readinto(free)  # type: ignore[attr-defined]
            if self._table:
                free[:got] = bytes(free[:got]).translate(self._table)
            self._end_lines(self._held, got)
            self._held += got
            if not got and self._held and self.data[self._held - 1] != _NEWLINE:
                self.data[self._held] = _NEWLINE
                self._held += 1
            if not got or self._held == len(self.data) - 1:
                self.end = self.data.rfind(b"\n", 0, self._held) + 1
                if not got:
                    return
                if not self.end:
                    self.data = self.data + bytearray(len(self.data))

    def _end_lines(self, start: int, got: int) -> None:
        """A carriage return ends a line, too. One at the end of what came may have its newline still to come."""
        if got and start and self.data[start - 1] == _RETURN and self.data[start] != _NEWLINE:
            self.data[start - 1] = _NEWLINE
        came = slice(start, start + got)
        if self.data.count(b"\r", start, came.stop) > self.data.count(b"\r\n", start, came.stop):
            self.data[came] = _ALONE.sub(b"\n", self.data[came])

    @property
    def place(self) -> int:
        """How many bytes come before the next line."""
        return self._before + self.at

    def rest(self) -> int:
        """How many bytes come from the next line on; they are passed."""
        count = self._held - self.at
        with damage(self.where):
            while got := self._stream.readinto(self.data):  # type: ignore[attr-defined]
                count += got
        return count

    def where(self) -> str:
        """The number of the line, as errors begin."""
        return f"line {self.line}"

    def peek(self) -> bytes:
        """The next line; empty at the end of the text."""
        return bytes(self.data[self.at : self._after()]) if self.more() else b""

    def drop(self) -> None:
        """Pass the line that `peek` gave."""
        self.at = self._after()
        self.line += 1

    def _after(self) -> int:
        return self.data.find(b"\n", self.at, self.end) + 1

    def skip(self, comments: bytes) -> None:
        """Pass the blank lines and comments that come next; `comments`: two letters that begin one."""
        while self.more() and self.skip_piece(comments):
            pass

    def skip_piece(self, comments: bytes) -> bool:
        """The same in this piece; whether all of it was passed."""
        self.at, lines = parse.passed(self.array(), self.at, comments)
        self.line += lines
        return self.at == self.end

    def array(self) -> np.ndarray:
        """The piece as an array of bytes."""
        return np.frombuffer(self.data, np.uint8, self.end)


def words(text: bytes) -> list[bytes]:
    """The first words of a line."""
    return [found[0] for found in islice(_WORDS.finditer(text), MOST)]


def fields(text: bytes) -> list[bytes]:
    """The first fields of a line with delimiters."""
    return [field.strip(b" \t\r\n") for field in text.split(_BETWEEN, MOST)] if text.strip(b" \t\r\n") else []


def passed(found: list[bytes], comments: bytes) -> bool:
    """Whether a line of these words is blank, or a comment; `comments`: two letters that begin one."""
    return not found or found[0][:1] in (comments[:1], comments[1:])


def whole(word: bytes) -> int | None:
    """The whole number that a word is, or None. Those of more digits than 64 bits have are all the same: 10**20."""
    found = _WHOLE.fullmatch(word)
    if found is None:
        return None
    size = int(found[2] or b"0") if len(found[2]) <= 20 else _BEYOND
    return -size if found[1] == b"-" else size


def is_real(word: bytes) -> bool:
    """Whether a word is a number as C reads them; 1_000 is not."""
    return _REAL.fullmatch(word) is not None


def malformed(line: int, expected: str, came: object, hint: str = "") -> FileFormatError:
    """The FileFormatError of a line."""
    if _MARK in str(came)[:4]:
        hint = "the file begins with a byte order mark: tail -c +4 FILE >NEW leaves it out"
    return FileFormatError(f"line {line}: {message(expected, came, hint)}")


def joined(text: bytes) -> str:
    """The hint for a line with commas or semicolons: it ends in a name for a new file; nothing for other lines."""
    for sign, name in ((",", "commas"), (";", "semicolons")):
        if sign.encode() in text:
            return f"numbers stand apart by blanks, not by {name}: tr '{sign}' ' ' <FILE >NEW"
    return ""


def shown(text: bytes) -> str:
    """The beginning of a line, as errors show it."""
    return repr(text[:60].decode("latin-1").replace(_BETWEEN.decode(), ",").strip(" \t\r\n"))
