"""Products of two matrices: which way, and that way.

dot: each entry of the mask is the product of a row and a column. rows: the terms of a row gather at the entries of the
mask, or in an accumulator of all columns. hash: the same with a table in place of one element a column. dense: B has
all its entries. sort: all terms are made, sorted and combined. scale: a factor is a diagonal. Each device makes its
rows and is given all of B.
"""

from typing import Any

import numpy as np

from ... import settings
from ...device.base import Device
from ...device.cpu import LARGE, host_room
from ...device.remote import AWAY
from ...distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore, revalued
from ...distribute.rowmap import Task
from ...errors import InvalidValue, message
from ...kernels.interface import AFULL, BFULL, COMPLEMENT, MASKED, OUTFULL, Spec, counts_hits
from ...language.expr import Transposed
from ..context import Context
from ..near import near_matrix, near_vector
from ..plan import is_idempotent
from .csr import Rows, aligned, by_row_and_column, gathered, keep_entries, offsets, read, store_of, whole_vector
from .plan import Multiply

WIDE = 1 << 20  # columns from which a mark for each may cost more than a table
SHORT = 1 << 10
BARE = 64  # columns for each term from which to clear a place for each takes longer than a table
TERMS = 1 << 26  # made at a time by `sort`
ROOM = 1 << 26  # entries that `rows` and `hash` make room for at first, if there may be as many


def values_of(store: MatrixStore) -> tuple[Any, list[tuple[Any, int]], bool]:
    """(type, values and stride of each block, whether they are one value)."""
    return store.dtype, [(block.vals, block.stride) for block in store.blocks], store.iso


def valued(session: Context, pattern: MatrixStore, op: Any, left: tuple, right: tuple) -> MatrixStore:
    """A pattern with op(x, y) for its values; sides as `values_of` gives them, one value an entry or one for all."""
    (a, xs, one), (b, ys, other) = left, right
    kernel = session.kernels.get("ewise", Spec(op=op, a=a, b=b, out=op.return_type))
    iso = one and other

    def work(task: Task) -> MatrixBlock:
        i, device, unused = task.block, session.devices[task.device], session.placeholders(task.device)
        block = pattern.blocks[i]
        n = 1 if iso else block.nnz
        vals = device.empty(max(n, 1), op.return_type.np_type)
        sides = *xs[i], unused.words, *ys[i], unused.words, unused.words, 0, unused.words
        kernel(n, *sides, AFULL | BFULL | OUTFULL, 0, unused.words, 0, 0, vals, unused.words, unused.scratch)
        return block.with_values(vals, 0 if iso else 1)

    seconds = pattern.nvals * session.kernels.costs.pull_edge / pattern.rowmap.p
    return revalued(pattern, op.return_type, iso, session.over(pattern.rowmap.tasks, work, seconds))


def choose(session: Context, expr: Any, mask: Any, hint: str | None) -> Multiply:
    """The way to carry out `semiring(A @ B)` inside a mask (or None). Raises InvalidValue for a hint that can't be."""
    a, b = (_base(session, x) for x in (expr.left, expr.right))
    narrow = mask is not None and not mask.complement
    held = _base(session, mask.parent) if narrow else None
    scales = None if hint else _diagonal(session, expr, a, b)
    rows, cols = expr.right.shape
    full = b.nvals == rows * cols
    offered = session.kernels.mxm
    way = hint or _cheapest(expr, a, b, held, offered, bool(b.nvals) and full)
    if hint and hint not in offered or (way == "dot" and not narrow) or (way == "dense" and not full):
        needs = "dot: with a mask, not complemented; dense: B has all its entries"
        raise InvalidValue(message(f"a method among {', '.join(offered)} ({needs})", repr(hint)))
    way = "scale" if scales else way
    return Multiply(way, mask is not None and way in ("dot", "rows", "hash"), narrow, scales)


def _base(session: Context, operand: Any) -> MatrixStore:
    return session.matrix_store(operand.matrix if isinstance(operand, Transposed) else operand)


