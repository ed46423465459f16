"""A loop of one GPU as a CUDA graph with a WHILE node, whose body is what a stream was given while captured.

Needs cuda-bindings, and a driver of CUDA 12.4 or later.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..errors import DeviceError
from ..interrupts import imported


@cache
def bindings() -> Any:
    try:
        driver = imported("cuda.bindings.driver")
    except ImportError:
        return None
    return driver if hasattr(driver, "cuStreamBeginCaptureToGraph") else None


@cache
def available() -> bool:
    """Whether graphs can loop here."""
    driver = bindings()
    return driver is not None and int(driver.cuDriverGetVersion()[1]) >= 12040


def _latest(name: str, version: int) -> Any:
    """A function of the driver as CUDA 13 has it, where CUDA 12 has others by the same name."""
    return getattr(bindings(), f"{name}_v{version}", None) or getattr(bindings(), name)


_lost: list[Any] = []  # streams that go on capturing


def checked(result: Any) -> Any:
    error, *found = result
    if int(error):
        raise DeviceError(f"CUDA: {error}")
    return found[0] if len(found) == 1 else found


class WhileGraph:
    """`with graph.captured():` captures the body, which runs again and again until a kernel in it has told `handle` to
    stop. `with graph.guarded(handle):` inside captures what runs in the rounds in which a kernel before it has set a
    handle of `condition()`."""

    def __init__(self, device: Any):
        cupy = imported("gbgpu.device.cuda").cupy
        self.device, self._driver, self._cupy = device, bindings(), cupy
        self._runs: Any = None
        # Where a capture was broken off by a call that streams can't capture, the driver (CUDA 13.0) has destroyed the
        # body of a conditional node that still has it: who ends the capture around it, or destroys all, crashes.
        self._lost = False
        self._parts: list[Any] = []  # what is guarded
        with device.here():
            self.stream, self._inner = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
            self._whole = checked(self._driver.cuGraphCreate(0))
            self._context = checked(self._driver.cuCtxGetCurrent())
            self.handle = checked(self._driver.cuGraphConditionalHandleCreate(self._whole, self._context, 1, 1))
            kinds = self._driver.CUgraphConditionalNodeType
            _, self._body = self._conditional(self._whole, [], self.handle, kinds.CU_GRAPH_COND_TYPE_WHILE)

    @contextmanager
    def current(self, stream: Any) -> Iterator[None]:
        """A stream is the current one of the GPU."""
        with self.device.here():
            stream.__enter__()
        try:
            yield
        finally:
            with self.device.here():
                stream.__exit__()

    @contextmanager
    def captured(self) -> Iterator[None]:
        with self._capturing(self.stream, self._body):
            yield

    @contextmanager
    def _capturing(self, stream: Any, into: Any) -> Iterator[None]:
        """A stream, the current one inside, gives a graph what it is given."""
        driver, relaxed = self._driver, self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        with self.current(stream):
            with self.device.here():
                begin = driver.cuStreamBeginCaptureToGraph(stream.ptr, into, None, None, 0, relaxed)
                checked((begin[0], None))
            ended = None
            try:
                yield
            finally:  # a stream that goes on capturing is of no use to anyone
                if not self._lost:
                    with self.device.here():
                        ended = driver.cuStreamEndCapture(stream.ptr)[0]
                    if int(ended):
                        self._lost = True
                        _lost.append((stream, self.stream))
            checked((ended, None))

    def condition(self) -> Any:
        """A handle for a part of the body that is guarded. A kernel has to set it in each round."""
        return checked(self._driver.cuGraphConditionalHandleCreate(self._body, self._context, 0, 0))

    @contextmanager
    def guarded(self, handle: Any) -> Iterator[None]:
        """What the device is given inside the body, and inside this, runs if the handle is set by then."""
        flags = self._driver.CUstreamUpdateCaptureDependencies_flags
        before = checked(_latest("cuStreamGetCaptureInfo", 3)(self.stream.ptr))[3]
        kinds = self._driver.CUgraphConditionalNodeType
        node, part = self._conditional(self._body, before, handle, kinds.CU_GRAPH_COND_TYPE_IF)
        self._parts.append(part)
        only = int(flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES)  # what the stream is given next comes after the node
        checked(_latest("cuStreamUpdateCaptureDependencies", 2)(self.stream.ptr, [node], None, 1, only))
        with self._capturing(self._inner, part):
            yield

    def _conditional(self, graph: Any, before: Sequence[Any], handle: Any, kind: Any) -> tuple[Any, Any]:
        """(a new node of a graph, the graph that it runs)."""
        params = self._driver.CUgraphNodeParams()
        params.type = self._driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle, params.conditional.ctx, params.conditional.size = handle, self._context, 1
        params.conditional.type = kind
        node = checked(_latest("cuGraphAddNode", 2)(graph, list(before), None, len(before), params))
        return node, params.conditional.phGraph_out[0]

    @property
    def nodes(self) -> int:
        """How much work the body has: nodes, those that stand for what is guarded left out."""
        parts = [self._body, *self._parts]
        return sum(int(checked(self._driver.cuGraphGetNodes(part))[1]) for part in parts) - len(self._parts)

    def finish(self) -> None:
        """All is captured."""
        with self.device.here():
            self._runs = checked(self._driver.cuGraphInstantiate(self._whole, 0))

    def launch(self) -> None:
        with self.device.here():
            checked((self._driver.cuGraphLaunch(self._runs, self.stream.ptr)[0], None))

    def __del__(self) -> None:
        if self._runs is not None:
            self._driver.cuGraphExecDestroy(self._runs)
        if not self._lost:
            self._driver.cuGraphDestroy(self._whole)
