"""Matrix Market files and generated graphs."""

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

import gbgpu as gb
from gbgpu.errors import FileFormatError, IndexOutOfBound, InvalidValue, NotImplementedException
from gbgpu.io import generate, matrixmarket
from gbgpu.io.files import atomic_file
from gbgpu.io.matrixmarket import mmread, mmwrite, read_coordinates

DATA = Path(__file__).resolve().parent.parent / "data"
GENERAL = "%%MatrixMarket matrix coordinate integer general\n"


def read(text: str):
    return read_coordinates(io.BytesIO(text.encode()))


def as_set(rows, cols, values):
    return sorted(zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True))


# -- reading, as arrays


FORMS = [
    (field, symmetry)
    for field in ("pattern", "integer", "real")
    for symmetry in ("general", "symmetric", "skew-symmetric")
    if (field, symmetry) != ("pattern", "skew-symmetric")
]


@pytest.mark.parametrize(("field", "symmetry"), FORMS)
def test_reads_what_scipy_reads(field, symmetry):
    random = np.random.default_rng(3)
    dense = random.integers(-9, 9, (20, 20)) * (random.random((20, 20)) < 0.3)
    rows, cols = np.nonzero(np.tril(dense, -1) if symmetry == "skew-symmetric" else np.tril(dense))
    values = dense[rows, cols] / (8 if field == "real" else 1)
    lines = [
        f"{i + 1} {j + 1}" + ("" if field == "pattern" else f" {v:g}")
        for i, j, v in zip(rows, cols, values, strict=True)
    ]
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% a comment\n\n20 20 {rows.size}\n" + "\n".join(lines)
    mine, theirs = read(text), scipy.io.mmread(io.StringIO(text), spmatrix=False)
    values = np.ones(mine.rows.size) if mine.values is None else mine.values
    assert values.dtype == theirs.dtype
    assert (mine.values is None) == (field == "pattern")
    assert as_set(mine.rows, mine.cols, values) == as_set(*theirs.coords, theirs.data)


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_reals_are_read_exactly(values):
    text = "%%MatrixMarket matrix coordinate real general\n1 99 " + f"{len(values)}\n"
    text += "".join(f"1 {k + 1} {value!r}\n" for k, value in enumerate(values))
    np.testing.assert_array_equal(read(text).values, np.array(values))


@pytest.mark.parametrize(
    "text", ["3 3 2\r\n1 1 5\r\n2 3 7\r\n", "3 3 2\n\n1 1 5\n\n 2\t3  +7 \n\n", "3 3 2\n1 1 5\n2 3 7"]
)
def test_blanks_and_line_ends(text):
    found = read(GENERAL + text)
    assert as_set(found.rows, found.cols, found.values) == [(0, 0, 5), (1, 2, 7)]


def test_extreme_integers_are_read_exactly():
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert read(GENERAL + f"1 2 2\n1 1 {low}\n1 2 {high}\n").values.tolist() == [low, high]


