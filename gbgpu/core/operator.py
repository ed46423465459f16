"""Which kind of operator a value is."""

from typing import Any

from gbgpu import agg, binary, indexunary, monoid, op, select, semiring, unary

UNKNOWN_OPCLASS = "UnknownOpClass"
_CLASSES = {
    "unary": "UnaryOp",
    "binary": "BinaryOp",
    "monoid": "Monoid",
    "semiring": "Semiring",
    "indexunary": "IndexUnaryOp",
    "select": "SelectOp",
}


def find_opclass(operator: Any) -> tuple[Any, str]:
    """(operator, the name of its class), where strings are looked up.

    The name is "UnknownOpClass" for anything else, aggregators too.
    """
    if isinstance(operator, str):
        operator = _from_string(operator)
    kind = getattr(operator, "kind", None) or getattr(getattr(operator, "op", None), "kind", None)
    return operator, _CLASSES.get(kind, UNKNOWN_OPCLASS) if isinstance(kind, str) else UNKNOWN_OPCLASS


def _from_string(text: str) -> Any:
    for module in (op, indexunary, select, agg):
        try:
            return module.from_string(text)
        except ValueError:
            continue
    return text


def get_typed_op(operator: Any, dtype: Any, dtype2: Any = None, **kind: Any) -> Any:
    """The operator for one input type, or two; one that is typed stays."""
    operator = find_opclass(operator)[0]
    if hasattr(operator, "op") or hasattr(operator, "parent"):
        return operator
    return operator[dtype] if dtype2 is None else operator[dtype, dtype2]


get_semiring = semiring.get_semiring
__all__ = ["UNKNOWN_OPCLASS", "binary", "find_opclass", "get_semiring", "get_typed_op", "monoid", "unary"]
