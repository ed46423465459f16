"""Who computes what on GPUs, where one has more to do than others.

Pulls of all entries of a matrix are shared out once for all where rows do not move to other owners
(`repartitioning.py`), as they have an order of their own, or memory is short: who has less keeps copies of rows of
others, and computes them, in captured loops too.

Frontiers change. Where the host has counted the edges of each block's, which it does for those that are worth it, what
is beyond the mean goes to others, which have copies of the blocks: rows are cut into slices, by the edges of groups of
them. Where memory is short for whole blocks, others have the rows of hubs (`hubs.py`), or read rows where they lie.
Captured rounds tell how long devices have waited in them; once that would have paid for copies, rounds of wide
frontiers are captured so that devices deal them out themselves, by the edges that all have told each other. Thin ones
are left to their owners.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..balance.arbiter import Decision, Policy
from ..balance.problem import Shares
from ..balance.steal import solve
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorStore
from ..distribute.needs import Transfer
from ..distribute.rowmap import RowMap, Task
from ..errors import in_room
from ..kernels.interface import Costs, Spec, reads, sums_whole_rows
from ..modes import Changed
from ..trace import beside
from .assign import CHUNK, as_tasks, counting, entries_before, grouping
from .context import Context
from .dealing import ALONE, APART, DEALT, FEWEST, Dealt, DealtThere, Pace, Ran, Trial, of_hubs, slices
from .hubs import hubs

# Seconds lost for which rows are copied, for each of their entries: a quarter of what copying and laying out take, as
# who pulls from all rows goes on to, and a loop is captured soon.
LAID = 5e-11
AGAIN = 64  # times the price of copies that is lost before they are tried again, where there was no room
# Times the overhead of a decision: counting, reading what owners have, and twice as many launches take half a
# millisecond, and entries of a crawl less than half of what they are expected to.
DEALS = 40


class Shared(NamedTuple):
    """Who computes which rows, and these rows, on the devices of the tasks."""

    tasks: Sequence[Task]
    blocks: dict[Task, MatrixBlock]
    decision: Decision
    bytes: int  # of copies


class Timed(NamedTuple):
    """A product: whether it was dealt out, seconds that are predicted of owners, the trial that it is of, what had been
    compiled before, and marks of all devices before and after it."""

    dealt: bool
    plain: float
    trial: Trial | None
    compiled: float
    begun: list[Any]
    ended: list[Any]

    def took(self, devices: Sequence[Any]) -> float | None:
        """Seconds; None if devices have not come to the end of it."""
        marks = zip(devices, self.begun, self.ended, strict=False)
        spent = [seconds for device, *pair in marks if (seconds := device.between(*pair)) is not None]
        return max(spent) if len(spent) == len(self.begun) else None

    def observed(self, devices: Sequence[Any], decision: Decision) -> Decision:
        """The decision with what came of it, if that is known; waits for the devices."""
        for device in devices:
            device.synchronize()
        seconds, apart = self.took(devices), None if self.trial is None else self.trial.took(False)
        gained = None if seconds is None or apart is None else apart * self.plain - seconds
        return replace(decision, observed=seconds, gained=gained)


class Sharing:
    """The decisions of a session of several GPUs."""

    def __init__(self, session: Context, policy: Policy):
        self.session, self.policy = session, policy
        self._within = False  # whether the round that is captured may deal frontiers out
        self._paces: WeakKeyDictionary[MatrixStore, dict[Any, Pace]] = WeakKeyDictionary()  # by first matrix, and loop
        # of pushes of a matrix, by whether any arrival is enough, as their costs are
        self._trials: WeakKeyDictionary[MatrixStore, dict[bool, Trial]] = WeakKeyDictionary()
        self.under_way: Timed | None = None  # the product of the statement under way, if somebody asks what it takes
        self._timed: list[Timed] = []  # others, which devices may not have ended

    def of(self, spec: Spec, map: RowMap, matrix: MatrixStore, own: bool) -> Shared | None:
        """How a pull that looks at all entries is shared; None: owners compute. That begins when what they lost by it
        would have paid for the copies, while no loop is captured. `own`: each device has what its own rows read, and
        nothing else, so that they may move, but nobody else computes them."""
        if matrix.shared is not None or matrix.lost == inf or self.session.capturing is not None:
            return None if own else matrix.shared
        moving = self.session.repartitioning
        if not sums_whole_rows(spec) or not self.policy.steal or map.successor is not None:
            return None
        if moving is not None and moving.moves(map):
            return None
        edges = pull_seconds_each(self.session.kernels.costs, map, matrix)
        spent = [each * load for each, load in zip(edges, matrix.lengths, strict=True)]
        gain = max(spent) - sum(spent) / map.p - self.policy.overhead
        matrix.lost = matrix.lost + gain if gain > 0 else inf
        if gain > 0 and matrix.lost > LAID * gain / max(edges):
            if own:
                matrix.lost = inf
                return None
            shares = solve(np.tile(edges, (map.p, 1)).T, np.array(matrix.lengths))
            matrix.shared = self._made(_stolen(shares, max(spent), self.policy.overhead), map, matrix)
            if matrix.shared is None:
                matrix.lost = inf
        return matrix.shared

    @property
    def paced(self) -> bool:
        """Whether there is any loop whose rounds may go another way."""
        return bool(self._paces)

    def cares(self, edges: float, first: bool, matrix: MatrixStore | None) -> bool:
        """Whether a push of about so many edges is worth that they are counted. `first`: any arrival is enough."""
        known = None if matrix is None else self._trials.get(matrix, {}).get(first)
        worth = edges * self.session.kernels.costs.push_edge >= 2 * DEALS * self.policy.overhead
        return worth and (known is None or known.on or not known.settled)

    def push(
        self, spec: Spec, x: VectorStore, matrix: MatrixStore, found: list[np.ndarray] | None
    ) -> Dealt | DealtThere | None:
        """How a frontier is dealt out, by the edges of each block's; None: to its owners. That begins when what they
        lost by it would have paid for the copies of their blocks, and goes on if it takes less time."""
        if self.session.capturing is not None:
            return self._there(spec, x, matrix)
        if found is None or x.form == "full" or not self.policy.steal:
            return None
        given, first = self.session.kernels.costs, spec.op.monoid.is_any
        edge = given.push_first if first else given.push_edge
        loads = np.array([int(one[-1]) for one in found])
        gain = edge * float(loads.max() - loads.mean()) - DEALS * self.policy.overhead
        if gain <= 0:
            return None
        self._hear()
        trial = self._trials.setdefault(matrix, {}).setdefault(first, Trial(self.policy.patience))
        dealt = self._dealt(spec, x, matrix, found, loads, edge, gain) if trial.on else None
        if not trial.settled or dealt is not None and self.session.watched is not None:
            self.begin(None if dealt is None else dealt.decision, edge * int(loads.max()), trial)
        return dealt

    def begin(self, decision: Decision | None, plain: float, trial: Trial | None = None) -> None:
        """A product is handed out, as was decided; owners were predicted to take `plain` seconds."""
        devices = self.session.devices
        self.under_way = one = Timed(
            decision is not None, plain, trial, beside.seconds, [device.mark() for device in devices], []
        )
        if decision is not None and self.session.watched is not None:
            self.session.watched.decision = partial(one.observed, devices, decision)

    def done(self) -> None:
        """All of the statement under way has been handed out."""
        one, self.under_way = self.under_way, None
        if one is not None:
            one.ended.extend(device.mark() for device in self.session.devices)
            if one.trial is not None and not one.trial.settled and one.compiled == beside.seconds:
                self._timed.append(one)

    def _hear(self) -> None:
        """What pushes on trial took."""
        timed, self._timed = self._timed, []
        for one in timed:
            seconds = one.took(self.session.devices)
            if seconds is None:
                self._timed.append(one)
            elif one.trial is not None:
                one.trial.hear(one.dealt, seconds / one.plain)

    def _dealt(
        self,
        spec: Spec,
        x: VectorStore,
        matrix: MatrixStore,
        found: list[np.ndarray],
        loads: np.ndarray,
        edge: float,
        gain: float,
    ) -> Dealt | None:
        """loads: edges of each block; edge: seconds of one; gain: those that an even division would bring."""
        session, p = self.session, x.map.p
        plain, cost = edge * int(loads.max()), DEALS * self.policy.overhead
        each, cached = np.full((p, p), edge), matrix.hubs
        short = matrix.missed < 0 and cached is None
        if short:  # of memory: those without copies read rows where they lie
            matrix.missed += gain
            without = np.array([[d != b and (d, b) not in matrix.copies for d in range(p)] for b in range(p)])
            each[without] += session.kernels.costs.link * matrix.entry_bytes
        shares = solve(each, loads)
        dealt = shares.edges
        if cached is not None:
            shares, dealt = of_hubs(shares, cached.parts, edge)
        if shares.seconds + cost >= plain:
            return None
        tasks = slices(dealt, found, x.map)
        needed = {(d, b) for d, b, *_ in tasks if d != b}
        new = [] if short else sorted(needed - matrix.copies.keys())
        if new and (not self._paid(gain, new, matrix) or needed - matrix.copies.keys()):
            return None  # not yet, or others were dropped to make room
        decision = _stolen(shares, plain, cost)
        return Dealt(session, matrix, matrix.copies, cached, tasks, decision, reads(spec)[1])

    def _there(self, spec: Spec, x: VectorStore, matrix: MatrixStore) -> DealtThere | None:
        """The same in a round that is captured, where all devices have copies of all blocks."""
        session, map = self.session, x.map
        if not self._within or x.form != "list" or self._lacking(matrix):
            return None
        shift, groups = grouping(map)
        edges_of, room = counting(session, x, matrix, shift), 1 + groups

        def told(task: Task) -> Any:
            """What all have counted."""
            loads = session.devices[task.device].empty(map.p * room, np.int64)
            pairs = [Transfer(b, task.device, one, loads[b * room :][:room]) for b, one in enumerate(edges)]
            session.carry(task.device, pairs)
            return loads

        edges = session.over(map.tasks, lambda task: edges_of(task.block, 0, groups), 0.0)
        loads = session.over(map.tasks, told, 0.0)
        tasks = [Task(d, b, 0, n) for d in range(map.p) for b, n in enumerate(map.rows) if n or d == b]
        tasks.sort(key=lambda task: task.device == task.block)
        least = int(min(max(self.policy.overhead / session.kernels.costs.push_edge, 0), 2**62))
        return DealtThere(session, matrix, loads, least, tasks, None, reads(spec)[1])

    def _lacking(self, matrix: MatrixStore) -> list[tuple[int, int]]:
        """Copies of whole blocks, by (device, block), that are not there."""
        p = matrix.rowmap.p
        found = [(d, b) for d in range(p) for b in range(p) if d != b]
        return found if matrix.hubs is not None else [pair for pair in found if pair not in matrix.copies]

    def dealing(self, key: Any, matrices: Sequence[Any]) -> Changed:
        """A round of such a loop, with these matrices, is captured inside."""
        return Changed(self.session.changes, self, _within=self.way(key, matrices) == DEALT)

    def way(self, key: Any, matrices: Sequence[Any]) -> str:
        """Which way captured rounds of such a loop, with these matrices, go."""
        found = self._paces.get(matrices[0], {}).get(key) if matrices and matrices[0] is not None else None
        return APART if found is None else found.way

    def waited(self, key: Any, matrices: Sequence[Any], pushed: MatrixStore, ran: Ran, alone: bool) -> bool:
        """Told of captured rounds of a loop in which devices may have waited for others. Whether these are to be
        captured anew, to go another way, once the time lost would have paid for that: dealing frontiers out, where it
        would have paid for copies of all blocks on all devices, too; on the first device alone; or as before, as that
        was no use. `pushed`: the matrix that frontiers are multiplied with, of those that the loop reads; `alone`:
        whether the first device may do it."""
        paces = self._paces.setdefault(matrices[0], {})
        pace = paces.setdefault(key, Pace())
        if pace.way == DEALT and self._lacking(pushed):  # memory was short
            del paces[key]
            return False
        gain = ran.waited * self.session.kernels.costs.push_edge - ran.rounds * self.policy.overhead

        def able(way: str) -> bool:
            if way == ALONE:
                return due and alone and self.session.replicas.fit([pushed], 0)
            return ran.way == APART and self._all_copied(gain, pushed) and due  # statements have use of copies, too

        if ran.rounds >= FEWEST and (gain > 0 or ran.way == ALONE) and self.policy.steal:
            due = pace.due(ran, len(self.session.devices))
            pace.hear(ran, able)
        return pace.anew(ran.way)

    def _all_copied(self, gain: float, matrix: MatrixStore) -> bool:
        """Whether all devices have copies of all blocks, now that so much more time was lost without them."""
        new = self._lacking(matrix)
        if matrix.hubs is not None or new and not self._paid(gain, new, matrix):
            return False
        return not self._lacking(matrix)

    def _paid(self, gain: float, new: list[tuple[int, int]], matrix: MatrixStore) -> bool:
        """Whether devices have copies of these blocks, by (device, block): once the time lost without them, so much
        more of it now, would have paid for them, and if there was room."""
        price = LAID * sum(matrix.lengths[b] for _, b in new)
        matrix.missed += gain
        if matrix.missed < price:
            return False
        if not self._copied(new, matrix.rowmap, matrix):
            matrix.missed = -AGAIN * max(price, gain)
            return False
        matrix.missed = max(matrix.missed - price, 0.0)  # 0 where copies were dropped to make room
        return True

    def _copied(self, new: list[tuple[int, int]], map: RowMap, matrix: MatrixStore) -> bool:
        """Whether there was room for blocks of others, which devices have from now on; else they get rows of hubs."""
        made = self._laid([(Task(d, b, 0, map.rows[b]), 0, matrix.lengths[b]) for d, b in new], map, matrix)
        if made is not None:
            matrix.copies.update(zip(new, made, strict=True))
            for (_, b), copy in zip(new, made, strict=True):
                if (longest := matrix.blocks[b].views.get("longest")) is not None:
                    copy.views["longest"] = longest
            return True
        if not matrix.copies:
            self._cache(map, matrix)
        return False

    def _cache(self, map: RowMap, matrix: MatrixStore) -> None:
        """Copies of the rows of hubs for all devices, if there is room for them."""
        found = in_room(lambda: hubs(self.session, map, matrix, self.policy.t4))
        if found is None:
            return
        pairs = [(d, b) for d in range(map.p) for b in range(map.p) if d != b and found.parts[b]]
        parts = [(Task(d, b, 0, map.rows[b]), 0, found.blocks[b].nnz) for d, b in pairs]
        made = self._laid(parts, map, matrix, found.blocks)
        if made is not None:
            matrix.copies.update(zip(pairs, made, strict=True))
            matrix.hubs = found._replace(blocks=[])

    def _made(self, decision: Decision, map: RowMap, matrix: MatrixStore) -> Shared | None:
        """The rows where they are computed; None where there is no room for them."""
        session = self.session
        offsets = in_room(lambda: session.over(map.tasks, entries_before(session, matrix), 0.0))
        if offsets is None:
            return None
        tasks = as_tasks(decision, offsets, map.rows)
        parts = [(task, *_entries(task, offsets)) for task in tasks]
        made = self._laid(parts, map, matrix)
        if made is None:
            return None
        session.loops.clear()  # they were captured before
        return Shared(tasks, dict(zip(tasks, made, strict=True)), decision, sum(self._taken(parts, map, matrix)))

    def _taken(self, parts: list[tuple[Task, int, int]], map: RowMap, matrix: MatrixStore) -> list[int]:
        """Bytes of each device for rows that others own."""
        taken, offset = [0] * len(self.session.devices), np.dtype(matrix.ptr).itemsize
        for task, first, last in parts:
            if task.device != map.tasks[task.block].device:
                taken[task.device] += matrix.entry_bytes * (last - first) + offset * (task.hi - task.lo + 1)
        return taken

    def _laid(
        self,
        parts: list[tuple[Task, int, int]],
        map: RowMap,
        matrix: MatrixStore,
        blocks: list[MatrixBlock] | None = None,
    ) -> list[MatrixBlock] | None:
        """The rows of tasks, which have the entries from a first to a last one, where they are computed; None where
        there is no room for them. `blocks`: others than the matrix's."""
        session, entries, blocks = self.session, {task: span for task, *span in parts}, blocks or matrix.blocks
        if not session.replicas.room(self._taken(parts, map, matrix)):
            return None
        rows = partial(session.over, list(entries), lambda task: self._rows(task, map, blocks, *entries[task]), 0.0)
        made: list[MatrixBlock] | None = in_room(rows)
        if made is not None:
            session.replicas.keep(matrix)
        return made

    def _rows(self, task: Task, map: RowMap, blocks: list[MatrixBlock], first: int, last: int) -> MatrixBlock:
        """The rows of a task, in the memory of its device."""
        block, owner = blocks[task.block], map.tasks[task.block].device
        offsets, cols, vals = block.indptr[task.lo : task.hi + 1], block.cols[first:last], block.vals
        vals = vals[first:last] if block.stride else vals[:1]
        if task.device != owner:
            offsets, cols, vals = self.session.brought(owner, task.device, (offsets, cols, vals))
        if first:
            offsets = offsets - offsets.dtype.type(first)
        n = task.hi - task.lo
        return MatrixBlock(n, offsets, cols, vals, block.stride, last - first, block.empty_rows)


