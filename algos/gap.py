"""The GAP benchmark suite: six kernels on five graphs, each trial timed and verified.

Three graphs of the suite are files. Where none is named, a generated graph of the same kind stands in, and the name
says so.

Source: Beamer, Asanovic, Patterson, "The GAP Benchmark Suite", arXiv:1508.03619; trials as in its reference code.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import gbgpu as gb
from algos import verify
from algos.betweenness import betweenness, check_betweenness
from algos.bfs import bfs
from algos.components import connected_components
from algos.graphs import both_ways, load
from algos.pagerank import pagerank
from algos.sssp import sssp
from algos.triangles import triangle_count
from gbgpu.errors import InvalidValue, message
from gbgpu.io.generate import weigh

ROOTS = 4  # searches of a trial of betweenness
TOLERANCE, ITERATIONS = 1e-4, 1000  # of PageRank
WEIGHTS = 1, 255
TWITTER, WEB = 24, 38  # arcs a vertex of the suite's files


class Kernel(NamedTuple):
    """Trials; `run(graph, sources)`, with the next `roots` sources; `check(graph, sources, result)`."""

    trials: int
    roots: int
    run: Callable[..., Any]
    check: Callable[..., None]


@dataclass
class Graph:
    """A graph of the suite: its matrix with weights, and the same with both directions of each arc."""

    name: str
    matrix: gb.Matrix
    undirected: gb.Matrix
    able: np.ndarray = field(init=False)  # vertices that have an arc

    def __post_init__(self) -> None:
        self.able = np.unique(self.matrix.to_coo(columns=False, values=False)[0])

    def sources(self, roots: int, seed: int) -> Iterator[list[int]]:
        """Sources of one trial after another; those of a trial differ."""
        random = np.random.default_rng(seed)
        while True:
            yield random.choice(self.able, min(roots, self.able.size), replace=False).tolist()


class Line(NamedTuple):
    """A row of the table; seconds of each trial, and those of peers."""

    graph: str
    kernel: str
    seconds: list[float]
    peers: dict[str, list[float]]


KERNELS = {
    "bfs": Kernel(64, 1, lambda g, at: bfs(g.matrix, at[0]), lambda g, at, out: verify.bfs(g.matrix, at[0], *out)),
    "sssp": Kernel(64, 1, lambda g, at: sssp(g.matrix, at[0]), lambda g, at, out: verify.sssp(g.matrix, at[0], out)),
    "pr": Kernel(
        16,
        0,
        lambda g, at: pagerank(g.matrix, tol=TOLERANCE, max_iterations=ITERATIONS, dtype="FP32").ranks,
        lambda g, at, out: verify.pagerank(g.matrix, out, tol=TOLERANCE),
    ),
    "cc": Kernel(
        16,
        0,
        lambda g, at: connected_components(g.matrix),
        lambda g, at, out: verify.connected_components(g.matrix, out),
    ),
    "bc": Kernel(
        16,
        ROOTS,
        lambda g, at: betweenness(g.matrix, at),
        lambda g, at, out: check_betweenness(g.matrix, out, at),
    ),
    "tc": Kernel(
        3,
        0,
        lambda g, at: triangle_count(g.undirected),
        lambda g, at, out: verify.triangles(g.undirected, out),
    ),
}


def _drawn(make: Callable[..., gb.Matrix], *numbers: int, **options: Any) -> Callable[[int], gb.Matrix]:
    return partial(make, *numbers, weights=WEIGHTS, name="A", **options)


def generators(scale: int) -> dict[str, tuple[str, Callable[..., gb.Matrix]]]:
    """What each graph is called, and what makes it from a seed; about 2**scale vertices each."""
    rmat, n = gb.io.rmat, 1 << scale
    return {
        "kron": (f"kron (scale {scale})", _drawn(rmat, scale, 16)),
        "urand": (f"urand (scale {scale})", _drawn(gb.io.uniform, n, 16)),
        "road": (f"road (stand-in: grid, 2^{scale} vertices)", _drawn(gb.io.grid_road, round(n**0.5))),
        "twitter": (f"twitter (stand-in: directed RMAT, scale {scale})", _drawn(rmat, scale, TWITTER, symmetric=False)),
        "web": (
            f"web (stand-in: directed RMAT in its own order, scale {scale})",
            _drawn(rmat, scale, WEB, symmetric=False, permute=False),
        ),
    }


def graph(name: str, scale: int, seed: int, file: str | None) -> Graph:
    """A graph of the suite, of a file or made. InvalidValue if it has no edges; else as `gb.io.read` and generators."""
    called, make = generators(scale)[name]
    if file is None:
        A = make(seed=seed)
    else:
        called, A = f"{name} ({file})", load(file, dup_op="min")
        A = weighed(A)
    if not A.nvals:
        raise InvalidValue(message("a graph with edges", f"none in {called}", "--scale 10"))
    return Graph(called, A, both_ways(A))


def weighed(A: gb.Matrix) -> gb.Matrix:
    """A with whole weights from 1 to 255 if all of its values are equal; both directions of an edge get the same."""
    if not (A.ss.is_iso and A.nvals):
        return A
    rows, cols, _ = A.to_coo(values=False)
    ends = (ids.astype(np.uint64) for ids in (rows, cols))
    weights = weigh(np.uint64(A.nrows), *ends, True, WEIGHTS)
    return gb.Matrix.from_coo(rows, cols, weights, nrows=A.nrows, ncols=A.ncols, name="A")


def measured(
    graph: Graph,
    name: str,
    seed: int,
    trials: int | None = None,
    peers: Mapping[str, Callable[[list[int]], Any]] = MappingProxyType({}),
) -> Line:
    """The trials of one kernel, and after each of them those of peers with the same sources. A call of each before
    compiles the kernels. VerificationError for a wrong result; peers' results are not looked at."""
    kernel, first = KERNELS[name], next(graph.sources(KERNELS[name].roots, seed))
    kernel.run(graph, first)
    for peer in peers.values():
        peer(first)
    seconds: list[float] = []
    others: dict[str, list[float]] = {peer: [] for peer in peers}
    at = graph.sources(kernel.roots, seed)
    for _ in range(trials or kernel.trials):
        sources = next(at)
        gb.synchronize()
        start = perf_counter()
        found = kernel.run(graph, sources)
        gb.synchronize()
        seconds.append(perf_counter() - start)
        for peer, took in others.items():
            start = perf_counter()
            peers[peer](sources)
            took.append(perf_counter() - start)
        kernel.check(graph, sources, found)
    return Line(graph.name, name, seconds, others)


def run(
    graphs: Sequence[str],
    kernels: Sequence[str],
    scale: int,
    seed: int,
    files: Mapping[str, str],
    trials: int | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> Iterator[Line]:
    """A line for each kernel on each graph. `step` is told what begins."""
    for name in graphs:
        step(f"making {name}")
        made = graph(name, scale, seed, files.get(name))
        for kernel in kernels:
            step(f"{kernel} on {made.name}")
            yield measured(made, kernel, seed, trials)
