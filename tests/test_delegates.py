"""Products of matrices whose delegates are apart (gb.partition.degree_separated): what they give, what they move."""

from __future__ import annotations

import os

import numpy as np
import oracle
import ownership
import programs as p
import pytest
from conftest import Devices
from hypothesis import given, settings
from hypothesis import strategies as st
from test_partitions import matrix, pattern, rows_of, values
from test_statements import KINDS

import algos
import gbgpu as gb
from algos import verify
from gbgpu import replace
from gbgpu.device.cpu import CpuDevice
from gbgpu.distribute.partition import Pattern
from gbgpu.distribute.rowmap import RowMap
from gbgpu.engine import direction
from gbgpu.exceptions import InvalidValue
from gbgpu.io.generate import rmat
from gbgpu.semiring import any_pair, max_second, min_plus, plus_pair, plus_second, plus_times, ss

separated = gb.partition.degree_separated
GPU = "cuda" in os.environ.get("GBGPU_TEST_DEVICES", "")
counted = pytest.mark.skipif(GPU, reason="figures of plans that know all counts")


def on(p: int) -> str:
    """So many devices, of one GPU if tests run there."""
    return f"cuda:0*{p}" if GPU else f"cpu:{p}"


@pytest.fixture
def always(monkeypatch):
    """Delegates pay, however little there is to move; and what nobody has written is garbage."""
    plain = CpuDevice.empty

    def poisoned(self, n, dtype):
        array = plain(self, n, dtype)
        array.view(np.uint8)[...] = 0xA5 if np.dtype(dtype) != bool else 1
        return array

    monkeypatch.setattr(CpuDevice, "empty", poisoned)
    monkeypatch.setattr(direction, "fewer", lambda bytes, plain: True)


def steps(call) -> tuple[object, dict[str, int]]:
    """What a call gives, and the bytes that came in each kind of its steps."""
    with gb.trace() as records:
        found = call()
    return found, {kind: sum(r.bytes for r in records if r.step == kind) for kind in {r.step for r in records}}


# ---------------------------------------------------------------- who is a delegate


@pytest.mark.parametrize("threshold", [-1, 2.0, True, "most", None])
def test_thresholds(threshold):
    with pytest.raises(InvalidValue, match='threshold="auto", or an int from 0 on'):
        separated(threshold)


@given(st.integers(0, 300), st.integers(2, 6), st.integers(0, 30), st.integers(0, 99))
def test_delegates_are_the_heads_of_blocks(n, p, threshold, seed):
    """Dealt out evenly, most first; the others are runs of ids."""
    dense = pattern(n, n, seed)
    degrees = np.maximum(dense.sum(0), dense.sum(1))
    map = RowMap(*separated(threshold).divide(rows_of(dense), p))
    many = degrees > threshold
    assert (map.heads is not None) == (dense.any() and many.any())
    if map.heads is not None:
        blocks = [np.arange(n)[map.part(b)] for b in range(p)]
        few = [block[:count] for block, count in zip(blocks, map.heads.rows, strict=True)]
        assert sorted(np.concatenate(few)) == np.flatnonzero(many).tolist()
        assert max(map.heads.rows) - min(map.heads.rows) <= 1
        assert all((np.diff(degrees[ids]) <= 0).all() for ids in few)
        left = np.concatenate([block[len(ids) :] for block, ids in zip(blocks, few, strict=True)])
        assert (np.diff(left) > 0).all()
        other = RowMap(map.bounds, map.order)
        assert not map.same(other) and map.same(RowMap(map.bounds, map.order, np.array(map.heads.rows)))


def test_auto_takes_what_moves_least():
    A = rmat(12, 16, seed=1)
    indptr, cols, _ = A.to_csr()
    rows = Pattern(A.nrows, np.diff(indptr), lambda: cols)
    degrees = np.maximum(np.diff(indptr), np.bincount(cols, minlength=A.nrows))
    found = RowMap(*separated().divide(rows, 8)).heads.n
    assert found in [(degrees > 2**k).sum() for k in range(12)] and 0.01 < found / A.nrows < 0.2
    even = np.full(1000, 3)  # a road map: rows are alike, and nothing is won
    assert len(separated().divide(Pattern(1000, even, lambda: np.arange(3000) % 1000), 4)) == 2
    for lacking in (Pattern(50), Pattern(50, np.arange(50)), Pattern(50, np.zeros(50, int), lambda: np.zeros(0, int))):
        assert separated(0).divide(lacking, 4)[1] is None


