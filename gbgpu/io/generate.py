"""Graphs made from a seed: RMAT, uniform random, and grids with missing streets. No self-loops, no edge twice.

Each kind has a function that returns arrays, `*_edges` -> (n, rows, cols, values), and one that makes a Matrix of them.
Rows and columns are int64 and sorted by row, then column; `values` is None when no weights are asked for. A weight is a
hash of its edge, so both directions of an undirected edge have the same, whatever else is in the graph.
"""

from typing import Any

import numpy as np

from gbgpu import Matrix, dtypes
from gbgpu.errors import InvalidValue, message
from gbgpu.io import checks

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
    for parameters out of range, and weights that `dtype` has not; OutOfMemory.
    """
    _check_matrix(dtype, weights, name)
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

    Source: the Erdos-Renyi graph as GAP's "urand" draws it. Raises as `rmat` does.
    """
    _check_matrix(dtype, weights, name)
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

    Undirected. Raises as `rmat` does.
    """
    _check_matrix(dtype, weights, name)
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
    scale, edge_factor = checks.whole("scale", scale, 0, 32), checks.whole("edge_factor", edge_factor)
    a, b, c = (checks.real(letter, value, 0, 1) for letter, value in zip("abc", (a, b, c), strict=True))
    if a + b + c > 1:
        raise InvalidValue(message("probabilities a, b, c with a sum of at most 1", (a, b, c)))
    checks.flag("permute", permute)
    random, n, drawn = _random(seed), 1 << scale, edge_factor << scale
    with _memory(n, drawn, symmetric, weights):
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
    n, degree = checks.whole("n", n, 0, _MAX_VERTICES), checks.whole("degree", degree)
    random = _random(seed)
    with _memory(n, n * degree, symmetric, weights):
        rows, cols = random.integers(0, max(n, 1), (2, n * degree), dtype=np.uint64)
        return _finish(n, rows, cols, symmetric, weights)


def grid_road_edges(side: int, p: float = 0.7, *, seed: int, weights: Weights = None) -> Edges:
    """The arrays of `grid_road`."""
    side, p = checks.whole("side", side, 0, 1 << 16), checks.real("p", p, 0, 1)
    random, n = _random(seed), side * side
    with _memory(n, 2 * n, True, weights):
        crossings = np.arange(n, dtype=np.uint64).reshape(side, side)
        across, down = crossings[:, :-1].ravel(), crossings[:-1, :].ravel()
        across, down = (start[random.random(start.size) < p] for start in (across, down))
        ends = np.concatenate((across + np.uint64(1), down + np.uint64(side)))
        return _finish(n, np.concatenate((across, down)), ends, True, weights)


def _random(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(checks.whole("seed", seed)))


def _memory(n: int, drawn: int, symmetric: bool, weights: Weights) -> Any:
    """The memory that a graph takes at most while it is made, in NumPy's arrays (test_io holds it against their peak);
    parameters that are left are checked before."""
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
    lo, hi = _limits(weights)
    first, second = (np.minimum(rows, cols), np.maximum(rows, cols)) if symmetric else (rows, cols)
    hashed = ((first * size + second) * _MIX) >> np.uint64(40)
    return (hashed % np.uint64(hi - lo + 1)).astype(np.int64) + int(lo)


def _limits(weights: Weights) -> tuple[int, int]:
    """The lowest and the highest weight."""
    try:
        lo, hi = (1, 1) if weights is None else weights
        whole = int(lo) == lo and int(hi) == hi
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


def _matrix(edges: Edges, symmetric: bool, dtype: Any, name: str | None) -> Matrix:
    n, rows, cols, values = edges
    matrix = Matrix.from_coo(rows, cols, 1 if values is None else values, dtype, nrows=n, ncols=n, name=name)
    if symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix
