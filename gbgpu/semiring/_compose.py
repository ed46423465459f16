"""Operators of operators: abs(minus(x, y)) is one binary operator, so that a chain is one pass over its operands."""

from __future__ import annotations

from typing import Any

from gbgpu.semiring._operators import BinaryOp, Typed, UnaryOp
from gbgpu.semiring._scalar import Node, Program, Sym, cast, node, ordered, param
from gbgpu.semiring._types import DataType

_MOST = 10_000  # remembered; functions without a name could make any number
_made: dict[tuple, Typed] = {}


def is_plain(op: Any, inputs: int) -> bool:
    """A unary (1) or binary (2) typed operator of values alone."""
    kind = getattr(getattr(op, "op", None), "kind", "")
    return kind == ("unary", "binary")[inputs - 1] and not op.is_positional and len(op.program.params) == inputs


def compose(outer: Typed, *inner: Typed | None) -> Typed:
    """outer(inner[0](...), inner[1](...)), of at most two values; None lets a value through as it is."""
    key = outer, *inner
    found = _made.get(key)
    if found is None:
        if len(_made) >= _MOST:
            _made.clear()
        found = _made.setdefault(key, _composed(outer, inner))
    return found


def _composed(outer: Typed, inner: tuple[Typed | None, ...]) -> Typed:
    types: list[DataType] = []
    for op, dtype in zip(inner, outer.dtypes, strict=False):
        types += [dtype] if op is None else op.dtypes
    params = list(zip("xy", types, strict=False))
    left = [param(*each).node for each in params]
    given = []
    for op, (_, dtype) in zip(inner, outer.program.params, strict=True):
        value = left.pop(0) if op is None else _applied(op.program, [left.pop(0) for _ in op.program.params])
        given.append(cast(Sym(value), dtype).node)
    text = ", ".join("xy"[i] if op is None else op.name for i, op in enumerate(inner))
    kind = UnaryOp if len(types) == 1 else BinaryOp
    program = Program(params, outer.return_type, _applied(outer.program, given))
    return Typed(kind(f"{outer.name}({text})", outer.op.function), tuple(types), program)


def _applied(program: Program, values: list[Node]) -> Node:
    """The body with values for its parameters."""
    made: dict[int, Node] = {}
    named = {name: value for (name, _), value in zip(program.params, values, strict=True)}
    for n in ordered(program.body):
        if n.op == "param":
            made[id(n)] = named[str(n.value)]
        else:
            made[id(n)] = node(n.op, n.dtype, tuple(made[id(a)] for a in n.args), n.value) if n.args else n
    return made[id(program.body)]
