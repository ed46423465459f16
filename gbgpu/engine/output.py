"""The write rule: a result becomes the output, or is written into it under mask, accumulator and replace."""

import numpy as np

from ..distribute.blocks import VectorBlock, VectorStore
from ..kernels import interface as k
from ..trace import listeners
from .plan import Step
from .steps import Steps, copied


class Output(Steps):
    """Steps that end a statement."""

    __slots__ = ()

    def _dup(self, step: Step) -> VectorStore:
        store, devices = self.registers[step.sources[0]], self.session.devices

        def work(b: int) -> VectorBlock:
            block = store.blocks[b]
            if store.iso or store.form == "list":
                return block
            vals, words, count = (
                None if part is None else copied(devices[b], part) for part in (block.vals, block.words, block.count)
            )
            return VectorBlock(block.n, vals, block.stride, words, count=count)

        copy = self._store(step, self.each(store.map, work))
        copy.nvals = store.nvals
        return copy

    def _move(self, step: Step) -> VectorStore:
        store = self.registers[step.sources[0]]
        if listeners:
            self.each(store.map, lambda b: store.blocks[b])
        return store

    def _target(self, step: Step, full: bool) -> VectorStore:
        """The output's blocks ready to be written in place: full, or a bitmap, with a value for each row."""
        w, map, session = self.registers.get("w"), step.into.map, self.session
        if w is None:
            blocks = []
            for b in range(map.p):
                n, device = map.rows[b], session.devices[b]
                words, count = device.zeros((n + 63) >> 6, np.int64), device.zeros(1, np.int64)
                blocks.append(VectorBlock(n, device.empty(n, step.into.dtype.np_type), 1, words, count=count))
            return VectorStore(map, step.into.dtype, "bitmap", False, blocks)
        if w.form == ("full" if full else "bitmap") and not w.iso:
            return w
        made = VectorStore(
            map, w.dtype, "bitmap", False, session.each(map.p, self._to_bitmap(w, False), self._entries(w))
        )
        if full:
            made = VectorStore(
                map, w.dtype, "full", False, [VectorBlock(block.n, block.vals, 1) for block in made.blocks]
            )
        return made

    def _write_list(self, step: Step) -> VectorStore:
        t, full = self.registers[step.sources[0]], step.option
        w, kernel = self._target(step, full), self.kernel("write_list")

        def work(b: int) -> VectorBlock:
            block, given, nil = w.blocks[b], t.blocks[b], self.session.nil(b)
            mwords, flags = self.bits(step.sources[1], b)
            count = nil.scratch if full else block.count
            kernel(
                given.count,
                given.slots,
                given.vals,
                given.stride,
                mwords,
                flags | (k.CFULL if full else 0),
                block.vals,
                self._words(block.words, b),
                count,
            )
            return block

        self.each(w.map, work, self._entries(t))
        return self._changed(w)

    def _write(self, step: Step) -> VectorStore:
        full, tfull, replace = step.option
        t = self.registers[step.sources[0]]
        w, kernel = self._target(step, full), self.kernel("write")
        # before any block is written: running out of memory leaves all as it was
        counts = [device.zeros(1, np.int64) for device in self.session.devices[: w.map.p]]
        base = (k.CFULL if full else 0) | (k.TFULL if tfull else 0) | (k.REPLACE if replace else 0)

        def work(b: int) -> VectorBlock:
            block, given, count = w.blocks[b], t.blocks[b], counts[b]
            mwords, flags = self.bits(step.sources[1], b)
            rwords, region = self.bits(step.sources[2], b, k.REGION)
            kernel(
                block.n,
                block.vals,
                self._words(block.words, b),
                given.vals,
                given.stride,
                self._words(given.words, b),
                mwords,
                rwords,
                base | flags | region,
                count,
            )
            block.count = count
            return block

        self.each(w.map, work)
        return self._changed(w)

    def _changed(self, w: VectorStore) -> VectorStore:
        if w.form != "full":
            w.nvals = None
        return w
