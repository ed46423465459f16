"""A recorded loop that goes round by itself: its statements, written down once, are the body of a CUDA graph, or calls
that one function of machine code repeats on CPU devices (`tapes.py`).

GPUs capture a round after the first one, which ran as statements; CPU devices once rounds ask for the same plans again
and again. It is planned for any number of entries (`Session.counts_unknown`), in the directions that statements took.
If the forms at its end are others than at its beginning, more rounds are planned so, until they are the same. Where a
search may push and pull, both rounds are captured, for one kernel that changes between them. What a round hands to the
next lies in buffers of its own, where the captured body finds and leaves it. A frontier that grows too wide for its
pushes ends the graph: statements take over, and may come back to it.
"""

from contextlib import suppress
from functools import partial
from math import inf
from typing import Any
from weakref import ref

from ...distribute.blocks import KNOWN
from ...interrupts import held as uninterrupted
from ...kernels.interface import ends_soon
from ...language.expr import Statement
from ...trace import counters
from ..dealing import ALONE
from .body import matrices_of, round_of, statements_of
from .captured import Captured
from .capturing import Capturing
from .condition import GONE_WIDE, THINNED, TURNS
from .hindrance import hindrance
from .journal import NotCompiled
from .limits import PASSES, Breadth, products, pulled, thin, too_wide, vector_of
from .ways import HANDED, ROADS, Way, among, turned, way_of

REPEATED = 2  # rounds of the same plans after which a loop of several GPUs may be left to the first one
# Seconds of a statement where GPUs do whole rounds by themselves: to meet, and to read what others have.
MET = 2e-5
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
OUTGROWN = 4  # times that a loop leaves a captured round, as a frontier is too wide, before it is captured for such
_TRIES, WORTH = 3, 50  # captures of one loop that fail, or give up after so few rounds


class DeviceLoop(Capturing):
    """One run of a loop. `advance` takes it some rounds further without Python, or says that it can't now."""

    def __init__(self, session: Any, loop: Any, statements: list[Statement], matrices: list[Any]):
        super().__init__(session, loop, statements, matrices)
        self.plans: Any = None
        self.alike, self.tries, self.chances = 0, 0, CHANCES
        self.left = False  # a captured round
        self.stated: set[tuple[bool, ...]] = set()  # what guarded the beginnings of rounds by statements
        self.rests: Captured | None = None  # a captured round of this loop alone, which goes on
        self.worth: float = inf  # the rounds from which on the capture that is under way was worth it
        # Whether what began then is to let others have the session: not where this thread holds it for longer.
        self.due = (lambda start: False) if session.lock.owned else session.lock.due
        self.wide = 0  # how often it was left as it had got too wide
        self.short = False  # whether the first of several GPUs had no room for it: the next one asks again
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
        gone = self._advanced()
        if not gone:
            self.stated.add(way_of(self.loop)[0])
        return gone

    def _advanced(self) -> bool:
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
        if way_of(self.loop)[0] not in self.stated:  # what it needs of matrices is made by statements
            return False
        return not self._gone_solo(due=True) and self._gone()

    @property
    def _busy(self) -> bool:
        """Whether devices are busy in a round for as long as Python takes for the next one."""
        if not self.graphs:
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
            if self.alike != REPEATED and not due:
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

    def _soon(self) -> int:
        """Rounds of the same plans after which one is captured. On CPU devices what runs often, is over soon and takes
        little is worth it from the first on, if none is kept that goes in these directions: rounds are counted here."""
        key, loops = self.signature.key, self.session.loops
        if self.graphs:
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
            if self.wide >= OUTGROWN and ended.key and not ended.often and self.graphs:
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
