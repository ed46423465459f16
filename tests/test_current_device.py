"""Every piece of work is done while its device is the current one: on several GPUs, what is done elsewhere is not in
the order of the owner's work. Random statements on CPU devices whose arrays say whose they are."""

from __future__ import annotations

import numpy as np
import ownership
import programs as p
import pytest
from checked import verified
from conftest import Devices
from hypothesis import given, note, settings
from oracle import Run
from test_statements import KINDS

import gbgpu as gb
from gbgpu.io import rmat

SHARES = (1, 5, 3)


@pytest.fixture(params=[(f"shares{SHARES}", False), ("random(7)", False), (f"shares{SHARES}", True)], ids=str)
def several(request):
    """Devices whose rows are in the order of ids, and in another one; such as read what others have."""
    partition, direct = request.param
    with ownership.several(partition=eval(f"gb.partition.{partition}"), direct=direct) as current:
        current.partition = partition
        yield current


@settings(max_examples=500 if p.WIDE else 15)
@given(program=p.programs(KINDS["mixed"]))
def test_random_statements(several, program):
    devices = Devices("cpu:3", several.partition)
    note(devices.text())
    Run(program, devices).all()
    assert not several.broken, several.broken[:5]


def test_algorithms(several):
    A = rmat(7, 6, seed=3, weights=(1, 255))
    verified(A)
    assert not several.broken, several.broken[:5]


def test_what_is_done_elsewhere_is_seen(several):
    blocks = gb.Vector.from_dense(np.ones(640))._store.blocks
    assert not several.broken
    np.add(blocks[1].vals, 1)
    blocks[0].vals[:1] = blocks[2].vals[:1]
    blocks[1].vals.astype(int)
    assert len(several.broken) == 4, several.broken  # an assignment is to and from
