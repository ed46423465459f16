"""What the arbiter learns of late rounds, when folding begins, and what it refuses. (What it decides: test_balance.py;
sessions: test_stealing.py.)"""

from types import SimpleNamespace

import numpy as np
import pytest

from gbgpu import balance
from gbgpu.balance import Policy
from gbgpu.balance.topology import made
from gbgpu.engine import assign
from gbgpu.errors import DimensionMismatch, InvalidValue

EDGE, P = 1e-9, 10e-6  # seconds
THIN, THICK = 3, 10**7  # edges of a block


def arbiter(n=8, p=P, **policy):
    """With the costs of its rounds: every device reads every block as its own."""
    host = made("host", np.full((n, n), 50e9))
    return balance.Arbiter(Policy(**policy), host, 8.0, p), np.full((n, n), EDGE)


def state(mine):
    return mine.p, mine._ratio, mine._round, len(mine.log), str(mine._accounts)


# ---------------------------------------------------------------- late rounds


def test_one_late_round_is_no_meeting():
    learnt = balance.Overhead(P)
    assert learnt.observe(8, 50e-3, 0) == P  # the first warms up
    for _ in range(20):
        assert learnt.observe(8, 8 * P, 0) == pytest.approx(P)
    assert learnt.observe(8, 50e-3, 0) < 1.3 * P
    for _ in range(20):
        learnt.observe(8, 8 * P, 0)
    assert learnt.p == pytest.approx(P, rel=0.02)
    assert learnt.observe(1, 0, 0) > 0.9 * P  # nor does an early one say that there is none


@pytest.mark.parametrize("before", [0.0, P])
@pytest.mark.parametrize("after", [P / 50, P, 5 * P, 5000 * P])
def test_what_lasts_is_learnt(before, after):
    learnt = balance.Overhead(before)
    for _ in range(50):
        learnt.observe(8, 8 * before, 0)
    for _ in range(14):
        learnt.observe(8, 8 * after, 0)
    assert learnt.p == pytest.approx(after, rel=0.4)
    assert balance.Overhead(before).observe(8, 0, 0) == 0


def test_one_device_learns_at_once_that_meeting_got_cheap():
    """Its rounds weigh little beside those of eight."""
    learnt = balance.Overhead(P)
    for _ in range(20):
        learnt.observe(8, 8 * 100 * P, 0)
    for _ in range(3):
        learnt.observe(1, P, 0)
    assert learnt.p < 3 * P


def rounds_of(mine, costs, loads, takes, count):
    found = []
    for k in range(count):
        decision = mine.decide(costs, loads)
        found.append(mine.observe(decision, takes(k, decision)))
    return found


def test_a_cold_round_is_not_folded_away():
    """As coldly begun sessions measure: 50 ms, then rounds whose blocks take longer than predicted. Folding takes even
    longer, and what is predicted of it less: it is tried, claims no gain, and is left for longer each time."""
    mine, costs = arbiter()
    loads = np.full(8, 72_000)

    def takes(k, decision):
        return 50e-3 if not k else 600e-6 if decision.action == "leave" else 1200e-6

    found = rounds_of(mine, costs, loads, takes, 1000)
    folded = [decision for decision in found if decision.action == "fold"]
    assert len(folded) <= 40 and sum(decision.action == "fold" for decision in found[:200]) <= 16
    assert all(-1e-3 < decision.gained < 0 for decision in folded)
    assert mine.p == pytest.approx((600e-6 - 72e-6) / 8, rel=0.02) and mine._ratio == pytest.approx(1, rel=0.02)


def test_a_late_round_claims_no_gains():
    mine, costs = arbiter()
    calm, thin = np.full(8, THICK), np.full(8, THIN)
    for _ in range(3):
        rounds_of(mine, costs, calm, lambda k, decision: decision.plain if k else 5.0, 12)
        settled = rounds_of(mine, costs, thin, lambda _, decision: decision.z + P, 12)
        assert {decision.action for decision in settled} == {"fold"}
        assert all(0 < decision.gained < 2 * (8 * P + decision.z) for decision in settled)


def test_what_p_explains_is_not_counted_twice():
    mine, costs = arbiter(fold=False)
    rounds_of(mine, costs, np.full(8, THIN), lambda _, decision: decision.z + 8 * P / 5, 3)
    assert mine.p == pytest.approx(P / 5) and mine._ratio == pytest.approx(1)


def test_folded_rounds_do_not_speak_for_folding():
    """A folded round that is late by an error of its z says nothing of the meeting of all."""
    mine, costs = arbiter(overhead=0, patience=100)
    found = rounds_of(mine, costs, np.full(8, THIN), lambda *_: 500e-6, 50)
    assert {decision.action for decision in found} == {"fold"}
    assert mine.p == pytest.approx(P) and all(decision.gained < 0 for decision in found)


