"""Sessions whose devices compute for each other, and recorded rounds that are decided again. (What the solvers decide:
test_balance.py; random statements and loops run with everything moved that can be: conftest.py.)"""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace as replaced
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import ownership
import pytest
import scipy.sparse
from conftest import present
from hypothesis import given
from hypothesis import strategies as st

import gbgpu as gb
from algos import balancing, bfs, bfs_levels, cli, connected_components, pagerank, sssp, training
from gbgpu import balance, exceptions, replace, semiring
from gbgpu.balance import Policy, constant, replay, rounds, stalled, summary, topology
from gbgpu.balance.problem import checked, seconds_of
from gbgpu.balance.topology import made, shared
from gbgpu.device.cpu import CpuDevice
from gbgpu.distribute.rowmap import RowMap
from gbgpu.engine import assign, dealing, direction, hubs, moving, sharing
from gbgpu.engine.loop import device as compiled
from gbgpu.engine.run import products
from gbgpu.kernels.cpu import CpuKernels
from gbgpu.kernels.interface import Spec

ALL = Policy(fold=False, t1=0, t2=0, overhead=0, rest=0)
FOLD = Policy(t1=0, t2=0, t3=np.inf, overhead=0, rest=0)
ALONE = 0, 1, 0, 0  # shares: one block has all rows
STEADY = Policy(overhead=0, patience=np.inf)  # whatever it takes


def begin(policy, spec="cpu:4", shares=(1, 9, 2, 0)):
    session = gb.init(spec, gb.partition.shares(*shares) if shares else None, balance=policy)
    return session, gb.io.generate.rmat(10, 8, seed=2, weights=(1, 9), dtype="INT64")


def actions(session):
    return {decision.action for arbiter in session.assigner.arbiters.values() for decision in arbiter.log}


@pytest.mark.parametrize("inline", ["always", "never"])
@pytest.mark.parametrize("policy", [ALL, FOLD], ids=["steal", "fold"])
def test_answers_do_not_depend_on_who_computes(policy, inline, monkeypatch):
    monkeypatch.setattr(gb.settings, "inline", inline)

    def results():
        ranks = pagerank(A, tol=1e-12).ranks
        yield from (bfs(A, 3).levels, sssp(A, 3), connected_components(A))
        yield ranks.apply(gb.unary.round).new(), ranks.reduce().value

    session, A = begin("off")
    assert session.assigner is None
    expected = [found.to_coo() if hasattr(found, "to_coo") else found[1] for found in results()]
    session, A = begin(policy)
    found = [found.to_coo() if hasattr(found, "to_coo") else found[1] for found in results()]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert ("fold" if policy.fold else "steal") in actions(session)


def test_a_full_block_gives_to_empty_ones():
    """Every entry is computed once, and no device has much more than its part."""
    session, A = begin(ALL, shares=(0, 1, 0, 0))
    x = gb.Vector.from_dense(np.ones(A.ncols))
    with gb.trace() as records:
        w = semiring.plus_times(A @ x).new(direction="pull")
    np.testing.assert_allclose(w.to_dense(0), A.to_scipy_sparse() @ np.ones(A.ncols))
    pulls = [record for record in records if record.step == "pull"]
    assert sum(record.edges for record in pulls) == A.nvals
    assert max(record.edges for record in pulls) < 0.5 * A.nvals
    assert pulls[0].decision.action == "steal" and pulls[0].decision.observed > 0
    assert [record.tally.edges for record in pulls] == [0, A.nvals, 0, 0]


SHARING = [("cpu:2", (1, 9)), ("cpu:4", (1, 9, 2, 0)), ("cuda:0*3", (1, 5, 3)), ("cuda:0-1", (1, 9))]
SHARING = present([*SHARING, ("cuda:0-1*2", (1, 4, 2, 3)), ("cuda:0-3", (1, 97, 1, 1))])


@pytest.fixture(params=SHARING, ids=lambda each: each[0])
def sharers(request, monkeypatch):
    """Devices that share pulls out once for all, from the first one on, as GPUs do, and deal frontiers out whatever
    that takes."""
    spec, shares = request.param
    here = spec.startswith("cpu")
    monkeypatch.setattr(sharing, "LAID", 0)
    session, A = begin("off" if here else STEADY, spec, shares)
    if here:
        session.sharing = sharing.Sharing(session, STEADY)
    return session, A


def test_pulls_are_shared_once_for_all(sharers):
    session, A = sharers
    full = gb.Vector.from_dense(np.arange(1, A.ncols + 1))
    some = gb.Vector.from_coo(np.arange(0, A.ncols, 3), np.arange(0, A.ncols, 3) + 7, size=A.ncols)
    dense, kept = A.to_scipy_sparse().toarray(), None
    for _ in range(3):
        with gb.trace() as records:
            w = semiring.plus_times(A @ full).new(direction="pull")
        np.testing.assert_array_equal(w.to_dense(0), dense @ np.arange(1, A.ncols + 1))
        assert w.nvals == len(w.to_coo()[0]) == np.count_nonzero(dense.any(1))
        pulls = [record for record in records if record.step == "pull"]
        assert sum(record.edges for record in pulls) == A.nvals and pulls[0].decision.action == "steal"
        assert pulls[0].decision.observed > 0
        assert max(record.edges for record in pulls) < 0.6 * A.nvals
        kept = kept or A._store.shared
        assert A._store.shared is kept and sum(session.held(A).values()) > kept.bytes > 0
        lengths = np.where(dense == 0, np.inf, dense) + np.where(np.arange(A.ncols) % 3, np.inf, np.arange(A.ncols) + 7)
        found = semiring.min_plus(A @ some).new(direction="pull").to_dense(-1)
        np.testing.assert_array_equal(found, np.where(np.isinf(lengths.min(1)), -1, lengths.min(1)))
        masked = semiring.plus_times(A @ full).new(mask=~some.S, direction="pull")
        np.testing.assert_array_equal(masked.to_dense(0), np.where(np.arange(A.nrows) % 3, w.to_dense(0), 0))


def test_loops_pull_as_shared(sharers, monkeypatch):
    """Also while they run on the devices, and in the loops that come after them."""
    session, A = sharers
    monkeypatch.setattr(compiled, "MET", -1)  # GPUs go round together
    entries = A.to_coo()
    for _ in range(4):
        ranks = pagerank(A, tol=0, max_iterations=30).ranks.to_dense()
        shared = [store.shared for store in (A._store, A._store.transposed) if store is not None]
        assert any(shared)
    gb.init("cpu:1")
    alone = pagerank(gb.Matrix.from_coo(*entries, nrows=A.nrows, ncols=A.ncols), tol=0, max_iterations=30)
    np.testing.assert_allclose(ranks, alone.ranks.to_dense(), rtol=1e-12)


def lengths_through(D, ids, vals):
    """The shortest way to each column through the rows `ids` of a matrix, from `vals`; -1 where there is none."""
    found = np.full(D.shape[1], np.iinfo(np.int64).max)
    for i, start in zip(ids, vals, strict=True):
        cols = D.indices[D.indptr[i] : D.indptr[i + 1]]
        np.minimum.at(found, cols, start + D.data[D.indptr[i] : D.indptr[i + 1]])
    return np.where(found == np.iinfo(np.int64).max, -1, found)


