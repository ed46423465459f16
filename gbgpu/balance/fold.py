"""Ownership stealing: how many devices a round is worth (GUM, section IV).

Every device that takes part costs the others time.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .problem import Shares, Traffic, checked
from .simplex import DEVICE
from .steal import solve

_MOST = 2.0  # times p: what one round counts for


def reduction(links: Any, loads: Any = None) -> np.ndarray:
    """Devices in the order in which they are kept: the first m are those that stay when m do.

    Each step removes the device whose removal keeps the largest aggregate bandwidth; of equals the one with the
    smallest load, then the last.

    Parameters
    ----------
    links : array
        Bandwidths (n, n); the diagonal does not count.
    loads : array, optional
        Edges of each device (n,).

    Returns
    -------
    numpy.ndarray
        Devices (n,) int64.

    Raises
    ------
    DimensionMismatch
        If shapes do not fit.
    InvalidValue
        If a bandwidth is negative or NaN.

    References
    ----------
    Meng et al., GUM, ICDE 2023, section IV-A, figure 4b.
    """
    held = np.array(links, float)
    n = len(held)
    if held.shape != (n, n) or loads is not None and len(loads) != n:
        came = held.shape if loads is None else (held.shape, len(loads))
        raise DimensionMismatch(message("a square matrix of bandwidths, and a load for each device", came))
    np.fill_diagonal(held, 0.0)
    if not (held >= 0).all():
        raise InvalidValue(message("bandwidths from 0 on", held.tolist()))
    both = held + held.T
    weight, rows, lost = [0] * n if loads is None else list(loads), both.tolist(), both.sum(1).tolist()
    left, order = list(range(n)), []
    while left:  # lists: on so few numbers they are faster than arrays
        gone = min(left, key=lambda at: (lost[at], weight[at], -at))
        left.remove(gone)
        order.append(gone)
        lost = [total - less for total, less in zip(lost, rows[gone], strict=True)]
    return np.array(order[::-1], np.int64)


class Fold(NamedTuple):
    """Devices that take part, ascending; what each computes; seconds of the round, its barrier included."""

    devices: tuple[int, ...]
    shares: Shares
    seconds: float


def fold(costs: Any, loads: Any, order: Any, p: float, traffic: Traffic | None = None, *, steal: bool = True) -> Fold:
    """The number of devices m with the least z(m) + p m; the others are evicted.

    Sizes at which some block can't be reached are left out.

    Parameters
    ----------
    costs : array
        Seconds an edge (n, n), as `solve`.
    loads : array of int
        Edges of each block (n,), as `solve`.
    order : array of int
        As of `reduction`.
    p : float
        Seconds that a device adds to a round.
    traffic : Traffic, optional
        As `solve`.
    steal : bool
        Whether devices that stay compute for each other. If not, their blocks are computed at home.

    Returns
    -------
    Fold
        The devices, their shares, and the seconds.

    Raises
    ------
    DimensionMismatch, InvalidValue
        As `solve`.

    References
    ----------
    Meng et al., GUM, ICDE 2023, section IV-B, algorithm 2; section V-A, step 3.
    """
    order, (loads, checked_costs) = np.asarray(order), checked(costs, loads, traffic)
    costs, busy = checked_costs[DEVICE], loads > 0
    n, home = len(loads), np.eye(len(loads), dtype=bool)
    if sorted(order.tolist()) != list(range(n)) or not 0 <= p < np.inf:
        raise InvalidValue(message(f"an order of {n} devices, and p from 0 on", (order.tolist(), p)))
    all_shares = solve(costs if steal else np.where(home, costs, np.inf), loads, traffic)
    best = Fold(tuple(range(n)), all_shares, all_shares.seconds + p * n)
    work = float(costs[busy].min(1, initial=np.inf) @ loads[busy])  # done where it costs least
    for m in range(1, n):
        if work / m + p * m >= best.seconds:
            continue
        if steal and all_shares.bound + p * m >= best.seconds:
            break  # fewer devices are not faster, and more of them cost more
        stays = np.isin(np.arange(n), order[:m])
        some = costs.copy() if steal else np.where(stays[:, None] & ~home, np.inf, costs)
        some[:, order[m:]] = np.inf
        if np.isfinite(some[busy]).any(axis=1).all():
            shares = solve(some, loads, traffic)
            if shares.seconds + p * m < best.seconds:
                best = Fold(tuple(sorted(order[:m].tolist())), shares, shares.seconds + p * m)
    return best


@dataclass
class Overhead:
    """The seconds p that a device adds to a round, learnt.

    It is the least-squares slope of what rounds took beyond z, by their number of devices; a round counts `memory`
    times as much as the one after it.

    One round alone may be late for anything (memory that is touched first, a busy host), and early where its z was too
    large: it raises or lowers p by a factor of `_MOST` at most, and the first, which warms up, does not raise it. Two
    in a row are believed, so what lasts is known as soon as earlier rounds are forgotten.
    """

    p: float  # seconds a device; before the first round, a guess
    memory: float = 0.9
    _seconds: float = 0.0
    _devices: float = 0.0
    _last: float = 0.0  # what the round before took a device beyond z

    def observe(self, m: int, seconds: float, z: float) -> float:
        """Note that a round of m devices took `seconds`, of which z were computing; returns p."""
        each = max(seconds - z, 0.0) / m
        counts = min(each, max(self.p * (_MOST if self._devices else 1.0), self._last))
        known = min(self._seconds, _MOST * max(each, self._last) * self._devices)
        self._seconds = self.memory * known + m * m * counts
        self._devices = self.memory * self._devices + m * m
        self._last, self.p = each, self._seconds / self._devices
        return self.p
