"""Defects that were found once and must not come back. Each test says what went wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import binary, monoid, select, semiring, unary
from gbgpu.device import cuda
from gbgpu.exceptions import IndexOutOfBound, InvalidValue, OutOfMemory
from gbgpu.kernels import backends
from gbgpu.kernels.cpu import CpuKernels


def entries(handle) -> dict:
    return handle.to_dict()


def test_indexed_extracts_of_different_lengths_have_plans_of_their_own(devices):
    """`w[i] << v[j]`: the cached plan kept the row map of the first length."""
    v = gb.Vector.from_coo(np.arange(8), np.arange(10, 18))
    w = gb.Vector.from_coo([0, 7], [1, 2], size=8)
    w[[0, 1, 2]] << v[[3, 4, 5]]
    w[[0, 1]] << v[[6, 7]]
    assert entries(w) == {0: 16, 1: 17, 2: 15, 7: 2}
    w[[0, 1, 2, 3, 4]] << v[[3, 4, 5, 6, 7]]
    assert entries(w) == {0: 13, 1: 14, 2: 15, 3: 16, 4: 17, 7: 2}


def test_reduce_over_more_blocks_than_a_word_has_bits():
    """The presence of more than 64 partial results was written past the end of one word."""
    gb.init("cpu:70")
    v = gb.Vector.from_coo(np.arange(140), np.arange(140))
    assert v.reduce(monoid.plus).new() == 140 * 139 // 2
    assert gb.Vector.from_coo([139], [5], size=140).reduce(monoid.max).new() == 5


def test_filling_under_a_mask_that_lives_on_other_devices(monkeypatch):
    """`auto`: an empty output lives whole on one device, a large mask on several; only the first block was filled."""
    monkeypatch.setattr(backends, "automatic", lambda *beside: "cpu:3")
    monkeypatch.setattr(CpuKernels, "whole", 30)
    gb.init("auto")
    M = gb.Matrix.from_coo(np.arange(20), np.arange(20)[::-1], 1, nrows=20, ncols=20)
    C = gb.Matrix(int, 20, 20)
    C(M.S) << 5
    assert C.isequal(gb.Matrix.from_coo(np.arange(20), np.arange(20)[::-1], 5))


def test_build_that_fails_leaves_the_object_as_it_was(devices):
    """`build(clear=True)` cleared before it found the duplicates."""
    v = gb.Vector.from_coo([0, 2], [1, 2])
    A = gb.Matrix.from_coo([0, 2], [1, 2], [1, 2])
    with pytest.raises(ValueError, match="Duplicate"):
        v.build([1, 1], [1, 2], clear=True)
    with pytest.raises(ValueError, match="Duplicate"):
        A.build([1, 1], [1, 1], [1, 2], clear=True)
    assert entries(v) == {0: 1, 2: 2} and A.nvals == 2
    v.build([], [], clear=True)
    assert v.nvals == 0


def test_a_mask_of_an_ended_session_is_refused(devices):
    """Operands were checked, masks were not."""
    old = gb.Vector.from_coo([0, 1], True, size=8)
    devices.start()
    with pytest.raises(InvalidValue, match="one session"):
        gb.Vector(int, 8)(old.S) << 1


def test_indices_do_not_wrap(devices):
    """uint64 indices above 2**63 became negative; differences of unsigned row offsets became positive."""
    v = gb.Vector.from_coo(np.arange(8), np.arange(8))
    with pytest.raises(IndexOutOfBound):
        v[[2**64 - 1]]
    with pytest.raises(InvalidValue, match="ascend"):
        gb.Matrix.from_csr(np.array([0, 3, 2, 4], np.uint64), [0, 1, 2, 0], 1, ncols=3)


def test_reductions_into_a_scalar_of_another_type_cast_as_kernels_do(devices):
    """They raised OverflowError and ValueError, after the scalar was changed."""
    s = gb.Scalar("INT32")
    s << gb.Vector.from_coo([0, 1], [2**31, 5]).reduce(monoid.plus)
    assert s.value == -(2**31) + 5
    s << gb.Vector.from_coo([0, 1], [np.nan, 5]).reduce(monoid.plus)
    assert s.value == 0


def test_scalars_and_elements_are_assigned_as_values(devices):
    """`w[i] << scalar`, `w[i] << v[j]`, `s(accum) << value` raised; empty ones delete."""
    v = gb.Vector.from_coo([1, 3], [10, 30], size=5)
    w, s = gb.Vector(int, 5), gb.Scalar.from_value(7)
    w[0] << s
    w[[1, 2]] << v[3]
    w(v.S, binary.plus) << s
    assert entries(w) == {0: 7, 1: 37, 2: 30, 3: 7}
    w[[0, 1]] << gb.Scalar(int)
    w[2] << v[0]
    assert entries(w) == {3: 7}
    w << s
    assert w.nvals == 5
    s << v[1]
    s(binary.plus) << 5
    s(binary.plus) << gb.Scalar.from_value(2)
    s(binary.plus) << gb.Scalar(int)
    assert s.value == 17
    s() << 3
    assert s.value == 3
    s << None
    assert s.value is None
    with gb.explain() as plans:
        s << 4
        s(binary.plus) << 4
    assert s.value is None and len(plans) == 2


def test_running_out_of_memory_has_its_own_class_everywhere(devices):
    """Only the steps of vector statements were covered."""
    with pytest.raises(OutOfMemory, match="Matrix of shape"):
        gb.Matrix.from_coo([0], [0], 1, nrows=2**50, ncols=1)
    if devices.permutes:
        with pytest.raises(OutOfMemory, match="an order of"):
            gb.Matrix.from_coo([0], [2**50], 1)
    else:
        wide = gb.Matrix.from_coo([0], [2**50], 1)
        with pytest.raises(OutOfMemory):
            wide.T.new()
    assert gb.Vector.from_scalar(1, 5).reduce().new() == 5


def test_a_transpose_is_an_operand_like_a_matrix(devices):
    """`A | A.T`, which makes a graph symmetric, raised TypeError."""
    A = gb.Matrix.from_coo([0, 1, 2], [1, 2, 2], [1, 2, 3])
    both = gb.Matrix.from_coo([0, 1, 1, 2, 2], [1, 0, 2, 1, 2], [1, 1, 2, 2, 6])
    assert binary.plus(A | A.T).new().isequal(both)
    assert binary.plus(A.T | A).new().isequal(both)
    assert binary.plus(A & A.T).new().isequal(gb.Matrix.from_coo([2], [2], [6]))
    assert unary.ainv(A.T).new().isequal(unary.ainv(A.T.new()).new())
    assert A.T.select(">", 2).new().nvals == 1
    assert semiring.plus_times(binary.plus(A | A.T).new() @ gb.Vector.from_scalar(1, 3)).new()[2] == 8


def test_init_checks_the_partition(devices):
    with pytest.raises(TypeError, match="partition"):
        gb.init("cpu:3", (1, 5, 3))


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_a_matrix_with_zeros_of_both_signs_is_not_symmetric(devices, direction):
    """0.0 == -0.0 made A[0, 1] and A[1, 0] one value."""
    A = gb.Matrix.from_coo([0, 1], [1, 0], [-0.0, 0.0])
    w = semiring.min_truediv(gb.Vector.from_scalar(1.0, 2) @ A).new(direction=direction)
    assert entries(w) == {0: np.inf, 1: -np.inf}


def test_comparing_handles_is_refused_with_a_hint(devices):
    v = gb.Vector.from_coo([0], [1], size=2)
    with pytest.raises(TypeError):
        assert v == v.dup()  # an expression
    assert v.isequal(v.dup()) and len({v, v}) == 1
    assert not gb.Scalar(int)


def test_scalar_of_an_ended_session_is_refused(devices):
    s = gb.Scalar(int)
    s << gb.Vector.from_coo([0], [1], size=2).reduce()
    devices.start()
    with pytest.raises(InvalidValue):
        _ = s.value


def test_cache_that_cannot_be_written(tmp_path):
    """The next best folder serves; nothing fails."""
    code = "from gbgpu import settings; print(settings.cache_directory())"
    environment = {**os.environ, "GBGPU_CACHE_DIR": "/proc/nowhere", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith(str(tmp_path))


def test_a_typed_monoid_reduces_rows_in_its_type(devices):
    """Rows of INT8 were summed in INT8, although the monoid was of INT64."""
    A = gb.Matrix.from_coo([0, 0, 1], [0, 1, 1], [100, 100, 1], dtype="INT8", nrows=2, ncols=2)
    wide = A.reduce_rowwise(monoid.plus["INT64"]).new()
    assert wide.dtype == "INT64" and entries(wide) == {0: 200, 1: 1}
    assert A.reduce_columnwise(monoid.max["FP64"]).new().dtype == "FP64"


@pytest.mark.parametrize("one_value", [False, True])
@pytest.mark.parametrize("form", ["list", "bitmap", "full"])
def test_vectors_that_share_buffers_do_not_see_each_others_changes(devices, form, one_value):
    """Lists and blocks of one value are shared by copies; every way to change one of the two leaves the other."""
    ids = range(9) if form == "full" else [0, 4, 8]
    values = 5 if one_value else [3, 5, 4] * (len(ids) // 3)
    changes = [
        lambda v: v.__setitem__(3, 7),
        lambda v: v.__delitem__(4),
        lambda v: v(binary.plus) << v,
        lambda v: v(v.S, binary.times) << 2,
        lambda v: v.__setitem__(slice(None), 1),
        lambda v: v(~v.S) << 9,
        lambda v: v << v.apply("ainv"),
        lambda v: v.__setitem__([0, 4], 2),
        lambda v: v << select.valuegt(v, 3),
    ]
    for change in changes:
        v = gb.Vector.from_coo(ids, values, size=9)
        if form != "full":
            v(form=form) << v
        assert v._store.form == form
        before = entries(v)
        others = [v.dup(), gb.Vector(int, 9), gb.Vector(int, 9), v.apply("identity").new(), select.valuegt(v, 0).new()]
        others[1] << v
        others[2](v.S) << 1
        kept = [entries(other) for other in others]
        change(v)
        assert [entries(other) for other in others] == kept and [other.nvals for other in others] == [len(before)] * 5
        after = entries(v)
        for other in others:
            change(other)
        assert entries(v) == after and v.nvals == len(after)


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT16", "INT64", "FP32", "FP64"])
def test_means_of_integers_do_not_wrap_around(devices, dtype):
    """A sum of 150 INT8 was taken in INT8."""
    rng = np.random.default_rng(1)
    dense = rng.integers(1, 100, (3, 400)).astype(gb.dtypes.lookup_dtype(dtype).np_type)
    A, wide = gb.Matrix.from_dense(dense), dense.astype(float)
    small, mild = gb.Matrix.from_dense(np.minimum(dense, 5)), np.minimum(wide, 5)
    right = {
        gb.agg.mean: wide.mean(1),
        gb.agg.varp: wide.var(1),
        gb.agg.stdp: wide.std(1),
        gb.agg.vars: wide.var(1, ddof=1),
        gb.agg.stds: wide.std(1, ddof=1),
        gb.agg.root_mean_square: np.sqrt((wide**2).mean(1)),
        gb.agg.harmonic_mean: 1 / (1 / wide).mean(1),
    }
    if dtype != "FP32":  # the product of so many overflows there
        right[gb.agg.geometric_mean] = np.exp(np.log(mild).mean(1))
    near = {"rtol": 1e-3} if dtype == "FP32" else {"rtol": 1e-9}
    for op, expected in right.items():
        M = small if op is gb.agg.geometric_mean else A
        assert np.allclose(M.reduce_rowwise(op).new().to_dense(), expected, **near), op
        assert np.allclose(M.T.reduce_columnwise(op).new().to_dense(), expected, **near), op
        assert np.isclose(M[0, :].new().reduce(op).new().value, expected[0], **near), op
        assert M.reduce_rowwise(op).dtype == ("FP32" if dtype == "FP32" and op is not gb.agg.harmonic_mean else "FP64")


def test_positional_operators_beside_a_scalar_give_the_place_of_the_entry(devices):
    """Of matrices they raised KeyError; of vectors those of the second operand gave 0."""
    A = gb.Matrix.from_coo([0, 1, 1], [1, 0, 2], [1, 2, 5])
    v = gb.Vector.from_coo([0, 2], [3, 4])
    for name in ("first", "second"):
        for one in (0, 1):
            i, j = (getattr(binary, f"{name}{axis}{one or ''}") for axis in "ij")
            for found in (i(A, 3), i(3, A), A.apply(i, right=1.5)):
                assert found.new().to_coo()[2].tolist() == [one, 1 + one, 1 + one]
            assert entries(i(v, 3).new()) == entries(i(3, v).new()) == {0: one, 2: 2 + one}
            assert j(A, 3).new().to_coo()[2].tolist() == [1 + one, one, 2 + one]
            assert entries(j(v, 3).new()) == {0: one, 2: one}


def test_exponents_of_ldexp_are_of_any_size(devices):
    """They were cut to 32 bits: 2^(2^32) was 1."""
    x = gb.Vector.from_coo(range(6), [1, 1, 1, 3, 1, 0])
    y = gb.Vector.from_coo(range(6), [2**32, 2**31, -(2**33), 3, -(2**62), 2**62])
    inf = float("inf")
    assert binary.ldexp(x & y).new().to_coo()[1].tolist() == [inf, inf, 0, 24, 0, 0]
    big = gb.Vector.from_coo(range(3), [2**64 - 1, 2**32, 5], "UINT64")
    assert binary.ldexp(gb.Vector.from_coo(range(3), 1, "UINT64") & big).new().to_coo()[1].tolist() == [inf, inf, 32]


@pytest.mark.parametrize("dtype", ["INT64", "UINT64"])
def test_large_integers_are_close_by_their_exact_difference(devices, dtype):
    """They were compared as FP64; 2**62 and 2**62 + 1 are one there."""
    x, y = (gb.Vector.from_coo([0, 1], [1, top], dtype) for top in (2**62, 2**62 + 1))
    for a, b in ((x, y), (y, x)):
        assert not a.isclose(b, rel_tol=0) and a.isclose(b, rel_tol=0, abs_tol=1) and a.isclose(b)
        assert not a.isclose(b, rel_tol=1e-30) and a.isclose(a, rel_tol=0)
    one, two = (gb.Scalar.from_value(x[1].value, dtype) for x in (x, y))
    assert not one.isclose(two, rel_tol=0) and one.isclose(two)
    low, high = gb.Vector.from_coo([0], [-(2**63)]), gb.Vector.from_coo([0], [2**64 - 1], "UINT64")
    assert not low.isclose(high, rel_tol=0.5) and not low.isclose(high, rel_tol=0, abs_tol=2.0**64)


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_minus_zero_is_false_in_a_value_mask(devices, dtype):
    m = gb.Vector.from_coo(range(4), [-0.0, 0.0, 1.0, float("nan")], dtype)
    w = gb.Vector(int, 4)
    w(m.V) << 7
    assert list(w) == [2, 3]
    M = m.diag()
    assert sorted(M.V.new()) == [(2, 2), (3, 3)] == sorted(M.select("!=", 0).new())


def test_an_index_vector_may_lie_as_a_list(devices):
    """Its values were taken in the order of the list's entries, not in that of its rows."""
    n, places = 150, np.random.default_rng(3).permutation(150)
    A = gb.Matrix.from_coo(np.arange(n), places, 1, nrows=n, ncols=n)
    x = gb.Vector.from_dense(np.random.default_rng(4).permutation(n))
    ids = gb.Vector(int, n)
    ids(direction="push", form="list") << semiring.any_first(x @ A)
    found = ids.to_coo()[1]
    data, sums = gb.Vector.from_dense(np.arange(n) * 10), gb.Vector.from_dense(np.zeros(n, int))
    assert data[ids].new().to_coo()[1].tolist() == (found * 10).tolist()
    B = gb.Matrix.from_coo(np.arange(n), np.arange(n), np.arange(n), nrows=n, ncols=n)
    assert B[ids, :].new().to_coo()[2].tolist() == found.tolist()
    sums(binary.plus)[ids] << data
    assert sums.to_coo()[1][found].tolist() == (np.arange(n) * 10).tolist()


