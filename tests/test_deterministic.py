"""`deterministic=True`: the same bits on any number of devices and in every run; `any` is the term of lowest index."""

from __future__ import annotations

import os

import numpy as np
import pytest
from programs import WIDE

import algos
import gbgpu as gb
from gbgpu import agg, binary, monoid, semiring

GPU = "cuda" in os.environ.get("GBGPU_TEST_DEVICES", "")
SETS = [("cuda:0", None), ("cuda:0*3", (1, 5, 3)), ("cuda:0*7", None)] if GPU else [
    ("cpu:1", None), ("cpu:3", (1, 5, 3)), ("cpu:7", None)
]
N = 700


@pytest.fixture(autouse=True)
def afterwards():
    yield
    gb.init("cpu:1")


def start(spec, shares, deterministic=True):
    gb.init(spec, gb.partition.shares(*shares) if shares else None, deterministic=deterministic)


def values(rng, count, dtype):
    """Sums of these show the order of their terms."""
    made = rng.choice([-1, 1], count) * 10.0 ** rng.integers(-3, 6, count) * rng.random(count)
    return made.astype(gb.dtypes.lookup_dtype(dtype).np_type)


def objects(dtype):
    """Two matrices with short rows and a long one, a full, a bitmap-like and a short vector; the same each time."""
    rng = np.random.default_rng(11)
    places = np.unique(np.r_[rng.integers(0, N * N, 9000), 17 * N + rng.integers(0, N, 600)])
    rows, cols = places // N, places % N
    A = gb.Matrix.from_coo(rows, cols, values(rng, len(rows), dtype), nrows=N, ncols=N)
    full = gb.Vector.from_dense(values(rng, N, dtype))
    some, few = (np.sort(rng.permutation(N)[:count]) for count in (400, 9))
    half = gb.Vector.from_coo(some, values(rng, 400, dtype), size=N)
    thin = gb.Vector.from_coo(few, values(rng, 9, dtype), size=N)
    return A, full, half, thin


def contents(x):
    return [np.asarray(part) for part in (x.to_coo() if hasattr(x, "to_coo") else (x.value,))]


SUMS = {
    "A @ full": lambda A, full, half, thin: semiring.plus_times(A @ full).new(),
    "A @ half": lambda A, full, half, thin: semiring.plus_times(A @ half).new(),
    "thin @ A": lambda A, full, half, thin: semiring.plus_times(thin @ A).new(),
    "half @ A, push asked for": lambda A, full, half, thin: semiring.plus_times(half @ A).new(direction="push"),
    "A.T @ half, masked": lambda A, full, half, thin: semiring.plus_first(A.T @ half).new(mask=~thin.S),
    "times": lambda A, full, half, thin: semiring.times_plus(A @ half).new(),
    "rows": lambda A, full, half, thin: A.reduce_rowwise(monoid.plus).new(),
    "columns": lambda A, full, half, thin: A.reduce_columnwise(agg.mean).new(),
    "sum": lambda A, full, half, thin: full.reduce(monoid.plus).new(),
    "sum of some": lambda A, full, half, thin: half.reduce(monoid.plus).new(),
    "sum of a list": lambda A, full, half, thin: semiring.any_first(thin @ A).new().reduce(monoid.plus).new(),
    "sum of all": lambda A, full, half, thin: A.reduce_scalar(monoid.plus).new(),
    "inner": lambda A, full, half, thin: semiring.plus_times(half @ full).new(),
    "A @ A": lambda A, full, half, thin: semiring.plus_times(A @ A).new(),
    "A @ A.T, masked": lambda A, full, half, thin: semiring.plus_times(A @ A.T).new(mask=A.S),
    "pagerank": lambda A, full, half, thin: algos.pagerank(A, dtype="FP32")[0],
}


# The ordinary run takes the types in turn; in each there are products, reductions and products of matrices.
TYPES = ("FP32", "FP64")
SUMMED = [(name, dtype) for k, name in enumerate(SUMS) for dtype in (TYPES if WIDE else TYPES[k % 2 :][:1])]


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "dtype"), SUMMED)
def test_sums_have_the_same_bits_on_any_number_of_devices(name, dtype):
    found = []
    for _ in range(2):
        for spec, shares in SETS:
            start(spec, shares)
            found.append(contents(SUMS[name](*objects(dtype))))
    for other in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other, strict=True)), name


def test_the_order_shows_without_it():
    found = set()
    for spec, shares in SETS:
        start(spec, shares, deterministic=False)
        A, full, *_ = objects("FP32")
        pushed = semiring.plus_times(full @ A).new(direction="push").to_coo()[1]
        found.add((full.reduce(monoid.plus).new().value, pushed.tobytes()))
    assert len(found) > 1


