"""Matrix Market files and generated graphs."""

import bz2
import gzip
import io
import lzma
import os
from importlib.util import find_spec
from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.io
from hypothesis import example, given
from hypothesis import strategies as st

import gbgpu as gb
from gbgpu import host
from gbgpu.errors import FileFormatError, IndexOutOfBound, InvalidValue, NotImplementedException, OutOfMemory
from gbgpu.io import entries, generate
from gbgpu.io import text as texts
from gbgpu.io.files import atomic_file
from gbgpu.io.matrixmarket import mmread, mmwrite, read_coordinates

# fast_matrix_market has no package for some machines and Pythons; where it is installed it must work
FMM = ["fmm", "fast_matrix_market", "FMM"] if find_spec("fast_matrix_market") else []
DATA = Path(__file__).resolve().parent.parent / "data"
GENERAL = "%%MatrixMarket matrix coordinate integer general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


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
def test_reads_what_scipy_reads(reader, field, symmetry):
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


@pytest.mark.parametrize(
    "text",
    [
        "%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
        "%MatrixMarket matrix array real general\n1 2\n1\n2\n",
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 2 5.0\n2 2 7\n3 1 6\n",
        "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n1 2 5\n3 1 6\n",
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2 5.0\n2 1 -7\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 2 5.0\n3 3 2\n",
    ],
)
def test_dialects_are_read_as_scipy_reads_them(reader, text):
    mine, theirs = read(text), scipy.io.mmread(io.StringIO(text), spmatrix=False)
    values = np.ones(mine.rows.size) if mine.values is None else mine.values
    dense = np.zeros(theirs.shape)
    dense[mine.rows, mine.cols] = values
    np.testing.assert_array_equal(dense, theirs.toarray() if hasattr(theirs, "toarray") else theirs)


