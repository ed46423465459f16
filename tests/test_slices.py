"""Matrix blocks as slices of pieces for GPUs: their sums are the product, for any segments of x."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from test_streams import KERNELS as STREAMS
from test_streams import running_out

from gbgpu.device.cpu import CpuDevices
from gbgpu.device.rows import PIECE, WINDOW
from gbgpu.distribute.blocks import MatrixBlock
from gbgpu.kernels import gpu_slices as slices
from gbgpu.kernels.gpu_tuning import TUNING


def list_counts(indptr, codes, n, width, last, counts):
    lists = np.minimum(codes // width, last)
    counts += np.bincount(lists * n + np.repeat(np.arange(n), np.diff(indptr)), minlength=len(counts)).astype(np.int32)


def piece_counts(counts, pieces, n):
    pieces[:] = -(-counts // PIECE)


def piece_keys(counts, firsts, keys, n, lists):
    owner = np.repeat(np.arange(n * lists), np.diff(firsts))
    pieces = np.arange(len(keys))
    lengths = np.minimum(PIECE, counts[owner] - (pieces - firsts[owner]) * PIECE)
    keys[:] = (owner // n * -(-n // WINDOW) + owner % n // WINDOW) << 40 | (255 - lengths) << 32 | pieces


def piece_cells(keys, before, base, cells, lengths, widths, n):
    at = base[keys >> 40] + np.arange(n) - before[keys >> 40]
    found = 255 - (keys >> 32 & 255)
    cells[keys & 0xFFFFFFFF], lengths[at] = at, found
    first = at % 32 == 0
    widths[at[first] // 32] = (found[first] + 3) // 4


def row_pieces(firsts, out, n, lists):
    out[:] = np.diff(firsts).reshape(lists, n).sum(axis=0)


def row_cells(firsts, cells, ptr, out, n, lists):
    rows = np.repeat(np.tile(np.arange(n), lists), np.diff(firsts))
    out[:] = cells[np.argsort(rows, kind="stable")]
    assert np.array_equal(ptr, np.append(0, np.cumsum(np.bincount(rows, minlength=n))))


def pieced(indptr, codes, n, width, last, firsts, cells, offs, split, near, far, places):
    lists = np.minimum(codes // width, last)
    of = lists * n + np.repeat(np.arange(n), np.diff(indptr))
    order = np.argsort(of, kind="stable")
    rank = np.empty(len(of), int)
    rank[order] = np.arange(len(of)) - np.searchsorted(of[order], of[order])
    cell = cells[firsts[of] + rank // PIECE].astype(int)
    places[:] = (offs[cell // 32] + rank % PIECE // 4) * 128 + cell % 32 * 4 + rank % 4
    hub = lists < last
    near[places[hub]] = codes[hub] - lists[hub] * width
    far[places[~hub] - split] = codes[~hub]


def spread(places, source, out, n):
    out[places] = source


def evenly(offs, n, parts, first, out):
    cost = offs[: n + 1] - offs[0] + 2 * np.arange(n + 1)
    out[: parts + 1] = first + np.searchsorted(cost, cost[n] * np.arange(parts + 1) // parts)


TEXTS = list_counts, piece_counts, piece_keys, piece_cells, row_pieces, row_cells, pieced, spread, evenly
KERNELS = STREAMS | {kernel.__name__: kernel for kernel in TEXTS}


def prepared(device, monkeypatch, shared=slices.SPARE + 256):
    """A device of the host that has what GPUs have; matrices of any size are worth slices."""
    device.counts = lambda ids, n: np.bincount(ids, minlength=n)
    device.run = lambda name, n, args: KERNELS[name.rstrip("1248")](*args)
    device.sort, device.shared, device.processors = np.ndarray.sort, shared, 3
    for name in ("least", "wide"):
        monkeypatch.setattr(TUNING, name, 0)
    return device


@pytest.fixture
def device(monkeypatch):
    return prepared(CpuDevices(1).devices[0], monkeypatch)


def block_of(A):
    return MatrixBlock(A.shape[0], A.indptr, A.indices.astype(np.int32), A.data, 1, A.nnz, True)


def skewed(n, m, count, seed=1):
    rng = np.random.default_rng(seed)
    rows, cols = (n * rng.random(count) ** 3).astype(int), (m * rng.random(count) ** 3).astype(int)
    rows[rows % 7 == 3] = 5  # rows without entries, and one of many
    return sparse.coo_array((np.ones(count, np.float32), (rows, cols)), shape=(n, m)).tocsr()


def product(found, values, x):
    """As the kernels of src/pull_slices.cu, slice by slice."""
    x, starts = x[found.order], [cuts[0] for cuts in found.near_cuts.reshape(found.segments, -1)]
    sums = np.zeros(len(found.lengths))
    middle = found.offs[found.split]
    for i in range(len(found.offs) - 1):
        hub = i < found.split
        low = (np.searchsorted(starts, i, side="right") - 1) * found.width if hub else 0
        codes, vals, back = (found.near, values[0], 0) if hub else (found.far, values[1], middle)
        part = slice(*(128 * (found.offs[i : i + 2] - back)))
        c, v = (each[part].reshape(-1, 32, 4).swapaxes(0, 1).reshape(32, -1) for each in (codes, vals))
        on = np.arange(c.shape[1]) < found.lengths[32 * i : 32 * i + 32, None]
        assert on[0].sum() > c.shape[1] - 4 and (np.diff(on.sum(axis=1)) <= 0).all() and (c[on] + low < len(x)).all()
        assert not hub or (c[on] < found.width).all()
        terms = np.where(on, v, 0).astype(float) * x[np.where(on, c.astype(int) + low, 0)]
        sums[32 * i : 32 * i + 32] = terms.sum(axis=1)
    rows = np.repeat(np.arange(len(found.ptr) - 1), np.diff(found.ptr))
    return np.bincount(rows, sums[found.pieces], minlength=len(found.ptr) - 1)


@pytest.mark.parametrize("segments", [1, 3, 16])
@pytest.mark.parametrize("n, m, held", [(300, 2000, 4), (40_000, 900, 8), (1, 5000, 1), (700, 40, 4)])
def test_slices_give_the_product(device, n, m, held, segments, monkeypatch):
    """With windows and lists without pieces, without others than hubs, and rows of many pieces."""
    monkeypatch.setattr(slices, "best", lambda *given: segments)
    A = skewed(n, m, 30_000)
    A.sum_duplicates()
    A.data[:] = np.random.default_rng(3).random(A.nnz)
    block = block_of(A)
    found, values = slices.slices_of(device, block, m, held, True)
    assert found.width == 256 // held and len(found.order) == len(np.unique(A.indices))
    x = np.random.default_rng(2).random(m)
    np.testing.assert_allclose(product(found, values, x), A @ x, rtol=1e-12)
    has = np.diff(A.indptr) > 0
    assert np.array_equal(np.unpackbits(found.words.view(np.uint8), bitorder="little")[:n], has)
    assert found.present == has.sum()
    cuts = found.near_cuts.reshape(segments, device.processors + 1)
    assert (np.diff(cuts) >= 0).all() and cuts[0, 0] == 0 and cuts[-1, -1] == found.split
    assert (cuts[1:, 0] == cuts[:-1, -1]).all()
    assert (np.diff(found.far_cuts) >= 0).all() and found.far_cuts[-1] == len(found.offs) - 1 - found.split
    again = slices.slices_of(device, block, m, held, True)
    assert again[0] is found and again[1] is values
    other = block.with_values(2 * A.data, 1)
    same, doubled = slices.slices_of(device, other, m, held, True)
    assert all(np.array_equal(one, two) for one, two in zip(same, found, strict=True))
    np.testing.assert_allclose(product(same, doubled, x), 2 * (A @ x), rtol=1e-12)
    iso = MatrixBlock(n, A.indptr, block.cols, A.data[:1], 0, A.nnz, True)
    assert slices.slices_of(device, iso, m, held, True)[1] == [iso.vals] * 2


def test_rows_are_no_slices_where_memory_is_short(device, monkeypatch):
    monkeypatch.setattr(slices, "best", lambda *given: 2)
    A, (left, _) = skewed(300, 900, 8_000), running_out(device, monkeypatch)
    for rooms in (0, 1, 4, 7, 9, 1 << 20):
        block, left[0] = block_of(A), rooms
        found, _ = slices.slices_of(device, block, 900, 4, True)
        assert (found is None) == (rooms < 1 << 20)
        left[0] = 1 << 20
        if found is None:
            assert slices.slices_of(device, block, 900, 4, True)[0] is not None
    device.has_room = lambda need: False
    assert slices.slices_of(device, block_of(A), 900, 4, True) == (None, [])


def test_slices_are_for_few_columns_with_most_entries(device):
    """By predicted times: as many segments as have enough entries, none where columns are used alike."""
    n, nnz = 1 << 22, 1 << 27
    skew = [int(nnz * share) for share in (0, 0.6, 0.73, 0.79, 0.82, 0.85, 0.87, 0.89, 0.91)]
    found = [slices.best(skew, nnz, n // 2, size) for size in (0, 4)]
    assert 8 >= found[0] >= found[1] >= 2
    assert slices.best([nnz * k // 128 for k in range(17)], nnz, n, 0) == 0
    assert slices.best([0, 60_000, 60_000], 60_000, 10_000, 4) == 0  # a segment takes longer than such a stream
    places = np.random.default_rng(1).integers(0, 500, (2, 4000))
    A = sparse.coo_array((np.ones(4000), places), shape=(500, 500)).tocsr()
    block = block_of(A)
    assert slices.slices_of(device, block, 500, 4, True) == (None, []) and block.views["slices", 4] == ()
