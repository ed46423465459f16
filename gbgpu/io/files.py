"""Opening files: gzip is known by content when reading, by suffix when writing; a file is replaced in one step."""

import contextlib
import gzip
import io
import os
from collections.abc import Iterator
from typing import IO, Any

_GZIP_MAGIC = b"\x1f\x8b"


@contextlib.contextmanager
def open_bytes(source: Any) -> Iterator[IO[bytes]]:
    """The bytes of a path or of a file object (binary or text), decompressed if they begin like gzip.

    A path is opened and closed here; a file object is read to its end and stays open.
    """
    with contextlib.ExitStack() as stack:
        if hasattr(source, "read"):
            text = source.read()
            raw = io.BufferedReader(io.BytesIO(text.encode() if isinstance(text, str) else text))  # type: ignore[arg-type]
        else:
            raw = stack.enter_context(open(source, "rb"))
        compressed = raw.peek(2)[:2] == _GZIP_MAGIC
        yield stack.enter_context(gzip.open(raw, "rb")) if compressed else raw


@contextlib.contextmanager
def atomic_file(path: Any) -> Iterator[IO[bytes]]:
    """A binary file that takes the name `path` only when the block ends well; compressed if the name ends in .gz.

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
            if path.endswith(".gz"):
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:  # same bytes every time
                    yield packed  # type: ignore[misc]
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
