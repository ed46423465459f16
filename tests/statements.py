"""Random statements as source text, so that gbgpu and python-graphblas run the very same spelling.

A `Program` is a few objects (by name, with their contents) and a few statements over them. Names tell all:
`x_r_fp32` is a vector with one place a row of A, `y_c_bool` one a column, `A_int64` a matrix, `s_fp32` a scalar. When
the matrix is square, rows and columns are one index space (`r`), so statements read what earlier ones wrote.

The lists of operators and types are short on purpose: each entry is a few compiled kernels. `WIDE` adds the rest.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

WIDE = os.environ.get("GBGPU_TEST_PROFILE") == "long"
NP = {"BOOL": np.bool_, "INT32": np.int32, "INT64": np.int64, "FP32": np.float32, "FP64": np.float64}
SIZES = [0, 1, 2, 3, 5, 7, 8, 20, 33, 63, 64, 65, 70]
LARGE = [127, 128, 129, 150, 200]  # several 64-bit words, on every one of seven devices


# ---------------------------------------------------------------- objects


class Key(NamedTuple):
    """An object of a program: a letter, its space (r, c: vectors; rc: matrix; s: scalar) and its type."""

    letter: str
    space: str
    dtype: str

    @property
    def name(self) -> str:
        space = "" if self.space in ("rc", "s") else self.space + "_"
        return f"{self.letter}_{space}{self.dtype.lower()}"


class Content(NamedTuple):
    """What an object holds at first. Everything follows from a seed, so that large objects cost no more to draw."""

    pattern: str
    density: float
    palette: str
    iso: bool
    seed: int


class Shape(NamedTuple):
    """Rows and columns of the matrices; `c` is the same space as `r` in a square program."""

    nrows: int
    ncols: int

    def column_space(self) -> str:
        return "r" if self.nrows == self.ncols else "c"

    def size(self, space: str) -> int:
        return self.nrows if space == "r" else self.ncols


def values(dtype: str, palette: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Small integers keep float sums exact whatever their order; `edge` holds the values at the ends of a type."""
    kind = NP[dtype]
    if dtype == "BOOL":
        return rng.integers(0, 2, count).astype(kind)
    if palette == "edge" and dtype.startswith("FP"):
        pool = np.array([np.inf, -np.inf, np.nan, 0, 1, -1, 0.5, np.finfo(kind).smallest_subnormal, 3e9], kind)
        return rng.choice(pool, count)
    if palette == "edge":
        limits = np.iinfo(kind)
        return rng.choice(np.array([limits.min, limits.max, limits.max - 1, -1, 0, 1, 2], kind), count)
    low, high = (0, 2) if palette == "zero one" else (-4, 8)
    return rng.integers(low, high, count).astype(kind)