@pytest.mark.parametrize("field", ["integer", "real"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_reads_arrays_as_scipy_does(devices, field, symmetry):
    random = np.random.default_rng(3)
    dense = random.integers(-9, 9, (5, 7 if symmetry == "general" else 5)) / (8 if field == "real" else 1)
    n, m = dense.shape
    least = {"general": lambda j: 0, "symmetric": lambda j: j, "skew-symmetric": lambda j: j + 1}[symmetry]
    lines = [f"{dense[i, j]:g}" for j in range(m) for i in range(least(j), n)]
    text = f"%%MatrixMarket matrix array {field} {symmetry}\n% a comment\n{n} {m}\n" + "\n".join(lines)
    A, theirs = mmread(io.StringIO(text)), scipy.io.mmread(io.StringIO(text))
    assert A.dtype == theirs.dtype
    assert A.nvals == n * m
    np.testing.assert_array_equal(A.to_dense(), theirs)


@pytest.mark.parametrize("engine", ["auto", "gbgpu", "scipy", *FMM])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_every_engine_reads_the_same(devices, tmp_path, engine, form):
    path = tmp_path / "A.mtx"
    sizes, lines = ("3 3 2", "2 1 1.5\n3 3 -2\n") if form == "coordinate" else ("1 2", "1.5\n-2\n")
    path.write_text(f"%%MatrixMarket matrix {form} real general\n{sizes}\n{lines}")
    A = mmread(path, engine, name="A")
    assert (A.name, A.dtype, A.to_coo()[2].tolist()) == ("A", "FP64", [1.5, -2])
    assert A.isequal(mmread(path))


def test_unknown_engines_and_keywords_are_refused():
    with pytest.raises(ValueError, match="engine"):
        mmread("none.mtx", "abacus")
    with pytest.raises(TypeError, match="parallelism"):
        mmread("none.mtx", parallelism=2)


def digits(least, most=25):
    """As many digits, drawn as one number: one by one they would take as long as the rest of this file."""
    drawn = st.tuples(st.integers(least, most), st.integers(0, 10**most - 1))
    return drawn.map(lambda pair: f"{pair[1] % 10 ** pair[0]:0{pair[0]}}" if pair[0] else "")


SIGN = st.sampled_from(["", "+", "-"])
EXPONENT = st.just("") | st.builds("{}{}{}".format, st.sampled_from("eE"), SIGN, digits(1, 3))
BODY = digits(1) | st.builds("{}.{}".format, digits(1), digits(0)) | st.builds(".{}".format, digits(1))
NUMBER = st.builds("{}{}{}".format, SIGN, BODY, EXPONENT)
HARD = [
    "9007199254740993", "9007199254740991e22", "1e23", "8.5e22", "2.2250738585072014e-308", "2.2250738585072011e-308",
    "4.9e-324", "2.47e-324", "2.4703282292062327e-324", "1.7976931348623157e308", "1.7976931348623159e308", "1e400",
    "1e-400", "0e999", "0.000000000000000000000000000000123", "123456789012345678901234567890e-30", "5e-324",
    "6929495644600919.5", "3.4028236692093846346e38", "-0", "-0.0", "00001", "1e0000000000000000000005", "+.5", "5.",
    "inf", "-Infinity", "+INF", "nan", "7.3177701707893310e+15", "100000000000000016777215", "9223372036854775808.5",
]  # fmt: skip


def read_reals(words):
    body = "".join(f"1 {k + 1} {word}\n" for k, word in enumerate(words))
    return read(f"%%MatrixMarket matrix coordinate real general\n1 {len(words)} {len(words)}\n{body}").values


@given(st.lists(NUMBER, min_size=1, max_size=20))
@example(HARD)
def test_decimals_are_rounded_as_python_rounds_them(words):
    found, true = read_reals(words), np.array([float(word) for word in words])
    assert [value.hex() for value in found] == [value.hex() for value in true]


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


def test_integers_are_unsigned_only_if_they_must_be():
    text = GENERAL + "1 2 2\n1 1 {}\n1 2 {}\n"
    assert read(text.format(2**63 - 1, 5)).values.dtype == np.int64
    for values in ([2**63, 0], [5, 2**64 - 1]):
        found = read(text.format(*values)).values
        assert (found.dtype, found.tolist()) == (np.uint64, values)
    unsigned = read(text.replace("integer", "unsigned-integer").format(3, 4)).values
    assert (unsigned.dtype, unsigned.tolist()) == (np.uint64, [3, 4])


def test_long_files_and_lines(monkeypatch):
    monkeypatch.setattr(entries, "_ROOM", 4)  # arrays grow
    monkeypatch.setattr(texts, "CHUNK", 16)  # no line fits
    lines = [f"{' ' * k}{k} {k}\t{-k}  " for k in range(1, 60)]
    found = read(GENERAL + "99 99 59\n" + "\n".join(lines))
    assert found.values.tolist() == [-k for k in range(1, 60)]


CONTROLS = [byte for byte in range(33) if byte not in b" \t\r\n"] + [0x7F, 0x85, 0xA0]


@pytest.mark.parametrize("byte", CONTROLS)
@pytest.mark.parametrize("field", ["integer", "real", "pattern"])
def test_other_bytes_are_no_blanks(byte, field):
    value, control = b"" if field == "pattern" else b" 7", bytes([byte])
    head = GENERAL.replace("integer", field).encode()
    for line in (b"1%b 2%b", b"1 %b2%b", b"%b1 2%b", b"%b 1 2%b"):
        for text in (line % (control, value), line.replace(b"%b", b"", 1) % (value + control)):
            with pytest.raises(FileFormatError, match="^line 3:"):
                read_coordinates(io.BytesIO(head + b"3 3 1\n" + text + b"\n"))
    for sizes in (b"3 3%b 1\n", b"%b3 3 1\n", b"3 3 1%b\n", b"%b\n3 3 1\n"):
        with pytest.raises(FileFormatError, match="^line 2:"):
            read_coordinates(io.BytesIO(head + sizes % control + b"1 2" + value + b"\n"))
    for read, text in ((gb.io.read_edgelist, b"0%b1\n"), (gb.io.read_dimacs, b"p sp 3%b1\n")):
        with pytest.raises(FileFormatError, match="^line 1:"):
            read(io.BytesIO(text % control))


LONG = "7" * 5000


@pytest.mark.parametrize(
    ("text", "error", "line"),
    [
        (GENERAL + f"{LONG} 1 1\n", FileFormatError, 2),
        (GENERAL + f"1 1 {LONG}\n", FileFormatError, 2),
        (ARRAY + f"{LONG} 1\n", FileFormatError, 2),
        (GENERAL + f"3 3 1\n1 {LONG} 1\n", IndexOutOfBound, 3),
        (GENERAL + f"3 3 1\n1 -{LONG} 1\n", IndexOutOfBound, 3),
        (GENERAL + f"3 3 1\n1 1 {LONG}\n", FileFormatError, 3),
        (GENERAL + f"3 3 1\n1 1 -{LONG}\n", FileFormatError, 3),
        (GENERAL + "3 3 1\n1 -0 1\n", IndexOutOfBound, 3),
        (GENERAL + f"{2**60 - 1} 1 1\n1 1 1\n", FileFormatError, 2),
        (GENERAL + f"1 1 {2**60 - 1}\n1 1 1\n", FileFormatError, 4),
        (ARRAY + f"{2**59} {2**59}\n", FileFormatError, 2),
        (ARRAY.replace("general", "symmetric") + f"{2**59} {2**59}\n", FileFormatError, 2),
        (GENERAL.replace("integer general", "unsigned-integer skew-symmetric") + "3 3 0\n", FileFormatError, 1),
        (GENERAL.replace("general", "skew-symmetric") + f"3 3 1\n2 1 {2**63}\n", FileFormatError, 3),
    ],
)
def test_huge_numbers_are_refused_with_their_line(text, error, line):
    with pytest.raises(error, match=rf"^line {line}\b"):
        read(text)


def test_huge_numbers_of_other_forms_are_refused_with_their_line():
    for reader, text, line in (
        (gb.io.read_edgelist, f"# x\n# Nodes: {LONG}\n0 1\n", 2),
        (gb.io.read_edgelist, f"# Nodes: {2**60}\n0 1\n", 1),
        (gb.io.read_edgelist, f"0 {LONG}\n", 1),
        (gb.io.read_dimacs, f"c x\np sp {LONG} 1\n", 2),
        (gb.io.read_dimacs, f"p sp 2 1\na 1 {LONG} 1\n", 2),
    ):
        with pytest.raises((FileFormatError, IndexOutOfBound), match=rf"^line {line}\b"):
            reader(io.StringIO(text))
    A = gb.io.read_edgelist(io.StringIO(f"0 1 {LONG}\n1 0 1\n"))  # too large for an integer: a real
    assert A.to_coo()[2].tolist() == [float("inf"), 1]


def test_zeros_in_front_and_signs_change_nothing():
    zeros = "0" * 30
    found = read(
        GENERAL + f"3 3 4\n{zeros}1 +{zeros}2 {zeros}7\n+2 1 +{zeros}18\n3 3 -{zeros}\n1 3 {zeros}{2**63 - 1}\n"
    )
    assert as_set(found.rows, found.cols, found.values) == [(0, 1, 7), (0, 2, 2**63 - 1), (1, 0, 18), (2, 2, 0)]


def test_the_lowest_integer_has_no_negative():
    for form in ("coordinate", "array"):
        head = f"%%MatrixMarket matrix {form} integer skew-symmetric\n2 2"
        place, sizes = ("2 1 ", " 1") if form == "coordinate" else ("", "")
        with pytest.raises(FileFormatError, match="skew"):
            read(f"{head}{sizes}\n{place}{-(2**63)}\n")
        values = read(f"{head}{sizes}\n{place}{-(2**63) + 1}\n").values
        assert {2**63 - 1, -(2**63) + 1} <= set(values.tolist())


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("form", ["mtx", "dimacs", "edgelist"])
def test_comments_and_empty_lines_are_passed_by_compiled_code(monkeypatch, where, form):
    """However many: Python looks at a few lines."""
    head, comment, body, reader = {
        "mtx": (GENERAL, "%", "2 2 1\n1 2 3\n", mmread),
        "dimacs": ("", "c", "p sp 2 1\na 1 2 3\n", gb.io.read_dimacs),
        "edgelist": ("", "#", "0 1 3\n", gb.io.read_edgelist),
    }[form]
    calls, peek = [], texts.Text.peek
    monkeypatch.setattr(texts.Text, "peek", lambda text: calls.append(1) or peek(text))
    many = f"{comment}\n\n" * 5000 if where == "before" or form != "mtx" else "\n" * 10_000
    A = reader(io.StringIO(head + (many + body if where == "before" else body + many)))
    assert (A.shape, A.to_coo()[2].tolist()) == ((2, 2), [3])
    assert len(calls) < 10


def test_a_long_line_of_words_is_not_taken_apart():
    import tracemalloc

    text = (GENERAL + "3 3 1\n" + "1 " * 300_000).encode()
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="^line 3:"):
            read_coordinates(io.BytesIO(text))
        assert tracemalloc.get_traced_memory()[1] < 2 * texts.CHUNK + (1 << 23) + 4 * len(text) + (1 << 23)
    finally:
        tracemalloc.stop()


BAD = [
    ("", FileFormatError, 1),
    ("hello\n", FileFormatError, 1),
    ("%%%MatrixMarket matrix coordinate real general\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix coordinate quaternion general\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix array pattern general\n1 1\n1\n", FileFormatError, 1),
    ("%%MatrixMarket matrix coordinate pattern hermitian\n1 1 0\n", FileFormatError, 1),
    ("%%MatrixMarket vector coordinate real general\n1 0\n", FileFormatError, 1),
    ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", NotImplementedException, 1),
    ("%%MatrixMarket matrix array complex hermitian\n1 1\n1 0\n", NotImplementedException, 1),
    (ARRAY + "2 2 4\n1\n2\n3\n4\n", FileFormatError, 2),
    (ARRAY + "2 2\n1\n2\n3\n", FileFormatError, 6),
    (ARRAY + "2 2\n1\n2\n3\n4\n5\n", FileFormatError, 7),
    (ARRAY + "2 2\n1 2\n3 4\n", FileFormatError, 3),
    (ARRAY + "2 2\n1\n\n2\nx\n4\n", FileFormatError, 6),
    (ARRAY.replace("general", "symmetric") + "2 3\n1\n2\n3\n", FileFormatError, 2),
    (GENERAL.replace("integer", "unsigned-integer") + "3 3 2\n1 1 5\n1 2 -7\n", FileFormatError, 4),
    (GENERAL.replace("integer", "unsigned-integer") + "3 3 1\n1 1 18446744073709551616\n", FileFormatError, 3),
    (GENERAL + "3 3 2\n1 1 -5\n1 2 9223372036854775808\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 9223372036854775808\n1 2 -5\n", FileFormatError, 4),
    (GENERAL + "3 3 0\n1 1 5\n", FileFormatError, 3),
    (GENERAL + "3 3 1\n1 99999999999999999999 5\n", IndexOutOfBound, 3),
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
    (GENERAL + "3 3 2\n1 1 5\n1 2 18446744073709551616\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 x 7\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n% late\n1 2 7\n", FileFormatError, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 0 7\n", IndexOutOfBound, 4),
    (GENERAL + "3 3 2\n1 1 5\n-1 2 7\n", IndexOutOfBound, 4),
    (GENERAL + "3 3 2\n1 1 5\n1 4 7\n", IndexOutOfBound, 4),
    (GENERAL.replace("integer", "real") + "3 3 1\n1.5 1 5\n", FileFormatError, 3),
    (GENERAL.replace("integer", "real") + "3 3 1\n1 1 1D3\n", FileFormatError, 3),
    (GENERAL.replace("integer", "real") + "3 3 1\n1 1 1_0\n", FileFormatError, 3),
    (GENERAL.replace("integer", "pattern") + "3 3 1\n1 1 x\n", FileFormatError, 3),
    (GENERAL.replace("integer", "pattern") + "3 3 2\n1 1 1\n1 2\n", FileFormatError, 4),
    (GENERAL.replace("integer", "pattern") + "3 3 2\n1 1\n1 2 1\n", FileFormatError, 4),
    (GENERAL.replace("general", "skew-symmetric") + "3 3 1\n1 1 1\n", FileFormatError, 3),
]


@pytest.mark.parametrize(("text", "error", "line"), BAD)
def test_malformed_files_name_the_line(text, error, line):
    with pytest.raises(error, match=rf"^line {line}\b"):
        read(text)


def test_lines_are_counted_across_chunks(monkeypatch):
    monkeypatch.setattr(texts, "CHUNK", 64)
    lines = [f"{k} {k} {k}" for k in range(1, 501)]
    assert read(GENERAL + "500 500 500\n" + "\n".join(lines)).values.tolist() == list(range(1, 501))
    lines[400] = "1 2 three"
    with pytest.raises(FileFormatError, match="^line 403:.*three"):
        read(GENERAL + "500 500 500\n" + "\n".join(lines))


@pytest.mark.parametrize("packer", [gzip, bz2, lzma])
@pytest.mark.parametrize("kept", [1, 6, 30, 1000, -9, -1])
def test_a_truncated_packed_file_is_an_error(packer, kept):
    text = GENERAL + "500 500 500\n" + "".join(f"{k} {k} {k * 7919 % 1009}\n" for k in range(1, 501))
    with pytest.raises(FileFormatError, match="line"):
        read_coordinates(io.BytesIO(packer.compress(text.encode())[:kept]))


def test_a_damaged_gzip_file_is_an_error():
    for packer, checksum in ((gzip, -6), (bz2, 12), (lzma, -20)):
        packed = bytearray(packer.compress((GENERAL + "1 1 1\n1 1 1\n").encode()))
        packed[checksum] ^= 1
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
        ("INT8", [-128, 127, 0]),
        ("UINT8", [255, 0, 7]),
        ("INT16", [-(2**15), 2**15 - 1, 0]),
        ("UINT16", [2**16 - 1, 0, 1]),
        ("INT32", [-(2**31), 0, 7]),
        ("UINT32", [2**32 - 1, 0, 7]),
        ("UINT64", [2**64 - 1, 0, 7]),
        ("INT64", [-(2**63), 2**63 - 1, 1]),
        ("FP32", [0.1, np.inf, -0.0]),
        ("FP64", [1 / 3, 1e-308, np.nan]),
        ("FP64", [1.0, 1.0, 1.0]),
        ("INT64", [1, 1, 1]),
    ],
)
def test_what_is_written_is_read(devices, tmp_path, dtype, values):
    values = np.array(values, gb.dtypes.lookup_dtype(dtype).np_type)
    A = gb.Matrix.from_coo([0, 1, 1], [2, 0, 1], values, nrows=3, ncols=4)
    for name in ("A.mtx", "A.mtx.gz", "A.mtx.bz2", "A.mtx.xz"):
        mmwrite(tmp_path / name, A, comment="first\nsecond")
        B = mmread(tmp_path / name)
        assert B.shape == (3, 4)
        rows, cols, found = B.to_coo()
        assert (rows.tolist(), cols.tolist()) == ([0, 1, 1], [2, 0, 1])
        assert B.dtype == ("FP64" if dtype[:2] == "FP" else "UINT64" if dtype == "UINT64" else "INT64")
        np.testing.assert_array_equal(found.astype(A.dtype.np_type), A.to_coo()[2])
    assert (tmp_path / "A.mtx.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert sorted(os.listdir(tmp_path)) == ["A.mtx", "A.mtx.bz2", "A.mtx.gz", "A.mtx.xz"]
    assert (tmp_path / "A.mtx").read_text().split("\n")[1:3] == ["%first", "%second"]


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


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("UINT8", [255, 1]),
        ("UINT64", [1, 2**64 - 1]),
        ("INT8", [-128, -128]),
        ("INT64", [-(2**63), -(2**63)]),
        ("BOOL", [True, True]),
    ],
)
def test_values_that_wrap_are_nobodys_negative(devices, dtype, values):
    A = gb.Matrix.from_coo([0, 1], [1, 0], np.array(values, gb.dtypes.lookup_dtype(dtype).np_type), nrows=2, ncols=2)
    for form in ("coordinate", "array"):
        with pytest.raises(InvalidValue, match="skew"):
            mmwrite(io.BytesIO(), A, symmetry="skew-symmetric", form=form)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("INT8", [127, -127]), ("UINT8", [0, 0]), ("BOOL", [False, False]), ("FP32", [np.inf, -np.inf])],
)
def test_negatives_of_every_type_are_written(devices, dtype, values):
    A = gb.Matrix.from_coo([0, 1], [1, 0], np.array(values, gb.dtypes.lookup_dtype(dtype).np_type), nrows=2, ncols=2)
    stream = io.BytesIO()
    mmwrite(stream, A, symmetry="skew-symmetric")
    assert mmread(io.BytesIO(stream.getvalue())).to_coo()[2].tolist() == values


