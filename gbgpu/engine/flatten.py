"""Trees of expressions -> one expression of handles, when a statement runs: elementwise chains become one operator,
other operands are computed by statements of their own, each once and freed after its last use."""

from typing import Any

from ..language.expr import Bound, Expression, Third, Transposed, read, thunk
from ..language.parts import inside
from ..semiring._compose import compose, is_plain
from ..semiring._scalar import in_order

_CHAINS = ("apply", "intersect", "chain")  # one operator of the values at a place
_PAIRS = ("union", "intersect", "chain")  # of two vectors or three, row by row


def flat(root: Expression) -> Expression:
    """The expression with handles as its operands, and numbers as its scalars."""
    order = [(node, inside(node)) for node in in_order(root, inside)]
    uses: dict[int, int] = {}
    for _, parts in order:
        for inner in parts:
            uses[id(inner)] = uses.get(id(inner), 0) + 1
    found = _Found()
    for node, parts in order:
        found[id(node)] = found.of(node)
        for inner in parts:
            uses[id(inner)] -= 1
            if not uses[id(inner)]:
                del found[id(inner)]
    return found[id(root)]


class _Found(dict[int, Any]):
    """Of each node by its id: an expression of handles, or the handle once something needs it."""

    def of(self, node: Any) -> Any:
        if isinstance(node, Transposed):
            return self.handle(node.matrix).T
        if node.kind == "fill":
            return filling(node, node.option)
        option = _option(node)
        fused = self._fused(node, option)
        if fused is not None:
            return fused
        sides = self.handle(node.left), None if node.right is None else self.handle(node.right)
        return Expression(node.kind, node.op, *sides, node.dtype, node.shape, option)

    def handle(self, x: Any) -> Any:
        """An operand, computed."""
        if not x.lazy:
            return x
        held = self[id(x)]
        if isinstance(held, Expression):
            held = self[id(x)] = held.new()
        return held

    def _known(self, x: Any) -> Any:
        return self[id(x)] if x is not None and x.lazy else x

    # -- two expressions as one

    def _fused(self, node: Expression, option: Any) -> Expression | None:
        left, right = self._known(node.left), self._known(node.right)
        if node.kind == "apply":
            return _chained(left, node.op, option) if _chains(left) else None
        if node.kind == "reduce":
            return _folded(left, node)
        if node.kind != "intersect" or left.shape != right.shape:
            return None
        both = self._of_both(node, left, right)
        return self._of_three(node, left, right) if both is None else both

    def _of_both(self, node: Expression, left: Any, right: Any) -> Expression | None:
        """`op(f(x) & g(y))` as one operator of x and y."""
        unary = [_chains(side) and side.kind == "apply" and is_plain(side.op, 1) for side in (left, right)]
        if not any(unary) or not is_plain(node.op, 2):
            return None
        whole = compose(node.op, *(side.op if one else None for side, one in zip((left, right), unary, strict=True)))
        pairs = zip((node.left, node.right), (left, right), unary, strict=True)
        x, y = (held.left if one else self.handle(side) for side, held, one in pairs)
        return Expression("intersect", whole, x, y, whole.return_type, node.shape)

    def _of_three(self, node: Expression, left: Any, right: Any) -> Expression | None:
        """`op(f(x | y) & z)` of vectors, and the other way round."""
        for inner, other in ((left, node.right), (right, node.left)):
            if not isinstance(inner, Expression) or inner.kind not in ("union", "intersect") or inner.ndim != 1:
                continue
            if is_plain(inner.op, 2) and is_plain(node.op, 2):
                option = Third(self.handle(other), inner, inner is right)
                return Expression("chain", node.op, inner.left, inner.right, node.dtype, inner.shape, option)
        return None


def _chains(x: Any) -> bool:
    """Whether x is an elementwise expression: an operator on it makes one of both."""
    return isinstance(x, Expression) and x.kind in _CHAINS


def _chained(inner: Expression, outer: Any, option: Bound) -> Expression | None:
    """`outer` on an elementwise expression, if both are operators of values alone."""
    inputs, side = 1 if is_plain(inner.op, 1) else 2, option.side
    if not is_plain(inner.op, inputs):
        return None
    if side and inputs == 1 and is_plain(outer, 2):
        whole = compose(outer, *((inner.op, None) if side == "right" else (None, inner.op)))
    elif not side and is_plain(outer, 1):
        whole, option = compose(outer, inner.op), inner.option
    else:
        return None
    return Expression(inner.kind, whole, inner.left, inner.right, whole.return_type, inner.shape, option)


def _folded(inner: Any, node: Expression) -> Expression | None:
    """The reduction of an elementwise expression, which is not kept; its order varies with the devices."""
    pair = isinstance(inner, Expression) and inner.kind in _PAIRS and inner.ndim == 1
    if not pair or node.option.counted or node._session.deterministic:
        return None
    option = node.option._replace(inner=inner)
    return Expression("fold", node.op, inner.left, inner.right, node.dtype, (), option)


def filling(node: Expression, scalar: Any) -> Expression:
    """One value everywhere; an empty scalar, which deletes, is None. A vector is filled with what still lies on the
    devices."""
    if isinstance(scalar, Expression) and scalar.kind != "number":
        scalar = scalar.new()
    if len(node.shape) == 1:
        late, waits, dtype = node._session.late, None, node.dtype
        if late is not None:  # a round that is captured computes it
            waits, dtype = late(scalar, node.left.dtype), node.left.dtype
        elif not scalar.lazy and scalar.waits:
            waits = scalar
        if waits is not None:
            made = Expression("fill", None, node.left, None, dtype, node.shape, waits)
            made.nested = False
            return made
    value = scalar._node()._read()
    if value is not None:
        value = scalar.dtype.np_type.type(value)
        return Expression("fill", None, node.left, None, node.dtype, node.shape, value)
    return Expression("fill", None, node.left, None, node.left.dtype, node.shape)


def _option(node: Expression) -> Any:
    """Its option with numbers for scalars."""
    op, option = node.op, node.option
    if node.kind == "apply":
        return thunk(op, option)
    if node.kind == "select":
        return read(option, op.dtypes[1])
    if node.kind == "union" and option is not None:
        return tuple(read(*each) for each in zip(option, op.dtypes, strict=True))
    return option
