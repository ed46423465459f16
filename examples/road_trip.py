"""A road trip on a map: the quickest round through six towns, with every road that it takes.

The country is made up. Its 1,500 places are random points; a road joins two if the circle between them holds no third
(a Gabriel graph). Ten places are towns; motorways join each with the two nearest others. Weights are minutes.

python examples/road_trip.py [--picture FILE]
"""

import argparse
from itertools import pairwise, permutations

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as scipys  # only to compare with
from matplotlib.collections import LineCollection
from scipy.spatial import Delaunay, cKDTree

import algos.csgraph as csgraph

PLACES, TOWNS, STOPS = 1500, 10, 6
NAMES = "Aldmoor Brackwater Cindle Dunhythe Elmsford Fallow Gorsey Hartle Inverbrook Jessamy".split()


def country(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Where the places are, and the roads: pairs of places, each once."""
    xy = random.random((PLACES, 2)) * (300, 200)  # km
    sides = Delaunay(xy).simplices[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    roads = np.unique(np.sort(sides, axis=1), axis=0)
    half = np.linalg.norm(xy[roads[:, 0]] - xy[roads[:, 1]], axis=1) / 2
    nearest, _ = cKDTree(xy).query(xy[roads].mean(axis=1))
    return xy, roads[nearest >= half * (1 - 1e-9)]


def symmetric(roads: np.ndarray, values: np.ndarray) -> sp.csr_array:
    (i, j), shape = roads.T, (PLACES, PLACES)
    return sp.csr_array((np.tile(values, 2), (np.append(i, j), np.append(j, i))), shape=shape)


def way(before: np.ndarray, start: int, end: int) -> list[int]:
    """The places from start to end, found from the end backwards."""
    places = [end]
    while places[-1] != start:
        places.append(int(before[places[-1]]))
    return places[::-1]


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", default="road_trip.png")
arguments = parser.parse_args()

random = np.random.default_rng(2)
xy, roads = country(random)
towns = random.choice(PLACES, TOWNS, replace=False)
km = 1.2 * np.linalg.norm(xy[roads[:, 0]] - xy[roads[:, 1]], axis=1)  # roads are not straight
far, before = csgraph.shortest_path(symmetric(roads, km), indices=towns, return_predecessors=True)
joined = [(k, end) for k in range(TOWNS) for end in towns[np.argsort(far[k, towns])[1:3]]]
built = {tuple(sorted(road)) for k, end in joined for road in pairwise(way(before[k], towns[k], end))}
motorway = np.array([tuple(road) in built for road in roads])
speed = np.where(motorway, 120, random.choice([50, 70, 90], len(roads)))
minutes = symmetric(roads, 60 * km / speed)

stops = towns[:STOPS]
times, before = csgraph.shortest_path(minutes, indices=stops, return_predecessors=True)
assert np.allclose(times, scipys.dijkstra(minutes, indices=stops), rtol=1e-12)
between = times[:, stops]
assert (between[:, None] <= between[:, :, None] + between[None] + 1e-9).all()  # no way round is quicker
rounds = [(0, *order, 0) for order in permutations(range(1, STOPS))]
trip = min(rounds, key=lambda order: sum(between[leg] for leg in pairwise(order)))

driven, total = [], 0.0
for start, end in pairwise(trip):
    places = way(before[start], stops[start], stops[end])
    took = sum(minutes[road] for road in pairwise(places))
    assert np.isclose(took, between[start, end])
    print(f"{NAMES[start]:10} to {NAMES[end]:10} {took:4.0f} min through {len(places) - 2} places")
    driven, total = driven + places, total + took
print(f"the round takes {total / 60:.1f} hours")

figure, axis = plt.subplots(figsize=(11, 8), layout="constrained")
axis.add_collection(LineCollection(xy[roads[~motorway]], colors="0.8", linewidths=0.8, label="other roads"))
axis.add_collection(LineCollection(xy[roads[motorway]], colors="tab:orange", linewidths=6, label="motorways"))
axis.plot(*xy[driven].T, color="tab:blue", linewidth=2, label="quickest round trip")
axis.plot(*xy[towns].T, "ko", markersize=6, label="towns")
for town, name in zip(towns, NAMES, strict=True):
    axis.annotate(name, xy[town], (6, 6), textcoords="offset points", fontsize=12, weight="bold")
axis.set_aspect("equal")
axis.set_title(f"Quickest round trip through {STOPS} towns: {total / 60:.1f} hours")
axis.set_xlabel("west to east (km)")
axis.set_ylabel("south to north (km)")
axis.legend(loc="upper right")
figure.savefig(arguments.picture)
