"""The algorithms on three graphs and four virtual devices, each result checked; a table, and a picture in
out/demo.png.

Run from anywhere: `python tools/demo.py [--devices cpu:4] [--picture FILE]`. Exits with 1 if a check fails.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gbgpu as gb
from algos import graphs, runs
from algos.cli import plain
from algos.progress import Progress
from algos.verify import VerificationError
from gbgpu import report

ROOT = Path(__file__).resolve().parent.parent
GRAPHS = {
    "PGPgiantcompo": str(ROOT / "data/PGPgiantcompo.mtx.gz"),
    "luxembourg_osm": str(ROOT / "data/luxembourg_osm.mtx.gz"),
    "rmat:14:16:1:1-255": "rmat:14:16:1:1-255",
}


@dataclass
class Line:
    """One algorithm on one graph."""

    algorithm: str
    first: float
    again: float
    result: str
    failure: str = ""


def run(A: gb.Matrix, label: str) -> Line:
    """Run twice (the first run may compile kernels), check the second result."""
    algorithm = runs.ALGORITHMS[label]
    chosen = algorithm.choose(A, {}).values()
    _, first = runs.timed(algorithm, A, *chosen)
    outcome, again = runs.timed(algorithm, A, *chosen)
    numbers = list(algorithm.summary(outcome).items())[:2]  # those that fit a line
    result = ", ".join(f"{key} {plain(value)}" for key, value in numbers)
    line = Line(label, first, again, result)
    try:
        algorithm.verify(A, *chosen, outcome)
    except VerificationError as error:
        line.failure = str(error)
    return line


def draw(A: gb.Matrix, name: str, path: Path) -> None:
    """A picture of a breadth-first search and the shortest paths after it, with kernels compiled before."""
    source = runs.choose_source(A, None)
    records = runs.traced_warm(lambda: [runs.ALGORITHMS[label].run(A, source) for label in ("bfs", "sssp")])
    path.parent.mkdir(parents=True, exist_ok=True)
    report.plot(records, path, title=f"bfs, then sssp, on {name}, traced statement by statement")


def show(title: str, lines: list[Line], console: Console) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("algorithm", "first run", "again", "result", "check"):
        table.add_column(column, justify="right" if column in ("first run", "again") else "left")
    table.columns[3].width = 26
    for line in lines:
        check = f"[red]{escape(line.failure)}[/]" if line.failure else "[green]verified[/]"
        times = (f"{seconds * 1e3:.1f} ms" for seconds in (line.first, line.again))
        table.add_row(line.algorithm, *times, line.result, check)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--devices", default="cpu:4")
    parser.add_argument("--picture", type=Path, default=ROOT / "out/demo.png")
    arguments = parser.parse_args()
    gb.init(arguments.devices)
    results: dict[str, list[Line]] = {}
    with Progress(steps=len(GRAPHS) * len(runs.ALGORITHMS) + 1) as progress:
        for name, graph in GRAPHS.items():
            A = graphs.load(graph)
            lines = results[f"{name}: {A.nrows:,} vertices, {A.nvals:,} entries"] = []
            for label in runs.ALGORITHMS:
                progress.step(f"{label} on {name}")
                lines.append(run(A, label))
        progress.step("drawing")
        draw(A, name, arguments.picture)
    console = Console()
    console.print(f"gbgpu on {arguments.devices}", highlight=False)
    for title, lines in results.items():
        show(title, lines, console)
    print(f"picture: {arguments.picture}")
    return 1 if any(line.failure for lines in results.values() for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
