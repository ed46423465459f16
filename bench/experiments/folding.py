"""Loops of several GPUs that are left to one: python -m bench.experiments.folding [road2m ...] [--devices cuda:0-1]

Loops whose rounds are short run on one GPU, on a replica of the matrix, and what changed goes back (docs/devices.md).
Medians of whole calls in ms, devices synchronised, loops captured before: on `one` GPU; `folded`, as all GPUs by
default; `apart`, all GPUs without replicas, so that each round is one of all. Results are compared.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import algos
import gbgpu as gb
from bench.device_graphs import make
from bench.experiments.gum import table
from bench.record import RESULTS, SETTLED, interleaved, machine, synchronized

COLUMNS = ["graph", "", "one", "folded", "apart", "folded / one", "apart / folded"]
STEPS = ("BFS", "SSSP", "components", "PageRank")
LONG = {("road24m", "SSSP"), ("trail24", "SSSP")}  # seconds a call


def measured(graph, devices: str, replicas: object, rounds: int, known: dict) -> dict[str, float]:
    """Milliseconds by step; `known` has what the first devices computed."""
    gb.init(devices, replicas=replicas)
    A, W = (gb.Matrix.from_csr(graph.indptr, graph.indices, vals, ncols=graph.n) for vals in (True, graph.weights))
    calls = {
        "BFS": lambda: algos.bfs_levels(A, graph.sources[0]),
        "SSSP": lambda: algos.sssp(W, graph.sources[1]),
        "components": lambda: algos.connected_components(A),
        "PageRank": lambda: algos.pagerank(A, tol=1e-6, dtype="FP32").ranks,
    }
    took, warm = {}, 8 if replicas == 0 else SETTLED
    for step in STEPS:
        if (graph.name, step) not in LONG:
            took[step] = 1e3 * interleaved([synchronized(calls[step])], rounds, warm)[0]
            found = calls[step]().to_coo()[1]
            np.testing.assert_allclose(found, known.setdefault(step, found), rtol=1e-3)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["road2m"])
    parser.add_argument("--devices", default="cuda:0-1")
    parser.add_argument("--data", default="data", help="the folder of .mtx.gz files")
    parser.add_argument("--rounds", type=int, default=5)
    given, rows = parser.parse_args(), []
    ways = {"one": ("cuda:0", "auto"), "folded": (given.devices, "auto"), "apart": (given.devices, 0)}
    for name in given.graphs:
        graph = make(name, given.data)
        known: dict[str, Any] = {}
        found = {way: measured(graph, *how, given.rounds, known) for way, how in ways.items()}
        for step, one in found["one"].items():
            folded, apart = found["folded"][step], found["apart"][step]
            cells = [name, step, *(f"{took:.2f}" for took in (one, folded, apart))]
            rows.append([*cells, f"{folded / one:.2f}", f"{apart / folded:.2f}"])
            print(*rows[-1], flush=True)
    about, names = machine(), " ".join(given.graphs)
    command = f"python -m bench.experiments.folding {names} --devices {given.devices}"
    text = ["# Loops that are left to one GPU", ""]
    text.append(f"`{command}`, {about['when']}, commit {about['commit']}; {', '.join(about['devices'])}")
    text += ["", *__doc__.strip().split("\n")[2:], "", table("Milliseconds", COLUMNS, rows)]
    (RESULTS / "folding.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
