"""Device strings -> devices and their kernels. A further backend is one row of BACKENDS, one device file and one kernel
file."""

import re
from collections.abc import Callable
from typing import NamedTuple

from .. import settings
from ..device.base import DeviceSet, cores
from ..device.cpu import CpuDevices
from ..errors import DeviceError, message
from ..interrupts import imported
from .cpu import CpuKernels
from .interface import Kernels

_EXAMPLES = 'such as "auto", "cpu:4", "cuda:0", "cuda:0-1", "cuda:0*3", "cuda:0,cpu:2"'


# (which, of how many) processes this is, of those that see the same GPUs, and of those that run on the same cores.
Sharing = tuple[tuple[int, int], tuple[int, int]]
ALONE: Sharing = ((0, 1), (0, 1))


class Part(NamedTuple):
    """A part of a device string: `cuda:0-3*2` has first 0, last 3 and copies 2."""

    kind: str
    first: int
    last: int
    copies: int


def _cpu(parts: list[Part], spec: str) -> tuple[DeviceSet, Kernels]:
    """cpu:k is k virtual devices."""
    if len(parts) > 1 or parts[0].last != parts[0].first or parts[0].copies != 1 or not 1 <= parts[0].first <= 1024:
        raise DeviceError(message("cpu:k with k from 1 to 1024", repr(spec)))
    return CpuDevices(parts[0].first), CpuKernels()


def _cuda(parts: list[Part], spec: str) -> tuple[DeviceSet, Kernels]:
    """cuda:i is a GPU, cuda:i-j are those from i to j, cuda:i*k are k logical devices on one; lists have commas."""
    cuda = imported("gbgpu.device.cuda")
    found = cuda.available()
    # No more of a list than tells that there are not as many.
    named = (range(part.first, min(part.last, max(part.first, found)) + 1) for part in parts)
    gpus = [gpu for part in named for gpu in part]
    if not gpus or len(set(gpus)) < len(gpus) or not all(1 <= part.copies <= 64 for part in parts):
        raise DeviceError(message(f"a device string {_EXAMPLES}, each GPU once", repr(spec)))
    if max(gpus) >= found:
        raise DeviceError(message(f"a GPU that exists ({found} found)", repr(spec), "gb.init('cpu:4') needs none"))
    pairs = [(gpu, i) for part in parts for gpu in range(part.first, part.last + 1) for i in range(part.copies)]
    devices = imported("gbgpu.device.cuda_devices").CudaDevices(pairs)
    return devices, imported("gbgpu.kernels.gpu").GpuKernels(devices)


def _mixed(parts: list[Part], spec: str) -> tuple[DeviceSet, Kernels]:
    """cuda:0,cpu:2 is a GPU, and two virtual CPU devices beside it."""
    gpus, cpus = ([part for part in parts if part.kind == kind] for kind in ("cuda", "cpu"))
    if parts != gpus + cpus:
        raise DeviceError(message("GPUs before CPUs in a device string", repr(spec), "cuda:0,cpu:2"))
    gpu_set, gpu_kernels = _cuda(gpus, spec)
    cpu_set, cpu_kernels = _cpu(cpus, spec)
    devices, kernels = imported("gbgpu.device.mixed"), imported("gbgpu.kernels.mixed")
    return devices.MixedDevices(gpu_set, cpu_set), kernels.MixedKernels(gpu_kernels, cpu_kernels)


def _rehearsal(copies: int) -> tuple[DeviceSet, Kernels]:
    """As many CPU devices as the string names logical ones, which tell as little as GPUs; kernels are noted."""
    devices = CpuDevices(copies)
    for device in devices.devices:
        device.peek = lambda buffer: None  # type: ignore[method-assign, assignment, return-value]
    return devices, imported("gbgpu.kernels.ahead").Rehearsal(settings.rehearsal)


BACKENDS: dict[str, Callable[[list[Part], str], tuple[DeviceSet, Kernels]]] = {"cpu": _cpu, "cuda": _cuda}


def open_devices(spec: str, beside: Sharing = ALONE) -> tuple[DeviceSet, Kernels]:
    """(device set, kernels) for a device string. `beside`: who shares what "auto" takes. Raises DeviceError with the
    strings that are understood, or with what is missing."""
    if not isinstance(spec, str):
        raise TypeError(message(f"a device string {_EXAMPLES}", type(spec).__name__))
    if spec == "auto":
        return open_devices(automatic(*beside) if settings.rehearsal is None else "cuda:0")
    parts = _parsed(spec)
    if settings.rehearsal is not None:
        gpus = sum(part.copies * (part.last - part.first + 1) for part in parts if part.kind == "cuda")
        return _rehearsal(gpus or parts[0].first)
    kinds = {part.kind for part in parts}
    return (_mixed if len(kinds) > 1 else BACKENDS[parts[0].kind])(parts, spec)


def _parsed(spec: str) -> list[Part]:
    """The parts of a device string. A kind holds until another one is named: cuda:0,1."""
    parts: list[Part] = []
    for text in spec.split(","):
        match = re.fullmatch(r"(?:([a-z]+):)?([0-9]+)(?:-([0-9]+))?(?:\*([0-9]+))?", text)
        kind = match and (match[1] or (parts[-1].kind if parts else None))
        if not match or kind not in BACKENDS:
            raise DeviceError(message(f"a device string {_EXAMPLES}", repr(spec)))
        parts.append(Part(kind, int(match[2]), int(match[3] or match[2]), int(match[4] or 1)))
    return parts


def automatic(gpus: tuple[int, int], shared: tuple[int, int]) -> str:
    """What "auto" means on this machine: GPUs like the first one, if there is one, else a virtual device for each core;
    to one of several processes its share, one GPU."""
    cuda = imported("gbgpu.device.cuda")
    if found := cuda.available():
        which, processes = gpus
        return "cuda:" + ",".join(map(str, cuda.alike() if processes == 1 else [which % found]))
    return f"cpu:{max(len(cores()) // shared[1], 1)}"
