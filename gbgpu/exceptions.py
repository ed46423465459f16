"""The exceptions, under python-graphblas's name for their module."""

from typing import NoReturn

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
    no_attribute,
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

_OF_C = "GraphblasException, the base of all; C programs alone cause this one"

# what else python-graphblas has -> what there is
_INSTEAD = {
    **dict.fromkeys(("InsufficientSpace", "InvalidObject", "NullPointer", "UninitializedObject"), _OF_C),
    **dict.fromkeys(("GrB_SUCCESS", "check_status", "check_status_carg"), "no status codes: what fails raises"),
    "GrB_NO_VALUE": "a value that is missing is None, or the default of A.get(i, j, default)",
    "JitError": "UdfParseError, for functions that can't be compiled",
}  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    raise no_attribute(f"module {__name__!r}", name, _INSTEAD.get(name))
