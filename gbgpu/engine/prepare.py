"""A statement on vectors -> what is asked of the planner, and what its registers and parameters are this time."""

from typing import Any

from .deterministic import order_matters
from .direction import product_of
from .matrix import values_as_vector
from .plan import Asked, Chain, Mask, Reduced, Value


def prepare(session: Any, statement: Any) -> tuple[Asked, dict[str, Any]]:
    """What a plan is made of and kept by; stores by register and values by parameter."""
    expr, output = statement.expr, statement.output
    kind, option = expr.kind, expr.option
    detail = product = mask = None
    bound: dict[str, Any] = {}
    operands: list[Value] = []
    if statement.mask is not None:
        given = statement.mask
        bound["m"] = held = session.content(given.parent)
        operands.append(Value("m", held.form, held.dtype, held.iso, held.map))
        mask = Mask(given.structural, given.complement, _is_twin(statement))
    if kind in ("product", "reduce_rows"):
        product, more = product_of(session, statement, bound.get("m"))
        bound.update(more)
        x, matrix = bound["x"], bound["A"]
        operands.append(Value("x", x.form, x.dtype, x.iso, x.map))
        operands.append(Value("A", "csr", matrix.dtype, matrix.iso, matrix.rowmap))
    elif kind == "fill":
        bound["value"] = option
    else:
        if kind == "reduce" and expr.left.ndim == 2:
            x = values_as_vector(session, expr.left)
        else:
            x = session.content(expr.left)
        bound["x"] = x
        operands.append(Value("x", x.form, x.dtype, x.iso, x.map))
        if expr.right is not None:
            y = bound["y"] = session.content(expr.right)
            operands.append(Value("y", y.form, y.dtype, y.iso, y.map))
        if kind == "apply":
            detail, bound["thunk"] = option
        elif kind == "select":
            bound["thunk"] = option
        elif kind == "union" or kind == "intersect":
            detail, bound["defaults"] = _one_sided(expr), option
        elif kind == "chain":
            third, inner, flip = option
            z = bound["z"] = session.content(third)
            operands.append(Value("z", z.form, z.dtype, z.iso, z.map))
            detail, bound["defaults"] = Chain(inner.op, _one_sided(inner), flip), inner.option
        elif kind == "reduce":
            fixed = session.deterministic and order_matters(expr.op)
            over = (x.map if x.map.p == 1 else session.maps.whole(x.map.n)) if fixed else None
            detail = Reduced(option[0], over)
        elif kind == "extract":
            detail, bound["ids"] = session.maps.of(len(option)), option
    w = output._store
    if not output.ndim:
        target = Value("w", None, output.dtype, True, None)
    elif w is None:
        target = Value("w", "empty", output.dtype, False, session.maps.of(output.shape[0]))
    else:
        bound["w"] = w
        target = Value("w", w.form, w.dtype, w.iso, w.map)
    placed = statement.index is not None
    if placed:
        bound["place"] = statement.index
    asked = Asked(
        kind, expr.op, expr.dtype, detail, target, tuple(operands), mask, statement.accum, statement.replace, placed,
        statement.hints.get("form"), product,
    )  # fmt: skip
    return asked, bound


def _is_twin(statement: Any) -> bool:
    """Whether T is the parent of the structural mask, `w(q.S) << q`: then the mask changes nothing."""
    mask, expr = statement.mask, statement.expr
    plain = expr.kind == "copy" and statement.index is None and mask.structural and not mask.complement
    return plain and mask.parent is expr.left


def _one_sided(expr: Any) -> str:
    """What an elementwise expression makes of entries of one operand alone, as Spec.side."""
    return "" if expr.kind == "intersect" else "union" if expr.option is None else "defaults"
