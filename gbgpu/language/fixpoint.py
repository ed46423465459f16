"""`gb.fixpoint`: one statement that is repeated until nothing improves, in any order that the engine finds quick.

Two schedules give the same result. *free*: vertices are extended as they improve, without rounds (engine/fixpoint.py).
*rounds*: a recorded loop extends all that improved in the round before. Both go on from a vector and its frontier, the
entries that were not extended since they improved, so that one may take over from the other.

Source: Mohri, "Semiring Frameworks and Algorithms for Shortest-Distance Problems", 2002; Davidson, Baxter, Garland,
Owens, IPDPS 2014, near and far; Ben-Nun, Sutton, Pai, Pingali, "Groute", PPoPP 2017, soft priorities.
"""

import sys
from collections.abc import Callable
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from .. import settings
from ..errors import InvalidValue, NotImplementedException, fixed, message
from ..modes import Exit, Mode
from ..semiring._laws import SCALING, refusal
from ..semiring._lower import to_python
from ..semiring._operators import BinaryOp, SelectOp
from ..semiring._types import BOOL, INT64
from .expr import Expression, Statement, Transposed, new_like
from .index import is_integer
from .masks import Mask, replace
from .recording import Recorder, loop

SCHEDULES = ("auto", "free", "rounds")
ORDERED = ("min", "max")  # monoids of which values lie on a line, so that there is a best one to go on with
SPREAD = 32  # windows from the least weight to the greatest, where weights are compared and not added


