"""Statements that become others: index Vectors become products with a selection matrix, diagonals a few statements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..distribute.blocks import MatrixStore, VectorBlock, VectorStore
from ..distribute.partition import Task
from ..expr import Expression
from ..expr import new_like as _new
from ..index import Index
from ..infix import product
from ..kernels.interface import Spec
from ..semiring._algebra import Monoid, get_semiring
from ..semiring._operators import BinaryOp, SelectOp
from ..semiring._types import BOOL
from ..trace import Record, counters, emit, listeners
from ..update import Updater
from .deterministic import order_matters
from .matrix import csr, shapes
from .plan import Plan, Step, Value


def find(statement: Any) -> Callable[[Any], Any] | None:
    """How to carry out a statement by others, or None."""
    expr, index = statement.expr, statement.index
    if expr.kind == "diagonal":
        return _diagonal
    if index is not None and statement.output.ndim == 1 and (index.vector is not None or _meets(statement)):
        return _assign
    if expr.kind == "extract" and isinstance(expr.option, Index) and expr.option.vector is not None:
        return _extract
    return None


def _meets(statement: Any) -> bool:
    """Whether values may meet at one place and the accumulator can combine them."""
    return _monoid(statement.accum) is not None and statement.index.repeats


def _monoid(accum: Any) -> Any:
    return getattr(getattr(accum, "op", None), "monoid", None)


def _again(statement: Any, expr: Any, index: Any = None) -> Any:
    """The same statement with another right-hand side."""
    made = type(statement)(
        statement.output, statement.mask, statement.accum, statement.replace, expr, index, statement.hints
    )
    statement.plan = statement.output._session.run(made).plan
    return statement


def _copy(handle: Any) -> Expression:
    return Expression("copy", None, handle, None, handle.dtype, handle.shape)


def selection(session: Any, index: Index) -> Any:
    """A BOOL matrix with row k's only entry in column ids[k]."""
    matrix = _new((len(index), index.n), BOOL, None)
    over = session.maps.of(index.size) if index.vector is None else session.content(index.vector).map
    rowmap, colmap = over, session.maps.pair(index.size, index.n, over.p)[1]
    ids = shapes.Ids(session, index, colmap)

    def part(task: Task) -> csr.Rows:
        b, device, n = task.block, session.devices[task.device], rowmap.rows[task.block]
        rows = csr.Rows(device.xp.arange(n + 1), ids.part(b, rowmap), device.full(1, True, np.bool_), 0)
        return csr.keep_entries(device, rows, rows.cols >= 0)

    parts = session.over(rowmap.tasks, part, index.size * session.kernels.costs.row)
    matrix._store = csr.store_of(session, rowmap, colmap, BOOL, True, parts)
    assert isinstance(matrix._store, MatrixStore)
    return matrix


def _extract(statement: Any) -> Any:
    """`w << v[ids]`: P @ v; of a full vector each device takes what it owns."""
    expr = statement.expr
    if (taken := _taken(statement.output._session, expr)) is not None:
        output = statement.output
        plain = statement.mask is None and statement.accum is None and statement.index is None
        if plain and output.dtype is expr.dtype and not output._session.explaining:
            output._store = taken._store
            return _told(statement, "gather", f"rows of {expr.left.name} full")
        return _again(statement, _copy(taken), statement.index)
    chosen = selection(statement.output._session, expr.option)
    return _again(statement, product(_any("second")[expr.dtype], chosen, expr.left), statement.index)


def _taken(session: Any, expr: Expression) -> Any:
    """`v[ids]` where v is full, as a new Vector; None if it isn't."""
    source, index = session.content(expr.left), expr.option
    over = session.content(index.vector).map
    if source.form != "full" or source.iso or not source.map.n:
        return None
    ids = shapes.Ids(session, index, source.map)

    def part(task: Task) -> VectorBlock:
        b, dense = task.block, csr.whole_vector(session, source, task.device)
        return VectorBlock(over.rows[b], ids.take(dense.vals, b, over), 1)

    taken = _new((len(index),), source.dtype, None)
    blocks = session.over(over.tasks, part, index.size * session.kernels.costs.row)
    taken._store = VectorStore(over, source.dtype, "full", False, blocks)
    return taken


