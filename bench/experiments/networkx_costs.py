"""What functions of the NetworkX backend cost beside NetworkX: python -m bench.experiments.networkx_costs

Each function runs on each graph in a process of its own (a fork that has imported everything), so that its first call
loads its kernels. CPU seconds of the process (the machine may be shared), the least of a few calls. Whole scripts run
with and without the backend. Run `gbgpu compile` before. Writes
bench/results/networkx-costs.md.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import os
import pickle
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx

from _gbgpu_nx import GROUPS

SIZES = (300, 3000, 30_000)
LONGEST = 4.0  # seconds of either, predicted, from which on a larger graph is left out
CALLS = 2  # in a script
MODES = {"alone": (False, False), "empty": (True, True), "filled": (True, False)}  # automatic, with an empty cache
SCRIPTS = """pagerank weakly_connected_components connected_components strongly_connected_components bfs_tree
    greedy_color betweenness_centrality single_source_dijkstra_path_length triangles core_number
    label_propagation_communities"""
COMPILED = "kernels were compiled"
NAMES = [
    name
    for group, names in GROUPS.items()
    if "generators" not in group
    for name in names.split()
    if name != "from_scipy_sparse_array"
]


def _grid(n: int) -> nx.Graph:
    side = round(n**0.5)
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))


def _layers(n: int, width: int = 10) -> nx.DiGraph:
    """A long DAG: layers of ten nodes, each with arcs to four of the next layer."""
    G = nx.empty_graph(n, nx.DiGraph)
    draw = random.Random(1)
    for u in range(n - width):
        first = (u // width + 1) * width
        G.add_edges_from((u, first + v) for v in draw.sample(range(width), 4) if first + v < n)
    return G


GRAPHS: dict[str, Callable[[int], nx.Graph]] = {
    "random": lambda n: nx.gnm_random_graph(n, 4 * n, seed=1),
    "scale-free": lambda n: nx.barabasi_albert_graph(n, 4, seed=1),
    "path": nx.path_graph,
    "grid": _grid,
    "directed": lambda n: nx.gnm_random_graph(n, 4 * n, seed=1, directed=True),
    "DAG": _layers,
}


def public(name: str) -> Any:
    return getattr(nx, name, None) or getattr(nx.community, name)


def given(name: str, G: nx.Graph, k: int = 4) -> dict[str, Any]:
    """Arguments of a call that both can do. `k`: from how many nodes betweenness searches."""
    first, last = 0, len(G) - 1
    values = {"source": first, "sources": {first}, "target": last, "n": first, "distance": 3, "k": 3}
    parameters = inspect.signature(public(name)).parameters
    found = {p.name: values[p.name] for p in parameters.values() if p.name in values and p.default is p.empty}
    if "betweenness" in name:
        found["k"] = k
    if name in ("shortest_path", "shortest_path_length"):
        found["source"] = first
    if "ebunch" in parameters:
        found["ebunch"] = [(u, (7 * u + 3) % len(G)) for u in range(0, len(G), 2)]
    return found


def consumed(found: Any) -> Any:
    return list(found) if isinstance(found, Iterator) else found


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    consumed(call())
    return time.process_time() - start


def least(call: Callable[[], Any], first: float, budget: float = 0.5) -> float:
    """Of a few more calls."""
    times = [first]
    while len(times) < 2 or (len(times) < 5 and sum(times) < budget / 5):
        times.append(seconds(call))
    return min(times[1:])


def measured(name: str, G: nx.Graph) -> dict[str, Any] | str:
    """Seconds: NetworkX's; `conversion`; `first`, the first call in a process, on a converted graph; `later`, on
    another conversion; `again`, on the same one. `kernels`: how many the first call loaded."""
    import algos.nx
    from algos._nx_offers import OFFERS
    from gbgpu import settings
    from gbgpu.trace import compiling

    function, arguments = public(name), given(name, G)
    can = OFFERS[name].can((G,), arguments)
    if can is not True:
        return str(can)
    run = lambda: function(G, **arguments, backend="networkx")  # noqa: E731
    first = seconds(run)
    found: dict[str, Any] = {"networkx": first if first > 1 else min(first, least(run, first))}
    settings.session()
    drawn = {"seed": random.Random(1)} if "betweenness" in name else {}
    converted: list[Any] = []

    def convert() -> None:
        converted.append(algos.nx.from_networkx(G))
        converted[-1]._arrays.pattern()

    def ours() -> Any:
        return OFFERS[name].call(converted[-1], **arguments, **drawn)

    seconds(convert)
    before = compiling.kernels
    found["first"], found["kernels"] = seconds(ours), compiling.kernels - before
    if "gbgpu.kernels.compiled" in sys.modules:
        return COMPILED
    if found["first"] > 1:
        return {**found, "later": found["first"]}
    conversions, later = [], []
    for _ in range(2):
        conversions.append(seconds(convert))
        later.append(seconds(ours))
    return {**found, "conversion": min(conversions), "later": min(later), "again": seconds(ours)}


def _grown(name: str) -> int:
    """How much longer a graph of ten times the nodes takes, at least."""
    pairs = name in GROUPS["distances"].split() or name.startswith(("all_pairs", "johnson", "floyd"))
    return 100 if pairs else 10


def forked(work: Callable[[], Any], limit: int) -> Any:
    """What work() gives in a child; the name of an exception, or "too long"."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(limit)
        try:
            answer = work()
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "wb") as file:
            pickle.dump(answer, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else "too long"


def script(name: str, G: nx.Graph, automatic: bool, empty: bool) -> tuple[float, float, bool]:
    """(CPU seconds, seconds, whether gbgpu was imported) of CALLS calls in a process without gbgpu, NumPy and SciPy."""
    function, arguments = public(name), given(name, G, k=2)
    if "k" in arguments and "betweenness" in name:
        arguments["seed"] = 1  # the same nodes each time
    nx.config.backend_priority.algos = ["gbgpu"] * automatic
    with TemporaryDirectory() as folder:
        if empty:
            os.environ["GBGPU_CACHE_DIR"] = folder
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(CALLS):
            consumed(function(G, **arguments))
        return time.process_time() - cpu, time.perf_counter() - start, "gbgpu" in sys.modules


def scripts(sizes: list[int], output: Path) -> None:
    """Scripts with and without the backend, with an empty cache and the one there is."""
    nx.config.warnings_to_ignore.add("cache")
    rows: dict[str, Any] = {}
    gc.freeze()  # else children copy what their collections go through
    for n in sizes:
        for kind in ("random", "path", "grid", "DAG"):
            G = GRAPHS[kind](n)
            for name in SCRIPTS.split():
                found: dict[str, list[Any]] = {mode: [] for mode in MODES}
                for mode in 3 * [*MODES]:  # one after the other: others may use the machine
                    if found["alone"] and isinstance(found["alone"][-1], str):
                        break  # NetworkX has raised an exception, or takes too long
                    found[mode].append(forked(lambda: script(name, G, *MODES[mode]), 30))  # noqa: B023
                else:
                    rows[f"{name} {kind} {n}"] = row = {mode: min(times) for mode, times in found.items()}
                    print(name, kind, n, row, file=sys.stderr, flush=True)
    output.write_text(json.dumps(rows, indent=0))


def table(costs: Path, found: Path) -> None:
    """Both as tables of milliseconds, with what is predicted."""
    import _gbgpu_nx_costs as predictions
    from bench.record import Table, page

    made: dict[tuple[str, int], nx.Graph] = {}
    rows, lines = json.loads(costs.read_text()), []
    largest: dict[tuple[str, str], int] = {}
    for key, row in rows.items():
        name, kind, n = key.split()
        if isinstance(row, dict):
            largest[name, kind] = max(int(n), largest.get((name, kind), 0))
    for (name, kind), n in largest.items():
        G, row = made.setdefault((kind, n), made.get((kind, n)) or GRAPHS[kind](n)), rows[f"{name} {kind} {n}"]
        theirs, ours, _ = predictions.predicted(name, G, {"G": G, **given(name, G)})
        predicted = theirs, sum(seconds for seconds, _ in ours)
        measures = (row.get(part) for part in ("networkx", "conversion", "first", "later"))
        cells = [name, kind, f"{n:,}", *map(_cell, measures), *map(_cell, predicted)]
        lines.append([*cells, "gbgpu" if predicted[0] > predicted[1] else "NetworkX"])
    scripts_ = []
    for key, row in json.loads(found.read_text()).items():
        alone, *others = (row[mode] for mode in ("alone", "empty", "filled"))
        if all(isinstance(one, list) for one in (alone, *others)):
            cells = [*key.split(), _cell(alone[0])]
            for cpu, _, used in others:
                cells += [_cell(cpu), "gbgpu" if used else "NetworkX"]
            scripts_.append(cells)
    parts = [Table(COLUMNS, lines), Table(BY_SCRIPT, scripts_, "Scripts", SECOND.format(calls=CALLS))]
    page("networkx-costs", "What functions of the NetworkX backend cost", HEAD, parts)


def _cell(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


HEAD = """

CPU milliseconds beside NetworkX. `_gbgpu_nx_costs.py` predicts by these numbers.

- conversion: of the graph, with its matrix.
- first: the first call in a process, on a converted graph. It loads kernels from a filled cache.
- later: a later call, on another conversion. What a graph keeps is computed anew.
- predicted: NetworkX; gbgpu with the conversion, kernels loaded. The decision is that of such a call.

The largest graph that each function was measured on:"""
COLUMNS = "function|graph|nodes|NetworkX|conversion|first|later|predicted: NetworkX|gbgpu|decision".split("|")
BY_SCRIPT = "function|graph|nodes|alone|empty cache|by|filled cache|by".split("|")
SECOND = """\
Processes of {calls} calls on one graph, without the backend and with `NETWORKX_AUTOMATIC_BACKENDS=gbgpu`, with an empty
cache of kernels and with one that `gbgpu compile` filled. All began without gbgpu, NumPy and SciPy. The least of three.
Each is a fork, in which the backend's first question takes 5 ms; it takes 3 ms in a process of its own."""


def functions(sizes: list[int], names: list[str], output: Path) -> None:
    """Each function on each graph; what was measured before stays."""
    import scipy.sparse.linalg  # noqa: F401  NetworkX imports it in its first calls

    import algos.nx  # noqa: F401

    rows = json.loads(output.read_text()) if output.exists() else {}
    for n in sizes:
        for kind, make in GRAPHS.items():
            G = make(n)
            for name in names:
                key, before = f"{name} {kind} {n}", rows.get(f"{name} {kind} {n // 10}")
                if key in rows or n > min(SIZES) and not isinstance(before, dict):
                    continue
                if before and _grown(name) * max(before["networkx"], before["later"]) > LONGEST:
                    continue
                rows[key] = COMPILED
                while rows[key] == COMPILED:
                    rows[key] = forked(lambda: measured(name, G), 60)  # noqa: B023
                print(key, rows[key], file=sys.stderr, flush=True)
                output.write_text(json.dumps(rows, indent=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--names", nargs="*", default=NAMES)
    parser.add_argument("--output", type=Path, default=Path(".benchmarks/networkx-costs.json"), help="raw numbers")
    parser.add_argument("--scripts", action="store_true", help="measure whole scripts only")
    parser.add_argument("--functions", action="store_true", help="measure functions only")
    parser.add_argument("--table", action="store_true", help="only make the table of what was measured")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(exist_ok=True)
    found = arguments.output.with_name("networkx-scripts.json")
    all_ = not (arguments.scripts or arguments.functions or arguments.table)
    if arguments.scripts or all_:  # first: nothing is imported yet
        scripts(arguments.sizes, found)
    if arguments.functions or all_:
        functions(arguments.sizes, arguments.names, arguments.output)
    if arguments.table or all_:
        table(arguments.output, found)


if __name__ == "__main__":
    main()
