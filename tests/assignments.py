"""Random statements that move entries: extract, assign, copies, diagonals, sizes, single elements, rebuilt objects."""

from __future__ import annotations

import tables as t
from hypothesis import strategies as st
from programs import Key, Shape, Statement
from statements import a_mask, a_space, choose, key, output, statement, term, write_part

# ---------------------------------------------------------------- indices


def part(draw, n: int, count: int | None = None, distinct: bool = False) -> tuple[str, int]:
    """The text of an index into n places, and how many it names (`count`, if that is given): a slice, a list, an array,
    or `ids([...])`, a Vector of gbgpu. Never an empty list (python-graphblas refuses them)."""
    kind = choose(draw, "slice", "slice", "list", "array", "ids")
    if n == 0 or count == 0 or kind == "slice" and (count is None or count <= n):
        return _slice(draw, n, count)
    size = {"min_size": count or 1, "max_size": count or 12}
    distinct = distinct and (count or 1) <= n
    ids = draw(st.lists(st.integers(0, n - 1), unique=distinct, **size))
    return {"list": f"{ids}", "array": f"np.array({ids})"}.get(kind, f"ids({ids})"), len(ids)


def _slice(draw, n: int, count: int | None) -> tuple[str, int]:
    if count is not None:
        first = draw(st.integers(0, n - count))
        return (":" if count == n else f"{first}:{first + count}"), count
    text = choose(draw, ":", ":", "::2", "1:", ":-1", "2:5", "::-1", "-3:", "5:1:-2")
    return text, len(range(n)[slice(*(int(x) if x else None for x in text.split(":")))])


def parts(draw, shape: Shape, space: str, counts: tuple = (None, None), distinct: bool = False) -> tuple[str, tuple]:
    """`[I]` or `[I, J]` and its shape."""
    pairs = [part(draw, n, count, distinct) for n, count in zip(shape.sizes(space), counts, strict=False)]
    return f"[{', '.join(text for text, _ in pairs)}]", tuple(size for _, size in pairs)


def stored(draw) -> str:
    return draw(st.sampled_from(t.STORED))


def source(draw, dtype: str) -> str:
    """The type of what is assigned to an object of this type: mostly the same."""
    return choose(draw, dtype, dtype, dtype, stored(draw))


# ---------------------------------------------------------------- extract


def extract(draw, shape: Shape) -> Statement:
    """`w << v[I]`, `C << A[I, J]`: as many places as the target has."""
    space, dtype = a_space(draw, shape), stored(draw)
    text, x = term(draw, space, dtype)
    target = a_space(draw, shape, "vector" if len(space) == 1 else "matrix")
    counts, there = shape.sizes(target), shape.sizes(space)
    if any(n == 0 < count for n, count in zip(there, counts, strict=True)):
        target, counts = space, there
    index, _ = parts(draw, shape, space, counts)
    return statement(draw, "extract", output(draw, target, dtype), text + index, (x,))


def line(draw, shape: Shape) -> Statement:
    """`w << A[i, :]`, `w << A[:, j]`, `w << A[i, J]`."""
    space, dtype = a_space(draw, shape, "matrix"), stored(draw)
    text, x = term(draw, space, dtype)
    across = draw(st.integers(0, 1))
    n, m = (shape.sizes(space)[d] for d in (across, 1 - across))
    if n == 0:
        return extract(draw, shape)
    index = [str(draw(st.integers(-n, n - 1))), part(draw, m, m)[0] if m else ":"]
    index = index[::-1] if across else index
    w = output(draw, space[1 - across], dtype)
    return statement(draw, "extract line", w, f"{text}[{', '.join(index)}]", (x,))


def element(draw, shape: Shape) -> Statement:
    """`s << v[i]`, `s << A[i, j]`."""
    space, dtype = a_space(draw, shape), stored(draw)
    sizes = shape.sizes(space)
    if 0 in sizes:
        return extract(draw, shape)
    text, x = term(draw, space, dtype)
    index = ", ".join(str(draw(st.integers(-n, n - 1))) for n in sizes)
    return statement(draw, "extract element", Key("s", "", dtype), f"{text}[{index}]", (x,), update=False)


# ---------------------------------------------------------------- assign


