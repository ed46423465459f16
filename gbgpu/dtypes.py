"""The element types: BOOL, INT8 to INT64, UINT8 to UINT64, FP32, FP64, and how to look them up and unify them."""

from gbgpu.semiring._types import (
    BOOL,
    FP32,
    FP64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
    lookup_dtype,
    unify,
)

__all__ = [
    "BOOL",
    "FP32",
    "FP64",
    "INT16",
    "INT32",
    "INT64",
    "INT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "UINT8",
    "DataType",
    "lookup_dtype",
    "unify",
]
