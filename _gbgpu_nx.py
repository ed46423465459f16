"""What NetworkX reads of its backend `gbgpu` whenever it is imported. So nothing of gbgpu is imported here."""

GROUPS = {
    "searches": """bfs_edges bfs_layers bfs_predecessors bfs_successors bfs_tree generic_bfs_edges ancestors descendants
        descendants_at_distance""",
    "paths of arcs": """all_pairs_shortest_path all_pairs_shortest_path_length bidirectional_shortest_path has_path
        predecessor shortest_path shortest_path_length single_source_shortest_path single_source_shortest_path_length
        single_target_shortest_path single_target_shortest_path_length""",
    "weighted paths": """all_pairs_bellman_ford_path all_pairs_bellman_ford_path_length all_pairs_dijkstra
        all_pairs_dijkstra_path all_pairs_dijkstra_path_length bellman_ford_path bellman_ford_path_length
        bidirectional_dijkstra dijkstra_path dijkstra_path_length floyd_warshall floyd_warshall_numpy johnson
        multi_source_dijkstra multi_source_dijkstra_path multi_source_dijkstra_path_length negative_edge_cycle
        single_source_bellman_ford single_source_bellman_ford_path single_source_bellman_ford_path_length
        single_source_dijkstra single_source_dijkstra_path single_source_dijkstra_path_length""",
    "distances": """average_shortest_path_length center closeness_centrality diameter eccentricity global_efficiency
        harmonic_centrality periphery radius wiener_index""",
    "centralities and link analysis": """betweenness_centrality degree_centrality edge_betweenness_centrality
        eigenvector_centrality hits in_degree_centrality katz_centrality out_degree_centrality pagerank""",
    "components": """attracting_components connected_components is_attracting_component is_connected
        is_directed_acyclic_graph is_strongly_connected is_weakly_connected kosaraju_strongly_connected_components
        node_connected_component number_attracting_components number_connected_components
        number_strongly_connected_components number_weakly_connected_components strongly_connected_components
        weakly_connected_components""",
    "trees": """is_arborescence is_branching is_forest is_tree maximum_spanning_edges maximum_spanning_tree
        minimum_spanning_edges minimum_spanning_tree""",
    "triangles, cores, communities": """average_clustering clustering core_number greedy_color k_core k_crust k_shell
        k_truss label_propagation_communities maximal_independent_set transitivity triangles""",
    "pairs of nodes": """adamic_adar_index jaccard_coefficient preferential_attachment resource_allocation_index""",
    "degrees": """is_regular isolates number_of_isolates number_of_selfloops overall_reciprocity reciprocity""",
    "operators and conversions": """adjacency_matrix complement from_scipy_sparse_array reverse
        to_scipy_sparse_array""",
    "generators": """balanced_tree barbell_graph circular_ladder_graph complete_graph cycle_graph empty_graph
        fast_gnp_random_graph full_rary_tree gnm_random_graph gnp_random_graph grid_2d_graph ladder_graph lollipop_graph
        null_graph path_graph star_graph tadpole_graph trivial_graph wheel_graph""",
    "generators, by NetworkX": """bull_graph chvatal_graph complete_bipartite_graph complete_multipartite_graph
        cubical_graph davis_southern_women_graph desargues_graph diamond_graph dodecahedral_graph
        florentine_families_graph frucht_graph heawood_graph hoffman_singleton_graph house_graph house_x_graph
        icosahedral_graph karate_club_graph krackhardt_kite_graph les_miserables_graph moebius_kantor_graph
        octahedral_graph pappus_graph petersen_graph sedgewick_maze_graph tetrahedral_graph truncated_cube_graph
        truncated_tetrahedron_graph turan_graph tutte_graph""",
}

# What is not as in NetworkX
_OTHER_PATH = "Among shortest paths of one length it may be another one."
_NOT_NEGATIVE = "Negative weights are left to NetworkX."
_UNDIRECTED = "Directed graphs are left to NetworkX."
_DRAWN = "Without a seed only; what NetworkX draws by one is left to it."
_SORTED = "sort_neighbors is left to NetworkX."
_KRUSKAL = "algorithm='kruskal' only."


def _of_paths(name: str) -> str:
    lengths = "length" in name or "floyd" in name or name == "negative_edge_cycle"
    positive = "dijkstra" in name or "floyd" in name
    return " ".join([_OTHER_PATH] * (not lengths) + [_NOT_NEGATIVE] * positive)


NOTES = {
    **dict.fromkeys(("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree"), _SORTED),
    "generic_bfs_edges": "neighbors is left to NetworkX.",
    **dict.fromkeys("bidirectional_shortest_path shortest_path".split(), _OTHER_PATH),
    **{name: _of_paths(name) for name in GROUPS["weighted paths"].split()},
    "closeness_centrality": "distance is left to NetworkX.",
    "harmonic_centrality": "distance, nbunch and sources are left to NetworkX.",
    "eccentricity": "sp is left to NetworkX.",
    "average_shortest_path_length": "Methods of all pairs are left to NetworkX.",
    "betweenness_centrality": "weight and endpoints are left to NetworkX.",
    "edge_betweenness_centrality": "weight and multigraphs are left to NetworkX.",
    "hits": "nstart and normalized=False are left to NetworkX. Of several results it is one without negative numbers.",
    **dict.fromkeys("katz_centrality eigenvector_centrality".split(), "nstart is left to NetworkX."),
    "pagerank": "Multigraphs and negative weights are left to NetworkX.",
    "kosaraju_strongly_connected_components": "source is left to NetworkX.",
    **dict.fromkeys(GROUPS["trees"].split()[4:], f"{_KRUSKAL} Multigraphs are left to NetworkX."),
    **dict.fromkeys("average_clustering clustering".split(), f"weight is left to NetworkX. {_UNDIRECTED}"),
    **dict.fromkeys("transitivity core_number greedy_color k_core k_crust k_shell".split(), _UNDIRECTED),
    "greedy_color": f"strategy='largest_first' only. {_UNDIRECTED}",
    **dict.fromkeys("maximal_independent_set gnp_random_graph gnm_random_graph fast_gnp_random_graph".split(), _DRAWN),
    "adjacency_matrix": "Other orders of nodes are left to NetworkX.",
    "to_scipy_sparse_array": "Other orders of nodes are left to NetworkX.",
}
FUNCTIONS = {name: NOTES.get(name, "") for names in GROUPS.values() for name in names.split()}


def get_info() -> dict:
    """As NetworkX's entry point `networkx.backend_info` wants it."""
    return {
        "backend_name": "gbgpu",
        "project": "gbgpu-graphs",
        "package": "algos.nx",
        "short_summary": "Masked matrix products over semirings, on CPU cores or GPUs.",
        "default_config": {"threshold": 1.0},
        "functions": {name: {"additional_docs": note} if note else {} for name, note in FUNCTIONS.items()},
    }
