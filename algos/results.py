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
from gbgpu.io.shares import files_of

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


def check_outputs(outputs: dict[str, str | None], inputs: list[tuple[str, str | None]]) -> None:
    """Before a long run: FileNotFoundError where a file could not be made, InvalidValue where it would replace one that
    is read or written, too. Both by what they are called on the command line; None is no file. Graphs may be several
    files, or none."""
    taken = [(called, path) for called, source in inputs for path in _files(source)]
    for called, path in outputs.items():
        if path is None:
            continue
        check_folder(path)
        for other, one in taken:
            if _same(path, one):
                hint = "what is written replaces a file"
                raise InvalidValue(message(f"{called} to name another file than {other}, {one}", path, hint))
        taken.append((called, path))


def _files(source: str | None) -> list[str]:
    """The files that are there of a graph: one, or those of a pattern or a folder."""
    try:
        return [] if source is None else files_of(source) or [source]
    except (OSError, InvalidValue):  # reading tells what is wrong
        return []


def _same(one: str, other: str) -> bool:
    """Whether two names are of one file, which may not be there yet; a device and a pipe are none."""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.isfile(one) and os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


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
