"""Statements of a program (`gb.program`) in a row, as one CUDA graph: captured when the program is recorded, and
launched in each call.

A graph works on buffers of its own. The vectors and scalars that its statements read are copied there, and handles get
the buffers that it leaves. A matrix is read where it lies. What was known of all of them when the graph was captured
(forms, counts, values on the host) must hold again. Otherwise the statements run one by one, and are captured anew.

A loop may follow, whose last run was one captured round from beginning to end. Then the graph also fills the buffers
that this round starts from, and the round is launched next. The cache of captured rounds is not searched.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from ..device.base import address
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorStore
from ..interrupts import held as uninterrupted
from ..language.expr import Statement
from ..modes import Changed
from ..trace import counters, listeners
from .loop import carry_on
from .loop.body import reads_of
from .loop.buffers import (
    THINNER,
    addresses,
    alike,
    at_once,
    blocks_of,
    copy_of,
    described,
    fetched,
    with_same,
    words_of,
)
from .loop.journal import Journal
from .loop.signature import Signature, value_of
from .loop.ways import UNGUARDED
from .run.steps import copied

WORDS = 512  # that a graph may count in
SHARE = 1 / 16  # of the memory that a graph's buffers may take
TRIES = 3  # captures
Held = list[tuple[Any, Any, Any]]  # objects, and the store and the value that each has, or had


def fused(
    session: Any, statements: Sequence[Statement], loop: Any, owned: set[int], before: Sequence[Held]
) -> Callable[[], Any]:
    """A function that runs statements that read nothing on the host, and a loop after them, if there is one. `owned`:
    addresses of the buffers that later calls write. `before`: what `snapshot` gave before each statement, and before
    the loop."""
    if not graphs(session):
        return _Plain(session, statements, loop)
    segment = Segment(session, statements, loop, owned)
    segment.prepare(before)
    return segment


def graphs(session: Any) -> bool:
    """Whether there is one device, and it captures CUDA graphs."""
    return len(session.devices) == 1 and session.devices[0].captures == "graph"


def snapshot(session: Any, what: Any) -> Held:
    """What a statement or a loop reads, for `fused`; nothing where no graph is captured. Stores are copies, as those
    of objects may get other blocks."""
    if not graphs(session):
        return []
    read = reads_of(what) if isinstance(what, Statement) else Signature.of(what).handles
    return [(x, _copied(store), value) for x, store, value in _held(x for x in read if x.ndim < 2)]


def _copied(store: Any) -> Any:
    """A store of the same blocks and count. That of a scalar never changes."""
    if not isinstance(store, VectorStore):
        return store
    found = with_same(store)
    found.nvals = store.nvals
    return found


def _held(them: Iterable[Any]) -> Held:
    """What objects hold now."""
    return [(x, x._store, None if x.ndim else x._value) for x in them]


@contextmanager
def _holding(them: Held) -> Iterator[None]:
    """Objects hold this meanwhile, and then again what they hold now."""
    now = _held(x for x, *_ in them)
    try:
        _hold(them)
        yield
    finally:
        _hold(now)


def _hold(them: Held) -> None:
    for x, store, value in them:
        x._store = store
        if not x.ndim:
            x._value = value


def unshared(session: Any, store: Any, owned: set[int]) -> Any:
    """What an object holds, in buffers that no later call writes."""
    if not owned or store is None:
        return store
    if isinstance(store, MatrixStore):
        return _unshared_matrix(session, store, owned)
    if _addresses(store).isdisjoint(owned):
        return store
    with session.lock, at_once(session.devices):
        return copy_of(session.devices, store)


def _unshared_matrix(session: Any, store: MatrixStore, owned: set[int]) -> MatrixStore:
    """Diagonals may have the values of a vector."""
    arrays = [(block.indptr, block.cols, block.vals) for block in store.blocks]
    if owned.isdisjoint(address(array) for each in arrays for array in each):
        return store
    blocks = []
    with session.lock:
        for device, block, each in zip(session.devices, store.blocks, arrays, strict=False):
            indptr, cols, vals = (copied(device, array) for array in each)
            blocks.append(MatrixBlock(block.n, indptr, cols, vals, block.stride, block.nnz, block.empty_rows))
    return MatrixStore(store.numbers, blocks)


class _Plain:
    """Statements, one after the other, and a loop."""

    def __init__(self, session: Any, statements: Sequence[Statement], loop: Any):
        self._session, self._statements, self._loop = session, statements, loop

    def __call__(self) -> None:
        for statement in self._statements:
            self._session.run(statement)
        if self._loop is not None:
            self._session.carry_out(self._loop)


class Segment(_Plain):
    """The same as one graph, once it is captured."""

    def __init__(self, session: Any, statements: Sequence[Statement], loop: Any, owned: set[int]):
        super().__init__(session, statements, loop)
        self._device, self._owned = session.devices[0], owned
        self._tries = [0, TRIES if loop is None else 0]  # captures of graphs that begin no round, and that begin one
        self._drop()
        read, self._written = _between(statements)
        self._matrices = [x for x in read if x.ndim == 2]
        self._read = [x for x in read if x.ndim < 2]
        self._used = {id(x) for x in (*read, *self._written)}

    def __call__(self) -> None:
        session, loop = self._session, self._loop
        hopeless = self._graph is None and min(self._tries) >= TRIES
        if listeners or hopeless or session.maps.alone or session.looping:
            return super().__call__()
        due = _never if session.lock.owned else session.lock.due
        with session.lock, self._device.here():
            session.check()
            ready = self._ready()
            begun = ready and self._go(due)
        if not ready:
            super().__call__()
        elif loop is not None and not begun:
            session.carry_out(loop)
        elif loop is not None and not loop.over:
            carry_on(session, loop)

    def prepare(self, before: Sequence[Held]) -> None:
        """Capture the graph from what objects held in the call that was recorded, unless something hinders that."""
        session, loop = self._session, self._loop
        if listeners or session.maps.alone or session.looping:
            return
        first = {id(x): (x, *rest) for x, *rest in reversed([each for one in before for each in one])}
        with session.lock, self._device.here():
            if loop is not None:
                with _holding(before[-1]):
                    found = session.loops.find(0, Signature.of(loop), UNGUARDED, False)
                loop.went = found and ref(found)
            with _holding([*first.values()]):
                self._ready()

    def _ready(self) -> bool:
        """Whether there is a graph that fits, or one could be captured."""
        if self._graph is not None and not self._fits():
            self._drop()
        if self._graph is not None:
            return True
        taken = self._next_round()
        if taken is None and not self._statements or self._tries[taken is not None] >= TRIES:
            return False
        return bool(uninterrupted(partial(self._captured, taken)))

    def _drop(self) -> None:
        """Forget the graph, and all buffers that only it uses."""
        self._graph: Any = None
        self._round: Any = None  # that the graph begins, weak
        self._held: Any = None  # what it works on
        self._places: list[tuple[Any, Any]] = []  # what is copied before it is launched, and where to
        self._left: list[tuple[Any, ...]] = []  # what handles get afterwards

    # -- what has to be as it was

    def _known(self) -> list[Any]:
        """What was known of all that is read; of what the round alone reads, its form."""
        taken = (self._round or _nothing)()
        starts = () if taken is None else taken.starts(self._signature)
        forms = (_form(x, place) for x, place, _ in starts if id(x) not in self._used)
        return [self._session.loops.era, *map(_told, self._read), *forms]

    def _fits(self) -> bool:
        taken = self._next_round()
        same = taken is None if self._round is None else taken is not None and taken is self._round()
        same = same and all(x._store is store() for x, store in zip(self._matrices, self._stores, strict=True))
        return same and self._known() == self._as_it_was

    def _next_round(self) -> Any:
        """The captured round that did all of the loop's last run, if the loop may take it again."""
        apart = self._round is None and self._tries[True] >= TRIES
        found = None if apart or self._loop.went is None else self._loop.went()
        if found is None or not found.key or found.way[0] or found.loop is not None or found.alone:
            return None
        signature = Signature.of(self._loop)  # which has the values of numbers that rounds read
        fits = found.key == signature.key and found.reads(signature)
        return found if fits and self._session.loops.keeps(found) else None

    # -- captured, launched

    def _captured(self, taken: Any) -> bool:
        """Whether it could be captured. Nothing has run then, and handles hold what they held."""
        self._tries[taken is not None] += 1
        self._signature = self._loop and Signature.of(self._loop)
        self._round = taken and ref(taken)
        begun = [] if taken is None else [x for x, *_ in taken.starts(self._signature)]
        handles = {id(x): x for x in (*self._read, *self._written, *begun)}
        me = ref(self)  # callbacks that had the object itself would keep it until memory is collected

        def gone(_: Any) -> None:
            if (segment := me()) is not None:
                segment._drop()

        try:
            with _holding(_held(handles.values())):
                self._as_it_was = self._known()
                self._stores = [ref(x._store, gone) for x in self._matrices]
                self._write_down(taken)
        except Exception:  # what CUDA does not let a stream do that is captured
            self._drop()
            self._tries[taken is not None] = TRIES
        return self._graph is not None

    def _write_down(self, taken: Any) -> None:
        session, device, journal = self._session, self._device, Journal({})
        cupy = device.xp
        into = [] if taken is None else taken.starts(self._signature)
        direct = [each for each in into if id(each[0]) not in self._used and _matches(each[0]._store, each[1])]
        copied_before = {id(x) for x, *_ in direct}
        into = [each for each in into if id(each[0]) not in copied_before]
        numbers = {id(x): device.put(words_of(x)) for x, *_ in into if not x.ndim and x._value is not None}
        with at_once(session.devices):
            self._places = [(x, copy_of(session.devices, x._store)) for x in self._read if x._store is not None]
        for x, place in self._places:
            if isinstance(place, VectorStore):
                place.nvals = x._store.nvals
            x._store = place
        words, pool, stream = device.zeros(WORDS, np.int64), cupy.cuda.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
        around, allocated = (cupy.cuda.get_allocator(), cupy.cuda.get_current_stream()), device.allocator()

        @contextmanager
        def outside() -> Iterator[None]:
            """Work goes where it went before."""
            with ExitStack() as stack:
                stack.enter_context(device.captured())
                stack.enter_context(cupy.cuda.using_allocator(around[0]))
                stack.enter_context(around[1])
                yield

        counting, reads = (words[i : i + 1] for i in range(WORDS)), counters.host_reads
        with Changed(session.changes, session, capturing=self, _watched=[]), cupy.cuda.using_allocator(pool.malloc):
            with stream:
                stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
                try:
                    with device.captured(counting, journal, 0, outside, allocated):
                        device.clear(words)
                        for statement in self._statements:
                            session.run(statement)
                        self._left = [
                            (x, x._store, blocks_of(x._store), getattr(x._store, "nvals", None)) for x in self._written
                        ]
                        if taken is not None:
                            self._begin(taken, into, numbers)
                finally:
                    graph = stream.end_capture()
            most = sum(buffer.nbytes for buffer in journal.buffers) > device.total * SHARE
            if session._watched or counters.host_reads != reads or most:
                raise RuntimeError("a statement that can't be captured")
        self._places += [(x, with_same(place, blocks) if blocks else place) for x, place, blocks in direct]
        self._held = words, pool, journal, numbers
        self._graph = graph
        counters.captured += 1
        self._owned |= {address(buffer) for buffer in journal.buffers}
        for _, place in self._places:
            self._owned |= _addresses(place)

    def _begin(self, taken: Any, into: list[tuple], numbers: dict[int, Any]) -> None:
        """What the loop starts from goes to the places of its round."""
        for x, *_ in into:
            if id(x) in numbers and x._store is None:
                x._store = numbers[id(x)], numbers[id(x)].view(x.dtype.np_type)[:1], 0
        if not all(alike(x, place, THINNER) for x, place, _ in into):
            raise RuntimeError("a loop that does not begin as its round does")
        taken.fill(into)
        taken.zero()

    def _go(self, due: Callable[[float], bool]) -> bool:
        """Launch the graph, and the round that it begins; whether there is one."""
        taken, loop = (self._round or _nothing)(), self._loop
        if taken is None:
            uninterrupted(self._launch)
            return False
        loop.begin()
        try:
            uninterrupted(partial(self._launch, taken))
            taken.run(_nothing, due)
        except BaseException:
            uninterrupted(partial(self._session.loops.abandon, taken.key, loop))
            raise
        return True

    def _launch(self, taken: Any = None) -> None:
        if taken is not None:
            taken.recall()
        with at_once(self._session.devices):
            for x, place in self._places:
                self._bring(x._store, place)
        self._graph.launch()
        for x, store, blocks, nvals in self._left:
            if blocks is not None:  # others may have written in place since, or counted
                store.blocks, store.nvals = list(blocks), nvals
            x._store = store
            if not x.ndim:
                x._value = None
        if taken is not None:
            taken.go(self._loop, self._signature)

    def _bring(self, store: Any, place: Any) -> None:
        """Copy what an object holds to its place."""
        device = self._device
        if isinstance(place, tuple):
            return device.copy(place[0], store[0])
        for to, source in fetched(self._session.devices, place.blocks, store.blocks, place):
            device.copy(to, source)


