"""Operators: untyped named objects, and typed ones looked up with `op[dtype]` or `op[dtype1, dtype2]`.

Names, type rules and results are python-graphblas's and SuiteSparse's. A call (`binary.plus(a | b)`) asks the object it
is given to apply the operator; this module knows nothing of matrices and vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gbgpu.errors import checked_text
from gbgpu.semiring import _formulas as formulas
from gbgpu.semiring import _numpy as numpys
from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._by_type import ByType
from gbgpu.semiring._functions import from_function
from gbgpu.semiring._names import Parameterized, check_free, pickled, refuse_user_types, registries
from gbgpu.semiring._scalar import Program
from gbgpu.semiring._types import (
    BOOL,
    FLOATS,
    INT32,
    INT64,
    INTEGERS,
    SUPPORTED,
    DataType,
    lookup_dtype,
    unify,
)


class Typed:
    """An operator for fixed input types, as of `op[dtype]` or `op[dtype1, dtype2]`.

    It hashes by identity; `program.key` tells equal formulas.

    Attributes
    ----------
    name : str
        "plus".
    op : Operator
        The untyped operator.
    dtypes : tuple of DataType
        The input types.
    return_type : DataType
        The type of the result.
    program : Program
        The scalar program.
    """

    __slots__ = ("name", "op", "dtypes", "return_type", "program")

    def __init__(self, op: Operator, dtypes: tuple[DataType, ...], program: Program) -> None:
        self.name = op.name
        self.op = op
        self.dtypes = dtypes
        self.return_type = program.result
        self.program = program

    @property
    def type(self) -> DataType:
        """The type of the first input."""
        return self.dtypes[0]

    @property
    def type2(self) -> DataType:
        """The type of the last input."""
        return self.dtypes[-1]

    @property
    def thunk_type(self) -> DataType:
        """The type of the thunk."""
        return self.dtypes[-1]

    @property
    def is_positional(self) -> bool:
        """Whether it computes with positions, not values."""
        return self.op.is_positional

    @property
    def is_commutative(self) -> bool:
        """Whether f(x, y) == f(y, x)."""
        return self.op.is_commutative

    @property
    def commutes_to(self):
        """The typed operator g of f(x, y) == g(y, x), or None."""
        found = self.op.commutes_to
        return found[self.dtypes[0]] if found is not None and self.dtypes[0] in found else None

    @property
    def monoid(self):
        """The typed monoid of a binary operator, or None."""
        monoid = self.op.monoid
        return monoid[self.dtypes[0]] if monoid is not None and self.dtypes[0] in monoid else None

    def __repr__(self) -> str:
        first, second = self.dtypes[0].name, self.dtypes[-1].name
        types = first if first == second or self.op.is_positional else f"{first}, {second}"
        return f"{self.op.kind}.{self.name}[{types}]"

    def __call__(self, *args, **kwargs):
        return type(self.op).__call__(self, *args, **kwargs)

    def __reduce__(self):
        return _typed, (self.op, self.dtypes if len(self.dtypes) > 1 else self.dtypes[0])


def _typed(op: Operator, key: object) -> Typed:
    return op[key]


def _parameterized(cls: Any, name: str, func: Callable) -> Parameterized:
    return cls.register_anonymous(func, name, parameterized=True)


class Operator(ByType):
    """What every untyped operator shares: a name, the function of Syms behind it, and the table of typed ones."""

    registry: dict[str, Any]
    is_commutative = False
    commutes_to: Any = None
    monoid: Any = None
    origin: tuple | None = None  # (Parameterized, its arguments) that made this operator

    def __init__(
        self,
        name: str,
        function: Callable,
        *,
        types: tuple[DataType, ...] = SUPPORTED,
        fixed: DataType | None = None,
        positional: bool = False,
        user: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.is_positional = positional
        self._supported = types
        self._fixed = fixed  # inputs are cast to this type whatever they are
        self._user = user
        self._typed: dict[object, Typed] = {}
        self._made: dict[tuple[DataType, ...], Typed] = {}  # one object for each tuple of input types

    def __reduce__(self):
        found = pickled(self)
        return found or (type(self).register_anonymous, (self.function, self.name))

    @classmethod
    def register_new(
        cls, name: str, func: Callable, *, parameterized: bool = False, is_udt: bool = False, lazy: bool = False
    ):
        """Make an operator of a plain Python scalar function and add it to the namespace.

        Parameters
        ----------
        name : str
            Dots make parts of the namespace: "mine.near" is `binary.mine.near`.
        func : callable
            The function of scalars. With `parameterized` it takes parameters and returns this function.
        parameterized : bool
            Whether the operator has parameters.
        is_udt : bool
            Refused if True: there are no types made by users.
        lazy : bool
            Whether to return None.

        Returns
        -------
        operator
            The new one.

        Raises
        ------
        AttributeError
            If the name is in use.
        UdfParseError
            At the first use with a type, if the function is outside the language of user functions; with the line.
        """
        check_free(cls.registry, name, cls.kind)
        op = cls.register_anonymous(func, name, parameterized=parameterized, is_udt=is_udt)
        cls.registry[name] = op
        return None if lazy else op

    @classmethod
    def register_anonymous(
        cls, func: Callable, name: str | None = None, *, parameterized: bool = False, is_udt: bool = False
    ):
        """Make an operator of a plain Python scalar function, in no namespace.

        Parameters
        ----------
        func : callable
            The function of scalars. With `parameterized` it takes parameters and returns this function.
        name : str, optional
            By default that of the function.
        parameterized : bool
            Whether the operator has parameters.
        is_udt : bool
            Refused if True: there are no types made by users.

        Returns
        -------
        operator
            The new one.

        Raises
        ------
        TypeError
            If `func` is no function.
        UdfParseError
            At the first use with a type, if the function is outside the language of user functions; with the line.
        """
        refuse_user_types(is_udt)
        if not callable(func):
            raise TypeError(f"expected a Python function; came {func!r}")
        name = name or str(getattr(func, "__name__", "anonymous"))
        if parameterized:
            parts = (_parameterized, (cls, name, func))
            return Parameterized(cls.kind, name, lambda *a, **k: cls.register_anonymous(func(*a, **k), name), parts)
        sc.operands(func, len(cls._user_params))
        return cls(name, func, user=True)

    _user_params: tuple[str, ...] = ()

    def _find(self, key: object) -> Typed:
        dtypes = self._inputs(*_dtypes(key), two=type(key) is tuple)
        typed = self._made.get(dtypes)
        if typed is None:
            typed = self._made.setdefault(dtypes, self._make(dtypes))
        self._typed[key] = typed
        return typed

    def _inputs(self, first: DataType, second: DataType, *, two: bool) -> tuple[DataType, ...]:
        """The types in which it computes for inputs of these types; `two` says that the user named both."""
        raise NotImplementedError

    def _make(self, dtypes: tuple[DataType, ...]) -> Typed:
        raise NotImplementedError

    def _check(self, dtype: DataType) -> DataType:
        if dtype not in self._supported:
            raise KeyError(f"{self.name} does not work with {dtype.name}")
        return dtype

    def _program(self, params: list[tuple[str, DataType]]) -> Program:
        """The program over these parameters; the function is given those whose names it was made for."""
        if self._user:
            return from_function(self.function, params)
        return sc.trace(self.function, params)


def _dtypes(key: object) -> tuple[DataType, DataType]:
    if type(key) is tuple and len(key) == 2:
        return lookup_dtype(key[0]), lookup_dtype(key[1])
    dtype = lookup_dtype(key)
    return dtype, dtype


def _refuse(op: object, came: object, example: str) -> TypeError:
    return TypeError(f"Bad type when calling {op!r}.  Got type: {type(came).__name__}.\nExpected {example}")


def _operand(x: object) -> Any:
    """A number as the Scalar that stands for it, once there are any; anything else as it is."""
    if hasattr(x, "_apply_unary"):
        return x
    make = registries.get("number")
    return make(x) if make is not None and isinstance(x, (bool, int, float, np.number, np.bool_)) else x


class UnaryOp(Operator):
    """The operators z = f(x): `unary.abs(A)` returns an expression."""

    kind = "unary"
    registry: dict[str, Any] = {}
    _user_params = ("x",)

    def _inputs(self, first: DataType, second: DataType, *, two: bool) -> tuple[DataType, ...]:
        return (self._check(first),)

    def _make(self, dtypes: tuple[DataType, ...]) -> Typed:
        if self.is_positional:
            return Typed(self, dtypes, self._positional(dtypes[0]))
        return Typed(self, dtypes, self._program([("x", dtypes[0])]))

    def _positional(self, dtype: DataType) -> Program:
        params = [("x", dtype), ("i", INT64), ("j", INT64)]
        result = dtype if dtype is INT32 else INT64
        return sc.trace(lambda x, i, j: sc.cast(self.function(i, j), result), params)

    def __call__(self, x, **kwargs):
        """The expression of each value of `x` through this operator; see `apply`."""
        apply = getattr(_operand(x), "_apply_unary", None)
        if apply is None:
            raise _refuse(self, x, f"a Matrix, Vector or Scalar: {self!r}(A)")
        return apply(self, **kwargs)


class BinaryOp(Operator):
    """The operators z = f(x, y).

    `binary.plus(a | b)`, `binary.plus(a & b)`, `binary.plus(A, 3)` and `binary.plus(3, A)` return expressions.
    """

    kind = "binary"
    registry: dict[str, Any] = {}
    _user_params = ("x", "y")
    is_monotone = False  # whether a user declared that x <= y gives f(x, a) <= f(y, a)

    def __init__(self, name: str, function: Callable, *, commutative: bool | None = None, **kwargs) -> None:
        super().__init__(name, function, **kwargs)
        self._commutative = commutative
        self.monoid = None  # set by the monoid made of it

    @classmethod
    def register_new(cls, name: str, func: Callable, *, is_monotone: bool = False, **kwargs):
        """Make an operator and add it to the namespace, as the other kinds do; `is_monotone` as below."""
        super().register_new(name, func, **kwargs)
        cls.registry[name].is_monotone = is_monotone
        return None if kwargs.get("lazy") else cls.registry[name]

    @classmethod
    def register_anonymous(cls, func: Callable, name: str | None = None, *, is_monotone: bool = False, **kwargs):
        """Make an operator in no namespace, as the other kinds do.

        `is_monotone` declares that x <= y gives f(x, a) <= f(y, a), in the order of the monoid that it is used with:
        then it may be the product of a `gb.fixpoint`. That is spot-checked at its first use.
        """
        op = super().register_anonymous(func, name, **kwargs)
        op.is_monotone = is_monotone
        return op

    def __reduce__(self):
        made = super().__reduce__()
        return (*made, {"is_monotone": True}) if self.is_monotone else made

    @property
    def is_commutative(self) -> bool:  # type: ignore[override]
        """Whether f(x, y) == f(y, x); a user's function is spot-checked."""
        if self._commutative is None:
            self._commutative = not any(self[dtype].program and not commutes(self[dtype]) for dtype in self.types)
        return self._commutative

    @property
    def commutes_to(self):
        """The operator g of f(x, y) == g(y, x): itself, another of a name, or None."""
        if self.is_commutative:
            return self
        name = _COMMUTES.get(self.name)
        return None if name is None or self.registry.get(self.name) is not self else self.registry[name]

    def _inputs(self, first: DataType, second: DataType, *, two: bool) -> tuple[DataType, ...]:
        # With two types `pair` computes in INT64, whatever they are: counts must not overflow.
        dtype = INT64 if two and self.name == "pair" else unify(first, second)
        dtype = self._fixed or self._check(dtype)
        return dtype, dtype

    def _make(self, dtypes: tuple[DataType, ...]) -> Typed:
        if self.is_positional:
            return Typed(self, dtypes, self._positional(dtypes[0]))
        return Typed(self, dtypes, self._program(list(zip(("x", "y"), dtypes, strict=True))))

    def _positional(self, dtype: DataType) -> Program:
        params = [("x", dtype), ("y", dtype), ("i", INT64), ("k", INT64), ("j", INT64)]
        result = dtype if dtype is INT32 else INT64
        return sc.trace(lambda x, y, i, k, j: sc.cast(self.function(i, k, j), result), params)

    def __call__(self, x, right=None, *, left=None, **kwargs):
        """The expression of this operator on `a | b` or `a & b`, or on an object and a scalar.

        Parameters
        ----------
        x : infix expression, Matrix, Vector or scalar
            `a | b` (union), `a & b` (intersection), or the left operand.
        right, left : scalar, Matrix or Vector, optional
            The other operand.
        **kwargs : scalar
            `left_default` and `right_default`, for `a | b`.

        Returns
        -------
        Expression
            To be assigned by `<<`, or computed by `.new()`.

        Raises
        ------
        TypeError
            If operands are others.
        """
        if right is None and left is None:
            return _apply_infix(self, x, **kwargs)
        if hasattr(x, "_apply_unary"):
            bound = {"left": left} if right is None else {"right": right}
            return x._apply_unary(self, **bound, **kwargs)
        if hasattr(right, "_apply_unary"):
            return right._apply_unary(self, left=x, **kwargs)
        if hasattr(number := _operand(x), "_apply_unary"):
            return self(number, right, left=left, **kwargs)
        raise _refuse(self, x, f"a Matrix or Vector and a scalar: {self!r}(A, 1) or {self!r}(1, A)")


