"""Entries of rows on the host: chosen, moved to the start, sorted, scanned."""

from typing import Any

import numpy as np

from .. import settings
from ..errors import message
from ..semiring._lower import to_python
from .arrays import checked_size
from .compose import by_rows
from .expr import _kinds
from .typed import reducer


def _rank(lines: np.ndarray) -> np.ndarray:
    """The place of each entry in its row, for ascending rows."""
    starts = np.flatnonzero(np.r_[True, lines[1:] != lines[:-1]]) if len(lines) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(lines)])
    return np.arange(len(lines)) - np.repeat(starts, lengths)


def row_entries(x: Any, order: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, value) by row; columns as rows unless `order` is by rows. A vector is one row."""
    if x.ndim == 1:
        ids, vals = x.to_coo()
        return np.zeros(len(ids), np.int64), ids, vals
    return (x if by_rows(order) else x.T).to_coo()


def _built(x: Any, order: str, lines: Any, where: Any, vals: Any, width: int | None = None, name: Any = None) -> Any:
    """An object of rows like `x` (columns, by `order`), of `width`."""
    if x.ndim == 1:
        return _kinds["vector"].from_coo(where, vals, vals.dtype, size=x.size if width is None else width, name=name)
    n = x.shape[0 if by_rows(order) else 1]
    width = x.shape[1 if by_rows(order) else 0] if width is None else width
    if by_rows(order):
        return _kinds["matrix"].from_coo(lines, where, vals, vals.dtype, nrows=n, ncols=width, name=name)
    return _kinds["matrix"].from_coo(where, lines, vals, vals.dtype, nrows=width, ncols=n, name=name)


def _arranged(lines: np.ndarray, vals: np.ndarray, how: str) -> np.ndarray:
    """A permutation of the entries that leaves rows together; equal values stay in order."""
    if how == "first":
        return np.arange(len(lines))
    if how == "last":
        return np.lexsort((-np.arange(len(lines)), lines))
    if how == "random":
        ranks, drawn = settings.ranks_in_force(), np.random.default_rng().random(len(lines))
        drawn = drawn if ranks is None else ranks.gathered(drawn, "what is chosen at random")[0]
        return np.lexsort((drawn, lines))
    if how in ("smallest", "largest"):
        rank = np.unique(vals, return_inverse=True)[1]  # NaN is the largest
        return np.lexsort((rank if how == "smallest" else -rank, lines))
    raise ValueError(message("how: random, first, last, smallest or largest", repr(how)))


def chosen_of_rows(x: Any, how: str, k: int, order: str, name: Any) -> Any:
    """At most k entries of each row (see `A.ss.selectk`)."""
    lines, where, vals = row_entries(x, order)
    chosen = _arranged(lines, vals, how)
    chosen = np.sort(chosen[_rank(lines[chosen]) < checked_size(k)])
    return _built(x, order, lines[chosen], where[chosen], vals[chosen], name=name)


def compacted_rows(x: Any, how: str, k: int | None, order: str, reverse: bool, asindex: bool, name: Any) -> Any:
    """At most k entries of each row, moved to its start (see `A.ss.compactify`)."""
    lines, where, vals = row_entries(x, order)
    chosen = _arranged(lines, vals, how)
    place = _rank(lines[chosen])
    width = (int(place.max()) + 1 if len(place) else 0) if k is None else checked_size(k)
    chosen, place = chosen[place < width], place[place < width]
    if reverse:
        counts = np.bincount(lines[chosen], minlength=1)
        place = counts[lines[chosen]] - 1 - place
    what = (where.astype(np.uint64) if asindex else vals)[chosen]
    return _built(x, order, lines[chosen], place, what, width, name)


def sorted_rows(x: Any, op: Any, order: str, values: bool, permutation: bool) -> tuple:
    """Values of each row in order, and where they were (see `A.ss.sort`)."""
    name = str(getattr(op, "name", op)).removeprefix("is")
    name = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge"}.get(name, name)
    if name not in ("lt", "gt", "le", "ge"):
        raise ValueError(message("an ordering such as binary.lt or binary.gt", repr(op)))
    lines, where, vals = row_entries(x, order)
    chosen = _arranged(lines, vals, "smallest" if name[0] == "l" else "largest")
    place = _rank(lines)
    first = _built(x, order, lines, place, vals[chosen]) if values else None
    second = _built(x, order, lines, place, where[chosen].astype(np.uint64)) if permutation else None
    return first, second


def scanned_rows(x: Any, op: Any, order: str, name: Any) -> Any:
    """Every entry replaced by the reduction of its row up to it."""
    monoid = reducer(op, x.dtype)
    combine = to_python(monoid.program)
    lines, where, vals = row_entries(x, order)
    out = vals.astype(monoid.dtype.np_type)
    for k in np.flatnonzero(lines[1:] == lines[:-1]):
        out[k + 1] = combine(out[k], out[k + 1])
    return _built(x, order, lines, where, out, name=name)
