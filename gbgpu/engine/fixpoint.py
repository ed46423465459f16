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

# Mean weights that a window is wide, where these differ and where all are the same, as measured. One CPU thread goes
# first in, first out: that is the order of equal weights, without windows.
MEANS: dict[str, tuple[float, float | None]] = {"cpu": (8.0, None), "cuda": (16.0, 32.0)}
THIN, LONG = 8, 128  # entries a row, on average and at most, up to which rows are short
WIDE = {"cpu": 0.0, "cuda": 1 / 8}  # the share of all vertices near at once from which on rounds are quicker; 0: none
ATOMIC = 4  # bytes from which on a GPU changes a value by itself


class Done(NamedTuple):
    """What came of it: updates, windows, the vector of what still waits (None: nothing), and why it was left."""

    updates: int
    windows: int
    waiting: Any
    why: str


def spread(session: Any, alike: bool) -> float | None:
    """Mean weights that a window is wide; None: no windows."""
    return MEANS[session.home.kind][alike]


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


def thin(session: Any, matrix: Any) -> bool:
    """Whether all rows are short: then rounds are many, and of few vertices."""
    store = session.matrix_store(matrix)
    measure(session, store)
    return store.nvals <= THIN * store.rowmap.n and longest(store) < LONG


def free(session: Any, matrix: Any) -> bool:
    """Whether going without rounds is predicted to take less time."""
    return session.matrix_store(matrix).rowmap.p <= session.kernels.alone or thin(session, matrix)


def hindrance(session: Any, work: Any) -> str | None:
    """What keeps a fixpoint from the free schedule; None: nothing."""
    monoid, dtype = work.semiring.monoid, work.output.dtype
    if session.ranks is not None:
        return "several processes"
    if session.kernels.kind not in ("cpu", "cuda"):
        return "CPU devices beside GPUs"
    if session.kernels.kind == "cuda" and dtype.np_type.itemsize < ATOMIC:
        return f"values of type {dtype.name} on GPUs"
    if dtype.kind == "f" and not isnan(monoid.start):
        return f"monoid.{monoid.name} of floats"
    if work.schedule == "auto" and not free(session, work.matrix):
        return "long rows"
    store = session.matrix_store(work.matrix)
    if store.rowmap.p > 1 and not session.replicas.fit([store], 64 * store.rowmap.n):
        return "a matrix of which one device has no room for a replica"
    return None


