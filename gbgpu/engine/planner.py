"""The planner of statements on vectors: steps chosen from the kinds and forms of the operands. Nothing runs here, and
nothing is read."""

from typing import Any

from ..distribute.blocks import KNOWN
from ..distribute.rowmap import RowMap
from ..kernels.interface import Spec, reads
from ..semiring._operators import UnaryOp
from .plan import Asked, Chain, Plan, Product, Reduced, Step, Value, Write, gives_one, keeps_iso


class Planner:
    """Builds the plan of one statement."""

    def __init__(self, asked: Asked):
        self.asked, self.product = asked, asked.product
        self.values = {value.name: value for value in (asked.output, *asked.operands)}
        self.steps: list[Step] = []
        self.mask = asked.mask
        if self.mask is not None and not self.mask.complement and self.mask.structural:
            if self.values["m"].form == "full":
                self.mask = None  # it lets everything through
        self._mask_words: dict[Any, str] = {}
        self._masked = False  # T is inside the mask already
        self._covers = False  # T has an entry wherever the statement may write

    def emit(
        self,
        kind: str,
        into: Value,
        sources: tuple[str, ...],
        spec: Spec,
        text: str,
        option: Any = None,
        parameters: tuple[str, ...] = (),
    ) -> Value:
        self.steps.append(Step(kind, into, sources, spec, text, option, parameters))
        return into

    def plan(self) -> Plan:
        asked = self.asked
        result = getattr(self, "_" + asked.kind)()
        if asked.output.form is not None and result.name != "w":
            self._write(self._hinted(result))
        named = {name: None for step in self.steps for name in step.parameters}
        held = asked.operands if asked.output.form in (None, "empty") else (asked.output, *asked.operands)
        return Plan(held, tuple(named), tuple(self.steps), self.product.direction if self.product else None)

    def _hinted(self, t: Value) -> Value:
        form = self.asked.form
        return t if form is None or t.form is None else self.as_form(self.known(t), form)

    # -- operands

    def operand(self, name: str, map: RowMap | None = None) -> Value:
        """An operand in a form that every step takes, moved to `map` if it lives on another one."""
        value = self.known(self.values[name])
        if map is None or value.map is map:
            return value
        return self._remap(value, map)

    def known(self, value: Value) -> Value:
        """The value in a form that every step takes."""
        return value if value.form in KNOWN else self.as_form(value, "bitmap")

    def dense(self, value: Value) -> Value:
        """The value as it is if full or a scalar, else as a bitmap."""
        return value if value.form in (None, "full") else self.as_form(value, "bitmap")

    def _remap(self, value: Value, map: RowMap) -> Value:
        dense = self.dense(value)
        moved = Value(value.name + "r", "bitmap", value.dtype, False, map)
        return self.emit("remap", moved, (dense.name,), Spec(b=value.dtype), f"{value.name} to the rows of the output")

    def as_form(self, value: Value, form: str) -> Value:
        """The value in another form, iso if it was."""
        if value.form == form:
            return value
        changed = value._replace(name=value.name + form[0], form=form)
        return self.emit("convert", changed, (value.name,), Spec(b=value.dtype), f"{value.name} {value.form} -> {form}")

    def mask_words(self, map: RowMap) -> str:
        """The register of the mask's bits over `map`, made at the first need; "" where there is no mask."""
        mask = self.mask
        if mask is None:
            return ""
        if map not in self._mask_words:
            parent = self.operand("m", map)
            words = Value(f"M{len(self._mask_words) or ''}", "bitmap", None, False, map)
            text = f"{self._mask_text()}, {parent.form}"
            self.emit("mask", words, (parent.name,), Spec(b=parent.dtype), text, mask)
            self._mask_words[map] = words.name
        return self._mask_words[map]

    def _mask_text(self) -> str:
        mask = self.mask
        assert mask is not None
        return f"{'~' if mask.complement else ''}mask.{'S' if mask.structural else 'V'}"

    def _masked_by(self, words: str) -> str:
        return f", mask {self._mask_text()}" if words else ""

    # -- expressions: each returns the value T, not yet masked unless it says so

    def _product(self) -> Value:
        product, semiring, matrix = self.product, self.asked.op, self.values["A"]
        assert product is not None
        x = self.operand("x", product.inner)
        iso = gives_one(semiring, product.flip, x.iso, matrix.iso)
        straight = self._straight(product, semiring)
        iso = iso and not straight
        if iso and semiring.multiply.name == "pair" and self.asked.accum is None:
            semiring = self._of_output_type(semiring)
        spec = Spec(semiring, matrix.dtype, x.dtype, semiring.return_type, product.ptr, product.idx, product.flip, iso)
        mask = ""
        if not self.asked.placed:  # else the mask is that of the whole output, not of the part that this is for
            mask, self._masked = self.mask_words(product.outer), True
        text = f"{semiring!r} by {product.by} of A, {x.name} {x.form}{self._masked_by(mask)}"
        if straight:
            w = self._into(self.values["w"], self.values["w"].form == "full")
            text = f"{text} -> into {w.form}{_by(self.asked.accum)}"
            return self.emit("push", w, ("A", x.name, mask), spec, text, product, ("seconds",))
        way = self._pull if product.direction == "pull" else self._push
        return way(product, x, spec, mask, text)

    def _straight(self, product: Product, semiring: Any) -> bool:
        """Whether a push combines with what the output has, instead of in a workspace that is written into it then."""
        asked, w = self.asked, self.values["w"]
        same = asked.accum is semiring.monoid.binaryop and w.dtype is semiring.return_type
        plain = not (asked.placed or asked.replace or asked.form) and w.form != "empty" and w.map is product.outer
        return same and plain and product.straight

    def _of_output_type(self, semiring: Any) -> Any:
        """A semiring whose terms are all one, of the output's type if there is one: nothing is left to cast."""
        output = self.asked.output
        same = output.dtype is semiring.return_type or output.form is None or output.dtype not in semiring.op
        return semiring if same else semiring.op[output.dtype]

    _reduce_rows = _product

    def _pull(self, product: Product, x: Value, spec: Spec, mask: str, text: str) -> Value:
        x = self.dense(x)
        full, p = x.form == "full" and not mask and not product.empty_rows, product.outer.p
        t = Value("t", "full" if full else "bitmap", spec.out, spec.iso, product.outer)
        if p > 1:
            read = reads(spec)[1]
            to = f"{x.name} {x.form}{'' if read else ' without values'} to all {p} devices"
            if product.heads is not None:
                to = f"{x.name} {x.form}, the values that normal rows read, to {p} devices"
            x = self.emit("gather", x._replace(name="X", iso=x.iso or not read), (x.name, mask), spec, to, product)
        text = f"{text} -> {t.form}{' iso' if t.iso else ''}"
        if product.heads is None:
            return self.emit("pull", t, ("A", x.name, mask), spec, text, product, ("seconds",))
        known = self._heads(Value(mask, "bitmap", None, True, product.outer), "K", product) if mask else ""
        part = Value("P", "bitmap", spec.out, spec.iso, product.heads)
        partial = f"{spec.op!r} of delegates, each device over the columns that it owns"
        self.emit("partial", part, ("A", x.name, mask, known), spec, partial, product, ("seconds",))
        self.emit(
            "pull", t._replace(name="N"), ("A", x.name, mask), spec, f"{text}, normal rows", product, ("seconds",)
        )
        add = Spec(op=spec.op.monoid.binaryop, a=spec.out, b=spec.out, iso=spec.iso)
        text = f"partial results of delegates on {p} devices, to their owners by {spec.op.monoid!r}"
        return self.emit("combine_hubs", t, ("N", "P"), add, text, product.heads)

    def _heads(self, x: Value, name: str, product: Product) -> str:
        """The register of what x has for delegates, on all devices."""
        assert product.heads is not None
        what = "bits" if x.iso and x.form != "full" else x.form
        text = f"{what} of {product.heads.n} delegates, of {x.name}, to all {product.heads.p} devices"
        self.emit("gather_hubs", x._replace(name=name, map=product.heads), (x.name,), Spec(), text)
        return name

    def _push(self, product: Product, x: Value, spec: Spec, mask: str, text: str) -> Value:
        iso, p, seconds = " iso" if spec.iso else "", product.outer.p, ("seconds",)
        t = Value("t", "bitmap" if product.dense else "list", spec.out, spec.iso, product.outer)
        if product.dense and p == 1:
            return self.emit("push", t, ("A", x.name, mask), spec, f"{text} -> {t.form}{iso}", product, seconds)
        sources: tuple[str, ...] = "A", x.name, mask
        if product.heads is not None:
            dense = self.dense(x)
            given = self._heads(dense._replace(iso=dense.iso or not reads(spec)[1]), "H", product)
            known = self._heads(Value(mask, "bitmap", None, True, product.outer), "K", product) if mask else ""
            sources, text = (*sources, given, known), f"{text}, delegates on all devices"
        self.emit("push", t._replace(name="S"), sources, spec, text, product, seconds)
        if product.dense:
            reduce = Spec(op=spec.op.monoid.binaryop, a=spec.out, b=spec.out, iso=spec.iso)
            text = f"rows reached on {p} devices, by {spec.op.monoid!r}{self._masked_by(mask)} -> bitmap{iso}"
            return self.emit("reduce_scatter", t, ("S", mask), reduce, text, None, seconds)
        drain = Spec(op=spec.op.monoid, out=spec.out, idx=spec.idx, iso=spec.iso)
        if p == 1:
            return self.emit("drain", t, ("S",), drain, f"rows reached -> list{iso}")
        self.emit("drain", t._replace(name="T"), ("S",), drain, f"rows reached -> {p} lists{iso} a device")
        self.emit("exchange", t._replace(name="E"), ("T",), drain, "lists to their owners", None, seconds)
        combine = Spec(op=spec.op.monoid, b=spec.out, idx=spec.idx, iso=spec.iso)
        text = f"received entries by {spec.op.monoid!r}{self._masked_by(mask)}"
        return self.emit("combine", t, ("E", mask), combine, text, None, seconds)

    def _union(self) -> Value:
        return self._together(self.asked.op, self.asked.detail)

    _intersect = _chain = _union

    def _fold(self) -> Value:
        """A reduction of one of these: in the same pass, but for lists."""
        monoid = self.asked.op
        made = self._together(*self.asked.detail)
        last = self.steps[-1]
        if last.kind != "ewise":
            return self._sum(made, Reduced(False, None))
        self.steps.pop()
        t, spec = Value("t", None, self.asked.dtype, True, None), last.spec._replace(fold=monoid)
        return self.emit("fold", t, last.sources, spec, f"{monoid!r} of {last.text}", None, last.parameters)

    def _together(self, op: Any, detail: Any) -> Value:
        x = self.operand("x")
        if isinstance(detail, Chain):
            return self._three(op, x, *detail)
        return self._ewise(x, self.operand("y", x.map), op, detail)

    def _three(self, op: Any, x: Value, inner: Any, side: str, flip: bool) -> Value:
        """An intersection with an elementwise expression: one pass, but for lists."""
        y, z = self.operand("y", x.map), self.operand("z", x.map)
        if "list" in (x.form, y.form, z.form):
            made = self._ewise(x, y, inner, side, "u")
            return self._ewise(*((z, made) if flip else (made, z)), op, "")
        full = z.form == "full" and _all_rows(x, y, side)
        t = Value("t", "full" if full else "bitmap", op.return_type, False, x.map)
        spec = Spec(inner, x.dtype, y.dtype, op.return_type, flip=flip, lone=side, then=op, c=z.dtype)
        text = f"{op!r} on {_ewise_text(inner, x, y, side)}, and {z.form}"
        return self.emit("ewise", t, (x.name, y.name, z.name), spec, text, None, _defaults(side))

    def _ewise(self, x: Value, y: Value, op: Any, side: str, name: str = "t") -> Value:
        both = _ewise_text(op, x, y, side)
        if not side and (x.form == "list") != (y.form == "list"):
            listed, dense = (x, y) if x.form == "list" else (y, x)
            t = Value(name, "list", op.return_type, False, x.map)
            spec = Spec(op=op, a=listed.dtype, b=dense.dtype, out=op.return_type, flip=listed is y)
            return self.emit("ewise_list", t, (listed.name, dense.name), spec, both)
        x, y = (self.dense(v) for v in (x, y))
        t = Value(name, "full" if _all_rows(x, y, side) else "bitmap", op.return_type, False, x.map)
        spec = Spec(op=op, a=x.dtype, b=y.dtype, out=op.return_type, lone=side)
        return self.emit("ewise", t, (x.name, y.name), spec, both, None, _defaults(side))

    def _apply(self) -> Value:
        x, op = self.operand("x"), self.asked.op
        t = Value("t", x.form, op.return_type, keeps_iso(op, x.iso), x.map)
        spec = Spec(op=op, b=x.dtype, out=op.return_type, bound=self.asked.detail)
        return self.emit("apply", t, (x.name,), spec, f"{op!r} on {x.form}", None, ("thunk",))

    def _select(self) -> Value:
        x, op = self.operand("x"), self.asked.op
        t = Value("t", "list" if x.form == "list" else "bitmap", x.dtype, x.iso, x.map)
        return self.emit("select", t, (x.name,), Spec(op=op, b=x.dtype), f"{op!r} on {x.form}", None, ("thunk",))

    def _reduce(self) -> Value:
        op = self.asked.op
        if self.asked.detail.known:
            t = Value("t", None, self.asked.dtype, True, None)
            return self.emit("cached", t, (), Spec(op=op), f"{op!r} of the matrix, computed before", self.asked.detail)
        x = self.operand("x", self.asked.detail.over)
        if self.asked.detail.over is not None:  # by index
            x = self.dense(x)
        return self._sum(x, self.asked.detail)

    def _sum(self, x: Value, option: Reduced) -> Value:
        op, t = self.asked.op, Value("t", None, self.asked.dtype, True, None)
        return self.emit("reduce", t, (x.name,), Spec(op=op, b=x.dtype), f"{op!r} of {x.form}", option)

    def _extract(self) -> Value:
        x = self.operand("x")
        if "i" in self.values:
            t = Value("t", "full", x.dtype, False, self.values["i"].map)
            text = f"values of {x.name} at the ids of a vector"
            return self.emit("take", t, (x.name, "i"), Spec(), text, None, ("ids",))
        dense = self.dense(x)
        t, text = Value("t", "bitmap", x.dtype, False, self.asked.detail), f"indexed rows of {x.name} {x.form}"
        return self.emit("extract", t, (dense.name,), Spec(b=x.dtype), text, None, ("ids",))

    def _copy(self) -> Value:
        return self.operand("x")

    def _fill(self) -> Value:
        dtype = self.asked.dtype if self.asked.accum is not None else self.asked.output.dtype
        t = Value("t", None, dtype, True, self.asked.output.map)
        return self.emit("scalar", t, (), Spec(), f"{dtype}", self.asked.dtype, ("value",))

    def _unwrite(self) -> Value:
        w = self._into(self.values["w"], False)
        spec, text = Spec(idx=w.map.slot_type()), "indexed rows lose their entries, bitmap"
        return self.emit("unwrite", w, (), spec, text, None, ("place",))

    # -- the write rule

    def _write(self, t: Value) -> None:
        asked, w = self.asked, self.values["w"]
        if asked.placed == "vector":
            return self._scatter(t, w, asked.accum.op.monoid[w.dtype])
        indexed, fresh = bool(asked.placed), w.form == "empty"
        accum = None if fresh else asked.accum
        nothing = fresh and not indexed  # an empty output has nothing to keep
        replace = nothing or (asked.replace and self.mask is not None)
        if indexed:
            t = self._place(t, w)
        elif t.form is None:
            t = self._fill_of_mask(t, w)
        if t.map is not w.map:
            if fresh:
                w = self.values["w"] = w._replace(map=t.map)
            else:
                t = self._remap(t, w.map)
        twin = asked.mask is not None and asked.mask.twin
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

    def _scatter(self, t: Value, w: Value, monoid: Any) -> None:
        spec = Spec(op=monoid, b=w.dtype, idx=w.map.slot_type())
        self.emit("scatter", w, (t.name, "i"), spec, f"full into full by {monoid!r}", None, ("place",))

    def _as_vector(self, t: Value) -> Value:
        if t.form is not None:
            return t
        return self.emit("spread", t._replace(form="full"), (t.name,), Spec(), "scalar to every row")

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
        dtype, value = self.steps.pop().option, ("value",)
        return self.emit(
            "borrow", t._replace(form="list"), ("m",), Spec(), f"{t.dtype} on the mask's rows", dtype, value
        )

    def _place(self, t: Value, w: Value) -> Value:
        """T on the rows that the index names: without a mask a list, if it has a value for each, else a bitmap and the
        region's bits."""
        rows = "indexed rows"
        if t.form is None and self.mask is None:
            self._covers = True
            t = t._replace(name="tl", form="list")
            return self.emit("place_scalar", t, ("t",), Spec(), f"scalar on {rows}", None, ("place",))
        if t.form == "full" and self.mask is None:
            self._covers = True
            placed = Value("tl", "list", t.dtype, False, w.map)
            return self.emit("place_list", placed, (t.name,), Spec(b=t.dtype), f"full on {rows}", None, ("place",))
        self.emit("region", Value("R", "bitmap", None, False, w.map), (), Spec(), rows, None, ("place",))
        if t.form is None:
            return t
        dense = self.dense(t)
        placed = Value("tp", "bitmap", t.dtype, False, w.map)
        return self.emit("place", placed, (dense.name,), Spec(b=t.dtype), f"{t.form} on {rows}", None, ("place",))

    def _move(self, t: Value, w: Value) -> None:
        t = self._as_vector(t)
        if t.dtype is not w.dtype:
            spec = Spec(op=UnaryOp.registry["identity"][w.dtype], b=t.dtype, out=w.dtype)
            t = self.known(t)
            cast = t._replace(name="tc", dtype=w.dtype)
            t = self.emit("apply", cast, (t.name,), spec, f"{t.dtype} -> {w.dtype}")
        elif (self.asked.kind == "copy" and t.name == "x") or (self.steps and self.steps[-1].kind == "borrow"):
            t = self.emit("dup", t._replace(name="t"), (t.name,), Spec(), f"copy of {t.form}")
        text = f"{t.form}{' iso' if t.iso else ''} becomes the output"
        self.emit("move", t._replace(name="w"), (t.name,), Spec(), text)

    def _write_list(self, t: Value, w: Value, accum: Any, mask: str) -> None:
        full = w.form == "full"
        text = f"list into {'full' if full else 'bitmap'}{_by(accum)}{self._masked_by(mask)}"
        self.emit("write_list", self._into(w, full), (t.name, mask), Spec(op=accum, a=w.dtype, b=t.dtype), text)

    def _write_dense(self, t: Value, w: Value, accum: Any, mask: str, indexed: bool, replace: bool) -> None:
        t = self.dense(t)
        tfull = t.form in (None, "full")
        full = w.form == "full" and (accum is not None or tfull) and not (mask and replace)
        text = f"{t.form or 'scalar'} into {'full' if full else 'bitmap'}{_by(accum)}{self._masked_by(mask)}"
        text += ", replace" if mask and replace else ""
        sources = (t.name, mask, "R" if indexed else "")
        option = Write(full, tfull, bool(mask) and replace)
        self.emit("write", self._into(w, full), sources, Spec(op=accum, a=w.dtype, b=t.dtype), text, option)

    @staticmethod
    def _into(w: Value, full: bool) -> Value:
        """The output as a write leaves it."""
        return w._replace(form="full" if full else "bitmap", iso=False)


def _by(accum: Any) -> str:
    return f" by {accum!r}" if accum is not None else ""


def _defaults(side: str) -> tuple[str, ...]:
    return ("defaults",) if side == "defaults" else ()


def _all_rows(x: Value, y: Value, side: str) -> bool:
    return (x.form == "full" or y.form == "full") if side else (x.form == y.form == "full")


def _ewise_text(op: Any, x: Value, y: Value, side: str) -> str:
    return f"{op!r} {'union' if side else 'intersection'} of {x.form} and {y.form}"
