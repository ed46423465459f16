"""Updates `output(mask, accum, replace)[place] << value`, and what a subscript names.

Assignments of parts are lowered onto statements here.
"""

from typing import Any

import numpy as np

from ..errors import DimensionMismatch, message
from .arrays import numbers
from .expr import Expression, Operand, Statement, _kinds, is_tensor, new_like
from .index import Index, is_integer
from .masks import Mask, checked_mask, fitting, one_session, replace
from .typed import accumulator

# of a product; of the result before it is written; of a product of matrices
_HINTS = {
    "direction": ("push", "pull"),
    "form": ("list", "bitmap"),
    "method": ("dot", "rows", "hash", "dense", "sort"),
}


class Place:
    """What a subscript names.

    `index` is as a Statement takes it; `shape` is without the dimensions that an int drops, `full` with them (1 each);
    `ints` has the int or None of each dimension.
    """

    __slots__ = ("parts", "ints", "shape", "full", "ndim")

    @property
    def given(self) -> list[Any]:
        """The ids of each dimension as they were given."""
        return [part.given for part in self.parts]

    ints: tuple[int | None, ...]
    parts: tuple[Index, ...]
    full: tuple[int, ...]
    shape: tuple[int, ...]

    def __init__(self, handle: Any, key: Any):
        self.ndim = handle.ndim
        keys = (slice(None),) * self.ndim if key is Ellipsis else _keys(key, self.ndim)
        if self.ndim == 1:  # in less time than loops take
            (key,), (n,) = keys, handle.shape
            i = _int(key, n)
            part = _part(key, i, n)
            self.ints, self.parts, self.full = (i,), (part,), (part.size,)
            self.shape = self.full if i is None else ()
            return
        self.ints = tuple(_int(k, n) for k, n in zip(keys, handle.shape, strict=True))
        self.parts = tuple(_part(*each) for each in zip(keys, self.ints, handle.shape, strict=True))
        self.full = tuple(part.size for part in self.parts)
        self.shape = tuple(n for n, i in zip(self.full, self.ints, strict=True) if i is None)

    @property
    def index(self) -> Any:
        """The part as a Statement takes it; None for everything."""
        if self.ndim == 1:
            return None if self.parts[0].is_all else self.parts[0]
        return None if all(part.is_all for part in self.parts) else self.parts

    @property
    def line(self) -> int | None:
        """The dimension that an int drops from a matrix (0: a row, 1: a column), or None."""
        return None if self.ndim < 2 or len(self.shape) != 1 else int(self.ints[1] is not None)

    def __repr__(self) -> str:
        return ", ".join(repr(p) if i is None else str(i) for p, i in zip(self.parts, self.ints, strict=True))


def _keys(key: Any, ndim: int) -> tuple:
    if ndim == 1:
        if isinstance(key, tuple):
            raise TypeError("Index for a Vector cannot be a tuple. Hint: v[i], v[a:b], v[[1, 2]]")
        return (key,)
    if not isinstance(key, tuple) or len(key) != 2:
        raise TypeError("Index for a Matrix must be a 2-tuple. Hint: A[i, :], A[:, j], A[I, J]")
    return key


def position(key: Any, size: int) -> int:
    """A subscript as 0 <= i < size; negative ones count from the end. Raises IndexError as Python does."""
    index = _int(key, size)
    if index is None:
        raise TypeError(message("an int index", type(key).__name__))
    return index


def _int(key: Any, size: int) -> int | None:
    """An int (or a Scalar of an integer type) as a position, None for other subscripts."""
    if type(key) is slice:
        return None
    if type(key) is not int:
        if isinstance(key, Operand) and key.ndim == 0:
            key = key._computed().__index__()
        if not is_integer(key):
            return None
    index = int(key)
    if not -size <= index < size:
        raise IndexError(f"Index out of range: index={index}, size={size}")
    return index + size if index < 0 else index


def _part(key: Any, i: int | None, n: int) -> Index:
    """What a subscript names, of which `_int` has found out whether it is an int."""
    if i is not None:
        return Index(n, ids=np.array([i]))
    return Index.of(key if type(key) is slice else _checked(key), n)


def _checked(key: Any) -> Any:
    """A subscript other than an int that Index understands."""
    if isinstance(key, Mask) or (is_tensor(key) and key.ndim == 2):
        raise TypeError(
            f"Invalid type for index: {type(key).__name__}. Hint: x.dup(mask=m) keeps what a mask lets through, "
            "x(mask=m) << value assigns there"
        )
    if is_tensor(key):
        return key._computed()
    if isinstance(key, tuple):
        raise TypeError("An index in a position cannot be a tuple. Hint: a slice, a list or an int")
    listed = isinstance(key, slice) or (hasattr(key, "__len__") and not isinstance(key, str))
    return key if listed else _listed(key)


