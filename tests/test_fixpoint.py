"""`gb.fixpoint`: both schedules give what NumPy finds by extending all vertices again and again, and SciPy's paths."""

from __future__ import annotations

import os
import pickle
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import Devices, chosen
from programs import WIDE
from scipy.sparse import csgraph, linalg

import algos
import gbgpu as gb
from algos import verify
from gbgpu import binary, fixpoint, monoid, semiring
from gbgpu.device.remote import local_results
from gbgpu.engine import fixpoint as engine
from gbgpu.engine.fixpoint import Relaxation
from gbgpu.errors import InvalidValue, NotImplementedException
from gbgpu.kernels.interface import CROWDED
from gbgpu.kernels.kernel import Kernel
from gbgpu.language import fixpoint as language
from gbgpu.language import residual as sums
from gbgpu.semiring._laws import refusal
from gbgpu.semiring._lower import to_python
from gbgpu.semiring._operators import BinaryOp

ROOT = Path(__file__).resolve().parents[1]

# Of several devices, one has it all in its memory; or each extends what it owns. (Of rows that are scattered at random,
# others are told of every hop, which takes long on a road map.)
OWN = [replace(each, replicas=0) for each in chosen() if each.several]
OWN = [replace(each, partition="segments(2)") if "random" in each.partition and not WIDE else each for each in OWN]
SETS = [*chosen(), *OWN]


@pytest.fixture(params=SETS, ids=lambda chosen: chosen.name)
def devices(request, monkeypatch) -> Devices:
    request.param.start()
    monkeypatch.setattr(engine, "rounds_are_long", lambda session: True)  # as between processes
    return request.param


# Semirings whose product is monotone, the types tried, and NumPy's functions: of the monoid and of f(x, a).
SEMIRINGS = {
    "min_plus": ("INT32 INT64 FP32 FP64 UINT64", np.fmin, np.add),
    "max_plus": ("INT32 FP64", np.fmax, np.add),
    "max_min": ("INT16 UINT32 FP32", np.fmax, np.fmin),
    "min_max": ("INT32 UINT64 FP64", np.fmin, np.fmax),
    "min_first": ("INT32 FP64", np.fmin, lambda x, a: x),
    "max_second": ("INT64 FP32", np.fmax, lambda x, a: a),
    "max_times": ("FP64", np.fmax, np.multiply),
    "bor_band": ("UINT32", np.bitwise_or, np.bitwise_and),
    "band_bor": ("UINT64", np.bitwise_and, np.bitwise_or),
    "lor_land": ("BOOL", np.logical_or, np.logical_and),
}
SIZES = (1, 2, 63, 65, 300)
SEEDS = 80 if os.environ.get("GBGPU_TEST_PROFILE") == "long" else 5  # as many as some have types


def improved(total: np.ufunc, f, n: int, d: dict, arcs: list, lets: np.ndarray) -> dict:
    """The values that no arc improves any more: all arcs of the vertices that changed, until none does."""
    out: list[list] = [[] for _ in range(n)]
    for i, j, a in arcs:
        if lets[j]:
            out[i].append((j, a))
    d, waiting = dict(d), list(d)
    with np.errstate(all="ignore"):
        while waiting:
            i = waiting.pop()
            for j, a in out[i]:
                term = f(d[i], a)
                made = term if j not in d else total(d[j], term)
                if j not in d or not (made == d[j] or (made != made and d[j] != d[j])):
                    d[j] = made
                    waiting.append(j)
    return d


