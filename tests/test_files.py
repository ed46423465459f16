"""Edge lists, DIMACS files, gbgpu's own form, SciPy's, files by name, and graphs of NetworkX."""

import bz2
import gzip
import io
import json
import lzma
import os
import stat
import struct
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import gbgpu as gb
import gbgpu.io.text
from gbgpu.balance import constant
from gbgpu.errors import FileFormatError, IndexOutOfBound, InvalidValue, NotImplementedException
from gbgpu.io import binary, files

TYPES = ["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP32", "FP64"]


def bytes_of(text: str) -> io.BytesIO:
    return io.BytesIO(text.encode())


def entries(A) -> list:
    return list(zip(*(array.tolist() for array in A.to_coo()), strict=True))


def extremes(dtype: str) -> np.ndarray:
    """Three values of a type, the outermost among them."""
    kind = gb.dtypes.lookup_dtype(dtype)
    if kind.kind == "b":
        return np.array([True, False, True])
    if kind.kind == "f":
        return np.array([0.1, -np.inf, -0.0], kind.np_type)
    limits = np.iinfo(kind.np_type)
    return np.array([limits.max, limits.min, 7], kind.np_type)


@st.composite
def matrices(draw, square=False):
    """A Matrix of any type and of shape up to 8 x 8."""
    dtype = gb.dtypes.lookup_dtype(draw(st.sampled_from(TYPES))).np_type
    nrows = draw(st.integers(0, 8))
    ncols = nrows if square else draw(st.integers(0, 8))
    ids = st.tuples(st.integers(0, max(nrows - 1, 0)), st.integers(0, max(ncols - 1, 0)))
    places = sorted(draw(st.sets(ids, max_size=20))) if nrows and ncols else []
    values = draw(st.lists(values_of(dtype), min_size=len(places), max_size=len(places)))
    rows, cols = np.array(places, np.int64).reshape(-1, 2).T
    return gb.Matrix.from_coo(rows, cols, np.array(values, dtype), nrows=nrows, ncols=ncols)


def values_of(dtype: np.dtype):
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "f":
        return st.floats(width=8 * dtype.itemsize, allow_nan=False)
    limits = np.iinfo(dtype)
    return st.integers(int(limits.min), int(limits.max)) | st.just(1)


# -- edge lists


def test_edge_lists(devices):
    text = "# A graph\n# Nodes: 9 Edges: 3\n0\t3\n\n  3 1  \r\n% late\n# later\n1 0"
    A = gb.io.read_edgelist(bytes_of(text), name="A")
    assert (A.shape, A.dtype, A.name) == ((9, 9), "FP64", "A")
    assert entries(A) == [(0, 3, 1), (1, 0, 1), (3, 1, 1)]
    B = gb.io.read_edgelist(bytes_of(text), directed=False, dtype=bool, nrows=5)
    assert (B.shape, B.dtype, B.nvals) == ((5, 5), "BOOL", 6)
    assert B.isequal(gb.Matrix.from_coo([0, 3, 1, 3, 1, 0], [3, 1, 0, 0, 3, 1], True, nrows=5, ncols=5))


@pytest.mark.parametrize(
    ("words", "dtype", "values"),
    [
        (["5", "-7"], "INT64", [5, -7]),
        (["5", "2.5"], "FP64", [5, 2.5]),
        (["5", "18446744073709551615"], "UINT64", [5, 2**64 - 1]),
        (["-5", "18446744073709551615"], "FP64", [-5, 2.0**64]),
        (["18446744073709551615", "-5"], "FP64", [2.0**64, -5]),
        (["5", "1" + "0" * 30], "FP64", [5, 1e30]),
        (["inf", "5"], "FP64", [np.inf, 5]),
    ],
)
def test_weights_have_the_type_that_they_need(devices, words, dtype, values):
    A = gb.io.read_edgelist(bytes_of("".join(f"{k} 1 {word}\n" for k, word in enumerate(words))))
    assert (A.dtype, A.to_coo()[2].tolist()) == (dtype, values)


def test_the_type_of_weights_can_be_told(devices):
    A = gb.io.read_edgelist(bytes_of("0 1 3\n1 0 4\n"), dtype="FP32")
    assert (A.dtype, A.to_coo()[2].tolist()) == ("FP32", [3, 4])
    A = gb.io.read_edgelist(bytes_of("0 1 3\n1 0 -4\n"), dtype="INT8")
    assert (A.dtype, A.to_coo()[2].tolist()) == ("INT8", [3, -4])
    with pytest.raises(InvalidValue, match="300"):
        gb.io.read_edgelist(bytes_of("0 1 300\n"), dtype="INT8")
    with pytest.raises(FileFormatError, match="line 2"):
        gb.io.read_edgelist(bytes_of("0 1 3\n1 0 2.5\n"), dtype="INT8")


def test_edges_named_twice(devices):
    assert entries(gb.io.read_edgelist(bytes_of("0 1\n1 0\n0 1\n"), directed=False)) == [(0, 1, 1), (1, 0, 1)]
    assert entries(gb.io.read_edgelist(bytes_of("0 1\n0 1\n1 0\n"), dup_op="plus")) == [(0, 1, 2), (1, 0, 1)]
    with pytest.raises(ValueError, match="dup_op"):
        gb.io.read_edgelist(bytes_of("0 1 3\n0 1 4\n"))
    assert entries(gb.io.read_edgelist(bytes_of("0 1 3\n0 1 4\n1 1 0\n"), dup_op="max")) == [(0, 1, 4), (1, 1, 0)]


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_edge_list_without_edges(devices, text):
    A = gb.io.read_edgelist(bytes_of(text))
    assert (A.shape, A.nvals) == ((0, 0), 0)
    assert gb.io.read_edgelist(bytes_of(text), nrows=3).shape == (3, 3)


BAD_EDGES = [
    ("0 1\n1\n", {}, FileFormatError, 2),
    ("0 1\n1 2 3\n", {}, FileFormatError, 2),
    ("0 1\n1 2 3\n", {"weighted": False}, FileFormatError, 2),
    ("0 1 5\n1 2\n", {}, FileFormatError, 2),
    ("0 1\n", {"weighted": True}, FileFormatError, 1),
    ("0 1 5 9\n", {}, FileFormatError, 1),
    ("# c\n0 x\n", {}, FileFormatError, 2),
    ("0 1.5\n", {}, FileFormatError, 1),
    ("0 1 5\n1 2 x\n", {}, FileFormatError, 2),
    ("0 1\n-1 2\n", {}, IndexOutOfBound, 2),
    ("0 1\n\n3 5\n", {"nrows": 5}, IndexOutOfBound, 3),
    ("0 99999999999999999999\n", {}, IndexOutOfBound, 1),
]


@pytest.mark.parametrize(("text", "options", "error", "line"), BAD_EDGES)
def test_malformed_edge_lists_name_the_line(reader, text, options, error, line):
    with pytest.raises(error, match=rf"^line {line}\b"):
        gb.io.read_edgelist(bytes_of(text), **options)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["A.txt", "A.tsv.gz", "A.gr", "A.gr.bz2", "A.gbgpu", "A.gbgpu.gz", "A.npz", "A.mtx"])
