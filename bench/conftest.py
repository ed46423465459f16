"""What the suites share: a call measured beside its peers, graphs, and the table written when all have run.

DATA=dir names a folder of NAME.mtx.gz files that the project may not ship; rows that need an absent one say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import scipy.io
from scipy.sparse import csr_array

import gbgpu as gb
from bench.record import Row, table, write
from gbgpu.testing import Graphs

pytest_plugins = ["_gbgpu_pytest"]  # in a checkout that is not installed, too
ROWS: list[Row] = []


class Rows:
    """Rows of the table, each of a call that `beside` of the plugin has timed."""

    def __init__(self, beside: Any, request: pytest.FixtureRequest):
        self._beside, self._request = beside, request

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
        of: str = "",
        at_most: float | None = None,
        note: str = "",
        **parameters: Any,
    ) -> None:
        """Add a row: medians of ours and of the fastest peer. `least`: how many times faster ours must be, than the
        peer `of` if that is not the fastest one; `at_most`: what it may take, in `unit`. Both fail with --gb-enforce.
        """
        scale, target = {"ms": 1, "us": 1e3}[unit], pytest.mark.gb_target
        if least is not None:
            self._request.node.add_marker(target(ratio=least, of=of or None))
        if at_most is not None:
            self._request.node.add_marker(target(milliseconds=at_most / scale))
        self._request.getfixturevalue("gb_benchmark").extra_info.update(parameters, what=what)
        found = self._beside(ours, peers, rounds=rounds)
        if found is None:
            return
        mine, theirs = found.milliseconds * scale, {name: took * scale for name, took in found.peers.items()}
        row = Row(what, devices, mine, unit, found.peer, theirs.get(found.peer), found.ratio, note=note)
        if least is not None:
            row.target = f">= {least:g} x as fast" + (f" as {of}" if of else "")
            row.met = theirs[of or found.peer] >= least * mine
        if at_most is not None:
            row.target, row.met = f"<= {at_most:g} {unit}", mine <= at_most
        others_too = ", ".join(f"{name} {theirs[name]:.3g} {unit}" for name in theirs if name != found.peer)
        row.note = "; ".join(part for part in (row.note, others_too) if part)
        ROWS.append(row)
        print(table([row]).splitlines()[-1])


@pytest.fixture
def beside(beside: Any, request: pytest.FixtureRequest) -> Rows:
    return Rows(beside, request)


@pytest.fixture(scope="session")
def rmat() -> Callable[[int], csr_array]:
    """The RMAT graph of a scale (edge factor 16, symmetric, shuffled) with weights 1 to 255, as SciPy has it."""

    @cache
    def graph(scale: int) -> csr_array:
        gb.init("cpu:1")
        return Graphs()("rmat", scale, 16, weights=(1, 255), dtype="FP32").to_scipy_sparse()

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
