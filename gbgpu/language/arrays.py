"""What users give to constructors -> NumPy arrays: lists, arrays, arrays of a device; indices and values checked."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import settings
from ..errors import IndexOutOfBound, InvalidValue, message
from ..semiring._types import cast_array, lookup_dtype, whole
from .expr import plain
from .index import is_integer, listed, on_gpu


def host(values: Any) -> Any:
    """Something NumPy reads: what lies on a GPU (`__cuda_array_interface__`, or DLPack of a GPU) is copied here."""
    if isinstance(values, (np.ndarray, list, tuple, np.generic, int, float)):
        return values
    if on_gpu(values):
        return settings.session().host_of(values)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    return values if hasattr(values, "__len__") or not hasattr(values, "__iter__") else list(values)


def array_of(values: Any) -> Any:
    """Something that users give as a NumPy array; ValueError for lists of unequal lengths."""
    try:
        return np.asarray(host(values))
    except ValueError:
        raise ValueError(message("numbers in rows of one length", "lists of unequal lengths")) from None


def numbers(values: Any, dtype: Any = None, read: Callable[[Any], Any] = array_of) -> Any:
    """Values as an array of `dtype` (None: NumPy's choice).

    Python's numbers become what they are or are refused, by OverflowError, or ValueError for NaN as an integer; arrays
    are cast as everywhere.
    """
    values = values if on_gpu(values) else host(values)
    array = read(values)
    kind = array.dtype.kind
    if kind == "O" and _listed(values):
        array = _large(values, dtype)
    elif kind not in "biufc":
        raise TypeError(message("numbers or booleans as values", f"{type(values).__name__} of {array.dtype}"))
    target = lookup_dtype(array.dtype if dtype is None or kind == "c" else dtype)
    if array.dtype == target.np_type or array.size == 0 or target.kind not in "iu" or not _listed(values):
        return cast_array(array, target)
    if kind in "biu":
        whole(array.min().item(), target), whole(array.max().item(), target)
        return array.astype(target.np_type)
    found = [whole(one, target) for one in np.asarray(values, object).ravel().tolist()]
    return np.array(found, target.np_type).reshape(array.shape)


def _listed(values: Any) -> bool:
    """Whether values are Python's numbers, not an array."""
    return not any(hasattr(values, name) for name in ("__array__", "__cuda_array_interface__", "__dlpack__"))


def _large(values: Any, dtype: Any) -> np.ndarray:
    """Numbers of which some are integers of more than 64 bits, as objects (as FP64, if they are to be floats)."""
    array = np.asarray(values, object)
    for one in array.ravel().tolist():
        if not isinstance(one, (int, float, np.number)):
            raise TypeError(message("numbers or booleans as values", type(one).__name__))
    if dtype is None or lookup_dtype(dtype).kind == "f":
        try:
            return array.astype(np.float64 if dtype is not None else np.int64)
        except OverflowError:
            what = "integers of at most 64 bits" if dtype is None else f"numbers that {dtype} holds"
            raise OverflowError(message(what, max(array.ravel().tolist(), key=abs))) from None
    return array


def reader(*arrays: Any) -> Callable[[Any], Any]:
    """Return the function that makes arrays of what a constructor is given.

    Arrays on the session's GPU stay there if all of `arrays` lie on it. Otherwise all come to the host, as they do
    across ranks.
    """
    here = settings.session()
    if all(on_gpu(array) for array in arrays) and (device := here.home).kind == "cuda" and here.ranks is None:
        return lambda values: device.adopt(values) if on_gpu(values) else array_of(values)
    return array_of


def checked_size(size: Any) -> int:
    """A dimension as an int. Raises TypeError or InvalidValue."""
    if type(size) is not int:
        if hasattr(size, "__index__") and not isinstance(size, (bool, np.bool_)):
            size = size.__index__()
        if not is_integer(size):
            raise TypeError(message("an int size", type(size).__name__))
    if not 0 <= size < 2**60:
        raise InvalidValue(message("a size from 0 to 2**60 - 1", size))
    return int(size)


def checked_ids(indices: Any, size: int | None, what: str, read: Callable[[Any], Any] = array_of) -> Any:
    """Indices, checked against `size` if it is given: no negative ones here. Those on the host as int64."""
    size = None if size is None else checked_size(size)
    ids = listed(host(indices)) if read is array_of else read(indices)
    if ids.ndim != 1:
        if ids.dtype.kind not in "biuf":
            raise TypeError(message(f"{what} values of an integer type", type(indices).__name__))
        raise InvalidValue(message(f"a one-dimensional array of {what} values", f"{ids.ndim} dimensions"))
    if ids.size == 0:
        return ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        raise TypeError(message(f"{what} values of an integer type", f"{ids.dtype}"))
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= 2**60 or (size is not None and high >= size):
        bad = low if low < 0 else high
        raise IndexOutOfBound(
            message(
                f"every {what} from 0 to {(size if size is not None else 2**60) - 1}", bad, "ids are indices, from 0"
            )
        )
    return ids.astype(np.int64, copy=False) if isinstance(ids, np.ndarray) else ids


def checked_values(values: Any, n: int, dtype: Any, read: Callable[[Any], Any] = array_of) -> tuple[np.ndarray, bool]:
    """(values, iso) for n entries: an array as long as the indices, or a scalar for all."""
    if hasattr(values, "_computed"):  # a Scalar, or an expression of one
        values = plain(values)
    array = numbers(values, dtype, read)
    if array.ndim == 0:
        return array.reshape(1), True
    if array.ndim != 1 or len(array) != n:
        raise ValueError(message(f"{n} values, one for each index", f"shape {array.shape}"))
    return array, False


def checked_entries(
    ids: dict[str, Any], sizes: Sequence[int | None], values: Any, dtype: Any, dup_op: Any, local: bool, read: Any
) -> tuple[list[Any], Any, bool, list[int]]:
    """(ids, values, iso, shape) of what is given for entries.

    `ids` are named by what they are called. `local`: they are this rank's, and the shape is that of all. Raises alike
    on all ranks then, and InvalidValue if they ask for different things.
    """
    ranks = settings.session().ranks if local else None

    def checked() -> tuple[list[Any], Any, bool]:
        found = [checked_ids(given, size, what, read) for (what, given), size in zip(ids.items(), sizes, strict=True)]
        if len(found[0]) != len(found[-1]):
            raise ValueError(message("as many rows as columns", f"{len(found[0])} and {len(found[-1])}"))
        return found, *checked_values(values, len(found[0]), dtype, read)

    found, vals, iso = checked() if ranks is None else ranks.alike(checked, "entries of a rank")
    shape = [
        (int(each.max()) + 1 if len(each) else 0) if size is None else size
        for each, size in zip(found, sizes, strict=True)
    ]
    if ranks is not None:
        type, operator = lookup_dtype(vals.dtype).name, getattr(dup_op, "name", dup_op)
        given = [size if size is None else int(size) for size in sizes]
        facts = f"{type}, {f'value {vals[0]}' if iso else 'values'}, sizes {given}, dup_op {operator}"
        hint = "an empty list is FP64 unless dtype says otherwise"
        shape = [max(each) for each in zip(*ranks.same(facts, "kind of parts", shape, hint), strict=True)]
    return found, vals, iso, shape


def ignored(dup_op: Any, iso: bool) -> Any:
    """The operator for duplicates; of one value for all, any of them is it."""
    return "any" if iso and dup_op is None else dup_op


def offsets_of(indptr: Any, entries: int, what: str, read: Callable[[Any], Any] = array_of) -> Any:
    """Compressed offsets as int64: from 0 to the number of entries, ascending. Raises InvalidValue."""
    offsets = read(indptr)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets.dtype.kind not in "iu":
        raise InvalidValue(message(f"{what} offsets: n + 1 integers", f"{offsets.dtype} of shape {offsets.shape}"))
    offsets = offsets.astype(np.int64, copy=False)  # differences of unsigned ones would wrap
    if offsets[0] != 0 or offsets[-1] != entries or (len(offsets) > 1 and np.any(np.diff(offsets) < 0)):
        raise InvalidValue(message(f"{what} offsets that ascend from 0 to {entries}", f"{offsets[0]} to {offsets[-1]}"))
    return offsets


def present(array: np.ndarray, missing_value: Any) -> np.ndarray:
    """Which elements of a dense array are entries."""
    if missing_value is None:
        return np.ones(array.shape, bool)
    if hasattr(missing_value, "_computed"):
        missing_value = plain(missing_value)
    numbers(missing_value)
    return ~np.isnan(array) if missing_value != missing_value else array != missing_value


def room_for(shape: tuple, dtype: Any) -> None:
    """Raises OutOfMemory unless the host can hold a dense array."""
    settings.session().room(prod(shape), np.dtype(dtype).itemsize, f"a dense array of shape {shape}")


def filled(shape: tuple, where: tuple, vals: np.ndarray, fill_value: Any, dtype: Any) -> np.ndarray:
    """A dense array with `fill_value` where no entry is. Raises TypeError if one is needed and none is given."""
    room_for(shape, vals.dtype)
    if vals.size == prod(shape):
        return vals.reshape(shape)  # entries come by row and column
    if hasattr(fill_value, "_computed"):
        fill_value = plain(fill_value)
    if fill_value is None:
        came = f"{vals.size} entries of {prod(shape)}"
        raise TypeError(message("a fill_value, since some entries are missing", came, "to_dense(0)"))
    fill = numbers(fill_value, None if dtype is None else vals.dtype)
    if fill.ndim:
        raise TypeError(message("a scalar as fill_value", type(fill_value).__name__))
    dense = np.full(shape, fill, np.promote_types(vals.dtype, fill.dtype))
    dense[where] = vals
    return dense


def expanded(compressed: Any, indptr: Any, indices: Any, size: int | None, what: str) -> np.ndarray:
    """The row (or column) of each entry of a doubly compressed form."""
    rows, entries = checked_ids(compressed, size, what), len(array_of(indices))
    offsets = offsets_of(indptr, entries, what)
    if len(offsets) != len(rows) + 1:
        raise InvalidValue(message(f"{len(rows) + 1} offsets for {len(rows)} {what}s", len(offsets)))
    return np.repeat(rows, np.diff(offsets))