def drawn(name: str, dtype, rng: np.random.Generator):
    """Arcs (with loops, and some twice in both directions), values to begin with, and a mask."""
    n = int(rng.choice(SIZES))
    m = int(rng.integers(0, 4 * n + 1)) * int(rng.integers(0, 8) > 0)
    heads, tails = rng.integers(0, n, m), rng.integers(0, n, m)
    weights = rng.random(m) if name == "max_times" else rng.integers(0, 9, m) * (-1 if name == "max_plus" else 1)
    weights = (weights > 2 if np.dtype(dtype).kind == "b" else weights).astype(dtype)
    if np.dtype(dtype).kind == "f" and m and name != "max_times" and rng.integers(0, 3) == 0:
        weights[rng.integers(0, m)] = -np.inf if name == "max_plus" else np.inf
    few = int(rng.choice([1, 1, max(n // 3, 1)]))
    ids = np.sort(rng.choice(n, few, replace=False))
    return n, heads, tails, weights, ids, rng.integers(0, 5, few).astype(dtype), rng.integers(0, 2, n)


@pytest.mark.parametrize("name", SEMIRINGS)
def test_random_bodies(devices, name):
    types, total, f = SEMIRINGS[name]
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, len(name)])
        dtype = gb.dtypes.lookup_dtype(types.split()[seed % len(types.split())])
        n, heads, tails, weights, ids, vals, marks = drawn(name, dtype.np_type, rng)
        A = gb.Matrix.from_coo(heads, tails, weights, dtype, nrows=n, ncols=n, dup_op=binary.first)
        M = gb.Vector.from_coo(np.arange(n), marks, "INT8", size=n)
        lets, mask = [(np.ones(n), None), (marks, M.V), (1 - marks, ~M.V), (np.ones(n), M.S)][rng.integers(0, 4)]
        window = ["auto", None, 0, 3.0][rng.integers(0, 4)]
        worker, fetch = [("warp", None), ("warp", 128), ("thread", None), ("thread", 4), ("block", 7)][seed % 5]
        i, j, a = A.to_coo()
        side = int(rng.integers(0, 3))  # A @ d goes along the arcs the other way
        arcs = list(zip(j, i, a, strict=True)) if side == 2 else list(zip(i, j, a, strict=True))
        g = f if side == 0 else lambda x, a, f=f: f(a, x)
        want = improved(total, g, n, dict(zip(ids.tolist(), vals, strict=True)), arcs, lets)
        went = ""
        for schedule in ("auto", "free", "rounds"):
            d = gb.Vector.from_coo(ids, vals, dtype, size=n)
            op, add = getattr(semiring, name)[dtype], getattr(binary, name.partition("_")[0])
            if schedule == "free" and (
                gb.settings.session().scheduled(Asked(A, d, op)).hindrance or "rounds" not in went
            ):
                continue  # or "auto" has gone this way
            with fixpoint(window=window, schedule=schedule, worker=worker, fetch=fetch) as it:
                product = [op(d @ A), op(A.T @ d), op(A @ d)][side]
                (d(add) if mask is None else d(mask, add)) << product
            went = it.how
            found, values = d.to_coo()
            assert found.tolist() == sorted(want), (seed, schedule, it.how)
            wanted = np.array([want[v] for v in found], dtype.np_type)
            assert ((values == wanted) | ((values != values) & (wanted != wanted))).all(), (seed, schedule, it.how)
            assert it.converged and it.updates >= len(ids)


class Asked:
    """A fixpoint that is asked about, and not run."""

    mask = cutoff = None

    def __init__(self, matrix, output, op, schedule="free"):
        self.matrix, self.output, self.semiring, self.schedule = matrix, output, op, schedule


def paths(A: sp.csr_array, source: int, **how) -> tuple[np.ndarray, gb.language.fixpoint.Fixpoint]:
    """Distances as SciPy gives them."""
    G, d = gb.io.from_scipy_sparse(A), gb.Vector(float, size=A.shape[0])
    d[source] = 0
    with fixpoint(**how) as it:
        d(binary.min) << semiring.min_plus(d @ G)
    return d.to_dense(np.inf), it


def has_free(A: sp.csr_array, schedule: str) -> bool:
    """Whether `paths` may go without rounds on these devices."""
    d, op = gb.Vector(float, A.shape[0]), semiring.min_plus["FP64"]
    return not gb.settings.session().scheduled(Asked(gb.io.from_scipy_sparse(A), d, op, schedule)).hindrance


def roads(n: int, seed: int) -> sp.csr_array:
    """A ring with chords: many hops, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    i = np.arange(n)
    rows, cols = np.concatenate([i, i]), np.concatenate([(i + 1) % n, (i + rng.integers(2, 9, n)) % n])
    A = sp.csr_array((rng.integers(0, 50, 2 * n).astype(float), (rows, cols)), (n, n))
    A.sum_duplicates()
    return A


@pytest.mark.parametrize("window", ["auto", None, 0, 1, 40.0, 1e6])
def test_windows_change_the_order_and_not_the_result(devices, window):
    A = roads(200, 1)
    want = csgraph.dijkstra(A, indices=7)
    for schedule in ("auto", "rounds"):
        found, it = paths(A, 7, window=window, schedule=schedule)
        assert np.array_equal(found, want) and it.converged
        assert it.overwork >= 1 and it.updates >= 200
        if it.how.startswith("free"):
            assert it.windows == 1 if window is None else it.windows > 1 or window in ("auto", 1e6)


@pytest.mark.parametrize("name", ["min_first", "max_first", "min_plus"])
@pytest.mark.parametrize("window", [None, 0, 1, 7])
def test_many_that_wait_from_the_beginning(devices, name, window):
    """Values that ascend in the list are taken from its front, until one comes back to it; others are searched for."""
    rng, n = np.random.default_rng(len(name)), 200
    i, j = rng.integers(0, n, 150), rng.integers(0, n, 150)
    i, j = np.unique(np.array([(*i, *j), (*j, *i)]), axis=1)
    weights = rng.integers(0, 5, len(i))
    arcs = [*zip(i.tolist(), j.tolist(), weights.tolist(), strict=True)]
    A = gb.Matrix.from_coo(i, j, weights, dtype="INT32", nrows=n, ncols=n)
    op, total = getattr(semiring, name)["INT32"], np.fmax if name.startswith("max") else np.fmin
    f = (lambda x, a: x + a) if name == "min_plus" else lambda x, a: x
    for values in (np.arange(n), np.arange(n)[::-1], rng.integers(0, n, n), np.full(n, 3), np.arange(n) // 9):
        for ids in (np.arange(n), np.flatnonzero(rng.random(n) < 0.5)):
            want = improved(total, f, n, dict(zip(ids.tolist(), values[ids].tolist(), strict=True)), arcs, np.ones(n))
            d = gb.Vector.from_coo(ids, values[ids], dtype="INT32", size=n)
            with fixpoint(window=window) as it:
                d(getattr(binary, name[:3])) << op(d @ A)
            assert dict(zip(*(part.tolist() for part in d.to_coo()), strict=True)) == want and it.converged


@pytest.mark.parametrize("degree", [1, 3, 20])
@pytest.mark.parametrize("last", [0, 1, 200])
def test_rows_of_every_length(devices, degree, last):
    """Few entries, more than are relaxed at once, none; those of the last vertex end the matrix."""
    rng, n = np.random.default_rng(degree), 700
    lengths = rng.integers(0, 2 * degree + 1, n)
    lengths[[3, 400, n - 1]] = 300, n, last
    rows, cols = np.repeat(np.arange(n), lengths), np.concatenate([rng.permutation(n)[:k] for k in lengths])
    for values in (rng.integers(1, 99, len(rows)).astype(float), np.full(len(rows), 3.0)):
        A = sp.csr_array((values, (rows, cols)), (n, n))
        for source in (3, n - 1, int(lengths.argmin())):
            found, it = paths(A, source)
            assert np.array_equal(found, csgraph.dijkstra(A, indices=source)) and it.converged


def test_the_types_of_arguments_are_looked_at_once(monkeypatch):
    """Kernels check their arguments in Python in the first slice of work only, in a new session too."""
    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:3", replicas=0)
    checked, call = Counter(), Kernel.__call__
    monkeypatch.setattr(Kernel, "__call__", lambda self, *given: checked.update([self.kind]) or call(self, *given))
    _, it = paths(roads(400, 1), 7, window=1, schedule="free")
    assert it.windows > 30 and 0 < checked["relax"] <= 3 and checked["drain"] <= 3, checked


@pytest.mark.parametrize("schedule", ["auto", "rounds"])
@pytest.mark.parametrize("cutoff", [0, 60.5, 200, 1e6, -1])
def test_cutoffs_of_lengths(devices, schedule, cutoff):
    A = roads(200, 4)
    if cutoff < 0:
        want = np.full(200, np.inf)
        want[7] = 0
    else:
        want = csgraph.dijkstra(A, indices=7, limit=cutoff)
    for window in ("auto", None, 40.0):
        found, it = paths(A, 7, window=window, schedule=schedule, cutoff=cutoff)
        assert np.array_equal(found, want) and it.converged
        assert it.updates <= 4 * np.isfinite(want).sum() or schedule == "rounds" or window is None
    for dtype in ("INT16", "INT64", "FP32"):
        d = gb.Vector.from_coo([7], [0], dtype, size=200)
        G = gb.io.from_scipy_sparse(A.astype(d.dtype.np_type))
        with fixpoint(schedule=schedule, cutoff=min(cutoff, 30000)):
            d(binary.min) << semiring.min_plus[dtype](d @ G)
        assert np.array_equal(d.to_dense(np.iinfo(np.int16).max), np.where(want < np.inf, want, np.iinfo(np.int16).max))


@pytest.mark.parametrize("cutoff", [3, 3.5, 100])
def test_cutoffs_of_widths(devices, cutoff):
    """Of max, what is below a cutoff counts as absent: the widest paths over arcs that are as wide."""
    A = roads(150, 2).tocoo()
    for values in (np.full(150, 0), np.arange(150)):
        kept = A.data >= cutoff
        arcs = [*zip(*(x[kept].tolist() for x in (*A.coords, A.data)), strict=True)]
        given = {i: float(x) for i, x in enumerate(values) if i % 7 == 3}
        d, out = gb.Vector.from_dict(given, float, size=150), {i: x for i, x in given.items() if x >= cutoff}
        G = gb.io.from_scipy_sparse(A.tocsr())
        want = {**given, **improved(np.fmax, min, 150, out, arcs, np.ones(150))} if out else given
        with fixpoint(cutoff=cutoff) as it:
            d(binary.max) << semiring.max_min(d @ G)
        assert d.to_dict() == want and it.converged


def test_no_cutoff(first):
    A = gb.Matrix.from_coo([0, 1], [1, 2], [1.0, 2.0], nrows=3, ncols=3)
    for wrong in (np.nan, np.inf, "1", True, 10**400):
        with pytest.raises(InvalidValue, match="cutoff"):
            fixpoint(cutoff=wrong)
    small, truths = (gb.Vector.from_coo([0], [1], dtype, size=3) for dtype in ("INT8", bool))
    S, T = A.dup("INT8"), A.dup(bool)
    with pytest.raises(InvalidValue, match="INT8"), fixpoint(cutoff=128):
        small(binary.min) << semiring.min_plus["INT8"](small @ S)
    with pytest.raises(InvalidValue, match="cutoff"), fixpoint(cutoff=1):
        truths(binary.lor) << semiring.lor_land(truths @ T)
    x, r = gb.Vector(float, 3), gb.Vector.from_coo([0], [1.0], size=3)
    with pytest.raises(InvalidValue, match="cutoff"), fixpoint(cutoff=1):
        x(binary.plus) << r
        r << semiring.plus_times(r @ A)


def test_a_window_takes_what_is_no_number(devices, monkeypatch):
    """NaN is beyond every limit; where nothing else waits, there is none."""

    def go(self, of=Relaxation.go):
        calls.append(self)
        assert len(calls) < 400
        return of(self)

    monkeypatch.setattr(Relaxation, "go", go)
    n, v = 300, np.arange(99)
    A = gb.Matrix.from_coo(v, v + 1, np.ones(99), nrows=n, ncols=n)
    for add, op, sign in ((binary.min, semiring.min_plus, 1), (binary.max, semiring.max_min, -1)):
        calls, d = [], gb.Vector(float, size=n)
        d[0], d[250] = sign, np.nan
        with fixpoint(window=5) as it:
            d(add) << op(d @ A)
        want = np.arange(1, 101) if sign > 0 else np.full(100, -1)
        assert it.converged and np.array_equal(d.to_dense(0)[:100], want)
        assert np.flatnonzero(np.isnan(d.to_dense(0))).tolist() == [250] and d.nvals == 101


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT32", "INT64", "UINT64", "FP32"])
def test_windows_wider_than_the_type(devices, dtype):
    A = gb.Matrix.from_coo([0, 1, 2], [1, 2, 3], [9, 1, 7], dtype, nrows=4, ncols=4)
    for add, op in ((binary.min, semiring.min_max), (binary.max, semiring.max_min)):
        for schedule in ("auto", "rounds"):
            d = gb.Vector(dtype, size=4)
            d[0] = 5
            with fixpoint(window=1e300, schedule=schedule) as it:
                d(add) << op(d @ A)
            want = {"min": [5, 9, 9, 9], "max": [5, 5, 1, 1]}[add.name]
            assert d.to_dense().tolist() == want and it.windows <= 1


def test_two_values_have_no_windows(devices):
    A, d = gb.Matrix.from_coo([0, 1], [1, 2], [True, False], nrows=4, ncols=4), gb.Vector(bool, size=4)
    d[0] = True
    for schedule in ("auto", "rounds"):
        with fixpoint(window=3, schedule=schedule):
            d(binary.max) << semiring.max_land(d @ A)
        assert d.to_dict() == {0: True, 1: True, 2: False}


def test_one_vertex_no_arcs_and_no_values(devices):
    for n in (1, 70):
        A, d = gb.Matrix(float, n, n), gb.Vector(float, size=n)
        with fixpoint() as it:
            d(binary.min) << semiring.min_plus(d @ A)
        assert d.nvals == 0 and it.converged and it.updates == 0
        d[0] = 3
        with fixpoint():
            d(binary.min) << semiring.min_plus(d @ A)
        assert d.to_coo()[1].tolist() == [3]
        A[0, 0] = 1
        with fixpoint() as it:
            d(binary.min) << semiring.min_plus(d @ A)
        assert d.to_coo()[1].tolist() == [3] and it.converged


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_a_value_of_nan_waits_for_the_end(devices, dtype):
    """It is beyond the limit of any window but the last; what it reaches with a weight is NaN too."""
    A = gb.Matrix.from_coo([0, 1, 3], [1, 2, 4], [1, 1, 1], dtype, nrows=70, ncols=70)
    for window in ("auto", 2, 1e300):
        d = gb.Vector.from_coo([0, 3, 69], [0, np.nan, np.nan], dtype, size=70)
        with fixpoint(window=window) as it:
            d(binary.min) << semiring.min_plus[dtype](d @ A)
        assert it.converged and d.to_coo()[0].tolist() == [0, 1, 2, 3, 4, 69], it.how
        assert np.array_equal(d.to_coo()[1], [0, 1, 2, np.nan, np.nan, np.nan], equal_nan=True)


def test_small_vectors_of_one_device_and_a_matrix_of_several(devices, monkeypatch):
    """As with "auto": what is made of few rows and entries lies on the first device, whatever is made after it."""
    monkeypatch.setattr(gb.settings.session().maps, "_whole", 300)
    A, marks = roads(200, 1), np.arange(200) % 3 > 0
    mask = gb.Vector.from_coo(np.arange(200), marks, size=200)
    one, each = gb.Vector(float, 200), gb.Vector(float, 200)
    one[5], each[:], each[5] = 0, 9, 0
    G = gb.io.from_scipy_sparse(A)
    arcs = list(zip(*G.to_coo(), strict=True))
    for begun in (one, each):
        for lets, update in ((np.ones(200), lambda d: d(binary.min)), (marks, lambda d: d(mask.V, binary.min))):
            d = begun.dup()
            with fixpoint():
                update(d) << semiring.min_plus(d @ G)
            assert d.to_dict() == improved(np.fmin, np.add, 200, begun.to_dict(), arcs, lets)


def test_windows_of_one_value_are_no_cycle(devices):
    """Devices meet more often than there are vertices, as values fall again of those that were extended."""
    n = 12
    for seed in range(14, 28):
        rng = np.random.default_rng(seed)
        i, j = rng.permutation(np.argwhere(rng.random((n, n)) < 0.35)).T
        A = gb.Matrix.from_coo(i, j, rng.permutation(len(i)), "INT64", nrows=n, ncols=n)
        d = gb.Vector.from_coo([0], [0], "INT64", size=n)
        with fixpoint(window=0) as it:
            d(binary.min) << semiring.min_second["INT64"](d @ A)
        assert it.converged and "no end in sight" not in it.how


def test_goes_on_from_what_is_there(devices):
    """A second source, and a shorter arc, of a vector that has all its distances."""
    A = roads(300, 2)
    G, d = gb.io.from_scipy_sparse(A), gb.Vector(float, size=300)
    for source in (5, 200):
        d[source] = 0
        with fixpoint():
            d(binary.min) << semiring.min_plus(d @ G)
    assert np.array_equal(d.to_dense(np.inf), csgraph.dijkstra(A, indices=[5, 200], min_only=True))


def test_truths_have_no_windows(first):
    for window in (np.int64(0), 2.5):
        for schedule in ("auto", "rounds"):
            A, d = gb.Matrix.from_coo([0, 1], [1, 2], [True, True], nrows=4, ncols=4), gb.Vector(bool, size=4)
            d[0] = True
            with fixpoint(window=window, schedule=schedule):
                d(binary.max) << semiring.max_second["BOOL"](d @ A)
            assert d.to_coo()[0].tolist() == [0, 1, 2]


def test_an_output_that_is_resized_meanwhile(devices):
    A = gb.io.from_scipy_sparse(roads(300, 1))
    d = gb.Vector(float, size=300)
    d[0] = 0
    it = fixpoint(window=1, on_window=lambda windows: d.resize(9))
    if gb.settings.session().scheduled(Asked(A, d, semiring.min_plus["FP64"])).hindrance:
        return
    with pytest.raises(InvalidValue, match="keeps its size"), it:
        d(binary.min) << semiring.min_plus(d @ A)
    assert d.size == 9 and d.to_coo()[0].tolist() == [0]


def test_searches_in_the_body_of_a_loop(devices):
    A = gb.io.from_scipy_sparse(roads(90, 1))
    levels, parents = gb.Vector(int, size=90), gb.Vector(int, size=90)
    with gb.loop(2):
        levels << algos.bfs_levels(A, 4)
        parents << algos.bfs(A, 4).parents
    want = algos.bfs_levels(A, 4)
    assert levels.isequal(want)
    verify.bfs(A, 4, want, parents)


def test_negative_arcs(devices):
    """Without a cycle they are paths as any; a negative cycle is told."""
    rng = np.random.default_rng(3)
    order, n = rng.permutation(60), 60
    ends = np.sort(rng.integers(0, n, (2, 200)), axis=0)
    keep = ends[0] < ends[1]
    heads, tails = order[ends[0][keep]], order[ends[1][keep]]
    A = sp.csr_array((rng.integers(-9, 20, keep.sum()).astype(float), (heads, tails)), (n, n))
    A.sum_duplicates()
    found, it = paths(A, order[0])
    assert it.converged and np.array_equal(found, csgraph.bellman_ford(A, indices=order[0]))
    A = sp.csr_array((np.array([1.0, -2.0, 1.0, 0.5]), ([0, 1, 2, 2], [1, 2, 0, 3])), (4, 4))
    _, it = paths(A, 0, schedule="rounds")
    assert it.converged  # the cycle's length is 0
    A.data[1] = -3
    for how in ({"schedule": "rounds"}, {}, {"window": 2}, {"window": 2, "schedule": "rounds"}):
        _, it = paths(A, 0, **how)
        assert not it.converged, it.how
    _, it = paths(A, 0, max_updates=1000)
    assert not it.converged and (it.updates >= 1000 or "rounds" in it.how)  # these end after 5
    for window in ("auto", 1):  # a width is not used where weights are negative
        for schedule in ("auto", "rounds"):
            _, it = paths(A, 0, window=window, schedule=schedule)
            assert not it.converged and it.windows < 2


@pytest.mark.parametrize("how", [{}, {"window": 3}, {"window": 3, "schedule": "rounds"}])
def test_many_updates_are_no_cycle(devices, monkeypatch, how):
    """What is given up for its many updates goes on in rounds without windows, which come to the end."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(language, "ENDLESS", 1)
    if kernels.kind == "cpu":  # slices of 64 arcs; of a GPU they are times
        monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(most=64))
    A = sp.random_array((300, 300), density=0.02, rng=np.random.default_rng(1), format="csr")
    found, it = paths(A, 0, **how)
    assert it.converged and np.array_equal(found, csgraph.dijkstra(A, indices=0))
    assert "no end in sight" in it.how or kernels.kind != "cpu" or "schedule" in how


def test_max_updates(devices):
    A = roads(5000, 4)
    for schedule in ("auto", "rounds"):
        found, it = paths(A, 0, max_updates=50, schedule=schedule)
        want = csgraph.dijkstra(A, indices=0)
        assert (found >= want).all() and (it.converged or it.updates >= 50)


def test_on_window_is_told_and_may_stop_it(devices):
    A, seen = roads(2000, 5), []
    found, it = paths(A, 0, window=30, on_window=seen.append)
    if it.windows:
        assert seen == sorted(seen) and seen[-1] == it.windows > 5
    G, d = gb.io.from_scipy_sparse(A), gb.Vector(float, size=2000)
    d[0] = 0

    def stop(windows: int) -> None:
        if windows == 3:
            raise KeyboardInterrupt

    if it.windows:
        with pytest.raises(KeyboardInterrupt), fixpoint(window=30, on_window=stop):
            d(binary.min) << semiring.min_plus(d @ G)
        assert d.to_coo()[0].tolist() == [0]  # as it was
    with fixpoint(window=30):
        d(binary.min) << semiring.min_plus(d @ G)
    assert np.array_equal(d.to_dense(np.inf), found)


@pytest.mark.parametrize("share", [1e-9, 0.02])
def test_rounds_take_over_where_many_are_near(devices, monkeypatch, share):
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(crowd=share))
    A = roads(1500, 6)
    for window in ("auto", None, 100):
        found, it = paths(A, 0, window=window)
        assert np.array_equal(found, csgraph.dijkstra(A, indices=0)) and it.converged


