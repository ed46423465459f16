"""Calls of compiled CPU kernels that are written down once, and gone through again and again by one function of machine
code, without Python in between.

The function is made of the kinds of the calls alone; what they are given lies in a table. So loops of one shape share
one, and making it takes milliseconds: kernels are called where they are, not compiled again.
"""

import ctypes
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from llvmlite import ir
from numba import typeof
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..device.base import address
from ..device.store import Recent
from ..interrupts import apart
from .interface import Late

STATE = 8  # words: the round, whether it was the last, whether it is too wide, whether another follows, rounds at most

_WORD, _BYTE, _FLAG = ir.IntType(64), ir.IntType(8), ir.IntType(1)
_BYTES = _BYTE.as_pointer()
_FAILED = -1
_numbers = count()
_ready = Recent()
_entries: WeakKeyDictionary[Any, dict[tuple, tuple[str, Any, int]]] = WeakKeyDictionary()  # by kernel and arguments


class Replay:
    """Launches in their order: calls of kernels, and what is done to buffers between them. The last sets `state`."""

    def __init__(self) -> None:
        self.state = np.zeros(STATE, np.int64)
        self.length = 0
        self._kinds: list[str] = []
        self._types: dict[str, Any] = {}  # of functions, by their text
        self._table: list[int] = []
        self._pointers: list[int] = []  # words of the table that are addresses of buffers
        self._held: list[Any] = []
        self._late: list[tuple[int, int]] = []  # words of the table that are addresses of others of it
        self._run: Any = None

    def call(self, kernel: Any, arguments: Sequence[Any]) -> None:
        """kernel(*arguments), of a function that numba has compiled or will compile now."""
        words, numbers, pointers = [0], [], []
        for argument in arguments:
            if isinstance(argument, Late):
                numbers.append((argument.array, len(words)))
                argument = argument.array.dtype.type(0)
            if isinstance(argument, np.ndarray):
                size = argument.size
                pointers.append(len(words) + 4)
                words += (0, 0, size, argument.itemsize, address(argument), size, *argument.strides)
            else:
                words.append(_bits(argument))
        given = [x.array.dtype.type(0) if isinstance(x, Late) else x for x in arguments] if numbers else arguments
        kind, type, words[0] = _entry(kernel, given)
        self._types[kind] = type
        at = len(self._table) + 3 * len(numbers)
        for array, place in numbers:  # they are put into the table
            self._late.append((len(self._table), at + place))
            self._add("copy", [0, address(array), array.itemsize], [1], array)
        self._add(kind, words, pointers, kernel, arguments)

    def clear(self, target: np.ndarray) -> None:
        if target.nbytes:
            self._add("clear", [address(target), target.nbytes], [0], target)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """All of it; they may overlap."""
        if target.nbytes:
            self._add("copy", [address(target), address(source), target.nbytes], [0, 1], target, source)

    def copy_counted(self, target: np.ndarray, source: np.ndarray, count: np.ndarray) -> None:
        words = [address(target), address(source), address(count), target.itemsize]
        self._add("copy_counted", words, [0, 1, 2], target, source, count)

    def begin(self, flag: np.ndarray) -> None:
        """What comes until `end` is passed over if the flag is 0 then."""
        self._add("begin", [address(flag)], [0], flag)

    def end(self) -> None:
        self._add("end", [], [])

    def replace(self, buffer: np.ndarray, other: np.ndarray) -> None:
        """Work on another buffer of the same size and type in place of one, wherever that or a part of it stands."""
        begin, shift = address(buffer), address(other) - address(buffer)
        for word in self._pointers:
            if begin <= self._table[word] < begin + buffer.nbytes:
                self._table[word] += shift
        self._held.append(other)

    def _add(self, kind: str, words: list[int], pointers: list[int], *held: Any) -> None:
        self.length += 1
        self._pointers += [len(self._table) + place for place in pointers]
        self._kinds.append(kind)
        self._table += words
        self._held.append(held)

    def finish(self) -> None:
        """Make the function, or find one of the same shape."""
        table = np.array([word & 0xFFFF_FFFF_FFFF_FFFF for word in self._table], np.uint64)
        for word, place in self._late:
            table[word] = address(table) + 8 * place
        library = _ready.get(tuple(self._kinds), lambda: apart(lambda: _compiled(self._kinds, self._types)))
        function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        run = function(library.get_pointer_to_function(library.name))
        at = ctypes.c_void_p(address(table)), ctypes.c_void_p(address(self.state))
        self._held.append((table, library))
        self._run = lambda: run(*at)

    def rounds(self, most: int) -> None:
        """Go round until a round was the last or too wide, or `most` rounds are done in all. Raises MemoryError."""
        self.state[1:5] = 0, 0, 1, most
        if self._run() == _FAILED:
            raise MemoryError


