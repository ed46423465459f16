"""What ends a loop, as a kernel: recorded scalars become text, what they are made of arguments."""

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

from ...language.expr import Expression
from ...language.recording import Recorded
from ...language.scalar import ALIKE, Scalar
from ...semiring._lower import cast_program, literal_cuda, literal_text, to_cuda, to_text
from .journal import NotCompiled
from .noted import NOTED, WORDS

NOTES = 5  # the word of what counts rounds that says where a GPU leaves notes of them, or 0
GONE_WIDE, TURNS, UNLIKE, THINNED = 1, 2, 3, 4  # why rounds of a kind ended, but for the end of the loop: see Limits
POLLED = 16  # rounds after which a GPU looks at the host's memory, whether it is to stop
# The word that counts rounds in a row that are done better otherwise, and how many of them may pull for few vertices,
# and push thin frontiers where those may be wide.
THIN_SINCE, LONG, TAIL = 6, 16, 64
PUSHED, UNEVEN = 4, 7  # words that add up the edges of frontiers, and those that the fullest block has beyond the mean


class Limits(NamedTuple):
    """Texts of what ends rounds of one kind: the next one has other statements (`unlike`), or is done better otherwise:
    by statements (`wide`), or in rounds of another kind (`other`); or it may be, where this goes on (`thin`: pulls for
    few vertices; `tail`: frontiers of few edges, in rounds that are made for wide ones). `loads`: the edges of each
    block's frontier, for each product (see PUSHED)."""

    unlike: list[str]
    wide: list[str]
    other: list[str]
    thin: list[str]
    loads: Sequence[Sequence[str]] = ()
    tail: Sequence[str] = ()


class Condition:
    """Texts of recorded scalars, and the device arrays that they read; a subclass knows the language."""

    literal: Any  # (value, type) -> its text
    printed: Any  # (program, name) -> a function
    choice: str  # of {1} if {0}, else {2}
    both: str
    either: str
    no: str

    def first(self, vals: Any, dtype: Any) -> str:
        """The value in an array of one."""
        raise NotImplementedError

    def there(self, both: Any) -> str:
        """Whether the second word of an array says so."""
        raise NotImplementedError

    def kernel(self, done: list[str], copies: list[tuple[str, str, int]], limits: Limits) -> str:
        """The last kernel of a round: whether it was the last. `copies`: (target, source, bytes) of single values,
        all read before one is written."""
        raise NotImplementedError

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.arrays: list[Any] = []
        self.index = "round"  # the number of the round that is asked for
        self.present: list[str] = []  # what must be there for the condition to hold
        self.entries = self.change = ""  # texts of the first count, and the first number, that is compared

    def text(self, node: Any) -> str:
        """A scalar as an expression."""
        if isinstance(node, Recorded):
            return self._recorded(*node.source)
        if isinstance(node, Expression) and node.kind == "number":
            return self._number(node)
        if isinstance(node, Expression) and not node.shape:
            node = node.new()  # computed in each round
        if not isinstance(node, Scalar):
            raise NotCompiled(f"its condition reads {node.name}, which is no Scalar")
        if node._store is None:
            if node._value is None:
                raise NotCompiled(f"{node.name} is empty")
            return self.literal(node._value, node.dtype)
        both, vals, empty = node._store
        value, there = self.first(vals, node.dtype), self.there(both)
        if empty is None:
            self.present.append(there)
            return value
        return self.choice.format(there, value, self.literal(empty, node.dtype))

    def _recorded(self, what: str, x: Any) -> str:
        if what == "index":
            return self.index
        if what == "value":
            return self.text(x)
        if what != "nvals":
            raise NotCompiled("its condition reads v.get(i) or v.isequal(w), which Python computes")
        store = x._store
        if x.ndim != 1:
            raise NotCompiled("its condition counts entries of a matrix")
        if store is None:
            return "0"
        if store.form == "full":
            return str(store.map.n)
        text = "(" + " + ".join(f"{self.array(block.count)}[0]" for block in store.blocks) + ")"
        self.entries = self.entries or text
        return text

    def _number(self, node: Expression) -> str:
        missing = node.option.missing
        if node.op is None or missing not in ("intersect", *ALIKE) and self._may_miss(node):
            raise NotCompiled(f"{node.text} is computed on the host")
        given, there, outer = [], [], self.present
        for side, (_, dtype) in zip((node.left, node.right), node.op.program.params, strict=False):
            if side is not None:
                self.present = []
                text = self.text(side)
                there.append(self.present)
                if side.dtype.kind == "f" and not (isinstance(side, Scalar) and side._store is None):
                    self.change = self.change or text
                given.append(f"{self._function(cast_program(side.dtype, dtype))}({text})")
        self.present, text = outer, f"{self._function(node.op.program)}({', '.join(given)})"
        if missing not in ALIKE or not any(there):
            self.present += sum(there, [])
            return text
        both = [f" {self.both} ".join(present) for present in there]
        neither = self.negated(self.any(both), True) if all(there) else self.no
        if missing == "ne":
            neither = self.negated(neither, True)
        return self.choice.format(f" {self.both} ".join(filter(None, both)), text, neither)

    def _may_miss(self, node: Any) -> bool:
        """Whether a scalar may be empty."""
        if isinstance(node, Recorded):
            return node.source[0] == "value" and self._may_miss(node.source[1])
        if isinstance(node, Expression) and node.kind == "number":
            alike = node.op is not None and node.option.missing in ALIKE
            return not alike and any(self._may_miss(side) for side in (node.left, node.right) if side is not None)
        if isinstance(node, Scalar):
            return node._store is None and node._value is None or node._store is not None and node._store[2] is None
        return not (isinstance(node, Expression) and node.kind == "reduce" and node.option.empty is not None)

    def array(self, array: Any) -> str:
        self.arrays.append(array)
        return f"a{len(self.arrays) - 1}"

    def _function(self, program: Any) -> str:
        text = self.printed(program, "NAME")
        for number, known in enumerate(self.functions):
            if known == text:
                return f"f{number}"
        self.functions.append(text)
        return f"f{len(self.functions) - 1}"

    def cast(self, text: str, source: Any, target: Any) -> str:
        """A text of another type."""
        return text if source is target else f"{self._function(cast_program(source, target))}({text})"

    def negated(self, text: str, holds: bool) -> str:
        """Whether a text no longer says what it said."""
        return f"({self.no} == bool({text}))" if holds else f"bool({text})"

    def holds(self, text: str) -> str:
        """Whether a text says yes, and all that it reads is there."""
        there = "".join(f" {self.both} {present}" for present in self.present)
        return f"(bool({text}){there})"

    def any(self, texts: list[str]) -> str:
        return self.either.join(texts) or self.no

    @property
    def defined(self) -> str:
        """The functions that texts call."""
        texts = (text.replace(" NAME(", f" f{i}(") for i, text in enumerate(self.functions))
        return "\n".join(texts)


