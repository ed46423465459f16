"""The pytest plugin of gbgpu: options, the marker `gb_target`, and fixtures for benchmarks (docs/benchmarking.md).

pytest loads this file at the start of every run on a machine that has gbgpu. So it imports nothing of gbgpu before a
test asks for a fixture. What the fixtures do is in gbgpu/testing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gbgpu.testing import Benchmark, Graphs

MARKER = (
    "gb_target(milliseconds=None, ratio=None, of=None): what the benchmark of a test is to reach: its median at most, "
    "and how many times faster it is than the peer `of`, or the fastest one of `beside`"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gbgpu")
    spec = 'device strings, separated by spaces, on each of which tests with gb_devices run: "cpu:1 cpu:4 cuda:0-1"'
    group.addoption("--gb-devices", default="auto", metavar="DEVICES", help=f"{spec} (default: auto)")
    enforce = "fail tests that miss their gb_target, or do not time what it asks for"
    group.addoption("--gb-enforce", action="store_true", help=enforce)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if not config.getoption("gb_devices").split():
        raise pytest.UsageError("--gb-devices: expected device strings, such as 'cpu:4 cuda:0'; came none")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test runs on each set of devices, unless it names its own."""
    own = (mark.args[0] for mark in metafunc.definition.iter_markers("parametrize") if mark.args)
    if "gb_devices" in metafunc.fixturenames and not any("gb_devices" in names for names in own):
        metafunc.parametrize("gb_devices", metafunc.config.getoption("gb_devices").split(), indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Targets that say nothing are told of before tests run."""
    for item in items:
        for mark in item.iter_markers("gb_target"):
            if mark.args or not _tells(**mark.kwargs):
                came = ", ".join([*map(repr, mark.args), *(f"{name}={x!r}" for name, x in mark.kwargs.items())])
                expected = "gb_target(milliseconds=..., ratio=...), one or both, above 0, and of=, a peer's name"
                raise pytest.UsageError(f"{item.nodeid}: expected {expected}; came gb_target({came})")


def _tells(milliseconds: Any = None, ratio: Any = None, of: Any = None, **others: Any) -> bool:
    """Whether arguments of the marker name a target."""
    limits = [limit for limit in (milliseconds, ratio) if limit is not None]
    numbers = all(isinstance(limit, int | float) and limit > 0 for limit in limits)
    return bool(limits) and numbers and not others and (of is None or isinstance(of, str) and ratio is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if "gb_benchmark" in getattr(item, "fixturenames", ()):
        plugins = item.config.pluginmanager
        if not any(map(plugins.hasplugin, ("benchmark", "pytest_benchmark.plugin"))):
            pytest.fail("gb_benchmark: expected pytest-benchmark; came none. Hint: pip install pytest-benchmark", False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Compare a test that has passed with its targets."""
    found = yield
    targets: dict[str, Any] = {}
    for mark in item.iter_markers("gb_target"):  # those of the function come before those of its class
        targets = {**mark.kwargs, **targets}
    if targets:
        from gbgpu.testing import verdicts

        benchmark = getattr(item, "funcargs", {}).get("gb_benchmark")
        told = verdicts(benchmark, targets.get("milliseconds"), targets.get("ratio"), targets.get("of") or "")
        item.user_properties.append(("gb_target", "; ".join(map(str, told))))
        if benchmark is not None:
            benchmark.extra_info["targets"] = {verdict.target: verdict.met for verdict in told}
        missed = [str(verdict) for verdict in told if not verdict.met]
        if missed and item.config.getoption("gb_enforce"):
            pytest.fail(f"gb_target {'; '.join(missed)}", pytrace=False)
    return found


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for each test with a target."""
    lines = [
        f"{report.nodeid}: {text}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, text in report.user_properties
        if name == "gb_target"
    ]
    if lines:
        terminalreporter.section("targets of gb_target")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def gb_devices(request: pytest.FixtureRequest) -> str:
    """A session on the devices of `--gb-devices`, on each in turn; its device string."""
    import gbgpu as gb

    gb.init(request.param)
    return str(request.param)


@pytest.fixture
def gb_graph(request: pytest.FixtureRequest) -> Graphs:
    """gb_graph("rmat", 16), gb_graph("grid_road", 500), gb_graph("roads.mtx.gz"): a graph as a Matrix, kept on disk.

    Files are looked for in the current folder, in that of the test and in pytest's root folder.
    """
    from gbgpu.testing import Graphs

    return Graphs(request.path.parent, request.config.rootpath)


@pytest.fixture
def gb_benchmark(benchmark: Any, gb_graph: Graphs) -> Benchmark:
    """gb_benchmark(function, *args): time a call by pytest-benchmark, warm and with all devices synchronised.

    `check=`, called with the result outside the timed part, raises if it is wrong. `extra_info` has devices, bytes
    between devices, memory, host time, versions and graphs.
    """
    from gbgpu.testing import Benchmark

    return Benchmark(benchmark, gb_graph)


@pytest.fixture
def beside(gb_benchmark: Benchmark) -> Callable[..., Any]:
    """beside(call, {"SciPy": peer}): time a call and its peers by turns.

    Whatever else the machine does meets all of them.

    Keywords: `rounds`, `check`. Returns medians and the ratio, which are in `extra_info` too; None under
    --benchmark-disable.
    """
    return gb_benchmark.beside
