"""Products as one stream of entries against the ordinary kernels. Collected where there is a GPU."""

from __future__ import annotations

import os
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse
from kernel_pairs import words_of
from test_streams import KERNELS, cut

import algos
import gbgpu as gb
from gbgpu import semiring
from gbgpu.device import cuda
from gbgpu.device.cpu import CpuDevices
from gbgpu.engine import direction
from gbgpu.engine.loop import device as loops_of_devices
from gbgpu.kernels import gpu_streams as streams
from gbgpu.kernels.gpu_tuning import TUNING
from gbgpu.trace import counters

__test__ = bool(cuda.available())

PRODUCTS = [  # semiring, type of A, type of x
    ("plus_times", "FP32", "FP32"),
    ("plus_times", "INT64", "INT64"),
    ("plus_second", "BOOL", "FP64"),
    ("min_plus", "FP32", "FP32"),
    ("min_second", "BOOL", "UINT32"),
    ("max_first", "INT16", "INT16"),
    ("plus_pair", "BOOL", "BOOL"),
    ("lxor_land", "BOOL", "BOOL"),
]
SHAPES = {  # rows, columns, entries: where they lie
    "random": (3000, 2000, lambda rng: (rng.integers(0, 3000, 40_000), rng.integers(0, 2000, 40_000))),
    "empty rows": (9000, 500, lambda rng: (rng.integers(0, 60, 9000) * 150, rng.integers(0, 500, 9000))),
    "hub row": (130, 9000, lambda rng: (np.where(rng.random(30_000) < 0.9, 64, 7), rng.integers(0, 9000, 30_000))),
    "hub columns": (5000, 5000, lambda rng: (rng.integers(0, 5000, 30_000), rng.integers(0, 30, 30_000) ** 2)),
    "one row": (1, 70_000, lambda rng: (np.zeros(50_000, int), rng.permutation(70_000)[:50_000])),
    "short rows": (9000, 9000, lambda rng: (rng.integers(0, 9000, 20_000), rng.integers(0, 9000, 20_000))),
    "tiles": (64, 1024, lambda rng: (np.arange(64).repeat(1024), np.tile(np.arange(1024), 64))),
    "one entry": (5, 5, lambda rng: (np.array([3]), np.array([2]))),
}


@pytest.fixture(params=["cuda:0", "cuda:0*3"])
def session(request, monkeypatch):
    monkeypatch.setattr(TUNING, "least", 1)
    monkeypatch.setattr(TUNING, "wide", 0)
    monkeypatch.setattr(TUNING, "pulls", 0)
    monkeypatch.setattr(TUNING, "launches", 0)
    monkeypatch.setattr(TUNING, "hub_share", 0.0)
    monkeypatch.setattr(TUNING, "short", 0)
    monkeypatch.setattr(TUNING, "cut_entries", 0.01)
    return gb.init(request.param, gb.partition.shares(1, 5, 3) if request.param.endswith("3") else None)


@pytest.mark.parametrize("hub_bytes, l2", [(0, 0), (200, 0), (90_000, 0), (0, 4000), (200, 9000)])
@pytest.mark.parametrize("shape", SHAPES)
def test_streams_give_what_rows_give(session, shape, hub_bytes, l2, monkeypatch):
    """With and without a table of hubs; as one stream, and in slices for a cache of `l2` bytes."""
    monkeypatch.setattr(gb.settings, "hub_bytes", hub_bytes)
    for device in session.devices:
        monkeypatch.setattr(device, "l2", l2 or device.l2)
    n, m, where = SHAPES[shape]
    rng = np.random.default_rng(7)
    rows, cols = where(rng)
    for name, a, x in PRODUCTS:
        what = rng.integers(0, 50, len(rows)).astype(gb.dtypes.lookup_dtype(a).np_type)
        A = gb.Matrix.from_coo(rows, cols, what, nrows=n, ncols=m, dup_op="first")
        held = rng.integers(0, 50, m).astype(gb.dtypes.lookup_dtype(x).np_type)
        if x in ("FP32", "FP64"):
            held[::97] = np.nan
        some = rng.random(m) < 0.4
        ids = np.flatnonzero(some)
        for v in (
            gb.Vector.from_dense(held),
            gb.Vector.from_coo(ids, held[ids], size=m),
            gb.Vector.from_coo(ids, held[0], size=m),
            gb.Vector.from_scalar(held[0], m),
        ):
            product = getattr(semiring, name)[a, x](A @ v)
            session.plans.clear()
            with gb.trace() as records:
                streamed = product.new(direction="pull")
            if not streamed._store.iso and name != "plus_pair":  # one value may stop early; lengths need no entries
                assert sum(record.edges for record in records if record.step == "pull") == A.nvals
            with monkeypatch.context() as plain:
                plain.setattr(streams, "streams_of", lambda *block: ())
                session.plans.clear()
                expected = product.new(direction="pull").to_coo()
            found = streamed.to_coo()
            assert np.array_equal(found[0], expected[0]), (name, shape, hub_bytes, l2)
            assert np.allclose(found[1], expected[1], rtol=1e-5, equal_nan=True), (name, shape, hub_bytes, l2)
            assert streamed.nvals == len(found[0])


