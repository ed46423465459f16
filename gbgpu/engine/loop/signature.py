"""What a loop is made of, so that another one of the same statements is known to be the same."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import numpy as np

from ...language.expr import Expression, Operand, Statement, Transposed
from ...language.index import Index
from ...language.masks import Mask
from ...language.recording import Operation, Recorded, outputs
from ...semiring._types import DataType


class Unlike(Exception):
    """No two loops are known to be the same that have this."""


class Key:
    """A tree of tuples that many are looked up by: its hash is computed once. Raises TypeError if it has none."""

    __slots__ = ("_tree", "_hash")

    def __init__(self, tree: Hashable):
        self._tree, self._hash = tree, hash(tree)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Key) and self._hash == other._hash and self._tree == other._tree


class Signature:
    """The statements of a loop with numbers in place of its handles. `key` is equal for loops that mean the same for
    handles with the same content; None if that can't be said. `handles`: all, by their numbers."""

    def __init__(self, loop: Any):
        self._loop, self._numbers = loop, {}  # type: tuple[Any, dict[int, int]]
        self.handles: list[Any] = []
        self._scalars: list[tuple[Any, Any]] = []  # that the loop reads, and what they were
        self.key: Key | None = None
        with suppress(Unlike, TypeError):
            self._changed = {id(handle) for handle in outputs(loop.body)}
            self.key = Key((loop.max_iterations, self._of(loop.body)))
        self._loop = None  # which has this

    @classmethod
    def of(cls, loop: Any) -> "Signature":
        """That of a loop, which may have run before."""
        if loop.signature is None or not loop.signature._holds:
            loop.signature = cls(loop)
        found: Signature = loop.signature
        return found

    @property
    def _holds(self) -> bool:
        return all(value_of(x) == known for x, known in self._scalars)

    def number(self, handle: Any) -> int:
        return self._numbers[id(handle)]

    def _of(self, x: Any) -> Hashable:
        return None if x is None else _ways[type(x)](self, x)

    def _plain(self, x: Any) -> Hashable:
        return type(x), x

    def _number(self, x: Any) -> Hashable:
        return type(x), np.asarray(x).tobytes()  # NaN is itself, -0.0 is not 0.0

    def _operation(self, x: Operation) -> Hashable:
        return x.kind, self._guarded(x.what) if x.kind == "when" else self._of(x.what)

    def _statement(self, x: Statement) -> Hashable:
        of, hints = self._of, tuple(sorted(x.hints.items())) if x.hints else ()
        return of(x.output), of(x.mask), of(x.accum), x.replace, of(x.expr), of(x.index), hints

    def _several(self, x: Any) -> Hashable:
        return type(x).__name__, *map(self._of, x)

    def _expression(self, x: Expression) -> Hashable:
        option = x.option if x.kind != "number" or x.op is None else x.option.missing
        if isinstance(option, str) and option == "defaults":  # they are not told
            raise Unlike
        of = self._of
        return x.kind, x.dtype, x.shape, of(option), of(x.op), of(x.left), of(x.right)

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
        if what not in ("nvals", "value"):
            raise Unlike
        return what, self._of(of)

    def _handle(self, x: Any) -> Hashable:
        number = self._numbers.get(id(x))
        if number is not None:
            return number
        if x.lazy:
            raise Unlike
        if x.ndim == 0 and id(x) not in self._changed:
            self._scalars.append((x, value_of(x)))
            if x._store is None:
                return "number", x.dtype, self._of(x._value)
        self._numbers[id(x)] = len(self.handles)
        self.handles.append(x)
        return "handle", x.dtype, x.shape

    def _index(self, x: Index) -> Hashable:
        if x._ids is not None and x.vector is None:
            raise Unlike
        return "index", x.n, x._range, self._of(x.vector)


def value_of(scalar: Any) -> Any:
    """The value that a scalar has on the host, as it is compared; None where it lies on the devices."""
    return None if scalar._store is not None else (type(scalar._value), repr(scalar._value))


_WAYS: list[tuple[Any, Callable[[Signature, Any], Hashable]]] = [  # the first that is one of a type's own
    ((str, bytes), Signature._itself),  # equal to nothing of another type
    ((int, bool), Signature._plain),
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


class _Ways(dict[type, Callable[[Signature, Any], Hashable]]):
    """By type, found when first asked for."""

    def __missing__(self, kind: type) -> Callable[[Signature, Any], Hashable]:
        operator = kind.__module__.startswith("gbgpu.semiring.")  # is itself
        last = Signature._itself if operator else Signature._unlike
        way = self[kind] = next((way for kinds, way in _WAYS if issubclass(kind, kinds)), last)
        return way


_ways = _Ways()
