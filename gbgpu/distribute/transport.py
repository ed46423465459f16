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
    unknown: list[tuple[Any, int]] = []
    moved, p = 0, len(devices)
    if not transfers:
        return moved, unknown
    device, me = devices[transfers[0].target], transfers[0].target
    ordered = sorted(transfers, key=lambda transfer: own_first(transfer.source, me, p))
    for counted in (False, True):  # counts arrive first
        with device.at_once():
            for source, _, data, into, count in ordered:
                if (count is not None) is not counted:
                    continue
                if into is not data:
                    device.copy_counted(into, data, count) if counted else device.copy(into, data)
                if source == me:
                    continue
                if counted:
                    unknown.append((count, into.itemsize))
                else:
                    moved += into.nbytes
    return moved, unknown
