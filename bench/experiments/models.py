"""What an edge costs on CPU devices, learnt (GUM, section III-B and table V): python -m bench.experiments.models
[--data FOLDER] [--results NAME] [--save FOLDER]; needs scikit-learn, for the models that it compares.

BFS, SSSP, PageRank and components run on generated graphs, and on those of a folder, as far as they are square. A
sample is a block of a product that looked at all edges of its frontier: GUM's six features of the frontier, and the
least seconds an edge of ten runs.

Models see the samples of the graphs of `known`, and of every second one of the folder. They are checked on the graphs
of `unknown`, and on the other half of the folder. Errors are root-mean-square relative ones (RMSRE), which all models
minimise.

`slowdown` is what GUM's table V calls so: random rounds of four blocks with the features of samples of unseen graphs
are shared by predicted costs, and by the true ones. It is the time of the second divided by that of the first, and 1
at best.

The machine had two cores, which other work used meanwhile. Errors contain its noise: they differ by a tenth or more
from run to run, and graphs are measured in random order, so that all parts meet the same. Frontiers of different sizes,
and of the four algorithms, have the same features at different costs: no model of these features tells them apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import gbgpu as gb
from algos.measurements import Table
from algos.training import Samples, sampled
from bench.record import page
from gbgpu.balance import Polynomial, costs, solve, train
from gbgpu.balance.problem import seconds_of
from gbgpu.balance.topology import shared

WEIGHTS, WAYS = (1, 255), ("push", "pull")
COLUMNS = ["model", "numbers", "training, ms", "seen", "unseen, generated", "unseen, real", "slowdown"]
COLUMNS += ["GUM's RMSRE", "GUM's slowdown"]
SKEWS = (0.57, 0.19, 0.19), (0.45, 0.22, 0.22), (0.65, 0.15, 0.15)

Predict = Callable[[np.ndarray], np.ndarray]
Graphs = Iterator[tuple[str, Callable[[], gb.Matrix]]]


def known() -> Graphs:
    """154 graphs."""
    yield from _rmats((10, 11, 12, 13, 14), (4, 8, 16), SKEWS)
    yield from _uniforms((10, 12, 13, 14, 15), (3, 6, 12, 24))
    yield from _roads((40, 60, 90, 130, 180, 250), (0.6, 0.75, 0.9, 1.0))


def unknown() -> Graphs:
    """24 graphs of other sizes, degrees and skew."""
    yield from _rmats((12, 13, 15), (6, 24), [(0.5, 0.2, 0.2)])
    yield from _uniforms((13, 14), (9, 20))
    yield from _roads((110, 220), (0.68, 0.85))


def _rmats(scales, factors, skews) -> Graphs:
    for scale, factor, (a, b, c), both in product(scales, factors, skews, (True, False)):
        options = {"symmetric": both, "seed": scale + factor, "weights": WEIGHTS}
        yield f"rmat {scale} {factor} {a} {both}", partial(gb.io.rmat, scale, factor, a=a, b=b, c=c, **options)


def _uniforms(scales, degrees) -> Graphs:
    for scale, degree, both in product(scales, degrees, (True, False)):
        options = {"symmetric": both, "seed": scale + degree, "weights": WEIGHTS}
        yield f"uniform {scale} {degree} {both}", partial(gb.io.uniform, 1 << scale, degree, **options)


def _roads(sides, shares) -> Graphs:
    for side, share in product(sides, shares):
        yield f"road {side} {share}", partial(gb.io.grid_road, side, share, seed=side, weights=WEIGHTS)


def real(folder: str, half: int) -> Graphs:
    """Every second graph of a folder; weights are lengths of ways."""
    for path in sorted(Path(folder).glob("*.mtx.gz"))[half::2]:
        yield path.name, partial(_lengths, str(path))


def _lengths(path: str) -> gb.Matrix:
    return gb.io.mmread(path).apply(gb.unary.abs).new()


class Parts(NamedTuple):
    """Samples to train with, and of graphs that training does not see."""

    seen: Samples
    generated: Samples
    real: Samples


def collected(folder: str) -> tuple[dict[str, Parts], set[str]]:
    """Samples by direction, and the graphs that are seen. Graphs that are small or not square have none."""
    sources = (0, known()), (0, real(folder, 0)), (1, unknown()), (2, real(folder, 1))
    graphs = [(part, *one) for part, some in sources for one in some]
    found: dict[str, list[list[Samples]]] = {way: [[], [], []] for way in WAYS}
    seen = set()
    for k in np.random.default_rng(0).permutation(len(graphs)):
        part, name, make = graphs[k]
        A = make()
        for way in WAYS if A.nrows == A.ncols else ():
            with suppress(gb.errors.InvalidValue):
                found[way][part].append(sampled([(name, A)], way))
                seen |= {name} if part == 0 else set()
    return {way: Parts(*map(joined, parts)) for way, parts in found.items()}, seen


def joined(some: Sequence[Samples]) -> Samples:
    return Samples(*map(np.concatenate, zip(*some, strict=True)))


def models(seen: Samples) -> Iterator[tuple[str, int | None, float, Predict, str, str]]:
    """Name, numbers in it, seconds of training, predictions, and GUM's error and slowdown."""
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR
    from sklearn.tree import DecisionTreeRegressor

    one = (1 / seen.seconds).sum() / (1 / seen.seconds**2).sum()  # that of the least error
    yield "one number", 1, 0.0, lambda found: np.full(len(found), one), "", ""
    for name, options in (
        ("shipped: degree 3", {}),
        ("degree 2", {"degree": 2}),
        ("degree 4, ridge 0", {"degree": 4, "ridge": 0.0}),
    ):
        start = perf_counter()
        made = train(*seen, **options)
        told = ("0.33", "0.93") if options.get("degree") == 4 else ("", "")
        yield f"polynomial, {name}", len(made.weights), perf_counter() - start, made.predict, *told
    nano, tall = 1e9 * seen.seconds, (1e9 * seen.seconds) ** -2  # numbers about 1
    for name, learner, step, paper in (
        ("linear", LinearRegression(), "", ("26.7", "0.54")),
        ("SVR, rbf", make_pipeline(StandardScaler(), SVR(kernel="rbf")), "svr__", ("0.21", "0.94")),
        ("decision tree", DecisionTreeRegressor(max_depth=6, random_state=0), "", ("0.42", "0.88")),
    ):
        start = perf_counter()
        learner.fit(seen.features, nano, **{f"{step}sample_weight": tall / tall.mean()})
        yield name, None, perf_counter() - start, partial(_positive, learner), *paper


