"""The kernels that the ordinary random statements use: counted by `test_statements.py`, and compiled beforehand for
GPUs, in parallel and without one:

    python tests/instances.py sm_90

runs the statements on CPU devices that multiply as GPUs do, and compiles what they asked for with as many processes as
there are cores. `make test-gpu` then finds the machine code in the cache.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

MOST = 300  # kernels of the ordinary statements
USED: dict[tuple, None] = {}  # (kind, spec) of every kernel that a session asked for


def note(session) -> None:
    """Remember the kernels of a session, of whichever devices."""
    kernels = session.kernels
    USED.update(dict.fromkeys(getattr(kernels, "_launchers", None) or kernels._loaded))


def _compile(number: int) -> int:
    from gbgpu.kernels import gpu

    return len(gpu.compile(*list(USED)[number], _compile.arch))


def compile_all(arch: str) -> int:
    """Compile what USED holds for an architecture; returns how many kernels."""
    _compile.arch = arch
    with multiprocessing.get_context("fork").Pool() as pool:
        return len(pool.map(_compile, range(len(USED)), chunksize=1))


def main(arch: str) -> None:
    import numpy as np
    import pytest

    from gbgpu.engine.mxm import Product
    from gbgpu.kernels import cpu, gpu

    cpu.CpuKernels.mxm, cpu.CpuKernels.costs = gpu.GpuKernels.mxm, gpu.GpuKernels.costs
    Product._marks = lambda self, device, at, width, hashed, operands: device.zeros(width, np.int32)
    os.environ["GBGPU_TEST_DEVICES"] = "cpu:1 cpu:3"
    failed = pytest.main(["-q", "-p", "no:cacheprovider", str(Path(__file__).with_name("test_statements.py"))])
    from instances import compile_all  # the module that the tests filled, not __main__

    print(f"{compile_all(arch)} kernels for {arch}")
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
