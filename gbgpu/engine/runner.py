"""What runs a plan: step after step, each a method, with a record of it for whoever traces."""

from typing import Any

from ..trace import listeners
from .context import Context
from .plan import Plan, Step
from .watch import Watched


class Runner:
    """A plan on its way: `registers` hold stores, and parameters, by the names of the plan. `title` is what records
    call it by its repr. A step of kind `pull` is the method `_pull`."""

    __slots__ = ("session", "plan", "registers", "title", "step")

    def __init__(self, session: Context, plan: Plan, bound: dict[str, Any], title: object):
        self.session, self.plan, self.registers, self.title = session, plan, bound, title
        self.step: Step = plan.steps[0]

    def go(self) -> Any:
        """Carry out all steps; returns what the last one fills."""
        result, registers = None, self.registers
        for step in self.plan.steps:
            self.step = step
            method = getattr(self, step.method)
            result = registers[step.into.name] = self.made(step, method) if listeners else method(step)
        return result

    def made(self, step: Step, method: Any) -> Any:
        """method(step), and the records of it, one for each device that has a block."""
        session, map = self.session, step.into.map
        if not listeners or session.writing:  # what a loop's round will do is written down
            return method(step)
        devices = session.devices if map is None else session.devices[: map.p]
        session.watched = watched = Watched(session.devices)
        try:
            result = method(step)
        finally:
            session.watched = None
        watched.record(devices, self.title, step, self.plan.direction, self.counts(step, result))
        return result

    def counts(self, step: Step, result: Any) -> list[Any] | None:
        """Where each block's number of entries is, of a step that ends a statement."""
        return None
