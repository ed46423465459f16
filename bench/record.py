"""Rows of a measurement, and where they are kept: one JSON and one Markdown file a run under bench/results/."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path

import gbgpu as gb
from gbgpu.device import nvrtc
from gbgpu.testing import PACKAGES, versions
from gbgpu.timing import synchronized as synchronized  # for programs of this folder

RESULTS = Path(__file__).parent / "results"
SETTLED = 60  # calls after which loops of several GPUs go the way that takes least (gbgpu.engine.dealing)
COMPILED = 2  # calls after which what was compiled aside has taken its place


@dataclass
class Row:
    """One figure: medians in `unit`; `ratio` is what the target speaks of, and `met` whether it holds. `ours` is None
    where there was nothing to measure; the note says why."""

    what: str
    devices: str
    ours: float | None
    unit: str
    peer: str = ""
    theirs: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    note: str = ""


def interleaved(calls: Sequence[Callable[[], object]], rounds: int, warm: int = 3, seconds: float = inf) -> list[float]:
    """Median seconds of each call. Calls take turns, so that whatever else the machine does meets all of them. They
    are made `warm` times before, or until that has taken so many seconds. What they had compiled aside by then is
    there: to compile takes cores, of which calls on several GPUs have need."""
    until = time.perf_counter() + seconds
    for _ in range(warm):
        for call in calls:
            call()
        if time.perf_counter() > until:
            break
    for _ in range(COMPILED):
        nvrtc.settle()
        for call in calls:
            call()
    nvrtc.settle()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return [statistics.median(kept) for kept in times]


def machine() -> dict:
    """What the figures depend on: processor, versions, commit."""
    peers = "python-graphblas suitesparse-graphblas networkit networkx".split()
    return {
        "devices": sorted({found["model"] for found in gb.device_info()}),
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": versions(*PACKAGES, *peers),
        "commit": commit(),
    }


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit measured, with a + when files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=RESULTS.parent)
        return done.stdout.strip() if done.returncode == 0 else ""

    if named := os.environ.get("GBGPU_COMMIT"):  # measured on a copy without its history
        return named
    return (git("rev-parse", "--short", "HEAD") or "none") + ("+" if git("status", "--porcelain") else "")


def figure(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:.3g} {unit}".strip()


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | devices | gbgpu | peer | ratio | target | met | note |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        peer = f"{figure(row.theirs, row.unit)} {row.peer}".strip()
        met = "" if row.met is None else ("yes" if row.met else "**no**")
        cells = [row.what, row.devices, figure(row.ours, row.unit), peer, figure(row.ratio), row.target, met, row.note]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a Markdown table; numbers with three digits, whole ones with all of theirs. Short rows end empty."""

    def cell(x: object) -> str:
        return f"{x:,.3g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else str(x)

    lines = [[*columns], ["---"] * len(columns), *([cell(x) for x in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line + [''] * (len(columns) - len(line)))} |" for line in lines)


def experiment(doc: str | None, graphs: Sequence[str], devices: str) -> argparse.ArgumentParser:
    """The command of an experiment on graphs: these are what it takes by default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=graphs)
    parser.add_argument("--devices", default=devices)
    parser.add_argument("--data", default="data")
    parser.add_argument("--results", help="the name of the file under bench/results")
    return parser


def page(name: str | None, title: str, doc: str | None, parts: Sequence[str]) -> None:
    """Keep what an experiment found as `results/<name>.md`, below what it does and on what; nothing without a name. All
    ranks call it."""
    if name:
        what, where = (doc or "").partition("\n\n")[2].strip(), ", ".join(f"{k}: {v}" for k, v in machine().items())
    if name and gb.rank() == 0:
        (RESULTS / f"{name}.md").write_text("\n\n".join([f"# {title}", what, where, *parts]) + "\n")


def write(name: str, command: str, rows: Sequence[Row]) -> Path:
    """Keep the rows as `results/<name>.json` and `.md`; the newest run replaces the one before."""
    RESULTS.mkdir(exist_ok=True)
    about = machine()
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"command": command, **about, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
    )
    versions = ", ".join(f"{package} {version}" for package, version in about["versions"].items())
    text = [
        f"# {name}",
        "",
        f"`{command}`, {about['when']}, commit {about['commit']}",
        "",
        f"{', '.join(about['devices'])}; {about['cpu']}, {about['cores']} cores; "
        f"Python {about['python']}, {versions}. Medians.",
        "",
        table(rows),
    ]
    path = RESULTS / f"{name}.md"
    path.write_text("\n".join(text) + "\n")
    return path
