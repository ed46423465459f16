"""What NetworkX reads of its backend `gbgpu` whenever it is imported: so nothing of gbgpu is imported here."""

# What is offered, and what of it is left to NetworkX
FUNCTIONS = {
    # searches and unweighted paths
    "all_pairs_shortest_path": "",
    "all_pairs_shortest_path_length": "",
    "ancestors": "",
    "bfs_edges": "sort_neighbors is left to NetworkX.",
}


def get_info() -> dict:
    """As NetworkX's `networkx.backend_info` asks for it."""
    return {
        "backend_name": "gbgpu",
        "project": "gbgpu-graphs",
        "package": "algos.nx",
        "short_summary": "Masked matrix products over semirings, on CPU cores or GPUs.",
        "default_config": {"threshold": 20_000},
        "functions": {name: {"additional_docs": note} if note else {} for name, note in FUNCTIONS.items()},
    }