def _listed(key: Any) -> Any:
    if isinstance(key, (str, float, bool, np.generic)) or not hasattr(key, "__iter__"):
        raise TypeError(message("an int, a slice, or a list of ints as an index", type(key).__name__))
    return list(key)


# -- reading a part


class Part(Expression):
    """`v[I]`, `A[I, J]`, `A[i, :]`: read by `.new()` or as an operand, assigned to by `<<` or `x[I](mask) << ...`."""

    __slots__ = ("parent", "place")
    parent: Any
    place: Any

    @classmethod
    def of(cls, x: Any, place: Place) -> "Part":
        """The expression of the part of `x` that is named."""
        part = _line_of(cls, x, place) if place.line is not None else _block_of(cls, x, place)
        part.parent, part.place = x, place
        return part

    def __call__(self, *arguments: Any, **keywords: Any) -> "Updater":
        """What an assignment to this part is told: `x[I](mask, accum) << value`."""
        updater = Updater(_assignable(self.parent), arguments, keywords)
        updater.place, updater.within = self.place, updater.mask is not None
        return updater

    def __lshift__(self, value: Any) -> Statement:
        updater = Updater(_assignable(self.parent))
        updater.place = self.place
        return updater << value

    update = __lshift__


def _assignable(x: Any) -> Any:
    if not hasattr(x, "__setitem__"):
        raise TypeError(f"{type(x).__name__!r} object does not support item assignment. Hint: assign to the object")
    return x


def _block_of(cls: Any, x: Any, place: Place) -> Part:
    index = place.index
    return cls("copy" if index is None else "extract", None, x, None, x.dtype, place.shape, index)


def _line_of(cls: Any, x: Any, place: Place) -> Part:
    return cls("line", None, x, None, x.dtype, place.shape, place)


def reading(x: Any, key: Any) -> Any:
    """`x[key]`."""
    place = Place(x, key)
    return Part.of(x, place) if place.shape else _kinds["element"](x, place.ints)


# -- writing


class Updater:
    """An output with its mask, accumulator and hints, waiting for `<<`: `output(mask, accum, replace, **hints)`.

    A subscript narrows it to a part of the output. `within`: the mask has the shape of the part, `C[I, J](mask) <<
    ...`.
    """

    __slots__ = ("output", "mask", "accum", "replace", "hints", "place", "within")

    def __init__(self, output: Any, arguments: tuple = (), keywords: dict | None = None):
        self.output, self.replace = output, False
        self.mask: Mask | None = None
        self.accum: Any = None
        self.place: Place | None = None
        self.within = False
        self.hints: dict = {}
        for argument in arguments:
            self._take(argument)
        for key, value in (keywords or {}).items():
            self._keyword(key, value)
        if self.replace and self.mask is None:
            raise TypeError(
                "'replace' may only be given with a mask. Hint: w(mask, replace) << ...; w.clear() empties w"
            )

    parent = property(lambda self: self.output)

    def _take(self, argument: Any) -> None:
        if argument is replace:
            self.replace = True
        elif isinstance(argument, (Mask, Operand)):
            self._masked(argument)
        elif self.accum is None:
            self.accum = accumulator(argument, self.output.dtype)
        else:
            raise TypeError("Got multiple values for argument 'accum'")

    def _masked(self, mask: Any) -> None:
        if self.mask is not None:
            raise TypeError("Got multiple values for argument 'mask'")
        if self.output.ndim == 0:
            raise TypeError("Mask not allowed for Scalars. Hint: s(accum) << ...")
        self.mask = checked_mask(mask)

    def _keyword(self, key: str, value: Any) -> None:
        if key == "replace":
            self.replace = bool(value)
        elif key in ("mask", "accum"):
            if value is not None:
                if key == "mask":
                    self._masked(value)
                elif self.accum is not None:
                    raise TypeError("Got multiple values for argument 'accum'")
                else:
                    self.accum = accumulator(value, self.output.dtype)
        elif key not in _HINTS:
            raise TypeError(
                message(
                    f"a hint among {', '.join(_HINTS)}", repr(key), "mask, accum and replace are the other keywords"
                )
            )
        else:
            if value not in _HINTS[key]:
                raise ValueError(message(f"{key} among {', '.join(_HINTS[key])}", repr(value)))
            self.hints[key] = value

    def __getitem__(self, key: Any) -> "Updater":
        if self.output.ndim == 0 or self.place is not None:
            raise TypeError("Indexing not supported here. Hint: w(mask)[I] << ... or w[I](mask) << ...")
        narrowed = Updater(self.output)
        narrowed.mask, narrowed.accum, narrowed.replace = self.mask, self.accum, self.replace
        narrowed.hints, narrowed.place = self.hints, Place(self.output, key)
        return narrowed

    def __setitem__(self, key: Any, value: Any) -> None:
        self[key] << value

    def __delitem__(self, key: Any) -> None:
        narrowed = self[key]
        narrowed << new_like((), self.output.dtype)

    def __lshift__(self, value: Any) -> Statement:
        output = self.output
        if self.place is not None:
            return assign(self, value)
        if self.mask is not None:
            fitting(self.mask, output.shape, output._session)
        return output._session.run(
            Statement(output, self.mask, self.accum, self.replace, output._source(value), None, self.hints)
        )

    update = __lshift__

    def __eq__(self, other: object) -> bool:
        raise TypeError("__eq__ not defined for an updater. Hint: w(mask) << expression")

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("an updater has no truth value. Hint: w(mask) << expression")


