"""A script for scipy.sparse.csgraph in which the import line is all that changes.

How far is it from each crossroads of Luxembourg to the nearest of ten fire stations, and to the first of them, the
headquarters? The roads are real, the stations and the lengths of the roads are drawn at random.

The first run compiles kernels, which later ones find on disk.

python examples/scipy_script.py [--picture FILE]
"""

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.io
import scipy.sparse
import scipy.sparse.csgraph as scipys  # only to compare with

import algos.csgraph as csgraph  # in place of: import scipy.sparse.csgraph as csgraph

ROADS = Path(__file__).resolve().parent.parent / "data/luxembourg_osm.mtx.gz"


def survey(csgraph, roads, stations):
    """Metres to the nearest station, and to the first one."""
    nearest = csgraph.dijkstra(roads, indices=stations, min_only=True)
    first = csgraph.dijkstra(roads, indices=stations[0])
    return nearest, first


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", default="scipy_script.png")
arguments = parser.parse_args()

random = np.random.default_rng(1)
lower = scipy.sparse.tril(scipy.io.mmread(ROADS)).tocsr()
lower.data = random.integers(5, 100, lower.nnz).astype(float)
roads = (lower + lower.T).tocsr()
stations = np.sort(random.choice(roads.shape[0], 10, replace=False))

found, seconds = {}, {}
for name, module in (("SciPy", scipys), ("gbgpu", csgraph), ("gbgpu again", csgraph)):
    began = time.perf_counter()
    found[name] = survey(module, roads, stations)
    seconds[name] = time.perf_counter() - began
for name, (nearest, first) in found.items():
    assert np.array_equal(nearest, found["SciPy"][0]) and np.array_equal(first, found["SciPy"][1])
    print(f"{name:11} {seconds[name]:6.3f} s, at most {nearest.max() / 1000:.1f} km to a station, ", end="")
    print(f"{first.max() / 1000:.1f} km to the headquarters")

bins = np.linspace(0, first.max() / 1000, 80)
figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
axis.hist(nearest / 1000, bins, alpha=0.7, label="from the nearest of ten stations")
axis.hist(first / 1000, bins, alpha=0.7, label="from the headquarters")
axis.set_title("Distance of the crossroads of Luxembourg from fire stations")
axis.set_xlabel("distance along roads (km)")
axis.set_ylabel(f"number of crossroads (in bins of {bins[1]:.1f} km)")
axis.legend()
figure.savefig(arguments.picture)
