"""Statement -> Plan: a frozen list of steps, chosen from the kinds and forms of the operands. Nothing runs here, and
nothing is read.

Values are described while planning (`Value`) by what the choice depends on; names are registers that the runner
fills."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..kernels.interface import Spec
from ..semiring._operators import UnaryOp


class Value(NamedTuple):
    """What a plan knows of a vector register: its name, form (None: a scalar for all rows), type, whether it is iso,
    and its row map."""

    name: str
    form: str | None
    dtype: Any
    iso: bool
    map: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on all blocks. `into` is the register it fills; `sources` those it reads; `spec` what its kernels
    are compiled for."""

    kind: str
    into: Value
    sources: tuple[str, ...]
    spec: Spec | None
    text: str
    option: Any = None
    kernels: dict[str, Any] = field(default_factory=dict)  # filled by the runner, so that a second run looks nothing up


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a statement, the product's direction if there is one, and where the result lies."""

    steps: tuple[Step, ...]
    direction: str | None

    def __str__(self) -> str:
        return "\n".join(f"  {i}. {step.kind:<9} {step.text}" for i, step in enumerate(self.steps, 1))


class Planner:
    """Builds the plan of one statement. `values` describe operands ("w" output, "m" mask parent, "x", "y") and `facts`
    the numbers behind the choice."""

    def __init__(self, statement: Any, values: dict[str, Value], facts: Any):
        self.statement, self.values, self.facts = statement, values, facts
        self.steps: list[Step] = []
        self.mask = statement.mask
        if self.mask is not None and self.mask.structural and not self.mask.complement and values["m"].form == "full":
            self.mask = None  # it lets everything through
        self._mask_words: dict[Any, str] = {}
        self._masked = False  # T is inside the mask already
        self._covers = False  # T has an entry wherever the statement may write

    def emit(
        self, kind: str, into: Value, sources: tuple[str, ...], spec: Spec | None, text: str, option: Any = None
    ) -> Value:
        self.steps.append(Step(kind, into, sources, spec, text, option))
        return into

    def plan(self) -> Plan:
        statement = self.statement
        expr = statement.expr
        result = getattr(self, "_" + expr.kind)(expr)
        if statement.output.ndim:
            self._write(self._hinted(result))
        return Plan(tuple(self.steps), self.facts.direction if self.facts else None)

    def _hinted(self, t: Value) -> Value:
        form = self.statement.hints.get("form")
        return t if form is None or t.form is None else self.as_form(t, form)

    # -- operands

    def operand(self, name: str, map: Any = None) -> Value:
        """An operand, moved to `map` if it lives on another one."""
        value = self.values[name]
        if map is None or value.map is map:
            return value
        return self._remap(value, map)

    def _remap(self, value: Value, map: Any) -> Value:
        dense = self.as_form(value, "bitmap") if value.form == "list" else value
        moved = Value(value.name + "r", "bitmap", value.dtype, False, map)
        return self.emit("remap", moved, (dense.name,), Spec(b=value.dtype), f"{value.name} to the rows of the output")

    def as_form(self, value: Value, form: str) -> Value:
        """The value in another form, iso if it was."""
        if value.form == form:
            return value
        changed = value._replace(name=value.name + form[0], form=form)
        return self.emit(
            "convert", changed, (value.name,), Spec(b=value.dtype), f"{value.name} {value.form} -> {form}", form
        )

    def mask_words(self, map: Any) -> str:
        """The register of the mask's bits over `map`, made at the first need; "" where there is no mask."""
        mask = self.mask
        if mask is None:
            return ""
        if map not in self._mask_words:
            parent = self.operand("m", map)
            words = Value(f"M{len(self._mask_words) or ''}", "bitmap", None, False, map)
            self.emit(
                "mask",
                words,
                (parent.name,),
                Spec(b=parent.dtype),
                f"{self._mask_text()}, {parent.form}",
                (mask.structural, mask.complement),
            )
            self._mask_words[map] = words.name
        return self._mask_words[map]

    def _mask_text(self) -> str:
        mask = self.mask
        return f"{'~' if mask.complement else ''}mask.{'S' if mask.structural else 'V'}"

    def _masked_by(self, words: str) -> str:
        return f", mask {self._mask_text()}" if words else ""

    # -- expressions: each returns the value T, not yet masked unless it says so

    def _product(self, expr: Any) -> Value:
        facts, semiring = self.facts, expr.op
        x = self.operand("x", facts.inner)
        uses = semiring.multiply.program.uses
        mine, theirs = ("x", "y") if facts.flip else ("y", "x")
        iso = is_idempotent(semiring.monoid) and not uses & {"i", "j", "k"}
        iso = iso and (x.iso or mine not in uses) and (facts.iso or theirs not in uses)
        if iso and semiring.multiply.name == "pair" and self.statement.accum is None:
            semiring = self._of_output_type(semiring)
        spec = Spec(semiring, facts.dtype, x.dtype, semiring.return_type, facts.ptr, facts.idx, facts.flip, iso)
        mask = self.mask_words(facts.outer)
        self._masked = True
        text = f"{semiring!r} by {facts.orientation} of A, {x.name} {x.form}{self._masked_by(mask)}"
        return self._pull(x, spec, mask, text) if facts.direction == "pull" else self._push(x, spec, mask, text)

    def _of_output_type(self, semiring: Any) -> Any:
        """A semiring whose terms are all one, of the output's type if there is one: nothing is left to cast."""
        output = self.statement.output
        same = output.dtype is semiring.return_type or not output.ndim or output.dtype not in semiring.op
        return semiring if same else semiring.op[output.dtype]

    _reduce_rows = _product

    def _pull(self, x: Value, spec: Spec, mask: str, text: str) -> Value:
        facts = self.facts
        x = self.as_form(x, "bitmap") if x.form == "list" else x
        full = x.form == "full" and not mask and not facts.empty_rows
        t = Value("t", "full" if full else "bitmap", spec.out, spec.iso, facts.outer)
        if facts.p > 1:
            self.emit(
                "gather",
                Value("X", x.form, x.dtype, x.iso, facts.inner),
                (x.name,),
                None,
                f"{x.name} {x.form} to all {facts.p} devices",
            )
        return self.emit(
            "pull",
            t,
            ("A", "X" if facts.p > 1 else x.name, mask),
            spec,
            f"{text} -> {t.form}{' iso' if t.iso else ''}",
            full,
        )

    def _push(self, x: Value, spec: Spec, mask: str, text: str) -> Value:
        facts, iso = self.facts, " iso" if spec.iso else ""
        t = Value("t", "bitmap" if facts.dense else "list", spec.out, spec.iso, facts.outer)
        if facts.p == 1:
            return self.emit("push", t, ("A", x.name, mask), spec, f"{text} -> {t.form}{iso}")
        bins = self.emit(
            "push", t._replace(name="T"), ("A", x.name, mask), spec, f"{text} -> {facts.p} lists{iso} a device"
        )
        self.emit("exchange", bins, (bins.name,), spec, "lists to their owners")
        combine = Spec(op=spec.op.monoid, b=spec.out, idx=spec.idx, iso=spec.iso)
        return self.emit(
            "combine",
            t,
            (bins.name, mask),
            combine,
            f"arrivals by {spec.op.monoid!r}{self._masked_by(mask)}",
        )

    def _union(self, expr: Any) -> Value:
        x = self.operand("x")
        return self._ewise(x, self.operand("y", x.map), expr.op, one_sided(expr))

    _intersect = _union

    def _chain(self, expr: Any) -> Value:
        """An intersection with an elementwise expression: one pass, but for lists."""
        (_, inner, flip), x = expr.option, self.operand("x")
        y, z, side, op = self.operand("y", x.map), self.operand("z", x.map), one_sided(inner), expr.op
        if "list" in (x.form, y.form, z.form):
            made = self._ewise(x, y, inner.op, side, "u")
            return self._ewise(*((z, made) if flip else (made, z)), op, "")
        full = z.form == "full" and _all_rows(x, y, side)
        t = Value("t", "full" if full else "bitmap", op.return_type, False, x.map)
        spec = Spec(inner.op, x.dtype, y.dtype, op.return_type, flip=flip, side=side, then=op, c=z.dtype)
        text = f"{op!r} on {_ewise_text(inner.op, x, y, side)}, and {z.form}"
        return self.emit("ewise", t, (x.name, y.name, z.name), spec, text)

    def _ewise(self, x: Value, y: Value, op: Any, side: str, name: str = "t") -> Value:
        both = _ewise_text(op, x, y, side)
        if not side and (x.form == "list") != (y.form == "list"):
            listed, dense, which = (x, y, "left") if x.form == "list" else (y, x, "right")
            t = Value(name, "list", op.return_type, False, x.map)
            spec = Spec(op=op, a=listed.dtype, b=dense.dtype, out=op.return_type, side=which)
            return self.emit("ewise_list", t, (listed.name, dense.name), spec, both)
        x, y = (self.as_form(v, "bitmap") if v.form == "list" else v for v in (x, y))
        full = _all_rows(x, y, side)
        t = Value(name, "full" if full else "bitmap", op.return_type, False, x.map)
        return self.emit(
            "ewise", t, (x.name, y.name), Spec(op=op, a=x.dtype, b=y.dtype, out=op.return_type, side=side), both
        )

    def _apply(self, expr: Any) -> Value:
        x, op = self.operand("x"), expr.op
        t = Value("t", x.form, op.return_type, keeps_iso(op, x.iso), x.map)
        side = expr.option[0]
        return self.emit(
            "apply", t, (x.name,), Spec(op=op, b=x.dtype, out=op.return_type, side=side), f"{op!r} on {x.form}"
        )

    def _select(self, expr: Any) -> Value:
        x, op = self.operand("x"), expr.op
        form = "list" if x.form == "list" else "bitmap"
        return self.emit(
            "select", Value("t", form, x.dtype, x.iso, x.map), (x.name,), Spec(op=op, b=x.dtype), f"{op!r} on {x.form}"
        )

    def _reduce(self, expr: Any) -> Value:
        x = self.operand("x", self.facts and self.facts.outer)
        if self.facts:  # by index
            x = self.as_form(x, "bitmap") if x.form == "list" else x
        return self.emit(
            "reduce",
            Value("t", None, expr.dtype, True, None),
            (x.name,),
            Spec(op=expr.op, b=x.dtype),
            f"{expr.op!r} of {x.form}",
        )

    def _extract(self, expr: Any) -> Value:
        x = self.operand("x")
        dense = self.as_form(x, "bitmap") if x.form == "list" else x
        t = Value("t", "bitmap", x.dtype, False, self.facts.outer)
        return self.emit("extract", t, (dense.name,), Spec(b=x.dtype), f"indexed rows of {x.name} {x.form}")

    def _copy(self, expr: Any) -> Value:
        return self.operand("x")

    def _fill(self, expr: Any) -> Value:
        dtype = expr.dtype if self.statement.accum is not None else self.statement.output.dtype
        return self.emit("scalar", Value("t", None, dtype, True, self.values["w"].map), (), None, f"{dtype}")

    # -- the write rule

    def _write(self, t: Value) -> None:
        statement, w = self.statement, self.values["w"]
        indexed = statement.index is not None
        fresh = w.form == "empty"
        accum = None if fresh else statement.accum
        replace = (statement.replace and self.mask is not None) or (
            fresh and not indexed
        )  # an empty output has nothing to keep
        if indexed:
            t = self._place(t, w)
        elif t.form is None:
            t = self._fill_of_mask(t, w)
        if t.map is not w.map:
            if fresh:
                w = self.values["w"] = w._replace(map=t.map)
            else:
                t = self._remap(t, w.map)
        twin = is_twin(statement)
        within = self.mask is None or self._masked or twin  # T has no entry outside the mask
        covers = (
            t.form in (None, "full") or self._covers or twin
        )  # T has an entry wherever the mask (and the index) lets through
        if fresh and indexed and t.form == "list" and self.mask is None:  # of a scalar: all there is
            return self._move(t, w)
        if not indexed and accum is None and (self.mask is None or replace):
            if not within and t.form == "list":
                spec = Spec(b=t.dtype)
                t = self.emit(
                    "filter",
                    t._replace(name="tf"),
                    (t.name, self.mask_words(w.map)),
                    spec,
                    f"list by mask {self._mask_text()}",
                )
                within = True
            if within:
                return self._move(t, w)
        keeps = (accum is not None or covers) and not replace  # nothing is deleted
        if t.form == "list" and keeps:
            return self._write_list(t, w, accum, "" if within else self.mask_words(w.map))
        # A dense write deletes where T is absent, so it needs the mask unless it accumulates.
        mask = "" if within and accum is not None and not replace else self.mask_words(w.map)
        self._write_dense(t, w, accum, mask, indexed, replace)

    def _as_vector(self, t: Value) -> Value:
        if t.form is not None:
            return t
        return self.emit("spread", t._replace(form="full"), (t.name,), None, "scalar to every row")

    def _fill_of_mask(self, t: Value, w: Value) -> Value:
        """A scalar under a listed mask is a list: the mask's rows, one value."""
        mask, parent = self.mask, self.values.get("m")
        if (
            mask is None
            or parent is None
            or mask.complement
            or not mask.structural
            or parent.form != "list"
            or parent.map is not w.map
        ):
            return t
        self._masked = self._covers = True
        return self.emit("borrow", t._replace(name="tl", form="list"), (t.name, "m"), None, "scalar on the mask's rows")

    def _place(self, t: Value, w: Value) -> Value:
        """T on the rows that the index names: a list for a scalar without a mask, else a bitmap and the region's
        bits."""
        rows = "indexed rows"
        if t.form is None and self.mask is None:
            self._covers = True
            return self.emit("place_scalar", t._replace(name="tl", form="list"), (t.name,), None, f"scalar on {rows}")
        self.emit("region", Value("R", "bitmap", None, False, w.map), (), None, rows)
        if t.form is None:
            return t
        dense = self.as_form(t, "bitmap") if t.form == "list" else t
        placed = Value("tp", "bitmap", t.dtype, False, w.map)
        return self.emit("place", placed, (dense.name,), Spec(b=t.dtype), f"{t.form} on {rows}")

    def _move(self, t: Value, w: Value) -> None:
        t = self._as_vector(t)
        if t.dtype is not w.dtype:
            spec = Spec(op=UnaryOp.registry["identity"][w.dtype], b=t.dtype, out=w.dtype)
            t = self.emit(
                "apply", t._replace(name="tc", dtype=w.dtype), (t.name,), spec, f"{t.dtype} -> {w.dtype}", None
            )
        elif (self.statement.expr.kind == "copy" and t.name == "x") or (self.steps and self.steps[-1].kind == "borrow"):
            t = self.emit("dup", t._replace(name="t"), (t.name,), None, f"copy of {t.form}")
        self.emit("move", w, (t.name,), None, f"{t.form}{' iso' if t.iso else ''} becomes the output")

    def _write_list(self, t: Value, w: Value, accum: Any, mask: str) -> None:
        full = w.form == "full"
        text = f"list into {'full' if full else 'bitmap'}{_by(accum)}{self._masked_by(mask)}"
        self.emit("write_list", w, (t.name, mask), Spec(op=accum, a=w.dtype, b=t.dtype), text, full)

    def _write_dense(self, t: Value, w: Value, accum: Any, mask: str, indexed: bool, replace: bool) -> None:
        t = self.as_form(t, "bitmap") if t.form == "list" else t
        tfull = t.form in (None, "full")
        full = w.form == "full" and (accum is not None or tfull) and not (mask and replace)
        text = f"{t.form or 'scalar'} into {'full' if full else 'bitmap'}{_by(accum)}{self._masked_by(mask)}"
        text += ", replace" if mask and replace else ""
        sources = (t.name, mask, "R" if indexed else "")
        self.emit(
            "write", w, sources, Spec(op=accum, a=w.dtype, b=t.dtype), text, (full, tfull, bool(mask) and replace)
        )


