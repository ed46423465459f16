"""Matrices, and their transposes."""

from typing import Any

import numpy as np

from ..errors import message
from . import compose, formatting
from .arrays import checked_ids, checked_size, checked_values
from .expr import Transposed, _kinds
from .handle import Tools
from .matrix_face import MatrixFace
from .matrix_from import MatrixConstructors
from .matrix_tools import MatrixTools


class Matrix(MatrixFace, MatrixConstructors):
    """A sparse matrix: entries of one dtype, in CSR row blocks on the session's devices.

    An adjacency matrix has the arc i -> j at A[i, j]. If all values are one, no array of values is stored (iso).

    Parameters
    ----------
    dtype : dtype
        The type of the values.
    nrows, ncols : int
        The shape.
    name : str, optional
        The name in plans and traces.

    Raises
    ------
    InvalidValue
        If a size is not from 0 to 2**60 - 1.
    """

    __slots__ = ("_held",)  # (the content or None, the log of single entries that it does not have yet or None)
    __networkx_backend__ = "gbgpu"

    @property
    def _store(self) -> Any:
        """The content, which takes what the log has."""
        store, log = self._held
        return self._session.arrived(self) if log else store

    @_store.setter
    def _store(self, store: Any) -> None:
        """The content, with the single entries that were logged."""
        self._held = store, None

    def build(
        self,
        rows: Any,
        columns: Any,
        values: Any = 1.0,
        *,
        dup_op: Any = None,
        clear: bool = False,
        nrows: int | None = None,
        ncols: int | None = None,
    ) -> None:
        """Fill an empty matrix in place.

        Parameters
        ----------
        rows, columns : array of int
            Indices, of one length.
        values : array or scalar
            As many values as indices, or one for all.
        dup_op : operator or str, optional
            The binary operator that combines entries at one place.
        clear : bool
            Whether to delete what the matrix holds first.
        nrows, ncols : int, optional
            Another shape.

        Raises
        ------
        OutputNotEmpty
            If the matrix has entries and `clear` is not given.
        IndexOutOfBound, ValueError, TypeError
            As `from_coo`.
        """
        sizes = zip((nrows, ncols), self.shape, strict=True)
        shape = tuple(n if given is None else checked_size(given) for given, n in sizes)
        i, j = checked_ids(rows, shape[0], "row"), checked_ids(columns, shape[1], "column")
        if len(i) != len(j):
            raise ValueError(message("as many rows as columns", f"{len(i)} and {len(j)}"))
        vals, iso = checked_values(values, len(i), self.dtype)
        if not clear:
            self._session.check_empty(self)
        built = Matrix(self.dtype, *shape, name=self._name)
        self._session.build_matrix(built, i, j, vals, iso, dup_op)
        if self._session.recording:  # it is built when the loop runs
            self << built
        else:
            self._session.take(self, built)

    # -- what a transpose does not have

    @property
    def T(self) -> "TransposedMatrix":
        """The transpose, a view: nothing moves until a product needs the other orientation."""
        return TransposedMatrix(self)

    def _at(self, where: tuple[int, int]) -> Any:
        return self._session.element(self, where)

    def _at_places(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found: tuple[np.ndarray, np.ndarray] = self._session.elements(self, i, j)
        return found

    def resize(self, nrows: int, ncols: int) -> None:
        """Change the shape in place; entries outside it are dropped.

        Parameters
        ----------
        nrows, ncols : int
            The new shape.
        """
        compose.resize(self, (checked_size(nrows), checked_size(ncols)))

    def setdiag(self, values: Any, k: int = 0, *, mask: Any = None, accum: Any = None, **hints: Any) -> None:
        """Set the k'th diagonal.

        Parameters
        ----------
        values : scalar, Vector or array
            One value, or as many as the diagonal is long. Without `accum`, a place where a Vector has no entry is
            emptied.
        k : int
            Which diagonal: 0 the main one, above it positive.
        mask : Mask, optional
            A vector mask over the diagonal, or a matrix mask.
        accum : operator or str, optional
            The binary operator that combines old and new values.
        **hints : str
            Hints for the statement, as of `A(mask, **hints)`.

        Raises
        ------
        IndexError
            If the diagonal is outside the matrix.
        DimensionMismatch
            If a length is not that of the diagonal.
        """
        compose.setdiag(self, values, k, mask, accum, hints)

    ss = Tools(MatrixTools)

    def _as_vector(self, *, name: str | None = None) -> Any:
        return self[:, 0].new(name=name)

    def __reduce__(self) -> Any:
        return _restored, (*self.to_csr(), self.dtype.name, self.shape[1], self._name)


class TransposedMatrix(MatrixFace, Transposed):
    """The transpose of a matrix, as of `A.T`: a view that can be read and used in expressions."""

    __slots__ = ()
    T = Transposed.T

    nvals = property(lambda self: self.matrix.nvals)

    def _at(self, where: tuple[int, int]) -> Any:
        return self.matrix.get(*where[::-1])

    def _at_places(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix._at_places(j, i)

    def __reduce__(self) -> Any:
        return getattr, (self.matrix, "T")

    def __iter__(self) -> Any:
        return zip(*(part.tolist() for part in self.to_coo(values=False)[:2]), strict=True)

    def dup(
        self, dtype: Any = None, *, clear: bool = False, mask: Any = None, name: str | None = None, **hints: Any
    ) -> Matrix:
        """The transpose as a new Matrix.

        Parameters
        ----------
        dtype : dtype, optional
            By default that of the matrix.
        clear : bool
            Whether the new matrix only has the shape, and no entries.
        mask : Mask, optional
            Which entries to copy.
        name : str, optional
            The matrix's name.
        **hints : str
            Hints for the statement, as of `w(mask, **hints)`.

        Returns
        -------
        Matrix
            ncols x nrows of the original.
        """
        if clear:
            return Matrix(self.dtype if dtype is None else dtype, *self.shape, name=name)
        return self.new(dtype, mask=mask, name=name, **hints)

    def wait(self, how: str = "materialize") -> "TransposedMatrix":
        """Wait until the devices have computed the matrix; see `Matrix.wait`."""
        self.matrix.wait(how)
        return self

    def __repr__(self) -> str:
        return formatting.handle(self)

    def _repr_html_(self) -> str:
        return formatting.handle_html(self)


def _restored(indptr: Any, cols: Any, vals: Any, dtype: str, ncols: int, name: str | None) -> Matrix:
    return Matrix.from_csr(indptr, cols, vals, dtype, ncols=ncols, name=name)


_kinds["matrix"] = Matrix
