"""Calls of compiled CPU kernels that are written down once, and gone through again and again by one function of machine
code, without Python in between.

The function takes one step after the other from a program, and what each is given from a table. It is the same for all
loops, and lies on disk as kernels do.

Several threads may go through it side by side, each with the calls of its devices: they meet where one of them uses
what another one has written, and where a round ends.
"""

import ctypes
import platform
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..device.base import address
from .alike import Given
from .entry import ASSEMBLY, types_of
from .hazards import Use
from .interface import Deferred
from .kernel import Kernel, kernel_of
from .kinds import KINDS

STATE = 8  # words: the round, whether it was the last, whether it is too wide, whether another follows, rounds at most

_FAILED = -1
# Words of a meeting, in lines of their own: threads that came, its number, whether one is lost, how many threads meet.
_CAME, _NUMBER, _LOST, _THREADS, _MEETING = 0, 8, 16, 24, 32
_OPERATIONS = "over", "call", "clear", "copy", "copy_counted", "begin", "meet"  # of a program, by number
_STEP = 4  # words of a step: the operation, the thread (-1: all), where its words begin, the step to go on with


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
        self._begins: list[int] = []  # of their words in the table
        self._table: list[int] = []
        self._held: list[Any] = []
        self._late: list[tuple[int, int]] = []  # words of the table that are addresses of others of it
        self._run: Any = None

    def call(self, kernel: Any, arguments: Sequence[Any], kind: str = "") -> None:
        """kernel(*arguments), of a kernel that is compiled now if it was not before; without a kind of kinds.py it
        writes its first argument."""
        if isinstance(kernel, Given):
            kernel, arguments = kernel.kernel, (*arguments, *kernel.numbers)
        words, numbers, uses = [0], [], []
        changed = KINDS[kind].written if kind else (0,)
        for place, argument in enumerate(arguments):
            if isinstance(argument, Deferred):
                numbers.append((argument.array, len(words)))
                argument = argument.array.dtype.type(0)
            if isinstance(argument, np.ndarray):
                uses.append(_Use(len(words), argument.nbytes, place in changed))
                words += (address(argument), argument.size, *argument.strides)
            else:
                words.append(_bits(argument))
        given = [x.array.dtype.type(0) if isinstance(x, Deferred) else x for x in arguments] if numbers else arguments
        code = kernel_of(kernel).code(types_of(given))
        words[0] = code.run
        at = len(self._table) + 3 * len(numbers)
        for array, place in numbers:  # they are put into the table
            self._late.append((len(self._table), at + place))
            self._add("copy", [0, address(array), array.itemsize], [_Use(1, array.itemsize, False)], array)
        self._add("call", words, uses, code, arguments)

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
        self._add("end", [], [], all=True)
        self.meet()  # also where it was passed over: the flag may change next

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
        self._begins.append(at)
        self._table += words
        self._held.append(held)

    def _shape(self) -> list[tuple[str, int | None, int]]:
        """What is done, by which thread, and where its words begin; with a meeting before a call that uses what another
        thread has written since the last one, or writes what that has used."""
        if self.threads == 1:
            return [(kind, None, at) for kind, at in zip(self._kinds, self._begins, strict=True)]
        shape: list[tuple[str, int | None, int]] = []
        used: list[list[Use]] = [[] for _ in range(self.threads)]
        for kind, begin, (thread, uses) in zip(self._kinds, self._begins, self._calls, strict=True):
            begins = [self._table[use.word] for use in uses]
            mine = [Use(at, at + use.size, use.writes) for at, use in zip(begins, uses, strict=True)]
            others = (one for other, done in enumerate(used) if other != thread for one in done)
            if any(one.meets(other) for other in others for one in mine):
                shape.append(("meet", None, 0))
                used = [[] for _ in used]
            shape.append((kind, thread, begin))
            if kind == "meet":
                used = [[] for _ in used]
            for done in used if thread is None else [used[thread]]:
                done += mine
        return shape

    def finish(self) -> None:
        """Put the program together. Copies of a buffer to itself, which `replace` may leave, are left out."""
        steps = zip(self._kinds, self._begins, self._calls, strict=True)
        kept = [x for x in steps if "copy" not in x[0] or self._table[x[1]] != self._table[x[1] + 1]]
        self.length -= len(self._kinds) - len(kept)
        self._kinds, self._begins, self._calls = map(list, zip(*kept, strict=True))
        table = np.array([word & 0xFFFF_FFFF_FFFF_FFFF for word in self._table], np.uint64)
        for word, place in self._late:
            table[word] = address(table) + 8 * place
        program = self._program(address(table))
        code = RUNNER.code(())
        run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64)(code.run)
        self._meeting = np.zeros(_MEETING, np.int64)
        at = [ctypes.c_void_p(address(array)) for array in (program, self.state, self._meeting)]
        self._held.append((table, program, code))
        self._run = lambda thread: run(*at, thread)

    def _program(self, table: int) -> np.ndarray:
        """A step a row. What comes from `begin` to `end` is skipped by going on at the step after it."""
        steps: list[list[int]] = []
        begun: list[list[int]] = []
        for kind, thread, at in self._shape():
            if kind == "end":
                begun.pop()[3] = len(steps)
                continue
            steps.append([_OPERATIONS.index(kind), -1 if thread is None else thread, table + 8 * at, 0])
            if kind == "begin":
                begun.append(steps[-1])
        if self.threads > 1:
            steps.append([_OPERATIONS.index("meet"), -1, 0, 0])
        steps.append([_OPERATIONS.index("over"), -1, 0, 0])
        program = np.array(steps, np.int64)
        program[:, 3] = address(program) + 8 * _STEP * program[:, 3]
        return program

    def rounds(self, most: int, together: Callable[[Callable[[int], Any]], list[Any]] | None = None) -> None:
        """Go round until a round was the last or too wide, or `most` rounds are done in all. Raises MemoryError.
        `together(work)`: what work gives for the number of each thread, all at once."""
        self.state[1:5] = 0, 0, 1, most
        self._meeting[:] = 0
        self._meeting[_THREADS] = self.threads
        ended = [self._run(0)] if together is None else together(self._run)
        if _FAILED in ended:
            raise MemoryError


