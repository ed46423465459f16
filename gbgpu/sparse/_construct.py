"""Functions that make sparse arrays. Those of SciPy that give a diagonal or block format give CSR here."""

from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

import gbgpu as gb
from gbgpu.errors import message
from gbgpu.interrupts import imported

from ._common import array_classes, checked_dtype, made, matrix_classes, operator, sparse

_FLOATS: Any = object()  # for `dtype`: the type of floats that NumPy finds for the values


def _any(x: Any) -> Any:
    """A sparse array of anything."""
    return sparse(x) if _is_sparse(x) else array_classes["csr"](x)


def _is_sparse(x: Any) -> bool:
    return hasattr(x, "tocoo") or isinstance(x, gb.Matrix)


def _classes_of(*operands: Any) -> dict[str, Any]:
    """The classes of a result: arrays if an operand is one, else matrices, as SciPy has it."""
    arrays = any(_is_sparse(x) and sparse(x)._classes is array_classes for x in operands)
    return array_classes if arrays else matrix_classes


def _as_matrix(x: Any) -> Any:
    return matrix_classes[x.format](x)


def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: str | None = None) -> Any:
    """Ones on a diagonal of an m x n array.

    Parameters
    ----------
    m, n : int
        The shape; n is m by default.
    k : int
        Which diagonal: 0 the main one, above it positive.
    dtype : dtype
        The type of the values.
    format : str, optional
        "csr" (default), "csc" or "coo".

    Returns
    -------
    sparse array
        m x n.

    Raises
    ------
    ValueError
        If the diagonal is outside the array.
    """
    shape = (int(m), int(m if n is None else n))
    A = gb.Matrix(checked_dtype(dtype), *shape)
    if _reach(k, shape):
        A.setdiag(1, k)
    return made(A).asformat(format)


def eye(m: int, n: int | None = None, k: int = 0, dtype: Any = float, format: str | None = None) -> Any:
    """`eye_array`, as a matrix: `*` is the product."""
    return _as_matrix(eye_array(m, n, k=k, dtype=dtype, format=format))


def identity(n: int, dtype: Any = "d", format: str | None = None) -> Any:
    """The identity of n x n, as a matrix."""
    return eye(n, dtype=dtype, format=format)


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = _FLOATS
) -> Any:
    """Arrays (or scalars) on diagonals.

    Parameters
    ----------
    diagonals : list of arrays
        Of a longer one the beginning counts.
    offsets : int or list of int
        The diagonal of each.
    shape : (int, int), optional
        By default the square one that the first fits in.
    format : str, optional
        "csr" (default), "csc" or "coo". If one is given, zeros are left out.
    dtype : dtype, optional
        By default a float type, as of SciPy up to 1.18; with None diagonals keep their type.

    Returns
    -------
    sparse array
        Of this shape.

    Raises
    ------
    ValueError
        If a diagonal is outside the shape or too short, there is none, or two have one offset.
    TypeError
        If diagonals are bools, without `dtype`.
    """
    if not np.iterable(diagonals) or isinstance(diagonals, (str, dict)):
        raise TypeError(message("a list of diagonals", type(diagonals).__name__))
    diagonals = list(diagonals)
    one = np.ndim(offsets) == 0 and (not diagonals or np.ndim(diagonals[0]) == 0)
    offsets = [int(k) for k in np.atleast_1d(offsets)]
    lines = [np.atleast_1d(d) for d in ([diagonals] if one else diagonals)]
    if not lines:
        raise ValueError(message("at least one diagonal", "none"))
    if len(lines) != len(offsets):
        raise ValueError(message("one offset for each diagonal", f"{len(lines)} and {len(offsets)}"))
    if len(set(offsets)) < len(offsets):
        raise ValueError("offset array contains duplicate values")
    n = len(lines[0]) + abs(offsets[0])
    shape = (n, n) if shape is None else tuple(shape)
    dtype = np.common_type(*lines) if dtype is _FLOATS else dtype
    parts = [_diagonal(d, k, shape) for d, k in zip(lines, offsets, strict=True)]
    row, col, data = (np.concatenate(part) for part in zip(*parts, strict=True))
    if format is not None:  # SciPy converts what it has by diagonals, without zeros
        row, col, data = (part[data != 0] for part in (row, col, data))
    return array_classes["csr"]((data, (row, col)), shape=shape, dtype=dtype).asformat(format)


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = _FLOATS) -> Any:
    """`diags_array`, as a matrix: `*` is the product."""
    return _as_matrix(diags_array(diagonals, offsets=offsets, shape=shape, format=format, dtype=dtype))


