"""Statements before they run: masks, lazy expressions, and the base of every handle. Shapes and types are checked when
an expression is built.

A handle carries its session; `output << expression` builds a Statement and gives it to that session, which is the one
upward call."""

from itertools import count
from typing import Any

import numpy as np

from . import settings
from .errors import DimensionMismatch, InvalidValue, NotImplementedException, message
from .semiring._algebra import get_semiring
from .semiring._operators import BinaryOp, resolve
from .semiring._types import BOOL, DataType, lookup_dtype, of_value

_HINTS = {"direction": ("push", "pull"), "form": ("list", "bitmap")}  # of a product; of the result before it is written
_names = count()
_kinds: dict[str, type] = {}  # "vector", "matrix", "scalar" -> handle class, filled by their modules


class _Replace:
    """The sentinel `replace`: entries of the output that the mask does not let through are deleted."""

    def __repr__(self) -> str:
        return "replace"


replace = _Replace()


class Mask:
    """Which entries of an output a statement may write: by the structure (`.S`) or the values (`.V`) of a parent, or
    the complement (`~`)."""

    __slots__ = ("parent", "structural", "complement")

    def __init__(self, parent: "Handle", structural: bool, complement: bool = False):
        self.parent, self.structural, self.complement = parent, structural, complement

    def __invert__(self) -> "Mask":
        return Mask(self.parent, self.structural, not self.complement)

    def __repr__(self) -> str:
        return f"{'~' if self.complement else ''}{self.parent.name}.{'S' if self.structural else 'V'}"


class Statement:
    """`output(mask, accum, replace) << expression`. `index` is None or the assigned part of a vector: user ids. Light:
    it refers, never copies."""

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
        part = "" if self.index is None else f"[{len(self.index)} rows]"
        return f"{target}{part} << {self.expr!r}"


class Updater:
    """`output(mask, accum, replace, **hints)`, waiting for `<<`; indexing narrows it to a part of the output."""

    __slots__ = ("output", "mask", "accum", "replace", "hints", "index")

    def __init__(self, output: "Handle", arguments: tuple = (), keywords: dict | None = None):
        self.output, self.replace = output, False
        self.mask: Mask | None = None
        self.accum: Any = None
        self.index: Any = None
        self.hints: dict = {}
        for argument in arguments:
            self._take(argument)
        for key, value in (keywords or {}).items():
            self._keyword(key, value)
        if self.replace and self.mask is None:
            raise TypeError(
                "'replace' may only be given with a mask. Hint: w(mask, replace) << ...; w.clear() empties w"
            )

    def _take(self, argument: Any) -> None:
        if argument is replace:
            self.replace = True
        elif isinstance(argument, (Mask, Handle)):
            if self.mask is not None:
                raise TypeError("Got multiple values for argument 'mask'")
            self.mask = _checked_mask(argument, self.output)
        elif self.accum is None:
            self.accum = _accumulator(argument, self.output.dtype)
        else:
            raise TypeError("Got multiple values for argument 'accum'")

    def _keyword(self, key: str, value: Any) -> None:
        if key == "replace":
            self.replace = bool(value)
        elif key in ("mask", "accum"):
            if getattr(self, key) is not None:
                raise TypeError(f"Got multiple values for argument '{key}'")
            if value is not None:
                setattr(
                    self,
                    key,
                    _checked_mask(value, self.output) if key == "mask" else _accumulator(value, self.output.dtype),
                )
        elif key not in _HINTS:
            raise TypeError(
                message(
                    f"a hint among {', '.join(_HINTS)}", repr(key), "mask, accum and replace are the other keywords"
                )
            )
        else:
            if value not in _HINTS[key]:
                raise ValueError(message(f"{key} among {', '.join(_HINTS[key])}", repr(value)))
            self.hints[key] = value

    def __getitem__(self, key: Any) -> "Updater":
        narrowed = Updater(self.output)
        narrowed.mask, narrowed.accum, narrowed.replace, narrowed.hints = (
            self.mask,
            self.accum,
            self.replace,
            self.hints,
        )
        narrowed.index = self.output._index(key)
        return narrowed

    def __setitem__(self, key: Any, value: Any) -> None:
        self[key] << value

    def __lshift__(self, expr: Any) -> Statement:
        output = self.output
        statement = Statement(
            output,
            self.mask,
            self.accum,
            self.replace,
            output._checked_source(expr, self.index),
            self.index,
            self.hints,
        )
        return output._session.run(statement)

    def __bool__(self) -> bool:
        raise TypeError("an updater has no truth value. Hint: w(mask) << expression")


