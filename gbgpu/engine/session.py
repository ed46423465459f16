"""A session: devices, kernels, row maps, plans. Handles give it their statements; nothing else reaches the devices."""

import sys
from collections.abc import Callable, Iterable, Sequence
from gc import collect
from typing import Any
from weakref import WeakKeyDictionary, WeakMethod, WeakValueDictionary

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
from ..modes import Changed, Open, Threads, Within
from ..semiring._lower import to_python
from ..semiring._types import INT64
from ..trace import counters
from . import dry, fixpoint, forks, loop, segments  # noqa: F401  (forks: registered by its import)
from .assign import chosen
from .calls import folding_of
from .context import Context
from .deterministic import settled
from .filtering import filtered
from .loop.captured_loops import CapturedLoops
from .maps import Maps
from .matrix import MatrixRun
from .matrix.plan import MatrixPlanner
from .memory import of_handle
from .plan import NOTHING, Plan, Step, revived
from .planner import Planner
from .pool import Pool
from .prepare import of_matrices, of_vectors
from .reading import out_of_memory
from .repartitioning import repartitioning_of
from .replicas import Replicas
from .rewrite import rewritten
from .run import Run
from .run.steps import cast
from .runner import Runner
from .sharing import folds, shared_by
from .stores import STATEMENT, Stores
from .turns import Turns
from .watch import Watched


class Planning(Open):
    """Statements of a thread are planned, and do not run; `text`: where their plans go.

    By the ids of objects: `unwritten`, those that such statements would have written, and `left`, what they would hold.
    `known`: by the ids of stores, what the statement in hand knows of them (engine/dry.py).
    """

    def __init__(self, text: list[str]):
        self.text = text
        self.unwritten: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.left: dict[int, Any] = {}
        self.known: dict[int, tuple[Any, Any]] = {}


