"""Aggregators: reductions by name. Most are a map, a monoid and a map; the others a few statements."""

from collections.abc import Callable
from typing import Any

from ..errors import message
from ..semiring._algebra import Monoid, find_semiring, get_semiring
from ..semiring._operators import BinaryOp, IndexUnaryOp, SelectOp, UnaryOp
from ..semiring._types import BOOL, FP64, INT32, INT64, SUPPORTED, DataType, lookup_dtype, of_value
from .compose import spread_rows
from .expr import Expression, Whole, _kinds, deferred, is_tensor
from .typed import row_reducer

binary, index = BinaryOp.registry, IndexUnaryOp.registry


class Aggregator:
    """A reduction by name: `A.reduce_rowwise(agg.mean)`, `agg.mean(v)`. `agg.mean[dtype]` is a typed one."""

    kind = "aggregator"
    registry: dict[str, "Aggregator"] = {}
    whole = True  # whether a matrix can be reduced to a scalar by it
    places = False  # whether it is in `agg.ss`

    def __init__(self, name: str):
        self.name = name
        self.registry[name] = self

    def return_type(self, dtype: DataType) -> DataType:
        """The type of the result for entries of `dtype`. Raises KeyError if it doesn't work with them."""
        raise NotImplementedError

    def scalar(self, x: Any, allow_empty: bool) -> Expression:
        """The expression of a Scalar of all values."""
        raise NotImplementedError

    def rows(self, A: Any) -> Expression:
        """The expression of a Vector with a value for each row."""
        raise NotImplementedError

    # -- what the handles call

    def reduce(self, x: Any, allow_empty: bool = True) -> Expression:
        """All values of a Vector or Matrix as one Scalar."""
        if x.ndim == 2 and not self.whole:
            hint = "reduce_rowwise, reduce_columnwise"
            raise ValueError(message("an aggregator for Matrix.reduce_scalar", repr(self), hint))
        if not allow_empty and not isinstance(self, _MonoidAggregator):
            raise ValueError(message("a monoid, or an aggregator that is one, for allow_empty=False", repr(self)))
        self.return_type(x.dtype)
        return self.scalar(x, allow_empty)

    def reduce_rows(self, A: Any) -> Expression:
        """The values of each row; rows without entries are absent."""
        self.return_type(A.dtype)
        return self.rows(A)

    def __getitem__(self, dtype: Any) -> "TypedAggregator":
        return TypedAggregator(self, lookup_dtype(dtype))

    def __contains__(self, dtype: Any) -> bool:
        try:
            self.return_type(lookup_dtype(dtype))
        except KeyError:
            return False
        return True

    @property
    def types(self) -> dict[DataType, DataType]:
        """Input type -> result type, for the types it works on."""
        return {dtype: self.return_type(dtype) for dtype in SUPPORTED if dtype in self}

    def __call__(self, x: Any, *, rowwise: bool = False, columnwise: bool = False) -> Expression:
        """x.reduce(self), of a matrix x.reduce_scalar, x.reduce_rowwise or x.reduce_columnwise."""
        return _called(self, x, rowwise, columnwise)

    def __repr__(self) -> str:
        return f"agg.ss.{self.name}" if self.places else f"agg.{self.name}"

    def __reduce__(self) -> Any:
        return _named, (self.name,)


def _named(name: str) -> Aggregator:
    return Aggregator.registry[name]


class TypedAggregator:
    """An aggregator for entries of one type."""

    kind = "aggregator"

    def __init__(self, parent: Aggregator, dtype: DataType):
        self.parent, self.name, self.type = parent, parent.name, dtype
        self.return_type = parent.return_type(dtype)

    def reduce(self, x: Any, allow_empty: bool = True) -> Expression:
        """All values of a Vector or Matrix as one Scalar; see `Aggregator.reduce`."""
        return self.parent.reduce(_cast(x, self.type), allow_empty)

    def reduce_rows(self, A: Any) -> Expression:
        """The values of each row; rows without entries are absent."""
        return self.parent.reduce_rows(_cast(A, self.type))

    def __call__(self, x: Any, *, rowwise: bool = False, columnwise: bool = False) -> Expression:
        """The reduction of a Vector or Matrix; see `Aggregator.__call__`."""
        return _called(self, x, rowwise, columnwise)

    def __repr__(self) -> str:
        return f"{self.parent!r}[{self.type}]"

    def __reduce__(self) -> Any:
        return TypedAggregator, (self.parent, self.type)


