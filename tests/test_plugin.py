"""The plugin of pytest: suites of users that run in this process, with the plugin found by its entry point."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from nx_backend import ROOT, environment

import algos
import gbgpu as gb
from gbgpu import testing, timing
from gbgpu.errors import InvalidValue
from gbgpu.trace import counters

SEARCH = """
    import algos, pytest
    from algos import verify

    @pytest.mark.gb_target(milliseconds={most})
    def test_bfs(gb_devices, gb_graph, gb_benchmark):
        A = gb_graph("rmat", 6, 4)
        gb_benchmark(algos.bfs, A, 0, check=lambda found: verify.bfs(A, 0, *found))
"""


@pytest.fixture
def suite(inner_pytest, first):
    return inner_pytest


def test_fixtures_are_found_by_the_entry_point(suite):
    found = suite(SEARCH.format(most=1e9))
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["*test_bfs?auto?: met: <= 1e+09 ms; came * ms"])


def test_a_start_of_pytest_imports_nothing_of_gbgpu(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test_other(): assert not {'gbgpu', 'algos', 'cupy', 'llvmlite'} & set(sys.modules)\n"
        "def test_the_plugin_is_there(request): assert request.config.getoption('gb_devices') == 'auto'\n"
    )
    plugins = ["-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:benchmark", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", str(tmp_path)]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_devices_of_the_command_line(suite):
    text = """
        import gbgpu as gb, pytest

        def test_mine(gb_devices):
            assert gb.settings.session().spec == gb_devices

        @pytest.mark.parametrize("gb_devices", ["cpu:5"], indirect=True)
        def test_own(gb_devices):
            assert len(gb.device_info()) == 5
    """
    found = suite(text, "--gb-devices", "cpu:1 cpu:3", "-v")
    found.assert_outcomes(passed=3)
    found.stdout.fnmatch_lines(["*test_mine?cpu:1? PASSED*", "*test_mine?cpu:3? PASSED*", "*test_own?cpu:5? PASSED*"])


@pytest.mark.parametrize("devices, told", [("cpu:0", "*expected cpu:k with k from 1 to 1024; came 'cpu:0'*"),
                                           ("gpu", "*expected a device string such as*; came 'gpu'*")])
def test_wrong_devices(suite, devices, told):
    found = suite("def test_mine(gb_devices): pass", "--gb-devices", devices)
    found.assert_outcomes(errors=1)
    found.stdout.fnmatch_lines([told])


def test_no_devices(suite):
    found = suite("def test_mine(): pass", "--gb-devices", " ")
    found.stderr.fnmatch_lines(["*--gb-devices: expected device strings*"])


@pytest.mark.parametrize("options, outcomes", [((), {"passed": 1}), (("--gb-enforce",), {"failed": 1})])
def test_a_missed_target(suite, options, outcomes):
    found = suite(SEARCH.format(most=1e-9), *options)
    found.assert_outcomes(**outcomes)
    found.stdout.fnmatch_lines(["*missed: <= 1e-09 ms; came * ms"])


PEERS = """
    import time, pytest

    @pytest.mark.gb_target(ratio={ratio})
    class TestPeers:
        def test_slow(self, beside):
            found = beside(lambda: None, {{"slow": lambda: time.sleep(1e-3), "slower": lambda: time.sleep(0.05)}}, rounds=2)
            {then}

        @pytest.mark.gb_target(milliseconds=1e9)
        def test_both(self, beside):
            beside(lambda: None, {{"slow": lambda: time.sleep(1e-3)}}, rounds=1)
