"""What a step does on each device, while somebody traces."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..device.base import Device
from ..distribute.rowmap import Task
from ..trace import Record, asides, beside, counters, emit, now
from .plan import Step


class Watched:
    """One step under way: counts on the devices, spans of time, bytes that arrived."""

    __slots__ = ("before", "beside", "start", "stats", "moved", "sent", "spans", "tallies", "decision")

    def __init__(self, devices: Sequence[Device]):
        self.before = counters.launches, counters.host_reads, counters.interpreted
        self.stats = [device.zeros(4, np.int64) for device in devices]
        self.moved, self.sent = [0] * len(devices), [[] for _ in devices]  # type: tuple[list[int], list[list[Any]]]
        self.spans: list[tuple[float, float] | None] = [None] * len(devices)
        self.tallies: list[Any] | None = None  # of the frontier of each block
        self.decision: Any = None  # who computed what, if that was a question, or what gives it later
        self.beside, self.start = beside.seconds, now()

    def timed(self, work: Callable[[Task], Any]) -> Callable[[Task], Any]:
        def timed(task: Task) -> Any:
            span, lost, start = self.spans[task.device], beside.seconds, now()
            result = work(task)
            self.spans[task.device] = (span[0] if span else start) + beside.seconds - lost, now()
            return result

        return timed

    def record(
        self, devices: Sequence[Device], title: object, step: Step, direction: str | None, counts: list[Any] | None
    ) -> None:
        """A record for each device. The launches, host reads and interpreted calls of all devices are with the first.
        Before them what was done aside."""
        after = counters.launches, counters.host_reads, counters.interpreted
        launches, reads, interpreted = (b - a for a, b in zip(self.before, after, strict=True))
        whole, text = (self.start + beside.seconds - self.beside, now()), repr(title)
        for start, end, what in asides():
            emit(Record(counters.statements, text, what, "host", start=start, end=end))
        first = True
        for b, device in enumerate(devices):
            if device.kind == "remote":
                continue
            record = Record(counters.statements, text, step.kind, device.name, direction, step.into.form)
            record.moved, (record.start, record.end) = self.moved[b], self.spans[b] or whole
            if first:
                record.launches, record.host_reads, record.interpreted = launches, reads, interpreted
                first = False
                record.decide(self.decision)
            if self.tallies is not None:
                record.tally = self.tallies[b]
            record.keep(device.get, self.stats[b], None if counts is None else counts[b], self.sent[b])
            emit(record)
