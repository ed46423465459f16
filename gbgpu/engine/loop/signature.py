"""What a loop is made of, so that another one of the same statements is known to be the same."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from ...language.expr import Expression, Operand, Statement, Transposed
from ...language.index import Index
from ...language.masks import Mask
from ...language.recording import Operation, Recorded
from ...semiring._types import DataType

_PLAIN = (int, str, bool, bytes, type(None))


class Unlike(Exception):
    """No two loops are known to be the same that have this."""


class Signature:
    """The statements of a loop with numbers in place of its handles. `key` is equal for loops that mean the same for
    handles with the same content; None if that can't be said. `handles`: all, by their numbers."""

    def __init__(self, loop: Any):
        self._loop, self._numbers = loop, {}  # type: tuple[Any, dict[int, int]]
        self.handles: list[Any] = []
        self.key: Hashable = None
        try:
            self._changed = {id(handle) for handle in _outputs(loop.body)}
            self.key = loop.max_iterations, self._of(loop.body)
            hash(self.key)
        except (Unlike, TypeError):
            self.key = None

    def number(self, handle: Any) -> int:
        return self._numbers[id(handle)]

    def _of(self, x: Any) -> Hashable:
        if isinstance(x, _PLAIN):
            return type(x), x
        if isinstance(x, (float, np.generic)):
            return type(x), np.asarray(x).tobytes()  # NaN is itself, -0.0 is not 0.0
        if isinstance(x, Operation):
            return x.kind, self._guarded(x.what) if x.kind == "when" else self._of(x.what)
        if isinstance(x, Statement):
            hints = tuple(sorted(x.hints.items()))
            return *map(self._of, (x.output, x.mask, x.accum, x.replace, x.expr, x.index)), hints
        if isinstance(x, (tuple, list)):
            return type(x).__name__, *map(self._of, x)
        if isinstance(x, Recorded):
            return self._recorded(x.source[0], x.source[1], x.dtype)
        if isinstance(x, Expression):
            option = self._of(x.option if x.kind != "number" or x.op is None else x.option.missing)
            if option == self._of("defaults"):  # they are not told
                raise Unlike
            return x.kind, x.dtype, x.shape, option, *map(self._of, (x.op, x.left, x.right))
        if isinstance(x, Transposed):
            return "T", self._of(x.matrix)
        if isinstance(x, Operand):
            return self._handle(x)
        if isinstance(x, Mask):
            return x.structural, x.complement, self._of(x.parent)
        if isinstance(x, Index):
            return self._index(x)
        if isinstance(x, DataType) or type(x).__module__.startswith("gbgpu.semiring."):
            return x  # an operator is itself
        raise Unlike

    def _guarded(self, inner: Any) -> Hashable:
        return self._of(inner.condition), self._of(inner.operations)

    def _recorded(self, what: str, of: Any, dtype: DataType) -> Hashable:
        if what == "index" and of is self._loop:
            return what, dtype
        if what != "nvals":
            raise Unlike
        return what, self._of(of)

    def _handle(self, x: Any) -> Hashable:
        if x.lazy:
            raise Unlike
        if x.ndim == 0 and x._store is None and id(x) not in self._changed:
            return "number", x.dtype, self._of(x._value)
        if id(x) not in self._numbers:
            self._numbers[id(x)] = len(self.handles)
            self.handles.append(x)
        return "handle", self.number(x), x.dtype, x.shape

    def _index(self, x: Index) -> Hashable:
        if x._ids is not None and x.vector is None:
            raise Unlike
        return "index", x.n, x._range, self._of(x.vector)


def _outputs(operations: list[Operation]) -> list[Any]:
    """The handles that operations change."""
    found = []
    for operation in operations:
        if operation.kind == "when":
            found += _outputs(operation.what.operations)
        elif operation.kind in ("statement", "clear"):
            found.append(operation.what if operation.kind == "clear" else operation.what.output)
    return found
