"""Lazy expressions: what every operand can do (`Operand`), and right-hand sides (`Expression`). Shapes and types are
checked when an expression is built.

A handle carries its session; `output << expression` builds a Statement and gives it to that session, which is the one
upward call."""

from collections.abc import Callable
from itertools import count
from math import prod
from typing import Any

from .errors import DimensionMismatch, EmptyObject, message
from .masks import Mask, checked_mask, one_session, replace
from .semiring._algebra import Monoid
from .semiring._compose import compose, is_plain
from .semiring._operators import BinaryOp, UnaryOp, from_string
from .semiring._types import BOOL, DataType, lookup_dtype
from .typed import applied, comparison, dtype_or, elementwise, kind_of, reducer, selected, united

__all__ = ["Expression", "Mask", "Operand", "Statement", "Transposed", "replace"]

_names = count()
_kinds: dict[str, Any] = {}  # "vector", "matrix", "scalar", "element", "infix" -> class, filled by their modules
_SMALL = 10_000  # places of a result that `repr` computes


class Statement:
    """`output(mask, accum, replace) << expression`. `index` is None (everything), an Index (the assigned part of a
    vector) or a pair of them (of a matrix). Light: it refers, never copies."""

    __slots__ = ("output", "mask", "accum", "replace", "expr", "index", "hints", "plan")

    def __init__(self, output: Any, mask: Mask | None, accum: Any, replace: bool, expr: Any, index: Any, hints: dict):
        self.output, self.mask, self.accum, self.replace = output, mask, accum, replace
        self.expr, self.index, self.hints = expr, index, hints
        self.plan: Any = None

    def __repr__(self) -> str:
        arguments = [repr(self.mask)] if self.mask is not None else []
        arguments += [self.accum.name] if self.accum is not None else []
        arguments += ["replace"] if self.replace else []
        target = f"{self.output.name}({', '.join(arguments)})" if arguments else self.output.name
        pair = isinstance(self.index, tuple)
        part = "" if self.index is None else f"[{', '.join(map(repr, self.index)) if pair else repr(self.index)}]"
        return f"{target}{part} << {self.expr.text}"


class Operand:
    """Anything that may stand in an expression: handles, transposes, and expressions, which are computed once when they
    are used as operands.

    Arithmetic is elementwise. `+ | ^` and `-` work on the union of the entries (`-` takes 0 for what is missing);
    `* / // % ** &` and comparisons on the intersection. One side may be a scalar: entries are combined with it."""

    __slots__ = ()
    __array_ufunc__ = None
    __array_priority__ = 1000
    __hash__ = object.__hash__
    ndim: int
    shape: tuple[int, ...]
    dtype: DataType

    def _computed(self) -> Any:
        """The handle (or transpose) that it stands for."""
        return self

    def _materialized(self) -> Any:
        """The handle that it stands for, transposes carried out."""
        return self._computed()

    # -- elementwise

    def ewise_add(self, other: Any, op: Any = "plus") -> "Expression":
        """Entries of either side, combined by `op` where both have one. A vector beside a matrix is repeated: each row
        on the right side, each column on the left."""
        return ewise("union", self, other, op)

    def ewise_mult(self, other: Any, op: Any = "times") -> "Expression":
        """Places where both sides have an entry, combined by `op`."""
        return ewise("intersect", self, other, op)

    def ewise_union(self, other: Any, op: Any, left_default: Any, right_default: Any) -> "Expression":
        """Places where a side has an entry; op(left or left_default, right or right_default)."""
        return ewise("union", self, other, op, (plain(left_default), plain(right_default)))

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> "Expression":
        """Each value through a unary operator, an index-unary one (thunk `right`), or a binary one with a bound
        scalar."""
        x: Any = self if _chains(self) else self._computed()
        if x.ndim == 0:
            return x._apply(op, right, left)
        found, option = applied(op, x.dtype, plain(right), plain(left))
        if x is self and isinstance(self, Expression):
            chain = self._chained(found, option)
            if chain is not None:
                return chain
            x = self._computed()
        return Expression("apply", found, x, None, found.return_type, x.shape, option)

    def select(self, op: Any, thunk: Any = None) -> "Expression":
        """The entries for which op(value, row, column, thunk) is true. `op`: a select operator, a string such as ">=",
        a function; or a mask or a BOOL object: the entries that it lets through."""
        x = self._computed()
        if isinstance(op, (Mask, Operand)):
            if thunk is not None:
                raise TypeError("thunk argument not None when calling select with a mask or a BOOL object")
            return _select_inside(x, op)
        if x.ndim == 0:
            return x._select(op, thunk)
        found, option = selected(op, x.dtype, plain(thunk))
        return Expression("select", found, x, None, x.dtype, x.shape, option)

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
        if self.ndim == 0 and not is_tensor(other):
            return self._computed().isequal(other)
        return _infix("intersect", "eq", self, other)

    def __ne__(self, other: Any) -> Any:
        if self.ndim == 0 and not is_tensor(other):
            return not self._computed().isequal(other)
        return _infix("intersect", "ne", self, other)

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


