"""Index-unary operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._names import namespace
from gbgpu.semiring._operators import IndexUnaryOp
from gbgpu.semiring._operators import from_string as _from_string

__all__ = ["from_string", "register_anonymous", "register_new"]

register_new = IndexUnaryOp.register_new
register_anonymous = IndexUnaryOp.register_anonymous
__getattr__, __dir__ = namespace(globals(), IndexUnaryOp.registry.get, IndexUnaryOp.registry.keys)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "indexunary")
