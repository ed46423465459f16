"""Sessions that take turns, so that what a machine does from minute to minute meets all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gbgpu as gb
from bench.record import interleaved, synchronized
from gbgpu import settings
from gbgpu.engine.session import Session

Calls = dict[str, Callable[[], Any]]


class Side:
    """A session as `gb.init` starts it, and what is called in it. `with side:` has it in force."""

    def __init__(self, calls: Callable[[], Calls], devices: str, *how: Any, **others: Any):
        self.session = Session(devices, *how, **others)
        with self:
            self.calls = calls()

    def __enter__(self) -> Session:
        self._before = settings.install(self.session)
        return self.session

    def __exit__(self, *_: object) -> None:
        settings.install(self._before)

    def whole(self, name: str) -> Callable[[], None]:
        """The call, over when the devices are done."""
        call = synchronized(self.calls[name])

        def there() -> None:
            with self:
                call()

        return there


def in_turns(sides: Sequence[Side], rounds: int, warm: int, rtol: float, known: dict[str, Any]) -> list[dict[str, str]]:
    """Median milliseconds of the calls of each side, by name. What they return is as `known` has it, by name, which has
    what the first one of all returned."""
    found: list[dict[str, str]] = [{} for _ in sides]
    for name in dict.fromkeys(name for side in sides for name in side.calls):
        there = [(side, cells) for side, cells in zip(sides, found, strict=True) if name in side.calls]
        took = interleaved([side.whole(name) for side, _ in there], rounds, warm)
        for (side, cells), seconds in zip(there, took, strict=True):
            cells[name] = f"{1e3 * seconds:.2f}"
            with side:
                results = side.calls[name]().to_coo()
            for got, wanted in zip(results, known.setdefault(name, results), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=rtol)
    return found


def weighted(graph: Any) -> tuple[gb.Matrix, gb.Matrix]:
    """A graph of bench/device_graphs.py in the session in force: all True, and its weights."""
    A, W = (gb.Matrix.from_csr(graph.indptr, graph.indices, vals, ncols=graph.n) for vals in (True, graph.weights))
    return A, W