@pytest.mark.parametrize("dtype", ["INT32", "UINT64", "FP32"])
def test_values_go_to_the_places_that_a_vector_names(session, dtype):
    """Of several devices each combines what it has, for whole numbers; others go through a product."""
    gb.init(session.spec)  # blocks begin at whole words, as those of large matrices do
    n, rng, ufuncs = 12_500, np.random.default_rng(3), {"min": np.minimum, "max": np.maximum, "plus": np.add}
    gb.Matrix.from_coo(np.arange(n), np.arange(n)[::-1], True, nrows=n, ncols=n)
    numbers = gb.dtypes.lookup_dtype(dtype).np_type
    ids, given, before = (rng.integers(0, most, n) for most in (n, 50, 50))
    given, before = given.astype(numbers), before.astype(numbers)
    place, u = gb.Vector.from_dense(ids), gb.Vector.from_dense(given)
    for name, ufunc in ufuncs.items():
        w, expected = gb.Vector.from_dense(before), before.copy()
        w(getattr(binary, name))[place] << u
        ufunc.at(expected, ids, given)
        assert np.array_equal(w.to_dense(), expected)
    taken = gb.Vector(dtype, n)
    taken << u[place]
    assert np.array_equal(taken.to_dense(), given[ids])
    place[7] = n
    with pytest.raises(IndexOutOfBound):
        w(binary.min)[place] << u
        w.to_dense()


def test_auto_takes_the_gpus_of_one_model_that_reach_each_other(monkeypatch):
    class Runtime:
        models = "H", "H", "display", "H"

        def getDeviceCount(self):
            return len(self.models)

        def getDeviceProperties(self, gpu):
            return {"name": self.models[gpu]}

        def deviceCanAccessPeer(self, reader, owner):
            return (reader, owner) != (3, 0)

    monkeypatch.setattr(cuda, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=Runtime())))
    several = (6, 8), (0, 1)
    assert backends.automatic(*backends.ALONE) == "cuda:0,1" and backends.automatic(*several) == "cuda:2"


def test_plans_of_statements_whose_ids_nothing_has_filled(devices):
    """ValueError from a matrix of as many rows as ids, and without entries."""
    n = 20_000
    parent, least = gb.Vector(int, n), gb.Vector(int, n)
    with gb.explain() as plans:
        parent[:] = 0
        with gb.loop(2):
            parent(binary.min)[parent] << least
            least << parent[parent]
    assert len(plans) > 2 and parent.nvals == least.nvals == 0
