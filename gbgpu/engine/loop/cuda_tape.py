"""Where a round is written down on a GPU, and what runs it: a CUDA graph, or one kernel that stays. Imported with the
first capture."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any

import numpy as np

from ... import settings
from ...device import nvrtc
from ...device.graph import WhileGraph
from ...kernels import resident
from ...kernels.resident import Code, Part, Program, Round, Unknown
from .condition import Condition, CudaCondition
from .journal import Journal
from .tapes import late, within

SHORT = 1e-5  # seconds of a round's passes over rows from which they want all the threads that a graph gives them


class CudaTape:
    """A CUDA graph whose body is what the device was given."""

    def __init__(self, session: Any):
        self._session, self._device = session, session.devices[0]
        self._kernels: list[Any] = []  # a graph does not keep the code that it launches
        self._graph = WhileGraph(session.devices)
        self.state = self._device.zeros(8, np.int64)  # the round, whether it is over, whether it is too wide
        self.condition: type[Condition] = CudaCondition

    @contextmanager
    def recording(self, journal: Journal, thin: bool, seconds: float = 0.0) -> Iterator[None]:
        """`thin`: most works on short lists, but for passes over rows that take so many seconds."""
        session, before = self._session, self._session.late
        self._journal, self._stays = journal, thin and seconds < SHORT
        try:
            with self._graph.body(journal, self._device.processors if thin else 0):
                session.late = late
                yield
        finally:
            session.late = before

    def turn(self, text: str, arrays: list[Any], most: int | None, changed: list[Any]) -> None:
        """The last kernel of a round, which writes the arrays `changed`."""
        graph, handle = self._graph, np.uint64(int(self._graph.handle))
        self._changed = [self.state, *changed]
        own = handle, self.state, graph.abort, most or 2**62, graph.words, graph.used
        self._once(nvrtc.compile_ptx, text, "turn", (*own, *arrays))

    def _once(self, compile: Callable[[str, str], bytes], text: str, name: str, args: tuple) -> None:
        """Launch a kernel of a text, with one thread."""
        self._kernels.append(self._device.load(compile(text, self._device.arch), text, alone=True)(name))
        self._device.launch(self._kernels[-1], 1, 1, args)

    def number(self) -> CudaCondition:
        """For a text that is computed within a round."""
        return within(CudaCondition(), self.state)

    def compute(self, dtype: Any, condition: Any, text: str) -> Any:
        """Two words: the value of a text, and that there is one."""
        both = self._device.empty(2, np.int64)
        text = condition.computing(text, dtype)
        self._once(nvrtc.compile_cubin, text, "number", (both, *condition.arrays))
        return both

    @contextmanager
    def guarded(self, condition: Any, text: str) -> Iterator[None]:
        """What is captured inside is passed over unless the text holds."""
        handle = self._graph.condition()
        args = np.uint64(int(handle)), *condition.arrays
        self._once(nvrtc.compile_ptx, condition.guarding(text), "guard", args)
        with self._graph.guarded(handle):
            yield
        self._journal.did("", "end")

    def replaced(self, pairs: list[tuple[Any, Any]]) -> bool:
        """Whether buffers could be given in place of others once all is written down."""
        return False

    def finish(self) -> None:
        self.how = f"a graph of {self._graph.nodes} nodes a round"
        self._code: Code | None = None
        how = settings.resident
        if how == "always" or self._stays and how != "never":
            with suppress(Unknown):
                self._program = Program([self.round()])
                self._code = Code.of(self._program.text, self._device.arch)
        self._ready(how in ("now", "always"))
        if not self._graph.stays:
            self._graph.finish()

    def round(self, abort: int | None = None) -> Round:
        """The parts of a round; its end looks at another word whether it is to stop."""
        *parts, last = self._parts()
        if abort is not None:
            last = last._replace(args=(*last.args[:2], abort, *last.args[3:]))
        return Round([*parts, last], self._changed, self._graph.words, self._graph.used)

    def crossing(self) -> Round:
        return Round(self._parts(), (), self._graph.words, self._graph.used)

    def _parts(self) -> list[Part]:
        """Raises Unknown if the graph has something that the devices did not tell of."""
        parts = [Part(*part) for part in self._journal.parts]
        if self._graph.nodes != sum(part.name != "end" for part in parts):
            raise Unknown("what has no text")
        return parts

    @property
    def abort(self) -> int:
        return int(self._graph.abort)

    @property
    def kind(self) -> int:
        """Of the round that the last launch ended in."""
        return int(self._graph.ended[0])

    def begin(self, rounds: int) -> None:
        self._graph.expect(0, rounds)
        if rounds:
            self._device.copy(self.state, np.array([rounds, *[0] * 7]))
        else:
            self._device.clear(self.state)

    @property
    def ended(self) -> Sequence[int]:
        """Rounds, whether the loop is over, whether a frontier is too wide."""
        stays = self._graph.stays
        return self._graph.ended[1:] if stays else self._device.get(self.state)[:3].tolist()

    def clear(self) -> None:
        """Make counters zero, as rounds find and leave them."""
        self._device.clear(self._graph.words)

    def stay(self, code: Code, program: Program) -> None:
        """One kernel does it all from now on."""
        self._graph.stay(code.loaded(self._device), resident.THREADS, resident.BLOCKS, program)

    def _ready(self, now: bool = False) -> None:
        if self._code is not None and self._code.ready(now):
            self.stay(self._code, self._program)
            self._code, self.how = None, f"one kernel, whose blocks meet {self._program.meetings} times a round"

    def launch(self, until: int | None) -> None:
        self._ready()
        start = perf_counter()
        self._graph.launch()
        if self._code is not None:
            self._code.wanted(perf_counter() - start)

    def run(self, kind: int, rounds: int) -> None:
        """One kernel, from rounds of a kind on."""
        self._graph.expect(kind, rounds)
        self._graph.launch(kind)