def _any(multiply: str) -> Any:
    return get_semiring(Monoid.registry["any"], BinaryOp.registry[multiply])


def _assign(statement: Any) -> Any:
    """`w[ids] << u`: t = u @ P, entries that meet combined by the accumulator; without one, places that the ids name
    and t lacks lose their entries."""
    output, expr, accum = statement.output, statement.expr, statement.accum
    session, index, monoid = output._session, statement.index, _monoid(accum)
    given = _new((len(index),), expr.dtype if accum is None else output.dtype, None)
    if expr.kind == "copy" and expr.left.dtype is given.dtype and expr.left is not output:
        given = expr.left
    else:
        given << (expr.option if expr.kind == "fill" else expr)
    if monoid is not None and statement.mask is None and _combined(session, output, index, given, monoid):
        return _told(statement, "scatter", f"full into full by {accum!r}")
    chosen = selection(session, index)
    semiring = get_semiring(monoid or Monoid.registry["any"], BinaryOp.registry["first"])
    if given.dtype not in semiring:
        semiring = _any("first")
    term = product(semiring[given.dtype], given, chosen)
    if accum is not None:
        return _again(statement, term)
    named = product(_any("pair")[BOOL], _full(len(index)), chosen).new()
    merged = output.dup()
    Updater(merged, (named.S,)) << term.new()
    return _again(statement, _copy(merged))


def _combined(session: Any, output: Any, index: Index, given: Any, monoid: Any) -> bool:
    """`w(monoid)[ids] << u` of full vectors on one device: values go to their places at once. False if it isn't so."""
    w, u = output._store, session.content(given)
    if index.vector is None or w is None or w.map.p > 1 or w.dtype not in monoid or session.explaining:
        return False
    op = monoid[w.dtype]
    if op.is_any or op.dtype is not w.dtype or (session.deterministic and order_matters(op)):
        return False
    if w.form != "full" or w.iso or u.form != "full" or u.iso or u.map.p > 1:
        return False
    device, nil, block, n = session.devices[0], session.nil(0), w.blocks[0], w.map.n
    idx = w.map.slot_type()
    slots = shapes.Ids(session, index, w.map).part(0, u.map)
    session.raise_watched()
    combine = session.kernels.get("combine", Spec(op=op, b=w.dtype, idx=idx))
    count, nobody = device.full(1, u.map.n, np.int64), (nil.slots(idx), nil.scratch)
    given = count, slots, u.blocks[0].vals, nil.words, 0, block.vals, session.pool.ones(0, n), *nobody
    seconds = u.map.n * session.kernels.costs.push_edge
    session.over(w.map.tasks, lambda task: combine(*given), seconds, whole=True)
    return True


def _told(statement: Any, kind: str, text: str) -> Any:
    """The statement, done in one step: its plan, count and trace."""
    store, devices = statement.output._store, statement.output._session.devices
    counters.statements += 1
    step = Step(kind, Value("w", store.form, store.dtype, store.iso, store.map), (), None, text)
    statement.plan = Plan((), (), (step,))
    for device in devices[: store.map.p] if listeners else ():
        emit(Record(counters.statements, repr(statement), kind, device.name, form=store.form))
    return statement


def _full(n: int) -> Any:
    ones = _new((n,), BOOL, None)
    ones << True
    return ones


def _diagonal(statement: Any) -> Any:
    """`w << A.diag(k)`: its entries, reduced by row, without the rows that the diagonal does not cross."""
    expr = statement.expr
    k, n = expr.option, expr.shape[0]
    if n == 0:
        return _again(statement, _copy(_new((0,), expr.dtype, None)), statement.index)
    entries = expr.left.select(SelectOp.registry["diag"], k).new()
    rows = entries.reduce_rowwise(Monoid.registry["any"]).new()
    first = max(0, -k)
    part = Index.of(slice(first, first + n), rows.size)
    return _again(statement, Expression("extract", None, rows, None, expr.dtype, (n,), part), statement.index)
