"""One typed scalar program, printed twice: as Python source and as CUDA C++. Both compute the same bits.

The Python text may assume `import math, numpy as np`; kernels/llvm.py compiles it. The CUDA text needs no include
(NVRTC's built-in math) and must be compiled without fused multiply-add. Nodes used once are printed in place, where
that nests not too deep; others get a name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gbgpu.errors import UdfParseError
from gbgpu.semiring._helpers import HELPERS, helpers
from gbgpu.semiring._scalar import Node, Program, cast, ordered, trace
from gbgpu.semiring._types import BOOL, FP32, UINT32, UINT64, DataType, convert, lookup_dtype

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<="}
_ARITH = {"add": "+", "sub": "-", "mul": "*"}
_BITS = {"and": "&", "or": "|", "xor": "^"}
# Operators that read an operand more than once, so that it must be a name or a literal.
_REPEATS = {"floordiv", "mod", "min", "max", "abs"}
_DEEPEST = 24  # operations inside each other in one expression: parsers and compilers have their limits
MOST = 5_000  # operations of one formula
# What NumPy has a function for, so that it takes any number of a type, or math under another name.
_NUMPY_ONLY = {"cbrt", "exp2", "rint", "fmod", "floor", "ceil", "trunc", "nextafter"}
_PYTHON_NAMES = {"tgamma": "math.gamma", **{name: f"np.{name}" for name in _NUMPY_ONLY}}


def to_text(program: Program, name: str) -> str:
    """Python source `def name(x, y): ...`."""
    lines, result = _Printer(_python_text, _python_line).body(program)
    head = ", ".join(p for p, _ in program.params)
    return "\n".join([f"def {name}({head}):", *helpers(program, "python"), *lines, f"    return {result}", ""])


def to_cuda(program: Program, name: str) -> str:
    """CUDA C++ source `__device__ __forceinline__ int name(int x, int y) { ... }`."""
    lines, result = _Printer(_cuda_text, _cuda_line).body(program)
    head = ", ".join(f"{dtype.c_type} {p}" for p, dtype in program.params)
    declare = f"__device__ __forceinline__ {program.result.c_type} {name}({head}) {{"
    return "\n".join([declare, *helpers(program, "cuda"), *lines, f"    return {result};", "}", ""])


@lru_cache(4096)
def to_python(program: Program) -> Callable:
    """The program as a Python function of NumPy scalars, for checks and single values."""
    space: dict[str, Any] = {"math": _NumpyMath, "np": np}
    exec(to_text(program, "scalar"), space)  # the text is our own printing
    scalar, types = space["scalar"], [dtype.np_type.type for _, dtype in program.params]

    def run(*values):
        with np.errstate(all="ignore"):
            return program.result.np_type.type(scalar(*[kind(v) for kind, v in zip(types, values, strict=True)]))

    return run


@cache
def cast_program(src: DataType, dst: DataType) -> Program:
    """The program (parameter "x") that turns `src` into `dst` by SuiteSparse's rules."""
    return trace(lambda x: cast(x, lookup_dtype(dst)), [("x", lookup_dtype(src))])


class _Printer:
    """Prints a program's nodes with one dialect: `text(node, operands)` and `line(name, node, text)`."""

    def __init__(self, text: Callable[[Node, list[str]], str], line: Callable[[str, Node, str], str]) -> None:
        self.text = text
        self.line = line

    def body(self, program: Program) -> tuple[list[str], str]:
        order = ordered(program.body)
        if (operations := sum(bool(n.args) for n in order)) > MOST:
            raise UdfParseError(f"a formula of {operations} operations is too long; at most {MOST} are compiled")
        named = self._named(order, {name for name, _ in program.params})
        printed: dict[int, str] = {}
        lines = []
        for n in order:
            text = self.text(n, [printed[id(a)] for a in n.args])
            if id(n) in named:
                lines.append(self.line(named[id(n)], n, text))
                text = named[id(n)]
            printed[id(n)] = text
        return lines, printed[id(program.body)]

    @staticmethod
    def _named(order: list[Node], taken: set[str]) -> dict[int, str]:
        uses: dict[int, int] = {}
        for n in order:
            weight = 2 if n.op in _REPEATS or _saturates(n) else 1
            for a in n.args:
                uses[id(a)] = uses.get(id(a), 0) + weight
        names = (f"t{i}" for i in range(len(order) + len(taken)) if f"t{i}" not in taken)
        named: dict[int, str] = {}
        depth: dict[int, int] = {}
        for n in order:
            depth[id(n)] = 1 + max((depth[id(a)] for a in n.args), default=0)
            if n.args and (uses.get(id(n), 0) > 1 or depth[id(n)] > _DEEPEST):
                named[id(n)] = next(names)
                depth[id(n)] = 0
        return named


