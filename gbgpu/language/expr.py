"""Lazy expressions: what every operand can do (`Operand`), and right-hand sides (`Expression`).

An expression is a tree of nodes over handles: shapes and types are checked when it is built, values are read when its
statement runs.

A handle carries its session; `output << expression` builds a Statement and gives it to that session, which is the one
upward call.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, EmptyObject, fixed, message
from ..semiring._algebra import Monoid
from ..semiring._operators import BinaryOp, UnaryOp, from_string
from ..semiring._types import BOOL, DataType, exact, lookup_dtype, of_value
from .masks import Mask, one_session, replace, values_of
from .typed import applied, comparison, dtype_or, elementwise, kind_of, reducer, selected, united

__all__ = ["Expression", "Mask", "Operand", "Statement", "Transposed", "replace"]

_SCALARS = ("apply", "select", "union", "fill")  # kinds whose option has scalars
_kinds: dict[str, Any] = {}  # "vector", "matrix", "scalar", "element", "infix" -> class, filled by their modules
_SMALL = 10_000  # places of a result that `repr` computes


class Statement:
    """A statement `output(mask, accum, replace) << expression`.

    `index` is None (everything), an Index (the assigned part of a vector) or a pair of them (of a matrix). A statement
    refers to objects, and never copies them.
    """

    __slots__ = ("output", "mask", "accum", "replace", "expr", "index", "hints", "carried")

    def __init__(self, output: Any, mask: Mask | None, accum: Any, replace: bool, expr: Any, index: Any, hints: dict):
        self.output, self.mask, self.accum, self.replace = output, mask, accum, replace
        self.expr, self.index, self.hints = expr, index, hints
        self.carried: Any = None  # (the steps it took beside, its own plan), once it is planned

    @property
    def plan(self) -> Any:
        """All steps that it took; None before it ran."""
        if self.carried is None:
            return None
        beside, plan = self.carried
        return plan.after(beside) if beside else plan

    @property
    def steps(self) -> Sequence[Any]:
        """All steps that it took, once it is planned."""
        beside, plan = self.carried
        return (*beside, *plan.steps) if beside else plan.steps

    @property
    def outline(self) -> tuple:
        """What it is, without what its objects are named and hold."""
        mask, said = self.mask, []
        if mask is not None:
            said.append(f"through a mask {'~' * mask.complement}.{'VS'[mask.structural]}")
        said += ["accumulated"] * (self.accum is not None) + ["replace"] * self.replace
        return self.expr.kind, "into", self.output.dtype.name, self.output.shape, *said

    @property
    def given(self) -> list[Any]:
        """What the user gave it beside objects.

        These are operators by their texts, numbers, and ids as arrays and ranges. Left out is what is only known when
        it runs: scalars whose values lie on the devices, numbers of a recorded loop.
        """
        found: list[Any] = [_text_of(self.accum)]
        waiting, seen = [self.index, self.expr], set()
        while waiting:
            node = waiting.pop()
            if isinstance(node, Expression):
                if id(node) not in seen:  # trees share branches
                    seen.add(id(node))
                    found.append(_text_of(node.op))
                    waiting += [node.left, node.right, node.option]
            elif isinstance(node, tuple):
                waiting += node
            elif isinstance(node, (bool, int, float, np.generic)):
                found.append(node)
            elif isinstance(node, _kinds["scalar"]):
                found.append(None if node.waits else node._value)
            elif hasattr(node, "given"):  # an Index, a Place
                found.append(node.given)
        return [each for each in found if each is not None]

    def __repr__(self) -> str:
        arguments = [repr(self.mask)] if self.mask is not None else []
        arguments += [self.accum.name] if self.accum is not None else []
        arguments += ["replace"] if self.replace else []
        target = f"{self.output.name}({', '.join(arguments)})" if arguments else self.output.name
        pair = isinstance(self.index, tuple)
        part = "" if self.index is None else f"[{', '.join(map(repr, self.index)) if pair else repr(self.index)}]"
        return f"{target}{part} << {self.expr.text}"


def _text_of(op: Any) -> str | None:
    """An operator by its name, and what the users' functions in it compute: a name tells nothing of them."""
    if op is None:
        return None
    parts = (op.monoid.binary, op.multiply) if hasattr(op, "multiply") else (getattr(op, "binary", op),)
    functions = [part.program.key for part in parts if getattr(getattr(part, "op", None), "_user", False)]
    return " ".join([repr(op), *functions])


