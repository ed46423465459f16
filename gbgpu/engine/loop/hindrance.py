"""Why a loop goes statement by statement, as `it.how` tells."""

from typing import Any

from ...interrupts import imported
from ...language.expr import Statement
from ...language.recording import Operation
from ...trace import by_steps

_SIMPLE = ("statement", "clear")
_OTHERS = {
    "loop": "it has an inner loop",
    "build": "it makes objects (make them before it, and write into them)",
    "read": "Python reads a number in each round (conditions of recorded scalars are computed on the device)",
}


def hindrance(session: Any, loop: Any, statements: list[Statement], matrices: list[Any]) -> str | None:
    """What keeps a loop, of these statements, which read these matrices, from going by itself; None where it may."""
    if any(map(_apart, matrices)):
        return "the matrix is partitioned by degree_separated (loops need another partition)"
    if session.ranks is not None:
        return "the session has several ranks"
    if session.kernels.kind == "mixed":
        return "CPU devices compute beside GPUs (gb.init of GPUs alone)"
    if session.deterministic:
        return "the session is deterministic"
    if by_steps:
        return "a trace records each step (gb.trace(rounds=True) records rounds)"
    if (found := _unlike(loop.body, statements)) is not None:
        return found
    captures = session.devices[0].captures
    if not captures:
        return f"devices of the kind {session.devices[0].kind} do not capture rounds"
    if captures == "calls":
        return None if session.kernels.atomic else "kernels are interpreted (gb.settings.interpret, GBGPU_INTERPRET)"
    if loop.has_callback:
        return "on_iteration is called between rounds"
    found = imported("gbgpu.device.graph").available()
    return None if found else "cuda-bindings, or CUDA 12.4, is missing (pip install cuda-bindings)"


def _unlike(operations: list[Operation], statements: list[Statement]) -> str | None:
    """What a body is, other than statements of vectors and scalars, guarded ones too, and conditions at its end."""
    ended = False
    for kind, what, _ in operations:
        if kind == "until":
            ended = True
        elif kind not in (*_SIMPLE, "when"):
            return _OTHERS[kind]
        elif ended:
            return "statements follow it.until (write it.until last)"
        elif kind == "when" and not all(inner.kind in _SIMPLE for inner in what.operations):
            return "it.when contains it.until, a loop or a new object"
    changed = next((statement.output.name for statement in statements if statement.output.ndim > 1), None)
    if changed:
        return f"the matrix {changed} changes (write matrices before it or after it)"
    return None if statements else "it has no statements"


def _apart(matrix: Any) -> bool:
    """Whether products with a matrix may go with its delegates apart."""
    store = matrix._store
    return store is not None and store.rowmap is store.colmap and store.rowmap.heads is not None
