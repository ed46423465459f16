"""Reading what handles hold: entries, values, and how many there are; and what goes wrong on the way."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..device.base import Device
from ..device.cpu import LARGE, host_room
from ..device.remote import AWAY, local_results
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorStore
from ..distribute.rowmap import Task
from ..errors import DeviceError, InvalidValue, OutOfMemory, message
from ..language.recording import BUILDS, recorder
from ..modes import Changed, Threads, restored
from . import build
from .context import Context
from .dry import known
from .matrix.elements import elements
from .near import near_matrix
from .plan import Step

READ = 24  # bytes a row, at most, that reading a matrix takes for a while
HYPERSPARSE = "every row takes room; number the ids in use anew, np.unique(ids, return_inverse=True)"

S = TypeVar("S", bound="Reading")
W = TypeVar("W")
P = ParamSpec("P")
R = TypeVar("R")


def memory_checked(method: Callable[Concatenate[S, W, P], R]) -> Callable[Concatenate[S, W, P], R]:
    """One thread at a time; and running out of memory becomes OutOfMemory: the first argument says what for."""

    @wraps(method)
    def checked(session: S, what: W, *arguments: P.args, **keywords: P.kwargs) -> R:
        if session.recorders and (here := recorder(session)) is not None:
            return here.asked(method, session, what, arguments, keywords)
        (session.filled if method.__name__ in BUILDS else session.computed)(what)
        try:
            with session.lock:
                if session.ranks is not None and method.__name__ in BUILDS:
                    made: Any = what
                    parts = keywords.get("local") or keywords.get("first") is not None  # of each rank its own
                    given = () if parts else (*arguments, *keywords.values())
                    session.ranks.does("a new object", type(made).__name__, made.dtype.name, made.shape, given=given)
                return method(session, what, *arguments, **keywords)
        except MemoryError as error:
            raise out_of_memory(session, what, error) from error

    return checked


def out_of_memory(session: Context, what: Any, error: MemoryError) -> OutOfMemory:
    if session.ranks is not None:
        session.ranks.failed(error)  # others may have had the memory
    free, total = session.home.memory()
    came = f"{free} of {total} bytes free"
    return OutOfMemory(message(f"memory for {_named(what)}", came, _hint(what) or str(error)))


def _named(what: Any) -> str:
    return f"a {type(what).__name__} of shape {what.shape}" if hasattr(what, "shape") else str(what)


def _hint(what: Any) -> str:
    return HYPERSPARSE if getattr(getattr(what, "output", what), "ndim", 0) == 2 else ""


class Reading(Context):
    """A session as those see it who read."""

    alive: bool
    broken: str | None
    lock: Any
    made: list[Step] | None
    recorders: Threads
    changes: list[Changed]
    counts_unknown: bool
    doubted: bool
    _watched: list[tuple[Device, Any, type[Exception], str]]

    def check(self) -> None:
        """Raises InvalidValue for an ended session. What a statement that was cut short has left is undone."""
        if self.changes:
            with self.lock:
                restored(self.changes)
        if not self.alive:
            if self.broken is not None:
                raise DeviceError(self.broken)
            raise InvalidValue(
                message(
                    "an object of the session in force",
                    "one of an ended session",
                    "gb.init ended it; make the object again",
                )
            )

    # -- what the devices find wrong

    def watch(self, device: Device, flag: Any, kind: type[Exception], text: str) -> None:
        """Raise kind(text) at the next read, if the device finds `flag` true by then."""
        self._watched.append((device, flag, kind, text))

    def raise_watched(self, reading: bool = False) -> None:
        """Raise what devices have found wrong: all of it when `reading`, else what the host sees for nothing."""
        if self.ranks is not None:
            return self._raise_told(reading)
        if not self._watched:
            return
        waiting, wrong = [], None
        for entry in self._watched:
            device, flag, kind, text = entry
            seen = device.peek(flag)
            if seen is None and not reading:
                waiting.append(entry)
            elif wrong is None and bool(device.get(flag) if seen is None else seen):
                wrong = kind(text)
        self._watched = waiting
        if wrong is not None:
            raise wrong

    def _raise_told(self, reading: bool) -> None:
        """The same of several ranks, which raise alike: at reads after a statement that `doubted`."""
        assert self.ranks is not None
        if not (reading and self.doubted):
            return
        watched, self._watched, self.doubted = self._watched, [], False
        wrong = next((kind(text) for device, flag, kind, text in watched if bool(device.get(flag))), None)
        self.ranks.agreed(wrong, "what devices found wrong")

    @property
    def home(self) -> Device:
        """The first device of this process."""
        return self.devices[self.at]

    def allgather(self, tasks: Sequence[Task], values: Sequence[Any], what: str) -> Sequence[Any]:
        """What the host has found for each task, of all ranks. `what` it is, for the error of ranks that differ."""
        return values if self.ranks is None else self.ranks.allgather(tasks, values, what)

    def total(self, counts: Sequence[Any], what: str) -> int:
        """The sum of what the host has counted for each task, of all ranks."""
        mine = sum(map(int, local_results(counts)))
        return mine if self.ranks is None else self.ranks.total(mine, what)

    def room(self, n: int, each: int, what: Any) -> None:
        """Raises OutOfMemory unless the host can hold arrays of `n` elements, `each` bytes an element. `what`: the
        handle that they are for, or a name."""
        if n >= LARGE:
            check = partial(host_room, n * each, _named(what), _hint(what))
            check() if self.ranks is None else self.ranks.alike(check, "room for arrays")

    # -- entries and values

    def known_count(self, store: VectorStore) -> int | None:
        """Entries of a vector, if the host can tell without reading from a device."""
        if self.counts_unknown and store.form != "full":
            return None
        if self.ranks is not None or not store.blocks:  # ranks know the same; of numbers alone nobody knows more
            return store.nvals
        if store.nvals is None:
            total = 0
            for device, block in zip(self.devices, store.blocks, strict=False):
                seen = device.peek(block.count)
                if seen is None:
                    return None
                total += int(seen[0])
            store.nvals = total
        return store.nvals

    def nvals(self, handle: Any) -> int:
        if self.dry:
            return self.known_count(known(self, handle)) or 0
        self.computed(handle)
        store = handle._store
        if store is not None and store.nvals is not None and self.alive and not (self._watched or self.doubted):
            return store.nvals
        with self.lock:
            self.check()
            self.raise_watched(reading=True)
            store = handle._store
            if store is None:
                return 0
            if store.nvals is None and self.known_count(store) is None:
                counts = self.over(store.map.tasks, lambda task: self._counted(task, store), 0.0)
                store.nvals = self.total(counts, "the number of entries")
            return store.nvals

    def _counted(self, task: Task, store: VectorStore) -> int:
        return int(self.devices[task.device].get(store.blocks[task.block].count)[0])

    @memory_checked
    def vector_to_host(self, vector: Any, local: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(ids, values); `local`: those that lie in this process, for which no other is asked."""
        if local:
            self.check()
        else:
            self.room(self.nvals(vector), READ, vector)
        if vector._store is None:
            return np.zeros(0, np.int64), np.zeros(0, vector.dtype.np_type)
        store = vector._store
        parts = self.over(
            store.map.tasks,
            lambda task: build.block_to_host(self.devices[task.device], store.blocks[task.block]),
            store.map.n * self.kernels.costs.row,
        )
        parts = parts if local else list(self.allgather(store.map.tasks, parts, "the entries of a vector"))
        pairs = [(*part, first) for part, first in zip(parts, store.map.bounds[:-1], strict=True) if part is not AWAY]
        ids = np.concatenate([np.zeros(0, np.int64), *(rows + first for rows, _, first in pairs)])
        vals = np.concatenate([np.zeros(0, vector.dtype.np_type), *(vals for _, vals, _ in pairs)])
        vals = vals.astype(vector.dtype.np_type, copy=False)
        if store.map.order is None:
            return ids, vals
        ids = store.map.order[ids]
        order = np.argsort(ids)
        return ids[order], vals[order]

    @memory_checked
    def matrix_to_host(self, matrix: Any, bare: bool = False) -> tuple[np.ndarray, Any, np.ndarray]:
        self.room(matrix.shape[0] + self.nvals(matrix), READ, matrix)
        return self.store_to_host(self.matrix_store(matrix), bare)

    def store_to_host(self, store: MatrixStore, bare: bool = False) -> tuple[np.ndarray, Any, np.ndarray]:
        """CSR of a matrix, columns as user ids; `bare`: None in place of these, if each row has all of them or none."""
        store = near_matrix(self, store)
        rowmap, colmap = store.rowmap, store.colmap
        straight = rowmap.order is None and colmap.order is None
        indptrs, vals, above = [np.zeros(1, np.int64)], [], 0
        held = [
            (self.home if given.kind == "remote" else given, block)
            for given, block in zip(self.devices, store.blocks, strict=False)
        ]
        for device, block in held:
            indptrs.append(device.get(block.indptr)[1:].astype(np.int64) + above)
            vals.append(_read_values(device, store, block))
            above += block.nnz
        indptr, values = np.concatenate(indptrs), vals[0] if len(vals) == 1 else np.concatenate(vals)
        if bare and straight and np.count_nonzero(indptr[1:] > indptr[:-1]) * colmap.n == above:
            return indptr, None, values
        cols = [colmap.users(device.get(block.cols[: block.nnz])) for device, block in held]
        ids = np.concatenate(cols).astype(np.int64, copy=False)
        if straight:
            return indptr, ids, values
        rows = np.repeat(np.arange(rowmap.n) if rowmap.order is None else rowmap.order, np.diff(indptr))
        return build.sorted_matrix(rowmap.n, colmap.n, rows, ids, values, False, None)

    @memory_checked
    def matrix_entries(self, matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, columns, values) of the entries that lie in this process, by row and column; no other is asked."""
        self.check()
        store = matrix._store or self.matrix_store(matrix)  # where it lies now: rows move with all ranks only
        rowmap, colmap = store.rowmap, store.colmap
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, store.dtype.np_type))]
        for task, block in zip(rowmap.tasks, store.blocks, strict=True):
            device = self.devices[task.device]
            if device.kind == "remote":
                continue
            offsets, cols = device.get(block.indptr).astype(np.int64), colmap.users(device.get(block.cols))
            vals = _read_values(device, store, block)
            rows = np.repeat(np.arange(block.n), np.diff(offsets)) + rowmap.bounds[task.block]
            found.append((rows if rowmap.order is None else rowmap.order[rows], cols, vals))
        rows, cols, vals = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if rowmap.order is not None or colmap.order is not None:
            order = np.lexsort((cols, rows))
            rows, cols, vals = rows[order], cols[order], vals[order]
        return rows, cols.astype(np.int64, copy=False), vals.astype(store.dtype.np_type, copy=False)

    @memory_checked
    def element(self, handle: Any, position: tuple[int, ...]) -> Any:
        """One value as a Python scalar, or None."""
        self.check()
        if self.dry:
            return handle.dtype.np_type.type(0).item()
        if self.ranks is not None:
            self.ranks.does("one value", given=position)
        self.raise_watched(reading=True)
        if handle.ndim == 2:
            store, log = handle._held
            if log and position in log:
                value = log[position]
                return None if value is None else handle.dtype.np_type.type(value).item()
        else:
            store = handle._store
        if store is None:
            return None
        map = store.map if handle.ndim == 1 else store.rowmap
        place = int(map.places(np.array(position[:1]))[0])
        b = int(np.searchsorted(map.bounds, place, side="right")) - 1
        found = build.vector_element if handle.ndim == 1 else build.matrix_element
        rest = () if handle.ndim == 1 else (int(store.colmap.slots(np.array([position[1]]))[0]),)
        entry = store.blocks[b], place - int(map.bounds[b]), *rest
        owner = map.tasks[b : b + 1]
        value = self.over(owner, lambda task: found(self.devices[task.device], *entry), 0.0)
        return self.allgather(owner, value, "one value")[0]

    @memory_checked
    def elements(self, matrix: Any, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether a matrix has an entry at each place (i[k], j[k]), and its value, or 0."""
        self.check()
        if self.dry:
            return np.zeros(len(i), np.bool_), np.zeros(len(i), matrix.dtype.np_type)
        self.raise_watched(reading=True)
        return elements(self, self.matrix_store(matrix), i, j)

    def settle(self, scalar: Any) -> Any:
        """The value of a computed scalar, read unless another thread did."""
        with self.lock:
            if self.dry:
                return scalar.dtype.np_type.type(0).item()
            if scalar._store is not None:
                scalar._value, scalar._store = self.read_scalar(scalar._store), None
            return scalar._value

    def read_scalar(self, store: tuple[Any, Any, Any]) -> Any:
        """The value of a computed scalar, as Run._reduce leaves it, and what it is without entries."""
        self.check()
        self.raise_watched(reading=True)
        both, vals, empty = store
        read = self.home.get(both)
        return read.view(vals.dtype)[0].item() if int(read[1]) & 1 else empty


def _read_values(device: Device, store: MatrixStore, block: MatrixBlock) -> np.ndarray:
    """The values of a block, one for each entry, on the host."""
    held = device.get(block.vals)
    return np.full(block.nnz, held[0]) if store.iso else held[: block.nnz]
