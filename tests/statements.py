"""Random statements over vectors and matrices: operators, products, reductions. (`assignments.py` has those that move
entries.) Each function draws one statement for a shape; `a_space` says whether it is about vectors or matrices."""

from __future__ import annotations

import tables as t
from hypothesis import strategies as st
from programs import WIDE, Key, Shape, Statement

HINTS = ["", "", 'direction="push"', 'direction="pull"', 'form="list"', 'form="bitmap"',
         'direction="pull", form="list"', 'direction="push", form="bitmap"']
METHODS = ["", "", 'method="dot"', 'method="rows"', 'method="hash"', 'method="dense"', 'method="sort"']
MATRIX_ONLY = {"colindex", "diagindex", "tril", "triu", "diag", "offdiag", "colle", "colgt"}
VECTOR_ONLY = {"index", "indexle", "indexgt"}
ROWS_AND_COLUMNS = MATRIX_ONLY | VECTOR_ONLY | {"rowindex", "rowle", "rowgt"}


# ---------------------------------------------------------------- operands and left sides


def choose(draw, *options):
    return draw(st.sampled_from(options))


def a_space(draw, shape: Shape, kind: str = "either") -> str:
    """r or c, or a pair of them."""
    if kind == "either":
        kind = choose(draw, "vector", "matrix")
    return shape.fold(choose(draw, "r", "c") if kind == "vector" else choose(draw, "rc", "rc", "rr", "cr", "cc"))


def key(draw, space: str, dtype: str, mild: bool = False) -> Key:
    letters = "AB" if len(space) == 2 else "xy"
    return Key("mM"[len(space) - 1] if mild else draw(st.sampled_from(letters)), space, dtype)


def term(draw, space: str, dtype: str) -> tuple[str, Key]:
    """An operand: a vector, a matrix, or the transpose of one."""
    turned = len(space) == 2 and choose(draw, False, False, True)
    found = key(draw, space[::-1] if turned else space, dtype)
    return found.name + (".T" if turned else ""), found


def one_mask(draw, space: str, dtypes: list[str]) -> tuple[str, Key]:
    kind = choose(draw, ".S", "~.S", ".V", "~.V")
    letters = ("AB" if len(space) == 2 else "xyp") if space else ""
    parent = Key(draw(st.sampled_from(letters)), space, draw(st.sampled_from(dtypes)))
    return f"{'~' * (kind[0] == '~')}{parent.name}{kind[-2:]}", parent


def a_mask(draw, space: str, dtype: str = "BOOL") -> tuple[str, tuple[Key, ...]]:
    """`x.S`, `~x.V`, a BOOL object, or two masks combined; `dtype` is the target's."""
    dtypes = ["BOOL", "BOOL", *(t.STORED if WIDE else [dtype] * (dtype in t.STORED))]
    kind = choose(draw, *["one"] * 6, "bare", "&", "|", "&")
    if kind == "bare":
        parent = key(draw, space, "BOOL")
        return parent.name, (parent,)
    text, parent = one_mask(draw, space, dtypes)
    if kind == "one":
        return text, (parent,)
    other, second = one_mask(draw, space, dtypes)
    return f"{text} {kind} {other}", (parent, second)


def write_part(draw, target: Key, accums: bool = True) -> dict:
    """Mask, accumulator, replace and spelling of a statement's left side; `uses` lists what they read."""
    part: dict = {"uses": (target,), "update": choose(draw, 0, 0, 0, 1) == 1}
    if target.space and draw(st.integers(0, 6)) > 1:
        part["mask"], parents = a_mask(draw, target.space, target.dtype)
        part["uses"] += parents
        part["replace"] = draw(st.booleans())
    if accums and target.dtype in t.ACCUMS and draw(st.integers(0, 2)) == 0:
        part["accum"] = draw(st.sampled_from(t.ACCUMS[target.dtype]))
    part["keywords"] = draw(st.booleans())
    return part


def statement(draw, op: str, target: Key, rhs: str, operands: tuple[Key, ...], **rest) -> Statement:
    part = write_part(draw, target, accums=rest.get("check") != "any")  # what `any` chose can't be told afterwards
    return Statement(op, target, rhs, **{**part, "uses": part["uses"] + operands, **rest})