def _diagonal(values: np.ndarray, k: int, shape: tuple) -> tuple:
    size = _reach(k, shape)
    if len(values) < size and len(values) != 1:
        raise ValueError(f"Diagonal length (index {k}: {len(values)}) does not agree with array size {shape}")
    rows = np.arange(size) + max(0, -k)
    return rows, rows + k, np.broadcast_to(values[: max(size, 1)], size) if size else values[:0]


def _reach(k: int, shape: tuple) -> int:
    """The length of the k'th diagonal."""
    size = min(shape[0] + min(k, 0), shape[1] - max(k, 0))
    if size < 0:
        raise ValueError(f"Offset {k} out of bounds")
    return size


def random_array(
    shape: Any, *, density: float = 0.01, format: str = "coo", dtype: Any = None, rng: Any = None,
    data_sampler: Any = None, random_state: Any = None,
) -> Any:  # fmt: skip
    """Random values at places drawn without repetition, the same as SciPy's.

    Parameters
    ----------
    shape : tuple of int
        Of one or two dimensions.
    density : float
        density * size values, 0 to 1.
    format : str
        "csr", "csc" or "coo".
    dtype : dtype, optional
        By default float64.
    rng : numpy.random.Generator or int, optional
        A generator or a seed of one.
    data_sampler : callable, optional
        `data_sampler(size=)` gives the values. By default uniform from [0, 1); integers: any of the type.
    random_state : numpy.random.RandomState or int, optional
        By default the one that np.random.seed sets.

    Returns
    -------
    sparse array
        Of this shape.

    Raises
    ------
    ValueError
        If `density` is out of its range.
    """
    if not 0 <= density <= 1:
        raise ValueError("density expected to be 0 <= density <= 1")
    drawn, shape = _generator(rng, random_state), tuple(int(n) for n in shape)
    dtype, size = checked_dtype(float if dtype is None else dtype), int(round(density * prod(shape)))
    places = np.unravel_index(drawn.choice(prod(shape), size, replace=False), shape, order="F")
    if data_sampler is not None:
        data = data_sampler(size=size)
    elif dtype.kind in "iu":
        integers = drawn.integers if isinstance(drawn, np.random.Generator) else drawn.randint
        data = integers(np.iinfo(dtype).min, np.iinfo(dtype).max, size, dtype=dtype)
    else:
        data = drawn.uniform(size=size)
    return array_classes["coo"]((np.asarray(data).astype(dtype), places), shape=shape).asformat(format)


def _generator(rng: Any, random_state: Any) -> Any:
    if rng is not None:
        return np.random.default_rng(rng)
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand
    drawn = np.random.Generator, np.random.RandomState
    return random_state if isinstance(random_state, drawn) else np.random.RandomState(random_state)


def random(
    m: int, n: int, density: float = 0.01, format: str = "coo", dtype: Any = None, rng: Any = None,
    data_rvs: Any = None, *, random_state: Any = None,
) -> Any:  # fmt: skip
    """`random_array`, as a matrix; `data_rvs(k)` gives k values."""
    sampler = None if data_rvs is None else lambda size: data_rvs(size)
    drawn = random_array(
        (m, n), density=density, format=format, dtype=dtype, rng=rng, data_sampler=sampler, random_state=random_state
    )
    return _as_matrix(drawn)


def kron(A: Any, B: Any, format: str | None = None) -> Any:
    """The Kronecker product.

    Parameters
    ----------
    A, B : sparse or dense array
        The operands.
    format : str, optional
        "csr", "csc" or "coo".

    Returns
    -------
    sparse array or matrix
        Of the larger number of dimensions; a matrix unless A or B is an array.
    """
    classes = _classes_of(A, B)
    A, B = (_any(x) if _is_sparse(x) else classes["csr"](x) for x in (A, B))
    whole = tuple(a * b for a, b in zip(A._shape2, B._shape2, strict=True))
    shape = whole[2 - max(A.ndim, B.ndim) :] if classes is array_classes else whole
    if not A.nnz or not B.nnz:
        return classes["coo"](shape).asformat(format)
    dtype = np.promote_types(A.dtype, B.dtype)
    C = A._in(dtype).kronecker(B._in(dtype), operator("multiply", dtype)).new()
    return made(C, "csr", shape, classes).asformat(format)