def _checked_mask(mask: Any, output: "Handle") -> Mask:
    if isinstance(mask, Handle):
        if mask.dtype is not BOOL:
            raise TypeError(
                f"Mask must be a BOOL object (got {mask.dtype}) or say what it uses: structure (M.S) or values (M.V)"
            )
        mask = Mask(mask, False)
    if not isinstance(mask, Mask):
        raise TypeError(message("a mask such as v.S, ~v.S, v.V", type(mask).__name__))
    if mask.parent.shape != output.shape:
        raise DimensionMismatch(
            message(f"a mask of shape {output.shape}", f"{mask.parent.shape}", "a mask has the shape of the output")
        )
    _one_session(mask.parent, output._session)
    return mask


def _one_session(operand: Any, session: Any) -> None:
    if operand._session is not session:
        raise InvalidValue(
            message("operands of one session", "operands of two", "gb.init ended the first session; make them again")
        )


# -- operators as users pass them -> typed ones


def typed(op: Any, first: DataType, second: DataType) -> Any:
    """The operator for these input types; one that was typed by the user stays."""
    return op if hasattr(op, "op") else op[first, second]


def _accumulator(op: Any, dtype: DataType) -> Any:
    op = resolve(op, "binary")
    return op if hasattr(op, "op") else op[dtype]


def reducer(op: Any, dtype: DataType) -> tuple[Any, bool]:
    """(typed monoid, whether entries are counted instead of their values combined)."""
    if getattr(op, "kind", "") == "aggregator":
        return op[dtype], op.name == "count"
    op = resolve(op, "monoid")
    return (op if hasattr(op, "op") else op[dtype]), False


def row_reducer(op: Any, dtype: DataType) -> Any:
    """The semiring whose product with a full vector reduces rows."""
    monoid, counted = reducer(op, dtype)
    return get_semiring(monoid.op, BinaryOp.registry["pair" if counted else "first"])[dtype]


def _applied(op: Any, dtype: DataType, right: Any, left: Any) -> tuple[Any, tuple[str, Any]]:
    """(typed operator, (side of the bound scalar, thunk)) of `x.apply(op, right, left=left)`."""
    if left is not None and right is not None:
        raise TypeError(message("left or right, one bound scalar", "both", "x.apply(op, right=2)"))
    value, side = (right, "right") if left is None else (left, "left")
    if value is None:
        op = resolve(
            op,
            "indexunary"
            if getattr(op, "kind", getattr(getattr(op, "op", None), "kind", "")) == "indexunary"
            else "unary",
        )
        found = op if hasattr(op, "op") else op[dtype]
        return found, ("", 0 if len(found.dtypes) == 1 else found.dtypes[1].np_type.type(0))
    kind = (
        "indexunary" if getattr(op, "kind", getattr(getattr(op, "op", None), "kind", "")) == "indexunary" else "binary"
    )
    op = resolve(op, kind)
    first, second = (dtype, of_value(value)) if side == "right" else (of_value(value), dtype)
    found = typed(op, first, second)
    return found, ("" if kind == "indexunary" else side, found.dtypes[0 if side == "left" else 1].np_type.type(value))


def _selected(op: Any, dtype: DataType, thunk: Any) -> tuple[Any, Any]:
    """(typed select operator, thunk) of `x.select(op, thunk)`."""
    thunk = False if thunk is None else thunk
    found = typed(resolve(op, "select"), dtype, of_value(thunk))
    return found, found.dtypes[1].np_type.type(thunk)


