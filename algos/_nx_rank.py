"""Centralities, link analysis, clusters and communities for NetworkX."""

from collections.abc import Hashable
from typing import Any

import networkx as nx
import numpy as np

from algos._nx_graph import Arrays
from algos._nx_offers import offer
from algos.pagerank import pagerank as ranks
from gbgpu import Vector

Node = Hashable


def _vector(arrays: Arrays, values: dict[Node, float]) -> Vector:
    """The values of the graph's nodes."""
    known = {arrays.numbers[node]: value for node, value in values.items() if node in arrays.numbers}
    return Vector.from_coo(list(known), list(known.values()), float, size=len(arrays))


@offer()
def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: dict | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: dict | None = None,
    weight: Any = "weight",
    dangling: dict | None = None,
) -> dict[Node, float]:
    arrays = G._arrays
    if not len(arrays):
        return {}
    weights = G._weights(weight)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise NotImplementedError("weights of at least 0")
    if not 0 <= alpha < 1 or max_iter < 1 or tol <= 0:
        raise NotImplementedError("alpha in [0, 1), max_iter and tol above 0")
    if personalization is not None and not any(personalization.get(node, 0) for node in arrays.nodes):
        raise ZeroDivisionError
    given = (personalization, dangling, nstart)
    if any(value < 0 for values in given if values for value in values.values()):
        raise NotImplementedError("distributions of numbers of at least 0")
    jumps, lost, start = (None if values is None else _vector(arrays, values) for values in given)
    even = bool((weights == weights[:1]).all())
    found = ranks(
        arrays.pattern() if even else arrays.matrix(weights.astype(float)),
        alpha,
        len(arrays) * tol,
        max_iter,
        weighted=not even,
        personalization=jumps,
        dangling=lost,
        start=start,
    )
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return arrays.by_node(found.ranks.to_dense(0.0))
