"""What an edge costs, and the cost coefficients of a round (GUM, section III-B).

Compute seconds are learnt from features of the frontier, link seconds come from bandwidths.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .features import NAMES, Tally, features
from .files import numbers, reading
from .problem import Traffic
from .topology import Topology

DEGREE, _HIGHEST = 3, 4  # degrees of polynomials: that of the default, and the highest one that is read
_RATIOS = np.array([name in ("gini", "entropy") for name in NAMES])  # the other features span orders of magnitude
_BATCH, _RATE, _MOMENTUM = 32, 0.5, 0.9
_WEIGHT = np.finfo(float).max / 1000  # the largest weight: the sum of up to 1000 terms is a number


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Seconds an edge as a polynomial in the features, or in the first ones of them.

    Features that are degrees are taken by their logarithms. Features and seconds outside the range of the training are
    moved to its nearest end, as a polynomial tells nothing there.

    Attributes
    ----------
    weights : numpy.ndarray
        The weight of each term: 84 for 6 features and degree 3.
    lowest, highest : numpy.ndarray
        The range of each feature in training: (6,), or fewer if the polynomial has the first ones only.
    seconds : numpy.ndarray
        The least and the most in training (2,).
    error : float
        Root-mean-square relative error in training.
    degree : int
        The degree of the polynomial.
    """

    weights: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    seconds: np.ndarray
    error: float = 0.0
    degree: int = DEGREE

    def __call__(self, tallies: Sequence[Tally]) -> np.ndarray:
        """Seconds an edge of each frontier (tallies,)."""
        return self.predict(features(tallies))

    def predict(self, found: np.ndarray) -> np.ndarray:
        """Seconds an edge for rows of features (k, 6)."""
        terms = _terms(found[:, : len(self.lowest)], self.lowest, self.highest, self.degree)
        return np.minimum(np.maximum(terms @ self.weights, self.seconds[0]), self.seconds[1])

    def rmsre(self, found: np.ndarray, seconds: np.ndarray) -> float:
        """Root-mean-square relative error (GUM, equation 3)."""
        return float(np.sqrt(np.mean((self.predict(found) / np.asarray(seconds) - 1) ** 2)))

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; a file is whole or not there."""
        held = {name: np.asarray(part).tolist() for name, part in vars(self).items()}
        text = json.dumps({"kind": "seconds an edge", "features": NAMES[: len(self.lowest)], **held}, indent=1)
        if Path(path).exists() and not Path(path).is_file():  # a pipe, a device
            Path(path).write_text(text + "\n", encoding="utf-8")
            return
        part = Path(f"{path}.{os.getpid()}.part")
        try:
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> "Polynomial":
        """Read a model.

        Parameters
        ----------
        path : path
            A file that `save` wrote, or the name of a shipped model, such as "cpu-push".

        Returns
        -------
        Polynomial
            The model.

        Raises
        ------
        FileFormatError
            If the file is another.
        InvalidValue
            If there is no such name.
        OSError
            If the file is not there.
        """
        with reading(_file(path), "a model as Polynomial.save writes it") as held:
            degree, m = held["degree"], len(held["features"])
            if held["features"] != list(NAMES[:m]) or type(degree) is not int or not 0 <= degree <= _HIGHEST:
                raise ValueError("other features or another degree")
            parts = [numbers(held[name]) for name in ("weights", "lowest", "highest", "seconds", "error")]
            shapes = [(len(_powers(m, degree)),), (m,), (m,), (2,), ()]
            if [part.shape for part in parts] != shapes:
                raise ValueError(f"arrays of other shapes than {shapes}")
            weights, lowest, highest, seconds, error = parts
            if not (lowest <= highest).all() or not 0 <= seconds[0] <= seconds[1] or error < 0:
                raise ValueError("lowest above highest, or seconds or an error below 0")
            if not (lowest[~_RATIOS[:m]] > -1).all() or np.abs(weights).max() > _WEIGHT:
                raise ValueError("degrees below 0, or weights whose sum is no number")
            return cls(weights, lowest, highest, seconds, float(error), degree)


def by_direction(name: str | Path) -> Polynomial | dict[str, Polynomial]:
    """Return the model of a file or name, or both of a name, by their directions.

    The first part of the names of two shipped models ("cpu", "h100") stands for both, unless that is a file.
    """
    names = {way: f"{name}-{way}" for way in ("push", "pull")}
    if set(names.values()) <= shipped().keys() and not Path(name).exists():
        return {way: Polynomial.load(each) for way, each in names.items()}
    return Polynomial.load(name)


def shipped() -> dict[str, Path]:
    """The models that come with the package, by name."""
    return {file.stem: file for file in sorted((Path(__file__).parent / "learnt").glob("*.json"))}


def _file(model: str | Path) -> Path:
    """Of a shipped model or a path. A name without folder and suffix that is no file is a mistaken one of a model."""
    known, path = shipped(), Path(model)
    if str(model) in known:
        return known[str(model)]
    if str(model) in ("", path.name) and not path.suffix and not path.is_file():
        expected = f"a model's file, or the name of a shipped one: {', '.join(known)}"
        raise InvalidValue(message(expected, repr(str(model))))
    return path


def constant(seconds: float) -> Polynomial:
    """A model that knows one number of seconds an edge."""
    span = np.zeros(len(NAMES)), np.ones(len(NAMES))
    return Polynomial(np.eye(1, len(_powers(len(NAMES), DEGREE)))[0] * seconds, *span, np.array([seconds, seconds]))


def train(
    found: Any, seconds: Any, seed: int = 0, rounds: int = 200, *, degree: int = DEGREE, ridge: float = 0.1
) -> Polynomial:
    """A model of samples; the same seed gives the same model.

    Parameters
    ----------
    found : array
        Features (k, 6).
    seconds : array
        Seconds an edge (k,), all above 0.
    seed : int
        Draws the batches.
    rounds : int
        Passes over all samples.
    degree : int
        The degree of the polynomial, 0 to 4.
    ridge : float
        Ridge penalty: the factor of the sum of squared weights, without the constant term's, that is added to the mean
        square of relative errors.

    Returns
    -------
    Polynomial
        The model.

    Raises
    ------
    DimensionMismatch, InvalidValue
        If shapes do not fit, or numbers are not finite or not above 0.

    Notes
    -----
    Stochastic gradient descent on the mean square of relative errors (GUM, equation 3). The ridge penalty spreads
    weight over features that are correlated. A sample is drawn as often as its gradient is steep, and its step is
    shortened by as much: otherwise cheap edges, whose relative errors are steepest, would force tiny steps on all.
    Terms are products of Chebyshev polynomials, the same space in better coordinates.

    References
    ----------
    Needell, Srebro, Ward, "Stochastic gradient descent, weighted sampling, and the randomized Kaczmarz algorithm", NIPS
    2014.
    """
    found, seconds = np.asarray(found, float), np.asarray(seconds, float)
    k = len(seconds)
    if found.shape != (k, len(NAMES)) or seconds.shape != (k,):
        raise DimensionMismatch(message(f"features (k, {len(NAMES)}) and seconds (k,)", (found.shape, seconds.shape)))
    if not k or not np.isfinite(found).all() or not ((seconds > 0) & (seconds < np.inf)).all():
        raise InvalidValue(message("finite features and seconds above 0", f"{k} samples"))
    lowest, highest = found.min(0), found.max(0)
    unit = float(np.median(seconds))
    terms = _terms(found, lowest, highest, degree)
    small = np.sqrt(ridge * k) * np.eye(terms.shape[1])[1:]  # the constant term is the first one
    rows = np.concatenate([terms / (seconds / unit)[:, None], small])  # their products with weights should be `wanted`
    wanted, steep = np.arange(len(rows)) < k, (rows**2).sum(1)
    random = np.random.default_rng(seed)
    weights, motion, kept = np.zeros((3, terms.shape[1]))
    steps = rounds * -(-k // _BATCH)
    drawn = random.choice(len(rows), size=(steps, min(k, _BATCH)), p=steep / steep.sum())
    for step, chosen in enumerate(drawn):
        batch = rows[chosen]
        motion = _MOMENTUM * motion + ((wanted[chosen] - batch @ weights) / steep[chosen]) @ batch / len(chosen)
        weights = weights + _RATE * motion
        if 2 * step >= steps:  # the mean of the second half: what is left of the noise goes
            kept += weights / (steps - -(-steps // 2))
    model = Polynomial(kept * unit, lowest, highest, np.array([seconds.min(), seconds.max()]), degree=degree)
    return replace(model, error=model.rmsre(found, seconds))


@cache
def _powers(m: int, degree: int) -> np.ndarray:
    """The power of each of m features in each term, the constant term first (terms, m)."""
    return np.array([p for p in product(range(degree + 1), repeat=m) if sum(p) <= degree])


def _terms(found: np.ndarray, lowest: np.ndarray, highest: np.ndarray, degree: int) -> np.ndarray:
    """Products of Chebyshev polynomials (k, terms), of features on -1 .. 1."""
    scaled = np.array([lowest, highest, *np.minimum(np.maximum(found, lowest), highest)])
    plain = _RATIOS[: scaled.shape[1]]
    scaled = np.where(plain, scaled, np.log1p(np.where(plain, 0.0, scaled)))
    low, high, at = scaled[0], scaled[1], scaled[2:]
    at = np.divide(2 * (at - low), high - low, out=np.ones_like(at), where=high > low) - 1
    each = [np.ones_like(at), at]
    while len(each) <= degree:
        each.append(2 * at * each[-1] - each[-2])
    chosen = _powers(scaled.shape[1], degree)
    return np.array(each)[chosen, :, np.arange(scaled.shape[1])].prod(1).T  # (terms, m, k) -> (k, terms)


def link_seconds(links: Topology, bytes_per_edge: float, replicas: Any = None) -> np.ndarray:
    """Seconds of the link for an edge of block i on device j.

    Latency is a round's, not an edge's: thresholds have it.

    Parameters
    ----------
    links : Topology
        The links between n devices.
    bytes_per_edge : float
        Bytes of an edge that moves.
    replicas : array of bool, optional
        Whether device j holds a copy of block i (n, n).

    Returns
    -------
    numpy.ndarray
        Seconds (n, n): 0 at home and where there is a copy, infinite without a route.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(links.bandwidth > 0, bytes_per_edge / links.bandwidth, np.inf)
    return np.where(_near(links, replicas), 0.0, seconds)


