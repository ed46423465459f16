"""How a rumour spreads: an algorithm written from scratch as a loop of masked statements.

The linear threshold model (Granovetter 1978) on a network of 10,680 people. Whoever hears a rumour from a given share
of the neighbours believes it, and tells all neighbours in the next round. The twenty with most neighbours begin.

python examples/from_scratch.py [--devices cpu:4] [--picture FILE]
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gbgpu as gb
from gbgpu import binary, replace, unary
from gbgpu.semiring import plus_pair

PEOPLE = Path(__file__).resolve().parent.parent / "data/PGPgiantcompo.mtx.gz"


def spread(A: gb.Matrix, seeds: np.ndarray, share: float) -> gb.Vector:
    """The round in which each vertex is reached, 0 for the seeds; no entry where the rumour is never believed."""
    n = A.nrows
    degree = plus_pair(A @ gb.Vector.from_scalar(True, n)).new()
    needed = unary.ceil(degree * share).new(name="needed")
    rounds, heard = gb.Vector(int, n, name="rounds"), gb.Vector(int, n, name="heard")
    fresh, enough = gb.Vector(bool, n, name="fresh"), gb.Vector(bool, n, name="enough")
    fresh[seeds] = True
    with gb.loop() as it:  # recorded here once, run when the block ends
        rounds(fresh.S) << it.index
        heard(~rounds.S, binary.plus) << plus_pair(fresh @ A)  # each tells once, so counts add up
        enough(~rounds.S, replace) << binary.ge(heard & needed)
        fresh(enough.V, replace) << True
        it.until(fresh.nvals == 0)
    return rounds


def spread_by_scipy(A: gb.Matrix, seeds: np.ndarray, share: float) -> np.ndarray:
    """The same by a plain loop, -1 where the rumour is never believed; it counts all who tell in every round."""
    S = A.to_scipy_sparse().astype(int)
    needed = np.ceil(S.sum(axis=1) * share)
    rounds = np.full(A.nrows, -1)
    fresh, number = seeds, 0
    while fresh.size:
        rounds[fresh] = number
        fresh, number = np.flatnonzero((rounds < 0) & (S @ (rounds >= 0) >= needed)), number + 1
    return rounds


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--devices", default="auto")
parser.add_argument("--picture", default="from_scratch.png")
arguments = parser.parse_args()

gb.init(arguments.devices)
figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
A = gb.io.mmread(PEOPLE)
seeds = np.argsort(-A.reduce_rowwise("count").new().to_dense(), kind="stable")[:20]
for percent in (10, 20, 25, 30):
    rounds = spread(A, seeds, percent / 100).to_dense(fill_value=-1)
    assert np.array_equal(rounds, spread_by_scipy(A, seeds, percent / 100))
    reached = np.bincount(rounds[rounds >= 0]).cumsum()
    print(f"told by {percent} %: {reached[-1]:6,} of {A.nrows:,} believe it after {len(reached) - 1} rounds")
    axis.plot(reached, marker=".", label=f"{percent} % of the neighbours")

# What runs in a round: the neighbours of the few that tell, where the mask lets through.
fresh, rounds = (gb.Vector.from_coo(seeds, value, size=A.nrows) for value in (True, 0))
heard = gb.Vector(int, A.nrows, name="heard")
print(gb.explain(heard(~rounds.S, binary.plus) << plus_pair(fresh @ A)))

axis.axhline(A.nrows, color="grey", linewidth=0.8, linestyle="--", label="all people")
axis.set_title(f"Spread of a rumour among {A.nrows:,} people")
axis.set_xlabel("round")
axis.set_ylabel("people who believe the rumour")
axis.legend(title="believed when told by")
figure.savefig(arguments.picture)
