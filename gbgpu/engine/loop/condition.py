"""What ends a loop, as a kernel: recorded scalars become CUDA text, what they are made of arguments."""

from typing import Any

from ...language.expr import Expression
from ...language.recording import Recorded
from ...language.scalar import Scalar
from ...semiring._lower import cast_program, literal_cuda, to_cuda


class NotCompiled(Exception):
    """A loop that runs statement by statement, and why."""


class Condition:
    """Texts of recorded scalars, and the device arrays that they read."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.arrays: list[Any] = []
        self.present: list[str] = []  # what must be there for the condition to hold

    def text(self, node: Any) -> str:
        """A scalar as an expression of C."""
        if isinstance(node, Recorded):
            return self._recorded(*node.source)
        if isinstance(node, Expression) and node.kind == "number":
            return self._number(node)
        if isinstance(node, Expression) and not node.shape:
            node = node.new()  # computed in each round
        if not isinstance(node, Scalar):
            raise NotCompiled(f"{node.name} is read in its condition")
        if node._store is None:
            if node._value is None:
                raise NotCompiled(f"{node.name} is empty")
            return literal_cuda(node._value, node.dtype)
        both, vals, empty = node._store
        value = f"(({node.dtype.c_type} *){self._array(vals)})[0]"
        there = f"(({self._array(both)})[1] & 1)"
        if empty is None:
            self.present.append(there)
            return value
        return f"({there} ? {value} : {literal_cuda(empty, node.dtype)})"

    def _recorded(self, what: str, x: Any) -> str:
        if what == "index":
            return "round"
        if what != "nvals":
            raise NotCompiled("its condition reads a value")
        store = x._store
        if x.ndim != 1:
            raise NotCompiled("its condition counts entries of a matrix")
        if store is None:
            return "0ll"
        if store.form == "full":
            return f"{store.map.n}ll"
        return "(" + " + ".join(f"{self._array(block.count)}[0]" for block in store.blocks) + ")"

    def _number(self, node: Expression) -> str:
        if node.op is None or node.option.missing != "intersect" and self._may_miss(node):
            raise NotCompiled(f"{node.text} is computed on the host")
        given = []
        for side, (_, dtype) in zip((node.left, node.right), node.op.program.params, strict=False):
            if side is not None:
                given.append(f"{self._function(cast_program(side.dtype, dtype))}({self.text(side)})")
        return f"{self._function(node.op.program)}({', '.join(given)})"

    def _may_miss(self, node: Any) -> bool:
        """Whether a scalar may be empty."""
        if isinstance(node, Recorded):
            return False
        if isinstance(node, Expression) and node.kind == "number":
            return any(self._may_miss(side) for side in (node.left, node.right) if side is not None)
        if isinstance(node, Scalar):
            return node._store is None and node._value is None or node._store is not None and node._store[2] is None
        return not (isinstance(node, Expression) and node.kind == "reduce" and node.option.empty is not None)

    def _array(self, array: Any) -> str:
        self.arrays.append(array)
        return f"a{len(self.arrays) - 1}"

    def _function(self, program: Any) -> str:
        text = to_cuda(program, "NAME")
        for number, known in enumerate(self.functions):
            if known == text:
                return f"f{number}"
        self.functions.append(text)
        return f"f{len(self.functions) - 1}"

    def kernel(self, done: list[str], copies: list[tuple[str, str, int]], limits: list[tuple[str, int]]) -> str:
        """The last kernel of a round: whether it was the last. `copies`: (target, source, bytes) of single values;
        `limits`: counts above which statements take over."""
        words = {1: "char", 2: "short", 4: "int", 8: "long long"}
        lines = [f"*({words[size]} *){target} = *({words[size]} *){source};" for target, source, size in copies]
        arguments = "".join(f", long long *a{i}" for i in range(len(self.arrays)))
        functions = "\n".join(text.replace(" NAME(", f" f{i}(") for i, text in enumerate(self.functions))
        there = "".join(f" && {present}" for present in self.present)
        ends = " || ".join(f"((bool){text}{there})" for text in done) or "false"
        wide = " || ".join(f"{count} > {limit}ll" for count, limit in limits) or "false"
        return f"""{functions}
extern "C" __device__ void cudaGraphSetConditional(unsigned long long, unsigned);
extern "C" __global__ void turn(unsigned long long handle, long long *state, volatile long long *abort, long long most,
                                long long *words, long long used{arguments}) {{
    __shared__ bool goes_on;
    if (threadIdx.x == 0) {{
        const long long round = state[0];
        const bool done = {ends};
        {" ".join(lines)}
        const bool wide = {wide};
        state[0] = round + 1;
        state[1] = done;
        state[2] = wide;
        goes_on = !done && !wide && round + 1 < most && !*abort;
        cudaGraphSetConditional(handle, goes_on);
    }}
    __syncthreads();
    if (goes_on)
        for (long long i = threadIdx.x; i < used; i += 32) words[i] = 0;
}}
"""
