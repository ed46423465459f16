"""The six classes: three formats, each as an array (`*` elementwise) and as a matrix (`*` is the product)."""

from typing import Any, NoReturn

import numpy as np

import gbgpu as gb
from gbgpu.errors import message

from ._base import SparseArray, summed
from ._common import array_classes, is_scalar, issparse, kind_of, made, matrix_classes, sparse


def _indices(k: int, name: str, doc: str) -> property:
    """An array of indices that is read to the host. To assign one raises AttributeError, which says what to write."""

    def refuse(array: Any, value: Any) -> NoReturn:
        hint = f"B = A.to_scipy() has {name} that can be assigned, and {type(array).__name__}(B) brings it back"
        raise AttributeError(message("A.data, the only array that can be assigned", f"A.{name}", hint))

    return property(lambda array: array._arrays()[k], refuse, doc=f"{doc}, read to the host.")


class _Rows(SparseArray):
    _format = "csr"

    indptr = _indices(0, "indptr", "Where each row begins in `indices`")
    indices = _indices(1, "indices", "The column of each entry")

    def _read(self) -> tuple:
        return self._A.to_csr()

    def _rebuilt(self, data: np.ndarray) -> Any:
        return gb.Matrix.from_csr(self.indptr, self.indices, data, ncols=self._shape2[1])


class _Columns(SparseArray):
    _format = "csc"

    indptr = _indices(0, "indptr", "Where each column begins in `indices`")
    indices = _indices(1, "indices", "The row of each entry")

    def _read(self) -> tuple:
        return self._A.to_csc()

    def _rebuilt(self, data: np.ndarray) -> Any:
        return gb.Matrix.from_csr(self.indptr, self.indices, data, ncols=self._shape2[0]).T


class _Coordinates(SparseArray):
    _format = "coo"

    row = _indices(0, "row", "The row of each entry")
    col = _indices(1, "col", "The column of each entry")

    coords = SparseArray._coords

    def _read(self) -> tuple:
        return self._A.to_coo()

    def _rebuilt(self, data: np.ndarray) -> Any:
        return summed(self.row, self.col, data, self._shape2)


class sparray:  # noqa: N801 (SciPy's name)
    """The base of csr_array, csc_array and coo_array."""


class spmatrix:  # noqa: N801
    """The base of csr_matrix, csc_matrix and coo_matrix.

    They always have two dimensions, `*` is `@`, `**` the matrix power, and dense results of two dimensions are
    numpy.matrix. `multiply` and `power` are elementwise.
    """

    _classes = matrix_classes
    _A: Any
    _shape: Any
    format: str
    dtype: Any
    copy: Any
    multiply: Any
    conj: Any
    tocsr: Any
    astype: Any
    reshape: Any
    _two_dimensional: Any
    __matmul__: Any
    __rmatmul__: Any

    def _wrapped(self, dense: Any) -> Any:
        return np.asarray(dense).view(np.matrix)

    def _line(self, values: np.ndarray, axis: int) -> Any:
        return self._wrapped(values[None, :] if axis == 0 else values[:, None])

    def __mul__(self, other: Any) -> Any:
        """The product of matrices, of a matrix and a vector, or with a scalar."""
        return self.multiply(other) if is_scalar(other) else self.__matmul__(other)

    def __rmul__(self, other: Any) -> Any:
        if issparse(other):
            return sparse(other) * self
        return self.multiply(other) if is_scalar(other) else self.__rmatmul__(other)

    def __pow__(self, n: Any) -> Any:
        """The product of n such matrices; the identity for n = 0.

        Raises TypeError for a matrix that is not square, ValueError unless n is a whole number of at least 0.
        """
        nrows, ncols = self._two_dimensional()
        if nrows != ncols:
            raise TypeError(
                message("a square matrix to the power n", f"shape {self._shape}", "A.power(n) is elementwise")
            )
        if not is_scalar(n) or np.asarray(n).dtype.kind not in "biu" or n < 0:
            raise ValueError(
                message("a whole number of at least 0 as the exponent", repr(n), "A.power(n) is elementwise")
            )
        n = int(n)
        if n == 0:
            ones = gb.Matrix(self.dtype, nrows, ncols)
            ones.setdiag(1)
            return made(ones, self.format, None, self._classes)
        result, square = None, self  # type: Any, Any
        while n:
            if n & 1:
                result = square if result is None else result @ square
            square, n = square @ square if n > 1 else square, n >> 1
        return self.copy() if result is self else result

    def getH(self) -> Any:  # noqa: N802 (SciPy's name)
        """The transpose: there are no complex numbers."""
        return self.conj().transpose()

    def getrow(self, i: int) -> Any:
        """Row i, as a csr_matrix of one row."""
        return self.tocsr()[i]

    def getcol(self, j: int) -> Any:
        """Column j, as a csc_matrix or csr_matrix of one column."""
        rows_or_columns: Any = self if self.format == "csc" else self.tocsr()
        return rows_or_columns[:, j]

    def getformat(self) -> str:
        """The format."""
        return self.format

    def get_shape(self) -> Any:
        """The shape."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Reshape in place. Raises ValueError for another number of elements."""
        new = self.reshape(shape).asformat(self.format)
        self._built, self._given, self._host, self._shape = new._built, new._given, None, new._shape

    shape = property(get_shape, set_shape, doc="The shape; to assign one reshapes in place.")

    def asfptype(self) -> Any:
        """Integers and bools in float64, floats as they are."""
        return self if self.dtype.kind == "f" else self.astype(np.float64)


class csr_array(_Rows, sparray):  # noqa: N801
    __doc__ = f"Compressed sparse rows. {SparseArray.__doc__}"


class csc_array(_Columns, sparray):  # noqa: N801
    __doc__ = f"Compressed sparse columns. {SparseArray.__doc__}"


class coo_array(_Coordinates, sparray):  # noqa: N801
    __doc__ = f"Coordinates. {SparseArray.__doc__}"


class csr_matrix(spmatrix, _Rows):  # noqa: N801
    __doc__ = f"Compressed sparse rows. {spmatrix.__doc__}"


class csc_matrix(spmatrix, _Columns):  # noqa: N801
    __doc__ = f"Compressed sparse columns. {spmatrix.__doc__}"


class coo_matrix(spmatrix, _Coordinates):  # noqa: N801
    __doc__ = f"Coordinates. {spmatrix.__doc__}"

    def __getitem__(self, key: Any) -> NoReturn:
        raise TypeError("'coo_matrix' object is not subscriptable. Hint: A.tocsr()")

    def __setitem__(self, key: Any, x: Any) -> NoReturn:
        raise TypeError("'coo_matrix' object does not support item assignment. Hint: A.tocsr()")


array_classes.update(csr=csr_array, csc=csc_array, coo=coo_array)
matrix_classes.update(csr=csr_matrix, csc=csc_matrix, coo=coo_matrix)


def isspmatrix(x: Any) -> bool:
    """Whether x is a sparse matrix (`*` is the product) of gbgpu or of SciPy (or of CuPy), and not an array."""
    return issparse(x) and kind_of(x) is matrix_classes


def isspmatrix_csr(x: Any) -> bool:
    """Whether x is a sparse matrix in CSR."""
    return isspmatrix(x) and x.format == "csr"


def isspmatrix_csc(x: Any) -> bool:
    """Whether x is a sparse matrix in CSC."""
    return isspmatrix(x) and x.format == "csc"


def isspmatrix_coo(x: Any) -> bool:
    """Whether x is a sparse matrix in COO."""
    return isspmatrix(x) and x.format == "coo"
