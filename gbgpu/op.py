"""All operators in one namespace: `op.plus`, `op.min_plus`, `op.abs`. Binary operators come first."""

from gbgpu.semiring import _operators as _ops
from gbgpu.semiring._algebra import Monoid as _Monoid
from gbgpu.semiring._algebra import find_semiring as _find_semiring
from gbgpu.semiring._algebra import semiring_names as _semiring_names

_REGISTRIES = (_ops.BinaryOp.registry, _ops.UnaryOp.registry, _Monoid.registry)


def from_string(text: str):
    """The unary, binary, monoid or semiring operator for a string, in this order; ValueError if there is none."""
    for kind in ("unary", "binary", "monoid", "semiring"):
        try:
            return _ops.from_string(text, kind)
        except ValueError:
            continue
    raise ValueError(f"Unknown op string: {text!r}.  Example usage: 'abs[int]'")


def __getattr__(name: str):
    for registry in _REGISTRIES:
        if name in registry:
            return registry[name]
    found = None if name.startswith("_") else _find_semiring(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted({name for registry in _REGISTRIES for name in registry} | {*_semiring_names(), "from_string"})
