"""The ways that a round may go: what guards its beginning, and the direction of each of its products."""

from typing import Any

from ... import settings
from ...kernels.interface import ends_soon
from ...language.expr import Statement
from ...language.recording import Operation
from .body import direction_of, round_of
from .captured import FRONTIERS
from .limits import THIN, made_there, there, vector_of

HANDED = 2e-4  # seconds that a statement takes to hand out, for each GPU
ROADS = 8  # entries of a row, on average, from which frontiers may get wide
Way = tuple[tuple[bool, ...], tuple[str | None, ...]]
UNGUARDED: Way = (), ()  # of a first round


def way_of(loop: Any, pinned: dict[int, Statement] | None = None) -> Way:
    """How the next round goes: what guards its beginning, and the directions that its statements took, or are pinned
    to."""
    operations, guards = round_of(loop)
    chosen = [pinned[id(each)] if pinned else each for each in among(operations)]
    return tuple(holds for _, holds in guards), tuple(map(direction_of, chosen))


def among(operations: list[Operation]) -> list[Statement]:
    """The statements that are done in each round."""
    return [operation.what for operation in operations if operation.kind == "statement"]


def directed(statement: Statement, direction: str | None) -> Statement:
    """The statement in a direction, unless its hints say another one."""
    hints = {"direction": direction, **statement.hints} if direction else statement.hints
    return Statement(
        statement.output, statement.mask, statement.accum, statement.replace, statement.expr, statement.index, hints
    )


def turned(session: Any, loop: Any, pinned: dict[int, Statement]) -> dict[int, Statement] | None:
    """The statements, those in the other direction that may come to it: what is pulled once few are left, what is
    pushed once many are, of matrices that lie by the rows that it takes (for pulls they are made so). None if there are
    none, and on devices that choose by counts."""
    if session.devices[0].captures != "graph" or settings.resident == "never":
        return None
    found = {id(each): _in_turn(session, each, pinned[id(each)]) for each in among(round_of(loop)[0])}
    return None if not any(found.values()) else {key: found.get(key) or each for key, each in pinned.items()}


def _in_turn(session: Any, statement: Statement, pinned: Statement) -> Statement | None:
    expr, took = statement.expr, direction_of(pinned)
    x = vector_of(expr)
    if x is None or took is None or "direction" in statement.hints or x._store.form not in FRONTIERS.values():
        return None
    if took == "pull":
        return None if there(expr, "push") is None else directed(statement, "push")
    # Searches alone are known to turn to pulls, where rows are long enough for wide frontiers.
    held = there(expr, "push") if ends_soon(expr.op.monoid) else None
    if held is None or held.nvals < max(THIN, ROADS * held.colmap.n):
        return None
    return directed(statement, "pull") if made_there(session, expr, "pull") else None
