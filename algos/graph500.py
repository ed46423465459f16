"""Graph500: its two searches on a Kronecker graph, each result validated, and its output block.

Edges are tuples as they were drawn, self-loops and repeats included. Validation reads these tuples and the arrays that
a kernel returned, with NumPy only, or, where one GPU has all, with CuPy.

Source: the Graph 500 specification, version 2.0 (2017): kernels 1 to 3, validation, and output.
"""

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import gbgpu as gb
from algos.bfs import bfs
from algos.sssp import shortest_path_tree
from algos.verify import check, dense
from gbgpu import settings
from gbgpu.interrupts import imported
from gbgpu.io.generate import rmat_tuples

KEYS = 64  # searches of each kernel
PIECE = 1 << 26  # edges that are validated at once


class Tuples(NamedTuple):
    """Edges of 2**scale vertices: tails and heads (whole numbers, size m) and weights in [0, 1) (float32, size m).

    All are arrays of NumPy's, or of CuPy's.
    """

    n: int
    tails: Any
    heads: Any
    weights: Any

    def pieces(self) -> "Iterator[Tuples]":
        """All edges, some at a time."""
        for first in range(0, self.tails.size, PIECE):
            part = slice(first, first + PIECE)
            yield Tuples(self.n, self.tails[part], self.heads[part], self.weights[part])


class Searches(NamedTuple):
    """Seconds, traversed edges and seconds of validation of each search of a kernel."""

    seconds: list[float]
    edges: list[int]
    validation: list[float]


def generated(scale: int, edgefactor: int, seed: int) -> Tuples:
    """The tuples of a Kronecker graph, in random order."""
    n, tails, heads = rmat_tuples(scale, edgefactor, seed=seed)
    return Tuples(n, tails, heads, np.random.default_rng([seed, scale]).random(tails.size, dtype=np.float32))


def placed(edges: Tuples) -> Tuples:
    """The tuples on the GPU, if the session has one device, and it is a GPU."""
    if isinstance(values(gb.Vector(int, size=1), 0), np.ndarray):
        return edges
    return on_gpu(edges)


def on_gpu(edges: Tuples) -> Tuples:
    """The tuples on the first GPU."""
    return Tuples(edges.n, *map(imported("cupy").asarray, edges[1:]))


def has_room(edges: Tuples) -> bool:
    """Whether the first device of one process is a GPU that can hold the tuples while it sorts the arcs.

    An edge takes 48 bytes: 12 as a tuple, 24 as two arcs, and 12 while arcs are made.
    """
    first, count = gb.device_info()[0], edges.tails.size
    needed = 48 * count + gb.estimate_memory(edges.n, edges.n, 2 * count, "FP32").peak
    return processes() == 1 and first["kind"] == "cuda" and needed < first["free"]


def values(vector: gb.Vector, missing: float) -> Any:
    """The values at all places, `missing` where there is none: on the GPU, if one has all of the vector."""
    full = gb.Vector(vector.dtype, size=vector.size)
    full << missing
    full(gb.binary.second) << vector
    if hasattr(full, "__cuda_array_interface__"):
        return imported("cupy").asarray(full)
    return dense(vector, missing)[0]


