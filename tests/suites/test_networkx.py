"""NetworkX's own tests with every call handed to the backend `gbgpu` that it takes, the others left to NetworkX."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

from nx_backend import ROOT, SUITE, environment, suite

# 27,495 pairs of trees, each of which asks for several functions: half an hour. Those of up to ten vertices remain.
LONG = "not (test_tree_isomorphism_all_non_isomorphic_pairs and 11)"


def test_networkx_passes_on_gbgpu(tmp_path):
    env = environment(tmp_path, **SUITE, GBGPU_NX_RAN=str(tmp_path / "ran.json"))
    command = suite(tmp_path, "networkx", "-k", LONG)
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    ran = Counter(json.loads((tmp_path / "ran.json").read_text()))
    print(done.stdout.splitlines()[-1])
    print(f"{len(ran)} functions ran on gbgpu:", ", ".join(f"{name} {ran[name]}" for name in sorted(ran)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(ran) > 120


def test_a_script_needs_no_change(tmp_path):
    """examples/networkx_script.py prints the same with the backend and without; the last line is who computed it. The
    backend takes every call: by predicted times it would leave calls on so small a graph to NetworkX."""
    script = f"runpy.run_path({str(ROOT / 'examples/networkx_script.py')!r}, run_name='__main__')"
    command = [sys.executable, "-c", f"import runpy, networkx; networkx.config.backends.gbgpu.threshold = 0; {script}"]
    runs = []
    for more in ({}, {"NETWORKX_AUTOMATIC_BACKENDS": "gbgpu"}):
        env = environment(tmp_path, GBGPU_INTERPRET="0", **more)
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
        runs.append(done.stdout.splitlines())
    assert runs[0][:-1] == runs[1][:-1]
    assert [run[-1].split()[-1] for run in runs] == ["networkx", "gbgpu"]