# ---------------------------------------------------------------- what products give

WAYS = {
    "push": (["gather_hubs", "push", "drain", "exchange", "combine"], any_pair),
    "pull": (["gather", "partial", "pull", "combine_hubs"], plus_second),
}


@pytest.mark.parametrize("way", WAYS)
def test_plans_show_what_runs(way, always):
    gb.init(on(3), separated(3))
    A, w = matrix(values(pattern(150, 150, 3))), gb.Vector(int, 150)
    x = gb.Vector.from_dense(np.arange(150))
    kinds, semiring = WAYS[way]
    with gb.explain() as text:
        w(direction=way) << semiring(A @ x)
    told = [line.split()[1] for line in text[0].splitlines()[1:]]
    assert told[-len(kinds) - 1 : -1] == kinds
    assert told[: -len(kinds) - 1] == ["transpose"] * (way == "push") + ["separate"]
    assert A._store.transposed is None and A._store.apart is None  # shown, and not made
    assert "delegates" in text[0] and "normal rows" in text[0] or way == "push"
    _, moved = steps(lambda: w(direction=way) << semiring(A @ x))
    assert set(kinds) <= set(moved)


SEMIRINGS = (
    plus_times, min_plus, max_second, any_pair, plus_pair, ss.min_secondi, ss.max_firstj, ss.any_secondi,
)  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize(("p", "threshold"), [(3, 0), (7, 20)] + [(2, 9)] * p.WIDE)
def test_products(p, threshold, way, always):
    """In every form, with and without masks, of rows and of columns: as on one device."""
    n, dense = 200, values(pattern(200, 200, 6))
    dense[:, 5] = dense[7, :] = 2

    def found() -> list:
        A, some, results = matrix(dense), np.arange(0, n, 7), []
        bits = gb.Vector(int, n)
        bits(form="bitmap") << gb.Vector.from_coo(some, some % 13 + 1, size=n)
        vectors = gb.Vector.from_dense(np.arange(n) * 3 % 101), gb.Vector.from_coo(some, some % 13, size=n), bits
        mask = gb.Vector.from_coo(np.arange(0, n, 3), np.arange(0, n, 3) % 2, size=n)
        for semiring in SEMIRINGS:
            for k, x in enumerate((*vectors, gb.Vector.from_scalar(2, n))):
                for m in (None, (mask.S, ~mask.S, mask.V, ~mask.V)[(k + len(results)) % 4]):
                    product, w = semiring((A @ x, x @ A)[len(results) % 2]), gb.Vector.from_scalar(1, n)
                    (w(direction=way) if m is None else w(m, replace, direction=way)) << product
                    places, vals = w.to_coo()
                    results.append((places.tolist(), None if semiring is ss.any_secondi else vals.tolist()))
        return results

    gb.init("cpu:1")
    expected = found()
    gb.init(on(p), separated(threshold))
    assert found() == expected


@pytest.mark.parametrize("n", [1, 2, 5, 64, 65])
@pytest.mark.parametrize("p", [2, 7])
def test_few_rows(n, p, always):
    """One vertex, more devices than rows, all rows delegates."""
    for threshold in (0, 1):
        dense = values(pattern(n, n, n, density=0.5))
        dense[0, 0] = 1
        gb.init(on(p), separated(threshold))
        A, x = matrix(dense), np.arange(n) + 1
        for way in ("push", "pull"):
            for v in (gb.Vector.from_dense(x), gb.Vector.from_coo([n - 1], [n], size=n), gb.Vector(int, n)):
                w = gb.Vector(int, n)
                w(direction=way) << plus_times(A @ v)
                assert np.array_equal(w.to_dense(fill_value=0), dense @ v.to_dense(fill_value=0))


