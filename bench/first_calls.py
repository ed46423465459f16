"""First calls on a GPU: python -m bench.first_calls [FILE] (needs gbgpu[cuda12] or [cuda13])

Each algorithm in a fresh process in which nothing is compiled, neither gbgpu's kernels nor CuPy's own; and in the next
process. Only the call is timed, on a graph that is there: of RMAT, known to be symmetric, and of a file, of which that
is not known. Written to bench/results/first-calls.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median

from bench.record import Row, table, write

PROGRAM = """
import sys, time
import gbgpu as gb, algos
gb.init("cuda:0")
if sys.argv[2:]:
    A = gb.io.read(sys.argv[2])
else:
    A = gb.io.rmat(16, seed=1, weights=(1, 256) if sys.argv[1] == "sssp" else None)
call = {
    "bfs": lambda: algos.bfs(A, 0),
    "sssp": lambda: algos.sssp(A, 0),
    "components": lambda: algos.connected_components(A),
    "pagerank": lambda: algos.pagerank(A),
    "triangles": lambda: algos.triangle_count(A),
}[sys.argv[1]]
gb.synchronize()
start = time.perf_counter()
call()
gb.synchronize()
print(time.perf_counter() - start)
"""


WHICH = {"first call": 1.2, "first call of the next process": 0.15}  # seconds at most
RUNS = 3


def called(name: str, graph: list[str]) -> list[float]:
    """Seconds of the call in each of two processes, of which the first finds nothing."""
    with tempfile.TemporaryDirectory() as empty:
        folders = {f"{whose}_CACHE_DIR": os.path.join(empty, whose) for whose in ("GBGPU", "CUPY")}
        run = [sys.executable, "-c", PROGRAM, name, *graph]
        done = [subprocess.run(run, env={**os.environ, **folders}, check=True, capture_output=True) for _ in WHICH]
    return [float(each.stdout) for each in done]


def main() -> None:
    rows = []
    graphs = [[], *([file] for file in sys.argv[1:])]
    for name, graph in product(("bfs", "sssp", "components", "pagerank", "triangles"), graphs):
        times = zip(*(called(name, graph) for _ in range(RUNS)), strict=True)
        for (which, most), seconds in zip(WHICH.items(), map(median, times), strict=True):
            target = f"<= {most:g} s"
            what = f"{name} of {Path(*graph).name or 'RMAT 16'}, {which}"
            rows.append(Row(what, "cuda:0", seconds, "s", target=target, met=seconds <= most))
            print(rows[-1].what, f"{seconds:.2f} s", flush=True)
    write("first-calls", "python -m bench.first_calls", rows)
    print(table(rows))


if __name__ == "__main__":
    main()
