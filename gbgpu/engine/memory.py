"""What a matrix takes, predicted from its size. The figures of building were fitted to measured peaks (an H200 through
CuPy's pool; NumPy through tracemalloc), which test_memory checks."""

from typing import Any, NamedTuple

import numpy as np

from ..device.base import address
from ..distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore, offset_type
from . import gate


class Memory(NamedTuple):
    """Bytes of a matrix.

    Attributes
    ----------
    held : int
        Bytes of the matrix.
    peak : int
        Bytes while `from_coo` makes it, beyond the arrays it is given.
    """

    held: int
    peak: int


def of_matrix(session: Any, nrows: int, ncols: int, nvals: int, dtype: Any, iso: bool, replica: bool) -> Memory:
    """On the GPU that needs most, which is the first one if it has a replica; of the process on CPU devices, which
    share its memory."""
    p, value = len(session.devices), 0 if iso else dtype.np_type.itemsize
    offset = 4 if offset_type(-(-nvals // p)) == "int32" else 8
    column = 4 if ncols < 2**31 else 8
    held = offset * nrows + (column + value) * nvals
    device = session.home
    if device.shares_memory:  # NumPy 2.5 takes 4 bytes an entry more than 2.4 while it sorts: this lies between
        sorting = (28.4 + value) * nvals + 14 * nrows
        placing = 0.0  # sorted arrays and slots; blocks that are done; three times the entries of the one in hand
        if session.maps.reorders(nrows, ncols, nvals):
            entries = 8 + column + value + (column + value) * (1 - 1 / p) + 3 * (column + max(value, 1)) / p
            placing = entries * nvals + (16 + 8 / p) * nrows
        return Memory(held, int(max(sorting, placing, held)))
    # CPU devices beside GPUs hold what these have no room for; of other kinds each device is a processor of its own.
    own = [getattr(each, "gpu", each.name) for each in session.devices if each.kind == device.kind]
    gpus = len(set(own))
    straight = gate.by_owners(session)
    parts, here = (p, len(own) // gpus) if straight else (1, 1)  # how many are sorted; of these, on one GPU
    each, share = -(-nvals // parts), here / parts
    chunk = min(each, gate.chunk_of(device))
    # Keys that are picked, with values; those that are sorted, and what a block before has left; rows of keys.
    keys = 8 + (value if chunk < each or parts > 1 else 0)
    sorting = (8.2 if iso else 32.3) + keys + (4 + value) * (here - 1)
    if not iso:  # of each other block here keys, order and values
        sorting = max(sorting, 32.3 + keys + (17 + value) * (here - 1 + (chunk < each and here > 1)))
    if parts > 1:
        sorting = max(sorting, keys * parts + (4 if iso else 17 + value) * (here - 1))
    done = (0 if chunk == each else (4 + value) * here * each) + 8 * share * nrows  # room for all chunks; offsets
    sorting = sorting * chunk + done
    narrowing = (4 + value) * here * each + 12 * share * nrows if offset == 4 else 0  # of the offsets
    placing = (8 * here + (4 if chunk == each else 0)) * chunk + done + 8 * nrows / parts * chunk / max(each, 1)
    cutting = 0.0
    if p > 1 and not straight:
        cutting = (4 + value) * (1 + 1 / gpus) * nvals + 16 * nrows
    elif not (session.maps.plain(nrows) and session.maps.plain(ncols)):  # columns are translated
        cutting = (12 + 25 / p + 2 * value) * share * nvals + 16 * nrows if p > 1 else 0
    kept = held // gpus + (8 * nrows + (column + value) * nvals if replica and gpus > 1 else 0)
    return Memory(kept, int(max(sorting, placing, narrowing, cutting, kept)))


def of_handle(session: Any, store: Any) -> dict[str, int]:
    """Bytes that each device holds for a handle: its blocks, and what is kept beside them."""
    found = {device.name: 0 for device in session.devices if device.kind != "remote"}
    seen: set[int] = set()

    def look(x: Any, name: str) -> None:
        if hasattr(x, "nbytes") and not isinstance(x, np.generic):
            if address(x) not in seen:
                seen.add(address(x))
                found[name] += int(x.nbytes)
        elif isinstance(x, (tuple, list)):
            for one in x:
                look(one, name)
        elif isinstance(x, dict):
            look(list(x.values()), name)
        elif isinstance(x, (MatrixBlock, VectorBlock)):
            look([getattr(x, slot) for slot in x.__slots__ if hasattr(x, slot)], name)

    def walk(store: Any) -> None:
        if id(store) in seen or not isinstance(store, (MatrixStore, VectorStore)):
            return
        seen.add(id(store))
        for device, block in zip(session.devices, store.blocks, strict=False):
            if device.name in found:
                look(block, device.name)
        for task, block in getattr(getattr(store, "shared", None), "blocks", {}).items():
            look(block, session.devices[task.device].name)
        for (d, _), block in getattr(store, "copies", {}).items():
            look(block, session.devices[d].name)
        for device, words in zip(session.devices, getattr(getattr(store, "hubs", None), "rows", ()), strict=False):
            look(words, device.name)
        near: Any = getattr(store, "near", None) or None
        for device, *arrays in zip(session.devices, near.asked, near.orders, strict=False) if near else ():
            look(arrays, device.name)
        apart: Any = getattr(store, "apart", None)
        for d, device in enumerate(session.devices if apart else ()):
            if device.name in found:  # columns and values of normal rows are the matrix's own
                normal = apart.normal.blocks[d]
                thin = apart.halo and (apart.halo.asked[d], apart.halo.placed[d])
                look(
                    [apart.delegates[d], apart.users[d], thin, normal.indptr, normal.views, normal.slices], device.name
                )
        for beside in ("transposed", "replica"):
            walk(getattr(store, beside, None))

    walk(store)
    return found