def output(draw, space: str, dtype: str) -> Key:
    """What a result is written to: of its type, in the long run now and then of another."""
    if WIDE and draw(st.integers(0, 7)) == 0:
        dtype = draw(st.sampled_from(t.STORED))
    return key(draw, space, dtype)


# ---------------------------------------------------------------- products


def vector_product(draw, shape: Shape) -> Statement:
    """`w(...) << semiring(q @ A)` and its three other orientations, with a direction now and then."""
    name, vector_type, matrix_type = draw(st.sampled_from(t.PRODUCTS))
    space = a_space(draw, shape, "matrix")
    text, A = term(draw, space, matrix_type)
    first = draw(st.booleans())
    x = key(draw, space[0] if first else space[1], vector_type)
    form = "{x} @ {A}" if first else "{A} @ {x}"
    dtype = t.type_of(f"semiring.{name}({form.format(x='x', A='A')})", ("x", vector_type), ("A", matrix_type))
    w = output(draw, space[1] if first else space[0], dtype)
    rhs = f"semiring.{name}({form.format(x=x.name, A=text)})"
    if choose(draw, 0, 0, 0, 1):
        rhs = f"{x.name}.vxm({text}, semiring.{name})" if first else f"{text}.mxv({x.name}, semiring.{name})"
    check = t.product_check(name)
    if check == "any":
        rhs = f"semiring.{name}({form.format(x=x.name, A=text)})"
    return statement(draw, "vxm" if first else "mxv", w, rhs, (x, A), check=check, hints=draw(st.sampled_from(HINTS)))


def mxm(draw, shape: Shape) -> Statement:
    """`C(...) << semiring(A @ B)`, either side transposed, by each method."""
    name, left, right = draw(st.sampled_from(t.MXM))
    i, k, j = (a_space(draw, shape, "vector") for _ in range(3))
    (one, A), (two, B) = term(draw, i + k, left), term(draw, k + j, right)
    C = output(draw, i + j, t.type_of(f"semiring.{name}(A @ B)", ("A", left), ("B", right)))
    check, spelling = t.product_check(name), f"semiring.{name}({one} @ {two})"
    if check != "any" and choose(draw, 0, 0, 0, 1):
        spelling = f"{one}.mxm({two}, semiring.{name})"
    return statement(draw, "mxm", C, spelling, (A, B), check=check, hints=draw(st.sampled_from(METHODS)))


def inner(draw, shape: Shape) -> Statement:
    name, left, right = draw(st.sampled_from([row for row in t.MXM if row[0][:4] != "any_"]))
    space = a_space(draw, shape, "vector")
    if 0 in shape.sizes(space):  # SuiteSparse 9.4 counts one entry
        return reduce(draw, shape)
    right = left  # SuiteSparse 9.4 takes an INT64 beside an FP32 for the bits of an FP64
    dtype = t.type_of(f"semiring.{name}(x @ y)", ("x", left), ("y", right))
    if dtype == "BOOL":
        left = right = "BOOL"  # python-graphblas writes numbers of other types into the bool
    x, y = key(draw, space, left), key(draw, space, right)
    s = Key("s", "", dtype)
    rhs = choose(draw, f"semiring.{name}({x.name} @ {y.name})", f"{x.name}.inner({y.name}, semiring.{name})")
    return statement(draw, "inner", s, rhs, (x, y), check=t.product_check(name), update=False)


def outer(draw, shape: Shape) -> Statement:
    name, left, right = draw(st.sampled_from(t.OUTER))
    x, y = (key(draw, a_space(draw, shape, "vector"), dtype) for dtype in (left, right))
    C = output(draw, x.space + y.space, t.type_of(f"x.outer(y, binary.{name})", ("x", left), ("y", right)))
    return statement(draw, "outer", C, f"{x.name}.outer({y.name}, binary.{name})", (x, y), check=library(name))


