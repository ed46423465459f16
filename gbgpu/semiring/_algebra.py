"""Monoids and semirings, with python-graphblas's type rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gbgpu.errors import InvalidValue
from gbgpu.semiring import _numpy as numpys
from gbgpu.semiring import _operators as ops
from gbgpu.semiring._by_type import ByType, of_type
from gbgpu.semiring._formulas import BITWISE
from gbgpu.semiring._names import Parameterized, check_free, pickled, registries
from gbgpu.semiring._operators import BinaryOp, Typed, _apply_infix, _dtypes, _refuse
from gbgpu.semiring._types import (
    BOOL,
    FLOATS,
    INT8,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    NUMBERS,
    SUPPORTED,
    UINT16,
    UINT32,
    UINT64,
    UNSIGNED,
    DataType,
    unify,
)


class TypedMonoid:
    """A monoid of one type.

    `binary` is the typed operator; `identity` a NumPy scalar; `start` the exact neutral from which an accumulator may
    start (-0.0 for float plus, NaN for float min and max); `terminal` the value that ends a reduction early, or None;
    `is_idempotent`; `is_any`. `program`, `dtypes` and `return_type` are the binary operator's.
    """

    __slots__ = ("name", "op", "dtype", "binary", "identity", "start", "terminal", "is_idempotent", "is_any")
    kind = "monoid"
    is_commutative = True
    is_positional = False

    def __init__(self, op: Monoid, binary: Typed, identity: object, start: object, terminal: object) -> None:
        number = binary.return_type.np_type.type
        self.name = op.name
        self.op = op
        self.dtype = binary.return_type
        self.binary = binary
        self.identity = number(identity)
        self.start = number(start)
        self.terminal = None if terminal is None else number(terminal)
        self.is_idempotent = op.is_idempotent or (self.dtype is BOOL and op.name == "times")
        self.is_any = op.name == "any"

    @property
    def binaryop(self) -> Typed:
        return self.binary

    @property
    def program(self):
        return self.binary.program

    @property
    def dtypes(self) -> tuple[DataType, ...]:
        return self.binary.dtypes

    @property
    def return_type(self) -> DataType:
        return self.dtype

    @property
    def type(self) -> DataType:
        return self.dtype

    def __repr__(self) -> str:
        return f"monoid.{self.name}[{self.dtype.name}]"

    def __call__(self, x, right=None, *, left=None, **kwargs):
        if right is None and left is None:
            return _apply_infix(self, x, **kwargs)
        return self.binaryop(x, right, left=left, **kwargs)

    @property
    def commutes_to(self):
        return self

    def __reduce__(self):
        return ops._typed, (self.op, self.dtype)


class Monoid(ByType):
    """A commutative, associative binary operator with an identity. `monoid.plus[dtype]`, `monoid.plus(a | b)`."""

    kind = "monoid"
    registry: dict[str, Any] = {}
    is_commutative = True
    is_positional = False
    origin: tuple | None = None

    def __init__(
        self,
        name: str,
        binaryop: BinaryOp,
        identities: object,
        *,
        is_idempotent: bool = False,
        types: tuple[DataType, ...] = SUPPORTED,
        logical: bool = False,
        starts: Callable[[DataType], object] | None = None,
        terminals: Callable[[DataType], object] | None = None,
        checked: bool = True,
    ) -> None:
        self.name = name
        self.binaryop = binaryop
        self.is_idempotent = is_idempotent
        self.is_logical = logical  # works on BOOL only; other types are cast
        self._identities = identities
        self._supported = types
        self._starts = starts
        self._terminals = terminals
        self._checked = checked
        self._typed: dict[object, TypedMonoid] = {}

    __call__ = TypedMonoid.__call__
    commutes_to = TypedMonoid.commutes_to

    def _find(self, key: object) -> TypedMonoid:
        dtype = unify(*_dtypes(key))
        if dtype not in self._supported:
            raise KeyError(f"{self.name} does not work with {dtype.name}")
        dtype = BOOL if self.is_logical else dtype
        typed = self._typed.get(dtype) or self._typed.setdefault(dtype, self._make(dtype))
        self._typed[key] = typed
        return typed

    def _make(self, dtype: DataType) -> TypedMonoid:
        binary = self.binaryop[dtype]
        if binary.return_type is not dtype:
            raise KeyError(f"{self.name} does not work with {dtype.name}: {binary!r} returns {binary.return_type.name}")
        identity = self._identity(dtype)
        start = identity if self._starts is None else self._starts(dtype)
        terminal = None if self._terminals is None else self._terminals(dtype)
        typed = TypedMonoid(self, binary, identity, identity if start is None else start, terminal)
        if self._checked:
            _check_laws(typed)
        return typed

    def _identity(self, dtype: DataType) -> object:
        known = self._identities
        if callable(known):
            known = known(dtype)
        if isinstance(known, Mapping):
            found = [value for key, value in known.items() if dtype == key]
            if not found:
                raise KeyError(f"{self.name} does not work with {dtype.name}: no identity is given for it")
            known = found[0]
        with np.errstate(all="ignore"):
            exact = _fits(known, dtype)
        if not exact:
            raise KeyError(f"{self.name} does not work with {dtype.name}: its identity {known!r} does not fit")
        return known

    @property
    def identities(self) -> dict[DataType, Any]:
        return {dtype: self[dtype].identity for dtype in SUPPORTED if dtype in self}

    def __reduce__(self):
        return pickled(self) or (Monoid.register_anonymous, (self.binaryop, self._identities, self.name))

    @classmethod
    def register_new(
        cls, name: str, binaryop: Any, identity: object, *, is_idempotent: bool = False, lazy: bool = False
    ) -> Any:
        """Make a monoid and add it to the namespace; arguments and errors as `register_anonymous`.

        `lazy`: returns None. Raises AttributeError if the name is in use.
        """
        check_free(cls.registry, name, "monoid")
        made = cls.register_anonymous(binaryop, identity, name, is_idempotent=is_idempotent)
        cls.registry[name] = made
        return None if lazy else made

    @classmethod
    def register_anonymous(
        cls, binaryop: Any, identity: object, name: str | None = None, *, is_idempotent: bool = False
    ) -> Any:
        """Make a monoid of a binary operator and its identity, in no namespace.

        Parameters
        ----------
        binaryop : BinaryOp
            Commutative and associative. If it has parameters, the monoid has the same ones.
        identity : scalar, dict or callable
            One for all types; one per type, {"INT64": 0, "FP64": 0.0}; or a function of the parameters.
        name : str, optional
            By default that of the operator.
        is_idempotent : bool
            Whether f(x, x) == x.

        Returns
        -------
        Monoid
            The new one.

        Raises
        ------
        TypeError
            If `binaryop` is none.
        InvalidValue
            At the first use of a type, if a spot check on a few small values finds a counterexample to the laws.
        """
        if isinstance(binaryop, Parameterized) and binaryop.kind == "binary":
            return _parameterized_monoid(binaryop, identity, name or binaryop.name, is_idempotent)
        if not isinstance(binaryop, BinaryOp):
            raise TypeError(f"binaryop must be a BinaryOp, not {type(binaryop).__name__}")
        made = cls(name or binaryop.name, binaryop, identity, is_idempotent=is_idempotent)
        if binaryop.monoid is None:
            binaryop.monoid = made
        return made


def _parameterized_monoid(binaryop: Parameterized, identity: object, name: str, is_idempotent: bool) -> Parameterized:
    def make(*args, **kwargs):
        value = identity(*args, **kwargs) if callable(identity) else identity
        return Monoid.register_anonymous(binaryop(*args, **kwargs), value, name, is_idempotent=is_idempotent)

    return Parameterized("monoid", name, make, (Monoid.register_anonymous, (binaryop, identity, name)))


def _fits(value: object, dtype: DataType) -> bool:
    if dtype.kind == "b":
        return value in (0, 1)
    if dtype.kind == "f":
        return True
    info = np.iinfo(dtype.np_type)
    return value == value and info.min <= value <= info.max and int(value) == value  # type: ignore[call-overload, operator]


def _check_laws(monoid: TypedMonoid) -> None:
    from gbgpu.semiring._lower import to_python

    f, values, number = to_python(monoid.program), ops.samples(monoid.dtype), monoid.dtype.np_type.type
    for x in map(number, values):
        _law(monoid, f"f(identity, {x}) == {x}", f(monoid.identity, x), x)
        if monoid.is_idempotent:
            _law(monoid, f"f({x}, {x}) == {x}", f(x, x), x)
        for y in map(number, values):
            _law(monoid, f"f({x}, {y}) == f({y}, {x})", f(x, y), f(y, x))
            for z in map(number, values):
                _law(monoid, f"f(f({x}, {y}), {z}) == f({x}, f({y}, {z}))", f(f(x, y), z), f(x, f(y, z)))


def _law(monoid: TypedMonoid, law: str, left, right) -> None:
    close = monoid.dtype.kind == "f" and bool(np.isclose(left, right, rtol=1e-5, atol=0, equal_nan=True))
    if not (left == right or close):
        raise InvalidValue(f"{monoid!r} is not a monoid as declared: {law} fails, {left} against {right}")


class TypedSemiring:
    """A semiring for fixed input types: `monoid` (typed), `multiply` (typed binary operator), `return_type`."""

    __slots__ = ("name", "op", "monoid", "multiply", "return_type")
    kind = "semiring"

    def __init__(self, op: Semiring, monoid: TypedMonoid, multiply: Typed) -> None:
        self.name = op.name
        self.op = op
        self.monoid = monoid
        self.multiply = multiply
        self.return_type = monoid.dtype

    @property
    def binaryop(self) -> Typed:
        return self.multiply

    @property
    def dtypes(self) -> tuple[DataType, ...]:
        return self.multiply.dtypes

    @property
    def type(self) -> DataType:
        return self.multiply.dtypes[0]

    def __repr__(self) -> str:
        first, second = self.multiply.dtypes
        return f"{self.name}[{first.name}]" if first is second else f"{self.name}[{first.name}, {second.name}]"

    def __call__(self, expr):
        try:
            apply = expr._apply_semiring
        except AttributeError:
            raise _refuse(self, expr, f"an infix expression: {self!r}(A @ B)") from None
        return apply(self)

    @property
    def commutes_to(self):
        found = self.op.commutes_to
        return None if found is None else of_type(found, self.multiply.dtypes[0])

    def __reduce__(self):
        return ops._typed, (self.op, self.multiply.dtypes)


class Semiring(ByType):
    """A monoid and a multiplying binary operator. `min_plus(q @ A)`, `min_plus[dtype]`, `min_plus[dtype1, dtype2]`."""

    kind = "semiring"
    registry: dict[str, Any] = {}
    origin: tuple | None = None

    def __init__(self, name: str, monoid: Monoid, binaryop: BinaryOp) -> None:
        self.name = name
        self.monoid = monoid
        self.binaryop = binaryop
        self._typed: dict[object, TypedSemiring] = {}

    __call__ = TypedSemiring.__call__

    @property
    def is_positional(self) -> bool:
        return self.binaryop.is_positional

    @property
    def is_commutative(self) -> bool:
        return self.binaryop.is_commutative

    @property
    def commutes_to(self):
        """The semiring that gives (B.T @ A.T).T, of which `self` gives A @ B; None if it has no name."""
        turned = _TURNED.get(self.binaryop.name)
        binaryop = self.binaryop.commutes_to if turned is None else BinaryOp.registry[turned]
        if binaryop is None or binaryop is self.binaryop:
            return binaryop and self
        return get_semiring(self.monoid, binaryop)

    def _find(self, key: object) -> TypedSemiring:
        # As with the operator itself: named by two types, `pair` counts in INT64.
        two = type(key) is tuple
        dtype = INT64 if two and self.binaryop.name == "pair" and not self.monoid.is_logical else unify(*_dtypes(key))
        typed = self._typed.get(dtype) or self._typed.setdefault(dtype, self._make(dtype))
        self._typed[key] = typed
        return typed

    def _make(self, dtype: DataType) -> TypedSemiring:
        multiply = self._multiply(dtype)
        monoid = None if multiply is None else of_type(self.monoid, multiply.return_type)
        if multiply is None or monoid is None:
            raise KeyError(f"{self.name} does not work with {dtype.name}")
        return TypedSemiring(self, monoid, multiply)

    def _multiply(self, dtype: DataType) -> Typed | None:
        """The typed multiply operator for inputs of `dtype`, or None: python-graphblas's table as rules."""
        if {self.monoid.name, self.binaryop.name} <= set(BITWISE):
            dtype = _UNSIGNED.get(dtype, dtype)
        multiply, monoid = of_type(self.binaryop, dtype), self.monoid
        if multiply is None:
            return None
        if monoid.is_logical:
            if multiply.return_type is BOOL:
                return multiply
            return self.binaryop[BOOL] if multiply.name in _TO_BOOL else None
        if dtype is BOOL and multiply.name == "pair" and monoid.name != "any":
            return _count_pair()
        if multiply.return_type is not BOOL or monoid.name not in _WITH_TABLE or multiply.name not in _IN_TABLE:
            return multiply
        if monoid.name == "any":
            return None if multiply.name in _ARITHMETIC else multiply
        return multiply if dtype is BOOL and multiply.name in _BOOL_WITH.get(monoid.name, ()) else None

    def __reduce__(self):
        return pickled(self) or (Semiring.register_anonymous, (self.monoid, self.binaryop, self.name))

    @classmethod
    def register_new(cls, name: str, monoid: Any, binaryop: Any, *, lazy: bool = False) -> Any:
        """Make a semiring and add it to the namespace; arguments and errors as `register_anonymous`.

        `lazy`: returns None. Raises AttributeError if the name is in use.
        """
        check_free(cls.registry, name, "semiring")
        made = cls.register_anonymous(monoid, binaryop, name)
        cls.registry[name] = made
        return None if lazy else made

    @classmethod
    def register_anonymous(cls, monoid: Any, binaryop: Any, name: str | None = None) -> Any:
        """Make a semiring of a monoid and a binary operator, in no namespace.

        Parameters
        ----------
        monoid : Monoid
            The addition.
        binaryop : BinaryOp
            The multiplication.
        name : str, optional
            By default the two names, joined by "_".

        Returns
        -------
        Semiring
            The new one, with the parameters that its parts have.

        Raises
        ------
        TypeError
            If a part is something else.
        """
        parameterized = isinstance(monoid, Parameterized) or isinstance(binaryop, Parameterized)
        for part, kind in ((monoid, Monoid), (binaryop, BinaryOp)):
            if not isinstance(part, kind) and not (isinstance(part, Parameterized) and part.kind == kind.kind):
                raise TypeError(f"{kind.kind} must be a {kind.__name__}, not {type(part).__name__}")
        name = name or f"{monoid.name}_{binaryop.name}"
        return _parameterized_semiring(monoid, binaryop, name) if parameterized else cls(name, monoid, binaryop)


