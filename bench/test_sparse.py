"""gbgpu.sparse beside SciPy on a crawl of the web, and writing files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import gbgpu as gb
from gbgpu import sparse

NAME = "uk-2007-05_100000"


def cases(module: Any, A: Any, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    rows, X, d, columns = rng.integers(0, n, 10_000), rng.random((n, 8)), rng.random(n), rng.integers(0, n, 10_000)
    return {
        "A[i]": lambda: A[17_944],
        "A[rows], 10,000 of them": lambda: A[rows],
        "A[rows, columns], 10,000 pairs": lambda: A[rows, columns],
        "vstack([A, A])": lambda: module.vstack([A, A]),
        "hstack([A, A])": lambda: module.hstack([A, A]),
        "A @ X, 8 columns": lambda: A @ X,
        "diags_array(d) @ A": lambda: module.diags_array(d) @ A,
        "A + A.T": lambda: A + A.T,
    }


@pytest.mark.parametrize("what", list(cases(scipy.sparse, None, 1)))
def test_operations(beside, real, what):
    A = real(NAME, f"{NAME}, {what}").astype(float)
    gb.init("cpu:2")
    ours, theirs = cases(sparse, sparse.csr_array(A), A.shape[0])[what], cases(scipy.sparse, A, A.shape[0])[what]
    mine, other = ours(), theirs()
    assert np.allclose(mine, other) if isinstance(other, np.ndarray) else abs(mine.to_scipy() - other).max() < 1e-9
    beside(f"{NAME}, {what}", "cpu:2", ours, {"SciPy": theirs}, rounds=15, least=0.5)


GRAPHS = ["email-Enron", "ca-AstroPh-cc1", "PGPgiantcompo", "luxembourg_osm", "cit-HepTh", "deezer-HU"]
GRAPHS += ["facebook_combined", "bcsstk13"]


@pytest.mark.parametrize("devices, least", [("cpu:1", 1.0), ("cpu:2", 1.6)])
@pytest.mark.parametrize("name", [*GRAPHS, "rmat14"])
def test_mxm(beside, real, rmat, name, devices, least):
    """A @ A, with values of its own for each entry."""
    S = scipy.sparse.csr_matrix(rmat(14) if name == "rmat14" else real(name, f"{name}, mxm"), dtype=float)
    S.data = np.random.default_rng(1).random(S.nnz)
    gb.init(devices)
    A = gb.Matrix.from_scipy_sparse(S)
    mine = gb.semiring.plus_times(A @ A).new().to_scipy_sparse()
    assert abs(mine - S @ S).max() < 1e-9 * mine.max()
    what = f"{name}, mxm, A @ A"
    beside(what, devices, lambda: gb.semiring.plus_times(A @ A).new(), {"SciPy": lambda: S @ S}, rounds=9, least=least)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
def test_a_wide_product(beside, devices):
    """One row with the sparse rows of a matrix of many columns."""
    rng = np.random.default_rng(1)
    S, T = rng.random((1, 10)), scipy.sparse.random_array((10, 2**23), density=1e-4, rng=rng, format="csr")
    S = scipy.sparse.csr_array(S)
    gb.init(devices)
    A, B = gb.Matrix.from_scipy_sparse(S), gb.Matrix.from_scipy_sparse(T)
    mine = gb.semiring.plus_times(A @ B).new().to_scipy_sparse()
    assert abs(mine - S @ T).max() < 1e-9
    what, ours = "1 x 10 @ 10 x 2^23, mxm", lambda: gb.semiring.plus_times(A @ B).new()
    beside(what, devices, ours, {"SciPy": lambda: S @ T}, rounds=9, least=1.0)


ROADS = ["rail-world", "luxembourg_osm", "osm-andorra", "email-Enron", NAME]


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
@pytest.mark.parametrize("name", ROADS)
def test_mxv(beside, real, name, devices):
    """A @ x, x full."""
    S = real(name, f"{name}, y = A @ x").astype(float)
    x = np.random.default_rng(1).random(S.shape[1])
    gb.init(devices)
    A, u, y = gb.Matrix.from_scipy_sparse(S), gb.Vector.from_dense(x), gb.Vector(float, S.shape[0])

    def ours() -> None:
        y << gb.semiring.plus_times(A @ u)

    ours()
    assert np.allclose(y.to_dense(0), S @ x)
    beside(f"{name}, y = A @ x", devices, ours, {"SciPy": lambda: S @ x}, rounds=25, least=1.0)


def parts(S: Any, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    some, i, j = rng.permutation(n)[: n // 4], *(np.sort(rng.permutation(n)[: n // 3]) for _ in range(2))
    return {
        "a fourth of the rows": (lambda A: A[some, :].new(), lambda: S[some]),
        "a block of half the rows": (lambda A: A[n // 4 : 3 * n // 4, :].new(), lambda: S[n // 4 : 3 * n // 4]),
        "a third of rows and columns": (lambda A: A[i, j].new(), lambda: S[i][:, j]),
    }


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
@pytest.mark.parametrize("what", list(parts(None, 1)))
@pytest.mark.parametrize("name", ["email-Enron", "luxembourg_osm", "deezer-HU"])
def test_rows(beside, real, name, what, devices):
    S = scipy.sparse.csr_matrix(real(name, f"{name}, rows, {what}"), dtype=float)
    gb.init(devices)
    A, (ours, theirs) = gb.Matrix.from_scipy_sparse(S), parts(S, S.shape[0])[what]
    assert (ours(A).to_scipy_sparse() != theirs()).nnz == 0
    beside(f"{name}, rows, {what}", devices, lambda: ours(A), {"SciPy": theirs}, rounds=15, least=1.0)


def test_an_element_of_many_empty_rows(beside):
    gb.init("cpu:2")
    A = sparse.csr_array((2**24, 2**24))
    columns = iter(range(2**24))

    def assign() -> None:
        A[5, next(columns)] = 1

    beside("A[i, j] = 1, 2^24 rows", "cpu:2", assign, {}, rounds=9, at_most=20)


def test_compressed_output(beside, rmat, tmp_path):
    gb.init("cpu:2")
    A = gb.Matrix.from_scipy_sparse(rmat(17))

    def write(suffix: str) -> Any:
        return lambda: gb.io.mmwrite(tmp_path / f"graph.mtx{suffix}", A)

    what, peers = f"rmat17 ({A.nvals} entries) to .mtx.gz", {"plain .mtx": write("")}
    beside(what, "cpu:2", write(".gz"), peers, rounds=3, least=0.4)
