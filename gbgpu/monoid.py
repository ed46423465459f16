"""Monoids by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._algebra import Monoid
from gbgpu.semiring._operators import from_string as _from_string

register_new = Monoid.register_new
register_anonymous = Monoid.register_anonymous
globals().update(Monoid.registry)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "monoid")


def __getattr__(name: str) -> Monoid:
    try:
        return Monoid.registry[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*Monoid.registry, "from_string", "register_anonymous", "register_new"])
