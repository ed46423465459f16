"""Edge lists: SNAP's (`source target [weight]`, ids from 0) and DIMACS shortest-path files (`a u v w`, ids from 1).

Sources: the files of the Stanford Large Network Dataset Collection; the 9th DIMACS Implementation Challenge's format.
Ids are indices: a vertex that no edge names is an isolated one.
"""

import re
from typing import IO, Any

import numpy as np

from gbgpu import Matrix, dtypes
from gbgpu.errors import InvalidValue, message
from gbgpu.io import entries
from gbgpu.io.entries import Entries, Layout, malformed, shown
from gbgpu.io.files import damage, open_bytes, writing
from gbgpu.io.matrixmarket import Coordinates, to_matrix

_NODES = re.compile(rb"[#%].*?\bnodes:\s*([0-9]+)", re.IGNORECASE)
_LINES = 1 << 15  # lines formatted at once


def read_edgelist(
    source: Any,
    *,
    dtype: Any = None,
    weighted: bool | None = None,
    directed: bool = True,
    nrows: int | None = None,
    dup_op: Any = None,
    name: str | None = None,
) -> Matrix:
    """Read a square Matrix from lines of two ids, with a weight or without one; plain or packed.

    `source` is a path or a file object; lines that begin with # or % are comments. `weighted` None: as the first edge
    is. Weights are INT64, or FP64 if one of them is not whole; an edge without weight has 1 (FP64), and naming it again
    changes nothing. `dtype` makes them of another type. With `directed=False` each line is an edge both ways. The size
    is `nrows`, or else the largest id + 1, or the number in a leading comment `# Nodes: n` if that is larger.

    Raises FileFormatError and IndexOutOfBound (with the line number), ValueError (a weighted edge twice and no
    `dup_op`), InvalidValue (a weight outside `dtype`) and OSError.
    """
    size = entries.UNBOUNDED if nrows is None else nrows
    layout = Layout(comments=b"#%", first=0, nrows=size, ncols=size, widen=dtype is None)
    layout.kind = _kind(dtype) if weighted else entries.NONE
    layout.detect = _kind(dtype) if weighted is None else entries.NONE
    with open_bytes(source) as stream:
        stated = _stated_nodes(stream)
        found = entries.read_entries(stream, layout, 1)
    if nrows is None:
        nrows = max(stated, *(int(ids.max()) + 1 if ids.size else 0 for ids in (found.rows, found.cols)))
    if not directed:
        found = _both_ways(found)
    symmetric = not directed and (found.values is None or dup_op is None)  # operators may meet repeats in either order
    if found.values is None and dup_op is None:
        dup_op = "any"
    return _matrix(found, nrows, dtype, dup_op, name, symmetric)


def _stated_nodes(stream: IO[bytes]) -> int:
    """The number of nodes that the leading comments tell, 0 if none; the stream stays where it is."""
    with damage(lambda: "1 or later"):
        start = stream.peek(1 << 12)  # type: ignore[attr-defined]
    for text in start.split(b"\n"):
        if text.strip() and text.lstrip()[:1] not in b"#%":
            break
        if found := _NODES.match(text.lstrip()):
            return int(found[1])
    return 0


def _kind(dtype: Any) -> int:
    """How values of a type are written."""
    return entries.REAL if dtype is not None and dtypes.lookup_dtype(dtype).kind == "f" else entries.INTEGER


def _both_ways(found: Entries) -> Entries:
    off = np.flatnonzero(found.rows != found.cols)
    rows, cols = np.concatenate((found.rows, found.cols[off])), np.concatenate((found.cols, found.rows[off]))
    return Entries(rows, cols, None if found.values is None else np.concatenate((found.values, found.values[off])))


def _matrix(found: Entries, n: int, dtype: Any, dup_op: Any, name: str | None, symmetric: bool = False) -> Matrix:
    values = found.values
    if dtype is not None and values is not None:
        values = fitting(values, dtypes.lookup_dtype(dtype))
    read = Coordinates(n, n, found.rows, found.cols, values, symmetric)
    return to_matrix(read, dtype=dtype, dup_op=dup_op, name=name)


def fitting(values: np.ndarray, dtype: Any) -> np.ndarray:
    """`values` as another type; InvalidValue for a number that an integer type has not."""
    if dtype.kind in "iu" and values.size:
        limits = np.iinfo(dtype.np_type)
        for value in (values.min().item(), values.max().item()):
            if not limits.min <= value <= limits.max:
                raise InvalidValue(message(f"values of {dtype}: {limits.min} to {limits.max}", value, "a wider dtype"))
    return values.astype(dtype.np_type)


