"""`gb.program`: a function of matrices and vectors whose call is recorded, and then run again without its Python.

While a call is recorded, the session that the function sees is `Heard`: all that objects ask of it is done as always,
and becomes a step of the program. Three kinds of steps are left: what changes objects (statements, loops, fixpoints,
builds) is done again, on the same objects, which nobody else has; what the function read must be what it was, as Python
may have gone on by it; the rest tells nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from enum import Enum
from functools import partial, wraps
from itertools import groupby
from threading import Lock, get_ident
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .. import settings
from ..errors import InvalidValue, message
from ..trace import counters
from .aggregator import Aggregator
from .expr import Operand, _kinds, new_like
from .handle import Handle
from .index import on_gpu
from .recording import outputs, recorder

KEPT, SEEN = 64, 1024  # programs of a session; signatures of which calls were in vain
CHANCES = 8  # calls in vain after which a signature is not recorded any more
AS_PYTHON = object()  # no program: the function is to be called
# What a session does without telling or changing anything.
SILENT = frozenset("check attach planned planning room filled computed compiled note_compiled".split())
BUILDS = frozenset("build_vector build_matrix build_csr adopt_dense declare_symmetric draw_matrix clear take".split())
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
CONSTANT = (Aggregator, Enum, np.dtype, range, type)  # arguments that can't change, beside operators and dtypes

P = ParamSpec("P")
R = TypeVar("R")


class Unfit(BaseException):
    """What a function does that can't be run again; no handler of the function's own is to catch it."""


class Missed(Exception):
    """A value that was read is another one than when the call was recorded."""


class Program:
    """A recorded call: `steps` in their order, on objects that stand for the arguments, and on those that it makes."""

    def __init__(self, session: Any):
        self.heard, self.lock = Heard(session, self), Lock()  # one call at a time: the objects are the program's
        self.steps: list[Callable[[], Any]] = []
        self.family: set[int] = set()  # addresses of buffers that steps write in each call
        self.made: dict[int, Any] = {}  # objects that get content
        self.given: list[Any] = []  # stand for the arguments that are objects
        self.result: Any = None
        self.unfit = False  # whether the function has done what can't be run again

    def record(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call returns, which becomes the program. Raises Unfit for what can't be run again."""
        heard, objects = self.heard, [*_handles(args, kwargs)]
        with settings.seen_as(heard):
            stands = {id(x): new_like(x.shape, x.dtype, x.name) for x in objects}
            self.given = [stands[id(x)] for x in objects]
            self._bind(objects)
            stand_ins = iter(self.given)
            args = tuple(next(stand_ins) if isinstance(x, Handle) else x for x in args)
            kwargs = {name: next(stand_ins) if isinstance(x, Handle) else x for name, x in kwargs.items()}
            heard.begin()
            try:
                self.result = function(*args, **kwargs)
            finally:
                heard.end()
                self._bind([None] * len(objects))
        if self.unfit:  # a handler of the function's own has caught Unfit
            raise Unfit
        found = self._handed_out(objects)
        self.steps = [*_joined(self.steps, lambda statements: heard.fused(statements, self.family))]
        return found

    def run(self, objects: list[Any]) -> Any:
        """What a call with these arguments returns. Raises Missed where it goes another way."""
        self._bind(objects)
        try:
            for x in self.made.values():
                x._store = None
                if not x.ndim:
                    x._value = None
            with settings.seen_as(self.heard):
                for step in self.steps:
                    step()
            return self._handed_out(objects)
        finally:
            self._bind([None] * len(self.given))

    def _bind(self, objects: list[Any]) -> None:
        """Let what stands for the arguments hold what these hold."""
        for x, given in zip(self.given, objects, strict=True):
            x._store = None if given is None else given._store
            if not x.ndim:
                x._value = None if given is None else given._value

    def _handed_out(self, objects: list[Any]) -> Any:
        """The result, with objects that are the caller's. What is left is dropped."""
        mine = {id(x): given for x, given in zip(self.given, objects, strict=True)}
        found = _rebuilt(self.result, lambda x: mine.get(id(x)) if id(x) in mine else self._new(x, mine))
        for x in self.made.values():
            x._store = None
        return found

    def _new(self, x: Any, mine: dict[int, Any]) -> Any:
        """An object of the caller's with what one of the program's holds."""
        if type(x._session) is not Heard or id(x) not in self.made and x._store is not None:
            raise Unfit
        mine[id(x)] = fresh = new_like(x.shape, x.dtype, x._name)
        fresh._session = self.heard._session  # gb.init may have begun another one meanwhile
        fresh._store = self.heard.unshared(x._store, self.family)
        if not x.ndim:
            fresh._value = x._value
        return fresh

    def changes(self, handles: Iterable[Any]) -> None:
        """What a step changes: not what is the caller's, or was there before."""
        for x in handles:
            if any(x is given for given in self.given) or type(x._session) is not Heard:
                self.unfit = True
                raise Unfit
            self.made[id(x)] = x

    def reads(self, read: Callable[[], Any], value: Any) -> None:
        """What a step read must be the same again."""
        try:
            known = _frozen(value)
        except Unfit:
            self.unfit = True
            raise

        def again() -> None:
            if _frozen(read()) != known:
                raise Missed

        self.steps.append(again)

    def fails(self, work: Callable[[], Any], kind: type[Exception], text: str) -> None:
        """What a step raised must be raised again."""

        def again() -> None:
            try:
                work()
            except Exception as error:
                if type(error) is kind and str(error) == text:
                    return
            raise Missed

        self.steps.append(again)


