"""Reports from trace records."""

import json
from dataclasses import dataclass

import pytest
from rich.console import Console

from gbgpu import report


@dataclass
class Record:
    """What a report reads of a record."""

    statement: int
    text: str
    step: str
    device: str
    start: float
    end: float
    direction: str | None = None
    form: str | None = None
    nvals: int | None = None
    edges: int = 0
    rows: int = 0
    bytes: int = 0
    host_reads: int = 0
    launches: int = 1


@pytest.fixture
def records():
    """Two rounds on two devices: a push, then a pull, each after an assignment."""
    found = []
    for k, way in enumerate(("push", "pull")):
        for device in ("cpu:0", "cpu:1"):
            t = 5 + k
            found += [
                Record(2 * k, f"levels(q.S) << {k}", "write", device, t, t + 0.1, nvals=k + 1),
                Record(2 * k + 1, "q << any_pair(q @ A)", way, device, t + 0.2, t + 0.4, way, "list", edges=10, rows=3),
                Record(2 * k + 1, "q << any_pair(q @ A)", "exchange", device, t + 0.4, t + 0.5, bytes=64),
                Record(2 * k + 1, "q << any_pair(q @ A)", "write", device, t + 0.5, t + 0.6, nvals=4 + k, host_reads=1),
            ]
    return found


def test_summary_adds_up_each_text(records):
    product, assign = report.summary(records)
    assert product["text"] == "q << any_pair(q @ A)"
    assert product["seconds"] == pytest.approx(0.8)
    counts = {key: product[key] for key in ("count", "edges", "rows", "bytes", "host_reads", "launches", "directions")}
    assert counts == {
        "count": 2,
        "edges": 40,
        "rows": 12,
        "bytes": 256,
        "host_reads": 4,
        "launches": 12,
        "directions": {"push": 1, "pull": 1},
    }
    assert (assign["text"], assign["count"], assign["directions"]) == ("levels(q.S) << scalar", 2, {})
    assert report.summary([]) == []


def test_table_shows_the_summary(records):
    console = Console(width=120, record=True, file=open("/dev/null", "w"))
    console.print(report.table(records, title="a title"))
    text = console.export_text()
    assert "a title" in text
    row = next(line for line in text.split("\n") if "any_pair(q @ A)" in line)
    assert [cell.strip() for cell in row.split("│")][2:-1] == ["2", "800.00", "1/1", "40", "12", "256", "4", "12"]


def test_chrome_trace_has_a_lane_a_device_and_a_counter(records):
    trace = json.loads(json.dumps(report.chrome_trace(records)))
    events = trace["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert lanes == {0: "cpu:0", 1: "cpu:1"}
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == len(records)
    first = next(event for event in spans if event["name"] == "push")
    assert (first["ts"], first["dur"]) == pytest.approx((0.2e6, 0.2e6))
    assert first["args"]["text"] == "q << any_pair(q @ A)"
    assert first["args"]["edges"] == 10
    counter = [(event["ts"], event["args"]["entries"]) for event in events if event["ph"] == "C"]
    assert counter == [(pytest.approx(0.6e6), 8), (pytest.approx(1.6e6), 10)]  # both devices together, products only
    assert report.chrome_trace([])["traceEvents"] == []


@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_plot_writes_a_picture(records, tmp_path, name):
    report.plot(records, tmp_path / name, title="bfs [on] a $graph")
    start = (tmp_path / name).read_bytes()[:100]
    assert start.startswith(b"\x89PNG") or b"<?xml" in start


@pytest.mark.parametrize("kept", [0, 1])
def test_plot_of_little(records, tmp_path, kept):
    report.plot(records[:kept], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_steps_of_unknown_kinds_are_drawn(tmp_path):
    records = [Record(k, "s", f"kind{k}", "gpu", k, k + 1) for k in range(20)]
    report.plot(records, tmp_path / "picture.png")
