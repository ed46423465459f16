"""Buffers from GPU to GPU of several processes, by NCCL: launched like kernels, in the order of the current stream, so
that nobody waits for them but what is launched after."""

from collections.abc import Sequence
from typing import Any

from ..interrupts import imported
from .cuda import CUDARuntimeError, cupy


def place(device: Any) -> str | None:
    """Where a GPU sits in its machine; None without NCCL."""
    try:
        usable = _nccl().available
    except (ImportError, CUDARuntimeError):
        usable = False
    return cupy.cuda.runtime.deviceGetPCIBusId(device.gpu) if usable else None


def secret() -> Any:
    """What processes that belong together know."""
    return _nccl().get_unique_id()


def communicator(device: Any, size: int, rank: int, secret: Any) -> Any:
    """Of the GPU of a device with those of the other ranks, which are others."""
    with device.here():
        return _nccl().NcclCommunicator(size, secret, rank)


class Direct:
    """The way from the first GPU of this rank to those of the others."""

    def __init__(self, device: Any, communicator: Any):
        self._device, self._communicator = device, communicator

    def leaving(self, buffer: Any) -> Any:
        """A buffer of one of this rank's devices, where it is sent from."""
        return _on(self._device, buffer)

    def came(self, device: Any, buffer: Any) -> Any:
        """A buffer that was received, on one of this rank's devices."""
        return _on(device, buffer)

    def empty(self, n: int, dtype: Any) -> Any:
        """Room for what comes."""
        return self._device.empty(n, dtype)

    def swap(self, sent: Sequence[tuple[int, Any]], received: Sequence[tuple[int, Any]]) -> None:
        """Send (rank, buffer) and receive into (rank, buffer), each in the order in which the other rank names them."""
        nccl = _nccl()
        with self._device.here():
            stream = cupy.cuda.get_current_stream().ptr
            nccl.groupStart()
            for move, pairs in ((self._communicator.send, sent), (self._communicator.recv, received)):
                for rank, buffer in pairs:
                    move(buffer.data.ptr, buffer.nbytes, nccl.NCCL_UINT8, rank, stream)
            nccl.groupEnd()


def _nccl() -> Any:
    return imported("cupy.cuda.nccl")


def _on(device: Any, buffer: Any) -> Any:
    if buffer.device.id == device.gpu:
        return buffer
    found = device.empty(buffer.size, buffer.dtype)
    device.copy(found, buffer)
    return found
