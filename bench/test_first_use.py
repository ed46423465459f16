"""Programs from start to end: fresh processes, with no kernel compiled before. (Python's own bytecode is there, as on
any machine after the first import.)"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import networkx as nx
import pytest

KARATE = f"""
import gbgpu as gb, algos
i, j = zip(*{list(nx.karate_club_graph().to_directed().edges())})
A = gb.Matrix.from_coo(i, j, 1.0, nrows=34, ncols=34)
assert algos.bfs(A, 0).levels.nvals == 34
"""
MORE = """
assert algos.pagerank(A).converged and algos.connected_components(A).reduce("max").new().value == 0
"""
DOZEN = """
import numpy as np, gbgpu as gb
from gbgpu import binary, monoid, select, unary
from gbgpu.semiring import min_plus, plus_times
rng = np.random.default_rng(1)
i, j = rng.integers(0, 1000, (2, 5000))
A = gb.Matrix.from_coo(i, j, rng.random(5000), nrows=1000, ncols=1000, dup_op="plus")
x, y, d = (gb.Vector(float, size=1000) for _ in range(3))
x[:] = 1
y << plus_times(A @ x)
y << y / y.reduce("max").new().value
x << unary.sqrt(abs(x - y))
x(binary.plus) << y.apply(lambda a: a * 2 + 1)
d[0] = 0
for _ in range(3):
    d(binary.min) << min_plus(d @ A)
x(d.S) << d
y(~x.V, gb.replace) << select.valuegt(x, 0.5)
z = binary.times(x & d).new()
B = A.select("<", 0.5).new()
s = B.reduce_rowwise("plus").new()
t = binary.max(z | s).new()
assert t.reduce(monoid.plus).new().value > 0
"""
PROGRAMS = {"BFS on karate": (KARATE, 600), "BFS, PageRank, components on karate": (KARATE + MORE, 1600)}
PROGRAMS["a dozen statements, 1,000 vertices"] = DOZEN, 1500
ROOT = Path(__file__).parent.parent
PROGRAMS["README's example"] = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0], 600


@pytest.mark.parametrize("what", PROGRAMS)
def test_first_use(beside, what):
    program, most = PROGRAMS[what]

    def run() -> None:
        with tempfile.TemporaryDirectory() as empty:
            environment = {**os.environ, "GBGPU_CACHE_DIR": empty, "PYTHONDONTWRITEBYTECODE": ""}
            output = subprocess.DEVNULL
            subprocess.run([sys.executable, "-c", program], env=environment, check=True, cwd=ROOT, stdout=output)

    note = "the whole process; no kernel compiled before"
    beside(f"first use: {what}", "auto", run, {}, rounds=5, at_most=most, note=note)
