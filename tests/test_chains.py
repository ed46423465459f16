"""Elementwise chains in one statement are one pass: the same results as python-graphblas's, one statement, no
temporary."""

from __future__ import annotations

import graphblas
import numpy as np
import pytest

import gbgpu as gb
from gbgpu.trace import counters

IDS, OTHERS = [0, 2, 3, 5, 8], [2, 3, 4, 8]
CHAINS = {  # text, statements that are left
    "unary.abs(binary.minus(x & y))": 1,
    "unary.sqrt(unary.abs(x))": 1,
    "unary.ainv(unary.abs(unary.ainv(x)))": 1,
    "binary.plus(unary.abs(x), 2)": 1,
    "binary.minus(10, unary.abs(x))": 1,
    "unary.abs(x.apply('minus', 3))": 1,
    "unary.abs(x.apply('minus', left=3))": 1,
    "binary.times(unary.abs(x) & unary.ainv(y))": 1,
    "binary.minus(x & unary.abs(y))": 1,
    "binary.minus(unary.ainv(x) & y)": 1,
    "unary.abs(binary.times(unary.ainv(x) & y))": 1,
    "binary.gt(unary.abs(x), 2)": 1,
    "unary.lnot(binary.gt(x & y))": 1,
    "unary.identity(binary.truediv(x & y))": 1,
    # not of values alone, or not elementwise on one structure: a temporary as before
    "unary.sqrt(x.apply('rowindex'))": 2,
    "unary.abs(binary.minus(x | y))": 2,
    "binary.plus(x.apply('times', 2), 3)": 2,
    "binary.plus(binary.minus(x & y), 3)": 2,
}


def space(module, dtype, matrix):
    names = {"unary": module.unary, "binary": module.binary}
    for name, ids, low in (("x", IDS, -3), ("y", OTHERS, -1)):
        values = (np.arange(low, low + len(ids))).astype(dtype)
        if matrix:
            names[name] = module.Matrix.from_coo([i % 3 for i in ids], ids, values, nrows=3, ncols=9)
        else:
            names[name] = module.Vector.from_coo(ids, values, size=9)
    return names


@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
@pytest.mark.parametrize("chain", CHAINS)
def test_chains_are_one_statement(devices, chain, dtype, matrix):
    ours, theirs = space(gb, dtype, matrix), space(graphblas, dtype, matrix)
    before = counters.statements
    found = eval(chain, ours).new()
    assert counters.statements - before == CHAINS[chain]
    expected = eval(chain, theirs).new()
    assert str(found.dtype) == str(expected.dtype)
    for mine, other in zip(found.to_coo(), expected.to_coo(), strict=True):
        assert np.array_equal(mine, other, equal_nan=np.asarray(mine).dtype.kind == "f")


THREE = [
    "binary.minus(binary.plus(x | y) & z)",
    "binary.minus(z & binary.plus(x | y))",
    "binary.times(binary.minus(x & y) & z)",
    "binary.lt(z & binary.minus(x & y))",
    "binary.plus(x.ewise_union(y, 'minus', 3, 5) & z)",
    "unary.abs(binary.minus(binary.plus(x | y) & z))",
    "(x + y) * z",
    "z * (x - y)",
    "binary.truediv(unary.abs(binary.minus(x & y)) & z)",
]