def _chains(x: Any) -> bool:
    """Whether x is an elementwise expression that nobody has computed: an operator on it makes one of both."""
    return (
        isinstance(x, Expression) and x.kind in ("apply", "intersect", "chain") and x._value is None and bool(x.shape)
    )


def is_tensor(x: Any) -> bool:
    return isinstance(x, Operand) and x.ndim > 0


def computed(x: Any, wanted: str = "a Vector or a Matrix") -> Any:
    """The handle or transpose behind an operand that is no scalar."""
    if not is_tensor(x):
        raise TypeError(message(wanted, type(x).__name__))
    return x._computed()


def plain(value: Any) -> Any:
    """A Scalar (or an expression of one) as a NumPy scalar of its type; anything else as it is. Raises EmptyObject."""
    if not isinstance(value, Operand):
        return value
    if value.ndim:
        raise TypeError(message("a scalar", type(value).__name__, "A | v, A & v combine entries"))
    scalar = value._computed()
    if scalar.value is None:
        raise EmptyObject(message("a scalar with a value", "an empty one", ".get(default)"))
    return scalar.dtype.np_type.type(scalar.value)


def ewise(kind: str, left: Any, right: Any, op: Any, defaults: tuple[Any, Any] | None = None) -> "Expression":
    """op on the union or the intersection of two operands of one shape; a vector beside a matrix is repeated."""
    tensors = is_tensor(left), is_tensor(right)
    if not any(tensors):
        return _kinds["scalar"]._ewise(kind, left, right, op, defaults)
    if not all(tensors):
        raise TypeError(message("a Vector or a Matrix", type(right if tensors[0] else left).__name__))
    if kind == "intersect" and (_chains(left) or _chains(right)) and left.shape == right.shape:
        chain = _both_chained(left, right, op)
        if chain is not None:
            return chain
    if kind == "intersect" and (chain := _third(left, right, op)) is not None:
        return chain
    x, y = computed(left), computed(right)
    if x.ndim != y.ndim:
        return _kinds["broadcast"](kind, x, y, op, defaults)
    if x.shape != y.shape:
        sign = "|" if kind == "union" else "&"
        raise DimensionMismatch(message(f"equal shapes on both sides of {sign}", f"{x.shape} and {y.shape}"))
    if defaults is None:
        found = elementwise(op, x.dtype, y.dtype)
    else:
        found, defaults = united(op, (x.dtype, y.dtype), defaults)
    return Expression(kind, found, x, y, found.return_type, x.shape, defaults)


def _both_chained(left: Any, right: Any, op: Any) -> Any:
    """`op(f(x) & g(y))` as one operator of x and y, or None."""
    unary = [_chains(side) and side.kind == "apply" and is_plain(side.op, 1) for side in (left, right)]
    found = elementwise(op, left.dtype, right.dtype)
    if not any(unary) or not is_plain(found, 2):
        return None
    inner = [side.op if one else None for side, one in zip((left, right), unary, strict=True)]
    x, y = (side.left if one else computed(side) for side, one in zip((left, right), unary, strict=True))
    whole = compose(found, *inner)
    return Expression("intersect", whole, x, y, whole.return_type, x.shape)


def _third(left: Any, right: Any, op: Any) -> Any:
    """`op(f(x | y) & z)` of vectors as one expression, and the other way round; or None."""
    for inner, other in ((left, right), (right, left)):
        if not isinstance(inner, Expression) or inner.kind not in ("union", "intersect") or inner._value is not None:
            continue
        if inner.ndim != 1 or not is_tensor(other) or inner.shape != other.shape:
            continue
        found = elementwise(op, left.dtype, right.dtype)
        if is_plain(inner.op, 2) and is_plain(found, 2):
            option = computed(other), inner, inner is right
            one_session(option[0], inner.session)
            return Expression("chain", found, inner.left, inner.right, found.return_type, inner.shape, option)
    return None


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
    dtypes = [x.dtype for x in (left, right) if isinstance(x, Operand)]
    if any(dtype is not BOOL for dtype in dtypes):
        raise TypeError(message(f"BOOL objects in `x {sign} y`", " and ".join(map(str, dtypes)), "binary.lxor(x | y)"))
    return expr


