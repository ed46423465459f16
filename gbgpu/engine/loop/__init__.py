"""Recorded loops: round after round by statements; rounds that ask for the same again go
round by themselves."""

from typing import Any

from .device import DeviceLoop


def carry_out(session: Any, loop: Any) -> Any:
    """Run a loop to its end; or plan its statements, where plans are wanted."""
    loop.begin()
    if session.explaining:
        return loop.planned()
    compiled = DeviceLoop.of(session, loop)
    try:
        while not loop.over:
            if compiled is None or not compiled.advance():
                loop.round()
    finally:
        if compiled is not None:
            compiled.close()