class Run:
    """A step that is a statement. `fuses`: it read nothing on the host."""

    def __init__(self, session: Any, statement: Any):
        self.session, self.statement, self.fuses = session, statement, False

    def __call__(self) -> Any:
        """Run it again."""
        return self.session.run(self.statement)


class Heard:
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

    @property
    def _hears(self) -> bool:
        return self._thread == get_ident() and not self._busy and recorder(self._session) is None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        heard = self._thread is not None and name not in SILENT and callable(found)
        return partial(self._told, name, found) if heard else found

    def called(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """A program inside another one is a part of it."""
        return function(*args, **kwargs)

    def run(self, statement: Any) -> Any:
        """Run a statement, which is a step."""
        step, reads = Run(self._session, statement), counters.host_reads
        found, w = self._acted(step, [statement.output]), statement.output
        step.fuses = counters.host_reads == reads and w.ndim < 2 and w._store is not None
        return found

    def carry_out(self, loop: Any) -> None:
        """Run a loop, which is a step."""
        self._acted(partial(self._session.carry_out, loop), outputs(loop.body))

    def does(self, work: Callable[[], Any], changes: Iterable[Any]) -> Any:
        """Work that changes objects, which is a step."""
        return self._acted(work, changes)

    def give(self, one: Any, made: Any, other: Any, beside: Any) -> None:
        """Two objects take the content of two others."""
        self._acted(partial(self._session.give, one, made, other, beside), [one, other])

    def computed(self, handle: Any) -> None:
        """The value of a scalar is read next."""
        self._session.computed(handle)
        if self._hears and not handle.ndim:
            self._act(handle._read)
            self._program.reads(handle._read, handle._value)

    def filled(self, handle: Any) -> None:
        """A scalar was given a value."""
        self._session.filled(handle)
        if not handle.ndim:
            self._acted(partial(_fill, handle, handle._value), [handle])

    def seen(self, what: Any, name: str) -> Any:
        """What an object tells of itself."""
        value = getattr(what, name)
        if self._hears:
            self._program.reads(partial(getattr, what, name), value)
        return value

    def _told(self, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a method gives: of those that build, an object's content; of all others, what was read."""
        if not self._hears and name not in BUILDS:
            return method(*args, **kwargs)
        args, kwargs = _own(args), dict(zip(kwargs, _own(kwargs.values()), strict=True))
        if name in BUILDS:  # which may make the arrays an object's
            return self._acted(lambda: method(*_own(args), **kwargs), args[:1])
        work = partial(method, *args, **kwargs)
        found = self._act(work)
        self._program.reads(work, found)
        return found

    def _acted(self, work: Callable[[], Any], changes: Iterable[Any]) -> Any:
        if not self._hears:
            self._overhears(changes)
            return work()
        self._program.changes(changes)
        found = self._act(work)
        self._program.steps.append(work)
        return found

    def _overhears(self, changes: Iterable[Any]) -> None:
        """Something is changed by a part of a step, `on_iteration` too, or by another thread."""
        if (program := self._program) is None or self._thread is None:
            return
        if self._thread != get_ident():
            program.unfit = True
        elif recorder(self._session) is None:
            program.changes(changes)

    def _act(self, work: Callable[[], Any]) -> Any:
        self._busy = True
        try:
            return work()
        except Exception as error:  # the function may handle it
            self._program.fails(work, type(error), str(error))
            raise
        finally:
            self._busy = False


class Programs:
    """The programs of a session, by what tells one from another."""

    def __init__(self, session: Any):
        self._session = session
        self._kept: OrderedDict[Hashable, Program] = OrderedDict()
        self._vain: dict[Hashable, int] = {}  # calls that went another way than was recorded

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self._vain.clear()

    def call(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """function(*args, **kwargs)."""
        found = self._recorded(function, args, kwargs)
        return function(*args, **kwargs) if found is AS_PYTHON else found

    def _recorded(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same by a program, one that is there or a new one; or AS_PYTHON."""
        session = self._session
        if session.recorders and recorder(session) is not None or session.explaining or session.ranks is not None:
            return AS_PYTHON
        try:
            given = _signature((*args, *kwargs.values()))
            key = function, session.maps.alone, len(args), (*kwargs,), given
            vain = self._vain.get(key, 0)
        except TypeError:  # of a list, an array, or an object of a user's class, nobody knows when it changes
            return AS_PYTHON
        if vain > CHANCES:
            self._kept.pop(key, None)
            return AS_PYTHON
        if (program := self._kept.get(key)) is None:
            return self._new(key, vain, function, args, kwargs)
        if not program.lock.acquire(blocking=False):
            return AS_PYTHON
        try:
            found = program.run([*_handles(args, kwargs)])
            self._keep(key, program)
            if vain:
                self._note(key, vain - 1)
            return found
        except (Missed, Unfit):
            pass
        except Exception:  # the function may have handled it
            return AS_PYTHON
        finally:
            program.lock.release()
        self._note(key, vain + 1)
        return self._new(key, vain + 1, function, args, kwargs)

    def _new(self, key: Hashable, vain: int, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        program = Program(self._session)
        try:
            found = program.record(function, args, kwargs)
        except (Unfit, Exception) as error:  # which may be that of what can't be recorded, in each call
            self._note(key, vain + 1 if isinstance(error, Exception) else CHANCES + 1)
            return AS_PYTHON
        self._keep(key, program)
        return found

    def _keep(self, key: Hashable, program: Program) -> None:
        """As the one that was used last."""
        self._kept.pop(key, None)
        self._kept[key] = program
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _note(self, key: Hashable, vain: int) -> None:
        if len(self._vain) > SEEN:
            self._vain.clear()
        self._vain[key] = vain


def _joined(steps: Iterable[Any], fused: Callable[[list[Any]], Any]) -> Iterator[Any]:
    """Steps, of which statements in a row that read nothing are one."""
    for fuses, each in groupby(steps, lambda step: isinstance(step, Run) and step.fuses):
        several = [*each]
        yield from [fused([step.statement for step in several])] if fuses else several


def _fill(scalar: Any, value: Any) -> None:
    scalar._store, scalar._value = None, value


def _handles(args: tuple, kwargs: dict[str, Any]) -> Iterator[Any]:
    return (x for x in (*args, *kwargs.values()) if isinstance(x, Handle))


def _own(given: Collection[Any]) -> tuple:
    """Arguments, with copies of arrays, which the function may change later."""
    arrays = (isinstance(x, np.ndarray) or not isinstance(x, Operand) and on_gpu(x) for x in given)
    return tuple(x.copy() if array else x for x, array in zip(given, arrays, strict=True))


def _signature(given: Iterable[Any]) -> Hashable:
    """What tells arguments apart: of objects the kind, type, shape and name, of others the value.

    Raises TypeError for what may change, for expressions, for objects in tuples and those of subclasses.
    """
    places: dict[int, int] = {}  # an object that is given twice is the same one
    return tuple(_described(x, places) for x in given)


def _described(x: Any, places: dict[int, int]) -> Hashable:
    if isinstance(x, Handle):
        if type(x) is not _kinds[("scalar", "vector", "matrix")[x.ndim]]:
            raise TypeError(type(x).__name__)
        return type(x), x.dtype, x.shape, x._name, places.setdefault(id(x), len(places))
    return _value(x)


def _value(x: Any) -> Hashable:
    if type(x) is tuple:
        return type(x), *map(_value, x)
    if isinstance(x, PLAIN):
        return _plain(x)
    operator = type(x).__module__.startswith("gbgpu.semiring.")  # or a dtype
    function = isinstance(x, FunctionType) and x.__closure__ is None
    if operator or function or isinstance(x, CONSTANT):
        return type(x), x
    raise TypeError(type(x).__name__)


def _plain(x: Any) -> Hashable:
    """A number or a text, as it is compared: NaN is itself, and -0.0 is not 0.0."""
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    return type(x), repr(x) if isinstance(x, (float, complex)) else x


def _frozen(value: Any) -> Any:
    """A value that was read, as it is compared. Raises Unfit for an object that may change."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value), *map(_frozen, value)
    if isinstance(value, PLAIN):
        return _plain(value)
    raise Unfit


def _rebuilt(result: Any, new: Callable[[Any], Any]) -> Any:
    """A result with other objects in place of its own. Raises Unfit for what may hold objects and can't be rebuilt."""
    if isinstance(result, Handle):
        return new(result)
    if type(result) is tuple or isinstance(result, tuple) and hasattr(result, "_make"):
        parts = [_rebuilt(x, new) for x in result]
        make: Any = getattr(type(result), "_make", tuple)
        return make(parts)
    if type(result) is list:
        return [_rebuilt(x, new) for x in result]
    if type(result) is dict:
        _frozen((*result,))  # no key is an object
        return {key: _rebuilt(x, new) for key, x in result.items()}
    if isinstance(result, PLAIN):
        return result
    raise Unfit


def program(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of matrices and vectors whose calls are recorded, and run again without its Python.

    Parameters
    ----------
    function : callable
        It makes all objects that it needs from the arguments alone, changes none of these, and depends on nothing that
        may change between calls (global variables, files, the time, random numbers). It hands out objects by its result
        alone: one that it stores elsewhere is empty after the call.

    Returns
    -------
    callable
        With the same arguments and results.

    Notes
    -----
    A call is recorded for a signature: the function, types, shapes and names of objects, and the values of all other
    arguments. A number that differs from call to call is passed as a Scalar, or by a vector. Each later call runs the
    recorded statements and loops on the content that its arguments have then. What the function read in between
    (`q.nvals`, `s.value`, `it.rounds`), and the errors that it handled, have to be what they were. Else the call runs
    as Python and is recorded anew, unless that was in vain too often.

    A recorded call has no other effects (`print`, a list that grows), except those of `on_iteration`. A call that can't
    be recorded, or whose reads differ, runs as Python after that was found: its effects may come twice.

    These calls always run as Python:

    - with arguments that may change (lists, arrays, objects of other classes, functions that use variables of others);
    - within a loop's body or `gb.explain`, across ranks, and while another thread is at the same program;
    - of functions that change an argument, in `on_iteration` or another thread too;
    - of functions that return other things than objects, numbers and tuples, lists and dicts of them.

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