def test_values_are_of_the_field_or_refused(devices):
    def wrote(values, field):
        stream = io.BytesIO()
        mmwrite(stream, gb.Matrix.from_coo([0, 1], [1, 0], values, nrows=2, ncols=2), field=field)
        return mmread(io.BytesIO(stream.getvalue())).to_coo()[2].tolist()

    assert wrote([2.0, -3.0], "integer") == [2, -3]
    assert wrote([2.0, 3.0], "unsigned-integer") == [2, 3]
    assert wrote([2, 3], "real") == [2, 3]
    assert wrote(np.array([2**63 - 1, 0], np.uint64), "integer") == [2**63 - 1, 0]
    for values, field in (
        ([2.5, -3.0], "integer"),
        ([2.0**63, 1.0], "integer"),
        ([np.nan, 1.0], "integer"),
        (np.array([2**63, 0], np.uint64), "integer"),
        ([2, -3], "unsigned-integer"),
        ([-1.0, 2.0], "unsigned-integer"),
    ):
        with pytest.raises(InvalidValue, match="whole"):
            wrote(values, field)


def test_a_pattern_is_written_as_one(devices):
    stream = io.BytesIO()
    mmwrite(stream, gb.Matrix.from_coo([0], [1], True, nrows=2, ncols=2))
    assert stream.getvalue().startswith(b"%%MatrixMarket matrix coordinate pattern general\n")


