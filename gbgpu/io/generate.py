"""Graphs made from a seed: RMAT, uniform random, and grids with missing streets.

No self-loops, no edge twice. Where all devices are GPUs, these draw large ones, each what is to lie with it: the same
graphs, bit for bit.

Each kind has a function that returns arrays, `*_edges` -> (n, rows, cols, values), and one that makes a Matrix of them.
Rows and columns are int64 and sorted by row, then column; `values` is None when no weights are asked for. A weight is a
hash of its edge, so both directions of an undirected edge have the same, whatever else is in the graph.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gbgpu import Matrix, dtypes, settings
from gbgpu.errors import InvalidValue, message
from gbgpu.interrupts import imported
from gbgpu.io import checks

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)
_LOW = np.uint64(0xFFFFFFFF)
_CHUNK = 1 << 16  # words of 32 bits of the random stream
_PIECE = 1 << 19  # draws of a thread at once
_MAX_VERTICES = 1 << 32  # an edge's key, row * n + column, has 64 bits
LARGE = 1 << 18  # draws that are left to GPUs

Edges = tuple[int, np.ndarray, np.ndarray, np.ndarray | None]
Weights = tuple[int, int] | None


def rmat(
    scale: int,
    edge_factor: int = 16,
    *,
    seed: int,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    symmetric: bool = True,
    permute: bool = True,
    weights: Weights = None,
    dtype: Any = "INT64",
    name: str | None = None,
) -> Matrix:
    """An RMAT graph, with few vertices of most edges, as social networks have.

    Parameters
    ----------
    scale : int
        2**scale vertices, up to 2**32.
    edge_factor : int
        2**scale * edge_factor edges are drawn, before loops and repeats go.
    seed : int
        The same seed gives the same graph.
    a, b, c : float
        Probabilities of three quadrants, with a sum of at most 1; the defaults are Graph500's.
    symmetric : bool
        Whether every arc has its reverse.
    permute : bool
        Whether to relabel the vertices at random.
    weights : (int, int), optional
        Whole weights from the first to the second. By default every entry is 1.
    dtype : dtype
        The type of the values.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        2**scale x 2**scale, without loops.

    Raises
    ------
    InvalidValue
        If a parameter is out of range, or `dtype` has not the weights.
    OutOfMemory
        If the host or a GPU has no room.

    References
    ----------
    Chakrabarti, Zhan, Faloutsos, "R-MAT: A Recursive Model for Graph Mining", SDM 2004.
    """
    _check_matrix(dtype, weights, name)
    shape: dict[str, Any] = {"a": a, "b": b, "c": c, "permute": permute}
    return _matrix(_rmat(scale, edge_factor, seed, symmetric=symmetric, weights=weights, **shape), dtype, name)


def uniform(
    n: int,
    degree: int = 16,
    *,
    seed: int,
    symmetric: bool = True,
    weights: Weights = None,
    dtype: Any = "INT64",
    name: str | None = None,
) -> Matrix:
    """A uniform random graph, as GAP's "urand" draws the Erdos-Renyi graph.

    Parameters
    ----------
    n : int
        Vertices.
    degree : int
        n * degree edges are drawn with both ends uniform, before loops and repeats go.
    seed : int
        The same seed gives the same graph.
    symmetric : bool
        Whether every arc has its reverse.
    weights : (int, int), optional
        Whole weights from the first to the second. By default every entry is 1.
    dtype : dtype
        The type of the values.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        n x n, without loops.

    Raises
    ------
    InvalidValue, OutOfMemory
        As `rmat`.
    """
    _check_matrix(dtype, weights, name)
    return _matrix(_uniform(n, degree, seed, symmetric, weights), dtype, name)


def grid_road(
    side: int,
    p: float = 0.7,
    *,
    seed: int,
    weights: Weights = None,
    dtype: Any = "INT64",
    name: str | None = None,
) -> Matrix:
    """A road-like undirected graph: a grid of crossings, of whose streets some are missing.

    Parameters
    ----------
    side : int
        side x side crossings; vertex y * side + x.
    p : float
        The probability of each street.
    seed : int
        The same seed gives the same graph.
    weights : (int, int), optional
        Whole weights from the first to the second. By default every entry is 1.
    dtype : dtype
        The type of the values.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        side**2 x side**2, symmetric.

    Raises
    ------
    InvalidValue, OutOfMemory
        As `rmat`.
    """
    _check_matrix(dtype, weights, name)
    return _matrix(_grid_road(side, p, seed, weights), dtype, name)


def rmat_edges(
    scale: int,
    edge_factor: int = 16,
    *,
    seed: int,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    symmetric: bool = True,
    permute: bool = True,
    weights: Weights = None,
) -> Edges:
    """The arrays of `rmat`."""
    shape: dict[str, Any] = {"a": a, "b": b, "c": c, "permute": permute}
    return _rmat(scale, edge_factor, seed, symmetric=symmetric, weights=weights, **shape).edges()


def rmat_tuples(scale: int, edge_factor: int = 16, *, seed: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Number of vertices, tails and heads of the edges as they are drawn for `rmat`: with loops and repeats.

    Tails and heads are INT32 where that has room for the vertices, else INT64.
    """
    drawn = _rmat(scale, edge_factor, seed, 0.57, 0.19, 0.19, symmetric=False, permute=True, weights=None)
    with _memory(drawn.n, drawn.edges_drawn, False, None):
        tails, heads = np.empty((2, drawn.units), np.int32 if drawn.n <= 1 << 31 else np.int64)

        def fill(lo: int) -> None:
            part = slice(lo, min(lo + _PIECE, drawn.units))
            tails[part], heads[part] = drawn.draw(part.start, part.stop)

        with imported("concurrent.futures").ThreadPoolExecutor() as pool:
            for _ in pool.map(fill, range(0, drawn.units, _PIECE)):
                pass
    return drawn.n, tails, heads


