"""What test_ranks.py starts under mpiexec: `python ranked.py NAME [EXAMPLES]` runs one of the functions below on every rank,
each of which draws the same examples. They print nothing; what fails raises, and that ends all ranks."""

from __future__ import annotations

import os
import sys

import numpy as np

os.environ.setdefault("GBGPU_TIERED", "0")

import gbgpu as gb  # noqa: E402

SPECS = ("cpu:1", "cpu:2")


def statements(examples: int) -> None:
    """Random programs, as python-graphblas carries them out (oracle.py)."""
    import test_statements as t
    from conftest import Devices
    from hypothesis import given, settings
    from programs import programs

    for spec in SPECS:
        devices = Devices(spec)
        devices.start()
        for kinds in t.KINDS.values():
            small = kinds is t.KINDS["matrices of vectors"]
            run = given(program=programs(kinds, small=small))(lambda program: t.check(program, devices))
            settings(max_examples=examples, derandomize=True, database=None)(run)()


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(int, sys.argv[2:]))
