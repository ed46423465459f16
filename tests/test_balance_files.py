"""What the balance layer reads, models, traces and topologies, and how commands take them; and numbers that it is given
but must refuse."""

from __future__ import annotations

import json
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

import gbgpu as gb
from algos import balancing, cli, pagerank, training
from gbgpu import balance
from gbgpu.balance.models import by_direction, shipped
from gbgpu.balance.replay import load
from gbgpu.balance.topology import made
from gbgpu.errors import DimensionMismatch, FileFormatError, InvalidValue

HUGE = "1" + "0" * 400


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """call(*words) -> (exit code, stdout, stderr) in an empty folder; errors are one line, none is a traceback."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        try:
            code = cli.main(list(words))
        except SystemExit as error:
            code = error.code
        out, err = capsys.readouterr()
        assert code != 3 or err.startswith("gbgpu: ") and err.count("\n") == 1
        return code, out, err

    return call


# ---------------------------------------------------------------- rounds of recorded loops


def test_predictions_are_of_all_rounds(call):
    """Also where a trace is asked of loops as they go by themselves, which says nothing of their frontiers."""
    words = "run", "pagerank", "road:40", "--devices", "sim:dgx1-v100", "--json"
    told = [json.loads(call(*words, *more)[1])["predicted"] for more in ([], ["--rounds", "--trace", "r.json"])]
    assert told[0] == told[1] and told[0]["seconds"] > 0
    assert any(event["name"] == "pull round" for event in json.loads(Path("r.json").read_text())["traceEvents"])
    code, _, err = call("replay", "r.json")
    assert code == 3 and "without --rounds" in err


def test_records_of_rounds_are_refused():
    gb.init("sim:dgx1-v100")
    A = gb.io.generate.grid_road(40, seed=1)
    with gb.trace() as records:
        pagerank(A, tol=0, max_iterations=30)
    assert sum(round.edges == A.nvals for round in balance.rounds(records)) >= 30
    assert balancing.predicted(records, gb.topology(), None).seconds > 0
    with gb.trace(rounds=True) as records:
        pagerank(A, tol=0, max_iterations=60)
    for asked in (balance.rounds, lambda records: balancing.predicted(records, gb.topology(), None)):
        with pytest.raises(InvalidValue, match="without rounds=True"):
            asked(records)


# ---------------------------------------------------------------- traces


def trace(first, name="push", statement=1):
    """A file's text: a round of two blocks, the second one sound."""
    tally = {"vertices": 1, "edges": 6, "histogram": {"3": 1}}
    events = [(name, statement, first), ("push", 1, json.dumps(tally))]
    told = '{{"ph": "X", "name": {}, "args": {{"statement": {}, "tally": {}}}}}'
    texts = [told.format(json.dumps(name), json.dumps(number), tally) for name, number, tally in events]
    return f'{{"traceEvents": [{", ".join(texts)}]}}'


def told(vertices=1, edges=6, **bins):
    histogram = ", ".join(f'"{name[1:].replace("_", "-")}": {count}' for name, count in bins.items())
    return f'{{"vertices": {vertices}, "edges": {edges}, "histogram": {{{histogram}}}}}'


