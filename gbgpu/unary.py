"""Unary operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._names import namespace
from gbgpu.semiring._operators import UnaryOp
from gbgpu.semiring._operators import from_string as _from_string

__all__ = ["from_string", "register_anonymous", "register_new"]

register_new = UnaryOp.register_new
register_anonymous = UnaryOp.register_anonymous
__getattr__, __dir__ = namespace(globals(), UnaryOp.registry.get, UnaryOp.registry.keys)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "unary")
