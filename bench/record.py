"""Rows of a measurement, and where they are kept: a JSON file under bench/results/, and what is made of it
(algos/measurements.py)."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import gbgpu as gb
from algos.measurements import Row as Row
from algos.measurements import Table as Table
from algos.measurements import keep, machine, markdown, of_rows
from gbgpu.device import nvrtc
from gbgpu.timing import synchronized as synchronized  # for programs of this folder

RESULTS = Path(__file__).parent / "results"
SETTLED = 60  # calls after which loops of several GPUs go the way that takes least (gbgpu.engine.dealing)
COMPILED = 2  # calls after which what was compiled aside has taken its place


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


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    return markdown(of_rows(rows))


def experiment(doc: str | None, graphs: Sequence[str], devices: str) -> argparse.ArgumentParser:
    """The command of an experiment on graphs: these are what it takes by default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=graphs)
    parser.add_argument("--devices", default=devices)
    parser.add_argument("--data", default="data")
    parser.add_argument("--results", help="the name of the file under bench/results")
    return parser


def command() -> str:
    """The command of this process. The folder of --data has another name on each machine, and is called DATA."""
    words, module = sys.argv[1:], sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]
    data = [" DATA" if k and words[k - 1] == "--data" else f" {word}" for k, word in enumerate(words)]
    return f"python -m {module}{''.join(data)}"


def page(name: str | None, title: str, doc: str | None, parts: Sequence[str | Table]) -> None:
    """Keep what an experiment found as `results/<name>.json` and `.md`; nothing without a name. `doc`: what it
    does, in a docstring, without its first paragraph and indented ones. All ranks call it."""
    if name:
        about = {"command": command(), **machine()}
        if gb.rank() == 0:
            told = (text.strip("\n") for text in (doc or "").split("\n\n")[1:] if not text.startswith("  "))
            keep(RESULTS / name, {"title": title, **about, "text": "\n\n".join(told), "parts": parts})


def write(name: str, asked: str, rows: Sequence[Row]) -> Path:
    """Keep the rows as `results/<name>.json` and `.md`; the newest run replaces the one before."""
    found: dict[str, Any] = {"title": name, "command": asked, **machine(), "rows": rows}
    return keep(RESULTS / name, found)
