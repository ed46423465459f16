"""Entries that lie on a GPU -> sorted rows there; the host learns how many there are, and little else.

Entries are sorted by keys of 64 bits, row and column side by side, as many rows at a time as have about CHUNK entries:
what that needs beyond input and result (16 bytes for each of these, 40 with values) does not grow with the matrix.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..distribute.partition import Task
from ..errors import InvalidValue, message
from .build import check_duplicates
from .context import Context
from .matrix.csr import Rows, store_of, take_rows, to_slots
from .matrix.mxm import combined
from .run.steps import copied

CHUNK: int | None = None  # None: one for each 256 bytes of the GPU's memory


def from_coo(session: Context, shape: tuple[int, int], rows: Any, cols: Any, vals: Any, iso: bool, dup_op: Any) -> Rows:
    """CSR with ascending columns (user ids) from entries in any order; equal places are combined in input order."""
    device: Any = session.devices[0]  # a GPU, which does more than what is asked of every device
    xp, nrows, bits = device.xp, shape[0], max(shape[1] - 1, 1).bit_length()
    if max(nrows - 1, 1).bit_length() + bits > 62:
        raise InvalidValue(message("a shape of at most 2**62 places", shape, "arrays on the host may be larger"))
    indptr, kept, held, above = device.zeros(nrows + 1, np.int64), [], [], 0
    for lo, hi, parts in _chunks(device, nrows, rows):
        if not parts:
            indptr[lo : hi + 1] = above
            continue
        keys = _joined(xp, [device.keys(rows[part], cols[part], bits) for part in parts])
        order = device.sort(keys) if iso else device.order(keys)
        keys = keys if iso else keys[order]
        first = xp.ones(len(keys), bool)
        xp.not_equal(keys[1:], keys[:-1], out=first[1:])
        unique = bool(device.get(first.all()))
        if not unique:
            check_duplicates(iso, dup_op)
            keys = keys[first]
        if not iso:
            mine = _joined(xp, [vals[part] for part in parts])
            held.append(mine[order] if unique else combined(session, device, dup_op, order, first, mine))
        del order, first
        indptr[lo : hi + 1] = xp.searchsorted(keys, xp.arange(lo, hi + 1) << bits) + above
        above += len(keys)
        keys &= (1 << bits) - 1
        kept.append(keys.astype(np.int32 if shape[1] <= 2**31 else np.int64, copy=False))
        del keys
    values = vals if iso else _joined(xp, held) if held else vals[:0]
    return Rows(indptr, _joined(xp, kept) if kept else device.empty(0, np.int32), values, 0 if iso else 1)


def from_csr(session: Context, ncols: int, indptr: Any, cols: Any, vals: Any, iso: bool) -> Rows:
    """CSR with ascending columns. Raises ValueError for duplicates."""
    device, n = session.devices[0], len(indptr) - 1
    begins = device.zeros(len(cols) + 1, np.bool_)
    begins[indptr[:-1]] = True
    if len(cols) > 1 and bool(device.get(((cols[1:] <= cols[:-1]) & ~begins[1:-1]).any())):
        return from_coo(session, (n, ncols), device.owners(indptr, len(cols)), cols, vals, iso, None)
    return Rows(indptr.astype(np.int64), cols.copy(), vals.copy(), 0 if iso else 1)


def distribute(session: Context, matrix: Any, rows: Rows, iso: bool) -> None:
    """Give a matrix these rows, cut into the blocks of its devices."""
    first, ptr, (nrows, ncols) = session.devices[0], rows.indptr, matrix.shape
    lengths = first.get(first.xp.diff(ptr)) if len(session.devices) > 1 else None
    rowmap, colmap = session.maps.of_matrix(nrows, ncols, len(rows.cols), lengths, lambda: first.get(rows.cols))
    parts = [rows]
    if rowmap.order is not None:
        rows = take_rows(session, first, rows, first.put(rowmap.order))
        ptr = rows.indptr
    if rowmap.p > 1:
        cuts = first.get(ptr[rowmap.bounds]).tolist()

        def part(task: Task) -> Rows:
            b, device = task.block, session.devices[task.device]
            lo, hi = cuts[b : b + 2]

            def here(array: Any) -> Any:
                return copied(device, array) if task.device else array

            local = here(ptr[rowmap.bounds[b] : rowmap.bounds[b + 1] + 1]) - lo
            cols = rows.cols[lo:hi]
            vals = here(rows.vals) if iso else copied(device, rows.vals[lo:hi])
            if colmap.plain:
                return Rows(local, copied(device, cols), vals, rows.stride)
            return to_slots(device, Rows(local, here(cols).astype(np.int64), vals, rows.stride), colmap)

        parts = session.over(rowmap.tasks, part, 0.0)
    matrix._store = store_of(session, rowmap, colmap, matrix.dtype, iso, parts)


def _chunks(device: Any, nrows: int, rows: Any) -> Iterator[tuple[int, int, list[Any]]]:
    """Ranges of rows with about CHUNK entries, and where these are: slices, or arrays of places."""
    xp, nnz, chunk = device.xp, len(rows), CHUNK or device.memory()[1] // 256
    if nnz <= chunk:
        if nnz:
            yield 0, nrows, [slice(None)]
        return
    upto = device.zeros(nrows + 1, np.int64)
    pieces = [slice(at, at + chunk) for at in range(0, nnz, chunk)]
    for piece in pieces:
        upto[1:] += device.counts(rows[piece].astype(np.int64), nrows)
    xp.cumsum(upto, out=upto)
    cuts = device.get(xp.searchsorted(upto, xp.arange(chunk, nnz, chunk), side="left"))
    bounds = np.unique(np.concatenate([[0], cuts, [nrows]])).tolist()
    for lo, hi in zip(bounds, bounds[1:], strict=False):
        parts = [piece.start + xp.flatnonzero((rows[piece] >= lo) & (rows[piece] < hi)) for piece in pieces]
        yield lo, hi, [part for part in parts if len(part)]


def _joined(xp: Any, parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else xp.concatenate(parts)