def _parameterized_semiring(monoid: Any, binaryop: Any, name: str) -> Parameterized:
    def make(*args, **kwargs):
        first, second = (p(*args, **kwargs) if isinstance(p, Parameterized) else p for p in (monoid, binaryop))
        return Semiring.register_anonymous(first, second, name)

    return Parameterized("semiring", name, make, (Semiring.register_anonymous, (monoid, binaryop, name)))


# Positional operators in the product of the transposes, where i of a row is j of a column.
_TURNED = {f"first{i}{one}": f"second{j}{one}" for i, j in ("ij", "ji") for one in ("", "1")}
_TURNED |= {own: name for name, own in _TURNED.items()}
# The types in which semirings of bitwise operators compute for signed inputs.
_UNSIGNED = {INT8: UINT16, INT16: UINT32, INT32: UINT64, INT64: UINT64}
# Multiplications that a logical monoid applies to its inputs as BOOL.
_TO_BOOL = {"first", "second", "pair", "land", "lor", "lxor", "lxnor"}
# With BOOL inputs these have no semiring, except under a logical monoid.
_ARITHMETIC = {"plus", "minus", "rminus", "times", "min", "max", "cdiv", "rdiv", "absfirst", "abssecond"}
_ARITHMETIC |= {"iseq", "isne", "islt", "isle", "isgt", "isge"}
# SuiteSparse makes semirings of BOOL of these parts, not all; of others, and under NumPy's monoids, any is made.
_WITH_TABLE = {"any", "plus", "times", "min", "max"}
_IN_TABLE = _ARITHMETIC | {"first", "second", "pair", "land", "lor", "lxor"}
_BOOL_MIN = ("first", "second", "land", "lor", "lxor")
_BOOL_WITH = {"min": _BOOL_MIN, "max": (*_BOOL_MIN, "absfirst", "abssecond"), "times": ("first", "second")}


