"""`gb.program`: a function of matrices and vectors whose call is recorded, and then run again without its Python.

While a call is recorded, the function sees a `RecordingSession`: what objects ask of it is done as always, and becomes
a step of the program. What changes objects (statements, loops, fixpoints, builds) is done again in later calls, on
objects that are the program's own. What the function read is a guard: it must be what it was, as Python may have gone
on by it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from threading import Lock, get_ident
from typing import Any, ParamSpec, TypeVar
from weakref import ref

from .. import settings
from ..errors import InvalidValue, message
from ..trace import counters
from .expr import Operand, new_like
from .handle import Handle
from .index import Index
from .recording import BUILDS, outputs, recorder
from .signatures import NotRecordable, frozen, own, rebuilt, signature

MAX_SIGNATURES, VARIANTS = 64, 4  # of a session; programs of one of them
MAX_FAILURES = 8  # calls that no program fitted after which a signature is not recorded any more
NOT_RECORDED = object()  # no program: the function is to be called
# What a session does without telling or changing anything.
SILENT = frozenset("check attach planned planning room filled computed compiled note_compiled".split())
CHANGES = BUILDS | {"clear", "take"}  # what it does that gives an object its content

P = ParamSpec("P")
R = TypeVar("R")


class GuardFailed(Exception):
    """A value that was read is another one than when the call was recorded."""


class Program:
    """A recorded call: `steps` in their order, on objects that stand for the arguments, and on those that it makes."""

    def __init__(self, session: Any):
        self.session = RecordingSession(session, self)
        self.steps: list[Callable[[], Any]] = []
        self.owned: set[int] = set()  # addresses of buffers that steps write in each call
        self.written: dict[int, Any] = {}  # objects that get content
        self.placeholders: list[Any] = []  # stand for the arguments that are objects
        self.result: Any = None
        self.refused = False  # whether the function has done what can't be run again
        self.row: list[tuple[Run, Any]] = []  # the last statements: with those that follow they become one step

    def record(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call returns, which becomes the program. Raises NotRecordable for what can't be run again."""
        session, objects = self.session, [*_handles(args, kwargs)]
        with settings.seen_as(session):
            stands = {id(x): new_like(x.shape, x.dtype, x.name) for x in objects}
            self.placeholders = [stands[id(x)] for x in objects]
            self._bind(objects)
            stand_ins = iter(self.placeholders)
            args = tuple(next(stand_ins) if isinstance(x, Handle) else x for x in args)
            kwargs = {name: next(stand_ins) if isinstance(x, Handle) else x for name, x in kwargs.items()}
            session.begin()
            try:
                self.result = function(*args, **kwargs)
                self._fuse()
            finally:
                session.end()
                _empty(self.placeholders)
        if self.refused:  # also where a handler of the function's own has caught NotRecordable
            raise NotRecordable
        found = self._outputs(objects)
        _empty(self.written.values())
        return found

    def run(self, objects: list[Any]) -> Any:
        """What a call with these arguments returns. Raises GuardFailed where it goes another way."""
        self._bind(objects)
        try:
            _empty(self.written.values())
            with settings.seen_as(self.session):
                for step in self.steps:
                    step()
            return self._outputs(objects)
        finally:
            _empty((*self.written.values(), *self.placeholders))

    def _bind(self, objects: list[Any]) -> None:
        """Let what stands for the arguments hold what these hold."""
        with self.session.lock:  # of several GPUs the first may work alone: objects hold replicas meanwhile
            for x, given in zip(self.placeholders, objects, strict=True):
                x._store = given._store
                if not x.ndim:
                    x._value = given._value

    def _outputs(self, objects: list[Any]) -> Any:
        """The result, with objects that are the caller's."""
        mine = {id(x): given for x, given in zip(self.placeholders, objects, strict=True)}
        return rebuilt(self.result, lambda x: mine.get(id(x)) if id(x) in mine else self._new(x, mine))

    def _new(self, x: Any, mine: dict[int, Any]) -> Any:
        """An object of the caller's with what one of the program's holds."""
        if type(x._session) is not RecordingSession or id(x) not in self.written and x._store is not None:
            raise NotRecordable
        mine[id(x)] = fresh = new_like(x.shape, x.dtype, x._name)
        fresh._session = self.session._session  # gb.init may have begun another one meanwhile
        fresh._store = self.session.unshared(x._store, self.owned)
        if not x.ndim:
            fresh._value = x._value
        return fresh

    def changes(self, handles: Iterable[Any]) -> None:
        """What a step changes: not what is the caller's, or was there before."""
        for x in handles:
            if any(x is given for given in self.placeholders) or type(x._session) is not RecordingSession:
                self.refused = True
                raise NotRecordable
            self.written[id(x)] = x

    def add(self, step: Callable[[], Any], before: Any = ()) -> None:
        """One more step.

        Statements in a row that read nothing on the host, and a loop after them, become one. `before`: what the
        statement or the loop read (see `Session.snapshot`).
        """
        if isinstance(step, Run) and step.fuses:
            self.row.append((step, before))
        elif isinstance(step, Looped):
            self._fuse(step.loop, before)
        else:
            self._fuse()
            self.steps.append(step)

    def _fuse(self, loop: Any = None, before: Any = ()) -> None:
        """Make one step of the statements in a row, and of a loop after them, if there is one."""
        row, self.row = self.row, []
        if row or loop is not None:
            statements, read = [step.statement for step, _ in row], [read for _, read in row]
            with self.session.busy():
                self.steps.append(self.session.fused(statements, loop, self.owned, [*read, before]))

    def guard(self, read: Callable[[], Any], value: Any) -> None:
        """What a step read must be the same again."""
        try:
            known = frozen(value)
        except NotRecordable:
            self.refused = True
            raise

        def again() -> None:
            if frozen(read()) != known:
                raise GuardFailed

        self.add(again)

    def fails(self, work: Callable[[], Any], kind: type[Exception], text: str) -> None:
        """What a step raised must be raised again."""

        def again() -> None:
            try:
                work()
            except Exception as error:
                if type(error) is kind and str(error) == text:
                    return
            raise GuardFailed

        self.add(again)