# Kernels of one thread: of a graph, whose handles they set, or within one kernel.
_ALONE = """#ifdef RESIDENT
#define ALONE __device__ __forceinline__ void
#define TELL(handle, value) *(unsigned long long *)(handle) = (value)
#else
#define ALONE extern "C" __global__ void
#define TELL cudaGraphSetConditional
extern "C" __device__ void cudaGraphSetConditional(unsigned long long, unsigned);
#endif"""


class CudaCondition(Condition):
    """Arguments are arrays of words, whatever they hold."""

    literal, printed = staticmethod(literal_cuda), staticmethod(to_cuda)
    choice, both, either, no = "({} ? {} : {})", "&&", " || ", "false"

    def first(self, vals: Any, dtype: Any) -> str:
        return f"(({dtype.c_type} *){self.array(vals)})[0]"

    def there(self, both: Any) -> str:
        return f"({self.array(both)}[1] & 1)"

    def kernel(self, done: list[str], copies: list[tuple[str, str, int]], limits: Limits) -> str:
        words = {1: "char", 2: "short", 4: "int", 8: "long long"}
        lines = [f"const {words[size]} v{i} = *({words[size]} *){copy[1]};" for i, (*copy, size) in enumerate(copies)]
        lines += [f"*({words[size]} *){target} = v{i};" for i, (target, _, size) in enumerate(copies)]
        return f"""{_ALONE}
{self.defined}
ALONE turn(unsigned long long handle, long long *state, volatile long long *abort, long long most, long long *words,
           long long used{self._arguments}) {{
    const long long round = state[0];
    const bool done = {self.any(done)};
    if (state[{NOTES}]) {{ // somebody traces
        long long *const note = (long long *)state[{NOTES}] + {WORDS} * (round % {NOTED}), *const kind = state;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(note[0]));
        note[1] = (long long)kind;
        ((double *)note)[2] = {self._double(self.entries)};
        ((double *)note)[3] = {self._double(self.change)};
    }}
    {" ".join(lines)}
    const bool unlike = {self.any(limits.unlike)};
#ifdef CROSSES // into rounds of another kind
    const bool wide = unlike, other = {self.any(limits.other)}, better = false, thin = false;
#else
    const bool better = !unlike && ({self.any(limits.other)});
    state[{THIN_SINCE}] = {self.any([*limits.thin, *limits.tail])} ? state[{THIN_SINCE}] + 1 : 0;
    const bool thin = state[{THIN_SINCE}] > {TAIL if limits.tail else LONG};
    const bool wide = unlike || thin || {self.any(limits.wide)}, other = false;
#endif
    {"".join(map(self._load, limits.loads))}
    state[0] = round + 1;
    state[1] = done;
    state[2] = unlike ? {UNLIKE} : !wide ? 0 : better ? {TURNS} : thin ? {THINNED} : {GONE_WIDE};
    const int goes_on = !done && !wide && round + 1 < most && (round % {POLLED} || !*abort) ? 1 + other : 0;
    state[3] = goes_on;
    TELL(handle, goes_on);
#ifndef RESIDENT // which knows when it is to clear which counters
    for (long long i = 0; goes_on && i < used; i++) words[i] = 0;
#endif
}}
"""

    def _load(self, names: Sequence[str]) -> str:
        """What one product adds to the edges that GPUs push, and wait for."""
        most, all = reduce("max({}, {})".format, names), " + ".join(names)
        return f"state[{PUSHED}] += {all}; state[{UNEVEN}] += {most} - ({all}) / {len(names)}; "

    def _double(self, text: str) -> str:
        return f"(double)({text})" if text else "__longlong_as_double(-1ll)"  # NaN

    def computing(self, text: str, dtype: Any) -> str:
        """A kernel that leaves a value, and that there is one."""
        return f"""{_ALONE}
{self.defined}
ALONE number(long long *out{self._arguments}) {{
    *({dtype.c_type} *)out = {text};
    out[1] = -1;
}}
"""

    def guarding(self, text: str) -> str:
        """A kernel that says whether a part of the round runs."""
        return f"""{_ALONE}
{self.defined}
ALONE guard(unsigned long long handle, long long *out{self._arguments}) {{
    out[0] = {self.holds(text)};
    TELL(handle, out[0]);
}}
"""

    @property
    def _arguments(self) -> str:
        return "".join(f", long long *a{i}" for i in range(len(self.arrays)))


