"""A NetworkX script that gbgpu carries out without a change:

python networkx_script.py
NETWORKX_AUTOMATIC_BACKENDS=gbgpu python networkx_script.py
"""

import networkx as nx

G = nx.connected_caveman_graph(50, 8)  # fifty groups of eight friends, each with one link to the next
nx.config.warnings_to_ignore.add("cache")  # conversions are kept as long as the graph stays as it is

triangles = nx.triangles(G)
print("in triangles, at most and least:", max(triangles.values()), min(triangles.values()))
print("clustering:", round(nx.average_clustering(G), 4))

between = nx.betweenness_centrality(G)
broker = max(between, key=between.get)
print("brokers have", round(between[broker], 4), "and others", round(min(between.values()), 4))

nearest = nx.closeness_centrality(G)
print("closeness:", round(min(nearest.values()), 4), "to", round(max(nearest.values()), 4))
print("in groups of five friends who all know each other:", len(nx.k_truss(G, 5)))

print("computed by", *G.__networkx_cache__.get("backends", ["networkx"]))
