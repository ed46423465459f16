"""Relaxation to a fixpoint without rounds: one device extends vertices as they improve, window by window
(kernels of kind relax). Where a matrix is spread over several devices, the first one has a replica of it.

A kernel does a slice of the work and returns: in between, others have their turn, and Ctrl-C comes through. The vector
is written once, at the end, so that what interrupts it leaves it as it was.
"""

from math import isnan
from typing import Any, NamedTuple

import numpy as np

from ..distribute.blocks import VectorBlock, VectorStore
from ..errors import DeviceError, InvalidValue, in_room, message
from ..kernels import interface as k
from ..kernels.interface import PROGRESS, Spec
from ..language.expr import new_like
from ..semiring._algebra import Monoid
from ..trace import Record, counters, emit, listeners, now
from .loop.limits import longest, measure
from .moving import moved
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


def free(session: Any, matrix: Any) -> bool:
    """Whether going without rounds is possible and predicted to take less time: on few devices, or if all rows are
    short, as rounds then are many and of few vertices."""
    if _rounds_only(session) is not None:
        return False
    store = session.matrix_store(matrix)
    if store.rowmap.p <= session.kernels.relaxing.alone:
        return True
    measure(session, store)
    return store.nvals <= THIN * store.rowmap.n and longest(store) < LONG


def thin(session: Any, frontier: Any) -> bool:
    """Whether a frontier has few vertices, of which rounds are longer than what they do."""
    few: float = session.kernels.relaxing.crowd / 4 * frontier.size  # clear of what gives way to rounds: not measured
    return frontier.nvals <= few


def _rounds_only(session: Any) -> str | None:
    """What keeps all fixpoints of a session from the free schedule; None: nothing."""
    if session.ranks is not None:
        return "several processes"
    return None if session.kernels.relaxing.most else "CPU devices beside GPUs"


def hindrance(session: Any, work: Any) -> str | None:
    """What keeps a fixpoint from the free schedule; None: nothing."""
    monoid, dtype, itemsize = work.semiring.monoid, work.output.dtype, session.kernels.relaxing.itemsize
    if (found := _rounds_only(session)) is not None:
        return found
    if dtype.np_type.itemsize < itemsize:
        return f"values of type {dtype.name}, of less than {itemsize} bytes"
    if dtype.kind == "f" and not isnan(monoid.start):
        return f"monoid.{monoid.name} of floats"
    store = session.matrix_store(work.matrix)
    if store.rowmap.p > 1 and store.replica is None and not session.replicas.fit([store], 64 * store.rowmap.n):
        return "a matrix of which one device has no room for a replica"
    return None


