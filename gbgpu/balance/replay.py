"""Recorded rounds through any policy on any host.

What a trace says of frontiers is enough to decide again, and to predict what came of it. All seconds here are
predictions.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DimensionMismatch, FileFormatError, InvalidValue, message
from .arbiter import Arbiter, Decision, Policy
from .features import Tally
from .files import reading
from .models import Polynomial, costs, traffic
from .simplex import MOST
from .topology import Topology

_Step = tuple[int, str, Tally | None]  # number of its statement, kind, frontier of one block


class Round(NamedTuple):
    """A product: "push" or "pull", and the frontier of each block."""

    direction: str
    tallies: tuple[Tally, ...]

    @property
    def edges(self) -> int:
        """The edges of all blocks."""
        return sum(tally.edges for tally in self.tallies)


class Outcome(NamedTuple):
    """A round again: what was decided, and the seconds that each device computes, left alone and as decided (n,)."""

    round: Round
    decision: Decision
    home: np.ndarray
    busy: np.ndarray


def rounds(records: Iterable[Any]) -> list[Round]:
    """The products among records of `gb.trace()`: those on CPU devices, which have tallies.

    Parameters
    ----------
    records : iterable of Record
        Of `gb.trace()`, without `rounds=True`.

    Returns
    -------
    list of Round
        In their order.

    Raises
    ------
    InvalidValue
        If there are rounds that ran on the devices without Python: nobody counted their frontiers.
    """
    steps = [(r.statement, r.step, r.tally) for r in records]
    alone = _alone(steps)
    if alone:
        expected, hint = "records of loops statement by statement", "record them by gb.trace() without rounds=True"
        raise InvalidValue(message(expected, f"{alone} of rounds without tallies", hint))
    return _grouped(steps)


def load(path: str | Path) -> list[Round]:
    """The products of a file that `gbgpu run --trace` wrote. Raises FileFormatError, OSError."""
    with reading(path, "a trace as gbgpu run --trace writes it") as held:
        steps = [_step(event) for event in held["traceEvents"] if event["ph"] == "X"]
    alone, found = _alone(steps), _grouped(steps)
    if alone:
        expected, hint = "loops statement by statement", "record it without --rounds"
        raise FileFormatError(message(expected, f"{alone} records of rounds without tallies in {path}", hint))
    if not found:
        hint = "record it on CPU devices: gbgpu run bfs GRAPH --devices cpu:8 --trace FILE"
        raise FileFormatError(message("products with tallies of their frontiers", f"none in {path}", hint))
    if max(round.edges for round in found) >= MOST:
        raise FileFormatError(message("rounds of fewer than 2**62 edges", f"one of more in {path}"))
    return found


def _step(event: Any) -> _Step:
    """Of a file. Raises what `reading` turns into FileFormatError."""
    statement, kind, tally = event["args"]["statement"], event["name"], Tally.read(event["args"].get("tally"))
    if type(statement) is not int or not isinstance(kind, str):
        raise ValueError(f"a step {kind!r} of statement {statement!r}")
    if tally is not None and kind not in ("push", "pull"):
        raise ValueError(f"a tally of a step {kind!r}, which is no product")
    return statement, kind, tally


def _alone(steps: Iterable[_Step]) -> int:
    """How many are rounds of loops that devices went by themselves (`trace.Record`)."""
    return sum(kind.endswith("round") and tally is None for _, kind, tally in steps)


def _grouped(steps: Iterable[_Step]) -> list[Round]:
    found: dict[tuple[int, str], list[Tally]] = {}
    for statement, kind, tally in steps:
        if tally is not None:
            found.setdefault((statement, kind), []).append(tally)
    return [Round(kind, tuple(tallies)) for (_, kind), tallies in found.items()]


def replay(
    recorded: Sequence[Round],
    links: Topology,
    model: Polynomial | Mapping[str, Polynomial],
    policy: Policy | None,
    bytes_per_edge: float = 8.0,
    p: float = 20e-6,
) -> list[Outcome]:
    """Each round again, as a policy decides it on another host.

    What devices send each other after a round is not in it.

    Parameters
    ----------
    recorded : sequence of Round
        Rounds of as many blocks as the host has devices.
    links : Topology
        The host.
    model : Polynomial or dict
        Seconds an edge, or a model for each direction ("push", "pull").
    policy : Policy or None
        None leaves each round.
    bytes_per_edge : float
        Bytes of an edge that moves.
    p : float
        Seconds that each device which takes part adds to a round.

    Returns
    -------
    list of Outcome
        One for each round.

    Raises
    ------
    DimensionMismatch
        If rounds have another number of blocks.
    """
    n, found = links.n, []
    off = Policy(steal=False, fold=False)
    arbiter = Arbiter(policy or off, links, bytes_per_edge, p)
    limits = traffic(links, bytes_per_edge)
    for round in recorded:
        if len(round.tallies) != n:
            hint = f"record it on cpu:{n}"
            raise DimensionMismatch(message(f"rounds of {n} blocks for {links.name}", len(round.tallies), hint))
        one = model if isinstance(model, Polynomial) else model[round.direction]
        edge, loads = one(round.tallies), np.array([tally.edges for tally in round.tallies])
        each = costs(edge, links, bytes_per_edge)
        decision = arbiter.decide(each, loads, limits)
        edges = np.diag(loads) if decision.shares is None else decision.shares.edges
        spent = np.where(edges > 0, each, 0.0) * edges
        found.append(Outcome(round, decision, edge * loads, spent.sum(0)))
    return found


class Summary(NamedTuple):
    """Predicted results of all rounds.

    Attributes
    ----------
    seconds, alone : float
        With and without the decisions.
    stalled, stalled_alone : float
        Which part of these devices wait for the slowest.
    actions : dict
        The number of rounds by action.
    """

    seconds: float
    alone: float
    stalled: float
    stalled_alone: float
    actions: dict[str, int]


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """What a policy brought, predicted, as a `Summary` of outcomes."""
    actions: dict[str, int] = {}
    for outcome in outcomes:
        actions[outcome.decision.action] = actions.get(outcome.decision.action, 0) + 1
    return Summary(
        sum(outcome.decision.predicted for outcome in outcomes),
        sum(outcome.decision.plain for outcome in outcomes),
        stalled([outcome.busy for outcome in outcomes], [outcome.decision.devices for outcome in outcomes]),
        stalled([outcome.home for outcome in outcomes]),
        actions,
    )


def stalled(busy: Sequence[np.ndarray], devices: Sequence[tuple[int, ...]] | None = None) -> float:
    """The part of the rounds' time in which devices that take part wait for the slowest."""
    whole = work = 0.0
    for k, spent in enumerate(busy):
        taking_part = len(spent) if devices is None else len(devices[k])
        whole += taking_part * float(spent.max(initial=0.0))
        work += float(spent.sum())
    return 1 - work / whole if whole else 0.0