class CpuCondition(Condition):
    """Text of a CPU kernel. Arguments are arrays of their types."""

    literal, printed = staticmethod(literal_text), staticmethod(to_text)
    choice, both, either, no = "({1} if {0} else {2})", "and", " or ", "False"

    def first(self, vals: Any, dtype: Any) -> str:
        return f"{self.array(vals)}[0]"

    def there(self, both: Any) -> str:
        return f"({self.array(both)}[1] & 1 != 0)"

    def kernel(self, done: list[str], copies: list[tuple[str, str, int]], limits: Limits) -> str:
        lines = [f"v{i} = {source}[0]" for i, (_, source, _) in enumerate(copies)]
        lines += [f"{target}[0] = v{i}" for i, (target, _, _) in enumerate(copies)]
        return self._module(
            "state, seen",
            "round = state[0]",
            f"done = {self.any(done)}",
            f"seen[0] = {self.entries or 'np.nan'}",
            f"seen[1] = {self.change or 'np.nan'}",
            *lines,
            f"state[2] = {UNLIKE} if {self.any(limits.unlike)} else {GONE_WIDE} if {self.any(limits.wide)} else 0",
            "state[0] = round + 1",
            "state[1] = done",
            "state[3] = not done and state[2] == 0 and round + 1 < state[4]",
        )

    def computing(self, text: str) -> str:
        """A kernel that leaves a value."""
        return self._module("out", f"out[0] = {text}")

    def _module(self, first: str, *lines: str) -> str:
        arguments = "".join(f", a{i}" for i in range(len(self.arrays)))
        body = "\n".join(f"    {line}" for line in lines)
        return f"{_HEAD}\n{self.defined}\ndef kernel({first}{arguments}):\n{body}\n"


_HEAD = "import math\nimport numpy as np\n"
