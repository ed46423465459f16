"""A matrix block as a stream of entries in equal tiles, for products with a vector on GPUs: where rows begin, and (if
some columns are used far more than others) columns by how much they are used, so that the values of x that most
entries need lie side by side. Where x is larger than the cache, one stream for each slice of the columns."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import settings
from ..device.rows import Begun, joined, ranked
from ..errors import in_room
from ..trace import counters
from .gpu_tuning import TUNING

_T = TypeVar("_T")
LONG = 128  # entries from which a row is spread over a block of threads, as src/ assumes
MADE = {1, *(("slices", held) for held in (1, 2, 4, 8))}  # keys of views, of which each takes the place of rows


class Stream(NamedTuple):
    """`codes`: a column slot, or its place in `order`, the slots by use; `begins`: a bit an entry, set where a row
    begins; `rows`: those with entries (None: all); `ranks`: rows that began before each tile, and all; `words`: bits of
    the rows in this stream and those before it, `present` of them new; codes of a slice are `low` .. `high` - 1."""

    codes: Any
    begins: Any
    rows: Any
    ranks: Any
    order: Any
    words: Any
    present: int
    low: int
    high: int


def long_rows(device: Any, block: Any) -> Any:
    """The rows of at least LONG entries (int32), looked for once."""
    if "long" not in block.views:
        with device.uncaptured():
            block.views["long"] = Begun(device, block.indptr, LONG).rows()
    return block.views["long"]


def has_long_rows(block: Any) -> bool:
    """Whether there are long rows, as far as anyone has looked."""
    if block.views.get("longest", LONG) < LONG:
        return False
    return "long" not in block.views or bool(block.views["long"].size)


def is_short(device: Any, block: Any, most: float | None = None) -> bool:
    """Whether rows have few entries: so many on average (TUNING.lone), and none is long."""
    return block.nnz <= (TUNING.lone if most is None else most) * block.n and not long_rows(device, block).size


def known_short(block: Any) -> bool:
    """Whether rows have so few entries (TUNING.short) that a thread takes each, as pulls before have found."""
    return "long" in block.views and is_short(None, block, TUNING.short)  # so no device is asked


def pays(device: Any, block: Any) -> bool:
    """Whether a block has been pulled from so often that streams of it pay; while a loop is captured they will, and
    once they are there."""
    views = block.views
    asked = views["streamed"] = views.get("streamed", 0) + 1
    rented = asked <= TUNING.pulls + TUNING.launches // max(block.nnz, 1)
    if rented and block.nnz >= TUNING.least:
        counters.count(block)
    return not MADE.isdisjoint(views) or not rented or device.journal is not None


def streams_of(device: Any, block: Any, width: int, held: int) -> tuple[Stream, ...]:
    """The view of a block for an x of `width` values of `held` bytes (0: none are read), made at the first need and
    kept with it; nothing for blocks that are not worth it, and where memory is short."""
    if block.nnz < TUNING.least or is_short(device, block, TUNING.short) or block.cols.dtype != np.int32:
        return ()
    whole = kept(device, block.views, 1, lambda: _whole(device, block, width))
    if whole is None:
        return ()
    count = min(-(-whole[0].high * held // (device.l2 // 2)), int(block.nnz / (TUNING.cut_entries * block.n)))
    if count < 2:
        return whole
    return kept(device, block.views, count, lambda: _cut(device, block, whole[0], count)) or whole


def kept(device: Any, views: dict[Any, Any], key: Any, make: Callable[[], _T | None]) -> _T | None:
    """What make() gives, kept under this key; None where memory is short, and then until twice as many have asked."""
    found: _T | None = views.get(key)
    if found is None:
        asked = views[key, "asked"] = views.get((key, "asked"), 0) + 1
        if asked & asked - 1 == 0:
            with device.uncaptured():
                found = in_room(make)
            if found is not None:
                views[key] = found
    return found


def _whole(device: Any, block: Any, width: int) -> tuple[Stream, ...]:
    codes, order = _coded(device, block, width)
    used = width if order is None else len(order)
    return (_laid_out(device, block.n, None, block.indptr, codes, order, 0, used),)


def order_of(block: Any) -> Any:
    """The columns by use, where pulls take streams and there is such an order."""
    made = block.views.get(1)
    return None if made is None else made[0].order


def values_of(device: Any, block: Any, streams: tuple[Stream, ...], needed: bool) -> list[Any] | None:
    """The block's values, in the order of each stream; those of slices are kept with it, and None where memory is short
    for them. All of them in any order if they are not needed."""
    if len(streams) == 1 or not (needed and block.stride):
        return [block.vals] * len(streams)
    (whole,) = block.views[1]

    def cut() -> list[Any]:
        of_whole = whole.begins, whole.ranks
        return [device.cut(whole.codes, slice.low, slice.high, block.vals, *of_whole)[0] for slice in streams]

    return kept(device, block.slices, tuple((slice.low, slice.high) for slice in streams), cut)


def likely_first(device: Any, block: Any, width: int) -> Any:
    """The columns with the most used ones first in each row, for pulls that one entry ends: it mostly is the first.
    Made once that many pulls have asked for it, or a loop is captured; None before, and for blocks that are not worth
    it, and where memory is short."""
    views = block.views
    asked = views["asked"] = views.get("asked", 0) + 1
    captured = device.journal is not None
    if asked < TUNING.likely_pulls and not captured or block.nnz < TUNING.least or block.cols.dtype != np.int32:
        return None
    found = kept(device, views, "likely", lambda: used_first(device, block, width))
    return None if found is block.cols else found


def used_first(device: Any, block: Any, width: int) -> Any:
    """The columns with four that are used most first in each row, as far as some of the entries tell; as they are where
    few are used more than others; None if room is short."""
    if not device.has_room(TUNING.room * (block.cols.nbytes + 32 * width)):
        return None
    counts = device.counts(block.cols, width, TUNING.sampled)
    top = ranked(device, counts, width // 16)[2]
    if top * TUNING.sampled < TUNING.skewed * block.nnz:
        return block.cols
    found = device.empty(block.cols.size, np.int32)
    device.run(f"used_first{block.indptr.itemsize}", 32 * block.n, (block.indptr, block.cols, counts, found, block.n))
    return found


def _cut(device: Any, block: Any, whole: Stream, count: int) -> tuple[Stream, ...] | None:
    """So many streams of columns side by side; the whole one if most entries are in the first of them; None if room is
    short."""
    edges = [whole.high * i // count for i in range(count + 1)]
    if not device.has_room(16 * block.nnz):
        return None
    streams: list[Stream] = []
    for low, high in pairwise(edges):
        codes, firsts = device.cut(whole.codes, low, high, whole.codes, whole.begins, whole.ranks, whole.present)
        if not streams and len(codes) > (1 - TUNING.hub_share) * block.nnz:
            return (whole,)
        if len(codes):
            before = streams[-1].words if streams else None
            streams.append(_laid_out(device, block.n, whole.rows, firsts, codes, whole.order, low, high, before))
    return tuple(streams)


def _laid_out(
    device: Any, n: int, rows: Any, indptr: Any, codes: Any, order: Any, low: int, high: int, before: Any = None
) -> Stream:
    """`rows`: those that indptr is about (None: all); `before`: the words of the stream before it."""
    nnz = len(codes)
    begun = Begun(device, indptr, entries=nnz)
    found, words, new = rows, begun.bits, begun.total
    if begun.total < begun.n:
        found = begun.rows(rows)
    if rows is not None or before is not None:
        words, new = joined(device, found, begun.total, n, before)
    ranks = begun.ranks(nnz)
    return Stream(codes, begun.begins, None if begun.total == n else found, ranks, order, words, new, low, high)


def _coded(device: Any, block: Any, width: int) -> tuple[Any, Any]:
    """Columns by their place in the order of use, and that order (of those used); or as they are, and None."""
    most = settings.hub_bytes // 4
    if most < 1 or width < TUNING.wide:
        return block.cols, None
    order, place, top, used = ranked(device, device.counts(block.cols, width), most)
    if top < TUNING.hub_share * block.nnz:
        return block.cols, None
    return device.at(place, block.cols), order[:used]
