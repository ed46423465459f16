"""Select operators by name: the built-in ones and those registered with `register_new`."""

from typing import Any

from gbgpu.semiring._names import namespace
from gbgpu.semiring._operators import SelectOp, compared
from gbgpu.semiring._operators import from_string as _from_string

__all__ = ["column", "from_string", "index", "register_anonymous", "register_new", "row", "value"]

register_new = SelectOp.register_new
register_anonymous = SelectOp.register_anonymous
__getattr__, __dir__ = namespace(globals(), SelectOp.registry.get, SelectOp.registry.keys)


def from_string(text: str):
    """The select operator for a string.

    Parameters
    ----------
    text : str
        A name or a sign, and a type in brackets if wanted: ">=", "valuegt[int]".

    Returns
    -------
    operator
        Typed, if the string has a type.

    Raises
    ------
    ValueError
        If there is none.
    """
    return _from_string(text, "select")


def value(expr: Any) -> Any:
    """The entries of A whose value passes a comparison: `select.value(A > 3)` is `select.valuegt(A, 3)`."""
    return compared(expr, "value")


def row(expr: Any) -> Any:
    """The entries of A whose row passes a comparison: `select.row(A <= 5)` is `select.rowle(A, 5)`."""
    return compared(expr, "row")


def column(expr: Any) -> Any:
    """The entries of A whose column passes a comparison: `select.column(A <= 5)` is `select.colle(A, 5)`."""
    return compared(expr, "column")


def index(expr: Any) -> Any:
    """The entries of v whose index passes a comparison: `select.index(v <= 5)` is `select.indexle(v, 5)`."""
    return compared(expr, "index")