def test_an_action_tried_in_vain_rests_longer():
    mine, costs = arbiter(patience=2, rest=3, fold=False)

    def tried(factor, count):
        takes = lambda _, one: one.plain * (factor if one.action == "steal" else 1)  # noqa: E731
        found = rounds_of(mine, costs, np.array([10**9] + [0] * 7), takes, count)
        return "".join(decision.action[0] for decision in found)

    assert tried(2, 2 + 3 + 2 + 6 + 2 + 12) == "ss" + "l" * 3 + "ss" + "l" * 6 + "ss" + "l" * 12
    assert tried(0.5, 9) == "s" * 9  # it pays: as at first
    assert tried(9, 5) == "slll" + "s"


@pytest.mark.parametrize("compiled", [0.0, 0.9, 1.1])
def test_rounds_that_compile_teach_nothing(compiled, monkeypatch):
    mine, costs = arbiter(2)
    who = assign.Assigner(None, mine.policy, mine.links)
    monkeypatch.setattr(assign, "now", lambda: 3.0)
    compiling = SimpleNamespace(last=2.5, seconds=lambda start: compiled if start == 2.0 else None)
    monkeypatch.setattr(assign, "compiling", compiling)
    decision = mine.decide(costs, [THICK] * 2)
    rounds_of(mine, costs, [THICK] * 2, lambda _, decision: decision.plain, 1)
    before = state(mine)
    who.under_way = mine, decision, 2.0
    settled = who.done()
    assert settled.observed == pytest.approx(max(1.0 - compiled, 0)) and settled.gained == 0
    assert who.under_way is None and who.done() is None and mine.log[-1] is settled
    assert (state(mine)[:2] == before[:2]) == (compiled > 0)


@pytest.mark.parametrize("action", ["leave", "steal"])
def test_an_action_is_charged_the_time_of_deciding_on_it(action, monkeypatch):
    mine, _ = arbiter(2, costs="flat")
    who, clock, decide = assign.Assigner(None, mine.policy, mine.links), [0.0], balance.Arbiter.decide

    def slowly(self, *given):
        clock[0] += 5.0
        return decide(self, *given)

    monkeypatch.setattr(balance.Arbiter, "decide", slowly)
    monkeypatch.setattr(assign, "now", lambda: clock[0])
    monkeypatch.setattr(assign, "compiling", SimpleNamespace(last=-1.0))
    loads = [THICK, THICK if action == "leave" else 0]
    decision = who._decided("pull", None, SimpleNamespace(entry_bytes=8), loads, EDGE, None)
    clock[0] += 1.0
    assert decision.action == action and who.done().observed == (1.0 if action == "leave" else 6.0)


@pytest.mark.parametrize(("own", "loads"), [((1e-9, 1e-8), (10**7, 10**7)), ((1e-12, 1e-8), (10**6, 10**5))])
def test_what_blocks_take_counts_and_not_their_edges(own, loads):
    mine, _ = arbiter(2, fold=False)
    costs = np.repeat(np.array(own)[:, None], 2, axis=1)
    decision = mine.decide(costs, list(loads))
    assert decision.action == "steal" and decision.predicted < 0.6 * decision.plain
    assert mine.decide(costs, [int(1e-2 / each) for each in own]).action == "leave"  # they end together


# ---------------------------------------------------------------- when folding begins


def test_two_devices_begin_to_fold():
    """A round saves less than the overhead, which comes once."""
    host = made("host", np.full((2, 2), 50e9), latency=9e-6)
    thin = [balance.Round("push", (balance.Tally.of([3, 3]),) * 2)] * 1000
    outcomes = balance.replay(thin, host, balance.constant(2e-10), Policy(), 8.0, 20e-6)
    decisions = [outcome.decision for outcome in outcomes]
    assert [decision.action for decision in decisions[:4]] == ["leave", "fold", "fold", "fold"]
    assert balance.summary(outcomes).seconds < 20.1e-3
    assert all(decision.predicted <= decision.plain for decision in decisions)
    assert sum(decision.overhead for decision in decisions) == pytest.approx(Policy().overhead)
    never = balance.replay(thin, host, balance.constant(2e-10), Policy(overhead=np.inf), 8.0, 20e-6)
    assert {outcome.decision.action for outcome in never} == {"leave"}


def test_a_fold_that_pays_at_once_is_charged_at_once():
    mine, costs = arbiter(8, overhead=30e-6)
    found = [mine.decide(costs, np.full(8, THIN)) for _ in range(3)]
    assert [decision.action for decision in found] == ["fold"] * 3
    assert [decision.overhead for decision in found] == [30e-6, 0, 0]


