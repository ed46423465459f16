"""A suite of benchmarks of one's own: an algorithm is timed, and checked, on each set of devices.

pip install '.[bench]', then: pytest examples/test_my_algorithms.py --benchmark-enable --gb-devices "cpu:1 cpu:2"
"""

import pytest
from scipy.sparse import csgraph

import algos
import gbgpu as gb
from algos import verify
from gbgpu.semiring import plus_pair


def common_neighbours(A):
    """For each edge, how many vertices are neighbours of both ends."""
    C = gb.Matrix(int, A.nrows, A.ncols)
    C(A.S) << plus_pair(A @ A.T)
    return C


@pytest.mark.gb_target(milliseconds=200)
def test_common_neighbours(gb_devices, gb_graph, gb_benchmark):
    A = gb_graph("rmat", 10)
    C = gb_benchmark(common_neighbours, A)
    assert C.reduce_scalar().new().value == 6 * algos.triangle_count(A)


@pytest.mark.gb_target(ratio=0.1)
@pytest.mark.parametrize("graph", [("rmat", 10), ("grid_road", 50)], ids=["social", "road"])
def test_bfs_beside_scipy(gb_devices, gb_graph, beside, graph):
    A = gb_graph(*graph)
    theirs = A.to_scipy_sparse()
    peers = {"SciPy": lambda: csgraph.breadth_first_order(theirs, 0)}
    beside(lambda: algos.bfs(A, 0), peers, check=lambda found: verify.bfs(A, 0, *found))
