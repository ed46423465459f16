"""A whole loop as one CUDA kernel that stays on the GPU: the kernels that a round launches, one after the other, as
functions of it. Its blocks meet where one of them reads what another one has written, and where a round ends.

Of several GPUs each has a kernel of its own, with what it is given in a round. The blocks of all of them meet where one
GPU reads what another one has written; the first GPU tells what comes next.

Texts are those that are launched otherwise, with RESIDENT defined, each in a namespace of its own. Work that one thread
does (single values, conditions) is done by the last block that comes to a meeting. Whether there is another round is
decided as soon as what tells it is there: what is left of a round goes together with the beginning of the next one.
Arguments lie in one table, in the order of the calls, so that the text does not depend on the data.
"""

import re
import warnings
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ..device import nvrtc
from ..device.base import address
from ..device.rounds import patience
from ..device.store import Recent, code_name
from ..trace import counters
from .gpu_functions import BYTE_FUNCTIONS, FUNCTIONS
from .gpu_source import piece
from .hazards import Launch, Use, is_array, use_of
from .kinds import CONSTANTS

FEW = 64  # bytes that one thread sets or copies
MOST = 2000  # arguments that a kernel has room for
THREADS, BLOCKS = 256, 4  # of a block, and blocks of a multiprocessor
OWN = 6  # arguments of the end of a round before those that its text reads
SHARED = 32 << 10  # bytes that each block of a multiprocessor may have
SOON = False  # to be compiled fast rather than to fast code, for tests
OFTEN, LONG = 8, 0.05  # runs, or seconds, after which a kernel is worth its compilation
_BYTES = {"set_bytes": 1, "copy_bytes": 2}  # where their length stands
_WORD = (1 << 64) - 1


class Code:
    """Machine code of a text: at once where a process has left it on disk; else a thread compiles it, once what waits
    for it has run often, or for a while. `of`: one for all loops with this text."""

    def __init__(self, text: str, arch: str):
        self._text, self._arch, self._cubin = text, arch, nvrtc.kept_cubin(text, arch, SOON)
        self.begun: Future[None] | None = None
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

    def begin(self) -> None:
        """Compile it on another thread, for `ready(True)`."""
        if self._cubin is None:
            nvrtc.begin(self._text, self._arch, soon=SOON)

    def ready(self, now: bool) -> bool:
        if now:
            self._compile()
        return self._cubin is not None

    def wanted(self, seconds: float) -> None:
        """Another run without it took so long."""
        self._runs, self._seconds = self._runs + 1, self._seconds + seconds
        counters.counted += self.begun is None and self._cubin is None
        if self.begun is None and (self._runs >= OFTEN or self._seconds > LONG):
            self.begun = nvrtc.aside(self._compile)
            self.begun.add_done_callback(_told)

    def _compile(self) -> None:
        with self._lock:
            if self._cubin is None:
                self._cubin, self._text = nvrtc.compile_cubin(self._text, self._arch, soon=SOON), ""


def _told(compiled: "Future[None]") -> None:
    """Nobody waits for what is compiled aside."""
    if not compiled.cancelled() and (error := compiled.exception()) is not None:
        warnings.warn(f"a loop goes on as it went, as no kernel could be made of it: {error}", RuntimeWarning, 2)


_codes = Recent()


class Unknown(Exception):
    """What a loop does that has no text."""


class Round(NamedTuple):
    """The parts of a round, its end among them as the last one (of a crossing there is none); the arrays that the end
    writes, three words that tell how far it is first; the words in which each GPU counts, by its number, which are zero
    where it begins."""

    parts: Sequence[Launch]
    changes: Sequence[Any]
    counters: dict[int, Any]


