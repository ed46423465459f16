"""What a recorded body reads and writes, and which operations a round has."""

from collections.abc import Iterator
from operator import eq, is_
from typing import Any, NamedTuple

from ...language.expr import Expression, Operand
from ...language.index import Index
from ...language.recording import Operation, Recorded, outputs, whole


class Guard(NamedTuple):
    """What `it.when` said at the beginning of a body, taken for as long as it is so."""

    condition: Any
    holds: bool


def statements_of(operations: list[Operation]) -> list[Any]:
    """All statements, guarded ones too."""
    return [each.what for each, _ in _each(operations) if each.kind == "statement"]


def direction_of(statement: Any) -> str | None:
    """The direction that a product took last, or is to take; None where that is not known, and for others."""
    direction: str | None = statement.carried[1].direction if statement.carried else statement.hints.get("direction")
    return direction


def read_only(operations: list[Operation]) -> list[Any]:
    """The handles that operations, guarded ones too, and their conditions read and do not change."""
    found: dict[int, Any] = {}
    changed = set(map(id, outputs(operations)))
    for operation, _ in _each(operations):
        what = operation.what
        if operation.kind == "statement":
            reads = reads_of(what)
        else:
            reads = handles(what.condition if operation.kind == "when" else what)
        found.update((id(x), x) for x in reads if id(x) not in changed)
    return list(found.values())


def content(handle: Any) -> tuple[Any, ...]:
    """What a handle holds: a store and its blocks, or a number of the host's."""
    store = handle._store
    return store, getattr(handle, "_value", None), *(getattr(store, "blocks", None) or ())


def unchanged(handle: Any, known: tuple[Any, ...]) -> bool:
    """Whether a handle holds the objects that `content` gave. (What is written in place is the same for all.)"""
    now = content(handle)
    return len(now) == len(known) and all(map(is_, now, known))


def drained(operations: list[Operation], changed: set[int]) -> Any:
    """The vector that a loop ends without entries of, if that is its only condition: `it.until(q.nvals == 0)`.
    `changed`: ids of the handles that it writes."""
    ends = [each.what for each in operations if each.kind == "until"]
    found = whole(ends[0]) if len(ends) == 1 else None
    if found is None:
        return None
    compare, (what, x), number = found[0], found[1].source, found[2]
    zero = id(number) not in changed and number._store is None and number._value == 0
    return x if compare is eq and what == "nvals" and zero else None


def round_of(loop: Any) -> tuple[list[Operation], list[Guard]]:
    """The operations of the next rounds, for as long as what guards the body's beginning says what it says now."""
    operations: list[Operation] = []
    guards: list[Guard] = []
    for place, operation in enumerate(loop.body):
        if operation.kind != "when" or operations and _changes(operations, operation.what.condition):
            return [*operations, *loop.body[place:]], guards
        guards.append(Guard(operation.what.condition, operation.what.truth()))
        operations += operation.what.operations if guards[-1].holds else []
    return operations, guards


def _changes(operations: list[Operation], condition: Any) -> bool:
    """Whether statements, none of them guarded, write what a condition reads."""
    return not set(map(id, outputs(operations))).isdisjoint(map(id, handles(condition)))


def written(operations: list[Operation]) -> tuple[list[Any], list[Any]]:
    """The handles that a round takes from the one before, as it reads them before it writes them all; and the others
    that it writes."""
    outputs: dict[int, Any] = {}
    taken: dict[int, Any] = {}
    fresh: set[int] = set()

    for operation, sure in _each(operations):
        if operation.kind == "when":
            taken.update((id(x), x) for x in handles(operation.what.condition) if id(x) not in fresh)
        if operation.kind not in ("clear", "statement"):
            continue
        output, reads = operation.what, []
        if operation.kind == "statement":
            output, reads = operation.what.output, reads_of(operation.what)
        reads += [] if sure else [output]  # it may keep what it was
        taken.update((id(x), x) for x in reads if id(x) not in fresh)
        outputs[id(output)] = output
        if sure:
            fresh.add(id(output))
    carried = [x for key, x in outputs.items() if key in taken]
    return carried, [x for key, x in outputs.items() if key not in taken]


def _each(operations: list[Operation], sure: bool = True) -> Iterator[tuple[Operation, bool]]:
    """Operations, and whether each round does them."""
    for operation in operations:
        yield operation, sure
        if operation.kind == "when":
            yield from _each(operation.what.operations, False)


def reads_of(statement: Any) -> list[Any]:
    """The handles that a statement reads; its output too, if it writes only a part."""
    found = handles(statement.expr)
    index = getattr(statement.index, "vector", None)
    if index is not None:
        found.append(index)
    if statement.mask is not None:
        found.append(statement.mask.parent)
    if statement.mask is not None or statement.accum is not None or statement.index is not None:
        found.append(statement.output)
    return found


def matrices_of(statements: list[Any]) -> list[Any]:
    """The matrices that statements read."""
    found = []
    for statement in statements:
        expr = statement.expr
        for x in handles(expr) if expr.nested else (expr.left, expr.right):
            if x is not None and x.ndim == 2:
                found.append(getattr(x, "matrix", x))
    return found


def handles(x: Any) -> list[Any]:
    """The handles that an expression reads, those of vectors that name indices too."""
    found, waiting = [], [x]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Expression):
            option = node.option if isinstance(node.option, tuple) else (node.option,)
            indices = (part.vector for part in option if isinstance(part, Index))
            waiting += [part for part in (node.left, node.right, *option, *indices) if isinstance(part, Operand)]
        elif isinstance(node, Recorded):
            waiting.append(node.source[1])
        elif isinstance(node, Operand) and not node.lazy:
            found.append(getattr(node, "matrix", node))
    return found
