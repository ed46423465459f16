"""`a @ b`, `a | b`, `a & b` before an operator has said what they mean."""

from typing import Any

from ..errors import DimensionMismatch, fixed, message
from ..semiring._algebra import Monoid, find_semiring
from ..semiring._types import BOOL, DataType
from .expr import Expression, Shaped, _kinds, dtype_of, ewise, is_tensor
from .typed import multiplier


class Infix(Shaped):
    """The operands of `a @ b`, `a | b` or `a & b`, which wait for an operator: `semiring(a @ b)`, `binary(a | b)`.

    Without an operator `@` means plus_times, and the others `lor` and `land` of BOOL objects. `plus(a | b | c)` is
    plus(plus(a | b) | c).
    """

    __slots__ = ("sign", "left", "right", "_shape")
    shape = fixed("shape")

    def __init__(self, sign: str, left: Any, right: Any):
        self.sign, self.left, self.right = sign, left, right
        self._shape = _product_shape(left, right) if sign == "@" else _ewise_shape(sign, left, right)

    def _sides(self, op: Any, **defaults: Any) -> tuple[Any, Any]:
        """Both operands; those made by the same sign through the same operator."""
        left, right = self.left, self.right
        if type(left) is Infix and left.sign == self.sign:
            left = op(left, **defaults)
        if type(right) is Infix and right.sign == self.sign:
            right = op(right, **defaults)
        return left, right

    def _apply_semiring(self, semiring: Any) -> Expression:
        if self.sign != "@":
            raise TypeError(
                f"Bad type for argument `op` in `x {self.sign} y`.\n    - Expected type: BinaryOp, Monoid.\n"
                f"    - Got: {semiring!r}."
            )
        return product(semiring, *self._sides(semiring), self.shape)

    def _apply_binary(self, op: Any, left_default: Any = None, right_default: Any = None) -> Expression:
        if self.sign == "@":
            raise TypeError(
                f"Bad type for argument `op` in `x @ y`.\n    - Expected type: Semiring.\n    - Got: {op!r}."
            )
        if left_default is None and right_default is None:
            return ewise("union" if self.sign == "|" else "intersect", *self._sides(op), op)
        if self.sign != "|" or left_default is None or right_default is None:
            hint = "op(x | y, left_default=0, right_default=0)"
            raise TypeError(message("both left_default and right_default, beside x | y", f"x {self.sign} y", hint))
        left, right = self._sides(op, left_default=left_default, right_default=right_default)
        return ewise("union", left, right, op, (left_default, right_default))

    def _node(self) -> Expression:
        """What it means without an operator."""
        if self.sign == "@":
            return self._apply_semiring(find_semiring("plus_times"))
        name = "lor" if self.sign == "|" else "land"
        for side in (self.left, self.right):
            if (dtype := dtype_of(side)) is not BOOL:
                raise TypeError(
                    f"`{self.text}` needs an operator: only for BOOL objects it means {name} without one (got "
                    f"{dtype}). Hint: monoid.plus({self.text})"
                )
        return self._apply_binary(Monoid.registry[name])

    @property
    def dtype(self) -> DataType:  # type: ignore[override]
        """The dtype of what it means without an operator."""
        return self._node().dtype

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """Compute what it means without an operator."""
        return self._node().new(dtype, mask=mask, name=name, **hints)

    @property
    def text(self) -> str:
        """The expression in one line."""
        return f"{self._side(self.left)} {self.sign} {self._side(self.right)}"

    def _side(self, x: Any) -> str:
        text = getattr(x, "text", None) or getattr(x, "name", repr(x))
        return f"({text})" if isinstance(x, Infix) and x.sign != self.sign else f"{text}"


def _ewise_shape(sign: str, left: Any, right: Any) -> tuple[int, ...]:
    if not is_tensor(left) or not is_tensor(right):
        if is_tensor(left) or is_tensor(right):
            other = right if is_tensor(left) else left
            raise TypeError(message(f"a Vector or a Matrix on both sides of {sign}", type(other).__name__))
        return ()  # conditions: Python's precedence, as of its booleans
    for x in (left, right):
        if isinstance(x, Infix) and x.sign in "|&" and x.sign != sign:
            raise TypeError(f"`|` beside `&` is ambiguous: `{x.text}`. Hint: give one of them its operator")
    if left.shape == right.shape:
        return left.shape
    if left.ndim == right.ndim or left.shape[-1 if left.ndim == 2 else 0] != right.shape[0 if right.ndim == 2 else -1]:
        raise DimensionMismatch(message(f"equal shapes on both sides of {sign}", f"{left.shape} and {right.shape}"))
    return left.shape if left.ndim == 2 else right.shape


def _product_shape(left: Any, right: Any) -> tuple[int, ...]:
    if not is_tensor(left) or not is_tensor(right):
        raise TypeError(message("matrices or vectors in `x @ y`", f"{type(left).__name__} @ {type(right).__name__}"))
    first, second = left.shape, right.shape
    if first[-1] != second[0]:
        raise DimensionMismatch(message("inner sizes to agree in x @ y", f"{first} @ {second}", "A.T is the transpose"))
    return first[:-1] + second[1:]


def product(op: Any, left: Any, right: Any, shape: tuple[int, ...] | None = None) -> Expression:
    """`x @ A`, `A @ x`, `A @ B` or `x @ y`. Operand order is kept. `shape`: that of the result, if it is known."""
    shape = _product_shape(left, right) if shape is None else shape
    left, right = left._node(), right._node()
    found = multiplier(op, left.dtype, right.dtype)
    if len(shape) == 0:
        return _kinds["inner"](found, left, right)
    if len(shape) == 2:
        return Expression("mxm", found, left, right, found.return_type, shape)
    return Expression("product", found, left, right, found.return_type, shape)


_kinds["infix"] = Infix