def test_every_form_keeps_every_type(devices, tmp_path, dtype, name):
    A = gb.Matrix.from_coo([0, 1, 1], [2, 0, 1], extremes(dtype), nrows=4, ncols=4)
    gb.io.write(tmp_path / name, A)
    as_dtype = {"dtype": dtype} if gb.io.form_of(name) in ("edgelist", "dimacs") else {}
    B = gb.io.read(tmp_path / name, name="B", **as_dtype)
    assert (B.name, B.shape) == ("B", (4, 4))
    assert B.dtype == dtype or name == "A.mtx"
    rows, cols, values = B.to_coo()
    assert (rows.tolist(), cols.tolist()) == ([0, 1, 1], [2, 0, 1])
    np.testing.assert_array_equal(values.astype(A.dtype.np_type), extremes(dtype))
    assert os.listdir(tmp_path) == [name]


def test_undirected_edge_lists_are_written_once(devices, tmp_path):
    path = tmp_path / "A.txt"
    A = gb.Matrix.from_coo([0, 1, 1, 2, 2], [1, 0, 2, 1, 2], [5, 5, 6, 6, 7], nrows=3, ncols=3)
    gb.io.write_edgelist(path, A, directed=False, comment="one\ntwo")
    assert path.read_text() == "# Nodes: 3 Edges: 3\n# one\n# two\n0 1 5\n1 2 6\n2 2 7\n"
    assert gb.io.read_edgelist(path, directed=False).isequal(A)
    gb.io.write_edgelist(path, A, directed=False, weighted=False)
    assert path.read_text() == "# Nodes: 3 Edges: 3\n0 1\n1 2\n2 2\n"
    with pytest.raises(InvalidValue, match="symmetric"):
        gb.io.write_edgelist(path, gb.Matrix.from_coo([0], [1], nrows=2, ncols=2), directed=False)
    with pytest.raises(InvalidValue, match="square"):
        gb.io.write_edgelist(path, gb.Matrix.from_coo([0], [1], nrows=1, ncols=2))
    assert os.listdir(tmp_path) == ["A.txt"]


# -- DIMACS


def test_dimacs(devices):
    text = "c a graph\n\np sp 4 3\nc more\na 1 2 17\na 4 1 3\n\na 2 2 0\nc end\n"
    A = gb.io.read_dimacs(bytes_of(text), name="A")
    assert (A.shape, A.dtype, A.name) == ((4, 4), "INT64", "A")
    assert entries(A) == [(0, 1, 17), (1, 1, 0), (3, 0, 3)]
    assert gb.io.read_dimacs(bytes_of(text), dtype="FP32").dtype == "FP32"
    assert entries(gb.io.read_dimacs(bytes_of(text.replace("17", "1.5"))))[0] == (0, 1, 1.5)
    twice = bytes_of("p sp 2 2\na 1 2 9\na 1 2 4\n")
    assert entries(gb.io.read_dimacs(twice, dup_op=gb.binary.min)) == [(0, 1, 4)]


BAD_ARCS = [
    ("", FileFormatError, 1),
    ("c only\n", FileFormatError, 1),
    ("p max 4 3\n", FileFormatError, 1),
    ("c\np sp 4\n", FileFormatError, 2),
    ("p sp 4 x\n", FileFormatError, 1),
    ("p sp 4 99999999999999999999\n", FileFormatError, 1),
    ("a 1 2 3\np sp 4 1\n", FileFormatError, 1),
    ("p sp 4 2\na 1 2 3\n", FileFormatError, 3),
    ("p sp 4 1\na 1 2 3\na 2 3 4\n", FileFormatError, 3),
    ("p sp 4 1\nb 1 2 3\n", FileFormatError, 2),
    ("p sp 4 1\na1 2 3\n", FileFormatError, 2),
    ("p sp 4 1\na 1 2\n", FileFormatError, 2),
    ("p sp 4 1\na 1 2 3 4\n", FileFormatError, 2),
    ("p sp 4 1\na 1 2 x\n", FileFormatError, 2),
    ("p sp 4 1\na 1 x 3\n", FileFormatError, 2),
    ("p sp 4 1\na 0 2 3\n", IndexOutOfBound, 2),
    ("p sp 4 1\na 1 5 3\n", IndexOutOfBound, 2),
]


@pytest.mark.parametrize(("text", "error", "line"), BAD_ARCS)
def test_malformed_dimacs_files_name_the_line(reader, text, error, line):
    with pytest.raises(error, match=rf"^line {line}\b"):
        gb.io.read_dimacs(bytes_of(text))


# -- gbgpu's own form


def saved(what) -> bytes:
    stream = io.BytesIO()
    gb.io.save(stream, what)
    return stream.getvalue()


@given(matrices())
def test_saved_matrices_come_back(A):
    B = gb.io.load(io.BytesIO(saved(A)))
    assert B.isequal(A, check_dtype=True)
    assert saved(B) == saved(A)


