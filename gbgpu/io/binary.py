"""gbgpu's own file form (.gbgpu): a header and the arrays as they lie in memory, so that loading is reading.

    0   magic          8 bytes, among them one above 127 and a line end: a transfer as text shows
    8   version        uint16
    10  kind           uint8: 1 vector, 2 matrix
    11  flags          uint8: 1 iso (one value for all), 2 symmetric, 4 full (a vector without ids)
    12  id bytes       uint8: 4 or 8, the size of ids: columns, or the positions of a vector
    13  offset bytes   uint8: 4 or 8, the size of row offsets
    16  dtype          8 bytes, ASCII
    24  rows, columns, entries, bytes of the file: uint64 each
    56  CRC-32 of the bytes before it
    64  row offsets (matrices), ids (unless full), values; each begins at a multiple of 64

All numbers are little-endian. Ids and offsets are signed, of 4 bytes if they fit; ids ascend.
"""

import io
import os
import struct
import zlib
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from gbgpu import Matrix, Vector, dtypes
from gbgpu.errors import FileFormatError, message
from gbgpu.io.files import damage, open_bytes, writing

MAGIC = b"\x8aGBGPU\r\n"
VERSION = 1
_HEAD = struct.Struct("<8sHBBBB2x8s4Q")
_CHECK = struct.Struct("<I")
_ALIGN = 64
_VECTOR, _MATRIX = 1, 2
_ISO, _SYMMETRIC, _FULL = 1, 2, 4
_INTS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


@dataclass(frozen=True)
class Header:
    """What a file holds."""

    kind: int
    flags: int
    id_bytes: int
    offset_bytes: int
    dtype: Any
    nrows: int
    ncols: int
    nvals: int

    def sections(self) -> list[tuple[np.dtype, int]]:
        """(type, length) of row offsets, ids and values."""
        offsets = self.nrows + 1 if self.kind == _MATRIX else 0
        ids = 0 if self.flags & _FULL else self.nvals
        values = 1 if self.flags & _ISO else self.nvals
        return [(_INTS[self.offset_bytes], offsets), (_INTS[self.id_bytes], ids), (self.dtype.np_type, values)]

    def places(self) -> list[int]:
        """Where each section begins, and the file's end."""
        places = [_ALIGN]
        for dtype, length in self.sections():
            places.append(_aligned(places[-1] + dtype.itemsize * length))
        return places

    def pack(self) -> bytes:
        numbers = self.nrows, self.ncols, self.nvals, self.places()[-1]
        name = self.dtype.name.encode()
        head = _HEAD.pack(
            MAGIC, VERSION, self.kind, self.flags, self.id_bytes, self.offset_bytes, name, *numbers
        )  # fmt: skip
        return head + _CHECK.pack(zlib.crc32(head)) + bytes(_ALIGN - len(head) - _CHECK.size)


