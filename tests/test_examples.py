"""The scripts and notebooks in examples/ run, print what they found, and draw it."""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from nx_backend import register

import gbgpu as gb

FOLDER = Path(__file__).resolve().parent.parent / "examples"
# A part of what each prints, which does not depend on the devices
SCRIPTS = {
    "collaborative_filter": "9,518 ratings known, 2,492 held out; predicting the mean is wrong by 0.958 stars",
    "from_scratch": "told by 20 %:  8,481 of 10,680 believe it after 24 rounds",
    "networkx_script": "brokers have 0.2498 and others 0.0",
    "road_trip": "the round takes 9.6 hours",
    "scipy_script": "at most 24.1 km to a station, 56.5 km to the headquarters",
    "user_semiring": "widest paths with leaks: 60.9 on average",
}
SUITES = {"test_my_algorithms": 6}  # tests on two sets of devices
NOTEBOOKS = {
    "first_steps": "{0: 0, 1: 3, 2: 1, 3: 7, 4: 8}",
    "searches": "any_secondi[INT64](q @ A)",
}


@pytest.fixture
def folder(tmp_path, monkeypatch, first) -> Path:
    """An empty one to run in, with a session, without a window; NetworkX's settings are put back."""
    from matplotlib import pyplot

    register(monkeypatch)
    gb.init(gb.settings.session().spec)
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("Agg")
    yield tmp_path
    pyplot.close("all")


def run(name: str, monkeypatch, *arguments: str) -> str:
    """What the script prints."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return printed.getvalue()


def check_picture(path: Path) -> None:
    """It has colours, which an empty one, frame and labels included, has not."""
    from matplotlib.image import imread

    colours = imread(path)[:, :, :3]
    assert np.mean(np.ptp(colours, axis=2) > 0.2) > 0.002


def check_words() -> None:
    """Each picture that was drawn has a title, and each axis with numbers a label."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        assert figure.get_suptitle() or any(axes.get_title() for axes in figure.axes)
        for axes in (axes for axes in figure.axes if axes.axison):
            for axis in (axes.xaxis, axes.yaxis):
                numbers = any(label.get_text() for label in axis.get_ticklabels())
                assert axis.get_label_text() or not (axis.get_visible() and numbers), axes.get_title()


def test_each_example_is_run_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*SCRIPTS, *SUITES}
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NOTEBOOKS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_prints_its_result_and_draws_it(name, folder, monkeypatch):
    devices = ["--devices", "cpu:3"] if name == "from_scratch" else []
    assert SCRIPTS[name] in run(name, monkeypatch, *devices)
    check_picture(folder / f"{name}.png")
    check_words()
    assert [path.name for path in folder.iterdir()] == [f"{name}.png"]


def test_the_networkx_script_prints_the_same_with_the_backend(folder, monkeypatch):
    plain = run("networkx_script", monkeypatch, "--picture", "plain.png").splitlines()
    monkeypatch.setattr(nx.config.backends.gbgpu, "threshold", 0)  # whatever the calls are predicted to take
    with nx.config.backend_priority(algos=["gbgpu"]):
        handed_over = run("networkx_script", monkeypatch, "--picture", "gbgpu.png").splitlines()
    assert plain[:-1] == handed_over[:-1]
    assert [plain[-1], handed_over[-1]] == ["computed by networkx", "computed by gbgpu"]
    check_picture(folder / "plain.png")
    check_picture(folder / "gbgpu.png")


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_passes_and_tells_of_its_targets(name, inner_pytest, first):
    text = (FOLDER / f"{name}.py").read_text()
    found = inner_pytest(text, "--gb-devices", "cpu:1 cpu:3")
    found.assert_outcomes(passed=SUITES[name])
    found.stdout.fnmatch_lines(["*targets of gb_target*", "*test_common_neighbours?cpu:1?: *; came * ms"])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_top_to_bottom(name, folder):
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text())
    assert notebook["nbformat"] == 4
    cells, space = notebook["cells"], {"__name__": "__main__"}
    assert len({cell["id"] for cell in cells}) == len(cells)
    everything = []
    for number, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        assert cell["execution_count"] == number
        code = ast.parse("".join(cell["source"]))
        shown = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
        with redirect_stdout(StringIO()) as printed:
            exec(compile(code, f"<{name}, {cell['id']}>", "exec"), space)
            if shown:
                value = eval(compile(ast.Expression(shown.value), f"<{name}, {cell['id']}>", "eval"), space)
                if value is not None:
                    print(repr(value))
        assert same_everywhere(printed.getvalue()) == same_everywhere(stored(cell))
        everything.append(printed.getvalue())
    assert NOTEBOOKS[name] in "".join(everything)
    assert "image/png" in {
        kind for cell in cells for output in cell.get("outputs", ()) for kind in output.get("data", ())
    }
    check_picture(folder / f"{name}.png")
    check_words()


def stored(cell: dict) -> str:
    """The text that a notebook keeps below a cell; pictures have none."""
    outputs = [output for output in cell["outputs"] if output["output_type"] != "display_data"]
    return "\n".join(
        "".join(output["text"] if "text" in output else output["data"]["text/plain"]) for output in outputs
    )


def same_everywhere(text: str) -> list[str]:
    """Lines without times, and without what tells whether kernels were compiled."""
    return [line.rstrip() for line in text.splitlines() if not re.search(r"rounds, by: | ms$|interpreted", line)]
