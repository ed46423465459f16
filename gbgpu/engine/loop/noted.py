"""What rounds that devices go by themselves leave behind for whoever traces: when each ended, how many entries its
condition counted, and the number that it compared."""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from ...device.base import address
from ...trace import Record, counters, emit, now

NOTED = 1 << 16  # rounds of which a GPU keeps notes, the last ones
WORDS = 4  # of a note: nanoseconds of the GPU's clock, the address that tells the kind of the round, entries, change


class Note(NamedTuple):
    """A round that is over. NaN: not known."""

    end: float
    way: str
    entries: float = nan
    change: float = nan


class Noted:
    """The rounds of one run of a loop, from now on. `ways`: for each kind of rounds, what counts them, and the
    directions of their products. GPUs write into `words`, others are asked after each round."""

    def __init__(self, session: Any, loop: Any, ways: Sequence[tuple[Any, Sequence[str | None]]]):
        self._loop, self._device = loop, session.devices[0]
        self._ways = {address(state): _way(directions) for state, directions in ways}
        self._devices = session.devices[:1] if session.maps.alone else session.devices
        self.words = self._device.empty(WORDS * NOTED, np.int64) if self._device.kind == "cuda" else None
        self.notes: list[Note] = []
        self._first, self._start = loop.rounds, now()

    def add(self, state: Any, seen: np.ndarray) -> None:
        """A round has ended now."""
        self.notes.append(Note(now(), self._ways[address(state)], *seen.tolist()))

    def tell(self) -> None:
        """Records of the rounds since the last call, one for each device, which are over."""
        last, loop = self._loop.rounds, self._loop
        notes = self.notes if self.words is None else self._read(last)
        start, text = self._start, f"{loop!r}: {loop.how}"
        for number, note in enumerate(notes, last - len(notes)):
            counters.statements += 1
            for device in self._devices:
                record = Record(counters.statements, text, f"{note.way} round".strip(), device.name, note.way or None)
                record.start, record.end, record.round = start, max(note.end, start), number
                if device is self._device:  # what is of all devices
                    record.keep(None, None, None if isnan(note.entries) else int(note.entries), ())
                    record.change = None if isnan(note.change) else note.change
                emit(record)
            start = max(note.end, start)
        self.notes, self._first, self._start = [], last, now()

    def _read(self, last: int) -> Sequence[Note]:
        """What a GPU has left; the last round ended now, by the host's clock."""
        words, end = self._device.get(self.words).reshape(NOTED, WORDS), now()
        final = int(words[(last - 1) % NOTED, 0])
        numbers = np.arange(max(self._first, last - NOTED), last) % NOTED
        ends, ways = end + (words[numbers, 0] - final) * 1e-9, words[numbers, 1].tolist()
        seen = words.view(np.float64)[numbers, 2:].tolist()
        return [Note(at, self._ways[way], *two) for at, way, two in zip(ends.tolist(), ways, seen, strict=True)]


def _way(directions: Sequence[str | None]) -> str:
    """The direction of all products of a round, if it is one."""
    found = {direction for direction in directions if direction}
    return found.pop() if len(found) == 1 else ""
