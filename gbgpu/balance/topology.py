"""Links between devices as numbers: simulated hosts, JSON files, and routes where there is no direct link."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InvalidValue, message
from .files import numbers, reading

GB = 1e9  # bytes


@dataclass(frozen=True, eq=False)
class Topology:
    """Links between n devices. Times that follow from a simulated one are predictions.

    Attributes
    ----------
    name : str
        Its name.
    links : numpy.ndarray
        Bytes a second of the direct link from device i to device j (n, n), 0 for none.
    bandwidth : numpy.ndarray
        Bytes a second over the best route (n, n), 0 without one, infinite to itself.
    latency : numpy.ndarray
        Seconds (n, n).
    into, out : numpy.ndarray
        Bytes a second that all links of a device bear together (n,).
    simulated : bool
        Whether it was not measured.
    """

    name: str
    links: np.ndarray
    bandwidth: np.ndarray
    latency: np.ndarray
    into: np.ndarray
    out: np.ndarray
    simulated: bool = True

    @property
    def n(self) -> int:
        """The number of devices."""
        return len(self.bandwidth)


def made(
    name: str, links: Any, latency: Any = 0.0, into: Any = None, out: Any = None, simulated: bool = True
) -> Topology:
    """A Topology of direct links (n, n), bytes a second, 0 for none.

    Pairs without a link go over the one device that leaves most bandwidth (GUM, figure 2: from 0 to 7 over 1 or 6), at
    twice the latency. into, out: by default what all links of a device give. Raises InvalidValue for numbers below 0 or
    shapes that do not fit.
    """
    direct = np.array(links, float)
    n = len(direct)
    if direct.shape != (n, n) or not n or not (direct >= 0).all():
        raise InvalidValue(message("a square matrix of bandwidths from 0 on", direct.tolist(), f"topology {name!r}"))
    np.fill_diagonal(direct, 0.0)
    try:
        delay = np.array(np.broadcast_to(np.asarray(latency, float), (n, n)))
        totals = direct.sum(0) if into is None else into, direct.sum(1) if out is None else out
        within, outward = (np.array(np.broadcast_to(np.asarray(total, float), n)) for total in totals)
    except ValueError as error:
        raise InvalidValue(message(f"latency, into and out of {n} devices", str(error), f"topology {name!r}")) from None
    if not all((part >= 0).all() for part in (delay, within, outward)):
        raise InvalidValue(message("latency, into and out from 0 on", name))
    relayed = np.minimum(direct[:, :, None], direct[None, :, :]).max(axis=1)  # i -> k -> j
    far = (direct == 0) & ~np.eye(n, dtype=bool)
    bandwidth = np.where(far, relayed, direct)
    np.fill_diagonal(bandwidth, np.inf)
    np.fill_diagonal(delay, 0.0)
    return Topology(name, direct, bandwidth, np.where(far, 2 * delay, delay), within, outward, simulated)


def shared(n: int) -> Topology:
    """A Topology of n devices that work in one memory: what one reads of another is as near as its own."""
    none, anything = np.zeros((n, n)), np.full(n, np.inf)
    return Topology("shared memory", none, np.full((n, n), np.inf), none, anything, anything, simulated=False)


def topology(name: str) -> Topology:
    """The simulated host of a name, or of a JSON file.

    Parameters
    ----------
    name : str
        "sim:dgx1-v100", "sim:dgx-h200", "sim:pcie-16", or the path of a file, with or without "sim:" before it.

    Returns
    -------
    Topology
        The host.

    Raises
    ------
    InvalidValue
        If there is no such name, or numbers do not fit.
    FileFormatError, OSError
        If the file is another, or not there.

    Notes
    -----
    A file is an object with "bandwidth": GB/s (n, n), 0 for no link; and optionally "name", "latency": microseconds
    (one or n x n), "into" and "out": GB/s (one or n).
    """
    short = name.removeprefix("sim:")
    if short in SIMULATED:
        return SIMULATED[short](f"sim:{short}")
    if not short.endswith(".json"):
        known = ", ".join(f"sim:{known}" for known in SIMULATED)
        raise InvalidValue(message("a known topology or the path of a .json file", repr(name), known))
    with reading(short, 'an object with "bandwidth": [[GB/s]]') as found:
        into, out = (numbers(found[key], GB) if key in found else None for key in ("into", "out"))
        links, latency = numbers(found["bandwidth"], GB), numbers(found.get("latency", 0), 1e-6)
        return made(str(found.get("name", Path(short).stem)), links, latency, into, out)


# NVLinks between pairs of GPUs of a DGX-1 with V100s (each has six). The numbering is one for which everything holds
# that GUM's text says of its figure 2: 0 reaches 7 over 1 or 6; (2, 3) and (4, 5) are worth the same; (0, 3) is better
# than (0, 7).
_DGX1 = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 6): 2, (1, 2): 2, (1, 3): 1, (1, 7): 2, (2, 3): 2,
    (2, 4): 1, (3, 5): 1, (4, 5): 2, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 1,
}  # fmt: skip


def _dgx1(name: str) -> Topology:
    """25 GB/s a link and direction."""
    links = np.zeros((8, 8))
    for (i, j), count in _DGX1.items():
        links[i, j] = links[j, i] = 25 * GB * count
    return made(name, links, 9e-6)


def _h200(name: str) -> Topology:
    """A switch between all pairs; a device reads 375 GB/s of its peers, however many they are (measured)."""
    return made(name, np.full((8, 8), 375 * GB), 9e-6, 375 * GB, 375 * GB)


def _pcie(name: str) -> Topology:
    """Two sockets of eight devices: 24 GB/s a device, 12 to one on the other socket."""
    socket = np.arange(16) // 8
    links = np.where(socket[:, None] == socket, 24 * GB, 12 * GB)
    return made(name, links, 15e-6, 24 * GB, 24 * GB)


SIMULATED: dict[str, Callable[[str], Topology]] = {"dgx1-v100": _dgx1, "dgx-h200": _h200, "pcie-16": _pcie}
