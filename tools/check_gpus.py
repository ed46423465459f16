"""All that is checked on GPUs, side by side on those of this machine:

    python tools/check_gpus.py [NAME ...] [--gpus N] [--logs DIR] [--seconds S] [--list]

Each check is a process, or several copies of one, with so many GPUs of its own; names choose the checks that begin with
them. What needs more GPUs than there are is left out, or compute-sanitizer (CUDA has it) where that is not there: it
is told. Exits with 1 if a check fails, or is not done in its time; `--seconds`: for all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gbgpu.device import cuda

ROOT = Path(__file__).resolve().parent.parent
LOOPS = "tests/test_loops_compiled.py"
# Files that have checks of their own, or no GPU
APART = ("test_loops_compiled", "test_failure_gpu", "test_large_gpu", "test_layers", "test_ranks")
ALL = [f"tests/{file.name}" for file in sorted((ROOT / "tests").glob("test_*.py")) if file.stem not in APART]
ALONE = "thousand", "memory_stays"  # wait for a whole GPU, or look at its memory
BESIDE = " and ".join(["cuda", *(f"not {name}" for name in ALONE)])  # may run beside others
SHORT = f"{BESIDE} and not random_bodies and not without_end"
# A few tests of each kind of kernel.
KERNELS = [f"tests/test_{name}.py" for name in "counters streams_gpu gate_gpu algos deterministic".split()]
KERNELS += ["tests/test_kernels_gpu_matrix.py", LOOPS]
CHOSEN = "counters or few_rounds or (short_rows and 700 or pushes or streams_give and random and 200 or shape3 and 300"
CHOSEN += " or algos and dense or selecting or cut and 1025) and not 3]"
# Backtraces hold Python's frames, and all that these have, for ever: tests of what is let go would fail.
SANITIZER = "compute-sanitizer --show-backtrace no --error-exitcode 9 --report-api-errors no".split()
OURS = ["--kernel-name-exclude", "kns=cupy_"]
PARTS, COPIES = 4, 12
FEW = {1: 6, 2: 5, 4: 3}  # processes whose kernels wait for other GPUs, which take turns with those of other processes
END = re.compile(r"(\d+|no) \w+.* in \d+\.\d+s|(ERROR|RACECHECK) SUMMARY")  # of pytest, of a sanitizer


class Check(NamedTuple):
    """A command, with so many GPUs, for at most so many seconds. copies: processes of it that share them."""

    name: str
    gpus: int
    seconds: int
    command: list[str]
    variables: dict[str, str]
    copies: int = 1


def tests(what: list[str], chosen: str, workers: int = 0) -> list[str]:
    beside = ["-n", str(workers)] if workers else ["-p", "no:xdist"]
    plain = ["-q", "-rfE", "--tb=short", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *plain, *beside, *what, "-k", chosen]


def checks(workers: int) -> Iterator[Check]:
    """`workers`: processes for tests on one GPU."""
    for gpus, name, specs, loops in (
        (4, "four", "cuda:0-3 cuda:0-3/shares(1,97,1,1) cuda:0-3*2", ["cuda:0-3", "cuda:0-3*2"]),
        (2, "pair", "cuda:0-1 cuda:0-1/shares(1,99)", ["cuda:0-1"]),
        (2, "pair, logical", "cuda:0-1*2 cuda:0,cpu:2", ["cuda:0-1*2"]),
        (1, "one", "cuda:0 cuda:0*3 cuda:0*4", ["cuda:0 cuda:0*3"]),
    ):
        devices = {"GBGPU_TEST_DEVICES": specs}
        yield Check(f"tests, {name}", gpus, 600, tests(ALL, "cuda or gpu", min(workers * gpus, 24)), devices)
        for each in loops:
            devices = {"GBGPU_TEST_DEVICES": each}
            yield Check(f"loops, {each}", gpus, 600, tests([LOOPS], BESIDE, min(workers * gpus, FEW[gpus])), devices)
    for gpus, spec in ((4, "cuda:0-3"), (2, "cuda:0-1"), (1, "cuda:0")):
        devices = {"GBGPU_TEST_DEVICES": spec}
        for name, profile in (("thousand", "ci"), ("memory_stays", "long")):  # a thousand loops, too
            variables = {**devices, "GBGPU_TEST_PROFILE": profile}
            yield Check(f"{name}, {spec}", gpus, 300, tests([LOOPS], f"{name} and cuda"), variables)
    yield Check("failures", 2, 120, tests(["tests/test_failure_gpu.py"], "gpu"), {"GBGPU_TEST_DEVICES": "cuda:0-1"})
    yield Check("large", 1, 120, tests(["tests/test_large_gpu.py"], "gpu"), {"GBGPU_TEST_DEVICES": "cuda:0"})
    ranks = [str(Path(sys.executable).with_name("mpiexec")), "-n", "2", sys.executable, "tests/ranked.py"]
    ranks += ["algorithms", "cuda:0", "+", "fixpoints", "cuda:0"]  # two that share a GPU
    yield Check("ranks, one", 1, 300, ranks, {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])})
    loops = [LOOPS, "tests/test_loops.py"]
    drawn = {"GBGPU_TEST_DEVICES": "cuda:0 cuda:0*3", "GBGPU_TEST_PROFILE": "drawn"}
    yield Check("bodies", 1, 300, tests(loops, "random_bodies and cuda"), drawn, COPIES)
    one = {"GBGPU_TEST_DEVICES": "cuda:0"}
    for i in range(PARTS):
        memcheck = [*SANITIZER, "--tool", "memcheck", *OURS, *tests(loops, SHORT)]
        yield Check(f"memcheck, loops {i + 1}", 1, 400, memcheck, {**one, "GBGPU_TEST_PART": f"{i}/{PARTS}"})
    stays = [*SANITIZER, "--tool", "racecheck", "--kernel-name", "kne=resident", sys.executable, "tests/racing.py"]
    yield Check("racecheck, loops", 1, 300, stays, {})
    for tool in ("memcheck", "racecheck", "synccheck"):
        chosen, variables = CHOSEN, one
        if tool != "memcheck":  # the others do not see into graphs
            chosen, variables = f"({CHOSEN}) and not few_rounds", {**one, "GBGPU_TEST_LOOPS": "statements"}
        command = [*SANITIZER, "--tool", tool, *OURS, *tests(KERNELS, chosen)]
        yield Check(f"{tool}, kernels", 1, 600, command, variables)


class Run:
    """The processes of a check on its GPUs."""

    def __init__(self, check: Check, gpus: list[int], seconds: float, logs: Path):
        self.check, self.gpus, self.begun = check, gpus, time.monotonic()
        self.until = self.begun + min(check.seconds, seconds)
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
        environment = {**os.environ, **visible, **check.variables}
        name = "".join(c if c.isalnum() else "-" for c in check.name)
        self.logs = [logs / f"{name}{f'-{i}' * (check.copies > 1)}.log" for i in range(check.copies)]
        self.processes = []
        for log in self.logs:
            with log.open("wb") as out:
                self.processes.append(
                    subprocess.Popen(
                        check.command,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        env=environment,
                        cwd=ROOT,
                        start_new_session=True,
                    )
                )
        self._going = [*self.processes]

    @property
    def over(self) -> bool:
        """Whether its processes have ended. What they began, pytest's workers, ends with them."""
        for process in [process for process in self._going if process.poll() is not None]:
            self._going.remove(process)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return not self._going

    def stop(self) -> None:
        """As Ctrl-C does first: pytest tells what failed by then."""
        for number in (signal.SIGINT, signal.SIGKILL):
            for process in self._going:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            end = time.monotonic() + 5
            while not self.over and time.monotonic() < end:
                time.sleep(0.1)

    def told(self, late: bool) -> tuple[bool, list[str]]:
        """Whether all went well, and the last words of each process that differ."""
        good = not late and all(process.returncode == 0 for process in self.processes)
        said = dict.fromkeys(line for log in self.logs for line in words(log, good))
        return good, [*["not done in its time"] * late, *said]


