"""Sums, extremes, counts, diagonals: NumPy results on the host."""

from math import prod
from typing import Any

import numpy as np

import gbgpu as gb

from ._common import checked_dtype, given


class Reductions:
    """Reductions of sparse arrays; `axis` is None (everything), 0 (down the columns) or 1 (along the rows)."""

    format: str
    shape: Any
    dtype: Any
    ndim: Any
    nnz: Any
    _A: Any
    _in: Any
    _shape2: Any
    astype: Any
    tocoo: Any
    coords: Any
    _classes: Any
    _line: Any

    def _axis(self, axis: Any) -> int | None:
        """None, 0 or 1. Raises ValueError."""
        axes = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
        if any(not isinstance(a, (int, np.integer)) for a in axes):
            raise TypeError(f"axis must be an integer or a tuple of them, came {axis!r}")
        if any(not -self.ndim <= a < self.ndim for a in axes):
            raise ValueError("axis out of range for ndim")
        if axis == () or len({int(a) % self.ndim for a in axes}) < len(axes):
            raise ValueError("axis names no dimension, or one twice")
        axes = tuple(sorted(int(a) % self.ndim for a in axes))
        return None if len(axes) in (0, self.ndim) else axes[0]

    def _lines(self, A: Any, axis: int, monoid: Any) -> Any:
        """A vector: the reduction of each column (axis 0) or row (1)."""
        return (A.reduce_columnwise(monoid) if axis == 0 else A.reduce_rowwise(monoid)).new()

    def _counts(self, A: Any, axis: Any) -> np.ndarray:
        """Stored entries of each column or row, in SciPy's type: that of indices where it has their differences."""
        axis = self._axis(axis)
        found = self._lines(A, axis, gb.agg.count).to_dense(0)
        return found.astype(np.int32) if A is self._A and (self.format, axis) in (("csr", 1), ("csc", 0)) else found

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all elements, or along an axis.

        Parameters
        ----------
        axis : int, optional
            None, 0 (down the columns) or 1 (along the rows).
        dtype : dtype, optional
            By default int64 or uint64 for small integers, as NumPy does.
        out : numpy.ndarray, optional
            Where to write.

        Returns
        -------
        NumPy scalar or array
            An array for an axis; of a `*_matrix` a numpy.matrix.

        Raises
        ------
        ValueError
            If there is no such axis, or `out` has another shape.
        """
        axis = self._axis(axis)
        wide = checked_dtype(np.zeros(1, self.dtype).sum(dtype=None if axis is not None else dtype).dtype)
        A = self._in(wide) if axis is not None else self._A.dup(wide)
        plus = gb.monoid.lor if wide == np.bool_ else gb.monoid.plus[wide]
        if axis is None:
            return given(wide.type(A.reduce_scalar(plus, allow_empty=False).new().value), out)
        total = self._line(self._lines(A, axis, plus).to_dense(0, wide), axis)
        return given(total if dtype is None else total.astype(dtype), out)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean over all elements, stored or not; arguments as `sum`. Integers are computed in float64."""
        axis = self._axis(axis)
        inner = self.dtype if self.dtype.kind == "f" else np.dtype(np.float64)
        count = prod(self.shape) if axis is None else self.shape[axis]
        found = (self.astype(inner, copy=False) * (1.0 / count)).sum(axis, inner, out)
        return found if dtype is None or out is not None else found.astype(dtype)

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return self.diagonal(offset).sum()

    def diagonal(self, k: int = 0) -> np.ndarray:
        """The k'th diagonal, as a NumPy array."""
        if self.ndim != 2:
            raise ValueError("diagonal requires two dimensions")
        return self._A.diag(k).to_dense(0, self.dtype)

    def count_nonzero(self, axis: Any = None) -> Any:
        """The number of values other than 0, of each column (axis 0) or row (1) if an axis is given."""
        A = self._A.select("valuene", 0).new()
        if self._axis(axis) is None:
            return np.int64(A.nvals)
        return self._counts(self._A if A.nvals == self._A.nvals else A, axis)

    def nonzero(self) -> tuple:
        """The coordinates of the values other than 0, row by row, read to the host."""
        row, col, _ = self._A.select("valuene", 0).new().to_coo(values=False)
        index = np.int32 if max(self._shape2) < 2**31 else np.int64
        return (row.astype(index), col.astype(index)) if self.ndim == 2 else (col.astype(index),)

    # -- extremes

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The maximum of all elements, or along an axis; NaN wins.

        Parameters
        ----------
        axis : int, optional
            None, 0 (down the columns) or 1 (along the rows).
        out : None
            Refused, as SciPy does.
        explicit : bool
            Whether only stored values count. If not, zeros that are not stored count as well.

        Returns
        -------
        NumPy scalar or sparse array
            A COO array of one dimension for an axis.

        Raises
        ------
        ValueError
            If there is no such axis, the axis has no element, or `out` is given.
        """
        return self._extreme("maximum", np.maximum, axis, out, explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The minimum, as `max`."""
        return self._extreme("minimum", np.minimum, axis, out, explicit)

    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The maximum of what is not NaN, as `max`."""
        return self._extreme("fmax", np.fmax, axis, out, explicit)

    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The minimum of what is not NaN, as `max`."""
        return self._extreme("fmin", np.fmin, axis, out, explicit)

    def _extreme(self, name: str, function: Any, axis: Any, out: Any, explicit: bool) -> Any:
        if out is not None:
            raise ValueError("Sparse min/max does not support an 'out' parameter.")
        axis = self._axis(axis)
        if 0 in (self.shape if axis is None else (self.shape[axis],)):
            raise ValueError("zero-size array to reduction operation")
        monoid = _extreme_monoid(name, self.dtype)
        zero = self.dtype.type(0)
        if axis is None:
            A = self._A
            if A.nvals == 0:
                return zero
            best = self.dtype.type(A.reduce_scalar(monoid).new().value)
            return best if explicit or A.nvals == prod(self.shape) else function(zero, best)
        best = self._lines(self._A, axis, monoid).to_dense(0, self.dtype)
        if not explicit:
            holes = self._counts(self._A, axis) < self.shape[axis]
            best[holes] = function(zero, best[holes])
        return self._classes["coo"](self._line(best, axis))

    def argmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Where the maximum is first: an int (of the flattened array), or an array for an axis.

        Arguments and errors as `max`. Computed on the host.
        """
        return self._place(np.maximum, np.greater, "argmax", axis, out, explicit)

    def argmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Where the minimum is first, as `argmax`."""
        return self._place(np.minimum, np.less, "argmin", axis, out, explicit)

    def _place(self, function: Any, better: Any, name: str, axis: Any, out: Any, explicit: bool) -> Any:
        if out is not None:
            raise ValueError(f"Sparse {name} does not support an 'out' parameter.")
        axis = self._axis(axis)
        if 0 in (self.shape if axis is None else (self.shape[axis],)):
            raise ValueError(f"Cannot apply {name} along a zero-sized dimension.")
        A = self._A.T if axis == 0 else self._A
        row, col, vals = A.to_coo()
        if axis is not None:
            return self._line(_first_places(row, col, vals, A.shape, function, better, explicit), axis)
        if explicit and not len(vals):
            raise ValueError(f"Cannot apply {name} to zero matrix when explicit=True.")
        flat, shape = row * A.shape[1] + col, (1, prod(self.shape))
        return int(_first_places(np.zeros_like(flat), flat, vals, shape, function, better, explicit)[0])


