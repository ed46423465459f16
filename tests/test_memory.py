"""`estimate_memory` against what building a matrix really takes: tracemalloc sees NumPy's arrays, a hook of CuPy's pool
those on a GPU."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import algos
import gbgpu as gb
from algos import verify
from algos.sssp import tight
from gbgpu import host
from gbgpu.device import cpu, cuda
from gbgpu.distribute import partition
from gbgpu.distribute.blocks import MatrixStore
from gbgpu.distribute.partition import NAMED
from gbgpu.engine import direction, gate, reading
from gbgpu.engine.loop.buffers import most_rows
from gbgpu.errors import InvalidValue
from gbgpu.semiring import plus_times

KINDS = {"FP32": np.float32, "FP64": np.float64, "BOOL": None}


class Host:
    """Bytes of NumPy arrays."""

    xp = np

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        self.before = tracemalloc.get_traced_memory()[0]
        return self

    def read(self) -> tuple[int, int]:
        now, peak = tracemalloc.get_traced_memory()
        return now - self.before, peak - self.before

    def __exit__(self, *error):
        tracemalloc.stop()


class Gpu:
    """Bytes of CuPy arrays on the first GPU, where most is."""

    def __enter__(self):
        from cupy.cuda import memory_hook, runtime

        class Hook(memory_hook.MemoryHook):
            name = "peak"
            now = peak = 0

            def __init__(self):
                self.there = set()  # addresses; `device_id` is 0 for the memory of all GPUs (CuPy 14)

            def malloc_postprocess(self, **call):
                if runtime.getDevice() == 0:
                    self.there.add(call["mem_ptr"])
                    self.now += call["mem_size"]
                    self.peak = max(self.peak, self.now)

            def free_postprocess(self, **call):
                if call["mem_ptr"] in self.there:
                    self.there.remove(call["mem_ptr"])
                    self.now -= call["mem_size"]

        gc.collect()
        self.hook, self.before = Hook(), self.used()
        self.hook.__enter__()
        return self

    def used(self) -> int:
        import cupy

        with cupy.cuda.Device(0):
            return cupy.get_default_memory_pool().used_bytes()

    def read(self) -> tuple[int, int]:
        return self.used() - self.before, self.hook.peak

    def __exit__(self, *error):
        self.hook.__exit__(*error)


def build(watch, n: int, count: int, dtype: str):
    """(held and peak, the estimate) of a matrix of distinct entries in random order."""
    if isinstance(watch, Host):
        xp = np
    else:
        import cupy as xp
    xp.random.seed(1)
    keys = xp.unique(xp.random.randint(0, n * n, count).astype(np.int64))
    xp.random.shuffle(keys)
    rows, cols = keys // n, keys % n
    values = True if KINDS[dtype] is None else xp.ones(len(keys), KINDS[dtype])
    gb.Matrix.from_coo(rows, cols, values, nrows=n, ncols=n)  # what a session makes once for a size
    with watch:
        A = gb.Matrix.from_coo(rows, cols, values, nrows=n, ncols=n)
        found = watch.read()
    return found, gb.estimate_memory(n, n, A.nvals, dtype, iso=dtype == "BOOL")


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n", [20_000, 300_000, 1_200_000])
def test_estimates_are_near(devices, n, dtype):
    if devices.partition and not devices.spec.startswith("cpu"):
        gb.init(devices.spec)  # what is predicted is of equal blocks
    watch, count = (Host(), 200_000) if devices.spec.startswith("cpu") else (Gpu(), 10_000_000)
    n = n // 3 if isinstance(watch, Host) else n * 10
    (held, peak), estimate = build(watch, n, count, dtype)
    assert 0.85 < estimate.held / held < 1.15 and 0.85 < estimate.peak / peak < 1.15, (held, peak, estimate)


@pytest.mark.parametrize(("n", "dtype"), [(6_666, "FP64"), (400_000, "BOOL")])
def test_estimates_are_near_where_rows_have_an_order_of_their_own(n, dtype, monkeypatch):
    """Blocks are copies then, which takes more memory than sorting the entries."""
    monkeypatch.setattr(gb.settings, "inline", "auto")
    gb.init("cpu:2", gb.partition.degree_sorted())
    (held, peak), estimate = build(Host(), n, 200_000, dtype)
    assert 0.85 < estimate.held / held < 1.15 and 0.85 < estimate.peak / peak < 1.15, (held, peak, estimate)


def test_estimates_are_of_the_order_that_rows_have():
    size = 100_000, 100_000, 200_000
    peaks = []
    for chosen in (gb.partition.equal_rows(), gb.partition.degree_separated(1000)):
        gb.init("cpu:2", chosen)
        peaks.append(gb.estimate_memory(*size).peak)
    gb.Matrix.from_coo([5], [7], 1.0, nrows=100_000, ncols=100_000)  # no row is a delegate: they keep their order
    assert gb.estimate_memory(*size).peak == peaks[0] < peaks[1]


@pytest.mark.parametrize("dtype", ["FP32", "INT32"])
def test_trees_of_shortest_paths_make_no_second_matrix(dtype):
    """Arcs between parents and children come from a product over the graph itself."""
    gb.init("cpu:2")
    rng = np.random.default_rng(1)
    n, m = 2_000, 400_000
    weights = np.append(rng.integers(1, 256, m - n), np.zeros(n)).astype(gb.dtypes.lookup_dtype(dtype).np_type)
    A = gb.Matrix.from_coo(*rng.integers(0, n, (2, m)), weights, nrows=n, ncols=n, dup_op="min")
    for _ in range(3):
        found = algos.shortest_path_tree(A, 5)  # compiles, and makes what is kept with the matrix
    with Host() as watch:
        algos.shortest_path_tree(A, 5)
        _, peak = watch.read()
    assert peak < gb.estimate_memory(n, n, A.nvals, dtype).held / 4, peak
    verify.shortest_path_tree(A, 5, *found)
    with Host() as watch:
        tight(A, found.distances)
        assert watch.read()[1] > gb.estimate_memory(n, n, A.nvals, dtype).held / 2  # what would be seen


if cuda.available():  # host arrays are sorted at once

    @pytest.mark.parametrize("dtype", KINDS)
    def test_building_in_chunks_takes_less(dtype, monkeypatch):
        gb.init("cuda:0")
        (_, whole), _ = build(Gpu(), 100_000, 10_000_000, dtype)
        monkeypatch.setattr(gate, "CHUNK", 1_000_000)
        (_, peak), estimate = build(Gpu(), 100_000, 10_000_000, dtype)
        assert peak < 0.9 * whole and 0.85 < estimate.peak / peak < 1.6, (peak, whole, estimate)


def test_sizes_are_checked():
    with pytest.raises(gb.exceptions.InvalidValue, match="sizes from 0 on"):
        gb.estimate_memory(3, -1, 5)
    assert gb.estimate_memory(0, 0, 0) == (0, 0)


TOO_LARGE = [
    "A[5, 7] = 1",
    "A.T.new()",
    "(C @ C).new()",
    "(C + C.T).new()",
    "C.reduce_columnwise().new()",
    "C << 1",
    "C.to_coo()",
    "C.to_dense(0)",
    "C.ss.export('bitmapr')",
    "pickle.dumps(C)",
    "repr(C)",
    "gb.sparse.eye_array(N)",
    "C.diag()",
    "C.resize(2 * N, N)",
    "x.diag()",
    "x.outer(x).new()",
    "C.kronecker(C).new()",
    "full.to_coo()",
    "full.to_dense()",
    "pickle.dumps(full)",
    "(full + x).new()",
    "x[3:].new()",
    "x[3:] << 5",
    "gb.Matrix.from_coo([1], [2], [3], nrows=N, ncols=N)",
    "gb.Matrix.from_coo([N], [2], [3])",
    "gb.Matrix.from_scalar(1, 100, 100)",
    "gb.Matrix.from_coo(np.arange(60), np.arange(60), 1).kronecker(gb.Matrix.from_scalar(1, 10, 10)).new()",
]


@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3"])
@pytest.mark.parametrize("text", TOO_LARGE)
def test_what_does_not_fit_is_refused_before_it_is_touched(monkeypatch, text, spec):
    """The kernel grants more memory than there is, and kills who uses it."""
    N = 5000
    gb.init(spec)
    made = {
        "A": gb.Matrix(int, N, N),
        "C": gb.Matrix.from_coo([1, 2], [3, 4], [5, 6], nrows=N, ncols=N),
        "x": gb.Vector.from_coo([1, 9], [2, 3], size=N),
        "full": gb.Vector.from_scalar(1.5, N),
    }
    with monkeypatch.context() as patched:
        patched.setattr(cpu, "LARGE", 1000)
        patched.setattr(reading, "LARGE", 1000)
        patched.setattr(cpu, "host_memory", lambda: (4000, 100_000))
        with pytest.raises(gb.exceptions.OutOfMemory, match=r"expected \d+ bytes .*came 4000 of 100000 bytes free"):
            exec(text, {"gb": gb, "np": np, "pickle": pickle, "N": N} | made)
    assert [x.nvals for x in made.values()] == [0, 2, 2, N] and made["C"].shape == (N, N)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_orders_of_rows_that_do_not_fit_are_refused(monkeypatch, name):
    gb.init("cpu:2", NAMED[name]())
    monkeypatch.setattr(partition, "LARGE", 1000)
    monkeypatch.setattr(cpu, "host_memory", lambda: (100_000, 10**6))
    n, room = 5000, r"came 100000 of 1000000 bytes free"
    made = [lambda: gb.Vector.from_scalar(1, n), lambda: gb.Matrix.from_coo([0, 1], [1, 0], 1, nrows=n, ncols=n)]
    refused = []
    for make in made:
        try:
            make()
        except gb.exceptions.OutOfMemory as error:
            assert re.search(room, str(error))
            refused.append(make)
    learns = name in ("metis", "degree_separated")  # from the first square matrix
    assert refused == ([] if name in ("rows", "edges") else made[1:] if learns else made)


def test_huge_vectors_of_few_entries_take_no_room():
    gb.init("cpu:3")
    x = gb.Vector(int, 2**50)
    x[2**49] = 3
    x += 4
    assert x.to_dict() == {2**49: 7} and x.reduce().new().value == 7 and "2" in repr(x)
    everywhere = gb.Vector.from_scalar(2, 2**50)
    assert everywhere.nvals == 2**50 and everywhere[2**40].value == 2
    with pytest.raises(gb.exceptions.OutOfMemory, match="of shape"):
        everywhere.to_coo()


def test_the_host_says_what_is_free():
    free, total = host.memory()
    assert 0 < free <= total


def test_a_container_has_less_than_the_host(monkeypatch, tmp_path):
    free, total = host.memory()
    monkeypatch.setattr(host, "GROUP", tmp_path)
    stat = "anon 5\nactive_file 5000\ninactive_file 15000\nfile 1\n"
    for name, text in (("memory.current", "900000\n"), ("memory.stat", stat)):
        (tmp_path / name).write_text(text)
    for limit, expected in (("1000000", (120_000, 1_000_000)), ("10", (0, 10)), ("max", None)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        free, all = host.memory()
        assert (free, all) == expected if expected else all >= total > 1_000_000 and free > 120_000
    (tmp_path / "memory.max").write_text("1000000\n")
    gb.init("cpu:1")
    assert gb.device_info()[0]["total"] == 1_000_000
    with pytest.raises(gb.exceptions.OutOfMemory, match="120000 bytes free"):
        gb.io.uniform(50_000, 16, seed=1)


def test_bytes_that_a_handle_holds(devices):
    """Blocks, and the transpose that a product leaves."""
    n, rng = 5000, np.random.default_rng(4)
    rows, cols = rng.integers(0, n, (2, 40_000))
    A = gb.Matrix.from_coo(rows, cols, np.ones(40_000, np.float32), nrows=n, ncols=n, dup_op="plus")
    names = [device.name for device in gb.settings.session().devices]
    before, nvals = A.memory(), A.nvals
    assert list(before) == names
    assert 8 * nvals <= sum(before.values()) <= 8 * nvals + 8 * (n + len(names)) + 64 * len(names)
    gb.Vector.from_dense(np.ones(n, np.float32)).vxm(A).new(direction="pull")
    assert sum(A.memory().values()) >= 2 * 8 * nvals
    v = gb.Vector.from_dense(np.ones(n))
    assert sum(v.memory().values()) >= 8 * n
    assert sum(gb.Vector(int, n).memory().values()) < 8 * n


@pytest.mark.parametrize("full", [True, False])
def test_products_go_the_other_way_where_a_transpose_has_no_room(devices, full, monkeypatch):
    """For long, and unless a direction is asked for; with room again they make it."""
    n, rng = 500, np.random.default_rng(5)
    rows, cols = rng.integers(0, n, (2, 9000))
    A = gb.Matrix.from_coo(rows, cols, np.ones(9000, np.float32), nrows=n, ncols=n, dup_op="plus")
    x = gb.Vector.from_coo(np.arange(0, n, 2), np.ones(n // 2, np.float32), size=n)
    if full:
        x = gb.Vector.from_dense(np.ones(n, np.float32))
    session, tried = gb.settings.session(), []
    price = session.kernels.costs.turn * A.nvals / len(session.devices)
    monkeypatch.setattr(direction, "push_seconds", lambda *_: 1.5 + 2 * price)  # each pays for a transpose
    monkeypatch.setattr(direction, "pull_seconds", lambda *_: 1.0)
    expected = A.to_scipy_sparse().T @ x.to_dense(0)
    with monkeypatch.context() as patched:

        def short(*_):
            tried.append(1)
            raise MemoryError

        for kind in {type(device) for device in session.devices}:
            patched.setattr(kind, "transpose", short)
        for _ in range(9):
            v = gb.Vector("FP32", n)
            done = v << plus_times(A.T @ x)
            np.testing.assert_array_equal(v.to_dense(0), expected)
            assert not any(step.kind == "transpose" for step in done.steps)
        assert A._store.transposed is None and 1 <= len(tried) <= len(session.devices)
        with pytest.raises(gb.exceptions.OutOfMemory):
            plus_times(A.T @ x).new(direction="pull")
    for _ in range(direction.AGAIN):
        v = plus_times(A.T @ x).new()
    np.testing.assert_array_equal(v.to_dense(0), expected)
    assert A._store.transposed is not None


def test_ranks_agree_that_a_transpose_has_no_room():
    def oriented(*_):
        raise MemoryError

    costs = SimpleNamespace(turn=0.0)
    session = SimpleNamespace(oriented=oriented, ranks=None, kernels=SimpleNamespace(costs=costs))
    store = MatrixStore.__new__(MatrixStore)
    store.symmetric, store.transposed, store.rented, store.nvals = False, None, 0.0, 9
    store.rowmap = SimpleNamespace(p=2)
    rented = partial(direction._rented, session, None, SimpleNamespace(form="full"), store, True)
    assert rented(1.0, 2.0) == "push" and store.rented < 0
    assert [rented(1.0, 2.0) for _ in range(direction.AGAIN - 1)] == ["push"] * (direction.AGAIN - 1)
    assert -1 <= store.rented < 0
    session.ranks, store.rented = object(), 0.0
    with pytest.raises(MemoryError):
        rented(1.0, 2.0)


def test_replicas_are_limited():
    for wrong in (-1, "all", 1.5, True):
        with pytest.raises(InvalidValue, match="replicas"):
            gb.init("cpu:2", replicas=wrong)
    gb.init("cpu:2", replicas=100_000)
    session = gb.settings.session()
    small, large = (gb.Matrix.from_coo(np.arange(n), np.arange(n)[::-1], nrows=n, ncols=n) for n in (4000, 20_000))
    assert session.replicas.fit([small._store], 0) and not session.replicas.fit([large._store], 0)
    made = session.replicas.of(small._store)
    assert made.rowmap.p == 1 and session.replicas.of(small._store) is made
    assert session.replicas.bytes() > 4000 * 4 and sum(small.memory().values()) > 2 * 4000 * 4
    assert session._relieved() and small._store.replica is None and not session._relieved()
    gb.init("cpu:2", replicas=0)
    small = gb.Matrix.from_coo(np.arange(4000), np.arange(4000), nrows=4000, ncols=4000)
    assert not gb.settings.session().replicas.fit([small._store], 0)


@pytest.mark.skipif("cuda:0-1" not in os.environ.get("GBGPU_TEST_DEVICES", "").split(), reason="needs two GPUs")
def test_replicas_go_before_memory_runs_out():
    import cupy

    gb.init("cuda:0-1")
    A, fails = gb.Matrix.from_coo(np.arange(4000), np.arange(4000)[::-1], nrows=4000, ncols=4000), [1]
    session, plain = gb.settings.session(), cupy.get_default_memory_pool().malloc
    session.replicas.of(A._store)

    def short(size):
        if fails:
            fails.pop()
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return plain(size)

    with cupy.cuda.using_allocator(short):
        assert session.devices[0].empty(1000, np.int64).size == 1000
        assert A._store.replica is None
        fails.append(1)
        with pytest.raises(gb.exceptions.OutOfMemory):  # nothing is kept any more
            session.devices[0].empty(1000, np.int64)


@pytest.mark.skipif(not cuda.available(), reason="needs a GPU")
@pytest.mark.parametrize("error", [MemoryError("std::bad_alloc"), None])
def test_what_is_kept_goes_before_sorting_on_a_gpu_runs_out_of_memory(error):
    """Thrust, which sorts, gives CuPy's errors another type."""
    import cupy

    gb.init("cuda:0")
    device, fails, given = gb.settings.session().devices[0], [1], [True, False]
    plain, keys = cupy.get_default_memory_pool().malloc, cupy.arange(10**5)[::-1].copy()
    device.relieve = lambda: lambda: given.pop(0)

    def short(size):
        if fails:
            fails.pop()
            raise error or cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return plain(size)

    with cupy.cuda.using_allocator(short):
        order = device.order(keys)
        np.testing.assert_array_equal(order.get(), np.arange(10**5)[::-1])
        fails.append(1)
        with pytest.raises(gb.exceptions.OutOfMemory, match="cuda:0"):
            device.sort(keys)
        assert not given
        device.sort(keys)
        np.testing.assert_array_equal(keys.get(), np.arange(10**5))