def cells(shape: tuple[int, ...], content: Content, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Which places are present, in ascending order."""
    present = rng.random(shape) < content.density
    match content.pattern:
        case "empty":
            present[...] = False
        case "full":
            present[...] = True
        case "diagonal" if len(shape) == 2:
            present = np.eye(*shape, dtype=bool)
        case "path" if len(shape) == 2:
            present = np.eye(*shape, k=1, dtype=bool)
        case "hub row" if present.size:
            present[shape[0] // 2, ...] = True
        case "hub column" if present.size:
            present[..., shape[-1] // 2] = True
    return np.nonzero(present)


def arrays(key: Key, content: Content, shape: Shape):
    """Indices and values of an object; one value instead of an array when it is iso."""
    rng = np.random.default_rng(content.seed)
    full = (shape.nrows, shape.ncols) if key.space == "rc" else (shape.size(key.space),)
    where = cells(full, content, rng)
    if content.iso and where[0].size:  # SuiteSparse 9.4 finds entries in iso matrices without columns
        return where, values(key.dtype, content.palette, 1, rng)[0]
    return where, values(key.dtype, content.palette, where[0].size, rng)


def make(module, key: Key, where, what, shape: Shape):
    """The object with these entries, made by `module` (gbgpu or graphblas)."""
    if key.space == "rc":
        handle = module.Matrix.from_coo(*where, what, dtype=key.dtype, nrows=shape.nrows, ncols=shape.ncols)
    else:
        handle = module.Vector.from_coo(*where, what, dtype=key.dtype, size=shape.size(key.space))
    if module.__name__ == "graphblas":
        # SuiteSparse 9.3 and 9.4 corrupt memory when a full vector is accumulated into under a sparse mask, and
        # around iso full vectors; kept sparse, they do not
        handle.ss.config["sparsity_control"] = "sparse"
    return handle


def build(module, key: Key, content: Content, shape: Shape):
    """The object a program starts with."""
    return module.Scalar(key.dtype) if key.space == "s" else make(module, key, *arrays(key, content, shape), shape)


def build_text(key: Key, content: Content, shape: Shape) -> str:
    """`build` as a line of a script that reproduces a failure."""
    if key.space == "s":
        return f"{key.name} = gb.Scalar({key.dtype!r})"
    where, what = arrays(key, content, shape)
    lists = ", ".join(str(ids.tolist()) for ids in where)
    if key.space == "rc":
        size, kind = f"nrows={shape.nrows}, ncols={shape.ncols}", "Matrix"
    else:
        size, kind = f"size={shape.size(key.space)}", "Vector"
    return f"{key.name} = gb.{kind}.from_coo({lists}, {what.tolist()}, dtype={key.dtype!r}, {size})"


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Statement:
    """`target(args)[index] << rhs`, or `rhs` as it stands when raw. `check` says how results may differ:
    exact: not at all (NaN equals NaN); sum: a float sum in another order; ulp: a function of the math library;
    any: one of the candidates; nan: NaN for SuiteSparse's identity.
    """

    target: Key
    rhs: str
    uses: tuple[Key, ...]
    mask: str = ""
    accum: str = ""
    replace: bool = False
    keywords: bool = False
    index: str = ""
    hints: str = ""
    check: str = "exact"
    raw: bool = False

    def text(self, hints: bool = True) -> str:
        if self.raw:
            return self.rhs
        if self.keywords:
            parts = [f"mask={self.mask}" if self.mask else "", f"accum={self.accum}" if self.accum else ""]
            parts.append("replace=True" if self.replace else "")
        else:
            parts = [self.mask, self.accum, "replace" if self.replace else ""]
        args = ", ".join(part for part in [*parts, self.hints if hints else ""] if part)
        return f"{self.target.name}{f'({args})' if args else ''}{self.index} << {self.rhs}"


@dataclass(frozen=True, repr=False)
class Program:
    shape: Shape
    contents: dict[Key, Content]
    statements: tuple[Statement, ...]

    def __repr__(self) -> str:
        return f"Program({self.shape}, {[statement.text() for statement in self.statements]})"

    def _repr_pretty_(self, printer, cycle) -> None:
        printer.text(repr(self))  # hypothesis would print every field; the failure's script says more

    def script(self, upto: int) -> str:
        """A stand-alone script with the first `upto` statements."""
        used = {key for statement in self.statements[:upto] for key in statement.uses}
        lines = [build_text(key, content, self.shape) for key, content in self.contents.items() if key in used]
        return "\n".join(lines + [statement.text() for statement in self.statements[:upto]])


PRODUCTS = [  # semiring, type of the vector, of the matrix, of the output, accumulator
    ("any_pair", "BOOL", "BOOL", "BOOL", "lor"),
    ("min_plus", "INT32", "INT32", "INT32", "min"),
    ("min_plus", "INT64", "INT64", "INT64", "min"),
    ("min_plus", "FP32", "FP32", "FP32", "min"),
    ("min_plus", "FP64", "FP64", "FP64", "min"),
    ("plus_times", "FP32", "FP32", "FP32", "plus"),
    ("plus_times", "FP64", "FP64", "FP64", "plus"),
    ("plus_times", "INT32", "INT32", "INT64", "plus"),
    ("plus_second", "FP64", "BOOL", "FP64", "plus"),
    ("min_second", "INT64", "INT64", "INT64", "min"),
    ("min_first", "INT32", "BOOL", "INT32", "second"),
    ("lor_land", "BOOL", "BOOL", "BOOL", "lor"),
    ("max_minus", "FP32", "INT32", "FP64", "max"),
    ("plus_pair", "BOOL", "BOOL", "INT64", "plus"),
    ("any_second", "INT64", "INT64", "INT64", ""),
    ("any_secondi", "INT64", "BOOL", "INT64", ""),
    ("min_firstj", "BOOL", "BOOL", "INT64", "min"),
]
MORE_PRODUCTS = [
    ("any_pair", "INT32", "FP32", "BOOL", "land"),
    ("any_pair", "FP64", "FP64", "INT32", "first"),
    ("any_first", "FP32", "FP32", "FP32", ""),
    ("plus_times", "INT64", "INT64", "INT64", "minus"),
    ("plus_times", "BOOL", "FP32", "FP32", "plus"),
    ("plus_second", "FP32", "FP32", "FP32", "plus"),
    ("plus_second", "INT32", "INT32", "INT32", "plus"),
    ("plus_first", "INT64", "FP32", "FP64", "plus"),
    ("min_second", "FP32", "FP32", "FP32", "min"),
    ("min_second", "BOOL", "BOOL", "BOOL", "land"),
    ("min_first", "FP64", "FP64", "FP64", "min"),
    ("lor_land", "INT32", "INT32", "BOOL", "lxor"),
    ("lor_land", "FP32", "FP64", "BOOL", "lor"),
    ("land_lor", "BOOL", "BOOL", "BOOL", "land"),
    ("lxor_land", "BOOL", "BOOL", "BOOL", "lxor"),
    ("max_times", "INT32", "INT32", "INT32", "max"),
    ("max_first", "BOOL", "INT32", "INT32", "max"),
    ("times_plus", "INT32", "INT32", "INT32", "times"),
    ("min_max", "FP32", "FP32", "FP32", "min"),
    ("plus_minus", "INT64", "INT32", "INT64", "plus"),
    ("plus_rminus", "FP64", "FP64", "FP64", "rminus"),
    ("max_second", "INT64", "INT64", "FP32", "plus"),
    ("min_secondi", "FP32", "FP32", "INT64", "min"),
    ("max_firsti", "BOOL", "BOOL", "INT64", "max"),
    ("plus_secondj", "INT32", "BOOL", "INT64", "plus"),
]

EWISE = [  # operator, types of both operands, of the output
    ("plus", "INT32", "INT32", "INT32"),
    ("plus", "FP64", "FP64", "FP64"),
    ("plus", "INT32", "FP32", "FP64"),
    ("minus", "INT64", "INT64", "INT64"),
    ("minus", "FP32", "FP32", "FP32"),
    ("times", "FP32", "FP32", "FP32"),
    ("truediv", "INT32", "INT32", "FP64"),
    ("truediv", "FP64", "FP64", "FP64"),
    ("min", "FP32", "FP32", "FP32"),
    ("max", "INT64", "INT64", "INT64"),
    ("first", "INT32", "INT32", "INT32"),
    ("second", "FP64", "FP64", "FP64"),
    ("lor", "BOOL", "BOOL", "BOOL"),
    ("land", "BOOL", "BOOL", "BOOL"),
    ("ne", "INT32", "INT32", "BOOL"),
    ("lt", "FP32", "FP32", "BOOL"),
    ("ge", "INT64", "INT64", "BOOL"),
]
MORE_EWISE = [
    ("plus", "BOOL", "BOOL", "BOOL"),
    ("plus", "INT64", "INT64", "INT32"),
    ("minus", "BOOL", "BOOL", "BOOL"),
    ("rminus", "INT32", "INT32", "INT32"),
    ("times", "BOOL", "INT64", "INT64"),
    ("times", "INT32", "INT32", "FP32"),
    ("truediv", "BOOL", "BOOL", "FP64"),
    ("truediv", "FP32", "FP32", "FP32"),
    ("min", "INT32", "INT32", "INT32"),
    ("min", "BOOL", "BOOL", "BOOL"),
    ("max", "FP64", "FP64", "FP64"),
    ("max", "FP32", "FP64", "INT32"),
    ("pair", "FP64", "FP64", "FP64"),
    ("land", "INT32", "INT32", "BOOL"),
    ("lor", "FP32", "FP32", "FP32"),
    ("lxor", "BOOL", "BOOL", "BOOL"),
    ("lxnor", "BOOL", "BOOL", "BOOL"),
    ("eq", "FP64", "FP64", "BOOL"),
    ("gt", "INT32", "FP64", "BOOL"),
    ("le", "BOOL", "BOOL", "BOOL"),
]

APPLY = [  # text with {x}, type of x, of the output, check
    ("unary.abs({x})", "INT32", "INT32", "exact"),
    ("unary.ainv({x})", "FP64", "FP64", "exact"),
    ("unary.lnot({x})", "BOOL", "BOOL", "exact"),
    ("unary.one({x})", "INT64", "INT64", "exact"),
    ("unary.minv({x})", "FP32", "FP32", "exact"),
    ("unary.sqrt({x})", "FP64", "FP64", "ulp"),
    ("unary.exp({x})", "FP32", "FP32", "ulp"),
    ("{x}.apply(unary.identity)", "FP64", "INT32", "exact"),
    ("binary.plus({x}, right=3)", "INT64", "INT64", "exact"),
    ("{x}.apply(binary.minus, left=1)", "INT32", "INT32", "exact"),
    ("binary.times({x}, 0.5)", "FP32", "FP32", "exact"),
    ("binary.floordiv({x}, right=3)", "INT32", "INT32", "exact"),
    ("{x}.apply('>=', right=2)", "FP32", "BOOL", "exact"),
    ("indexunary.index({x}, 1)", "BOOL", "INT64", "exact"),
]
MORE_APPLY = [
    ("unary.abs({x})", "FP32", "FP32", "exact"),
    ("unary.ainv({x})", "INT32", "INT32", "exact"),
    ("unary.lnot({x})", "INT32", "INT32", "exact"),
    ("unary.minv({x})", "FP64", "FP64", "exact"),
    ("unary.log({x})", "FP64", "FP64", "ulp"),
    ("unary.sqrt({x})", "INT64", "FP64", "ulp"),
    ("unary.identity({x})", "FP32", "INT64", "exact"),
    ("unary.identity({x})", "INT64", "FP32", "exact"),
    ("{x}.apply(unary.identity)", "INT64", "INT32", "exact"),
    ("{x}.apply(unary.identity)", "FP32", "BOOL", "exact"),
    ("binary.min({x}, right=2)", "INT32", "INT32", "exact"),
    ("{x}.apply(binary.max, left=1.5)", "FP64", "FP64", "exact"),
    ("binary.first({x}, right=9)", "INT64", "INT64", "exact"),
    ("binary.second({x}, right=9)", "BOOL", "INT32", "exact"),
    ("{x}.apply(binary.truediv, left=1)", "INT32", "FP64", "exact"),
    ("binary.floordiv({x}, right=-2.5)", "FP64", "FP64", "exact"),
    ("{x}.apply(binary.eq, left=1)", "INT32", "BOOL", "exact"),
    ("{x}.apply(indexunary.valuegt, 1.0)", "FP64", "BOOL", "exact"),
]

SELECT = [  # text with {x}, type of x (and of the output); python-graphblas misreads thunks of another type than x
    ("select.valuegt({x}, np.float32(1))", "FP32"),
    ("select.valuene({x}, np.int32(0))", "INT32"),
    ("select.valueeq({x}, True)", "BOOL"),
    ("{x}.select('<=', 2)", "INT64"),
    ("select.indexle({x}, 4)", "FP64"),
]
MORE_SELECT = [
    ("select.valuelt({x}, np.int32(2))", "INT32"),
    ("select.valuege({x}, 0.5)", "FP64"),
    ("select.valueeq({x}, 3)", "INT64"),
    ("select.valuele({x}, np.float32(0))", "FP32"),
    ("{x}.select('!=', np.float32(1))", "FP32"),
    ("select.indexgt({x}, 2)", "BOOL"),
    ("{x}.select(select.indexgt, 6)", "INT32"),
]

REDUCE = [  # monoid, type of the operand, of the result
    ("plus", "INT32", "INT64"),
    ("plus", "FP64", "FP64"),
    ("plus", "FP32", "FP32"),
    ("min", "INT64", "INT64"),
    ("max", "FP32", "FP32"),
    ("lor", "BOOL", "BOOL"),
    ("land", "BOOL", "BOOL"),
]
MORE_REDUCE = [
    ("times", "INT32", "INT32"),
    ("min", "FP64", "FP64"),
    ("max", "INT32", "INT32"),
    ("lxor", "BOOL", "BOOL"),
    ("lxnor", "BOOL", "BOOL"),
    ("min", "FP32", "FP64"),
    ("plus", "INT64", "INT64"),
]
if WIDE:
    PRODUCTS, EWISE, APPLY = PRODUCTS + MORE_PRODUCTS, EWISE + MORE_EWISE, APPLY + MORE_APPLY
    SELECT, REDUCE = SELECT + MORE_SELECT, REDUCE + MORE_REDUCE

CHECKS = {"plus": "sum", "min": "nan", "max": "nan"}  # by the monoid; anything else is exact
HINTS = ["", "", 'direction="push"', 'direction="pull"', 'form="list"', 'form="bitmap"',
         'direction="pull", form="list"', 'direction="push", form="bitmap"']
ANY = ("any_first", "any_second", "any_secondi")
SCALARS = {"BOOL": ["True", "False"], "INT32": ["7", "-2", "True", "2.75"], "INT64": ["0", "5"],
           "FP32": ["0.5", "3", "np.inf"], "FP64": ["-1.5", "2", "np.nan"]}
ACCUMS = {"BOOL": ["binary.lor", "binary.second"], "INT32": ["binary.plus", "'min'", "binary.second"],
          "INT64": ["'+'", "binary.max"], "FP32": ["binary.min", "binary.plus"], "FP64": ["binary.plus", "monoid.max"]}


# ---------------------------------------------------------------- strategies


def vector(draw, space: str, dtype: str) -> Key:
    return Key(draw(st.sampled_from("xy")), space, dtype)


def write_part(draw, target: Key, accums: list[str]) -> dict:
    """Mask, accumulator, replace and spelling of a statement's left side; `uses` lists what they read."""
    part: dict = {"uses": (target,)}
    kind = draw(st.sampled_from(["", "", ".S", "~.S", ".V", "~.V"]))
    if kind:
        dtype = draw(st.sampled_from(["BOOL", "BOOL", "BOOL", target.dtype, "INT32"]))
        letters = "AB" if target.space == "rc" else "xyp"
        mask = Key(draw(st.sampled_from(letters)), target.space, dtype)
        part["mask"] = kind.replace(".", mask.name + ".") if kind[0] != "~" else f"~{mask.name}{kind[1:]}"
        part["uses"] = (target, mask)
        part["replace"] = draw(st.booleans())
    if accums and draw(st.integers(0, 2)) == 0:
        part["accum"] = draw(st.sampled_from(accums))
    part["keywords"] = draw(st.booleans())
    return part


def statement(target: Key, rhs: str, operands: tuple[Key, ...], part: dict, **rest) -> Statement:
    return Statement(target, rhs, **{**part, "uses": part["uses"] + operands, **rest})


def product(draw, shape: Shape) -> Statement:
    """`w(...) << semiring(q @ A)` and its three other orientations, with a direction now and then."""
    name, vector_type, matrix_type, output_type, accum = draw(st.sampled_from(PRODUCTS))
    form, source, result = draw(st.sampled_from([
        ("{x} @ {A}", "r", "c"), ("{A} @ {x}", "c", "r"), ("{x} @ {A}.T", "c", "r"), ("{A}.T @ {x}", "r", "c"),
    ]))
    column = shape.column_space()
    source, result = (column if space == "c" else space for space in (source, result))
    x, A = vector(draw, source, vector_type), Key(draw(st.sampled_from("AB")), "rc", matrix_type)
    w = vector(draw, result, output_type)
    part = write_part(draw, w, [f"binary.{accum}"] if accum else [])
    rhs = f"semiring.{name}({form.format(x=x.name, A=A.name)})"
    check = "any" if name in ANY else CHECKS.get(name.split("_")[0], "exact")
    hints = draw(st.sampled_from(HINTS))
    return statement(w, rhs, (x, A), part, check=check, hints=hints)


def elementwise(draw, shape: Shape) -> Statement:
    name, first, second, output = draw(st.sampled_from(EWISE))
    space = draw(st.sampled_from(["r", shape.column_space()]))
    a, b, w = vector(draw, space, first), vector(draw, space, second), vector(draw, space, output)
    sign = draw(st.sampled_from("|&"))
    return statement(w, f"binary.{name}({a.name} {sign} {b.name})", (a, b), write_part(draw, w, ACCUMS[output][:1]))


def an_index(draw, size: int, distinct: bool = True) -> str:
    """The text of an index: a slice, a list of ids, an array; never empty lists (python-graphblas refuses them)."""
    kind = draw(st.sampled_from(["slice", "slice", "list", "array"])) if size else "slice"
    if kind == "slice":
        return draw(st.sampled_from([":", "::2", "1:", ":-1", "2:5", "::-1", "-3:", "5:1:-2"]))
    ids = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=12, unique=distinct))
    return str(ids) if kind == "list" else f"np.array({ids})"