@given(matrices(square=True))
def test_text_forms_bring_matrices_back(A):
    for form in ("edgelist", "dimacs"):
        stream = io.BytesIO()
        getattr(gb.io, f"write_{form}")(stream, A)
        read = getattr(gb.io, f"read_{form}")
        assert read(io.BytesIO(stream.getvalue()), dtype=A.dtype).isequal(A, check_dtype=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ids", [[0, 3, 9], [0, 1, 2]])
def test_saved_vectors_come_back(devices, tmp_path, dtype, ids):
    v = gb.Vector.from_coo(ids, extremes(dtype), size=10 if ids[2] == 9 else 3)
    gb.io.write(tmp_path / "v.gbgpu", v)
    w = gb.io.read(tmp_path / "v.gbgpu", name="w")
    assert w.name == "w"
    assert w.isequal(v, check_dtype=True)
    x = gb.io.load(io.BytesIO(saved(gb.Vector(dtype, 7))))
    assert (x.size, x.nvals, x.dtype) == (7, 0, dtype)


def test_loaded_objects_work(devices):
    """Products, masks and writes: blocks that are parts of one array are blocks like others."""
    A = gb.io.uniform(500, 5, seed=1, weights=(1, 9), symmetric=False)
    v = gb.Vector.from_dense(np.arange(500.0))
    B, w = gb.io.load(io.BytesIO(saved(A))), gb.io.load(io.BytesIO(saved(v)))
    x, y = gb.Vector(float, 500), gb.Vector(float, 500)
    x << gb.semiring.min_plus(B @ w)
    y << gb.semiring.min_plus(A @ v)
    assert x.isequal(y)
    x << gb.semiring.min_plus(w @ B)
    y << gb.semiring.min_plus(v @ A)
    assert x.isequal(y)
    w(w.V, gb.replace) << w.apply(gb.unary.ainv)
    v(v.V, gb.replace) << v.apply(gb.unary.ainv)
    assert w.isequal(v)
    assert gb.io.load(io.BytesIO(saved(A))).isequal(B)


def test_what_is_known_of_a_matrix_is_kept(devices):
    A = gb.io.rmat(6, 4, seed=1)
    stored = saved(A)
    header = binary._header(stored[:64])
    assert header.flags == binary._ISO | binary._SYMMETRIC
    assert len(stored) < 64 + 4 * (A.nrows + 1 + A.nvals) + 3 * 64  # 32-bit ids, and one value
    B = gb.io.load(io.BytesIO(stored))
    assert B._session.known_symmetric(B)
    assert B.isequal(A, check_dtype=True)
    minus = gb.Matrix.from_coo([0, 1], [1, 0], [0.0, -0.0], nrows=2, ncols=2)
    assert not binary._header(saved(minus)[:64]).flags  # 0 and -0 are not one value
    nan = gb.Matrix.from_coo([0, 1], [1, 0], [np.nan, np.nan], nrows=2, ncols=2)
    assert binary._header(saved(nan)[:64]).flags == binary._ISO


def sealed(data: bytearray) -> io.BytesIO:
    """A file whose checksums are right: anybody can compute them."""
    data[56:60] = struct.pack("<I", zlib.crc32(data[64:]))
    data[60:64] = struct.pack("<I", zlib.crc32(data[:60]))
    return io.BytesIO(bytes(data))


def small() -> bytes:
    return saved(gb.Matrix.from_coo([0, 1, 1], [2, 0, 1], [1.5, 2.5, 3.5], nrows=3, ncols=3))


@pytest.mark.parametrize("length", [0, 7, 8, 40, 63, 64, 100, 200, -65, -1])
def test_files_that_were_cut_off_are_refused(tmp_path, length):
    path = tmp_path / "A.gbgpu"
    path.write_bytes(small()[:length])
    for source in (path, io.BytesIO(path.read_bytes()), io.BytesIO(gzip.compress(path.read_bytes()))):
        with pytest.raises(FileFormatError, match="expected"):
            gb.io.load(source)


def test_longer_files_are_refused(tmp_path):
    path = tmp_path / "A.gbgpu"
    path.write_bytes(small() + b"\0")
    for source in (path, io.BytesIO(path.read_bytes()), io.BytesIO(gzip.compress(path.read_bytes()))):
        with pytest.raises(FileFormatError, match="expected"):
            gb.io.load(source)


@pytest.mark.parametrize("place", range(0, 60))
def test_a_damaged_header_is_refused(place):
    data = bytearray(small())
    data[place] ^= 0x10
    with pytest.raises(FileFormatError, match="expected"):
        gb.io.load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize(
    ("section", "number", "value"),
    [(0, 0, 1), (0, 1, -1), (0, 1, 4), (0, 3, 2), (1, 0, 3), (1, 1, -1), (1, 2, 1 << 30), (1, 1, 1), (1, 1, 2)],
)
def test_offsets_and_ids_that_lead_outside_are_refused(section, number, value):
    """Or that do not ascend."""
    data = bytearray(small())
    place = binary._header(bytes(data[:64])).places()[section] + 4 * number
    data[place : place + 4] = np.int32(value).tobytes()
    with pytest.raises(FileFormatError, match="written"):
        gb.io.load(io.BytesIO(bytes(data)))
    with pytest.raises(FileFormatError, match="from 0 to|ascend"):
        gb.io.load(sealed(data))


def test_offsets_whose_differences_wrap_are_refused():
    data = bytearray(saved(gb.Matrix.from_coo([0, 1, 1], [2, 0, 1], [1.5, 2.5, 3.5], nrows=4, ncols=3)))
    data[64:84] = np.array([0, 2**31 - 1, -5, 3, 3], np.int32).tobytes()
    with pytest.raises(FileFormatError, match="ascend"):
        gb.io.load(sealed(data))


FULL = gb.io.binary._FULL
WRONG = {
    "more rows": (24, "Q", 5_000_000),
    "fewer rows": (24, "Q", 2),
    "more columns than ids have bytes for": (32, "Q", 2**40),
    "too many columns": (32, "Q", 2**60),
    "more entries": (40, "Q", 4),
    "more entries than places": (40, "Q", 10),
    "no end": (40, "Q", 2**64 - 1),
    "another end": (48, "Q", 2**64 - 1),
    "a full matrix": (11, "B", FULL),
    "an unknown flag": (11, "B", 8),
    "kind 0": (10, "B", 0),
    "a vector": (10, "B", 1),
    "an unknown kind": (10, "B", 3),
    "ids of 8 bytes": (12, "B", 8),
    "ids of 3 bytes": (12, "B", 3),
    "offsets of 0 bytes": (13, "B", 0),
    "something between": (14, "H", 1),
    "an unknown type": (16, "8s", b"FP65"),
    "no text": (16, "8s", b"\xff" * 8),
    "a type by another name": (16, "8s", b"float"),
    "an older version": (8, "H", 1),
}


@pytest.mark.parametrize(("place", "form", "value"), WRONG.values(), ids=WRONG)
def test_headers_that_cannot_be_are_refused(place, form, value):
    data = bytearray(small())
    struct.pack_into("<" + form, data, place, value)
    for source in (sealed(data), io.BytesIO(gzip.compress(sealed(data).getvalue()))):
        with pytest.raises(FileFormatError, match="expected"):
            gb.io.load(source)


def test_more_rows_than_a_vector_has_values():
    data = bytearray(saved(gb.Vector.from_dense([1.0, 2.0])))
    struct.pack_into("<Q", data, 24, 5_000_000)
    with pytest.raises(FileFormatError):
        gb.io.load(sealed(data))


def test_a_false_claim_of_symmetry_counts_for_nothing(reader, devices):
    random = np.random.default_rng(1)
    dense = random.integers(0, 3, (40, 40)) * (random.random((40, 40)) < 0.3)
    both = dense + dense.T
    i, j = (ids[3] for ids in np.nonzero(np.tril(both, -1)))
    wrong = [dense, np.triu(both), np.tril(both, -1)]
    for change in (1, -both[i, j]):
        for place in ((i, j), (j, i)):
            wrong.append(both.copy())
            wrong[-1][place] += change
    for held in (both, np.zeros_like(both), np.eye(40, dtype=int), *wrong):
        for values in (held, held != 0, held.astype(float)):
            A = gb.Matrix.from_dense(values, missing_value=0)
            data = bytearray(saved(A))
            data[11] |= binary._SYMMETRIC
            B = gb.io.load(sealed(data))
            assert B.isequal(A, check_dtype=True)
            assert B._session.known_symmetric(B) == np.array_equal(values, values.T)
            assert B.T.new().isequal(A.T.new())


def peak(call) -> int:
    """Bytes that a call takes at most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_follows_the_bytes_and_not_the_header(tmp_path):
    header = binary.Header(2, 0, gb.dtypes.INT64, 2**40, 5, 2**41).pack()
    (tmp_path / "A.gbgpu").write_bytes(header)

    def refused(source):
        with pytest.raises(FileFormatError, match="cut off"):
            gb.io.load(source)

    for source in (tmp_path / "A.gbgpu", io.BytesIO(header), io.BytesIO(gzip.compress(header))):
        assert peak(lambda source=source: refused(source)) < 1 << 20


def test_a_vector_of_one_value_takes_none(devices):
    header = binary.Header(1, binary._ISO | FULL, gb.dtypes.INT64, 2**40, 1, 2**40)
    data = bytearray(header.pack() + np.int64(7).tobytes() + bytes(56))
    if devices.permutes:
        with pytest.raises(gb.errors.OutOfMemory):
            gb.io.load(sealed(data))
        return
    assert peak(lambda: gb.io.load(sealed(data))) < 1 << 20
    v = gb.io.load(sealed(data))
    assert (v.size, v.nvals, v[2**39].new().value) == (2**40, 2**40, 7)


PACKERS = [gzip, bz2, lzma]
TEXTS = {
    "mmread": b"%%MatrixMarket matrix coordinate integer general\n" + b"%\n" * 50_000 + b"2 2 1\n1 2 3\n",
    "read_dimacs": b"c\n" * 50_000 + b"p sp 2 1\na 1 2 3\n",
    "read_edgelist": b"#\n" * 50_000 + b"0 1 3\n",
}


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("reader", [*TEXTS, "load", "read_npz"])
def test_what_a_packed_file_may_become_has_a_limit(packer, reader):
    A = gb.Matrix.from_coo([0], [1], 3, nrows=2, ncols=2)
    stream = io.BytesIO()
    if reader == "load":
        gb.io.save(stream, gb.Vector.from_coo(np.arange(40_000), np.zeros(40_000), size=50_000))
    elif reader == "read_npz":
        gb.io.write_npz(stream, gb.Matrix.from_coo(np.arange(9_000), np.arange(9_000), 3))
    data = packer.compress(TEXTS.get(reader, stream.getvalue()))
    read = getattr(gb.io, reader)
    with pytest.raises(FileFormatError, match="limit="):
        read(io.BytesIO(data), limit=100_000)
    found = read(io.BytesIO(data), limit=1_000_000)
    assert reader not in TEXTS or found.isequal(A)
    assert read(io.BytesIO(data)).nvals == found.nvals


class Endless(io.RawIOBase):
    """A file object that never ends, and counts what it gave."""

    def __init__(self, piece: bytes):
        self.piece, self.given = piece, 0

    def readable(self):
        return True

    def read(self, size=-1):
        assert size > 0, "all of it"
        found = (self.piece * (size // len(self.piece) + 1))[:size]
        self.given += len(found)
        return found


@pytest.mark.parametrize("reader", [*TEXTS, "load", "read_npz"])
@pytest.mark.parametrize("piece", [b"\0", b"1 1 1\n", gzip.compress(b"")], ids=["line", "lines", "members"])
def test_what_has_no_end_is_read_to_the_limit(reader, piece, monkeypatch):
    read, source = getattr(gb.io, reader), Endless(piece)
    with pytest.raises(FileFormatError, match="at most 200000 bytes.*limit="):
        read(source, limit=200_000)
    assert source.given < 400_000
    monkeypatch.setattr(gb.io.files, "_LEAST", 300_000)
    with pytest.raises(FileFormatError, match="at most 300000 bytes"):
        read(Endless(piece))


@pytest.mark.parametrize("reader", [*TEXTS, "load", "read_npz"])
def test_devices_and_pipes_are_read_to_the_limit(reader, tmp_path):
    def refused(source):
        with pytest.raises(FileFormatError):
            getattr(gb.io, reader)(source, limit=1 << 20)

    with open("/dev/zero", "rb") as device:
        for source in ("/dev/zero", device):
            assert peak(lambda source=source: refused(source)) < 1 << 25
    os.mkfifo(pipe := tmp_path / "pipe")
    given = []

    def endless():
        with suppress(BrokenPipeError), open(pipe, "wb", buffering=0) as stream:
            while True:
                given.append(stream.write(b"%\n" * 5000))

    thread = threading.Thread(target=endless)
    thread.start()
    refused(pipe)
    thread.join()
    assert sum(given) < 1 << 21


def test_a_file_larger_than_the_limit_is_refused(tmp_path):
    (tmp_path / "A.txt").write_text("0 1\n" * 1000)
    for source in (tmp_path / "A.txt", bytes_of("0 1\n" * 1000)):
        with pytest.raises(FileFormatError, match="at most 3999 bytes; came 4000"):
            gb.io.read_edgelist(source, limit=3999)
    with open(tmp_path / "A.txt") as file:
        assert gb.io.read_edgelist(file, limit=4000).nvals == 1


@pytest.mark.parametrize("error", [TimeoutError("late"), EOFError("late"), OSError("late"), ValueError("late")])
@pytest.mark.parametrize("form", ["mtx", "mtx.gz", "mtx.xz", "gbgpu.gz", "npz"])
def test_what_a_signal_raises_is_no_damage(tmp_path, monkeypatch, error, form):
    """The handler runs while a read is under way, and what it raises is not the file's."""

    def handler():
        raise error

    path = tmp_path / f"A.{form}"
    gb.io.write(path, gb.io.rmat(4, 4, seed=1))
    peeked = io.BufferedReader.read
    assert gb.io.read(path).nrows == 16

    class Interrupted(io.BufferedReader):
        def read(self, *size):
            handler()
            return peeked(self, *size)

        def readinto(self, room):
            return handler()

    monkeypatch.setattr(files.io, "BufferedReader", Interrupted)
    monkeypatch.setattr(files, "open", lambda path, mode: Interrupted(io.FileIO(path)), raising=False)
    with pytest.raises(type(error)) as caught:
        gb.io.read(path)
    assert caught.value is error


def test_the_limit_is_in_proportion_to_the_file(monkeypatch):
    monkeypatch.setattr(gb.io.files, "_LEAST", 1000)
    text = TEXTS["mmread"]
    assert gb.io.mmread(io.BytesIO(text)).nvals == 1  # as it is, nothing bursts
    with pytest.raises(FileFormatError, match="line [0-9]+: .*limit="):
        gb.io.mmread(io.BytesIO(gzip.compress(text)))
    numbers = b"".join(b"%d %d %d\n" % (k + 1, k + 1, k * k % 1009) for k in range(9000))
    text = b"%%MatrixMarket matrix coordinate integer general\n9000 9000 9000\n" + numbers
    assert gb.io.mmread(io.BytesIO(gzip.compress(text))).nvals == 9000


@pytest.mark.parametrize(
    ("reader", "text", "line"),
    [
        ("mmread", b"%%MatrixMarket matrix coordinate real general\n200000000 1 0\n", "line 2"),
        ("mmread", b"%%MatrixMarket matrix coordinate real general\n%\n1152921504606846975 1 0\n", "line 3"),
        ("mmread", b"%%MatrixMarket matrix array real general\n1152921504606846975 0\n", "line 2"),
        ("read_dimacs", b"p sp 200000000 0\n", "line 1"),
        ("read_edgelist", b"0 200000000\n", "edge list"),
        ("read_edgelist", b"# Nodes: 200000000\n", "edge list"),
    ],
)
def test_rows_without_entries_have_a_limit(reader, text, line):
    """They take memory, though a file has one word for all of them."""

    def refused():
        with pytest.raises(FileFormatError, match=f"{line}: .*rows.*limit="):
            getattr(gb.io, reader)(io.BytesIO(text))

    assert peak(refused) < 1 << 26
    small = text.replace(b"200000000", b"1000").replace(b"1152921504606846975", b"1000")
    with pytest.raises(FileFormatError, match="limit=(32000|32032)"):
        getattr(gb.io, reader)(io.BytesIO(small), limit=20_000)
    assert getattr(gb.io, reader)(io.BytesIO(small), limit=32_032).nrows in (1000, 1001)


def test_rows_that_the_caller_asks_for_have_none():
    assert gb.io.read_edgelist(bytes_of("0 1\n"), nrows=1000, limit=100).nrows == 1000


def test_disordered_positions_and_odd_booleans_are_refused():
    for what, section, byte in (
        (gb.Vector.from_coo([0, 2, 5], [1, 2, 3], size=6), 1, 3),
        (gb.Vector.from_coo([0, 2, 5], [True, False, True], size=6), 2, 2),
    ):
        data = bytearray(saved(what))
        data[binary._header(bytes(data[:64])).places()[section]] = byte
        with pytest.raises(FileFormatError, match="ascend|booleans"):
            gb.io.load(sealed(data))


def test_other_files_and_newer_versions_are_refused(monkeypatch):
    with pytest.raises(FileFormatError, match="gb.io.read"):
        gb.io.load(bytes_of("%%MatrixMarket matrix coordinate real general\n" * 3))
    newer = small()
    monkeypatch.setattr(binary, "VERSION", 0)
    with pytest.raises(FileFormatError, match="version"):
        gb.io.load(io.BytesIO(newer))
    with pytest.raises(TypeError, match="Matrix"):
        gb.io.save(io.BytesIO(), 3)


@pytest.mark.parametrize("name", ["a.dat", "a.txt.gz", "a.txt", "a.mtx", "a.gr", "a"])
@pytest.mark.parametrize(("sign", "word"), [(",", "commas"), (";", "semicolons")])
def test_lists_with_commas_say_how_to_go_on(reader, tmp_path, name, sign, word):
    pack = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(pack(f"0{sign}1{sign}2\n1{sign}2{sign}3\n".encode()))
    with pytest.raises(FileFormatError, match=rf"^line 1: .*Hint: .*not by {word}: tr '{sign}' ' ' <FILE >NEW"):
        gb.io.read(tmp_path / name)
    (tmp_path / "NEW.txt").write_text("0 1 2\n1 2 3\n")  # what that leaves
    assert gb.io.read(tmp_path / "NEW.txt").nvals == 2


@pytest.mark.parametrize("text", ["0, 1", "0; 1", "0 1, 2", "0 1 2.5;"])
def test_blanks_beside_commas(reader, text):
    with pytest.raises(FileFormatError, match="^line 1: .*not by (commas|semicolons)"):
        gb.io.read_edgelist(bytes_of(f"{text}\n"))


@pytest.mark.parametrize("name", ["a.txt", "a.mtx", "a.gr"])
def test_a_byte_order_mark_is_said_to_be_the_trouble(reader, tmp_path, name):
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf0 1\n")
    with pytest.raises(FileFormatError, match=r"^line 1: .*byte order mark: tail -c \+4 FILE >NEW"):
        gb.io.read(tmp_path / name)


def test_other_lines_get_no_hint_of_commas():
    with pytest.raises(FileFormatError, match="is it a Matrix Market file"):
        gb.io.mmread(bytes_of("0 1 2\n"))


# -- by name


def test_names_choose_the_form(tmp_path):
    forms = {"a.mtx": "mtx", "a.MTX.gz": "mtx", "a.gbgpu": "gbgpu", "a.gr.xz": "dimacs", "a.b.el": "edgelist"}
    forms |= {"a.npz": "npz", "a": None, "a.gz": None, "mtx": None, "a.csv": None}
    assert {name: gb.io.form_of(name) for name in forms} == forms
    with pytest.raises(InvalidValue, match="mtx"):
        gb.io.write(tmp_path / "a.csv", gb.Matrix(int, 1, 1))
    with pytest.raises(FileNotFoundError):
        gb.io.read(tmp_path / "a.gbgpu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["A.mtx", "A.gr", "A.txt", "A.gbgpu", "A.npz"])
def test_a_failing_writer_leaves_nothing(tmp_path, monkeypatch, name):
    A = gb.Matrix.from_coo([0], [1], nrows=2, ncols=2)
    (tmp_path / name).write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="space"):
        gb.io.write(tmp_path / name, A)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"old"}


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [True, False])
def test_every_npz_form_is_read(devices, tmp_path, format, compressed):
    random = np.random.default_rng(1)
    A = scipy.sparse.random_array((12, 8), density=0.3, rng=random).asformat(format)
    B = A if format != "bsr" else scipy.sparse.bsr_array(A, blocksize=(3, 2))
    for path, held in (("A.npz", A), ("B.npz", B), ("C.npz", scipy.sparse.csr_array((3, 4)).asformat(format))):
        scipy.sparse.save_npz(tmp_path / path, held, compressed)
        found, wanted = gb.io.read(tmp_path / path), held.tocoo()
        assert (found.shape, found.dtype) == (wanted.shape, "FP64")
        np.testing.assert_array_equal(found.to_dense(0), wanted.toarray())
        assert found.nvals == wanted.nnz


