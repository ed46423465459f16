"""Runs the steps of a plan of matrices. Content is never changed in place, so copies share it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...distribute.blocks import (
    MatrixBlock,
    MatrixStore,
    as_symmetric,
    assembled,
    matrix_block,
    offset_type,
    revalued,
)
from ...distribute.rowmap import Task
from ...kernels.interface import B_ONLY, BOTH, Spec
from ..plan import Step, keeps_iso
from ..run.steps import cast
from ..runner import Runner
from . import shapes
from .csr import Rows, aligned, keep_entries, offsets
from .mxm import Product, valued, values_of
from .transpose import transpose


class MatrixRun(Runner):
    """A plan carried out on what its registers and parameters are bound to."""

    __slots__ = ()

    def _sources(self, step: Step) -> list[Any]:
        return [self.registers[name] for name in step.sources]

    def _fill(self, step: Step) -> MatrixStore:
        (dtype, maps), value = step.option, self.registers["value"]
        if not step.sources:
            places = maps[0].n, maps[1].n
            self.session.room(places[0] * places[1], 12, f"an entry at each of {places} places")
            return shapes.filled(self.session, maps[0], maps[1], dtype, value)
        store = self.registers[step.sources[0]]
        ones = [device.full(1, value, dtype.np_type) for device in self.session.devices[: store.rowmap.p]]
        blocks = [block.with_values(one, 0) for block, one in zip(store.blocks, ones, strict=True)]
        return as_symmetric(revalued(store, dtype, True, blocks), store)

    def _element(self, step: Step) -> MatrixStore | None:
        """It waits for the next read of the matrix."""
        i, j = (int(index.ids()[0]) for index in self.registers["place"])
        value = None if step.option is None else cast(self.registers["value"], *step.option)
        return self.session.waits(self.registers["output"], (i, j), value)

    def _copy(self, step: Step) -> MatrixStore:
        return self.registers[step.sources[0]]

    def _apply(self, step: Step) -> MatrixStore:
        return self.apply(self.registers["x"], step.option, step.spec.bound, self.registers["thunk"])

    def _cast(self, step: Step) -> MatrixStore:
        return self.apply(self.registers["t"], step.option, "", 0)

    def _select(self, step: Step) -> MatrixStore:
        return self.select(self.registers["x"], step.option, self.registers["thunk"])

    def _mask(self, step: Step) -> MatrixStore:
        """The entries that are true."""
        return self.select(self.registers["m"], step.option, step.option.dtypes[1].np_type.type(0))

    def _merge(self, step: Step) -> MatrixStore:
        (one, two), (keep, op) = self._sources(step), step.option
        dtype = one.dtype if op is None or step.sources[0] == "w" else op.return_type
        return self.merge(one, two, keep, op, dtype, self.registers["defaults"] if step.parameters else None)

    def _mxm(self, step: Step) -> MatrixStore:
        a, b, *mask = self._sources(step)
        return Product(self.session, step.spec.op, step.option).result(a, b, mask[0] if mask else None)

    def _kron(self, step: Step) -> MatrixStore:
        one, two = self._sources(step)
        self.session.room(one.nvals * two.nvals, 64, "a Kronecker product")
        return shapes.kron(self.session, one, two, step.option)

    def _extract(self, step: Step) -> MatrixStore:
        return shapes.extract(self.session, self.registers["x"], *self.registers["ids"])

    def _concat(self, step: Step) -> MatrixStore:
        return shapes.concat(self.session, self.registers["tiles"], step.into.dtype)

    def _diag(self, step: Step) -> MatrixStore:
        return shapes.diag(self.session, self.registers["x"], self.registers["diagonal"])

    def _column(self, step: Step) -> MatrixStore:
        return shapes.column(self.session, self.registers["x"])

    def _transpose(self, step: Step) -> MatrixStore:
        return transpose(self.session, self.registers["t"])

    def _place(self, step: Step) -> MatrixStore:
        t, w = self._sources(step)
        rows, cols = self.registers["place"]
        return shapes.place(self.session, t, rows, cols, w, step.option)

    def _region(self, step: Step) -> MatrixStore:
        rows, cols = self.registers["place"]
        return shapes.region(self.session, self.registers[step.sources[0]], rows, cols, step.option)

    # -- one operation on all blocks

    def _each(self, store: MatrixStore, work: Callable[[Task], MatrixBlock]) -> list[MatrixBlock]:
        return self.session.over(
            store.rowmap.tasks, work, store.nvals * self.session.kernels.costs.pull_edge / store.rowmap.p
        )

    def apply(self, store: MatrixStore, op: Any, side: str, thunk: Any) -> MatrixStore:
        positional = bool(op.program.uses & {"i", "j", "k"})
        iso, devices, session = keeps_iso(op, store.iso), self.session.devices, self.session
        spec = Spec(op=op, a=store.dtype, b=store.dtype, out=op.return_type, ptr=store.ptr, idx=store.idx, bound=side)
        kernel = session.kernels.get(
            "matrix_apply" if positional else "apply",
            spec if positional else spec._replace(a=None, ptr="int32", idx="int32"),
        )

        def work(task: Task) -> MatrixBlock:
            b = task.block
            block, device, unused = store.blocks[b], devices[task.device], session.placeholders(task.device)
            n = 1 if iso else block.nnz
            vals = device.empty(max(n, 1), op.return_type.np_type)
            if positional:
                kernel(*self._rows(store, b, thunk), vals)
            else:
                kernel(
                    n, unused.words, unused.slots("int32"), block.vals, block.stride, thunk, 0, 0, unused.words, vals
                )
            return block.with_values(vals, 0 if iso else 1)

        made = revalued(store, op.return_type, iso, self._each(store, work))
        return made if positional else as_symmetric(made, store)

    def _rows(self, store: MatrixStore, b: int, thunk: Any) -> tuple:
        """What kernels over the entries of block b are given first."""
        block, device = store.blocks[b], self.session.devices[b]
        return (block.n, *block.csr, thunk, *store.colmap.tables(device).ids, *store.rowmap.row_ids(device, b))

    def select(self, store: MatrixStore, op: Any, thunk: Any) -> MatrixStore:
        mirrored = op.op.is_positional and op.name in ("diag", "offdiag") and not thunk
        hollow = mirrored and op.name == "offdiag"
        if hollow and store.hollow:
            return store
        spec = Spec(op=op, a=store.dtype, out=store.dtype, ptr=store.ptr, idx=store.idx)
        kernel = self.session.kernels.get("matrix_select", spec)

        def work(task: Task) -> MatrixBlock:
            block, device = store.blocks[task.block], self.session.devices[task.device]
            keep = device.empty((block.nnz + 63) // 64, np.int64)
            kernel(*self._rows(store, task.block, thunk), keep)
            rows = keep_entries(device, Rows(*block.csr), keep, block.nnz)
            if rows.cols is block.cols:
                return block
            indptr = rows.indptr.astype(store.ptr, copy=False)  # of one type in all blocks
            return matrix_block(device, indptr, rows.cols, rows.vals, rows.stride, len(rows.cols))

        blocks = self._each(store, work)
        kept = [new is old for new, old in zip(blocks, store.blocks, strict=True)]
        if all(self.session.allgather(store.rowmap.tasks, kept, "what a selection kept")):
            store.hollow |= hollow
            return store
        made = assembled(store.rowmap, store.colmap, store.dtype, store.iso, blocks, self.session.allgather)
        made.hollow = store.hollow or hollow
        placed = op.program.uses & {"i", "j", "k"}
        return as_symmetric(made, store) if mirrored or not placed else made

    def merge(
        self, one: MatrixStore, two: MatrixStore, keep: int, op: Any, dtype: Any = None, defaults: Any = None
    ) -> MatrixStore:
        """Rows of two matrices side by side; `keep` says which entries survive, op(a, b) (or a) where both are
        present. With `defaults` an operator meets them where one is missing."""
        two = aligned(self.session, two, one.rowmap, one.colmap)
        dtype = one.dtype if dtype is None else dtype
        if keep & BOTH and self._alike(one, two):
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
        spec = spec._replace(op=op, a=one.dtype, b=one.dtype if pattern else two.dtype, out=dtype, lone=side)
        fill = self.session.kernels.get("merge", spec)
        defaults = (0, 0) if defaults is None else defaults

        def work(task: Task) -> MatrixBlock:
            b = task.block
            x, y, device = one.blocks[b], two.blocks[b], self.session.devices[b]
            ids = *one.colmap.tables(device).ids, *one.rowmap.row_ids(device, b)
            xptr, yptr = (block.indptr.astype(ptr, copy=False) for block in (x, y))
            sides = xptr, x.cols, x.vals, x.stride, yptr, y.cols, *((x.vals, 0) if pattern else (y.vals, y.stride))
            lengths = device.empty(x.n, np.int64)
            count(x.n, xptr, x.cols, yptr, y.cols, keep, lengths)
            indptr, nnz = offsets(device, lengths)
            indptr = indptr.astype(ptr, copy=False)
            cols, vals = device.empty(nnz, one.idx), device.empty(max(nnz, 1), dtype.np_type)
            fill(x.n, *sides, keep, *ids, *defaults, indptr, cols, vals)
            return matrix_block(device, indptr, cols, x.vals if iso else vals, 0 if iso else 1, nnz)

        return assembled(one.rowmap, one.colmap, dtype, iso, self._each(one, work), self.session.allgather)

    def _alike(self, one: MatrixStore, two: MatrixStore) -> bool:
        """Whether two matrices on the same maps share their pattern."""
        each = [x.same_pattern(y) for x, y in zip(one.blocks, two.blocks, strict=True)]
        return one.lengths == two.lengths and all(self.session.allgather(one.rowmap.tasks, each, "a shared pattern"))
