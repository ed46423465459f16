"""Kernels of every kind on the small and the unsigned types, against python-graphblas: values wrap, none leaks."""

import graphblas as pg
import numpy as np
import pytest
from programs import WIDE

import gbgpu as gb
from gbgpu import binary, monoid, select, unary
from gbgpu.dtypes import INT8, INT16, UINT8, UINT16, UINT32, UINT64

N = 150
SEMIRINGS = {INT8: "plus_times", INT16: "min_plus", UINT8: "bxor_band", UINT16: "max_minus"}
SEMIRINGS |= {UINT32: "min_first", UINT64: "plus_times"}
MONOIDS = {INT8: "plus", INT16: "max", UINT8: "bor", UINT16: "times", UINT32: "plus", UINT64: "max"}


def values(dtype, size, seed):
    """Over the whole range of the type, so that sums wrap."""
    info, rng = np.iinfo(dtype.np_type), np.random.default_rng(seed)
    return rng.integers(info.min, info.max, size, dtype.np_type, endpoint=True)


def both(dtype):
    """A matrix with a full row and column, and a vector with gaps: ours and the oracle's."""
    rng = np.random.default_rng(3)
    kept = rng.random((N, N)) < 0.06
    kept[7] = kept[:, 11] = True
    rows, columns = np.nonzero(kept)
    entries, ids = values(dtype, rows.size, 1), np.flatnonzero(rng.random(N) < 0.6)
    made = []
    for library in (gb, pg):
        matrix = library.Matrix.from_coo(rows, columns, entries, nrows=N, ncols=N)
        made += [matrix, library.Vector.from_coo(ids, values(dtype, ids.size, 2), size=N)]
    return made


def same(mine, theirs):
    for a, b in zip(mine.to_coo(), theirs.to_coo(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert mine.dtype.name == theirs.dtype.name


# Compiling takes most of the time: signed and small, unsigned and wide; the long run takes all. UINT32 is what
# connected components compute with.
CHOSEN = SEMIRINGS if WIDE else [INT8, UINT64]


@pytest.mark.parametrize("dtype", CHOSEN, ids=repr)
def test_kernels_of_a_type(devices, dtype):
    A, x, pA, px = both(dtype)
    name, sums = SEMIRINGS[dtype], MONOIDS[dtype]
    expected = getattr(pg.semiring, name)(px @ pA).new()
    for direction in ("push", "pull"):
        w = gb.Vector(dtype, N)
        w(direction=direction) << getattr(gb.semiring, name)(x @ A)
        same(w, expected)
    y, py = gb.semiring.plus_second(A @ x).new(), pg.semiring.plus_second(pA @ px).new()
    same(y, py)
    same(binary.plus(x | y).new(), pg.binary.plus(px | py).new())
    y(x.S, binary.times) << x
    py(px.S, pg.binary.times) << px
    same(y, py)
    assert x.reduce(getattr(monoid, sums)).new().value == px.reduce(getattr(pg.monoid, sums)).new().value
    same(A.reduce_rowwise(getattr(monoid, sums)).new(), pA.reduce_rowwise(getattr(pg.monoid, sums)).new())


@pytest.mark.parametrize("dtype", [INT8, UINT64], ids=repr)
def test_maps_of_a_type(devices, dtype):
    A, x, pA, px = both(dtype)
    seven = dtype.np_type.type(7)  # SuiteSparse misreads thunks of another type
    same(unary.ainv(x).new(), pg.unary.ainv(px).new())
    same(unary.positioni(x).new(), pg.unary.ss.positioni(px).new())
    same(unary.positionj1(A).new(), pg.unary.ss.positionj1(pA).new())
    same(select.valuegt(x, seven).new(), pg.select.valuegt(px, seven).new())
    same(x.dup(float), px.dup(float))
    same(x.dup("INT16"), px.dup("INT16"))
    for compared, expected in ((A > seven, pA > seven), (A <= seven, pA <= seven)):
        same(select.value(compared).new(), pg.select.value(expected).new())
        same(select.row(compared).new(), pg.select.row(expected).new())
        same(select.column(compared).new(), pg.select.column(expected).new())
    same(select.index(x < seven).new(), pg.select.index(px < seven).new())


def test_selections_want_comparisons(devices):
    v = gb.Vector.from_coo([1], [2])
    for wrong in (v, 3, v + 1):
        with pytest.raises(TypeError, match="Expected a comparison"):
            select.value(wrong)
    with pytest.raises(ValueError, match="indexeq"):
        select.index(v == 1)
