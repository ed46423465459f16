"""The four algorithms on three graphs and four virtual devices, each result checked; a table, and a picture in
out/demo.png.

Run from anywhere: `python tools/demo.py [--devices cpu:4] [--picture FILE]`. Exits with 1 if a check fails.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import gbgpu as gb
from algos import graphs, runs
from algos.cli import plain, timed
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

    graph: str
    algorithm: str
    first: float
    again: float
    result: str
    failure: str = ""


def run(name: str, A: gb.Matrix, label: str) -> Line:
    """Run twice (the first run may compile kernels), check the second result."""
    algorithm = runs.ALGORITHMS[label]
    source = runs.choose_source(A, None) if algorithm.takes_source else None
    _, first = timed(algorithm, A, source)
    outcome, again = timed(algorithm, A, source)
    numbers = {key.replace("_", " "): plain(value) for key, value in algorithm.summary(outcome).items()}
    line = Line(
        name,
        label,
        first,
        again,
        ", ".join(f"{key} {value:.6g}" if type(value) is float else f"{key} {value}" for key, value in numbers.items()),
    )
    try:
        algorithm.verify(A, source, outcome)
    except VerificationError as error:
        line.failure = str(error)
    return line


def draw(A: gb.Matrix, name: str, path: Path) -> None:
    """A picture of a breadth-first search and the shortest paths after it."""
    source = runs.choose_source(A, None)
    with gb.trace() as records:
        for label in ("bfs", "sssp"):
            runs.ALGORITHMS[label].run(A, source)
    path.parent.mkdir(parents=True, exist_ok=True)
    report.plot(records, path, title=f"bfs, then sssp, on {name}")


def show(lines: list[Line], sizes: dict[str, str], devices: str) -> None:
    table = Table(title=f"gbgpu on {devices}")
    for column in ("graph", "algorithm", "first run", "again", "result", "check"):
        table.add_column(column, justify="right" if column in ("first run", "again") else "left")
    for line in lines:
        check = f"[red]{line.failure}[/]" if line.failure else "[green]verified[/]"
        name = f"{line.graph}\n[dim]{sizes[line.graph]}[/]" if line.algorithm == "bfs" else ""
        table.add_row(
            name,
            line.algorithm,
            f"{line.first * 1e3:.0f} ms",
            f"{line.again * 1e3:.1f} ms",
            line.result,
            check,
            end_section=line.algorithm == list(runs.ALGORITHMS)[-1],
        )
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--devices", default="cpu:4")
    parser.add_argument("--picture", type=Path, default=ROOT / "out/demo.png")
    arguments = parser.parse_args()
    gb.init(arguments.devices)
    lines, sizes = [], {}
    with Progress(steps=len(GRAPHS) * len(runs.ALGORITHMS) + 1) as progress:
        for name, graph in GRAPHS.items():
            A = graphs.load(graph)
            sizes[name] = f"{A.nrows:,} vertices, {A.nvals:,} entries"
            for label in runs.ALGORITHMS:
                progress.step(f"{label} on {name}")
                lines.append(run(name, A, label))
        progress.step("drawing")
        draw(A, name, arguments.picture)
    show(lines, sizes, arguments.devices)
    print(f"picture: {arguments.picture}")
    return 1 if any(line.failure for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
