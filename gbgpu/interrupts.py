"""Ctrl-C and other signals, and what they must not cut in two.

Python runs signal handlers on the main thread only, between two steps of its interpreter. So Ctrl-C waits for one long
call of compiled code, and comes anywhere between two short ones. The same holds for each signal whose handler raises:
time limits by SIGALRM, or SIGTERM as SystemExit.
"""

import sys
from _signal import getsignal, signal, valid_signals  # the module signal wraps each in enumerations: ten times longer
from collections.abc import Callable
from importlib import import_module
from operator import is_
from queue import SimpleQueue
from threading import RLock, Thread, current_thread, main_thread
from typing import Any

from .trace import aside

# Imports and compilers run one at a time. A fork waits for it, so that no child inherits half a module.
loading = RLock()


def here() -> bool:
    """Whether Ctrl-C comes to this thread."""
    return current_thread() is main_thread()


class _PutOff:
    """The handler, while `held` goes on, of signals that have one in Python: notes what comes until `release`. Should
    that have been cut short, the next signal puts the handlers back and goes to its own."""

    __slots__ = "_came", "_handlers"

    def __init__(self) -> None:
        self._came: list[tuple[int, Any]] = []
        self._handlers: dict[int, Any] = {}

    def __call__(self, number: int, frame: Any) -> None:
        self._came.append((number, frame))
        if not self.under_way(frame):
            self.release()

    def under_way(self, frame: Any) -> bool:
        """Whether `frame` was called, through others, by the `held` that this is for."""
        while frame is not None and not (frame.f_code is held.__code__ and frame.f_locals.get("put_off") is self):
            frame = frame.f_back
        return frame is not None

    def begin(self) -> None:
        for number, handler in _handled():
            self._handlers[number] = handler._handlers[number] if type(handler) is _PutOff else handler
            signal(number, self)

    def release(self) -> None:
        """Put the handlers back, and call those that are there for what came, one after the other: also where one of
        them raises."""
        global _now
        _now = None
        try:
            for number, handler in self._handlers.items():
                if getsignal(number) is self:
                    signal(number, handler)
            while self._came:
                number, frame = self._came.pop(0)
                handler = getsignal(number)  # another handler may have changed it
                if callable(handler):
                    handler(number, frame)
        except BaseException:  # of a handler, which may be called as soon as it is back
            self.release()
            raise


def _handled() -> list[tuple[int, Any]]:
    """The signals that have handlers in Python, and these. Real-time signals are left out: nobody's handler of one
    raises."""
    global _known
    found, (known, pairs) = tuple(map(getsignal, _SIGNALS)), _known
    if len(known) != len(found) or not all(map(is_, found, known)):  # handlers may be equal and do other things
        pairs = [pair for pair in zip(_SIGNALS, found, strict=True) if callable(pair[1])]
        _known = found, pairs
    return pairs


_SIGNALS = tuple(number for number in valid_signals() if number < 32)  # looked at by each `held`
_known: tuple[tuple[Any, ...], list[tuple[int, Any]]] = ((), [])  # the handlers of all signals when last looked at
_now: _PutOff | None = None


def held(work: Callable[[], Any]) -> Any:
    """work(), with signals that come meanwhile put off to its end: those with a handler in Python, which may raise, as
    that of Ctrl-C does."""
    global _now
    if not here() or _now is not None and _now.under_way(sys._getframe()):
        return work()
    put_off = _now = _PutOff()
    try:
        put_off.begin()
        return work()
    finally:
        put_off.release()


def apart(work: Callable[[], Any]) -> Any:
    """work() on a thread of its own, while this one waits: Ctrl-C comes through at once and leaves `work` to end in
    peace. Imports and compilers that an exception cuts in two may stay broken for good."""
    with aside("compile"):
        return _apart(work)


def in_turn(work: Callable[[], Any]) -> Any:
    """work(), which takes a moment, by one thread at a time; signals wait for its end."""
    with aside("compile"):
        return held(lambda: _alone(work))


def _apart(work: Callable[[], Any]) -> Any:
    if not here() or loading._is_owned():  # type: ignore[attr-defined]
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
