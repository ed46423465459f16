"""Whether to steal and fold at all, and a record of what every decision promised and brought.

The thresholds are GUM's (section V-B), derived from the models unless given.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, InvalidValue, message
from .fold import Fold, Overhead, fold, reduction
from .problem import Shares, Traffic, arrays, checked
from .simplex import DEVICE, INTO, MOST, OUT
from .steal import solve
from .steal_milp import seconds as scip_seconds
from .steal_milp import solve_exact
from .topology import Topology

WORTH = 0.05  # of a round: less is not worth counting devices for, and what solving exactly may take
_MEMORY = 0.9  # of what an action brought, from one time to the next
_LONGEST = 16  # times `rest`: so trials in vain take a hundredth of the rounds or less
_LATE = 2.0  # times its prediction: what one round left alone counts for; p learns what is beyond for good


def _number(name: str, value: object, least: float = 0.0) -> float:
    """A number from `least` on that a float can hold, or infinity. Raises TypeError, InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(message(f"a number as {name}", repr(value)))
    try:
        found = float(value)
    except OverflowError:  # an int
        found = np.nan
    if not found >= least:
        raise InvalidValue(message(f"a number from {least:g} on as {name}", value))
    return found


class Thresholds(NamedTuple):
    """Bounds from which actions are tried.

    Attributes
    ----------
    t1 : float
        Edges of the slowest block, from which stealing is tried.
    t2 : float
        Edges that the slowest block has left when the fastest device is done, from which stealing is tried.
    t3 : float
        Seconds of a round, below which folding is tried.
    t4 : float
        Entries of a hub's row.
    """

    t1: float
    t2: float
    t3: float
    t4: float


@lru_cache(maxsize=16)
def _latent(links: Topology) -> float:
    """Bytes that a link carries in its latency, the mean of all; infinite without links."""
    far = (links.bandwidth > 0) & (links.bandwidth < np.inf)
    return float((links.bandwidth[far] * links.latency[far]).mean()) if far.any() else np.inf