def _count_pair() -> Typed:
    """The operator pair of BOOL inputs, counted in INT64."""
    from gbgpu.semiring import _scalar as sc

    op = BinaryOp.registry["pair"]
    key = (BOOL, BOOL, INT64)
    if key not in op._made:
        program = sc.trace(lambda x, y: sc.Sym(sc.constant(1, INT64)), [("x", BOOL), ("y", BOOL)])
        op._made.setdefault(key, Typed(op, (BOOL, BOOL), program))
    return op._made[key]


# --- built-in monoids ------------------------------------------------------------------------------------------------


def _lowest(dtype: DataType) -> object:
    if dtype.kind == "f":
        return -np.inf
    return False if dtype is BOOL else np.iinfo(dtype.np_type).min


def _highest(dtype: DataType) -> object:
    if dtype.kind == "f":
        return np.inf
    return True if dtype is BOOL else np.iinfo(dtype.np_type).max


def _for_float(value: float) -> Callable[[DataType], object]:
    """A start that differs from the identity for floats only."""
    return lambda dtype: value if dtype.kind == "f" else None


def _for_exact(value: object) -> Callable[[DataType], object]:
    """A terminal that holds for integers and BOOL only: a float NaN or -0.0 could still come."""
    return lambda dtype: None if dtype.kind == "f" else value