class Run:
    """A step that is a statement. A matrix made of matrices alone is cached as long as these have the same content."""

    def __init__(self, session: Any, statement: Any):
        self.session, self.statement, self._seen = session, statement, _seen(session)
        self._matrices = _matrices_alone(statement)
        self._kept: tuple[list[ref], Any] | None = None  # the stores of the matrices, and the one made of them

    @property
    def fuses(self) -> bool:
        """Whether the host has read nothing since this was made, nor is to look at a flag later."""
        w = self.statement.output
        return _seen(self.session) == self._seen and w.ndim < 2 and w._store is not None

    def __call__(self) -> None:
        """Run it again."""
        held, kept = [x._store for x in self._matrices], self._kept
        if kept is not None and all(known() is one for known, one in zip(kept[0], held, strict=True)):
            self.statement.output._store = kept[1]
            return
        self._kept = None
        self.session.run(self.statement)
        if held and None not in held:
            me = ref(self)  # callbacks that had the object itself would keep it until memory is collected

            def gone(_: Any) -> None:
                if (run := me()) is not None:
                    run._kept = None

            self._kept = [ref(one, gone) for one in held], self.statement.output._store


class Looped:
    """A step that is a loop."""

    def __init__(self, session: Any, loop: Any):
        self.session, self.loop = session, loop

    def __call__(self) -> None:
        """Run it again."""
        self.session.carry_out(self.loop)


