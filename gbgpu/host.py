"""What the host has: its memory, or less where a container or `ulimit -v` allows less."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
from threading import RLock
from typing import Any
from weakref import finalize

GROUP, OWN = "/sys/fs/cgroup", "/proc/self"
# Where the two versions of control groups have a limit, what is used of it, and the prefix of what can be given back.
VERSIONS = (
    ("0::", "", "memory.max", "memory.current", ""),
    ("memory:", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
)


class _Promised:
    """Large arrays of this process. The system hands out memory when it is first touched, so what it calls available
    includes the part of these that was not touched yet."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._sizes: dict[int, int] = {}
        self._untouched = 0  # bytes of everything else that is not touched: stacks of threads

    def allocate(self, make: Callable[[], Any]) -> Any:
        with self.lock:
            if not self._sizes:
                self._untouched = _untouched()
            array = make()
            self._sizes[id(array)] = array.nbytes
            finalize(array, self._sizes.pop, id(array), None)
            return array

    def left(self) -> int:
        """Bytes of large arrays that were not touched yet."""
        sizes = [*self._sizes.values()]
        return min(sum(sizes), max(_untouched() - self._untouched, 0)) if sizes else 0


promised = _Promised()


def memory() -> tuple[int, int]:
    """(available, total) bytes of the host, or of what allows this process least."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    available = _number("/proc/meminfo", "MemAvailable:", total // 1024) * 1024
    for limit, used in _groups(total):
        available, total = min(available, limit - used), limit
    available -= promised.left()
    limit, _ = getrlimit(RLIMIT_AS)
    if limit != RLIM_INFINITY:  # a limit of addresses: it counts what is promised
        available = min(available, limit - _number(f"{OWN}/status", "VmSize:", 0) * 1024)
        total = min(total, limit)
    return max(available, 0), total


@cache
def total() -> int:
    """Bytes of memory in all, read once."""
    return memory()[1]


def _untouched() -> int:
    """Bytes of private memory that this process was given and has not touched."""
    given, touched = (_number(f"{OWN}/status", name, 0) for name in ("VmData:", "RssAnon:"))
    return (given - touched) * 1024


def _groups(total: int) -> Iterator[tuple[int, int]]:
    """(limit, used) bytes of the control groups that this process is in and that allow less than before, inner ones
    first."""
    for mark, place, limit, current, prefix in VERSIONS:
        folder = _line(f"{OWN}/cgroup", mark).rstrip("/")
        while True:
            here = f"{GROUP}{place}{folder}/"
            most = _number(here + limit, "", total)
            if most < total:
                cached = sum(_number(f"{here}memory.stat", f"{prefix}{kind}active_file ", 0) for kind in ("", "in"))
                total = most
                yield most, _number(here + current, "", 0) - cached
            if not folder:
                break
            folder = folder.rpartition("/")[0]


def _line(path: str, mark: str) -> str:
    """What follows `mark` in the first line of a file of the system that has it."""
    with suppress(OSError), open(path) as file:
        for line in file:
            if mark in line:
                return line.partition(mark)[2].strip()
    return ""


def _number(path: str, word: str, otherwise: int) -> int:
    """The number behind a word, with which a line of a file of the system begins."""
    with suppress(OSError), open(path) as file:
        for line in file:
            if line.startswith(word):
                number = line[len(word) :].split()[0]
                return int(number) if number.isdecimal() else otherwise
    return otherwise