class Order:
    """What each of several GPUs has used since all of them met, where each does its work in the order of a stream."""

    def __init__(self, gpus: Sequence[int]):
        self._first, self._used = gpus[0], {gpu: [] for gpu in gpus}  # type: tuple[int, dict[int, list[Use]]]

    def met(self) -> None:
        for used in self._used.values():
            used.clear()

    def disturbed(self, part: Launch) -> bool:
        """Whether a part has to do with what other GPUs have used. It comes next."""
        gpu, uses = self._first if part.gpu is None else part.gpu, part.uses
        others = [use for other, used in self._used.items() if other != gpu for use in used]
        found = any(one.disturbs(other, False) for one in uses for other in others)
        if found:
            self.met()
        self._used[gpu] += uses
        return found


class _Here:
    """What one GPU has done since its blocks met (`near`), and since those of all GPUs did (`far`); what one thread
    does when they meet next, and what it clears before that, or when all meet."""

    def __init__(self) -> None:
        self.near: list[Use] = []
        self.far: list[Use] = []
        self.alone: list[Launch] = []
        self.late: list[Any] = []  # words that are cleared
        self.later: list[Any] = []


class Program:
    """`text` of the kernel `resident`, the values of its table, the bytes of shared memory that it needs, and how often
    its blocks meet in a round; of GPU `me` among `gpus`, of which the first one tells what comes next.

    There may be two kinds of rounds: the end of one says 2 where the other one is to follow. Then `crossings` are what
    lies between: from the first to the second, and back."""

    def __init__(
        self, rounds: Sequence[Round], crossings: Sequence[Round] = (), gpus: Sequence[int] = (0,), me: int = 0
    ):
        self.values: list[int] = []
        self.shared = 0
        self._gpus, self._me, self._several = gpus, me, len(gpus) > 1
        self._places: dict[int, int] = {}
        self._spaces: dict[str, str] = {}
        self._here = {gpu: _Here() for gpu in gpus}
        self._lines: list[str] = []
        rests = [self._round(number, one) for number, one in enumerate(rounds)]
        self.meetings = sum("meet(" in line or "meet_all(" in line for line in self._lines) // len(rounds)
        self._lines += ["if (told == LOST) break;", "rest = true;", "more = told == 1;"]
        for number, one in enumerate(crossings):
            self._cross(number, rests[number], rounds[number], one)
        lines = "\n        ".join(self._lines)
        ends = self._ended(rounds) if me == gpus[0] else ""
        if len(self.values) > MOST or self.shared > SHARED:
            raise Unknown(f"{len(self.values)} arguments, {self.shared} bytes of shared memory")
        texts = "\n".join(_spaced(name, text) for text, name in self._spaces.items())
        self.text = f"""{patience()}{f"#define GPUS {len(gpus)}" if self._several else ""}
{piece("resident.cuh")}
#define RESIDENT
{"#define CROSSES" if crossings else ""}
{texts}
struct Table {{ Arg arg[{max(len(self.values), 1)}]; }};
extern "C" __global__ void __launch_bounds__({THREADS}, {BLOCKS})
resident(const __grid_constant__ Table table, Meeting *at, volatile long long *ended, long long kind\
{", All all" if self._several else ""}) {{
    Bits64 meetings = heard(&at->said) >> 8; // goes on where the last run ended
    {"all.meetings = heard_by_all(&at->told) >> 8;" if self._several else ""}
    unsigned told = 1;
    bool more = true, rest = false;
    while (true) {{
        {lines}
    }}
    if (told == LOST) ended[0] = 1;
    {ends}
}}
"""

    def _ended(self, rounds: Sequence[Round]) -> str:
        """What one thread tells the host in the end."""
        first, last = (self._given(one.changes[0]) for one in (rounds[0], rounds[-1]))
        return f"""if (blockIdx.x || threadIdx.x) return;
    ended[1] = kind;
    const Bits64 *state = kind ? {last} : {first};
    for (int i = 0; i < 3; i++)
        ended[2 + i] = state[i];"""

    def _round(self, number: int, one: Round) -> list[Launch]:
        """Write a kind of rounds down; returns what follows its end."""
        *body, last = self._parts(one)
        if last.name != "turn":
            raise Unknown("a round without an end")
        body, rest = _split(_ordered(body), last, one)
        here, away = self._counted(rest, one)
        soon = {gpu: {*range(len(words))} - here[gpu] - away[gpu] for gpu, words in one.counters.items()}
        words = {gpu: [one.counters[gpu][i : i + 1] for i in sorted(numbers)] for gpu, numbers in soon.items()}
        for gpu in self._gpus[1:]:  # they cleared these after all had met
            self._here[gpu].far += [use_of(word, True) for word in words[gpu]]
        self._lines += [f"{'else ' * bool(number)}if (kind == {number}) {{", "if (rest) {"]
        for part in rest:
            self._add(part)
        self._lines += ["}", "if (!more) break;"]
        for gpu in self._gpus:
            self._pending(one, gpu, here[gpu], away[gpu])
        for part in body:
            self._add(part)
        self._settle()
        self._tell(last, list(map(self._cleared, words[self._me])))
        self._lines.append("}")
        return rest

    def _pending(self, one: Round, gpu: int, here: set[int], away: set[int]) -> None:
        """Counters of a GPU that what is left of a round uses are cleared when its blocks, or those of all, have met;
        who uses them in the next round waits for that."""
        at, words = self._here[gpu], one.counters[gpu]
        at.late, at.later = ([words[i : i + 1] for i in sorted(numbers)] for numbers in (here, away))
        at.near += [use_of(word, True) for word in at.late]
        if self._several:
            for other in self._here.values():
                other.far += [use_of(word, True) for word in at.later]

    def _settle(self) -> None:
        """Single threads of other GPUs than the first, which come last when all meet, have nothing to do then."""
        if any(self._here[gpu].alone for gpu in self._gpus[1:]):
            self._meet_all()

    def _parts(self, one: Round) -> list[Launch]:
        """Each on its GPU."""
        found = []
        for part in map(_few, one.parts):
            gpu = self._gpus[0] if part.gpu is None else part.gpu
            found.append(replace(part, gpu=gpu))
            if gpu not in self._here:
                raise Unknown(f"work of GPU {gpu}")
        return found

    def _cross(self, number: int, rest: list[Launch], left: Round, one: Round) -> None:
        """What lies between a round of a kind and one of the other kind."""
        self._lines.append(f"{'else ' * bool(number)}if (told == 2 && kind == {number}) {{")
        for part in (*rest, *self._parts(one)):
            self._add(part)
        self._settle()
        here, away = self._counted(rest, left)
        words = {gpu: [left.counters[gpu][i : i + 1] for i in sorted(here[gpu] | away[gpu])] for gpu in self._gpus}
        for gpu, own in one.counters.items():
            words[gpu] += [own[i : i + 1] for i in range(len(own))]
        clear = " ".join(map(self._cleared, words[self._me]))
        self._join(f"{clear} return 1u;", f"{clear} return told;")
        self._lines += [f"kind = {1 - number};", "more = true;", "rest = false;", "}"]

    def _add(self, part: Launch) -> None:
        if part.name == "end":
            self._meet_all()
            self._lines.append("}")
        elif part.name == "guard":
            self._ready(part.gpu, _read(part))
            self._tell(part)
            self._lines.append("if (told == 1) {")
        elif part.alone:
            self._ready(part.gpu, part.uses)
            self._here[part.gpu].alone.append(part)
        else:
            uses, at = part.uses, self._here[part.gpu]
            self._ready(part.gpu, uses)
            if any(one.disturbs(other, False) for one in uses for other in self._far(part.gpu)):
                self._meet_all()
            elif at.alone or any(one.disturbs(other) for one in uses for other in at.near):
                self._meet(part.gpu)
            at.near += uses
            at.far += uses if self._several else ()
            if part.gpu == self._me:
                self.shared = max(self.shared, part.shared)
                self._lines.append(self._call(part))

    def _far(self, gpu: Any) -> list[Use]:
        """What other GPUs have done since all met."""
        return [use for other, at in self._here.items() if other != gpu for use in at.far]

    def _ready(self, gpu: Any, uses: list[Use]) -> None:
        """What single threads of other GPUs have still to do of what is used comes before."""
        others = [at for other, at in self._here.items() if other != gpu]
        waiting = [use for at in others for part in at.alone for use in part.uses]
        if any(one.disturbs(other, False) for one in uses for other in waiting):
            self._meet_all()

    # -- meetings

    def _meet(self, gpu: Any) -> None:
        """The blocks of one GPU meet: those of all, where its single thread reads what others have done."""
        at = self._here[gpu]
        if not (at.alone or at.near):
            return
        uses = [use for part in at.alone for use in part.uses]
        if not self._several or any(one.disturbs(other, False) for one in uses for other in self._far(gpu)):
            return self._meet_all()
        if gpu == self._me:
            self._said(f"meet(at, meetings, [&]() -> unsigned {{ {self._done(at.late)} return 1u; }})")
        at.near, at.alone, at.late = [], [], []
        at.far += uses

    def _meet_all(self) -> None:
        """The blocks of all GPUs meet, if anything was done since they did."""
        if any(at.alone or at.near or at.far for at in self._here.values()):
            self._join("return 1u;", "return told;")

    def _join(self, first: str, others: str) -> None:
        """The blocks of all GPUs meet. `first`, `others`: what one thread of the first GPU, of others, does last."""
        at = self._here[self._me]
        does = f"{self._done([*at.late, *at.later])} {first if self._me == self._gpus[0] else others}"
        if self._several:
            self._said(f"meet_all(at, meetings, all, [&](unsigned told) -> unsigned {{ {does} }})")
        else:
            self._said(f"meet(at, meetings, [&]() -> unsigned {{ {does} }})")
        for gpu, at in self._here.items():
            told = self._several and gpu != self._gpus[0]  # what others do alone comes after all have met
            at.far = [use for part in at.alone for use in part.uses] if told else []
            at.near, at.alone, at.late, at.later = [], [], [], []

    def _said(self, meeting: str) -> None:
        self._lines += [f"told = {meeting};", "if (told == LOST) break;"]

    def _done(self, late: list[Any]) -> str:
        """What one thread does alone."""
        return " ".join([*map(self._cleared, late), *map(self._call, self._here[self._me].alone)])

    def _tell(self, part: Launch, clears: Sequence[str] = ()) -> None:
        """All meet, and are told what a part of the first GPU says; words are cleared unless that is nothing."""
        if part.gpu != self._gpus[0]:
            raise Unknown("what GPUs are told by another one than the first")
        says = f"Bits64 says = 0; {self._call(part, '(Bits64)&says')} " if self._me == self._gpus[0] else ""
        cleared = f"if ({'says' if says else 'told'}) {{ {' '.join(clears)} }} " if clears else ""
        self._join(f"{says}{cleared}return (unsigned)says;", f"{cleared}return told;")

    # -- texts

    def _call(self, part: Launch, handle: str = "") -> str:
        space = self._spaces.setdefault(part.text or nvrtc.BYTES, f"part{len(self._spaces)}")
        names = [each.name for each in FUNCTIONS.get(part.name, ())]
        given = [handle] if handle else []
        for arg, name in zip_longest(part.args[len(given) :], names[len(given) : len(part.args)]):
            given.append(f"{arg}ll" if isinstance(arg, int) and name in CONSTANTS else self._given(arg))
        return f"{space}::{part.name}({', '.join(given)});"

    def _counted(self, parts: list[Launch], turn: Round) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """The numbers of the counters of each GPU that parts of it use, and that others use."""
        here: dict[int, set[int]] = {gpu: set() for gpu in self._gpus}
        away: dict[int, set[int]] = {gpu: set() for gpu in self._gpus}
        for part in parts:
            uses = part.uses
            for gpu, words in turn.counters.items():
                into = here if gpu == part.gpu else away
                for i in range(len(words)):
                    if any(use_of(words[i : i + 1], True).disturbs(use) for use in uses):
                        into[gpu].add(i)
        return {gpu: here[gpu] - away[gpu] for gpu in self._gpus}, away

    def _cleared(self, word: Any) -> str:
        return f"*(Bits64 *)({self._given(word)}.bits) = 0;"

    def _given(self, arg: Any) -> str:
        """An argument, as it lies in the table. Arrays lie there once."""
        bits = _bits(arg)
        found = self._places.get(bits) if is_array(arg) else None
        if found is None:
            found = len(self.values)
            self.values.append(bits)
            if is_array(arg):
                self._places[bits] = found
        return f"table.arg[{found}]"


