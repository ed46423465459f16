"""What GPUs are given in a round of a loop, and what does it again and again: a graph on each of them, or a kernel that
stays there."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import addressof, c_uint64, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..interrupts import imported
from ..trace import counters
from .graph import WhileGraph, bindings, checked
from .nvrtc import compile_ptx

MEET = (Path(__file__).parent / "meet.cu").read_text()
WORDS = 4096  # that a round may count in on a GPU: its end clears them
_MEETING, _LINE = 48, 16  # words of a Meeting of one GPU (resident.cuh), and of what each of several adds to it
_CAME = 32  # words of a GPU before those where others come (meet.cu)
_TOLD = 6  # pinned words of the first GPU; each of the others has one
PATIENCE = 8.0  # seconds that GPUs, and blocks of one, wait for each other
_ASKING = 1e-3  # seconds of asking again and again whether a loop has ended; then it is asked every so often


class Rounds:
    """`with rounds.body(journal, thin):` captures what devices are given in a round; nothing runs. `launch` runs it to
    the end of the loop: graphs, or after `stay` a kernel on each GPU."""

    def __init__(self, devices: Sequence[Any]):
        cupy = imported("gbgpu.device.cuda").cupy
        self._cupy, self._devices = cupy, devices
        self._of = {device.gpu: device for device in reversed(devices)}  # one of each GPU
        self.gpus = list(dict.fromkeys(device.gpu for device in devices))
        self.first, self.others = self.gpus[0], self.gpus[1:]
        self._graphs = {gpu: WhileGraph(self._of[gpu]) for gpu in self.gpus}
        self._pool = cupy.cuda.MemoryPool()
        self._kernels: list[_Staying] = []
        self._bare = 0  # launches that no journal hears of
        self.aside = 0  # reads by what is done at once, while a round is captured
        self.words = {gpu: self._of[gpu].empty(WORDS, np.int64) for gpu in self.gpus}  # that GPUs count in
        self.used = dict.fromkeys(self.gpus, 0)  # of these
        self._cleared = False  # whether these are zero
        self._given = {}  # events: all that GPUs were given
        for gpu in self.gpus:
            with self._of[gpu].here():
                self._given[gpu] = cupy.cuda.Event(disable_timing=True)
        with self._of[self.first].here():
            self._all = cupy.cuda.Event(disable_timing=True)  # the first one's stream, after these
        self._odd = False  # whether the last run broke off, so that some may have met more often than others
        # to stop; that blocks of the first GPU did not meet; the kind of rounds that it ended in, and three words of
        # their state; whether those of the other GPUs did not
        self._pinned = cupy.cuda.alloc_pinned_memory(8 * (_TOLD + len(self.gpus)))
        self._told = np.frombuffer(self._pinned, np.int64, _TOLD + len(self.gpus))
        self._told[:] = 0
        several = self.gpus if self.others else []
        self._meeting = [self._of[gpu].zeros(_CAME + _LINE * len(self.gpus), np.int64) for gpu in several]

    def device(self, gpu: int) -> Any:
        """One of those of a GPU."""
        return self._of[gpu]

    @property
    def abort(self) -> int:
        """Where the host tells a loop to stop: the address of a word."""
        return int(self._pinned.ptr)

    def _lost(self, i: int) -> int:
        """Where a GPU tells that others, or blocks of its own, did not come: the address of a word."""
        return self.abort + 8 * (_TOLD + i if i else 1)

    # -- what is captured

    @contextmanager
    def body(self, journal: Any, thin: int) -> Iterator[None]:
        """What devices are given inside becomes the round. What libraries allocate comes from memory of its own; other
        buffers are kept by the journal."""
        cuda, peers = self._cupy.cuda, self._devices[0].peers
        around = [(graph, cuda.get_current_stream(gpu)) for gpu, graph in self._graphs.items()], cuda.get_allocator()

        @contextmanager
        def uncaptured() -> Iterator[None]:
            """Work goes where it went before, and is done before the loop is launched."""
            with ExitStack() as stack:
                for device in self._devices:
                    stack.enter_context(device.captured())
                stack.enter_context(cuda.using_allocator(around[1]))
                for graph, stream in around[0]:
                    stack.enter_context(graph.current(stream))
                if peers is not None:
                    stack.enter_context(peers.written_down(False))
                before = counters.host_reads
                yield
                self.aside += counters.host_reads - before

        with ExitStack() as stack:
            allocators = []
            for device in self._devices:
                with device.here():
                    allocators.append(device.allocator())
            stack.enter_context(cuda.using_allocator(self._pool.malloc))
            for graph in self._graphs.values():
                stack.enter_context(graph.captured())
            if peers is not None:
                stack.enter_context(peers.written_down(True))
            for device, allocated in zip(self._devices, allocators, strict=True):
                counting = self._counted(device.gpu)
                stack.enter_context(device.captured(counting, journal, thin, uncaptured, allocated))
            yield

    def _counted(self, gpu: int) -> Iterator[Any]:
        words = self.words[gpu]
        while self.used[gpu] < WORDS:
            self.used[gpu] += 1
            yield words[self.used[gpu] - 1 : self.used[gpu]]

    @property
    def counters(self) -> dict[int, Any]:
        """The words of each GPU that the round counts in."""
        return {gpu: words[: self.used[gpu]] for gpu, words in self.words.items()}

    def clear(self, done: bool = False) -> None:
        """Counters are zero where a round begins; `done`: `zero` is, by work that was given to the devices before."""
        if not done:
            self.zero()
        self._cleared = True

    def zero(self) -> None:
        """Give devices what makes counters zero."""
        for gpu, words in self.words.items():
            self._of[gpu].clear(words)

    @property
    def handle(self) -> int:
        """That a kernel of the first GPU tells whether there is another round."""
        return int(self._graphs[self.first].handle)

    @property
    def nodes(self) -> int:
        """How much work journals should have heard of."""
        return sum(graph.nodes for graph in self._graphs.values()) - self._bare

    def condition(self) -> list[int]:
        """For what is guarded on each GPU; a kernel of the first one sets the first of them in each round."""
        return [graph.condition() for graph in self._graphs.values()]

    @contextmanager
    def guarded(self, handles: list[int]) -> Iterator[None]:
        """What devices are given inside runs if the handles are set by then."""
        with ExitStack() as stack:
            for graph, handle in zip(self._graphs.values(), handles, strict=True):
                stack.enter_context(graph.guarded(handle))
            yield

    # -- what several GPUs do together

    def meet(self) -> None:
        """All GPUs come here before one goes on."""
        for i, gpu in enumerate(self.gpus):
            self._launch(gpu, "meet", i, self._lost(i))

    def tell(self, what: Any, handles: Sequence[int] | None = None) -> None:
        """All GPUs are told a word of the first one: what is guarded runs, or the next round, unless it is 0."""
        last = handles is None
        handles = [graph.handle for graph in self._graphs.values()] if handles is None else handles
        values = [np.uint64(int(handle)) for handle in handles]
        self._launch(self.first, "tell", values[0], what)
        for i, gpu in enumerate(self.others, 1):
            used = self.used[gpu] if last else 0
            self._launch(gpu, "follow", i, self._lost(i), values[i], self.words[gpu], used)

    def _launch(self, gpu: int, name: str, *args: Any) -> None:
        device, self._bare = self._of[gpu], self._bare + 1
        kernel = waiting(device, len(self.gpus))[name]
        journal, device.journal = device.journal, None
        try:
            with device.here():
                device.launch(kernel, 1, 1, (*self._meeting, *args))
        finally:
            device.journal = journal

    # -- what runs it

    def finish(self) -> None:
        """All is captured."""
        if not self.stays:
            for graph in self._graphs.values():
                graph.finish()

    def stay(self, kernels: Sequence[Any], threads: int, blocks: int, programs: Sequence[Any]) -> None:
        """One kernel on each GPU does it all: so many blocks a multiprocessor, all at once, until the loop is over."""
        words = _MEETING + _LINE * len(self.gpus) * bool(self.others)
        meetings = [self._of[gpu].zeros(words, np.int64) for gpu in self.gpus]
        self._kernels = []
        for i, (gpu, kernel, program) in enumerate(zip(self.gpus, kernels, programs, strict=True)):
            all = [*(int(one.data.ptr) for one in meetings), i, 0] if self.others else []
            rest = int(meetings[i].data.ptr), self._lost(i), 0, *all
            device, stream = self._of[gpu], self._graphs[gpu].stream
            self._kernels.append(_Staying(device, stream, kernel, threads, blocks, program, meetings[i], rest))

    @property
    def stays(self) -> bool:
        return bool(self._kernels)

    @property
    def ended(self) -> Any:
        """The kind of rounds that kernels ended in, and three words of their state."""
        return self._told[2:_TOLD].tolist()

    def expect(self, kind: int, rounds: int) -> None:
        """Where kernels begin, and end if they do not run."""
        self._told[2:_TOLD] = kind, rounds, 0, 0

    def _go(self, kind: int) -> None:
        for staying in self._kernels:
            staying.launch(kind)
        if not self.stays:
            for graph in self._graphs.values():
                graph.launch()

    def _after(self, streams: Sequence[Any]) -> None:
        """What all GPUs were given comes first: they write to each other, and read what others have. The first one
        waits for all, and the others for it."""
        for gpu, event in self._given.items():
            with self._of[gpu].here():
                self._cupy.cuda.get_current_stream().record(event)
        with self._of[self.first].here():
            for event in self._given.values():
                streams[0].wait_event(event)
            streams[0].record(self._all)
        for gpu, stream in zip(self.others, streams[1:], strict=True):
            with self._of[gpu].here():
                stream.wait_event(self._all)

    def launch(self, due: Callable[[float], bool], kind: int = 0) -> None:
        """Run the loop to its end, from rounds of a kind on, or for a while: `due(start)` says whether what began then
        is to stop. It does so within a few rounds, as with Ctrl-C."""
        if self._odd:
            self._begin_anew()
        if not self._cleared:
            self.clear()
        self._cleared = False
        streams = [graph.stream for graph in self._graphs.values()]
        self._after(streams)
        start, self._odd = time.perf_counter(), True
        try:
            self._go(kind)
            while not all(stream.done for stream in streams):
                if time.perf_counter() - start > _ASKING:
                    time.sleep(5e-5)
                if due(start):
                    self._told[0] = 1
        except BaseException:
            self._told[0] = 1
            raise
        finally:
            for stream in streams:
                stream.synchronize()
            self._of[self.first].waited += time.perf_counter() - start
        lost = [gpu for gpu, told in zip(self.gpus, (self._told[1], *self._told[_TOLD + 1 :]), strict=True) if told]
        if lost:
            names = ", ".join(self._of[gpu].name for gpu in lost)
            hint = "GBGPU_STAGED=1 runs loops of several GPUs by statements" if self.others else "GBGPU_RESIDENT=never"
            raise DeviceError(f"{names}: others did not come where a loop's rounds meet. Hint: {hint}")
        self._told[0], self._odd = 0, False

    def _begin_anew(self) -> None:
        """After a run that broke off in the middle."""
        for gpu, words in zip(self.gpus, self._meeting, strict=False):
            self._of[gpu].clear(words)
        for staying in self._kernels:
            staying.clear()
        self._told[:2] = 0
        self._told[_TOLD:] = 0


def meeting(gpus: int) -> str:
    """The text of meet.cu for so many GPUs."""
    of, all = (", ".join(f"{what}p{i}" for i in range(gpus)) for what in ("long long *", ""))
    return f"{patience()}#define GPUS {gpus}\n#define OF {of}\n#define ALL {all}\n{MEET}"


def patience() -> str:
    """The head of texts of what waits for others."""
    return f"#define PATIENCE {int(PATIENCE * 1e9)}ll\n"


@lru_cache(maxsize=16)
def waiting(device: Any, gpus: int) -> dict[str, Any]:
    """The kernels by which so many GPUs wait for each other."""
    text = meeting(gpus)
    load = device.load(compile_ptx(text, device.arch), text, alone=True)
    return {name: load(name) for name in ("meet", "tell", "follow")}


class _Staying:
    """A kernel of one GPU, with its arguments."""

    def __init__(
        self,
        device: Any,
        stream: Any,
        kernel: Any,
        threads: int,
        blocks: int,
        program: Any,
        meeting: Any,
        rest: Sequence[int],
    ):
        self.device, self._stream, self._meeting = device, stream, meeting
        self._kernel, self._threads, self._shared = kernel, threads, program.shared
        with device.here():
            self._grid = min(blocks * device.processors, device.fit(kernel, threads, program.shared))
        self._table = (c_uint64 * max(len(program.values), 1))(*program.values)
        self._rest = (c_uint64 * len(rest))(*rest)
        places = addressof(self._table), *(addressof(self._rest) + 8 * i for i in range(min(len(rest), 4)))
        self._places = (c_void_p * len(places))(*places)

    def clear(self) -> None:
        self.device.clear(self._meeting)

    def launch(self, kind: int) -> None:
        self._rest[2] = kind
        how = self._kernel.ptr, self._grid, 1, 1, self._threads, 1, 1, self._shared, self._stream.ptr
        with self.device.here():
            checked((bindings().cuLaunchCooperativeKernel(*how, addressof(self._places))[0], None))
