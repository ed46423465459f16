"""What handles hold: building it, reading it, and turning it round. The face that handles see of their session, but for
running statements."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..device.base import Device
from ..device.cpu import LARGE, host_room
from ..device.remote import AWAY
from ..distribute.blocks import (
    MatrixBlock,
    MatrixNumbers,
    MatrixStore,
    VectorBlock,
    VectorStore,
    matrix_block,
    split_matrix,
    split_vector,
)
from ..distribute.partition import RowMap, Task
from ..distribute.ranks import Ranks
from ..distribute.sets import BlockSets, block_sets
from ..errors import DeviceError, InvalidValue, OutOfMemory, OutputNotEmpty, message
from ..kernels.interface import Spec
from ..language.recording import Recorder, recorder
from ..language.typed import accumulator
from ..trace import listeners
from . import build, gate
from .context import Context
from .matrix.transpose import same, transpose
from .moving import settled
from .near import near_matrix
from .plan import Plan, Step, Value
from .runner import Runner

SORTED = 2e-8  # seconds an entry that is sorted on the host
BUILD, STATEMENT, READ = 24, 40, 24  # bytes a row, at most, that a matrix takes for a while
HYPERSPARSE = "every row takes room; number the ids in use anew, np.unique(ids, return_inverse=True)"


W = TypeVar("W")
P = ParamSpec("P")
R = TypeVar("R")


def memory_checked(method: Callable[Concatenate["Stores", W, P], R]) -> Callable[Concatenate["Stores", W, P], R]:
    """One thread at a time; and running out of memory becomes OutOfMemory: the first argument says what for."""

    @wraps(method)
    def checked(session: "Stores", what: W, *arguments: P.args, **keywords: P.kwargs) -> R:
        if session.recorders and (here := recorder(session)) is not None:
            return here.asked(method, session, what, arguments, keywords)
        try:
            with session.lock:
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


class Stores(Context):
    """The content of handles on the devices of a session."""

    alive: bool
    broken: str | None
    lock: Any
    made: list[Step] | None
    recorders: dict[int, Recorder]
    blind: bool
    doubted: bool
    _watched: list[tuple[Device, Any, type[Exception], str]]

    def check(self) -> None:
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

    def told(self, tasks: Sequence[Task], values: Sequence[Any], what: str) -> Sequence[Any]:
        """What the host has found for each task, of all ranks. `what` it is, for the error of ranks that differ."""
        return values if self.ranks is None else self.ranks.told(tasks, values, what)

    def total(self, counts: Sequence[Any], what: str) -> int:
        """The sum of what the host has counted for each task, of all ranks."""
        mine = sum(count for count in counts if count is not AWAY)
        return mine if self.ranks is None else self.ranks.total(mine, what)

    # -- content

    def host_of(self, array: Any) -> np.ndarray:
        """A copy on the host of an array of any library that lies on a GPU, whatever devices the session has."""
        from ..device.cuda import as_host

        return as_host(array)

    def attach(self, handle: Any) -> None:
        """A new or cleared handle: no content."""
        self.check()
        if self.recorders and (here := recorder(self)) is not None:
            here.add("clear", handle, lambda: self.attach(handle))
        else:
            handle._store = None

    def check_empty(self, handle: Any) -> None:
        if handle.nvals:
            raise OutputNotEmpty(
                message("an empty object to build into", f"{handle.nvals} entries", "build(..., clear=True)")
            )

    @memory_checked
    def build_vector(
        self,
        vector: Any,
        ids: np.ndarray,
        vals: np.ndarray,
        iso: bool,
        dup_op: Any,
        trusted: bool = False,
        local: bool = False,
    ) -> None:
        """`trusted`: ids ascend, none occurs twice, and the arrays are given away. `local`: entries of this rank, in
        addition to which others have theirs."""
        self.check()
        map, nvals, ranks = self.maps.of(vector.size), None, self.ranks if local else None
        if ranks is not None:
            ids, vals = self._dealt(self._owner(ranks, map), [ids], ["int64"], vals, iso)
        if not trusted:
            sort = partial(build.sorted_vector, ids, vals, iso, _duplicates(dup_op, vector.dtype), vector.size)
            ids, vals = sort() if ranks is None else ranks.alike(sort, "entries of a vector")
        if ranks is not None:
            nvals, trusted = ranks.total(len(ids), "the number of entries"), True
        some = len(ids) if nvals is None else nvals
        store = partial(split_vector, map, vector.dtype, self.devices, ids, vals, iso, trusted, nvals)
        vector._store = store() if some else None

    def _owner(self, ranks: Ranks, map: RowMap) -> Callable[[np.ndarray], np.ndarray]:
        """What tells whose rows are."""
        owners = np.array([ranks.rank_of(task.device) for task in map.tasks])
        return lambda rows: owners[map.owner(rows)]

    def _dealt(
        self, owner: Callable[[np.ndarray], np.ndarray], ids: list[Any], types: list[Any], vals: np.ndarray, iso: bool
    ) -> list[Any]:
        """[*ids, values], of these types, of the entries of this rank's rows, of all those that the ranks have."""
        assert self.ranks is not None
        arrays, held = (ids, [vals]) if iso else ([*ids, vals], [])
        types = types if iso else [*types, vals.dtype]
        return self.ranks.dealt(owner, arrays, types, "entries of a new object") + held

    @memory_checked
    def adopt_dense(self, vector: Any, array: Any) -> None:
        """Fill a vector with a one-dimensional array that lies on a GPU of this session; nothing goes to the host."""
        self.check()
        map, dtype, blocks = self.maps.of(vector.size), vector.dtype.np_type, []
        for b, device in enumerate(self.devices[: map.p]):
            if device.kind == "remote":
                blocks.append(AWAY)
                continue
            vals = device.empty(map.rows[b], dtype)
            rows = map.part(b)
            device.copy(vals, array[rows if isinstance(rows, slice) else self.home.put(rows)])
            blocks.append(VectorBlock(map.rows[b], vals, 1))
        vector._store = VectorStore(map, vector.dtype, "full", False, blocks) if vector.size else None

    @memory_checked
    def device_array(self, vector: Any) -> Any:
        """The values of a full vector that lies whole on one GPU, or None."""
        self.check()
        store = vector._store
        if (
            store is None
            or store.form != "full"
            or store.map.p > 1
            or self.home.kind == "cpu"
            or self.ranks is not None
        ):
            return None
        self.raise_watched(reading=True)
        block = store.blocks[0]
        return block.vals[: block.n] if block.stride else self.home.xp.repeat(block.vals[:1], block.n)

    @memory_checked
    def build_matrix(
        self,
        matrix: Any,
        rows: np.ndarray,
        cols: np.ndarray,
        vals: np.ndarray,
        iso: bool,
        dup_op: Any,
        local: bool = False,
    ) -> None:
        """Arrays of the host, or of the first GPU; there they stay. `local`: entries of this rank, in addition to which
        others have theirs."""
        self.check()
        dup_op = _duplicates(dup_op, matrix.dtype)
        if local and self.ranks is not None:
            return self._of_parts(self.ranks, matrix, rows, cols, vals, iso, dup_op)
        if isinstance(rows, np.ndarray):
            self.room(matrix.shape[0], BUILD, matrix)
            (nrows, ncols), seconds = matrix.shape, len(rows) * SORTED
            arrays = self._away(lambda: build.sorted_matrix(nrows, ncols, rows, cols, vals, iso, dup_op), seconds)
            return self._split(matrix, *arrays, iso)

        return gate.build(self, matrix, gate.Given(self, matrix.shape[0], rows, cols, self._here(vals), iso, dup_op))

    def draws(self, n: int) -> bool:
        """Whether `draw_matrix` serves for graphs of n vertices."""
        return self.kernels.kind == "cuda" and (self.ranks is None or not self.maps.permutes) and gate.fits(n, n)

    @memory_checked
    def draw_matrix(self, matrix: Any, recipe: Any) -> None:
        """GPUs draw the entries of a matrix, as a recipe says (io/generate.py)."""
        self.check()
        gate.build(self, matrix, gate.Drawn(self, recipe, matrix.dtype))

    @memory_checked
    def build_csr(
        self,
        matrix: Any,
        indptr: np.ndarray,
        cols: np.ndarray,
        vals: np.ndarray,
        iso: bool,
        trusted: bool = False,
        first: int | None = None,
    ) -> None:
        """`trusted`: columns ascend in each row, none occurs twice, and the arrays are given away. `first`: they are
        the entries from there on that `rows_here` tells."""
        self.check()
        if not isinstance(cols, np.ndarray):
            gpu: Any = self.devices[0]
            with gpu.here():
                return gate.from_csr(self, matrix, self._here(indptr), cols, self._here(vals), iso)
        if first is not None:
            maps = self.maps.of_matrix(matrix.shape[0], matrix.shape[1], int(indptr[-1]), np.diff(indptr))
            mine = np.clip(indptr, first, first + len(cols)) - first
            matrix._store = split_matrix(*maps, matrix.dtype, self, mine, cols, vals, iso, True)
            return None
        arrays = (indptr, cols, vals) if trusted else build.sorted_csr(indptr, cols, vals, iso, matrix.shape[1])
        return self._split(matrix, *arrays, iso, trusted)

    def rows_here(self, matrix: Any, indptr: np.ndarray) -> tuple[int, int] | None:
        """Which entries of a CSR, whose offsets all ranks have, are of rows that will lie with this one: from where to
        where; None if they don't lie side by side."""
        self.check()
        if self.ranks is None or self.maps.permutes:
            return None
        map, _ = self.maps.of_matrix(matrix.shape[0], matrix.shape[1], int(indptr[-1]), np.diff(indptr))
        here = [task.block for task in map.tasks if self.ranks.here(task.device)]
        ends = (map.bounds[here[0]], map.bounds[here[-1] + 1]) if here else (map.n, map.n)
        return None if map.order is not None else (int(indptr[ends[0]]), int(indptr[ends[1]]))

    def room(self, n: int, each: int, what: Any) -> None:
        """Raises OutOfMemory unless the host can hold arrays of `n` elements, `each` bytes an element. `what`: the
        handle that they are for, or a name."""
        if n >= LARGE:
            check = partial(host_room, n * each, _named(what), _hint(what))
            check() if self.ranks is None else self.ranks.alike(check, "room for arrays")

    def _here(self, array: Any) -> Any:
        return self.devices[0].put(array) if isinstance(array, np.ndarray) else array

    def _split(
        self, matrix: Any, indptr: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, own: bool = False
    ) -> None:
        nrows, ncols = matrix.shape
        maps = self.maps.of_matrix(nrows, ncols, len(cols), np.diff(indptr), lambda: cols)
        matrix._store = split_matrix(*maps, matrix.dtype, self, indptr, cols, vals, iso, own)

    def _of_parts(
        self, ranks: Ranks, matrix: Any, rows: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, dup_op: Any
    ) -> None:
        """The matrix of the entries that the ranks have. No rank gets more than those of its rows, and the lengths of
        all rows, which decide who owns which."""
        nrows, ncols = matrix.shape
        narrow = ["int32" if n < 2**31 else "int64" for n in matrix.shape]
        self.room(nrows, BUILD, matrix)

        def sorted_by(owner: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            i, j, values = self._dealt(owner, [rows, cols], narrow, vals, iso)
            sort = partial(build.sorted_matrix, nrows, ncols, i, j, values, iso, dup_op)
            return ranks.alike(sort, "entries of a matrix")

        lengths = ranks.summed(np.bincount(rows, minlength=nrows), "lengths of rows")
        if dup_op is not None:  # owners are decided by entries that differ, as in one process
            upto = np.cumsum(lengths)
            ends = np.searchsorted(upto, upto[-1:].sum() * np.arange(1, ranks.size) / ranks.size)
            indptr, cols, vals = sorted_by(lambda ids: np.searchsorted(ends, ids, side="right"))
            rows = np.repeat(np.arange(nrows, dtype=narrow[0]), np.diff(indptr))
            lengths = ranks.summed(np.diff(indptr), "lengths of rows")

        def pattern() -> np.ndarray:
            i, j = (np.concatenate(parts) for parts in zip(*ranks.gathered((rows, cols), "a pattern"), strict=True))
            return j[np.argsort(i, kind="stable")]

        maps = self.maps.of_matrix(nrows, ncols, int(lengths.sum()), lengths, pattern)
        indptr, cols, vals = sorted_by(self._owner(ranks, maps[0]))
        matrix._store = split_matrix(*maps, matrix.dtype, self, indptr, cols, vals, iso, True)

    def _away(self, work: Callable[[], R], seconds: float) -> R:
        """work() on the host or the first device, where Ctrl-C needn't wait for it if that takes long. Every
        rank does it: what it raises, all raise."""
        return work() if self.ranks is not None else self.over((Task(0, 0, 0, 0),), lambda task: work(), seconds)[0]

    @memory_checked
    def block_sets(self, matrix: Any, turned: bool) -> BlockSets:
        """What each row block of a matrix, or of its transpose, reads and writes."""
        self.check()

        def over(tasks: Sequence[Task], work: Callable[[Task], Any], seconds: float) -> Any:
            return self.told(tasks, self.over(tasks, work, seconds), "what blocks read and write")

        return block_sets(self.oriented(matrix, turned), self.devices, over)

    @memory_checked
    def declare_symmetric(self, matrix: Any) -> None:
        """The matrix equals its transpose: the caller knows, and spares the comparison."""
        store = self.matrix_store(matrix)
        if store.rowmap is store.colmap:
            store.symmetric = True

    def known_symmetric(self, matrix: Any) -> bool:
        """Whether the matrix is known to equal its transpose."""
        self.check()
        return matrix._store is not None and bool(matrix._store.symmetric)

    def known_equal(self, one: Any, two: Any) -> bool | None:
        """Whether two handles of one shape have equal content, if that needs no comparison; NaN equals nothing."""
        a, b = one._store, two._store
        if a is None or b is None or one.dtype is not two.dtype or one.dtype.kind == "f":
            return None
        if a is b:
            return True
        return False if one.ndim == 2 and a.transposed is b and a.symmetric is False else None

    def matrix_store(self, matrix: Any) -> MatrixStore:
        """The matrix's content; an empty one gets its blocks now."""
        if matrix._store is None:
            self.room(matrix.shape[0], BUILD, matrix)
            nrows, ncols = matrix.shape
            rowmap, colmap = self.maps.of_matrix(nrows, ncols, 0, np.zeros(0, np.int64))

            def block(task: Task) -> MatrixBlock:
                device, n = self.devices[task.device], rowmap.rows[task.block]
                cols, vals = device.empty(0, colmap.slot_type()), device.zeros(1, matrix.dtype.np_type)
                return matrix_block(device, device.zeros(n + 1, np.int32), cols, vals, 0, 0)

            numbers = MatrixNumbers(rowmap, colmap, matrix.dtype, True, "int32", (0,) * rowmap.p, nrows > 0)
            matrix._store = MatrixStore(numbers, self.over(rowmap.tasks, block, 0.0))
        if self.maps.unsettled:
            self._settle(matrix)
        return matrix._store

    def _settle(self, handle: Any) -> None:
        """What a handle holds goes to the rows where it belongs, unless a loop is captured, or has the first device."""
        if self.loop_index is None and not self.maps.alone:
            handle._store = settled(self, handle._store)

    def oriented(self, matrix: Any, transposed: bool) -> MatrixStore:
        """The matrix by rows, or by columns (built at the first need and kept; a symmetric one serves both ways)."""
        store = self.matrix_store(matrix)
        if not transposed or store.symmetric:
            return store
        if store.transposed is None:
            self.room(matrix.shape[1], BUILD, matrix)
            other = self._turned(matrix, store)
            store.symmetric = store.rowmap is store.colmap and same(self, store, other)
            if store.symmetric:
                return store
            store.transposed, other.transposed, other.symmetric = other, store, False
        return store.transposed

    def _turned(self, matrix: Any, store: MatrixStore) -> MatrixStore:
        """The transpose."""
        into = Value(matrix.name, "csr", store.dtype, store.iso, store.colmap)
        step = Step("transpose", into, (), Spec(), f"{matrix.name} by columns, kept with it")
        return self.aside(step, partial(transpose, self, store))

    def aside(self, step: Step, work: Callable[[], Any]) -> Any:
        """work(), as a step of the statement in hand that its plan does not have."""
        if self.made is not None:
            self.made.append(step)
        if not listeners:
            return work()
        return Runner(self, Plan((), (), (step,)), {}, step.into.name).made(step, lambda _: work())

    def known_count(self, store: VectorStore) -> int | None:
        """Entries of a vector, if the host can tell without reading from a device."""
        if self.blind and store.form != "full":
            return None
        if self.ranks is not None:  # which know the same
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
        parts = parts if local else list(self.told(store.map.tasks, parts, "the entries of a vector"))
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
    def matrix_to_host(self, matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.room(matrix.shape[0] + self.nvals(matrix), READ, matrix)
        return self.store_to_host(self.matrix_store(matrix))

    def store_to_host(self, store: MatrixStore) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CSR of a matrix, columns as user ids."""
        store = near_matrix(self, store)
        indptrs, cols, vals, above = [np.zeros(1, np.int64)], [], [], 0
        for given, block in zip(self.devices, store.blocks, strict=False):
            offsets, *entries = _read_block(self.home if given.kind == "remote" else given, store, block)
            indptrs.append(offsets[1:] + above)
            above += block.nnz
            cols.append(entries[0])
            vals.append(entries[1])
        indptr, values = np.concatenate(indptrs), np.concatenate(vals)
        ids = np.concatenate(cols).astype(np.int64, copy=False)
        rowmap, colmap = store.rowmap, store.colmap
        if rowmap.order is None and colmap.order is None:
            return indptr, ids, values
        rows = np.repeat(np.arange(rowmap.n) if rowmap.order is None else rowmap.order, np.diff(indptr))
        return build.sorted_matrix(rowmap.n, colmap.n, rows, ids, values, False, None)

    @memory_checked
    def matrix_entries(self, matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, columns, values) of the entries that lie in this process, by row and column; no other is asked."""
        self.check()
        store = self.matrix_store(matrix)
        rowmap, colmap = store.rowmap, store.colmap
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, store.dtype.np_type))]
        for task, block in zip(rowmap.tasks, store.blocks, strict=True):
            device = self.devices[task.device]
            if device.kind == "remote":
                continue
            offsets, cols, vals = _read_block(device, store, block)
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
        self.raise_watched(reading=True)
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
        return self.told(owner, value, "one value")[0]

    def settle(self, scalar: Any) -> None:
        """Read the value of a computed scalar, unless another thread did."""
        with self.lock:
            if scalar._store is not None:
                scalar._value, scalar._store = self.read_scalar(scalar._store), None

    def read_scalar(self, store: tuple[Any, Any, Any]) -> Any:
        """The value of a computed scalar, as Run._reduce leaves it, and what it is without entries."""
        self.check()
        self.raise_watched(reading=True)
        both, vals, empty = store
        read = self.home.get(both)
        return read.view(vals.dtype)[0].item() if int(read[1]) & 1 else empty

    def content(self, handle: Any) -> VectorStore:
        """A vector's store; an empty one is a list without entries."""
        if handle._store is not None:
            if self.maps.unsettled:
                self._settle(handle)
            return handle._store
        map, dtype = self.maps.of(handle.shape[0]), handle.dtype
        return (
            split_vector(map, dtype, self.devices[: map.p], np.zeros(0, np.int64), np.zeros(0, dtype.np_type), False)
            if map.n
            else VectorStore(
                map,
                dtype,
                "list",
                False,
                [
                    VectorBlock(
                        0, d.empty(1, dtype.np_type), 1, slots=d.empty(0, map.slot_type()), count=d.zeros(1, np.int64)
                    )
                    for d in self.devices[: map.p]
                ],
                0,
            )
        )


def _duplicates(dup_op: Any, dtype: Any) -> Any:
    """A typed binary operator, or None."""
    return None if dup_op is None else accumulator(dup_op, dtype)


def _read_block(device: Device, store: MatrixStore, block: MatrixBlock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row offsets, columns as user ids, values) of a block, on the host."""
    held = device.get(block.vals)
    vals = np.full(block.nnz, held[0]) if store.iso else held[: block.nnz]
    return device.get(block.indptr).astype(np.int64), store.colmap.users(device.get(block.cols)), vals
