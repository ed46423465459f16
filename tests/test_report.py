"""Reports from trace records."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import gbgpu as gb
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
    interpreted: int = 0
    tally: None = None
    decision: None = None
    change: float | None = None


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


@pytest.mark.parametrize("known", [0, 3])
def test_steps_of_unknown_kinds_have_colours_of_their_own(known, tmp_path, monkeypatch):
    kinds = ["reduce", "pull", "push"][:known] + [f"kind{k}" for k in range(20)]
    records = [Record(k, "s", kind, "gpu", k, k + 1) for k, kind in enumerate(kinds)]
    legend = drawn(records, tmp_path / "picture.png", monkeypatch).axes[0].get_legend()
    assert len({patch.get_facecolor() for patch in legend.get_patches()}) == len(legend.get_patches()) == 12


def test_rounds_that_devices_go_are_drawn(tmp_path, monkeypatch):
    searched = [Record(k, "a loop", "push round", "gpu", k, k + 1, "push", nvals=k * k) for k in range(9)]
    ranked = [Record(k, "a loop", "pull round", "gpu", k, k + 1 + k / 9, "pull") for k in range(9, 15)]
    for k, record in enumerate(ranked):
        record.change = 0.5**k
    lanes, products, rounds, changes = drawn(searched + ranked, tmp_path / "picture.png", monkeypatch).axes
    assert {line.get_ydata().tolist()[-1] for line in products.lines if len(line.get_ydata())} == {64}
    assert rounds.lines[0].get_ydata() == pytest.approx([r.end - r.start for r in ranked])
    assert changes.lines[0].get_ydata() == pytest.approx([0.5**k for k in range(6)])
    event = next(e for e in report.chrome_trace(ranked)["traceEvents"] if e["name"] == "pull round")
    assert event["args"]["change"] == 1.0
    assert len(drawn(searched, tmp_path / "picture.png", monkeypatch).axes) == 2


def test_legends_have_words_of_the_glossary():
    glossary = (Path(__file__).resolve().parent.parent / "docs/concepts.md").read_text()
    (steps,) = (line for line in glossary.splitlines() if line.startswith("| step |"))
    said = {word.strip("`,.") for word in steps.split()}
    rounds = {"push round", "pull round", "round"}
    assert {*report._WORDS.values(), *report._COLOURS} - rounds <= said


def test_no_two_kinds_of_steps_share_a_colour():
    colours = [*report._COLOURS.values(), *report._SPARE, report._REST]
    assert len(set(colours)) == len(colours)


def noise(count: int) -> list[Record]:
    """Steps of eleven kinds on three lanes: most are brief, some are long, and so is what lies between them."""
    rng = np.random.default_rng(count)
    kinds = ("push", "pull", "exchange", "combine", "write", "mask", "ewise", "reduce", "fold", "odd", "rare")
    found = []
    for lane, device in enumerate(("cpu:0", "cpu:1", "host")):
        lengths, gaps = (rng.exponential(1, count) ** 3 * 1e-5 * (lane + 1) for _ in range(2))
        ends = np.cumsum(lengths + gaps)
        steps = rng.choice(kinds, count, p=[0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.0999, 0.0001])
        found += map(Record, range(count), ["s"] * count, steps, [device] * count, ends - lengths, ends)
    return found


def drawn(records: list[Record], path, monkeypatch):
    """The figure, before it is written."""
    from matplotlib.figure import Figure

    kept = []
    with monkeypatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, *_, **__: kept.append(figure))
        report.plot(records, path)
    return kept[0]


def areas(ax) -> dict[tuple[str, str], float]:
    """By lane and colour's name in the legend: what is painted, over the height of a lane."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_hex

    lanes = [label.get_text() for label in ax.get_yticklabels()]
    names = {to_hex(patch.get_facecolor()): text.get_text().split()[0]
             for patch, text in zip(ax.get_legend().get_patches(), ax.get_legend().get_texts(), strict=True)}
    found: Counter = Counter()
    for image in ax.images:
        left, right, low, high = image.get_extent()
        pixels = image.get_array().reshape(-1, 4)
        for colour, count in zip(*np.unique(pixels, axis=0, return_counts=True), strict=True):
            if colour[3]:
                where = lanes[round((high + low) / 2)], names[to_hex(colour / 255)]
                found[where] += (right - left) * (low - high) * count / len(pixels)
    for bars in ax.collections:
        if isinstance(bars, PolyCollection):
            for path in bars.get_paths():
                (left, high), (right, low) = path.vertices.min(0), path.vertices.max(0)
                where = lanes[round((high + low) / 2)], names[to_hex(bars.get_facecolor()[0])]
                found[where] += (right - left) * (low - high)
    return {where: area / 0.8 for where, area in found.items()}


