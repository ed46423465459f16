"""Where a round is written down on GPUs, and what runs it: on each of them a CUDA graph, or a kernel that stays.
Imported with the first capture."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ... import settings
from ...device import nvrtc
from ...device.base import address
from ...device.rounds import Rounds
from ...kernels import resident
from ...kernels.gpu_functions import FUNCTIONS
from ...kernels.hazards import Launch
from ...kernels.resident import Code, Order, Program, Round, Unknown
from ...trace import aside
from .condition import NOTES, PUSHED, UNEVEN, Condition, CudaCondition
from .journal import Journal, NotCompiled
from .limits import PASSES
from .tapes import within


class CudaTape:
    """What the devices were given."""

    def __init__(self, session: Any):
        self._session, self._device = session, session.devices[0]
        self._kernels: list[Any] = []  # a graph does not keep the code that it launches
        self._codes: list[Code] = []  # that may run it, once they are compiled
        self._made = False
        here = [device for device in session.devices if device.gpu == self._device.gpu]
        self.few = True  # whether few blocks work on lists, and may stay
        self.dealt = False  # whether frontiers are dealt out
        self.edges = 0, 0  # that the last launch has pushed, and waited for, as far as it tells
        self.noted: Any = None  # who traces
        self._rounds = Rounds(here if session.maps.alone else session.devices)
        self._order = Order(self._rounds.gpus)
        self.state = self._device.zeros(8, np.int64)  # the round, whether it is over, whether it is too wide
        self.condition: type[Condition] = CudaCondition

    @contextmanager
    def recording(self, journal: Journal, thin: bool, seconds: float = 0.0) -> Iterator[None]:
        """`thin`: most works on short lists, but for passes over rows that take so many seconds."""
        self._journal, self.few = journal, thin and seconds < PASSES
        with self._rounds.body(journal, self._device.processors if self.few else 0):
            if self._rounds.others:
                journal.before = self._before
            yield

    def _before(self, part: Launch) -> None:
        """GPUs meet before one uses what another one has used."""
        if self._order.disturbed(part):
            self._rounds.meet()

    def _meet(self) -> None:
        if self._rounds.others:
            self._rounds.meet()
            self._order.met()

    def turn(self, text: str, arrays: list[Any], most: int | None, changed: list[Any]) -> None:
        """The last kernel of a round, which writes the arrays `changed`."""
        rounds = self._rounds
        self._meet()
        self._changed = [self.state, *changed]
        counters = rounds.words[rounds.first], rounds.used[rounds.first]
        own = np.uint64(rounds.handle), self.state, rounds.abort, most or 2**62, *counters
        self._once(nvrtc.compile_ptx, text, "turn", (*own, *arrays))
        if rounds.others:
            rounds.tell(self.state[3:4])

    def _once(self, compile: Callable[[str, str], bytes], text: str, name: str, args: tuple) -> None:
        """Launch a kernel of a text on the first GPU, with one thread."""
        with self._device.here():
            with aside("compile"):
                self._kernels.append(self._device.load(compile(text, self._device.arch), text, alone=True)(name))
            self._device.launch(self._kernels[-1], 1, 1, args)

    @property
    def aside(self) -> int:
        """Reads that were no part of the round."""
        return self._rounds.aside

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
        handles, holds = self._rounds.condition(), self._device.empty(1, np.int64)
        self._meet()
        args = np.uint64(int(handles[0])), holds, *condition.arrays
        self._once(nvrtc.compile_ptx, condition.guarding(text), "guard", args)
        if self._rounds.others:
            self._rounds.tell(holds, handles)
        with self._rounds.guarded(handles):
            yield
            self._meet()
        self._journal.did("", "end")

    def replaced(self, pairs: list[tuple[Any, Any]]) -> bool:
        """Whether buffers could be given in place of others once all is written down."""
        return False

    def finish(self) -> None:
        """All is captured. Raises NotCompiled for what several GPUs can't do by themselves."""
        rounds = self._rounds
        graphs = "a CUDA graph of" if not rounds.others else f"CUDA graphs on {len(rounds.gpus)} GPUs,"
        self.dealt = any(launch.name == "deal" for launch in self._journal.launches)
        split = ", frontiers split among GPUs" if self.dealt else ""
        self.how = f"{graphs} {rounds.nodes} nodes a round{self.between}{split}"
        if rounds.others and not self._known:
            raise NotCompiled("a round has work of other libraries, around which GPUs are not synchronized")

    def _make(self) -> None:
        """Make what runs it, at the first launch: a round that is one of two kinds of a kernel (joined.py) may have
        none."""
        how = settings.resident
        if how == "always" or self.few and how != "never":
            with suppress(Unknown):
                self.will_stay([self.round()])
        self._ready(how in ("now", "always"))
        self._rounds.finish()
        self._made = True

    def will_stay(self, rounds: list[Round], crossings: Sequence[Round] = ()) -> None:
        """A kernel on each GPU will do it all. Raises Unknown if it can't."""
        gpus = self._rounds.gpus
        self._programs = [Program(rounds, crossings, gpus, gpu) for gpu in gpus]
        devices = map(self._rounds.device, gpus)
        self._codes = [Code.of(one.text, device.arch) for one, device in zip(self._programs, devices, strict=True)]

    @property
    def one(self) -> str:
        gpus = len(self._rounds.gpus)
        return "one persistent kernel" if gpus == 1 else f"one persistent kernel on each of {gpus} GPUs"

    @property
    def between(self) -> str:
        """What GPUs fetch from each other in a round: arrays, and lists of which only they know the lengths."""
        sure = most = 0
        for launch in self._journal.launches if self._rounds.others else ():
            known = FUNCTIONS.get(launch.name, ())
            read = [arg for arg, each in zip(launch.args, known, strict=False) if not each.written]
            arrays = [arg for arg in read if hasattr(arg, "__cuda_array_interface__")]
            size = sum(array.nbytes for array in arrays if array.device.id != launch.gpu)
            sure, most = (sure + size, most) if launch.name == "copy_bytes" else (sure, most + size)
        lists = f", and lists of at most {_megabytes(most)}" if most else ""
        return f", {_megabytes(sure)} fetched from other GPUs a round{lists}" if sure or most else ""

    @property
    def meetings(self) -> int:
        """How often blocks meet in a round."""
        return self._programs[0].meetings

    def round(self, abort: int | None = None) -> Round:
        """The parts of a round; its end looks at another word whether it is to stop."""
        *parts, last = self._parts()
        if abort is not None:
            last = replace(last, args=(*last.args[:2], abort, *last.args[3:]))
        return Round([*parts, last], self._changed, self._rounds.counters)

    def crossing(self) -> Round:
        return Round(self._parts(), (), self._rounds.counters)

    def _parts(self) -> list[Launch]:
        """Raises Unknown if devices were given something that they did not tell of."""
        if not self._known:
            raise Unknown("what has no text")
        return self._journal.launches

    @property
    def _known(self) -> bool:
        """Whether devices told of all that they were given."""
        return self._rounds.nodes == sum(launch.name != "end" for launch in self._journal.launches)

    @property
    def abort(self) -> int:
        return int(self._rounds.abort)

    @property
    def kind(self) -> int:
        """Of the round that the last launch ended in."""
        return int(self._rounds.ended[0])

    def begin(self, rounds: int, noted: Any, zeroed: bool = False) -> None:
        """After so many rounds; `zeroed`: what `zero` gives the device was launched."""
        self.noted, self.edges = noted, (0, 0)
        self._rounds.expect(0, rounds)
        self.clear(zeroed)
        if rounds or noted is not None:
            words = np.zeros(8, np.int64)
            words[0], words[NOTES] = rounds, 0 if noted is None else address(noted.words)
            self._device.copy(self.state, words)
        elif not zeroed:
            self._device.clear(self.state)

    def zero(self, state: bool = True) -> None:
        """Give the device what a launch from the first round on finds; `state`: also where rounds are counted."""
        self._rounds.zero()
        if state:
            self._device.clear(self.state)

    @property
    def ended(self) -> Sequence[int]:
        """Rounds, whether the loop is over, whether a frontier is too wide."""
        if self._rounds.stays:
            return self._rounds.ended[1:]
        state: list[int] = self._device.get(self.state).tolist()
        self.edges = state[PUSHED], state[UNEVEN]
        return state[:3]

    def clear(self, done: bool = False) -> None:
        """Make counters zero, as rounds find and leave them; `done`: they were made so."""
        self._rounds.clear(done)

    def ready(self, seconds: float) -> bool:
        """Whether kernels stay. Another run without them took so many seconds."""
        self._ready(settings.resident in ("now", "always"))
        for code in self._codes:
            code.wanted(seconds)
        return bool(self._rounds.stays)

    def _ready(self, now: bool = False) -> None:
        for code in self._codes[1:] if now else ():  # beside the first one
            code.begin()
        if self._codes and all([code.ready(now) for code in self._codes]):
            devices = map(self._rounds.device, self._rounds.gpus)
            kernels = [code.loaded(device) for code, device in zip(self._codes, devices, strict=True)]
            self._rounds.stay(kernels, resident.THREADS, resident.BLOCKS, self._programs)
            self._codes, self.how = [], f"{self.one}, {self.meetings} barriers a round{self.between}"

    def launch(self, until: int | None, due: Callable[[float], bool]) -> None:
        if not self._made:
            self._make()
        self._ready()
        start = perf_counter()
        self._rounds.launch(due)
        for code in self._codes:
            code.wanted(perf_counter() - start)

    def run(self, kind: int, rounds: int, due: Callable[[float], bool]) -> None:
        """One kernel, from rounds of a kind on."""
        self._rounds.expect(kind, rounds)
        self._rounds.launch(due, kind)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.3g} MB"