def test_rectangles_and_other_maps_go_as_ever(always):
    gb.init(on(3), separated(2))
    early = gb.Vector.from_dense(np.arange(150))
    square, wide = values(pattern(150, 150, 1)), values(pattern(150, 90, 2))
    A, B = matrix(square), matrix(wide)
    assert A._store.rowmap.heads is B._store.rowmap.heads is not None
    assert np.array_equal(plus_times(A @ early).new().to_dense(fill_value=0), square @ np.arange(150))
    assert np.array_equal(plus_times(early @ B).new().to_dense(fill_value=0), np.arange(150) @ wide)
    assert A._store.apart is B._store.apart is None
    late = gb.Vector.from_dense(np.arange(150))
    assert np.array_equal(plus_times(A @ late).new().to_dense(fill_value=0), square @ np.arange(150))
    assert np.array_equal(plus_times(late @ B).new().to_dense(fill_value=0), np.arange(150) @ wide)
    assert A._store.apart is not None is B._store.apart
    gb.init(on(3), separated(0))
    matrix(wide[:, :80].T)
    assert gb.settings.session().maps.of(80).heads is None  # the first one was not square


@settings(max_examples=300 if p.WIDE else 20)
@given(program=p.programs(KINDS["products"]), p=st.sampled_from([2, 4]), least=st.sampled_from([0, 1, 2]))
def test_random_products(program, p, least):
    plain, direction.fewer = direction.fewer, lambda bytes, plain: True
    devices = Devices(on(p), f"degree_separated({least})")
    devices.start()
    try:
        oracle.Run(program, devices).all()
    finally:
        direction.fewer = plain


@settings(max_examples=300 if p.WIDE else 20)
@given(program=p.programs(KINDS["mixed"]))
def test_random_statements(program):
    devices = Devices(on(3), "degree_separated(1)")
    devices.start()
    oracle.Run(program, devices).all()


@pytest.mark.skipif(GPU, reason="CPU devices stand for several GPUs")
def test_devices_keep_to_themselves(always):
    """As several GPUs must, whose counts the host doesn't see."""
    dense = values(pattern(200, 200, 3))
    with ownership.several(partition=separated(9)) as current:
        A, B, w = matrix(dense), rmat(7, 6, seed=3, weights=(1, 255)), gb.Vector(int, 200)
        assert not current.broken, current.broken[:5]
        vectors = gb.Vector.from_dense(np.arange(200)), gb.Vector.from_coo(np.arange(0, 200, 9), 2, size=200)
        bits = gb.Vector(int, 200)
        bits(form="bitmap") << gb.Vector.from_coo([3, 90], [1, 2], size=200)
        for way in ("push", "pull"):
            for x in (*vectors, bits):
                for semiring in (plus_times, any_pair, ss.min_secondi):
                    w(~bits.S, replace, direction=way) << semiring(x @ A)
                w(direction=way) << plus_times(x @ A)
                assert np.array_equal(w.to_dense(fill_value=0), x.to_dense(fill_value=0) @ dense)
        source = int(np.argmax(np.diff(B.to_csr()[0])))
        verify.bfs(B, source, *algos.bfs(B, source))
        verify.sssp(B, source, algos.sssp(B, source))
        verify.pagerank(B, algos.pagerank(B)[0])
        assert A._store.apart is not None is not B._store.apart
        assert not current.broken, current.broken[:5]


def test_loops_go_by_statements(always):
    gb.init(on(3), separated(9))
    A = rmat(8, 6, seed=3, weights=(1, 255))
    with gb.loop() as it:
        x = gb.Vector.from_scalar(1, A.nrows)
        x << plus_times(A @ x)
        it.until(it.index == 20)
    assert "the matrix is partitioned by degree_separated" in it.how and it.rounds == 21
    source = int(np.argmax(np.diff(A.to_csr()[0])))
    verify.bfs(A, source, *algos.bfs(A, source))
    verify.sssp(A, source, algos.sssp(A, source))
    verify.pagerank(A, algos.pagerank(A, tol=1e-10).ranks, tol=1e-9)
    verify.connected_components(A, algos.connected_components(A))


