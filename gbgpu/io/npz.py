"""SciPy's files of sparse matrices (`scipy.sparse.save_npz`): a zip of arrays.

They are read without SciPy, whose compiled code follows what the arrays say wherever it leads.
"""

import io
import zipfile
from typing import Any

import numpy as np

from gbgpu import Matrix, dtypes, settings
from gbgpu.errors import FileFormatError, NotImplementedException, message
from gbgpu.interrupts import imported
from gbgpu.io import checks
from gbgpu.io.convert import to_scipy_sparse
from gbgpu.io.files import Source, check_rows, damage, from_outside, open_bytes, writing

_Entries = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, columns, values


def read_npz(source: Any, *, dup_op: Any = None, limit: int | None = None, name: str | None = None) -> Matrix:
    """Read a Matrix that `scipy.sparse.save_npz` wrote.

    Parameters
    ----------
    source : path or file object
        The file.
    dup_op : operator or str, optional
        The binary operator that combines entries at one place.
    limit : int, optional
        Bytes that the file may have or become, unpacked or as rows without entries. By default 200 times its size, and
        1 GiB at least.
    name : str, optional
        The matrix's name.

    Returns
    -------
    Matrix
        A new one, of the file's shape and dtype.

    Raises
    ------
    FileFormatError
        If it is another file, a changed one, or over the limit.
    ValueError
        If a place comes twice without `dup_op`.
    NotImplementedException
        If gbgpu has not the dtype.
    OutOfMemory, OSError
        If memory or the file is not there.
    """
    checks.word("name", name, none=True)
    with checks.memory("the matrix of a file"):
        if (ranks := settings.session().ranks) is not None:
            ranks.agree_on(source, "file to read")
        with open_bytes(source, limit) as opened, damage(lambda: "SciPy file"):
            held = opened.stream.read()
        try:
            parts = _unzipped(held, opened)
            nrows, ncols = (int(size) for size in _integers(parts["shape"]))
            check_rows(opened.limit, nrows, "SciPy file")
            _require(0 <= ncols < 2**60 and nrows >= 0, "a shape", (nrows, ncols))
            form = parts["format"].item()
            rows, cols, values = _FORMS[form if isinstance(form, str) else form.decode()](parts, nrows, ncols)
            dtypes.lookup_dtype(values.dtype)
        except (FileFormatError, NotImplementedException, MemoryError):
            raise
        except Exception as error:  # whatever a zip file, an array or a missing name raises
            if from_outside(error):
                raise
            came = f"{type(error).__name__}: {error}"
            raise FileFormatError("SciPy file: " + message("what scipy.sparse.save_npz wrote", came)) from error
        return Matrix.from_coo(rows, cols, values, nrows=nrows, ncols=ncols, dup_op=dup_op, name=name)


def _unzipped(held: bytes, opened: Source) -> dict[str, np.ndarray]:
    """The arrays by name."""
    with zipfile.ZipFile(io.BytesIO(held)) as packed:
        size = sum(part.file_size for part in packed.infolist())
    _require(size <= opened.limit, f"at most {opened.limit} bytes, unpacked", f"{size}; limit=... allows it")
    with np.load(io.BytesIO(held), allow_pickle=False) as arrays:
        return dict(arrays)


def _require(holds: object, expected: str, came: object) -> None:
    if not holds:
        raise FileFormatError("SciPy file: " + message(expected, came))


def _integers(array: np.ndarray, limit: int = 2**63) -> np.ndarray:
    """A list of whole numbers from 0 to below `limit`, as int64."""
    _require(array.ndim == 1 and array.dtype.kind in "iu", "a list of integers", f"{array.dtype}, shape {array.shape}")
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    _require(low >= 0 and high < max(limit, 1), f"integers from 0 to {limit - 1}", f"{low} to {high}")
    return array.astype(np.int64, copy=False)


