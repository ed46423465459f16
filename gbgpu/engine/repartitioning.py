"""When rows move to other owners: Lux's repartitioning by observed times (Jia and others, VLDB 2017, section 5), for
CPU devices, GPUs and ranks alike. `balance/repartition.py` finds boundaries, `moving.py` moves what lies on them.

Products with all rows of a matrix are timed now and then, by marks of the devices around their tasks. What the slowest
device took beyond the mean is lost, and summed up. A product in which that is less than a tenth of its time takes this
tenth off the sum, which begins anew at 0: noise, and what lasts for a moment, move nothing. Rows move once more was
lost than moving takes, as predicted by bytes and later as measured. So moving takes no longer than was lost before it.

Devices that compute for others come first (`assign.py`): their tasks are what is timed. What these even out is not
lost, so it moves nothing.
"""

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..balance.arbiter import Policy
from ..balance.repartition import PartialSums, repartition
from ..distribute.blocks import MatrixStore
from ..distribute.rowmap import RowMap, Task, in_words
from ..kernels.interface import Spec, sums_whole_rows
from ..trace import beside
from .assign import CHUNK, OURS, entries_before
from .context import Context
from .moving import succeed

# Seconds for each entry of a block that is laid out anew, by the kind of devices, until a move was measured. CPU: 24 ms
# for 3.8 M entries on two devices of a quiet machine, 2026-11-27. GPU: twice what a copy is paid for (`sharing.LAID`),
# as the first pull lays the block out too.
LAY = {"cpu": 1.2e-8, "cuda": 1e-10}
ROOM = 1.5  # times the bytes of a device's new rows that must be free there: the old ones go when all has moved
SLACK = 0.1  # of the slowest device's seconds: what they may differ from the mean by
SELDOM = 61  # products from one that is timed to the next, at most; odd, so that of two in turn both are timed


class Observed:
    """What products with the matrices on a row map took, and on those that it took the place of."""

    def __init__(self) -> None:
        self.passed, self.wait = 0, 1.0  # products since the last that was timed, and until the next one
        self.entries: np.ndarray | None = None  # before each chunk of rows, and after the last one
        self.sums: PartialSums | None = None
        self.begin()

    def begin(self) -> None:
        """Nothing was lost yet."""
        self.lost, self.products, self.seconds = 0.0, 0, 0.0  # seconds: of all these products, block by device


class Timed(NamedTuple):
    """A product that is timed, for so many. marks: a task, and marks of its device before and after it."""

    matrix: MatrixStore
    products: int
    compiled: float  # seconds that compilers had taken before
    marks: list[tuple[Task, Any, Any]]


