"""What the first calls in a process cost: fresh processes, medians of five, SciPy and NetworkX beside.

`python -m bench.first_use [--rounds 5]` writes bench/results/first-use.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.record import Table, markdown, page

ROOT = Path(__file__).parent.parent
SEARCHES = f"""
import json, sys, time
clock = time.perf_counter
calls = []
def run(call):
    start, cpu = clock(), time.process_time()
    call()
    calls.append((clock() - start, time.process_time() - cpu))
import scipy.io
S = scipy.io.mmread({str(ROOT / "data/PGPgiantcompo.mtx.gz")!r}).tocsr()
if sys.argv[1] == "gbgpu":
    import gbgpu as gb, algos
    A = gb.Matrix.from_scipy_sparse(S.astype(bool))
    begun = clock()
    for _ in range(5):
        run(lambda: algos.bfs(A, 0))
        time.sleep(float(sys.argv[2]))
elif sys.argv[1] == "SciPy":
    from scipy.sparse.csgraph import breadth_first_order
    for _ in range(5):
        run(lambda: breadth_first_order(S, 0))
else:
    import networkx as nx
    G = nx.from_scipy_sparse_array(S)
    for _ in range(5):
        run(lambda: nx.single_source_shortest_path_length(G, 0))
print(json.dumps(calls))
"""
SCRIPT = """
import numpy as np, scipy.sparse
S = scipy.sparse.random_array((2000, 2000), density=0.0025, rng=1, format="csr")
x = np.ones(2000)
"""
OURS = (
    SCRIPT
    + """
import gbgpu as gb
from gbgpu.semiring import plus_times
A, v = gb.Matrix.from_scipy_sparse(S), gb.Vector.from_dense(x)
for _ in range(5):
    v << plus_times(A @ v)
B = plus_times(A @ A).new()
print(v.reduce("plus").new().value, B.nvals)
"""
)
SCIPYS = (
    SCRIPT
    + """
for _ in range(5):
    x = S @ x
print(x.sum(), (S @ S).nnz)
"""
)


def started(program: str, folder: str, *arguments: str) -> Any:
    """Output, wall seconds and CPU seconds of a process with a kernel cache."""
    environment = {**os.environ, "GBGPU_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    start, before = time.perf_counter(), os.times()
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    took, after = time.perf_counter() - start, os.times()
    return done.stdout, took, after.children_user - before.children_user


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = range(parser.parse_args().rounds)
    rows = []

    def searches(what: str, of: str, folder: object, wait: str = "0") -> None:
        told = [json.loads(started(SEARCHES, str(folder()), of, wait)[0]) for _ in rounds]  # type: ignore[operator]
        for name, pick in (("first", lambda calls: calls[0]), ("second", lambda calls: calls[1])):
            wall, cpu = (median(pick(calls)[k] for calls in told) for k in (0, 1))
            rows.append((f"{what}, {name} BFS", wall, cpu))
        rows.append((f"{what}, longest call", median(max(c[0] for c in calls) for calls in told), 0.0))

    with tempfile.TemporaryDirectory() as filled:
        started(SEARCHES, filled, "gbgpu", "0")
        searches("gbgpu, filled cache", "gbgpu", lambda: filled)
        searches("gbgpu, empty cache, a second between calls", "gbgpu", tempfile.mkdtemp, "1")
        searches("SciPy", "SciPy", lambda: filled)
        searches("NetworkX", "NetworkX", lambda: filled)
        started(OURS, filled)
        for what, program in (("gbgpu", OURS), ("SciPy", SCIPYS)):
            told = [started(program, filled) for _ in rounds]
            rows.append(
                (f"{what}, script of 10^4 entries, whole process", *(median(t[k] for t in told) for k in (1, 2)))
            )
    text = "Fresh processes on README's graph (PGPgiantcompo, 48,632 entries); kernel caches as said. Medians. Other "
    text += "programs may have run on the cores meanwhile: CPU time is the steadier figure."
    cells = [[what, f"{1e3 * wall:.1f}", f"{1e3 * cpu:.1f}" if cpu else ""] for what, wall, cpu in rows]
    found = Table(["what", "wall ms", "CPU ms"], cells)
    page("first-use", "First use", f"\n\n{text}", [found])
    print(markdown(found))


if __name__ == "__main__":
    main()
