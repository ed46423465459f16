"""Device strings -> devices and their kernels. A further backend is one row of BACKENDS, one device file and one kernel
file."""

import os
import re
from collections.abc import Callable

from .. import settings
from ..device.base import DeviceSet
from ..errors import DeviceError, NotImplementedException, message
from ..interrupts import imported
from .interface import Kernels

_EXAMPLES = 'such as "auto", "cpu:4", "cuda:0", "cuda:0*3"'


def _cpu(first: int, last: int | None, copies: int, spec: str) -> tuple[DeviceSet, Kernels]:
    """cpu:k is k virtual devices."""
    from ..device.cpu import CpuDevices
    from .cpu import CpuKernels

    if last is not None or copies != 1 or not 1 <= first <= 1024:
        raise DeviceError(message("cpu:k with k from 1 to 1024", repr(spec)))
    return CpuDevices(first), CpuKernels()


def _cuda(first: int, last: int | None, copies: int, spec: str) -> tuple[DeviceSet, Kernels]:
    """cuda:i is a GPU, cuda:i*k are k logical devices on it."""
    cuda = imported("gbgpu.device.cuda")
    last, found = first if last is None else last, cuda.available()
    if last < first or not 1 <= copies <= 64:
        raise DeviceError(message(f"a device string {_EXAMPLES}", repr(spec)))
    if last >= found:
        raise DeviceError(message(f"a GPU that exists ({found} found)", repr(spec), "gb.init('cpu:4') needs none"))
    if last > first:
        raise NotImplementedException(
            f"{spec!r}: several GPUs aren't supported yet. Hint: 'cuda:{first}*{last - first + 1}' is as many on one"
        )
    from .gpu import GpuKernels

    devices = cuda.CudaDevices([(first, copy) for copy in range(copies)])
    return devices, GpuKernels(devices)


def _rehearsal(copies: int) -> tuple[DeviceSet, Kernels]:
    """As many CPU devices as the string names logical ones, which tell as little as GPUs; kernels are noted."""
    from ..device.cpu import CpuDevices
    from .ahead import Rehearsal

    devices = CpuDevices(copies)
    for device in devices.devices:
        device.peek = lambda buffer: None  # type: ignore[method-assign, assignment, return-value]
    return devices, Rehearsal(settings.rehearsal)


BACKENDS: dict[str, Callable[[int, int | None, int, str], tuple[DeviceSet, Kernels]]] = {"cpu": _cpu, "cuda": _cuda}


def open_devices(spec: str) -> tuple[DeviceSet, Kernels]:
    """(device set, kernels) for a device string. Raises DeviceError with the strings that are understood, or with what
    is missing."""
    if not isinstance(spec, str):
        raise TypeError(message(f"a device string {_EXAMPLES}", type(spec).__name__))
    if spec == "auto":
        return open_devices(automatic() if settings.rehearsal is None else "cuda:0")
    match = re.fullmatch(r"([a-z]+):(\d+)(?:-(\d+))?(?:\*(\d+))?", spec)
    if match and match[1] in BACKENDS and settings.rehearsal is not None:
        return _rehearsal(int(match[2]) if match[1] == "cpu" else int(match[4] or 1))
    if match and match[1] in BACKENDS:
        return BACKENDS[match[1]](int(match[2]), None if match[3] is None else int(match[3]), int(match[4] or 1), spec)
    if re.fullmatch(r"(?:(?:cpu|cuda):[\d\-*]+,)+(?:cpu|cuda):[\d\-*]+", spec):
        raise NotImplementedException(
            f"{spec!r}: a list of several sets isn't supported yet. Hint: name one, {_EXAMPLES}"
        )
    raise DeviceError(message(f"a device string {_EXAMPLES}", repr(spec)))


def automatic() -> str:
    """What "auto" means on this machine: a GPU if there is one, else a virtual device for each core."""
    cuda = imported("gbgpu.device.cuda")
    if cuda.available():
        return "cuda:0"
    return f"cpu:{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1}"
