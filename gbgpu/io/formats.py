"""Reading and writing by a file's name."""

import os
from collections.abc import Callable
from typing import Any

from gbgpu import Matrix, Vector
from gbgpu.errors import InvalidValue, message
from gbgpu.io import checks
from gbgpu.io.binary import load, save
from gbgpu.io.dialects import read_csv, read_konect, refuse_adjacency
from gbgpu.io.edgelist import read_dimacs, read_edgelist, write_dimacs, write_edgelist
from gbgpu.io.graphalytics import read_graphalytics, read_vertices
from gbgpu.io.matrixmarket import mmread, mmwrite
from gbgpu.io.npz import read_npz, write_npz
from gbgpu.io.shares import alike, files_of

_FORMS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "mtx": (mmread, mmwrite),
    "gbgpu": (load, save),
    "dimacs": (read_dimacs, write_dimacs),
    "edgelist": (read_edgelist, write_edgelist),
    "npz": (read_npz, write_npz),
}
_READ_ONLY: dict[str, Callable[..., Any]] = {"csv": read_csv, "konect": read_konect}
_READ_ONLY |= {"metis": refuse_adjacency, "vertices": read_vertices, "graphalytics": read_graphalytics}
_SUFFIXES = {".mtx": "mtx", ".gbgpu": "gbgpu", ".gr": "dimacs", ".npz": "npz"} | dict.fromkeys(
    (".txt", ".tsv", ".el", ".wel"), "edgelist"
)
_ALSO_READ = {".csv": "csv", ".edges": "edgelist", ".e": "edgelist", ".graph": "metis"}
_ALSO_READ |= {".v": "vertices", ".properties": "graphalytics"}
_PACKED = (".gz", ".bz2", ".xz")
SUFFIXES = ", ".join(_SUFFIXES)


def form_of(path: Any) -> str | None:
    """The form of a file, by its name.

    Parameters
    ----------
    path : path
        The name; .gz, .bz2 or .xz may follow.

    Returns
    -------
    str or None
        "mtx", "gbgpu", "dimacs", "edgelist" or "npz"; None for another name.
    """
    return _SUFFIXES.get(_suffix(path))


def _suffix(path: Any) -> str:
    stem, last = os.path.splitext(checks.path(path).lower())
    return os.path.splitext(stem)[1] if last in _PACKED else last


def _reader(path: Any) -> Callable[..., Any]:
    """What reads a file of this name. KONECT's begin with "out.", and end in the name of the graph."""
    if os.path.basename(checks.path(path)).startswith("out.") and _suffix(path) not in _SUFFIXES | _ALSO_READ:
        return _READ_ONLY["konect"]
    form = form_of(path) or _ALSO_READ.get(_suffix(path), "mtx")
    return _READ_ONLY.get(form) or _FORMS[form][0]


def read(path: Any, **options: Any) -> Matrix | Vector:
    """Read a file in the form that its name says.

    Parameters
    ----------
    path : path or sequence of paths
        The file. Texts may be several files of one form: a sequence of names, a folder of parts, or a pattern such as
        "A.part-*.mtx".
    **options : object
        Go to the reader of the form.

    Returns
    -------
    Matrix or Vector
        A new one.

    Raises
    ------
    NotImplementedException
        For .graph, METIS's adjacency lists.
    FileFormatError, OSError
        And others, as the reader of the form.

    Notes
    -----
    Names, after which .gz, .bz2 or .xz may follow:

    | name | form | reader |
    |---|---|---|
    | .mtx, any other name | Matrix Market | `mmread` |
    | .gbgpu | gbgpu's own | `load` |
    | .gr | DIMACS | `read_dimacs` |
    | .txt .tsv .el .wel .edges .e .csv, KONECT's out.NAME | edge lists | `read_edgelist` |
    | .properties, with the .v and .e that it names | Graphalytics' | `read_graphalytics` |
    | .v | the ids of Graphalytics' vertices, a Vector | `read_vertices` |
    | .npz | SciPy's | `read_npz` |
    """
    several = alike(lambda: files_of(path), "the files to read")
    return _reader(several[0] if several else path)(several or path, **options)


def write(path: Any, what: Matrix | Vector, **options: Any) -> None:
    """Write a file in the form that its name says; the file appears when all is written.

    Parameters
    ----------
    path : path
        The file: .mtx, .gbgpu, .gr, .txt, .tsv, .el, .wel or .npz, after which .gz, .bz2 or .xz may follow.
    what : Matrix or Vector
        The object; only gbgpu's own form has vectors.
    **options : object
        Go to the writer of the form.

    Raises
    ------
    InvalidValue
        If the name stands for no form.
    """
    form = form_of(path)
    if form is None:
        raise InvalidValue(message(f"a file name with one of {SUFFIXES}", repr(checks.path(path))))
    _FORMS[form][1](path, what, **options)
