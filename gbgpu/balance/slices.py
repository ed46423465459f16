"""Shares of edges -> contiguous slices of a frontier (GUM, section III-C, algorithm 1, lines 9 to 21)."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .simplex import MOST


def slices(prefix: Any, share: Any) -> np.ndarray:
    """Bounds of the frontier entries that each device takes.

    Every entry is in one slice; each cut is at the end of a list, the one nearest to the share's. So a slice differs
    from its share by no more than the longest list, and a device without a share takes nothing.

    Parameters
    ----------
    prefix : array of int
        Edges before each entry of a block's frontier and after the last (entries + 1,), ascending from 0.
    share : array of int
        Edges of the block for each device (n,); their sum is prefix[-1].

    Returns
    -------
    numpy.ndarray
        Bounds lo, hi (n, 2) int64.

    Raises
    ------
    DimensionMismatch, InvalidValue, TypeError
        If shapes or numbers do not fit, or numbers are not whole.

    References
    ----------
    Meng et al., GUM, ICDE 2023, section III-C, algorithm 1, lines 9 to 21.
    """
    prefix, share = ascending(prefix), whole(share)
    if not len(share):
        raise DimensionMismatch(message("share (n,), n > 0", share.shape))
    wanted = np.cumsum(share)
    if share.min() < 0 or wanted.min() < 0 or share.max() > prefix[-1] or wanted[-1] != prefix[-1]:  # sums may wrap
        hint = f"their sum is {sum(share.tolist())}, the edges are {prefix[-1]}"
        raise InvalidValue(message("shares from 0 on that sum to the edges of the frontier", share.tolist(), hint))
    after = np.searchsorted(prefix, wanted)
    before = np.maximum(after - 1, 0)
    cuts = np.where(wanted - prefix[before] < prefix[after] - wanted, before, after)
    cuts[wanted == prefix[-1]] = len(prefix) - 1  # entries without edges at the end go with the last share
    return np.stack([np.concatenate([[0], cuts[:-1]]), cuts], axis=1)


def slices_of_groups(
    sums: np.ndarray, share: np.ndarray, group: int, size: int, lengths: Callable[[int, int], np.ndarray]
) -> list[tuple[int, int]]:
    """Cut a frontier as `slices` does, from sums of groups of entries.

    The lengths of entries are asked for those groups only that a cut falls into.

    Parameters
    ----------
    sums : array of int
        Edges before each group of `group` entries, and after the last (groups + 1,).
    share : array of int
        As `slices`.
    group, size : int
        Entries of a group, the last of which may have fewer, and of all.
    lengths : function
        lengths(lo, hi): the edges of each of entries lo .. hi - 1, an array.

    Returns
    -------
    list of (int, int)
        The slice lo .. hi - 1 of each device.
    """
    wanted, cuts = np.cumsum(share), [0]
    for edges, g in zip(wanted.tolist(), (np.searchsorted(sums, wanted) - 1).tolist(), strict=True):
        if g < 0 or edges >= sums[-1]:
            cuts.append(0 if g < 0 else size)
            continue
        inside = np.cumsum(lengths(group * g, min(group * (g + 1), size)), dtype=np.int64) + sums[g]
        k = int(np.searchsorted(inside, edges))
        before = inside[k - 1] if k else sums[g]
        cuts.append(group * g + k + int(edges - before >= inside[k] - edges))
    return list(pairwise([*cuts[:-1], size]))


def ascending(prefix: Any) -> np.ndarray:
    """Edges before each vertex, or entry, and after the last (k + 1,), checked.

    Raises DimensionMismatch, InvalidValue, TypeError.
    """
    found = whole(prefix)
    if not len(found):
        raise DimensionMismatch(message("edges before each vertex and after the last (k + 1,)", found.shape))
    if found[0] or (found[1:] < found[:-1]).any() or found[-1] >= MOST:
        expected = "a prefix that ascends from 0, to less than 2**62 edges"
        raise InvalidValue(message(expected, f"{len(found)} numbers from {found[0]} to {found[-1]}"))
    return found


def whole(numbers: Any) -> np.ndarray:
    """(k,) int64. Raises DimensionMismatch, InvalidValue (not whole, or too large), TypeError (no numbers)."""
    try:
        found = np.asarray(numbers)
    except ValueError:
        raise DimensionMismatch(message("numbers (k,)", "lists of several lengths")) from None
    if found.ndim != 1:
        raise DimensionMismatch(message("numbers (k,)", found.shape))
    if found.dtype == np.int64:
        return found
    if found.dtype.kind not in "iuf" and not all(isinstance(number, int) for number in found.tolist()):
        raise TypeError(message("whole numbers", f"a type of {found.dtype}"))
    try:
        with np.errstate(invalid="ignore"):
            exact = found.astype(np.int64)
    except OverflowError:  # of Python's numbers
        exact = None
    if exact is None or not (exact == found).all() or (exact >= 0).tolist() != (found >= 0).tolist():
        raise InvalidValue(message("whole numbers below 2**63", found.tolist()))
    return exact


def tasks(block: int, prefix: Any, share: Any) -> list[tuple[int, int, int, int]]:
    """What devices have to do: (device, block, lo, hi) of the slices that are not empty.

    An idle share of a frontier without edges stays with the block's own device. Arguments and errors as `slices`.
    """
    found, share = slices(prefix, share), whole(share)
    if not share.any():
        return [(block, block, 0, len(prefix) - 1)] if len(prefix) > 1 else []
    return [(device, block, int(lo), int(hi)) for device, (lo, hi) in enumerate(found) if hi > lo]
