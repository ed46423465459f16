"""One round of a loop as it is captured: what runs it again and again, for one loop after another."""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any
from weakref import ref

import numpy as np

from ...distribute.blocks import VectorStore
from ...errors import OutOfMemory
from ...interrupts import held as uninterrupted
from ...language.expr import Statement
from ...trace import listeners
from ..dealing import ALONE, APART, DEALT, Ran
from ..moving import moved
from .body import content, drained, read_only, round_of, unchanged
from .buffers import (
    EITHER,
    alike,
    at_once,
    blocks_of,
    copy_of,
    described,
    emptied,
    fetched,
    most_rows,
    put_back,
    spread,
    with_same,
    words_of,
)
from .journal import Invalidated, NotCompiled
from .limits import products, too_wide
from .loans import Loans
from .noted import Noted
from .signature import Signature
from .writing import Written

FRONTIERS = {"push": "list", "pull": "bitmap"}  # their forms, by the direction of what multiplies them
SHARE = 1 / 16  # of the memory that what is kept of a loop may take


class Captured(Written):
    """The captured round. Where the loop's signature has a key, and its vectors are small beside the memory, others may
    take the round afterwards: `fits`, `bind`, `run`. `way`: its guards and directions. It shares the places of `like`,
    a round of the same loop in other directions."""

    def __init__(
        self,
        session: Any,
        loop: Any,
        pinned: dict[int, Statement],
        signature: Signature,
        way: Any,
        seconds: float = 0.0,
        like: "Captured | None" = None,
        often: bool = False,
        empties: dict[int, Any] | None = None,
    ):
        super().__init__(session, loop, pinned, seconds, often, empties or {})
        # whether on the first of several GPUs; see CapturedLoops
        self.alone, self.era = session.maps.alone, session.loops.era
        self.way = way
        self.joined: Any = None  # with a round of the other kind, as one kernel
        self.left = 0  # why it ended before the loop did, as condition.py has it
        self.took = 0.0  # seconds that it took to capture it, but for what was compiled
        self.ran: Ran | None = None  # what the last launch did
        self.read: list[Any] = []  # handles that the round reads and leaves alone
        places = {} if like is None else like.held()
        self.loans: Loans = Loans(session) if like is None else like.loans
        self.loans.recall()

        def shared(handle: Any, store: Any) -> Any:
            return self._shared(places.get(signature.number(handle)), store) if places else store

        session.loops.recall(self.carried)  # what is lent to them is no place of theirs
        self.bytes = 16 * most_rows(session, signature.handles)  # that vectors take on a GPU
        self.key = signature.key if not loop.has_callback and self.bytes < self.device.total * SHARE else None
        changed = {id(x) for x in (*self.carried, *self.inside)}
        read = [x for x in signature.handles if x.ndim < 2 and id(x) not in changed]
        before = [(x, x._store) for x in read] if self.key else []
        try:
            for x, store in before:  # the round reads copies, which others can fill
                x._store = shared(x, copy_of(self.devices, store))
            self.inputs = [x._store for x, _ in before]
            self.places = [self._place(handle) for handle in self.carried]
            for handle, place in zip(self.carried, self.places, strict=True):
                handle._store = shared(handle, place)
            self.places = [handle._store for handle in self.carried]
            self.blocks = [blocks_of(place) for place in self.places]
            self._write_down()
        except NotCompiled:
            raise
        except (MemoryError, OutOfMemory) as error:
            raise NotCompiled("memory is short") from error
        except Exception as error:  # what CUDA does not let a stream do that is captured
            if self.device.kind == "cpu":
                raise
            raise Invalidated(f"capturing failed: {type(error).__name__}: {error}") from error
        finally:
            for x, store in before:
                x._store = store
        self.tape.finish()
        # what is written down of handles that nothing here changes, but others may between two launches
        self._constants = [] if self.key else [(x, content(x)) for x in read_only(loop.body)]
        self._rested: list[tuple[Any, ...]] = []  # what carried handles got between two launches
        if self.key:
            self._keep(signature, [x for x, _ in before])

    # -- for other loops

    def _keep(self, signature: Signature, read: list[Any]) -> None:
        """Remember where the handles of another loop go."""
        self.read = read
        self._numbers = [list(map(signature.number, each)) for each in (self.carried, self.inside, read)]
        empty = drained(self.operations, {id(x) for x in (*self.carried, *self.inside)})
        self._drained = None if empty is None else signature.number(empty)
        me, loops = ref(self), self.session.loops

        def gone(_: Any) -> None:
            loops.forget(me())

        matrices = [x for x in signature.handles if x.ndim == 2]
        self._matrices = [(signature.number(x), x._store and ref(x._store, gone)) for x in matrices]
        self._products = {}
        for direction, form in FRONTIERS.items():
            found = products(self.session, self.pinned.values(), direction, form)
            self._products[direction] = [(op, signature.number(x), ref(held)) for op, x, held in found]
        self.session.loops.add(self)

    @property
    def room(self) -> float:
        """Bytes that all that is kept may take."""
        return self.device.total * 2 * SHARE

    def held(self) -> dict[int, Any]:
        """What the round starts from, by the numbers of the handles."""
        numbers = self._numbers[0] + self._numbers[2]
        return dict(zip(numbers, (*self.places, *self.inputs), strict=True))

    def _shared(self, other: Any, store: Any) -> Any:
        """What a place has in another one, if that is like it."""
        if not (isinstance(store, VectorStore) and isinstance(other, VectorStore)):
            return store
        if described(store) != described(other):
            return store
        for to, source in fetched(self.devices, other.blocks, store.blocks, store):
            self.device.copy(to, source)
        return with_same(store, other.blocks)

    def take(self, other: "Captured") -> None:
        """The loop that a joined round of the other kind ran, which ended here."""
        handles = dict(zip(sum(other._numbers, []), (*other.carried, *other.inside, *other.read), strict=True))
        self.loop = other.loop
        self.carried, self.inside, self.read = ([handles[i] for i in numbers] for numbers in self._numbers)
        put_back(self.carried, self.places, self.blocks)
        other.let_go()

    def let_go(self) -> None:
        self.loop, self.carried, self.inside, self.read = None, [], [], []
        self.tape.noted = None
        self.pinned, self.operations, self.guards = {}, [], []

    def reads(self, signature: Signature) -> bool:
        """Whether it reads the matrices of a loop with this key."""
        return all(mine is held for mine, held in self._pairs(signature))

    def replicates(self, signature: Signature) -> bool:
        """Whether it reads these, or their replicas."""
        pairs = self._pairs(signature)
        return all(mine is held or None not in (mine, held) and mine.replica is held for mine, held in pairs)

    def _pairs(self, signature: Signature) -> Iterator[tuple[Any, Any]]:
        """Each matrix of a loop with this key, and the one that this round reads in its place."""
        return ((signature.handles[number]._store, store and store()) for number, store in self._matrices)

    def fits(self, signature: Signature, turns: Any = EITHER, after: "Captured | None" = None) -> bool:
        """Whether a loop with this key has what the round starts from, and no other loop is at it, or at the one that
        it is joined with, but the one `after` which it is to come. `turns`: forms that things may have yet, and those
        that it starts from."""
        both = (self,) if self.joined is None else self.joined.both
        if any(one.loop is not None and one is not after for one in both):
            return False
        if self.alone is not self.session.maps.alone:
            return False
        handles, (carried, _, read) = signature.handles, self._numbers
        if not self.reads(signature):
            return False
        pairs = [*zip(carried, self.places, strict=True), *zip(read, self.inputs, strict=True)]
        return all(alike(handles[number], place, turns) for number, place in pairs)

    def products(self, signature: Signature, direction: str) -> Iterator[tuple[Any, Any, Any]]:
        """The products with frontiers that a loop with this key would begin with, as `limits.products` gives them."""
        for op, number, known in self._products[direction]:
            x, held = signature.handles[number], known()
            if x._store is not None and held is not None:
                yield op, x, held

    @property
    def pushed(self) -> Any:
        """The matrix that all pushes of lists read; None if there are others, or none."""
        held = {id(store): store for *_, known in self._products["push"] if (store := known()) is not None}
        return next(iter(held.values())) if len(held) == 1 else None

    def too_wide(self, signature: Signature) -> bool:
        """Whether a loop with this key would end it with its first round."""
        return too_wide(self.session, self.products(signature, "push"), self.breadth)

    def bind(self, loop: Any, signature: Signature) -> None:
        """The loop that runs next: its content goes where the round finds it."""
        uninterrupted(partial(self._bind, loop, signature))

    def _bind(self, loop: Any, signature: Signature) -> None:
        self.recall()
        into = self.starts(signature)
        self._hold(loop, signature)
        try:
            self._fill(into)
        except BaseException:
            self.let_go()
            raise
        put_back(self.carried, self.places, self.blocks)

    def recall(self) -> None:
        """What others have of the places becomes their own."""
        if self.loans:
            with at_once(self.devices):
                self.loans.recall()

    def _hold(self, loop: Any, signature: Signature) -> None:
        self.loop = loop
        self.carried, self.inside, self.read = ([signature.handles[i] for i in numbers] for numbers in self._numbers)

    def starts(self, signature: Signature) -> list[tuple[Any, Any, Any]]:
        """What a loop with this key starts from: (handle, its place, the blocks of that)."""
        handles, (carried, _, read) = signature.handles, self._numbers
        into = [*zip((handles[i] for i in carried), self.places, self.blocks, strict=True)]
        return into + [(handles[i], x, blocks_of(x)) for i, x in zip(read, self.inputs, strict=True)]

    def _fill(self, into: list[tuple]) -> None:
        with at_once(self.devices):
            self.fill(into)
            self._begin()

    def fill(self, into: list[tuple]) -> None:
        """What handles hold goes to their places. `into`: (handle, place, its blocks)."""
        for x, place, _ in into:
            if x._store is not None and x.ndim and x._store.form != place.form:
                x._store = moved(self.session, x._store, place.form, place.map)
        self._bring(into)

    def zero(self) -> None:
        """Give the device what a loop finds from its first round on, beside its content."""
        self.tape.zero()
        if self.joined is not None:
            self.joined.zero(self)
        for one in (self,) if self.joined is None else self.joined.both:
            for device, flag, *_ in one.flags:
                device.clear(flag)

    def go(self, loop: Any, signature: Signature) -> None:
        """A loop runs next whose content is in the places by what the device was given, and whose counters are zero."""
        self._hold(loop, signature)
        self._begin(zeroed=True)
        put_back(self.carried, self.places, self.blocks)

    def begin(self) -> None:
        """Make ready for the loop that it was captured for."""
        with at_once(self.devices):
            self._begin()

    def _begin(self, zeroed: bool = False) -> None:
        """Nothing has been counted yet, but for rounds."""
        joined = self._joined = self.joined if self.joined is not None and self.joined.ready() else None
        both, self.left, self.ran = (self,) if joined is None else joined.both, 0, None
        self._flagged = [flag for one in both for flag in one.flags]
        ways = [(one.tape.state, one.way[1]) for one in both]
        noted = Noted(self.session, self.loop, ways) if listeners else None
        waiting = {id(flag) for _, flag, *_ in self.session._watched}
        if any(id(flag) in waiting for _, flag, *_ in self._flagged):  # what the last run found wrong
            self.session.raise_watched(reading=True)
        self.tape.begin(self.loop.rounds, noted, zeroed)
        for device, flag, *_ in () if zeroed else self._flagged:
            device.clear(flag)
        if joined is not None:
            joined.begin(self, zeroed)

    def _bring(self, into: list[tuple]) -> None:
        """(handle, place, its blocks), in the same forms."""
        copies = []
        for x, place, blocks in into:
            if x._store is None and x.ndim == 0:
                self.device.copy(place[0], words_of(x))
            elif x._store is None:
                emptied(self.devices, blocks if place is not None else ())
            elif x.ndim and x._store.iso != place.iso:
                spread(self.devices, blocks, x._store)
            else:
                copies.append((x, place, blocks))
        for to, source in list(self._brought(copies)):
            self._near(to).copy(to, source)

    def _near(self, array: Any) -> Any:
        """The device of an array, or one of the same GPU."""
        if len(self.devices) == 1 or isinstance(array, np.ndarray):
            return self.device
        return next(device for device in self.devices if device.gpu == array.device.id)

    def give(self) -> None:
        """Handles get copies of what the round left, or are lent it, and are let go."""
        numbers = self._numbers[0] + self._numbers[1]
        try:
            with at_once(self.devices):
                for number, x in zip(numbers, (*self.carried, *self.inside), strict=True):
                    if number == self._drained and self.loop.converged:
                        x._store = None
                    elif not self.loans.lend(x):
                        x._store = copy_of(self.devices, x._store)
        except BaseException:
            for one in (self,) if self.joined is None else self.joined.both:
                self.session.loops.forget(one)  # what it has is theirs
            raise
        self.let_go()

    def _pass(self, heir: "Captured") -> None:
        """Let the handles go to a round that is bound to them; they get copies of what that does not write."""
        theirs = {id(x) for x in (*heir.carried, *heir.inside)}
        with at_once(self.devices):
            for x in (*self.carried, *self.inside):
                if id(x) not in theirs:
                    x._store = copy_of(self.devices, x._store)
        self.let_go()

    # -- running

    def run(self, heir: Callable[["Captured"], Any], due: Callable[[float], bool]) -> tuple["Captured", Any]:
        """Run to the end, to a frontier that is too wide, to a round that somebody is told of, or until others are due:
        `due(start)` says whether what began then is to stop. Handles hold what the last round left. Or another round
        goes on where this one ended: what `heir` finds and binds. Returns the round, of those that are joined, in which
        it ended, and what goes on."""
        loop, joined, start, done = self.loop, self._joined, perf_counter(), False
        try:
            self._leave()  # what others know of values and counts is old from now on: they wait, and are told
            if joined is not None:
                loop._how = joined.run(self, loop.rounds, due)
            else:
                self.tape.launch(loop.next_told, due)
                loop._how = self.tape.how
            done = True
        finally:
            ended, follows = uninterrupted(partial(self._stopped, start, heir if done else None))
        return ended, follows

    def _stopped(self, start: float, heir: Callable[["Captured"], Any] | None) -> tuple["Captured", Any]:
        """A launch, of which `start` is when, has ended or was broken off: as `run` returns."""
        loop, joined, noted, ended = self.loop, self._joined, self.tape.noted, self
        self.session._watched += self._flagged
        if joined is not None and joined.ended is not self:
            ended = joined.ended
            ended.take(self)
        before = loop.rounds
        loop._rounds, over, ended.left = ended.tape.ended if joined is None else joined.state
        loop._converged = bool(over)
        edges, waited = (0, 0) if joined is not None else ended.tape.edges
        way = ALONE if self.alone else DEALT if ended.tape.dealt else APART
        ended.ran = Ran(loop.rounds - before, perf_counter() - start, edges, waited, way, ended.took)
        ended._leave()
        follows, told = None, False
        try:
            if noted is not None:  # who listens may raise
                noted.tell()
            told = True
        finally:
            if self.key:
                follows = ended._end(heir if told else None)
            elif heir is not None and not (loop.over or self.left):
                self._rest()
        return ended, follows

    def _end(self, heir: Callable[["Captured"], Any] | None) -> Any:
        follows = None
        try:
            follows = heir and heir(self)
        finally:
            if follows is None:
                self.give()
            else:
                self._pass(follows)
        return follows

    def _rest(self) -> None:
        """The round goes on later: handles get copies of what other handles may share meanwhile (VectorBlock)."""
        with at_once(self.devices):
            for x in (*self.carried, *self.inside):
                if x.ndim == 0 or x._store is not None and (x._store.form == "list" or x._store.iso):
                    x._store = copy_of(self.devices, x._store)
        self._rested = list(map(content, self.carried))

    def goes_on(self) -> bool:
        """Whether the round may go on after a rest, from what its handles hold now; then it is ready to."""
        same = self.alone is self.session.maps.alone and self.era is self.session.loops.era
        same = same and all(unchanged(x, known) for x, known in self._constants)
        same = same and tuple(guard.holds for guard in round_of(self.loop)[1]) == self.way[0]
        if not (same and all(alike(x, place, EITHER) for x, place in zip(self.carried, self.places, strict=True))):
            return False
        uninterrupted(self._go_on)
        return True

    def _go_on(self) -> None:
        triples = zip(self.carried, self.places, self.blocks, strict=True)
        pairs = zip(triples, self._rested, strict=True)
        self._fill([each for each, known in pairs if not unchanged(each[0], known)])
        put_back(self.carried, self.places, self.blocks)

    def _leave(self) -> None:
        """Handles get buffers that no graph writes any more."""
        for handle in self.carried:
            if handle.ndim and handle._store.form != "full":
                handle._store.nvals = None
        for handle, store in zip(self.inside, self.kept[1], strict=True):
            handle._store = store
            if handle.ndim and store is not None and store.form != "full":
                store.nvals = None
        # unless others take the round, it is not launched again: its buffers are theirs
