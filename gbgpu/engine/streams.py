"""A matrix block as one stream of entries in equal tiles, for products with a full vector on GPUs: where rows begin,
and the columns used most by their place in a table."""

from typing import Any, NamedTuple

import numpy as np

from .. import settings
from .csr import read, words_of

TILE = 1024  # entries, as in src/pull_stream.cu
SMALL = 1 << 16  # entries below which rows are not worth preparing
PAYS = 16  # pulls after which sorting rows by the use of their columns pays
SHARE = 0.2  # of the entries that hubs must have to be worth their table


class Stream(NamedTuple):
    """`codes`: a column slot, or ~place in `hubs`; `begins`: a bit an entry, set where a row begins; `rows`: those with
    entries (None: all); `ranks`: rows that began before each tile, and all; `words`: bits of `rows`."""

    codes: Any
    begins: Any
    rows: Any
    ranks: Any
    hubs: Any
    words: Any
    present: int


def stream_of(device: Any, block: Any, width: int, itemsize: int) -> Stream | None:
    """The view of a block, made at the first need and kept with it; None for blocks that are not worth it. `itemsize`:
    bytes of a value of x."""
    if block.nnz < SMALL or block.cols.dtype != np.int32:
        return None
    views = block.views
    most = settings.hub_bytes // itemsize
    if ("stream", most) not in views:
        views["stream", most] = _made(device, block, width, most)
    return views["stream", most]


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
    xp, bits = device.xp, max(width - 1, 1).bit_length()
    order = device.order(-xp.bincount(block.cols, minlength=width))
    place = device.empty(width, np.int32)
    place[order] = xp.arange(width, dtype=np.int32)
    keys = device.keys(device.owners(block.indptr, block.nnz), place[block.cols], bits)
    device.sort(keys)
    keys &= (1 << bits) - 1
    return order.astype(np.int32)[keys]


def _made(device: Any, block: Any, width: int, most: int) -> Stream:
    xp, nnz = device.xp, block.nnz
    present = xp.diff(block.indptr) > 0
    rows = xp.flatnonzero(present).astype(np.int32)
    firsts = block.indptr[:-1][present]
    flags = device.zeros(-(-nnz // 8) * 8, np.uint8)
    flags[firsts] = 1
    tiles = -(-nnz // TILE)
    edges = xp.arange(tiles + 1, dtype=firsts.dtype) * TILE
    ranks = xp.searchsorted(firsts, edges, side="left").astype(np.int32)
    words = words_of(device, present)
    codes, hubs = _coded(device, block, width, most)
    count = len(rows)
    return Stream(
        codes, xp.packbits(flags, bitorder="little"), None if count == block.n else rows, ranks, hubs, words, count
    )


def _coded(device: Any, block: Any, width: int, most: int) -> tuple[Any, Any]:
    """Columns, with those of the `most` used ones as places in a table (if they have a good share of the entries)."""
    xp = device.xp
    none = block.cols, device.zeros(1, np.int32)[:0]
    if most < 1:
        return none
    counts = xp.bincount(block.cols, minlength=width)
    order = device.order(-counts)[:most]
    if read(device, xp.cumsum(counts[order]), -1) < SHARE * block.nnz:
        return none
    hubs = xp.sort(order).astype(np.int32)
    place = xp.arange(width, dtype=np.int32)
    place[hubs] = ~xp.arange(len(hubs), dtype=np.int32)
    return place[block.cols], hubs