def _called(op: Any, x: Any, rowwise: bool, columnwise: bool) -> Expression:
    if not is_tensor(x):
        raise TypeError(
            f"Bad type when calling {op!r}.\n    - Expected type: Vector, Matrix, TransposedMatrix.\n"
            f"    - Got: {type(x)}. Hint: {op!r}(A) is A.reduce_scalar({op!r})"
        )
    if x.ndim == 1:
        if rowwise or columnwise:
            raise ValueError(message("a Matrix for rowwise and columnwise", "a Vector", f"{op!r}(v)"))
        return x.reduce(op)
    if rowwise and columnwise:
        raise ValueError(message("rowwise or columnwise", "both"))
    A: Any = x
    return A.reduce_rowwise(op) if rowwise else A.reduce_columnwise(op) if columnwise else A.reduce_scalar(op)


def _reduced(x: Any, monoid: Any, allow_empty: bool = True) -> Expression:
    """All values of a vector or a matrix by a typed monoid."""
    reduce = x.reduce if x.ndim == 1 else x.reduce_scalar
    return reduce(monoid, allow_empty=allow_empty)


class _MonoidAggregator(Aggregator):
    """One monoid."""

    def __init__(self, name: str, monoid: str):
        super().__init__(name)
        self.monoid = Monoid.registry[monoid]

    def return_type(self, dtype: DataType) -> DataType:
        return self.monoid[dtype].return_type

    def scalar(self, x: Any, allow_empty: bool) -> Expression:
        return _reduced(x, self.monoid[x.dtype], allow_empty)

    def rows(self, A: Any) -> Expression:
        semiring = row_reducer(self.monoid, A.dtype)
        return Expression("reduce_rows", semiring, A, None, semiring.return_type, A.shape[:1])


class _Counter(Aggregator):
    """Entries present, whatever their values, as INT64: their number (plus), or 1 (any)."""

    def __init__(self, name: str, monoid: str):
        super().__init__(name)
        self.monoid = Monoid.registry[monoid]

    def return_type(self, dtype: DataType) -> DataType:
        return INT64

    def scalar(self, x: Any, allow_empty: bool) -> Expression:
        if self.name == "count":
            return Expression("reduce", self.monoid[INT64], x, None, INT64, (), Whole(True, None))
        return deferred(lambda x: _reduced(_ones(x), self.monoid[INT64]), (x,), INT64, (), f"{self!r}({x.name})")

    def rows(self, A: Any) -> Expression:
        semiring = get_semiring(self.monoid, binary["pair"])[INT64]
        return Expression("reduce_rows", semiring, A, None, INT64, A.shape[:1])


def _ones(x: Any) -> Any:
    return x.apply(UnaryOp.registry["one"]).new(INT64)


class _MappedAggregator(Aggregator):
    """op(x, initval) (or op(initval, x)) of each value, combined by plus or max, then `after`.

    Types are those of the semiring's product with a vector of initvals.
    """

    def __init__(self, name: str, semiring: str, initval: Any, side: str = "right", after: str | None = None):
        super().__init__(name)
        self.semiring, self.initval, self.side = find_semiring(semiring), initval, side
        self.after = None if after is None else UnaryOp.registry[after]

    def _typed(self, dtype: DataType) -> Any:
        if dtype is BOOL and "pow" in self.semiring.name:
            raise KeyError(f"{self.name} does not work with BOOL")
        second = of_value(self.initval)
        return self.semiring[(dtype, second) if self.side == "right" else (second, dtype)]

    def return_type(self, dtype: DataType) -> DataType:
        """The type of the result for entries of `dtype`."""
        found = self._typed(dtype).return_type
        return found if self.after is None else self.after[found].return_type

    def _finished(self, x: Any, shape: tuple, reduce: Callable[[Any, Any], Expression]) -> Expression:
        semiring = self._typed(x.dtype)

        def compute(x: Any) -> Any:
            bound = {self.side: self.initval}
            total = reduce(x.apply(semiring.multiply, **bound), semiring.monoid)
            return total if self.after is None else total.apply(self.after)

        return deferred(compute, (x,), self.return_type(x.dtype), shape, f"{self!r}({x.name})")

    def scalar(self, x: Any, allow_empty: bool) -> Expression:
        return self._finished(x, (), _reduced)

    def rows(self, A: Any) -> Expression:
        return self._finished(A, A.shape[:1], lambda mapped, monoid: mapped.reduce_rowwise(monoid))


