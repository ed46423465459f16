"""`A[...]` and `A[...] = x`: what SciPy's CSR arrays do."""

from typing import Any

import numpy as np

import gbgpu as gb

from ._common import array_classes, issparse, matrix_classes, sparse


class Subscripts:
    """Subscripts of sparse arrays.

    They are ints, slices, lists, arrays (of NumPy, a GPU, or a gbgpu.Vector), boolean masks, dense or sparse, None and
    Ellipsis. Two arrays are paired: `A[I, J]` has the elements (I[k], J[k]), as NumPy's; `A[np.ix_(I, J)]` or
    `A[I][:, J]` the block.
    """

    format: str
    shape: Any
    dtype: Any
    ndim: Any
    _A: Any
    _shape2: Any
    _become: Any
    _made: Any
    _wrapped: Any
    _classes: Any

    def __getitem__(self, key: Any) -> Any:
        keys, new = _keys(key, self.shape)
        if self.ndim == 1:
            keys = [0, *keys]
        paired = _paired(keys)
        if paired is not None:
            return self._elements(*paired)
        keys = _flat(keys)
        ints = [isinstance(k, int) for k in keys]
        if all(ints):
            assert new is not None
            found = self.dtype.type(self._A.get(*keys, 0))
            if new == ():
                return found
            whole = np.full(new, found) if self.ndim == 1 or self._classes is array_classes else np.full((1, 1), found)
            return self._classes[self.format](whole) if self.ndim == 1 or self.format == "coo" else whole
        A = self._A[tuple([k] if isinstance(k, int) else k for k in keys)].new()
        if not any(ints):
            shape, found = A.shape, self._made(A, self.format)
        elif self._classes is matrix_classes:
            shape, found = A.shape, self._made(A, self.format)
            new = None if new is None else (1,) * (2 - len(new)) + new
        else:
            format = self.format if self.ndim == 1 else "coo"
            shape = (max(A.shape) if 0 not in A.shape else 0,)
            found = self._made(A if ints[0] else A.T, format, shape)
        return found if new is None or new == shape else found.reshape(new).asformat(self.format)

    def _elements(self, i: np.ndarray, j: np.ndarray) -> Any:
        """The elements (i[k], j[k])."""
        found = self._A.get(i.reshape(-1), j.reshape(-1), self.dtype.type(0)).reshape(i.shape)
        if i.ndim == 2 or self.format == "coo" or not i.size:
            one = i.ndim == 1 and self.ndim == 2 and self._classes is array_classes
            return self._classes["coo" if one else self.format](found)
        return self._wrapped(found)

    def __setitem__(self, key: Any, x: Any) -> None:
        """Assign a scalar, a dense array (all of it is stored, zeros too) or a sparse one; both are broadcast."""
        keys, _ = _keys(key, self.shape)
        keys = [0, *keys] if self.ndim == 1 else _unsliced(keys, self.shape)
        if self.ndim == 1 and (issparse(x) or isinstance(x, gb.Matrix)):
            x = sparse(x).toarray()
        A = self._A.dup()
        paired = _paired(keys)
        if paired is not None:
            values = _at_places(x, paired[0].shape, self.dtype)
            A(accum="second") << _scattered(*paired, values.astype(self.dtype), self._shape2)
        else:
            ints = [isinstance(k, int) for k in keys]
            places = tuple([k] if isinstance(k, int) else k for k in _flat(keys))
            shape = tuple(len(range(n)[k]) if isinstance(k, slice) else _length(k)
                          for k, n in zip(places, self._shape2, strict=True))  # fmt: skip
            value = _value(x, shape, ints, self.dtype)  # refused too where nothing is selected
            if 0 in shape:
                return
            A[places] << (_over(A[places].new(), value) if issparse(x) or isinstance(x, gb.Matrix) else value)
        self._become(A)


def _is_array(k: Any) -> bool:
    return isinstance(k, np.ndarray)


def _length(k: Any) -> int:
    return k.size if isinstance(k, gb.Vector) else len(k)


def _flat(keys: list) -> list:
    """The index arrays of a block, of one dimension each. Raises IndexError where they stand for more."""
    for axis, k in enumerate(keys):
        if _is_array(k) and k.ndim == 2 and (k.shape[1 - axis] != 1 or any(isinstance(x, slice) for x in keys)):
            raise IndexError("Indexing that leads to more than two dimensions is not supported")
    return [k.reshape(-1) if _is_array(k) else k for k in keys]


def _unsliced(keys: list, shape: tuple) -> list:
    """A slice beside an array of two dimensions as a column of rows, or a row of columns.

    SciPy assigns to what both are broadcast to.
    """
    if not any(_is_array(k) and k.ndim == 2 for k in keys):
        return keys
    row, col = (np.arange(n)[k] if isinstance(k, slice) else k for k, n in zip(keys, shape, strict=True))
    return [row.reshape(-1, 1) if isinstance(keys[0], slice) else row, col]