def uniform_edges(n: int, degree: int = 16, *, seed: int, symmetric: bool = True, weights: Weights = None) -> Edges:
    """The arrays of `uniform`."""
    return _uniform(n, degree, seed, symmetric, weights).edges()


def grid_road_edges(side: int, p: float = 0.7, *, seed: int, weights: Weights = None) -> Edges:
    """The arrays of `grid_road`."""
    return _grid_road(side, p, seed, weights).edges()


class Recipe(NamedTuple):
    """What GPUs are told of a graph (device/entries.py).

    `units`: draws. Of RMAT edges a draw is a bit of both ends for each of `planes`; of uniform ones both ends, which
    lie `stride` words of the random stream apart; of grids the streets, across and then down. `cuts`: probabilities;
    `labels()`: new names of the vertices.
    """

    kind: str
    seed: int
    n: int
    units: int
    symmetric: bool
    weights: Weights
    stride: int = 0
    planes: int = 0
    side: int = 0
    cuts: tuple[Any, ...] = ()
    labels: Callable[[], np.ndarray] | None = None


@dataclass
class _Drawn:
    """A graph that is drawn in any shares.

    `draw(lo, hi)` gives the ends of the edges of units lo .. hi - 1 of `units`, the same ones whoever draws the others.
    """

    n: int
    edges_drawn: int
    units: int
    symmetric: bool
    weights: Weights
    draw: Callable[[int, int], tuple[np.ndarray, np.ndarray]]
    words: "_Words | None" = None  # where draws don't take as many words of the random stream each
    recipe: Recipe | None = None

    def edges(self, share: int = 0, shares: int = 1) -> Edges:
        """The arrays of one share; entries of different shares may be the same."""
        lo, hi, room = self._share(share, shares)
        with room:
            return _finish(self.n, *self.draw(lo, hi), self.symmetric, self.weights)

    def counted(self, share: int, shares: int) -> np.ndarray:
        """What `_Words.before` is made of, from all shares."""
        assert self.words is not None
        with self._share(share, shares)[-1]:
            return self.words.counted(share, shares, 2 * self.edges_drawn)

    def _share(self, share: int, shares: int) -> tuple[int, int, Any]:
        """The units of a share, and the memory that these take."""
        lo, hi = (self.units * k // shares for k in (share, share + 1))
        drawn = self.edges_drawn * (hi - lo) // max(self.units, 1)
        return lo, hi, _memory(self.n, drawn, self.symmetric, self.weights)


def _rmat(
    scale: int, edge_factor: int, seed: int, a: float, b: float, c: float, symmetric: bool, permute: bool, weights: Any
) -> _Drawn:
    scale, edge_factor = checks.whole("scale", scale, 0, 32), checks.whole("edge_factor", edge_factor)
    a, b, c = (checks.real(letter, value, 0, 1) for letter, value in zip("abc", (a, b, c), strict=True))
    if a + b + c > 1:
        raise InvalidValue(message("probabilities a, b, c with a sum of at most 1", (a, b, c)))
    checks.flag("permute", permute)
    n, drawn = 1 << scale, edge_factor << scale
    checks.whole("seed", seed)

    def draw(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        rows, cols = np.zeros(hi - lo, np.uint64), np.zeros(hi - lo, np.uint64)
        for bit in range(scale):  # each number takes half a word
            where = _random(seed, (bit * drawn + lo) // 2).random(lo % 2 + hi - lo, dtype=np.float32)[lo % 2 :]
            right = ((where >= a) & (where < a + b)) | (where >= a + b + c)
            rows |= (where >= a + b).astype(np.uint64) << np.uint64(bit)
            cols |= right.astype(np.uint64) << np.uint64(bit)
        if permute:
            label = labels().astype(np.uint64)
            rows, cols = label[rows], label[cols]
        return rows, cols

    @cache
    def labels() -> np.ndarray:
        with checks.memory(f"new names of {n} vertices", 12 * n):
            return _random(seed, scale * drawn // 2).permutation(n).astype(np.uint32)

    cuts = tuple(map(np.float32, (a, a + b, a + b + c)))
    told: dict[str, Any] = {"stride": drawn // 2, "planes": scale, "cuts": cuts, "labels": labels if permute else None}
    recipe = Recipe("rmat", seed, n, drawn, symmetric, weights, **told)
    return _Drawn(n, drawn, drawn, symmetric, weights, draw, recipe=recipe)


def _uniform(n: int, degree: int, seed: int, symmetric: bool, weights: Weights) -> _Drawn:
    n, degree = checks.whole("n", n, 0, _MAX_VERTICES), checks.whole("degree", degree)
    checks.whole("seed", seed)
    drawn, words = n * degree, _Words(max(n, 1), seed)

    def draw(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        return words.numbers(lo, hi), words.numbers(drawn + lo, drawn + hi)

    straight = n > 1 and n & (n - 1) == 0  # each word is a number
    recipe = Recipe("uniform", seed, n, drawn, symmetric, weights, stride=drawn // 2) if straight else None
    return _Drawn(n, drawn, drawn, symmetric, weights, draw, words, recipe)


def _grid_road(side: int, p: float, seed: int, weights: Weights) -> _Drawn:
    side, p = checks.whole("side", side, 0, 1 << 16), checks.real("p", p, 0, 1)
    checks.whole("seed", seed)
    n = side * side

    def draw(lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        crossings = np.arange(lo * side, hi * side, dtype=np.uint64).reshape(hi - lo, side)
        across, down = crossings[:, :-1].ravel(), crossings[: side - 1 - lo].ravel()
        places = lo * (side - 1), side * (side - 1) + lo * side
        across, down = (
            start[_random(seed, place).random(start.size) < p]
            for start, place in zip((across, down), places, strict=True)
        )
        ends = np.concatenate((across + np.uint64(1), down + np.uint64(side)))
        return np.concatenate((across, down)), ends

    recipe = Recipe("grid", seed, n, 2 * side * max(side - 1, 0), True, weights, side=side, cuts=(p,))
    return _Drawn(n, 2 * n, side, True, weights, draw, recipe=recipe)


def _random(seed: int, words: int = 0) -> np.random.Generator:
    """The generator of a seed, so many words of 64 bits ahead."""
    stream = np.random.PCG64(seed)
    return np.random.Generator(stream.advance(words) if words else stream)


class _Words:
    """The numbers below n that a generator's `integers` makes of words of 32 bits.

    It passes some words, so that a number's place is known only where somebody counted: before[k] numbers come before
    chunk k. Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019.
    """

    def __init__(self, n: int, seed: int):
        self._n, self.seed, self.before = n, seed, np.zeros(1, np.int64)

    def _chunk(self, k: int, most: int) -> np.ndarray:
        """The numbers that a chunk, or its first words, give."""
        pairs = _random(self.seed, k * _CHUNK // 2).bit_generator.random_raw(min(_CHUNK, most + most % 2) // 2)
        scaled = pairs.astype("<u8", copy=False).view("<u4") * np.uint64(self._n)
        return (scaled >> np.uint64(32))[scaled & _LOW >= np.uint64((1 << 32) % self._n)]

    def counted(self, share: int, shares: int, numbers: int) -> np.ndarray:
        """How many numbers each chunk gives, of one share of those that about so many numbers take."""
        chunks = int(numbers / (1 - (1 << 32) % self._n / 2**32)) // _CHUNK
        lo, hi = (chunks * k // shares for k in (share, share + 1))
        if (1 << 32) % self._n == 0:
            return np.full(hi - lo, _CHUNK)
        return np.array([len(self._chunk(k, _CHUNK)) for k in range(lo, hi)], np.int64)

    def numbers(self, lo: int, hi: int) -> np.ndarray:
        """Numbers lo .. hi - 1 of all."""
        found, got = np.empty(hi - lo, np.uint64), 0
        k = int(np.searchsorted(self.before, lo, side="right")) - 1
        skip = lo - int(self.before[k])
        while got < len(found):
            made = self._chunk(k, _CHUNK if self._n & (self._n - 1) else skip + len(found) - got)
            part = made[skip : skip + len(found) - got]
            found[got : got + len(part)] = part
            got, skip, k = got + len(part), max(skip - len(made), 0), k + 1
        return found


def _memory(n: int, drawn: int, symmetric: bool, weights: Weights) -> Any:
    """The memory that a graph takes at most while it is made, in NumPy's arrays (test_io holds it against their peak).

    Parameters that are left are checked before.
    """
    checks.flag("symmetric", symmetric)
    _limits(weights)
    each = 56 + 40 * symmetric + (0 if weights is None else 8 + 40 * symmetric)
    return checks.memory(f"a graph of {n} vertices and {drawn} edges", 32 * n + each * drawn)


def _finish(n: int, rows: np.ndarray, cols: np.ndarray, symmetric: bool, weights: Weights) -> Edges:
    """Drop loops and repeats, add the other direction if asked, sort, weigh."""
    size = np.uint64(n)
    if symmetric:
        rows, cols = np.minimum(rows, cols), np.maximum(rows, cols)
    key = _distinct((rows * size + cols)[rows != cols])
    rows, cols = _split(key, size)
    if symmetric:
        key = np.concatenate((key, cols * size + rows))
        key.sort()
        rows, cols = _split(key, size)
    values = None if weights is None else weigh(size, rows, cols, symmetric, weights)
    return n, rows.astype(np.int64), cols.astype(np.int64), values


def _distinct(key: np.ndarray) -> np.ndarray:
    key.sort()
    return key[np.concatenate(([True], key[1:] != key[:-1]))] if key.size else key


def _split(key: np.ndarray, size: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    rows = key // max(size, np.uint64(1))
    return rows, key - rows * size


def weigh(
    size: np.uint64, rows: np.ndarray, cols: np.ndarray, symmetric: bool, weights: tuple[int, int]
) -> np.ndarray:
    """Whole weights from lo to hi (int64), a hash of the edge."""
    lo, hi = _limits(weights)
    first, second = (np.minimum(rows, cols), np.maximum(rows, cols)) if symmetric else (rows, cols)
    hashed = ((first * size + second) * _MIX) >> np.uint64(40)
    return (hashed % np.uint64(hi - lo + 1)).astype(np.int64) + int(lo)


def _limits(weights: Weights) -> tuple[int, int]:
    """The lowest and the highest weight."""
    try:
        lo, hi = (1, 1) if weights is None else weights
        whole = int(lo) == lo and int(hi) == hi
        lo, hi = (int(lo), int(hi)) if whole else (lo, hi)  # those of NumPy would wrap
    except (TypeError, ValueError, OverflowError):
        raise TypeError(message("weights: a pair of whole numbers (lo, hi), or None", repr(weights))) from None
    if not (whole and lo <= hi < lo + (1 << 24) and -(2**63) <= lo and hi < 2**63):
        expected = "whole weights (lo, hi) of 64 bits with lo <= hi < lo + 2**24"
        raise InvalidValue(message(expected, repr(weights)))
    return int(lo), int(hi)


def _check_matrix(dtype: Any, weights: Weights, name: str | None) -> None:
    """What only matrices are asked for; weights that the type has not would wrap."""
    checks.word("name", name, none=True)
    checks.fitting(np.array(_limits(weights)), dtypes.lookup_dtype(dtype))


def _matrix(drawn: _Drawn, dtype: Any, name: str | None) -> Matrix:
    """The graph as a matrix; of several ranks each draws a share of the edges."""
    session, recipe = settings.session(), drawn.recipe
    if recipe is not None and recipe.units >= LARGE and session.draws(drawn.n):
        checks.flag("symmetric", drawn.symmetric)
        weights = None if drawn.weights is None else _limits(drawn.weights)
        matrix = Matrix("INT64" if dtype is None else dtype, drawn.n, drawn.n, name=name)
        session.draw_matrix(matrix, recipe._replace(weights=weights))
        return _declared(matrix, drawn)
    ranks = session.ranks
    if ranks is None:
        n, rows, cols, values = drawn.edges()
    else:
        share = ranks.rank, ranks.size
        of: Any = drawn
        told = drawn.recipe or ("uniform", of.words.seed, drawn.n, drawn.units, drawn.symmetric, drawn.weights)
        ranks.does("a new graph", *told[:4], given=told[4:])
        if drawn.words is not None:
            counts = ranks.alike(lambda: drawn.counted(*share), "memory for a graph")
            drawn.words.before = np.cumsum([0, *np.concatenate(ranks.gathered(counts, "a random stream"))])
        n, rows, cols, values = ranks.alike(lambda: drawn.edges(*share), "a graph")
    ones, shape = 1 if values is None else values, {"nrows": n, "ncols": n}
    return _declared(Matrix.from_coo(rows, cols, ones, dtype, **shape, dup_op="first", name=name, local=True), drawn)


def _declared(matrix: Matrix, drawn: _Drawn) -> Matrix:
    if drawn.symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix
