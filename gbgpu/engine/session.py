"""A session: devices, kernels, row maps, plans. Handles give it their statements; nothing else reaches the devices."""

from collections.abc import Callable, Iterable, Sequence
from gc import collect
from typing import Any
from weakref import WeakKeyDictionary, WeakMethod

import numpy as np

from .. import settings
from ..balance.arbiter import Policy
from ..balance.topology import topology
from ..device.base import Device
from ..distribute.needs import Transfer
from ..distribute.partition import Partition, equal_edges
from ..distribute.ranks import Ranks
from ..distribute.rowmap import Task
from ..distribute.transport import carry
from ..distribute.world import wanted, world
from ..errors import InvalidValue, NotImplementedException, message
from ..kernels import programs
from ..kernels.backends import open_devices
from ..language.program import Programs
from ..language.recording import recorder
from ..modes import Changed, Threads
from ..semiring._types import INT64
from ..trace import counters
from . import fixpoint, forks, loop, segments  # noqa: F401  (forks: registered by its import)
from .assign import chosen
from .calls import folding_of
from .filtering import filtered
from .loop.captured_loops import CapturedLoops
from .maps import Maps
from .memory import of_handle
from .plan import Plan, Step
from .pool import Pool
from .repartitioning import repartitioning_of
from .replicas import Replicas
from .sharing import folds, shared_by
from .statements import Statements
from .turns import Turns
from .watch import Watched


