"""What is inside an expression."""

from typing import Any

from ..semiring._scalar import in_order
from .expr import Expression, Transposed, new_like

Parts = list[tuple[Any, Expression]]


def inside(node: Any) -> list[Any]:
    """Operands of a node that have to be computed."""
    if isinstance(node, Transposed):
        return [node.matrix]
    if not node.nested:
        return []
    return [x for x in (node.left, node.right) if x is not None and x.lazy]


def parted(root: Expression) -> tuple[Parts, Expression]:
    """Split the products with a vector out of an expression.

    Returned are these products, and the expressions that products multiply as a vector, each with a new handle for it,
    in their order; and the expression that reads these handles.
    """
    parts: Parts = []
    if not root.nested:
        return parts, root
    order = in_order(root, inside)
    products = [node for node in order if getattr(node, "kind", "") == "product"]
    apart = {*map(id, products), *(id(x) for node in products for x in (node.left, node.right) if x.ndim == 1)}
    found: dict[int, Any] = {}
    for node in order:
        found[id(node)] = other = _with(node, found)
        if node is not root and id(node) in apart:
            parts.append((new_like(node.shape, node.dtype), other))
            found[id(node)] = parts[-1][0]
    return parts, found[id(root)]


def _with(node: Any, found: dict[int, Any]) -> Any:
    """A node with what was found in place of its operands."""
    if isinstance(node, Transposed):
        matrix = found.get(id(node.matrix), node.matrix)
        return node if matrix is node.matrix else Transposed(matrix)
    left, right = (found.get(id(x), x) for x in (node.left, node.right)) if node.nested else (None, None)
    if not node.nested or left is node.left and right is node.right:
        return node
    return Expression(node.kind, node.op, left, right, node.dtype, node.shape, node.option)
