"""Plain Python functions -> programs: traced in one go, or read from their source, or traced path by path."""

from collections.abc import Callable, Sequence

from gbgpu.errors import UdfParseError
from gbgpu.semiring import _calls, _parse, _paths
from gbgpu.semiring._scalar import Program
from gbgpu.semiring._types import lookup_dtype


def from_function(function: Callable, params: Sequence[tuple[str, object]]) -> Program:
    """The program of one plain Python scalar function for parameters ((name, dtype), ...).

    The function is traced if that can't show it that its operands are symbols. If it branches its source is read, which
    joins branches where they meet; what the source can't tell, or where there is none, path by path. Raises
    UdfParseError, with the line, for anything outside the language of user operators.
    """
    typed = [(name, lookup_dtype(dtype)) for name, dtype in params]
    obstacle = _calls.obstacle(function)
    if obstacle is not None:
        return _parse.read(function, typed, obstacle)
    try:
        return _paths.program(function, typed, most=1)
    except UdfParseError:
        pass
    try:
        return _parse.read(function, typed, "branches")
    except UdfParseError:
        pass
    try:
        return _paths.program(function, typed)
    except UdfParseError as problem:
        return _parse.read(function, typed, str(problem))  # tells where it is refused
