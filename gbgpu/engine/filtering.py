"""Host arrays through a select operator, segment by segment, on whichever device is free."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..distribute.blocks import VectorBlock
from ..distribute.router import routed
from ..kernels import interface as k
from ..kernels.interface import Spec
from ..language.expr import read
from .context import Context
from .matrix.csr import entries_of


def filtered(session: Context, expr: Any, segments: Iterable[tuple[int, np.ndarray]]) -> list[np.ndarray]:
    """Of each segment, (index of its first value, values of the type of `expr`), what the select expression `expr` of a
    vector keeps. Devices of other ranks are left out."""
    kernel, thunk = session.kernels.get("select", Spec(op=expr.op, b=expr.dtype)), read(expr.option, expr.op.dtypes[1])

    def work(d: int, segment: tuple[int, np.ndarray]) -> np.ndarray:
        (first, values), device, unused = segment, session.devices[d], session.placeholders(d)
        block = VectorBlock(len(values), device.put(values), 1, device.empty((len(values) + 63) >> 6, np.int64))
        count = device.zeros(1, np.int64)
        kernel(block.n, block.vals, 1, unused.words, k.XFULL, first, unused.words, thunk, block.words, count)
        return device.get(entries_of(device, block)[1])

    # Logical devices of a GPU are one here: they share its kernels, whose arguments only one thread may set at a time
    executors = {
        getattr(device, "gpu", device.name): (d, device)
        for d, device in enumerate(session.devices)
        if device.kind != "remote"
    }
    return routed(segments, dict(executors.values()), work)
