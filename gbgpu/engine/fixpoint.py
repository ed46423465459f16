"""Relaxation to a fixpoint without rounds: devices extend vertices as they improve, window by window (kernels of kind
relax). Where a matrix is spread over several devices, the first one has a replica of it, and does all the work.

Where it has no room for a replica, and in sessions of several processes, each device extends its own vertices. When all
have done what lies within the limit, they tell owners which of their vertices improved (`_tell_owners`). A device keeps
the best value that it found for each vertex of others, and tells only of better ones.

A kernel does a slice of the work and returns: in between, others have their turn, and Ctrl-C comes through. The vector
is written once, at the end, so that what interrupts it leaves it as it was.

Source: Ben-Nun, Sutton, Pai, Pingali, "Groute: An Asynchronous Multi-GPU Programming Model for Irregular Computations",
PPoPP 2017: worklists of owners, and what does not improve a copy of a remote value is not sent.
"""

from functools import partial
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from ..device.remote import AWAY
from ..distribute.blocks import VectorBlock, VectorStore
from ..distribute.needs import Bins
from ..errors import DeviceError, InvalidValue, in_room, message
from ..kernels import interface as k
from ..kernels.interface import PROGRESS, Spec
from ..language.expr import new_like
from ..semiring._algebra import Monoid
from ..trace import Record, counters, emit, listeners, now
from .loop.limits import measure
from .matrix.csr import whole_vector
from .moving import handed_out, moved
from .near import exchanged, near_vector
from .run.steps import copied

THIN, LONG = 8, 128  # entries a row, on average and at most, up to which rows are short


class Done(NamedTuple):
    """What came of it: updates, windows, the vector of what still waits (None: nothing), why it was left, and whether
    that is because many vertices were near, so that it may go on once there are few."""

    updates: int
    windows: int
    waiting: Any
    why: str
    wide: bool


def weights(session: Any, matrix: Any) -> tuple[Any, Any, float]:
    """The least weight of a matrix, the greatest, and their mean; 0 where there is none. They are kept with it."""
    sums = session.matrix_store(matrix).sums
    if "weights" not in sums:
        reduced = [matrix.reduce_scalar(Monoid.registry[name]).new().value for name in ("min", "max")]
        total = matrix.reduce_scalar(Monoid.registry["plus"]["FP64"]).new().value
        least, most = (0 if value is None else int(value) if matrix.dtype.kind == "b" else value for value in reduced)
        sums["weights"] = least, most, (total or 0.0) / max(matrix.nvals, 1)
    found: tuple[Any, Any, float] = sums["weights"]
    return found


def window_means(session: Any, matrix: Any, alike: bool) -> float | None:
    """Mean weights that a window is wide, if all weights are `alike` or not; None: no windows."""
    relaxing = session.kernels.relaxing
    means: float | None = relaxing.windows[alike]
    return means / max(matrix.nvals / matrix.nrows, 1) if means and relaxing.by_degree else means


def free(session: Any, matrix: Any) -> bool:
    """Whether going without rounds is possible and predicted to take less time: on few devices, or if all rows are
    short, as rounds then are many and of few vertices."""
    store = session.matrix_store(matrix)
    return _rounds_only(session) is None and _pays(session, store, _is_spread(session, store))


def _pays(session: Any, store: Any, spread: bool) -> bool:
    if spread and not rounds_are_long(session):
        return False
    if session.ranks is None and store.rowmap.p <= session.kernels.relaxing.alone:
        return True
    return store.nvals <= THIN * store.rowmap.n and _longest(session, store) < LONG


def _longest(session: Any, store: Any) -> int:
    """Entries of the longest row of a matrix, which are kept with it."""
    if "longest" not in store.sums:
        measure(session, store)
        found = [None if block is AWAY else block.views["longest"] for block in store.blocks]
        store.sums["longest"] = max(session.allgather(store.rowmap.tasks, found, "the longest row"))
    length: int = store.sums["longest"]
    return length


