"""Matrix Market files, and the `unsigned-integer` field that SciPy adds.

Source: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import IO, Any

import numpy as np

from gbgpu import Matrix, dtypes
from gbgpu.errors import FileFormatError, InvalidValue, NotImplementedException, message
from gbgpu.interrupts import imported
from gbgpu.io import checks, entries, shares
from gbgpu.io.entries import Entries, Layout
from gbgpu.io.files import Source, check_rows, writing
from gbgpu.io.text import Text, joined, malformed, shown, whole, words

_KINDS = {
    "pattern": entries.NONE,
    "integer": entries.INTEGER,
    "unsigned-integer": entries.INTEGER,
    "real": entries.REAL,
    "double": entries.REAL,
}
_MIRRORS = {"general": 0, "symmetric": 1, "skew-symmetric": -1, "hermitian": 1}
_UNSIGNED = "pattern", "unsigned-integer"  # no fields of skew-symmetric files
_OTHERS = ("scipy", "fmm", "fast_matrix_market")
_BEFORE = re.compile(rb"(%[^\n]*\n)+[^%\n]+\n")  # comments and sizes
_DUPLICATES = "Duplicate indices found, must provide `dup_op` BinaryOp"


@dataclass(frozen=True)
class Coordinates:
    """A parsed file: zero-based ids (int64); `values` is None for a pattern."""

    nrows: int
    ncols: int
    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray | None
    symmetric: bool = False  # surely; the comparison is spared
    mirror: int = 0  # an entry stands for itself (0), for its mirror image too (1), with the sign changed there (-1)


@dataclass(frozen=True)
class _Header:
    form: str
    field: str
    symmetry: str
    nrows: int = 0
    ncols: int = 0
    entries: int = 0

    @property
    def layout(self) -> Layout:
        unsigned, skew = self.field == "unsigned-integer", self.symmetry == "skew-symmetric"
        return Layout(
            kind=_KINDS[self.field],
            ids=self.form == "coordinate",
            nrows=self.nrows,
            ncols=self.ncols,
            diagonal=not skew,
            seen=entries.LARGE * unsigned | entries.NEGATIVE * skew,  # what is mirrored with its sign changed has one
            count=self.entries,
            detect=entries.REAL * (self.field == "pattern"),  # values of a pattern are passed over, as SciPy does
        )


def mmread(
    source: Any,
    engine: str = "auto",
    *,
    dup_op: Any = None,
    limit: int | None = None,
    name: str | None = None,
    **options: Any,
) -> Matrix:
    """Read a Matrix from a Matrix Market file.

    Parameters
    ----------
    source : path, file object or several files
        Plain, or packed by gzip, bzip2 or xz. The entries of several files (see `gb.io.read`) are those of one matrix.
    engine : str
        "auto" or "gbgpu"; "scipy" for `scipy.io.mmread`; "fmm" or "fast_matrix_market" for that package. Other engines
        raise errors of their own, and know no limit.
    dup_op : operator or str, optional
        The binary operator that combines entries at one place. In a symmetric file i j and j i are one place.
    limit : int, optional
        Bytes that the file may have or become, unpacked or as rows without entries. By default 200 times its size, and
        1 GiB at least.
    name : str, optional
        The matrix's name.
    **options : object
        Go to another engine.

    Returns
    -------
    Matrix
        A new one. The dtype depends on the field:

        - pattern: FP64, every value 1, stored once; values after the ids are passed over;
        - integer: INT64, or UINT64 if a value needs it;
        - unsigned-integer: UINT64;
        - real and double: FP64.

    Raises
    ------
    FileFormatError
        If the file is malformed, truncated or over the limit; the message has the line number.
    IndexOutOfBound
        If an id is outside the stated shape.
    ValueError
        If a place comes twice without `dup_op`, or the engine is unknown.
    NotImplementedException
        If the field is complex.
    OutOfMemory, OSError
        If memory or the file is not there.

    Notes
    -----
    Files are in coordinate form, or in array form, all of whose values become entries. They may be general, symmetric,
    skew-symmetric or real hermitian; the matrix has both triangles, whichever triangle an entry is in.

    References
    ----------
    Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.
    """
    checks.word("engine", engine)
    checks.word("name", name, none=True)
    if engine.lower() in _OTHERS:
        return _from_scipy(_reader(engine.lower())(source, **options), dup_op, name)
    if engine.lower() not in ("auto", "gbgpu"):
        raise ValueError(message(f"an engine: auto, gbgpu, {', '.join(_OTHERS)}", repr(engine)))
    if options:
        raise TypeError(message("no more keywords for this engine", ", ".join(options), 'engine="fmm"'))
    with checks.memory("the matrix of a file"):
        found, header = _read(source, limit)
        read = shares.alike(lambda: _coordinates(found, header), "an array")
        both = header.symmetry != "general"
        again = partial(shares.twice, source, limit, _begin, found, 1, both, 1)
        return to_matrix(read, again, dup_op=dup_op, name=name)


def to_matrix(
    read: Coordinates, again: Callable[[], str], *, dtype: Any = None, dup_op: Any = None, name: str | None = None
) -> Matrix:
    """The Matrix of what a file holds; a pattern is one of ones, FP64 unless `dtype` says otherwise.

    `again()` tells where an entry comes twice.
    """
    try:
        return _matrix(read, dtype, dup_op, name)
    except ValueError as error:
        if str(error) != _DUPLICATES:
            raise
        raise ValueError(f"{_DUPLICATES}{again()}") from None


def _matrix(read: Coordinates, dtype: Any, dup_op: Any, name: str | None) -> Matrix:
    shape: dict[str, Any] = {"nrows": read.nrows, "ncols": read.ncols, "name": name}
    iso = read.values is None and (dup_op is None or isinstance(dup_op, str) and dup_op == "any")
    if read.mirror:
        if dup_op is not None and not iso:
            read = _combined(read, dtype, dup_op)
        read = shares.alike(lambda: mirrored(read), "the other triangle")
    values: Any = 1.0 if iso else np.ones(read.rows.size) if read.values is None else read.values
    matrix = Matrix.from_coo(read.rows, read.cols, values, dtype, dup_op=dup_op, local=True, **shape)
    if iso and dup_op is None:  # the constructor may have found none to refuse
        if matrix.nvals != sum(shares.of_all(read.rows.size, "entries of a file")):
            raise ValueError(_DUPLICATES)
    if read.symmetric:
        matrix._session.declare_symmetric(matrix)
    return matrix


def _combined(read: Coordinates, dtype: Any, dup_op: Any) -> Coordinates:
    """The entries of i, j and of j, i as one in the lower triangle.

    They are combined in the order of the file before the other triangle follows: afterwards an operator such as first
    would take another one in each triangle.
    """

    def lower() -> Any:
        if read.values is None:
            return np.ones(read.rows.size)
        turned = np.flatnonzero(read.rows < read.cols) if read.mirror < 0 else read.rows[:0]
        if not turned.size:
            return read.values
        values = read.values.copy()
        values[turned] = _negated(values[turned])
        return values

    rows, cols = np.maximum(read.rows, read.cols), np.minimum(read.rows, read.cols)
    values = shares.alike(lower, "the lower triangle")
    shape: dict[str, Any] = {"nrows": read.nrows, "ncols": read.ncols}
    once = Matrix.from_coo(rows, cols, values, dtype, dup_op=dup_op, local=True, **shape)
    rows, cols, values = once.to_coo(local=True)
    return replace(read, rows=rows, cols=cols, values=values)


def mirrored(read: Coordinates) -> Coordinates:
    """With the entries of both triangles, if each stands for two."""
    rows, cols, values = read.rows, read.cols, read.values
    if not read.mirror:
        return read
    off = np.flatnonzero(rows != cols)
    if values is not None:
        values = np.concatenate((values, _negated(values[off]) if read.mirror < 0 else values[off]))
    rows, cols = np.concatenate((rows, cols[off])), np.concatenate((cols, rows[off]))
    return Coordinates(read.nrows, read.ncols, rows, cols, values, read.mirror > 0)


def _reader(engine: str) -> Any:
    if engine == "scipy":
        return imported("scipy.io").mmread
    return _fast(engine).mmread


def _fast(engine: str) -> Any:
    try:
        return imported("fast_matrix_market")
    except ImportError as error:
        raise ImportError(f'engine="{engine}" needs fast_matrix_market: pip install fast-matrix-market') from error


def _from_scipy(found: Any, dup_op: Any, name: str | None) -> Matrix:
    """What another engine read: a COO matrix or an array."""
    if isinstance(found, np.ndarray):
        return Matrix.from_dense(found, name=name)
    return Matrix.from_coo(
        found.row, found.col, found.data, nrows=found.shape[0], ncols=found.shape[1], dup_op=dup_op, name=name
    )


def read_coordinates(source: Any, limit: int | None = None) -> Coordinates:
    """The content of a file as arrays with both triangles; raises as `mmread` does.

    Of several ranks each gets its share.
    """
    return mirrored(_coordinates(*_read(source, limit)))


def _read(source: Any, limit: int | None) -> tuple[Entries, _Header]:
    found, heads = shares.read(source, limit, _begin)
    for head in heads[1:]:
        if replace(head, entries=0) != replace(heads[0], entries=0):
            raise FileFormatError(message(f"files of one shape and kind: {heads[0]}", head))
    if len(heads) > 1 and heads[0].form == "array":
        raise FileFormatError(message("one file with an array", len(heads)))
    return found, heads[0]


def _begin(text: Text, opened: Source) -> tuple[Layout, _Header]:
    """What comes before the entries."""
    banner = _banner(text.peek())
    text.drop()
    text.skip(b"%%")
    header = _size(text.peek(), text.line, banner)
    check_rows(opened.limit, header.nrows, text.where())
    text.drop()
    return header.layout, header


def _coordinates(found: Entries, header: _Header) -> Coordinates:
    if header.form == "array":
        return _unfold(found, header)
    values = None if header.field == "pattern" else found.values
    return Coordinates(header.nrows, header.ncols, found.rows, found.cols, values, mirror=_MIRRORS[header.symmetry])


def _banner(text: bytes) -> _Header:
    found = [word.decode("latin-1").lower() for word in words(text)]
    if len(found) != 5 or found[:2] not in (["%%matrixmarket", "matrix"], ["%matrixmarket", "matrix"]):
        expected = '"%%MatrixMarket matrix <coordinate or array> <field> <symmetry>"'
        hint = f"{apart}.txt, an edge list" if (apart := joined(text)) else "is it a Matrix Market file?"
        raise malformed(1, expected, shown(text), hint)
    form, field, symmetry = found[2:]
    if field == "complex":
        raise NotImplementedException("line 1: " + message("real values", field, "no complex type is supported"))
    known = form in ("coordinate", "array") and field in _KINDS and symmetry in _MIRRORS
    unsigned = field in _UNSIGNED and symmetry == "skew-symmetric"
    if not known or unsigned or (field == "pattern" and (form == "array" or symmetry == "hermitian")):
        expected = f"coordinate or array, one of {', '.join(_KINDS)}, and one of {', '.join(_MIRRORS)}"
        raise malformed(1, expected, " ".join(found[2:]))
    return _Header(form, field, symmetry)


def _size(text: bytes, number: int, banner: _Header) -> _Header:
    form = banner.form
    what = ("rows", "columns", "entries")[: 3 if form == "coordinate" else 2]
    sizes = [size for word in words(text) if word.isdigit() and (size := whole(word)) is not None]
    if not text:
        raise malformed(number - 1, "a line with the sizes", "the end of the file")
    if len(sizes) != len(what) or len(words(text)) != len(what):
        raise malformed(number, f"{len(what)} numbers: {', '.join(what)}", shown(text))
    nrows, ncols, count = *sizes[:2], sizes[-1]
    if banner.symmetry != "general" and nrows != ncols:
        raise malformed(number, f"a square shape ({banner.symmetry})", f"{nrows} x {ncols}")
    count = count if form == "coordinate" else _array_entries(nrows, ncols, banner.symmetry)
    if max(nrows, ncols, count) >= entries.UNBOUNDED:
        raise malformed(number, "sizes below 2**60", shown(text))
    return _Header(form, banner.field, banner.symmetry, nrows, ncols, count)


def _array_entries(nrows: int, ncols: int, symmetry: str) -> int:
    if symmetry == "general":
        return nrows * ncols
    return nrows * (nrows - 1) // 2 if symmetry == "skew-symmetric" else nrows * (nrows + 1) // 2


def _negated(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.int64 and bool((values == (low := np.iinfo(np.int64).min)).any()):
        raise FileFormatError(message("values of a skew-symmetric matrix from -2**63 + 1 on", low, "2**63 is no INT64"))
    return -values


def _unfold(found: Entries, header: _Header) -> Coordinates:
    """An array, column after column in the file, as coordinates; of a symmetric one the file has the lower triangle."""
    assert found.values is not None
    n, m, values = header.nrows, header.ncols, found.values
    if values.size < header.entries:  # the first rank has all of them
        none = np.zeros(0, np.int64)
        return Coordinates(n, m, none, none, values, _MIRRORS[header.symmetry] > 0)
    full = np.zeros((n, m), values.dtype)
    if header.symmetry == "general":
        full[...] = values.reshape(m, n).T
    else:
        cols, rows = np.triu_indices(n, 1 if header.symmetry == "skew-symmetric" else 0)
        full[cols, rows] = _negated(values) if header.symmetry == "skew-symmetric" else values
        full[rows, cols] = values
    rows, cols = (ids.ravel() for ids in np.indices((n, m)))
    return Coordinates(n, m, rows, cols, full.ravel(), _MIRRORS[header.symmetry] > 0)


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
    parts: bool = False,
) -> None:
    """Write a Matrix as a Matrix Market file.

    Parameters
    ----------
    target : path or file object
        A path, replaced in one step when all is written (packed if the name ends in .gz, .bz2 or .xz); or a binary file
        object.
    matrix : Matrix
        The matrix.
    engine : str
        What formats numbers: "auto" or "scipy"; "fmm" or "fast_matrix_market" for that package.
    comment : str
        Each line becomes a comment.
    field : str, optional
        "integer", "unsigned-integer", "real" or "pattern". By default as the dtype is; pattern for BOOL and FP64
        matrices whose values are all 1.
    precision : int, optional
        Digits of real values, 1 to 17. By default as many as it takes to read the same number.
    symmetry : str, optional
        "symmetric" or "skew-symmetric": only the lower triangle is written.
    form : str
        "coordinate", or "array" for a matrix with all entries present.
    parts : bool
        Whether each rank writes a file with its entries: A.part-0-of-3.mtx and so on for A.mtx.
        `gb.io.read("A.part-*.mtx")` takes them together.

    Raises
    ------
    InvalidValue
        If the matrix has not the symmetry, values are not of the field, an array misses entries, or a word is unknown.
    TypeError
        If `matrix` is no Matrix.
    OSError
        If the file can't be written.
    """
    symmetry = "general" if symmetry is None else symmetry
    checks.word("symmetry", symmetry, ("general", "symmetric", "skew-symmetric"))
    checks.word("form", form, ("coordinate", "array"))
    checks.word("engine", engine)
    checks.word("engine", engine.lower(), ("auto", *_OTHERS))
    checks.word("field", field, tuple(_KINDS)[:4], none=True)
    precision = checks.whole("precision", precision, 1, 17, none=True)  # SciPy's writer overruns its room beyond
    comment = "\n".join(checks.lines(comment))
    if field == "pattern" and form == "array" or field in _UNSIGNED and symmetry == "skew-symmetric":
        expected = f"a field that Matrix Market has with {'array' if form == 'array' else symmetry}"
        raise InvalidValue(message(expected, repr(field), 'field="real"'))
    if not isinstance(matrix, Matrix):
        raise TypeError(message("a Matrix", type(matrix).__name__, "a Vector is kept by gb.io.save"))
    checks.flag("parts", parts)
    write = partial(_writer(engine.lower()), precision=precision, symmetry=symmetry)
    rows, cols, values = matrix.to_coo(local=symmetry == "general" and form == "coordinate")
    kept: Any = slice(None)
    if symmetry != "general":
        kept = _lower_triangle(matrix, rows, cols, values, 1 if symmetry == "symmetric" else -1)
    if form == "array":
        values, field = _values(values, field, symmetry, False)
        array = _array(matrix.shape, values, parts)
        with writing(target) as stream:  # what has a `seek` is sought in, which packers refuse
            return write(SimpleNamespace(write=stream.write), array, comment=comment, field=field)
    if symmetry != "general":
        rows, cols, values = shares.cut(rows[kept], cols[kept], values[kept])
    values, field = _values(values, field, symmetry, True)

    def head(count: int) -> bytes:
        notes = "".join(f"%{line}\n" for line in comment.split("\n"))
        sizes = f"{matrix.nrows} {matrix.ncols} {count}\n"
        return f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{notes}{sizes}".encode()

    def body(stream: IO[bytes]) -> None:
        if len(rows):
            found = imported("scipy.sparse").coo_array((values, (rows, cols)), shape=matrix.shape)
            write(_Body(stream), found, field=field)

    shares.write(target, len(rows), head, body, parts)


class _Body:
    """What a writer writes, without the lines before the entries."""

    def __init__(self, stream: IO[bytes]):
        self._stream, self._held = stream, b""
        self._passed = False

    def write(self, data: bytes) -> None:
        if not self._passed:
            data = self._held = self._held + bytes(data)
            found = _BEFORE.match(data)
            if found is None:
                return
            data, self._passed = data[found.end() :], True
        self._stream.write(data)


def _writer(engine: str) -> Any:
    """SciPy's or fast_matrix_market's writer: both format numbers in C++."""
    if engine in ("fmm", "fast_matrix_market"):
        return _fast(engine).mmwrite
    return imported("scipy.io").mmwrite


def _lower_triangle(A: Matrix, rows: Any, cols: Any, values: Any, sign: int) -> np.ndarray:
    """Which entries to write of a matrix that equals `sign` times its transpose; InvalidValue if it does not."""
    lower, upper, diagonal = rows > cols, rows < cols, rows == cols
    below, above = np.lexsort((cols[lower], rows[lower])), np.lexsort((rows[upper], cols[upper]))
    same = (
        A.nrows == A.ncols
        and below.size == above.size
        and np.array_equal(rows[lower][below], cols[upper][above])
        and np.array_equal(cols[lower][below], rows[upper][above])
        and _same(values[lower][below], values[upper][above], sign)
        and not (sign < 0 and (values[diagonal] != 0).any())
    )
    if not same:
        kind = "symmetric" if sign > 0 else "skew-symmetric"
        raise InvalidValue(message(f"a {kind} matrix", "one that is not", 'write it with symmetry="general"'))
    return lower | diagonal if sign > 0 else lower


def _same(values: np.ndarray, others: np.ndarray, sign: int) -> bool:
    """Whether values are `sign` times others, as numbers: -128 and 255 are nothing's negative in their types."""
    floats = values.dtype.kind == "f"  # NaN is as good as another one
    if sign > 0:
        return np.array_equal(values, others, equal_nan=floats)
    opposite = np.array_equal(values > 0, others < 0) and np.array_equal(values < 0, others > 0)
    return opposite and np.array_equal(values, 0 - others, equal_nan=floats)