class Relaxation:
    """One fixpoint on one device: a kernel call at a time."""

    def __init__(self, session: Any, work: Any, frontier: Any):
        self._session, self._work, self._start = session, work, now()
        store = session.oriented(work.matrix, work.flip == work.turned)
        whole = store if store.rowmap.p == 1 else session.replicas.of(store)
        self._map, self._block = whole.rowmap, whole.blocks[0]
        at = self._map.tasks[0].device
        self._device = device = session.devices[at]
        monoid, dtype, n = work.semiring.monoid, work.output.dtype, self._map.n
        spec = Spec(op=work.semiring, a=whole.dtype, b=dtype, out=dtype, ptr=whole.ptr, idx=whole.idx, flip=work.flip)
        relaxing = spec._replace(partial=work.mask is not None, worker=work.worker)
        self._kernels = {kind: session.kernels.get(kind, spec) for kind in ("relax_begin", "relax_end")}
        self._kernels["relax"] = session.kernels.get("relax", relaxing)
        self._own = held = session.content(work.output)
        listed = moved(session, session.content(frontier), "list", self._map).blocks[0]
        alone = held.form == "list" and frontier is work.output
        dense = held if alone else self._dense(held)
        nil, step = session.nil(at), work.window
        words = (n + 63) >> 6

        def begin(task: Any) -> None:
            self._best = device.full(n, monoid.start, dtype.np_type) if alone else device.empty(n, dtype.np_type)
            self._bits = device.zeros(words, np.int64)
            self._lists = session.kernels.lists(device, n, spec)
            self._limits = device.put(_limits(monoid, dtype, step))
            flags = k.XLIST if alone else k.XFULL if dense.form == "full" else 0
            block = dense.blocks[0]
            given = (block.vals, block.stride, nil.words if block.words is None else block.words)
            _, far, queued, progress = self._lists
            into = self._best, self._bits, far, queued, self._limits, progress
            self._kernels["relax_begin"](n, *listed.listed, *given, flags, *into)

        session.over(self._map.tasks, begin, 0.0)
        self._flags = 0 if step is None else k.WINDOWED | (k.GROWS if work.grows else 0)
        self._mwords = nil.words
        if work.mask is not None:
            held = self._dense(session.content(work.mask.parent))
            full = held.form == "full"
            self._mwords = device.full(words, -1, np.int64) if full else held.blocks[0].words
            self._flags |= k.MASKED | (k.COMPLEMENT if work.mask.complement else 0)
        self._most = session.kernels.relaxing.most, 1 if work.on_window else 0
        self._crowd = int(session.kernels.relaxing.crowd * n) if work.schedule == "auto" else 0
        self.numbers = dict.fromkeys(PROGRESS, 0)

    def _dense(self, store: VectorStore) -> VectorStore:
        """A vector with a place for each row, on this device."""
        return moved(self._session, store, "full" if store.form == "full" else "bitmap", self._map)

    def go(self) -> int:
        """One slice; returns why it ended."""
        near, far, queued, progress = self._lists
        given = self._map.n, *self._block.csr, self._mwords, self._flags, *self._most, self._crowd, self._work.fetch
        state = self._best, self._bits, near, far, queued, self._limits, progress

        def work(task: Any) -> np.ndarray:
            self._kernels["relax"](*given, *state)
            found: np.ndarray = self._device.get(progress[: len(PROGRESS)])
            return found

        found = self._session.over(self._map.tasks, work, 0.0)[0]
        self.numbers = dict(zip(PROGRESS, found.tolist(), strict=True))
        if self.numbers["ended"] < 0:
            raise DeviceError(message("workers that come to the end of a window", "some that did not, in 20 s"))
        return self.numbers["ended"]

    def end(self) -> Any:
        """The output takes what was found. Returns the vector of what still waits, or None."""
        session, work, n, device = self._session, self._work, self._map.n, self._device
        if work.output.size != n:
            raise InvalidValue(message(f"an output that keeps its size of {n}", f"one of {work.output.size} now"))
        near, far, queued, progress = self._lists
        dtype, ended = work.output.dtype, self.numbers["ended"]

        def closed(task: Any) -> tuple[Any, Any, Any]:
            size = (n + 63) >> 6
            words, waiting = device.empty(size, np.int64), device.zeros(size, np.int64)
            count = device.zeros(1, np.int64)
            self._kernels["relax_end"](n, self._best, self._bits, near, far, queued, progress, words, waiting, count)
            return words, waiting, count

        words, waiting, count = session.over(self._map.tasks, closed, 0.0)[0]
        found = self._stored(dtype, self._best, words, count)
        frontier = None
        if ended != k.CONVERGED:
            frontier = new_like(work.output.shape, dtype, None)
            if ended == k.CROWDED:
                waiting = words
            best, bits = (
                session.over(self._map.tasks, lambda task, x=x: copied(device, x), 0.0)[0]
                for x in (self._best, waiting)
            )
            frontier._store = self._stored(dtype, best, bits, device.set_bits(bits))
        work.output._store = found
        if listeners:
            self._tell()
        return frontier

    def _stored(self, dtype: Any, vals: Any, words: Any, count: Any) -> VectorStore:
        store = VectorStore(self._map, dtype, "bitmap", False, [VectorBlock(self._map.n, vals, 1, words, count=count)])
        own = self._own.map
        return store if own is self._map else moved(self._session, store, "bitmap", own)

    def _tell(self) -> None:
        counters.statements += 1
        record = Record(counters.statements, self._work.text, "relax", self._device.name, "push", "bitmap")
        record.start, record.end = self._start, now()
        seen = np.array([self.numbers["edges"], self.numbers["extended"], 0, 0])
        record.keep(np.asarray, seen, None, ())
        emit(record)


def relax(session: Any, work: Any, frontier: Any) -> Done:
    """Relax until nothing improves, or until rounds are quicker."""
    with session.lock:
        session.check()
        found = in_room(lambda: Relaxation(session, work, frontier))
    if found is None:
        return Done(0, 0, frontier, "memory lacks", False)
    ended, why = k.UNDER_WAY, ""
    while ended == k.UNDER_WAY:
        if session.lock.wanted:
            session.lock.give_way()
        with session.lock:
            session.check()
            ended = found.go()
        if work.on_window is not None:
            work.on_window(work.windows + found.numbers["windows"])
        if work.max_updates is not None and work.updates + found.numbers["extended"] >= work.max_updates:
            why = "max_updates"
            break
        if found.numbers["extended"] >= work.endless:
            why = "no end in sight"
            break
    with session.lock:
        waiting = found.end()
    why = {k.WIDE: "many vertices are near at once", k.CROWDED: "lists were full"}.get(ended, why)
    return Done(found.numbers["extended"], found.numbers["windows"], waiting, why, ended == k.WIDE)


def _limits(monoid: Any, dtype: Any, step: float | None) -> np.ndarray:
    """The limit (set with the first window), how far it rises, and the best value that waits (none yet)."""
    limits = np.full(3, monoid.start, dtype.np_type)
    if step is None:
        return limits
    if dtype.kind == "f":
        limits[1] = step
    else:  # a step down of unsigned numbers is one up that wraps
        limits[1] = np.int64(step).astype(dtype.np_type)
    return limits
