"""The `gbgpu` command: exit codes, what goes to stdout and stderr, files."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import gbgpu as gb
from algos import runs
from algos.cli import main
from algos.verify import VerificationError

PGP = str(Path(__file__).resolve().parent.parent / "data" / "PGPgiantcompo.mtx.gz")


@pytest.fixture
def call(capsys):
    """Run a command line on two devices: (exit code, stdout, stderr)."""

    def run(*words):
        on = ["--devices", "cpu:2"] if words and words[0] in ("run", "info") and "--devices" not in words else []
        try:
            code = main([*words, *on])
        except SystemExit as end:  # argparse
            code = end.code
        return code, *capsys.readouterr()

    return run


EXPECTED = {
    "bfs": {"reached": 10680},
    "sssp": {"reached": 10680},
    "pagerank": {"converged": True},
    "components": {"components": 1, "largest": 10680},
}


@pytest.mark.parametrize("algorithm", EXPECTED)
def test_run_as_json(call, algorithm):
    code, out, err = call("run", algorithm, PGP, "--verify", "--json", "--repeat", "2")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["algorithm"] == algorithm
    assert (told["vertices"], told["entries"], len(told["devices"])) == (10680, 48632, 2)
    assert told["verified"] is True
    assert told["failure"] is None
    assert len(told["seconds"]) == 2
    assert EXPECTED[algorithm].items() <= told["result"].items()
    if algorithm in ("bfs", "sssp"):
        assert told["source"] == 1143  # the highest degree, 205
    else:
        assert told["source"] is None


@pytest.mark.parametrize("algorithm", EXPECTED)
def test_run_for_people(call, algorithm):
    code, out, err = call("run", algorithm, "rmat:7:8:3:1-9", "--verify")
    assert (code, err) == (0, "")
    assert f"{algorithm} on rmat:7:8:3:1-9" in out
    assert "verified" in out
    assert len(out.split("\n")) < 24


def test_run_without_verify_says_nothing_of_it(call):
    code, out, _ = call("run", "bfs", "road:9", "--source", "3", "--json")
    told = json.loads(out)
    assert (code, told["verified"], told["source"]) == (0, None, 3)
    assert "verified" not in call("run", "bfs", "road:9")[1]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_failed_check_exits_with_1(call, monkeypatch, form):
    def fail(*_):
        raise VerificationError("check failed: some property (vertex 3)")

    monkeypatch.setitem(runs.ALGORITHMS, "bfs", replace(runs.ALGORITHMS["bfs"], verify=fail))
    code, out, err = call("run", "bfs", "road:9", "--verify", *form)
    assert (code, err) == (1, "gbgpu: check failed: some property (vertex 3)\n")
    assert "some property" in out
    if form:
        assert json.loads(out)["verified"] is False


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["sort"],
        ["run"],
        ["run", "bfs"],
        ["run", "sort", "road:9"],
        ["run", "bfs", "road:9", "--source", "x"],
        ["run", "bfs", "road:9", "--repeat", "0"],
        ["run", "bfs", "road:9", "--colour"],
        ["generate"],
        ["generate", "tree", "-o", "x.mtx"],
        ["generate", "rmat"],
        ["generate", "rmat", "-o", "x.mtx", "--side", "3"],
        ["generate", "rmat", "-o", "x.mtx", "--weights", "9-1"],
    ],
)
def test_usage_errors_exit_with_2(call, words):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert "usage: gbgpu" in err


BAD = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 one\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["bfs", "none.mtx"], "none.mtx"),
        (["bfs", "."], "directory"),
        (["bfs", "bad.mtx"], "line 3"),
        (["bfs", "flat.mtx"], "square"),
        (["bfs", "twice.mtx"], "dup_op"),
        (["bfs", "rmat:x"], "rmat:x"),
        (["bfs", "rmat:40"], "scale"),
        (["bfs", "rmat:4:4:1:9-1"], "weights"),
        (["bfs", "rmat:4:4:1:1-9:7"], "too many"),
        (["bfs", "road:9", "--source", "81"], "from 0 to 80"),
        (["bfs", "road:9", "--source=-1"], "from 0 to 80"),
        (["bfs", "road:0"], "no vertex"),
        (["sssp", "nan.mtx"], "NaN"),
        (["bfs", "road:9", "--devices", "abacus:3"], "abacus"),
        (["bfs", "road:9", "--trace", "none/trace.json"], "none/trace.json"),
    ],
)
def test_bad_input_exits_with_3_and_one_line(call, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    Path("bad.mtx").write_text(BAD)
    Path("flat.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "2 3 1\n1 1 1"))
    Path("twice.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "2 2 2\n1 1 1\n1 1 1"))
    Path("nan.mtx").write_text(BAD.replace("integer", "real").replace("one", "nan"))
    code, out, err = call("run", *words)
    assert (code, out) == (3, "")
    assert err.startswith("gbgpu: ")
    assert err.count("\n") == 1
    assert reason in err


def test_info(call):
    code, out, err = call("info")
    assert (code, err) == (0, "")
    assert "cpu:1" in out
    code, out, _ = call("info", "--json")
    told = json.loads(out)
    assert [device["name"] for device in told["devices"]] == ["cpu:0", "cpu:1"]
    assert {"gbgpu", "python", "numpy", "numba"} <= told["versions"].keys()


@pytest.mark.parametrize(
    ("kind", "options", "n"),
    [
        ("rmat", ["--scale", "6", "--edge-factor", "4"], 64),
        ("uniform", ["--scale", "6", "--edge-factor", "4"], 64),
        ("road", ["--side", "8", "--p", "0.9"], 64),
    ],
)
@pytest.mark.parametrize("weights", [None, "1-9"])
def test_generate_writes_what_run_makes_of_the_spec(call, devices, tmp_path, kind, options, n, weights):
    path = str(tmp_path / "graph.mtx.gz")
    extra = ["--weights", weights] if weights else []
    code, out, err = call("generate", kind, "-o", path, "--seed", "5", *options, *extra)
    assert (code, out) == (0, "")
    assert f"{n} vertices" in err
    gb.init("cpu:1")
    A = gb.io.mmread(path)
    assert A.dtype == ("INT64" if weights else "FP64")
    spec = ":".join([kind, options[1], options[3], "5", *([weights] if weights else [])])
    results = [json.loads(call("run", "sssp", graph, "--json")[1])["result"] for graph in (path, spec)]
    assert results[0] == results[1]


FORMS = ["A.mtx.gz", "A.gbgpu", "A.gr", "A.txt", "A.npz"]


@pytest.mark.parametrize("name", FORMS)
def test_convert_writes_what_run_reads(call, devices, tmp_path, name):
    spec, path = "rmat:6:4:3:1-9", str(tmp_path / name)
    code, out, err = call("convert", spec, path)
    assert (code, out) == (0, "")
    assert "64 vertices" in err
    again = str(tmp_path / "again.gbgpu")
    assert call("convert", path, again, "--dtype", "FP32")[0] == 0
    gb.init("cpu:1")
    A, B = gb.io.read(path), gb.io.read(again)
    assert (A.dtype, B.dtype) == ("INT64", "FP32")
    assert A.isequal(gb.io.rmat(6, 4, seed=3, weights=(1, 9)))
    assert B.isequal(A)
    results = [json.loads(call("run", "sssp", graph, "--json")[1])["result"] for graph in (path, again, spec)]
    assert results[0] == results[1] == results[2]


def test_convert_of_undirected_graphs(call, devices, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("A.txt").write_text("# Nodes: 4 Edges: 2\n0 1\n2 1\n")
    assert call("convert", "A.txt", "A.mtx", "--symmetric")[0] == 0
    assert Path("A.mtx").read_text() == (
        "%%MatrixMarket matrix coordinate pattern symmetric\n%gbgpu convert A.txt\n4 4 2\n2 1\n3 2\n"
    )
    assert call("convert", "A.mtx", "B.txt", "--symmetric")[0] == 0
    assert Path("B.txt").read_text() == "# Nodes: 4 Edges: 2\n# gbgpu convert A.mtx\n0 1\n1 2\n"
    for more, reached in (([], 1), (["--symmetric"], 3)):
        told = json.loads(call("run", "bfs", "B.txt", "--json", "--source", "2", *more)[1])
        assert told["result"]["reached"] == reached


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["A.mtx", "A.csv"], 3, "A.csv"),
        (["none.mtx", "A.gr"], 3, "none.mtx"),
        (["bad.gr", "A.mtx"], 3, "line 2"),
        (["bad.gbgpu", "A.mtx"], 3, "gbgpu"),
        (["v.gbgpu", "A.mtx"], 3, "vector"),
        (["flat.mtx", "A.txt"], 3, "square"),
        (["arc.mtx", "A.mtx", "--symmetric"], 3, "symmetric"),
        (["A.mtx", "none/A.gr"], 3, "none/A.gr"),
        (["A.mtx", "A.gr", "--dtype", "quaternion"], 2, "quaternion"),
        (["A.mtx"], 2, "usage"),
    ],
)
def test_convert_says_what_is_wrong(call, devices, tmp_path, monkeypatch, words, code, reason):
    monkeypatch.chdir(tmp_path)
    Path("A.mtx").write_text(BAD.replace("one", "1"))
    Path("arc.mtx").write_text(BAD.replace("1 1 one", "1 2 1"))
    Path("flat.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "2 3 1\n1 1 1"))
    Path("bad.gr").write_text("p sp 2 1\na 1 2 x\n")
    Path("bad.gbgpu").write_text("nothing of the kind")
    gb.io.save("v.gbgpu", gb.Vector.from_coo([1], [2], size=3))
    before = {path: path.read_bytes() for path in Path().iterdir()}
    found, out, err = call("convert", *words)
    assert (found, out) == (code, "")
    assert reason in err
    assert code == 2 or err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_generate_says_what_is_out_of_range(call, tmp_path):
    code, _, err = call("generate", "rmat", "-o", str(tmp_path / "x.mtx"), "--scale", "99")
    assert (code, err.count("\n")) == (3, 1)
    assert not list(tmp_path.iterdir())


def test_trace_and_plot(call, tmp_path):
    trace, picture = tmp_path / "trace.json", tmp_path / "picture.png"
    code, *_ = call("run", "bfs", "rmat:8", "--trace", str(trace), "--plot", str(picture))
    assert code == 0
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert sorted(lanes) == ["cpu:0", "cpu:1"]
    assert any("any_secondi" in event["args"]["text"] for event in events if event["ph"] == "X")
    assert any(event["ph"] == "C" for event in events)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_as_a_process():
    command = [sys.executable, "-m", "algos.cli", "run", "bfs", "road:5", "--devices", "cpu:2", "--json", "--verify"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verified"] is True


def test_compile_runs_a_program_and_compiles_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GBGPU_CACHE_DIR", str(tmp_path / "cache"))
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, gbgpu as gb\n"
        "assert sys.argv[1:] == ['--size', '3']\n"
        "v = gb.Vector.from_scalar(2, 3)\n"
        "v << v.apply(gb.unary.ainv)\n"
    )
    assert main(["compile", "--arch", "sm_80", str(script), "--size", "3"]) == 0
    assert "kernels compiled" in capsys.readouterr().err
    assert list((tmp_path / "cache/cuda").glob("*.cubin"))
