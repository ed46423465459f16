"""The views of matrix blocks for GPUs: every entry is in one of the streams, with its row and its value."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from gbgpu import settings
from gbgpu.device.cpu import CpuDevices
from gbgpu.device.rows import TILE
from gbgpu.distribute.blocks import MatrixBlock
from gbgpu.errors import OutOfMemory
from gbgpu.kernels import gpu_streams as streams
from gbgpu.kernels.gpu_tuning import TUNING


@pytest.fixture
def device(monkeypatch):
    """One of the host that has what GPUs have."""
    found = CpuDevices(1).devices[0]
    found.counts = lambda ids, n: np.bincount(ids, minlength=n)
    found.cut, found.run, found.sort = cut, run, np.ndarray.sort
    monkeypatch.setattr(TUNING, "least", 1)
    monkeypatch.setattr(TUNING, "wide", 0)
    monkeypatch.setattr(settings, "hub_bytes", 200)
    return found


def run(name, n, args):
    """As CudaDevice.run, of the kernels that streams are made with."""
    KERNELS[name.rstrip("48")](*args)


def begun(indptr, n, least, bits, counts, begins):
    on = np.diff(indptr) >= least
    bits[:] = 0
    bits.view(np.uint8)[: -(-n // 8)] = np.packbits(on, bitorder="little")
    counts[:] = np.bitwise_count(bits.view(np.uint32))
    if not isinstance(begins, int):
        first = np.zeros(8 * len(begins), bool)
        first[indptr[:-1][on]] = True
        begins[:] = np.packbits(first, bitorder="little")


def listed(bits, upto, names, out, n):
    found = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")[:n])
    assert len(found) == upto[-1]
    out[:] = found if isinstance(names, int) else names[found]


def ranks(indptr, bits, upto, out, n, tiles):
    on = np.unpackbits(bits.view(np.uint8), bitorder="little")[:n] > 0
    out[:] = np.searchsorted(indptr[:-1][on], np.arange(tiles + 1) * TILE)


def joined(rows, words, new, count):
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    rows = np.arange(count) if isinstance(rows, int) else rows
    new += count - int(bits[rows].sum())
    bits[rows] = 1
    words.view(np.uint8)[:] = np.packbits(bits, bitorder="little")


def falling(counts, keys, n):
    keys[:] = (2**31 - 1 - np.minimum(counts, 2**31 - 1)) << 32 | np.arange(n)


def ranked(keys, counts, order, place, sums, most, n):
    order[:] = keys & 0xFFFFFFFF
    place[order] = np.arange(n)
    sums[:] = counts[order[:most]].sum(), np.count_nonzero(counts)


KERNELS = {kernel.__name__: kernel for kernel in (begun, listed, ranks, joined, falling, ranked)}


def cut(codes, low, high, source, begins, ranks, rows=0):
    """As CudaDevice.cut, which tests/test_streams_gpu.py compares."""
    taken = (low <= codes) & (codes < high)
    firsts = np.flatnonzero(np.unpackbits(begins, bitorder="little")[: len(codes)])
    assert not rows or rows == len(firsts) == ranks[-1]
    upto = np.concatenate([[0], np.cumsum(taken)])
    return source[taken], upto[np.append(firsts, len(codes))] if rows else None


def entries(view, values, n):
    """The matrix in a stream."""
    count = len(view.codes)
    begins = np.unpackbits(view.begins, bitorder="little")[:count]
    assert begins[0] and view.ranks.tolist() == [int(begins[: t * TILE].sum()) for t in range(len(view.ranks))]
    rank = np.cumsum(begins) - 1
    rows = rank if view.rows is None else view.rows[rank]
    cols = view.codes if view.order is None else view.order[view.codes]
    assert ((view.low <= view.codes) & (view.codes < view.high)).all()
    return sparse.coo_array((values, (rows, cols)), shape=n).tocsr()


@pytest.mark.parametrize("hubs", [False, True])
@pytest.mark.parametrize("l2, slices", [(1 << 30, 1), (16_000, 2), (4_000, 6), (2_000, 11)])
def test_streams_hold_every_entry(device, l2, slices, hubs, monkeypatch):
    monkeypatch.setattr(TUNING, "cut_entries", 2)
    device.l2 = l2
    n, m, count = 400, 3_000, 9_000
    rng = np.random.default_rng(1)
    rows, cols = rng.integers(0, n, count), rng.integers(0, m, count)
    rows[rows % 10 == 3] += 1  # rows without entries
    cols[: count // 4] //= 100 if hubs else 1
    A = sparse.coo_array((np.ones(count, np.float32), (rows, cols)), shape=(n, m)).tocsr()
    A.data[:] = rng.random(A.nnz)
    block = MatrixBlock(
        n, A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data, 1, A.nnz, True
    )
    found = streams.streams_of(device, block, m, 4)
    assert (found[0].order is not None) == hubs
    assert hubs or len(found) == slices  # as many as the cache needs, or as rows have pairs of entries
    held = streams.values_of(device, block, found, True)
    total = sum(entries(view, vals, A.shape) for view, vals in zip(found, held, strict=True))
    assert (total != A).nnz == 0 and sum(len(view.codes) for view in found) == A.nnz
    has = np.diff(A.indptr) > 0
    bits = np.unpackbits(found[-1].words.view(np.uint8), bitorder="little")
    assert np.array_equal(bits[:n], has) and not bits[n:].any()
    assert sum(view.present for view in found) == has.sum()
    assert streams.streams_of(device, block, m, 4) is found
    assert streams.values_of(device, block, found, True)[0] is held[0]
    assert len(streams.streams_of(device, block, m, 0)) == 1  # no value of x is read


def test_slices_need_room_and_entries_that_are_far(device):
    rng = np.random.default_rng(2)
    n, count = 500, 40_000
    A = sparse.coo_array((np.ones(count), rng.integers(0, n, (2, count))), shape=(n, n)).tocsr()
    near = sparse.coo_array((np.ones(count), (rng.integers(0, n, count), rng.integers(0, n // 4, count))), shape=(n, n))
    device.l2 = 2_000  # half of x
    for matrix, room, slices in ((A, 1 << 40, 2), (near.tocsr(), 1 << 40, 1), (A, 100, 1)):
        cols = matrix.indices.astype(np.int32)
        block = MatrixBlock(n, matrix.indptr, cols, matrix.data, 1, matrix.nnz, False)
        device.has_room = lambda need, room=room: need < room
        assert len(streams.streams_of(device, block, n, 4)) == slices


def running_out(device, monkeypatch):
    """How many arrays more the device has room for, as the first of a list; and what it is asked for them."""
    empty, left = device.empty, [0]

    def short(*given):
        left[0] -= 1
        if left[0] < 0:
            raise OutOfMemory("expected more")
        return empty(*given)

    monkeypatch.setattr(device, "empty", short)
    return left, short


def test_rows_are_taken_as_they_lie_where_memory_is_short(device, monkeypatch):
    """Whatever there is no room for; what was made before that is there, and the rest once there is room."""
    rng = np.random.default_rng(2)
    n, count = 500, 40_000
    A = sparse.coo_array((rng.random(count), rng.integers(0, n, (2, count))), shape=(n, n)).tocsr()
    device.l2, kinds, (left, short) = 2_000, set(), running_out(device, monkeypatch)
    for rooms in range(100):
        left[0] = rooms
        block = MatrixBlock(n, A.indptr, A.indices.astype(np.int32), A.data, 1, A.nnz, False)
        found = streams.streams_of(device, block, n, 4)
        kinds.add(len(found))
        assert found or streams.order_of(block) is None
        left[0] = 1 << 20
        again = streams.streams_of(device, block, n, 4)
        assert len(again) == 2 and (again is found or len(found) < 2)
        for some in filter(None, (found, again)):
            parts = zip(some, streams.values_of(device, block, some, True), strict=True)
            assert abs(sum(entries(view, vals, A.shape) for view, vals in parts) - A).max() == 0
    assert kinds == {0, 1, 2}
    other = block.with_values(2 * A.data, 1)
    monkeypatch.setattr(device, "cut", lambda *given: short())
    left[0] = 0
    found = streams.streams_of(device, other, n, 4)
    assert len(found) == 2 and streams.values_of(device, other, found, True) is None


def test_views_without_room_are_tried_less_and_less_often(device):
    tries, views, found = [], {}, []

    def make():
        tries.append(len(found) + 1)
        if len(tries) < 6:
            raise OutOfMemory("expected more")
        return "made"

    while len(found) < 99:
        found.append(streams.kept(device, views, "likely", make))
    assert tries == [1, 2, 4, 8, 16, 32] and found == [None] * 31 + ["made"] * 68


def test_values_follow_the_slices_of_each_type_of_x(device, monkeypatch):
    """Slices without entries are left out: those for a wider type may then end at the same columns."""
    monkeypatch.setattr(settings, "hub_bytes", 0)
    rng = np.random.default_rng(3)
    n, count = 300, 6_000
    cols = rng.integers(0, n, count)
    cols = np.where(cols < n // 4, cols + n // 2, cols)  # nothing in the first quarter
    A = sparse.coo_array((rng.random(count), (rng.integers(0, n, count), cols)), shape=(n, n)).tocsr()
    block = MatrixBlock(n, A.indptr, A.indices.astype(np.int32), A.data, 1, A.nnz, False)
    device.l2 = 1_200
    for held, slices in ((4, 2), (8, 3), (4, 2)):
        found = streams.streams_of(device, block, n, held)
        assert len(found) == slices
        parts = zip(found, streams.values_of(device, block, found, True), strict=True)
        assert abs(sum(entries(view, vals, A.shape) for view, vals in parts) - A).max() == 0


def test_streams_are_made_once_they_pay(monkeypatch):
    monkeypatch.setattr(TUNING, "launches", 1000)
    for nnz, pulls in ((100, TUNING.pulls + 10), (10**6, TUNING.pulls)):
        block, device = MatrixBlock(0, None, None, None, 0, nnz, False), SimpleNamespace(journal=None)
        assert [streams.pays(device, block) for _ in range(pulls + 2)] == [False] * pulls + [True] * 2
    assert streams.pays(SimpleNamespace(journal=[]), MatrixBlock(0, None, None, None, 0, 100, False))  # of a loop
