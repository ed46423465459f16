"""A matrix that is turned where memory is short."""

from itertools import pairwise
from typing import Any

import numpy as np

PARTS, PIECE = 8, 1 << 26


def by_parts(device: Any, m: int, indptr: Any, cols: Any, vals: Any, piece: int = PIECE) -> tuple[Any, Any, Any]:
    """`Device.transpose`, of columns with about a PARTS-th of the entries at a time: in little more memory than the
    result, in several times the time. piece: entries that are looked at together."""
    xp, place, size = device.xp, max(cols.size - 1, 1).bit_length(), cols.size
    begins = device.offsets(device.counts(cols, m))
    edges = xp.searchsorted(begins, xp.asarray(size * np.arange(PARTS + 1) // PARTS))
    edges[0], edges[-1] = 0, m
    spans = zip(pairwise(device.get(edges).tolist()), pairwise(device.get(begins[edges]).tolist()), strict=True)
    rows, moved = device.empty(size, cols.dtype), None if vals is None else device.empty(size, vals.dtype)
    for (first, end), (lo, hi) in spans:
        if lo == hi:
            continue
        keys, done = device.empty(hi - lo, np.int64), 0
        for at in range(0, size, piece):
            part = cols[at : at + piece]
            (places,) = xp.nonzero((part >= first) & (part < end))
            keys[done : done + places.size] = (part[places].astype(np.int64) - first << place) + (places + at)
            done += places.size
        keys.sort()
        order = device.low_bits(keys, place, keys)
        rows[lo:hi] = xp.searchsorted(indptr, order, "right") - 1
        if moved is not None:
            moved[lo:hi] = device.at(vals, order)
        del keys, order
    return begins.astype(indptr.dtype, copy=False), rows, moved