def write_edgelist(
    target: Any, matrix: Matrix, *, weighted: bool | None = None, directed: bool = True, comment: str = ""
) -> None:
    """Write a square Matrix as lines `source target [weight]`; packed if the name ends in .gz, .bz2 or .xz.

    `target` is a path, replaced in one step when all is written, or a binary file object. `weighted` None: unless all
    values are 1. With `directed=False` an edge is written once, from its lower end; InvalidValue if the matrix is not
    symmetric or not square. A comment tells the number of nodes, so isolated ones are kept.
    """
    n, rows, cols, values = _square(matrix)
    if weighted is None:
        weighted = not bool((values == 1).all())
    if not directed:
        rows, cols, values = _once(matrix, rows, cols, values)
    head = "".join(f"# {line}\n" for line in [*comment.splitlines(), f"Nodes: {n} Edges: {rows.size}"])
    with writing(target) as stream:
        stream.write(head.encode())
        _write_lines(stream, "", (rows, cols, values) if weighted else (rows, cols))


def _square(matrix: Matrix) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    if not isinstance(matrix, Matrix):
        raise TypeError(message("a Matrix", type(matrix).__name__, "a Vector is kept by gb.io.save"))
    if matrix.nrows != matrix.ncols:
        raise InvalidValue(message("a square matrix, of edges", f"shape {matrix.shape}", "Matrix Market has any shape"))
    rows, cols, values = matrix.to_coo()
    return matrix.nrows, rows, cols, values.astype(np.int8) if values.dtype == np.bool_ else values


def _once(matrix: Matrix, rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> tuple:
    """The entries on and above the diagonal of a symmetric matrix."""
    order = np.lexsort((rows, cols))
    if not all(np.array_equal(a[order], b) for a, b in ((rows, cols), (cols, rows), (values, values))):
        raise InvalidValue(message("a symmetric matrix, of undirected edges", "one that is not", "directed=True"))
    kept = rows <= cols
    return rows[kept], cols[kept], values[kept]


def _write_lines(stream: IO[bytes], prefix: str, columns: tuple[np.ndarray, ...]) -> None:
    """A line for each row of the columns; numbers with as many digits as it takes to read them again."""
    line = prefix + " ".join(["{}"] * len(columns)) + "\n"
    for at in range(0, len(columns[0]), _LINES):
        parts = [column[at : at + _LINES].tolist() for column in columns]
        stream.write("".join(map(line.format, *parts)).encode())


def read_dimacs(source: Any, *, dtype: Any = None, dup_op: Any = None, name: str | None = None) -> Matrix:
    """Read a square Matrix from a DIMACS shortest-path file (.gr): `c` comments, `p sp n m`, and m arcs `a u v w`.

    `source` is a path or a file object, plain or packed. Weights are INT64, or FP64 if one of them is not whole, or of
    `dtype`. `dup_op` combines arcs that occur twice (`gb.binary.min` where paths are sought).

    Raises as `read_edgelist` does; an arc twice without `dup_op` is a ValueError.
    """
    with open_bytes(source) as stream:
        with damage(lambda: "1 or later"):
            n, count, line = _problem(stream)
        layout = Layout(_kind(dtype), prefix=b"a", comments=b"cc", nrows=n, ncols=n, count=count, widen=dtype is None)
        found = entries.read_entries(stream, layout, line + 1)
    return _matrix(found, n, dtype, dup_op, name)


def _problem(stream: IO[bytes]) -> tuple[int, int, int]:
    """Vertices, arcs and the number of the problem line."""
    number = 0
    for text in iter(lambda: stream.readline(1 << 20), b""):
        number += 1
        words = text.split()
        if not words or words[0].startswith(b"c"):
            continue
        if len(words) != 4 or words[:2] != [b"p", b"sp"] or not (words[2].isdigit() and words[3].isdigit()):
            raise malformed(number, '"p sp <vertices> <arcs>"', shown(text), "is it a DIMACS shortest-path file?")
        if max(int(words[2]), int(words[3])) >= entries.UNBOUNDED:
            raise malformed(number, "sizes below 2**60", shown(text))
        return int(words[2]), int(words[3]), number
    raise malformed(max(number, 1), '"p sp <vertices> <arcs>"', "the end of the file")


def write_dimacs(target: Any, matrix: Matrix, *, comment: str = "") -> None:
    """Write a square Matrix as a DIMACS shortest-path file; packed if the name ends in .gz, .bz2 or .xz.

    `target` is a path, replaced in one step when all is written, or a binary file object. InvalidValue if the matrix is
    not square.
    """
    n, rows, cols, values = _square(matrix)
    head = [*(f"c {line}\n" for line in comment.splitlines()), f"p sp {n} {rows.size}\n"]
    with writing(target) as stream:
        stream.write("".join(head).encode())
        _write_lines(stream, "a ", (rows + 1, cols + 1, values))
