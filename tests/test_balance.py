"""The balance layer: numbers in, decisions out. Solvers against each other and their constraints, the rest against
brute force."""

from __future__ import annotations

import json
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import random_array

import gbgpu as gb
from bench.experiments import lux
from bench.experiments.steal_solvers import SIZES, instances
from gbgpu import balance
from gbgpu.balance import simplex
from gbgpu.balance.topology import made
from gbgpu.errors import DimensionMismatch, FileFormatError, InvalidValue

LONG = settings.get_current_profile_name() == "long"
FEW = settings(max_examples=settings.default.max_examples // 4)  # each example is a call of SCIP or more


@st.composite
def problems(draw, most=6, largest=10**9):
    """costs, loads, traffic: infinite and zero costs, zero loads, one device, equal and uneven links, shared links."""
    n = draw(st.integers(1, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    remote = draw(st.sampled_from(["equal", "uneven", "free"]))
    factor = {"equal": 3.0, "uneven": random.uniform(1, 20, (n, n)), "free": 0.0}[remote]
    costs = random.uniform(0.5, 2, n)[:, None] * np.where(np.eye(n), 1.0, factor) * draw(st.sampled_from([1e-11, 1.0]))
    costs[(random.random((n, n)) < draw(st.sampled_from([0.0, 0.5]))) & ~np.eye(n, dtype=bool)] = np.inf
    loads = (random.random(n) ** 4 * draw(st.integers(0, largest))).astype(np.int64)
    loads[random.random(n) < draw(st.sampled_from([0.0, 0.5]))] = 0
    traffic = None
    if draw(st.booleans()):
        scale = 8 / costs[np.isfinite(costs)].max()
        rates = random.uniform(0.1, 10, (2, n)) * scale
        rates[random.random((2, n)) < draw(st.sampled_from([0.0, 0.2]))] = 0  # a device without links
        traffic = balance.Traffic(np.where(np.eye(n), 0, 8.0), *rates)
    return costs, loads, traffic


def seconds(costs, edges, traffic):
    """z by its definition."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spent = [np.where(edges > 0, costs * edges, 0).sum(0)]
        if traffic is not None:
            moved = traffic.bytes * edges
            spent += [np.nan_to_num(moved.sum(0) / traffic.into), np.nan_to_num(moved.sum(1) / traffic.out)]
    return max(part.max() for part in spent)


def check(costs, loads, traffic, shares):
    """The constraints, and that z is the largest side."""
    assert shares.edges.dtype == np.int64 and (shares.edges >= 0).all()
    assert (shares.edges.sum(1) == loads).all()
    assert not shares.edges[~np.isfinite(costs)].any()
    assert shares.seconds < np.inf
    assert shares.seconds == pytest.approx(seconds(costs, shares.edges, traffic), rel=1e-9)
    assert shares.bound <= shares.seconds * (1 + 1e-9)


@given(problems(), st.booleans())
@FEW
def test_both_solvers_keep_the_constraints_and_agree(problem, evict):
    costs, loads, traffic = problem
    if evict:  # nobody computes on device 0
        costs[:, 0], traffic = np.inf, None
        loads[~np.isfinite(costs).any(1)] = 0
    fast, exact = balance.solve(costs, loads, traffic), balance.solve_exact(costs, loads, traffic)
    for shares in (fast, exact):
        check(costs, loads, traffic, shares)
    edge = np.max(costs, where=np.isfinite(costs), initial=0)  # what one more edge may cost, links as well
    if traffic is not None:
        rates = np.concatenate([traffic.into, traffic.out])
        edge = max(edge, 8 / rates.min(where=rates > 0, initial=np.inf))
    assert exact.seconds * (1 - 1e-5) <= fast.seconds <= exact.seconds * (1 + 1e-5) + len(loads) * edge
    assert fast.bound <= exact.seconds * (1 + 1e-5)


@given(problems(most=3, largest=6))
@FEW
@example((np.ones((2, 2)), np.array([3, 0]), None))
def test_scip_finds_the_best_of_all_assignments(problem):
    costs, loads, traffic = problem
    best = balance.solve_exact(costs, loads, traffic)
    found = [np.zeros((0, len(loads)), np.int64)]
    for load in loads:
        found = [np.vstack([rows, row]) for rows in found for row in splits(int(load), len(loads))]
    with np.errstate(invalid="ignore"):
        least = min(seconds(costs, edges, traffic) for edges in found)
    assert best.seconds == pytest.approx(least, rel=1e-6)


@given(st.integers(0, 10**9))
@FEW
def test_scip_is_not_led_astray_by_costs_of_many_orders(seed):
    """Beyond its tolerances, and its infinity; nor is what it is said to have proven."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 4))
    costs, loads = 10 ** random.uniform(-16, 8, (n, n)), random.integers(0, 7, n)
    rows = [np.array([*splits(int(load), n)]) for load in loads]
    least = min((np.array(edges) * costs).sum(0).max() for edges in product(*rows))
    best = balance.solve_exact(costs, loads)
    assert best.seconds == pytest.approx(least, rel=1e-5) and best.bound <= least * (1 + 1e-5)


def test_pairs_that_are_to_be_avoided_cost_scip_nothing():
    """10 ps an edge, and a second where none is to go; links of 1 TB/s beside edges that take minutes."""
    costs = np.where(np.eye(4), 1e-11, 2e-11)
    costs[0, 2] = costs[1, 3] = 1.0
    best = balance.solve_exact(costs, [10**6, 10**5, 0, 0])
    assert best.seconds == pytest.approx(5e-6, rel=1e-5) and best.bound <= 5e-6 * (1 + 1e-5)
    traffic = balance.Traffic(8 * (1 - np.eye(2)), np.full(2, 1e12), np.full(2, 1e12))
    for _ in range(3):  # whatever was asked before
        assert balance.solve_exact([[1000.0, 2000.0], [2000.0, 1000.0]], [10, 0], traffic).seconds == 7000


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_equal_costs_leave_no_edge_behind(n):
    random = np.random.default_rng(n)
    for load in (0, 1, n - 1, n, 2 * n - 1, 100 * n + n // 2):
        loads = np.eye(1, n, int(random.integers(n)), dtype=int)[0] * load
        assert balance.solve(np.ones((n, n)), loads).seconds == -(-load // n)
    for _ in range(200):
        loads = (10 ** random.uniform(0, 8, n) * (random.random(n) < 0.5)).astype(int)
        costs = np.repeat(10 ** random.uniform(-12, -6, (n, 1)), n, 1)  # edges of blocks differ
        shares = balance.solve(costs, loads)
        check(costs, loads, None, shares)
        assert shares.seconds <= (shares.bound + costs[loads > 0].max(initial=0)) * (1 + 1e-9)


EXTREMES = [
    (np.full(6, 1e-11), [2**40, 2**59, 1, 0, 1000, 0]), ([1e-12, 1e12, 1e300], [2, 1, 5]),
    ([1e3, 1e6, 1e-3, 1e-12], [2**59, 2**61, 10**9, 2**59]), (np.full(3, 1e-300), [2**60, 2**53 + 1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("own", "loads"), EXTREMES)
def test_equal_costs_of_any_size(own, loads):
    n = len(loads)
    found = balance.solve(np.repeat(np.array(own)[:, None], n, 1), loads)
    assert (found.edges >= 0).all() and found.edges.sum(1).tolist() == loads


def test_no_cost_is_too_small_beside_infinity():
    costs = np.array([[np.inf, 1e-306, 1], [0, 1, 0], [np.inf, 0, 1]])
    found = balance.solve(costs, [5, 2, 1000])
    assert found.edges.sum(1).tolist() == [5, 2, 1000] and not found.edges[costs == np.inf].any()


def splits(load, n):
    """All rows of n whole numbers that sum to `load`."""
    for bars in combinations(range(load + n - 1), n - 1):
        yield np.diff([-1, *bars, load + n - 1]) - 1


def test_the_fast_solver_is_within_a_thousandth_of_scip():
    """10,000 rounds in the long profile."""
    for costs, loads in instances(625 if LONG else 6, SIZES, seed=1):
        fast = balance.solve(costs, loads)
        check(costs, loads, None, fast)
        exact = balance.solve_exact(costs, loads)
        check(costs, loads, None, exact)
        assert fast.seconds <= exact.seconds * 1.001


def test_many_rounds_are_close_to_their_own_bound():
    """The bound needs no other solver."""
    for costs, loads in instances(100, SIZES, seed=2):
        loads *= 1000
        fast = balance.solve(costs, loads)
        assert fast.seconds <= fast.bound * (1 + 1e-5)


@pytest.mark.parametrize("kind", ["equal", "few values", "zeros", "twelve orders of magnitude"])
def test_ties_and_extremes_reach_the_bound(kind):
    random = np.random.default_rng(7)
    for turn in range(500 if LONG else 50):
        n = int(random.integers(1, 33))
        costs = {
            "equal": lambda n: np.ones((n, n)),
            "few values": lambda n: random.integers(1, 3, (n, n)).astype(float),
            "zeros": lambda n: random.integers(0, 3, (n, n)).astype(float),
            "twelve orders of magnitude": lambda n: 10 ** random.uniform(-6, 6, (n, n)),
        }[kind](n)
        loads = random.choice([0, 10**6, 5 * 10**6], n)
        rates = random.choice([0.5, 1, 1e9], n)
        traffic = balance.Traffic(1 - np.eye(n), random.choice([0, 0.5, 1, 1e9], n), rates) if turn % 2 else None
        shares = balance.solve(costs, loads, traffic)
        check(costs, loads, traffic, shares)
        assert shares.seconds <= shares.bound * (1 + 1e-4)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.floats(1, 100))
def test_the_level_of_two_costs(loads, remote):
    n = len(loads)
    shares = balance.solve(np.where(np.eye(n), 1.0, remote), loads)
    found = balance.level(loads, 1.0, remote)
    assert found <= shares.seconds * (1 + 1e-9)
    assert shares.seconds <= found * (1 + 1e-6) + n * remote
    given_away = sum(max(load - found, 0) for load in loads)
    taken = sum(max(found - load, 0) / remote for load in loads)
    assert given_away <= taken * (1 + 1e-6) + 1e-6


def test_what_the_solvers_refuse():
    ones, loads = np.ones((2, 2)), [1, 2]
    for solver in (balance.solve, balance.solve_exact):
        with pytest.raises(InvalidValue, match="none for blocks .1."):
            solver([[1, 1], [np.inf, np.inf]], loads)
        solver([[1, 1], [np.inf, np.inf]], [1, 0])
        for costs, some in ((-ones, loads), (ones * np.nan, loads), (ones, [1, -1]), (ones, [2**62, 2**62])):
            with pytest.raises(InvalidValue):
                solver(costs, some)
        for costs, some in ((ones, [1]), (ones[:1], loads), (np.ones((0, 0)), []), (ones, [[1, 2]])):
            with pytest.raises(DimensionMismatch):
                solver(costs, some)
        with pytest.raises(DimensionMismatch, match="traffic"):
            solver(ones, loads, balance.Traffic(ones, np.ones(2), np.ones(3)))
        with pytest.raises(InvalidValue):
            solver(ones, loads, balance.Traffic(-ones, np.ones(2), np.ones(2)))
        with pytest.raises(InvalidValue, match="whole"):
            solver(ones, [1.5, 2])
    with pytest.raises(InvalidValue, match="finite"):
        balance.solve(ones * 1e308, [10, 10])
    assert balance.solve_exact(ones, loads, limit=0).seconds == 2  # without time it is what `solve` finds
    assert balance.level([0, 0], 0.0, 0.0) == 0


@pytest.mark.parametrize("load", [1, 5, 10**6])
def test_idle_blocks_do_not_keep_devices_from_others(load):
    """Blocks without work may have no device that would take it."""
    costs = np.full((4, 4), np.inf)
    costs[2, :2] = 5.0
    shares = balance.solve(costs, [0, 0, load, 0])
    check(costs, [0, 0, load, 0], None, shares)
    assert shares.seconds == 5 * -(-load // 2)


def test_costs_are_not_written_to():
    costs, blocked = np.full((2, 2), 2.0), balance.Traffic(1 - np.eye(2), np.zeros(2), np.ones(2))
    assert balance.solve(costs, [5, 0], blocked).edges.tolist() == [[5, 0], [0, 0]]
    assert (costs == 2).all()


# ---------------------------------------------------------------- slices


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 6), st.randoms(use_true_random=False))
def test_slices_take_every_vertex_once(degrees, n, random):
    prefix = np.concatenate([[0], np.cumsum(degrees)]).astype(int)
    cuts = sorted(random.choices(range(prefix[-1] + 1), k=n - 1))
    share = np.diff([0, *cuts, prefix[-1]])
    found = balance.slices(prefix, share)
    assert found[0, 0] == 0 and found[-1, 1] == len(degrees)
    assert (found[1:, 0] == found[:-1, 1]).all() and (found[:, 0] <= found[:, 1]).all()
    computed = prefix[found[:, 1]] - prefix[found[:, 0]]
    assert np.abs(computed - share).max() <= max(degrees, default=0)
    if share.any():
        assert (found[:, 0] == found[:, 1])[share == 0].all()
    tasks = balance.tasks(0, prefix, share)
    assert [v for _, _, lo, hi in tasks for v in range(lo, hi)] == list(range(len(degrees)))
    assert all(block == 0 for _, block, _, _ in tasks)


def test_what_slices_refuse():
    for prefix, share in (([0, 3], [1, 1]), ([0, 3], [4, -1]), ([1, 3], [2])):
        with pytest.raises(InvalidValue):
            balance.slices(prefix, share)
    with pytest.raises(DimensionMismatch):
        balance.slices([], [1])
    assert balance.tasks(1, [0, 0, 0], [0, 0]) == [(1, 1, 0, 2)]


# ---------------------------------------------------------------- features and models


def exact_features(degrees):
    """GUM's table I, vertex by vertex; in-degrees are as large."""
    d, n = np.sort(degrees).astype(float), len(degrees)
    part = d[d > 0] / d.sum()
    gini = 2 * (np.arange(1, n + 1) * d).sum() / (n * d.sum()) - (n + 1) / n
    entropy = -(part * np.log(part)).sum() / np.log(n)
    return np.array([d.mean(), d.max() - d.min(), gini, entropy, d.mean(), d.max() - d.min()])


@given(st.lists(st.integers(0, 10**5), min_size=2, max_size=200).filter(any))
def test_features_are_those_of_the_degrees(degrees):
    tally = balance.Tally.of(degrees)
    assert (tally.vertices, tally.edges) == (len(degrees), sum(degrees)) == (tally.histogram.sum(), sum(degrees))
    found, exact = balance.features([tally])[0], exact_features(degrees)
    assert found[0] == pytest.approx(exact[0])
    least, most = min(degrees), max(degrees)  # the ends of bins are a factor of 2 apart
    assert most / 2 - 2 * least <= found[1] <= 2 * most - least / 2
    assert abs(found[2:4] - exact[2:4]).max() < 0.35
    turned = [balance.Tally.of(each, degrees) for each in (degrees[::-1], np.ones_like(degrees))]
    wanted = [found, np.array([1, 0, 0, 1, *found[:2]])]
    assert balance.features(turned) == pytest.approx(np.array(wanted), abs=1e-9)


@given(st.lists(st.sampled_from([0, 1, 4]), min_size=2, max_size=50).filter(any))
def test_features_are_exact_where_bins_hold_one_degree(degrees):
    assert balance.features([balance.Tally.of(degrees)])[0] == pytest.approx(exact_features(degrees), abs=1e-9)


def test_features_of_little():
    empty, alone = balance.Tally.of([]), balance.Tally.of([7])
    assert balance.features([empty, alone, balance.Tally.of([0, 0])]).tolist() == [[0] * 6, [7, 0, 0, 1, 7, 0], [0] * 6]
    assert balance.features([]).shape == (0, 6)
    both, whole = balance.Tally.of([1, 5]) + balance.Tally.of([6]), balance.Tally.of([1, 5, 6])
    assert both[:2] == whole[:2] and (both.histogram == whole.histogram).all() and both.into is None
    mixed = balance.Tally.of([1, 5], [2, 0]) + balance.Tally.of([6])
    assert mixed.into[:2] == (3, 8) and (mixed.into.histogram == balance.Tally.of([2, 0, 6]).histogram).all()


def samples(k, seed=0, noise=0.1):
    random = np.random.default_rng(seed)
    mean = 10 ** random.uniform(0, 2.5, k)
    gini = random.uniform(0, 0.9, k)
    columns = [mean, mean * 10 ** random.uniform(0, 3, k), gini, 1 - gini * random.uniform(0.1, 0.9, k)]
    found = np.stack([*columns, mean * 10 ** random.normal(0, 0.1, k), columns[1] * random.uniform(1, 2, k)], 1)
    seconds = 1e-11 * (1 + 20 / mean + 3 * gini**2 + 0.3 * np.log10(1 + found[:, 1]))
    return found, seconds * np.exp(random.normal(0, noise, k))


def test_training_is_reproducible_and_learns(tmp_path):
    found, seconds = samples(600)
    model = balance.train(found, seconds, seed=3, degree=4, ridge=0.0)  # a known function, in many samples
    assert (model.weights == balance.train(found, seconds, seed=3, degree=4, ridge=0.0).weights).all()
    assert (model.weights != balance.train(found, seconds, seed=4, degree=4, ridge=0.0).weights).any()
    unseen = samples(600, seed=9)
    assert model.error < 0.11 and model.rmsre(*unseen) < 0.15
    model.save(tmp_path / "model.json")
    loaded = balance.Polynomial.load(tmp_path / "model.json")
    assert (loaded.predict(unseen[0]) == model.predict(unseen[0])).all() and loaded.error == model.error
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    wild = balance.Tally.of([10**9])
    assert seconds.min() <= model([wild])[0] <= seconds.max()


def test_a_ridge_makes_weights_smaller():
    """With a ridge and without one, each model is the better one by the measure that it minimises."""
    found, seconds = samples(600)
    models = {ridge: balance.train(found, seconds, ridge=ridge) for ridge in (0.1, 0.0)}
    sums = {ridge: np.sum((model.weights[1:] / np.median(seconds)) ** 2) for ridge, model in models.items()}
    assert len(models[0.1].weights) == 84 and sums[0.1] < sums[0.0]
    assert models[0.0].error < models[0.1].error < 0.2 and models[0.1].rmsre(*samples(600, seed=9)) < 0.25
    assert models[0.1].error ** 2 + 0.1 * sums[0.1] < models[0.0].error ** 2 + 0.1 * sums[0.0]


def test_models_of_little_and_what_they_refuse(tmp_path):
    found, seconds = samples(1)
    assert balance.train(found, seconds).predict(found) == pytest.approx(seconds)
    assert balance.constant(3e-10)([balance.Tally.of([1]), balance.Tally.of([])]).tolist() == [3e-10, 3e-10]
    for wrong in (-seconds, seconds * np.nan):
        with pytest.raises(InvalidValue):
            balance.train(found, wrong)
    with pytest.raises(DimensionMismatch):
        balance.train(found[:, :3], seconds)
    path = tmp_path / "model.json"
    balance.constant(1e-9).save(path)
    held = json.loads(path.read_text())
    for text in ("[1", "[]", json.dumps({**held, "degree": 2}), json.dumps({**held, "weights": [1]})):
        path.write_text(text)
        with pytest.raises(FileFormatError):
            balance.Polynomial.load(path)


def test_costs_of_a_round():
    host = balance.topology("sim:dgx1-v100")
    replicas = np.zeros((8, 8), bool)
    replicas[0, 7] = True
    found = balance.costs(np.full(8, 1e-11), host, 8.0, replicas, evicted=[2])
    assert found[0, 0] == found[0, 7] == pytest.approx(1e-11)
    assert found[0, 3] == pytest.approx(1e-11 + 8 / 50e9) and found[0, 1] == pytest.approx(1e-11 + 8 / 25e9)
    assert np.isinf(found[:, 2]).all() and np.isfinite(np.delete(found, 2, 1)).all()
    assert balance.traffic(host, 8.0, replicas).bytes[0].tolist() == [0, 8, 8, 8, 8, 8, 8, 0]
    slow = balance.costs(np.arange(64).reshape(8, 8) * 1e-11, host, 0.0)
    assert slow == pytest.approx(np.arange(64).reshape(8, 8) * 1e-11)  # a device of another kind has a column
    with pytest.raises(DimensionMismatch):
        balance.costs(np.ones(3), host, 8.0)
    with pytest.raises(DimensionMismatch):
        balance.costs(np.ones(8), host, 8.0, replicas[:3])


# ---------------------------------------------------------------- topologies and folding


def test_topologies(tmp_path):
    dgx = balance.topology("sim:dgx1-v100")
    nvlinks = dgx.links / 25e9
    assert (nvlinks == nvlinks.T).all() and (nvlinks.sum(0) == 6).all() and (dgx.into == 150e9).all()
    assert not nvlinks[0, 7] and {k for k in range(8) if nvlinks[0, k] and nvlinks[k, 7]} == {1, 6}  # as GUM says
    assert dgx.bandwidth[0, 7] == 25e9 and dgx.latency[0, 7] == 2 * dgx.latency[0, 1]
    for name, n in (("sim:dgx-h200", 8), ("sim:pcie-16", 16)):
        host = balance.topology(name)
        assert host.links.shape == (n, n) and host.simulated and host.name == name
        assert (np.isinf(host.bandwidth) == np.eye(n, dtype=bool)).all() and not np.diag(host.latency).any()
    path = tmp_path / "pair.json"
    path.write_text('{"bandwidth": [[0, 10, 0], [10, 0, 5], [0, 5, 0]], "latency": 2, "into": 7}')
    for name in (str(path), f"sim:{path}"):
        own = balance.topology(name)
        assert own.bandwidth[0, 2] == 5e9 and own.latency[0, 2] == pytest.approx(4e-6) and own.name == "pair"
        assert own.into.tolist() == [7e9] * 3 and own.out.tolist() == [10e9, 15e9, 5e9]
    for text in ("", "[]", "{}", '{"bandwidth": [[0, 1]]}', '{"bandwidth": [[0]], "into": [1, 2]}'):
        path.write_text(text)
        with pytest.raises(FileFormatError):
            balance.topology(str(path))
    with pytest.raises(InvalidValue, match="dgx-h200"):
        balance.topology("sim:dgx2")


def test_the_reduction_tree_keeps_bandwidth():
    links = balance.topology("sim:dgx1-v100").links
    order = balance.reduction(links)
    assert sorted(order) == list(range(8)) and set(order[:2]) == {0, 3}  # as GUM says of two
    for m in range(2, 8):
        kept = order[: m + 1]
        most = max(links[np.ix_(left, left)].sum() for left in combinations(kept, m))
        assert links[np.ix_(order[:m], order[:m])].sum() == most
    assert balance.reduction(np.ones((4, 4)), [5, 9, 1, 7]).tolist() == [1, 3, 0, 2]
    assert balance.reduction([[1.0]]).tolist() == [0]


@given(problems(most=5, largest=10**6), st.floats(0, 2), st.booleans())
@FEW
def test_folding_is_the_best_of_all_sizes(problem, p, steal):
    costs, loads, traffic = problem
    n = len(loads)
    p *= balance.solve(*problem).seconds
    order = np.random.default_rng(n).permutation(n)
    found = balance.fold(costs, loads, order, p, traffic, steal=steal)
    check(costs, loads, traffic, found.shares)
    assert not np.delete(found.shares.edges, found.devices, axis=1).any()
    assert found.seconds == pytest.approx(found.shares.seconds + p * len(found.devices))
    if not steal:
        kept = found.shares.edges[list(found.devices)]
        assert (kept[range(len(kept)), found.devices] == loads[list(found.devices)]).all()
    for m in range(1, n + 1):
        some = costs.copy()
        some[:, order[m:]] = np.inf
        for i in order[:m] if not steal else ():
            some[i, np.arange(n) != i] = np.inf
        try:
            z = balance.solve_exact(some, loads, traffic).seconds
        except InvalidValue:
            continue  # a block that nobody who stays can reach
        edge = np.max(costs, where=np.isfinite(costs), initial=0)
        links = 0 if traffic is None else 80 * edge
        assert found.seconds <= (z + p * m) * (1 + 1e-5) + n * max(edge, links)


def test_folding_keeps_those_that_have_the_work():
    costs = np.where(np.eye(4), 1e-11, 1e-10)
    for busy in range(4):
        loads = np.where(np.arange(4) == busy, 10**4, 0)
        found = balance.fold(costs, loads, balance.reduction(np.ones((4, 4)), loads), 1e-6)
        assert found.devices == (busy,)
    everyone = balance.fold(costs, np.full(4, 10**8), range(4), 1e-6)
    assert everyone.devices == (0, 1, 2, 3)


def test_the_cost_of_a_device_is_learnt():
    learnt = balance.Overhead(1.0)
    for m in (8, 4, 8, 2, 1):
        p = learnt.observe(m, 3e-3 + 5e-6 * m, 3e-3)
        assert p == learnt.p == pytest.approx(5e-6)
    for _ in range(60):
        learnt.observe(4, 4e-5, 0.0)
    assert learnt.p == pytest.approx(1e-5, rel=0.01)
    assert balance.Overhead(1.0).observe(3, 1.0, 2.0) == 0  # a round that was faster than its model


# ---------------------------------------------------------------- repartitioning and prediction


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(1, 6), st.integers(0, 2**32))
def test_repartitioning_finds_blocks_of_equal_time(lengths, p, seed):
    n = len(lengths)
    prefix = np.concatenate([[0], np.cumsum(lengths)])
    weights = np.random.default_rng(seed).uniform(0.1, 5, n) * (np.array(lengths) + 1)
    true = np.concatenate([[0], np.cumsum(weights)])
    sums = balance.PartialSums(prefix)
    bounds = sums.split(p)
    first = np.diff(true[bounds]).max()
    for _ in range(12):
        found = balance.repartition(sums, prefix, bounds, np.diff(true[bounds]), 8.0, 1e9, rounds=10)
        assert found.bounds[0] == 0 and found.bounds[-1] == n and (np.diff(found.bounds) >= 0).all()
        assert np.diff(true[found.bounds]).sum() == pytest.approx(true[-1])
        assert sums.at(bounds) == pytest.approx(true[bounds] / true[-1])
        bounds = found.bounds
    last = np.diff(true[bounds]).max()
    assert last <= max(first, true[-1] / p + 2 * weights.max()) + 1e-9


def test_rates_are_those_of_rounds():
    rates = lux.Rates(2e-9, 5e-10, 3e-10, 0.0)
    cases = []
    for n, m in product((10**4, 10**6), (1, 2, 4)):
        one = lux.Case("g", m, 2, (16 * n, 8 * n), [n * m], (0.0, 0.0))
        cases.append(one._replace(took=lux.predicted(rates, one)))
    assert lux.fitted(cases) == pytest.approx(rates)
    told = [(one, lux.predicted(rates, one)) for one in cases[:3]]
    assert lux.chosen(told) == ("push on 4", "push on 4", 1.0)


def test_who_has_no_rows_only_waits():
    """As long as the others compute, or no time at all: both say the same."""
    prefix, bounds = np.arange(1001), [0, 1000, 1000]
    for waited in (0.0, 1.0):
        sums = balance.PartialSums(prefix)
        found = balance.repartition(sums, prefix, bounds, [1.0, waited], 8.0, 1e9, rounds=10)
        assert found.bounds.tolist() == [0, 500, 1000] and found.gain == pytest.approx(0.5) and found.worth


def test_repartitioning_converges_and_weighs_its_cost():
    lengths = np.full(1000, 4)
    prefix = np.concatenate([[0], np.cumsum(lengths)])
    true = np.concatenate([[0], np.cumsum(np.where(np.arange(1000) < 300, 5e-6, 1e-6))])
    sums, bounds = balance.PartialSums(prefix), np.array([0, 250, 500, 750, 1000])
    seconds = np.diff(true[bounds])
    found = balance.repartition(sums, prefix, bounds, seconds, 8.0, 1e6, rounds=1000)
    assert found.worth and 0 < found.gain < seconds.max()
    blocks = zip(found.bounds, found.bounds[1:], bounds, bounds[1:], strict=False)
    arrived = [len(set(range(a, b)) - set(range(c, d))) for a, b, c, d in blocks]
    assert found.cost == pytest.approx(max(arrived) * 4 * 8.0 / 1e6)
    again = balance.repartition(balance.PartialSums(prefix), prefix, bounds, seconds, 8.0, 1e6, rounds=1)
    assert not again.worth and (again.bounds == found.bounds).all()
    for _ in range(5):
        found = balance.repartition(sums, prefix, found.bounds, np.diff(true[found.bounds]), 8.0, 1e9, rounds=10)
    assert np.diff(true[found.bounds]).max() < 1.02 * true[-1] / 4


@given(st.lists(st.integers(0, 20), min_size=40, max_size=80), st.booleans(), st.integers(0, 2**32))
def test_hosts_repartition_among_all_devices_or_each_among_its_own(lengths, far, seed):
    """By the network between them. No bound is farther from even than the longest row."""
    prefix = np.concatenate([[0], np.cumsum(lengths)])
    rng, n, hosts = np.random.default_rng(seed), len(lengths), [0, 0, 0, 1, 1]
    bounds = np.r_[0, np.sort(rng.integers(0, n + 1, 4)), n]
    true = prefix + np.arange(n + 1.0)
    seconds, sums = np.diff(true[bounds]), balance.PartialSums(prefix)
    network = 1e-30 if far else np.inf
    found = balance.repartition(sums, prefix, bounds, seconds, 8.0, np.inf, 1.0, hosts, network)
    took, spare = np.diff(true[found.bounds]), 21
    crossed = found.bounds[3] != bounds[3]
    if far:
        assert not crossed or len({*prefix[[found.bounds[3], bounds[3]]]}) == 1
        for mine in (slice(0, 3), slice(3, 5)):
            assert took[mine].max() <= max(seconds[mine].mean() + 2 * spare, 0) or not found.worth
    elif crossed:
        assert took.max() <= true[-1] / 5 + 2 * spare and found.worth
    stolen = np.diag(seconds)
    stolen[0, 1], stolen[0, 0] = stolen[0, 0], 0  # another device computed the block
    again = balance.repartition(balance.PartialSums(prefix), prefix, bounds, stolen, 8.0, np.inf, 1.0)
    one = balance.repartition(balance.PartialSums(prefix), prefix, bounds, seconds, 8.0, np.inf, 1.0)
    assert again.bounds.tolist() == one.bounds.tolist()
    assert again.gain - one.gain == pytest.approx(stolen.sum(axis=0).max() - seconds.max())


def test_numbers_that_are_none_are_refused():
    costs, loads, host = np.ones((2, 2)), [4, 0], made("host", np.full((2, 2), 1e9))
    assert balance.solve_exact(costs, loads, limit=np.inf, gap=0).seconds == 2
    for wrong in ({"limit": np.nan}, {"limit": -1}, {"gap": -1}, {"gap": np.nan}, {"gap": np.inf}):
        with pytest.raises(InvalidValue, match="a finite gap and a limit"):
            balance.solve_exact(costs, loads, **wrong)
    for wrong in (-1, 2):
        with pytest.raises(InvalidValue, match="from 0 to 1"):
            balance.costs([1e-9, 1e-9], host, 8.0, evicted=[wrong])
    with pytest.raises(InvalidValue, match="one device or more"):
        balance.predict(lux.Rates(1, 1, 1, 1), (1, 1), [1], [0], 0, 8)


def test_what_repartitioning_refuses():
    sums = balance.PartialSums([0, 2, 5])
    for bounds, seconds in (([0, 1], [1.0]), ([0, 2, 1, 2], [1.0] * 3), ([0, 2], [-1.0]), ([0, 2], [np.nan])):
        with pytest.raises(InvalidValue):
            sums.observe(bounds, seconds)
    with pytest.raises(DimensionMismatch):
        sums.observe([0, 2], [1.0, 2.0])
    given = sums, [0, 2, 5], [0, 1, 2]
    for hosts in ([0], [0, 2], [1, 1], [1, 0]):
        with pytest.raises(InvalidValue, match="the host of each of 2 blocks"):
            balance.repartition(*given, [1.0, 2.0], 8.0, 1e9, 1, hosts)
    with pytest.raises(DimensionMismatch, match="seconds of 2 blocks"):
        balance.repartition(*given, np.ones((2, 3)), 8.0, 1e9, 1)
    for wrong in ({"network": 0.0}, {"lay": -1.0}):
        with pytest.raises(InvalidValue, match="bandwidths above 0"):
            balance.repartition(*given, [1.0, 2.0], 8.0, 1e9, 1, **wrong)
    with pytest.raises(DimensionMismatch):
        balance.PartialSums([])
    assert balance.PartialSums([0]).split(3).tolist() == [0, 0, 0, 0]


def test_prediction_of_a_round():
    rates = balance.Rates(load=1e-10, pull=1e-11, push=2e-11, transfer=1e-9)
    dense = balance.predict(rates, (1000, 1000), inputs=[50, 80], updates=[10, 20], devices=4, width=8)
    assert dense.pull == pytest.approx(1e-10 * 8 * 80 + 1e-11 * 1000 / 4 + 1e-9 * 8 * 30)
    assert dense.push == pytest.approx(2e-11 * 1000 / 4 + 1e-9 * 8 * 30)
    assert balance.predict(rates, (10**6, 10**6), [1], [], 1, 8).direction == "pull"
    assert balance.predict(rates, (10**6, 10), [1], [], 1, 8).direction == "push"


def test_input_and_update_sets():
    pattern = random_array((40, 40), density=0.1, format="csr", rng=np.random.default_rng(0))
    bounds, host = np.array([0, 10, 20, 30, 40]), np.array([0, 0, 1, 1])
    reads = [set(pattern.indices[pattern.indptr[a] : pattern.indptr[a + 10]].tolist()) for a in bounds[:-1]]
    inputs, updates = balance.vertex_sets(pattern.indptr, pattern.indices, bounds, host)
    assert inputs == [len(reads[0]) + len(reads[1]), len(reads[2]) + len(reads[3])]
    assert updates == [len((reads[0] | reads[1]) - set(range(20))), len((reads[2] | reads[3]) - set(range(20, 40)))]


# ---------------------------------------------------------------- the arbiter


def arbiter(**policy):
    host = balance.topology("sim:dgx-h200")
    return balance.Arbiter(balance.Policy(**policy), host, 8.0), balance.costs(
        np.full(8, 1e-11), host, 8.0, replicas=np.ones((8, 8), bool)
    )


BUSY, CALM, THIN = np.array([10**9] + [0] * 7), np.full(8, 10**8), np.array([100] * 8)


def test_the_arbiter_steals_folds_and_leaves():
    mine, costs = arbiter(overhead=1e-6)
    stolen, left, folded = (mine.decide(costs, loads) for loads in (BUSY, CALM, THIN))
    assert stolen.action == "steal" and stolen.gain > 0.8 * stolen.plain
    assert stolen.shares.edges.sum() == 10**9 and stolen.devices == tuple(range(8))
    assert left.action == "leave" and left.shares is None and left.gain == 0
    assert folded.action == "fold" and len(folded.devices) == 1 and folded.shares.edges.sum() == 800
    assert [decision.round for decision in (stolen, left, folded)] == [1, 2, 3]
    far = 10**10
    for refusing, loads in (
        *(({name: value}, BUSY) for name, value in (("steal", False), ("t1", far), ("t2", far), ("overhead", 1.0))),
        *(({name: value}, THIN) for name, value in (("fold", False), ("t3", 0.0))),
    ):
        other, _ = arbiter(**{"overhead": 1e-6, **refusing})
        assert other.decide(costs, loads).action == "leave", refusing


def test_thresholds_are_where_actions_begin_to_pay():
    host = balance.topology("sim:dgx-h200")
    derived = balance.Policy(overhead=1e-5).thresholds(1e-11, 5e-6, host, 8.0)
    assert derived.t1 == pytest.approx(1e6) and derived.t2 == pytest.approx(1e6 * 8 / 7)
    assert derived.t3 == pytest.approx(20 * 7 * 5e-6) and derived.t4 == pytest.approx(375e9 * 9e-6 / 8)
    some = balance.Policy(t1=1, t4=2, overhead=1e-5).thresholds(1e-11, 5e-6, host, 8.0)
    assert some == (1, derived.t2, derived.t3, 2)
    loads = np.array([int(derived.t1 * 0.99)] + [0] * 7)
    costs = balance.costs(np.full(8, 1e-11), host, 8.0, np.ones((8, 8), bool))
    free = balance.solve(costs, loads)
    assert loads[0] * 1e-11 - free.seconds < 1e-5  # below t1 the best that can be had is less than the overhead


def test_an_action_that_does_not_pay_rests():
    mine, costs = arbiter(patience=3, rest=5, fold=False)
    actions = []
    for _ in range(12):
        decision = mine.decide(costs, BUSY)
        actions.append(decision.action)
        settled = mine.observe(decision, decision.plain * 1.5 if decision.action == "steal" else decision.plain)
        assert settled.observed is not None and (settled.gained < 0 or decision.action == "leave")
    assert actions == ["steal"] * 3 + ["leave"] * 5 + ["steal"] * 3 + ["leave"]
    assert len(mine.log) == 12 and mine.log[0].gained == pytest.approx(-0.5 * mine.log[0].plain)


def test_an_action_that_pays_goes_on_and_p_is_learnt():
    mine, costs = arbiter(patience=2)
    for _ in range(20):
        decision = mine.decide(costs, BUSY)
        settled = mine.observe(decision, decision.z + 8 * 2e-6 + mine.policy.overhead)
        assert decision.action == "steal" and settled.gained > 0
    assert mine.p == pytest.approx(2e-6)


def test_codes_of_the_compiled_part(monkeypatch):
    """Uncompiled, for coverage of what hypothesis draws rarely: a start that is already the best."""
    costs, loads = np.zeros((3, 2, 2)), np.array([4, 4])
    costs[0] = np.where(np.eye(2), 1.0, 9.0)
    monkeypatch.setattr(gb.settings, "interpret", True)
    code, edges, seconds, bound = simplex.solve(costs, loads, True)
    assert (code, seconds, bound) == (0, 4.0, pytest.approx(4.0)) and edges.tolist() == [[4, 0], [0, 4]]
    assert edges.tolist() == [[4, 0], [0, 4]]


@given(st.integers(2, 5), st.integers(0, 2**32))
def test_one_device_alone_is_as_good_as_any_fold(n, seed):
    """Thin rounds are folded without a solver, and no solver finds better; the same fold again costs nothing more."""
    random = np.random.default_rng(seed)
    host = made("host", np.full((n, n), 1e9), into=2e9, out=2e9)
    loads = random.integers(0, 1000, n)
    found = balance.costs(random.uniform(1e-10, 1e-8, n), host, 8.0)
    limits = balance.traffic(host, 8.0)
    arbiter = balance.Arbiter(balance.Policy(), host, 8.0, p=1e-4)
    order = balance.reduction(host.links, loads)
    for overhead in (balance.Policy().overhead, 0.0):
        decision = arbiter.decide(found, loads, limits)
        best = balance.fold(found, loads, order, 1e-4, limits)
        assert decision.action == "fold" and len(decision.devices) == 1 and decision.overhead == overhead
        assert decision.predicted - overhead == pytest.approx(best.seconds, rel=1e-6)
        np.testing.assert_array_equal(decision.shares.edges.sum(1), loads)


def test_what_pieces_can_not_be_given():
    ones, invalid = np.ones((3, 3)), InvalidValue
    for loads, own, remote in (([10, np.nan], 1, 1), ([-10, 0], 1, 1), ([10, 0], 1, 0), ([1], np.inf, np.inf)):
        with pytest.raises(invalid):
            balance.level(loads, own, remote)
    assert balance.level([4, 0], 1, np.inf) == 4 and balance.level([0, 0], 0, 0) == 0
    for order, p in (([0, 1, 2], np.nan), ([0, 1, 2], -1), ([0, 0, 0], 0.1), ([0, 1, 9], 0.1), ([0], 0.1)):
        with pytest.raises(invalid):
            balance.fold(ones, [3, 0, 0], order, p)
    with pytest.raises(DimensionMismatch):
        balance.reduction(ones, [1])
    for links in ([[0, np.nan], [1, 0]], [[0, -1], [1, 0]]):
        with pytest.raises(invalid):
            balance.reduction(links)
    for prefix, share in (([0, 5, 3], [3, 0]), ([0, 0], [2**63 - 1, 1, 2**63 - 1, 1])):
        with pytest.raises(invalid):
            balance.slices(prefix, share)
    with pytest.raises(invalid, match="a type of complex"):
        balance.solve(np.ones((2, 2)) * 1j, [1, 2])
    with pytest.raises(invalid, match="below"):
        balance.solve(np.ones((2, 2)), np.array([2**63 + 5, 1], np.uint64))


def test_more_segments_than_rows():
    gb.init("cpu:3", gb.partition.segments(2**70))
    found = gb.io.uniform(20, 2, seed=1).to_dicts()
    gb.init("cpu:1")
    assert found == gb.io.uniform(20, 2, seed=1).to_dicts()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64])
def test_weights_of_any_whole_type(kind):
    gb.init("cpu:1")
    A = gb.io.uniform(9, 2, seed=1, weights=(kind(1), kind(9)))
    assert A.isequal(gb.io.uniform(9, 2, seed=1, weights=(1, 9)))
