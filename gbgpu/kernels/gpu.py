"""The CUDA backend: instances compiled by NVRTC, loaded through the device; gpu_launch.py starts them."""

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from .. import settings
from ..device import nvrtc
from ..device.store import Recent
from ..trace import aside, compiling
from . import gpu_slices, gpu_streams
from .gpu_launch import Launch, launcher, scalar_types
from .gpu_source import fused, source
from .interface import Costs, Layout, Relaxing, Spec, reads, sums_whole_rows
from .lengths import pull_by_rows

__all__ = ["GpuKernels", "compile", "source"]

ABSENT = ("mxm_rows", "mxm_gustavson", "mxm_terms")  # kinds of ways to multiply that GPUs do not offer

# Kinds that most time is spent in: to compile them fast makes some a third slower.
LONG_RUNS = {"pull", "pull_stream", "pull_slices", "push", "write", "ewise", "fold", "apply", "select", "reduce"}
LONG_RUNS |= {"relax", "mxm_dot", "mxm_dense", "mxm_expand"}

# Steps whose Spec is that of the kernel of this name.
_TOLD = {"push", "pull", "drain", "combine", "write", "write_list", "unwrite", "reduce", "fold"}
_TOLD |= {"ewise", "ewise_list", "apply", "select", "select_list"}

# Loaded machine code by GPU, as functions from the name of a kernel to the one object of it; of all sessions.
_modules = Recent()


def compile(kind: str, spec: Spec, arch: str) -> bytes:
    """Machine code of one kernel instance for an architecture such as "sm_90". Needs no GPU."""
    text = source(kind, spec)
    if settings.verbose & 4:
        print(text, file=sys.stderr)
    return nvrtc.compile_cubin(text, arch, fused(kind, spec), kind not in LONG_RUNS)