def assign_scalar(draw, shape: Shape) -> Statement:
    """`w(mask) << 3`, `w[:] << 3`, `w[ids] << 3`, `w(accum)[2] << 3`."""
    space = draw(st.sampled_from(["r", shape.column_space()]))
    w = vector(draw, space, draw(st.sampled_from(list(SCALARS))))
    size = shape.size(space)
    kind = draw(st.sampled_from(["none", "none", "index", "int"]))
    index = f"[{an_index(draw, size)}]" if kind == "index" else ""
    if kind == "int" and size:
        index = f"[{draw(st.integers(-size, size - 1))}]"
    value = draw(st.sampled_from(SCALARS[w.dtype]))
    return statement(w, value, (), write_part(draw, w, ACCUMS[w.dtype]), index=index)


def assign_vector(draw, shape: Shape) -> Statement:
    """`w << v`, `w[ids] << v[ids]`, `w << v[ids]` with as many ids as places."""
    space = draw(st.sampled_from(["r", shape.column_space()]))
    pairs = [("INT32", "INT32"), ("FP64", "FP64"), ("INT64", "INT32"), ("BOOL", "BOOL"), ("INT32", "FP64")]
    target_type, source_type = draw(st.sampled_from(pairs))
    w, v = vector(draw, space, target_type), vector(draw, space, source_type)
    part = write_part(draw, w, ACCUMS[target_type])
    size, kind = shape.size(space), draw(st.sampled_from(["whole", "region", "extract"]))
    if kind == "whole":
        return statement(w, v.name, (v,), part)
    if kind == "extract" or not size:
        ids = draw(st.sampled_from([":", "::-1", f"np.arange({size}) // 2", f"np.arange({size})[::-1]"]))
        return statement(w, f"{v.name}[{ids if size else ':'}]", (v,), part)
    count = draw(st.integers(1, min(size, 9)))
    target_ids = draw(st.lists(st.integers(0, size - 1), min_size=count, max_size=count, unique=True))
    source_ids = draw(st.lists(st.integers(0, size - 1), min_size=count, max_size=count))
    start = draw(st.integers(0, size - count))
    target_index = draw(st.sampled_from([str(target_ids), f"{start}:{start + count}"]))
    source_index = draw(st.sampled_from([str(source_ids), f":{count}"]))
    return statement(w, f"{v.name}[{source_index}].new()", (v,), part, index=f"[{target_index}]")


def apply(draw, shape: Shape) -> Statement:
    text, source, output, check = draw(st.sampled_from(APPLY))
    space = draw(st.sampled_from(["r", shape.column_space()]))
    x, w = vector(draw, space, source), vector(draw, space, output)
    part = write_part(draw, w, ACCUMS[output][:1])
    return statement(w, text.format(x=x.name), (x,), part, check=check)


def choose(draw, shape: Shape) -> Statement:
    text, dtype = draw(st.sampled_from(SELECT))
    space = draw(st.sampled_from(["r", shape.column_space()]))
    x, w = vector(draw, space, dtype), vector(draw, space, dtype)
    return statement(w, text.format(x=x.name), (x,), write_part(draw, w, ACCUMS[dtype][:1]))


def reduce(draw, shape: Shape) -> Statement:
    """A vector or a matrix to a scalar, a matrix to a vector."""
    name, source, output = draw(st.sampled_from(REDUCE))
    check = CHECKS.get(name, "exact")
    kind = draw(st.sampled_from(["vector", "vector", "scalar", "rowwise", "columnwise"]))
    A = Key(draw(st.sampled_from("AB")), "rc", source)
    if kind in ("rowwise", "columnwise"):
        w = vector(draw, "r" if kind == "rowwise" else shape.column_space(), output)
        part = write_part(draw, w, ACCUMS[output][:1])
        return statement(w, f"{A.name}.reduce_{kind}(monoid.{name})", (A,), part, check=check)
    s = Key("s", "s", output)
    x = A if kind == "scalar" else vector(draw, "r", source)
    call = "reduce_scalar" if kind == "scalar" else "reduce"
    return Statement(s, f"{x.name}.{call}(monoid.{name})", (s, x), check=check)


