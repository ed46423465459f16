"""What all steps share: kernels, tracing, masks, fresh buffers. The steps themselves are in operands, products,
elementwise and output."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...distribute.blocks import VectorBlock, VectorStore
from ...distribute.partition import Task
from ...kernels import interface as k
from ...kernels.interface import Spec
from ...semiring._lower import cast_program, to_python
from ...trace import counters
from ..plan import Plan, Step
from ..watch import Watched


class Steps:
    """A plan on its way: `registers` hold stores, and parameters, by the names of the plan. `title` is what records
    call it by its repr."""

    __slots__ = ("session", "plan", "registers", "title", "step", "watched")

    def __init__(self, session: Any, plan: Plan, bound: dict[str, Any], title: object):
        self.session, self.plan, self.registers, self.title = session, plan, bound, title
        self.step: Step = plan.steps[0]
        self.watched: Watched | None = None  # the step in hand, while somebody traces

    def kernel(self, kind: str, spec: Spec | Callable[[], Spec] | None = None) -> Any:
        """The kernel of the step in hand; the plan remembers it. A function makes the only spec of its kind there."""
        key = (kind, spec) if isinstance(spec, Spec) else kind
        found = self.step.kernels.get(key)
        if found is None:
            made = self.step.spec if spec is None else spec if isinstance(spec, Spec) else spec()
            found = self.step.kernels[key] = self.session.kernels.get(kind, made)
        return found

    def each(self, tasks: Sequence[Task], work: Callable[[Task], Any], seconds: float) -> list[Any]:
        """work(task) for every task, on the devices' threads where that pays; results in the order of the tasks."""
        if self.watched is not None:
            work = self.watched.timed(work)
        return self.session.over(tasks, work, seconds)

    def rows(self, map: Any) -> float:
        """Predicted seconds of a pass over the rows."""
        return map.n * self.session.kernels.costs.row / map.p

    def entries(self, store: VectorStore) -> float:
        """Predicted seconds of a pass over the entries."""
        count = self.session.known_count(store)
        return (store.map.n if count is None else count) * self.session.kernels.costs.row / store.map.p

    def account(self, b: int, moved: int, unknown: Any = ()) -> None:
        """Bytes that arrived at device b; of messages whose length only devices know, (count, bytes an entry)."""
        counters.exchanged += moved
        if self.watched is not None:
            self.watched.moved[b] += moved
            self.watched.sent[b].extend(unknown)

    def stats(self, b: int) -> tuple[int, Any]:
        """(flag, where kernels on device b count what they look at)."""
        return (0, self.session.nil(b).stats) if self.watched is None else (k.TRACE, self.watched.stats[b])

    def bits(self, name: str, b: int, bit: int = k.MASKED) -> tuple[Any, int]:
        """(words, flags) of a mask register for block b."""
        if not name:
            return self.session.nil(b).words, 0
        words, flags = self.registers[name][b]
        return words, flags if bit == k.MASKED else bit

    def words(self, words: Any, b: int) -> Any:
        """Presence words, or a dummy where every row is present."""
        return self.session.nil(b).words if words is None else words

    def store(self, blocks: list[VectorBlock]) -> VectorStore:
        """What the step in hand fills, of these blocks."""
        into = self.step.into
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


def copied(device: Any, buffer: Any) -> Any:
    fresh = device.empty(len(buffer), buffer.dtype)
    device.copy(fresh, buffer)
    return fresh


def cast(value: Any, source: Any, target: Any) -> Any:
    """A host value of type `source` as one of `target`, as kernels cast."""
    return _caster(source, target)(source.np_type.type(value))


@cache
def _caster(source: Any, target: Any) -> Callable[[Any], Any]:
    return to_python(cast_program(source, target))
