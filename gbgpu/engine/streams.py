"""A matrix block as one stream of entries in equal tiles, for products with a vector on GPUs: where rows begin, and (if
some columns are used far more than others) columns by how much they are used, so that the values of x that most
entries need lie side by side."""

from typing import Any, NamedTuple

import numpy as np

from .. import settings
from .csr import read, words_of

TILE = 1024  # entries, as in src/pull_stream.cu
SMALL = 1 << 16  # entries below which rows are not worth preparing
PAYS = 16  # pulls after which sorting rows by the use of their columns pays
PIECE = 1 << 30  # flags packed at a time: CuPy counts them in 32 bits
SHORT, ALONE = 2.6, 8  # entries a row, on average, up to which a thread takes it where a stream could take all (road
# networks have less), and where none could
SHARE = 0.2  # of the entries that hubs must have to be worth their table


class Stream(NamedTuple):
    """`codes`: a column slot, or its place in `order`, the slots by use; `begins`: a bit an entry, set where a row
    begins; `rows`: those with entries (None: all); `ranks`: rows that began before each tile, and all; `words`: bits of
    `rows`, `present` in number."""

    codes: Any
    begins: Any
    rows: Any
    ranks: Any
    order: Any
    words: Any
    present: int


def is_short(block: Any, most: float | None = None) -> bool:
    """Whether rows have few entries: so many on average (ALONE), and none is heavy."""
    return block.nnz <= (ALONE if most is None else most) * block.n and not block.heavy.size


def stream_of(device: Any, block: Any, width: int) -> Stream | None:
    """The view of a block, made at the first need and kept with it; None for blocks that are not worth it."""
    if block.nnz < SMALL or is_short(block, SHORT) or block.cols.dtype != np.int32:
        return None
    if "stream" not in block.views:
        block.views["stream"] = _made(device, block, width)
    return block.views["stream"]


def likely_first(device: Any, block: Any, width: int) -> Any:
    """The columns with the most used ones first in each row, for pulls that one entry ends: it mostly is the first.
    Made once that many pulls have asked for it; None before, and for blocks that are not worth it."""
    views = block.views
    asked = views["asked"] = views.get("asked", 0) + 1
    if asked < PAYS or block.nnz < SMALL or block.cols.dtype != np.int32:
        return None
    if "likely" not in views:
        views["likely"] = _by_use(device, block, width) if device.memory()[0] > 32 * block.nnz else None
    return views["likely"]


def _by_use(device: Any, block: Any, width: int) -> Any:
    bits = max(width - 1, 1).bit_length()
    order, place = _ranked(device, device.counts(block.cols, width))
    keys = device.keys(device.owners(block.indptr, block.nnz), place[block.cols], bits)
    device.sort(keys)
    keys &= (1 << bits) - 1
    return order[keys]


def _ranked(device: Any, counts: Any) -> tuple[Any, Any]:
    """(columns by falling use, the place of each column there)."""
    order, place = device.order(-counts).astype(np.int32), device.empty(len(counts), np.int32)
    place[order] = device.xp.arange(len(counts), dtype=np.int32)
    return order, place


def _made(device: Any, block: Any, width: int) -> Stream:
    xp, nnz = device.xp, block.nnz
    present = xp.diff(block.indptr) > 0
    rows = xp.flatnonzero(present).astype(np.int32)
    firsts = block.indptr[:-1][present]
    flags = device.zeros(-(-nnz // 8) * 8, np.uint8)
    flags[firsts] = 1
    tiles = -(-nnz // TILE)
    edges = xp.arange(tiles + 1, dtype=firsts.dtype) * TILE
    ranks = xp.searchsorted(firsts, edges, side="left").astype(np.int32)
    codes, order = _coded(device, block, width)
    bits = [xp.packbits(flags[at : at + PIECE], bitorder="little") for at in range(0, nnz, PIECE)]
    begins, count = bits[0] if len(bits) == 1 else xp.concatenate(bits), len(rows)
    return Stream(codes, begins, None if count == block.n else rows, ranks, order, words_of(device, present), count)


def _coded(device: Any, block: Any, width: int) -> tuple[Any, Any]:
    """Columns by their place in the order of use, and that order (of those used); or as they are, and None."""
    most, counts = settings.hub_bytes // 4, device.counts(block.cols, width)
    order, place = _ranked(device, counts)
    if most < 1 or read(device, device.xp.cumsum(counts[order[:most]]), -1) < SHARE * block.nnz:
        return block.cols, None
    return place[block.cols], order[: read(device, (counts > 0).sum(keepdims=True), 0)]
