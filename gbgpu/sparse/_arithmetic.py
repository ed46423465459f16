"""Operators: dtypes, formats and stored zeros of results are SciPy's."""

import math
import operator as python
from functools import cache
from typing import Any

import numpy as np

import gbgpu as gb
from gbgpu.errors import message

from ._common import checked_dtype, is_scalar, issparse, matrix_classes, operator, products, sparse, united, zeroless

_NEGATED = {"eq": "ne", "le": "gt", "ge": "lt"}
_COLUMNS = 2  # dense matrices of at most so many columns are multiplied column by column
UFUNCS = (
    "sin tan arcsin arctan sinh tanh arcsinh arctanh rint sign expm1 log1p deg2rad rad2deg floor ceil trunc sqrt"
).split()


class Arithmetic:
    """The operators of sparse arrays.

    Scalars and sparse arrays of the same shape give sparse arrays; `+`, `-` and comparisons with dense arrays give
    dense ones. Only `*` broadcasts.
    """

    format: str
    shape: Any
    ndim: Any
    dtype: Any
    _A: Any
    _given: Any
    _in: Any
    _shape2: Any
    _same: Any
    copy: Any
    toarray: Any
    tocsr: Any
    astype: Any
    transpose: Any
    _become: Any
    _made: Any
    _wrapped: Any
    _classes: Any
    sum: Any

    @property
    def _result_format(self) -> str:
        """The format of results: COO computes in CSR."""
        return "csr" if self.format == "coo" else self.format

    # -- values one by one

    def _mapped(self, op: Any, dtype: Any, right: Any = None) -> Any:
        A = self._A if np.dtype(self._A.dtype.np_type) == dtype else self._A.dup(dtype)
        return self._same(A.apply(op, right).new(checked_dtype(dtype)))

    def _zeros(self) -> Any:
        return self._mapped(gb.binary.second[self.dtype], self.dtype, self.dtype.type(0))

    def __abs__(self) -> Any:
        return self._same(self._A) if self.dtype.kind in "bu" else self._mapped(gb.unary.abs, self.dtype)

    def __neg__(self) -> Any:
        if self.dtype == np.bool_:
            raise NotImplementedError("negating a boolean sparse array is not supported")
        return self._mapped(gb.unary.ainv, self.dtype)

    def round(self, decimals: int = 0) -> Any:
        """Each stored value as numpy.round gives it; negative `decimals` round to tens, hundreds, and so on."""
        whole = self.dtype.kind != "f"
        if decimals == 0 or (whole and decimals > 0):
            return self.copy() if whole else self.rint()  # type: ignore[attr-defined]
        dtype = np.dtype(np.float64) if whole else self.dtype
        factor = dtype.type(10.0 ** abs(decimals))
        before, after = ("times", "truediv") if decimals > 0 else ("truediv", "times")
        rounded = self._mapped(getattr(gb.binary, before)[dtype], dtype, factor).rint()
        return rounded._mapped(getattr(gb.binary, after)[dtype], dtype, factor).astype(self.dtype, copy=False)

    def __round__(self, ndigits: int = 0) -> Any:
        return self.round(ndigits)

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Each stored value to the power n.

        `dtype`: values are cast to it first. Raises NotImplementedError for n = 0, which would fill the array.
        """
        if not is_scalar(n):
            raise NotImplementedError("input is not scalar")
        if not n:
            raise NotImplementedError("zero power is not supported as it would densify the array. Hint: np.ones")
        values = self if dtype is None else self.astype(dtype)
        found = checked_dtype((np.ones(1, values.dtype) ** n).dtype)
        if found.kind != "f":
            return values._whole_power(int(n), found)
        if n == 0.5:  # where NumPy takes roots
            return values._mapped(gb.unary.sqrt[found], found)
        if n != n:  # of 1 alone that is a number, 0 / 0 of others
            ones = values._mapped(gb.binary.iseq[found], found, found.type(1))
            return ones._same(gb.binary.truediv[found](ones._A & ones._A).new())
        return values._mapped(gb.binary.pow[found], found, found.type(n))

    def _whole_power(self, n: int, dtype: np.dtype) -> Any:
        """By squaring, so that integers wrap as NumPy's do."""
        square, result, times = self._A.dup(dtype), None, operator("multiply", dtype)
        while n:
            if n & 1:
                result = square if result is None else times(result & square).new()
            square, n = times(square & square).new() if n > 1 else square, n >> 1
        return self._same(result)

    def __pow__(self, n: Any) -> Any:
        return self.power(n)

    def _scaled(self, factor: Any) -> Any:
        factor = np.asarray(factor)[()] if isinstance(factor, np.ndarray) else factor
        dtype = checked_dtype((np.ones(1, self.dtype) * factor).dtype)
        return self._same(self._in(dtype).apply(operator("multiply", dtype), dtype.type(factor)).new(dtype))

    def _scaled_in_place(self, factor: Any) -> Any:
        found = self._scaled(factor)
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise TypeError(message(f"a product that fits {self.dtype}", found.dtype, "A = A * factor"))
        self._become(found.astype(self.dtype, copy=False)._A)
        return self

    def __imul__(self, other: Any) -> Any:
        return self._scaled_in_place(other) if is_scalar(other) else NotImplemented

    def __itruediv__(self, other: Any) -> Any:
        return self._scaled_in_place(1.0 / other) if is_scalar(other) else NotImplemented

    # -- addition

    def __add__(self, other: Any) -> Any:
        return self._sum("add", other, python.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum("subtract", other, python.sub)

    def __rsub__(self, other: Any) -> Any:
        if is_scalar(other) and other == 0:
            return -self
        if issparse(other):
            return sparse(other) - self
        return self._sum("subtract", other, lambda mine, dense: dense - mine)

    def _sum(self, name: str, other: Any, dense: Any) -> Any:
        if is_scalar(other):
            if other == 0:
                return self.copy()
            raise NotImplementedError(f"{name}: a nonzero scalar and a sparse array would give a dense one")
        if not _sparse(other):
            array = _array(other)
            return (
                NotImplemented
                if array is None
                else self._wrapped(dense(self.toarray(), np.broadcast_to(array, self.shape)))
            )
        other = sparse(other)
        if other.shape != self.shape:
            raise ValueError(f"inconsistent shapes: {self.shape} and {other.shape}")
        return self._united(name, other)

    def _united(self, name: str, other: Any) -> Any:
        dtype = np.promote_types(self.dtype, other.dtype)
        return self._made(united(name, self._A, other._A, dtype), self._result_format, self.shape)

    # -- products of values

    def multiply(self, other: Any) -> Any:
        """Each value times the other's, broadcast as NumPy does; with a dense array a COO array."""
        if is_scalar(other):
            return self._scaled(other)
        if _sparse(other):
            return self._multiplied(sparse(other))
        array = _array(other)
        return NotImplemented if array is None else self._times_dense(array)

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        return sparse(other) * self if issparse(other) else self.multiply(other)  # the left side says what `*` means

    def _multiplied(self, other: Any) -> Any:
        if other.shape == self.shape:
            return self._united("multiply", other)
        one, two = self._shape2, other._shape2
        if np.prod(two) == 1:
            scaled = self._made(self._scaled(other.sum().astype(other.dtype))._A, self._result_format, self.shape)
            return scaled.reshape(np.broadcast_shapes(self.shape, other.shape))
        if np.prod(one) == 1:
            return other._scaled(self.sum().astype(self.dtype))
        shape = _broadcast(one, two, (self.shape, other.shape))
        if one == shape or two == shape:
            A = _along(self._A, other._A) if one == shape else _along(other._A, self._A)
            whole = self if one == shape else other
            return whole._made(zeroless(A), whole._result_format)
        column, row = (self, other) if one[1] == 1 else (other, self)
        return self._made(
            zeroless(_matmul(column._A, row._A, np.promote_types(self.dtype, other.dtype))), self._result_format
        )

    def _times_dense(self, array: np.ndarray) -> Any:
        """Stored entries keep their places, also where a product is 0."""
        if array.ndim > 2:
            return np.multiply(self.toarray(), array)
        if array.size == 1:
            scaled = self._scaled(array.flat[0]).asformat(self._result_format)
            return scaled.reshape(np.broadcast_shapes(self.shape, array.shape))
        if np.prod(self._shape2) == 1:
            return np.multiply(self.toarray(), array)
        two = array.shape if array.ndim == 2 else (1, *array.shape)
        shape = _broadcast(self._shape2, two, (self.shape, array.shape))
        dtype, A = np.promote_types(self.dtype, checked_dtype(array.dtype)), self._A
        if self._shape2 != shape:
            A = A[_repeats(self._shape2[0], shape[0]), _repeats(self._shape2[1], shape[1])].new()
        A = operator("multiply", dtype)(_beside(A, array.reshape(two), shape)).new() if 0 not in shape else A.dup(dtype)
        return self._made(A, "coo", shape if max(self.ndim, array.ndim) == 2 else self.shape)

    def __truediv__(self, other: Any) -> Any:
        """By a scalar sparse; by a dense array a COO array of this one's entries; by a sparse one dense."""
        if is_scalar(other):
            return self.astype(np.float64)._scaled(1 / other)
        if _sparse(other):
            return self._quotient(sparse(other))
        array = _array(other)
        with np.errstate(divide="ignore"):
            return NotImplemented if array is None else self._times_dense(np.divide(1, array))

    def __rtruediv__(self, other: Any) -> Any:
        return sparse(other) / self if issparse(other) else NotImplemented

    def _quotient(self, other: Any) -> np.ndarray:
        if other.shape != self.shape:
            raise ValueError(f"inconsistent shapes: {self.shape} and {other.shape}")
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._wrapped(np.true_divide(self.toarray().astype(np.float64), other.toarray()))

    # -- products of arrays

    def __matmul__(self, other: Any) -> Any:
        """The product with a vector, a matrix or a sparse array.

        With a vector or a matrix of NumPy it is a NumPy array; with a sparse array a sparse one; with a gbgpu.Vector a
        gbgpu.Vector, which stays on the devices (from the left: `v @ A.matrix`).
        """
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if isinstance(other, gb.Vector):
            return products(np.promote_types(self.dtype, other.dtype.np_type))(self._A @ other).new()
        if _sparse(other):
            return self._matmul_sparse(sparse(other))
        array = other if hasattr(other, "__cuda_array_interface__") else _array(other)
        if array is None:
            return NotImplemented
        found = self._matmul_dense(array)
        return self._wrapped(found) if isinstance(other, np.matrix) else found

    def __rmatmul__(self, other: Any) -> Any:
        if is_scalar(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        if issparse(other):
            return sparse(other) @ self
        array = other if hasattr(other, "__cuda_array_interface__") else _array(other)
        if array is None:
            return NotImplemented
        found = self.transpose() @ array.T
        found = found.T if found.ndim > 1 else found
        return self._wrapped(found) if isinstance(other, np.matrix) else found

    def dot(self, other: Any) -> Any:
        """`self * other` for a scalar, else `self @ other`."""
        return self.multiply(other) if is_scalar(other) else self @ other

    def matvec(self, x: Any) -> Any:
        """`self @ x`; with `rmatvec`, `matmat` and `rmatmat` what scipy.sparse.linalg asks of an operator."""
        return self @ x

    def rmatvec(self, x: Any) -> Any:
        """`self.T @ x`."""
        return self.transpose() @ x

    matmat, rmatmat = matvec, rmatvec

    def _matmul_dense(self, array: Any) -> Any:
        _check_inner(self._shape2[1], array)
        dtype = np.promote_types(self.dtype, checked_dtype(array.dtype))
        A = self._in(dtype) if self._given is not None else self._A
        if array.ndim == 1 or array.shape[1] <= _COLUMNS:
            columns = [array] if array.ndim == 1 else [array[:, j] for j in range(array.shape[1])]
            found = np.empty((self._shape2[0], len(columns)), dtype)
            for j, x in enumerate(columns):
                found[:, j] = _matmul(A, gb.Vector.from_dense(x), dtype).to_dense(0, dtype)
        else:
            found = _matmul(A, _full(array), dtype).to_dense(0, dtype)
        shape = self.shape[: self.ndim - 1] + tuple(array.shape[1:])
        return found.reshape(shape) if shape else found[0, 0]

    def _matmul_sparse(self, other: Any) -> Any:
        _check_inner(self._shape2[1], other)
        dtype = np.promote_types(self.dtype, other.dtype)
        A = zeroless(_matmul(self._A, other._A if other.ndim == 2 else other._A.T, dtype))
        shape = self.shape[: self.ndim - 1] + other.shape[1:]
        if len(shape) == 1 and self._classes is matrix_classes:
            raise ValueError(
                message("a matrix of two dimensions beside a matrix", f"shape {other.shape}", "A @ x.toarray()")
            )
        if len(shape) == 2:
            return self._made(A, self._result_format)
        if not shape:
            return np.array(A.get(0, 0, 0), dtype)
        return self._made(A if self.ndim == 1 else A.T, "coo", shape)

    # -- comparisons

    def _compared(self, name: str, other: Any) -> Any:
        if is_scalar(other):
            return self._against_scalar(name, other)
        if not _sparse(other):
            array = _array(other)
            return NotImplemented if array is None else self._wrapped(getattr(python, name)(self.toarray(), array))
        other = sparse(other)
        if other.shape != self.shape:
            if name in ("eq", "ne"):
                return name == "ne"
            raise ValueError("inconsistent shape")
        return self._inverted(self._united(_NEGATED[name], other)) if name in _NEGATED else self._united(name, other)

    def _against_scalar(self, name: str, other: Any) -> Any:
        if getattr(python, name)(0, other):
            if other != other:  # only `ne` gets here
                return self._inverted(self._classes[self._result_format](self.shape, dtype=bool)).asformat(self.format)
            return self._inverted(self._against_scalar(_NEGATED.get(name) or _inverse(name), other))
        A = self._A.apply(getattr(gb.binary, name), _compared_with(self.dtype, other)).new(bool)
        return self._made(zeroless(A), self._result_format if other == other else self.format, self.shape)

    def _inverted(self, truths: Any) -> Any:
        """True wherever `truths` has no entry. The result is full of entries: SciPy warns."""
        A = gb.Matrix(bool, *self._shape2)
        A(~truths._A._materialized().S) << True
        return self._made(A, self._result_format, self.shape)

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    def maximum(self, other: Any) -> Any:
        """The greater of both, element by element; NaN wins."""
        return self._extreme_of("maximum", np.maximum, other)

    def minimum(self, other: Any) -> Any:
        """The smaller of both, element by element; NaN wins."""
        return self._extreme_of("minimum", np.minimum, other)

    def _extreme_of(self, name: str, function: Any, other: Any) -> Any:
        if is_scalar(other):
            if function(0, other):
                return self._classes[self.format](function(self.toarray(), other))
            dtype = checked_dtype(function(np.ones(1, self.dtype), other).dtype)
            found = self._mapped(operator(name, dtype), dtype, dtype.type(other))
            return self._made(zeroless(found._A), self._result_format, self.shape)
        if not _sparse(other):
            return self._wrapped(function(self.toarray(), np.asarray(other)))
        other = sparse(other)
        if other.shape != self.shape:
            raise ValueError(f"inconsistent shapes {self.shape} and {other.shape}")
        return self._united(name, other)


def _ufunc(name: str) -> Any:
    function = getattr(np, name)

    def method(self: Any) -> Any:
        dtype = function(np.ones(1, self.dtype)).dtype
        dtype = np.dtype(np.float32) if dtype == np.float16 else checked_dtype(dtype)
        if dtype.kind != "f":
            return self._mapped(gb.unary.signum, dtype) if name == "sign" else self.copy()
        return self._mapped(_half_even() if name == "rint" else getattr(gb.unary.numpy, name), dtype)

    method.__name__ = name
    method.__doc__ = f"numpy.{name} of each stored value (types of 8 bits give float32)."
    return method


for _name in UFUNCS:
    setattr(Arithmetic, _name, _ufunc(_name))


@cache
def _half_even() -> Any:
    """numpy.rint: halves go to the even neighbour (those of GraphBLAS's operators go away from 0)."""

    def rint(x: Any) -> Any:
        if not abs(x) < 2.0**52:  # whole, infinite or NaN
            return x
        below = math.floor(x)
        part = x - below
        if part == 0.5:
            return math.copysign(below if below % 2 == 0 else below + 1, x)
        return math.copysign(below if part < 0.5 else below + 1, x)

    return gb.unary.register_anonymous(rint)


def _inverse(name: str) -> str:
    return {"lt": "ge", "gt": "le", "ne": "eq"}[name]


def _sparse(x: Any) -> bool:
    return isinstance(x, gb.Matrix) or issparse(x)


def _array(x: Any) -> np.ndarray | None:
    """What NumPy makes an array of numbers of."""
    array = np.asarray(x)
    return None if array.dtype == object else array


def _compared_with(dtype: np.dtype, scalar: Any) -> Any:
    """A scalar as NumPy compares values of `dtype` with it: integers exactly, others in the common type."""
    scalar = scalar[()] if isinstance(scalar, np.ndarray) else scalar
    if dtype.kind in "iu" and isinstance(scalar, (int, np.integer, np.bool_)):
        return scalar
    if dtype.kind == "f" and type(scalar) is int:  # of any size
        return dtype.type(scalar)
    return checked_dtype(np.result_type(dtype, scalar)).type(scalar)


def _broadcast(one: tuple, two: tuple, shapes: tuple) -> tuple[int, int]:
    try:
        return np.broadcast_shapes(one, two)
    except ValueError:
        raise ValueError(f"inconsistent shapes {shapes[0]} and {shapes[1]}") from None


def _check_inner(n: int, other: Any) -> None:
    if other.ndim not in (1, 2):
        raise ValueError("could not interpret dimensions")
    if other.shape[0] != n:
        raise ValueError(message(f"{n} rows on the right of @", f"shape {other.shape}"))


def _matmul(A: Any, B: Any, dtype: np.dtype) -> Any:
    return products(dtype)(A @ B).new()


def _full(array: Any) -> Any:
    """A matrix with every element of a dense array."""
    return gb.Matrix.from_dense(array)


def _along(A: Any, line: Any) -> Any:
    """A times a row (each row of A) or a column (each column)."""
    dtype = np.promote_types(A.dtype.np_type, line.dtype.np_type)
    times = operator("multiply", dtype)
    v = line[0, :].new() if line.shape[0] == 1 else line[:, 0].new()
    if v.nvals < v.size:  # 0 times what is not finite is NaN
        v(~v.S) << 0
    return times(A & v if line.shape[0] == 1 else v & A).new()


def _beside(A: Any, array: np.ndarray, shape: tuple[int, int]) -> Any:
    """The entries of A and of a dense array: a row, a column, or all of a matrix of this shape."""
    if array.shape == shape:
        return A & _full(array)
    return A & gb.Vector.from_dense(array[0]) if array.shape[0] == 1 else gb.Vector.from_dense(array[:, 0]) & A


def _repeats(n: int, wanted: int) -> Any:
    return slice(None) if n == wanted else np.zeros(wanted, np.int64)
