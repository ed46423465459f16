"""What every algorithm asks of its arguments."""

from operator import index
from typing import Any

from gbgpu import Matrix, Vector
from gbgpu.errors import DimensionMismatch, IndexOutOfBound, message
from gbgpu.semiring import plus_pair


def square(A: Any) -> int:
    """The number of vertices; TypeError if A is no Matrix, DimensionMismatch if it is not square."""
    if not isinstance(A, Matrix):
        raise TypeError(message("a gbgpu Matrix", type(A).__name__, "Matrix.from_scipy_sparse takes SciPy matrices"))
    if A.nrows != A.ncols:
        raise DimensionMismatch(message("a square matrix, arc i -> j in A[i, j]", f"{A.nrows} x {A.ncols}"))
    return A.nrows


def vertex(source: Any, n: int) -> int:
    """The source as an int; TypeError if it is no whole number, IndexOutOfBound if it is not one of 0 .. n-1."""
    try:
        number = index(source)
    except TypeError:
        raise TypeError(message("a vertex number", repr(source))) from None
    if not 0 <= number < n:
        raise IndexOutOfBound(message(f"a source from 0 to {n - 1}", number) if n else "the graph has no vertex")
    return number


def row_lengths(A: Matrix) -> Any:
    """The expression of how many entries each row has (INT64), nothing where there is none: out-degrees."""
    ones = Vector(int, size=A.ncols, name="ones")
    ones[:] = 1
    return plus_pair[int](A @ ones)
