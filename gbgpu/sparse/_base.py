"""The three classes: constructors, attributes, conversions, changes in place."""

from math import prod
from typing import Any
from weakref import ref

import numpy as np

import gbgpu as gb
from gbgpu.errors import DeviceError, InvalidValue, fixed, message
from gbgpu.interrupts import imported

from ._arithmetic import Arithmetic
from ._common import array_classes, checked_dtype, class_of, issparse, made, matrix_classes, summing, zeroless
from ._numpy import NumpyProtocols
from ._reduce import Reductions
from ._subscript import Subscripts

# what else SciPy's arrays have -> what to write
_INSTEAD = {
    **{f"to{format}": f"A.to_scipy().to{format}()" for format in ("lil", "dok", "dia", "bsr")},
    **{
        "A": "A.toarray()",
        "H": "A.T",
        "getH": "A.T",
        "getrow": "A[[i]]",
        "getcol": "A[:, [j]]",
        "get_shape": "A.shape",
    },
}


class ReadOnly(np.ndarray):
    """Values as they were read from the devices.

    To change them raises ValueError, which says what to write; what is computed of them is an ordinary array.
    """

    def _check(self) -> None:
        if not self.flags.writeable:
            what = "the data of a sparse array are a read-only copy of what lies on the devices"
            raise ValueError(f"{what}. Hint: A *= 2, or A.data = A.data * 2")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        for one in out or ():
            if isinstance(one, ReadOnly):
                one._check()
        if out is not None:
            options["out"] = tuple(_plain(one) for one in out)
        return getattr(ufunc, method)(*(_plain(x) for x in inputs), **options)

    def copy(self, order: Any = "C") -> Any:
        """An ordinary array with these values."""
        return np.array(self, order=order)

    def __repr__(self) -> str:
        return repr(_plain(self))

    def __reduce__(self) -> Any:
        return _plain(self).__reduce__()


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, ReadOnly) else x


_NAMES = {"csr": "Compressed Sparse Row", "csc": "Compressed Sparse Column", "coo": "COOrdinate"}