class _CompositeAggregator(Aggregator):
    """A formula of other aggregators: vectors with the same entries, or scalars.

    Where integers give a float, all of it is computed in that type: a sum of INT8 wraps around after a few entries.
    """

    def __init__(self, name: str, parts: list[str], formula: Callable, result: Callable[[DataType], DataType]):
        super().__init__(name)
        self.parts, self.formula, self._result = [Aggregator.registry[part] for part in parts], formula, result

    def return_type(self, dtype: DataType) -> DataType:
        """The type of the result for entries of `dtype`."""
        for part in self.parts:
            part.return_type(dtype)
        return self._result(dtype)

    def _formed(self, x: Any, shape: tuple, reduce: Callable[[Aggregator, Any], Expression]) -> Expression:
        dtype = self.return_type(x.dtype)

        def compute(x: Any) -> Any:
            values = x.dup(dtype) if x.dtype.kind in "iu" and dtype.kind == "f" else x
            return self.formula(*[reduce(part, values).new() for part in self.parts])

        return deferred(compute, (x,), dtype, shape, f"{self!r}({x.name})")

    def scalar(self, x: Any, allow_empty: bool) -> Expression:
        return self._formed(x, (), lambda part, values: part.scalar(values, True))

    def rows(self, A: Any) -> Expression:
        return self._formed(A, A.shape[:1], lambda part, values: part.rows(values))


def _varp(n: Any, x: Any, squares: Any) -> Any:
    """The variance <x^2> / n - (<x> / n)^2."""
    return squares / n - (x / n) ** 2


def _vars(n: Any, x: Any, squares: Any) -> Any:
    """The sample variance <x^2> / (n - 1) - <x>^2 / (n (n - 1))."""
    less = n - 1
    return binary["minus"](squares / less & x**2 / n / less)


class _PlaceAggregator(Aggregator):
    """Entries chosen by the key of each: the value (min, max), or the column.

    `what`: the chosen entry's value, or its column.
    """

    places = True

    def __init__(self, name: str, key: str, monoid: str, what: str):
        super().__init__(name)
        self.key, self.monoid, self.what = key, Monoid.registry[monoid], what
        self.whole = what == "value"

    def return_type(self, dtype: DataType) -> DataType:
        if self.key == "value":
            self.monoid[dtype]
        keeps = self.what == "value" or (self.key == "value" and dtype is INT32)  # positional operators keep INT32
        return dtype if keeps else INT64

    def scalar(self, x: Any, allow_empty: bool) -> Expression:
        compute, dtype = (self._of_vector if x.ndim == 1 else self._of_matrix), self.return_type(x.dtype)
        return deferred(compute, (x,), dtype, (), f"{self!r}({x.name})")

    def rows(self, A: Any) -> Expression:
        dtype = self.return_type(A.dtype)
        return deferred(self._of_rows, (A,), dtype, A.shape[:1], f"{self!r}({A.name})")

    def _of_vector(self, v: Any) -> Any:
        if self.key == "value":
            best = v.reduce(self.monoid[v.dtype]).new()
            if best.value is None:
                return _kinds["scalar"](INT64)
            equal = v.apply(binary["eq"], best)
            return equal.select(SelectOp.registry["valuene"], 0).apply(index["index"]).reduce("min")
        found = v.apply(index["index"]).reduce(self.monoid[INT64])
        if self.what == "column":
            return found
        place = found.new().value
        return _kinds["scalar"](v.dtype) if place is None else v[place].new()

    def _of_matrix(self, A: Any) -> Any:
        row = A.apply(index["rowindex"]).reduce_scalar(self.monoid[INT64]).new().value
        return _kinds["scalar"](A.dtype) if row is None else self._of_vector(A[row, :].new())

    def _of_rows(self, A: Any) -> Any:
        """The entries whose key is the best of their row; of these the first."""
        columns = A.apply(index["colindex"]).new()
        keys = A._materialized() if self.key == "value" else columns
        best = keys.reduce_rowwise(self.monoid[keys.dtype]).new()
        if self.key == "column" and self.what == "column":
            return best
        equal = keys.ewise_mult(spread_rows(best, keys), "eq").new()
        if self.what == "column":
            return columns.dup(mask=equal.V).reduce_rowwise("min")
        return A.dup(mask=equal.V).reduce_rowwise("any")


