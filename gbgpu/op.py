"""All operators in one namespace: `op.plus`, `op.min_plus`, `op.abs`. Unary operators come first."""

from gbgpu import agg as _agg
from gbgpu.semiring import _operators as _ops
from gbgpu.semiring._algebra import Monoid as _Monoid
from gbgpu.semiring._algebra import find_semiring as _find_semiring
from gbgpu.semiring._algebra import semiring_names as _semiring_names
from gbgpu.semiring._names import namespace as _namespace

__all__ = ["from_string"]
_REGISTRIES = (_ops.UnaryOp.registry, _ops.BinaryOp.registry, _Monoid.registry)


def from_string(text: str):
    """The operator or the aggregator for a string.

    A unary one is looked for first, then a binary one, a monoid, a semiring, an index-unary one, an aggregator.

    Parameters
    ----------
    text : str
        A name, and a type in brackets if wanted: "abs[int]".

    Returns
    -------
    operator
        Typed, if the string has a type.

    Raises
    ------
    ValueError
        If there is none.
    """
    for kind in ("unary", "binary", "monoid", "semiring", "indexunary"):
        try:
            return _ops.from_string(text, kind)
        except ValueError:
            continue
    try:
        return _agg.from_string(text)
    except ValueError:
        raise ValueError(f"Unknown op string: {text!r}.  Example usage: 'abs[int]'") from None


def _find(name: str):
    return next((registry[name] for registry in _REGISTRIES if name in registry), None) or _find_semiring(name)


def _names():
    return {name for registry in _REGISTRIES for name in registry} | set(_semiring_names())


__getattr__, __dir__ = _namespace(globals(), _find, _names)