_SWAPPED = {"first": "second", "ge": "le", "gt": "lt", "isge": "isle", "isgt": "islt", "absfirst": "abssecond"}
_SWAPPED |= {"minus": "rminus", "cdiv": "rdiv", "truediv": "rtruediv", "floordiv": "rfloordiv", "pow": "rpow"}
_SWAPPED |= {f"first{place}": f"second{place}" for place in ("i", "i1", "j", "j1")}
_COMMUTES = _SWAPPED | {name: own for own, name in _SWAPPED.items()}


def _apply_infix(op: object, x: object, **kwargs):
    """op(a | b) and op(a & b), for binary operators and monoids."""
    apply = getattr(x, "_apply_binary", None)
    if apply is None:
        raise _refuse(op, x, f"an infix expression or a scalar beside it: {op!r}(A | B), {op!r}(A & B), {op!r}(A, 1)")
    return apply(op, **kwargs)


class IndexUnaryOp(Operator):
    """The operators z = f(x, i, j, t) of value, row, column, thunk: `indexunary.rowindex(A)` returns an expression."""

    kind = "indexunary"
    registry: dict[str, Any] = {}
    _user_params = ("x", "i", "j", "t")

    @classmethod
    def register_new(
        cls, name: str, func: Callable, *, parameterized: bool = False, is_udt: bool = False, lazy: bool = False
    ):
        """Make an operator and add it to the namespace, as the other kinds do.

        One that gives BOOL for every type becomes a select operator too.
        """
        super().register_new(name, func, parameterized=parameterized, is_udt=is_udt, lazy=lazy)
        op = cls.registry[name]
        selects = cls is IndexUnaryOp and not parameterized and name not in SelectOp.registry
        if selects and all(found is BOOL for found in op.types.values()):
            SelectOp.registry[name] = SelectOp(name, func, user=True)
        return None if lazy else op

    def _inputs(self, first: DataType, second: DataType, *, two: bool) -> tuple[DataType, ...]:
        if self.is_positional:
            return first, INT64
        dtype = self._check(unify(first, second))
        return dtype, dtype

    def _make(self, dtypes: tuple[DataType, ...]) -> Typed:
        dtype, thunk = dtypes
        return Typed(self, dtypes, self._program([("x", dtype), ("i", INT64), ("j", INT64), ("t", thunk)]))

    def __call__(self, x, thunk=None, **kwargs):
        """The expression of each entry of `x` through this operator; see `apply`."""
        apply = getattr(_operand(x), "_apply_unary", None)
        if apply is None:
            raise _refuse(self, x, f"a Matrix or Vector: {self!r}(A) or {self!r}(A, thunk)")
        return apply(self, **kwargs) if thunk is None else apply(self, right=thunk, **kwargs)


