"""Shares of edges -> contiguous slices of a frontier (GUM, section III-C, algorithm 1, lines 9 to 21)."""

from typing import Any

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message


def slices(prefix: Any, share: Any) -> np.ndarray:
    """Bounds lo, hi of the frontier entries that each device takes (n, 2) int64.

    prefix: edges before each entry of a block's frontier and after the last (entries + 1,), ascending from 0; share:
    edges of the block for each device (n,), their sum prefix[-1]. Every entry is in one slice; each cut is at the end
    of a list, the one nearest to the share's, so a slice differs from its share by no more than the longest list, and a
    device without a share takes nothing. Raises DimensionMismatch, InvalidValue.
    """
    prefix, share = np.asarray(prefix), np.asarray(share, np.int64)
    if prefix.ndim != 1 or share.ndim != 1 or not len(prefix) or not len(share):
        raise DimensionMismatch(message("prefix (entries + 1,) and share (n,)", (prefix.shape, share.shape)))
    ascends = prefix[0] == 0 and not np.any(prefix[1:] < prefix[:-1])
    if not ascends or share.min() < 0 or share.max() > prefix[-1] or share.sum() != prefix[-1]:
        hint = f"their sum is {share.sum()}, the edges are {prefix[-1]}"
        expected = "a prefix that ascends from 0, and shares from 0 on that sum to the edges of the frontier"
        raise InvalidValue(message(expected, share.tolist(), hint))
    wanted = np.cumsum(share)
    after = np.searchsorted(prefix, wanted)
    before = np.maximum(after - 1, 0)
    cuts = np.where(wanted - prefix[before] < prefix[after] - wanted, before, after)
    cuts[wanted == prefix[-1]] = len(prefix) - 1  # entries without edges at the end go with the last share
    return np.stack([np.concatenate([[0], cuts[:-1]]), cuts], axis=1)


def tasks(block: int, prefix: Any, share: Any) -> list[tuple[int, int, int, int]]:
    """(device, block, lo, hi) of the slices that are not empty: what devices have to do. An idle share of a frontier
    without edges stays with the block's own device. Errors as `slices`."""
    share = np.asarray(share, np.int64)
    found = slices(prefix, share)
    if not share.any():
        return [(block, block, 0, len(prefix) - 1)] if len(prefix) > 1 else []
    return [(device, block, int(lo), int(hi)) for device, (lo, hi) in enumerate(found) if hi > lo]