def thin(session: Any, frontier: Any) -> bool:
    """Whether a frontier has few vertices, of which rounds are longer than what they do."""
    few: float = session.kernels.relaxing.crowd / 4 * frontier.size  # clear of what gives way to rounds: not measured
    return frontier.nvals <= few


def rounds_are_long(session: Any) -> bool:
    """Whether a round takes longer than messages from all devices to all: where each statement is sent by itself."""
    return session.ranks is not None


def _rounds_only(session: Any) -> str | None:
    """What keeps all fixpoints of a session from the free schedule; None: nothing."""
    return None if session.kernels.relaxing.most else "devices without a kernel that relaxes"


def _is_spread(session: Any, store: Any) -> bool:
    """Whether each device extends its own vertices, as the first one can't have the matrix. That depends on how much
    memory is free, so each fixpoint asks once."""
    if store.rowmap.p == 1:
        return False
    return session.ranks is not None or (
        store.replica is None and not session.replicas.fit([store], 64 * store.rowmap.n)
    )


class Schedule(NamedTuple):
    """How a fixpoint goes. hindrance: what keeps it from the free schedule (None: nothing); free: whether it begins
    with that; spread: whether each device then extends its own vertices."""

    hindrance: str | None
    free: bool = False
    spread: bool = False


def scheduled(session: Any, work: Any) -> Schedule:
    """How a fixpoint goes."""
    hindrance = "asked for" if work.schedule == "rounds" else _of_values(session, work)
    if hindrance is not None:
        return Schedule(hindrance)
    store = session.matrix_store(work.matrix)
    spread = _is_spread(session, store)
    if spread and work.schedule != "free" and not rounds_are_long(session):
        return Schedule("a matrix of which one device has no room for a replica")
    if spread and store.rowmap is not store.colmap:
        return Schedule("a matrix whose columns have other owners than its rows")
    return Schedule(None, work.schedule == "free" or _pays(session, store, spread), spread)


def _of_values(session: Any, work: Any) -> str | None:
    """What keeps a fixpoint of any matrix from the free schedule; None: nothing."""
    monoid, dtype, itemsize = work.semiring.monoid, work.output.dtype, session.kernels.relaxing.itemsize
    if (found := _rounds_only(session)) is not None:
        return found
    if dtype.np_type.itemsize < itemsize:
        return f"values of type {dtype.name}, of less than {itemsize} bytes"
    if dtype.kind == "f" and not isnan(monoid.start):
        return f"monoid.{monoid.name} of floats"
    if work.cutoff is not None and not session.kernels.relaxing.cuts:
        return "a cutoff"
    return None


class Part(NamedTuple):
    """What one device has: arguments of its kernels, as kinds.py has them. `own`: `best` and `bits` of its rows;
    `given`: what relax reads, `outbox`: what owners are to be told of."""

    n: int
    own: tuple[Any, Any]
    best: Any
    bits: Any
    lists: tuple[Any, Any, Any, Any]
    limits: Any
    given: tuple
    outbox: tuple[Any, Any, Any]


