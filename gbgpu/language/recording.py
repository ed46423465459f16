"""`gb.loop`: statements that are written once and run again and again.

While its body is recorded nothing runs: numbers that only a run will know (`q.nvals`, `s.value`, `it.index`) are
recorded scalars, and what needs them now is refused.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple, Self
from weakref import ref

from .. import settings
from ..errors import InvalidValue, fixed, message
from ..modes import Exit, Mode, Open, Within
from ..semiring._operators import BinaryOp
from ..semiring._types import BOOL, INT64, DataType
from ..trace import counters
from .expr import Lazy, Operand, Statement, _infix, new_like
from .index import is_integer
from .parts import parted

BUILDS = frozenset("build_vector build_matrix build_csr adopt_dense declare_symmetric draw_matrix map_rows".split())
_HINT = "it.until(condition) ends the loop, `with it.when(condition):` guards statements"


class Recorded(Lazy):
    """A recorded scalar: a number that is known when the loop runs, as it was where it is written.

    Arithmetic and comparisons make others.
    """

    __slots__ = ("_dtype", "_text", "read", "_session", "source", "of", "place", "stale", "__weakref__")
    ndim = 0
    shape = ()
    dtype = fixed("dtype")

    def __init__(
        self, session: Any, dtype: DataType, text: str, read: Callable[[], Any], source: tuple, beside: tuple = ()
    ):
        self._session, self._dtype, self._text, self.read = session, dtype, text, read
        # what it is, for who computes it elsewhere: ("nvals", handle), ("value", scalar), ("index", a weak reference to
        # the loop), ("", handle)
        self.source = source
        self.of = [getattr(x, "matrix", x) for x in (source[1], *beside)]  # the handles that it tells of
        self.place: tuple[Any, int] | None = None  # a weak reference to the recorder, and the operations before
        self.stale = False  # whether one of these was written since

    @property
    def text(self) -> str:
        """The number as text, `q.nvals`."""
        return self._text

    def new(self, dtype: Any = None, *, mask: Any = None, name: str | None = None, **hints: Any) -> Any:
        """The value as a Scalar: read when the loop runs, or now if none is recorded."""
        scalar = new_like((), self.dtype if dtype is None else dtype, name)
        if recorder(self._session) is not None:
            scalar << self
        else:
            scalar.value = self.read()
        return scalar

    def __eq__(self, other: Any) -> Any:
        return _infix("eq", "eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return _infix("ne", "ne", self, other)

    __hash__ = Operand.__hash__

    def __repr__(self) -> str:
        return f"{self._text}, known when the loop runs"

    def _read(self) -> Any:
        return self.read()

    def _unknown(self, *arguments: Any, **keywords: Any) -> Any:
        if recorder(self._session) is None:
            hint = "it.rounds" if self.source[0] == "index" else f"{self._text} once more, or a Scalar that it writes"
            raise TypeError(message("a number", f"{self._text}, of a loop that is over", hint))
        raise unknown(self._text, self.dtype is BOOL)

    def __format__(self, form: str) -> str:
        return self._unknown() if form else str(self)

    __bool__ = __int__ = __float__ = __index__ = __array__ = __round__ = _unknown


def known(value: Any) -> Any:
    """A value as it is. Raises TypeError for a recorded one."""
    if isinstance(value, Recorded):
        raise unknown(value.text)
    return value


def unknown(what: str, truth: bool = False) -> TypeError:
    """The TypeError for a number that only a run will know."""
    hint = "& | ~ in place of `and`, `or`, `not` and chains (a < b < c); " * truth + _HINT
    return TypeError(message("a number that is known while a loop is recorded", f"{what}, known when it runs", hint))


class Operation(NamedTuple):
    """One line of a body: `run()` does it.

    `kind`: "statement", "clear", "build", "until", "when", "loop" or "read" (of a number that is kept); `what`: the
    statement, the handle, the condition, the number.
    """

    kind: str
    what: Any
    run: Callable[[], Any]


class Recorder(Open):
    """The body of a loop, or what `it.when` guards, as it is written.

    `again`: whether all of it is done several times where it stands.

    A number is read where it is used, unless what it tells of was written in between: then a statement at its place
    keeps it (`_keep`).
    """

    def __init__(self, session: Any, again: bool = False):
        self.session, self.again = session, again
        self.operations: list[Operation] = []
        self.condition: Any = None  # of what `it.when` guards, and what tells whether it holds
        self.truth: Callable[[], bool] = bool
        self._kept: list[int] = []  # how many operations were before each statement that keeps a number
        # Numbers by the ids of what they tell of: all that were read since it was written (recorders in others share
        # it), and those from outside that are used inside.
        self._fresh: dict[int, list[Any]] = {}
        self._used: dict[int, list[Any]] = {}
        self._looks = [False]  # whether numbers are to be looked at where they are used; shared, too

    def add(self, kind: str, what: Any, run: Callable[[], Any]) -> None:
        """Add an operation to the body."""
        if kind == "statement":
            self.uses(what.expr)
        elif kind == "until":
            self.uses(what)
        if kind == "statement":
            self._writes(what.output)
        elif kind in ("clear", "build"):
            self._writes(what)
        self.operations.append(Operation(kind, what, run))  # last: whatever stops this, it is there or it is not

    def _around(self) -> Iterator["Recorder"]:
        """The recorder itself and those that it is in."""
        here: Recorder | None = self
        while here is not None:
            yield here
            here = here.above

    def told(self, number: Recorded) -> Recorded:
        """Note that a number is read here."""
        number.place = ref(self), len(self.operations) - len(self._kept)
        for x in number.of:
            self._fresh.setdefault(id(x), []).append(ref(number))
        return number

    def uses(self, what: Any) -> None:
        """An expression is read here."""
        for number in _numbers(what) if self._looks[0] else ():
            told = number.place and number.place[0]()
            if told is None or told._fresh is not self._fresh:
                continue  # the round's, kept already, or another loop's
            around: list[Recorder] = []
            for here in self._around():
                if here is told:
                    break
                around.append(here)
            else:  # a part that is over has read it, if it was not passed over
                number.stale = True
            if number.stale:
                _keep(number)
                continue
            for here in around:
                for x in number.of if here.again else ():
                    here._used.setdefault(id(x), []).append(ref(number))

    def _writes(self, x: Any) -> None:
        for here in self._around() if self._used or self.above is not None else ():
            for number in here._used.pop(id(x), ()):
                _keep(number())
        for reference in self._fresh.pop(id(x), ()):
            number = reference()
            if number is not None:
                number.stale = self._looks[0] = True

    def statement(self, statement: Statement) -> Statement:
        """A statement, after those of the products inside it: each may go in a direction of its own."""
        session = self.session  # and not the recorder, which would hold itself
        parts, statement.expr = parted(statement.expr)
        every = [Statement(made, None, None, False, part, None, {}) for made, part in parts]
        for each in (*every, statement):
            self.add("statement", each, partial(session.run, each))
        return statement

    def run(self) -> None:
        """Run the operations in order."""
        for operation in self.operations:
            operation.run()

    def planned(self) -> None:
        """Plan the statements, while plans are wanted and nothing runs."""
        for operation in self.operations:
            if operation.kind == "when":
                operation.what.planned()
            elif operation.kind in ("statement", "loop"):
                operation.run()

    def asked(self, method: Callable[..., Any], session: Any, what: Any, arguments: tuple, keywords: dict) -> Any:
        """What makes an object is done in every round; what reads one is refused."""
        if method.__name__ not in BUILDS:
            raise unknown(f"the content of {getattr(what, 'name', what)}")
        return self.add("build", what, lambda: method(session, what, *arguments, **keywords))

    def begin(self, until: Any) -> None:
        """Record the statements of this thread here from now on, as long as what `until` refers to is there."""
        if (above := recorder(self.session)) is not None:
            self._fresh, self._looks = above._fresh, above._looks
            self._looks[0] = True
        self.session.recorders.begin(self, until)

    def end(self, kind: Any) -> "Recorder | None":
        """Where it stands, or None.

        Raises InvalidValue where what was begun inside is still open, unless an exception of this kind ends it.
        """
        above: Recorder | None = self.above
        if not self.session.recorders.end(self) and kind is None:
            wanted, hint = "loops that end in the reverse order of their beginning", "generators do not yield in a body"
            raise InvalidValue(message(wanted, "one that ends while a later one is open, or was not begun", hint))
        return above


def outputs(operations: list[Operation]) -> list[Any]:
    """The objects that operations write, those of inner loops and guarded ones too; some several times."""
    found: list[Any] = []
    for kind, what, _ in operations:
        if kind in ("when", "loop"):
            found += outputs(what.operations if kind == "when" else what.body)
        elif kind == "statement":
            found.append(what.output)
        elif kind in ("clear", "build"):
            found.append(what)
    return found


def seen(name: str, hint: str = "") -> Any:
    """As `fixed`, of what a run has left."""
    known = fixed(name, hint)
    return property(lambda x: x._session.seen(x, "_" + name), known.fset, known.fdel)


def _numbers(x: Any) -> list[Recorded]:
    """The recorded numbers in an expression."""
    found, waiting = [], [x]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Recorded):
            found.append(node)
        elif isinstance(node, Lazy):
            node = node._node()
            option = getattr(node, "option", None)
            parts = option if isinstance(option, tuple) else (option,)
            sides = getattr(node, "left", None), getattr(node, "right", None)
            waiting += [part for part in (*sides, *parts) if isinstance(part, Operand)]
    return found


def _keep(number: Recorded | None) -> None:
    """Let a recorded number be what it was where it was written.

    A scalar takes it there, or, of what no statement says, Python does.
    """
    if number is None or number.place is None or (here := number.place[0]()) is None:
        return
    (what, x), read, before = number.source, number.read, number.place[1]
    if what in ("nvals", "value"):
        kept = new_like((), number.dtype, None)
        with Within(number._session.recorders, Recorder(number._session)) as aside:
            kept << (x if what == "value" else Recorded(x._session, number.dtype, number.text, read, number.source))
        operations = aside.operations
        number.read, number.source, number._text = lambda: kept.value, ("value", kept), kept.name
    else:
        cell: dict[str, Any] = {}
        operations = [Operation("read", number, lambda: cell.update(value=read()))]
        number.read = lambda: cell.get("value")
    place = before + sum(other <= before for other in here._kept)
    here.operations[place:place] = operations
    here._kept += [before] * len(operations)
    number.place = None


def recorder(session: Any) -> Recorder | None:
    """Where this thread's statements are recorded, if they are."""
    found: Recorder | None = session.recorders.here() if session.recorders else None
    return found


