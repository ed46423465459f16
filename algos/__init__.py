"""Graph algorithms written as statements over semirings, one short file each. Arc i -> j is A[i, j]; a stored zero is
an edge.

Each file declares its row of the command `gbgpu run`, which has them in the order of these imports.
"""

# isort: off
from algos import verify as verify
from algos.bfs import bfs as bfs, bfs_levels as bfs_levels, multi_source_bfs as multi_source_bfs
from algos.sssp import sssp as sssp
from algos.pagerank import pagerank as pagerank
from algos.components import connected_components as connected_components
from algos.strong import strongly_connected_components as strongly_connected_components
from algos.triangles import triangle_count as triangle_count, triangles as triangles
from algos.cores import core_numbers as core_numbers
from algos.independent import maximal_independent_set as maximal_independent_set
from algos.betweenness import betweenness as betweenness, edge_betweenness as edge_betweenness
from algos.clustering import (
    average_clustering as average_clustering,
    clustering as clustering,
    transitivity as transitivity,
)
from algos.closeness import closeness as closeness, harmonic as harmonic
