"""A NetworkX script that gbgpu runs without a change, and a picture of who stands between others:

python networkx_script.py [--picture FILE]
NETWORKX_AUTOMATIC_BACKENDS=gbgpu python networkx_script.py
"""

import argparse
import math

import matplotlib.pyplot as plt
import networkx as nx

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", default="networkx_script.png")
arguments = parser.parse_args()

G = nx.connected_caveman_graph(50, 8)  # fifty groups of eight friends, each with one link to the next
nx.config.warnings_to_ignore.add("cache")  # conversions are kept as long as the graph stays as it is

triangles = nx.triangles(G)
print("in triangles, at most and least:", max(triangles.values()), min(triangles.values()))
print("clustering:", round(nx.average_clustering(G), 4))

between = nx.betweenness_centrality(G)
broker = max(between, key=between.get)
print("brokers have", round(between[broker], 4), "and others", round(min(between.values()), 4))
linked = {v for edge in G.edges for v in edge if edge[0] // 8 != edge[1] // 8}
assert {v for v in G if between[v] > 0.1} == linked  # who links two groups is on the paths of all

nearest = nx.closeness_centrality(G)
print("closeness:", round(min(nearest.values()), 4), "to", round(max(nearest.values()), 4))
print("in groups of five friends who all know each other:", len(nx.k_truss(G, 5)))

print("computed by", *G.__networkx_cache__.get("backends", ["networkx"]))

# The groups stand up and down in columns, with a way back below; the friends of each in a circle.
columns = [(c // 4, 4 - c % 4 if c // 4 % 2 else 1 + c % 4) for c in range(40)]
groups = columns + [(9 - c, 0) for c in range(10)]
around = [(0.3 * math.cos(k * math.tau / 8), 0.3 * math.sin(k * math.tau / 8)) for k in range(8)]
places = {v: [x + dx for x, dx in zip(groups[v // 8], around[v % 8], strict=True)] for v in G}
kinds = {
    f"betweenness {between[broker]:.2f}: links two groups": (sorted(linked), "tab:orange"),
    f"betweenness {min(between.values()):.2f}: has friends in one group": (sorted(set(G) - linked), "tab:blue"),
}
plt.figure(figsize=(11, 6), layout="constrained")
nx.draw_networkx_edges(G, places, edge_color="0.7", width=0.8)
for label, (nodes, color) in kinds.items():
    nx.draw_networkx_nodes(G, places, nodes, node_size=25, node_color=color, label=label)
plt.title("Betweenness centrality of 400 people in 50 groups of eight friends")
plt.legend(loc="lower center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False)
plt.gca().set_aspect("equal")
plt.axis("off")
plt.savefig(arguments.picture)
