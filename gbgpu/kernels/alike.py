"""Texts of CPU kernels that differ in numbers only, such as those of functions that capture another number each: from
the second one on they share one text, whose arguments the numbers are."""

import ast
import re
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import settings
from ..device.store import code_name

_NUMBER = re.compile(r"np\.((?:u?int|float)\d+)\((-?)(np\.(?:inf|nan)|[\d.]+(?:e[-+]?\d+)?)\)")
# By what texts have besides their numbers: those of the first one, and which of them others have otherwise.
_seen: OrderedDict[str, tuple[tuple[str, ...], frozenset[int]]] = OrderedDict()


class Given:
    """A kernel with the last of its arguments."""

    __slots__ = ("kernel", "numbers")

    def __init__(self, kernel: Any, numbers: tuple[Any, ...]):
        self.kernel, self.numbers = kernel, numbers

    def __call__(self, *arguments: Any) -> None:
        self.kernel(*arguments, *self.numbers)


def bare(kernel: Any) -> Any:
    """A kernel without arguments of its own."""
    return kernel.kernel if type(kernel) is Given else kernel


def shared(text: str) -> tuple[str, tuple[Any, ...]]:
    """(the text of a kernel, or one that several share; the arguments that this then has besides)."""
    found = list(_NUMBER.finditer(text))
    numbers, shape = tuple(match[0] for match in found), code_name(_NUMBER.sub(r"np.\1()", text))
    first, varying = _seen.get(shape, (numbers, frozenset()))
    varying |= {i for i, (one, other) in enumerate(zip(first, numbers, strict=True)) if one != other}
    _seen[shape] = first, varying
    _seen.move_to_end(shape)
    if len(_seen) > settings.kept_kernels:
        _seen.popitem(last=False)
    if numbers == first:
        return text, ()
    order = sorted(varying)
    common = _with_arguments(text, {found[i].span(): f"captured{i}" for i in order})
    return (text, ()) if common is None else (common, tuple(_value(found[i]) for i in order))


def _value(match: re.Match) -> Any:
    kind, sign, digits = match.groups()
    number = int(digits) if digits.isdecimal() and not kind.startswith("float") else float(digits.removeprefix("np."))
    return getattr(np, kind)(-number if sign else number)


def _with_arguments(text: str, names: dict[tuple[int, int], str]) -> str | None:
    """The text with names in place of parts of it, which are arguments of `kernel`, and of the functions between it and
    where they stand; None if one stands elsewhere."""
    for (begin, end), name in sorted(names.items(), reverse=True):
        text = text[:begin] + name + text[end:]
    tree, wanted = ast.parse(text), list(names.values())
    needs: dict[str, list[str]] = {}
    for node in tree.body:  # functions stand before those that call them
        if not isinstance(node, ast.FunctionDef):
            continue
        inside = list(ast.walk(node))
        calls = [n for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in needs]
        used = {n.id for n in inside if isinstance(n, ast.Name)}.union(*(needs[n.func.id] for n in calls))  # type: ignore[attr-defined]
        needs[node.name] = [name for name in wanted if name in used]
        for call in calls:
            call.args += [ast.Name(name, ast.Load()) for name in needs[call.func.id]]  # type: ignore[attr-defined]
        node.args.args += [ast.arg(name) for name in needs[node.name]]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n" if needs["kernel"] == wanted else None
