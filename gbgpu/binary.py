"""Binary operators by name: the built-in ones and those registered with `register_new`."""

from gbgpu.semiring._names import namespace
from gbgpu.semiring._operators import BinaryOp
from gbgpu.semiring._operators import from_string as _from_string

__all__ = ["from_string", "register_anonymous", "register_new"]

register_new = BinaryOp.register_new
register_anonymous = BinaryOp.register_anonymous
__getattr__, __dir__ = namespace(globals(), BinaryOp.registry.get, BinaryOp.registry.keys)


def from_string(text: str):
    """The operator for a string, its type in brackets if wanted; ValueError if there is none."""
    return _from_string(text, "binary")
