"""CUDA kernels of vectors and products against the CPU kernels of the same instance. Collected where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_pairs import (
    FORMS,
    MASKS,
    SIZES,
    Csr,
    Map,
    Pair,
    Sparse,
    bits_of,
    one,
    random_words,
    rng_of,
    same,
    same_dense,
    same_list,
    values,
)

from gbgpu import binary, indexunary, monoid, select, semiring, unary
from gbgpu.device import cuda
from gbgpu.kernels import interface as k
from gbgpu.kernels.interface import Spec
from gbgpu.semiring._types import BOOL, FP32, FP64, INT32, INT64

__test__ = bool(cuda.available())


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


# -- products

PRODUCTS = [  # semiring, type of A, type of x, type of the result if another, values beyond the ordinary
    (semiring.min_plus[FP64], FP64, FP64, None, True),
    (semiring.min_plus[INT64], INT32, INT64, None, True),
    (semiring.max_first[FP32], FP32, FP32, None, True),
    (semiring.max_minus[FP64], FP32, FP64, FP32, True),
    (semiring.min_second[INT32], INT32, INT32, INT64, True),
    (semiring.plus_times[FP32], FP32, FP32, None, False),
    (semiring.plus_times[FP64], BOOL, FP64, None, False),
    (semiring.plus_times[INT32], INT32, INT32, None, True),
    (semiring.plus_pair[INT64], BOOL, INT64, None, True),
    (semiring.times_plus[INT32], INT32, INT32, None, True),
    (semiring.times_max[FP32], FP32, FP32, None, False),
    (semiring.lor_land[BOOL], BOOL, BOOL, None, True),
    (semiring.land_lor[BOOL], INT32, BOOL, None, True),
    (semiring.lxor_land[BOOL], BOOL, BOOL, None, True),
    (semiring.lxnor_first[BOOL], BOOL, BOOL, None, True),
    (semiring.any_pair[BOOL], BOOL, BOOL, None, True),
    (semiring.any_plus[FP32], FP32, FP32, None, True),  # all candidates are equal here
    (semiring.min_secondi[INT64], BOOL, BOOL, None, True),
    (semiring.max_firstj[INT64], BOOL, BOOL, None, True),
    (semiring.min_firsti[INT64], BOOL, BOOL, None, True),
]
SHAPES = [(n, m, 0) for n, m in zip(SIZES, reversed(SIZES), strict=True)] + [
    (1000, 300, 0),
    (70, 6000, 3),
    (300, 20000, 1),
]
# Both operand orders where they differ most; the others alternate.
ORDERED = ("max_minus", "min_secondi", "max_firstj", "min_firsti", "plus_times")
CASES = [
    (case, flip)
    for i, case in enumerate(PRODUCTS)
    for flip in (False, True)
    if flip == i % 2 or case[0].name in ORDERED
]
ids = [f"{op!r}-{a}-{b}-{'xA' if flip else 'Ax'}" for (op, a, b, *_), flip in CASES]


def spec_of(op, a, b, out, flip: bool, iso: bool, wide: bool) -> Spec:
    kinds = ("int64", "int64") if wide else ("int32", "int32")
    return Spec(op=op, a=a, b=b, out=out or op.return_type, ptr=kinds[0], idx=kinds[1], flip=flip, iso=iso)


def level(op, A: Csr, x: Sparse) -> None:
    """`any` may take any candidate: make them equal."""
    if op.monoid.is_any:
        A.vals[:] = x.vals[:] = 1


@pytest.mark.parametrize(("case", "flip"), CASES, ids=ids)
def test_pull(pair, case, flip):
    op, a, b, out, special = case
    iso = op.name == "any_pair"
    spec = spec_of(op, a, b, out, flip, iso, wide=flip and a is FP64)
    for n, m, hubs in SHAPES:
        for form in (k.XFULL, 0):
            rng = rng_of("pull", n, m, form)
            columns = Map(m)
            A = Csr(rng, n, columns, a, hubs, spec.ptr, spec.idx, special)
            x = Sparse(rng, columns.n, b, form, valid=None if form else columns.slots, special=special)
            level(op, A, x)
            for mask in MASKS:
                ours, theirs = pair.run(
                    "pull",
                    spec,
                    n=n,
                    indptr=A.indptr,
                    cols=A.cols,
                    avals=A.vals if len(A.vals) else values(rng, 1, a),
                    astride=1,
                    xvals=x.vals,
                    xstride=1,
                    xwords=x.words,
                    mwords=random_words(rng, n),
                    flags=mask | form | k.TRACE,
                    starts=columns.starts,
                    bounds=columns.bounds,
                    row0=17,
                    heavy=A.heavy,
                    out_vals=np.zeros(max(n, 1), spec.out.np_type),
                    out_words=np.full((n + 63) // 64, -1),
                    count=one(),
                    stats=np.zeros(4, np.int64),
                )
                same_dense(
                    n,
                    "out_words",
                    "out_vals",
                    ours,
                    theirs,
                    close=op.monoid.name in ("plus", "times") and spec.out.kind == "f",
                    iso=iso,
                )
                same(ours["count"], theirs["count"])
                if not op.monoid.is_any and op.monoid.terminal is None:
                    same(ours["stats"], theirs["stats"])


@pytest.mark.parametrize(("case", "flip"), CASES, ids=ids)
def test_push_and_drain(pair, case, flip):
    op, a, b, _, special = case
    iso = op.name == "any_pair"
    spec = spec_of(op, a, b, None, flip, iso, wide=flip and a is FP64)
    close = op.monoid.name in ("plus", "times") and spec.out.kind == "f"
    for n, m, hubs in SHAPES:
        for form in FORMS:
            rng = rng_of("push", n, m, form)
            columns = Map(m)
            A = Csr(rng, n, columns, a, hubs, spec.ptr, spec.idx, special)
            x = Sparse(rng, n, b, form, special=special, idx=spec.idx)
            level(op, A, x)
            own = len(columns.slots) - m // 3
            for mask in MASKS:
                ours, theirs = pair.run(
                    "push",
                    spec,
                    n=n,
                    **x.args(),
                    flags=mask | form | k.TRACE,
                    indptr=A.indptr,
                    cols=A.cols,
                    avals=A.vals if len(A.vals) else values(rng, 1, a),
                    astride=1,
                    starts=columns.starts,
                    bounds=columns.bounds,
                    row0=17,
                    mwords=random_words(rng, own),
                    own_lo=int(columns.starts[1]),
                    own_hi=int(columns.starts[1]) + own,
                    acc_vals=np.full(1 if iso else max(columns.n, 1), op.monoid.start),
                    acc_words=np.zeros(columns.n // 64, np.int64),
                    touched=np.zeros(columns.n, spec.idx),
                    touched_count=one(),
                    stats=np.zeros(4, np.int64),
                )
                same_list("touched", None, "touched_count", ours, theirs)
                if op.monoid.is_any and not iso:  # those of CPU devices lie in the order of the list
                    reached = ours["touched"][: ours["touched_count"][0]]
                    listed, ours["acc_vals"] = ours["acc_vals"], np.full_like(ours["acc_vals"], op.monoid.start)
                    ours["acc_vals"][reached] = listed[: len(reached)]
                same_dense(columns.n, "acc_words", "acc_vals", ours, theirs, close, iso)
                same(ours["stats"], theirs["stats"])
                drain(pair, spec, columns, ours)


def drain(pair: Pair, spec: Spec, columns: Map, pushed: dict) -> None:
    room, dtype = columns.n, spec.out.np_type
    ours, theirs = pair.run(
        "drain",
        Spec(out=spec.out, idx=spec.idx, iso=spec.iso),
        **{name: pushed[name] for name in ("touched_count", "touched", "acc_vals", "acc_words")},
        start=spec.op.monoid.start,
        starts=columns.starts,
        p=2,
        out_slots=np.zeros(room, spec.idx),
        out_vals=np.zeros(room, dtype),
        out_counts=np.zeros(2, np.int64),
    )
    same(ours["out_counts"], theirs["out_counts"])
    for b in range(2):
        for side in (ours, theirs):
            side["own"] = side["out_counts"][b : b + 1]
        same_list("out_slots", None if spec.iso else "out_vals", "own", ours, theirs, int(columns.starts[b]))
    # CPU devices store first arrivals: their workspaces keep what was there
    restored = ours["acc_vals"] if spec.iso else np.full_like(pushed["acc_vals"], spec.op.monoid.start)
    same(restored, theirs["acc_vals"])
    assert not theirs["acc_words"].any()


COMBINES = [
    monoid.plus[FP32],
    monoid.min[FP64],
    monoid.max[FP32],
    monoid.max[INT64],
    monoid.times[INT64],
    monoid.lor[BOOL],
    monoid.lxor[BOOL],
]


@pytest.mark.parametrize("op", COMBINES, ids=repr)
def test_combine(pair, op):
    for n in SIZES:
        for mask in MASKS:
            rng = rng_of("combine", n, mask)
            one_, two = (Sparse(rng, n, op.dtype, k.XLIST, special=op.name != "plus") for _ in range(2))
            words, start = random_words(rng, n), np.full(max(n, 1), op.start)
            space = dict(
                acc_vals=start,
                acc_words=np.zeros((n + 63) // 64, np.int64),
                touched=np.zeros(n, np.int32),
                touched_count=one(),
            )
            ours, theirs = pair.run(
                "combine",
                Spec(op=op, b=op.dtype),
                count=one_.count,
                slots=one_.slots,
                vals=one_.vals,
                mwords=words,
                flags=mask,
                **space,
            )
            same_list("touched", None, "touched_count", ours, theirs)
            again = {name: ours[name] for name in space}
            ours, theirs = pair.run(
                "combine",
                Spec(op=op, b=op.dtype),
                count=two.count,
                slots=two.slots,
                vals=two.vals,
                mwords=words,
                flags=mask,
                **again,
            )
            same_list("touched", None, "touched_count", ours, theirs)
            same_dense(n, "acc_words", "acc_vals", ours, theirs)


@pytest.mark.parametrize("form", FORMS)
def test_frontier_edges(pair, form):
    for n in SIZES:
        rng = rng_of("edges", n, form)
        A, x = Csr(rng, n, Map(50), BOOL), Sparse(rng, n, BOOL, form)
        ours, theirs = pair.run(
            "frontier_edges",
            Spec(),
            n=n,
            count=x.count,
            slots=x.slots,
            xwords=x.words,
            flags=form,
            indptr=A.indptr,
            out=one(),
        )
        same(ours["out"], theirs["out"])


# -- writes and elementwise

ACCUMS = [
    (None, FP32, FP64),
    (None, INT64, FP32),
    (binary.plus[INT64], INT64, INT64),
    (binary.minus[FP64], FP32, INT32),
    (binary.lor[BOOL], BOOL, BOOL),
]


@pytest.mark.parametrize(("op", "a", "b"), ACCUMS)
def test_write(pair, op, a, b):
    for n in SIZES:
        for flags in (
            m | r | g | full
            for m in MASKS
            for r in (0, k.REPLACE)
            for g in (0, k.REGION)
            for full in (0, k.TFULL, k.CFULL | k.TFULL)
        ):
            rng = rng_of("write", n, flags)
            stride = int(rng.integers(2))
            ours, theirs = pair.run(
                "write",
                Spec(op=op, a=a, b=b),
                n=n,
                cvals=values(rng, n, a),
                cwords=random_words(rng, n),
                tvals=values(rng, max(n, 1), b),
                tstride=stride,
                twords=random_words(rng, n),
                mwords=random_words(rng, n),
                rwords=random_words(rng, n),
                flags=flags,
                count=one(),
            )
            same(ours["cwords"], theirs["cwords"])
            same(ours["count"], theirs["count"])
            same(ours["cvals"], theirs["cvals"])


@pytest.mark.parametrize(("op", "a", "b"), ACCUMS)
def test_write_list(pair, op, a, b):
    for n in SIZES:
        for flags in (m | full for m in MASKS for full in (0, k.CFULL)):
            rng = rng_of("write_list", n, flags)
            t, c = Sparse(rng, n, b, k.XLIST), random_words(rng, n)
            ours, theirs = pair.run(
                "write_list",
                Spec(op=op, a=a, b=b),
                tcount=t.count,
                tslots=t.slots,
                tvals=t.vals,
                tstride=t.stride,
                mwords=random_words(rng, n),
                flags=flags,
                cvals=values(rng, n, a),
                cwords=c,
                count=np.array([bits_of(c).sum()]),
            )
            for name in ("cwords", "count", "cvals"):
                same(ours[name], theirs[name])


def test_unwrite(pair):
    for n in SIZES:
        rng = rng_of("unwrite", n, 0)
        t, c = Sparse(rng, n, INT64, k.XLIST), random_words(rng, n)
        given = {"tcount": t.count, "tslots": t.slots, "cwords": c, "count": np.array([bits_of(c).sum()])}
        ours, theirs = pair.run("unwrite", Spec(), **given)
        for name in ("cwords", "count"):
            same(ours[name], theirs[name])


EWISE = [
    (binary.plus[INT32], INT32, INT32, INT32),
    (binary.minus[FP64], FP32, INT64, FP64),
    (binary.lt[FP32], FP32, FP32, BOOL),
    (binary.firsti[INT64], BOOL, BOOL, INT64),
    (binary.land[BOOL], BOOL, BOOL, BOOL),
]


CHAINED = Spec(op=binary.minus[INT32], a=INT32, b=INT32, out=FP64, then=binary.truediv[FP64], c=FP32)


def pairs_of(rng, n, spec, flags):
    """What a kernel is given of two vectors, the second of one value, and of a third."""
    return dict(
        n=n,
        avals=values(rng, max(n, 1), spec.a),
        astride=1,
        awords=random_words(rng, n),
        bvals=values(rng, 1, spec.b),
        bstride=0,
        bwords=random_words(rng, n),
        cvals=values(rng, max(n, 1), spec.c or INT64),
        cstride=1,
        cwords=random_words(rng, n),
        flags=flags,
        row0=9,
        adefault=2,
        bdefault=3,
    )


@pytest.mark.parametrize("lone", ["", "union", "defaults"])
@pytest.mark.parametrize(
    "spec", [Spec(op=op, a=a, b=b, out=out) for op, a, b, out in EWISE] + [CHAINED, CHAINED._replace(flip=True)]
)
def test_ewise(pair, spec, lone):
    for n in SIZES:
        for flags in (0, k.AFULL, k.BFULL, k.CFULL, k.AFULL | k.BFULL | k.CFULL | k.OUTFULL):
            rng = rng_of("ewise", n, flags)
            ours, theirs = pair.run(
                "ewise",
                spec._replace(lone=lone),
                **pairs_of(rng, n, spec, flags),
                out_vals=np.zeros(n, spec.out.np_type),
                out_words=np.full((n + 63) // 64, -1),
                count=one(),
            )
            same(ours["count"], theirs["count"])
            same_dense(n, "out_words", "out_vals", ours, theirs)


@pytest.mark.parametrize("lone", ["", "union", "defaults"])
@pytest.mark.parametrize("spec, op", [
    (Spec(op=binary.plus[INT32], a=INT32, b=INT32, out=INT32), monoid.plus[INT64]),
    (Spec(op=binary.lt[FP32], a=FP32, b=FP32, out=BOOL), monoid.lor[BOOL]),
    (Spec(op=binary.firsti[INT64], a=BOOL, b=BOOL, out=INT64), monoid.max[INT64]),
    (CHAINED, monoid.plus[FP64]), (CHAINED._replace(flip=True), monoid.min[FP64]),
])  # fmt: skip
def test_fold(pair, spec, op, lone):
    for n in (*SIZES, 100_000):
        for flags in (0, k.AFULL, k.BFULL, k.CFULL, k.AFULL | k.BFULL | k.CFULL):
            rng = rng_of("fold", n, flags)
            ours, theirs = pair.run(
                "fold",
                spec._replace(lone=lone, fold=op),
                **pairs_of(rng, n, spec, flags),
                out_vals=np.zeros(1, op.dtype.np_type),
                out_words=one(),
            )
            same(ours["out_words"], theirs["out_words"])
            same(ours["out_vals"], theirs["out_vals"], close=op.dtype.kind == "f" and op.name == "plus")


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(("op", "a", "b", "out"), EWISE)
def test_ewise_list(pair, op, a, b, out, flip):
    for n in SIZES:
        rng = rng_of("ewise_list", n)
        x = Sparse(rng, n, a, k.XLIST)
        ours, theirs = pair.run(
            "ewise_list",
            Spec(op=op, a=a, b=b, out=out, flip=flip),
            count=x.count,
            slots=x.slots,
            avals=x.vals,
            astride=1,
            bvals=values(rng, max(n, 1), b),
            bstride=1,
            bwords=random_words(rng, n),
            flags=0,
            row0=9,
            out_slots=np.zeros(n, np.int32),
            out_vals=np.zeros(n, out.np_type),
            out_count=one(),
        )
        same_list("out_slots", "out_vals", "out_count", ours, theirs)


MAPS = [
    (unary.ainv[INT32], INT32, "", 0),
    (unary.abs[FP32], FP64, "", 0),
    (binary.minus[INT64], INT32, "left", np.int64(5)),
    (binary.times[FP64], FP64, "right", np.float64(0.5)),
    (indexunary.rowindex[INT64], BOOL, "", np.int64(3)),
    (indexunary.valuegt[FP32], FP32, "", np.float32(0.25)),
]


@pytest.mark.parametrize(("op", "b", "bound", "thunk"), MAPS)
def test_apply(pair, op, b, bound, thunk):
    for n in SIZES:
        for form in (0, k.XLIST):
            rng = rng_of("apply", n, form)
            x = Sparse(rng, n, b, form)
            ours, theirs = pair.run(
                "apply",
                Spec(op=op, b=b, out=op.return_type, bound=bound),
                n=n,
                count=x.count,
                slots=x.slots,
                xvals=x.vals,
                xstride=1,
                thunk=thunk,
                flags=form,
                row0=9,
                out_vals=np.zeros(n, op.return_type.np_type),
            )
            same(ours["out_vals"], theirs["out_vals"])


SELECTS = [
    (select.valuegt[INT32], INT32, np.int32(0)),
    (select.valuelt[FP64], FP32, np.float64(0.5)),
    (select.indexle[INT64], BOOL, np.int64(40)),
]


@pytest.mark.parametrize(("op", "b", "thunk"), SELECTS)
def test_select(pair, op, b, thunk):
    for n in SIZES:
        for form in FORMS:
            rng = rng_of("select", n, form)
            x = Sparse(rng, n, b, form)
            if form == k.XLIST:
                ours, theirs = pair.run(
                    "select_list",
                    Spec(op=op, b=b),
                    count=x.count,
                    slots=x.slots,
                    xvals=x.vals,
                    xstride=1,
                    row0=9,
                    thunk=thunk,
                    out_slots=np.zeros(n, np.int32),
                    out_vals=np.zeros(n, b.np_type),
                    out_count=one(),
                )
                same_list("out_slots", "out_vals", "out_count", ours, theirs)
                continue
            ours, theirs = pair.run(
                "select",
                Spec(op=op, b=b),
                n=n,
                xvals=x.vals,
                xstride=1,
                xwords=x.words,
                flags=form,
                row0=9,
                thunk=thunk,
                out_words=np.full((n + 63) // 64, -1),
                count=one(),
            )
            same(ours["out_words"], theirs["out_words"])
            same(ours["count"], theirs["count"])


REDUCES = [
    (monoid.plus[FP32], FP32),
    (monoid.plus[INT64], INT32),
    (monoid.min[FP64], FP64),
    (monoid.max[INT32], INT32),
    (monoid.lor[BOOL], BOOL),
    (monoid.times[INT64], INT32),
    (monoid.lxor[BOOL], BOOL),
]


@pytest.mark.parametrize(("op", "b"), REDUCES)
def test_reduce(pair, op, b):
    for n in (*SIZES, 100_000):
        for form in (*FORMS, k.PAIRED):
            rng = rng_of("reduce", n, form)
            x = Sparse(rng, n, b, form & ~k.PAIRED, special=op.name == "min")
            call = dict(n=n, **{name: value for name, value in x.args().items() if name != "slots"}, flags=form)
            if form == k.PAIRED:
                call["xwords"] = rng.integers(0, 2, 2 * n)
            first, second = (
                pair.run("reduce", Spec(op=op, b=b), **call, out_vals=np.zeros(1, op.dtype.np_type), out_words=one())
                for _ in range(2)
            )
            same(first[0]["out_vals"], first[1]["out_vals"], close=b.kind == "f" and op.name == "plus")
            same(first[0]["out_words"], first[1]["out_words"])
            same(first[1]["out_vals"], second[1]["out_vals"])


# -- forms and masks


@pytest.mark.parametrize("b", [BOOL, INT32, INT64, FP32, FP64], ids=repr)
def test_forms(pair, b):
    for n in SIZES:
        rng = rng_of("forms", n)
        for form in (k.XFULL, 0):
            x, spec = Sparse(rng, n, b, form), Spec(b=b)
            dense = dict(n=n, xvals=x.vals, xstride=1, xwords=x.words, flags=form)
            ours, theirs = pair.run("mask_words", spec, **dense, out_words=np.full((n + 63) // 64, -1))
            same(ours["out_words"], theirs["out_words"])
            ours, theirs = pair.run(
                "compact",
                spec,
                **dense,
                out_slots=np.zeros(n, np.int32),
                out_vals=np.zeros(n, b.np_type),
                out_count=one(),
            )
            same_list("out_slots", "out_vals", "out_count", ours, theirs)
            index = rng.integers(-1, max(n, 1) if n else 0, 130)
            ours, theirs = pair.run(
                "gather",
                spec,
                **(dense | {"n": 130}),
                index=index,
                out_vals=np.zeros(130, b.np_type),
                out_words=np.full(3, -1),
                count=one(),
            )
            same_dense(130, "out_words", "out_vals", ours, theirs)
            same(ours["count"], theirs["count"])


@pytest.mark.parametrize("b", [BOOL, FP32], ids=repr)
def test_list_forms(pair, b):
    for n in SIZES:
        rng = rng_of("list forms", n)
        x, spec = Sparse(rng, n, b, k.XLIST), Spec(b=b)
        entries = dict(count=x.count, slots=x.slots, xvals=x.vals, xstride=1)
        for flags in (0, k.VALUED):
            ours, theirs = pair.run(
                "list_words", spec, **entries, flags=flags, out_words=np.zeros((n + 63) // 64, np.int64)
            )
            same(ours["out_words"], theirs["out_words"])
        ours, theirs = pair.run(
            "scatter", spec, **entries, out_vals=np.zeros(n, b.np_type), out_words=np.zeros((n + 63) // 64, np.int64)
        )
        same_dense(n, "out_words", "out_vals", ours, theirs)
        for flags in MASKS[1:]:
            ours, theirs = pair.run(
                "mask_list",
                spec,
                **entries,
                mwords=random_words(rng, n),
                flags=flags,
                out_slots=np.zeros(n, np.int32),
                out_vals=np.zeros(n, b.np_type),
                out_count=one(),
            )
            same_list("out_slots", "out_vals", "out_count", ours, theirs)


def loads_of(rng) -> np.ndarray:
    """Edges of each device's frontier: even or not, with devices that have none."""
    p = int(rng.integers(1, 17))
    loads = rng.integers(0, 10 ** int(rng.integers(1, 9)), p)
    return np.where(rng.random(p) < 0.3, rng.integers(0, 2), loads)


