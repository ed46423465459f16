"""Several processes as one session: each test starts `mpiexec -n R python ranked.py ...` and looks at how it ends."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gbgpu as gb
from algos.runs import ALGORITHMS
from gbgpu.distribute import ranks, world

HERE = Path(__file__).resolve().parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")
long = pytest.mark.skipif(os.environ.get("GBGPU_TEST_PROFILE") != "long", reason="the long run has it")
# Files whose tests mean the same on every rank, and name no path or partition of their own
WHOLE = "algos battery language errors transposed chains regressions operators"

pytestmark = pytest.mark.skipif(not MPIEXEC.exists(), reason="mpiexec comes with gbgpu[mpi]")


def mpiexec(count: int, *command: str, seconds: float = 120, **environment: str) -> subprocess.CompletedProcess:
    """A run that is over in time, whatever came of it. Kernels are not compiled: they are those of small objects."""
    paths = os.pathsep.join([str(HERE.parent), str(HERE)])
    given = os.environ | {"PYTHONPATH": paths} | environment
    line = [str(MPIEXEC), "-n", str(count), sys.executable, *command]
    return subprocess.run(line, env=given, cwd=HERE.parent, text=True, capture_output=True, timeout=seconds)


def ranked(count: int, *arguments: str, **more) -> str:
    """What a function of ranked.py printed, which must have gone well on every rank."""
    done = mpiexec(count, str(HERE / "ranked.py"), *arguments, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_three_ranks():
    """Blocks, answers and errors; algorithms; random statements with buffers that go as those of GPUs do, and of ranks
    with unlike devices. Ranks take longer to begin than to do any of it."""
    names = "algorithms", "cpu:1,auto", "bfs", "pagerank", "components", "triangles"
    statements = "statements", "3", "cpu:2+,cpu:1|cpu:3|cpu:2,cpu:1!", "mixed", "products"
    said = ranked(3, "session", "+", *names, "+", "numbers", "+", "direct", "+", *statements).splitlines()
    assert said[:4] == ["a session", "4 algorithms", "numbers", "direct"] and int(said[4].split()[0]) > 40


def test_two_ranks():
    """Random statements, also while rows move, fixpoints with values of 1, 2, 4 and 8 bytes, products whose delegates
    are apart, and rows that move by observed times."""
    others = "fixpoints", "cpu:2", "min_plus", "max_min", "band_bor", "lor_land", "+", "delegates", "cpu:2"
    moving = "moving", "3", "cpu:2", "mixed", "+", "repartitioning", "cpu:2"
    done = ranked(2, "statements", "4", "cpu:2", "mixed", "+", *others, "+", *moving).splitlines()
    statements, fixpoints, delegates, more, moves = done
    assert int(statements.split()[0]) > 10 and int(delegates.split()[0]) > 10_000 and fixpoints == "7 fixpoints"
    assert int(more.split()[0]) > int(statements.split()[0]) and int(moves.split()[0]) >= 2


# Graphs on which kernels are compiled, by how many ranks. The ordinary run has algorithms whose kernels other tests
# compile too, and few that take hundreds of rounds.
LARGE = {
    2: "PGPgiantcompo=bfs,sssp,pagerank,components,strong,triangles,cores,independent rmat:15=bfs luxembourg_osm=sssp",
    3: "PGPgiantcompo=sssp,components rmat:15=bfs,pagerank luxembourg_osm=sssp",
}
EVERY = "PGPgiantcompo=all", "rmat:15=all", "luxembourg_osm=all", "grid:100=all"


@pytest.mark.parametrize("count", LARGE)
def test_graphs_that_are_large_enough_for_compiled_kernels(count):
    graphs = LARGE[count].split()
    said = ranked(count, "large", "cpu:1", *graphs, seconds=300)
    names = sum(len(graph.partition("=")[2].split(",")) - graph.endswith("=") for graph in graphs)
    assert said == f"{names + len(graphs) * 9} results\n"


@long
@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_all_algorithms_on_large_graphs(count):
    said = ranked(count, "large", "cpu:1", *EVERY, seconds=3600)
    assert said == f"{len(EVERY) * (len(ALGORITHMS) + 9)} results\n"


def test_ranks_that_are_bound_to_cores_take_the_gpus_in_turn(monkeypatch):
    """As Open MPI binds two: each has all of its cores, and one of the GPUs that both see."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(ranks, "cores", lambda: [4, 5])
    others = [(("here", "0,1"), ("here", [0, 1])), (("there", "0,1"), ("there", [4, 5]))]
    monkeypatch.setattr(ranks.Ranks, "gathered", lambda self, mine, what: [*others, mine])
    last = object.__new__(ranks.Ranks)
    last.rank, last._world = 2, SimpleNamespace(mpi=SimpleNamespace(Get_processor_name=lambda: "here"))
    assert last.beside() == ((1, 2), (0, 1))