class SelectOp(IndexUnaryOp):
    """The operators that keep the entries where f(x, i, j, t) is true: `select.tril(A, k)` returns an expression."""

    kind = "select"
    registry: dict[str, Any] = {}

    def _make(self, dtypes: tuple[DataType, ...]) -> Typed:
        typed = super()._make(dtypes)
        if typed.return_type is not BOOL:
            raise ValueError(f"SelectOp must have BOOL return type; {self!r} returns {typed.return_type.name}")
        return typed

    def __call__(self, x, thunk=None, **kwargs):
        """The expression of the entries of `x` that this operator keeps; see `select`."""
        apply = getattr(_operand(x), "_apply_select", None)
        if apply is None:
            raise _refuse(self, x, f"a Matrix or Vector: {self!r}(A) or {self!r}(A, thunk)")
        return apply(self, thunk, **kwargs)


# --- the built-in operators ------------------------------------------------------------------------------------------


def _fill() -> None:
    _fill_unary()
    _fill_binary()
    for name, function in formulas.INDEX.items():
        IndexUnaryOp.registry[name] = IndexUnaryOp(name, function, positional=True)
    for cls in (IndexUnaryOp, SelectOp):
        for name, function in formulas.KEEP_POSITIONS.items():
            cls.registry[name] = cls(name, function, positional=True)
        for name, function in formulas.KEEP_VALUES.items():
            cls.registry[name] = cls(name, function)