@dataclass(frozen=True)
class Policy:
    """What the arbiter may do; give it to `gb.init(balance=...)`.

    Parameters
    ----------
    steal, fold : bool
        Whether devices may compute for others, and whether fewer devices may compute a round.
    t1, t2, t3, t4 : float, optional
        Thresholds, see `Thresholds`. By default derived from the models. Infinity: what they allow never happens (t3:
        always may).
    overhead : float
        Seconds that deciding and moving add to a round; folding onto one device: to the first of such rounds.
    patience : float
        An action that brought a loss in sum after so many times (1 or more) rests. Infinity: never.
    rest : float
        Rounds of such a rest; it is longer if the action is tried in vain again. Infinity: for good.
    solver : str
        "fast": shares are within about an edge of the best. "scip": SCIP finds the best shares of rounds that are
        predicted to take 20 times as long as SCIP does. The fast solver solves the others.
    costs : str
        "learnt": a model predicts the cost of an edge from the features of its block's frontier. "flat": all edges
        cost the same.
    links : Topology, optional
        The links between the devices, as `gb.topology()` measures them. By default the links of the simulated host
        (`gb.init("sim:...")`), and none between CPU devices.
    repartition : bool
        Whether rows may move to other owners.

    Raises
    ------
    TypeError
        If `steal`, `fold` or `repartition` is no bool, `links` no Topology, or a number none.
    InvalidValue
        If a number is NaN or negative, `patience` or `rest` is not whole, or `solver` or `costs` is another word.

    Notes
    -----
    GPUs use steal, fold (whole loops, and calls), repartition, overhead, patience and t4. Pushes are split among GPUs
    `patience` times and left to their owners as often; the faster of the two, by median time, is kept.
    """

    steal: bool = True
    fold: bool = True
    t1: float | None = None
    t2: float | None = None
    t3: float | None = None
    t4: float | None = None
    overhead: float = 30e-6
    patience: float = 8
    rest: float = 64
    solver: str = "fast"
    costs: str = "learnt"
    links: Topology | None = None
    repartition: bool = True

    def __post_init__(self) -> None:
        for name in ("steal", "fold", "repartition"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(message(f"True or False as {name}", repr(getattr(self, name))))
        for name in ("t1", "t2", "t3", "t4", "overhead"):
            if getattr(self, name) is not None or name == "overhead":
                _number(name, getattr(self, name))
        for name, least in (("patience", 1.0), ("rest", 0.0)):
            value = _number(name, getattr(self, name), least)
            if value != np.inf and value % 1:
                raise InvalidValue(message(f"a whole number, or infinity, as {name}", value))
        for name, words in (("solver", ("fast", "scip")), ("costs", ("learnt", "flat"))):
            if getattr(self, name) not in words:
                expected = " or ".join(f'"{word}"' for word in words)
                raise InvalidValue(message(f"{expected} as {name}", repr(getattr(self, name))))
        if not isinstance(self.links, Topology | None):
            raise TypeError(message("a gb.balance.Topology as links", repr(self.links)))

    def thresholds(self, edge_seconds: float, p: float, links: Topology, bytes_per_edge: float) -> Thresholds:
        """Return the thresholds given, and for the others the points below which an action can't pay for itself.

        Stealing saves at most the time from the mean load to the largest: t1 and t2 are the loads where that is the
        overhead. Folding saves at most the barrier of all devices but one, p (n - 1): a twentieth of a round of t3
        seconds. A list of t4 edges takes a link longer than the link's latency.

        Parameters
        ----------
        edge_seconds : float
            Seconds an edge of the slowest block at home.
        p : float
            Seconds that a device adds to a round.
        links : Topology
            The links between devices.
        bytes_per_edge : float
            Bytes of an edge that moves.

        Returns
        -------
        Thresholds
            All four.
        """
        n = links.n
        edges = self.overhead / edge_seconds if edge_seconds > 0 else np.inf
        derived = Thresholds(
            edges,
            edges * n / (n - 1) if n > 1 else np.inf,
            p * (n - 1) / WORTH,
            _latent(links) / bytes_per_edge if bytes_per_edge else np.inf,
        )
        mine = (self.t1, self.t2, self.t3, self.t4)
        return Thresholds(*(got if own is None else own for own, got in zip(mine, derived, strict=True)))


@dataclass(frozen=True, eq=False)
class Decision:
    """Who computes a round.

    Attributes
    ----------
    round : int
        Its number.
    action : str
        "leave", "steal" or "fold" (which steals as well).
    devices : tuple of int
        The devices that take part.
    shares : Shares or None
        What each computes; None where all edges stay at home.
    z : float
        Predicted seconds of the slowest device, by the fast solver.
    plain, predicted : float
        Seconds of the round without and with the action, its overhead included.
    overhead : float
        Seconds that deciding and moving are taken to add.
    observed : float or None
        Seconds that the round took.
    gained : float or None
        Seconds gained against `plain` as rounds left alone came out; None until the round is over.
    optimum : float or None
        Predicted seconds of the slowest device with SCIP's shares, which are then `shares`. None if SCIP was not asked.
    """

    round: int
    action: str
    devices: tuple[int, ...]
    shares: Shares | None
    z: float
    plain: float
    predicted: float
    overhead: float = 0.0
    observed: float | None = None
    gained: float | None = None
    optimum: float | None = None

    @property
    def gain(self) -> float:
        """The predicted gain in seconds."""
        return self.plain - self.predicted

    def to_json(self) -> dict[str, Any]:
        """The decision as a dictionary for JSON, without the shares."""
        return {key: part for key, part in vars(self).items() if key != "shares"}


@dataclass
class _Account:
    """What one action brought."""

    times: int = 0
    gained: float = 0.0
    until: float = 0  # the round to which it rests
    rests: int = 1  # times `rest`: as long as it is tried in vain, twice as long each time


@dataclass
class Arbiter:
    """Decides the rounds of one computation: `decide` before, `observe` after each.

    Parameters
    ----------
    policy : Policy
        What it may do.
    links : Topology
        The links between devices.
    bytes_per_edge : float
        Bytes of an edge that moves.
    p : float
        Seconds that a device adds to a round; a guess until rounds tell.
    log : deque of Decision
        The latest decisions, with what came of them.

    Raises
    ------
    TypeError, InvalidValue
        If `p` or `bytes_per_edge` is no number, or NaN, negative or infinite.
    """

    policy: Policy
    links: Topology
    bytes_per_edge: float
    p: float = 10e-6
    log: deque[Decision] = field(default_factory=lambda: deque(maxlen=10_000))

    def __post_init__(self) -> None:
        for name in ("bytes_per_edge", "p"):
            if _number(name, getattr(self, name)) == np.inf:
                raise InvalidValue(message(f"a finite number as {name}", np.inf))
        self._overhead = Overhead(self.p)
        self._accounts = {"steal": _Account(), "fold": _Account()}
        self._folded: tuple[int, ...] = ()  # the devices of the last round, if it was folded
        self._lost = 0.0  # seconds that the rounds just left alone would have taken less on one device
        self._owed = 0.0  # of the overhead of beginning to fold, what folded rounds have not saved yet
        self._round, self._ratio = 0, 1.0  # of observed to predicted, in rounds left alone
        self._together = self.p  # p, as rounds of all devices say

    def decide(self, costs: Any, loads: Any, traffic: Traffic | None = None) -> Decision:
        """Decide who computes the next round.

        Parameters
        ----------
        costs : array
            Seconds an edge (n, n), as `solve`; finite at home.
        loads : array of int
            Edges of each block (n,), as `solve`. n is that of the links.
        traffic : Traffic, optional
            As `solve`.

        Returns
        -------
        Decision
            To be given to `observe`.

        Raises
        ------
        DimensionMismatch, InvalidValue
            As `solve`.
        """
        parts, loads = self._checked(costs, loads, traffic)
        self._round, costs = self._round + 1, parts[DEVICE]
        n, own = len(loads), costs.diagonal()
        spent = own * loads
        most = int(spent.argmax())
        z, edge = float(spent[most]), float(own[most])
        plain, everyone = z + self.p * n, tuple(range(n))
        leave = Decision(self._round, "leave", everyone, None, z, plain, plain)
        limits = self.policy.thresholds(edge, self.p, self.links, self.bytes_per_edge)
        steal = self._may("steal") and loads[most] >= limits.t1 and z - spent.min() >= limits.t2 * edge
        overhead, before, self._folded = self.policy.overhead, self._folded, ()
        alone, lost, self._lost = None, self._lost, 0.0
        if self._may("fold") and plain < limits.t3:
            alone = self._alone(parts, loads, before)
            if alone is not None:
                devices, shares, seconds = alone
                if seconds >= plain or devices != before and not self._begins(plain - seconds, lost):
                    return leave
                overhead = min(self._owed, plain - seconds)
                self._owed -= overhead  # the same again costs nothing: nothing was asked and nothing moves
            else:
                order = reduction(self.links.links, loads)
                devices, shares, seconds = fold(costs, loads, order, self.p, traffic, steal=bool(steal))
        elif steal:
            devices, shares = everyone, solve(costs, loads, traffic)
            seconds = shares.seconds + self.p * n
        else:
            return leave
        if alone is None and seconds + overhead >= plain:
            return leave
        z, optimum, exact = shares.seconds, None, scip_seconds(n)
        if self.policy.solver == "scip" and steal and exact <= WORTH * z and seconds + overhead + exact < plain:
            costs[:, np.delete(np.arange(n), devices)] = np.inf
            shares, overhead = solve_exact(costs, loads, traffic, limit=WORTH * z), overhead + exact
            optimum, seconds = shares.seconds, seconds - z + shares.seconds
        action = "steal"
        if len(devices) < n:
            action, self._folded = "fold", devices
        predicted = min(seconds + overhead, plain)  # of sums that are equal but for rounding
        return Decision(self._round, action, devices, shares, z, plain, predicted, overhead, optimum=optimum)

    def _begins(self, saved: float, lost: float) -> bool:
        """Whether one device is to do it all from this round on, which takes `saved` seconds less.

        Rounds before have lost `lost` seconds by not doing so. It begins once that would have paid for beginning. Its
        overhead is then owed: a round is charged what it saves at most, and what is left when folding ends counts the
        next time.
        """
        cost = self.policy.overhead + self._owed
        if saved + lost > cost:
            self._owed = cost
            return True
        self._lost = lost + saved
        return False

    def _checked(self, costs: Any, loads: Any, traffic: Traffic | None) -> tuple[np.ndarray, np.ndarray]:
        """(costs (3, n, n), loads), refused as `solve` does; no cost is infinite where it does not matter.

        At a glance: the solver's module takes longer to load than most rounds, which are left alone or go to one
        device.
        """
        loads, parts = arrays(costs, loads, traffic)
        if len(loads) != self.links.n:
            raise DimensionMismatch(message(f"a round of {self.links.n} devices", len(loads)))
        held, given = loads.tolist(), parts if traffic is not None else parts[DEVICE]
        if not (min(held) >= 0 and sum(held) < MOST and given.min() >= 0):
            checked(costs, loads, traffic)  # raises
        if given.max() == np.inf:
            parts[:, loads == 0] = 0.0
        spent = [each * load for each, load in zip(parts[DEVICE].diagonal().tolist(), held, strict=True)]
        if max(spent) == np.inf:
            solve(costs, loads, traffic)  # raises, unless others may compute it
            raise InvalidValue(message("finite seconds at home", spent))
        return parts, loads

    def _alone(self, parts: np.ndarray, loads: np.ndarray, before: tuple[int, ...]) -> Fold | None:
        """One device for all, if that takes it no longer than a second one adds: then nothing is better."""
        devices = before if len(before) == 1 else (int(reduction(self.links.links, loads)[0]),)
        d = devices[0]
        z = float(parts[DEVICE, :, d] @ loads)
        if z <= self.p:
            z = max(z, float(parts[INTO, :, d] @ loads), float((parts[OUT, :, d] * loads).max()))
        if z > self.p:
            return None
        edges = np.zeros(parts.shape[1:], np.int64)
        edges[:, d] = loads
        return Fold(devices, Shares(edges, z, z), z + self.p)

    def observe(self, decision: Decision, seconds: float, *, learn: bool = True) -> Decision:
        """Note that the round took `seconds`.

        Parameters
        ----------
        decision : Decision
            As of `decide`.
        seconds : float
            Of the round.
        learn : bool
            Whether that tells of other rounds; if not, the round gained 0.

        Returns
        -------
        Decision
            The same with what it gained.

        Raises
        ------
        TypeError, InvalidValue
            If `seconds` is no number, or NaN, negative or infinite; nothing is learnt then.
        """
        seconds = _number("seconds of a round", seconds)
        if seconds == np.inf:
            raise InvalidValue(message("finite seconds of a round", seconds))
        account, gained = self._accounts.get(decision.action), 0.0
        if learn:
            self._learn(decision, seconds)
        if learn and account is not None:
            gained = decision.plain * self._ratio - seconds
            account.times, account.gained = account.times + 1, _MEMORY * account.gained + gained
            if account.times >= self.policy.patience and account.gained < 0:
                rest, longer = account.rests * self.policy.rest, min(2 * account.rests, _LONGEST)
                self._accounts[decision.action] = _Account(until=decision.round + rest, rests=longer)
            elif account.times >= self.policy.patience:
                account.rests = 1
        settled = replace(decision, observed=seconds, gained=gained)
        self.log.append(settled)
        return settled

    def _learn(self, decision: Decision, seconds: float) -> None:
        """p, and how rounds left alone come out beside what p makes of them.

        A folded round is late where its z was too small, too. Taken for p that would speak for more folding, whatever
        it costs: such rounds raise p no higher than rounds of all devices did.
        """
        m, n, took = len(decision.devices), self.links.n, seconds - decision.overhead
        if m < n:
            took = min(took, decision.z + self._together * m)
        self.p = self._overhead.observe(m, took, decision.z)
        if m == n:
            self._together = self.p
        if decision.action == "leave" and decision.plain:
            expected = decision.z + self.p * n
            late = min(seconds / expected, _LATE) if expected else 1.0
            self._ratio += (1 - _MEMORY) * (late - self._ratio)

    def _may(self, action: str) -> bool:
        return getattr(self.policy, action) and self._round > self._accounts[action].until
