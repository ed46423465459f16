"""Building, generating, reading and writing by several ranks: what test_ranks.py has ranked.py call on every rank.

What one process makes is made first, in a session that each rank has for itself.
"""

from __future__ import annotations

import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import test_fuzz_files as fuzz
from ranked import everywhere, refused, say

import gbgpu as gb
from gbgpu import exceptions
from gbgpu.io import generate

SPLITS = [("cpu:1", None), ("cpu:2", gb.partition.random(1)), ("cpu:2", gb.partition.segments(4)), ("auto", None)]


def bits(made: gb.Matrix | gb.Vector) -> tuple:
    """All there is to an object."""
    return made.shape, made.dtype.name, made.nvals, *(array.tobytes() for array in made.to_coo())


def outcome(work: Callable[[], gb.Matrix]) -> tuple:
    """What work() makes, or raises."""
    try:
        return bits(work())
    except Exception as error:
        return type(error), str(error)


def alike(makes: list[Callable[[], gb.Matrix]], spec: str = "cpu:1", partition: object = None) -> list[tuple]:
    """What ranks make or raise is what one process does; returns it."""
    gb.init(spec, ranks=False)
    expected = [outcome(make) for make in makes]
    gb.init(spec, partition)
    for make, one in zip(makes, expected, strict=True):
        found = everywhere(outcome(make))
        assert found == [one] * len(found), (found, one)
    return expected


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that all ranks see."""
    path = everywhere(tempfile.mkdtemp() if gb.rank() == 0 else None)[0]
    yield Path(path)
    everywhere(None)
    if gb.rank() == 0:
        shutil.rmtree(path)


def written(path: Path, data: bytes) -> Path:
    if gb.rank() == 0:
        path.write_bytes(data)
    everywhere(None)
    return path


def parts() -> None:
    """Objects of parts are those of all entries in the order of ranks, whatever the operator."""
    for spec, partition in SPLITS:
        ranks = gb.init(spec, partition).ranks
        random = np.random.default_rng(1)
        for n, m, count in ((300, 200, 2000), (1, 1, 0), (5, 70, 3), (64 * 130, 64 * 130, 900)):
            i, j = random.integers(0, n, count), random.integers(0, m, count)
            cuts = [0, *sorted(random.integers(0, count + 1, ranks.size - 1).tolist()), count]
            mine = slice(*cuts[gb.rank() : gb.rank() + 2])
            for values, operators in ((random.random(count), ("plus", "second", "minus")), (7, (None,))):
                held = values if operators == (None,) else values[mine]
                for op in operators:
                    shape = {"nrows": n, "ncols": m, "dup_op": op}
                    A, B = gb.Matrix.from_coo(i, j, values, **shape), gb.Matrix.from_coo(
                        i[mine], j[mine], held, **shape, local=True)
                    assert bits(A) == bits(B) and bits(A.T.new()) == bits(B.T.new())
                    x, y = gb.Vector.from_coo(i, values, size=n, dup_op=op), gb.Vector.from_coo(
                        i[mine], held, size=n, dup_op=op, local=True)
                    assert bits(x) == bits(y)
        rank, size = gb.rank(), ranks.size
        assert gb.Matrix.from_coo([rank], [2 * rank], 1, local=True).shape == (size, 2 * size - 1)
        dense = gb.Vector.from_coo(np.arange(rank, 99, size), np.arange(rank, 99, size), local=True)
        assert dense.to_dense().tolist() == list(range(99)) and dense._store.form == "full"
    last = gb.rank() == ranks.size - 1
    for kind, text, work in (
        (exceptions.InvalidValue, "INT8", lambda: gb.Matrix.from_coo([0], [0], [1], "INT8" if last else "FP64", local=True)),
        (exceptions.InvalidValue, "value", lambda: gb.Matrix.from_coo([0], [0], 2 if last else 1, local=True)),
        (exceptions.InvalidValue, "sizes", lambda: gb.Vector.from_coo([0], [0], size=2 if last else 1, local=True)),
        (exceptions.InvalidValue, "dup_op", lambda: gb.Vector.from_coo([0], [0], dup_op="min" if last else "max", local=True)),
        (exceptions.InvalidValue, "as many", lambda: gb.Matrix.from_coo([0, 1] if last else [0], [0], 1, local=True)),
        (exceptions.IndexOutOfBound, "-1", lambda: gb.Matrix.from_coo([-1 if last else 0], [0], 1, local=True)),
        (ValueError, "Duplicate", lambda: gb.Matrix.from_coo([0], [0], [1], local=True)),
        (ValueError, "Duplicate", lambda: gb.Vector.from_coo([0], [1], local=True)),
    ):  # fmt: skip
        refused(kind, text, work)
    say("parts")


def generated() -> None:
    """The graph of a seed is the same on any number of ranks."""
    generate._CHUNK = 1 << 10
    makes: list[Callable[[], gb.Matrix]] = []
    for symmetric in (True, False):
        for weights in (None, (1, 9)):
            more = {"seed": 1, "symmetric": symmetric, "weights": weights}
            makes += [lambda s=scale, more=more: gb.io.rmat(s, 3, **more) for scale in (0, 1, 6)]
            makes += [lambda n=n, more=more: gb.io.uniform(n, 7, **more) for n in (0, 1, 3, 256, 1500)]
    makes += [lambda n=side: gb.io.grid_road(n, 0.6, seed=1, weights=(1, 9)) for side in (0, 1, 2, 3, 20)]
    alike([*makes, lambda: gb.io.rmat(3, 2.5, seed=1)])
    refused(exceptions.OutOfMemory, "vertices", lambda: gb.io.uniform(2**31 + 1, 10**9, seed=1))
    W = generate._Words(3 * 2**30, 5)
    drawn = np.random.Generator(np.random.PCG64(5)).integers(0, 3 * 2**30, 9000, dtype=np.uint64)
    W.before = np.cumsum([0, *np.concatenate([W.counted(share, 3, 9000) for share in range(3)])])
    for lo, hi in ((0, 10), (4000, 9000), (8999, 9000)):
        assert (W.numbers(lo, hi) == drawn[lo:hi]).all()
    say("generated")


def texts(count: str) -> None:
    """Texts, well formed and not, are read or refused as one process does, with the same words."""
    gb.init("cpu:1")
    with folder() as here:
        makes, random = [], np.random.default_rng(7)
        for form, (read, _, samples) in fuzz.FORMS.items():
            drawn = [fuzz.mutated(str(random.choice(samples)), random) for _ in range(int(count))]
            for k, text in enumerate(samples + drawn):
                path = written(here / f"{form}-{k}", text.encode("latin-1"))
                makes.append(lambda read=read, path=path: read(path, limit=fuzz.LIMIT))
        found = alike(makes)
        failed = [what for what in found if isinstance(what[0], type)]
        say(f"{len(found) - len(failed)} texts read, {len({kind for kind, _ in failed})} kinds of errors")