class Relaxation:
    """One fixpoint on one device, from `frontier`: a kernel call at a time."""

    def __init__(self, session: Any, work: Any, frontier: Any):
        self._session, self._work, self._start = session, work, now()
        store = session.oriented(work.matrix, work.flip == work.turned)
        whole = store if store.rowmap.p == 1 else session.replicas.of(store)
        self._map, self._block = whole.rowmap, whole.blocks[0]
        self._task = self._map.tasks[0]
        self._device = device = session.devices[self._task.device]
        monoid, dtype, n = work.semiring.monoid, work.output.dtype, self._map.n
        spec = Spec(op=work.semiring, a=whole.dtype, b=dtype, out=dtype, ptr=whole.ptr, idx=whole.idx, flip=work.flip)
        self._kernels = {kind: session.kernels.get(kind, spec) for kind in ("relax_begin", "relax", "relax_end")}
        self._own = held = session.content(work.output)
        listed = moved(session, session.content(frontier), "list", self._map).blocks[0]
        alone = frontier is work.output and held.form == "list"
        dense = held if alone else moved(session, held, "full" if held.form == "full" else "bitmap", self._map)
        nil, step = session.nil(self._task.device), work.window
        words = (n + 63) >> 6

        def begin(task: Any) -> None:
            self._best = device.full(n, monoid.start, dtype.np_type) if alone else device.empty(n, dtype.np_type)
            self._bits = device.zeros(words, np.int64)
            self._lists = device_lists = session.kernels.lists(device, n, spec)
            self._limits = device.put(_limits(monoid, dtype, step))
            flags = k.XLIST if alone else k.XFULL if dense.form == "full" else 0
            block = dense.blocks[0]
            given = (block.vals, block.stride, nil.words if block.words is None else block.words)
            _, far, queued, progress = device_lists
            into = self._best, self._bits, far, queued, self._limits, progress
            self._kernels["relax_begin"](n, *listed.listed, *given, flags, *into)

        session.over(self._map.tasks, begin, 0.0)
        self._flags = 0 if step is None else k.WINDOWED
        self._mwords = nil.words
        if work.mask is not None:
            held = session.content(work.mask.parent)
            held = moved(session, held, "full" if held.form == "full" else "bitmap", self._map)
            full = held.form == "full"
            self._mwords = device.full(words, -1, np.int64) if full else held.blocks[0].words
            self._flags |= k.MASKED | (k.COMPLEMENT if work.mask.complement else 0)
        many = WIDE[device.kind] * n if work.schedule == "auto" else 0
        self._limit = 1 if work.on_window else 0, int(many)
        self.numbers = dict.fromkeys(PROGRESS, 0)

    def go(self) -> int:
        """One slice; returns why it ended."""
        near, far, queued, progress = self._lists
        given = self._map.n, *self._block.csr, self._mwords, self._flags, self._session.kernels.relaxed, *self._limit
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
            words, waiting, count = (
                device.empty(size, np.int64),
                device.zeros(size, np.int64),
                device.zeros(1, np.int64),
            )
            self._kernels["relax_end"](n, self._best, self._bits, near, far, queued, progress, words, waiting, count)
            return words, waiting, count

        words, waiting, count = session.over(self._map.tasks, closed, 0.0)[0]
        found = self._stored(dtype, self._best, words, count)
        frontier = None
        if ended != k.SETTLED:
            frontier = new_like(work.output.shape, dtype, None)
            if ended == k.CROWDED:
                waiting = words
            best, bits = (
                session.over(self._map.tasks, lambda task, x=x: _copy(device, x), 0.0)[0] for x in (self._best, waiting)
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


def relax(session: Any, work: Any) -> Done:
    """Relax until nothing improves, or until rounds are quicker."""
    with session.lock:
        session.check()
        found = in_room(lambda: Relaxation(session, work, work.output))
    if found is None:
        return Done(0, 0, work.output, "memory lacks")
    ended, why = k.UNDER_WAY, ""
    most = work.output.size * (work.output.size + 1)  # first in, first out: more only where a cycle improves
    while ended == k.UNDER_WAY:
        if session.lock.wanted:
            session.lock.give_way()
        with session.lock:
            session.check()
            ended = found.go()
        if work.on_window is not None:
            work.on_window(found.numbers["windows"])
        if work.max_updates is not None and found.numbers["extended"] >= work.max_updates:
            why = "max_updates"
            break
        if work.bounded and found.numbers["extended"] > most and ended == k.UNDER_WAY:
            why = "so many updates that a cycle may improve for ever"
            break
    with session.lock:
        waiting = found.end()
    why = {k.WIDE: "many vertices are near at once", k.CROWDED: "lists were full"}.get(ended, why)
    return Done(found.numbers["extended"], found.numbers["windows"], waiting, why)


def _copy(device: Any, buffer: Any) -> Any:
    fresh = device.empty(len(buffer), buffer.dtype)
    device.copy(fresh, buffer)
    return fresh


def _limits(monoid: Any, dtype: Any, step: float | None) -> np.ndarray:
    """The limit (set with the first window), how far it rises, and the best value that waits (none yet)."""
    limits = np.full(3, monoid.start, dtype.np_type)
    if step is None:
        return limits
    if dtype.kind == "f":
        limits[1] = step
    else:  # a step down of unsigned numbers is one up that wraps
        limits[1] = np.int64(max(min(step, 2.0**62), -(2.0**62))).astype(dtype.np_type)
    return limits