class Expression:
    """A lazy right-hand side. `kind` says which; `dtype` and `shape` are those of the result. `.new()` or `<<` computes
    it."""

    __slots__ = ("kind", "op", "left", "right", "dtype", "shape", "session", "option")

    def __init__(self, kind: str, op: Any, left: Any, right: Any, dtype: DataType, shape: tuple, option: Any = None):
        self.kind, self.op, self.left, self.right = kind, op, left, right
        self.dtype, self.shape, self.option = dtype, shape, option
        self.session = left._session
        if right is not None:
            _one_session(right, self.session)

    @property
    def size(self) -> int:
        return self.shape[0]

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """Compute into a new object of `dtype` (default: the expression's)."""
        output = _new(self.shape, self.dtype if dtype is None else lookup_dtype(dtype), name)
        Updater(output, () if mask is None else (mask,), hints) << self
        return output

    def __repr__(self) -> str:
        return _TEXT[self.kind](self)

    def __lshift__(self, value: Any) -> Statement:
        """`w[index] << value`: a part of a vector is assigned to."""
        if self.kind not in ("extract", "copy"):
            raise TypeError(f"`{self!r}` is not an output. Hint: w << expression")
        updater = Updater(self.left)
        updater.index = self.option
        return updater << value

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value. Hint: .new() computes it")

    __array__ = None


def _new(shape: tuple, dtype: DataType, name: str | None) -> Any:
    if len(shape) == 2:
        return _kinds["matrix"](dtype, *shape, name=name)
    return _kinds["vector"](dtype, *shape, name=name) if shape else _kinds["scalar"](dtype, name=name)


_TEXT = {
    "product": lambda e: f"{e.op!r}({e.left.name} @ {e.right.name})".replace("semiring.", ""),
    "union": lambda e: f"{e.op!r}({e.left.name} | {e.right.name})",
    "intersect": lambda e: f"{e.op!r}({e.left.name} & {e.right.name})",
    "apply": lambda e: f"{e.left.name}.apply({e.op!r}{'' if e.option is None else ', ' + str(e.option)})",
    "select": lambda e: f"{e.left.name}.select({e.op!r}, {e.option})",
    "reduce": lambda e: f"{e.left.name}.reduce({e.op!r})",
    "reduce_rows": lambda e: f"{e.left.name}.reduce_rowwise({e.op!r})",
    "extract": lambda e: f"{e.left.name}[{len(e.option)} rows]",
    "copy": lambda e: e.left.name,
    "fill": lambda e: f"{e.option}",
}


def reduction(operand: Any, op: Any, allow_empty: bool) -> Expression:
    """All values of a handle combined by a monoid; `option` is (count entries instead, the value without entries)."""
    monoid, counted = reducer(op, operand.dtype)
    empty = None if allow_empty else monoid.identity.item()
    return Expression("reduce", monoid, operand, None, monoid.dtype, (), (counted, empty))


class Infix:
    """`a @ b`, `a | b` or `a & b` before an operator has said what it means: `semiring(a @ b)`, `binary(a | b)`."""

    __slots__ = ("sign", "left", "right")

    def __init__(self, sign: str, left: Any, right: Any):
        self.sign, self.left, self.right = sign, left, right

    def _apply_semiring(self, semiring: Any) -> Expression:
        if self.sign != "@":
            raise TypeError(
                f"Bad type for argument `op` in `x {self.sign} y`.\n    - Expected type: BinaryOp, Monoid.\n"
                f"    - Got: {semiring!r}."
            )
        return product(semiring, self.left, self.right)

    def _apply_binary(self, op: Any, **defaults: Any) -> Expression:
        if self.sign == "@":
            raise TypeError(
                f"Bad type for argument `op` in `x @ y`.\n    - Expected type: Semiring.\n    - Got: {op!r}."
            )
        if defaults:
            raise TypeError(f"unexpected keywords {', '.join(defaults)}. Hint: op(a | b) and op(a & b) take none")
        left, right = self.left, self.right
        found = typed(op, left.dtype, right.dtype)
        return Expression(
            "union" if self.sign == "|" else "intersect", found, left, right, found.return_type, left.shape
        )

    def __repr__(self) -> str:
        return f"{self.left.name} {self.sign} {self.right.name}"

    def __bool__(self) -> bool:
        raise TypeError(f"`{self!r}` has no truth value. Hint: wrap it in an operator, then .new()")


def product(semiring: Any, left: Any, right: Any) -> Expression:
    """`x @ A` or `A @ x`. The expression keeps operand order; `option` is True when x is the left operand."""
    found = typed(semiring, left.dtype, right.dtype)
    flip = len(left.shape) == 1
    return Expression(
        "product", found, left, right, found.return_type, (right.shape[1],) if flip else (left.shape[0],), flip
    )


