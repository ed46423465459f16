"""Sparse arrays given to functions of NumPy and SciPy: what is computed, and what the errors say."""

import sys
from typing import Any

import numpy as np

from gbgpu.errors import message

from ._arithmetic import UFUNCS

# NumPy's function of two operands -> the operator, and the one of the right operand
_BINARY = {
    **{name: (f"__{short}__", f"__r{short}__") for name, short in (
        ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"), ("power", "pow"),
        ("matmul", "matmul"))},
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"),
    "greater": ("__gt__", "__lt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater_equal": ("__ge__", "__le__"),
    "maximum": ("maximum", "maximum"),
    "minimum": ("minimum", "minimum"),
}  # fmt: skip
_UNARY = {name: name for name in (*UFUNCS, "conjugate")} | {"absolute": "__abs__", "negative": "__neg__"}


class Unconverted(TypeError):
    """A sparse array was given to a function that needs an array of NumPy or SciPy."""


_CONVERSIONS = "A.to_scipy() is SciPy's sparse array, A.toarray() the dense one; algos.csgraph takes A as a graph"


def _operand(caller: Any) -> bool:
    """Whether the caller leaves an array of one object to the operators of the object.

    Operators of SciPy's arrays do. So do np.array_equal and np.array_equiv, which would answer False after an error.
    """
    if caller.f_code.co_name in ("array_equal", "array_equiv"):
        return True
    while caller.f_globals.get("__name__", "").startswith("scipy.sparse._"):
        name = caller.f_code.co_name
        if name.startswith("__"):
            return bool(name != "__init__")
        caller = caller.f_back
    return False


class NumpyProtocols:
    """What NumPy asks of an operand."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """A ufunc of NumPy, or an operator whose left operand is NumPy's, computed by operators and methods of ours.

        Raises TypeError for other ufuncs, and for `out=`, `where=` and other options.
        """
        found, name = NotImplemented, ufunc.__name__
        if method == "__call__" and out is None and not options:
            if name == "square":
                name, inputs = "multiply", inputs * 2
            if name in _UNARY:
                return getattr(self, _UNARY[name])()
            left = inputs[0] is self
            function = getattr(self, _BINARY[name][not left], None) if name in _BINARY else None
            found = NotImplemented if function is None else function(inputs[left])
        if found is NotImplemented:
            what = f"{name} with these operands" if method == "__call__" else f"{name}.{method}"
            hint = "A.toarray() is the dense array; x = x + A for x += A"
            raise TypeError(message(f"a function that {type(self).__name__} of gbgpu has", what, hint))
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """An array of this one object for `dtype=object`, and for callers that then use the operators of the object.

        Raises TypeError for others, which names the conversions.
        """
        if np.dtype(dtype) != np.dtype(object) and not (dtype is None and _operand(sys._getframe(1))):
            raise Unconverted(message("an array of NumPy or SciPy", f"{type(self).__name__} of gbgpu", _CONVERSIONS))
        found = np.empty((), object)
        found[()] = self
        return found

    def __format__(self, spec: str) -> str:
        """The text of the array.

        SciPy's constructors catch the TypeError of `__array__` and format the array into an error of their own: they
        get the text of the TypeError.
        """
        error, caller = sys.exception(), sys._getframe(1).f_globals.get("__name__", "")
        if isinstance(error, Unconverted) and caller.startswith("scipy."):
            return str(error)
        return format(str(self), spec)