def words(log: Path, good: bool) -> list[str]:
    """Lines of a log that tell how it went."""
    lines = [line.strip("= ") for line in log.read_text(errors="replace").splitlines() if line.strip("= ")]
    ends = [line for line in lines if END.match(line)]
    failed = [] if good else [line[:200] for line in lines if line.startswith(("FAILED tests", "ERROR tests"))][:20]
    return [*failed, *([] if ends and (good or failed) else lines[-3:]), *ends]


def side_by_side(left: list[Check], gpus: int, seconds: float, logs: Path) -> int:
    """Run checks, the first ones first, as far as GPUs are free; returns how many failed."""
    free, failed, end = list(range(gpus)), 0, time.monotonic() + seconds
    running: list[Run] = []
    try:
        while left or running:
            for check in [*left]:
                if check.gpus <= len(free):
                    mine, free = free[: check.gpus], free[check.gpus :]
                    left.remove(check)
                    running.append(Run(check, mine, end - time.monotonic(), logs))
            time.sleep(0.2)
            for run in [*running]:
                late = not run.over and time.monotonic() > run.until
                if late:
                    run.stop()
                if run.over:
                    running.remove(run)
                    free = sorted([*free, *run.gpus])
                    good, said = run.told(late)
                    failed += not good
                    head = f"{'ok' if good else 'FAILED'}: {run.check.name}, {time.monotonic() - run.begun:.0f} s"
                    print(head, *said, sep="\n  ", flush=True)
    finally:
        for run in running:
            run.stop()
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--gpus", type=int, help="as many as there are, by default")
    parser.add_argument("--logs", type=Path, default=ROOT / "out" / "gpus")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--list", action="store_true", help="print the checks alone")
    given = parser.parse_args()
    gpus = cuda.available() if given.gpus is None else given.gpus
    workers = max((os.cpu_count() or 1) // max(gpus, 1) - 2, 1)
    wanted = [one for one in checks(workers) if not given.names or one.name.startswith(tuple(given.names))]
    if not wanted:
        parser.error(f"no check begins with {' or '.join(given.names)}; --list prints all")
    if given.list:
        print(*(f"{one.name}: {one.gpus} GPU, {one.seconds} s at most" for one in wanted), sep="\n")
        return
    left = []
    for one in wanted:
        lacks = "more GPUs" if one.gpus > gpus else one.command[0] if shutil.which(one.command[0]) is None else ""
        if lacks:
            print(f"left out: {one.name}, as {lacks} would be needed", flush=True)
        else:
            left.append(one)
    given.logs.mkdir(parents=True, exist_ok=True)
    if not left or side_by_side(left, gpus, given.seconds, given.logs):
        sys.exit(1)


if __name__ == "__main__":
    main()
