"""Who computes what of the products of a session: frontiers are tallied, `gbgpu.balance` decides, its shares become
tasks.

Only among devices that work in one memory and end a step together, which are CPU ones: what a thief reads is as near as
its own, and the host sees how long a round took. For GPUs see `sharing.py`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..balance.arbiter import Arbiter, Decision, Policy
from ..balance.features import BINS, Tally
from ..balance.models import costs
from ..balance.slices import slices
from ..balance.topology import Topology, shared
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from ..distribute.rowmap import RowMap, Task
from ..errors import NotImplementedException, message
from ..kernels.interface import COMPLEMENT, TALLY, TRACE, XFULL, XLIST, Costs, Spec
from ..trace import compiling, now
from .context import Context

_MOST = 256  # arbiters that a session keeps
GROUPS = 11  # bits of the number of a group of rows
CHUNK = 64  # places of a frontier, lists or rows, between which it may be cut
OURS = Policy(fold=False, overhead=100e-6)  # small steps run on the caller's thread anyway


def tallied(session: Context, x: VectorStore, held: MatrixStore) -> list[np.ndarray]:
    """Of the frontier of each block, the rows of `held` that x has, the edges before each chunk and after the last."""
    if x.form == "full":
        return _whole.get(held) or _whole.setdefault(held, _tallied(session, x, held))
    return _tallied(session, x, held)


_whole: WeakKeyDictionary[MatrixStore, list[np.ndarray]] = WeakKeyDictionary()


def _tallied(session: Context, x: VectorStore, held: MatrixStore) -> list[np.ndarray]:
    counted = counting(session, x, held)

    def tallied(task: Task) -> np.ndarray:
        found = counted(task.block, TALLY, -(-places(x.blocks[task.block]) // CHUNK) + 1)
        found[-1] = found[0]
        return found[1:]

    rows = x.map.n if x.form == "full" else session.known_count(x) or x.map.n
    return session.over(x.map.tasks, tallied, rows * session.kernels.costs.row / x.map.p)


def tally(session: Context, x: VectorStore, matrix: MatrixStore) -> list[Tally]:
    """Of the frontier of each block, the rows of `matrix` that x has, what decisions depend on; CPU devices only."""
    counted = counting(session, x, matrix)
    found = (counted(b, TRACE, BINS) for b in range(len(x.blocks)))
    return [Tally(int(one[1:].sum()), int(one[0]), one[1:]) for one in found]


def tally_masked(session: Context, mask: list[tuple[Any, int]] | None, matrix: MatrixStore) -> list[Tally]:
    """The same for the rows that a mask lets through."""
    allowed = []
    for b, block in enumerate(matrix.blocks):
        words, flags = mask[b] if mask else (None, 0)
        if words is not None:
            words = ~words if flags & COMPLEMENT else words.copy()
            if block.n & 63:
                words[-1] &= (1 << (block.n & 63)) - 1
        allowed.append(VectorBlock(block.n, None, 0, words))
    form = "bitmap" if mask else "full"
    return tally(session, VectorStore(matrix.rowmap, matrix.dtype, form, True, allowed), matrix)


def grouping(map: RowMap) -> tuple[int, int]:
    """Groups of the rows of a block whose edges are counted, of whole words: how many bits of a row's number are its
    place in one, and how many there are, of the longest block."""
    last = max(*map.rows, 1) - 1
    shift = max(last.bit_length() - GROUPS, 6)
    return shift, (last >> shift) + 1


def counting(session: Context, x: VectorStore, held: MatrixStore, shift: int | None = None) -> Callable[..., Any]:
    """counted(b, flags=0, room=0): what `frontier_edges` tells of block b of x, the rows of `held` that it has:
    the sum of their lengths and `room` numbers more, on its device. `shift`: what `row_edges` tells."""
    kernel = session.kernels.get("frontier_edges" if shift is None else "row_edges", Spec(ptr=held.ptr, idx=held.idx))
    more = () if shift is None else (shift,)
    form = {"list": XLIST, "full": XFULL}.get(x.form, 0)

    def counted(b: int, flags: int = 0, room: int = 0) -> Any:
        block, unused, found = x.blocks[b], session.placeholders(b), session.devices[b].zeros(1 + room, np.int64)
        slots = unused.slots(held.idx) if block.slots is None else block.slots
        words = unused.words if block.words is None else block.words
        count = found if block.count is None else block.count
        kernel(block.n, count, slots, words, form | flags, held.blocks[b].indptr, *more, found)
        return found

    return counted


def places(block: VectorBlock) -> int:
    """Entries of a listed block, else its rows: what tasks of a push count."""
    return block.n if block.slots is None else int(block.count[0])


class Assigner:
    """The decisions of a session. An arbiter for each kind of product, as what an edge takes differs."""

    def __init__(self, session: Context, policy: Policy, links: Topology):
        self.session, self.policy, self.links = session, policy, links
        self.arbiters: dict[tuple[str, Spec], Arbiter] = {}
        self.under_way: tuple[Arbiter, Decision, float] | None = None  # and when it began
        self._kept: WeakKeyDictionary[MatrixStore, tuple[bytes, list[Task]]] = WeakKeyDictionary()

    def cares(self, edges: float) -> bool:
        """Whether a push of about so many edges may be worth a decision."""
        return edges * self.session.kernels.costs.push_edge >= self.policy.overhead

    def push(self, spec: Spec, x: VectorStore, matrix: MatrixStore, found: list[np.ndarray] | None) -> Sequence[Task]:
        """Tasks of a push: entries of the blocks of a listed frontier, else rows."""
        if found is None:
            return x.map.tasks
        given = self.session.kernels.costs
        edge = given.push_first if spec.op.monoid.is_any else given.push_edge
        decision = self._decided(("push", spec), [edge] * x.map.p, [int(one[-1]) for one in found], matrix)
        if decision is None or decision.shares is None:
            return x.map.tasks
        return as_tasks(decision, found, [places(block) for block in x.blocks])

    def pull(
        self, spec: Spec, map: RowMap, matrix: MatrixStore, probed: tuple[list[int], float] | None
    ) -> Sequence[Task]:
        """Tasks of a pull. `probed`: rows of each block that are looked at, and entries of each, as a guess; None: all
        rows and entries."""
        given, kind = self.session.kernels.costs, ("pull", spec)
        if probed is not None:
            rows, length = probed
            decision = self._decided(kind, [given.row + length * given.pull_edge] * map.p, rows, matrix)
            if decision is None or decision.shares is None:
                return map.tasks
            return as_tasks(decision, [_evenly(n, size) for n, size in zip(rows, map.rows, strict=True)], map.rows)
        decision = self._decided(kind, pull_seconds_each(given, map, matrix), matrix.lengths, matrix)
        if decision is None or decision.shares is None:
            return map.tasks
        cut = decision.shares.edges.tobytes()
        kept = self._kept.get(matrix)
        if kept is None or kept[0] != cut:
            before = [before_chunks(np, block) for block in matrix.blocks]
            kept = self._kept[matrix] = cut, as_tasks(decision, before, map.rows)
        return kept[1]

    def _decided(
        self, kind: tuple[str, Spec], edge_seconds: list[float], loads: Sequence[int], matrix: MatrixStore
    ) -> Decision | None:
        """None where nothing can be gained, by a glance."""
        spent = [each * load for each, load in zip(edge_seconds, loads, strict=True)]
        policy = self.policy
        if max(spent) - sum(spent) / len(spent) < policy.overhead and not policy.fold:
            return None
        arbiter = self.arbiters.get(kind)
        width = matrix.entry_bytes
        if arbiter is None:
            arbiter = self._made(kind, float(width))
        start = now()
        decision = arbiter.decide(costs(edge_seconds, self.links, width), np.array(loads))
        self.under_way = arbiter, decision, now() if decision.action == "leave" else start
        return decision

    def _made(self, kind: tuple[str, Spec], width: float) -> Arbiter:
        if len(self.arbiters) >= _MOST:  # each anonymous function makes products of its own
            self.arbiters.clear()
        made = self.arbiters[kind] = Arbiter(self.policy, self.links, width, log=deque(maxlen=16))
        return made

    def done(self) -> Decision | None:
        """The step whose tasks were asked for is over; what was decided, if anything."""
        if self.under_way is None:
            return None
        (arbiter, decision, start), self.under_way = self.under_way, None
        spent = now() - start
        apart = compiling.seconds(start) if compiling.last > start else 0.0  # to ask takes longer than thin rounds
        # What is left beside compiling is no measure: kernels ran uncompiled before, and devices waited for each other.
        return arbiter.observe(decision, max(spent - apart, 0.0), learn=not apart)


def pull_seconds_each(given: Costs, map: RowMap, matrix: MatrixStore) -> list[float]:
    """Predicted seconds of each entry of each block, in a pull that looks at all of them."""
    pairs = zip(map.rows, matrix.lengths, strict=True)
    return [given.pull_edge + given.row * n / max(nnz, 1) for n, nnz in pairs]


def before_chunks(xp: Any, block: MatrixBlock) -> Any:
    """Entries of a block before each chunk of its rows, and after the last one: an array of the module xp."""
    return xp.concatenate([block.indptr[:-1:CHUNK], block.indptr[-1:]]).astype(np.int64)


def _evenly(count: int, rows: int) -> np.ndarray:
    """So many rows among those of a block, before each of its chunks and after the last."""
    chunks = -(-rows // CHUNK)
    return count * np.arange(chunks + 1) // max(chunks, 1)


def as_tasks(decision: Decision, before: list[np.ndarray], sizes: Sequence[int]) -> list[Task]:
    """Shares as tasks, a device's own block first; every device has one, if only for what steps leave on each."""
    assert decision.shares is not None
    own, others = [], []
    for b, (edges, starts, size) in enumerate(zip(decision.shares.edges, before, sizes, strict=True)):
        bounds = CHUNK * slices(starts, edges) if edges.any() and edges[b] < starts[-1] else None
        if bounds is None:
            own.append(Task(b, b, 0, size))
            continue
        for d, (lo, hi) in enumerate(np.minimum(bounds, size).tolist()):
            if d == b:
                own.append(Task(b, b, lo, hi) if lo < hi else Task(b, b, 0, 0))
            elif lo < hi:
                others.append(Task(d, b, lo, hi))
    return own + others


def chosen(session: Context, balance: Any) -> Assigner | None:
    """What `gb.init(balance=...)` asks for."""
    if balance not in ("auto", "off") and not isinstance(balance, Policy):
        raise TypeError(message('"auto", "off" or a gb.balance.Policy', repr(balance)))
    here = all(device.kind == "cpu" for device in session.devices)
    if isinstance(balance, Policy) and session.ranks is not None:
        raise NotImplementedException(message("devices of one process for a policy of one's own", repr(session)))
    if balance == "off" or not here or len(session.devices) == 1:
        return None
    return Assigner(session, OURS if balance == "auto" else balance, shared(len(session.devices)))
