"""Statements whose output is a matrix. Content is never changed in place, so copies share it; every write rule is a few
row merges."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import settings
from ..distribute.blocks import MatrixStore, VectorBlock, VectorStore, matrix_block, offset_type, split_matrix
from ..distribute.partition import RowMap
from ..errors import NotImplementedException, message
from ..expr import Transposed
from ..kernels.interface import A_ONLY, B_ONLY, BOTH, Spec
from ..semiring._operators import SelectOp, UnaryOp
from ..trace import Record, counters, emit, listeners, now
from .plan import Plan, Step, Value, keeps_iso

_UNION = A_ONLY | B_ONLY | BOTH


def run(session: Any, statement: Any) -> Any:
    """Plan and carry out `C(mask, accum, replace) << expression of matrices`."""
    expr, output = statement.expr, statement.output
    if (
        output.ndim != 2
        or expr.kind not in ("copy", "apply", "select", "union", "intersect", "fill")
        or statement.index is not None
    ):
        raise NotImplementedException(
            message("a matrix from a copy, apply, select, | or &", repr(statement), "build it by from_coo")
        )
    counters.statements += 1
    work = _Work(session, statement)
    statement.plan = work.plan()
    if session.explaining:
        session.explaining[-1].append(f"{statement!r}\n{statement.plan}")
        return statement
    if settings.verbose & 3:
        print(f"{statement!r}\n{statement.plan}" if settings.verbose & 2 else repr(statement))
    output._store = work.result()
    return statement


def values_as_vector(session: Any, matrix: Any) -> VectorStore:
    """The values of a matrix as a full vector, for reductions."""
    store = session.matrix_store(matrix)
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

    def plan(self) -> Plan:
        statement, dtype, mask = self.statement, self.statement.output.dtype, self.statement.mask
        self._expression(statement.expr)
        if statement.expr.dtype is not dtype:
            self._then(
                "cast",
                f"{statement.expr.dtype} -> {dtype}",
                lambda: self.apply(self.t, UnaryOp.registry["identity"][dtype], "", 0),
            )
        if statement.accum is not None:
            self._then(
                "merge",
                f"union with the output by {statement.accum!r}",
                lambda: self.merge(self.c, self.t, _UNION, statement.accum),
            )
        if mask is not None:
            kept, rest = (A_ONLY, BOTH) if mask.complement else (BOTH, A_ONLY)
            text = f"{'~' if mask.complement else ''}mask.{'S' if mask.structural else 'V'}"
            self._then("merge", f"entries inside {text}", lambda: self.merge(self.t, self.mask, kept, None))
            if not statement.replace:
                self._then(
                    "merge",
                    "with the output's entries outside",
                    lambda: self.merge(self.t, self.merge(self.c, self.mask, rest, None), _UNION, None),
                )
        nothing = Value("t", "csr", dtype, False, None)
        return Plan(tuple(Step(kind, nothing, (), None, text) for kind, text, _ in self.steps), None)

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
        if expr.kind == "fill":
            return self._then("fill", f"{expr.dtype} scalar", self._filled)
        source, op = self._source(expr.left), expr.op
        if expr.kind == "copy":
            self._then("copy", "shared, as content never changes in place", source)
        elif expr.kind == "apply":
            side, thunk = expr.option
            self._then("apply", f"{op!r}", lambda: self.apply(source(), op, side, thunk))
        elif expr.kind == "select":
            self._then("select", f"{op!r}", lambda: self.select(source(), op, expr.option))
        else:
            keep, right = (_UNION if expr.kind == "union" else BOTH), self._source(expr.right)
            self._then(
                "merge", f"{expr.kind} by {op!r}", lambda: self.merge(source(), right(), keep, op, op.return_type)
            )

    def _filled(self) -> MatrixStore:
        """One value for every position, or for those of a mask that lets its own entries through."""
        expr, mask = self.statement.expr, self.statement.mask
        masked = mask is not None and not mask.complement
        store = self.mask if masked else self.c
        blocks = []
        for b, held in enumerate(store.blocks):
            device, m = self.session.devices[b], store.colmap.n
            value = device.full(1, expr.option, expr.dtype.np_type)
            if masked:
                blocks.append(_with_values(held, value, 0))
                continue
            cols = np.tile(store.colmap.slots(np.arange(m)), held.n).astype(store.idx)
            indptr = (np.arange(held.n + 1) * m).astype(offset_type(self.statement.output.shape[0] * m))
            blocks.append(
                matrix_block(device, device.put(indptr), device.put(cols), value, 0, held.n * m, np.diff(indptr))
            )
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
            return _with_values(block, vals, 0 if iso else 1)

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
            return self._two_passes(store, b, *passes, store.dtype, store.iso, store.nvals)

        return MatrixStore(store.rowmap, store.colmap, store.dtype, store.iso, self._each(store, work))

    def merge(self, one: MatrixStore, two: MatrixStore, keep: int, op: Any, dtype: Any = None) -> MatrixStore:
        """Rows of two matrices side by side; `keep` says which entries survive, op(a, b) (or a) where both are
        present."""
        two = self._aligned(two, one)
        dtype = one.dtype if dtype is None else dtype
        iso = one.iso and op is None and not keep & B_ONLY and dtype is one.dtype
        spec = Spec(op=op, a=one.dtype, b=two.dtype, out=dtype, ptr=one.ptr, idx=one.idx)
        if two.ptr != one.ptr:
            raise NotImplementedException("matrices with offsets of different widths can't be merged yet")
        most = one.nvals + two.nvals
        count, fill = (self.session.kernels.get(kind, spec) for kind in ("merge_count", "merge"))

        def work(b: int) -> Any:
            x, y = one.blocks[b], two.blocks[b]
            return self._two_passes(
                one,
                b,
                lambda lengths: count(x.n, x.indptr, x.cols, y.indptr, y.cols, keep, lengths),
                lambda *out: fill(
                    x.n, x.indptr, x.cols, x.vals, x.stride, y.indptr, y.cols, y.vals, y.stride, keep, *out
                ),
                dtype,
                iso,
                most,
            )

        return MatrixStore(one.rowmap, one.colmap, dtype, iso, self._each(one, work))

    def _two_passes(self, store: MatrixStore, b: int, count: Any, fill: Any, dtype: Any, iso: bool, most: int) -> Any:
        """Row lengths, offsets made of them (of one type in all blocks, for up to `most` entries), then the entries."""
        block, device = store.blocks[b], self.session.devices[b]
        lengths = device.empty(block.n, np.int64)
        count(lengths)
        host = device.get(lengths)
        nnz = int(host.sum())
        indptr = device.put(np.concatenate([[0], np.cumsum(host)]).astype(offset_type(most)))
        cols, vals = device.empty(nnz, store.idx), device.empty(max(nnz, 1), dtype.np_type)
        fill(indptr, cols, vals)
        return matrix_block(device, indptr, cols, block.vals if iso else vals, 0 if iso else 1, nnz, host)

    def _aligned(self, store: MatrixStore, like: MatrixStore) -> MatrixStore:
        """The same matrix on the maps of another (through the host: matrices seldom live on different ones)."""
        if store.rowmap is like.rowmap and store.colmap is like.colmap:
            return store
        holder = _Holder(store)
        indptr, cols, vals = self.session.matrix_to_host(holder)
        devices = self.session.devices[: like.rowmap.p]
        vals = vals[:1] if store.iso and len(vals) else vals
        return split_matrix(
            like.rowmap,
            like.colmap,
            store.dtype,
            devices,
            indptr,
            cols,
            vals if len(vals) else np.zeros(1, store.dtype.np_type),
            store.iso,
        )


class _Holder:
    """A store where a handle is wanted."""

    def __init__(self, store: MatrixStore):
        self._store = store


def _with_values(block: Any, vals: Any, stride: int) -> Any:
    return type(block)(block.n, block.indptr, block.cols, vals, stride, block.nnz, block.heavy, block.empty_rows)