LOADING = "generated + texts 30 + together + writing", "collective + parts + binary + room"  # on two ranks, on three


@pytest.mark.few(1)
@pytest.mark.parametrize(("count", "calls"), [(2, LOADING[0]), (3, LOADING[1])])
def test_building_generating_reading_and_writing_together(count, calls):
    """What ranks do a part of each is what one process does."""
    assert len(ranked(count, *calls.split()).splitlines()) == calls.count("+") + 1


@long
@pytest.mark.parametrize(("count", "calls"), [(3, LOADING[0]), (2, LOADING[1]), (5, " + ".join(LOADING))])
def test_the_same_on_other_numbers_of_ranks(count, calls):
    assert len(ranked(count, *calls.split(), seconds=600).splitlines()) == calls.count("+") + 1


@long
@pytest.mark.parametrize("count", [2, 3])
def test_many_texts(count):
    assert int(ranked(count, "texts", "2000", seconds=600).split()[0]) > 500


def failed(count: int, how: str, at: int = 3, **environment: str) -> str:
    """What is said of a rank that fails at its statement number `at`. The others would wait for it for ever."""
    done = mpiexec(count, str(HERE / "ranked.py"), "failing", how, str(at), **environment)
    assert done.returncode != 0
    return done.stdout + done.stderr


def test_a_rank_that_raises_ends_all():
    said = failed(2, "raise")
    assert "ValueError: boom" in said and "rank 1 of 2" in said


