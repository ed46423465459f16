"""Graph algorithms written as statements over semirings, one short file each. Arc i -> j is A[i, j]; a stored zero is
an edge.

Each file declares its row of the command `gbgpu run`, which has them in the order of these imports.
"""

# isort: off
from algos import verify as verify
from algos.bfs import bfs as bfs, bfs_levels as bfs_levels, direction_optimizing_bfs as direction_optimizing_bfs
from algos.bfs import multi_source_bfs as multi_source_bfs
from algos.sssp import shortest_path_tree as shortest_path_tree, sssp as sssp
from algos.pagerank import pagerank as pagerank
from algos.residuals import pagerank_push as pagerank_push
from algos.components import connected_components as connected_components
from algos.strong import strongly_connected_components as strongly_connected_components
from algos.triangles import triangle_count as triangle_count, triangles as triangles
from algos.forest import minimum_spanning_forest as minimum_spanning_forest
from algos.cores import core_numbers as core_numbers
from algos.independent import maximal_independent_set as maximal_independent_set
from algos.betweenness import betweenness as betweenness, edge_betweenness as edge_betweenness
from algos.clustering import (
    average_clustering as average_clustering,
    clustering as clustering,
    transitivity as transitivity,
)
from algos.closeness import closeness as closeness, harmonic as harmonic
from algos._iterations import ConvergenceError as ConvergenceError
from algos.eigenvector import eigenvector as eigenvector
from algos.katz import katz as katz
from algos.hits import hits as hits
from algos.truss import k_truss as k_truss, truss_numbers as truss_numbers
from algos.coloring import greedy_color as greedy_color
from algos.labels import label_propagation as label_propagation
from algos.similarity import (
    adamic_adar as adamic_adar,
    common_neighbors as common_neighbors,
    jaccard as jaccard,
    jaccard_coefficient as jaccard_coefficient,
    overlap as overlap,
    preferential_attachment as preferential_attachment,
    resource_allocation as resource_allocation,
)
from algos.factors import collaborative_filtering as collaborative_filtering, predictions as predictions
from algos.filter import predicate_filter as predicate_filter
