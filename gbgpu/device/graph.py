"""Loops that run on one GPU: a CUDA graph with a WHILE node, whose body is what a stream was given while captured.

Needs cuda-bindings, and a driver of CUDA 12.4 or later: `available` says whether they are there.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from ctypes import addressof, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from ..errors import DeviceError

WORDS = 4096  # that a body may count in: the last kernel of a round clears them
_MEETING = 32  # words of a Meeting (resident.cuh)
_PATIENCE = 1e-3  # seconds of asking again and again whether a loop has ended; then it is asked every so often


@cache
def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        return None
    return driver if hasattr(driver, "cuStreamBeginCaptureToGraph") else None


def available() -> bool:
    """Whether graphs can loop here."""
    driver = _driver()
    return driver is not None and int(driver.cuDriverGetVersion()[1]) >= 12040


def _latest(name: str, version: int) -> Any:
    """A function of the driver as CUDA 13 has it, where CUDA 12 has others by the same name."""
    return getattr(_driver(), f"{name}_v{version}", None) or getattr(_driver(), name)


def _checked(result: Any) -> Any:
    error, *found = result
    if int(error):
        raise DeviceError(f"CUDA graph: {error}")
    return found[0] if len(found) == 1 else found


class WhileGraph:
    """`with graph.body(journal, thin):` captures; `launch` runs the body again and again until a kernel in it has told
    `handle` to stop. `with graph.guarded(handle):` inside captures what runs in the rounds in which a kernel before it
    has set a handle of `condition()`."""

    def __init__(self, devices: Sequence[Any]):
        from .cuda import cupy

        self._driver, self._devices, self._cupy = _driver(), devices, cupy
        self._pool, self._stream = cupy.cuda.MemoryPool(), cupy.cuda.Stream(non_blocking=True)
        self._whole = _checked(self._driver.cuGraphCreate(0))
        self._runs: Any = None
        self._parts: list[Any] = []  # what is guarded
        self._resident: Any = None  # one kernel in place of the body
        self.words = devices[0].empty(WORDS, np.int64)  # that the body counts in
        self.used = 0  # of these
        self._pinned = cupy.cuda.alloc_pinned_memory(48)
        # to stop; that blocks of one kernel did not meet; the kind of rounds that it ended in, and their state
        self._told = np.frombuffer(self._pinned, np.int64, 6)
        self._told[:] = 0
        self._context = _checked(self._driver.cuCtxGetCurrent())
        self.handle = _checked(self._driver.cuGraphConditionalHandleCreate(self._whole, self._context, 1, 1))
        kinds = self._driver.CUgraphConditionalNodeType
        _, self._body = self._conditional(self._whole, [], self.handle, kinds.CU_GRAPH_COND_TYPE_WHILE)
        self._inner = cupy.cuda.Stream(non_blocking=True)

    @property
    def abort(self) -> int:
        """Where the host tells a loop to stop: the address of a word."""
        return int(self._pinned.ptr)

    @contextmanager
    def body(self, journal: Any, thin: int) -> Iterator[None]:
        """What the device is given inside becomes the body; nothing runs. Buffers come from the graph's own memory."""
        cuda = self._cupy.cuda
        around = cuda.get_current_stream(), cuda.get_allocator()

        @contextmanager
        def uncaptured() -> Iterator[None]:
            """Work goes where it went before, and is done before the graph is launched."""
            with ExitStack() as devices:
                for device in self._devices:
                    devices.enter_context(device.captured(None, None, 0, nullcontext))
                with cuda.using_allocator(around[1]), around[0]:
                    yield

        with cuda.using_allocator(self._pool.malloc), self._capturing(self._stream, self._body), ExitStack() as devices:
            words = self._counted()
            for device in self._devices:
                devices.enter_context(device.captured(words, journal, thin, uncaptured))
            yield

    @contextmanager
    def _capturing(self, stream: Any, into: Any) -> Iterator[None]:
        """A stream, the current one inside, gives a graph what it is given."""
        driver, relaxed = self._driver, self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with stream:
            begin = driver.cuStreamBeginCaptureToGraph(stream.ptr, into, None, None, 0, relaxed)
            _checked((begin[0], None))
            try:
                yield
            finally:  # a stream that goes on capturing is of no use to anyone
                ended = driver.cuStreamEndCapture(stream.ptr)
            _checked((ended[0], None))

    def condition(self) -> Any:
        """A handle for a part of the body that is guarded. A kernel has to set it in each round."""
        return _checked(self._driver.cuGraphConditionalHandleCreate(self._body, self._context, 0, 0))

    @contextmanager
    def guarded(self, handle: Any) -> Iterator[None]:
        """What the device is given inside the body, and inside this, runs if the handle is set by then."""
        flags = self._driver.CUstreamUpdateCaptureDependencies_flags
        before = _checked(_latest("cuStreamGetCaptureInfo", 3)(self._stream.ptr))[3]
        kinds = self._driver.CUgraphConditionalNodeType
        node, part = self._conditional(self._body, before, handle, kinds.CU_GRAPH_COND_TYPE_IF)
        self._parts.append(part)
        only = int(flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES)  # what the stream is given next comes after the node
        _checked(_latest("cuStreamUpdateCaptureDependencies", 2)(self._stream.ptr, [node], None, 1, only))
        with self._capturing(self._inner, part):
            yield

    def _conditional(self, graph: Any, before: Sequence[Any], handle: Any, kind: Any) -> tuple[Any, Any]:
        """(a new node of a graph, the graph that it runs)."""
        params = self._driver.CUgraphNodeParams()
        params.type = self._driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle, params.conditional.ctx, params.conditional.size = handle, self._context, 1
        params.conditional.type = kind
        node = _checked(_latest("cuGraphAddNode", 2)(graph, list(before), None, len(before), params))
        return node, params.conditional.phGraph_out[0]

    def _counted(self) -> Iterator[Any]:
        for self.used in range(1, WORDS + 1):
            yield self.words[self.used - 1 : self.used]

    def finish(self) -> None:
        self._runs = _checked(self._driver.cuGraphInstantiate(self._whole, 0))

    @property
    def nodes(self) -> int:
        """How much work the body has: nodes, those that stand for what is guarded left out."""
        parts = [self._body, *self._parts]
        return sum(int(_checked(self._driver.cuGraphGetNodes(part))[1]) for part in parts) - len(self._parts)

    def stay(self, kernel: Any, threads: int, blocks: int, program: Any) -> None:
        """One kernel does what the body does: so many blocks a multiprocessor, all at once, until the loop is over."""
        device, values, shared = self._devices[0], program.values, program.shared
        blocks = min(blocks, device.fit(kernel, threads, shared) // device.processors)
        self._meeting = device.empty(_MEETING, np.int64)
        table = (c_uint64 * max(len(values), 1))(*values)
        rest = (c_uint64 * 3)(int(self._meeting.data.ptr), self.abort + 8, 0)
        places = (c_void_p * 4)(addressof(table), *(addressof(rest) + 8 * i for i in range(3)))
        self._resident = kernel, blocks * device.processors, threads, shared, places, (table, rest)

    @property
    def stays(self) -> bool:
        return self._resident is not None

    @property
    def ended(self) -> Any:
        """The kind of rounds that one kernel ended in, and three words of their state."""
        return self._told[2:].tolist()

    def expect(self, kind: int, rounds: int) -> None:
        """Where one kernel begins, and ends if it does not run."""
        self._told[2:] = kind, rounds, 0, 0

    def _go(self, kind: int) -> None:
        if self._resident is None:
            _checked((self._driver.cuGraphLaunch(self._runs, self._stream.ptr)[0], None))
            return
        kernel, grid, threads, shared, places, (_, rest) = self._resident
        rest[2] = kind
        with self._stream:
            self._devices[0].clear(self._meeting)
        how = kernel.ptr, grid, 1, 1, threads, 1, 1, shared, self._stream.ptr, addressof(places)
        _checked((self._driver.cuLaunchCooperativeKernel(*how)[0], None))

    def launch(self, kind: int = 0) -> None:
        """Run the loop to its end, from rounds of a kind on. Ctrl-C stops it within a few rounds."""
        current = self._cupy.cuda.get_current_stream()
        self._devices[0].clear(self.words)  # the rounds clear what they use
        self._stream.wait_event(current.record())
        self._go(kind)
        start = time.perf_counter()
        try:
            while not self._stream.done:
                if time.perf_counter() - start > _PATIENCE:
                    time.sleep(5e-5)
        except BaseException:
            self._told[0] = 1
            raise
        finally:
            self._stream.synchronize()
            lost = self._told[1]
            self._told[:2] = 0
        if lost:
            raise DeviceError(f"{self._devices[0].name}: blocks of a loop did not meet. Hint: GBGPU_RESIDENT=never")

    def __del__(self) -> None:
        if self._runs is not None:
            self._driver.cuGraphExecDestroy(self._runs)
        self._driver.cuGraphDestroy(self._whole)
