"""What all of `gbgpu.sparse` uses: types, how NumPy's operations are named by gbgpu, what counts as sparse."""

from typing import Any

import numpy as np

import gbgpu as gb
from gbgpu.errors import message

array_classes: dict[str, Any] = {}  # "csr", "csc", "coo" -> class
matrix_classes: dict[str, Any] = {}

# NumPy's operation -> the operator of numbers, and the one of booleans
_OPERATORS = {
    "add": ("plus", "lor"),
    "subtract": ("minus", "lxor"),
    "multiply": ("times", "land"),
    "maximum": ("numpy.maximum", "lor"),
    "minimum": ("numpy.minimum", "land"),
    **{name: (name, name) for name in ("lt", "gt", "ne", "le", "ge", "eq")},
}


def operator(name: str, dtype: Any) -> Any:
    """The binary operator that does what NumPy's `name` does, typed."""
    spelling = _OPERATORS[name][dtype == np.bool_]
    where = gb.binary.numpy if spelling.startswith("numpy.") else gb.binary
    return getattr(where, spelling.removeprefix("numpy."))[dtype]


def summing(dtype: Any) -> Any:
    """The binary operator that adds values of this type."""
    return operator("add", dtype)


def products(dtype: Any) -> Any:
    """The semiring of `@`."""
    return (gb.semiring.lor_land if dtype == np.bool_ else gb.semiring.plus_times)[dtype]


def checked_dtype(dtype: Any) -> np.dtype:
    """A NumPy dtype that gbgpu has. Raises ValueError for others, such as complex ones."""
    found = np.dtype(dtype).newbyteorder("=")
    if found.kind not in "biuf" or found.itemsize > 8 or found == np.float16:
        raise ValueError(message("a dtype among bool, (u)int8 to (u)int64, float32, float64", found))
    return found


def is_scalar(x: Any) -> bool:
    """Whether x is a number, also as an array without dimensions."""
    return np.isscalar(x) or (isinstance(x, np.ndarray) and x.ndim == 0)


def issparse(x: Any) -> bool:
    """Whether x is a sparse array of gbgpu or of SciPy (or of CuPy)."""
    return hasattr(x, "tocoo") and hasattr(x, "format") and hasattr(x, "nnz")


def class_of(format: str, classes: dict[str, Any] = array_classes) -> Any:
    """The class of a format. Raises ValueError for one that there is none of."""
    if format not in classes:
        raise ValueError(message(f"a format among {', '.join(classes)}", repr(format)))
    return classes[format]


def made(A: Any, format: str = "csr", shape: tuple | None = None, classes: dict[str, Any] = array_classes) -> Any:
    """A sparse array (or matrix, by `classes`) over an operand of gbgpu. `shape` (n,): A is one row."""
    array = object.__new__(class_of(format, classes))
    array._built, array._given, array._host = A, None, None
    array._shape = A.shape if shape is None or classes is matrix_classes else shape
    return array


def kind_of(x: Any) -> dict[str, Any]:
    """The classes of arrays, or of matrices, by the name of the class: without importing SciPy or CuPy."""
    return matrix_classes if type(x).__name__.endswith("_matrix") else array_classes


def sparse(x: Any) -> Any:
    """Something sparse as an array or matrix of ours."""
    if isinstance(x, gb.Matrix):
        return made(x)
    if isinstance(x, (*array_classes.values(), *matrix_classes.values())):
        return x
    classes = kind_of(x)
    return classes[x.format if x.format in classes else "coo"](x)


def zeroless(A: Any) -> Any:
    """A without the zeros that it stores."""
    return A.select("valuene", 0).new()


def united(name: str, x: Any, y: Any, dtype: Any) -> Any:
    """name(x, y) computed in `dtype` wherever one has an entry, 0 for the other.

    Results of 0 are dropped, as SciPy does.
    """
    return zeroless(operator(name, dtype)(x | y, left_default=0, right_default=0).new())


def given(result: Any, out: Any) -> Any:
    """The result, written to `out` if there is one."""
    if out is None:
        return result
    if out.shape != np.shape(result):
        raise ValueError("out dimensions do not match shape")
    out[...] = result
    return out
