"""Damaged and hostile files, drawn from a seed: each is refused by a documented error, or read as what it says.

An ordinary run tries some 2,000 files, the long one 50,000. Binary files are held against the object that they were
written from, texts against the reader below: a few lines of plain Python that know the forms and no speed.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings

import gbgpu as gb
from gbgpu.errors import FileFormatError, IndexOutOfBound, NotImplementedException

LONG = settings.get_current_profile_name() == "long"
SEEDS = range(25 if LONG else 1)
FILES = 400 if LONG else 250  # of one test and one seed
LIMIT = 1 << 22  # bytes that a file may become: what passes it is refused before it is slow
ROWS = LIMIT // 32


# -- gbgpu's own form


def objects() -> list:
    """Every kind of content: iso or not, full or not, symmetric, empty, of types of each size."""
    i, j = [0, 1, 1, 3], [2, 0, 1, 3]
    return [
        gb.Matrix.from_coo(i, j, [1.5, 2.5, -3.5, np.nan], nrows=4, ncols=4),
        gb.Matrix.from_coo(i, j, [1, 2, 3, 4], "INT8", nrows=5, ncols=40),
        gb.Matrix.from_coo(i, j, True, nrows=70, ncols=4),
        gb.Matrix(int, 3, 2**40),
        gb.io.uniform(30, 3, seed=1, weights=(1, 9)),
        gb.io.grid_road(4, seed=1),
        gb.Vector.from_dense([1.0, 2.0]),
        gb.Vector.from_dense(np.array([True, False, True])),
        gb.Vector.from_coo([0, 5, 9], [7, 8, 9], "UINT16", size=10),
        gb.Vector.from_coo([0, 5, 9], 7, size=2**40),
        gb.Vector.from_scalar(3, 1000),
    ]


def saved(what) -> bytes:
    stream = io.BytesIO()
    gb.io.save(stream, what)
    return stream.getvalue()


def sealed(data: bytearray) -> bytes:
    """With checksums that are right."""
    if len(data) >= 64:
        data[56:60] = struct.pack("<I", zlib.crc32(data[64:]))
        data[60:64] = struct.pack("<I", zlib.crc32(data[:60]))
    return bytes(data)


def flipped(data: bytearray, random: np.random.Generator, first: int = 0) -> bytearray:
    for place in random.integers(first, len(data), random.integers(1, 4)):
        data[place] ^= 1 << random.integers(8)
    return data


def number(random: np.random.Generator) -> int:
    """One that a writer of hostile files would choose."""
    return int(random.choice([0, 1, 2, 3, 255, 2**31 - 1, 2**31, 2**32, 2**59, 2**60, 2**63, 2**64 - 1], 1)[0])


def near(random: np.random.Generator, old: int) -> int:
    return (number(random) if random.random() < 0.5 else old + int(random.integers(-3, 4))) % 2**64


FIELDS = [(8, "H"), *((k, "B") for k in range(10, 14)), (14, "H"), *((k, "Q") for k in range(24, 56, 8))]


def raised(data: bytearray, random: np.random.Generator) -> bytearray:
    """A field of the header is another number."""
    where, form = FIELDS[random.integers(len(FIELDS))]
    old = struct.unpack_from("<" + form, data, where)[0]
    struct.pack_into("<" + form, data, where, near(random, old) % 256 ** struct.calcsize(form))
    return data


def spliced(data: bytearray, other: bytes, random: np.random.Generator) -> bytearray:
    lo, hi = sorted(random.integers(0, len(data) + 1, 2))
    at, length = random.integers(0, len(other)), random.integers(0, 80)
    return data[:lo] + other[at : at + length] + data[hi if random.random() < 0.5 else lo + length :]


def rewritten(data: bytearray, random: np.random.Generator) -> bytearray:
    """A number of the content is another one."""
    if len(data) > 72:
        at = int(random.integers(64, len(data) - 8))
        size = int(random.choice([4, 8]))
        data[at : at + size] = (near(random, int.from_bytes(data[at : at + size], "little")) % 256**size).to_bytes(
            size, "little"
        )
    return data


def loaded(data: bytes):
    """What a file holds, or None if it is refused as it should be."""
    try:
        return gb.io.load(io.BytesIO(data), limit=LIMIT)
    except FileFormatError:
        return None


def whole(what) -> bool:
    """Whether an object that was accepted holds together: read, transposed and written again."""
    if isinstance(what, gb.Vector):
        return saved(gb.Vector.from_coo(*what.to_coo(), what.dtype, size=what.size)) == saved(what)
    rows, cols, values = what.to_coo()
    made = gb.Matrix.from_coo(rows, cols, values, what.dtype, nrows=what.nrows, ncols=what.ncols)
    if max(what.shape) > 2**20:
        return saved(made)[64:] == saved(what)[64:]
    turned = gb.Matrix.from_coo(cols, rows, values, what.dtype, nrows=what.ncols, ncols=what.nrows)
    return saved(turned)[64:] == saved(what.T.new())[64:] and saved(made)[64:] == saved(what)[64:]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_files_are_refused_or_equal(seed):
    """Flips, cuts and splices, packed or not: whatever is read is what was written."""
    random, whats = np.random.default_rng([1, seed]), objects()
    files = [saved(what) for what in whats]
    for _ in range(FILES):
        chosen = random.integers(len(files))
        data = bytearray(files[chosen])
        match random.integers(5):
            case 0:
                data = flipped(data, random)
            case 1:
                data = data[: random.integers(len(data))]
            case 2:
                data = data + bytes(random.integers(1, 70))
            case 3:
                data = spliced(data, files[random.integers(len(files))], random)
            case _:
                data = flipped(bytearray(gzip.compress(data)), random)
        if (found := loaded(bytes(data))) is not None:
            assert saved(found) == files[chosen], bytes(data).hex()


@pytest.mark.parametrize("seed", SEEDS)
def test_flips_of_the_content_are_refused(seed):
    random = np.random.default_rng([2, seed])
    files = [file for what in objects() if len(file := saved(what)) > 64]
    for _ in range(FILES):
        data = flipped(bytearray(files[random.integers(len(files))]), random, 64)
        assert bytes(data) in files or loaded(bytes(data)) is None, bytes(data).hex()


@pytest.mark.parametrize("seed", SEEDS)
def test_files_with_right_checksums_are_refused_or_hold_together(seed):
    """A stranger can compute a checksum: no number leads kernels outside, and what is accepted is an object."""
    random = np.random.default_rng([3, seed])
    files = [saved(what) for what in objects()]
    for _ in range(FILES):
        data = bytearray(files[random.integers(len(files))])
        for _ in range(random.integers(1, 4)):
            match random.integers(4):
                case 0 if len(data) >= 64:
                    data = raised(data, random)
                case 1:
                    data = spliced(data, files[random.integers(len(files))], random)
                case 2 if len(data) > 64:
                    data = flipped(data, random, 8)
                case _:
                    data = rewritten(data, random)
        if (found := loaded(sealed(data))) is not None:
            assert whole(found), sealed(data).hex()


# -- texts


class Refused(Exception):
    """The slow reader takes a file for malformed."""


INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.ASCII | re.IGNORECASE)


def require(holds: object) -> None:
    if not holds:
        raise Refused


def lines_of(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)


def split(line: str) -> list[str]:
    return [word for word in re.split(r"[ \t]", line) if word]


def slow_id(word: str, first: int, size: int) -> int:
    require(INTEGER.fullmatch(word) and word[0] != "-")
    digits = word.lstrip("+").lstrip("0") or "0"
    require(len(digits) < 20 and 0 <= int(digits) - first < size)
    return int(digits) - first


def slow_value(word: str, integer: bool) -> float:
    require((INTEGER if integer else REAL).fullmatch(word))
    if not integer:
        return float(word)
    digits = word.lstrip("+-").lstrip("0") or "0"
    require(len(digits) <= 20)
    return int(digits) * (-1 if word[0] == "-" else 1)


def one_type(values: list, low: int = -(2**63)) -> None:
    """Whole numbers are all of INT64, or all of UINT64."""
    require(not values or (min(values) >= low and max(values) < (2**63 if min(values) < 0 else 2**64)))


def slow_mtx(text: str) -> tuple:
    lines = lines_of(text)
    banner = [word.lower() for word in split(lines[0])]
    require(len(banner) == 5 and banner[0] in ("%matrixmarket", "%%matrixmarket") and banner[1] == "matrix")
    form, field, symmetry = banner[2:]
    require(form in ("coordinate", "array") and field in ("pattern", "integer", "unsigned-integer", "real", "double"))
    require(symmetry in ("general", "symmetric", "skew-symmetric", "hermitian"))
    skew = symmetry == "skew-symmetric"
    require(field != "pattern" or (form == "coordinate" and symmetry in ("general", "symmetric")))
    require(not (skew and field == "unsigned-integer"))
    at = 1
    while at < len(lines) and (not split(lines[at]) or split(lines[at])[0][0] == "%"):
        at += 1
    require(at < len(lines))
    sizes = split(lines[at])
    require(len(sizes) == (3 if form == "coordinate" else 2))
    require(all(size.isascii() and size.isdigit() and len(size.lstrip("0")) < 20 for size in sizes))
    nrows, ncols, *count = map(int, sizes)
    require(nrows <= ROWS and ncols < 2**60 and (symmetry == "general" or nrows == ncols))
    body = [words for line in lines[at + 1 :] if (words := split(line))]
    if form == "array":
        require(all(len(words) == 1 for words in body) and nrows * ncols <= 2 * len(body) + nrows)
        columns = range(ncols if nrows else 0)
        places = [(i, j) for j in columns for i in range(0 if symmetry == "general" else j + skew, nrows)]
        require(len(body) == len(places))
    else:
        width = 3 if field != "pattern" or (body and len(body[0]) == 3) else 2
        require(len(body) == count[0] and all(len(words) == width for words in body))
        places = [(slow_id(words[0], 1, nrows), slow_id(words[1], 1, ncols)) for words in body]
        require(not skew or all(i != j for i, j in places))
    values = [1.0] * len(places)
    if field == "pattern":
        _ = [slow_value(word, False) for words in body for word in words[2:]]
    else:
        values = [slow_value(words[-1], "integer" in field) for words in body]
    if "integer" in field:
        one_type(values, 0 if field[0] == "u" else -(2**63) + skew)
        require(not skew or not values or max(values) < 2**63)
    if symmetry != "general":
        off = [k for k, (i, j) in enumerate(places) if i != j]
        values = values + [-values[k] if skew else values[k] for k in off]
        places = places + [places[k][::-1] for k in off]
        if form == "array" and skew:
            places, values = places + [(i, i) for i in range(nrows)], values + [0] * nrows
    require(len(set(places)) == len(places))
    return nrows, ncols, dict(zip(places, values, strict=True))


def slow_weights(words: list[str]) -> list:
    """Integers, unless one of them is none."""
    for word in words:
        slow_value(word, False)
    try:
        values = [slow_value(word, True) for word in words]
        one_type(values)
    except Refused:
        values = [float(word) for word in words]
    return values


def slow_dimacs(text: str) -> tuple:
    lines = [words for line in lines_of(text) if (words := split(line)) and words[0][0] != "c"]
    require(lines and lines[0][:2] == ["p", "sp"] and len(lines[0]) == 4)
    require(all(size.isascii() and size.isdigit() and len(size.lstrip("0")) < 19 for size in lines[0][2:]))
    n, count = map(int, lines[0][2:])
    require(n <= ROWS and len(lines) == count + 1 and all(len(words) == 4 and words[0] == "a" for words in lines[1:]))
    places = [(slow_id(words[1], 1, n), slow_id(words[2], 1, n)) for words in lines[1:]]
    values = slow_weights([words[3] for words in lines[1:]])
    require(len(set(places)) == len(places))
    return n, n, dict(zip(places, values, strict=True))


def slow_edgelist(text: str) -> tuple:
    stated, lines = 0, lines_of(text)
    for line in lines:
        if split(line) and split(line)[0][0] not in "#%":
            break
        if found := re.search(r"\bnodes:[ \t]*([0-9]+)", line, re.ASCII | re.IGNORECASE):
            require(len(found[1].lstrip("0")) < 19)
            stated = int(found[1])
            break
    body = [words for line in lines if (words := split(line)) and words[0][0] not in "#%"]
    width = len(body[0]) if body else 2
    require(width in (2, 3) and all(len(words) == width for words in body))
    places = [(slow_id(words[0], 0, 2**60), slow_id(words[1], 0, 2**60)) for words in body]
    n = max([stated, *(max(place) + 1 for place in places)])
    require(n <= ROWS)
    if width == 2:
        return n, n, dict.fromkeys(places, 1.0)
    values = slow_weights([words[2] for words in body])
    require(len(set(places)) == len(places))
    return n, n, dict(zip(places, values, strict=True))


HEAD = "%%MatrixMarket matrix "
MTX = [
    HEAD + "coordinate real general\n% c\n\n3 4 3\n1 1 1.5\n2 4 -2e3\n3 2 .25\n",
    HEAD + "coordinate integer general\n3 3 3\n1 1 5\n2 3 -7\n3 2 123456789012345678\n",
    HEAD + "coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
    HEAD + "coordinate integer skew-symmetric\n3 3 2\n2 1 4\n3 1 -5\n",
    HEAD[1:] + "coordinate real symmetric\n3 3 3\n1 2 4\n3 1 -5\n2 2 .5\n",
    HEAD + "coordinate pattern general\n3 3 2\n1 2 4\n3 1 -.5\n",
    HEAD + "coordinate unsigned-integer general\n2 2 2\n1 1 18446744073709551615\n2 2 0\n",
    HEAD + "array real general\n2 2\n1\n2.5\n-3\ninf\n",
    HEAD + "array integer symmetric\n2 2\n1\n2\n-3\n",
    HEAD + "array integer skew-symmetric\n3 3\n1\n2\n-3\n",
    HEAD + "coordinate double hermitian\r\n2 2 1\r\n2 1 nan\r\n",
]
DIMACS = ["c x\np sp 4 3\na 1 2 17\nc y\na 4 1 3\na 2 2 0\n", "p sp 2 2\na 1 2 1.5\na 2 1 2\n"]
EDGES = [
    "# Nodes: 9 Edges: 2\n0 1\n3 4\n",
    "% c\n0\t1\t5\n1 2 -6\n2 0 2.5\n",
    "0 1 5\n1 0 18446744073709551615\n",
    "3 1\n1 3\n0 0\n",
]
FORMS: dict[str, tuple[Callable, Callable, list[str]]] = {
    "mtx": (gb.io.mmread, slow_mtx, MTX),
    "dimacs": (gb.io.read_dimacs, slow_dimacs, DIMACS),
    "edgelist": (gb.io.read_edgelist, slow_edgelist, EDGES),
}
WORDS = """0 1 2 3 4 -1 +1 -0 00001 0000000000000000000000001 1.5 -2.5e-3 .5 5. 1e400 1e-400 inf -Infinity nan 1_0 0x1 x
    9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551615 18446744073709551616 a p sp c
    # % %% 1152921504606846975 1152921504606846976 200000000 9007199254740993 1D3 1e 1e+ . - + integer real general
    symmetric skew-symmetric array coordinate pattern unsigned-integer Nodes: complex""".split()
BYTES = [chr(k) for k in range(33)] + ["\x7f", "\x85", "\xa0", "\xff"]


def mutated(text: str, random: np.random.Generator) -> str:
    """Words, bytes and lines that are others, twice there or gone."""
    for _ in range(random.integers(1, 4)):
        words = re.split(r"([ \t\r\n])", text)
        match random.integers(7):
            case 0:
                words[2 * random.integers(len(words) // 2 + 1)] = str(random.choice(WORDS))
            case 1:
                words[random.integers(len(words))] = str(random.choice(BYTES))
            case 2:
                words.insert(random.integers(len(words)), f" {random.choice(WORDS)} ")
            case 3:
                lines = text.split("\n")
                lines.insert(random.integers(len(lines) + 1), str(random.choice([*lines, "", "% c", "# c", "c c"])))
                words = ["\n".join(lines)]
            case 4:
                lines = text.split("\n")
                del lines[random.integers(len(lines))]
                words = ["\n".join(lines)]
            case 5:
                at = random.integers(len(text) + 1)
                words = [text[:at], str(random.choice(BYTES)) if random.random() < 0.7 else "7" * 4500, text[at:]]
            case _:
                at = random.integers(len(text) + 1)
                words = [text[:at]]
        text = "".join(words)
    return text


def entries(A) -> dict:
    rows, cols, values = (part.tolist() for part in A.to_coo())
    return dict(zip(zip(rows, cols, strict=True), values, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", FORMS)
def test_mutated_texts_are_refused_or_read_as_they_are(reader, form, seed):
    read, slow, texts = FORMS[form]
    random = np.random.default_rng([4, list(FORMS).index(form), seed])
    for _ in range(FILES):
        text = mutated(str(random.choice(texts)), random)
        try:
            expected = slow(text)
        except Refused:
            expected = None
        try:
            A = read(io.BytesIO(text.encode("latin-1")), limit=LIMIT)
        except (FileFormatError, IndexOutOfBound, NotImplementedException, ValueError) as error:
            refused = type(error) is not ValueError or "dup_op" in str(error)  # what the pages promise
            assert expected is None, (text, error)
            assert refused, (text, error)
            continue
        assert expected is not None, text
        assert (A.nrows, A.ncols) == expected[:2], text
        found = entries(A)
        assert found.keys() == expected[2].keys(), text
        for place, value in expected[2].items():
            assert found[place] == value or (found[place] != found[place] and value != value), (text, place)


@pytest.mark.parametrize("seed", SEEDS)
def test_npz_files_of_other_arrays_are_refused_or_hold_together(seed):
    """SciPy's compiled code trusts its arrays."""
    from scipy import sparse

    random = np.random.default_rng([6, seed])
    A = sparse.random_array((6, 8), density=0.3, rng=random)
    for _ in range(FILES // 2):
        stream = io.BytesIO()
        sparse.save_npz(stream, A.asformat(str(random.choice(["csr", "csc", "coo", "bsr", "dia"]))))
        parts = dict(np.load(io.BytesIO(stream.getvalue())))
        for _ in range(random.integers(1, 3)):
            name = str(random.choice([name for name in parts if parts[name].dtype.kind == "i" and parts[name].size]))
            part = parts[name].astype(np.int64).copy()
            match random.integers(4):
                case 0:
                    part = part[: random.integers(part.shape[0] + 1)]
                case 1:
                    part = part.reshape(-1, 1)
                case _:
                    at = random.integers(part.size)
                    part.flat[at] = near(random, int(part.flat[at])) - 2**63 if random.random() < 0.3 else 7
            parts[name] = part
        stream = io.BytesIO()
        np.savez(stream, **parts)
        try:
            found = gb.io.read_npz(io.BytesIO(stream.getvalue()), limit=LIMIT, dup_op="plus")
        except (FileFormatError, NotImplementedException):
            continue
        assert whole(found), parts


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_packed_texts_and_npz_files_are_refused_or_equal(seed):
    from scipy import sparse

    random = np.random.default_rng([5, seed])
    A = gb.Matrix.from_coo([0, 1, 1, 3], [2, 0, 1, 3], [1.5, 2.5, -3.5, 4.5], nrows=4, ncols=4)
    files = [gzip.compress(MTX[0].encode())]
    for format in ("csr", "csc", "coo", "bsr", "dia"):
        for compressed in (True, False):
            stream = io.BytesIO()
            sparse.save_npz(stream, A.to_scipy_sparse().asformat(format), compressed)
            files.append(stream.getvalue())
    for _ in range(FILES // 2):
        chosen = random.integers(len(files))
        data, read = bytearray(files[chosen]), gb.io.read_npz if chosen else gb.io.mmread
        match random.integers(3):
            case 0:
                data = data[: random.integers(len(data))]
            case 1:
                data = spliced(data, files[random.integers(len(files))], random)
            case _:
                data = flipped(data, random)
        try:
            found = read(io.BytesIO(bytes(data)), limit=LIMIT)
        except (FileFormatError, NotImplementedException):
            continue
        assert found.isequal(read(io.BytesIO(files[chosen]))), bytes(data).hex()
