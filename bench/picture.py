"""Draws docs/speed.svg from bench/results/cugraph.md: python -m bench.picture"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
COLORS = {"rmat22": "#3f51b5", "kron21": "#7986cb", "rmat24": "#1a237e", "urand23": "#00897b"}
COLORS |= {"road24m": "#e65100", "road2m": "#ffb74d"}


def measured(text: str) -> list[tuple[str, str, float, float]]:
    """Algorithm, graph, and the milliseconds of cuGraph and of gbgpu, of each row of the table."""
    rows = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and "ms" not in line)
    return [(name, graph, float(theirs), float(ours)) for name, graph, theirs, ours, _ in rows]


def draw(rows: list[tuple[str, str, float, float]], file: Path) -> None:
    """One line for each algorithm, one mark for each graph. File and picture are the same for the same rows."""
    names = list(dict.fromkeys(row[0] for row in rows))[::-1]
    plt.rcParams |= {"svg.hashsalt": "gbgpu", "svg.fonttype": "none", "font.size": 11}
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for graph, color in COLORS.items():
        mine = [(theirs / ours, names.index(name)) for name, of, theirs, ours in rows if of == graph]
        axes.scatter([x for x, _ in mine], [y for _, y in mine], color=color, label=graph, s=42, zorder=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlim=(0.6, 40))
    axes.set_xlabel("time of cuGraph / time of gbgpu (right of 1: gbgpu is faster)")
    axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="both", color="#dddddd")
    axes.set_title("gbgpu beside cuGraph 26.10 on one NVIDIA H200, compiled kernels")
    figure.legend(title="graph", loc="outside right center", frameon=False)
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    draw(measured((ROOT / "bench/results/cugraph.md").read_text()), ROOT / "docs/speed.svg")