class GpuKernels:
    """Kernels of the CUDA devices of one set. An instance is compiled for and loaded on each GPU once."""

    kind = "cuda"
    atomic, neutral = False, True
    relaxing = Relaxing(
        most=100_000_000, alone=0, windows=(32.0, 32.0), crowd=1 / 8, itemsize=4, meeting=100_000
    )  # atomics of 4 bytes
    weights: Mapping[str, float] = {}
    mxm: tuple[str, ...] = ("dot", "dense", "sort")
    whole = 1 << 28  # searches gain by a second GPU from there on: RMAT of scale 22 is slower on two, 24 is faster
    costs = Costs(
        push_edge=4e-11, push_first=4e-11, pull_edge=1.2e-11, row=4e-12, byte=5e-13, step=8e-6, link=2.7e-12
    )  # an H200, from its launch and gather rates, and NVLink's

    def __init__(self, devices: Any) -> None:
        self._devices = devices
        self._launchers: dict[tuple[str, Spec], Launch] = {}
        self._scratch: dict[tuple[str, int], Any] = {}

    def uncut(self, kernel: Any) -> bool:
        return True  # a launch

    def get(self, kind: str, spec: Spec) -> Launch:
        launch = self._launchers.get((kind, spec))
        if launch is None:
            launch = self._on_every_gpu(kind, spec)
            if len(self._launchers) >= settings.kept_kernels:  # each lambda makes specs of its own
                for device in self._devices.devices:
                    device.synchronize()  # modules are unloaded with their last launcher
                self._launchers.clear()
            self._launchers[kind, spec] = launch
        return launch

    def ahead(self, steps: Iterable[Any]) -> None:
        self._begin(asked for step in steps for asked in _likely(step))

    def _begin(self, kernels: Iterable[tuple[str, Spec]]) -> None:
        archs = {device.arch for device in self._devices.devices}
        for kind, spec in dict.fromkeys(kernels):
            if (kind, spec) not in self._launchers:
                text = source(kind, spec)
                for arch in archs:
                    nvrtc.begin(text, arch, fused(kind, spec), kind not in LONG_RUNS)

    def pull_layout(self, device: Any, block: Any, spec: Spec, x: Any, width: int, masked: bool, fixed: bool) -> Layout:
        """Streams of entries for sums of whole rows; a thread a row where rows are short; the most used columns first
        where one entry ends a row."""
        plain = pull_by_rows(device, block, spec, x, masked)
        if plain.kernel is not None:
            return plain
        if (far := getattr(x, "far", None)) is not None:
            return plain._replace(kind="pull_far", options={"far": far})
        plain = plain._replace(heavy=gpu_streams.long_rows(device, block))
        if fixed:
            return plain._replace(options={"fixed": True})
        reads_a, reads_x = reads(spec)
        alone = len(self._devices.devices) == 1  # others' values of x come in the order of streams
        if block.whole and not masked and sums_whole_rows(spec) and gpu_streams.pays(device, block):
            held = spec.b.np_type.itemsize if reads_x and x.stride else 0
            if alone and held and x.words is None:
                slices, parts = gpu_slices.slices_of(device, block, width, held, reads_a)
                if slices is not None:
                    return plain._replace(kind="pull_slices", rows=(slices, block.cols, parts, block.stride))
            views = gpu_streams.streams_of(device, block, width, held)
            if views:
                values = gpu_streams.values_of(device, block, views, reads_a)
                if values is None:
                    views, values = block.views[1], [block.vals]
                if (order := getattr(x, "order", None)) is not None:
                    views = (views[0]._replace(order=order), *views[1:])
                exact = spec if x.words is None else spec._replace(partial=True)
                return plain._replace(kind="pull_stream", spec=exact, rows=(views, block.cols, values, block.stride))
        if gpu_streams.is_short(device, block):
            return plain._replace(options={"short": True})
        if block.whole and (spec.iso or spec.op.monoid.is_any) and not (block.stride and reads_a):
            likely = gpu_streams.likely_first(device, block, width)
            if likely is not None:
                rows = block.indptr, likely, block.vals, block.stride
                return plain._replace(rows=rows, options={"first": True})
        return plain

    def reaches(self, block: Any, spec: Spec) -> bool:
        return not spec.iso and reads(spec)[1] and gpu_streams.known_short(block)

    def by_use(self, block: Any, spec: Spec, masked: bool) -> Any:
        if masked or not block.whole or not sums_whole_rows(spec):
            return None
        return gpu_streams.order_of(block)

    def push_options(self, block: Any) -> dict[str, Any]:
        return {"hubs": gpu_streams.has_long_rows(block)}

    def marks(self, device: Any, block: Any, entries: int, width: int, hashed: bool, plain: bool = False) -> Any:
        return device.empty(0, "int64")  # the launcher finds long rows

    def lists(self, device: Any, n: int, spec: Spec) -> tuple[Any, Any, Any, Any]:
        """Two lists each: workers fill one while they empty the other. A vertex may be there more than once."""
        room = 2 * max(2 * n, 1 << 16)
        near, far = (device.empty(room, spec.idx) for _ in range(2))
        return near, far, device.empty(room, spec.out.np_type), device.zeros(16, "int64")

    def scratch(self, purpose: str, device: Any, words: int) -> Any:
        """Zeroed words that a kernel leaves zeroed where it counts; kept, and grown, for one purpose on one GPU."""
        held = self._scratch.get((purpose, device.gpu))
        if held is None or held.size < words:
            with device.uncaptured():
                held = self._scratch[purpose, device.gpu] = device.zeros(words, "int64")
        return held

    def _on_every_gpu(self, kind: str, spec: Spec) -> Launch:
        gpus = {device.gpu: device for device in self._devices.devices}
        with aside("compile"):
            compiling.kernel(kind)
            launchers = {gpu: self._on(device, kind, spec) for gpu, device in gpus.items()}
        if len(launchers) == 1:
            return next(iter(launchers.values()))
        current = self._devices.current_gpu
        return lambda *args, **options: launchers[current()](*args, **options)

    def _on(self, device: Any, kind: str, spec: Spec) -> Launch:
        with device.here():
            cubin = compile(kind, spec, device.arch)
            types = tuple(scalar_types(kind, spec))  # a kernel object lays out its arguments once, for these
            module = _modules.get((device.gpu, cubin, types), lambda: cache(device.load(cubin, source(kind, spec))))
        return launcher(self, device, module, kind, spec)


def _likely(step: Any) -> list[tuple[str, Spec]]:
    """The kernels that a step asks for, as far as its plan tells."""
    kind, spec = step.kind, step.spec
    if step.into.form == "csr":  # steps of matrices are several kernels
        return []
    if kind == "select" and step.into.form == "list":
        kind = "select_list"
    if kind not in _TOLD:
        return []
    return [(kind, spec), *prepared(kind, spec)]


def prepared(kind: str, spec: Spec) -> list[tuple[str, Spec]]:
    """The kernels that take the place of another one for large matrices, whose layout is prepared for them."""
    if kind != "pull" or not sums_whole_rows(spec):
        return []
    streams = [("pull_stream", spec._replace(partial=partial)) for partial in (False, True)]
    return [*streams, ("pull_slices", spec)] if reads(spec)[1] else streams