def _extreme_monoid(name: str, dtype: np.dtype) -> Any:
    if dtype == np.bool_:
        return gb.monoid.lor if name in ("maximum", "fmax") else gb.monoid.land
    return getattr(gb.monoid.numpy, name)[dtype]


def _first_places(
    row: np.ndarray, col: np.ndarray, vals: np.ndarray, shape: tuple, function: Any, better: Any, explicit: bool
) -> np.ndarray:
    """The first column of each row with the row's extreme value. A row's first missing column stands for its zeros."""
    found = np.zeros(shape[0], int)
    if not len(vals):
        return found
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    lengths = np.diff(starts, append=len(row))
    best = function.reduceat(vals, starts)
    spread = np.repeat(best, lengths)
    hit = (vals == spread) | ((vals != vals) & (spread != spread))
    first = np.minimum.reduceat(np.where(hit, col, shape[1]), starts)
    if not explicit:
        rank = np.arange(len(row)) - np.repeat(starts, lengths)
        gap = np.minimum.reduceat(np.where(col != rank, rank, shape[1]), starts)
        gap = np.minimum(gap, np.where(lengths < shape[1], lengths, shape[1]))
        zero_first = np.where(best == 0, np.minimum(first, gap), gap)
        first = np.where(better(best, 0) | (lengths == shape[1]), first, zero_first)
    found[row[starts]] = first
    return found