def test_npz_files_need_an_operator_for_duplicates(tmp_path):
    scipy.sparse.save_npz(tmp_path / "A.npz", scipy.sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(2, 2)))
    with pytest.raises(ValueError, match="dup_op"):
        gb.io.read(tmp_path / "A.npz")
    assert entries(gb.io.read(tmp_path / "A.npz", dup_op="plus")) == [(0, 1, 3)]
    scipy.sparse.save_npz(tmp_path / "B.npz", scipy.sparse.csr_array([[1j]]))
    with pytest.raises(NotImplementedException, match="complex"):
        gb.io.read(tmp_path / "B.npz")


def test_npz_is_scipys(devices, tmp_path):
    A = scipy.sparse.random_array((9, 7), density=0.3, rng=np.random.default_rng(1), format="csc")
    scipy.sparse.save_npz(tmp_path / "A.npz", A)
    B = gb.io.read(tmp_path / "A.npz")
    assert abs(B.to_scipy_sparse() - A).nnz == 0
    gb.io.write(tmp_path / "B.npz", B)
    assert abs(scipy.sparse.load_npz(tmp_path / "B.npz") - A).nnz == 0
    (tmp_path / "C.npz").write_bytes(b"PK no zip")
    with pytest.raises(FileFormatError, match="save_npz"):
        gb.io.read(tmp_path / "C.npz")


