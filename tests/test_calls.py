"""Calls that are left to the first of several devices: CPU devices stand for GPUs, and a clock of ours tells what took
less."""

from __future__ import annotations

import json
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph as csgraph
from test_moving import free

import algos
import gbgpu as gb
from algos import verify
from gbgpu import report
from gbgpu.balance import Policy
from gbgpu.device.remote import RemoteDevice
from gbgpu.engine import calls
from gbgpu.engine.calls import TOLD, USUAL, Folding
from gbgpu.language import program
from gbgpu.semiring import plus_times

ALL = 2 * (USUAL + TOLD)  # calls until it is settled


class Clock:
    """Seconds that calls say they took, and which way each went."""

    def __init__(self) -> None:
        self.now, self.gone = 0.0, ""

    def tick(self, alone: float, apart: float) -> None:
        session = gb.settings.session()
        self.now += alone if session.maps.alone else apart
        self.gone += "1" if session.maps.alone else "."


@pytest.fixture(autouse=True)
def python(monkeypatch):
    """Calls run as Python: here it is counted which way each goes."""
    monkeypatch.setattr(program.Programs, "_recorded", lambda *call: program.NOT_RECORDED)


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(calls, "perf_counter", lambda: found.now)
    return found


@pytest.fixture
def three():
    found = gb.init("cpu:3", gb.partition.shares(1, 5, 3))
    found.folding = Folding(found)
    return found


def test_ranks_with_gpus_fold_no_calls():
    """Devices of other ranks have no number of a GPU."""
    kernels, replicas = SimpleNamespace(kind="cuda"), SimpleNamespace(most="auto")
    given = {"kernels": kernels, "devices": [RemoteDevice("there")], "folds": True, "replicas": replicas}
    found = SimpleNamespace(ranks=object(), **given)
    assert calls.folding_of(found) is None


def timed(clock, function, alone=1e-3, apart=2e-3):
    @gb.program
    def call(*args, **kwargs):
        clock.tick(alone, apart)
        return function(*args, **kwargs)

    return call


def doubled(A):
    v = gb.Vector("FP64", A.nrows)
    v[:] = 1
    v << plus_times(A @ v)
    return v


def graph():
    return gb.io.rmat(9, 6, seed=3, weights=(1, 255))


@pytest.mark.parametrize(("alone", "apart", "left"), [(1e-3, 2e-3, "1"), (2e-3, 1e-3, "."), (0.99e-3, 1e-3, ".")])
def test_what_took_less_is_for_good(alone, apart, left, three, clock):
    A, call = graph(), timed(clock, doubled, alone, apart)
    store, expected = A._store, A.to_scipy_sparse() @ np.ones(A.nrows)
    for _ in range(ALL + 9):
        np.testing.assert_allclose(call(A).to_dense(0), expected)
        assert A._store is store and not three.maps.alone
    assert clock.gone == "." * USUAL + "1" * (USUAL + TOLD) + "." * TOLD + left * 9
    other = timed(clock, doubled, alone, apart)
    other(A)
    A[0, 0] = 5  # another matrix now
    call(A)
    assert clock.gone.endswith("..")


@pytest.mark.parametrize(("alone", "apart"), [(1e-3, 2e-3), (2e-3, 1e-3)])
def test_traces_have_calls_with_what_was_decided(alone, apart, three, clock, tmp_path):
    A, call, last = graph(), timed(clock, doubled, alone, apart), []

    def traced():
        with gb.trace() as records:
            call(A)
        (found,) = [record for record in records if record.step == "call"]
        assert found is records[-1] and found.device == "cpu:0"
        assert len({record.statement for record in records}) == 3
        last[:] = records
        (event,) = [event for event in report.chrome_trace(records)["traceEvents"] if event["name"] == "call"]
        return found, json.loads(json.dumps(event["args"])).get("decision")

    for _ in range(3):  # what is traced is no trial
        found, told = traced()
        assert found.decision is told is None and found.text == "call, all GPUs"
    for _ in range(ALL):
        call(A)
    found, told = traced()
    assert clock.gone == "." * (3 + USUAL) + "1" * (USUAL + TOLD) + "." * TOLD + ("1" if alone < apart else ".")
    assert found.text == ("call, the first GPU" if alone < apart else "call, all GPUs")
    (action, devices) = ("fold", [0]) if alone < apart else ("leave", [0, 1, 2])
    assert told["action"] == action and told["devices"] == devices
    least = pytest.approx(min(alone, apart))
    assert told["plain"] == pytest.approx(apart) and told["predicted"] == told["observed"] == least
    assert told["gained"] == pytest.approx(apart - min(alone, apart))
    report.plot(last, tmp_path / "trace.svg")
    assert "call " not in (tmp_path / "trace.svg").read_text()


