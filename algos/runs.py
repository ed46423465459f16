"""The algorithms as the command and the demo run them: a table whose rows their own files declare."""

import gc
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from algos._inputs import row_lengths, vertex
from algos.graphs import both_ways
from gbgpu import Matrix, Vector, io, select, settings, synchronize, trace

TRACED = 3  # runs at most until one compiles nothing


@dataclass(frozen=True)
class Option:
    """`--name`; `choose(A, asked)` gives its value, also where None was asked. The help names the algorithms that take
    it in place of {}. `type` None: a flag, without a value."""

    name: str
    type: Callable[[str], Any] | None
    help: str
    choose: Callable[[Matrix, Any], Any]


@dataclass(frozen=True)
class Result:
    """A number for each id, `of(outcome)`; and what ids and numbers are called."""

    id: str
    value: str
    of: Callable[[Any], Vector] = lambda outcome: outcome


@dataclass(frozen=True)
class Algorithm:
    """`run(A, *options)` -> outcome; `verify(A, *options, outcome)`; `summary(outcome)` -> a few numbers by name.

    `result`: what `--output` writes; `top`: whose largest `--top` prints. `rehearse(A)` runs what `run` does not, so
    that kernels for it are compiled ahead as well."""

    run: Callable[..., Any]
    verify: Callable[..., None]
    summary: Callable[[Any], dict[str, Any]]
    options: tuple[Option, ...] = ()
    result: Result | None = None
    top: Result | None = None
    rehearse: Callable[[Matrix], Any] = lambda A: None

    def choose(self, A: Matrix, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each option."""
        return {option.name: option.choose(A, asked.get(option.name)) for option in self.options}


ALGORITHMS: dict[str, Algorithm] = {}  # what `gbgpu run NAME` runs, in the order of the imports in algos/__init__.py


FUNCTIONS = {  # whose command has another name
    "connected_components": "components",
    "strongly_connected_components": "strong",
    "triangle_count": "triangles",
    "minimum_spanning_forest": "forest",
    "core_numbers": "cores",
    "maximal_independent_set": "independent",
    "harmonic": "closeness",
    "truss_numbers": "truss",
    "k_truss": "truss",
    "greedy_color": "coloring",
    "label_propagation": "labels",
    "collaborative_filtering": "factors",
    "pagerank_push": "pagerank-push",
}


def options() -> dict[Option, list[str]]:
    """Every option, and the algorithms that take it."""
    taken: dict[Option, list[str]] = {}
    for name, algorithm in ALGORITHMS.items():
        for option in algorithm.options:
            taken.setdefault(option, []).append(name)
    return taken


def with_a(field: str) -> list[str]:
    """The algorithms whose row has a `result`, or a `top`."""
    return [name for name, algorithm in ALGORITHMS.items() if getattr(algorithm, field)]


def timed(algorithm: Algorithm, A: Matrix, *chosen: Any) -> tuple[Any, float]:
    """The outcome and the seconds until every device has ended."""
    synchronize()
    start = perf_counter()
    outcome = algorithm.run(A, *chosen)
    synchronize()
    return outcome, perf_counter() - start


def traced_warm(run: Callable[[], object], rounds: bool = False) -> list[Any]:
    """The records of a run that compiles nothing: `run()` goes on until there is one, three times at most. Python's
    garbage collector is off during each run.

    On several ranks all run as often as the one that needs most runs.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(TRACED):
            gc.collect()
            with trace(rounds=rounds) as records:
                run()
            compiles, ranks = any(record.step == "compile" for record in records), settings.ranks_in_force()
            if not (compiles if ranks is None else any(ranks.gathered(compiles, "whether kernels were compiled"))):
                break
    finally:
        if collecting:
            gc.enable()
    return records


def choose_source(A: Matrix, asked: int | None) -> int:
    """The vertex asked for, else the one of highest out-degree. IndexOutOfBound if there is none such."""
    if asked is not None or not A.nvals:
        return vertex(asked or 0, A.nrows)
    vertices, degrees = row_lengths(A).new().to_coo()
    return int(vertices[degrees.argmax()])


SOURCE = Option("source", int, "first vertex of {} (default: the highest out-degree)", choose_source)

SAMPLES = Option(
    "samples",
    int,
    "number of sources, drawn at random (default: 4); {}",
    lambda A, asked: min(4 if asked is None else asked, A.nrows),
)

WEIGHTED = Option("weighted", None, "use edge weights; {}", lambda A, asked: bool(asked))


def highest(numbers: Vector, name: str) -> dict[str, Any]:
    """The vertex of the largest number, and that number; nothing where there is no vertex."""
    vertices, values = numbers.to_coo()
    if not values.size:
        return {}
    top = int(values.argmax())
    return {"top_vertex": vertices[top], f"top_{name}": values[top]}


def ranking(name: str, value: str, **others: Any) -> None:
    """The row of an algorithm that gives a number to every vertex, `value`; others: fields of Algorithm."""
    found = Result("vertex", value)
    ALGORITHMS[name] = Algorithm(summary=lambda numbers: highest(numbers, value), result=found, top=found, **others)


USUAL = "bfs", "sssp", "components", "pagerank"
LONG = 24  # the side of a map whose searches take some dozens of rounds


def rehearse(names: Collection[str] | None = None) -> None:
    """Run everything, or the algorithms of these names, on a small graph, unweighted and with weights of each usual
    type; and what has many thin rounds on a road map."""
    for dtype in ("BOOL", "INT64", "FP32", "FP64"):
        given: dict[str, Any] = {"seed": 1, "weights": None if dtype == "BOOL" else (1, 9), "dtype": dtype}
        A, long = io.generate.rmat(7, 8, **given), io.generate.grid_road(LONG, **given)
        both_ways(select.tril(A).new())  # what a file of half the arcs becomes
        for name, algorithm in ALGORITHMS.items():
            if names is None or name in names:
                algorithm.run(A, *algorithm.choose(A, {}).values())
                algorithm.rehearse(A)
            if name in USUAL:
                algorithm.run(long, *algorithm.choose(long, {}).values())
