"""Lux's experiments with repartitioning and its performance model (VLDB 2017, sections 8.3 and 8.5).

    python -m bench.experiments.lux [--devices cpu:2] [--data DIR] [--scales 14 16 18] [--only repartitioning|model]

Figure 18 (lux-repartitioning.md): a session whose first device owns three quarters of the rows multiplies a matrix with
a vector (`A @ x`, FP32, a pull), again and again. An iteration is 25 products, in which rows move as the session
decides by what it observes. 9 products before them tell what each device computes: medians of the time of its thread.
Beside it, what a product takes once sessions have settled: where owners compute their rows, where devices steal, where
rows move, and both; medians of 108 products in 3 sessions each, which take turns.

Figure 20 (lux.md; GPUs: lux-gpu.md): seconds of a product with a vector of which a part of the entries is there, by a
pull and by a push, on the first device and on all: the rates of the model are fitted to RMAT graphs of all scales but
the last, the others are predicted from them and the sizes of input sets. Medians of ms; DIR: graphs in Matrix Market
files. For GPUs only figure 20, of graphs that they make (bench/device_graphs.py), large ones, as the model knows
nothing of launches: fitted to RMAT of these scales (22, 24). Tables and pictures are under bench/results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

import gbgpu as gb
from bench.record import RESULTS, Table, interleaved, page, synchronized
from gbgpu import balance
from gbgpu.balance.repartition import Rates, predict
from gbgpu.engine.assign import OURS
from gbgpu.semiring import min_plus, plus_times

OTHERS = "kron21", "urand23", "road24m"  # on GPUs
FILES = ("uk-2007-05_100000", "soc-Slashdot0902", "luxembourg_osm")
WIDTH = 4  # bytes a value
ITERATIONS, TIMES, PRODUCTS = 8, 9, 25
POLICIES: dict[str, Any] = {
    "owners": "off",
    "stealing": balance.Policy(fold=False, repartition=False, overhead=OURS.overhead),
    "moving rows": balance.Policy(fold=False, steal=False, overhead=OURS.overhead),
    "both": OURS,
}
TURNS = 3  # sessions of each policy, one after the other, as the machine may be busy for a while
PARTS = (2, 16)  # one of so many vertices is in the frontier


class Case(NamedTuple):
    """A round: what it is of, what the model knows of it, and what it took, ms by a pull and by a push."""

    graph: str
    devices: int
    part: int
    edges: tuple[int, int]
    inputs: list[int]
    took: tuple[float, float]


def graphs(scales: list[int], data: Path | None, cpu: bool) -> Iterator[tuple[str, tuple]]:
    """Name and CSR arrays, FP32."""
    if not cpu:
        from bench.device_graphs import make

        for name in (*(f"rmat{scale}" for scale in scales), *OTHERS):
            made = make(name)
            yield name, (made.indptr.get(), made.indices.get(), made.weights.get())
        return
    for scale in scales:
        yield f"rmat{scale}", gb.io.generate.rmat(scale, 16, seed=1, weights=(1, 255), dtype="FP32").to_csr()
    for name in FILES if data else ():
        A = gb.io.mmread(data / f"{name}.mtx.gz")  # type: ignore[operator]
        indptr, indices, _ = A.to_csr()
        yield name, (indptr, indices, np.random.default_rng(0).integers(1, 256, len(indices)).astype(np.float32))


def begun(arrays: tuple, devices: str, policy: Any) -> tuple[Any, gb.Matrix, Callable[[], object]]:
    """A session whose first device has three quarters of the rows, a matrix, and a product with it."""
    others = len(gb.init(devices).devices) - 1
    session = gb.init(devices, gb.partition.shares(3 * others, *[1] * others), balance=policy)
    A = gb.Matrix.from_csr(*arrays, ncols=len(arrays[0]) - 1)
    x = gb.Vector.from_dense(np.random.default_rng(0).random(A.nrows, np.float32))
    return session, A, lambda: plus_times(A @ x).new(direction="pull")


def computing(session: Any, product: Callable[[], object]) -> Callable[[], np.ndarray]:
    """A call that gives ms that each device computed in a product, by the time of its thread."""
    spent, inner = np.zeros(len(session.devices)), session.over

    def over(tasks: Any, work: Callable[[Any], Any], *given: Any, **more: Any) -> Any:
        def timed(task: Any) -> Any:
            start = thread_time()
            result = work(task)
            spent[task.device] += 1e3 * (thread_time() - start)
            return result

        return inner(tasks, timed, *given, **more)

    def call() -> np.ndarray:
        spent[:] = 0
        product()
        return spent.copy()

    session.over = over
    return call


def repartitioned(arrays: tuple, devices: str) -> list[tuple[float, float, float, float, int]]:
    """Of each iteration ms: of the slowest device, of the mean, of finding boundaries, of moving; and moves."""
    session, A, product = begun(arrays, devices, POLICIES["moving rows"])
    computes = computing(session, product)
    spent, found = {"_decide": 0.0, "moved": 0.0}, []
    def timed(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            start = perf_counter()
            result = inner(*given)
            spent[name] += perf_counter() - start
            return result

        return timed

    for name in spent:  # what the session does between products
        setattr(session.repartitioning, name, timed(name, getattr(session.repartitioning, name)))

    for _ in range(ITERATIONS):
        took = np.median([computes() for _ in range(TIMES)], axis=0)
        maps = {session.matrix_store(A).rowmap}
        spent.update(dict.fromkeys(spent, 0.0))
        for _ in range(PRODUCTS):
            product()
            maps.add(session.matrix_store(A).rowmap)
        finding, moving = (1e3 * spent[name] for name in ("_decide", "moved"))
        found.append((float(took.max()), float(took.mean()), finding, moving, len(maps) - 1))
    return found


def compared(arrays: tuple, devices: str) -> list[str]:
    """ms that the slowest device computes by each policy, once the session has settled, and ms of a product."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in POLICIES}
    for _ in range(TURNS):
        for name, policy in POLICIES.items():
            session, _, product = begun(arrays, devices, policy)
            for _ in range(ITERATIONS * PRODUCTS):
                product()
            computes = computing(session, product)
            for _ in range(4 * TIMES):
                start = perf_counter()
                most = float(computes().max())
                found[name].append((most, 1e3 * (perf_counter() - start)))
    return [" / ".join(f"{median(ms):.2f}" for ms in zip(*each, strict=True)) for each in found.values()]


