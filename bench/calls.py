"""How calls settle on a GPU: python -m bench.calls [GRAPH ...] [--devices cuda:0] [--data FOLDER]

Each algorithm is called forty times with a matrix that nothing has read before, twice: kernels are compiled in the
first series, the second one is a new session in which they are there. Shown are milliseconds of whole calls, the
devices synchronised before and after. "first" is the first call of the first series; the numbered columns, by the
number of the call, and "settled", the median of calls 31 to 40, are of the second. "host" is what such a settled call
takes but for waiting for devices. The last result of each series is checked (bench/device_checks.py). In bold is what
misses: a second call of at most 1.5 settled ones, a third of 1.15, 120 microseconds of the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import cupy

import gbgpu as gb
from bench.device_graphs import Graph, make
from bench.gpu import SMALL, Bench
from bench.record import Table, experiment, markdown, page
from gbgpu.device import nvrtc

NAMES = ("rmat22", "kron21", "rmat24", "road24m", *SMALL, "luxembourg_osm")
STEPS = {"BFS, hub": "bfs hub", "SSSP": "sssp", "components": "components", "PageRank x 20": "pagerank"}
SHOWN, CALLS, SETTLED = (1, 2, 3, 5, 10), 40, 10
MOST = {2: 1.5, 3: 1.15}  # settled calls that a call takes at most, by its number
HOST = 0.12  # milliseconds


def series(call: Callable[[], Any]) -> tuple[list[float], list[float], Any]:
    """Milliseconds of each call, those of them that the host did not wait for a device, and the last result."""
    took, host, found = [], [], None
    for _ in range(CALLS):
        gb.synchronize()
        waited, start = _waited(), time.perf_counter()
        found = call()
        back = time.perf_counter()
        host.append(1e3 * (back - start - (_waited() - waited)))
        gb.synchronize()
        took.append(1e3 * (time.perf_counter() - start))
    return took, host, found


def _waited() -> float:
    """Seconds that the host has waited for values of the first device, which gives results to it."""
    return float(getattr(gb.settings.session().devices[0], "waited", 0.0))


def measured(graph: Graph, devices: str) -> list[list[Any]]:
    """The rows of one graph."""
    rows = []
    for title, step in STEPS.items():
        first = 0.0
        for again in (False, True):
            gb.init(devices)
            bench = Bench(graph)
            took, host, found = series(bench.call(step))
            bench.check(step, found)
            first = first if again else took[0]
            del found, bench
            nvrtc.settle()  # what was compiled aside
        settled, own = median(took[-SETTLED:]), median(host[-SETTLED:])
        shown = [_bold(took[k - 1], MOST.get(k, float("inf")) * settled) for k in SHOWN]
        rows.append([title, first, *shown, settled, _bold(own, HOST)])
        print(graph.name, rows[-1], flush=True)
    return rows


def _bold(value: float, most: float) -> str:
    text = f"{value:,.3g}"
    return text if value <= most else f"**{text}**"


def main() -> None:
    options = experiment(__doc__, NAMES, "cuda:0").parse_args()
    gb.init(options.devices)
    parts = []
    for name in options.graphs:
        rows = measured(make(name, options.data), options.devices)
        parts.append(Table(["", "first", *map(str, SHOWN), "settled", "host"], rows, name))
        print(markdown(parts[-1]), flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
    page(options.results, f"Calls until they settle, {options.devices}", __doc__, parts)


if __name__ == "__main__":
    main()
