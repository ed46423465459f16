"""CPU kernels as plain Python functions: nothing to wait for on small objects, and a debugger steps through them."""

import ast
from typing import Any

import numpy as np

from ..semiring._lower import _NumpyMath
from ..trace import counters


class _Bits(ast.NodeTransformer):
    """Bits of words as 64-bit integers: Python's `1 << 63` does not fit one, nor its -1 an unsigned one."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "uint64":
            return ast.Call(ast.Name("_unsigned", ast.Load()), node.args, [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.LShift) and isinstance(node.left, ast.Constant) and node.left.value == 1:
            return ast.Subscript(ast.Name("_bit", ast.Load()), node.right, ast.Load())
        return node


def _unsigned(x: Any) -> np.uint64:
    return np.uint64(x & (1 << 64) - 1 if type(x) is int else x)


def _popcount(word: Any) -> int:
    return (int(word) & (1 << 64) - 1).bit_count()


def _lowest(rest: Any) -> int:
    word = int(rest)
    return (word & -word).bit_length() - 1


def word_of(number: Any) -> Any:
    """The bits of a double."""
    return np.float64(number).view(np.uint64)


def _sort(items: np.ndarray, first: int, end: int) -> None:
    items[first:end].sort()


# What the language has beside Python, and one of its functions in a quicker form.
_KNOWN = {"popcount": _popcount, "lowest": _lowest, "fetch": lambda array, at: None, "math": _NumpyMath}
_KNOWN |= {"word_of": word_of, "digits": lambda word: int(word).bit_length()}
_BIT = [np.uint64(1 << i).astype(np.int64) for i in range(64)]


def interpreted(kind: str, text: str) -> Any:
    """The kernel of this text, uncompiled."""
    tree = ast.fix_missing_locations(_Bits().visit(ast.parse(text.replace("import math\n", ""))))
    space: dict[str, Any] = {**_KNOWN, "_bit": _BIT, "_unsigned": _unsigned}
    exec(compile(tree, f"<{kind}>", "exec"), space)  # our own text
    if "sort" in space:
        space["sort"] = _sort
    kernel = space["kernel"]

    def quiet(*arguments: Any) -> None:
        counters.uncompiled()
        with np.errstate(all="ignore"):
            kernel(*arguments)

    return quiet