def test_a_thick_round_between_begins_anew():
    """One thin round in two never pays for beginning, runs of three do; of an overhead that a run has not saved, the
    rest is paid by the next."""
    mine, costs = arbiter(2, p=20e-6, overhead=50e-6, steal=False)

    def actions(*loads):
        return "".join(mine.decide(costs, [each] * 2).action[0] for each in loads)

    assert actions(*[THIN, THICK] * 20) == "l" * 40
    assert actions(THIN, THIN, THIN, THICK) == "llfl"
    owed = mine._owed
    assert owed == pytest.approx(30e-6, abs=1e-7)
    assert actions(THIN, THIN, THIN, THICK) == "llll" and mine._owed == owed
    assert actions(*[THIN] * 20) == "llll" + "f" * 16 and mine._owed == 0


def test_thick_rounds_pay_each_time():
    mine, costs = arbiter(4, overhead=30e-6)
    loads = np.array([THICK, 0, 0, 0])
    found = [mine.decide(costs, loads) for _ in range(5)]
    assert {(decision.action, decision.overhead) for decision in found} == {("steal", 30e-6)}
    loads = np.array([10_000 + 35_000, 10_000, 10_000, 10_000])  # stealing saves less than it costs
    assert {mine.decide(costs, loads).action for _ in range(100)} == {"leave"}


# ---------------------------------------------------------------- what is refused

