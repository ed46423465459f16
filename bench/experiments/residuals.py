"""PageRank by residuals beside power iteration: python -m bench.experiments.residuals [GRAPH ...] [--devices cpu:1]

Ranks of all vertices, and of jumps to one vertex alone (personalised), to the same error: the L1 distance to ranks of
power iteration with a tolerance of 1e-13. Power iteration (`algos.pagerank`) ends at a tolerance of 1e-4. The others
have the first tolerance of 0.1, 0.05, 0.025 ... with which they are as near. `algos.pagerank_push` and `gb.fixpoint` of
sums (the same, in its two statements) push only vertices whose residual is above a bound. After Groute's residual
PageRank (Ben-Nun, Sutton, Pai, Pingali, PPoPP 2017) and Whang and others, Euro-Par 2015. Graphs are files of --data.

- `edges, of all`: entries of the matrix that the run looked at, by its trace, over those that there are.
- `ms`: median of five calls, of all ways in turns, kernels compiled.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import algos
import gbgpu as gb
from algos.pagerank import arc_shares, proportions
from bench.record import Table, experiment, interleaved, page, synchronized
from gbgpu import binary, monoid
from gbgpu.semiring import any_first, plus_times

DAMPING, TOL = 0.85, 1e-4
COLUMNS = ["graph", "jumps", "way", "tolerance", "L1 error", "edges, of all", "ms"]


def sums(P: gb.Matrix, tol: float, jumps: gb.Vector | None) -> gb.Vector:
    """PageRank as a fixpoint of sums."""
    n = P.nrows
    x = gb.Vector(float, n, name="x")
    begun = proportions(None, n) if jumps is None else jumps
    r = begun.apply(binary.times, right=1 - DAMPING).new(name="r")
    with gb.fixpoint(tol=tol / n):
        x(binary.plus) << r
        r << plus_times(r @ P)
    return x.apply(binary.truediv, right=x.reduce(monoid.plus).new().value).new()


def measured(name: str, data: str) -> list[list[Any]]:
    """The rows of one graph."""
    A = gb.io.mmread(Path(data, f"{name}.mtx.gz"))
    n, degrees = A.nrows, np.diff(A.to_scipy_sparse().tocsr().indptr)
    P = any_first(arc_shares(A, n, DAMPING, "FP64", False).diag() @ A).new()
    alone = gb.Vector.from_coo([int(degrees.argsort()[n // 2])], [1.0], size=n)
    jumps = {"all": None, "one vertex": alone}
    return [[name, *row] for what, given in jumps.items() for row in compared(A, P, what, given)]


def compared(A: gb.Matrix, P: gb.Matrix, what: str, jumps: gb.Vector | None) -> list[list[Any]]:
    """All ways, of the same jumps."""

    def ranks(way: str, tol: float) -> gb.Vector:
        if way == "gb.fixpoint":
            return sums(P, tol, jumps)
        call = algos.pagerank if way == "power iteration" else algos.pagerank_push
        return call(A, DAMPING, tol, 9999, personalization=jumps).ranks

    def error(found: gb.Vector) -> float:
        return float(np.abs(found.to_dense(0.0) - exact).sum())

    exact = ranks("power iteration", 1e-13).to_dense(0.0)
    allowed, tols = error(ranks("power iteration", TOL)), {"power iteration": TOL}
    for way in ("pagerank_push", "gb.fixpoint"):
        tols[way] = 0.1
        while error(ranks(way, tols[way])) > allowed:
            tols[way] /= 2
    calls = [partial(ranks, way, tol) for way, tol in tols.items()]
    times = interleaved([synchronized(call) for call in calls], 5)
    rows = []
    for (way, tol), call, seconds in zip(tols.items(), calls, times, strict=True):
        with gb.trace() as records:
            found = call()
        edges = sum(record.edges for record in records) / A.nvals
        rows.append([what, way, f"{tol:.2g}", f"{error(found):.2g}", f"{edges:.1f} x", f"{1e3 * seconds:.2f}"])
    return rows


def main() -> None:
    given = experiment(__doc__, ["PGPgiantcompo", "luxembourg_osm"], "cpu:1").parse_args()
    gb.init(given.devices)
    rows: list[list[Any]] = []
    for name in given.graphs:
        rows += (found := measured(name, given.data))
        print("\n".join(" | ".join(row) for row in found), flush=True)
    page(given.results, f"PageRank by residuals on {given.devices}", __doc__, [Table(COLUMNS, rows)])


if __name__ == "__main__":
    main()
