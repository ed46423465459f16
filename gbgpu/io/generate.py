"""Graphs made from a seed: RMAT, uniform random, and grids with missing streets. No self-loops, no edge twice.

Each kind has a function that returns arrays, `*_edges` -> (n, rows, cols, values), and one that makes a Matrix of them.
Rows and columns are int64 and sorted by row, then column; `values` is None when no weights are asked for. A weight is a
hash of its edge, so both directions of an undirected edge have the same, whatever else is in the graph.
"""

from typing import Any

import numpy as np

from gbgpu import Matrix
from gbgpu.errors import InvalidValue, message

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)
_MAX_VERTICES = 1 << 32  # an edge's key, row * n + column, has 64 bits

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
    """An RMAT graph: 2**scale vertices, 2**scale * edge_factor edges drawn, before loops and repeats go.

    `permute` relabels the vertices at random; `weights=(lo, hi)` gives whole weights from lo to hi, None a matrix of
    ones. Source: Chakrabarti, Zhan, Faloutsos (SDM 2004); the default probabilities are Graph500's. Raises InvalidValue
    for parameters out of range.
    """
    shape: dict[str, Any] = {"a": a, "b": b, "c": c, "permute": permute}
    edges = rmat_edges(scale, edge_factor, seed=seed, symmetric=symmetric, weights=weights, **shape)
    return _matrix(edges, symmetric, dtype, name)


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
    """A uniform random graph: n vertices, n * degree edges drawn with both ends uniform, before loops and repeats go.

    Source: the Erdos-Renyi graph as GAP's "urand" draws it. Raises InvalidValue for parameters out of range.
    """
    return _matrix(uniform_edges(n, degree, seed=seed, symmetric=symmetric, weights=weights), symmetric, dtype, name)


def grid_road(
    side: int,
    p: float = 0.7,
    *,
    seed: int,
    weights: Weights = None,
    dtype: Any = "INT64",
    name: str | None = None,
) -> Matrix:
    """A road-like graph: side x side crossings (vertex y * side + x), each street kept with probability p.

    Undirected. Raises InvalidValue for parameters out of range.
    """
    return _matrix(grid_road_edges(side, p, seed=seed, weights=weights), True, dtype, name)


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
    _require(0 <= scale <= 32, "a scale from 0 to 32", scale)
    _require(edge_factor >= 0, "an edge factor of at least 0", edge_factor)
    _require(min(a, b, c) >= 0 and a + b + c <= 1, "probabilities a, b, c with a sum of at most 1", (a, b, c))
    random = np.random.Generator(np.random.PCG64(seed))
    n, drawn = 1 << scale, edge_factor << scale
    rows, cols = np.zeros(drawn, np.uint64), np.zeros(drawn, np.uint64)
    for bit in range(scale):
        where = random.random(drawn, dtype=np.float32)
        right = ((where >= a) & (where < a + b)) | (where >= a + b + c)
        rows |= (where >= a + b).astype(np.uint64) << np.uint64(bit)
        cols |= right.astype(np.uint64) << np.uint64(bit)
    if permute:
        label = random.permutation(n).astype(np.uint64)
        rows, cols = label[rows], label[cols]
    return _finish(n, rows, cols, symmetric, weights)


def uniform_edges(n: int, degree: int = 16, *, seed: int, symmetric: bool = True, weights: Weights = None) -> Edges:
    """The arrays of `uniform`."""
    _require(0 <= n <= _MAX_VERTICES, "a number of vertices from 0 to 2**32", n)
    _require(degree >= 0, "a degree of at least 0", degree)
    random = np.random.Generator(np.random.PCG64(seed))
    rows, cols = random.integers(0, max(n, 1), (2, n * degree), dtype=np.uint64)
    return _finish(n, rows, cols, symmetric, weights)


def grid_road_edges(side: int, p: float = 0.7, *, seed: int, weights: Weights = None) -> Edges:
    """The arrays of `grid_road`."""
    _require(0 <= side <= 1 << 16, "a side from 0 to 65536", side)
    _require(0 <= p <= 1, "a probability", p)
    random = np.random.Generator(np.random.PCG64(seed))
    n = side * side
    crossings = np.arange(n, dtype=np.uint64).reshape(side, side)
    across, down = crossings[:, :-1].ravel(), crossings[:-1, :].ravel()
    across, down = (start[random.random(start.size) < p] for start in (across, down))
    ends = np.concatenate((across + np.uint64(1), down + np.uint64(side)))
    return _finish(n, np.concatenate((across, down)), ends, True, weights)


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
    values = None if weights is None else _weigh(size, rows, cols, symmetric, weights)
    return n, rows.astype(np.int64), cols.astype(np.int64), values


def _distinct(key: np.ndarray) -> np.ndarray:
    key.sort()
    return key[np.concatenate(([True], key[1:] != key[:-1]))] if key.size else key


def _split(key: np.ndarray, size: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    rows = key // max(size, np.uint64(1))
    return rows, key - rows * size


def _weigh(
    size: np.uint64, rows: np.ndarray, cols: np.ndarray, symmetric: bool, weights: tuple[int, int]
) -> np.ndarray:
    """Whole weights from lo to hi (int64), a hash of the edge."""
    lo, hi = weights
    whole = int(lo) == lo and int(hi) == hi
    _require(whole and lo <= hi < lo + (1 << 24), "whole weights (lo, hi) with lo <= hi < lo + 2**24", weights)
    first, second = (np.minimum(rows, cols), np.maximum(rows, cols)) if symmetric else (rows, cols)
    hashed = ((first * size + second) * _MIX) >> np.uint64(40)
    return (hashed % np.uint64(hi - lo + 1)).astype(np.int64) + int(lo)


def _matrix(edges: Edges, symmetric: bool, dtype: Any, name: str | None) -> Matrix:
    n, rows, cols, values = edges
    matrix = Matrix.from_coo(rows, cols, 1 if values is None else values, dtype, nrows=n, ncols=n, name=name)
    if symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _require(holds: bool, expected: str, came: object) -> None:
    if not holds:
        raise InvalidValue(message(expected, repr(came)))
