"""Plans: the record of a statement (`Asked`), the frozen list of steps that planners make of it, and what these share.

A plan depends on its planner and on `Asked` alone, and both are the key of its cache: a vector and a matrix without
entries may have equal records. Values are described (`Value`) by what the choice depends on; names are registers that
the runner fills. What varies from run to run without changing the plan is a parameter."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..distribute.rowmap import RowMap
from ..kernels.interface import Spec


class Value(NamedTuple):
    """What a plan knows of a register: its name, form (None: a scalar for all rows; "empty": no content; "csr": a
    matrix by rows), type, whether it is iso, and its row map (None: a scalar that is the result)."""

    name: str
    form: str | None
    dtype: Any
    iso: bool
    map: Any


class Mask(NamedTuple):
    """How a mask's parent is read; `twin`: it is the very vector that is copied, `w(q.S) << q`."""

    structural: bool
    complement: bool
    twin: bool


class Product(NamedTuple):
    """The matrix of a product, the direction chosen, and the maps of its inner and outer index."""

    direction: str
    dense: bool  # a push fills bitmaps, as it reaches many rows
    straight: bool  # a push may combine with what the output has: terms come in any order
    inner: RowMap
    outer: RowMap
    flip: bool  # x @ A
    by: str  # "rows" or "columns" of A: its orientation
    ptr: str
    idx: str
    empty_rows: bool
    heads: RowMap | None = None  # of the delegates, if their rows go apart from the others


class Chain(NamedTuple):
    """`op(inner(x, y), z)`; z is the left operand if `flip`."""

    inner: Any
    side: str
    flip: bool


class Reduced(NamedTuple):
    """How a vector becomes a scalar: its entries count as one each; `over`: on this map first, for a fixed order;
    `known`: it is known what the matrix that has these values was reduced to."""

    counted: bool
    over: RowMap | None
    known: bool = False


class Asked(NamedTuple):
    """A statement on vectors, as a planner sees it."""

    kind: str  # of the expression
    op: Any
    dtype: Any  # of the expression
    detail: Any  # what its kind needs beside: a side, a Chain, Reduced, the map of a result
    output: Value  # form None: a scalar
    operands: tuple[Value, ...]
    mask: Mask | None
    accum: Any
    replace: bool
    placed: str  # by what the part that is assigned is named: "" (all of it), "rows", "vector"
    form: str | None  # hint
    product: Product | None


def revived(asked: tuple) -> Asked:
    """The record of what `prepare` gives as plain tuples."""
    record = Asked(*asked)
    return record._replace(
        output=Value(*record.output),
        operands=tuple(Value(*value) for value in record.operands),
        mask=None if record.mask is None else Mask(*record.mask),
        product=None if record.product is None else Product(*record.product),
    )


class Write(NamedTuple):
    """Of step "write": whether C and T have every row, whether what the mask does not let through is deleted."""

    full: bool
    tfull: bool
    replace: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on all blocks. `into` is the register it fills; `sources` those it reads, `parameters` what it
    reads beside; `spec` what its kernels are compiled for (empty: nothing, or the runner knows); `option` a record of
    the step's kind."""

    kind: str
    into: Value
    sources: tuple[str, ...]
    spec: Spec
    text: str
    option: Any = None
    parameters: tuple[str, ...] = ()
    kernels: dict[Any, Any] = field(default_factory=dict)  # filled by the runner, so that a second run looks nothing up
    method: str = field(init=False)  # of the runner

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", "_" + self.kind)


@dataclass(frozen=True, slots=True)
class Plan:
    """The registers and parameters that a run must bind, the steps, and the product's direction if there is one."""

    inputs: tuple[Value, ...]
    parameters: tuple[str, ...]
    steps: tuple[Step, ...]
    direction: str | None = None

    def after(self, steps: Sequence[Step]) -> "Plan":
        """The same with other steps before its own."""
        return replace(self, steps=(*steps, *self.steps))

    def __str__(self) -> str:
        width = max([9, *(len(step.kind) for step in self.steps)])
        return "\n".join(f"  {i}. {step.kind:<{width}} {step.text}" for i, step in enumerate(self.steps, 1))


NOTHING = Plan((), (), ())  # of a statement that only moves what others made


def keeps_iso(op: Any, iso: bool) -> bool:
    """Whether an operator gives one value for all entries: of an iso operand, or whatever the operand."""
    uses = op.program.uses
    return not uses & {"i", "j", "k"} and (iso or "x" not in uses and ("y" not in uses or len(op.dtypes) == 1))


def gives_one(semiring: Any, flip: bool, x: bool, matrix: bool) -> bool:
    """Whether a product has one value for all entries, of a vector and a matrix that are iso or not."""
    uses, (mine, theirs) = semiring.multiply.program.uses, ("x", "y") if flip else ("y", "x")
    alike = (x or mine not in uses) and (matrix or theirs not in uses)
    return alike and is_idempotent(semiring.monoid) and not uses & {"i", "j", "k"}


def is_idempotent(monoid: Any) -> bool:
    """Whether many equal terms give the term itself."""
    return monoid.is_idempotent or monoid.is_any