def cases(name: str, arrays: tuple, devices: str) -> Iterator[Case]:
    indptr, indices, _ = arrays
    n, p = len(indptr) - 1, len(gb.init(devices).devices)
    alone = devices.partition(":")[0] + (":1" if devices.startswith("cpu") else ":0")
    for spec, m in ((alone, 1), (devices, p)):
        session = gb.init(spec, balance="off", replicas=0)
        A = gb.Matrix.from_csr(*arrays, ncols=n)
        bounds = session.matrix_store(A).rowmap.bounds
        inputs, _ = balance.vertex_sets(indptr, indices, bounds, [0] * m)
        for part in PARTS:
            ids = np.arange(0, n, part)
            q = gb.Vector.from_coo(ids, np.ones(ids.size, np.float32), size=n)
            calls = [synchronized(by(q, A, way)) for way in ("pull", "push")]
            pull, push = (1e3 * seconds for seconds in interleaved(calls, TIMES, warm=6))
            edges = len(indices), int((indptr[ids + 1] - indptr[ids]).sum())
            yield Case(name, m, part, edges, inputs, (pull, push))


def by(q: gb.Vector, A: gb.Matrix, way: str) -> Callable[[], object]:
    return lambda: min_plus(q @ A).new(direction=way)


def fitted(known: list[Case]) -> Rates:
    """Rates by which the errors beside what was observed are least."""

    def fit(columns: list[list[float]], took: list[float]) -> list[float]:
        beside = np.array(took)[:, None]
        return nnls(np.array(columns) / beside, np.ones(len(took)))[0].tolist()

    rounds = [[WIDTH * max(one.inputs), one.edges[0] / one.devices] for one in known]
    load, pull = fit(rounds, [1e-3 * one.took[0] for one in known])
    (push,) = fit([[one.edges[1] / one.devices] for one in known], [1e-3 * one.took[1] for one in known])
    return Rates(load, pull, push, 0.0)


