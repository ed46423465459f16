"""Edge lists: SNAP's (`source target [weight]`, ids from 0) and DIMACS shortest-path files (`a u v w`, ids from 1).

Sources: the files of the Stanford Large Network Dataset Collection; the 9th DIMACS Implementation Challenge's format.
Ids are indices: a vertex that no edge names is an isolated one.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import IO, Any

import numpy as np

from gbgpu import Matrix, dtypes
from gbgpu.errors import FileFormatError, InvalidValue, message
from gbgpu.io import checks, entries, shares
from gbgpu.io.entries import Entries, Layout
from gbgpu.io.files import Source, check_rows
from gbgpu.io.matrixmarket import Coordinates, to_matrix
from gbgpu.io.text import MOST, Text, joined, malformed, shown, whole, words

_COMMENTS = b"#%"
_NODES = re.compile(rb"^[ \t\r]*[#%][^\n]*?\bnodes:[ \t]*([0-9]+)(?![0-9]|[.,][0-9])", re.IGNORECASE | re.MULTILINE)
# As tables name the ends of an edge, alone or with "node" and "id" beside them: from_node_id, "Source Id", node1.
_ENDS = tuple(pair.split() for pair in (b"source target", b"src dst", b"from to", b"start end", b"u v", b"i j", b"1 2"))
_BESIDE = re.compile(rb"node|vertex|id|[^a-z0-9]")
_HEAD = re.compile(rb"[A-Za-z_]|[\"'](?![+-]?[0-9])")  # what an id in the head of a table begins with; no quoted id
_LEADING = 1 << 16  # bytes of comments in which it is sought
_LINES = 1 << 15  # lines formatted at once


def read_edgelist(
    source: Any,
    *,
    dtype: Any = None,
    weighted: bool | None = None,
    directed: bool = True,
    nrows: int | None = None,
    base: int = 0,
    delimiter: str | None = None,
    columns: Any = None,
    dup_op: Any = None,
    limit: int | None = None,
    name: str | None = None,
) -> Matrix:
    """Read a square Matrix from lines of two ids, with a weight or without one.

    Parameters
    ----------
    source : path, file object or several files
        Plain, or packed by gzip, bzip2 or xz; several files: see `gb.io.read`. Lines that begin with # or % are
        comments.
    dtype : dtype, optional
        The type of the weights. By default INT64, or FP64 if a weight is not whole; FP64 without weights.
    weighted : bool, optional
        Whether lines have weights. By default as the first edge is. Without a weight an edge has 1, and may be
        repeated.
    directed : bool
        Whether a line is one arc. If not, it is an edge both ways.
    nrows : int, optional
        The size. By default the largest id + 1, or the number in a leading comment `# Nodes: n` if that is larger.
    base : int
        The lowest id in the file, 0 or 1.
    delimiter : str, optional
        One character between the fields of a line, such as a comma. By default blanks. The first line may then be a
        head, whose first id begins with a letter or a quote.
    columns : tuple of int, optional
        The positions of both ids, and of the weight if there is one, from 0 and ascending. Other fields are passed
        over. By default the ids come first, and no field but a weight follows.
    dup_op : operator or str, optional
        The binary operator that combines the lines of an edge, in their order.
    limit : int, optional
        Bytes that the file may have or become, unpacked or as rows without entries. By default 200 times its size, and
        1 GiB at least.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        A new one. A vertex that no edge names is an isolated one.

    Raises
    ------
    FileFormatError
        If the file is malformed or over the limit; the message has the line number.
    IndexOutOfBound
        If an id is out of range; the message has the line number.
    ValueError
        If a weighted edge comes twice without `dup_op`.
    InvalidValue
        If a weight is outside `dtype`, or an argument is out of its range.
    OutOfMemory, OSError
        If memory or the file is not there.
    """
    checks.flag("weighted", weighted, none=True)
    checks.flag("directed", directed)
    checks.word("name", name, none=True)
    nrows = checks.whole("nrows", nrows, 0, entries.UNBOUNDED - 1, none=True)
    base, sign, places = checks.whole("base", base, 0, 1), _delimiter(delimiter), _columns(columns)
    if places:
        if weighted is not None and weighted != (len(places) == 3):
            raise InvalidValue(message(f"columns for weighted={weighted}: {2 + weighted}", len(places)))
        weighted = len(places) == 3
    size = entries.UNBOUNDED if nrows is None else nrows

    def begin(text: Text, opened: Source) -> tuple[Layout, tuple[int, int]]:
        layout = Layout(comments=_COMMENTS, first=base, nrows=size, ncols=size, widen=dtype is None)
        layout.delimiter, layout.columns = sign, places
        layout.kind = _kind(dtype) if weighted else entries.NONE
        layout.detect = _kind(dtype) if weighted is None else entries.NONE
        text.delimit(sign)
        stated = _stated_nodes(text)
        if sign:
            text.skip(_COMMENTS)
            names = layout.fields(text.peek())
            if _HEAD.match(b"".join(names[:1])):
                if not places:
                    _check_ends(text.line, names)
                text.drop()
        return layout, (stated, opened.limit)

    with checks.memory("the matrix of a file"):
        found, heads = shares.read(source, limit, begin)
        again: Callable[[], str] = partial(shares.twice, source, limit, begin, found, base, not directed, 0)
        if sign or places:  # whose lines are not looked through again
            again = str
        if nrows is None:
            largest = max(int(ids.max()) + 1 if ids.size else 0 for ids in (found.rows, found.cols))
            nrows = max(*shares.of_all(largest, "ids of a file"), *(stated for stated, _ in heads))
            check_rows(max(limit for _, limit in heads), nrows, "edge list")
        if found.values is None and dup_op is None:
            dup_op = "any"
        return _matrix(found, nrows, dtype, dup_op, name, again, mirror=int(not directed))


def _check_ends(line: int, names: list[bytes]) -> None:
    """Refuse a head that has the ends of edges in other columns than the first two."""
    short = [_BESIDE.sub(b"", name.lower()) for name in names]
    for pair in _ENDS:
        at = tuple(short.index(end) for end in pair if end in short)
        if len(at) == 2 and at != (0, 1):
            ends = [names[place].strip(b"\"' ").decode("latin-1") for place in at]
            hint = f"columns={tuple(sorted(at))}, or with a third one of weights" + ", then .T" * (at[0] > at[1])
            raise malformed(line, "ids in the first two columns", f"a head with {' and '.join(ends)} elsewhere", hint)


def _delimiter(given: Any) -> bytes:
    """A delimiter as one byte; none for None."""
    checks.word("delimiter", given, none=True)
    if given is not None and (len(given) != 1 or not given.isascii() or given.isalnum() or given in "+-.#% \r\n"):
        raise InvalidValue(message("a delimiter of one character, such as ',' or ';'", repr(given), "None: blanks"))
    return b"" if given is None else given.encode()


def _columns(given: Any) -> tuple[int, ...]:
    """The positions of two ids, and of a weight; none for None."""
    if given is None:
        return ()
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(message("columns: two or three positions", repr(given), "columns=(0, 1)"))
    found = tuple(checks.whole("columns", each, 0, MOST - 1) for each in given)
    if len(found) not in (2, 3) or list(found) != sorted(set(found)):
        raise InvalidValue(message("two or three positions that ascend", found, "columns=(0, 1, 2)"))
    return found


def _stated_nodes(text: Text) -> int:
    """The number of nodes that the leading comments tell, 0 if none."""
    if not text.more():
        return 0
    start = text.at
    text.skip_piece(_COMMENTS)
    found = _NODES.search(text.data, start, min(text.at, start + _LEADING))
    if not found:
        return 0
    number = whole(found[1])
    if number is None or number >= entries.UNBOUNDED:
        line = 1 + text.data.count(b"\n", start, found.start())
        raise malformed(line, "a number of nodes below 2**60", shown(found[1]))
    return number


def _kind(dtype: Any) -> int:
    """How values of a type are written."""
    return entries.REAL if dtype is not None and dtypes.lookup_dtype(dtype).kind == "f" else entries.INTEGER


def _matrix(
    found: Entries,
    n: int,
    dtype: Any,
    dup_op: Any,
    name: str | None,
    again: Callable[[], str],
    mirror: int = 0,
) -> Matrix:
    values = found.values
    if dtype is not None and values is not None:
        values = shares.alike(partial(checks.fitting, values, dtypes.lookup_dtype(dtype)), "values of a type")
    read = Coordinates(n, n, found.rows, found.cols, values, mirror=mirror)
    return to_matrix(read, again, dtype=dtype, dup_op=dup_op, name=name)


def write_edgelist(
    target: Any,
    matrix: Matrix,
    *,
    weighted: bool | None = None,
    directed: bool = True,
    comment: str = "",
    parts: bool = False,
) -> None:
    """Write a square Matrix as lines `source target [weight]`.

    The first comment tells the number of nodes, so isolated ones are kept.

    Parameters
    ----------
    target : path or file object
        A path, replaced in one step when all is written (packed if the name ends in .gz, .bz2 or .xz); or a binary file
        object.
    matrix : Matrix
        The matrix.
    weighted : bool, optional
        Whether to write the values. By default unless all are 1.
    directed : bool
        Whether to write both arcs of an edge. If not, an edge is written once, from its lower end.
    comment : str
        Each line becomes a comment.
    parts : bool
        Whether each rank writes a file, named as `gb.io.mmwrite` names them.

    Raises
    ------
    InvalidValue
        If the matrix is not square, or not symmetric with `directed=False`.
    TypeError
        If `matrix` is no Matrix.
    OSError
        If the file can't be written.
    """
    checks.flag("weighted", weighted, none=True)
    checks.flag("directed", directed)
    checks.flag("parts", parts)
    notes = checks.lines(comment)
    n, rows, cols, values = _square(matrix, directed)
    if weighted is None:
        weighted = not all(shares.of_all(bool((values == 1).all()), "whether there are weights"))
    if not directed:
        rows, cols, values = shares.cut(*_once(matrix, rows, cols, values))

    def head(count: int) -> bytes:
        return "".join(f"# {line}\n" for line in [f"Nodes: {n} Edges: {count}", *notes]).encode()

    columns = (rows, cols, values) if weighted else (rows, cols)
    shares.write(target, len(rows), head, partial(_write_lines, prefix="", columns=columns), parts)


def _square(matrix: Matrix, local: bool) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Size and entries, all or those that lie here."""
    if not isinstance(matrix, Matrix):
        raise TypeError(message("a Matrix", type(matrix).__name__, "a Vector is kept by gb.io.save"))
    if matrix.nrows != matrix.ncols:
        raise InvalidValue(message("a square matrix, of edges", f"shape {matrix.shape}", "Matrix Market has any shape"))
    rows, cols, values = matrix.to_coo(local=local)
    return matrix.nrows, rows, cols, values.astype(np.int8) if values.dtype == np.bool_ else values


