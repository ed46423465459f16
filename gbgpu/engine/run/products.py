"""Push and pull on row blocks, the exchange around them, and the combination of arrivals."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...device.base import address
from ...device.remote import AWAY
from ...distribute import needs
from ...distribute.blocks import VectorBlock, VectorStore
from ...distribute.halo import Halo, Near, halo, near
from ...distribute.rowmap import RowMap, Task
from ...distribute.transport import own_first
from ...interrupts import held
from ...kernels import interface as k
from ...kernels.interface import Spec
from ...semiring._algebra import Monoid
from ...semiring._types import INT64
from ...trace import counters
from ..assign import tallied, tally_masked
from ..deterministic import by_rows
from ..matrix.csr import whole_vector
from ..near import exchanged, near_values, near_vector
from ..plan import Step
from ..pool import Workspace, workspace
from .delegates import Delegates, parts_of
from .steps import FORMS, copied

OFTEN = 6  # pulls that read x by use until what they read is looked for, which takes as long as some; or a loop is
# to be captured
_new = tuple.__new__  # a third of what the constructor of a named tuple takes


class Reached(NamedTuple):
    """What a device scattered: its workspace, where the value of all is if they are iso, and how many slots it
    reached."""

    space: Workspace
    value: Any
    count: Any


class Products(Delegates):
    """Steps of `x @ A` and `A @ x`."""

    __slots__ = ()

    @property
    def _counts_tallies(self) -> bool:
        """Whether traces have tallies of frontiers: those of CPU devices of one process."""
        return self.session.ranks is None and self.session.devices[0].kind == "cpu"

    def _gather(self, step: Step) -> list[needs.Dense]:
        source, session = self.registers[step.sources[0]], self.session
        if step.into.iso and not source.iso:  # nobody reads its values
            blocks = [VectorBlock(block.n, block.vals, 0, block.words) for block in source.blocks]
            source = VectorStore(source.map, source.dtype, source.form, True, blocks)
        close = self._near(step, source)
        if close is not None:
            return self._beside(source, close)
        apart = step.option.heads is not None and not (source.iso and source.form == "full")
        thin = self.registers["A"].apart.halo if apart else self._halo(source)
        if thin is not None:
            return self._reached(step, source, thin) or self._values_of(source, thin)
        source = near_vector(session, source)
        seconds = source.map.nslots * source.dtype.np_type.itemsize * session.kernels.costs.byte
        return session.over(source.map.tasks, lambda task: whole_vector(session, source, task.device), seconds)

    def _halo(self, source: VectorStore) -> Halo | None:
        """What blocks read of others' rows, if single values are to be brought. It is looked for at the second pull."""
        matrix, session = self.registers["A"], self.session
        if source.form != "full" or source.iso:
            return None
        if session.capturing is not None:  # nothing is read while a loop is captured
            return matrix.halo
        if matrix.pulls == 1:
            costs, p = session.kernels.costs, len(session.devices)

            def pays(few: int, all: int) -> bool:
                """By two kernels, in which a value at any place takes four times one of a row; of 8 bytes each."""
                return 2 * costs.step + 8 * few / p * costs.row < 8 * (all - few) / p * costs.byte

            def over(tasks: Sequence[Task], work: Callable[[Task], Any], seconds: float) -> Any:
                return session.allgather(tasks, session.over(tasks, work, seconds), "a halo")

            matrix.halo = halo(matrix, session.devices, over, pays)
        matrix.pulls += 1
        if matrix.pulls <= OFTEN:
            counters.count(matrix)
        return matrix.halo

    def _near(self, step: Step, source: VectorStore) -> Near | None:
        """What blocks read of others' rows, if all read x by use. It is looked for once they do."""
        matrix, session, product = self.registers["A"], self.session, step.option
        if source.iso or session.ranks is not None or product.heads is not None or matrix.shared is not None:
            return None
        square = source.map is matrix.colmap and source.map.p == len(matrix.blocks)
        if matrix.near is False or not square or by_rows(session, step.spec.op):
            return None
        masked = bool(step.sources[1])
        orders = [session.kernels.by_use(block, step.spec, masked) for block in matrix.blocks]
        if any(order is None for order in orders):
            return None
        if matrix.near is None and session.capturing is None:  # nothing is read while a loop is captured
            matrix.asked += 1
            counters.count(matrix)
            if matrix.asked < OFTEN and not session.counts_unknown:
                return None
            costs, p = session.kernels.costs, len(session.devices)

            def pays(few: int, all: int) -> bool:
                """By one kernel, of 4 bytes each."""
                return costs.step + 2 * few / p * costs.row < 4 * (all - few) / p * costs.link

            # flags, places and ids of all slots, and ids of what is read, twice
            room = [22 * source.map.nslots + 24 * order.size for order in orders]
            found = near(matrix, session.devices, orders, session.over, pays) if session.replicas.room(room) else None
            matrix.near = found or False
            if found:
                session.replicas.keep(matrix)
        return matrix.near or None

    def _packed(self, source: VectorStore, thin: Halo | Near) -> list[Any]:
        """The values, and bits, that owners are asked for, side by side."""
        pack = self.kernel("gather", Spec(b=source.dtype, idx=source.map.slot_type()))
        flags = k.XFULL if source.form == "full" else 0
        seconds = sum(piece.length for wanted in thin.pieces for piece in wanted) * self.session.kernels.costs.row

        def packed(task: Task) -> Any:
            b, rows = task.block, thin.asked[task.block]
            vals, words, count = self.fresh_bitmap(len(rows), b, source.dtype)
            if len(rows):
                pack(len(rows), rows, *self.dense(source.blocks[b], b), flags, vals, words, count)
            return needs.Dense(vals, 1, words)

        return self.session.over(source.map.tasks, packed, seconds)

    def _beside(self, source: VectorStore, close: Near) -> list[needs.Dense]:
        """On every device its own part of a vector, and behind it what its block reads of the others."""
        session, dtype, full = self.session, source.dtype.np_type, source.form == "full"
        seconds = sum(close.sizes) * dtype.itemsize * session.kernels.costs.byte / source.map.p
        sent = self._packed(source, close)

        def arrived(task: Task) -> needs.Dense:
            b, me, block, size = task.block, task.device, source.blocks[task.block], close.sizes[task.block]
            vals = session.devices[me].empty(size, dtype)
            words = None if full else session.devices[me].empty(size >> 6, np.int64)
            transfers = [needs.Transfer(me, me, block.vals[: block.n], vals[: block.n])]
            if words is not None:
                held = (block.n + 63) >> 6
                transfers.append(needs.Transfer(me, me, block.words[:held], words[:held]))
            for owner, begin, at, length in close.pieces[b]:
                given = sent[owner]
                transfers.append(needs.Transfer(owner, me, given.vals[begin : begin + length], vals[at : at + length]))
                if words is not None:
                    part = slice(begin >> 6, (begin + length + 63) >> 6), slice(at >> 6, (at + length + 63) >> 6)
                    transfers.append(needs.Transfer(owner, me, given.words[part[0]], words[part[1]]))
            session.carry(me, transfers)
            return needs.Dense(vals, 1, words, close.orders[b])

        return session.over(source.map.tasks, arrived, seconds)

    def _values_of(self, source: VectorStore, thin: Halo) -> list[needs.Dense]:
        """A vector on every device, with what its block reads: owners pack the values, and bits, that they are asked
        for."""
        session, devices, map, dtype = self.session, self.session.devices, source.map, source.dtype
        full = source.form == "full"
        if full and not source.iso and session.kernels.kind == "cuda" and not session.brings:
            return self._fetched(source, thin)
        unpack = self.kernel("scatter", Spec(b=dtype, idx=map.slot_type()))
        sent = self._packed(source, thin)
        nothing: list[list[Any]] = [[] for _ in map.tasks]
        near = nothing if source.iso else near_values(session, map, parts_of(sent, "vals"), thin.pieces, dtype.np_type)
        bits = nothing if full else self.near_bits(map, sent, thin.pieces)

        def arrived(task: Task) -> needs.Dense:
            b, device, lo, n = task.block, devices[task.device], map.first_slot(task.block), map.rows[task.block]
            (count, slots), vals, words = thin.placed[b], source.blocks[b].vals, None
            if not source.iso:
                vals = device.empty(map.nslots, dtype.np_type)
                device.copy(vals[lo : lo + n], source.blocks[b].vals[:n])
            found = device.empty(0 if source.iso else len(slots), dtype.np_type)
            transfers = [
                needs.Transfer(owner, task.device, given, found[at : at + length])
                for (owner, _, at, length), given in zip(thin.pieces[b], near[b], strict=not source.iso)
            ]
            session.carry(task.device, transfers)
            if len(found):
                unpack(count, slots, found, 1, vals, device.empty((map.nslots + 63) >> 6, np.int64))
            if not full:
                words = device.zeros(map.nslots >> 6, np.int64)
                device.copy(words[lo >> 6 : (lo + n + 63) >> 6], source.blocks[b].words[: (n + 63) >> 6])
                self.place_bits(task.device, thin.pieces[b], bits[b], slots, words)
            return needs.Dense(vals, 0 if source.iso else 1, words)

        return session.over(
            map.tasks, arrived, map.nslots * dtype.np_type.itemsize * session.kernels.costs.byte / map.p
        )

    def _reached(self, step: Step, source: VectorStore, thin: Halo) -> list[needs.Dense] | None:
        """The same without anything brought, where the product itself reads single values of others: that has one
        launch for each device. Statements alone: in loops, what is read is written down as arguments of kernels."""
        session, map, matrix, kernels = self.session, source.map, self.registers["A"], self.session.kernels
        full = source.form == "full" and not source.iso and not step.sources[1] and step.option.heads is None
        alone = session.capturing is None and session.watched is None and not session.brings
        if not (full and alone) or matrix.pulls <= OFTEN or map.p > needs.OWNERS or by_rows(session, step.spec.op):
            return None
        if not all(kernels.reaches(block, step.spec) for block in matrix.blocks):
            return None
        first, found, blocks, size = map.starts.tolist(), [], source.blocks, source.dtype.np_type.itemsize
        for task, block, pieces, (_, slots) in zip(map.tasks, blocks, thin.pieces, thin.placed, strict=True):
            session.account(task.device, len(slots) * size)
            far = needs.Far(first[task.block], block.n, first, [(o, blocks[o].vals) for o, *_ in pieces])
            found.append(needs.Dense(block.vals, 1, None, far=far))
        return found

    def _fetched(self, source: VectorStore, thin: Halo) -> list[needs.Dense]:
        """The same of a full vector where devices read each other's memory: each takes the values from where they
        lie, by a kernel an owner in place of four for both."""
        session, map, dtype = self.session, source.map, source.dtype.np_type

        def fetched(task: Task) -> needs.Dense:
            me, mine, slots = task.device, source.blocks[task.block], thin.placed[task.block][1]
            device: Any = session.devices[me]  # a GPU
            lo = map.first_slot(task.block)
            vals = device.empty(map.nslots, dtype)
            device.copy(vals[lo : lo + mine.n], mine.vals[: mine.n])
            for owner, _, at, length in thin.pieces[task.block]:
                device.fetch(vals, slots[at : at + length], source.blocks[owner].vals, map.first_slot(owner))
            session.account(me, len(slots) * dtype.itemsize)
            return needs.Dense(vals, 1, None)

        return session.over(map.tasks, fetched, map.n * dtype.itemsize * session.kernels.costs.byte / map.p)

    def _pull(self, step: Step) -> VectorStore:
        source, matrix = self.registers[step.sources[1]], self.registers["A"]
        product, spec, session, mask = step.option, step.spec, self.session, step.sources[2]
        outer, stride, full = product.outer, 0 if spec.iso else 1, step.into.form == "full"
        fixed = by_rows(session, spec.op) and not spec.iso  # the order of sums
        gathered = type(source) is list
        own = matrix.halo is not None or gathered and source[0] is not AWAY and source[0].order is not None
        bits, tasks, shared, rows_of = self.registers[mask] if mask else None, outer.tasks, None, None
        if product.heads is not None:
            matrix = matrix.apart.normal
        elif session.assigner is not None and outer.p > 1:
            tasks = session.assigner.pull(spec, outer, matrix, self.registers.get("probed"), bits)
        elif session.sharing is not None and gathered and not mask:
            agreed = session.sharing.of(spec, outer, matrix, own)
            if agreed is not None:
                tasks, rows_of = agreed.tasks, agreed.blocks
                if session.watched is not None:
                    session.sharing.begin(agreed.decision, agreed.decision.plain)
        if tasks is not outer.tasks:
            shared = [self.fresh_bitmap(n, b, spec.out, spec.iso) for b, n in enumerate(outer.rows)]

        def work(task: Task) -> Any:
            b, device = task.block, session.devices[task.device]
            block, (mwords, flags), (row0, users) = matrix.blocks[b], self.bits(mask, b), outer.row_ids(device, b)
            if shared is not None:
                block = block.part(task.lo, task.hi) if rows_of is None else rows_of[task]
                mwords, row0 = self.bits_from(device, mwords, task) if mask else mwords, row0 + task.lo
            if shared is None or rows_of is not None and task.device != b:
                vals, words, count = self.fresh_bitmap(block.n, task.device, spec.out, spec.iso)
            else:
                (vals, words), count = _rows(shared[b], task, stride), device.zeros(1, np.int64)
                if rows_of is None:  # a word may have rows of two tasks
                    words = device.empty((block.n + 63) >> 6, np.int64)
            x = source[b if own else task.device] if gathered else source.blocks[b]
            out = vals, words, count
            self.pull_block(task.device, product, block, x, (mwords, flags), (row0, users), out, fixed)
            return VectorBlock(block.n, vals, stride, None if full else words, count=count)

        if session.watched is not None and self._counts_tallies:
            session.watched.tallies = tally_masked(session, bits, matrix)
        moving = None if mask or product.heads is not None else session.repartitioning
        done = self.over(tasks, work if moving is None else moving.timed(spec, matrix, work))
        if moving is not None:
            moving.hear()
        return self.store(done if shared is None else self._joined(outer, tasks, shared, done, full, rows_of is None))

    def _joined(
        self, map: RowMap, tasks: Sequence[Task], shared: list[tuple], parts: list[VectorBlock], full: bool, cut: bool
    ) -> list[VectorBlock]:
        """Blocks whose rows several tasks have made: parts on other devices are transferred, and counts added up.
        `cut`: the rows of a task may begin inside a word, so each task has presence words of its own."""
        session = self.session
        plus = Spec(op=Monoid.registry["plus"][INT64], b=INT64)

        def add(owner: Task) -> VectorBlock:
            b, me, device, unused = (
                owner.block,
                owner.device,
                session.devices[owner.device],
                session.placeholders(owner.device),
            )
            mine = [(task, part) for task, part in zip(tasks, parts, strict=True) if task.block == b]
            counts, transfers, (vals, words, count) = device.empty(len(mine), np.int64), [], shared[b]
            for i, (task, part) in enumerate(mine):
                into = _rows(shared[b], task, part.stride)
                pairs = [(part.count, counts[i : i + 1]), (part.vals, into[0]), (part.words, into[1])]
                elsewhere = not cut and task.device != me and part.n and address(part.vals) != address(into[0])
                pairs = [pair for pair in pairs[: 3 if elsewhere else 1] if pair[0] is not None]
                transfers += [needs.Transfer(task.device, me, *pair) for pair in pairs]
            session.carry(me, transfers)
            if cut and not full:
                device.clear(words)
                for task, part in mine:
                    device.reach(part.words)
                    self.kernel("move_bits", Spec())(part.n, part.words, 0, task.lo, words)
            if not full:
                given = len(mine), unused.words, counts, 1, unused.words, k.XFULL
                self.kernel("reduce", plus)(*given, count, unused.scratch)
            return VectorBlock(map.rows[b], vals, parts[0].stride, None if full else words, count=count)

        return session.over(map.tasks, add, 0.0)

    def _push(self, step: Step) -> VectorStore | list[Reached]:
        """Scatter into a workspace of each device (DENSE: a fresh one; of one device it becomes the result), or of one
        device straight into the output."""
        source, matrix = self.registers[step.sources[1]], self.registers["A"]
        product, spec, session, mask = step.option, step.spec, self.session, step.sources[2]
        inner, outer, listed, dense = product.inner, product.outer, source.form == "list", product.dense
        w = self._target(step) if step.into.name == "w" else None  # one device: straight into the output
        if w is not None and w is source:  # what is read stays as it is
            source = self.duplicate(source)
        form = FORMS[source.form] | (k.DENSE if dense or w is not None else 0)
        kernel, options = self.kernel("push"), session.kernels.push_options
        tasks, dealt, apart = inner.tasks, None, None if product.heads is None else matrix.apart
        tallies = self.registers.get("tallies")
        if apart is not None or inner.p == 1:
            pass  # owners compute
        elif session.assigner is not None:
            tasks = session.assigner.push(spec, source, matrix, tallies)
        elif session.sharing is not None:
            dealt = session.sharing.push(spec, source, matrix, tallies)
            if dealt is not None:
                tasks = dealt.tasks
        everywhere = self._masks(mask, outer) if dealt is not None and mask else None
        room = outer.n if dense and outer.p == 1 else outer.nslots
        if w is not None:
            reached = [self._straight(w, spec)]
        else:
            reached = [self._workspace(d, room, spec.op.monoid, spec, dense) for d in range(outer.p)]

        def work(task: Task) -> None:
            d, device, unused = task.device, session.devices[task.device], session.placeholders(task.device)
            block = (matrix if apart is None else apart.normal).blocks[task.block]
            x, (row0, users) = source.blocks[task.block], inner.row_ids(device, task.block)
            if dealt is not None:
                block, x = dealt.hand(task, source)
            elif tasks is not inner.tasks:
                block, x, row0 = self.part(device, block, x, task, row0)
            (mwords, flags), (traced, stats), own = self.bits(mask, d), self.stats(d), outer.first_slot(d)
            space, value, count = reached[d]
            if w is not None and mwords is space.words:
                mwords = copied(device, mwords)
            slots = own, own + outer.rows[d]
            if apart is not None and mask:
                mwords, slots = self.known(step, mwords, flags, d), (0, outer.nslots)
            elif everywhere is not None:
                mwords, slots = everywhere[d], (0, outer.nslots)
            given = x.listed if listed else (unused.words, unused.slots(spec.idx), x.vals, x.stride)
            present, flags = unused.words if x.words is None else x.words, flags | traced
            ids, mine = outer.tables(device).ids, (mwords, *slots)
            into = value, space.words, space.touched, count, stats
            more = options(block)
            kernel(block.n, *given, present, flags | form, *block.csr, *ids, row0, users, *mine, *into, **more)
            if apart is not None and apart.delegates[d].nnz:
                block, x = apart.delegates[d], self.registers[step.sources[3]][d]
                given, full = (unused.words, unused.slots(spec.idx), x.vals, x.stride), x.words is None
                present, flags = unused.words if full else x.words, flags | (k.XFULL if full else 0)
                more, rows = options(block), apart.users[d]
                kernel(block.n, *given, present, flags, *block.csr, *ids, *rows, *mine, *into, **more)

        if session.watched is not None and self._counts_tallies:
            session.watched.tallies = [one.tally for one in tallied(session, source, matrix)]
        if w is not None:
            run = partial(session.over, tasks, work, self.registers["seconds"], whole=True)
            run() if session.kernels.uncut(kernel) else held(run)  # it happens, or it does not
            if w.form != "full":
                w.nvals = None
            return w
        self.over(tasks, work)
        if not dense or outer.p > 1:
            return reached
        (space, value, count), stride = reached[0], 0 if spec.iso else 1
        return self.store([VectorBlock(outer.n, value, stride, space.words, count=count)])

    def _masks(self, mask: str, map: RowMap) -> list[Any]:
        """The bits of a mask for all slots, on every device: a thief reaches what is the owner's, again and again."""
        held, session = self.bits_of(map, [self.bits(mask, b)[0] for b in range(map.p)]), self.session
        return session.over(map.tasks, lambda task: whole_vector(session, held, task.device).words, 0.0)

    def _straight(self, w: VectorStore, spec: Spec) -> Reached:
        """The output's own block as what a push scatters into."""
        block, unused = w.blocks[0], self.session.placeholders(0)
        full = block.words is None
        words = self.session.pool.ones(0, block.n) if full else block.words
        space = _new(Workspace, (None, block.vals, words, unused.slots(spec.idx)))
        return _new(Reached, (space, block.vals, unused.scratch if full else block.count))

    def _workspace(self, d: int, room: int, monoid: Any, spec: Spec, fresh: bool = False) -> Reached:
        session, iso = self.session, spec.iso
        device = session.devices[d]
        if fresh:
            space = workspace(
                device, room, monoid, iso, session.kernels.neutral, session.placeholders(d).slots(spec.idx)
            )
        else:
            space = session.pool.workspace(d, room, monoid, iso)
        value = device.empty(1, monoid.dtype.np_type) if iso and not fresh else space.vals
        return _new(Reached, (space, value, device.zeros(1, np.int64)))

    def _reduce_scatter(self, step: Step) -> VectorStore:
        """What all devices have scattered, at the owners of the rows."""
        reached, map, session = self.registers[step.sources[0]], step.into.map, self.session
        kernel, devices, iso = self.kernel("write"), session.devices, step.into.iso

        def work(task: Task) -> VectorBlock:
            b, me, lo, n = task.block, task.device, map.first_slot(task.block), map.rows[task.block]
            device, unused, (mwords, flags) = devices[me], session.placeholders(me), self.bits(step.sources[1], b)
            vals = reached[me].value if iso else device.empty(n, step.into.dtype.np_type)
            words, count = device.zeros((n + 63) >> 6, np.int64), None
            for source in sorted(range(map.p), key=lambda d: own_first(d, me, map.p)):
                space = reached[source].space
                part = [space.words[lo >> 6 : (lo + n + 63) >> 6]] + [space.vals[lo : lo + n]] * (not iso)
                part = list(session.within_reach(source, me, part))
                count, theirs = device.zeros(1, np.int64), vals if iso else part[1]
                kernel(n, vals, words, theirs, 0 if iso else 1, part[0], mwords, unused.words, flags, count)
            return VectorBlock(n, vals, 0 if iso else 1, words, count=count)

        return self.store(session.over(map.tasks, work, self.rows(map)))

    def _drain(self, step: Step) -> VectorStore | list[needs.Bins]:
        """Empty workspaces into lists by owner; with one owner that is the result."""
        reached, map, p = self.registers[step.sources[0]], step.into.map, step.into.map.p

        def work(task: Task) -> Any:
            starts = map.tables(self.session.devices[task.device]).starts
            slots, vals, counts = self._drained(reached[task.device], task.device, map.nslots, starts, p)
            if p > 1:
                return needs.Bins(task.device, slots, vals, counts)
            return VectorBlock(map.n, vals, 0 if step.into.iso else 1, slots=slots, count=counts)

        made = self.session.over(map.tasks, work, self.rows(map) / 4)
        return self.store(made) if p == 1 else made

    def _drained(self, reached: Reached, d: int, room: int, starts: Any, p: int) -> tuple[Any, Any, Any]:
        """(slots, vals, count for each owner) of what device d has reached; the workspace is ready for its next use."""
        device, (space, value, count), step = self.session.devices[d], reached, self.step
        spec = step.spec  # of a combine, or of this
        kernel = self.kernel("drain", lambda: Spec(spec.op, out=step.into.dtype, idx=spec.idx, iso=step.into.iso))
        touched = device.peek(count) if p == 1 else None
        room = room if touched is None else int(touched[0])
        slots, counts = device.empty(room, spec.idx), count if p == 1 else device.zeros(p, np.int64)
        vals = value if step.into.iso else device.empty(room, step.into.dtype.np_type)
        kernel(count, space.touched, space.vals, space.words, space.start, starts, p, slots, vals, counts)
        return slots, vals, counts

    def _exchange(self, step: Step) -> list[tuple[list[needs.Message], Any]]:
        """The messages for each owner, and the one value of all if they are iso."""
        bins, into, seconds = self.registers[step.sources[0]], step.into, self.registers["seconds"] / 4
        return exchanged(self.session, bins, into.map, into.iso, seconds)

    def _combine(self, step: Step) -> VectorStore:
        received, spec, pool, outer = self.registers[step.sources[0]], step.spec, self.session.pool, step.into.map
        kernel = self.kernel("combine")
        spaces = [
            self._workspace(task.device, -(-n // 64) * 64, spec.op, spec)
            for task, n in zip(outer.tasks, outer.rows, strict=True)
        ]

        def work(task: Task) -> VectorBlock:
            b, d, n = task.block, task.device, outer.rows[task.block]
            (messages, one), (mwords, flags) = received[b], self.bits(step.sources[1], b)
            reached = spaces[b]
            for slots, vals, count in messages:
                self.session.devices[d].reach(slots)
                space = reached.space
                kernel(count, slots, vals, mwords, flags, space.vals, space.words, space.touched, reached.count)
            slots, vals, counts = self._drained(reached, d, n, pool.whole(d, n), 1)
            stride = 0 if spec.iso else 1
            return VectorBlock(n, one if spec.iso else vals, stride, slots=slots, count=counts)

        return self.store(self.session.over(outer.tasks, work, self.registers["seconds"] / 4))


def _rows(shared: tuple[Any, Any, Any], task: Task, stride: int) -> tuple[Any, Any]:
    """Values and presence words of the rows of a task."""
    vals, words, _ = shared
    return vals[task.lo : task.hi] if stride else vals, words[task.lo >> 6 : (task.hi + 63) >> 6]
