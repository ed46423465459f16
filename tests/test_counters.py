"""What statements cost, counted: rows probed, entries looked at, bytes exchanged, values stored, host reads."""

import gc

import numpy as np
import pytest

import gbgpu as gb
from algos import pagerank
from gbgpu import binary, monoid, replace, unary
from gbgpu.semiring import any_pair, any_secondi, min_plus, plus_pair, plus_times
from gbgpu.trace import asides, counters

N = 300


@pytest.fixture
def A(devices):
    return drawn()


def drawn() -> gb.Matrix:
    rng = np.random.default_rng(5)
    rows, cols = rng.integers(0, N, 3000), rng.integers(0, N, 3000)
    return gb.Matrix.from_coo(rows, cols, rng.integers(1, 9, 3000).astype(float), nrows=N, ncols=N, dup_op="first")


@pytest.fixture
def pattern(A):
    return unary.one(A).new()


def total(records, step: str, field: str) -> int:
    return sum(getattr(record, field) for record in records if record.step == step)


def test_masked_out_rows_are_not_probed(A):
    x = gb.Vector.from_dense(np.ones(N))
    allowed = np.arange(0, N, 7)
    mask, w = gb.Vector.from_coo(allowed, True, size=N), gb.Vector(float, N)
    with gb.trace() as records:
        w(mask.S, replace, direction="pull") << plus_times(A @ x)
    assert total(records, "pull", "rows") == len(allowed)
    indptr, _, _ = A.to_csr()
    assert total(records, "pull", "edges") == np.diff(indptr)[allowed].sum()
    with gb.trace() as records:
        w(~mask.S, replace, direction="pull") << plus_times(A @ x)
    assert total(records, "pull", "rows") == N - len(allowed)


def test_an_any_pull_stops_at_the_first_present_entry(A):
    q, w = gb.Vector.from_dense(np.ones(N, bool)), gb.Vector(int, N)
    with gb.trace() as records:
        w(direction="pull") << any_secondi(q @ A)
    assert 0 < total(records, "pull", "edges") <= A.nvals / 2


def test_push_touches_only_the_frontier(A):
    q, w = gb.Vector.from_coo([5, 17], 1.0, size=N), gb.Vector(float, N)
    with gb.trace() as records:
        w(direction="push") << min_plus(q @ A)
    indptr, _, _ = A.to_csr()
    map, rows = A._store.rowmap, total(records, "push", "rows")
    # Each device has a part of a hub's row, the entries at hubs and the others apart.
    assert rows == 2 if map.heads is None else 2 <= rows <= 2 * 2 * map.p
    assert total(records, "push", "edges") == np.diff(indptr)[[5, 17]].sum()


def test_one_value_stays_one_value(pattern):
    q, w = gb.Vector.from_coo([5, 17], True, size=N), gb.Vector(bool, N)
    assert pattern._store.iso and q._store.iso
    for direction in ("push", "pull"):
        w(direction=direction) << any_pair[bool](q @ pattern)
        assert w._store.iso and all(block.vals.size == 1 for block in w._store.blocks)
        w(q.S, replace) << w
    level = gb.Vector(int, N)
    level(w.S) << 3
    hops = gb.Vector(float, N)
    hops << min_plus(gb.Vector.from_coo([1], 0.0, size=N) @ pattern)
    assert hops._store.iso
    doubled = pattern.apply(binary.times, right=2.0).new()
    assert doubled._store.iso and pattern.dup()._store.iso and pattern.select(">", 0).new()._store.iso


def test_statements_read_nothing_back(A, pattern):
    x, y, q = gb.Vector.from_dense(np.ones(N)), gb.Vector(float, N), gb.Vector.from_coo([5, 17], 1, size=N)
    seen, d, s = gb.Vector(int, N), gb.Vector.from_coo([5], 0.0, size=N), gb.Scalar(float)

    def round() -> None:
        y << plus_times(A @ x)
        seen(q.S) << 1
        q(~seen.S, replace) << any_secondi(q @ pattern)
        seen(q.S) << q
        d(binary.min) << min_plus(d @ A)
        y << binary.plus(x & y)
        y << y.select(">", 1.0)
        y(binary.plus) << x
        s << y.reduce(monoid.plus)

    for M in (A, pattern):  # builds the other orientations, which does read sizes
        for direction in ("push", "pull"):
            y(direction=direction) << plus_times(x @ M)
    round()
    before = counters.host_reads
    round()
    assert counters.host_reads == before
    assert s.value == pytest.approx(y.to_coo()[1].sum()) and counters.host_reads > before


def test_bytes_between_devices_are_counted(devices, A):
    x, y, q = gb.Vector.from_dense(np.ones(N)), gb.Vector(float, N), gb.Vector.from_coo([5, 17], 1.0, size=N)
    blocks = len(A._store.blocks)
    with gb.trace() as records:
        y << plus_times(A @ x)
        y(direction="push") << min_plus(q @ A)
    gathered, sent = total(records, "gather", "bytes"), total(records, "exchange", "bytes")
    assert gathered == 8 * N * (blocks - 1)
    if blocks == 1:
        assert sent == 0
        return
    if any(record.decision and record.decision.action != "leave" for record in records if record.step == "push"):
        assert sent % 4 == 0 and sent  # who computes is not who owns
        return
    if A._store.rowmap.heads is not None:
        # Both are hubs: the owner of a column stores their entries in it.
        assert sent == 0 < total(records, "gather_hubs", "bytes")
        return
    assert_are_lists(A, (5, 17), sent)


