"""Runs the steps of a plan of vectors. What a step means on one block is a kernel behind the narrow interface; here are
buffers, blocks and tasks."""

from typing import Any

from ..plan import Step
from .elementwise import Elementwise
from .products import Products
from .steps import copied


class Run(Products, Elementwise):
    """A plan carried out on what its registers and parameters are bound to."""

    __slots__ = ()

    def counts(self, step: Step, result: Any) -> list[Any] | None:
        if step.into.name != "w":
            return None
        if step.into.form == "full":
            return [block.n for block in result.blocks]
        blocks = zip(self.session.devices, result.blocks, strict=False)
        return [copied(device, block.count) for device, block in blocks]  # a later statement may change it
