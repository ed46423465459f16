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
    moved, p, counted = 0, len(devices), []
    if not transfers:
        return moved, unknown
    device, me = devices[transfers[0].target], transfers[0].target
    with device.at_once():
        for each in sorted(transfers, key=lambda transfer: own_first(transfer.source, me, p)):
            source, _, data, into, count = each
            if count is not None:
                counted.append(each)
                continue
            if into is not data:
                device.copy(into, data)
            if source != me:
                moved += into.nbytes
    if counted:
        with device.at_once():  # counts have arrived
            for source, _, data, into, count in counted:
                if into is not data:
                    device.copy_counted(into, data, count)
                if source != me:
                    unknown.append((count, into.itemsize))
    return moved, unknown