def test_bytes_of_a_push_are_those_of_lists(monkeypatch):
    """Where all is left to its owners, as it is not by the policy of the ordinary sets."""
    monkeypatch.setattr(gb.settings, "interpret", True)
    gb.init("cpu:3", gb.partition.shares(1, 5, 3), balance="off")
    A, q = drawn(), gb.Vector.from_coo([5, 17], 1.0, size=N)
    with gb.trace() as records:
        min_plus(q @ A).new(direction="push")
    assert_are_lists(A, (5, 17), total(records, "exchange", "bytes"))


def assert_are_lists(A, sources, sent: int) -> None:
    """An int32 row and a float64 value an entry that belongs to another block, and a count of 8 bytes a message."""
    indptr, cols, _ = A.to_csr()
    owner, blocks = A._store.rowmap.owner(np.arange(N)), A._store.rowmap.p
    foreign = sum(
        len({c for i in sources if owner[i] == b for c in cols[indptr[i] : indptr[i + 1]] if owner[c] != b})
        for b in range(blocks)
    )
    messages = (sent - foreign * 12) // 8
    assert sent == foreign * 12 + 8 * messages and 0 < messages <= blocks * (blocks - 1)


def test_counts_come_with_the_records(A):
    q, w = gb.Vector.from_coo([5], 1.0, size=N), gb.Vector(float, N)
    with gb.trace() as records:
        w << min_plus(q @ A)
    assert sum(record.nvals for record in records if record.step == "move") == w.nvals
    assert all(record.end >= record.start > 0 for record in records)
    with gb.trace() as records:
        w[:] = 1.0
    assert sum(record.nvals for record in records if record.step == "move") == w.nvals == N


def test_what_kernels_take_to_compile_is_no_step(devices):
    v = gb.Vector.from_dense(np.ones(N))
    with gb.trace() as records:
        v.apply(lambda x: x * 3.25 + 1.125).new()
    beside = [record for record in records if record.device == "host"]
    assert "compile" in {record.step for record in beside}
    for lane in {record.device for record in records}:
        mine = sorted((record.start, record.end) for record in records if record.device == lane)
        assert all(one[1] <= other[0] for one, other in zip(mine, mine[1:], strict=False)), lane
    assert not asides()


def test_searches_for_garbage_are_no_steps(devices):
    v = gb.Vector.from_dense(np.ones(N))
    with gb.trace() as records:
        gc.collect()
        v << v
    assert [record.device for record in records if record.step == "collect"] == ["host"]
    assert not [told for told in gc.callbacks if told.__module__ == "gbgpu.trace"]


def test_degrees_by_pair_read_no_values(A):
    w = gb.Vector(int, N)
    w << plus_pair[int](A @ gb.Vector.from_dense(np.ones(N)))
    lengths = np.diff(A.to_csr()[0])
    assert np.array_equal(w.to_dense(0), lengths)


def test_reduce_without_entries(devices):
    empty = gb.Vector(int, N)
    assert empty.reduce(monoid.min).new().value is None
    assert empty.reduce(monoid.plus, allow_empty=False).new().value == 0
    assert empty.reduce(monoid.min, allow_empty=False).new().value == 2**63 - 1


def test_matrix_statements_and_reductions_are_traced_too(A):
    with gb.trace() as records:
        C = A.apply(unary.ainv).new()
        C.reduce_scalar(monoid.plus).new()
    blocks = len(A._store.blocks)
    assert [record.step for record in records if record.device != "host"] == ["apply"] * blocks + ["reduce"] * blocks


SCALARS = {  # w before is 0 .. 9; s is 45, on the devices still
    "all rows": (lambda w, s: w.__setitem__(slice(None), s), lambda old: np.full(10, 45.0)),
    "masked": (lambda w, s: w(gb.Vector.from_coo([2, 3], True, size=10).S) << s, lambda old: np.r_[0, 1, 45, 45, 4:10]),
    "accumulated": (lambda w, s: w(binary.plus) << s, lambda old: old + 45),
    "some rows": (lambda w, s: w[2:4].__lshift__(s), lambda old: np.r_[0, 1, 45, 45, 4:10]),
}


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("dtype", [float, int])
def test_scalars_are_assigned_where_they_lie(devices, name, dtype):
    write, expected = SCALARS[name]
    w, terms = gb.Vector.from_dense(np.arange(10.0)), gb.Vector.from_dense(np.arange(10, dtype=dtype))
    s = gb.Scalar(dtype)
    s << terms.reduce(monoid.plus, allow_empty=False)
    before = counters.host_reads
    write(w, s)
    read = counters.host_reads - before
    if dtype is float and name in ("all rows", "accumulated"):
        assert read == 0
    assert np.array_equal(w.to_dense(), expected(np.arange(10.0))) and s.value == 45


def test_pagerank_without_a_tolerance_reads_nothing(pattern):
    for _ in range(2):  # what a matrix is read for once, at its second pull, is read
        pagerank(pattern, tol=0, max_iterations=5)
    before = counters.host_reads
    pagerank(pattern, tol=0, max_iterations=5)
    assert counters.host_reads == before
