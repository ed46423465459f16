"""Partitions, row maps that are permutations, and the sets of blocks. (Random statements run on seven devices with a
random partition, see conftest.py; the long run takes the others too.)"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import present
from hypothesis import given, settings
from hypothesis import strategies as st

import algos
import gbgpu as gb
from algos import verify
from gbgpu import balance, binary, indexunary, replace
from gbgpu.distribute.blocks import MatrixBlock
from gbgpu.distribute.halo import near
from gbgpu.distribute.partition import NAMED, Pattern
from gbgpu.distribute.rowmap import RowMap
from gbgpu.engine import gate
from gbgpu.engine.loop import device as compiled
from gbgpu.engine.matrix.csr import Rows
from gbgpu.exceptions import InvalidValue
from gbgpu.io.generate import rmat
from gbgpu.semiring import max_second, plus_times

SIZES = (0, 1, 2, 63, 64, 65, 200, 300)
part = gb.partition
PARTS = {
    "random": part.random(3), "segments": part.segments(3), "degree_sorted": part.degree_sorted(),
    "metis": part.metis(), "degree_separated": part.degree_separated(9),
}


def pattern(n: int, m: int, seed: int, density: float = 0.05) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random((n, m)) < density * rng.choice([0, 1, 8], n)[:, None]


def rows_of(dense: np.ndarray) -> Pattern:
    return Pattern(len(dense), dense.sum(1), (lambda: np.nonzero(dense)[1]) if len(dense) == dense.shape[1] else None)


def values(dense: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.where(dense, np.random.default_rng(seed).integers(1, 9, dense.shape), 0)


def matrix(dense: np.ndarray) -> gb.Matrix:
    i, j = np.nonzero(dense)
    return gb.Matrix.from_coo(i, j, dense[i, j], nrows=dense.shape[0], ncols=dense.shape[1])


# ---------------------------------------------------------------- who owns a row, and where it lies


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_every_row_has_one_place(name, n, p, monkeypatch):
    map = RowMap(*NAMED[name]().divide(rows_of(pattern(n, n, seed=n + p)), p))
    ids = np.arange(n)
    slots = map.slots(ids)
    assert (map.n, map.p, sum(map.rows)) == (n, p, n) and len(np.unique(slots)) == n
    assert (map.starts % 64 == 0).all() and np.array_equal(map.users(slots), ids)
    assert map.order is None or p > 1
    monkeypatch.setattr("gbgpu.distribute.rowmap.PIECE", 50)
    for asked in (ids, np.concatenate([ids, ids[::-1]])):
        moved = asked.astype(map.slot_type())
        map.to_slots(moved)
        assert np.array_equal(moved, slots[asked])
    for b in range(p):
        mine = ids[map.part(b)]
        assert (map.owner(mine) == b).all()
        assert np.array_equal(map.slots(mine), map.first_slot(b) + np.arange(map.rows[b]))
        assert np.array_equal(map.places(mine), map.first(b) + np.arange(map.rows[b]))


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 97, 2), (0, 1, 0), (1, 0.001, 1)])
@pytest.mark.parametrize("n", [0, 2, 700, 3 * 64 * 64 - 1, 3 * 64 * 64, 23_947_347])
def test_blocks_are_as_weights(n, weights):
    """To a row; of many rows to a word, so that slots are the ids."""
    bounds, order = part.shares(*weights).divide(Pattern(n), 3)
    exact, many = n * np.cumsum((0, *weights)) / sum(weights), n >= 3 * 64 * 64
    assert order is None and bounds[0] == 0 and bounds[-1] == n
    assert (np.abs(bounds - exact) <= (64 if many else 0.5)).all()
    assert not many or ((bounds[:-1] % 64 == 0) | (bounds[:-1] == n)).all()
    assert (np.diff(bounds)[np.array(weights) == 0] == 0).all()
    assert not many or RowMap(bounds).plain


def test_random_blocks():
    """Of equal rows; the same for a seed and other ones for another; a row is anywhere."""
    bounds, order = part.random(1).divide(Pattern(4000), 4)
    assert np.diff(bounds).tolist() == [1000] * 4
    assert np.array_equal(order, part.random(1).divide(Pattern(4000), 4)[1])
    other = part.random(2).divide(Pattern(4000), 4)[1]
    assert not np.array_equal(order, other)
    both = len(np.intersect1d(order[:1000], other[:1000]))
    assert 180 < both < 320  # 250 expected, 13 their deviation
    sizes = np.diff(part.random(1).divide(Pattern(40_001), 3)[0])
    assert sizes.max() - sizes.min() <= 1  # rows have an order of their own: whole words are of no use


def test_segments_are_runs_of_equal_work():
    lengths = np.random.default_rng(0).geometric(0.1, 3000) - 1
    bounds, order = part.segments(5).divide(Pattern(3000, lengths), 4)
    for b in range(4):
        mine = order[bounds[b] : bounds[b + 1]]
        assert (np.diff(mine) > 0).all() and (np.diff(mine) > 1).sum() == 4  # five runs
        assert (lengths[mine] + 1).sum() == pytest.approx((lengths + 1).sum() / 4, abs=5.0 * (lengths.max() + 1))
    ones, edges = (made.divide(Pattern(3000, lengths), 4) for made in (part.segments(1), part.equal_edges()))
    assert RowMap(*ones).same(RowMap(*edges)) and RowMap(*ones).order is None


@settings(max_examples=50)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=90), st.integers(2, 6))
def test_degree_sorted_blocks(lengths, p):
    """Rows and entries are even, and the hubs of a block come first."""
    lengths = np.array(lengths)
    bounds, order = part.degree_sorted().divide(Pattern(len(lengths), lengths), p)
    blocks = [lengths[order[lo:hi]] for lo, hi in zip(bounds, bounds[1:], strict=False)]
    assert all((np.diff(block) <= 0).all() for block in blocks)
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    sums = [block.sum() for block in blocks]
    assert max(sums) - min(sums) <= lengths.max()  # each deal makes up for the last


def test_metis_cuts_where_few_entries_are():
    """Cliques in a ring, their vertices mixed: a clique each, and the arcs of the ring are cut."""
    p, size = 4, 30
    mixed = np.random.default_rng(0).permutation(p * size)
    dense = np.kron(np.eye(p, dtype=bool), np.ones((size, size), bool))
    for clique in range(p):
        dense[clique * size, (clique + 1) % p * size + 1] = True
    dense = dense[np.ix_(mixed, mixed)]
    gb.init("cpu:4", part.metis())
    sets = gb.block_sets(matrix(dense.astype(int)))
    assert sets.rows == (size,) * p and sum(sets.cut) == p and sets.edge_cut == p / dense.sum()
    assert sets.updates == (1,) * p and sets.row_balance == 1


def test_metis_of_other_matrices():
    """Without columns, entries, or a second device there is nothing to cut."""
    for rows in (Pattern(50), Pattern(50, np.zeros(50, int), lambda: np.zeros(0, int)), Pattern(50, np.arange(50))):
        bounds, order = part.metis().divide(rows, 3)
        assert order is None and bounds[0] == 0 and bounds[-1] == 50
    assert part.metis().divide(rows_of(np.eye(9, dtype=bool)), 1)[1] is None
    lone = RowMap(*part.metis().divide(rows_of(np.eye(9, dtype=bool)), 3))  # loops are no neighbours
    assert sum(lone.rows) == 9


def test_metis_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match="pip install pymetis"):
        part.metis()


@pytest.mark.parametrize("each", [0, -1, 2.0, "3"])
def test_segments_want_a_number(each):
    with pytest.raises(InvalidValue, match="positive number of segments"):
        part.segments(each)


def test_deterministic_sessions_keep_the_order_of_rows():
    for made in (part.random(), part.metis(), part.segments(2), part.degree_sorted(),
                 part.degree_separated()):
        with pytest.raises(InvalidValue, match="keeps the order of rows"):
            gb.init("cpu:3", made, deterministic=True)
    gb.init("cpu:3", part.segments(1), deterministic=True)


# ---------------------------------------------------------------- statements on them


def test_the_first_matrix_with_entries_decides():
    """Vectors and matrices from before meet it, at the price of a step that the plan shows."""
    gb.init("cpu:3", part.degree_sorted())
    early, empty = gb.Vector.from_coo([1, 5, 7], [1, 5, 7], size=300), gb.Matrix(int, 300, 300)
    assert empty.T.new().nvals == 0  # it has its blocks
    dense = values(pattern(300, 300, 1))
    A = matrix(dense)
    late = gb.Vector.from_coo([1, 5, 7], [1, 5, 7], size=300)
    assert A._store.rowmap is A._store.colmap is late._store.map is not early._store.map
    assert (A._store.rowmap.order[0], np.argmax((dense > 0).sum(1))) == (np.argmax((dense > 0).sum(1)),) * 2
    assert "remap" in str(gb.explain(plus_times(early @ A)))
    expected = (np.isin(np.arange(300), [1, 5, 7]) * np.arange(300)) @ dense
    for x in (early, late):
        assert np.array_equal(plus_times(x @ A).new().to_dense(fill_value=0), expected)
    assert (A + empty).new().isequal(A) and early.isequal(late)


@pytest.mark.parametrize("name", PARTS)
def test_gates(name):
    """What goes in comes out, in the order of ids."""
    gb.init("cpu:3", PARTS[name])
    dense = values(pattern(200, 200, 4))
    A = matrix(dense)
    assert A._store.rowmap.order is not None
    i, j, vals = A.to_coo()
    assert np.array_equal(np.array([i, j]), np.nonzero(dense)) and np.array_equal(vals, dense[i, j])
    x = np.random.default_rng(1).integers(1, 9, 200)
    v = gb.Vector.from_dense(x)
    assert np.array_equal(v.to_coo()[1], x) and v[17].new().value == x[17] and v[-1].new().value == x[-1]
    where = np.flatnonzero(x > 4)
    w = gb.Vector.from_coo(where[::-1], x[where[::-1]], size=200)
    assert np.array_equal(w.to_coo()[0], where) and np.array_equal(w.to_coo()[1], x[where])
    v[where] = 0
    assert np.array_equal(v.to_dense(), np.where(x > 4, 0, x))
    A[3, 5], A[5, 3] = 77, 78
    assert (A[3, 5].new().value, A[5, 3].new().value, A.get(199, 199, 0)) == (77, 78, dense[199, 199])


@pytest.mark.parametrize("name", PARTS)
def test_positions_are_user_ids(name):
    gb.init("cpu:3", PARTS[name])
    n, dense = 66, values(pattern(66, 66, 5))
    A, i, j = matrix(dense), *np.nonzero(dense)
    assert np.array_equal(indexunary.rowindex(A).new().to_coo()[2], i)
    assert np.array_equal(indexunary.colindex(A).new().to_coo()[2], j)
    for op, k in (("tril", -2), ("triu", 3), ("diag", 1), ("offdiag", 0), ("rowle", 40), ("colgt", 50)):
        kept = {"tril": j <= i - 2, "triu": j >= i + 3, "diag": j == i + 1, "offdiag": j != i, "rowle": i <= 40,
                "colgt": j > 50}[op]
        found = A.select(op, k).new().to_coo()
        assert np.array_equal(found[0], i[kept]) and np.array_equal(found[1], j[kept])
    x = gb.Vector.from_coo(np.arange(0, n, 3), 1, size=n)
    for form in ("list", "bitmap"):
        w = gb.Vector(int, n)
        w(form=form) << indexunary.index(x)
        assert np.array_equal(w.to_coo()[1], np.arange(0, n, 3))
    for method in ("dense", "rows"):
        B = gb.Matrix.from_scalar(1, n, n)
        C = gb.Matrix(int, n, n)
        C(method=method) << gb.semiring.ss.min_secondj(A @ B)
        assert np.array_equal(C.to_coo()[2], C.to_coo()[1]) and C.nvals == n * (dense > 0).any(1).sum()


@pytest.mark.parametrize("name", PARTS)
def test_algorithms(name):
    gb.init("cpu:3", PARTS[name])
    A = rmat(7, 5, seed=3, weights=(1, 255))
    assert A._store.rowmap.order is not None
    source = int(np.argmax(np.diff(A.to_csr()[0])))
    verify.bfs(A, source, *algos.bfs(A, source))
    verify.sssp(A, source, algos.sssp(A, source))
    ranks = algos.pagerank(A, tol=1e-10).ranks
    verify.pagerank(A, ranks, tol=1e-9)
    verify.connected_components(A, algos.connected_components(A))
    undirected = binary.max(A | A.T).new()
    assert algos.triangle_count(undirected) == triangles(undirected)


def triangles(A: gb.Matrix) -> int:
    dense = A.to_dense(fill_value=0) > 0
    np.fill_diagonal(dense, False)
    return int(np.trace(np.linalg.matrix_power(dense.astype(int), 3))) // 6


def test_recorded_loops():
    gb.init("cpu:3", part.random(5))
    A, found = rmat(8, 4, seed=2), []
    for recorded in (False, True):
        level, front = gb.Vector(int, A.nrows), gb.Vector(int, A.nrows)
        parents = gb.Vector(int, A.nrows)
        front[0] = 0
        if recorded:
            with gb.loop() as it:
                level(front.S) << it.index
                parents(front.S) << front
                front(~level.S, replace) << gb.semiring.ss.min_secondi(front @ A)
                it.until(front.nvals == 0)
        else:
            depth = 0
            while front.nvals:
                level(front.S) << depth
                parents(front.S) << front
                front(~level.S, replace) << gb.semiring.ss.min_secondi(front @ A)
                depth += 1
        found.append((level.to_dict(), parents.to_dict()))
    assert found[0] == found[1] and len(found[0][0]) > 50
    verify.bfs(A, 0, level, parents)


def test_a_replica_is_in_the_order_of_ids():
    gb.init("cpu:3", part.random(6))
    dense = values(pattern(170, 170, 8))
    A = matrix(dense)
    whole, expected = A._session.replicas.of(A._store), matrix(dense).to_csr()
    found = A._session.store_to_host(whole)
    assert whole.rowmap.p == 1 and all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


def test_tiles_are_put_together():
    """Whatever the order of the rows and columns of each, and of the result."""
    gb.init("cpu:3", part.random(2))
    dense = [[values(pattern(n, m, seed=n + m, density=0.3)) for m in (50, 7, 0)] for n in (90, 9)]
    made = gb.ss.concat([[matrix(tile) for tile in line] for line in dense])
    assert np.array_equal(made.to_dense(fill_value=0), np.block(dense))


@pytest.mark.parametrize("iso", [False, True])
def test_arrays_of_a_device_are_handed_out(iso):
    """As they are from a GPU's memory: here of the first device."""
    session = gb.init("cpu:3", part.random(7))
    dense = pattern(140, 140, 9).astype(int) if iso else values(pattern(140, 140, 9))
    expected, made = matrix(dense), gb.Matrix(int, 140, 140)
    indptr, cols, vals = expected.to_csr()
    gate.distribute(session, made, Rows(indptr, cols, vals[:1] if iso else vals, 0 if iso else 1), iso)
    assert made.isequal(expected) and made._store.iso == iso