def test_few_vertices_that_rounds_leave_go_on_without(devices, monkeypatch):
    """Rows are long in the middle of a map, so that rounds begin; they come to roads."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(crowd=0.5, alone=0))
    middle = sp.random_array((150, 150), density=0.4, rng=np.random.default_rng(8), format="csr")
    middle.data = np.ceil(9 * middle.data)
    A = sp.block_diag([middle, roads(700, 9)], format="lil")
    A[149, 150] = 1.0
    A = A.tocsr()
    found, it = paths(A, 0)
    assert np.array_equal(found, csgraph.dijkstra(A, indices=0)) and it.converged
    assert it.how.startswith("rounds: ") and ("; free, " in it.how) == has_free(A, "auto"), it.how
    for bound in (1, 500, 2500):
        _, it = paths(A, 0, max_updates=bound)
        assert it.converged or it.updates >= bound
    monkeypatch.setattr(language, "ENDLESS", 8)
    back = sp.csr_array(([-1e6], ([849], [0])), A.shape)
    assert not paths(sp.csr_array(A + back), 0)[1].converged


def test_windows_are_counted_on_after_rounds(devices, monkeypatch):
    """A path to 40 vertices beyond the window, and a path on from these; arcs back keep the mean weight low."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(crowd=0.05))
    arcs = [(v, v + 1, 1.0) for v in (*range(99), *range(140, 699))]
    arcs += [(v + k, v, 1.0) for k in range(1, 7) for v in (*range(99 - k), *range(140, 699 - k))]
    arcs += [arc for leaf in range(100, 140) for arc in ((99, leaf, 1000.0), (leaf, 140, 1.0))]
    heads, tails, weights = zip(*arcs, strict=True)
    A, seen = sp.csr_array((weights, (heads, tails)), (700, 700)), []
    found, it = paths(A, 0, on_window=seen.append)
    assert np.array_equal(found, csgraph.dijkstra(A, indices=0)) and seen == [*range(1, it.windows + 1)]
    if gb.settings.session().free(gb.io.from_scipy_sparse(A)):
        assert "; rounds: many vertices are near at once; free, " in it.how


