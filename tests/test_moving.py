"""Objects whose rows go to other owners: statements and loops mean the same wherever rows lie, and move in between."""

from __future__ import annotations

from threading import Thread

import numpy as np
import programs as p
import pytest
from checked import verified
from conftest import Devices, present
from hypothesis import given, note, settings
from oracle import Run
from scipy.sparse import csgraph
from test_loops_compiled import by_itself, by_python, levels, road
from test_repartitioning import clocks
from test_statements import KINDS

import algos
import gbgpu as gb
from gbgpu import semiring
from gbgpu.balance import Policy
from gbgpu.distribute.blocks import KNOWN
from gbgpu.distribute.rowmap import RowMap
from gbgpu.engine import loop as engine_loop
from gbgpu.engine import moving, repartitioning, sharing
from gbgpu.engine.loop import device as compiled
from gbgpu.engine.loop.body import reads_of
from gbgpu.engine.loop.single_device import SingleDevice
from gbgpu.engine.session import Session

SETS = present(["cpu:3", "cuda:0*3", "cuda:0-1", "cuda:0-1*2"])


def move_all(session, rng) -> int:
    """Every map in use gets a successor whose blocks begin anywhere."""
    maps = {id(map): map for known in (session.maps._made, session.maps._defaults) for map in known.values()}
    found = [map for map in maps.values() if map.p > 1 and map.order is None and map.n]
    for map in found:
        inner = np.sort(rng.integers(0, map.n + 1, map.p - 1))
        moving.succeed(session, map, RowMap(np.r_[0, inner, map.n]))
    return len(found)


def leave(session, statement, rng) -> None:
    """Some vectors of a statement lie on the first device, as a loop leaves them."""
    for x in (statement.output, *reads_of(statement)):
        store = x._store if x.ndim == 1 else None
        if store is not None and store.form in KNOWN and store.map.p > 1 and rng.random() < 0.3:
            x._store = moving.moved(session, store, store.form, session.maps.first(x.size))
            session.maps.left(x.size)


@pytest.fixture(params=SETS)
def spec(request, monkeypatch):
    monkeypatch.setattr(gb.settings, "interpret", request.param.startswith("cpu"))
    return request.param


@pytest.fixture
def unsettled(monkeypatch):
    """All rows move before every other statement, and some vectors to one device; the list of how many maps did."""
    rng, run, moves = np.random.default_rng(5), Session._run, []

    def unsettled(session, statement, *more):
        if session.made is None and session.capturing is None and not session.maps.alone and rng.random() < 0.5:
            moves.append(move_all(session, rng))
            leave(session, statement, rng)
        return run(session, statement, *more)

    monkeypatch.setattr(Session, "_run", unsettled)
    return moves


@settings(max_examples=1000 if p.WIDE else 30)
@given(program=p.programs(KINDS["mixed"]))
def test_random_statements(spec, unsettled, program):
    devices = Devices(spec)
    note(devices.text())
    devices.start()
    Run(program, devices).all()


def test_algorithms(spec, unsettled):
    gb.init(spec)
    A = gb.io.rmat(7, 6, seed=3, weights=(1, 255))
    verified(A)
    assert sum(unsettled) > 10


def test_loops_go_on_by_themselves(spec, monkeypatch):
    """Rounds that were kept for the old rows are not taken; others are captured on the new ones."""
    monkeypatch.setattr(gb.settings, "interpret", False)
    monkeypatch.setattr(compiled, "MET", -1)  # GPUs go round together
    session, rng = gb.init(spec), np.random.default_rng(3)
    A = road()
    expected = by_python(A)[0].to_dense(-1)
    for _ in range(3):
        for _ in range(2):
            it, level, _ = levels(A)
            np.testing.assert_array_equal(level.to_dense(-1), expected)
            assert by_itself(it), it.how
        assert move_all(session, rng)


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_matrix_moves_once_and_with_its_transpose(spec, symmetric):
    session = gb.init(spec)
    A = gb.io.rmat(9, 4, seed=1, weights=(1, 9), dtype="INT64", symmetric=symmetric)
    again, dense, x = A.dup(), A.to_scipy_sparse().toarray(), np.arange(A.nrows)
    again._store = A._store  # as handles share what neither changes
    v = gb.Vector.from_dense(x)
    np.testing.assert_array_equal(semiring.plus_times(A.T @ v).new().to_dense(0), dense.T @ x)
    old = A._store
    move_all(session, np.random.default_rng(1))
    assert A._store is old and v._store.map is old.rowmap  # nobody has asked yet
    np.testing.assert_array_equal(semiring.plus_times(A @ v).new().to_dense(0), dense @ x)
    assert A._store is not old and v._store.map is A._store.rowmap is not old.rowmap
    assert (A._store.transposed is None) is (old.transposed is None) and A._store.symmetric is old.symmetric
    for _ in range(2):  # the other handle has the first store until then
        move_all(session, np.random.default_rng(2))
        np.testing.assert_array_equal(semiring.plus_times(A @ v).new().to_dense(0), dense @ x)
    for direction in ("pull", "push"):
        found = semiring.plus_times(again.T @ v).new(direction=direction)
        np.testing.assert_array_equal(found.to_dense(0), dense.T @ x)
    assert again._store is A._store and again.isequal(A)
    fresh = gb.Vector(int, A.nrows)
    fresh << v
    assert fresh._store.map is A._store.rowmap
    np.testing.assert_array_equal(A.to_scipy_sparse().toarray(), dense)


