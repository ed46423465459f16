"""What is known of a frontier's block when somebody decides who computes it: a tally, and features of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .simplex import MOST

BINS = 64  # bin 0: no edge; bin b: 2**(b-1) <= degree < 2**b
NAMES = ("mean", "range", "gini", "entropy", "mean into", "range into")

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
    into : Tally or None
        The tally of the vertices' in-degrees. None: these are taken to equal the degrees.
    """

    vertices: int
    edges: int
    histogram: np.ndarray
    into: "Tally | None" = None

    @classmethod
    def of(cls, degrees: Any, into: Any = None) -> "Tally":
        """Return the tally of degrees (vertices,), and of in-degrees (vertices,) if they are given."""
        degrees = np.asarray(degrees, np.int64)
        digits = np.frexp(degrees.astype(np.float64))[1]  # degrees are below 2**53
        histogram = np.bincount(digits, minlength=BINS)
        return cls(len(degrees), int(degrees.sum()), histogram, None if into is None else cls.of(into))

    def to_json(self) -> dict[str, Any]:
        """The tally as a dictionary for JSON, with the bins that are not empty."""
        bins = {str(b): int(self.histogram[b]) for b in np.flatnonzero(self.histogram)}
        into = {} if self.into is None else {"into": self.into.to_json()}
        return {"vertices": self.vertices, "edges": self.edges, "histogram": bins, **into}

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
        into = cls.read(told.get("into"))
        if into is not None and into.vertices != vertices:
            raise ValueError(f"{vertices} vertices, and in-degrees of {into.vertices}")
        return cls(vertices, edges, histogram, into)

    def __add__(self, other: "Tally") -> "Tally":  # type: ignore[override]
        """Both frontiers together."""
        histogram = self.histogram + other.histogram
        same = self.into is None and other.into is None
        into = None if same else (self.into or self) + (other.into or other)
        return Tally(self.vertices + other.vertices, self.edges + other.edges, histogram, into)


def features(tallies: Sequence[Tally]) -> np.ndarray:
    """Features of frontiers, from which models predict seconds an edge.

    All but the means follow from the histogram. The degrees of a bin are taken to be equal, and to lie at such a place
    between its ends that all degrees sum to the edges.

    Parameters
    ----------
    tallies : sequence of Tally
        k frontiers.

    Returns
    -------
    numpy.ndarray
        Mean degree, range of degrees, Gini coefficient and degree-distribution entropy, mean and range of in-degrees
        (k, 6); 0 without edges.

    References
    ----------
    Meng et al., GUM, ICDE 2023, table I.
    """
    k, sides = len(tallies), [*tallies, *(tally.into or tally for tally in tallies)]
    edges = np.array([tally.edges for tally in sides], float)[:, None]
    counts = np.array([tally.histogram for tally in sides], float).reshape(-1, BINS)
    bins = np.flatnonzero(counts.any(0))
    counts, least, most = counts[:, bins], _LEAST[bins], _MOST[bins]
    room, beyond = counts @ (most - least), edges[:, 0] - counts @ least
    place = np.divide(beyond, room, out=np.zeros_like(room), where=room > 0)[:, None]
    degrees = least + place * (most - least)  # one a bin
    present = counts > 0
    lowest, highest = np.where(present, degrees, np.inf).min(1, initial=np.inf), (present * degrees).max(1, initial=0)
    spread = highest - lowest
    vertices = counts.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = edges[:, 0] / vertices
        counts, degrees, edges, n = counts[:k], degrees[:k], edges[:k], vertices[:k]
        ranks = counts * (np.cumsum(counts, axis=1) - (counts - 1) / 2)  # sum of the places of a bin's vertices, from 1
        gini = 2 * (ranks * degrees).sum(1) / (n * edges[:, 0]) - (n + 1) / n
        part = degrees / edges
        entropy = -(counts * part * np.log(np.where(part > 0, part, 1.0))).sum(1) / np.log(n)
        entropy = np.where(n > 1, entropy, 1.0)
        found = np.stack([mean[:k], spread[:k], gini, entropy, mean[k:], spread[k:]], 1)
    return np.where(edges > 0, found, 0.0)


def _whole(number: Any) -> int:
    """A number of things. Raises ValueError."""
    if type(number) is not int or not 0 <= number < MOST:
        raise ValueError(f"expected a whole number from 0 on, below 2**62; came {number!r}")
    return number
