"""The graphs of the GPU figures, made on the GPU or read from files: undirected, without loops, no edge twice; the same
seed, the same graph on every GPU of one CuPy version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cupy
import numpy as np

import gbgpu as gb

GOLDEN = 0x9E3779B97F4A7C15
PIECE = 1 << 27  # entries that weights are made of at once, as memory is short


class Graph(NamedTuple):
    """CSR arrays of the symmetric matrix on the GPU (int64, int32, float32 weights 1 .. 255), and vertices to start
    from: one of highest degree, then random ones that have neighbours."""

    name: str
    n: int
    indptr: cupy.ndarray
    indices: cupy.ndarray
    weights: cupy.ndarray
    sources: list[int]

    @property
    def nnz(self) -> int:
        return int(self.indices.size)


def rmat(scale: int, factor: int, seed: int) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """Chakrabarti, Zhan, Faloutsos, "R-MAT", SDM 2004, with Graph500's .57 .19 .19 .05; vertices renamed at random."""
    a, b, c = 0.57, 0.19, 0.19
    n, random = 1 << scale, cupy.random.RandomState(seed)
    tails, heads = (cupy.zeros(n * factor, cupy.uint32) for _ in range(2))
    for bit in range(scale):
        drawn = random.random_sample(n * factor, dtype=cupy.float32)
        lower = drawn >= a + b
        right = ((drawn >= a) & ~lower) | (drawn >= a + b + c)
        tails |= lower.astype(cupy.uint32) << np.uint32(bit)
        heads |= right.astype(cupy.uint32) << np.uint32(bit)
    renamed = cupy.argsort(random.random_sample(n, dtype=cupy.float32)).astype(cupy.uint32)
    return n, renamed[tails], renamed[heads]


def uniform(scale: int, factor: int, seed: int) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """Erdos and Renyi: both ends of every edge are drawn alike."""
    n, random = 1 << scale, cupy.random.RandomState(seed)
    tails = random.randint(0, n, n * factor).astype(cupy.uint32)
    return n, tails, random.randint(0, n, n * factor).astype(cupy.uint32)


def road(side: int, share: float, seed: int) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """A square grid that keeps this share of its edges."""
    n, random = side * side, cupy.random.RandomState(seed)
    every = cupy.arange(n)
    across = every[every % side < side - 1]
    across = across[random.random_sample(across.size, dtype=cupy.float32) < share]
    down = every[: n - side]
    down = down[random.random_sample(down.size, dtype=cupy.float32) < share]
    tails, heads = cupy.concatenate([across, down]), cupy.concatenate([across + 1, down + side])
    return n, tails.astype(cupy.uint32), heads.astype(cupy.uint32)


def twins(scale: int, factor: int, seed: int) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """Two social networks side by side, and a tie between them for every 4096 of their edges."""
    half, random = 1 << (scale - 1), cupy.random.RandomState(seed)
    one, other = rmat(scale - 1, factor, seed), rmat(scale - 1, factor, seed + 1)
    ties = half * factor >> 12
    ends = [random.randint(0, half, ties).astype(cupy.uint32) for _ in range(2)]
    ends[1] += np.uint32(half)
    pairs = zip(one[1:], other[1:], ends, strict=True)
    tails, heads = (cupy.concatenate([mine, theirs + np.uint32(half), tie]) for mine, theirs, tie in pairs)
    return 2 * half, tails, heads


def crawl(scale: int, factor: int, seed: int) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """Pages in the order of a crawl: the distance to what a page refers to is a power of 2 that is drawn alike up to a
    64th of all pages; every eighth reference goes to the first page of a site of 256."""
    n, random = 1 << scale, cupy.random.RandomState(seed)
    tails = random.randint(0, n, n * factor)
    far = cupy.exp2(random.random_sample(n * factor, dtype=cupy.float32) * (scale - 6)).astype(cupy.int64)
    heads = cupy.where(random.randint(0, 2, n * factor) > 0, far, -far)
    del far
    heads += tails
    heads %= n
    heads = cupy.where(random.randint(0, 8, n * factor) > 0, heads, heads & ~255)
    return n, tails.astype(cupy.uint32), heads.astype(cupy.uint32)