def change(draw, shape: Shape) -> Statement:
    """What is not a `<<`: clear, one entry set or deleted, a copy that must not share with its source."""
    dtype = draw(st.sampled_from(["BOOL", "INT32", "FP64"]))
    w, v = Key("x", "r", dtype), Key("y", "r", dtype)
    lines = [f"{w.name}.clear()", f"{w.name} = {v.name}.dup()", f"{w.name} = {w.name}.dup()"]
    if shape.nrows:
        i = draw(st.integers(-shape.nrows, shape.nrows - 1))
        lines += [f"{w.name}[{i}] = {SCALARS[dtype][0]}", f"del {w.name}[{i}]"]
    return Statement(w, draw(st.sampled_from(lines)), (w, v), raw=True)


# ---------------------------------------------------------------- matrices

MATRIX_EWISE = [("plus", "INT32", "INT32"), ("minus", "FP64", "FP64"), ("lor", "BOOL", "BOOL"), ("lt", "INT32", "BOOL")]
MATRIX_UNARY = [  # text, type of the operand, of the output
    ("unary.ainv({x})", "FP64", "FP64"),
    ("binary.plus({x}, right=3)", "INT32", "INT64"),
    ("unary.one({x})", "BOOL", "BOOL"),
    ("indexunary.rowindex({x})", "BOOL", "INT64"),
    ("indexunary.colindex({x})", "INT32", "INT32"),
    ("select.valuegt({x}, np.int32(1))", "INT32", "INT32"),
    ("select.tril({x}, {k})", "FP64", "FP64"),
    ("select.triu({x}, {k})", "INT32", "INT32"),
    ("select.diag({x}, {k})", "BOOL", "BOOL"),
    ("select.offdiag({x}, {k})", "INT32", "INT32"),
    ("select.rowle({x}, {k})", "FP64", "FP64"),
    ("select.colgt({x}, {k})", "INT32", "INT32"),
]