class Relaxation:
    """One fixpoint: a kernel call at a time, on one device or on all of its matrix."""

    def __init__(self, session: Any, work: Any, frontier: Any, spread: bool):
        self._session, self._work, self._start = session, work, now()
        self._relaxing = session.kernels.relaxing
        store = session.oriented(work.matrix, work.flip == work.turned)
        self._spread = spread
        whole = store if self._spread or store.rowmap.p == 1 else session.replicas.of(store)
        self._map = map = whole.rowmap
        monoid, dtype, step = work.semiring.monoid, work.output.dtype, work.window
        spec = Spec(op=work.semiring, a=whole.dtype, b=dtype, out=dtype, ptr=whole.ptr, idx=whole.idx, flip=work.flip)
        relaxing = spec._replace(partial=work.mask is not None, worker=work.worker, spread=self._spread)
        specs = {"relax_begin": spec, "relax": relaxing, "relax_end": spec}
        if self._spread:
            specs |= {"relax_receive": spec, "drain": Spec(out=dtype, idx=whole.idx, partial=True)}
        self._kernels = {kind: session.kernels.get(kind, of) for kind, of in specs.items()}
        for kind, kernel in self._kernels.items():
            if hasattr(kernel, "kept"):  # from its first call on its machine code is there, which is called faster
                kernel.kept(self._kernels, kind)
        self._own = held = session.content(work.output)
        listed = moved(session, session.content(frontier), "list", map)
        alone = held.form == "list" and frontier is work.output
        dense = listed if alone else self._dense(held)
        mask = None if work.mask is None else self._dense(session.content(work.mask.parent))
        if mask is not None and mask.form != "full":
            mask = near_vector(session, mask)
        slots = map.nslots if self._spread else map.n
        words = (slots + 63) >> 6

        def begin(task: Any) -> Part:
            device, unused, b = session.devices[task.device], session.placeholders(task.device), task.block
            n, first = map.rows[b], map.first_slot(b)
            rows, place = slice(first, first + n), slice(first >> 6, (first + n + 63) >> 6)
            fresh = alone or self._spread
            best = device.full(slots, monoid.start, dtype.np_type) if fresh else device.empty(slots, dtype.np_type)
            bits, lists = device.zeros(words, np.int64), session.kernels.lists(device, n, spec)
            limits = device.put(_limits(monoid, dtype, step, work.cutoff))
            flags = k.XLIST if alone else k.XFULL if dense.form == "full" else 0
            block, own = dense.blocks[b], (best[rows], bits[place])
            given = (block.vals, block.stride, unused.words if block.words is None else block.words)
            _, far, queued, progress = lists
            self._kernels["relax_begin"](
                n, *listed.blocks[b].listed, *given, flags, *own, far, queued, limits, progress
            )
            if mask is None:
                lets = unused.words
            elif mask.form == "full":
                lets = device.full(words, -1, np.int64)
            else:
                lets = whole_vector(session, mask, task.device).words
            if self._spread:
                outbox = device.zeros(words, np.int64), device.empty(slots, whole.idx), device.zeros(1, np.int64)
            else:
                outbox = unused.words, unused.slots(whole.idx), unused.scratch
            return Part(n, own, best, bits, lists, limits, (n, *whole.blocks[b].csr, lets), outbox)

        self._parts = session.over(map.tasks, begin, 0.0)
        self._flags = 0 if step is None else k.WINDOWED | (k.GROWS if work.grows else 0)
        if mask is not None:
            self._flags |= k.MASKED | (k.COMPLEMENT if work.mask.complement else 0)
        self.numbers = dict.fromkeys(PROGRESS, 0)
        self._received = 0  # bytes that came to owners
        self._windows = self.meetings = 0  # meetings: times that all had done what lay within the limit
        if self._spread:  # the host moves the limit; arrays of one number, which wrap as those of the kernels do
            limits = _limits(monoid, dtype, step, None)
            self._limit, self._rise = limits[:1], limits[1:2]
            self._moved_at = 0, 0  # vertices extended, and meetings, when the limit was moved last
            self._read_progress()

    def _dense(self, store: VectorStore) -> VectorStore:
        """A vector with a place for each row, on this device."""
        return moved(self._session, store, "full" if store.form == "full" else "bitmap", self._map)

    def go(self) -> int:
        """One slice; returns why it ended."""
        session, work, relaxing = self._session, self._work, self._relaxing
        if self._spread and not self.numbers["near"]:
            self._open_window()
        windows = 1 if self._spread or work.on_window else 0
        crowd = relaxing.crowd if work.schedule == "auto" else 0.0

        def extend(task: Any) -> None:
            device, part = session.devices[task.device], self._parts[task.block]
            near, far, queued, progress = part.lists
            if self._spread:
                device.copy(part.limits[:1], device.put(self._limit))
            how = self._flags, relaxing.most, windows, int(crowd * part.n), work.fetch, self._map.first_slot(task.block)
            state = part.best, part.bits, near, far, queued, part.limits, *part.outbox, progress
            self._kernels["relax"](*part.given, *how, *state)

        session.over(self._map.tasks, extend, 0.0)
        if self._spread:
            self._tell_owners()
        self._read_progress()
        if self.numbers["ended"] < 0:
            raise DeviceError(message("workers that come to the end of a window", "some that did not, in 20 s"))
        return self.numbers["ended"]

    def _open_window(self) -> None:
        """Move the limit of all devices by the width of a window, unless they were told of something within it.

        The width doubles if, in the window before, telling took longer than extending, by the backend's numbers."""
        monoid, extended, meeting = self._work.semiring.monoid, self.numbers["extended"], self._relaxing.meeting
        best, better = (np.fmin, np.less) if monoid.name == "min" else (np.fmax, np.greater)
        low = best.reduce(self._lows, keepdims=True)
        if self._flags & k.WINDOWED and (self._windows == 0 or best(self._limit, low) != low):  # NaN is beyond all
            (before, met), self._moved_at = self._moved_at, (extended, self.meetings)
            with np.errstate(over="ignore"):
                if self._flags & k.GROWS and extended - before < (self.meetings - met) * meeting:
                    self._rise = self._rise + self._rise
                limit = low + self._rise
            self._limit = np.full_like(low, monoid.start) if better(limit, low) else limit  # it wrapped
            self._windows += 1
        self._windows = max(self._windows, 1)
        self.meetings += 1

    def _tell_owners(self) -> None:
        """Send owners what improved of their vertices; it waits there, if it is better than what they have."""
        session, map, start = self._session, self._map, self._work.semiring.monoid.start
        devices, dtype, before = session.devices, self._work.output.dtype.np_type, counters.exchanged

        def sorted_by_owner(task: Any) -> Bins:
            device, part = devices[task.device], self._parts[task.block]
            words, touched, count = part.outbox
            slots, vals = device.empty(map.nslots, touched.dtype), device.empty(map.nslots, dtype)
            counts, starts = device.zeros(map.p, np.int64), map.tables(device).starts
            self._kernels["drain"](count, touched, part.best, words, start, starts, map.p, slots, vals, counts)
            device.clear(count)
            return Bins(task.device, slots, vals, counts)

        bins = session.over(map.tasks, sorted_by_owner, 0.0)
        came = exchanged(session, bins, map, False, 0.0)

        def receive(task: Any) -> None:
            part = self._parts[task.block]
            _, far, queued, progress = part.lists
            for slots, vals, count in came[task.block][0]:
                devices[task.device].reach(slots)
                given = part.n, count, slots, vals
                self._kernels["relax_receive"](*given, *part.own, far, queued, part.limits, progress)

        session.over(map.tasks, receive, 0.0)
        self._received += counters.exchanged - before

    def _read_progress(self) -> None:
        """Take in what all devices have counted, of all processes."""
        session, tasks, number = self._session, self._map.tasks, self._work.output.dtype
        wide = f"{number.kind if number.kind in 'fu' else 'i'}8"

        def counted(task: Any) -> list[int]:
            device, part = session.devices[task.device], self._parts[task.block]
            numbers: list[int] = device.get(part.lists[3][: len(PROGRESS)]).tolist()
            if self._spread:  # and the best value that waits
                numbers += device.get(part.limits)[2:3].astype(wide).view(np.int64).tolist()
            return numbers

        found = session.allgather(tasks, session.over(tasks, counted, 0.0), "a fixpoint")
        self.numbers = numbers = dict(zip(PROGRESS, found[0], strict=False))
        if self._spread:
            *sums, ended, lows = zip(*found, strict=True)
            why = min(ended) if min(ended) < 0 else max(ended)
            numbers.update(zip(PROGRESS, (*map(sum, sums), why), strict=True))
            self._lows = np.array(lows).view(wide).astype(number.np_type)
            numbers["windows"] = self._windows
            if why in (k.UNDER_WAY, k.CONVERGED):  # which each said before it was told more
                numbers["ended"] = k.UNDER_WAY if numbers["near"] + numbers["far"] else k.CONVERGED

    def end(self) -> Any:
        """The output takes what was found. Returns the vector of what still waits, or None."""
        session, work, n = self._session, self._work, self._map.n
        if work.output.size != n:
            raise InvalidValue(message(f"an output that keeps its size of {n}", f"one of {work.output.size} now"))
        dtype, ended = work.output.dtype, self.numbers["ended"]

        def closed(task: Any) -> tuple[VectorBlock, VectorBlock | None]:
            device, part = session.devices[task.device], self._parts[task.block]
            near, far, queued, progress = part.lists
            size = (part.n + 63) >> 6
            words, waiting = device.empty(size, np.int64), device.zeros(size, np.int64)
            count = device.zeros(1, np.int64)
            self._kernels["relax_end"](part.n, *part.own, near, far, queued, progress, words, waiting, count)
            best = copied(device, part.own[0]) if self._spread else part.own[0]  # or the rest would stay with it
            found = VectorBlock(part.n, best, 1, words, count=count)
            if ended == k.CONVERGED:
                return found, None
            bits = copied(device, words) if ended == k.CROWDED else waiting
            return found, VectorBlock(part.n, copied(device, best), 1, bits, count=device.set_bits(bits))

        pairs = [(AWAY, AWAY) if pair is AWAY else pair for pair in session.over(self._map.tasks, closed, 0.0)]
        found, waiting = (list(blocks) for blocks in zip(*pairs, strict=True))
        frontier = None
        if ended != k.CONVERGED:
            frontier = new_like(work.output.shape, dtype, None)
            frontier._store = self._stored(dtype, waiting)
        work.output._store = self._stored(dtype, found)
        if listeners:
            self._record()
        return frontier

    def _stored(self, dtype: Any, blocks: list[VectorBlock]) -> VectorStore:
        store = VectorStore(self._map, dtype, "bitmap", False, blocks)
        own = self._own.map
        return store if own is self._map else handed_out(self._session, store, own)

    def _record(self) -> None:
        counters.statements += 1
        names = ", ".join(self._session.devices[task.device].name for task in self._map.tasks)
        record = Record(counters.statements, self._work.text, "relax", names, "push", "bitmap")
        record.moved, record.start, record.end = self._received, self._start, now()
        seen = np.array([self.numbers["edges"], self.numbers["extended"], 0, 0])
        record.keep(np.asarray, seen, None, ())
        emit(record)


