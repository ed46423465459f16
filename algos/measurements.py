"""What measurements are kept as: a JSON file each, and its tables in Markdown and its pictures, made from it alone.

A page is a dict: `title`; of a run, `command` and what `machine` says; `text`, what was done; `rows`, as dicts of
`Row`; `parts`, in their order: text, or dicts of `Table`. Each of them may be absent.
"""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import gbgpu as gb
from gbgpu.errors import InvalidValue, message
from gbgpu.interrupts import imported
from gbgpu.report import breakdown
from gbgpu.testing import PACKAGES, versions

PEERS = "python-graphblas suitesparse-graphblas networkit networkx".split()


@dataclass
class Row:
    """One figure: medians in `unit`.

    `ratio` is what the target speaks of, and `met` whether it holds. `ours` is None where there was nothing to measure;
    the note says why.
    """

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


@dataclass
class Table:
    """Rows below columns: text, and numbers. Short rows end empty."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""


def machine() -> dict[str, Any]:
    """What figures depend on: devices, processor, versions, commit."""
    return {
        "devices": sorted({found["model"] for found in gb.device_info()}),
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": versions(*PACKAGES, *PEERS),
        "commit": commit(),
    }


def cpu_model() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The commit of the checkout that runs, with a + when files differ from it; "none" outside of one."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=Path(__file__).parent)
        return done.stdout.strip() if done.returncode == 0 else ""

    if named := os.environ.get("GBGPU_COMMIT"):  # measured on a copy without its history
        return named
    return (git("rev-parse", "--short", "HEAD") or "none") + ("+" if git("status", "--porcelain", "-uno") else "")


def figure(value: float | None, unit: str = "") -> str:
    """A number with three digits and its unit; nothing for None."""
    return "" if value is None else f"{value:.3g} {unit}".strip()


def of_rows(rows: Sequence[Row]) -> Table:
    """Rows beside peers and targets, as a table."""
    found = []
    for row in rows:
        peer = f"{figure(row.theirs, row.unit)} {row.peer}".strip()
        met = "" if row.met is None else ("yes" if row.met else "**no**")
        ours, ratio = figure(row.ours, row.unit), figure(row.ratio)
        found.append([row.what, row.devices, ours, peer, ratio, row.target, met, row.note])
    return Table(["what", "devices", "gbgpu", "peer", "ratio", "target", "met", "note"], found)


def cells(table: Table) -> list[list[str]]:
    """The rows as text: numbers with three digits, whole ones with all of theirs."""

    def cell(x: Any) -> str:
        if isinstance(x, float):
            return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"
        return f"{x:,}" if isinstance(x, int) else str(x)

    return [[*map(cell, row), *[""] * (len(table.columns) - len(row))] for row in table.rows]


def markdown(table: Table) -> str:
    """A table in Markdown, below its title and note."""
    lines = [f"| {' | '.join(table.columns)} |", "|" + "---|" * len(table.columns)]
    lines += [f"| {' | '.join(row)} |" for row in cells(table)]
    return "\n\n".join([f"## {table.title}"] * bool(table.title) + [table.note] * bool(table.note) + ["\n".join(lines)])


def rendered(page: dict[str, Any]) -> str:
    """A page in Markdown."""
    found = [f"# {page['title']}"]
    if "command" in page:
        found.append(f"`{page['command']}`, {page['when']}, commit {page['commit']}")
        numbers = ", ".join(f"{package} {number}" for package, number in page["versions"].items())
        where = f"{', '.join(page['devices'])}; {page['cpu']}, {page['cores']} cores"
        found.append(f"{where}; Python {page['python']}, {numbers}.{' Medians.' if 'rows' in page else ''}")
    found += [page["text"]] if page.get("text") else []
    if "rows" in page:
        found.append(markdown(of_rows([Row(**row) for row in page["rows"]])))
    found += [part if isinstance(part, str) else markdown(Table(**part)) for part in page.get("parts", [])]
    return "\n\n".join(found).rstrip() + "\n"


def keep(path: Path, page: dict[str, Any]) -> Path:
    """Write a page to PATH.json and PATH.md; the newest run replaces the one before. Returns the latter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text, file = json.dumps(page, indent=1, default=asdict, ensure_ascii=False), path.with_name(f"{path.name}.json")
    file.write_text(f"{text}\n", encoding="utf-8")
    return remade(file, json.loads(text))


