"""The exceptions, under python-graphblas's name for their module."""

from gbgpu.errors import (
    DeviceError,
    DimensionMismatch,
    DomainMismatch,
    EmptyObject,
    FileFormatError,
    GraphblasException,
    IndexOutOfBound,
    InvalidIndex,
    InvalidValue,
    NotImplementedException,
    NoValue,
    OutOfMemory,
    OutputNotEmpty,
    Panic,
    UdfParseError,
)

__all__ = [
    "DeviceError",
    "DimensionMismatch",
    "DomainMismatch",
    "EmptyObject",
    "FileFormatError",
    "GraphblasException",
    "IndexOutOfBound",
    "InvalidIndex",
    "InvalidValue",
    "NoValue",
    "NotImplementedException",
    "OutOfMemory",
    "OutputNotEmpty",
    "Panic",
    "UdfParseError",
]
