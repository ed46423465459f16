"""Matrix Market files (Boisvert, Pozo, Remington: The Matrix Market Exchange Formats, NISTIR 5935, 1996), and the
`unsigned-integer` field that SciPy adds."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import IO, Any

import numpy as np

from gbgpu import Matrix
from gbgpu.errors import InvalidValue, NotImplementedException, message
from gbgpu.io import entries
from gbgpu.io.entries import Layout, malformed, shown
from gbgpu.io.files import damage, open_bytes, writing

_KINDS = {
    "pattern": entries.NONE,
    "integer": entries.INTEGER,
    "unsigned-integer": entries.INTEGER,
    "real": entries.REAL,
    "double": entries.REAL,
}
_GAPS = {"general": entries.ANY, "symmetric": 0, "skew-symmetric": 1, "hermitian": 0}
_OTHERS = ("scipy", "fmm", "fast_matrix_market")
_DUPLICATES = "Duplicate indices found, must provide `dup_op` BinaryOp"


@dataclass(frozen=True)
class Coordinates:
    """A parsed file: zero-based ids (int64) with both triangles present; `values` is None for a pattern."""

    nrows: int
    ncols: int
    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None
    symmetric: bool = False  # surely; the comparison is spared


@dataclass(frozen=True)
class _Header:
    form: str
    field: str
    symmetry: str
    nrows: int = 0
    ncols: int = 0
    entries: int = 0
    line: int = 1  # the number of the size line

    @property
    def layout(self) -> Layout:
        return Layout(
            kind=_KINDS[self.field],
            ids=self.form == "coordinate",
            nrows=self.nrows,
            ncols=self.ncols,
            gap=_GAPS[self.symmetry],
            unsigned=self.field == "unsigned-integer",
            count=self.entries,
        )


def mmread(source: Any, engine: str = "auto", *, dup_op: Any = None, name: str | None = None, **options: Any) -> Matrix:
    """Read a Matrix from a Matrix Market file, plain or packed by gzip, bzip2 or xz.

    `source` is a path or a file object. Coordinate and array form (all of whose values become entries); general,
    symmetric, skew-symmetric and real hermitian, which come out with both triangles. Fields: pattern (an FP64 matrix of
    one value, 1, as python-graphblas reads it), integer (INT64, or UINT64 if a value needs it), unsigned-integer
    (UINT64), real and double (FP64). `dup_op` combines entries that occur twice.

    `engine`: "auto" and "gbgpu" read here; "scipy" uses `scipy.io.mmread`, "fmm" or "fast_matrix_market" that package,
    to which `options` go.

    Raises FileFormatError (malformed or truncated, with the line number), IndexOutOfBound (an id outside the stated
    shape), ValueError (an entry twice and no `dup_op`, an unknown engine), NotImplementedException (complex) and
    OSError.
    """
    if engine.lower() in _OTHERS:
        return _from_scipy(_reader(engine.lower())(source, **options), dup_op, name)
    if engine.lower() not in ("auto", "gbgpu"):
        raise ValueError(message(f"an engine: auto, gbgpu, {', '.join(_OTHERS)}", repr(engine)))
    if options:
        raise TypeError(message("no more keywords for this engine", ", ".join(options), 'engine="fmm"'))
    return to_matrix(read_coordinates(source), dup_op=dup_op, name=name)


def to_matrix(read: Coordinates, *, dtype: Any = None, dup_op: Any = None, name: str | None = None) -> Matrix:
    """The Matrix of what a file holds; a pattern is one of ones, FP64 unless `dtype` says otherwise."""
    shape: dict[str, Any] = {"nrows": read.nrows, "ncols": read.ncols, "name": name}
    iso = read.values is None and (dup_op is None or isinstance(dup_op, str) and dup_op == "any")
    values: Any = 1.0 if iso else np.ones(read.rows.size) if read.values is None else read.values
    matrix = Matrix.from_coo(read.rows, read.cols, values, dtype, dup_op=dup_op, **shape)
    if iso and dup_op is None and matrix.nvals != read.rows.size:  # the constructor may have found none to refuse
        raise ValueError(_DUPLICATES)
    if read.symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _reader(engine: str) -> Any:
    if engine == "scipy":
        from scipy.io import mmread as read
    else:
        try:
            from fast_matrix_market import mmread as read
        except ImportError as error:
            raise ImportError(f'engine="{engine}" needs fast_matrix_market: pip install fast-matrix-market') from error
    return read


def _from_scipy(found: Any, dup_op: Any, name: str | None) -> Matrix:
    """What another engine read: a COO matrix or an array."""
    if isinstance(found, np.ndarray):
        return Matrix.from_dense(found, name=name)
    return Matrix.from_coo(
        found.row, found.col, found.data, nrows=found.shape[0], ncols=found.shape[1], dup_op=dup_op, name=name
    )


def read_coordinates(source: Any) -> Coordinates:
    """What a file holds, as arrays; raises as `mmread` does."""
    with open_bytes(source) as stream:
        with damage(lambda: "1 or later"):
            header = _read_header(stream)
        found = entries.read_entries(stream, header.layout, header.line + 1)
    return _unfold(found, header) if header.form == "array" else _mirror(found, header)


def _read_header(stream: IO[bytes]) -> _Header:
    """The banner, the comments and the size line."""
    banner = _banner(stream.readline(1 << 12))
    number = 1
    for text in iter(lambda: stream.readline(1 << 20), b""):
        number += 1
        if not text.startswith(b"%") and text.strip():
            return _size(text, number, banner)
    raise malformed(number, "a line with the sizes", "the end of the file")


def _banner(text: bytes) -> _Header:
    words = text.decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        expected = '"%%MatrixMarket matrix <coordinate or array> <field> <symmetry>"'
        raise malformed(1, expected, shown(text), "is it a Matrix Market file?")
    form, field, symmetry = words[2:]
    if field == "complex":
        raise NotImplementedException("line 1: " + message("real values", field, "no complex type is supported"))
    known = form in ("coordinate", "array") and field in _KINDS and symmetry in _GAPS
    if not known or (field == "pattern" and (form == "array" or symmetry in ("skew-symmetric", "hermitian"))):
        expected = f"coordinate or array, one of {', '.join(_KINDS)}, and one of {', '.join(_GAPS)}"
        raise malformed(1, expected, " ".join(words[2:]))
    return _Header(form, field, symmetry)


def _size(text: bytes, number: int, banner: _Header) -> _Header:
    words, form = text.split(), banner.form
    what = ("rows", "columns", "entries")[: 3 if form == "coordinate" else 2]
    if len(words) != len(what) or not all(word.isdigit() for word in words):
        raise malformed(number, f"{len(what)} numbers: {', '.join(what)}", shown(text))
    nrows, ncols = int(words[0]), int(words[1])
    if banner.symmetry != "general" and nrows != ncols:
        raise malformed(number, f"a square shape ({banner.symmetry})", f"{nrows} x {ncols}")
    count = int(words[2]) if form == "coordinate" else _array_entries(nrows, ncols, banner.symmetry)
    if max(nrows, ncols, count) >= entries.UNBOUNDED:
        raise malformed(number, "sizes below 2**60", shown(text))
    return _Header(form, banner.field, banner.symmetry, nrows, ncols, count, number)


def _array_entries(nrows: int, ncols: int, symmetry: str) -> int:
    if symmetry == "general":
        return nrows * ncols
    return nrows * (nrows - 1) // 2 if symmetry == "skew-symmetric" else nrows * (nrows + 1) // 2


def _mirror(found: entries.Entries, header: _Header) -> Coordinates:
    """The other triangle of a symmetric file filled in."""
    rows, cols, values = found.rows, found.cols, found.values
    if header.symmetry != "general":
        off = np.flatnonzero(rows != cols)
        rows, cols = np.concatenate((rows, cols[off])), np.concatenate((cols, rows[off]))
        if values is not None:
            mirrored = -values[off] if header.symmetry == "skew-symmetric" else values[off]
            values = np.concatenate((values, mirrored))
    return Coordinates(header.nrows, header.ncols, rows, cols, values, _GAPS[header.symmetry] == 0)


def _unfold(found: entries.Entries, header: _Header) -> Coordinates:
    """An array, column after column in the file, as coordinates; of a symmetric one the file has the lower triangle."""
    assert found.values is not None
    n, m, values = header.nrows, header.ncols, found.values
    full = np.zeros((n, m), values.dtype)
    if header.symmetry == "general":
        full[...] = values.reshape(m, n).T
    else:
        cols, rows = np.triu_indices(n, 1 if header.symmetry == "skew-symmetric" else 0)
        full[cols, rows] = -values if header.symmetry == "skew-symmetric" else values
        full[rows, cols] = values
    rows, cols = (ids.ravel() for ids in np.indices((n, m)))
    return Coordinates(n, m, rows, cols, full.ravel(), _GAPS[header.symmetry] == 0)


def mmwrite(
    target: Any,
    matrix: Matrix,
    engine: str = "auto",
    *,
    comment: str = "",
    field: str | None = None,
    precision: int | None = None,
    symmetry: str | None = None,
    form: str = "coordinate",
) -> None:
    """Write a Matrix as a Matrix Market file; packed if the name ends in .gz, .bz2 or .xz.

    `target` is a path, replaced in one step when all is written, or a binary file object. Each line of `comment`
    becomes a comment. `field` is by default integer (UINT64: unsigned-integer), real, with as many digits as it takes
    to read the same number (or `precision` of them), or, for BOOL and FP64 matrices whose values are all 1, pattern.
    With `symmetry="symmetric"` or "skew-symmetric" only the lower triangle is written. `form="array"` writes a matrix
    with all entries present as an array. `engine`: "auto" and "scipy" format by SciPy, "fmm" by fast_matrix_market.

    Raises InvalidValue for a symmetry that the matrix has not, missing entries of an array, and unknown words.
    """
    symmetry = symmetry or "general"
    _one_of("symmetry", symmetry, ("general", "symmetric", "skew-symmetric"))
    _one_of("form", form, ("coordinate", "array"))
    _one_of("engine", engine.lower(), ("auto", *_OTHERS))
    _one_of("field", field or "real", tuple(_KINDS)[:4])
    if not isinstance(matrix, Matrix):
        raise TypeError(message("a Matrix", type(matrix).__name__, "a Vector is kept by gb.io.save"))
    rows, cols, values = matrix.to_coo()
    if symmetry != "general":
        kept = _lower_triangle(matrix, rows, cols, values, 1 if symmetry == "symmetric" else -1)
        if form == "coordinate":
            rows, cols, values = rows[kept], cols[kept], values[kept]
    body, field = _body(matrix.shape, rows, cols, values, field, symmetry, form)
    with writing(target) as stream:
        forward = SimpleNamespace(write=stream.write)  # what has a `seek` is sought in, which packers refuse
        _writer(engine.lower())(forward, body, comment=comment, field=field, precision=precision, symmetry=symmetry)


def _one_of(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise InvalidValue(message(f"{what} to be one of {', '.join(words)}", repr(word)))


def _writer(engine: str) -> Any:
    """SciPy's or fast_matrix_market's writer: both format numbers in C++."""
    if engine in ("fmm", "fast_matrix_market"):
        try:
            from fast_matrix_market import mmwrite as write
        except ImportError as error:
            raise ImportError(f'engine="{engine}" needs fast_matrix_market: pip install fast-matrix-market') from error
    else:
        from scipy.io import mmwrite as write
    return write


def _lower_triangle(A: Matrix, rows: Any, cols: Any, values: Any, sign: int) -> np.ndarray:
    """Which entries to write of a matrix that equals `sign` times its transpose; InvalidValue if it does not."""
    lower, upper, diagonal = rows > cols, rows < cols, rows == cols
    below, above = np.lexsort((cols[lower], rows[lower])), np.lexsort((rows[upper], cols[upper]))
    mirrored = values[upper][above] if sign > 0 else -values[upper][above]
    same = (
        A.nrows == A.ncols
        and below.size == above.size
        and np.array_equal(rows[lower][below], cols[upper][above])
        and np.array_equal(cols[lower][below], rows[upper][above])
        and np.array_equal(values[lower][below], mirrored)
        and not (sign < 0 and (values[diagonal] != 0).any())
    )
    if not same:
        kind = "symmetric" if sign > 0 else "skew-symmetric"
        raise InvalidValue(message(f"a {kind} matrix", "one that is not", 'write it with symmetry="general"'))
    return lower | diagonal if sign > 0 else lower


def _body(shape: tuple, rows: Any, cols: Any, values: Any, field: str | None, symmetry: str, form: str) -> tuple:
    """(what the writers take, its field)."""
    ones = values.dtype in (np.bool_, np.float64) and symmetry != "skew-symmetric" and bool((values == 1).all())
    kind = {"f": "real", "u": "unsigned-integer" if values.dtype == np.uint64 else "integer"}.get(values.dtype.kind)
    field = field or ("pattern" if ones and form == "coordinate" else kind or "integer")
    if values.dtype.kind != "f" and values.dtype.itemsize < 4:
        values = values.astype(np.int32)  # the writers know no smaller ones
    if form == "coordinate":
        from scipy.sparse import coo_array

        return coo_array((values, (rows, cols)), shape=shape), field
    if values.size != shape[0] * shape[1]:
        raise InvalidValue(message("all entries of an array", f"{values.size} of {shape}", 'form="coordinate"'))
    return values.reshape(shape), field