def matrix(draw, shape: Shape) -> Statement:
    """Elementwise, apply, select and copy on matrices."""
    kind = draw(st.sampled_from(["ewise", "unary", "unary", "copy"]))
    letter = st.sampled_from("AB")
    if kind == "ewise":
        name, source, output = draw(st.sampled_from(MATRIX_EWISE))
        a, b = Key(draw(letter), "rc", source), Key(draw(letter), "rc", source)
        rhs, operands = f"binary.{name}({a.name} {draw(st.sampled_from('|&'))} {b.name})", (a, b)
    elif kind == "unary":
        text, source, output = draw(st.sampled_from(MATRIX_UNARY))
        a = Key(draw(letter), "rc", source)
        rhs, operands = text.format(x=a.name, k=draw(st.integers(-2, 3))), (a,)
    else:
        source, output = draw(st.sampled_from([("INT32", "INT32"), ("FP64", "INT32"), ("BOOL", "FP64")]))
        a = Key(draw(letter), "rc", source)
        transposed = shape.nrows == shape.ncols and draw(st.booleans())
        rhs, operands = a.name + (".T" if transposed else ""), (a,)
    C = Key(draw(letter), "rc", output)
    return statement(C, rhs, operands, write_part(draw, C, ACCUMS[output][:1]))


