"""Runs the steps of a plan. What a step means on one block is a kernel behind the narrow interface; here are buffers,
blocks and devices."""

from typing import Any

from .elementwise import Elementwise
from .operands import Operands
from .output import Output
from .products import Products


class Run(Operands, Products, Elementwise, Output):
    """One statement carried out. A step of kind `pull` is the method `_pull`."""

    __slots__ = ()

    def go(self) -> Any:
        """Carry out all steps; returns the output's new store, or None if it was changed in place."""
        result = None
        for step in self.plan.steps:
            self.step = step
            result = self.registers[step.into.name] = getattr(self, "_" + step.kind)(step)
        return result
