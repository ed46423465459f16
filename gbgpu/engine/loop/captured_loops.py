"""Captured rounds that later loops of the same statements take: they fill in what they start from, and go."""

from collections import OrderedDict
from collections.abc import Hashable
from itertools import chain
from typing import Any
from weakref import ref

from ...trace import counters
from .buffers import EITHER, EXACTLY, THINNER

# Loops that a session keeps, and captured rounds of one, of all devices and of the first alone: from other forms, in
# other directions.
MOST, ALIKE = 8, 3
SEEN = 256  # loops whose rounds are counted


class CapturedLoops:
    """What a session keeps of its loops, by what they are made of."""

    def __init__(self) -> None:
        self._captured: OrderedDict[Hashable, list[Any]] = OrderedDict()
        self.era = object()  # until all are dropped: what is captured later uses other workspaces
        self._rounds: OrderedDict[Hashable, int] = OrderedDict()
        self._refused: OrderedDict[Hashable, tuple[int, int, tuple[str, int | None]]] = OrderedDict()
        self._known: OrderedDict[Hashable, int] = OrderedDict()
        self._ended: OrderedDict[Hashable, tuple[int, bool, list[Any]]] = OrderedDict()
        self._keys: OrderedDict[Hashable, Hashable] = OrderedDict()
        self._outgrown: OrderedDict[Hashable, list[list[Any]]] = OrderedDict()  # the last that were told of

    def __bool__(self) -> bool:
        return bool(self._captured)

    def same(self, key: Hashable) -> Hashable:
        """The object that an equal key was before: it is found here without a comparison."""
        return _kept(self._keys, key, self._keys.get(key, key))

    def has(self, key: Hashable, guards: tuple[bool, ...] | None = None) -> bool:
        """Whether there is one; `guards`: of this beginning."""
        alike = self._captured.get(key, ())
        return bool(alike) if guards is None else any(one.way[0] == guards for one in alike)

    def alone(self, signature: Any, often: bool) -> bool:
        """Whether there is one of the same matrices on the first of several GPUs; `often`: which takes wide
        frontiers."""
        alike = (one for one in self._captured.get(signature.key, ()) if one.alone and (one.often or not often))
        return any(one.replicates(signature) for one in alike)

    def goes(self, key: Hashable, way: Any, alone: bool) -> bool:
        """Whether a round is kept that goes this way, or as many others as there may be. `alone`: as `other` has it."""
        alike = [captured for captured in self._captured.get(key, ()) if captured.alone is alone]
        return len(alike) >= ALIKE or any(captured.way == way for captured in alike)

    def clear(self) -> None:
        self.era = object()
        self._captured = OrderedDict()  # what goes with the old one may ask here to be forgotten

    def keeps(self, captured: Any) -> bool:
        return captured in self._captured.get(captured.key, ())

    def add(self, captured: Any) -> None:
        counters.captured += 1
        self._refused.pop(captured.key, None)
        alike = self._captured.setdefault(captured.key, [])
        alike.append(captured)
        self._captured.move_to_end(captured.key)
        for old in [one for one in alike if one.alone is captured.alone][:-ALIKE]:
            alike.remove(old)
        while len(self._captured) > 1 and (len(self._captured) > MOST or self._bytes() > captured.room):
            self._captured.popitem(last=False)

    def _bytes(self) -> int:
        return sum(captured.bytes for alike in self._captured.values() for captured in alike)

    def recall(self, handles: list[Any]) -> None:
        """Whatever these have of a kept round becomes their own."""
        ids = {id(handle._store) for handle in handles}
        for captured in [*chain(*self._captured.values())]:  # copies may make room, by what is kept
            captured.loans.recall(ids)

    def forget(self, captured: Any) -> None:
        for alike in self._captured.values():
            if captured in alike:
                alike.remove(captured)

    def abandon(self, key: Hashable, loop: Any) -> None:
        """A loop that is over leaves the rounds that it is still at, as it was broken off."""
        for captured in [*self._captured.get(key, ())]:
            if captured.loop is loop:
                captured.give()

    def other(self, signature: Any, way: Any, alone: bool) -> Any:
        """A captured round of the same matrices that goes in other directions, with the same guards, and is not at
        work; or None. `alone`: of the first of several GPUs."""
        for captured in self._captured.get(signature.key, ()):
            (holds, directions), free = captured.way, captured.loop is None and captured.alone is alone
            if holds == way[0] and directions != way[1] and free and captured.reads(signature):
                return captured
        return None

    def find(self, rounds: int, signature: Any, way: Any, often: bool) -> Any:
        """A captured round that a loop may take after so many, or None: one that goes as the last one went, as far as
        that is known. (Where nothing guards it, a first round goes by the forms that things have, or by lists in place
        of bitmaps.) `often`: one that takes wide frontiers if there is one, else another one."""
        alike = [one for one in self._captured.get(signature.key, ()) if one.way[0] == way[0]]
        alike = sorted(alike, key=lambda one: not one.often) if often else [one for one in alike if not one.often]
        if rounds:
            alike = [one for one in alike if all(map(_follows, way[1], one.way[1]))]
        for turns in (EXACTLY, EITHER if rounds or way[0] else THINNER):
            for captured in alike:
                if captured.fits(signature, turns):
                    return captured
        return None

    def count(self, key: Hashable) -> int:
        """One more round by statements; returns how many such loops have gone."""
        return _counted(self._rounds, key)

    def ended(self, key: Hashable, rounds: int, matrices: list[Any], folded: bool = False) -> None:
        """A loop is over, after so many rounds. `matrices`: what it has read; `folded`: it was left to the first of
        several GPUs."""
        _kept(self._ended, key, (rounds, folded, _weak(matrices)))

    def last(self, key: Hashable, matrices: list[Any]) -> int | None:
        """The rounds that the last such loop took, if it read the same matrices."""
        rounds, _, read = self._ended.get(key, (None, False, []))
        return rounds if _strong(read) == matrices else None

    def folded(self, key: Hashable, matrices: list[Any]) -> bool:
        """Whether the last such loop was left to the first of several GPUs, if it read the same matrices."""
        _, folded, read = self._ended.get(key, (0, False, []))
        return folded and _strong(read) == matrices

    def outgrow(self, captured: Any, matrices: list[Any]) -> None:
        """A loop has left this round for statements, and come back, again and again: others with these matrices take
        wider frontiers."""
        for one in (captured,) if captured.joined is None else captured.joined.both:
            self.forget(one)
        others = [read for read in self._outgrown.get(captured.key, []) if _strong(read) != matrices]
        _kept(self._outgrown, captured.key, [*others[1 - ALIKE :], _weak(matrices)])

    def outgrown(self, key: Hashable, matrices: list[Any]) -> bool:
        """Whether rounds of such a loop, with these matrices, are to take wide frontiers."""
        return any(_strong(read) == matrices for read in self._outgrown.get(key, ()))

    def new(self, key: Hashable) -> bool:
        """Whether no loop of these statements was asked about."""
        return _counted(self._known, key) == 1

    def refuse(self, key: Hashable, reason: tuple[str, int | None]) -> None:
        """A loop could not be captured: why, and the number of the statement. After several of them two do not try,
        after the next one four, eight, ..."""
        times = self._refused.get(key, (0, 0, reason))[0] + 1
        _kept(self._refused, key, (times, 1 << times - ALIKE + 1 if times >= ALIKE else 0, reason))

    def refused(self, key: Hashable) -> tuple[str, int | None] | None:
        """Why such a loop, one more, is not to be captured; None if it may."""
        times, left, reason = self._refused.get(key, (0, 0, ("", None)))
        if key is None or not left or self.has(key):
            return None
        self._refused[key] = times, left - 1, reason
        return reason


def _follows(direction: str | None, other: str | None) -> bool:
    """Whether a statement goes in the other direction, as far as that is known."""
    return direction in (None, other)


def _weak(matrices: list[Any]) -> list[Any]:
    return [matrix and ref(matrix) for matrix in matrices]


def _strong(refs: list[Any]) -> list[Any]:
    return [one and one() for one in refs]


def _counted(counts: OrderedDict[Hashable, int], key: Hashable) -> int:
    """One more of a key, among the last ones."""
    found: int = _kept(counts, key, counts.get(key, 0) + 1)
    return found


def _kept(known: OrderedDict[Hashable, Any], key: Hashable, value: Any) -> Any:
    known[key] = value
    known.move_to_end(key)
    if len(known) > SEEN:
        known.popitem(last=False)
    return value
