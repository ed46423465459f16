"""Recorded loops: round after round by statements; on a GPU, rounds that ask for the same again become a CUDA graph."""

from typing import Any

from .device import DeviceLoop


def carry_out(session: Any, loop: Any) -> None:
    """Run a loop to its end."""
    loop.begin()
    compiled = DeviceLoop.of(session, loop)
    while not loop.over:
        if compiled is None or not compiled.advance():
            loop.round()
