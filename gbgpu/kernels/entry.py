"""How machine code of CPU kernels is called: the types that a call has, and the entry points beside each kernel.

An object file has the kernel and two entry points. `call` is a C function of Python: it checks the types of its
arguments, takes arrays and numbers apart, releases the GIL and calls the kernel. Arguments of other types go to the
callable that it is bound to. `replay` takes its arguments from words of a table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

HEADER = object.__basicsize__  # bytes of an object before its own fields: the last 8 are its type
_C_CONTIGUOUS = 1  # NumPy's flag
_NUMBERS = {int: "int", float: "float", bool: "bool"}

# Of each argument: "C<f8" for a contiguous array, "A<f8" for a strided one, "<f8" for a NumPy scalar, "int", "float" or
# "bool" for a number of Python's.
Types = tuple[str, ...]


def types_of(arguments: Sequence[Any]) -> Types:
    """What machine code is compiled for. Raises TypeError for what no kernel takes."""
    return tuple([_type(x) for x in arguments])


def _type(x: Any) -> str:
    if isinstance(x, np.ndarray):
        if x.ndim != 1:
            raise TypeError(f"a kernel takes arrays of one dimension; came {x.ndim}")
        return ("C" if x.flags.c_contiguous else "A") + x.dtype.str
    if isinstance(x, np.generic):
        return x.dtype.str
    name = _NUMBERS.get(type(x))
    if name is None:
        raise TypeError(f"a kernel takes arrays and numbers; came {type(x).__name__}")
    return name


def plain(x: Any) -> Any:
    """An argument with the very types that `call` looks for: no subclass of an array, no second name of a dtype."""
    if not isinstance(x, np.ndarray):
        return x
    return np.asarray(x).view(np.dtype(x.dtype.str))


def objects() -> dict[str, int]:
    """Addresses of what entry points refer to, by name: Python's types, NumPy's types and dtypes."""
    found = {"py.None": id(None), "py.True": id(True), "py.ndarray": id(np.ndarray)}
    found |= {f"py.{name}": id(kind) for kind, name in _NUMBERS.items()}
    for char in np.typecodes["All"]:
        dtype = np.dtype(np.dtype(char).str) if char not in "SUVOMm" else None
        if dtype is not None:
            found |= {f"py.scalar{dtype.str}": id(dtype.type), f"py.dtype{dtype.str}": id(dtype)}
    return found


def text(name: str, types: Types, arguments: Sequence[str]) -> str:
    """LLVM's text of the entry points of a kernel: a function `name` as numba compiles it, whose LLVM arguments have
    these types after the two for what it returns."""
    return _Writer(name, types, arguments).module()


class _Writer:
    def __init__(self, name: str, types: Types, arguments: Sequence[str]):
        self._name, self._types, self._arguments = name, types, arguments
        self._lines: list[str] = []
        self._known = 0
        self._names: set[str] = set()

    def _let(self, value: str) -> str:
        self._known += 1
        self._lines.append(f"  %v{self._known} = {value}")
        return f"%v{self._known}"

    def _load(self, kind: str, base: str, offset: int | str) -> str:
        return self._let(f"load {kind}, ptr {self._let(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def _object(self, name: str) -> str:
        self._names.add(name)
        return f'@"{name}"'

    def _unless(self, condition: str) -> None:
        """Go to `other` unless a condition holds."""
        self._known += 1
        self._lines.append(f"  br i1 {condition}, label %on{self._known}, label %other\non{self._known}:")

    def _called(self, values: list[str]) -> str:
        given = ", ".join(f"{kind} {value}" for kind, value in zip(self._arguments, values, strict=True))
        return self._let(f'call i32 @"{self._name}"(ptr %result, ptr %error{", " if given else ""}{given})')

    def module(self) -> str:
        declared = ", ".join(("ptr", "ptr", *self._arguments))
        functions = [self._replay(), self._call()]
        head = [f'@"{name}" = external global i8' for name in sorted(self._names)]
        return "\n".join([*head, f'declare i32 @"{self._name}"({declared})', _DECLARED, *functions])

    def _narrowed(self, kind: str, word: str) -> str:
        """A value of an LLVM type from a word that has its bits."""
        if kind == "i64":
            return word
        if kind == "ptr":
            return self._let(f"inttoptr i64 {word} to ptr")
        if kind == "double":
            return self._let(f"bitcast i64 {word} to double")
        if kind == "float":
            return self._let(f"bitcast i32 {self._let(f'trunc i64 {word} to i32')} to float")
        return self._let(f"trunc i64 {word} to {kind}")

    def _replay(self) -> str:
        self._lines = [*_BEGIN]
        kinds = enumerate(self._arguments)
        values = [self._narrowed(kind, self._load("i64", "%words", 8 * at)) for at, kind in kinds]
        status = self._called(values)
        return "\n".join(["define i32 @replay(ptr %words) {", *self._lines, f"  ret i32 {status}", "}"])

    def _call(self) -> str:
        self._lines = [*_BEGIN]
        self._unless(self._let(f"icmp eq i64 %count, {len(self._types)}"))
        objects = []
        for at, kind in enumerate(self._types):  # all types, before anything is taken apart
            objects.append(self._load("ptr", "%given", 8 * at))
            self._check(objects[-1], kind)
        values: list[str] = []
        for given, kind in zip(objects, self._types, strict=True):
            values += self._values(given, kind, self._arguments[len(values)])
        thread = self._let("call ptr @PyEval_SaveThread()")
        status = self._called(values)
        self._lines.append(f"  call void @PyEval_RestoreThread(ptr {thread})")
        none = self._object("py.None")
        self._lines.append(_END.format(failed=self._let(f"icmp ne i32 {status}, 0"), none=none))
        return "\n".join(["define ptr @call(ptr %self, ptr %given, i64 %count) {", *self._lines, "}"])

    def _check(self, given: str, kind: str) -> None:
        held = self._load("ptr", given, HEADER - 8)
        array = kind[0] in "CA"
        name = "py.ndarray" if array else f"py.{kind}" if kind.isalpha() else f"py.scalar{kind}"
        self._unless(self._let(f"icmp eq ptr {held}, {self._object(name)}"))
        if array:
            self._unless(self._let(f"icmp eq i32 {self._load('i32', given, HEADER + 8)}, 1"))  # dimensions
            dtype = self._load("ptr", given, HEADER + 40)
            self._unless(self._let(f"icmp eq ptr {dtype}, {self._object(f'py.dtype{kind[1:]}')}"))
        if kind[0] == "C":
            flag = self._let(f"and i32 {self._load('i32', given, HEADER + 48)}, {_C_CONTIGUOUS}")
            self._unless(self._let(f"icmp ne i32 {flag}, 0"))

    def _values(self, given: str, kind: str, wanted: str) -> list[str]:
        """What the kernel is given for an argument of a type."""
        if kind[0] in "CA":
            size = self._load("i64", self._load("ptr", given, HEADER + 16), 0)
            stride = self._load("i64", self._load("ptr", given, HEADER + 24), 0)
            data = self._load("ptr", given, HEADER)
            return ["null", "null", size, str(np.dtype(kind[1:]).itemsize), data, size, stride]
        if kind == "int":
            value = self._let(f"call i64 @PyLong_AsUnsignedLongLongMask(ptr {given})")
            return [self._narrowed(wanted, value)]
        if kind == "bool":
            return [self._narrowed(wanted, self._let(f"zext i1 {self._is_true(given)} to i64"))]
        if kind == "float":
            return [self._load("double", given, HEADER)]
        if wanted in ("i1", "i8"):
            return [self._narrowed(wanted, self._let(f"zext i8 {self._load('i8', given, HEADER)} to i64"))]
        return [self._load(wanted, given, HEADER)]

    def _is_true(self, given: str) -> str:
        return self._let(f"icmp eq ptr {given}, {self._object('py.True')}")


_BEGIN = ("  %result = alloca [4 x i64], align 16", "  %error = alloca ptr, align 8")
_END = """  br i1 {failed}, label %failed, label %done
failed:
  %none = call ptr @PyErr_NoMemory()
  ret ptr %none