def traffic(links: Topology, bytes_per_edge: float, replicas: Any = None) -> Traffic:
    """What the links of a device bear together, for `solve`; arguments as `link_seconds`."""
    return Traffic(np.where(_near(links, replicas), 0.0, bytes_per_edge), links.into, links.out)


def costs(
    edge_seconds: Any, links: Topology, bytes_per_edge: float, replicas: Any = None, evicted: Iterable[int] = ()
) -> np.ndarray:
    """Seconds an edge of block i takes on device j: link plus compute (c_ij).

    Parameters
    ----------
    edge_seconds : array
        Of blocks (n,), or of blocks on devices (n, n) where devices differ.
    links : Topology
        The links between n devices.
    bytes_per_edge : float
        Bytes of an edge that moves.
    replicas : array of bool, optional
        Whether device j holds a copy of block i (n, n).
    evicted : iterable of int
        Devices that cost infinitely much (GUM, section V-A).

    Returns
    -------
    numpy.ndarray
        Seconds (n, n).

    Raises
    ------
    DimensionMismatch
        If the shape is another.
    InvalidValue
        If an evicted device is none of 0 .. n - 1.
    """
    compute = np.asarray(edge_seconds, float)
    compute = compute[:, None] if compute.ndim == 1 else compute
    if compute.shape not in ((links.n, 1), (links.n, links.n)):
        raise DimensionMismatch(message(f"seconds an edge of {links.n} blocks", compute.shape))
    found = link_seconds(links, bytes_per_edge, replicas) + compute
    gone = list(evicted)
    if not all(0 <= d < links.n for d in gone):
        raise InvalidValue(message(f"devices from 0 to {links.n - 1} that are evicted", gone))
    found[:, gone] = np.inf
    return found


def _near(links: Topology, replicas: Any) -> np.ndarray:
    near = np.eye(links.n, dtype=bool)
    if replicas is None:
        return near
    held = np.asarray(replicas, bool)
    if held.shape != near.shape:
        raise DimensionMismatch(message(f"replicas ({links.n}, {links.n})", held.shape))
    return near | held