def kronecker(draw, shape: Shape) -> Statement:
    """For small shapes: the result has as many rows as the product of both."""
    name, left, right = draw(st.sampled_from(t.KRON))
    A, B = (key(draw, a_space(draw, shape, "matrix"), dtype) for dtype in (left, right))
    products = {"rr": "u", "rc": "v", "cr": "v", "cc": "w"}
    space = shape.fold("".join(products[a + b] for a, b in zip(A.space, B.space, strict=True)))
    C = output(draw, space, t.type_of(f"A.kronecker(B, binary.{name})", ("A", left), ("B", right)))
    return statement(draw, "kronecker", C, f"{A.name}.kronecker({B.name}, binary.{name})", (A, B), check=library(name))


# ---------------------------------------------------------------- elementwise


def library(name: str) -> str:
    return "ulp" if name in t.LIBRARY else "exact"


def elementwise(draw, shape: Shape) -> Statement:
    """Union or intersection of two vectors or matrices, as a call or a method."""
    name, left, right = draw(st.sampled_from(t.EWISE))
    space = a_space(draw, shape)
    (one, a), (two, b) = term(draw, space, left), term(draw, space, right)
    sign = choose(draw, "|", "&")
    dtype = t.type_of(f"binary.{name}(x {sign} y)", ("x", left), ("y", right))
    method = f"{one}.ewise_{'add' if sign == '|' else 'mult'}({two}, binary.{name})"
    rhs = choose(draw, f"binary.{name}({one} {sign} {two})", f"binary.{name}({one} {sign} {two})", method)
    op = "ewise_add" if sign == "|" else "ewise_mult"
    return statement(draw, op, output(draw, space, dtype), rhs, (a, b), check=library(name))


def chain(draw, shape: Shape) -> Statement:
    """Three operands: an operator on what another gives, which no object holds."""
    name, left, right = draw(st.sampled_from([row for row in t.EWISE if row[0] not in t.LIBRARY]))
    sign = choose(draw, "|", "&")
    dtype = t.type_of(f"binary.{name}(x {sign} y)", ("x", left), ("y", right))
    last = choose(draw, "plus", "minus", "times", "min", "second", "gt")
    third = choose(draw, "INT64", "FP64")
    if dtype == "BOOL":
        last, third = choose(draw, "lor", "land", "first"), "BOOL"
    space = a_space(draw, shape)
    (one, a), (two, b), (three, c) = (term(draw, space, held) for held in (left, right, third))
    sides = draw(st.permutations([f"binary.{name}({one} {sign} {two})", three]))
    (x, y) = (dtype, third) if sides[1] == three else (third, dtype)
    found = t.type_of(f"binary.{last}(x & y)", ("x", x), ("y", y))
    rhs = f"binary.{last}({sides[0]} & {sides[1]})"
    return statement(draw, "chain", output(draw, space, found), rhs, (a, b, c))


def positional(draw, shape: Shape) -> Statement:
    """Operators of places, on the intersection."""
    name, left, right = draw(st.sampled_from(t.POSITIONAL))
    space = a_space(draw, shape)
    a, b = key(draw, space, left), key(draw, space, right)
    return statement(
        draw, "positional", output(draw, space, "INT64"), f"binary.{name}({a.name} & {b.name})", (a, b)
    )


def union(draw, shape: Shape) -> Statement:
    """ewise_union: values for what is missing."""
    name, left, right = draw(st.sampled_from(t.EWISE))
    space = a_space(draw, shape)
    (one, a), (two, b) = term(draw, space, left), term(draw, space, right)
    defaults = draw(st.sampled_from(t.literals(left))), draw(st.sampled_from(t.literals(right)))
    form = "binary.{0}({1} | {2}, left_default={3}, right_default={4})"
    dtype = t.type_of(form.format(name, "x", "y", *defaults), ("x", left), ("y", right))
    form = choose(draw, form, "{1}.ewise_union({2}, binary.{0}, {3}, {4})")
    rhs = form.format(name, one, two, *defaults)
    return statement(draw, "ewise_union", output(draw, space, dtype), rhs, (a, b), check=library(name))


