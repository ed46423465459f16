"""The language, feature by feature: the same text is run by gbgpu and by python-graphblas, and every object must agree
afterwards: entries, values, types."""

from __future__ import annotations

import re

import graphblas as pg
import numpy as np
import pytest
from programs import WIDE

import gbgpu as gb
from algos import predicate_filter
from gbgpu.engine import build
from gbgpu.language.expr import Lazy

# python-graphblas computes operands that are expressions only when it is told to; gbgpu always does
pg.config.set(autocompute=True)


def objects(module, text: str = "") -> dict:
    """A, B: 4 x 4 of INT64 and FP64; C: 3 x 4; E: BOOL; u, v, w: size 4; x: size 3; p: BOOL; s, t, none: scalars.
    Of a text in the ordinary run those that it names: most of the time would go into the others."""
    matrix, vector, scalar = module.Matrix.from_coo, module.Vector.from_coo, module.Scalar
    makers = {
        "A": lambda: matrix([0, 0, 1, 2, 3, 3], [1, 3, 2, 0, 1, 3], [1, 2, 3, 4, 5, 6], nrows=4, ncols=4),
        "B": lambda: matrix([0, 1, 1, 2, 3], [1, 0, 2, 2, 3], [0.5, 2.0, -3.0, 4.0, 7.0], nrows=4, ncols=4),
        "C": lambda: matrix([0, 0, 1, 2], [1, 3, 0, 2], [7, 8, 9, 10], nrows=3, ncols=4),
        "E": lambda: matrix([0, 0, 1, 3], [1, 2, 2, 3], [True, False, True, True], nrows=4, ncols=4),
        "F": lambda: matrix([0, 1, 1, 3], [1, 1, 2, 0], [False, True, True, True], nrows=4, ncols=4),
        "u": lambda: vector([0, 1, 3], [1, -2, 3], size=4),
        "v": lambda: vector([1, 2, 3], [10, 20, 30], size=4),
        "w": lambda: vector([0, 2, 3], [0.5, 1.5, 2.5], size=4),
        "x": lambda: vector([0, 2], [3, 5], size=3),
        "p": lambda: vector([0, 1, 3], [True, False, True], size=4),
        "q": lambda: vector([1, 2, 3], [True, True, False], size=4),
        "s": lambda: scalar.from_value(3),
        "t": lambda: scalar.from_value(1.5),
        "none": lambda: scalar(int),
    }
    named = set(re.findall(r"\w+", text)) if text and not WIDE else makers
    return {name: make() for name, make in makers.items() if name in named} | {
        "gb": module, "np": np,
        "plus": module.binary.plus, "minus": module.binary.minus, "times": module.binary.times,
        "first": module.binary.first, "any_pair": module.semiring.any_pair, "min_plus": module.semiring.min_plus,
        "plus_times": module.semiring.plus_times, "replace": module.replace,
    }  # fmt: skip


def plain(thing):
    """A result as something that compares."""
    if hasattr(type(thing), "new"):  # an expression, which every look at its attributes would compute
        thing = thing.new()
    if hasattr(thing, "to_coo"):
        parts = thing.to_coo()
        order = np.lexsort(parts[-2::-1])  # by row and column
        return str(thing.dtype), [int(n) for n in thing.shape], [part[order].tolist() for part in parts]
    if hasattr(thing, "dtype") and hasattr(thing, "value"):
        return str(thing.dtype), thing.value
    if isinstance(thing, np.ndarray):
        return thing.tolist()
    if isinstance(thing, (tuple, list)):
        return [plain(part) for part in thing]
    if isinstance(thing, dict):
        return {key: plain(value) for key, value in thing.items()}
    return thing.item() if isinstance(thing, np.generic) else thing


def run(module, text: str):
    """(value of the text if it is an expression, what its objects hold afterwards)."""
    space = objects(module, text)
    try:
        code = compile(text, text, "eval")
    except SyntaxError:
        code = None
    if code is None or " << " in text or ".update(" in text:
        exec(text, space)
        result = None
    else:
        result = plain(eval(code, space))
    held = {name: plain(thing) for name, thing in space.items() if len(name) == 1 or name == "none"}
    return result, held


def same(one, two) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, float) or isinstance(two, float):
        return one == two or (one != one and two != two) or bool(np.isclose(one, two, rtol=1e-12, atol=0))
    return one == two


def agree(text: str) -> None:
    mine, theirs = run(gb, text), run(pg, text)
    assert same(mine, theirs), f"{text}\n  gbgpu {mine[0]}\n  oracle {theirs[0]}\n" + "\n".join(
        f"  {name}: {mine[1][name]} / {theirs[1][name]}" for name in mine[1] if not same(mine[1][name], theirs[1][name])
    )


INFIX = [
    *(f"{a} {sign} {b}" for sign in "+ - * / // % **".split() for a, b in ("uv", "uw", "us", "su", "vt")),
    *(f"A {sign} B" for sign in "+ - * / // % ** @".split()),
    *(f"u {sign} {b}" for sign in "== != < <= > >=".split() for b in "v1s"),
    *(f"A {sign} {b}" for sign in "== != < <= > >=".split() for b in "B2"), "2 - u", "2 ** v", "10 // v", "7 % v",
    "1 / w", "2.5 * A", "A + 1", "A.T + A", "A - A.T", "abs(u)", "-u", "-A.T", "~p", "~E", "p & q", "p | q", "p ^ q",
    "E & F", "E | F", "E ^ F", "p | q | p", "plus(u | v)", "plus(u & v)", "minus(u | v)",
    "minus(u | v, left_default=0, right_default=0)", "minus(A | B, left_default=1, right_default=s)",
    "plus(u | v | w)", "times(u & v & w)", "A @ u", "u @ A", "A @ A", "A.T @ A", "A @ B.T", "C @ A", "C.T @ x",
    "u @ v", "u @ w", "min_plus(u @ v)", "min_plus(A @ B)", "min_plus(A @ A @ u)", "plus_times(u @ A @ A)",
    "(A + B) @ u", "(A @ A) @ (u + v)", "gb.monoid.max(A | A.T)", "gb.monoid.min(u & v)", "divmod(v, 7)", "A + u",
    "u + A", "A * u", "u * A", "C + v", "C * v", "x + C", "x * C", "minus(C | v)", "minus(x | C)", "minus(C & v)",
    "first(x & C)", "A.ewise_add(B)", "A.ewise_mult(B)", "A.ewise_union(B, minus, 1, 2)",
    "u.ewise_add(v, gb.monoid.max)", "u.ewise_mult(v, minus)", "u.ewise_union(w, plus, 0, 0.5)", "A.ewise_add(u)",
    "u.ewise_union(A, minus, 0, 0)", "A.mxm(B)", "A.mxm(B, min_plus)", "A.mxv(u)", "u.vxm(A, gb.semiring.max_first)",
    "u.inner(v)", "u.inner(v, min_plus)", "u.outer(v)", "u.outer(x, minus)", "u.outer(x, gb.monoid.max)",
    "A.kronecker(C)", "C.kronecker(A, plus)", "A.T.kronecker(C.T, first)", "plus(A, 2)", "plus(2, A)", "minus(s, u)",
    "minus(u, s)",
]  # fmt: skip

