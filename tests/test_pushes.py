"""Products with rows of few entries, which CPU devices take four at a time: pushes of thin frontiers, of which any
first arrival counts, and sums of full vectors. NumPy is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import replace
from gbgpu.semiring import any_first, any_firsti, any_pair, any_plus, any_secondi, any_secondj, plus_pair, plus_times

N = 3000
TERMS = {  # (product of q @ A, the term of an arc i -> j of weight a, q_i = x)
    "first": (any_first[float], lambda i, j, x, a: x),
    "plus": (any_plus[float], lambda i, j, x, a: x + a),
    "secondi": (any_secondi, lambda i, j, x, a: i),
    "secondj": (any_secondj, lambda i, j, x, a: j),
    "firsti": (any_firsti, lambda i, j, x, a: 0 * i),
    "pair": (any_pair[float], lambda i, j, x, a: 0 * i + 1),
}


def arcs(shape: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of no entry, of a few, and of more; the last ones have the last entries."""
    rng = np.random.default_rng(3)
    lengths = rng.choice([0, 1, 2, 2, 3, 4, 5, 9], N)
    lengths[[7, N - 1]] = 300, {"short": 1, "empty": 0, "long": 40}.get(shape, 3)
    if shape == "hub":
        lengths[7] = N - 20
    rows = np.repeat(np.arange(N), lengths)
    return rows, np.concatenate([rng.choice(N, length, replace=False) for length in lengths])


@pytest.mark.parametrize("shape", ["short", "empty", "long", "hub"])
def test_first_arrivals(devices, shape):
    """With a mask and without one, into a list and into an output that has entries; nothing is left behind."""
    rng, (rows, cols) = np.random.default_rng(5), arcs(shape)
    weights = rng.integers(1, 9, len(rows)).astype(float)
    A = gb.Matrix.from_coo(rows, cols, weights, nrows=N, ncols=N)
    barred = np.flatnonzero(rng.random(N) < 0.3)
    for given in ([7, N - 1, 12, N - 2, 5, 6], [N - 1], rng.choice(N, 40, replace=False), []):
        given = np.asarray(given, int)
        x, here = rng.integers(1, 99, len(given)).astype(float), np.isin(rows, given)
        values = np.zeros(N)
        values[given] = x
        q = gb.Vector.from_coo(given, x, size=N)
        mask = gb.Vector.from_coo(barred, True, size=N)
        for name, (semiring, term) in TERMS.items():
            terms = term(rows[here], cols[here], values[rows[here]], weights[here])
            for shut in ([], barred):
                open_ = ~np.isin(cols[here], shut)
                arrivals = {*zip(cols[here][open_].tolist(), terms[open_].tolist(), strict=True)}
                t = gb.Vector(semiring.return_type if hasattr(semiring, "return_type") else int, N)
                how = (~mask.S, replace) if len(shut) else ()
                t(*how, direction="push", form="list") << semiring(q @ A)
                found, reached = t.to_dict(), {j for j, _ in arrivals}
                assert set(found) == reached, (name, len(shut))
                assert set(found.items()) <= arrivals, (name, len(shut))


def test_levels_and_parents(devices):
    """A search whose rounds are many and thin: each parent is an in-neighbour one level above."""
    n = 5000
    rng = np.random.default_rng(2)
    order = rng.permutation(n)
    rows, cols = np.concatenate([[order[:-1], order[1:]], [order[1:], order[:-1]]], 1)
    q = gb.Vector.from_coo([order[9]], [order[9]], int, size=n)
    A = gb.Matrix.from_coo(rows, cols, True, nrows=n, ncols=n)
    levels, parents = gb.Vector(int, n), gb.Vector(int, n)
    with gb.loop() as it:
        levels(q.S) << it.index
        parents(q.S) << q
        q(~parents.S, replace) << any_secondi(q @ A)
        it.until(q.nvals == 0)
    place = np.empty(n, int)
    place[order] = np.arange(n)
    assert np.array_equal(levels.to_dense(-1), np.abs(place - 9))
    assert np.array_equal(parents.to_dense(-1), order[place - np.sign(place - 9)])


@pytest.mark.parametrize("dtype", ["FP64", "FP32", "INT64", "INT8"])
@pytest.mark.parametrize("last", [0, 1, 3, 6])
def test_sums_of_rows(devices, dtype, last):
    """Rows of each length; what others have beside them, NaN too, does not count. Sums of zeros keep their sign."""
    rng, n = np.random.default_rng(last), 500
    lengths = rng.integers(0, 10, n)
    lengths[-1] = last
    rows, cols = np.repeat(np.arange(n), lengths), np.concatenate([rng.permutation(n)[:k] for k in lengths])
    A = gb.Matrix.from_coo(rows, cols, rng.integers(-3, 4, len(rows)), dtype, nrows=n, ncols=n)
    number = A.dtype.np_type
    x = rng.integers(-3, 4, n).astype(number)
    if number.kind == "f":
        x[rng.integers(0, n, 5)] = np.nan, np.inf, -np.inf, -0.0, 0.0
    expected = np.zeros(n, number)
    with np.errstate(all="ignore"):
        i, j, a = A.to_coo()
        np.add.at(expected, i, a * x[j])
        for semiring, wanted in ((plus_times[dtype], expected), (plus_pair[dtype], lengths.astype(number))):
            y = semiring(A @ gb.Vector.from_dense(x)).new()
            assert np.array_equal(y.to_dense(0), wanted, equal_nan=number.kind == "f")
            assert y.nvals == np.count_nonzero(lengths)
    if number.kind == "f":
        zeros = plus_times[dtype](gb.Matrix.from_coo(rows, cols, -0.0, dtype, nrows=n, ncols=n) @ ones(n, dtype)).new()
        assert np.signbit(zeros.to_coo()[1]).all()


def ones(n: int, dtype: str) -> gb.Vector:
    return gb.Vector.from_dense(np.ones(n, gb.dtypes.lookup_dtype(dtype).np_type))