def later(
    x: Any, dtype: DataType, text: str, read: Callable[[], Any], what: str = "", beside: tuple = ()
) -> Recorded | None:
    """What `read` will give when the loop runs that is being recorded; None if none is.

    `beside`: what it reads but x.
    """
    here = recorder(x._session)
    if here is None:
        return None
    return here.told(Recorded(x._session, dtype, text, read, (what, x), beside))


class Recording(Mode):
    """A body that a `with` statement records, once. `what`: the name in messages; gb.WHAT() makes one."""

    def __init__(self, what: str, again: bool):
        self._what, self._session = what, settings.session()
        self._body, self._begun = Recorder(self._session, again), False

    def __enter__(self) -> Self:
        self._session.check()
        if self._begun:
            what, hint = f"a {self._what} whose body was recorded", f"gb.{self._what}() makes another"
            raise InvalidValue(message(f"a new {self._what}", what, hint))
        self._begun = True
        self._body.begin(self.until_over())
        return self


class Loop(Recording):
    """A loop whose body is recorded once and then runs on the devices, as made by `gb.loop`.

    `with gb.loop() as it:` records the body. It runs at least once, until the condition of `it.until` holds at the end
    of a round, or `max_iterations` rounds are done.

    Attributes
    ----------
    index : recorded scalar
        The number of the round from 0 (INT64), for statements and conditions.
    rounds : int
        The rounds done, after the loop.
    converged : bool
        Whether the condition ended the loop.
    how : str
        What ran the loop: "statements" and the reason, a list of kernel calls, a CUDA graph, or one persistent kernel.
    max_iterations : int or None
        The bound of the rounds.

    Notes
    -----
    A body is recorded once: each loop is a new one. It may have:

    - statements, `.new()`, `.clear()`;
    - vectors and matrices made inside, which are empty again in each round;
    - loops, and `with it.when(condition):`.

    What reads values (`to_coo`, `int(v.nvals)`, Python's `if`) raises TypeError. InvalidValue is raised for a loop
    without a condition and without `max_iterations`, and for bodies that do not end in the reverse order of their
    beginning.
    """

    index = fixed("index")
    rounds, converged, how = seen("rounds"), seen("converged", "it.until(condition)"), seen("how")
    max_iterations = fixed("max_iterations", "gb.loop(max_iterations)")

    def __init__(self, max_iterations: int | None, on_iteration: Callable[[int], Any] | None, every: int):
        given = {"every": every} if max_iterations is None else {"max_iterations": max_iterations, "every": every}
        for name, value in given.items():
            if not is_integer(value) or value < 1:
                raise InvalidValue(message(f"{name}: a whole number of at least 1", repr(value)))
        if on_iteration is not None and not callable(on_iteration):
            raise TypeError(message("on_iteration: a function of the number of rounds", repr(on_iteration)))
        self._max_iterations = None if max_iterations is None else int(max_iterations)
        self._call, self._every = on_iteration, int(every)
        super().__init__("loop", again=True)
        self._conditions: list[Any] = []
        self._rounds, self._converged, self._how = 0, False, "statements"
        self.signature: Any = None  # by which a session knows it again
        self.went: Any = None  # a weak reference to the captured round that did all of the last run
        # Nothing that a body has may hold its loop: its vectors would wait for Python's search for garbage.
        self._me = ref(self)
        self._index = Recorded(self._session, INT64, "it.index", partial(_index, self._me), ("index", self._me))

    def _number(self) -> int:
        if self._session.capturing is self:
            counters.read()  # it is on the device, where others would have to be read as well
        return self.rounds

    def until(self, condition: Any) -> None:
        """End the loop after the round in which the condition holds at this place.

        Parameters
        ----------
        condition : recorded scalar
            BOOL, such as `q.nvals == 0`.

        Raises
        ------
        TypeError
            If `condition` is no BOOL scalar.
        InvalidValue
            If no body is recorded.
        """
        truth = _condition(condition, "it.until")
        here = recorder(self._session)
        if here is None:
            raise InvalidValue(message("it.until inside the body of its loop", "it.until outside"))
        self._conditions.append(condition)
        here.add("until", condition._node(), partial(_end, self._me, truth))

    def when(self, condition: Any) -> "When":
        """Run the statements inside only in the rounds in which the condition holds here: `with it.when(condition):`.

        Parameters
        ----------
        condition : recorded scalar
            BOOL, such as `q.nvals > n // 16`.

        Returns
        -------
        When
            To be used in a `with` statement.

        Raises
        ------
        TypeError
            If `condition` is no BOOL scalar.
        InvalidValue
            If no body is recorded.
        """
        return When(self._session, condition)

    # -- recording, then running

    @Exit
    def __exit__(self, kind: Any, *failure: Any) -> None:
        outer = self._body.end(kind)
        if kind is not None:
            return
        if not self._conditions and self.max_iterations is None:
            raise InvalidValue(message("a loop that ends: it.until(condition) or gb.loop(max_iterations)", "neither"))
        if outer is None:
            self._session.carry_out(self)
        else:
            outer.add("loop", self, lambda: self._session.carry_out(self))

    # -- running, for the session

    @property
    def body(self) -> list[Operation]:
        """The recorded operations."""
        return self._body.operations

    @property
    def has_callback(self) -> bool:
        """Whether `on_iteration` is to be called."""
        return self._call is not None

    @property
    def over(self) -> bool:
        """Whether no round is left."""
        return self._converged or self._rounds == self.max_iterations

    def begin(self) -> None:
        """Begin to run: no round is done."""
        self._rounds, self._converged, self._how = 0, False, "statements"

    def round(self) -> None:
        """Run one round, statement by statement."""
        self._body.run()
        self._rounds += 1
        self.tell()

    def tell(self) -> None:
        """Call `on_iteration`, if this round is one of `every`."""
        if self._call is not None and self._rounds % self._every == 0:
            self._call(self._rounds)

    @property
    def next_told(self) -> int | None:
        """The next round after which `on_iteration` is to be called; None for none."""
        return None if self._call is None else (self._rounds // self._every + 1) * self._every

    def planned(self) -> None:
        """Every statement once, while plans are wanted and nothing runs."""
        self._body.planned()

    def explained(self) -> str:
        """What ran it, and the plans that its statements took last."""
        return "\n".join([f"{self!r}: {self.rounds} rounds, {self.how}", *_lines(self.body)])

    def __repr__(self) -> str:
        most = "" if self.max_iterations is None else f"max_iterations={self.max_iterations}"
        return f"gb.loop({most})"


class When(Mode):
    """The `with` statement of `Loop.when`."""

    def __init__(self, session: Any, condition: Any):
        self._session, self._condition, self._truth = session, condition, _condition(condition, "it.when")
        self._inner = Recorder(session)

    def __enter__(self) -> None:
        here, node = recorder(self._session), self._condition._node()
        if here is None:
            raise InvalidValue(message("it.when inside the body of its loop", "it.when outside"))
        here.uses(node)
        self._inner.condition, self._inner.truth = node, self._truth
        self._inner.begin(self.until_over())

    @Exit
    def __exit__(self, kind: Any, *failure: Any) -> None:
        inner, truth = self._inner, self._truth
        here = inner.end(kind)
        if kind is None and here is not None:
            here.add("when", inner, lambda: inner.run() if truth() else None)


def _end(loop: Any, truth: Callable[[], bool]) -> None:
    """A loop ends with this round if something is true."""
    me = loop()
    me._converged = truth() or me.converged


def _index(loop: Any) -> int:
    """The round of a loop that is there."""
    found = loop()
    if found is None:
        raise InvalidValue(message("it.index of a loop that exists", "it.index of a deleted loop", "keep `it`"))
    return int(found._number())


def _lines(operations: list[Operation], pad: str = "  ") -> list[str]:
    """A body as text, with the plans of its statements."""
    lines = []
    for kind, what, _ in operations:
        if kind == "statement":
            lines += [f"{pad}{what!r}", *(f"{pad}{line}" for line in str(what.plan or "  not run").split("\n"))]
        elif kind == "when":
            lines += [f"{pad}when {what.condition.text}", *_lines(what.operations, pad + "  ")]
        elif kind == "loop":
            lines += [f"{pad}{what!r}", *_lines(what.body, pad + "  ")]
        else:
            lines.append(f"{pad}{kind} {getattr(what, 'text', None) or getattr(what, 'name', what)}")
    return lines


def loop(
    max_iterations: int | None = None, *, on_iteration: Callable[[int], Any] | None = None, every: int = 1
) -> Loop:
    """A loop whose body is recorded once and then runs on the devices.

    Parameters
    ----------
    max_iterations : int, optional
        At most so many rounds, 1 or more. By default the condition of `it.until` alone ends the loop.
    on_iteration : callable, optional
        Called with the number of rounds done.
    every : int
        `on_iteration` is called after every so many rounds, 1 or more.

    Returns
    -------
    Loop
        To be used in a `with` statement.

    Raises
    ------
    InvalidValue
        If a number is below 1; at the end of the body, if nothing ends the loop.
    TypeError
        If `on_iteration` is no function.

    Examples
    --------
        with gb.loop() as it:
            level(q.S) << it.index
            q(~level.S, replace) << any_pair(q @ A)
            it.until(q.nvals == 0)
    """
    return Loop(max_iterations, on_iteration, every)


def _condition(condition: Any, where: str) -> Callable[[], bool]:
    """What tells whether a condition holds. Raises TypeError unless it is a BOOL scalar."""
    if not isinstance(condition, Operand) or condition.ndim or condition.dtype is not BOOL:
        came = f"{condition.dtype} of shape {condition.shape}" if isinstance(condition, Operand) else repr(condition)
        raise TypeError(message(f"a recorded BOOL scalar in {where}", came, f"{where}(q.nvals == 0)"))
    node = condition._node()
    quick = _quick(node)
    return quick if quick is not None else lambda: bool(node._read())


_COMPARED = {BinaryOp.registry[op.__name__][INT64]: op for op in (eq, ne, lt, le, gt, ge)}


def whole(node: Any) -> tuple[Any, Any, Any] | None:
    """(what Python compares with, a recorded whole number, a scalar of one) of a comparison of these in INT64.

    None for any other expression.
    """
    compare = _COMPARED.get(node.op) if hasattr(node, "op") else None
    if compare is None or not isinstance(node.left, Recorded) or node.right is None:
        return None
    left, right = node.left, node.right
    if left.dtype is not INT64 or isinstance(right, Lazy) or right.dtype is not INT64:
        return None
    return compare, left, right


def _quick(node: Any) -> Callable[[], bool] | None:
    """A comparison of a recorded whole number with one that is not, as Python does it.

    So the most frequent condition costs no more than in a loop of Python's.
    """
    found = whole(node)
    if found is None:
        return None
    compare, left, right = found

    def holds() -> bool:
        one, other = left.read(), right.value
        return compare(one, other) if compare in (eq, ne) or None not in (one, other) else False

    return holds
