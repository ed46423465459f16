"""Operations that are a few statements: each says which. Nothing here touches what a handle holds."""

from typing import Any

import numpy as np

from ..errors import DimensionMismatch, message
from ..semiring._operators import BinaryOp
from .expr import Expression, _kinds, computed, deferred, ewise, is_tensor, like, new_like, plain
from .infix import product
from .masks import Mask, checked_mask
from .recording import unknown
from .typed import any_of, elementwise, multiplier, united, untyped


def of_ndim(x: Any, ndim: int) -> Any:
    """An operand with this many dimensions. Raises TypeError."""
    if not is_tensor(x) or x.ndim != ndim:
        raise TypeError(
            f"Bad type for argument `other`.\n    - Expected type: {('Vector', 'Matrix')[ndim - 1]}.\n"
            f"    - Got: {type(x).__name__}."
        )
    return x


def by_rows(order: str) -> bool:
    """Whether an `order` argument means rows first. Raises ValueError."""
    text = str(order).lower()
    if text in ("row", "rows", "rowwise", "c"):
        return True
    if text in ("col", "cols", "column", "columns", "colwise", "columnwise", "f"):
        return False
    raise ValueError(message("order 'rowwise' or 'columnwise'", repr(order)))


# -- products


def inner(semiring: Any, x: Any, y: Any) -> Expression:
    """reduce(monoid, multiply(x & y)); positions come from x as a row and y as a column."""

    def compute(x: Any, y: Any) -> Any:
        if not semiring.multiply.is_positional:
            terms = Expression("intersect", semiring.multiply, x, y, semiring.multiply.return_type, x.shape)
            return terms.reduce(semiring.monoid)
        column = Expression("column", None, y, None, y.dtype, (y.shape[0], 1))
        return product(semiring, x, column).reduce(semiring.monoid)

    text = f"{semiring!r}({x.name} @ {y.name})".replace("semiring.", "")
    return deferred(compute, (x, y), semiring.return_type, (), text)


def outer(x: Any, y: Any, op: Any) -> Expression:
    """The Kronecker product of a column and a row; with positions the matrix product of them."""
    x, y = x._node(), of_ndim(y, 1)._node()
    found = elementwise(op, x.dtype, y.dtype)
    shape = (x.shape[0], y.shape[0])

    def compute(x: Any, y: Any) -> Any:
        column = Expression("column", None, x, None, x.dtype, (shape[0], 1))
        row = Expression("row", None, y, None, y.dtype, (1, shape[1]))
        if found.is_positional:
            return product(any_of(untyped(found)), column, row)
        return Expression("kron", found, column, row, found.return_type, shape)

    return deferred(compute, (x, y), found.return_type, shape, f"{x.name}.outer({y.name}, {found!r})")


def broadcast(kind: str, x: Any, y: Any, op: Any, defaults: Any) -> Expression:
    """A vector beside a matrix: repeated in each row (on the right) or column (on the left), then elementwise."""
    right = x.ndim == 2
    matrix, vector = (x, y) if right else (y, x)
    along = matrix.shape[1 if right else 0]
    if vector.shape[0] != along:
        raise DimensionMismatch(message(f"a Vector of size {along} beside {matrix.name}", vector.shape[0]))
    types = (x.dtype, y.dtype)
    found = (
        elementwise(op, *types) if defaults is None else united(op, types, (like(defaults[0]), like(defaults[1])))[0]
    )

    def compute(x: Any, y: Any) -> Any:
        matrix, vector = (x, y) if right else (y, x)
        other = _repeated(vector, matrix.shape, right) if kind == "union" else _spread(vector, matrix, right)
        return ewise(kind, *((x, other) if right else (other, y)), found if defaults is None else op, defaults)

    sign = "|" if kind == "union" else "&"
    return deferred(compute, (x, y), found.return_type, matrix.shape, f"{found!r}({x.name} {sign} {y.name})")


def _repeated(vector: Any, shape: tuple, right: bool) -> Any:
    """A matrix whose rows (or columns) all are the vector."""
    ones = _kinds["vector"].from_scalar(True, shape[0 if right else 1])
    return outer(ones, vector, "second") if right else outer(vector, ones, "first")


def _spread(vector: Any, matrix: Any, right: bool) -> Any:
    """The vector's values at the matrix's entries."""
    second, first = any_of(BinaryOp.registry["second"]), any_of(BinaryOp.registry["first"])
    D = vector.diag()
    found = (second if right else first)[vector.dtype]
    sides = (matrix, D) if right else (D, matrix)
    return Expression("mxm", found, *sides, vector.dtype, matrix.shape)


def spread_rows(vector: Any, matrix: Any) -> Any:
    """A matrix with the pattern of `matrix` whose row i holds vector[i]."""
    return _spread(vector, matrix, False)


def power(A: Any, n: Any, op: Any) -> Expression:
    """Repeated squaring."""
    if A.shape[0] != A.shape[1]:
        raise DimensionMismatch(message("a square Matrix for power", f"shape {A.shape}"))
    n = integral(n, "n")
    if n < 0:
        raise ValueError(message("a nonnegative n", n))
    semiring = multiplier(op, A.dtype, A.dtype)
    monoid = semiring.multiply.monoid
    if n == 0 and monoid is None:
        raise ValueError(message("a semiring whose multiplication has an identity, for n=0", repr(semiring)))

    def compute(A: Any) -> Any:
        if n == 0:
            return _kinds["vector"].from_scalar(monoid.identity, A.shape[0], A.dtype).diag()
        result: Any = None
        square, left = A, n
        while True:
            if left & 1:
                result = square if result is None else product(semiring, square, result).new(A.dtype)
            left >>= 1
            if not left:
                return result
            square = product(semiring, square, square).new(A.dtype)

    return deferred(compute, (A,), A.dtype, A.shape, f"{A.name}.power({n}, op={semiring!r})")