def test_long_calls_stay(three, clock):
    A, call = graph(), timed(clock, doubled, 1e-3, 21e-3)
    for _ in range(ALL):
        call(A)
    assert clock.gone == "." * ALL


def test_a_trial_ends_where_one_device_is_busy_for_longer_than_all_took(three, clock, monkeypatch):
    """Its second call alone settles that: the first one also copies the matrix."""
    device = three.devices[0]
    monkeypatch.setattr(device, "waited", 0.0, raising=False)

    def busy(A):
        device.waited += 3e-3 if three.maps.alone else 0.0
        return doubled(A)

    A, call = graph(), timed(clock, busy, 4e-3, 2e-3)
    for _ in range(ALL):
        call(A)
    assert clock.gone == "." * USUAL + "11" + "." * (ALL - USUAL - 2)


def test_large_matrices_stay(three, clock, monkeypatch):
    A, call = graph(), timed(clock, doubled)
    monkeypatch.setattr(three.kernels, "costs", three.kernels.costs._replace(pull_edge=calls.LONGEST / (A.nvals - 1)))
    for _ in range(USUAL + 1):
        call(A)
    assert clock.gone == "." * (USUAL + 1)


def test_nobody_waits_for_gpus_while_another_thread_captures(three, clock, monkeypatch):
    A, call, owned = graph(), timed(clock, doubled), []
    for device in three.devices:
        monkeypatch.setattr(device, "synchronize", lambda: owned.append(three.lock.owned))
    call(A)
    assert owned == [True] * 6


def test_without_room_calls_stay(three, clock, monkeypatch):
    A, call = graph(), timed(clock, doubled)
    asked = []
    monkeypatch.setattr(three.replicas, "fit", lambda *given: asked.append(given))
    for _ in range(USUAL + 5):
        call(A)
    assert clock.gone == "." * (USUAL + 5) and len(asked) == 1


def test_algorithms_left_to_one_device_compute_the_same(devices, monkeypatch):
    """Ways change, as they do on trial; loops are captured either way."""
    session, gone = gb.settings.session(), []
    session.folding = Folding(session)
    monkeypatch.setattr(gb.settings, "interpret", False)
    monkeypatch.setattr(calls.Calls, "folded", property(lambda self: len(gone) % 7 > 2))
    A = graph()
    S, store = A.to_scipy_sparse(), A._store
    hops = csgraph.dijkstra(S, unweighted=True, indices=3)
    paths = csgraph.dijkstra(S, indices=3)
    count, labels = csgraph.connected_components(S, directed=False)
    first = np.array([np.flatnonzero(labels == label)[0] for label in range(count)])
    ranks = nx.pagerank(nx.from_scipy_sparse_array(S, create_using=nx.DiGraph), weight=None, tol=1e-9)
    for _ in range(14):
        levels = algos.bfs_levels(A, 3)
        np.testing.assert_array_equal(levels.to_dense(-1), np.where(hops < np.inf, hops, -1))
        tree = algos.bfs(A, 3)
        verify.bfs(A, 3, *tree)
        np.testing.assert_array_equal(algos.sssp(A, 3).to_dense(-1), np.where(paths < np.inf, paths, -1))
        found = algos.connected_components(A)
        np.testing.assert_array_equal(found.to_dense(), first[labels])
        by_rank = algos.pagerank(A, tol=1e-9).ranks
        np.testing.assert_allclose(by_rank.to_dense(), [ranks[i] for i in range(A.nrows)], atol=1e-6)
        one = session.maps.first(A.nrows)
        if len(gone) % 7 > 2:
            assert levels._store.map is tree.parents._store.map is found._store.map is one
        assert A._store is store and not session.maps.alone
        gone.append(levels._store.map)
        x = gb.Vector(int, A.nrows)
        x[:] = 1
        x << levels + x  # with what lies on all devices
        assert levels._store.map is x._store.map is A._store.rowmap
        np.testing.assert_array_equal(x.to_dense(0), np.where(hops < np.inf, hops + 1, 1))