@pytest.mark.parametrize(
    ("spec", "gpus", "rows"),
    [
        ("cpu:1", None, 1000 + 1024),
        ("cpu:3", None, 1000 + 3 * 1088),  # lists have room for all rows on each, in whole words for each block
        ("cpu:3", [0, 0, 1], 600 + 2 * 1088),
        ("cpu:3", [0, 1, 2], 500 + 1088),
    ],
)
def test_rows_that_vectors_of_a_loop_take(spec, gpus, rows, monkeypatch):
    gb.init(spec, None if spec == "cpu:1" else gb.partition.shares(1, 5, 4))
    session, v = gb.settings.session(), gb.Vector.from_dense(np.ones(1000))
    few, s, A = gb.Vector.from_coo([1], [2], size=1000), gb.Scalar.from_value(3), gb.Matrix(int, 1000, 1000)
    for device, gpu in zip(session.devices, gpus or (), strict=False):
        monkeypatch.setattr(device, "gpu", gpu, raising=False)
    assert most_rows(session, [v, few, s, A]) == rows
    assert most_rows(session, [s, A]) == 0


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_a_group_within_a_group_has_the_least_of_both(version, nested, monkeypatch, tmp_path):
    """Of either version of control groups, where the group is mounted as such or as a part of others."""
    _, total = host.memory()
    (tmp_path / "cgroup").write_text(["7:cpu,memory:/job/task\n", "0::/job/task\n"][version - 1])
    top = tmp_path / ("memory" if version == 1 else "")
    limit, used, prefix = [
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"), ("memory.max", "memory.current", ""),
    ][version - 1]
    for folder, bytes in ((top / "job", 2_000_000), (top / "job/task", 1_000_000)) if nested else ((top, 1_000_000),):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / limit).write_text(f"{bytes}\n")
        (folder / used).write_text(f"{900_000 + nested * (bytes - 1_000_000)}\n")
        (folder / "memory.stat").write_text(f"{prefix}active_file 20000\n")
    monkeypatch.setattr(host, "GROUP", tmp_path)
    monkeypatch.setattr(host, "OWN", tmp_path)
    assert host.memory() == (120_000, 1_000_000) and total > 1_000_000