def _saturates(n: Node) -> bool:
    return n.op == "cast" and n.dtype.kind in "iu" and n.args[0].dtype.kind == "f"


# --- Python ----------------------------------------------------------------------------------------------------------


def _np_name(dtype: DataType) -> str:
    return "np.bool_" if dtype is BOOL else f"np.{dtype.np_type.name}"


def literal_text(value: Any, dtype: DataType) -> str:
    """The value as Python source of exactly this type."""
    value = convert(value, dtype)
    if dtype is BOOL:
        return str(bool(value))
    if dtype.kind in "iu":
        return f"{_np_name(dtype)}({int(value)})"
    text = "np.nan" if np.isnan(value) else repr(float(value)).replace("inf", "np.inf")
    return f"{_np_name(dtype)}({text})"


def _python_line(name: str, n: Node, text: str) -> str:
    return f"    {name} = {text}"


def _python_text(n: Node, args: list[str]) -> str:
    op, dtype = n.op, n.dtype
    if op == "param":
        return str(n.value)
    if op == "const":
        return literal_text(n.value, dtype)
    if op in _COMPARE:
        return f"({args[0]} {_COMPARE[op]} {args[1]})"
    if op == "select":
        return f"({args[1]} if {args[0]} else {args[2]})"
    if dtype is BOOL:
        return _python_bool(op, args)
    if op == "cast":
        return _saturated(n, args[0], _python_dialect) if _saturates(n) else f"{_np_name(dtype)}({args[0]})"
    return f"{_np_name(dtype)}({_python_value(n, args)})"


def _python_bool(op: str, args: list[str]) -> str:
    if op == "not":
        return f"(not {args[0]})"
    words = {"and": "and", "or": "or", "xor": "!=", "min": "and", "max": "or"}
    return f"({args[0]} {words[op]} {args[1]})"


def _python_value(n: Node, args: list[str]) -> str:
    op, first, last = n.op, args[0], args[-1]
    if op in _ARITH or op in _BITS:  # smaller integers are summed in 64 bits
        return f"{first} {(_ARITH | _BITS)[op]} {last}"
    if op == "call":
        name = n.value if n.value in HELPERS else _PYTHON_NAMES.get(n.value, f"math.{n.value}")
        return f"{name}({', '.join(args)})"
    if op in ("min", "max"):
        return _extreme(n, args, _python_dialect)
    return _python_integer(n, first, last) if n.dtype.kind in "iu" else _python_float(n, first, last)


def _python_float(n: Node, first: str, last: str) -> str:
    return {"div": f"np.divide({first}, {last})", "neg": f"-{first}", "abs": f"math.fabs({first})"}[n.op]


def _python_integer(n: Node, first: str, last: str) -> str:
    zero = literal_text(0, n.dtype)
    negative = f"{zero} - {first}"
    divided, traps = f"{first} // {last}", f"{last} == 0"
    if n.dtype.kind == "i":  # -1 apart: the quotient of the smallest integer does not fit, and traps
        divided, traps = f"{divided} if {last} != -1 else {negative}", f"{traps} or {last} == -1"
    texts = {
        "neg": negative,
        "not": f"~{first}",
        "abs": f"{first} if {first} >= 0 else {negative}",
        "shl": f"{first} << {last}",
        "shr": f"{first} >> {last}",
        "floordiv": f"{zero} if {last} == 0 else ({divided})",
        "mod": f"{zero} if {traps} else {first} % {last}",
    }
    return texts[n.op]


