"""The only importer of CuPy in gbgpu: which GPUs there are, arrays of other libraries, and loaded kernels."""

from collections.abc import Sequence
from ctypes import addressof, c_void_p, create_string_buffer
from struct import Struct
from typing import Any

import numpy as np

from ..trace import counters

try:
    import cupy

    CUDADriverError, CUDARuntimeError = cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError
except Exception:  # not installed, or built for another CUDA: no CUDA devices then
    cupy = None
    CUDADriverError = CUDARuntimeError = OSError


def available() -> int:
    """How many GPUs can be used; 0 without CuPy, a driver or a GPU."""
    if cupy is None:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except CUDARuntimeError:
        return 0


def alike() -> list[int]:
    """The first GPU, and those of its model that read its memory, and it theirs."""
    runtime = cupy.cuda.runtime
    reaches, model = runtime.deviceCanAccessPeer, runtime.getDeviceProperties(0)["name"]
    others = (gpu for gpu in range(1, available()) if reaches(0, gpu) and reaches(gpu, 0))
    return [0, *(gpu for gpu in others if runtime.getDeviceProperties(gpu)["name"] == model)]


def view(array: Any) -> Any:
    """An array of any library that lies on a GPU, as CuPy's: the same memory."""
    return cupy.asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy.from_dlpack(array)


def as_host(array: Any) -> np.ndarray:
    """A copy on the host of an array of any library that lies on a GPU."""
    counters.host_reads += 1
    return cupy.asnumpy(view(array))


def info(gpu: int) -> dict[str, Any]:
    """What a GPU is: name, kind, memory (bytes), arch, processors, l2 and shared (bytes; of a block)."""
    properties = cupy.cuda.runtime.getDeviceProperties(gpu)
    return {
        "name": properties["name"].decode(),
        "kind": "cuda",
        "gpu": gpu,
        "memory": int(properties["totalGlobalMem"]),
        "arch": f"sm_{properties['major']}{properties['minor']}",
        "processors": int(properties["multiProcessorCount"]),
        "l2": int(properties["l2CacheSize"]),
        "shared": int(properties["sharedMemPerBlockOptin"]),
    }


def _form(arg: Any) -> str:
    """The type of an argument, as struct has it."""
    if isinstance(arg, np.generic):
        return arg.dtype.char
    return f"{len(arg)}s" if type(arg) is bytes else "q"


class Kernel:
    """A kernel of a loaded module with room for its arguments, which the driver copies at each launch. CuPy's own way
    to pass them makes an object of each, at twice the time of the launch itself."""

    def __init__(self, function: Any, name: str, text: str, alone: bool):
        self.function = function  # keeps the module loaded
        self.name, self.text = name, text
        self.alone = alone  # one thread is enough
        self.ptr: int = function.ptr
        self.places = 0  # address of the arguments' addresses
        self.most_shared = 48 << 10  # bytes of dynamic shared memory that it may be launched with
        self.fits: dict[tuple[int, int], int] = {}  # blocks a multiprocessor holds, by threads and shared bytes
        self._layout: Struct | None = None

    def fill(self, args: Sequence[Any]) -> None:
        if self._layout is None:
            self._layout = self._laid_out(args)
        array = cupy.ndarray
        self._layout.pack_into(self._room, 0, *[arg.data.ptr if type(arg) is array else arg for arg in args])

    def _laid_out(self, args: Sequence[Any]) -> Struct:
        """The types of the first call's arguments are those of all."""
        codes = list(map(_form, args))
        layout = Struct("".join(codes))
        self._room = create_string_buffer(layout.size)
        first = addressof(self._room)
        ends = [Struct("".join(codes[: i + 1])).size for i in range(len(codes))]
        places = [first + end - Struct(code).size for code, end in zip(codes, ends, strict=True)]
        self._places = (c_void_p * len(places))(*places)
        self.places = addressof(self._places)
        return layout


def works(gpu: int) -> bool:
    """Whether a GPU does what it is given; after some errors it does not until the process ends."""
    try:
        with cupy.cuda.Device(gpu):
            cupy.cuda.runtime.deviceSynchronize()
    except (CUDADriverError, CUDARuntimeError):
        return False
    return True
