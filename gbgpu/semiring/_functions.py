"""Plain Python functions -> programs: traced where that can't show, else read from their source."""

from collections.abc import Callable, Sequence

from gbgpu.errors import UdfParseError
from gbgpu.semiring import _calls, _parse
from gbgpu.semiring import _scalar as sc
from gbgpu.semiring._scalar import Program
from gbgpu.semiring._types import lookup_dtype


def from_function(function: Callable, params: Sequence[tuple[str, object]]) -> Program:
    """The program of one plain Python scalar function for parameters ((name, dtype), ...).

    The function is traced if that can't show it that its operands are symbols; else, and when it branches or calls
    scalar functions, its source is read. Raises UdfParseError, with the line, for anything outside the language of user
    operators.
    """
    typed = [(name, lookup_dtype(dtype)) for name, dtype in params]
    obstacle = _calls.obstacle(function)
    first = second = None
    if obstacle is None:
        try:
            first, second = (sc.of_result(function(*sc.user_params(typed)), typed) for _ in range(2))
        except Exception:  # whatever went wrong, the reader of the source does it or tells on which line
            pass
    if first is None or second is None:
        return _parse.read(function, typed, obstacle or "branches or calls functions")
    if first.key != second.key:
        problem = f"{sc.name_of(function)} gives another formula at each call"
        raise UdfParseError(f"{problem}; an operator must depend on its operands only")
    return first
