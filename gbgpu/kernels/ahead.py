"""GPU kernels compiled before they are needed, also where no GPU is: a program is rehearsed on CPU devices that plan as
GPUs do, and what it asked for is compiled into the on-disk cache."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import settings
from .cpu import CpuKernels
from .gpu import GpuKernels, compile
from .interface import Spec, sums_whole_rows

Asked = dict[tuple[str, Spec], None]


class Rehearsal(CpuKernels):
    """Uncompiled CPU kernels behind a GPU's choices; the instances that are asked for go into `asked`."""

    mxm = GpuKernels.mxm
    costs = GpuKernels.costs
    dense, touches = GpuKernels.dense, CpuKernels.touches

    def __init__(self, asked: Asked) -> None:
        super().__init__(interpret=True)
        self._asked = asked

    def get(self, kind: str, spec: Spec) -> Any:
        self._asked[kind, spec] = None
        if kind == "pull" and sums_whole_rows(spec):  # GPUs take large matrices as a stream
            self._asked.update(dict.fromkeys(("pull_stream", spec._replace(side=side)) for side in ("", "partial")))
        return super().get(kind, spec)


@contextmanager
def rehearsed() -> Iterator[Asked]:
    """Sessions that begin inside are rehearsals, whatever devices they name; gives the instances asked for so far."""
    settings.rehearsal = asked = {}
    try:
        yield asked
    finally:
        settings.rehearsal = None


def compile_all(asked: Asked, arch: str, processes: int | None = None) -> int:
    """Compile instances for an architecture such as "sm_90", as many at once as there are cores; returns how many."""
    jobs = [(kind, spec, arch) for kind, spec in asked]
    count = min(processes or len(os.sched_getaffinity(0)), max(len(jobs), 1))
    global _jobs
    _jobs = jobs  # inherited by the processes: operators of user functions can't be sent
    with multiprocessing.get_context("fork").Pool(count) as pool:
        return len(pool.map(_compile, range(len(jobs)), chunksize=1))


_jobs: list[tuple[str, Spec, str]] = []


def _compile(number: int) -> int:
    return len(compile(*_jobs[number]))