@pytest.mark.parametrize("count", [40, 30_000])
def test_what_is_painted_is_the_time_of_the_trace(count, tmp_path, monkeypatch):
    records = noise(count)
    figure = drawn(records, tmp_path / "picture.png", monkeypatch)
    ax, times = figure.axes[0], Counter()
    unit = {"µs": 1e6, "ms": 1e3, "s": 1}[ax.get_xlabel()[6:-1]]
    named = {text.get_text().split()[0] for text in ax.get_legend().get_texts()}
    for r in records:
        word = report._word(r)
        times[r.device, word if word in named else "others"] += (r.end - r.start) * unit
    span, painted = (max(r.end for r in records) - min(r.start for r in records)) * unit, areas(ax)
    for where in {*times, *painted}:
        assert painted.get(where, 0) == pytest.approx(times[where], rel=0.01, abs=1e-4 * span)
    for text in ax.get_legend().get_texts():
        kind, total, _ = text.get_text().replace(",", "").split()
        assert float(total) == pytest.approx(sum(time for (_, step), time in times.items() if step == kind), rel=0.01)


@pytest.mark.parametrize("count", [40, 30_000])
def test_pixels_are_coloured_as_long_as_lanes_work(count, tmp_path, monkeypatch):
    records = noise(count)
    figure = drawn(records, tmp_path / "picture.png", monkeypatch)
    ax = figure.axes[0]
    for lines in ax.collections[:]:
        if type(lines).__name__ == "LineCollection":
            lines.remove()  # the edges of lanes
        else:
            lines.set_color("black")
    for image in ax.images:
        image.set_data(image.get_array() * np.array([0, 0, 0, 1], np.uint8))
    figure.set_dpi(150)
    figure.canvas.draw()
    dark = 1 - np.asarray(figure.canvas.buffer_rgba())[::-1, :, 0] / 255
    span = max(r.end for r in records) - min(r.start for r in records)
    for lane, device in enumerate(label.get_text() for label in ax.get_yticklabels()):
        corners = [(ax.dataLim.x0, lane + 0.45), (ax.dataLim.x1, lane - 0.45)]
        (left, low), (right, high) = np.rint(ax.transData.transform(corners)).astype(int)
        busy = sum(r.end - r.start for r in records if r.device == device)
        assert dark[low:high, left:right].mean() * 0.9 / 0.8 == pytest.approx(busy / span, abs=0.015)


def test_full_outputs_and_the_edges_of_products_are_seen_whole(tmp_path, monkeypatch):
    records = [Record(k, "t << plus_times(A @ x)", step, "cpu:0", k, k + 0.5, way, nvals=n, edges=e)
               for k in range(9) for step, way, n, e in (("pull", "pull", None, 70_000), ("move", None, 1000 * k, 0))]
    ax = drawn(records, tmp_path / "picture.png", monkeypatch).axes[1]
    points = np.concatenate([line.get_xydata() for line in ax.lines])
    assert sorted(points[:, 1]) == sorted([70_000] * 9 + [1000 * k for k in range(9)])
    for low, high, values in ((*ax.get_xlim(), points[:, 0]), (*ax.get_ylim(), points[:, 1])):
        assert low < values.min() and values.max() < high


def test_a_trace_is_shown_as_its_table(devices):
    v = gb.Vector.from_dense([1, 2, 3])
    with gb.trace() as records:
        v << v + 1
        v << v * 2
    header, *rows = [line for line in repr(records).splitlines() if line[0] in "┃│"]
    assert header.split()[1] == "statement" and all(f"binary.{name}" in "".join(rows) for name in ("plus", "times"))
    assert repr(records) == str(records) and len(records) > 1
    with gb.trace() as records:
        pass
    assert repr(records) == "no records" and records == []
