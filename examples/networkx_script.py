"""A NetworkX script that gbgpu carries out without a change, and a picture of who stands between others:

python networkx_script.py [--picture FILE]
NETWORKX_AUTOMATIC_BACKENDS=gbgpu python networkx_script.py
"""

import argparse
import cmath
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
assert between[broker] > 100 * min(between.values())  # who links two groups is on the paths of all

nearest = nx.closeness_centrality(G)
print("closeness:", round(min(nearest.values()), 4), "to", round(max(nearest.values()), 4))
print("in groups of five friends who all know each other:", len(nx.k_truss(G, 5)))

print("computed by", *G.__networkx_cache__.get("backends", ["networkx"]))

# The groups stand in a circle, the friends of each in a small one.
places = {v: 50 * cmath.rect(1, v // 8 * math.tau / 50) + 2.5 * cmath.rect(1, v % 8 * math.tau / 8) for v in G}
places = {v: (place.real, place.imag) for v, place in places.items()}
plt.figure(figsize=(9, 9))
nx.draw_networkx_edges(G, places, edge_color="0.8", width=0.5)
dots = nx.draw_networkx_nodes(G, places, node_size=25, node_color=list(between.values()), cmap="plasma")
plt.colorbar(dots, label="betweenness", shrink=0.6)
plt.gca().set_aspect("equal")
plt.axis("off")
plt.savefig(arguments.picture)
