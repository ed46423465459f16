"""GPU figures: python -m bench.gpu GRAPHDIR... [--devices cuda:0] [--rounds 5] [--only spmv] [--no-verify]

A GRAPHDIR holds one symmetric graph as arrays: indptr.npy, indices.npy, weights.npy, and info.json with `name` and
`sources`. Times are
medians of whole calls, the devices synchronised, the graph on the device and the kernels compiled; results are
verified by properties.
Bytes between devices, launches and host reads are counted for each statement.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import algos
import gbgpu as gb
from algos import verify
from bench.record import Row, interleaved, table, write
from gbgpu.trace import counters


def synchronized(call: Callable[[], object]) -> Callable[[], None]:
    def whole() -> None:
        call()
        gb.synchronize()

    return whole


def timed(call: Callable[[], object], rounds: int) -> float:
    return interleaved([synchronized(call)], rounds, warm=1)[0] * 1e3


def cusparse(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> Callable[[], object]:
    """y = A @ x of the same matrix through CuPy."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    n = len(indptr) - 1
    parts = cupy.asarray(weights), cupy.asarray(indices.astype(np.int32)), cupy.asarray(indptr.astype(np.int32))
    matrix, x = csr_matrix(parts, shape=(n, n)), cupy.random.random(n, dtype=cupy.float32)
    return lambda: matrix @ x


def per_statement(call: Callable[[], object]) -> str:
    """Launches, host reads and bytes between devices, a statement each."""
    before = counters.statements, counters.launches, counters.host_reads, counters.exchanged
    call()
    done = counters.statements - before[0]
    launches, reads, moved = (
        now - old
        for now, old in zip((counters.launches, counters.host_reads, counters.exchanged), before[1:], strict=True)
    )
    each = f"{launches / done:.1f} launches, {reads / done:.2f} host reads, {moved / done:.0f} B exchanged"
    return f"{done} statements; a statement: {each}"


def graph_rows(folder: Path, devices: str, rounds: int, check: bool, only: str) -> list[Row]:
    info = json.loads((folder / "info.json").read_text())
    indptr, indices, weights = (np.load(folder / f"{part}.npy") for part in ("indptr", "indices", "weights"))
    n, name = len(indptr) - 1, info["name"]
    pattern = gb.Matrix.from_csr(indptr, indices, True, ncols=n)
    weighted = gb.Matrix.from_csr(indptr, indices, weights, ncols=n)
    hub, other = info["sources"][:2]
    peer = cusparse(indptr, indices, weights)
    x, y = gb.Vector.from_dense(np.random.default_rng(0).random(n, np.float32)), gb.Vector("FP32", n)
    calls: dict[str, tuple[Callable[[], object], Callable[[object], None] | None]] = {
        "y = A @ x, FP32": (lambda: y << gb.semiring.plus_times(weighted @ x), None),
        "bfs from the hub": (lambda: algos.bfs(pattern, hub), lambda found: verify.bfs(pattern, hub, *found)),
        "bfs from a random vertex": (lambda: algos.bfs(pattern, other), None),
        "sssp from a random vertex": (
            lambda: algos.sssp(weighted, other),
            lambda found: verify.sssp(weighted, other, found),
        ),
        "pagerank, 20 iterations, FP32": (
            lambda: algos.pagerank(pattern, tol=0, max_iterations=20, dtype="FP32"),
            None,
        ),
        "components": (
            lambda: algos.connected_components(pattern),
            lambda found: verify.connected_components(pattern, found),
        ),
    }
    rows = []
    for what, (call, test) in calls.items():
        if only and only not in what:
            continue
        found = call()
        note = per_statement(call)
        if "A @ x" in what:
            ours, theirs = (seconds * 1e3 for seconds in interleaved([synchronized(call), synchronized(peer)], 20))
            row = Row(f"{name}: {what}", devices, ours, "ms", "cuSPARSE", theirs, ours / theirs, note=note)
        else:
            row = Row(f"{name}: {what}", devices, timed(call, rounds if "sssp" not in what else 3), "ms", note=note)
        if check and test is not None:
            start = time.perf_counter()
            test(found)
            print(f"  verified in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
        rows.append(row)
        print(table([row]).splitlines()[-1], flush=True)
    if check and not only:
        ranks, _, converged = algos.pagerank(pattern)
        verify.pagerank(pattern, ranks)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", type=Path)
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--no-verify", action="store_true")
    options = parser.parse_args()
    gb.init(options.devices)
    check, rows = not options.no_verify, []
    for folder in options.graphs:
        rows += graph_rows(folder, options.devices, options.rounds, check, options.only)
    print(table(rows))
    if not options.only:
        name = "gpu" if options.devices == "cuda:0" else "gpu-" + options.devices.replace(":", "").replace("*", "x")
        names = " ".join(folder.name for folder in options.graphs)
        print(write(name, f"python -m bench.gpu {names} --devices {options.devices}", rows))


if __name__ == "__main__":
    main()
