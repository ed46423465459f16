"""Modes: what holds while a `with` goes on (a loop is recorded, statements are planned, records are collected).

Ctrl-C, or a signal's handler that raises, may come before any step of the interpreter: also between the last statement
of a `with` and its `__exit__`. So no mode relies on `__exit__`. A `with` keeps on the interpreter's stack what looking
`__exit__` up has given it, and nothing else refers to that object: the token. Whatever ends the `with`, the token is
gone. A mode has a weak reference to its token, and is over once that is dead. A traceback that is kept holds frames
with their variables, but no token.
"""

from collections.abc import Callable
from functools import partial
from threading import Thread, current_thread, get_ident
from typing import Any
from weakref import ref


class _Token:
    __slots__ = ("__weakref__",)


class Exit:
    """A decorator for the `__exit__` of a Mode: each `with` that looks it up is given a token."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __get__(self, mode: "Mode | None", kind: Any = None) -> Any:
        if mode is None:  # contextlib.ExitStack looks it up so: the mode has its token
            return self._function
        token = partial(self._function, mode)
        mode._token = ref(token)
        return token


class Mode:
    """A context whose `__exit__` is under `@Exit`, and whose `__enter__` makes something depend on `until_over()`.

    Both may be called by hand: then the mode is over with `__exit__`, or once the object is gone."""

    _token: "ref[Any] | None" = None
    _own: Any = None

    def until_over(self) -> "ref[Any]":
        """A weak reference that is dead once the mode is over."""
        if self._token is None or self._token() is None:
            self._own = _Token()
            self._token = ref(self._own)
        return self._token

    @Exit
    def __exit__(self, *failure: Any) -> Any:
        self._own = None


class Open:
    """What a thread is in while a mode is open (see Threads)."""

    _until: "ref[Any] | None" = None
    _above: "Open | None" = None
    _thread: Thread | None = None
    _number = 0  # the thread's

    @property
    def open(self) -> bool:
        return self._until is not None and self._until() is not None

    @property
    def above(self) -> Any:
        """What it is in itself, or None."""
        return _innermost(self._above)


def _innermost(here: Open | None) -> Open | None:
    while here is not None and not here.open:
        here = here._above
    return here


class Threads(dict[int, Open]):
    """By the numbers of threads: the innermost that each is in. What is over is dropped by who looks."""

    def here(self) -> Any:
        """The innermost that this thread is in, or None."""
        if not self or (found := self.get(get_ident())) is None:
            return None
        if found._thread is not current_thread():  # that one has ended, and this one has its number
            self.pop(get_ident(), None)
            return None
        return found if found.open else self._look(get_ident())

    def _look(self, number: int) -> Open | None:
        inner = _innermost(self.get(number))
        if inner is None:
            self.pop(number, None)
        else:
            self[number] = inner
        return inner

    def begin(self, inner: Open, until: "ref[Any]") -> None:
        """This thread is in `inner`, too, until `end`, or until what `until` refers to is gone."""
        inner._above, inner._thread, inner._number = self.here(), current_thread(), get_ident()
        inner._until = until
        self[get_ident()] = inner  # the step from which on it counts

    def end(self, inner: Open) -> bool:
        """Whether it was the innermost. What was begun inside, and is still open, goes on without it."""
        innermost = self._look(inner._number) is inner
        inner._until = None
        self._look(inner._number)
        if innermost:
            inner._above = None  # which may hold it
        return innermost


class Within(Mode):
    """A context in which this thread is in `inner`; gives `given`, or `inner`."""

    def __init__(self, threads: Threads, inner: Any, given: Any = None):
        self._threads, self._inner, self._given = threads, inner, inner if given is None else given

    def __enter__(self) -> Any:
        self._threads.begin(self._inner, self.until_over())
        return self._given

    @Exit
    def __exit__(self, *failure: Any) -> None:
        self._threads.end(self._inner)
        self._own = None


class Listed(Mode):
    """A context during which there is an element more in a set, which counts what is under way."""

    def __init__(self, under_way: set[Any]):
        self._set = under_way

    def __enter__(self) -> None:
        self._set.add(ref(self.until_over()(), self._set.discard))


class Changed(Mode):
    """A context in which attributes of `target` have other values. Those under way stand in `changes`, the innermost
    last: `restored(changes)` undoes what is left of those that were cut short."""

    def __init__(self, changes: "list[Changed]", target: Any, **values: Any):
        self._changes, self._target, self._values = changes, target, values
        self._before: dict[str, Any] = {}
        self._until: ref[Any] | None = None

    def __enter__(self) -> None:
        self._before = {name: getattr(self._target, name) for name in self._values}
        self._until = self.until_over()
        self._changes.append(self)
        for name, value in self._values.items():
            setattr(self._target, name, value)

    @property
    def open(self) -> bool:
        return self._until is not None and self._until() is not None

    def undo(self) -> None:
        """Done again, or after it was cut short, it comes to the same."""
        for name, value in self._before.items():
            setattr(self._target, name, value)
        if self in self._changes:
            self._changes.remove(self)

    @Exit
    def __exit__(self, *failure: Any) -> None:
        self.undo()


def restored(changes: list[Changed]) -> None:
    """Undo what was cut short."""
    while changes and not changes[-1].open:
        changes[-1].undo()
