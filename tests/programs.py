"""Programs: a few objects, by name and contents, and a few statements over them, as source text that gbgpu and
python-graphblas both run.

Names tell all: `x_r_fp32` is a vector over the space r, `A_rc_int64` a matrix with rows r and columns c, `s_fp32` a
scalar. The spaces are r and c, and products of two of them (u: r x r, v: r x c, w: c x c) for Kronecker products. When
r and c are equally large, they are one space, so statements read what earlier ones wrote.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

WIDE = os.environ.get("GBGPU_TEST_PROFILE") == "long"
NP = {"BOOL": np.bool_, "FP32": np.float32, "FP64": np.float64}
NP |= {f"{sign}INT{bits}": getattr(np, f"{sign.lower()}int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)}
SIZES = [0, 1, 2, 3, 5, 7, 8, 20, 33, 63, 64, 65, 70]
LARGE = [127, 128, 129, 150, 200]  # several 64-bit words, on every one of seven devices
MILD = "mM"  # letters of objects whose values stay small and finite


# ---------------------------------------------------------------- objects


class Key(NamedTuple):
    """An object of a program: a letter, its space (one letter: vector, two: matrix, none: scalar) and its type."""

    letter: str
    space: str
    dtype: str

    @property
    def name(self) -> str:
        return "_".join(part for part in (self.letter, self.space, self.dtype.lower()) if part)


class Content(NamedTuple):
    """What an object holds at first. Everything follows from a seed, so that large objects cost no more to draw."""

    pattern: str
    density: float
    palette: str
    iso: bool
    seed: int


class Shape(NamedTuple):
    """The sizes of the two spaces; in a square program `c` is the same space as `r`."""

    nrows: int
    ncols: int

    def fold(self, space: str) -> str:
        """The name of a space: one name for each of those that are the same."""
        return space.translate(str.maketrans("cvw", "ruu")) if self.nrows == self.ncols else space

    def sizes(self, space: str) -> tuple[int, ...]:
        r, c = self
        known = {"r": r, "c": c, "u": r * r, "v": r * c, "w": c * c}
        return tuple(known[letter] for letter in space)


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
        return rng.choice(np.array([limits.min, limits.max, limits.max - 1, max(-1, limits.min), 0, 1, 2], kind), count)
    low, high = (0, 2) if palette == "zero one" else (0, 9) if dtype.startswith("U") else (-4, 8)
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
    where = cells(shape.sizes(key.space), content, rng)
    if content.iso and where[0].size:  # SuiteSparse 9.4 finds entries in iso matrices without columns
        return where, values(key.dtype, one_palette(key, content), 1, rng)[0]
    return where, values(key.dtype, content.palette, where[0].size, rng)


def one_palette(key: Key, content: Content) -> str:
    """Of single values: python-graphblas can't take one of UINT64 beyond INT64."""
    return "small" if key.dtype == "UINT64" else content.palette


def sized(key: Key, shape: Shape) -> dict[str, int]:
    """The keyword arguments that say how large an object is."""
    names = ("nrows", "ncols") if len(key.space) == 2 else ("size",)
    return dict(zip(names, shape.sizes(key.space), strict=True))


def make(module, key: Key, where, what, shape: Shape):
    """The vector or matrix with these entries, made by `module` (gbgpu or graphblas)."""
    kind = module.Matrix if len(key.space) == 2 else module.Vector
    handle = kind.from_coo(*where, what, dtype=key.dtype, **sized(key, shape))
    if module.__name__ == "graphblas":
        # SuiteSparse 9.3 and 9.4 corrupt memory when a full vector is accumulated into under a sparse mask, and
        # around iso full vectors; kept sparse, they do not
        handle.ss.config["sparsity_control"] = "sparse"
    return handle


def scalar_value(key: Key, content: Content):
    """What a scalar holds at first: nothing, or a value."""
    found = values(key.dtype, one_palette(key, content), 1, np.random.default_rng(content.seed))[0]
    return None if content.pattern == "empty" else found.item()