class _python_dialect:
    literal = staticmethod(literal_text)
    either, both = "|", "&"  # not `or`, `and`: branches that ties mispredict cost more than the comparisons

    @staticmethod
    def choose(test: str, yes: str, no: str) -> str:
        return f"({yes} if {test} else {no})"

    @staticmethod
    def truncate(x: str, dtype: DataType) -> str:
        return f"{_np_name(dtype)}({x})"

    @staticmethod
    def sign(x: str, dtype: DataType, relation: str) -> str:
        return f"math.copysign(1.0, {x}) {relation} 0.0"


# --- CUDA ------------------------------------------------------------------------------------------------------------


def literal_cuda(value: Any, dtype: DataType) -> str:
    """The value as C++ source of exactly this type; inf, NaN and the smallest integers included."""
    value = convert(value, dtype)
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype.kind in "iu":
        return _c_integer(int(value), dtype)
    return _c_float(value, "f" if dtype is FP32 else "")


def _c_integer(value: int, dtype: DataType) -> str:
    if dtype.bits < 32:
        return f"(({dtype.c_type}){value})"
    suffix = ("u" if dtype.kind == "u" else "") + ("LL" if dtype.bits == 64 else "")
    if dtype.kind == "i" and value == np.iinfo(dtype.np_type).min:
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


def _c_float(value: np.floating, suffix: str) -> str:
    if not np.isfinite(value):  # by its bits: NVRTC has neither INFINITY nor the compilers' built-in functions for it
        kind, bits = ("float", UINT32) if suffix else ("double", UINT64)
        return f"__builtin_bit_cast({kind}, {_c_integer(int(value.view(bits.np_type)), bits)})"
    text = str(value)  # the shortest digits that give this value back in its own type
    text = text if any(mark in text for mark in ".e") else text + ".0"
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"


def _cuda_line(name: str, n: Node, text: str) -> str:
    return f"    const {n.dtype.c_type} {name} = {text};"


def _cuda_text(n: Node, args: list[str]) -> str:
    op, dtype = n.op, n.dtype
    if op == "param":
        return str(n.value)
    if op == "const":
        return literal_cuda(n.value, dtype)
    if op in _COMPARE:
        return f"({args[0]} {_COMPARE[op]} {args[1]})"
    if op == "select":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if dtype is BOOL:
        return _cuda_bool(op, args)
    if op == "cast":
        return _saturated(n, args[0], _cuda_dialect) if _saturates(n) else f"(({dtype.c_type}){args[0]})"
    if op == "call":
        return f"{n.value}{'f' if dtype is FP32 else ''}({', '.join(args)})"
    if op in ("min", "max"):
        return _extreme(n, args, _cuda_dialect)
    return _cuda_integer(n, args) if dtype.kind in "iu" else _cuda_float(n, args)


def _cuda_bool(op: str, args: list[str]) -> str:
    if op == "not":
        return f"(!{args[0]})"
    words = {"and": "&&", "or": "||", "xor": "!=", "min": "&&", "max": "||"}
    return f"({args[0]} {words[op]} {args[1]})"


def _cuda_integer(n: Node, args: list[str]) -> str:
    """Sums go through unsigned words, where wrap is defined; small types are ints to C++, and cast back."""
    op, first, last = n.op, args[0], args[-1]
    own, word = n.dtype.c_type, "unsigned long long" if n.dtype.bits == 64 else "unsigned int"
    if op in _ARITH:
        return f"(({own})(({word}){first} {_ARITH[op]} ({word}){last}))"
    if op in _BITS:
        return f"({first} {_BITS[op]} {last})"
    minus = f"({own})(0u - ({word}){first})"
    rest = f"({first} % {last})"
    moved = f"({rest} != 0 && (({first} < 0) != ({last} < 0)))"
    divided, left = f"{first} / {last}", rest
    if n.dtype.kind == "i":
        divided = f"{last} == -1 ? {minus} : {divided} - ({moved} ? 1 : 0)"
        left = f"{last} == -1 ? 0 : {rest} + ({moved} ? {last} : 0)"
    texts = {
        "neg": f"({minus})",
        "not": f"(({own})~{first})",
        "abs": f"({first} < 0 ? {minus} : {first})",
        "shl": f"(({own})(({word}){first} << {last}))",
        "shr": f"(({own})({first} >> {last}))",
        "floordiv": f"({last} == 0 ? 0 : {divided})",
        "mod": f"({last} == 0 ? 0 : {left})",
    }
    return texts[op]


