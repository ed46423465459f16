"""Graphs that GPUs draw are those that NumPy's generator draws: the text for GPUs as C++ on this machine, how blocks
are made of it and of given entries on devices that stand for GPUs, and whole graphs where there is a GPU."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from contextlib import nullcontext

import numpy as np
import pytest
from conftest import Devices

import gbgpu as gb
from gbgpu import binary
from gbgpu.device import cuda, entries
from gbgpu.device.cpu import CpuDevice
from gbgpu.engine import gate
from gbgpu.io import generate
from gbgpu.kernels import backends
from gbgpu.kernels.cpu import CpuKernels

SETS = os.environ.get("GBGPU_TEST_DEVICES", "cuda:0 cuda:0*3").split() if cuda.available() else []
SHIM = """
typedef long long i64; typedef unsigned long long u64; typedef unsigned u32;
#define DEVICE static inline
static inline u64 __umul64hi(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
"""
CALL = """
template <int KIND> void all(const Draw &d, const u32 *labels, i64 threads, u32 *from, u32 *to, u32 *real) {
    for (i64 thread = 0; thread < threads; thread++) {
        Wide at = d.state;
        for (int i = 0; thread >> i; i++)
            if (thread >> i & 1) at = jumped(at, d.threads[i]);
        const i64 end = d.first + d.units;
        for (i64 unit = d.first + thread * UNITS; unit < end; unit += threads * UNITS, at = jumped(at, d.threads[32])) {
            const i64 place = unit - d.first;
            real[place / UNITS] = drawn<KIND>(d, at, unit, labels, from + place, to + place);
        }
    }
}
#define CALL(name, KIND) \\
extern "C" void name(const Draw *d, const u32 *labels, i64 threads, u32 *from, u32 *to, u32 *real) { \\
    all<KIND>(*d, labels, threads, from, to, real); \\
}
CALL(rmat, RMAT)
CALL(uniform, UNIFORM)
CALL(grid, GRID)
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """What draws edges, out of the text for GPUs."""
    if shutil.which("g++") is None:
        pytest.skip("the CUDA text is run as C++, which needs g++")
    core = entries.TEXT[entries.TEXT.index("struct Wide") : entries.TEXT.index("#define DRAWS")]
    source, library = (tmp_path_factory.mktemp("drawn") / name for name in ("drawn.cc", "drawn.so"))
    source.write_text(SHIM + core + CALL)
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    return ctypes.CDLL(str(library))


class OneProcessor:
    """As much of a GPU as `Drawing` asks of it."""

    processors = 1


def drawn(text, recipe, first: int, last: int) -> list[tuple[int, int]]:
    """The edges of draws first .. last - 1, none of which is a loop, in the order of draws."""
    drawing = entries.Drawing(OneProcessor(), recipe, None, first, last)
    room = -(-(last - first) // 16) * 16
    ends, real = np.zeros((2, room), np.uint32), np.zeros(room // 16, np.uint32)
    labels = None if recipe.labels is None else recipe.labels()
    arrays = [None if array is None else array.ctypes.data_as(ctypes.c_void_p) for array in (labels, *ends, real)]
    threads = ctypes.c_longlong(drawing._blocks * entries.BLOCK)
    getattr(text, recipe.kind)(ctypes.create_string_buffer(drawing._draw), arrays[0], threads, *arrays[1:])
    there = (real[:, None] >> np.arange(16, dtype=np.uint32) & 1).astype(bool).ravel()
    return list(zip(*ends[:, there].tolist(), strict=True))


def by_numpy(graph, first: int, last: int) -> list[tuple[int, int]]:
    rows, cols = graph.draw(first, last)
    return [(row, col) for row, col in zip(rows.tolist(), cols.tolist(), strict=True) if row != col]


RMAT = {"a": 0.57, "b": 0.19, "c": 0.19, "symmetric": True, "weights": None}
GRAPHS = [generate._rmat(scale, 7, seed, permute=p, **RMAT) for scale, seed in ((1, 1), (13, 5)) for p in (True, False)]
GRAPHS += [generate._uniform(n, degree, 9, True, None) for n, degree in ((2, 5), (1024, 16), (1 << 16, 3))]


@pytest.mark.parametrize("graph", GRAPHS)
def test_edges_are_numpys(text, graph):
    """All of them, of many passes of the same threads, and shares."""
    whole, some = graph.units, graph.units // 3 // 16 * 16
    for first, last in ((0, whole), (some, whole), (some, 2 * some)):
        assert drawn(text, graph.recipe, first, last) == by_numpy(graph, first, last)


@pytest.mark.parametrize("side", [2, 3, 30, 77])
def test_streets_are_numpys(text, side):
    graph = generate._grid_road(side, 0.7, 4, None)
    half = graph.recipe.units // 2 // 16 * 16
    found = drawn(text, graph.recipe, 0, half) + drawn(text, graph.recipe, half, graph.recipe.units)
    assert sorted(found) == sorted(by_numpy(graph, 0, side))


CALLS = [
    "rmat(9, 8, seed=3)", "rmat(12, 16, seed=1, permute=False)", "rmat(11, 5, seed=2, symmetric=False)",
    "rmat(10, 8, seed=7, weights=(1, 255), dtype='FP32')", "rmat(0, 8, seed=3)", "rmat(1, 8, seed=3)",
    "uniform(4096, 8, seed=2)", "uniform(1 << 12, 3, seed=2, symmetric=False, weights=(-4, 9), dtype='INT8')",
    "uniform(3000, 8, seed=2)", "grid_road(40, seed=3)", "grid_road(65, 0.5, seed=3, weights=(0, 1), dtype='BOOL')",
    "grid_road(1, seed=3)", "grid_road(30, 0.7, seed=1, weights=(3, 9), dtype='FP64')",
]  # fmt: skip


if SETS:

    @pytest.mark.parametrize("chunk", [None, 5000])
    @pytest.mark.parametrize("call", CALLS)
    def test_graphs_are_those_of_the_host(monkeypatch, call, chunk):
        gb.init("cpu:1")
        expected = eval(f"gb.io.generate.{call}")
        rows, cols, vals = expected.to_coo()
        symmetric = expected._session.known_symmetric(expected) if expected.nvals else None
        monkeypatch.setattr(generate, "LARGE", 0)
        monkeypatch.setattr(gate, "CHUNK", chunk)
        for spec in SETS:
            Devices(*spec.partition("/")[::2]).start()
            found = eval(f"gb.io.generate.{call}")
            session = gb.settings.session()
            again = gb.Matrix.from_coo(
                rows, cols, vals, nrows=expected.nrows, ncols=expected.ncols, dtype=expected.dtype
            )
            assert found.isequal(again, check_dtype=True), spec
            assert symmetric is None or session.known_symmetric(found) == symmetric


# ---------------------------------------------------------------- blocks, on devices that stand for GPUs


class Standing(CpuDevice):
    """What is asked of GPUs beyond CPU devices, by NumPy."""

    kind, shares_memory = "cuda", False

    def __init__(self, gpu: int, number: int):
        super().__init__(number)
        self.gpu, self.name, self.processors = gpu, f"cuda:{gpu}/{number}", 1

    def here(self):
        return nullcontext()

    def keys(self, rows, cols, bits):
        return rows.astype(np.int64) << bits | cols.astype(np.int64)

    def sort(self, keys):
        keys.sort()

    def firsts(self, keys, bits, m, dtype):
        return np.searchsorted(keys, np.arange(m + 1) << bits).astype(dtype)

    def low_bits(self, keys, bits, out):
        out[:] = keys & ((1 << bits) - 1)


class StandIns:
    """Three of them, of two GPUs."""

    switches, one_memory, direct = True, False, False

    def __init__(self):
        self.devices = [Standing(gpu, number) for number, gpu in enumerate((0, 0, 1))]

    def over(self, tasks, work, seconds, whole=False):
        return [work(task) for task in tasks]

    def close(self):
        pass


class ByNumPy:
    """`gbgpu.device.entries`."""

    UNITS = entries.UNITS
    shift_of = staticmethod(entries.shift_of)

    def binned(self, device, rows, shift):
        return np.bincount(rows >> shift, minlength=1 << entries.BINS)

    def picked(self, device, rows, cols, low, high, bits, most, placed):
        places = np.flatnonzero((rows >= low) & (rows < high))
        keys, room = np.zeros(most, np.int64), np.zeros(most, np.int64)
        keys[: len(places)] = device.keys(rows[places].astype(np.int64) - low, cols[places], bits)
        room[: len(places)] = places
        return keys, room if placed else None, np.array([len(places)])

    def distinct_counts(self, device, keys):
        return np.array([0, len(np.unique(keys))])

    def distinct(self, device, keys, offsets, total):
        assert bool((np.diff(keys) >= 0).all())
        return np.unique(keys)

    def weighed(self, device, keys, row0, bits, n, symmetric, weights, dtype):
        rows, cols = (keys >> bits) + row0, keys & ((1 << bits) - 1)
        rows, cols = rows.astype(np.uint64), cols.astype(np.uint64)
        return generate.weigh(np.uint64(n), rows, cols, symmetric, weights).astype(dtype)

    def Drawing(self, device, recipe, labels, first, last):
        return DrawnByNumPy(device, recipe, first, last)


class DrawnByNumPy:
    def __init__(self, device, recipe, first, last):
        graph = GRAPH[recipe.seed]
        some = np.arange(recipe.units)[first:last]
        if recipe.kind == "grid":
            rows, cols = graph.draw(0, recipe.side) if first == 0 else (some[:0], some[:0])
        else:
            rows, cols = graph.draw(first, last)
        rows, cols = rows.astype(np.int64), cols.astype(np.int64)
        rows, cols = rows[rows != cols], cols[rows != cols]
        if recipe.symmetric:
            rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        self.device, self.rows, self.cols = device, rows, cols

    def bins(self, shift):
        return np.bincount(self.rows >> shift, minlength=1 << entries.BINS)

    def keys(self, low, high, bits, most):
        keys, _, count = ByNumPy().picked(self.device, self.rows, self.cols, low, high, bits, most, False)
        return keys, count


GRAPH = {
    1: generate._rmat(14, 3, 1, permute=True, **RMAT | {"weights": (1, 9)}),
    2: generate._rmat(10, 8, 2, permute=False, **RMAT | {"symmetric": False}),
    3: generate._uniform(1 << 14, 2, 3, True, (-3, 200)),
    4: generate._grid_road(40, 0.7, 4, None),
}


@pytest.fixture(params=["", "shares(1, 0, 3)", "random(5)"])
def standing(request, monkeypatch):
    monkeypatch.setitem(backends.BACKENDS, "cuda", lambda parts, spec: (StandIns(), CpuKernels()))
    monkeypatch.setattr(gate, "_entries", ByNumPy)
    session = gb.init("cuda:0-1", eval(f"gb.partition.{request.param}") if request.param else None)
    session.kernels.kind = "cuda"
    return session


@pytest.mark.parametrize("chunk", [10**9, 1000])
@pytest.mark.parametrize("seed", GRAPH)
def test_blocks_that_are_drawn(standing, monkeypatch, seed, chunk):
    monkeypatch.setattr(gate, "CHUNK", chunk)
    monkeypatch.setattr(generate, "LARGE", 0)
    n, rows, cols, vals = GRAPH[seed].edges()
    found = generate._matrix(GRAPH[seed], "INT16", None)
    expected = gb.Matrix.from_coo(rows, cols, 1 if vals is None else vals, "INT16", nrows=n, ncols=n)
    assert found.isequal(expected, check_dtype=True) and found.ss.is_iso == (vals is None)
    held = [len(block.cols) for block in found._store.blocks]
    if standing.maps._partition is None and seed != 2:  # about as many with each, where few are drawn twice
        work = [block.n + entries for block, entries in zip(found._store.blocks, held, strict=True)]
        assert max(work) < 1.05 * min(work) + 2 * n / len(held) / 64


@pytest.mark.parametrize("chunk", [10**9, 700])
@pytest.mark.parametrize("shape", [(1, 1, 1), (0, 0, 0), (9000, 50, 20_000), (20_000, 20_000, 9000), (70, 2**33, 4000)])
@pytest.mark.parametrize("dup_op", [binary.minus, binary.first])
def test_blocks_of_given_entries(standing, monkeypatch, shape, chunk, dup_op):
    monkeypatch.setattr(gate, "CHUNK", chunk)
    nrows, ncols, count = shape
    ncols = min(ncols, 2**15) if standing.maps.permutes else ncols  # a name for each
    random = np.random.default_rng(count)
    rows, cols = (random.integers(0, max(size, 1), count) for size in (nrows, ncols))
    vals = random.integers(0, 999, count).astype(float)
    for iso in (False, True) if dup_op is binary.first else (False,):
        given = np.ones(1) if iso else vals
        expected = gb.Matrix.from_coo(rows, cols, 1.0 if iso else vals, nrows=nrows, ncols=ncols, dup_op=dup_op)
        found = gb.Matrix("FP64", nrows, ncols)
        gate.build(standing, found, gate.Given(standing, nrows, rows, cols, given, iso, dup_op["FP64"]))
        assert found.isequal(expected) and found.ss.is_iso == expected.ss.is_iso


@pytest.mark.parametrize("iso", [True, False])
def test_a_row_of_most_entries(standing, iso):
    """It decides where blocks end; the rows beside it, counted together with it, have nothing."""
    n, hub = 1 << 18, (1 << 17) + 130
    rows, cols, vals = np.full(n, hub), np.random.default_rng(1).permutation(n), np.arange(float(n))
    found = gb.Matrix("FP64", n, n)
    given = np.ones(1) if iso else vals
    gate.build(standing, found, gate.Given(standing, n, rows, cols, given, iso, None))
    assert found.nvals == n and found.get(hub, int(cols[7])) == (1.0 if iso else 7.0)
    assert sum(bool(len(block.cols)) for block in found._store.blocks) == 1


def test_repeats_are_refused(standing):
    ids = np.array([0, 1, 1])
    for iso in (True, False):
        with pytest.raises(ValueError, match="Duplicate"):
            gate.build(standing, gb.Matrix(float, 3, 3), gate.Given(standing, 3, ids, ids, np.ones(3), iso, None))
