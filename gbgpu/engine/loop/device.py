"""A recorded loop that goes round by itself: its statements, written down once, are the body of a CUDA graph, or calls
that one function of machine code repeats on CPU devices (`tapes.py`).

Rounds run as statements until they ask for the same plans again and again. Then they are planned for any number of
entries (`Session.blind`), in the directions that they took, until the forms at the end of a round are those at its
beginning; and captured. What a round hands to the next lies in buffers of its own, where the captured body finds and
leaves it. A frontier that grows too wide for its pushes ends the graph: statements take over, and may come back to it.
"""

from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from ...distribute.blocks import MatrixStore, VectorBlock, VectorStore
from ...interrupts import imported
from ...kernels.interface import XLIST
from ...kernels.tiered import price
from ...language.expr import Expression, Operand, Statement
from ...language.scalar import Scalar
from ...trace import counters, listeners
from .. import build
from ..direction import pull_seconds
from ..run.steps import copied
from .condition import Condition
from .journal import Journal, NotCompiled, address
from .tapes import CpuTape, CudaTape

THIN, SHORT = 1 << 20, 64  # edges of a frontier that few blocks expand; entries of the longest row of a road map
BUSY = 2e-4  # seconds of a round on the device from which Python keeps up with it
ALIKE = 6  # rounds by statements before one is captured: a loop of fewer is not worth it
_THIN = ("scalar", "spread", "borrow", "move", "mask", "count", "push", "exchange", "combine", "write_list")
_spent = 0.0  # seconds by all loops of the process, by statements
_TRIES = 3  # captures that fail, of one loop


class DeviceLoop:
    """One run of a loop. `advance` takes it some rounds further on the GPU, or says that it can't now."""

    def __init__(self, session: Any, loop: Any):
        self.session, self.loop, self.device = session, loop, session.devices[0]
        self.statements = [operation.what for operation in loop.body if operation.kind == "statement"]
        self.plans: Any = None
        self.alike, self.tries = 0, 0
        self.last = perf_counter()

    @classmethod
    def of(cls, session: Any, loop: Any) -> "DeviceLoop | None":
        """None for a loop that runs statement by statement."""
        if session.deterministic or loop.told or listeners or session.explaining or not _simple(loop):
            return None
        if session.devices[0].kind == "cpu":
            return cls(session, loop) if session.kernels.atomic else None
        one = len(session.devices) == 1
        return cls(session, loop) if one and imported("gbgpu.device.graph").available() else None

    def advance(self) -> bool:
        global _spent
        now = perf_counter()
        _spent, self.last = _spent + now - self.last, now
        if self.loop.rounds and self.tries < _TRIES:
            plans = [statement.carried and statement.carried[1] for statement in self.statements]
            same = self.plans is not None and all(a is b for a, b in zip(plans, self.plans, strict=True))
            self.alike, self.plans = self.alike + 1 if same else 0, plans
        if self.alike < ALIKE or self.tries >= _TRIES:
            return False
        if _spent < self._price():
            return False
        if self._seconds() > BUSY:
            self.tries, self.loop.how = _TRIES, "statements, as a round keeps the device busy"
            return False
        try:
            with self.session.lock:  # what is launched now is captured; then the workspaces are the graph's
                self._go()
        except NotCompiled as reason:
            self.tries, self.loop.how = _TRIES, f"statements, as {reason}"
        self.alike, self.plans = 0, None
        return True

    # -- one graph

    def _go(self) -> None:
        """Capture a round, and run it until the loop is over or the graph gives up."""
        self.tries += 1
        pinned = [self._pinned(statement) for statement in self.statements]
        self.session.blind = True
        try:
            for _ in range(2):
                if self.loop.over:
                    return
                forms = self._forms()
                self._round(pinned)
            if self.loop.over or forms != self._forms():
                return
            graph = _Graph(self, pinned)
        finally:
            self.session.blind = False
        graph.run()

    def _seconds(self) -> float:
        """Predicted seconds of a round on the device, of its pulls and of passes over rows."""
        costs, total = self.session.kernels.costs, 0.0
        for statement in self.statements:
            expr, direction = statement.expr, statement.carried[1].direction
            total += costs.row * sum(map(_rows, statement.plan.steps))
            if direction == "pull" and expr.kind == "product":
                operand = expr.right if expr.left.ndim == 1 else expr.left
                if not operand.lazy:
                    store = self.session.matrix_store(getattr(operand, "matrix", operand))
                    total += pull_seconds(costs, expr.op, store, store.rowmap, store.colmap, None, None)
        return total

    def _price(self) -> float:
        """Seconds that it takes to load or to compile what the loop has run uncompiled."""
        steps = [step for statement in self.statements for step in statement.plan.steps]
        return price(kernel for step in steps for kernel in step.kernels.values())

    def _pinned(self, statement: Statement) -> Statement:
        """The statement in the direction that it took."""
        direction = statement.carried[1].direction
        hints = statement.hints if direction is None else {**statement.hints, "direction": direction}
        return Statement(
            statement.output, statement.mask, statement.accum, statement.replace, statement.expr, statement.index, hints
        )

    def _round(self, pinned: list[Statement]) -> None:
        """A round by statements that are planned blindly."""
        given = iter(pinned)
        for operation in self.loop.body:
            self.session.run(next(given)) if operation.kind == "statement" else operation.run()
        self.loop.rounds += 1

    def _forms(self) -> list[Any]:
        """What plans depend on, of all that is written."""
        return [_form(output) for output in self.outputs]

    @property
    def outputs(self) -> list[Any]:
        return list({id(statement.output): statement.output for statement in self.statements}.values())


