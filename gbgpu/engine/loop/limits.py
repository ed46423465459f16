"""When rounds of one kind end: a frontier is too wide for the pushes of a captured round, or thin enough for others."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...device.remote import AWAY
from ...distribute.blocks import MatrixStore
from ...kernels.interface import ends_soon
from ...language.expr import Expression, Statement
from ..assign import counting
from ..direction import DENSE, by_columns, frontier_edges, lies_both_ways, pull_seconds
from .body import direction_of
from .condition import Condition, Limits

# A frontier is pushed until it has one of MANY edges, and again from one of FEW vertices: Beamer, Asanovic, Patterson,
# "Direction-Optimizing Breadth-First Search", SC 2012, section V.
MANY, FEW = 14, 24
SKEWED = 32  # times the mean entries of the longest row from which one of twice as many is: pulls find hubs soon
THIN, SHORT = 1 << 20, 64  # edges of a frontier that few blocks expand; entries of the longest row of a road map
WIDE = 1 << 26  # edges of each block's part of a frontier, in rounds that are worth it (`Breadth`)
FEWER = 1 << 15  # edges of a frontier from which such rounds are not
PASSES = 1e-5  # seconds of a round's passes over rows from which they want all the blocks that a graph gives them
LITTLE = 1 << 18  # entries of a matrix that a CPU device pushes as soon as it begins anew


class Breadth(NamedTuple):
    """How a captured round pushes lists. few: by few blocks of a GPU, which take long for more than THIN edges. Else
    statements that fill bitmaps are faster than lists from there on where they fill them, but not by as much as it
    takes to go from rounds to statements and back: `often`, where a loop has done so again and again."""

    few: bool = False
    often: bool = False

    def edges(self, held: MatrixStore) -> int:
        """Of each block's part of a frontier, that a round expands well."""
        return THIN if self.few else WIDE if self.often else max(THIN, held.colmap.n // DENSE // len(held.blocks))


def products(
    session: Any, statements: Iterable[Statement], direction: str, form: str
) -> Iterator[tuple[Any, Any, MatrixStore]]:
    """(semiring, vector, matrix as it lies for the direction) of each product of a vector of a form."""
    for statement, held in going(session, statements, direction):
        x = vector_of(statement.expr)
        if x is not None and x._store.form == form:
            yield statement.expr.op, x, held


def going(session: Any, statements: Iterable[Statement], direction: str) -> Iterator[tuple[Statement, MatrixStore]]:
    """The products that go in a direction, and the matrix as it lies for that."""
    for statement in statements:
        if direction_of(statement) == direction and statement.expr.kind == "product":
            yield statement, as_it_lies(session, statement.expr, direction)


def vector_of(expr: Expression) -> Any:
    """The vector that a product multiplies; None where that is an expression or has no entries, and for others than
    products."""
    x = None if expr.kind != "product" else expr.left if expr.left.ndim == 1 else expr.right
    return None if x is None or x.lazy or x._store is None else x


def as_it_lies(session: Any, expr: Expression, direction: str) -> MatrixStore:
    """The matrix of a product with a vector, by the rows that a direction takes."""
    held: MatrixStore = session.oriented(*_turned(expr, direction))
    return held


def there(expr: Expression, direction: str) -> MatrixStore | None:
    """The same, if it lies so; None where it would have to be made."""
    matrix, transposed = _turned(expr, direction)
    return None if matrix.lazy or matrix._store is None else by_columns(matrix._store, transposed)


def made_there(session: Any, expr: Expression, direction: str) -> bool:
    """Whether it lies so, or is made so: it is not where there was no room the last time."""
    if there(expr, direction) is not None:
        return True
    matrix, _ = _turned(expr, direction)
    return matrix._store.rented >= 0 and lies_both_ways(session, matrix, matrix._store)


def _turned(expr: Expression, direction: str) -> tuple[Any, bool]:
    """The matrix of a product with a vector, and whether a direction takes it by columns."""
    flip = expr.left.ndim == 1
    operand = expr.right if flip else expr.left
    matrix = getattr(operand, "matrix", operand)
    return matrix, (operand is not matrix) != (flip == (direction == "pull"))


def measure(session: Any, held: MatrixStore) -> None:
    """Look for the longest row of each block, which takes a read."""
    for device, block in zip(session.devices, held.blocks, strict=False):
        if block is not AWAY and "longest" not in block.views:
            block.views["longest"] = device.longest(block.indptr)


def longest(held: MatrixStore) -> int:
    """Entries of the longest row; too many, where it was not looked for."""
    return max(int(block.views.get("longest", SHORT + 1)) for block in held.blocks)


def limits(
    session: Any, statements: list[Statement], condition: Condition, unlike: list[str], breadth: Breadth
) -> Limits:
    """What tells that a frontier has more edges than a round expands well, or than a pull looks
    at; and where rounds of the other kind are better."""
    if session.devices[0].kind == "cpu":
        return Limits(unlike, _wide(session, statements, condition, breadth)[0], [], [])
    thin, (wide, many, loads) = _thin(session, statements, condition), _wide(session, statements, condition, breadth)
    tail = [" && ".join(f"{' + '.join(names)} < {FEWER}" for names in loads)] if loads and not thin else []
    return Limits(unlike, wide, [*thin, *many], thin, loads, tail)


def too_wide(session: Any, pushes: Iterable[tuple[Any, Any, MatrixStore]], breadth: Breadth) -> bool:
    """Whether the frontier of one of these products has so many edges that a captured round, which pushes, would take
    long, and be the last one. (Where any arrival does, few of them are looked at twice: what counts is how many
    vertices it has. On CPU devices lists are pushed as by statements.)"""
    here = session.devices[0].kind == "cpu"
    for op, x, held in pushes:
        count = session.known_count(x._store)
        if not count or held.nvals <= THIN or here and x._store.form == "list":
            continue
        if ends_soon(op.monoid):
            wide = count * MANY > x.size
        else:
            most = min(_edges(session, op, held), breadth.edges(held) * (1 if breadth.few else len(held.blocks)))
            wide = frontier_edges(session, op, x._store, count, held, False)[0] > most
        if wide:
            return True
    return False


def thin(session: Any, pulls: Iterable[tuple[Any, Any, MatrixStore]]) -> bool:
    """Whether all frontiers of these products are such that pushes are better. (Of small matrices that is not worth a
    read.)"""
    if session.devices[0].kind == "cpu":
        return False
    found = list(pulls)
    if not found or any(held.nvals <= THIN for _, _, held in found):
        return False
    return all(session.nvals(x) < _few(session, op, held) for op, x, held in found)


def _thin(session: Any, statements: list[Statement], condition: Condition) -> list[str]:
    """The same, of the frontiers of pulls on the devices."""
    found = []
    for op, x, held in products(session, statements, "pull", "bitmap"):
        counts = " + ".join(f"{condition.array(block.count)}[0]" for block in x._store.blocks)
        found.append(f"{counts} < {_few(session, op, held)}")
    return [" && ".join(found)] if found else []


def _few(session: Any, op: Any, held: MatrixStore) -> int:
    """Entries of a frontier from which a pull is better."""
    if ends_soon(op.monoid):
        return held.colmap.n // FEW
    costs = session.kernels.costs
    edges = pull_seconds(costs, op, held, held.rowmap, held.colmap, None, None) / costs.push_edge / 2
    return int(edges * held.colmap.n / max(held.nvals, held.colmap.n, 1))


def pulled(session: Any, op: Any, held: MatrixStore) -> float:
    """Predicted seconds of a pull of all rows, of a matrix that lies for a push."""
    seconds: float = pull_seconds(session.kernels.costs, op, held, held.colmap, held.rowmap, None, None)
    return seconds


def _edges(session: Any, op: Any, held: MatrixStore) -> int:
    """Edges that are pushed in the time of a pull."""
    costs = session.kernels.costs
    return int(pulled(session, op, held) / (costs.push_first if op.monoid.is_any else costs.push_edge))


def _wide(
    session: Any, statements: list[Statement], condition: Condition, breadth: Breadth
) -> tuple[list[str], list[str], list[list[str]]]:
    """Whether a frontier of a push has too many edges: for a round's blocks, and for a push at all; and the edges of
    each block's, where frontiers have many round after round."""
    found, other, loads, here = [], [], [], session.devices[0].kind == "cpu"
    for op, x, held in products(session, statements, "push", "list"):
        most = _edges(session, op, held)
        row, mean = longest(held), max(held.nvals // max(held.rowmap.n, 1), 1)
        many = held.nvals // (2 * MANY if row > SKEWED * mean else MANY) if ends_soon(op.monoid) else most
        most = min(max(most, 1024), breadth.edges(held))
        if held.nvals <= (LITTLE if here else THIN):
            continue  # all of it takes less than to begin anew
        short = row <= SHORT  # so many vertices have few edges
        if short:
            counts, most, many = [block.count for block in x._store.blocks], most // max(row, 1), many // mean
        else:
            edges_of = counting(session, x._store, held)
            counts = session.over(x._store.map.tasks, lambda task, of=edges_of: of(task.block), 0.0)
        names = [f"{condition.array(count)}[0]" for count in counts]
        least = 64 if short else 1024
        found += [f"{name} > {max(most, least)}" for name in names]
        other.append(f"{' + '.join(names)} > {max(many, least)}")
        if breadth.often and ends_soon(op.monoid):  # a pull may be better
            found.append(other[-1])
        if breadth.often and not short:
            loads.append(names)
    return found, other, loads
