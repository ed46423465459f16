"""How people are told of work: tables, and progress on stderr. A terminal gets a bar when the work takes longer than a
moment, which tells what is compiled meanwhile; a log gets a line after two seconds, four, eight, ..."""

import errno
import os
import sys
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from gbgpu.trace import compiling, now

_PATIENCE = 0.7  # seconds without a bar
_LINE = 2.0  # seconds without a line
_MOMENT = 0.2  # seconds of compiling that nobody is told of


class _Compiling(ProgressColumn):
    """What is compiled while the bar is drawn."""

    def render(self, task: Any) -> Text:
        return Text(compiling.what if now() - compiling.since > _MOMENT else "")


class Paper(Console):
    """Where tables are printed; that nobody reads on is told as it is of other text."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Progress:
    """A context; `step(text)` names what begins now. `steps` is how many there will be (None: not known); `quiet`:
    nothing is shown."""

    def __init__(self, steps: int | None = None, quiet: bool = False):
        step: tuple[Any, ...] = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Bar(*step, _Compiling(), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=steps)
        self._done = -1
        self._over = Event()
        self._thread = None if quiet or sys.stderr is None else Thread(target=self._show, daemon=True)

    def __enter__(self) -> "Progress":
        if self._thread is not None:
            self._thread.start()
        return self

    def step(self, text: str) -> None:
        self._done += 1
        self._bar.update(self._task, description=text, completed=self._done)

    def _show(self) -> None:
        if sys.stderr.isatty():
            if not self._over.wait(_PATIENCE):
                self._bar.start()
            return
        start, seconds = now(), _LINE
        while not self._over.wait(start + seconds - now()):
            with suppress(OSError):  # nobody reads on
                print(f"gbgpu: {self._bar.tasks[0].description}: {seconds:.0f} s", file=sys.stderr, flush=True)
            seconds *= 2

    def __exit__(self, *failure: Any) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()  # it may be about to start the bar
        if self._bar.live.is_started:
            self._bar.stop()