def infix(draw, shape: Shape) -> Statement:
    """Arithmetic and comparisons as they are written in Python."""
    dtype, form = draw(st.sampled_from(t.INFIX_TYPES)), draw(st.sampled_from(t.INFIX))
    space = a_space(draw, shape)
    (one, a), (two, b), s = term(draw, space, dtype), term(draw, space, dtype), Key("s", "", dtype)
    k = draw(st.sampled_from(["2", "0.5", "3"] if dtype.startswith("FP") else ["2", "3", "0"]))
    found = t.type_of(form.format(x="x", y="y", k=k, s="s"), ("x", dtype), ("y", dtype), ("s", dtype))
    uses = tuple(key for key, mark in ((a, "{x}"), (b, "{y}"), (s, "{s}")) if mark in form)
    check = "ulp" if "**" in form else "exact"
    rhs = form.format(x=one, y=two, k=k, s=s.name)
    return statement(draw, "infix", output(draw, space, found), rhs, uses, check=check, update=True)


def broadcast(draw, shape: Shape) -> Statement:
    """A vector beside a matrix."""
    name, left, right = draw(st.sampled_from(t.EWISE))
    space, first, sign = a_space(draw, shape, "matrix"), draw(st.booleans()), choose(draw, "|", "&")
    A, x = key(draw, space, right if first else left), key(draw, space[0 if first else 1], left if first else right)
    sides = (x, A) if first else (A, x)
    dtype = t.type_of(f"binary.{name}(x {sign} y)", ("x", left), ("y", right))
    rhs = f"binary.{name}({sides[0].name} {sign} {sides[1].name})"
    return statement(draw, "broadcast", output(draw, space, dtype), rhs, (A, x), check=library(name))


def in_place(draw, shape: Shape) -> Statement:
    """`x += y` and its like."""
    dtype = draw(st.sampled_from([dtype for dtype in t.INFIX_TYPES if dtype in t.STORED]))
    space = a_space(draw, shape)
    a, b = key(draw, space, dtype), key(draw, space, dtype)
    lines = [f"{a.name} {sign}= {b.name}" for sign in "+-*"] + [f"{a.name} {sign}= 3" for sign in "+-*"]
    if choose(draw, 0, 0, 1):
        a, b = key(draw, space, "BOOL"), key(draw, space, "BOOL")
        lines = [f"{a.name} {sign}= {b.name}" for sign in "|&^"]
    return Statement("in place", a, draw(st.sampled_from(lines)), (a, b), raw=True)


# ---------------------------------------------------------------- one operand


def unary(draw, shape: Shape) -> Statement:
    name, dtype = draw(st.sampled_from(t.UNARY))
    space = a_space(draw, shape)
    if name.startswith("positionj") and len(space) == 1:
        name = "positioni" + name[9:]
    text, x = term(draw, space, dtype)
    rhs = choose(draw, f"unary.{name}({text})", f"{text}.apply(unary.{name})")
    w = output(draw, space, t.type_of(f"unary.{name}(x)", ("x", dtype)))
    return statement(draw, "apply", w, rhs, (x,), check=library(name))


def bound(draw, shape: Shape) -> Statement:
    """A binary operator with a scalar on one side."""
    name, dtype = draw(st.sampled_from(t.BOUND))
    space = a_space(draw, shape)
    text, x = term(draw, space, dtype)
    value, s = draw(st.sampled_from(t.literals(dtype))), Key("s", "", dtype)
    form = choose(draw, "binary.{n}({x}, {k})", "{x}.apply(binary.{n}, left={k})", "{x}.apply(binary.{n}, right={k})",
                  "binary.{n}({k}, {x})")
    if name == "floordiv":  # never by zero (tables.py)
        form, value = "{x}.apply(binary.{n}, right={k})", t.literals(dtype)[2]
    found = t.type_of(form.format(n=name, x="x", k=value), ("x", dtype))
    scalar = name != "floordiv" and choose(draw, False, False, True)
    rhs = form.format(n=name, x=text, k=s.name if scalar else value)
    operands = (x, s) if scalar else (x,)
    return statement(draw, "apply bound", output(draw, space, found), rhs, operands, check=library(name))


