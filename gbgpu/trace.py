"""What ran: counters that are always on, and records that listeners receive while somebody traces. Records are plain;
reports read them."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, get_ident
from time import perf_counter
from typing import Any


@dataclass(slots=True)
class Counters:
    """Totals since the process began; differences are what a piece of work cost. The threads of devices read and
    exchange too; the rest is counted by the one thread that runs a statement."""

    launches: int = 0  # kernels, fills and copies started on GPUs
    host_reads: int = 0  # copies from a device to the host
    exchanged: int = 0  # bytes moved between devices, as far as the host knows them (records know the rest)
    statements: int = 0
    _lock: Any = field(default_factory=Lock, repr=False)

    def read(self) -> None:
        with self._lock:
            self.host_reads += 1

    def moved(self, n: int) -> None:
        """Bytes that arrived from other devices."""
        if n:
            with self._lock:
                self.exchanged += n


@dataclass(slots=True)
class Record:
    """One step on one device. Times are seconds of `time.perf_counter`; on GPUs they are the host's launch times."""

    statement: int
    text: str
    step: str
    device: str
    direction: str | None = None
    form: str | None = None
    moved: int = 0
    host_reads: int = 0
    launches: int = 0
    start: float = 0.0
    end: float = 0.0
    _stats: Any = field(default=None, repr=False)  # counts still on the device
    _count: Any = field(default=None, repr=False)
    _get: Any = field(default=None, repr=False)
    _sent: Any = field(default=(), repr=False)  # (count still on the device, bytes an entry) of messages

    def keep(self, get: Any, stats: Any, count: Any, sent: Any) -> None:
        """Numbers that are still on a device, and how to read them."""
        self._get, self._stats, self._count, self._sent = get, stats, count, sent

    def _settle(self) -> None:
        if self._stats is not None and not isinstance(self._stats, tuple):
            self._stats = tuple(int(x) for x in self._get(self._stats))
        if self._count is not None and not isinstance(self._count, int):
            self._count = int(self._get(self._count)[0])

    @property
    def bytes(self) -> int:
        """Bytes that arrived from other devices."""
        if self._sent:
            self.moved += sum(int(self._get(count)[0]) * width for count, width in self._sent)
            self._sent = ()
        return self.moved

    @property
    def edges(self) -> int:
        """Matrix entries that the step looked at (read from the device when first asked)."""
        self._settle()
        return self._stats[0] if self._stats else 0

    @property
    def rows(self) -> int:
        """Rows probed by a pull, frontier vertices expanded by a push."""
        self._settle()
        return self._stats[1] if self._stats else 0

    @property
    def nvals(self) -> int | None:
        """Entries of the output on this device after a write step."""
        self._settle()
        return self._count


counters = Counters()
listeners: list[Callable[[Record], None]] = []


@contextmanager
def trace():
    """Collect the records of this thread's statements inside: `with gb.trace() as records: ...`."""
    records: list[Record] = []
    thread = get_ident()

    def listen(record: Record) -> None:
        if get_ident() == thread:
            records.append(record)

    listeners.append(listen)
    try:
        yield records
    finally:
        listeners.remove(listen)


def emit(record: Record) -> None:
    """Hand a record to every listener."""
    for listener in tuple(listeners):
        listener(record)


def now() -> float:
    """The clock of all records."""
    return perf_counter()
