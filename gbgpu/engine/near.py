"""What lies with other ranks, brought here before a step whose tasks read it. All ranks call these alike; in a session
of one process they have nothing to do."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..device.remote import AWAY, local_results
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from ..distribute.halo import Piece
from ..distribute.needs import Bins, Message, messages
from ..distribute.rowmap import RowMap, Task
from .context import Context


def _brought(
    session: Context, tasks: Any, given: Callable[[Task], tuple], layout: Callable[[Task], Sequence[tuple]], what: str
) -> dict[int, list[Any]]:
    """The buffers given(task) of other ranks' tasks by block, in the memory of the first device here; each as long, and
    of such a type, as layout(task) says."""
    ranks, home = session.ranks, session.at
    assert ranks is not None
    sent: list[tuple] = []
    coming: list[tuple] = []
    shapes = {task.block: layout(task) for task in tasks}
    away = [task for task in tasks if not ranks.here(task.device)]
    for task in tasks:
        if ranks.here(task.device):
            buffers = [buffer[:n] for buffer, (n, _) in zip(given(task), shapes[task.block], strict=True)]
            others = (rank for rank in range(ranks.size) if rank != ranks.rank)
            sent += [(task.device, rank, buffer) for rank in others for buffer in buffers]
    for task in away:
        coming += [(ranks.rank_of(task.device), home, n, dtype) for n, dtype in shapes[task.block]]
    came = iter(ranks.carried(session.devices, sent, coming, what))
    return {task.block: [next(came) for _ in shapes[task.block]] for task in away}


def near_vector(session: Context, store: VectorStore) -> VectorStore:
    """A full or bitmap vector whose blocks all are in reach."""
    alone = store.iso and store.form == "full" and store.map.p > 1  # every device has the one value
    if session.ranks is None or alone:
        return store
    full, value, rows = store.form == "full", store.dtype.np_type, store.map.rows

    def layout(task: Task) -> list[tuple]:
        n = rows[task.block]
        vals = min(n, 1) if store.iso else n, value
        return [vals] if full else [vals, ((n + 63) >> 6, np.int64)]

    def given(task: Task) -> tuple:
        block = store.blocks[task.block]
        return (block.vals, block.words)[: 1 if full else 2]

    blocks, stride = list(store.blocks), 0 if store.iso else 1
    for b, arrays in _brought(session, store.map.tasks, given, layout, "a vector").items():
        blocks[b] = VectorBlock(rows[b], arrays[0], stride, *arrays[1:])
    return VectorStore(store.map, store.dtype, store.form, store.iso, blocks, store.nvals)


def near_matrix(session: Context, store: MatrixStore) -> MatrixStore:
    """A matrix whose blocks all are in reach."""
    if session.ranks is None:
        return store
    rows, lengths, value = store.rowmap.rows, store.lengths, store.dtype.np_type

    def layout(task: Task) -> list[tuple]:
        entries = lengths[task.block]
        return [(rows[task.block] + 1, store.ptr), (entries, store.idx), (1 if store.iso else entries, value)]

    def given(task: Task) -> tuple:
        block = store.blocks[task.block]
        return block.indptr, block.cols, block.vals

    blocks, stride = list(store.blocks), 0 if store.iso else 1
    for b, arrays in _brought(session, store.rowmap.tasks, given, layout, "a matrix").items():
        indptr, cols, vals = arrays
        blocks[b] = MatrixBlock(rows[b], indptr, cols, vals, stride, lengths[b], store.empty_rows)
    return MatrixStore(store.numbers, blocks)


def _near_messages(session: Context, bins: list[Bins], map: RowMap, iso: bool) -> list[list[Message]]:
    """For each block what devices of other ranks have for its owner, if that is here."""
    found: list[list[Message]] = [[] for _ in map.tasks]
    ranks, devices = session.ranks, session.devices
    if ranks is None:
        return found
    mine = local_results(bins)
    away = [task.block for task in map.tasks if not ranks.here(task.device)]
    counts = np.zeros((ranks.most, map.p), np.int64)  # by device and block; of blocks of other ranks
    for row, part in zip(counts, mine, strict=False):
        row[away] = devices[part.device].get(part.counts)[away]
    told = ranks.numbers(counts.ravel().tolist(), "how much a push reached")
    if not any(count for numbers in told for count in numbers):
        return found
    sent: list[tuple] = []
    coming: list[tuple] = []
    for part, reached in zip(mine, counts.tolist(), strict=False):
        for task, count in zip(map.tasks, reached, strict=True):
            if count:
                lo = map.first_slot(task.block)
                for buffer in (part.slots,) if iso else (part.slots, part.vals):
                    sent.append((part.device, ranks.rank_of(task.device), buffer[lo : lo + count]))
    for rank, numbers in enumerate(told):
        for at, count in enumerate(numbers):
            d = map.tasks[at % map.p].device
            if count and ranks.here(d):
                for buffer in (bins[d].slots,) if iso else (bins[d].slots, bins[d].vals):
                    coming.append((rank, d, count, buffer.dtype))
    came = iter(ranks.carried(devices, sent, coming, "what a push reached"))
    for _, d, n, _ in coming[:: 1 if iso else 2]:
        slots, vals = next(came), bins[d].vals if iso else next(came)
        session.account(d, slots.nbytes + (0 if iso else vals.nbytes))
        found[d].append(Message(slots, vals, devices[d].full(1, n, np.int64)))  # block d is device d's
    return found


def exchanged(session: Context, bins: list[Bins], map: RowMap, iso: bool, seconds: float) -> list[Any]:
    """For each block, the messages for its owner from all devices, and the one value of all if they are iso."""
    others = _near_messages(session, bins, map, iso)

    def work(task: Task) -> Any:
        found, transfers = messages(bins, map, session.devices, task.block, iso, session.brings)
        session.carry(task.device, transfers)
        return found + others[task.block], bins[task.device].vals

    return session.over(map.tasks, work, seconds)


def near_values(
    session: Context, map: RowMap, sent: list[Any], pieces: list[list[Piece]], dtype: Any
) -> list[list[Any]]:
    """The values of the pieces of each block: parts of what its owners have packed."""
    ranks, devices = session.ranks, session.devices
    found = [
        [None if sent[owner] is AWAY else sent[owner][begin : begin + n] for owner, begin, _, n in wanted]
        for wanted in pieces
    ]
    if ranks is None:
        return found
    leaving, coming, places = [], [], []
    for task in map.tasks:
        b, d = task.block, task.device
        for i, (piece, vals) in enumerate(zip(pieces[b], found[b], strict=True)):
            if vals is not None and not ranks.here(d):
                leaving.append((piece.owner, ranks.rank_of(d), vals))
            elif vals is None and ranks.here(d):
                coming.append((ranks.rank_of(piece.owner), d, piece.length, dtype))
                places.append((b, i))
    for (b, i), vals in zip(places, ranks.carried(devices, leaving, coming, "values of a vector"), strict=True):
        found[b][i] = vals
    return found


def near_scalars(session: Context, tasks: Any, parts: list[tuple[Any, Any]], dtype: Any) -> list[tuple[Any, Any]]:
    """Reduced blocks (two words: value and presence; and the value as an array), of all ranks on each of them."""
    if session.ranks is None:
        return parts
    came = _brought(session, tasks, lambda task: parts[task.block][:1], lambda task: [(2, np.int64)], "a reduction")
    return [(came[b][0], came[b][0].view(dtype)[:1]) if b in came else part for b, part in enumerate(parts)]
