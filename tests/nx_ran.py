"""A plugin of pytest: counts the calls that the NetworkX backend carried out, and writes them down.

    python -m pytest -p nx_ran --pyargs networkx

GBGPU_NX_RAN names the file: {"function": calls}; each process of xdist writes one of its own, with its name behind."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from functools import wraps
from pathlib import Path

RAN: Counter[str] = Counter()


def counting(name, function):
    @wraps(function)
    def run(*arguments, **keywords):
        found = function(*arguments, **keywords)  # what it leaves to NetworkX raises NotImplementedError
        RAN[name] += 1
        return found

    return run


def pytest_sessionstart(session):
    from algos import nx

    for name, offer in nx.OFFERS.items():
        nx.OFFERS[name] = replace(offer, run=counting(name, offer.run))


def pytest_collection_modifyitems(items):
    """Of 500 graphs of 20 nodes that each test of one function asks thousands of distances of, a tenth."""
    items[:] = [item for item in items if "use_bounds_on_off" not in item.name or item.callspec.params["seed"] == 0]


def pytest_sessionfinish(session):
    if path := os.environ.get("GBGPU_NX_RAN"):
        Path(path + os.environ.get("PYTEST_XDIST_WORKER", "")).write_text(json.dumps(RAN))
