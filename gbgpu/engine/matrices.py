"""Statements whose output is a matrix. Content is never changed in place, so copies share it; every write rule is a few
row merges."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import settings
from ..distribute.blocks import MatrixStore, VectorBlock, VectorStore, matrix_block, offset_type, split_matrix
from ..distribute.partition import RowMap
from ..expr import Transposed
from ..kernels.interface import A_ONLY, B_ONLY, BOTH, Spec
from ..semiring._operators import SelectOp, UnaryOp
from ..trace import Record, counters, emit, listeners, now
from . import shapes
from .csr import offsets
from .mxm import Product, valued, values_of
from .plan import Plan, Step, Value, keeps_iso

_UNION = A_ONLY | B_ONLY | BOTH


def run(session: Any, statement: Any) -> Any:
    """Plan and carry out `C(mask, accum, replace)[I, J] << expression of matrices`."""
    counters.statements += 1
    work = _Work(session, statement)
    statement.plan = work.plan()
    if session.explaining:
        session.explaining[-1].append(f"{statement!r}\n{statement.plan}")
        return statement
    if settings.verbose & 3:
        print(f"{statement!r}\n{statement.plan}" if settings.verbose & 2 else repr(statement))
    statement.output._store = work.result()
    return statement


def values_as_vector(session: Any, matrix: Any, ordered: bool) -> VectorStore:
    """The values of a matrix or a transpose as a full vector, for reductions; `ordered`: by its rows, else as they
    lie."""
    turned = isinstance(matrix, Transposed)
    store = session.oriented(matrix.matrix if turned else matrix, turned and ordered)
    if store.entries is None:
        store.entries = RowMap(np.concatenate([[0], np.cumsum([block.nnz for block in store.blocks])]))
    blocks = [VectorBlock(block.nnz, block.vals, block.stride) for block in store.blocks]
    return VectorStore(store.entries, store.dtype, "full", store.iso, blocks)


class _Work:
    """A statement as a list of (kind, text, function of the values so far)."""

    def __init__(self, session: Any, statement: Any):
        self.session, self.statement = session, statement
        self.steps: list[tuple[str, str, Callable[[], MatrixStore]]] = []
        self.t: Any = None
        self.inside = False  # T has no entry outside the mask
        self.placed = False  # T lies where the index says

    def plan(self) -> Plan:
        statement, dtype = self.statement, self.statement.output.dtype
        self._expression(statement.expr)
        if statement.expr.dtype is not dtype:
            self._then(
                "cast",
                f"{statement.expr.dtype} -> {dtype}",
                lambda: self.apply(self.t, UnaryOp.registry["identity"][dtype], "", 0),
            )
        if statement.index is not None:
            self._place()
        if statement.accum is not None:
            self._then(
                "merge",
                f"union with the output by {statement.accum!r}",
                lambda: self.merge(self.c, self.t, _UNION, statement.accum),
            )
        if statement.mask is not None:
            self._masked()
        nothing = Value("t", "csr", dtype, False, None)
        return Plan(tuple(Step(kind, nothing, (), None, text) for kind, text, _ in self.steps), None)

    def _place(self) -> None:
        """T in the rows and columns that the index names; without an accumulator the output's other entries stay."""
        statement, (rows, cols) = self.statement, self.statement.index
        monoid = getattr(statement.accum, "monoid", None)
        if not self.placed:
            text = f"rows and columns of the output: {rows!r}, {cols!r}"
            self._then("place", text, lambda: shapes.place(self.session, self.t, rows, cols, self.c, monoid))
        if statement.accum is None:
            self.inside = False
            self._then(
                "merge",
                "with the output's entries in other places",
                lambda: self.merge(self.t, shapes.region(self.session, self.c, rows, cols, False), _UNION, None),
            )

    def _masked(self) -> None:
        mask, accum, replace = self.statement.mask, self.statement.accum, self.statement.replace
        kept, rest = (A_ONLY, BOTH) if mask.complement else (BOTH, A_ONLY)
        text = f"{'~' if mask.complement else ''}mask.{'S' if mask.structural else 'V'}"
        if self.inside and accum is not None and not replace:
            return
        if not self.inside or accum is not None:
            self._then("merge", f"entries inside {text}", lambda: self.merge(self.t, self.mask, kept, None))
        if not replace and not self.fresh:
            self._then(
                "merge",
                "with the output's entries outside",
                lambda: self.merge(self.t, self.merge(self.c, self.mask, rest, None), _UNION, None),
            )

    @property
    def fresh(self) -> bool:
        """Whether the output is known to be empty."""
        store = self.statement.output._store
        return store is None or store.nvals == 0

    def result(self) -> MatrixStore:
        for kind, _, function in self.steps:
            before, start = (counters.launches, counters.host_reads), now()
            self.t = function()
            if listeners:
                self._record(kind, before, start)
        return self.t

    def _record(self, kind: str, before: tuple[int, int], start: float) -> None:
        """A record of a step for each device; the launches and host reads of all are with the first."""
        launches, reads, end = counters.launches - before[0], counters.host_reads - before[1], now()
        for b in range(self.t.rowmap.p):
            record = Record(counters.statements, repr(self.statement), kind, self.session.devices[b].name, form="csr")
            record.launches, record.host_reads = (launches, reads) if b == 0 else (0, 0)
            record.start, record.end = start, end
            emit(record)

    def _then(self, kind: str, text: str, function: Callable[[], MatrixStore]) -> None:
        self.steps.append((kind, text, function))

    @property
    def c(self) -> MatrixStore:
        return self.session.matrix_store(self.statement.output)

    @property
    def mask(self) -> MatrixStore:
        mask = self.statement.mask
        store = self.session.matrix_store(mask.parent)
        if mask.structural:
            return store
        true = SelectOp.registry["valuene"][store.dtype]
        return self.select(store, true, true.dtypes[1].np_type.type(0))

    def _expression(self, expr: Any) -> None:
        getattr(self, "_" + expr.kind)(expr)

    def _fill(self, expr: Any) -> None:
        self._then("fill", f"{expr.dtype} scalar", self._filled)
        mask = self.statement.mask
        self.inside = self.placed = mask is not None and not mask.complement

    def _copy(self, expr: Any) -> None:
        self._then("copy", "shared, as content never changes in place", self._source(expr.left))

    def _apply(self, expr: Any) -> None:
        source, (side, thunk) = self._source(expr.left), expr.option
        self._then("apply", f"{expr.op!r}", lambda: self.apply(source(), expr.op, side, thunk))

    def _select(self, expr: Any) -> None:
        source = self._source(expr.left)
        self._then("select", f"{expr.op!r}", lambda: self.select(source(), expr.op, expr.option))

    def _union(self, expr: Any) -> None:
        self._ewise(expr, _UNION, expr.option)

    def _intersect(self, expr: Any) -> None:
        self._ewise(expr, BOTH, None)

    def _ewise(self, expr: Any, keep: int, defaults: Any) -> None:
        one, two, op = self._source(expr.left), self._source(expr.right), expr.op
        text = f"{expr.kind} by {op!r}{'' if defaults is None else ', defaults ' + str(defaults)}"
        self._then("merge", text, lambda: self.merge(one(), two(), keep, op, op.return_type, defaults))

    def _mxm(self, expr: Any) -> None:
        statement = self.statement
        mask = statement.mask if statement.index is None else None  # else it is that of the whole output
        product = Product(self.session, expr, mask, statement.hints.get("method"))
        self.inside = product.inside

        def multiply() -> MatrixStore:
            return product.result(self.mask if product.inside else None, self.aligned, lambda x: self._source(x)())

        self._then("mxm", product.text(), multiply)

    def _kron(self, expr: Any) -> None:
        one, two = self._source(expr.left), self._source(expr.right)
        self._then("kron", f"{expr.op!r}", lambda: self._kronecker(one(), two(), expr.op))

    def _kronecker(self, one: MatrixStore, two: MatrixStore, op: Any) -> MatrixStore:
        self.session.room(one.nvals * two.nvals, 64, "a Kronecker product")
        return shapes.kron(self.session, one, two, op)

    def _extract(self, expr: Any) -> None:
        source, (rows, cols) = self._source(expr.left), expr.option
        self._then("extract", f"{rows!r}, {cols!r}", lambda: shapes.extract(self.session, source(), rows, cols))

    def _diag(self, expr: Any) -> None:
        text = f"a vector on diagonal {expr.option}"
        self._then("diag", text, lambda: shapes.diag(self.session, self.session.content(expr.left), expr.option))

    def _column(self, expr: Any) -> None:
        make = lambda: shapes.column(self.session, self.session.content(expr.left))  # noqa: E731
        self._then("column", "a vector as a matrix of one column", make)

    def _row(self, expr: Any) -> None:
        self._column(expr)
        self._then("transpose", "as a row", lambda: self.session.turned(self.t))

    def _filled(self) -> MatrixStore:
        """One value for every position (that the index names), or for those of a mask that lets its own entries
        through."""
        statement, mask = self.statement, self.statement.mask
        expr = statement.expr
        if mask is None or mask.complement:
            like = self.c
            maps = (like.rowmap, like.colmap)
            if statement.index is not None:
                maps = self.session.maps(*(len(index) for index in statement.index), like.rowmap.p)
            places = maps[0].n, maps[1].n
            self.session.room(places[0] * places[1], 12, f"an entry at each of {places} places")
            return shapes.filled(self.session, *maps, expr.dtype, expr.option)
        store = self.mask
        if statement.index is not None:
            store = shapes.region(self.session, store, *statement.index, True)
        blocks = []
        for device, held in zip(self.session.devices, store.blocks, strict=False):
            blocks.append(held.with_values(device.full(1, expr.option, expr.dtype.np_type), 0))
        return MatrixStore(store.rowmap, store.colmap, expr.dtype, True, blocks)

    def _source(self, operand: Any) -> Callable[[], MatrixStore]:
        turned = isinstance(operand, Transposed)
        return lambda: self.session.oriented(operand.matrix if turned else operand, turned)

    # -- one operation on all blocks

    def _each(self, store: MatrixStore, work: Callable[[int], Any]) -> list[Any]:
        return self.session.each(
            store.rowmap.p, work, store.nvals * self.session.kernels.costs.pull_edge / store.rowmap.p
        )

    def apply(self, store: MatrixStore, op: Any, side: str, thunk: Any) -> MatrixStore:
        positional = bool(op.program.uses & {"i", "j", "k"})
        iso, devices, session = keeps_iso(op, store.iso), self.session.devices, self.session
        spec = Spec(op=op, a=store.dtype, b=store.dtype, out=op.return_type, ptr=store.ptr, idx=store.idx, side=side)
        kernel = session.kernels.get(
            "matrix_apply" if positional else "apply",
            spec if positional else spec._replace(a=None, ptr="int32", idx="int32"),
        )

        def work(b: int) -> Any:
            block, device, nil = store.blocks[b], devices[b], session.nil(b)
            n = 1 if iso else block.nnz
            vals = device.empty(max(n, 1), op.return_type.np_type)
            if positional:
                kernel(*self._rows(store, b, thunk), vals)
            else:
                kernel(n, nil.words, nil.slots("int32"), block.vals, block.stride, thunk, 0, 0, vals)
            return block.with_values(vals, 0 if iso else 1)

        return MatrixStore(store.rowmap, store.colmap, op.return_type, iso, self._each(store, work))

    def _rows(self, store: MatrixStore, b: int, thunk: Any) -> tuple:
        """What kernels over the entries of block b are given first."""
        block, (starts, bounds) = store.blocks[b], store.colmap.tables(self.session.devices[b])
        csr = block.n, block.indptr, block.cols, block.vals, block.stride
        return (*csr, thunk, starts, bounds, store.rowmap.first(b))

    def select(self, store: MatrixStore, op: Any, thunk: Any) -> MatrixStore:
        spec = Spec(op=op, a=store.dtype, out=store.dtype, ptr=store.ptr, idx=store.idx)
        count, fill = (self.session.kernels.get(kind, spec) for kind in ("matrix_select_count", "matrix_select"))

        def work(b: int) -> Any:
            given = self._rows(store, b, thunk)
            passes = (lambda lengths: count(*given, lengths)), (lambda *out: fill(*given, *out))
            return self._two_passes(store, b, *passes, store.dtype, store.iso, store.ptr)

        return MatrixStore(store.rowmap, store.colmap, store.dtype, store.iso, self._each(store, work))

    def merge(
        self, one: MatrixStore, two: MatrixStore, keep: int, op: Any, dtype: Any = None, defaults: Any = None
    ) -> MatrixStore:
        """Rows of two matrices side by side; `keep` says which entries survive, op(a, b) (or a) where both are
        present. With `defaults` an operator meets them where one is missing."""
        two = self.aligned(two, one.rowmap, one.colmap)
        dtype = one.dtype if dtype is None else dtype
        if keep & BOTH and all(x.same_pattern(y) for x, y in zip(one.blocks, two.blocks, strict=True)):
            if op is None and dtype is one.dtype:
                return one
            if op is not None and not op.program.uses & {"i", "j", "k"}:
                return valued(self.session, one, op, values_of(one), values_of(two))
        iso = one.iso and op is None and not keep & B_ONLY and dtype is one.dtype
        most = one.nvals + two.nvals
        ptr = max(one.ptr, two.ptr, offset_type(most))
        side = "defaults" if defaults is not None else ""
        pattern = op is None and not keep & B_ONLY  # of `two` only the pattern matters: one kernel for all its types
        spec = Spec(ptr=ptr, idx=one.idx)
        count = self.session.kernels.get("merge_count", spec)
        spec = spec._replace(op=op, a=one.dtype, b=one.dtype if pattern else two.dtype, out=dtype, side=side)
        fill = self.session.kernels.get("merge", spec)
        defaults = (0, 0) if defaults is None else defaults

        def work(b: int) -> Any:
            x, y, tables = one.blocks[b], two.blocks[b], one.colmap.tables(self.session.devices[b])
            xptr, yptr = (block.indptr.astype(ptr, copy=False) for block in (x, y))
            sides = xptr, x.cols, x.vals, x.stride, yptr, y.cols, *((x.vals, 0) if pattern else (y.vals, y.stride))
            return self._two_passes(
                one,
                b,
                lambda lengths: count(x.n, xptr, x.cols, yptr, y.cols, keep, lengths),
                lambda *out: fill(x.n, *sides, keep, *tables, one.rowmap.first(b), *defaults, *out),
                dtype,
                iso,
                ptr,
            )

        return MatrixStore(one.rowmap, one.colmap, dtype, iso, self._each(one, work))

    def _two_passes(self, store: MatrixStore, b: int, count: Any, fill: Any, dtype: Any, iso: bool, ptr: str) -> Any:
        """Row lengths, offsets made of them (of one type in all blocks), then the entries."""
        block, device = store.blocks[b], self.session.devices[b]
        lengths = device.empty(block.n, np.int64)
        count(lengths)
        indptr, nnz = offsets(device, lengths)
        indptr = indptr.astype(ptr, copy=False)
        cols, vals = device.empty(nnz, store.idx), device.empty(max(nnz, 1), dtype.np_type)
        fill(indptr, cols, vals)
        return matrix_block(device, indptr, cols, block.vals if iso else vals, 0 if iso else 1, nnz)

    def aligned(self, store: MatrixStore, rowmap: RowMap, colmap: RowMap) -> MatrixStore:
        """The same matrix on other maps (matrices seldom live on different ones)."""
        if store.rowmap is rowmap and store.colmap is colmap:
            return store
        holder = _Holder(store)
        indptr, cols, vals = self.session.matrix_to_host(holder)
        devices = self.session.devices[: rowmap.p]
        vals = vals[:1] if store.iso and len(vals) else vals
        vals = vals if len(vals) else np.zeros(1, store.dtype.np_type)
        return split_matrix(rowmap, colmap, store.dtype, devices, indptr, cols, vals, store.iso)


class _Holder:
    """A store where a handle is wanted."""

    def __init__(self, store: MatrixStore):
        self._store = store
