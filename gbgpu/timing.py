"""Times of calls: `gb.timeit`, and what the pytest plugin measures (testing.py).

A call is warm once one whole call has gone as the next one will. The engine counts what changes later calls: kernels
that are compiled or loaded (`trace.compiling`), rounds of loops that are captured, and what is counted before another
way of running pays (`trace.Counters`). Some calls compile or capture anew each time: these are warm once they do so as
often as the calls before.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from statistics import median, quantiles
from typing import Any, NamedTuple

from . import settings
from .device import nvrtc
from .errors import message
from .trace import compiling, counters, now, trace

WARMING = 20.0  # seconds after which a call that still changes is timed as it is, and said to be unsettled
STEADY = 3  # calls that compile or capture as often as each other, after which the next one will
FEWEST, MOST = 5, 10_000  # calls that are timed
HOST = 0.1  # seconds in which the host's part of a call is measured, about


class Warm(NamedTuple):
    """Calls before the timed ones.

    Attributes
    ----------
    first, last : float
        Seconds of the first and of the last one.
    calls : int
        How many there were.
    anew : int
        How many kernels and rounds of loops a warm call still compiles, loads or captures.
    steady : bool
        Whether the next call goes as the last one. False after WARMING.
    result : object
        What the last one returned.
    """

    first: float
    last: float
    calls: int
    anew: int
    steady: bool
    result: Any


@dataclass(frozen=True)
class Timing:
    """What `gb.timeit` found; `str` gives its line.

    Attributes
    ----------
    seconds : float
        The median of the timed calls.
    spread : float
        Seconds between their first and third quartile.
    first : float
        Seconds of the first call of all, in which kernels are compiled or loaded.
    calls, warm_calls : int
        Timed calls, and those before them.
    compiled : bool
        Whether compiled kernels ran. False if CPU kernels ran as plain Python (GBGPU_INTERPRET).
    settled : bool
        Whether the timed calls went as the last one before them: nothing was compiled or captured for the first time.
    devices : str
        The devices of the session.
    """

    seconds: float
    spread: float
    first: float
    calls: int
    warm_calls: int
    compiled: bool
    settled: bool
    devices: str

    def __str__(self) -> str:
        times = f"{readable(self.seconds)}, spread {readable(self.spread)}, {self.calls} calls"
        kernels = "compiled kernels" if self.compiled else "interpreted kernels"
        late = "" if self.settled else "; not settled: kernels were compiled, loaded or captured meanwhile"
        return f"{times}; first call {readable(self.first)}; {kernels}; {self.devices}{late}"


def timeit(call: Callable[[], object], seconds: float) -> Timing:
    """See `gb.timeit`."""
    if not callable(call):
        raise TypeError(message("a callable without arguments", type(call).__name__, "gb.timeit(lambda: f(A))"))
    if not 0 < seconds < float("inf"):
        raise ValueError(message("seconds above 0", seconds))
    found = timed(call, seconds)
    ranks = settings.ranks_in_force()
    if ranks is None or ranks.rank == 0:
        print(found)
    return found


def timed(call: Callable[..., object], seconds: float, fresh: Callable[[], tuple] = tuple) -> Timing:
    """The same without its line. `fresh` gives the arguments of each call, outside of the time."""
    whole = synchronized(call)
    warm = warmed(lambda: whole(*fresh()))
    count = min(max(round(seconds / max(_longest(warm.last), 1e-9)), FEWEST), MOST)
    watched, took = Watched(), list[float]()
    with _no_collections():
        for _ in range(count):
            given = fresh()
            took.append(_timed(lambda given=given: whole(*given))[0])  # type: ignore[misc]
            del given
    first, _, third = quantiles(took)
    told = watched.compiled, watched.settled(warm), devices()
    return Timing(median(took), third - first, warm.first, count, warm.calls, *told)


def synchronized(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, which returns when every device of the session has finished all work."""

    @wraps(call)
    def whole(*args: Any, **kwargs: Any) -> Any:
        found = call(*args, **kwargs)
        for device in settings.session().devices:
            device.synchronize()
        return found

    return whole


