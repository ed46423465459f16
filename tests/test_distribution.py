"""What is installed: a wheel that was built from the source archive, alone in a directory of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import gbgpu as gb

ROOT = Path(__file__).resolve().parent.parent
BUILT = "gbgpu algos _gbgpu_nx.py _gbgpu_nx_costs.py pyproject.toml README.md LICENSE MANIFEST.in".split()
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
PROGRAM = """
from importlib.metadata import entry_points, version
import algos, gbgpu as gb
gb.init("cpu:2")
levels = algos.bfs(gb.io.grid_road(5, 1.0, seed=1), 0).levels
backends = [each.value for each in entry_points(group="networkx.backends") if each.name == "gbgpu"]
print(gb.__file__, algos.__file__, version("gbgpu-graphs") == gb.__version__, levels.nvals, backends[0])
"""


def build(what: str, source: Path, into: Path) -> Path:
    """The one file that is built."""
    into.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, what, str(into)], cwd=source, check=True, capture_output=True)
    (found,) = into.iterdir()
    return found


def test_a_wheel_of_the_source_archive_works_alone(tmp_path):
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name in BUILT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    with tarfile.open(build("build_sdist", source, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    with zipfile.ZipFile(build("build_wheel", unpacked, tmp_path / "wheel")) as archive:
        archive.extractall(site)
    ours = [path.relative_to(source) for name in ("gbgpu", "algos") for path in (source / name).rglob("*")]
    assert ours and not [path for path in ours if not (site / path).exists()]  # kernels and models, too
    environment = {**os.environ, "PYTHONPATH": str(site)}
    given = dict(cwd=tmp_path, env=environment, capture_output=True, text=True)
    done = subprocess.run([sys.executable, "-c", PROGRAM], **given)
    *files, same, reached, backend = done.stdout.split()
    assert all(file.startswith(str(site)) for file in files), done.stdout + done.stderr
    assert (same, reached, backend) == ("True", "25", "_gbgpu_nx_costs:backend")


def test_one_version_everywhere():
    assert f"\nversion: {gb.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## {re.escape(gb.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
