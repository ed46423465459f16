"""Sums to a fixpoint: x takes in what r holds, and what that leads to.

x and r are numbers of all vertices. To extend a vertex v adds r[v] to x[v], takes it out of r, and adds r[v] times the
entries of its row of P to r. What x + r (I + P + P^2 + ...) sums to stays the same, so that vertices may be extended in
any order; those whose residual is at most `tol` are left out, and what they hold stays in r.

Source: Andersen, Chung, Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006, push; Whang and others,
"Scalable Data-Driven PageRank", Euro-Par 2015.
"""

from typing import Any, NamedTuple

from ..errors import InvalidValue, message
from ..semiring._operators import BinaryOp, SelectOp
from ..semiring._types import INT64
from .expr import Expression, Statement, new_like
from .masks import replace
from .recording import loop

BODY = "x(binary.plus) << r and r << plus_times(r @ P)"


class Residual(NamedTuple):
    """The two statements, and what they are made of."""

    text: str
    total: Any
    rest: Any
    accum: Any
    product: Expression
    flip: bool  # whether the vector is the left side of the product


def residual(first: Statement, second: Statement) -> Residual:
    """Take the statements apart; raises InvalidValue for others."""
    x, r, product, text = first.output, second.output, second.expr, f"{first!r}; {second!r}"
    sides = [product.left, product.right] if product.kind == "product" else []
    if first.expr.kind != "copy" or first.expr.left is not r or x is r or sum(side is r for side in sides) != 1:
        raise InvalidValue(message(f"one statement, or two: {BODY}", text))
    if first.accum is None or first.accum.op is not BinaryOp.registry["plus"] or second.accum is not None:
        raise InvalidValue(message(f"a sum that takes in what is taken out, {BODY}", text))
    if any(each.mask is not None or each.index is not None for each in (first, second)):
        raise InvalidValue(message("sums of all vertices, without masks", text))
    op, flip = product.op, sides[0] is r
    reads = "first" if flip else "second"
    plus, *linear = (BinaryOp.registry[name] for name in ("plus", "times", reads))
    if op.monoid.op.binaryop is not plus or op.multiply.op not in linear:  # names may be those of a user's own
        came = f"{op.name}: {op.monoid.name} of {op.multiply.name}"
        raise InvalidValue(message(f"a product that is linear in the vector, plus_times or plus_{reads}", came))
    types = x.dtype, r.dtype, op.monoid.dtype, first.accum.return_type
    if len(set(types)) > 1 or x.dtype.kind == "b":
        came = "{}, {}, products of {} and sums of {}".format(*(each.name for each in types))
        raise InvalidValue(message("numbers of one type", came))
    return Residual(text, x, r, first.accum, product, flip)


def extend(found: Residual, tol: float, most: int) -> tuple[int, bool]:
    """Extend vertices in rounds until no residual is above `tol`, or `most` are extended.

    Returns updates, and whether none is. x and r are written together at the end: what interrupts the rounds, between
    any two of their statements, leaves both as they were.
    """
    x, r, product = found.total.dup(), found.rest.dup(), found.product
    q, t, updates = new_like(r.shape, r.dtype, None), new_like(r.shape, r.dtype, None), new_like((), INT64, "updates")
    updates.value = 0
    sides = (q, product.right) if found.flip else (product.left, q)
    moved = Expression("product", product.op, *sides, product.dtype, r.shape, product.option)
    q << ABOVE(r, tol)
    with loop() as it:
        updates << updates + q.nvals
        x(found.accum) << q
        r(~q.S, replace) << r
        t << moved
        r(found.accum) << t
        q << SECOND(t & r)  # all others are as they were
        q << ABOVE(q, tol)
        it.until((q.nvals == 0) | (updates >= most))
    count, done = int(updates.value), q.nvals == 0
    found.total._session.give(found.total, x, found.rest, r)
    return count, done


SECOND = BinaryOp.registry["second"]
ABOVE = SelectOp.register_anonymous(lambda x, i, j, tol: (x > tol) | (x < -tol), "above")
