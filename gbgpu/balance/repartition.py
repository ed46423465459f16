"""Lux (VLDB 2017): new block boundaries from observed times (section 5), and a round's seconds predicted from the sizes
of input and update sets (section 6)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .slices import ascending, whole


class PartialSums:
    """f(v): the part of a round's time that the vertices before v take (0 .. 1), known at the bounds of blocks that
    were timed; in between, time goes by edges."""

    def __init__(self, prefix: Any) -> None:
        """prefix: edges before each vertex and after the last (n + 1,), ascending from 0; a vertex counts as an edge
        too. Raises DimensionMismatch, InvalidValue, TypeError."""
        prefix = ascending(prefix)
        self._work = prefix + np.arange(len(prefix))  # strictly ascending
        self._vertices = np.array([0, len(prefix) - 1])
        self._parts = np.array([0.0, 1.0])

    @property
    def n(self) -> int:
        """Vertices."""
        return len(self._work) - 1

    def at(self, vertices: Any) -> np.ndarray:
        """f at vertices."""
        if len(self._work) == 1:
            return np.zeros(np.shape(vertices))
        return np.interp(self._work[vertices], self._work[self._vertices], self._parts)

    def observe(self, bounds: Any, seconds: Any) -> None:
        """Blocks between `bounds` (p + 1,) took `seconds` (p,). What was known inside a block keeps its shape there.
        Raises DimensionMismatch, InvalidValue (also where the sum of the seconds is infinite), TypeError."""
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

    def split(self, p: int) -> np.ndarray:
        """Bounds (p + 1,) of blocks that take about the same time: cuts at the vertices nearest to f = i / p."""
        n, known = self.n, self._work[self._vertices]
        steps = np.concatenate([[True], np.diff(self._parts) > 0])  # f must ascend to be turned round
        wanted = np.interp(np.arange(1, p) / p, self._parts[steps], known[steps])
        after = np.clip(np.searchsorted(self._work, wanted), 1, max(n, 1)) if n else np.zeros(p - 1, np.int64)
        before = np.maximum(after - 1, 0)
        inner = np.where(wanted - self._work[before] <= self._work[after] - wanted, before, after)
        return np.concatenate([[0], inner, [n]]).astype(np.int64)


class Repartition(NamedTuple):
    """Bounds (p + 1,); seconds a round gains; seconds that moving takes; whether it is worth it."""

    bounds: np.ndarray
    gain: float
    cost: float
    worth: bool


def _busy(bounds: np.ndarray, seconds: Any) -> np.ndarray:
    """Seconds of blocks, but of those without vertices, which only wait."""
    return np.where(np.diff(bounds) > 0, np.asarray(seconds, float), 0.0)


def repartition(
    sums: PartialSums, prefix: Any, bounds: Any, seconds: Any, bytes_per_edge: float, bandwidth: float, rounds: float
) -> Repartition:
    """Whether to move from `bounds` (p + 1,), whose blocks just took `seconds` (p,), to those that `sums` gives after
    it has seen them: what the slowest block gains, against the edges that change hands, spread over the `rounds` still
    expected (Lux, section 5, steps 1 to 5; 1 / rounds is its alpha).

    prefix: that of `sums`; bandwidth: bytes a second into a device, above 0; bytes_per_edge, rounds: from 0 on.
    Raises DimensionMismatch, InvalidValue, TypeError; then nothing was observed.
    """
    prefix = ascending(prefix)
    if len(prefix) != sums.n + 1:
        raise DimensionMismatch(message(f"the prefix of the partial sums ({sums.n + 1},)", prefix.shape))
    if not (bandwidth > 0 and 0 <= bytes_per_edge < np.inf and rounds >= 0):
        given = f"{bandwidth}, {bytes_per_edge} and {rounds}"
        raise InvalidValue(message("a bandwidth above 0, bytes an edge and rounds from 0 on", given))
    sums.observe(bounds, seconds)
    bounds = whole(bounds)
    seconds = _busy(bounds, seconds)
    new = sums.split(len(seconds))
    expected = np.diff(sums.at(new)) * seconds.sum()
    gain = float(seconds.max() - expected.max())
    kept = np.maximum(prefix[np.minimum(new[1:], bounds[1:])] - prefix[np.maximum(new[:-1], bounds[:-1])], 0)
    arrived = np.diff(prefix[new]) - kept
    cost = float(arrived.max()) * bytes_per_edge / bandwidth  # devices receive at the same time
    return Repartition(new, gain, cost, cost < gain * rounds)


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
        return "push" if self.push < self.pull else "pull"


def predict(
    rates: Rates, edges: tuple[int, int], inputs: Iterable[int], updates: Iterable[int], devices: int, width: int
) -> Prediction:
    """Seconds of a round (Lux, section 6, equations 10 to 14). edges: that a pull and a push touch; inputs: vertices
    that the devices of each host read, those of two devices twice; updates: vertices that each host needs of others;
    devices: of all hosts, 1 or more; width: bytes a vertex. Blocks are taken as balanced. Raises InvalidValue."""
    if devices < 1:
        raise InvalidValue(message("one device or more", devices))
    moved = rates.transfer * width * sum(updates)
    load = rates.load * width * max(inputs, default=0)
    pull, push = (rate * count / devices for rate, count in zip((rates.pull, rates.push), edges, strict=True))
    return Prediction(load + pull + moved, push + moved)


def vertex_sets(indptr: Any, indices: Any, bounds: Any, host: Any) -> tuple[list[int], list[int]]:
    """(inputs, updates) of each host, as `predict` takes them, for blocks of rows between `bounds` (p + 1,) of a CSR
    matrix that pulls from its columns; host: of each block (p,), from 0 (Lux, section 4, equations 7 to 9)."""
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
