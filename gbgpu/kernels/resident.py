"""A whole loop as one CUDA kernel that stays on the GPU: the kernels that a round launches, one after the other, as
functions of it. Its blocks meet where one of them reads what another one has written, and where a round ends.

Texts are those that are launched otherwise, with RESIDENT defined, each in a namespace of its own. Work that one thread
does (single values, conditions) is done by the last block that comes to a meeting. Whether there is another round is
decided as soon as what tells it is there: what is left of a round goes together with the beginning of the next one.
Arguments lie in one table, in the order of the calls, so that the text does not depend on the data.
"""

import re
from collections.abc import Sequence
from functools import cache
from threading import Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from ..device import nvrtc
from ..device.base import address
from ..device.store import Recent, code_name
from .gpu_source import piece

FEW = 64  # bytes that one thread sets or copies
MOST = 480  # arguments that a kernel has room for
THREADS, BLOCKS = 256, 4  # of a block, and blocks of a multiprocessor
SHARED = 32 << 10  # bytes that each block of a multiprocessor may have
OFTEN, LONG = 8, 0.05  # runs, or seconds, after which a kernel is worth its compilation
_BYTES = {"set_bytes": 1, "copy_bytes": 2}  # where their length stands
_SIZED = (f"{work}{size}" for work in ("fill", "copy", "take") for size in (1, 2, 4, 8))
_OURS = {*_BYTES, *_SIZED, "checked4", "checked8"}
_FIXED = ("flags", "p", "astride", "xstride", "tstride", "bstride", "cstride")  # arguments that a plan tells
_WORD = (1 << 64) - 1

# Arrays of which a thread touches the elements thread_id(), thread_id() + thread_count(), ..., and no other ones: what
# one kernel leaves there the next one finds without a meeting.
_OWN: dict[str, tuple[str, ...]] = {
    "drain": ("touched", "out_slots", "out_vals"),
    "write_list": ("tslots", "tvals"),
    "frontier_edges": ("slots",),
    "list_words": ("slots",),
    **dict.fromkeys(("scatter", "select_list", "mask_list"), ("slots", "xvals")),
    "ewise_list": ("slots", "avals"),
    **dict.fromkeys((f"copy{size}" for size in (1, 2, 4, 8)), ("out", "in")),
    **dict.fromkeys((f"take{size}" for size in (1, 2, 4, 8)), ("out", "ids")),
    **dict.fromkeys(("checked4", "checked8"), ("slots", "ids")),
}


class Code:
    """Machine code of a text: at once where a process has left it on disk; else a thread compiles it, once what waits
    for it has run often, or for a while. `of`: one for all loops with this text."""

    def __init__(self, text: str, arch: str):
        self._text, self._arch, self._cubin = text, arch, nvrtc.kept_cubin(text, arch)
        self._thread: Thread | None = None
        self._lock = Lock()
        self._runs, self._seconds = 0, 0.0
        self._loaded: dict[int, Any] = {}  # by GPU

    @staticmethod
    def of(text: str, arch: str) -> "Code":
        code: Code = _codes.get((code_name(text), arch), lambda: Code(text, arch))
        return code

    def loaded(self, device: Any) -> Any:
        """The kernel on a GPU, once it is ready."""
        if device.gpu not in self._loaded:
            self._loaded[device.gpu] = device.load(self._cubin)("resident")
        return self._loaded[device.gpu]

    def ready(self, now: bool) -> bool:
        if now:
            self._compile()
        return self._cubin is not None

    def wanted(self, seconds: float) -> None:
        """Another run without it took so long."""
        self._runs, self._seconds = self._runs + 1, self._seconds + seconds
        if self._thread is None and (self._runs >= OFTEN or self._seconds > LONG):
            self._thread = Thread(target=self._compile)
            self._thread.start()

    def _compile(self) -> None:
        with self._lock:
            if self._cubin is None:
                self._cubin, self._text = nvrtc.compile_cubin(self._text, self._arch), ""


_codes = Recent()


class Unknown(Exception):
    """What a loop does that has no text."""


class Part(NamedTuple):
    """One thing that a GPU is given in a round: a kernel of a text ("": one of device/bytes.cu), or (name "end") the
    end of what the last open guard guards. `alone`: one thread does it."""

    text: str
    name: str
    args: tuple = ()
    shared: int = 0
    alone: bool = False

    @property
    def ends(self) -> bool:
        """Whether it tells what comes next."""
        return self.name in ("end", "guard", "turn")


class Use(NamedTuple):
    """A range of addresses that a part reads or writes. `own`: each thread its own elements."""

    begin: int
    end: int
    writes: bool
    own: bool = False

    def disturbs(self, other: "Use") -> bool:
        meets = self.begin < other.end and other.begin < self.end and (self.writes or other.writes)
        return meets and not (self.own and other.own and self.begin == other.begin)