# ---------------------------------------------------------------- what they move


@counted
@pytest.mark.parametrize("p", [4, 8])
def test_fewer_bytes_move(p):
    """A pull as PageRank's, and a breadth-first search, of an RMAT graph: 48% and 4% of the bytes of contiguous blocks
    on 4 devices, 40% and 4% on 8."""
    found = {}
    for name, partition in (("edges", gb.partition.equal_edges()), ("apart", separated())):
        gb.init(on(p), partition)
        A = rmat(12, 16, seed=1)
        x, w = gb.Vector.from_dense(np.arange(A.nrows) / 8), gb.Vector(float, A.nrows)
        for _ in range(2):
            _, moved = steps(lambda w=w, A=A, x=x: w(direction="pull") << plus_second(A @ x))
        ranks = w.to_dense(fill_value=0)
        tree, search = steps(lambda A=A: algos.bfs(A, 3))
        verify.bfs(A, 3, *tree)
        found[name] = sum(moved.values()), sum(search.values()), ranks
    heads, apart = A._store.rowmap.heads, A._store.apart
    bits = sum((n + 63) // 64 * 8 for n in heads.rows)
    assert moved["gather"] == 8 * apart.moved  # a value for each that a normal row names elsewhere
    assert moved["combine_hubs"] == (p - 1) * (8 * heads.n + bits)
    assert found["edges"][0] == 8 * (p - 1) * A.nrows and np.array_equal(found["edges"][2], found["apart"][2])
    assert found["apart"][0] < 0.5 * found["edges"][0] and found["apart"][1] < 0.06 * found["edges"][1]


@counted
def test_bits_are_brought_for_delegates_alone():
    """Of a frontier that is a bitmap, and of the mask; delegates that the mask does not let through are not sent."""
    gb.init(on(4), separated(40))
    A = rmat(10, 16, seed=2)
    heads = A._store.rowmap.heads
    bits = 3 * sum((n + 63) // 64 * 8 for n in heads.rows)
    visited = gb.Vector.from_coo(np.flatnonzero(np.diff(A.to_csr()[0]) > 40), True, size=A.nrows)
    q, w = gb.Vector.from_coo(np.arange(A.nrows), True, size=A.nrows), gb.Vector(bool, A.nrows)
    q(form="list") << q
    sent = []
    for mask in (None, ~visited.S):
        update = w(direction="push") if mask is None else w(mask, replace, direction="push")
        _, moved = steps(lambda update=update: update << any_pair(q @ A))
        assert moved["gather_hubs"] in (0, bits, 2 * bits)
        sent.append(moved["exchange"])
    assert 0 < sent[1] < sent[0] - 3 * 4 * heads.n / 2


@counted
def test_thin_frontiers_go_as_ever():
    gb.init(on(4), separated())
    A, q = rmat(12, 16, seed=1), gb.Vector(bool, 2**12)
    q[2**12 - 1] = True
    assert any_pair(q @ A).new().nvals == np.diff(A.to_csr()[0])[-1] and A._store.apart is None


@counted
def test_memory_and_measures():
    gb.init(on(4), separated())
    A = rmat(12, 16, seed=1)
    session, x = gb.settings.session(), gb.Vector.from_dense(np.arange(A.nrows))
    before, sets = sum(session.held(A).values()), gb.block_sets(A)
    plus_times(A @ x).new()
    after, delegates = sum(session.held(A).values()), sum(sets.delegates)
    more = 4 * (sum(kinds[2] + kinds[3] for kinds in sets.kinds) + A.nrows + 4 * delegates)
    assert sets.held_bytes() == 4 * (A.nvals + A.nrows) + more
    assert more <= after - before < 1.3 * more + 40 * A._store.apart.moved
    assert sum(kinds[0] for kinds in sets.kinds) < 0.2 * A.nvals < sum(sum(kinds[2:]) for kinds in sets.kinds)
