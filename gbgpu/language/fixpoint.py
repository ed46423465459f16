"""`gb.fixpoint`: one statement that is repeated until nothing improves, in any order that the engine finds quick.

Two schedules give the same result. *free*: vertices are extended as they improve, without rounds (engine/fixpoint.py).
*rounds*: a recorded loop extends all that improved in the round before. Rounds may take over: they go on from a vector
and its frontier, the entries that were not extended since they improved.

Source: Mohri, "Semiring Frameworks and Algorithms for Shortest-Distance Problems", 2002; Davidson, Baxter, Garland,
Owens, IPDPS 2014, near and far; Ben-Nun, Sutton, Pai, Pingali, "Groute", PPoPP 2017, soft priorities.
"""

import sys
from collections.abc import Callable
from functools import partial
from math import ceil, floor, inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from .. import settings
from ..errors import InvalidValue, NotImplementedException, message
from ..modes import Exit
from ..semiring._laws import SCALING, refusal
from ..semiring._lower import to_python
from ..semiring._operators import BinaryOp, SelectOp
from ..semiring._types import BOOL, INT64
from .expr import Expression, Statement, Transposed, new_like
from .index import is_integer
from .masks import Mask, replace
from .recording import Recording, loop, seen
from .residual import BODY, Residual, extend, residual

SCHEDULES = ("auto", "free", "rounds")
WORKERS = {"thread": 1, "warp": 32, "block": 256}  # threads of a GPU that extend vertices together
ROUNDS = 64  # after so many, few vertices that are left may be extended without
PLACES = 4  # of a worker's own queue, for each of its threads
ORDERED = ("min", "max")  # monoids of which values lie on a line, so that there is a best one to go on with
ENDLESS = 1 << 10  # updates a vertex: windows that are far too wide need some hundreds
SPREAD = 32  # windows from the least weight to the greatest, where weights are compared and not added


