"""Select operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._operators import SelectOp
from gbgpu.semiring._operators import from_string as _from_string

register_new = SelectOp.register_new
register_anonymous = SelectOp.register_anonymous
globals().update(SelectOp.registry)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "select")


def __getattr__(name: str) -> SelectOp:
    try:
        return SelectOp.registry[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*SelectOp.registry, "from_string", "register_anonymous", "register_new"])
