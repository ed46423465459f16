"""Texts of numbers, read by one process or by several ranks together.

Of ranks each parses the lines that begin in its share of the bytes, or its share of several files; so entries lie with
the ranks in the order of the files. What a share can't settle alone (a malformed line, too few entries, integers here
and reals there), and what can't be cut or not all can see (a file object, a pipe, an array), the first rank reads as
one process does, and the others have nothing: mistakes are told by the same code, with the number of the line.
"""

import contextlib
import glob
import io
import os
import re
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from gbgpu import settings
from gbgpu.errors import FileFormatError, IndexOutOfBound, InvalidValue, message
from gbgpu.io import checks, entries, repeats
from gbgpu.io.entries import Entries, Layout
from gbgpu.io.files import Source, open_bytes, replaced, writing
from gbgpu.io.text import CHUNK, Text

Begin = Callable[[Text, Source], tuple[Layout, Any]]  # reads what comes before the entries: their layout, and the rest
Piece = tuple[Entries, Any]  # entries that are here, and the rest of their file
_PART = re.compile(r"\.part-([0-9]+)-of-([0-9]+)\.")
_BAD = (FileFormatError, IndexOutOfBound)


class _Lines(io.RawIOBase):
    """The lines of a stream that begin at the places lo .. hi - 1.

    Newlines alone part shares: what carriage returns end goes with the line around it. `begins`: whether a line begins
    at lo, after an end of either kind.
    """

    def __init__(self, stream: IO[bytes], lo: int, hi: int, begins: bool):
        self._stream, at = stream, lo
        _skip(stream, lo if begins else lo - 1)
        if not begins:
            at += len(stream.readline()) - 1  # the end of a line that begins before
        self._left = hi - at

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if self._left <= 0:
            return 0
        got: int = self._stream.readinto(room)  # type: ignore[attr-defined]
        if got < self._left:
            self._left -= got
            return got
        last = self._left - 1  # the end of the last line of ours is there, or behind
        end = bytes(room[last:got]).find(b"\n")
        self._left = 1 if end < 0 else 0
        return got if end < 0 else last + end + 1


def _skip(stream: IO[bytes], count: int) -> None:
    """Pass so many bytes of a stream that was just opened."""
    if stream.seekable():
        stream.seek(count)
        return
    while count and (piece := stream.read(min(CHUNK, count))):
        count -= len(piece)


