"""Statement -> statements: what is composed of several is computed by them, and one is left. Expressions of expressions
become one where kernels can do both (`flatten`), index Vectors products with a selection matrix, diagonals a few
statements."""

from functools import partial
from operator import is_
from typing import Any

import numpy as np

from ..distribute.blocks import MatrixStore
from ..distribute.rowmap import Task
from ..errors import DimensionMismatch, message
from ..kernels.interface import Spec
from ..language.expr import Expression
from ..language.expr import new_like as _new
from ..language.index import Index
from ..language.infix import product
from ..language.update import Updater
from ..semiring._algebra import Monoid, get_semiring
from ..semiring._operators import BinaryOp, SelectOp
from ..semiring._types import BOOL
from . import dry
from .deterministic import order_matters
from .flatten import filling, flat
from .loop.journal import NotCompiled
from .matrix import csr, shapes
from .plan import Step, Value


def rewritten(statement: Any) -> Any:
    """The statement that is carried out instead of this one, or None. What it needs beside is computed now, by
    statements of its own."""
    expr, index = statement.expr, statement.index
    if expr.kind == "number":
        return _again(statement, Expression("fill", None, statement.output, None, expr.dtype, (), expr._read()))
    if expr.nested:
        return _again(statement, filling(expr, expr.option) if expr.kind == "fill" else flat(expr), index)
    if expr.kind == "fill" and expr.option is None and expr.shape and not _deletes(statement):
        return _again(statement, _copy(_new(expr.shape, expr.dtype)), index)
    if expr.kind in _COMPOSED:
        return _COMPOSED[expr.kind](statement)
    if _names(index) or expr.kind == "extract" and _names(expr.option):
        found = _named(statement)
        if found is not None:
            return found
    if index is not None and statement.output.ndim == 1 and (index.vector is not None or _meets(statement)):
        return None if _scatters(statement) else _assign(statement)
    if expr.kind == "extract" and isinstance(expr.option, Index) and expr.option.vector is not None:
        return None if _takes(expr) else _extract(statement)
    return None


def _deletes(statement: Any) -> bool:
    """Whether a statement without a value only deletes the entries at places that the host knows: no mask or
    accumulator says otherwise."""
    index = statement.index
    plain = statement.mask is None and statement.accum is None and index is not None
    return plain and (statement.output.ndim == 2 or index.vector is None)


def _names(index: Any) -> bool:
    """Whether a Vector has the ids of an index, or of a part of it."""
    if type(index) is tuple:
        return any(map(_names, index))
    return type(index) is Index and index.vector is not None


def _named(statement: Any) -> Any:
    """The statement with the ids that Vectors of a recorded loop have now, where some lack places; None where none do.
    Raises DimensionMismatch where that is another number of rows than is read or written."""
    expr, session = statement.expr, statement.output._session
    index, option = _with_ids(session, statement.index), expr.option
    if expr.kind == "extract":
        option = _with_ids(session, option)
    if index is statement.index and option is expr.option:
        return None
    shape = expr.shape if option is expr.option else _shape(option)
    wanted = expr.shape if index is statement.index else _shape(index)
    if shape != wanted and expr.kind != "fill":
        hint = "expressions of a loop keep their sizes: give every place an id"
        raise DimensionMismatch(message(f"an index Vector that has all its places, for {wanted}", f"{shape}", hint))
    return _again(statement, Expression(expr.kind, expr.op, expr.left, expr.right, expr.dtype, wanted, option), index)


def _shape(parts: Any) -> tuple[int, ...]:
    return tuple(map(len, parts)) if type(parts) is tuple else (len(parts),)


def _with_ids(session: Any, index: Any) -> Any:
    """An index, or a tuple of them; ids in place of a Vector that lacks some. In a captured round nobody knows."""
    if not _names(index) or session.dry:
        return index
    if type(index) is tuple:
        found = tuple(_with_ids(session, each) for each in index)
        return index if all(map(is_, found, index)) else found
    store = index.vector._store
    if store is not None and store.form == "full":
        return index
    if session.capturing is not None:
        raise NotCompiled(f"the index {index.vector.name} may lack ids (a full Vector has all)")
    return index if session.nvals(index.vector) == index.size else Index(index.n, ids=index.ids())


def _evaluated(statement: Any) -> Any:
    """A composition: what its function gives is the right-hand side."""
    output, expr = statement.output, statement.expr
    operands = (expr.left,) if expr.right is None else (expr.left, expr.right)
    made = expr.option.function(*operands)
    if made.dtype is not expr.dtype:
        made = made.new(expr.dtype) if made.lazy else made.dup(expr.dtype)
    if made.lazy:
        return _again(statement, made._node(), statement.index)
    fresh = all(made is not operand for operand in operands)
    plain = statement.mask is None and statement.accum is None and statement.index is None
    if fresh and plain and output.dtype is made.dtype and (made.ndim == 0 or _in_place(output, made)):
        return _again(statement, Expression("move", None, made, None, made.dtype, made.shape))
    if made.ndim == 0:
        return _again(statement, Expression("fill", None, made, None, made.dtype, (), made.value))
    return _again(statement, _copy(made), statement.index)


