"""Reports from trace records: a table, Chrome's trace format, a picture. Records are read by their attributes alone
(`trace.Record`).
"""

import re
from collections import Counter
from collections.abc import Iterable
from io import StringIO
from itertools import cycle
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .interrupts import imported

# What a legend calls steps: words of the glossary (docs/concepts.md). Other steps have their own names.
_WORDS = {
    "drain": "push",
    "partial": "pull",
    "take": "gather",
    "gather_hubs": "gather",
    "remap": "exchange",
    "reduce_scatter": "combine",
    "combine_hubs": "combine",
    **dict.fromkeys(("ewise", "ewise_list", "apply", "select", "filter"), "elementwise"),
    **dict.fromkeys(("fold", "cached"), "reduce"),
    **dict.fromkeys(("cast", "stable"), "convert"),
    **dict.fromkeys(("scalar", "borrow", "spread", "move", "target", "fill", "unwrite", "write_list"), "write"),
    **dict.fromkeys(("place", "place_list", "place_scalar", "scatter"), "write"),
}
# A colour for each word: products warm, movement blue, values mauve, writes green, what prepares sand and grey.
_COLOURS = {
    "push": "#c8373f",
    "pull": "#eda63b",
    "mxm": "#d96a1d",
    "gather": "#1b8a8f",
    "exchange": "#2b5c8a",
    "transpose": "#173a57",
    "combine": "#8d6a9f",
    "merge": "#5d4a7d",
    "elementwise": "#b7719b",
    "reduce": "#8a5a3c",
    "write": "#3f8f5f",
    "mask": "#6f7985",
    "convert": "#c5b08c",
    "count": "#8f7d5b",
    "dup": "#b9a3a3",
    "compile": "#262c33",
    "collect": "#8b929a",
    "push round": "#e0676c",
    "pull round": "#f6c26b",
    "round": "#9c8fd0",
}
# For steps without one of their own, as many as a picture names
_SPARE = (
    *("#e07a5f", "#4f772d", "#5088f0", "#ffb4a2", "#802888", "#68c868"),
    *("#b01860", "#22c5cf", "#806800", "#d98cf0", "#2fd9ad"),
)
_REST, _GREY, _INK = "#d5dae0", "#aab4bf", "#44505c"
_KINDS = len(_SPARE)  # named in a picture at most, if they take a two hundredth of the time; the others are one colour
_BARS = 200  # steps a lane that are drawn one by one
_BINS = 720  # of a longer trace: two pixels each
STATEMENTS = 15  # that a breakdown names
_ROWS = 256  # to which heights are rounded
_HALF = 0.4  # of a lane's height
_NUMBER = re.compile(r"<< (?:[-+\d.]\S*|inf|nan|True|False)$")
_DIRECTIONS = {way: _COLOURS[way] for way in ("push", "pull")}


def summary(records: Iterable[Any]) -> list[dict[str, Any]]:
    """One dict a statement text (an assigned number reads "scalar"), by time spent: text, count, seconds (first start
    to last end of each run, summed), edges, rows, bytes, host_reads, launches, and directions ({"push": 3, "pull":
    2}).
    """
    rows: dict[str, dict[str, Any]] = {}
    for run in _statements(records):
        text = _NUMBER.sub("<< scalar", run[-1].text)  # `levels(q.S) << 3` is the same statement as with 4
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
    """The records of each statement, in the order in which statements began. The last has its text: before it may
    come what was made for it."""
    runs: dict[int, list[Any]] = {}
    for record in records:
        runs.setdefault(record.statement, []).append(record)
    return list(runs.values())


def table(records: Iterable[Any], title: str = "") -> Any:
    """The summary as a rich Table."""
    result = imported("rich.table").Table(title=title or None)
    result.add_column("statement", overflow="fold", min_width=12)
    for name in ("runs", "ms", "push/pull", "edges", "rows", "bytes", "reads", "launches"):
        result.add_column(name, justify="right", no_wrap=True)
    for row in summary(records):
        ways = "/".join(str(row["directions"].get(way, 0)) for way in _DIRECTIONS) if row["directions"] else ""
        counts = (_short(row[key]) for key in ("edges", "rows", "bytes", "host_reads", "launches"))
        result.add_row(row["text"].replace("[", r"\["), str(row["count"]), f"{row['seconds'] * 1e3:.2f}", ways, *counts)
    return result