class Fixpoint(Mode):
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
        The schedule, and why it was taken.
    """

    updates, windows, overwork = fixed("updates"), fixed("windows"), fixed("overwork")
    converged, how = fixed("converged"), fixed("how")

    def __init__(
        self,
        window: str | float | None,
        schedule: str,
        max_updates: int | None,
        on_window: Callable[[int], Any] | None,
    ):
        if schedule not in SCHEDULES:
            raise InvalidValue(message(f"schedule: one of {', '.join(map(repr, SCHEDULES))}", repr(schedule)))
        number = isinstance(window, Real) and not isinstance(window, bool) and 0 <= window <= sys.float_info.max
        if not (window is None or window == "auto" or number):
            raise InvalidValue(message('window: "auto", None, or a finite number of at least 0', repr(window)))
        if max_updates is not None and (not is_integer(max_updates) or max_updates < 1):
            raise InvalidValue(message("max_updates: a whole number of at least 1", repr(max_updates)))
        if on_window is not None and not callable(on_window):
            raise TypeError(message("on_window: a function of the number of windows", repr(on_window)))
        self._asked, self.schedule, self.max_updates, self.on_window = window, schedule, max_updates, on_window
        self._session = settings.session()
        self._body, self._begun = Recorder(self._session), False
        self._updates, self._windows, self._overwork, self._converged, self._how = 0, 0, 0.0, False, "not run"

    def __enter__(self) -> "Fixpoint":
        self._session.check()
        if self._begun:
            raise InvalidValue(message("a new fixpoint", "one whose body was recorded", "gb.fixpoint() makes another"))
        self._begun = True
        self._body.begin(self.until_over())
        return self

    @Exit
    def __exit__(self, kind: Any, *failure: Any) -> None:
        outer = self._body.end(kind)
        if kind is not None:
            return
        if outer is not None:
            hint = "a loop's body can relax in rounds of its own"
            raise NotImplementedException(f"gb.fixpoint inside the body of a loop isn't there yet. Hint: {hint}")
        self._take(self._statement())
        if self._session.explaining:
            self._session.explaining.text.append(self.explained())
        else:
            self._run()

    # -- what is repeated

    def _statement(self) -> Statement:
        operations = self._body.operations
        if len(operations) != 1 or operations[0].kind != "statement":
            came = f"{len(operations)} operations" if operations else "an empty body"
            hint = "gb.loop repeats several"
            raise InvalidValue(message("one statement, d(binary.min) << min_plus(d @ A)", came, hint))
        found: Statement = operations[0].what
        return found

    def _take(self, statement: Statement) -> None:
        """Take the statement apart; raises InvalidValue for one whose result depends on the order."""
        self.text, expr, d = repr(statement), statement.expr, statement.output
        sides = [expr.left, expr.right] if expr.kind == "product" else []
        if d.ndim != 1 or sum(side is d for side in sides) != 1:
            hint = "gb.loop repeats any other"
            raise InvalidValue(message("a product of the output itself, d(accum) << semiring(d @ A)", self.text, hint))
        if statement.index is not None or statement.replace:
            came = "replace" if statement.replace else "an assignment to a part"
            raise InvalidValue(message("a statement that deletes nothing, d(mask, accum) << ...", came))
        if d.dtype is not (dtype := expr.op.monoid.dtype):
            hint = f'semiring["{d.dtype.name}"] gives the product that type'
            raise InvalidValue(message(f"an output of the product's type, {dtype.name}", d.dtype.name, hint))
        problem = refusal(expr.op, statement.accum)
        if problem is None and statement.mask is not None and statement.mask.parent is d:
            problem = message("a mask that stays as it is", f"{d.name} itself as the mask")
        if problem is not None:
            raise InvalidValue(problem)
        self.output, self.semiring, self.flip = d, expr.op, sides[0] is d
        operand = sides[1] if self.flip else sides[0]
        self.turned = isinstance(operand, Transposed)
        self.matrix = operand.matrix if self.turned else operand
        self._operand, self._expr, self._accum = operand, expr, statement.accum
        self.mask: Mask | None = statement.mask
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
        self.window = None if self._session.explaining else self._window()
        # A path without a cycle has fewer arcs than there are vertices: longer ones are better for ever, if at all.
        self.bounded = expr.op.monoid.name in ORDERED and self.window is None

    def _window(self) -> float | None:
        """How far values of a window lie apart; less than 0 if greater ones are better; None without windows."""
        monoid, multiply, asked = self.semiring.monoid.name, self.semiring.multiply.name, self._asked
        if monoid not in ORDERED or asked is None or not self.matrix.nvals or self.semiring.monoid.dtype.kind == "b":
            return None
        sign = 1 if monoid == "min" else -1
        if asked != "auto":
            least, most, _ = self._session.weights(self.matrix) if multiply == "plus" else (0, 0, 0)
            return sign * float(asked) if (least if sign > 0 else -most) >= 0 else None
        if "xy"[self.flip] not in self.semiring.multiply.program.uses:  # the same everywhere
            zero = self.semiring.multiply.dtypes[0].np_type.type(0)
            weight = to_python(self.semiring.multiply.program)(zero, zero)
            adds, least, most, mean, alike = True, weight, weight, float(weight), True
        else:
            adds, alike = multiply == "plus", bool(self.matrix.ss.is_iso)
            least, most, mean = self._session.weights(self.matrix)
        if adds and mean and (least if sign > 0 else -most) >= 0:
            many = self._session.spread(alike)
            if many is None:
                return None
            step = sign * mean * many
        elif multiply in ORDERED and multiply != monoid:  # the narrowest, or widest, arc of a path
            step = (most - least) / SPREAD
        else:
            return None
        if not isfinite(step):
            return None
        return sign * (max(step, 1) if self.semiring.monoid.dtype.kind != "f" else step)

    # -- running

    def _run(self) -> None:
        d = self.output
        hindrance = "asked for" if self.schedule == "rounds" else self._session.not_free(self)
        if hindrance is not None and self.schedule == "free":
            raise NotImplementedException(f"the free schedule isn't there for {hindrance}. Hint: schedule='auto'")
        frontier, how = d, []
        if hindrance is None:
            done = self._session.relax(self)
            self._updates, self._windows, frontier = done.updates, done.windows, done.waiting
            how.append(f"free, {done.windows} windows")
            hindrance = done.why
        self._converged = frontier is None
        spent = self.max_updates is not None and self._updates >= self.max_updates
        if frontier is not None and not spent:
            how.append(f"rounds: {hindrance}")
            self._rounds(frontier)
        self._overwork = self._updates / max(d.nvals, 1)
        self._how = "; ".join(how)
        if settings.verbose & 3:
            print(self.explained() if settings.verbose & 2 else self.text, file=sys.stderr)

    def _rounds(self, frontier: Any) -> None:
        """Extend what improved in the round before, near ones first if there are windows."""
        d, mask, op = self.output, self.mask, self.semiring
        t, q, near, kept, far = (new_like(d.shape, dtype, None) for dtype in (d.dtype, d.dtype, d.dtype, BOOL, BOOL))
        updates, limit, step = new_like((), INT64, "updates"), new_like((), d.dtype, "limit"), self.window
        updates.value = self._updates
        if step is not None:
            rise = new_like((), d.dtype, "rise")
            rise.value = abs(step) if d.dtype.kind == "f" else min(int(abs(step)), int(np.iinfo(d.dtype.np_type).max))
        if step is None:
            near << frontier
        else:  # the first round takes the first window of it
            limit.value = 0
            far(frontier.S) << True
        product = Expression("product", op, near, self._operand, self._expr.dtype, d.shape, self._expr.option)
        if not self.flip:
            product = Expression("product", op, self._operand, near, self._expr.dtype, d.shape, self._expr.option)
        to = (t,) if mask is None else (t(mask, replace),)
        with loop(max(d.size, 1) + 1 if self.bounded else None) as it:
            updates << updates + near.nvals
            to[0] << product
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
            stop = near.nvals == 0
            it.until(stop if self.max_updates is None else stop | (updates >= self.max_updates))
        self._updates, self._converged = int(updates.value), near.nvals == 0

    def explained(self) -> str:
        """What is repeated, and how it ran."""
        return f"{self!r}: {self.text}\n  relax until nothing improves: {self.how}"

    def __repr__(self) -> str:
        window = "" if self._asked == "auto" else f"window={self._asked!r}"
        return f"gb.fixpoint({window})"


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
) -> Fixpoint:
    """Repeat one statement until nothing improves, in any order.

    The body is one statement `d(accum) << semiring(d @ A)`, or `A @ d`, through a mask if wanted. Its accumulator is
    the semiring's monoid, which is idempotent, and its product is monotone: then the result does not depend on the
    order, and vertices are extended as they improve, without rounds, where that is possible.

    Parameters
    ----------
    window : "auto", float or None
        Of the monoids min and max: vertices are extended whose values are within so much of the best one, others
        later. A wide window lets more be done at once, and more of it again. None: all are extended at once.
    schedule : "auto", "free" or "rounds"
        "free": without rounds; "rounds": as a loop of rounds. The result is the same.
    max_updates : int, optional
        About so many vertices are extended at most, 1 or more; then `converged` is False.
    on_window : callable, optional
        Called with the number of windows that are done.

    Returns
    -------
    Fixpoint
        To be used in a `with` statement.

    Raises
    ------
    InvalidValue
        If an argument has another value; at the end of the body, if its result depends on the order.
    NotImplementedException
        If "free" is asked for where only rounds are possible.

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
    return Fixpoint(window, schedule, max_updates, on_window)