def test_what_a_call_raises_leaves_all_devices_at_work(three, clock, monkeypatch):
    monkeypatch.setattr(calls.Calls, "folded", property(lambda self: True))
    A = gb.Matrix.from_coo([0, 1, 2], [1, 2, 0], [1, 1, -3], nrows=200, ncols=200)
    store = A._store
    for error, source in ((gb.errors.InvalidValue, 0), (gb.errors.IndexOutOfBound, 200), (TypeError, "0")):
        with pytest.raises(error):
            algos.sssp(A, source)
        assert A._store is store and not three.maps.alone
    assert free(three) == [True]

    def broken(store):
        raise MemoryError("no room")

    monkeypatch.setattr(three.replicas, "of", broken)
    with pytest.raises(MemoryError):
        algos.sssp(A, 0)
    assert A._store is store and not three.maps.alone
    assert doubled(A).nvals == 3


def test_calls_that_are_not_folded(three, clock, monkeypatch):
    monkeypatch.setattr(calls.Calls, "folded", property(lambda self: True))
    A, call = graph(), timed(clock, lambda A, *others: doubled(A))
    v = doubled(A)
    call(A.T.new(), A.T)
    with gb.loop(2):
        call(A)
        v << v + 1
    nothing = gb.Matrix(int, 100, 100)
    timed(clock, lambda A: A.nvals)(nothing)
    timed(clock, lambda: None)()
    with gb.explain() as text:
        call(A)
    assert "@" in str(text)
    assert set(clock.gone) == {"."}
    call(A, 4, "x")
    assert clock.gone.endswith("1")
    call(A, v, gb.Vector(int, A.nrows))  # vectors are brought
    assert clock.gone.endswith("11") and v._store.map is A._store.rowmap
    inner = timed(clock, lambda A: algos.bfs_levels(A, 0))  # one within another
    inner(A)
    assert clock.gone.endswith("111") and not three.maps.alone


def test_a_matrix_that_a_call_changes_keeps_what_it_got(three, clock, monkeypatch):
    monkeypatch.setattr(calls.Calls, "folded", property(lambda self: True))
    A = graph()
    expected = A.to_scipy_sparse().toarray() * 2

    def change(A):
        A << A.apply(gb.binary.times, right=2)

    timed(clock, change)(A)
    assert clock.gone == "1"
    np.testing.assert_array_equal(A.to_scipy_sparse().toarray(), expected)
    np.testing.assert_allclose(doubled(A).to_dense(0), expected.sum(1))


def test_who_folds(monkeypatch):
    """Several GPUs, as test_algorithms_... has them; not CPU devices, which statements cost little."""
    session = gb.init("cpu:3")
    monkeypatch.setattr(session.kernels, "kind", "cuda")
    for number, device in enumerate(session.devices):
        monkeypatch.setattr(device, "gpu", number, raising=False)
    assert calls.folding_of(session) is not None
    for balance, folds in (("off", False), (Policy(fold=False), False), (Policy(steal=False), True)):
        assert gb.init("cpu:3", balance=balance).folds is folds
    monkeypatch.setattr(session, "folds", False)
    assert calls.folding_of(session) is None
    monkeypatch.undo()
    for devices in ("cpu:3", "cpu:1"):
        assert gb.init(devices).folding is None
    assert algos.bfs_levels.__name__ == "bfs_levels"
    assert gb.program(len)([1]) == 1
