"""Statements that are planned and do not run: what planners are told, and what a plan would leave.

Nothing is built, counted or read for a plan that is only shown (`Context.dry`). Planners are given copies of stores,
so what they note is forgotten with the plan. A store that a run would make first is known by its numbers alone: it has
no blocks. Where a run would know more, these stand for what it would find:

- a transpose is another matrix, and has a row without entries if the matrix has one;
- a frontier has the mean number of edges for each of its vertices;
- the result of a statement inside another one has as many entries as its operands let expect, and a scalar that is
  computed, or was not read yet, has a value.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

from ..distribute.blocks import MatrixNumbers, MatrixStore, VectorStore, as_symmetric, offset_type, revalued
from ..distribute.rowmap import RowMap
from ..kernels.interface import A_ONLY, B_ONLY
from .context import Context
from .direction import sees_counts
from .moving import latest
from .plan import Plan, Step, is_idempotent, keeps_iso

KNOWN = "borrow", "dup", "move", "place_list", "place_scalar"  # after these the host knows how many entries there are


def known(session: Context, handle: Any) -> Any:
    """A copy of what a vector or a matrix holds: the same one while a statement is planned."""
    copies, store = session.explaining.known, session.stored(handle)
    of = handle if store is None else store
    found = copies.get(id(of))
    if found is None:
        made = empty(session, handle) if store is None else _copied(session, store)
        found = copies[id(of)] = copies[id(made)] = made, of  # which is kept: others may get its id
    return found[0]


def empty(session: Context, handle: Any) -> Any:
    """What a vector or a matrix without content holds."""
    maps = [session.maps.of(n) for n in handle.shape]
    if handle.ndim == 1:
        return VectorStore(maps[0], handle.dtype, "list", False, [], 0)
    return numbers(maps[0], maps[1], handle.dtype, True, 0)


def _copied(session: Context, store: VectorStore | MatrixStore) -> VectorStore | MatrixStore:
    made = copy(store)
    if isinstance(made, MatrixStore):
        made.ways = dict(made.ways)
    if not session.maps.unsettled or session.maps.alone:
        return made
    if isinstance(made, VectorStore):
        map = latest(made.map)
        if map is made.map:
            return made
        return VectorStore(map, made.dtype, made.form, made.iso and map.plain, [], session.known_count(made))
    rowmap, colmap = latest(made.rowmap), latest(made.colmap)
    if rowmap is made.rowmap and colmap is made.colmap:
        return made
    moved = numbers(rowmap, colmap, made.dtype, made.iso, made.nvals, made.empty_rows)
    moved.symmetric, moved.diagonal, moved.hollow = made.symmetric, made.diagonal, made.hollow
    return moved


def numbers(rowmap: RowMap, colmap: RowMap, dtype: Any, iso: bool, nvals: int, empty: bool = False) -> MatrixStore:
    """A matrix without its blocks: its entries are spread evenly over the rows. `empty`: some row has none."""
    nvals = min(nvals, rowmap.n * colmap.n)
    before = [nvals * first // max(rowmap.n, 1) for first in rowmap.bounds.tolist()]
    lengths = tuple(end - begin for begin, end in zip(before, before[1:], strict=False))
    ptr = offset_type(max(lengths, default=0))
    return MatrixStore(MatrixNumbers(rowmap, colmap, dtype, iso, ptr, lengths, empty or nvals < rowmap.n), [])


def transposed(store: MatrixStore) -> MatrixStore:
    """The other orientation of a matrix."""
    return numbers(store.colmap, store.rowmap, store.dtype, store.iso, store.nvals, store.empty_rows)


def with_elements(session: Context, store: MatrixStore, log: dict[tuple[int, int], Any]) -> MatrixStore:
    """A matrix with the entries of a log, each of them new, or deleted: the same one while a statement is planned."""
    values = list(log.values())
    sets = len(values) - values.count(None)
    iso, nvals = store.iso and not sets, max(store.nvals + 2 * sets - len(values), 0)
    made = numbers(store.rowmap, store.colmap, store.dtype, iso, nvals, store.empty_rows)
    session.explaining.known[id(log)] = made, log
    return made


# -- what a plan leaves


def left(session: Context, plan: Plan, bound: dict[str, Any], statement: Any) -> Any:
    """What a plan leaves: a store without blocks; of a scalar a tuple with a number in place of its value."""
    output = statement.output
    if output.ndim == 2:
        return matrix(session, plan, bound, output)
    return vector(session, plan, bound) if output.ndim else (scalar(session, plan, bound, statement.expr),)


def scalar(session: Context, plan: Plan, bound: dict[str, Any], expr: Any) -> Any:
    """A number in place of the one that a plan computes; what it is without entries, where there are none."""
    if plan.steps[-1].kind == "reduce" and session.known_count(bound["x"]) == 0:
        return expr.option.empty
    return expr.dtype.np_type.type(0).item()


def vector(session: Context, plan: Plan, bound: dict[str, Any]) -> VectorStore:
    """The vector that a plan leaves, without its blocks."""
    into, seen = plan.steps[-1].into, sees_counts(session)
    counts = {name: session.known_count(x) for name, x in bound.items() if isinstance(x, VectorStore)}
    for step in plan.steps:
        form, map = step.into.form, step.into.map
        count = _count(step, counts, bound) if seen or step.kind in KNOWN else None
        counts[step.into.name] = map.n if form == "full" else None if count is None else min(count, map.n)
    assert into.form is not None
    return VectorStore(into.map, into.dtype, into.form, into.iso, [], counts[into.name])


def _count(step: Step, counts: dict[str, int | None], bound: dict[str, Any]) -> int | None:
    """How many entries a step leaves, by how many it reads; None where that is not known."""
    if step.kind.startswith("place_"):
        return len(bound["place"])
    if step.kind in ("push", "pull"):
        count = counts["x"]
        return None if count is None else count * bound["A"].nvals // max(step.option.inner.n, 1)
    read = [counts.get(name) for name in step.sources if name in counts]
    known = [count for count in read if count is not None]
    if not read or len(known) < len(read):
        return None
    if step.kind in ("ewise", "ewise_list"):
        return sum(known) if step.spec.lone else min(known)
    return known[0] + (counts.get("w") or 0) if step.kind in ("write", "write_list") else known[0]


def matrix(session: Context, plan: Plan, bound: dict[str, Any], output: Any) -> MatrixStore | None:
    """The matrix that a plan leaves, without its blocks unless they are those of another one; None where a single entry
    waits."""
    if plan.steps[-1].kind == "element":
        return None
    held = {**bound, "w": known(session, output)} if plan.inputs and plan.inputs[0].name == "w" else bound
    for step in plan.steps:
        held[step.into.name] = _AFTER.get(step.kind, _pair)(session, step, held, output)
    found: MatrixStore = held[plan.steps[-1].into.name]
    return found


def _first(step: Step, held: dict[str, Any]) -> Any:
    return held[step.sources[0]]


def _copy(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    found: MatrixStore = _first(step, held)
    return found


def _apply(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    x, op = _first(step, held), step.option
    made = revalued(x, op.return_type, keeps_iso(op, x.iso), [])
    return made if op.program.uses & {"i", "j", "k"} else as_symmetric(made, x)


def _fewer(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    return MatrixStore(_first(step, held).numbers._replace(empty_rows=True), [])


def _transpose(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    return transposed(_first(step, held))


def _fill(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    dtype, maps = step.option
    if step.sources:
        x = _first(step, held)
        return as_symmetric(revalued(x, dtype, True, []), x)
    rowmap, colmap = maps
    return numbers(rowmap, colmap, dtype, True, rowmap.n * colmap.n)


def _merge(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    (one, two), (keep, op) = (held[name] for name in step.sources), step.option
    dtype = one.dtype if op is None or step.sources[0] == "w" else op.return_type
    iso = one.iso and op is None and not keep & B_ONLY
    if keep & B_ONLY:
        return numbers(one.rowmap, one.colmap, dtype, iso, one.nvals + two.nvals)
    nvals = one.nvals if keep & A_ONLY else min(one.nvals, two.nvals)
    return numbers(one.rowmap, one.colmap, dtype, iso, nvals, True)


def _mxm(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    (a, b, *mask), op, how = (held[name] for name in step.sources), step.spec.op, step.option
    if how.scales:
        return revalued(a if how.scales == "right" else b, op.return_type, a.iso and b.iso, [])
    uses, colmap = op.multiply.program.uses, b.rowmap if how.way == "dot" else b.colmap
    one = (a.iso or "x" not in uses) and (b.iso or "y" not in uses) and not uses & {"i", "j", "k"}
    nvals = mask[0].nvals if mask and how.narrow else a.nvals * b.nvals // max(a.colmap.n, 1)
    iso = one and is_idempotent(op.monoid) and how.way != "sort"
    return numbers(a.rowmap, colmap, op.return_type, iso, nvals, a.empty_rows or b.empty_rows)


def _diag(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    x, k = _first(step, held), held["diagonal"]
    maps = session.maps.pair(x.map.n + abs(k), x.map.n + abs(k), x.map.p)
    made = numbers(*maps, x.dtype, x.iso, _entries(session, x))
    if not k and x.form == "full" and x.map is maps[0] is maps[1]:
        made.diagonal = True
    return made


def _column(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    x = _first(step, held)
    return numbers(x.map, session.maps.pair(x.map.n, 1, x.map.p)[1], x.dtype, x.iso, _entries(session, x))


def _entries(session: Context, x: VectorStore) -> int:
    found = session.known_count(x)
    return x.map.n if found is None else found


def _extract(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    x, (n, m) = _first(step, held), map(len, held["ids"])
    nvals = x.nvals * n * m // max(x.rowmap.n * x.colmap.n, 1)
    return numbers(*session.maps.pair(n, m, x.rowmap.p), x.dtype, x.iso, nvals, x.empty_rows)


def _pair(session: Context, step: Step, held: dict[str, Any], output: Any) -> MatrixStore:
    """Of a step that puts matrices together."""
    given = [held[name] for name in step.sources if name != "w"]
    kron, placed = step.kind == "kron", step.kind == "place"
    tiles = [tile for line in held["tiles"] for tile in line] if step.kind == "concat" else given
    nvals = given[0].nvals * given[-1].nvals if kron else sum(x.nvals for x in tiles)
    dtype = step.option.return_type if kron else given[0].dtype if placed else step.into.dtype
    nrows, ncols = output.shape
    maps = session.maps.pair(nrows, ncols, given[0].rowmap.p)
    return numbers(*maps, dtype, placed and given[0].iso, nvals, given[0].empty_rows)


_AFTER: dict[str, Callable[..., MatrixStore]] = {
    **dict.fromkeys(("apply", "cast"), _apply),
    **dict.fromkeys(("select", "mask", "region"), _fewer),
    **{"copy": _copy, "transpose": _transpose, "fill": _fill, "merge": _merge, "mxm": _mxm},
    **{"diag": _diag, "column": _column, "extract": _extract},
}