def test_what_to_write_can_be_told(devices, tmp_path):
    path = tmp_path / "A.mtx"
    A = gb.Matrix.from_dense([[1.25, 2.0], [2.0, 1 / 3]])
    mmwrite(path, A, form="array", precision=3)
    assert path.read_text().startswith("%%MatrixMarket matrix array real general\n")
    assert mmread(path).to_coo()[2].tolist() == [1.25, 2, 2, 0.333]
    for engine in ("scipy", *FMM):
        mmwrite(path, A, engine, form="array", symmetry="symmetric")
        assert mmread(path).isequal(A)
        mmwrite(path, A, engine, field="pattern")
        assert mmread(path).to_coo()[2].tolist() == [1, 1, 1, 1]
    for wrong in ({"form": "list"}, {"field": "complex"}, {"engine": "abacus"}, {"form": "array"}):
        with pytest.raises(InvalidValue):
            mmwrite(path, gb.Matrix.from_coo([0], [1], 2.0, nrows=2, ncols=2), **wrong)
    with pytest.raises(TypeError, match="save"):
        mmwrite(path, gb.Vector(int, 3))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
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
    with pytest.raises(NotADirectoryError) as error, atomic_file(path / "file"):
        pass
    assert error.value.filename == str(path / "file")

    def cut(*arguments):
        open(*arguments).close()
        raise KeyboardInterrupt

    monkeypatch.setattr("gbgpu.io.files.open", cut, raising=False)
    with pytest.raises(KeyboardInterrupt), atomic_file(path):  # between making the new file and knowing of it
        pass
    assert os.listdir(tmp_path) == ["file.txt.gz"]


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
        lambda: generate.grid_road_edges(4, float("nan"), seed=1),
        lambda: generate.rmat_edges(4, seed=1, a=float("nan")),
        lambda: generate.uniform_edges(4, seed=-1),
        lambda: generate.uniform_edges(4, seed=1, weights=(2**63, 2**63)),
        lambda: generate.uniform_edges(4, seed=1, weights=(1.5, 3)),
        lambda: gb.io.uniform(4, seed=1, weights=(1, 200), dtype="INT8"),
        lambda: gb.io.grid_road(4, seed=1, weights=(-1, 2), dtype="UINT64"),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InvalidValue, match="expected"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: gb.io.rmat("4", seed=1),
        lambda: gb.io.rmat(4, 2.5, seed=1),
        lambda: gb.io.rmat(4, seed=None),
        lambda: gb.io.rmat(4, seed=1, a="0.5"),
        lambda: gb.io.rmat(4, seed=1, permute="no"),
        lambda: gb.io.rmat(4, seed=1, symmetric=None),
        lambda: gb.io.uniform(4.0, seed=1),
        lambda: gb.io.uniform(4, True, seed=1),
        lambda: gb.io.uniform(4, seed="1"),
        lambda: gb.io.uniform(4, seed=1, weights=3),
        lambda: gb.io.uniform(4, seed=1, weights=(1, 2, 3)),
        lambda: gb.io.uniform(4, seed=1, weights=("a", "b")),
        lambda: gb.io.uniform(4, seed=1, name=3),
        lambda: gb.io.grid_road("4", seed=1),
        lambda: gb.io.grid_road(4, None, seed=1),
        lambda: gb.io.grid_road(4, 1j, seed=1),
    ],
)
def test_parameters_of_other_types(make):
    with pytest.raises(TypeError, match="expected"):
        make()


