"""`gb.init(..., deterministic=True)`: results that do not depend on how work is divided, nor on which thread is first.

Products whose sum depends on the order of its terms go by rows, each in slot order; their sum is a tree that depends on
the row's length alone. Reductions of such sums take the whole vector on one device. `any` takes the term of the lowest
index.
"""

from typing import Any

from ..language.expr import Expression
from ..semiring._algebra import Monoid, get_semiring
from ..semiring._operators import BinaryOp
from .context import Context


def order_matters(monoid: Any) -> bool:
    """Whether the order of terms shows in a typed monoid's result."""
    return monoid.is_any or (monoid.dtype.kind == "f" and monoid.name not in ("min", "max"))


def by_rows(session: Context, semiring: Any) -> bool:
    """Whether a product must go by rows. Terms that are all one are the same in any order."""
    ones = semiring.monoid.is_any and not semiring.multiply.program.uses
    return session.deterministic and order_matters(semiring.monoid) and not ones


def settled(expr: Any) -> Any:
    """`any` of positions is their minimum, which goes in any direction."""
    op = expr.op
    uses, multiply = op.multiply.program.uses, op.multiply.op
    if not (op.monoid.is_any and uses and uses <= {"i", "j", "k"} and BinaryOp.registry.get(multiply.name) is multiply):
        return expr
    least = get_semiring(Monoid.registry["min"], multiply)[op.multiply.dtypes[0]]
    return Expression(expr.kind, least, expr.left, expr.right, expr.dtype, expr.shape, expr.option)