def integral(value: Any, name: str) -> int:
    """An argument that must be an integer, of any number type. Raises TypeError."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or np.ndim(value) or number != value:
        raise TypeError(message(f"an integer {name}", repr(value)))
    return number


# -- positions and sizes


def _window(offset: int, old: int, new: int) -> tuple[slice, slice]:
    """(places read, places written) of a dimension whose ids move by `offset`."""
    first, last = max(0, -offset), min(old, new - offset)
    last = max(first, last)
    return slice(first, last), slice(first + offset, last + offset)


def _moved(x: Any, windows: tuple, shape: tuple) -> Any:
    source = tuple(window[0] for window in windows)
    target = tuple(window[1] for window in windows)
    made = new_like(shape, x.dtype)
    if all(window.stop > window.start for window in source):
        made[target if len(shape) == 2 else target[0]] << x[source if len(shape) == 2 else source[0]]
    return made


def reposition_vector(x: Any, offset: int, size: int) -> Expression:
    """Lower `w[a + offset : b + offset] << x[a:b]`."""
    windows = (_window(offset, x.shape[0], size),)
    text = f"{x.name}.reposition({offset})"
    return deferred(lambda x: _moved(x, windows, (size,)), (x,), x.dtype, (size,), text)


def reposition_matrix(x: Any, offsets: tuple[int, int], shape: tuple[int, int]) -> Expression:
    """Lower `C[a + p : b + p, c + q : d + q] << A[a:b, c:d]`."""
    windows = tuple(_window(*three) for three in zip(offsets, x.shape, shape, strict=True))
    text = f"{x.name}.reposition({offsets[0]}, {offsets[1]})"
    return deferred(lambda x: _moved(x, windows, shape), (x,), x.dtype, shape, text)


def resize(x: Any, shape: tuple) -> None:
    """The handle takes the content of its repositioned self."""
    x._session.check()
    if x._session.recording:
        raise unknown(f"the shape of {x.name} after resize")
    if shape != x.shape:
        windows = tuple(_window(0, old, new) for old, new in zip(x.shape, shape, strict=True))
        moved = _moved(x, windows, shape)
        x._session.take(x, moved)


# -- diagonals


def diagonal_size(shape: tuple[int, ...], k: int) -> int:
    """Length of the k'th diagonal; 0 outside."""
    return max(0, min(shape[0] + k, shape[1]) if k < 0 else min(shape[1] - k, shape[0]))


def _on_diagonal(v: Any, k: int, shape: tuple[int, int]) -> Any:
    """A matrix of this shape with v on its k'th diagonal."""
    return v.diag(k).reposition(0, 0, nrows=shape[0], ncols=shape[1]).new()


def setdiag(A: Any, values: Any, k: Any, mask: Any, accum: Any, hints: dict) -> None:
    """A(mask of the diagonal, accum) << the diagonal matrix of the values."""
    k = integral(k, "k")
    size = diagonal_size(A.shape, k)
    if size == 0 and (k <= -A.shape[0] if k < 0 else k > 0 and k >= A.shape[1]):
        raise IndexError(message(f"{-A.shape[0]} < k < {A.shape[1]}", k, "k = 0 is the main diagonal"))
    v = _diagonal_values(values, size)
    if v.shape[0] != size:
        raise DimensionMismatch(message(f"{size} values for diagonal {k} of shape {A.shape}", v.shape[0]))
    D = _on_diagonal(v, k, A.shape)
    if mask is None:
        whole = accum is not None or (not A._session.recording and v.nvals == size)
        inside = D.S if whole else _on_diagonal(full(size), k, A.shape).S
    else:
        inside = _diagonal_mask(A, checked_mask(mask), k, size)
    A(mask=inside, accum=accum, **hints) << D


def full(size: int) -> Any:
    """A vector that is True everywhere."""
    return _kinds["vector"].from_scalar(True, size)


def _diagonal_values(values: Any, size: int) -> Any:
    if is_tensor(values):
        return of_ndim(computed(values), 1)
    values = plain(values)
    if np.ndim(values) == 0 and not isinstance(values, str):
        return _kinds["vector"].from_scalar(values, size)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(message("a scalar, a Vector or an array of numbers", type(values).__name__))
    return _kinds["vector"].from_dense(array)


def _diagonal_mask(A: Any, mask: Mask, k: int, size: int) -> Mask:
    """A mask of A's shape that lets through what `mask` does on the k'th diagonal."""
    if mask.parent.ndim == 2:
        if mask.parent.shape != A.shape:
            raise DimensionMismatch(message(f"a mask of shape {A.shape}", f"{mask.parent.shape}"))
        mask = Mask(mask.parent.diag(k), mask.structural, mask.complement)
    elif mask.parent.shape[0] != size:
        raise DimensionMismatch(message(f"a Vector mask of size {size}", mask.parent.shape[0]))
    return _on_diagonal(mask.new(), k, A.shape).S


_kinds.update(inner=inner, broadcast=broadcast)