def test_a_limit_of_addresses_is_a_limit(monkeypatch):
    free, _ = host.memory()
    monkeypatch.setattr(host, "getrlimit", lambda kind: (free + (1 << 40), -1))
    assert host.memory()[0] > 0
    monkeypatch.setattr(host, "getrlimit", lambda kind: (1 << 20, -1))
    assert host.memory() == (0, 1 << 20)


def test_what_was_promised_and_not_touched_is_not_free():
    """In a process of its own: threads that end meanwhile give back what they have not touched of their stacks."""
    subprocess.run([sys.executable, "-c", PROMISED], check=True)


PROMISED = """
import numpy as np
from gbgpu.host import promised

n, before, slack = 1 << 27, promised.left(), 1 << 24
array = promised.allocate(lambda: np.empty(n, np.uint8))
assert promised.left() - before > n - slack
array[: n // 2] = 1
assert n // 2 - slack < promised.left() - before < n // 2 + slack
array[:] = 1
assert promised.left() - before < slack
del array
assert promised.left() <= before
"""


@pytest.mark.parametrize("spec", ["cpu:1", "cpu:3", "cpu:7"])
def test_devices_of_one_memory_count_what_the_others_were_given(spec, monkeypatch):
    """Each share fits, all of them do not: refused before the system would kill the process."""
    gb.init(spec)
    n = 1 << 27
    w, m = gb.Vector("INT64", n), gb.Vector(bool, n)
    m[0] = True
    free = host.memory()[0]
    room = int(5.5 * n)  # some blocks of 8 bytes a row
    monkeypatch.setattr(cpu, "host_memory", lambda: (host.memory()[0] - free + room, 10**12))
    with pytest.raises(gb.exceptions.OutOfMemory, match="bytes free"):
        w(~m.S) << 1
    assert w.nvals == 0
    w[5] = 1
    assert w.to_dict() == {5: 1}
