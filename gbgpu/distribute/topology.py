"""How fast bytes go from each device to each other one, measured by copies."""

from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..device.base import Device

LARGE, SMALL, TIMES = 1 << 26, 8, 7  # bytes that are copied, and how often


class Links(NamedTuple):
    """bandwidth[i, j]: bytes a second from device i to another device j; latency[i, j]: seconds until 8 bytes have
    come, as the host sees it. 0 on the diagonal: device/limits.py measures copies within a device."""

    bandwidth: np.ndarray
    latency: np.ndarray


def measured(devices: Sequence[Device]) -> Links:
    """The links between devices that nothing else works on. Takes 128 MiB on each, and milliseconds a pair."""
    n = len(devices)
    found = Links(np.zeros((n, n)), np.zeros((n, n)))
    sources = [device.full(LARGE, 1, np.uint8) for device in devices]
    for j, device in enumerate(devices):
        target = device.empty(LARGE, np.uint8)
        for i, source in enumerate(sources):
            if i == j:
                continue
            found.latency[i, j] = _seconds(device, target[:SMALL], source[:SMALL])
            found.bandwidth[i, j] = LARGE / max(_seconds(device, target, source) - found.latency[i, j], 1e-9)
    return found


def _seconds(device: Device, target: Any, source: Any) -> float:
    times = []
    for _ in range(TIMES):
        device.synchronize()
        start = perf_counter()
        device.copy(target, source)
        device.synchronize()
        times.append(perf_counter() - start)
    return median(times[1:])