def _positive(learner: Any, found: np.ndarray) -> np.ndarray:
    """Seconds from nanoseconds, of which a linear model may predict less than 0."""
    return np.maximum(learner.predict(found), 1e-3) / 1e9


def rmsre(predict: Predict, of: Samples) -> float:
    return float(np.sqrt(np.mean((predict(of.features) / of.seconds - 1) ** 2)))


def slowdown(predict: Predict, of: Samples, rounds: int = 500) -> float:
    """The time of rounds shared by true costs, divided by that of the same rounds shared by predicted ones."""
    random, near, best, took = np.random.default_rng(0), shared(4), 0.0, 0.0
    for _ in range(rounds):
        blocks, loads = random.integers(0, len(of.seconds), 4), (10 ** random.uniform(4, 7, 4)).astype(int)
        true = np.zeros((3, 4, 4))
        true[0] = costs(of.seconds[blocks], near, 8.0)
        best += solve(true[0], loads).seconds
        took += seconds_of(true, solve(costs(predict(of.features[blocks]), near, 8.0), loads).edges)
    return best / took


def table(way: str, parts: Parts, graphs: int) -> Table:
    """A row a model."""
    rows, unseen = [], joined([parts.generated, parts.real])
    for name, numbers, seconds, predict, *paper in models(parts.seen):
        errors = [f"{rmsre(predict, part):.3f}" for part in parts]
        rows.append([name, numbers or "", f"{1e3 * seconds:.0f}", *errors, f"{slowdown(predict, unseen):.3f}", *paper])
    counts = ", ".join(f"{len(part.seconds):,}" for part in parts)
    low, high = np.quantile(1e9 * parts.seen.seconds, [0.05, 0.95])
    note = f"{graphs} graphs are seen. {counts} samples, in the order of the columns."
    return Table(COLUMNS, rows, f"{way}: {low:.1f} to {high:.1f} ns an edge", note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--data", default="data", help="a folder of graphs, NAME.mtx.gz (default: data)")
    parser.add_argument("--results", help="the name of the file under bench/results")
    parser.add_argument("--save", metavar="FOLDER", help="write the models cpu-push.json and cpu-pull.json")
    given = parser.parse_args()
    gb.init(given.devices, balance="off")
    found, seen = collected(given.data)
    tables = []
    for way, parts in found.items():
        tables.append(table(way, parts, len(seen)))
        print(tables[-1])
        if given.save:
            made: Polynomial = train(*parts.seen)
            made.save(Path(given.save) / f"cpu-{way}.json")
    page(given.results, "Models of seconds an edge, CPU devices", __doc__, tables)


if __name__ == "__main__":
    main()