def test_few_vertices_go_on_with_all_the_bits_that_they_have(devices, monkeypatch):
    """A vertex gains one bit after the other: what came last is not all of what it has."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(crowd=0.5, alone=0))
    rng = np.random.default_rng(3)
    heads, tails = np.concatenate([(np.arange(699), np.arange(1, 700)), rng.integers(0, 100, (2, 9000))], axis=1)
    A = gb.Matrix.from_coo(heads, tails, True, nrows=700, ncols=700, dup_op=binary.first)
    d = gb.Vector.from_coo([0, 100, 150, 300], [1, 2, 4, 8], "UINT64", size=700)
    op = semiring.bor_first["UINT64"]
    with fixpoint() as it:
        d(binary.bor) << op(d @ A)
    assert np.array_equal(d.to_dense(0), np.repeat([1, 3, 7, 15], [100, 50, 150, 400])) and it.converged
    free = not gb.settings.session().scheduled(Asked(A, d, op, "auto")).hindrance
    assert it.how.startswith("rounds: ") and ("; free, " in it.how) == free, it.how


def test_bits_may_take_more_rounds_than_there_are_vertices(devices, monkeypatch):
    """64 times around a ring of 20 vertices, of which each time shifts them by one."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(alone=0))
    heads, tails = np.nonzero((np.eye(20, k=1) + np.eye(20, k=-19) + np.tri(20)) > 0)
    ring = tails == (heads + 1) % 20
    A = gb.Matrix.from_coo(heads, tails, np.where(ring, tails == 0, 63), "UINT64", nrows=20, ncols=20)
    shift = binary.register_anonymous(lambda x, a: x << a, "shift", is_monotone=True)
    for schedule in ("auto", "rounds"):
        d = gb.Vector.from_coo([0], [1], "UINT64", size=20)
        with fixpoint(schedule=schedule) as it:
            d(binary.bor) << semiring.register_anonymous(monoid.bor, shift)(d @ A)
        assert it.converged and np.array_equal(d.to_dense(0), np.full(20, 2**64 - 1, np.uint64)), it.how


