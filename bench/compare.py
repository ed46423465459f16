"""This checkout beside another commit: python -m bench.compare BASE [--devices cpu:2] [--pairs 6] [--threshold 1.1]

BASE is checked out into a git worktree of its own. Pairs of processes, one of each commit, run one pair after another.
In a pair calls take turns, so that other load on the machine meets both. The ratio of a pair is the median,
over its turns, of the time of this checkout by that of BASE. Processes of one commit differ among themselves, by where
their memory lies, so a pair counts once, however many calls it makes. Shown are the median ratio of all pairs and its
confidence interval by order statistics: of six pairs, from the least to the largest, 97%. The exit status is 1 if a
whole interval is above the threshold. Both commits use the same cache of kernels.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import comb
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
ROWS = "bfs", "sssp", "pagerank", "components", "triangles"
WARM = 8  # calls of each row before the timed ones
CONFIDENCE = 0.95


def worker(devices: str, graph: str) -> None:
    """Answer each row's name on stdin with the seconds of a call on stdout, until stdin ends."""
    import algos
    import gbgpu as gb
    from algos.graphs import load

    gb.init(devices)
    A = load(graph)
    calls: dict[str, Callable[[], object]] = {
        "bfs": lambda: algos.bfs(A, source),
        "sssp": lambda: algos.sssp(A, source),
        "pagerank": lambda: algos.pagerank(A, tol=0, max_iterations=20),
        "components": lambda: algos.connected_components(A),
        "triangles": lambda: algos.triangle_count(A),
    }
    source = int(A.reduce_rowwise(gb.monoid.plus).new().to_dense(0).argmax())
    print(gb.__file__, flush=True)
    for line in sys.stdin:
        gb.synchronize()
        start = time.perf_counter()
        calls[line.strip()]()
        gb.synchronize()
        print(time.perf_counter() - start, flush=True)


class Side:
    """A process that runs the calls of one checkout."""

    def __init__(self, folder: Path, devices: str, graph: str):
        words = [sys.executable, "-P", __file__, "--worker", "--devices", devices, "--graph", graph, ""]
        pipe, surroundings = subprocess.PIPE, {**os.environ, "PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=surroundings)
        if not (loaded := self._answer()).startswith(f"{folder}/"):
            raise RuntimeError(f"expected gbgpu of {folder}; came {loaded!r}. Hint: is the package there?")

    def seconds(self, row: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{row}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"the process of a checkout ended with status {self._process.wait()}")
        return line.strip()

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A worktree of a commit, removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "base"
        add = ["git", "worktree", "add", "--quiet", "--detach", str(path), commit]
        subprocess.run(add, cwd=ROOT, check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], cwd=ROOT, check=True)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Bounds of the median by order statistics: the narrowest pair, as far from both ends, of enough confidence.

    With few ratios the bounds are the least and the largest, whatever their confidence.
    """
    ordered, n = sorted(ratios), len(ratios)
    outside, k = 0.0, 0
    while k < (n - 1) // 2 and outside + 2 * comb(n, k) / 2**n <= 1 - CONFIDENCE:
        outside += 2 * comb(n, k) / 2**n
        k += 1
    low = max(k - 1, 0)
    return ordered[low], ordered[n - 1 - low]


def turns(sides: list[Side], row: str, rounds: int, first: int) -> list[list[float]]:
    """Seconds of the calls of both sides, which take turns, and turns in who begins."""
    for _ in range(WARM):
        for side in sides:
            side.seconds(row)
    times: list[list[float]] = [[], []]
    for turn in range(first, first + rounds):
        for k in (0, 1) if turn % 2 else (1, 0):
            times[k].append(sides[k].seconds(row))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--graph", default="rmat:15:16:1:1-255")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=7, help="turns of a pair")
    parser.add_argument("--threshold", type=float, default=1.1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.devices, options.graph)
        return 0
    if min(options.pairs, options.rounds) < 1:
        parser.error(f"expected at least 1 pair and 1 round; came {options.pairs} and {options.rounds}")
    known = ["git", "rev-parse", "--verify", "--quiet", f"{options.base}^{{commit}}"]
    if subprocess.run(known, cwd=ROOT, stdout=subprocess.DEVNULL).returncode:
        parser.error(f"expected a commit of this repository; came {options.base!r}. Hint: BASE=HEAD~1")
    slower, rows = [], list(options.rows)
    here, there, ratios = ({row: list[float]() for row in rows} for _ in range(3))
    with checkout(options.base) as folder:
        for pair in range(options.pairs):
            sides = [Side(path, options.devices, options.graph) for path in (ROOT, folder)]
            for row in rows:
                mine, base = turns(sides, row, options.rounds, pair)
                here[row] += mine
                there[row] += base
                ratios[row].append(median(a / b for a, b in zip(mine, base, strict=True)))
            for side in sides:
                side.close()
    print(f"| {options.devices}, {options.graph} | here, ms | {options.base}, ms | ratio | interval |")
    print("|---|---|---|---|---|")
    for row in rows:
        low, high = interval(ratios[row])
        slower += [row] if low > options.threshold else []
        times = f"{1e3 * median(here[row]):.3g} | {1e3 * median(there[row]):.3g}"
        print(f"| {row} | {times} | {median(ratios[row]):.3f} | {low:.3f} to {high:.3f} |")
    if slower:
        print(f"slower than {options.threshold:g} times {options.base}: {', '.join(slower)}", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
