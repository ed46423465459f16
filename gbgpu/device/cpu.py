"""Virtual devices on the CPU: private NumPy buffers and one thread each."""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from .. import settings
from ..errors import OutOfMemory, message
from ..trace import counters


class CpuDevice:
    """A block owner on the host. Kernels run on its thread, or inline on the caller's when the work is small."""

    kind = "cpu"
    model = "virtual device"
    xp = np

    def __init__(self, index: int):
        self.index = index
        self.name = f"cpu:{index}"

    def empty(self, n: int, dtype: Any) -> np.ndarray:
        if n >= LARGE:
            host_room(n * np.dtype(dtype).itemsize, f"{n} elements on {self.name}")
        return np.empty(n, dtype)

    def zeros(self, n: int, dtype: Any) -> np.ndarray:
        if n >= LARGE:
            host_room(n * np.dtype(dtype).itemsize, f"{n} elements on {self.name}")
        return np.zeros(n, dtype)

    def full(self, n: int, value: Any, dtype: Any) -> np.ndarray:
        made = self.empty(n, dtype)
        made.fill(value)
        return made

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)

    def get(self, buffer: np.ndarray) -> np.ndarray:
        counters.host_reads += 1
        return np.array(buffer)

    def peek(self, buffer: np.ndarray) -> np.ndarray:
        return buffer

    def clear(self, buffer: np.ndarray) -> None:
        buffer.fill(0)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        target[...] = source

    def copy_counted(self, target: np.ndarray, source: np.ndarray, count: np.ndarray) -> None:
        target[: count[0]] = source[: count[0]]

    def owners(self, indptr: np.ndarray, total: int) -> np.ndarray:
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))

    def checked(self, ids: np.ndarray, n: int, dtype: str) -> tuple[np.ndarray, Any]:
        """(ids, with -1 in place of those outside 0 .. n - 1; whether there are any)."""
        inside = (ids >= 0) & (ids < n)
        slots = ids.astype(dtype)
        slots[~inside] = -1
        return slots, ~inside.all()

    def take(self, vals: np.ndarray, ids: np.ndarray, n: int) -> tuple[np.ndarray, Any]:
        """(vals[ids]; whether there are ids outside 0 .. n - 1, in whose place any value is)."""
        bad = ids.size > 0 and not (0 <= ids.min() and ids.max() < n)
        return vals[ids * ((ids >= 0) & (ids < n)) if bad else ids], bad

    def adopt(self, array: Any) -> None:
        return None

    def order(self, keys: np.ndarray) -> np.ndarray:
        return np.argsort(keys, kind="stable")

    def transpose(
        self, n: int, m: int, indptr: np.ndarray, cols: np.ndarray, ordered: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from scipy.sparse import csr_array

        order = np.arange(len(cols), dtype=np.int64)
        t = csr_array((order, cols, indptr), shape=(n, m)).tocsc()
        return t.indptr, t.indices, t.data

    def memory(self) -> tuple[int, int]:
        return host_memory()

    def synchronize(self) -> None:
        pass


LARGE = 2**24  # elements that are allocated after a look at what is free


def host_memory() -> tuple[int, int]:
    """(available, total) bytes of the host, or of the container if that has less."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    available = _words("/proc/meminfo").get("MemAvailable:", total // 1024) * 1024
    limit = _words(_GROUP + "memory.max", "limit").get("limit", total)
    if limit < total:
        used = _words(_GROUP + "memory.current", "used").get("used", 0)
        cached = _words(_GROUP + "memory.stat").get("inactive_file", 0)
        available, total = min(available, limit - used + cached), limit
    return max(available, 0), total


def host_room(need: int, what: str, hint: str = "") -> None:
    """Raises OutOfMemory unless the host can hold `need` bytes more. Memory is there once it is touched, so a process
    that asks for too much gets it, and is killed."""
    free, total = host_memory()
    if need > free:
        raise OutOfMemory(message(f"{need} bytes for {what}", f"{free} of {total} bytes free", hint))


_GROUP = "/sys/fs/cgroup/"


def _words(path: str, name: str = "") -> dict[str, int]:
    """Numbers of a file of the system by the words before them; none, if it can't be read."""
    try:
        with open(path) as file:
            pairs = (f"{name} {line}".split()[:2] for line in file)
            return {word: int(number) for word, number in pairs if number.isdecimal()}
    except (OSError, ValueError):
        return {}


def _pin(i: int) -> None:
    """Keep this thread on one core, another one for each device. Woken threads otherwise often start on the caller's
    core and stay there for the milliseconds that a step takes (measured on two: 1.3, not 1.8 times faster)."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[i % len(cores)]})


class CpuDevices:
    """k virtual devices. The caller's thread serves the first; the others get threads at the first step that is large
    enough for them. (A caller that only waits leaves its core idle, and two threads woken at once may share the other.)
    """

    def __init__(self, k: int):
        self.devices = [CpuDevice(i) for i in range(k)]
        self._queues: list[SimpleQueue] = []

    def each(self, work: Callable[[int], Any], seconds: float) -> list[Any]:
        k = len(self.devices)
        inline = settings.inline
        if k == 1 or inline == "always" or (inline == "auto" and seconds < settings.inline_seconds):
            return [work(i) for i in range(k)]
        if not self._queues:
            self._start()
        done: SimpleQueue = SimpleQueue()  # of this call alone: one that was interrupted leaves nothing behind
        for queue in self._queues:
            queue.put((work, done))
        results: list[Any] = [None] * k
        error: BaseException | None = None
        try:
            results[0] = work(0)
        except BaseException as failed:
            error = failed
        for _ in self._queues:
            i, results[i], failed = done.get()
            error = error or failed
        if error is not None:
            raise error
        return results

    def _start(self) -> None:
        self._queues = [SimpleQueue() for _ in self.devices[1:]]
        for i, queue in enumerate(self._queues, 1):
            Thread(target=self._serve, args=(i, queue), name=self.devices[i].name, daemon=True).start()

    def _serve(self, i: int, queue: SimpleQueue) -> None:
        if settings.pin:
            _pin(i)
        while (job := queue.get()) is not None:
            work, done = job
            try:
                done.put((i, work(i), None))
            except BaseException as error:  # handed to the caller, who raises it
                done.put((i, None, error))

    def close(self) -> None:
        for queue in self._queues:
            queue.put(None)
        self._queues = []
