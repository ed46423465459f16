"""Frontier stealing: which device computes how many edges of which block, so that the slowest is done first.

Fractions of edges make the problem (`problem.py`) a linear program with a row a device and a row a block, small enough
for a simplex method inside an iteration; rounding moves z by about an edge. So the gap to the exact optimum
(`steal_milp.py`) is nothing for loads worth stealing, and some per cent for dozens of edges, which the thresholds of
`arbiter.py` leave where they are.
"""

from math import inf
from typing import Any

import numpy as np

from ..errors import InvalidValue, message
from . import simplex
from .problem import Shares, Traffic, arrays, error
from .simplex import MOST


def solve(costs: Any, loads: Any, traffic: Traffic | None = None) -> Shares:
    """Who computes how many edges of which block, so that the slowest device is done first.

    The shares are within one edge or so of the best.

    Parameters
    ----------
    costs : array
        Seconds that an edge of block i takes on device j (n, n), infinite where it may not go.
    loads : array of int
        Edges of each block (n,).
    traffic : Traffic, optional
        What the links of devices have to bear.

    Returns
    -------
    Shares
        Edges, seconds, and a lower bound of these.

    Raises
    ------
    DimensionMismatch
        If shapes do not fit.
    InvalidValue
        If a number is negative or NaN, or a load may go nowhere.

    References
    ----------
    Meng et al., GUM, ICDE 2023, section III.
    """
    loads, all_costs = arrays(costs, loads, traffic)
    if traffic is None and (all_costs[0] == all_costs[0, :, :1]).all():
        own, held = all_costs[0, :, 0].tolist(), loads.tolist()
        if 0 < min(own) and 0 <= min(held) and sum(held) < MOST and max(own) * sum(held) < np.inf:
            return _anywhere(own, held)
    wrong, edges, seconds, bound = simplex.solve(all_costs, loads, traffic is not None)
    if wrong:
        raise error(wrong, all_costs, loads)
    return Shares(edges, seconds, min(bound, seconds))


def _anywhere(costs: list[float], loads: list[int]) -> Shares:
    """Shares where an edge takes the same on every device.

    What is beyond the mean goes to those below it, in their order; and what is left when none has room for an edge, to
    those that are done first.
    """
    spent, n = [each * load for each, load in zip(costs, loads, strict=True)], len(loads)
    mean = sum(spent) / n
    edges, room, thief = np.zeros((n, n), np.int64), [mean - mine for mine in spent], 0
    for i, (each, load) in enumerate(zip(costs, loads, strict=True)):
        beyond = int(min(max(-room[i] / each, 0), load))
        edges[i, i], spent[i] = load - beyond, spent[i] - beyond * each
        while beyond and thief < n:
            moved = int(min(beyond, max(room[thief] / each, 0)))
            edges[i, thief] += moved
            spent[thief] += moved * each
            room[thief] -= moved * each
            beyond -= moved
            thief += beyond > 0
        while beyond:
            first = spent.index(min(spent))
            moved = int(min(beyond, max((mean - spent[first]) / each, -(-beyond // n))))
            edges[i, first] += moved
            spent[first] += moved * each
            beyond -= moved
    return Shares(edges, max(spent), min(mean, max(spent)))


def level(loads: Any, own: float, remote: float) -> float:
    """The time z where an edge takes `own` seconds on its owner and `remote` on any other device, fractions allowed.

    Water-filling: if the k fullest devices give, they end at z as the others do, which fixes z; every k bounds z from
    below (its prices are feasible in the dual), and the right one reaches it: z is the maximum.

    Parameters
    ----------
    loads : iterable of float
        Edges of each device.
    own, remote : float
        Seconds an edge, 0 <= own <= remote.

    Returns
    -------
    float
        Seconds until the slowest is done.

    Raises
    ------
    InvalidValue
        If a number is out of its range.
    """
    most, given, z = sorted(map(float, loads), reverse=True), 0.0, 0.0
    if not (0 <= own <= remote and own < inf and all(0 <= load < inf for load in most)):
        raise InvalidValue(message("loads from 0 on, and 0 <= own <= remote seconds", (most, own, remote)))
    total, ratio = sum(most), own / remote if own else 0.0
    for k, load in enumerate(most, 1):
        given += load
        z = max(z, own * (given + ratio * (total - given)) / (k + ratio * (len(most) - k)))
    return z