def _cuda_float(n: Node, args: list[str]) -> str:
    if n.op in _ARITH:
        return f"({args[0]} {_ARITH[n.op]} {args[1]})"
    suffix = "f" if n.dtype is FP32 else ""
    if n.op == "abs":
        return f"fabs{suffix}({args[0]})"
    return f"({args[0]} / {args[1]})" if n.op == "div" else f"(-{args[0]})"


class _cuda_dialect:
    literal = staticmethod(literal_cuda)
    either, both = "||", "&&"

    @staticmethod
    def choose(test: str, yes: str, no: str) -> str:
        return f"({test} ? {yes} : {no})"

    @staticmethod
    def truncate(x: str, dtype: DataType) -> str:
        return f"({dtype.c_type}){x}"

    @staticmethod
    def sign(x: str, dtype: DataType, relation: str) -> str:
        suffix = "f" if dtype is FP32 else ""
        return f"copysign{suffix}(1.0{suffix}, {x}) {relation} 0.0{suffix}"


# --- what both share -------------------------------------------------------------------------------------------------


def _extreme(n: Node, args: list[str], dialect: Any) -> str:
    """The min or max of numbers: NaN is ignored, and -0.0 lies below 0.0 so that no order of operands shows."""
    x, y = args
    before = f"{x} < {y}" if n.op == "min" else f"{y} < {x}"
    if n.dtype.kind in "iu":
        return dialect.choose(before, x, y)
    # Between equals the sign of y decides. Only y: x is mostly an accumulator, and y's share is computed ahead of it.
    sign = dialect.sign(y, n.dtype, ">" if n.op == "min" else "<")
    tie = f"(({x} == {y}) {dialect.both} ({sign}))"
    return dialect.choose(f"(({before}) {dialect.either} ({y} != {y}) {dialect.either} {tie})", x, y)


def _saturated(n: Node, x: str, dialect: Any) -> str:
    """Float to integer: NaN gives 0, values outside give the nearest integer."""
    dtype, source = n.dtype, n.args[0].dtype
    info = np.iinfo(dtype.np_type)
    top, bottom = dialect.literal(float(info.max + 1), source), dialect.literal(float(info.min), source)
    inside = dialect.choose(f"{x} <= {bottom}", dialect.literal(info.min, dtype), dialect.truncate(x, dtype))
    inside = dialect.choose(f"{x} >= {top}", dialect.literal(info.max, dtype), inside)
    return dialect.choose(f"{x} != {x}", dialect.literal(0, dtype), inside)


class _NumpyMath:
    """The functions of `math` that the Python text calls, without Python's domain errors."""

    asin, acos, atan, atan2 = np.arcsin, np.arccos, np.arctan, np.arctan2
    asinh, acosh, atanh = np.arcsinh, np.arccosh, np.arctanh
    fabs, sqrt, exp, expm1 = np.fabs, np.sqrt, np.exp, np.expm1
    log, log2, log10, log1p = np.log, np.log2, np.log10, np.log1p
    sin, cos, tan, sinh, cosh, tanh = np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh
    floor, ceil, trunc, hypot, fmod, copysign = np.floor, np.ceil, np.trunc, np.hypot, np.fmod, np.copysign
    frexp, ldexp = np.frexp, np.ldexp

    @staticmethod
    def pow(x, y):
        try:
            return math.pow(x, y)
        except (ValueError, OverflowError):
            return np.power(x, y)

    @staticmethod
    def erf(x):
        return math.erf(x)

    @staticmethod
    def erfc(x):
        return math.erfc(x)

    @staticmethod
    def lgamma(x):
        try:
            return math.lgamma(x)
        except (ValueError, OverflowError):  # a pole, or too large
            return math.inf

    @staticmethod
    def gamma(x):
        try:
            return math.gamma(x)
        except ValueError:  # a pole
            return math.copysign(math.inf, x) if x == 0 else math.nan
        except OverflowError:
            return math.copysign(math.inf, x)


__all__ = ["cast_program", "literal_cuda", "literal_text", "to_cuda", "to_text", "to_python"]
