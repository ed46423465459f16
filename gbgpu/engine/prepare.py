"""A statement -> what is asked of its planner, and what its registers and parameters are this time.

What is asked is the fields of `Asked`, and of the records in it, as plain tuples: they are compared with those of plans
that are there, and only made into records for a new one (`plan.revived`)."""

from typing import Any

import numpy as np

from ..distribute.blocks import MatrixStore, VectorBlock, VectorStore
from ..distribute.rowmap import RowMap
from ..language.expr import Transposed
from .context import Context
from .deterministic import order_matters
from .direction import product_of
from .matrix.mxm import choose
from .plan import Chain, Reduced

STAYING = ("copy", "apply", "select", "reduce")  # expressions that look at one vector, row by row


def of_vectors(session: Context, statement: Any) -> tuple[tuple, dict[str, Any]]:
    """What the plan of a statement on vectors is made of and kept by; stores by register and values by parameter."""
    expr, output = statement.expr, statement.output
    kind, option = expr.kind, expr.option
    detail: Any = None
    mask: tuple[bool, bool, bool] | None = None
    product: tuple | None = None
    bound: dict[str, Any] = {}
    operands: list[tuple] = []
    placed, named = "", None  # named: a vector of ids, on one side of the statement
    stays = False
    if statement.index is not None:
        bound["place"], named = statement.index, statement.index.vector
        placed = "rows" if named is None else "vector"
    if statement.mask is not None:
        given = statement.mask
        bound["m"] = held = session.content(given.parent)
        operands.append(("m", held.form, held.dtype, held.iso, held.map))
        mask = given.structural, given.complement, _is_twin(statement)
    if kind in ("product", "reduce_rows"):
        product, more = product_of(session, statement, bound.get("m"))
        bound.update(more)
        x, matrix = bound["x"], bound["A"]
        operands.append(("x", x.form, x.dtype, x.iso, x.map))
        operands.append(("A", "csr", matrix.dtype, matrix.iso, matrix.rowmap))
    elif kind == "fill":
        bound["value"] = option
        if option is None:
            kind = "unwrite"
    else:
        if kind == "reduce" and expr.left.ndim == 2:
            x, sums = _values(session, expr.left)
            if session.capturing is None:  # buffers of rounds are used again
                bound["sums"] = sums
        else:
            x, stays = _operand(session, statement)
        bound["x"] = x
        operands.append(("x", x.form, x.dtype, x.iso, x.map))
        if expr.right is not None:
            y = bound["y"] = session.content(expr.right)
            operands.append(("y", y.form, y.dtype, y.iso, y.map))
        if kind == "apply":
            detail, bound["thunk"] = option
        elif kind == "select":
            bound["thunk"] = option
        elif kind == "union" or kind == "intersect" or kind == "chain":
            detail = _together(session, expr, bound, operands)
        elif kind == "fold":
            detail = option.inner.op, _together(session, option.inner, bound, operands)
        elif kind == "reduce":
            fixed = session.deterministic and order_matters(expr.op) and not expr.op.is_any
            over = (x.map if x.map.p == 1 else session.maps.whole(x.map.n)) if fixed else None
            known = "sums" in bound and (expr.op, option.counted) in bound["sums"]
            detail = Reduced(option.counted, over, known)
        elif kind == "extract":
            bound["ids"], named = option, option.vector
            detail = session.maps.of(len(option)) if named is None else None
    w = session.stored(output)
    w = w if w is None or not output.ndim or stays else session.content(output)
    if not output.ndim:
        target: tuple = ("w", None, output.dtype, True, None)
    elif w is None or stays:
        target = ("w", "empty", output.dtype, False, x.map if stays else session.maps.of(output.shape[0]))
    else:
        bound["w"] = w
        target = ("w", w.form, w.dtype, w.iso, w.map)
    if named is not None:
        bound["i"] = ids = session.content(named)
        operands.append(("i", ids.form, ids.dtype, ids.iso, ids.map))
    form = statement.hints.get("form")
    ends = mask, statement.accum, statement.replace, placed, form, product
    asked = kind, expr.op, expr.dtype, detail, target, tuple(operands), *ends
    return asked, bound


