"""What all steps share: kernels, tracing, masks, fresh buffers. The steps themselves are in operands, products,
elementwise and output."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..distribute.blocks import VectorBlock, VectorStore
from ..kernels import interface as k
from ..kernels.interface import Spec
from ..semiring._lower import cast_program, to_python
from ..trace import Record, counters, emit, listeners, now
from .plan import Plan, Step


class Steps:
    """One statement on its way: `registers` hold vector stores by the names of the plan."""

    __slots__ = ("session", "statement", "plan", "facts", "registers", "step", "stats", "moved")

    def __init__(self, session: Any, statement: Any, plan: Plan, facts: Any, registers: dict[str, Any]):
        self.session, self.statement, self.plan, self.facts, self.registers = session, statement, plan, facts, registers
        self.step: Step = plan.steps[0]
        self.stats: list[Any] | None = None
        self.moved: list[tuple[int, list]] | None = None

    def kernel(self, kind: str, spec: Spec | Callable[[], Spec] | None = None) -> Any:
        """The kernel of the step in hand; the plan remembers it. A function makes the only spec of its kind there."""
        key = (kind, spec) if isinstance(spec, Spec) else kind
        found = self.step.kernels.get(key)
        if found is None:
            made = self.step.spec if spec is None else spec if isinstance(spec, Spec) else spec()
            found = self.step.kernels[key] = self.session.kernels.get(kind, made)
        return found

    def each(
        self, map: Any, work: Callable[[int], Any], seconds: float | None = None, whole: bool = False
    ) -> list[Any]:
        """work(b) for every block of `map`, on the devices' threads where that pays (see DeviceSet.each)."""
        seconds = map.n * self.session.kernels.costs.row / map.p if seconds is None else seconds
        if listeners:
            return self._traced(map, work, seconds, whole)
        return self.session.each(map.p, work, seconds, whole)

    def _traced(self, map: Any, work: Callable[[int], Any], seconds: float, whole: bool) -> list[Any]:
        devices, step = self.session.devices, self.step
        self.stats = [devices[b].zeros(4, np.int64) for b in range(map.p)]
        self.moved = [(0, [])] * map.p
        spans = [(0.0, 0.0)] * map.p

        def timed(b: int) -> Any:
            start = now()
            result = work(b)
            spans[b] = start, now()
            return result

        before = counters.launches, counters.host_reads
        results = self.session.each(map.p, timed, seconds, whole)
        launches, reads = counters.launches - before[0], counters.host_reads - before[1]
        ends = step.kind in ("move", "write", "write_list")
        for b in range(map.p):
            moved, sent = self.moved[b]
            count = results[b].count if ends and step.into.form != "full" else None
            count = None if count is None else copied(devices[b], count)  # a later statement may change it
            emit(
                Record(
                    counters.statements,
                    repr(self.statement),
                    step.kind,
                    devices[b].name,
                    self.plan.direction,
                    step.into.form,
                    moved,
                    reads if b == 0 else 0,
                    launches if b == 0 else 0,
                    *spans[b],
                    self.stats[b],
                    count,
                    devices[b].get,
                    sent,
                )
            )
        self.stats = self.moved = None
        return results

    def _account(self, b: int, bytes_moved: int, unknown: Any = ()) -> None:
        counters.moved(bytes_moved)
        if self.moved is not None:
            self.moved[b] = self.moved[b][0] + bytes_moved, [*self.moved[b][1], *unknown]

    def _flag_stats(self, b: int) -> tuple[int, Any]:
        return (0, self.session.nil(b).stats) if self.stats is None else (k.TRACE, self.stats[b])

    def bits(self, name: str, b: int, bit: int = k.MASKED) -> tuple[Any, int]:
        """(words, flags) of a mask register for block b."""
        if not name:
            return self.session.nil(b).words, 0
        words, flags = self.registers[name][b]
        return words, flags if bit == k.MASKED else bit

    def _store(self, step: Step, blocks: list[VectorBlock]) -> VectorStore:
        into = step.into
        return VectorStore(into.map, into.dtype, into.form, into.iso, blocks)

    def _list(self, room: int, b: int, dtype: Any, like: Any) -> tuple[Any, Any, Any]:
        """Fresh (slots, vals, count) of a list block with slots of the type of `like`."""
        device = self.session.devices[b]
        return device.empty(room, like.dtype), device.empty(room, dtype.np_type), device.zeros(1, np.int64)

    def _dense(self, n: int, b: int, dtype: Any, iso: bool = False) -> tuple[Any, Any, Any]:
        """Fresh (vals, words, count) of a bitmap block."""
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