BAD = [
    ("", FileFormatError, 1),
    ("hello\n", FileFormatError, 1),
    ("%MatrixMarket matrix coordinate real general\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix coordinate quaternion general\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix array real general\n1 1\n1\n", NotImplementedException, 1),
    ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", NotImplementedException, 1),
    ("%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", NotImplementedException, 1),
    (GENERAL, FileFormatError, 1),
    (GENERAL + "% only a comment\n", FileFormatError, 2),
    (GENERAL + "3 3\n", FileFormatError, 2),
    (GENERAL + "3 -3 1\n1 1 1\n", FileFormatError, 2),
    (GENERAL + "3 3 99999999999999999999\n", FileFormatError, 2),
    (GENERAL.replace("general", "symmetric") + "3 2 1\n1 1 1\n", FileFormatError, 2),
    (GENERAL + "3 3 2\n1 1 5\n", FileFormatError, 4),
    (GENERAL + "3 3 1\n1 1 5\n2 2 5\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 2\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 2 3 4\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1\n5 1 2 3\n", FileFormatError, 3),  # six numbers, but not three a line
    (GENERAL + "3 3 2\n1 1 5\n1 2 3.5\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 2 9223372036854775808\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 x 7\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n% late\n1 2 7\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 0 7\n", IndexOutOfBound, 4),
    (GENERAL + "3 3 2\n1 1 5\n-1 2 7\n", IndexOutOfBound, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 4 7\n", IndexOutOfBound, 4),
    (GENERAL.replace("integer", "real") + "3 3 1\n1.5 1 5\n", FileFormatError, 3),
    (GENERAL.replace("integer", "real") + "3 3 1\n1 1 1D3\n", FileFormatError, 3),
    (GENERAL.replace("integer", "real") + "3 3 1\n1 1 1_0\n", FileFormatError, 3),
    (GENERAL.replace("integer", "pattern") + "3 3 1\n1 1 1\n", FileFormatError, 3),
    (GENERAL.replace("general", "skew-symmetric") + "3 3 1\n1 1 1\n", FileFormatError, 3),
]


@pytest.mark.parametrize(("text", "error", "line"), BAD)
def test_malformed_files_name_the_line(text, error, line):
    with pytest.raises(error, match=rf"^line {line}\b"):
        read(text)


def test_lines_are_counted_across_chunks(monkeypatch):
    monkeypatch.setattr(matrixmarket, "_CHUNK", 64)
    lines = [f"{k} {k} {k}" for k in range(1, 501)]
    assert read(GENERAL + "500 500 500\n" + "\n".join(lines)).values.tolist() == list(range(1, 501))
    lines[400] = "1 2 three"
    with pytest.raises(FileFormatError, match="^line 403:.*three"):
        read(GENERAL + "500 500 500\n" + "\n".join(lines))


@pytest.mark.parametrize("kept", [1, 5, 30, 1000, -9, -1])
def test_a_truncated_gzip_file_is_an_error(kept):
    text = GENERAL + "500 500 500\n" + "".join(f"{k} {k} {k * 7919 % 1009}\n" for k in range(1, 501))
    with pytest.raises(FileFormatError, match="line"):
        read_coordinates(io.BytesIO(gzip.compress(text.encode())[:kept]))


def test_a_damaged_gzip_file_is_an_error():
    packed = bytearray(gzip.compress((GENERAL + "1 1 1\n1 1 1\n").encode()))
    packed[-6] ^= 1  # the checksum
    with pytest.raises(FileFormatError, match="damaged"):
        read_coordinates(io.BytesIO(bytes(packed)))


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        mmread(tmp_path / "none.mtx")


# -- reading, as a Matrix


def test_the_fields_have_python_graphblas_types(devices):
    for field, value, dtype in (("pattern", "", "FP64"), ("integer", " 3", "INT64"), ("real", " 3", "FP64")):
        A = mmread(io.StringIO(f"%%MatrixMarket matrix coordinate {field} general\n2 3 1\n1 3{value}\n"), name="A")
        assert (A.dtype, A.shape, A.nvals, A.name) == (dtype, (2, 3), 1, "A")
        assert A.to_coo()[2].tolist() == [3 if value else 1]


@pytest.mark.parametrize("name", ["PGPgiantcompo", "luxembourg_osm"])
def test_shipped_graphs_have_their_published_counts(devices, name):
    n, edges = {"PGPgiantcompo": (10680, 24316), "luxembourg_osm": (114599, 119666)}[name]
    A = mmread(DATA / f"{name}.mtx.gz")
    assert (A.shape, A.nvals) == ((n, n), 2 * edges)


def test_sources_may_be_paths_and_file_objects(devices, tmp_path):
    text = GENERAL + "2 2 1\n2 1 4\n"
    path = tmp_path / "packed-but-not-named-so.mtx"
    path.write_bytes(gzip.compress(text.encode()))
    for source in (path, str(path), io.BytesIO(text.encode()), io.StringIO(text), gzip.open(path), path.open("rb")):
        assert mmread(source).to_coo()[2].tolist() == [4]


@pytest.mark.parametrize("field", ["pattern", "integer"])
def test_an_entry_twice_needs_an_operator(devices, field):
    value = "" if field == "pattern" else " 5"
    text = f"%%MatrixMarket matrix coordinate {field} general\n2 2 2\n1 2{value}\n1 2{value}\n"
    with pytest.raises(ValueError, match="dup_op"):
        mmread(io.StringIO(text))
    A = mmread(io.StringIO(text), dup_op=gb.binary.plus)
    assert A.to_coo()[2].tolist() == [2 if field == "pattern" else 10]


# -- writing


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("BOOL", [True, False, True]),
        ("INT32", [-(2**31), 0, 7]),
        ("INT64", [-(2**63), 2**63 - 1, 1]),
        ("FP32", [0.1, np.inf, -0.0]),
        ("FP64", [1 / 3, 1e-308, np.nan]),
        ("FP64", [1.0, 1.0, 1.0]),
        ("INT64", [1, 1, 1]),
    ],
)
def test_what_is_written_is_read(devices, tmp_path, dtype, values):
    A = gb.Matrix.from_coo([0, 1, 1], [2, 0, 1], values, dtype, nrows=3, ncols=4)
    for name in ("A.mtx", "A.mtx.gz"):
        mmwrite(tmp_path / name, A, comment="first\nsecond")
        B = mmread(tmp_path / name)
        assert B.shape == (3, 4)
        rows, cols, found = B.to_coo()
        assert (rows.tolist(), cols.tolist()) == ([0, 1, 1], [2, 0, 1])
        assert B.dtype == ("INT64" if dtype in ("BOOL", "INT32", "INT64") else "FP64")
        np.testing.assert_array_equal(found.astype(A.dtype.np_type), A.to_coo()[2])
    assert (tmp_path / "A.mtx.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert sorted(os.listdir(tmp_path)) == ["A.mtx", "A.mtx.gz"]


def test_symmetric_matrices_are_written_by_their_lower_triangle(devices, tmp_path):
    A = gb.Matrix.from_coo([0, 1, 2, 2], [1, 0, 2, 1], [3, 3, 4, 0], nrows=3, ncols=3)
    with pytest.raises(InvalidValue, match="symmetric"):
        mmwrite(tmp_path / "A.mtx", A, symmetry="symmetric")
    A = gb.Matrix.from_coo([0, 1, 2], [1, 0, 2], [3, 3, 4], nrows=3, ncols=3)
    mmwrite(tmp_path / "A.mtx", A, symmetry="symmetric")
    assert (tmp_path / "A.mtx").read_text().split("\n")[-4:-1] == ["3 3 2", "2 1 3", "3 3 4"]
    assert mmread(tmp_path / "A.mtx").isequal(A)
    B = gb.Matrix.from_coo([0, 1], [1, 0], [3, -3], nrows=3, ncols=3)
    mmwrite(tmp_path / "B.mtx", B, symmetry="skew-symmetric")
    assert mmread(tmp_path / "B.mtx").isequal(B)
    with pytest.raises(InvalidValue, match="symmetry"):
        mmwrite(tmp_path / "C.mtx", B, symmetry="odd")


def test_a_pattern_is_written_as_one(devices):
    stream = io.BytesIO()
    mmwrite(stream, gb.Matrix.from_coo([0], [1], True, nrows=2, ncols=2))
    assert stream.getvalue().startswith(b"%%MatrixMarket matrix coordinate pattern general\n")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt.gz"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic_file(path) as stream:
        stream.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.txt.gz"]
    with pytest.raises(FileNotFoundError) as error, atomic_file(tmp_path / "none" / "file"):
        pass
    assert error.value.filename == str(tmp_path / "none" / "file")


# -- generated graphs


def generated():
    weights = (1, 255)
    yield "rmat", generate.rmat_edges(9, 8, seed=1, weights=weights), True
    yield "rmat, arcs", generate.rmat_edges(9, 8, seed=1, weights=weights, symmetric=False), False
    yield "uniform", generate.uniform_edges(301, 8, seed=1, weights=weights), True
    yield "uniform, arcs", generate.uniform_edges(301, 8, seed=1, weights=weights, symmetric=False), False
    yield "road", generate.grid_road_edges(23, 0.7, seed=1, weights=weights), True


@pytest.mark.parametrize(
    ("name", "edges", "symmetric"), list(generated()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_generated_edges_are_simple_sorted_and_weighted_alike_both_ways(name, edges, symmetric):
    n, rows, cols, values = edges
    assert rows.dtype == cols.dtype == values.dtype == np.int64
    assert rows.size > n / 2
    assert (rows != cols).all()
    key = rows * n + cols
    assert (np.diff(key) > 0).all()  # sorted, and none twice
    assert rows.min() >= 0
    assert max(rows.max(), cols.max()) < n
    assert values.min() >= 1
    assert values.max() <= 255
    assert np.unique(values).size > 100
    both = np.isin(cols * n + rows, key)
    assert both.all() == symmetric
    if symmetric:
        np.testing.assert_array_equal(values[np.argsort(cols * n + rows)], values)


def test_a_seed_makes_one_graph():
    one, again, other = (generate.rmat_edges(8, 8, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[1], again[1])
    assert one[1].size != other[1].size or (one[1] != other[1]).any()
    assert one[3] is None


def test_rmat_has_hubs_and_uniform_has_none():
    hubs = np.bincount(generate.rmat_edges(12, 16, seed=1)[1])
    even = np.bincount(generate.uniform_edges(1 << 12, 16, seed=1)[1])
    assert hubs.max() > 10 * hubs.mean()
    assert even.max() < 3 * even.mean()
    unpermuted = np.bincount(generate.rmat_edges(12, 16, seed=1, permute=False)[1])
    assert unpermuted.argmax() == 0


def test_a_road_joins_neighbours_of_the_grid():
    n, rows, cols, _ = generate.grid_road_edges(7, 1.0, seed=1)
    assert (n, rows.size) == (49, 4 * 7 * 6)
    across, down = np.abs(rows % 7 - cols % 7), np.abs(rows // 7 - cols // 7)
    assert (across + down == 1).all()


@pytest.mark.parametrize(
    "edges",
    [
        generate.rmat_edges(0, 5, seed=1, weights=(1, 2)),
        generate.uniform_edges(0, 5, seed=1),
        generate.uniform_edges(1, 5, seed=1),
        generate.uniform_edges(9, 0, seed=1),
        generate.grid_road_edges(0, 1, seed=1),
        generate.grid_road_edges(1, 1, seed=1),
        generate.grid_road_edges(5, 0, seed=1),
    ],
)
def test_graphs_without_edges(edges):
    assert edges[1].size == edges[2].size == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: generate.rmat_edges(-1, seed=1),
        lambda: generate.rmat_edges(33, seed=1),
        lambda: generate.rmat_edges(4, -1, seed=1),
        lambda: generate.rmat_edges(4, seed=1, a=0.9, b=0.9),
        lambda: generate.rmat_edges(4, seed=1, weights=(5, 1)),
        lambda: generate.uniform_edges(-1, seed=1),
        lambda: generate.grid_road_edges(-1, seed=1),
        lambda: generate.grid_road_edges(4, 1.5, seed=1),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidValue, match="expected"):
        make()


def test_generated_matrices(devices):
    A = gb.io.rmat(7, 4, seed=1, name="A")
    n, rows, cols, _ = generate.rmat_edges(7, 4, seed=1)
    assert (A.shape, A.dtype, A.name) == ((n, n), "INT64", "A")
    np.testing.assert_array_equal(A.to_coo()[:2], (rows, cols))
    assert (A.to_coo()[2] == 1).all()
    B = gb.io.grid_road(9, 0.5, seed=1, weights=(1, 9), dtype="FP32")
    assert B.dtype == "FP32"
    np.testing.assert_array_equal(B.to_coo()[2], generate.grid_road_edges(9, 0.5, seed=1, weights=(1, 9))[3])
    assert (
        gb.io.uniform(50, 3, seed=1, symmetric=False).nvals
        == generate.uniform_edges(50, 3, seed=1, symmetric=False)[1].size
    )
