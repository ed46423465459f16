"""Matrix Market coordinate files (Boisvert, Pozo, Remington: The Matrix Market Exchange Formats, NISTIR 5935, 1996).

The text is read in chunks of whole lines. NumPy parses a chunk at once; only a chunk that fails is read again line by
line, to say which line is wrong and why.
"""

import gzip
import re
import warnings
import zlib
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from gbgpu import Matrix
from gbgpu.errors import FileFormatError, IndexOutOfBound, InvalidValue, NotImplementedException, message
from gbgpu.io.files import atomic_file, open_bytes

_CHUNK = 1 << 24  # bytes parsed at once: large enough for NumPy, small beside the arrays of a large matrix
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_INT64 = np.iinfo(np.int64)
_FIELDS = ("pattern", "integer", "real")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)  # what reading a broken gzip file raises


@dataclass(frozen=True)
class Coordinates:
    """A parsed file: zero-based ids (int64) with both triangles present; `values` is None for a pattern."""

    nrows: int
    ncols: int
    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None


@dataclass(frozen=True)
class _Header:
    field: str
    symmetry: str
    nrows: int = 0
    ncols: int = 0
    entries: int = 0
    line: int = 1  # the number of the size line

    @property
    def width(self) -> int:
        return 2 if self.field == "pattern" else 3

    @property
    def dtype(self) -> type:
        return np.float64 if self.field == "real" else np.int64


def mmread(source: Any, *, dup_op: Any = None, name: str | None = None) -> Matrix:
    """Read a Matrix from a Matrix Market coordinate file, plain or gzip.

    `source` is a path or a file object. Fields: pattern (an FP64 matrix of one value, 1, as python-graphblas reads it),
    integer (INT64), real (FP64); symmetric and skew-symmetric files come out with both triangles. `dup_op` combines
    entries that occur twice.

    Raises FileFormatError (malformed or truncated, with the line number), IndexOutOfBound (an id outside the stated
    shape), ValueError (an entry twice and no `dup_op`), NotImplementedException (array form, complex, hermitian) and
    OSError.
    """
    read = read_coordinates(source)
    shape = {"nrows": read.nrows, "ncols": read.ncols, "name": name}
    if read.values is not None or dup_op is not None:
        values = np.ones(read.rows.size) if read.values is None else read.values
        return Matrix.from_coo(read.rows, read.cols, values, dup_op=dup_op, **shape)
    matrix = Matrix.from_coo(read.rows, read.cols, 1.0, **shape)
    if matrix.nvals != read.rows.size:  # one value for all: the constructor has no duplicates to refuse
        raise ValueError("Duplicate indices found, must provide `dup_op` BinaryOp")
    return matrix


def read_coordinates(source: Any) -> Coordinates:
    """What a file holds, as arrays; raises as `mmread` does."""
    with open_bytes(source) as stream:
        try:
            header = _read_header(stream)
        except _DAMAGE as error:
            raise FileFormatError(f"line 1 or later: the compressed file is damaged or truncated ({error})") from error
        return _expand(_read_entries(stream, header), header)


def _read_entries(stream: IO[bytes], header: _Header) -> np.ndarray:
    """The table of all entries, a row each, checked."""
    line, count, tables = header.line + 1, 0, [np.empty((0, header.width), header.dtype)]
    while chunk := _next_chunk(stream, line):
        tables.append(_parse(chunk, line, header, count))
        line, count = line + chunk.count(b"\n"), count + tables[-1].shape[0]
    if count < header.entries:
        raise _malformed(line, f"{header.entries} entries", f"the end of the file after {count}")
    return np.concatenate(tables)


def _next_chunk(stream: IO[bytes], line: int) -> bytes:
    """The next whole lines, the first of them numbered `line`; empty at the end."""
    chunk = bytearray()
    try:
        while len(chunk) < _CHUNK and (piece := stream.read1(_CHUNK)):  # type: ignore[attr-defined]
            chunk += piece
        chunk += stream.readline()
    except _DAMAGE as error:
        last = line + chunk.count(10)
        raise FileFormatError(f"line {last}: the compressed file is damaged or truncated ({error})") from error
    return bytes(chunk) if chunk.endswith(b"\n") or not chunk else bytes(chunk) + b"\n"


def _read_header(stream: IO[bytes]) -> _Header:
    """The banner, the comments and the size line."""
    banner = _banner(stream.readline(1 << 12))
    number = 1
    for text in iter(lambda: stream.readline(1 << 20), b""):
        number += 1
        if not text.startswith(b"%") and text.strip():
            return _size(text, number, banner)
    raise _malformed(number, "a line with rows, columns and entries", "the end of the file")


