"""Statements are rewritten, planned and run; within `gb.explain()` they are only planned."""

import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from .. import settings
from ..errors import InvalidValue, message
from ..language.recording import recorder
from ..modes import Open, Threads, Within
from ..semiring._lower import to_python
from ..trace import counters
from . import dry
from .context import Context
from .deterministic import settled
from .matrix import MatrixRun
from .matrix.plan import MatrixPlanner
from .plan import NOTHING, Plan, revived
from .planner import Planner
from .prepare import of_matrices, of_vectors
from .reading import out_of_memory
from .rewrite import rewritten
from .run import Run
from .run.steps import cast
from .runner import Runner
from .stores import STATEMENT, Stores
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


class Statements(Stores):
    """The statements of a session: what runs them, and what is known of those that are only planned."""

    plans: dict[Any, Plan]
    watched: Watched | None
    _planning: Threads  # where threads want plans in place of results

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