def _at_places(x: Any, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """What is assigned to places of this shape; a sparse array to one row of them, if they have one dimension."""
    if issparse(x) or isinstance(x, gb.Matrix):
        rows = sparse(x).toarray().reshape(sparse(x)._shape2)
        return np.broadcast_to(rows, shape if len(shape) == 2 else (1, *shape)).reshape(shape)
    return _spread(np.asarray(x, dtype), shape)


def _spread(x: np.ndarray, shape: tuple) -> np.ndarray:
    """Broadcast; what differs in dimensions of 1 only fits."""
    return x.reshape(shape) if x.squeeze().shape == tuple(n for n in shape if n != 1) else np.broadcast_to(x, shape)


def _value(x: Any, shape: tuple, ints: list, dtype: np.dtype) -> Any:
    """What is assigned to a block of this shape."""
    if not issparse(x) and not isinstance(x, gb.Matrix):
        x = np.asarray(x, dtype)
        if x.size == 1:
            return x.reshape(-1)[0]
        if all(ints):
            raise ValueError("Trying to assign a sequence to an item")
        return gb.Matrix.from_dense(_spread(x, shape))
    A = sparse(x)._A
    if ints[1] and sparse(x).ndim == 1:
        A = A.T
    if A.shape == shape:
        return A
    if any(n not in (1, wanted) for n, wanted in zip(A.shape, shape, strict=True)):
        raise ValueError("shape mismatch in assignment")
    return A[tuple(np.zeros(m, np.int64) if n != m else slice(None) for n, m in zip(A.shape, shape, strict=True))].new()


def _over(old: Any, new: Any) -> Any:
    """What a sparse array leaves of a block that it is assigned to: its entries, and 0 where only the block has one."""
    both = old.dup(clear=True)
    both(old.S) << 0
    both(accum="second") << new
    return both


def _scattered(i: np.ndarray, j: np.ndarray, values: np.ndarray, shape: tuple) -> Any:
    """A matrix of these elements; of several at one place the last."""
    flat = (i * shape[1] + j).reshape(-1)[::-1]
    _, last = np.unique(flat, return_index=True)
    i, j, values = (x.reshape(-1)[::-1][last] for x in (i, j, values))
    return gb.Matrix.from_coo(i, j, values, nrows=shape[0], ncols=shape[1])


def _paired(keys: list) -> tuple[np.ndarray, np.ndarray] | None:
    """Both arrays of indices, broadcast; None if they name a block: one array at most, or a column and a row."""
    if not all(isinstance(k, (np.ndarray, int)) for k in keys):
        return None
    arrays = [k for k in keys if isinstance(k, np.ndarray)]
    if len(arrays) < 2 and all(a.ndim == 1 for a in arrays):
        return None
    row, col = (np.asarray(k) for k in keys)
    if row.ndim == 2 and row.shape[1] == 1 and (col.ndim == 1 or (col.ndim == 2 and col.shape[0] == 1)):
        return None
    try:
        row, col = np.broadcast_arrays(row, col)
    except ValueError:
        raise IndexError("number of row and column indices differ") from None
    return row, col


def _keys(key: Any, shape: tuple) -> tuple[list, tuple | None]:
    """(an int >= 0, a slice or an array of ints >= 0 for each dimension; the shape of the result).

    The shape is None unless None asks for another than the keys do.
    """
    given = list(key) if isinstance(key, tuple) else [key]
    given = [part for k in given for part in _unmasked(k, shape)]
    count = sum(k is not None and k is not Ellipsis for k in given)
    if count > len(shape):
        raise IndexError(f"Too many indices: {count} for an array of {len(shape)} dimensions")
    if sum(k is Ellipsis for k in given) > 1:
        raise IndexError("an index can only have a single ellipsis")
    rest = [slice(None)] * (len(shape) - count)
    at = next((n for n, k in enumerate(given) if k is Ellipsis), len(given))
    given = [*given[:at], *rest, *given[at + 1 :]]
    sizes = iter(shape)
    checked = [None if k is None else _key(k, next(sizes)) for k in given]
    return [k for k in checked if k is not None], _with_new_axes(checked, shape)


def _with_new_axes(keys: list, shape: tuple) -> tuple | None:
    if not any(k is None for k in keys):
        return () if all(isinstance(k, int) for k in keys) else None
    sizes, new = iter(shape), []
    for k in keys:
        n = 1 if k is None else next(sizes)
        if k is None or isinstance(k, slice):
            new.append(len(range(n)[k]) if k is not None else 1)
        elif not isinstance(k, int):
            new += k.shape if _is_array(k) else [_length(k)]
    if len(new) > 2:
        raise IndexError("Indexing that leads to more than two dimensions is not supported")
    return tuple(new)


def _unmasked(k: Any, shape: tuple) -> list:
    """A boolean mask of several dimensions as an array of ints for each; anything else as it is."""
    if issparse(k):
        if k.dtype != np.bool_ or k.shape != shape:
            raise IndexError("Indexing with sparse arrays is not supported except by a boolean mask of equal shape")
        return [np.asarray(c, np.int64) for c in sparse(k).nonzero()]
    if isinstance(k, (list, np.ndarray)) and np.ndim(k) == 2 and np.asarray(k).dtype == np.bool_:
        if np.shape(k) != shape:
            raise IndexError(f"bool index has shape {np.shape(k)} instead of {shape}")
        return list(np.nonzero(k))
    return [k]


def _key(k: Any, n: int) -> Any:
    """One subscript, checked: negative ones counted from the end."""
    if isinstance(k, (slice, gb.Vector)) or hasattr(k, "__cuda_array_interface__"):
        return k
    array = np.asarray(k)
    if array.dtype == np.bool_ and array.ndim == 1:
        if len(array) != n:
            raise IndexError(f"bool index has shape {array.shape} instead of {(n,)}")
        return np.flatnonzero(array)
    array = array.astype(np.int64) if array.size == 0 else array
    if array.dtype.kind not in "iu" or array.ndim > 2:
        raise IndexError(f"Index must be an int, a slice, or an array of ints; came {k!r}")
    least = int(array.min()) if array.size else 0
    if array.size and not (-n <= least and int(array.max()) < n):
        raise IndexError(f"index ({k if array.ndim == 0 else array.max()}) out of range for {n}")
    ids = np.where(array < 0, array + n, array) if least < 0 else array
    return int(ids) if ids.ndim == 0 else ids.astype(np.int64)
