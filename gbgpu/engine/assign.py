"""Who computes what of the products of a session: frontiers are tallied, `gbgpu.balance` decides, its shares become
tasks.

Only among devices that work in one memory and end a step together, which are CPU ones: what a thief reads is as near as
its own, and the host sees how long a round took. For GPUs see `sharing.py`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..balance.arbiter import WORTH, Arbiter, Decision, Policy
from ..balance.features import BINS, Tally
from ..balance.models import Polynomial, costs, traffic
from ..balance.slices import slices, slices_of_groups
from ..balance.steal_milp import solve_exact
from ..balance.topology import Topology, shared
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from ..distribute.rowmap import WORD, RowMap, Task
from ..errors import InvalidValue, NotImplementedException, message
from ..kernels.interface import COMPLEMENT, TALLY, TRACE, XFULL, XLIST, Spec
from ..trace import compiling, now
from .context import Context

_MOST = 256  # arbiters that a session keeps
GROUPS = 11  # bits of the number of a group of rows
CHUNK = 64  # places of a frontier, lists or rows, whose edges are summed
OURS = Policy(fold=False, overhead=100e-6)  # small steps run on the caller's thread anyway


class Frontier(NamedTuple):
    """What decisions depend on of the frontier of a block."""

    before: np.ndarray  # edges before each chunk of its places, and after the last one
    tally: Tally


def tallied(session: Context, x: VectorStore, held: MatrixStore) -> list[Frontier]:
    """The frontier of each block: the rows of `held` that x has. CPU devices only."""
    if x.form == "full":
        pairs = zip(held.blocks, whole(held), strict=True)
        return [Frontier(before_chunks(np, block), tally) for block, tally in pairs]
    counted, turned = counting(session, x, held), by_columns(held)
    arriving = None if turned is None else counting(session, x, turned)

    def work(task: Task) -> Frontier:
        b, room = task.block, -(-places(x.blocks[task.block]) // CHUNK)
        found, into = counted(b, TALLY | TRACE, room + BINS), None
        if arriving is not None:
            into = _tally(arriving(b, TRACE, BINS))
        return Frontier(np.append(found[1 : 1 + room], found[0]), _tally(found, into))

    rows = session.known_count(x) or x.map.n
    return session.device_set.over(x.map.tasks, work, rows * session.kernels.costs.row / x.map.p)


def _tally(found: np.ndarray, into: Tally | None = None) -> Tally:
    """The tally that `frontier_edges` counts by TRACE."""
    histogram = found[-BINS:]
    return Tally(int(histogram.sum()), int(found[0]), histogram, into)


def by_columns(matrix: MatrixStore) -> MatrixStore | None:
    """The transpose of a square matrix, whose rows tell in-degrees. None if the matrix is symmetric, so that they are
    the degrees, or if no transpose was made yet, as it would cost more than a better prediction saves."""
    found = None if matrix.symmetric else matrix.transposed
    return found if found is not None and found.rowmap is matrix.rowmap else None


def whole(matrix: MatrixStore) -> list[Tally]:
    """The tally of all rows of each block, kept with the matrix."""
    stores = [one for one in (matrix, by_columns(matrix)) if one is not None]
    of, found = _whole.get(matrix, (0, []))
    if of != len(stores):
        lengths = [[np.diff(block.indptr) for block in one.blocks] for one in stores]
        found = [Tally.of(*each) for each in zip(*lengths, strict=True)]
        _whole[matrix] = len(stores), found
    return found


_whole: WeakKeyDictionary[MatrixStore, tuple[int, list[Tally]]] = WeakKeyDictionary()  # with in-degrees, if 2


def tally_masked(session: Context, mask: list[tuple[Any, int]] | None, matrix: MatrixStore) -> list[Tally]:
    """The tally of the rows of each block that a mask lets through."""
    if not mask:
        return whole(matrix)
    allowed = []
    for b, block in enumerate(matrix.blocks):
        words, flags = mask[b]
        words = ~words if flags & COMPLEMENT else words.copy()
        if block.n & 63:
            words[-1] &= (1 << (block.n & 63)) - 1
        allowed.append(VectorBlock(block.n, None, 0, words))
    rows = VectorStore(matrix.rowmap, matrix.dtype, "bitmap", True, allowed)
    return [one.tally for one in tallied(session, rows, matrix)]


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
        self.near = bool((links.bandwidth == np.inf).all())  # one memory: links bear anything
        if policy.solver == "scip":
            solve_exact(np.ones((links.n, links.n)), [1] * links.n)  # loaded before a round waits for it
        self.arbiters: dict[tuple[str, Spec], Arbiter] = {}
        self.under_way: tuple[Arbiter, Decision, float] | None = None  # and when it began
        self._kept: WeakKeyDictionary[MatrixStore, tuple[bytes, list[Task]]] = WeakKeyDictionary()
        self._edges: WeakKeyDictionary[MatrixStore, tuple[Sequence[Tally], np.ndarray]] = WeakKeyDictionary()

    def cares(self, edges: float) -> bool:
        """Whether a push of about so many edges may be worth a decision."""
        return edges * self.session.kernels.costs.push_edge >= self.policy.overhead

    def push(self, spec: Spec, x: VectorStore, matrix: MatrixStore, found: list[Frontier] | None) -> Sequence[Task]:
        """Tasks of a push: entries of the blocks of a listed frontier, else rows."""
        if found is None:
            return x.map.tasks
        given = self.session.kernels.costs
        flat = given.push_first if spec.op.monoid.is_any else given.push_edge
        loads = [one.tally.edges for one in found]
        decision = self._decided("push", spec, matrix, loads, flat, lambda: [one.tally for one in found])
        if decision is None or decision.shares is None:
            return x.map.tasks

        def lengths(b: int, lo: int, hi: int) -> np.ndarray:
            indptr, block = matrix.blocks[b].indptr, x.blocks[b]
            if block.slots is not None:
                rows = block.slots[lo:hi]
                return indptr[rows + 1] - indptr[rows]
            found = np.diff(indptr[lo : hi + 1])
            return found if block.words is None else found * bits_of(block.words[lo // WORD :], hi - lo)

        return as_tasks(decision, [one.before for one in found], [places(block) for block in x.blocks], lengths)

    def pull(
        self,
        spec: Spec,
        map: RowMap,
        matrix: MatrixStore,
        probed: tuple[list[int], float] | None,
        mask: list[tuple[Any, int]] | None,
    ) -> Sequence[Task]:
        """Tasks of a pull. `probed`: how many rows of each block are looked at, and the predicted entries of a row;
        None: all rows and entries. `mask`: its bits and flags, of each block."""
        loads, length = probed or (matrix.lengths, 1.0)
        if probed and mask is None:  # the statement's mask comes after its pull, which looks at all rows
            loads = map.rows
        row = self.session.kernels.costs.row if probed else 0.0
        flat = self.session.kernels.costs.pull_edge
        decision = self._decided("pull", spec, matrix, loads, flat, lambda: whole(matrix), row, length)
        if decision is None or decision.shares is None:
            return map.tasks
        if probed:
            looked: list[np.ndarray] = [np.ones(n, np.uint8) for n in map.rows]
            if mask:
                pairs = zip(mask, map.rows, strict=True)
                looked = [bits_of(words, n) ^ (flags & COMPLEMENT != 0) for (words, flags), n in pairs]
            sums = (np.add.reduceat(one, np.arange(0, len(one), CHUNK), dtype=np.int64) for one in looked)
            before = [np.concatenate([[0], np.cumsum(one)]) for one in sums]
            return as_tasks(decision, before, map.rows, lambda b, lo, hi: looked[b][lo:hi])
        cut = decision.shares.edges.tobytes()
        kept = self._kept.get(matrix)
        if kept is None or kept[0] != cut:
            before = [before_chunks(np, block) for block in matrix.blocks]
            found = as_tasks(
                decision, before, map.rows, lambda b, lo, hi: np.diff(matrix.blocks[b].indptr[lo : hi + 1])
            )
            kept = self._kept[matrix] = cut, found
        return kept[1]

    def _decided(
        self,
        direction: str,
        spec: Spec,
        matrix: MatrixStore,
        loads: Sequence[int],
        flat: float,
        tallies: Callable[[], Sequence[Tally]],
        row: float = 0.0,
        length: float = 1.0,
    ) -> Decision | None:
        """Who computes a round. None if flat costs show that nothing can be gained: learnt ones are asked in long
        rounds only, as features take as long as short ones. loads: edges, or rows of `length` edges that take `row`
        seconds besides."""
        policy, most = self.policy, max(loads) * (row + length * flat)
        mean = sum(loads) / len(loads) * (row + length * flat)
        learnt = policy.costs == "learnt" and WORTH * most >= policy.overhead
        if most - mean < policy.overhead and not policy.fold and not learnt:
            return None
        arbiter = self.arbiters.get((direction, spec)) or self._made((direction, spec), float(matrix.entry_bytes))
        start = now()
        edge = self._learnt(direction, matrix, tallies()) if policy.costs == "learnt" else np.full(len(loads), flat)
        found, width = row + length * edge, length * matrix.entry_bytes
        limits = None if self.near else traffic(self.links, width)
        decision = arbiter.decide(costs(found, self.links, width), np.array(loads), limits)
        self.under_way = arbiter, decision, now() if decision.action == "leave" else start
        return decision

    def _learnt(self, direction: str, matrix: MatrixStore, tallies: Sequence[Tally]) -> np.ndarray:
        """Seconds an edge of each block, by the shipped model. Those of whole blocks are kept."""
        kept = self._edges.get(matrix)
        if kept is not None and kept[0] is tallies:
            return kept[1]
        found = _model(direction)(tallies)
        if direction == "pull":
            self._edges[matrix] = tallies, found
        return found

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


@cache
def _model(direction: str) -> Polynomial:
    return Polynomial.load(f"cpu-{direction}")


def before_chunks(xp: Any, block: MatrixBlock) -> Any:
    """Entries of a block before each chunk of its rows, and after the last one: an array of the module xp."""
    return xp.concatenate([block.indptr[:-1:CHUNK], block.indptr[-1:]]).astype(np.int64)


def entries_before(session: Context, matrix: MatrixStore) -> Callable[[Task], np.ndarray]:
    """What gives entries before each chunk of a block's rows, and after the last one, on the host."""

    def before(task: Task) -> np.ndarray:
        device = session.devices[task.device]
        found: np.ndarray = device.get(before_chunks(device.xp, matrix.blocks[task.block]))
        return found

    return before


