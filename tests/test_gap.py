"""GAP: all kernels on all graphs are verified, and a wrong result of each is refused."""

import json

import numpy as np
import pytest

import gbgpu as gb
from algos import gap
from algos.cli import main
from algos.verify import VerificationError


@pytest.fixture(scope="module", params=["kron", "web"])
def graph(request):
    gb.init("cpu:2")
    return gap.graph(request.param, 6, 3, None)


def test_the_command(capsys):
    words = ["bench", "gap", "--scale", "5", "--trials", "2", "--devices", "cpu:2", "--quiet", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told) == 30 and all(len(line["seconds"]) == 2 and min(line["seconds"]) > 0 for line in told)
    standing_in = {line["graph"].split()[0] for line in told if "stand-in" in line["graph"]}
    assert standing_in == {"road", "twitter", "web"}


def test_trials_are_those_of_the_suite():
    assert {name: kernel.trials for name, kernel in gap.KERNELS.items()} == {
        **dict.fromkeys(("bfs", "sssp"), 64), **dict.fromkeys(("pr", "cc", "bc"), 16), "tc": 3
    }


def test_files_take_the_place_of_stand_ins(capsys, tmp_path):
    file = tmp_path / "road.el"
    file.write_text("0 1\n1 0\n1 2\n2 1\n")
    words = ["bench", "gap", "--graph", f"road={file}", "--trials", "1", "--devices", "cpu:1", "--quiet"]
    assert main([*words, "--kernel", "sssp", "--json"]) == 0
    line, = json.loads(capsys.readouterr().out)
    assert str(file) in line["graph"] and "stand-in" not in line["graph"]
    weights = gap.graph("road", 5, 1, str(file)).matrix.to_dense(0)
    assert (weights == weights.T).all() and set(weights[weights > 0]) <= set(range(1, 256))
    assert main([*words, "--kernel", "tc"]) == 0
    assert "every trial verified" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["bench", "gap", "--graph", "mars"])
    file.write_text("")
    assert main(words) == 3 and "a graph with edges" in capsys.readouterr().err


@pytest.mark.parametrize("name", gap.KERNELS)
def test_a_wrong_result_is_refused(graph, name):
    kernel = gap.KERNELS[name]
    sources = next(graph.sources(kernel.roots, 1))
    found = kernel.run(graph, sources)
    kernel.check(graph, sources, found)
    if name == "tc":
        found += 1
    else:
        vector = found.levels if name == "bfs" else found
        where, values = vector.to_coo()
        vector[int(where[values.argmax()])] = values.max() * 2 + 1
    with pytest.raises(VerificationError):
        kernel.check(graph, sources, found)


def test_sources_have_arcs(graph):
    sources = next(graph.sources(4, 1))
    assert len(set(sources)) == 4
    assert (np.diff(graph.matrix.to_csr()[0])[sources] > 0).all()