DAMAGED = {
    "no such bin": told(b64=1),
    "a bin far below": told(b_100=1),
    "a bin that Python would find": told(b_1=1),
    "a bin by another name": told(b03=1),
    "a count too large": told(b3=2**70),
    "a count without end": told(b3="1e400"),
    "a count of 400 digits": told(b3=HUGE),
    "a count below 0": told(b3=-1),
    "a count that is not whole": told(b3=1.5),
    "a count that is a truth": told(b3="true"),
    "edges below 0": told(edges=-(10**9), b3=1),
    "edges without end": told(edges="1e400", b3=1),
    "edges of 400 digits": told(edges=HUGE, b3=1),
    "edges that are text": told(edges='"6"', b3=1),
    "edges that are not whole": told(edges=6.5, b3=1),
    "edges without vertices": told(0, 1000),
    "more edges than the bins have": told(edges=8, b3=1),
    "fewer edges": told(edges=3, b3=1),
    "other vertices": told(2, b3=1),
    "no number of vertices": told("null", b3=1),
    "vertices in plenty": told(2**62, 2**62, b1=2**62),
    "in-degrees of others": told(b3=1)[:-1] + f', "into": {told(2, 12, b3=2)}}}',
    "a list": "[1]",
    "bins in a list": '{"vertices": 1, "edges": 6, "histogram": [1, 2]}',
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_tallies(tmp_path, what):
    path = tmp_path / "trace.json"
    path.write_text(trace(told(b3=1)))
    assert [round.edges for round in load(path)] == [12]
    path.write_text(trace(DAMAGED[what]))
    with pytest.raises(FileFormatError, match="a trace as gbgpu run --trace writes it"):
        load(path)


@pytest.mark.parametrize("changed", [{"name": 5}, {"name": "gather"}, {"statement": [1]}, {"statement": None}])
def test_damaged_steps(tmp_path, changed):
    path = tmp_path / "trace.json"
    path.write_text(trace(told(b3=1), **changed))
    with pytest.raises(FileFormatError):
        load(path)


def test_edges_whose_sum_is_no_int64(tmp_path):
    path, half = tmp_path / "trace.json", 2**62 - 1
    path.write_text(trace(told(edges=half, b62=1)))
    with pytest.raises(FileFormatError, match="fewer than 2\\*\\*62"):
        load(path)
    assert balance.Tally.read({"vertices": 1, "edges": half, "histogram": {"62": 1}}).edges == half


def test_tallies_are_read_as_told():
    for degrees in ([], [0, 0], [7], [1, 2**40], list(range(300))):
        tally = balance.Tally.of(degrees, degrees[::-1])
        read = balance.Tally.read(json.loads(json.dumps(tally.to_json())))
        assert read[:2] == tally[:2] and (read.histogram == tally.histogram).all()
        assert read.into[:2] == tally[:2] and (read.into.histogram == tally.histogram).all()


def test_damaged_files_exit_with_3(call):
    Path("two.json").write_text('{"bandwidth": [[0, 5], [5, 0]]}')
    for what in ("no such bin", "edges without end", "a count too large", "edges below 0"):
        Path("t.json").write_text(trace(DAMAGED[what]))
        assert call("replay", "t.json", "--topology", "two.json")[0] == 3
    Path("t.json").write_text(trace(told(b3=1)))
    assert call("replay", "t.json", "--topology", "two.json")[0] == 0
    for number in (HUGE, "1e400", "1e300", '"5"', "null"):
        Path("two.json").write_text(f'{{"bandwidth": [[0, {number}], [1, 0]]}}')
        assert call("replay", "t.json", "--topology", "two.json")[0] == 3


# ---------------------------------------------------------------- models and topologies


@pytest.mark.parametrize("key", ["bandwidth", "latency", "into"])
@pytest.mark.parametrize("number", [HUGE, "1e400", "-1"])
def test_damaged_topologies(tmp_path, key, number):
    path, given = tmp_path / "host.json", {"bandwidth": "[[0, 5], [5, 0]]", "latency": "1", "into": "3"}
    given[key] = given[key].replace("5", number, 1) if key == "bandwidth" else number
    path.write_text("{" + ", ".join(f'"{name}": {value}' for name, value in given.items()) + "}")
    with pytest.raises(FileFormatError):
        gb.init(f"sim:{path}")


NOT_MODELS = {
    "seconds below 0": {"seconds": [-5, -1]},
    "seconds that descend": {"seconds": [2e-9, 1e-9]},
    "seconds without end": {"seconds": [1e-9, float("inf")]},
    "lowest above highest": {"lowest": [2] * 6},
    "degrees below 0": {"lowest": [-5] * 6},
    "an error below 0": {"error": -1},
    "an error that is none": {"error": float("nan")},
    "an error in a list": {"error": [0.1]},
    "a degree beyond all": {"degree": 5},
    "a degree that is none": {"degree": "0"},
    "other features": {"features": ["gini"]},
    "weights too large": {"weights": [10**400] * 84},
    "weights whose sum is no number": {"weights": [1e308] * 84},
    "weights that are text": {"weights": ["1"] * 84},
}


@pytest.mark.parametrize("what", NOT_MODELS)
def test_damaged_models(tmp_path, what):
    path = tmp_path / "model.json"
    balance.constant(1e-9).save(path)
    held = json.loads(path.read_text())
    assert balance.Polynomial.load(path).seconds.tolist() == [1e-9, 1e-9]
    path.write_text(json.dumps(held | NOT_MODELS[what]))
    with pytest.raises(FileFormatError, match="a model as Polynomial.save writes it"):
        balance.Polynomial.load(path)


def test_links_that_carry_nothing():
    """No bytes take no time where there is a route, and none come where there is none."""
    host = balance.topology("sim:dgx1-v100")
    links = host.links.copy()
    links[:, 3] = 0
    apart = made("apart", links)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = balance.link_seconds(apart, 0.0)
        some = balance.link_seconds(apart, 8.0)
    away = np.arange(8) != 3
    assert (found[away, 3] == np.inf).all() and found[3, 3] == 0 and not found[:, away].any()
    assert (np.isinf(some) == np.isinf(found)).all()


@pytest.mark.parametrize("name", list(shipped()))
def test_shipped_models(name, call):
    model = balance.Polynomial.load(name)
    few, many = balance.Tally.of(np.full(1000, 2)), balance.Tally.of(np.full(1000, 40))
    assert (model([few, many]) > 1e-11).all() and (model([few, many]) < 1e-6).all() and 0 < model.error < 1
    Path("two.json").write_text('{"bandwidth": [[0, 5], [5, 0]]}')
    Path("t.json").write_text(trace(told(b3=1)))
    for given in (name, name.partition("-")[0]):
        assert call("replay", "t.json", "--topology", "two.json", "--model", given)[0] == 0


def test_rounds_are_priced_by_the_model_of_their_direction():
    tallies = [balance.Tally.of(np.full(1000, 9))] * 2
    both = [balance.Round("push", tuple(tallies)), balance.Round("pull", tuple(tallies))]
    links = made("two", np.array([[0.0, 5e9], [5e9, 0.0]]))
    models = {"push": balance.constant(1e-9), "pull": balance.constant(3e-9)}
    one, other = (outcome.home[0] for outcome in balance.replay(both, links, models, None))
    assert one == pytest.approx(9e-6) and other == pytest.approx(27e-6)
    learnt = by_direction("cpu")
    assert set(learnt) == {"push", "pull"} and learnt["pull"].error == balance.Polynomial.load("cpu-pull").error
    assert isinstance(by_direction("cpu-push"), balance.Polynomial)


def test_names_of_models(call):
    assert {f"{device}-{way}" for device in ("cpu", "h100") for way in ("push", "pull")} == set(shipped())
    for name in ("cpu-shove", "", "."):
        with pytest.raises((InvalidValue, IsADirectoryError)):
            balance.Polynomial.load(name)
    Path("t.json").write_text(trace(told(b3=1)))
    code, _, err = call("replay", "t.json", "--model", "cpu-shove")
    assert code == 3 and "cpu-pull, cpu-push" in err
    balance.constant(1e-9).save("mine")  # a file of any name
    assert balance.Polynomial.load("mine").seconds[0] == 1e-9
    balance.constant(1e-9).save("cpu-push")
    assert balance.Polynomial.load(Path("./cpu-push").absolute()).seconds[0] == 1e-9
    assert balance.Polynomial.load("cpu-push").seconds[0] != balance.Polynomial.load("cpu-push").seconds[1]
    with pytest.raises(FileNotFoundError):
        balance.Polynomial.load("none.json")


def test_models_are_part_of_the_package():
    root = Path(balance.__file__).resolve().parents[2]
    listed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    (pattern,) = listed["gbgpu.balance"]
    assert {path.stem for path in Path(balance.__file__).parent.glob(pattern)} == set(shipped())


# ---------------------------------------------------------------- training


GRAPH = "rmat:8:8:1:1-9"


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["none/m.json"], 3, "no folder"),
        ([""], 3, "no name"),
        (["."], 3, "folder"),
        (["m.json", "--seed", "-1"], 2, "--seed"),
        (["m.json", "--graph", "none.mtx"], 3, "none.mtx"),
        (["m.json", "--unseen", "none.mtx"], 3, "none.mtx"),
        (["m.json", "--unseen", "rmat:x"], 3, "rmat:x"),
        (["m.json", "--graph", "empty.mtx"], 3, "vertices"),
        (["m.json", "--unseen", "empty.mtx"], 3, "vertices"),
        (["m.json", "--unseen", "flat.mtx"], 3, "flat.mtx"),
        (["m.json", "--devices", "cpu:0"], 3, "cpu:0"),
    ],
)
def test_training_looks_at_its_arguments_first(call, monkeypatch, words, code, reason):
    def late(*_):
        raise AssertionError("it trains already")

    monkeypatch.setattr(training, "RUNS", (late,))
    head = "%%MatrixMarket matrix coordinate integer general\n"
    Path("empty.mtx").write_text(f"{head}0 0 0\n")
    Path("flat.mtx").write_text(f"{head}2 3 2\n1 1 1\n2 3 4\n")
    given = [] if "--graph" in words else ["--graph", GRAPH]
    found = call("train-balance", *words, *given, *([] if "--unseen" in words else ["--unseen", GRAPH]))
    assert found[0] == code and reason in found[2] and not Path("m.json").exists()