@pytest.mark.parametrize("spec", ["cuda:0*3", "cuda:0-1", "cuda:0-3"])
@pytest.mark.parametrize("shape", ["random", "hub columns", "empty rows"])
@pytest.mark.parametrize("first", ["statements", "loops"])
def test_pulls_by_use_bring_what_they_read(spec, shape, first, monkeypatch):
    """By statements and in a loop that is captured, whichever comes first, of full vectors and of others."""
    if spec != "cuda:0*3" and spec not in os.environ.get("GBGPU_TEST_DEVICES", "").split():
        pytest.skip("needs several GPUs")
    for name in ("least", "wide", "hub_share", "short"):
        monkeypatch.setattr(TUNING, name, 0)
    if first == "statements":  # else streams are made as a loop is captured, long before statements would make them
        monkeypatch.setattr(TUNING, "launches", 0)
    n, m, where = SHAPES[shape]
    size, p = max(n, m), len(gb.init(spec).devices)
    kernels = gb.init(spec, gb.partition.shares(*range(1, p + 1))).kernels
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(link=1e-6))
    monkeypatch.setattr(loops_of_devices, "MET", -1)  # loops are never left to one GPU,
    rng = np.random.default_rng(7)
    rows, cols = where(rng)
    what = rng.integers(0, 50, len(rows)).astype(np.float32)
    A = gb.Matrix.from_coo(rows, cols, what, nrows=size, ncols=size, dup_op="plus")
    matrix = scipy.sparse.coo_array((what, (rows, cols)), (size, size)).tocsr()
    held, some = rng.random(size).astype(np.float32), np.flatnonzero(rng.random(size) < 0.4)
    part = np.zeros(size, np.float32)
    part[some] = held[some]
    gathered = []

    def statements():
        for _ in range(9):
            for x, dense in (
                (gb.Vector.from_dense(held), held),
                (gb.Vector.from_coo(some, held[some], size=size), part),
            ):
                with gb.trace() as records:
                    y = semiring.plus_times(A @ x).new(direction="pull")
                np.testing.assert_allclose(y.to_dense(0), matrix @ dense, rtol=1e-4)
                gathered.append(sum(record.bytes for record in records if record.step == "gather"))

    def loops():
        expected = held
        for _ in range(20):
            expected = (matrix @ expected) * np.float32(1e-3)
        for _ in range(9):
            y = gb.Vector.from_dense(held)
            with gb.loop(20) as it:
                y << semiring.plus_times(A @ y)
                y << y.apply(gb.binary.times, right=1e-3)
            np.testing.assert_allclose(y.to_dense(0), expected, rtol=1e-3, atol=1e-30)
        return it.how

    if first == "statements":
        statements()
    how = loops()
    if first == "loops":
        statements()
    assert A._store.near and max(gathered[-2:]) < (p - 1) * size * 4
    assert not how.startswith("statements"), how


@pytest.mark.parametrize("spec", ["cuda:0-1", "cuda:0-3"])
def test_owners_wait_for_readers(spec):
    """What is read is not written, or given to others, until it is read."""
    if spec not in os.environ.get("GBGPU_TEST_DEVICES", "").split():
        pytest.skip("needs several GPUs")
    gb.init(spec)
    n = 5_000_000
    at = np.arange(n)
    A = gb.Matrix.from_coo(at, at[::-1].copy(), np.float32(1), nrows=n, ncols=n)
    for k in range(20):
        x = gb.Vector.from_scalar(np.float32(k + 1), n)
        x[0] = np.float32(k)
        y = semiring.plus_times(A @ x).new(direction="pull")
        x << x.apply(gb.binary.times, right=0)
        z = gb.Vector.from_scalar(np.float32(-1), n)
        z[1] = np.float32(0)
        assert y.get(n - 1) == k and y.reduce("min").new().value == k and y.reduce("max").new().value == k + 1


