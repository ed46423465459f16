"""What lies with other ranks, brought here before a step whose tasks read it. All ranks call these alike; in a session
of one process they have nothing to do."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..device.remote import AWAY
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from ..distribute.halo import Piece
from ..distribute.needs import Bins, Message
from ..distribute.partition import RowMap, Task
from .context import Context


def _came(session: Context, tasks: Any, given: Callable[[Task], tuple], what: str) -> dict[int, tuple]:
    """The buffers given(task) of other ranks' tasks by block, in the memory of the first device here."""
    ranks, devices = session.ranks, session.devices
    assert ranks is not None
    mine = {
        task.block: tuple(ranks.out(devices[task.device], buffer) for buffer in given(task))
        for task in tasks
        if ranks.here(task.device)
    }
    found: dict[int, tuple] = {}
    for rank, theirs in enumerate(ranks.gathered(mine, what)):
        if rank != ranks.rank:
            found |= {b: tuple(ranks.into(session.home, array) for array in arrays) for b, arrays in theirs.items()}
    return found


def near_vector(session: Context, store: VectorStore) -> VectorStore:
    """A full or bitmap vector whose blocks all are in reach."""
    alone = store.iso and store.form == "full" and store.map.p > 1  # every device has the one value
    if session.ranks is None or alone:
        return store

    def given(task: Task) -> tuple:
        block = store.blocks[task.block]
        return block.vals[: block.n if block.stride else 1], block.words

    blocks, stride = list(store.blocks), 0 if store.iso else 1
    for b, (vals, words) in _came(session, store.map.tasks, given, "a vector").items():
        blocks[b] = VectorBlock(store.map.rows[b], vals, stride, words)
    return VectorStore(store.map, store.dtype, store.form, store.iso, blocks, store.nvals)


def near_matrix(session: Context, store: MatrixStore) -> MatrixStore:
    """A matrix whose blocks all are in reach."""
    if session.ranks is None:
        return store

    def given(task: Task) -> tuple:
        block = store.blocks[task.block]
        return block.indptr, block.cols[: block.nnz], block.vals[: block.nnz if block.stride else 1]

    blocks, stride = list(store.blocks), 0 if store.iso else 1
    for b, (indptr, cols, vals) in _came(session, store.rowmap.tasks, given, "a matrix").items():
        blocks[b] = MatrixBlock(store.rowmap.rows[b], indptr, cols, vals, stride, store.lengths[b], store.empty_rows)
    return MatrixStore(store.numbers, blocks)


def near_messages(session: Context, bins: list[Bins], map: RowMap, iso: bool) -> list[list[Message]]:
    """For each block what devices of other ranks have for its owner, if that is here."""
    found: list[list[Message]] = [[] for _ in map.tasks]
    ranks, devices = session.ranks, session.devices
    if ranks is None:
        return found
    mine = {part.device: part for part in bins if part is not AWAY}
    parcels: dict[int, list[tuple]] = {}
    for d, part in mine.items():
        counts = devices[d].get(part.counts).tolist()
        for task, count in zip(map.tasks, counts, strict=True):
            if count and not ranks.here(task.device):
                lo = map.first_slot(task.block)
                slots = ranks.out(devices[d], part.slots[lo : lo + count])
                vals = None if iso else ranks.out(devices[d], part.vals[lo : lo + count])
                parcels.setdefault(ranks.rank_of(task.device), []).append((task.block, slots, vals))
    for came in ranks.swapped(parcels, "what a push reached").values():
        for b, slots, vals in came:
            d = map.tasks[b].device
            session.account(d, slots.nbytes + (0 if iso else vals.nbytes))
            held = mine[d].vals if iso else ranks.into(devices[d], vals)
            found[b].append(Message(ranks.into(devices[d], slots), held, devices[d].full(1, len(slots), np.int64)))
    return found


def near_values(session: Context, map: RowMap, sent: list[Any], pieces: list[list[Piece]]) -> list[list[Any]]:
    """The values of the pieces of each block: parts of what its owners have packed."""
    ranks, devices = session.ranks, session.devices
    found = [
        [None if sent[owner] is AWAY else sent[owner][begin : begin + n] for owner, begin, _, n in wanted]
        for wanted in pieces
    ]
    if ranks is None:
        return found
    parcels: dict[int, list[tuple]] = {}
    for task in map.tasks:
        for i, (piece, vals) in enumerate(zip(pieces[task.block], found[task.block], strict=True)):
            if vals is not None and not ranks.here(task.device):
                there = parcels.setdefault(ranks.rank_of(task.device), [])
                there.append((task.block, i, ranks.out(devices[piece.owner], vals)))
    for came in ranks.swapped(parcels, "values of a vector").values():
        for b, i, vals in came:
            found[b][i] = ranks.into(devices[map.tasks[b].device], vals)
    return found


def near_scalars(session: Context, tasks: Any, parts: list[tuple[Any, Any]], dtype: Any) -> list[tuple[Any, Any]]:
    """Reduced blocks (two words: value and presence; and the value as an array), of all ranks on each of them."""
    if session.ranks is None:
        return parts
    came = _came(session, tasks, lambda task: parts[task.block][:1], "a reduction")
    return [(came[b][0], came[b][0].view(dtype)[:1]) if b in came else part for b, part in enumerate(parts)]
