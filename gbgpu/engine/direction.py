"""Pull or push: what the planner is told of a product, counted or estimated."""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from ..device.remote import local_results
from ..distribute.blocks import KNOWN, MatrixStore, VectorBlock, VectorStore
from ..distribute.rowmap import RowMap
from ..errors import in_room
from ..kernels.interface import Costs, ends_soon
from ..language.expr import Transposed
from ..semiring._types import INT64
from ..trace import counters
from . import build
from .assign import counting, grouping, tallied
from .context import Context
from .deterministic import by_rows, order_matters
from .matrix.separate import separated
from .plan import Step, Value, gives_one

FEW, MANY = 64, 1 / 16  # vertices, and their share, from which the edges of a frontier are not worth a read from a GPU
COUNT = 2e-6  # seconds that counting the edges of a frontier takes at least, and a wrong guess may cost
WAYS = 64  # products with one matrix whose directions are remembered, where they follow from counts alone
MORE = 64  # times the mean degree that a few vertices may have: where they would be pushed even so, none is counted
AGAIN = 64  # products, or times the price of a transpose, before it is tried again, where there was no room
DENSE = 4  # a push of a quarter as many entries as there are rows fills a bitmap instead of a list


def product_of(session: Context, statement: Any, held: VectorStore | None) -> tuple[tuple, dict[str, Any]]:
    """The fields of the Product of a statement, and what it binds: the matrix by rows "A", the vector "x", and the
    predicted "seconds". `held`: the store of the mask's parent, or None."""
    expr, costs, mask = statement.expr, session.kernels.costs, statement.mask
    flip = expr.left.ndim == 1
    operand = expr.right if flip else expr.left
    turned = isinstance(operand, Transposed)
    matrix = operand.matrix if turned else operand
    pull_turned = flip != turned
    store = session.matrix_store(matrix)
    outer, inner = (store.colmap, store.rowmap) if pull_turned else (store.rowmap, store.colmap)
    if expr.kind == "reduce_rows":
        x = ones_vector(session, inner, store.dtype)
    else:
        x = session.content(expr.left if flip else expr.right)
    count = session.known_count(x)
    allowed = None  # output rows that the mask lets through
    if held is not None and mask.structural:
        entries = session.known_count(held)
        allowed = entries if entries is None or not mask.complement else outer.n - entries
    hint = statement.hints.get("direction") if statement.hints else None
    key = expr.op, expr.kind, flip, turned, hint, x.form, x.iso, count, allowed
    known = store.ways.get(key)
    if known is not None:
        product, found, seconds = known
        return product, {"A": found, "x": x, "seconds": seconds, "tallies": None, "probed": None}
    rows = expr.kind == "reduce_rows" or by_rows(session, expr.op)
    direction = "pull" if rows else hint
    pull = pull_seconds(costs, expr.op, store, outer, inner, count, allowed)
    tallies, tiny = None, False

    def settled(edges: int) -> bool:
        """Whether so many would be pushed, into a list."""
        few = session.ranks is not None or DENSE * edges < outer.n
        return few and push_seconds(costs, expr.op, store, outer, edges) < pull

    edges = None
    if count is not None:
        edges = count * store.nvals // max(inner.n, 1)
        pushed = by_columns(store, not pull_turned)
        hinted = direction == "pull" or direction is not None and not balanced(session, expr.op, pushed, inner, edges)
        if hinted or max(pull, push_seconds(costs, expr.op, store, outer, None)) < COUNT + costs.step:
            tiny = not direction
        else:
            edges, tallies = frontier_edges(session, expr.op, x, count, store, not pull_turned, settled)
            if edges and ends_soon(expr.op.monoid):
                first = _used_first(session, store, pull_turned)
                pull = pull_seconds(costs, expr.op, store, outer, inner, count, allowed, edges, first)
    push = push_seconds(costs, expr.op, store, outer, edges)
    if direction is None:
        direction = _rented(session, matrix, x, store, pull_turned, pull, push)
    pushes, alone = direction == "push", outer.p == 1 and not session.kernels.neutral
    dense = pushes and edges is not None and DENSE * edges >= outer.n and session.ranks is None
    straight = pushes and alone and not order_matters(expr.op.monoid)
    turn = pull_turned == (direction == "pull")
    found = session.oriented(matrix, turn)
    heads = None
    if found.rowmap.heads is not None:
        heads = _apart(session, expr.op, found, x, flip, direction, mask is not None, edges, dense)
        dense = dense and heads is None
    by = "columns" if turn else "rows"
    probed = None
    if heads is not None:
        tallies = None  # owners compute
    elif direction == "pull" and session.assigner is not None and outer.p > 1:
        probed = _probed(session, expr.op, mask, held, outer, count, inner.n, store)
    product = direction, dense, straight, inner, outer, flip, by, found.ptr, found.idx, found.empty_rows, heads
    seconds = pull if direction == "pull" else push
    if tiny and probed is None and (not turn or store.symmetric or store.transposed is not None):
        if len(store.ways) >= WAYS:
            store.ways.clear()
        store.ways[key] = product, found, seconds
    return product, {"A": found, "x": x, "seconds": seconds, "tallies": tallies, "probed": probed}


