"""Graph algorithms written as statements over semirings, one short file each. Arc i -> j is A[i, j]; a stored zero is
an edge.
"""

from algos import verify
from algos.bfs import bfs, bfs_levels
from algos.components import connected_components
from algos.pagerank import pagerank
from algos.sssp import sssp
from algos.triangles import triangle_count

__all__ = ["bfs", "bfs_levels", "connected_components", "pagerank", "sssp", "triangle_count", "verify"]