def trail(scale: int, factor: int, seed: int) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """A crawl that ends in a calendar: each of the last 4096 pages refers to the next one, no other page to them."""
    n, tails, heads = crawl(scale, factor, seed)
    first = n - 4096
    others = (tails < first) & (heads < first)
    days = cupy.arange(first - 1, n - 1, dtype=cupy.uint32)
    return n, cupy.concatenate([tails[others], days]), cupy.concatenate([heads[others], days + 1])


GRAPHS: dict[str, Callable[[], tuple[int, cupy.ndarray, cupy.ndarray]]] = {
    "rmat18": lambda: rmat(18, 16, 1),
    "rmat22": lambda: rmat(22, 16, 1),
    "rmat24": lambda: rmat(24, 16, 1),
    "rmat26": lambda: rmat(26, 16, 1),
    "kron21": lambda: rmat(21, 48, 2),
    "urand23": lambda: uniform(23, 16, 3),
    "urand24": lambda: uniform(24, 16, 3),
    "twins24": lambda: twins(24, 16, 5),
    "twins25": lambda: twins(25, 16, 5),
    "twins26": lambda: twins(26, 16, 5),
    "crawl24": lambda: crawl(24, 16, 6),
    "crawl25": lambda: crawl(25, 16, 6),
    "crawl26": lambda: crawl(26, 16, 6),
    "trail24": lambda: trail(24, 16, 6),
    "road2m": lambda: road(1400, 0.7, 4),
    "road24m": lambda: road(4883, 0.62, 4),
}


def real(path: Path) -> tuple[int, cupy.ndarray, cupy.ndarray]:
    """A Matrix Market file, every arc both ways."""
    matrix = gb.io.mmread(path)
    rows, cols, _ = matrix.to_coo(values=False)
    return max(matrix.shape), cupy.asarray(rows.astype(np.uint32)), cupy.asarray(cols.astype(np.uint32))


def make(name: str, folder: str = "data") -> Graph:
    """The graph of this name, from GRAPHS, or of a file of this name in the folder."""
    made = GRAPHS.get(name) or (lambda: real(Path(folder, f"{name}.mtx.gz")))
    n, tails, heads = made()
    bits = np.int64(max(n - 1, 1).bit_length())
    edges = cupy.minimum(tails, heads).astype(cupy.int64) << bits
    edges |= cupy.maximum(tails, heads)
    edges = edges[tails != heads]
    del tails, heads
    edges.sort()
    edges = edges[cupy.concatenate([cupy.ones(1, bool), edges[1:] != edges[:-1]])]
    low = np.int64((1 << int(bits)) - 1)
    both = cupy.concatenate([edges, (edges & low) << bits | edges >> bits])
    del edges
    both.sort()
    indptr = cupy.searchsorted(both, cupy.arange(n + 1) << bits)
    indices, weights = cupy.empty(both.size, cupy.int32), cupy.empty(both.size, cupy.float32)
    for first in range(0, both.size, PIECE):
        piece = slice(first, first + PIECE)
        rows, cols = both[piece] >> bits, both[piece] & low
        indices[piece] = cols
        ends = (cupy.minimum(rows, cols) * n + cupy.maximum(rows, cols)).astype(cupy.uint64)
        weights[piece] = (ends * np.uint64(GOLDEN) >> np.uint64(40)) % np.uint64(255) + np.uint64(1)
    degrees = cupy.diff(indptr)
    chosen = np.random.RandomState(1).choice(cupy.flatnonzero(degrees).get(), 3, replace=False)
    return Graph(name, n, indptr, indices, weights, [int(degrees.argmax()), *(int(v) for v in chosen)])
