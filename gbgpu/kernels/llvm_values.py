"""Numbers and arrays of the language of CPU kernels: their types, and LLVM's text of them."""

import struct
from typing import Any, NamedTuple

import numpy as np

INT, FLOAT, BOOL, UNSIGNED = "i64", "f64", "b", "u64"
LITERAL = "n"  # the type of a whole number that the text spells out
LLVM = {"f32": "float", "f64": "double", BOOL: "i1", LITERAL: "i64"} | {
    f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
}


class Untranslatable(Exception):
    """A text that the language does not have."""


class Value(NamedTuple):
    """A number: its type, and LLVM's text of it."""

    kind: str
    text: str

    @property
    def known(self) -> bool:
        """Whether it is a whole number that the text spells out."""
        return self.kind == LITERAL and self.text[0] != "%"


class Array(NamedTuple):
    """An array: the type of its elements, and LLVM's texts of where it begins, how many it has and the bytes from one
    to the next ("": they lie side by side)."""

    kind: str
    data: str
    size: str
    stride: str


def kind_of(given: str) -> str:
    """The type of an argument, as entry.types_of tells it; of an array its elements'."""
    named = {"int": INT, "float": FLOAT, "bool": BOOL}
    if given in named:
        return named[given]
    dtype = np.dtype(given.lstrip("CA"))
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or not dtype.isnative or dtype.str[1:] == "f2":
        raise Untranslatable(f"numbers of {dtype}")
    return BOOL if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


def type_of(kind: str) -> str:
    """LLVM's type of a result: of none, of a number, or of several ("i64 f64")."""
    types = [LLVM[one] for one in kind.split()]
    return f"{{ {', '.join(types)} }}" if len(types) > 1 else types[0] if types else "void"


def widened(kind: str) -> str:
    """The type in which a whole number is computed with."""
    return UNSIGNED if kind[0] == "u" else INT if kind[0] in "ib" else kind


def common(one: str, other: str) -> str:
    """The type of what is made of numbers of two types."""
    if one == other and one[0] != "b":
        return widened(one)
    if "f" in (one[0], other[0]):
        return "f32" if {one, other} == {"f32"} else FLOAT
    if LITERAL in (one, other):
        kind = other if one == LITERAL else one
        return UNSIGNED if kind == UNSIGNED else LITERAL if kind == LITERAL else INT
    if BOOL in (one, other):
        return widened(other if one == BOOL else one)
    if UNSIGNED in (one, other):
        if widened(one) != widened(other):
            raise Untranslatable(f"{one} meets {other}: signed and unsigned words do not mix")
        return UNSIGNED
    return UNSIGNED if one[0] == other[0] == "u" else INT


def joined(one: str, other: str) -> str:
    """The type of a name, or of a choice, that is both."""
    return one if one == other else common(one, other)


CONVERSIONS = {"bool_": BOOL, "intp": INT, "uintp": UNSIGNED} | {
    f"{name}{bits}": f"{name[0]}{bits}" for name, all in (("int", (8, 16, 32, 64)), ("float", (32, 64))) for bits in all
}
CONVERSIONS |= {f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)}


def bytes_of(kind: str) -> int:
    return 1 if kind == BOOL else int(kind[1:]) // 8


def stored_as(kind: str) -> str:
    """LLVM's type of an element of an array."""
    return "i8" if kind == BOOL else LLVM[kind]


def zero_of(kind: str) -> str:
    return "0.0" if kind[0] == "f" else "0"


def spelt(value: Any) -> Value:
    """A number that the text spells out, or a constant of a module."""
    if isinstance(value, bool | np.bool_):
        return Value(BOOL, "true" if value else "false")
    if isinstance(value, int):
        return Value(LITERAL, str(value))
    kind = FLOAT if isinstance(value, float) and not isinstance(value, np.generic) else kind_of(value.dtype.str)
    return Value(kind, constant(value, kind))


def constant(value: Any, kind: str) -> str:
    """LLVM's text of a number of a type; whole numbers wrap."""
    if kind[0] == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    if kind == BOOL:
        return "true" if value else "false"
    bits = 64 if kind == LITERAL else int(kind[1:])
    wrapped = int(value) & (1 << bits) - 1
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
