"""Whether to steal and fold at all: GUM's thresholds (section V-B), derived from the models unless given, and a record
of what every decision promised and brought."""

from collections import deque
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import message
from .fold import Fold, Overhead, fold, reduction
from .problem import Shares, Traffic
from .steal import solve
from .topology import Topology

_WORTH = 0.05  # of a round: less is not worth counting devices for
_MEMORY = 0.9  # of what an action brought, from one time to the next


class Thresholds(NamedTuple):
    """t1: edges of the fullest block and t2: its edges beyond the emptiest's, from which stealing is tried; t3: seconds
    of a round, below which folding is; t4: entries of a row, from which it is a hub's."""

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
    """What the arbiter may do. t1 .. t4: see Thresholds; None: derived. overhead: seconds that deciding and moving add
    to a round; an action that brought a loss in sum after `patience` times rests for `rest` rounds. Raises TypeError
    for what is no number."""

    steal: bool = True
    fold: bool = True
    t1: float | None = None
    t2: float | None = None
    t3: float | None = None
    t4: float | None = None
    overhead: float = 30e-6
    patience: int = 8
    rest: int = 64

    def __post_init__(self) -> None:
        for name in ("t1", "t2", "t3", "t4", "overhead", "patience", "rest"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float, np.number)) or value is None and name.startswith("t")):
                raise TypeError(message(f"a number as {name}", repr(value)))

    def thresholds(self, edge_seconds: float, p: float, links: Topology, bytes_per_edge: float) -> Thresholds:
        """Those given, and for the others the points below which an action can't pay for itself. edge_seconds: of the
        fullest block at home.

        Stealing saves at most the time from the mean load to the largest: t1 and t2 are the loads where that is the
        overhead. Folding saves at most the meeting of all devices but one, p (n - 1): a twentieth of a round of t3
        seconds. A list of t4 edges takes a link longer than the link's latency.
        """
        n = links.n
        edges = self.overhead / edge_seconds if edge_seconds > 0 else np.inf
        derived = Thresholds(
            edges,
            edges * n / (n - 1) if n > 1 else np.inf,
            p * (n - 1) / _WORTH,
            _latent(links) / bytes_per_edge if bytes_per_edge else np.inf,
        )
        mine = (self.t1, self.t2, self.t3, self.t4)
        return Thresholds(*(got if own is None else own for own, got in zip(mine, derived, strict=True)))


@dataclass(frozen=True, eq=False)
class Decision:
    """Who computes a round. action: "leave", "steal" or "fold" (which steals as well); shares: None where all stay at
    home; plain, predicted: seconds of the round without and with the action, its overhead included; observed: seconds
    it took; gained: against `plain` as rounds left alone came out (None until the round is over); overhead: what
    deciding and moving are taken to add."""

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

    @property
    def gain(self) -> float:
        """Predicted, seconds."""
        return self.plain - self.predicted

    def told(self) -> dict[str, Any]:
        """For JSON, without the shares."""
        return {key: part for key, part in vars(self).items() if key != "shares"}


@dataclass
class _Account:
    """What one action brought."""

    times: int = 0
    gained: float = 0.0
    until: int = 0  # the round to which it rests


@dataclass
class Arbiter:
    """Decides rounds of one computation: `decide` before, `observe` after each. p: seconds a device adds to a round, a
    guess until rounds tell. log: the latest decisions, with what came of them."""

    policy: Policy
    links: Topology
    bytes_per_edge: float
    p: float = 10e-6
    log: deque[Decision] = field(default_factory=lambda: deque(maxlen=10_000))

    def __post_init__(self) -> None:
        self._overhead = Overhead(self.p)
        self._accounts = {"steal": _Account(), "fold": _Account()}
        self._folded: tuple[int, ...] = ()  # the devices of the last round, if it was folded
        self._round, self._ratio = 0, 1.0  # of observed to predicted, in rounds left alone

    def decide(self, costs: Any, loads: Any, traffic: Traffic | None = None) -> Decision:
        """costs (n, n), loads (n,), traffic as `solve` takes and refuses them; costs at home are finite."""
        costs, loads = np.asarray(costs, float), np.asarray(loads)
        self._round += 1
        n, own = len(loads), costs.diagonal()
        z, most = float((own * loads).max()), int(loads.argmax())
        plain, everyone = z + self.p * n, tuple(range(n))
        leave = Decision(self._round, "leave", everyone, None, z, plain, plain)
        limits = self.policy.thresholds(float(own[most]), self.p, self.links, self.bytes_per_edge)
        steal = self._may("steal") and loads[most] >= limits.t1 and loads[most] - loads.min() >= limits.t2
        overhead, before, self._folded = self.policy.overhead, self._folded, ()
        if self._may("fold") and plain < limits.t3:
            alone = self._alone(costs, loads, traffic, before)
            if alone is not None:
                devices, shares, seconds = alone
                overhead = 0.0 if devices == before else overhead  # nothing was asked and nothing moves
            else:
                order = reduction(self.links.links, loads)
                devices, shares, seconds = fold(costs, loads, order, self.p, traffic, steal=bool(steal))
        elif steal:
            devices, shares = everyone, solve(costs, loads, traffic)
            seconds = shares.seconds + self.p * n
        else:
            return leave
        if seconds + overhead >= plain:
            return leave
        action = "steal"
        if len(devices) < n:
            action, self._folded = "fold", devices
        return Decision(self._round, action, devices, shares, shares.seconds, plain, seconds + overhead, overhead)

    def _alone(
        self, costs: np.ndarray, loads: np.ndarray, traffic: Traffic | None, before: tuple[int, ...]
    ) -> Fold | None:
        """One device for all, if that takes it no longer than a second one adds: then nothing is better."""
        devices = before if len(before) == 1 else (int(reduction(self.links.links, loads)[0]),)
        d = devices[0]
        z = float(costs[:, d] @ loads)
        if traffic is not None and z <= self.p:
            moved = traffic.bytes[:, d] * loads
            z = max(z, float(moved.sum() / traffic.into[d]), float((moved / traffic.out).max()))
        if not z <= self.p:  # no number, too, where a block may not come here
            return None
        edges = np.zeros(costs.shape, np.int64)
        edges[:, d] = loads
        return Fold(devices, Shares(edges, z, z), z + self.p)

    def observe(self, decision: Decision, seconds: float) -> Decision:
        """The round took `seconds`; returns the decision with what it gained."""
        account = self._accounts.get(decision.action)
        if account is None:
            self._ratio += (1 - _MEMORY) * (seconds / decision.plain - self._ratio) if decision.plain else 0.0
        self.p = self._overhead.observe(len(decision.devices), seconds - decision.overhead, decision.z)
        gained = decision.plain * self._ratio - seconds if account else 0.0
        if account is not None:
            account.times, account.gained = account.times + 1, _MEMORY * account.gained + gained
            if account.times >= self.policy.patience and account.gained < 0:
                self._accounts[decision.action] = _Account(until=decision.round + self.policy.rest)
        settled = replace(decision, observed=seconds, gained=gained)
        self.log.append(settled)
        return settled

    def _may(self, action: str) -> bool:
        return getattr(self.policy, action) and self._round > self._accounts[action].until
