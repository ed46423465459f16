"""Objects whose rows go to other owners. A map of rows may have a successor (`succeed`): whatever lies on the old one
moves to it at its next use in a statement, vectors and matrices alike, so that nothing waits for what nobody asks for.
Vectors that a loop left on the first of several devices (`loop/single_device.py`) move likewise.

What differs from Lux (Jia and others, VLDB 2017, section 5), which repartitions at once, between two iterations: here
objects follow one by one. `repartitioning.py` says when and where to.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..distribute.blocks import MatrixStore, VectorBlock, VectorStore
from ..distribute.needs import Transfer
from ..distribute.rowmap import WORD, RowMap, Task
from ..kernels.interface import Spec
from .context import Context
from .matrix.csr import Piece, Rows, joined, near_pieces, of_users, store_of, to_slots
from .plan import Plan, Step, Value
from .run import Run


def succeed(session: Context, old: RowMap, new: RowMap) -> None:
    """Objects on one map go to another one of as many rows, and new objects of this size begin there."""
    old.successor = new
    session.maps.succeed(old, new)
    session.loops.clear()  # they were captured where things lay


def settled(session: Context, store: Any) -> Any:
    """What a handle holds, on the rows that it belongs to now."""
    if isinstance(store, MatrixStore):
        rowmap, colmap = latest(store.rowmap), latest(store.colmap)
        if rowmap is store.rowmap and colmap is store.colmap:
            return store
        if store.successor is None:
            moves = partial(_with_transpose, session, store, rowmap, colmap)
            store.successor = moves() if session.repartitioning is None else session.repartitioning.moved(moves)
        return settled(session, store.successor)  # which may have been made for maps before the latest
    map = latest(store.map)
    return store if map is store.map else moved(session, store, store.form, map)


def latest(map: RowMap) -> RowMap:
    while map.successor is not None:
        map = map.successor
    return map


def moved(session: Any, store: VectorStore, form: str, map: RowMap, iso: bool = True) -> VectorStore:
    """A vector in another form, or on other rows: full ones stay so, others are lists or bitmaps. `iso`: whether a
    bitmap on the same rows may have one value for all."""
    if map is not store.map and map.plain and store.map.plain and session.ranks is None:
        joined = _joined(session, store, map) if store.form == form == "list" and map.p == 1 else None
        return joined or brought(session, [store], form, map)[0]
    key = "moved", store.form, store.iso, store.dtype, store.map, form, map, iso
    plan = session.plans.get(key)  # of which those of a round that is written down are others
    if plan is None:
        plan = session.plans[key] = _moving(store, form, map, iso)
    if not plan.steps:
        return store
    found: VectorStore = Run(session, plan, {"x": store}, "moved").go()
    if form != "full":
        found.nvals = None if session.counts_unknown else store.nvals  # directions are chosen by it
        return found
    return VectorStore(map, store.dtype, "full", False, [VectorBlock(block.n, block.vals, 1) for block in found.blocks])


def handed_out(session: Any, store: VectorStore, map: RowMap) -> VectorStore:
    """A bitmap that nobody else keeps, on the rows of a map: parts of it, if all share its one device's memory."""
    block, devices = store.blocks[0], session.devices
    shared = store.map.p == 1 and all(device.shares_memory for device in devices) and map.plain
    if not shared or store.dtype.np_type.itemsize < 4:  # narrow values are padded to words
        return moved(session, store, "bitmap", map)

    def part(task: Task) -> VectorBlock:
        lo, n = map.first(task.block), map.rows[task.block]
        words = block.words[lo // WORD :][: (n + WORD - 1) // WORD]
        count = devices[task.device].set_bits(words)
        return VectorBlock(n, block.vals[lo : lo + n], 1, words, count=count)

    return VectorStore(map, store.dtype, "bitmap", False, session.over(map.tasks, part, 0.0), store.nvals)


def brought(session: Any, stores: Sequence[VectorStore], form: str | None, map: RowMap) -> list[VectorStore]:
    """Vectors of one map on another one, where `moved` would bring each by itself. `form`: None for their own."""
    if not (map.plain and stores[0].map.plain and session.ranks is None):
        return [moved(session, store, form or store.form, map) for store in stores]
    dense = [moved(session, store, "bitmap", store.map) if store.form == "list" else store for store in stores]
    sliced = _sliced(session, dense, map)
    return [moved(session, one, form or store.form, map) for one, store in zip(sliced, stores, strict=True)]


def _joined(session: Any, store: VectorStore, map: RowMap) -> VectorStore | None:
    """Lists of several devices as one, if the host sees how long they are."""
    devices, old = session.devices, store.map
    seen = [devices[task.device].peek(block.count) for task, block in zip(old.tasks, store.blocks, strict=True)]
    counts = [int(count[0]) for count in seen if count is not None]
    if session.capturing is not None or len(counts) < old.p:
        return None
    ends = np.cumsum(counts).tolist()

    def join(task: Task) -> VectorBlock:
        device, n = devices[task.device], max(ends[-1], 1)
        vals, slots = device.empty(1 if store.iso else n, store.dtype.np_type), device.empty(n, map.slot_type())
        transfers, begin = [], 0
        if store.iso:
            transfers.append(Transfer(old.tasks[0].device, task.device, store.blocks[0].vals[:1], vals))
        for source, block, end in zip(old.tasks, store.blocks, ends, strict=True):
            slots[begin:end] = block.slots[: end - begin] + old.first(source.block)
            if not store.iso and begin < end:
                transfers.append(Transfer(source.device, task.device, block.vals[: end - begin], vals[begin:end]))
            begin = end
        session.carry(task.device, transfers)
        stride = 0 if store.iso else 1
        return VectorBlock(map.n, vals, stride, slots=slots, count=device.full(1, ends[-1], np.int64))

    blocks = session.over(map.tasks, join, 0.0)
    return VectorStore(map, store.dtype, "list", store.iso, blocks, ends[-1])


def _sliced(session: Any, stores: Sequence[VectorStore], map: RowMap) -> list[VectorStore]:
    """Full vectors and bitmaps of one map on other rows, where blocks of both maps begin with whole words: parts of the
    old ones, one after the other."""
    old, devices = stores[0].map, session.devices

    def parts(task: Task) -> list[VectorBlock]:
        device, lo, n = devices[task.device], map.first(task.block), map.rows[task.block]
        transfers, blocks = [], []
        for store in stores:
            vals = device.empty(1 if store.iso else n, store.dtype.np_type)
            words = None if store.form == "full" else device.empty((n + WORD - 1) // WORD, np.int64)
            if store.iso:
                transfers.append(Transfer(old.tasks[0].device, task.device, store.blocks[0].vals[:1], vals))
            for source, block in zip(old.tasks, store.blocks, strict=True):
                first = old.first(source.block)
                begin, end = max(lo, first), min(lo + n, first + block.n)
                pairs = []
                if begin < end and not store.iso:
                    pairs.append((block.vals[begin - first : end - first], vals[begin - lo : end - lo]))
                if begin < end and words is not None:
                    cut, into = ((begin - at) // WORD for at in (first, lo))
                    many = (end - begin + WORD - 1) // WORD
                    pairs.append((block.words[cut : cut + many], words[into : into + many]))
                transfers += [Transfer(source.device, task.device, *pair) for pair in pairs]
            blocks.append(VectorBlock(n, vals, 0 if store.iso else 1, words))
        session.carry(task.device, transfers)
        for block in blocks:
            block.count = None if block.words is None else device.set_bits(block.words)
        return blocks

    made = session.over(map.tasks, parts, len(stores) * map.n * session.kernels.costs.row / map.p)
    return [
        VectorStore(map, store.dtype, store.form, store.iso, list(blocks), store.nvals)
        for store, blocks in zip(stores, zip(*made, strict=True), strict=True)
    ]


def _moving(store: VectorStore, form: str, map: RowMap, may: bool) -> Plan:
    steps, iso = [], store.iso and map is store.map
    if store.form == "list" and (form != "list" or map is not store.map) or store.iso and form == "bitmap" and not may:
        steps.append(_step("convert", store, "bitmap", store.iso and may, store.map))
    if map is not store.map:
        steps.append(_step("remap", store, "bitmap", False, map))
    if form == "list" and (steps or store.form != "list"):
        steps.append(_step("convert", store, "list", iso, map))
    return Plan((), (), tuple(steps))


def _step(kind: str, store: VectorStore, form: str, iso: bool, map: RowMap) -> Step:
    return Step(kind, Value("x", form, store.dtype, iso, map), ("x",), Spec(b=store.dtype), f"x, a {form}")


def _with_transpose(session: Any, store: MatrixStore, rowmap: RowMap, colmap: RowMap) -> MatrixStore:
    made = _moved_rows(session, store, rowmap, colmap)
    made.symmetric, made.diagonal, made.hollow = store.symmetric, store.diagonal, store.hollow
    pairs = [(store, made)]
    if store.transposed is not None:
        turned = store.transposed.successor = _moved_rows(session, store.transposed, colmap, rowmap)
        made.transposed, turned.transposed, turned.symmetric = turned, made, store.transposed.symmetric
        pairs.append((store.transposed, turned))
    for before, after in pairs:
        if before.replica is not None:
            after.replica, before.replica = before.replica, None
            session.replicas.keep(after)
    return made


def _moved_rows(session: Any, store: MatrixStore, rowmap: RowMap, colmap: RowMap) -> MatrixStore:
    """A matrix on other maps; where rows are others, both maps have them in the order of ids."""
    old, devices = store.rowmap, session.devices

    def before(task: Task) -> np.ndarray:
        """Entries of a block before each row that begins a new one."""
        rows = np.clip(rowmap.bounds - old.first(task.block), 0, old.rows[task.block])
        device = devices[task.device]
        found: np.ndarray = device.get(store.blocks[task.block].indptr[device.put(rows)])
        return found

    entries = session.allgather(old.tasks, session.over(old.tasks, before, 0.0), "entries of rows that move")

    def pieces(task: Task) -> list[Piece]:
        lo, hi, found = rowmap.first(task.block), rowmap.first(task.block + 1), []
        for source, n in zip(old.tasks, old.rows, strict=True):
            first = old.first(source.block)
            rows = max(lo - first, 0), min(hi - first, n)
            if rows[0] < rows[1]:
                cut = entries[source.block][task.block : task.block + 2].tolist()
                found.append(Piece(source.device, Rows(*store.blocks[source.block].csr), *rows, *cut))
        return found

    wanted = near_pieces(session, store.iso, rowmap.tasks, [pieces(task) for task in rowmap.tasks])

    def part(task: Task) -> Rows:
        device = devices[task.device]
        found = joined(session, store, task.device, wanted[task.block])
        if store.iso and not wanted[task.block]:  # all blocks have the one value
            device.copy(found.vals, store.blocks[min(task.block, old.p - 1)].vals[:1])
        return found if colmap is store.colmap else to_slots(device, of_users(device, found, store.colmap), colmap)

    seconds = store.nvals / old.p * session.kernels.costs.pull_edge
    return store_of(session, rowmap, colmap, store.dtype, store.iso, session.over(rowmap.tasks, part, seconds))
