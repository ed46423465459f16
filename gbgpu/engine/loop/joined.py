"""Rounds of one loop in two kinds, whose products go in different directions, as one kernel of a GPU: it goes from one
kind to the other by counts that it has there."""

from collections.abc import Callable
from typing import Any

from ...kernels.resident import Unknown
from ..moving import moved
from .buffers import described, fetched
from .captured import Captured
from .cuda_tape import CudaTape
from .journal import Journal, NotCompiled


class Joined:
    """Two captured rounds that other loops may take. `run` starts with one of them; `ended` is the one in whose places
    things lie then."""

    def __init__(self, session: Any, first: Captured, second: Captured):
        self._session, self.both = session, (first, second)
        tapes, ways = [CudaTape(session) for _ in self.both], ((first, second), (second, first))
        for tape, (one, other) in zip(tapes, ways, strict=True):
            self._cross(tape, one, other)
        self._tape, self._tapes = tapes[0], [*tapes, first.tape, second.tape]
        try:
            rounds = [one.tape.round(self._tape.abort) for one in self.both]
            self._tape.will_stay(rounds, [tape.crossing() for tape in tapes])
        except Unknown as reason:
            raise NotCompiled(str(reason)) from reason
        kernels, fetched = self._tape.one, "".join(dict.fromkeys(each.tape.between for each in self.both))
        self._how = f"{kernels} for two kinds of rounds, {self._tape.meetings} barriers a round{fetched}"
        first.joined = second.joined = self

    @property
    def ended(self) -> Captured:
        return self.both[self._tape.kind]

    @property
    def state(self) -> Any:
        return self._tape.ended

    def ready(self) -> bool:
        return self._tape.ready(0.0)

    def begin(self, start: Captured, zeroed: bool = False) -> None:
        """Make counters zero, but those of the round that it starts with, whose tape has begun."""
        for tape in self._tapes:
            if tape is not start.tape:
                tape.clear(zeroed)

    def zero(self, start: Captured) -> None:
        """Give the device what does so."""
        for tape in self._tapes:
            if tape is not start.tape:
                tape.zero(state=False)

    def run(self, start: Captured, rounds: int, due: Callable[[float], bool]) -> str:
        self._tape.run(self.both.index(start), rounds, due)
        return self._how

    def _cross(self, tape: CudaTape, one: Captured, other: Captured) -> None:
        """Write down what brings all from the places of one round to those of the other."""
        journal, device = Journal({}), self._session.devices[0]
        places = other.held()
        with tape.recording(journal, False):
            for number, place in one.held().items():
                to = places.get(number)
                if to is None or (place is None) != (to is None):
                    raise NotCompiled("the other kind of rounds starts from something else")
                for target, source in self._brought(place, to):
                    device.copy(target, source)
            device.copy(other.tape.state, one.tape.state)

    def _brought(self, place: Any, to: Any) -> list[tuple[Any, Any]]:
        """Pairs of what is left to be copied once all else is."""
        if isinstance(place, tuple):
            return [(to[0], place[0])]
        if place.blocks == to.blocks:
            return []
        if {place.form, to.form} == {"list", "bitmap"}:
            place = moved(self._session, place, to.form, to.map)
        if described(place) != described(to):
            raise NotCompiled("a vector has another form in the other kind of rounds")
        return fetched(self._session.devices, to.blocks, place.blocks, to)