class Handle:
    """What Vector and Matrix share: a name, a session, a type and a shape; masks, calls and `<<`."""

    __slots__ = ("_session", "_store", "_name", "dtype", "shape", "__weakref__")
    __array_ufunc__ = None
    __array_priority__ = 1000
    __hash__ = object.__hash__
    ndim = 0

    def __init__(self, dtype: Any, shape: tuple, name: str | None):
        self._session = settings.session()
        self.dtype = lookup_dtype(dtype)
        self.shape = shape
        self._name = name
        self._store: Any = None

    @property
    def name(self) -> str:
        """The given name, or one made up at the first need."""
        if self._name is None:
            self._name = f"{type(self).__name__[0].lower()}_{next(_names)}"
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    @property
    def S(self) -> Mask:
        """Structural mask: the entries that are present."""
        return Mask(self, True)

    @property
    def V(self) -> Mask:
        """Value mask: the entries that are present and true."""
        return Mask(self, False)

    def __invert__(self) -> Mask:
        return ~_checked_mask(self, self)

    def __call__(self, *arguments: Any, **keywords: Any) -> Updater:
        return Updater(self, arguments, keywords)

    def __lshift__(self, expr: Any) -> Statement:
        return self._session.run(Statement(self, None, None, False, self._checked_source(expr, None), None, {}))

    def update(self, expr: Any) -> Statement:
        """`self << expr`."""
        return self << expr

    def __or__(self, other: Any) -> Infix:
        return Infix("|", self, self._same_shape(other, "|"))

    def __and__(self, other: Any) -> Infix:
        return Infix("&", self, self._same_shape(other, "&"))

    def _same_shape(self, other: Any, sign: str) -> Any:
        if not isinstance(other, (Handle, Transposed)) or len(other.shape) != len(self.shape):
            raise TypeError(message(f"a {type(self).__name__} on both sides of {sign}", type(other).__name__))
        if other.shape != self.shape:
            raise DimensionMismatch(message(f"equal shapes on both sides of {sign}", f"{self.shape} and {other.shape}"))
        return other

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Expression:
        """Each value through a unary operator, an index-unary one (thunk `right`), or a binary one with a bound
        scalar."""
        found, option = _applied(op, self.dtype, _plain(right), _plain(left))
        return Expression("apply", found, self, None, found.return_type, self.shape, option)

    def select(self, op: Any, thunk: Any = None) -> Expression:
        """The entries for which op(value, row, column, thunk) is true. `op`: a select operator, a string such as ">=",
        or a function."""
        found, option = _selected(op, self.dtype, _plain(thunk))
        return Expression("select", found, self, None, self.dtype, self.shape, option)

    def _apply_unary(self, op: Any, right: Any = None, *, left: Any = None) -> Expression:
        return self.apply(op, right, left=left)

    def _apply_select(self, op: Any, thunk: Any = None) -> Expression:
        return self.select(op, thunk)

    def _apply_binary(self, op: Any, right: Any = None, *, left: Any = None) -> Expression:
        return self.apply(op, right, left=left)

    def dup(self, dtype: Any = None, *, clear: bool = False, name: str | None = None) -> Any:
        """A copy (of `dtype`, of shape only if `clear`)."""
        copy = _new(self.shape, self.dtype if dtype is None else lookup_dtype(dtype), name)
        if not clear:
            copy << self
        return copy

    @property
    def nvals(self) -> int:
        """Number of entries present. Reads from the devices if the host does not know."""
        return self._session.nvals(self)

    @property
    def is_empty(self) -> bool:
        return self.nvals == 0

    def __bool__(self) -> bool:
        raise TypeError(f"__bool__ not defined for {type(self).__name__}. Hint: perhaps use .nvals")

    def __eq__(self, other: Any) -> Any:
        raise TypeError(f"== not defined for {type(self).__name__}. Hint: x.isequal(y), or binary.eq(x & y)")

    def __len__(self) -> int:
        raise TypeError(f"len() not defined for {type(self).__name__}. Hint: .nvals, .shape")

    def __array__(self, *arguments: Any, **keywords: Any) -> None:
        raise TypeError(
            f"a {type(self).__name__} isn't turned into an array silently. Hint: .to_coo() or .to_dense(fill_value)"
        )

    def __iter__(self) -> Any:
        raise TypeError(f"iteration not defined for {type(self).__name__}. Hint: .to_coo()")

    def _index(self, key: Any) -> Any:
        raise TypeError(f"a part of a {type(self).__name__} can't be assigned to. Hint: build it by from_coo")

    def _checked_source(self, expr: Any, index: Any) -> Expression:
        """The right-hand side as an expression that fits this output (its part `index`, if given)."""
        wanted = self.shape if index is None else (len(index),)
        if isinstance(expr, (_kinds["scalar"], _kinds["element"])):
            expr = expr.value  # type: ignore[attr-defined]
            if expr is None and self.ndim == 0:
                return Expression("fill", None, self, None, self.dtype, (), None)
            if expr is None:  # an empty scalar deletes, as an empty vector does
                expr = _new(wanted, self.dtype, None)
        if isinstance(expr, (Handle, Transposed)):
            expr = Expression("copy", None, expr, None, expr.dtype, expr.shape)
        elif isinstance(expr, Infix):
            raise TypeError(f"`{expr!r}` needs an operator. Hint: semiring({expr!r}) or binary(...)")
        elif not isinstance(expr, Expression):
            return Expression("fill", None, self, None, *_scalar_source(expr, self.shape))
        if expr.shape != wanted:
            raise DimensionMismatch(message(f"a right-hand side of shape {wanted}", f"{expr.shape}"))
        _one_session(expr.left, self._session)
        return expr