def test_blocks_without_rows_have_the_one_value(spec):
    """Memory that was just given back, full of other values, is what a new block gets."""
    session = gb.init(spec)
    A = gb.Matrix.from_coo([0, 1, 700, 999], [5, 700, 3, 999], 5, nrows=1000, ncols=1000, dtype="INT64")
    v = gb.Vector.from_coo([5, 3, 999], 1, size=1000, dtype="INT64")
    for _ in range(64):
        gb.Vector.from_dense(np.full(1, 67))
    moving.succeed(session, A._store.rowmap, RowMap(np.r_[0, [0] * (len(session.devices) - 2), 600, 1000]))
    for direction in ("pull", "push"):
        found = semiring.min_first(A @ v).new(direction=direction)
        assert found.to_dict() == {0: 5, 700: 5, 999: 5}
    values = [session.devices[b].get(block.vals[:1])[0] for b, block in enumerate(A._store.blocks)]
    assert values == [5] * len(session.devices)
    assert session.home.get(session.replicas.of(A._store).blocks[0].vals[:1])[0] == 5


@pytest.mark.parametrize("form", ["list", "bitmap"])
def test_one_value_becomes_that_of_each_entry(spec, form):
    """As captured rounds want it that write single values."""
    session, ids = gb.init(spec), [3, 64, 65, 199]
    v = gb.Vector.from_coo(ids, True, size=200)
    v(form=form) << v.apply(gb.unary.identity)
    store = v._store
    v._store = moving.moved(session, store, "bitmap", store.map, False)
    assert store.iso and not v._store.iso and v._store.form == "bitmap"
    found, values = v.to_coo()
    assert found.tolist() == ids and values.all()
    assert moving.moved(session, store, "bitmap", store.map).iso


