"""tools/check_gpus.py: checks are processes, which leave nothing behind on the GPUs of the next one."""

from __future__ import annotations

import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def check_gpus():
    spec = spec_from_file_location("check_gpus", ROOT / "tools" / "check_gpus.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def alive(pid: str) -> bool:
    """Whether a process runs: one that nobody has asked about may be there yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait(done) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("then", "late"), [("exit 0", False), ("exit 3", False), ("sleep 600", True)])
def test_workers_end_with_who_began_them(check_gpus, tmp_path, then, late):
    """Those of pytest may wait for a GPU when it has ended: by itself, or as its time was over."""
    worker = tmp_path / "worker"
    command = ["bash", "-c", f"sleep 600 & echo $! > {worker}.part; mv {worker}.part {worker}; {then}"]
    run = check_gpus.Run(check_gpus.Check("a check", 1, 600, command, {}, copies=2), [0], 600, tmp_path)
    if late:
        wait(worker.exists)
        assert not run.over and alive(worker.read_text().strip())
        run.stop()
    wait(lambda: run.over)
    wait(lambda: not alive(worker.read_text().strip()))
    good, said = run.told(late)
    assert good == (then == "exit 0") and late == (said[:1] == ["not done in its time"])