def test_npz_files_are_packed_and_written_from_beginning_to_end(devices, tmp_path):
    A = gb.Matrix.from_coo([0, 1], [1, 0], [1.5, 2.5], nrows=2, ncols=3)
    parts = []
    gb.io.write_npz(SimpleNamespace(write=lambda part: parts.append(bytes(part)) or len(part)), A)
    (tmp_path / "A.npz").write_bytes(b"".join(parts))
    for packed in ("gz", "bz2", "xz"):
        gb.io.write(tmp_path / f"A.npz.{packed}", A)
    for path in tmp_path.iterdir():
        assert gb.io.read(path).isequal(A)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric"])
def test_entries_that_are_no_numbers_are_symmetric(devices, tmp_path, symmetry):
    path = tmp_path / "A.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real {symmetry}\n3 3 2\n2 1 nan\n3 1 2\n")
    A = gb.io.mmread(path)
    gb.io.mmwrite(path, A, symmetry=symmetry)
    entries = [part.tolist() for part in gb.io.mmread(path).to_coo()]
    np.testing.assert_equal(entries, [part.tolist() for part in A.to_coo()])
    if symmetry == "symmetric":
        gb.io.write_edgelist(path, A, directed=False)
        assert path.read_text().endswith("0 1 nan\n0 2 2.0\n")


# -- names, permissions and leftovers