@pytest.mark.parametrize("forms", ["list", "bitmap", "full", "mixed", "one value"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("chain", THREE)
def test_chains_of_three_vectors_are_one_statement(devices, chain, dtype, forms):
    ours, theirs = space(gb, dtype, False), space(graphblas, dtype, False)
    for names, module in ((ours, gb), (theirs, graphblas)):
        names["z"] = module.Vector.from_coo([0, 1, 2, 4, 8], np.arange(1, 6).astype("uint8"), size=9)
        if forms in ("full", "mixed"):
            names["x"] = module.Vector.from_coo(range(9), np.arange(-4, 5).astype(dtype))
        if forms == "full":
            names |= {name: names["x"].dup() for name in "yz"}
        if forms == "one value":
            values = {"x": 3, "y": 4, "z": 2}
            names |= {name: module.Vector.from_scalar(value, 9, dtype=dtype) for name, value in values.items()}
    if forms in ("bitmap", "mixed"):
        for name in "xyz" if forms == "bitmap" else "yz":
            ours[name] = ours[name].dup()
            ours[name](form="bitmap") << ours[name]
    before = counters.statements
    found = eval(chain, ours).new()
    assert counters.statements - before == 1
    expected = eval(chain, theirs).new()
    assert str(found.dtype) == str(expected.dtype)
    for mine, other in zip(found.to_coo(), expected.to_coo(), strict=True):
        assert np.array_equal(mine, other, equal_nan=np.asarray(mine).dtype.kind == "f")
    assert found.nvals == expected.nvals
    plan = str(gb.explain(eval(chain, ours)))
    assert plan.count("ewise") == (2 if forms == "list" else 1), plan


FOLDED = ["binary.minus(x & y)", "binary.plus(x | y)", "x.ewise_union(y, 'minus', 3, 5)", "binary.lt(x & y)", *THREE]


@pytest.mark.parametrize("forms", ["list", "bitmap", "full", "one value", "apart"])
@pytest.mark.parametrize("pair", FOLDED)
def test_reductions_of_pairs_are_one_pass(devices, pair, forms):
    """Of what is nowhere (apart: no row has both) nothing comes, or the identity."""
    n, rng = 1000, np.random.default_rng(5)
    ours, theirs = ({"unary": module.unary, "binary": module.binary} for module in (gb, graphblas))
    kept = {name: rng.random(n) < 0.4 for name in "xyz"}
    if forms == "apart":
        kept["y"] &= ~kept["x"]
    for name, rows in kept.items():
        ids = np.arange(n) if forms in ("full", "one value") else np.flatnonzero(rows)
        values = np.full(len(ids), 3.0) if forms == "one value" else rng.integers(-9, 9, len(ids)) / 4
        for names, module in ((ours, gb), (theirs, graphblas)):
            names[name] = module.Vector.from_coo(ids, values, size=n)
        if forms == "one value":
            ours[name] = gb.Vector.from_scalar(3.0, n)
        if forms == "bitmap":
            ours[name](form="bitmap") << ours[name].dup()
    logical = "lt" in pair
    for op, identity in (("lxor" if logical else "plus", 0), ("min", True if logical else np.inf), ("lor", 0)):
        expected = eval(pair, theirs).new().reduce(op).new()
        before = counters.statements
        found = eval(pair, ours).reduce(op).new()
        assert counters.statements - before == 1
        assert str(found.dtype) == str(expected.dtype) and found.is_empty == expected.is_empty
        if not found.is_empty:
            assert np.isclose(found.value, expected.value), (op, found, expected)
        else:
            assert eval(pair, ours).reduce(op, allow_empty=False).new().value == identity
        plan = str(gb.explain(eval(pair, ours).reduce(op)))
        assert ("fold" in plan) != ("ewise_list" in plan), plan


def test_a_chain_of_three_is_read_when_it_is_used(devices):
    x, y, z = (gb.Vector.from_dense(np.arange(1, 5) * k) for k in (1, 10, 100))
    once = gb.binary.plus(x | y)
    whole = gb.binary.times(once & z)
    x << x.apply("times", 2)
    assert whole.new().to_coo()[1].tolist() == [1200, 4800, 10800, 19200]
    z << whole  # also an output
    assert z.to_coo()[1].tolist() == [1200, 4800, 10800, 19200]
    assert once.new().to_coo()[1].tolist() == [12, 24, 36, 48]
    assert gb.binary.minus(once & once).new().to_coo()[1].tolist() == [0, 0, 0, 0]
    assert "times[INT64](binary.plus" in whole.text
    with pytest.raises(gb.exceptions.DimensionMismatch):
        gb.binary.times(gb.binary.plus(x | y) & gb.Vector(int, 5))
    with pytest.raises(TypeError):
        gb.binary.times(gb.binary.plus(x | y) & "z")


def test_an_inner_expression_can_be_used_again(devices):
    x, y = (space(gb, "int64", False)[name] for name in "xy")
    inner = gb.binary.minus(x & y)
    assert gb.unary.abs(inner).new().to_coo()[1].tolist() == [1, 1, 1]
    assert inner.new().to_coo()[1].tolist() == [-1, -1, -1]
    assert gb.unary.abs(inner).new().isequal(gb.unary.abs(inner.new()).new())


def test_functions_of_the_user_chain_too(devices):
    x = gb.Vector.from_coo(IDS, [-2, -1, 0, 1, 2], size=9)
    found = x.apply(lambda v: v * v if v < 0 else v).apply(lambda v: v + 1).new()
    assert found.to_coo()[1].tolist() == [5, 2, 1, 2, 3]


def test_the_plan_names_the_chain(devices):
    x = gb.Vector.from_coo(IDS, [-2, -1, 0, 1, 2], size=9)
    assert "sqrt(abs)" in str(gb.explain(gb.unary.sqrt(gb.unary.abs(x))))