def _apart(
    session: Context,
    semiring: Any,
    matrix: MatrixStore,
    x: VectorStore,
    flip: bool,
    direction: str,
    masked: bool,
    edges: int | None,
    dense: bool,
) -> RowMap | None:
    """The map of the delegates, if a product goes with their rows apart: where that is expected to move fewer bytes.
    Thin frontiers have fewer edges than there are delegates."""
    heads, map = matrix.rowmap.heads, matrix.rowmap
    if heads is None or map is not matrix.colmap or x.map is not map:
        return None  # others than square ones go by rows
    read = not x.iso and ("x" if flip else "y") in semiring.multiply.program.uses
    value, others = x.dtype.np_type.itemsize if read else 0, map.p - 1
    term = 0 if gives_one(semiring, flip, x.iso, matrix.iso) else semiring.return_type.np_type.itemsize
    if direction == "pull":
        each, halo = value + (0 if x.form == "full" else 1 / 8), matrix.halo
        plain = others * map.n if halo is None else sum(one.length for pieces in halo.pieces for one in pieces)
        sums = others * heads.n * (term + (1 + masked) / 8)
        if not fewer(sums, each * plain):
            return None
        apart = separated(session, matrix)
        return heads if apart is None or fewer(each * apart.moved + sums, each * plain) else None
    sent = min((matrix.nvals if edges is None else edges) / map.p, map.n) * (np.dtype(matrix.idx).itemsize + term)
    if not fewer(heads.n * (value + (1 + masked) / 8), map.n * (term + 1 / 8) if dense else sent):
        return None
    separated(session, matrix)
    return heads


def fewer(bytes: float, plain: float) -> bool:
    """Whether delegates pay, by what moves with them and without."""
    return bytes < plain


def _rented(
    session: Context, matrix: Any, x: VectorStore, store: MatrixStore, pull_turned: bool, pull: float, push: float
) -> str:
    """The direction that takes less time. Where that asks for a transpose which is not there, the other one, until what
    this has cost would have paid for the transpose: who needs it once goes without it, and who needs it often loses no
    more than twice the time of making it. A full vector is likely to come again. Where there is no room for it, the
    other one for long."""
    direction, other = ("push", "pull") if push < pull else ("pull", "push")
    turn = pull_turned == (direction == "pull")
    if not turn or store.symmetric or store.transposed is not None:
        return direction
    lost = store.rented + abs(pull - push)
    if lost >= _price(session, store) or x.form == "full" and store.rented >= 0:
        if lies_both_ways(session, matrix, store, abs(pull - push)):
            return direction
    else:
        store.rented = lost
    counters.count(store)
    return other


