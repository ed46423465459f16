"""graphblas-algorithms with `graphblas` replaced by `gbgpu` in a temporary copy of its sources: its own tests, and the
tests of networkx that it is run by. What passes on python-graphblas passes on gbgpu.

`make test-suites` installs it; the ordinary run collects the tests of this folder, and runs none."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("graphblas_algorithms", "_nx_graphblas")
OWN = ("graphblas_algorithms",)
# Tests of the functions that it has, whatever it leaves to networkx being run by that
NETWORKX = tuple(f"networkx.{name}" for name in """
    algorithms.centrality.tests.test_degree_centrality algorithms.centrality.tests.test_eigenvector_centrality
    algorithms.centrality.tests.test_katz_centrality algorithms.link_analysis.tests algorithms.components.tests
    algorithms.shortest_paths.tests.test_weighted algorithms.shortest_paths.tests.test_unweighted
    algorithms.shortest_paths.tests.test_dense algorithms.shortest_paths.tests.test_generic
    algorithms.tests.test_cluster algorithms.tests.test_core algorithms.tests.test_triads
    algorithms.tests.test_boundary algorithms.tests.test_cuts algorithms.tests.test_efficiency
    algorithms.tests.test_isolate algorithms.tests.test_reciprocity algorithms.tests.test_regular
    algorithms.tests.test_simple_paths algorithms.tests.test_smetric algorithms.tests.test_structuralholes
    algorithms.tests.test_tournament algorithms.tests.test_dag algorithms.tests.test_dominating
    algorithms.community.tests.test_quality algorithms.traversal.tests.test_bfs algorithms.operators.tests
    algorithms.isomorphism.tests.test_isomorphism generators.tests.test_ego
""".split())  # fmt: skip
# Failures on gbgpu alone, each with its reason
EXCUSED: dict[str, str] = {}
ENTRY_POINTS = """[networkx.backends]
graphblas = graphblas_algorithms.interface:Dispatcher
[networkx.backend_info]
graphblas = _nx_graphblas:get_info
"""


def renamed(source: str) -> str:
    """Imports of graphblas, and what is reached through its name, as gbgpu's."""
    source = re.sub(r"^(\s*)(from|import) graphblas\b", r"\1\2 gbgpu", source, flags=re.MULTILINE)
    return re.sub(r"\bgraphblas\.(?=core|Matrix|Vector|Scalar|io)", "gbgpu.", source)


def copy_to(folder: Path, replace: bool) -> Path:
    """The package in a folder of its own, as if installed there."""
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin, "graphblas-algorithms is missing: make test-suites installs it"
        shutil.copytree(Path(spec.origin).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = folder / "graphblas_algorithms-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: graphblas-algorithms\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    for path in folder.glob("graphblas_algorithms/**/*.py") if replace else ():
        path.write_text(renamed(path.read_text()))
    return folder


def outcomes(folder: Path, targets: tuple[str, ...], backend: str) -> dict[str, bool]:
    """Name of each test -> whether it passed."""
    report = folder / "report.xml"
    given = ["-q", "--pyargs", *targets, "-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}"]
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "ignore"}
    if backend:
        env |= {"NETWORKX_TEST_BACKEND": backend, "NETWORKX_FALLBACK_TO_NX": "True"}
    command = [sys.executable, "-m", "pytest", *given, "-c", os.devnull, f"--rootdir={folder}"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        found[name] = not any(child.tag in ("failure", "error") for child in case)
    return found


@pytest.mark.parametrize(("targets", "backend"), [(OWN, ""), (NETWORKX, "graphblas")], ids=["own", "networkx"])
def test_what_passes_on_python_graphblas_passes(tmp_path, targets, backend):
    theirs = outcomes(copy_to(tmp_path / "oracle", False), targets, backend)
    mine = outcomes(copy_to(tmp_path / "gbgpu", True), targets, backend)
    assert any(theirs.values()) and mine.keys() == theirs.keys()
    worse = [name for name, passed in theirs.items() if passed and not mine[name] and name not in EXCUSED]
    print(f"{sum(mine.values())} of {len(mine)} pass on gbgpu, {sum(theirs.values())} on python-graphblas")
    assert not worse


def test_the_copy_runs_on_gbgpu(tmp_path):
    """Nothing of python-graphblas is imported by it."""
    folder = copy_to(tmp_path / "gbgpu", True)
    found = "*(name in sys.modules for name in ('graphblas', 'gbgpu'))"
    code = f"import sys, graphblas_algorithms as g; print(g.__file__, {found})"
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(folder / "graphblas_algorithms/__init__.py"), "False", "True"]