def _always(value: object) -> Callable[[DataType], object]:
    return lambda dtype: value


def _add(name: str, identities: object, **kwargs) -> None:
    binary = BinaryOp.registry[name]
    made = Monoid(name, binary, identities, checked=False, **kwargs)
    Monoid.registry[name] = binary.monoid = made


def _fill() -> None:
    nan, numbers = float("nan"), NUMBERS
    _add("plus", 0, types=numbers, starts=_for_float(-0.0))
    _add("times", 1, terminals=_for_exact(0))
    _add("min", _highest, is_idempotent=True, starts=_for_float(nan), terminals=_lowest)
    _add("max", _lowest, is_idempotent=True, starts=_for_float(nan), terminals=_highest)
    _add("any", 0, is_idempotent=True)
    _add("band", _highest, types=UNSIGNED, is_idempotent=True, terminals=_always(0))
    _add("bor", 0, types=UNSIGNED, is_idempotent=True, terminals=_highest)
    _add("bxor", 0, types=UNSIGNED)
    _add("bxnor", _highest, types=UNSIGNED)
    _add("land", True, is_idempotent=True, logical=True, terminals=_always(False))
    _add("lor", False, is_idempotent=True, logical=True, terminals=_always(True))
    _add("lxor", False, logical=True)
    _add("lxnor", True, logical=True)
    _add("eq", True, types=(BOOL,), logical=True)
    _fill_numpy()


