"""Push and pull on row blocks, the exchange around them, and the combination of arrivals."""

from typing import Any

import numpy as np

from ..distribute import exchange
from ..distribute.blocks import VectorBlock, VectorStore
from ..kernels import interface as k
from ..kernels.interface import Spec, sums_whole_rows
from .csr import words_of
from .deterministic import by_rows
from .plan import Step
from .steps import Steps
from .streams import is_short, likely_first, streams_of, values_of


def _counts(spec: Spec) -> bool:
    """Whether a product with a full vector counts the entries of rows."""
    return spec.op.monoid.name == "plus" and spec.op.multiply.name == "pair" and spec.out.kind != "b"


def _ends_early(spec: Spec, stride: int) -> bool:
    """Whether one entry is the sum of a row, and which one it is doesn't matter to A's values."""
    return (spec.iso or spec.op.monoid.is_any) and not (stride and k.reads(spec)[0])


class Products(Steps):
    """Steps of `x @ A` and `A @ x`."""

    __slots__ = ()

    def _gather(self, step: Step) -> list[exchange.Dense]:
        source = self.registers[step.sources[0]]

        def work(b: int) -> exchange.Dense:
            dense, moved = exchange.all_gather(source, self.session.devices, b)
            self._account(b, moved)
            return dense

        return self.each(
            source.map, work, source.map.nslots * source.dtype.np_type.itemsize * self.session.kernels.costs.byte
        )

    def _pull(self, step: Step) -> VectorStore:
        source, matrix, facts, spec = self.registers[step.sources[1]], self.facts.store, self.facts, step.spec
        kernel, mask, session = self.kernel("pull"), step.sources[2], self.session
        fixed = by_rows(session, spec.op) and not spec.iso  # the order of sums
        full, streams = step.option, session.kernels.streams and not (mask or fixed) and sums_whole_rows(spec)
        counts = not mask and _counts(spec)

        def work(b: int) -> VectorBlock:
            block, nil = matrix.blocks[b], session.nil(b)
            x = source[b] if type(source) is list else source.blocks[b]
            if counts and x.words is None:
                return self._lengths(session.devices[b], block, spec.out, full)
            mwords, flags = self.bits(mask, b)
            traced, stats = self._flag_stats(b)
            words = x.words
            if words is None:
                flags, words = flags | k.XFULL, nil.words
            vals, bits, count = self._dense(block.n, b, spec.out, spec.iso)
            stored = VectorBlock(block.n, vals, 0 if spec.iso else 1, None if full else bits, count=count)
            if streams:
                reads_a, reads_x = k.reads(spec)
                held = spec.b.np_type.itemsize if reads_x and x.stride else 0
                views = streams_of(session.devices[b], block, facts.inner.nslots, held)
                if views:
                    partial = x.words is not None
                    if partial:
                        session.devices[b].clear(bits)
                    stream = self.kernel("pull_stream", lambda: spec._replace(side="partial" if partial else ""))
                    avals = values_of(session.devices[b], block, views, reads_a)
                    given = views, avals, block.stride, x.vals, x.stride, words
                    stream(block.n, *given, traced, vals, bits, count, stats)
                    return stored
            starts, bounds = facts.inner.tables(session.devices[b])
            cols, options = block.cols, {}
            if session.kernels.streams and fixed:
                options = {"fixed": True}
            elif session.kernels.streams and is_short(block):
                options = {"short": True}
            elif session.kernels.streams and _ends_early(spec, block.stride):
                likely = likely_first(session.devices[b], block, facts.inner.nslots)
                cols, options = (cols, {}) if likely is None else (likely, {"first": True})
            kernel(
                block.n,
                block.indptr,
                cols,
                block.vals,
                block.stride,
                x.vals,
                x.stride,
                words,
                mwords,
                flags | traced,
                starts,
                bounds,
                facts.outer.first(b),
                block.heavy,
                vals,
                bits,
                count,
                stats,
                **options,
            )
            return stored

        return self._store(step, self.each(facts.outer, work, facts.seconds))

    def _lengths(self, device: Any, block: Any, dtype: Any, full: bool) -> VectorBlock:
        """The lengths of rows that have entries."""
        vals, lengths = device.empty(block.n, dtype.np_type), device.xp.diff(block.indptr)
        vals[...] = lengths
        if full:
            return VectorBlock(block.n, vals, 1, count=device.empty(1, np.int64))
        present = lengths > 0
        return VectorBlock(block.n, vals, 1, words_of(device, present), count=present.sum(keepdims=True))

    def _push(self, step: Step) -> Any:
        source, matrix, facts, spec = self.registers[step.sources[1]], self.facts.store, self.facts, step.spec
        push, session, outer = self.kernel("push"), self.session, self.facts.outer
        workspaces = session.workspaces
        drain = self.kernel("drain", lambda: Spec(out=spec.out, idx=spec.idx, iso=spec.iso))
        form = {"list": k.XLIST, "full": k.XFULL, "bitmap": 0}[source.form] | (k.DENSE if facts.dense else 0)

        def work(b: int) -> Any:
            block, x, device, nil = matrix.blocks[b], source.blocks[b], session.devices[b], session.nil(b)
            mwords, flags = self.bits(step.sources[2], b)
            traced, stats = self._flag_stats(b)
            count = device.zeros(1, np.int64)
            if facts.dense:  # a new workspace becomes the result
                words = device.zeros((outer.n + 63) >> 6, np.int64)
                touched = nil.slots(spec.idx) if session.kernels.streams else device.empty(outer.n, spec.idx)
                acc = None if spec.iso else device.full(outer.n, spec.op.monoid.start, spec.out.np_type)
            else:
                space = workspaces[b, outer.nslots, spec.op.monoid, spec.iso]
                words, touched, acc = space.words, space.touched, space.vals
            if spec.iso:
                acc = device.empty(1, spec.out.np_type)
            starts, bounds = outer.tables(device)
            listed = source.form == "list"
            options = {"hubs": False} if session.kernels.streams and not block.heavy.size else {}
            push(
                block.n,
                x.count if listed else nil.words,
                x.slots if listed else nil.slots(spec.idx),
                x.vals,
                x.stride,
                self._words(x.words, b),
                flags | form | traced,
                block.indptr,
                block.cols,
                block.vals,
                block.stride,
                starts,
                bounds,
                facts.inner.first(b),
                mwords,
                outer.first_slot(b),
                outer.first_slot(b) + outer.rows[b],
                acc,
                words,
                touched,
                count,
                stats,
                **options,
            )
            stride = 0 if spec.iso else 1
            if facts.dense:
                return VectorBlock(outer.n, acc, stride, words, count=count)
            bins = self._drain(drain, space, count, acc, spec, b, outer.nslots, starts, outer.p)
            if outer.p > 1:
                return bins
            return VectorBlock(outer.n, bins.vals, stride, slots=bins.slots, count=bins.counts)

        results = self.each(outer, work, facts.seconds)
        return self._store(step, results) if outer.p == 1 else results

    def _drain(
        self, kernel: Any, space: Any, count: Any, acc: Any, spec: Spec, b: int, room: int, starts: Any, p: int
    ) -> exchange.Bins:
        """Empty a workspace into lists by owner."""
        device = self.session.devices[b]
        touched = device.peek(count)
        if p == 1 and touched is not None:
            room = int(touched[0])
        slots, counts = device.empty(room, spec.idx), device.zeros(p, np.int64)
        vals = acc if spec.iso else device.empty(room, spec.out.np_type)
        kernel(count, space.touched, space.vals, space.words, space.start, starts, p, slots, vals, counts)
        return exchange.Bins(slots, vals, counts)

    def _exchange(self, step: Step) -> list[list[exchange.Message]]:
        bins, outer = self.registers[step.sources[0]], self.facts.outer

        def work(b: int) -> Any:
            messages, moved, unknown = exchange.collect(bins, outer, self.session.devices, b, step.spec.iso)
            self._account(b, moved, unknown)
            return messages, bins[b].vals

        return self.each(outer, work, self.facts.seconds / 4)

    def _combine(self, step: Step) -> VectorStore:
        received, spec, session, outer = self.registers[step.sources[0]], step.spec, self.session, self.facts.outer
        drain = self.kernel("drain", lambda: Spec(out=spec.b, idx=spec.idx, iso=spec.iso))
        kernel, workspaces = self.kernel("combine"), session.workspaces

        def work(b: int) -> VectorBlock:
            messages, own = received[b]
            n = outer.rows[b]
            mwords, flags = self.bits(step.sources[1], b)
            space = workspaces[b, -(-n // 64) * 64, spec.op, spec.iso]
            total = session.devices[b].zeros(1, np.int64)
            for slots, vals, count in messages:
                kernel(count, slots, vals, mwords, flags, space.vals, space.words, space.touched, total)
            drained = Spec(out=spec.b, idx=spec.idx, iso=spec.iso)
            bins = self._drain(drain, space, total, own, drained, b, n, session.whole(b, n), 1)
            return VectorBlock(
                n, bins.vals if not spec.iso else own, 0 if spec.iso else 1, slots=bins.slots, count=bins.counts
            )

        return self._store(step, self.each(outer, work, self.facts.seconds / 4))
