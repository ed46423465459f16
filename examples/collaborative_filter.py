"""Ratings that users have not given, predicted from those that they have.

The ratings are synthetic, 1 to 5 stars: what 400 users think of 300 films comes from three hidden tastes, and noise. A
tenth of all ratings is known, and a fifth of these is held out. The factors of users and films are learnt in two ways,
by alternating least squares and by gradient descent, and compared with predicting the mean.

python examples/collaborative_filter.py [--picture FILE]
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import gbgpu as gb
from algos import collaborative_filtering, predictions
from gbgpu import binary, monoid

USERS, FILMS, TASTES, NOISE = 400, 300, 3, 0.3

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--picture", default="collaborative_filter.png")
arguments = parser.parse_args()

random = np.random.default_rng(5)
likes, has = random.normal(size=(USERS, TASTES)), random.normal(size=(FILMS, TASTES))
stars = np.clip(3 + 0.6 * likes @ has.T + NOISE * random.normal(size=(USERS, FILMS)), 1, 5)
chosen = random.random(stars.shape)


def ratings(where: np.ndarray) -> gb.Matrix:
    """An entry for each rating that is there; all others are absent, which is not the same as 0 stars."""
    users, films = np.nonzero(where)
    return gb.Matrix.from_coo(users, films, stars[users, films], nrows=USERS, ncols=FILMS)


def error(given: gb.Matrix, predicted: gb.Matrix) -> float:
    """The root of the mean squared difference at the given ratings."""
    E = binary.minus(given & predicted).new()
    assert E.nvals == given.nvals
    return (binary.times(E & E).new().reduce_scalar(monoid.plus).new().value / E.nvals) ** 0.5


known, held_out = ratings(chosen < 0.08), ratings((chosen >= 0.08) & (chosen < 0.1))
guess = held_out.dup(name="guess")
guess(guess.S) << known.reduce_scalar("mean").new()
by_mean = error(held_out, guess)
print(
    f"{known.nvals:,} ratings known, {held_out.nvals:,} held out; predicting the mean is wrong by {by_mean:.3f} stars"
)

figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
for method, epochs in (("als", 12), ("gradient", 100)):
    model = collaborative_filtering(known, TASTES + 1, method, epochs)  # a factor more, for the level of all ratings
    others = error(held_out, predictions(model, held_out))
    print(f"{method:8} {epochs:3} epochs: {model.rmse[0]:.3f} falls to {model.rmse[-1]:.3f}, held out {others:.3f}")
    assert model.rmse[-1] < 0.5 * model.rmse[0] and NOISE / 2 < others < 0.7 * by_mean
    name = {"als": "alternating least squares", "gradient": "gradient descent"}[method]
    (line,) = axis.plot(model.rmse, marker=".", label=f"{name}: known ratings")
    axis.plot(epochs, others, "*", markersize=14, color=line.get_color(), label=f"{name}: held-out ratings, at the end")

chosen[1:] = 0
_, films, expected = predictions(model, ratings(chosen >= 0.1)).to_coo()  # what user 0 has not rated
best = np.argsort(-expected)[:5]
print("films for user 0:", *films[best], "with stars", *stars[0, films[best]].round(1))

axis.axhline(by_mean, color="grey", linestyle="--", label="prediction by the mean: held-out ratings")
axis.set_title("Error of predicted film ratings")
axis.set_xlabel("epochs of learning")
axis.set_ylabel("root-mean-square error (stars)")
axis.legend(loc=(0.4, 0.55))
figure.savefig(arguments.picture)