def _cast(x: Any, dtype: DataType) -> Any:
    return x if x.dtype is dtype else deferred(lambda x: x.dup(dtype), (x,), dtype, x.shape, x.name)


def _quotient(dtype: DataType) -> DataType:
    return binary["truediv"][dtype].return_type


def _fill() -> None:
    monoids = {"sum": "plus", "prod": "times", "all": "land", "any": "lor", "min": "min", "max": "max"}
    for name, monoid in (monoids | {"any_value": "any", "bitwise_all": "band", "bitwise_any": "bor"}).items():
        _MonoidAggregator(name, monoid)
    _Counter("count", "plus")
    _Counter("exists", "any")
    _MappedAggregator("count_nonzero", "plus_isne", False)
    _MappedAggregator("count_zero", "plus_iseq", False)
    _MappedAggregator("sum_of_squares", "plus_pow", 2)
    _MappedAggregator("sum_of_inverses", "plus_pow", -1.0)
    _MappedAggregator("hypot", "plus_pow", 2, after="sqrt")
    _MappedAggregator("logaddexp", "plus_pow", 2.718281828459045, side="left", after="log")
    _MappedAggregator("logaddexp2", "plus_pow", 2, side="left", after="log2")
    _MappedAggregator("L1norm", "plus_absfirst", False)
    _MappedAggregator("Linfnorm", "max_absfirst", False)
    _fill_composites()
    for name, key, monoid, what in (
        ("argmin", "value", "min", "column"),
        ("argmax", "value", "max", "column"),
        ("first", "column", "min", "value"),
        ("last", "column", "max", "value"),
        ("first_index", "column", "min", "column"),
        ("last_index", "column", "max", "column"),
    ):
        _PlaceAggregator(name, key, monoid, what)
    Aggregator.registry["L0norm"] = Aggregator.registry["count_nonzero"]
    Aggregator.registry["L2norm"] = Aggregator.registry["hypot"]


def _fill_composites() -> None:
    squares = ["count", "sum", "sum_of_squares"]
    _CompositeAggregator("mean", ["count", "sum"], lambda n, x: x / n, _quotient)
    _CompositeAggregator("peak_to_peak", ["max", "min"], lambda high, low: binary["minus"](high & low), _same)
    _CompositeAggregator("varp", squares, _varp, _quotient)
    _CompositeAggregator("vars", squares, _vars, _quotient)
    _CompositeAggregator("stdp", squares, lambda *sums: _root(_varp(*sums)), _quotient)
    _CompositeAggregator("stds", squares, lambda *sums: _root(_vars(*sums)), _quotient)
    _CompositeAggregator("geometric_mean", ["count", "prod"], lambda n, x: x ** (1 / n), _quotient)
    _CompositeAggregator("harmonic_mean", ["count", "sum_of_inverses"], lambda n, x: n / x, lambda dtype: FP64)
    _CompositeAggregator("root_mean_square", ["count", "sum_of_squares"], lambda n, x: _root(x / n), _quotient)


def _same(dtype: DataType) -> DataType:
    return binary["minus"][dtype].return_type


def _root(x: Any) -> Any:
    return x.apply(UnaryOp.registry["sqrt"])


_fill()
_kinds["aggregators"] = Aggregator.registry
