"""The stealing problem that both solvers take: its numbers, checked, and what comes out.

min z, z >= sum_i c_ij x_ij for every device j, sum_j x_ij = l_i, x_ij >= 0 integer (GUM, section III-A, equation 1);
and where `Traffic` is given, the seconds of the links into each device and out of each block's device <= z.
"""

from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .simplex import DEVICE, HUGE, INTO, NOWHERE, OUT, invalid


class Traffic(NamedTuple):
    """What the links of devices have to bear.

    Attributes
    ----------
    bytes : numpy.ndarray
        Bytes an edge of block i takes when device j computes it (n, n), 0 where it is at home or a replica is.
    into, out : numpy.ndarray
        Bytes a second into each device and out of each (n,), all its links together.
    """

    bytes: np.ndarray
    into: np.ndarray
    out: np.ndarray


class Shares(NamedTuple):
    """Who computes how many edges.

    Attributes
    ----------
    edges : numpy.ndarray
        Edges of block i that device j computes (n, n) int64.
    seconds : float
        Until the slowest device is done.
    bound : float
        No assignment takes less.
    """

    edges: np.ndarray
    seconds: float
    bound: float


def seconds_of(costs: np.ndarray, edges: np.ndarray) -> float:
    """The time z of edges (n, n) at costs (3, n, n)."""
    spent = np.where(edges > 0, costs, 0.0) * edges
    return float(max(spent[DEVICE].sum(0).max(), spent[INTO].sum(0).max(), spent[OUT].sum(1).max()))


def checked(costs: Any, loads: Any, traffic: Traffic | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(loads, costs) of a problem as `solve` takes it; raises as `solve`.

    Costs are seconds an edge (3, n, n) of devices, of the links into them, of those out of blocks; infinite where no
    edge may go.
    """
    loads, all_costs = arrays(costs, loads, traffic)
    wrong = invalid(all_costs, loads)
    if wrong:
        raise error(wrong, all_costs, loads)
    return loads, all_costs


def arrays(costs: Any, loads: Any, traffic: Traffic | None) -> tuple[np.ndarray, np.ndarray]:
    """(loads, costs) as `checked` gives them, but for the values of the numbers.

    Raises DimensionMismatch, InvalidValue (loads that are not integers).
    """
    loads, costs = np.asarray(loads), np.asarray(costs)
    n = loads.size
    if loads.shape != (n,) or costs.shape != (n, n) or not n:
        raise DimensionMismatch(message("costs (n, n) and loads (n,), n > 0", (costs.shape, loads.shape)))
    if loads.dtype.kind not in "iu" or loads.dtype == np.uint64 and loads.max() >> 62:
        raise InvalidValue(message("whole numbers of edges below 2**62", f"loads {loads.tolist()} of {loads.dtype}"))
    if costs.dtype.kind not in "biuf":
        raise InvalidValue(message("seconds an edge as costs", f"a type of {costs.dtype}"))
    loads = np.ascontiguousarray(loads, np.int64)
    all_costs = np.zeros((3, n, n))
    all_costs[0] = costs
    if traffic is not None:
        size, into, out = (np.asarray(part, float) for part in traffic)
        if size.shape != (n, n) or into.shape != (n,) or out.shape != (n,):
            raise DimensionMismatch(message(f"traffic of {n} devices", [size.shape, into.shape, out.shape]))
        with np.errstate(divide="ignore", invalid="ignore"):  # a link of no rate
            np.divide(size, into, out=all_costs[1], where=size != 0)
            np.divide(size, out[:, None], out=all_costs[2], where=size != 0)
    return loads, all_costs


def error(wrong: int, costs: np.ndarray, loads: np.ndarray) -> InvalidValue:
    """What to raise for a code that is not DONE."""
    if wrong == NOWHERE:
        nowhere = [i for i in range(len(loads)) if loads[i] and not np.isfinite(costs[0, i]).any()]
        return InvalidValue(message("a device for every load", f"none for blocks {nowhere}", "finite costs and links"))
    if wrong == HUGE:
        return InvalidValue(message("fewer than 2**62 edges, and finite seconds for them", loads.tolist()))
    return InvalidValue(message("costs, loads and traffic from 0 on, no NaN", (costs.tolist(), loads.tolist())))