def _few(part: Launch) -> Launch:
    """Small copies and constants as work of one thread; refused is what has no text."""
    if part.text or part.name == "end":
        return part
    if part.name not in BYTE_FUNCTIONS:
        raise Unknown(part.name)
    if part.name in _BYTES and part.args[_BYTES[part.name]] <= FEW:
        return replace(part, name=part.name.replace("bytes", "few"), alone=True)
    return part


def _ordered(parts: list[Launch]) -> list[Launch]:
    """Parts that have nothing to do with each other side by side, so that blocks meet less often: each as soon as those
    are done that it has to wait for."""
    found: list[Launch] = []
    waiting: list[tuple[tuple[int, bool], Launch, list[Use]]] = []  # (how often blocks have met, whether at a meeting)

    def done() -> None:
        found.extend(part for _, part, _ in sorted(waiting, key=lambda each: each[0]))
        waiting.clear()

    for part in parts:
        if part.ends:
            done()
            found.append(part)
            continue
        uses, met = part.uses, 0
        for (before, alone), other, others in reversed(waiting):
            if before + (not part.alone) <= met:  # it waits for longer already
                continue
            pairs = [(one, another) for one in uses for another in others if one.meets(another)]
            if pairs:
                here = part.gpu == other.gpu
                apart = alone or any(one.disturbs(another, here) for one, another in pairs)
                met = max(met, before + (apart and not part.alone))
        waiting.append(((met, part.alone), part, uses))
    done()
    return found


