"""Frontiers that are dealt out: of the rows of a block its owner keeps the first ones, and others take the next ones.
Where neighbours are near, what one reaches others do not (GUM's slices, Meng et al., section 4).

The host deals where it has counted the edges of each block (`Dealt`). In a captured round devices do it by themselves
(`DealtThere`). What that takes tells whether it goes on (`Trial`, `Pace`)."""

from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..balance.arbiter import Decision
from ..balance.problem import Shares
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from ..distribute.rowmap import WORD, RowMap, Task
from ..kernels.interface import COMPLEMENT, MASKED, Spec
from ..trace import counters
from .assign import grouping
from .context import Context
from .hubs import Hubs

# Ways of captured rounds: all devices push what they own, or deal frontiers out, or the first one does it all.
APART, DEALT, ALONE = "apart", "dealt", "alone"
FEWEST = 8  # rounds of a run that tell
TRIED, USE = 4, 0.98  # runs of each way, and the part of the time that others than the first may take
OTHERS = 2  # ways to capture, each of which takes as long as the first


class Dealt(NamedTuple):
    """A frontier that is dealt out. tasks: the rows that each device takes of a block; those of thieves come first, as
    they wait for what owners were given before."""

    session: Context
    matrix: MatrixStore
    # Of its blocks, by (device, block), also if they are dropped now; thieves without read rows where they lie.
    copies: dict[tuple[int, int], MatrixBlock]
    hubs: Hubs | None  # where these have rows of hubs alone: owners take the others of all rows
    tasks: Sequence[Task]
    decision: Decision
    read: bool  # whether values of the frontier are

    def hand(self, task: Task, source: VectorStore) -> tuple[MatrixBlock, VectorBlock]:
        """The rows of a block and the part of its frontier, in the memory of who takes it."""
        (d, b, lo, hi), session = task, self.session
        x, device, away = source.blocks[b], session.devices[d], d != b
        rows = self.copies.get((d, b), self.matrix.blocks[b]) if away else self.matrix.blocks[b]
        if away and rows is self.matrix.blocks[b]:
            device.reach(rows.cols)
        if not away and hi == x.n:
            return rows, x
        if not away and self.hubs is not None:
            return rows, self._beside(task, source)
        read = bool(self.read and x.stride)
        if x.slots is not None:
            cuts = device.put(np.array([lo, hi]))
            part = between(session, d, source, b, cuts, self.read)
            if away:
                session.account(d, 0, [(part.count, part.slots.itemsize + read * part.vals.itemsize)])
            return rows, part
        words, vals = _words(device, x.words, lo, hi), x.vals
        if not self.read:
            vals = session.pool.scalar(d, 0, x.vals.dtype)
        elif away:
            vals = device.where(x.vals, words) if read else source.blocks[d].vals
        if away:
            counted = read and session.watched is not None
            session.account(d, hi - lo >> 3, [(device.set_bits(words), vals.itemsize)] if counted else [])
        return rows, VectorBlock(x.n, vals, int(read), words)

    def _beside(self, task: Task, source: VectorStore) -> VectorBlock:
        """What is left to the owner where others take hubs of their rows alone."""
        assert self.hubs is not None
        (d, b, _, hi), session = task, self.session
        x, device, hubs = source.blocks[b], session.devices[d], self.hubs.rows[b]
        if x.slots is None:
            return VectorBlock(x.n, x.vals, x.stride, x.words & ~_words(device, hubs, hi, x.n))
        part, theirs = (
            between(session, d, source, b, device.put(np.array(cuts)), self.read) for cuts in ((0, hi), (hi, x.n))
        )
        kernel = session.kernels.get("mask_list", Spec(b=source.dtype, idx=part.slots.dtype.name))
        given = theirs.count, theirs.slots, theirs.vals, theirs.stride, hubs, MASKED | COMPLEMENT
        vals = part.vals if part.stride else device.empty(part.slots.size, x.vals.dtype)
        kernel(*given, part.slots, vals, part.count)
        return part


def between(session: Context, d: int, source: VectorStore, b: int, cuts: Any, reads: bool) -> VectorBlock:
    """The entries of block b of a list whose rows are between cuts, in the memory of device d."""
    x, device, one = source.blocks[b], session.devices[d], session.pool.scalar(d, 0, source.blocks[b].vals.dtype)
    read = bool(reads and x.stride)
    if d != b:
        device.reach(x.slots)
    slots, count = device.empty(x.slots.size, x.slots.dtype), device.zeros(1, np.int64)
    given, vals = (x.vals, device.empty(x.slots.size, x.vals.dtype)) if read else (one, one)
    kernel = session.kernels.get("between", Spec(b=source.dtype, idx=slots.dtype.name))
    kernel(x.count, x.slots, given, int(read), cuts, slots, vals, count)
    vals = source.blocks[d].vals if reads and not read else vals  # the one of all
    return VectorBlock(x.n, vals, int(read), None, slots, count)