@pytest.mark.parametrize("form", ["list", "bitmap", "list of one value"])
def test_frontiers_are_dealt_out(sharers, form):
    """What is beyond the mean goes to others, every entry is computed once, and nothing else changes."""
    (session, A), rng = sharers, np.random.default_rng(3)
    D, n = A.to_scipy_sparse().tocsr(), A.nrows
    for k in (1, 3, 100, 400, n):
        ids = np.sort(rng.choice(n, k, replace=False))
        vals = np.full(k, 7) if "one" in form else rng.integers(1, 99, k)
        q = gb.Vector.from_coo(ids, 7 if "one" in form else vals, size=n)
        if form == "bitmap":
            q = q.apply(gb.binary.plus, right=0).new(form="bitmap")
            assert q.nvals == k  # nobody reads them for this
        some = gb.Vector.from_coo(np.arange(0, n, 2), True, size=n)
        for mask, wanted in ((None, slice(None)), (~some.S, np.arange(n) % 2 == 1)):
            with gb.trace() as records:
                found = semiring.min_plus(q @ A).new(mask=mask, direction="push")
                reached = semiring.any_pair(q @ A).new(mask=mask, direction="push")
            expected = lengths_through(D, ids, vals)
            expected = np.where(np.isin(np.arange(n), np.arange(n)[wanted]), expected, -1)
            np.testing.assert_array_equal(found.to_dense(-1), expected)
            np.testing.assert_array_equal(reached.to_coo()[0], np.flatnonzero(expected >= 0))
            pushes = [record for record in records if record.step == "push"]
            assert sum(record.edges for record in pushes) == 2 * D[ids].nnz
            if 100 <= k < n:
                decision = pushes[0].decision
                assert decision.action == "steal" and decision.observed > 0
                edges, bounds = np.bincount(ids, np.diff(D.indptr)[ids], n), A._store.rowmap.bounds
                blocks = [edges[lo:hi] for lo, hi in zip(bounds, bounds[1:], strict=False)]
                words = [[block[i : i + 64].sum() for i in range(0, len(block), 64)] for block in blocks]
                most, plain = (max(record.edges for record in pushes[: len(pushes) // 2]), max(map(sum, blocks)))
                loose = sum(max(each, default=0) for each in words)  # no word of rows is cut
                assert most < plain and most <= edges.sum() / len(blocks) + loose
    assert A._store.copies and session.replicas.bytes() > 0


@pytest.mark.parametrize("form", ["list", "bitmap"])
@pytest.mark.parametrize("short", [False, True], ids=["blocks", "hubs"])
@pytest.mark.parametrize("direct", [False, True], ids=["copied", "read"])
def test_thieves_read_what_owners_have_by_dealing_only(direct, short, form, monkeypatch):
    monkeypatch.setattr(sharing, "LAID", 0)
    taken, hand = [], dealing.Dealt.hand
    noted = lambda self, task, x: taken.append(task.device != task.block) or hand(self, task, x)  # noqa: E731
    monkeypatch.setattr(dealing.Dealt, "hand", noted)
    with ownership.several(direct=direct) as current:
        session = gb.settings.session()
        session.assigner, session.sharing = None, sharing.Sharing(session, STEADY)
        A = gb.io.generate.rmat(9, 8, seed=2, weights=(1, 9), dtype="INT64")
        D, ids = A.to_scipy_sparse().tocsr(), np.arange(0, A.nrows, 3)
        if short:
            session.sharing._cache(A._store.rowmap, A._store)
            assert A._store.hubs is not None
        for vals in (np.arange(ids.size), 7):
            q = gb.Vector.from_coo(ids, vals, size=A.nrows).apply(gb.unary.identity).new(form=form)
            assert q.nvals == ids.size
            found = semiring.min_plus(q @ A).new(direction="push")
            reached = semiring.any_pair(q @ A).new(direction="push")
            expected = lengths_through(D, ids, np.broadcast_to(vals, ids.shape))
            np.testing.assert_array_equal(found.to_dense(-1), expected)
            np.testing.assert_array_equal(reached.to_coo()[0], np.flatnonzero(expected >= 0))
        assert sum(taken) >= 4 and not current.broken, current.broken


def test_searches_deal_their_frontiers_out(sharers, monkeypatch):
    session, A = sharers
    monkeypatch.setattr(direction, "COUNT", -1)  # all frontiers are counted
    monkeypatch.setattr(direction, "pull_seconds", lambda *given: 1.0)  # and pushed
    entries = A.to_coo()

    def results():
        return [found.to_coo() for found in (bfs(A, 3).levels, sssp(A, 3), bfs_levels(A, 7))]

    with gb.trace() as records:
        found = results()
    assert any(record.step == "push" and record.decision is not None for record in records)
    gb.init("cpu:1")
    A = gb.Matrix.from_coo(*entries, nrows=A.nrows, ncols=A.ncols)
    for got, wanted in zip(found, results(), strict=True):
        np.testing.assert_array_equal(got, wanted)


def cuts_of(groups, owner, shift=6, least=0):
    """The rows of one device's frontier that each of all takes; groups: the edges of groups of rows, of each device."""
    kernel, p, n = CpuKernels().get("deal", Spec()), len(groups), len(groups[0])
    loads = np.array([[sum(each), *each] for each in groups], np.int64).ravel()
    for taker in range(p):
        cuts = np.zeros(2, np.int64)
        kernel(n, loads, p, owner, taker, least, shift, cuts)
        yield tuple(cuts)


def edges_between(cuts, edges, shift):
    """Of groups in which they lie evenly."""
    low, high = (np.interp(cut, np.arange(len(edges) + 1) << shift, np.r_[0, np.cumsum(edges)]) for cut in cuts)
    return high - low


@given(st.data())
def test_devices_deal_rows_out_themselves(data):
    """Each row to one device, what is beyond the mean to those that have less, by what they lack."""
    p, n = data.draw(st.integers(1, 16)), data.draw(st.sampled_from([1, 2, 40]))
    counts = st.lists(st.integers(0, 10**7), min_size=n, max_size=n)
    groups = data.draw(st.lists(counts, min_size=p, max_size=p))
    owner, shift = data.draw(st.integers(0, p - 1)), data.draw(st.integers(6, 20))
    loads, found = np.array([sum(each) for each in groups]), list(cuts_of(groups, owner, shift))
    order = [owner, *(d for d in range(p) if d != owner and found[d][0] < found[d][1])]
    ends = [found[d] for d in order]
    assert ends[0][0] == 0 and ends[-1][1] == 1 << 62
    assert all(one[1] == other[0] for one, other in zip(ends, ends[1:], strict=False))
    mean, lack = loads.mean(), np.maximum(loads.mean() - loads, 0)
    beyond = max(loads[owner] - mean, 0) if lack.any() else 0
    wanted = beyond * lack / max(lack.sum(), 1e-9)
    wanted[owner] = loads[owner] - beyond
    got = [edges_between(cuts, groups[owner], shift) for cuts in found]
    atol = 2 * max(groups[owner]) / (1 << shift) + 1e-3  # rows are whole
    np.testing.assert_allclose(got, wanted, atol=atol)
    alone = list(cuts_of(groups, owner, shift, 10**9))  # not worth it
    assert alone == [(0, (d == owner) << 62) for d in range(p)]


@pytest.mark.parametrize("p", range(1, 17))
def test_even_loads_are_left_to_their_owners(p):
    """However their mean is rounded."""
    for load in (0, 1, 3, 7, 10**9 + 7):
        for owner in (0, p - 1):
            assert list(cuts_of([[load, 0]] * p, owner)) == [(0, (d == owner) << 62) for d in range(p)]


@given(st.data())
def test_slices_are_the_rows_of_a_block(data):
    """By whole words, whatever the shares, and about as many edges as these say."""
    p, group = data.draw(st.integers(1, 5)), 64
    rows = data.draw(st.lists(st.integers(0, 40 * group), min_size=p, max_size=p))
    map = RowMap(np.r_[0, np.cumsum(rows)])
    shift, groups = assign.grouping(map)
    assert shift == 6 and groups == max(-(-max(rows) // group), 1)
    counts = [np.zeros(groups, np.int64) for _ in rows]
    for each, n in zip(counts, rows, strict=True):
        few = -(-n // group)
        each[:few] = data.draw(st.lists(st.integers(0, 99), min_size=few, max_size=few))
    shares = np.zeros((p, p), np.int64)
    for b, each in enumerate(counts):
        cuts = sorted(data.draw(st.lists(st.integers(0, int(each.sum())), min_size=p - 1, max_size=p - 1)))
        shares[b] = np.diff([0, *cuts, int(each.sum())])
    before = [np.r_[0, np.cumsum(each)] for each in counts]
    tasks = dealing.slices(shares, before, map)
    assert [task.device for task in tasks[-p:]] == [task.block for task in tasks[-p:]] == list(range(p))
    assert all(task.device != task.block and task.lo < task.hi for task in tasks[:-p])
    for b, n in enumerate(rows):
        mine = sorted((task.lo, task.hi, task.device) for task in tasks if task.block == b)
        assert mine[0][0] == 0 and mine[-1][1] == n and all(lo % 64 == 0 for lo, *_ in mine)
        assert all(one[1] == other[0] for one, other in zip(mine, mine[1:], strict=False))
        for lo, hi, d in mine:
            got = edges_between((lo, -(-hi // group) * group), counts[b], 6)
            assert abs(got - shares[b][d]) <= 2 * max(counts[b], default=0)


@pytest.mark.parametrize("longest", [1, 64, 65, 2**17, 2**17 + 1, 2**31, 2**40])
def test_groups_of_rows_are_whole_words_and_few(longest):
    shift, groups = assign.grouping(SimpleNamespace(rows=[0, longest]))
    assert shift >= 6 and groups <= 2**11 and groups << shift >= longest > (groups - 1) << shift


def test_what_rounds_took_tells_which_way_they_go(monkeypatch):
    session, A = begin("off", "cpu:2", (1, 9))
    session.sharing = who = sharing.Sharing(session, Policy())
    price, matrix = 100 * sharing.LAID * A.nvals, A._store
    edges = int((price / 2 + 20 * who.policy.overhead) / session.kernels.costs.push_edge)
    apart, dealt, alone = dealing.APART, dealing.DEALT, dealing.ALONE

    def ran(seconds, way, waited=edges, rounds=20, key="loop", able=False):
        waited = 0 if way == alone else waited
        return who.waited(key, [matrix], matrix, dealing.Ran(rounds, seconds, 10**6, waited, way, 0.0), able)

    def way(key="loop"):
        with who.dealing(key, [matrix]):
            assert who._within == (who.way(key, [matrix]) == dealt)
        assert not who._within
        return who.way(key, [matrix])

    monkeypatch.setattr(sharing, "LAID", 100 * sharing.LAID)
    assert not ran(1.0, apart, 0) and not ran(1.0, apart, rounds=3) and matrix.missed == 0  # nothing lost, or told
    while not ran(1.0, apart):
        assert way() == apart and not matrix.copies
    assert way() == dealt and way("other") == apart and not who._lacking(matrix)
    assert ran(1.0, apart)  # another round of the loop, in another direction
    for _ in range(dealing.TRIED):
        assert not ran(0.5, dealt)
    assert not any(ran(2.0, dealt) for _ in range(9)) and way() == dealt  # for good
    assert session.replicas.drop()
    assert not ran(0.5, dealt) and way() == apart and not matrix.copies  # until it would pay again
    while not ran(1.0, apart):
        pass
    assert [ran(1.0, dealt) for _ in range(dealing.TRIED)] == [False] * (dealing.TRIED - 1) + [True]
    assert way() == apart and not any(ran(1.0, apart) for _ in range(99))  # it was no use
    assert who.way("loop", [None]) == who.way("loop", []) == apart


@pytest.mark.parametrize(("took", "deals"), [(0.5, True), (0.97, True), (0.99, False), (3.0, False)])
@pytest.mark.parametrize(("late", "times", "compiled"), [(0, 1, 0), (0, 8, 0), (3, 8, 0), (0, 1, 2)])
def test_statements_deal_frontiers_out_where_that_takes_less(took, deals, late, times, compiled, monkeypatch):
    """Once some pushes went both ways; devices tell of them `late` marks afterwards. In so many of them something was
    compiled: what these took says nothing."""
    session, A = begin("off", "cpu:2", (1, 9))
    session.sharing = who = sharing.Sharing(session, Policy(overhead=0, patience=times))
    done, marks, made, beside = [], [], sharing.Sharing._dealt, SimpleNamespace(seconds=0.0)

    def dealt(*given):
        found = made(*given)
        done[-1] = found is not None
        return found

    def between(device, one, two):
        assert two > one
        if len(marks) - two < 2 * late:
            return None
        return 1e-3 * (took if done[one // 4] else 1.0) * (1.0 if device.index else 0.5)

    def mark(device):
        marks.append(device)
        if len(done) <= compiled:
            beside.seconds += 1
        return len(marks) - 1

    monkeypatch.setattr(sharing, "beside", beside)
    monkeypatch.setattr(CpuDevice, "mark", mark)
    monkeypatch.setattr(CpuDevice, "between", between)
    monkeypatch.setattr(sharing.Sharing, "_dealt", dealt)
    monkeypatch.setattr(sharing, "LAID", 0)
    q = gb.Vector.from_coo(np.arange(A.nrows - 1), 1, size=A.nrows)
    once = None
    for _ in range(40):
        done.append(False)
        found = semiring.min_plus(q @ A).new(direction="push")
        once = found if once is None else once
        assert found.isequal(once)
    first = done.index(False)
    assert times + compiled <= first <= times + compiled + late
    assert done[-16:] == [deals] * 16 and len(marks) <= 4 * (2 * times + compiled + 2 * late)
    with gb.trace() as records:
        semiring.min_plus(q @ A).new(direction="push")
    found = [record.decision for record in records if record.decision is not None]
    assert len(found) == deals
    for decision in found:
        told = [decision.observed, decision.gained]
        assert told == ([None, None] if late else pytest.approx([1e-3 * took, 1e-3 * (1 - took)]))
    if not deals:  # nothing is counted for it any more
        monkeypatch.setattr(direction, "counted_edges", None)
        assert semiring.min_plus(q @ A).new(direction="push").isequal(once)
        assert semiring.plus_times(q @ A).new(direction="push").nvals == once.nvals
    monkeypatch.undo()
    semiring.any_second(q @ A).new(direction="push")  # of its own
    semiring.max_plus(q @ A).new(direction="push")
    assert list(who._trials[A._store]) == [False, True]


@pytest.mark.parametrize(("took", "wanted"), [(0.9, "alone"), (0.99, "apart"), (2.0, "apart")])
@pytest.mark.parametrize("deals", [False, True])
def test_the_first_device_does_it_where_that_takes_least(took, wanted, deals, monkeypatch):
    session, A = begin("off", "cpu:2", (1, 9))
    session.sharing = who = sharing.Sharing(session, Policy())
    monkeypatch.setattr(sharing, "LAID", 0.0 if deals else np.inf)  # copies are never paid for
    seconds, gone = {"apart": 1.0, "dealt": 1.1, "alone": took}, []
    for _ in range(40):
        gone.append(who.way("loop", [A._store]))
        waited = 10**9 if gone[-1] != "alone" else 0
        # of a second two thirds, as others push half as much as is waited for: ten runs pay for two captures
        ran = dealing.Ran(20, seconds[gone[-1]], 10**9, waited, gone[-1], 9.5 * 2 / 3 / 2)
        pushed = A._store if waited else session.replicas.of(A._store)
        told = who.waited("loop", [A._store], pushed, ran, True)
        assert told == (who.way("loop", [A._store]) != gone[-1])
    assert set(gone[:10]) == {"apart"} and gone[10] != "apart" and set(gone[-20:]) == {wanted}
    assert gone.count("dealt") == dealing.TRIED * deals
    assert wanted == "alone" or gone.count("alone") == dealing.TRIED


def copied(session, A):
    """All devices have copies of all blocks."""
    for store in (A._store, session.oriented(A, True)):
        store.copies = {}
        assert session.sharing._copied(session.sharing._lacking(store), store.rowmap, store)


SQUARES = [("cpu:2", (1, 9)), ("cpu:4", (1, 9, 2, 0)), ("cuda:0*3", (1, 5, 0)), ("cuda:0-1", (1, 9))]
SQUARES = present([*SQUARES, ("cuda:0-1*2", (1, 4, 0, 3)), ("cuda:0-3", (1, 97, 1, 1))])
LOOPS = ["walks", "even walks", "two products", "one value", "values as masks", "parents", "levels", "paths"]


@pytest.mark.few(6)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("sharers", SQUARES, indirect=True, ids=lambda each: each[0])
def test_captured_rounds_deal_frontiers_out(sharers, name, in_rounds, monkeypatch):
    """An entry that two devices take, or none, would show in how many walks there are."""
    session, _ = sharers
    monkeypatch.setattr(compiled, "MET", -1)  # GPUs go round together
    monkeypatch.setattr(sharing.Sharing, "dealing", within)
    monkeypatch.setattr(direction, "pull_seconds", lambda *given: 1.0)  # all is pushed
    n, rng = 700, np.random.default_rng(1)
    i = np.r_[np.arange(n - 1), rng.integers(0, n, 900)]  # a path, and what goes back from it
    j = np.r_[np.arange(1, n), np.maximum(i[n - 1 :] - rng.integers(1, 90, 900), 0)]
    ways = gb.Matrix.from_coo(i, j, rng.integers(1, 9, len(i)), nrows=n, ncols=n, dup_op="min")
    copied(session, ways)
    there, hand, masks, all = [], dealing.DealtThere.hand, [], products.Products._masks
    monkeypatch.setattr(dealing.DealtThere, "hand", lambda self, task, x: there.append(task) or hand(self, task, x))
    monkeypatch.setattr(products.Products, "_masks", lambda self, *given: masks.append(1) or all(self, *given))
    entries = ways.to_coo()

    def result(source):
        if name in ("parents", "levels", "paths"):
            call = {"parents": bfs, "levels": bfs_levels, "paths": sssp}[name]
            found = call(ways, source)
            return found.levels if name == "parents" else found
        total, q, seen = gb.Vector(int, n), gb.Vector(int, n), gb.Vector(bool, n)
        q[source] = 1
        with gb.loop(120) as it:
            if name == "walks":
                q << semiring.plus_first(q @ ways)
            elif name == "even walks":
                with it.when(it.index % 2 == 0):
                    q << semiring.plus_first(q @ ways)
                with it.when(it.index % 2 == 1):
                    q << semiring.plus_times(q @ ways)
            elif name == "two products":
                t = semiring.plus_first(q @ ways).new()
                q << semiring.plus_first(t @ ways)
            elif name == "one value":  # that is read
                t = semiring.any_pair(q @ ways).new()
                q << semiring.min_plus(t @ ways)
            else:
                seen(q.S) << q.apply(lambda x: x % 2 == 0)
                q(~seen.V, replace) << semiring.plus_first(q @ ways)
            q << q.apply(lambda x: x % 1009)
            total(gb.binary.plus) << q
            it.until(q.nvals == 0)
        return total

    found = [result(source).to_coo() for _ in range(3) for source in (0, 350, 690)]
    p, rows = len(session.devices), session.maps.of(n).rows
    pairs = {(d, b) for d in range(p) for b in range(p) if rows[b] or d == b}
    assert {(task.device, task.block) for task in there} == pairs
    assert bool(masks) == (name in ("values as masks", "parents", "levels"))
    gb.init("cpu:1")
    ways = gb.Matrix.from_coo(*entries, nrows=n, ncols=n)
    alone = [result(source).to_coo() for source in (0, 350, 690)]
    for got, wanted in zip(found, alone * 3, strict=True):
        np.testing.assert_array_equal(got, wanted)


@contextmanager
def within(self, key, matrices):
    self._within = True
    yield
    self._within = False


def found_by_all(A) -> list:
    ranks = pagerank(A, tol=0, max_iterations=20).ranks.to_coo()
    vectors = bfs(A, 3).levels, sssp(A, 3), bfs_levels(A, 7), connected_components(A)
    return [ranks, *(v.to_coo() for v in vectors)]


@cache
def found_alone() -> list:
    gb.init("cpu:1")
    return found_by_all(gb.io.generate.rmat(10, 8, seed=2, weights=(1, 9), dtype="INT64"))


@pytest.mark.few(8)
@pytest.mark.parametrize("spec", present(["cpu:4", "cuda:0*4", "cuda:0-1"]))
@pytest.mark.parametrize(("steal", "fold", "cached", "moved"), list(product([False, True], repeat=4)))
def test_every_combination_of_actions_gives_the_same(spec, steal, fold, cached, moved, monkeypatch):
    """By statements, all of whose frontiers are counted and pushed, and in loops that devices go round by themselves.
    GPUs fold by a replica on the first one. Each action is taken."""
    cpu = spec.startswith("cpu")
    expected = found_alone()
    monkeypatch.setattr(sharing, "LAID", 0)
    monkeypatch.setattr(sharing.Sharing, "dealing", within)
    policy = Policy(steal, fold, t1=0, t2=0, t3=np.inf, overhead=0, rest=0)
    shares = gb.partition.shares(*(1, 9, 2, 1)[: 2 if spec == "cuda:0-1" else 4])
    session = gb.init(spec, shares, balance=policy, replicas="auto" if fold or cached or steal else 0)
    if not cpu and not fold:
        monkeypatch.setattr(compiled, "MET", -1)  # GPUs go round together
    if cpu and cached:
        session.assigner, session.sharing = None, sharing.Sharing(session, policy)
    A, rng = gb.io.generate.rmat(10, 8, seed=2, weights=(1, 9), dtype="INT64"), np.random.default_rng(4)
    hand, of_hubs = dealing.Dealt.hand, []
    monkeypatch.setattr(dealing.Dealt, "hand", lambda self, *of: of_hubs.append(self.hubs) or hand(self, *of))
    for recorded in (False, True, True, True):
        if moved:
            bounds = np.r_[0, np.sort(rng.integers(0, A.nrows + 1, len(session.devices) - 1)), A.nrows]
            moving.succeed(session, session.maps.of(A.nrows), RowMap(bounds))
        if cached:
            store = session.matrix_store(A)
            session.sharing._cache(store.rowmap, store)
        with nullcontext() if recorded else gb.trace() as records, monkeypatch.context() as patch:
            if not recorded:
                patch.setattr(direction, "COUNT", -1)
                patch.setattr(direction, "pull_seconds", lambda *given: 1.0)
            found = found_by_all(A)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9)
        assert not moved or np.array_equal(session.matrix_store(A).rowmap.bounds, bounds)
        if not recorded:
            taken = {record.decision.action for record in records if record.decision is not None} - {"leave"}
            folds = fold and cpu and not cached
            assert ("fold" in taken) == folds and (folds or ("steal" in taken) == steal)
            assert not cached or any(hubs is not None for hubs in of_hubs) == steal


def test_a_statement_that_fails_is_no_round(monkeypatch):
    """What was decided for it is not charged what came afterwards."""
    session, A = begin(STEADY, "cpu:2", (9, 1))
    q = gb.Vector.from_coo(np.arange(0, A.nrows, 2), 1, size=A.nrows)
    once = semiring.min_plus(q @ A).new(direction="push")
    known = [len(arbiter.log) for arbiter in session.assigner.arbiters.values()]
    with monkeypatch.context() as patch:

        def short(*given):
            assert session.assigner.under_way is not None
            raise MemoryError

        patch.setattr(products.Products, "_workspace", short)
        with pytest.raises(exceptions.OutOfMemory):
            semiring.min_plus(q @ A).new(direction="push")
    assert session.assigner.under_way is None
    assert [len(arbiter.log) for arbiter in session.assigner.arbiters.values()] == known
    assert semiring.min_plus(q @ A).new(direction="push").isequal(once)


def test_copies_of_blocks_are_given_back(monkeypatch):
    session, A = begin("off", "cpu:2", (1, 9))
    session.sharing = sharing.Sharing(session, STEADY)
    q = gb.Vector.from_coo(np.arange(200), 1, size=A.nrows)
    monkeypatch.setattr(sharing, "LAID", 1)
    once = semiring.min_plus(q @ A).new(direction="push")
    assert not A._store.copies and A._store.missed > 0  # not yet
    monkeypatch.setattr(sharing, "LAID", 0)
    assert semiring.min_plus(q @ A).new(direction="push").isequal(once)
    held, store = sum(session.held(A).values()), A._store
    assert list(store.copies) == [(0, 1)]
    offsets = store.blocks[1].indptr.nbytes
    assert session.replicas.bytes() == store.lengths[1] * store.entry_bytes + offsets
    with monkeypatch.context() as patch:  # memory is short while a frontier is handed out
        hand = dealing.Dealt.hand
        patch.setattr(dealing.Dealt, "hand", lambda self, *task: session.replicas.drop() and None or hand(self, *task))
        assert semiring.min_plus(q @ A).new(direction="push").isequal(once)
    assert not A._store.copies and A._store.missed == 0
    assert sum(session.held(A).values()) < held and session.replicas.bytes() == 0
    session.replicas.most = 0  # no room any more: the thief reads rows where they lie
    monkeypatch.setattr(hubs, "PART", 2)
    for _ in range(3):
        with gb.trace() as records:
            assert semiring.min_plus(q @ A).new(direction="push").isequal(once)
    pushes = [record for record in records if record.step == "push"]
    assert len({record.device for record in pushes}) == 2 and pushes[0].decision.action == "steal"
    assert not A._store.copies and session.replicas.bytes() == 0


@pytest.mark.parametrize("link", [0.0, 1e-9, 1.0])
def test_thieves_take_less_of_what_is_far(link, monkeypatch):
    """As much less as reading it takes, and nothing that costs more than it spares."""
    session, A = begin("off", "cpu:2", (1, 9))
    session.sharing = sharing.Sharing(session, STEADY)
    session.replicas.most = 0
    session.kernels.costs = session.kernels.costs._replace(push_edge=1e-9, link=link / A._store.entry_bytes)
    q = gb.Vector.from_dense(np.ones(A.nrows)).apply(gb.binary.plus, right=0).new(form="bitmap")
    monkeypatch.setattr(sharing, "LAID", 0)
    for _ in range(3):
        with gb.trace() as records:
            semiring.min_plus(q @ A).new(direction="push")
    edges = [sum(r.edges for r in records if r.step == "push" and r.device == d.name) for d in session.devices]
    less, most = A._store.lengths
    assert sum(edges) == A.nvals
    assert edges[1] == pytest.approx(most - (most - less) / (2 + link / 1e-9), rel=0.25)  # a small graph


def test_copies_are_paid_for_each_time(monkeypatch):
    session, A = begin("off", "cpu:2", (1, 1))
    session.sharing = sharing.Sharing(session, STEADY)
    pushes = []
    for half in (slice(0, A.nrows // 4), slice(A.nrows - A.nrows // 4, A.nrows)):
        q = gb.Vector.from_coo(np.arange(A.nrows)[half], 1, size=A.nrows)
        monkeypatch.setattr(sharing, "LAID", 1)
        semiring.min_plus(q @ A).new(direction="push")
        lost = A._store.missed
        monkeypatch.setattr(sharing, "LAID", 2.5 * lost / max(A._store.lengths))
        copies, n = len(A._store.copies), 1
        while len(A._store.copies) == copies:
            semiring.min_plus(q @ A).new(direction="push")
            n += 1
        pushes.append(n)
        assert A._store.missed < lost
    assert min(pushes) > 1


def test_devices_with_copies_share_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(sharing, "LAID", 0)
    session, A = begin("off", "cpu:4", (1, 9, 2, 1))
    session.sharing = sharing.Sharing(session, STEADY)
    q = gb.Vector.from_coo(np.arange(A.nrows - 1), 1, size=A.nrows)
    once = semiring.min_plus(q @ A).new(direction="push")
    taken = sorted(A._store.copies)
    del A._store.copies[taken[0]]
    monkeypatch.setattr(session.replicas, "room", lambda bytes: False)
    for _ in range(2):  # the first one finds that out
        with gb.trace() as records:
            assert semiring.min_plus(q @ A).new(direction="push").isequal(once)
    edges = [record.edges for record in records if record.step == "push"]
    assert max(edges) < 0.6 * A.nvals and sorted(A._store.copies) == taken[1:]
    monkeypatch.undo()  # memory is there again
    monkeypatch.setattr(sharing, "LAID", 0)
    for _ in range(2 * sharing.AGAIN):
        assert semiring.min_plus(q @ A).new(direction="push").isequal(once)
    assert sorted(A._store.copies) == taken


@pytest.mark.parametrize("form", ["list", "bitmap", "list of one value"])
def test_hubs_are_cached_where_memory_is_short(sharers, form, monkeypatch):
    """Thieves take these of their places, and owners all others."""
    (session, A), rng = sharers, np.random.default_rng(5)
    D, n, store = A.to_scipy_sparse().tocsr(), A.nrows, A._store
    asked, room = iter([False]), session.replicas.room  # none for whole blocks
    monkeypatch.setattr(session.replicas, "room", lambda bytes: next(asked, True) and room(bytes))
    degree, computed = np.diff(D.indptr), []
    for k in (900, 3, 100, 400, 900):
        ids = np.sort(rng.choice(n, k, replace=False))
        vals = np.full(k, 7) if "one" in form else rng.integers(1, 99, k)
        q = gb.Vector.from_coo(ids, 7 if "one" in form else vals, size=n)
        if form == "bitmap":
            q = q.apply(gb.binary.plus, right=0).new(form="bitmap")
            assert q.nvals == k
        with gb.trace() as records:
            found = semiring.min_plus(q @ A).new(direction="push")
        np.testing.assert_array_equal(found.to_dense(-1), lengths_through(D, ids, vals))
        pushes = [record for record in records if record.step == "push"]
        assert sum(record.edges for record in pushes) == degree[ids].sum()  # each once
        computed.append((max(record.edges for record in pushes), pushes[0].decision))
    assert store.hubs is not None and session.replicas.bytes() > 0
    most, decision = computed[-1]
    owned = [degree[lo:hi].sum() for lo, hi in zip(store.rowmap.bounds, store.rowmap.bounds[1:], strict=False)]
    assert decision.action == "steal" and most < 0.9 * max(owned)
    held = sum(session.held(A).values())
    assert session.replicas.drop() and store.hubs is None and not store.copies
    assert sum(session.held(A).values()) < held


@pytest.mark.parametrize("least", [None, 1, 20, 64, 65, np.inf])
@pytest.mark.parametrize("room", [10**9, 100_000, 30_000, 10])
def test_hubs_are_the_longest_rows_that_there_is_room_for(least, room):
    session, A = begin("off")
    session.replicas.most = room
    store, D = A._store, A.to_scipy_sparse().tocsr()
    lengths, bounds = np.diff(D.indptr), store.rowmap.bounds
    found = hubs.hubs(session, store.rowmap, store, least)
    powers = 2 ** np.arange(11)
    powers = powers[powers >= (2 * A.nvals / A.nrows if least is None else least)]
    offsets = 4 * (A.nrows + len(store.blocks)) + A.nrows // 32
    fits = [power for power in powers if 3 * (12 * lengths[lengths >= power].sum() + offsets) <= room + A.nrows]
    if not fits or lengths[lengths >= fits[0]].sum() < hubs.PART * A.nvals:
        assert found is None
        return
    for b, (block, rows, part) in enumerate(zip(*found, strict=True)):
        mine = lengths[bounds[b] : bounds[b + 1]]
        np.testing.assert_array_equal(np.diff(block.indptr), np.where(mine >= fits[0], mine, 0))
        bits = np.unpackbits(rows.view(np.uint8), bitorder="little")[: len(mine)]
        np.testing.assert_array_equal(bits, mine >= fits[0])
        assert part == pytest.approx(mine[mine >= fits[0]].sum() / max(mine.sum(), 1))
        kept = np.repeat(mine >= fits[0], mine)
        np.testing.assert_array_equal(block.cols, store.blocks[b].cols[: len(kept)][kept])
        np.testing.assert_array_equal(block.vals, store.blocks[b].vals[: len(kept)][kept])


@pytest.mark.parametrize("name", ["min_second", "plus_pair", "min_first"])
@pytest.mark.parametrize("form", ["list", "bitmap"])
def test_values_that_no_product_reads_are_not_dealt_out(sharers, name, form, monkeypatch):
    """Owners and thieves have blocks of different lengths."""
    hand, parts = dealing.Dealt.hand, []

    def handed(dealt, task, source):
        rows, part = hand(dealt, task, source)
        room = part.n if part.slots is None else part.slots.size
        parts.append(part.stride == 0 or part.vals.size >= room)
        return rows, part

    monkeypatch.setattr(dealing.Dealt, "hand", handed)
    _, A = sharers
    ids = np.arange(0, A.nrows, 2)
    q = gb.Vector.from_coo(ids, ids + 1, size=A.nrows).apply(gb.unary.identity).new(form=form)
    assert q.nvals == len(ids)
    op, n, entries = getattr(semiring, name), A.nrows, A.to_coo()
    with gb.trace() as records:
        found = op(q @ A).new(direction="push").to_dense(-1)
    assert any(record.decision for record in records) and len(parts) > 1 and all(parts)
    gb.init("cpu:1")
    alone = gb.Matrix.from_coo(*entries, nrows=n, ncols=n)
    q = gb.Vector.from_coo(ids, ids + 1, size=n)
    np.testing.assert_array_equal(found, op(q @ alone).new(direction="pull").to_dense(-1))


@pytest.mark.parametrize("spec", present(["cpu:2", "cuda:0*3", "cuda:0-1"]))
def test_values_are_brought_where_bits_are_set(spec):
    owner, *_, thief = gb.init(spec).devices
    rng = np.random.default_rng(4)
    for n in (0, 1, 64, 1000, 100_000):
        for dtype in ("int8", "uint16", "float32", "int64"):
            held = rng.integers(0, 99, n).astype(dtype)
            words = rng.integers(-(2**62), 2**62, (n + 63) // 64)
            present = np.unpackbits(words.view(np.uint8), bitorder="little")[:n].astype(bool)
            found = thief.get(thief.where(owner.put(held), thief.put(words)))
            np.testing.assert_array_equal(found[present], held[present])


def test_memory_for_shared_rows_is_given_back():
    session, A = begin("off", "cpu:2", (1, 9))
    session.sharing = sharing.Sharing(session, STEADY)
    x = gb.Vector.from_dense(np.ones(A.ncols))
    many = [semiring.plus_times(A @ x).new(direction="pull") for _ in range(50)]
    assert A._store.shared is not None and all(w.isequal(many[0]) for w in many)
    before = sum(session.held(A).values())
    assert session.replicas.bytes() == A._store.shared.bytes
    assert session.replicas.drop() and A._store.shared is None
    assert session.replicas.bytes() == 0 and sum(session.held(A).values()) < before
    session.replicas.most = 0  # no room any more
    A._store.lost = 0.0
    for _ in range(50):
        assert semiring.plus_times(A @ x).new(direction="pull").isequal(many[0])
    assert A._store.shared is None


def test_a_thief_reads_what_the_owner_has():
    """Owners bring single values of a vector, those that their own rows read."""
    session, A = begin(ALL, shares=(0, 1, 0, 0))
    session.kernels.costs = session.kernels.costs._replace(step=0.0, row=0.0)
    for turn in range(4):
        x = np.random.default_rng(turn).random(A.ncols)
        with gb.trace() as records:
            w = semiring.plus_times(A @ gb.Vector.from_dense(x)).new(direction="pull")
        np.testing.assert_allclose(w.to_dense(0), A.to_scipy_sparse() @ x)
        gathered = sum(record.bytes for record in records if record.step == "gather")
        assert gathered == (0 if turn else 3 * 8 * A.ncols)
    assert A._store.halo is not None and "steal" in actions(session)


@given(st.data())
def test_tasks_are_the_frontier_cut_into_pieces(data):
    """Whatever the shares, each place is in one task, pieces begin at multiples of CHUNK, and every device has one."""
    p = data.draw(st.integers(1, 5))
    before, sizes = [], data.draw(st.lists(st.integers(0, 400), min_size=p, max_size=p))
    for size in sizes:
        each = data.draw(st.lists(st.integers(0, 90), min_size=-(-size // 64), max_size=-(-size // 64)))
        before.append(np.concatenate([[0], np.cumsum(each)]).astype(np.int64))
    shares = np.zeros((p, p), np.int64)
    for b, starts in enumerate(before):
        cuts = sorted(data.draw(st.lists(st.integers(0, int(starts[-1])), min_size=p - 1, max_size=p - 1)))
        shares[b] = np.diff([0, *cuts, int(starts[-1])])
    decision = balance.Decision(1, "steal", tuple(range(p)), balance.Shares(shares, 0.0, 0.0), 0.0, 0.0, 0.0)
    tasks = assign.as_tasks(decision, before, sizes)
    assert {task.device for task in tasks} == set(range(p))
    assert all(task.lo % 64 == 0 for task in tasks)
    for b, size in enumerate(sizes):
        places = sorted((task.lo, task.hi) for task in tasks if task.block == b and task.lo < task.hi)
        assert [hi for _, hi in places[:-1]] == [lo for lo, _ in places[1:]]
        assert not size or (places[0][0], places[-1][1]) == (0, size)


ROWS = {
    "random": lambda rng, n: rng.integers(0, 99, n),
    "a hub with everything": lambda rng, n: np.where(np.arange(n) == rng.integers(0, max(n, 1)), 10**6, 1),
    "empty rows": lambda rng, n: rng.integers(1, 50, n) * (rng.random(n) < 0.05),
    "all in one row": lambda rng, n: np.where(np.arange(n) == rng.integers(0, max(n, 1)), 5000, 0),
}


@given(st.sampled_from([*ROWS]), st.sampled_from([0, 1, 3, 63, 64, 65, 700]), st.integers(1, 9), st.integers(0, 2**32))
def test_slices_are_cut_between_any_two_rows(kind, n, p, seed):
    """A slice has the edges wanted but for one row's; also with more devices than rows."""
    rng = np.random.default_rng(seed)
    degrees = [ROWS[kind](rng, n if b % 2 else n // 2).astype(np.int64) for b in range(p)]
    prefix = [np.r_[0, np.cumsum(each)] for each in degrees]
    shares = np.array([rng.multinomial(one[-1], rng.dirichlet(np.full(p, 0.5))) for one in prefix])
    decision = balance.Decision(1, "steal", tuple(range(p)), balance.Shares(shares, 0.0, 0.0), 0.0, 0.0, 0.0)
    before = [np.append(one[:-1:64], one[-1]) for one in prefix]
    tasks = assign.as_tasks(decision, before, [*map(len, degrees)], lambda b, lo, hi: degrees[b][lo:hi])
    for b, each in enumerate(degrees):
        mine = [task for task in tasks if task.block == b and task.lo < task.hi]
        assert sorted(place for task in mine for place in range(task.lo, task.hi)) == [*range(len(each))]
        taken = np.zeros(p, np.int64)
        for task in mine:
            taken[task.device] += each[task.lo : task.hi].sum()
            exact = balance.slices(prefix[b], shares[b])[task.device] if shares[b].any() else (0, len(each))
            assert (task.lo, task.hi) == tuple(exact) or shares[b][b] == prefix[b][-1]
        assert abs(taken - shares[b]).max() <= each.max(initial=0)


@given(st.integers(0, 300), st.integers(0, 200), st.integers(0, 200), st.integers(0, 2**32))
def test_bits_move_to_any_place(n, begin, at, seed):
    rng = np.random.default_rng(seed)
    words, out = (rng.integers(-(2**63), 2**63 - 1, -(-size // 64) + 1) for size in (begin + n, at + n))
    bits, wanted = (np.unpackbits(each.view(np.uint8), bitorder="little") for each in (words, out))
    wanted[at : at + n] |= bits[begin : begin + n]
    CpuKernels().get("move_bits", Spec())(n, words, begin, at, out)
    np.testing.assert_array_equal(np.unpackbits(out.view(np.uint8), bitorder="little"), wanted)


def statements(A):
    """Products with frontiers, masks and results of all forms."""
    n = A.nrows
    full, some = gb.Vector.from_dense(np.arange(n)), gb.Vector.from_coo(np.arange(0, n, 3), np.arange(0, n, 3), size=n)
    wide = some.apply(gb.binary.plus, right=1).new(form="bitmap")
    for x in (full, some, wide):
        yield semiring.min_plus(x @ A).new(direction="push")
        yield semiring.min_plus(A @ x).new(direction="pull")
        yield semiring.any_pair(A @ x).new(mask=~some.S, direction="pull")
        yield semiring.plus_times(A @ x).new(mask=wide.S, direction="pull")
    yield semiring.plus_times(A @ full).new(direction="pull")
    w = gb.Vector("INT64", n)  # the mask is of places, and the pull has none
    w(some.S, replace)[np.arange(n)[::-1].tolist()] << semiring.plus_times(A @ full)
    yield w


@pytest.mark.parametrize("shares", [(1, 9, 2, 0), ALONE, (300, 1, 1, 1)], ids=["uneven", "one block", "few rows"])
@pytest.mark.parametrize("order", [False, True], ids=["rows", "random"])
def test_devices_compute_what_was_wanted_but_for_a_row(shares, order):
    gb.init("cpu:1")
    A = gb.io.generate.rmat(10, 8, seed=2, weights=(1, 9), dtype="INT64")
    expected, longest = [w.to_coo() for w in statements(A)], np.diff(A.to_csr()[0]).max()
    gb.init("cpu:4", gb.partition.random(3) if order else gb.partition.shares(*shares), balance=ALL)
    A, seen = gb.io.generate.rmat(10, 8, seed=2, weights=(1, 9), dtype="INT64"), []
    with gb.trace() as records:
        found = [w.to_coo() for w in statements(A)]
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for first in (k for k, record in enumerate(records) if record.decision and record.decision.shares):
        shared, edges = records[first].decision.shares.edges, [record.edges for record in records[first : first + 4]]
        if sum(edges) == shared.sum():  # a pull that stops early, or has a mask, shares rows
            assert (abs(shared.sum(0) - edges) <= longest * np.count_nonzero(shared, axis=0)).all()
            seen.append(records[first].step)
    assert {*seen} == {"push", "pull"}


@pytest.mark.parametrize("form", ["list", "bitmap", "full"])
def test_tallies_count_frontiers(form):
    _, A = begin(ALL)
    degrees = np.diff(A.to_csr()[0])
    ids = np.arange(A.nrows) if form == "full" else np.arange(0, A.nrows, 3)
    x = gb.Vector.from_coo(ids, 1, size=A.nrows)
    if form == "bitmap":
        x(x.S) << 2
    with gb.trace() as records:
        semiring.plus_times(x @ A).new(direction="push")
    found = [record.tally for record in records if record.step == "push"]
    bounds = np.cumsum([0, *A._store.rowmap.rows])
    for tally, lo, hi in zip(found, bounds[:-1], bounds[1:], strict=True):
        mine = balance.Tally.of(degrees[ids[(ids >= lo) & (ids < hi)]])
        assert tally[:2] == mine[:2]
        np.testing.assert_array_equal(tally.histogram, mine.histogram)


@pytest.mark.parametrize("form", ["list", "bitmap", "full"])
def test_tallies_count_in_degrees_where_a_transpose_is_there(form):
    """And costs are learnt from them."""
    gb.init("cpu:4", gb.partition.shares(1, 9, 2, 0), balance=ALL)
    A = gb.io.generate.rmat(10, 8, seed=2, symmetric=False, weights=(1, 9), dtype="INT64")
    ids = np.arange(A.nrows) if form == "full" else np.arange(0, A.nrows, 3)
    x = gb.Vector.from_coo(ids, ids, size=A.nrows)
    x = x if form == "full" else x.apply(gb.unary.identity).new(form=form)
    csr = A.to_scipy_sparse().tocsr()
    degrees, arriving = np.diff(csr.indptr), np.bincount(csr.indices, minlength=A.ncols)
    bounds = np.cumsum([0, *A._store.rowmap.rows])
    for turned in (False, True):
        with gb.trace() as records:
            w = semiring.min_plus(x @ A).new(direction="push")
        pushes = [record for record in records if record.step == "push"][:4]
        for record, lo, hi in zip(pushes, bounds[:-1], bounds[1:], strict=True):
            mine = ids[(ids >= lo) & (ids < hi)]
            wanted = balance.Tally.of(degrees[mine], arriving[mine])
            assert record.tally[:2] == wanted[:2] and (record.tally.into is not None) == turned
            if turned:
                assert record.tally.into[:2] == wanted.into[:2]
                np.testing.assert_array_equal(record.tally.into.histogram, wanted.into.histogram)
        tallies = [record.tally for record in pushes]
        seconds = balance.costs(balance.Polynomial.load("cpu-push")(tallies), shared(4), 8.0)
        assert pushes[0].decision.z == balance.solve(seconds, [tally.edges for tally in tallies]).seconds
        assert semiring.min_plus(x @ A).new(direction="pull").isequal(w)  # which makes the transpose


def test_masked_pulls_tally_the_rows_that_the_mask_lets_through():
    session, A = begin("off")
    mask = gb.Vector.from_coo(np.arange(0, A.nrows, 5), True, size=A.nrows)
    x = gb.Vector.from_dense(np.ones(A.nrows))
    degrees, inside = np.diff(A.to_csr()[0]), np.arange(A.nrows) % 5 == 0
    for chosen, rows in ((mask.S, inside), (~mask.S, ~inside)):
        with gb.trace() as records:
            gb.Vector(float, A.nrows)(chosen) << semiring.plus_times(A @ x)
        found = [record.tally for record in records if record.step == "pull"]
        assert sum(tally.vertices for tally in found) == rows.sum()
        assert sum(tally.edges for tally in found) == degrees[rows].sum()


UNEVEN = made("uneven", np.array([[0, 9, 1, 3], [9, 0, 3, 1], [1, 3, 0, 9], [3, 1, 9, 0]]) * 1e9)


@pytest.mark.parametrize("shares", [(1, 9, 2, 0), ALONE], ids=["uneven", "one block"])
@pytest.mark.parametrize("solver", ["fast", "scip"])
@pytest.mark.parametrize("costs", ["learnt", "flat"])
@pytest.mark.parametrize("links", [None, UNEVEN], ids=["near", "links"])
def test_decisions_are_those_of_problem_and_solver(links, costs, solver, shares):
    """Recomputed from the tallies of a trace; and the results are those of one device, bit for bit."""
    gb.init("cpu:1")
    alone = gb.io.generate.rmat(10, 8, seed=2, weights=(1, 9), dtype="INT64")
    ids = np.arange(0, alone.nrows, 3)

    def results(A):
        q = gb.Vector.from_coo(ids, ids, size=A.nrows)
        full = gb.Vector.from_dense(np.arange(A.ncols))
        pushed = semiring.min_plus(q @ A).new(direction="push")
        return [w.to_coo() for w in (pushed, semiring.plus_times(A @ full).new(direction="pull"), bfs(A, 3).levels)]

    expected = results(alone)
    if links is not None and costs == "flat":
        links = made("slow", links.links / 1e6)  # so that they matter
    policy = replaced(ALL, solver=solver, costs=costs, links=links)
    session, A = begin(policy, shares=shares)
    one = dict.fromkeys(("push_edge", "push_first", "pull_edge"), 1e-2)
    session.kernels.costs = session.kernels.costs._replace(**one)  # flat rounds are long beside SCIP
    with gb.trace() as records:
        found = results(A)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    width, decided = A._store.entry_bytes, []
    for way in ("push", "pull"):
        first = [record for record in records if record.step == way][:4]
        tallies, decision = [record.tally for record in first], first[0].decision
        model = constant(1e-2) if costs == "flat" else balance.Polynomial.load(f"cpu-{way}")
        loads = [tally.edges for tally in tallies]
        given = balance.costs(model(tallies), links or shared(4), width), loads
        given = given if links is None else (*given, balance.traffic(links, width))
        solved = balance.solve(*given)
        assert decision.action == "steal" and decision.z == solved.seconds
        if solver == "scip" and costs == "flat":
            exact = balance.solve_exact(*given)
            assert decision.optimum == decision.to_json()["optimum"] == pytest.approx(exact.seconds, rel=1e-5)
            taken = seconds_of(checked(*given)[1], decision.shares.edges)
            assert taken == pytest.approx(decision.optimum) and decision.optimum <= decision.z
        else:  # learnt rounds of microseconds are left to the fast solver
            assert decision.optimum is None and (decision.shares.edges == solved.edges).all()
        decided.append(decision)
    assert links is None or any(one.shares.edges[1, 0] > one.shares.edges[1, 3] for one in decided)


def test_a_policy_has_as_many_links_as_devices():
    with pytest.raises(exceptions.InvalidValue, match="links of 2 devices in a policy; came 4"):
        gb.init("cpu:2", balance=Policy(links=UNEVEN))
    assert gb.init("sim:dgx1-v100").assigner.links is gb.topology()


def test_what_init_is_told_of_balance():
    assert gb.init("cpu:2").assigner is not None and gb.init("cpu:1").assigner is None
    for wrong in ("on", 1, None):
        with pytest.raises(TypeError, match="gb.balance.Policy"):
            gb.init("cpu:2", balance=wrong)


# -- recorded rounds


@pytest.fixture(scope="module")
def skewed():
    """Rounds of a search on eight devices, whose vertices are nearly all on one."""
    gb.init("sim:dgx1-v100", gb.partition.shares(20, 1, 1, 1, 1, 1, 1, 1), balance="off")
    A = gb.io.generate.rmat(12, 16, seed=3, weights=(1, 9), dtype="INT64")
    with gb.trace() as records:
        sssp(A, 1)
    return rounds(records)


def test_a_simulated_host_has_as_many_cpu_devices():
    session = gb.init("sim:pcie-16")
    assert len(gb.device_info()) == 16 and gb.topology() is session.simulated
    with pytest.raises(exceptions.InvalidValue, match="sim:dgx1-v100"):
        gb.init("sim:nothing")


def test_policies_gain_what_they_say(skewed):
    """Devices wait less, and no policy is predicted to lose. Without it the seconds are those of the fullest block."""
    host, model, found = topology("sim:dgx1-v100"), constant(1e-9), {}
    for name, policy in balancing.POLICIES.items():
        outcomes = replay(skewed, host, model, policy, p=1e-6)
        found[name] = summary(outcomes)
        for outcome in outcomes:
            assert outcome.decision.predicted <= outcome.decision.plain
            if outcome.decision.shares is not None:
                assert outcome.decision.shares.edges.sum() == outcome.round.edges
    alone = sum(max(tally.edges for tally in round.tallies) * 1e-9 + 8 * 1e-6 for round in skewed)
    assert found["off"].seconds == pytest.approx(alone) and set(found["off"].actions) == {"leave"}
    assert found["steal"].seconds < 0.8 * alone and found["steal"].stalled < 0.6 * found["off"].stalled
    assert found["auto"].seconds <= min(found["steal"].seconds, found["fold"].seconds) * 1.001


def test_stalled_is_the_part_that_devices_wait():
    assert stalled([np.array([3.0, 1.0])]) == pytest.approx(1 / 3)
    assert stalled([np.array([3.0, 0.0])], [(0,)]) == 0 and stalled([]) == 0 and stalled([np.zeros(4)]) == 0


def test_a_trace_file_replays(tmp_path, capsys):
    file, picture = tmp_path / "trace.json", tmp_path / "rounds.png"
    assert cli.main(["run", "bfs", "rmat:9:8", "--devices", "sim:dgx1-v100", "--trace", str(file), "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert ran["predicted"]["host"] == "sim:dgx1-v100" and 0 < ran["predicted"]["seconds"]
    assert cli.main(["replay", str(file), "--json", "--plot", str(picture)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["predicted"]["auto"]["seconds"] == pytest.approx(ran["predicted"]["seconds"])
    assert set(told["predicted"]) == set(balancing.POLICIES) and picture.stat().st_size > 10_000
    model = tmp_path / "model.json"
    constant(balancing.EDGE).save(model)
    assert cli.main(["replay", str(file), "--model", str(model), "--policy", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["predicted"]["auto"] == told["predicted"]["auto"]
    assert cli.main(["replay", str(file)]) == 0 and "predicted" in capsys.readouterr().out


def test_a_model_is_trained_and_replays(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(training, "_EDGES", 20)
    monkeypatch.setattr(training, "_REPEATS", 3)
    file = str(tmp_path / "model.json")
    graphs = ["--graph", "rmat:8:8:1:1-9", "--graph", "road:20", "--unseen", "uniform:8:6", "--direction", "pull"]
    assert cli.main(["train-balance", file, "--devices", "cpu:2", *graphs]) == 0
    assert "polynomial" in capsys.readouterr().out
    model = balance.Polynomial.load(file)
    tally = balance.Tally.of(np.full(50, 8))
    assert 0 < model.seconds[0] <= model([tally])[0] <= model.seconds[1] < 1e-3
    monkeypatch.setattr(training, "_EDGES", 10**9)
    assert cli.main(["train-balance", file, *graphs]) == 3 and "larger graphs" in capsys.readouterr().err


def test_files_that_can_not_be_replayed(tmp_path, capsys):
    file = tmp_path / "trace.json"
    for text in ("", "[]", '{"traceEvents": []}', '{"traceEvents": [{"ph": "X", "name": "push", "args": {}}]}'):
        file.write_text(text)
        assert cli.main(["replay", str(file)]) == 3
        assert "trace" in capsys.readouterr().err
    assert cli.main(["run", "bfs", "rmat:6:8", "--devices", "cpu:3", "--trace", str(file), "--json"]) == 0
    assert cli.main(["replay", str(file)]) == 3
    assert "record it on cpu:8" in capsys.readouterr().err


def test_products_of_scipys_size_are_the_same_when_stolen():
    rng = np.random.default_rng(0)
    M = scipy.sparse.random_array((900, 700), density=0.02, rng=rng, format="csr")
    x = rng.random(700)
    gb.init("cpu:3", gb.partition.shares(8, 1, 1), balance=ALL)
    A = gb.Matrix.from_scipy_sparse(M)
    np.testing.assert_allclose(semiring.plus_times(A @ gb.Vector.from_dense(x)).new().to_dense(0), M @ x)