def test_a_type_that_is_none():
    with pytest.raises(ValueError, match="Unknown dtype: 'INT65'"):
        gb.io.uniform(4, seed=1, dtype="INT65")


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("weights", [None, (1, 9)])
def test_generators_ask_for_memory_first(monkeypatch, symmetric, weights):
    import tracemalloc

    options = {"seed": 1, "weights": weights}
    for make, asked in (
        (lambda: gb.io.rmat(32, 1000, symmetric=symmetric, **options), "vertices"),
        (lambda: gb.io.uniform(2**32, 10**12, symmetric=symmetric, **options), "vertices"),
        (lambda: gb.io.rmat(12, 10**30, symmetric=symmetric, **options), "vertices"),
    ):
        with pytest.raises(OutOfMemory, match=rf"expected \d+ bytes for .*{asked}.* bytes free"):
            make()
    for make in (
        lambda: generate.rmat_edges(12, 16, symmetric=symmetric, **options),
        lambda: generate.uniform_edges(4096, 16, symmetric=symmetric, **options),
        lambda: generate.grid_road_edges(200, 1.0, **options),
        lambda: generate.uniform_edges(100_000, 0, symmetric=symmetric, **options),
    ):
        tracemalloc.start()
        make()
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        monkeypatch.setattr(host, "memory", lambda taken=taken: (int(0.9 * taken), 10**12))
        with pytest.raises(OutOfMemory):
            make()
        monkeypatch.undo()


