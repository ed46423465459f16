"""gbgpu's own file form (.gbgpu): a header and the arrays as they lie in memory, so that loading is reading.

    0   magic          8 bytes, among them one above 127 and a line end: a transfer as text shows
    8   version        uint16: 2
    10  kind           uint8: 1 vector, 2 matrix
    11  flags          uint8: 1 iso (one value for all), 2 symmetric (a matrix), 4 full (a vector without ids)
    12  id bytes       uint8: 4 or 8, the size of ids: columns, or the positions of a vector
    13  offset bytes   uint8: 4 or 8, the size of row offsets
    14  0              uint16
    16  dtype          8 bytes, ASCII, filled with zeros
    24  rows, columns, entries, bytes of the file: uint64 each
    56  CRC-32 of the bytes from 64 on
    60  CRC-32 of the bytes before it
    64  row offsets (matrices), ids (unless full), values; each begins at a multiple of 64, with zeros before

All numbers are little-endian. Ids and offsets are signed, of 4 bytes if they fit; ids ascend. There is one way to write
an object, and whatever differs from it is refused: a file may come from a stranger, and kernels follow its numbers.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gbgpu import Matrix, Vector, dtypes, settings
from gbgpu.errors import FileFormatError, message
from gbgpu.io import checks, parse, shares
from gbgpu.io.files import Source, damage, open_bytes, writing

MAGIC = b"\x8aGBGPU\r\n"
VERSION = 2
_HEAD = struct.Struct("<8sHBBBBH8s4QI")
_CHECK = struct.Struct("<I")
_ALIGN = 64
_VECTOR, _MATRIX = 1, 2
_ISO, _SYMMETRIC, _FULL = 1, 2, 4
_FLAGS = {_VECTOR: _ISO | _FULL, _MATRIX: _ISO | _SYMMETRIC}
_LARGEST = 1 << 60  # sizes and numbers of entries are below
_INTS = {4: np.dtype("<i4"), 8: np.dtype("<i8")}
_TYPES = {
    name.encode(): dtypes.lookup_dtype(name)
    for name in "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FP32 FP64".split()
}
_PIECE = 1 << 18  # bytes read at once where nobody knows how many there are


@dataclass(frozen=True)
class Header:
    """What a file holds."""

    kind: int
    flags: int
    dtype: Any
    nrows: int
    ncols: int
    nvals: int
    checksum: int = 0  # of what follows

    @property
    def id_bytes(self) -> int:
        """The size of ids: 4 or 8."""
        return _bytes(self.ncols if self.kind == _MATRIX else self.nrows)

    @property
    def offset_bytes(self) -> int:
        """The size of row offsets: 4 or 8."""
        return _bytes(self.nvals)

    def sections(self) -> list[tuple[np.dtype, int]]:
        """(type, length) of row offsets, ids and values."""
        offsets = self.nrows + 1 if self.kind == _MATRIX else 0
        ids = 0 if self.flags & _FULL else self.nvals
        values = 1 if self.flags & _ISO else self.nvals
        of_values = self.dtype.np_type.newbyteorder("<")
        return [(_INTS[self.offset_bytes], offsets), (_INTS[self.id_bytes], ids), (of_values, values)]

    def places(self) -> list[int]:
        """Where each section begins, and the file's end."""
        places = [_ALIGN]
        for dtype, length in self.sections():
            places.append(-(-(places[-1] + dtype.itemsize * length) // _ALIGN) * _ALIGN)
        return places

    def possible(self) -> bool:
        """Whether there is such an object, written so."""
        iso, symmetric, full = (bool(self.flags & flag) for flag in (_ISO, _SYMMETRIC, _FULL))
        return (
            self.kind in _FLAGS
            and not self.flags & ~_FLAGS[self.kind]
            and self.dtype is not None
            and max(self.nrows, self.ncols, self.nvals) < _LARGEST
            and self.nvals <= self.nrows * self.ncols
            and (self.ncols == 1 or self.kind == _MATRIX)
            and (self.nrows == self.ncols or not symmetric)
            and (self.nvals == self.nrows or not full)
            and (self.nvals > 0 or not iso)
        )

    def pack(self) -> bytes:
        """The header as bytes, with its checksum."""
        name, numbers = self.dtype.name.encode(), (self.nrows, self.ncols, self.nvals, self.places()[-1])
        head = _HEAD.pack(
            MAGIC, VERSION, self.kind, self.flags, self.id_bytes, self.offset_bytes, 0, name, *numbers, self.checksum
        )  # fmt: skip
        return head + _CHECK.pack(zlib.crc32(head))


def _bytes(largest: int) -> int:
    return 4 if largest < 2**31 else 8


def save(target: Any, what: Matrix | Vector) -> None:
    """Write a Matrix or Vector, with its dtype and shape, in gbgpu's own form.

    Parameters
    ----------
    target : path or file object
        A path, replaced in one step when all is written; or a binary file object. Packed if the name ends in .gz, .bz2
        or .xz, and then slower to load.
    what : Matrix or Vector
        The object.

    Raises
    ------
    TypeError, OSError
        If `what` is something else, or the file can't be written.
    """
    if not isinstance(what, Matrix | Vector):
        raise TypeError(message("a Matrix or a Vector", type(what).__name__))
    header, arrays, padding = _content(what)
    with writing(target) as stream:
        stream.write(header.pack())
        for array, zeros in zip(arrays, padding, strict=True):
            shares.in_turn(target, stream, array)
            stream.write(zeros)


def _content(what: Matrix | Vector) -> tuple[Header, list[np.ndarray], list[bytes]]:
    """The header; the bytes of each section, of several ranks those of this one; and the zeros that follow them."""
    offsets, ids, values = _held(what)
    first, bits = settings.session().ranks is None or settings.session().ranks.rank == 0, _bits(values)
    told = shares.of_all((len(bits), bool((bits == bits[:1]).all()), bits[:1].tolist()), "what a file holds")
    nvals, ones = sum(count for count, _, _ in told), {one for *_, some in told for one in some}  # as bits, NaN is NaN
    if isinstance(what, Vector):
        shape, kind, flags = (what.size, 1), _VECTOR, _FULL * (nvals == what.size)
        ids = ids[:0] if flags else ids
    else:
        shape, kind = (what.nrows, what.ncols), _MATRIX
        flags = _SYMMETRIC * what._session.known_symmetric(what)
    if len(ones) == 1 and all(same for _, same, _ in told):
        values, flags = np.array(list(ones) * first, bits.dtype).view(values.dtype), flags | _ISO
    header = Header(kind, flags, what.dtype, *shape, nvals)
    checksum, places, arrays, padding = 0, header.places(), [], []
    held = offsets if first else offsets[:0], ids, values
    for k, (array, (dtype, length)) in enumerate(zip(held, header.sections(), strict=True)):
        arrays.append(np.ascontiguousarray(array.astype(dtype, copy=False)).view(np.uint8))
        padding.append(bytes(places[k + 1] - places[k] - dtype.itemsize * length))
        for part, size in shares.of_all((zlib.crc32(arrays[-1].data), len(arrays[-1])), "checksums of a file"):
            checksum = _crc(checksum, part, size)
        checksum = zlib.crc32(padding[-1], checksum)
    return replace(header, checksum=checksum), arrays, padding


def _held(what: Matrix | Vector) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row offsets, and the ids and values of this process, which follow those of the ranks before."""
    ranks, none = settings.session().ranks, np.zeros(0, np.int32)
    if ranks is not None:
        rows, *rest = what.to_coo(local=True)
        ends = [row for some in ranks.gathered([*rows[:1].tolist(), *rows[-1:].tolist()], "rows") for row in some]
        if ends == sorted(ends):
            if isinstance(what, Vector):
                return none, rows, rest[0]
            lengths = ranks.summed(np.bincount(rows, minlength=what.nrows), "lengths of rows")
            return np.concatenate([[0], np.cumsum(lengths)]), rest[0], rest[1]
    offsets, ids, values = (none, *what.to_coo()) if isinstance(what, Vector) else what.to_csr()
    ids, values = shares.cut(ids, values)
    return offsets, ids, values


def _bits(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.itemsize}")


def load(source: Any, *, limit: int | None = None, name: str | None = None) -> Matrix | Vector:
    """Read a Matrix or Vector that `save` wrote; everything in the file is checked before it is used.

    Parameters
    ----------
    source : path or file object
        Plain or packed.
    limit : int, optional
        Bytes that the file may have or become, unpacked. By default 200 times its size, and 1 GiB at least.
    name : str, optional
        The object's name.

    Returns
    -------
    Matrix or Vector
        A new one, of the dtype and shape that it had.

    Raises
    ------
    FileFormatError, OutOfMemory, OSError
        If the file has another form or version, or is damaged, changed, too short or too long; if memory is short.
    """
    checks.word("name", name, none=True)
    ranks = settings.session().ranks
    with checks.memory("what a file holds"):
        if ranks is not None:
            ranks.agree_on(source, "file to read")
            return _together(ranks, source, limit, name)
        header, offsets, ids, values = _whole(source, limit)
        if header.kind == _VECTOR:
            return _vector(header, ids, values, name)
        return _matrix(header, offsets, ids, values, name)


def _whole(source: Any, limit: int | None) -> tuple[Header, np.ndarray, np.ndarray, np.ndarray]:
    """All that a file holds: header, row offsets, ids and values."""
    with open_bytes(source, limit) as opened, damage(lambda: "gbgpu file"):
        header, (offsets, ids, values) = _read(opened)
    _check(header, offsets, ids, values)
    return header, offsets, ids, values


def _refused(expected: str, came: object, hint: str = "") -> FileFormatError:
    return FileFormatError("gbgpu file: " + message(expected, came, hint))


def _header(head: bytes) -> Header:
    if head[: len(MAGIC)] != MAGIC:
        raise _refused("a file that gb.io.save wrote", repr(head[: len(MAGIC)]), "gb.io.read knows other forms")
    if len(head) < _ALIGN:
        raise _refused("a whole header", f"{len(head)} bytes", "it was cut off?")
    _, version, kind, flags, _, _, _, name, nrows, ncols, nvals, _, checksum = _HEAD.unpack_from(head)
    if version != VERSION:
        raise _refused(f"version {VERSION}", version, "another gbgpu wrote it: convert what it was made from again")
    if _CHECK.unpack_from(head, _HEAD.size)[0] != zlib.crc32(head[: _HEAD.size]):
        raise _refused("a whole header", "a damaged one")
    header = Header(kind, flags, _TYPES.get(name.rstrip(b"\0")), nrows, ncols, nvals, checksum)
    if not header.possible() or header.places()[-1] >= 2**64 or header.pack() != head:
        raise _refused("a header whose parts agree", "another", "the file was changed")
    return header


def _read(opened: Source) -> tuple[Header, list[np.ndarray]]:
    """The header, and row offsets, ids and values, as they were written."""
    header, places = _opened(opened)
    arrays, checksum = [], 0
    for k, (dtype, length) in enumerate(header.sections()):
        data = _taken(opened, places[k + 1] - places[k])
        checksum = zlib.crc32(data.data, checksum)
        arrays.append(_array(data, dtype, length))
    if opened.stream.read(1):
        raise _refused(f"{places[-1]} bytes", "more")
    _agree(header, checksum)
    return header, arrays


def _opened(opened: Source) -> tuple[Header, list[int]]:
    """The header with which a file begins, and its places."""
    header = _header(opened.stream.read(_ALIGN))
    places = header.places()
    if opened.size not in (None, places[-1]):
        raise _refused(f"{places[-1]} bytes", opened.size, "it was cut off?")
    return header, places


def _array(data: np.ndarray, dtype: np.dtype, length: int) -> np.ndarray:
    """The array that bytes are, but for zeros that may follow."""
    used = dtype.itemsize * length
    if data[used:].any():
        raise _refused("zeros between the arrays", "others", "the file was changed")
    return data[:used].view(dtype).astype(dtype.newbyteorder("="), copy=False)


def _agree(header: Header, checksum: int) -> None:
    if checksum != header.checksum:
        raise _refused("the bytes that were written", "others", "the file was damaged or changed")


def _taken(opened: Source, length: int) -> np.ndarray:
    """The next bytes. Memory is taken for what is there, which a header alone does not say."""
    if opened.size is not None:
        data, got = np.empty(length, np.uint8), 0
        while got < length and (more := opened.stream.readinto(data[got:])):  # type: ignore[attr-defined]
            got += more
    else:
        held = bytearray()
        while len(held) < length and (piece := opened.stream.read(min(length - len(held), _PIECE))):
            held += piece
        data, got = np.frombuffer(held, np.uint8), len(held)
    if got != length:
        raise _refused(f"{length} more bytes", got, "it was cut off?")
    return data


def _check(header: Header, offsets: np.ndarray, ids: np.ndarray, values: np.ndarray, before: int = -1) -> None:
    """That kernels may follow offsets and ids; `before`: the id that comes before, in the same row."""
    size, what = (header.ncols, "columns") if header.kind == _MATRIX else (header.nrows, "positions")
    _check_offsets(header, offsets)
    if len(ids) and int(_bits(ids).max()) >= size:  # as unsigned ones, none is negative
        raise _refused(f"{what} from 0 to {size - 1}", "others", "the file was changed")
    falls = ids[1:] <= ids[:-1]
    falls[offsets[(offsets > 0) & (offsets < header.nvals)] - 1] = False  # from one row to the next
    if falls.any() or (len(ids) and ids[0] <= before):
        raise _refused(f"{what} that ascend, none of them twice", "others", "the file was changed")
    if values.dtype == np.bool_ and values.view(np.uint8).max(initial=0) > 1:
        raise _refused("booleans", "other bytes", "the file was changed")


def _check_offsets(header: Header, offsets: np.ndarray) -> None:
    if len(offsets) and (offsets[0] != 0 or offsets[-1] != header.nvals or np.any(offsets[1:] < offsets[:-1])):
        raise _refused(f"offsets that ascend from 0 to {header.nvals}", "others", "the file was changed")


def _is_symmetric(offsets: np.ndarray, cols: np.ndarray, values: np.ndarray) -> bool:
    return parse.asymmetry(offsets, cols, _bits(values), np.frombuffer(os.urandom(24), np.uint64)) == 0


def _matrix(header: Header, offsets: np.ndarray, ids: np.ndarray, values: np.ndarray, name: str | None) -> Matrix:
    symmetric = bool(header.flags & _SYMMETRIC) and _is_symmetric(offsets, ids, values)
    matrix = Matrix(header.dtype, header.nrows, header.ncols, name=name)
    matrix._session.build_csr(matrix, offsets, ids, values, bool(header.flags & _ISO), trusted=True)
    if symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _vector(header: Header, ids: np.ndarray, values: np.ndarray, name: str | None) -> Vector:
    vector = Vector(header.dtype, header.nrows, name=name)
    positions: Any = range(header.nrows) if header.flags & _FULL else ids  # all of them take no memory
    vector._session.build_vector(vector, positions, values, bool(header.flags & _ISO), None, trusted=True)
    return vector


class _Part(NamedTuple):
    """Entries lo .. hi - 1 of a file, with all row offsets; and the id that comes before, in the same row."""

    header: Header
    lo: int
    hi: int
    offsets: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    before: int = -1

    def local(self) -> np.ndarray:
        """Row offsets among these entries."""
        return np.clip(self.offsets, self.lo, self.hi) - self.lo if len(self.offsets) else self.offsets

    def check(self) -> None:
        """As `_check` does."""
        _check(replace(self.header, nvals=self.hi - self.lo), self.local(), self.ids, self.values, self.before)


class _Cut:
    """A file of which some bytes are read; `sums`: their checksum and number, by section."""

    def __init__(self, opened: Source):
        self._opened, self.sums = opened, [(0, 0)] * 3
        self.header, self._places = _opened(opened)

    def read(self, section: int, lo: int, hi: int, last: bool = True) -> np.ndarray:
        """Elements lo .. hi - 1 of a section; the `last` ones: with the zeros behind."""
        dtype, _ = self.header.sections()[section]
        begin, end = (self._places[section] + at * dtype.itemsize for at in (lo, hi))
        self._opened.stream.seek(begin)
        data = _taken(self._opened, (self._places[section + 1] if last else end) - begin)
        self.sums[section] = zlib.crc32(data.data), len(data)
        return _array(data, dtype, hi - lo)


def _together(ranks: Any, source: Any, limit: int | None, name: str | None) -> Matrix | Vector:
    """Of several ranks each reads the entries of its rows, or as many as another, from where they lie.

    What is packed, and a file object, the first one reads for all.
    """

    def cut(work: Callable[[_Cut], Any]) -> Any:
        if not isinstance(source, str | bytes | os.PathLike) or not os.path.isfile(source):
            return None
        with open_bytes(source, limit) as opened, damage(lambda: "gbgpu file"):
            return None if opened.size is None else work(_Cut(opened))

    def offsets_of(file: _Cut) -> tuple[Header, np.ndarray] | None:
        found = file.read(0, 0, file.header.sections()[0][1])
        with contextlib.suppress(FileFormatError):
            _check_offsets(file.header, found)
            return file.header, found
        return None  # told in another order

    def part_of(file: _Cut) -> tuple[_Part, list[tuple[int, int]]]:
        flags, last = header.flags, ranks.rank == ranks.size - 1
        file.read(0, 0, len(offsets))
        ids = file.read(1, 0, 0) if flags & _FULL else file.read(1, lo, hi, last)
        values = file.read(2, 0, 1) if flags & _ISO else file.read(2, lo, hi, last)
        sums, before = list(file.sums), -1
        if 0 < lo < hi and len(ids) and lo not in offsets[np.searchsorted(offsets, lo) :][:1]:
            before = int(file.read(1, lo - 1, lo, False)[0])
        return _Part(header, lo, hi, offsets, ids, values, before), sums

    found = ranks.alike(lambda: cut(offsets_of), "the head of a file")
    if None in ranks.gathered(found and found[0].pack(), "the head of a file"):
        return _made(_by_first(ranks, source, limit), name)
    header, offsets = found
    ranks.same(header.pack(), "file")
    matrix = Matrix(header.dtype, header.nrows, header.ncols, name=name)
    mine = matrix._session.rows_here(matrix, offsets) if header.kind == _MATRIX else None
    lo, hi = mine or (header.nvals * share // ranks.size for share in (ranks.rank, ranks.rank + 1))
    part, sums = ranks.alike(lambda: cut(part_of), "a file")
    told = ranks.gathered(sums, "checksums of a file")
    values = told[:1] if header.flags & _ISO else told
    inorder = [told[0][0], *(each[1] for each in told), *(each[2] for each in values)]
    _agree(header, reduce(lambda before, more: _crc(before, *more), inorder, 0))
    ranks.alike(part.check, "a file")
    if not mine:
        return _made(part, name)
    symmetric = _parts_symmetric(part)
    matrix._session.build_csr(matrix, offsets, part.ids, part.values, bool(header.flags & _ISO), trusted=True, first=lo)
    if symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _by_first(ranks: Any, source: Any, limit: int | None) -> _Part:
    """All that a file holds on the first rank, nothing on others."""
    found = ranks.alike(lambda: None if ranks.rank else _whole(source, limit), "a file")
    header, value = ranks.gathered(found and (found[0], found[3][: found[0].flags & _ISO]), "a file")[0]
    if found:
        _, offsets, ids, values = found
        return _Part(header, 0, header.nvals, offsets, ids, values)
    none = np.zeros(0, np.int64)
    offsets = np.zeros(header.nrows + 1, np.int64) if header.kind == _MATRIX else none
    return _Part(header, header.nvals, header.nvals, offsets, none, value)


def _made(part: _Part, name: str | None) -> Matrix | Vector:
    """The object of the parts of all ranks."""
    header, lo, hi, _, ids, values, _ = part
    given, shape = values[0] if header.flags & _ISO else values, {"nrows": header.nrows, "ncols": header.ncols}
    if header.kind == _VECTOR:
        ids = np.arange(lo, hi) if header.flags & _FULL else ids
        return Vector.from_coo(ids, given, header.dtype, size=header.nrows, name=name, local=True)
    rows = np.repeat(np.arange(header.nrows), np.diff(part.local()))
    symmetric = _parts_symmetric(part)
    matrix = Matrix.from_coo(rows, ids, given, header.dtype, **shape, name=name, local=True)
    if symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _parts_symmetric(part: _Part) -> bool:
    """Whether a matrix of parts is symmetric and the file says so. Asked before it is built, which takes the ids."""
    ranks, header = settings.session().ranks, part.header
    if not header.flags & _SYMMETRIC:
        return False
    keys = ranks.gathered(os.urandom(24), "keys")[0]
    arrays = part.local(), part.ids, _bits(part.values), np.frombuffer(keys, np.uint64)
    mine = ranks.alike(lambda: parse.asymmetry(*arrays), "a symmetric matrix")
    return bool(sum(ranks.gathered(mine, "a symmetric matrix")) % 2**64 == 0)


def _crc(one: int, two: int, length: int) -> int:
    """The CRC-32 of bytes one after another from that of each, as zlib's crc32_combine has it.

    It is the first one, as a polynomial, times x to the 8 * length.
    """

    def times(a: int, b: int) -> int:
        product = 0
        while a:
            if a & (1 << 31):
                product ^= b
            a = a << 1 & 0xFFFFFFFF
            b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
        return product

    power, square = 1 << 31, 1 << 23  # 1, and x to the 8
    while length:
        power = times(power, square) if length & 1 else power
        square, length = times(square, square), length >> 1
    return times(power, one) ^ two