def test_windows_without_end_give_way_to_rounds_without(devices, monkeypatch):
    """More rounds of windows than there are vertices say nothing of cycles."""
    monkeypatch.setattr(language, "ENDLESS", 4)
    A = gb.Matrix.from_coo([0, 1], [1, 0], [1.5, 1.5])
    d = gb.Vector.from_dense(np.array([-1.0, -1.0]))
    with fixpoint(window=3, schedule="rounds") as it:
        d(binary.min) << semiring.min_times(d @ A)
    assert not it.converged and it.updates >= 24


@pytest.mark.parametrize("name", ["bor_band", "lor_land"])
def test_rounds_hand_over_all_that_vertices_have(devices, monkeypatch, name):
    """Bits that came one after the other; and values that equal the identity, of vertices that do not wait."""
    kernels = gb.settings.session().kernels
    monkeypatch.setattr(kernels, "relaxing", kernels.relaxing._replace(crowd=100.0, alone=0))
    monkeypatch.setattr(language, "ROUNDS", 2)
    types, total, f = SEMIRINGS[name]
    dtype = gb.dtypes.lookup_dtype(types)
    for seed in range(3):
        rng, n = np.random.default_rng(seed), 200
        heads = np.concatenate([np.zeros(140, int), rng.integers(0, 20, 300), np.arange(19, n - 1)])
        tails = np.concatenate([np.arange(60, n), rng.integers(0, 20, 300), np.arange(20, n)])
        weights = rng.integers(0, 2 if name == "lor_land" else 16, heads.size).astype(dtype.np_type)
        A = gb.Matrix.from_coo(heads, tails, weights, dtype, nrows=n, ncols=n, dup_op=binary.first)
        begun = rng.integers(0, 2 if name == "lor_land" else 16, 30).astype(dtype.np_type)
        d = gb.Vector.from_coo(np.arange(30), begun, dtype, size=n)
        arcs = list(zip(*A.to_coo(), strict=True))
        want = improved(total, f, n, dict(enumerate(begun)), arcs, np.ones(n))
        op = getattr(semiring, name)[dtype]
        free = not gb.settings.session().scheduled(Asked(A, d, op, "auto")).hindrance
        with fixpoint() as it:
            d(getattr(binary, name.partition("_")[0])) << op(d @ A)
        assert d.to_dict() == {v: value.item() for v, value in want.items()}, (seed, it.how)
        assert it.converged and ("; free" in it.how) == free, it.how


def test_rounds_take_over_where_lists_are_full(devices, monkeypatch):
    """Lists of 64 places: what found none is extended by rounds."""
    kernels = gb.settings.session().kernels
    if kernels.kind == "cuda":
        full = kernels.lists

        def short(device, n, spec):
            near, far, queued, progress = full(device, n, spec)
            return near[:128], far[:128], queued[:128], progress

        monkeypatch.setattr(kernels, "lists", short)
    else:  # there each vertex has a place
        go = Relaxation.go
        monkeypatch.setattr(Relaxation, "go", lambda self: min(go(self), 0) or crowded(self))
    rng = np.random.default_rng(7)
    A = sp.random_array((900, 900), density=0.01, rng=rng, format="csr")
    A.data = rng.integers(1, 90, A.nnz).astype(float)
    if not has_free(A, "free"):
        return  # nor lists
    found, it = paths(A, 0, schedule="free")
    assert "lists were full" in it.how
    assert np.array_equal(found, csgraph.dijkstra(A, indices=0)) and it.converged


def crowded(work: Relaxation) -> int:
    work.numbers["ended"] = CROWDED
    return CROWDED


def walks(n: int, seed: int) -> sp.csr_array:
    """Chances to go on along arcs, which sum to less than 1 in each row."""
    S = sp.random_array((n, n), density=5 / n, rng=np.random.default_rng(seed), format="csr")
    return sp.csr_array(S / (1.25 * np.maximum(S.sum(axis=1), 1e-9))[:, None])