"""  # noqa: E501


def test_a_peer_by_turns(suite):
    then = "assert found and found.peer == 'slow' and set(found.peers) == {'slow', 'slower'} and found.ratio > 1"
    found = suite(PEERS.format(ratio=1, then=then), "--gb-enforce")
    found.assert_outcomes(passed=2)
    found.stdout.fnmatch_lines(["*met: >= 1 x as fast as the fastest peer; came *", "*test_both: met: <= *; met: >= *"])


def test_a_target_may_name_its_peer(suite):
    then = "assert found.peer == 'slow'"
    of_one = PEERS.replace("(ratio={ratio})", "(ratio={ratio}, of='slower')")
    found = suite(of_one.format(ratio=1, then=then), "--gb-enforce")
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(["*gb_target not timed: >= 1 x as fast as slower; came peers 'slow'"])
    found.stdout.fnmatch_lines(["*test_slow: met: >= 1 x as fast as slower; came * x"])


def test_a_missed_ratio_fails_where_targets_are_enforced(suite):
    suite(PEERS.format(ratio=1e9, then=""), "--gb-enforce").assert_outcomes(failed=2)


def test_what_was_not_timed_meets_no_target(suite):
    found = suite(PEERS.format(ratio=1, then="assert found is None"), "--benchmark-disable")
    found.assert_outcomes(passed=2, warnings=0)
    found.stdout.fnmatch_lines(["*not timed: >= 1 x*"])
    suite(SEARCH.format(most=1e9), "--benchmark-disable", "--gb-enforce").assert_outcomes(failed=1)


def test_without_times_all_runs_once(suite):
    """Statements that change what they write leave the same on both sides."""
    text = """
        def test_mine(beside):
            ours, theirs = [], []
            assert beside(lambda: ours.append(1), {"peer": lambda: theirs.append(1)}, rounds=5) is None
            assert len(ours) == len(theirs) == 1
    """
    suite(text, "--benchmark-disable").assert_outcomes(passed=1)


@pytest.mark.parametrize("target", ["", "5", "seconds=1", "milliseconds=0", "ratio='2'", "of='SciPy'"])
def test_targets_that_say_nothing(suite, target):
    found = suite(f"import pytest\n@pytest.mark.gb_target({target})\ndef test_mine(): pass")
    found.stderr.fnmatch_lines([f"*test_mine: expected gb_target(milliseconds=..., *; came gb_target({target})"])


def test_without_pytest_benchmark(suite):
    found = suite("def test_mine(gb_benchmark): pass", "-p", "no:benchmark", quick=())
    found.stdout.fnmatch_lines(["*expected pytest-benchmark; came none. Hint: pip install pytest-benchmark*"])


def test_extra_info(suite, pytester):
    text = """
        import algos, json

        def test_mine(gb_devices, gb_graph, gb_benchmark):
            A = gb_graph("rmat", 6, edge_factor=4, seed=7)
            gb_benchmark(lambda: algos.pagerank(A, tol=0, max_iterations=3))
            open("info.json", "w").write(json.dumps(gb_benchmark.extra_info))
    """
    suite(text, "--gb-devices", "cpu:3").assert_outcomes(passed=1)
    info = json.loads((pytester.path / "info.json").read_text())
    assert info["devices"] == "cpu:0, cpu:1, cpu:2" and len(info["models"]) == 1
    assert info["compiled"] is not gb.settings.interpret and info["settled"] is True
    assert info["warm_calls"] >= 2 and info["first_call_ms"] > 0 and info["host_ms"] > 0
    assert info["statements"] > 0 and info["bytes_between_devices"] > 0 and info["launches"] == info["host_reads"] == 0
    assert info["host_peak_bytes"] > 1 << 20 and info["device_bytes"] == {}
    assert info["versions"]["gbgpu"] == gb.__version__ and {"numpy", "llvmlite"} <= set(info["versions"])
    assert info["python"].startswith("3.")
    (graph,) = info["graphs"]
    assert (graph["graph"], graph["scale"], graph["edge_factor"], graph["seed"]) == ("rmat", 6, 4, 7)


# ---------------------------------------------------------------- graphs

GRAPHS = {
    "rmat": (5, 4, {"weights": (1, 9), "dtype": "FP32", "symmetric": False}),
    "uniform": (100, 4, {}),
    "grid_road": (9, 0.5, {"weights": (1, 9)}),
}


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """The names of generators that have run since."""
    names: list[str] = []
    for name, generator in testing.GENERATORS.items():
        def noted(*args, _name=name, _generator=generator, **options):
            names.append(_name)
            return _generator(*args, **options)

        noted.__signature__ = inspect.signature(generator)
        monkeypatch.setitem(testing.GENERATORS, name, noted)
    return names


def parts(A: gb.Matrix) -> list:
    return [A.nrows, A.ncols, A.dtype.name, *(array.tobytes() for array in A.to_csr())]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_kept_graph_is_the_same(devices, store, made, name):
    first, second, options = GRAPHS[name]
    graph = testing.Graphs()
    new, kept = (graph(name, first, second, **options) for _ in range(2))
    assert made == [name] and graph.asked[0] == graph.asked[1] and graph.asked[0]["seed"] == 1
    plain = getattr(gb.io, name)(first, second, seed=1, **options)
    assert parts(new) == parts(kept) == parts(plain)
    assert graph(name, first, second, seed=2, **options).nrows == plain.nrows and made == [name] * 2


@pytest.mark.parametrize("place", [0, 70, -1])
def test_a_damaged_file_is_made_anew(first, store, made, place):
    right = parts(testing.Graphs()("rmat", 5, 4))
    (path,) = (store / "graphs").iterdir()
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[place] ^= 1
    for content in (bytes(damaged), whole[: len(whole) // 2], b""):
        path.write_bytes(content)
        assert parts(testing.Graphs()("rmat", 5, 4)) == right
        assert path.read_bytes() == whole
    assert made == ["rmat"] * 4


def test_a_file_by_name(first, store, tmp_path):
    rows, cols = np.array([0, 1]), np.array([1, 2])
    gb.io.write(tmp_path / "mine.mtx", gb.Matrix.from_coo(rows, cols, [1.5, 2.5], nrows=3, ncols=3))
    graph = testing.Graphs(tmp_path)
    new, kept = graph("mine.mtx"), graph("mine.mtx")
    assert parts(new) == parts(kept) == parts(gb.io.read(tmp_path / "mine.mtx"))
    gb.io.write(tmp_path / "mine.mtx", gb.Matrix.from_coo(rows, cols, [1.5, 3.5], nrows=3, ncols=3))
    assert graph("mine.mtx")[1, 2].new().value == 3.5
    assert len({asked["sha256"] for asked in graph.asked}) == 2


def test_the_oldest_graphs_go_first(first, store, monkeypatch):
    monkeypatch.setattr(gb.settings, "cache_megabytes", 0)
    graph = testing.Graphs()
    for seed in (1, 2):
        graph("rmat", 5, 4, seed=seed)
    assert len([*(store / "graphs").iterdir()]) == 1


def test_without_a_folder_graphs_are_made(first, monkeypatch, made):
    monkeypatch.setattr(gb.settings, "cache_directory", lambda: None)
    assert parts(testing.Graphs()("rmat", 5, 4)) == parts(testing.Graphs()("rmat", 5, 4))
    assert made == ["rmat"] * 2


def test_unknown_graphs(first, tmp_path):
    expected = r"expected a generator \(rmat, uniform, grid_road\) or a file in .*; came 'rmatt'"
    with pytest.raises(InvalidValue, match=expected):
        testing.Graphs(tmp_path)("rmatt", 5)
    hint = "Hint: parameters are those of gb.io.rmat: scale, edge_factor, "
    with pytest.raises(TypeError, match=f"rmat: .*'sides'. {hint}"):
        testing.Graphs()("rmat", 5, sides=5)
    gb.io.write(tmp_path / "vector.gbgpu", gb.Vector.from_dense(np.ones(3)))
    with pytest.raises(InvalidValue, match=r"vector.gbgpu: expected a graph, a matrix; came a vector"):
        testing.Graphs(tmp_path)("vector.gbgpu")


# ---------------------------------------------------------------- warm calls

def test_a_warm_call_goes_as_the_next_ones(devices):
    """The rounds of a loop go by statements at first, are counted, and then captured: no later call has fewer."""
    A, begun = gb.io.rmat(7, 4, seed=1), counters.statements
    warm = timing.warmed(lambda: algos.connected_components(A))
    before, watched, each = counters.statements - begun, timing.Watched(), []
    for _ in range(12):
        begun = counters.statements
        found = algos.connected_components(A)
        each.append(counters.statements - begun)
    captured = not devices.partition.startswith("degree_separated")
    assert len(set(each)) == 1 and (before > warm.calls * each[0]) is captured and watched.settled(warm)
    assert [x.tobytes() for x in warm.result.to_coo()] == [x.tobytes() for x in found.to_coo()]


def test_warming_waits_for_what_is_still_counted(first, monkeypatch):
    calls = []

    def call() -> None:
        calls.append(None)
        counters.counted += len(calls) < 5

    assert timing.warmed(call).calls == 5
    monkeypatch.setattr(timing, "WARMING", -1)
    calls.clear()
    assert timing.warmed(call).calls == 2


def test_calls_that_capture_anew_each_time_are_warm_once_they_do_so_as_often(first):
    calls = []

    def call() -> None:
        calls.append(None)
        counters.captured += 2 if len(calls) > 3 else 5 - len(calls)

    warm = timing.warmed(call)
    assert (warm.calls, warm.anew, warm.steady) == (5, 2, True)
    watched = timing.Watched()
    call()
    assert watched.settled(warm)
    counters.counted += 1
    assert not watched.settled(warm)


def test_what_is_counted_for_objects_ends_with_them(first):
    kept, calls = gb.Matrix.from_coo([0], [1], 1), []

    def call() -> None:
        calls.append(None)
        counters.count(kept._store if len(calls) < 4 else gb.Matrix.from_coo([0], [1], 1)._store)

    assert timing.warmed(call).calls == 4


def test_devices_are_synchronized_inside(devices, monkeypatch):
    waited = []
    for device in gb.settings.session().devices:
        monkeypatch.setattr(type(device), "synchronize", lambda self: waited.append(self.name))
    assert timing.synchronized(lambda: 3)() == 3
    assert waited == [device.name for device in gb.settings.session().devices]


def test_timeit_prints_a_line(devices, capsys):
    A = gb.io.rmat(6, 4, seed=1)
    found = gb.timeit(lambda: gb.semiring.plus_times(A @ A).new(), seconds=0.005)
    assert capsys.readouterr().out == f"{found}\n"
    assert found.calls >= timing.FEWEST and found.seconds > 0 and found.first > 0 and found.warm_calls >= 2
    kernels = "interpreted" if gb.settings.interpret else "compiled"
    assert "calls; first call " in str(found) and f"; {kernels} kernels; {timing.devices()}" in str(found)


def test_timeit_says_what_it_was_not_given(first):
    with pytest.raises(TypeError, match="expected a callable without arguments; came int"):
        gb.timeit(3)
    with pytest.raises(ValueError, match="expected seconds above 0; came 0"):
        gb.timeit(lambda: None, 0)


def test_readable_seconds():
    assert [timing.readable(x) for x in (12.34, 0.01234, 1.5e-6)] == ["12.3 s", "12.3 ms", "1.5 us"]


def test_the_plugin_is_declared_where_it_is():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (plugin,) = project["project"]["entry-points"]["pytest11"].items()
    assert plugin[0] == plugin[1] and plugin[0] in project["tool"]["setuptools"]["py-modules"]
