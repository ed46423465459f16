"""Virtual devices on the CPU: private NumPy buffers and one thread each."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from queue import SimpleQueue
from threading import Thread
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import settings
from ..errors import OutOfMemory, message
from ..host import memory as host_memory
from ..host import promised
from ..host import total as host_total
from ..interrupts import held, here, imported
from ..trace import counters
from .base import cores

if TYPE_CHECKING:
    from .base import Device, DeviceSet


_BITS = np.array([number.bit_count() for number in range(256)], np.uint8)  # that are set in a byte


class CpuDevice:
    """A block owner on the host. Kernels run on its thread, or inline on the caller's when the work is small."""

    kind, shares_memory, captures = "cpu", True, "calls"
    model = "virtual device"
    relieve: Any = None
    xp: Any = np

    def __init__(self, index: int):
        self.index = index
        self.name = f"cpu:{index}"

    def here(self) -> AbstractContextManager:
        return nullcontext()

    def uncaptured(self) -> AbstractContextManager:
        return nullcontext()

    def empty(self, n: int, dtype: Any) -> np.ndarray:
        return np.empty(n, dtype) if n < LARGE else self._large(np.empty, n, dtype)

    def zeros(self, n: int, dtype: Any) -> np.ndarray:
        return np.zeros(n, dtype) if n < LARGE else self._large(np.zeros, n, dtype)

    def _large(self, make: Callable[[int, Any], np.ndarray], n: int, dtype: Any) -> np.ndarray:
        with promised.lock:  # devices share this memory: each is told of what the others were given
            host_room(n * np.dtype(dtype).itemsize, f"{n} elements on {self.name}")
            return promised.allocate(lambda: make(n, dtype))

    def full(self, n: int, value: Any, dtype: Any) -> np.ndarray:
        made = self.empty(n, dtype)
        made.fill(value)
        return made

    def halves(self, words: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        return words[:1].view(dtype)[:1], words[1:]

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)

    def get(self, buffer: np.ndarray) -> np.ndarray:
        counters.read()
        return np.array(buffer)

    def peek(self, buffer: np.ndarray) -> np.ndarray:
        return buffer

    def clear(self, buffer: np.ndarray) -> None:
        buffer.fill(0)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        target[...] = source

    def at_once(self) -> AbstractContextManager:
        return nullcontext()

    def copy_counted(self, target: np.ndarray, source: np.ndarray, count: np.ndarray) -> None:
        target[: count[0]] = source[: count[0]]

    def reach(self, array: np.ndarray) -> None:
        """Memory is shared."""

    def where(self, source: np.ndarray, words: np.ndarray) -> np.ndarray:
        return source.copy()

    def truths(self, flags: np.ndarray) -> np.ndarray:
        return np.array([np.count_nonzero(flags)])

    def set_bits(self, words: np.ndarray) -> np.ndarray:
        return np.array([_BITS[words.view(np.uint8)].sum(dtype=np.int64)])

    def has_empty(self, indptr: np.ndarray) -> bool:
        return bool((indptr[1:] == indptr[:-1]).any())

    def longest(self, indptr: np.ndarray) -> int:
        return int(np.diff(indptr).max(initial=0))

    def lengths(self, indptr: np.ndarray, vals: np.ndarray, words: np.ndarray, count: np.ndarray) -> None:
        found = np.diff(indptr)
        vals[...] = found
        present = found > 0
        words[...] = 0
        bits = np.packbits(present, bitorder="little")
        words.view(np.uint8)[: len(bits)] = bits
        count += np.count_nonzero(present)

    def equal(self, one: np.ndarray, two: np.ndarray) -> bool:
        return np.array_equal(one.view(f"u{one.itemsize}"), two.view(f"u{two.itemsize}"))

    def offsets(self, lengths: np.ndarray) -> np.ndarray:
        found = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=found[1:])
        return found

    def rows_of(self, words: np.ndarray, n: int) -> np.ndarray:
        return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")[:n])

    def kept(
        self, keep: np.ndarray, n: int, indptr: np.ndarray, arrays: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, int, list[np.ndarray]]:
        if keep.dtype != np.bool_:
            keep = np.unpackbits(keep.view(np.uint8), count=n, bitorder="little").view(np.bool_)
        total = int(np.count_nonzero(keep))
        if total == n:
            return indptr.astype(np.int64), total, list(arrays)
        bits = np.packbits(keep, bitorder="little")  # counting those of bytes is quicker than row by row
        byte, below = indptr >> 3, (1 << (indptr & 7)) - 1
        offsets = self.offsets(_BITS[bits])[byte] + _BITS[np.append(bits, np.uint8(0))[byte] & below]
        found, at = [np.empty(total, array.dtype) for array in arrays], 0
        for lo in range(0, n, PIECE):
            ids = np.flatnonzero(keep[lo : lo + PIECE])  # ten times faster than keep as an index
            for array, out in zip(arrays, found, strict=True):
                np.take(array[lo:], ids, out=out[at : at + len(ids)], mode="clip")
            at += len(ids)
        return offsets, total, found

    def is_line(self, indptr: np.ndarray, cols: np.ndarray, first: int) -> bool:
        line = np.arange(len(indptr))
        return bool((indptr == line).all() and (cols == line[:-1] + first).all())

    def owners(self, indptr: np.ndarray, total: int) -> np.ndarray:
        return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))

    def checked(self, ids: np.ndarray, n: int, dtype: str) -> tuple[np.ndarray, Any]:
        """(ids, with -1 in place of those outside 0 .. n - 1; whether there are any)."""
        inside = (ids >= 0) & (ids < n)
        slots = ids.astype(dtype)
        slots[~inside] = -1
        return slots, ~inside.all()

    def at(self, vals: np.ndarray, ids: np.ndarray) -> np.ndarray:
        return vals[ids]

    def take(self, vals: np.ndarray, ids: np.ndarray, n: int) -> tuple[np.ndarray, Any]:
        """(vals[ids]; whether there are ids outside 0 .. n - 1, in whose place any value is)."""
        bad = ids.size > 0 and not (0 <= ids.min() and ids.max() < n)
        return vals[ids * ((ids >= 0) & (ids < n)) if bad else ids], bad

    def adopt(self, array: Any) -> None:
        return None

    def order(self, keys: np.ndarray) -> np.ndarray:
        return np.argsort(keys, kind="stable")

    def transpose(
        self, n: int, m: int, indptr: np.ndarray, cols: np.ndarray, vals: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        nnz = int(indptr[-1])
        if nnz < FEW:
            order = self.order(cols[:nnz])
            starts = np.zeros(m + 1, np.int64)
            np.cumsum(np.bincount(cols[:nnz], minlength=m), out=starts[1:])
            rows = self.owners(indptr, nnz).astype(cols.dtype)
            return starts, rows[order], None if vals is None else vals[order]
        bits = np.zeros(len(cols), np.uint8) if vals is None else vals.view(f"u{vals.itemsize}")
        t = imported("scipy.sparse").csr_array((bits, cols, indptr), shape=(n, m)).tocsc()
        return t.indptr, t.indices, None if vals is None else t.data.view(vals.dtype)

    @property
    def total(self) -> int:
        return host_total()

    def memory(self) -> tuple[int, int]:
        return host_memory()

    def has_room(self, need: float) -> bool:
        return host_memory()[0] > need

    def synchronize(self) -> None:
        pass

    def mark(self) -> float:
        return perf_counter()

    def busy(self) -> float:
        return thread_time()

    def between(self, one: float, two: float) -> float:
        return two - one


LARGE = 2**24  # elements that are allocated after a look at what is free
FEW = 2**14  # entries that NumPy transposes in less time than it takes to import SciPy
PIECE = 2**18  # flags that are looked at before what they keep is fetched


def host_room(need: int, what: str, hint: str = "") -> None:
    """Raises OutOfMemory unless the host can hold `need` bytes more. Memory is there once it is touched, so a process
    that asks for too much gets it, and is killed."""
    free, total = host_memory()
    if need > free:
        raise OutOfMemory(message(f"{need} bytes for {what}", f"{free} of {total} bytes free", hint))


def _pin(i: int) -> None:
    """Keep this thread on one core, another one for each device. Woken threads otherwise often start on the caller's
    core and stay there for the milliseconds that a step takes (measured on two: 1.3, not 1.8 times faster)."""
    if hasattr(os, "sched_setaffinity"):
        mine = cores()
        os.sched_setaffinity(0, {mine[i % len(mine)]})


class _Job:
    """One step on several threads: what came of it, and who is still at it. Its threads do not wait for each other, and
    who waits for them may be interrupted at any point, so it counts nothing."""

    __slots__ = ("work", "tasks", "results", "errors", "left", "ended")

    def __init__(self, work: Callable[[Any], Any], tasks: Sequence[Any], first: int):
        self.work, self.tasks, self.results = work, tasks, [None] * len(tasks)
        self.left = {task.device for task in tasks if task.device >= first}
        self.errors: list[BaseException] = []
        self.ended: SimpleQueue = SimpleQueue()

    def serve(self, d: int) -> None:
        """The tasks of one device, in their order."""
        for i, task in enumerate(self.tasks):
            if task.device == d:
                self.results[i] = self.work(task)

    def run(self, d: int) -> None:
        try:
            self.serve(d)
        except BaseException as error:  # for the caller, who raises it
            self.errors.append(error)
        self.left.discard(d)
        self.ended.put(None)


class CpuDevices:
    """k virtual devices, with a thread each from the first step that is large enough for them.

    The caller's thread serves the first device in its thread's place, but for steps so long that somebody may want to
    interrupt them: Ctrl-C waits for compiled code of its own thread. (A caller that only waits leaves its core idle,
    and two threads woken at once may share the other.)
    """

    switches, one_memory, direct = False, True, True

    def __init__(self, k: int):
        self.devices = [CpuDevice(i) for i in range(k)]
        self._queues: list[SimpleQueue] = []

    def inline(self, p: int, seconds: float) -> bool:
        inline = settings.inline
        if seconds >= settings.long_seconds and inline != "always" and here():
            return False
        return p == 1 or inline == "always" or (inline == "auto" and seconds < settings.inline_seconds)

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        if self.inline(len(tasks), seconds):
            return [work(task) for task in tasks]
        return self._hand_out(tasks, work, 0 if seconds >= settings.long_seconds and here() else 1, whole)

    def together(self, tasks: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        """work(task) for tasks that wait for each other, one for each of some devices; none of them is left out."""
        return held(lambda: self._hand_out(tasks, work, 1, True))

    def _hand_out(self, tasks: Sequence[Any], work: Callable[[Any], Any], first: int, whole: bool) -> list[Any]:
        """The caller's thread serves the devices before the `first` one."""
        if not self._queues:
            self._start()
        job, interrupted = _Job(work, tasks, first), False
        sent: list[None] = []
        queues = [queue for d, queue in enumerate(self._queues) if d in job.left]
        try:
            sent.extend(map(SimpleQueue.put, queues, repeat(job)))  # to all or to none
            if first:
                job.serve(0)
        except BaseException as error:
            job.errors.append(error)
            interrupted = not isinstance(error, Exception)
        while sent and job.left and (whole or not interrupted):
            try:
                job.ended.get()
            except BaseException as error:
                job.errors.append(error)
                interrupted = True
        if sent and job.left:
            self.close()  # the threads end in peace; nobody looks at what they make, and others take their places
        if job.errors:
            del job.errors[1:]  # with what their threads have
            raise job.errors.pop()
        return job.results

    def _start(self) -> None:
        queues: list[SimpleQueue] = [SimpleQueue() for _ in self.devices]
        for i, queue in enumerate(queues):
            device = self.devices[i]
            arguments = i, queue, device.index if len(queues) > 1 else None
            thread = Thread(target=_serve, args=arguments, name=device.name, daemon=True)
            held(thread.start)
        self._queues = queues

    def close(self) -> None:
        queues, self._queues = self._queues, []
        for queue in queues:
            queue.put(None)

    def forked(self) -> str | None:
        self._queues = []  # a child has none of its parent's threads
        return None


def _serve(i: int, queue: SimpleQueue, core: int | None) -> None:
    if settings.pin and core is not None:
        _pin(core)
    while (job := queue.get()) is not None:
        job.run(i)
        del job  # and what it holds


if TYPE_CHECKING:  # what mypy holds them against

    def _contract(device: CpuDevice, devices: CpuDevices) -> tuple[Device, DeviceSet]:
        return device, devices
