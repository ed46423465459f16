"""A session: devices, kernels, row maps, plans. Handles give it their statements; nothing else reaches the devices."""

from functools import wraps
from typing import Any

import numpy as np

from .. import settings
from ..device.cpu import LARGE, host_room
from ..distribute import exchange
from ..distribute.blocks import VectorBlock, VectorStore, split_matrix, split_vector
from ..distribute.partition import Partition, RowMap, equal_edges, equal_rows
from ..errors import InvalidValue, OutOfMemory, OutputNotEmpty, message
from ..kernels.backends import open_devices
from ..semiring._lower import to_python
from ..semiring._types import INT64
from ..trace import counters
from ..typed import accumulator
from . import build, gate, lowered, matrices
from .cost import Facts
from .deterministic import order_matters, settled
from .direction import facts_of
from .plan import Plan, Planner, Value, is_twin, one_sided
from .run import Run
from .steps import cast

# rows plus entries below which `auto` keeps an object on one device: its products take less than handing them
# out
_PLANS = 10_000
_WHOLE = 100_000
_BUILD, _STATEMENT, _READ = 24, 40, 24  # bytes a row, at most, that a matrix takes for a while
_HYPERSPARSE = "every row takes room; number the ids in use anew, np.unique(ids, return_inverse=True)"


