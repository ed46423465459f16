"""Every matrix of the battery, in and out, and through one product of each kind, against the dict twin."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from battery import BATTERY

import gbgpu as gb
from gbgpu import agg, binary, replace, semiring


@pytest.fixture(params=list(BATTERY))
def coo(request):
    return BATTERY[request.param]()


def build(coo, dtype="INT64"):
    rows, columns, values, nrows, ncols = coo
    return gb.Matrix.from_coo(rows, columns, values, dtype=dtype, nrows=nrows, ncols=ncols)


def alternate(size: int, step: int = 3) -> gb.Vector:
    """Every third place, with its id plus one as its value."""
    ids = np.arange(0, size, step)
    return gb.Vector.from_coo(ids, ids + 1, dtype="INT64", size=size)


def test_in_and_out(devices, coo):
    rows, columns, values, nrows, ncols = coo
    A = build(coo)
    order = np.lexsort((columns, rows))
    for got, expected in zip(A.to_coo(), (rows[order], columns[order], values[order]), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert (A.nvals, A.nrows, A.ncols, A.shape) == (rows.size, nrows, ncols, (nrows, ncols))


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_product_from_the_left(devices, coo, direction):
    A = build(coo)
    x, w = alternate(A.nrows), alternate(A.ncols, 2)
    expected = reference.vxm(reference.vector_of(x), reference.matrix_of(A), min, lambda a, b: a + b)
    old, mask = reference.vector_of(w), reference.vector_of(alternate(A.ncols, 5))
    expected = reference.write(old, expected, lambda i: i not in mask, min, False)
    w(~alternate(A.ncols, 5).S, binary.min, direction=direction) << semiring.min_plus(x @ A)
    assert reference.vector_of(w) == expected


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_product_from_the_right(devices, coo, direction):
    A = build(coo)
    x, w = alternate(A.ncols), alternate(A.nrows, 2)
    transposed = reference.transpose(reference.matrix_of(A))
    expected = reference.vxm(reference.vector_of(x), transposed, lambda a, b: a + b, lambda xi, aij: aij - xi)
    mask = reference.vector_of(alternate(A.nrows, 4))
    expected = reference.write(reference.vector_of(w), expected, lambda i: i in mask, None, True)
    w(alternate(A.nrows, 4).S, replace, direction=direction) << semiring.plus_minus(A @ x)
    assert reference.vector_of(w) == expected


def test_transposes_agree(devices, coo):
    A = build(coo)
    x = alternate(A.ncols)
    right, left = semiring.max_second(A @ x).new(), semiring.max_first(x @ A.T).new()
    assert right.isequal(left, check_dtype=True)


def test_first_and_last_of_rows(devices, coo):
    """Aggregators that python-graphblas's SuiteSparse crashes on."""
    A = build(coo)
    rows: dict[int, list] = {}
    for (i, _), value in sorted(reference.matrix_of(A).items()):
        rows.setdefault(i, []).append(value)
    for found, at in ((agg.first, 0), (agg.last, -1)):
        got = reference.vector_of(A.reduce_rowwise(found).new())
        assert got == {i: values[at] for i, values in rows.items()}
        x = alternate(A.nrows)
        held = list(reference.vector_of(x).values())
        assert x.reduce(found).new().value == (held[at] if held else None)
