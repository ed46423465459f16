"""What handles hold: building it, and turning it round; reading it is below (reading.py). The face that handles see of
their session, but for running statements."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

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
from ..distribute.ranks import Ranks
from ..distribute.rowmap import RowMap, Task
from ..distribute.sets import BlockSets, block_sets
from ..errors import OutputNotEmpty, message
from ..interrupts import imported
from ..kernels.interface import Spec
from ..language.recording import recorder
from ..language.typed import accumulator
from ..trace import listeners
from . import build, dry, gate
from .matrix.elements import with_elements
from .matrix.map_rows import map_rows
from .matrix.transpose import same, transpose
from .moving import settled
from .plan import Plan, Step, Value
from .reading import Reading, memory_checked, out_of_memory
from .runner import Runner

SORTED = 2e-8  # seconds an entry that is sorted on the host
BUILD, STATEMENT = 24, 40  # bytes a row, at most, that a matrix takes for a while

R = TypeVar("R")


class Stores(Reading):
    """The content of handles on the devices of a session."""

    made_of: Any  # by the content of matrices, what `derived` made of each

    def host_of(self, array: Any) -> np.ndarray:
        """A copy on the host of an array of any library that lies on a GPU, whatever devices the session has."""
        return imported("gbgpu.device.cuda").as_host(array)

    def attach(self, handle: Any) -> None:
        """A new or cleared handle: no content."""
        self.check()
        if self.recorders and (here := recorder(self)) is not None:
            here.add("clear", handle, lambda: self.clear(handle))
        else:
            handle._store = None

    def clear(self, handle: Any) -> None:
        """No content any more."""
        with self.lock:
            self.attach(handle)
            self.filled(handle)

    def take(self, handle: Any, made: Any) -> None:
        """A handle takes the shape and the content of another one that was made for it. Raises InvalidValue where that
        was only planned."""
        with self.lock:
            self.computed(made)
            handle._shape, handle._store = made.shape, made._store
            self.filled(handle)

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
            or self.home.shares_memory
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

    @memory_checked
    def map_rows(self, matrix: Any, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        """Give a matrix what a function makes of the rows of others, on their devices."""
        matrix._store = map_rows(self, function, [self.matrix_store(operand) for operand in operands])

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
            return self.allgather(tasks, self.over(tasks, work, seconds), "what blocks read and write")

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

    @memory_checked
    def symmetric(self, matrix: Any) -> bool:
        """Whether the matrix equals its transpose, which is made unless that is known."""
        store = self.matrix_store(matrix)
        if store.symmetric is None:
            self.oriented(matrix, True)
        return bool(store.symmetric)

    def derived(self, matrix: Any, make: Callable[..., Any], *given: Hashable) -> Any:
        """make(matrix, *given), cached as long as the matrix has this content and there is memory. Of each function the
        last result is cached, so that a matrix does not collect results."""
        made = self.made_of.setdefault(self.matrix_store(matrix), {})
        known = made.get(make, (None, None))
        kept = known[0] == given
        if self.ranks is not None:  # memory may have been short on some of them alone
            kept = self.ranks.total(kept, "what was made of a matrix") == self.ranks.size
        if not kept:
            known = made[make] = given, make(matrix, *given)
        return known[1]

    def known_equal(self, one: Any, two: Any) -> bool | None:
        """Whether two handles of one shape have equal content, if that needs no comparison; NaN equals nothing."""
        a, b = one._store, two._store
        if a is None or b is None or one.dtype is not two.dtype or one.dtype.kind == "f":
            return None
        if a is b:
            return True
        return False if one.ndim == 2 and a.transposed is b and a.symmetric is False else None

    def waits(self, matrix: Any, place: tuple[int, int], value: Any) -> MatrixStore | None:
        """One entry of a matrix is set, or (None) deleted, when the matrix is next read; then all that wait are, in one
        pass. Of several ranks at once, as one may read what others don't: the content then."""
        store, log = matrix._held
        if self.ranks is not None:
            return with_elements(self, self.matrix_store(matrix), {place: value})
        if log:
            log[place] = value
        else:
            matrix._held = store, {place: value}
        return None

    def arrived(self, matrix: Any) -> MatrixStore:
        """The content of a matrix, with the entries that waited."""
        try:
            with self.lock:
                self.check()
                store, log = matrix._held
                if not log:  # another thread has read it
                    return store
                if self.dry and id(log) in self.explaining.known:
                    return self.explaining.known[id(log)][0]
                base = store or (dry.empty(self, matrix) if self.dry else self._without_entries(matrix))
                text = f"entries of {matrix.name} that were set or deleted one by one: {len(log)}"
                step = Step("elements", Value(matrix.name, "csr", base.dtype, False, base.rowmap), (), Spec(), text)
                work, foreseen = (partial(how, self, base, log) for how in (with_elements, dry.with_elements))
                made = self.aside(step, work, foreseen)
                if not self.dry:
                    matrix._held = made, None
                return made
        except MemoryError as error:
            raise out_of_memory(self, matrix, error) from error

    def matrix_store(self, matrix: Any) -> MatrixStore:
        """The matrix's content; an empty one gets its blocks now."""
        if self.dry:
            return dry.known(self, matrix)
        if matrix._store is None:
            matrix._store = self._without_entries(matrix)
        if self.maps.unsettled:
            self._settle(matrix)
        return matrix._store

    def _without_entries(self, matrix: Any) -> MatrixStore:
        self.room(matrix.shape[0], BUILD, matrix)
        nrows, ncols = matrix.shape
        rowmap, colmap = self.maps.of_matrix(nrows, ncols, 0, np.zeros(0, np.int64))

        def block(task: Task) -> MatrixBlock:
            device, n = self.devices[task.device], rowmap.rows[task.block]
            cols, vals = device.empty(0, colmap.slot_type()), device.zeros(1, matrix.dtype.np_type)
            return matrix_block(device, device.zeros(n + 1, np.int32), cols, vals, 0, 0)

        numbers = MatrixNumbers(rowmap, colmap, matrix.dtype, True, "int32", (0,) * rowmap.p, nrows > 0)
        return MatrixStore(numbers, self.over(rowmap.tasks, block, 0.0))

    def _settle(self, handle: Any) -> None:
        """What a handle holds goes to the rows where it belongs, unless a loop is captured, or has the first device."""
        if self.capturing is None and not self.maps.alone:
            handle._store = settled(self, handle._store)

    def oriented(self, matrix: Any, transposed: bool) -> MatrixStore:
        """The matrix by rows, or by columns (built at the first need and kept; a symmetric one serves both ways)."""
        store = self.matrix_store(matrix)
        if not transposed or store.symmetric:
            return store
        if store.transposed is None:
            into = Value(matrix.name, "csr", store.dtype, store.iso, store.colmap)
            step = Step("transpose", into, (), Spec(), f"{matrix.name} by columns, cached with it")
            other = self.aside(step, partial(self._turned, matrix, store), partial(dry.transposed, store))
            square = store.rowmap is store.colmap
            store.symmetric = self.aside(None, lambda: square and same(self, store, other), lambda: False)
            if store.symmetric:
                return store
            store.transposed, other.transposed, other.symmetric = other, store, False
        return store.transposed

    def _turned(self, matrix: Any, store: MatrixStore) -> MatrixStore:
        self.room(matrix.shape[1], BUILD, matrix)
        return transpose(self, store)

    def aside(self, step: Step | None, work: Callable[[], Any], foreseen: Callable[[], Any]) -> Any:
        """work(), as a step of the statement in hand that its plan does not have (None: nobody is told of it). Where
        the statement does not run: foreseen(), what is known without doing it."""
        if self.dry:
            found = foreseen()
        elif listeners and step is not None:
            found = Runner(self, Plan((), (), (step,)), {}, step.into.name).made(step, lambda _: work())
        else:
            found = work()
        if self.made is not None and step is not None:
            self.made.append(step)
        return found

    def content(self, handle: Any) -> VectorStore:
        """A vector's store; an empty one is a list without entries."""
        if self.dry:
            return dry.known(self, handle)
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