def _listed(parts: dict[str, np.ndarray], nrows: int, ncols: int) -> _Entries:
    rows, cols = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
    return _together(_integers(rows, nrows), _integers(cols, ncols), parts["data"])


def _together(rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> _Entries:
    shapes = rows.shape, cols.shape, values.shape
    _require(values.ndim == 1 and len(set(shapes)) == 1, "a row, a column and a value for each entry", shapes)
    return rows, cols, values


def _compressed(parts: dict[str, np.ndarray], nrows: int, ncols: int) -> _Entries:
    """Entries by rows."""
    offsets, cols = _integers(parts["indptr"]), _integers(parts["indices"], ncols)
    ascend = len(offsets) == nrows + 1 and offsets[0] == 0 and bool((offsets[1:] >= offsets[:-1]).all())
    _require(ascend and offsets[-1] == len(cols), f"{nrows + 1} offsets that ascend from 0 to {len(cols)}", "others")
    return _together(np.repeat(np.arange(nrows), np.diff(offsets)), cols, parts["data"])


def _by_columns(parts: dict[str, np.ndarray], nrows: int, ncols: int) -> _Entries:
    _require(ncols < len(parts["indptr"]), f"{ncols + 1} offsets", len(parts["indptr"]))
    cols, rows, values = _compressed(parts, ncols, nrows)
    return rows, cols, values


def _blocks(parts: dict[str, np.ndarray], nrows: int, ncols: int) -> _Entries:
    """Dense blocks by rows; all that is in them is entries."""
    data = parts["data"]
    height, width = data.shape[1:]
    _require(height and width and nrows % height == ncols % width == 0, "blocks that fill the shape", data.shape)
    numbers = parts | {"data": np.arange(len(data))}
    rows, cols, order = _compressed(numbers, nrows // height, ncols // width)
    i = rows[:, None, None] * height + np.arange(height)[:, None]
    j = cols[:, None, None] * width + np.arange(width)
    return tuple(array.ravel() for array in np.broadcast_arrays(i, j, data[order]))  # type: ignore[return-value]


def _diagonals(parts: dict[str, np.ndarray], nrows: int, ncols: int) -> _Entries:
    """data[k, j] stands in column j of the diagonal offsets[k]; as for SciPy, 0 is no entry."""
    data, offsets = parts["data"][:, :ncols], parts["offsets"]
    _require(offsets.shape == data.shape[:1] and offsets.dtype.kind in "iu", "an offset a diagonal", offsets.shape)
    j = np.arange(data.shape[1])
    i = j - np.clip(offsets, -(2**61), 2**61).astype(np.int64)[:, None]
    kept = (i >= 0) & (i < nrows) & (data != 0)
    return i[kept], np.broadcast_to(j, i.shape)[kept], data[kept]


_FORMS = {"coo": _listed, "csr": _compressed, "csc": _by_columns, "bsr": _blocks, "dia": _diagonals}


def write_npz(target: Any, matrix: Matrix) -> None:
    """Write a Matrix as `scipy.sparse.load_npz` reads it.

    Parameters
    ----------
    target : path or file object
        A path, replaced in one step when all is written; or a binary file object.
    matrix : Matrix
        The matrix.

    Raises
    ------
    TypeError
        If `matrix` is no Matrix.
    OSError
        If the file can't be written.
    """
    if not isinstance(matrix, Matrix):
        raise TypeError(message("a Matrix", type(matrix).__name__, "a Vector is kept by gb.io.save"))
    with writing(target) as stream:
        imported("scipy.sparse").save_npz(_Forward(stream), to_scipy_sparse(matrix))


class _Forward:
    """A stream that is written from beginning to end, as packing ones have to be."""

    def __init__(self, stream: Any):
        self.write, self.flush = stream.write, getattr(stream, "flush", lambda: None)

    def read(self, *size: int) -> bytes:  # what NumPy knows a stream by
        raise OSError("it is written")