# ---------------------------------------------------------------- what blocks read and write


@settings(max_examples=60)
@given(
    n=st.sampled_from(SIZES[:-1]), m=st.sampled_from(SIZES[:-1]), p=st.sampled_from([1, 2, 5]),
    name=st.sampled_from(list(NAMED)), seed=st.integers(0, 99),
)  # fmt: skip
def test_sets_of_blocks(n, m, p, name, seed):
    gb.init(f"cpu:{p}", NAMED[name]())
    dense = pattern(n, m, seed)
    A = matrix(dense.astype(int))
    sets, (rowmap, colmap) = gb.block_sets(A), A._session.matrix_store(A).numbers[:2]
    for b in range(p):
        mine, own = dense[rowmap.part(b)], np.zeros(m, bool)
        own[colmap.part(b)] = True
        assert (sets.rows[b], sets.entries[b]) == (len(mine), mine.sum())
        assert (sets.inputs[b], sets.outputs[b]) == (mine.any(0).sum(), mine.any(1).sum())
        assert (sets.updates[b], sets.cut[b]) == ((mine.any(0) & ~own).sum(), mine[:, ~own].sum())
        assert sets.columns[b] == own.sum()
        few, apart = sets.delegates[b], np.zeros(m, bool)
        for other in range(0 if colmap.heads is None else p):
            apart[colmap.part(other)[: colmap.heads.rows[other]]] = True
        kinds = mine[few:, ~apart], mine[few:, apart], mine[:few, ~apart], mine[:few, apart]
        assert sets.kinds[b] == tuple(kind.sum() for kind in kinds)
    assert gb.block_sets(A.T) == gb.block_sets(A.T.new())
    if n == m and rowmap.order is None:
        indptr, cols, _ = A.to_csr()
        assert balance.vertex_sets(indptr, cols, rowmap.bounds, np.arange(p)) == (list(sets.inputs), list(sets.updates))