@pytest.mark.parametrize("side", ["left", "right", "transposed"])
def test_sums_are_those_of_all_walks(devices, side):
    """x + r (I + P + P^2 + ...), which SciPy solves for."""
    S = walks(200, 4)
    P, begun = gb.io.from_scipy_sparse(S.T.tocsr() if side == "right" else S), np.random.default_rng(5).normal(size=200)
    x, r = gb.Vector.from_dense(np.ones(200)), gb.Vector.from_dense(begun)
    with fixpoint(tol=1e-12) as it:
        x(binary.plus) << r
        r << {
            "left": lambda: semiring.plus_times(r @ P),
            "right": lambda: semiring.plus_times(P @ r),
            "transposed": lambda: semiring.plus_times(P.T @ r),
        }[side]()
    wanted = 1 + linalg.spsolve(sp.csc_array(sp.eye_array(200) - S.T), begun)
    assert np.allclose(x.to_dense(0.0), wanted, rtol=0, atol=1e-9)
    assert it.converged and it.how == "rounds: sums" and it.updates >= 200 and it.windows == 0
    assert np.abs(r.to_dense(0.0)).max() <= 1e-12
    assert "rounds: sums" in str(gb.explain(it))


def test_sums_of_whole_numbers_count_paths(devices):
    """Paths from one vertex of a graph without cycles; nothing is left."""
    rng = np.random.default_rng(6)
    heads, tails = np.sort(rng.integers(0, 60, (2, 240)), axis=0)
    keep = heads < tails
    A = gb.Matrix.from_coo(heads[keep], tails[keep], 1, "INT64", nrows=60, ncols=60, dup_op=binary.first)
    x, r = gb.Vector("INT64", 60), gb.Vector.from_coo([0], [1], "INT64", size=60)
    with fixpoint() as it:
        x(binary.plus) << r
        r << semiring.plus_first(r @ A)
    paths = np.zeros(60, dtype=int)
    paths[0] = 1
    arcs = A.to_scipy_sparse().toarray()
    for v in range(1, 60):
        paths[v] = (paths[:v] * (arcs[:v, v] != 0)).sum()
    assert np.array_equal(x.to_dense(0), paths) and it.converged and not r.nvals


def test_sums_that_grow_end(devices):
    """At max_updates, or when there is no end in sight; as there is none for NaN, which is left."""
    A = gb.Matrix.from_coo([0, 1], [1, 0], [2.0, 2.0])
    x, r = gb.Vector(float, 2), gb.Vector.from_coo([0], [1.0], size=2)
    with fixpoint(tol=0.1, max_updates=7) as it:
        x(binary.plus) << r
        r << semiring.plus_times(r @ A)
    assert not it.converged and it.updates == 7 and r.to_coo()[1].tolist() == [2.0**7]
    x, r = gb.Vector(float, 2), gb.Vector.from_coo([0, 1], [np.nan, 0.01], size=2)
    with fixpoint(tol=0.1) as it:
        x(binary.plus) << r
        r << semiring.plus_times(r @ A)
    assert it.converged and it.updates == 0 and not x.nvals and r.nvals == 2


def test_sums_that_are_interrupted(devices, monkeypatch):
    """Whatever ends the rounds, x and r are as they were, and not one of them further than the other."""
    P, begun = gb.io.from_scipy_sparse(walks(50, 1)), np.random.default_rng(2).normal(size=50)

    def stop(rounds: int) -> None:
        if rounds == 3:
            raise KeyboardInterrupt

    x, r = gb.Vector(float, 50), gb.Vector.from_dense(begun)
    monkeypatch.setattr(sums, "loop", lambda: gb.loop(on_iteration=stop))
    with pytest.raises(KeyboardInterrupt), fixpoint(tol=1e-9):
        x(binary.plus) << r
        r << semiring.plus_times(r @ P)
    assert not x.nvals and np.array_equal(r.to_dense(), begun)
    monkeypatch.setattr(sums, "loop", lambda: gb.loop(on_iteration=lambda rounds: r.resize(9)))
    with pytest.raises(InvalidValue, match="keep their shapes"), fixpoint(tol=1e-9):
        x(binary.plus) << r
        r << semiring.plus_times(r @ P)
    assert not x.nvals and np.array_equal(r.to_dense(), begun[:9])


SUMS = {
    "x(binary.plus) << r; r(binary.plus) << semiring.plus_times(r @ A)": "taken out",
    "x << r; r << semiring.plus_times(r @ A)": "taken out",
    "x(binary.max) << r; r << semiring.plus_times(r @ A)": "taken out",
    "x(binary.plus) << x; r << semiring.plus_times(r @ A)": "two: ",
    "x(binary.plus) << r; x << semiring.plus_times(r @ A)": "two: ",
    "x(binary.plus) << r; r << semiring.plus_times(x @ A)": "two: ",
    "x(r.S, binary.plus) << r; r << semiring.plus_times(r @ A)": "without masks",
    "x(binary.plus) << r; r << semiring.plus_plus(r @ A)": "linear",
    "x(binary.plus) << r; r << semiring.plus_second(r @ A)": "linear",
    "x(binary.plus) << r; r << semiring.max_times(r @ A)": "linear",
    "x(binary.plus) << r; r << NAMESAKES[0](r @ A)": "linear",
    "x(binary.plus) << r; r << NAMESAKES[1](r @ A)": "linear",
    "x(binary.plus['INT64']) << r; r << semiring.plus_times(r @ A)": "sums of INT64",
    "x(binary.plus) << r; r << semiring.plus_times['FP32'](r @ A)": "products of FP32",
    "x(binary.plus) << r; r << semiring.plus_times(r @ A); x(binary.plus) << r": "one statement",
}


NAMESAKES = (  # operators of a user's own, of names that others have
    semiring.register_anonymous(monoid.plus, binary.register_anonymous(lambda x, y: x + y, "times")),
    semiring.register_anonymous(
        monoid.register_anonymous(binary.register_anonymous(lambda x, y: x * y, "plus"), 1.0), binary.times
    ),
)


@pytest.mark.parametrize("body", SUMS)
def test_other_sums_are_refused(first, body):
    A, x, r = gb.Matrix(float, 3, 3), gb.Vector(float, 3), gb.Vector(float, 3)
    with pytest.raises(InvalidValue, match=SUMS[body]), fixpoint(tol=1e-3):
        exec(body)
    with pytest.raises(InvalidValue, match="for sums"), fixpoint(tol=1e-3):
        x(binary.min) << semiring.min_plus(x @ A)
    with pytest.raises(NotImplementedException), fixpoint(schedule="free"):
        x(binary.plus) << r
        r << semiring.plus_times(r @ A)
    for wrong in (-1, np.nan, np.inf, "1", True, 10**400):
        with pytest.raises(InvalidValue):
            fixpoint(tol=wrong)