@pytest.mark.parametrize("spec, shares", SETS)
@pytest.mark.parametrize("name", ["half", "thin", "full"])
def test_any_takes_the_term_of_the_lowest_index(spec, shares, name):
    start(spec, shares)
    A, full, half, thin = objects("FP64")
    x = {"half": half, "thin": thin, "full": full}[name]
    rows, cols, _ = A.to_coo()
    held = dict(zip(*x.to_coo(), strict=True))
    lowest: dict = {}
    for j, i in zip(cols.tolist(), rows.tolist(), strict=True):  # x @ A: term x[i] of column j
        if i in held:
            lowest[j] = min(i, lowest.get(j, i))
    ids = np.array(sorted(lowest))
    found = semiring.any_first(x @ A).new().to_coo()
    assert np.array_equal(found[0], ids) and [held[lowest[j]] for j in ids] == found[1].tolist()
    for direction in ("push", "pull"):
        found = semiring.any_secondi(x @ A).new(direction=direction).to_coo()
        assert np.array_equal(found[0], ids) and [lowest[j] for j in ids] == found[1].tolist()


@pytest.mark.parametrize("spec, shares", SETS)
@pytest.mark.parametrize("dtype", ["FP64", "INT8"])
def test_any_of_all_is_the_entry_of_the_lowest_index(spec, shares, dtype):
    start(spec, shares)
    A, full, half, thin = objects(dtype)
    bitmap = gb.Vector(dtype, N)
    bitmap(half.S) << full
    for x in (full, half, thin, bitmap, gb.Vector(dtype, N)):
        first = x.to_coo()[1][:1].tolist() or [None]
        assert [x.reduce("any").new().value] == first and [x.reduce(agg.any_value).new().value] == first
    for X in (A, A.T, A.T.new(), gb.Matrix(dtype, 3, 3)):
        assert [X.reduce_scalar("any").new().value] == (X.to_coo()[2][:1].tolist() or [None])


@pytest.mark.parametrize("spec, shares", SETS)
def test_parents_are_the_lowest_of_the_level_before(spec, shares):
    start(spec, shares)
    A = objects("FP64")[0]
    levels, parents = algos.bfs(A, 3)
    depth = levels.to_dense(-1)
    rows, cols, _ = A.to_coo()
    steps = (depth[cols] == depth[rows] + 1) & (depth[rows] >= 0)
    lowest = np.full(N, N)
    np.minimum.at(lowest, cols[steps], rows[steps])
    for v, parent in zip(*parents.to_coo(), strict=True):
        assert parent == (v if v == 3 else lowest[v])


@pytest.mark.parametrize("spec, shares", SETS)
def test_indices_that_meet_are_added_in_order(spec, shares):
    start(spec, shares)
    rng = np.random.default_rng(2)
    ids, terms = rng.integers(0, 20, 500), values(rng, 500, "FP32")
    w = gb.Vector.from_dense(np.zeros(20, np.float32))
    w(binary.plus)[gb.Vector.from_dense(ids)] << gb.Vector.from_dense(terms)
    first = w.to_dense()
    start(*SETS[0])
    w = gb.Vector.from_dense(np.zeros(20, np.float32))
    w(binary.plus)[gb.Vector.from_dense(ids)] << gb.Vector.from_dense(terms)
    assert np.asarray(first).tobytes() == np.asarray(w.to_dense()).tobytes()


@pytest.mark.skipif(GPU, reason="kernels of CPU devices")
@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_sums_have_the_same_bits_before_and_after_a_kernel_is_compiled(dtype, monkeypatch):
    found = []
    for interpret in (True, False):
        monkeypatch.setattr(gb.settings, "interpret", interpret)
        start("cpu:1", None)
        made = objects(dtype)
        found.append([SUMS[name](*made).to_coo()[1].tobytes() for name in list(SUMS)[:5]])
    assert found[0] == found[1]


def test_sums_of_rows_are_right_in_any_order():
    """As they are, they need not be rounded in the order of a row."""
    start("cuda:0" if GPU else "cpu:3", None, deterministic=False)
    A, full, *_ = objects("FP64")
    rows, cols, vals = A.to_coo()
    exact = np.zeros(N, np.longdouble)
    np.add.at(exact, rows, vals.astype(np.longdouble) * full.to_dense()[cols])
    scale = np.zeros(N)
    np.add.at(scale, rows, np.abs(vals * full.to_dense()[cols]))
    got = semiring.plus_times(A @ full).new().to_dense(0)
    assert (np.abs(got - exact) <= 1e-13 * scale).all()
