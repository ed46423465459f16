"""Opening files: packing is known by content when reading, by suffix when writing; a file is replaced in one step."""

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from gbgpu import settings
from gbgpu.errors import FileFormatError, message
from gbgpu.io import checks

_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)  # what reading a broken one raises
# modules whose functions readers call
_READING = "gbgpu numpy zipfile gzip bz2 lzma _compression compression ast struct tokenize".split()
_NAMED = "a path or a file object"
_RATIO = 200  # texts of numbers shrink to a tenth, seldom to a fiftieth; what is made to burst goes to a thousandth
_LEAST = 1 << 30  # what any file may become, however small
_PIECE = 1 << 16  # bytes of a packed file that are read at once
_ROW = 32  # bytes that a row without entries takes while its matrix is made


@dataclass(frozen=True)
class Source:
    """What is read: a stream of bytes, unpacked."""

    stream: IO[bytes]
    size: int | None  # its bytes; None where only reading tells
    limit: int  # how many bytes may be made of it


def check_rows(limit: int, nrows: int, where: str) -> None:
    """Raise FileFormatError for more rows than a file that may become `limit` bytes may ask for.

    Rows take memory without any entry.
    """
    if nrows > (most := limit // _ROW):
        hint = f"limit={_ROW * nrows} (bytes) allows them"
        raise FileFormatError(f"{where}: " + message(f"at most {most} rows of so small a file", nrows, hint))


class _TooLargeError(Exception):
    """More came out of a file than may."""


class _Limited(io.RawIOBase):
    """What a stream gives, up to a number of bytes."""

    def __init__(self, stream: Any, limit: int):
        self._stream, self._limit, self._got = stream, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        got: int = self._stream.readinto(memoryview(room)[: self._limit + 1 - self._got])
        self._got += got
        if self._got > self._limit:
            raise _TooLargeError(self._limit)
        return got


class _Members(io.RawIOBase):
    """What compressed streams hold, one after the other, with zeros between them.

    What follows and is none is an error, where bz2's and lzma's own files pass over it.
    """

    def __init__(self, raw: IO[bytes], begin: Callable[[], Any]):
        self._raw, self._begin, self._one = raw, begin, begin()

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while True:
            data = b""
            if self._one.eof:
                data = (self._one.unused_data or self._raw.read(_PIECE)).lstrip(b"\0")
                while not data and (more := self._raw.read(_PIECE)):
                    data = more.lstrip(b"\0")
                if not data:
                    return 0
                self._one = self._begin()
            elif self._one.needs_input and not (data := self._raw.read(_PIECE)):
                raise EOFError("its end is missing")
            if found := self._one.decompress(data, len(room)):
                room[: len(found)] = found
                return len(found)


_PACKED: dict[bytes, Callable[[IO[bytes]], Any]] = {  # what their files begin with
    b"\x1f\x8b": gzip.open,
    b"BZh": lambda raw: _Members(raw, bz2.BZ2Decompressor),
    b"\xfd7zXZ": lambda raw: _Members(raw, lzma.LZMADecompressor),
}


@contextlib.contextmanager
def open_bytes(source: Any, limit: int | None = None) -> Iterator[Source]:
    """The bytes of a path or of a file object (binary or text), unpacked if they begin like gzip, bzip2 or xz.

    A path is opened and closed here; a file object is read to its end and stays open. `limit`: how many bytes may be
    read, and how many may be made of them; by default 1 GiB, or 200 times as many as there are if that is more.
    """
    checks.whole("limit", limit, none=True)
    with contextlib.ExitStack() as stack:
        if hasattr(source, "read"):
            data = _content(source, _LEAST if limit is None else limit)
            raw: Any = io.BufferedReader(io.BytesIO(data))
            size: int | None = len(data)
        else:
            raw = stack.enter_context(open(checks.path(source, _NAMED), "rb"))
            found = os.fstat(raw.fileno())
            size = found.st_size if stat.S_ISREG(found.st_mode) else None
        if limit is not None and size is not None and size > limit:
            raise _too_large("file", limit, size)
        limit = max(_LEAST, _RATIO * (size or 0)) if limit is None else limit
        if size is None:
            raw = io.BufferedReader(_Limited(raw, limit))
        with damage(lambda: "file"):
            start = raw.peek(6)
        unpack: Any = next((known for magic, known in _PACKED.items() if start.startswith(magic)), None)
        if unpack:
            raw, size = io.BufferedReader(_Limited(stack.enter_context(unpack(raw)), limit)), None
        yield Source(raw, size, limit)


def _content(source: Any, limit: int) -> bytes | bytearray:
    """All that a file object gives.

    What gives more than lies in memory or in a file, such as a pipe, gives up to `limit` bytes.
    """
    ended = isinstance(source, io.BytesIO | io.StringIO) or _is_file(source)
    held, piece = bytearray(), source.read() if ended else source.read(_PIECE)
    while True:
        if isinstance(piece, str):
            piece = piece.encode("utf-8", "surrogateescape")
        elif not isinstance(piece, bytes | bytearray | memoryview):
            raise TypeError(message("a file object that gives bytes or text", type(piece).__name__))
        if ended:
            return bytes(piece) if isinstance(piece, memoryview) else piece
        held += piece
        if len(held) > limit:
            raise _too_large("file", limit, "more")
        if not piece:
            return held
        piece = source.read(_PIECE)


def _is_file(source: Any) -> bool:
    """Whether a file object is one that `open` gives of a regular file."""
    source = getattr(source, "buffer", source)
    raw = getattr(source, "raw", source)
    return isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode)