class Round(NamedTuple):
    """The parts of a round, its end among them as the last one (of a crossing there is none); the arrays that the end
    writes, three words that tell how far it is first; words that are zero where it begins, of which it uses the first
    `used`."""

    parts: Sequence[Part]
    changes: Sequence[Any]
    counters: Any
    used: int


class Program:
    """`text` of the kernel `resident`, the values of its table, the bytes of shared memory that it needs, and how often
    its blocks meet in a round.

    There may be two kinds of rounds: the end of one says 2 where the other one is to follow. Then `crossings` are what
    lies between: from the first to the second, and back."""

    def __init__(self, rounds: Sequence[Round], crossings: Sequence[Round] = ()):
        self.values: list[int] = []
        self.shared = 0
        self._places: dict[int, int] = {}
        self._spaces: dict[str, str] = {}
        self._uses: list[Use] = []
        self._alone: list[str] = []
        self._late: list[str] = []  # done at the next meeting
        self._lines: list[str] = []
        rests = [self._round(number, one) for number, one in enumerate(rounds)]
        self.meetings = sum("meet(" in line for line in self._lines) // len(rounds)
        self._lines += ["if (told == LOST) break;", "rest = true;", "more = told == 1;"]
        for number, one in enumerate(crossings):
            self._cross(number, rests[number], rounds[number], one)
        first, last = (self._given(one.changes[0]) for one in (rounds[0], rounds[-1]))
        lines = "\n        ".join(self._lines)
        if len(self.values) > MOST or self.shared > SHARED:
            raise Unknown(f"{len(self.values)} arguments, {self.shared} bytes of shared memory")
        texts = "\n".join(_spaced(name, text) for text, name in self._spaces.items())
        self.text = f"""{piece("resident.cuh")}
#define RESIDENT
{"#define CROSSES" if crossings else ""}
{texts}
struct Table {{ Arg arg[{max(len(self.values), 1)}]; }};
extern "C" __global__ void __launch_bounds__({THREADS}, {BLOCKS})
resident(const __grid_constant__ Table table, Meeting *at, volatile long long *ended, long long kind) {{
    Bits64 meetings = 0;
    unsigned told = 1;
    bool more = true, rest = false;
    while (true) {{
        {lines}
    }}
    if (told == LOST) ended[0] = 1;
    if (blockIdx.x || threadIdx.x) return;
    ended[1] = kind;
    const Bits64 *state = kind ? {last} : {first};
    for (int i = 0; i < 3; i++)
        ended[2 + i] = state[i];
}}
"""

    def _round(self, number: int, one: Round) -> list[Part]:
        """Write a kind of rounds down; returns what follows its end."""
        *body, last = map(_few, one.parts)
        if last.name != "turn":
            raise Unknown("a round without an end")
        body, rest = _split(body, last, one)
        late = _counted(rest, one)
        self._lines += [f"{'else ' * bool(number)}if (kind == {number}) {{", "if (rest) {"]
        for part in rest:
            self._add(part)
        self._lines += ["}", "if (!more) break;"]
        self._late = [self._cleared(one, i) for i in sorted(late)]
        for part in body:
            self._add(part)
        soon = " ".join(self._cleared(one, i) for i in range(one.used) if i not in late)
        self._meet(f"Bits64 on = 0; {self._call(last, '(Bits64)&on')} if (on) {{ {soon} }} return (unsigned)on;")
        self._lines.append("}")
        return rest

    def _cross(self, number: int, rest: list[Part], left: Round, one: Round) -> None:
        """What lies between a round of a kind and one of the other kind."""
        self._lines.append(f"{'else ' * bool(number)}if (told == 2 && kind == {number}) {{")
        for part in (*rest, *map(_few, one.parts)):
            self._add(part)
        words = [self._cleared(left, i) for i in sorted(_counted(rest, left))]
        self._alone += words + [self._cleared(one, i) for i in range(one.used)]
        self._meet()
        self._lines += [f"kind = {1 - number};", "more = true;", "rest = false;", "}"]

    def _add(self, part: Part) -> None:
        if part.name == "end":
            self._meet()
            self._lines.append("}")
        elif part.name == "guard":
            self._meet(f"Bits64 holds = 0; {self._call(part, '(Bits64)&holds')} return holds != 0;")
            self._lines.append("if (told == 1) {")
        elif part.alone:
            self._alone.append(self._call(part))
        else:
            uses = _uses(part)
            if self._alone or any(one.disturbs(other) for one in uses for other in self._uses):
                self._meet()
            self._uses += uses
            self.shared = max(self.shared, part.shared)
            self._lines.append(self._call(part))

    def _meet(self, told: str = "") -> None:
        """`told`: what returns what is told to all."""
        if not (told or self._alone or self._uses):
            return
        alone = " ".join([*self._late, *self._alone, told or "return 1u;"])
        self._lines += [f"told = meet(at, meetings, [&]() -> unsigned {{ {alone} }});", "if (told == LOST) break;"]
        self._alone, self._late, self._uses = [], [], []

    def _call(self, part: Part, handle: str = "") -> str:
        text = part.text or nvrtc.BYTES
        space = self._spaces.setdefault(text, f"part{len(self._spaces)}")
        names = [name for name, _ in _signature(text, part.name)]
        given = [handle] if handle else []
        for i, arg in enumerate(part.args[len(given) :], len(given)):
            fixed = isinstance(arg, int) and i < len(names) and names[i] in _FIXED
            given.append(f"{arg}ll" if fixed else self._given(arg))
        return f"{space}::{part.name}({', '.join(given)});"

    def _cleared(self, turn: Round, i: int) -> str:
        return f"*(Bits64 *)({self._given(turn.counters[i : i + 1])}.bits) = 0;"

    def _given(self, arg: Any) -> str:
        """An argument, as it lies in the table. Arrays lie there once."""
        bits = _bits(arg)
        found = self._places.get(bits) if _is_array(arg) else None
        if found is None:
            found = len(self.values)
            self.values.append(bits)
            if _is_array(arg):
                self._places[bits] = found
        return f"table.arg[{found}]"


