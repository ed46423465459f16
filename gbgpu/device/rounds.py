"""What GPUs are given in a round of a loop, written down; and a kernel on each of them that does it again and again.

Needs cuda-bindings.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from ctypes import addressof, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from ..errors import DeviceError

WORDS = 4096  # that a round may count in on a GPU: its end clears them
_MEETING, _LINE = 48, 16  # words of a Meeting of one GPU (resident.cuh), and of what each of several adds to it
_TOLD = 6  # pinned words of the first GPU; each of the others has one
_PATIENCE = 1e-3  # seconds of asking again and again whether a loop has ended; then it is asked every so often


@cache
def bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        return None
    return driver if hasattr(driver, "cuStreamBeginCaptureToGraph") else None


def available() -> bool:
    """Whether loops can be captured here, on one GPU as graphs."""
    driver = bindings()
    return driver is not None and int(driver.cuDriverGetVersion()[1]) >= 12040


def checked(result: Any) -> Any:
    error, *found = result
    if int(error):
        raise DeviceError(f"CUDA: {error}")
    return found[0] if len(found) == 1 else found


class Rounds:
    """`with rounds.body(journal, thin):` writes down what devices are given; nothing runs. After `stay`, `launch` runs
    it to the end of the loop. Work that the journal does not hear of is counted: `nodes`."""

    told_only = True  # nothing runs what is captured
    handle: Any = 0

    def __init__(self, devices: Sequence[Any]):
        from .cuda import cupy

        self._cupy, self._devices = cupy, devices
        self._of = {device.gpu: device for device in reversed(devices)}  # one of each GPU
        self.gpus = list(dict.fromkeys(device.gpu for device in devices))
        self._pool, self._streams = cupy.cuda.MemoryPool(), {gpu: self._stream(gpu) for gpu in self.gpus}
        self._kernels: list[_Staying] = []
        self._nodes = 0
        self.words = {gpu: self._of[gpu].empty(WORDS, np.int64) for gpu in self.gpus}  # that GPUs count in
        self.used = dict.fromkeys(self.gpus, 0)  # of these
        # to stop; that blocks of the first GPU did not meet; the kind of rounds that it ended in, and three words of
        # their state; whether those of the other GPUs did not
        self._pinned = cupy.cuda.alloc_pinned_memory(8 * (_TOLD + len(self.gpus)))
        self._told = np.frombuffer(self._pinned, np.int64, _TOLD + len(self.gpus))
        self._told[:] = 0

    def _stream(self, gpu: int) -> Any:
        with self._of[gpu].here():
            return self._cupy.cuda.Stream(non_blocking=True)

    def device(self, gpu: int) -> Any:
        return self._of[gpu]

    @property
    def abort(self) -> int:
        """Where the host tells a loop to stop: the address of a word."""
        return int(self._pinned.ptr)

    # -- what is written down

    @contextmanager
    def body(self, journal: Any, thin: int) -> Iterator[None]:
        """What devices are given inside becomes the round. Buffers come from memory of its own."""
        cuda, peers = self._cupy.cuda, self._devices[0].peers
        around = [(gpu, cuda.get_current_stream(gpu)) for gpu in self.gpus], cuda.get_allocator()

        @contextmanager
        def uncaptured() -> Iterator[None]:
            """Work goes where it went before, and is done before the loop is launched."""
            with ExitStack() as stack:
                for device in self._devices:
                    stack.enter_context(device.captured(None, None, 0, nullcontext))
                stack.enter_context(cuda.using_allocator(around[1]))
                for gpu, stream in around[0]:
                    stack.enter_context(self._current(gpu, stream))
                if peers is not None:
                    stack.enter_context(peers.written_down(False))
                yield

        with ExitStack() as stack:
            stack.enter_context(cuda.using_allocator(self._pool.malloc))
            for gpu in self.gpus:
                stack.enter_context(self._captured(gpu))
            if peers is not None:
                stack.enter_context(peers.written_down(True))
            for device in self._devices:
                counting = self._counted(device.gpu)
                stack.enter_context(device.captured(counting, journal, thin, uncaptured))
            yield

    @contextmanager
    def _current(self, gpu: int, stream: Any) -> Iterator[None]:
        """A stream is the current one of its GPU."""
        here = self._of[gpu].here
        with here():
            stream.__enter__()
        try:
            yield
        finally:
            with here():
                stream.__exit__()

    @contextmanager
    def _captured(self, gpu: int) -> Iterator[None]:
        """The work of a GPU is counted, and does not run."""
        driver, stream = bindings(), self._streams[gpu]
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with self._current(gpu, stream):
            checked((driver.cuStreamBeginCapture(stream.ptr, relaxed)[0], None))
            try:
                yield
            finally:  # a stream that goes on capturing is of no use to anyone
                ended = driver.cuStreamEndCapture(stream.ptr)
            graph = checked(ended)
            self._nodes += int(checked(driver.cuGraphGetNodes(graph))[1])
            driver.cuGraphDestroy(graph)

    def _counted(self, gpu: int) -> Iterator[Any]:
        words = self.words[gpu]
        while self.used[gpu] < WORDS:
            self.used[gpu] += 1
            yield words[self.used[gpu] - 1 : self.used[gpu]]

    @property
    def counters(self) -> dict[int, Any]:
        """The words of each GPU that the round counts in."""
        return {gpu: words[: self.used[gpu]] for gpu, words in self.words.items()}

    def clear(self) -> None:
        """Counters are zero where a round begins."""
        for gpu, words in self.words.items():
            self._of[gpu].clear(words)

    @property
    def nodes(self) -> int:
        """How much work was given."""
        return self._nodes

    def condition(self) -> Any:
        return 0

    def guarded(self, handle: Any) -> AbstractContextManager:
        return nullcontext()

    def finish(self) -> None:
        """All is written down."""

    # -- what runs it

    def stay(self, kernels: Sequence[Any], threads: int, blocks: int, programs: Sequence[Any]) -> None:
        """One kernel on each GPU does it all: so many blocks a multiprocessor, all at once, until the loop is over."""
        several, first = len(self.gpus) > 1, self._told.ctypes.data
        words = _MEETING + _LINE * len(self.gpus) * several
        meetings = [self._of[gpu].empty(words, np.int64) for gpu in self.gpus]
        self._kernels = []
        for i, (gpu, kernel, program) in enumerate(zip(self.gpus, kernels, programs, strict=True)):
            all = [*(int(one.data.ptr) for one in meetings), i, 0] if several else []
            ended = first + 8 * (_TOLD + i if i else 1)
            device = self._of[gpu]
            self._kernels.append(_Staying(device, kernel, threads, blocks, program, meetings[i], ended, all))

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
            with staying.device.here(), self._streams[staying.device.gpu]:
                staying.device.clear(staying.meeting)
        if len(self._kernels) > 1:  # they write into each other's
            for staying in self._kernels:
                self._streams[staying.device.gpu].synchronize()
        for staying in self._kernels:
            with staying.device.here():
                staying.go(self._streams[staying.device.gpu], kind)

    def launch(self, kind: int = 0) -> None:
        """Run the loop to its end, from rounds of a kind on. Ctrl-C stops it within a few rounds."""
        self.clear()
        for gpu, stream in self._streams.items():
            with self._of[gpu].here():
                stream.wait_event(self._cupy.cuda.get_current_stream().record())
        start, streams = time.perf_counter(), list(self._streams.values())
        try:
            self._go(kind)
            while not all(stream.done for stream in streams):
                if time.perf_counter() - start > _PATIENCE:
                    time.sleep(5e-5)
        except BaseException:
            self._told[0] = 1
            raise
        finally:
            for stream in streams:
                stream.synchronize()
            lost = [gpu for gpu, told in zip(self.gpus, (self._told[1], *self._told[_TOLD + 1 :]), strict=True) if told]
            self._told[:2] = 0
            self._told[_TOLD:] = 0
        if lost:
            names = ", ".join(self._of[gpu].name for gpu in lost)
            raise DeviceError(f"{names}: blocks of a loop did not meet. Hint: GBGPU_RESIDENT=never")


class _Staying:
    """A kernel of one GPU, with its arguments."""

    def __init__(
        self,
        device: Any,
        kernel: Any,
        threads: int,
        blocks: int,
        program: Any,
        meeting: Any,
        ended: int,
        all: list[int],
    ):
        self.device, self.meeting = device, meeting
        self._kernel, self._threads, self._shared = kernel, threads, program.shared
        with device.here():
            self._grid = min(blocks * device.processors, device.fit(kernel, threads, program.shared))
        table = (c_uint64 * max(len(program.values), 1))(*program.values)
        rest = (c_uint64 * (3 + len(all)))(int(meeting.data.ptr), ended, 0, *all)
        self._places = (c_void_p * 5)(addressof(table), *(addressof(rest) + 8 * i for i in range(4)))
        self._table, self._rest = table, rest

    def go(self, stream: Any, kind: int) -> None:
        self._rest[2] = kind
        how = self._kernel.ptr, self._grid, 1, 1, self._threads, 1, 1, self._shared, stream.ptr
        checked((bindings().cuLaunchCooperativeKernel(*how, addressof(self._places))[0], None))
