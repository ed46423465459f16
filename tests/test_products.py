"""Products of matrices by rows on CPU devices, beside SciPy: rows of every kind, masks, room that grows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gbgpu as gb
from gbgpu.engine.matrix import csr, mxm

DEVICES = ["cpu:1", "cpu:3"]


def made(nrows: int, ncols: int, density: float, seed: int) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    S = sp.random_array((nrows, ncols), density=density, rng=rng, format="csr")
    S.data = rng.integers(1, 9, S.nnz).astype(float)  # sums are exact
    return S


def with_hubs(n: int) -> sp.csr_array:
    """A row and a column with all entries, rows of one entry and of none."""
    S = made(n, n, 0.01, 1).tolil()
    S[3, :], S[:, 5] = 2, 3
    S[7, :] = 0
    S[8, :] = 0
    S[8, 9] = 4
    return sp.csr_array(S.tocsr())


CASES = {
    "empty": (made(5, 6, 0, 1), made(6, 7, 0, 2)),
    "no rows": (made(0, 6, 0, 1), made(6, 7, 0.5, 2)),
    "one row": (made(1, 300, 0.3, 1), made(300, 500, 0.05, 2)),
    "one column": (made(100, 200, 0.1, 1), made(200, 1, 0.4, 2)),
    "thin": (made(100, 200, 0.1, 1), made(200, 8, 0.4, 2)),
    "short rows": (made(90, 200, 0.01, 1), made(200, 5000, 0.0005, 2)),
    "wide": (made(20, 100, 0.1, 1), made(100, 5000, 0.01, 2)),
    "hubs": (with_hubs(80), with_hubs(80)),
}


def ones(S: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(S.nnz), S.indices, S.indptr), S.shape)


def smallest(S: sp.csr_array, T: sp.csr_array) -> np.ndarray:
    x, y = (np.where(M.toarray() == 0, np.inf, M.toarray()) for M in (S, T))
    found = [np.min(row[:, None] + y, axis=0, initial=np.inf) for row in x]
    return np.array(found).reshape(S.shape[0], T.shape[1])


EXPECTED = {
    "plus_times": lambda S, T: (S @ T).toarray(),
    "plus_pair": lambda S, T: (ones(S) @ ones(T)).toarray(),
    "any_pair": lambda S, T: ((ones(S) @ ones(T)) != 0).toarray(),
    "plus_second": lambda S, T: (ones(S) @ T).toarray(),
    "min_plus": smallest,
    "plus_firstj": lambda S, T: (sp.csr_array(ones(S) * np.arange(S.shape[1])[None, :]) @ ones(T)).toarray(),
}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("method", ["rows", "hash"])
@pytest.mark.parametrize("case", list(CASES))
def test_by_rows(devices, method, case, monkeypatch):
    """Patterns, values, and the order of columns; complemented masks, one that bars all; room for few entries."""
    gb.init(devices)
    if case in ("wide", "hubs"):
        monkeypatch.setattr(mxm, "ROOM", 1000)
        monkeypatch.setattr(csr, "offset_type", lambda nnz: "int32" if nnz < 500 else "int64")
    S, T = CASES[case]
    A, B = gb.Matrix.from_scipy_sparse(S), gb.Matrix.from_scipy_sparse(T)
    some = made(S.shape[0], T.shape[1], 0.2, 3)
    masks = {None: np.ones(some.shape, bool), "some": some.toarray() == 0, "all": np.zeros(some.shape, bool)}
    present = (ones(S) @ ones(T)).toarray() != 0
    for name, expected in EXPECTED.items():
        product, right = getattr(gb.semiring, name)(A @ B), expected(S, T)
        for barred, allowed in masks.items():
            C = gb.Matrix(product.dtype, *some.shape)
            held = some if barred == "some" else sp.csr_array(np.ones(some.shape))
            mask = () if barred is None else (~gb.Matrix.from_scipy_sparse(held).S,)
            C(*mask, method=method) << product
            rows, cols, vals = C.to_coo()
            wanted = np.argwhere(present & allowed)
            assert np.array_equal(np.column_stack([rows, cols]), wanted), (name, barred)
            assert np.array_equal(vals, right[rows, cols]), (name, barred)


@pytest.mark.parametrize("devices", DEVICES)
def test_rows_side_by_side(devices):
    """Rows that follow each other, and others; the first and the last, none, one value for all."""
    gb.init(devices)
    S = with_hubs(200)
    order = np.random.default_rng(2).permutation(200)
    for held in (S, ones(S)):
        A = gb.Matrix.from_scipy_sparse(held)
        blocks = slice(0, 200), slice(3, 90), slice(150, 200), slice(20, 20)
        for ids in (*blocks, [199], [3, 4, 6], [5, 4, 3], [7, 7], order):
            found, right = A[ids, :].new(), held[ids]
            assert found.shape == right.shape and np.array_equal(found.to_scipy_sparse().toarray(), right.toarray())


@pytest.mark.parametrize("shape", ["short rows", "a long row", "a long row of the mask"])
def test_entries_inside_a_mask(first, shape):
    """Rows of each length, of the left matrix and of the mask: those that are long take another way on GPUs."""
    dense = {"short rows": 0.002, "a long row": 0.05, "a long row of the mask": 0.02}[shape]
    S, T, M = made(60, 400, dense, 1), made(700, 400, dense, 2), made(60, 700, 0.002 if dense == 0.002 else 0.03, 3)
    if shape == "a long row":
        S = S.tolil()
        S[7] = 2
    if shape == "a long row of the mask":
        M = M.tolil()
        M[9] = 1
    S, M = sp.csr_array(S), sp.csr_array(M)
    A, B, held = (gb.Matrix.from_scipy_sparse(each) for each in (S, T, M))
    for name in ("plus_times", "plus_pair", "any_pair", "min_plus", "plus_firstj"):
        product, right = getattr(gb.semiring, name)(A @ B.T), EXPECTED[name](S, sp.csr_array(T.T))
        C = gb.Matrix(product.dtype, *M.shape)
        C(held.S, method="dot") << product
        rows, cols, vals = C.to_coo()
        wanted = np.argwhere(((ones(S) @ ones(sp.csr_array(T.T))).toarray() != 0) & (M.toarray() != 0))
        assert np.array_equal(np.column_stack([rows, cols]), wanted), name
        assert np.array_equal(vals, right[rows, cols]), name