NESTED = [
    "plus(abs(u) | v)", "plus(abs(u) & v)", "plus(abs(u) & abs(v))", "minus(u | v) * w", "abs(minus(u & v)) * -w",
    "(A @ B).reduce_rowwise()", "(A + B).reduce_columnwise()", "(A @ B).reduce_scalar()", "(A + B).T @ u",
    "u @ (A + B).T", "(u + v).outer(x + 1)", "(A + B).power(2)", "(A @ B).kronecker(C + 1)", "(u + v).reposition(1)",
    "(A + B).reposition(1, 1)", "(u + v)[1:3]", "(A + B)[1:3, ::2]", "(A + B)[:, 1]", "(A + B).T[0, :]",
    "plus(u + v, s)", "minus(s, u * v)", "plus(u, u.reduce())", "(u + v).select('>', s)", "(u + v).select(p & q)",
    "(A + B).select(E.V)", "minus(A | B, left_default=s, right_default=t)", "(u + v) @ (A @ B)", "(u + v) @ (u - v)",
    "(A + B) + (u + v)", "(A + B) * (u + v)", "(C + v) * C", "gb.agg.mean(u + v)", "(u * v).reduce() + s", "u + u + u",
    "(u + v) * (u + v)", "abs(-(-u))", "(A.T + B).T", "(A @ B).diag()", "(A + B).dup(float)", "(s + t) * s",
]  # fmt: skip

INPLACE = [
    "u += v", "u += 2", "u -= v", "u -= 1", "u *= v", "u *= 3", "w /= 2", "w /= v", "v //= 7", "v %= 7", "v **= 2",
    "p &= q", "p |= q", "p ^= q", "E &= F", "E |= F", "E ^= F", "A += B", "A += u", "A -= A.T", "A *= A", "A @= A",
    "u @= A", "A += 1", "B += A", "s += 1", "s -= 1", "s *= 2", "t /= 2", "A *= u", "E |= E.T",
    "u |= p", "u ^= p", "A |= E", "A ^= F", "v |= p | q", "s |= gb.Scalar.from_value(True)", "p |= True", "p ^= True",
    "p &= False",
]  # fmt: skip

SUBSCRIPTS = [
    "u[0]", "u[-1]", "u[2]", "u[:]", "u[1:3]", "u[::2]", "u[::-1]", "u[[3, 0, 0]]", "u[np.array([1, 2])]", "u[...]",
    "u[s]", "A[0, 1]", "A[-1, -1]", "A[0, 0]", "A[0, :]", "A[:, 1]", "A[1:, 2]", "A[[3, 0], 3]", "A[3, [3, 1, 1]]",
    "A[:, :]", "A[1:3, ::2]", "A[[0, 3], [1, 3]]", "A[[0, 0, 3], :]", "A[::-1, ::-1]", "A.T[1, 0]", "A.T[0, :]",
    "A.T[:, 2]", "A.T[1:, [0, 3]]", "C[2, :]", "C[:, 2]", "C.T[2, :]", "(A + B)[0, 1]", "(A + B)[0, :]",
    "(u + v)[1:3]", "(u + v)[1]", "A[0, :].new(float)", "A[1:3, 1:].new(mask=E[1:3, 1:].new().V)", "A[0, :].nvals",
    "A[0, :] + u", "A[0:2, 0:2] @ u[0:2]", "A[0, 1] + 5", "u[1] * 2", "u[0] == 1", "int(u[0])", "bool(u[2])",
    "u[0].value", "u[2].value", "u[0].is_empty", "A[0, 1].new(float)", "u[[2, 3]].new(mask=p[[0, 1]].new().S)",
    "A.get(0, 1)", "A.get(0, 0, 7)", "u.get(2, -1)", "u.get(1)", "A.T.get(1, 0)", "0 in u", "2 in u", "(0, 1) in A",
    "(0, 0) in A", "(1, 0) in A.T", "list(u)", "list(A)", "sorted(A.T)", "list(u + v)",
]  # fmt: skip

ASSIGN = [
    "u[0] = 9", "u[0] << 9", "u[2] = s", "u[1] = none", "u[0] << v[2]", "u[2] << v.reduce()", "u[1] << v[0]",
    "u[:] = 5", "u[...] = 5", "u[1:3] = 7", "u[[0, 2]] << v[[2, 0]]", "u[[0, 2]] = [4, 5]",
    "u[1:] = np.array([1, 2, 3])", "u[:2] << v[2:]", "u(plus)[0] << 5", "u(plus)[2] << 5", "u(p.S)[1:3] << 7",
    "u(p.S, replace)[1:] << v[1:]", "u(plus)[[0, 1]] << v[[1, 2]]", "u[1:3](q[1:3].new().S) << 7",
    "u[[0, 1]](p[[0, 1]].new().V, replace) << v[[1, 2]]", "u[[2, 3]](q[[2, 3]].new().V, plus) << v[[2, 3]]",
    "u(mask=p.V, accum=plus)[:] = 2", "u(~p.S) << 8", "u(p) << 8", "u(p == q) << 8", "u(v > 15, replace) << v",
    "u(p.S & q.S) << 8", "u(p.S | q.V) << 8", "u(p.V & ~q.S) << 8", "u(~p.S & ~q.V) << 8", "u(~p.V | q.S) << 8",
    "u(~p.V | ~q.V) << 8", "u(~p.S & q) << 8", "A(E.S & F.S) << 8", "A(E.V | F.V) << 8", "A(~E.V & F.S) << 8",
    "del u[0]", "del u[2]", "del u[1:]", "del u[[0, 3]]", "del u(p.S)[:]", "A[0, 1] = 9", "A[0, 0] << 9",
    "A[1, 2] = none", "A[0, 0] << u[3]", "A[2, 2] << A.reduce_scalar()", "A[0, :] = 5", "A[:, 1] << 7", "A[:, :] = 1",
    "A[1:3, 2:] = 4", "A[[0, 3], [1, 3]] << 0", "A[0, :] << u", "A[:, 2] << u", "A[1, [3, 0, 2]] << x",
    "A[[3, 0, 2], 1] << x", "A[1:, 0] << x", "A[0, :] = [1, 2, 3, 4]", "A[1:3, 1:3] = [[1, 2], [3, 4]]",
    "A[1:, :] << C", "A[:, 1:] << C.T", "A[[0, 2, 3], :] << C", "A[1:3, :2] << B[1:3, 2:]", "A[:, :] << A.T",
    "A[0, 0](plus) << 5", "A(plus)[0, 1] << 5", "A(plus)[:, :] << B", "A(plus)[0, :] << u", "A(plus)[[0, 1], :] << 3",
    "A(E.S)[0, :] << u", "A(E.V)[:, 1:] << 3", "A(~E.S, replace)[1:, :] << 3", "A(E.S, replace)[1:, :] << C",
    "A(E.S, plus, replace)[:, 2] << u", "A(p.S)[0, :] << u", "A(p.V)[0, :] << 5", "A(~p.S, replace)[:, 1] << 5",
    "A(p.S, plus)[1, 1:] << x", "A(p.S, replace)[:, 2] << v", "A[0, :](p.S) << u", "A[0, 1:](x.S) << x",
    "A[1:, 0](x.S, replace) << x", "A[:, 2](p.V, plus) << 3", "A[1:, :](C.S) << C", "A[1:, :](~C.S, replace) << 9",
    "A[1:3, 1:3](E[1:3, 1:3].new().V, plus) << 10", "A[:, :](E.S, replace) << B", "A[:, :](E.V, plus, replace) << B",
    "del A[0, 1]", "del A[0, :]", "del A[:, 1]", "del A[1:, 1:]", "del A(E.S)[:, :]", "A << B", "A << 3",
    "A(E.S) << 3", "A(E.S, plus) << B.T", "A << A.T", "u << v", "u << none", "u(p.S) << none", "s << 5", "s << t",
    "s << none", "s << u.reduce()", "s(plus) << u.reduce()", "s(plus) << 4", "s << u[1]", "s(plus) << u[1]",
    "s(plus) << none", "s << u @ v", "s(plus) << u.inner(v)", "none << 5", "u.update(v)", "A.update(A @ B)",
    "u(p.S)[[2, 0, 3]] << plus_times(C @ u)", "u(p.S, replace)[[3, 1, 0]] << C.reduce_rowwise()",
    "u(~p.S, plus)[[1, 2, 3]] << min_plus(C @ u)", "u(p.V)[1:] << plus_times(C @ u)",
    "u(q.S, replace)[[3, 2, 1, 0]] << plus_times(u @ A)", "u(p.S)[[3, 2, 1, 0]] << A.reduce_columnwise()",
    "u(p.S).update(3)", "u[1:3].update(3)", "u[:2](plus) << 3", "u(plus) << v", "A.clear()", "u.clear()", "s.clear()",
    "u.resize(2)", "u.resize(7)", "A.resize(2, 6)", "A.resize(6, 3)", "A.setdiag(5)", "A.setdiag(u)",
    "A.setdiag(5, 1)", "A.setdiag([1, 2, 3], -1)", "A.setdiag(u, accum=plus)", "A.setdiag(u, mask=p.S)",
    "A.setdiag(7, mask=~p.V)", "A.setdiag(7, mask=E.V)", "A.setdiag(7, mask=~E.S, accum=plus)", "C.setdiag(x, 1)",
    "C.setdiag(1, 3)", "A.build([0, 1], [1, 1], [5, 6], clear=True)", "u.build([0, 5], [1, 2], clear=True, size=6)",
    "A.build([0, 1], [1, 5], [5, 6], clear=True, ncols=6)",
]  # fmt: skip

