"""The write rule: a result becomes the output, or is written into it under mask, accumulator and replace."""

from itertools import starmap
from typing import Any

import numpy as np

from ...device.remote import AWAY
from ...distribute.blocks import VectorBlock, VectorStore
from ...distribute.rowmap import Task
from ...distribute.transport import own_first
from ...interrupts import held
from ...kernels import interface as k
from ..matrix.shapes import Ids
from ..plan import Step
from .operands import Operands
from .steps import copied


class Output(Operands):
    """Steps that end a statement."""

    __slots__ = ()

    def _dup(self, step: Step) -> VectorStore:
        return self.duplicate(self.registers[step.sources[0]])

    def duplicate(self, store: VectorStore) -> VectorStore:
        devices = self.session.devices

        def work(task: Task) -> VectorBlock:
            block, device = store.blocks[task.block], devices[task.device]
            if store.iso or store.form == "list":
                return block
            parts = block.vals, block.words, block.count
            vals, words, count = (None if part is None else copied(device, part) for part in parts)
            return VectorBlock(block.n, vals, block.stride, words, count=count)

        blocks = self.session.over(store.map.tasks, work, self.rows(store.map))
        return VectorStore(store.map, store.dtype, store.form, store.iso, blocks, store.nvals)

    def _move(self, step: Step) -> VectorStore:
        return self.registers[step.sources[0]]

    def _target(self, step: Step) -> VectorStore:
        """The output's blocks ready to be written in place: full, or a bitmap, with a value for each row."""
        w, map, session, form = self.registers.get("w"), step.into.map, self.session, step.into.form
        if w is None:
            blocks = []
            for b in range(map.p):
                n, device = map.rows[b], session.devices[b]
                words, count = device.zeros((n + 63) >> 6, np.int64), device.zeros(1, np.int64)
                blocks.append(VectorBlock(n, device.empty(n, step.into.dtype.np_type), 1, words, count=count))
            return VectorStore(map, step.into.dtype, "bitmap", False, blocks)
        if w.form == form and not w.iso:
            return w
        assert form is not None
        blocks = self.session.over(map.tasks, self._to_bitmap(w, False), self.entries(w))
        if form == "full":
            blocks = [VectorBlock(block.n, block.vals, 1) for block in blocks]
        return VectorStore(map, w.dtype, form, False, blocks)

    def _write_list(self, step: Step) -> VectorStore:
        t, full = self.registers[step.sources[0]], step.into.form == "full"
        w, kernel = self._target(step), self.kernel("write_list")

        calls = []
        for task, block in zip(w.map.tasks, w.blocks, strict=True):
            given, (mwords, flags) = t.blocks[task.block], self.bits(step.sources[1], task.block)
            count = self.session.placeholders(task.device).scratch if full else block.count
            into = block.vals, self.words(block.words, task.device), count
            calls.append((*given.listed, mwords, flags | (k.CFULL if full else 0), *into))
        return self._changed(w, kernel, calls, w.blocks, self.entries(t))

    def _unwrite(self, step: Step) -> VectorStore:
        """Rows that an index names lose their entries."""
        w, kernel, calls = self._target(step), self.kernel("unwrite"), []
        lists, total = self.named(w.map)
        for (slots, count), block in zip(lists, w.blocks, strict=True):
            calls.append((count, slots, block.words, block.count))
        return self._changed(w, kernel, calls, w.blocks, total * self.session.kernels.costs.row / w.map.p)

    def _write(self, step: Step) -> VectorStore:
        (full, tfull, replace), (source, mask, region), session = step.option, step.sources, self.session
        w, kernel = self._target(step), self.kernel("write")
        base = (k.CFULL if full else 0) | (k.TFULL if tfull else 0) | (k.REPLACE if replace else 0)

        blocks, calls = [], []
        for task, block, given in zip(w.map.tasks, w.blocks, self.registers[source].blocks, strict=True):
            b, count = task.block, session.placeholders(task.block).scratch
            if not full:  # entries are counted anew
                count = session.devices[task.device].zeros(1, np.int64)
                block = VectorBlock(block.n, block.vals, block.stride, block.words, None, count)
            blocks.append(block)
            (mwords, flags), (rwords, inside) = self.bits(mask, b), self.bits(region, b, k.REGION)
            into, masks = (block.vals, self.words(block.words, b)), (mwords, rwords, base | flags | inside)
            calls.append((block.n, *into, *self.dense(given, b), *masks, count))
        return self._changed(w, kernel, calls, blocks, self.rows(w.map))

    def _scatter(self, step: Step) -> VectorStore:
        """Values of a full vector go to the places that a vector names: of several devices each combines what it has
        for all rows first, then owners combine what they get."""
        session, w, u = self.session, self.registers["w"], self.registers[step.sources[0]]
        map, tasks, ids = w.map, w.map.tasks, Ids(session, self.registers["place"], w.map, u.map)
        slots = session.over(tasks, lambda task: ids.part(task.block, u.map), 0.0)
        session.raise_watched()
        vals, seconds = [block.vals for block in u.blocks], map.n * session.kernels.costs.push_edge / map.p
        if map.p > 1:
            rows = [session.pool.rows(task.device, map.rows[task.block], map.slot_type()) for task in tasks]
            parts = session.over(tasks, lambda task: self._sent(task, slots[task.block], u), seconds)
            vals = session.over(tasks, lambda task: self._own(task, parts, rows[task.block]), seconds)
            slots = rows
        into = [block.vals for block in w.blocks]
        arrivals = zip(tasks, slots, vals, into, strict=True)
        calls = [AWAY if each[0] is AWAY else self._arrivals(task.device, *each) for task, *each in arrivals]
        return self._changed(w, self.kernel("combine"), calls, w.blocks, seconds)

    def _arrivals(self, d: int, slots: Any, vals: Any, into: Any) -> tuple:
        """Arguments that combine values with what a device has at these places."""
        pool, unused = self.session.pool, self.session.placeholders(d)
        nobody = unused.slots(self.registers["w"].map.slot_type()), unused.scratch
        given = pool.scalar(d, len(slots), np.int64), slots, vals, unused.words, 0
        return *given, into, pool.ones(d, len(into)), *nobody

    def _sent(self, task: Task, slots: Any, u: VectorStore) -> Any:
        """What a device has for all rows."""
        op, n = self.step.spec.op, self.registers["w"].map.nslots
        into = self.session.devices[task.device].full(n, op.start, op.dtype.np_type)
        self.kernel("combine")(*self._arrivals(task.device, slots, u.blocks[task.block].vals, into))
        return into

    def _own(self, task: Task, parts: list[Any], rows: Any) -> Any:
        """What all devices have for the rows of one."""
        session, map, kernel = self.session, self.registers["w"].map, self.kernel("combine")
        lo, n = map.first_slot(task.block), map.rows[task.block]
        mine = parts[task.block][lo : lo + n]
        for other in sorted(map.tasks, key=lambda other: own_first(other.block, task.block, map.p))[1:]:
            if n:
                (came,) = session.within_reach(other.device, task.device, [parts[other.block][lo : lo + n]])
                kernel(*self._arrivals(task.device, rows, came, mine))
        return mine

    def _changed(
        self, w: VectorStore, kernel: Any, calls: list[tuple], blocks: list[VectorBlock], seconds: float
    ) -> VectorStore:
        """A store written in place, one call of the kernel a block, which has `blocks` then: all of it, or nothing if
        something stops the statement. What may fail is done before: only kernels run here."""
        session = self.session
        if w.form != "full":
            w.nvals = None
        uncut = session.kernels.uncut(kernel)
        if uncut and len(calls) == 1 and blocks[0] is w.blocks[0]:  # it happens, or it does not
            session.over(w.map.tasks, lambda task: kernel(*calls[0]), seconds, whole=True)
            return w
        done: list[Any] = []
        try:
            if (
                uncut
                and session.kernels.atomic
                and session.watched is None
                and session.device_set.inline(w.map.p, seconds)
            ):
                done.extend(starmap(kernel, calls))  # one step of the interpreter: nothing comes between two calls
            else:

                def work(task: Task) -> bool:
                    kernel(*calls[task.block])
                    return True

                held(lambda: done.extend(session.over(w.map.tasks, work, seconds, whole=True)))
        finally:
            if done:
                w.blocks = blocks
        return w
