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
