"""One or two vectors, row by row: union, intersection, apply, select, filter, reduce."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...distribute.blocks import VectorBlock, VectorStore
from ...distribute.rowmap import RowMap, Task
from ...kernels import interface as k
from ...kernels.interface import Spec
from ..matrix.csr import entries_of
from ..near import near_scalars
from ..plan import Step
from .steps import FORMS, Steps, copied

SUMS = 64  # reductions of a matrix that are remembered: each anonymous operator makes one of its own


class Elementwise(Steps):
    """Steps that look at one row at a time."""

    __slots__ = ()

    def _ewise(self, step: Step) -> VectorStore:
        x, given = self._together(step)
        kernel, dtype, full = self.kernel("ewise"), step.into.dtype, step.into.form == "full"

        def work(task: Task) -> VectorBlock:
            b = task.block
            vals, words, count = self.fresh_bitmap(x.blocks[b].n, b, dtype)
            kernel(*given(b, k.OUTFULL if full else 0), vals, words, count)
            return VectorBlock(x.blocks[b].n, vals, 1, None if full else words, count=count)

        return self.store(self.session.over(x.map.tasks, work, self.rows(x.map)))

    def _together(self, step: Step) -> tuple[VectorStore, Callable[[int, int], tuple]]:
        """The first of two or three vectors, and what kernels are given of a block of them, with more flags."""
        x, y, *last = (self.registers[name] for name in step.sources)
        defaults = self.registers["defaults"] if step.parameters else (0, 0)

        def given(b: int, flags: int) -> tuple:
            one, two, unused = x.blocks[b], y.blocks[b], self.session.placeholders(b)
            three = last[0].blocks[b] if last else None
            flags |= (
                (k.AFULL if one.words is None else 0)
                | (k.BFULL if two.words is None else 0)
                | (k.CFULL if three and three.words is None else 0)
            )
            last_one = self.dense(three, b) if three else (unused.words, 0, unused.words)
            operands = *self.dense(one, b), *self.dense(two, b), *last_one
            return one.n, *operands, flags, *x.map.row_ids(self.session.devices[b], b), *defaults

        return x, given

    def _ewise_list(self, step: Step) -> VectorStore:
        x, y = (self.registers[name] for name in step.sources)
        kernel, dtype = self.kernel("ewise_list"), step.into.dtype

        def work(task: Task) -> VectorBlock:
            b = task.block
            one, two = x.blocks[b], y.blocks[b]
            slots, vals, count = self.fresh_list(len(one.slots), b, dtype, one.slots)
            flags = k.BFULL if two.words is None else 0
            kernel(
                *one.listed, *self.dense(two, b), flags, *x.map.row_ids(self.session.devices[b], b), slots, vals, count
            )
            return VectorBlock(one.n, vals, 1, slots=slots, count=count)

        return self.store(self.session.over(x.map.tasks, work, self.entries(x)))

    def _apply(self, step: Step) -> VectorStore:
        x, dtype, iso = self.registers[step.sources[0]], step.into.dtype, step.into.iso
        thunk = self.registers["thunk"] if step.parameters else 0
        kernel, listed, devices = self.kernel("apply"), x.form == "list", self.session.devices

        def work(task: Task) -> VectorBlock:
            b = task.block
            block, device, unused = x.blocks[b], devices[task.device], self.session.placeholders(task.device)
            n = 1 if iso else len(block.slots) if listed else block.n
            vals = device.empty(n, dtype.np_type)
            flags = k.XLIST if listed and not iso else 0
            slots = block.slots if listed else unused.slots(x.map.slot_type())
            given = block.count if flags else unused.words, slots, block.vals, block.stride
            kernel(n, *given, thunk, flags, *x.map.row_ids(device, b), vals)
            words, count = block.words, block.count
            if not (iso or listed):
                words, count = (None if part is None else copied(device, part) for part in (words, count))
            return VectorBlock(block.n, vals, 0 if iso else 1, words, block.slots, count)

        return self.store(self.session.over(x.map.tasks, work, 0.0 if iso else self.entries(x)))

    def _select(self, step: Step) -> VectorStore:
        x, thunk, devices = self.registers[step.sources[0]], self.registers["thunk"], self.session.devices
        if x.form == "list":
            kernel = self.kernel("select_list")
            return self._filtered(x, lambda b, one: (*one.listed, *x.map.row_ids(devices[b], b), thunk), kernel)
        kernel = self.kernel("select")

        def work(task: Task) -> VectorBlock:
            b = task.block
            block, device = x.blocks[b], devices[task.device]
            words, count = device.empty((block.n + 63) >> 6, np.int64), device.zeros(1, np.int64)
            flags = k.XFULL if block.words is None else 0
            kernel(block.n, *self.dense(block, b), flags, *x.map.row_ids(device, b), thunk, words, count)
            vals = block.vals if x.iso else copied(device, block.vals)
            return VectorBlock(block.n, vals, block.stride, words, count=count)

        return self.store(self.session.over(x.map.tasks, work, self.rows(x.map)))

    def _filter(self, step: Step) -> VectorStore:
        x, kernel, name = self.registers[step.sources[0]], self.kernel("mask_list"), step.sources[1]
        return self._filtered(x, lambda b, one: (*one.listed, *self.bits(name, b)), kernel)

    def _filtered(self, x: VectorStore, arguments: Callable[[int, VectorBlock], tuple], kernel: Any) -> VectorStore:
        """The entries of a list that a kernel keeps. (Its values are compacted too, the one of an iso list into place
        0.)"""

        def work(task: Task) -> VectorBlock:
            b = task.block
            block = x.blocks[b]
            slots, vals, count = self.fresh_list(len(block.slots), b, x.dtype, block.slots)
            kernel(*arguments(b, block), slots, vals, count)
            return VectorBlock(block.n, block.vals if x.iso else vals, block.stride, slots=slots, count=count)

        return self.store(self.session.over(x.map.tasks, work, self.entries(x)))

    def _first(self, x: VectorStore) -> VectorStore:
        """The entry of the lowest index alone, on the first device; nothing, if there is none."""
        session = self.session

        def least(task: Task) -> Any:
            rows, vals = entries_of(session.devices[task.device], x.blocks[task.block])
            return session.devices[task.device].get(vals[: min(len(rows), 1)])

        heads = session.allgather(x.map.tasks, session.over(x.map.tasks, least, self.entries(x)), "the first entry")
        found = next((head for head in heads if len(head)), None)
        map = RowMap(np.array([0, found is not None]))
        value = session.devices[0].put(np.zeros(1, x.dtype.np_type) if found is None else found)
        return VectorStore(map, x.dtype, "full", False, [VectorBlock(map.n, value, 1)])

    def _cached(self, step: Step) -> tuple[Any, Any]:
        """What a reduction of this matrix gave, in a buffer of its own."""
        both, vals = self.registers["sums"][step.spec.op, step.option.counted]
        fresh = copied(self.session.home, both)
        return fresh, fresh.view(vals.dtype)[:1]

    def _reduce(self, step: Step) -> tuple[Any, Any]:
        """Each block to one value, then those on the first device to one: two words of one buffer, the value and
        whether there is one, and the value as an array."""
        found, sums = self._reduced(step), self.registers.get("sums")
        if sums is None:
            return found
        if len(sums) >= SUMS:
            sums.clear()
        sums[step.spec.op, step.option.counted] = found
        return self._cached(step)

    def _reduced(self, step: Step) -> tuple[Any, Any]:
        x, session, counted = self.registers[step.sources[0]], self.session, step.option.counted
        monoid = step.spec.op
        if session.deterministic and monoid.is_any:
            x = self._first(x)
        kernel = self.kernel("reduce")
        form = FORMS[x.form]

        def one(task: Task, vals: Any, words: Any) -> None:
            b = task.block
            block, device, unused = x.blocks[b], session.devices[task.device], session.placeholders(task.device)
            given, stride = (device.full(1, 1, x.dtype.np_type), 0) if counted else (block.vals, block.stride)
            room, count = (len(block.slots), block.count) if x.form == "list" else (block.n, unused.words)
            kernel(room, count, given, stride, self.words(block.words, b), form, vals, words)

        return self._whole(x, one, self.entries(x), monoid)

    def _fold(self, step: Step) -> tuple[Any, Any]:
        """What an elementwise expression gives, to one value; it is not kept."""
        x, given = self._together(step)
        kernel = self.kernel("fold")
        return self._whole(x, lambda task, *out: kernel(*given(task.block, 0), *out), self.rows(x.map), step.spec.fold)

    def _whole(
        self, x: VectorStore, one: Callable[[Task, Any, Any], None], seconds: float, monoid: Any
    ) -> tuple[Any, Any]:
        """What blocks are reduced to, as one. `one`: brings the value of a block, and whether there is one."""
        session, p, tasks, dtype = self.session, x.map.p, x.map.tasks, monoid.dtype.np_type
        near = p > 1 and session.ranks is None and session.capturing is None and not session.brings
        if near:  # all write where the first device reads, which has its own part to do while others ask for the place
            pairs = session.once(("pairs", p, dtype), partial(_pairs, session.home, p, dtype))

            def there(task: Task) -> None:
                session.devices[task.device].reach(pairs.words)
                one(task, *pairs.places[task.block][1:])

            session.over(tasks[::-1], there, seconds)
        else:

            def work(task: Task) -> tuple[Any, Any]:
                both, vals, words = _single(session.devices[task.device], dtype)
                one(task, vals, words)
                return both, vals

            parts = near_scalars(session, tasks, session.over(tasks, work, seconds), dtype)
            if p == 1:
                first: tuple[Any, Any] = parts[0]
                return first

        def last(task: Task) -> tuple[Any, Any]:
            d = task.device
            device, unused = session.devices[d], session.placeholders(d)
            vals, stride, words, places = pairs if near else _pairs(device, p, dtype)
            if not near:
                with device.at_once():
                    for (place, *_), (part, _) in zip(places, parts, strict=True):
                        device.copy(place, part)
            session.account(d, (p - 1) * 2 * words.itemsize)
            both, *out = _single(device, dtype)
            self.kernel("reduce", Spec(op=monoid, b=monoid.dtype))(p, unused.words, vals, stride, words, k.PAIRED, *out)
            return both, out[0]

        return session.over(tasks[session.at :][:1], last, 0.0)[0]


class Pairs(NamedTuple):
    """Where there is a value of each block, and whether it has one: the values, so many elements from one to the next,
    words of presence that are two apart, and the two words of each block as `_single` gives them."""

    vals: Any
    stride: int
    words: Any
    places: list[tuple[Any, Any, Any]]


def _pairs(device: Any, p: int, dtype: Any) -> Pairs:
    words = device.empty(2 * p, np.int64)
    places = [(place, *device.halves(place, dtype)) for place in (words[2 * b : 2 * b + 2] for b in range(p))]
    return Pairs(words.view(dtype), 2 * words.itemsize // np.dtype(dtype).itemsize, words[1:], places)


def _single(device: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Two words: a value, and whether there is one; and each of them."""
    both = device.empty(2, np.int64)
    return both, *device.halves(both, dtype)