def _addresses(store: Any) -> set[int]:
    """Where a vector or a scalar on the devices lies."""
    return addresses(store.blocks) if isinstance(store, VectorStore) else {address(store[0])}


def _between(statements: Sequence[Statement]) -> tuple[list[Any], list[Any]]:
    """The objects that statements read before they write them, and those that they write."""
    read: dict[int, Any] = {}
    written: dict[int, Any] = {}
    for statement in statements:
        for x in reads_of(statement):
            if id(x) not in written:
                read[id(x)] = x
        written[id(statement.output)] = statement.output
    return [*read.values()], [*written.values()]


def _told(x: Any) -> Any:
    """What plans know of a vector or a scalar."""
    store = x._store
    if x.ndim:
        return store and (*described(store), store.nvals)
    return value_of(x) if store is None else ("waits", store[2])


def _form(x: Any, place: Any) -> Any:
    """What is known of a vector or a scalar that a round starts from, and no statement reads."""
    return True if _matches(x._store, place) else _told(x)


def _matches(store: Any, place: Any) -> bool:
    """Whether what a handle holds is copied to a place of a round as it is."""
    if store is None or place is None:
        return False
    if isinstance(place, tuple):
        return bool(store[2] == place[2])
    return described(store) == described(place)


def _nothing(*_: Any) -> None:
    return None


def _never(start: float) -> bool:
    return False
