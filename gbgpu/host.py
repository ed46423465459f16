"""What the host has: its memory, or its container's."""

import os
from contextlib import suppress

GROUP = "/sys/fs/cgroup/"


def memory() -> tuple[int, int]:
    """(available, total) bytes of the host, or of the container if that has less."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    available = _number("/proc/meminfo", "MemAvailable:", total // 1024) * 1024
    limit = _number(GROUP + "memory.max", "", total)
    if limit < total:
        used = _number(GROUP + "memory.current", "", 0)
        files = sum(_number(GROUP + "memory.stat", f"{kind}active_file ", 0) for kind in ("", "in"))  # in the cache
        available, total = min(available, limit - used + files), limit
    return max(available, 0), total


def _number(path: str, word: str, otherwise: int) -> int:
    """The number behind a word, with which a line of a file of the system begins."""
    with suppress(OSError), open(path) as file:
        for line in file:
            if line.startswith(word):
                number = line[len(word) :].split()[0]
                return int(number) if number.isdecimal() else otherwise
    return otherwise