def _words(device: Any, words: Any, lo: int, hi: int) -> Any:
    """Words of a device, those of rows lo .. hi - 1 from others, which may be another device's; lo is one's first."""
    found, these = device.zeros(words.size, words.dtype), slice(lo // WORD, -(-hi // WORD))
    device.copy(found[these], words[these])
    return found


class DealtThere(NamedTuple):
    """A list that devices deal out themselves. loads: on each of them the edges of all blocks' lists, with those of the
    groups of their rows."""

    session: Context
    matrix: MatrixStore
    loads: list[Any]
    least: int  # edges beyond the mean from which they do
    tasks: Sequence[Task]
    decision: None
    read: bool  # whether values of the frontier are

    def hand(self, task: Task, source: VectorStore) -> tuple[MatrixBlock, VectorBlock]:
        """The rows of a block and the part of its frontier, in the memory of who takes it."""
        (d, b, *_), session = task, self.session
        cuts, (shift, groups) = session.devices[d].zeros(2, np.int64), grouping(source.map)
        kernel = session.kernels.get("deal", Spec())
        kernel(groups, self.loads[d], source.map.p, b, d, self.least, shift, cuts)
        rows = self.matrix.blocks[b] if d == b else self.matrix.copies[d, b]
        return rows, between(session, d, source, b, cuts, self.read)


class Ran(NamedTuple):
    """Captured rounds: how many, seconds, edges that were pushed and that devices waited for, by which way, and seconds
    that it took to capture them, but for what was compiled."""

    rounds: int
    seconds: float
    edges: int
    waited: int
    way: str
    captured: float

    def stalled(self, p: int) -> float:
        """Seconds that each of p devices has waited for the one that pushes most, on average."""
        return self.seconds * self.waited / (self.waited + self.edges / p)


class Pace:
    """Which way captured rounds of a loop go: the others are on trial for some runs each, as soon as they may be, and
    what takes least for an edge is for good."""

    def __init__(self) -> None:
        self.way = APART
        self._lost, self._due = 0.0, False
        self._settled, self._anew = False, 0
        self._seconds: dict[str, list[float]] = {}  # an edge, of the last runs of each way

    def due(self, ran: Ran, p: int) -> bool:
        """Whether p devices have waited, while they went apart, as long as it takes to capture the other ways."""
        if ran.way == APART:
            self._lost += ran.stalled(p)
            self._due = self._due or self._lost >= OTHERS * ran.captured
        return self._due

    def hear(self, ran: Ran, able: Callable[[str], bool]) -> None:
        """Of rounds in which devices waited, or might have. `able`: whether a way that was not tried may be now."""
        known = self._seconds.setdefault(ran.way, [])
        known.append(ran.seconds / ran.edges)
        del known[:-TRIED]
        if ran.way != self.way:
            return
        counters.counted += not self._settled
        enough = len(known) == TRIED
        for way in (DEALT, ALONE) if enough else (DEALT,) if self.way == APART else ():
            if way not in self._seconds and able(way):
                self.way, self._settled = way, False
                return
        if enough and not self._settled:
            took = {way: median(known) / (1 if way == APART else USE) for way, known in self._seconds.items()}
            self.way, self._settled = min(took, key=lambda way: took[way]), True

    def anew(self, way: str) -> bool:
        """Whether rounds that went this way are to be captured anew, to go another one: a few of a loop may be kept."""
        self._anew += way != self.way
        return way != self.way and self._anew <= 2 * TRIED


class Trial:
    """Whether something is done, as statements that deal frontiers out: it is, as is predicted, and is not, for so many
    times each, and what took less is for good."""

    def __init__(self, patience: float) -> None:
        self.on, self.settled, self._patience = True, patience == inf, patience
        self._took: dict[bool, list[float]] = {True: [], False: []}  # as `hear` is told, of the last ones of each

    def took(self, on: bool) -> float | None:
        """What it took with it, or without, as `hear` is told; None if nobody knows."""
        return median(self._took[on]) if self._took[on] else None

    def hear(self, on: bool, took: float) -> None:
        """With it, or without, it took so long; or so many times what is predicted without."""
        if self.settled:
            return
        counters.counted += 1
        self._took[on].append(took)
        del self._took[on][: -int(self._patience)]
        short = [way for way, known in self._took.items() if len(known) < self._patience]
        self.settled = not short
        self.on = short[0] if short else median(self._took[True]) < USE * median(self._took[False])


def of_hubs(shares: Shares, parts: Sequence[float], edge: float) -> tuple[Shares, np.ndarray]:
    """Shares of which thieves take no more than rows of hubs have; and all edges of the places that they look at."""
    edges, places = shares.edges.astype(float), shares.edges.astype(float)
    for b, part in enumerate(parts):
        load, away = edges[b].sum(), edges[b].sum() - edges[b, b]
        edges[b] *= min(1.0, part * load / max(away, 1))
        edges[b, b] = 0
        places[b] = edges[b] / max(part, 1e-9)
        edges[b, b], places[b, b] = load - edges[b].sum(), max(load - places[b].sum(), 0.0)
    edges = np.rint(edges).astype(np.int64)
    return Shares(edges, edge * float(edges.sum(0).max()), shares.bound), places


def slices(shares: np.ndarray, before: Sequence[np.ndarray], map: RowMap) -> list[Task]:
    """The rows of each block that each device takes, by how many edges it is to have, and the edges before groups of
    rows and after the last one; thieves come first. Within a group edges are taken to lie evenly."""
    others, own = [], []
    shift, _ = grouping(map)
    for b, (edges, sums, n) in enumerate(zip(shares, before, map.rows, strict=True)):
        takers = [b, *(d for d in range(len(edges)) if d != b and edges[d])]
        upto = np.cumsum(edges[takers]) * (sums[-1] / max(edges.sum(), 1))
        cuts = np.interp(upto, sums, np.arange(len(sums)) << shift).astype(np.int64) // WORD * WORD
        cuts = np.minimum([0, *cuts[:-1], n], n).tolist()
        tasks = [Task(d, b, lo, hi) for d, lo, hi in zip(takers, cuts, cuts[1:], strict=False)]
        own.append(tasks[0])
        others += [task for task in tasks[1:] if task.lo < task.hi]
    return others + own