METHODS = [
    "A.dup()", "A.dup(float)", "A.dup(clear=True)", "A.dup(mask=E.V)", "A.dup('FP32', mask=~E.S)", "u.dup(mask=p.V)",
    "A.T.dup()", "A.T.new(float)", "A.T.new(mask=E.S)", "(u + v).dup(float)", "(A + B).dup(clear=True)",
    "(A @ B).new(mask=E.S)", "(A @ B).new('INT32')", "A.diag()", "A.diag(1)", "A.diag(-2)", "A.T.diag(1)", "C.diag(1)",
    "C.diag(2)", "C.diag(-1)", "u.diag()", "u.diag(1)", "u.diag(-2)", "A.power(0)", "A.power(1)", "A.power(2)",
    "A.power(3)", "A.power(5, min_plus)", "A.T.power(2)", "u.reposition(1)", "u.reposition(-1)",
    "u.reposition(2, size=6)", "u.reposition(-2, size=3)", "u.reposition(10)", "A.reposition(1, 1)",
    "A.reposition(-1, 2)", "A.reposition(1, -1, nrows=6, ncols=2)", "A.T.reposition(1, 0)", "C.reposition(-5, 0)",
    "A.reduce_rowwise()", "A.reduce_columnwise()", "A.reduce_scalar()", "A.T.reduce_rowwise(gb.monoid.max)",
    "A.reduce_rowwise('max')", "A.reduce_rowwise(plus)", "u.reduce(plus)", "u.reduce(gb.agg.mean)", "u.reduce('min')",
    "gb.agg.sum(A)", "gb.agg.sum(A, rowwise=True)", "gb.agg.mean(A, columnwise=True)", "gb.agg.count(u)",
    "u.reduce(gb.monoid.min, allow_empty=False)", "gb.Vector(int, 3).reduce(allow_empty=False)",
    "gb.Vector(int, 3).reduce()", "gb.Matrix(int, 3, 3).reduce_scalar(allow_empty=False)", "A.apply('-')",
    "A.apply(gb.unary.abs)", "A.apply(plus, right=3)", "A.apply(minus, left=s)", "A.T.apply('+', right=1)",
    "u.apply(minus, t)", "A.apply(gb.indexunary.rowindex)", "A.apply(gb.indexunary.colindex, 5)",
    "A.apply(gb.select.tril)", "gb.unary.abs(u + v)", "gb.unary.one(A @ B)", "A.select('>=', 3)",
    "A.select(gb.select.tril)", "A.select(gb.select.triu, 1)", "A.select('tril', -1)", "u.select('!=', s)",
    "u.select(u > 0)", "u.select(p)", "u.select(p.S)", "u.select(~p.S)", "u.select(v > 15)", "A.select(E.V)",
    "A.select(A > 2)", "A.select(B > 1)", "gb.select.valuegt(A, 2)", "gb.select.offdiag(A)", "A.T.select('row<=', 1)",
    "A.T.select('>', 2)", "A.isequal(A)", "A.isequal(A.dup(float))", "A.isequal(A.dup(float), check_dtype=True)",
    "A.isequal(B)", "A.isequal(C)", "A.isequal(A.T)", "u.isequal(u.dup())", "u.isequal(v)", "A.isclose(A + 1e-12)",
    "w.isclose(w * 1.01)", "w.isclose(w * 1.01, rel_tol=0.1)", "w.isclose(w + 0.5, abs_tol=0.6)",
    "(u + v).isequal(v + u)", "s.isequal(3)", "s.isequal(t)", "s == 3", "s == t", "s != 3", "none == None",
    "s.isclose(3.0000000001)", "none.isequal(none)", "s + t", "s - 1", "2 - s", "s * t", "s / 2", "s // 2", "s % 2",
    "s ** 2", "s + none", "s * none", "s < 5", "abs(-s)", "-s", "plus(s | 5)", "plus(s & t)",
    "minus(none | s, left_default=1, right_default=0)", "s.apply('-')", "s.apply(plus, 2)", "s.select('>', 2)",
    "s.select('>', 5)", "s.ewise_add(none)", "s.ewise_mult(t, minus)", "s.ewise_union(none, minus, 0, 10)",
    "s.dup(float)", "s.dup(clear=True)", "s.get()", "none.get(4)", "s.nvals", "none.nvals", "s.is_empty", "int(s)",
    "float(t)", "bool(none)", "np.asarray(s).item()", "[10, 20, 30, 40][s]", "gb.Scalar.from_value(True)",
    "gb.Scalar.from_value(t)", "u.nvals", "A.shape", "A.T.shape", "A.nrows", "C.ncols", "(A @ C.T).shape",
    "(A @ C.T).nvals", "(u @ A).size", "u.wait() is u", "u.S.new()", "u.V.new()", "(~u.S).new()",
    "p.V.new(complement=True)", "p.V.new(int, mask=q.S)", "u.apply('valuegt', 1)", "A.apply('valuele', s)",
    "u.apply('index', 3)", "u.apply('tril', 0)", "A.apply('rowgt', 1)", "A.apply('colgt', 1)", "A.apply('offdiag', 0)",
    "A.apply('triu', 1)", "A.apply('row<=')", "A.apply('row<=', 2)", "u.apply('index[INT32]', 1)",
    "s.apply('valuegt', 1)", "A.apply('max', 2)", "plus(1, 2)", "plus(True, 2.5)", "plus[float](1, 2)",
    "gb.binary.eq(1, 2)", "gb.unary.abs(-3)", "gb.unary.abs(np.int8(-3))", "gb.unary.abs[int](-3)",
    "gb.indexunary.valuegt(3, 1)", "gb.select.valuegt(3, 1)", "gb.monoid.plus(1, 2)", "gb.monoid.plus(u, 3)",
    "gb.monoid.plus(3, u)", "gb.monoid.max(A, s)", "gb.monoid.plus(s, 2)", "gb.monoid.plus[float](A, 3)",
]  # fmt: skip