def predicted(rates: Rates, one: Case) -> tuple[float, float]:
    """ms by a pull and by a push."""
    found = predict(rates, one.edges, one.inputs, [0], one.devices, WIDTH)
    return 1e3 * found.pull, 1e3 * found.push


def chosen(group: list[tuple[Case, tuple[float, float]]]) -> tuple[str, str, float]:
    """What the model chooses of the configurations of a round, what was best, and how many times longer that took."""
    every = [
        (told[i], one.took[i], f"{way} on {one.devices}")
        for one, told in group
        for i, way in enumerate(("pull", "push"))
    ]
    model, best = min(every), min(every, key=lambda each: each[1])
    return model[2], best[2], model[1] / best[1]


def bars(found: dict[str, list[tuple[float, float, float, float, int]]], path: Path, devices: str) -> None:
    """Iterations as in figure 18."""
    from matplotlib.figure import Figure

    figure = Figure((3.2 * len(found), 4.2), layout="constrained")
    for axes, (name, each) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
        slowest, mean, deciding, moved, _ = map(np.array, zip(*each, strict=True))
        deciding, moved = deciding / PRODUCTS, moved / PRODUCTS
        at = np.arange(len(each))
        axes.bar(at, slowest, color="tab:blue", label="slowest device")
        axes.bar(at, deciding, bottom=slowest, color="tab:orange", label="finding boundaries, a product")
        axes.bar(at, moved, bottom=slowest + deciding, color="tab:pink", label="moving rows, a product")
        axes.axhline(mean[-1], color="black", lw=0.8, label="mean of all devices, last iteration")
        axes.set(title=name, xlabel="iteration", ylabel="time (ms)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(f"Repartitioning by measured times: a product A @ x by pull on {devices}, compiled kernels")
    figure.savefig(path, dpi=110)


def points(known: list[tuple[Case, tuple[float, float]]], path: Path, devices: str) -> None:
    """Predicted by observed, as in figure 20."""
    from matplotlib.figure import Figure

    figure = Figure((4.2, 3.8), layout="constrained")
    axes = figure.subplots()
    for i, way in enumerate(("pull", "push")):
        axes.loglog([one.took[i] for one, _ in known], [told[i] for _, told in known], ".", label=way)
    ends = [bound(*axes.get_xlim(), *axes.get_ylim()) for bound in (min, max)]
    axes.loglog(ends, ends, color="black", lw=0.8, label="predicted = measured")
    axes.set(xlabel="measured time (ms)", ylabel="predicted time (ms)", xlim=ends, ylim=ends)
    axes.set_title(f"Products on {devices} and on its first device:\nLux's model and compiled kernels", fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


def repartitioning(arrays: dict[str, Any], devices: str) -> None:
    """Figure 18, of all graphs."""
    moves = {name: repartitioned(csr, devices) for name, csr in arrays.items()}
    rows = [
        [name, str(i), *(f"{ms:.2f}" for ms in each[:-1]), str(each[-1])]
        for name, found in moves.items()
        for i, each in enumerate(found)
    ]
    settled = [[name, *compared(csr, devices)] for name, csr in arrays.items()]
    bars(moves, RESULTS / "lux-repartitioning.png", devices)
    title = f"Lux's repartitioning in sessions, {devices}"
    parts: list[str | Table] = [
        Table(["graph", "iteration", "slowest device, ms", "mean", "finding", "moving", "moves"], rows,
              "Repartitioning (figure 18)",
              "Finding and moving: ms in all 25 products of the iteration, which follow the times in its row. "
              "Lux: 43% less time a round on one machine after a few iterations, moving approaches nothing."),
        "![ms by iteration](lux-repartitioning.png)",
        Table(["graph", *(f"{name}, ms" for name in POLICIES)], settled, "A product, once sessions have settled",
              "What the slowest device computes, and the whole product, which other programs on the cores delay. "
              "Steals rest where they were measured to save nothing, as on cores that others use."),
    ]  # fmt: skip
    page("lux-repartitioning", title, __doc__, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scales", type=int, nargs="+", default=[14, 16, 18])
    parser.add_argument("--only", choices=["repartitioning", "model"])
    given = parser.parse_args()
    cpu = given.devices.startswith("cpu")
    gb.init("cpu:1" if cpu else "cuda:0")
    arrays: dict[str, Any] = dict(graphs(given.scales, given.data, cpu))
    if cpu and given.only != "model":  # traces of GPUs have no seconds of each
        large = {name: csr for name, csr in arrays.items() if name not in {f"rmat{s}" for s in given.scales[:-1]}}
        repartitioning(large, given.devices)
    if given.only != "repartitioning":
        performance(arrays, given.devices, given.scales)


def performance(arrays: dict[str, Any], devices: str, scales: list[int]) -> None:
    """Figure 20."""
    cpu, seen = devices.startswith("cpu"), []  # type: tuple[bool, list[Case]]
    for name, csr in arrays.items():
        seen += cases(name, csr, devices)
        print(name, *(f"{pull:.2f} {push:.2f}" for *_, (pull, push) in seen[-2 * len(PARTS) :]), flush=True)
    trained = [f"rmat{scale}" for scale in scales[: -1 if cpu else None]]
    rates = fitted([one for one in seen if one.graph in trained])
    known = [(one, predicted(rates, one)) for one in seen]
    model = []
    for one, told in known:
        cells = [f"{ms:.2f}" for pair in zip(one.took, told, strict=True) for ms in pair]
        errors = [f"{ours / ms - 1:+.0%}" for ms, ours in zip(one.took, told, strict=True)]
        model.append(
            [one.graph, str(one.devices), f"1/{one.part}", *cells, *errors, "yes" if one.graph in trained else ""]
        )
    choices = []
    for name in arrays:
        for part in PARTS:
            choice, best, times = chosen([pair for pair in known if (pair[0].graph, pair[0].part) == (name, part)])
            choices.append([name, f"1/{part}", choice, best, f"{times:.2f}"])
    name = "lux" if cpu else "lux-gpu"
    points(known, RESULTS / f"{name}-model.png", devices)
    others = sorted({name for name in arrays if name not in trained})
    right, all_ = (sum(row[0] in others and (row[2] == row[3] or every) for row in choices) for every in (False, True))
    fits = sum(row[2] == row[3] for row in choices) - right
    note = f"The rates are fitted to {', '.join(trained)}: {fits} of their {len(choices) - all_} rows are right. "
    note += f"Of {', '.join(others)}, which the model has not seen, {right} of {all_} are."
    parts: list[str | Table] = [
        Table(["graph", "devices", "frontier", "pull, ms", "predicted", "push, ms", "predicted", "error, pull", "push",
               "fitted to"], model, "Performance model (figure 20)",
              "Lux: most errors of pulls are below 20%, those of pushes are larger."),
        f"![ms, predicted by observed]({name}-model.png)",
        Table(["graph", "frontier", "by the model", "best", "times as long"], choices, "What the model chooses", note),
    ]  # fmt: skip
    page(name, f"Lux's performance model, {devices}", __doc__, parts)


if __name__ == "__main__":
    main()
