"""Whatever is called with whatever: it works, or an error of a documented class says why, and nothing is changed."""

from __future__ import annotations

import os
import warnings

import pytest
from hostile import Calls

import gbgpu as gb
from gbgpu.device import cpu

LONG = os.environ.get("GBGPU_TEST_PROFILE") == "long"
SEEDS, CALLS = (range(100), 500) if LONG else (range(4), 150)


@pytest.mark.parametrize("seed", SEEDS)
def test_calls(monkeypatch, seed):
    monkeypatch.setattr(cpu, "host_memory", lambda: (200_000_000, 10**10))  # what asks for more is refused
    calls, wrong = Calls(seed), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            text, found = calls.attempt()
            if found:
                wrong.append(f"{text}\n    {found}")
    assert not wrong, "\n".join(wrong)
    v = gb.Vector.from_coo([1, 2], [3, 4], size=5)
    assert (v + v).new().to_dict() == {1: 6, 2: 8}  # the session goes on