def test_rows_are_cut_alike(pair):
    """Within a row: a GPU multiplies and adds at once."""
    for n in (1, 63, 300, 2048):
        for seed in range(8):
            rng = rng_of("deal", n, seed)
            totals, least, shift = loads_of(rng), int(rng.choice([0, 1000])), int(rng.choice([6, 20]))
            groups = [rng.multinomial(total, rng.dirichlet(np.full(n, 0.3))) for total in totals]
            loads = np.concatenate([np.r_[each.sum(), each] for each in groups]).astype(np.int64)
            p, owner = len(totals), int(rng.integers(len(totals)))
            for taker in range(p):
                given = dict(n=n, loads=loads, p=p, owner=owner, taker=taker, least=least, shift=shift)
                ours, theirs = pair.run("deal", Spec(), **given, out_cuts=np.zeros(2, np.int64))
                assert (np.abs(ours["out_cuts"] - theirs["out_cuts"]) <= 1).all()


def test_between(pair):
    for n in (*SIZES, 5000):
        for seed in range(8):
            rng, taken = rng_of("between", n, seed), []
            x = Sparse(rng, n, FP32, k.XLIST)
            middle, stride = int(rng.integers(n + 1)), int(rng.integers(2))
            for cuts in ((0, middle), (middle, 1 << 62)):
                ours, theirs = pair.run(
                    "between",
                    Spec(b=FP32),
                    **dict(count=x.count, slots=x.slots, xvals=x.vals, xstride=stride),
                    cuts=np.array(cuts, np.int64),
                    out_slots=np.zeros(n, np.int32),
                    out_vals=np.zeros(n, np.float32),
                    out_count=one(),
                )
                same_list("out_slots", "out_vals" if stride else None, "out_count", ours, theirs)
                taken.append(theirs["out_slots"][: theirs["out_count"][0]])
            np.testing.assert_array_equal(np.sort(np.concatenate(taken)), np.sort(x.slots[: x.count[0]]))


def test_move_bits(pair):
    for n in (*SIZES, 5000):
        for seed in range(8):
            rng = rng_of("move bits", n, seed)
            begin, at = (int(rng.integers(300)) for _ in range(2))
            words, out = (rng.integers(-(2**63), 2**63 - 1, (size + n >> 6) + 1) for size in (begin, at))
            ours, theirs = pair.run("move_bits", Spec(), n=n, words=words, begin=begin, at=at, out_words=out)
            same(ours["out_words"], theirs["out_words"])


@pytest.mark.parametrize("form", FORMS)
def test_row_edges(pair, form):
    for n in (*SIZES, 5000):
        for shift in (6, 9):
            rng = rng_of("row edges", n, form)
            A, x = Csr(rng, n, Map(50), BOOL), Sparse(rng, n, BOOL, form)
            given = dict(n=n, count=x.count, slots=x.slots, xwords=x.words, flags=form, indptr=A.indptr, shift=shift)
            ours, theirs = pair.run("row_edges", Spec(), **given, out=np.zeros(2 + (n >> shift), np.int64))
            same(ours["out"], theirs["out"])
            assert ours["out"][0] == ours["out"][1:].sum()
