"""Graphalytics' files: the matrix, and what is wrong with a file is told with its name and line."""

import gzip
import re

import numpy as np
import pytest

import gbgpu as gb
from gbgpu.errors import FileFormatError, IndexOutOfBound

FILES = {
    "g.properties": "# a graph\ngraph.g.vertex-file = g.v\ngraph.g.edge-file = g.e\ngraph.g.directed = false\n"
    "graph.g.meta.vertices = 4\ngraph.g.meta.edges = 3\ngraph.g.edge-properties.names = weight\n",
    "g.v": "30\n2\n7\n900\n",
    "g.e": "2 7 0.5\n7 30 1.25\n2 900 3\n",
}


@pytest.fixture
def written(tmp_path):
    """A function that writes the files, some texts replaced in one of them: the path of the properties."""
    gb.init("cpu:2")

    def write(file="", old="", new=""):
        for name, text in FILES.items():
            assert name != file or old in text
            (tmp_path / name).write_text(text.replace(old, new) if name == file else text)
        return tmp_path / "g.properties"

    return write


def expected(*, directed=False, weights=(0.5, 1.25, 3)):
    dense = np.zeros((4, 4))
    for (i, j), w in zip(((0, 1), (1, 2), (0, 3)), weights, strict=True):
        dense[i, j] = w
    return dense if directed else dense + dense.T


def test_rows_are_in_the_order_of_ids(written):
    A = gb.io.read(written())
    assert (A.to_dense(0) == expected()).all()
    assert gb.io.read(written().with_name("g.v")).to_dense().tolist() == [2, 7, 30, 900]
    assert gb.io.read(written(), dtype="FP32").dtype == gb.dtypes.FP32


def test_directed_graphs_and_graphs_without_weights(written):
    assert (gb.io.read(written("g.properties", "false", "true")).to_dense(0) == expected(directed=True)).all()
    path = written("g.properties", "graph.g.edge-properties.names = weight", "")
    path.with_name("g.e").write_text("2 7\n7 30\n2 900\n")
    assert (gb.io.read(path).to_dense(0) == expected(weights=(1, 1, 1))).all()


def test_the_property_that_is_the_weight(written):
    names = "graph.g.edge-properties.names = colour, weight\ngraph.g.sssp.weight-property = weight\n"
    path = written("g.properties", "graph.g.edge-properties.names = weight\n", names)
    path.with_name("g.e").write_text("2 7 8 0.5\n7 30 8 1.25\n2 900 8 3\n")
    assert (gb.io.read(path).to_dense(0) == expected()).all()


def test_files_that_are_packed(written):
    path = written("g.properties", "= g.e", "= g.e.gz")
    path.with_name("g.e.gz").write_bytes(gzip.compress(FILES["g.e"].encode()))
    assert (gb.io.read(path).to_dense(0) == expected()).all()


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("g.v", "7", "seven", "g.v: line 3"),
        ("g.v", "7", "30", "g.v: line 3: expected each vertex once"),
        ("g.v", "7", "-7", "g.v: line 3: expected ids"),
        ("g.v", "7", f"{2**63 - 1}", "g.v: line 3: expected ids"),
        ("g.v", "7\n", "", "line 5: expected meta.vertices = 3"),
        ("g.e", "7 30", "8 30", "g.e: line 2: expected an end that is in g.v"),
        ("g.e", "7 30", "7 7", "g.e: line 2: expected two different ids"),
        ("g.e", "7 30", "-7 30", "g.e: line 2: expected a row id from 0"),
        ("g.e", "1.25", "", "g.e: line 2"),
        ("g.e", "1.25", "x", "g.e: line 2"),
        ("g.e", "2 900 3\n", "", "line 6: expected meta.edges = 2"),
        ("g.e", "7 30", "7 2", "7 2 on lines 1 and 2|2 7 on lines 1 and 2"),
        ("g.properties", "= false", "= maybe", "line 4: expected directed = true"),
        ("g.properties", "= false", "false", 'line 4: expected "key = value"'),
        ("g.properties", "graph.g.directed = false", "", "a property graph.NAME.directed"),
        ("g.properties", "= g.v", "= ../g.v", "line 2: expected the name of a file"),
        ("g.properties", "graph.g.meta.edges", "graph.h.meta.edges", "line 6: expected properties of one graph, g"),
    ],
)
def test_what_is_wrong_is_told(written, file, old, new, told):
    with pytest.raises((FileFormatError, IndexOutOfBound, ValueError)) as caught:
        gb.io.read(written(file, old, new))
    assert re.search(told, str(caught.value)), str(caught.value)