def constructed(edges: Tuples) -> gb.Matrix:
    """Kernel 1: the symmetric matrix of all edges. Self-loops are left out, of repeats the lightest is kept.

    Of several ranks each gives its share of the tuples. GPUs sort the arcs, if the first one has room for all of them.
    """
    if isinstance(edges.tails, np.ndarray) and has_room(edges):
        edges = on_gpu(edges)
    share, shares = gb.rank(), processes()
    mine = slice(edges.tails.size * share // shares, edges.tails.size * (share + 1) // shares)
    tails, heads, weights = edges.tails[mine], edges.heads[mine], edges.weights[mine]
    apart = tails != heads
    pairs = (tails, heads), (heads, tails), (weights, weights)
    arcs = [np.concatenate((one[apart], other[apart])) for one, other in pairs]
    A = gb.Matrix.from_coo(*arcs, "FP32", nrows=edges.n, ncols=edges.n, dup_op="min", name="A", local=True)
    A.ss.declare_symmetric()
    return A


def search_keys(edges: Tuples, seed: int, count: int = KEYS) -> np.ndarray:
    """Distinct vertices that have an edge to another one, drawn at random; fewer than `count` if there are no more."""
    joined = np.zeros_like(edges.tails, bool, shape=edges.n)
    for part in edges.pieces():
        apart = part.tails != part.heads
        joined[part.tails[apart]] = joined[part.heads[apart]] = True
    able = np.flatnonzero(joined)
    chosen = np.random.default_rng([seed, edges.n]).choice(able.size, min(count, able.size), replace=False)
    return np.array([int(able[i]) for i in chosen.tolist()], np.int64)


def validate_bfs(edges: Tuples, key: int, levels: Any, parents: Any) -> None:
    """Check a search tree by the five rules of the specification; raises VerificationError.

    `levels` and `parents` are int64, size n, -1 where the search does not reach.
    """
    reached, depth = tree(parents, key)
    check((levels >= 0) == reached, "levels: a vertex has a level and a parent or neither")
    check(~reached | (levels == depth), "2: an arc of the tree does not join levels that differ by one")
    found = np.zeros_like(reached)
    for _, tails, heads, _ in edges.pieces():
        spans(tails, heads, reached)
        near = abs(levels[tails] - levels[heads]) <= 1
        check(~reached[tails] | near, "3: an edge spans more than one level", tails)
        found[heads[parents[heads] == tails]] = True
        found[tails[parents[tails] == heads]] = True
    found[key] = True
    check(found | ~reached, "5: a vertex and its parent are not joined by an edge")


def validate_sssp(edges: Tuples, key: int, distances: Any, parents: Any) -> None:
    """Check a tree of shortest paths by the five rules of the specification; raises VerificationError.

    `distances` (float32, size n) are infinite and `parents` (int64, size n) are -1 where the search does not reach.
    Sums are rounded as those of the kernel, so that equality is exact.
    """
    reached, _ = tree(parents, key)
    check(np.isfinite(distances) == reached, "distances: a vertex has a distance and a parent or neither")
    check(distances[key : key + 1] == 0, "distances: that of the search key is not 0", np.array([key]))
    joined, exact = np.zeros_like(reached), np.zeros_like(reached)
    for _, ends, others, weights in edges.pieces():
        spans(ends, others, reached)
        for tails, heads in ((ends, others), (others, ends)):
            through = distances[tails] + weights
            check(~reached[tails] | (distances[heads] <= through), "3: an edge is shorter than the difference", heads)
            child = parents[heads] == tails
            joined[heads[child]] = True
            exact[heads[child & (through == distances[heads])]] = True
    joined[key] = exact[key] = True
    check(joined | ~reached, "5: a vertex and its parent are not joined by an edge")
    check(exact | ~reached, "2: an arc of the tree is not as long as the difference of its distances")


def tree(parents: Any, key: int) -> tuple[Any, Any]:
    """Which vertices a tree from `key` has, and how many arcs lead to each; 0 outside.

    VerificationError unless the parents are a tree: the path from each vertex is doubled until it ends at the key.
    """
    n = parents.size
    check((parents >= -1) & (parents < n), "1: a parent is not a vertex")
    check(parents[key : key + 1] == key, "1: the search key is not its own parent", np.array([key]))
    reached = parents >= 0
    above = np.where(reached, parents, key)
    check(reached[above], "1: a parent is outside the tree")
    depth = reached.astype(np.int64)
    depth[key] = 0
    for _ in range(n.bit_length()):
        if (above == key).all():
            break
        depth += depth[above]
        above = above[above]
    check(above == key, "1: parents form a cycle")
    return reached, depth


def spans(tails: Any, heads: Any, reached: Any) -> None:
    """Check that the tree spans a whole component."""
    check(reached[tails] == reached[heads], "4: an edge leads out of the tree", tails)


def traversed(edges: Tuples, parents: Any) -> int:
    """Tuples within the component of a search, repeats and self-loops included."""
    return sum(int(np.count_nonzero(parents[part.tails] >= 0)) for part in edges.pieces())


def searched(
    edges: Tuples,
    keys: np.ndarray,
    kernel: Callable[[int], Any],
    missing: float,
    validate: Callable[[Tuples, int, Any, Any], None],
) -> Searches:
    """Run a kernel once from each key, and validate each result. One search before compiles the kernels."""
    found = Searches([], [], [])
    kernel(int(keys[0]))
    for key in keys.tolist():
        gb.synchronize()
        start = perf_counter()
        measure, parents = kernel(key)
        gb.synchronize()
        found.seconds.append(perf_counter() - start)
        start = perf_counter()
        measures, above = values(measure, missing), values(parents, -1)
        validate(edges, key, measures, above)
        found.edges.append(traversed(edges, above))
        found.validation.append(perf_counter() - start)
    return found


def run(
    scale: int, edgefactor: int = 16, seed: int = 1, count: int = KEYS, step: Callable[[str], None] = lambda text: None
) -> list[tuple[str, int | float]]:
    """The lines of the output block. VerificationError for the first result that is wrong.

    `step` is told what begins.
    """
    step("generating")
    start = perf_counter()
    edges = placed(generated(scale, edgefactor, seed))
    generation = perf_counter() - start
    step("construction")
    constructed(placed(generated(min(scale, 10), edgefactor, seed)))  # compiles the kernels
    gb.synchronize()
    start = perf_counter()
    A = constructed(edges)
    gb.synchronize()
    construction = perf_counter() - start
    keys = search_keys(edges, seed, count)
    if not keys.size:
        raise gb.errors.InvalidValue(gb.errors.message("a graph with edges", f"none at scale {scale}", "--scale 10"))
    step("breadth-first search")
    trees = searched(edges, keys, lambda key: bfs(A, key), -1, validate_bfs)
    step("shortest paths")
    paths = searched(edges, keys, lambda key: shortest_path_tree(A, key), np.inf, validate_sssp)
    return [
        ("SCALE", scale),
        ("edgefactor", edgefactor),
        ("NBFS", keys.size),
        ("graph_generation", generation),
        ("num_mpi_processes", processes()),
        ("construction_time", construction),
        *lines("bfs  {}_time", trees.seconds),
        *lines("sssp {}_time", paths.seconds),
        *lines("{}_nedge", trees.edges),
        *rates("bfs ", trees),
        *rates("sssp", paths),
        *lines("bfs  {}_validate", trees.validation),
        *lines("sssp {}_validate", paths.validation),
    ]


def text(found: Sequence[tuple[str, int | float]]) -> str:
    """The output block as the reference code prints it: names, and numbers from column 33."""
    return "\n".join(f"{name + ':':<32}{value:.11g}" for name, value in found)


def processes() -> int:
    """How many processes run the session."""
    ranks = settings.ranks_in_force()
    return 1 if ranks is None else ranks.size


def lines(name: str, values: Sequence[float]) -> Iterator[tuple[str, float]]:
    """The statistics of some values."""
    yield from ((name.format(label), value) for label, value in statistics(values).items())


def rates(kernel: str, found: Searches) -> Iterator[tuple[str, float]]:
    """Traversed edges a second: the statistics of seconds an edge, inverted.

    The deviation is the standard error of the harmonic mean (Norris, Ann. Math. Stat. 11(4), 1940).
    """
    each = statistics([seconds / edges for seconds, edges in zip(found.seconds, found.edges, strict=True)])
    quartiles = {"min": "max", "firstquartile": "thirdquartile", "median": "median"}
    quartiles |= {"thirdquartile": "firstquartile", "max": "min"}
    yield from ((f"{kernel} {label}_TEPS", 1 / each[other]) for label, other in quartiles.items())
    yield f"{kernel} harmonic_mean_TEPS", 1 / each["mean"]
    yield f"{kernel} harmonic_stddev_TEPS", each["stddev"] / each["mean"] ** 2 / sqrt(max(len(found.edges) - 1, 1))


def statistics(values: Sequence[float]) -> dict[str, float]:
    """Quartiles as the reference code has them, mean and sample standard deviation."""
    ordered, last = sorted(values), len(values) - 1

    def between(low: int, high: int) -> float:
        return (ordered[low] + ordered[high]) / 2

    return {
        "min": ordered[0],
        "firstquartile": between(last // 4, (last + 1) // 4),
        "median": between(last // 2, (last + 1) // 2),
        "thirdquartile": between(last - last // 4, last - (last + 1) // 4),
        "max": ordered[-1],
        "mean": float(np.mean(values)),
        "stddev": float(np.std(values, ddof=1)) if last else 0.0,
    }
