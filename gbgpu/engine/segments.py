"""Statements of a program (`gb.program`) in a row, as one CUDA graph: captured once, and launched in each call.

A graph works on buffers of its own. What the statements read of other vectors and scalars is copied to where it finds
that, and handles get what it leaves; a matrix is read where it lies. What was known of all these when it was captured
(forms, counts, values on the host) has to be so again: else the statements run as always, and are captured anew.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import ref

import numpy as np

from ..device.base import address
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorStore
from ..interrupts import held as uninterrupted
from ..language.expr import Statement
from ..modes import Changed
from ..trace import counters, listeners
from .loop.body import reads_of
from .loop.buffers import addresses, at_once, blocks_of, copy_of, described, differing
from .loop.journal import Journal
from .loop.signature import value_of
from .run.steps import copied

WORDS = 512  # that a graph may count in
SHARE = 1 / 16  # of the memory that a graph's buffers may take
TRIES = 3  # captures


def fused(session: Any, statements: Sequence[Statement], owned: set[int]) -> Callable[[], Any]:
    """What runs statements that read nothing on the host. `owned`: the addresses of buffers that later calls write."""
    one = len(session.devices) == 1 and session.devices[0].captures == "graph"
    return Segment(session, statements, owned) if one else _Plain(session, statements)


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
    """Statements, one after the other."""

    def __init__(self, session: Any, statements: Sequence[Statement]):
        self._session, self._statements = session, statements

    def __call__(self) -> None:
        for statement in self._statements:
            self._session.run(statement)


class Segment(_Plain):
    """The same as one graph, once it is captured."""

    def __init__(self, session: Any, statements: Sequence[Statement], owned: set[int]):
        super().__init__(session, statements)
        self._device, self._owned, self._tries = session.devices[0], owned, 0
        self._drop()
        read, self._written = _between(statements)
        self._matrices = [x for x in read if x.ndim == 2]
        self._read = [x for x in read if x.ndim < 2]

    def __call__(self) -> None:
        hopeless = self._graph is None and self._tries >= TRIES
        if listeners or hopeless or self._session.maps.alone or self._session.looping:
            return super().__call__()
        with self._session.lock:
            self._session.check()
            if self._graph is not None and not self._fits():
                self._drop()
            with self._device.here():
                if self._graph is not None or self._tries < TRIES and uninterrupted(self._captured):
                    return uninterrupted(self._launch)
            return super().__call__()

    def _drop(self) -> None:
        """Forget the graph, and all buffers that only it uses."""
        self._graph: Any = None
        self._held: Any = None  # what it works on
        self._places: list[tuple[Any, Any]] = []  # what is copied before it is launched, and where to
        self._left: list[tuple[Any, ...]] = []  # what handles get afterwards

    # -- what has to be as it was

    def _known(self) -> list[Any]:
        return [self._session.loops.era, *map(_told, self._read)]

    def _fits(self) -> bool:
        same = all(x._store is store() for x, store in zip(self._matrices, self._stores, strict=True))
        return same and self._known() == self._as_it_was

    # -- captured, launched

    def _captured(self) -> bool:
        """Whether it could be captured. Nothing has run then, and handles hold what they held."""
        self._tries += 1
        handles = {id(x): x for x in (*self._read, *self._written)}
        before = [(x, x._store, x._value if not x.ndim else None) for x in handles.values()]
        me = ref(self)  # callbacks that had the object itself would keep it until memory is collected

        def gone(_: Any) -> None:
            if (segment := me()) is not None:
                segment._drop()

        try:
            self._as_it_was = self._known()
            self._stores = [ref(x._store, gone) for x in self._matrices]
            self._write_down()
        except Exception:  # what CUDA does not let a stream do that is captured
            self._drop()
            self._tries = TRIES
        finally:
            for x, store, value in before:
                x._store = store
                if not x.ndim:
                    x._value = value
        return self._graph is not None

    def _write_down(self) -> None:
        session, device, journal = self._session, self._device, Journal({})
        cupy = device.xp
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
                finally:
                    graph = stream.end_capture()
            most = sum(buffer.nbytes for buffer in journal.buffers) > device.total * SHARE
            if session._watched or counters.host_reads != reads or most:
                raise RuntimeError("a statement that can't be captured")
        self._left = [(x, x._store, blocks_of(x._store), getattr(x._store, "nvals", None)) for x in self._written]
        self._held = words, pool, journal
        self._graph = graph
        counters.captured += 1
        self._owned |= {address(buffer) for buffer in journal.buffers}
        for _, place in self._places:
            self._owned |= _addresses(place)

    def _launch(self) -> None:
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

    def _bring(self, store: Any, place: Any) -> None:
        """Copy what an object holds to its place."""
        device = self._device
        if isinstance(place, tuple):
            return device.copy(place[0], store[0])
        for block, made in zip(place.blocks, store.blocks, strict=True):
            for to, source in differing(device, block, made, place):
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
