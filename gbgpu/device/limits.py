"""What the memory of devices gives at most, measured: copies, gathers from random positions, starts of work.

All devices work at the same time. What CPU devices have together is therefore the sum of theirs, though they share one
memory. Rates are the best of several runs, as STREAM reports them (McCalpin, 1995).
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .base import Device, DeviceSet

TIMES = 15  # runs of which the best one counts
STARTS = 200  # of work that is as good as none
SIZES = 4, 8  # bytes of an element that is gathered
COPIED = {"cpu": 1 << 25, "cuda": 1 << 28}  # bytes of each of two arrays: several times those of a cache
GATHERED = {"cpu": 1 << 20, "cuda": 1 << 26}  # elements that a device gathers
PLACES = {"cpu": 1 << 20, "cuda": 1 << 23}, {"cpu": 1 << 28, "cuda": 1 << 30}  # bytes: fits into a cache, does not


class Limits(NamedTuple):
    """What one device reaches while all of its session work.

    Attributes
    ----------
    device : str
        Its name.
    copy : float
        Bytes a second of a copy, read and written ones.
    gather : dict
        Elements a second, by (bytes of an element, bytes of the array): `out[k] = array[positions[k]]` with random
        positions.
    start : float
        Seconds of starting work that is as good as none. A CPU device: until all threads of the devices have run it.
        A GPU: until the next kernel can be started.
    wait : float
        Seconds until the host knows that such work is done.
    """

    device: str
    copy: float
    gather: dict[tuple[int, int], float]
    start: float
    wait: float


class _Part(NamedTuple):
    device: int


def measured(devices: DeviceSet, sizes: Sequence[int] = ()) -> list[Limits]:
    """Limits of each device. `sizes`: bytes of the arrays that are gathered from, in place of one that fits into a
    cache and one that does not. Nothing else should run."""
    each = devices.devices
    copies = _rates(devices, lambda d: _copying(each[d]), [2 * COPIED[device.kind] for device in each])
    gathers: list[dict[tuple[int, int], float]] = [{} for _ in each]
    for place, size in product(range(len(sizes) or len(PLACES)), SIZES):
        lengths = [sizes[place] if sizes else PLACES[place][device.kind] for device in each]
        shared: list[np.ndarray] = []  # CPU devices read one array
        make = partial(_gathering, each, size, lengths, shared)
        found = _rates(devices, make, [GATHERED[device.kind] for device in each])
        for kept, length, rate in zip(gathers, lengths, found, strict=True):
            kept[size, length] = rate
    starts = [_started(devices, device) for device in each]
    return [
        Limits(device.name, copy, gather, *start)
        for device, copy, gather, start in zip(each, copies, gathers, starts, strict=True)
    ]


def _rates(devices: DeviceSet, make: Callable[[int], Callable[[], object]], amounts: list[int]) -> list[float]:
    """What each device does a second, of so much a call, while all of them do it."""
    calls = [make(d) for d in range(len(devices.devices))]

    def work(part: _Part) -> list[Any]:
        device, call, marks = devices.devices[part.device], calls[part.device], []
        for _ in range(TIMES + 1):
            marks.append(device.mark())
            call()
        return [*marks, device.mark()]

    found = devices.over([_Part(d) for d in range(len(calls))], work, 1.0)
    rates = []
    for device, marks, amount in zip(devices.devices, found, amounts, strict=True):
        device.synchronize()
        took = [device.between(one, two) or np.inf for one, two in zip(marks[1:], marks[2:], strict=False)]
        rates.append(amount / min(took))
    return rates


def _copying(device: Device) -> Callable[[], object]:
    target, source = (device.full(COPIED[device.kind], value, np.uint8) for value in (0, 1))
    return lambda: device.copy(target, source)


def _gathering(
    devices: Sequence[Device], size: int, lengths: list[int], shared: list[np.ndarray], d: int
) -> Callable[[], object]:
    device, dtype, n = devices[d], np.dtype(f"f{size}"), max(lengths[d] // size, 1)
    places = np.random.default_rng(d).integers(n, size=GATHERED[device.kind])
    if not device.shares_memory:
        array, ids = device.full(n, 1, dtype), device.put(places.astype(np.int32))
        return lambda: device.at(array, ids)
    if not shared:
        shared.append(np.ones(n, dtype))
    out = np.empty(len(places), dtype)
    return lambda: np.take(shared[0], places, out=out, mode="wrap")  # NumPy's fastest: it copies nothing


def _started(devices: DeviceSet, device: Device) -> tuple[float, float]:
    if device.shares_memory:
        parts = [_Part(d) for d, each in enumerate(devices.devices) if each.shares_memory]
        each = _seconds(lambda: devices.over(parts, lambda part: None, 1e-3))
        return each, each
    word = device.zeros(1, np.int32)

    def begin() -> None:
        device.run("fill4", 1, (word, np.uint32(0), 1))  # type: ignore[attr-defined]

    def waited() -> None:
        begin()
        device.synchronize()

    waited()
    each = _seconds(begin)
    device.synchronize()
    return each, _seconds(waited)


def _seconds(call: Callable[[], object]) -> float:
    """Of a call, in the mean."""
    start = perf_counter()
    for _ in range(STARTS):
        call()
    return (perf_counter() - start) / STARTS