def _fill_numpy() -> None:
    """np.maximum and np.minimum let NaN win, so that a float extreme ends nothing."""
    _add("numpy.maximum", _lowest, is_idempotent=True, terminals=lambda t: None if t.kind == "f" else _highest(t))
    _add("numpy.minimum", _highest, is_idempotent=True, terminals=lambda t: None if t.kind == "f" else _lowest(t))
    _add("numpy.gcd", 0, types=INTEGERS, is_idempotent=True, terminals=_always(1))
    _add("numpy.hypot", 0.0, types=FLOATS)
    _add("numpy.logaddexp", -np.inf, types=FLOATS)
    _add("numpy.logaddexp2", -np.inf, types=FLOATS)
    Monoid.registry.update({f"numpy.{name}": Monoid.registry[own] for name, own in numpys.MONOID_NAMES.items()})


_fill()


# --- names -----------------------------------------------------------------------------------------------------------


def find_semiring(name: str) -> Any:
    """The registered semiring of this name, or `<monoid>_<binary>` composed once and kept; None if neither exists."""
    found = Semiring.registry.get(name)
    return found if found is not None else _compose(name)


def _compose(name: str) -> Semiring | None:
    prefix, _, base = name.rpartition(".") if name.startswith(("numpy.", "ss.")) else ("", "", name)
    for cut in (i for i, letter in enumerate(base) if letter in "_."):
        monoid = _part(Monoid, prefix, base[:cut])
        binary = _part(BinaryOp, prefix, base[cut + 1 :])
        if monoid is not None and binary is not None:
            own = Semiring.registry.setdefault(
                _canonical(monoid, binary), Semiring(_canonical(monoid, binary), monoid, binary)
            )
            return Semiring.registry.setdefault(name, own)
    return None