def _entry(kernel: Any, arguments: Sequence[Any]) -> tuple[str, Any, int]:
    """The machine code of a kernel for such arguments: its type, as a text too, and where it begins."""
    known = _entries.setdefault(kernel, {})
    key = tuple([(x.dtype, x.flags.num) if isinstance(x, np.ndarray) else type(x) for x in arguments])
    found = known.get(key)
    if found is None:
        signature = tuple(map(typeof, arguments))
        if signature not in kernel.overloads:
            apart(lambda: kernel.compile(signature))
        made = kernel.overloads[signature]
        kind = cpu_target.target_context.call_conv.get_function_type(made.signature.return_type, signature)
        pointer = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
        found = known[key] = str(kind), kind, pointer
    return found


def _bits(value: Any) -> int:
    """A number as a word that has its bits."""
    if isinstance(value, np.floating):
        return int.from_bytes(value.tobytes(), "little")
    return _bits(np.float64(value)) if isinstance(value, float) else int(value)


def _compiled(kinds: Sequence[str], types: dict[str, Any]) -> Any:
    """A library with one function of (table, state), which has its name: no two in a process have the same."""
    library = cpu_target.target_context.codegen().create_library(f"gbgpu_replay_{next(_numbers)}")
    module = library.create_ir_module(library.name)
    words = _WORD.as_pointer()
    function = ir.Function(module, ir.FunctionType(_WORD, [words, words]), library.name)
    begin, body, failed, over = (function.append_basic_block(name) for name in ("begin", "body", "failed", "over"))
    writer = _Writer(module, function, begin, failed)
    for block, result in ((failed, _FAILED), (over, 0)):
        ir.IRBuilder(block).ret(_WORD(result))
    writer.to(body)
    for kind in kinds:
        writer.write(kind, types.get(kind))
    more = writer.code.load(writer.code.gep(function.args[1], [_WORD(3)]))
    writer.begin.branch(body)
    writer.code.cbranch(writer.code.icmp_signed("!=", more, _WORD(0)), body, over)
    library.add_ir_module(module)
    with global_compiler_lock:
        library.finalize()
    return library


class _Writer:
    """The body of the function, call after call; each takes its words from the table."""

    def __init__(self, module: Any, function: Any, begin: Any, failed: Any):
        self._module, self._function, self._failed = module, function, failed
        self.begin, self.code, self._at = ir.IRBuilder(begin), ir.IRBuilder(begin), 0
        self._results: dict[str, Any] = {}
        self._ends: list[Any] = []  # where those go on that pass something over

    def to(self, block: Any) -> None:
        self.code = ir.IRBuilder(block)

    def write(self, kind: str, function: Any) -> None:
        if function is not None:
            return self._call(function)
        method: Callable[[], None] = getattr(self, f"_{kind}")
        method()

    def _take(self, type: Any) -> Any:
        """The next word, as a value of this type."""
        code = self.code
        word = code.load(code.gep(self._function.args[0], [_WORD(self._at)]))
        self._at += 1
        if isinstance(type, ir.PointerType):
            return code.inttoptr(word, type)
        if isinstance(type, ir.IntType):
            return word if type.width == 64 else code.trunc(word, type)
        bits = word if isinstance(type, ir.DoubleType) else code.trunc(word, ir.IntType(32))
        return code.bitcast(bits, type)

    def _call(self, type: Any) -> None:
        """A function as numba compiles them: it returns a status, its result and what it raises through pointers."""
        target = self._take(type.as_pointer())
        results = [self._result(argument.pointee) for argument in type.args[:2]]
        status = self.code.call(target, [*results, *(self._take(argument) for argument in type.args[2:])])
        after = self._function.append_basic_block("after")
        self.code.cbranch(self.code.icmp_signed("!=", status, status.type(0)), self._failed, after)
        self.to(after)

    def _result(self, type: Any) -> Any:
        """A place on the stack, one for all results of a type."""
        found = self._results.get(str(type))
        if found is None:
            found = self._results[str(type)] = self.begin.alloca(type)
        return found

    def _begin(self) -> None:
        flag = self.code.load(self._take(_WORD.as_pointer()))
        then, end = (self._function.append_basic_block(name) for name in ("then", "end"))
        self._ends.append(end)
        self.code.cbranch(self.code.icmp_signed("!=", flag, _WORD(0)), then, end)
        self.to(then)

    def _end(self) -> None:
        end = self._ends.pop()
        self.code.branch(end)
        self.to(end)

    def _clear(self) -> None:
        fill = self._module.declare_intrinsic("llvm.memset", [_BYTES, _WORD])
        self.code.call(fill, [self._take(_BYTES), _BYTE(0), self._take(_WORD), _FLAG(0)])

    def _copy(self) -> None:
        self._move(self._take(_BYTES), self._take(_BYTES), self._take(_WORD))

    def _copy_counted(self) -> None:
        target, source, count = self._take(_BYTES), self._take(_BYTES), self._take(_WORD.as_pointer())
        self._move(target, source, self.code.mul(self.code.load(count), self._take(_WORD)))

    def _move(self, target: Any, source: Any, size: Any) -> None:
        move = self._module.declare_intrinsic("llvm.memmove", [_BYTES, _BYTES, _WORD])
        self.code.call(move, [target, source, size, _FLAG(0)])
