"""Models of seconds an edge beside each other (GUM, table V): python -m bench.experiments.models

Polynomial regression of degree 4 as the balance layer trains it; and linear regression, support vectors with an rbf
kernel and a decision tree of scikit-learn, which has to be installed, on what `gbgpu train-balance` collects. Errors
are root-mean-square relative ones.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

import gbgpu as gb
from algos.training import FAMILIES, UNSEEN, collect
from gbgpu.balance import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--direction", choices=("push", "pull"), default="push")
    parser.add_argument("--devices", default="cpu:2")
    given = parser.parse_args()
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR
    from sklearn.tree import DecisionTreeRegressor

    gb.init(given.devices, balance="off")
    known, unseen = collect(FAMILIES, given.direction), collect(UNSEEN, given.direction)
    table = Table("model", "training, ms", "RMSRE, seen", "RMSRE, unseen", "GUM's RMSRE", title=given.direction)

    def add(name: str, predict, seconds: float, paper: str) -> None:
        errors = (np.sqrt(np.mean((predict(of.features) / of.seconds - 1) ** 2)) for of in (known, unseen))
        table.add_row(name, f"{1e3 * seconds:.1f}", *(f"{error:.3f}" for error in errors), paper)

    start = perf_counter()
    model = train(*known)
    add("polynomial, degree 4", model.predict, perf_counter() - start, "0.33")
    nano = 1e9 * known.seconds  # numbers about 1, as these expect
    for name, learner, paper in (
        ("linear", LinearRegression(), "26.7"),
        ("SVR, rbf", make_pipeline(StandardScaler(), SVR(kernel="rbf")), "0.21"),
        ("decision tree", DecisionTreeRegressor(max_depth=6, random_state=0), "0.42"),
    ):
        start = perf_counter()
        learner.fit(known.features, nano)
        add(name, lambda found, learner=learner: learner.predict(found) / 1e9, perf_counter() - start, paper)
    Console().print(table)


if __name__ == "__main__":
    main()
