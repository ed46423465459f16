"""Calls of compiled CPU kernels that are written down once, and gone through again and again by one function of machine
code, without Python in between.

The function is made of the kinds of the calls alone; what they are given lies in a table. So loops of one shape share
one, and making it takes milliseconds: kernels are called where they are, not compiled again.

Several threads may go through it side by side, each with the calls of its devices: they meet where one of them uses
what another one has written, and where a round ends.
"""

import ctypes
import platform
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from llvmlite import ir
from numba import typeof
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..device.base import address
from ..device.store import Recent
from ..interrupts import apart
from . import compiled  # noqa: F401  (then numba has loaded what it compiles with)
from .alike import Given
from .interface import Late, written

STATE = 8  # words: the round, whether it was the last, whether it is too wide, whether another follows, rounds at most

_WORD, _BYTE, _FLAG = ir.IntType(64), ir.IntType(8), ir.IntType(1)
_BYTES = _BYTE.as_pointer()
_FAILED = -1
_CAME, _TURN, _LOST, _MEETING = 0, 8, 16, 24  # words of a meeting, in lines of their own, and how many these are
# Looks at a meeting before a thread lets others have its core in between, and before it sleeps then, for microseconds.
_PATIENT, _TIRED, _NAP = 500, 600, 20
_numbers = count()
_ready = Recent()
_entries: WeakKeyDictionary[Any, dict[tuple, tuple[str, Any, int]]] = WeakKeyDictionary()  # by kernel and arguments


class _Use(NamedTuple):
    """A buffer that a call uses: the word of the table that is its address, its bytes, and whether it is written."""

    word: int
    size: int
    writes: bool


