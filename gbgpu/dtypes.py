"""The element types: BOOL, INT32, INT64, FP32, FP64, and how to look them up and unify them."""

from gbgpu.semiring._types import BOOL, FP32, FP64, INT32, INT64, DataType, lookup_dtype, unify

__all__ = ["BOOL", "FP32", "FP64", "INT32", "INT64", "DataType", "lookup_dtype", "unify"]
