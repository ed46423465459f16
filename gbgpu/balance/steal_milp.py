"""The problem of `steal.py` solved exactly, by SCIP (as GUM does, section III-C).

Sessions with Policy(solver="scip") ask it in rounds that are long beside `seconds`. The only file that imports
PySCIPOpt.
"""

from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from ..errors import InvalidValue, message
from ..interrupts import imported
from .problem import Shares, Traffic, checked, seconds_of
from .simplex import DEVICE, INTO, OUT
from .steal import solve

# Of z: what whole loads add less than is left out. Coefficients that differ by more than SPREAD are beyond SCIP's
# tolerances: then it is not asked what it has proven.
_NOTHING, _SPREAD = 1e-9, 1e7
_LONGEST = 1e20  # SCIP's infinity


class Model:
    """The program for n devices, with or without links; made once, its numbers changed for every call."""

    def __init__(self, n: int, linked: bool) -> None:
        scip = imported("pyscipopt")
        self._lock, self._n = Lock(), n  # SCIP's state is the model's
        self._model = model = scip.Model()
        model.hideOutput()
        model.setParam("presolving/maxrounds", 1)  # there is little to find, and it takes longer than the rest
        model.setParam("parallel/maxnthreads", 1)
        z = model.addVar("z", vtype="C", lb=0, obj=1)
        self._x = [[model.addVar(f"x{i},{j}", vtype="I", lb=0) for j in range(n)] for i in range(n)]
        self._sums = [model.addCons(scip.quicksum(row) == 0) for row in self._x]
        self._full = {}
        for kind in (DEVICE, INTO, OUT) if linked else (DEVICE,):
            for at in range(n):
                line = self._x[at] if kind == OUT else [row[at] for row in self._x]
                self._full[kind, at] = model.addCons(scip.quicksum(line) - z <= 0)
        model.setObjective(z)

    def solve(self, costs: np.ndarray, loads: np.ndarray, known: Shares, gap: float, limit: float) -> Shares:
        """Shares for costs (3, n, n) and loads (n,), as `checked` gives them.

        The better one of what SCIP finds and what is known, which tells what matters: one edge that takes longer goes
        nowhere.
        """
        some = costs.copy()
        some[DEVICE][(costs > known.seconds * (1 + 1e-9)).any(0)] = np.inf
        some[some * np.maximum(loads, 1)[:, None] < _NOTHING * known.seconds] = 0.0
        matter = some[np.isfinite(some) & (some > 0)]
        unit = matter.min(initial=np.inf)  # SCIP's tolerances are for numbers of 1
        unit = max(unit, matter.max() / _SPREAD**2) if matter.size else 1.0
        with self._lock:
            self._model.setParams({"limits/gap": gap, "limits/time": min(limit, _LONGEST)})
            self._fill(some / unit, loads)
            self._model.optimize()
            if self._model.getStatus() == "userinterrupt":  # SCIP takes Ctrl-C for itself
                raise KeyboardInterrupt
            if not self._model.getNSols():
                return known
            value = self._model.getSolVal
            best = self._model.getBestSol()
            found = np.array([[value(best, x) for x in row] for row in self._x])
            bound = float(self._model.getDualbound() * unit)
        edges = np.rint(found).astype(np.int64)
        edges[np.arange(self._n), edges.argmax(1)] += loads - edges.sum(1)  # integer to SCIP is nearly so
        z = seconds_of(costs, edges) if (edges >= 0).all() else np.inf
        bound = bound if unit * _SPREAD >= matter.max(initial=0.0) else known.bound
        return Shares(edges, z, min(bound, z)) if z < known.seconds else known._replace(bound=min(bound, known.seconds))

    def _fill(self, costs: np.ndarray, loads: np.ndarray) -> None:
        model, n = self._model, self._n
        model.freeTransform()
        for i in range(n):
            model.chgLhs(self._sums[i], float(loads[i]))
            model.chgRhs(self._sums[i], float(loads[i]))
            for j in range(n):
                open = costs[DEVICE, i, j] < np.inf
                model.chgVarUb(self._x[i][j], float(loads[i]) if open else 0.0)
        for (kind, at), row in self._full.items():
            for other in range(n):
                i, j = (at, other) if kind == OUT else (other, at)
                cost = costs[kind, i, j]
                model.chgCoefLinear(row, self._x[i][j], float(cost) if cost < np.inf else 0.0)


_model = cache(Model)


def seconds(n: int) -> float:
    """Predicted seconds that SCIP takes for a round of n devices.

    Fitted to medians of 2 to 16 devices, with and without links, on a core of an AMD EPYC (2026-11-29).
    """
    return 5e-4 + 8e-6 * n * n


def solve_exact(
    costs: Any, loads: Any, traffic: Traffic | None = None, *, gap: float = 1e-5, limit: float = 60.0
) -> Shares:
    """The best shares, found by SCIP; they are no worse than those of `solve`.

    Dozens of edges on many devices take long.

    Parameters
    ----------
    costs, loads, traffic : array, array, Traffic
        As `solve`.
    gap : float
        Relative, of z and its bound, at which SCIP stops. A smaller one takes long and gives little, since constraints
        hold to millionths.
    limit : float
        Seconds after which it is the best found; infinity: never.

    Returns
    -------
    Shares
        Edges, seconds, and a lower bound of these.

    Raises
    ------
    DimensionMismatch, InvalidValue
        As `solve`; also for a gap or a limit that is none.
    """
    if not (0 <= gap < np.inf and limit >= 0):
        raise InvalidValue(message("a finite gap and a limit in seconds, from 0 on", (gap, limit)))
    known = solve(costs, loads, traffic)
    loads, costs = checked(costs, loads, traffic)
    return _model(len(loads), traffic is not None).solve(costs, loads, known, gap, limit)
