"""Devices and hypothesis profiles for all tests.

GBGPU_TEST_DEVICES  device strings, separated by spaces, in place of the CPU ones, with a partition or without one
                    ("cuda:0 cuda:0*3 cuda:0-1/shares(1,99)")
GBGPU_TEST_PROFILE  "ci" (the ordinary one), "drawn" (as many examples, others each time) or "long"
GBGPU_TEST_PART     "1/4": the second of four parts of the tests
GBGPU_TEST_LOOPS    "statements": loops go statement by statement, for tools that do not see into CUDA graphs
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

if "PYTEST_XDIST_WORKER" in os.environ:
    # Processes of xdist share the cores. A bound thread waits for another process on its core while others are idle.
    os.environ.setdefault("GBGPU_PIN", "0")

import gbgpu as gb  # noqa: E402
import gbgpu.io.binary  # noqa: E402
import gbgpu.io.parse  # noqa: E402
from gbgpu.device import nvrtc
from gbgpu.trace import by_steps

# Suites of users that tests run; and the marker that documents name, in a checkout that is not installed, too.
pytest_plugins = ["pytester", "_gbgpu_pytest"]

if os.environ.get("GBGPU_TEST_LOOPS") == "statements":
    by_steps.add(lambda record: None)

# Compilers leave hundreds of thousands of objects, and every full collection goes through all that are there.
gc.set_threshold(10_000, 10, 100)

quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
for name, examples in (("ci", 100), ("drawn", 100), ("long", 2000)):
    # The ordinary run draws the same examples each time, the others others.
    # print_blob and the printed script make every failure repeatable; the first run of a kernel compiles: no deadline
    settings.register_profile(
        name, max_examples=examples, deadline=None, derandomize=name == "ci", print_blob=True,
        suppress_health_check=quiet, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
settings.load_profile(os.environ.get("GBGPU_TEST_PROFILE", "ci"))
if settings.get_current_profile_name() == "ci":
    # Numbers that stand in modules are drawn too: which of ours are loaded by then differs from run to run.
    providers._get_local_constants = lambda: providers._local_constants


@dataclass(frozen=True)
class Devices:
    """What a test runs on: the device string, a partition (its call) or "", whether threads are forced, and who
    computes what (the policy's call, or "auto")."""

    spec: str
    partition: str = ""
    inline: str = "auto"
    balance: str = "auto"
    replicas: int | str = "auto"

    @property
    def name(self) -> str:
        kind = self.partition.partition("(")[0]
        beside = " threads" * (self.inline == "never") + " own rows" * (self.replicas == 0)
        return self.spec + f" {kind}" * bool(kind) + beside

    @property
    def several(self) -> bool:
        return re.fullmatch(r"cpu:1|cuda:\d+", self.spec) is None

    @property
    def permutes(self) -> bool:
        """Whether rows have an order of their own, which takes memory as they do, before a square matrix is known."""
        return bool(self.partition) and self.name.split()[1] not in ("shares", "degree_separated", "metis")

    def text(self) -> str:
        """The call that starts this session."""
        partition = f", partition=gb.partition.{self.partition}" if self.partition else ""
        balance = f", balance=gb.balance.{self.balance}" if self.balance != "auto" else ""
        replicas = f", replicas={self.replicas}" if self.replicas != "auto" else ""
        return f"gb.init({self.spec!r}{partition}{balance}{replicas})"

    def start(self) -> None:
        # Plain Python holds the interpreter: threads of such kernels only wait for each other.
        gb.settings.inline = "auto" if gb.settings.interpret else self.inline
        eval(self.text(), {"gb": gb})


# Whatever can be moved to another device is, however little it is worth.
STEAL = "Policy(fold=False, t1=0, t2=0, overhead=0, rest=0)"
FOLD = "Policy(t1=0, t2=0, t3=float('inf'), overhead=0, rest=0)"
CPU = (
    Devices("cpu:1"),
    Devices("cpu:3", "shares(1, 5, 3)", "never", STEAL),
    Devices("cpu:7", "random(7)", balance=FOLD),
)
MORE = (
    Devices("cpu:2", "degree_sorted()"), Devices("cpu:4", "metis()"), Devices("cpu:5", "segments(2)"), Devices("cpu:7"),
    Devices("cpu:4", "degree_separated(2)"),
)


def chosen() -> tuple[Devices, ...]:
    """The CPU sets, in the long run more, or what GBGPU_TEST_DEVICES names; sets of three get unequal shares."""
    specs = os.environ.get("GBGPU_TEST_DEVICES", "").split()
    if not specs:
        return CPU + MORE if os.environ.get("GBGPU_TEST_PROFILE") == "long" else CPU
    named = (text.partition("/")[::2] for text in specs)
    return tuple(
        Devices(spec, partition or "shares(1, 5, 3)" * spec.endswith(("*3", "0,cpu:2"))) for spec, partition in named
    )


def present(sets: list) -> list:
    """Sets of devices, strings or tuples that begin with one: those of CPUs, and of GPUs that this run names."""
    named = os.environ.get("GBGPU_TEST_DEVICES", "").split()
    specs = [each if isinstance(each, str) else each[0] for each in sets]
    return [each for each, spec in zip(sets, specs, strict=True) if spec in named or not spec.startswith("cuda")]


@pytest.fixture(scope="module", autouse=True)
def begun_anew() -> None:
    """Nothing stays of the session before."""
    gb.init("cpu:1")
    gc.collect()
    gc.freeze()


# Files of thousands of small tests, and of tests that take long on each set: the ordinary run takes them on three
# devices, and some of their cases on one. Random statements and loops run on seven as well.
FEWER_DEVICES = {
    f"test_{name}"
    for name in "algos battery centrality chains communities csgraph errors exact files language memory sparse".split()
    + "cli concurrency counters deterministic io real_graphs regressions told transposed trees types unchanged".split()
    + ["deep", "dry", "loops_compiled", "loops_shared", "nx_arguments", "nx_changes", "plugin"]
}


ALONE = {"cpu:1", "side by side"}  # sets of which the ordinary run takes some cases

# Files that share kernels, or operators that the oracle compiles: in the ordinary run one process takes the whole file,
# or all of these, or both would compile the same at the same time. They take longest, and begin first.
ORACLES = {"test_operators", "test_operator_names", "test_language"}
WHOLE = {"test_algos", "test_loops_compiled", "test_statements"} | ORACLES


def pytest_collection_modifyitems(config, items) -> None:
    """Leave to the long run other projects' suites, most of the ordinary device sets, in some files, and most cases of
    tests that are marked `few`; and other parts to other runs. What takes longest begins first."""
    if "graphblas" in sys.modules:
        import oracle_numba  # noqa: F401
    if part := os.environ.get("GBGPU_TEST_PART"):
        mine, parts = map(int, part.split("/"))
        items[:] = [item for item in items if crc32(item.nodeid.encode()) % parts == mine]
    items.sort(key=lambda item: item.path.stem not in WHOLE)
    if settings.get_current_profile_name() == "long":
        return

    left = {item for item in items if item.path.parent.name == "suites"}  # collected, so that errors there are seen
    marked, alone = defaultdict(list), defaultdict(list)
    for item in items if chosen() == CPU else ():
        given = item.callspec.params if hasattr(item, "callspec") else {}
        here = given.get("session", given.get("machine")) if item.path.stem in FEWER_DEVICES else None
        words = [here.spec] if isinstance(here, Devices) else here if isinstance(here, tuple) else []
        if here is CPU[-1]:
            left.add(item)
        elif ALONE.intersection(words):
            alone[item.path].append(item)
        elif item.get_closest_marker("few"):
            marked[item.nodeid.partition("[")[0]].append(item)
    chances = [(cases, cases[0].get_closest_marker("few").args[0]) for cases in marked.values()]
    chances += [(cases, len(cases) // 5) for cases in alone.values()]
    for cases, most in chances:
        cases.sort(key=lambda item: crc32(item.nodeid.encode()))  # some of each parameter's values
        left.update(cases[most:])
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session", params=chosen(), ids=lambda devices: devices.name)
def session(request) -> Devices:
    return request.param


@pytest.fixture
def devices(session: Devices) -> Devices:
    """A running session on each set of devices in turn. Kernels stay compiled from one session to the next."""
    session.start()
    return session


@pytest.fixture
def terminal() -> Iterator[None]:
    """Ctrl-C as a terminal has it: a job in the background starts with it ignored, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def in_rounds(monkeypatch) -> None:
    """Searches and shortest paths are loops, for tests of these, whatever the graph."""
    for name in ("algos.bfs", "algos.sssp"):
        monkeypatch.setattr(sys.modules[name], "without_rounds", lambda A, search="": False)


@pytest.fixture
def first() -> None:
    """A session on the first devices, for what has nothing to do with how many there are."""
    chosen()[0].start()


@pytest.fixture(params=["Python", "compiled"])
def reader(request, monkeypatch) -> None:
    """Who reads lines: compiled code all but those that it leaves, or Python all of them."""
    if request.param == "Python":
        monkeypatch.setattr(gbgpu.io.parse, "lines", lambda text, at, *rest: (at, 0, rest[7], rest[8]))


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    """A folder for this test's kernels alone: what tests before began to compile has gone to theirs."""
    nvrtc.settle()
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


QUICK = "--benchmark-min-rounds=2", "--benchmark-max-time=0.001", "--benchmark-warmup=off"


@pytest.fixture
def inner_pytest(pytester, monkeypatch) -> Callable[..., Any]:
    """Run a text as a file of tests, in this process; the project's plugin is found by its entry point."""
    from nx_backend import environment

    folder = pytester.mkdir("installed")
    environment(folder)
    for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_XDIST_WORKER"):  # in a worker nothing would be timed
        monkeypatch.delenv(name, raising=False)
    pytester.syspathinsert(folder)

    def run(text: str, *options: str, quick: tuple[str, ...] = QUICK) -> Any:
        pytester.makepyfile(test_mine=text)
        kept = KeptModules()
        found = pytester.runpytest_inprocess("-p", "no:cacheprovider", *quick, *options, plugins=[kept])
        sys.modules.update({name: module for name, module in kept.modules.items() if name not in sys.modules})
        return found

    return run


class KeptModules:
    """What a run has imported, but for its tests: pytester drops it, and no library is to be imported twice."""

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}

    def pytest_sessionfinish(self) -> None:
        self.modules = {name: module for name, module in sys.modules.items() if name != "test_mine"}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One test runs with all its parameters in one worker, and a file whose tests share much as a whole, so that
    kernels are compiled once; in the order of files. The long run spends its time on examples, and shares them out."""
    from xdist.scheduler import LoadScopeScheduling

    class ByTest(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            test = nodeid.partition("[")[0]
            file, name = test.partition("::")[0], test.partition(".py")[0].rpartition("/")[2]
            ordinary = settings.get_current_profile_name() == "ci" and chosen() == CPU
            if name == "test_operators" or ordinary and name in WHOLE:
                return "oracles" if ordinary and name in ORACLES else file
            return nodeid if "GBGPU_TEST_DEVICES" in os.environ else test  # GPU kernels are shared on disk

    config.option.loadscopereorder = False
    return ByTest(config, log)


# ---------------------------------------------------------------- how many random statements ran

_elsewhere: Counter[str] = Counter()  # in the processes of xdist


def _ran() -> Counter[str]:
    """Statements by devices and operation, "cpu:3: mxm"; nothing if the oracle was not used."""
    return sys.modules["oracle"].RAN if "oracle" in sys.modules else Counter()


def pytest_sessionfinish(session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["statements"] = dict(_ran())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    _elsewhere.update(getattr(node, "workeroutput", {}).get("statements", {}))


def pytest_terminal_summary(terminalreporter) -> None:
    counts = _elsewhere + _ran()
    for spec in sorted({name.partition(": ")[0] for name in counts}):
        mine = {name.partition(": ")[2]: count for name, count in sorted(counts.items()) if name.startswith(spec)}
        parts = ", ".join(f"{op} {count}" for op, count in mine.items())
        terminalreporter.write_line(f"{sum(mine.values())} statements as python-graphblas on {spec}: {parts}")
    if "instances" in sys.modules:
        terminalreporter.write_line(f"{len(sys.modules['instances'].USED)} kernels")