def _select_inside(x: Any, op: Any) -> "Expression":
    """`x.select(mask)`; `x.select(x < 7)` is a select by value."""
    found = comparison(op, x) if isinstance(op, Expression) and x.ndim else None
    if found is not None:
        return x.select(found, op.option[1])
    if x.ndim == 0:
        return x._select_inside(op)
    mask = checked_mask(op)
    return deferred(lambda: x.dup(mask=mask), x, x.dtype, x.shape, f"{x.name}.select({mask.name})")


class Lazy(Operand):
    """Computed once, when it is used as an operand or asked for what only a computed object has (`nvals`, `to_coo`)."""

    __slots__ = ()
    _value: Any

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        raise NotImplementedError

    def _computed(self) -> Any:
        if self._value is None:
            self._value = self.new()
        return self._value

    def dup(
        self, dtype: Any = None, *, clear: bool = False, mask: Any = None, name: str | None = None, **hints: Any
    ) -> Any:
        """`new`, or with `clear` an empty object of this shape."""
        if clear:
            return new_like(self.shape, dtype_or(dtype, self.dtype), name)
        return self.new(dtype, name=name, **hints) if mask is None else self.new(dtype, mask=mask, name=name, **hints)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in _readable(len(self.shape)):
            return getattr(self._computed(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_readable(len(self.shape))})

    def __getitem__(self, key: Any) -> Any:
        part = self._computed()[key]
        part.parent = self  # nothing can be assigned to it
        return part

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


def _readable(ndim: int) -> set[str]:
    """Names of a computed object that an expression passes on."""
    cls = _kinds[("scalar", "vector", "matrix")[ndim]]
    return {n for n in dir(cls) if not n.startswith(("_", "from_"))} - _CHANGES


class Expression(Lazy):
    """A lazy right-hand side. `kind` says which; `dtype` and `shape` are those of the result. `.new()` or `<<` computes
    it."""

    __slots__ = ("kind", "op", "left", "right", "dtype", "shape", "session", "option", "_value")

    def __init__(self, kind: str, op: Any, left: Any, right: Any, dtype: DataType, shape: tuple, option: Any = None):
        self.kind, self.op, self.left, self.right = kind, op, left, right
        self.dtype, self.shape, self.option = dtype, shape, option
        self.session, self._value = left._session, None
        if right is not None:
            one_session(right, self.session)

    def _chained(self, outer: Any, option: tuple[str, Any]) -> Any:
        """`outer` on this elementwise expression, as one; None if one of the two is no operator of values alone."""
        inputs, side = 1 if is_plain(self.op, 1) else 2, option[0]
        if not is_plain(self.op, inputs):
            return None
        if side and inputs == 1 and is_plain(outer, 2):
            whole = compose(outer, *((self.op, None) if side == "right" else (None, self.op)))
        elif not side and is_plain(outer, 1):
            whole, option = compose(outer, self.op), self.option
        else:
            return None
        return Expression(self.kind, whole, self.left, self.right, whole.return_type, self.shape, option)

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return len(self.shape)

    size = property(lambda self: self.shape[0])
    nrows = property(lambda self: self.shape[0])
    ncols = property(lambda self: self.shape[1])

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """Compute into a new object of `dtype` (default: the expression's). Hints: those of `w(mask, **hints)`."""
        hints.pop("is_cscalar", None)
        value = None
        if mask is None and (dtype is None or lookup_dtype(dtype) is self.dtype):
            value, self._value = self._value, None  # computed already: whoever asks now owns it
            if value is None and self.kind == "deferred":
                value = self.option[0]()
        if value is not None and value.dtype is self.dtype:
            value._name = value._name if name is None else name
            return value
        output = new_like(self.shape, self.dtype if dtype is None else lookup_dtype(dtype), name)
        if mask is None and not hints:
            output << self
        else:
            output(mask=mask, **hints) << self
        return output

    def resolved(self) -> "Expression":
        """One that the session carries out: what is composed of several statements is computed first."""
        if self.kind != "deferred":
            return self
        handle = self.option[0]()
        if handle.ndim == 0:
            return handle._as_fill()
        return Expression("copy", None, handle, None, handle.dtype, handle.shape)

    @property
    def text(self) -> str:
        """The expression in one line."""
        return _TEXT[self.kind](self)


