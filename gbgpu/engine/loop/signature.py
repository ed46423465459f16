"""What a loop is made of, so that another one of the same statements is known to be the same."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ...language.expr import Expression, Operand, Statement, Transposed
from ...language.index import Index
from ...language.masks import Mask
from ...language.recording import Operation, Recorded
from ...semiring._types import DataType


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
        way = _ways.get(type(x)) or _way(type(x))
        return way(self, x)

    def _plain(self, x: Any) -> Hashable:
        return type(x), x

    def _number(self, x: Any) -> Hashable:
        return type(x), np.asarray(x).tobytes()  # NaN is itself, -0.0 is not 0.0

    def _operation(self, x: Operation) -> Hashable:
        return x.kind, self._guarded(x.what) if x.kind == "when" else self._of(x.what)

    def _statement(self, x: Statement) -> Hashable:
        hints = tuple(sorted(x.hints.items()))
        return *map(self._of, (x.output, x.mask, x.accum, x.replace, x.expr, x.index)), hints

    def _several(self, x: Any) -> Hashable:
        return type(x).__name__, *map(self._of, x)

    def _expression(self, x: Expression) -> Hashable:
        option = x.option if x.kind != "number" or x.op is None else x.option.missing
        if isinstance(option, str) and option == "defaults":  # they are not told
            raise Unlike
        return x.kind, x.dtype, x.shape, *map(self._of, (option, x.op, x.left, x.right))

    def _transposed(self, x: Transposed) -> Hashable:
        return "T", self._of(x.matrix)

    def _mask(self, x: Mask) -> Hashable:
        return x.structural, x.complement, self._of(x.parent)

    def _itself(self, x: Any) -> Hashable:
        return x

    def _unlike(self, x: Any) -> Hashable:
        raise Unlike

    def _guarded(self, inner: Any) -> Hashable:
        return self._of(inner.condition), self._of(inner.operations)

    def _recorded(self, x: Recorded) -> Hashable:
        what, of = x.source
        if what == "index" and of() is self._loop:
            return what, x.dtype
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


_WAYS: list[tuple[Any, Callable[[Signature, Any], Hashable]]] = [  # the first that is one of a type's own
    ((int, str, bool, bytes, type(None)), Signature._plain),
    ((float, np.generic), Signature._number),
    (Operation, Signature._operation),
    (Statement, Signature._statement),
    ((tuple, list), Signature._several),
    (Recorded, Signature._recorded),
    (Expression, Signature._expression),
    (Transposed, Signature._transposed),
    (Operand, Signature._handle),
    (Mask, Signature._mask),
    (Index, Signature._index),
    (DataType, Signature._itself),
]


_ways: dict[type, Callable[[Signature, Any], Hashable]] = {}


def _way(kind: type) -> Callable[[Signature, Any], Hashable]:
    operator = kind.__module__.startswith("gbgpu.semiring.")  # is itself
    last = Signature._itself if operator else Signature._unlike
    way = _ways[kind] = next((way for kinds, way in _WAYS if issubclass(kind, kinds)), last)
    return way


def _outputs(operations: list[Operation]) -> list[Any]:
    """The handles that operations change."""
    found = []
    for operation in operations:
        if operation.kind == "when":
            found += _outputs(operation.what.operations)
        elif operation.kind in ("statement", "clear"):
            found.append(operation.what if operation.kind == "clear" else operation.what.output)
    return found
