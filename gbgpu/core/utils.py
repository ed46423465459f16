"""What kind of object a value is or computes to."""

from typing import Any

import gbgpu as gb
from gbgpu.core.matrix import TransposedMatrix


def output_type(value: Any) -> type:
    """Matrix, TransposedMatrix, Vector or Scalar for handles and expressions; else the value's own type."""
    if isinstance(value, TransposedMatrix):
        return TransposedMatrix
    ndim = getattr(value, "ndim", None) if hasattr(value, "_computed") else None
    return type(value) if ndim is None else (gb.Scalar, gb.Vector, gb.Matrix)[ndim]


def ensure_type(value: Any, types: Any) -> Any:
    """The value, computed if it is an expression. Raises TypeError unless it is of one of the types."""
    allowed = types if isinstance(types, tuple) else (types,)
    if type(value) in allowed:
        return value
    if output_type(value) in allowed:
        return value.new()
    raise TypeError(f"expected {' or '.join(t.__name__ for t in allowed)}; came {type(value).__name__}")