def _aligned(place: int) -> int:
    return -(-place // _ALIGN) * _ALIGN


def save(target: Any, what: Matrix | Vector) -> None:
    """Write a Matrix or Vector, with its type and shape, in gbgpu's own form.

    `target` is a path, replaced in one step when all is written, or a binary file object. Packed if the name ends in
    .gz, .bz2 or .xz, and then slower to load.
    """
    if not isinstance(what, Matrix | Vector):
        raise TypeError(message("a Matrix or a Vector", type(what).__name__))
    header, arrays = _parts(what)
    with writing(target) as stream:
        stream.write(header.pack())
        for place, end, array in zip(header.places(), header.places()[1:], arrays, strict=False):
            stream.write(array.data.cast("B") if array.size else b"")
            stream.write(bytes(end - place - array.nbytes))


def _parts(what: Matrix | Vector) -> tuple[Header, list[np.ndarray]]:
    if isinstance(what, Vector):
        ids, values = what.to_coo()
        offsets, shape, kind = np.zeros(0, np.int32), (what.size, 1), _VECTOR
        full = len(ids) == what.size
        ids, flags = ids[:0] if full else ids, _FULL * full
    else:
        offsets, ids, values = what.to_csr()
        shape, kind = (what.nrows, what.ncols), _MATRIX
        flags = _SYMMETRIC * what._session.known_symmetric(what)
    nvals = len(values)
    bits = values.view(f"u{values.itemsize}")  # as bits, NaN equals NaN and 0 is not -0
    if nvals and (bits == bits[0]).all():
        values, flags = values[:1], flags | _ISO
    id_bytes, offset_bytes = _bytes(shape[1] if kind == _MATRIX else shape[0]), _bytes(nvals)
    header = Header(kind, flags, id_bytes, offset_bytes, what.dtype, *shape, nvals)
    types = (dtype for dtype, _ in header.sections())
    return header, [_little(array, dtype) for array, dtype in zip((offsets, ids, values), types, strict=True)]


def _bytes(largest: int) -> int:
    return 4 if largest < 2**31 else 8


def _little(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(array.astype(dtype.newbyteorder("<"), copy=False))


def load(source: Any, *, name: str | None = None) -> Matrix | Vector:
    """Read what `save` wrote: a Matrix or a Vector, of the type that it had.

    `source` is a path or a file object, plain or packed. Sizes, ids and offsets are checked, the order of the columns
    in a row is trusted. Raises FileFormatError for a file of another form or a newer version, one that is damaged, too
    short or too long; OSError.
    """
    with open_bytes(source) as stream, damage(lambda: "1 or later"):
        header = _header(stream.read(_ALIGN))
        if _is_plain(stream) and os.fstat(stream.fileno()).st_size != header.places()[-1]:
            raise _refused(f"{header.places()[-1]} bytes", f"{os.fstat(stream.fileno()).st_size}", "it was cut off?")
        arrays = [_read(stream, *part) for part in zip(header.places(), header.sections(), strict=False)]
        stream.seek(header.places()[-1] - 1)
        if len(stream.read(2)) != 1:
            raise _refused(f"{header.places()[-1]} bytes", "another number", "it was cut off?")
    offsets, ids, values = arrays
    _check(header, offsets, ids, values)
    if header.kind == _VECTOR:
        return _vector(header, ids, values, name)
    return _matrix(header, offsets, ids, values, name)


def _refused(expected: str, came: object, hint: str = "") -> FileFormatError:
    return FileFormatError("gbgpu file: " + message(expected, came, hint))


def _header(head: bytes) -> Header:
    if head[: len(MAGIC)] != MAGIC:
        raise _refused("a file that gb.io.save wrote", repr(head[: len(MAGIC)]), "gb.io.read knows other forms")
    if len(head) < _ALIGN or _CHECK.unpack_from(head, _HEAD.size)[0] != zlib.crc32(head[: _HEAD.size]):
        raise _refused("a whole header", "a damaged one")
    _, version, kind, flags, id_bytes, offset_bytes, name, nrows, ncols, nvals, _ = _HEAD.unpack_from(head)
    if version > VERSION:
        raise _refused(f"version {VERSION} or older", version, "a newer gbgpu wrote it")
    dtype = dtypes.lookup_dtype(name.rstrip(b"\0").decode())
    return Header(kind, flags, id_bytes, offset_bytes, dtype, nrows, ncols, nvals)


def _is_plain(stream: IO[bytes]) -> bool:
    """Whether it is a file of the system's, not packed."""
    return isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO)


def _read(stream: IO[bytes], place: int, section: tuple[np.dtype, int]) -> np.ndarray:
    dtype, length = section
    stream.seek(place)
    if _is_plain(stream):
        array = np.fromfile(stream, dtype.newbyteorder("<"), length)
    else:
        held = bytearray(stream.read(dtype.itemsize * length))
        array = np.frombuffer(held, dtype.newbyteorder("<"), len(held) // dtype.itemsize)
    if len(array) != length:
        raise _refused(f"{length} numbers", len(array), "it was cut off?")
    return array.astype(dtype, copy=False)


def _check(header: Header, offsets: np.ndarray, ids: np.ndarray, values: np.ndarray) -> None:
    """That kernels may follow offsets and ids."""
    size, what = (header.ncols, "columns") if header.kind == _MATRIX else (header.nrows, "positions")
    if len(ids) and int(ids.view(f"u{ids.itemsize}").max()) >= size:
        raise _refused(f"{what} from 0 to {size - 1}", "others", "the file was changed")
    steps = np.diff(offsets)
    ascending = not len(offsets) or (offsets[0] == 0 and offsets[-1] == header.nvals and steps.min(initial=0) >= 0)
    if not ascending or (header.kind == _VECTOR and np.any(ids[1:] <= ids[:-1])):
        raise _refused("ascending offsets and positions", "others", "the file was changed")
    if values.dtype == np.bool_ and values.view(np.uint8).max(initial=0) > 1:
        raise _refused("booleans", "other bytes", "the file was changed")


def _matrix(header: Header, offsets: np.ndarray, ids: np.ndarray, values: np.ndarray, name: str | None) -> Matrix:
    matrix = Matrix(header.dtype, header.nrows, header.ncols, name=name)
    matrix._session.build_csr(matrix, offsets, ids, values, bool(header.flags & _ISO), trusted=True)
    if header.flags & _SYMMETRIC:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _vector(header: Header, ids: np.ndarray, values: np.ndarray, name: str | None) -> Vector:
    vector = Vector(header.dtype, header.nrows, name=name)
    ids = np.arange(header.nrows) if header.flags & _FULL else ids
    vector._session.build_vector(vector, ids, values, bool(header.flags & _ISO), None, trusted=True)
    return vector
