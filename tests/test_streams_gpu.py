"""Products as one stream of entries against the ordinary kernels. Collected where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import semiring
from gbgpu.device import cuda
from gbgpu.engine import streams

__test__ = bool(cuda.available())

PRODUCTS = [  # semiring, type of A, type of x
    ("plus_times", "FP32", "FP32"),
    ("plus_times", "INT64", "INT64"),
    ("plus_second", "BOOL", "FP64"),
    ("min_plus", "FP32", "FP32"),
    ("min_second", "BOOL", "UINT32"),
    ("max_first", "INT16", "INT16"),
    ("plus_pair", "BOOL", "BOOL"),
    ("lxor_land", "BOOL", "BOOL"),
]
SHAPES = {  # rows, columns, entries: where they lie
    "random": (3000, 2000, lambda rng: (rng.integers(0, 3000, 40_000), rng.integers(0, 2000, 40_000))),
    "empty rows": (9000, 500, lambda rng: (rng.integers(0, 60, 9000) * 150, rng.integers(0, 500, 9000))),
    "hub row": (130, 9000, lambda rng: (np.where(rng.random(30_000) < 0.9, 64, 7), rng.integers(0, 9000, 30_000))),
    "hub columns": (5000, 5000, lambda rng: (rng.integers(0, 5000, 30_000), rng.integers(0, 30, 30_000) ** 2)),
    "one row": (1, 70_000, lambda rng: (np.zeros(50_000, int), rng.permutation(70_000)[:50_000])),
    "short rows": (9000, 9000, lambda rng: (rng.integers(0, 9000, 20_000), rng.integers(0, 9000, 20_000))),
    "tiles": (64, 1024, lambda rng: (np.arange(64).repeat(1024), np.tile(np.arange(1024), 64))),
    "one entry": (5, 5, lambda rng: (np.array([3]), np.array([2]))),
}


@pytest.fixture(params=["cuda:0", "cuda:0*3"])
def session(request, monkeypatch):
    monkeypatch.setattr(streams, "SMALL", 1)
    monkeypatch.setattr(streams, "SHARE", 0.0)
    return gb.init(request.param, gb.partition.shares(1, 5, 3) if request.param.endswith("3") else None)


@pytest.mark.parametrize("hub_bytes", [0, 200, 90_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_streams_give_what_rows_give(session, shape, hub_bytes, monkeypatch):
    monkeypatch.setattr(gb.settings, "hub_bytes", hub_bytes)
    n, m, where = SHAPES[shape]
    rng = np.random.default_rng(7)
    rows, cols = where(rng)
    for name, a, x in PRODUCTS:
        what = rng.integers(0, 50, len(rows)).astype(gb.dtypes.lookup_dtype(a).np_type)
        A = gb.Matrix.from_coo(rows, cols, what, nrows=n, ncols=m, dup_op="first")
        held = rng.integers(0, 50, m).astype(gb.dtypes.lookup_dtype(x).np_type)
        if x in ("FP32", "FP64"):
            held[::97] = np.nan
        some = rng.random(m) < 0.4
        ids = np.flatnonzero(some)
        for v in (
            gb.Vector.from_dense(held),
            gb.Vector.from_coo(ids, held[ids], size=m),
            gb.Vector.from_coo(ids, held[0], size=m),
            gb.Vector.from_scalar(held[0], m),
        ):
            product = getattr(semiring, name)[a, x](A @ v)
            session.plans.clear()
            with gb.trace() as records:
                streamed = product.new(direction="pull")
            if not streamed._store.iso and name != "plus_pair":  # one value may stop early; lengths need no entries
                assert sum(record.edges for record in records if record.step == "pull") == A.nvals
            with monkeypatch.context() as plain:
                plain.setattr(session.kernels, "streams", False)
                session.plans.clear()
                expected = product.new(direction="pull").to_coo()
            found = streamed.to_coo()
            assert np.array_equal(found[0], expected[0]), (name, shape, hub_bytes)
            assert np.allclose(found[1], expected[1], rtol=1e-5, equal_nan=True), (name, shape, hub_bytes)
            assert streamed.nvals == len(found[0])
