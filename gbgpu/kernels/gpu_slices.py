"""A matrix block as slices of pieces of rows, for products with a full vector on GPUs whose most used columns have most
of the entries. The values of x at these columns are read from shared memory, a segment of x at a time.

Format: SELL-C-sigma (Kreutzer, Hager, Wellein, Fehske, Bishop, SIAM J. Sci. Comput. 36, 2014) with C = 32, a list for
each segment of x. The kernels are those of src/pull_slices.cu.
"""

from math import exp
from typing import Any, NamedTuple

import numpy as np

from ..device.rows import PIECE, WINDOW, Begun, ranked
from . import gpu_streams
from .gpu_tuning import TUNING

MOST = 16  # segments
ROUND = 128  # bytes: segments of x begin at multiples
SPARE = 1024  # bytes of shared memory that a block has for other things
GROUP = 128  # entries of a slice that are side by side: four of each of 32 pieces


class Slices(NamedTuple):
    """`order`: columns by use; `width`: columns of a segment. `near` (uint16) and `far` (int32): the codes of slices in
    the segments and of others; `lengths` (uint8): of the pieces, a cell each, 32 a slice; `offs`: where the groups of
    each slice begin; `split`: the first slice of others; `near_cuts` and `far_cuts`: slices of equal cost. `ptr` and
    `pieces`: the cells of each row; `words` and `present`: bits of the rows with entries, and how many these are."""

    order: Any
    width: int
    segments: int
    parts: int
    near: Any
    far: Any
    lengths: Any
    offs: Any
    split: int
    near_cuts: Any
    far_cuts: Any
    ptr: Any
    pieces: Any
    words: Any
    present: int


def slices_of(device: Any, block: Any, width: int, held: int, reads_a: bool) -> tuple[Slices | None, list[Any]]:
    """The slices of a block for an x of `width` values of `held` bytes, and its values in their order (in any order if
    they are not read). Made at the first need and kept with the block. (None, []) where a stream is faster, and where
    memory is short."""
    if block.nnz < TUNING.least or width < TUNING.wide or block.cols.dtype != np.int32:
        return None, []
    key, valued = ("slices", held), bool(reads_a and block.stride)

    def make(segments: int | None = None) -> Any:
        found, values = _made(device, block, width, held, valued, segments)
        if valued and found:
            block.slices[key] = values
        return found

    slices = gpu_streams.kept(device, block.views, key, make)
    if not slices:
        return None, []
    if not valued:
        return slices, [block.vals] * 2
    values = gpu_streams.kept(device, block.slices, key, lambda: make(slices.segments) and block.slices[key])
    return (None, []) if values is None else (slices, values)