done:
  call void @Py_IncRef(ptr {none})
  ret ptr {none}
other:
  %made = call ptr @PyObject_Vectorcall(ptr %self, ptr %given, i64 %count, ptr null)
  ret ptr %made"""
# What numba's code calls for memory of its own: arrays, and the list of numbers, never enlarged, that sorting takes.
# The fields of numba's MemInfo: uses, two of a destructor, the data, and
# two more, in 48 bytes. An alignment is at least 16.
_DECLARED = """declare ptr @malloc(i64)
declare void @free(ptr)
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %room = add i64 %wide, 48
  %all = add i64 %size, %room
  %made = call ptr @malloc(i64 %all)
  %none = icmp eq ptr %made, null
  br i1 %none, label %failed, label %done
failed:
  ret ptr null
done:
  store i64 1, ptr %made
  %past = getelementptr i8, ptr %made, i64 %room
  %at = ptrtoint ptr %past to i64
  %low = urem i64 %at, %wide
  %back = sub i64 0, %low
  %data = getelementptr i8, ptr %past, i64 %back
  %field = getelementptr i8, ptr %made, i64 24
  store ptr %data, ptr %field
  ret ptr %made
}
define ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %unused) {
  %made = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %made
}
define void @NRT_MemInfo_call_dtor(ptr %held) {
  call void @free(ptr %held)
  ret void
}
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyErr_NoMemory()
declare void @Py_IncRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)"""