def test_refused_memory_has_its_class(monkeypatch):
    def refuse(*_):
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(generate, "_finish", refuse)
    monkeypatch.setattr(entries, "read_entries", refuse)
    for make in (
        lambda: gb.io.uniform(4, seed=1),
        lambda: mmread(io.StringIO(GENERAL + "1 1 1\n1 1 1\n")),
        lambda: gb.io.read_edgelist(io.StringIO("0 1\n")),
        lambda: gb.io.read_dimacs(io.StringIO("p sp 2 1\na 1 2 1\n")),
    ):
        with pytest.raises(OutOfMemory, match="free"):
            make()


def test_the_smallest_generated_matrices(devices):
    for A, n in ((gb.io.rmat(0, seed=1), 1), (gb.io.uniform(0, seed=1), 0), (gb.io.uniform(1, seed=1), 1)):
        assert (A.shape, A.nvals) == ((n, n), 0)
    assert gb.io.grid_road(0, seed=1).shape == (0, 0)
    assert gb.io.grid_road(1, seed=1).nvals == 0
    A = gb.io.grid_road(2, 1.0, seed=1, weights=(1, 9))
    assert A.nvals == 8
    assert A.isequal(A.T.new())
    assert gb.io.load(io.BytesIO(_saved(A))).isequal(A)


