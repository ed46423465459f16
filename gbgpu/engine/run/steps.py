"""What all steps share: kernels, tracing, masks, fresh buffers. The steps themselves are in operands, products,
elementwise and output."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...device.base import Device
from ...distribute.blocks import MatrixBlock, VectorBlock, VectorStore
from ...distribute.needs import Dense
from ...distribute.rowmap import WORD, RowMap, Task
from ...kernels import interface as k
from ...kernels.interface import Spec
from ...semiring._lower import cast_program, to_python
from ..runner import Runner

FORMS = {"list": k.XLIST, "full": k.XFULL, "bitmap": 0}  # flags of a vector as kernels take it


class Steps(Runner):
    """A plan of vectors on its way."""

    __slots__ = ()

    def kernel(self, kind: str, spec: Spec | Callable[[], Spec] | None = None) -> Any:
        """The kernel of the step in hand; the plan remembers it. A function makes the only spec of its kind there."""
        key = (kind, spec) if isinstance(spec, Spec) else kind
        found = self.step.kernels.get(key)
        if found is None:
            made = self.step.spec if spec is None else spec if isinstance(spec, Spec) else spec()
            found = self.step.kernels[key] = self.session.kernels.get(kind, made)
            if hasattr(found, "kept"):
                found.kept(self.step.kernels, key)
        return found

    def rows(self, map: RowMap) -> float:
        """Predicted seconds of a pass over the rows."""
        if map.seconds is None:
            map.seconds = map.n * self.session.kernels.costs.row / map.p
        return map.seconds

    def entries(self, store: VectorStore) -> float:
        """Predicted seconds of a pass over the entries."""
        count = self.session.known_count(store)
        return (store.map.n if count is None else count) * self.session.kernels.costs.row / store.map.p

    def stats(self, b: int) -> tuple[int, Any]:
        """(flag, where kernels on device b count what they look at)."""
        watched = self.session.watched
        return (0, self.session.placeholders(b).stats) if watched is None else (k.TRACE, watched.stats[b])

    def bits(self, name: str, b: int, bit: int = k.MASKED) -> tuple[Any, int]:
        """(words, flags) of a mask register for block b."""
        if not name:
            return self.session.placeholders(b).words, 0
        words, flags = self.registers[name][b]
        return words, flags if bit == k.MASKED else bit

    def dense(self, block: VectorBlock | Dense, b: int) -> tuple[Any, int, Any]:
        """A block with a place for each row, as kernels take it."""
        words = block.words
        return block.vals, block.stride, self.session.placeholders(b).words if words is None else words

    def words(self, words: Any, b: int) -> Any:
        """Presence words, or a dummy where every row is present."""
        return self.session.placeholders(b).words if words is None else words

    def part(
        self, device: Device, block: MatrixBlock, x: VectorBlock, task: Task, row0: int
    ) -> tuple[MatrixBlock, VectorBlock, int]:
        """The part of a block and of its frontier that a task is for: places of a list, else rows."""
        lo, hi = task.lo, task.hi
        vals = x.vals[lo:hi] if x.stride else x.vals
        if x.slots is not None:
            count = device.full(1, hi - lo, np.int64)
            return block, VectorBlock(x.n, vals, x.stride, None, x.slots[lo:hi], count), row0
        words = None if x.words is None else self.bits_from(device, x.words, task)
        return block.part(lo, hi), VectorBlock(hi - lo, vals, x.stride, words), row0 + lo

    def bits_from(self, device: Device, words: Any, task: Task) -> Any:
        """The bits of a task's rows, from the first bit on."""
        lo, n = task.lo, task.hi - task.lo
        if not lo % WORD:
            return words[lo // WORD : -(-task.hi // WORD)]
        found = device.zeros(-(-n // WORD), np.int64)
        self.kernel("move_bits", Spec())(n, words, lo, 0, found)
        return found

    def store(self, blocks: list[VectorBlock]) -> VectorStore:
        """What the step in hand fills, of these blocks."""
        into = self.step.into
        assert into.form is not None
        return VectorStore(into.map, into.dtype, into.form, into.iso, blocks)

    def fresh_list(self, room: int, b: int, dtype: Any, like: Any) -> tuple[Any, Any, Any]:
        """(slots, vals, count) of a list block on device b with slots of the type of `like`."""
        device = self.session.devices[b]
        return device.empty(room, like.dtype), device.empty(room, dtype.np_type), device.zeros(1, np.int64)

    def fresh_bitmap(self, n: int, b: int, dtype: Any, iso: bool = False) -> tuple[Any, Any, Any]:
        """(vals, words, count) of a bitmap block on device b."""
        device = self.session.devices[b]
        return (
            device.empty(1 if iso else n, dtype.np_type),
            device.empty((n + 63) >> 6, np.int64),
            device.zeros(1, np.int64),
        )


def copied(device: Device, buffer: Any) -> Any:
    """A copy; of what another rank holds nothing."""
    if buffer is None:
        return None
    fresh = device.empty(len(buffer), buffer.dtype)
    device.copy(fresh, buffer)
    return fresh


def cast(value: Any, source: Any, target: Any) -> Any:
    """A host value of type `source` as one of `target`, as kernels cast."""
    return _caster(source, target)(source.np_type.type(value))


@cache
def _caster(source: Any, target: Any) -> Callable[[Any], Any]:
    return to_python(cast_program(source, target))