REFUSED = {
    "d << semiring.min_plus(d @ A)": "accumulator of the monoid",
    "d(binary.max) << semiring.min_plus(d @ A)": "accumulator of the monoid",
    "d(binary.plus) << semiring.plus_times(d @ A)": "idempotent",
    "d(binary.any) << semiring.any_first(d @ A)": "idempotent",
    "d(binary.min) << semiring.min_minus(d @ A)": "monotone",
    "i(binary.min) << semiring.min_secondi(i @ A)": "monotone",
    "d(binary.min) << semiring.min_plus(e @ A)": "product of the output",
    "d(binary.min) << semiring.min_plus['FP32'](d @ A)": "output of the product's type",
    "d(d.S, binary.min) << semiring.min_plus(d @ A)": "mask that stays",
    "d(e.S, binary.min, replace=True) << semiring.min_plus(d @ A)": "deletes nothing",
    "d(binary.min)[:] << semiring.min_plus(d @ A)": "",
    "d(binary.min) << semiring.min_plus(d @ A); e << d": "one statement",
    "pass": "one statement",
    "d(binary.max) << semiring.max_times(d @ A)": "factors of at least 0",
    "d(binary.min) << semiring.min_times(d @ B)": "finite factors",
}


@pytest.mark.parametrize("body", REFUSED)
def test_bodies_that_depend_on_the_order_are_refused(first, body):
    A = gb.Matrix.from_coo([0, 1], [1, 2], [-1.0, 2.0], nrows=3, ncols=3)  # noqa: F841  (as d, e and i)
    d, e = gb.Vector.from_coo([0], [1.0], size=3), gb.Vector.from_coo([1], [1.0], size=3)
    i, B = gb.Vector.from_coo([1], [1], size=3), gb.Matrix.from_coo([0], [1], [np.inf], nrows=3, ncols=3)  # noqa: F841
    if not REFUSED[body]:  # all of it is no part
        with fixpoint(schedule="rounds"):
            exec(body)
        return
    with pytest.raises(InvalidValue, match=REFUSED[body]), fixpoint():
        exec(body)
    assert d.to_coo()[1].tolist() == [1.0]
    d << e  # nothing is recorded any more
    assert d.isequal(e)


@pytest.mark.parametrize("name", ["min", "max", "land", "lor", "band", "bor"])
def test_what_is_accepted_is_monotone(first, name):
    """Of all operators and types: f(x + y, a) == f(x, a) + f(y, a), negative numbers among them."""
    values, accepted = {"b": (0, 1), "i": (-5, -1, 0, 1, 2), "u": (0, 1, 2, 3), "f": (-2.5, -1, 0, 0.5, 2)}, set()
    for op in {op for op in BinaryOp.registry.values() if isinstance(op, BinaryOp)}:
        body = semiring.register_anonymous(getattr(monoid, name), op)
        for dtype in body.types:
            typed = body[dtype]
            if dtype.name not in "BOOL INT8 UINT8 FP64" or refusal(typed, typed.monoid.binary) is not None:
                continue
            accepted.add(op.name)
            add, f = to_python(typed.monoid.program), to_python(typed.multiply.program)
            xs, factors = ([t.np_type.type(x) for x in values[t.kind]] for t in typed.multiply.dtypes)
            for x, y, a in product(xs, xs, factors):
                if op.name != "times" or a >= 0:
                    assert f(add(x, y), a) == add(f(x, a), f(y, a)), (op.name, dtype, x, y, a)
                    assert f(a, add(x, y)) == add(f(a, x), f(a, y)), (op.name, dtype, x, y, a)
    assert accepted > {"first", "second"}


def test_the_automatic_window(first):
    """Mean weights, where they are added; a part of their range, where they are compared."""
    A = gb.Matrix.from_coo([0, 1, 2], [1, 2, 3], [1.0, 2.0, 300.0], nrows=4, ncols=4)
    means = gb.settings.session().kernels.relaxing.windows[0]
    d = gb.Vector.from_coo([0], [0.0], size=4)
    for op, add, wanted in ((semiring.min_plus, binary.min, 101 * means), (semiring.max_min, binary.max, -299 / 32)):
        with fixpoint() as it:
            d(add) << op(d @ A)
        assert it.window == pytest.approx(wanted)


def test_arguments(first):
    windows = [{"window": wrong} for wrong in (-1, "wide", np.nan, 10**400, True)]
    workers = [{"worker": "team"}, {"fetch": 0}, {"fetch": 129}, {"worker": "thread", "fetch": 5}, {"fetch": 1.5}]
    texts = [{name: np.array(["auto", "warp"])} for name in ("window", "schedule", "worker")]
    for wrong in (*windows, *workers, *texts, {"schedule": "bulk"}, {"max_updates": 0}, {"max_updates": 1 << 63}):
        with pytest.raises(InvalidValue):
            fixpoint(**wrong)
    with pytest.raises(TypeError):
        fixpoint(on_window=3)
    A, d = gb.Matrix(float, 3, 3), gb.Vector(float, size=3)
    it = fixpoint()
    with it:
        d(binary.min) << semiring.min_plus(d @ A)
    with pytest.raises(InvalidValue, match="new fixpoint"), it:
        pass
    with pytest.raises(NotImplementedException), gb.loop(2), fixpoint():
        d(binary.min) << semiring.min_plus(d @ A)
    with pytest.raises(AttributeError):
        it.updates = 3
    assert repr(it) == "gb.fixpoint()"
    assert repr(fixpoint(window=2, schedule="rounds", max_updates=9, worker="thread", fetch=3)) == (
        "gb.fixpoint(window=2, schedule='rounds', max_updates=9, worker='thread', fetch=3)"
    )
    assert repr(fixpoint(window=None)) == "gb.fixpoint(window=None)"


@pytest.mark.parametrize("room", [True, False])
def test_a_fixpoint_asks_once_whether_a_replica_has_room(devices, monkeypatch, room):
    """How much memory is free varies: what was decided holds to the end."""
    replicas, answers, A = gb.settings.session().replicas, [room] + 9 * [not room], roads(500, 4)
    monkeypatch.setattr(replicas, "fit", lambda *given: answers.pop(0))
    free = has_free(A, "free")
    asked, answers[:] = 10 - len(answers), [room] + 9 * [not room]
    found, it = paths(A, 0, schedule="free" if free else "auto")
    assert np.array_equal(found, csgraph.dijkstra(A, indices=0)) and it.converged
    assert len(answers) == 10 - asked and asked <= 1
    assert it.how.startswith("free") or not free


def further(x, a):
    return x + 1


