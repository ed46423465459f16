"""Object files made callable, without the compiler that wrote them: importing that takes a second.

On x86-64 Linux this module is the linker. Elsewhere LLVM is.
"""

import ctypes
import mmap
import struct
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from ..interrupts import imported
from .entry import objects

_X86_64, _RELOCATABLE = 62, 1
_SYMBOLS, _RELOCATIONS, _NOTHING = 2, 4, 8  # types of sections: the last one has no bytes in the file
_WRITES, _LOADED = 1, 2  # flags of sections
_COMMON, _UNDEFINED = 0xFFF2, 0
_WORD, _NEAR, _CALL = 1, 2, 4  # relocations: an address of 64 bits, a distance of 32, one to a function
_FASTCALL = 0x80
_FRAMES = b".eh_frame\0"  # for debuggers and exceptions of C++
_NEEDED = "call", "run"


class Unlinkable(Exception):
    """An object file with something that this linker does not know."""


class Code:
    """The machine code of a kernel. `call`: what Python calls, which calls `other` with arguments of other types;
    `run`: the address of the kernel itself, or of what else an object file is for."""

    __slots__ = "_memory", "call", "run"

    def __init__(self, object: bytes, other: Any):
        linked = link(object)
        self.run, self._memory = linked.names["run"], linked.memory
        self.call: Any = other
        if "call" in linked.names:
            method = _Method(b"kernel", linked.names["call"], _FASTCALL, None)
            self.call = _new_function(ctypes.byref(method), other, (method, linked.memory))  # which keeps these two


class _Method(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype = ctypes.py_object
_new_function.argtypes = ctypes.c_void_p, ctypes.py_object, ctypes.py_object


class Linked(NamedTuple):
    """Where the functions of an object file begin, and what keeps them there."""

    names: dict[str, int]
    memory: Any


def link(object: bytes) -> Linked:
    if object[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<HH", object, 16) == (_RELOCATABLE, _X86_64):
        try:
            return _Elf(object).linked()
        except Unlinkable:
            pass
    return _by_llvm(object)


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    begin: int
    size: int
    link: int
    info: int
    align: int


class _Elf:
    """A relocatable file of x86-64: its sections are copied to memory, and addresses in them filled in."""

    def __init__(self, object: bytes):
        self._object = object
        (table,), (size, count) = struct.unpack_from("<Q", object, 40), struct.unpack_from("<HH", object, 58)
        fields = (struct.unpack_from("<IIQQQQIIQQ", object, table + i * size) for i in range(count))
        self._sections = [_Section(f[0], f[1], f[2], f[4], f[5], f[6], f[7], max(f[8], 1)) for f in fields]
        self._at: dict[int, int] = {}  # of sections: their addresses

    def linked(self) -> Linked:
        tables = [section for section in self._sections if section.kind == _SYMBOLS]
        if len(tables) != 1:
            raise Unlinkable("no table of symbols")
        symbols = self._symbols(tables[0])
        room = self._layout(symbols)
        memory = mmap.mmap(-1, room)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        addresses = self._addresses(symbols, base)
        for number, at in self._at.items():
            section = self._sections[number]
            if section.kind != _NOTHING:
                memory[at : at + section.size] = self._object[section.begin : section.begin + section.size]
        for section in self._sections:
            if section.kind == _RELOCATIONS and section.info in self._at:
                self._relocate(section, memory, base, symbols, addresses)
        if _protect(base, self._fixed, mmap.PROT_READ | mmap.PROT_EXEC):
            raise MemoryError("memory that holds machine code can't be made executable")
        names = {name: addresses[i] for i, (name, *_) in enumerate(symbols) if name in _NEEDED}
        return Linked(names, memory)

    def _symbols(self, table: _Section) -> list[tuple[str, int, int, int]]:
        """Name, section, value and size of each."""
        names, found = self._sections[table.link], []
        for at in range(table.begin, table.begin + table.size, 24):
            name, _, _, section, value, size = struct.unpack_from("<IBBHQQ", self._object, at)
            begin = names.begin + name
            found.append((self._object[begin : self._object.index(0, begin)].decode(), section, value, size))
        return found

    def _layout(self, symbols: list[tuple[str, int, int, int]]) -> int:
        """Give sections their places, those that are written on pages of their own. Returns the bytes of all."""
        end, self._common = 0, 0
        names = self._sections[struct.unpack_from("<H", self._object, 62)[0]].begin
        loaded = [
            (number, one)
            for number, one in enumerate(self._sections)
            if one.flags & _LOADED and one.size and not self._object.startswith(_FRAMES, names + one.name)
        ]
        for written in (0, _WRITES):
            for number, section in loaded:
                if section.flags & _WRITES == written:
                    self._at[number] = end = _up(end, section.align)
                    end += section.size
            if not written:
                self._fixed = end = _up(end, mmap.PAGESIZE)
        self._common = _up(end, 16)
        room = sum(_up(size, 16) for _, section, _, size in symbols if section == _COMMON)
        return max(self._common + room, mmap.PAGESIZE)

    def _addresses(self, symbols: list[tuple[str, int, int, int]], base: int) -> list[int]:
        found, common = [], self._common
        for name, section, value, size in symbols:
            if section == _COMMON:
                found.append(base + common)
                common += _up(size, 16)
            elif section in self._at:
                found.append(base + self._at[section] + value)
            else:
                found.append(symbol(name) if section == _UNDEFINED and name else value)
        return found

    def _relocate(
        self, section: _Section, memory: Any, base: int, symbols: list[tuple[str, int, int, int]], addresses: list[int]
    ) -> None:
        first = self._at[section.info]
        for at in range(section.begin, section.begin + section.size, 24):
            offset, kind, number, more = struct.unpack_from("<QIIq", self._object, at)
            place, value = first + offset, addresses[number] + more
            if kind == _WORD:
                struct.pack_into("<Q", memory, place, value & 0xFFFF_FFFF_FFFF_FFFF)
            elif kind in (_NEAR, _CALL) and -(1 << 31) <= value - base - place < 1 << 31:
                struct.pack_into("<i", memory, place, value - base - place)
            else:
                raise Unlinkable(f"relocation {kind}")


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _protect(begin: int, size: int, how: int) -> int:
    return int(ctypes.CDLL(None).mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(size), how))


_objects = cache(objects)
given: dict[str, int] = {}  # addresses of our own functions that others call, by name


@cache
def symbol(name: str) -> int:
    """The address of what an object file refers to. Raises Unlinkable if there is none."""
    found = given.get(name) or _objects().get(name)
    if found is not None:
        return found
    for library in (ctypes.pythonapi, ctypes.CDLL(None)):
        with suppress(AttributeError):
            return int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
    raise Unlinkable(name)


def _by_llvm(object: bytes) -> Linked:
    binding = imported("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name, at in {**_objects(), **given}.items():
        binding.add_symbol(name, at)
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(object))
    engine.finalize_object()
    names = {name: engine.get_function_address(name) for name in _NEEDED}
    return Linked({name: at for name, at in names.items() if at}, engine)
