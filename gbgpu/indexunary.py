"""Index-unary operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._operators import IndexUnaryOp
from gbgpu.semiring._operators import from_string as _from_string

register_new = IndexUnaryOp.register_new
register_anonymous = IndexUnaryOp.register_anonymous
globals().update(IndexUnaryOp.registry)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "indexunary")


def __getattr__(name: str) -> IndexUnaryOp:
    try:
        return IndexUnaryOp.registry[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*IndexUnaryOp.registry, "from_string", "register_anonymous", "register_new"])
