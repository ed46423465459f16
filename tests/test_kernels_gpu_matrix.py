"""CUDA kernels of matrices, and the device's own work, against the CPU's. Collected where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_pairs import (
    SIZES,
    Csr,
    Map,
    Pair,
    rng_of,
    same,
)

import gbgpu as gb
from gbgpu import binary, indexunary, select, unary
from gbgpu.device import cuda
from gbgpu.device.cpu import CpuDevice
from gbgpu.device.transpose import by_parts
from gbgpu.kernels import interface as k
from gbgpu.kernels.interface import Spec
from gbgpu.semiring._types import BOOL, FP32, FP64, INT32, INT64, UINT8, UINT32, UINT64

__test__ = bool(cuda.available())

HOST = CpuDevice(0)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


MATRIX_SHAPES = [(n, 65, 0) for n in SIZES] + [(1, 0, 0), (40, 6000, 2)]


def offsets(lengths: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(like.dtype)


@pytest.mark.parametrize("wide", ["int32", "int64"])
@pytest.mark.parametrize(
    ("op", "thunk"),
    [(select.tril[FP64], np.int64(2)), (select.valuegt[FP64], np.float64(0)), (select.diag[FP64], np.int64(0))],
)
def test_matrix_select(pair, op, thunk, wide):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("matrix select", n, m)
        columns, spec = Map(m), Spec(op=op, a=FP64, out=FP64, ptr=wide, idx=wide)
        A = Csr(rng, n, columns, FP64, hubs, wide, wide)
        call = dict(
            n=n,
            indptr=A.indptr,
            cols=A.cols,
            avals=A.vals if len(A.vals) else np.zeros(1),
            thunk=thunk,
            starts=columns.starts,
            bounds=columns.bounds,
        )
        words, names = np.full((len(A.cols) + 63) // 64, -1, np.int64), rng.permutation(max(n, 1))
        for astride in (0, 1):
            for rows in (dict(row0=5), dict(row0=-(1 << 62), users=names)):
                ours, theirs = pair.run("matrix_select", spec, **call, **rows, astride=astride, out_words=words)
                same(ours["out_words"], theirs["out_words"])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("op", [binary.minus[FP32], binary.first[INT64], binary.lt[FP64]])
def test_matrix_scale(pair, side, op):
    for n, m, hubs in [*MATRIX_SHAPES, (3000, 300, 3)]:
        rng = rng_of("matrix scale", n, m, side)
        A, spec = Csr(rng, n, Map(m), FP32, hubs), Spec(op=op, a=FP32, b=INT32, out=op.return_type, bound=side)
        given = dict(n=n, indptr=A.indptr, cols=A.cols, avals=A.vals if len(A.vals) else np.zeros(1, np.float32))
        scales = rng.integers(-9, 9, n if side == "left" else int(A.cols.max(initial=0)) + 1).astype(np.int32)
        for astride in (0, 1):
            out = np.zeros(len(A.cols), op.return_type.np_type)
            ours, theirs = pair.run("matrix_scale", spec, **given, astride=astride, xvals=scales, out_vals=out)
            same(ours["out_vals"], theirs["out_vals"])


@pytest.mark.parametrize(
    ("op", "thunk"),
    [(unary.ainv[FP32], 0), (indexunary.colindex[INT64], np.int64(1)), (indexunary.rowindex[INT64], np.int64(1))],
)
def test_matrix_apply(pair, op, thunk):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("matrix apply", n, m)
        columns = Map(m)
        A = Csr(rng, n, columns, FP32, hubs)
        ours, theirs = pair.run(
            "matrix_apply",
            Spec(op=op, a=FP32, out=op.return_type),
            n=n,
            indptr=A.indptr,
            cols=A.cols,
            avals=A.vals,
            astride=1,
            thunk=thunk,
            starts=columns.starts,
            bounds=columns.bounds,
            row0=5,
            out_vals=np.zeros(len(A.cols), op.return_type.np_type),
        )
        same(ours["out_vals"], theirs["out_vals"])


@pytest.mark.parametrize(("dtype", "wide"), [(UINT8, "int32"), (UINT32, "int64"), (UINT64, "int32")])
@pytest.mark.parametrize("iso", [False, True])
def test_move_rows(pair, dtype, wide, iso):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("move rows", n, m)
        A = Csr(rng, n, Map(m), INT64, hubs, wide, wide)
        slots = rng.integers(-1, n, 2 * n) if n else np.zeros(0, np.int64)
        lengths = np.where(slots >= 0, np.diff(A.indptr, append=0)[slots], 0) if n else slots
        begins, names = offsets(lengths, slots), rng.permutation(max(Map(m).starts[-1], 1)).astype(wide)
        for renamed in (0, 1):
            ours, theirs = pair.run(
                "move_rows",
                Spec(a=dtype, ptr=wide, idx=wide, iso=iso),
                n=len(slots),
                slots=slots,
                indptr=A.indptr,
                cols=A.cols,
                avals=A.vals.astype(dtype.np_type),
                astride=1,
                names=names,
                how=renamed,
                out_begins=begins[:-1],
                out_cols=np.zeros(begins[-1], wide),
                out_vals=np.zeros(begins[-1], dtype.np_type),
            )
            same(ours["out_cols"], theirs["out_cols"])
            same(ours["out_vals"], theirs["out_vals"])


@pytest.mark.parametrize(("dtype", "wide", "stride"), [(UINT8, "int32", 1), (UINT64, "int64", 0)])
def test_look_up(pair, dtype, wide, stride):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("look up", n, m)
        A = Csr(rng, n, Map(m), INT64, hubs, wide, wide)
        count = 3 * n if len(A.cols) else 0
        spread = np.concatenate([A.cols, A.cols + 1])[:count]
        slots = rng.integers(0, max(n, 1), len(spread))
        ours, theirs = pair.run(
            "look_up",
            Spec(a=dtype, ptr=wide, idx=wide),
            n=len(slots),
            rows=slots,
            columns=spread.astype(np.int64),
            indptr=A.indptr,
            cols=A.cols,
            avals=A.vals.astype(dtype.np_type),
            astride=stride,
            out_found=np.zeros(len(slots), bool),
            out_vals=np.zeros(len(slots), dtype.np_type),
        )
        same(ours["out_found"], theirs["out_found"])
        same(ours["out_vals"], theirs["out_vals"])


@pytest.mark.parametrize("lone", ["", "defaults"])
@pytest.mark.parametrize("op", [None, binary.minus[FP64], binary.firstj[INT64]], ids=repr)
@pytest.mark.parametrize("keep", [k.A_ONLY | k.B_ONLY | k.BOTH, k.BOTH, k.A_ONLY | k.BOTH, k.B_ONLY, k.A_ONLY])
def test_merge(pair, op, keep, lone):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("merge", n, m)
        columns = Map(m)
        A, B = Csr(rng, n, columns, FP64, hubs), Csr(rng, n, columns, INT32, hubs - 1 if hubs else 0)
        pattern = dict(n=n, aptr=A.indptr, acols=A.cols, bptr=B.indptr, bcols=B.cols, keep=keep)
        ours, theirs = pair.run("merge_count", Spec(), **pattern, out_lengths=np.zeros(n, np.int64))
        same(ours["out_lengths"], theirs["out_lengths"])
        total = int(ours["out_lengths"].sum())
        ours, theirs = pair.run(
            "merge",
            Spec(op=op, a=FP64, b=INT32, out=FP64, lone=lone if op is not None else ""),
            **pattern,
            starts=columns.starts,
            bounds=columns.bounds,
            row0=5,
            adefault=2,
            bdefault=3,
            avals=A.vals,
            astride=1,
            bvals=B.vals,
            bstride=1,
            out_indptr=offsets(ours["out_lengths"], A.indptr),
            out_cols=np.zeros(total, np.int32),
            out_vals=np.zeros(total, np.float64),
        )
        same(ours["out_cols"], theirs["out_cols"])
        same(ours["out_vals"], theirs["out_vals"])


# -- the device itself


def test_buffers(pair):
    device = pair.device
    for dtype in (np.bool_, np.int32, np.int64, np.float32, np.float64):
        for n in SIZES:
            for value in (0, 1, -0.0, np.nan) if np.dtype(dtype).kind == "f" else (0, 1):
                same(np.full(n, value, dtype), device.get(device.full(n, value, dtype)))
            same(np.zeros(n, dtype), device.get(device.zeros(n, dtype)))
            source, target = np.arange(n).astype(dtype), device.zeros(n, dtype)
            device.copy(target, device.put(source))
            same(source, device.get(target))
            target = device.zeros(n, dtype)
            device.copy_counted(target, device.put(source), device.put(np.array([n // 2])))
            same(source[: n // 2], device.get(target)[: n // 2])
            assert not device.get(target)[n // 2 :].any()


@pytest.mark.parametrize("ordered", [True, False])
def test_transpose(pair, ordered):
    for n, m, hubs in MATRIX_SHAPES:
        A = Csr(rng_of("transpose", n, m), n, Map(m), BOOL, hubs)
        args, width = (A.indptr, A.cols, np.arange(len(A.cols), dtype=np.int64)), Map(m).n
        ours = HOST.transpose(n, width, *args[: 3 if ordered else 2], *(() if ordered else (None,)))
        there = [pair.device.put(x) for x in args[: 3 if ordered else 2]]
        theirs = pair.device.transpose(n, width, *there, *(() if ordered else (None,)))
        for mine, other in list(zip(ours, theirs, strict=True))[: 3 if ordered else 2]:
            np.testing.assert_array_equal(mine, pair.device.get(other))
        if len(A.cols):  # as where memory is short
            parts = by_parts(pair.device, width, *there, *(() if ordered else (None,)), piece=1000)
            for mine, other in list(zip(theirs, parts, strict=True))[: 3 if ordered else 2]:
                np.testing.assert_array_equal(pair.device.get(mine), pair.device.get(other))


def test_out_of_memory_is_named(pair):
    from gbgpu.errors import OutOfMemory

    with pytest.raises(OutOfMemory, match=r"bytes on cuda:0; came .* bytes free"):
        pair.device.empty(2**50, np.int8)
    same(np.ones(3), pair.device.get(pair.device.put(np.ones(3))))


@pytest.mark.parametrize("spec", ["cuda:0", "cuda:0*3"])
def test_selecting_from_many_short_rows(spec):
    """Many rows a warp, with longer ones between."""
    gb.init(spec)
    rng = np.random.default_rng(2)
    n, m = 150_000, 3000
    lengths = rng.integers(0, 40, n)
    lengths[rng.integers(0, n, 3000)] = 90
    lengths[77] = 2900
    rows = np.repeat(np.arange(n), lengths)
    keys = np.unique(rows * m + rng.integers(0, m, len(rows)))
    rows, cols, vals = keys // m, keys % m, rng.integers(0, 100, len(keys)).astype(np.int32)
    A = gb.Matrix.from_coo(rows, cols, vals, nrows=n, ncols=m)
    for found, kept in (
        (gb.select.tril(A, -5), cols <= rows - 5),
        (gb.select.valuegt(A, 60), vals > 60),
        (gb.select.colgt(A, 1500), cols > 1500),
        (gb.select.valuelt(A, 0), vals < 0),
    ):
        for mine, right in zip(found.new().to_coo(), (rows[kept], cols[kept], vals[kept]), strict=True):
            assert np.array_equal(mine, right)
