"""Moves what must move, and is the only place that knows how: copies within and between the memories of one process."""

from collections.abc import Sequence
from typing import Any

from ..device.base import Device
from .needs import Transfer


def own_first(d: int, me: int, p: int) -> int:
    """What device `me` sorts devices by: itself, then those after it. If all read from the same one first, they would
    share its links."""
    return (d - me) % p


def carry(devices: Sequence[Device], transfers: list[Transfer]) -> tuple[int, list[tuple[Any, int]]]:
    """Carry out the transfers to one device: nothing is copied where it is to stay. Returns the bytes that came from
    other devices, and for those whose number only the devices know (count, bytes an entry)."""
    moved, unknown, p = 0, [], len(devices)
    for source, target, data, into, count in sorted(transfers, key=lambda t: own_first(t.source, t.target, p)):
        device = devices[target]
        if into is not data:
            if count is None:
                device.copy(into, data)
            else:
                device.copy_counted(into, data, count)
        if source != target:
            if count is None:
                moved += into.nbytes
            else:
                unknown.append((count, into.itemsize))
    return moved, unknown