def _in_place(output: Any, made: Any) -> bool:
    """Whether the rows of a handle lie where the output's do."""
    session = output._session
    mine, other = session.stored(output), session.stored(made)
    if other is None or made.ndim == 2:
        return other is None or mine is None or (mine.rowmap is other.rowmap and mine.colmap is other.colmap)
    return other.map is (session.maps.of(output.shape[0]) if mine is None else mine.map)


def _line(statement: Any) -> Any:
    """`v << A[i, J]`: any_second(e_i @ A), or any_first(A @ e_j) of a column."""
    expr = statement.expr
    x, place = expr.left, expr.option
    row = place.line == 0
    unit = _new(x.shape[:1] if row else x.shape[1:], x.dtype)
    Updater(unit)[place.ints[0 if row else 1]] << True
    along = place.parts[1 if row else 0]
    semiring = _any("second" if row else "first")[x.dtype]
    line = Expression("product", semiring, *((unit, x) if row else (x, unit)), x.dtype, (along.n,))
    if not along.is_all:
        line = Expression("extract", None, line, None, x.dtype, expr.shape, along)
    return _again(statement, line, statement.index)


def _meets(statement: Any) -> bool:
    """Whether values may meet at one place and the accumulator can combine them."""
    return _monoid(statement.accum) is not None and statement.index.repeats


def _monoid(accum: Any) -> Any:
    return getattr(getattr(accum, "op", None), "monoid", None)


def _again(statement: Any, expr: Any, index: Any = None) -> Any:
    """The same statement with another right-hand side."""
    return type(statement)(
        statement.output, statement.mask, statement.accum, statement.replace, expr, index, statement.hints
    )


def _copy(handle: Any) -> Expression:
    return Expression("copy", None, handle, None, handle.dtype, handle.shape)


def selection(session: Any, index: Index) -> Any:
    """A BOOL matrix with row k's only entry in column ids[k]."""
    matrix = _new((len(index), index.n), BOOL, None)
    over = session.maps.of(index.size) if index.vector is None else session.content(index.vector).map
    rowmap, colmap = over, session.maps.pair(index.size, index.n, over.p)[1]
    def made() -> MatrixStore:
        ids = shapes.Ids(session, index, colmap, rowmap)

        def part(task: Task) -> csr.Rows:
            b, device, n = task.block, session.devices[task.device], rowmap.rows[task.block]
            one = device.full(1, True, np.bool_)
            rows = csr.Rows(device.xp.arange(n + 1), ids.part(b, rowmap), one, 0)
            return csr.keep_entries(device, rows, rows.cols >= 0)

        parts = session.over(rowmap.tasks, part, index.size * session.kernels.costs.row)
        return csr.store_of(session, rowmap, colmap, BOOL, True, parts)

    into = Value(matrix.name, "csr", BOOL, True, rowmap)
    step = Step("selection", into, (), Spec(), f"a matrix with an entry for each of {index!r}")
    matrix._store = session.aside(step, made, partial(dry.numbers, rowmap, colmap, BOOL, True, index.size))
    return matrix


def _extract(statement: Any) -> Any:
    """`w << v[ids]`: P @ v."""
    expr = statement.expr
    chosen = selection(statement.output._session, expr.option)
    return _again(statement, product(_any("second")[expr.dtype], chosen, expr.left), statement.index)


def _takes(expr: Expression) -> bool:
    """Whether each device takes what it owns, as the vector is full."""
    source = expr._session.content(expr.left)
    return source.form == "full" and not source.iso and source.map.n > 0


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
    placed = _again(statement, _copy(given), index)
    if given is not expr.left and _scatters(placed):
        return placed
    chosen = selection(session, index)
    semiring = get_semiring(monoid or Monoid.registry["any"], BinaryOp.registry["first"])
    if given.dtype not in semiring:
        semiring = _any("first")
    term = product(semiring[given.dtype], given, chosen)
    # A pull would turn round a matrix that is used once.
    push = {} if session.deterministic else {"direction": "push"}
    if accum is not None:
        made = _again(statement, term)
        made.hints = {**push, **statement.hints}
        return made
    named = product(_any("pair")[BOOL], _full(len(index)), chosen).new(**push)
    merged = output.dup()
    Updater(merged, (named.S,)) << term.new(**push)
    return _again(statement, _copy(merged))


def _scatters(statement: Any) -> bool:
    """Whether `w(monoid)[ids] << u` is of full vectors: values go to their places at once. On several devices a value
    that nobody gave is the identity, which changes no whole number."""
    output, expr, index, monoid = statement.output, statement.expr, statement.index, _monoid(statement.accum)
    if expr.kind != "copy" or statement.mask is not None or monoid is None or index.vector is None:
        return False
    session = output._session
    w = session.stored(output) and session.content(output)
    if w is None or w.form != "full" or w.iso or w.dtype not in monoid or expr.left is output:
        return False
    if w.map.p > 1 and (session.ranks is not None or not w.map.plain or w.dtype.np_type.kind not in "iu"):
        return False
    op, u = monoid[w.dtype], session.content(expr.left)
    if op.is_any or op.dtype is not w.dtype or (session.deterministic and order_matters(op)):
        return False
    return u.form == "full" and not u.iso and u.map is w.map and u.dtype is w.dtype


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


_COMPOSED = {"deferred": _evaluated, "line": _line, "diagonal": _diagonal}
