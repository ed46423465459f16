"""Machine code kept on disk from one process to the next. It is run as it lies there, so a file counts only if it is
ours and whole: anything else is as good as absent, and what can't be written is not kept."""

import hashlib
import os
import stat
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from .. import settings

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, and no wait for a pipe
_EVERY = 64  # files that are stored from one look at the size of all to the next
_DAY = 86400.0
_stored = count()


def get(part: str, name: str) -> bytes | None:
    """What was stored under a name ("kernel.cubin") in a part of the store ("cuda"); None if there is none."""
    folder = settings.cache_directory()
    if folder is None:
        return None
    try:
        handle = os.open(folder / part / name, _READ)
        with open(handle, "rb") as file:
            about = os.fstat(handle)
            if not _ours(about):
                return None
            found = file.read()
            if time.time() - about.st_mtime > _DAY:
                with suppress(OSError):
                    os.utime(handle)  # the oldest go first
    except OSError:
        return None
    return found[32:] if found[:32] == _digest(name, found[32:]) else None


def code_name(text: str) -> str:
    """A short name for a text, another one for any other."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def has(part: str, name: str) -> bool:
    """Whether something was stored under a name, or one with the same `code_name`, when the process first asked."""
    folder = settings.cache_directory()
    return folder is not None and name[:32] in _starts(folder / part)


@cache
def _starts(folder: Path) -> frozenset[str]:
    try:
        return frozenset(name[:32] for name in os.listdir(folder))
    except OSError:
        return frozenset()


def put(part: str, name: str, content: bytes) -> None:
    """Store under a name. Other processes see the whole file or none; a disk that is full is no error."""
    folder = settings.cache_directory()
    if folder is None:
        return
    scratch = None
    try:
        (folder / part).mkdir(mode=0o700, exist_ok=True)
        handle, scratch = tempfile.mkstemp(".tmp", dir=folder / part)
        with open(handle, "wb") as file:
            file.write(_digest(name, content) + content)
        os.replace(scratch, folder / part / name)
        if next(_stored) % _EVERY == 0:
            sweep(folder)
    except OSError as error:
        with suppress(OSError):
            os.unlink(scratch or "")
        settings.warn_once(
            f"generated code can't be kept in {folder}, and is compiled anew each time: {error.strerror}"
        )


def _digest(name: str, content: bytes) -> bytes:
    """Of the name too: no file serves as another one."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _ours(about: os.stat_result) -> bool:
    owned = os.name == "nt" or about.st_uid in (os.getuid(), 0) and not about.st_mode & 0o022
    return stat.S_ISREG(about.st_mode) and owned


def sweep(folder: Path) -> None:
    """Delete the files that were not used for longest, down to three quarters of the limit, if all exceed it."""
    files = sorted(_files(folder))
    excess = sum(size for _, size, _ in files) - settings.cache_megabytes * 1_000_000
    excess += settings.cache_megabytes * 250_000 if excess > 0 else 0
    for used, size, path in files:
        left_over = path.suffix == ".tmp" and time.time() - used > _DAY  # of a process that was killed
        if excess > 0 or left_over:
            with suppress(OSError):
                path.unlink()
                excess -= size


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    for part in ("cpu", "cuda"):
        for path in (folder / part).rglob("*"):
            with suppress(OSError):
                about = path.lstat()
                if stat.S_ISREG(about.st_mode):
                    yield about.st_mtime, about.st_size, path


class Recent:
    """The values that were used last, by key; as many as a process keeps kernels."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Hashable, make: Callable[[], Any] | None = None) -> Any:
        """The value of a key, made at its first use; None if it is not there and nothing makes it."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            elif make is None:
                return None
            else:
                self._held[key] = make()
                while len(self._held) > settings.kept_kernels:
                    self._held.popitem(last=False)
            return self._held[key]


__all__ = ["Recent", "code_name", "get", "has", "put", "sweep"]