def value_of(draw, shape: Shape, dtype: str, counts: tuple[int, ...], *kinds: str) -> tuple[str, tuple[Key, ...]]:
    """A right-hand side of this shape: a scalar, a Scalar, or a part of a vector or matrix."""
    kind = choose(draw, *(kinds or ("scalar", "scalar", "part", "part", "part", "Scalar")))
    if kind == "scalar":
        return draw(st.sampled_from(t.scalars(dtype))), ()
    if kind == "Scalar":
        s = Key("s", "", dtype)
        return s.name, (s,)
    space = a_space(draw, shape, "vector" if len(counts) == 1 else "matrix")
    if any(n == 0 < count for n, count in zip(shape.sizes(space), counts, strict=True)):
        return draw(st.sampled_from(t.scalars(dtype))), ()
    x = key(draw, space, source(draw, dtype))
    return f"{x.name}{parts(draw, shape, space, counts)[0]}{choose(draw, '.new()', '')}", (x,)


def assign(draw, shape: Shape) -> Statement:
    """`w(mask, accum, replace)[I] << v`, `C(...)[I, J] << A`, without an index too."""
    space = a_space(draw, shape)
    w = key(draw, space, stored(draw))
    index, counts = parts(draw, shape, space, distinct=True)
    if choose(draw, 0, 0, 1):
        index, counts = "", shape.sizes(space)
    rhs, uses = value_of(draw, shape, w.dtype, counts)
    return statement(draw, "assign", w, rhs, uses, index=index, update=False)


def submask(draw, shape: Shape, counts: tuple[int, ...]) -> tuple[str, tuple[Key, ...]]:
    """A mask of this shape: that of a part of a BOOL object."""
    space = a_space(draw, shape, "vector" if len(counts) == 1 else "matrix")
    if any(n == 0 < count for n, count in zip(shape.sizes(space), counts, strict=True)):
        return "", ()
    M = key(draw, space, "BOOL")
    text = f"{M.name}{parts(draw, shape, space, counts)[0]}.new()"
    return choose(draw, "", "~") + text + choose(draw, ".S", ".V"), (M,)


def assign_within(draw, shape: Shape) -> Statement:
    """`C[I, J](mask, accum, replace) << A`: the mask has the shape of the part."""
    space = a_space(draw, shape)
    w = key(draw, space, stored(draw))
    index, counts = parts(draw, shape, space, distinct=True)
    rhs, uses = value_of(draw, shape, w.dtype, counts)
    mask, masks = submask(draw, shape, counts)
    told = write_part(draw, w) | {"mask": mask, "uses": (w, *masks, *uses), "within": True, "update": False}
    told["replace"] = bool(mask) and draw(st.booleans())
    return Statement("assign within", w, rhs, index=index, **told)


def assign_line(draw, shape: Shape) -> Statement:
    """`C(mask)[i, J] << v` and `C(mask)[I, j] << v`: the mask is that of C, or a vector for the line."""
    space = a_space(draw, shape, "matrix")
    C, across = key(draw, space, stored(draw)), draw(st.integers(0, 1))
    n, m = (shape.sizes(space)[d] for d in (across, 1 - across))
    if n == 0:
        return assign(draw, shape)
    chosen, count = part(draw, m, distinct=True)
    index = [str(draw(st.integers(-n, n - 1))), chosen]
    index = index[::-1] if across else index
    rhs, uses = value_of(draw, shape, C.dtype, (count,))
    told = write_part(draw, C)
    if "mask" in told and draw(st.booleans()):
        told["mask"], masks = a_mask(draw, space[1 - across])
        told["uses"] = (C, *masks)
    told |= {"uses": told["uses"] + uses, "update": False}
    return Statement("assign line", C, rhs, index=f"[{', '.join(index)}]", **told)


def assign_element(draw, shape: Shape) -> Statement:
    space = a_space(draw, shape)
    w, sizes = key(draw, space, stored(draw)), shape.sizes(space)
    if 0 in sizes:
        return assign(draw, shape)
    index = ", ".join(str(draw(st.integers(-n, n - 1))) for n in sizes)
    kind, value = choose(draw, "set", "delete", "<<", "<<"), draw(st.sampled_from(t.scalars(w.dtype)))
    if kind == "<<":
        return statement(draw, "assign element", w, value, (), index=f"[{index}]", update=False)
    text = f"del {w.name}[{index}]" if kind == "delete" else f"{w.name}[{index}] = {value}"
    return Statement("assign element", w, text, (w,), raw=True)