@pytest.mark.parametrize("dtype", ["BOOL", "INT16", "FP32", "INT64"])
@pytest.mark.parametrize("one_value", [False, True])
@pytest.mark.parametrize("form", ["full", "bitmap", "list"])
def test_parts_of_vectors(spec, form, one_value, dtype):
    """Between maps whose blocks begin with whole words, empty ones among them, and to one device and back."""
    session, rng = gb.init(spec), np.random.default_rng(7)
    n, count = 64 * 90 + 17, len(session.devices)
    places = np.arange(n) if form == "full" else np.sort(rng.choice(n, n // 3, replace=False))
    values = rng.integers(1, 2 if one_value else 100, len(places)).astype(dtype.lower().replace("fp", "float"))
    v = gb.Vector(dtype, n)
    if one_value and form == "full":
        v[:] = values[0]
    else:
        v << gb.Vector.from_coo(places, values[0] if one_value else values, size=n, dtype=dtype)
    store = moving.moved(session, v._store, form, v._store.map)
    store.nvals = len(places)
    for turn in range(6):
        inner = np.sort(rng.integers(0, 91, count - 1)) * 64
        map = session.maps.whole(n) if turn % 3 == 1 else RowMap(np.r_[0, inner, n])
        assert map.plain
        v._store = store = moving.moved(session, store, form, map)
        assert (store.map, store.form, store.nvals) == (map, form, len(places))
        store.nvals = n if form == "full" else None  # counted anew
        got = v.to_coo()
        np.testing.assert_array_equal(got[0], places)
        np.testing.assert_array_equal(got[1], values)
        assert v.nvals == len(places)


def uneven(spec: str, policy, near: bool = False) -> tuple:
    """A session whose last device has nine tenths of the rows of a matrix that is large enough to be cut anew. `near`:
    most of what a row reads is its owner's."""
    p = len(gb.init(spec).devices)
    session = gb.init(spec, gb.partition.shares(*[1] * (p - 1), 9 * (p - 1)), balance=policy)
    if near:
        A = gb.io.grid_road(128, weights=(1, 9), dtype="INT64", seed=2)
    else:
        A = gb.io.generate.rmat(14, 4, seed=2, weights=(1, 9), dtype="INT64")
    if spec.startswith("cpu"):
        session.assigner, session.sharing = None, sharing.Sharing(session, Policy(overhead=0))
    return session, A


@pytest.mark.parametrize("near", [False, True])
def test_uneven_blocks_are_cut_anew(spec, near, monkeypatch):
    """Also where each device has been given what its own rows read, and nothing else."""
    monkeypatch.setattr(gb.settings, "interpret", False)
    session, A = uneven(spec, Policy(overhead=0), near)
    clocks(monkeypatch, *[1.0] * len(session.devices), on=type(session.devices[0]))
    entries, x = A.to_coo(), np.arange(1, A.ncols + 1)
    v, expected = gb.Vector.from_dense(x), A.to_scipy_sparse() @ x
    old = A._store.rowmap
    if near:
        monkeypatch.setattr(session.kernels, "costs", session.kernels.costs._replace(byte=1e-6))
        session.sharing, later = None, (session.sharing, session.repartitioning)
        session.repartitioning = None
        for _ in range(9):
            w = semiring.plus_times(A @ v).new(direction="pull")
            np.testing.assert_array_equal(w.to_dense(0), expected)
        assert A._store.halo is not None or A._store.near
        assert A._store.rowmap is old
        session.sharing, session.repartitioning = later
    for _ in range(30):  # those with which kernels are compiled are not timed
        w = semiring.plus_times(A @ v).new(direction="pull")
        np.testing.assert_array_equal(w.to_dense(0), expected)
    work = np.array(A._store.lengths) + A._store.rowmap.rows
    assert A._store.rowmap is not old and max(work) < 1.3 * work.mean()
    ranks = algos.pagerank(A, tol=0, max_iterations=30).ranks.to_dense()
    assert A._store.rowmap is moving.latest(old) and old.successor is not None
    gb.init("cpu:1")
    alone = algos.pagerank(gb.Matrix.from_coo(*entries, nrows=A.nrows, ncols=A.ncols), tol=0, max_iterations=30)
    np.testing.assert_allclose(ranks, alone.ranks.to_dense(), rtol=1e-12)


def test_without_room_rows_are_shared(monkeypatch):
    monkeypatch.setattr(repartitioning, "ROOM", np.inf)
    monkeypatch.setattr(gb.settings, "interpret", False)
    clocks(monkeypatch, 1.0, 1.0)
    session, A = uneven("cpu:2", Policy(overhead=0))
    v = gb.Vector.from_dense(np.ones(A.ncols))
    for _ in range(400):
        w = semiring.plus_times(A @ v).new(direction="pull")
    assert A._store.shared is not None and A._store.rowmap.successor is None
    np.testing.assert_allclose(w.to_dense(0), A.to_scipy_sparse() @ np.ones(A.ncols))


class LeftToOne(compiled.DeviceLoop):
    """A loop of CPU devices that goes by the first one alone, as thin ones of several GPUs do."""

    _together = False

    def __init__(self, session, *given):
        super().__init__(session, *given)
        self.gpus, self.single = len(session.devices), SingleDevice(session, self.loop)


@pytest.fixture
def left_to_one(monkeypatch):
    monkeypatch.setattr(engine_loop, "DeviceLoop", LeftToOne)
    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:3")


def test_what_a_loop_leaves_on_the_first_device_moves_when_it_is_used(left_to_one):
    A = road(13_000)
    first, home = gb.settings.session().maps.first(A.nrows), A._store.rowmap
    expected = csgraph.dijkstra(A.to_scipy_sparse(), unweighted=True, indices=0).astype(int)
    for _ in range(3):
        it, level, q = levels(A)
        assert by_itself(it), it.how
        assert level._store.map is first and A._store.rowmap is home and q.nvals == 0
        np.testing.assert_array_equal(level.to_dense(-1), expected)
        near, again = gb.Vector("FP32", A.nrows), gb.Vector(bool, A.nrows)
        again[:] = True
        again << (level > 2)  # of one vector that lies there, what is made of it does too
        near << gb.select.valuelt(level, 5)
        assert level.reduce(gb.monoid.max).new() == expected.max()
        assert level._store.map is again._store.map is near._store.map is first
        np.testing.assert_array_equal(again.to_dense(False), expected > 2)
        np.testing.assert_array_equal(near.to_dense(-1), np.where(expected < 5, expected, -1))
        near(gb.binary.plus) << level  # not what is written into
        assert level._store.map is near._store.map is home and again._store.map is first
        again = gb.Vector(int, A.nrows)
        again << level + 0
        assert level._store.map is again._store.map is home and again.isequal(level)
    x, y = (gb.Vector(int, A.nrows) for _ in range(2))
    x[:] = 1
    for rounds in (40, 50):  # what the first one leaves is where the second one finds it
        with gb.loop(rounds) as it:
            y << x + it.index
            x << y + 1
        assert x._store.map is y._store.map is first, it.how
    assert set(x.to_dense()) == {1 + sum(range(40)) + 40 + sum(range(50)) + 50}


def free(session) -> list[bool]:
    """Whether another thread gets the session's lock."""
    found = []
    other = Thread(target=lambda: found.append(session.lock.acquire(timeout=5) and not session.lock.release()))
    other.start()
    other.join()
    return found


def test_loops_of_scalars_are_not_left_to_one_device(left_to_one):
    session, a = gb.settings.session(), gb.Scalar.from_value(0)
    with gb.loop(40):
        a << a + 1
    assert a.value == 40 and not session.maps.alone
    assert free(session) == [True]


def test_algorithms_that_are_left_to_one_device(left_to_one):
    A = gb.io.rmat(8, 6, seed=3, weights=(1, 255))
    for _ in range(3):
        verified(A)
