"""What ran: counters that are always on, and records that listeners receive while somebody traces.

Records are plain; reports read them.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, get_ident, local
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary, ref

from .modes import Mode


@dataclass(slots=True)
class Counters:
    """Totals since the process began; differences are what a piece of work cost.

    The threads of devices read and exchange too; the rest is counted by the one thread that runs a statement.

    Attributes
    ----------
    launches : int
        Kernels, fills and copies started on GPUs.
    host_reads : int
        Copies from a device to the host.
    exchanged : int
        Bytes moved between devices, as far as the host knows them; records know the rest.
    statements : int
        Statements run.
    interpreted : int
        Calls of CPU kernels that ran as plain Python.
    captured : int
        Rounds of loops that were captured.
    counted : int
        What was counted towards running later calls in another way: rounds of a loop that may be captured, runs on
        trial. `gbgpu.timing` waits for the end of it.
    """

    launches: int = 0  # kernels, fills and copies started on GPUs
    host_reads: int = 0  # copies from a device to the host
    exchanged: int = 0  # bytes moved between devices, as far as the host knows them (records know the rest)
    statements: int = 0
    interpreted: int = 0
    captured: int = 0
    counted: int = 0
    count_of: int = 0  # the same for single objects
    _of: Any = field(default_factory=WeakKeyDictionary, repr=False)  # what was counted last, by what it is for
    _lock: Any = field(default_factory=Lock, repr=False)

    def read(self) -> None:
        """Count a copy from a device to the host."""
        with self._lock:
            self.host_reads += 1

    def uncompiled(self) -> None:
        """Count a kernel call that runs as plain Python."""
        with self._lock:
            self.interpreted += 1

    def count(self, what: Any) -> None:
        """Something is counted for an object, until another way of using it pays. It ends with the object."""
        self._of[what] = self.count_of = self.count_of + 1  # without the lock: memory may be collected meanwhile

    def has_counted(self, since: int) -> bool:
        """Whether anything was counted for objects that are still there, after `count_of` was `since`."""
        objects = (found() for found in self._of.keyrefs())
        return any(self._of.get(one, 0) > since for one in objects if one is not None)

    def moved(self, n: int) -> None:
        """Bytes that arrived from other devices."""
        if n:
            with self._lock:
                self.exchanged += n


@dataclass(slots=True)
class Record:
    """One step of a statement on one device.

    Times are seconds of `time.perf_counter`; on GPUs they are the host's launch times.

    Attributes
    ----------
    statement : int
        The number of the statement in this process.
    text : str
        The statement.
    step : str
        What was done; see the notes.
    device : str
        The name of the device, or "host".
    direction, form : str or None
        "push" or "pull", and the form of the result.
    host_reads, launches : int
        Copies to the host and launches of kernels in this step.
    start, end : float
        Seconds.
    tally : balance.Tally or None
        Of a product on CPU devices, the frontier of the device's block.
    round : int or None
        The number of a loop's round, from 0.
    change : float or None
        The number that the loop's condition compares.

    Notes
    -----
    - A round of a loop that runs on the device without Python (`gb.trace(rounds=True)`) is one record. Its step is
      "round", "push round" or "pull round", and its times are those of the device.
    - A call that the first of several GPUs may do alone (`gb.program`) is one record, with the first device and step
      "call".
    - A record with the device "host" is a delay of the step that follows: `compile` (kernels compiled or loaded,
      modules imported) or `collect` (Python's garbage collection). The times of steps exclude it.
    """

    statement: int
    text: str
    step: str
    device: str
    direction: str | None = None
    form: str | None = None
    moved: int = 0
    host_reads: int = 0
    launches: int = 0
    interpreted: int = 0  # calls of CPU kernels that ran as plain Python, those of all devices with the first
    start: float = 0.0
    end: float = 0.0
    tally: Any = None  # of a product on CPU devices, balance.Tally: the frontier of the device's block
    round: int | None = None  # of a round of a loop: which one, from 0
    change: float | None = None  # the number that its condition compares
    _stats: Any = field(default=None, repr=False)  # counts still on the device
    _count: Any = field(default=None, repr=False)
    _get: Any = field(default=None, repr=False)
    _sent: Any = field(default=(), repr=False)  # (count still on the device, bytes an entry) of messages
    _decision: Any = field(default=None, repr=False)  # or what gives it, once devices have come to the end of it

    def keep(self, get: Any, stats: Any, count: Any, sent: Any) -> None:
        """Numbers that are still on a device, and how to read them."""
        self._get, self._stats, self._count, self._sent = get, stats, count, sent

    def decide(self, decision: Any) -> None:
        """Who computed what: a decision, or what gives it when it is asked for."""
        self._decision = decision

    @property
    def decision(self) -> Any:
        """The balance.Decision of a product or a whole call: who computed what, and what came of it.

        It stands with the first device; None elsewhere.
        """
        if not callable(self._decision):
            return self._decision
        found = self._decision()
        if found.observed is not None:  # else devices have not come to the end of it
            self._decision = found
        return found

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


class _Beside(local):
    """Seconds that a thread did not spend on steps."""

    seconds = 0.0


class Compiling:
    """What this process compiles, loads and imports, in any of its threads: when, and what now.

    Running kernels costs nothing here.
    """

    def __init__(self) -> None:
        self.what = ""  # what is under way, for people: of several, the last that began
        self.since = 0.0  # when there was nothing before
        self.kernels = 0  # begun until now
        self.last = 0.0  # when something ended
        self._times: deque[tuple[float, float]] = deque(maxlen=10_000)  # start and end

    def begin(self, what: str) -> None:
        """Work of this kind begins."""
        self.since = self.since if self.what else now()
        self.what = what

    def kernel(self, kind: str) -> None:
        """A kernel is loaded, or compiled, next."""
        self.kernels += 1
        self.begin(f"compiling kernel {self.kernels}: {kind}")

    def end(self, start: float) -> None:
        """Work of this kind, begun at `start`, has ended."""
        self.what, self.last = "", now()
        self._times.append((start, self.last))

    def seconds(self, start: float) -> float:
        """How much of the time from `start` on there was a thread that did so; what has not ended is left out."""
        total, last = 0.0, start
        for begun, ended in sorted(self._times):
            if ended > last:
                total += ended - max(begun, last)
                last = ended
        return total


counters = Counters()
compiling = Compiling()
listeners: set[Callable[[Record], None]] = set()
by_steps: set[Callable[[Record], None]] = set()  # those of them for whom loops go statement by statement
beside = _Beside()
_asides: deque[tuple[float, float, str]] = deque(maxlen=10_000)  # start, end and what, of all threads


@contextmanager
def aside(what: str) -> Iterator[None]:
    """Work of this thread that belongs to no step; inner ones count with the outermost."""
    start, before = now(), beside.seconds
    if what == "compile" and not compiling.what:
        compiling.begin("loading modules")
    try:
        yield
    finally:
        end = now()
        beside.seconds = before + end - start
        if what == "compile":
            compiling.end(start)
        if listeners:
            _asides.append((start, end, what))


def asides() -> list[tuple[float, float, str]]:
    """What was done aside since the last call, one after the other: what lies in an earlier one is left out."""
    found: list[tuple[float, float, str]] = []
    last = 0.0
    for start, end, what in sorted(_asides.popleft() for _ in range(len(_asides))):
        if end > last:
            found.append((max(start, last), end, what))
            last = end
    return found


class _Listening(ref):
    """Collects the records of a thread.

    A weak reference to the token of a trace: its callback takes it off the lists when that is over.
    """

    records: list[Record]
    thread: int
    __eq__, __hash__ = object.__eq__, object.__hash__  # which those of dead references have not

    def __call__(self, record: Record) -> None:  # type: ignore[override]
        if get_ident() == self.thread:
            self.records.append(record)


class _Collections(ref):
    """For gc.callbacks: long searches for garbage are asides. The records of a trace bring some about."""

    under_way: Any = None

    def __call__(self, phase: str, info: dict[str, int]) -> None:  # type: ignore[override]
        if phase == "start" and info["generation"] == 2:
            self.under_way = aside("collect")
            self.under_way.__enter__()
        elif self.under_way is not None:
            under_way, self.under_way = self.under_way, None
            under_way.__exit__(None, None, None)


class Records(list[Record]):
    """The list of records that a trace collects.

    Its repr is a table, one row for each statement.
    """

    table: Callable[["Records"], str] = list.__repr__  # the package has a better one, which stands above this file

    def __repr__(self) -> str:
        return Records.table(self) if self else "no records"


class Trace(Mode):
    """The `with` statement of `gb.trace`."""

    def __init__(self, rounds: bool):
        self._rounds = rounds

    def __enter__(self) -> Records:
        records = Records()
        until, lists = self.until_over(), [listeners] if self._rounds else [listeners, by_steps]
        if not listeners:
            _asides.clear()
        for found in lists:
            listening = _Listening(until(), found.discard)
            listening.records, listening.thread = records, get_ident()
            found.add(listening)
        gc.callbacks.append(_Collections(until(), gc.callbacks.remove))
        return records


def trace(*, rounds: bool = False) -> Trace:
    """Collect the records of this thread's statements: `with gb.trace() as records: ...`.

    `print(records)` shows a table of the statements: how often each ran, its time, its edges, the bytes between
    devices.

    Parameters
    ----------
    rounds : bool
        Whether loops run as they do without a trace, and a round on the device is one record. By default loops run
        statement by statement, which takes longer, and each statement has records.

    Returns
    -------
    Trace
        To be used in a `with` statement, which gives the list `Records`.

    Raises
    ------
    TypeError
        If `rounds` is not True or False.
    """
    if not isinstance(rounds, bool):
        raise TypeError(f"expected rounds=True or False; came {rounds!r}")
    return Trace(rounds)


def emit(record: Record) -> None:
    """Hand a record to every listener."""
    for listener in tuple(listeners):
        listener(record)


def now() -> float:
    """The clock of all records."""
    return perf_counter()
