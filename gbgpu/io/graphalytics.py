"""Graphs of LDBC Graphalytics: `NAME.properties` with the two files that it names, `NAME.v` and `NAME.e`.

Source: Iosup et al., "The LDBC Graphalytics Benchmark", arXiv:2011.15028, section 2.3 and appendix (data format).
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gbgpu import Matrix, Vector, dtypes
from gbgpu.errors import FileFormatError, IndexOutOfBound, message
from gbgpu.io import checks, entries, shares
from gbgpu.io.entries import Layout
from gbgpu.io.files import Source, check_rows, open_bytes
from gbgpu.io.matrixmarket import Coordinates, to_matrix
from gbgpu.io.text import MOST, Text, malformed, shown, whole

LARGEST = 2**63 - 1  # ids of edges are below it
Properties = dict[str, tuple[str, int]]  # key -> value, number of its line


def read_vertices(source: Any, *, limit: int | None = None, name: str | None = None) -> Vector:
    """Read the ids of vertices, a line each (`NAME.v`): row k of the graph's matrix belongs to the k-th id.

    Parameters
    ----------
    source : path or file object
        Plain, or packed by gzip, bzip2 or xz.
    limit : int, optional
        Bytes that the file may have or become, as for `read_edgelist`.
    name : str, optional
        The vector's name.

    Returns
    -------
    Vector
        Ids in ascending order (INT64, all entries).

    Raises
    ------
    FileFormatError
        If a line is no id, or an id comes twice; the message has the line number.
    OSError
        If the file can't be read.
    """
    checks.word("name", name, none=True)
    return Vector.from_dense(shares.alike(lambda: _ids(source, limit), "a list of vertices"), name=name)


def _ids(source: Any, limit: int | None) -> np.ndarray:
    def begin(text: Text, opened: Source) -> tuple[Layout, None]:
        return Layout(entries.INTEGER, ids=False), None

    values = shares.whole(source, limit, begin)[0].values
    ids = np.zeros(0, np.int64) if values is None else values
    if ids.size and (ids.min() < 0 or ids.max() >= LARGEST):
        wrong = next(int(value) for value in ids if not 0 <= value < LARGEST)
        where = _line_of(source, limit, lambda found: found[:1] == [str(wrong).encode()])
        raise FileFormatError(f"{where}{message('ids of vertices from 0 to 2**63 - 2', wrong)}")
    ordered = np.sort(ids)
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if again.size:
        twice, seen = int(ordered[again[0]]), []

        def second(found: list[bytes]) -> bool:
            if found and whole(found[0]) == twice:
                seen.append(found)
            return len(seen) == 2

        where = _line_of(source, limit, second)
        raise FileFormatError(f"{where}{message('each vertex once', f'{twice} again')}")
    return ordered


def _line_of(source: Any, limit: int | None, is_it: Callable[[list[bytes]], bool]) -> str:
    """The number of the first such line, as errors begin; nothing for what can be read once only."""
    if hasattr(source, "read"):
        return ""
    with open_bytes(source, limit) as opened:
        for number, line in enumerate(opened.stream, 1):
            if is_it(line.split()):
                return f"line {number}: "
    return ""


def read_graphalytics(source: Any, *, dtype: Any = None, limit: int | None = None, name: str | None = None) -> Matrix:
    """Read a graph of Graphalytics by its file `NAME.properties`.

    Parameters
    ----------
    source : path
        The file of properties. The files that it names lie beside it.
    dtype : dtype, optional
        The type of the weights. By default FP64, or INT64 if all are whole.
    limit : int, optional
        Bytes that each file may have or become, as for `read_edgelist`.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        n x n; row k is the vertex of the k-th smallest id, which `gb.io.read("NAME.v")` gives. An undirected edge
        stands both ways. Without weights every entry is 1.

    Raises
    ------
    FileFormatError
        If a file is malformed, a property is missing, an edge is a loop or has an end that is no vertex, or the numbers
        of vertices and edges are not those of the properties; the message has the file and the line number.
    IndexOutOfBound
        If an end of an edge is below 0 or above 2**63 - 2.
    ValueError
        If an edge comes twice.
    OSError
        If a file can't be read.
    """
    checks.word("name", name, none=True)
    path = checks.path(source)
    told = shares.alike(lambda: _properties(path, limit), "the properties of a graph")
    directed = _flag(told, "directed")
    vertices, edges = (_beside(path, told, key) for key in ("vertex-file", "edge-file"))
    columns = _columns(told)
    ids = shares.alike(lambda: _in(vertices, lambda: _ids(vertices, limit)), "a list of vertices")
    _count(told, "meta.vertices", ids.size)

    def begin(text: Text, opened: Source) -> tuple[Layout, None]:
        check_rows(opened.limit, ids.size, vertices)
        real = dtype is not None and dtypes.lookup_dtype(dtype).kind == "f"
        kind = entries.NONE if not columns else entries.REAL if real else entries.INTEGER
        layout = Layout(kind, first=0, diagonal=False, widen=dtype is None)
        layout.columns = columns if max(columns, default=0) > 2 else ()
        return layout, None

    found, _ = _in(edges, lambda: shares.read(edges, limit, begin))
    _count(told, "meta.edges", sum(shares.of_all(len(found.rows), "edges of a file")))

    def numbered() -> list[np.ndarray]:
        return [_places(ids, ends, edges, vertices, limit) for ends in (found.rows, found.cols)]

    rows, cols = shares.alike(numbered, "edges of a file")
    values = found.values
    if dtype is not None and values is not None:
        values = shares.alike(partial(checks.fitting, values, dtypes.lookup_dtype(dtype)), "values of a type")
    again = partial(shares.twice, edges, limit, begin, found, 0, not directed, 0)
    read = Coordinates(ids.size, ids.size, rows, cols, values, mirror=int(not directed))
    return _in(edges, lambda: to_matrix(read, again, dtype=dtype, name=name))


def _in(path: str, work: Callable[[], Any]) -> Any:
    """work(); what is wrong with a file is told with its name."""
    try:
        return work()
    except (FileFormatError, IndexOutOfBound, ValueError) as error:
        error.args = (f"{os.path.basename(path)}: {error}",)
        raise


def _places(ids: np.ndarray, ends: np.ndarray, edges: str, vertices: str, limit: int | None) -> np.ndarray:
    """Where the ends of edges stand among the ids."""
    found = np.searchsorted(ids, ends)
    known = np.append(ids, -1)[np.minimum(found, ids.size)] == ends
    if not known.all():
        wrong = int(ends[np.argmin(known)])
        where = _line_of(edges, limit, lambda words: wrong in [whole(word) for word in words[:2]])
        expected = f"an end that is in {os.path.basename(vertices)}"
        raise FileFormatError(f"{os.path.basename(edges)}: {where}{message(expected, wrong)}")
    return found


def _properties(path: str, limit: int | None) -> Properties:
    """The properties of the one graph that a file tells of, without `graph.NAME.` before them."""
    found: Properties = {}
    names: set[str] = set()
    with open_bytes(path, limit) as opened:
        for number, line in enumerate(opened.stream, 1):
            text = line.decode("latin-1").strip()
            if not text or text[0] in "#!":
                continue
            key, sign, value = text.partition("=")
            if not sign:
                raise malformed(number, '"key = value"', shown(line))
            head, _, key = key.strip().partition(".")
            if head != "graph":
                continue
            # a name has no dots, and all of its graph's properties begin with it
            graph, _, key = key.partition(".")
            names.add(graph)
            if len(names) > 1:
                raise malformed(number, f"properties of one graph, {min(names - {graph})}", shown(line))
            found[key] = value.strip(), number
    return found


def _property(told: Properties, key: str) -> tuple[str, int]:
    if key not in told:
        raise FileFormatError(message(f"a property graph.NAME.{key}", f"only {', '.join(told) or 'none'}"))
    return told[key]


def _flag(told: Properties, key: str) -> bool:
    value, line = _property(told, key)
    if value.lower() not in ("true", "false"):
        raise malformed(line, f"{key} = true or {key} = false", repr(value))
    return value.lower() == "true"


def _beside(path: str, told: Properties, key: str) -> str:
    """A file that the properties name."""
    value, line = _property(told, key)
    if not value or value != os.path.basename(value):
        raise malformed(line, "the name of a file beside this one", repr(value))
    return os.path.join(os.path.dirname(path), value)


def _columns(told: Properties) -> tuple[int, ...]:
    """The fields of ends and weight; none without a weight."""
    names = [name.strip() for name in told.get("edge-properties.names", ("", 0))[0].split(",") if name.strip()]
    if not names:
        return ()
    wanted, line = told.get("sssp.weight-property", (names[0], 0))
    if wanted not in names or len(names) > MOST - 2:
        raise malformed(line, f"one of the edges' properties, {', '.join(names)}", repr(wanted))
    return 0, 1, 2 + names.index(wanted)


def _count(told: Properties, key: str, came: int) -> None:
    """Check a number of the properties, if they tell it."""
    if key in told:
        value, line = told[key]
        if whole(value.encode()) != came:
            raise malformed(line, f"{key} = {came}, as many as the file has", repr(value))