def _fill_unary() -> None:
    unary = UnaryOp.registry
    _add_all(UnaryOp, formulas.UNARY)
    _add_all(UnaryOp, formulas.FLOAT_TESTS | formulas.FLOAT_PARTS, types=FLOATS)
    _add_all(UnaryOp, formulas.PLACE, positional=True)
    _add_all(UnaryOp, {"bnot": sc.invert}, types=INTEGERS)
    unary.update({f"numpy.{name}": unary[own] for name, own in numpys.UNARY_NAMES.items()})
    _add_all(UnaryOp, {f"numpy.{name}": function for name, function in numpys.UNARY.items()})
    places = ("erf", "erfc", "frexpe", "frexpx", "lgamma", "tgamma", *formulas.PLACE)
    unary.update({f"ss.{name}": unary[name] for name in places})


def _fill_binary() -> None:
    binary = BinaryOp.registry
    _add_all(BinaryOp, formulas.BINARY, commutative=False)
    _add_all(BinaryOp, formulas.COMMUTATIVE, commutative=True)
    _add_all(BinaryOp, formulas.BITS, commutative=False, types=INTEGERS)
    _add_all(BinaryOp, formulas.BITWISE, commutative=True, types=INTEGERS)
    _add_all(BinaryOp, formulas.POSITIONAL, commutative=False, positional=True)
    _add_all(BinaryOp, {"ldexp": formulas.LDEXP}, commutative=False, types=(BOOL, *INTEGERS))
    binary["lxnor"] = BinaryOp("lxnor", sc.eq, commutative=True, fixed=BOOL)
    binary["oneb"] = binary["pair"]
    binary["isclose"] = Parameterized("binary", "isclose", _isclose, ())
    binary.update({f"numpy.{name}": binary[own] for name, own in numpys.BINARY_NAMES.items()})
    for table, commutative in ((numpys.BINARY, False), (numpys.COMMUTATIVE, True)):
        _add_all(BinaryOp, {f"numpy.{name}": formula for name, formula in table.items()}, commutative=commutative)
    whole = {f"numpy.{name}": formula for name, formula in numpys.WHOLE.items()}
    _add_all(BinaryOp, whole, types=(BOOL, *INTEGERS), commutative=False)
    binary["numpy.float_power"] = BinaryOp(
        "numpy.float_power", numpys.float_power(formulas.BINARY["pow"]), commutative=False
    )
    binary.update({f"ss.{name}": binary[name] for name in formulas.POSITIONAL})


