"""The lock of a session, for which threads take turns."""

from threading import RLock, get_ident
from time import perf_counter, sleep
from typing import Any

SLICE = 5e-3  # seconds that a thread keeps the session for, or takes it again and again, while another one waits
_MOMENT = 1e-4  # seconds between two looks at whether those have had it who waited
_AT_ONCE, _SOME_TIME = (False,), (True,)
_Reentrant: Any = type(RLock())  # in C: Ctrl-C does not come between what `with` gives up and the end of it


class Turns(_Reentrant):
    """A reentrant lock that tells whether threads wait for it. Whoever holds it for long asks `due`, gives it up and
    calls `give_way`: then all who waited have had it before it is taken again. A thread that takes it again and again
    lets those go first that have waited for a slice."""

    def __init__(self) -> None:
        self._waiting: dict[object, float] = {}  # since when
        self._last = 0  # the thread that had it last
        self.turns = 0  # how often another thread than the one before has taken it

    @property
    def wanted(self) -> bool:
        """Whether another thread waits."""
        return bool(self._waiting)

    @property
    def owned(self) -> bool:
        """Whether this thread holds it."""
        return bool(self._is_owned())

    def due(self, start: float) -> bool:
        """Whether another thread waits, and the one that has held it since `start` has had its turn."""
        return bool(self._waiting) and perf_counter() - start > SLICE

    def __enter__(self) -> bool:
        taken: list[bool] = []
        if self._waiting and self._last == get_ident():
            self.give_way(SLICE)
        try:  # one call of C takes it and notes that: Ctrl-C comes before or after both
            taken.extend(map(self.acquire, _AT_ONCE))
            if not taken[0]:
                self._wait(taken)
            if self._last != get_ident():
                self._last, self.turns = get_ident(), self.turns + 1
        except BaseException:
            if True in taken:
                self.release()
            raise
        return True

    def _wait(self, taken: list[bool]) -> None:
        me = object()
        try:
            self._waiting[me] = perf_counter()
            taken.extend(map(self.acquire, _SOME_TIME))
        finally:
            self._waiting.pop(me, None)

    def give_way(self, waited: float = 0.0) -> None:
        """Return when all have had it who wait now, for so many seconds; at once if this thread holds it."""
        before = perf_counter() - waited
        for one, since in () if self.owned else self._waiting.copy().items():
            while since <= before and one in self._waiting:
                sleep(_MOMENT)

    def forked(self) -> None:
        """In a child process no other thread waits."""
        self._waiting.clear()