def test_samples_are_of_products_that_look_at_all_edges(monkeypatch):
    """Pulls that end early, and rows that are only counted, say nothing of what an edge takes."""
    monkeypatch.setattr(training, "_EDGES", 1)
    gb.init("cpu:2", balance="off")
    A = gb.io.generate.rmat(8, 8, seed=1, weights=(1, 9), dtype="INT64")
    records = training._products(training.RUNS[2], A, 0, "pull")
    whole = [record for record in records if record.edges >= record.tally.edges > 0]
    assert 0 < len(whole) < len(records)
    assert len(list(training._least([records]))) == len(whole)


# ---------------------------------------------------------------- numbers that are refused


@pytest.mark.parametrize(
    ("prefix", "error"),
    [
        ([0, 9, 3, 20], InvalidValue),
        ([3, 5, 9], InvalidValue),
        ([0, -1], InvalidValue),
        ([0, 2**62, 2**63 - 1], InvalidValue),
        ([0, 2**64], InvalidValue),
        ([0, 1.5, 3], InvalidValue),
        ([0, np.nan, 5], InvalidValue),
        ([0, np.inf], InvalidValue),
        (np.array([0, 2**63], np.uint64), InvalidValue),
        (["0", "1"], TypeError),
        (None, DimensionMismatch),
        ([[0, 1]], DimensionMismatch),
        ([[0], [1, 2]], DimensionMismatch),
        ([], DimensionMismatch),
    ],
)
def test_what_is_no_prefix(prefix, error):
    with pytest.raises(error):
        balance.PartialSums(prefix)
    with pytest.raises(error):
        balance.slices(prefix, [5])
    with pytest.raises(error):
        balance.repartition(balance.PartialSums([0, 1]), prefix, [0, 1], [1.0], 8, 1e9, 10)