INVERSES = [
    "A.to_coo()", "A.T.to_coo(sort=False)[2].size", "A.to_csr()", "A.to_csc()", "A.to_dcsr()", "A.to_dcsc()",
    "A.T.to_csr()", "A.to_dicts()", "A.to_dicts('columnwise')", "A.T.to_dicts()", "A.to_edgelist()", "A.to_dense(0)",
    "A.to_dense(fill_value=-1.5)", "A.T.to_dense(0)", "u.to_coo()", "u.to_coo(float, indices=False)", "u.to_dense(0)",
    "u.to_dense(0.5)", "u.to_dict()", "(u + v).to_dict()", "(A @ B).to_coo()", "gb.Matrix.from_csr(*A.to_csr())",
    "gb.Matrix.from_csc(*A.to_csc())", "gb.Matrix.from_dcsr(*A.to_dcsr(), nrows=4, ncols=4)",
    "gb.Matrix.from_dcsc(*A.to_dcsc(), nrows=4, ncols=4)", "gb.Matrix.from_dicts(A.to_dicts(), nrows=5)",
    "gb.Matrix.from_dicts(C.to_dicts(), order='columnwise')", "gb.Matrix.from_dicts([{1: 2}, {0: 3.5}])",
    "gb.Matrix.from_edgelist([(0, 1), (2, 0)])", "gb.Matrix.from_edgelist([(0, 1, 5), (2, 0, 6)], nrows=4)",
    "gb.Matrix.from_edgelist(np.array([[0, 1], [2, 0]]), [5, 6])", "gb.Matrix.from_edgelist([(0, 1), (2, 0)], 7)",
    "gb.Matrix.from_dense([[1, 2], [3, 4]])", "gb.Matrix.from_dense([[1, 0], [0, 4]], 0)",
    "gb.Matrix.from_scalar(3, 2, 2)", "gb.Matrix.from_scalar(s, 2, 2, float)", "gb.Vector.from_dict({1: 2, 3: 4})",
    "gb.Vector.from_dict({1: 2.5}, int, size=9)", "gb.Vector.from_pairs([(0, 1), (4, 5)])",
    "gb.Vector.from_pairs([(0, 1), (0, 5)], dup_op=plus)", "gb.Vector.from_scalar(2.5, 4)",
    "gb.Vector.from_scalar(s, 3)", "gb.Vector.from_dense([1, 0, 3], 0)", "gb.Vector.from_dense([1, 2])",
    "gb.Vector.from_coo([1, 2], s)", "gb.Vector.from_coo([1, 1], [2, 3], dup_op='max')",
    "gb.Vector.from_dict({}, size=3)", "gb.Vector.from_coo([0], 1, size=5)",
    "gb.Matrix.from_coo([], [], [], nrows=2, ncols=2)",
    "gb.Matrix.from_coo([0, 0], [1, 1], [1, 2], dup_op=gb.monoid.plus)", "gb.Matrix(int, 2, 3)",
    "gb.Vector('FP32', 3)", "gb.Vector('GrB_INT8', 3)", "gb.Matrix.from_dicts([{0: 1}, {}])",
    "gb.Matrix.from_dicts([{}, {}], ncols=3)", "gb.Matrix.from_dicts([{}, {}])", "gb.Matrix.from_dicts([])",
    "gb.Matrix.from_dicts({0: {1: 2}, 3: {}})", "gb.Matrix.from_dicts({0: {1: 2}, 3: {}}, nrows=2)",
    "gb.Matrix.from_dicts({0: {1: 2}, 3: {}}, order='col')", "gb.Matrix.from_dicts([{}, {}], nrows=3, order='col')",
    "str(gb.Vector.from_coo([0], [2**63 + 1], dtype='UINT64').to_dense(0).dtype)",
    "gb.Vector.from_coo([0], [2**53 + 1]).to_dense(0.0)", "gb.Matrix.from_coo([0], [0], 2**53 + 1).to_dense(0.5)",
    "gb.Matrix.from_coo([0, 0], [0, 1], [2**53 + 1, 1]).T.to_dense(0.5)", "u[:2].new().to_dense(0.5)",
    "str(gb.Matrix(int, 0, 3).to_dense(0.5).dtype)", "str(gb.Matrix(int, 3, 0).T.to_dense(0.5).dtype)",
    "str(gb.Vector(bool, 0).to_dense(2).dtype)", "gb.Vector.from_coo([0], [5]).to_dense(np.nan, dtype='INT8')",
]  # fmt: skip

