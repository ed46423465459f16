"""What a subscript names in one dimension: all of it, a slice, a list of ids, or a Vector whose values are ids."""

from typing import Any

import numpy as np

from .. import settings
from ..errors import IndexOutOfBound, message
from .expr import _kinds


class Index:
    """Ids 0 <= id < n in the order given, duplicates kept; `size` of them.

    `vector`: None, or a full Vector of an integer type whose values are the ids. They stay on the devices; one out of
    range raises IndexOutOfBound when a result is next read.
    """

    __slots__ = ("n", "size", "vector", "_range", "_ids")

    def __init__(self, n: int, span: range | None = None, ids: np.ndarray | None = None, vector: Any = None):
        self.n, self._range, self._ids, self.vector = n, span, ids, vector
        self.size = vector.size if vector is not None else len(ids if span is None else span)  # type: ignore[arg-type]

    @classmethod
    def of(cls, key: Any, n: int) -> "Index":
        """The index that a subscript means.

        It is a slice, a list or array of ints (negative ones count from the end), or a Vector of ids (of the values
        that are present, in index order). Raises IndexOutOfBound, which is an IndexError; TypeError for anything else.
        """
        if isinstance(key, Index):
            return key
        if isinstance(key, slice):
            return cls(n, span=range(n)[key])
        if isinstance(key, range):
            key = np.arange(key.start, key.stop, key.step)
        if not isinstance(key, _kinds["vector"]) and on_gpu(key):
            key = _kinds["vector"].from_dense(key)
        if isinstance(key, _kinds["vector"]):
            return cls._of_vector(key, n)
        return cls(n, ids=checked(listed(key), n))

    @classmethod
    def _of_vector(cls, key: Any, n: int) -> "Index":
        if key.dtype.kind not in "iu":
            raise TypeError(message("a Vector of an integer type as an index", key.dtype, "masks go into w(mask)"))
        if key._session.recording or (key.nvals == key.size and key.size):
            return cls(n, vector=key)
        return cls(n, ids=checked(key.to_coo(indices=False)[1], n))

    @property
    def is_all(self) -> bool:
        """Whether it names everything in order."""
        return self._range == range(self.n)

    def ids(self) -> np.ndarray:
        """The ids as int64 on the host (reads a Vector's values from the devices)."""
        if self._ids is None:
            if self.vector is not None:
                return checked(self.vector.to_coo(indices=False)[1], self.n)
            span: Any = self._range
            settings.session().room(len(span), 8, "the indices of a slice")
            self._ids = np.arange(span.start, span.stop, span.step, dtype=np.int64)
        return self._ids

    @property
    def given(self) -> Any:
        """The ids as they were given: a range, or an array; None for those of a Vector."""
        return self._ids if self._range is None else self._range

    @property
    def repeats(self) -> bool:
        """Whether an id may come more than once."""
        if self.vector is not None or self._range is not None:
            return self.vector is not None
        return len(distinct(self.ids())[0]) < self.size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return ":" if self.is_all else f"{self.vector.name}" if self.vector is not None else f"{self.size} rows"


def ascending(ids: np.ndarray) -> bool:
    """Whether each is larger than the one before."""
    return len(ids) < 2 or bool(np.all(ids[1:] > ids[:-1]))


def consecutive(ids: np.ndarray) -> bool:
    """Whether each is the one before and one, and there are some."""
    return len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1 and ascending(ids)


def distinct(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ones in ascending order, and where each comes last. Few lists need to be sorted for that."""
    if ascending(ids):
        return ids, np.arange(len(ids))
    found, last = np.unique(ids[::-1], return_index=True)
    return found, len(ids) - 1 - last


def is_integer(key: Any) -> bool:
    """Whether it is an int, of Python or NumPy, and no bool."""
    return isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_))


def on_gpu(values: Any) -> bool:
    """Whether it is an array in a GPU's memory."""
    if hasattr(values, "__cuda_array_interface__"):
        return True
    where = getattr(values, "__dlpack_device__", None)
    return where is not None and int(where()[0]) in (2, 3)  # CUDA, or pinned by it


def listed(ids: Any) -> np.ndarray:
    """A list of ids as an array. Ints that are too large for one of int64 are out of any bounds."""
    try:
        array = np.asarray(ids)
    except ValueError:
        raise TypeError(message("a list of ints as an index", "lists of unequal lengths")) from None
    if array.dtype.kind in "fO" and not isinstance(ids, np.ndarray) and array.size:
        unlike = np.asarray(ids, object).ravel().tolist()
        if all(isinstance(one, int) for one in unlike):
            raise IndexOutOfBound(message("indices of at most 60 bits", max(unlike, key=abs)))
    return array


def checked(ids: np.ndarray, n: int) -> np.ndarray:
    """Ids from -n to n - 1 as int64 from 0 on. Raises TypeError or IndexOutOfBound."""
    if ids.dtype == bool or ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        came = f"{ids.dtype} of shape {ids.shape}"
        raise TypeError(message("an int, a slice, or a list of ints as an index", came, "masks go into w(mask)"))
    least, most = (int(ids.min()), int(ids.max())) if ids.size else (0, -1)
    if most >= n or least < -n:
        raise IndexOutOfBound(message(f"indices from {-n} to {n - 1}", f"{least} to {most}"))
    ids = ids.astype(np.int64)
    return np.where(ids < 0, ids + n, ids) if least < 0 else ids