def remade(file: Path, page: dict[str, Any]) -> Path:
    """The tables of a page beside its file."""
    output = file.with_suffix(".md")
    output.write_text(rendered(page), encoding="utf-8")
    return output


def pages(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The JSON files of a folder. InvalidValue for one that is neither a page nor a trace."""
    for file in sorted(folder.glob("*.json")):
        try:
            page = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidValue(message("JSON", str(error), str(file))) from None
        if not isinstance(page, dict) or not {"title", "traceEvents"} & page.keys():
            raise InvalidValue(message('an object with "title", or a trace of `gbgpu run --trace`', file.name))
        yield file, page


def report(folder: Path) -> list[Path]:
    """Make the tables and pictures of all JSON files of a folder anew, beside them. Returns the files written."""
    written, known = [], list(pages(folder))
    for file, page in known:
        try:
            written += _made(file, page)
        except (AttributeError, KeyError, TypeError) as error:
            came = f"{type(error).__name__} {error}"
            raise InvalidValue(message("a page of results, or a trace", came, str(file))) from None
    scaled = folder / "scaling.svg"
    if draw_scaling([page for _, page in known if "traceEvents" not in page], scaled):
        written.append(scaled)
    return written


def _made(file: Path, page: dict[str, Any]) -> list[Path]:
    """What is made of one file."""
    if "traceEvents" in page:
        output = file.with_name(f"{file.stem}-breakdown.svg")
        breakdown(page, output, title=file.stem)
        return [output]
    pictures = {file.with_name(f"{file.stem}-{name}.svg"): draw for name, draw in PICTURES.items()}
    return [remade(file, page), *(output for output, draw in pictures.items() if draw(page, output))]


# -- pictures: each returns whether there is something to draw


def _tables(page: dict[str, Any], *columns: str) -> Iterator[dict[str, Any]]:
    """The tables that have these columns."""
    for part in page.get("parts", []):
        if isinstance(part, dict) and {*columns} <= {*part["columns"]}:
            yield part


def _column(table: dict[str, Any], name: str) -> list[Any]:
    place = table["columns"].index(name)
    return [row[place] if place < len(row) else "" for row in table["rows"]]


def _number(cell: Any) -> float | None:
    """A cell's number, as it stands in tables too; None where there is none."""
    try:
        return float(str(cell).strip("*").replace(",", ""))
    except ValueError:
        return None


def _saved(figure: Any, path: Path) -> bool:
    """The same file for the same figures."""
    with imported("matplotlib").rc_context({"svg.hashsalt": "gbgpu", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None}, format="svg")
    return True


def _figure(width: float, height: float) -> Any:
    return imported("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def draw_roofline(page: dict[str, Any], path: Path) -> bool:
    """What kernels reached, of what the memory would allow: one bar for each row of `gbgpu bench kernels`."""
    tables = list(_tables(page, "kernel", "ms", "limit, ms", "limited by"))
    if not tables:
        return False
    figure = _figure(9, 1 + 0.3 * sum(len(table["rows"]) for table in tables))
    colours = {"copies": "#2b5c8a", "gathers": "#eda63b"}
    for axes, table in zip(figure.subplots(len(tables), squeeze=False)[:, 0], tables, strict=True):
        names, times, least, by = (_column(table, name) for name in ("kernel", "ms", "limit, ms", "limited by"))
        shares = [100 * bound / took for bound, took in zip(least, times, strict=True)]
        for kind, colour in colours.items():
            mine = [k for k, each in enumerate(by) if each == kind]
            if mine:
                label = f"limited by {kind}"
                axes.barh([-k for k in mine], [shares[k] for k in mine], color=colour, label=label)
        axes.axvline(100, color="black", linewidth=1, label="measured limit")
        axes.set_yticks([-k for k in range(len(names))], names)
        axes.set_xlabel("of the measured limit (%); 100: as fast as the memory allows")
        where = f"{page['cpu']}, {', '.join(page['devices'])}"
        axes.set_title(f"Compiled kernels on {table['title']}; {where}", fontsize=10)
    known = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=3, frameon=False)
    return _saved(figure, path)


def draw_calls(page: dict[str, Any], path: Path) -> bool:
    """How long calls take until they settle: a line for each call of tables with columns 1, 2, 3 ... and settled."""
    tables = list(_tables(page, "1", "2", "settled"))
    if not tables:
        return False
    columns = min(3, len(tables))
    figure = _figure(4 * columns, 0.6 + 2.8 * -(-len(tables) // columns))
    grid = figure.subplots(-(-len(tables) // columns), columns, squeeze=False).ravel()
    for axes in grid[len(tables) :]:
        axes.remove()
    handles: dict[str, Any] = {}
    for axes, table in zip(grid, tables, strict=False):
        steps = [name for name in table["columns"] if name.isdigit()]
        for k, name in enumerate(_column(table, table["columns"][0])):
            times = [_number(_column(table, step)[k]) for step in steps]
            settled = _number(_column(table, "settled")[k])
            if settled and all(times):
                calls = range(len(steps))
                lines = axes.plot(calls, [took / settled for took in times if took], f"C{k}o-", label=name)
                handles.setdefault(name, lines[0])
        axes.set_xticks(range(len(steps)), steps)
        handles["a settled call"] = axes.axhline(1, color="black", linewidth=0.8, label="a settled call")
        axes.set(yscale="log", xlabel="number of the call", ylabel="time / time of a settled call")
        axes.set_title(table["title"] or page["title"])
    figure.suptitle(page["title"])
    figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=4, frameon=False)
    return _saved(figure, path)


PICTURES: dict[str, Callable[[dict[str, Any], Path], bool]] = {"roofline": draw_roofline, "calls": draw_calls}


def device_count(devices: str) -> int | None:
    """How many devices a string such as cuda:0-3 or cpu:4 names; None for others, and for several on one GPU."""
    if found := re.fullmatch(r"cpu:(\d+)", devices):
        return int(found[1])
    if found := re.fullmatch(r"cuda:(\d+)(?:-(\d+))?", devices):
        return 1 + int(found[2] or found[1]) - int(found[1])
    return None


def scalings(found: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[int, float]]:
    """Medians by number of devices, of what was measured on several numbers of them: by (model, what).

    Of several runs the newest counts.
    """
    known: dict[tuple[str, str], dict[int, float]] = {}
    for page in sorted(found, key=lambda page: page.get("when", "")):
        for row in page.get("rows", []):
            count = device_count(row["devices"])
            model = page["cpu"] if row["devices"].startswith("cpu") else ", ".join(page["devices"])
            if count and row["ours"] and row["unit"] == "ms":
                known.setdefault((model, row["what"]), {})[count] = row["ours"]
    return {key: dict(sorted(times.items())) for key, times in known.items() if 1 in times and len(times) > 1}


def draw_scaling(found: Sequence[dict[str, Any]], path: Path) -> bool:
    """Speed on 1 to n devices over one: an axes for each graph, a line for each algorithm."""
    graphs: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for (model, what), times in scalings(found).items():
        graph, _, step = what.partition(": ")
        graphs.setdefault((model, graph), {})[step or what] = times
    if not graphs:
        return False
    steps, columns = list(dict.fromkeys(step for lines in graphs.values() for step in lines)), min(3, len(graphs))
    figure = _figure(4 * columns, 1 + 3 * -(-len(graphs) // columns))
    grid = figure.subplots(-(-len(graphs) // columns), columns, squeeze=False).ravel()
    for axes in grid[len(graphs) :]:
        axes.remove()
    marks, handles = dict(zip(steps, cycle("os^Dv<>P*X"), strict=False)), {}
    for axes, ((model, graph), lines) in zip(grid, graphs.items(), strict=False):
        for step, times in lines.items():
            style = {"color": f"C{steps.index(step) % 10}", "marker": marks[step], "label": step}
            handles[step] = axes.plot(list(times), [times[1] / took for took in times.values()], **style)[0]
        counts = sorted({count for times in lines.values() for count in times})
        ideal = axes.plot(counts, counts, "k:", linewidth=0.8, label="as many times faster as there are devices")[0]
        axes.set_xticks(counts, list(map(str, counts)))
        axes.set(xlabel="number of devices", ylabel="time of one device / time", title=f"{graph}, {model}")
    figure.suptitle("Whole calls on several devices beside one, compiled kernels; runs of several commits")
    figure.legend(handles=[*handles.values(), ideal], loc="outside lower center", ncols=4, frameon=False)
    return _saved(figure, path)