class Fixpoint(Recording):
    """A statement that is repeated until nothing improves, as made by `gb.fixpoint`.

    Attributes
    ----------
    updates : int
        Vertices that were extended, each as often as it was.
    windows : int
        Windows of the free schedule; 0 where rounds did it all.
    overwork : float
        Updates for each vertex that has a value in the end; 1.0 if each was extended once.
    converged : bool
        Whether nothing improves any more.
    how : str
        The schedules that ran, and why rounds did: "free, 12 windows", "rounds: long rows".
    """

    updates, windows, overwork = seen("updates"), seen("windows"), seen("overwork")
    converged, how = seen("converged"), seen("how")

    # What was recorded, for the session: output(mask, monoid) << semiring(output @ matrix), text in short.
    text: str
    output: Any
    matrix: Any
    semiring: Any  # a typed one
    flip: bool  # whether the output is the left side of the product
    turned: bool  # whether the product has the transpose of the matrix
    mask: Mask | None  # a structural one
    window: float | None  # the width of a window, below 0 for max; None: no windows
    cutoff: Any  # a value of the output's type, beyond which products count as absent; None: none
    worker: int  # threads of a worker, on a GPU
    fetch: int  # vertices that a worker takes at once; 0: as many as there are for each

    def __init__(
        self,
        window: str | float | None,
        schedule: str,
        max_updates: int | None,
        on_window: Callable[[int], Any] | None,
        worker: str,
        fetch: int | None,
        tol: float | None,
        cutoff: float | None,
    ):
        if not isinstance(schedule, str) or schedule not in SCHEDULES:
            raise InvalidValue(message(f"schedule: one of {', '.join(map(repr, SCHEDULES))}", repr(schedule)))
        number = isinstance(window, Real) and not isinstance(window, bool) and 0 <= window <= sys.float_info.max
        if not (window is None or isinstance(window, str) and window == "auto" or number):
            raise InvalidValue(message('window: "auto", None, or a finite number of at least 0', repr(window)))
        if max_updates is not None and (not is_integer(max_updates) or not 1 <= max_updates < 1 << 63):
            raise InvalidValue(message("max_updates: a whole number from 1 to 2**63 - 1", repr(max_updates)))
        if on_window is not None and not callable(on_window):
            raise TypeError(message("on_window: a function of the number of windows", repr(on_window)))
        number = isinstance(tol, Real) and not isinstance(tol, bool) and 0 <= tol <= sys.float_info.max
        if tol is not None and not number:
            raise InvalidValue(message("tol: a finite number of at least 0", repr(tol)))
        self.tol = None if tol is None else float(tol)  # a number of an unsigned type has no negative
        number = isinstance(cutoff, Real) and not isinstance(cutoff, bool) and abs(cutoff) <= sys.float_info.max
        if cutoff is not None and not number:
            raise InvalidValue(message("cutoff: a finite number, or None", repr(cutoff)))
        self._cutoff = cutoff
        if not isinstance(worker, str) or worker not in WORKERS:
            raise InvalidValue(message(f"worker: one of {', '.join(map(repr, WORKERS))}", repr(worker)))
        self.worker, most = WORKERS[worker], PLACES * WORKERS[worker]
        if fetch is not None and (not is_integer(fetch) or not 1 <= fetch <= most):
            raise InvalidValue(message(f"fetch: a whole number from 1 to {most} for a {worker}, or None", repr(fetch)))
        self.fetch = int(fetch or 0)
        self._asked, self.schedule, self.on_window = window, schedule, on_window
        self.max_updates = None if max_updates is None else int(max_updates)
        super().__init__("fixpoint", again=False)
        self._updates, self._windows, self._overwork, self._converged, self._how = 0, 0, 0.0, False, "not run"

    @Exit
    def __exit__(self, kind: Any, *failure: Any) -> None:
        outer = self._body.end(kind)
        if kind is not None:
            return
        if outer is not None:
            hint = "a loop's body can relax in rounds of its own"
            raise NotImplementedException(f"gb.fixpoint inside the body of a loop isn't there yet. Hint: {hint}")
        statements = [operation.what for operation in self._body.operations if operation.kind == "statement"]
        self._session.does(partial(self._go, statements), [statement.output for statement in statements])

    def _go(self, statements: list[Statement]) -> None:
        """Take the body apart and run it."""
        self._updates, self._windows, self._overwork, self._converged, self._how = 0, 0, 0.0, False, "not run"
        self._past, sums = 0, None  # rounds without windows
        if len(statements) == len(self._body.operations) == 2:
            sums = residual(*statements)
            self.text = sums.text
        else:
            self._take(self._statement())
        if self._session.explaining:
            self._session.explaining.text.append(self.explained())
            return
        if sums is None:
            self._run()
        else:
            self._sum(sums)
        self._overwork = self._updates / max(self.output.nvals, 1)
        if settings.verbose & 3:
            print(self.explained() if settings.verbose & 2 else self.text, file=sys.stderr)

    def _sum(self, sums: Residual) -> None:
        if self._cutoff is not None:
            raise InvalidValue(message("no cutoff for sums", f"cutoff={self._cutoff!r}"))
        if self.schedule == "free":
            raise NotImplementedException("the free schedule isn't there for sums. Hint: schedule='auto'")
        self.output, self._how = sums.total, "rounds: sums"
        self._updates, self._converged = extend(sums, self.tol or 0, self.max_updates or self.endless)

    # -- what is repeated

    def _statement(self) -> Statement:
        operations = self._body.operations
        if len(operations) != 1 or operations[0].kind != "statement":
            came = f"{len(operations)} operations" if operations else "an empty body"
            hint = f"or two, {BODY}; gb.loop repeats any" if operations else ""
            raise InvalidValue(message("one statement, d(binary.min) << min_plus(d @ A)", came, hint))
        found: Statement = operations[0].what
        return found

    def _take(self, statement: Statement) -> None:
        """Take the statement apart; raises InvalidValue for one whose result depends on the order."""
        if self.tol is not None:
            raise InvalidValue(message(f"tol: for sums, {BODY}", repr(statement)))
        self.text, expr, d = repr(statement), statement.expr, statement.output
        sides = [expr.left, expr.right] if expr.kind == "product" else []
        if d.ndim != 1 or sum(side is d for side in sides) != 1:
            hint = "gb.loop repeats any other statement"
            raise InvalidValue(message("a product of the output itself, d(accum) << semiring(d @ A)", self.text, hint))
        if statement.index is not None or statement.replace:
            came = "replace" if statement.replace else "an assignment to a part"
            raise InvalidValue(message("a statement that deletes nothing, d(mask, accum) << ...", came))
        if d.dtype is not (dtype := expr.op.monoid.dtype):
            typed = expr.op.op[d.dtype] if d.dtype in expr.op.op else None
            fits = typed is not None and typed.return_type is d.dtype
            hint = f'semiring["{d.dtype.name}"] gives the product that type' if fits else ""
            raise InvalidValue(message(f"an output of the product's type, {dtype.name}", d.dtype.name, hint))
        problem = refusal(expr.op, statement.accum)
        if problem is None and statement.mask is not None and statement.mask.parent is d:
            problem = message("a mask that stays as it is", f"{d.name} itself as the mask", f"a copy, {d.name}.dup()")
        if problem is not None:
            raise InvalidValue(problem)
        self.output, self.semiring, self.flip = d, expr.op, sides[0] is d
        operand = sides[1] if self.flip else sides[0]
        self.turned = isinstance(operand, Transposed)
        self.matrix = operand.matrix if self.turned else operand
        self._operand, self._expr, self._accum = operand, expr, statement.accum
        self.mask = statement.mask
        if self.mask is not None and not self.mask.structural:  # the values that are true, once for all
            true = new_like(d.shape, self.mask.parent.dtype, None)
            true << SelectOp.registry["valuene"](self.mask.parent, 0)
            self.mask = Mask(true, True, self.mask.complement)
        scales = expr.op.multiply.op is BinaryOp.registry[SCALING] and self.matrix.dtype.kind in "if"
        if scales and not self._session.explaining:
            least, most, _ = self._session.weights(self.matrix)
            if least < 0 or most == inf:  # inf times 0 is none
                came = "negative ones" if least < 0 else "infinite ones"
                raise InvalidValue(message("finite factors of at least 0, as the product is not monotone else", came))
        self.cutoff = None if self._cutoff is None else self._last(self._cutoff)
        self.window = None if self._session.explaining else self._window()

    def _last(self, cutoff: float) -> Any:
        """The last value of the output's type that is not beyond the cutoff."""
        name, dtype = self.semiring.monoid.name, self.semiring.monoid.dtype
        if not self._ordered or dtype.kind == "b":
            hint = "cutoff=None, and a select operator afterwards"
            raise InvalidValue(message("a cutoff with the monoid min or max of numbers", repr(self.semiring), hint))
        number = dtype.np_type.type
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                last = number(cutoff)
            beyond = last > cutoff if name == "min" else last < cutoff
            return np.nextafter(last, number(-inf if name == "min" else inf)) if beyond else last
        whole = floor(cutoff) if name == "min" else ceil(cutoff)
        if not np.iinfo(number).min <= whole <= np.iinfo(number).max:
            raise InvalidValue(message(f"a cutoff that fits into {dtype.name}", repr(cutoff)))
        return number(whole)

    def _window(self) -> float | None:
        """How far values of a window lie apart; less than 0 if greater ones are better; None without windows."""
        monoid, multiply, asked = self.semiring.monoid.name, self.semiring.multiply.name, self._asked
        dtype = self.semiring.monoid.dtype
        if not self._ordered or asked is None or dtype.kind == "b" or not self.matrix.nvals:
            return None
        sign, number = 1 if monoid == "min" else -1, dtype.np_type
        # Of whole numbers twice the width fits into the type, as does a limit so far from 0.
        widest = float(np.finfo(number).max) if dtype.kind == "f" else min(np.iinfo(number).max, 1 << 62) // 2
        if asked != "auto":
            least, most, _ = self._session.weights(self.matrix) if multiply == "plus" else (0, 0, 0)
            return sign * min(float(asked), widest) if (least if sign > 0 else -most) >= 0 else None
        if "xy"[self.flip] not in self.semiring.multiply.program.uses:  # no weight is read: all arcs add the same
            zero = self.semiring.multiply.dtypes[0].np_type.type(0)
            weight = to_python(self.semiring.multiply.program)(zero, zero)
            adds, least, most, mean, alike = True, weight, weight, float(weight), True
        else:
            adds, alike = multiply == "plus", bool(self.matrix.ss.is_iso)
            least, most, mean = self._session.weights(self.matrix)
        if adds and mean and (least if sign > 0 else -most) >= 0:
            many = self._session.window_means(self.matrix, alike)
            if many is None:
                return None
            step = sign * mean * many
        elif multiply in ORDERED and multiply != monoid:  # the narrowest, or widest, arc of a path
            step = (most - least) / SPREAD
        else:
            return None
        if not isfinite(step):
            return None
        return sign * min(step if dtype.kind == "f" else max(step, 1), widest)

    @property
    def _ordered(self) -> bool:
        """Whether there is a best value to go on with; of a user's own monoid nobody knows, whatever its name."""
        monoid = self.semiring.monoid
        return monoid.name in ORDERED and monoid.op.binaryop is BinaryOp.registry[monoid.name]

    @property
    def grows(self) -> bool:
        """Whether windows may get wider than `window` where they have few vertices."""
        return self._asked == "auto"

    @property
    def endless(self) -> int:
        """Updates after which there may be a negative cycle, which rounds without windows are sure to tell."""
        return ENDLESS * (self.output.size + ENDLESS)

    # -- running

    def _run(self) -> None:
        d, session = self.output, self._session
        hindrance, go_free, spread = session.scheduled(self)
        if hindrance is not None and self.schedule == "free":
            raise NotImplementedException(f"the free schedule isn't there for {hindrance}. Hint: schedule='auto'")
        either = hindrance is None and self.schedule == "auto"
        why, frontier, how = hindrance or "long rows", d, []
        while frontier is not None and (self.max_updates is None or self._updates < self.max_updates):
            if go_free:
                done = session.relax(self, frontier, spread)
                self._updates, self._windows = self._updates + done.updates, self._windows + done.windows
                how.append(f"free, {done.windows} window{'s' * (done.windows != 1)}")
                frontier, why, go_free, either = done.waiting, done.why, False, either and done.wide
            else:
                how += [f"rounds: {why}"] if why else []
                bound = ROUNDS if either and (self._asked == "auto" or self.window is None) else None
                frontier, why = self._rounds(frontier, bound), ""
                if bound is None or self.rounds_left == 0:
                    break
                go_free = frontier is not None and session.thin(frontier)
        self._converged, self._how = frontier is None, "; ".join(how)

    @property
    def rounds_left(self) -> int | None:
        """Rounds without windows that the longest path without a cycle may still take; None: any number.

        Of ordered monoids only a negative cycle takes more, and is worth while for ever.
        """
        if not self._ordered:
            return None
        return max(self.output.size, 1) + 1 - self._past

    def _rounds(self, frontier: Any, bound: int | None) -> Any:
        """Extend what improved in the round before, near ones first if a number was given as the window.

        Returns what is left to be extended after `bound` rounds, with the values of the output; None: nothing.

        "auto" has no windows here: the statements that divide near from far take longer than to extend more again.
        """
        d, mask, op = self.output, self.mask, self.semiring
        t, q, near, kept, far = (new_like(d.shape, dtype, None) for dtype in (d.dtype, d.dtype, d.dtype, BOOL, BOOL))
        updates, limit, rise = new_like((), INT64, "updates"), *(new_like((), d.dtype, x) for x in ("limit", "rise"))
        updates.value, step = self._updates, None if self._asked == "auto" else self.window
        if step is None:
            near << frontier
        else:  # the first round takes the first window of it
            limit.value, rise.value = 0, abs(step) if d.dtype.kind == "f" else int(abs(step))
            far(frontier.S) << True
        sides = (near, self._operand) if self.flip else (self._operand, near)
        product = Expression("product", op, *sides, self._expr.dtype, d.shape, self._expr.option)
        most = self.max_updates
        if most is None and step is not None:
            most = self._updates + self.endless
        bounds = [many for many in (bound, self.rounds_left if step is None else None) if many is not None]
        with loop(min(bounds, default=None)) as it:
            updates << updates + near.nvals
            (t if mask is None else t(mask, replace)) << product
            if self.cutoff is not None:
                t << UP_TO[op.monoid.name](t, self.cutoff)
            kept << SAME(self._accum(d & t) & d)
            q(~kept.V, replace) << t
            d(self._accum) << q
            if step is None:
                near << q
            else:
                near << UP_TO[op.monoid.name](q, limit)
                far(q.S) << True
                far(~near.S, replace) << far
                with it.when(near.nvals == 0):
                    q(far.S, replace) << d
                    limit << RISEN[op.monoid.name](q.reduce(op.monoid, allow_empty=False) | rise)
                    near << UP_TO[op.monoid.name](q, limit)
                    far(~near.S, replace) << far
            it.until(near.nvals == 0 if most is None else (near.nvals == 0) | (updates >= most))
        self._updates = int(updates.value)
        if not near.nvals:
            return None
        if step is None:
            self._past += it.rounds
        elif self.max_updates is None:
            self.window = None
            return self._rounds(d, None)
        near(near.S) << d  # of bits, the output has more than what came last
        return near

    def explained(self) -> str:
        """What is repeated, and how it ran."""
        return f"{self!r}: {self.text}\n  relax until nothing improves: {self.how}"

    def __repr__(self) -> str:
        given = (
            ("window", self._asked, "auto"),
            ("schedule", self.schedule, "auto"),
            ("max_updates", self.max_updates, None),
            ("worker", next(name for name, threads in WORKERS.items() if threads == self.worker), "warp"),
            ("fetch", self.fetch, 0),
            ("tol", self.tol, None),
            ("cutoff", self._cutoff, None),
        )
        return f"gb.fixpoint({', '.join(f'{name}={value!r}' for name, value, usual in given if value != usual)})"


