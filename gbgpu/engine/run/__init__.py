"""Runs the steps of a plan of vectors. What a step means on one block is a kernel behind the narrow interface; here are
buffers, blocks and tasks."""

from typing import Any

from ..plan import Step
from .elementwise import Elementwise
from .operands import Operands
from .output import Output
from .products import Products
from .steps import copied


class Run(Operands, Products, Elementwise, Output):
    """A plan carried out on what its registers and parameters are bound to."""

    __slots__ = ()

    def counts(self, step: Step, result: Any) -> list[Any] | None:
        if step.kind not in ("move", "write", "write_list") or step.into.form == "full":
            return None
        blocks = zip(self.session.devices, result.blocks, strict=False)
        return [copied(device, block.count) for device, block in blocks]  # a later statement may change it