def _part(cls: Any, prefix: str, name: str) -> Any:
    found = cls.registry.get(f"{prefix}.{name}") or cls.registry.get(name)
    return found if isinstance(found, cls) else None


def _canonical(monoid: Monoid, binary: BinaryOp) -> str:
    """The name under which a semiring is kept: "plus_times", "numpy.plus_gcd"."""
    names = [name.rpartition(".") for name in (monoid.name, binary.name)]
    prefix = names[0][0] or names[1][0]
    return f"{prefix}.{names[0][2]}_{names[1][2]}" if prefix else f"{names[0][2]}_{names[1][2]}"


def semiring_names() -> list[str]:
    """Every semiring that has a name."""
    names = set(Semiring.registry)
    for prefix in ("", "numpy.", "ss."):
        monoids = _SUMS if prefix == "ss." else _plain(Monoid, prefix)
        names |= {f"{prefix}{monoid}_{binary}" for monoid in monoids for binary in _plain(BinaryOp, prefix)}
    return sorted(names)


_SUMS = ("any", "max", "min", "plus", "times")


def _plain(cls: Any, prefix: str) -> list[str]:
    """Names below a prefix without further dots."""
    start = len(prefix)
    found = (name[start:] for name, op in cls.registry.items() if name.startswith(prefix) and isinstance(op, cls))
    return [name for name in found if "." not in name]


def get_semiring(monoid: Any, binaryop: Any, name: str | None = None) -> Any:
    """The semiring of a monoid and a binary operator.

    It is made once for those that have names, and typed if one of them is.

    Parameters
    ----------
    monoid : Monoid or BinaryOp
        The addition; a binary operator stands for its monoid.
    binaryop : BinaryOp or Monoid
        The multiplication; a monoid stands for its operator.
    name : str, optional
        Makes another semiring of this name.

    Returns
    -------
    Semiring
        Found or new.

    Raises
    ------
    TypeError
        If an argument is something else.
    """
    dtype = next((part.dtypes[0] for part in (binaryop, monoid) if hasattr(part, "op")), None)
    first, second = (getattr(part, "op", part) for part in (monoid, binaryop))
    first = first.monoid if isinstance(first, BinaryOp) and first.monoid is not None else first
    second = second.binaryop if isinstance(second, Monoid) else second
    if not isinstance(first, Monoid) or not isinstance(second, BinaryOp):
        raise TypeError(f"expected a Monoid and a BinaryOp; came {monoid!r} and {binaryop!r}")
    named = Monoid.registry.get(first.name) is first and BinaryOp.registry.get(second.name) is second
    found = find_semiring(_canonical(first, second)) if named and name is None else None
    found = found or Semiring.register_anonymous(first, second, name)
    return found if dtype is None else found[dtype]


registries.update(monoid=Monoid.registry.get, semiring=find_semiring, parts=get_semiring)
__all__ = ["Monoid", "Semiring", "TypedMonoid", "TypedSemiring", "find_semiring", "get_semiring"]
