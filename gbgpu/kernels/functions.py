"""Functions of Python files that run as machine code: they are written in the language of llvm.py."""

import sys
from functools import cache
from typing import Any

from .. import settings
from .cpu import load
from .interpreted import interpreted


def compiled(module: str, name: str) -> Any:
    """A function of a module as a kernel: it returns nothing, and takes arrays of one dimension and numbers."""
    return _compiled(module, name, settings.interpret)


@cache
def _compiled(module: str, name: str, interpret: bool) -> Any:
    loader: Any = sys.modules[module].__loader__
    text = f"{loader.get_source(module)}\nkernel = {name}\n"
    return interpreted(name, text) if interpret else load(name, text)
