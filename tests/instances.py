"""The kernels that the ordinary random statements use: counted by `test_statements.py`, and compiled beforehand for
GPUs, in parallel and without one:

    python tests/instances.py sm_90

runs the statements on CPU devices that multiply as GPUs do, and compiles what they asked for with as many processes as
there are cores. `make test-gpu` then finds the machine code in the cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

MOST = 300  # kernels of the ordinary statements
USED: dict[tuple, None] = {}  # (kind, spec) of every kernel that a session asked for


def note(session) -> None:
    """Remember the kernels of a session, of whichever devices."""
    for kernels in getattr(session.kernels, "_of", {"": session.kernels}).values():  # of CPUs beside GPUs two backends
        USED.update(dict.fromkeys(kernels._launchers if hasattr(kernels, "_launchers") else kernels._loaded))


def main(arch: str) -> None:
    import pytest

    from gbgpu.kernels.ahead import compile_all, rehearsed

    os.environ["GBGPU_TEST_DEVICES"] = "cpu:1 cpu:3"
    asked = {}
    with rehearsed(asked):
        failed = pytest.main(["-q", "-p", "no:cacheprovider", str(Path(__file__).with_name("test_statements.py"))])
    print(f"{compile_all(asked, arch)} kernels for {arch}")
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
