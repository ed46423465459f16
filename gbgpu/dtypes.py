"""The element types: BOOL, INT8 to INT64, UINT8 to UINT64, FP32, FP64, and how to look them up and unify them."""

from typing import NoReturn

from gbgpu.errors import no_attribute
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

_OWN = "there are no types made by users: an object for each field"

# what else python-graphblas has -> what there is
_INSTEAD = {
    **dict.fromkeys(("FC32", "FC64"), "there are no complex numbers: an object for each part, of FP32 or FP64"),
    **dict.fromkeys(("register_anonymous", "register_new", "ss"), _OWN),
}


def __getattr__(name: str) -> NoReturn:
    raise no_attribute(f"module {__name__!r}", name, _INSTEAD.get(name))