class Session(Stores):
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
        self.made_of: WeakKeyDictionary[Any, dict] = WeakKeyDictionary()  # by content of a matrix (`derived`)
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

    # -- statements

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
        """What a statement or a loop of a program reads next (see segments.snapshot)."""
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

    def window_means(self, alike: bool) -> float | None:
        """Mean weights that a window of a fixpoint is wide, if all weights are `alike` or not; None: no windows."""
        return self.kernels.relaxing.windows[alike]

    def filtered(self, expr: Any, segments: Iterable[tuple[int, np.ndarray]]) -> list[np.ndarray]:
        """What a select expression of a vector keeps of host arrays (see filtering.filtered)."""
        with self.lock:
            self.check()
            return filtered(self, expr, segments)

    @property
    def apart(self) -> bool:
        return settings.staged or not self.device_set.one_memory

    @property
    def brings(self) -> bool:
        """Whether what it reads once has to be, too."""
        return settings.staged or not self.device_set.direct

    @property
    def recording(self) -> bool:
        """Whether this thread records the body of a loop."""
        return recorder(self) is not None

    @property
    def explaining(self) -> "Planning | None":
        """Where this thread wants plans in place of results: the innermost place."""
        return self._planning.here() if self._planning else None

    @property
    def dry(self) -> bool:
        """Whether the statement in hand is planned and does not run (engine/dry.py)."""
        return bool(self._planning) and self.made is not None and self.explaining is not None

    def stored(self, handle: Any) -> Any:
        """The content of an object; in a plan, what statements that were planned before would have left."""
        here = self.explaining if self.dry and self.planned(handle) else None
        return handle._store if here is None else here.left.get(id(handle), handle._store)

    def planned(self, handle: Any) -> bool:
        """Whether this thread wants plans, and has only planned the statement that writes an object."""
        here = self.explaining
        return here is not None and id(handle) in here.unwritten

    def filled(self, handle: Any) -> None:
        """An object has content that no statement wrote."""
        if (here := self.explaining) is not None:
            here.unwritten.pop(id(handle), None)
            here.left.pop(id(handle), None)

    def computed(self, handle: Any) -> None:
        """Raise InvalidValue where an object is read whose statement was only planned."""
        if handle._session is self and (recording := settings.recording()) is not None:
            recording.outside()
        if self.planned(handle):
            came = f"{handle.name}, whose statement gb.explain() planned and did not run"
            hint = "gb.trace() records what runs; gb.explain(statement) tells of one that ran"
            raise InvalidValue(message("a result that was computed", came, hint))

    def planning(self, text: list[str]) -> Within:
        """A context in which this thread's statements are planned into `text`, and do not run; gives `text`."""
        self.check()
        return Within(self._planning, Planning(text), text)

    def run(self, statement: Any) -> Any:
        """Rewrite, plan (or find the plan) and run; returns the statement. Its plan has the steps of all statements
        that it took."""
        if self.recorders and (here := recorder(self)) is not None:
            return here.statement(statement)
        taken = self.lock.owned  # by this thread: the statement is a part of another
        try:
            with self.lock:
                return self._run(statement, taken)
        except MemoryError as error:
            raise out_of_memory(self, statement, error) from error

    def _run(self, statement: Any, taken: bool) -> Any:
        if self.changes or not self.alive:
            self.check()
        if not taken:
            self.made = self.watched = None  # what a statement that was cut short has left
        plans = self.explaining if self._planning and self.made is None else None
        if plans:
            plans.known.clear()
        elif self._watched:
            self.raise_watched()
        above, self.made = self.made, []
        try:
            inner = statement
            while (other := rewritten(inner)) is not None:
                inner = other
            if self.deterministic and hasattr(inner.expr.op, "multiply"):
                inner.expr = settled(inner.expr)
            meets = statement.output.ndim or getattr(statement.expr.left, "ndim", 0)  # scalars alone: each rank's own
            if self.ranks is not None and above is None and not plans and meets:
                self.ranks.does(*statement.outline, given=statement.given)
            self._finish(inner, statement, plans)
            statement.carried = inner.carried
        finally:
            self.made = above
            if plans:
                plans.known.clear()
        if above is not None:
            above += statement.steps
        return statement

    def _finish(self, statement: Any, title: Any, plans: Any) -> None:
        """Carry out a statement that stays as it is, or put its plan among `plans`. A part of a statement that is only
        planned leaves what is known of its result."""
        output, expr = statement.output, statement.expr
        if expr.kind == "move":
            return self._moved(statement, title, plans)
        if output.ndim:
            if output.ndim == 1:
                found = self._carry_out(statement, title, plans, of_vectors, Planner, Run)
            else:
                if not self.dry:
                    self.room(output.shape[0], STATEMENT, output)
                found = self._carry_out(statement, title, plans, of_matrices, MatrixPlanner, MatrixRun)
            if plans:
                self._foreseen(output, found, plans)
            elif found is not None:
                output._store = found
            return
        if expr.shape or statement.mask is not None:
            raise TypeError(message("a scalar expression, s << x.reduce(monoid)", repr(statement)))
        if statement.accum is not None or expr.kind == "fill":
            return self._scalar_on_host(statement, title, plans)
        found = self._carry_out(statement, title, plans, of_vectors, Planner, Run)
        if plans:
            return self._foreseen(output, None, plans)
        if self.dry:
            value = found[0]
        else:
            found = *found, expr.option.empty
            if output.dtype is expr.dtype:
                output._store = found
                return
            value = self.read_scalar(found)
        output.value = None if value is None else cast(value, expr.dtype, output.dtype)

    def _carry_out(
        self,
        statement: Any,
        title: Any,
        plans: Any,
        prepare: Callable[[Context, Any], tuple[tuple, dict[str, Any]]],
        planner: type[Planner | MatrixPlanner],
        runner: type[Runner],
    ) -> Any:
        """What the last step leaves; of a plan that is only wanted, what is known of that."""
        rehearsed = self.dry
        counters.statements += not rehearsed
        asked, bound = prepare(self, statement)
        key = planner, asked
        plan = self.plans.get(key)
        if plan is None:
            plan = planner(revived(asked)).plan()
            if not rehearsed:
                if len(self.plans) >= settings.kept_kernels:  # each anonymous function makes plans of its own
                    self.plans.clear()
                self.plans[key] = plan
                self.kernels.ahead(plan.steps)
        statement.carried = self.made, plan
        if plans or settings.verbose & 3:
            self._tell(statement.plan, title, plans)
        if rehearsed:
            return dry.left(self, plan, bound, statement)
        if plan.inputs and plan.inputs[0].name == "w" and "w" not in bound:
            bound["w"] = self.matrix_store(statement.output)
        try:
            result = runner(self, plan, bound, title).go()
        except BaseException:
            self.pool.distrust()
            self.loops.clear()  # they use workspaces of the pool
            for who in (self.assigner, self.sharing, self.repartitioning):
                if who is not None:
                    who.under_way = None
            raise
        if self.sharing is not None:
            self.sharing.done()
        return result

    def _foreseen(self, output: Any, store: Any, plans: Any) -> None:
        """A statement would have left this in an object (None: nobody knows what)."""
        if plans.unwritten.get(id(output)) is not output or store is not None:
            plans.left.pop(id(output), None)
        plans.unwritten[id(output)] = output
        if store is not None:
            plans.left[id(output)] = store

    def _tell(self, plan: Plan | str, title: Any, plans: Any) -> None:
        text = f"{title!r}\n{plan}"
        if plans:
            plans.text.append(text)
        elif settings.verbose & 3:
            print(text if settings.verbose & 2 else repr(title), file=sys.stderr)

    def _moved(self, statement: Any, title: Any, plans: Any) -> None:
        """The output takes what was computed for it."""
        statement.carried = self.made, NOTHING
        if plans or settings.verbose & 3:
            self._tell(statement.plan, title, plans)
        output, made = statement.output, statement.expr.left
        if plans:
            return self._foreseen(output, made._store if output.ndim else None, plans)
        output._store = made._store
        if output.ndim == 0:
            output._value = made._value

    def _scalar_on_host(self, statement: Any, title: Any, plans: Any) -> None:
        """`s(accum) << x.reduce(...)`, `s(accum) << value`: on the host, as a scalar's value is read there anyway."""
        output, accum, expr = statement.output, statement.accum, statement.expr
        taken = output.dtype if accum is None else accum.dtypes[-1]
        if expr.kind == "fill":
            new = None if expr.option is None else cast(expr.option, expr.dtype, taken)
        else:
            term = output.dup(taken, clear=True, name=output.name)
            self.run(type(statement)(term, None, None, False, expr, None, statement.hints))
            new = term.value
        statement.carried = self.made, NOTHING
        if plans:
            self._foreseen(output, None, plans)
            return self._tell(statement.plan if self.made else "  on the host", title, plans)
        old = output.value
        if new is None and accum is not None:
            return
        if accum is not None and old is not None:
            one = cast(old, output.dtype, accum.dtypes[0])
            new, taken = to_python(accum.program)(one, taken.np_type.type(new)), accum.return_type
        output.value = None if new is None else cast(new, taken, output.dtype)