def test_what_is_no_file_stays_what_it_is(tmp_path):
    """A pipe is written to, a directory is not."""
    os.mkfifo(tmp_path / "A.txt")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "A.txt").read_text)
        gb.io.write_edgelist(tmp_path / "A.txt", gb.Matrix.from_coo([0], [1], 5, nrows=2, ncols=2))
        assert read.result().endswith("0 1 5\n")
        read = pool.submit((tmp_path / "A.txt").read_text)
        constant(3.0).save(tmp_path / "A.txt")
        assert json.loads(read.result())["degree"] == 3
    assert stat.S_ISFIFO((tmp_path / "A.txt").stat().st_mode) and len(list(tmp_path.iterdir())) == 1
    begin, end = os.pipe()
    gb.io.write_edgelist(f"/dev/fd/{end}", gb.Matrix.from_coo([0], [1], 5, nrows=2, ncols=2))
    os.close(end)
    with open(begin) as rest:
        assert rest.read().endswith("0 1 5\n")
    (tmp_path / "B.txt").mkdir()
    with pytest.raises(IsADirectoryError, match=r"B.txt"):
        gb.io.write(tmp_path / "B.txt", gb.Matrix(int, 2, 2))
    assert not list((tmp_path / "B.txt").iterdir())


def test_leftovers_and_threads_do_not_collide(tmp_path, monkeypatch):
    """Two writers of one file, with what a crashed one left."""
    (tmp_path / f"A.txt.{os.getpid()}.tmp").write_bytes(b"left")
    errors, files = [], [f"0 {k}\n" * 2000 for k in range(1, 5)]
    together = threading.Barrier(len(files))

    def write(text):
        try:
            with gb.io.atomic_file(tmp_path / "A.txt") as stream:
                together.wait(20)
                stream.write(text.encode())
                together.wait(20)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[text]) for text in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert (tmp_path / "A.txt").read_text() in files
    assert len(list(tmp_path.iterdir())) == 2


def test_permissions_are_the_ones_of_new_files_or_of_the_old_one(tmp_path):
    path, link = tmp_path / "A.txt", tmp_path / "B.txt"
    old = os.umask(0o027)
    try:
        gb.io.write(path, gb.Matrix(int, 2, 2))
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        gb.io.write(path, gb.Matrix(int, 3, 3))
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(old)
    link.symlink_to(path)
    gb.io.write(link, gb.Matrix(int, 4, 4))
    assert link.is_symlink()
    assert gb.io.read(path).nrows == 4
    gb.io.write(os.fsencode(tmp_path / ("n" * 250 + ".txt")), gb.Matrix(int, 5, 5))
    assert gb.io.read(os.fsencode(tmp_path / ("n" * 250 + ".txt"))).nrows == 5


# -- what callers give


CALLS = {
    "nrows": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), nrows="3"), TypeError),
    "nrows, a float": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), nrows=3.0), TypeError),
    "nrows, negative": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), nrows=-3), InvalidValue),
    "nrows, too many": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), nrows=2**60), InvalidValue),
    "weighted": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), weighted="no"), TypeError),
    "directed": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), directed="no"), TypeError),
    "dtype": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), dtype="INT65"), ValueError),
    "name": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), name=3), TypeError),
    "limit": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), limit="1G"), TypeError),
    "limit, negative": (lambda: gb.io.read_edgelist(bytes_of("0 1\n"), limit=-1), InvalidValue),
    "limit of dimacs": (lambda: gb.io.read_dimacs(bytes_of("p sp 1 0\n"), limit=1.5), TypeError),
    "name of dimacs": (lambda: gb.io.read_dimacs(bytes_of("p sp 1 0\n"), name=b"x"), TypeError),
    "engine": (lambda: gb.io.mmread(bytes_of(""), engine=None), TypeError),
    "limit of mtx": (lambda: gb.io.mmread(bytes_of(""), limit=True), TypeError),
    "source": (lambda: gb.io.mmread(0), TypeError),
    "name of a saved one": (lambda: gb.io.load(bytes_of(""), name=3), TypeError),
    "target": (lambda: gb.io.write_edgelist(1, gb.Matrix(int, 1, 1)), TypeError),
    "comment": (lambda: gb.io.write_edgelist(io.BytesIO(), gb.Matrix(int, 1, 1), comment=3), TypeError),
    "comment of dimacs": (lambda: gb.io.write_dimacs(io.BytesIO(), gb.Matrix(int, 1, 1), comment=None), TypeError),
    "comment of mtx": (lambda: gb.io.mmwrite(io.BytesIO(), gb.Matrix(int, 1, 1), comment=b"x"), TypeError),
    "writing undirected": (lambda: gb.io.write_edgelist(io.BytesIO(), gb.Matrix(int, 1, 1), directed=0), TypeError),
    "writing weights": (lambda: gb.io.write_edgelist(io.BytesIO(), gb.Matrix(int, 1, 1), weighted=1), TypeError),
    "precision": (lambda: gb.io.mmwrite(io.BytesIO(), gb.Matrix(float, 1, 1), precision="3"), TypeError),
    "precision, too much": (lambda: gb.io.mmwrite(io.BytesIO(), gb.Matrix(float, 1, 1), precision=50), InvalidValue),
    "symmetry": (lambda: gb.io.mmwrite(io.BytesIO(), gb.Matrix(float, 1, 1), symmetry=1), TypeError),
    "a file object of numbers": (lambda: gb.io.mmread(type("Odd", (), {"read": lambda *_: 5})()), TypeError),
    "what is no graph": (lambda: gb.io.from_networkx(3), TypeError),
    "what is no matrix": (lambda: gb.io.to_networkx(3), TypeError),
    "what is no matrix for SciPy": (lambda: gb.io.to_scipy_sparse(3), TypeError),
    "a format": (lambda: gb.io.to_scipy_sparse(gb.Matrix(int, 1, 1), 3), TypeError),
    "a file's name": (lambda: gb.io.read(io.BytesIO()), TypeError),
    "a name to write": (lambda: gb.io.write(3, gb.Matrix(int, 1, 1)), TypeError),
    "writing npz": (lambda: gb.io.write_npz(io.BytesIO(), gb.Vector(int, 3)), TypeError),
}


@pytest.mark.parametrize(("call", "error"), CALLS.values(), ids=CALLS)
def test_keywords_are_checked(call, error):
    with pytest.raises(error, match="expected"):
        call()


def test_comments_do_not_change_what_is_read(tmp_path):
    A = gb.Matrix.from_coo([0], [1], nrows=3, ncols=3)
    for comment in ("Nodes: 99", "one\nNodes: 99\r\n7 7", "x" * 100_000, "\ud800\x85\u2028 1 2"):
        for form in ("write_edgelist", "write_dimacs", "mmwrite"):
            stream = io.BytesIO()
            getattr(gb.io, form)(stream, A, comment=comment)
            read = getattr(gb.io, form.replace("write", "read"))
            assert read(io.BytesIO(stream.getvalue())).shape == (3, 3)
            assert read(io.BytesIO(stream.getvalue())).nvals == 1


def test_weights_that_become_infinite_are_refused():
    with pytest.raises(InvalidValue, match="FP32"):
        gb.io.read_edgelist(bytes_of("0 1 1e300\n"), dtype="FP32")
    A = gb.io.read_edgelist(bytes_of("0 1 inf\n"), dtype="FP32")
    assert entries(A) == [(0, 1, np.inf)]


