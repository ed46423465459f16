"""How machine code of CPU kernels is called: the types that a call has, and the entry points beside each kernel.

An object file has two functions. `run` is the kernel, which takes its arguments from words of a table. `call` is a C
function of Python, which hands its arguments to the one that all kernels share, CALLER.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..device.base import HEADER

ASSEMBLY = "; LLVM"  # so begin texts that are LLVM's, not kernels
_C_CONTIGUOUS = 1  # NumPy's flag
_NUMBERS = {int: "int", float: "float", bool: "bool"}
_dtypes: dict[np.dtype, tuple[str, np.dtype]] = {}  # the names of those that came: NumPy makes each text anew

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
        return ("C" if x.flags.c_contiguous else "A") + _named(x.dtype)[0]
    if isinstance(x, np.generic):
        return _named(x.dtype)[0]
    name = _NUMBERS.get(type(x))
    if name is None:
        raise TypeError(f"a kernel takes arrays and numbers; came {type(x).__name__}")
    return name


def _named(dtype: np.dtype) -> tuple[str, np.dtype]:
    """The name of a dtype, and the dtype of this name, which is one object."""
    found = _dtypes.get(dtype)
    if found is None:
        found = _dtypes[dtype] = dtype.str, np.dtype(dtype.str)
    return found


def plain(x: Any) -> Any:
    """An argument with the very types that `call` looks for: no subclass of an array or number, no second name of a
    dtype."""
    if isinstance(x, np.generic):
        kind = _named(x.dtype)[1].type
        return x if type(x) is kind else kind(x)
    if not isinstance(x, np.ndarray):
        return x
    dtype = _named(x.dtype)[1]
    return x if type(x) is np.ndarray and x.dtype is dtype else np.asarray(x).view(dtype)


def objects() -> dict[str, int]:
    """Addresses of what entry points refer to, by name: Python's types, NumPy's types and dtypes."""
    found = {"py.None": id(None), "py.True": id(True), "py.ndarray": id(np.ndarray)}
    found |= {f"py.{name}": id(kind) for kind, name in _NUMBERS.items()}
    for char in np.typecodes["All"]:
        dtype = np.dtype(np.dtype(char).str) if char not in "SUVOMm" else None
        if dtype is not None:
            found |= {f"py.scalar{dtype.str}": id(dtype.type), f"py.dtype{dtype.str}": id(dtype)}
    return found


# What an argument is, as `call` looks at it: an array, a number of Python's, or of NumPy's by its bytes.
_CONTIGUOUS, _STRIDED, _INT, _FLOAT, _BOOL, _SCALAR = range(6)
_WORDS = 3  # of what is told of an argument: the form, the type, and the dtype of an array or the bytes of a number


def text(types: Types) -> str:
    """LLVM's text of what is beside the function `run` of a kernel for arguments of these types: the entry point
    `call`, which hands over to CALLER, and what that is to look for."""
    told, names = [f"ptr @run, ptr inttoptr (i64 {len(types)} to ptr)"], set()
    for one in types:
        if one[0] in "CA":
            form, of, more = _CONTIGUOUS if one[0] == "C" else _STRIDED, "py.ndarray", f'@"py.dtype{one[1:]}"'
            names.add(f"py.dtype{one[1:]}")
        elif one.isalpha():
            form, of, more = {"int": _INT, "float": _FLOAT, "bool": _BOOL}[one], f"py.{one}", "null"
        else:
            form, of = _SCALAR, f"py.scalar{one}"
            more = f"inttoptr (i64 {np.dtype(one).itemsize} to ptr)"
        names.add(of)
        told.append(f'ptr inttoptr (i64 {form} to ptr), ptr @"{of}", ptr {more}')
    return "\n".join([
        *(f'@"{name}" = external global i8' for name in sorted(names)),
        f"@types = internal constant [{2 + _WORDS * len(types)} x ptr] [{', '.join(told)}]",
        "declare ptr @caller(ptr, ptr, i64, ptr)",
        "define ptr @call(ptr %self, ptr %given, i64 %count) nounwind {",
        "  %made = tail call ptr @caller(ptr %self, ptr %given, i64 %count, ptr @types)",
        "  ret ptr %made",
        "}",
    ])  # fmt: skip


# The C function of Python that all kernels have: it checks the types of the arguments given, puts them into words,
# releases the GIL and calls the kernel. Arguments of other types go to `self`.
CALLER = f"""
@"py.True" = external global i8
@"py.None" = external global i8
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyErr_NoMemory()
declare void @Py_IncRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
define ptr @run(ptr %self, ptr %given, i64 %count, ptr %types) nounwind {{
begin:
  %wanted.at = getelementptr i64, ptr %types, i64 1
  %wanted = load i64, ptr %wanted.at
  %right = icmp eq i64 %count, %wanted
  br i1 %right, label %room, label %other
room:
  %most = mul i64 %count, 3
  %words = alloca i64, i64 %most
  br label %each
each:
  %i = phi i64 [ 0, %room ], [ %following, %next ]
  %to = phi ptr [ %words, %room ], [ %past, %next ]
  %type = phi ptr [ %types, %room ], [ %type.next, %next ]
  %all = icmp eq i64 %i, %count
  br i1 %all, label %run, label %one
one:
  %form.at = getelementptr i64, ptr %type, i64 2
  %of.at = getelementptr i64, ptr %type, i64 3
  %more.at = getelementptr i64, ptr %type, i64 4
  %form = load i64, ptr %form.at
  %of = load ptr, ptr %of.at
  %object.at = getelementptr ptr, ptr %given, i64 %i
  %object = load ptr, ptr %object.at
  %held.at = getelementptr i8, ptr %object, i64 {HEADER - 8}
  %held = load ptr, ptr %held.at
  %same = icmp eq ptr %held, %of
  %value.at = getelementptr i8, ptr %object, i64 {HEADER}
  br i1 %same, label %take, label %other
take:
  switch i64 %form, label %array [
    i64 {_INT}, label %int
    i64 {_FLOAT}, label %float
    i64 {_BOOL}, label %bool
    i64 {_SCALAR}, label %scalar
  ]
array:
  %dimensions.at = getelementptr i8, ptr %object, i64 {HEADER + 8}
  %dimensions = load i32, ptr %dimensions.at
  %flat = icmp eq i32 %dimensions, 1
  br i1 %flat, label %typed, label %other
typed:
  %dtype.at = getelementptr i8, ptr %object, i64 {HEADER + 40}
  %dtype = load ptr, ptr %dtype.at
  %dtype.wanted = load ptr, ptr %more.at
  %alike = icmp eq ptr %dtype, %dtype.wanted
  br i1 %alike, label %laid, label %other
laid:
  %flags.at = getelementptr i8, ptr %object, i64 {HEADER + 48}
  %flags = load i32, ptr %flags.at
  %flag = and i32 %flags, {_C_CONTIGUOUS}
  %beside = icmp ne i32 %flag, 0
  %may = icmp eq i64 %form, {_STRIDED}
  %goes = or i1 %beside, %may
  br i1 %goes, label %put, label %other
put:
  %data = load i64, ptr %value.at
  %sizes.at = getelementptr i8, ptr %object, i64 {HEADER + 16}
  %sizes = load ptr, ptr %sizes.at
  %size = load i64, ptr %sizes
  %strides.at = getelementptr i8, ptr %object, i64 {HEADER + 24}
  %strides = load ptr, ptr %strides.at
  %stride = load i64, ptr %strides
  store i64 %data, ptr %to
  %to.size = getelementptr i64, ptr %to, i64 1
  store i64 %size, ptr %to.size
  %to.stride = getelementptr i64, ptr %to, i64 2
  store i64 %stride, ptr %to.stride
  br label %next
int:
  %whole = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
  store i64 %whole, ptr %to
  br label %next
float:
  %real = load i64, ptr %value.at
  store i64 %real, ptr %to
  br label %next
bool:
  %yes = icmp eq ptr %object, @"py.True"
  %bit = zext i1 %yes to i64
  store i64 %bit, ptr %to
  br label %next
scalar:
  %bytes = load i64, ptr %more.at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %value.at, i64 %bytes, i1 false)
  br label %next
next:
  %step = phi i64 [ 3, %put ], [ 1, %int ], [ 1, %float ], [ 1, %bool ], [ 1, %scalar ]
  %past = getelementptr i64, ptr %to, i64 %step
  %following = add i64 %i, 1
  %type.next = getelementptr i64, ptr %type, i64 {_WORDS}
  br label %each
run:
  %kernel = load ptr, ptr %types
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %kernel(ptr %words)
  call void @PyEval_RestoreThread(ptr %thread)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %lack, label %done
lack:
  %none = call ptr @PyErr_NoMemory()
  ret ptr %none
done:
  call void @Py_IncRef(ptr @"py.None")
  ret ptr @"py.None"
other:
  %made = call ptr @PyObject_Vectorcall(ptr %self, ptr %given, i64 %count, ptr null)
  ret ptr %made
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