class Session(Statements):
    """The devices in use and everything made on them. `gb.init` makes one; another `gb.init` ends it.

    Whatever handles call takes `lock`; what devices' threads call (`placeholders`, `once`, the pool) never does.
    """

    int64 = INT64

    def __init__(
        self,
        spec: str = "auto",
        partition: Partition | None = None,
        deterministic: bool = False,
        balance: "str | Policy" = "auto",
        replicas: Any = "auto",
        ranks: bool | None = None,
    ):
        if partition is not None and not isinstance(partition, Partition):
            raise TypeError(message("a partition such as gb.partition.shares(1, 5, 3)", repr(partition)))
        if not isinstance(deterministic, (bool, np.bool_)):
            raise TypeError(message("deterministic=True or False", repr(deterministic)))
        if ranks is not None and not isinstance(ranks, (bool, np.bool_)):
            raise TypeError(message("ranks=True, False or None", repr(ranks)))
        if deterministic and partition is not None and partition.permutes:
            hint = "sums go in the order of ids; equal_rows(), equal_edges() and shares(...) keep it"
            raise InvalidValue(
                message("a partition that keeps the order of rows, deterministic", repr(partition), hint)
            )
        self.spec, self.auto, self.deterministic = spec, spec == "auto", bool(deterministic)
        self.simulated = topology(spec) if str(spec).startswith("sim:") else None  # a host that CPU devices stand for
        spec = spec if self.simulated is None else f"cpu:{self.simulated.n}"
        self.ranks = Ranks() if (wanted() if ranks is None else ranks) and world().size > 1 else None
        if self.ranks is None:
            self.device_set, self.kernels = open_devices(spec)
        elif self.simulated is not None:
            raise NotImplementedException("sim: devices across ranks aren't there yet. Hint: ranks=False")
        else:
            beside = self.ranks.beside()
            own, self.kernels = self.ranks.alike(lambda: open_devices(spec, beside), "gb.init")
            if self.kernels.kind == "mixed":
                raise NotImplementedException(
                    f"{spec!r} across ranks isn't there yet. Hint: GPUs, or CPUs, of each rank"
                )
            asked = self.auto, self.deterministic, repr(partition), settings.rank_checks
            self.device_set = self.ranks.joined(own, asked)
        self.devices = self.device_set.devices
        self.at = next(d for d, device in enumerate(self.devices) if device.kind != "remote")
        self.assigner, self.sharing = chosen(self, balance), shared_by(self, balance)
        self.repartitioning = repartitioning_of(self, balance)
        if partition is None and self.kernels.weights:
            partition = equal_edges(*(self.kernels.weights[device.kind] for device in self.devices))
        self.maps = Maps(len(self.devices), self.kernels.whole if self.auto else 0, partition)
        self.pool = Pool(self.devices, self.kernels.neutral)
        self.placeholders, self.once = self.pool.placeholders.__getitem__, self.pool.once
        self.plans: dict[Any, Plan] = {}
        self.loops, self.replicas = CapturedLoops(), Replicas(self, replicas)
        self.folds = folds(balance)
        self.folding, self.programs = folding_of(self), Programs(self)
        self.made_of: WeakKeyDictionary[Any, dict] = WeakKeyDictionary()  # see `derived`
        for device in self.devices:
            if device.kind == "cuda":
                device.relieve = WeakMethod(self._relieved)
        self.recorders = Threads()  # where the body of a loop is written down
        self._planning = Threads()
        self.alive = True
        self.broken: str | None = None  # why nothing works any more
        self.lock = Turns()
        self.capturing: Any = None  # the loop that is captured
        self.looping: set[Any] = set()  # an element a loop that runs
        self.late: Callable[[Any, Any], Any] | None = None  # what stands for a scalar's value while a loop is captured
        self.counts_unknown = False  # plans are made as if counts were unknown: they hold for any
        self.writing = False  # a round of a loop is written down, for devices to do it by themselves
        self.made: list[Step] | None = None  # steps that the statement in hand took before its own
        self.watched: Watched | None = None  # the step in hand, while somebody traces
        self.changes: list[Changed] = []  # of these, and of others, while a loop is captured
        self.doubted = False  # whether devices of any rank may have found something wrong since the last read
        self._watched: list[tuple[Device, Any, type[Exception], str]] = []

    def __repr__(self) -> str:
        return f"Session({', '.join(device.name for device in self.devices)})"

    def close(self) -> None:
        """End it: its handles raise InvalidValue from now on."""
        with self.lock:
            self.alive = False
            self.device_set.close()
            for held in (self.programs, self.loops, self.plans, self.maps, self.pool, self.made_of):
                held.clear()

    def _relieved(self) -> bool:
        """Memory is short: what is kept to save time goes. Whether there was any."""
        if self.capturing is not None or not (self.replicas.drop() or self.loops or self.programs or self.made_of):
            return False
        for kept in (self.loops, self.programs, self.made_of):
            kept.clear()
        collect()
        return True

    def held(self, handle: Any) -> dict[str, int]:
        """Bytes that each device holds for a handle."""
        self.check()
        return of_handle(self, handle._store)

    def note_compiled(self, program: str) -> None:
        """Note on disk that the kernels of a program, by a name of letters, digits, dots and hyphens, lie in the cache
        for devices such as these."""
        programs.note(self.devices, program)

    def compiled(self, program: str) -> bool:
        """Whether that was noted, by this process or an earlier one."""
        return programs.noted(self.devices, program)

    def forked(self) -> None:
        """In a child process: the devices begin anew, if they can."""
        self.lock.forked()
        self.broken = self.device_set.forked()
        self.alive = self.alive and self.broken is None

    # -- work

    def over(
        self, tasks: Sequence[Task], work: Callable[[Task], Any], seconds: float, whole: bool = False
    ) -> list[Any]:
        """work(task) for every task, each on its device (see DeviceSet.over)."""
        if self.watched is not None:
            work = self.watched.timed(work)
        if len(tasks) == 1 and seconds < settings.long_seconds and not self.device_set.switches:
            return [work(tasks[0])]
        return self.device_set.over(tasks, work, seconds, whole)

    def account(self, d: int, moved: int, unknown: Sequence[tuple[Any, int]] = ()) -> None:
        """Bytes that arrived at device d; of messages whose length only devices know, (count, bytes an entry)."""
        if self.ranks is not None and not self.ranks.here(d):
            return
        counters.moved(moved)
        if self.watched is not None:
            self.watched.moved[d] += moved
            self.watched.sent[d].extend(unknown)

    def carry(self, d: int, transfers: list[Transfer]) -> None:
        """Carry out transfers to device d."""
        self.account(d, *carry(self.devices, transfers))

    def brought(self, owner: int, d: int, parts: Iterable[Any]) -> list[Any]:
        """Copies of arrays of one device, on device d."""
        pairs = [(part, self.devices[d].empty(part.size, part.dtype)) for part in parts]
        self.carry(d, [Transfer(owner, d, *pair) for pair in pairs])
        return [came for _, came in pairs]

    def within_reach(self, owner: int, d: int, parts: Sequence[Any]) -> Sequence[Any]:
        """Arrays of one device, which kernels of device d read once in this step: where they lie, or copies."""
        if owner == d:
            return parts
        if self.brings:
            return self.brought(owner, d, parts)
        for part in parts:
            self.devices[d].reach(part)
        self.account(d, sum(part.nbytes for part in parts))
        return parts

    @property
    def apart(self) -> bool:
        return settings.staged or not self.device_set.one_memory

    @property
    def brings(self) -> bool:
        """Whether what it reads once has to be, too."""
        return settings.staged or not self.device_set.direct

    # -- loops, programs, fixpoints

    def carry_out(self, recorded: Any) -> None:
        """Run a recorded loop to its end."""
        loop.carry_out(self, recorded)

    def called(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """function(*args, **kwargs), which gb.program decorates."""
        if self.folding is None:
            return self.programs.call(function, args, kwargs)
        return self.folding.call(function, args, kwargs)

    def does(self, work: Callable[[], Any], changes: Iterable[Any]) -> Any:
        """work(), which changes these objects."""
        return work()

    def fused(self, statements: Any, recorded: Any, owned: set[int], before: Any) -> Callable[[], Any]:
        """What runs statements of a program that read nothing on the host, and a loop (see segments.fused)."""
        return segments.fused(self, statements, recorded, owned, before)

    def snapshot(self, what: Any) -> Any:
        """What a statement or a loop of a program reads (see segments.snapshot)."""
        return segments.snapshot(self, what)

    def unshared(self, store: Any, owned: set[int]) -> Any:
        """What an object of a program holds, in buffers that no later call writes."""
        return segments.unshared(self, store, owned)

    def seen(self, what: Any, name: str) -> Any:
        """What an object tells of itself, or of its last run."""
        if (recording := settings.recording()) is not None:
            recording.outside()
        return getattr(what, name)

    def scheduled(self, work: Any) -> Any:
        """How a recorded fixpoint goes (see fixpoint.Schedule)."""
        with self.lock:
            self.check()
            return fixpoint.scheduled(self, work)

    def relax(self, work: Any, frontier: Any, spread: bool) -> Any:
        """Run a recorded fixpoint from a frontier on, without rounds (see fixpoint.Done). `spread`: as scheduled."""
        return fixpoint.relax(self, work, frontier, spread)

    def thin(self, frontier: Any) -> bool:
        """Whether so few vertices are left that they take less time without rounds."""
        return fixpoint.thin(self, frontier)

    def free(self, matrix: Any) -> bool:
        """Whether a fixpoint of a matrix is predicted to take less time without rounds. In the body of a loop there are
        rounds only."""
        if self.recording:
            return False
        with self.lock:
            return fixpoint.free(self, matrix)

    def weights(self, matrix: Any) -> tuple[Any, Any, float]:
        """The least weight of a matrix, the greatest, and their mean."""
        return fixpoint.weights(self, matrix)

    def give(self, one: Any, made: Any, other: Any, beside: Any) -> None:
        """Two objects take what was computed for them. Ctrl-C does not come between."""
        with self.lock:
            self.check()
            if (one.shape, other.shape) != (made.shape, beside.shape):
                came = f"{one.shape} and {other.shape} now"
                raise InvalidValue(message(f"outputs that keep their shapes, {made.shape} and {beside.shape}", came))
            one._store, other._store = made._store, beside._store

    def window_means(self, matrix: Any, alike: bool) -> float | None:
        """Mean weights that a window of a fixpoint is wide, if all weights are `alike` or not; None: no windows."""
        return fixpoint.window_means(self, matrix, alike)

    def filtered(self, expr: Any, segments: Iterable[tuple[int, np.ndarray]]) -> list[np.ndarray]:
        """What a select expression of a vector keeps of host arrays (see filtering.filtered)."""
        with self.lock:
            self.check()
            return filtered(self, expr, segments)

    @property
    def recording(self) -> bool:
        """Whether this thread records the body of a loop."""
        return recorder(self) is not None