def _rows(step: Any) -> int:
    """Rows that a step passes over; none, if it works on lists."""
    if step.kind in _THIN or step.into.form == "list" or step.into.map is None:
        return 0
    return int(step.into.map.n)


def _form(handle: Any) -> Any:
    store = handle._store
    if handle.ndim == 0:
        return store is None
    return None if store is None else (store.form, store.iso, store.map)


def _simple(loop: Any) -> bool:
    """Whether a body is statements of vectors and scalars, and conditions at its end."""
    kinds = [operation.kind for operation in loop.body]
    ends = kinds.count("until")
    statements = [operation.what for operation in loop.body if operation.kind == "statement"]
    if kinds[len(kinds) - ends :] != ["until"] * ends or {"when", "loop", "build"} & set(kinds) or not statements:
        return False
    return all(statement.output.ndim < 2 for statement in statements)


def _written(loop: Any) -> tuple[list[Any], list[Any]]:
    """The handles that a round takes from the one before, as it reads them before it writes them all; and the others
    that it writes."""
    outputs: dict[int, Any] = {}
    taken: dict[int, Any] = {}
    fresh: set[int] = set()
    for operation in loop.body:
        if operation.kind == "clear":
            outputs[id(operation.what)] = operation.what
            fresh.add(id(operation.what))
        elif operation.kind == "statement":
            statement = operation.what
            partly = statement.mask is not None or statement.accum is not None or statement.index is not None
            index = getattr(statement.index, "vector", None)
            reads = [*_handles(statement.expr), *([] if index is None else [index])]
            reads += ([] if statement.mask is None else [statement.mask.parent]) + (
                [statement.output] if partly else []
            )
            taken |= {id(x): x for x in reads if id(x) not in fresh}
            outputs[id(statement.output)] = statement.output
            fresh.add(id(statement.output))
    carried = [x for key, x in outputs.items() if key in taken]
    return carried, [x for key, x in outputs.items() if key not in taken]


def _handles(x: Any) -> list[Any]:
    """The handles that an expression reads."""
    found, waiting = [], [x]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Expression):
            option = node.option if isinstance(node.option, tuple) else (node.option,)
            waiting += [node.left, node.right, *option]
        elif isinstance(node, Operand) and not node.lazy:
            found.append(getattr(node, "matrix", node))
    return found