def is_twin(statement: Any) -> bool:
    """Whether T is the parent of the structural mask, `w(q.S) << q`: then the mask changes nothing."""
    mask, expr = statement.mask, statement.expr
    return (
        mask is not None
        and expr.kind == "copy"
        and statement.index is None
        and mask.parent is expr.left
        and mask.structural
        and not mask.complement
    )


def _by(accum: Any) -> str:
    return f" by {accum!r}" if accum is not None else ""


def one_sided(expr: Any) -> str:
    """What an elementwise expression makes of entries of one operand alone, as Spec.side."""
    return "" if expr.kind == "intersect" else "union" if expr.option is None else "defaults"


def _all_rows(x: Value, y: Value, side: str) -> bool:
    return (x.form == "full" or y.form == "full") if side else (x.form == y.form == "full")


def _ewise_text(op: Any, x: Value, y: Value, side: str) -> str:
    return f"{op!r} {'union' if side else 'intersection'} of {x.form} and {y.form}"


def keeps_iso(op: Any, iso: bool) -> bool:
    """Whether an operator gives one value for all entries: of an iso operand, or whatever the operand."""
    uses = op.program.uses
    return not uses & {"i", "j", "k"} and (iso or "x" not in uses and ("y" not in uses or len(op.dtypes) == 1))


def is_idempotent(monoid: Any) -> bool:
    """Whether many equal terms give the term itself."""
    return monoid.is_idempotent or monoid.is_any
