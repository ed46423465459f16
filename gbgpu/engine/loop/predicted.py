"""What a round of a loop is predicted to take, from the plans that its statements took last."""

from collections.abc import Iterator, Sequence
from typing import Any

from ...distribute.blocks import KNOWN
from ...language.expr import Statement
from ..direction import counted_edges, pull_seconds
from .body import round_of, statements_of
from .limits import as_it_lies, vector_of

# Whole vectors that steps bring to each GPU; of what is scattered each has all rows, too.
BROUGHT = {"gather": 1, "take": 1, "extract": 1, "remap": 1, "place": 1, "scatter": 2}
SELDOM = 0.1  # rounds in which a guard holds, as a guess
_THIN = ("scalar", "spread", "borrow", "move", "mask", "count", "push", "exchange", "combine", "write_list", "unwrite")


class Predicted:
    """Of a loop that writes `outputs`."""

    def __init__(self, session: Any, loop: Any, outputs: Sequence[Any]):
        self._session, self._loop, self._outputs = session, loop, outputs

    def seconds(self, chosen: bool = False) -> float:
        """Predicted seconds of a round on the device, of its pulls and of passes over rows; `chosen`: without products
        that go one way only."""
        found = ((often, each) for often, each in self._expected() if not chosen or not self.whole(each))
        return sum(often * self._work(each) for often, each in found)

    def brought(self) -> float:
        """Bytes of the whole vectors that each GPU reads in a round, its own part among them."""
        return sum(often * self._bytes(each) for often, each in self._expected())

    def _expected(self) -> Iterator[tuple[float, Statement]]:
        """Statements of a round that have been planned, and how often they come."""
        for operation in round_of(self._loop)[0]:
            often = SELDOM if operation.kind == "when" else 1.0
            yield from ((often, each) for each in statements_of([operation]) if each.carried is not None)

    def _pulled_from(self, statement: Statement) -> Any:
        """The matrix of a product that goes by a pull, as it lies; None of others, and where it is not there yet."""
        expr, direction = statement.expr, statement.carried[1].direction
        if direction != "pull" or expr.kind != "product":
            return None
        operand = expr.right if expr.left.ndim == 1 else expr.left
        return None if operand.lazy else as_it_lies(self._session, expr, direction)

    def _bytes(self, statement: Statement) -> float:
        """Of whole vectors that a statement brings; single values don't count."""
        held = self._pulled_from(statement)
        thin = held is not None and (held.halo is not None or held.near)
        return sum(_bytes(step) for step in statement.steps if not (thin and step.kind == "gather"))

    def _work(self, statement: Statement) -> float:
        costs, held = self._session.kernels.costs, self._pulled_from(statement)
        seconds: float = costs.row * sum(map(_rows, statement.steps))
        if held is not None:
            rows = self._allowed(statement.mask, held)
            seconds += pull_seconds(costs, statement.expr.op, held, held.rowmap, held.colmap, None, rows)
        return seconds

    def _allowed(self, mask: Any, held: Any) -> int | None:
        """Rows of the mean length that have as many entries as those that a mask lets through, if that stays so."""
        x = None if mask is None or not mask.structural else getattr(mask.parent, "_store", None)
        if x is None or x.form not in KNOWN or x.map is not held.rowmap or any(mask.parent is w for w in self._outputs):
            return None
        count = self._session.known_count(x) or 0
        entries = held.nvals
        if x.form != "full":
            entries, _ = counted_edges(self._session, x, count, held)
        entries = held.nvals - entries if mask.complement else entries
        return int(entries * held.rowmap.n / max(held.nvals, 1))

    def whole(self, statement: Statement) -> bool:
        """Whether a product has all rows of a full vector, and sums."""
        x, expr = vector_of(statement.expr), statement.expr
        full = x is not None and x._store.form == "full"
        return full and statement.mask is None and not expr.op.monoid.is_any

    def sums(self, statements: list[Statement]) -> bool:
        """Whether there is such a product among them."""
        return any(self.whole(each) for each in statements if each.expr.kind == "product")

    def timed(self, statements: list[Statement], matrices: list[Any]) -> bool:
        """Whether a first round goes by statements, as devices are to be timed in such a product."""
        moving = None if self._loop.rounds else self._session.repartitioning
        return moving is not None and moving.due(matrices) and self.sums(statements)


def _rows(step: Any) -> int:
    """Rows that a step passes over; none, if it works on lists."""
    if step.kind in _THIN or step.into.form == "list" or step.into.map is None:
        return 0
    return int(step.into.map.n)


def _bytes(step: Any) -> float:
    """Of whole vectors that a step brings."""
    into = step.into
    if step.kind not in BROUGHT or into.map is None:
        return 0.0
    each = (0 if into.iso else into.dtype.np_type.itemsize) + (0 if into.form == "full" else 1 / 8)
    return float(BROUGHT[step.kind] * into.map.n * each)