class SparseArray(Arithmetic, Reductions, Subscripts, NumpyProtocols):
    """A SciPy-like sparse array whose entries lie on the session's devices, as a gbgpu.Matrix.

    `.data`, `.indices`, `.indptr`, `.row`, `.col`, `.coords` copy from the devices to the host (once; the arrays are
    read-only). Everything else computes where the entries lie, unless its docstring says otherwise.

    Parameters
    ----------
    arg1 : tuple, array or Matrix
        (data, indices, indptr), (data, (row, col)), a shape, anything dense, another sparse array (SciPy's too), or a
        gbgpu.Matrix. Entries are sorted, and duplicates summed: at once in CSR and CSC, when they are first computed
        with in COO.
    shape : tuple of int, optional
        Of one or two dimensions.
    dtype : dtype, optional
        bool, int8 to int64, uint8 to uint64, float32 or float64.
    copy : bool
        Ignored: changes of one array are never seen by another.
    maxprint : int, optional
        Ignored.

    Raises
    ------
    ValueError
        If the dtype is another, an index is out of range, or shapes do not fit.
    """

    _classes = array_classes  # those that results are of
    __array_priority__ = 10.1
    __hash__ = None  # type: ignore[assignment]  # as `==` compares elements

    def __init__(
        self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, *, maxprint: int | None = None
    ):
        if not hasattr(self, "_format"):
            hint = "gbgpu.sparse.csr_array, csc_array, coo_array and the matrices of these formats are"
            raise TypeError(message("a class with a format", type(self).__name__, hint))
        self._built: Any = None  # the entries
        self._given: Any = None  # COO: (row, col, data) as given, perhaps with duplicates
        self._host: Any = None  # what has been read from the devices, and of which content
        dtype = None if dtype is None else checked_dtype(dtype)
        if isinstance(arg1, gb.Matrix) or issparse(arg1):
            self._take_sparse(arg1, shape)
        elif isinstance(arg1, tuple) and _is_shape(arg1):
            self._shape = _checked_shape(arg1)
            self._built = gb.Matrix(np.float64 if dtype is None else dtype, *self._shape2)
        elif isinstance(arg1, tuple):
            self._take_tuple(arg1, shape, dtype)
        else:
            self._take_dense(arg1, shape, dtype)
        if len(self._shape) == 1 and self._classes is matrix_classes:
            if isinstance(arg1, tuple):
                raise ValueError(
                    message("a matrix of two dimensions", f"shape {self._shape}", "csr_array has one, too")
                )
            self._shape = self._shape2
        if len(self._shape) == 1 and self.format == "csc":
            raise ValueError("Cannot convert. CSC format must be 2D. Got 1D")
        if dtype is not None and self.dtype != dtype:
            self._become(self._A.dup(dtype))

    def _made(self, A: Any, format: str, shape: tuple | None = None) -> Any:
        """An array or a matrix, as this one is, over an operand of gbgpu."""
        return made(A, format, shape, self._classes)

    def _wrapped(self, dense: np.ndarray) -> Any:
        """A dense result as SciPy gives it."""
        return dense

    def _line(self, values: np.ndarray, axis: int) -> Any:
        """One value for each column (axis 0) or row (1), as SciPy gives them."""
        return values

    # -- construction

    def _take_sparse(self, x: Any, shape: Any) -> None:
        if isinstance(x, SparseArray):
            self._built, self._given, self._shape = x._built, x._given, x._shape
            if self.format != "coo" and self._given is not None:
                self._built, self._given = self._A, None
        elif isinstance(x, gb.Matrix):
            self._built, self._shape = x, x.shape
        elif x.format in ("csr", "csc") and x.ndim == 2:
            self._shape = x.shape
            self._built = _compressed(_host(x.data), _host(x.indices), _host(x.indptr), x.shape, x.format)
        else:
            x = x.tocoo()
            self._take_triple(_host(x.data), tuple(_host(c) for c in x.coords), x.shape)
        if shape is not None and _checked_shape(shape) != self._shape:
            raise ValueError(f"inconsistent shapes: {self._shape} and {tuple(shape)}")

    def _take_tuple(self, arg: tuple, shape: Any, dtype: Any) -> None:
        if len(arg) in (2, 3) and all(np.ndim(part) == 0 for part in arg):
            raise ValueError(message("a shape of one or two ints, or a tuple of arrays", repr(arg)))
        if len(arg) == 2:
            data, coords = arg
            self._take_triple(np.atleast_1d(np.asarray(data, dtype)), tuple(coords), shape)
        elif len(arg) == 3 and self.format != "coo":
            data, indices, indptr = np.asarray(arg[0], dtype), np.asarray(arg[1]), np.asarray(arg[2])
            self._shape = _checked_shape(_compressed_shape(indices, indptr, self.format) if shape is None else shape)
            self._built = _compressed(data, indices, indptr, self._shape2, self.format)
        else:
            raise ValueError(f"unrecognized {self.format}_array constructor input: a tuple of {len(arg)}")

    def _take_triple(self, data: np.ndarray, coords: tuple, shape: Any) -> None:
        coords = tuple(np.atleast_1d(np.asarray(c)) for c in coords)
        if shape is None:
            if any(len(c) == 0 for c in coords):
                raise ValueError("cannot infer dimensions from zero sized index arrays")
            shape = tuple(int(c.max()) + 1 for c in coords)
        self._shape = _checked_shape(shape)
        data = data.astype(checked_dtype(data.dtype), copy=False)
        if len(coords) != len(self._shape) or any(len(c) != len(data) for c in coords):
            raise ValueError("row, column, and data array must all be the same length")
        coords = tuple(map(_whole, coords))
        for axis, (c, n) in enumerate(zip(coords, self._shape, strict=True)):
            _in_range(c, n, axis)
        row = coords[0] if len(coords) == 2 else np.zeros(len(data), np.int64)
        if self.format == "coo":
            self._given = row.copy(), coords[-1].copy(), data.copy()
        else:
            self._built = summed(row, coords[-1], data, self._shape2)

    def _take_dense(self, arg: Any, shape: Any, dtype: Any) -> None:
        array = np.asarray(arg, dtype)
        array = np.atleast_2d(array) if self._classes is matrix_classes else array
        if array.ndim not in (1, 2):
            raise ValueError(message("an array of 1 or 2 dimensions", f"{array.ndim}"))
        if shape is not None and _checked_shape(shape) != array.shape:
            raise ValueError(f"inconsistent shapes: {array.shape} and {tuple(shape)}")
        checked_dtype(array.dtype)
        self._shape = _checked_shape(array.shape)
        where = np.nonzero(np.atleast_2d(array))
        self._built = summed(where[0], where[1], np.atleast_2d(array)[where], self._shape2)

    # -- the entries

    @property
    def _shape2(self) -> tuple[int, int]:
        return self._shape if len(self._shape) == 2 else (1, self._shape[0])

    @property
    def _A(self) -> Any:
        """The entries as an operand of gbgpu, duplicates summed."""
        if self._built is None:
            row, col, data = self._given
            self._built = summed(row, col, data, self._shape2)
        return self._built

    def _in(self, dtype: Any) -> Any:
        """The same in another type, in which duplicates are summed if it holds all of this one."""
        if dtype == self.dtype:
            return self._A
        if self._given is not None and np.can_cast(self.dtype, dtype, "safe"):
            row, col, data = self._given
            return summed(row, col, data.astype(dtype), self._shape2)
        return self._A.dup(dtype)

    def _become(self, A: Any) -> None:
        """Take other entries. The operands that were in use stay as they are: others may share them."""
        self._built, self._given, self._host = A, None, None

    @property
    def matrix(self) -> Any:
        """The entries as a gbgpu.Matrix, without a copy (of a transpose: carried out).

        A one-dimensional array is one row. To change it, take `.matrix.dup()`: arrays may share one Matrix.
        """
        return self._A._materialized()

    # -- attributes

    shape = fixed("shape", "A.reshape(shape) makes another array, A.resize(shape) changes this one")
    format = fixed("format", "A.asformat(format) makes another array")
    ndim = property(lambda self: len(self._shape))
    real = property(lambda self: self.copy(), doc="This array: there are no complex ones.")
    imag = property(lambda self: self._zeros(), doc="Zeros, as many as there are entries.")
    T = property(lambda self: self.transpose())

    @property
    def dtype(self) -> np.dtype:
        """The NumPy dtype of the values."""
        return self._given[2].dtype if self._built is None else np.dtype(self._built.dtype.np_type)

    @property
    def nnz(self) -> int:
        """Number of stored entries (with zeros, and duplicates of a COO array that was given them)."""
        return self._A.nvals if self._given is None else len(self._given[2])

    size = nnz

    def getnnz(self, axis: int | None = None) -> Any:
        """The number of stored entries, of each column (axis 0) or row (axis 1) if an axis is given."""
        return self.nnz if axis is None else self._counts(self._A, axis)

    @property
    def _index_dtype(self) -> Any:
        return np.int32 if max(*self._shape2, self.nnz) < 2**31 else np.int64

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(indptr, indices, data), or of COO (row, col, data), on the host."""
        content = None if self._given is not None else _content(self._A)
        if self._host is None or self._host[0]() is not content:  # somebody may have written to a Matrix that it shares
            parts = self._given if self._given is not None else self._read()
            kept = [np.array(x, self._index_dtype if k < 2 else None) for k, x in enumerate(parts)]
            for x in kept:
                x.flags.writeable = False
            self._host = (lambda: None) if content is None else ref(content), tuple(kept)
        arrays: tuple[np.ndarray, np.ndarray, np.ndarray] = self._host[1]
        return arrays

    def _read(self) -> tuple:
        raise NotImplementedError

    def _rebuilt(self, data: np.ndarray) -> Any:
        raise NotImplementedError

    @property
    def data(self) -> np.ndarray:
        """The values, read to the host. Assign an array of this length to change them; the one read is read-only."""
        return self._arrays()[2].view(ReadOnly)

    @data.setter
    def data(self, values: Any) -> None:
        data = np.asarray(values)
        checked_dtype(data.dtype)
        if data.shape != (self.nnz,):
            raise ValueError(message(f"{self.nnz} values, one for each entry", f"shape {data.shape}"))
        self._become(self._rebuilt(_plain(data)))

    @property
    def _coords(self) -> tuple:
        """The coordinates of the entries, read to the host: (row, col), or (col,) of one dimension."""
        row, col, _ = self.tocoo()._arrays()
        return (row, col) if self.ndim == 2 else (col,)

    @property
    def has_canonical_format(self) -> bool:
        """Whether entries are sorted, without duplicates; only a COO array as it was given may not be."""
        return self._given is None

    @property
    def has_sorted_indices(self) -> bool:
        """True: entries are always sorted."""
        return True

    # -- conversions

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in a format.

        Parameters
        ----------
        format : str or None
            "csr", "csc" or "coo"; None: as it is.
        copy : bool
            Whether to copy an array that has the format.

        Returns
        -------
        sparse array
            Of the same kind.

        Raises
        ------
        ValueError
            If the format is another.
        """
        if format is None or format == self.format:
            return self.copy() if copy else self
        return class_of(format, self._classes)(self)

    def tocsr(self, copy: bool = False) -> Any:
        """The array in CSR."""
        return self.asformat("csr", copy)

    def tocsc(self, copy: bool = False) -> Any:
        """The array in CSC."""
        return self.asformat("csc", copy)

    def tocoo(self, copy: bool = False) -> Any:
        """The array in COO."""
        return self.asformat("coo", copy)

    def toarray(self, order: Any = None, out: Any = None) -> np.ndarray:
        """The dense NumPy array.

        Parameters
        ----------
        order : str, optional
            "C" or "F".
        out : numpy.ndarray, optional
            Where to write, of this shape and dtype.

        Returns
        -------
        numpy.ndarray
            Of this shape and dtype.

        Raises
        ------
        ValueError
            If `out` does not fit, or is given with `order`.
        OutOfMemory
            If the host has no room for it.
        """
        if out is not None and (order is not None or out.shape != self._shape or out.dtype != self.dtype):
            raise ValueError(message(f"out of {self.dtype} and shape {self._shape}, and no order", repr(out)[:60]))
        dense = self._A.to_dense(0, self.dtype).reshape(self._shape)
        if out is not None:
            out[...] = dense
            return out
        return np.asarray(dense, order=order)

    def todense(self, order: Any = None, out: Any = None) -> Any:
        """The dense NumPy array; of a `*_matrix` a numpy.matrix."""
        return self._wrapped(self.toarray(order, out))

    def to_scipy(self) -> Any:
        """The SciPy array of the same format and index dtype."""
        first, second, data = (x.copy() for x in self._arrays())
        cls = getattr(imported("scipy.sparse"), type(self).__name__)
        if self.format == "coo":
            return cls((data, (first, second) if self.ndim == 2 else (second,)), shape=self._shape)
        return cls((data, second, first), shape=self._shape)

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """The array with values of another type.

        Floats too large for an integer type become its largest value; NumPy leaves that undefined.

        Parameters
        ----------
        dtype : dtype
            The type.
        casting : str
            NumPy's rule of which casts are allowed.
        copy : bool
            Whether to copy an array that has the type.

        Returns
        -------
        sparse array
            Of this shape and format.

        Raises
        ------
        TypeError
            If `casting` does not allow the cast.
        """
        dtype = checked_dtype(dtype)
        if not np.can_cast(self.dtype, dtype, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {dtype!r} according to the rule {casting!r}"
            )
        if dtype == self.dtype:
            return self.copy() if copy else self
        return self._same(self._in(dtype))

    def copy(self) -> Any:
        """Another array with these entries; changes of one are not seen by the other."""
        return type(self)(self)

    def conj(self, copy: bool = True) -> Any:
        """The array, as there are no complex numbers."""
        return self.copy() if copy else self

    conjugate = conj

    def _same(self, A: Any, format: str | None = None) -> Any:
        """An array of this format and shape over other entries."""
        return self._made(A, format or self.format, self._shape)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transpose: of CSR a CSC array and the other way round. Nothing moves."""
        if self.format == "coo" and axes is not None and tuple(axes) in ((0, 1), (-2, -1)) and self.ndim == 2:
            return self.copy() if copy else self
        if axes is not None and tuple(axes) not in ((1, 0), (-1, -2)) and self.ndim == 2:
            raise ValueError("Sparse arrays do not support an 'axes' parameter other than a swap of both axes")
        if self.ndim == 1:
            return self.copy() if copy else self
        turned = {"csr": "csc", "csc": "csr", "coo": "coo"}[self.format]
        if self._given is not None:
            row, col, data = self._given
            return self._classes["coo"]((data, (col, row)), shape=self._shape[::-1])
        return self._made(self._A.T, turned)

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """A COO array of another shape (of the same format, if the shape does not change), computed on the host.

        Parameters
        ----------
        *shape : int or tuple
            One size may be -1.
        order : str
            "C" or "F": how places are counted.
        copy : bool
            Whether to copy if the shape does not change.

        Returns
        -------
        sparse array
            Of the new shape.

        Raises
        ------
        ValueError
            If the shape has another number of elements.
        """
        new = _checked_shape(_flexible(shape, prod(self._shape)))
        if new == self._shape:
            return self.copy() if copy else self
        if prod(new) != prod(self._shape):
            raise ValueError(f"cannot reshape array of size {prod(self._shape)} into shape {new}")
        flat = np.ravel_multi_index([c.astype(np.int64) for c in self._coords], self._shape, order=order)  # type: ignore
        data = self.tocoo()._arrays()[2]
        return self._classes["coo"]((data, np.unravel_index(flat, new, order=order)), shape=new)  # type: ignore

    # -- in place

    def resize(self, *shape: Any) -> None:
        """Change the shape in place; entries outside it are dropped."""
        new = _checked_shape(_flexible(shape, None))
        if len(new) != self.ndim:
            raise NotImplementedError("resize keeps the number of dimensions. Hint: reshape")
        A = self._A.dup()
        A.resize(*(new if len(new) == 2 else (1, *new)))
        self._become(A)
        self._shape = new

    def eliminate_zeros(self) -> None:
        """Drop the zeros that are stored."""
        self._become(zeroless(self._A))

    def sum_duplicates(self) -> None:
        """Sum duplicates (which only a COO array as it was given has)."""
        self._become(self._A)

    def sort_indices(self) -> None:
        """Nothing to do: indices are always sorted."""

    def sorted_indices(self) -> Any:
        """A copy: indices are always sorted."""
        return self.copy()

    def prune(self) -> None:
        """Nothing to do: there is no unused space."""

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the k'th diagonal in place.

        Parameters
        ----------
        values : scalar or array
            One value, or an array, as far as it reaches.
        k : int
            Which diagonal: 0 the main one, above it positive.

        Raises
        ------
        ValueError
            If the diagonal is outside the array.
        """
        nrows, ncols = self._two_dimensional()
        if (k > 0 and k >= ncols) or (k < 0 and -k >= nrows):
            raise ValueError("k exceeds array dimensions")
        size = min(nrows + min(k, 0), ncols - max(k, 0))
        values = np.asarray(values).astype(self.dtype)
        values = np.full(size, values) if values.ndim == 0 else values[:size]
        A = self._A.dup()
        A.setdiag(gb.Vector.from_coo(np.arange(len(values)), values, size=size), k, accum="second")
        self._become(A)

    def _two_dimensional(self) -> tuple[int, int]:
        if self.ndim != 2:
            raise ValueError(message("a two-dimensional array", f"shape {self._shape}"))
        return self._shape2

    # -- as text, as truth

    def __repr__(self) -> str:
        try:
            held = f"with {self.nnz} stored elements and shape {self._shape}"
        except (InvalidValue, DeviceError):
            held = f"of shape {self._shape}, of a session that has ended: make it again"
        return f"<{_NAMES[self.format]} sparse {type(self).__name__[4:]} of dtype '{self.dtype}'\n\t{held}>"

    def __str__(self) -> str:
        text = repr(self)
        try:
            rows = [c.tolist() for c in self._coords]
        except (InvalidValue, DeviceError):
            return text
        lines = [
            f"  {at}\t{value}" for at, value in zip(zip(*rows, strict=True), self.tocoo()._arrays()[2], strict=True)
        ]
        if len(lines) > 50:
            lines = [*lines[:25], "  :\t:", *lines[-25:]]
        return "\n".join([text, "  Coords\tValues", *lines]) if lines else text

    def __bool__(self) -> bool:
        if self._shape == (1, 1):
            return self.nnz != 0
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Hint: .nnz, .sum(); "
            "(A != B).nnz == 0 for equal arrays"
        )

    def __len__(self) -> int:
        raise TypeError("sparse array length is ambiguous; use .nnz or .shape[0]")

    def __iter__(self) -> Any:
        rows = (self[i] for i in range(self._shape[0]))
        return (row.tocsr() for row in rows) if self.ndim == 2 and self.format != "coo" else rows

    def __reduce__(self) -> Any:
        data = self.tocoo()
        return _restored, (type(self), data._arrays()[2], data._coords, self._shape)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        hint = _INSTEAD.get(name, "A.to_scipy() has all that SciPy's arrays have")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. Hint: {hint}")


