"""Pull or push: what the planner is told of a product's operands, counted or estimated."""

from typing import Any

import numpy as np

from ..distribute.blocks import VectorBlock, VectorStore
from ..distribute.partition import RowMap
from ..expr import Transposed
from ..kernels.interface import XLIST
from . import build
from .cost import Facts
from .deterministic import by_rows

FEW, MANY = 64, 1 / 16  # vertices, and their share, from which the edges of a frontier are not worth a read from a GPU
DENSE = 4  # a push of a quarter as many entries as there are rows fills a bitmap instead of a list


def facts_of(session: Any, statement: Any, stores: dict[str, Any]) -> Facts:
    """What the direction of a product is chosen from; also puts the vector operand among the stores."""
    expr = statement.expr
    f = Facts()
    f.flip = bool(expr.option)
    operand = expr.right if f.flip else expr.left
    turned = isinstance(operand, Transposed)
    matrix = operand.matrix if turned else operand
    store = session.matrix_store(matrix)
    across, along = (store.colmap, store.rowmap) if f.flip != turned else (store.rowmap, store.colmap)
    f.outer, f.inner, f.dtype, f.iso, f.p, f.store = across, along, store.dtype, store.iso, store.rowmap.p, store
    if expr.kind == "reduce_rows":
        stores["x"] = ones_vector(session, f.inner, store.dtype)
    else:
        stores["x"] = session.content(expr.left if f.flip else expr.right)
    pull_turned = f.flip != turned
    x, mask = stores["x"], statement.mask
    count = session.known_count(x)
    allowed = None
    if mask is not None and mask.structural:
        held = session.known_count(stores["m"])
        allowed = held if held is None or not mask.complement else f.outer.n - held
    rows = expr.kind == "reduce_rows" or by_rows(session, expr.op)
    hint = "pull" if rows else statement.hints.get("direction")
    edges = None if hint or count is None else frontier_edges(session, x, count, matrix, store, not pull_turned)
    f.choose(hint, session.kernels.costs, expr.op, count, edges, allowed)
    f.dense = (
        session.kernels.dense
        and f.direction == "push"
        and f.p == 1
        and edges is not None
        and DENSE * edges >= f.outer.n
    )
    turn = pull_turned if f.direction == "pull" else not pull_turned
    f.store = session.oriented(matrix, turn)
    f.ptr, f.idx = f.store.ptr, f.store.idx
    f.orientation = f"{'rows' if not turn else 'columns'}"
    f.empty_rows = f.store.empty_rows
    return f


def ones_vector(session: Any, map: RowMap, dtype: Any) -> VectorStore:
    return session.once(
        ("ones vector", map, dtype),
        lambda: VectorStore(
            map,
            dtype,
            "full",
            True,
            [VectorBlock(map.rows[b], session.devices[b].full(1, 1, dtype.np_type), 0) for b in range(map.p)],
        ),
    )


def frontier_edges(session: Any, x: VectorStore, count: int, matrix: Any, store: Any, turned: bool) -> int:
    """Entries in the rows of the frontier: counted, or (where that needs a read and the frontier is small)
    estimated by the mean degree."""
    if x.form == "full":
        return store.nvals
    held = store if not turned or store.symmetric else store.transposed
    seen = session.devices[0].peek(session.nil(0).words) is not None
    plain = not seen and not FEW <= count <= MANY * x.map.n
    if held is None or x.map is not held.rowmap or plain:
        return count * store.nvals // max(x.map.n, 1)
    kernel = session.once(
        ("edges", held.ptr, held.idx), lambda: session.kernels.get("frontier_edges", build.spec_of(held))
    )
    totals = []
    for b, block in enumerate(x.blocks):
        nil, listed = session.nil(b), x.form == "list"
        slots, words = (block.slots, nil.words) if listed else (nil.slots(held.idx), block.words)
        totals.append(session.devices[b].zeros(1, np.int64))
        kernel(block.n, block.count, slots, words, XLIST if listed else 0, held.blocks[b].indptr, totals[-1])
    return sum(int(total[0]) if seen else int(session.devices[b].get(total)[0]) for b, total in enumerate(totals))