def test_laws_that_users_declare(devices):
    """A declared law is looked at on a few values; what is not declared is refused."""
    n = 50
    A = roads(n, 8)
    G = gb.io.from_scipy_sparse(A)
    d = gb.Vector("INT64", size=n)
    d[0] = 0
    for op, law in (
        (binary.register_anonymous(lambda x, a: x + 1, "hop", is_monotone=True), None),
        (binary.register_anonymous(lambda x, a: x + 1, "hop"), r"is_monotone=True\) declares"),
        (binary.register_anonymous(lambda x, a: 3 - x, "turn", is_monotone=True), "monotone, as declared"),
    ):
        body = semiring.register_anonymous(monoid.min, op)["INT64"]
        if law is None:
            with fixpoint():
                d(binary.min) << body(d @ G)
            hops = csgraph.dijkstra(A != 0, indices=0, unweighted=True)
            assert (d.to_dense() <= hops).all() and d.nvals == n
        else:
            with pytest.raises(InvalidValue, match=law), fixpoint():
                d(binary.min) << body(d @ G)
    hop = binary.register_anonymous(further, is_monotone=True)
    assert pickle.loads(pickle.dumps(hop)).is_monotone
    common = binary.register_anonymous(lambda x, y: x & y, "min")  # a name says nothing of laws
    own = monoid.register_anonymous(common, {"INT64": -1}, is_idempotent=True)
    with pytest.raises(InvalidValue, match=r"is_monotone=True\) declares"), fixpoint():
        d(common) << semiring.register_anonymous(own, binary.plus)["INT64"](d @ G)
    less = binary.register_anonymous(lambda x, y: min(x, y), "less")
    own = monoid.register_anonymous(less, {"INT64": np.iinfo(np.int64).max})
    body = semiring.register_anonymous(own, binary.plus)["INT64"]
    with pytest.raises(InvalidValue, match=r"is_idempotent=True\) declares"), fixpoint():
        d(less) << body(d @ G)


def test_monoids_that_have_a_name_of_others_have_no_windows(devices):
    """One called min that takes the greater value: what waits is beyond the limit that a least value would set."""
    n = 200
    greater = binary.register_anonymous(lambda x, y: max(x, y), "min")
    own = monoid.register_anonymous(greater, {"INT64": np.iinfo(np.int64).min}, is_idempotent=True)
    less = binary.register_anonymous(lambda x, y: min(x, y), is_monotone=True)
    narrowest = semiring.register_anonymous(own, less)["INT64"]
    A, begun = gb.io.from_scipy_sparse(roads(n, 2)).dup("INT64"), gb.Vector.from_dense(np.arange(n) % 7)
    want = begun.dup()
    with fixpoint(schedule="rounds"):
        want(binary.max) << semiring.max_min(want @ A)
    for window in ("auto", 0, 3):
        for schedule in ("auto", "rounds"):
            d = begun.dup()
            with fixpoint(window=window, schedule=schedule) as it:
                d(greater) << narrowest(d @ A)
            assert d.isequal(want) and it.window is None and it.converged


def test_what_ran_is_told_where_that_is_asked_for(devices, monkeypatch, capsys):
    monkeypatch.setattr(gb.settings, "verbose", 2)
    paths(roads(80, 3), 0)
    assert "relax until nothing improves" in capsys.readouterr().err
    x, r, A = gb.Vector("UINT8", 2), gb.Vector.from_coo([0, 1], [1, 2], "UINT8", size=2), gb.Matrix("UINT8", 2, 2)
    with fixpoint(tol=np.uint8(1)):
        x(binary.plus) << r
        r << semiring.plus_times(r @ A)
    assert "relax until nothing improves: rounds: sums" in capsys.readouterr().err
    assert (x.to_dict(), r.to_dict()) == ({1: 2}, {0: 1})  # 1 is not above 1


def test_what_ran_is_told(devices):
    A = roads(300, 9)
    with gb.trace() as records:
        _, it = paths(A, 0)
    text = gb.explain(it)
    assert "relax until nothing improves" in str(text) and it.how in str(text)
    told = [record for record in records if record.step == "relax"]
    assert len(told) == it.how.startswith("free")
    for record in told:
        assert record.rows == it.updates and record.edges >= A.nnz and record.end >= record.start
        assert (record.bytes > 0) == (devices.replicas == 0)  # what owners were told
    d, G = gb.Vector(float, size=300), gb.io.from_scipy_sparse(A)
    with gb.explain() as plans, fixpoint():
        d(binary.min) << semiring.min_plus(d @ G)
    assert "not run" in str(plans) and d.nvals == 0


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["PGPgiantcompo", "luxembourg_osm"])
def test_real_graphs(devices, name):
    """Paths, levels and widest paths of graphs of real size."""
    A = gb.io.mmread(ROOT / f"data/{name}.mtx.gz").to_scipy_sparse().tocsr()
    rng = np.random.default_rng(1)
    W = sp.csr_array((rng.integers(1, 255, A.nnz).astype(float), A.indices, A.indptr), A.shape)
    source = int(np.diff(A.indptr).argmax())
    found, it = paths(W, source)
    assert it.converged and np.array_equal(found, csgraph.dijkstra(W, indices=source))
    G = gb.io.from_scipy_sparse(W)
    verify.sssp(G, source, algos.sssp(G, source))
    search = sys.modules["algos.bfs"]  # as GPUs search
    sources = gb.Vector.from_coo([source], [source], int, size=G.nrows)
    verify.bfs(G, source, *search.nearest(G, search.hops(G, sources), sources))
    hops = csgraph.dijkstra(W, indices=source, unweighted=True)
    for levels in (algos.bfs_levels(G, source), search.hops(G, sources)):
        assert np.array_equal(levels.to_dense(-1), np.where(np.isinf(hops), -1, hops))
    wide = [gb.Vector(float, size=W.shape[0]) for _ in range(2)]
    for d, schedule in zip(wide, ("auto", "rounds"), strict=True):
        d[source] = np.inf
        with fixpoint(schedule=schedule, window=None if schedule == "rounds" else "auto"):
            d(binary.max) << semiring.max_min(d @ G)
    assert wide[0].isequal(wide[1])
    assert wide[0].nvals == np.isfinite(found).sum()


def test_what_improves_no_copy_is_not_sent(devices, monkeypatch):
    """All vertices of a path have an arc to the last one, each of no use after the first: a device tells the owner of
    the first alone (Groute's halo filter). Of arcs that improve it, it tells the best one."""
    sent = []

    def told(session, bins, *rest, of=engine.exchanged):
        sent.extend(int(session.devices[part.device].get(part.counts).sum()) for part in local_results(bins))
        return of(session, bins, *rest)

    monkeypatch.setattr(engine, "exchanged", told)
    n, v = 400, np.arange(399)
    heads, tails = np.concatenate([v[:-1], v]), np.concatenate([v[1:], np.full(n - 1, n - 1)])
    for arcs in (np.full(n - 1, 5.0), 2.0 * (n - v)):
        A = sp.csr_array((np.concatenate([np.ones(n - 2), arcs]), (heads, tails)), (n, n))
        sent.clear()
        how = {"window": None, "schedule": "free"}
        assert np.array_equal(paths(A, 0, **how)[0], csgraph.dijkstra(A, indices=0))
        owner = gb.settings.session().maps.of(n).owner(np.arange(n))
        crossed = int((owner[v[:-1]] != owner[v[1:]]).sum())
        visits = crossed + 1 - int((owner[:-1] == owner[-1]).any())
        if devices.replicas != 0:
            assert not sent  # one device has it all
        elif arcs[0] == 5:
            assert sum(sent) == crossed + len({*owner} - {owner[-1]})
        else:
            assert crossed < sum(sent) <= crossed + visits