def assign(updater: Updater, value: Any) -> Statement:
    """Run `C(mask)[I, J] << value`, which is one statement if the mask has the output's shape.

    What has a mask of another shape is computed beside the output, as a vector or a matrix of its own, and then
    assigned: a mask of the part (`within`), and a vector as the mask of one row or column.
    """
    output, place, mask = updater.output, updater.place, updater.mask
    assert place is not None
    if updater.within:
        return _assign_within(updater, output, place, value)
    if mask is not None and mask.parent.ndim < output.ndim:
        return _assign_line(updater, output, place, value)
    if mask is not None:
        fitting(mask, output.shape, output._session)
    expr = _placed(output, value, place, _taken(updater))
    return output._session.run(
        Statement(output, mask, updater.accum, updater.replace, expr, place.index, updater.hints)
    )


def _told(updater: Updater, output: Any) -> Updater:
    """The same mask, accumulator and replace for another output."""
    other = Updater(output)
    other.mask, other.replace, other.hints = updater.mask, updater.replace, updater.hints
    other.accum = updater.accum
    return other


def _assign_within(updater: Updater, output: Any, place: Place, value: Any) -> Statement:
    if not place.shape:
        raise TypeError("Single element assign does not accept a submask. Hint: C(mask)[i, j] << value")
    if updater.mask is not None and updater.mask.parent.ndim != len(place.shape):
        raise TypeError("Indices for subassign imply a submask of the shape of the part. Hint: C(mask)[I, J] << value")
    part = Part.of(output, place).new()
    _told(updater, part) << _fitted(value, place.shape, _taken(updater))
    return Part.of(output, place) << part


def _assign_line(updater: Updater, output: Any, place: Place, value: Any) -> Statement:
    """`C(m)[i, J] << v`: m masks row i, and nothing else is touched."""
    if place.line is None:
        what = "Matrix assignment" if len(place.shape) == 2 else "single element assignment"
        raise TypeError(f"Unable to use Vector mask on {what} to a Matrix. Hint: C(v.S)[i, :] << value")
    ints: list = [slice(None), slice(None)]
    ints[place.line] = place.ints[place.line]
    whole = Place(output, tuple(ints))
    line = Part.of(output, whole).new()
    _told(updater, line)[place.parts[1 - place.line]] << value
    return Part.of(output, whole) << line


def _taken(updater: Updater) -> Any:
    """The type that values of a list are taken in."""
    return updater.output.dtype if updater.accum is None else updater.accum.dtypes[-1]


def _fitted(value: Any, shape: tuple, dtype: Any) -> Any:
    """An array, or a list of what `dtype` holds, as a Vector or Matrix of this shape; anything else as it is."""
    if isinstance(value, (int, float, Operand, str, np.generic)) or not hasattr(value, "__len__"):
        return value
    array = numbers(value, None if hasattr(value, "__array__") else dtype)
    if array.shape != shape or not shape:
        raise ValueError(message(f"a value array of shape {shape}: shape mismatch", f"{array.shape}"))
    return _kinds["vector" if len(shape) == 1 else "matrix"].from_dense(array)


def _placed(output: Any, value: Any, place: Place, dtype: Any) -> Expression:
    """The right-hand side for a part, with dropped dimensions back in place."""
    value = _fitted(value, place.shape, dtype)
    if not is_tensor(value):
        return output._source(value, place.full)
    if not place.shape:
        raise TypeError(message("a scalar to assign to one element", type(value).__name__))
    if value.ndim != len(place.shape):
        raise TypeError(message(f"a scalar or {('a Vector', 'a Matrix')[len(place.shape) - 1]}", type(value).__name__))
    if place.line is None:
        return output._source(value, place.full)
    if value.shape != place.shape:
        raise DimensionMismatch(message(f"a right-hand side of shape {place.shape}", f"{value.shape}"))
    v = value._node()
    one_session(v, output._session)
    return Expression("row" if place.line == 0 else "column", None, v, None, v.dtype, place.full)