def _banner(text: bytes) -> _Header:
    words = text.decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        expected = '"%%MatrixMarket matrix coordinate <field> <symmetry>"'
        raise _malformed(1, expected, repr(text[:60].decode("latin-1").strip()), "is it a Matrix Market file?")
    form, field, symmetry = words[2:]
    if form == "array" or field == "complex" or symmetry == "hermitian":
        hint = "array form, complex and hermitian are not read"
        raise NotImplementedException("line 1: " + message("a real coordinate matrix", " ".join(words[2:]), hint))
    field = "real" if field == "double" else field
    known = form == "coordinate" and field in _FIELDS and symmetry in _SYMMETRIES
    if not known or (field == "pattern" and symmetry == "skew-symmetric"):
        expected = f"coordinate, one of {', '.join(_FIELDS)}, and one of {', '.join(_SYMMETRIES)}"
        raise _malformed(1, expected, " ".join(words[2:]))
    return _Header(field, symmetry)


def _size(text: bytes, number: int, banner: _Header) -> _Header:
    words = text.split()
    if len(words) != 3 or not all(word.isdigit() for word in words):
        raise _malformed(number, "three numbers: rows, columns, entries", _shown(text))
    nrows, ncols, entries = map(int, words)
    if max(nrows, ncols, entries) > 1 << 53:  # ids beside real values are read as float64
        raise _malformed(number, "sizes up to 2**53", _shown(text))
    if banner.symmetry != "general" and nrows != ncols:
        raise _malformed(number, f"a square shape ({banner.symmetry})", f"{nrows} x {ncols}")
    return _Header(banner.field, banner.symmetry, nrows, ncols, entries, number)


def _parse(chunk: bytes, line: int, header: _Header, before: int) -> np.ndarray:
    """The numbers of a chunk, a row an entry, checked; `before` entries came earlier."""
    table = _numbers(chunk, header)
    if table is None or before + table.shape[0] > header.entries or not _is_valid(table, header):
        _diagnose(chunk, line, header, before)
    if table is None:
        raise FileFormatError(f"line {line} or one of the {chunk.count(10)} after it: numbers that cannot be read")
    return table