# -- checks


def _host(x: Any) -> np.ndarray:
    return x.get() if hasattr(x, "__cuda_array_interface__") else np.asarray(x)


def _is_shape(arg: tuple) -> bool:
    return len(arg) in (1, 2) and all(isinstance(n, (int, np.integer)) for n in arg)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    shape = tuple(int(n) for n in shape) if np.iterable(shape) else (int(shape),)
    if len(shape) not in (1, 2) or min(shape) < 0:
        raise ValueError(message("a shape of 1 or 2 dimensions, none negative", shape))
    return shape


def _flexible(arguments: tuple, size: int | None) -> tuple:
    """The shape in (n, m) or ((n, m),); -1 for what follows from the size."""
    shape = arguments[0] if len(arguments) == 1 and np.iterable(arguments[0]) else arguments
    shape = tuple(int(n) for n in shape)
    if size is None or -1 not in shape:
        return shape
    known = prod(n for n in shape if n != -1)
    if shape.count(-1) > 1 or known == 0 or size % known:
        raise ValueError(f"cannot reshape array of size {size} into shape {shape}")
    return tuple(size // known if n == -1 else n for n in shape)


def _whole(c: np.ndarray) -> np.ndarray:
    """Indices that are given as floats, as SciPy takes them, if they are whole numbers."""
    return c.astype(np.int64) if c.dtype.kind == "f" and c.size and np.all(c == np.trunc(c)) else c


def _in_range(c: np.ndarray, n: int, axis: int) -> None:
    if c.ndim != 1 or (c.size and c.dtype.kind not in "iu"):
        raise ValueError(message("one-dimensional arrays of integers as indices", f"{c.dtype} of shape {c.shape}"))
    if c.size and int(c.max()) >= n:
        raise ValueError(f"axis {axis} index {c.max()} exceeds matrix dimension {n}")
    if c.size and int(c.min()) < 0:
        raise ValueError(f"negative axis {axis} index: {c.min()}")


def _content(A: Any) -> Any:
    """What a Matrix, or the transpose of one, holds now: another object after each change."""
    return getattr(A, "matrix", A)._store


def summed(row: Any, col: Any, data: np.ndarray, shape: tuple[int, int]) -> Any:
    """The Matrix of entries, duplicates summed."""
    row, col = (np.asarray(x, np.int64) for x in (row, col))
    return gb.Matrix.from_coo(row, col, data, nrows=shape[0], ncols=shape[1], dup_op=summing(data.dtype))


def _compressed_shape(indices: np.ndarray, indptr: np.ndarray, format: str) -> tuple[int, int]:
    if indices.size == 0:
        raise ValueError("unable to infer matrix dimensions")
    major, minor = len(indptr) - 1, int(indices.max()) + 1
    return (major, minor) if format == "csr" else (minor, major)


def _compressed(data: Any, indices: Any, indptr: Any, shape: tuple, format: str) -> Any:
    """The operand of compressed arrays in any order; duplicates are summed."""
    major, minor = shape if format == "csr" else shape[::-1]
    if indptr.shape != (major + 1,) or (indptr.size and indptr[0] != 0):
        raise ValueError(f"index pointer should start with 0 and have {major + 1} elements, came {indptr.shape}")
    if indices.shape != data.shape or int(indptr[-1]) > len(data) or np.any(np.diff(indptr) < 0):
        raise ValueError("indices and data should have one length, and the index pointer ascend to at most that")
    checked_dtype(data.dtype)
    indices, data = indices[: indptr[-1]], data[: indptr[-1]]
    _in_range(indices, minor, int(format == "csr"))
    rows = np.repeat(np.arange(major), np.diff(indptr))
    if np.all((np.diff(rows) > 0) | (np.diff(indices.astype(np.int64)) > 0)):
        A = gb.Matrix.from_csr(indptr, indices, data, ncols=minor)
    else:
        A = summed(rows, indices, data, (major, minor))
    return A if format == "csr" else A.T


def _restored(cls: Any, data: np.ndarray, coords: tuple, shape: tuple) -> Any:
    return cls(cls._classes["coo"]((data, coords), shape=shape))
