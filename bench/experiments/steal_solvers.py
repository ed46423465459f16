"""The two solvers of the stealing problem beside each other: python -m bench.experiments.steal_solvers [--count 250]

Random rounds of four kinds, `count` of each kind and size: `uniform` costs; the `uneven` links of a DGX-1 (or, for 16
devices, of two sockets of PCIe); `infinite` costs of a third of the pairs; `zero` loads of half of the blocks. Gaps are
of z, the fast solver's beyond SCIP's; microseconds are of whole calls, medians, and for one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from statistics import median
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from gbgpu.balance import costs, level, solve, solve_exact, topology

KINDS = ("uniform", "uneven", "infinite", "zero")
SIZES = (2, 4, 8, 16)


def instance(random: np.random.Generator, kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs (n, n), seconds an edge, and loads (n,) of a round: 1e3 to 1e8 edges a block, compute of 5 to 50 ps an
    edge, 8 bytes an edge over links."""
    loads = (10 ** random.uniform(3, 8, n)).astype(np.int64)
    edge = random.uniform(5e-12, 50e-12, n)
    if kind == "uneven":
        host = topology("sim:dgx1-v100" if n <= 8 else "sim:pcie-16")
        chosen = random.permutation(host.n)[:n]
        found = (costs(np.zeros(host.n), host, 8.0)[np.ix_(chosen, chosen)]) + edge[:, None]
    else:
        found = edge[:, None] * (1 + random.uniform(0, 10, (n, n)) * ~np.eye(n, dtype=bool))
    if kind == "infinite":
        found[(random.random((n, n)) < 1 / 3) & ~np.eye(n, dtype=bool)] = np.inf
    if kind == "zero":
        loads[random.random(n) < 0.5] = 0
    return found, loads


def instances(count: int, sizes: tuple[int, ...], seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """`count` of each kind and size."""
    random = np.random.default_rng(seed)
    for n in sizes:
        for kind in KINDS:
            for _ in range(count):
                yield instance(random, kind, n)


def timed(call, *arguments):
    start = perf_counter()
    found = call(*arguments)
    return found, perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=250, help="rounds of each kind and size (default: 250)")
    count = parser.parse_args().count
    table = Table("n", "largest gap", "mean gap", "solve, us", "solve_exact, us", "level, us")
    for n in SIZES:
        gaps, fast, exact, flat = [], [], [], []
        solve(*instance(np.random.default_rng(0), "uniform", n))  # compiled or loaded
        for found, loads in instances(count, (n,)):
            solve(found, loads)
            shares, seconds = timed(solve, found, loads)
            best, slow = timed(solve_exact, found, loads)
            gaps.append(shares.seconds / best.seconds - 1 if best.seconds else 0.0)
            fast.append(seconds)
            exact.append(slow)
            flat.append(timed(level, loads, 1e-11, 1e-10)[1])
        times = (f"{1e6 * median(part):.1f}" for part in (fast, exact, flat))
        table.add_row(str(n), f"{max(gaps):.1e}", f"{np.mean(gaps):.1e}", *times)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
