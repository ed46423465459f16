"""The algorithms as the command and the demo run them: one table of run, verify and summary."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from algos import verify
from algos._inputs import row_lengths, vertex
from algos.bfs import bfs, bfs_levels
from algos.components import connected_components
from algos.pagerank import pagerank
from algos.sssp import sssp
from algos.triangles import triangle_count
from gbgpu import Matrix, Vector, io


@dataclass(frozen=True)
class Algorithm:
    """`run(A, source)` -> outcome; `verify(A, source, outcome)`; `summary(outcome)` -> a few numbers by name."""

    run: Callable[[Matrix, Any], Any]
    verify: Callable[[Matrix, Any, Any], None]
    summary: Callable[[Any], dict[str, Any]]
    takes_source: bool = False


def choose_source(A: Matrix, asked: int | None) -> int:
    """The vertex asked for, else the one of highest out-degree. IndexOutOfBound if there is none such."""
    if asked is not None or not A.nvals:
        return vertex(asked or 0, A.nrows)
    vertices, degrees = row_lengths(A).new().to_coo()
    return int(vertices[degrees.argmax()])


def _levels(outcome: tuple[Vector, Vector]) -> dict[str, Any]:
    _, levels = outcome[0].to_coo()
    return {"reached": levels.size, "depth": levels.max(initial=0)}


def _distances(distances: Vector) -> dict[str, Any]:
    _, lengths = distances.to_coo()
    return {"reached": lengths.size, "farthest": lengths.max()}


def _ranks(outcome: tuple[Vector, int, bool]) -> dict[str, Any]:
    ranks, iterations, converged = outcome
    vertices, values = ranks.to_coo()
    top = int(values.argmax()) if values.size else None
    highest = {} if top is None else {"top_vertex": vertices[top], "top_rank": values[top]}
    return {"iterations": iterations, "converged": converged, **highest}


def _labels(labels: Vector) -> dict[str, Any]:
    sizes = np.unique(labels.to_coo()[1], return_counts=True)[1]
    return {"components": sizes.size, "largest": sizes.max(initial=0)}


ALGORITHMS = {
    "bfs": Algorithm(bfs, lambda A, source, outcome: verify.bfs(A, source, *outcome), _levels, takes_source=True),
    "sssp": Algorithm(sssp, verify.sssp, _distances, takes_source=True),
    "pagerank": Algorithm(lambda A, _: pagerank(A), lambda A, _, outcome: verify.pagerank(A, outcome[0]), _ranks),
    "components": Algorithm(
        lambda A, _: connected_components(A), lambda A, _, labels: verify.connected_components(A, labels), _labels
    ),
    "triangles": Algorithm(
        lambda A, _: triangle_count(A),
        lambda A, _, count: verify.triangles(A, count),
        lambda count: {"triangles": count},
    ),
}


def rehearse() -> None:
    """Run everything on a small graph, unweighted and with weights of each usual type."""
    for dtype in ("BOOL", "INT64", "FP32", "FP64"):
        A = io.generate.rmat(7, 8, seed=1, weights=None if dtype == "BOOL" else (1, 9), dtype=dtype)
        bfs_levels(A, 0)
        for algorithm in ALGORITHMS.values():
            algorithm.run(A, 0)
        for ranks in ("FP32", "FP64"):
            pagerank(A, dtype=ranks)
            pagerank(A, dtype=ranks, tol=0, max_iterations=2)
