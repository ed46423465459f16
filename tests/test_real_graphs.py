"""Every algorithm of the command on real graphs, checked by its verifier. DATA=dir names more that are not shipped, for
the long run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from programs import WIDE
from real import REAL, numbered
from test_algos import DATA, matrix

import algos
import gbgpu as gb
from algos import graphs, runs

FILES = sorted(Path(os.environ.get("DATA", DATA)).glob("*.mtx.gz"))
MOST = 1 << 18  # bytes of a file


def verified(A: gb.Matrix) -> None:
    """Run all algorithms on a graph, with arcs in both directions if it has vertices of one kind."""
    if A.nrows == A.ncols:
        A = gb.unary.one(gb.binary.first(A | A.T)).new()
    for name, algorithm in runs.ALGORITHMS.items():
        if A.nrows == A.ncols or name == "factors":
            chosen = algorithm.choose(A, {}).values()
            try:
                outcome = algorithm.run(A, *chosen)
            except algos.ConvergenceError:
                assert name in ("eigenvector", "hits")  # of graphs like paths
            else:
                algorithm.verify(A, *chosen, outcome)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", REAL)
def test_graphs_of_software_and_people(devices, name):
    verified(matrix(numbered(REAL[name]())))


@pytest.mark.skipif(not WIDE, reason="long")
@pytest.mark.parametrize("path", [path for path in FILES if path.stat().st_size < MOST], ids=lambda path: path.name)
def test_graphs_of_files(devices, path):
    verified(graphs.load(str(path), dup_op="first"))