def _memory(method: Any) -> Any:
    """Running out of memory becomes OutOfMemory; the first argument says what for."""

    @wraps(method)
    def checked(session: Any, what: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return method(session, what, *arguments, **keywords)
        except MemoryError as error:
            free, total = session.devices[0].memory()
            came = f"{free} of {total} bytes free"
            raise OutOfMemory(message(f"memory for {_named(what)}", came, _hint(what) or str(error))) from error

    return checked


def _named(what: Any) -> str:
    return f"a {type(what).__name__} of shape {what.shape}" if hasattr(what, "shape") else str(what)


def _hint(what: Any) -> str:
    return _HYPERSPARSE if getattr(getattr(what, "output", what), "ndim", 0) == 2 else ""


class _Nil:
    """Arguments of one device that a call does not need, of the right types; and places whose content nobody reads."""

    def __init__(self, device: Any):
        self.words, self.stats, self.scratch = (
            device.zeros(1, np.int64),
            device.zeros(4, np.int64),
            device.zeros(1, np.int64),
        )
        self._slots = {"int32": device.zeros(1, np.int32), "int64": self.words}

    def slots(self, idx: str) -> Any:
        return self._slots[idx]


class _Workspace:
    """Room for a push over `n` slots; between steps vals are all `start` and words are zero."""

    def __init__(self, device: Any, n: int, monoid: Any, iso: bool):
        self.start = monoid.start
        self.vals = device.empty(1, monoid.dtype.np_type) if iso else device.full(n, monoid.start, monoid.dtype.np_type)
        self.words = device.zeros(-(-n // 64), np.int64)
        self.touched = device.empty(n, np.int32 if n < 2**31 else np.int64)


class Session:
    """The devices in use and everything made on them. `gb.init` makes one; another `gb.init` ends it."""

    int64 = INT64

    def __init__(self, spec: str = "auto", partition: Partition | None = None, deterministic: bool = False):
        if partition is not None and not isinstance(partition, Partition):
            raise TypeError(message("a partition such as gb.partition.shares(1, 5, 3)", repr(partition)))
        self.spec, self.auto, self.deterministic = spec, spec == "auto", bool(deterministic)
        self.device_set, self.kernels = open_devices(spec)
        self.devices = self.device_set.devices
        self.partition = partition
        if partition is not None:
            partition.bounds(64, len(self.devices), None)  # raises now if the weights don't fit the devices
        self._maps: dict[tuple[int, bool], RowMap] = {}
        self.defaults: dict[int, RowMap] = {}
        self.plans: dict[Any, Plan] = {}
        self.explaining: list[list[str]] = []
        self.alive = True
        self._watched: list[tuple[Any, Any, type, str]] = []
        self._nils = [_Nil(device) for device in self.devices]
        self._spaces: dict[Any, _Workspace] = {}
        self._cached: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"Session({', '.join(device.name for device in self.devices)})"

    def close(self) -> None:
        """End it: its handles raise InvalidValue from now on."""
        self.alive = False
        self.device_set.close()
        for name in ("plans", "_maps", "defaults", "_spaces", "_cached"):
            getattr(self, name).clear()

    def check(self) -> None:
        if not self.alive:
            raise InvalidValue(
                message(
                    "an object of the session in force",
                    "one of an ended session",
                    "gb.init ended it; make the object again",
                )
            )

    # -- what the devices find wrong

    def watch(self, device: Any, flag: Any, kind: type, text: str) -> None:
        """Raise kind(text) at the next read, if the device finds `flag` true by then."""
        self._watched.append((device, flag, kind, text))

    def raise_watched(self, reading: bool = False) -> None:
        """Raise what devices have found wrong: all of it when `reading`, else what the host sees for nothing."""
        if not self._watched:
            return
        watched, self._watched = self._watched, []
        for i, (device, flag, kind, text) in enumerate(watched):
            seen = device.peek(flag)
            if seen is None and not reading:
                self._watched.append(watched[i])
            elif bool(device.get(flag) if seen is None else seen):
                raise kind(text)

    # -- devices

    def each(self, p: int, work: Any, seconds: float) -> list[Any]:
        return [work(0)] if p == 1 else self.device_set.each(work, seconds)

    def nil(self, b: int) -> _Nil:
        return self._nils[b]

    def workspace(self, b: int, n: int, monoid: Any, iso: bool) -> _Workspace:
        key = (b, n, monoid, iso)
        found = self._spaces.get(key)
        if found is None:
            found = self._spaces[key] = _Workspace(self.devices[b], n, monoid, iso)
        return found

    def once(self, key: Any, make: Any) -> Any:
        found = self._cached.get(key)
        if found is None:
            found = self._cached[key] = make()
        return found

    def scalar(self, b: int, value: Any, dtype: Any) -> Any:
        """One value on device b, which nobody writes."""
        if len(self._cached) > _PLANS:
            self._cached.clear()
        exact = value if type(value) is int else np.array([value], dtype).tobytes()  # -0.0 is another float than 0.0
        key = "scalar", b, dtype, exact
        return self.once(key, lambda: self.devices[b].full(1, value, dtype))

    def rows(self, b: int, n: int) -> Any:
        """0..n-1 on device b."""
        return self.once(("rows", b, n), lambda: self.devices[b].put(np.arange(n)))

    def whole(self, b: int, n: int) -> Any:
        """The slot bounds of a single block, on device b."""
        return self.once(("whole", b, n), lambda: self.devices[b].put(np.array([0, max(n, 1)])))

    def ones(self, b: int, n: int) -> Any:
        """Words with the bits of n rows, on device b."""

        def make() -> Any:
            words = np.full((n + 63) >> 6, -1, np.int64)
            if n & 63:
                words[-1] = (1 << (n & 63)) - 1
            return self.devices[b].put(words)

        return self.once(("ones", b, n), make)

    # -- row maps

    def map_for(self, n: int) -> RowMap:
        """The default map of a size: the one its first matrix made, else equal rows (or the session's partition)."""
        found = self.defaults.get(n)
        return found if found is not None else self._map(n, self.auto and n < _WHOLE, None)

    def _map(self, n: int, whole: bool, lengths: np.ndarray | None) -> RowMap:
        found = self._maps.get((n, whole))
        if found is None or lengths is not None:
            partition = self.partition or (equal_rows() if lengths is None else equal_edges())
            bounds = np.array([0, n]) if whole else partition.bounds(n, len(self.devices), lengths)
            if found is None or not np.array_equal(found.bounds, bounds):
                found = RowMap(bounds)
            self._maps[n, whole] = found
        return found

    def maps(self, nrows: int, ncols: int, p: int) -> tuple[RowMap, RowMap]:
        """The maps of a matrix made on `p` devices."""
        found = []
        for n in (nrows, ncols):
            map = self.map_for(n)
            if map.p != p:
                map = self._map(n, p == 1, None)
            found.append(map)
        return found[0], found[1]

    def matrix_maps(self, nrows: int, ncols: int, nnz: int, lengths: np.ndarray | None) -> tuple[RowMap, RowMap]:
        """The maps of a new matrix; the first of its size decides the defaults, by its row lengths if given."""
        whole = self.auto and max(nrows, ncols) + nnz < _WHOLE
        p = 1 if whole else len(self.devices)
        maps = []
        for n, entries in ((nrows, lengths), (ncols, lengths if nrows == ncols else None)):
            found = self.defaults.get(n)
            if found is None or found.p != p:
                found = self._map(n, whole, entries if not whole and n not in self.defaults else None)
                self.defaults.setdefault(n, found)
            maps.append(found)
        return maps[0], maps[1]

    # -- content

    def attach(self, handle: Any) -> None:
        """A new or cleared handle: no content."""
        self.check()
        handle._store = None

    def check_empty(self, handle: Any) -> None:
        if handle.nvals:
            raise OutputNotEmpty(
                message("an empty object to build into", f"{handle.nvals} entries", "build(..., clear=True)")
            )

    @_memory
    def build_vector(
        self, vector: Any, ids: np.ndarray, vals: np.ndarray, iso: bool, dup_op: Any, trusted: bool = False
    ) -> None:
        """`trusted`: ids ascend, none occurs twice, and the arrays are given away."""
        self.check()
        if not trusted:
            ids, vals = build.sorted_vector(ids, vals, iso, _duplicates(dup_op, vector.dtype), vector.size)
        vector._store = (
            split_vector(self.map_for(vector.size), vector.dtype, self.devices, ids, vals, iso, trusted)
            if len(ids)
            else None
        )

    @_memory
    def adopt_dense(self, vector: Any, array: Any) -> None:
        """Fill a vector with a one-dimensional array that lies on a GPU of this session; nothing goes to the host."""
        self.check()
        map, dtype, blocks = self.map_for(vector.size), vector.dtype.np_type, []
        for b, device in enumerate(self.devices[: map.p]):
            vals = device.empty(map.rows[b], dtype)
            device.copy(vals, array[int(map.bounds[b]) : int(map.bounds[b + 1])])
            blocks.append(VectorBlock(map.rows[b], vals, 1))
        vector._store = VectorStore(map, vector.dtype, "full", False, blocks) if vector.size else None

    def device_array(self, vector: Any) -> Any:
        """The values of a full vector that lies whole on one GPU, or None."""
        self.check()
        store = vector._store
        if store is None or store.form != "full" or store.map.p > 1 or self.devices[0].kind == "cpu":
            return None
        self.raise_watched(reading=True)
        block = store.blocks[0]
        return block.vals[: block.n] if block.stride else self.devices[0].xp.repeat(block.vals[:1], block.n)

    @_memory
    def build_matrix(
        self, matrix: Any, rows: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, dup_op: Any
    ) -> None:
        """Arrays of the host, or of the first GPU; there they stay."""
        self.check()
        dup_op = _duplicates(dup_op, matrix.dtype)
        if isinstance(rows, np.ndarray):
            self.room(matrix.shape[0], _BUILD, matrix)
            return self._split(matrix, *build.sorted_matrix(*matrix.shape, rows, cols, vals, iso, dup_op), iso)
        found = gate.from_coo(self, matrix.shape, rows, cols, self._here(vals), iso, dup_op)
        return gate.distribute(self, matrix, found, iso)

    @_memory
    def build_csr(
        self, matrix: Any, indptr: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, trusted: bool = False
    ) -> None:
        """`trusted`: columns ascend in each row, none occurs twice, and the arrays are given away."""
        self.check()
        if not isinstance(cols, np.ndarray):
            found = gate.from_csr(self, matrix.shape[1], self._here(indptr), cols, self._here(vals), iso)
            return gate.distribute(self, matrix, found, iso)
        arrays = (indptr, cols, vals) if trusted else build.sorted_csr(indptr, cols, vals, iso, matrix.shape[1])
        return self._split(matrix, *arrays, iso, trusted)

    def room(self, n: int, each: int, what: Any) -> None:
        """Raises OutOfMemory unless the host can hold arrays of `n` elements, `each` bytes an element. `what`: the
        handle that they are for, or a name."""
        if n >= LARGE:
            host_room(n * each, _named(what), _hint(what))

    def _here(self, array: Any) -> Any:
        return self.devices[0].put(array) if isinstance(array, np.ndarray) else array

    def _split(
        self, matrix: Any, indptr: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, own: bool = False
    ) -> None:
        rowmap, colmap = self.matrix_maps(*matrix.shape, len(cols), np.diff(indptr))
        devices = self.devices[: rowmap.p]
        matrix._store = split_matrix(rowmap, colmap, matrix.dtype, devices, indptr, cols, vals, iso, own)

    @_memory
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

    def matrix_store(self, matrix: Any) -> Any:
        """The matrix's content; an empty one gets its blocks now."""
        if matrix._store is None:
            self.room(matrix.shape[0], _BUILD, matrix)
            self._split(
                matrix,
                np.zeros(matrix.shape[0] + 1, np.int64),
                np.zeros(0, np.int64),
                np.zeros(1, matrix.dtype.np_type),
                True,
            )
        return matrix._store

    def turned(self, store: Any) -> Any:
        """The transpose of a store that no handle holds."""
        return exchange.transpose(store, self.devices)

    def oriented(self, matrix: Any, transposed: bool) -> Any:
        """The matrix by rows, or by columns (built at the first need and kept; a symmetric one serves both ways)."""
        store = self.matrix_store(matrix)
        if not transposed or store.symmetric:
            return store
        if store.transposed is None:
            self.room(matrix.shape[1], _BUILD, matrix)
            other = exchange.transpose(store, self.devices)
            store.symmetric = store.rowmap is store.colmap and exchange.same(store, other)
            if store.symmetric:
                return store
            store.transposed, other.transposed, other.symmetric = other, store, False
        return store.transposed

    def known_count(self, store: VectorStore) -> int | None:
        """Entries of a vector, if the host can tell without reading from a device."""
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
        self.check()
        self.raise_watched(reading=True)
        store = handle._store
        if store is None:
            return 0
        if store.nvals is None and self.known_count(store) is None:
            store.nvals = sum(
                int(device.get(block.count)[0]) for device, block in zip(self.devices, store.blocks, strict=False)
            )
        return store.nvals

    @_memory
    def vector_to_host(self, vector: Any) -> tuple[np.ndarray, np.ndarray]:
        self.room(self.nvals(vector), _READ, vector)
        if vector._store is None:
            return np.zeros(0, np.int64), np.zeros(0, vector.dtype.np_type)
        store = vector._store
        parts = [build.block_to_host(self.devices[b], block) for b, block in enumerate(store.blocks)]
        ids = np.concatenate([rows + first for (rows, _), first in zip(parts, store.map.bounds[:-1], strict=True)])
        return ids, np.concatenate([vals for _, vals in parts]).astype(vector.dtype.np_type, copy=False)

    @_memory
    def matrix_to_host(self, matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.room(matrix.shape[0] + self.nvals(matrix), _READ, matrix)
        store = self.matrix_store(matrix)
        indptrs, cols, vals, above = [np.zeros(1, np.int64)], [], [], 0
        for device, block in zip(self.devices, store.blocks, strict=False):
            indptrs.append(device.get(block.indptr)[1:].astype(np.int64) + above)
            above += block.nnz
            cols.append(store.colmap.users(device.get(block.cols)))
            held = device.get(block.vals)
            vals.append(np.full(block.nnz, held[0]) if store.iso else held[: block.nnz])
        return np.concatenate(indptrs), np.concatenate(cols).astype(np.int64, copy=False), np.concatenate(vals)

    def element(self, handle: Any, position: tuple[int, ...]) -> Any:
        """One value as a Python scalar, or None."""
        self.check()
        self.raise_watched(reading=True)
        store = handle._store
        if store is None:
            return None
        map = store.map if handle.ndim == 1 else store.rowmap
        b = int(map.owner(position[0]))
        device, block, row = self.devices[b], store.blocks[b], position[0] - int(map.bounds[b])
        if handle.ndim == 1:
            return build.vector_element(device, block, row)
        return build.matrix_element(device, block, row, int(store.colmap.slots(np.array([position[1]]))[0]))

    def read_scalar(self, store: tuple[Any, Any, Any]) -> Any:
        """The value of a computed scalar, as Run._reduce leaves it, and what it is without entries."""
        self.check()
        self.raise_watched(reading=True)
        both, vals, empty = store
        read = self.devices[0].get(both)
        return read.view(vals.dtype)[0].item() if int(read[1]) & 1 else empty

    # -- statements

    @_memory
    def run(self, statement: Any) -> Any:
        """Plan (or find the plan) and run; returns the statement."""
        self.check()
        output = statement.output
        self.raise_watched()
        if self.deterministic and hasattr(statement.expr.op, "multiply"):
            statement.expr = settled(statement.expr)
        if (lower := lowered.find(statement)) is not None:
            return lower(statement)
        if output.ndim == 2:
            self.room(output.shape[0], _STATEMENT, output)
            return matrices.run(self, statement)
        if output.ndim == 0 and (statement.expr.shape or statement.mask is not None):
            raise TypeError(message("a scalar expression, s << x.reduce(monoid)", repr(statement)))
        if output.ndim == 0 and (statement.accum is not None or statement.expr.kind == "fill"):
            return self._scalar_on_host(statement)
        counters.statements += 1
        facts, plan, stores = self._prepare(statement)
        statement.plan = plan
        if self.explaining:
            self.explaining[-1].append(f"{statement!r}\n{plan}")
            return statement
        if settings.verbose & 3:
            print(f"{statement!r}\n{plan}" if settings.verbose & 2 else repr(statement))
        try:
            result = Run(self, statement, plan, facts, stores).go()
        except BaseException:
            self._spaces.clear()  # a broken step may have left marks in them
            raise
        if output.ndim:
            output._store = result
            return statement
        result = *result, statement.expr.option[1]
        if output.dtype is statement.expr.dtype:
            output._store = result
        else:
            value = self.read_scalar(result)
            output.value = None if value is None else cast(value, statement.expr.dtype, output.dtype)
        return statement

    def _scalar_on_host(self, statement: Any) -> Any:
        """`s(accum) << x.reduce(...)`, `s(accum) << value`: on the host, as a scalar's value is read there anyway."""
        output, accum, expr = statement.output, statement.accum, statement.expr
        if expr.kind == "fill":
            statement.plan = Plan((), None)
            if self.explaining:
                self.explaining[-1].append(f"{statement!r}\n  on the host")
                return statement
            new = None if expr.option is None else cast(expr.option, expr.dtype, output.dtype)
        else:
            term = output.dup(clear=True, name=output.name)
            statement.plan = self.run(type(statement)(term, None, None, False, expr, None, statement.hints)).plan
            new = term.value
        old = output.value
        if self.explaining or (new is None and accum is not None):
            return statement
        number = output.dtype.np_type.type
        if accum is not None and old is not None:
            new = to_python(accum.program)(number(old), number(new))
        output.value = new
        return statement

    def _prepare(self, statement: Any) -> tuple[Facts | None, Plan, dict[str, Any]]:
        """Operand stores by register name, the facts of a product, and the plan for operands of these kinds."""
        expr, output, mask = statement.expr, statement.output, statement.mask
        stores: dict[str, Any] = {}
        key: list[Any] = [expr.kind, expr.op, output.dtype, statement.accum, statement.replace, statement.index is None]
        if output._store is not None and output.ndim:
            stores["w"] = output._store
        elif output.ndim:
            key.append(self.map_for(output.shape[0]))
        if mask is not None:
            stores["m"] = self.content(mask.parent)
            key += [mask.structural, mask.complement, is_twin(statement)]
        facts = None
        if expr.kind in ("product", "reduce_rows"):
            facts = facts_of(self, statement, stores)
            key += [
                facts.direction,
                facts.dense,
                facts.p,
                facts.inner,
                facts.outer,
                facts.flip,
                facts.dtype,
                facts.iso,
                facts.ptr,
                facts.empty_rows,
                facts.orientation,
            ]
        elif expr.kind == "fill":
            key.append(expr.dtype)
        elif expr.kind == "reduce" and expr.left.ndim == 2:
            stores["x"] = matrices.values_as_vector(self, expr.left, self.deterministic)
        else:
            stores["x"] = self.content(expr.left)
            if expr.right is not None:
                stores["y"] = self.content(expr.right)
            if expr.kind == "chain":
                third, inner, flip = expr.option
                stores["z"] = self.content(third)
                key += (inner.op, one_sided(inner), flip)
        if expr.kind == "apply":
            key.append(expr.option[0])
        elif expr.kind == "union":
            key.append(one_sided(expr))
        elif expr.kind == "reduce":
            if self.deterministic and order_matters(expr.op) and not expr.op.is_any:
                facts, map = Facts(), stores["x"].map
                facts.outer, facts.direction = map if map.p == 1 else self._map(map.n, True, None), None
                key.append(facts.outer)
        elif expr.kind == "extract":
            facts = Facts()
            facts.outer, facts.direction = self.map_for(len(expr.option)), None
            key.append(facts.outer)
        key.append(statement.hints.get("form"))
        for name, store in stores.items():
            key += (name, store.form, store.dtype, store.iso, store.map)
        cache_key = tuple(key)
        plan = self.plans.get(cache_key)
        if plan is None:
            values = {
                name: Value(name, store.form, store.dtype, store.iso, store.map) for name, store in stores.items()
            }
            values.setdefault(
                "w", Value("w", "empty", output.dtype, False, self.map_for(output.shape[0]) if output.ndim else None)
            )
            if len(self.plans) >= _PLANS:  # each anonymous function makes plans of its own
                self.plans.clear()
            plan = self.plans[cache_key] = Planner(statement, values, facts).plan()
        return facts, plan, stores

    def content(self, handle: Any) -> VectorStore:
        """A vector's store; an empty one is a list without entries."""
        if handle._store is not None:
            return handle._store
        map, dtype = self.map_for(handle.shape[0]), handle.dtype
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