BEFORE = {  # what one rank does where others begin a session, and what is told
    "rank and open('/none/there'); gb.init('cpu:1')": "rank 1 of 2 on .* raised FileNotFoundError",
    "gb.init('cpu:1', *['no partition'] * rank)": "rank 1 of 2 on .* raised TypeError",
    "gb.init('cpu:1'); rank and sys.exit(); gb.init('cpu:2')": "rank 1 has ended, while rank 0 waits",
    "gb.init('cpu:1'); x = gb.Vector(int, 9); rank and gb.init('cpu:2'); x.reduce('plus').new().value":
        "all ranks at the same place.*'gb.init'",
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("script", BEFORE)
def test_a_rank_that_fails_where_sessions_begin_ends_all(script):
    begin = "import os, sys; import gbgpu as gb; rank = int(os.environ['PMI_RANK']); "
    done = mpiexec(2, "-c", begin + script, seconds=30)
    assert done.returncode and re.search(BEFORE[script], done.stderr, re.S), done.stderr


ALIKE = " given binary.plus[INT64], 1"
OTHER = {  # statements that are not those of all ranks, or are given other things, and what is told where these meet
    "x = gb.Vector.from_scalar(1, 9); x.reduce('max' if rank else 'plus').new(); x.to_coo()":
        ("reduce into INT64 () given monoid.plus[INT64], False", "reduce into INT64 () given monoid.max[INT64], False"),
    "x = gb.Vector.from_scalar(1, 9); x(x.S if rank else x.V) << x + 1; x.reduce().new().value":
        (f"apply into INT64 (9,) through a mask .V{ALIKE}", f"apply into INT64 (9,) through a mask .S{ALIKE}"),
    "x = gb.Vector.from_scalar(1, 9); x << x + rank; x.nvals; x.to_coo()":
        ("apply into INT64 (9,) given binary.plus[INT64], 0", f"apply into INT64 (9,){ALIKE}"),
    "gb.Vector.from_coo([rank, 5], [1, 2], size=9).to_coo()": ("a new object Vector INT64 (9,)",) * 2,
    "x = gb.Vector.from_dense([1] * (9 + rank)); x.reduce().new().value":
        ("a new object Vector INT64 (9,)", "a new object Vector INT64 (10,)"),
    "gb.Vector.from_dense([1, 2 + rank]).reduce().new().value": ("a new object Vector INT64 (2,)",) * 2,
    "gb.Matrix.from_csr([0, 1, 2], [rank, 1]).to_coo()": ("a new object Matrix FP64 (2, 2)",) * 2,
    "x = gb.Vector.from_scalar(1, 9); x[[rank, 7]] << 3; x.to_coo()": ("fill into INT64 (9,)",) * 2,
    "x = gb.Vector.from_scalar(1, 9); x[[2 + rank, 7]].new().to_coo()": ("extract into INT64 (2,)",) * 2,
    "x = gb.Vector.from_scalar(1, 9); x[rank].value": ("one value given 0", "one value given 1"),
    "x = gb.Vector.from_scalar(1, 9); x.apply(lambda a: a * (2 + rank)).new().to_coo()":
        ("apply into INT64 (9,)",) * 2,
    "s = gb.Scalar.from_value(3 + rank); x = gb.Vector.from_scalar(1, 9); x << x * s; x.to_coo()":
        ("apply into INT64 (9,) given binary.times[INT64], 3", "apply into INT64 (9,) given binary.times[INT64], 4"),
    "gb.io.rmat(5, 4, seed=rank)": ("a new graph rmat 0 32 128", "a new graph rmat 1 32 128"),
    "gb.io.uniform(32, 3, seed=1, weights=(1, 5 + rank))": ("a new graph uniform 1 32 96",) * 2,
    "x = gb.Vector.from_scalar(1, 9); [x << x + 1 for _ in range(99 + rank)]; x.reduce().new().value":
        ("reduce into INT64 () given monoid.plus[INT64], False", f"apply into INT64 (9,){ALIKE}"),
    "x = gb.Vector(float if rank else int, 9); [x << x + 1 for _ in range(99)]; x.reduce().new().value":
        ("apply into INT64 (9,)", "apply into FP64 (9,)"),
}  # fmt: skip


def told_apart(script: str, **environment: str) -> re.Match | None:
    """What the first rank says of itself and of the other one."""
    begin = "import gbgpu as gb; gb.init('cpu:1'); rank = gb.rank(); "
    done = mpiexec(2, "-c", begin + script, seconds=60, **environment)
    assert bool(done.returncode) == ("the same statements on all ranks; came" in done.stderr), done.stderr
    return re.search("the same statements on all ranks; came rank 0 at '(.*?)', rank 1 at '(.*?)'", done.stderr)


@pytest.mark.parametrize("script", [pytest.param(each, marks=long if i > 3 else ()) for i, each in enumerate(OTHER)])
def test_ranks_that_carry_out_other_statements_are_told(script):
    found = told_apart(script)
    assert found and found[1] != found[2]
    assert all(map(str.startswith, found.groups(), OTHER[script])), found.groups()


def test_what_ranks_are_given_is_not_compared_where_nobody_wants_it():
    assert told_apart("gb.Vector.from_dense([1, 2 + rank]).reduce().new().value", GBGPU_RANK_CHECKS="0") is None


GIVEN = [[1, 2], [2, 1], [1.0, 2.0], [True, 2], ["1", 2], [[1], 2], [range(3)], [range(4)], [np.arange(3)],
         [np.arange(4)], [np.arange(3.0)], [np.arange(6)], [np.arange(6).reshape(2, 3)], [np.arange(12)[::2]],
         [-0.0], [0.0], [{"a": 1}], [{"a": 2}], [b"a"], [np.float32(0.1)], [0.1]]  # fmt: skip


def test_checksums_tell_what_ranks_are_given_apart():
    assert len({ranks.checksum(given) for given in GIVEN}) == len(GIVEN)
    assert [ranks.checksum(given) for given in copy.deepcopy(GIVEN)] == [ranks.checksum(given) for given in GIVEN]
    assert ranks.checksum([np.arange(12)[::2]]) == ranks.checksum([np.arange(0, 12, 2)])
    assert ranks.checksum([None, gb.binary.plus, object()]) == 0


FUNCTIONS = {  # of one name, by what they do with a number that differs
    "unary": lambda k: gb.unary.register_anonymous(lambda a: a * k, "g"),
    "binary": lambda k: gb.binary.register_anonymous([lambda a, b: a + b, lambda a, b: a * b][k], "g"),
    "indexunary": lambda k: gb.indexunary.register_anonymous(lambda a, i, j, t: a + k, "g"),
    "select": lambda k: gb.select.register_anonymous(lambda a, i, j, t: a > k, "g"),
}
CALLS = {  # statements that are given a function of a name, or a scalar
    "apply": lambda x, A, k: x << x.apply(FUNCTIONS["unary"](k)),
    "intersection": lambda x, A, k: x << x.ewise_mult(x, FUNCTIONS["binary"](k)),
    "accumulator": lambda x, A, k: x(FUNCTIONS["binary"](k)) << x,
    "monoid": lambda x, A, k: x << x.ewise_add(x, gb.monoid.register_anonymous(FUNCTIONS["binary"](k), k)),
    "semiring": lambda x, A, k: x << gb.semiring.register_anonymous(gb.monoid.plus, FUNCTIONS["binary"](k))(A @ x),
    "places": lambda x, A, k: x << FUNCTIONS["indexunary"](k)(x, 0),
    "select": lambda x, A, k: x << FUNCTIONS["select"](k)(x, 0),
    "scalar": lambda x, A, k: x << x * gb.Scalar.from_value(3 + k),
    "element": lambda x, A, k: x[2].update(gb.Scalar.from_value(3 + k)),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_statements_are_given_tells_functions_of_one_name_and_scalars_apart(call):
    x, A = gb.Vector.from_dense(np.arange(9)), gb.Matrix.from_coo([1, 2], [3, 4], [5, 6], nrows=9, ncols=9)
    one, same, other = (ranks.checksum(CALLS[call](x, A, k).given) for k in (0, 0, 1))
    assert one == same != other


def test_mpi_may_be_ended_by_the_program():
    done = mpiexec(2, "-c", "import gbgpu as gb; from mpi4py import MPI; gb.init('cpu:1'); MPI.Finalize()", seconds=30)
    assert done.returncode == 0, done.stderr


def test_ranks_that_hold_different_things_are_told():
    said = failed(2, "other")
    assert "rank 0 at 'apply into INT64 (100,) given binary.plus[INT64], 1', rank 1 at 'a new object Vector" in said
    said = failed(2, "iso", GBGPU_RANK_CHECKS="0")
    assert "bytes of what a push reached for rank" in said and "every rank holds the same" in said


@long
@pytest.mark.parametrize(
    "how, words",
    [
        ("exit", "rank 2 has ended, while rank"),
        ("apart", "rank 0 at 'the entries of a vector', rank 1 at 'the entries of a vector', rank 2 at 'a reduction'"),
        ("caught", "rank 2 broke off with ZeroDivisionError"),
    ],
)
def test_a_rank_that_goes_its_own_way_ends_all(how, words):
    assert words in failed(3, how)


@long
def test_a_rank_that_is_killed_ends_all():
    for seed in range(50):
        assert "KILLED" in failed(3, "kill", random.Random(seed).randrange(60)).upper()


@long
@pytest.mark.parametrize("count", [2, 3])
def test_every_kind_of_statement(count):
    assert int(ranked(count, "statements", "60", "cpu:1,cpu:2|cpu:1,cpu:1+,cpu:2!", seconds=1800).split()[0]) > 1000
    assert ranked(count, "fixpoints", "cpu:1,cpu:2", seconds=1800) == "26 fixpoints\n"


@long
@pytest.mark.parametrize("count", [2, 3])
def test_algorithms_on_several_devices_and_whole(count):
    assert ranked(count, "algorithms", "cpu:2,auto", seconds=300) == f"{len(ALGORITHMS)} algorithms\n"


@long
def test_files():
    assert ranked(3, "files", "A.mtx", "A.gbgpu", "A.gr.gz", "A.npz", "A.txt") == "5 files\n"


@long
def test_the_command_tells_things_once(tmp_path):
    levels = tmp_path / "levels.csv"
    command = "-m", "algos.cli", "run", "bfs", "rmat:6", "--devices", "cpu:1", "--verify", "--json", "--output", levels
    done = mpiexec(2, *map(str, command))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verified"] and told["devices"] == ["0/cpu:0", "1/cpu:0"]
    assert len(levels.read_text().splitlines()) > told["result"]["reached"] > 1


@long
@pytest.mark.parametrize("name", WHOLE.split())
def test_whole_files_of_tests(name):
    """The tests that others run on one process, on two."""
    command = "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/test_{name}.py"
    ours = {"GBGPU_TEST_DEVICES": "cpu:1 cpu:2", "GBGPU_TEST_PROFILE": "ci", "PYTEST_XDIST_WORKER": ""}
    done = mpiexec(2, *command, seconds=1800, **ours)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@long
def test_each_process_may_have_a_session_of_its_own():
    script = "import gbgpu as gb; print(gb.init('cpu:2'))"
    done = mpiexec(2, "-c", script, GBGPU_RANKS="0")
    assert done.stdout == "Session(cpu:0, cpu:1)\n" * 2, done.stderr


def no_module(name):
    raise ImportError(name)


class Alone:
    """An MPI that knows of one process."""

    rank, size = 0, 1

    def Dup(self):
        return self


@pytest.mark.parametrize(
    "imported, text",
    [(no_module, "mpi4py.*pip install"), (lambda name: SimpleNamespace(COMM_WORLD=Alone()), "3 ranks.*different MPIs")],
)
def test_what_is_missing_is_said(monkeypatch, imported, text):
    monkeypatch.setattr(world, "imported", imported)
    monkeypatch.setenv("PMI_SIZE", "3")
    world.world.cache_clear()
    with pytest.raises(gb.exceptions.DeviceError, match=text):
        gb.init("cpu:1", ranks=True)
    world.world.cache_clear()


@pytest.mark.parametrize(
    "environment, expected",
    [({}, False), ({"PMI_SIZE": "1"}, False), ({"PMI_SIZE": "3"}, True), ({"OMPI_COMM_WORLD_SIZE": "2"}, True)],
)
def test_how_ranks_are_recognised(monkeypatch, environment, expected):
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(gb.settings, "ranks", "auto")
    assert world.wanted() is expected
    monkeypatch.setattr(gb.settings, "ranks", "0")
    assert not world.wanted()
    monkeypatch.setattr(gb.settings, "ranks", "1")
    assert world.wanted()
