"""Who computes what of a round: stealing, folding, repartitioning, and the models behind them. Numbers in, decisions
out: nothing here knows devices, arrays of theirs, or statements."""

from .features import Tally, features
from .models import Polynomial, constant, costs, link_seconds, traffic, train
from .problem import Shares, Traffic
from .slices import slices, tasks
from .steal import level, solve
from .steal_milp import solve_exact
from .topology import Topology, topology

# fmt: off
__all__ = [
    "Polynomial", "Shares", "Tally", "Topology", "Traffic", "constant", "costs", "features", "level", "link_seconds",
    "slices", "solve", "solve_exact", "tasks", "topology", "traffic", "train",
]
