"""New block boundaries from observed times, and a round's seconds predicted (Lux, VLDB 2017, sections 5 and 6).

Predictions take the sizes of input and update sets.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .slices import ascending, whole


class PartialSums:
    """The part of a round's time that the vertices before v take, f(v) from 0 to 1.

    It is known at the bounds of blocks that were timed; in between, time goes by edges.

    Parameters
    ----------
    prefix : array of int
        Edges before each vertex and after the last (n + 1,), ascending from 0. A vertex counts as an edge too.

    Raises
    ------
    DimensionMismatch, InvalidValue, TypeError
        If `prefix` is none.
    """

    def __init__(self, prefix: Any) -> None:
        """Begin with time by edges."""
        prefix = ascending(prefix)
        self._work = prefix + np.arange(len(prefix))  # strictly ascending
        self._vertices = np.array([0, len(prefix) - 1])
        self._parts = np.array([0.0, 1.0])

    @property
    def n(self) -> int:
        """The number of vertices."""
        return len(self._work) - 1

    def at(self, vertices: Any) -> np.ndarray:
        """The part before each of some vertices."""
        if len(self._work) == 1:
            return np.zeros(np.shape(vertices))
        return np.interp(self._work[vertices], self._work[self._vertices], self._parts)

    def observe(self, bounds: Any, seconds: Any) -> None:
        """Note that blocks took so many seconds; what was known inside a block keeps its shape there.

        Parameters
        ----------
        bounds : array of int
            Of p blocks (p + 1,).
        seconds : array
            Of each (p,).

        Raises
        ------
        DimensionMismatch, InvalidValue, TypeError
            If shapes or numbers do not fit, also where the sum of the seconds is infinite.
        """
        bounds, seconds = whole(bounds), np.asarray(seconds, float)
        if seconds.shape != (len(bounds) - 1,):
            raise DimensionMismatch(message("bounds (p + 1,) and seconds (p,)", (bounds.shape, seconds.shape)))
        ends = len(bounds) > 1 and (bounds[0], bounds[-1]) == (0, self.n)
        if not ends or (np.diff(bounds) < 0).any() or not ((seconds >= 0) & (seconds < np.inf)).all():
            expected = f"bounds ascending from 0 to {self.n}, seconds from 0 on"
            raise InvalidValue(message(expected, (bounds.tolist(), seconds.tolist())))
        with np.errstate(over="ignore"):
            if seconds.sum() == np.inf:
                raise InvalidValue(message("seconds whose sum is finite", seconds.tolist()))
        seconds = _busy(bounds, seconds)
        if not seconds.sum():
            return
        knots = np.union1d(self._vertices, bounds)
        before, old = self.at(knots), self.at(bounds)
        new = np.concatenate([[0.0], np.cumsum(seconds)]) / seconds.sum()
        block = np.clip(np.searchsorted(bounds, knots, side="right") - 1, 0, len(seconds) - 1)
        span = old[block + 1] - old[block]
        inside = np.divide(before - old[block], span, out=np.zeros(len(knots)), where=span > 0)
        flat = (span == 0) & (knots == bounds[block + 1])  # no time was known there
        parts = new[block] + np.where(flat, 1.0, inside) * (new[block + 1] - new[block])
        self._vertices, self._parts = knots, np.maximum.accumulate(parts)

    def split(self, p: int, first: int = 0, last: int | None = None) -> np.ndarray:
        """Bounds (p + 1,) of blocks that take about the same time: cuts at the vertices nearest to f = i / p.

        `first`, `last`: where vertices to be divided begin and end; by default all are.
        """
        n, known, last = self.n, self._work[self._vertices], self.n if last is None else last
        begin, end = self.at(np.array([first, last]))
        steps = np.concatenate([[True], np.diff(self._parts) > 0])  # f must ascend to be turned round
        wanted = np.interp(begin + (end - begin) * np.arange(1, p) / p, self._parts[steps], known[steps])
        after = np.clip(np.searchsorted(self._work, wanted), 1, max(n, 1)) if n else np.zeros(p - 1, np.int64)
        before = np.maximum(after - 1, 0)
        inner = np.where(wanted - self._work[before] <= self._work[after] - wanted, before, after)
        return np.concatenate([[first], np.clip(inner, first, last), [last]]).astype(np.int64)


class Repartition(NamedTuple):
    """Bounds (p + 1,); seconds a round gains; seconds that moving takes; whether it is worth it."""

    bounds: np.ndarray
    gain: float
    cost: float
    worth: bool


def _busy(bounds: np.ndarray, seconds: Any) -> np.ndarray:
    """Seconds of blocks, but of those without vertices, which only wait."""
    return np.where(np.diff(bounds) > 0, np.asarray(seconds, float), 0.0)


def _arrived(prefix: np.ndarray, old: np.ndarray, new: np.ndarray) -> Any:
    """Edges of each block that it did not have."""
    kept = np.maximum(prefix[np.minimum(new[1:], old[1:])] - prefix[np.maximum(new[:-1], old[:-1])], 0)
    return np.diff(prefix[new]) - kept


def repartition(
    sums: PartialSums,
    prefix: Any,
    bounds: Any,
    seconds: Any,
    bytes_per_edge: float,
    bandwidth: float,
    rounds: float,
    hosts: Any = None,
    network: float = np.inf,
    lay: float = 0.0,
) -> Repartition:
    """Whether to move blocks to new bounds, and to which.

    Compared are what the slowest block gains, and the seconds of moving, spread over the rounds still expected. With
    several hosts, the mean seconds of their devices are compared first. If these are not worth new bounds for all,
    each host moves the bounds between its own devices where that is worth it.

    Parameters
    ----------
    sums : PartialSums
        Observes these seconds, and gives the new bounds.
    prefix : array of int
        That of `sums`.
    bounds : array of int
        Of the p blocks now (p + 1,).
    seconds : array
        That blocks just took (p,); or of block i on device j (p, p), where devices compute for others.
    bytes_per_edge : float
        Bytes of an edge that moves, 0 or more.
    bandwidth : float
        Bytes a second into a device, above 0.
    rounds : float
        Rounds still expected, 0 or more.
    hosts : array of int, optional
        Of each block, ascending from 0 (p,). By default there is one.
    network : float
        Bytes a second into a host, above 0.
    lay : float
        Seconds for each edge of a block that has new bounds, beside what arrives; 0 or more.

    Returns
    -------
    Repartition
        Bounds, gain, cost, and whether it is worth it.

    Raises
    ------
    DimensionMismatch, InvalidValue, TypeError
        If an argument does not fit; nothing is observed then.

    References
    ----------
    Jia et al., Lux, VLDB 2017, section 5, steps 1 to 5; 1 / rounds is its alpha. Seconds that are expected with the new
    bounds take the place of its averages: edges of one vertex are not divided.
    """
    prefix, found = ascending(prefix), np.asarray(seconds, float)
    if len(prefix) != sums.n + 1:
        raise DimensionMismatch(message(f"the prefix of the partial sums ({sums.n + 1},)", prefix.shape))
    if not (min(bandwidth, network) > 0 and 0 <= bytes_per_edge < np.inf and rounds >= 0 and 0 <= lay < np.inf):
        given = f"{bandwidth} and {network}, {bytes_per_edge}, {rounds} and {lay}"
        raise InvalidValue(message("bandwidths above 0, bytes an edge, rounds and seconds from 0 on", given))
    p = len(bounds) - 1
    if found.shape not in ((p,), (p, p)):
        raise DimensionMismatch(message(f"seconds of {p} blocks, or of each on {p} devices", found.shape))
    at = np.zeros(p, np.int64) if hosts is None else whole(hosts)
    if at.shape != (p,) or (at[:1] != 0).any() or not np.isin(np.diff(at), (0, 1)).all():
        raise InvalidValue(message(f"the host of each of {p} blocks, ascending from 0", at.tolist()))
    blocks, devices = (found, found) if found.ndim < 2 else (found.sum(axis=1), found.sum(axis=0))
    sums.observe(bounds, blocks)
    bounds, starts = whole(bounds), np.flatnonzero(np.diff(at, prepend=-1, append=p))
    devices = _busy(bounds, devices) if found.ndim < 2 else devices
    total = _busy(bounds, blocks).sum()

    def cost(new: np.ndarray) -> float:
        """Devices receive at the same time, and so do hosts."""
        changed = (new[1:] != bounds[1:]) | (new[:-1] != bounds[:-1])
        into = _arrived(prefix, bounds, new) * (bytes_per_edge / bandwidth) + np.diff(prefix[new]) * changed * lay
        across = _arrived(prefix, bounds[starts], new[starts]) * (bytes_per_edge / network)
        return float(into.max() + across.max())

    def judged(new: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> Repartition:
        gain = float(of(devices).max() - of(np.diff(sums.at(new)) * total).max())
        takes = cost(new)
        return Repartition(new, gain, takes, takes < gain * rounds)

    new = sums.split(p)
    if len(starts) < 3:
        return judged(new, lambda each: each)
    if judged(new, lambda each: np.add.reduceat(each, starts[:-1]) / np.diff(starts)).worth:
        return judged(new, lambda each: each)._replace(worth=True)
    near = bounds.copy()
    for first, last in pairwise(starts):
        one = bounds.copy()
        one[first : last + 1] = sums.split(int(last - first), bounds[first], bounds[last])
        if judged(one, lambda each: each[first:last]).worth:  # noqa: B023
            near[first : last + 1] = one[first : last + 1]
    return judged(near, lambda each: each)._replace(worth=not np.array_equal(near, bounds))


class Rates(NamedTuple):
    """Measured seconds: of loading a byte of inputs, of an edge of a pull and of a push, of a byte between hosts."""

    load: float
    pull: float
    push: float
    transfer: float


class Prediction(NamedTuple):
    """Seconds of a round of each model, and of the direction that is faster."""

    pull: float
    push: float

    @property
    def direction(self) -> str:
        """The faster one, "push" or "pull"."""
        return "push" if self.push < self.pull else "pull"


def predict(
    rates: Rates, edges: tuple[int, int], inputs: Iterable[int], updates: Iterable[int], devices: int, width: int
) -> Prediction:
    """Seconds of a round, of a pull and of a push; blocks are taken as balanced.

    Parameters
    ----------
    rates : Rates
        Measured seconds.
    edges : (int, int)
        That a pull and a push touch.
    inputs : iterable of int
        Vertices that the devices of each host read, those of two devices twice.
    updates : iterable of int
        Vertices that each host needs of others.
    devices : int
        Of all hosts, 1 or more.
    width : int
        Bytes a vertex.

    Returns
    -------
    Prediction
        Seconds of each direction.

    Raises
    ------
    InvalidValue
        If `devices` is below 1.

    References
    ----------
    Jia et al., Lux, VLDB 2017, section 6, equations 10 to 14.
    """
    if devices < 1:
        raise InvalidValue(message("one device or more", devices))
    moved = rates.transfer * width * sum(updates)
    load = rates.load * width * max(inputs, default=0)
    pull, push = (rate * count / devices for rate, count in zip((rates.pull, rates.push), edges, strict=True))
    return Prediction(load + pull + moved, push + moved)


def vertex_sets(indptr: Any, indices: Any, bounds: Any, host: Any) -> tuple[list[int], list[int]]:
    """The inputs and updates of each host, as `predict` takes them.

    Parameters
    ----------
    indptr, indices : array of int
        A CSR matrix that pulls from its columns.
    bounds : array of int
        Of p blocks of rows (p + 1,).
    host : array of int
        The host of each block (p,), from 0.

    Returns
    -------
    inputs : list of int
        Vertices that the devices of each host read.
    updates : list of int
        Vertices that each host needs of others.

    References
    ----------
    Jia et al., Lux, VLDB 2017, section 4, equations 7 to 9.
    """
    indptr, indices, bounds = np.asarray(indptr), np.asarray(indices), np.asarray(bounds)
    hosts = np.asarray(host)
    inputs, updates = [], []
    for h in range(int(hosts.max(initial=-1)) + 1):
        mine = np.flatnonzero(hosts == h)
        read: Any = np.zeros((len(mine), bounds[-1]), bool)
        for i, b in enumerate(mine):
            read[i, indices[indptr[bounds[b]] : indptr[bounds[b + 1]]]] = True
        inputs.append(int(read.sum()))
        others = read.any(axis=0)
        for b in mine:
            others[bounds[b] : bounds[b + 1]] = False
        updates.append(int(others.sum()))
    return inputs, updates