# -- objects of other libraries


GRAPHS = {
    "undirected": nx.karate_club_graph(),
    "directed": nx.gn_graph(20, seed=1),
    "unweighted": nx.path_graph(5),
    "loops": nx.Graph([(0, 0), (0, 1)]),
    "multi": nx.MultiGraph([(0, 1, {"weight": 2}), (0, 1, {"weight": 3}), (1, 2, {}), (2, 2, {"weight": 4})]),
    "multi directed": nx.MultiDiGraph([("a", "b"), ("a", "b"), ("b", "a")]),
    "no edges": nx.empty_graph(4),
    "nothing": nx.Graph(),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("options", [{}, {"weight": None}, {"dtype": "FP32"}, {"nodelist": True}])
def test_from_networkx(devices, graph, options):
    nodes = list(graph)[::-1] if options.get("nodelist") else list(graph)
    A = gb.io.from_networkx(graph, nodes if "nodelist" in options else None, options.get("dtype"), name="A",
                            **({"weight": None} if "weight" in options else {}))  # fmt: skip
    assert (A.shape, A.name) == ((len(nodes), len(nodes)), "A")
    weight = options.get("weight", "weight")
    wanted = np.zeros(A.shape)
    if nodes:
        wanted = nx.to_numpy_array(graph, nodes, weight=weight)
    np.testing.assert_array_equal(A.to_dense(0), wanted)
    assert A.nvals == np.count_nonzero(wanted)
    if "dtype" in options:
        assert A.dtype == "FP32"
    if not graph.is_directed():
        assert A.isequal(A.T.new())


def test_to_networkx(devices):
    A = gb.Matrix.from_coo([0, 1, 1], [1, 0, 1], [5, 6, 7], nrows=3, ncols=3)
    graph = gb.io.to_networkx(A)
    assert isinstance(graph, nx.DiGraph)
    assert sorted(graph) == [0, 1, 2]
    assert sorted(graph.edges(data="weight")) == [(0, 1, 5), (1, 0, 6), (1, 1, 7)]
    assert gb.io.from_networkx(graph).isequal(A)
    assert sorted(gb.io.to_networkx(A, None).edges(data=True)) == [(0, 1, {}), (1, 0, {}), (1, 1, {})]
    assert gb.io.to_networkx(A, "cost").edges[0, 1] == {"cost": 5}
    with pytest.raises(InvalidValue, match="square"):
        gb.io.to_networkx(gb.Matrix(int, 2, 3))


@pytest.mark.parametrize("format", ["bsr", "csr", "csc", "coo", "lil", "dia", "dok", "CSR"])
def test_scipy_sparse(devices, format):
    A = gb.Matrix.from_coo([0, 1, 1], [1, 0, 2], [5, 6, 7], nrows=2, ncols=3)
    found = gb.io.to_scipy_sparse(A, format)
    assert (found.format, found.shape) == (format.lower(), (2, 3))
    assert gb.io.from_scipy_sparse(found, name="B").isequal(A)
    turned = gb.io.to_scipy_sparse(A.T, format)
    np.testing.assert_array_equal(turned.toarray(), found.toarray().T)
    v = gb.io.to_scipy_sparse(gb.Vector.from_coo([1, 3], [2, 4], size=5), format)
    np.testing.assert_array_equal(v.toarray().ravel(), [0, 2, 0, 4, 0])
    assert v.shape == ((5, 1) if format == "csc" else (1, 5))


def test_unknown_formats_are_refused():
    with pytest.raises(ValueError, match="csr"):
        gb.io.to_scipy_sparse(gb.Matrix(int, 1, 1), "abacus")


@pytest.mark.parametrize("module", [bz2, lzma, gzip])
def test_what_follows_a_packed_stream(tmp_path, module):
    """Streams one after the other are one text; what is none is no end of it."""
    lines = [b"".join(b"%d %d\n" % (i, i + 1) for i in range(at, at + 9)) for at in (0, 9, 18)]
    one, two, three = map(module.compress, lines)
    path = tmp_path / "A.txt"
    for zeros in (b"", bytes(8), bytes(1 << 17)):
        path.write_bytes(one + zeros + two + three + zeros)
        assert entries(gb.io.read(path)) == [(i, i + 1, True) for i in range(27)]
    flipped = bytearray(two)
    flipped[1] ^= 1
    for after in (bytes(flipped) + three, b"no stream", two[:-5], two[:3]):
        path.write_bytes(one + after)
        with pytest.raises(FileFormatError, match="damaged"):
            gb.io.read(path)


def test_a_pipe_with_an_entry_twice(tmp_path):
    """It can't be read again to tell where."""
    os.mkfifo(tmp_path / "A.txt")
    with ThreadPoolExecutor(1) as other:
        other.submit((tmp_path / "A.txt").write_text, "0 1 5\n0 1 6\n")
        with pytest.raises(ValueError, match="uplicate"):
            gb.io.read(tmp_path / "A.txt")


@pytest.mark.parametrize(
    "more", [{"form": "array", "field": "pattern"}, *({"symmetry": "skew-symmetric", "field": field}
                                                      for field in ("pattern", "unsigned-integer"))]
)  # fmt: skip
def test_fields_that_a_form_has_not(more):
    with pytest.raises(InvalidValue, match="pattern|unsigned"):
        gb.io.mmwrite(io.BytesIO(), gb.Matrix.from_dense([[0, -3], [3, 0]]), **more)


def test_an_unsigned_matrix_without_entries_may_be_skew_symmetric():
    file = io.BytesIO()
    gb.io.mmwrite(file, gb.Matrix("UINT64", 3, 3), symmetry="skew-symmetric")
    assert gb.io.mmread(io.BytesIO(file.getvalue())).shape == (3, 3)


@pytest.mark.parametrize("text", ["10,000", "7.5"])
def test_a_number_of_nodes_is_whole_or_none(text):
    assert gb.io.read_edgelist(bytes_of(f"# Nodes: {text}\n0 1\n")).shape == (2, 2)
    assert gb.io.read_edgelist(bytes_of("# Nodes: 9, Edges: 1\n0 1\n")).shape == (9, 9)


TABLES = [
    ("A.csv", "src,dst,w\n0,1,2.5\n# more\n1, 2 ,3\r\n", {}, {0: {1: 2.5}, 1: {2: 3.0}}),
    ("edge.csv.gz", "0,1\n1,2\n", {}, {0: {1: 1.0}, 1: {2: 1.0}}),
    ("A.csv", "0;1;4\n", {"delimiter": ";"}, {0: {1: 4}}),
    ("A.csv", "id,a,b,name,w\n9,1,2,New York,7\n9,2,3,,8\n", {"base": 1, "columns": (1, 2, 4)}, {0: {1: 7}, 1: {2: 8}}),
    ("A.tsv", "0\t1\t\t5\n", {"delimiter": "\t", "columns": (0, 1, 3)}, {0: {1: 5}}),
    ("A.txt", "a 0 b 1 7 x\nb 1 b 2 8.5\n", {"columns": (1, 3, 4)}, {0: {1: 7.0}, 1: {2: 8.5}}),
    ("A.edges", "% sym\n0 1\n", {}, {0: {1: 1.0}}),
    ("A.e", "1 2 .5\n", {"directed": False}, {1: {2: 0.5}, 2: {1: 0.5}}),
    ("out.karate", "% sym unweighted\n% 1 3 3\n1 2\n", {}, {0: {1: 1.0}, 1: {0: 1.0}}),
    ("out.mail.gz", "% asym positive\n1 2 3 100\n2 1 4 101\n", {}, {0: {1: 3}, 1: {0: 4}}),
    ("out.mail", "% asym\n1 2 3 100\n1 2 4 101\n", {"dup_op": "second", "directed": False}, {0: {1: 4}, 1: {0: 4}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "options", "expected"), TABLES)
def test_edge_lists_of_other_forms(reader, tmp_path, name, text, options, expected):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert gb.io.read(path, **options).to_dicts() == expected


@pytest.mark.parametrize(
    ("text", "options", "line"),
    [
        ("0,1\n0,,1\n", {}, 2), ("0,1\n0 1,2\n", {}, 2), ("0,1,5\n0,1,\n", {}, 2), ("0,1\n1,2,3\n", {}, 2),
        ("a,b\nc,d\n", {}, 2), ("0,1\n0,1 2,5\n", {"columns": (0, 1)}, 2), ("0,1\n", {"columns": (0, 1, 2)}, 1),
        ("0,1\n0\x1f1\n", {}, 2),
    ],
)  # fmt: skip
def test_malformed_tables_name_the_line(reader, text, options, line):
    with pytest.raises(FileFormatError, match=rf"^line {line}\b"):
        gb.io.read_edgelist(bytes_of(text), delimiter=",", **options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"delimiter": ",,"}, InvalidValue), ({"delimiter": "1"}, InvalidValue), ({"delimiter": 1}, TypeError),
        ({"columns": (1, 0)}, InvalidValue), ({"columns": (0,)}, InvalidValue), ({"columns": 2}, TypeError),
        ({"columns": (0, 1), "weighted": True}, InvalidValue), ({"base": 2}, InvalidValue),
    ],
)  # fmt: skip
def test_options_of_tables_are_checked(options, error):
    with pytest.raises(error):
        gb.io.read_edgelist(bytes_of("0 1\n"), **options)