def _cheapest(
    expr: Any, a: MatrixStore, b: MatrixStore, held: MatrixStore | None, offered: tuple[str, ...], full: bool
) -> str:
    inside = held is not None and _dot_cost(expr, b, held) < _rows_cost(expr, a, b, held)
    if full and not inside:
        return "dense"
    if "rows" not in offered:
        return "dot" if held is not None else "sort"
    if inside:
        return "dot"
    (n, inner), width = expr.left.shape, expr.right.shape[1]
    terms = a.nvals * b.nvals / max(inner, 1)
    short = width >= WIDE << 4 and terms < SHORT * max(n, 1)
    return "hash" if short or width >= WIDE and terms * BARE < width else "rows"


def _dot_cost(expr: Any, b: MatrixStore, held: MatrixStore) -> float:
    """Predicted entries looked at, by mean lengths; a transposition that isn't there yet counts too."""
    ready = isinstance(expr.right, Transposed) or b.symmetric or b.transposed is not None
    return held.nvals * b.nvals / max(expr.right.shape[1], 1) + (0 if ready else 8 * b.nvals)


def _rows_cost(expr: Any, a: MatrixStore, b: MatrixStore, held: MatrixStore) -> float:
    ready = not isinstance(expr.right, Transposed) or b.symmetric or b.transposed is not None
    return 1.5 * a.nvals * b.nvals / max(expr.right.shape[0], 1) + 2 * held.nvals + (0 if ready else 8 * b.nvals)


def _is_diagonal(session: Any, store: MatrixStore) -> bool:
    """Whether a matrix has every entry of its diagonal, and no other; looked up once."""
    if store.diagonal is None:
        store.diagonal = store.rowmap is store.colmap and store.lengths == tuple(store.rowmap.rows)

        def lined(task: Task) -> bool:
            block, first = store.blocks[task.block], store.rowmap.first_slot(task.block)
            return session.devices[task.device].is_line(block.indptr, block.cols[: block.nnz], first)

        seconds = store.nvals * session.kernels.costs.row
        if store.diagonal:

            def all_lined() -> bool:
                found = session.over(store.rowmap.tasks, lined, seconds)
                return all(session.allgather(store.rowmap.tasks, found, "a diagonal"))

            store.diagonal = session.aside(None, all_lined, lambda: False)
    return store.diagonal


def _diagonal(session: Any, expr: Any, a: MatrixStore, b: MatrixStore) -> str | None:
    """The side that is a diagonal which only scales the rows or columns of the other."""
    if expr.op.multiply.program.uses & {"i", "j", "k"}:
        return None
    if _is_diagonal(session, b) and (a.colmap if not isinstance(expr.left, Transposed) else a.rowmap) is b.rowmap:
        return "right"
    if _is_diagonal(session, a) and (b.rowmap if not isinstance(expr.right, Transposed) else b.colmap) is a.rowmap:
        return "left"
    return None