def relax(session: Any, work: Any, frontier: Any, spread: bool) -> Done:
    """Relax until nothing improves, or until rounds are quicker. `spread`: as it was scheduled."""
    with session.lock:
        session.check()
        begin = partial(Relaxation, session, work, frontier, spread)
        found = in_room(begin) if session.ranks is None else begin()  # what one of several lacks, ends all
    if found is None:
        return Done(0, 0, frontier, "memory lacks", False)
    most = inf if work.window is not None or work.rounds_left is None else work.rounds_left
    ended, why, told = k.UNDER_WAY, "", 0
    while ended == k.UNDER_WAY:
        if session.lock.wanted:
            session.lock.give_way()
        with session.lock:
            session.check()
            ended = found.go()
        if work.on_window is not None and found.numbers["windows"] > told:
            told = found.numbers["windows"]
            work.on_window(work.windows + told)
        if work.max_updates is not None and work.updates + found.numbers["extended"] >= work.max_updates:
            why = "max_updates"
            break
        if found.numbers["extended"] >= work.endless or found.meetings > most:
            why = "no end in sight"
            break
    with session.lock:
        waiting = found.end()
    why = {k.WIDE: "many vertices are near at once", k.CROWDED: "lists were full"}.get(ended, why)
    return Done(found.numbers["extended"], found.numbers["windows"], waiting, why, ended == k.WIDE)


def _limits(monoid: Any, dtype: Any, step: float | None, cutoff: Any) -> np.ndarray:
    """The limit (set with the first window), how far it rises, the best value that waits (none yet), and the cutoff."""
    limits = np.full(4, monoid.start, dtype.np_type)
    if cutoff is not None:
        limits[3] = cutoff
    if step is None:
        return limits
    if dtype.kind == "f":
        limits[1] = step
    else:  # a step down of unsigned numbers is one up that wraps
        limits[1] = np.int64(step).astype(dtype.np_type)
    return limits
