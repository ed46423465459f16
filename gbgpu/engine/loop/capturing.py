"""What captures a round of a loop that runs: in the directions that its statements took, for any number of entries.

It is planned so (`Session.counts_unknown`) and captured from the forms that things have, if these stay. Else rounds are
planned so until the forms at the end of one are those at its beginning.
"""

from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property
from time import perf_counter
from typing import Any

from ... import settings
from ...errors import in_room
from ...interrupts import held as uninterrupted
from ...interrupts import imported
from ...language.expr import Statement
from ...language.recording import Operation
from ...modes import Changed
from ...trace import beside
from ..moving import moved
from .body import direction_of, round_of
from .captured import Captured
from .journal import Invalidated, NotCompiled, OtherEmpty, OtherForm
from .limits import as_it_lies, vector_of
from .predicted import Predicted
from .signature import Signature
from .single_device import SingleDevice
from .tapes import threads
from .ways import Way, among, directed

# Rounds planned for any counts after which forms are those before one; parts that a guard runs now and then leave
# others.
FORMS = 4


class Capturing:
    """One run of a loop of these statements, which read these matrices."""

    def __init__(self, session: Any, loop: Any, statements: list[Statement], matrices: list[Any]):
        self.session, self.loop, self.device = session, loop, session.devices[0]
        self.statements, self.matrices = statements, matrices
        self.outputs = list({id(each.output): each.output for each in statements}.values())
        self.predicted = Predicted(session, loop, self.outputs)
        self._signed: tuple[int, Signature] | None = None  # by how many turns of the lock it was made
        self.turned: Way | None = None  # how a captured round went, if its pulls should be pushes
        self.empties: dict[int, Any] = {}  # what scalars count as that a round leaves without a value, by their ids
        self.thinned = False  # whether frontiers that had been wide are not any more
        self.graphs = self.device.captures == "graph"  # rounds, rather than calls of kernels
        many = self.graphs and not session.maps.alone
        self.gpus = len({device.gpu for device in session.devices}) if many else 1
        self.sharing = None if session.maps.alone else session.sharing
        self.single = SingleDevice(session, loop) if self.gpus > 1 and session.folds else None

    @property
    def signature(self) -> Signature:
        """Made anew once other threads had the session: they may have given scalars other values."""
        turns = self.session.lock.turns
        if self._signed is None or self._signed[0] != turns:
            found = Signature.of(self.loop)
            found.key = self.session.loops.same(found.key)
            self._signed = turns, found
        return self._signed[1]

    @property
    def _read(self) -> list[Any]:
        """The content of the matrices, as it lies outside of `single`."""
        return [x._store if self.single is None else self.single.outside(x) for x in self.matrices]

    @cached_property
    def _refused(self) -> tuple[str, int | None] | None:
        return self.session.loops.refused(self.signature.key)

    def _refuse(self, reason: str, number: int | None = None) -> None:
        self.session.loops.refuse(self.signature.key, (reason, number))
        self._say(reason, number)

    def _say(self, reason: str, number: int | None = None) -> None:
        where = "" if number is None else f": {self.statements[number]!r}"
        self.loop._how = f"statements, as {reason}{where}"

    @property
    def _often(self) -> bool:
        """Whether such loops left a round again and again, as it was too wide, which this one still is."""
        return not self.thinned and self.session.loops.outgrown(self.signature.key, self._read)

    @property
    def _at_once(self) -> bool:
        """Whether what it needs is captured after one round: on GPUs, where later loops can take it."""
        return self.graphs and self.signature.key is not None

    @property
    def _steady(self) -> bool:
        """Whether statements would choose nothing, and several threads go through a round as well: sums of whole rows
        of full vectors, and no other product."""
        if self.graphs or threads(self.session) == 1:
            return False
        return all(self.predicted.whole(statement) for statement in self.statements if statement.expr.kind == "product")

    def _other(self, way: Way) -> Captured | None:
        """A captured round of the same loop in other directions, which one kernel may have with this one's."""
        if not self.graphs or settings.resident == "never":
            return None
        return self.session.loops.other(self.signature, way, self.session.maps.alone)

    def _settled(self) -> dict[int, Statement] | None:
        """Rounds that are planned for any counts, until forms are those before one: its statements, by those of the
        loop. None if they never are, or the loop is over."""
        with self.session.lock:
            pinned, self.turned = self._pinned(), None
        for _ in range(FORMS):
            with self.session.lock:
                self.session.check()
                forms = self._forms()
                with self._counts_unknown():
                    self._round(self.loop.body, pinned)
                self.loop._rounds += 1
                settled = forms == self._forms()
            self.loop.tell()
            if self.loop.over:
                return None
            if settled:
                return pinned
        self._refuse("its vectors change their forms in each round")
        return None

    def _pinned(self) -> dict[int, Statement]:
        """Statements in the directions that they took; those that pull from thin frontiers push them instead."""
        took = {id(each): direction_of(each) for each in self.statements}
        if self.turned is not None:
            took.update(zip(map(id, among(round_of(self.loop)[0])), self.turned[1], strict=True))
            for statement in self.statements:
                x = vector_of(statement.expr)
                turns = took[id(statement)] == "pull" and x is not None and x._store.form == "bitmap"
                if turns and self._may_push(statement.expr):
                    took[id(statement)] = "push"
        return {id(each): directed(each, took[id(each)]) for each in self.statements}

    def _may_push(self, expr: Any) -> bool:
        """Whether the matrix of a product lies by the rows that a push takes, or has room for that."""
        lazy: bool = (expr.right if expr.left.ndim == 1 else expr.left).lazy
        return lazy or in_room(lambda: as_it_lies(self.session, expr, "push")) is not None

    def _round(self, operations: list[Operation], pinned: dict[int, Statement]) -> None:
        """A round by statements that are planned for any counts."""
        for operation in operations:
            if operation.kind == "statement":
                self.session.run(pinned[id(operation.what)])
            elif operation.kind != "when":
                operation.run()
            elif operation.what.truth():
                self._round(operation.what.operations, pinned)

    def _forms(self) -> list[Any]:
        """What plans depend on, of all that is written."""
        return [_form(output) for output in self.outputs]

    def _timed(self, pinned: dict[int, Statement], way: Way) -> Captured:
        """A captured round, which knows how long that took."""
        start, compiled = perf_counter(), beside.seconds
        captured = uninterrupted(lambda: self._captured(pinned, way))  # what signal handlers do is no part of the round
        took = perf_counter() - start
        captured.took = took - (beside.seconds - compiled)
        return captured

    def _other_kind(self, captured: Captured, others: dict[int, Statement], way: Way) -> Captured | None:
        """The round in the other directions, as one kernel with this one, where handles have what both start from; None
        if it can't be captured, and this one is bound."""
        captured.give()
        with suppress(NotCompiled):
            other = self._timed(others, way)
            other.give()
            return other
        captured.bind(self.loop, self.signature)
        return None

    def _captured(self, pinned: dict[int, Statement], way: Way, tries: int = FORMS) -> Captured:
        """A round that is written down, from the forms that things have after one."""
        try:
            with self._counts_unknown(), self._writing(), self._dealing():
                other = self._other(way)
                seconds = self.predicted.seconds()
                how = pinned, self.signature, way, seconds, other, self._often, self.empties
                captured = Captured(self.session, self.loop, *how)
                if other is not None and captured.key:
                    with suppress(NotCompiled):
                        imported("gbgpu.engine.loop.joined").Joined(self.session, other, captured)
                return captured
        except Invalidated:
            if tries < FORMS:
                raise
        except OtherEmpty as unlike:
            if tries == 1 or not unlike.sure:
                raise
            self.empties[id(unlike.handle)] = unlike.empty
        except OtherForm as other:
            if tries == 1 or not all(_turns(x._store, form, iso) for x, form, iso in other.unlike):
                raise
            for x, form, iso in other.unlike:
                x._store = moved(self.session, x._store, form, x._store.map, iso)
        return self._captured(pinned, way, tries - 1)

    def _counts_unknown(self) -> Changed:
        # owners compute what any number takes
        values = {"counts_unknown": True} if self._steady else {"counts_unknown": True, "assigner": None}
        return Changed(self.session.changes, self.session, **values)

    def _writing(self) -> Changed:
        return Changed(self.session.changes, self.session, writing=True)

    def _dealing(self) -> AbstractContextManager[None]:
        return nullcontext() if self.sharing is None else self.sharing.dealing(self.signature.key, self._read)


def _turns(store: Any, form: str, iso: bool) -> bool:
    """Whether a store is brought to a form in which there is room for what it has."""
    return {store.form, form} == {"list", "bitmap"} or store.form == form == "bitmap" and not iso


def _form(handle: Any) -> Any:
    store = handle._store
    if handle.ndim == 0:
        return store is None
    return None if store is None else (store.form, store.iso, store.map)