def _bits(value: Any) -> int:
    """A number as a word that has its bits."""
    if isinstance(value, np.floating):
        return int.from_bytes(value.tobytes(), "little")
    return _bits(np.float64(value)) if isinstance(value, float) else int(value)


# The words of a call: where its code is, and its arguments. Of "over" none: word 3 of the state says whether to go on.
_RUN = f"""
define i64 @run(ptr %program, ptr %state, ptr %meeting, i64 %thread) {{
begin:
  br label %step
step:
  %at = phi ptr [ %program, %begin ], [ %next, %on ], [ %program, %again ], [ %past, %skip ]
  %operation = load i64, ptr %at
  %thread.at = getelementptr i64, ptr %at, i64 1
  %whose = load i64, ptr %thread.at
  %words.at = getelementptr i64, ptr %at, i64 2
  %words = load ptr, ptr %words.at
  %word1 = getelementptr i64, ptr %words, i64 1
  %word2 = getelementptr i64, ptr %words, i64 2
  %word3 = getelementptr i64, ptr %words, i64 3
  %all = icmp eq i64 %whose, -1
  %mine = icmp eq i64 %whose, %thread
  %does = or i1 %all, %mine
  br i1 %does, label %do, label %on
on:
  %next = getelementptr i64, ptr %at, i64 {_STEP}
  br label %step
do:
  switch i64 %operation, label %failed [
    i64 0, label %over
    i64 1, label %call
    i64 2, label %clear
    i64 3, label %copy
    i64 4, label %counted
    i64 5, label %guard
    i64 6, label %meet
  ]
call:
  %code = load ptr, ptr %words
  %status = call i32 %code(ptr %word1)
  %went = icmp eq i32 %status, 0
  br i1 %went, label %on, label %failed
clear:
  %cleared = load ptr, ptr %words
  %cleared.size = load i64, ptr %word1
  call void @llvm.memset.p0.i64(ptr %cleared, i8 0, i64 %cleared.size, i1 false)
  br label %on
copy:
  %to = load ptr, ptr %words
  %from = load ptr, ptr %word1
  %size = load i64, ptr %word2
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  br label %on
counted:
  %some.to = load ptr, ptr %words
  %some.from = load ptr, ptr %word1
  %count.at = load ptr, ptr %word2
  %count = load i64, ptr %count.at
  %item = load i64, ptr %word3
  %some.size = mul i64 %count, %item
  call void @llvm.memmove.p0.p0.i64(ptr %some.to, ptr %some.from, i64 %some.size, i1 false)
  br label %on
guard:
  %flag.at = load ptr, ptr %words
  %flag = load i64, ptr %flag.at
  %holds = icmp ne i64 %flag, 0
  br i1 %holds, label %on, label %skip
skip:
  %past.at = getelementptr i64, ptr %at, i64 3
  %past = load ptr, ptr %past.at
  br label %step
meet:
  %lost = call i1 @meet(ptr %meeting)
  br i1 %lost, label %failed, label %on
over:
  %more.at = getelementptr i64, ptr %state, i64 3
  %more = load i64, ptr %more.at
  %ended = icmp eq i64 %more, 0
  br i1 %ended, label %done, label %again
again:
  br label %step
done:
  ret i64 0
failed:
  %lost.at = getelementptr i64, ptr %meeting, i64 {_LOST}
  store atomic i64 1, ptr %lost.at release, align 8
  ret i64 {_FAILED}
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""
# Threads wait until all of them have come: 0; or one of them is lost: 1. The last to come counts the number on. Who
# waits looks 500 times, then lets others have its core in between, and from 600 times on sleeps for 20 microseconds:
# those who are missing may need the core.
_MEET = f"""
define internal i1 @meet(ptr %meeting) {{
begin:
  %came.at = getelementptr i64, ptr %meeting, i64 {_CAME}
  %number.at = getelementptr i64, ptr %meeting, i64 {_NUMBER}
  %lost.at = getelementptr i64, ptr %meeting, i64 {_LOST}
  %threads.at = getelementptr i64, ptr %meeting, i64 {_THREADS}
  %threads = load i64, ptr %threads.at
  %number = load atomic i64, ptr %number.at acquire, align 8
  %before = atomicrmw add ptr %came.at, i64 1 acq_rel
  %came = add i64 %before, 1
  %all = icmp eq i64 %came, %threads
  br i1 %all, label %last, label %wait
last:
  store atomic i64 0, ptr %came.at monotonic, align 8
  %following = add i64 %number, 1
  store atomic i64 %following, ptr %number.at release, align 8
  br label %met
wait:
  %looks = phi i64 [ 0, %begin ], [ %more, %look ], [ %more, %rest ], [ %looks, %sleep ]
  %now = load atomic i64, ptr %number.at acquire, align 8
  %on = icmp ne i64 %now, %number
  br i1 %on, label %met, label %alone
alone:
  %lost = load atomic i64, ptr %lost.at acquire, align 8
  %gone = icmp ne i64 %lost, 0
  br i1 %gone, label %end, label %look
look:
  PAUSE
  %more = add i64 %looks, 1
  %patient = icmp slt i64 %looks, 500
  br i1 %patient, label %wait, label %tire
tire:
  %tired = icmp sge i64 %looks, 600
  br i1 %tired, label %sleep, label %rest
rest:
  %rested = call i32 @sched_yield()
  br label %wait
sleep:
  %slept = call i32 @usleep(i32 20)
  br label %wait
met:
  ret i1 0
end:
  ret i1 1
}}
declare i32 @sched_yield()
declare i32 @usleep(i32)
"""
_PAUSE = "call void @llvm.x86.sse2.pause()" if platform.machine() in ("x86_64", "AMD64") else ""
# The function that goes through a program, for (program, state, meeting, thread).
RUNNER = Kernel("replay", f"{ASSEMBLY}\n{_PAUSE.replace('call', 'declare')}\n{_RUN}{_MEET.replace('PAUSE', _PAUSE)}")
