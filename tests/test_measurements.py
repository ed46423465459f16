"""Results of benchmarks: tables and pictures come from JSON files alone, the same ones each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import gbgpu as gb
from algos import measurements
from algos.cli import main
from algos.measurements import Row, Table
from gbgpu import report

RESULTS = Path(__file__).resolve().parent.parent / "bench" / "results"
ABOUT = {"devices": ["a GPU"], "when": "2026-01-01 00:00 UTC", "cpu": "a CPU", "cores": 2, "python": "3.11",
         "versions": {"numpy": "2.4"}, "commit": "abc"}  # fmt: skip


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_every_table_of_the_results_is_made_from_its_json():
    found = dict(measurements.pages(RESULTS))
    assert {file.stem for file in found} == {file.stem for file in RESULTS.glob("*.md")}
    for file, page in found.items():
        assert measurements.rendered(page) == file.with_suffix(".md").read_text(encoding="utf-8"), file.name


def test_a_page_is_read_back_from_its_table(tmp_path):
    table = Table(["name", "count", "share"], [["a", 1234567, 0.123456], ["b", 2]], "A title", "A note.")
    rows = [Row("x: bfs", "cuda:0", 1.23456, "ms", "peer", 2.0, 1.62, "1 ms", False), Row("y", "", None, "", note="no")]
    page = {"title": "T", "command": "a command", **ABOUT, "text": "What.", "rows": rows, "parts": [table, "The end."]}
    written = measurements.keep(tmp_path / "deep" / "t", page)
    text = written.read_text()
    lines = [cells_of(line) for line in text.splitlines() if line.startswith("|")]
    assert ["x: bfs", "cuda:0", "1.23 ms", "2 ms peer", "1.62", "1 ms", "**no**", ""] in lines
    assert ["a", "1,234,567", "0.123"] in lines and ["b", "2", ""] in lines
    said = "`a command`", "commit abc", "a GPU; a CPU, 2 cores", "Medians.", "## A title"
    assert all(word in text for word in said)
    kept = json.loads(written.with_suffix(".json").read_text())
    assert measurements.rendered(kept) == text and kept["parts"][0]["rows"][0][2] == 0.123456


def made(folder: Path) -> None:
    """A page for each picture, and a trace."""
    for name, devices, ms in (("one", "cuda:0", 4.0), ("two", "cuda:0-1", 2.5), ("apart", "cuda:0*3", 9.0)):
        rows = [Row(f"g: {step}", devices, ms, "ms") for step in ("bfs", "pagerank")]
        measurements.keep(folder / name, {"title": name, "command": name, **ABOUT, "rows": rows})
    calls = Table(["", "first", "1", "2", "settled"], [["BFS", 9.0, "1,000", "**4**", 2.0]], "a graph")
    bars = [["pull", 2.0, 1.0, "gathers"], ["apply", 1.0, 0.9, "copies"]]
    rates = Table(["kernel", "ms", "limit, ms", "limited by"], bars, "cpu:2, scale 3")
    measurements.keep(folder / "calls", {"title": "c", "command": "c", **ABOUT, "parts": [calls, rates]})
    gb.init("cpu:2")
    x = gb.Vector.from_dense([1.0, 2.0])
    with gb.trace() as records:
        for number in (1, 2, 3):
            x << number
            x << gb.binary.plus(x & x)
    folder.joinpath("trace.json").write_text(json.dumps(report.chrome_trace(records)))


def test_report_makes_tables_and_pictures_anew(tmp_path, capsys):
    made(tmp_path)
    assert main(["report", str(tmp_path)]) == 0
    told = {Path(line).name for line in capsys.readouterr().out.split()}
    pictures = {"scaling.svg", "calls-calls.svg", "calls-roofline.svg", "trace-breakdown.svg"}
    assert told == pictures | {f"{name}.md" for name in ("one", "two", "apart", "calls")}
    first = {name: (tmp_path / name).read_bytes() for name in told}
    for name in told:
        (tmp_path / name).unlink()
    assert main(["report", str(tmp_path)]) == 0
    assert first == {name: (tmp_path / name).read_bytes() for name in told}


def test_scaling_compares_the_same_call_on_one_device_and_more(tmp_path):
    made(tmp_path)
    pages = [page for file, page in measurements.pages(tmp_path) if file.stem != "trace"]
    assert measurements.scalings(pages) == {("a GPU", f"g: {step}"): {1: 4.0, 2: 2.5} for step in ("bfs", "pagerank")}
    names = "cpu:4", "cuda:0-3", "cuda:2", "auto", "cuda:0,2"
    assert [*map(measurements.device_count, names)] == [4, 4, 1, None, None]


def test_a_breakdown_has_all_the_time_of_a_trace(tmp_path, monkeypatch):
    made(tmp_path)
    trace = json.loads((tmp_path / "trace.json").read_text())
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    report.breakdown(trace, tmp_path / "x.svg")
    (axes,) = figures[0].axes
    drawn = sum(bar.get_width() for bar in axes.patches)
    total = sum(event["dur"] / 1e3 for event in trace["traceEvents"] if event["ph"] == "X")
    assert 0 < total == pytest.approx(drawn)
    assert len(axes.get_yticks()) == 2  # numbers that differ do not make another statement


NOT_PAGES = {
    "{": "JSON",
    "[1]": 'an object with "title"',
    "{}": "x.json",
    '{"title": "t", "rows": [{}]}': "a page of results",
    '{"traceEvents": [{}]}': "or a trace",
}


@pytest.mark.parametrize(("text", "reason"), NOT_PAGES.items())
def test_what_is_no_page_is_refused(tmp_path, capsys, text, reason):
    (tmp_path / "x.json").write_text(text)
    assert main(["report", str(tmp_path)]) == 3 and reason in capsys.readouterr().err
    assert main(["report", str(tmp_path / "absent")]) == 3 and "a folder" in capsys.readouterr().err