def fitting(draw, shape: Shape, rows: list[tuple[str, str]]) -> tuple[str, str, str]:
    """(operator, type, space) of a row of a list, one that suits the space."""
    space = a_space(draw, shape)
    out = MATRIX_ONLY if len(space) == 1 else VECTOR_ONLY
    name, dtype = draw(st.sampled_from([row for row in rows if row[0] not in out]))
    return name, dtype, space


def thunk(draw, name: str, dtype: str) -> str:
    return str(draw(st.integers(-2, 5))) if name in ROWS_AND_COLUMNS else draw(st.sampled_from(t.literals(dtype)))


def index_unary(draw, shape: Shape) -> Statement:
    name, dtype, space = fitting(draw, shape, t.INDEX)
    x = key(draw, space, dtype)
    value = thunk(draw, name, dtype)
    found = t.type_of(f"indexunary.{name}({'x' if len(space) == 1 else 'A'}, {value})", ("x", dtype), ("A", dtype))
    rhs = choose(draw, f"indexunary.{name}({x.name}, {value})", f"{x.name}.apply(indexunary.{name}, {value})")
    return statement(draw, "apply index", output(draw, space, found), rhs, (x,))


def select(draw, shape: Shape) -> Statement:
    name, dtype, space = fitting(draw, shape, t.SELECT)
    x, value = key(draw, space, dtype), thunk(draw, name, dtype)
    rhs = choose(draw, f"select.{name}({x.name}, {value})", f"{x.name}.select(select.{name}, {value})")
    return statement(draw, "select", output(draw, space, dtype), rhs, (x,))


def select_inside(draw, shape: Shape) -> Statement:
    """The entries that a mask lets through."""
    space, dtype = a_space(draw, shape), draw(st.sampled_from(t.STORED))
    x = key(draw, space, dtype)
    mask, parents = a_mask(draw, space)
    if mask.isidentifier():
        mask += ".V"
    return statement(draw, "select mask", output(draw, space, dtype), f"{x.name}.select({mask})", (x, *parents))


# ---------------------------------------------------------------- reductions


def reduced(draw, shape: Shape, call: str, kind: str, x: Key, text: str) -> tuple[Key, str]:
    """(target, right-hand side) of a reduction of each kind; `text` is the operand's."""
    if kind == "scalar":
        method = "reduce" if len(x.space) == 1 else "reduce_scalar"
        letter, target = "x" if len(x.space) == 1 else "A", ""
    else:
        method, letter = f"reduce_{kind}", "A"
        space = x.space[::-1] if text.endswith(".T") else x.space
        target = space[0 if kind == "rowwise" else 1]
    dtype = t.type_of(f"{letter}.{method}({call})", (letter, x.dtype))
    w = output(draw, target, dtype) if target else Key("s", "", dtype)
    return w, f"{text}.{method}({call})"


def reduce(draw, shape: Shape) -> Statement:
    """A vector or a matrix to a scalar, a matrix to a vector, by a monoid."""
    name, dtype = draw(st.sampled_from(t.REDUCE))
    kind = choose(draw, "scalar", "scalar", "rowwise", "columnwise")
    text, x = term(draw, a_space(draw, shape, "either" if kind == "scalar" else "matrix"), dtype)
    if kind == "scalar":
        text = x.name
    w, rhs = reduced(draw, shape, f"monoid.{name}", kind, x, text)
    op = "reduce" if kind == "scalar" else "reduce_rows"
    return statement(draw, op, w, rhs, (x,), check=t.CHECKS.get(name, "exact"), update=False)


def aggregate(draw, shape: Shape) -> Statement:
    name, dtype = draw(st.sampled_from(t.AGGREGATE))
    kind = choose(draw, "scalar", "rowwise", "columnwise")
    whole = name not in ("first", "last", "first_index", "last_index", "argmin", "argmax")
    space = a_space(draw, shape, "matrix" if kind != "scalar" else "either" if whole else "vector")
    if 0 in shape.sizes(space):  # SuiteSparse 9.4 counts one entry in an iso matrix without columns
        return reduce(draw, shape)
    x = key(draw, space, dtype, mild=True)
    w, rhs = reduced(draw, shape, f"agg.{name}", kind, x, x.name)
    return statement(draw, "aggregate", w, rhs, (x,), check="close", update=False)