def lies_both_ways(session: Context, matrix: Any, store: MatrixStore, saved: float = 0.0) -> bool:
    """Make a matrix by columns as well, if there is room. Else nobody asks again for long: as often as that takes which
    `saved` so many seconds each time."""
    turned = partial(session.oriented, matrix, True)
    if (turned() if session.ranks is not None else in_room(turned)) is not None:  # other ranks may have room
        return True
    store.rented = -AGAIN * max(_price(session, store), saved)
    return False


def _price(session: Context, store: MatrixStore) -> float:
    """Seconds that it takes to make a matrix by columns."""
    seconds: float = session.kernels.costs.turn * store.nvals / store.rowmap.p
    return seconds


def _probed(
    session: Context,
    semiring: Any,
    mask: Any,
    held: VectorStore | None,
    outer: RowMap,
    count: int | None,
    inner: int,
    store: MatrixStore,
) -> tuple[list[int], float] | None:
    """Rows of each block that a pull looks at and entries of each, as `Assigner.pull` takes them; no rows where that
    can't be told."""
    mean = store.nvals / max(outer.n, 1)
    soon = ends_soon(semiring.monoid)
    length = min(mean, inner / max(count, 1)) if soon and count is not None else mean
    if mask is None:
        return (outer.rows, length) if soon else None
    unlike = held is None or not mask.structural or held.form not in KNOWN or held.map is not outer or not held.blocks
    if held is None or unlike or held.form != "full" and session.known_count(held) is None:
        return [0] * outer.p, 0.0
    found = [block.n if block.full else int(block.count[0]) for block in held.blocks]
    if mask.complement:
        found = [n - entries for n, entries in zip(outer.rows, found, strict=True)]
    return found, length


def pull_seconds(
    costs: Costs,
    semiring: Any,
    store: MatrixStore,
    outer: RowMap,
    inner: RowMap,
    count: int | None,
    allowed: int | None,
    edges: int | None = None,
    first: bool = False,
) -> float:
    """Predicted seconds on a device. `count`: entries of the vector, `allowed`: unmasked output rows, `edges`: entries
    of the matrix that meet one of the vector's; None where only the devices know. `first`: the most used columns come
    first in each row."""
    rows = outer.n if allowed is None else allowed
    length = store.nvals / max(outer.n, 1)
    if ends_soon(semiring.monoid):  # until an entry is present
        looked = store.nvals / edges if edges else inner.n if count is None else inner.n / max(count, 1)
        length = min(length, sqrt(looked) if first else looked)  # the root as measured on RMAT graphs
    moved = inner.n * (store.dtype.np_type.itemsize + 1) * costs.byte if outer.p > 1 else 0.0
    words = outer.n / 32  # presence words of the mask and of the result, of 64 rows each
    return costs.step + (words * costs.row + rows * (costs.row + length * costs.pull_edge)) / outer.p + moved


def _used_first(session: Context, store: MatrixStore, turned: bool) -> bool:
    """Whether a pull finds the most used columns first in each row. (What ranks decide by all of them know.)"""
    held = by_columns(store, turned)
    if session.ranks is not None or held is None or not held.blocks:
        return False
    return all(x.views.get("likely", x.cols) is not x.cols for x in held.blocks)


def push_seconds(costs: Costs, semiring: Any, store: MatrixStore, outer: RowMap, edges: int | None) -> float:
    """Predicted seconds on a device. `edges`: entries in the rows of the frontier, None where only the devices
    know."""
    edges = store.nvals if edges is None else edges
    edge = costs.push_first if semiring.monoid.is_any else costs.push_edge
    return (1 + 2 * (outer.p > 1)) * costs.step + edges * edge / outer.p


def ones_vector(session: Context, map: RowMap, dtype: Any) -> VectorStore:
    kept = partial(session.once, ("ones vector", map, dtype), partial(_ones, session, map, dtype))
    found: VectorStore = session.aside(None, kept, partial(VectorStore, map, dtype, "full", True, []))
    return found


