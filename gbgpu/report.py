"""Reports from trace records: a table, Chrome's trace format, a picture. Records are read by their attributes alone
(`trace.Record`).
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

# one colour a step: products warm, movement blue, writes green, what prepares grey
_COLOURS = {
    "push": "#d1495b",
    "pull": "#edae49",
    "gather": "#00798c",
    "exchange": "#30638e",
    "remap": "#5fa8d3",
    "combine": "#8d6a9f",
    "write": "#66a182",
    "write_list": "#9ccbae",
    "move": "#c9dbcf",
    "mask": "#7d8895",
    "convert": "#a5b0bb",
    "dup": "#c3cbd3",
    "borrow": "#dce1e6",
}
_OTHERS = ("#3d5a80", "#98c1d9", "#b5838d", "#6d6875", "#ffb4a2", "#7f9172")  # steps without a colour of their own
_NUMBER = re.compile(r"<< (?:[-+\d.]\S*|inf|nan|True|False)$")
_DIRECTIONS = {"push": "#d1495b", "pull": "#edae49"}


def summary(records: Iterable[Any]) -> list[dict[str, Any]]:
    """One dict a statement text (an assigned number reads "scalar"), by time spent: text, count, seconds (first start
    to last end of each run, summed), edges, rows, bytes, host_reads, launches, and directions ({"push": 3, "pull":
    2}).
    """
    rows: dict[str, dict[str, Any]] = {}
    for run in _statements(records):
        text = _NUMBER.sub("<< scalar", run[0].text)  # `levels(q.S) << 3` is the same statement as with 4
        row = rows.setdefault(text, _empty_row(text))
        row["count"] += 1
        row["seconds"] += max(r.end for r in run) - min(r.start for r in run)
        for key in ("edges", "rows", "bytes", "host_reads", "launches"):
            row[key] += sum(getattr(r, key) for r in run)
        row["directions"].update({r.direction for r in run if r.direction})
    for row in rows.values():
        row["directions"] = dict(row["directions"])
    return sorted(rows.values(), key=lambda row: -row["seconds"])


def _empty_row(text: str) -> dict[str, Any]:
    zeros = dict.fromkeys(("count", "edges", "rows", "bytes", "host_reads", "launches"), 0)
    return {"text": text, "seconds": 0.0, "directions": Counter(), **zeros}


def _statements(records: Iterable[Any]) -> list[list[Any]]:
    """The records of each statement, in the order in which statements began."""
    runs: dict[int, list[Any]] = {}
    for record in records:
        runs.setdefault(record.statement, []).append(record)
    return list(runs.values())


def table(records: Iterable[Any], title: str = "") -> Any:
    """The summary as a rich Table."""
    from rich.table import Table

    result = Table(title=title or None)
    result.add_column("statement", overflow="fold", min_width=12)
    for name in ("runs", "ms", "push/pull", "edges", "rows", "bytes", "reads", "launches"):
        result.add_column(name, justify="right", no_wrap=True)
    for row in summary(records):
        ways = "/".join(str(row["directions"].get(way, 0)) for way in _DIRECTIONS) if row["directions"] else ""
        counts = (_short(row[key]) for key in ("edges", "rows", "bytes", "host_reads", "launches"))
        result.add_row(row["text"].replace("[", r"\["), str(row["count"]), f"{row['seconds'] * 1e3:.2f}", ways, *counts)
    return result


def _short(count: int) -> str:
    """At most five characters: 9999, 10k, 9999k, 10M."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size:
            return f"{count / size:.0f}{unit}"
    return str(count)