class RecordingSession:
    """A session as a function sees it whose call is recorded. Once that is over, it is the session itself."""

    def __init__(self, session: Any, program: Program):
        self._session = session
        self._program: Any = program  # until it is recorded, which has this object itself
        self._thread: int | None = None  # whose calls are recorded
        self._busy = False  # with a step, whose parts are none

    def begin(self) -> None:
        """Record what this thread does."""
        self._thread = get_ident()

    def end(self) -> None:
        """The call is over."""
        self._thread = self._program = None

    def outside(self) -> None:
        """An object is read that is neither an argument nor made by the function: nobody sees when it changes."""
        if self._recording:
            self._program.refused = True
            raise NotRecordable

    @property
    def _recording(self) -> bool:
        return self._thread == get_ident() and not self._busy and recorder(self._session) is None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        asks = self._thread is not None and name not in SILENT and callable(found)
        return partial(self._asked, name, found) if asks else found

    def called(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """A program inside another one is a part of it."""
        return function(*args, **kwargs)

    def run(self, statement: Any) -> Any:
        """Run a statement, which is a step."""
        before = self._before(statement)
        return self._step(Run(self._session, statement), [statement.output], before)

    def _before(self, what: Any) -> list[Any]:
        """What a statement reads that no statement before it in the row has written."""
        if not self._recording:
            return []
        written = {id(step.statement.output) for step, _ in self._program.row}
        return [each for each in self._session.snapshot(what) if id(each[0]) not in written]

    def carry_out(self, loop: Any) -> None:
        """Run a loop, which is a step."""
        before = self._session.snapshot(loop) if self._recording else []  # all that it starts from
        self._step(Looped(self._session, loop), outputs(loop.body), before)

    def does(self, work: Callable[[], Any], changes: Iterable[Any]) -> Any:
        """Work that changes objects, which is a step."""
        return self._step(work, changes)

    def give(self, one: Any, made: Any, other: Any, beside: Any) -> None:
        """Two objects take the content of two others."""
        self._step(partial(self._session.give, one, made, other, beside), [one, other])

    def computed(self, handle: Any) -> None:
        """The value of a scalar is read next."""
        self._session.computed(handle)
        if self._recording and not handle.ndim:
            self._done(handle._read)
            self._program.guard(handle._read, handle._value)

    def filled(self, handle: Any) -> None:
        """A scalar was given a value."""
        self._session.filled(handle)
        if not handle.ndim:
            self._step(partial(_fill, handle, handle._value), [handle])

    def seen(self, what: Any, name: str) -> Any:
        """What an object tells of itself."""
        if not self._recording:
            return getattr(what, name)
        read = partial(getattr, what, name)
        value = self._done(read)
        self._program.guard(read, value)
        return value

    def _asked(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a method gives: of those that build, an object's content; of all others, what was read."""
        if not self._recording and name not in CHANGES:
            return method(*args, **kwargs)
        args, kwargs = own(args), dict(zip(kwargs, own(kwargs.values()), strict=True))
        if name in CHANGES:  # which may make the arrays an object's
            return self._step(lambda: method(*own(args), **kwargs), args[:1])
        work = partial(method, *args, **kwargs)
        found = self._done(work)
        self._program.guard(work, found)
        return found

    def _step(self, work: Callable[[], Any], changes: Iterable[Any], before: Any = ()) -> Any:
        if not self._recording:
            self._changed_inside(changes)
            return work()
        self._program.changes(changes)
        found = self._done(work)
        self._program.add(work, before)
        return found

    def _changed_inside(self, changes: Iterable[Any]) -> None:
        """Something is changed by a part of a step, `on_iteration` too, or by another thread."""
        if (program := self._program) is None or self._thread is None:
            return
        if self._thread != get_ident():
            program.refused = True
        elif recorder(self._session) is None:
            program.changes(changes)

    def _done(self, work: Callable[[], Any]) -> Any:
        try:
            with self.busy():
                return work()
        except Exception as error:  # the function may handle it
            self._program.fails(work, type(error), str(error))
            raise

    @contextmanager
    def busy(self) -> Iterator[None]:
        """What is asked meanwhile is no step."""
        was, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = was


class Recordings:
    """The programs of one signature, the last used first: where what was read differs, another one may fit."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.failures = 0  # calls that no program fitted
        self.lock = Lock()  # one call at a time: the objects are the programs'

    def run(self, session: Any, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call returns, by a program that fits or by a new one; or NOT_RECORDED."""
        if self.failures > MAX_FAILURES:
            self.programs.clear()
            return NOT_RECORDED
        objects = [*_handles(args, kwargs)]
        for program in [*self.programs]:
            try:
                found = program.run(objects)
            except (GuardFailed, NotRecordable):
                continue
            except Exception:  # the function may have handled it
                return NOT_RECORDED
            self.programs.remove(program)
            self.programs.insert(0, program)
            self.failures = max(self.failures - 1, 0)
            return found
        self.failures += bool(self.programs)
        program = Program(session)
        try:
            found = program.record(function, args, kwargs)
        except (NotRecordable, Exception) as error:  # which may be that of what can't be recorded, in each call
            self.failures = self.failures + 1 if isinstance(error, Exception) else MAX_FAILURES + 1
            return NOT_RECORDED
        self.programs.insert(0, program)
        del self.programs[VARIANTS:]
        return found


class Programs:
    """The programs of a session, by signature."""

    def __init__(self, session: Any):
        self._session = session
        self._known: OrderedDict[Hashable, Recordings] = OrderedDict()

    def __bool__(self) -> bool:
        return any(known.programs for known in [*self._known.values()])  # other threads may add some meanwhile

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()

    def call(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """function(*args, **kwargs)."""
        found = self._recorded(function, args, kwargs)
        return function(*args, **kwargs) if found is NOT_RECORDED else found

    def _recorded(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same by a program, or NOT_RECORDED."""
        session = self._session
        if session.recorders and recorder(session) is not None or session.explaining or session.ranks is not None:
            return NOT_RECORDED
        try:
            given = signature((*args, *kwargs.values()))
            key = function, session.maps.alone, len(args), (*kwargs,), given
            known = self._known.get(key)
        except TypeError:  # of a list, an array, or an object of a user's class, nobody knows when it changes
            return NOT_RECORDED
        if known is None:
            known = self._known[key] = Recordings()
        with suppress(KeyError):  # another thread may have forgotten all
            self._known.move_to_end(key)
            if len(self._known) > MAX_SIGNATURES:
                self._known.popitem(last=False)
        if not known.lock.acquire(blocking=False):
            return NOT_RECORDED
        try:
            return known.run(session, function, args, kwargs)
        finally:
            known.lock.release()


def _seen(session: Any) -> tuple[int, int]:
    """What the host has read, and what it is to look at later."""
    return counters.host_reads, len(session._watched)


def _matrices_alone(statement: Any) -> list[Any]:
    """The matrices that a statement reads, if it makes a matrix and reads nothing else; otherwise none."""
    expr, w = statement.expr, statement.output
    part = any(x is not None for x in (statement.mask, statement.accum, statement.index))
    if w.ndim < 2 or expr.nested or part:
        return []
    option = expr.option if isinstance(expr.option, tuple) else (expr.option,)
    operands = [x for x in (expr.left, expr.right) if x is not None]
    if any(isinstance(x, (Operand, Index)) for x in option) or any(x.ndim < 2 for x in operands):
        return []
    return [getattr(x, "matrix", x) for x in operands]


def _fill(scalar: Any, value: Any) -> None:
    scalar._store, scalar._value = None, value


def _empty(objects: Iterable[Any]) -> None:
    """Let objects hold nothing."""
    for x in objects:
        x._store = None
        if not x.ndim:
            x._value = None


def _handles(args: tuple, kwargs: dict[str, Any]) -> Iterator[Any]:
    return (x for x in (*args, *kwargs.values()) if isinstance(x, Handle))


def program(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of matrices and vectors: its first call is recorded, later calls run without its Python.

    Parameters
    ----------
    function : callable
        It makes all objects that it needs from the arguments alone, changes none of these, and depends on nothing that
        may change between calls (global variables, files, the time, random numbers). It has no effects but those of
        `on_iteration`. It hands out objects by its result alone: one that it stores elsewhere is empty after the call.

    Returns
    -------
    callable
        With the same arguments and results.

    Raises
    ------
    InvalidValue
        If `function` can't be called.

    Notes
    -----
    A call is recorded for its signature: the function, the types, shapes and given names of objects, and the values of
    all other arguments. Pass a number that differs from call to call as a Scalar, or within a Vector. Each later call
    runs the recorded statements and loops on the content that its arguments have then.

    What the function reads in between (`q.nvals`, `s.value`, `it.rounds`), and each error that it handles, is a guard:
    later calls must find the recorded value. Else another program of the signature is tried, four at most. If none
    fits, the call runs as Python and is recorded. A signature whose guards fail too often always runs as Python.

    A call that turns out not to be recordable runs a second time, as Python: its effects come twice.

    These calls run as Python:

    - none of the arguments is a Matrix, Vector or Scalar;
    - an argument may change (a list, an array, a closure, an object of another class) or is an expression (`A.T`);
    - the call is made within a loop's body or `gb.explain`, in a session of several ranks, or while another thread runs
      the same program;
    - the function changes an argument, in `on_iteration` or another thread too;
    - the function uses or reads an object from outside;
    - the function returns something else than objects, numbers, texts, None, and tuples, lists and dicts of these.

    With several GPUs a call may run on the first one alone (docs/devices.md); both ways are timed, and the faster is
    kept as long as the first matrix is not changed.

    Examples
    --------
        @gb.program
        def reached(A, q, steps):
            seen = q.dup()
            with gb.loop(steps):
                seen(gb.binary.lor) << gb.semiring.lor_land(seen @ A)
            return seen
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        session = next((x._session for x in _handles(args, kwargs)), None)
        if session is None:
            return function(*args, **kwargs)
        found: R = session.called(function, args, kwargs)
        return found

    if not callable(function):
        raise InvalidValue(message("a function under gb.program", repr(function)))
    return call