class _Graph:
    """The captured round."""

    def __init__(self, owner: DeviceLoop, pinned: list[Statement]):
        self.session, self.loop, self.device = owner.session, owner.loop, owner.device
        self.tape = self._new_tape()
        self.index = Scalar(int)
        self.index._store = (self.device.full(2, -1, np.int64), self.tape.state[:1], 0)
        self.carried, self.inside = _written(self.loop)
        self.places = [self._place(handle) for handle in self.carried]
        self.blocks = [list(place.blocks) if isinstance(place, VectorStore) else None for place in self.places]
        try:
            instead = self._capture(pinned, {})
            if instead:  # again, with results where the next round finds them
                self.tape = self._new_tape()
                self.index._store = (self.index._store[0], self.tape.state[:1], 0)
                self._capture(pinned, instead)
        except NotCompiled:
            raise
        except Exception as error:  # what CUDA does not let a stream do that is captured
            if self.device.kind == "cpu":
                raise
            raise NotCompiled(f"capturing failed: {type(error).__name__}: {error}") from error
        self.loop.how = self.tape.finish()

    def _new_tape(self) -> Any:
        return (CpuTape if self.device.kind == "cpu" else CudaTape)(self.session)

    @property
    def devices(self) -> Any:
        return self.session.devices

    def _restored(self) -> None:
        """Handles hold what lies in their places."""
        for handle, place, held in zip(self.carried, self.places, self.blocks, strict=True):
            handle._store = place
            if held is not None:
                place.blocks = list(held)

    def _place(self, handle: Any) -> Any:
        """Where a handle's content lies before and after each round: room for all of it, which nobody shares."""
        store = handle._store
        if handle.ndim == 0:
            return self._scalar(handle)
        if store is None:
            raise NotCompiled(f"{handle.name} is empty")
        if store.form == "list" or store.iso:
            handle._store = _owned(self.devices, store)
        return handle._store

    def _scalar(self, handle: Any) -> Any:
        if handle._store is None:
            raise NotCompiled(f"{handle.name} is on the host")
        both, vals, empty = handle._store
        mine = self.device.empty(2, np.int64)
        self.device.copy(mine, both)
        handle._store = (mine, mine.view(vals.dtype)[:1], empty)
        return handle._store

    # -- capturing

    def _capture(self, pinned: list[Statement], instead: dict[int, Any]) -> dict[int, Any]:
        """Capture a round; returns what may be given in place of which of its buffers."""
        session, condition, journal = self.session, self.tape.condition, Journal(instead)
        done: list[str] = []
        given = iter(pinned)

        lengths = [self._longest(held) for _, _, held in self._pushes(pinned)]  # read before
        reads = counters.host_reads
        session.loop_index = self.loop, self.index
        try:
            with self.tape.recording(journal, bool(lengths)):
                for operation in self.loop.body:
                    if operation.kind == "statement":
                        session.run(next(given))
                    elif operation.kind == "clear":
                        operation.what._store = None
                    else:
                        done.append(condition.text(operation.what))
                self._separate()
                better = {} if instead else self._replaceable(journal)
                if instead and self._replaceable(journal):
                    raise NotCompiled("buffers are not made in the same order twice")
                copies = [
                    self._back(condition, *each) for each in zip(self.carried, self.places, self.blocks, strict=True)
                ]
                limits = self._limits(condition, pinned)
                text = condition.kernel(done, [one for each in copies for one in each], limits)
                self.tape.turn(text, self.loop.max_iterations)
        finally:
            session.loop_index = None
            inside = [handle._store for handle in self.inside]
            self._restored()
        if counters.host_reads != reads:
            raise NotCompiled("a statement reads from the device")
        self.kept = condition.arrays, inside, pinned
        self.held = [(x, x._store) for statement in pinned for x in self._inputs(statement)]
        return better

    def _separate(self) -> None:
        """What a handle took from the place of another one is copied, before that place changes: `a << b` shares."""
        places = {id(handle): _addresses(held) for handle, held in zip(self.carried, self.blocks, strict=True)}
        for handle in (*self.carried, *self.inside):
            made = handle._store
            others = set().union(*(place for key, place in places.items() if key != id(handle)))
            if handle.ndim and made is not None and _addresses(made.blocks) & others:
                handle._store = _owned(self.devices, made)

    def _replaceable(self, journal: Any) -> dict[int, Any]:
        """The arrays of a round's results that are apart from their places, which nobody reads once they are made:
        these places, by the number of the buffer."""
        found: dict[int, Any] = {}
        for handle, place, held in zip(self.carried, self.places, self.blocks, strict=True):
            made = handle._store
            if held is None or made is None or _described(made) != _described(place):
                continue
            blocks = list(zip(made.blocks, held, strict=True))
            for (one, two), name in product(blocks, ("slots", "vals", "words")):
                mine, other = getattr(one, name), getattr(two, name)
                if mine is None or other is None or mine.size < 2 or not _apart(mine, other):
                    continue
                number = journal.replaceable(mine, other)
                if number is not None:
                    found[number] = other
        return found

    def _inputs(self, statement: Statement) -> list[Any]:
        """What a statement reads that the loop does not write."""
        parents = [] if statement.mask is None else [statement.mask.parent]
        written = {id(handle) for handle in (*self.carried, *self.inside)}
        return [x for x in (*_handles(statement.expr), *parents) if id(x) not in written]

    def _back(self, condition: Condition, handle: Any, place: Any, blocks: Any) -> list[tuple[str, str, int]]:
        """What a round has made of a handle goes to where the next one finds it: arrays by launches, single values by
        the round's last kernel. `blocks`: those of the place; what is written in place has others now."""
        made = handle._store
        if handle.ndim == 0:
            if made is None:
                raise NotCompiled(f"{handle.name} is on the host")
            pairs = [(place[0][:1], made[0][:1]), (place[0][1:], made[0][1:])]
        else:
            if made is None or _described(made) != _described(place):
                raise NotCompiled(f"{handle.name} has another form after a round")
            triples = zip(self.devices, blocks, made.blocks, strict=False)
            pairs = [pair for triple in triples for pair in _differing(*triple, place)]
        return [(condition._array(to), condition._array(source), to.itemsize) for to, source in pairs]

    def _pushes(self, pinned: list[Statement]) -> list[tuple[Any, Any, MatrixStore]]:
        """(semiring, frontier, matrix by its rows) of each push over a list."""
        found = []
        for statement in pinned:
            expr = statement.expr
            if statement.carried[1].direction != "push" or expr.kind != "product":
                continue
            flip = expr.left.ndim == 1
            x, operand = (expr.left, expr.right) if flip else (expr.right, expr.left)
            if not x.lazy and x._store is not None and x._store.form == "list":
                matrix = getattr(operand, "matrix", operand)
                found.append((expr.op, x, self.session.oriented(matrix, (operand is not matrix) != (not flip))))
        return found

    def _longest(self, held: MatrixStore) -> int:
        """Entries of the longest row."""
        for device, block in zip(self.devices, held.blocks, strict=False):
            if "longest" not in block.views:
                block.views["longest"] = device.longest(block.indptr)
        return max(int(block.views["longest"]) for block in held.blocks)

    def _limits(self, condition: Condition, pinned: list[Statement]) -> list[tuple[str, int]]:
        """What tells that a frontier has more edges than few blocks expand well, or than a pull would look at."""
        found, costs = [], self.session.kernels.costs
        for op, x, held in self._pushes(pinned):
            seconds = pull_seconds(costs, op, held, held.colmap, held.rowmap, None, None)
            edge = costs.push_first if op.monoid.is_any else costs.push_edge
            most, longest = min(max(int(seconds / edge), 1024), THIN), self._longest(held)
            kernel = self.session.kernels.get("frontier_edges", build.spec_of(held))
            for b, (block, rows) in enumerate(zip(x._store.blocks, held.blocks, strict=True)):
                if longest <= SHORT:  # so many vertices have few edges
                    found.append((f"{condition._array(block.count)}[0]", max(most // max(longest, 1), 64)))
                    continue
                edges, words = self.devices[b].zeros(1, np.int64), self.session.nil(b).words
                kernel(block.n, block.count, block.slots, words, XLIST, rows.indptr, edges)
                found.append((f"{condition._array(edges)}[0]", most))
        return found

    # -- running

    def run(self) -> None:
        """Run to the end, or to a frontier that is too wide; handles hold what the last round left."""
        start = np.zeros(8, np.int64)
        start[0] = self.loop.rounds
        self.device.copy(self.tape.state, start)
        try:
            self.tape.launch()
        finally:
            rounds, over, _ = (int(x) for x in self.device.get(self.tape.state)[:3])
            self.loop.rounds, self.loop.converged = rounds, bool(over)
            self._leave()

    def _leave(self) -> None:
        """Handles get buffers that no graph writes any more."""
        for handle in self.carried:
            if handle.ndim and handle._store.form != "full":
                handle._store.nvals = None
        for handle, store in zip(self.inside, self.kept[1], strict=True):
            handle._store = store
        # this graph is not launched again: its buffers are theirs


def _described(store: VectorStore) -> tuple:
    return store.form, store.iso, store.dtype, store.map


def _addresses(blocks: Any) -> set[int]:
    """Where the arrays of blocks are."""
    arrays = [array for block in blocks or () for array in (block.slots, block.vals, block.words)]
    return {address(array) for array in arrays if array is not None and array.size}


def _owned(devices: Any, store: VectorStore) -> VectorStore:
    """A copy in buffers that nobody shares."""
    own = _listed if store.form == "list" else _of_one if store.iso else _of_each
    blocks = [own(device, block, store) for device, block in zip(devices, store.blocks, strict=False)]
    return VectorStore(store.map, store.dtype, store.form, store.iso, blocks)


def _of_each(device: Any, block: VectorBlock, store: VectorStore) -> VectorBlock:
    parts = block.vals, block.words, block.count
    vals, words, count = (None if part is None else copied(device, part) for part in parts)
    return VectorBlock(block.n, vals, block.stride, words, count=count)


def _listed(device: Any, block: VectorBlock, store: VectorStore) -> VectorBlock:
    """A list with room for all rows."""
    room = store.map.nslots
    slots, count = device.empty(room, block.slots.dtype), device.full(1, 0, np.int64)
    vals = device.empty(1 if store.iso else room, store.dtype.np_type)
    device.copy(count, block.count)
    device.copy_counted(slots, block.slots, block.count)
    if store.iso:
        device.copy(vals, block.vals[:1])
    else:
        device.copy_counted(vals, block.vals, block.count)
    return VectorBlock(block.n, vals, block.stride, slots=slots, count=count)


def _of_one(device: Any, block: VectorBlock, store: VectorStore) -> VectorBlock:
    """A block of one value that nobody shares."""
    words, count = (None if part is None else copied(device, part) for part in (block.words, block.count))
    return VectorBlock(block.n, copied(device, block.vals[:1]), 0, words, count=count)


def _differing(device: Any, place: VectorBlock, made: VectorBlock, store: VectorStore) -> list[tuple[Any, Any]]:
    """Launches that bring arrays back; pairs of single values that are left to be brought."""
    pairs: list[tuple[Any, Any]] = []
    if made.count is not place.count and made.count is not None and place.count is not None:
        pairs.append((place.count, made.count))
    if store.form == "list":
        if _apart(made.slots, place.slots):
            device.copy_counted(place.slots, made.slots, made.count)
        if store.iso:
            pairs += [(place.vals, made.vals)] if _apart(made.vals, place.vals) else []
        elif _apart(made.vals, place.vals):
            device.copy_counted(place.vals, made.vals, made.count)
        return pairs
    if store.iso and _apart(made.vals, place.vals):
        pairs.append((place.vals, made.vals))
    for name in ("words",) if store.iso else ("vals", "words"):
        mine, other = getattr(place, name), getattr(made, name)
        if mine is not None and _apart(mine, other):
            device.copy(mine, other)
    return pairs


def _apart(one: Any, two: Any) -> bool:
    return one is not two and address(one) != address(two)