# ---------------------------------------------------------------- programs


@st.composite
def shapes(draw) -> Shape:
    sizes = st.sampled_from(SIZES * 2 + LARGE)
    nrows = draw(sizes)
    return Shape(nrows, nrows if draw(st.integers(0, 2)) else draw(sizes))


@st.composite
def contents(draw, key: Key) -> Content:
    patterns = ["random"] * 5 + ["empty", "full"]
    if key.space == "rc":
        patterns += ["diagonal", "path", "hub row", "hub column"]
    return Content(
        pattern=draw(st.sampled_from(patterns)),
        density=draw(st.sampled_from([0.3, 0.03, 0.1, 0.7])),
        palette=draw(st.sampled_from(["small", "small", "zero one", "edge"])),
        iso=draw(st.integers(0, 3)) == 3,
        seed=draw(st.integers(0, 9999)),
    )


@st.composite
def programs(draw, kinds, most: int = 8) -> Program:
    """A program of one to `most` statements, each of one of `kinds` (functions of draw and shape)."""
    shape = draw(shapes())
    count = draw(st.integers(1, most))
    statements = tuple(draw(st.sampled_from(kinds))(draw, shape) for _ in range(count))
    keys = sorted({key for one in statements for key in one.uses})
    return Program(shape, {key: draw(contents(key)) for key in keys}, statements)