TOOLS = [
    "u.ss.is_iso", "gb.Vector.from_scalar(2, 3).ss.iso_value", "list(u.ss.iterkeys())", "list(u.ss.itervalues(1))",
    "list(A.ss.iterkeys())", "u.ss.head(2)", "A.ss.head(3)", "A.ss.flatten()", "A.ss.flatten('col')",
    "A.ss.reshape(2, 8)", "A.ss.reshape(8, -1, order='col')", "u.ss.reshape(2, 2)",
    "u.ss.reshape(2, 2, order='columnwise')", "A.ss.split(2)", "A.ss.split([[1, 3], 2])", "A.ss.split((3, None))",
    "u.ss.split(3)", "u.ss.split([1, 3])", "gb.ss.concat([[A, B], [B, A]])", "gb.ss.concat([u, v, x])",
    "gb.ss.concat([[C, C]], dtype=float)", "gb.ss.diag(A, 1)", "gb.ss.diag(u)", "A.ss.selectk('first', 1)",
    "A.ss.selectk('last', 1, order='col')", "u.ss.selectk('last', 2)", "A.ss.compactify('first', 1)",
    "u.ss.selectk('largest', 2)", "u.ss.selectk('smallest', 1)",
    "A.ss.compactify('last', 2)", "A.ss.compactify('smallest', 1)", "A.ss.compactify('largest', 1, 'col')",
    "A.ss.compactify('first', 1, asindex=True)", "A.ss.compactify('last', 2, reverse=True)",
    "u.ss.compactify('largest', 2)", "u.ss.compactify(reverse=True)", "A.ss.sort()", "A.ss.sort('gt', 'col')",
    "u.ss.sort(gb.binary.gt)", "u.ss.sort(permutation=False)[0]", "A.ss.scan()", "A.ss.scan(gb.monoid.max, 'col')",
    "u.ss.scan()", "w.ss.scan(gb.monoid.times)", "A.ss.build_diag(u)", "u.ss.build_diag(A, 0)",
    "A.ss.export('csr')['indptr']", "A.ss.export('csc')['row_indices']", "C.ss.export('hypercsr')['rows']",
    "A.ss.export('hypercsc')['values']", "A.ss.export('coo')['cols']", "A.ss.export('bitmapr')['bitmap']",
    "u.ss.export('sparse')['indices']", "u.ss.export('bitmap')['bitmap']",
    "gb.Matrix.ss.import_csr(nrows=2, ncols=3, indptr=np.array([0, 1, 2], np.uint64), values=np.array([5, 6]), "
    "col_indices=np.array([1, 2], np.uint64))",
    "gb.Matrix.ss.import_fullr(np.array([[1, 2], [3, 4]]))", "gb.Vector.ss.import_full(np.array([1, 2, 3]))",
    "gb.Vector.ss.import_sparse(size=5, indices=np.array([1, 4], np.uint64), values=np.array([5, 6]))",
    "gb.Vector.ss.import_sparse(size=4, indices=np.array([3, 0, 1]), values=np.array([7, 8, 9]), nvals=2)",
    "gb.Vector.ss.import_sparse(size=4, indices=np.array([3, 0, 1]), values=np.array([7]), is_iso=True, nvals=2)",
    "gb.Vector.ss.import_full(values=np.arange(3), size=2)", "gb.Vector.ss.import_any(values=np.arange(3), size=2)",
    "gb.Vector.ss.import_any(values=np.arange(3), indices=np.arange(3), size=3, format='full')",
    "gb.Vector.ss.import_bitmap(bitmap=np.array([True, False, True]), values=np.arange(3), size=2)",
    *(f"gb.Matrix.ss.import_full{order}(values=np.arange(6).reshape(2, 3), nrows={n}, ncols=2)"
      for order in "rc" for n in (2, 3)),
    "gb.Matrix.ss.import_fullc(values=np.arange(6), nrows=2, ncols=2)",
    "gb.Matrix.ss.import_fullr(values=np.arange(6).reshape(2, 3), nrows=1)",
    "gb.Matrix.ss.import_bitmapr(bitmap=np.array([[True, False, True]]), values=np.arange(3).reshape(1, 3), ncols=2)",
    "gb.Matrix.ss.import_hypercsr(nrows=3, ncols=3, rows=np.array([0, 2]), indptr=np.array([0, 1, 2]), "
    "col_indices=np.array([0, 1]), values=np.array([1, 2]), nvec=1)",
    *(f"gb.Matrix.ss.import_any(**A.ss.export('{format}'))" for format in ("csr", "coo", "bitmapr")),
    *(f"gb.Vector.ss.import_any(**u.ss.export('{format}'))" for format in ("sparse", "bitmap")),
    "u.ss.split([2, None])", "u.ss.split([1, None, 1])", "u.ss.split([4, None])", "A.ss.split(([1, 3], [2, None]))",
    "A.ss.split(np.array([1, 3]))", "A.ss.reshape([2, 8])",
]

# each raises in both, an exception of one class
REFUSED = [
    "p ^ 3", "3 ^ p", "p ^ 1.0", "E ^ 3", "p ^ s", "p ^ u", "p | 3", "p & 3", "exec('p ^= np.nan')", "exec('p ^= 3')",
    "exec('p |= 3')", "exec('p &= 3')", "exec('E |= 3')", "exec('p |= u')", "exec('u &= p')", "exec('u |= u')",
    "exec('u |= True')", "exec('A |= p')", "gb.Vector.ss.import_full(np.arange(3), foo=1)",
    "gb.Vector.ss.import_sparse(size=4, indices=np.arange(3), values=np.arange(3), foo=1)",
    "gb.Vector.ss.import_sparse(size=4, indices=np.arange(3), values=np.arange(3), format='bitmap')",
    "gb.Vector.ss.import_sparse(size=4, indices=np.arange(3), values=np.arange(3), nvals=4)",
    "gb.Vector.ss.import_bitmap(bitmap=np.ones(3, bool), values=np.arange(3), size=4)",
    "gb.Matrix.ss.import_fullr(np.ones((2, 2)), format='csr')", "gb.Matrix.ss.import_fullr(np.arange(6))",
    "A.ss.reshape(-1, -1)", "A.ss.reshape(16)", "A.ss.reshape((2, 2, 4))", "u.ss.reshape(-1)", "A.ss.split([1])",
    "A.ss.split([1, 2, 1])", "u.ss.split((1, [1]))", "u.ss.split([None, None])", "u.ss.split([5, None])",
    "gb.ss.concat([])", "gb.ss.concat([[]])", "gb.ss.concat([[A], []])", "gb.ss.concat([[A, A], [A]])",
    "gb.ss.concat(3)", "A.ss.concat([[]])", "A.apply('tril', left=2)", "A.apply('no such', 1)",
    "gb.Vector.from_coo([0, 1], [1, 2, 3])", "gb.Matrix.from_coo([0], [1, 2], [3])",
    "gb.Matrix.from_coo([0, 1], [1, 2], [3])", "u.build([0, 1], [1], clear=True)",
    "A.build([0, 1], [1], [3], clear=True)", "gb.Vector('foo', 3)", "gb.Vector(object, 3)", "gb.Vector(None, 3)",
    "gb.dtypes.lookup_dtype('xx')", "u.dup('xx')", "plus['xx']", "gb.unary.from_string('abs[xx]')",
    "gb.Matrix.from_edgelist([(0, 1, 2), (1, 2, 3)], values=[3, 4])", "gb.Matrix.from_dense([1, 2])",
    "gb.Matrix.from_dense(5)", "gb.Vector.from_dense(5)", "plus('x', 'y')", "plus(1, 'y')", "gb.monoid.plus(1)",
    "gb.monoid.plus(u, u)", "gb.unary.abs('x')", "gb.agg.from_string('==')",
]  # fmt: skip


@pytest.mark.parametrize("text", INFIX + NESTED)
def test_infix(devices, text):
    agree(text)


@pytest.mark.parametrize("text", INPLACE)
def test_inplace(devices, text):
    agree(text)


@pytest.mark.parametrize("text", SUBSCRIPTS)
def test_subscripts(devices, text):
    agree(text)


@pytest.mark.parametrize("text", ASSIGN)
def test_assignment(devices, text):
    agree(text)


@pytest.mark.parametrize("text", METHODS)
def test_methods(devices, text):
    agree(text)


@pytest.mark.parametrize("text", INVERSES)
def test_constructors_and_their_inverses(devices, text):
    agree(text)


@pytest.mark.few(20)
@pytest.mark.parametrize("text", TOOLS)
def test_ss(devices, text):
    agree(text)


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse(devices, text):
    with pytest.raises(Exception) as theirs:
        run(pg, text)
    with pytest.raises(Exception) as mine:
        run(gb, text)
    assert isinstance(mine.value, getattr(gb.exceptions, theirs.type.__name__, theirs.type)), mine.value


def test_index_unary_operators_of_ones_own_by_name(devices):
    def shifted(x, i, j, t):
        return x + i + t

    if "test_applied" not in dir(gb.indexunary):
        gb.indexunary.register_new("test_applied", shifted)
    A, theirs = (objects(module)["A"] for module in (gb, pg))
    expected = plain(theirs.apply(pg.indexunary.register_anonymous(shifted), 7))
    assert plain(A.apply("test_applied", 7)) == plain(A.apply("test_applied", gb.Scalar.from_value(7))) == expected
    with pytest.raises(TypeError, match="left"):
        A.apply("test_applied", left=7)


# ---------------------------------------------------------------- what python-graphblas does not have


