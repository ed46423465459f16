"""What a device can do: hold one-dimensional buffers, copy them, and run work. Everything above sees only this."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from ctypes import c_size_t
from typing import Any, Protocol

import numpy as np

HEADER = object.__basicsize__  # bytes of an object before its own fields: the last 8 are its type


def cores() -> list[int]:
    """Those that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


class Device(Protocol):
    """One executor with private memory. Arrays are of its own module (NumPy on the CPU, CuPy on CUDA)."""

    name: str  # "cpu:0", "cuda:0", "cuda:0/2" (the third logical device of GPU 0)
    model: str  # the product's name
    kind: str  # "cpu" or "cuda"; devices of one kind share a kernel backend
    shares_memory: bool  # its memory is the host's, and that of all such devices
    captures: str  # how rounds of loops are captured: "calls" of CPU kernels, a CUDA "graph", "" where they are not
    relieve: Any  # weak, or None: what gives memory back before an allocation fails, and says whether there was any
    xp: Any  # its array module, with NumPy's names: what is not worth a kernel of its own is written in it

    def here(self) -> AbstractContextManager:
        """The context in which what this thread does goes to this device."""

    def empty(self, n: int, dtype: Any) -> Any:
        """n unwritten elements; 8-bit types are padded to whole 32-bit words, for atomics."""

    def zeros(self, n: int, dtype: Any) -> Any: ...

    def full(self, n: int, value: Any, dtype: Any) -> Any: ...

    def halves(self, words: Any, dtype: Any) -> tuple[Any, Any]:
        """Of two words the first one, as a value of a type, and the second one."""

    def put(self, array: np.ndarray) -> Any:
        """A copy of a host array on the device."""

    def get(self, buffer: Any) -> np.ndarray:
        """A copy on the host: waits for the device, and counts as a host read."""

    def peek(self, buffer: Any) -> np.ndarray | None:
        """The content if the host can see it for nothing (CPU devices), else None."""

    def clear(self, buffer: Any) -> None:
        """All elements to zero."""

    def copy(self, target: Any, source: Any) -> None:
        """target[:] = source; source may be of another device of the same set, as it was before the step in hand: what
        follows there waits."""

    def at_once(self) -> AbstractContextManager:
        """Copies and clears inside may be done together, in any order, by its end."""

    def copy_counted(self, target: Any, source: Any, count: Any) -> None:
        """Copy the first count[0] elements; the count, of this device, stays where it is."""

    def reach(self, array: Any) -> None:
        """What this device is given in this step may read an array of another one where it lies, or write it."""

    def where(self, source: Any, words: Any) -> Any:
        """Elements at whose places bits are set in words of this device, anything elsewhere; source as in `copy`."""

    def truths(self, flags: Any) -> Any:
        """How many booleans are true: one int64 on the device."""

    def set_bits(self, words: Any) -> Any:
        """How many bits are set: the same."""

    def has_empty(self, indptr: Any) -> bool:
        """Whether two neighbours in row offsets are equal."""

    def longest(self, indptr: Any) -> int:
        """The largest difference of neighbours in row offsets."""

    def lengths(self, indptr: Any, vals: Any, words: Any, count: Any) -> None:
        """The differences of neighbours in row offsets, where they are not 0: their values, presence bits, and how many
        (added to `count`)."""

    def equal(self, one: Any, two: Any) -> bool:
        """Whether two arrays of one type are equal in each bit."""

    def offsets(self, lengths: Any) -> Any:
        """The sum of all numbers before each, and of all, as int64."""

    def rows_of(self, words: Any, n: int) -> Any:
        """Which of n bits are set, ascending."""

    def kept(self, keep: Any, n: int, indptr: Any, arrays: Sequence[Any]) -> tuple[Any, int, list[Any]]:
        """Of n entries those that `keep` has (booleans, or a bit each in words): int64 offsets of the rows, how many
        there are, and what arrays have at them (the arrays themselves, where these are all)."""

    def is_line(self, indptr: Any, cols: Any, first: int) -> bool:
        """Whether each row r has one entry, in column first + r."""

    def owners(self, indptr: Any, total: int) -> Any:
        """For each of `total` entries the row whose part of `indptr` it lies in."""

    def checked(self, ids: Any, n: int, dtype: str) -> tuple[Any, Any]:
        """(ids, with -1 in place of those outside 0 .. n - 1; whether there are any)."""

    def at(self, vals: Any, ids: Any) -> Any:
        """vals[ids], which are known to be there."""

    def take(self, vals: Any, ids: Any, n: int) -> tuple[Any, Any]:
        """(vals[ids]; whether there are ids outside 0 .. n - 1, in whose place any value is)."""

    def adopt(self, array: Any) -> Any:
        """An array of another library in memory that this device reads, as one of its own; None where there is none
        such."""

    def order(self, keys: Any) -> Any:
        """The permutation that sorts integers; equal ones keep their order."""

    def transpose(self, n: int, m: int, indptr: Any, cols: Any, vals: Any) -> tuple[Any, Any, Any]:
        """CSR of the transposed n x m matrix: (indptr, cols, vals); None for values: none."""

    def uncaptured(self) -> AbstractContextManager:
        """Where what outlives a statement is made: at once, also while a loop is captured."""

    @property
    def total(self) -> int:
        """Bytes of memory."""

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and `total`."""

    def has_room(self, need: float) -> bool:
        """Whether more than so many bytes are free."""

    def synchronize(self) -> None: ...

    def mark(self) -> Any:
        """The point in time at which this device has done all that it was given."""

    def busy(self) -> Any:
        """A mark of the time for which this device has worked. On CPU devices it is that of the calling thread: a
        device does not count what others do on its core."""

    def between(self, one: Any, two: Any) -> float | None:
        """Seconds from one mark to another; None if it has not come to that."""


class DeviceSet(Protocol):
    """The devices of a session. `switches`: work goes to a current device, which `over` chooses. `direct`: the kernels
    of each read what any of them holds where it lies; `one_memory`: and as fast as their own."""

    switches: bool
    one_memory: bool

    @property
    def direct(self) -> bool: ...

    @property
    def devices(self) -> Sequence[Device]: ...

    def over(self, tasks: Sequence[Any], work: Callable[[Any], Any], seconds: float, whole: bool = False) -> list[Any]:
        """work(task) for every task, each on task.device, at the same time where that pays for a step of `seconds`
        predicted; results in the order of the tasks. What interrupts the caller leaves threads to end on their own,
        unless `whole`: then they have ended when this returns or raises."""

    def inline(self, p: int, seconds: float) -> bool:
        """Whether `over` calls the work of p tasks on the caller's thread alone."""

    def forked(self) -> str | None:
        """In a child process, after a fork: begin anew; or say why that can't be."""

    def close(self) -> None: ...


def address(array: Any) -> int:
    """Where a buffer begins, in the memory of its device."""
    if isinstance(array, np.ndarray):  # its first field: NumPy's attributes take six times as long
        return c_size_t.from_address(id(array) + HEADER).value
    pointer = getattr(getattr(array, "data", None), "ptr", None)
    return id(array) if pointer is None else int(pointer)