def _saved(A):
    stream = io.BytesIO()
    gb.io.save(stream, A)
    return stream.getvalue()


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


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "# c\n0 1 5\n\n2 1 3\n# d\n0 1 6\n", "0 1 on lines 2 and 6"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n% c\n3 3 4\n1 2 1\n3 1 2\n\n1 2 3\n2 2 1\n",
         "1 2 on lines 4 and 7"),
        ("b.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 1\n2 1\n", "2 1 on lines 3 and 5"),
        ("a.gr", "c x\np sp 3 3\na 1 2 4\na 2 3 1\na 1 2 6\n", "1 2 on lines 3 and 5"),
    ],
)  # fmt: skip
def test_an_entry_twice_is_told_with_its_lines(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    read = {"txt": gb.io.read_edgelist, "mtx": gb.io.mmread, "gr": gb.io.read_dimacs}[name[2:]]
    with pytest.raises(ValueError, match=words):
        read(path)
    with open(path, "rb") as file, pytest.raises(ValueError, match="must provide `dup_op`"):
        read(file)
    assert read(path, dup_op="max").nvals >= 2


def test_an_undirected_edge_twice_either_way(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("0 1 5\n2 1 3\n1 0 5\n")
    with pytest.raises(ValueError, match="lines 1 and 3"):
        gb.io.read_edgelist(path, directed=False)


COMBINED = {
    "first": lambda a, b: a, "second": lambda a, b: b, "plus": lambda a, b: a + b, "minus": lambda a, b: a - b,
    "times": lambda a, b: a * b, "min": min, "max": max, "any": lambda a, b: a,
}  # fmt: skip


@pytest.mark.parametrize("operator", COMBINED)
@pytest.mark.parametrize("symmetry", ["list", "symmetric", "skew-symmetric"])
def test_an_edge_has_one_value_whichever_way_it_is_named(devices, operator, symmetry):
    """Edges of {i, j} are combined in the order of the file, as i, j with i > j, and then mirrored."""
    random, skew = np.random.default_rng(len(operator)), symmetry == "skew-symmetric"
    pairs = [(i, j) for i, j in random.integers(0, 6, (60, 2)).tolist() if i != j or not skew]
    values = random.integers(-3, 4, len(pairs)).tolist()
    model: dict[tuple[int, int], int] = {}
    for (i, j), value in zip(pairs, values, strict=True):
        edge, value = (max(i, j), min(i, j)), -value if skew and i < j else value
        model[edge] = COMBINED[operator](model[edge], value) if edge in model else value
    expected = np.zeros((6, 6), int)
    for (i, j), value in model.items():
        expected[i, j], expected[j, i] = value, -value if skew else value
    base = symmetry != "list"
    lines = "".join(f"{i + base} {j + base} {v}\n" for (i, j), v in zip(pairs, values, strict=True))
    if symmetry == "list":
        A = gb.io.read_edgelist(io.StringIO(lines), directed=False, dup_op=operator, nrows=6)
    else:
        head = f"%%MatrixMarket matrix coordinate integer {symmetry}\n6 6 {len(pairs)}\n"
        A = mmread(io.StringIO(head + lines), dup_op=operator)
    assert A.dtype == "INT64" and A._session.known_symmetric(A) == (not skew)
    np.testing.assert_array_equal(A.to_dense(0), expected)


def test_patterns_with_an_edge_both_ways_are_counted_once_each(devices):
    A = gb.io.read_edgelist(io.StringIO("0 1\n1 0\n2 2\n"), directed=False, dup_op="plus")
    assert A.to_dense(0).tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 1]]