@pytest.mark.parametrize("how", ["smallest", "largest"])
@pytest.mark.parametrize("k", [0, 1, 3, 50])
@pytest.mark.parametrize("dtype", ["INT64", "UINT8", "FP64", "BOOL"])
def test_selectk_by_value(devices, how, k, dtype):
    """Against NumPy's sorting: of equal values the first, NaN after all others; of matrices by row and by column."""
    random = np.random.default_rng(5)
    rows, cols = np.divmod(random.permutation(81)[:30], 9)
    values = random.integers(0, 4, 30).astype(gb.dtypes.lookup_dtype(dtype).np_type)
    values[values == 3] = np.nan if dtype == "FP64" else 3

    def kept(lines, where):
        found = set()
        for line in set(lines.tolist()):
            here = sorted(np.flatnonzero(lines == line), key=lambda e: where[e])
            order = np.argsort(values[here], kind="stable")
            if how == "largest":
                order = len(here) - 1 - np.argsort(values[here][::-1], kind="stable")[::-1]
            found |= {(int(lines[here[e]]), int(where[here[e]])) for e in order[:k]}
        return found

    A = gb.Matrix.from_coo(rows, cols, values, nrows=9, ncols=9)
    by_row, by_column = A.ss.selectk(how, k), A.ss.selectk(how, k, "columnwise")
    assert set(by_row.ss.iterkeys()) == kept(rows, cols)
    assert {(j, i) for i, j in by_column.ss.iterkeys()} == kept(cols, rows)
    v = gb.Vector.from_coo(rows * 9 + cols, values, size=81)
    best = v.ss.selectk(how, k)
    assert best.dtype == v.dtype and set(best.ss.iterkeys()) == {i for _, i in kept(0 * rows, rows * 9 + cols)}
    with pytest.raises(ValueError, match="largest"):
        v.ss.selectk("greatest", k)


class Dlpack:
    """An array that hides behind the protocol."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_by_dlpack(devices):
    ids, vals = Dlpack(np.array([0, 2])), Dlpack(np.array([1.5, 2.5]))
    v = gb.Vector.from_coo(ids, vals, size=4)
    assert v.to_dict() == {0: 1.5, 2: 2.5} and v.dtype == "FP64"
    A = gb.Matrix.from_coo(ids, ids, vals, nrows=3, ncols=3)
    assert A.diag().to_dict() == {0: 1.5, 2: 2.5}
    assert gb.Matrix.from_dense(Dlpack(np.ones((2, 2)))).nvals == 4


@pytest.mark.parametrize("dtype", ["FP64", "INT8"])
def test_functions_of_the_rows_of_each_device(devices, dtype):
    random = np.random.default_rng(4)
    a, b = random.integers(1, 9, (150, 6)), random.integers(1, 9, (150, 3))
    rows = np.flatnonzero(random.random(150) < 0.7)
    A, B = gb.Matrix(dtype, 150, 6), gb.Matrix("FP64", 150, 3)
    A[rows, :] << gb.Matrix.from_dense(a[rows], dtype=dtype)
    B[rows, :] << gb.Matrix.from_dense(b[rows], dtype="FP64")

    def ahead(x, y):
        x = x.copy()
        x[:, 0] = x[:, 1] * y[:, 2] - y[:, 0]
        return x

    expected = a.copy()
    expected[:, 0] = a[:, 1] * b[:, 2] - b[:, 0]
    found = A.ss.map_rows(ahead, B, name="found")
    assert (found.dtype, found.shape, found.name) == (dtype, (150, 6), "found")
    assert found.isequal(A.ss.map_rows(lambda x, y: ahead(x, y), B))
    assert np.array_equal(found.to_coo()[2].reshape(-1, 6), expected[rows])
    assert np.array_equal(pattern_of(found), pattern_of(A))
    ones = gb.Matrix.from_coo(*np.nonzero(np.ones((150, 6))), 2, nrows=150, ncols=6)
    assert ones.ss.map_rows(lambda x: x + 1).reduce_scalar().new().value == 2700
    with gb.loop(2):
        A << A.ss.map_rows(lambda x: x + 1)
    assert np.array_equal(A.to_coo()[2].reshape(-1, 6), a[rows] + 2)
    some = gb.Matrix.from_coo([0], [1], nrows=150, ncols=6)
    assert ones.ss.map_rows(lambda x, y: x + y, ones.T.new().T).reduce_scalar().new().value == 3600
    for wrong, given in (
        (A, (lambda x: x[:, :2],)), (A, (lambda x: x.tolist(),)), (A, (ahead, ones)), (some, (lambda x: x,))
    ):  # fmt: skip
        with pytest.raises(gb.exceptions.InvalidValue):
            wrong.ss.map_rows(*given)
    with pytest.raises(TypeError):
        A.ss.map_rows(ahead, np.ones((150, 3)))


def test_functions_of_rows_that_lie_on_one_device_and_on_several(devices, monkeypatch):
    """As in sessions that leave small objects to the first device."""
    monkeypatch.setattr(gb.settings.session().maps, "_whole", 1000)
    a, b = np.random.default_rng(3).random((2, 150, 9))
    few, many = gb.Matrix.from_dense(a[:, :3]), gb.Matrix.from_dense(b)
    assert np.array_equal(few.ss.map_rows(lambda x, y: x - y[:, 6:], many).to_dense(), a[:, :3] - b[:, 6:])
    assert np.array_equal(many.ss.map_rows(lambda x, y: x * y[:, :1], few).to_dense(), b * a[:, :1])


def test_outer_products_of_vectors_that_lie_on_one_device_and_on_several(devices, monkeypatch):
    monkeypatch.setattr(gb.settings.session().maps, "_whole", 200)
    one, many, a = gb.Vector.from_coo([0, 3], 2.0, size=4), gb.Vector.from_scalar(3.0, 300), np.zeros((300, 4))
    a[:, [0, 3]] = 6
    assert np.array_equal(many.outer(one).new().to_dense(0.0), a)
    assert np.array_equal(one.outer(many).new().to_dense(0.0), a.T)


def pattern_of(A):
    return np.stack(A.to_coo(values=False)[:2])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("dtype", ["FP32", "INT8", "BOOL"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_repeats_are_combined_as_elementwise_operators_do(name, dtype, signed):
    """Also where NumPy's functions differ: NaN is ignored, and -0.0 is below 0.0."""
    rng, kind = np.random.default_rng(2), gb.dtypes.lookup_dtype(dtype).np_type
    places, drawn = rng.integers(0, 40, 400), rng.integers(-3, 4, 400)
    values = np.where(drawn == 3, np.nan, drawn) if dtype == "FP32" else np.abs(drawn) if dtype == "BOOL" else drawn
    values = (-0.0 * drawn if signed else values).astype(kind)
    found = gb.Vector.from_coo(places, values, size=40, dup_op=name)
    expected = gb.Vector(dtype, 40)
    for k in range(400):
        expected(name)[int(places[k])] << values[k]
    (at, mine), (there, theirs) = found.to_coo(), expected.to_coo()
    assert np.array_equal(at, there) and np.array_equal(mine.view(np.uint8), theirs.view(np.uint8))