def _stolen(shares: Shares, plain: float, cost: float) -> Decision:
    everyone = tuple(range(len(shares.edges)))
    return Decision(1, "steal", everyone, shares, shares.seconds, plain, shares.seconds + cost, cost)


def pull_seconds_each(given: Costs, map: RowMap, matrix: MatrixStore) -> list[float]:
    """Predicted seconds of each entry of each block, in a pull that looks at all of them."""
    pairs = zip(map.rows, matrix.lengths, strict=True)
    return [given.pull_edge + given.row * n / max(nnz, 1) for n, nnz in pairs]


def _entries(task: Task, offsets: list[np.ndarray]) -> tuple[int, int]:
    """The first entry of a task's rows, and the one after the last."""
    before = offsets[task.block]
    return int(before[task.lo // CHUNK]), int(before[-(-task.hi // CHUNK)])


def folds(balance: Any) -> bool:
    """Whether `gb.init(balance=...)` lets the first of several GPUs do by itself what others would only delay."""
    return balance.fold if isinstance(balance, Policy) else balance != "off"


def shared_by(session: Any, balance: Any) -> Sharing | None:
    """What `gb.init(balance=...)` asks for, of GPUs that read each other's memory; parts of one GPU share by a policy
    of one's own only, as they gain nothing."""
    first, own = session.devices[0], isinstance(balance, Policy)
    if session.kernels.kind != "cuda" or len(session.devices) == 1 or session.ranks is not None or balance == "off":
        return None
    reach = own if first.peers is None else first.peers.direct
    return Sharing(session, balance if own else Policy()) if reach else None
