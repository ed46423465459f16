"""What is known of a frontier's block when somebody decides who computes it: a tally, and features of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .simplex import MOST

BINS = 64  # bin 0: no edge; bin b: 2**(b-1) <= degree < 2**b
NAMES = ("mean", "range", "gini", "entropy")

_LEAST = np.concatenate([[0.0], 2.0 ** np.arange(BINS - 1)])
_MOST = np.concatenate([[0.0], 2.0 ** np.arange(1, BINS) - 1])
_PLACES = {str(b): b for b in range(BINS)}


class Tally(NamedTuple):
    """The frontier of one block.

    Attributes
    ----------
    vertices : int
        Number of vertices.
    edges : int
        The sum of their degrees.
    histogram : numpy.ndarray
        How many vertices have each number of binary digits in their degree (64,).
    """

    vertices: int
    edges: int
    histogram: np.ndarray

    @classmethod
    def of(cls, degrees: Any) -> "Tally":
        """Return the tally of degrees (vertices,), as kernels count it."""
        degrees = np.asarray(degrees, np.int64)
        digits = np.frexp(degrees.astype(np.float64))[1]  # degrees are below 2**53
        return cls(len(degrees), int(degrees.sum()), np.bincount(digits, minlength=BINS))

    def to_json(self) -> dict[str, Any]:
        """The tally as a dictionary for JSON, with the bins that are not empty."""
        bins = {str(b): int(self.histogram[b]) for b in np.flatnonzero(self.histogram)}
        return {"vertices": self.vertices, "edges": self.edges, "histogram": bins}

    @classmethod
    def read(cls, told: dict[str, Any] | None) -> "Tally | None":
        """What `told` gave, or None. Raises KeyError, ValueError, TypeError, AttributeError."""
        if told is None:
            return None
        vertices, edges, bins = _whole(told["vertices"]), _whole(told["edges"]), told["histogram"]
        histogram = np.zeros(BINS, np.int64)
        inside = least = most = 0  # numbers of Python: an int64 may wrap
        for name, count in bins.items():
            if name not in _PLACES:
                raise ValueError(f"a histogram with bin {name!r}, which is none of 0 to {BINS - 1}")
            b = _PLACES[name]
            histogram[b] = _whole(count)
            inside, least, most = inside + count, least + count * (1 << b >> 1), most + count * ((1 << b) - 1)
        if inside != vertices or not least <= edges <= most:
            raise ValueError(f"{vertices} vertices and {edges} edges, which are not those of the histogram {bins}")
        return cls(vertices, edges, histogram)

    def __add__(self, other: "Tally") -> "Tally":  # type: ignore[override]
        """Both frontiers together."""
        histogram = self.histogram + other.histogram
        return Tally(self.vertices + other.vertices, self.edges + other.edges, histogram)


def features(tallies: Sequence[Tally]) -> np.ndarray:
    """Features of frontiers, from which models predict seconds an edge.

    The last three are of degrees as the histogram has them: within a bin they are taken as equal, at such a place
    between its ends that they sum to the edges.

    Parameters
    ----------
    tallies : sequence of Tally
        k frontiers.

    Returns
    -------
    numpy.ndarray
        Mean degree, range of degrees, Gini coefficient and degree-distribution entropy (k, 4); 0 without edges.

    References
    ----------
    Meng et al., GUM, ICDE 2023, table I.
    """
    edges = np.array([tally.edges for tally in tallies], float)[:, None]
    counts = np.array([tally.histogram for tally in tallies], float).reshape(-1, BINS)
    vertices = counts.sum(1, keepdims=True)
    degrees = _degrees(counts, edges)
    present = counts > 0
    spread = np.where(present, degrees, 0).max(1) - np.where(present, degrees, np.inf).min(1, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.cumsum(counts, axis=1) - counts
        ranks = counts * before + counts * (counts + 1) / 2  # sum of the places of a bin's vertices, from 1
        gini = 2 * (ranks * degrees).sum(1) / (vertices * edges)[:, 0] - (vertices[:, 0] + 1) / vertices[:, 0]
        part = degrees / edges
        entropy = -(counts * np.where(part > 0, part * np.log(part), 0)).sum(1) / np.log(vertices[:, 0])
        found = np.stack([edges[:, 0] / vertices[:, 0], spread, gini, np.where(vertices[:, 0] > 1, entropy, 1.0)], 1)
    return np.where(edges > 0, found, 0.0)


def _whole(number: Any) -> int:
    """A number of things. Raises ValueError."""
    if type(number) is not int or not 0 <= number < MOST:
        raise ValueError(f"expected a whole number from 0 on, below 2**62; came {number!r}")
    return number


def _degrees(counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """One degree a bin, (tallies, BINS)."""
    least, most = (counts * _LEAST).sum(1, keepdims=True), (counts * _MOST).sum(1, keepdims=True)
    place = np.divide(edges - least, most - least, out=np.zeros_like(least), where=most > least)
    return _LEAST + place * (_MOST - _LEAST)