def _plain(value: Any) -> Any:
    """A Scalar argument as its value."""
    return value.value if isinstance(value, _kinds["scalar"]) else value  # type: ignore[attr-defined]


def _scalar_source(value: Any, shape: tuple) -> tuple[DataType, tuple, Any]:
    value = _plain(value)
    if not isinstance(value, (bool, int, float, np.generic)):
        raise TypeError(
            message(
                "an expression, a handle or a scalar to assign",
                type(value).__name__,
                "w << semiring(A @ v), w << v, w << 1",
            )
        )
    return of_value(value), shape, value


class Transposed:
    """`A.T`: the same matrix with rows and columns exchanged; nothing moves until a product needs the other
    orientation."""

    __slots__ = ("matrix", "dtype", "shape", "_session")

    def __init__(self, matrix: Handle):
        self.matrix, self.dtype, self._session = matrix, matrix.dtype, matrix._session
        self.shape = matrix.shape[::-1]

    @property
    def name(self) -> str:
        return f"{self.matrix.name}.T"

    @property
    def T(self) -> Handle:
        return self.matrix

    nrows = property(lambda self: self.shape[0])
    ncols = property(lambda self: self.shape[1])
    nvals = property(lambda self: self.matrix.nvals)
    __or__, __and__, _same_shape = Handle.__or__, Handle.__and__, Handle._same_shape
    apply, select = Handle.apply, Handle.select
    _apply_unary, _apply_select, _apply_binary = Handle._apply_unary, Handle._apply_select, Handle._apply_binary

    def __matmul__(self, other: Any) -> Infix:
        return Infix("@", self, _product_operand(self, other))

    def new(self, dtype: Any = None, *, name: str | None = None) -> Any:
        """The transpose as a Matrix of its own."""
        output = _new(self.shape, self.dtype if dtype is None else lookup_dtype(dtype), name)
        output << self
        return output


def _product_operand(left: Any, right: Any) -> Any:
    """The right side of `left @ right`: one of them is a vector, and the inner sizes agree."""
    if isinstance(right, (Handle, Transposed)) and len(right.shape) == len(left.shape) == 2:
        raise NotImplementedException(f"{left.name} @ {right.name}: products of two matrices aren't supported yet")
    if not isinstance(right, (Handle, Transposed)) or len(right.shape) + len(left.shape) != 3:
        raise TypeError(
            message("a matrix and a vector in `x @ A` or `A @ x`", f"{type(left).__name__} @ {type(right).__name__}")
        )
    if left.shape[-1] != right.shape[0]:
        raise DimensionMismatch(
            message(
                f"inner sizes to agree in {left.name} @ {right.name}",
                f"{left.shape} @ {right.shape}",
                "A.T turns a matrix",
            )
        )
    return right
