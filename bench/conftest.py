"""What the suites share: a call measured beside its peers, graphs, and the table written when all have run.

DATA=dir names a folder of NAME.mtx.gz files that the project may not ship; rows that need an absent one say so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import scipy.io
from scipy.sparse import csr_array

import gbgpu as gb
from bench.record import Row, table, write

ROWS: list[Row] = []


class Beside:
    """Measures a call by pytest-benchmark; before each of its rounds every peer runs once, so that whatever else the
    machine does meets all of them."""

    def __init__(self, benchmark: Any):
        self.benchmark = benchmark

    def __call__(
        self,
        what: str,
        devices: str,
        ours: Callable[[], object],
        peers: Mapping[str, Callable[[], object]],
        *,
        rounds: int,
        unit: str = "ms",
        least: float | None = None,
        at_most: float | None = None,
        note: str = "",
        warm: int = 1,
        **parameters: Any,
    ) -> Row:
        """Add a row: medians of ours and of the fastest peer. `least`: how many times faster ours must be; `at_most`:
        what it may take, in `unit`. The first calls of all (kernels are compiled or loaded) are not measured, nor the
        next ones of ours up to `warm`: loops that run often are written down."""

        def whole() -> None:
            ours()
            gb.synchronize()

        times: dict[str, list[float]] = {name: [] for name in peers}

        def others() -> None:
            for name, call in peers.items():
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)

        others()
        for _ in range(warm):
            whole()
        for kept in times.values():
            kept.clear()
        self.benchmark.pedantic(whole, setup=others, rounds=rounds, iterations=1)
        scale = {"ms": 1e3, "us": 1e6}[unit]
        mine = self.benchmark.stats.stats.median * scale
        theirs = {name: median(kept) * scale for name, kept in times.items()}
        peer = min(theirs, key=theirs.__getitem__, default="")
        row = Row(what, devices, mine, unit, peer, theirs.get(peer), note=note)
        row.ratio = theirs[peer] / mine if peer else None
        if least is not None:
            row.target, row.met = f">= {least:g} x as fast", theirs[peer] >= least * mine
        if at_most is not None:
            row.target, row.met = f"<= {at_most:g} {unit}", mine <= at_most
        others_too = ", ".join(f"{name} {theirs[name]:.3g} {unit}" for name in theirs if name != peer)
        row.note = "; ".join(part for part in (row.note, others_too) if part)
        self.benchmark.extra_info.update(parameters, what=what, devices=devices, peers=theirs, unit=unit)
        ROWS.append(row)
        print(table([row]).splitlines()[-1])
        return row


@pytest.fixture
def beside(benchmark: Any) -> Beside:
    return Beside(benchmark)


@pytest.fixture(scope="session")
def rmat() -> Callable[[int], csr_array]:
    """The RMAT graph of a scale (edge factor 16, symmetric, shuffled) with weights 1 to 255, as SciPy has it."""
    made: dict[int, csr_array] = {}

    def graph(scale: int) -> csr_array:
        if scale not in made:
            gb.init("cpu:1")
            made[scale] = gb.io.rmat(scale, 16, seed=1, weights=(1, 255), dtype="FP32").to_scipy_sparse()
        return made[scale]

    return graph


@pytest.fixture
def real() -> Callable[[str, str], csr_array]:
    """A graph of the folder DATA; where it is absent `what` gets a row that says so, and the test ends."""

    def graph(name: str, what: str) -> csr_array:
        folder = os.environ.get("DATA")
        path = Path(folder or "") / f"{name}.mtx.gz"
        if not folder or not path.exists():
            reason = f"absent: DATA=dir names the folder of {path.name}"
            ROWS.append(Row(what, "", None, "", note=reason))
            pytest.skip(reason)
        return csr_array(scipy.io.mmread(path).tocsr())

    return graph


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the table, if the whole suite ran."""
    asked, all_files = session.config.getoption, [Path(part).resolve() for part in session.config.args]
    timed = asked("benchmark_enable") or not asked("benchmark_disable")
    whole = timed and not asked("keyword") and not session.testsfailed and all_files == [Path(__file__).parent]
    if ROWS:
        print("\n" + table(ROWS))
    if ROWS and whole:
        print(f"\nwritten to {write('cpu', 'make bench', ROWS)}")