def bits_of(words: np.ndarray, n: int) -> np.ndarray:
    """The first n bits of words, each as a byte."""
    return np.unpackbits(words[: -(-n // WORD)].view(np.uint8), count=n, bitorder="little")


def as_tasks(
    decision: Decision,
    before: list[np.ndarray],
    sizes: Sequence[int],
    weights: Callable[[int, int, int], np.ndarray] | None = None,
) -> list[Task]:
    """Shares as tasks, a device's own block first; every device has one, if only for what steps leave on each.

    before: edges of each block before each chunk of its places, and after the last one. weights(b, lo, hi): edges of
    each of places lo .. hi - 1 of block b. Without weights, blocks are cut between chunks.
    """
    assert decision.shares is not None
    own, others = [], []
    for b, (edges, sums, size) in enumerate(zip(decision.shares.edges, before, sizes, strict=True)):
        if edges[b] == edges.sum():
            own.append(Task(b, b, 0, size))
            continue
        if weights is None:
            bounds = np.minimum(CHUNK * slices(sums, edges), size).tolist()
        else:
            bounds = slices_of_groups(sums, edges, CHUNK, size, partial(weights, b))
        for d, (lo, hi) in enumerate(bounds):
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
    policy, n = OURS if balance == "auto" else balance, len(session.devices)
    links = policy.links or session.simulated or shared(n)
    if links.n != n:
        raise InvalidValue(message(f"links of {n} devices in a policy", links.n))
    return Assigner(session, policy, links)
