"""The NetworkX backend in tests: in this process as if it were installed, and in others by its entry points."""

from __future__ import annotations

import os
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import networkx as nx
from networkx.utils import backends as dispatch

ROOT = Path(__file__).resolve().parent.parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


def register(monkeypatch: Any) -> None:
    """Dispatch knows of it, and asks it for nothing of its own accord."""
    from _gbgpu_nx import get_info

    found = EntryPoint("gbgpu", DECLARED["networkx.backends"]["gbgpu"], "networkx.backends")
    monkeypatch.setitem(dispatch.backends, "gbgpu", found)
    monkeypatch.setitem(dispatch.backend_info, "gbgpu", get_info())
    config = nx.utils.Config(**get_info()["default_config"])
    others = {name: value for name, value in nx.config.backends.items() if name != "gbgpu"}
    monkeypatch.setattr(nx.config, "backends", nx.utils.Config(gbgpu=config, **others))
    monkeypatch.setattr(dispatch._dispatchable, "__call__", dispatch._dispatchable._call_if_any_backends_installed)
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


def environment(folder: Path, **more: str) -> dict[str, str]:
    """For a process that imports this project and finds its entry points, whether it is installed or not: metadata of
    the same name that come first on the path are those that count."""
    metadata = folder / "gbgpu_graphs-0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gbgpu-graphs\nVersion: 0\n")
    groups = (f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
              for group, names in DECLARED.items())
    (metadata / "entry_points.txt").write_text("".join(groups))
    path = os.pathsep.join(map(str, (folder, ROOT, ROOT / "tests")))
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # xdist's, among them
    return {**outer, "PYTHONPATH": path, **more}


def suite(folder: Path, *arguments: str, **more: str) -> list[str]:
    """The command of NetworkX's own tests with the backend forced, what it can't do left to NetworkX; its environment
    is `environment(folder, **SUITE)`."""
    return [sys.executable, "-m", "pytest", "-q", "--pyargs", *arguments, "-p", "nx_ran", "-p", "no:cacheprovider",
            "-c", os.devnull, f"--rootdir={folder}"]


SUITE = {"NETWORKX_TEST_BACKEND": "gbgpu", "NETWORKX_FALLBACK_TO_NX": "True"}