class Repartitioning:
    """The decisions of a session."""

    def __init__(self, session: Context, policy: Policy):
        self.session, self.policy = session, policy
        self.scale = 1.0  # what moving takes, as measured, by what was predicted
        self._predicted = self._took = 0.0  # seconds of the last move
        self.under_way: Timed | None = None  # the product of the step in hand
        self._timed: list[Timed] = []  # others, which devices may not have ended

    def moves(self, map: RowMap) -> bool:
        """Whether rows of a map may move, which has not shown that there is no room for it. They are of ascending ids,
        and so many that blocks may begin with whole words of presence."""
        plain = map.p == len(self.session.devices) > 1 and map.plain and map.heads is None and in_words(map.n, map.p)
        alone = map.successor is None and self.session.maps.of(map.n) is map
        return plain and alone and (map.observed is None or map.observed.wait < inf)

    def timed(self, spec: Spec, matrix: MatrixStore, work: Callable[[Task], Any]) -> Callable[[Task], Any]:
        """The work of a product with all rows, timed where that is due."""
        session, map, heavy = self.session, matrix.rowmap, self._heavy(matrix)
        if session.capturing is not None or not (heavy and sums_whole_rows(spec) and self.moves(map)):
            return work
        seen = map.observed = map.observed or Observed()
        seen.passed += 1
        if seen.passed < seen.wait:
            return work
        self.under_way = one = Timed(matrix, seen.passed, beside.seconds, [])
        seen.passed, seen.wait = 0, min(2 * seen.wait + 1, SELDOM)

        def timed(task: Task) -> Any:
            device = session.devices[task.device]
            begun = device.busy()
            result = work(task)
            one.marks.append((task, begun, device.busy()))
            return result

        return timed

    def _heavy(self, matrix: MatrixStore) -> bool:
        """Whether a product may take so long that it is worth a decision."""
        return matrix.nvals * self.session.kernels.costs.pull_edge > self.policy.overhead

    def due(self, matrices: Sequence[MatrixStore | None]) -> bool:
        """Whether the next product with one of these is to be timed, as earlier ones were."""
        seen = [(one.rowmap.observed, one) for one in matrices if one is not None]
        known = [(of, one) for of, one in seen if of is not None and of.passed + 1 >= of.wait]
        return any(self._heavy(one) and self.moves(one.rowmap) for _, one in known)

    def unseen(self, matrices: Sequence[MatrixStore | None], products: int) -> None:
        """So many products with these matrices went by in captured rounds."""
        for seen in (one.rowmap.observed for one in matrices if one is not None):
            if seen is not None:
                seen.passed += products

    def hear(self) -> None:
        """What products took, and rows that move by it."""
        timed = self._timed if self.under_way is None else [*self._timed, self.under_way]
        self.under_way, self._timed = None, []
        for one in timed:
            spent = self._spent(one)
            if spent is None:
                self._timed.append(one)
            elif spent.any() and self.moves(one.matrix.rowmap):
                self._observe(one.matrix.rowmap, one.matrix, spent, one.products)

    def _spent(self, one: Timed) -> np.ndarray | None:
        """Seconds of each block on each device; 0 where a compiler was at work; None where devices have not ended."""
        session, p = self.session, one.matrix.rowmap.p
        found = [(task.block, task.device, session.devices[task.device].between(*pair)) for task, *pair in one.marks]
        if any(seconds is None for *_, seconds in found):
            return None
        mine = found if one.compiled == beside.seconds else None
        told: list[Any]
        told = [(mine, self._took)] if session.ranks is None else session.ranks.gathered((mine, self._took), "times")
        self._took = max(took for _, took in told)
        spent = np.zeros((p, p))
        if all(part is not None for part, _ in told):
            for block, device, seconds in (each for part, _ in told for each in part):
                spent[block, device] += seconds
        return spent

    def _observe(self, map: RowMap, matrix: MatrixStore, spent: np.ndarray, products: int) -> None:
        seen, each = map.observed, spent.sum(axis=0)
        loss, slack = each.max() - each.mean() - self.policy.overhead, SLACK * each.max()
        seen.lost += products * (loss if loss > slack else min(loss, 0.0) - slack)
        if seen.lost <= 0:
            return seen.begin()
        seen.seconds, seen.products = seen.seconds + products * spent, seen.products + products
        if self._took:
            self.scale *= self._took / self._predicted
            self._took = self._predicted = 0.0
        least = LAY[self.session.home.kind] * self.scale * matrix.nvals / map.p  # seconds, for blocks that are even
        if loss > slack and seen.products > products and seen.lost > least:  # by two products at least
            mean = seen.seconds / seen.products
            each = mean.sum(axis=0)
            self._decide(map, matrix, mean, seen.lost / (each.max() - each.mean()))

    def _decide(self, map: RowMap, matrix: MatrixStore, seconds: np.ndarray, rounds: float) -> None:
        """Move rows if that takes less time than was lost in so many rounds, and there is room."""
        session, seen, costs = self.session, map.observed, self.session.kernels.costs
        if seen.entries is None:
            mine = session.over(map.tasks, entries_before(session, matrix), 0.0)
            parts = session.allgather(map.tasks, mine, "entries of rows")
            above = np.cumsum([0, *matrix.lengths])
            seen.entries = np.concatenate([*(part[:-1] + n for part, n in zip(parts, above, strict=False)), above[-1:]])
            seen.sums = PartialSums(seen.entries)
        hosts, link = None, costs.link * self.scale
        if session.ranks is not None:
            hosts = [session.ranks.rank_of(d) for d in range(map.p)]
        found = repartition(
            seen.sums,
            seen.entries,
            -(-map.bounds // CHUNK),
            seconds,
            matrix.entry_bytes,
            1 / link if link else inf,
            rounds,
            hosts,
            1 / (costs.byte * self.scale),
            LAY[session.home.kind] * self.scale,
        )
        bounds = np.minimum(found.bounds * CHUNK, map.n)
        if not found.worth or np.array_equal(bounds, map.bounds):
            return
        if not self._has_room(matrix, np.diff(seen.entries[found.bounds]), np.diff(bounds)):
            seen.wait = inf
            return
        new = RowMap(bounds)
        new.observed, seen.passed, seen.wait, self._predicted, self._took = seen, 0, 1.0, found.cost, 0.0
        seen.begin()
        succeed(session, map, new)

    def _has_room(self, matrix: MatrixStore, entries: np.ndarray, rows: np.ndarray) -> bool:
        """Whether each device has room for what it has then, beside what it has; those of one memory for all of it."""
        session = self.session
        needs = [ROOM * (matrix.entry_bytes * int(e) + 8 * int(n)) for e, n in zip(entries, rows, strict=True)]
        here = [(device, need) for device, need in zip(session.devices, needs, strict=True) if device.kind != "remote"]
        shared = sum(need for device, need in here if device.shares_memory)
        room = all(device.has_room(shared or need) for device, need in here)
        return room if session.ranks is None else all(session.ranks.gathered(room, "room for rows"))

    def moved(self, work: Callable[[], MatrixStore]) -> MatrixStore:
        """work(), which moves a matrix; what that takes is what moving is taken to cost from then on."""
        self._wait()
        start, compiled = perf_counter(), beside.seconds
        made = work()
        self._wait()
        if self._predicted:
            took = perf_counter() - start - (beside.seconds - compiled)
            self._took += max(took, 0.0)  # several threads may have compiled at a time
        return made

    def _wait(self) -> None:
        for device in self.session.devices:
            device.synchronize()


def repartitioning_of(session: Any, balance: Any) -> Repartitioning | None:
    """What `gb.init(balance=...)` asks for: of CPU devices, also those of several ranks, and of GPUs that `sharing.py`
    is for. Devices that stand for those of another host have no times of it."""
    own, cpu = isinstance(balance, Policy), session.kernels.kind == "cpu"
    if balance == "off" or own and not balance.repartition or len(session.devices) == 1:
        return None
    if session.simulated is not None or not cpu and session.sharing is None:
        return None
    return Repartitioning(session, balance if own else OURS if cpu else Policy())