def build(module, key: Key, content: Content, shape: Shape):
    """The object a program starts with."""
    if key.space:
        return make(module, key, *arrays(key, content, shape), shape)
    scalar = module.Scalar(key.dtype)
    scalar.value = scalar_value(key, content)
    return scalar


def build_text(key: Key, content: Content, shape: Shape) -> str:
    """`build` as a line of a script that reproduces a failure."""
    if not key.space:
        return f"{key.name} = gb.Scalar({key.dtype!r}); {key.name}.value = {scalar_value(key, content)}"
    where, what = arrays(key, content, shape)
    lists = ", ".join(str(ids.tolist()) for ids in where)
    size = ", ".join(f"{name}={n}" for name, n in sized(key, shape).items())
    kind = "Matrix" if len(key.space) == 2 else "Vector"
    return f"{key.name} = gb.{kind}.from_coo({lists}, {what.tolist()}, dtype={key.dtype!r}, {size})"


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Statement:
    """`target(args)[index] << rhs`, `target[index](args) << rhs` when within, or `rhs` as it stands when raw.

    `op` names the operation in counts. `check` says how results may differ: sum: float rounding; ulp, close: functions
    of the math library; any: one of the candidates; nan: NaN for SuiteSparse's identity."""

    op: str
    target: Key
    rhs: str
    uses: tuple[Key, ...]
    mask: str = ""
    accum: str = ""
    replace: bool = False
    keywords: bool = False
    index: str = ""
    within: bool = False
    hints: str = ""
    check: str = "exact"
    raw: bool = False
    update: bool = False

    def text(self, hints: bool = True) -> str:
        if self.raw:
            return self.rhs
        if self.keywords:
            parts = [f"mask={self.mask}" if self.mask else "", f"accum={self.accum}" if self.accum else ""]
            parts.append("replace=True" if self.replace else "")
        else:
            parts = [self.mask, self.accum, "replace" if self.replace else ""]
        args = ", ".join(part for part in [*parts, self.hints if hints else ""] if part)
        call = f"({args})" if args else ""
        left = self.target.name + (self.index + call if self.within else call + self.index)
        return f"{left}.update({self.rhs})" if self.update and not self.index else f"{left} << {self.rhs}"


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
        """The objects that the first `upto` statements use, and these statements."""
        used = {key for statement in self.statements[:upto] for key in statement.uses}
        lines = [build_text(key, content, self.shape) for key, content in self.contents.items() if key in used]
        return "\n".join(lines + [statement.text() for statement in self.statements[:upto]])


# ---------------------------------------------------------------- strategies


@st.composite
def shapes(draw, small: bool = False) -> Shape:
    sizes = st.sampled_from(SIZES[:6] if small else SIZES * 2 + LARGE)
    nrows = draw(sizes)
    return Shape(nrows, nrows if draw(st.integers(0, 2)) else draw(sizes))


@st.composite
def contents(draw, key: Key) -> Content:
    patterns = ["random"] * 5 + ["empty", "full"]
    if len(key.space) == 2:
        patterns += ["diagonal", "path", "hub row", "hub column"]
    return Content(
        pattern=draw(st.sampled_from(patterns)),
        density=draw(st.sampled_from([0.3, 0.03, 0.1, 0.7])),
        palette="small" if key.letter in MILD else draw(st.sampled_from(["small", "small", "zero one", "edge"])),
        iso=draw(st.integers(0, 3)) == 3,
        seed=draw(st.integers(0, 9999)),
    )


@st.composite
def programs(draw, kinds, most: int = 8, small: bool = False) -> Program:
    """A program of one to `most` statements, each of one of `kinds` (functions of draw and shape)."""
    shape = draw(shapes(small))
    count = draw(st.integers(1, most))
    statements = tuple(draw(st.sampled_from(kinds))(draw, shape) for _ in range(count))
    keys = sorted({key for one in statements for key in one.uses})
    return Program(shape, {key: draw(contents(key)) for key in keys}, statements)
