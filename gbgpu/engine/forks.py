"""What happens to a session where the process forks: children start threads of their own, or say why they can't."""

import os
from contextlib import ExitStack

from .. import interrupts, settings

_held = ExitStack()  # the locks, while a fork is under way


def _before() -> None:
    """A child inherits no half statement, and no half module."""
    _held.enter_context(interrupts.loading)
    if settings._session is not None:
        _held.enter_context(settings._session.lock)


def _after() -> None:
    _held.close()


def _in_child() -> None:
    _after()
    if settings._session is not None:
        settings._session.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
