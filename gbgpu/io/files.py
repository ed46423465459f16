"""Opening files: packing is known by content when reading, by suffix when writing; a file is replaced in one step."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any

from gbgpu.errors import FileFormatError

CHUNK = 1 << 22  # bytes of text read at once: large beside a line, small beside the caches
_PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}  # what their files begin with
_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)  # what reading a broken one raises


@contextlib.contextmanager
def open_bytes(source: Any) -> Iterator[IO[bytes]]:
    """The bytes of a path or of a file object (binary or text), unpacked if they begin like gzip, bzip2 or xz.

    A path is opened and closed here; a file object is read to its end and stays open.
    """
    with contextlib.ExitStack() as stack:
        if hasattr(source, "read"):
            text = source.read()
            raw: Any = io.BufferedReader(io.BytesIO(text.encode() if isinstance(text, str) else text))
        else:
            raw = stack.enter_context(open(source, "rb"))
        start = raw.peek(6)
        unpack = next((known for magic, known in _PACKED.items() if start.startswith(magic)), None)
        yield stack.enter_context(unpack(raw, "rb")) if unpack else raw  # type: ignore[operator]


@contextlib.contextmanager
def damage(line: Any) -> Iterator[None]:
    """What a broken compressed file raises becomes a FileFormatError with the number that `line()` gives."""
    try:
        yield
    except _DAMAGE as error:
        raise FileFormatError(f"line {line()}: the compressed file is damaged or truncated ({error})") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise FileFormatError(f"line {line()}: the compressed file is damaged ({error})") from error  # bzip2's


def whole_lines(stream: IO[bytes]) -> Iterator[memoryview]:
    """The rest of a stream in large pieces that end with a newline; each is overwritten by the next."""
    room, held = bytearray(CHUNK), 0
    while got := stream.readinto(memoryview(room)[held:]):  # type: ignore[attr-defined]
        held += got
        end = room.rfind(b"\n", 0, held) + 1
        if end:
            yield memoryview(room)[:end]
            room[: held - end] = room[end:held]
            held -= end
        elif held == len(room):  # a line longer than the room
            room = room + bytearray(len(room))
    if held:
        yield memoryview(room[:held] + b"\n")


@contextlib.contextmanager
def atomic_file(path: Any) -> Iterator[IO[bytes]]:
    """A binary file that takes the name `path` only when the block ends well; packed if the name ends in .gz, .bz2 or
    .xz.

    The bytes go to a temporary file beside it, so a reader sees the old file or the whole new one, never a part.
    """
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        raw = open(temporary, "xb")
    except OSError as error:
        error.filename = path  # what the caller asked for
        raise
    try:
        with raw:
            with _packed(raw, path) as stream:
                yield stream
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _packed(raw: IO[bytes], path: str) -> Any:
    """A file object that packs what is written to it, as the name asks."""
    if path.endswith(".gz"):
        return gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0)  # the same bytes every time
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
