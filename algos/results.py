"""Results of algorithms, a number for each vertex, in files, and the largest of them.

What a vertex has not (no path leads there) is left out of texts, and in a NumPy array it is NaN among reals and the
least number of the type among whole numbers, -2**63 in INT64."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import IO, Any

import numpy as np

from algos.runs import Result
from gbgpu import Matrix, Vector, io
from gbgpu.errors import InvalidValue, message

_LINES = 1 << 15  # written at once


def _text(stream: IO[bytes], v: Vector, head: str, line: str) -> None:
    ids, values = v.to_coo()
    stream.write(head.encode())
    for at in range(0, len(ids), _LINES):
        parts = ids[at : at + _LINES].tolist(), values[at : at + _LINES].tolist()
        stream.write("".join(map(line.format, *parts)).encode())


def _array(stream: IO[bytes], v: Vector) -> None:
    kind = v.dtype.np_type
    np.save(stream, v.to_dense(np.nan if kind.kind == "f" else np.iinfo(kind).min))


def _matrix(stream: IO[bytes], v: Vector) -> None:
    ids, values = v.to_coo()
    column = Matrix.from_coo(ids, np.zeros_like(ids), values, v.dtype, nrows=v.size, ncols=1)
    io.mmwrite(stream, column, field="real" if values.dtype.kind == "f" else "integer")


FORMS: dict[str, Callable[[IO[bytes], Vector, Result], None]] = {
    ".txt": lambda stream, v, result: _text(stream, v, "", "{} {}\n"),
    ".csv": lambda stream, v, result: _text(stream, v, f"{result.id},{result.value}\n", "{},{}\n"),
    ".npy": lambda stream, v, result: _array(stream, v),
    ".mtx": lambda stream, v, result: _matrix(stream, v),
}
NAMES = f"{', '.join(FORMS)}, or one of them and .gz, .bz2 or .xz"
PICTURES = ".png", ".pdf", ".svg"


def form_of(path: str) -> str:
    """One of FORMS, by a file's name. InvalidValue for another name."""
    stem, last = os.path.splitext(path.lower())
    form = os.path.splitext(stem)[1] if last in (".gz", ".bz2", ".xz") else last
    if form not in FORMS:
        raise InvalidValue(message(f"a file name with {NAMES}", repr(path)))
    return form


def check_folder(path: str) -> None:
    """FileNotFoundError, before a long run, where a file could not be made."""
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise FileNotFoundError(f"no folder for {path}")


def check_picture(path: str) -> None:
    """InvalidValue for a picture that could not be drawn."""
    if not path.lower().endswith(PICTURES):
        raise InvalidValue(message(f"a picture named {', '.join(PICTURES)}", repr(path)))
    if find_spec("matplotlib") is None:
        raise InvalidValue("--plot needs matplotlib: pip install matplotlib")


def write(path: str, v: Vector, result: Result) -> None:
    """Write by the file's name; ids count from 0, but from 1 in Matrix Market files. Raises InvalidValue and
    OSError."""
    form = form_of(path)
    with io.atomic_file(path) as stream:
        FORMS[form](stream, v, result)


def largest(v: Vector, count: int) -> list[tuple[int, Any]]:
    """(id, value) of the `count` largest; of equal ones, lower ids come first."""
    ids, values = v.ss.selectk("largest", count).to_coo()
    return sorted(zip(ids.tolist(), values.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
