"""How people are told of work: tables, and a progress bar on stderr, only on a terminal and only when the work takes
longer than a moment. It tells what is compiled meanwhile."""

import errno
import os
import sys
from threading import Timer
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from gbgpu.trace import compiling, now

_PATIENCE = 0.7  # seconds without a bar
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
    """A context; `step(text)` names what begins now. `steps` is how many there will be (None: not known)."""

    def __init__(self, steps: int | None = None):
        step: tuple[Any, ...] = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Bar(*step, _Compiling(), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=steps)
        self._done = -1
        self._timer = Timer(_PATIENCE, self._bar.start)
        self._timer.daemon = True

    def __enter__(self) -> "Progress":
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer.start()
        return self

    def step(self, text: str) -> None:
        self._done += 1
        self._bar.update(self._task, description=text, completed=self._done)

    def __exit__(self, *failure: Any) -> None:
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()  # it may be about to start the bar
        if self._bar.live.is_started:
            self._bar.stop()
