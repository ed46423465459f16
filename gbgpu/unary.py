"""Unary operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._operators import UnaryOp
from gbgpu.semiring._operators import from_string as _from_string

register_new = UnaryOp.register_new
register_anonymous = UnaryOp.register_anonymous
globals().update(UnaryOp.registry)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "unary")


def __getattr__(name: str) -> UnaryOp:
    try:
        return UnaryOp.registry[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*UnaryOp.registry, "from_string", "register_anonymous", "register_new"])