ROWS = [  # semiring, type of A, type of x
    ("plus_times", "FP32", "FP32"),
    ("plus_second", "BOOL", "FP64"),
    ("min_first", "UINT32", "UINT32"),
    ("any_pair", "BOOL", "BOOL"),
    ("any_second", "INT64", "INT64"),
    ("any_secondi", "INT32", "INT32"),
    ("lor_land", "BOOL", "BOOL"),
    ("times_plus", "INT8", "INT8"),
]


@pytest.mark.parametrize("spec", ["cuda:0", "cuda:0*3"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (700, 300, 900), (65, 9000, 130), (5000, 5000, 20_000), (6000, 10, 300)])
def test_short_rows_give_what_lanes_give(spec, shape, monkeypatch):
    """Two rows a thread, against groups of lanes: with masks, with x full, in part and of one value."""
    session = gb.init(spec)
    n, m, count = shape
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, n, count), rng.integers(0, m, count)
    mask = gb.Vector.from_coo(rng.permutation(n)[: n // 2], True, size=n)
    for name, a, x in ROWS:
        what = rng.integers(0, 50, count).astype(gb.dtypes.lookup_dtype(a).np_type)
        A = gb.Matrix.from_coo(rows, cols, what, nrows=n, ncols=m, dup_op="first")
        held = rng.integers(0, 50, m).astype(gb.dtypes.lookup_dtype(x).np_type)
        ids = np.flatnonzero(rng.random(m) < 0.4)
        some = gb.Vector.from_coo(ids, held[ids], size=m)
        for v in (gb.Vector.from_dense(held), some, gb.Vector.from_scalar(held[0], m)):
            product = getattr(semiring, name)[a, x](A @ v)
            for options in ({}, {"mask": mask.S}, {"mask": ~mask.S}):
                found = []
                for most in (1 << 40, 0):
                    monkeypatch.setattr(TUNING, "lone", most)
                    session.plans.clear()
                    found.append(product.new(direction="pull", **options))
                assert found[0].nvals == len(found[0].to_coo()[0])
                if name.startswith("any_second"):  # any entry is right
                    assert np.array_equal(found[0].to_coo()[0], found[1].to_coo()[0])
                if name == "any_secondi":
                    entries = set(zip(*A.to_coo()[:2], strict=True))
                    assert all(entry in entries for entry in zip(*found[0].to_coo(), strict=True))
                elif name != "any_second":
                    assert found[0].isclose(found[1], rel_tol=1e-5), (name, options)


@pytest.mark.parametrize(
    "name, dtype", [("any_pair", "BOOL"), ("min_plus", "FP32"), ("plus_times", "INT64"), ("any_firsti", "INT64")]
)
def test_pushes_into_bitmaps_give_the_lists(name, dtype, monkeypatch):
    session = gb.init("cuda:0")
    monkeypatch.setattr(session.kernels, "costs", session.kernels.costs._replace(pull_edge=1.0))  # always push
    rng = np.random.default_rng(5)
    n = 5000
    rows, cols = rng.integers(0, n, (2, 60_000))
    rows[:9000] = 17  # a hub
    A = gb.Matrix.from_coo(rows, cols, rng.integers(0, 9, 60_000), nrows=n, ncols=n, dup_op="first", dtype=dtype)
    mask = gb.Vector.from_coo(np.arange(0, n, 3), True, size=n)
    for ids in ([17], rng.permutation(n)[:900], np.arange(n), []):
        q = gb.Vector.from_coo(ids, rng.integers(0, 9, len(ids)), size=n, dtype=dtype)
        product = getattr(semiring, name)[dtype](q @ A)
        for options in ({}, {"mask": ~mask.S}):
            found = []
            for dense in (1 << 40, 0):
                monkeypatch.setattr(direction, "DENSE", dense)
                session.plans.clear()
                found.append(product.new(**options))
            assert [v._store.form for v in found] == ["bitmap", "list"] or not len(ids)
            assert found[0].nvals == found[1].nvals == len(found[0].to_coo()[0])
            if name != "any_firsti":
                assert found[0].isequal(found[1]), (name, len(ids), options)


@pytest.mark.parametrize("n", [1, 31, 1024, 1025, 70_001])
def test_cut_takes_a_slice_of_the_columns(n):
    device = gb.init("cuda:0").devices[0]
    rng = np.random.default_rng(n)
    codes = rng.integers(0, 1000, n, dtype=np.int32)
    starts = rng.random(n) < 0.2
    starts[0] = True
    begins = np.packbits(starts, bitorder="little")
    ranks = np.array([starts[: t * 1024].sum() for t in range(-(-n // 1024) + 1)], np.int32)
    given = [device.put(array) for array in (codes, begins, ranks)]
    for dtype in (np.int8, np.float16, np.float32, np.int64):
        source = rng.integers(0, 100, n).astype(dtype)
        for low, high in ((0, 1000), (0, 300), (300, 1000), (5, 5)):
            taken, firsts = device.cut(given[0], low, high, device.put(source), *given[1:], int(starts.sum()))
            right = cut(codes, low, high, source, begins, ranks, starts.sum())
            assert np.array_equal(taken.get(), right[0]) and np.array_equal(firsts.get(), right[1])


@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 31, 64, 1025, 70_001])
def test_rows_are_found_where_they_begin(n, empty):
    """Each kernel against its text in NumPy, for offsets of both sizes; lists of rows, and all of them."""
    device = gb.init("cuda:0").devices[0]
    rng = np.random.default_rng(n)
    lengths = np.where(rng.random(n) < empty, 0, rng.integers(1, 6, n))
    names = np.sort(rng.permutation(3 * n)[:n]).astype(np.int32)
    before = rng.integers(-(2**62), 2**62, (3 * n + 63) // 64)
    for dtype, least in ((np.int32, 1), (np.int64, 1), (np.int32, 4)):
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
        words, tiles = (n + 63) // 64, -(-int(indptr[-1]) // 1024)
        bits, counts = np.zeros(words, int), np.zeros(2 * words, int)
        first = np.zeros(-(-int(indptr[-1]) // 32) * 4, np.uint8)
        same(device, f"begun{dtype().itemsize}", 64 * words, (indptr, n, least, bits, counts, first))
        upto = np.append(0, np.cumsum(counts))
        out = np.zeros(upto[-1], np.int32)
        same(device, "listed", n, (bits, upto, names, out, n))
        same(device, "listed", n, (bits, upto, 0, out, n))
        found = np.zeros(tiles + 1, np.int32)
        same(device, f"ranks{dtype().itemsize}", tiles + 1, (indptr, bits, upto, found, n, tiles))
    padded = -(-n // 32) * 32
    for rows in (names, 0):
        same(device, "joined", padded, (rows, before.copy(), np.zeros(1, int), n))
    counts = rng.integers(0, 5, n)
    keys = np.zeros(n, int)
    same(device, "falling", n, (counts, keys, n))
    keys.sort()
    order = [np.zeros(n, np.int32) for _ in range(2)]
    same(device, "ranked", n, (keys, counts, *order, np.zeros(2, int), n // 3, n))


def same(device, name, n, args):
    """A kernel leaves what its text in NumPy leaves there, in arrays that are then as that leaves them."""
    given = [device.put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    device.run(name, n, tuple(given))
    KERNELS[name.rstrip("48")](*args)
    for ours, theirs in zip(given, args, strict=True):
        if isinstance(theirs, np.ndarray):
            np.testing.assert_array_equal(ours.get()[: len(theirs)], theirs, err_msg=name)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 2047, 2048, 2049, 600_001])
def test_sums_and_what_is_kept(n):
    """What devices of both kinds do with arrays, against NumPy."""
    device, host = gb.init("cuda:0").devices[0], CpuDevices(1).devices[0]
    rng = np.random.default_rng(n)
    for dtype in (np.int32, np.int64):
        lengths = rng.integers(0, 50, n).astype(dtype)
        expected = np.append(0, np.cumsum(lengths, dtype=np.int64))
        for one in (device, host):
            assert np.array_equal(one.get(one.offsets(one.put(lengths))), expected)
    words = rng.integers(-(2**63), 2**63 - 1, (n + 63) // 64)
    if n % 64:
        words[-1] &= (1 << n % 64) - 1
    for one in (device, host):
        rows = one.get(one.rows_of(one.put(words), n))
        assert np.array_equal(rows, np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")[:n]))
        sources = [rng.integers(0, 100, n + 3).astype(dtype) for dtype in (np.int8, np.float16, np.float32, np.int64)]
        ends = np.sort(rng.integers(0, n + 1, 50))
        for share in (0, 0.3, 1):
            keep = rng.random(n) < share
            for ptr in (np.int32, np.int64):
                indptr = np.concatenate([[0], ends, [n]]).astype(ptr)
                for flags in (keep, words_of(keep)):
                    rest = one.put(indptr), [one.put(source) for source in sources]
                    offsets, total, found = one.kept(one.put(flags), n, *rest)
                    assert np.array_equal(one.get(offsets), np.append(0, np.cumsum(keep))[indptr])
                    assert total == keep.sum() and one.get(offsets).dtype == np.int64
                    for part, source in zip(found, sources, strict=True):
                        assert np.array_equal(one.get(part)[:total], source[:n][keep])
        for ptr, idx in ((np.int32, np.int32), (np.int64, np.int32), (np.int64, np.int64)):
            line, cols = np.arange(n + 1).astype(ptr), np.arange(5, n + 5).astype(idx)
            assert one.is_line(one.put(line), one.put(cols), 5)
            assert not n or not one.is_line(one.put(line), one.put(cols), 6)
            if n > 2:
                line[2] -= 1
                assert not one.is_line(one.put(line), one.put(cols), 5)


@pytest.mark.parametrize("step", [False, True])
@pytest.mark.parametrize("spec", ["cuda:0", "cuda:0-1", "cuda:0-3"])
def test_copies_at_once(spec, step):
    """More than one launch takes, of any length and alignment, some up to a count; the rest of each stays. What another
    GPU has is copied along within a step, and else by itself."""
    if spec != "cuda:0" and spec not in os.environ.get("GBGPU_TEST_DEVICES", "").split():
        pytest.skip("needs two GPUs")
    device, *others = gb.init(spec).devices
    rng, todo = np.random.default_rng(1), []
    for _ in range(60):
        size, first, last = int(rng.integers(1, 9000)), int(rng.integers(0, 3)), int(rng.integers(0, 3))
        kind, dtype = rng.choice(["copy", "clear", "counted"]), rng.choice([np.int8, np.int32, np.int64])
        target, source = (rng.integers(1, 100, size + first + last).astype(dtype) for _ in range(2))
        there = others[rng.integers(len(others))] if others and rng.random() < 0.3 else device
        with there.here():
            given = there.put(source)
        part, count = slice(first, first + size), int(rng.integers(0, 2 * size))
        todo.append((kind, device.put(target), given, device.put(np.array([count])), part))
        target[part] = {"copy": source[part], "clear": 0, "counted": target[part]}[kind]
        if kind == "counted":
            target[part][:count] = source[part][:count]
        todo[-1] = *todo[-1], target
    launches = counters.launches
    with device.peers.step() if step and others else nullcontext(), device.here(), device.at_once():
        for kind, to, given, count, part, _ in todo:
            if kind == "copy":
                device.copy(to[part], given[part])
            elif kind == "clear":
                device.clear(to[part])
            else:
                device.copy_counted(to[part], given[part], count)
    assert others and not step or counters.launches - launches == 3
    for _, to, *_, target in todo:
        np.testing.assert_array_equal(device.get(to), target)


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_that_are_used_most_come_first(session, shape, monkeypatch):
    monkeypatch.setattr(TUNING, "sampled", 1)
    monkeypatch.setattr(TUNING, "skewed", 0.0)
    n, m, where = SHAPES[shape]
    rows, cols = where(np.random.default_rng(11))
    A = gb.Matrix.from_coo(rows, cols, True, nrows=n, ncols=m, dup_op="first")
    store, devices = A._store, session.devices
    for device, block in zip(devices, store.blocks, strict=False):
        found = device.get(streams.used_first(device, block, store.colmap.nslots))
        indptr, given = device.get(block.indptr), device.get(block.cols)
        counts = np.bincount(given, minlength=store.colmap.nslots)
        for begin, end in zip(indptr, indptr[1:], strict=False):
            mine, row = found[begin:end], given[begin:end]
            order = np.lexsort((np.arange(len(row)), -counts[row]))[:4]
            assert np.array_equal(mine[:4], row[order]) and np.array_equal(np.sort(mine), np.sort(row))


@pytest.mark.parametrize("filled", [0, TUNING.filled])
def test_captured_rounds_look_at_the_most_used_columns_first(session, monkeypatch, filled):
    """A search of few rounds by statements prepares nothing; one that is captured does at once. A thread takes a row by
    itself, or lanes share it."""
    monkeypatch.setattr(gb.settings, "resident", "now")
    monkeypatch.setattr(TUNING, "filled", filled)
    A = gb.io.rmat(12, 16, seed=1, dtype="BOOL")
    levels = algos.bfs_levels(A, 5)
    assert not any("likely" in block.views for block in A._store.blocks)
    for _ in range(40):
        assert algos.bfs_levels(A, 5).isequal(levels)
    if gb.settings.session().loops:
        pulls = [way for kept in gb.settings.session().loops._captured.values() for one in kept for way in one.way[1]]
        assert "pull" not in pulls or all("likely" in block.views for block in A._store.blocks if block.nnz)
    even = gb.io.uniform(1 << 12, 16, seed=1, dtype="BOOL")._store
    pairs = zip(session.devices, even.blocks, strict=False)
    assert all(streams.used_first(device, block, even.colmap.nslots) is block.cols for device, block in pairs)
