"""What a step does on each device, while somebody traces."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..distribute.partition import Task
from ..trace import Record, counters, emit, now


class Watched:
    """One step under way: counts on the devices, spans of time, bytes that arrived."""

    __slots__ = ("before", "start", "stats", "moved", "sent", "spans")

    def __init__(self, devices: Sequence[Any]):
        self.before = counters.launches, counters.host_reads
        self.stats = [device.zeros(4, np.int64) for device in devices]
        self.moved, self.sent = [0] * len(devices), [[] for _ in devices]  # type: tuple[list[int], list[list[Any]]]
        self.spans: list[tuple[float, float] | None] = [None] * len(devices)
        self.start = now()

    def timed(self, work: Callable[[Task], Any]) -> Callable[[Task], Any]:
        def timed(task: Task) -> Any:
            start, before = now(), self.spans[task.device]
            result = work(task)
            self.spans[task.device] = before[0] if before else start, now()
            return result

        return timed

    def record(
        self, devices: Sequence[Any], title: object, step: Any, direction: str | None, counts: list[Any] | None
    ) -> None:
        """A record for each device; the launches and host reads of all are with the first."""
        launches, reads = counters.launches - self.before[0], counters.host_reads - self.before[1]
        whole, text = (self.start, now()), repr(title)
        for b, device in enumerate(devices):
            record = Record(counters.statements, text, step.kind, device.name, direction, step.into.form)
            record.moved, (record.start, record.end) = self.moved[b], self.spans[b] or whole
            if b == 0:
                record.launches, record.host_reads = launches, reads
            record.keep(device.get, self.stats[b], None if counts is None else counts[b], self.sent[b])
            emit(record)
