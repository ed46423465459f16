"""Messages of gb.fixpoint between devices that extend what they own:

    mpiexec -n 2 python -m bench.experiments.halo [GRAPH ...] [--devices cpu:1]

Shortest paths (weights 1 to 255) from the vertex of highest degree: in rounds; without rounds; and without Groute's
halo filter, so that a device forgets what it has told others. Times are medians of three whole calls in ms, the devices
synchronised, kernels compiled. All results are compared with those in rounds. In one process the devices of a list have
no replicas.

- `sent`: vertices that owners are told of, each as often as it was.
- `meetings`: how often all devices told one another.
- `overwork`: vertices extended for each one reached.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gbgpu as gb
from bench.experiments.soft_priorities import graph, paths
from bench.record import Table, experiment, interleaved, page, synchronized
from gbgpu.device.remote import AWAY, local_results
from gbgpu.engine import fixpoint as engine

COLUMNS = ["graph", "", "ms", "windows", "meetings", "sent", "overwork"]
GRAPHS = "luxembourg_osm", "osm-andorra", "rail-world"


class Counting(engine.Relaxation):
    """A relaxation that counts what is sent from here, and forgets it if `forgets`."""

    last: Any
    forgets = False

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.sent, Counting.last = 0, self

    def _tell_owners(self) -> None:
        for part in local_results(self._parts):
            self.sent += int(part.outbox[2][0])
        super()._tell_owners()
        for task, part in zip(self._map.tasks, self._parts, strict=True):
            if self.forgets and part is not AWAY:
                first, start = self._map.first_slot(task.block), self._work.semiring.monoid.start
                part.best[:first] = part.best[first + part.n :] = start


def rows_of(name: str, data: str) -> list[list[Any]]:
    """The rows of one graph, alike on all ranks."""
    A, source = graph(name, data)
    wanted: Any = None
    rows: list[list[Any]] = []
    for what, how in {"rounds": {"schedule": "rounds"}, "messages": {}, "without the filter": {}}.items():
        Counting.forgets = what.startswith("without")
        call = partial(paths, A, source, **how or {"schedule": "free"})
        found, it = call()
        wanted = found if wanted is None else wanted
        assert found.isequal(wanted) and it.converged
        sent: Any = ""
        if not how:
            session, last = gb.settings.session(), Counting.last
            sent = last.sent if session.ranks is None else session.ranks.total(last.sent, "messages")
        seconds = interleaved([synchronized(call)], 3, 1, 20)[0]
        meetings = "" if how else Counting.last.meetings
        rows.append([name, what, f"{1e3 * seconds:.3g}", it.windows, meetings, sent, f"{it.overwork:.3g}"])
    return rows


def main() -> None:
    given = experiment(__doc__, GRAPHS, "cpu:1").parse_args()
    session = gb.init(given.devices, replicas=0)
    engine.Relaxation = Counting  # type: ignore[assignment, misc]
    ranks = 1 if session.ranks is None else session.ranks.size
    rows = []
    for name in given.graphs:
        found = rows_of(name, given.data)
        rows += found
        for row in found if gb.rank() == 0 else ():
            print(*row, sep=" | ", flush=True)
    title = f"Messages of fixpoints on {ranks} ranks with {given.devices} each"
    page(given.results, title, __doc__, [Table(COLUMNS, rows)])


if __name__ == "__main__":
    main()