def test_measures_of_a_partition():
    gb.init("cpu:2", part.shares(1, 3))
    A = gb.Matrix.from_coo([0, 0, 1, 2, 3], [1, 2, 3, 0, 3], 1, nrows=4, ncols=4)
    sets = gb.block_sets(A)
    assert sets.rows == (1, 3) and sets.entries == (2, 3) and sets.updates == (2, 1) and sets.cut == (2, 1)
    assert (sets.edge_cut, sets.row_balance, sets.edge_balance) == (3 / 5, 1.5, 1.2)
    assert (sets.needed_bytes(4), sets.pull_bytes(4), sets.push_bytes(4)) == (12, 16, 24)
    none = gb.block_sets(gb.Matrix(int, 0, 0))
    assert (none.edge_cut, none.row_balance, none.needed_bytes()) == (0, 1, 0)


def test_a_pull_moves_the_bytes_that_are_told():
    gb.init("cpu:4", part.random(1))
    A, x = rmat(8, 4, seed=1), gb.Vector.from_dense(np.arange(256.0))
    w = gb.Vector(float, 256)
    with gb.trace() as records:
        w(direction="pull") << plus_times(A @ x)
    sets = gb.block_sets(A)
    assert sum(record.bytes for record in records) == sets.pull_bytes() >= sets.needed_bytes() > 0