def warmed(whole: Callable[[], Any]) -> Warm:
    """Call until the next call will go as the last one, or WARMING has passed; twice at least.

    What a call began to compile on other threads is waited for. Ranks make the same number of calls.
    """
    begun, first, made = now(), 0.0, list[int]()  # kernels and rounds of each call; -1 while something is counted
    while True:
        watched = Watched()
        last, result = _timed(whole)
        nvrtc.settle()
        made.append(-1 if watched.counted else watched.made)
        first = first or last
        alike = len(made) > STEADY and made[-1] > 0 and len({*made[-STEADY:]}) == 1
        steady = len(made) > 1 and made[-1] == 0 or alike
        if len(made) > 1 and _agreed(steady or now() - begun > WARMING):
            return Warm(first, last, len(made), max(made[-1], 0), steady, result)


class Watched:
    """What the engine has counted since this object was made."""

    def __init__(self) -> None:
        self._counted, self._count_of = counters.counted, counters.count_of
        self._made, self._ended, self._interpreted = self._all_made(), compiling.last, counters.interpreted

    @staticmethod
    def _all_made() -> int:
        return counters.captured + compiling.kernels

    @property
    def counted(self) -> bool:
        """Whether anything was counted that changes later calls."""
        return counters.counted != self._counted or counters.has_counted(self._count_of)

    @property
    def made(self) -> int:
        """How many kernels were compiled or loaded, and rounds captured; 1 for an import."""
        return self._all_made() - self._made or int(compiling.last != self._ended)

    def settled(self, warm: Warm) -> bool:
        """Whether all calls went as the last one before them."""
        return warm.steady and not self.counted and (warm.anew > 0 or not self.made)

    @property
    def compiled(self) -> bool:
        """Whether no kernel ran as plain Python."""
        return counters.interpreted == self._interpreted


def costs(call: Callable[[], Any]) -> dict[str, int | float]:
    """What a call costs beside time. It is made some more times, and does not synchronize the devices itself.

    Returns
    -------
    dict
        `statements`, `launches`, `host_reads`: how many. `bytes_between_devices`: bytes that arrived from other
        devices. `host_ms`: milliseconds until the call returns, without those in which the host waits for a GPU.
    """
    names = "statements", "launches", "host_reads"
    before = [getattr(counters, name) for name in names]
    with trace(rounds=True) as records:
        call()
    found = {name: getattr(counters, name) - old for name, old in zip(names, before, strict=True)}
    moved = sum(record.bytes for record in records)
    return {**found, "bytes_between_devices": moved, "host_ms": 1e3 * median(_on_host(call))}


def _on_host(call: Callable[[], Any]) -> list[float]:
    """Seconds in which the host works, of some calls: FEWEST of short ones, one of a long one."""
    found: list[float] = []
    while not found or not _agreed(len(found) >= FEWEST or sum(found) > HOST):
        waited = _waited()
        took, _ = _timed(call)
        found.append(max(took - (_waited() - waited), 0.0))
        for device in settings.session().devices:
            device.synchronize()
    return found


def devices() -> str:
    """The devices of the session, by their names."""
    names = [device.name for device in settings.session().devices]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]}"


def readable(seconds: float) -> str:
    """Seconds with three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = now()
    result = call()
    return now() - start, result


def _waited() -> float:
    """Seconds that the host has waited for values of the first device."""
    return getattr(settings.session().devices[0], "waited", 0.0)


def _agreed(over: bool) -> bool:
    """Whether it is over on every rank."""
    ranks = settings.ranks_in_force()
    return over if ranks is None else all(ranks.gathered(over, "whether a call is warm"))


def _longest(seconds: float) -> float:
    """What it took on the slowest rank: from it all choose the same number of calls."""
    ranks = settings.ranks_in_force()
    return seconds if ranks is None else max(ranks.gathered(seconds, "the seconds of a call"))


@contextmanager
def _no_collections() -> Iterator[None]:
    """Python's garbage collection waits, as in the module timeit."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