def _isclose(rel_tol: float = 1e-7, abs_tol: float = 0.0) -> BinaryOp:
    return BinaryOp("isclose", formulas.isclose(rel_tol, abs_tol), commutative=True)


def _add_all(cls: Any, table: dict[str, Callable], **options: Any) -> None:
    cls.registry.update({name: cls(name, function, **options) for name, function in table.items()})


_fill()


# --- laws ------------------------------------------------------------------------------------------------------------

# Small and not negative: functions meant for counts, distances or sets are checked where they are meant to work.
_SAMPLES = {"b": (False, True), "i": (0, 1, 2, 3, 7), "u": (0, 1, 2, 3, 7), "f": (0.0, 0.5, 1.0, 3.0, 8.0)}


def samples(dtype: DataType) -> tuple:
    return _SAMPLES[dtype.kind]


def commutes(typed: Typed) -> bool:
    """Spot check: f(x, y) == f(y, x) on a few values."""
    from gbgpu.semiring._lower import to_python

    f, values = to_python(typed.program), samples(typed.dtypes[0])
    return all(_equal(f(x, y), f(y, x)) for x in values for y in values)


def _equal(x: object, y: object) -> bool:
    return x == y or (x != x and y != y)


# --- strings and functions as operators ------------------------------------------------------------------------------

