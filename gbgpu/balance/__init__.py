"""Who computes what of a round: stealing, folding, repartitioning, and the models behind them.

Numbers in, decisions out: nothing here knows devices, arrays of theirs, or statements.
"""

from .arbiter import Arbiter, Decision, Policy, Thresholds
from .features import Tally, features
from .fold import Fold, Overhead, fold, reduction
from .models import Polynomial, constant, costs, link_seconds, traffic, train
from .problem import Shares, Traffic
from .repartition import PartialSums, Prediction, Rates, Repartition, predict, repartition, vertex_sets
from .replay import Outcome, Round, Summary, replay, rounds, stalled, summary
from .slices import slices, tasks
from .steal import level, solve
from .steal_milp import solve_exact
from .topology import Topology, topology

# fmt: off
__all__ = [
    "Arbiter", "Decision", "Fold", "Outcome", "Overhead", "PartialSums", "Policy", "Polynomial", "Prediction",
    "Rates", "Repartition", "Round", "Shares", "Summary", "Tally", "Thresholds", "Topology", "Traffic", "constant",
    "costs", "features", "fold", "level", "link_seconds", "predict", "reduction", "repartition", "replay", "rounds",
    "slices", "solve", "solve_exact", "stalled", "summary", "tasks", "topology", "traffic", "train", "vertex_sets",
]
