"""What the import functions of `Matrix.ss` and `Vector.ss` take: options, formats, sizes that cut arrays."""

from inspect import signature
from typing import Any

import numpy as np

from ..errors import InvalidValue, message
from .arrays import array_of, checked_size
from .expr import _kinds

# arrays and sizes, of which `import_any` drops those that a format has not
_PARTS = {"indices", "bitmap", "indptr", "rows", "cols", "col_indices", "row_indices", "size", "nrows", "ncols"}
_PARTS |= {"nvals", "nvec"}
_OPTIONS = {"format", "name", "dtype", "is_iso", "take_ownership", "sorted_index", "sorted_rows", "sorted_cols"}
_OPTIONS |= {"axb_method", "chunk", "compression", "compression_level", "gpu_id", "nthreads", "secure_import", "sort"}


def by_format(cls: Any, format: str, given: dict) -> Any:
    """By the function that imports a format. Raises ValueError for one that there is none for."""
    found = getattr(cls, f"import_{format}", None)
    if found is None or format == "any":
        names = ", ".join(n.removeprefix("import_") for n in dir(cls) if n.startswith("import_") and n != "import_any")
        raise ValueError(message(f"a format among {names}", repr(format)))
    foreign = _PARTS - set(signature(found).parameters)
    return found(**{name: value for name, value in given.items() if value is not None and name not in foreign})


def guessed(given: dict) -> str:
    """The format of import functions' arguments, by their names."""
    names = {name for name, value in given.items() if value is not None}
    if "bitmap" in names:
        return "bitmapr"
    if "indptr" in names:
        by_row = "col_indices" in names
        return ("hyper" if ("rows" if by_row else "cols") in names else "") + ("csr" if by_row else "csc")
    return "coo" if "rows" in names else "fullr"


def imported(values: Any, opts: dict, format: str) -> tuple[Any, Any]:
    """(values, dtype); an iso array as its one value. Raises ValueError for what is no option, or another format."""
    if unknown := sorted(set(opts) - _OPTIONS):
        raise ValueError(message(f"options among {', '.join(sorted(_OPTIONS))}", ", ".join(unknown)))
    if opts.get("format") not in (None, format, *(("coor", "cooc") if format == "coo" else ())):
        raise ValueError(message(f"format {format!r} or none", repr(opts["format"])))
    array = array_of(values)
    return (array.reshape(-1)[0] if opts.get("is_iso") and array.size else array), opts.get("dtype")


def sizes(nrows: int, ncols: int, opts: dict) -> dict:
    """What functions that make a matrix take by name."""
    return {"nrows": nrows, "ncols": ncols, "name": opts.get("name")}


def first(n: int, array: Any) -> Any:
    """The first n elements. Raises InvalidValue if there are fewer."""
    array = array_of(array)
    if array.size < checked_size(n):
        raise InvalidValue(message(f"arrays of at least {n} elements", array.size))
    return array[:n]


def first_values(n: int, values: Any) -> Any:
    """The same of values; one for all stays."""
    return values if np.ndim(values) == 0 else first(n, values)


def lines_of(nvec: int | None, lines: Any, indptr: Any, indices: Any, values: Any) -> tuple:
    """Of doubly compressed arrays the first `nvec` rows, or columns."""
    if nvec is None:
        return lines, indptr, indices, values
    lines, indptr = first(nvec, lines), first(nvec + 1, indptr)
    n = int(indptr[-1])
    return lines, indptr, first(n, indices), first_values(n, values)


def dense(values: Any, bitmap: Any, nrows: Any, ncols: Any, format: str, opts: dict) -> Any:
    """The matrix of a full or bitmap format."""
    kept, dtype = imported(values, opts, format)
    like = array_of(bitmap) if bitmap is not None else array_of(values)
    held = like.shape if like.ndim == 2 else (None, None)
    given = zip((nrows, ncols), held, strict=True)
    shape: Any = tuple(own if n is None else checked_size(n) for n, own in given)
    if None in shape:
        raise ValueError(message("nrows and ncols beside flat arrays", shape))
    order: Any = "F" if format.endswith("c") else "C"

    def places(array: Any) -> Any:
        return first(shape[0] * shape[1], array.ravel(order)).reshape(shape, order=order)

    vals = np.broadcast_to(kept, shape) if np.ndim(kept) == 0 else places(kept)
    keep = np.ones(shape, bool) if bitmap is None else places(array_of(bitmap).astype(bool))
    i, j = np.nonzero(keep)
    return _kinds["matrix"].from_coo(i, j, vals[i, j], dtype, **sizes(shape[0], shape[1], opts))