@pytest.mark.parametrize("head", ["% SYM weighted\n", "\n% sym\n", "# sym\n"])
def test_konect_tells_the_direction_in_other_spellings(tmp_path, head):
    (tmp_path / "out.few").write_text(head + "1 2 5\n")
    assert gb.io.read(tmp_path / "out.few").to_dicts() == {0: {1: 5}, 1: {0: 5}}


@pytest.mark.parametrize("head", ["", "% undirected\n", "% 3 2 2\n% sym\n", "%sym%\n"])
def test_konect_without_a_direction_is_refused(tmp_path, head):
    (tmp_path / "out.few").write_text(head + "1 2 5\n")
    with pytest.raises(FileFormatError, match="% sym.*directed=True"):
        gb.io.read(tmp_path / "out.few")
    assert gb.io.read(tmp_path / "out.few", directed=True).to_dicts() == {0: {1: 5}}


def test_quoted_ids_are_no_head_of_a_table(tmp_path):
    (tmp_path / "few.csv").write_text('"1","2"\n')
    with pytest.raises(FileFormatError, match="line 1: expected a row id"):
        gb.io.read(tmp_path / "few.csv")


def test_forms_that_are_refused_say_what_reads_them(tmp_path):
    (tmp_path / "A.graph").write_text("% METIS\n3 2\n2\n1 3\n2\n")
    with pytest.raises(NotImplementedException, match="METIS") as caught:
        gb.io.read(tmp_path / "A.graph")
    found = {"gb": gb, "FILE": tmp_path / "A.graph"}
    assignment, call = str(caught.value).partition("Hint: ")[2].split("; ")
    exec(assignment, found)
    assert eval(call, found).to_dicts() == {0: {1: 1}, 1: {0: 1, 2: 1}, 2: {1: 1}}
    (tmp_path / "out.sides").write_text("% bip unweighted\n1 1\n2 1\n")
    with pytest.raises(FileFormatError, match="line 1: .*bip") as refused:
        gb.io.read(tmp_path / "out.sides")
    found |= {"np": np, "FILE": tmp_path / "out.sides"}
    assignment, call = str(refused.value).partition("Hint: ")[2].split("; ")
    exec(assignment, found)
    assert eval(call, found).to_dicts() == {0: {0: 1.0}, 1: {0: 1.0}}


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, content: bytes, rng):
        self._content, self._rng = content, rng

    def readable(self) -> bool:
        return True

    def readinto(self, room) -> int:
        count = min(len(room), int(self._rng.integers(1, 6)), len(self._content))
        room[:count], self._content = self._content[:count], self._content[count:]
        return count


def test_lines_end_as_pythons_do(monkeypatch):
    """In a newline, a carriage return or both, wherever a piece of the text ends between the two."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        lines = [bytes(rng.choice(list(b"ab "), rng.integers(6)).tolist()) for _ in range(rng.integers(12))]
        content = b"".join(line + rng.choice([b"\r", b"\n", b"\r\n"]) for line in lines) + b"x"
        monkeypatch.setattr(gbgpu.io.text, "CHUNK", int(rng.choice([8, 16, 32])))
        text, found = gbgpu.io.text.Text(Trickle(content, rng)), []
        while text.more():
            found.append(text.peek().rstrip(b"\r\n"))
            text.drop()
        assert found == content.splitlines()


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n\r"])
@pytest.mark.parametrize(
    ("read", "content"),
    [
        (gb.io.read_edgelist, "# Nodes: 7\n1 2 5\n# more\n\n3 1 7\n"),
        (partial(gb.io.read_edgelist, delimiter=","), "source,target,weight\n1,2,5\n3,1,7\n"),
        (gb.io.mmread, "%%MatrixMarket matrix coordinate integer general\n% few\n3 3 2\n1 2 5\n3 1 7\n"),
        (gb.io.read_dimacs, "c few\np sp 3 2\na 1 2 5\na 3 1 7\n"),
    ],
)
def test_ends_of_lines_of_other_systems(reader, read, content, end):
    assert read(bytes_of(content.replace("\n", end))).isequal(read(bytes_of(content)), check_dtype=True)


@pytest.mark.parametrize(
    ("head", "columns"),
    [("id,source,target", "(1, 2)"), ("source,weight,target", "(0, 2)"), ("ID,'From','To'", "(1, 2)"),
     ("target,source", "(0, 1).*then .T"), ("edge_id,from_node_id,to_node_id", "(1, 2)"),
     ("w,'Node 1','Node 2'", "(1, 2)"), ("i,weight,j", "(0, 2)"), ("SourceId,time,TargetId", "(0, 2)")],
)  # fmt: skip
def test_a_head_with_ids_elsewhere_is_refused(head, columns):
    with pytest.raises(FileFormatError, match="line 1: .*columns=" + columns.replace("(", r"\(").replace(")", r"\)")):
        gb.io.read_edgelist(bytes_of(head + "\n1,2,3\n"), delimiter=",")
    given = eval(columns.partition(".")[0])
    assert gb.io.read_edgelist(bytes_of(head + "\n1,2,3\n"), delimiter=",", columns=given).nvals == 1