def _too_large(where: str, limit: object, came: object) -> FileFormatError:
    hint = "limit=..., a number of bytes, allows it, if you trust the file"
    return FileFormatError(f"{where}: " + message(f"at most {limit} bytes", came, hint))


def from_outside(error: BaseException) -> bool:
    """Whether an exception comes from a function that reading does not call: a signal's handler."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).split(".")[0] not in _READING


@contextlib.contextmanager
def damage(where: Callable[[], str]) -> Iterator[None]:
    """Turn what a broken compressed file raises, or one that holds too much, into a FileFormatError.

    `where()` begins its text. What a signal's handler raises meanwhile stays what it is.
    """
    try:
        yield
    except _TooLargeError as error:
        raise _too_large(where(), error, "more") from error
    except (*_DAMAGE, OSError) as error:
        if from_outside(error) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise FileFormatError(f"{where()}: the compressed file is damaged or truncated ({error})") from error


@contextlib.contextmanager
def atomic_file(path: Any) -> Iterator[IO[bytes]]:
    """A binary file that takes the name `path` only when the `with` block ends well.

    The bytes go to a temporary file beside it, so a reader sees the old file or the whole new one, never a part. A file
    that is replaced keeps its permissions; a link is followed. Of several ranks the first writes it, and all go on when
    it is there, or raise alike.

    Parameters
    ----------
    path : path
        The name; the file is packed if it ends in .gz, .bz2 or .xz.

    Yields
    ------
    file object
        Binary, to write to.

    Raises
    ------
    InvalidValue
        If ranks name different files.
    OSError
        If the file can't be written.
    """
    path, ranks = checks.path(path, _NAMED), settings.ranks_in_force()
    if ranks is None:
        with replaced(path) as stream:
            yield stream
        return
    ranks.agree_on(path, "file to write")
    failure = None
    try:
        with contextlib.ExitStack() as stack:
            opened = ranks.alike(lambda: None if ranks.rank else stack.enter_context(replaced(path)), "a file")
            first = _First(opened)
            yield first  # type: ignore[misc]
            if first.failure is not None:
                raise first.failure
    except OSError as error:
        failure = error
    ranks.agreed(failure, "a file")


class _First(io.RawIOBase):
    """A file that the first of several ranks writes; what others write is gone.

    It fails at the end, so that ranks go through the same steps until then.
    """

    def __init__(self, stream: IO[bytes] | None):
        self._stream = stream
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._stream is not None and self.failure is None:
            try:
                self._stream.write(data)
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes


@contextlib.contextmanager
def replaced(path: str) -> Iterator[IO[bytes]]:
    """An atomic file of this process, whatever others do.

    What is no file, such as a pipe, stays what it is, and is written to.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as raw, _packed(raw, path) as stream:
            yield stream
        return
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".{os.urandom(8).hex()}.tmp")  # nobody else's, in any thread
    try:
        try:
            raw = open(temporary, "xb")  # not by `tempfile`, whose files only their owner may read
        except OSError as error:
            error.filename = path  # what the caller asked for
            raise
        with raw:
            with contextlib.suppress(OSError):
                os.fchmod(raw.fileno(), stat.S_IMODE(os.stat(target).st_mode))
            with _packed(raw, path) as stream:
                yield stream
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _packed(raw: IO[bytes], path: str) -> Any:
    """A file object that packs what is written to it, as the name asks."""
    if path.endswith(".gz"):
        # a fifth larger than by level 6, in a quarter of the time
        return gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0)  # the same bytes every time
    if path.endswith((".bz2", ".xz")):
        return (bz2 if path.endswith(".bz2") else lzma).open(raw, "wb")
    return contextlib.nullcontext(raw)


@contextlib.contextmanager
def writing(target: Any) -> Iterator[IO[bytes]]:
    """Where to write: an atomic file for a path, or a binary file object itself."""
    if hasattr(target, "write"):
        yield target
    else:
        with atomic_file(target) as stream:
            yield stream
