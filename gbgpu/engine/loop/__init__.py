"""Recorded loops: round after round by statements; rounds that ask for the same again go
round by themselves."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from ...modes import Listed
from .body import statements_of
from .device import DeviceLoop


def _look_ahead(session: Any, loop: Any) -> None:
    """Plan all statements of a loop that is new, so that their kernels are compiled side by side. What is pushed at
    first may be pulled once frontiers are wide."""
    if session.kernels.kind != "cuda":
        return
    key = tuple((each.expr.kind, each.expr.op, each.output.dtype) for each in statements_of(loop.body))
    if not session.loops.new(key):
        return
    with session.planning([]), suppress(Exception):  # what is wrong is said where it runs
        loop.planned()
        steps = [step for each in statements_of(loop.body) if each.carried for step in each.steps]
        session.kernels.ahead([*steps, *(replace(step, kind="pull") for step in steps if step.kind == "push")])


def carry_out(session: Any, loop: Any) -> Any:
    """Run a loop to its end; or plan its statements, where plans are wanted."""
    loop.begin()
    return loop.planned() if session.explaining else carry_on(session, loop)


def carry_on(session: Any, loop: Any) -> None:
    """Run a loop to its end from where it is."""
    compiled = DeviceLoop.of(session, loop)
    if compiled is None or not compiled.known:
        _look_ahead(session, loop)
    try:
        with Listed(session.looping):
            while not loop.over:
                if session.lock.wanted:
                    (session.lock if compiled is None else compiled).give_way()
                if compiled is None or not compiled.advance():
                    loop.round()
    finally:
        if compiled is not None:
            compiled.close()
