"""Functions whose calls the first of several GPUs may do by itself. A call of little work, of which each statement is
handed out to all GPUs, takes them longer than it takes one. Calls go both ways at first; the faster one is kept, by
median time.

GUM (Meng and others, ICDE 2023, section IV) chooses before each round how many devices take part. Here a call runs on
all devices or on the first one alone, and both are timed; loops are decided by themselves (`loop/single_device.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..balance.arbiter import Decision
from ..distribute.blocks import MatrixStore
from ..interrupts import held
from ..language.expr import Operand
from ..language.matrix import Matrix
from ..language.vector import Vector
from ..trace import Record, counters, emit, listeners
from .dealing import Trial
from .moving import moved

USUAL, TOLD = 8, 8  # calls of each way until they take what they will, as loops are captured by then; and that tell
LONGEST = 0.02  # seconds of a call, or of one pull of all entries, of which handing out statements is no tenth
VECTORS = 8  # of the matrix's rows, 8 bytes each, for which there is to be room

R = TypeVar("R")


class Calls:
    """Of one function with one matrix."""

    def __init__(self) -> None:
        self._trial = Trial(TOLD)
        self._gone, self._least = {True: 0, False: 0}, inf

    @property
    def folded(self) -> bool:
        """Whether the next one is."""
        return self._gone[False] >= USUAL and self._trial.on

    @property
    def settled(self) -> bool:
        return self._trial.settled

    def hear(self, folded: bool, seconds: float, busy: float = 0.0) -> None:
        """What one took. `busy`: seconds of it in which the host only waited for GPUs."""
        self._gone[folded] += 1
        counters.counted += 1
        # The first call also copies the matrices. From the second on, a GPU that is busy for longer than all GPUs took
        # cannot win, however its statements are handed out.
        if folded and self._gone[True] > 1 and busy > self._least:
            return self.stay()
        if self._gone[folded] > USUAL:
            return self._trial.hear(folded, seconds)
        self._least = min(self._least, seconds)
        if not folded and self._gone[folded] == USUAL and self._least > LONGEST:
            self.stay()

    def stay(self) -> None:
        """With all devices, for good."""
        self._trial.on, self._trial.settled = False, True

    def decision(self, p: int, seconds: float) -> Decision | None:
        """Who does the next one, on p devices, if it takes so long; None where either way was not timed yet."""
        alone, apart = self._trial.took(True), self._trial.took(False)
        if alone is None or apart is None:
            return None
        (action, devices, z) = ("fold", (0,), alone) if self.folded else ("leave", tuple(range(p)), apart)
        number = sum(self._gone.values())
        return Decision(number, action, devices, None, z, apart, z, observed=seconds, gained=apart - seconds)


class Folding:
    """The calls of a session of several GPUs."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._calls: WeakKeyDictionary[MatrixStore, dict[Any, Calls]] = WeakKeyDictionary()  # by function

    def call(self, function: Callable[..., R], args: tuple, kwargs: dict[str, Any]) -> R:
        given = *args, *kwargs.values()
        plain, (matrices, vectors) = partial(self._session.programs.call, function, args, kwargs), self._objects(given)
        if not matrices:
            return plain()
        calls = self._of(function, matrices)
        if calls.folded and not self._fits(matrices):
            calls.stay()
        folded = calls.folded
        work = partial(self._alone, plain, matrices, vectors) if folded else plain
        if calls.settled and not listeners:
            return work()
        self._synchronize()
        waited, start = self._waited(), perf_counter()
        found = work()
        waited, done = self._waited() - waited, perf_counter()
        self._synchronize()
        end = perf_counter()
        if listeners:  # then it takes longer than it does
            self._tell(function, calls, start, end)
        else:
            calls.hear(folded, end - start, waited + end - done)
        return found

    def _waited(self) -> float:
        """Seconds that the host has waited for values of the first device."""
        return getattr(self._session.devices[0], "waited", 0.0)

    def _tell(self, function: Callable[..., Any], calls: Calls, start: float, end: float) -> None:
        """A record of a call."""
        devices = self._session.devices
        counters.statements += 1
        text = f"{getattr(function, '__name__', function)}, {'the first GPU' if calls.folded else 'all GPUs'}"
        record = Record(counters.statements, text, "call", devices[0].name, start=start, end=end)
        record.decide(calls.decision(len(devices), end - start))
        emit(record)

    def _objects(self, given: Sequence[Any]) -> tuple[list[Matrix], list[Vector]]:
        """The matrices of a call that may be folded, and the vectors: one that is given matrices of all devices, and is
        part of nothing else."""
        session = self._session
        if session.maps.alone or session.looping or session.recording or session.explaining:
            return [], []
        found: list[Any] = [x for x in given if isinstance(x, Operand)]
        vectors = [x for x in found if type(x) is Vector]
        matrices = [x for x in found if type(x) is Matrix and x._store is not None]
        if len(vectors) + len(matrices) < len(found) or any(x._session is not session for x in found):
            return [], []
        apart = any(session.matrix_store(x).rowmap.p > 1 for x in matrices)
        return (matrices, vectors) if apart else ([], [])

    def _of(self, function: Any, matrices: Sequence[Matrix]) -> Calls:
        known = self._calls.setdefault(matrices[0]._store, {})
        calls = known.get(function)
        if calls is None:
            calls = known[function] = Calls()
            if sum(A._store.nvals for A in matrices) * self._session.kernels.costs.pull_edge > LONGEST:
                calls.stay()
        return calls

    def _fits(self, matrices: Sequence[Matrix]) -> bool:
        """Whether there are replicas, or room for them."""
        stores, rows = [A._store for A in matrices], sum(A.nrows + A.ncols for A in matrices)
        there = all(store.replica is not None for store in stores)
        return there or bool(self._session.replicas.fit(stores, VECTORS * 8 * rows))

    def _alone(self, work: Callable[[], R], matrices: Sequence[Matrix], vectors: Sequence[Vector]) -> R:
        with self._session.lock, self._first(matrices, vectors):  # other threads' statements are for all devices
            return work()

    @contextmanager
    def _first(self, matrices: Sequence[Matrix], vectors: Sequence[Vector]) -> Iterator[None]:
        """The first device has all of the matrices and vectors, and what is made inside."""
        session, before = self._session, [(x, x._store) for x in (*matrices, *vectors)]
        there: list[Any] = []  # what objects have inside

        def leave() -> None:
            session.maps.leave()
            for (x, store), inside in zip(before, there, strict=False):
                x._store = store if x._store is inside else x._store

        try:
            session.maps.alone = True
            for x, store in before:
                there.append(session.replicas.of(store) if x.ndim == 2 else self._brought(store))
                x._store = there[-1]
            yield
        finally:
            held(leave)

    def _brought(self, store: Any) -> Any:
        return store and moved(self._session, store, store.form, self._session.maps.first(store.map.n))

    def _synchronize(self) -> None:
        with self._session.lock:  # another thread may capture a loop: nobody waits for GPUs then
            for device in self._session.devices:
                device.synchronize()


def folding_of(session: Any) -> Folding | None:
    """Where several GPUs are, and replicas may be."""
    if session.ranks is not None or session.kernels.kind != "cuda":
        return None
    several = len({device.gpu for device in session.devices}) > 1
    return Folding(session) if several and session.folds and session.replicas.most != 0 else None
