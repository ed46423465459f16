"""Host entries -> sorted, unique ones, ready to be distributed; and blocks -> host."""

from typing import Any

import numpy as np

from ..device.base import Device
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock
from ..kernels.interface import Spec
from ..semiring._lower import to_python
from .matrix.csr import entries_of


def spec_of(store: MatrixStore) -> Spec:
    """Offset and slot types of a matrix."""
    return Spec(ptr=store.ptr, idx=store.idx)


def _combine(vals: np.ndarray, first: np.ndarray, dup_op: Any) -> np.ndarray:
    """One value for each run of equal positions; `first` marks where runs begin, entries of a run are combined in input
    order."""
    starts = np.flatnonzero(first)
    ufuncs: dict[str, Any] = {"plus": np.add, "times": np.multiply, "lor": np.logical_or, "land": np.logical_and}
    if vals.dtype.kind != "f" or not np.signbit(vals[vals == 0]).any():
        ufuncs |= {"min": np.fmin, "max": np.fmax}  # for which -0.0 and 0.0 are equal
    ufunc = ufuncs.get(dup_op.name)
    if dup_op.name in ("first", "any"):
        return vals[starts]
    if dup_op.name == "second":
        return vals[np.append(starts[1:], len(vals)) - 1]
    if ufunc is not None and vals.dtype.kind != "b":
        return ufunc.reduceat(vals, starts).astype(vals.dtype)
    combine, out = to_python(dup_op.program), vals[starts].copy()
    run = np.cumsum(first) - 1
    for e in np.flatnonzero(~first):
        out[run[e]] = combine(out[run[e]], vals[e])
    return out


def sorted_vector(
    ids: np.ndarray, vals: np.ndarray, iso: bool, dup_op: Any, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ascending unique indices and their values. Raises ValueError for duplicates without an operator."""
    if len(ids) > 1 and np.any(ids[1:] <= ids[:-1]):
        order = _stable(ids, size)
        ids, vals = ids[order], vals if iso else vals[order]
    first = np.ones(len(ids), bool)
    first[1:] = ids[1:] != ids[:-1]
    if not first.all():
        vals = _unique(vals, iso, first, dup_op)
        ids = ids[first]
    return ids, vals


def check_duplicates(iso: bool, dup_op: Any) -> None:
    """Raises ValueError unless the operator can combine duplicates."""
    if dup_op is None:
        raise ValueError("Duplicate indices found, must provide `dup_op` BinaryOp")
    if iso and dup_op.name not in ("first", "second", "any", "min", "max", "lor", "land"):
        raise ValueError(
            "one value for all entries stays one: first, second, any, min, max, lor and land combine duplicates. "
            "Hint: give an array of values"
        )


def _unique(vals: np.ndarray, iso: bool, first: np.ndarray, dup_op: Any) -> np.ndarray:
    check_duplicates(iso, dup_op)
    return vals if iso else _combine(vals, first, dup_op)


def sorted_matrix(
    nrows: int, ncols: int, rows: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, dup_op: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR with ascending columns from entries in any order; equal positions are combined in input order."""
    if np.any((rows[1:] < rows[:-1]) | ((rows[1:] == rows[:-1]) & (cols[1:] <= cols[:-1]))):
        rows, cols, order = _by_rows(rows, cols, nrows, ncols)
        vals = vals if iso else vals[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    if not first.all():
        vals = _unique(vals, iso, first, dup_op)
        rows, cols = rows[first], cols[first]
    indptr = np.zeros(nrows + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=nrows), out=indptr[1:])
    return indptr, cols, vals


def _by_rows(rows: np.ndarray, cols: np.ndarray, nrows: int, ncols: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns in the order of rows, then of columns, and where each entry was; equal ones keep their order.

    NumPy sorts plain words several times faster than it finds the order of words. So row, column and place are the
    digits of one word if 64 bits hold them. Else a word has the column and the place, another the row and the place.
    """
    high, middle, low = (_bits(size) for size in (nrows, ncols, len(rows)))
    if high + middle + low > 64:
        order = _stable(cols, ncols)
        order = order[_stable(rows[order], nrows)]
        return rows[order], cols[order], order
    words = rows.astype(np.uint64)
    words <<= middle
    words |= cols.astype(np.uint64, copy=False)
    places = _sorted_words(words, low)
    cols = (words & ((1 << middle) - 1)).view(np.int64).astype(cols.dtype, copy=False)
    words >>= middle
    return words.view(np.int64).astype(rows.dtype, copy=False), cols, places


def _stable(ids: np.ndarray, size: int) -> np.ndarray:
    """The order of ids below a size; equal ones keep theirs."""
    if _bits(size) + (low := _bits(len(ids))) > 64:
        return np.argsort(ids, kind="stable")
    return _sorted_words(ids.astype(np.uint64), low)


def _bits(size: int) -> int:
    """Bits of the numbers below a size."""
    return max(size - 1, 0).bit_length()


def _sorted_words(words: np.ndarray, low: int) -> np.ndarray:
    """Sort words (uint64) in place, and return where each was. Equal ones keep their order, since their places, of
    `low` bits, are sorted with them."""
    words <<= low
    words |= np.arange(len(words), dtype=np.uint64)
    words.sort()
    places = (words & ((1 << low) - 1)).view(np.int64)
    words >>= low
    return places


def sorted_csr(
    indptr: np.ndarray, cols: np.ndarray, vals: np.ndarray, iso: bool, ncols: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR with ascending columns. Raises ValueError for duplicates."""
    indptr = indptr.astype(np.int64, copy=False)
    begins = np.zeros(len(cols) + 1, bool)
    begins[indptr[:-1]] = True
    steps = np.diff(cols)
    inside = ~begins[1:-1] if len(cols) else begins[:0]
    if np.any(inside & (steps <= 0)):
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return sorted_matrix(len(indptr) - 1, ncols, rows, cols, vals, iso, None)
    return indptr, cols, vals


def block_to_host(device: Device, block: VectorBlock) -> tuple[np.ndarray, np.ndarray]:
    """(local rows ascending, values) of a block; only entries travel."""
    rows, vals = (np.arange(block.n), block.vals) if block.full else entries_of(device, block)
    host = rows if type(rows) is np.ndarray else device.get(rows)
    vals = device.get(vals)
    return host.astype(np.int64, copy=False), vals[: len(host)] if block.stride else np.repeat(vals[:1], len(host))


def vector_element(device: Device, block: VectorBlock, row: int) -> Any:
    """The value of a local row, or None."""
    if block.words is not None:
        if not (int(device.get(block.words[row >> 6 : (row >> 6) + 1])[0]) >> (row & 63)) & 1:
            return None
    elif not block.full:
        rows, vals = block_to_host(device, block)
        found = np.searchsorted(rows, row)
        return vals[found].item() if found < len(rows) and rows[found] == row else None
    at = row * block.stride
    return device.get(block.vals[at : at + 1])[0].item()


def matrix_element(device: Device, block: MatrixBlock, row: int, slot: int) -> Any:
    """The value at a local row and a column slot, or None."""
    begin, end = (int(x) for x in device.get(block.indptr[row : row + 2]))
    cols = device.get(block.cols[begin:end])
    found = int(np.searchsorted(cols, slot))
    if found == len(cols) or cols[found] != slot:
        return None
    at = (begin + found) * block.stride
    return device.get(block.vals[at : at + 1])[0].item()