def tril(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The entries on and below the k'th diagonal."""
    return made(_any(A)._A.select("tril", k).new(), "coo", None, _classes_of(A)).asformat(format)


def triu(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The entries on and above the k'th diagonal."""
    return made(_any(A)._A.select("triu", k).new(), "coo", None, _classes_of(A)).asformat(format)


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Blocks side by side; a matrix unless one is an array."""
    return bmat([list(blocks)], format=format, dtype=dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Blocks one below the other; a matrix unless one is an array."""
    return bmat([[block] for block in blocks], format=format, dtype=dtype)


def block_array(blocks: Any, *, format: str | None = None, dtype: Any = None) -> Any:
    """An array of blocks.

    Parameters
    ----------
    blocks : list of lists
        Sparse or dense arrays; None is a block of zeros. A row or column of None only has no extent.
    format : str, optional
        By default that of all blocks, if they have one, else "coo".
    dtype : dtype, optional
        By default the common type.

    Returns
    -------
    sparse array
        Of all blocks.

    Raises
    ------
    ValueError
        If blocks do not fit.
    """
    grid = [[None if x is None else _any(x) for x in row] for row in blocks]
    if not grid or len({len(row) for row in grid}) != 1:
        raise ValueError("blocks must be 2-D")
    heights = [_extent(row, 0, f"blocks[{i},:]") for i, row in enumerate(grid)]
    widths = [_extent(list(column), 1, f"blocks[:,{j}]") for j, column in enumerate(zip(*grid, strict=True))]
    present = [x for row in grid for x in row if x is not None]
    kinds = {x.format for x in present}
    if dtype is None:
        dtype = np.result_type(*(x.dtype for x in present)) if present else float
    found = checked_dtype(dtype)
    empty = cache(partial(gb.Matrix, found))
    tiles = [[empty(h, w) if x is None else x._in(found) for x, w in zip(row, widths, strict=True)]
             for row, h in zip(grid, heights, strict=True)]  # fmt: skip
    whole = gb.Matrix(found, sum(heights), sum(widths))
    whole.ss.concat(tiles)
    natural = kinds.pop() if len(kinds) == 1 and len(present) == len(heights) * len(widths) else "coo"
    return made(whole, format or natural)


def bmat(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """One matrix of blocks, as `block_array` makes it; an array if a block is one."""
    grid = [list(row) for row in blocks]
    whole = block_array(grid, format=format, dtype=dtype)
    return whole if _classes_of(*(x for row in grid for x in row)) is array_classes else _as_matrix(whole)


def _extent(line: list, axis: int, where: str) -> int:
    sizes = {x._shape2[axis] for x in line if x is not None} or {0}
    if len(sizes) != 1:
        raise ValueError(f"{where} has incompatible dimensions {sorted(sizes)}")
    return sizes.pop()


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Blocks along the diagonal, numbers too.

    Parameters
    ----------
    mats : iterable of sparse or dense arrays
        The blocks.
    format : str, optional
        By default "coo".
    dtype : dtype, optional
        By default the common type.

    Returns
    -------
    sparse array or matrix
        A matrix unless a block is an array.
    """
    classes = _classes_of(*(mats := list(mats)))
    mats = [_any(x if _is_sparse(x) else np.atleast_2d(x)) for x in mats]
    grid = [[x if i == j else None for j in range(len(mats))] for i, x in enumerate(mats)]
    whole = block_array(grid, format=format or "coo", dtype=dtype)
    return whole if classes is array_classes else _as_matrix(whole)


def find(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, columns, values) of the values other than 0, read to the host."""
    kept = _any(A).copy()
    kept.eliminate_zeros()
    kept = kept.tocoo()
    return kept.row.copy(), kept.col.copy(), kept.data.copy()


def save_npz(file: Any, matrix: Any, compressed: bool = True) -> None:
    """Write SciPy's .npz file of a sparse array."""
    imported("scipy.sparse").save_npz(file, _any(matrix).to_scipy(), compressed)


def load_npz(file: Any) -> Any:
    """Read SciPy's .npz file. Raises ValueError for a file of another kind."""
    return sparse(imported("scipy.sparse").load_npz(file))
