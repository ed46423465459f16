"""A recorded loop that goes round by itself: its statements, written down once, are the body of a CUDA graph, or calls
that one function of machine code repeats on CPU devices (`tapes.py`).

GPUs capture a round after the first one, which ran as statements; CPU devices once rounds ask for the same plans again
and again. It is planned for any number of entries (`Session.counts_unknown`), in the directions that statements took.
If the forms at its end are others than at its beginning, more rounds are planned so, until they are the same. Where a
search may push and pull, both rounds are captured, for one kernel that changes between them. What a round hands to the
next lies in buffers of its own, where the captured body finds and leaves it. A frontier that grows too wide for its
pushes ends the graph: statements take over, and may come back to it.
"""

from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property, partial
from math import inf
from time import perf_counter
from typing import Any
from weakref import ref

from ... import settings
from ...distribute.blocks import KNOWN
from ...errors import in_room
from ...interrupts import held as uninterrupted
from ...interrupts import imported
from ...kernels.interface import ends_soon
from ...language.expr import Statement
from ...language.recording import Operation
from ...modes import Changed
from ...trace import beside, counters
from ..dealing import ALONE
from ..moving import moved
from .body import direction_of, matrices_of, round_of, statements_of
from .captured import Captured
from .condition import GONE_WIDE, THINNED, TURNS
from .hindrance import hindrance
from .journal import Invalidated, NotCompiled, OtherEmpty, OtherForm
from .limits import PASSES, Breadth, as_it_lies, products, pulled, thin, too_wide, vector_of
from .predicted import Predicted
from .signature import Signature
from .single_device import SingleDevice
from .tapes import threads
from .ways import HANDED, ROADS, Way, among, directed, turned, way_of

SETTLED = 2  # rounds of the same plans
MET = 2e-5  # the same where GPUs do whole rounds by themselves: to meet, and to read what others have
# A loop is no first GPU's alone where a pull of all rows takes seconds of which others would spare so many, unless rows
# are as short as those of road maps, whose frontiers stay small.
SPARED = 5e-4
# Seconds of a round on a GPU from which Python keeps up with it. (A captured one is faster on RMAT of scale 22, 1.5e-3
# as predicted, and 24, 6e-3; two thirds of the time.)
BUSY = 1e-2
SPENT = 1e-4  # the same for each statement on CPU devices, which wait for Python: that spends a third of it
ALIKE = 6  # rounds of the same plans after which one is captured that no other loop can take, on GPUs
SOON = 10  # the same on CPU devices: to capture one takes as long as Python takes for so many
OFTEN = 12  # rounds by statements of all such loops after which CPU devices capture one at once
CHANCES = 4  # rounds before which others' are looked for
LATE = 4  # times as many, where no two rounds ask for the same plans
SMALL = 1 << 17  # entries that are copied in the time that Python takes for a round
# Rounds planned for any counts after which forms are those before one; parts that a guard runs now and then leave
# others.
FORMS = 4
OUTGROWN = 4  # times that a loop leaves a captured round, as a frontier is too wide, before it is captured for such
_TRIES, WORTH = 3, 50  # captures of one loop that fail, or give up after so few rounds