def of_matrices(session: Context, statement: Any) -> tuple[tuple, dict[str, Any]]:
    """The same of a statement whose output is a matrix. Its content "w" is bound where the plan needs it."""
    if _is_element(statement):
        return _element(session, statement)
    expr, output, given = statement.expr, statement.output, statement.mask
    kind, option = expr.kind, expr.option
    detail: Any = None
    bound: dict[str, Any] = {}
    if given is not None:
        bound["m"] = session.matrix_store(given.parent)
    if kind == "fill":
        bound["value"] = option
        if option is None:
            kind = "unwrite"
        else:
            like = session.matrix_store(output)
            maps = like.rowmap, like.colmap
            if statement.index is not None:
                rows, cols = statement.index
                maps = session.maps.pair(len(rows), len(cols), like.rowmap.p)
            detail = expr.dtype, maps
    elif expr.left.ndim == 1:
        bound["x"], bound["diagonal"] = session.content(expr.left), option
    else:
        bound["x"] = _by_rows(session, expr.left)
    if kind == "concat":
        bound["tiles"] = [[session.matrix_store(tile) for tile in line] for line in option]
    if kind == "mxm":
        mask = given if statement.index is None else None  # else it is that of the whole output
        detail = choose(session, expr, mask, statement.hints.get("method"))
        bound["y"] = _by_rows(session, expr.right.T if detail.way == "dot" else expr.right)
    elif kind == "apply":
        detail, bound["thunk"] = option
    elif kind == "select":
        bound["thunk"] = option
    elif kind == "extract":
        bound["ids"] = option
    elif kind in ("union", "intersect"):
        detail, bound["defaults"] = _one_sided(expr), option
    if kind in ("union", "intersect", "kron"):
        bound["y"] = _by_rows(session, expr.right)
    if statement.index is not None:
        bound["place"] = statement.index
    operands = tuple(_described(name, bound[name]) for name in ("m", "x", "y") if name in bound)
    mask = None if given is None else (given.structural, given.complement, False)
    held = session.stored(output)
    fresh = held is None or held.nvals == 0
    target = ("w", "empty" if fresh else "csr", output.dtype, False, session.maps.of(output.shape[0]))
    placed = "" if statement.index is None else "rows"
    ends = mask, statement.accum, statement.replace, placed, None, None
    asked = kind, expr.op, expr.dtype, detail, target, operands, *ends
    return asked, bound


def _is_element(statement: Any) -> bool:
    """Whether it sets or deletes one entry of a matrix, whatever that holds."""
    index = statement.index
    plain = statement.expr.kind == "fill" and index is not None and statement.mask is None and statement.accum is None
    return plain and all(len(part) == 1 and part.vector is None for part in index)


def _element(session: Context, statement: Any) -> tuple[tuple, dict[str, Any]]:
    """The plan's key does not have what the matrix holds, which is not looked at."""
    expr, output = statement.expr, statement.output
    target = "w", "csr", output.dtype, False, session.maps.of(output.shape[0])
    asked = "element", None, expr.dtype, expr.option is None, target, (), None, None, False, "rows", None, None
    return asked, {"value": expr.option, "place": statement.index, "output": output}


def _operand(session: Context, statement: Any) -> tuple[VectorStore, bool]:
    """The vector of a statement of one, and whether what is made of it stays where a loop left that: on the first
    device, which has done it before the others would have their parts."""
    x = statement.expr.left
    alone = statement.mask is None and statement.accum is None and statement.index is None
    if alone and statement.expr.kind in STAYING and not session.looping:
        held = session.stored(x)
        if held is not None and session.maps.stays(held.map):
            return held, True
    return session.content(x), False


def _described(name: str, store: VectorStore | MatrixStore) -> tuple:
    if isinstance(store, VectorStore):
        return name, store.form, store.dtype, store.iso, store.map
    return name, "csr", store.dtype, store.iso, store.rowmap


def _by_rows(session: Context, operand: Any) -> MatrixStore:
    """A matrix, or a transposed one, by rows."""
    turned = isinstance(operand, Transposed)
    return session.oriented(operand.matrix if turned else operand, turned)


def _values(session: Context, matrix: Any) -> tuple[VectorStore, dict[Any, tuple]]:
    """The values of a matrix or a transpose as a full vector, for reductions: as they lie, but by rows where the order
    of a sum is fixed. And what they were reduced to before."""
    turned = isinstance(matrix, Transposed)
    store = session.oriented(matrix.matrix if turned else matrix, turned and session.deterministic)
    if store.entries is None:
        store.entries = RowMap(np.concatenate([[0], np.cumsum(store.lengths)]))
    blocks = [VectorBlock(block.nnz, block.vals, block.stride) for block in store.blocks]
    return VectorStore(store.entries, store.dtype, "full", store.iso, blocks), store.sums


def _is_twin(statement: Any) -> bool:
    """Whether T is the parent of the structural mask, `w(q.S) << q`: then the mask changes nothing."""
    mask, expr = statement.mask, statement.expr
    plain = expr.kind == "copy" and statement.index is None and mask.structural and not mask.complement
    return plain and mask.parent is expr.left


def _together(session: Context, expr: Any, bound: dict[str, Any], operands: list[tuple]) -> str | Chain:
    """What a planner is told of a union, an intersection or a chain; binds what these have beside two vectors."""
    if expr.kind != "chain":
        bound["defaults"] = expr.option
        return _one_sided(expr)
    third, inner, flip = expr.option
    z = bound["z"] = session.content(third)
    operands.append(("z", z.form, z.dtype, z.iso, z.map))
    bound["defaults"] = inner.option
    return Chain(inner.op, _one_sided(inner), flip)


def _one_sided(expr: Any) -> str:
    """What an elementwise expression makes of entries of one operand alone, as Spec.lone."""
    return "" if expr.kind == "intersect" else "union" if expr.option is None else "defaults"