def _few(part: Part) -> Part:
    """Small copies and constants as work of one thread; refused is what has no text."""
    if part.text or part.name == "end":
        return part
    if part.name not in _OURS:
        raise Unknown(part.name)
    if part.name in _BYTES and part.args[_BYTES[part.name]] <= FEW:
        return part._replace(name=part.name.replace("bytes", "few"), alone=True)
    return part


def _split(body: list[Part], last: Part, turn: Round) -> tuple[list[Part], list[Part]]:
    """(what goes before the end of a round, what may follow it): the latter has no part in what the end reads, and
    neither reads nor writes what that changes, but counters, which are cleared when they have been read."""
    changes = [_use(array, True) for array in turn.changes]
    touched = changes + [_use(arg, False) for arg in last.args if _is_array(arg) and arg is not turn.counters]
    counters = _use(turn.counters[: turn.used], True)
    for at in range(len(body), 0, -1):
        part = body[at - 1]
        uses = [] if part.alone or part.ends else _uses(part)
        held = any(one.disturbs(other) for one in uses for other in touched)
        held = held or any(one.writes and one.disturbs(counters) for one in uses)
        if held or not uses:
            return body[:at], body[at:]
    return [], body


def _counted(parts: list[Part], turn: Round) -> set[int]:
    """The numbers of the counters that parts read."""
    uses = [use for part in parts for use in _uses(part)]
    words = ((i, _use(turn.counters[i : i + 1], True)) for i in range(turn.used))
    return {i for i, word in words if any(word.disturbs(use) for use in uses)}


def _is_array(arg: Any) -> bool:
    return hasattr(arg, "nbytes") and not isinstance(arg, np.generic)


def _bits(arg: Any) -> int:
    if _is_array(arg):
        return address(arg)
    return int.from_bytes(arg.tobytes(), "little") if isinstance(arg, np.generic) else int(arg) & _WORD


def _use(array: Any, writes: bool, own: bool = False) -> Use:
    begin = address(array)
    return Use(begin, begin + max(int(array.nbytes), 1), writes, own)


def _uses(part: Part) -> list[Use]:
    """What a call reads and writes."""
    text = part.text or nvrtc.BYTES
    signature = _signature(text, part.name)
    values = {name: arg for (name, _), arg in zip(signature, part.args, strict=False) if isinstance(arg, int)}
    whole = part.name == "drain" and values.get("p") == 1
    skipped: tuple[str, ...] = ("out_counts",) if whole else ()
    if part.name == "drain" and "const bool ISO = true;" in text:
        skipped += "out_vals", "acc_vals"
    own = _OWN.get(part.name, ()) if whole or part.name != "drain" else ()
    found = []
    for i, arg in enumerate(part.args):
        name, only = signature[i] if i < len(signature) else ("", False)
        if _is_array(arg) and name not in skipped:
            moves = values.get(f"{name[0]}stride", 1) != 0 if name.endswith("vals") else True
            found.append(_use(arg, not only, name in own and moves))
    return found


@cache
def _signature(text: str, name: str) -> tuple[tuple[str, bool], ...]:
    """(name, whether it is only read) of the parameters of a kernel; nothing where the text does not show it."""
    name = "pull" if name.startswith("pull_short") else name  # whose parameters begin alike
    found = re.search(rf"KERNEL\w*(?:\(\d+\))?\s+{name}\s*\(([^)]*)\)", text)
    if found is None:
        return ()
    parameters = [" ".join(one.split()) for one in found[1].split(",")]
    return tuple((re.split(r"[ *]", one)[-1], one.startswith("const ")) for one in parameters)


def _spaced(name: str, text: str) -> str:
    """A text in a namespace, and none of its macros left."""
    macros = dict.fromkeys(re.findall(r"^#define (\w+)", text, re.MULTILINE))
    undone = "".join(f"#undef {macro}\n" for macro in macros)
    return f"namespace {name} {{\n{text}\n}}\n{undone}"