class DeviceLoop:
    """One run of a loop. `advance` takes it some rounds further without Python, or says that it can't now."""

    def __init__(self, session: Any, loop: Any, statements: list[Statement], matrices: list[Any]):
        self.session, self.loop, self.device = session, loop, session.devices[0]
        self.statements, self.matrices = statements, matrices  # that they read
        self.outputs = list({id(each.output): each.output for each in statements}.values())
        self.predicted = Predicted(session, loop, self.outputs)
        self.plans: Any = None
        self.alike, self.tries, self.chances = 0, 0, CHANCES
        self._signed: tuple[int, Signature] | None = None  # by how many turns of the lock it was made
        self.left, self.turned = False, None  # a captured round; how that went, if its pulls should be pushes
        self.rests: Captured | None = None  # a captured round of this loop alone, which goes on
        self.worth: float = inf  # the rounds from which on the capture that is under way was worth it
        # Whether what began then is to let others have the session: not where this thread holds it for longer.
        self.due = (lambda start: False) if session.lock.owned else session.lock.due
        self.empties: dict[int, Any] = {}  # what scalars count as that a round leaves without a value, by their ids
        self.wide = 0  # how often it was left as it had got too wide
        self.thinned = False  # whether frontiers that had been wide are not any more
        self.short = False  # whether the first of several GPUs had no room for it: the next one asks again
        one = session.maps.alone or self.device.kind == "cpu"
        self.gpus = 1 if one else len({device.gpu for device in session.devices})
        self.sharing = None if session.maps.alone else session.sharing
        self.single = SingleDevice(session, loop) if self.gpus > 1 and session.folds else None
        self.look = 0  # the round from which it is asked again whether rounds keep the device busy

    @classmethod
    def of(cls, session: Any, loop: Any) -> "DeviceLoop | None":
        """None for a loop that runs statement by statement."""
        statements = statements_of(loop.body)
        matrices = matrices_of(statements)
        reason = hindrance(session, loop, statements, matrices)
        if reason is None:
            return cls(session, loop, statements, matrices)
        loop._how = f"statements, as {reason}"
        return None

    @property
    def known(self) -> bool:
        """Whether a round of such a loop is kept."""
        return bool(self.session.loops) and self.session.loops.has(self.signature.key)

    def advance(self) -> bool:
        self.session.check()  # others may have ended it
        if self.rests is not None:
            return self._rested(self.rests)
        if self.left:  # what left off a captured round wants another one than it, by statements at first
            self.left = False
            return self.turned is not None and self.tries < _TRIES and self._gone()
        if self._again():
            return True
        if self.loop.rounds and self.tries < _TRIES:
            plans = [statement.carried and statement.carried[1] for statement in self.statements]
            same = self.plans is not None and all(a is b for a, b in zip(plans, self.plans, strict=True))
            self.alike, self.plans = self.alike + 1 if same else 0, plans
        if self._gone_solo():
            return False
        if not self.loop.rounds or self.tries >= _TRIES or self.loop.rounds < self.look:
            return False
        soon = self._soon()
        late = soon > 1 and self.loop.rounds >= LATE * soon * (self.tries + 1)
        if self.alike < soon and not late:
            return False
        if not (self._one or self._together) or self._wide():
            return False
        if self._refused is not None:
            self._say(*self._refused)
            return False
        if self._busy:
            self._say("a round keeps the device busy")
            self.alike, self.plans = 0, None
            if not round_of(self.loop)[1]:  # else rounds that go in another way may not
                self.look = 2 * self.loop.rounds
            return False
        return not self._gone_solo(due=True) and self._gone()

    @property
    def _busy(self) -> bool:
        """Whether devices are busy in a round for as long as Python takes for the next one."""
        if self.device.kind == "cpu":
            return self.predicted.seconds() > SPENT * len(self.statements) and not self._steady
        return self.predicted.seconds() > BUSY * (1 if self._one else self.gpus)

    def _gone(self) -> bool:
        """Take rounds as they are captured now."""
        self.tries += 1
        try:
            if not self._gone_at_once():
                pinned = self._settled()
                if pinned is not None:
                    self._go(pinned)
        except NotCompiled as reason:
            self._refuse(str(reason), reason.number)
            self.tries = _TRIES
        self._anew()
        return True

    def _gone_at_once(self) -> bool:
        """Take rounds from the forms that things have after the last one, if these stay."""
        if not self._at_once:
            return False
        with self.session.lock:
            pinned = self._pinned()
        with suppress(NotCompiled):
            self._go(pinned)
            return True
        return False

    def _anew(self) -> None:
        """No round was by statements yet, since now."""
        self.alike, self.plans = 0, None

    def _rested(self, captured: Captured) -> bool:
        """Go on with the round that this loop alone has; or by statements, where others changed what it starts from."""
        self.rests = None
        with self.session.lock:
            self.session.check()
            goes_on = captured.goes_on()
            if goes_on:
                self._run(captured)
            else:
                self._count()
        if goes_on:
            self.loop.tell()
        self._anew()
        return goes_on

    def give_way(self) -> None:
        """Let other threads that wait have the session. They may change anything that the loop reads."""
        self._unfold()
        self.session.lock.give_way()

    def _refuse(self, reason: str, number: int | None = None) -> None:
        self.session.loops.refuse(self.signature.key, (reason, number))
        self._say(reason, number)

    def _say(self, reason: str, number: int | None = None) -> None:
        where = "" if number is None else f": {self.statements[number]!r}"
        self.loop._how = f"statements, as {reason}{where}"

    @cached_property
    def _refused(self) -> tuple[str, int | None] | None:
        return self.session.loops.refused(self.signature.key)

    def _wide(self) -> bool:
        """Whether a round that pushes would be too wide. (Where any arrival does, it is not much slower, once; and in
        searches from hubs no other frontier may be left to write down the round of.) No round is where pulls are
        captured with it; those that are kept were asked already, by `_again`."""
        if self._at_once and not self._kept:
            with self.session.lock:
                if turned(self.session, self.loop, self._pinned()):
                    return False
        pushes = products(self.session, self.statements, "push", "list")
        found = (push for push in pushes if not ends_soon(push[0].monoid))
        often = self._often
        return too_wide(self.session, found, Breadth(not often and self.predicted.seconds() < PASSES, often))

    @property
    def _often(self) -> bool:
        """Whether such loops left a round again and again, as it was too wide, which this one still is."""
        return not self.thinned and self.session.loops.outgrown(self.signature.key, self._read)

    @property
    def _one(self) -> bool:
        """Whether one GPU does it all."""
        return self.gpus == 1 or self.single is not None and self.single.entered

    @property
    def _folds(self) -> bool:
        """Whether wide rounds of such loops take least on one of several GPUs."""
        sharing = None if self.single is None else self.sharing
        return sharing is not None and sharing.paced and sharing.way(self.signature.key, self._read) == ALONE

    @property
    def _folded(self) -> bool:
        """Whether this is the first round of a loop the last one of which was left to the first GPU."""
        return not self.loop.rounds and self.session.loops.folded(self.signature.key, self._read)

    @property
    def _together(self) -> bool:
        """Whether all GPUs may do rounds by themselves."""
        return self.device.peers.direct and self.tries < _TRIES

    def _gone_solo(self, surely: bool = False, due: bool = False) -> bool:
        """Leave a loop of several GPUs to the first one, if that has room, and takes less time for a round than is lost
        with others: where statements are handed out, that and the time are p times what is compared here. Asked for
        when plans settle, and when a round of all GPUs is due to be captured; the next such loop begins there."""
        if self.single is None or self.single.entered:
            return False
        if not (surely or self.single.whole or self._folds or self._folded):
            if self.alike != SETTLED and not due:
                return False
            each = MET / (1 - 1 / self.gpus) if self._together else HANDED
            lost = each * len(self.statements) + self.session.kernels.costs.link * self.predicted.brought()
            if self.predicted.seconds() > lost or self._grows and not self.thinned:
                return False
        if not self.single.fits():
            self.single, self.short = None, True
            return False
        self.session.lock.__enter__()  # until it is over: other threads' statements are planned for all devices
        try:
            self.single.enter()
        except BaseException:
            self.close()
            raise
        self.alike, self.plans = 0, None
        return True

    @property
    def _grows(self) -> bool:
        """Whether frontiers may become such that all GPUs are better, however few vertices they have now."""
        pushes = (push for form in KNOWN for push in products(self.session, self.statements, "push", form))
        wide = ((op, held) for op, _, held in pushes if held.nvals >= ROADS * held.rowmap.n)
        return any(pulled(self.session, op, held) * (1 - 1 / self.gpus) > SPARED for op, held in wide)

    def close(self) -> None:
        """The loop is over, or was broken off."""
        try:
            if self._signed is not None:
                key, read, loops = self._signed[1].key, self._read, self.session.loops
                with self.session.lock:
                    uninterrupted(partial(loops.abandon, key, self.loop))
                alone = self.short or self.single is not None and self.single.entered
                loops.ended(key, self.loop.rounds, read, alone and not loops.outgrown(key, read))
        finally:
            self._unfold()

    def _unfold(self) -> None:
        """What lies on the first GPU goes to where it belongs."""
        if self.single is not None and self.single.entered:
            try:
                uninterrupted(self.single.leave)
            finally:
                self.session.lock.release()

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
    def _at_once(self) -> bool:
        """Whether what it needs is captured after one round: on GPUs, where later loops can take it."""
        return self.device.captures == "graph" and self.signature.key is not None

    def _other(self, way: Way) -> Captured | None:
        """A captured round of the same loop in other directions, which one kernel may have with this one's."""
        if self.device.kind == "cpu" or settings.resident == "never":
            return None
        return self.session.loops.other(self.signature, way, self.session.maps.alone)

    @property
    def _steady(self) -> bool:
        """Whether statements would choose nothing, and several threads go through a round as well: sums of whole rows
        of full vectors, and no other product."""
        if self.device.kind != "cpu" or threads(self.session) == 1:
            return False
        return all(self.predicted.whole(statement) for statement in self.statements if statement.expr.kind == "product")

    def _soon(self) -> int:
        """Rounds of the same plans after which one is captured. On CPU devices what runs often, is over soon and takes
        little is worth it from the first on, if none is kept that goes in these directions: rounds are counted here."""
        key, loops = self.signature.key, self.session.loops
        if self.device.kind != "cpu":
            return 0 if self._at_once else ALIKE
        if not key:
            return SOON
        if loops.count(key) <= OFTEN:
            counters.counted += 1
            return SOON
        last = loops.last(key, self._read)
        brief = last is not None and last <= LATE * SOON and self._little()
        return int(self._kept) if brief else SOON

    @property
    def _kept(self) -> bool:
        """Whether a round is kept that goes in these directions, or as many others as there may be."""
        return self.session.loops.goes(self.signature.key, way_of(self.loop), self.session.maps.alone)

    def _little(self) -> bool:
        """Whether what counts might spare a round, and what it brings and gives back, take little."""
        return self.predicted.seconds(chosen=True) < SPENT and sum(x.size for x in self.outputs if x.ndim) < SMALL

    def _again(self) -> bool:
        """Take a round that another loop has captured, if there is one."""
        loops, loop = self.session.loops, self.loop
        if not loops or not self.chances or loop.has_callback or self.predicted.timed(self.statements, self._read):
            return False
        key, way = self.signature.key, way_of(loop)
        if loops.has(key) and not loops.has(key, way[0]):
            return False  # to know it took next to nothing
        self.chances -= 1
        with self.session.lock:
            often = self._often
            if self._folds or self._folded:
                self._gone_solo()
            captured = loops.find(loop.rounds, self.signature, way, often)
            if captured is None and loops.alone(self.signature, often) and self._gone_solo(surely=True):
                captured = loops.find(loop.rounds, self.signature, way, often)
            if captured is not None and thin(self.session, captured.products(self.signature, "pull")):
                other = loops.other(self.signature, captured.way, self.session.maps.alone)
                captured = other if other is not None and other.fits(self.signature) else captured
            if captured is None or captured.too_wide(self.signature):
                return False
            self._take(captured)
        self.chances = CHANCES
        self._anew()
        return True

    def _take(self, captured: Captured) -> None:
        captured.bind(self.loop, self.signature)
        self._run(captured)

    def _run(self, captured: Captured) -> Captured:
        """Run a captured round, and kept ones that go on where one ends, which is returned."""
        self.left, self.turned, before = True, None, self.loop.rounds
        gone, first = [], captured if not self.loop.rounds else None
        while captured is not None:
            ended, captured = captured.run(self._heir, self.due)
            gone.append(ended)
        for ended in gone:
            self._waited(ended)
        if self.session.repartitioning is not None and self.predicted.sums(self.statements):
            self.session.repartitioning.unseen(self._read, self.loop.rounds - before)
        if self.loop.rounds > self.worth:
            self.tries, self.worth = self.tries - 1, inf
        self.loop.went = ref(first) if first is not None and self.loop.over and len(gone) == 1 else None
        if not (self.loop.over or ended.left):  # it goes on there, once others had their turn or were told
            self.left, self.rests = False, None if ended.key else ended
            return ended
        self.worth = inf
        if not self.loop.over:
            self._count()
            self.thinned = self.thinned or ended.left == THINNED
            if self.thinned and ended.left == GONE_WIDE:
                self.thinned = False
                if not self._folds:
                    self._unfold()
            self.wide += ended.left == GONE_WIDE
            if self.wide >= OUTGROWN and ended.key and not ended.often and self.device.kind != "cpu":
                self.session.loops.outgrow(ended, self._read)
        return ended

    def _waited(self, ended: Captured) -> None:
        """Where GPUs waited in wide rounds for what others pushed, the next ones may go another way."""
        sharing, ran = self.sharing, ended.ran
        if sharing is None or ran is None or not (ended.often and ended.key and ran.edges):
            return
        pushed, read = ended.pushed, self._read
        if pushed is not None and sharing.waited(ended.key, read, pushed, ran, self.single is not None):
            self.session.loops.outgrow(ended, read)

    def _count(self) -> None:
        """Statements go on, and choose by how much there is of what they multiply."""
        for x in (vector_of(statement.expr) for statement in self.statements):
            if x is not None:
                self.session.nvals(x)

    def _heir(self, ended: Captured) -> Captured | None:
        """The kept round that goes on where what guarded one is otherwise, or in other directions, with what that one
        left."""
        loop, loops, found = self.loop, self.session.loops, None
        way, self.thinned = None if loop.over else way_of(loop), self.thinned or ended.left == THINNED
        if way is not None and way[0] != ended.way[0]:
            found = loops.find(loop.rounds, self.signature, way, self._often)
        elif way is not None and ended.left == THINNED:
            found = loops.find(loop.rounds, self.signature, ended.way, False)
        elif way is not None and ended.left == TURNS:
            found = loops.other(self.signature, ended.way, self.session.maps.alone)
            found = found if found is not None and found.fits(self.signature, after=ended) else None
            self.turned = ended.way if found is None and self._may_turn(ended.way) else None
        if found is None or found.too_wide(self.signature):
            return None
        found.bind(loop, self.signature)
        return found

    def _may_turn(self, way: Way) -> bool:
        """Whether a product that went by a pull may be a push."""
        pairs = zip(among(round_of(self.loop)[0]), way[1], strict=True)
        return any(direction == "pull" and "direction" not in statement.hints for statement, direction in pairs)

    # -- one graph

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

    def _go(self, pinned: dict[int, Statement]) -> None:
        """Capture a round, and run it until the loop is over, the graph gives up or others wait."""
        with self.session.lock:  # what is launched now is captured; then the workspaces are the graph's
            self.session.check()
            self._captured_and_run(pinned)
        self.loop.tell()

    def _captured_and_run(self, pinned: dict[int, Statement]) -> None:
        way = way_of(self.loop, pinned)
        loop, loops, often = self.loop, self.session.loops, self._often
        kept = None if loop.has_callback else loops.find(loop.rounds, self.signature, way, often)
        if kept is not None:  # only now things have the forms that it starts from
            self.tries -= 1
            return self._take(kept)
        others = turned(self.session, self.loop, pinned)  # reads what guards say, as long as handles hold no places
        other_way = way if others is None else way_of(self.loop, others)
        captured, other = self._timed(pinned, way), None
        self.worth = self.loop.rounds + WORTH
        if others is not None and captured.key and captured.joined is None:
            other = self._other_kind(captured, others, other_way)
        if other is None:
            captured.begin()
        else:
            wide = captured.too_wide(self.signature)
            captured = other if wide or thin(self.session, captured.products(self.signature, "pull")) else captured
            captured.bind(self.loop, self.signature)
        ended = self._run(captured)
        last = others if others is not None and ended.way == other_way else pinned
        for statement in self.statements:  # for who asks for plans
            statement.carried = last[id(statement)].carried or statement.carried

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

    @property
    def _read(self) -> list[Any]:
        """The content of the matrices, as it lies outside of `single`."""
        return [x._store if self.single is None else self.single.outside(x) for x in self.matrices]


def _turns(store: Any, form: str, iso: bool) -> bool:
    """Whether a store is brought to a form in which there is room for what it has."""
    return {store.form, form} == {"list", "bitmap"} or store.form == form == "bitmap" and not iso


def _form(handle: Any) -> Any:
    store = handle._store
    if handle.ndim == 0:
        return store is None
    return None if store is None else (store.form, store.iso, store.map)
