"""Pictures of experiments and predictions: titles, axes with units, and a legend entry for each line and bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from algos import balancing, measurements
from bench.experiments import degree_separation, lux, weak_scaling
from gbgpu import report
from gbgpu.balance import Tally, constant, replay, topology
from gbgpu.balance.replay import Round


def predicted(path: Path) -> None:
    tallies = [Tally(n, 16 * n, np.bincount([4], [n], 64).astype(np.int64)) for n in (10_000, *[10] * 7)]
    outcomes = replay(
        [Round("push", tuple(tallies))] * 3, topology("sim:dgx1-v100"), constant(1e-9), balancing.Policy()
    )
    balancing.plot(outcomes, str(path), "bfs")


def repartitioned(path: Path) -> None:
    lux.bars({"a graph": [(3.0, 2.0, 1.0, 4.0, 1), (2.0, 2.0, 1.0, 0.0, 0)]}, path, "cpu:2")


def modelled(path: Path) -> None:
    lux.points([(lux.Case("a graph", 2, 16, (8, 4), [1, 2], (3.0, 2.0)), (2.5, 2.1))], path, "cpu:2")


def scaled(path: Path) -> None:
    found = [{"ranks": p, "rows": 64 * p, "entries": 640 * p, "rounds": 5, "search": [9 * p] * p, "round": [99 * p] * p}
             for p in (1, 2, 4)]  # fmt: skip
    weak_scaling.picture(found, weak_scaling.predicted(found), path)


def separated(path: Path) -> None:
    ways = ["edges", "auto", *map(str, degree_separation.THRESHOLDS)]
    degree_separation.picture({14: {way: [1.0] * 8 for way in ways}}, path, "cpu:8")


def page(**parts: Any) -> dict[str, Any]:
    return {"title": "a page", "devices": ["a GPU"], "cpu": "a CPU", "when": "", **parts}


def reached(path: Path) -> None:
    rows = [["pull", 2.0, 1.0, "gathers"], ["apply", 1.0, 0.9, "copies"]]
    table = {"title": "cpu:2", "columns": ["kernel", "ms", "limit, ms", "limited by"], "rows": rows}
    measurements.draw_roofline(page(parts=[table]), path)


def called(path: Path) -> None:
    table = {"title": "a graph", "columns": ["", "1", "2", "settled"], "rows": [["BFS", 3.0, 2.0, 1.0]]}
    measurements.draw_calls(page(parts=[table]), path)


def faster(path: Path) -> None:
    rows = [{"what": "g: bfs", "devices": devices, "ours": 2.0, "unit": "ms"} for devices in ("cuda:0", "cuda:0-1")]
    measurements.draw_scaling([page(rows=rows)], path)


def broken_down(path: Path) -> None:
    events = [{"ph": "X", "name": name, "dur": 2.0, "args": {"text": "y << A @ x"}} for name in ("pull", "write")]
    report.breakdown({"traceEvents": events}, path)


UNITS = {
    predicted: {"device", "predicted time of computing (ms)", "round", "predicted time of a round (µs)"},
    repartitioned: {"iteration", "time (ms)"},
    modelled: {"measured time (ms)", "predicted time (ms)"},
    scaled: {"number of devices", "bytes received for each row of a device", "work / (work + exchange)"},
    reached: {"of the measured limit (%); 100: as fast as the memory allows"},
    called: {"number of the call", "time / time of a settled call"},
    faster: {"number of devices", "time of one device / time"},
    broken_down: {"time of steps, all devices together (ms)"},
    separated: {"threshold (hubs have a higher degree)", "bytes / bytes with equal_edges()"},
}


@pytest.mark.parametrize("draw", UNITS, ids=lambda draw: draw.__name__)
def test_pictures_have_a_title_units_and_a_legend(draw, tmp_path, monkeypatch):
    figures: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    draw(tmp_path / "picture.png")
    (figure,) = figures
    assert figure.get_suptitle() or all(axes.get_title() for axes in figure.axes)
    assert {text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel())} >= UNITS[draw]
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    explained = {text.get_text() for legend in legends for text in legend.get_texts()}
    seen = {artist.get_label() for axes in figure.axes for artist in (*axes.lines, *axes.containers)}
    assert seen and seen <= explained
