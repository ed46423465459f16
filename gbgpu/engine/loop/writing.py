"""A round of a loop is written down: its statements once, on a tape that can be gone through again and again, and what
brings their results to where the next round finds them."""

from itertools import product
from math import inf
from typing import Any
from weakref import ref

import numpy as np

from ...device.base import address
from ...distribute.blocks import VectorStore
from ...interrupts import held as uninterrupted
from ...interrupts import imported
from ...kernels.interface import Deferred
from ...language.expr import Operand, Statement
from ...language.recording import Operation
from ...language.scalar import Scalar
from ...modes import Changed
from ...trace import counters
from ..moving import moved
from .body import reads_of, round_of, statements_of, written
from .buffers import addresses, apart, blocks_of, copy_of, described, fetched, owned, put_back, with_same, words_of
from .condition import Condition
from .journal import Journal, NotCompiled, OtherEmpty, OtherForm
from .limits import Breadth, going, limits, measure, products
from .tapes import CpuTape


class Reordered(Exception):
    """What is captured twice does not make the same buffers in the same order: something was made for later uses."""


class Written:
    """A round that is written down on a tape, from where to where its results go: `carried` handles find what the round
    before left in `places`, and leave theirs there; those `inside` are made anew in each. `pinned`: the statements as
    they are written down, by those of the loop; `seconds`: predicted for its passes over rows; `often`: as
    limits.Breadth has it; `empties`: what scalars without a value count as, by ids, where rounds say so."""

    key: Any  # None for a round that is of this loop alone
    places: list[Any]
    blocks: list[Any]  # of the places, as they are now: what is written in place gets others

    def __init__(
        self,
        session: Any,
        loop: Any,
        pinned: dict[int, Statement],
        seconds: float,
        often: bool,
        empties: dict[int, Any],
    ):
        self.session, self.loop, self.device = session, loop, session.devices[0]
        self.often, self._seconds = often, inf if often else seconds  # all blocks work on wide lists
        self._empties = empties
        self._sure: set[int] = set()  # ids of scalars that have a value before the first round
        self.operations, self.guards = round_of(loop)
        self._numbers_of = {key: number for number, key in enumerate(pinned)}
        # those of a round alone: others may never have run, and matrices not lie as they would read them
        self.pinned = {id(each): pinned[id(each)] for each in statements_of(self.operations)}
        self.carried, self.inside = written(self.operations)

    @property
    def breadth(self) -> Breadth:
        return Breadth(self.tape.few, self.often)

    @property
    def devices(self) -> Any:
        """Those of the session: while a round is captured, others may stand for them."""
        return self.session.devices

    def _restored(self, before: list[Any]) -> None:
        """Handles hold what lies in their places, others what they held before."""
        for handle, store in zip(self.inside, before, strict=True):
            handle._store = store
        put_back(self.carried, self.places, self.blocks)

    def _place(self, handle: Any) -> Any:
        """Where a handle's content lies before and after each round: room for all of it, which nobody shares."""
        store = handle._store
        if handle.ndim == 0:
            handle._store = self._scalar(handle)
        elif store is None:
            raise NotCompiled(f"{handle.name} is empty")
        elif store.form != "bitmap" or store.iso:  # copies, diagonals, arrays of other libraries may share it
            handle._store = owned(self.devices, store)
        elif store.nvals is not None:
            store.nvals = None  # it will change
        return handle._store

    def _scalar(self, handle: Any) -> Any:
        if handle._store is not None:
            mine, vals, empty = copy_of(self.devices, handle._store)
            return mine, vals, self._empties.get(id(handle), empty)
        if handle._value is None:
            raise NotCompiled(f"{handle.name} is empty")
        mine = self.devices[0].empty(2, np.int64)
        self.devices[0].copy(mine, words_of(handle))
        self._sure.add(id(handle))
        return mine, mine.view(handle.dtype.np_type)[:1], self._empties.get(id(handle), 0)

    def _write_down(self) -> None:
        instead = self._capture({})
        if instead:  # again, with results where the next round finds them
            try:
                self._capture(instead)
            except Reordered:
                self._capture({})  # results are copied to where the next round finds them

    def _capture(self, instead: dict[int, Any]) -> dict[int, Any]:
        """Capture a round; returns what may be given in place of which of its buffers."""
        session, journal = self.session, Journal(instead)
        cpu = self.device.kind == "cpu"
        self.tape: Any = CpuTape(session) if cpu else imported("gbgpu.engine.loop.cuda_tape").CudaTape(session)
        self._index = index = Scalar(int)
        index._store = (self.device.full(2, -1, np.int64), self.tape.state[:1], 0)
        condition, done = self.tape.condition(), []
        pinned = list(self.pinned.values())
        thin = any(products(session, pinned, "push", "list"))
        for _, held in going(session, pinned, "push"):  # while it can be read
            measure(session, held)
        self._reads, before = counters.host_reads, [handle._store for handle in self.inside]
        captured = Changed(session.changes, session, capturing=self.loop, late=self._late, _watched=[])
        try:
            with captured, self.tape.recording(journal, thin, self._seconds):
                done = self._perform(self.operations, condition)
                _as_before(self.carried, self.places)
                self._separate([*self.carried, *self.inside], self.carried, self.blocks)
                better = self._replaceable(journal)
                if instead and better:
                    raise Reordered
                pairs = list(self._brought(zip(self.carried, self.places, self.blocks, strict=True)))
                copies = [(condition.array(to), condition.array(source), to.itemsize) for to, source in pairs]
                self.flags = session._watched
                unlike = self._unguarded(condition)
                unlike += [f"{condition.array(flag)}[0] != 0" for _, flag, *_ in self.flags]
                text = condition.kernel(done, copies, limits(session, pinned, condition, unlike, self.breadth))
                self.tape.turn(text, condition.arrays, self.loop.max_iterations, [to for to, _ in pairs])
        finally:
            inside = [handle._store for handle in self.inside]
            uninterrupted(lambda: self._restored(before))
        self._check_reads()
        stores = () if self.key else (x._store for statement in self.pinned.values() for x in reads_of(statement))
        self.kept = condition.arrays, inside, index, journal.held, [*stores]
        pairs = [(journal.buffers[number], place) for number, place in better.items()]
        if not self.tape.replaced(pairs):
            return better
        places = {id(buffer): place for buffer, place in pairs}
        for block in (block for store in inside if isinstance(store, VectorStore) for block in store.blocks):
            for name in ("slots", "vals", "words"):
                setattr(block, name, places.get(id(getattr(block, name)), getattr(block, name)))
        return {}

    def _perform(self, operations: list[Operation], condition: Condition) -> list[str]:
        """Write operations down; returns the texts of what ends the loop."""
        done = []
        for operation in operations:
            if operation.kind == "statement":
                self._state(id(operation.what))
            elif operation.kind == "clear":
                operation.what._store = None
            elif operation.kind == "until":
                present, condition.present = condition.present, []
                done.append(condition.holds(condition.text(operation.what)))
                condition.present = present
            else:
                self._guarded(operation.what)
        return done

    def _state(self, key: int) -> None:
        """Write a statement down."""
        statement = self.pinned[key]
        try:
            if not (statement.output.ndim == 0 and self._assigned(statement)):
                self.session.run(statement)
            self._check_reads()
        except NotCompiled as error:
            error.number = self._numbers_of[key]
            raise

    def _check_reads(self) -> None:
        if counters.host_reads - self._reads != self.tape.aside:
            raise NotCompiled.reads()

    def _assigned(self, statement: Statement) -> bool:
        """Write down the arithmetic of scalars, where that can be: `s << t + 1`."""
        output, expr = statement.output, statement.expr
        number = expr.option if expr.kind == "fill" else expr if expr.kind == "number" else None
        if statement.accum is not None or not isinstance(number, Operand):
            return False
        output._store = self._computed(number, output.dtype)
        return True

    def _computed(self, number: Any, dtype: Any) -> tuple[Any, Any, int]:
        """What a scalar holds that each round computes from a recorded number."""
        condition = self.tape.number()
        text = condition.cast(condition.text(number), number.dtype, dtype)
        if condition.present:
            raise NotCompiled.may_be_empty()
        both = self.tape.compute(dtype, condition, text)
        return both, both.view(dtype.np_type)[:1], 0

    def _late(self, scalar: Any, dtype: Any) -> Deferred | None:
        """What stands for the value of a scalar, or an expression of scalars, that a round computes."""
        held = self._index if getattr(scalar, "source", None) == ("index", ref(self.loop)) else scalar
        if not held.lazy and held.dtype is dtype:
            if held.waits:
                return Deferred(held._store[1])
            if held._store is not None:
                raise NotCompiled.may_be_empty()
        if not (held.lazy or held.waits) or not np.can_cast(held.dtype.np_type, dtype.np_type, "safe"):
            return None
        return Deferred(self._computed(held, dtype)[1])

    def _guarded(self, inner: Any) -> None:
        """What runs in some rounds: it leaves its results where they are if it does not run."""
        changed, more = written(inner.operations)
        changed += more
        for handle in changed:
            if handle._store is None:
                raise NotCompiled(f"{handle.name} is empty or on the host")
            handle._store = self._scalar(handle) if handle.ndim == 0 else self._own(handle)
        places = [handle._store for handle in changed]
        blocks = [blocks_of(place) for place in places]
        condition = self.tape.number()
        with self.tape.guarded(condition, condition.text(inner.condition)):
            self._perform(inner.operations, condition)
            for handle, place in zip(changed, places, strict=True):
                if handle.ndim and handle._store is not None and {handle._store.form, place.form} == {"list", "bitmap"}:
                    handle._store = moved(self.session, handle._store, place.form, handle._store.map)
            _as_before(changed, places)
            self._separate(changed, changed, blocks)
            pairs = list(self._brought(zip(changed, places, blocks, strict=True)))
            device = self.devices[0]
            values = [device.empty(1, source.dtype) for _, source in pairs]
            for value, (_, source) in zip(values, pairs, strict=True):
                device.copy(value, source)
            for value, (to, _) in zip(values, pairs, strict=True):
                device.copy(to, value)
        put_back(changed, places, blocks)

    def _own(self, handle: Any) -> VectorStore:
        """What a handle holds, in buffers that no other one has. (Others than lists and those of one value never share
        theirs.)"""
        store = handle._store
        if store.iso or store.form == "list" and not self._alone(handle):
            return owned(self.devices, store)
        return with_same(store)

    def _alone(self, handle: Any) -> bool:
        """Whether a list has room for all rows, and lies where nothing else does that the loop knows."""
        read = (x for statement in statements_of(self.loop.body) for x in reads_of(statement))
        others = {id(x): x._store for x in (*self.carried, *self.inside, *read) if x is not handle and x.ndim == 1}
        mine, store = addresses(handle._store.blocks), handle._store
        if any(isinstance(other, VectorStore) and mine & addresses(other.blocks) for other in others.values()):
            return False
        return all(block.slots.size == store.map.nslots for block in store.blocks)

    def _separate(self, changed: list[Any], carried: list[Any], blocks: list[Any]) -> None:
        """What a handle took from the place of another one is copied, before that place changes: `a << b` shares, and
        `a << it.index` shares the number of the round."""
        places = {id(handle): addresses(held) for handle, held in zip(carried, blocks, strict=True)}
        places[0] = {address(self.tape.state)}
        for handle in changed:
            made = handle._store
            others = set().union(*(place for key, place in places.items() if key != id(handle)))
            if handle.ndim and made is not None and addresses(made.blocks) & others:
                handle._store = owned(self.devices, made)

    def _brought(self, results: Any) -> Any:
        """What was made of handles goes to their places: arrays by launches, pairs of single values are left to be
        brought. `results`: (handle, place, its blocks: what is written in place has others now)."""
        for handle, place, blocks in results:
            made = handle._store
            if handle.ndim == 0:
                if made is None:
                    raise NotCompiled(f"{handle.name} is on the host")
                if made[2] != place[2]:
                    raise OtherEmpty(handle, made[2], id(handle) in self._sure)
                yield from ((place[0][:1], made[0][:1]), (place[0][1:], made[0][1:]))
                continue
            if made is None:
                raise NotCompiled(f"{handle.name} is empty after a round")
            yield from fetched(self.devices, blocks, made.blocks, place)

    def _replaceable(self, journal: Any) -> dict[int, Any]:
        """The arrays of a round's results that are apart from their places, which nobody reads once they are made:
        these places, by the number of the buffer."""
        found: dict[int, Any] = {}
        for handle, place, held in zip(self.carried, self.places, self.blocks, strict=True):
            made = handle._store
            if held is None or made is None or described(made) != described(place):
                continue
            blocks = list(zip(made.blocks, held, strict=True))
            for (one, two), name in product(blocks, ("slots", "vals", "words")):
                mine, other = getattr(one, name), getattr(two, name)
                if mine is None or other is None or mine.size < 2 or not apart(mine, other):
                    continue
                number = journal.replaceable(mine, other)
                if number is not None:
                    found[number] = other
        return found

    def _unguarded(self, condition: Condition) -> list[str]:
        """What tells that the next round begins otherwise than this one."""
        condition.index, known = "(round + 1)", len(condition.present)
        found = [condition.negated(condition.text(x), holds) for x, holds in self.guards]
        if len(condition.present) > known:
            raise NotCompiled("it.when reads what may be empty")
        return found


def _as_before(handles: list[Any], places: list[Any]) -> None:
    """Raise OtherForm unless handles hold what is like their places."""
    pairs = ((x, place) for x, place in zip(handles, places, strict=True) if x.ndim and x._store is not None)
    unlike = [(x, x._store.form, x._store.iso) for x, place in pairs if described(x._store) != described(place)]
    if unlike:
        raise OtherForm(unlike)
