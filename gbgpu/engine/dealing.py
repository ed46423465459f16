"""Frontiers that are dealt out like cards: so many of every 64 places of a block's list or bitmap go to each device.

The host deals where it has counted the edges of each block (`Dealt`). In a captured round devices do it by themselves
(`DealtThere`), for a trial at first (`Pace`)."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ..balance.arbiter import Decision
from ..balance.problem import Shares
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from ..distribute.partition import WORD, Task
from ..kernels.interface import COMPLEMENT, MASKED, Spec
from .context import Context
from .hubs import Hubs

# Ways of captured rounds: all devices push what they own, or deal frontiers out, or the first one does it all.
APART, DEALT, ALONE = "apart", "dealt", "alone"
FEWEST = 8  # rounds of a run that tell
TRIED, USE = 4, 0.98  # runs of each way, and the part of the time that others than the first may take
ALL = 2**64 - 1  # the bits of all places
# One place after the other goes to another device: multiples of this, modulo 64, are spread evenly over them, however
# many are taken (64 divided by the golden ratio, and odd).
SPREAD = 39


class Dealt(NamedTuple):
    """A frontier that is dealt out. mine: bits of the places, of every 64 of a block, that a device takes, by the
    tasks; those of thieves come first, as they wait for what owners were given before."""

    session: Context
    matrix: MatrixStore
    # Of its blocks, by (device, block), also if they are dropped now; thieves without read rows where they lie.
    copies: dict[tuple[int, int], MatrixBlock]
    hubs: Hubs | None  # where these have rows of hubs alone: owners take the others of all places
    mine: dict[Task, int]
    decision: Decision
    read: bool  # whether values of the frontier are

    @property
    def tasks(self) -> Sequence[Task]:
        return list(self.mine)

    def hand(self, task: Task, source: VectorStore) -> tuple[MatrixBlock, VectorBlock]:
        """The rows of a block and the part of its frontier, in the memory of who takes it."""
        (d, b, *_), mine, session = task, self.mine[task], self.session
        x, device, away = source.blocks[b], session.devices[d], d != b
        rows = self.copies.get((d, b), self.matrix.blocks[b])
        if away and rows is self.matrix.blocks[b]:
            device.reach(rows.cols)
        if mine == ALL and not away:
            return rows, x
        if self.hubs is not None and not away:
            return rows, self._beside(task, source)
        read = bool(self.read and x.stride)
        vals = source.blocks[d].vals if self.read else session.pool.scalar(d, 0, x.vals.dtype)
        if x.slots is None:
            words, slots, count = device.deal_words(x.words, mine), None, None
            if read:
                vals = device.where(x.vals, words) if away else x.vals
        else:
            words, (slots, count) = None, device.deal(x.slots, x.count, mine)
            if read:
                vals = device.deal(x.vals, x.count, mine)[0]
        if away:
            each = read * vals.itemsize
            if slots is not None:
                session.account(d, 0, [(count, slots.itemsize + each)])
            else:
                counted = read and session.watched is not None
                moved = [(device.set_bits(words), each)] if counted else []
                session.account(d, words.nbytes * mine.bit_count() // WORD, moved)
        return rows, VectorBlock(x.n, vals, int(read), words, slots, count)

    def _beside(self, task: Task, source: VectorStore) -> VectorBlock:
        """What is left to the owner where others take hubs of their places alone."""
        assert self.hubs is not None
        x, device, mine = source.blocks[task.block], self.session.devices[task.device], self.mine[task]
        rows, theirs = self.hubs.rows[task.block], ALL ^ mine
        if x.slots is None:
            return VectorBlock(x.n, x.vals, x.stride, x.words & ~device.deal_words(rows, theirs))
        (slots, count), (others, number) = (device.deal(x.slots, x.count, bits) for bits in (mine, theirs))
        given, stride = self.session.pool.scalar(task.device, 0, x.vals.dtype), 0
        vals = device.empty(slots.size, x.vals.dtype)
        if self.read and x.stride:
            vals, given = (device.deal(x.vals, x.count, bits)[0] for bits in (mine, theirs))
            stride = 1
        kernel = self.session.kernels.get("mask_list", Spec(b=source.dtype, idx=slots.dtype.name))
        kernel(number, others, given, stride, rows, MASKED | COMPLEMENT, slots, vals, count)
        return VectorBlock(x.n, vals if stride else x.vals, stride, None, slots, count)


class DealtThere(NamedTuple):
    """A list that devices deal out themselves. loads: on each of them the edges of all blocks' lists."""

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
        x, device = source.blocks[b], session.devices[d]
        one, room = session.pool.scalar(d, 0, x.vals.dtype), x.slots.size
        read = bool(self.read and x.stride)
        slots, count = device.empty(room, x.slots.dtype), device.zeros(1, np.int64)
        given, vals = (x.vals, device.empty(room, x.vals.dtype)) if read else (one, one)
        kernel = session.kernels.get("deal", Spec(b=source.dtype, idx=slots.dtype.name))
        who = self.loads[d], len(self.loads), b, d, self.least
        kernel(x.count, x.slots, given, int(read), *who, slots, vals, count)
        rows = self.matrix.blocks[b] if d == b else self.matrix.copies[d, b]
        vals = source.blocks[d].vals if self.read and not read else vals  # the one of all
        return rows, VectorBlock(x.n, vals, int(read), None, slots, count)


class Ran(NamedTuple):
    """Captured rounds: how many, seconds, edges that were pushed and that devices waited for, and by which way."""

    rounds: int
    seconds: float
    edges: int
    waited: int
    way: str


class Pace:
    """Which way captured rounds of a loop go: the others are on trial for some runs each, as soon as they may be, and
    what takes least for an edge is for good."""

    def __init__(self) -> None:
        self.way = APART
        self._settled, self._anew = False, 0
        self._seconds: dict[str, list[float]] = {}  # an edge, of the last runs of each way

    def hear(self, ran: Ran, able: Callable[[str], bool]) -> None:
        """Of rounds in which devices waited, or might have. `able`: whether a way that was not tried may be now."""
        known = self._seconds.setdefault(ran.way, [])
        known.append(ran.seconds / ran.edges)
        del known[:-TRIED]
        if ran.way != self.way:
            return
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


def places(shares: np.ndarray, rows: Sequence[int]) -> dict[Task, int]:
    """Bits of the places, of every 64 of each block, that each device takes, by the edges of these."""
    others, own = {}, {}
    for b, (edges, n) in enumerate(zip(shares, rows, strict=True)):
        cuts = [0] * (len(edges) + 1)
        if edges.any():
            cuts[1:] = np.rint(WORD * np.cumsum(edges) / edges.sum()).astype(int).tolist()
        for d, (low, high) in enumerate(zip(cuts, cuts[1:], strict=False)):
            bits = sum(1 << SPREAD * k % WORD for k in range(low, high))
            if d == b:
                own[Task(d, b, 0, n)] = bits if edges.any() else ALL
            elif bits:
                others[Task(d, b, 0, n)] = bits
    return others | own