class Replay:
    """Launches in their order: calls of kernels, and what is done to buffers between them. The last sets `state`.
    `threads` go through them: `device` is whose launch comes next."""

    def __init__(self) -> None:
        self.state = np.zeros(STATE, np.int64)
        self.length, self.threads, self.device = 0, 1, 0
        self._kinds: list[str] = []
        self._calls: list[tuple[int | None, list[_Use]]] = []  # by which thread (None: by all), and what it uses
        self._types: dict[str, Any] = {}  # of functions, by their text
        self._table: list[int] = []
        self._held: list[Any] = []
        self._late: list[tuple[int, int]] = []  # words of the table that are addresses of others of it
        self._run: Any = None

    def call(self, kernel: Any, arguments: Sequence[Any], kind: str = "") -> None:
        """kernel(*arguments), of a function that numba has compiled or will compile now; without a kind of
        interface.py it writes its first argument."""
        if isinstance(kernel, Given):
            kernel, arguments = kernel.kernel, (*arguments, *kernel.numbers)
        words, numbers, uses = [0], [], []
        changed = written(kind) if kind else (0,)
        for place, argument in enumerate(arguments):
            if isinstance(argument, Late):
                numbers.append((argument.array, len(words)))
                argument = argument.array.dtype.type(0)
            if isinstance(argument, np.ndarray):
                size = argument.size
                uses.append(_Use(len(words) + 4, argument.nbytes, place in changed))
                words += (0, 0, size, argument.itemsize, address(argument), size, *argument.strides)
            else:
                words.append(_bits(argument))
        given = [x.array.dtype.type(0) if isinstance(x, Late) else x for x in arguments] if numbers else arguments
        kind, type, words[0] = _entry(kernel, given)
        self._types[kind] = type
        at = len(self._table) + 3 * len(numbers)
        for array, place in numbers:  # they are put into the table
            self._late.append((len(self._table), at + place))
            self._add("copy", [0, address(array), array.itemsize], [_Use(1, array.itemsize, False)], array)
        self._add(kind, words, uses, kernel, arguments)

    def clear(self, target: np.ndarray) -> None:
        if target.nbytes:
            self._add("clear", [address(target), target.nbytes], [_Use(0, target.nbytes, True)], target)

    def copy(self, target: np.ndarray, source: np.ndarray) -> None:
        """All of it; they may overlap."""
        size = target.nbytes
        if size:
            uses = [_Use(0, size, True), _Use(1, size, False)]
            self._add("copy", [address(target), address(source), size], uses, target, source)

    def copy_counted(self, target: np.ndarray, source: np.ndarray, count: np.ndarray) -> None:
        words = [address(target), address(source), address(count), target.itemsize]
        uses = [_Use(0, target.nbytes, True), _Use(1, source.nbytes, False), _Use(2, count.nbytes, False)]
        self._add("copy_counted", words, uses, target, source, count)

    def begin(self, flag: np.ndarray) -> None:
        """What comes until `end` is passed over if the flag is 0 then."""
        self.meet()
        self._add("begin", [address(flag)], [_Use(0, flag.nbytes, False)], flag, all=True)

    def end(self) -> None:
        self.meet()
        self._add("end", [], [], all=True)

    def meet(self) -> None:
        """All threads have come here before one goes on."""
        if self.threads > 1:
            self._add("meet", [], [], all=True)
            self.length -= 1

    def replace(self, buffer: np.ndarray, other: np.ndarray) -> None:
        """Work on another buffer of the same size and type in place of one, wherever that or a part of it stands."""
        begin, shift = address(buffer), address(other) - address(buffer)
        for word in (use.word for _, uses in self._calls for use in uses):
            if begin <= self._table[word] < begin + buffer.nbytes:
                self._table[word] += shift
        self._held.append(other)

    def _add(self, kind: str, words: list[int], uses: list[_Use], *held: Any, all: bool = False) -> None:
        self.length += 1
        at = len(self._table)
        thread = None if all else self.device % self.threads
        self._calls.append((thread, [use._replace(word=at + use.word) for use in uses]))
        self._kinds.append(kind)
        self._table += words
        self._held.append(held)

    def _shape(self) -> list[tuple[str, int | None]]:
        """What is called and by which thread, with a meeting before a call that uses what another thread has written
        since the last one, or writes what that has used."""
        if self.threads == 1:
            return [(kind, None) for kind in self._kinds]
        shape: list[tuple[str, int | None]] = []
        used: list[list[tuple[int, int, bool]]] = [[] for _ in range(self.threads)]
        for kind, (thread, uses) in zip(self._kinds, self._calls, strict=True):
            mine = [(self._table[use.word], self._table[use.word] + use.size, use.writes) for use in uses]
            others = (one for other, done in enumerate(used) if other != thread for one in done)
            if any(_disturbs(one, other) for other in others for one in mine):
                shape.append(("meet", None))
                used = [[] for _ in used]
            shape.append((kind, thread))
            if kind == "meet":
                used = [[] for _ in used]
            for done in used if thread is None else [used[thread]]:
                done += mine
        return shape

    def finish(self) -> None:
        """Make the function, or find one of the same shape."""
        table = np.array([word & 0xFFFF_FFFF_FFFF_FFFF for word in self._table], np.uint64)
        for word, place in self._late:
            table[word] = address(table) + 8 * place
        shape, threads = tuple(self._shape()), self.threads
        library = _ready.get((shape, threads), lambda: apart(lambda: _compiled(shape, self._types, threads)))
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64)
        run = function(library.get_pointer_to_function(library.name))
        self._meeting = np.zeros(_MEETING, np.int64)
        at = [ctypes.c_void_p(address(array)) for array in (table, self.state, self._meeting)]
        self._held.append((table, library))
        self._run = lambda thread: run(*at, thread)

    def rounds(self, most: int, together: Callable[[Callable[[int], Any]], list[Any]] | None = None) -> None:
        """Go round until a round was the last or too wide, or `most` rounds are done in all. Raises MemoryError.
        `together(work)`: what work gives for the number of each thread, all at once."""
        self.state[1:5] = 0, 0, 1, most
        self._meeting[:] = 0
        ended = [self._run(0)] if together is None else together(self._run)
        if _FAILED in ended:
            raise MemoryError


def _disturbs(one: tuple[int, int, bool], other: tuple[int, int, bool]) -> bool:
    """Whether two (begin, end, whether it is written) of different threads may not come at once."""
    return one[0] < other[1] and other[0] < one[1] and (one[2] or other[2])


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


def _compiled(shape: Sequence[tuple[str, int | None]], types: dict[str, Any], threads: int) -> Any:
    """A library with one function of (table, state, meeting, thread), which has its name: no two in a process have the
    same."""
    library = cpu_target.target_context.codegen().create_library(f"gbgpu_replay_{next(_numbers)}")
    module = library.create_ir_module(library.name)
    words = _WORD.as_pointer()
    function = ir.Function(module, ir.FunctionType(_WORD, [words, words, words, _WORD]), library.name)
    begin, body, failed, over = (function.append_basic_block(name) for name in ("begin", "body", "failed", "over"))
    writer = _Writer(module, function, begin, failed, _meet(module, threads) if threads > 1 else None)
    for block, result in ((failed, _FAILED), (over, 0)):
        code = ir.IRBuilder(block)
        if result == _FAILED:  # others do not wait for this one
            code.store_atomic(_WORD(1), code.gep(function.args[2], [_WORD(_LOST)]), "release", 8)
        code.ret(_WORD(result))
    writer.to(body)
    for kind, thread in shape:
        writer.write(kind, thread, types.get(kind))
    if threads > 1:
        writer.write("meet", None, None)
    more = writer.code.load(writer.code.gep(function.args[1], [_WORD(3)]))
    writer.begin.branch(body)
    writer.code.cbranch(writer.code.icmp_signed("!=", more, _WORD(0)), body, over)
    library.add_ir_module(module)
    with global_compiler_lock:
        library.finalize()
    return library