def copy(draw, shape: Shape) -> Statement:
    """`C << A`, `C << A.T`, `w << True`, `w << s`."""
    space, dtype = a_space(draw, shape), stored(draw)
    text, x = term(draw, space, source(draw, dtype))
    w = key(draw, space, dtype)
    return statement(draw, "copy", w, text, (x,))


# ---------------------------------------------------------------- objects changed as wholes


def change(draw, shape: Shape) -> Statement:
    """What is not a `<<`: clear, copies that must not share with their source, sizes, contents built again."""
    space, dtype = a_space(draw, shape), stored(draw)
    letters = "AB" if len(space) == 2 else "xy"
    w, v = Key(letters[0], space, dtype), Key(letters[1], space, dtype)
    op = choose(draw, "clear", "dup", "resize", "resize", "build", "build")
    if op == "clear":
        text = f"{w.name}.clear()"
    elif op == "dup":
        text = choose(draw, f"{w.name} = {v.name}.dup()", f"{w.name} = {w.name}.dup()")
    else:
        text = _resized(draw, shape, w) if op == "resize" else _built(draw, shape, w)
    return Statement(op, w, text, (w, v), raw=True)


def _resized(draw, shape: Shape, w: Key) -> str:
    """Smaller or larger, and back."""
    sizes = shape.sizes(w.space)
    others = [max(0, n + draw(st.integers(-5, 5))) for n in sizes]
    return "; ".join(f"{w.name}.resize({', '.join(map(str, new))})" for new in (others, sizes))


def _built(draw, shape: Shape, w: Key) -> str:
    """`dup_op` combines what comes twice."""
    sizes = shape.sizes(w.space)
    count = draw(st.integers(0, 12)) if 0 not in sizes else 0
    lists = [[draw(st.integers(0, n - 1)) for _ in range(count)] for n in sizes]
    vals = [draw(st.integers(0, 1 if w.dtype == "BOOL" else 9)) for _ in range(count)]
    if w.dtype == "BOOL":
        vals = [bool(value) for value in vals]
    values = f"np.array({vals}, np.{t.NP[w.dtype].__name__})"
    dup_op = "binary.lor" if w.dtype == "BOOL" else "binary.plus"
    return f"{w.name}.clear(); {w.name}.build({', '.join(map(str, lists))}, {values}, dup_op={dup_op})"


# ---------------------------------------------------------------- diagonals


def diagonal(shape: tuple[int, int], k: int) -> int:
    return max(0, min(shape[0] + k, shape[1]) if k < 0 else min(shape[1] - k, shape[0]))


def diag(draw, shape: Shape) -> Statement:
    """`w[:n] << A.diag(k)`, `C << v.diag(k)[:n, :n]`."""
    dtype, k = stored(draw), draw(st.integers(-3, 3))
    if draw(st.booleans()):
        v = key(draw, a_space(draw, shape, "vector"), dtype)
        n = shape.sizes(v.space)[0]
        return statement(draw, "diag", key(draw, v.space * 2, dtype), f"{v.name}.diag({k})[:{n}, :{n}]", (v,))
    A = key(draw, a_space(draw, shape, "matrix"), dtype)
    n, w = diagonal(shape.sizes(A.space), k), key(draw, A.space[k > 0], dtype)
    if n > shape.sizes(w.space)[0]:
        w = key(draw, A.space[k <= 0], dtype)
    return statement(draw, "diag", w, f"{A.name}.diag({k})", (A,), index=f"[:{n}]", update=False)


def setdiag(draw, shape: Shape) -> Statement:
    A, k = key(draw, a_space(draw, shape, "matrix"), stored(draw)), draw(st.integers(-2, 2))
    sizes = shape.sizes(A.space)
    n = diagonal(sizes, k)
    if n == 0:
        return copy(draw, shape)
    value, uses = value_of(draw, shape, A.dtype, (n,), "scalar", "part", "part")
    told = write_part(draw, A)
    mask = told.get("mask", "")
    if k and "~" in mask:  # python-graphblas takes the complement on the main diagonal
        mask = ""
    options = [f", accum={told['accum']}" if "accum" in told else "", f", mask={mask}" if mask else ""]
    text = f"{A.name}.setdiag({value}, {k}{''.join(options)})"
    return Statement("setdiag", A, text, told["uses"] + uses, raw=True, mask=mask)