def _values(values: np.ndarray, field: str | None, symmetry: str, entries: bool) -> tuple[np.ndarray, str]:
    """(values as the writers take them, the field that those of all ranks are of)."""
    unsigned = "unsigned-integer" if values.dtype == np.uint64 and symmetry != "skew-symmetric" else "integer"
    ones = values.dtype in (np.bool_, np.float64) and symmetry != "skew-symmetric" and bool((values == 1).all())
    kind = {"f": "real", "u": unsigned}.get(values.dtype.kind)
    ones = entries and all(shares.of_all(ones, "whether values are ones"))
    field = field or ("pattern" if ones else kind or "integer")
    if field == "unsigned-integer" or (field == "integer" and values.dtype.kind in "fu"):  # the writers would wrap
        fit = partial(checks.fitting, values, dtypes.UINT64 if field == "unsigned-integer" else dtypes.INT64)
        values = shares.alike(fit, "values of a field")
    if values.dtype.kind != "f" and values.dtype.itemsize < 4:
        values = values.astype(np.int32)  # the writers know no smaller ones
    return values, field


def _array(shape: tuple[int, ...], values: np.ndarray, parts: bool) -> np.ndarray:
    if parts:
        raise InvalidValue(message("entries, in parts", "an array", 'form="coordinate"'))
    if values.size != shape[0] * shape[1]:
        raise InvalidValue(message("all entries of an array", f"{values.size} of {shape}", 'form="coordinate"'))
    return values.reshape(shape)
