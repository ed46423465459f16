"""What a statement costs on a tiny graph, beside python-graphblas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphblas
import networkx as nx
import numpy as np
import pytest

import gbgpu as gb

LIMITS = {"masked vxm": 60, "assign": 30, "min_plus with accum": 60}  # microseconds a statement


def karate(module: Any) -> dict[str, tuple[Callable[[], object], Any]]:
    """Statements on Zachary's karate club and what they write, on objects that keep their contents between calls."""
    graph = nx.karate_club_graph().to_directed()
    rows, columns = np.array(graph.edges(), np.int64).T
    n = graph.number_of_nodes()
    pattern = module.Matrix.from_coo(rows, columns, True, dtype=bool, nrows=n, ncols=n)
    weights = module.Matrix.from_coo(rows, columns, 1.0, dtype="FP32", nrows=n, ncols=n)
    q = module.Vector.from_coo([0, 33], True, dtype=bool, size=n)
    visited = module.Vector.from_coo([0, 1, 33], True, dtype=bool, size=n)
    w, level = module.Vector(bool, size=n), module.Vector(int, size=n)
    d = module.Vector.from_coo([0], [0.0], dtype="FP32", size=n)
    semiring, least = module.semiring, module.binary.min
    return {
        "masked vxm": (lambda: w(~visited.S, module.replace) << semiring.any_pair(q @ pattern), w),
        "assign": (lambda: level(q.S) << 3, level),
        "min_plus with accum": (lambda: d(least) << semiring.min_plus(d @ weights), d),
    }


@pytest.mark.parametrize("devices", ["cpu:1", "auto"])
@pytest.mark.parametrize("what", LIMITS)
def test_karate(beside, devices, what):
    gb.init(devices)
    (ours, mine), (theirs, other) = karate(gb)[what], karate(graphblas)[what]
    beside(f"karate, {what}", devices, ours, {"python-graphblas": theirs}, rounds=2000, unit="us", at_most=LIMITS[what])
    for found, expected in zip(mine.to_coo(), other.to_coo(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
def test_spmv(beside, rmat, devices):
    A = rmat(18)
    x = np.random.default_rng(2).random(A.shape[0], dtype=np.float32)
    gb.init(devices)
    B, v, y = gb.Matrix.from_scipy_sparse(A), gb.Vector.from_dense(x), gb.Vector("FP32", size=A.shape[0])
    beside(
        "rmat18, FP32 y = A @ x",
        devices,
        lambda: y << gb.semiring.plus_times(B @ v),
        {"SciPy": lambda: A @ x},
        rounds=40,
        least=1 / 1.35 if devices == "cpu:1" else None,
        scale=18,
    )
    np.testing.assert_allclose(y.to_dense(0), A @ x, rtol=1e-4)