_CLASSES: dict[str, Any] = {"unary": UnaryOp, "binary": BinaryOp, "indexunary": IndexUnaryOp, "select": SelectOp}
_PLACES_SIGNS = {"col<=": "colle", "col>": "colgt", "row<=": "rowle", "row>": "rowgt"}
_PLACES_SIGNS |= {"index<=": "indexle", "index>": "indexgt"}
_SIGNS: dict[str, dict[str, str]] = {
    "unary": {"-": "ainv", "~": "lnot"},
    "binary": {
        **{"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "!=": "ne", "==": "eq", "+": "plus", "-": "minus"},
        **{"*": "times", "/": "truediv", "//": "floordiv", "%": "numpy.mod", "**": "pow"},
        **{"&": "land", "|": "lor", "^": "lxor"},
    },
    "indexunary": _PLACES_SIGNS,
    "select": {
        **{"<": "valuelt", ">": "valuegt", "<=": "valuele", ">=": "valuege", "!=": "valuene", "==": "valueeq"},
        **_PLACES_SIGNS,
    },
    "monoid": {"==": "eq", "+": "plus", "*": "times", "&": "land", "|": "lor", "^": "lxor"},
    "semiring": {},
}
_EXAMPLES = {"unary": "abs[int]", "binary": "+[int]", "select": "tril", "monoid": "+[int]", "semiring": "min.+[int]"}
_BUILTIN_FUNCTIONS = {abs: "abs", min: "min", max: "max"}
registries.update({kind: cls.registry.get for kind, cls in _CLASSES.items()})  # _algebra adds monoids and semirings


def from_string(text: str, kind: str):
    """The operator of this kind for "min", "+", "<=", "plus[INT32]". ValueError if there is none."""
    base, bracket, dtype = checked_text(text, f"a {kind} operator").lower().strip().partition("[")
    if bracket and (not dtype.endswith("]") or "[" in dtype) or not bracket and "]" in base:
        raise ValueError(f"Bad {kind} string: {text!r}.  Example usage: {_EXAMPLES.get(kind, 'rowindex')!r}")
    op = _by_name(_SIGNS[kind].get(base, base), kind)
    if op is None:
        raise ValueError(f"Unknown {kind} string: {text!r}.  Example usage: {_EXAMPLES.get(kind, 'rowindex')!r}")
    if isinstance(op, Parameterized):
        op = op()
    return op[dtype[:-1]] if bracket else op


def _by_name(name: str, kind: str):
    """The operator of this name, also without the part of the namespace that it is in."""
    find = registries[kind]
    found = find(name) or find(f"numpy.{name}") or find(f"ss.{name}")
    return _of_parts(name) if found is None and kind == "semiring" else found


def _of_parts(name: str):
    """The semiring of "min.+", "add.multiply": a monoid and a binary operator, each as a string."""
    monoid, dot, binary = name.partition(".")
    return registries["parts"](from_string(monoid, "monoid"), from_string(binary, "binary")) if dot else None


def resolve(thing: object, kind: str):
    """An operator of `kind` ("unary", "binary", "select", "indexunary", "monoid", "semiring") for what a user may pass.

    Operators, typed or not, pass through; strings, `abs` / `min` / `max` and Python functions are looked up or made;
    where a binary operator is wanted a monoid gives its own, where a select operator a comparison gives value*.
    Raises TypeError for anything else, ValueError for an unknown string.
    """
    if isinstance(thing, str):
        thing = from_string(thing, kind)
    if isinstance(thing, Parameterized):
        thing = thing()
    came = thing.op if isinstance(thing, Typed) else thing
    if getattr(came, "kind", None) == kind:
        return thing
    if kind == "binary" and getattr(came, "kind", None) == "monoid":
        return thing.binaryop  # type: ignore[attr-defined]
    if kind == "select" and isinstance(came, BinaryOp):
        return _selector(came.name, thing)
    return _from_callable(thing, kind)


def _selector(name: str, came: object):
    found = SelectOp.registry.get(f"value{name.removeprefix('is')}")
    if found is None:
        raise _wrong(came, "select")
    return found


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_PLACES = {"row": "row", "column": "col", "index": "index"}


def compared(expr: Any, what: str):
    """The select expression of a comparison with a scalar: of "value", "row", "column" or "index".

    `expr` is an apply expression, `A > 3`. Raises TypeError for anything else, ValueError for == and != of a place.
    """
    op = getattr(getattr(expr, "op", None), "op", None)
    name = getattr(op, "name", "").removeprefix("is")
    if getattr(expr, "kind", "") != "apply" or not isinstance(op, BinaryOp) or f"value{name}" not in SelectOp.registry:
        raise TypeError(f"Expected a comparison with a scalar; came {expr!r}\nTypical usage: select.{what}(x <= 5)")
    side, thunk = expr.option
    name = _MIRRORED.get(name, name) if side == "left" else name
    if what == "value":
        return SelectOp.registry[f"value{name}"](expr.left, thunk)
    if name not in _MIRRORED:
        raise ValueError(f"Unknown or unregistered select method: {_PLACES[what]}{name}")
    whole = math.ceil(thunk) - 1 if name in ("lt", "ge") else math.floor(thunk)
    return SelectOp.registry[_PLACES[what] + ("le" if name in ("lt", "le") else "gt")](expr.left, whole)


def _from_callable(thing: object, kind: str):
    if kind in _CLASSES and callable(thing) and not isinstance(thing, (type, Operator, Typed)):
        name = _BUILTIN_FUNCTIONS.get(thing)  # type: ignore[call-overload]
        if name is not None and name in _CLASSES[kind].registry:
            return _CLASSES[kind].registry[name]
        if not hasattr(thing, "kind"):
            return _CLASSES[kind].register_anonymous(thing)
    raise _wrong(thing, kind)


def _wrong(thing: object, kind: str) -> TypeError:
    hint = "; use a monoid, as in monoid.plus" if kind == "monoid" and isinstance(thing, (BinaryOp, Typed)) else ""
    came = f"{thing!r} is a {type(thing).__name__}"
    return TypeError(f"Bad type for argument `op`: {came}.  Expected a {kind} operator{hint}")