@pytest.fixture
def eager():
    """Starts sessions whose pulls bring single values wherever these are fewer."""

    def start(*arguments):
        session = gb.init(*arguments, balance="off")
        session.kernels.costs = session.kernels.costs._replace(step=0.0, row=0.0)

    return start


def pulled(A, x) -> tuple[np.ndarray, int]:
    """A @ x, and the bytes that came from other devices."""
    w = gb.Vector(int, A.nrows)
    with gb.trace() as records:
        w(direction="pull") << plus_times(A @ x)
    return w.to_dense(fill_value=0), sum(record.bytes for record in records if record.step == "gather")


@settings(max_examples=25)
@given(
    n=st.sampled_from(SIZES[:-1]), m=st.sampled_from(SIZES[:-1]), p=st.sampled_from([2, 3, 5]),
    name=st.sampled_from(sorted(NAMED.keys() - {"degree_separated"})),  # for which see test_delegates.py
    dtype=st.sampled_from(["INT64", "INT32", "INT8", "BOOL"]),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_pulls_bring_what_blocks_read(eager, n, m, p, name, dtype, seed):
    """From the second one on, if that is less."""
    eager(f"cpu:{p}", NAMED[name]())
    dense = values(pattern(n, m, seed), seed)
    A, sets = matrix(dense), gb.block_sets(matrix(dense))
    for turn in range(4):
        x = np.random.default_rng(turn).integers(0, 2, m)
        found, moved = pulled(A, gb.Vector.from_dense(x, dtype=dtype))
        assert np.array_equal(found, dense @ x)
        width = gb.dtypes.lookup_dtype(dtype).np_type.itemsize
        assert moved == (sets.needed_bytes(width) if turn else sets.pull_bytes(width))
    some = gb.Vector.from_coo(np.arange(0, m, 2), 3, size=m)  # one value, or places without one: as ever
    assert np.array_equal(pulled(A, some)[0], dense @ (3 * (np.arange(m) % 2 == 0)))


def test_loops_bring_what_blocks_read(eager):
    found = []
    for start in (gb.init, eager):
        start("cpu:3", part.metis())
        A = rmat(7, 3, seed=4)
        found.append(algos.pagerank(A, tol=1e-8).ranks.to_dense())
        verify.pagerank(A, gb.Vector.from_dense(found[-1]), tol=1e-6)
    assert np.allclose(*found, rtol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("spec", present(["cpu:3", "cuda:0*3", "cuda:0-1", "cuda:0-1*2", "cuda:0-3"]))
@pytest.mark.parametrize("repeat", [gb.loop, range])
def test_single_values_are_brought_of_every_size(eager, spec, repeat, monkeypatch):
    """GPUs take those of full vectors from where they lie, in loops, too."""
    monkeypatch.setattr(compiled, "MET", -1)
    eager(spec)
    A = gb.io.generate.grid_road(70, 0.7, seed=1, dtype="BOOL")
    n, (rows, cols) = A.nrows, A.to_coo(values=False)[:2]
    for dtype in ("INT8", "INT16", "FP32", "FP64"):
        x = gb.Vector.from_dense(np.arange(n) % 100, dtype=dtype)
        expected = x.to_dense()
        for _ in range(20):
            other = np.full(n, 0, expected.dtype)
            np.maximum.at(other, rows, expected[cols])
            expected = np.where(other > 0, other, expected) % 64 + 1
        if repeat is gb.loop:
            with gb.loop(20):
                x(gb.binary.second) << max_second(A @ x).new(direction="pull")
                x << x % 64 + 1
        else:
            for _ in range(20):
                x(gb.binary.second) << max_second(A @ x).new(direction="pull")
                x << x % 64 + 1
        np.testing.assert_array_equal(x.to_dense(), expected)
        assert x._store.form == "full" and (A._store.halo is not None or A._store.near)
    if spec.startswith("cuda") and repeat is range:  # as statements do that are not captured
        assert "pull_far" in {kind for kind, _ in gb.settings.session().kernels._launchers}


def test_few_rows_are_brought_whole():
    gb.init("cpu:3", part.metis())
    A, x = matrix(np.eye(300, dtype=int)), gb.Vector.from_dense(np.arange(300))
    sets = gb.block_sets(A)
    assert sets.needed_bytes() == 0 and [pulled(A, x)[1] for _ in range(3)] == [sets.pull_bytes()] * 3


def test_sets_are_of_a_matrix():
    with pytest.raises(TypeError, match="a Matrix"):
        gb.block_sets(gb.Vector(int, 3))


@pytest.mark.parametrize("shares", [(1,), (1, 1), (1, 97, 2), (3, 0, 1, 40, 1)])
def test_what_is_read_beside_own_rows(shares):
    """Owners' values, packed and put as a Near says, are those of the columns in their order."""
    rng = np.random.default_rng(len(shares))
    devices = gb.init(f"cpu:{len(shares)}", gb.partition.shares(*shares)).devices
    session, n = gb.settings.session(), 700
    A = gb.Matrix.from_coo(*rng.integers(0, n, (2, 900)), 1.0, nrows=n, ncols=n, dup_op="first")
    store = A._store
    map = store.colmap
    orders = [rng.permutation(np.unique(block.cols[: block.nnz])).astype(np.int32) for block in store.blocks]
    x, counts = rng.random(map.nslots), []
    assert near(store, devices, orders, session.over, lambda *given: counts.append(given)) is None
    found = near(store, devices, orders, session.over, lambda few, all: True)
    spans = [(map.first_slot(b), map.first_slot(b) + rows) for b, rows in enumerate(map.rows)]
    remote = [np.sum((order < lo) | (order >= hi)) for order, (lo, hi) in zip(orders, spans, strict=True)]
    assert counts == [(sum(remote), (len(shares) - 1) * n)]
    for b, order in enumerate(orders):
        there = np.full(found.sizes[b], np.nan)
        there[: map.rows[b]] = x[map.first_slot(b) :][: map.rows[b]]
        for owner, begin, at, length in found.pieces[b]:
            assert owner != b and begin % 64 == at % 64 == 0
            there[at : at + length] = x[map.first_slot(owner) + found.asked[owner][begin : begin + length]]
        assert np.array_equal(there[found.orders[b]], x[order])


@pytest.mark.parametrize("shares", [(1, 1), (1, 97, 2), (0, 1, 1, 0)])
@pytest.mark.parametrize("n", [1, 3, 65, 700])
def test_pulls_find_what_they_read_beside_own_rows(shares, n, monkeypatch):
    """CPU kernels that read columns in an order of their own, as streams of GPUs do."""
    kernels = gb.init(f"cpu:{len(shares)}", gb.partition.shares(*shares)).kernels
    rng, used, plain = np.random.default_rng(n), [], kernels.pull_layout

    def order_of(block):
        named = np.unique(block.cols[: block.nnz]).astype(np.int32)
        return block.views.setdefault("order", rng.permutation(named))

    def layout(device, block, spec, x, width, masked, fixed):
        if getattr(x, "order", None) is None:
            return plain(device, block, spec, x, width, masked, fixed)
        used.append(block)
        places, cols = np.zeros(width, block.cols.dtype), block.cols.copy()
        places[order_of(block)] = x.order
        cols[: block.nnz] = places[cols[: block.nnz]]
        block = MatrixBlock(block.n, block.indptr, cols, block.vals, block.stride, block.nnz, block.empty_rows)
        found = plain(device, block, spec, x, width, masked, fixed)
        return found._replace(kind="pull_stream", kernel=found.kernel or kernels.get("pull", found.spec or spec))

    monkeypatch.setattr(kernels, "pull_layout", layout)
    monkeypatch.setattr(kernels, "costs", kernels.costs._replace(link=1.0, step=0.0))
    rows, cols = rng.integers(0, n, (2, 2 * n))
    for dtype in ("FP32", "INT8", "BOOL"):
        kind = gb.dtypes.lookup_dtype(dtype).np_type
        A = gb.Matrix.from_coo(rows, cols, rng.integers(1, 5, 2 * n).astype(kind), nrows=n, ncols=n, dup_op="first")
        held, some = rng.integers(0, 3, n).astype(kind), np.flatnonzero(rng.random(n) < 0.5)
        for x in (gb.Vector.from_dense(held), gb.Vector.from_coo(some, held[some], size=n)):
            for mask in (None, x.S):
                monkeypatch.setattr(kernels, "by_use", lambda *given: None)
                expected = max_second(A @ x).new(mask=mask, direction="pull")
                monkeypatch.setattr(kernels, "by_use", lambda block, spec, masked: None if masked else order_of(block))
                for _ in range(8):
                    assert max_second(A @ x).new(mask=mask, direction="pull").isequal(expected)
        assert A._store.near and sum(A.memory().values()) > A._store.near.orders[0].nbytes
    assert used
