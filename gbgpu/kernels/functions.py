"""Functions of Python files that run as machine code: they are written in the language of llvm.py."""

import sys
from inspect import getsource
from typing import Any

from .. import settings
from .cpu import load
from .interpreted import interpreted

_held: dict[tuple, Any] = {}  # by module, name and setting; machine code once it is there


def compiled(module: str, name: str) -> Any:
    """A function of a module as a kernel: it returns nothing, and takes arrays of one dimension and numbers."""
    key = module, name, settings.interpret
    found = _held.get(key)
    if found is None:
        text = f"{getsource(sys.modules[module])}\nkernel = {name}\n"  # pytest's loaders, too, have files
        found = _held[key] = interpreted(name, text) if settings.interpret else load(name, text)
        if not settings.interpret:
            found.kept(_held, key)
    return found