class Product:
    """`semiring(A @ B)` on its way."""

    def __init__(self, session: Context, op: Any, how: Multiply):
        self.session, self.op, self.how = session, op, how
        self.way, self.narrow = how.way, how.narrow

    def result(self, a: MatrixStore, b: MatrixStore, mask: MatrixStore | None) -> MatrixStore:
        """The product of A by rows and B by rows (by columns for dot), where `mask` has entries."""
        if self.how.scales:
            return self._scaled(a, b)
        colmap, rowmap = (b.rowmap, b.colmap) if self.way == "dot" else (b.colmap, b.rowmap)
        if rowmap is not a.colmap or colmap.p != a.rowmap.p:
            colmap = self.session.maps.pair(a.rowmap.n, colmap.n, a.rowmap.p)[1]
            b = aligned(self.session, b, *((colmap, a.colmap) if self.way == "dot" else (a.colmap, colmap)))
        if mask is not None:
            mask = aligned(self.session, mask, a.rowmap, colmap)
        self.a, self.b, self.m, self.colmap = a, near_matrix(self.session, b), mask, colmap
        self.ptr = "int64" if "int64" in {a.ptr, b.ptr, a.ptr if mask is None else mask.ptr} else "int32"
        uses = self.op.multiply.program.uses
        one = (a.iso or "x" not in uses) and (b.iso or "y" not in uses) and not uses & {"i", "j", "k"}
        self.iso = one and is_idempotent(self.op.monoid) and self.way != "sort"
        self.spec = Spec(
            self.op, a.dtype, b.dtype, self.op.return_type, self.ptr, a.idx, iso=self.iso, hashed=self.way == "hash"
        )
        work = {"dot": self._inside, "dense": self._dense, "sort": self._sorted}.get(self.way, self._by_rows)
        seconds = 0.0
        if a.nvals + b.nvals > 1000:  # by mean lengths; in fact often more
            terms = a.nvals * b.nvals / max(a.colmap.n, 1)
            seconds = max(terms * self.session.kernels.costs.pull_edge / a.rowmap.p, settings.inline_seconds)
        # nobody's kernels are in the way of what others fetch
        self.all = self.session.over(a.rowmap.tasks, lambda task: gathered(self.session, self.b, task.device), seconds)
        made = self.session.over(a.rowmap.tasks, lambda task: work(task.block), seconds)

        def kept(task: Task) -> Rows:
            rows, found = made[task.block]
            return rows if found is None else keep_entries(self.session.devices[task.device], rows, found)

        # how many were found is read once all devices are at work
        whole = all(part is AWAY or part[1] is None for part in made)
        parts = self.session.over(a.rowmap.tasks, kept, 0.0 if whole else seconds)
        return store_of(self.session, a.rowmap, colmap, self.op.return_type, self.iso, parts)

    def _operands(self, b: int) -> tuple[Any, tuple, tuple, Rows]:
        """(device, arguments of A and B, of the tables, all of B)."""
        device, block = self.session.devices[b], self.a.blocks[b]
        whole = self.all[b]._replace(indptr=self.all[b].indptr.astype(self.ptr, copy=False))
        first = block.n, block.indptr.astype(self.ptr, copy=False), block.cols, block.vals, block.stride
        tables = *self.a.colmap.tables(device).ids, *self.colmap.tables(device).ids, *self.a.rowmap.row_ids(device, b)
        return device, (*first, *whole), tables, whole

    def _scaled(self, a: MatrixStore, b: MatrixStore) -> MatrixStore:
        session, multiply = self.session, self.op.multiply
        by_row = self.how.scales == "left"
        other, scales = (b, a) if by_row else (a, b)
        if scales.iso:
            factors = scales.dtype, [(block.vals, 0) for block in scales.blocks], True
            return valued(session, other, multiply, *((factors, values_of(b)) if by_row else (values_of(a), factors)))
        vector = [VectorBlock(block.n, block.vals, block.stride) for block in scales.blocks]
        diagonal = VectorStore(scales.rowmap, scales.dtype, "full", scales.iso, vector)
        if not by_row:
            diagonal = near_vector(session, diagonal)
        types = {"a": other.dtype, "b": scales.dtype, "out": multiply.return_type, "ptr": other.ptr, "idx": other.idx}
        kernel = session.kernels.get("matrix_scale", Spec(op=multiply, bound="left" if by_row else "right", **types))

        def work(task: Task) -> MatrixBlock:
            block = other.blocks[task.block]
            held = vector[task.block] if by_row else whole_vector(session, diagonal, task.block)
            vals = session.devices[task.device].empty(max(block.nnz, 1), multiply.return_type.np_type)
            kernel(block.n, *block.csr, held.vals, vals)
            return block.with_values(vals, 1)

        seconds = other.nvals * session.kernels.costs.pull_edge / other.rowmap.p
        return revalued(other, multiply.return_type, False, session.over(other.rowmap.tasks, work, seconds))

    # each of these gives rows, and which of their entries were found, or None for all

    def _inside(self, b: int) -> tuple[Rows, Any]:
        """The product's entries at those of the mask."""
        device, operands, tables, _ = self._operands(b)
        assert self.m is not None
        held = self.m.blocks[b]
        at = Rows(held.indptr.astype(self.ptr, copy=False), held.cols, held.vals, 0)
        return self._fill(b, operands, tables, at, "mxm_dot" if self.way == "dot" else "mxm_rows")

    def _fill(self, b: int, operands: tuple, tables: tuple, at: Rows, kind: str) -> tuple[Rows, Any]:
        device, nnz = self.session.devices[b], len(at.cols)
        vals = device.empty(1 if self.iso else max(nnz, 1), self.op.return_type.np_type)
        found = device.zeros(nnz, np.bool_)
        hashed = self.way == "hash"
        widest = self.a.colmap.nslots if kind == "mxm_dot" else self.colmap.nslots
        marks = self._marks(b, at, widest, hashed, operands if kind == "mxm_dot" else None)
        kernel = self.session.kernels.get(kind, self.spec)
        kernel(*operands, at.indptr, at.cols, *tables, marks, vals, found)
        return Rows(at.indptr, at.cols, vals, 0 if self.iso else 1), found

    def _marks(self, b: int, at: Rows, width: int, hashed: bool, operands: tuple | None) -> Any:
        """The workspace of the kernels."""
        device = self.session.devices[b]
        indptr = at.indptr if operands is None else operands[1]
        longest = int(device.xp.diff(indptr).max()) if hashed and len(indptr) > 1 else 0
        plain = operands is not None and counts_hits(self.spec)
        return self.session.kernels.marks(device, self.a.blocks[b], longest, width, hashed, plain)

    def _by_rows(self, b: int) -> tuple[Rows, Any]:
        """Row by row (Gustavson 1978): the terms of a row gather in an accumulator of all columns, or in a table."""
        if self.narrow:
            return self._inside(b)
        device, operands, tables, whole = self._operands(b)
        n, indptr, cols = operands[:3]
        get, np_type, width = self.session.kernels.get, self.op.return_type.np_type, self.colmap.nslots
        terms = device.empty(n, np.int64)
        get("mxm_terms", Spec(ptr=self.ptr, idx=self.a.idx))(n, indptr, cols, whole.indptr, terms)
        held, flags = (None, 0) if self.m is None else (self.m.blocks[b], MASKED | COMPLEMENT)
        mptr = indptr if held is None else held.indptr.astype(self.ptr, copy=False)
        mcols = self.session.placeholders(b).slots(self.a.idx) if held is None else held.cols
        if self.spec.hashed:
            longest = int(terms.max(initial=0)) + 1
            barred = 0 if held is None or not n else int(np.diff(mptr).max())
            marks = self.session.kernels.marks(device, self.a.blocks[b], longest + barred, width, True)
        else:
            longest, words = width, (width + 63) // 64
            marks = device.zeros(words + (words + 63) // 64, np.uint64)
        sums = device.full(longest if self.spec.hashed or not self.iso else 1, self._start, np_type)
        lengths, progress = device.empty(n, np.int64), np.zeros(2, np.int64)
        kernel, most, done = get("mxm_gustavson", self.spec), int(np.minimum(terms, width).sum()) + 1, 0
        slot = np.dtype(self.colmap.slot_type())
        each = slot.itemsize + (0 if self.iso else np.dtype(np_type).itemsize)
        room = min(most, ROOM)
        if room > LARGE:  # memory is taken where it is written to
            room = min(room, device.memory()[0] // (2 * each))
        room = min(most, max(room, width + 1))
        # not from the device, whose large arrays keep their size
        found, vals = np.empty(room, slot), np.empty(1 if self.iso else room, np_type)
        while True:
            given = found[done:], vals if self.iso else vals[done:]
            kernel(*operands, terms, mptr, mcols, flags, width, *tables, marks, sums, progress, lengths, *given)
            row, done = int(progress[0]), done + int(progress[1])
            room = done
            if row < n:  # as much as the rows so far had of their bounds, and at least one row more
                left = int(np.minimum(terms[row:], width).sum())
                room += max(int(left * min(1.1 * done / max(most - left, 1), 1.0)), int(min(terms[row], width))) + 1
                host_room((room - len(found)) * each, f"{room} entries of a product")
            found.resize(room, refcheck=False)
            if not self.iso:
                vals.resize(room, refcheck=False)
            if row >= n:
                break
        return Rows(offsets(device, lengths)[0], found, vals, 0 if self.iso else 1), None

    @property
    def _start(self) -> Any:
        """What sums begin with."""
        return 0 if self.iso or self.op.monoid.is_any else self.op.monoid.start

    def _terms(self, device: Device, whole: Rows, cols: Any) -> Any:
        """How many terms each entry of A has."""
        return device.xp.diff(whole.indptr).astype(np.int64)[cols]

    def _dense(self, b: int) -> tuple[Rows, Any]:
        device, operands, tables, whole = self._operands(b)
        m, xp = self.colmap.n, device.xp
        out, total = offsets(device, (xp.diff(operands[1]) > 0) * m)
        vals = device.empty(1 if self.iso else max(total, 1), self.op.return_type.np_type)
        kernel = self.session.kernels.get("mxm_dense", self.spec)
        kernel(*operands, m, *tables, out, vals)
        if total <= len(whole.cols):  # each row has the same columns, as has each of B
            return Rows(out, whole.cols[:total], vals, 0 if self.iso else 1), None
        slots = device.put(np.sort(self.colmap.slots(np.arange(m))).astype(self.colmap.slot_type()))
        return Rows(out, xp.tile(slots, total // max(m, 1)), vals, 0 if self.iso else 1), None

    def _sorted(self, b: int) -> tuple[Rows, Any]:
        """Whole rows of A at a time, as many as have about TERMS terms."""
        device, operands, tables, whole = self._operands(b)
        n, indptr, cols, avals, stride = operands[:5]
        begins = device.zeros(len(cols) + 1, np.int64)
        device.xp.cumsum(self._terms(device, whole, cols), out=begins[1:])
        upto = device.get(begins[indptr])
        parts, row = [], 0
        while row < n:
            last = max(row + 1, int(np.searchsorted(upto, upto[row] + TERMS, side="right")) - 1)
            lo, hi = read(device, indptr, row), read(device, indptr, last)
            piece = indptr[row : last + 1] - indptr.dtype.type(lo)
            some = last - row, piece, cols[lo:hi], avals[lo:hi] if stride else avals, stride, *operands[5:]
            moved = *tables[:-2], tables[-2] + row, tables[-1]
            parts.append(
                self._sort_some(device, some, moved, begins[lo : hi + 1] - begins[lo], int(upto[last] - upto[row]))
            )
            row = last
        return _stacked(device, parts, self.op.return_type, cols), None

    def _sort_some(self, device: Device, operands: tuple, tables: tuple, begins: Any, total: int) -> Rows:
        n, width = operands[0], max(self.colmap.nslots, 1)
        keys, vals = device.empty(total, np.int64), device.empty(max(total, 1), self.op.return_type.np_type)
        kernel = self.session.kernels.get("mxm_expand", self.spec)
        kernel(*operands, begins, width, *tables, keys, vals)
        order, first, indptr = by_row_and_column(device, n, keys // width, keys % width, width)
        return Rows(
            indptr, keys[order[first]] % width, combined(self.session, device, self.op.monoid, order, first, vals), 1
        )


def combined(session: Context, device: Device, op: Any, order: Any, first: Any, vals: Any) -> Any:
    """One value for each run of a sorted order, its entries combined in that order."""
    xp = device.xp
    starts = xp.flatnonzero(first)
    out = device.empty(max(len(starts), 1), vals.dtype)
    dtype = op.dtype if hasattr(op, "binary") else op.dtypes[0]
    if len(starts):
        session.kernels.get("combine_runs", Spec(op=op, b=dtype))(len(starts), starts, order, vals, out)
    return out


def _stacked(device: Device, parts: list[Rows], dtype: Any, like: Any) -> Rows:
    """Groups of rows one below the other."""
    xp = device.xp
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Rows(device.zeros(1, np.int64), like[:0], device.zeros(1, dtype.np_type), 1)
    pieces, above = [device.zeros(1, np.int64)], 0
    for part in parts:
        pieces.append(part.indptr[1:] + above)
        above += len(part.cols)
    cols, vals = (
        xp.concatenate([getattr(part, name)[: len(part.cols)] for part in parts]) for name in ("cols", "vals")
    )
    return Rows(xp.concatenate(pieces), cols, vals, 1)