SAME = BinaryOp.register_anonymous(lambda x, y: (x == y) | ((x != x) & (y != y)), "same")
RISEN = {  # a limit that would wrap stays
    "min": BinaryOp.register_anonymous(lambda x, step: x if x + step < x else x + step, "risen"),
    "max": BinaryOp.register_anonymous(lambda x, step: x if x - step > x else x - step, "fallen"),
}
UP_TO = {
    "min": SelectOp.register_anonymous(lambda x, i, j, limit: not (x > limit), "up_to"),
    "max": SelectOp.register_anonymous(lambda x, i, j, limit: not (x < limit), "down_to"),
}


def fixpoint(
    *,
    window: str | float | None = "auto",
    schedule: str = "auto",
    max_updates: int | None = None,
    on_window: Callable[[int], Any] | None = None,
    worker: str = "warp",
    fetch: int | None = None,
    tol: float | None = None,
    cutoff: float | None = None,
) -> Fixpoint:
    """Repeat one statement until nothing improves, in any order.

    The body is one statement `d(accum) << semiring(d @ A)`, or `A @ d`, through a mask if wanted. The accumulator is
    the semiring's monoid. The monoid is idempotent, and the product monotone. The result then does not depend on the
    order, and vertices may be extended as they improve, without rounds. To extend a vertex is to relax the arcs that
    leave it.

    Sums have two statements, `x(binary.plus) << r` and `r << plus_times(r @ P)`. To extend a vertex adds its residual
    in `r` to `x`, and passes it on along the entries of `P`. Rounds extend all whose residual is greater than `tol`.

    Parameters
    ----------
    window : "auto", float or None
        For the monoids min and max: vertices whose values are at most so far from the best one that waits are extended
        first. A wide window lets more be done at once, and more of it again. "auto": as predicted from the weights.
        None: no windows.
    schedule : "auto", "free" or "rounds"
        "free": without rounds; "rounds": as a loop of rounds; "auto": what is predicted to take less time. The result
        is the same.
    max_updates : int, optional
        The run ends once so many vertices were extended, 1 or more, and `converged` is False if any still waits. It
        is looked at after each round, or after each kernel call of the free schedule.
    on_window : callable, optional
        Called with the number of windows that are done, after each one of the free schedule, which then is a kernel
        of its own.
    worker : "warp", "thread" or "block"
        Which threads of a GPU extend vertices together. The arcs of the vertices of a warp, or block, are spread over
        its threads; a thread relaxes those of one vertex.
    fetch : int, optional
        Vertices that a worker of a GPU takes from the list of a window at once, at most 4 for each of its threads. By
        default the list is shared equally, with at most one vertex a thread.
    tol : float, optional
        For sums: residuals of at most this size are left. By default 0.
    cutoff : float, optional
        For the monoids min and max: products beyond this number, above it or below it, count as absent. What lies
        beyond is never extended.

    Returns
    -------
    Fixpoint
        To be used in a `with` statement.

    Raises
    ------
    TypeError
        If `on_window` is no function.
    InvalidValue
        If an argument has another value; at the end of the body, if that is not one such statement, or if its result
        depends on the order.
    NotImplementedException
        At the end of the body, if "free" is asked for where only rounds are possible, or inside the body of a loop.

    References
    ----------
    Ben-Nun, Sutton, Pai, Pingali, "Groute: An Asynchronous Multi-GPU Programming Model for Irregular Computations",
    PPoPP 2017. Chen et al., "Atos: A Task-Parallel GPU Scheduler for Graph Analytics", ICPP 2022.

    Examples
    --------
        d = gb.Vector("INT64", size=n)
        d[source] = 0
        with gb.fixpoint() as it:
            d(binary.min) << min_plus(d @ A)
    """
    return Fixpoint(window, schedule, max_updates, on_window, worker, fetch, tol, cutoff)
