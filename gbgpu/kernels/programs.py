"""Which programs have all of their kernels in the cache on disk. The notes lie there too, and count for the same
compiler and the same processor or GPUs."""

from collections.abc import Sequence
from typing import Any

from ..device import store
from .kernel import compiler_and_processor


def note(devices: Sequence[Any], program: str) -> None:
    """All kernels that `program` needs on such devices were compiled."""
    if not noted(devices, program):
        store.put(*_place(devices, program), b"compiled")


def noted(devices: Sequence[Any], program: str) -> bool:
    """Whether that was noted in this cache."""
    return store.get(*_place(devices, program)) is not None


def _place(devices: Sequence[Any], program: str) -> tuple[str, str]:
    """The part of the store and the name of a note, which begins with the program's."""
    kinds = sorted({(device.kind, str(getattr(device, "arch", ""))) for device in devices})
    return "cpu", f"{program}-{store.code_name(repr((kinds, compiler_and_processor())))}"


__all__ = ["note", "noted"]
