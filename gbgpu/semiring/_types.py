"""The element types, looked up and unified as python-graphblas does. Each type is one object: compare with `is`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbgpu.errors import NotImplementedException, message


class DataType:
    """One element type. Singletons: BOOL, INT8 to INT64, UINT8 to UINT64, FP32, FP64.

    `name` "INT64"; `np_type` its NumPy dtype; `c_type` its name in C++; `kind` "b", "i", "u" or "f"; `bits` its width.
    Hashes and compares by identity; `==` also accepts what `lookup_dtype` understands ("INT64", np.int64, int).
    """

    __slots__ = ("name", "np_type", "c_type", "kind", "bits")
    _is_udt = False  # by this python-graphblas tells the types that users make
    name: str
    np_type: np.dtype
    c_type: str
    kind: str
    bits: int

    def __init__(self, name: str, np_type: type, c_type: str) -> None:
        set_once = object.__setattr__
        set_once(self, "name", name)
        set_once(self, "np_type", np.dtype(np_type))
        set_once(self, "c_type", c_type)
        set_once(self, "kind", np.dtype(np_type).kind)
        set_once(self, "bits", np.dtype(np_type).itemsize * 8)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self.name} is one shared object and can't be changed")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or type(other) is DataType:
            return False
        try:
            return lookup_dtype(other) is self
        except (TypeError, ValueError, NotImplementedException):
            return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return lookup_dtype, (self.name,)

    def __copy__(self) -> DataType:
        return self

    def __deepcopy__(self, memo: dict) -> DataType:
        return self


BOOL = DataType("BOOL", np.bool_, "bool")
INT8 = DataType("INT8", np.int8, "signed char")
INT16 = DataType("INT16", np.int16, "short")
INT32 = DataType("INT32", np.int32, "int")
INT64 = DataType("INT64", np.int64, "long long")
UINT8 = DataType("UINT8", np.uint8, "unsigned char")
UINT16 = DataType("UINT16", np.uint16, "unsigned short")
UINT32 = DataType("UINT32", np.uint32, "unsigned int")
UINT64 = DataType("UINT64", np.uint64, "unsigned long long")
FP32 = DataType("FP32", np.float32, "float")
FP64 = DataType("FP64", np.float64, "double")

SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = (FP32, FP64)
NUMBERS = (*INTEGERS, *FLOATS)
SUPPORTED = (BOOL, *NUMBERS)
_BOUNDS = {dtype: (int(np.iinfo(dtype.np_type).min), int(np.iinfo(dtype.np_type).max)) for dtype in INTEGERS}
_BY_NP = {dtype.np_type: dtype for dtype in SUPPORTED}
_BY_NAME = {dtype.name: dtype for dtype in SUPPORTED}
_FOUND: dict[object, DataType] = {bool: BOOL, int: INT64, float: FP64, "int": INT64, "float": FP64, "bool": BOOL}
_NAMES = ", ".join(dtype.name for dtype in SUPPORTED)


def lookup_dtype(key: object) -> DataType:
    """The DataType for what a user may pass.

    Parameters
    ----------
    key : object
        A DataType, NumPy dtype or scalar type, `bool`, `int`, `float`, or a string ("INT64", "i8"). The order of bytes
        does not matter: arrays are converted.

    Returns
    -------
    DataType
        One of the eleven.

    Raises
    ------
    NotImplementedException
        If it is a real type that gbgpu does not have yet.
    TypeError
        If `key` is None or an array.
    ValueError
        If it is anything else.
    """
    if type(key) is DataType:
        return key
    try:
        return _FOUND[key]
    except (KeyError, TypeError):
        dtype = _search(key)
    if isinstance(key, (str, type, np.dtype)):
        _FOUND[key] = dtype
    return dtype


def _search(key: object) -> DataType:
    if isinstance(key, str) and (name := key.upper().removeprefix("GRB_")) in _BY_NAME:
        return _BY_NAME[name]
    shape = getattr(key, "shape", None)
    if isinstance(shape, tuple) and shape and not isinstance(key, np.dtype):
        hint = "Matrix.from_scipy_sparse, from_dense and from_coo make objects of others; x.dup() copies"
        raise TypeError(message("a dtype", type(key).__name__, hint))
    try:
        np_type = np.dtype(key.lower() if isinstance(key, str) else key)  # type: ignore[call-overload]
    except TypeError:
        np_type = None
    if key is None or np_type is None or np_type.kind == "O":
        raise _unknown(key)
    np_type = np_type.newbyteorder("=")
    if np_type not in _BY_NP:
        raise NotImplementedException(f"dtype {np_type} isn't supported yet; supported are {_NAMES}")
    return _BY_NP[np_type]


def _unknown(key: object) -> Exception:
    if isinstance(key, str) and key.upper() in ("FC32", "FC64"):
        return NotImplementedException(f"dtype {key.upper()} isn't supported yet; supported are {_NAMES}")
    expected = f"expected one of {_NAMES}, or their NumPy names"
    kind = TypeError if key is None else ValueError
    return kind(f"Unknown dtype: {key!r} of type {type(key).__name__}; {expected}")


def types_alone(key: object) -> bool:
    """Whether a key of operators names types, one or a pair."""
    try:
        return all(lookup_dtype(part) for part in (key if isinstance(key, tuple) else (key,)))
    except (TypeError, ValueError, NotImplementedException):
        return False


def unify(type1: object, type2: object, *, is_left_scalar: bool = False, is_right_scalar: bool = False) -> DataType:
    """The type that holds both, by NumPy's promotion.

    Parameters
    ----------
    type1, type2 : dtype
        `unify(FP32, INT32)` is FP64.
    is_left_scalar, is_right_scalar : bool
        Ignored: scalars promote like arrays.

    Returns
    -------
    DataType
        One of the eleven.
    """
    first, second = lookup_dtype(type1), lookup_dtype(type2)
    if first is second:
        return first
    return _BY_NP[np.promote_types(first.np_type, second.np_type)]


def of_value(value: object) -> DataType:
    """The type of one scalar: `bool` is BOOL, `int` INT64, `float` FP64, a NumPy scalar its own.

    Raises TypeError for anything else, OverflowError for an int outside INT64.
    """
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(message("an int that fits INT64", value, "np.uint64(value) goes up to 2**64 - 1"))
        return INT64
    if isinstance(value, np.generic):
        return lookup_dtype(value.dtype)
    if isinstance(value, float):
        return FP64
    raise TypeError(f"expected a bool, int, float or NumPy scalar; came {value!r} of type {type(value).__name__}")


def convert(value: object, dtype: DataType) -> np.generic:
    """One scalar in another type by the rules of every cast here: integers wrap, floats saturate and NaN gives 0."""
    if dtype.kind == "b":
        return np.bool_(bool(value))
    if dtype.kind == "f":
        return dtype.np_type.type(value)
    info = np.iinfo(dtype.np_type)
    if isinstance(value, (float, np.floating)):
        value = 0 if value != value else int(min(max(value, float(info.min)), float(info.max)))
        return dtype.np_type.type(min(max(value, info.min), info.max))
    low = int(value) & (1 << dtype.bits) - 1  # type: ignore[call-overload]
    return dtype.np_type.type(low - (1 << dtype.bits) if low > info.max else low)


def exact(value: object, dtype: DataType) -> np.generic:
    """A Python number in another type, as NumPy 2 makes arrays of them: what is out of range is refused.

    NumPy's own scalars are cast. Raises TypeError, OverflowError, or ValueError for NaN as an integer.
    """
    if not isinstance(value, (int, float, np.number, np.bool_)) or isinstance(value, np.complexfloating):
        raise TypeError(message("a number or a boolean", type(value).__name__))
    if dtype.kind in "iu" and not isinstance(value, np.generic):
        return dtype.np_type.type(whole(value, dtype))
    try:
        return convert(value, dtype)
    except OverflowError:
        raise OverflowError(message(f"a number that {dtype} holds", value)) from None


def whole(value: Any, dtype: DataType) -> int:
    """A number without its fraction, as an int that fits `dtype`. Raises OverflowError, or ValueError for NaN."""
    low, high = _BOUNDS[dtype]
    if low - 1 < value < high + 1:
        return int(value)
    kind = OverflowError if value == value else ValueError
    raise kind(message(f"numbers from {low} to {high}, of {dtype}", value))


def cast_array(array: np.ndarray, dtype: DataType) -> np.ndarray:
    """`convert` of each element: an array of NumPy or of a GPU."""
    target = dtype.np_type
    if array.dtype == target:
        return array
    with np.errstate(all="ignore"):
        if array.dtype.kind != "f" or target.kind not in "iu":
            return array.astype(target)
        info = np.iinfo(target)
        above, below = array >= float(info.max), array <= float(info.min)
        made = np.where(above | below | np.isnan(array), 0, array).astype(target)
    made[above], made[below] = info.max, info.min
    return made