def chrome_trace(records: Iterable[Any]) -> dict[str, Any]:
    """The records in Chrome's trace format (chrome://tracing, Perfetto): a lane a device, times in microseconds from
    the first record, and the entries written by products as a counter.
    """
    records = list(records)
    lanes = {device: lane for lane, device in enumerate(_devices(records))}
    origin = min((r.start for r in records), default=0.0)
    events: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": lane, "args": {"name": device}}
        for device, lane in lanes.items()
    ]
    details = ("text", "statement", "direction", "form", "edges", "rows", "bytes", "host_reads", "launches")
    for r in records:
        arguments = {key: getattr(r, key) for key in details if getattr(r, key) is not None}
        when = {"ts": (r.start - origin) * 1e6, "dur": max(r.end - r.start, 0.0) * 1e6}
        events.append(
            {"name": r.step, "cat": "step", "ph": "X", "pid": 1, "tid": lanes[r.device], **when, "args": arguments}
        )
    for text, points in _frontiers(records).items():
        events += [
            {"name": text, "ph": "C", "pid": 1, "ts": (time - origin) * 1e6, "args": {"entries": size}}
            for time, size, _ in points
        ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _devices(records: list[Any]) -> list[str]:
    return list(dict.fromkeys(r.device for r in records))


def _frontiers(records: Iterable[Any]) -> dict[str, list[tuple[float, int, str | None]]]:
    """For each product's text: (time, entries written on all devices, direction) of each of its runs."""
    points: dict[str, list[tuple[float, int, str | None]]] = {}
    for run in _statements(records):
        direction = next((r.direction for r in run if r.direction), None)
        sizes = [n for r in run if (n := getattr(r, "nvals", None)) is not None]
        if direction and sizes:
            points.setdefault(run[0].text, []).append((max(r.end for r in run), sum(sizes), direction))
    return points


def plot(records: Iterable[Any], path: Any, *, title: str = "") -> None:
    """Draw the records into a file (.png, .svg, .pdf): a lane a device, steps coloured by kind; below, the entries
    that products wrote, on the same time axis. Needs matplotlib (ImportError with a hint without it).
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'gbgpu[plot]'") from error
    records = list(records)
    devices = _devices(records)
    frontiers = _frontiers(records)
    heights = [0.5 + 0.45 * max(len(devices), 1)] + [2.4] * bool(frontiers)
    figure = Figure(figsize=(11, sum(heights) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    origin = min((r.start for r in records), default=0.0)
    _draw_lanes(axes[0], records, devices, origin)
    if frontiers:
        _draw_frontiers(axes[1], frontiers, origin)
    axes[-1].set_xlabel("milliseconds")
    figure.suptitle(title or "Trace", x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.savefig(path, dpi=150)


def _draw_lanes(ax: Any, records: list[Any], devices: list[str], origin: float) -> None:
    from matplotlib.patches import Patch

    steps = list(dict.fromkeys(r.step for r in records))
    others = iter(_OTHERS * (len(steps) // len(_OTHERS) + 1))
    colours = {step: _COLOURS.get(step) or next(others) for step in steps}
    shortest = 0.0005 * (
        max((r.end for r in records), default=0.0) - origin
    )  # else the briefest steps would not be seen
    for lane, device in enumerate(devices):
        for step in steps:
            spans = [(r.start, max(r.end - r.start, shortest)) for r in records if (r.device, r.step) == (device, step)]
            bars = [((start - origin) * 1e3, length * 1e3) for start, length in spans]
            ax.broken_barh(bars, (lane - 0.38, 0.76), facecolors=colours[step], linewidth=0)
    ax.set_yticks(range(len(devices)), devices)
    ax.set_ylim(max(len(devices), 1) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    _bare(ax)
    handles = [Patch(color=colour, label=step) for step, colour in colours.items()]
    if handles:
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=8, frameon=False, handlelength=1)


def _draw_frontiers(ax: Any, frontiers: dict[str, list[tuple[float, int, str | None]]], origin: float) -> None:
    styles = ("-", "--", ":", "-.")
    for k, (text, points) in enumerate(frontiers.items()):
        times = [(time - origin) * 1e3 for time, _, _ in points]
        ax.plot(
            times, [size for _, size, _ in points], styles[k % 4], color="#44505c", linewidth=1, label=text, zorder=1
        )
    for way, colour in _DIRECTIONS.items():
        marked = [(time, size) for points in frontiers.values() for time, size, direction in points if direction == way]
        if marked:
            times, sizes = zip(*marked, strict=True)
            moments = [(time - origin) * 1e3 for time in times]
            ax.scatter(moments, sizes, s=14, color=colour, label=f"by {way}", zorder=2, linewidth=0)
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("entries written")
    ax.grid(axis="y", color="#e4e8ec", linewidth=0.6)
    _bare(ax)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, fontsize=8)


def _bare(ax: Any) -> None:
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.set_axisbelow(True)
