"""What is asked of matrices -> Plan. Content of matrices is never changed in place, so every write rule is a few
merges of rows."""

from typing import Any, NamedTuple

from ...kernels.interface import A_ONLY, B_ONLY, BOTH, Spec
from ...semiring._operators import SelectOp, UnaryOp
from ..plan import Asked, Plan, Step, Value

UNION = A_ONLY | B_ONLY | BOTH


class Merge(NamedTuple):
    """Which entries of two matrices survive, and what becomes of those that both have (op None: the first's)."""

    keep: int
    op: Any = None


class Multiply(NamedTuple):
    """How two matrices are multiplied; `inside`: only where the mask lets entries through (`narrow`: at the mask's own
    entries); `scales`: the side that is a diagonal."""

    way: str
    inside: bool
    narrow: bool
    scales: str | None


class MatrixPlanner:
    """Builds the plan of one statement whose output is a matrix. T is in register "t" from its first step on."""

    def __init__(self, asked: Asked):
        self.asked = asked
        self.values = {value.name: value for value in (asked.output, *asked.operands)}
        self.steps: list[Step] = []
        self.inside = False  # T has no entry outside the mask
        self.placed = False  # T lies where the index says
        self.mask = "m"  # the register of the mask's entries

    def emit(
        self,
        kind: str,
        sources: tuple[str, ...],
        text: str,
        option: Any = None,
        *,
        into: str = "t",
        spec: Spec | None = None,
        parameters: tuple[str, ...] = (),
    ) -> None:
        value = Value(into, "csr", self.asked.dtype, False, self.asked.output.map)
        self.steps.append(Step(kind, value, sources, spec or Spec(), text, option, parameters))

    def plan(self) -> Plan:
        asked, output = self.asked, self.asked.output
        if asked.mask is not None and not asked.mask.structural:
            true = SelectOp.registry["valuene"][self.values["m"].dtype]
            self.mask = "M"
            self.emit("mask", ("m",), "the mask's true entries", true, into="M")
        getattr(self, "_" + asked.kind)()
        taken = output.dtype if asked.accum is None else asked.accum.dtypes[-1]
        if asked.dtype is not taken and asked.kind != "element":
            self.emit("cast", ("t",), f"{asked.dtype} -> {taken}", UnaryOp.registry["identity"][taken])
        if asked.placed and asked.kind not in ("element", "unwrite"):
            self._place()
        if asked.accum is not None:
            self.emit("merge", ("w", "t"), f"union with the output by {asked.accum!r}", Merge(UNION, asked.accum))
        if asked.mask is not None:
            self._masked()
        used = {name for step in self.steps for name in step.sources}
        held = tuple(value for name, value in self.values.items() if name in used)
        named = {name: None for step in self.steps for name in step.parameters}
        return Plan(held, tuple(named), tuple(self.steps))

    def _place(self) -> None:
        """T in the rows and columns that the index names; without an accumulator the output's other entries stay."""
        accum, place = self.asked.accum, ("place",)
        if not self.placed:
            monoid = getattr(accum, "monoid", None)
            self.emit("place", ("t", "w"), "rows and columns of the output", monoid, parameters=place)
        if accum is None:
            self.inside = False
            self.emit("region", ("w",), "the output's entries in other places", False, into="r", parameters=place)
            self.emit("merge", ("t", "r"), "with these", Merge(UNION))

    def _masked(self) -> None:
        mask, accum, replace = self.asked.mask, self.asked.accum, self.asked.replace
        assert mask is not None
        kept, rest = (A_ONLY, BOTH) if mask.complement else (BOTH, A_ONLY)
        text = f"{'~' if mask.complement else ''}mask.{'S' if mask.structural else 'V'}"
        if self.inside and accum is not None and not replace:
            return
        if not self.inside or accum is not None:
            self.emit("merge", ("t", self.mask), f"entries inside {text}", Merge(kept))
        if not replace and self.asked.output.form != "empty":
            self.emit("merge", ("w", self.mask), "the output's entries outside", Merge(rest), into="r")
            self.emit("merge", ("t", "r"), "with these", Merge(UNION))

    # -- expressions

    def _fill(self) -> None:
        """One value for every position (that the index names), or for those of a mask that lets its own entries
        through."""
        mask, place = self.asked.mask, ("place",) if self.asked.placed else ()
        within = mask is not None and not mask.complement
        sources = (self.mask,) if within else ()
        if within and place:
            self.emit("region", sources, "the mask's entries in the named places", True, parameters=place)
            sources = ("t",)
        self.emit("fill", sources, f"{self.asked.dtype} scalar", self.asked.detail, parameters=("value",))
        self.inside = self.placed = within

    def _element(self) -> None:
        """`detail`: whether it is deleted."""
        types = None if self.asked.detail else (self.asked.dtype, self.asked.output.dtype)
        text = "one entry is deleted" if types is None else f"one value, {types[1]}"
        text += ", when the matrix is next read"
        self.emit("element", (), text, types, parameters=("value", "place", "output"))

    def _unwrite(self) -> None:
        self.emit("region", ("w",), "the output's entries in other places", False, parameters=("place",))

    def _copy(self) -> None:
        self.emit("copy", ("x",), "shared, as content never changes in place")

    def _apply(self) -> None:
        op, side = self.asked.op, self.asked.detail
        self.emit("apply", ("x",), f"{op!r}", op, spec=Spec(bound=side), parameters=("thunk",))

    def _select(self) -> None:
        self.emit("select", ("x",), f"{self.asked.op!r}", self.asked.op, parameters=("thunk",))

    def _union(self) -> None:
        defaults = ("defaults",) if self.asked.detail == "defaults" else ()
        text = f"union by {self.asked.op!r}{', defaults for what is missing' if defaults else ''}"
        self.emit("merge", ("x", "y"), text, Merge(UNION, self.asked.op), parameters=defaults)

    def _intersect(self) -> None:
        self.emit("merge", ("x", "y"), f"intersection by {self.asked.op!r}", Merge(BOTH, self.asked.op))

    def _mxm(self) -> None:
        how = self.asked.detail
        self.inside = how.inside
        sources = ("x", "y", self.mask) if how.inside else ("x", "y")
        text = f"{self.asked.op!r} by {how.way}{', inside the mask' if how.inside else ''}"
        self.emit("mxm", sources, text, how, spec=Spec(op=self.asked.op))

    def _kron(self) -> None:
        self.emit("kron", ("x", "y"), f"{self.asked.op!r}", self.asked.op)

    def _extract(self) -> None:
        self.emit("extract", ("x",), "indexed rows and columns", parameters=("ids",))

    def _concat(self) -> None:
        self.emit("concat", ("x",), "tiles side by side and one below the other", parameters=("tiles",))

    def _diag(self) -> None:
        self.emit("diag", ("x",), "a vector on a diagonal", parameters=("diagonal",))

    def _column(self) -> None:
        self.emit("column", ("x",), "a vector as a matrix of one column")

    def _row(self) -> None:
        self._column()
        self.emit("transpose", ("t",), "as a row")
