"""A matrix that is turned where memory is short."""

from itertools import pairwise
from typing import Any

import numpy as np

PARTS, PIECE, SAMPLES = 8, 1 << 26, 1 << 16


def by_parts(device: Any, m: int, indptr: Any, cols: Any, vals: Any, piece: int = PIECE) -> tuple[Any, Any, Any]:
    """`Device.transpose`, of about a PARTS-th of the entries at a time, as SAMPLES of them tell: in little more memory
    than the result, in several times the time. piece: entries that are looked at together."""
    xp, place, size = device.xp, max(cols.size - 1, 1).bit_length(), cols.size
    some = xp.sort(cols[:: -(-size // SAMPLES)])
    cuts = xp.unique(some[:: -(-some.size // PARTS)]).tolist()
    begins, rows = device.empty(m + 1, indptr.dtype), device.empty(size, cols.dtype)
    moved, done = None if vals is None else device.empty(size, vals.dtype), 0
    for first, end in pairwise([0, *(cut for cut in cuts if cut), m]):
        found = []
        for lo in range(0, size, piece):
            part = cols[lo : lo + piece]
            (places,) = xp.nonzero((part >= first) & (part < end))
            found.append((part[places].astype(np.int64) - first << place) + (places + lo))
        keys = xp.concatenate(found)
        keys.sort()
        into = slice(done, done + keys.size)
        begins[first : end + 1] = device.firsts(keys, place, end - first, indptr.dtype) + begins.dtype.type(done)
        order = device.low_bits(keys, place, keys)
        rows[into] = xp.searchsorted(indptr, order, "right") - 1
        if moved is not None:
            moved[into] = device.at(vals, order)
        done = into.stop
    return begins, rows, moved
