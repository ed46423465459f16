"""Runs the steps of a plan. Knows buffers, blocks and devices; what a step means on one block is a kernel behind the narrow interface."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import trace
from ..distribute import exchange
from ..distribute.blocks import VectorBlock, VectorStore
from ..kernels import interface as k
from ..kernels.interface import Spec
from .plan import Plan, Step


class Run:
    """One statement on its way: `registers` hold vector stores by the names of the plan."""

    __slots__ = ("session", "statement", "plan", "facts", "registers", "step", "stats", "moved")

    def __init__(self, session: Any, statement: Any, plan: Plan, facts: Any, registers: dict[str, Any]):
        self.session, self.statement, self.plan, self.facts, self.registers = session, statement, plan, facts, registers
        self.step: Step = plan.steps[0]
        self.stats: list[Any] | None = None
        self.moved: list[int] | None = None

    def go(self) -> Any:
        """Carry out all steps; returns the output's new store, or None if it was changed in place."""
        result = None
        for step in self.plan.steps:
            self.step = step
            result = self.registers[step.into.name] = getattr(self, "_" + step.kind)(step)
        return result

    # -- helpers

    def kernel(self, kind: str, spec: Spec | None = None) -> Any:
        """The kernel of the step in hand; the plan remembers it."""
        key = kind if spec is None else (kind, spec)
        found = self.step.kernels.get(key)
        if found is None:
            found = self.step.kernels[key] = self.session.kernels.get(kind, self.step.spec if spec is None else spec)
        return found

    def each(self, map: Any, work: Callable[[int], Any], seconds: float | None = None) -> list[Any]:
        """work(b) for every block of `map`, on the devices' threads where that pays."""
        seconds = map.n * self.session.kernels.costs.row / map.p if seconds is None else seconds
        if trace.listeners:
            return self._traced(map, work, seconds)
        return self.session.each(map.p, work, seconds)

    def _traced(self, map: Any, work: Callable[[int], Any], seconds: float) -> list[Any]:
        devices, step = self.session.devices, self.step
        self.stats = [devices[b].zeros(4, np.int64) for b in range(map.p)]
        self.moved = [0] * map.p
        spans = [(0.0, 0.0)] * map.p

        def timed(b: int) -> Any:
            start = trace.now()
            result = work(b)
            spans[b] = start, trace.now()
            return result

        before = trace.counters.launches, trace.counters.host_reads
        results = self.session.each(map.p, timed, seconds)
        launches, reads = trace.counters.launches - before[0], trace.counters.host_reads - before[1]
        ends = step.kind in ("move", "write", "write_list")
        for b in range(map.p):
            trace.emit(trace.Record(
                trace.counters.statements, repr(self.statement), step.kind, devices[b].name, self.plan.direction, step.into.form, self.moved[b],
                reads if b == 0 else 0, launches if b == 0 else 0, *spans[b], self.stats[b], results[b].count if ends and step.into.form != "full" else None, devices[b].get,
            ))
        self.stats = self.moved = None
        return results

    def _account(self, b: int, bytes_moved: int) -> None:
        trace.counters.exchanged += bytes_moved
        if self.moved is not None:
            self.moved[b] += bytes_moved

    def _flag_stats(self, b: int) -> tuple[int, Any]:
        return (0, self.session.nil(b).stats) if self.stats is None else (k.TRACE, self.stats[b])

    def bits(self, name: str, b: int, bit: int = k.MASKED) -> tuple[Any, int]:
        """(words, flags) of a mask register for block b."""
        if not name:
            return self.session.nil(b).words, 0
        words, flags = self.registers[name][b]
        return words, flags if bit == k.MASKED else bit

    def _store(self, step: Step, blocks: list[VectorBlock]) -> VectorStore:
        into = step.into
        return VectorStore(into.map, into.dtype, into.form, into.iso, blocks)

    def _dense(self, n: int, b: int, dtype: Any, iso: bool = False) -> tuple[Any, Any, Any]:
        """Fresh (vals, words, count) of a bitmap block."""
        device = self.session.devices[b]
        return device.empty(1 if iso else n, dtype.np_type), device.empty((n + 63) >> 6, np.int64), device.zeros(1, np.int64)

    # -- operands

    def _remap(self, step: Step) -> VectorStore:
        return self._gathered(step, np.arange(step.into.map.n))

    def _extract(self, step: Step) -> VectorStore:
        return self._gathered(step, self.statement.expr.option)

    def _place(self, step: Step) -> VectorStore:
        target = np.full(step.into.map.n, -1)
        target[self.statement.index] = np.arange(len(self.statement.index))
        return self._gathered(step, target)

    def _gathered(self, step: Step, ids: np.ndarray) -> VectorStore:
        """Row r of the result is the source's entry ids[r] (-1: none)."""
        source, map, devices, kernel = self.registers[step.sources[0]], step.into.map, self.session.devices, self.kernel("gather")
        slots = np.where(ids < 0, -1, source.map.slots(np.maximum(ids, 0))) if source.map.n else np.full(map.n, -1)

        def work(b: int) -> VectorBlock:
            dense, moved = self._whole(source, b)
            self._account(b, moved)
            n = map.rows[b]
            vals, words, count = self._dense(n, b, source.dtype)
            index = devices[b].put(slots[map.bounds[b] : map.bounds[b + 1]])
            flags = k.XFULL if dense.words is None else 0
            kernel(n, index, dense.vals, dense.stride, self._words(dense.words, b), flags, vals, words, count)
            return VectorBlock(n, vals, 1, words, count=count)

        return self._store(step, self.each(map, work))

    def _whole(self, source: VectorStore, b: int) -> tuple[exchange.Dense, int]:
        """The whole vector on device b; a vector that lives whole on one device is copied from there."""
        if source.map.p > 1 or b == 0:
            return exchange.all_gather(source, self.session.devices, b)
        block, device = source.blocks[0], self.session.devices[b]
        moved = [None if part is None else device.empty(len(part), part.dtype) for part in (block.vals, block.words)]
        for target, part in zip(moved, (block.vals, block.words), strict=True):
            if target is not None:
                device.copy(target, part)
        return exchange.Dense(moved[0], block.stride, moved[1]), sum(part.nbytes for part in moved if part is not None)

    def _words(self, words: Any, b: int) -> Any:
        return self.session.nil(b).words if words is None else words

    def _convert(self, step: Step) -> VectorStore:
        store = self.registers[step.sources[0]]
        work = self._to_list(store) if step.option == "list" else self._to_bitmap(store, store.iso)
        return self._store(step, self.each(store.map, work))

    def _to_list(self, store: VectorStore) -> Callable[[int], VectorBlock]:
        kernel, devices = self.kernel("compact", Spec(b=store.dtype, idx=store.map.slot_type())), self.session.devices

        def work(b: int) -> VectorBlock:
            block, device = store.blocks[b], devices[b]
            slots = device.empty(block.n, store.map.slot_type())
            vals, count = block.vals if store.iso else device.empty(block.n, store.dtype.np_type), device.zeros(1, np.int64)
            flags = k.XFULL if block.words is None else 0
            kernel(block.n, block.vals, block.stride, self._words(block.words, b), flags, slots, vals, count)
            return VectorBlock(block.n, vals, block.stride, slots=slots, count=count)

        return work

    def _to_bitmap(self, store: VectorStore, iso: bool) -> Callable[[int], VectorBlock]:
        """Blocks as bitmaps of their own: `iso` keeps one value, else every present row gets its own."""
        spec = Spec(b=store.dtype, idx=store.map.slot_type())
        listed = store.form == "list"
        kernel = self.kernel(("list_words" if iso else "scatter") if listed else "gather", spec)
        devices = self.session.devices

        def work(b: int) -> VectorBlock:
            block, device = store.blocks[b], devices[b]
            n, nwords = block.n, (block.n + 63) >> 6
            if listed:
                words = device.zeros(nwords, np.int64)
                vals = block.vals if iso else device.empty(n, store.dtype.np_type)
                if iso:
                    kernel(block.count, block.slots, block.vals, 0, 0, words)
                else:
                    kernel(block.count, block.slots, block.vals, block.stride, vals, words)
                return VectorBlock(n, vals, 0 if iso else 1, words, count=block.count)
            vals, words, count = self._dense(n, b, store.dtype)
            flags = k.XFULL if block.words is None else 0
            kernel(n, self.session.rows(b, n), block.vals, block.stride, self._words(block.words, b), flags, vals, words, count)
            return VectorBlock(n, vals, 1, words, count=count)

        return work

    def _mask_bits(self, store: VectorStore, structural: bool) -> Callable[[int], Any]:
        """Bits of the entries of a mask's parent (the true ones unless structural)."""
        if structural and store.form == "bitmap":
            return lambda b: store.blocks[b].words
        kernel = self.kernel("list_words" if store.form == "list" else "mask_words", Spec(b=store.dtype, idx=store.map.slot_type()))

        def work(b: int) -> Any:
            block, device = store.blocks[b], self.session.devices[b]
            nwords = (block.n + 63) >> 6
            if structural and store.form == "full":
                return self.session.ones(b, block.n)
            if store.form == "list":
                words = device.zeros(nwords, np.int64)
                kernel(block.count, block.slots, block.vals, block.stride, 0 if structural else k.VALUED, words)
            else:
                words = device.empty(nwords, np.int64)
                kernel(block.n, block.vals, block.stride, self._words(block.words, b), k.XFULL if block.words is None else 0, words)
            return words

        return work

    def _mask(self, step: Step) -> list[tuple[Any, int]]:
        store = self.registers[step.sources[0]]
        structural, complement = step.option
        flags = k.MASKED | (k.COMPLEMENT if complement else 0)
        bits = self._mask_bits(store, structural)
        if structural and store.form == "bitmap":
            return [(block.words, flags) for block in store.blocks]
        return [(words, flags) for words in self.each(store.map, bits)]

    # -- products

    def _gather(self, step: Step) -> list[exchange.Dense]:
        source = self.registers[step.sources[0]]

        def work(b: int) -> exchange.Dense:
            dense, moved = exchange.all_gather(source, self.session.devices, b)
            self._account(b, moved)
            return dense

        return self.each(source.map, work, source.map.nslots * source.dtype.np_type.itemsize * self.session.kernels.costs.byte)

    def _pull(self, step: Step) -> VectorStore:
        source, matrix, facts, spec = self.registers[step.sources[1]], self.facts.store, self.facts, step.spec
        kernel, mask, session = self.kernel("pull"), step.sources[2], self.session
        full = step.option

        def work(b: int) -> VectorBlock:
            block, nil = matrix.blocks[b], session.nil(b)
            x = source[b] if type(source) is list else source.blocks[b]
            mwords, flags = self.bits(mask, b)
            traced, stats = self._flag_stats(b)
            words = x.words
            if words is None:
                flags, words = flags | k.XFULL, nil.words
            vals, bits, count = self._dense(block.n, b, spec.out, spec.iso)
            starts, bounds = facts.inner.tables(session.devices[b])
            kernel(block.n, block.indptr, block.cols, block.vals, block.stride, x.vals, x.stride, words, mwords, flags | traced, starts, bounds,
                   facts.outer.first(b), block.heavy, vals, bits, count, stats)
            return VectorBlock(block.n, vals, 0 if spec.iso else 1, None if full else bits, count=count)

        return self._store(step, self.each(facts.outer, work, facts.seconds))

    def _push(self, step: Step) -> Any:
        source, matrix, facts, spec = self.registers[step.sources[1]], self.facts.store, self.facts, step.spec
        push, session, outer = self.kernel("push"), self.session, self.facts.outer
        drain = self.kernel("drain", Spec(out=spec.out, idx=spec.idx, iso=spec.iso))
        form = {"list": k.XLIST, "full": k.XFULL, "bitmap": 0}[source.form]

        def work(b: int) -> Any:
            block, x, device, nil = matrix.blocks[b], source.blocks[b], session.devices[b], session.nil(b)
            mwords, flags = self.bits(step.sources[2], b)
            traced, stats = self._flag_stats(b)
            space = session.workspace(b, outer.nslots, spec.op.monoid, spec.iso)
            acc = device.empty(1, spec.out.np_type) if spec.iso else space.vals
            starts, bounds = outer.tables(device)
            listed = source.form == "list"
            push(block.n, x.count if listed else nil.words, x.slots if listed else nil.slots(spec.idx), x.vals, x.stride, self._words(x.words, b),
                 flags | form | traced, block.indptr, block.cols, block.vals, block.stride, starts, bounds, facts.inner.first(b), mwords,
                 outer.first_slot(b), outer.first_slot(b) + outer.rows[b], acc, space.words, space.touched, space.count, stats)
            bins = self._drain(drain, space, acc, spec, b, outer.nslots, starts, outer.p)
            return VectorBlock(outer.n, bins.vals, 0 if spec.iso else 1, slots=bins.slots, count=bins.counts) if outer.p == 1 else bins

        results = self.each(outer, work, facts.seconds)
        return self._store(step, results) if outer.p == 1 else results

    def _drain(self, kernel: Any, space: Any, acc: Any, spec: Spec, b: int, room: int, starts: Any, p: int) -> exchange.Bins:
        """Empty a workspace into lists by owner."""
        device = self.session.devices[b]
        touched = device.peek(space.count)
        if p == 1 and touched is not None:
            room = int(touched[0])
        slots, counts = device.empty(room, spec.idx), device.zeros(p, np.int64)
        vals = acc if spec.iso else device.empty(room, spec.out.np_type)
        kernel(space.count, space.touched, space.vals, space.words, space.start, starts, p, slots, vals, counts)
        device.clear(space.count)
        return exchange.Bins(slots, vals, counts)

    def _exchange(self, step: Step) -> list[list[exchange.Message]]:
        bins, outer = self.registers[step.sources[0]], self.facts.outer

        def work(b: int) -> Any:
            messages, moved = exchange.collect(bins, outer, self.session.devices, b, step.spec.iso)
            self._account(b, moved)
            return messages, bins[b].vals

        return self.each(outer, work, self.facts.seconds / 4)

    def _combine(self, step: Step) -> VectorStore:
        received, spec, session, outer = self.registers[step.sources[0]], step.spec, self.session, self.facts.outer
        kernel, drain = self.kernel("combine"), self.kernel("drain", Spec(out=spec.b, idx=spec.idx, iso=spec.iso))

        def work(b: int) -> VectorBlock:
            messages, own = received[b]
            n, device = outer.rows[b], session.devices[b]
            mwords, flags = self.bits(step.sources[1], b)
            space = session.workspace(b, -(-n // 64) * 64, spec.op, spec.iso)
            for slots, vals, count in messages:
                kernel(count, slots, vals, mwords, flags, space.vals, space.words, space.touched, space.count)
            drained = Spec(out=spec.b, idx=spec.idx, iso=spec.iso)
            bins = self._drain(drain, space, own, drained, b, n, session.whole(b, n), 1)
            return VectorBlock(n, bins.vals if not spec.iso else own, 0 if spec.iso else 1, slots=bins.slots, count=bins.counts)

        return self._store(step, self.each(outer, work, self.facts.seconds / 4))

    # -- elementwise

    def _ewise(self, step: Step) -> VectorStore:
        x, y = (self.registers[name] for name in step.sources)
        kernel, dtype, full = self.kernel("ewise"), step.into.dtype, step.into.form == "full"

        def work(b: int) -> VectorBlock:
            one, two = x.blocks[b], y.blocks[b]
            vals, words, count = self._dense(one.n, b, dtype)
            flags = (k.AFULL if one.words is None else 0) | (k.BFULL if two.words is None else 0) | (k.OUTFULL if full else 0)
            kernel(one.n, one.vals, one.stride, self._words(one.words, b), two.vals, two.stride, self._words(two.words, b), flags, x.map.first(b), vals, words, count)
            return VectorBlock(one.n, vals, 1, None if full else words, count=count)

        return self._store(step, self.each(x.map, work))

    def _ewise_list(self, step: Step) -> VectorStore:
        x, y = (self.registers[name] for name in step.sources)
        kernel, dtype, devices = self.kernel("ewise_list"), step.into.dtype, self.session.devices

        def work(b: int) -> VectorBlock:
            one, two, device = x.blocks[b], y.blocks[b], devices[b]
            room = len(one.slots)
            slots, vals, count = device.empty(room, one.slots.dtype), device.empty(room, dtype.np_type), device.zeros(1, np.int64)
            flags = k.BFULL if two.words is None else 0
            kernel(one.count, one.slots, one.vals, one.stride, two.vals, two.stride, self._words(two.words, b), flags, x.map.first(b), slots, vals, count)
            return VectorBlock(one.n, vals, 1, slots=slots, count=count)

        return self._store(step, self.each(x.map, work, self._entries(x)))

    def _entries(self, store: VectorStore) -> float:
        """Predicted seconds of a pass over the entries."""
        count = self.session.known_count(store)
        return (store.map.n if count is None else count) * self.session.kernels.costs.row / store.map.p

    def _apply(self, step: Step) -> VectorStore:
        x, dtype, iso = self.registers[step.sources[0]], step.into.dtype, step.into.iso
        option = self.statement.expr.option
        thunk = option[1] if step.into.name == "t" and isinstance(option, tuple) else 0
        kernel, listed, devices = self.kernel("apply"), x.form == "list", self.session.devices

        def work(b: int) -> VectorBlock:
            block, device, nil = x.blocks[b], devices[b], self.session.nil(b)
            n = 1 if iso else len(block.slots) if listed else block.n
            vals = device.empty(n, dtype.np_type)
            flags = k.XLIST if listed and not iso else 0
            count = block.count if flags else nil.words
            kernel(n, count, block.slots if listed else nil.slots(x.map.slot_type()), block.vals, block.stride, thunk, flags, x.map.first(b), vals)
            fresh = [None if part is None else _copy(device, part) for part in (block.words, block.slots, block.count)]
            return VectorBlock(block.n, vals, 0 if iso else 1, *fresh)

        return self._store(step, self.each(x.map, work, self._entries(x)))

    def _select(self, step: Step) -> VectorStore:
        x, thunk, devices = self.registers[step.sources[0]], self.statement.expr.option, self.session.devices
        if x.form == "list":
            kernel = self.kernel("select_list")
            return self._filtered(step, x, lambda b, one: (one.count, one.slots, one.vals, one.stride, x.map.first(b), thunk), kernel)
        kernel = self.kernel("select")

        def work(b: int) -> VectorBlock:
            block, device = x.blocks[b], devices[b]
            words, count = device.empty((block.n + 63) >> 6, np.int64), device.zeros(1, np.int64)
            flags = k.XFULL if block.words is None else 0
            kernel(block.n, block.vals, block.stride, self._words(block.words, b), flags, x.map.first(b), thunk, words, count)
            return VectorBlock(block.n, _copy(device, block.vals), block.stride, words, count=count)

        return self._store(step, self.each(x.map, work))

    def _filter(self, step: Step) -> VectorStore:
        x, kernel, name = self.registers[step.sources[0]], self.kernel("mask_list"), step.sources[1]
        return self._filtered(step, x, lambda b, one: (one.count, one.slots, one.vals, one.stride, *self.bits(name, b)), kernel)

    def _filtered(self, step: Step, x: VectorStore, arguments: Callable[[int, VectorBlock], tuple], kernel: Any) -> VectorStore:
        """The entries of a list that a kernel keeps. (Its values are compacted too, the one of an iso list into place 0.)"""
        devices = self.session.devices

        def work(b: int) -> VectorBlock:
            block, device = x.blocks[b], devices[b]
            room = len(block.slots)
            slots, vals, count = device.empty(room, block.slots.dtype), device.empty(room, x.dtype.np_type), device.zeros(1, np.int64)
            kernel(*arguments(b, block), slots, vals, count)
            return VectorBlock(block.n, _copy(device, block.vals) if x.iso else vals, block.stride, slots=slots, count=count)

        return self._store(step, self.each(x.map, work, self._entries(x)))

    def _reduce(self, step: Step) -> VectorStore:
        """Each block to one value, then those on the first device to one."""
        x, monoid, session = self.registers[step.sources[0]], self.statement.expr.op, self.session
        counted = self.statement.expr.option
        kernel = self.kernel("reduce")
        form = {"list": k.XLIST, "full": k.XFULL, "bitmap": 0}[x.form]

        def work(b: int) -> tuple[Any, Any]:
            block, device, nil = x.blocks[b], session.devices[b], session.nil(b)
            vals, words = device.empty(1, monoid.dtype.np_type), device.empty(1, np.int64)
            given, stride = (device.full(1, 1, x.dtype.np_type), 0) if counted else (block.vals, block.stride)
            room = len(block.slots) if x.form == "list" else block.n
            kernel(room, block.count if x.form == "list" else nil.words, given, stride, self._words(block.words, b), form, vals, words)
            return vals, words

        parts = session.each(x.map.p, work, self._entries(x))
        if x.map.p == 1:
            return parts[0]
        device, nil = session.devices[0], session.nil(0)
        vals, present = device.empty(x.map.p, monoid.dtype.np_type), device.empty(x.map.p, np.int64)
        for b, (value, word) in enumerate(parts):
            device.copy(vals[b : b + 1], value)
            device.copy(present[b : b + 1], word)
            trace.counters.exchanged += value.nbytes + word.nbytes if b else 0
        words, out, word = device.zeros(1, np.int64), device.empty(1, monoid.dtype.np_type), device.empty(1, np.int64)
        self.kernel("mask_words", Spec(b=session.int64))(x.map.p, present, 1, nil.words, k.XFULL, words)
        self.kernel("reduce", Spec(op=monoid, b=monoid.dtype))(x.map.p, nil.words, vals, 1, words, 0, out, word)
        return out, word

    # -- scalars to assign

    def _scalar(self, step: Step) -> VectorStore:
        map, dtype, value = step.into.map, step.into.dtype, self.statement.expr.option
        blocks = [VectorBlock(map.rows[b], self.session.devices[b].full(1, value, dtype.np_type), 0) for b in range(map.p)]
        return VectorStore(map, dtype, "full", True, blocks)

    def _spread(self, step: Step) -> VectorStore:
        return self.registers[step.sources[0]]

    def _borrow(self, step: Step) -> VectorStore:
        value, mask = (self.registers[name] for name in step.sources)
        devices = self.session.devices
        blocks = [
            VectorBlock(m.n, v.vals, 0, slots=_copy(devices[b], m.slots), count=_copy(devices[b], m.count))
            for b, (v, m) in enumerate(zip(value.blocks, mask.blocks, strict=True))
        ]
        return VectorStore(value.map, value.dtype, "list", True, blocks, mask.nvals)

    def _place_scalar(self, step: Step) -> VectorStore:
        value, map, devices = self.registers[step.sources[0]], step.into.map, self.session.devices
        ids = self.statement.index if len(self.statement.index) == 1 else np.unique(self.statement.index)
        cuts = np.searchsorted(ids, map.bounds)
        blocks = []
        for b, block in enumerate(value.blocks):
            mine = (ids[cuts[b] : cuts[b + 1]] - map.bounds[b]).astype(map.slot_type())
            blocks.append(VectorBlock(block.n, block.vals, 0, slots=devices[b].put(mine), count=devices[b].full(1, len(mine), np.int64)))
        return VectorStore(map, value.dtype, "list", True, blocks, len(ids))

    def _region(self, step: Step) -> list[tuple[Any, int]]:
        map = step.into.map
        bits = []
        for b in range(map.p):
            rows = np.zeros(((map.rows[b] + 63) >> 6) * 64, bool)
            ids = self.statement.index
            rows[ids[(ids >= map.bounds[b]) & (ids < map.bounds[b + 1])] - map.bounds[b]] = True
            words = np.packbits(rows, bitorder="little").view(np.int64)
            bits.append((self.session.devices[b].put(words), k.REGION))
        return bits

    # -- the output

    def _dup(self, step: Step) -> VectorStore:
        store, devices = self.registers[step.sources[0]], self.session.devices

        def work(b: int) -> VectorBlock:
            block = store.blocks[b]
            parts = (None if part is None else _copy(devices[b], part) for part in (block.words, block.slots, block.count))
            return VectorBlock(block.n, _copy(devices[b], block.vals), block.stride, *parts)

        copy = self._store(step, self.each(store.map, work))
        copy.nvals = store.nvals
        return copy

    def _move(self, step: Step) -> VectorStore:
        store = self.registers[step.sources[0]]
        if trace.listeners:
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
        made = VectorStore(map, w.dtype, "bitmap", False, session.each(map.p, self._to_bitmap(w, False), self._entries(w)))
        if full:
            made = VectorStore(map, w.dtype, "full", False, [VectorBlock(block.n, block.vals, 1) for block in made.blocks])
        return made

    def _write_list(self, step: Step) -> VectorStore:
        t, full = self.registers[step.sources[0]], step.option
        w, kernel = self._target(step, full), self.kernel("write_list")

        def work(b: int) -> VectorBlock:
            block, given, nil = w.blocks[b], t.blocks[b], self.session.nil(b)
            mwords, flags = self.bits(step.sources[1], b)
            count = nil.scratch if full else block.count
            kernel(given.count, given.slots, given.vals, given.stride, mwords, flags | (k.CFULL if full else 0), block.vals, self._words(block.words, b), count)
            return block

        self.each(w.map, work, self._entries(t))
        return self._changed(w)

    def _write(self, step: Step) -> VectorStore:
        full, tfull, replace = step.option
        t = self.registers[step.sources[0]]
        w, kernel = self._target(step, full), self.kernel("write")
        base = (k.CFULL if full else 0) | (k.TFULL if tfull else 0) | (k.REPLACE if replace else 0)

        def work(b: int) -> VectorBlock:
            block, given, device = w.blocks[b], t.blocks[b], self.session.devices[b]
            mwords, flags = self.bits(step.sources[1], b)
            rwords, region = self.bits(step.sources[2], b, k.REGION)
            count = device.zeros(1, np.int64)
            kernel(block.n, block.vals, self._words(block.words, b), given.vals, given.stride, self._words(given.words, b), mwords, rwords,
                   base | flags | region, count)
            block.count = count
            return block

        self.each(w.map, work)
        return self._changed(w)

    def _changed(self, w: VectorStore) -> VectorStore:
        if w.form != "full":
            w.nvals = None
        return w


def _copy(device: Any, buffer: Any) -> Any:
    fresh = device.empty(len(buffer), buffer.dtype)
    device.copy(fresh, buffer)
    return fresh
