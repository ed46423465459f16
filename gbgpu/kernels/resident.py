"""A whole loop as one CUDA kernel that stays on the GPU: the kernels that a round launches, one after the other, as
functions of it. Its blocks meet where one of them reads what another one has written, and at the end of each round.

Texts are those that are launched otherwise, with RESIDENT defined, each in a namespace of its own. Work that one thread
does (single values, conditions) is done by the last block that comes to a meeting. Arguments lie in one table, in the
order of the calls, so that the text does not depend on the data.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..device.base import address
from .gpu_source import SOURCES, plain

FEW = 64  # bytes that one thread sets or copies
MOST = 480  # arguments that a kernel has room for
_OURS = {"set_bytes", "copy_bytes", *(f"{work}{size}" for work in ("fill", "copy") for size in (1, 2, 4, 8))}
_FIXED = ("flags", "p", "astride", "xstride", "tstride", "bstride", "cstride")  # arguments that a plan tells
_WORD = (1 << 64) - 1


class Unknown(Exception):
    """What a loop does that has no text."""


class Part(NamedTuple):
    """One thing that a GPU is given in a round: a kernel of a text ("": one of bytes.cu), or (name "end") the end of
    what the last open guard guards. `alone`: one thread does it."""

    text: str
    name: str
    args: tuple = ()
    shared: int = 0
    alone: bool = False


class Program:
    """`text` of the kernel `resident`, the values of its table, and the bytes of shared memory that it needs."""

    def __init__(self, parts: Sequence[Part], threads: int):
        self.values: list[int] = []
        self.shared = 0
        self._places: dict[int, int] = {}
        self._spaces: dict[str, str] = {}
        self._reads: list[tuple[int, int]] = []
        self._writes: list[tuple[int, int]] = []
        self._alone: list[str] = []
        self._lines: list[str] = []
        self._open = 0
        for part in map(_few, parts):
            self._add(part)
        if self._open or not self._lines or not self._lines[-1].startswith("told = "):
            raise Unknown("a round without an end")
        if len(self.values) > MOST:
            raise Unknown(f"{len(self.values)} arguments")
        body = "\n        ".join(self._lines)
        texts = "\n".join(_spaced(name, text) for text, name in self._spaces.items())
        self.text = f"""{(SOURCES / "resident.cuh").read_text()}
#define RESIDENT
{texts}
struct Table {{ Arg arg[{max(len(self.values), 1)}]; }};
extern "C" __global__ void __launch_bounds__({threads}) resident(const __grid_constant__ Table table, Meeting *at,
                                                                     volatile long long *lost) {{
    Bits64 meetings = 0;
    unsigned told = 1;
    do {{
        {body}
    }} while (told == 1);
    if (told == LOST) *lost = 1;
}}
"""

    def _add(self, part: Part) -> None:
        if part.name == "end":
            self._meet()
            self._open -= 1
            self._lines += ["}", "if (told == LOST) break;"]
        elif part.name == "guard":
            self._alone.append(f"unsigned long long holds = 0; {self._call(part, '(Bits64)&holds')} return holds != 0;")
            self._meet(always=True)
            self._open += 1
            self._lines.append("if (told == 1) {")
        elif part.name == "turn":
            self._alone.append(f"unsigned long long on = 0; {self._call(part, '(Bits64)&on')} return on != 0;")
            self._meet(always=True)
        elif part.alone:
            self._alone.append(self._call(part))
        else:
            reads, writes = _touched(part)
            if self._alone or _meets(writes, self._reads + self._writes) or _meets(reads, self._writes):
                self._meet()
            self._reads += reads
            self._writes += writes
            self.shared = max(self.shared, part.shared)
            self._lines.append(self._call(part))

    @property
    def meetings(self) -> int:
        return sum("meet(" in line for line in self._lines)

    def _meet(self, always: bool = False) -> None:
        if not (always or self._alone or self._reads or self._writes):
            return
        told = self._alone and "return " in self._alone[-1]
        alone = " ".join([*self._alone, "" if told else "return 1u;"])
        self._lines.append(f"told = meet(at, meetings, [&]() -> unsigned {{ {alone} }});")
        if not told:
            self._lines.append("if (told == LOST) break;")
        self._alone, self._reads, self._writes = [], [], []

    def _call(self, part: Part, handle: str = "") -> str:
        space = self._spaces.setdefault(part.text or plain("bytes.cu"), f"part{len(self._spaces)}")
        names = [name for name, _ in _signature(part.text or plain("bytes.cu"), part.name)]
        given = [handle] if handle else []
        for i, arg in enumerate(part.args[len(given) :], len(given)):
            fixed = isinstance(arg, int) and i < len(names) and names[i] in _FIXED
            given.append(f"{arg}ll" if fixed else f"table.arg[{self._place(arg)}]")
        return f"{space}::{part.name}({', '.join(given)});"

    def _place(self, arg: Any) -> int:
        """Where an argument lies in the table. Arrays lie there once."""
        array = hasattr(arg, "data") and not isinstance(arg, np.generic)
        bits = address(arg) if array else _bits(arg)
        found = self._places.get(bits) if array else None
        if found is None:
            found = len(self.values)
            self.values.append(bits)
            if array:
                self._places[bits] = found
        return found


def _few(part: Part) -> Part:
    """Small copies and constants as work of one thread; refused is what has no text."""
    if part.text or part.name in ("end", "guard", "turn"):
        return part
    if part.name not in _OURS:
        raise Unknown(part.name)
    sizes = {"set_bytes": 1, "copy_bytes": 2}
    if part.name in sizes and part.args[sizes[part.name]] <= FEW:
        return part._replace(name=part.name.replace("bytes", "few"), alone=True)
    return part


def _bits(arg: Any) -> int:
    if isinstance(arg, np.generic):
        return int.from_bytes(arg.tobytes(), "little")
    return int(arg) & _WORD


def _touched(part: Part) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(what a call reads, what it may write), as ranges of addresses."""
    signature = _signature(part.text or plain("bytes.cu"), part.name)
    reads, writes = [], []
    for i, arg in enumerate(part.args):
        if not hasattr(arg, "nbytes") or isinstance(arg, np.generic):
            continue
        begin = address(arg)
        only = i < len(signature) and signature[i][1]
        (reads if only else writes).append((begin, begin + max(int(arg.nbytes), 1)))
    return reads, writes


def _meets(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> bool:
    return any(a < d and c < b for a, b in some for c, d in others)


@cache
def _signature(text: str, name: str) -> tuple[tuple[str, bool], ...]:
    """(name, whether it is only read) of the parameters of a kernel; nothing where the text does not show it."""
    found = re.search(rf"KERNEL\w*(?:\(\d+\))?\s+{name}\s*\(([^)]*)\)", text)
    if found is None:
        return ()
    parameters = [" ".join(one.split()) for one in found[1].split(",")]
    return tuple((re.split(r"[ *]", one)[-1], one.startswith("const ")) for one in parameters)


def _spaced(name: str, text: str) -> str:
    """A text in a namespace, and none of its macros left."""
    undone = "".join(f"#undef {macro}\n" for macro in dict.fromkeys(_macros(text)))
    return f"namespace {name} {{\n{text}\n}}\n{undone}"


def _macros(text: str) -> Iterator[str]:
    yield from re.findall(r"^#define (\w+)", text, re.MULTILINE)