def test_a_symmetric_file_with_both_triangles_has_entries_twice(tmp_path):
    path = tmp_path / "A.mtx"
    path.write_text(GENERAL.replace("general", "symmetric") + "3 3 2\n2 1 5\n1 2 6\n")
    with pytest.raises(ValueError, match="1 2 on lines 3 and 4"):
        mmread(path)


def test_commas_are_said_to_be_the_trouble(tmp_path):
    (tmp_path / "a.csv").write_text("0,1,5\n1,2,3\n")
    with pytest.raises(gb.errors.FileFormatError, match="blanks"):
        gb.io.read_edgelist(tmp_path / "a.csv")


@pytest.mark.parametrize("weight", ["x", None, [1]])
def test_weights_of_networkx_that_are_no_numbers(weight):
    G = networkx.Graph()
    G.add_edge("a", "b", weight=2)
    G.add_edge("b", "c", weight=weight)
    with pytest.raises(TypeError, match=r"numbers as the attribute 'weight'.*'b', 'c'"):
        gb.io.from_networkx(G)
    assert gb.io.from_networkx(G, weight=None).nvals == 4


def test_habits_of_python_graphblas_get_a_hint():
    for call in (lambda: gb.init("suitesparse", blocking=True), lambda: gb.init("suitesparse")):
        with pytest.raises(TypeError, match="cpu:4"):
            call()


def test_entries_of_this_process_are_all_of_one(devices):
    A = gb.io.rmat(8, 4, seed=1, weights=(1, 9), dtype="INT64")
    B = gb.Matrix.from_coo([0, 5, 5], [3, 1, 2], 2.5, nrows=9, ncols=4)
    v = gb.Vector.from_coo([1, 5, 200], [3, 4, 5], size=256)
    for x in (A, A.T.new(), B, v, gb.Vector(int, 4), gb.Matrix(int, 3, 3)):
        for mine, whole in zip(x.to_coo(local=True), x.to_coo(), strict=True):
            assert np.array_equal(mine, whole) and mine.dtype == whole.dtype
    assert A.T.to_coo("FP32", rows=False, local=True)[0] is None and A.to_coo("FP32", local=True)[2].dtype == np.float32