def _once(matrix: Matrix, rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> tuple:
    """The entries on and above the diagonal of a symmetric matrix."""
    order = np.lexsort((rows, cols))
    same = np.array_equal(values[order], values, equal_nan=values.dtype.kind == "f")
    if not same or not all(np.array_equal(a[order], b) for a, b in ((rows, cols), (cols, rows))):
        raise InvalidValue(message("a symmetric matrix, of undirected edges", "one that is not", "directed=True"))
    kept = rows <= cols
    return rows[kept], cols[kept], values[kept]


def _write_lines(stream: IO[bytes], prefix: str, columns: tuple[np.ndarray, ...]) -> None:
    """A line for each row of the columns; numbers with as many digits as it takes to read them again."""
    line = prefix + " ".join(["{}"] * len(columns)) + "\n"
    for at in range(0, len(columns[0]), _LINES):
        parts = [column[at : at + _LINES].tolist() for column in columns]
        stream.write("".join(map(line.format, *parts)).encode())


def read_dimacs(
    source: Any, *, dtype: Any = None, dup_op: Any = None, limit: int | None = None, name: str | None = None
) -> Matrix:
    """Read a square Matrix from a DIMACS shortest-path file (.gr).

    The file has `c` comments, `p sp n m`, and m arcs `a u v w`, with ids from 1.

    Parameters
    ----------
    source : path, file object or several files
        Plain, or packed by gzip, bzip2 or xz; several files: see `gb.io.read`.
    dtype : dtype, optional
        The type of the weights. By default INT64, or FP64 if a weight is not whole.
    dup_op : operator or str, optional
        The binary operator that combines arcs that occur twice; `gb.binary.min` for shortest paths.
    limit : int, optional
        As `read_edgelist`.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        A new one, n x n.

    Raises
    ------
    FileFormatError, IndexOutOfBound, ValueError, InvalidValue, OutOfMemory, OSError
        As `read_edgelist`.
    """
    checks.word("name", name, none=True)
    kind = _kind(dtype)

    def begin(text: Text, opened: Source) -> tuple[Layout, int]:
        text.skip(b"cc")
        n, count = _problem(text.peek(), text.line)
        check_rows(opened.limit, n, text.where())
        text.drop()
        return Layout(kind, prefix=b"a", comments=b"cc", nrows=n, ncols=n, count=count, widen=dtype is None), n

    with checks.memory("the matrix of a file"):
        found, heads = shares.read(source, limit, begin)
        if any(n != heads[0] for n in heads):
            raise FileFormatError(message(f"files of {heads[0]} vertices each", heads))
        again = partial(shares.twice, source, limit, begin, found, 1, False, 0)
        return _matrix(found, heads[0], dtype, dup_op, name, again)


def _problem(text: bytes, line: int) -> tuple[int, int]:
    """Vertices and arcs, as the problem line tells."""
    expected, found = '"p sp <vertices> <arcs>"', words(text)
    if not text:
        raise malformed(max(line - 1, 1), expected, "the end of the file")
    if len(found) != 4 or found[:2] != [b"p", b"sp"] or not (found[2].isdigit() and found[3].isdigit()):
        raise malformed(line, expected, shown(text), joined(text) or "is it a DIMACS shortest-path file?")
    n, count = whole(found[2]), whole(found[3])
    if n is None or count is None or max(n, count) >= entries.UNBOUNDED:
        raise malformed(line, "sizes below 2**60", shown(text))
    return n, count


def write_dimacs(target: Any, matrix: Matrix, *, comment: str = "", parts: bool = False) -> None:
    """Write a square Matrix as a DIMACS shortest-path file.

    Parameters
    ----------
    target : path or file object
        A path, replaced in one step when all is written (packed if the name ends in .gz, .bz2 or .xz); or a binary file
        object.
    matrix : Matrix
        The matrix.
    comment : str
        Each line becomes a comment.
    parts : bool
        Whether each rank writes a file, named as `gb.io.mmwrite` names them.

    Raises
    ------
    InvalidValue
        If the matrix is not square.
    TypeError
        If `matrix` is no Matrix.
    OSError
        If the file can't be written.
    """
    checks.flag("parts", parts)
    notes = checks.lines(comment)
    n, rows, cols, values = _square(matrix, True)

    def head(count: int) -> bytes:
        return "".join([*(f"c {line}\n" for line in notes), f"p sp {n} {count}\n"]).encode()

    shares.write(
        target, len(rows), head, partial(_write_lines, prefix="a ", columns=(rows + 1, cols + 1, values)), parts
    )
