"""Every CUDA kernel against the CPU kernel of the same instance, on random inputs of awkward sizes. Collected where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from gbgpu import binary, indexunary, monoid, select, semiring, unary
from gbgpu.device import cuda
from gbgpu.device.cpu import CpuDevice
from gbgpu.kernels import interface as k
from gbgpu.kernels.cpu import CpuKernels
from gbgpu.kernels.gpu import GpuKernels
from gbgpu.kernels.interface import KINDS, Spec
from gbgpu.semiring._types import BOOL, FP32, FP64, INT32, INT64

__test__ = bool(cuda.available())

SIZES = (0, 1, 63, 64, 65, 1000)
MASKS = (0, k.MASKED, k.MASKED | k.COMPLEMENT)
FORMS = (k.XFULL, 0, k.XLIST)
CPU = CpuKernels()
HOST = CpuDevice(0)


class Pair:
    """The same kernel call on both backends."""

    def __init__(self) -> None:
        devices = cuda.CudaDevices([(0, 0)])
        self.device, self.kernels = devices.devices[0], GpuKernels(devices)

    def run(self, kind: str, spec: Spec, **given) -> tuple[dict, dict]:
        """Call with the arguments by name; returns all buffers afterwards, of the CPU and of the GPU."""
        args = [given[name] for name in KINDS[kind]]
        ours = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        theirs = [self.device.put(a) if isinstance(a, np.ndarray) else a for a in args]
        CPU.get(kind, spec)(*ours)
        self.kernels.get(kind, spec)(*theirs)
        self.device.synchronize()
        read = [self.device.get(t) if isinstance(a, np.ndarray) else t for a, t in zip(args, theirs, strict=True)]
        return dict(zip(KINDS[kind], ours, strict=True)), dict(zip(KINDS[kind], read, strict=True))


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


# -- random inputs


def rng_of(*parts: object) -> np.random.Generator:
    return np.random.default_rng(list(repr(parts).encode()))


def values(rng, n: int, dtype, special: bool = True) -> np.ndarray:
    if dtype is BOOL:
        return rng.random(n) < 0.5
    if dtype.kind == "i":
        return rng.integers(-6, 7, n).astype(dtype.np_type)
    found = rng.integers(-8, 9, n) / 4
    if special and n:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])
        found = np.where(rng.random(n) < 0.2, rng.choice(odd, n), found)
    return found.astype(dtype.np_type)


def words_of(bits: np.ndarray) -> np.ndarray:
    padded = np.zeros((len(bits) + 63) // 64 * 64, bool)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view(np.int64)


def bits_of(words: np.ndarray) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)


def random_words(rng, n: int, share: float = 0.5) -> np.ndarray:
    return words_of(rng.random(n) < share)


def one() -> np.ndarray:
    return np.zeros(1, np.int64)


class Map:
    """m ids in two blocks of slots, the first a third of them."""

    def __init__(self, m: int):
        cut = m // 3
        self.bounds = np.array([0, cut, m])
        self.starts = np.cumsum([0, (cut + 63) // 64 * 64, (m - cut + 63) // 64 * 64])
        self.n = int(self.starts[-1])
        self.slots = np.concatenate([np.arange(cut), self.starts[1] + np.arange(m - cut)])


class Csr:
    """n random rows over the slots of a map, long enough here and there for every number of lanes; `hubs` rows hold nearly all columns."""

    def __init__(self, rng, n: int, columns: Map, dtype, hubs: int = 0, ptr="int32", idx="int32", special: bool = True):
        m = len(columns.slots)
        lengths = np.minimum(rng.geometric({300: 0.02, 1000: 0.05}.get(m, 0.2), n) - 1, m)
        lengths[: min(hubs, n)] = max(m - 7, 0)
        rows = [np.sort(rng.choice(m, length, replace=False)) for length in lengths]
        self.n, self.lengths = n, lengths
        self.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(ptr)
        self.cols = columns.slots[np.concatenate([*rows, []]).astype(int)].astype(idx)
        self.vals = values(rng, len(self.cols), dtype, special)
        self.heavy = np.flatnonzero(lengths >= k.HEAVY).astype(np.int32)


class Sparse:
    """A vector of n rows in one of the forms."""

    def __init__(self, rng, n: int, dtype, form: int, iso: bool = False, valid: np.ndarray | None = None, special: bool = True, idx="int32"):
        bits = rng.random(n) < (1.0 if form == k.XFULL else 0.4)
        if valid is not None:
            bits &= np.isin(np.arange(n), valid)
        self.n, self.words, self.form = n, words_of(bits), form
        self.slots = rng.permutation(np.flatnonzero(bits)).astype(idx)
        self.count = np.array([len(self.slots)])
        size = 1 if iso else max(n if form != k.XLIST else len(self.slots), 1)
        self.vals, self.stride = values(rng, size, dtype, special), 0 if iso else 1
        if form == k.XLIST:  # capacity beyond the count
            self.slots = np.concatenate([self.slots, np.zeros(5, idx)]).astype(idx)

    def args(self) -> dict:
        return dict(xvals=self.vals, xstride=self.stride, xwords=self.words, count=self.count, slots=self.slots)


# -- comparisons


def same(a: np.ndarray, b: np.ndarray, close: bool = False) -> None:
    assert a.dtype == b.dtype
    if close:
        np.testing.assert_allclose(b, a, rtol=1e-4 if a.dtype == np.float32 else 1e-12, atol=1e-5)
    else:
        np.testing.assert_array_equal(a, b)


def same_list(slots: str, vals: str | None, count: str, ours: dict, theirs: dict, first: int = 0) -> None:
    same(ours[count], theirs[count])
    c = int(ours[count][0])
    orders = [np.argsort(side[slots][first : first + c], kind="stable") for side in (ours, theirs)]
    same(*(side[slots][first : first + c][order] for side, order in zip((ours, theirs), orders, strict=True)))
    if vals:
        same(*(side[vals][first : first + c][order] for side, order in zip((ours, theirs), orders, strict=True)))


def same_dense(n: int, words: str, vals: str, ours: dict, theirs: dict, close: bool = False, iso: bool = False) -> None:
    same(ours[words], theirs[words])
    if iso:
        return same(ours[vals][:1], theirs[vals][:1])
    bits = bits_of(ours[words])[:n]
    same(ours[vals][:n][bits], theirs[vals][:n][bits], close)


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
SHAPES = [(n, m, 0) for n, m in zip(SIZES, reversed(SIZES), strict=True)] + [(1000, 300, 0), (70, 6000, 3), (300, 20000, 1)]
# Both operand orders where they differ most; the others alternate.
ORDERED = ("max_minus", "min_secondi", "max_firstj", "min_firsti", "plus_times")
CASES = [(case, flip) for i, case in enumerate(PRODUCTS) for flip in (False, True) if flip == i % 2 or case[0].name in ORDERED]
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
                    "pull", spec, n=n, indptr=A.indptr, cols=A.cols, avals=A.vals if len(A.vals) else values(rng, 1, a), astride=1,
                    xvals=x.vals, xstride=1, xwords=x.words, mwords=random_words(rng, n), flags=mask | form | k.TRACE, starts=columns.starts,
                    bounds=columns.bounds, row0=17, heavy=A.heavy, out_vals=np.zeros(max(n, 1), spec.out.np_type),
                    out_words=np.full((n + 63) // 64, -1), count=one(), stats=np.zeros(4, np.int64))
                same_dense(n, "out_words", "out_vals", ours, theirs, close=op.monoid.name in ("plus", "times") and spec.out.kind == "f", iso=iso)
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
                    "push", spec, n=n, **x.args(), flags=mask | form | k.TRACE, indptr=A.indptr, cols=A.cols,
                    avals=A.vals if len(A.vals) else values(rng, 1, a), astride=1, starts=columns.starts, bounds=columns.bounds, row0=17,
                    mwords=random_words(rng, own), own_lo=int(columns.starts[1]), own_hi=int(columns.starts[1]) + own,
                    acc_vals=np.full(1 if iso else max(columns.n, 1), op.monoid.start), acc_words=np.zeros(columns.n // 64, np.int64),
                    touched=np.zeros(columns.n, spec.idx), touched_count=one(), stats=np.zeros(4, np.int64))
                same_list("touched", None, "touched_count", ours, theirs)
                same_dense(columns.n, "acc_words", "acc_vals", ours, theirs, close, iso)
                same(ours["stats"], theirs["stats"])
                drain(pair, spec, columns, ours)


def drain(pair: Pair, spec: Spec, columns: Map, pushed: dict) -> None:
    room, dtype = columns.n, spec.out.np_type
    ours, theirs = pair.run(
        "drain", Spec(out=spec.out, idx=spec.idx, iso=spec.iso), **{name: pushed[name] for name in ("touched_count", "touched", "acc_vals", "acc_words")},
        start=spec.op.monoid.start, starts=columns.starts, p=2, out_slots=np.zeros(room, spec.idx), out_vals=np.zeros(room, dtype),
        out_counts=np.zeros(2, np.int64))
    same(ours["out_counts"], theirs["out_counts"])
    for b in range(2):
        for side in (ours, theirs):
            side["own"] = side["out_counts"][b : b + 1]
        same_list("out_slots", None if spec.iso else "out_vals", "own", ours, theirs, int(columns.starts[b]))
    same(ours["acc_vals"], theirs["acc_vals"])
    assert not theirs["acc_words"].any()


COMBINES = [monoid.plus[FP32], monoid.min[FP64], monoid.max[FP32], monoid.max[INT64], monoid.times[INT64], monoid.lor[BOOL], monoid.lxor[BOOL]]


@pytest.mark.parametrize("op", COMBINES, ids=repr)
def test_combine(pair, op):
    for n in SIZES:
        for mask in MASKS:
            rng = rng_of("combine", n, mask)
            one_, two = (Sparse(rng, n, op.dtype, k.XLIST, special=op.name != "plus") for _ in range(2))
            words, start = random_words(rng, n), np.full(max(n, 1), op.start)
            space = dict(acc_vals=start, acc_words=np.zeros((n + 63) // 64, np.int64), touched=np.zeros(n, np.int32), touched_count=one())
            ours, theirs = pair.run("combine", Spec(op=op, b=op.dtype), count=one_.count, slots=one_.slots, vals=one_.vals, mwords=words, flags=mask, **space)
            same_list("touched", None, "touched_count", ours, theirs)
            again = {name: ours[name] for name in space}
            ours, theirs = pair.run("combine", Spec(op=op, b=op.dtype), count=two.count, slots=two.slots, vals=two.vals, mwords=words, flags=mask, **again)
            same_list("touched", None, "touched_count", ours, theirs)
            same_dense(n, "acc_words", "acc_vals", ours, theirs)


@pytest.mark.parametrize("form", FORMS)
def test_frontier_edges(pair, form):
    for n in SIZES:
        rng = rng_of("edges", n, form)
        A, x = Csr(rng, n, Map(50), BOOL), Sparse(rng, n, BOOL, form)
        ours, theirs = pair.run("frontier_edges", Spec(), n=n, count=x.count, slots=x.slots, xwords=x.words, flags=form, indptr=A.indptr, out=one())
        same(ours["out"], theirs["out"])


# -- writes and elementwise

ACCUMS = [(None, FP32, FP64), (None, INT64, FP32), (binary.plus[INT64], INT64, INT64), (binary.minus[FP64], FP32, INT32), (binary.lor[BOOL], BOOL, BOOL)]


@pytest.mark.parametrize(("op", "a", "b"), ACCUMS)
def test_write(pair, op, a, b):
    for n in SIZES:
        for flags in (m | r | g | full for m in MASKS for r in (0, k.REPLACE) for g in (0, k.REGION) for full in (0, k.TFULL, k.CFULL | k.TFULL)):
            rng = rng_of("write", n, flags)
            stride = int(rng.integers(2))
            ours, theirs = pair.run(
                "write", Spec(op=op, a=a, b=b), n=n, cvals=values(rng, n, a), cwords=random_words(rng, n), tvals=values(rng, max(n, 1), b),
                tstride=stride, twords=random_words(rng, n), mwords=random_words(rng, n), rwords=random_words(rng, n), flags=flags, count=one())
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
                "write_list", Spec(op=op, a=a, b=b), tcount=t.count, tslots=t.slots, tvals=t.vals, tstride=t.stride, mwords=random_words(rng, n),
                flags=flags, cvals=values(rng, n, a), cwords=c, count=np.array([bits_of(c).sum()]))
            for name in ("cwords", "count", "cvals"):
                same(ours[name], theirs[name])


EWISE = [(binary.plus[INT32], INT32, INT32, INT32), (binary.minus[FP64], FP32, INT64, FP64), (binary.lt[FP32], FP32, FP32, BOOL),
         (binary.firsti[INT64], BOOL, BOOL, INT64), (binary.land[BOOL], BOOL, BOOL, BOOL)]


@pytest.mark.parametrize("side", ["", "union"])
@pytest.mark.parametrize(("op", "a", "b", "out"), EWISE)
def test_ewise(pair, op, a, b, out, side):
    for n in SIZES:
        for flags in (0, k.AFULL, k.BFULL, k.AFULL | k.BFULL | k.OUTFULL):
            rng = rng_of("ewise", n, flags)
            ours, theirs = pair.run(
                "ewise", Spec(op=op, a=a, b=b, out=out, side=side), n=n, avals=values(rng, max(n, 1), a), astride=1, awords=random_words(rng, n),
                bvals=values(rng, 1, b), bstride=0, bwords=random_words(rng, n), flags=flags, row0=9, out_vals=np.zeros(n, out.np_type),
                out_words=np.full((n + 63) // 64, -1), count=one())
            same(ours["count"], theirs["count"])
            same_dense(n, "out_words", "out_vals", ours, theirs)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("op", "a", "b", "out"), EWISE)
def test_ewise_list(pair, op, a, b, out, side):
    for n in SIZES:
        rng = rng_of("ewise_list", n)
        x = Sparse(rng, n, a, k.XLIST)
        ours, theirs = pair.run(
            "ewise_list", Spec(op=op, a=a, b=b, out=out, side=side), count=x.count, slots=x.slots, avals=x.vals, astride=1,
            bvals=values(rng, max(n, 1), b), bstride=1, bwords=random_words(rng, n), flags=0, row0=9, out_slots=np.zeros(n, np.int32),
            out_vals=np.zeros(n, out.np_type), out_count=one())
        same_list("out_slots", "out_vals", "out_count", ours, theirs)


MAPS = [(unary.ainv[INT32], INT32, "", 0), (unary.abs[FP32], FP64, "", 0), (binary.minus[INT64], INT32, "left", np.int64(5)),
        (binary.times[FP64], FP64, "right", np.float64(0.5)), (indexunary.rowindex[INT64], BOOL, "", np.int64(3)),
        (indexunary.valuegt[FP32], FP32, "", np.float32(0.25))]


@pytest.mark.parametrize(("op", "b", "side", "thunk"), MAPS)
def test_apply(pair, op, b, side, thunk):
    for n in SIZES:
        for form in (0, k.XLIST):
            rng = rng_of("apply", n, form)
            x = Sparse(rng, n, b, form)
            ours, theirs = pair.run(
                "apply", Spec(op=op, b=b, out=op.return_type, side=side), n=n, count=x.count, slots=x.slots, xvals=x.vals, xstride=1,
                thunk=thunk, flags=form, row0=9, out_vals=np.zeros(n, op.return_type.np_type))
            same(ours["out_vals"], theirs["out_vals"])


SELECTS = [(select.valuegt[INT32], INT32, np.int32(0)), (select.valuelt[FP64], FP32, np.float64(0.5)), (select.indexle[INT64], BOOL, np.int64(40))]


@pytest.mark.parametrize(("op", "b", "thunk"), SELECTS)
def test_select(pair, op, b, thunk):
    for n in SIZES:
        for form in FORMS:
            rng = rng_of("select", n, form)
            x = Sparse(rng, n, b, form)
            if form == k.XLIST:
                ours, theirs = pair.run(
                    "select_list", Spec(op=op, b=b), count=x.count, slots=x.slots, xvals=x.vals, xstride=1, row0=9, thunk=thunk,
                    out_slots=np.zeros(n, np.int32), out_vals=np.zeros(n, b.np_type), out_count=one())
                same_list("out_slots", "out_vals", "out_count", ours, theirs)
                continue
            ours, theirs = pair.run("select", Spec(op=op, b=b), n=n, xvals=x.vals, xstride=1, xwords=x.words, flags=form, row0=9, thunk=thunk,
                                    out_words=np.full((n + 63) // 64, -1), count=one())
            same(ours["out_words"], theirs["out_words"])
            same(ours["count"], theirs["count"])


REDUCES = [(monoid.plus[FP32], FP32), (monoid.plus[INT64], INT32), (monoid.min[FP64], FP64), (monoid.max[INT32], INT32), (monoid.lor[BOOL], BOOL),
           (monoid.times[INT64], INT32), (monoid.lxor[BOOL], BOOL)]


@pytest.mark.parametrize(("op", "b"), REDUCES)
def test_reduce(pair, op, b):
    for n in (*SIZES, 100_000):
        for form in FORMS:
            rng = rng_of("reduce", n, form)
            x = Sparse(rng, n, b, form, special=op.name == "min")
            call = dict(n=n, **{name: value for name, value in x.args().items() if name != "slots"}, flags=form)
            first, second = (pair.run("reduce", Spec(op=op, b=b), **call, out_vals=np.zeros(1, op.dtype.np_type), out_words=one()) for _ in range(2))
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
            ours, theirs = pair.run("compact", spec, **dense, out_slots=np.zeros(n, np.int32), out_vals=np.zeros(n, b.np_type), out_count=one())
            same_list("out_slots", "out_vals", "out_count", ours, theirs)
            index = rng.integers(-1, max(n, 1) if n else 0, 130)
            ours, theirs = pair.run("gather", spec, **(dense | {"n": 130}), index=index, out_vals=np.zeros(130, b.np_type), out_words=np.full(3, -1), count=one())
            same_dense(130, "out_words", "out_vals", ours, theirs)
            same(ours["count"], theirs["count"])


@pytest.mark.parametrize("b", [BOOL, FP32], ids=repr)
def test_list_forms(pair, b):
    for n in SIZES:
        rng = rng_of("list forms", n)
        x, spec = Sparse(rng, n, b, k.XLIST), Spec(b=b)
        entries = dict(count=x.count, slots=x.slots, xvals=x.vals, xstride=1)
        for flags in (0, k.VALUED):
            ours, theirs = pair.run("list_words", spec, **entries, flags=flags, out_words=np.zeros((n + 63) // 64, np.int64))
            same(ours["out_words"], theirs["out_words"])
        ours, theirs = pair.run("scatter", spec, **entries, out_vals=np.zeros(n, b.np_type), out_words=np.zeros((n + 63) // 64, np.int64))
        same_dense(n, "out_words", "out_vals", ours, theirs)
        for flags in MASKS[1:]:
            ours, theirs = pair.run("mask_list", spec, **entries, mwords=random_words(rng, n), flags=flags, out_slots=np.zeros(n, np.int32),
                                    out_vals=np.zeros(n, b.np_type), out_count=one())
            same_list("out_slots", "out_vals", "out_count", ours, theirs)


# -- matrices

MATRIX_SHAPES = [(n, 65, 0) for n in SIZES] + [(1, 0, 0), (40, 6000, 2)]


def offsets(lengths: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(like.dtype)


@pytest.mark.parametrize("wide", ["int32", "int64"])
@pytest.mark.parametrize(("op", "thunk"), [(select.tril[FP64], np.int64(2)), (select.valuegt[FP64], np.float64(0)), (select.diag[FP64], np.int64(0))])
def test_matrix_select(pair, op, thunk, wide):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("matrix select", n, m)
        columns, spec = Map(m), Spec(op=op, a=FP64, out=FP64, ptr=wide, idx=wide)
        A = Csr(rng, n, columns, FP64, hubs, wide, wide)
        call = dict(n=n, indptr=A.indptr, cols=A.cols, avals=A.vals, astride=1, thunk=thunk, starts=columns.starts, bounds=columns.bounds, row0=5)
        ours, theirs = pair.run("matrix_select_count", spec, **call, out_lengths=np.zeros(n, np.int64))
        same(ours["out_lengths"], theirs["out_lengths"])
        total = int(ours["out_lengths"].sum())
        ours, theirs = pair.run("matrix_select", spec, **call, out_indptr=offsets(ours["out_lengths"], A.indptr), out_cols=np.zeros(total, wide),
                                out_vals=np.zeros(total, np.float64))
        same(ours["out_cols"], theirs["out_cols"])
        same(ours["out_vals"], theirs["out_vals"])


@pytest.mark.parametrize(("op", "thunk"), [(unary.ainv[FP32], 0), (indexunary.colindex[INT64], np.int64(1)), (indexunary.rowindex[INT64], np.int64(1))])
def test_matrix_apply(pair, op, thunk):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("matrix apply", n, m)
        columns = Map(m)
        A = Csr(rng, n, columns, FP32, hubs)
        ours, theirs = pair.run(
            "matrix_apply", Spec(op=op, a=FP32, out=op.return_type), n=n, indptr=A.indptr, cols=A.cols, avals=A.vals, astride=1, thunk=thunk,
            starts=columns.starts, bounds=columns.bounds, row0=5, out_vals=np.zeros(len(A.cols), op.return_type.np_type))
        same(ours["out_vals"], theirs["out_vals"])


@pytest.mark.parametrize("op", [None, binary.minus[FP64]], ids=repr)
@pytest.mark.parametrize("keep", [k.A_ONLY | k.B_ONLY | k.BOTH, k.BOTH, k.A_ONLY | k.BOTH, k.B_ONLY, k.A_ONLY])
def test_merge(pair, op, keep):
    for n, m, hubs in MATRIX_SHAPES:
        rng = rng_of("merge", n, m)
        columns = Map(m)
        A, B = Csr(rng, n, columns, FP64, hubs), Csr(rng, n, columns, INT32, hubs - 1 if hubs else 0)
        pattern = dict(n=n, aptr=A.indptr, acols=A.cols, bptr=B.indptr, bcols=B.cols, keep=keep)
        ours, theirs = pair.run("merge_count", Spec(), **pattern, out_lengths=np.zeros(n, np.int64))
        same(ours["out_lengths"], theirs["out_lengths"])
        total = int(ours["out_lengths"].sum())
        ours, theirs = pair.run(
            "merge", Spec(op=op, a=FP64, b=INT32, out=FP64), **pattern, avals=A.vals, astride=1, bvals=B.vals, bstride=1,
            out_indptr=offsets(ours["out_lengths"], A.indptr), out_cols=np.zeros(total, np.int32), out_vals=np.zeros(total, np.float64))
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


def test_transpose(pair):
    for n, m, hubs in MATRIX_SHAPES:
        A = Csr(rng_of("transpose", n, m), n, Map(m), BOOL, hubs)
        args, width = (A.indptr, A.cols), Map(m).n
        for ours, theirs in zip(HOST.transpose(n, width, *args), pair.device.transpose(n, width, *map(pair.device.put, args)), strict=True):
            np.testing.assert_array_equal(ours, pair.device.get(theirs))
        for dtype in (np.int32, np.int64):
            same(HOST.cumsum_from_zero(A.lengths, dtype), pair.device.get(pair.device.cumsum_from_zero(pair.device.put(A.lengths), dtype)))


def test_out_of_memory_is_named(pair):
    from gbgpu.errors import OutOfMemory

    with pytest.raises(OutOfMemory, match=r"bytes on cuda:0; came .* bytes free"):
        pair.device.empty(2**50, np.int8)
    same(np.ones(3), pair.device.get(pair.device.put(np.ones(3))))
