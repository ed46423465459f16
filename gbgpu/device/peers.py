"""What several GPUs of one process read of each other: in which order, and by which way.

Each GPU does its work in the order of its own stream. A reader, or who writes there, waits for all that the owner was
given before the step began, and the owner goes on, to read, to write or to free it, after that one. In a step the tasks
of all devices are given out before any owner waits, so that they run at the same time. All waiting is done by the GPUs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import settings
from .cuda import CUDARuntimeError, cupy


class Peers:
    """GPUs that read each other's memory."""

    def __init__(self, gpus: Sequence[int]):
        self.gpus = gpus
        self._direct = {(a, b) for a in gpus for b in gpus if a != b and _access(a, b)}
        self._inside = False  # a step
        self._written = False  # what is given is not done now
        self._begun: dict[int, Any] = {}  # what each GPU was given before it, while it runs
        self._waited: set[tuple[int, int]] = set()
        self._read: dict[int, set[int]] = {}  # who reads what an owner has
        self._held: list[Any] = []
        self._contexts = {gpu: cupy.cuda.Device(gpu) for gpu in gpus}
        # Of each, one that begins a step and one that ends it: to make events takes longer than to record them, and who
        # waits does so for what was recorded by then.
        self._events: dict[tuple[int, str], Any] = {}

    @property
    def direct(self) -> bool:
        """Whether each GPU reads the memory of all others."""
        return not settings.staged and len(self._direct) == len(self.gpus) * (len(self.gpus) - 1)

    @property
    def late(self) -> bool:
        """Whether what is read may be read later, until the end of the step."""
        return self._inside and not self._written and self.direct

    @contextmanager
    def written_down(self, on: bool) -> Iterator[None]:
        """Nobody waits for what is written down inside: who does it later knows when."""
        before, self._written = self._written, on
        try:
            yield
        finally:
            self._written = before

    @contextmanager
    def step(self) -> Iterator[None]:
        """Tasks of all devices are given out inside."""
        if self._inside or self._written:
            yield
            return
        self._inside = True
        try:
            yield
        finally:
            self._inside = False
            try:
                done = {reader: self._mark(reader, "end") for reader in set().union(*self._read.values())}
                for owner, readers in self._read.items():
                    self._wait(owner, *(done[reader] for reader in readers))
            finally:
                for kept in (self._begun, self._waited, self._read, self._held):
                    kept.clear()

    @contextmanager
    def reading(self, reader: int, buffer: Any) -> Iterator[Any]:
        """What GPU `reader`, which is the current one, may read in place of an array of another one: the array itself,
        or a copy of it where there is no way between them but through the host."""
        owner = buffer.device.id
        if self._written:
            yield buffer
            return
        if settings.staged or (reader, owner) not in self._direct:
            with cupy.cuda.Device(owner):
                host = buffer.get()
            yield cupy.asarray(host)
            return
        if not self._inside:
            self._wait(reader, self._mark(owner, "begin"))
            yield buffer
            self._wait(owner, self._mark(reader, "end"))
            return
        self.reach(reader, buffer)
        yield buffer

    def reach(self, reader: int, buffer: Any) -> None:
        """GPU `reader` may read an array of another one, or write there, with what it is given in this step; `late`."""
        owner = buffer.device.id
        self._held.append(buffer)
        if not self._begun:
            self._begun = {gpu: self._mark(gpu, "begin") for gpu in self.gpus}
        if (reader, owner) not in self._waited:
            self._waited.add((reader, owner))
            self._wait(reader, self._begun[owner])
            self._read.setdefault(owner, set()).add(reader)

    def _mark(self, gpu: int, at: str) -> Any:
        """An event after all that a GPU was given until now."""
        with self._contexts[gpu]:
            event = self._events.get((gpu, at))
            if event is None:
                event = self._events[gpu, at] = cupy.cuda.Event(disable_timing=True)
            return cupy.cuda.get_current_stream().record(event)

    def _wait(self, gpu: int, *events: Any) -> None:
        """What follows on a GPU begins after the events."""
        with self._contexts[gpu]:
            stream = cupy.cuda.get_current_stream()
            for event in events:
                stream.wait_event(event)


def _access(reader: int, owner: int) -> bool:
    """Whether a GPU reads another one's memory directly; from now on it does."""
    runtime = cupy.cuda.runtime
    if not runtime.deviceCanAccessPeer(reader, owner):
        return False
    with cupy.cuda.Device(reader):
        try:
            runtime.deviceEnablePeerAccess(owner)
        except CUDARuntimeError as error:
            return "AlreadyEnabled" in str(error)
    return True
