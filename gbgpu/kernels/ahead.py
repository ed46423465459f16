"""Kernels compiled before they are needed, into the on-disk cache. Those of GPUs also where no GPU is: a program is
rehearsed on CPU devices that plan as GPUs do, and what it asked for is compiled. For CPUs the program just runs."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakValueDictionary

from .. import settings
from ..device.base import cores
from ..device.store import Recent
from ..modes import Changed
from ..trace import aside, compiling
from . import cpu
from .cpu import CpuKernels
from .gpu import GpuKernels, compile, prepared
from .interface import Spec
from .kernel import CALLER
from .replay import RUNNER

Asked = dict[tuple[str, Spec], None]


class Rehearsal(CpuKernels):
    """Uncompiled CPU kernels behind a GPU's choices; the instances that are asked for go into `asked`."""

    mxm = GpuKernels.mxm
    costs = GpuKernels.costs
    whole = GpuKernels.whole
    relaxing = GpuKernels.relaxing._replace(most=CpuKernels.relaxing.most)

    def __init__(self, asked: Asked) -> None:
        super().__init__(interpret=True)
        self._asked = asked

    def get(self, kind: str, spec: Spec) -> Any:
        self._asked[kind, spec] = None
        self._asked.update(dict.fromkeys(prepared(kind, spec)))
        return super().get(kind, spec)


def rehearsed(asked: Asked) -> Changed:
    """A context in which sessions that begin are rehearsals, whatever devices they name; `asked` gets the instances
    asked for."""
    return Changed(settings.changes, settings, rehearsal=asked)


def compiled() -> Changed:
    """A context in which CPU kernels are compiled, whatever the settings say."""
    return Changed(settings.changes, settings, interpret=False)


def anew() -> Changed:
    """A context in which CPU kernels are asked for as if none had been before."""
    return Changed(settings.changes, cpu, _recent=Recent(), _compiled=WeakValueDictionary())


def anew_in_calls() -> Changed:
    """The same of the function that all kernels are called by."""
    return Changed(settings.changes, CALLER, codes={})


def anew_in_loops() -> Changed:
    """The same of the one that goes through captured loops."""
    return Changed(settings.changes, RUNNER, codes={})


def compile_all(asked: Asked, arch: str) -> int:
    """Compile instances for an architecture such as "sm_90", as many at once as there are cores; returns how many."""
    with aside("compile"), ThreadPoolExecutor(len(cores())) as pool:
        for (kind, _), _ in zip(asked, pool.map(lambda one: compile(one[0], one[1], arch), asked), strict=True):
            compiling.kernel(kind)
    return len(asked)
