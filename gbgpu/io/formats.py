"""Reading and writing by a file's name."""

import os
from collections.abc import Callable
from typing import Any

from gbgpu import Matrix, Vector
from gbgpu.errors import InvalidValue, message
from gbgpu.io import checks
from gbgpu.io.binary import load, save
from gbgpu.io.edgelist import read_dimacs, read_edgelist, write_dimacs, write_edgelist
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
_SUFFIXES = {".mtx": "mtx", ".gbgpu": "gbgpu", ".gr": "dimacs", ".npz": "npz"} | dict.fromkeys(
    (".txt", ".tsv", ".el", ".wel"), "edgelist"
)
_PACKED = (".gz", ".bz2", ".xz")
SUFFIXES = ", ".join(_SUFFIXES)


def form_of(path: Any) -> str | None:
    """The form that a file's name stands for: "mtx", "gbgpu", "dimacs", "edgelist" or "npz"; None for another name."""
    stem, last = os.path.splitext(checks.path(path).lower())
    return _SUFFIXES.get(os.path.splitext(stem)[1] if last in _PACKED else last)


def read(path: Any, **options: Any) -> Matrix | Vector:
    """Read a file by its name: .mtx Matrix Market, .gbgpu gbgpu's own, .gr DIMACS, .txt .tsv .el .wel edge lists, .npz
    SciPy's; .gz, .bz2 or .xz may follow. Any other name is taken for Matrix Market. Texts may be several files of one
    form: a sequence of names, a folder of parts, or a pattern such as "A.part-*.mtx".

    `options` go to the reader of the form, and it raises what it raises.
    """
    several = alike(lambda: files_of(path), "the files to read")
    return _FORMS[form_of(several[0] if several else path) or "mtx"][0](several or path, **options)


def write(path: Any, what: Matrix | Vector, **options: Any) -> None:
    """Write a file by its name, with the names that `read` knows; the file appears when all is written.

    `options` go to the writer of the form. Raises InvalidValue for another name.
    """
    form = form_of(path)
    if form is None:
        raise InvalidValue(message(f"a file name with one of {SUFFIXES}", repr(checks.path(path))))
    _FORMS[form][1](path, what, **options)