@pytest.mark.parametrize("share", [[3.9, 2.9], [np.nan, 5], [2**64, 5], [2, 2], [6, -1], [2**62] * 4 + [5]])
def test_what_are_no_shares(share):
    with pytest.raises(InvalidValue):
        balance.slices([0, 4, 5], share)
    with pytest.raises(InvalidValue):
        balance.tasks(0, [0, 4, 5], share)
    assert balance.slices([0, 4, 5], [4.0, 1.0]).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("seconds", [[1e308, 1e308], [np.inf, 1], [-1, 1], [np.nan, 1]])
def test_times_without_a_sum(seconds):
    for bounds in ([0, 2, 4], [0, 4, 4]):
        sums = balance.PartialSums([0, 5, 10, 15, 20])
        with warnings.catch_warnings(), pytest.raises(InvalidValue):
            warnings.simplefilter("error")
            sums.observe(bounds, seconds)
        assert sums.split(2).tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("prefix", "numbers", "error"),
    [
        ([0, 5, 10, 15, 20], (8, 0, 10), InvalidValue),
        ([0, 5, 10, 15, 20], (8, -1, 10), InvalidValue),
        ([0, 5, 10, 15, 20], (8, np.nan, 10), InvalidValue),
        ([0, 5, 10, 15, 20], (-8, 1e9, 10), InvalidValue),
        ([0, 5, 10, 15, 20], (np.inf, 1e9, 10), InvalidValue),
        ([0, 5, 10, 15, 20], (8, 1e9, np.nan), InvalidValue),
        ([0, 1, 2], (8, 1e9, 10), DimensionMismatch),
        ([0, 5, 10, 15, 20, 25], (8, 1e9, 10), DimensionMismatch),
    ],
)
def test_repartitioning_refuses_before_it_learns(prefix, numbers, error):
    sums = balance.PartialSums([0, 5, 10, 15, 20])
    with pytest.raises(error):
        balance.repartition(sums, prefix, [0, 1, 4], [1.0, 3.0], *numbers)
    assert sums.at([0, 1, 2, 3, 4]).tolist() == [0, 0.25, 0.5, 0.75, 1]
    found = balance.repartition(sums, [0, 5, 10, 15, 20], [0, 1, 4], [1.0, 3.0], 8, np.inf, np.inf)
    assert found.cost == 0 and found.worth
