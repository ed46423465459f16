"""Who computes what of a round: stealing, folding, repartitioning, and the models behind them. Numbers in, decisions
out: nothing here knows devices, arrays of theirs, or statements."""

from .problem import Shares, Traffic
from .slices import slices, tasks
from .steal import level, solve
from .steal_milp import solve_exact

# fmt: off
__all__ = [
    "Shares", "Traffic", "level", "slices", "solve", "solve_exact", "tasks",
]
