"""Binary operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._operators import BinaryOp
from gbgpu.semiring._operators import from_string as _from_string

register_new = BinaryOp.register_new
register_anonymous = BinaryOp.register_anonymous
globals().update(BinaryOp.registry)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "binary")


def __getattr__(name: str) -> BinaryOp:
    try:
        return BinaryOp.registry[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*BinaryOp.registry, "from_string", "register_anonymous", "register_new"])
