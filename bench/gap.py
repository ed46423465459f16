"""GAP's kernels beside SciPy and networkit: python -m bench.gap [--scale 14] [--devices cpu:2] [--trials 8]

The six kernels of the GAP benchmark suite (Beamer, Asanovic, Patterson, arXiv:1508.03619) on its five graphs, as `gbgpu
bench gap` has them; a graph called a stand-in is generated in place of the suite's file, and has another size and
shape. Median seconds of a trial. In each trial gbgpu and its peers run one after the other, with the same sources, so
that other load on the machine meets all of them. Every result of gbgpu is verified; peers' results are not looked at. A
call of each comes before the timed ones.

- SciPy: `breadth_first_order`, `dijkstra`, `connected_components`, and for triangles the sum of (L @ L) * L. One core.
- networkit: BFS, Dijkstra, PageRank (L1 norm; without the ranks that sinks pass on), ConnectedComponents,
  EstimateBetweenness of four sources that it draws. As many threads as there are cores.
- An empty cell: the peer has no such kernel.
- "ratio": the faster peer's time by gbgpu's; above 1, gbgpu is faster.

These peers run on the host. On a GPU gbgpu runs alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from scipy.sparse import csgraph, tril

import gbgpu as gb
from algos import gap
from bench.record import Table, markdown, page

PEERS = "SciPy", "networkit"
TRIALS = {"tc": 2, "pr": 4, "cc": 4, "bc": 4}  # at most


def peers(graph: gap.Graph) -> dict[str, dict[str, Callable[[list[int]], Any]]]:
    """What each kernel has beside it."""
    import networkit

    S, both = graph.matrix.to_scipy_sparse().tocsr(), graph.undirected.to_scipy_sparse().tocsr().astype(np.int64)
    S.data = S.data.astype(np.float64)
    both.data[:] = 1
    directed = bool((abs(S - S.T)).nnz)
    rows, cols = S.nonzero()
    kept = np.ones(len(rows), bool) if directed else rows <= cols
    shape, ends = (S.shape[0], S.shape[0]), (rows[kept], cols[kept])
    weights = np.asarray(S[rows, cols]).ravel()[kept]
    G = networkit.GraphFromCoo((weights, ends), n=shape[0], weighted=True, directed=directed)
    parts = networkit.components.WeaklyConnectedComponents if directed else networkit.components.ConnectedComponents
    lower = tril(both, -1, format="csr")

    def ranks(_: list[int]) -> Any:
        found = networkit.centrality.PageRank(G, damp=0.85, tol=gap.TOLERANCE)
        found.norm = networkit.centrality.Norm.L1_NORM
        return found.run()

    return {
        "bfs": {
            "SciPy": lambda at: csgraph.breadth_first_order(S, at[0]),
            "networkit": lambda at: networkit.distance.BFS(G, at[0], storePaths=True).run(),
        },
        "sssp": {
            "SciPy": lambda at: csgraph.dijkstra(S, indices=at[0]),
            "networkit": lambda at: networkit.distance.Dijkstra(G, at[0], storePaths=False).run(),
        },
        "pr": {"networkit": ranks},
        "cc": {
            "SciPy": lambda _: csgraph.connected_components(S, directed=directed, connection="weak"),
            "networkit": lambda _: parts(G).run(),
        },
        "bc": {"networkit": lambda _: networkit.centrality.EstimateBetweenness(G, gap.ROOTS).run()},
        "tc": {"SciPy": lambda _: (lower @ lower).multiply(lower).sum()},
    }


def row(line: gap.Line) -> list[Any]:
    ours = median(line.seconds)
    if not line.peers:
        return [line.graph, line.kernel, len(line.seconds), 1e3 * ours, 1e3 * min(line.seconds)]
    theirs = {peer: median(took) for peer, took in line.peers.items()}
    cells = [theirs.get(peer, "") for peer in PEERS]
    return [line.graph, line.kernel, len(line.seconds), ours, *cells, min(theirs.values()) / ours]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=14)
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--trials", type=int, default=8, help="of bfs and sssp; of the others as many, but fewer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", help="the name of the file under bench/results")
    given, rows = parser.parse_args(), []
    on_host = gb.init(given.devices).home.kind == "cpu"
    for name in gap.generators(given.scale):
        graph = gap.graph(name, given.scale, given.seed, None)
        beside = peers(graph) if on_host else dict.fromkeys(gap.KERNELS, {})
        for kernel in gap.KERNELS:
            trials = min(given.trials, TRIALS.get(kernel, given.trials))
            rows.append(row(gap.measured(graph, kernel, given.seed, trials, beside[kernel])))
            print(*rows[-1], sep=" | ", flush=True)
    if on_host:
        columns = ["graph", "kernel", "trials", "gbgpu, s", *(f"{peer}, s" for peer in PEERS), "ratio"]
        note = "Other programs may have run on the cores meanwhile: ratios say more than seconds."
        table = Table(columns, rows, "Seconds", note)
    else:
        table = Table(["graph", "kernel", "trials", "median, ms", "least, ms"], rows, "Milliseconds")
    print(markdown(table))
    page(given.results, f"GAP on {given.devices}, scale {given.scale}", __doc__, [table])


if __name__ == "__main__":
    main()
