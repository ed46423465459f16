"""Runs the steps of a plan. What a step means on one block is a kernel behind the narrow interface; here are buffers,
blocks and tasks."""

from typing import Any

from ...trace import listeners
from ..plan import Step
from ..watch import Watched
from .elementwise import Elementwise
from .operands import Operands
from .output import Output
from .products import Products
from .steps import copied


class Run(Operands, Products, Elementwise, Output):
    """One plan carried out on what its registers and parameters are bound to. A step of kind `pull` is the method
    `_pull`."""

    __slots__ = ()

    def go(self) -> Any:
        """Carry out all steps; returns what the last one fills."""
        result, registers = None, self.registers
        for step in self.plan.steps:
            self.step = step
            method = getattr(self, "_" + step.kind)
            result = registers[step.into.name] = self._traced(step, method) if listeners else method(step)
        return result

    def _traced(self, step: Step, method: Any) -> Any:
        """A step and the records of it, one for each device that has a block."""
        devices = self.session.devices
        self.watched = watched = Watched(devices if step.into.map is None else devices[: step.into.map.p])
        try:
            result = method(step)
        finally:
            self.watched = None
        counts = None
        if step.kind in ("move", "write", "write_list") and step.into.form != "full":
            counts = [
                copied(d, block.count) for d, block in zip(devices, result.blocks, strict=False)
            ]  # they may change
        watched.record(self.title, step, self.plan.direction, counts)
        return result
