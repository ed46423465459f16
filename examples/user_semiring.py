"""Operators of one's own: three kinds of best path by one fixpoint, which differ in their semiring.

A semiring says how a path is extended by an arc, and which of two paths is better. The widest path is as good as its
narrowest pipe; the most reliable one multiplies chances; in a leaky pipe a twentieth is lost at every joint. Widths
are litres a second.

The operators are plain functions of two numbers. Two laws are declared: the better of a path and itself is that path
(idempotent), and an arc does not make the worse of two paths the better one (monotone). So the engine may extend
vertices in any order.

python examples/user_semiring.py [--picture FILE]
"""

import argparse
import math

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import gbgpu as gb
from gbgpu import binary, monoid, semiring

better = binary.register_anonymous(lambda x, y: x if x > y else y, "larger")
larger = monoid.register_anonymous(better, 0, is_idempotent=True)
narrower = binary.register_anonymous(lambda x, pipe: x if x < pipe else pipe, "narrower", is_monotone=True)
leaking = binary.register_anonymous(lambda x, pipe: min(0.95 * x, pipe), "leaking", is_monotone=True)
widest = semiring.register_anonymous(larger, narrower, "widest")
leaky = semiring.register_anonymous(larger, leaking, "leaky")
reliable = semiring.max_times  # this one is there by name


def best_paths(A: gb.Matrix, source: int, ring, start: float) -> np.ndarray:
    """The value of the best path from `source` to each vertex; 0 where none leads."""
    best = gb.Vector(float, A.nrows, name="best")
    best[source] = start
    with gb.fixpoint():
        best(ring.monoid.binaryop) << ring(best @ A)
    return best.to_dense(fill_value=0.0)


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", default="user_semiring.png")
arguments = parser.parse_args()

G = nx.random_geometric_graph(80, 0.2, seed=4)
random = np.random.default_rng(4)
for *_, pipe in G.edges(data=True):
    pipe.update(width=float(random.integers(1, 100)), chance=random.uniform(0.5, 1.0))
    pipe["cost"] = -math.log(pipe["chance"])
widths, chances = (gb.io.from_networkx(G, weight=name, dtype=float) for name in ("width", "chance"))

by_width = best_paths(widths, 0, widest, math.inf)
by_chance = best_paths(chances, 0, reliable, 1.0)
by_leak = best_paths(widths, 0, leaky, math.inf)

# The widest path lies in the maximum spanning tree; chances multiply as their logarithms add.
tree = nx.maximum_spanning_tree(G, weight="width")
for j, path in nx.single_source_shortest_path(tree, 0).items():
    assert by_width[j] == min((G[u][v]["width"] for u, v in nx.utils.pairwise(path)), default=math.inf)
costs = nx.single_source_dijkstra_path_length(G, 0, weight="cost")
assert np.allclose(by_chance, [math.exp(-costs[j]) if j in costs else 0 for j in G])
# No arc leads to more than is known, and one leads to as much.
pipes = nx.to_numpy_array(G, weight="width")
assert np.array_equal(by_leak[1:], np.minimum(0.95 * by_leak[:, None], pipes).max(axis=0)[1:])

reached = int(np.count_nonzero(by_width))
print(f"{reached} of {len(G)} vertices are reached")
print(f"best chances: {np.sort(by_chance)[-2]:.3f} to {by_chance[by_chance > 0].min():.3f}")
for name, values in (("without leaks", by_width), ("with leaks", by_leak)):
    print(f"widest paths {name}: {values[1:].mean():.1f} on average")

places = nx.get_node_attributes(G, "pos")
figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
panels = (
    ("Widest paths", by_width, "width of the path (litres/s)", "width"),
    ("Most reliable paths", by_chance, "chance that the path works", "chance"),
    ("Widest paths, leaky pipes", by_leak, "what arrives (litres/s)", "width"),
)
for axis, (title, values, unit, drawn) in zip(axes, panels, strict=True):
    shown = np.minimum(values, np.sort(values)[-2])  # the source itself is off the scale
    axis.set_title(title)
    lines = [G[u][v][drawn] for u, v in G.edges]
    nx.draw_networkx_edges(G, places, ax=axis, width=3 * np.array(lines) / max(lines), edge_color="0.75")
    dots = nx.draw_networkx_nodes(G, places, ax=axis, node_size=60, node_color=shown)
    axis.plot(*places[0], "r*", markersize=18, linestyle="", label="source")
    axis.plot([], [], color="0.75", linewidth=3, label=f"pipe (line width: {drawn})")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, frameon=False)
    figure.colorbar(dots, ax=axis, label=unit)
figure.suptitle("The best path from the source to each vertex, by three semirings")
figure.savefig(arguments.picture)
