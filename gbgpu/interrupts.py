"""Ctrl-C, and what it must not cut in two.

Python runs signal handlers on the main thread only, between two steps of its interpreter. So Ctrl-C waits for one long
call of compiled code, and comes anywhere between two short ones.
"""

import sys
from _signal import getsignal, signal  # the module signal wraps each call in enumerations, which takes ten times longer
from collections.abc import Callable
from importlib import import_module
from queue import SimpleQueue
from signal import SIGINT
from threading import RLock, Thread, current_thread, main_thread
from typing import Any

from .trace import aside

# Imports and compilers run one at a time. A fork waits for it, so that no child inherits half a module.
loading = RLock()


def here() -> bool:
    """Whether Ctrl-C comes to this thread."""
    return current_thread() is main_thread()


def held(work: Callable[[], Any]) -> Any:
    """work(), with a Ctrl-C that comes meanwhile put off to its end."""
    handler: Any = getsignal(SIGINT) if here() else None
    if not callable(handler):
        return work()
    came: list[Any] = []
    try:
        signal(SIGINT, lambda *what: came.append(what))
        return work()
    finally:
        signal(SIGINT, handler)
        if came:
            handler(*came[0])


def apart(work: Callable[[], Any]) -> Any:
    """work() on a thread of its own, while this one waits: Ctrl-C comes through at once and leaves `work` to end in
    peace. Imports and compilers that an exception cuts in two may stay broken for good."""
    with aside("compile"):
        return _apart(work)


def _apart(work: Callable[[], Any]) -> Any:
    if not here():
        return _alone(work)
    found: SimpleQueue = SimpleQueue()

    def run() -> None:
        try:
            found.put((_alone(work), None))
        except BaseException as error:
            found.put((None, error))

    thread = Thread(target=run, name="gbgpu loading", daemon=False)  # Python waits for it when it ends
    try:
        held(thread.start)  # threading locks what the new thread waits for
    except RuntimeError:  # there are no more threads when Python ends
        return _alone(work)
    result, error = found.get()
    if error is not None:
        raise error
    return result


def _alone(work: Callable[[], Any]) -> Any:
    with loading:
        return work()


def imported(name: str) -> Any:
    """The module of this name; Ctrl-C does not leave it half imported."""
    module = sys.modules.get(name)
    if module is None or getattr(module.__spec__, "_initializing", False):
        module = apart(lambda: import_module(name))
    return module


def compiled_apart(function: Any) -> Any:
    """A function of numba's that looks at arguments of new types, and compiles for them, on a thread of its own."""
    compile = function._compile_for_args
    function._compile_for_args = lambda *arguments: apart(lambda: compile(*arguments))
    return function
