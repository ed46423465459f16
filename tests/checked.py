"""Algorithms on one graph, each by its own verifier."""

from __future__ import annotations

import numpy as np

import algos
from algos import verify


def verified(A) -> None:
    """Searches, shortest paths, ranks, components and triangles of an undirected graph; searches begin at a hub."""
    source = int(np.argmax(np.diff(A.to_csr()[0])))
    verify.bfs(A, source, *algos.bfs(A, source))
    verify.sssp(A, source, algos.sssp(A, source))
    verify.pagerank(A, algos.pagerank(A)[0])
    verify.connected_components(A, algos.connected_components(A))
    verify.triangles(A, algos.triangle_count(A))