def _ones(session: Context, map: RowMap, dtype: Any) -> VectorStore:
    ones = [session.pool.scalar(b, 1, dtype.np_type) for b in range(map.p)]
    blocks = [VectorBlock(n, one, 0) for n, one in zip(map.rows, ones, strict=True)]
    return VectorStore(map, dtype, "full", True, blocks)


def by_columns(store: MatrixStore, turned: bool) -> MatrixStore | None:
    """A matrix, or, if `turned`, as it is by columns; None where that is not there."""
    return store if not turned or store.symmetric else store.transposed


def balanced(session: Context, op: Any, held: MatrixStore | None, map: RowMap, edges: int) -> bool:
    """Whether somebody may move a push of about so many edges from its owners to other devices."""
    if map.p == 1:
        return False
    if session.assigner is not None:
        return bool(session.assigner.cares(edges))
    return session.sharing is not None and bool(session.sharing.cares(edges, op.monoid.is_any, held))


def frontier_edges(
    session: Context,
    op: Any,
    x: VectorStore,
    count: int,
    store: MatrixStore,
    turned: bool,
    settled: Callable[[int], bool] = lambda edges: False,
) -> tuple[int, list[Any] | None]:
    """Entries in the rows of the frontier: counted, or estimated by the mean degree, where counting needs a read and
    the frontier is small, or would go the same way with MORE times as many (`settled`). And their tallies, or the edges
    of each block before groups of rows and after the last one, where somebody decides by them."""
    held = by_columns(store, turned)
    if held is not None and x.map is not held.rowmap:
        held = None
    mean = count * store.nvals // max(x.map.n, 1)
    matters = balanced(session, op, held, x.map, mean)
    tells = session.assigner is not None and matters
    if x.form == "full":
        if not tells or held is None:
            return store.nvals, None
        return store.nvals, session.aside(None, lambda: tallied(session, x, held), lambda: None)
    seen = sees_counts(session)
    worth = seen or matters or FEW <= count <= MANY * x.map.n
    if held is None or x.form not in KNOWN or not worth:
        return mean, None
    if tells:
        tallies = session.aside(_counting(held, x.map), lambda: tallied(session, x, held), lambda: None)
        return mean if tallies is None else sum(one.tally.edges for one in tallies), tallies
    if not seen and settled(MORE * mean):
        return mean, None
    edges, each = counted_edges(session, x, count, held, seen, matters)
    if each is None or not matters:
        return edges, None
    return edges, [np.concatenate([[0], np.cumsum(one[1:])]) for one in each]


def sees_counts(session: Context) -> bool:
    """Whether the host knows how many entries devices have found, without a read."""
    return session.ranks is None and session.devices[0].peek(session.placeholders(0).words) is not None


def counted_edges(
    session: Context, x: VectorStore, count: int, held: MatrixStore, seen: bool = False, grouped: bool = False
) -> tuple[int, list[np.ndarray] | None]:
    """Entries in the rows of a matrix that are present in x, in `count` of them: of all, and of each block here, with
    those of its groups of rows behind them (`grouped`). `seen`: the host reads what devices have as its own."""
    shift, groups = grouping(x.map) if grouped else (None, 0)

    def counted() -> list[np.ndarray]:
        block = counting(session, x, held, shift)
        found = session.over(x.map.tasks, lambda task: block(task.block, 0, groups), count * session.kernels.costs.row)
        if seen:
            return found
        read = session.over(x.map.tasks, lambda task: session.devices[task.device].get(found[task.block]), 0.0)
        return local_results(read)

    each = session.aside(_counting(held, x.map), counted, lambda: None)
    if each is None:
        return count * held.nvals // max(x.map.n, 1), None
    return session.total([one[0] for one in each], "edges of a frontier"), each


def _counting(held: MatrixStore, map: RowMap) -> Step:
    return Step("count", Value("edges", None, INT64, True, map), ("x",), build.spec_of(held), "edges of x")