def _meet(module: Any, threads: int) -> Any:
    """A function in which threads wait until all of them have called it: 0; or one of them is lost: 1. The last to come
    counts the turn on. Who waits gives way to others after a while: they may need its core to come."""
    meet = ir.Function(module, ir.FunctionType(_FLAG, [_WORD.as_pointer()]), f"{module.name}_meet")
    meet.linkage = "internal"
    number = ir.IntType(32)
    rest = ir.Function(module, ir.FunctionType(number, []), "sched_yield")
    sleep = ir.Function(module, ir.FunctionType(number, [number]), "usleep")
    names = ("begin", "last", "wait", "look", "again", "tire", "rest", "sleep", "met", "lost")
    begin, last, wait, look, again, tire, rests, sleeps, met, lost = (meet.append_basic_block(name) for name in names)
    code = ir.IRBuilder(begin)
    came, turns, lose = (code.gep(meet.args[0], [_WORD(word)]) for word in (_CAME, _TURN, _LOST))
    turn = code.load_atomic(turns, "acquire", 8)
    before = code.atomic_rmw("add", came, _WORD(1), "acq_rel")
    code.cbranch(code.icmp_signed("==", before, _WORD(threads - 1)), last, wait)
    code = ir.IRBuilder(last)
    code.store_atomic(_WORD(0), came, "monotonic", 8)
    code.store_atomic(code.add(turn, _WORD(1)), turns, "release", 8)
    code.branch(met)
    code = ir.IRBuilder(wait)
    looks = code.phi(_WORD)
    code.cbranch(code.icmp_signed("!=", code.load_atomic(turns, "acquire", 8), turn), met, look)
    code = ir.IRBuilder(look)
    code.cbranch(code.icmp_signed("!=", code.load_atomic(lose, "acquire", 8), _WORD(0)), lost, again)
    code = ir.IRBuilder(again)
    if platform.machine() in ("x86_64", "AMD64"):
        code.call(ir.Function(module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause"), [])
    more = code.add(looks, _WORD(1))
    code.cbranch(code.icmp_signed("<", looks, _WORD(_PATIENT)), wait, tire)
    code = ir.IRBuilder(tire)
    code.cbranch(code.icmp_signed("<", looks, _WORD(_TIRED)), rests, sleeps)
    for block, call in ((rests, (rest, [])), (sleeps, (sleep, [number(_NAP)]))):
        code = ir.IRBuilder(block)
        code.call(*call)
        code.branch(wait)
    for block, looked in ((begin, _WORD(0)), (again, more), (rests, more), (sleeps, looks)):
        looks.add_incoming(looked, block)
    for block, flag in ((met, 0), (lost, 1)):
        ir.IRBuilder(block).ret(_FLAG(flag))
    return meet


class _Writer:
    """The body of the function, call after call; each takes its words from the table."""

    def __init__(self, module: Any, function: Any, begin: Any, failed: Any, meet: Any):
        self._module, self._function, self._failed, self._meets = module, function, failed, meet
        self.begin, self.code, self._at = ir.IRBuilder(begin), ir.IRBuilder(begin), 0
        self._results: dict[str, Any] = {}
        self._ends: list[Any] = []  # where those go on that pass something over
        self._thread: int | None = None
        self._past: Any = None  # where the other threads go on

    def to(self, block: Any) -> None:
        self.code = ir.IRBuilder(block)

    def by(self, thread: int | None) -> None:
        """What comes next is done by one thread; by all, if None."""
        if thread == self._thread:
            return
        if self._thread is not None:
            self.code.branch(self._past)
            self.to(self._past)
        self._thread = thread
        if thread is not None:
            mine, self._past = (self._function.append_basic_block(name) for name in ("mine", "past"))
            self.code.cbranch(self.code.icmp_signed("==", self._function.args[3], _WORD(thread)), mine, self._past)
            self.to(mine)

    def write(self, kind: str, thread: int | None, function: Any) -> None:
        self.by(thread)
        if function is not None:
            return self._call(function)
        method: Callable[[], None] = getattr(self, f"_{kind}")
        method()

    def _meet(self) -> None:
        after = self._function.append_basic_block("met")
        self.code.cbranch(self.code.call(self._meets, [self._function.args[2]]), self._failed, after)
        self.to(after)

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
