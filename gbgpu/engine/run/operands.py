"""Operands as a step wants them: on the right row map, in the right form, as mask bits, or a scalar as a vector."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...device.base import Device
from ...distribute.blocks import VectorBlock, VectorStore
from ...distribute.rowmap import RowMap, Task
from ...kernels import interface as k
from ...kernels.interface import Deferred, Spec
from ...language.index import distinct
from ...language.scalar import Scalar
from ..matrix.csr import part_of, slots_of, whole_vector
from ..matrix.shapes import Ids
from ..near import near_vector
from ..plan import Step
from .steps import Steps, cast, copied


class Operands(Steps):
    """Steps that prepare operands."""

    __slots__ = ()

    def _remap(self, step: Step) -> VectorStore:
        self.session.room(step.into.map.n, 32, "a vector on other rows")
        map, given = step.into.map, self.registers[step.sources[0]].map
        return self._gathered(step, lambda device, b: slots_of(device, given, part_of(device, map, b)))

    def _extract(self, step: Step) -> VectorStore:
        self.session.room(step.into.map.n, 32, "indexed rows")
        map, given = step.into.map, self.registers[step.sources[0]].map
        slots = given.slots(self.registers["ids"].ids()) if given.n else np.full(map.n, -1)
        return self._gathered(step, lambda device, b: device.put(slots[map.part(b)]))

    def _take(self, step: Step) -> VectorStore:
        """What a full vector has at the ids that a vector names."""
        session, over, index = self.session, step.into.map, self.registers["ids"]
        source = near_vector(session, self.registers[step.sources[0]])
        ids = Ids(session, index, source.map, over)

        def work(task: Task) -> VectorBlock:
            dense = whole_vector(session, source, task.device)
            return VectorBlock(over.rows[task.block], ids.take(dense.vals, task.block, over), 1)

        return self.store(session.over(over.tasks, work, index.size * session.kernels.costs.row))

    def _place(self, step: Step) -> VectorStore:
        """Entries of the source at the rows that an index names; of two for one row the last."""
        map, placed = step.into.map, self._placed(step)
        kernel = self.kernel("scatter", Spec(b=self.session.int64, idx=map.slot_type()))

        def index(device: Device, b: int) -> Any:
            of, (rows, slots) = device.full(map.rows[b], -1, np.int64), placed[b]
            if len(rows):
                count = self.session.pool.scalar(b, len(rows), np.int64)
                words = device.empty((map.rows[b] + 63) >> 6, np.int64)
                kernel(count, device.put(rows), device.put(slots), 1, of, words)
            return of

        return self._gathered(step, index)

    def _place_list(self, step: Step) -> VectorStore:
        """The same of a source that has them all: a list."""
        session, map, placed, kernel = self.session, step.into.map, self._placed(step), self.kernel("gather")
        source = near_vector(session, self.registers[step.sources[0]])

        def work(task: Task) -> VectorBlock:
            b, device, dense = task.block, session.devices[task.device], whole_vector(session, source, task.device)
            rows, slots = placed[b]
            vals, words, count = self.fresh_bitmap(len(rows), b, source.dtype)
            if len(rows):
                kernel(len(rows), device.put(slots), *self.dense(dense, b), k.XFULL, vals, words, count)
            count = session.pool.scalar(b, len(rows), np.int64)
            return VectorBlock(map.rows[b], vals, 1, slots=device.put(rows), count=count)

        made = self.store(session.over(map.tasks, work, source.map.n * session.kernels.costs.row))
        made.nvals = sum(len(rows) for rows, _ in placed)
        return made

    def _placed(self, step: Step) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each block the rows that an index names, and the source's slot for each; of two for one row the last."""
        map = step.into.map
        rows, last = distinct(map.places(self.registers["place"].ids()))
        slots = self.registers[step.sources[0]].map.slots(last)
        cuts = np.searchsorted(rows, map.bounds[1:-1])
        return list(zip(map.by_block(rows), np.split(slots, cuts), strict=True))

    def _gathered(self, step: Step, index: Callable[[Device, int], Any]) -> VectorStore:
        """Row r of block b is the source's entry in slot index(device, b)[r] (-1: none)."""
        source, map, devices, kernel = (
            near_vector(self.session, self.registers[step.sources[0]]),
            step.into.map,
            self.session.devices,
            self.kernel("gather"),
        )

        def work(task: Task) -> VectorBlock:
            b, n, dense = task.block, map.rows[task.block], whole_vector(self.session, source, task.device)
            vals, words, count = self.fresh_bitmap(n, b, source.dtype)
            flags = k.XFULL if dense.words is None else 0
            kernel(n, index(devices[b], b), *self.dense(dense, b), flags, vals, words, count)
            return VectorBlock(n, vals, 1, words, count=count)

        return self.store(self.session.over(map.tasks, work, self.rows(map)))

    def _convert(self, step: Step) -> VectorStore:
        store = self.registers[step.sources[0]]
        work = self._to_list(store) if step.into.form == "list" else self._to_bitmap(store, step.into.iso)
        return self.store(self.session.over(store.map.tasks, work, self.rows(store.map)))

    def _to_list(self, store: VectorStore) -> Callable[[Task], VectorBlock]:
        kernel, devices = self.kernel("compact", Spec(b=store.dtype, idx=store.map.slot_type())), self.session.devices

        def work(task: Task) -> VectorBlock:
            b = task.block
            block, device = store.blocks[b], devices[task.device]
            slots = device.empty(block.n, store.map.slot_type())
            vals, count = (
                block.vals if store.iso else device.empty(block.n, store.dtype.np_type),
                device.zeros(1, np.int64),
            )
            flags = k.XFULL if block.words is None else 0
            kernel(block.n, *self.dense(block, b), flags, slots, vals, count)
            return VectorBlock(block.n, vals, block.stride, slots=slots, count=count)

        return work

    def _to_bitmap(self, store: VectorStore, iso: bool) -> Callable[[Task], VectorBlock]:
        """Blocks as bitmaps of their own: `iso` keeps one value, else every present row gets its own."""
        spec = Spec(b=store.dtype, idx=store.map.slot_type())
        listed = store.form == "list"
        kernel = self.kernel(("list_words" if iso else "scatter") if listed else "gather", spec)
        devices, pool = self.session.devices, self.session.pool

        def work(task: Task) -> VectorBlock:
            b = task.block
            block, device = store.blocks[b], devices[task.device]
            n, nwords = block.n, (block.n + 63) >> 6
            if iso and not listed:  # one value for every row
                count = pool.scalar(b, n, np.int64)
                return VectorBlock(n, block.vals, 0, pool.ones(b, n), count=count)
            if listed:
                words = device.zeros(nwords, np.int64)
                vals = block.vals if iso else device.empty(n, store.dtype.np_type)
                if iso:
                    kernel(block.count, block.slots, block.vals, 0, 0, words)
                else:
                    kernel(*block.listed, vals, words)
                count = block.count if iso else copied(device, block.count)
                return VectorBlock(n, vals, 0 if iso else 1, words, count=count)
            vals, words, count = self.fresh_bitmap(n, b, store.dtype)
            flags = k.XFULL if block.words is None else 0
            kernel(n, pool.rows(b, n), *self.dense(block, b), flags, vals, words, count)
            return VectorBlock(n, vals, 1, words, count=count)

        return work

    def _mask_bits(self, store: VectorStore, structural: bool) -> Callable[[Task], Any]:
        """Bits of the entries of a mask's parent (the true ones unless structural)."""
        kernel = self.kernel(
            "list_words" if store.form == "list" else "mask_words", Spec(b=store.dtype, idx=store.map.slot_type())
        )

        def work(task: Task) -> Any:
            b = task.block
            block, device = store.blocks[b], self.session.devices[task.device]
            nwords = (block.n + 63) >> 6
            if structural and store.form == "full":
                return self.session.pool.ones(b, block.n)
            if store.form == "list":
                words = device.zeros(nwords, np.int64)
                kernel(*block.listed, 0 if structural else k.VALUED, words)
            else:
                words = device.empty(nwords, np.int64)
                kernel(block.n, *self.dense(block, b), k.XFULL if block.words is None else 0, words)
            return words

        return work

    def _mask(self, step: Step) -> list[tuple[Any, int]]:
        store = self.registers[step.sources[0]]
        flags = k.MASKED | (k.COMPLEMENT if step.option.complement else 0)
        if step.option.structural and store.form == "bitmap":
            return [(block.words, flags) for block in store.blocks]
        made = self.session.over(store.map.tasks, self._mask_bits(store, step.option.structural), self.rows(store.map))
        return [(words, flags) for words in made]

    def _scalar(self, step: Step) -> VectorStore:
        """One value for all rows."""
        map = step.into.map
        blocks = [VectorBlock(n, value, 0) for n, value in zip(map.rows, self._values(step), strict=True)]
        return VectorStore(map, step.into.dtype, "full", True, blocks)

    def _borrow(self, step: Step) -> VectorStore:
        """One value for the rows of a list."""
        mask = self.registers[step.sources[0]]
        pairs = zip(mask.blocks, self._values(step), strict=True)
        blocks = [VectorBlock(m.n, value, 0, None, m.slots, m.count) for m, value in pairs]
        return VectorStore(mask.map, step.into.dtype, "list", True, blocks, mask.nvals)

    def _values(self, step: Step) -> list[Any]:
        """A scalar on each device; one that waits on the first (Scalar.waits) is copied, never read."""
        map, dtype, given, session = step.into.map, step.into.dtype, step.option, self.session
        value, held = self.registers["value"], None
        if isinstance(value, Deferred):
            held = value.array
        elif isinstance(value, Scalar):
            held = value._store[1] if value.waits and dtype is given else None
            value = None if held is not None else value.value
        if held is None:
            value = value if dtype is given else cast(value, given, dtype)
            return [session.pool.scalar(b, value, dtype.np_type) for b in range(map.p)]
        for b in range(map.p):
            session.account(b, held.nbytes if b != session.at else 0)
        here = [b == session.at or not session.apart for b in range(map.p)]
        return [held if lies else copied(session.devices[b], held) for b, lies in enumerate(here)]

    def _spread(self, step: Step) -> VectorStore:
        return self.registers[step.sources[0]]

    def _place_scalar(self, step: Step) -> VectorStore:
        value, map = self.registers[step.sources[0]], step.into.map
        (lists, total), blocks = self.named(map), []
        for block, (slots, count) in zip(value.blocks, lists, strict=True):
            blocks.append(VectorBlock(block.n, block.vals, 0, slots=slots, count=count))
        return VectorStore(map, value.dtype, "list", True, blocks, total)

    def named(self, map: RowMap) -> tuple[list[tuple[Any, Any]], int]:
        """For each block the rows that an index names, each once, and their number on the device; the number of all."""
        devices, pool, lists = self.session.devices, self.session.pool, []
        rows, _ = distinct(map.places(self.registers["place"].ids()))
        for b, mine in enumerate(map.by_block(rows)):
            slots = devices[b].full(1, mine[0], mine.dtype) if len(mine) == 1 else devices[b].put(mine)
            lists.append((slots, pool.scalar(b, len(mine), np.int64)))
        return lists, len(rows)

    def _region(self, step: Step) -> list[tuple[Any, int]]:
        """Bits of the rows that an index names."""
        map, session = step.into.map, self.session
        rows, _ = distinct(map.places(self.registers["place"].ids()))
        local = map.by_block(rows)
        kernel = self.kernel("list_words", Spec(b=session.int64, idx=map.slot_type()))

        def work(task: Task) -> Any:
            b, device, unused = task.block, session.devices[task.device], session.placeholders(task.device)
            words = device.zeros((map.rows[b] + 63) >> 6, np.int64)
            mine = local[b]
            if len(mine):
                kernel(session.pool.scalar(b, len(mine), np.int64), device.put(mine), unused.words, 0, 0, words)
            return words

        made = session.over(map.tasks, work, len(rows) * session.kernels.costs.row)
        return [(words, k.REGION) for words in made]
