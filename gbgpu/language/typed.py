"""Operators as users pass them -> typed ones. Rules are python-graphblas's; nothing here knows of handles."""

from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import DomainMismatch, message
from ..semiring._algebra import get_semiring
from ..semiring._operators import BinaryOp, SelectOp, UnaryOp, resolve
from ..semiring._types import UINT64, DataType, exact, lookup_dtype, of_value, unify


def typed(op: Any, first: DataType, second: DataType) -> Any:
    """The operator for these input types; one that was typed by the user stays."""
    return op if hasattr(op, "op") else op[first, second]


def kind_of(op: Any) -> str:
    """The kind of an operator, typed or not: "unary", "binary", "monoid", "aggregator", ...; "" for anything else."""
    return str(getattr(op, "kind", None) or getattr(getattr(op, "op", None), "kind", ""))


def untyped(op: Any) -> Any:
    """The operator behind a typed one; others as they are."""
    return op.op if hasattr(op, "op") else op


def accumulator(op: Any, dtype: DataType) -> Any:
    """The binary operator that combines two values of one place: an accumulator, or that of duplicates."""
    op = op if type(op) is BinaryOp else resolve(op, "binary")
    if op.is_positional:
        raise DomainMismatch(message("an operator of values to accumulate by", repr(op), "binary.second takes the new"))
    if hasattr(op, "op"):
        return op
    found = op[dtype]
    inexact = found.return_type.kind == "f" and dtype.kind != "f"  # 7 / 2.5 is no 7 / 2, whatever takes it
    return op[found.return_type] if inexact else found


def elementwise(op: Any, first: DataType, second: DataType) -> Any:
    """The binary operator of `|` and `&`: an operator, a monoid's, a string, or a function."""
    return typed(resolve(op, "binary"), first, second)


def united(op: Any, dtypes: tuple[DataType, DataType], defaults: tuple[Any, Any]) -> tuple[Any, tuple[Any, Any]]:
    """(typed operator, defaults as NumPy scalars of its types) of a union with defaults."""
    op, (first, second), (left, right) = resolve(op, "binary"), dtypes, defaults
    if not hasattr(op, "op"):
        one, two = op[first, of_value(right)], op[of_value(left), second]
        op = one if one is two else op[unify(one.dtypes[0], two.dtypes[0]), unify(one.dtypes[-1], two.dtypes[-1])]
    return op, (exact(left, op.dtypes[0]), exact(right, op.dtypes[1]))


def reducer(op: Any, dtype: DataType) -> Any:
    """The typed monoid of a reduction: a monoid, a binary operator that has one, a string."""
    if isinstance(op, str):
        op = resolve(op, "monoid")
    if kind_of(op) == "binary" and op.monoid is not None:
        op = op.monoid
    op = resolve(op, "monoid")
    return op if hasattr(op, "op") else op[dtype]


def row_reducer(op: Any, dtype: DataType) -> Any:
    """The semiring whose product with a full vector reduces rows."""
    found = reducer(op, dtype)
    return get_semiring(found.op, BinaryOp.registry["first"])[found.dtype if hasattr(op, "op") else dtype]


def multiplier(op: Any, first: DataType, second: DataType) -> Any:
    """The typed semiring of a product."""
    if getattr(op, "kind", None) == "semiring":
        return op if hasattr(op, "op") else op[first, second]
    if isinstance(op, str):
        op = resolve(op, "semiring")
    if kind_of(op) != "semiring":
        raise TypeError(f"Bad type for argument `op` in a product.\n    - Expected type: Semiring.\n    - Got: {op!r}.")
    return typed(op, first, second)


def any_of(op: Any) -> Any:
    """The semiring that multiplies by `op` and takes any product."""
    return get_semiring(BinaryOp.registry["any"].monoid, op)


def _applicable(op: Any, kind: str) -> Any:
    """The operator of this kind, "unary" or "binary", or an index-unary one."""
    if not isinstance(op, str):
        return op if kind_of(op) in ("indexunary", "select") else resolve(op, kind)
    try:
        return resolve(op, kind)
    except ValueError as error:
        with suppress(ValueError):
            return resolve(op, "indexunary")
        raise error from None


_COMPARISONS = {f"{prefix}{name}" for prefix in ("", "value") for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def comparable(op: Any, dtype: DataType, value: Any) -> Any:
    """The number that integers of `dtype` are compared with, so that the answer is exact.

    For other operators and types it is the number as it is. INT64 and UINT64 have no common type of integers: in FP64
    2**53 would equal 2**53 + 1.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or dtype.kind not in "iu" or hasattr(op, "op") or op.name not in _COMPARISONS:
        return value
    bounds, number = np.iinfo(dtype.np_type), int(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63 and dtype is not UINT64:
        return value  # a type of integers holds both
    if bounds.min <= number <= bounds.max:
        return dtype.np_type.type(number)
    return np.float64(-(2.0**65) if number < 0 else 2.0**65)  # beyond every integer, as the number is beyond these


def applied(op: Any, dtype: DataType, right: Any, left: Any, known: bool = True) -> tuple[Any, tuple[str, Any]]:
    """(typed operator, (side of the bound scalar, thunk)) of `x.apply(op, right, left=left)`.

    `known`: whether the scalar is the number itself, not one that speaks for its type.
    """
    if left is not None and right is not None:
        raise TypeError("expected left or right, one bound scalar; came both. Hint: x.apply(op, right=2)")
    value, side = (right, "right") if left is None else (left, "left")
    if value is None:
        op = _applicable(op, "unary")
        found = op if hasattr(op, "op") else op[dtype]
        return found, ("", 0 if len(found.dtypes) == 1 else found.dtypes[1].np_type.type(0))
    op = _applicable(op, "binary")
    indexed = kind_of(op) in ("indexunary", "select")
    if indexed and left is not None:
        raise TypeError("Do not pass `left` when applying an index-unary operator. Hint: the thunk is `right`")
    value = comparable(op, dtype, value) if known else value
    first, second = (dtype, of_value(value)) if side == "right" else (of_value(value), dtype)
    found = typed(op, first, second)
    if found.is_positional and not indexed:  # the scalar has no position: that of the entry
        return _position(found), ("", 0)
    return found, ("" if indexed else side, exact(value, found.dtypes[0 if side == "left" else 1]))


def _position(op: Any) -> Any:
    """The unary operator of a typed positional binary one: "firsti1" -> "positioni1"."""
    return UnaryOp.registry[f"position{untyped(op).name.removeprefix('first').removeprefix('second')}"][op.dtypes[0]]


def selected(op: Any, dtype: DataType, thunk: Any, known: bool = True) -> tuple[Any, Any]:
    """(typed select operator, thunk) of `x.select(op, thunk)`. `known`: as in `applied`."""
    thunk = False if thunk is None else thunk
    op = op if kind_of(op) == "select" else resolve(op, "select")
    thunk = comparable(op, dtype, thunk) if known else thunk
    found = typed(op, dtype, of_value(thunk))
    return found, exact(thunk, found.dtypes[1])


def comparison(expr: Any, parent: Any) -> Any:
    """The select operator that `parent.select(parent < 7)` means, or None."""
    if expr.kind != "apply" or expr.left is not parent or expr.option.side != "right":
        return None
    return SelectOp.registry.get(f"value{expr.op.name}")


def dtype_or(dtype: Any, default: DataType) -> DataType:
    """The DataType for `dtype`, or the default for None."""
    return default if dtype is None else lookup_dtype(dtype)
