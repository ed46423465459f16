"""Texts of the CUDA kernels: a header generated for one instance, and the text of its kind in src/ with what that
includes.

The header has the types (T_A, T_B, T_OUT, Z of the monoid), what the operators read (READS_*, USES_*), and the
operators as device functions (term, add, both, of_entry ...) with their casts: what the role of its kind asks for.
Included texts are put in here: a bare NVRTC has no headers.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ..semiring._lower import cast_program, literal_cuda, to_cuda
from ..semiring._types import BOOL, DataType
from . import interface
from .interface import Spec
from .kinds import ROLES

SOURCES = Path(__file__).parent / "src"
FLAGS = [name for name, value in vars(interface).items() if name.isupper() and isinstance(value, int)]


def source(kind: str, spec: Spec) -> str:
    """The CUDA C++ text of one kernel instance; its kernel is named like the kind."""
    header = _Header()
    header.types(PTR=_C_INDEX[spec.ptr], IDX=_C_INDEX[spec.idx])
    header.constants(ISO=spec.iso)
    if kind in ROLES:
        _FILL[ROLES[kind]](spec, header)
    return "\n".join([_before(), *header.text, "", piece(f"{kind}.cu")])


@cache
def _before() -> str:
    flags = "".join(f"const long long {name} = {getattr(interface, name)};\n" for name in FLAGS)
    return f"{flags}\n{piece('prelude.cuh')}"


def fused(kind: str, spec: Spec) -> bool:
    """Whether the instance may use fused multiply-add: only the built-in plus_times."""
    return ROLES.get(kind) in ("product", "mxm") and spec.op.name == "plus_times"


def thunk_type(spec: Spec) -> DataType | None:
    """The type of the run-time scalar of an operator, or None if it has none."""
    types = dict(spec.op.program.params)
    return types.get({"left": "x", "right": "y"}.get(spec.bound, "t"))


_C_INDEX = {"int32": "int", "int64": "long long"}


@cache
def piece(name: str) -> str:
    """A text of src/, with those that it includes."""
    return re.sub(r'#include "(.+)"\n', lambda found: piece(found[1]) + "\n", (SOURCES / name).read_text())


class _Header:
    """The generated part of a text, line by line."""

    def __init__(self) -> None:
        self.text: list[str] = []

    def types(self, **types: DataType | str) -> None:
        for name, dtype in types.items():
            self.text.append(f"typedef {dtype if isinstance(dtype, str) else dtype.c_type} {name};")

    def constants(self, **constants: bool) -> None:
        for name, value in constants.items():
            self.text.append(f"const bool {name} = {'true' if value else 'false'};")

    def function(self, name: str, program: Any) -> None:
        self.text.append(to_cuda(program, name).rstrip())

    def cast(self, name: str, source: DataType, target: DataType) -> None:
        self.function(name, cast_program(source, target))

    def define(self, declaration: str, expression: str) -> None:
        self.text.append(f"DEVICE {declaration} {{ return {expression}; }}")

    def monoid(self, monoid: Any, iso: bool) -> None:
        """Z, START, add, is_terminal and how many threads accumulate at once."""
        self.types(Z=monoid.dtype)
        self.constants(IS_ANY=monoid.is_any, SOON=iso or interface.ends_soon(monoid))
        self.text.append(f"#define START ({literal_cuda(monoid.start, monoid.dtype)})")
        self.function("add", monoid.binary.program)
        end = "true" if monoid.is_any else "false"
        self.define(
            "bool is_terminal(Z z)",
            end if monoid.terminal is None else f"z == {literal_cuda(monoid.terminal, monoid.dtype)}",
        )
        self.text.append(f"#define accumulate combine_{atomic_form(monoid)}")


def atomic_form(monoid: Any) -> str:
    """The form of atomics.cuh for a monoid, read off its formula: a native atomic if there is one, else "cas"."""
    body = monoid.binary.program.body
    if sorted(str(a.value) for a in body.args if a.op == "param") != ["x", "y"]:
        return "cas"
    if monoid.dtype is BOOL:
        forms = {"or": "or", "max": "or", "and": "and", "min": "and", "xor": "xor", "ne": "xor", "eq": "xnor"}
        return forms.get(body.op, "cas")
    if monoid.dtype.bits < 32:
        return "cas"
    bits = {"and": "and", "or": "or", "xor": "xor"}
    return ({"add": "sum", "min": "min", "max": "max"} | bits).get(body.op, "cas")


def _call(name: str, program: Any, **arguments: str) -> str:
    return f"{name}({', '.join(arguments[p] for p, _ in program.params)})"


def _product(spec: Spec, header: _Header) -> None:
    """term(a, x, inner, outer): one product, of an entry of A and one of x, as a value of the monoid."""
    multiply, flip = spec.op.multiply, spec.flip
    left, right = multiply.dtypes
    header.monoid(spec.op.monoid, spec.iso)
    header.types(T_A=spec.a, T_B=spec.b, T_OUT=spec.out or spec.op.monoid.dtype)
    header.cast("cast_a", spec.a, right if flip else left)
    header.cast("cast_x", spec.b, left if flip else right)
    header.cast("to_sum", multiply.return_type, spec.op.monoid.dtype)
    header.cast("to_out", spec.op.monoid.dtype, spec.out or spec.op.monoid.dtype)
    header.function("multiply", multiply.program)
    x, y = ("cast_x(x)", "cast_a(a)") if flip else ("cast_a(a)", "cast_x(x)")
    ids = {"i": "0", "k": "inner", "j": "outer"} if flip else {"i": "outer", "k": "inner", "j": "0"}
    header.define(
        "Z term(T_A a, T_B x, i64 inner, i64 outer)", f"to_sum({_call('multiply', multiply.program, x=x, y=y, **ids)})"
    )
    uses = multiply.program.uses
    reads_a, reads_x = interface.reads(spec)
    header.constants(READS_A=reads_a, READS_X=reads_x)
    header.constants(PARTIAL=spec.partial)
    header.constants(USES_INNER="k" in uses, USES_OUTER=("j" if flip else "i") in uses)


def _relax(spec: Spec, header: _Header) -> None:
    """A product; the monoid: replace(target, v) by many threads at once, better(a, b); the threads of a worker."""
    _product(spec, header)
    header.constants(SPREAD=spec.spread)
    form = atomic_form(spec.op.monoid)
    form = form if form in ("min", "max") else "cas"  # relax.cuh has these
    header.text.append(f"#define replace replace_{form}\n#define better better_{form}\n#define WORKER {spec.worker}")


def _combine(spec: Spec, header: _Header) -> None:
    header.monoid(spec.op, spec.iso)


def _drain(spec: Spec, header: _Header) -> None:
    header.types(T_OUT=spec.out or (spec.op.return_type if spec.op is not None else BOOL))
    header.constants(PARTIAL=spec.partial)


def _reduce(spec: Spec, header: _Header) -> None:
    header.monoid(spec.op, False)
    header.types(T_B=spec.b)
    header.cast("from_b", spec.b, spec.op.dtype)


def _write(spec: Spec, header: _Header) -> None:
    header.types(T_A=spec.a, T_B=spec.b)
    header.constants(HAS_OP=spec.op is not None)
    header.cast("only_b", spec.b, spec.a)
    if spec.op is None:
        return header.define("T_A both(T_A c, T_B t)", "only_b(t)")
    _both(spec, header, spec.a, "T_A both(T_A a, T_B b, i64 row = 0, i64 col = 0)")


def _both(spec: Spec, header: _Header, result: DataType, declaration: str, swapped: bool = False) -> None:
    """A binary operator of a value of a and one of b, cast to the result; swapped: b is its left operand."""
    first, second = reversed(spec.op.dtypes) if swapped else spec.op.dtypes
    header.cast("cast_a", spec.a, first)
    header.cast("cast_b", spec.b, second)
    header.cast("cast_both", spec.op.return_type, result)
    header.function("binary", spec.op.program)
    x, y = ("cast_b(b)", "cast_a(a)") if swapped else ("cast_a(a)", "cast_b(b)")
    header.define(declaration, f"cast_both({_call('binary', spec.op.program, x=x, y=y, **_ids(spec.op))})")


def _ewise(spec: Spec, header: _Header) -> None:
    out = spec.out or spec.op.return_type
    made = out if spec.then is None else spec.op.return_type
    header.types(T_A=spec.a, T_B=spec.b, T_C=spec.c or out, T_MADE=made, T_OUT=out)
    header.constants(IS_UNION=bool(spec.lone), IS_CHAIN=spec.then is not None)
    _both(spec, header, made, "T_MADE both(T_A a, T_B b, i64 row, i64 col)", swapped=spec.flip and spec.then is None)
    _one_sided(spec, header, made, "T_MADE")
    if spec.fold is not None:
        header.monoid(spec.fold, False)
        header.cast("from_out", out, spec.fold.dtype)
    if spec.then is None:
        return header.define("T_OUT then(T_MADE made, T_C)", "made")
    first, second = reversed(spec.then.dtypes) if spec.flip else spec.then.dtypes
    header.cast("cast_made", made, first)
    header.cast("cast_c", spec.c, second)
    header.function("last", spec.then.program)
    x, y = ("cast_c(c)", "cast_made(made)") if spec.flip else ("cast_made(made)", "cast_c(c)")
    header.define("T_OUT then(T_MADE made, T_C c)", _call("last", spec.then.program, x=x, y=y))


def _merge(spec: Spec, header: _Header) -> None:
    header.types(T_A=spec.a, T_B=spec.b, T_OUT=spec.out)
    header.constants(USES_COL=spec.op is not None and bool(spec.op.program.uses & {"j", "k"}))
    if spec.op is not None:
        _both(spec, header, spec.out, "T_OUT both(T_A a, T_B b, i64 row, i64 col)")
    _one_sided(spec, header, spec.out)
    if spec.op is None:
        header.define("T_OUT both(T_A a, T_B b, i64 row, i64 col)", "plain_a(a)")


def _one_sided(spec: Spec, header: _Header, out: DataType, result: str = "T_OUT") -> None:
    """only_a, only_b: what an entry of one operand alone becomes (itself, or the operator with the other's default)."""
    first, second = (BOOL, BOOL) if spec.op is None else spec.op.dtypes
    header.types(DEFAULT_A=first, DEFAULT_B=second)
    if spec.lone == "defaults":
        for name, x, y in (("a", "cast_a(v)", "bdefault"), ("b", "adefault", "cast_b(v)")):
            call = _call("binary", spec.op.program, x=x, y=y, **_ids(spec.op))
            kept, other = ("T_A", "DEFAULT_B bdefault") if name == "a" else ("T_B", "DEFAULT_A adefault")
            header.define(f"{result} only_{name}({kept} v, {other}, i64 row, i64 col)", f"cast_both({call})")
        return
    header.cast("plain_a", spec.a, out)
    header.cast("plain_b", spec.b, out)
    header.define(f"{result} only_a(T_A v, DEFAULT_B, i64, i64)", "plain_a(v)")
    header.define(f"{result} only_b(T_B v, DEFAULT_A, i64, i64)", "plain_b(v)")


def _ids(op: Any) -> dict[str, str]:
    """Positions where no product has an inner index: k is secondi's row, firstj's column."""
    return {"i": "row", "k": "row" if op.name.startswith("second") else "col", "j": "col"}


def _mxm(spec: Spec, header: _Header) -> None:
    """term(a, b, row, inner, col): one product as a value of the monoid."""
    multiply, monoid = spec.op.multiply, spec.op.monoid
    header.monoid(monoid, spec.iso)
    header.types(T_A=spec.a, T_B=spec.b, T_OUT=monoid.dtype)
    header.cast("cast_a", spec.a, multiply.dtypes[0])
    header.cast("cast_b", spec.b, multiply.dtypes[-1])
    header.cast("to_sum", multiply.return_type, monoid.dtype)
    header.function("multiply", multiply.program)
    call = _call("multiply", multiply.program, x="cast_a(a)", y="cast_b(b)", i="row", k="inner", j="col")
    header.define("Z term(T_A a, T_B b, i64 row, i64 inner, i64 col)", f"to_sum({call})")
    uses = multiply.program.uses
    header.constants(READS_A="x" in uses, READS_B="y" in uses, USES_INNER="k" in uses, USES_COL="j" in uses)


def _runs(spec: Spec, header: _Header) -> None:
    op = getattr(spec.op, "binary", spec.op)
    header.types(T_B=spec.b)
    header.cast("cast_x", spec.b, op.dtypes[0])
    header.cast("cast_y", spec.b, op.dtypes[-1])
    header.cast("cast_out", op.return_type, spec.b)
    header.function("binary", op.program)
    call = _call("binary", op.program, x="cast_x(x)", y="cast_y(y)", i="0", k="0", j="0")
    header.define("T_B both(T_B x, T_B y)", f"cast_out({call})")


def _map(spec: Spec, header: _Header, stored: DataType, kept: str) -> None:
    """of_entry(x, row, col, thunk): a unary, index-unary or select operator, or a binary one with the thunk bound."""
    op, thunk = spec.op, thunk_type(spec)
    operand = dict(op.program.params).get("y" if spec.bound == "left" else "x", stored)
    header.types(**{kept: stored}, T_OUT=spec.out or op.return_type, THUNK=thunk or "long long")
    header.cast("cast_x", stored, operand)
    header.cast("to_out", op.return_type, spec.out or op.return_type)
    header.function("operation", op.program)
    x, y = ("thunk", "cast_x(x)") if spec.bound == "left" else ("cast_x(x)", "thunk")
    call = _call("operation", op.program, x=x, y=y, t="thunk", i="row", k="0", j="col")
    header.define(f"{op.return_type.c_type} of_entry({kept} x, i64 row, i64 col, THUNK thunk)", call)
    uses = op.program.uses
    header.constants(READS_X=("y" if spec.bound == "left" else "x") in uses, USES_ROW="i" in uses, USES_COL="j" in uses)


def _scale(spec: Spec, header: _Header) -> None:
    """scaled(a, b): an entry, and the value of its row or column."""
    op, left = spec.op, spec.bound == "left"
    header.types(T_A=spec.a, T_B=spec.b, T_OUT=op.return_type)
    header.cast("cast_a", spec.a, op.dtypes[-1 if left else 0])
    header.cast("cast_b", spec.b, op.dtypes[0 if left else -1])
    header.function("operation", op.program)
    x, y = ("cast_b(b)", "cast_a(a)") if left else ("cast_a(a)", "cast_b(b)")
    header.define("T_OUT scaled(T_A a, T_B b)", _call("operation", op.program, x=x, y=y))
    reads_a, reads_b = (name in op.program.uses for name in ("yx" if left else "xy"))
    header.constants(BY_ROW=left, READS_A=reads_a, READS_B=reads_b)


def _truth(spec: Spec, header: _Header) -> None:
    header.types(T_B=spec.b)
    header.cast("truth", spec.b, BOOL)


_FILL: dict[str, Callable[[Spec, _Header], None]] = {
    "product": _product,
    "combine": _combine,
    "drain": _drain,
    "write": _write,
    "ewise": _ewise,
    "map": lambda spec, header: _map(spec, header, spec.b, "T_B"),
    "reduce": _reduce,
    "truth": _truth,
    "values": lambda spec, header: header.types(T_B=spec.b),
    "matrix_map": lambda spec, header: _map(spec, header, spec.a, "T_A"),
    "scale": _scale,
    "merge": _merge,
    "mxm": _mxm,
    "runs": _runs,
    "moved": lambda spec, header: header.types(T_A=spec.a),
    "relax": _relax,
}
