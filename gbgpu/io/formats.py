"""Reading and writing by a file's name."""

import io
import os
import zipfile
from collections.abc import Callable
from typing import Any

from gbgpu import Matrix, Vector
from gbgpu.errors import FileFormatError, InvalidValue, message
from gbgpu.io import checks
from gbgpu.io.binary import load, save
from gbgpu.io.convert import from_scipy_sparse, to_scipy_sparse
from gbgpu.io.edgelist import read_dimacs, read_edgelist, write_dimacs, write_edgelist
from gbgpu.io.files import Source, damage, open_bytes, writing
from gbgpu.io.matrixmarket import mmread, mmwrite


def read_npz(source: Any, *, dup_op: Any = None, limit: int | None = None, name: str | None = None) -> Matrix:
    """Read a Matrix that `scipy.sparse.save_npz` wrote. `limit`: how many bytes it may become, unpacked or as rows
    without entries; by default 200 times its size, and 1 GiB at least.

    Raises FileFormatError for another file, a changed one, or one over the limit; ValueError for an entry that occurs
    twice, and no `dup_op`; NotImplementedException for a type that gbgpu has not; OutOfMemory; OSError.
    """
    checks.word("name", name, none=True)
    with checks.memory("the matrix of a file"):
        with open_bytes(source, limit) as opened, damage(lambda: "SciPy file"):
            found = _unzipped(opened)
        opened.check_rows(found.shape[0], "SciPy file")
        return from_scipy_sparse(found, dup_op=dup_op, name=name)


def _unzipped(opened: Source) -> Any:
    """SciPy's object, whose arrays are checked: SciPy itself trusts them."""
    from scipy.sparse import load_npz

    held = io.BytesIO(opened.stream.read())
    try:
        with zipfile.ZipFile(held) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > opened.limit:
            raise ValueError(message(f"at most {opened.limit} bytes, unpacked", size, "limit=... lets it"))
        found = load_npz(held)
        if found.ndim != 2:
            raise ValueError(message("two dimensions", found.ndim))
        if hasattr(found, "check_format"):
            found.check_format(full_check=True)
    except MemoryError:
        raise
    except Exception as error:  # whatever a zip file, an array or a missing name raises
        raise FileFormatError("SciPy file: " + message("what scipy.sparse.save_npz wrote", error)) from error
    return found


def write_npz(target: Any, matrix: Matrix) -> None:
    """Write a Matrix as `scipy.sparse.load_npz` reads it."""
    from scipy.sparse import save_npz

    if not isinstance(matrix, Matrix):
        raise TypeError(message("a Matrix", type(matrix).__name__, "a Vector is kept by gb.io.save"))
    with writing(target) as stream:
        save_npz(stream, to_scipy_sparse(matrix))


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
    stem, last = os.path.splitext(os.fsdecode(path).lower())
    return _SUFFIXES.get(os.path.splitext(stem)[1] if last in _PACKED else last)


def read(path: Any, **options: Any) -> Matrix | Vector:
    """Read a file by its name: .mtx Matrix Market, .gbgpu gbgpu's own, .gr DIMACS, .txt .tsv .el .wel edge lists, .npz
    SciPy's; .gz, .bz2 or .xz may follow. Any other name is taken for Matrix Market.

    `options` go to the reader of the form, and it raises what it raises.
    """
    return _FORMS[form_of(path) or "mtx"][0](path, **options)


def write(path: Any, what: Matrix | Vector, **options: Any) -> None:
    """Write a file by its name, with the names that `read` knows; the file appears when all is written.

    `options` go to the writer of the form. Raises InvalidValue for another name.
    """
    form = form_of(path)
    if form is None:
        raise InvalidValue(message(f"a file name with one of {SUFFIXES}", repr(os.fsdecode(path))))
    _FORMS[form][1](path, what, **options)
