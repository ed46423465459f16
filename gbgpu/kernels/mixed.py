"""The kernels of CPU devices beside GPUs: each call goes to the backend of the buffers that it is given."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .cpu import CpuKernels
from .gpu import GpuKernels
from .interface import Costs, Layout, Spec


class MixedKernels:
    """Two backends as one. Steps take as long as the slower one's; rows are dealt out by their speed."""

    kind = "mixed"
    atomic, neutral = False, True
    relaxing = GpuKernels.relaxing._replace(most=CpuKernels.relaxing.most)  # nanoseconds of a GPU: one ms
    whole = CpuKernels.whole
    mxm: tuple[str, ...] = tuple(method for method in GpuKernels.mxm if method in CpuKernels.mxm)
    weights: Mapping[str, float] = {"cuda": 1 / GpuKernels.costs.pull_edge, "cpu": 1 / CpuKernels.costs.pull_edge}
    costs = Costs(*map(max, zip(GpuKernels.costs, CpuKernels.costs, strict=True)))

    def __init__(self, gpus: GpuKernels, cpus: CpuKernels):
        self._of: dict[str, Any] = {"cuda": gpus, "cpu": cpus}

    def _with(self, buffer: Any) -> Any:
        return self._of["cpu" if isinstance(buffer, np.ndarray) else "cuda"]

    def get(self, kind: str, spec: Spec) -> Callable[..., None]:
        def call(*args: Any, **options: Any) -> None:
            self._with(args[-1]).get(kind, spec)(*args, **options)  # the last one is always a buffer

        return call

    def ahead(self, steps: Iterable[Any]) -> None:
        self._of["cuda"].ahead(steps)

    def uncut(self, kernel: Any) -> bool:
        return False

    def pull_layout(self, device: Any, block: Any, spec: Spec, x: Any, width: int, masked: bool, fixed: bool) -> Layout:
        found: Layout = self._of[device.kind].pull_layout(device, block, spec, x, width, masked, fixed)
        return found

    reaches, by_use = CpuKernels.reaches, CpuKernels.by_use

    def push_options(self, block: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._with(block.cols).push_options(block)
        return found

    def lists(self, device: Any, n: int, spec: Spec) -> Any:
        return self._of[device.kind].lists(device, n, spec)

    def marks(self, device: Any, block: Any, entries: int, width: int, hashed: bool, plain: bool = False) -> Any:
        return self._of[device.kind].marks(device, block, entries, width, hashed, plain)