def _split(body: list[Launch], last: Launch, turn: Round) -> tuple[list[Launch], list[Launch]]:
    """(what goes before the end of a round, what may follow it): the latter has no part in what the end reads, and
    neither reads nor writes what that changes, but counters, which are cleared when they have been read."""
    touched = [use_of(array, True) for array in turn.changes] + _read(last)
    counters = [use_of(words, True) for words in turn.counters.values() if len(words)]
    for at in range(len(body), 0, -1):
        part = body[at - 1]
        uses = [] if part.alone or part.ends else part.uses
        held = any(one.disturbs(other) for one in uses for other in touched)
        held = held or any(one.writes and one.disturbs(other) for one in uses for other in counters)
        if held or not uses:
            return body[:at], body[at:]
    return [], body


def _read(part: Launch) -> list[Use]:
    """What a part reads that tells what comes next."""
    first = {"turn": OWN, "guard": 2}[part.name]
    return [use_of(arg, False) for arg in part.args[first:] if is_array(arg)]


def _bits(arg: Any) -> int:
    if is_array(arg):
        return address(arg)
    return int.from_bytes(arg.tobytes(), "little") if isinstance(arg, np.generic) else int(arg) & _WORD


def _spaced(name: str, text: str) -> str:
    """A text in a namespace, and none of its macros left."""
    return f"namespace {name} {{\n{text}\n}}\n{_undone(text)}"


@lru_cache(maxsize=256)
def _undone(text: str) -> str:
    macros = dict.fromkeys(re.findall(r"^#define (\w+)", text, re.MULTILINE))
    return "".join(f"#undef {macro}\n" for macro in macros)