def _numbers(chunk: bytes, header: _Header) -> np.ndarray | None:
    """All numbers of the chunk if each line has as many as it must; else None."""
    text = np.frombuffer(chunk, np.uint8)
    blank = text <= 32
    starts = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1
    starts = starts if blank[0] else np.concatenate(([0], starts))
    per_line = np.diff(np.searchsorted(starts, np.flatnonzero(text == 10)), prepend=0)
    if not ((per_line == header.width) | (per_line == 0)).all():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # how older NumPy reports text that is not a number
            numbers = np.fromstring(chunk, dtype=header.dtype, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    return numbers.reshape(-1, header.width) if numbers.size == starts.size else None


def _is_valid(table: np.ndarray, header: _Header) -> bool:
    """Whether ids are whole numbers inside the shape and integers surely exact; False only asks for a closer look."""
    rows, cols = table[:, 0], table[:, 1]
    inside = (rows >= 1) & (rows <= header.nrows) & (cols >= 1) & (cols <= header.ncols)
    if not inside.all():
        return False
    if header.field == "real" and not ((rows == np.floor(rows)) & (cols == np.floor(cols))).all():
        return False
    if header.field == "integer" and ((table[:, 2] == _INT64.max) | (table[:, 2] == _INT64.min)).any():
        return False  # where the parser stops without a word
    return not (header.symmetry == "skew-symmetric" and (rows == cols).any())


def _diagnose(chunk: bytes, line: int, header: _Header, before: int) -> None:
    """Raise for the first bad line of a chunk."""
    for number, text in enumerate(chunk.split(b"\n"), line):
        words = text.split()
        if not words:
            continue
        _diagnose_line(words, text, number, header)
        before += 1
        if before > header.entries:
            raise _malformed(number, f"the end of the file after {header.entries} entries", _shown(text))


def _diagnose_line(words: list[bytes], text: bytes, number: int, header: _Header) -> None:
    if len(words) != header.width:
        expected = "row column" if header.field == "pattern" else "row column value"
        hint = "comments may only stand before the size line" if text.startswith(b"%") else ""
        raise _malformed(number, f'"{expected}"', _shown(text), hint)
    for word, size, what in zip(words, (header.nrows, header.ncols), ("row", "column"), strict=False):
        if not _INTEGER.fullmatch(word):
            raise _malformed(number, f"a {what} id", _shown(word))
        if not 1 <= int(word) <= size:
            expected = f"a {what} id from 1 to {size}"
            raise IndexOutOfBound(f"line {number}: " + message(expected, _shown(word), "ids in a file begin at 1"))
    if header.symmetry == "skew-symmetric" and int(words[0]) == int(words[1]):
        raise _malformed(number, "no diagonal entry in a skew-symmetric matrix", _shown(text))
    if header.field == "integer" and not (_INTEGER.fullmatch(words[2]) and _INT64.min <= int(words[2]) <= _INT64.max):
        raise _malformed(number, "an integer of 64 bits", _shown(words[2]))
    if header.field == "real" and not _is_float(words[2]):
        raise _malformed(number, "a real number", _shown(words[2]))


def _is_float(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word  # Python's digit separator is not a number of the format


def _malformed(line: int, expected: str, came: object, hint: str = "") -> FileFormatError:
    return FileFormatError(f"line {line}: {message(expected, came, hint)}")


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("latin-1").strip())


def _expand(table: np.ndarray, header: _Header) -> Coordinates:
    """Zero-based arrays; the other triangle of a symmetric file is filled in."""
    rows, cols = (table[:, k].astype(np.int64) - 1 for k in (0, 1))
    values = None if header.field == "pattern" else table[:, 2].copy()
    if header.symmetry != "general":
        off = np.flatnonzero(rows != cols)
        rows, cols = np.concatenate((rows, cols[off])), np.concatenate((cols, rows[off]))
        if values is not None:
            mirrored = -values[off] if header.symmetry == "skew-symmetric" else values[off]
            values = np.concatenate((values, mirrored))
    return Coordinates(header.nrows, header.ncols, rows, cols, values)


def mmwrite(target: Any, A: Matrix, *, comment: str = "", symmetry: str = "general") -> None:
    """Write a Matrix as a Matrix Market coordinate file; gzip if the name ends in .gz.

    `target` is a path, replaced in one step when all is written, or a binary file object. Integers are written as
    integer, floats as real with as many digits as it takes to read the same number; BOOL and FP64 matrices whose values
    are all 1 as pattern. With `symmetry="symmetric"` or `"skew-symmetric"` only the lower triangle is written, and
    InvalidValue is raised if A is not so.
    """
    if symmetry not in _SYMMETRIES:
        raise InvalidValue(message(f"symmetry to be one of {', '.join(_SYMMETRIES)}", repr(symmetry)))
    rows, cols, values = A.to_coo()
    if symmetry != "general":
        rows, cols, values = _lower_triangle(A, rows, cols, values, 1 if symmetry == "symmetric" else -1)
    if hasattr(target, "write"):
        _write(target, A.shape, rows, cols, values, comment, symmetry)
    else:
        with atomic_file(target) as stream:
            _write(stream, A.shape, rows, cols, values, comment, symmetry)


def _lower_triangle(A: Matrix, rows, cols, values, sign: int):
    """The entries to write of a matrix that equals `sign` times its transpose; InvalidValue if it does not."""
    lower, upper, diagonal = rows > cols, rows < cols, rows == cols
    below, above = np.lexsort((cols[lower], rows[lower])), np.lexsort((rows[upper], cols[upper]))
    same = (
        A.nrows == A.ncols
        and below.size == above.size
        and np.array_equal(rows[lower][below], cols[upper][above])
        and np.array_equal(cols[lower][below], rows[upper][above])
        and np.array_equal(values[lower][below], sign * values[upper][above])
        and not (sign < 0 and diagonal.any())
    )
    if not same:
        kind = "symmetric" if sign > 0 else "skew-symmetric"
        raise InvalidValue(message(f"a {kind} matrix", "one that is not", 'write it with symmetry="general"'))
    kept = lower | diagonal
    return rows[kept], cols[kept], values[kept]


def _write(stream: IO[bytes], shape: tuple[int, int], rows, cols, values, comment: str, symmetry: str) -> None:
    from scipy.io import mmwrite as write  # its writer formats numbers in C++
    from scipy.sparse import coo_array

    is_pattern = values.dtype in (np.bool_, np.float64) and symmetry != "skew-symmetric" and bool((values == 1).all())
    field = "pattern" if is_pattern else "real" if values.dtype.kind == "f" else "integer"
    values = values.astype(np.int32) if values.dtype == np.bool_ else values
    write(stream, coo_array((values, (rows, cols)), shape=shape), comment=comment, field=field, symmetry=symmetry)