N = 8
ONES, EDGES = np.full((N, N), EDGE), np.array([10**8] + [0] * 7)
WRONG = {
    "negative loads": (ONES, -EDGES),
    "few negative loads": (ONES, [-100] * N),
    "broken edges": (ONES, [1.5] + [0] * 7),
    "edges of floats": (ONES, EDGES.astype(float)),
    "negative costs": (-ONES, EDGES),
    "a cost that is no number": (np.where(np.eye(N), EDGE, np.nan), EDGES),
    "costs of text": (np.full((N, N), "1"), EDGES),
    "too many edges": (ONES, [2**62] + [0] * 7),
    "far too many": (ONES, [2**61] * N),
    "more than an int64": (ONES, [2**70] + [0] * 7),
    "nothing": (np.zeros((0, 0)), np.zeros(0, int)),
    "few loads": (ONES, [1, 2]),
    "one row": (ONES[0], EDGES),
    "endless seconds": (np.full((N, N), 1e300), [10**10] * N),
    "no place": (np.full((N, N), np.inf), EDGES),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("policy", [{}, {"steal": False, "fold": False}], ids=["all", "none"])
def test_the_arbiter_refuses_what_solve_does(name, limited, policy):
    (costs, loads), (mine, _) = WRONG[name], arbiter(**policy)
    traffic = balance.traffic(mine.links, 8.0) if limited else None
    with pytest.raises((InvalidValue, DimensionMismatch)) as expected:
        balance.solve(costs, loads, traffic)
    before = state(mine)
    with pytest.raises(expected.type):
        mine.decide(costs, loads, traffic)
    assert state(mine) == before


def test_what_else_is_no_round():
    mine, _ = arbiter(**{"steal": False})
    with pytest.raises(DimensionMismatch, match="a round of 8 devices; came 3"):
        mine.decide(ONES[:3, :3], [1, 2, 3])
    with pytest.raises(InvalidValue, match="finite seconds at home"):
        mine.decide(np.where(np.eye(N), np.inf, EDGE), EDGES)
    for limits in ((np.ones((N, N)), np.full(N, np.nan), np.ones(N)), (-np.ones((N, N)), np.ones(N), np.ones(N))):
        with pytest.raises(InvalidValue):
            mine.decide(ONES, EDGES, balance.Traffic(*limits))
    with pytest.raises(DimensionMismatch):
        mine.decide(ONES, EDGES, balance.Traffic(np.ones((N, N)), np.ones(3), np.ones(N)))
    for wrong in (np.nan, -1.0, np.inf):
        for name in ("bytes_per_edge", "p"):
            with pytest.raises(InvalidValue, match=name):
                balance.Arbiter(Policy(), mine.links, **{"bytes_per_edge": 8.0, "p": P, name: wrong})


def test_rounds_of_nothing_and_places_that_do_not_matter():
    mine, costs = arbiter()
    assert mine.decide(costs, [0] * N).z == 0
    few = np.array([0, 0] + [THIN] * 6)
    shut = balance.costs(np.full(N, EDGE), mine.links, 8.0, evicted=[0, 1])  # home of nothing
    shut[:, 7], shut[7, 7] = np.inf, EDGE
    decision = mine.decide(shut, few, balance.traffic(mine.links, 8.0))
    assert decision.z < np.inf and (decision.shares is None or not decision.shares.edges[:, :2].any())
    for kind in (np.uint8, np.int32, np.uint64):
        assert mine.decide(costs, np.full(N, 100, kind)).action == "fold"


@pytest.mark.parametrize("loads", [[THIN] * N, [10**8] + [0] * 7, [10**8] * N], ids=["fold", "steal", "leave"])
def test_no_time_that_a_round_took(loads):
    mine, costs = arbiter()
    decision = mine.decide(costs, loads)
    before = state(mine)
    for error, wrong in (
        *((InvalidValue, wrong) for wrong in (np.nan, -1, -1e-9, np.inf, -np.inf, np.float64("nan"))),
        *((TypeError, wrong) for wrong in ("x", None, True, 1j)),
    ):
        with pytest.raises(error):
            mine.observe(decision, wrong)
        assert state(mine) == before and not mine._overhead._devices
    assert mine.observe(decision, np.float32(0.5)).observed == 0.5


def test_policies_of_numbers():
    for name in ("steal", "fold"):
        for wrong in ("off", "no", 0, 1, None):
            with pytest.raises(TypeError, match=f"True or False as {name}"):
                Policy(**{name: wrong})
        assert Policy(**{name: np.bool_(False)}) == Policy(**{name: False})
    for name in ("t1", "t2", "t3", "t4", "overhead", "patience", "rest"):
        for wrong in (np.nan, -1, -0.5, -np.inf, np.float32("nan"), 10**400):
            with pytest.raises(InvalidValue, match=f"as {name}"):
                Policy(**{name: wrong})
        for wrong in ("5", True, 1j, [1]):
            with pytest.raises(TypeError, match=f"a number as {name}"):
                Policy(**{name: wrong})
        Policy(**{name: np.inf})
        Policy(**{name: np.int8(3)})
    for wrong in ({"patience": 0}, {"patience": 1.5}, {"rest": 2.5}):
        with pytest.raises(InvalidValue, match="patience|rest"):
            Policy(**wrong)
    assert Policy(rest=0, patience=2.0, t1=0, overhead=0).patience == 2
    with pytest.raises(TypeError):
        Policy(overhead=None)
    for name, words in (("solver", '"fast" or "scip"'), ("costs", '"learnt" or "flat"')):
        for wrong in ("SCIP", "", None, 1, True):
            with pytest.raises(InvalidValue, match=f"{words} as {name}; came {wrong!r}"):
                Policy(**{name: wrong})
    with pytest.raises(TypeError, match="Topology as links"):
        Policy(links="sim:dgx1-v100")


def test_scip_is_asked_in_long_rounds_only():
    """20 times as long as SCIP takes for so many devices, whichever devices take part."""
    rng = np.random.default_rng(1)
    for n in (2, 4, 8):
        scip = 5e-4 + 8e-6 * n * n
        for edges, asked in ((30 * n * scip / EDGE, True), (19 * n * scip / EDGE, False)):
            mine, costs = arbiter(n, fold=False, solver="scip")
            costs = costs * rng.uniform(1, 1.001, (n, n))
            decision = mine.decide(costs, [int(edges)] + [0] * (n - 1))
            assert decision.action == "steal" and (decision.optimum is not None) == asked
            if asked:
                assert decision.optimum <= decision.z == balance.solve(costs, decision.shares.edges.sum(1)).seconds
                assert decision.overhead == pytest.approx(mine.policy.overhead + scip)
    mine, costs = arbiter(4, p=1.0, solver="scip", t3=np.inf)
    folded = mine.decide(costs, [10**9, 10**9, 0, 0])
    assert folded.action == "fold" and folded.optimum <= folded.z
    assert not np.delete(folded.shares.edges, folded.devices, axis=1).any()


def test_policies_without_an_end():
    """Infinite thresholds and overheads never act, an infinite patience never rests, an infinite rest never ends."""
    loads = np.array([10**9] + [0] * 7)
    for refused in ({"t1": np.inf}, {"t2": np.inf}, {"overhead": np.inf}):
        mine, costs = arbiter(fold=False, **refused)
        assert {one.action for one in rounds_of(mine, costs, loads, lambda *_: 1.0, 20)} == {"leave"}
    mine, costs = arbiter(fold=False, patience=np.inf)
    assert {one.action for one in rounds_of(mine, costs, loads, lambda *_: 9.0, 30)} == {"steal"}
    mine, costs = arbiter(fold=False, patience=2, rest=np.inf)
    found = rounds_of(mine, costs, loads, lambda *_: 9.0, 200)
    assert [one.action for one in found] == ["steal"] * 2 + ["leave"] * 198