def text(records: Iterable[Any]) -> str:
    """The table in plain letters."""
    out = StringIO()
    imported("rich.console").Console(file=out, width=120, color_system=None).print(table(records))
    return out.getvalue().rstrip()


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
    details = ["text", "statement", "direction", "form", "edges", "rows", "bytes"]
    details += ["host_reads", "launches", "interpreted", "change"]
    for r in records:
        arguments = {key: getattr(r, key) for key in details if getattr(r, key) is not None}
        if r.tally is not None:
            arguments["tally"] = r.tally.to_json()
        if r.decision is not None:
            arguments["decision"] = r.decision.to_json()
        when = {"ts": (r.start - origin) * 1e6, "dur": max(r.end - r.start, 0.0) * 1e6}
        events.append(
            {"name": r.step, "cat": "step", "ph": "X", "pid": 1, "tid": lanes[r.device], **when, "args": arguments}
        )
    for text, products in _products(records).items():
        events += [
            {"name": text, "ph": "C", "pid": 1, "ts": (p.time - origin) * 1e6, "args": {"entries": p.entries}}
            for p in products
        ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _devices(records: list[Any]) -> list[str]:
    """The lanes: what the host did beside steps comes first."""
    return sorted(dict.fromkeys(r.device for r in records), key=lambda device: device != "host")


class _Product(NamedTuple):
    """A product on all devices: when it ended, entries of its output, edges it looked at (None: nobody knows)."""

    time: float
    entries: int
    edges: int | None
    direction: str


def _products(records: Iterable[Any]) -> dict[str, list[_Product]]:
    """The runs of each product's text."""
    found: dict[str, list[_Product]] = {}
    for run in _statements(records):
        direction = next((r.direction for r in run if r.direction), None)
        written = {r.device: n for r in run if (n := getattr(r, "nvals", None)) is not None}
        if direction and written:
            edges = None if _is_round(run[-1]) else sum(r.edges for r in run)
            product = _Product(max(r.end for r in run), sum(written.values()), edges, direction)
            found.setdefault(run[-1].text, []).append(product)
    return found


def _is_round(record: Any) -> bool:
    """Whether it is a round that devices went by themselves."""
    return bool(record.step.endswith("round"))


def _rounds(records: list[Any]) -> list[Any]:
    """Such rounds, once each, whose entries nobody counts."""
    first = {r.statement: r for r in reversed(records) if _is_round(r)}
    return [r for r in reversed(first.values()) if r.nvals is None]


def plot(records: Iterable[Any], path: Any, *, title: str = "") -> None:
    """Draw the records into a file (.png, .svg, .pdf). The title says on which devices, and whether kernels were
    compiled or interpreted.

    The upper panel has a lane for each device. The area of a colour in a lane is the time of the steps of one kind. Of
    a long trace, the height of a colour is its share of two pixels of time. White is time without a step.

    The lower panel shows, on the same time axis, the frontier that each product wrote and the edges it looked at. Of
    rounds that ran on the device without Python (`gb.trace(rounds=True)`) and counted no entries, it shows the time of
    each round and the change that ends the loop.

    Compilation and garbage collection are drawn if they are among the records. Draw a run after one like it, with
    garbage collection off, to have neither. Needs matplotlib (ImportError with a hint without it).
    """
    try:
        agg, figures = imported("matplotlib.backends.backend_agg"), imported("matplotlib.figure")
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    records = [r for r in records if r.step != "call"]  # it is its steps
    lanes, products, rounds = len(_devices(records)), _products(records), _rounds(records)
    heights = [max(min(0.8, 6 / max(lanes, 1)), 0.2) * max(lanes, 1)] + [2.2] * (bool(products) + bool(rounds))
    figure = figures.Figure(figsize=(11, sum(heights) + 1.6), layout="constrained")
    agg.FigureCanvasAgg(figure)
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    clock = _Clock.of(records)
    _draw_lanes(axes[0], records, clock)
    if products:
        _draw_products(axes[1], products, clock)
    if rounds:
        _draw_rounds(axes[-1], rounds, clock)
    axes[-1].set_xlabel(f"time ({clock.unit})")
    axes[-1].set_xlim(-0.005 * clock.length, 1.005 * clock.length)
    about = f"{title or 'Trace'}\n{_lanes_and_kernels(records)}"
    figure.suptitle(about, x=0.01, ha="left", fontsize=12, fontweight="bold", parse_math=False)
    figure.savefig(path, dpi=150, bbox_inches="tight", pad_inches=0.15)


def breakdown(trace: dict[str, Any], path: Any, *, title: str = "") -> None:
    """Draw where the time of a trace file (`chrome_trace`) went: a bar for each statement, longest first, of the times
    of its steps on all devices together. Statements beyond the first STATEMENTS are one bar.
    """
    figures, patch = imported("matplotlib.figure"), imported("matplotlib.patches").Patch
    steps = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    records = [SimpleNamespace(step=e["name"], start=0.0, end=e["dur"] / 1e6) for e in steps]
    kinds = _kinds(records)
    times: dict[str, Counter[str]] = {}
    for event, record in zip(steps, records, strict=True):
        text = _NUMBER.sub("<< scalar", event["args"]["text"])
        kind = word if (word := _word(record)) in kinds else "others"
        times.setdefault(text, Counter())[kind] += record.end
    ordered = sorted(times.items(), key=lambda item: -item[1].total())
    if rest := sum((each for _, each in ordered[STATEMENTS:]), Counter()):
        ordered[STATEMENTS:] = [(f"{len(ordered) - STATEMENTS} other statements", rest)]
    figure = figures.Figure(figsize=(11, 1.6 + 0.32 * max(len(ordered), 1)), layout="constrained")
    axes = figure.subplots()
    for k, (_, parts) in enumerate(ordered):
        left = 0.0
        for kind, colour in kinds.items():
            axes.barh(-k, 1e3 * parts[kind], left=left, color=colour, label=kind)
            left += 1e3 * parts[kind]
    names = [text if len(text) <= 60 else f"{text[:59]}…" for text, _ in ordered]
    axes.set_yticks([-k for k in range(len(ordered))], names, parse_math=False)
    axes.set_xlabel("time of steps, all devices together (ms)")
    _bare(axes)
    interpreted = any(event["args"].get("interpreted") for event in steps)
    how = "interpreted" if interpreted else "compiled"
    figure.suptitle(f"{title or 'Trace'}: time by statement and step, {how} kernels", parse_math=False)
    handles = [patch(color=colour, label=kind) for kind, colour in kinds.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
    with imported("matplotlib").rc_context({"svg.hashsalt": "gbgpu", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def _lanes_and_kernels(records: list[Any]) -> str:
    """The devices of the records, and how their kernels ran."""
    devices = [device for device in _devices(records) if device != "host"]
    if not devices:
        return "no records"
    named = ", ".join(devices) if len(devices) <= 4 else f"{devices[0]} to {devices[-1]}"
    calls = sum(r.interpreted for r in records)
    return f"on {named}; " + (f"interpreted kernels ({calls:,} calls)" if calls else "compiled kernels")


class _Clock(NamedTuple):
    """The time axis: its first moment, its length in units, the unit and how many make a second."""

    origin: float
    length: float
    unit: str
    scale: float

    @classmethod
    def of(cls, records: list[Any]) -> "_Clock":
        origin = min((r.start for r in records), default=0.0)
        seconds = max((r.end for r in records), default=0.0) - origin or 1e-3
        unit, scale = ("s", 1.0) if seconds >= 10 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
        return cls(origin, seconds * scale, unit, scale)

    def at(self, seconds: Any) -> Any:
        return (np.asarray(seconds, float) - self.origin) * self.scale

    def spans(self, records: Iterable[Any]) -> np.ndarray:
        """Starts and ends."""
        return self.at([(r.start, max(r.end, r.start)) for r in records]).reshape(-1, 2)


def _draw_lanes(ax: Any, records: list[Any], clock: _Clock) -> None:
    patch = imported("matplotlib.patches").Patch
    kinds, devices = _kinds(records), _devices(records)
    one_by_one = len(records) <= _BARS * len(devices)
    totals = dict.fromkeys(kinds, 0.0)
    for lane, device in enumerate(devices):
        steps: dict[str, list[Any]] = {kind: [] for kind in kinds}
        for r in records:
            if r.device == device:
                steps[word if (word := _word(r)) in kinds else "others"].append(r)
        spans = {kind: clock.spans(found) for kind, found in steps.items() if found}
        times = {kind: float(np.diff(found).sum()) for kind, found in spans.items()}
        (_draw_bars if one_by_one else _draw_shares)(ax, lane, spans, kinds, clock)
        for kind, time in times.items():
            totals[kind] += time
        busy = f"{sum(times.values()) / clock.length:.0%} in steps"
        ax.text(1.005, lane, busy, transform=ax.get_yaxis_transform(), va="center", fontsize=9, color=_INK)
        ax.hlines((lane - _HALF, lane + _HALF), 0, clock.length, color=_REST, linewidth=0.5, zorder=0)
    ax.set_yticks(range(len(devices)), devices)
    ax.set_ylim(max(len(devices), 1) - 0.5, -0.5)
    ax.set_ylabel("device")
    ax.tick_params(axis="y", length=0)
    _bare(ax)
    handles = [patch(color=kinds[kind], label=f"{kind} {_number(time)} {clock.unit}") for kind, time in totals.items()]
    if handles:
        height = "" if one_by_one else "; the height of a colour is its share of the time"
        _legend(ax, handles, 6, f"steps, time of all devices; white: no step{height}")


def _number(time: float) -> str:
    return f"{time:,.0f}" if time >= 100 else f"{time:.3g}"


def _word(record: Any) -> str:
    """What a legend calls its step."""
    return _WORDS.get(record.step, record.step)


def _kinds(records: list[Any]) -> dict[str, str]:
    """The words for the steps that took the most time, longest first, and "others" for the rest: with their colours."""
    times: Counter[str] = Counter()
    for r in records:
        times[_word(r)] += r.end - r.start
    named = [kind for kind, time in times.most_common(_KINDS) if time >= times.total() / 200]
    spare = iter(_SPARE)
    kinds = {kind: _COLOURS.get(kind) or next(spare) for kind in named}
    return kinds if len(kinds) == len(times) else {**kinds, "others": _REST}


def _draw_bars(ax: Any, lane: int, spans: dict[str, np.ndarray], kinds: dict[str, str], clock: _Clock) -> None:
    """A bar for each step, as long as it took."""
    for kind, found in spans.items():
        bars = np.column_stack((found[:, 0], np.diff(found)))
        ax.broken_barh(bars, (lane - _HALF, 2 * _HALF), facecolors=kinds[kind], linewidth=0, snap=False)


def _draw_shares(ax: Any, lane: int, spans: dict[str, np.ndarray], kinds: dict[str, str], clock: _Clock) -> None:
    """The share of time of each kind in each bin, on top of each other: a column of an image, whose pixels are of one
    colour each (polygons side by side would let white shine through). What is rounded off goes to the next columns,
    so that thin shares are seen in as many of them as is right."""
    edges = np.linspace(0, clock.length, _BINS + 1)
    rows = [np.cumsum(_shares(found, edges) * _ROWS).round() for found in spans.values()]
    tops = np.cumsum(np.diff(rows, axis=1, prepend=0), axis=0)
    rgba = imported("matplotlib.colors").to_rgba_array
    colours = (rgba([*(kinds[kind] for kind in spans), "#ffffff00"]) * 255).round().astype(np.uint8)
    image = colours[sum((np.arange(_ROWS)[:, None] >= top).astype(int) for top in tops)]
    box = 0, clock.length, lane + _HALF, lane - _HALF
    ax.imshow(image, extent=box, origin="lower", aspect="auto", interpolation="nearest")


def _shares(spans: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """What part of each bin between the edges lies in spans."""
    times = spans.ravel()
    order = np.argsort(times, kind="stable")
    under_way = np.cumsum(np.tile((1, -1), len(spans))[order])[:-1]
    spent = np.concatenate(((0,), np.cumsum(under_way * np.diff(times[order]))))
    return np.diff(np.interp(edges, times[order], spent)) / np.diff(edges)


def _draw_products(ax: Any, products: dict[str, list[_Product]], clock: _Clock) -> None:
    """Dots for the frontier that a product wrote, coloured by direction, a shape for each product. Behind them the
    edges, grey."""
    line = imported("matplotlib.lines").Line2D
    dots: dict[str, Any] = {"linestyle": "", "markeredgewidth": 0}
    everything = sorted((p for found in products.values() for p in found), key=lambda p: p.time)
    size = 4.5 if len(everything) <= _BARS else 2.5
    known = [(p.time, p.edges) for p in everything if p.edges is not None]
    times, edges = clock.at([time for time, _ in known]), [edges for _, edges in known]
    ax.plot(times, edges, marker="o", color=_GREY, markersize=0.7 * size, **dots)
    handles = []
    often = sorted(products.items(), key=lambda product: -len(product[1]))
    for (text, found), shape in zip(often, cycle("o^Dv"), strict=False):
        for way, colour in _DIRECTIONS.items():
            points = [p for p in found if p.direction == way]
            times, entries = clock.at([p.time for p in points]), [p.entries for p in points]
            ax.plot(times, entries, marker=shape, color=colour, markersize=size, **dots)
        label = text if len(text) <= 60 else f"{text[:59]}…"
        handles.append(line([], [], marker=shape, color=_INK, markersize=5, label=label, **dots))
    ways = {p.direction for p in everything}
    marks = {f"vertices written by a {way}": colour for way, colour in _DIRECTIONS.items() if way in ways}
    marks |= {"edges looked at by a product": _GREY} if known else {}
    first = [line([], [], marker="s", color=colour, label=label, **dots) for label, colour in marks.items()]
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(-0.2, 3 * max(max(p.entries, p.edges or 1, 1) for p in everything))
    ax.set_ylabel("frontier (vertices),\nedges" if known else "frontier (vertices)")
    ax.grid(axis="y", color="#e4e8ec", linewidth=0.6)
    _bare(ax)
    _legend(ax, [*first, *handles[:3]], 3)


def _draw_rounds(ax: Any, rounds: list[Any], clock: _Clock) -> None:
    """The time of rounds, coloured by direction, and the numbers that their conditions compared."""
    dots: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 3.5, "markeredgewidth": 0}
    handles = []
    for step in dict.fromkeys(r.step for r in rounds):
        found = [r for r in rounds if r.step == step]
        took = np.diff(clock.spans(found)).ravel()
        handles += ax.plot(clock.at([r.end for r in found]), took, color=_COLOURS[step], label=step, **dots)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"time of a round ({clock.unit})")
    ax.grid(axis="y", color="#e4e8ec", linewidth=0.6)
    _bare(ax)
    changes = [r for r in rounds if r.change is not None]
    if changes:
        other = ax.twinx()
        times = clock.at([r.end for r in changes])
        handles += other.plot(times, [r.change for r in changes], color=_INK, linewidth=0.8, label="change (right)")
        other.set_ylabel("change")
        other.set_yscale("log" if all(r.change > 0 for r in changes) else "symlog")
        _bare(other)
    _legend(ax, handles, 4)


def _legend(ax: Any, handles: list[Any], columns: int, title: str | None = None) -> None:
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.3, "alignment": "left"}
    ax.legend(handles=handles, ncols=columns, title=title, title_fontsize=9, frameon=False, fontsize=9, handlelength=1,
              **place)  # fmt: skip


def _bare(ax: Any) -> None:
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.set_axisbelow(True)