def read(source: Any, limit: int | None, begin: Begin) -> tuple[Entries, list[Any]]:
    """The entries of this process, and the rest of each file (`files_of`: there may be several).

    Raises alike on all ranks.
    """
    ranks = settings.session().ranks
    if ranks is not None:
        ranks.agree_on(source, "file to read")
    paths = alike(lambda: files_of(source), "the files to read")

    def some(share: int, shares: int) -> list[Piece]:
        if paths is None:
            return [] if share else [whole(source, limit, begin)]
        mine = paths[len(paths) * share // shares : len(paths) * (share + 1) // shares]
        return [_named(path, limit, begin) for path in mine]

    if ranks is None:
        return _joined(some(0, 1))
    pieces = None if paths else _share(ranks, source, limit, begin)
    if pieces is None:
        shares = ranks.size if paths else 1
        pieces = ranks.alike(lambda: some(ranks.rank, shares) if ranks.rank < shares else [], "files")
    return _joined(pieces)


def files_of(source: Any) -> list[str] | None:
    """The files of a source that is several; None for one file.

    Several are a sequence of paths, a pattern such as "A.part-*.mtx", or a folder that holds parts.
    """
    found, pattern = [], ""
    if isinstance(source, list | tuple):
        found = [checks.path(each) for each in source]
    elif isinstance(source, str | bytes | os.PathLike) and not os.path.isfile(name := checks.path(source)):
        pattern = os.path.join(glob.escape(name), "*.part-*-of-*") if os.path.isdir(name) else name
        found = sorted(glob.glob(pattern)) if "*" in pattern else []
        if not found and "*" not in name:
            return None
    else:
        return None
    if not found:
        raise FileNotFoundError(message("at least one file", repr(source)))
    told = [match for name in found if pattern and (match := _PART.search(name))]
    if told and {int(match[1]) for match in told} != set(range(int(told[0][2]))) or len({m[2] for m in told}) > 1:
        raise InvalidValue(message("all parts of one writing", ", ".join(map(os.path.basename, found))))
    return found


def alike(work: Callable[[], Any], what: str) -> Any:
    """work(); of several ranks, what any raises, all raise."""
    ranks = settings.session().ranks
    return work() if ranks is None else ranks.alike(work, what)


def of_all(value: Any, what: str) -> list[Any]:
    """What each rank has."""
    ranks = settings.session().ranks
    return [value] if ranks is None else ranks.gathered(value, what)


def whole(source: Any, limit: int | None, begin: Begin) -> Piece:
    """A file as one process reads it."""
    with open_bytes(source, limit) as opened:
        text = Text(opened.stream)
        layout, head = begin(text, opened)
        return entries.read_entries(text, layout), head


def _named(path: str, limit: int | None, begin: Begin) -> Piece:
    """One of several files, which its mistakes name."""
    try:
        return whole(path, limit, begin)
    except _BAD as error:
        raise type(error)(f"{path}: {error}") from error


def twice(source: Any, limit: int | None, begin: Begin, found: Entries, base: int, either: bool, ahead: int) -> str:
    """Where an entry comes twice, as `repeats.lines` tells it."""
    ranks = settings.session().ranks

    def lines() -> str:
        if hasattr(source, "read") or files_of(source) or not os.path.isfile(source):  # a pipe tells once
            return ""
        held = found if ranks is None else whole(source, limit, begin)[0]
        return repeats.lines(source, limit, held.rows, held.cols, base, either, ahead)

    return lines() if ranks is None else ranks.gathered(lines() if ranks.rank == 0 else "", "lines of a file")[0]


def _share(ranks: Any, source: Any, limit: int | None, begin: Begin) -> list[Piece] | None:
    """What this rank reads of a file that can be cut, unless something on any rank speaks against it."""
    plain = isinstance(source, str | bytes | os.PathLike) and os.path.isfile(source)
    if not all(ranks.gathered(plain, "a file")):
        return None

    def start() -> tuple[Layout, Any, int, int | None, int]:
        with open_bytes(source, limit) as opened:
            text = Text(opened.stream)
            layout, head = begin(text, opened)
            text.skip(layout.comments)
            if layout.detect and len(layout.fields(text.peek())) == layout.width + 1:
                layout.kind = layout.detect
            first, end = text.place, opened.size
            if end is None and ranks.rank == 0 and layout.ids:  # packed: nobody else counts
                with contextlib.suppress(*_BAD):
                    end = first + text.rest()
            return layout, head, first, end, os.path.getsize(source)

    layout, head, first, end, size = ranks.alike(start, "the head of a file")
    end = ranks.same(size, "size of the file", end)[0]
    if end is None or not layout.ids:
        return None
    wanted, layout.count, layout.detect = layout.count, None, entries.NONE
    layout.likely = int(1.05 * (wanted or 0) / ranks.size)
    lo, hi = (first + (end - first) * share // ranks.size for share in (ranks.rank, ranks.rank + 1))

    def body() -> Entries | None:
        with contextlib.suppress(*_BAD), open_bytes(source, limit) as opened:
            text = Text(_Lines(opened.stream, lo, hi, lo == first))  # type: ignore[arg-type]
            text.delimit(layout.delimiter)
            return entries.read_entries(text, layout)
        return None

    found = ranks.alike(body, "a share of a file")
    told = ranks.gathered(found and _kind(found), "a share of a file")
    if None in told or wanted not in (None, sum(count for count, _, _ in told)):
        return None
    return None if len({name for count, name, _ in told if count}) > 1 else [(found, head)]


def _kind(found: Entries) -> tuple[int, str | None, bool]:
    """How many entries, the type of their values, and whether some are below 0."""
    values = found.values
    if values is None:
        return len(found.rows), None, False
    return len(values), values.dtype.name, values.dtype.kind == "i" and bool((values < 0).any())


def _joined(pieces: list[Piece]) -> tuple[Entries, list[Any]]:
    """Pieces one after another, with values of the type that those of all ranks have in common."""
    mine = [(head, *_kind(found)) for found, head in pieces]
    told = [piece for theirs in of_all(mine, "files") for piece in theirs]
    kinds = [kind for _, *kind in told if kind[0]] or [told[0][1:]]
    names = {name for _, name, _ in kinds}
    if len(names) > 1 and (None in names or ("float64" not in names and any(below for *_, below in kinds))):
        wrong = "with values and without" if None in names else "with integers below 0 and above 2**63 - 1"
        raise FileFormatError(message("files with values of one type", wrong))
    name = names.pop() if len(names) == 1 else "float64" if "float64" in names else "uint64"
    none = np.zeros(0, np.int64)
    parts = [found for (found, _), (_, count, *_) in zip(pieces, mine, strict=True) if count]
    parts = parts or [Entries(none, none, none)]
    values = None
    if name:
        values = _side_by_side([part.values.astype(name, copy=False) for part in parts])  # type: ignore[union-attr]
    rows, cols = (_side_by_side([getattr(part, ids) for part in parts]) for ids in ("rows", "cols"))
    return Entries(rows, cols, values), [head for head, *_ in told]


def _side_by_side(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def cut(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The share of this rank in arrays that all ranks have."""
    ranks = settings.session().ranks
    rank, size = (0, 1) if ranks is None else (ranks.rank, ranks.size)
    return tuple(array[len(array) * rank // size : len(array) * (rank + 1) // size] for array in arrays)


def write(target: Any, count: int, head: Callable[[int], bytes], body: Callable[[Any], None], parts: bool) -> None:
    """Write a text that begins with head(number of lines).

    Each rank has `count` of the lines that body(stream) writes: rank after rank; or `parts`: a file a rank.
    """
    ranks = settings.session().ranks

    def own() -> None:
        rank, size = (0, 1) if ranks is None else (ranks.rank, ranks.size)
        with replaced(part_name(target, rank, size)) as stream:
            stream.write(head(count))
            body(stream)

    def text() -> np.ndarray:
        body(held := io.BytesIO())
        return np.frombuffer(held.getbuffer(), np.uint8)

    if parts:
        return alike(own, "a file a rank")
    with writing(target) as stream:
        stream.write(head(sum(of_all(count, "lines of a file"))))
        if ranks is None:
            return body(stream)
        in_turn(target, stream, alike(text, "lines of a file"))


def in_turn(target: Any, stream: IO[bytes], mine: np.ndarray) -> None:
    """Write the bytes that each rank has, rank after rank, to a stream that `writing(target)` gave.

    No rank gets more than a piece of them at a time.
    """
    ranks = settings.session().ranks
    if ranks is None:
        stream.write(mine.data)
        return
    wanting = range(ranks.size if hasattr(target, "write") else 1)  # every rank has a file object
    for rank, size in enumerate(ranks.gathered(len(mine), "bytes of a file")):
        for at in range(0, size, CHUNK):
            piece = mine[at : at + CHUNK]
            given = {other: piece for other in wanting if other != rank} if ranks.rank == rank else {}
            came = ranks.swapped(given, "bytes of a file")
            stream.write((piece if ranks.rank == rank else came.get(rank, mine[:0])).data)


def part_name(target: Any, rank: int, size: int) -> str:
    """A.mtx.gz -> A.part-0-of-3.mtx.gz: in the order of ranks where names are sorted."""
    stem, last = os.path.splitext(checks.path(target))
    stem, form = os.path.splitext(stem) if last in (".gz", ".bz2", ".xz") else (stem, "")
    return f"{stem}.part-{rank:0{len(str(size - 1))}}-of-{size}{form}{last}"