def _made(device: Any, block: Any, width: int, held: int, valued: bool, segments: int | None) -> tuple[Any, list[Any]]:
    """Slices and values. Slices are () where a stream is faster, None where room is short. `segments`: None if these
    are to be chosen."""
    each = min((device.shared - SPARE) // ROUND * ROUND // held, 1 << 16)
    counts, begun = device.counts(block.cols, width), Begun(device, block.indptr)
    order, place, _, used = ranked(device, counts)
    if segments is None:
        edges = np.minimum(np.arange(MOST + 1) * each, used)
        upto = device.offsets(device.at(counts, order[: int(edges[-1])]))
        entries = device.get(device.at(upto, device.put(edges))).tolist()
        segments = best(entries, block.nnz, begun.total, block.vals.itemsize if valued else 0)
    if not segments:
        return (), []
    if not device.has_room(24 * block.nnz + 20 * block.n * (segments + 1)):
        return None, []
    codes = device.at(place, block.cols)
    return _laid_out(device, block, codes, order[:used], each, segments, valued, begun)


def best(entries: list[int], nnz: int, rows: int, size: int) -> int:
    """How many segments are predicted to take the least time; 0 if a stream takes less. `entries`: how many the first
    0, 1, 2, ... segments have; `size`: bytes of a value of A that is read."""
    found, least = 0, TUNING.gain * nnz * (TUNING.streamed + size * TUNING.byte)
    time = pieces = 0.0
    for segments in range(1, len(entries)):
        new = entries[segments] - entries[segments - 1]
        if not new:
            break
        # most entries of a segment are in few rows, hence the 6
        pieces += rows * (1 - exp(-new / (6 * rows))) + new / PIECE
        time += TUNING.segment + max(new * (2 + size) * 1.2 * TUNING.byte, new * TUNING.near)
        rest = nnz - entries[segments]
        all = time + TUNING.far * rest + TUNING.piece * (pieces + min(rest, rows) + rest / PIECE)
        if all < least:
            found, least = segments, all
    return found


def _laid_out(
    device: Any, block: Any, codes: Any, order: Any, width: int, segments: int, valued: bool, begun: Begun
) -> tuple[Slices, list[Any]]:
    n, nnz, lists, size = block.n, block.nnz, segments + 1, block.indptr.itemsize
    all, windows = n * lists, -(-n // WINDOW)
    counts, pieces = device.zeros(all, np.int32), device.empty(all, np.int32)
    device.run(f"list_counts{size}", 32 * n, (block.indptr, codes, n, width, segments, counts))
    device.run("piece_counts", all, (counts, pieces, all))
    firsts = device.offsets(pieces)
    edges = np.arange(lists)[:, None] * n + np.arange(windows) * WINDOW
    before = device.at(firsts, device.put(np.append(edges.ravel(), all)))
    base = np.append(0, np.cumsum(-(-np.diff(device.get(before)) // 32) * 32))  # a slice is in one window
    total, slices = int(device.get(before[-1:])[0]), int(base[-1]) // 32
    keys = device.empty(total, np.int64)
    device.run("piece_keys", all, (counts, firsts, keys, n, lists))
    device.sort(keys)
    cells, lengths = device.empty(total, np.int32), device.zeros(32 * slices, np.uint8)
    widths = device.zeros(slices, np.int32)
    device.run("piece_cells", total, (keys, before, device.put(base), cells, lengths, widths, total))
    del keys, counts, pieces
    offs = device.offsets(widths)
    starts = (base[::windows] // 32).tolist()  # of each list
    split = starts[segments]
    middle, end = device.get(device.at(offs, device.put(np.array([split, slices])))).tolist()
    near, far = device.zeros(GROUP * middle, np.uint16), device.zeros(GROUP * (end - middle), np.int32)
    places = device.empty(nnz, np.int64)
    given = block.indptr, codes, n, width, segments, firsts, cells, offs, GROUP * middle, near, far, places
    device.run(f"pieced{size}", 32 * n, given)
    values = []
    if valued:
        vals = device.empty(GROUP * end, block.vals.dtype)
        device.run(f"spread{vals.itemsize}", nnz, (places, block.vals, vals, nnz))
        values = [vals[: GROUP * middle], vals[GROUP * middle :]]
    del places
    many, of_rows = device.empty(n, np.int32), device.empty(total, np.int32)
    device.run("row_pieces", n, (firsts, many, n, lists))
    ptr = device.offsets(many)
    device.run("row_cells", n, (firsts, cells, ptr, of_rows, n, lists))
    parts, rest = device.processors, TUNING.rest * device.processors
    near_cuts, far_cuts = device.empty(segments * (parts + 1), np.int32), device.empty(rest + 1, np.int32)
    for s in range(segments):
        cuts, many = near_cuts[s * (parts + 1) :], starts[s + 1] - starts[s]
        device.run("evenly", parts + 1, (offs[starts[s] :], many, parts, starts[s], cuts))
    device.run("evenly", rest + 1, (offs[split:], slices - split, rest, 0, far_cuts))
    columns = order, width, segments, parts
    both = near, far, lengths, offs, split, near_cuts, far_cuts
    return Slices(*columns, *both, ptr, of_rows, begun.bits, begun.total), values