def test_vectors_as_subscripts(devices):
    """The values of a Vector, in the order of its indices, are ids: they stay on the devices."""
    u = gb.Vector.from_coo([0, 1, 3], [1, -2, 3], size=4)
    ids = gb.Vector.from_dense([3, 0, 0])
    assert u[ids].new().to_dict() == {0: 3, 1: 1, 2: 1}
    A = gb.Matrix.from_coo([0, 1, 3], [1, 2, 3], [5, 6, 7], nrows=4, ncols=4)
    assert A[ids, :].new().isequal(A[[3, 0, 0], :].new()) and A[:, ids].new().isequal(A[:, [3, 0, 0]].new())
    w = gb.Vector(int, 4)
    w(gb.binary.plus)[ids] << gb.Vector.from_dense([10, 1, 2])  # the two that meet at 0 are added
    assert w.to_dict() == {0: 3, 3: 10}
    w[ids] << 5
    assert w.to_dict() == {0: 5, 3: 5}
    u(gb.binary.min)[gb.Vector.from_dense([0, 1])] << gb.Vector.from_dense([0, 0])
    assert u.to_dict() == {0: 0, 1: -2, 3: 3}


@pytest.mark.parametrize("n, k", [(1, 1), (10, 30), (100, 5), (64, 64), (130, 1000)])
@pytest.mark.parametrize("dtype", ["UINT8", "INT64", "UINT64"] + ["INT32", "UINT32"] * WIDE)
def test_full_vectors_gather_and_scatter(devices, n, k, dtype):
    """`v[ids]`, and `v(accum)[ids] << u` where ids repeat, against NumPy."""
    random = np.random.default_rng(n)
    x, u, ids = random.integers(0, 100, n), random.integers(0, 100, k), random.integers(0, n, k)
    places = gb.Vector.from_coo(np.arange(k), ids, dtype=dtype, size=k)
    for kind in ("INT64", "INT8", "FP32") if dtype in ("UINT8", "INT64") else ("INT64",):
        given = u.astype(gb.dtypes.lookup_dtype(kind).np_type)
        v = gb.Vector.from_coo(np.arange(n), x, dtype=kind, size=n)
        np.testing.assert_array_equal(v[places].new().to_dense(), x[ids])
        for accum, ufunc in ((gb.binary.min, np.minimum), (gb.binary.max, np.maximum), (gb.binary.plus, np.add)):
            expected = v.to_dense()
            ufunc.at(expected, ids, given)
            v(accum)[places] << gb.Vector.from_dense(given)
            np.testing.assert_array_equal(v.to_dense(), expected)
            expected[ids] = expected[ids].min()
            v[places] << expected[ids].min()
            np.testing.assert_array_equal(v.to_dense(), expected)
    v = gb.Vector.from_dense(x)
    v(gb.binary.min)[gb.Vector.from_dense(np.arange(n))] << v  # the values are those from before
    np.testing.assert_array_equal(v.to_dense(), x)
    wrong = gb.Vector.from_coo([0, 1], [0, n], dtype=dtype, size=2)
    with pytest.raises(IndexError):
        v[wrong].new().to_coo()
    with pytest.raises(IndexError):
        v(gb.binary.min)[wrong] << gb.Vector.from_dense(np.array([1, 1]))
        v.to_coo()


def change(space: dict) -> None:
    """Other entries and values in every object, in place."""
    for name in "ABCEFuvwxpq":
        x = space[name]
        x << (~x if x.dtype == "BOOL" else 2 - x)
        here, there = (0, 2) if x.ndim == 1 else ((0, 1), (2, 3))
        del x[here]
        x[there] << 1
    space["s"].value, space["t"].value = 4, 0.25


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_operands_are_read_when_the_statement_runs(devices):
    """Built, its operands changed, then computed: an expression is what it is when it is computed. Subscripts that are
    Scalars are read at once, as Python's are."""
    texts = [text for text in (*INFIX, *NESTED, *SUBSCRIPTS, *METHODS) if "[s]" not in text]
    for name in [name for name in AGGREGATORS if "FP64" in getattr(gb.agg, name)]:
        texts += [f"gb.agg.{name}(B, rowwise=True)", f"gb.agg.{name}(A + B, columnwise=True)", f"gb.agg.{name}(w)"]
    early, late = [], 0
    step = 10 if devices.inline != "auto" else 1 if WIDE else 3
    for text in texts[::step]:
        before, after = objects(gb), objects(gb)
        expr = eval(text, before)
        if not isinstance(expr, Lazy):
            continue
        change(before)
        change(after)
        late += 1
        if not same(plain(expr.new()), plain(eval(text, after).new())):
            early.append(text)
    assert not early and late > 250 / step


def test_trees_may_be_deep_and_share_branches(devices):
    u = objects(gb)["u"]
    total, twice = u, u
    for _ in range(2000):
        total = total + u
    for _ in range(40):
        twice = twice + twice
    assert total.new().to_dict() == {0: 2001, 1: -4002, 3: 6003}
    assert twice.new().to_dict() == {0: 2**40, 1: -(2**41), 3: 3 * 2**40}
    assert len(repr(total)) < 2000 and len(str(gb.explain(u << twice)).splitlines()[0]) < 200


def test_each_use_of_an_expression_computes_it(devices):
    A = objects(gb)["A"]
    expr = A @ A
    count = expr.nvals
    assert repr(expr).endswith("Do expr.new() or other << expr to calculate the expression.")
    A.clear()
    assert count and expr.nvals == 0
    made = expr.new(name="C")
    assert made.name == "C" and expr.new() is not made


def test_what_repr_shows(devices):
    space = objects(gb)
    text = repr(space["A"])
    assert "nvals  nrows  ncols  dtype" in text and "INT64" in text and len(text.splitlines()) == 8
    assert repr(space["u"]).splitlines()[-1].split() == ["value", "1", "-2", "3"]
    assert "value" in repr(space["s"]) and "A.T" not in repr(space["A"].T)
    big = gb.Matrix.from_coo([0], [1], [2], nrows=10**5, ncols=10**5)
    assert len(repr(big).splitlines()) < 30 and "gb.MatrixExpression" in repr(big.ewise_add(big))
    for thing in (*(space[name] for name in "AuEs"), space["A"] @ space["B"], space["u"] | space["v"]):
        assert thing._repr_html_().startswith("<div>")
    assert "<td>-2</td>" in space["u"]._repr_html_()


def test_plans_of_compositions(devices):
    """What a composition runs is explained statement by statement."""
    space = objects(gb)
    with gb.explain() as text:
        space["A"][0, [1, 3]].new()
    assert len(text) == 1 and "any_second" in str(text) and "extract" in str(text)
    assert "minus" in str(gb.explain(space["u"] - space["v"]))


def test_objects_can_be_pickled(devices):
    import pickle

    space = objects(gb)
    for name in "ABEupst":
        again = pickle.loads(pickle.dumps(space[name]))
        assert again.isequal(space[name], check_dtype=True) and again.dtype is space[name].dtype
    assert pickle.loads(pickle.dumps(gb.replace)) is gb.replace
    assert pickle.loads(pickle.dumps(gb.agg.mean)) is gb.agg.mean


AGGREGATORS = sorted(set(dir(gb.agg)) - {"Aggregator", "TypedAggregator", "from_string", "ss"})