def new_like(shape: tuple, dtype: DataType, name: str | None = None) -> Any:
    """An empty Scalar, Vector or Matrix of this shape."""
    if len(shape) == 2:
        return _kinds["matrix"](dtype, *shape, name=name)
    return _kinds["vector"](dtype, *shape, name=name) if shape else _kinds["scalar"](dtype, name=name)


def deferred(function: Callable[[], Any], like: Any, dtype: DataType, shape: tuple, text: str) -> Expression:
    """A right-hand side of several statements: `function` runs them and returns a fresh handle."""
    return Expression("deferred", None, like, None, dtype, shape, (function, text))


def _bound(e: Expression) -> str:
    if e.option is None or not e.option[0] and not e.option[1]:
        return ""
    return f", {e.option[0] or 'right'}={e.option[1]}"


_TEXT: dict[str, Callable[[Expression], str]] = {
    "product": lambda e: f"{e.op!r}({e.left.name} @ {e.right.name})".replace("semiring.", ""),
    "mxm": lambda e: f"{e.op!r}({e.left.name} @ {e.right.name})".replace("semiring.", ""),
    "kron": lambda e: f"{e.left.name}.kronecker({e.right.name}, {e.op!r})",
    "union": lambda e: f"{e.op!r}({e.left.name} | {e.right.name}{_defaults(e.option)})",
    "intersect": lambda e: f"{e.op!r}({e.left.name} & {e.right.name})",
    "chain": lambda e: f"{e.op!r}({' & '.join([e.option[1].text, e.option[0].name][:: -1 if e.option[2] else 1])})",
    "apply": lambda e: f"{e.left.name}.apply({e.op!r}{_bound(e)})",
    "select": lambda e: f"{e.left.name}.select({e.op!r}, {e.option})",
    "reduce": lambda e: f"{e.left.name}.reduce({e.op!r})",
    "reduce_rows": lambda e: f"{e.left.name}.reduce_rowwise({e.op!r})",
    "extract": lambda e: f"{e.left.name}[{', '.join(map(repr, e.option)) if type(e.option) is tuple else e.option!r}]",
    "diag": lambda e: f"{e.left.name}.diag({e.option})",
    "diagonal": lambda e: f"{e.left.name}.diag({e.option})",
    "column": lambda e: f"{e.left.name} as a column",
    "row": lambda e: f"{e.left.name} as a row",
    "copy": lambda e: e.left.name,
    "fill": lambda e: f"{getattr(e.option, 'name', e.option)}",
    "deferred": lambda e: e.option[1],
}


def _defaults(option: Any) -> str:
    return "" if option is None else f", left_default={option[0]}, right_default={option[1]}"


def reduction(x: Any, op: Any, allow_empty: bool) -> Expression:
    """All values of a handle combined by a monoid; `option` is (count entries instead, the value without entries)."""
    aggregator = aggregator_of(op)
    if aggregator is not None:
        return aggregator.reduce(x, allow_empty)
    monoid = reducer(op, x.dtype)
    empty = None if allow_empty else monoid.identity.item()
    return Expression("reduce", monoid, x, None, monoid.dtype, (), (False, empty))


def aggregator_of(op: Any) -> Any:
    """The aggregator (typed or not) that an argument names, or None. A monoid's name means the monoid."""
    if kind_of(op) == "aggregator":
        return op
    return _kinds["aggregators"].get(op) if isinstance(op, str) and op not in Monoid.registry else None


class Transposed(Operand):
    """A matrix with rows and columns exchanged; nothing moves until a product needs the other orientation."""

    __slots__ = ("matrix", "dtype", "shape", "_session")
    ndim = 2

    def __init__(self, matrix: Any):
        self.matrix, self.dtype, self._session = matrix, matrix.dtype, matrix._session
        self.shape = matrix.shape[::-1]

    @property
    def name(self) -> str:
        return f"{self.matrix.name}.T"

    @property
    def T(self) -> Any:
        return self.matrix

    def _materialized(self) -> Any:
        return self.new()

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """The transpose as a Matrix of its own."""
        output = new_like(self.shape, dtype_or(dtype, self.dtype), name)
        output(mask=mask, **hints) << self
        return output
