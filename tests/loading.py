"""Building, generating, reading and writing by several ranks: what test_ranks.py has ranked.py call on every rank.

What one process makes is made first, in a session that each rank has for itself.
"""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import test_fuzz_files as fuzz
from ranked import everywhere, refused, say

import gbgpu as gb
from gbgpu import exceptions
from gbgpu.io import entries as entries_module
from gbgpu.io import files as files_module
from gbgpu.io import generate, shares
from gbgpu.io import text as texts_module

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
            for values, operators in ((random.random(count), ("plus", "minus")), (7, (None,))):
                held = values if operators == (None,) else values[mine]
                for op in operators:
                    shape = {"nrows": n, "ncols": m, "dup_op": op}
                    A, B = gb.Matrix.from_coo(i, j, values, **shape), gb.Matrix.from_coo(
                        i[mine], j[mine], held, **shape, local=True)
                    assert bits(A) == bits(B) and (count != 3 or bits(A.T.new()) == bits(B.T.new()))
                    x, y = gb.Vector.from_coo(i, values, size=n, dup_op=op), gb.Vector.from_coo(
                        i[mine], held, size=n, dup_op=op, local=True)
                    assert bits(x) == bits(y)
        rank, size = gb.rank(), ranks.size
        assert gb.Matrix.from_coo([rank], [2 * rank], 1, local=True).shape == (size, 2 * size - 1)
        dense = gb.Vector.from_coo(np.arange(rank, 99, size), np.arange(rank, 99, size), local=True)
        assert dense.to_dense().tolist() == list(range(99)) and dense._store.form == "full"
    last, matrix, vector = gb.rank() == ranks.size - 1, gb.Matrix.from_coo, gb.Vector.from_coo
    for kind, text, work in (
        (exceptions.InvalidValue, "INT8", lambda: matrix([0], [0], [1], "INT8" if last else "FP64", local=True)),
        (exceptions.InvalidValue, "value", lambda: matrix([0], [0], 2 if last else 1, local=True)),
        (exceptions.InvalidValue, "sizes", lambda: vector([0], [0], size=2 if last else 1, local=True)),
        (exceptions.InvalidValue, "dup_op", lambda: vector([0], [0], dup_op="min" if last else "max", local=True)),
        (ValueError, "as many", lambda: matrix([0, 1] if last else [0], [0], 1, local=True)),
        (exceptions.IndexOutOfBound, "-1", lambda: matrix([-1 if last else 0], [0], 1, local=True)),
        (ValueError, "Duplicate", lambda: matrix([0], [0], [1], local=True)),
        (ValueError, "Duplicate", lambda: vector([0], [1], local=True)),
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


def _lines(random: np.random.Generator, symmetry: str, field: str) -> bytes:
    """A Matrix Market file of some hundred lines, with comments between."""
    keys = np.unique(random.integers(0, 90 * 90, 700))
    i, j = keys // 90, keys % 90
    kept = {"general": i >= 0, "symmetric": i >= j, "skew-symmetric": i > j}[symmetry]
    order = random.permutation(np.flatnonzero(kept))
    values = {"pattern": [""] * len(order), "integer": random.integers(-99, 99, len(order)),
              "real": random.random(len(order))}[field]
    body = [f"{a + 1} {b + 1} {v}" for a, b, v in zip(i[order], j[order], values, strict=True)]
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% c\n90 90 {len(body)}\n"
    return (head + "\n".join(body)).encode()


def together() -> None:
    """Longer files, packed and not, one or several; and what can't be cut."""
    texts_module.CHUNK = 700
    gb.init("cpu:1")
    random, makes = np.random.default_rng(3), []
    with folder() as here:
        for field, symmetry in (("pattern", "symmetric"), ("integer", "skew-symmetric"), ("real", "general")):
            text = _lines(random, symmetry, field)
            for name, data in (("mtx", text), ("mtx.gz", gzip.compress(text)), ("mtx.xz", lzma.compress(text)),
                               ("crlf.mtx", text.replace(b"\n", b"\r\n") + b"\r\n"), ("cut.mtx", text[:-9]),
                               ("cut.mtx.gz", gzip.compress(text)[:-40]), ("more.mtx", text + b"\n1 1 1\n")):
                makes.append(partial(gb.io.read, written(here / f"{field}.{name}", data)))
        pairs = random.integers(0, 40, (600, 2))
        lines = [f"{a} {b} {k}" for k, (a, b) in enumerate(pairs.tolist())]
        edges = written(here / "edges.txt", "\n".join(["# Nodes: 50", *lines]).encode())
        wide = written(here / "wide.txt", "\n".join([*lines, "0 0 2.5", "0 0 -0"]).encode())
        for path in (edges, wide):
            for directed in (True, False):
                for operator in (None, "plus", "first", "minus"):
                    makes.append(partial(gb.io.read, path, dup_op=operator, directed=directed))
        ends = written(here / "ends.txt", b"\r".join(edges.read_bytes().split(b"\n", 300)))  # newlines from there on
        returns = written(here / "returns.txt", "\r".join(lines).encode())
        makes += [partial(gb.io.read, path, dup_op="first") for path in (ends, returns)]
        table = written(here / "table.csv", "\n".join(["a,b,c", *(line.replace(" ", ",") for line in lines)]).encode())
        makes += [partial(gb.io.read, table, dup_op="first"), partial(gb.io.read, table, columns=(0, 1))]
        large = written(here / "large.txt", b"0 1 5\n1 2 300\n")
        makes += [partial(gb.io.read, path, dtype="INT8", dup_op="max") for path in (wide, large)]
        makes.append(partial(gb.io.read, here / "none.mtx"))
        makes.append(lambda: gb.io.read_edgelist(io.BytesIO(b"0 1\n1 2\n")))
        for k, part in enumerate((lines[:200], lines[200:201], [], [line + ".5" for line in lines[201:]])):
            written(here / f"parts.{k}.txt", "\n".join(part).encode())
        for given in (str(here / "parts.*.txt"), [here / f"parts.{k}.txt" for k in range(4)], [wide], "none.*.txt", []):
            makes.append(partial(gb.io.read_edgelist, given, dup_op="second"))
        makes.append(partial(gb.io.read_edgelist, [edges, written(here / "bad.txt", b"0 1 2\n0 x 1\n")], dup_op="min"))
        makes.append(partial(gb.io.read_edgelist, [edges, written(here / "bare.txt", b"0 1\n")], dup_op="min"))
        symmetric = [written(here / f"s.part-{k}.mtx", _lines(random, "symmetric", "integer")) for k in range(3)]
        makes += [partial(gb.io.mmread, symmetric, dup_op="plus"), partial(gb.io.mmread, [symmetric[0], edges])]
        makes.append(partial(gb.io.read, str(here / "s.part-*.mtx"), dup_op="plus"))
        found = alike(makes)
        found += alike(makes, "cpu:2", gb.partition.random(2))
    failed = sorted({kind.__name__ for kind, _ in (each for each in found if isinstance(each[0], type))})
    say(f"together, {' '.join(failed)}")


def binary() -> None:
    """gbgpu's own files, whole, damaged and changed, packed and not."""
    gb.init("cpu:1")
    random, makes = np.random.default_rng(5), []
    with folder() as here:
        for k, what in enumerate(fuzz.objects()):
            data = fuzz.saved(what)
            for turn, (name, changed) in enumerate((
                ("", data), (".gz", gzip.compress(data)), ("", data[:-1]), ("", data + b"x"),
                ("", bytes(fuzz.flipped(bytearray(data), random))), ("", b""),
                *(("", fuzz.sealed(fuzz.rewritten(bytearray(data), random))) for _ in range(6)),
            )):
                makes.append(partial(gb.io.load, written(here / f"{k}-{turn}.gbgpu{name}", changed), limit=fuzz.LIMIT))
        makes.append(lambda: gb.io.load(io.BytesIO(data)))
        found = alike(makes) + alike(makes[:60], "cpu:2")
        alone = alike([lambda: gb.io.load(makes[0].args[0])])
        assert alone and len(found) > 150
        A = gb.io.uniform(30, 3, seed=1, weights=(1, 9))
        gb.io.save(here / "A.gbgpu", A)
        assert A._session.known_symmetric(gb.io.load(here / "A.gbgpu"))
    say("binary")


def room() -> None:
    """No rank holds much more than its share: of one process's peak, and a few numbers a row; nor parses more."""
    gb.init("cpu:1")
    parsed, read = [], entries_module.read_entries
    entries_module.read_entries = lambda *given: parsed.append(read(*given)) or parsed[-1]
    with folder() as here:
        A = gb.io.rmat(13, 16, seed=1, weights=(1, 9), symmetric=False)
        for name in ("A.gbgpu", "A.mtx"):
            gb.io.write(here / name, A if name == "A.gbgpu" else gb.io.rmat(8, 8, seed=1))
        B = gb.io.read(here / "A.mtx")
        assert len(parsed) == 1 and len(parsed[0].rows) < 1.2 * B.nvals / B._session.ranks.size
        makes = {
            "drawn": (1 << 13, lambda: gb.io.rmat(13, 16, seed=1)),
            "drawn uniformly": (30_000, lambda: gb.io.uniform(30_000, 8, seed=1, weights=(1, 9))),
            "loaded": (1 << 13, lambda: gb.io.load(here / "A.gbgpu")),
        }
        for name, (rows, make) in makes.items():
            peaks = []
            for alone in (True, False):
                ranks = gb.init("cpu:1", ranks=False if alone else None).ranks
                tracemalloc.start()
                held = make()
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
                del held
            assert peaks[1] < 1.5 * peaks[0] / ranks.size + 24 * rows + 2**18, (name, gb.rank(), peaks)
    say("room")


class Full(io.RawIOBase):
    """A disk without room."""

    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def writing() -> None:
    """What ranks write is what one process writes, or parts of it; and what can't be written fails alike."""
    texts_module.CHUNK = shares.CHUNK = 300
    gb.init("cpu:1", ranks=False)
    random = np.random.default_rng(2)
    entries = random.integers(0, 60, 300), random.integers(0, 60, 300)
    made = {
        "real": (random.random(300), {}), "ones": (np.ones(300), {}), "small": (random.integers(-9, 9, 300), {}),
        "once": (1, {"symmetry": "symmetric"}), "empty": (None, {}),
    }  # fmt: skip

    def matrix(values: object) -> gb.Matrix:
        if values is None:
            return gb.Matrix(int, 60, 60)
        if not np.isscalar(values):
            return gb.Matrix.from_coo(*entries, values, nrows=60, ncols=60, dup_op="first")
        return gb.io.uniform(60, 3, seed=1)

    with_ranks: dict[str, bytes] = {}
    forms = (("mtx", {}), ("mtx.gz", {}), ("txt", {}), ("gr", {}), ("gbgpu", {}), ("array.mtx", {"form": "array"}))
    for alone in (True, False):
        gb.init("cpu:1" if alone else "cpu:2", ranks=False if alone else None)
        with (nullcontext(Path(tempfile.mkdtemp())) if alone else folder()) as here:
            for kind, (values, options) in made.items():
                A = matrix(values)
                for form, more in forms:
                    if options:
                        more = {"txt": {"directed": False}, "mtx": options, "mtx.gz": options}.get(form, more)
                    path = here / f"{kind}.{form}"
                    try:
                        gb.io.write(path, A, comment="a\nb", **more) if form != "gbgpu" else gb.io.write(path, A)
                        found = path.read_bytes()
                    except exceptions.InvalidValue as error:
                        found = str(error).encode()
                    assert with_ranks.setdefault(path.name, found) == found, (path.name, found, with_ranks[path.name])
                    if alone or form in ("gbgpu", "array.mtx"):
                        continue
                    gb.io.write(path, A, parts=True, **more)
                    pattern = path.with_name(f"{kind}.part-*.{form}")
                    names = everywhere(sorted(file.name for file in here.glob(pattern.name)))[0]
                    assert len(names) == len(everywhere(None)) and "part-0-of-" in names[0]
                    again = {"directed": False} if form == "txt" and options else {}
                    assert bits(gb.io.read(pattern, **again))[2:] == bits(gb.io.read(path, **again))[2:], path
            if not alone:
                stream = io.BytesIO()
                gb.io.mmwrite(stream, matrix(made["real"][0]))
                assert len(stream.getvalue()) > 1000
                refused(OSError, "", partial(gb.io.write, "/nowhere/A.mtx", A))
                refused(OSError, "", partial(gb.io.write, "/nowhere/A.mtx", A, parts=True))
                real, files_module.replaced = files_module.replaced, lambda path: nullcontext(Full())
                refused(OSError, "No space", partial(gb.io.write, here / "A.txt", A))
                files_module.replaced = real
                if gb.rank() == 0:
                    names = [file for file in here.glob("real.part-*.mtx")]
                    names[0].unlink()
                refused(exceptions.InvalidValue, "all parts", lambda: gb.io.read(str(here / "real.part-*.mtx")))
                gb.init("cpu:2", gb.partition.random(3))
                gb.io.save(here / "B.gbgpu", B := matrix(made["real"][0]))
                assert (here / "B.gbgpu").read_bytes() == with_ranks["real.gbgpu"]
                assert bits(gb.io.load(here / "B.gbgpu")) == bits(B)
            else:
                shutil.rmtree(here)
    say("writing")