@pytest.mark.parametrize("dtype", ["INT64", "FP32", "BOOL"] + ["UINT8"] * WIDE)
@pytest.mark.parametrize("name", AGGREGATORS)
def test_aggregators(devices, name, dtype):
    entries = "[3, 1, 3]"
    if name == "any_value":  # of one value: which one is taken is left open
        values = entries = "2"
    elif name in ("vars", "stds") and dtype == "UINT8":
        values = "[1, 1, 2, 1, 2, 1]"  # python-graphblas squares the sum in the type of the entries
    else:
        values = "[1, 4, 2, 2, 0, 3]"
    A = f"gb.Matrix.from_coo([0, 0, 1, 1, 2, 4], [1, 3, 0, 2, 2, 1], {values}, {dtype!r}, nrows=5, ncols=4)"
    v = f"gb.Vector.from_coo([1, 2, 4], {entries}, {dtype!r}, size=6)"
    for text in (f"{A}.reduce_rowwise(op)", f"{A}.reduce_columnwise(op)", f"{A}.reduce_scalar(op)", f"{v}.reduce(op)"):
        text = text.replace("op", f"getattr(gb.agg.ss, {name!r}, None) or gb.agg.{name}")
        try:
            theirs = run(pg, text)[0]
        except (KeyError, ValueError) as error:
            with pytest.raises(type(error)):
                run(gb, text)
        else:
            mine = run(gb, text)[0]
            assert mine[0] == theirs[0], text
            tolerance = {"rtol": 1e-5 if dtype == "FP32" else 1e-12}
            for one, two in zip(np.ravel(mine[-1]), np.ravel(theirs[-1]), strict=True) if len(mine) == 2 else ():
                assert one is two or np.isclose(float(one), float(two), **tolerance, equal_nan=True), text
            for one, two in zip(mine[-1], theirs[-1], strict=True) if len(mine) == 3 else ():
                np.testing.assert_allclose(one, two, **tolerance, err_msg=text)


DIAGONALS = ["plus_times(D @ A)", "minus(A @ D)", "min_first(A.T @ D)", "max_second(D @ A.T)", "any_minus(D @ D)"]
DIAGONALS += ["plus_times(K @ A)", "plus_firsti(D @ A)", "plus_plus(A @ K)", "any_pair(K @ K)", "plus_times(D @ A @ D)"]


@pytest.mark.parametrize("mask", ["", "(A.S)", "(~A.S)", "(D.S, replace=True)", "(A.V, accum=M.binary.plus)"])
@pytest.mark.parametrize("text", DIAGONALS)
def test_diagonals_scale(devices, text, mask):
    """Products with a diagonal that has every entry, also where the result shares the pattern of the mask."""
    text = text.replace("minus(A @ D)", "plus_minus(A @ D)")

    def held(M):
        random = np.random.default_rng(3)
        rows, cols = np.divmod(random.permutation(81)[:30], 9)
        A = M.Matrix.from_coo(rows, cols, random.integers(-3, 4, 30), nrows=9, ncols=9)
        D, K = M.Vector.from_coo(range(9), range(2, 11)).diag(), M.Vector.from_scalar(3, 9).diag()
        C = A.dup()
        exec(f"C{mask or '()'} << {'M.semiring.' + text}", {"M": M, "A": A, "D": D, "K": K, "C": C})
        second = M.binary.minus(A & C).new()
        return plain(C), plain(second), plain(M.binary.plus(A | C).new())

    assert same(held(gb), held(pg))


def test_plans_of_diagonals(devices):
    A = gb.Matrix.from_coo([0, 1], [1, 0], [1.5, 2.5])
    assert "scale" in str(gb.explain(gb.semiring.plus_times(gb.Vector.from_scalar(2.0, 2).diag() @ A)))
''

@pytest.mark.parametrize("dtype", [">f8", ">i2", "<f4"])
def test_arrays_of_the_other_byte_order(dtype):
    """They are converted where they come in: values, ids, offsets, scalars and types by their names."""
    given, ids, offsets = np.array([1, 2], dtype), np.array([0, 1], ">i4"), np.array([0, 1, 2], ">i8")
    matrix, vector, sparse = gb.Matrix, gb.Vector, gb.sparse
    v, A = vector.from_dense([1.0, 2.0]), sparse.csr_array(np.eye(2))

    def placed(x, *places):
        x[places if len(places) > 1 else places[0]] = given
        return x

    filled = vector(dtype, 2)
    filled.build(ids, given)
    for made, expected in (
        *((each, [[1, 0], [0, 2]]) for each in (
            matrix.from_coo(ids, ids, given), matrix.from_csr(offsets, ids, given),
            matrix.from_csc(offsets, ids, given),
            matrix.from_dense(np.diag(given), missing_value=0), matrix.from_edgelist(np.stack([ids, ids], 1), given),
            vector.from_dense(given).diag(), sparse.coo_array((given, (ids, ids))), sparse.diags_array(given),
            sparse.csr_array((given, ids, offsets), shape=(2, 2)), sparse.csc_array(np.diag(given)), A * given,
            sparse.csr_array([[1, 0], [0, 2]], dtype=dtype), A @ np.diag(given), A.multiply(given),
            placed(sparse.csr_array((2, 2), dtype=dtype), ids, ids),
        )),
        *((each, [1, 2]) for each in (
            vector.from_coo(ids, given), vector.from_dense(given), filled, v.dup(np.dtype(dtype)), v[ids].new(),
            A @ given, vector.from_dense([1, 2], dtype=dtype), placed(v.dup(), ids),
            sparse.coo_array((given, (ids, ids))).data,
        )),
        (gb.binary.plus(v, given[1]).new(), [3, 4]), (v.select(">", given[0]).new(), [0, 2]),
        (vector.from_coo([1], given[1], size=2), [0, 2]),
        (vector.from_coo([1], [2.0], size=2).to_dense(given[0]), [1, 2]),
        (A.astype(dtype), [[1, 0], [0, 1]]),
    ):  # fmt: skip
        dense = made.to_dense(0) if hasattr(made, "to_dense") else made.toarray() if hasattr(made, "toarray") else made
        assert dense.tolist() == expected and dense.dtype.isnative
    assert gb.dtypes.lookup_dtype(dtype) is gb.dtypes.lookup_dtype(np.dtype(dtype).newbyteorder("="))
    assert predicate_filter(np.array([1, 5, 9], dtype), ">", 3).tolist() == [5, 9]


@pytest.mark.parametrize("bits", [0, 1, 20, 31, 45, 59])
def test_entries_are_sorted_as_numpy_sorts_them(monkeypatch, bits):
    """By rows, then columns; of equal places in the order in which they came. Words are sorted, not their order, up to
    the sizes that 64 bits hold."""
    random, size = np.random.default_rng(bits), 1 << bits
    for count in (0, 1, 2, 500):
        for spread in (size, min(size, 20)):
            rows, cols = (random.integers(size - spread, size, count) for _ in range(2))
            order, one = np.lexsort((cols, rows)), np.argsort(rows, kind="stable")
            expected = rows[order].tolist(), cols[order].tolist(), order.tolist()
            with monkeypatch.context() as patched:
                patched.setattr(np, "lexsort", None)
                if bits < 55:
                    patched.setattr(np, "argsort", None)
                for kind in ("int64", "int32") if bits <= 31 else ("int64",):
                    found = build._by_rows(rows.astype(kind), cols.astype(kind), size, size)
                    assert tuple(part.tolist() for part in found) == expected
                    assert [part.dtype.name for part in found] == [kind, kind, "int64"]
                assert build._stable(rows, size).tolist() == one.tolist()
