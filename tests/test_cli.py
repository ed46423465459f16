"""The `gbgpu` command: exit codes, what goes to stdout and stderr, files."""

import gc
import gzip
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import gbgpu as gb
from algos import cli, eigenvector, hits, katz, pagerank, progress, results, runs
from algos.cli import main
from algos.verify import VerificationError
from gbgpu import report
from gbgpu.device import cuda
from gbgpu.trace import Compiling, aside, compiling

PGP = str(Path(__file__).resolve().parent.parent / "data" / "PGPgiantcompo.mtx.gz")


@pytest.fixture
def call(capsys, monkeypatch):
    """Run a command line on two devices, which says nothing of what takes long: (exit code, stdout, stderr)."""
    monkeypatch.setattr(progress, "_LINE", 1e9)

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
    assert min(told["load_seconds"], *told["seconds"]) > 0 and told["compile_seconds"] >= 0
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
        ["run", "bfs", "road:9", "--weighted"],
        ["run", "bfs", "road:9", "--top", "3"],
        ["run", "pagerank", "road:9", "--top", "0"],
        ["run", "pagerank", "road:9", "--source", "3"],
        ["run", "triangles", "road:9", "--output", "x.txt"],
        ["run", "bfs", "road:9", "--dup-op", "sorted"],
        ["generate"],
        ["generate", "tree", "-o", "x.mtx"],
        ["generate", "rmat"],
        ["generate", "rmat", "-o", "x.mtx", "--side", "3"],
        ["generate", "rmat", "-o", "x.mtx", "--weights", "9-1"],
        ["replay", "t.json", "--edge-seconds", "nan"],
        ["replay", "t.json", "--barrier-seconds", "-1"],
        ["replay", "t.json", "--bytes-per-edge", "inf"],
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
        (["bfs", "bad.mtx"], "bad.mtx: line 3"),
        (["bfs", "flat.mtx"], "square"),
        (["bfs", "flat.mtx", "--symmetric"], "flat.mtx: expected a square"),
        (["bfs", "twice.mtx"], "twice.mtx: Duplicate indices found, must provide --dup-op OP: 1 1 on lines 3 and 4"),
        (["bfs", "comma.dat"], "comma.dat: line 1: expected"),
        (["bfs", "comma.dat"], "not by commas: tr ',' ' ' <FILE >NEW.txt"),
        (["bfs", "road:9", "--output", "levels.doc"], "levels.doc"),
        (["bfs", "road:9", "--output", "none/levels.txt"], "none/levels.txt"),
        (["bfs", "rmat:x"], "rmat:x"),
        (["bfs", "rmat:40"], "scale"),
        (["bfs", "rmat:4:4:1:9-1"], "weights"),
        (["bfs", "rmat:4:4:1:1-9:7"], "too many"),
        (["bfs", "road:9", "--source", "81"], "from 0 to 80"),
        (["bfs", "road:9", "--source=-1"], "from 0 to 80"),
        (["bfs", "road:0"], "no vertex"),
        (["sssp", "nan.mtx"], "NaN"),
        (["eigenvector", "path.mtx"], "1000 iterations"),
        (["factors", "road:9", "--method", "sgd"], "als"),
        (["truss", "road:9", "--k", "1"], "k of at least 2"),
        (["bfs", "road:9", "--devices", "abacus:3"], "abacus"),
        (["bfs", "road:9", "--trace", "none/trace.json"], "none/trace.json"),
    ],
)
def test_bad_input_exits_with_3_and_one_line(call, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    Path("bad.mtx").write_text(BAD)
    Path("flat.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "2 3 1\n1 1 1"))
    Path("twice.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "2 2 2\n1 1 1\n1 1 1"))
    Path("comma.dat").write_text("0,1,2\n1,2,3\n")
    Path("nan.mtx").write_text(BAD.replace("integer", "real").replace("one", "nan"))
    path = "\n".join(f"{i + 2} {i + 1}" for i in range(899))
    Path("path.mtx").write_text(f"%%MatrixMarket matrix coordinate pattern symmetric\n900 900 899\n{path}\n")
    code, out, err = call("run", *words)
    assert (code, out) == (3, "")
    assert err.startswith("gbgpu: ")
    assert err.count("\n") == 1
    assert reason in err


def test_info(call):
    code, out, err = call("info")
    assert (code, err) == (0, "")
    assert "cpu:1" in out
    code, out, _ = call("info", "--json", "--topology")
    found = json.loads(out)
    assert code == 0 and np.shape(found["bandwidth"]) == np.shape(found["latency"]) == (2, 2)
    assert found["bandwidth"][0][0] == 0 < found["bandwidth"][0][1] and found["latency"][1][0] > 0
    code, out, _ = call("info", "--topology")
    assert code == 0 and "from, to" in out and "cpu:1" in out
    code, out, _ = call("info", "--json")
    told = json.loads(out)
    assert [device["name"] for device in told["devices"]] == ["cpu:0", "cpu:1"]
    assert {"gbgpu", "python", "numpy", "llvmlite"} <= told["versions"].keys()


@pytest.mark.parametrize("partition", gb.partition.NAMED)
def test_info_of_a_graph(call, partition):
    code, out, err = call("info", "rmat:6:4", "--partition", partition, "--devices", "cpu:3", "--json")
    told = json.loads(out)["partition"]
    assert (code, err) == (0, "") and sum(told["rows"]) == 64 and sum(told["entries"]) > 100
    assert 0 < told["edge_cut"] == sum(told["cut"]) / sum(told["entries"]) < 1
    assert told["push_bytes"] == 12 * sum(told["updates"]) and told["pull_bytes"] == 8 * 2 * 64


def test_info_shows_blocks(call):
    code, out, _ = call("info", "rmat:6:4", "--symmetric", "--partition", "random")
    assert code == 0 and "updates" in out and "edge cut: 0." in out and "needed bytes: " in out
    assert call("info", "rmat:6:4", "--partition", "best")[0] == 2


def test_info_tells_of_delegates(call):
    graph = "info", "rmat:12:16", "--symmetric", "--partition", "degree_separated", "--devices", "cpu:4"
    code, out, _ = call(*graph, "--json")
    told = json.loads(out)["partition"]
    assert code == 0 and sum(told["delegates"]) > 100 and 4 < told["bytes_an_entry"] < 9
    kinds = [told[f"{row}_to_{column}"] for row in ("normal", "delegate") for column in ("normal", "delegate")]
    assert sum(kinds) == sum(told["entries"]) and kinds[0] < kinds[1] == kinds[2] < kinds[3]
    assert "delegate to delegate: " in call(*graph)[1]


def test_metis_is_asked_for(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    code, out, err = call("info", "rmat:6:4", "--partition", "metis")
    assert (code, out) == (3, "") and err == "gbgpu: gb.partition.metis needs pymetis: pip install pymetis\n"


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
        (["bad.gr", "A.mtx"], 3, "bad.gr: line 2"),
        (["bad.gbgpu", "A.mtx"], 3, "gbgpu"),
        (["v.gbgpu", "A.mtx"], 3, "vector"),
        (["flat.mtx", "A.txt"], 3, "square"),
        (["twice.txt", "A.mtx"], 3, "--dup-op OP: 0 1 on lines 1 and 2"),
        (["flat.mtx", "A.mtx", "--symmetric"], 3, "flat.mtx: expected a square"),
        (["A.mtx", "none/A.gr"], 3, "none/A.gr"),
        (["A.mtx", "A.gr", "--dtype", "quaternion"], 2, "quaternion"),
        (["large.txt", "A.mtx", "--dtype", "INT8"], 3, "whole ones from -128 to 127; came 300"),
        (["large.txt", "A.mtx", "--dtype", "UINT64"], 3, "came -3"),
        (["A.mtx"], 2, "usage"),
    ],
)
def test_convert_says_what_is_wrong(call, devices, tmp_path, monkeypatch, words, code, reason):
    monkeypatch.chdir(tmp_path)
    Path("A.mtx").write_text(BAD.replace("one", "1"))
    Path("flat.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "2 3 1\n1 1 1"))
    Path("twice.txt").write_text("0 1 2\n0 1 3\n")
    Path("large.txt").write_text("0 1 300\n1 2 -3\n")
    Path("bad.gr").write_text("p sp 2 1\na 1 2 x\n")
    Path("bad.gbgpu").write_text("nothing of the kind")
    gb.io.save("v.gbgpu", gb.Vector.from_coo([1], [2], size=3))
    before = {path: path.read_bytes() for path in Path().iterdir()}
    found, out, err = call("convert", *words)
    assert (found, out) == (code, "")
    assert reason in err
    assert code == 2 or err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_few_vertices_on_many_devices(call, tmp_path):
    """METIS would print to stdout, where JSON is."""
    (tmp_path / "two.el").write_text("0 1\n")
    for words in (["info"], ["run", "bfs"]):
        path = str(tmp_path / "two.el")
        code, out, _ = call(*words, path, "--partition", "metis", "--devices", "cpu:8", "--json")
        assert code == 0 and json.loads(out)


def test_no_samples(call):
    code, out, _ = call("run", "betweenness", "road:9", "--samples", "0", "--json")
    assert (code, json.loads(out)["samples"]) == (0, 0)


def test_nobody_reads_on():
    command = f"{sys.executable} -m algos.cli run pagerank road:9 --json --quiet --devices cpu:1"
    ran = subprocess.run(["bash", "-c", f"{command} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + 13, "", "")
    ran = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, text=True)  # no stdout at all
    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_architecture_that_is_none(call):
    code, out, err = call("compile", "--arch", "foo")
    assert (code, out, err.count("\n")) == (3, "", 1) and "such as sm_90; came -arch=foo" in err


def test_the_help_of_generate_lists_kinds(call):
    code, out, _ = call("generate", "--help")
    assert code == 0 and all(re.search(rf"^ +{kind} +\w+", out, re.MULTILINE) for kind in ("rmat", "uniform", "road"))


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
    assert sorted({*lanes} - {"host"}) == ["cpu:0", "cpu:1"]
    assert any("any_secondi" in event["args"]["text"] for event in events if event["ph"] == "X")
    assert any(event["ph"] == "C" for event in events)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("interpret", [False, True])
def test_a_picture_says_what_it_shows(call, tmp_path, monkeypatch, interpret):
    from matplotlib.figure import Figure

    figures, calls = [], "interpreted kernels (" if interpret else "compiled kernels"
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    monkeypatch.setattr(gb.settings, "interpret", interpret)
    code, *_ = call("run", "bfs", "rmat:6", "--plot", str(tmp_path / "p.png"))
    (figure,) = figures
    lanes, frontier = figure.axes
    assert code == 0
    assert figure.get_suptitle().startswith(f"bfs on rmat:6, traced statement by statement\non cpu:0, cpu:1; {calls}")
    assert [label.get_text() for label in lanes.get_yticklabels()] == ["cpu:0", "cpu:1"]
    assert lanes.get_ylabel() == "device"
    assert frontier.get_xlabel() in ("time (ms)", "time (s)")
    assert frontier.get_ylabel().startswith("frontier (vertices)")
    words = {text.get_text().split()[0] for text in lanes.get_legend().get_texts()}
    assert words & {"push", "pull"} and words <= {*report._COLOURS, "others"} - {"compile", "collect"}
    assert "edges looked at by a product" in [text.get_text() for text in frontier.get_legend().get_texts()]


@pytest.mark.parametrize(("cold", "times"), [(0, 1), (1, 2), (9, 3)])
def test_runs_are_traced_with_kernels_compiled_and_without_garbage_collection(cold, times):
    gb.init("cpu:2")
    v, seen = gb.Vector.from_dense([1, 2, 3]), []

    def run():
        seen.append(gc.isenabled())
        if len(seen) <= cold:
            with aside("compile"):
                pass
        v << v + 1

    v << v + 1  # compiled from here on
    before = gc.isenabled()
    records = runs.traced_warm(run)
    assert seen == [False] * times and gc.isenabled() == before
    assert len({record.statement for record in records}) == 1
    if times > cold:
        assert not {record.step for record in records} & {"compile", "collect"}
    with pytest.raises(ZeroDivisionError):
        runs.traced_warm(lambda: 1 // 0)
    assert gc.isenabled() == before


def test_as_a_process():
    command = [sys.executable, "-m", "algos.cli", "run", "bfs", "road:5", "--devices", "cpu:2", "--json", "--verify"]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verified"] is True


def test_version(call):
    assert call("--version") == (0, f"gbgpu {gb.__version__}\n", "")


ARCS = "%%MatrixMarket matrix coordinate integer general\n4 4 4\n1 2 5\n2 1 7\n2 3 1\n3 3 2\n"


def test_symmetric_gives_each_arc_its_reverse(call, devices, tmp_path, monkeypatch):
    """Of arcs of 5 and 7 that are each other's reverse, both weigh 7."""
    monkeypatch.chdir(tmp_path)
    Path("A.mtx").write_text(ARCS)
    Path("A.txt").write_text("# Nodes: 4\n0 1 5\n1 0 7\n1 2 1\n2 2 2\n")
    for name in ("A.mtx", "A.txt"):
        told = [
            json.loads(call("run", "sssp", name, "--json", "--source", "2", *more)[1])["result"]
            for more in ([], ["--symmetric"])
        ]
        assert told == [{"reached": 1, "farthest": 0}, {"reached": 3, "farthest": 8}]
        assert call("convert", name, "B.mtx", "--symmetric")[0] == 0
        assert (scipy.io.mmread("B.mtx").toarray() == [[0, 7, 0, 0], [7, 0, 1, 0], [0, 1, 2, 0], [0, 0, 0, 0]]).all()
        assert Path("B.mtx").read_text().splitlines()[0].endswith("integer symmetric")


@pytest.mark.parametrize("name", ["A.mtx", "A.txt", "A.gr"])
def test_arcs_that_a_file_has_twice(call, devices, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("A.mtx").write_text(ARCS.replace("4 4 4", "4 4 5") + "1 2 4\n")
    Path("A.txt").write_text("0 1 5\n1 2 1\n0 1 4\n")
    Path("A.gr").write_text("p sp 3 3\na 1 2 5\na 2 3 1\na 1 2 4\n")
    assert call("run", "sssp", name)[0] == 3
    for operator, farthest in (("min", 5), ("max", 6), ("plus", 10)):
        told = json.loads(call("run", "sssp", name, "--source", "0", "--dup-op", operator, "--json")[1])
        assert told["result"]["farthest"] == farthest
        assert call("convert", name, "B.gbgpu", "--dup-op", operator)[0] == 0
        told = json.loads(call("run", "sssp", "B.gbgpu", "--source", "0", "--dup-op", operator, "--json")[1])
        assert told["result"]["farthest"] == farthest


@pytest.mark.parametrize(
    ("algorithm", "ranks_of"),
    [
        ("pagerank", lambda A, weighted: pagerank(A, weighted=weighted).ranks),
        ("eigenvector", lambda A, weighted: eigenvector(A, weighted=weighted)),
        ("katz", lambda A, weighted: katz(A, weighted=weighted)),
        ("hits", lambda A, weighted: hits(A, 1e-6, weighted=weighted).authorities),
    ],
)
def test_weighted_ranks(call, devices, algorithm, ranks_of):
    spec = "rmat:6:4:3:1-9"
    best = []
    for more in ([], ["--weighted"]):
        told = json.loads(call("run", algorithm, spec, "--json", "--verify", "--top", "3", *more)[1])
        assert told["weighted"] is bool(more) and told["verified"]
        best.append(told["top"])
        devices.start()
        ranks = ranks_of(gb.io.rmat(6, 4, seed=3, weights=(1, 9)), bool(more)).to_dense()
        order = np.argsort(-ranks)[:3]
        assert [line["vertex"] for line in told["top"]] == order.tolist()
        assert [list(line.values())[1] for line in told["top"]] == pytest.approx(ranks[order])
    assert best[0] != best[1]


def test_weighted_ranks_of_debts(call, tmp_path, monkeypatch):
    """Weights below 0 may give numbers below 0: that is no failed check."""
    monkeypatch.chdir(tmp_path)
    Path("A.txt").write_text("0 1 -1\n1 0 -1\n1 2 3\n2 1 3\n0 0 2\n2 2 4\n")
    code, out, err = call("run", "eigenvector", "A.txt", "--weighted", "--verify", "--json", "--output", "x.npy")
    assert (code, err) == (0, "") and json.loads(out)["verified"] and np.load("x.npy").min() < 0


def test_the_largest(call, tmp_path, monkeypatch):
    """Of equal ones, the lower number first; for people in a table."""
    monkeypatch.chdir(tmp_path)
    Path("A.txt").write_text("# Nodes: 7\n0 1 4\n2 3 1\n4 5 2\n0 6 4\n")
    top = json.loads(call("run", "components", "A.txt", "--json", "--top", "2")[1])["top"]
    assert top == [{"component": 0, "size": 3}, {"component": 2, "size": 2}]
    top = json.loads(call("run", "sssp", "A.txt", "--json", "--top", "9", "--source", "0")[1])["top"]
    assert [(line["vertex"], line["distance"]) for line in top] == [(1, 4), (6, 4), (0, 0)]
    out = call("run", "components", "A.txt", "--top", "1")[1]
    assert "component" in out and "size" in out
    assert json.loads(call("run", "components", "A.txt", "--json")[1])["top"] is None


def test_the_result_in_a_file(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("A.txt").write_text("# Nodes: 4\n0 1 0.5\n1 2 0.25\n")
    for algorithm, name, kind in (("bfs", "level", int), ("sssp", "distance", float)):
        for suffix in ("txt", "csv", "npy", "mtx", "txt.gz", "npy.gz"):
            words = "run", algorithm, "A.txt", "--source", "0", "--output", f"r.{suffix}"
            assert call(*words)[0] == 0
        values = [0, 1, 2] if kind is int else [0.0, 0.5, 0.75]
        lines = [f"{i} {value}" for i, value in enumerate(values)]
        assert Path("r.txt").read_text().splitlines() == lines
        assert gzip.open("r.txt.gz", "rt").read() == Path("r.txt").read_text()
        assert Path("r.csv").read_text().splitlines() == [f"vertex,{name}", *(line.replace(" ", ",") for line in lines)]
        for array in (np.load("r.npy"), np.load(gzip.open("r.npy.gz"))):
            assert array.dtype == kind and array[:3].tolist() == values
            assert array[3] == -(2**63) if kind is int else np.isnan(array[3])
        found = scipy.io.mmread("r.mtx").tocoo()
        assert found.shape == (4, 1) and found.row.tolist() == [0, 1, 2] and found.data.tolist() == values
    assert call("run", "components", "A.txt", "--output", "r.npy")[0] == 0
    assert np.load("r.npy").tolist() == [0, 0, 0, 3]


def test_times_of_compiling_count_once_where_threads_overlap():
    told = Compiling()
    for start, end in ((1.0, 3.0), (2.0, 4.0), (2.5, 2.75), (6.0, 7.0), (0.0, 0.5)):
        told._times.append((start, end))
    assert [told.seconds(start) for start in (0.0, 0.25, 2.0, 5.0, 8.0)] == [4.5, 4.25, 3.0, 1.0, 0.0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("what", ["compiling kernel 3: pull", ""])
def test_a_terminal_is_told_what_is_compiled(monkeypatch, what):
    terminal = Terminal()
    for name, value in (("_PATIENCE", 0.0), ("_MOMENT", 0.05)):
        monkeypatch.setattr(progress, name, value)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(compiling, "what", "")
    with progress.Progress() as shown:
        shown.step("bfs 1/1")
        compiling.begin(what)
        time.sleep(0.5)
    text = terminal.getvalue()
    assert "bfs 1/1" in text and ("compiling kernel 3: pull" in text) == bool(what)


def test_a_log_is_told_what_takes_long(monkeypatch):
    log, told = io.StringIO(), threading.Event()
    monkeypatch.setattr(progress, "_LINE", 0.01)
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(log, "flush", lambda: log.getvalue().count("\n") > 1 and told.set())
    with progress.Progress() as shown:
        shown.step("bfs 1/1")
        assert told.wait(60)
    assert re.fullmatch(r"(gbgpu: bfs 1/1: 0 s\n)+", log.getvalue())
    with progress.Progress(quiet=True) as shown:
        shown.step("reading")
        time.sleep(0.1)
    assert "reading" not in log.getvalue()


SEARCH = """
import gbgpu as gb, algos
gb.init("cpu:2")
for A in (gb.io.grid_road(5, seed=1), gb.io.grid_road(9, seed=1)):
    algos.bfs(A, 3)
"""


def test_what_is_compiled_by_default(monkeypatch):
    """Every algorithm, on every usual type; here on a smaller graph, without compiling."""
    monkeypatch.setattr(gb.settings, "interpret", True)
    plain, types = gb.io.generate.rmat, []

    def rmat(scale, degree, **keywords):
        types.append(keywords["dtype"])
        return plain(2, 2, **keywords)

    monkeypatch.setattr(gb.io.generate, "rmat", rmat)
    monkeypatch.setattr(runs, "LONG", 3)
    gb.init("cpu:1")
    runs.rehearse()
    assert types == ["BOOL", "INT64", "FP32", "FP64"]


def test_compile_without_a_gpu_leaves_cpu_kernels_for_the_next_process(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cuda, "available", lambda: 0)
    (tmp_path / "search.py").write_text(SEARCH)
    command = [sys.executable, "-m", "algos.cli", "run", "bfs", "road:9", "--devices", "cpu:2", "--json"]
    command += ["--source", "3", "--repeat", "2"]
    environment = {**os.environ}
    assert main(["compile", str(tmp_path / "search.py")]) == 0
    compiled = set(store.glob("cpu/*"))  # a file each
    assert f"{len(compiled)} kernels compiled" in capsys.readouterr().err and len(compiled) > 5
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=True)
    assert set(store.glob("cpu/*")) == compiled
    assert json.loads(done.stdout)["compile_seconds"] > 0  # they were loaded
    assert not (store / "cuda").exists()


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


def test_compile_tells_a_programs_own_errors_as_they_are(tmp_path, capsys):
    script = tmp_path / "program.py"
    script.write_text("raise ValueError('its own')\n")
    with pytest.raises(SystemExit) as ended:
        main(["compile", str(script)])
    told = capsys.readouterr().err
    assert ended.value.code == 1 and "Traceback" in told and f'{script}", line 1' in told and "its own" in told
    assert main(["compile", str(tmp_path)]) == 3 and "a Python script" in capsys.readouterr().err


def test_where_files_are_to_go_is_looked_at_first(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli, "load", None)
    monkeypatch.setitem(cli.KINDS, "rmat", replace(cli.KINDS["rmat"], make=None))
    for wrong, text in (("g.foo", "a file name"), ("none/g.mtx", "no folder")):
        assert main(["generate", "rmat", "--scale", "4", "-o", str(tmp_path / wrong)]) == 3
        assert text in capsys.readouterr().err
    for option, wrong, text in (
        ("--plot", "p.xyz", "a picture"), ("--plot", "none/p.png", "no folder"),
        ("--trace", "none/t.json", "no folder"), ("--output", "none/o.txt", "no folder"),
    ):  # fmt: skip
        assert main(["run", "bfs", "rmat:4", option, str(tmp_path / wrong)]) == 3
        assert text in capsys.readouterr().err


def test_no_output_replaces_what_is_read_or_written(call, tmp_path, monkeypatch):
    """Whatever the file is called: by a relative name, a link or another link to the same content."""
    monkeypatch.chdir(tmp_path)
    text, trace = BAD.replace("one", "7"), '{"traceEvents": []}'
    (tmp_path / "folder").mkdir()
    Path("g.mtx").write_text(text)
    Path("t.png").write_text(trace)
    os.link("g.mtx", "hard.mtx")
    os.symlink("g.mtx", "soft.mtx")
    os.symlink("later.mtx", "dangling.mtx")
    os.symlink("folder", "other")
    Path("folder/A.part-0-of-1.mtx").write_text(text)
    run = ["run", "bfs", "g.mtx"]
    for words in (
        *([*run, option, "g.mtx"] for option in ("--output", "--trace")),
        *([*run, "--output", name] for name in ("./folder/../g.mtx", str(tmp_path / "g.mtx"), "hard.mtx", "soft.mtx")),
        ["run", "bfs", "soft.mtx", "--output", "g.mtx"],
        ["run", "bfs", "folder", "--output", "other/A.part-0-of-1.mtx"],
        ["run", "bfs", "folder/A.part-*.mtx", "--output", "other/A.part-0-of-1.mtx"],
        ["run", "bfs", "road:9", "--output", "new.txt", "--trace", "./new.txt"],
        ["run", "bfs", "road:9", "--output", "dangling.mtx", "--trace", "later.mtx"],
        ["run", "bfs", "road:9", "--plot", "other/new.png", "--trace", "folder/new.png"],
        ["convert", "g.mtx", "hard.mtx"],
        ["replay", "t.png", "--plot", "t.png"],
        ["train-balance", "g.mtx", "--graph", "road:9", "--unseen", "soft.mtx"],
    ):
        code, out, err = call(*words)
        assert (code, out) == (3, "") and "another file" in err and err.count("\n") == 1, (words, err)
    assert Path("g.mtx").read_text() == text and Path("t.png").read_text() == trace
    assert not any(Path(name).exists() for name in ("new.txt", "later.mtx", "folder/new.png"))
    results.check_outputs({"--output": os.devnull, "--trace": os.devnull}, [("GRAPH", "none*.mtx"), ("GRAPH", None)])


def test_the_limit_of_a_graph(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty.mtx").write_text(BAD.replace("2 2 1\n1 1 one", "1000 1000 0"))
    assert "--limit 32000 (bytes)" in call("info", "empty.mtx", "--limit", "20000")[2]
    assert call("info", "empty.mtx", "--limit", "32000")[0] == 0


@pytest.mark.parametrize("operator", ["secondi", "firstj"])
def test_operators_of_places_combine_no_arcs(tmp_path, capsys, operator):
    (tmp_path / "twice.txt").write_text("0 1 3\n0 1 4\n")
    assert main(["run", "bfs", str(tmp_path / "twice.txt"), "--dup-op", operator]) == 3
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(runs.FUNCTIONS))
def test_functions_are_known_by_their_names(name, capsys):
    import algos

    assert callable(getattr(algos, name)) and runs.FUNCTIONS[name] in runs.ALGORITHMS
    assert main(["run", "connected_components", "road:4", "--devices", "cpu:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "components"


def test_without_stderr(tmp_path):
    """The shell's `2>&-`."""
    (tmp_path / "A.txt").write_text("0 1\n1 2\n")
    command = f"{sys.executable} -m algos.cli run bfs {tmp_path / 'A.txt'} --devices cpu:1 --json 2>&-"
    plain = os.environ
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, timeout=120, env=plain)
    assert done.returncode == 0 and json.loads(done.stdout)


def test_plans_are_told_beside_the_result(tmp_path, in_rounds, monkeypatch, capsys):
    (tmp_path / "A.txt").write_text("0 1\n1 2\n")
    monkeypatch.setattr(gb.settings, "verbose", 3)
    assert main(["run", "bfs", str(tmp_path / "A.txt"), "--devices", "cpu:1", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) and "any_secondi" in said.err and "relax" not in said.err


def test_json_without_end(tmp_path, capsys):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for command in (["replay", "deep.json"], ["info", "--devices", "sim:deep.json"]):
        assert main([*command[:-1], command[-1].replace("deep", str(tmp_path / "deep"))]) == 3
    assert capsys.readouterr().err.count("gbgpu: ") == 2


@pytest.mark.parametrize("text", ["x", "-1", "1e3", "--3"])
def test_numbers_of_the_environment(text, monkeypatch):
    monkeypatch.setenv("GBGPU_CACHE_MB", text)
    with pytest.warns(UserWarning, match="GBGPU_CACHE_MB: .*512 is taken"):
        assert gb.settings._number("GBGPU_CACHE_MB", 512) == 512


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_nobody_reads_what_is_printed(more):
    """As the shell's tools end then: by SIGPIPE, or a code that says so."""
    begin, end = os.pipe()
    os.close(begin)
    command = [sys.executable, "-m", "algos.cli", "run", "pagerank", "road:20", "--top", "400", "--devices", "cpu:1"]
    command.append("--quiet")
    plain = os.environ
    done = subprocess.run([*command, *more], stdout=end, stderr=subprocess.PIPE, timeout=120, env=plain)
    os.close(end)
    assert (done.returncode, done.stderr) == (141, b"")