class Operand:
    """Anything that may stand in an expression: handles, transposes, and expressions.

    Arithmetic is elementwise. One side may be a scalar: entries are combined with it.

    - `+ | ^` and `-` work on the union of the entries (`-` takes 0 for what is missing);
    - `* / // % ** &` and comparisons work on the intersection.
    """

    __slots__ = ()
    __array_ufunc__ = None
    __array_priority__ = 1000
    __hash__ = object.__hash__
    ndim: int
    shape: tuple[int, ...]
    dtype: DataType
    lazy = False  # whether it has to be computed before it can be read

    def _node(self) -> Any:
        """What stands for it in an expression: `a @ b` becomes the product that it means."""
        return self

    def _computed(self) -> Any:
        """The handle (or transpose) that it stands for, computed now."""
        return self

    def _read(self) -> Any:
        """What a scalar holds now, None if nothing."""
        raise NotImplementedError

    @property
    def _now(self) -> Any:
        """The same, as an attribute, which a session may note that Python has seen."""
        return self._read()

    def _materialized(self) -> Any:
        """The handle that it stands for, transposes carried out."""
        return self._computed()

    # -- elementwise

    def ewise_add(self, other: Any, op: Any = "plus") -> "Expression":
        """Elementwise on the union: the entries of either side, combined where both have one.

        Parameters
        ----------
        other : Vector or Matrix
            Of the same shape. A vector beside a matrix is repeated: each row on the right side, each column on the
            left.
        op : operator, monoid or str
            The binary operator that combines two values.

        Returns
        -------
        Expression
            Of this shape.

        Raises
        ------
        DimensionMismatch
            If the shapes differ.
        """
        return ewise("union", self, other, op)

    def ewise_mult(self, other: Any, op: Any = "times") -> "Expression":
        """Elementwise on the intersection: the places where both sides have an entry.

        Parameters
        ----------
        other : Vector or Matrix
            Of the same shape. A vector beside a matrix is repeated: each row on the right side, each column on the
            left.
        op : operator, monoid or str
            The binary operator that combines two values.

        Returns
        -------
        Expression
            Of this shape.

        Raises
        ------
        DimensionMismatch
            If the shapes differ.
        """
        return ewise("intersect", self, other, op)

    def ewise_union(self, other: Any, op: Any, left_default: Any, right_default: Any) -> "Expression":
        """Elementwise on the union, with defaults: op(left or left_default, right or right_default).

        Parameters
        ----------
        other : Vector or Matrix
            Of the same shape.
        op : operator, monoid or str
            The binary operator that combines two values.
        left_default, right_default : scalar
            The value of a side that has no entry.

        Returns
        -------
        Expression
            Of this shape.

        Raises
        ------
        DimensionMismatch
            If the shapes differ.
        """
        return ewise("union", self, other, op, (left_default, right_default))

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> "Expression":
        """Each value through an operator.

        Parameters
        ----------
        op : operator, function or str
            A unary operator; an index-unary one; or a binary one, with a scalar on one side.
        right : scalar, optional
            The right operand of a binary operator, or the thunk of an index-unary one.
        left : scalar, optional
            The left operand of a binary operator.

        Returns
        -------
        Expression
            Of this shape.

        Raises
        ------
        TypeError
            If both `left` and `right` are given, or `left` with an index-unary operator.
        """
        x = self._node()
        if x.ndim == 0:
            return _kinds["scalar"]._applied(x, op, right, left)
        found, option = bound(op, x.dtype, right, left)
        return Expression("apply", found, x, None, found.return_type, x.shape, option)

    def select(self, op: Any, thunk: Any = None) -> "Expression":
        """The entries for which op(value, row, column, thunk) is true.

        Parameters
        ----------
        op : operator, function, str, Mask or BOOL object
            A select operator, a string such as ">=", or a function; or what lets entries through.
        thunk : scalar, optional
            The operator's last argument.

        Returns
        -------
        Expression
            Of this shape and dtype.

        Raises
        ------
        TypeError
            If `thunk` is given with a mask or a BOOL object.
        """
        x = self._node()
        if isinstance(op, (Mask, Operand)):
            if thunk is not None:
                raise TypeError("thunk argument not None when calling select with a mask or a BOOL object")
            return _select_inside(x, op)
        if x.ndim == 0:
            return _kinds["scalar"]._selected(x, op, thunk)
        found, fixed = selected(op, x.dtype, like(thunk), not isinstance(thunk, Operand))
        return Expression("select", found, x, None, x.dtype, x.shape, thunk if isinstance(thunk, Operand) else fixed)

    def _apply_unary(self, op: Any, right: Any = None, *, left: Any = None) -> "Expression":
        if self.ndim == 0 and is_tensor(right):  # binary.plus(s, A)
            return right.apply(op, left=self)
        return self.apply(op, right, left=left)

    def _apply_select(self, op: Any, thunk: Any = None) -> "Expression":
        return self.select(op, thunk)

    # -- infix

    def __matmul__(self, other: Any) -> Any:
        return _kinds["infix"]("@", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _kinds["infix"]("@", other, self)

    def __or__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Mask) else _kinds["infix"]("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return _kinds["infix"]("|", other, self)

    def __and__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Mask) else _kinds["infix"]("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return _kinds["infix"]("&", other, self)

    def __add__(self, other: Any) -> Any:
        return _infix("union", "plus", self, other)

    def __radd__(self, other: Any) -> Any:
        return _infix("union", "plus", other, self)

    def __sub__(self, other: Any) -> Any:
        return _infix("zeros", "minus", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _infix("zeros", "minus", other, self)

    def __mul__(self, other: Any) -> Any:
        return _infix("intersect", "times", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _infix("intersect", "times", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _infix("intersect", "truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _infix("intersect", "truediv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _infix("intersect", "floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _infix("intersect", "floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _infix("intersect", "mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _infix("intersect", "mod", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return _infix("intersect", "pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _infix("intersect", "pow", other, self)

    def __xor__(self, other: Any) -> Any:
        return logical("^", "union", "lxor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return logical("^", "union", "lxor", other, self)

    def __lt__(self, other: Any) -> Any:
        return _infix("intersect", "lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _infix("intersect", "le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _infix("intersect", "gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _infix("intersect", "ge", self, other)

    def __eq__(self, other: Any) -> Any:
        if self.ndim == 0 and not is_tensor(other) and not _recorded(self, other):
            return self._computed().isequal(other)
        return _infix("intersect" if self.ndim or is_tensor(other) else "eq", "eq", self, other)

    def __ne__(self, other: Any) -> Any:
        if self.ndim == 0 and not is_tensor(other) and not _recorded(self, other):
            return not self._computed().isequal(other)
        return _infix("intersect" if self.ndim or is_tensor(other) else "ne", "ne", self, other)

    def __abs__(self) -> "Expression":
        return self.apply(UnaryOp.registry["abs"])

    def __neg__(self) -> "Expression":
        return self.apply(UnaryOp.registry["ainv"])

    def __invert__(self) -> "Expression":
        if self.dtype is not BOOL:
            raise TypeError(f"The invert operator, `~`, is not supported for {self.dtype}: only for BOOL. Hint: ~x.S")
        return self.apply(UnaryOp.registry["lnot"])

    def _no_inplace(self, other: Any) -> Any:
        raise TypeError(f"{type(self).__name__} does not support in-place operations. Hint: x = (...).new()")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _no_inplace
    __iand__ = __ior__ = __ixor__ = __imatmul__ = _no_inplace

    def __bool__(self) -> bool:
        raise TypeError(f"__bool__ not defined for {type(self).__name__}. Hint: perhaps use .nvals, or .new() first")

    def __len__(self) -> int:
        raise TypeError(f"len() not defined for {type(self).__name__}. Hint: .nvals, .shape")

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        raise TypeError(
            f"a {type(self).__name__} isn't turned into an array silently. Hint: .to_coo() or .to_dense(fill_value)"
        )


def _recorded(*scalars: Any) -> bool:
    """Whether the body of a loop is recorded, where comparisons say what to compute."""
    return any(isinstance(x, Operand) and x._node()._session.recording for x in scalars)


def _operand(x: Any) -> bool:
    return isinstance(x, Operand)


def is_tensor(x: Any) -> bool:
    return isinstance(x, Operand) and x.ndim > 0


def dtype_of(x: Any) -> DataType:
    """The type of an operand, or of a number beside one."""
    return x.dtype if isinstance(x, Operand) else of_value(x)


def computed(x: Any, wanted: str = "a Vector or a Matrix") -> Any:
    """The handle or transpose behind an operand that is no scalar, computed now."""
    if not is_tensor(x):
        raise TypeError(message(wanted, type(x).__name__))
    return x._computed()


def like(value: Any) -> Any:
    """A number of a scalar operand's type, which speaks for it until its value is read; anything else as it is."""
    if not isinstance(value, Operand):
        return value
    if value.ndim:
        raise TypeError(message("a scalar", type(value).__name__, "A | v, A & v combine entries"))
    return value.dtype.np_type.type(0)


def bound(op: Any, dtype: DataType, right: Any, left: Any) -> "tuple[Any, Bound]":
    """(typed operator, scalar) of `x.apply(op, right, left=left)`; a scalar operand stays one."""
    scalar = right if left is None else left
    found, (side, thunk) = applied(op, dtype, like(right), like(left), not isinstance(scalar, Operand))
    return found, Bound(side, scalar if isinstance(scalar, Operand) and len(found.dtypes) > 1 else thunk)


def read(value: Any, dtype: DataType) -> Any:
    """The value that a scalar operand has now, as `dtype` holds it; anything else as it is."""
    if not isinstance(value, Operand):
        return value
    late = value._node()._session.late  # what stands for values while a loop is captured
    found = None if late is None else late(value, dtype)
    return exact(plain(value), dtype) if found is None else found


def thunk(op: Any, option: "Bound") -> "Bound":
    """What `bound` gave, its scalar read."""
    side, value = option
    return Bound(side, read(value, op.dtypes[0 if side == "left" else -1]))


def plain(value: Any) -> Any:
    """A Scalar (or an expression of one) as a NumPy scalar of its type; anything else as it is. Raises EmptyObject."""
    if not isinstance(value, Operand):
        return value
    if value.ndim:
        raise TypeError(message("a scalar", type(value).__name__, "A | v, A & v combine entries"))
    node = value._node()
    found = node._session.seen(node, "_now")
    if found is None:
        node._session.computed(node)
        raise EmptyObject(message("a scalar with a value", "an empty one", ".get(default)"))
    return value.dtype.np_type.type(found)


def ewise(kind: str, left: Any, right: Any, op: Any, defaults: tuple[Any, Any] | None = None) -> "Expression":
    """Combine two operands of one shape by `op`; a vector beside a matrix is repeated.

    `kind` is "union" or "intersect".
    """
    tensors = is_tensor(left), is_tensor(right)
    if not any(tensors):
        return _kinds["scalar"]._ewise(kind, left, right, op, defaults)
    if not all(tensors):
        raise TypeError(message("a Vector or a Matrix", type(right if tensors[0] else left).__name__))
    x, y = left._node(), right._node()
    if x.ndim != y.ndim:
        return _kinds["broadcast"](kind, x, y, op, defaults)
    if x.shape != y.shape:
        sign = "|" if kind == "union" else "&"
        raise DimensionMismatch(message(f"equal shapes on both sides of {sign}", f"{x.shape} and {y.shape}"))
    option: tuple | None = None
    if defaults is None:
        found = elementwise(op, x.dtype, y.dtype)
    else:
        found, fixed = united(op, (x.dtype, y.dtype), (like(defaults[0]), like(defaults[1])))
        pairs = zip(defaults, fixed, strict=True)
        option = tuple(given if isinstance(given, Operand) else value for given, value in pairs)
    return Expression(kind, found, x, y, found.return_type, x.shape, option)


def _infix(kind: str, name: str, left: Any, right: Any) -> Any:
    """Arithmetic: "zeros" is the union with 0 for what is missing."""
    op = from_string("%", "binary") if name == "mod" else BinaryOp.registry[name]
    if not is_tensor(left) and is_tensor(right):
        return right.apply(op, left=left)
    if is_tensor(left) and not is_tensor(right):
        return left.apply(op, right)
    return ewise("union", left, right, op, (False, False)) if kind == "zeros" else ewise(kind, left, right, op)


def logical(sign: str, kind: str, name: str, left: Any, right: Any) -> Any:
    """`^`, `&=`, `|=`: for BOOL only."""
    expr = _infix(kind, name, left, right)
    dtypes = [dtype_of(x) for x in (left, right)]
    if any(dtype is not BOOL for dtype in dtypes):
        hint = f"binary.{name}(x {'&' if kind == 'intersect' else '|'} y)"
        raise TypeError(message(f"BOOL objects in `x {sign} y`", " and ".join(map(str, dtypes)), hint))
    return expr


def _select_inside(x: Any, op: Any) -> "Expression":
    """`x.select(mask)`; `x.select(x < 7)` is a select by value."""
    found = comparison(op, x) if isinstance(op, Expression) and x.ndim else None
    if found is not None:
        return x.select(found, op.option.scalar)
    if x.ndim == 0:
        return _kinds["scalar"]._selected_inside(x, op)
    mask = op if isinstance(op, Mask) else values_of(op)
    how, text = (mask.structural, mask.complement), f"{x.name}.select({mask.name})"

    def compute(x: Any, parent: Any) -> Any:
        return x.dup(mask=Mask(parent._materialized(), *how))

    return deferred(compute, (x, mask.parent._node()), x.dtype, x.shape, text)


# of what only handles have, that which makes another node of an expression; anything else computes it
_NODES = {"T", "vxm", "mxv", "mxm", "inner", "outer", "kronecker", "power", "reposition"}
_NODES |= {"reduce", "reduce_rowwise", "reduce_columnwise", "reduce_scalar"}


class Lazy(Operand):
    """An operand that is computed when its statement runs, or when something only a computed object has is asked for.

    Such are `nvals` and `to_coo`, which compute it each time.
    """

    __slots__ = ()
    lazy = True
    nested = False  # whether operands of it are lazy too

    @property
    def text(self) -> str:
        """The expression in one line."""
        raise NotImplementedError

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """Compute into a new object; see `Expression.new`."""
        raise NotImplementedError

    def _computed(self) -> Any:
        return self.new()

    @property
    def name(self) -> str:
        """As what it appears in another's text."""
        return self.text

    def dup(
        self, dtype: Any = None, *, clear: bool = False, mask: Any = None, name: str | None = None, **hints: Any
    ) -> Any:
        """`new`, or with `clear` an empty object of this shape."""
        if clear:
            return new_like(self.shape, dtype_or(dtype, self.dtype), name)
        return self.new(dtype, name=name, **hints) if mask is None else self.new(dtype, mask=mask, name=name, **hints)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in _readable(len(self.shape)):
            if name in _NODES:
                return getattr(_class_of(len(self.shape)), name).__get__(self._node())
            return getattr(self._computed(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_readable(len(self.shape))})

    def __getitem__(self, key: Any) -> Any:
        return _kinds["vector"].__getitem__(self._node(), key)

    def __contains__(self, key: Any) -> bool:
        return key in self._computed()

    def __iter__(self) -> Any:
        return iter(self._computed())

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} can't be pickled or copied. Hint: .new()")

    def __bool__(self) -> bool:
        return bool(self._computed()) if self.ndim == 0 else super().__bool__()

    def __int__(self) -> int:
        return int(self._computed())

    def __float__(self) -> float:
        return float(self._computed())

    def __index__(self) -> int:
        if self.ndim:
            raise TypeError(message("an integer", f"an expression of shape {self.shape}"))
        return self._computed().__index__()

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._computed().__array__(*arguments, **keywords)

    def _repr_html_(self) -> str:
        from . import formatting

        return formatting.expression_html(self, prod(self.shape) <= _SMALL)

    def __repr__(self) -> str:
        """What it computes (a small one is computed), and how to compute it."""
        from . import formatting

        return formatting.expression(self, prod(self.shape) <= _SMALL)


_CHANGES = {"build", "clear", "resize", "setdiag", "update"}  # methods that expressions do not have


@cache
def _readable(ndim: int) -> set[str]:
    """Names of a computed object that an expression passes on."""
    return {n for n in dir(_class_of(ndim)) if not n.startswith(("_", "from_"))} - _CHANGES


def _class_of(ndim: int) -> Any:
    return _kinds[("scalar", "vector", "matrix")[ndim]]


class Bound(NamedTuple):
    """The scalar (or thunk) beside a value in `apply`.

    `side` says on which side of a binary operator it stands; "": it is no binary one.
    """

    side: str
    scalar: Any


class Third(NamedTuple):
    """The outer operand of a `chain`, op(inner & z); z is the left operand if `flip`."""

    z: Any
    inner: "Expression"
    flip: bool


class Whole(NamedTuple):
    """How a `reduce` treats its operand.

    `counted`: entries count as one each; `empty`: what comes without entries; `inner`: of `fold`, the union,
    intersection or chain that it reduces as it is made.
    """

    counted: bool
    empty: Any
    inner: "Expression | None" = None


class Composed(NamedTuple):
    """A right-hand side that a function gives.

    Of `deferred` the function gives an expression of the operands; of `number` the value of theirs. `missing` says what
    is done where a number is missing: "intersect": nothing comes out; "eq", "ne": whether both are.
    """

    function: Callable[..., Any]
    text: str
    missing: str = "intersect"


class Shaped(Lazy):
    """Of a `shape` that each object has."""

    __slots__ = ()

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return len(self.shape)

    size = property(lambda self: self.shape[0])
    nrows = property(lambda self: self.shape[0])
    ncols = property(lambda self: self.shape[1])


class Expression(Shaped):
    """A lazy right-hand side: `.new()` or `<<` computes it.

    `dtype` and `shape` are those of the result; `kind` says what it does. `option` is what a kind needs beside its
    operands: `apply` Bound, `select` its thunk, `union` the two defaults or None, `chain` Third, `reduce` Whole,
    `extract` an Index (of a matrix two), `line` a Place, `concat` the tiles, `diag` and `diagonal` which one, `fill`
    the value, `deferred` and `number` Composed.
    """

    __slots__ = ("kind", "op", "left", "right", "_dtype", "_shape", "_session", "option", "nested")
    nested: bool
    dtype, shape = fixed("dtype", "x.new(dtype)"), fixed("shape")

    def __init__(self, kind: str, op: Any, left: Any, right: Any, dtype: DataType, shape: tuple, option: Any = None):
        self.kind, self.op, self.left, self.right = kind, op, left, right
        self._dtype, self._shape, self.option = dtype, shape, option
        self._session, self.nested = left._session, left.lazy
        if right is not None:
            one_session(right, self._session)
            self.nested = self.nested or right.lazy
        if kind in _SCALARS and not self.nested:
            given = option.scalar if kind == "apply" else option
            self.nested = any(map(_operand, given)) if type(given) is tuple else isinstance(given, Operand)

    def _read(self) -> Any:
        """Numbers are computed on the host, however many there are in one another."""
        if self.kind != "number":
            return self.new().value
        known: dict[int, Any] = {}
        waiting: list[Any] = [self]
        while waiting:
            node = waiting[-1]
            parts = [x for x in (node.left, node.right) if x is not None]
            ahead = [x for x in parts if id(x) not in known and getattr(x, "kind", "") == "number"]
            waiting += ahead
            if not ahead:
                found = node.option.function(*[known[id(x)] if id(x) in known else x._read() for x in parts])
                known[id(waiting.pop())] = None if found is None else exact(found, node.dtype).item()
        return known[id(self)]

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """Compute into a new object.

        Parameters
        ----------
        dtype : dtype, optional
            By default that of the expression.
        mask : Mask, optional
            Which entries to compute.
        name : str, optional
            The object's name.
        **hints : str
            `direction` ("push", "pull"), `form` ("list", "bitmap") or `method` ("dot", "rows", "hash", "dense",
            "sort").

        Returns
        -------
        Scalar, Vector or Matrix
            A new one, of the expression's shape.
        """
        hints.pop("is_cscalar", None)
        output = new_like(self.shape, self.dtype if dtype is None else lookup_dtype(dtype), name)
        if mask is None and not hints:
            output << self
        else:
            output(mask=mask, **hints) << self
        return output

    @property
    def name(self) -> str:
        """Its text, but of what is in it only the outermost: trees may be deep, and share branches."""
        return f"{self.op!r}(...)" if self.nested and self.kind not in ("deferred", "number") else self.text

    @property
    def text(self) -> str:
        """The expression in one line."""
        return _TEXT[self.kind](self)


def new_like(shape: tuple, dtype: DataType, name: str | None = None) -> Any:
    """An empty Scalar, Vector or Matrix of this shape."""
    if len(shape) == 2:
        return _kinds["matrix"](dtype, *shape, name=name)
    return _kinds["vector"](dtype, *shape, name=name) if shape else _kinds["scalar"](dtype, name=name)


def deferred(function: Callable[..., Any], operands: tuple, dtype: DataType, shape: tuple, text: str) -> Expression:
    """A right-hand side of several statements.

    `function` of the (at most two) operands, computed, gives an expression of `dtype`, or a handle that nobody else
    has.
    """
    left, right = operands if len(operands) == 2 else (*operands, None)
    return Expression("deferred", None, left, right, dtype, shape, Composed(function, text))


def _bound(e: Expression) -> str:
    side, scalar = e.option
    return f", {side or 'right'}={getattr(scalar, 'name', scalar)}" if side or scalar else ""


_TEXT: dict[str, Callable[[Expression], str]] = {
    "product": lambda e: f"{e.op!r}({e.left.name} @ {e.right.name})".replace("semiring.", ""),
    "mxm": lambda e: f"{e.op!r}({e.left.name} @ {e.right.name})".replace("semiring.", ""),
    "kron": lambda e: f"{e.left.name}.kronecker({e.right.name}, {e.op!r})",
    "union": lambda e: f"{e.op!r}({e.left.name} | {e.right.name}{_defaults(e.option)})",
    "intersect": lambda e: f"{e.op!r}({e.left.name} & {e.right.name})",
    "chain": lambda e: f"{e.op!r}({' & '.join(_both(e.option))})",
    "line": lambda e: f"{e.left.name}[{e.option!r}]",
    "apply": lambda e: f"{e.left.name}.apply({e.op!r}{_bound(e)})",
    "select": lambda e: f"{e.left.name}.select({e.op!r}, {e.option})",
    "reduce": lambda e: f"{e.left.name}.reduce({e.op!r})",
    "reduce_rows": lambda e: f"{e.left.name}.reduce_rowwise({e.op!r})",
    "extract": lambda e: f"{e.left.name}[{', '.join(map(repr, e.option)) if type(e.option) is tuple else e.option!r}]",
    "concat": lambda e: f"{len(e.option)} x {len(e.option[0])} tiles",
    "diag": lambda e: f"{e.left.name}.diag({e.option})",
    "diagonal": lambda e: f"{e.left.name}.diag({e.option})",
    "column": lambda e: f"{e.left.name} as a column",
    "row": lambda e: f"{e.left.name} as a row",
    "copy": lambda e: e.left.name,
    "fill": lambda e: f"{getattr(e.option, 'name', e.option)}",
    "deferred": lambda e: e.option.text,
    "number": lambda e: e.option.text,
}


def _both(option: Third) -> tuple[str, str]:
    sides = option.inner.text, option.z.name
    return (sides[1], sides[0]) if option.flip else sides


def _defaults(option: Any) -> str:
    return "" if option is None else f", left_default={option[0]}, right_default={option[1]}"


def reduction(x: Any, op: Any, allow_empty: bool) -> Expression:
    """All values of a handle combined by a monoid; `option` is (count entries instead, the value without entries)."""
    aggregator = aggregator_of(op)
    if aggregator is not None:
        return aggregator.reduce(x, allow_empty)
    monoid = reducer(op, x.dtype)
    empty = None if allow_empty else monoid.identity.item()
    return Expression("reduce", monoid, x, None, monoid.dtype, (), Whole(False, empty))


def aggregator_of(op: Any) -> Any:
    """The aggregator (typed or not) that an argument names, or None. A monoid's name means the monoid."""
    if kind_of(op) == "aggregator":
        return op
    return _kinds["aggregators"].get(op) if isinstance(op, str) and op not in Monoid.registry else None


class Transposed(Operand):
    """A matrix with rows and columns exchanged; nothing moves until a product needs the other orientation."""

    __slots__ = ("_matrix", "_dtype", "_shape", "_session")
    ndim = 2
    matrix, dtype, shape = fixed("matrix"), fixed("dtype"), fixed("shape")

    def __init__(self, matrix: Any):
        self._matrix, self._dtype, self._session = matrix, matrix.dtype, matrix._session
        self._shape = matrix.shape[::-1]

    @property
    def lazy(self) -> bool:  # type: ignore[override]
        """Whether the matrix has to be computed first."""
        return self.matrix.lazy

    @property
    def name(self) -> str:
        """The name of the matrix, with `.T`."""
        return f"{self.matrix.name}.T"

    @property
    def T(self) -> Any:
        """The matrix itself."""
        return self.matrix

    def _materialized(self) -> Any:
        return self.new()

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """The transpose as a new Matrix; arguments as `Expression.new`."""
        output = new_like(self.shape, dtype_or(dtype, self.dtype), name)
        output(mask=mask, **hints) << self
        return output
