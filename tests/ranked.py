"""What test_ranks.py starts under mpiexec: `python ranked.py NAME [ARGUMENT ...] [+ NAME ...]` calls functions below
on every rank, with the same examples. What fails raises, which ends all ranks; the first one prints what was done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path

import numpy as np

import algos  # noqa: E402
import gbgpu as gb  # noqa: E402
from gbgpu import exceptions  # noqa: E402
from gbgpu.device.remote import AWAY  # noqa: E402
from gbgpu.semiring import any_pair, max_min, min_plus, plus_pair, plus_times  # noqa: E402
from gbgpu.trace import counters  # noqa: E402


def say(text: object) -> None:
    if gb.rank() == 0:
        print(text, flush=True)


def everywhere(value: object) -> list:
    """What each rank has."""
    return gb.settings.session().ranks.gathered(value, "a test")


def refused(kind: type[Exception], what: str, work) -> None:
    """work() raises on every rank, and the session goes on."""
    try:
        work()
    except kind as error:
        assert what in str(error), error
        assert everywhere(str(error)) == [str(error)] * len(everywhere(0))
    else:
        raise AssertionError(f"nothing raised {kind}")


def collective() -> None:
    """From here on ranks meet as more than 16 do."""
    vars(gb.distribute.world.world()).pop("meeting", None)
    gb.distribute.world._NEAR = 1
    say("as many")


class Beside:
    """What stands for the way from GPU to GPU (gbgpu/device/nccl.py): buffers of the host."""

    def __init__(self):
        self.moved, self._comm = 0, gb.distribute.world.world().comm

    def leaving(self, buffer):
        return buffer

    def came(self, device, buffer):
        return buffer

    def empty(self, n, dtype):
        return np.empty(n, dtype)

    def swap(self, sent, received):
        requests = [self._comm.Isend(np.ascontiguousarray(buffer).view(np.uint8), rank, 9) for rank, buffer in sent]
        requests += [self._comm.Irecv(buffer.view(np.uint8), rank, 9) for rank, buffer in received]
        for request in requests:
            request.Wait()
        self.moved += len(received)


class Elsewhere:
    """A CPU device whose memory the host does not see: what goes to other ranks is read from it, and put there."""

    kind = "elsewhere"

    def __init__(self, device):
        self.device, self.moved = device, 0

    def get(self, array):
        self.moved += 1
        return array.copy()

    def put(self, array):
        found = self.device.empty(array.size, array.dtype)
        found[:] = array
        return found


def staged(ranks) -> dict[str, Elsewhere]:
    """What ranks carry goes by way of the host from now on."""
    inner, kept = ranks.carried, {}

    def carried(devices, *rest):
        mine = {d: device for d, device in enumerate(devices) if device.kind == "cpu"}
        seen = {d: kept.setdefault(device.name, Elsewhere(device)) for d, device in mine.items()}
        return inner([seen.get(d, device) for d, device in enumerate(devices)], *rest)

    ranks.carried = carried
    return kept


def statements(examples: str, specs: str, *kinds: str) -> None:
    """Random programs of each kind, as python-graphblas carries them out (oracle.py). A set of CPU devices with a + has
    buffers that go as those of GPUs do, with a ! as those of GPUs without NCCL. Between | are the sets of one rank
    after another."""
    import oracle
    import test_statements as t
    from conftest import Devices
    from hypothesis import given, settings
    from programs import programs

    for spec in specs.split(","):
        mine = spec.rstrip("+!").split("|")
        devices = Devices(mine[gb.distribute.world.world().rank % len(mine)])
        devices.start()
        ranks = gb.settings.session().ranks
        beside = ranks._direct = Beside() if spec.endswith("+") else None
        elsewhere = staged(ranks) if spec.endswith("!") else None
        for name in kinds or t.KINDS:
            drawn = programs(t.KINDS[name], most=12, small=name == "matrices of vectors")
            run = given(program=drawn)(lambda program: oracle.Run(program, devices).all())  # noqa: B023
            settings(max_examples=int(examples), derandomize=True, database=None, deadline=None)(run)()
        assert beside is None or beside.moved > 10
        assert elsewhere is None or sum(device.moved for device in elsewhere.values()) > 10
    say(f"{sum(oracle.RAN.values())} statements")


def fixpoints(specs: str, *names: str) -> None:
    """Random bodies of semirings (all if none is named), cycles and windows, as test_fixpoint.py compares them."""
    import test_fixpoint as t

    done = 0
    for spec in specs.split(","):
        gb.init(spec)
        calls = [partial(t.test_random_bodies, None, name) for name in names or t.SEMIRINGS]
        calls += [partial(t.test_windows_change_the_order_and_not_the_result, None, window) for window in ("auto", 1)]
        for call in (*calls, partial(t.test_negative_arcs, None)):
            call()
            done += 1
    say(f"{done} fixpoints")


def algorithms(specs: str, *names: str) -> None:
    """Algorithms of the command, all unless some are named, each by its own verifier; "auto": on objects that live
    whole on the first device."""
    from algos.runs import ALGORITHMS

    for spec in specs.split(","):
        gb.init(spec)
        A = gb.io.rmat(5, 4, seed=1, weights=(1, 9), dtype="INT64")
        for name in names or ALGORITHMS:
            algorithm = ALGORITHMS[name]
            chosen = algorithm.choose(A, {}).values()
            algorithm.verify(A, *chosen, algorithm.run(A, *chosen))
    say(f"{len(names or ALGORITHMS)} algorithms")


def large(spec: str, *graphs: str) -> None:
    """Graphs on which kernels are compiled and edges counted before a direction is chosen, "GRAPH=NAME,NAME": the
    algorithms of these names ("all": of all), each by its own verifier; random statements and loops. Results are those
    of one process with as many devices."""
    from algos.runs import ALGORITHMS

    done = 0
    for told in graphs:
        graph, _, names = told.partition("=")
        wanted = [*ALGORITHMS] if names == "all" else [name for name in names.split(",") if name]
        devices = gb.init(spec).devices
        found = _results(graph, wanted, verified=True)
        if gb.rank() == 0:
            gb.init(f"cpu:{len(devices)}", ranks=False)
            for what, expected in _results(graph, wanted, verified=False).items():
                _equal(found[what], expected, f"{what} of {graph}")
                done += 1
    gb.init(spec)
    say(f"{done} results")


def _graph(name: str) -> gb.Matrix:
    """A file of the demo, or a generated graph with weights: rmat:SCALE, grid:SIDE."""
    kind, _, size = name.partition(":")
    if size:
        given = {"seed": 1, "weights": (1, 9), "dtype": "INT64"}
        return gb.io.rmat(int(size), 8, **given) if kind == "rmat" else gb.io.generate.grid_road(int(size), **given)
    return gb.io.mmread(Path(__file__).parents[1] / "data" / f"{name}.mtx.gz").dup("INT64")


def _results(graph: str, names: list[str], verified: bool) -> dict[str, list]:
    """Of algorithms and of random statements on a graph, what anyone may compare: numbers and arrays."""
    from algos.runs import ALGORITHMS

    A, found = _graph(graph), {}
    for name in names:
        algorithm = ALGORITHMS[name]
        chosen = algorithm.choose(A, {}).values()
        try:
            outcome = algorithm.run(A, *chosen)
        except algos.ConvergenceError as error:
            found[name] = [str(error)]
            continue
        if verified:
            algorithm.verify(A, *chosen, outcome)
        result = () if algorithm.result is None else algorithm.result.of(outcome).to_coo()
        found[name] = [*algorithm.summary(outcome).values(), *result]
    found["fixpoint"] = [array for window in ("auto", None) for array in _widest(A, window)]
    return found | {f"statements {seed}": _random(A, seed) for seed in range(8)}


def _widest(A: gb.Matrix, window: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The widest paths from a vertex."""
    d = gb.Vector(A.dtype, A.nrows)
    d[0] = 99
    with gb.fixpoint(window=window) as it:
        d(gb.binary.max) << max_min(d @ A)
    assert it.converged
    return d.to_coo()


def _random(A: gb.Matrix, seed: int) -> list:
    """What random products with a graph leave, one after the other, or round after round of a loop."""
    random, n = np.random.default_rng(seed), A.nrows
    x, w, reached = gb.Vector.from_dense(np.arange(n)), gb.Vector(int, n), gb.Vector(bool, n)
    q = gb.Vector.from_coo(random.permutation(n)[: n >> random.integers(0, 14)], True, size=n)

    def body() -> None:
        order = np.random.default_rng(seed)
        for kind in order.permutation(5)[:3]:
            if kind == 0:
                reached(~q.S, replace=order.random() < 0.5) << any_pair(q @ A)
            elif kind == 1:
                w("min") << min_plus(x @ A)
            elif kind == 2:
                w(mask=q.S if order.random() < 0.5 else None) << plus_times(A @ x)
            elif kind == 3:
                x("min") << min_plus(w @ A)
            else:
                q(~reached.S, replace=True) << any_pair(A @ q)

    if seed % 2:
        with gb.loop(3):
            body()
    else:
        body()
    return [array for v in (x, w, reached, q) for array in v.to_coo()]


def _equal(found: list, expected: list, what: str) -> None:
    assert len(found) == len(expected), what
    for one, other in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, what
        same = np.allclose(one, other, rtol=1e-6, atol=1e-12) if one.dtype.kind == "f" else np.array_equal(one, other)
        assert same, f"{what}: {one} and {other}"


def direct() -> None:
    """Pushes whose buffers go as those of GPUs do: few entries and many, beside NumPy's."""
    gb.init("cpu:1")
    beside = gb.settings.session().ranks._direct = Beside()
    A = gb.io.rmat(8, 6, seed=1, weights=(1, 9), dtype="INT64")
    (rows, cols, weights), n, far = A.to_coo(), A.nrows, 1 << 40
    lengths = np.full((n, n), far)
    lengths[rows, cols] = weights
    for count in (1, 3, 10, 60, n):
        q = gb.Vector.from_coo(np.arange(n)[:: n // count], np.arange(n)[:: n // count], size=n)
        expected = (np.arange(n)[:: n // count, None] + lengths[:: n // count]).min(axis=0)
        w, reached = gb.Vector(int, n), gb.Vector(bool, n)
        w(direction="push") << min_plus(q @ A)
        reached(direction="push") << any_pair(q @ A)
        assert np.array_equal(w.to_dense(far), np.where(expected < far, expected, far))
        assert np.array_equal(reached.to_dense(False), expected < far)
    assert beside.moved > 5
    say("direct")


def delegates(spec: str) -> None:
    """Products with delegates apart, and the algorithms that ask for them, as of one process on as many devices."""
    from gbgpu.engine import direction

    direction.fewer, found = lambda bytes, plain: True, []
    partition, devices = gb.partition.degree_separated(9), len(gb.init(spec).devices)
    for start, ranks in ((f"cpu:{devices}", False), (spec, None)):
        here = gb.init(start, partition, ranks=ranks)
        A = gb.io.rmat(7, 6, seed=1, weights=(1, 9), dtype="INT64")
        n, moved = A.nrows, 0
        x, one = gb.Vector.from_dense(np.arange(n)), gb.Vector.from_coo(np.arange(0, n, 5), 3, size=n)
        for way in ("push", "pull"):
            for v in (x, one, gb.Vector.from_coo(np.arange(0, n, 3), np.arange(0, n, 3), size=n)):
                for mask in (None, one.S, ~one.S):
                    w = gb.Vector(int, n)
                    with gb.trace() as records:
                        (w(direction=way) if mask is None else w(mask, direction=way)) << min_plus(v @ A)
                    steps = "gather", "gather_hubs", "combine_hubs"
                    told = [record.bytes for record in records if record.step in steps]
                    moved += sum(told) if ranks is False else sum(everywhere(sum(told)))
                    found.append([array.tolist() for array in w.to_coo()])
        assert here.alive and A._store.rowmap.heads.n > 9 and A._store.apart is not None
        tree, scores = algos.bfs(A, 0), algos.pagerank(A, tol=1e-10).ranks
        algos.verify.bfs(A, 0, *tree)
        algos.verify.pagerank(A, scores, tol=1e-9)
        found += [moved, tree.levels.to_dict()]
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    say(f"{moved} bytes")


def session() -> None:
    """Blocks are with their owners, answers with all, files with the first."""
    assert gb.init("cpu:1", ranks=False).ranks is None and gb.rank() == 0
    for own in (1, 2):
        _same_bits(own)
        here = gb.init(f"cpu:{own}")
        ranks, mine = here.ranks, [f"{gb.rank()}/cpu:{d}" for d in range(own)]
        assert everywhere(gb.rank()) == list(range(ranks.size))
        names = [f"{rank}/cpu:{d}" for rank in range(ranks.size) for d in range(own)]
        assert [device.name for device in here.devices] == [device["name"] for device in gb.device_info()] == names
        A = gb.io.rmat(5, 4, seed=1, weights=(1, 9), dtype="INT64")
        x, y = gb.Vector.from_dense(np.arange(A.nrows)), gb.Vector(int, A.nrows)
        for made in (A, x, plus_times(A @ x).new(), plus_times(A @ A).new(), A.T.new()):
            held = [block is not AWAY for block in made._store.blocks]
            assert held == [ranks.here(d) for d in range(len(here.devices))]
            found = everywhere([array.tolist() for array in made.to_coo()])
            assert all(other == found[0] for other in found)
            mine_only = everywhere([array.tolist() for array in made.to_coo(local=True)])
            parts = sorted(entry for part in mine_only for entry in zip(*part, strict=True))
            assert parts == sorted(zip(*found[0], strict=True)) and all(len(part[0]) for part in mine_only)
        if gb.rank() == 0:  # a plan asks nobody
            assert "transpose" in gb.explain(plus_times((A + A).T @ x)) and gb.explain(plus_times(A @ A.T))
        with gb.trace() as records:
            y(direction="pull") << plus_times(A @ x)
        assert {record.device for record in records} - {"host"} == set(mine)
        arrived = {record.device: record.bytes for record in records if record.step == "gather"}
        rows = dict(zip(names, x._store.map.rows, strict=True))
        assert arrived == {name: 8 * (x.size - rows[name]) for name in mine}
        _halo(here, x.size)
        with gb.loop() as it:
            y("min") << min_plus(y @ A)
            it.until(it.index == 5)
        assert (it.how, it.rounds) == ("statements, as the session has several ranks", 6)
        known = algos.betweenness(A, [0, 1, 2])
        if gb.rank() == 0:  # as where its memory is short
            here.made_of.clear()
        assert algos.betweenness(A, [0, 1, 2]).isclose(known)
        drawn = everywhere(A.ss.selectk("random", 1).to_coo()[1].tolist())
        assert drawn == [drawn[0]] * ranks.size
        _raises(A, x)
        _files(A, "A.npz")
        kept = np.arange(100 + gb.rank())  # filtered by each rank alone
        assert algos.predicate_filter(kept, ">", 9, segment=7).tolist() == kept[10:].tolist()
        _values(own)
    _timed()
    say("a session")


def _timed() -> None:
    """All make as many calls, also where one rank alone comes closer to another way of running; the first prints."""
    A, before = gb.io.rmat(5, 4, seed=1), iter(range(1000))

    def call() -> None:
        A.reduce_rowwise().new()
        counters.counted += gb.rank() == 1 and next(before) < 3

    with redirect_stdout(StringIO()) as printed:
        found = gb.timeit(call, seconds=1e-3)
    assert everywhere((found.calls, found.warm_calls)) == [(found.calls, 4)] * len(everywhere(0))
    assert bool(printed.getvalue()) == (gb.rank() == 0)


def _values(own: int) -> None:
    """From the second pull of a matrix on, ranks get the values that their rows read, and no others."""
    here = gb.init(f"cpu:{own}", gb.partition.random(own), balance="off")
    here.kernels.costs = here.kernels.costs._replace(step=0.0, row=0.0)
    A = gb.io.rmat(6, 1, seed=own, weights=(1, 9), dtype="INT64")
    sets, dense = gb.block_sets(A), A.to_dense(fill_value=0)
    for turn in range(3):
        x, w = np.random.default_rng(turn).integers(1, 99, A.nrows), gb.Vector(int, A.nrows)
        with gb.trace() as records:
            w(direction="pull") << plus_times(A @ gb.Vector.from_dense(x))
        assert np.array_equal(w.to_dense(fill_value=0), dense @ x)
        arrived = sum(everywhere(sum(record.bytes for record in records if record.step == "gather")))
        assert arrived == (sets.needed_bytes() if turn else sets.pull_bytes()) > 0


def _same_bits(own: int) -> None:
    """What a deterministic session of one process gives, on as many devices."""
    found = []
    for ranks in (None, False):
        here = gb.init(f"cpu:{own}", deterministic=True, ranks=ranks)
        own = own if here.ranks is None else len(here.devices)
        random = np.random.default_rng(5)
        A = gb.Matrix.from_dense(random.random((90, 90)) * (random.random((90, 90)) < 0.3), missing_value=0)
        made = plus_times(A @ gb.Vector.from_dense(random.random(90))).new()
        found.append((made.to_dense().tobytes(), made.reduce("plus").new().value, made.reduce("any").new().value))
    assert found[0] == found[1]


def _halo(here, n: int) -> None:
    """From the second pull on single values come, where that pays: of a cycle two for each block."""
    costs, here.kernels.costs = here.kernels.costs, here.kernels.costs._replace(byte=1.0)
    A = gb.Matrix.from_coo(np.arange(n).repeat(2), (np.arange(n).repeat(2) + [1, n - 1] * n) % n, 1, nrows=n, ncols=n)
    y, x = gb.Vector(int, n), gb.Vector.from_dense(np.arange(n) ** 2)
    for _ in range(3):
        with gb.trace() as records:
            y(direction="pull") << plus_times(A @ x)
    assert (y.to_dense() == np.roll(np.arange(n) ** 2, 1) + np.roll(np.arange(n) ** 2, -1)).all()
    assert A._store.halo is not None
    assert {record.bytes for record in records if record.step == "gather"} == {16}
    here.kernels.costs = costs


def _raises(A: gb.Matrix, x: gb.Vector) -> None:
    """What all raise alike, all may catch."""
    n = A.nrows
    refused(ValueError, "Duplicate", lambda: gb.Matrix.from_coo([0, 0], [1, 1], [1, 2], nrows=n, ncols=n))
    refused(exceptions.DimensionMismatch, "", lambda: plus_times(A @ gb.Vector(int, n + 1)))
    refused(exceptions.OutOfMemory, "bytes", lambda: gb.Matrix.from_coo([0], [0], [1], nrows=2**50, ncols=1))
    refused(exceptions.NotImplementedException, "links", gb.topology)
    refused(exceptions.InvalidValue, "the same gb.init", lambda: gb.init("cpu:1", deterministic=gb.rank() == 0))
    refused(exceptions.DeviceError, "device string", lambda: gb.init("cpu:1" if gb.rank() else "tpu:1"))
    beyond = gb.Vector.from_dense(np.where(np.arange(n) == n - 1, n, 0))  # one rank's device sees it
    refused(exceptions.IndexOutOfBound, "ids from 0", lambda: x[beyond].new().nvals)
    refused(OSError, "", lambda: gb.io.write("/nowhere/A.gbgpu", A))
    full = gb.Matrix.from_dense(np.ones((n, 2)))
    refused(ZeroDivisionError, "", lambda: full.ss.map_rows(lambda x: x * (1 // gb.rank())))
    for name in ("A.mtx", "A.gbgpu", "A.npz", "A.gr", "A.txt"):
        path = f"{tempfile.gettempdir()}/{gb.rank()}/{name}"
        refused(exceptions.InvalidValue, "the same file to read", lambda path=path: gb.io.read(path))
        refused(exceptions.InvalidValue, "the same file to write", lambda path=path: gb.io.write(path, A))
    assert plus_times(A @ x).new().nvals == (np.diff(A.to_csr()[0]) > 0).sum()


def files(*names: str) -> None:
    """A graph as files, which the first rank writes and all read; and a process that ranks start is none."""
    gb.init("cpu:1")
    child = [sys.executable, "-c", "import gbgpu as gb; print(gb.init('cpu:1'))"]
    assert subprocess.run(child, text=True, capture_output=True, check=True).stdout == "Session(cpu:0)\n"
    _files(gb.io.rmat(5, 4, seed=1, weights=(1, 9), dtype="INT64"), *names)
    say(f"{len(names)} files")


def _files(A: gb.Matrix, *names: str) -> None:
    folder = Path(everywhere(tempfile.mkdtemp() if gb.rank() == 0 else None)[0])
    for name in names:
        gb.io.write(folder / name, A)
        assert (folder / name).exists() and gb.io.read(folder / name).to_coo()[2].sum() == A.to_coo()[2].sum()
    everywhere(None)
    if gb.rank() == 0:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def failing(how: str, at: str = "3") -> None:
    """The last rank fails at one of its statements; the others wait for it."""
    here = gb.init("cpu:1")
    x, last = gb.Vector.from_dense(np.arange(100)), gb.rank() == here.ranks.size - 1
    if how == "iso":  # what each rank says it has reached is of one value on one of them, and goes without values
        here.ranks._direct = Beside()
        A, q, w = gb.io.rmat(6, 4, seed=1), gb.Vector.from_coo(np.arange(0, 64, 5), 1, size=64), gb.Vector(int, 64)
        w(direction="push") << (plus_pair if last else any_pair)[int](q @ A)
    for k in range(10_000):
        if last and k == int(at):
            if how == "raise":
                raise ValueError("boom")
            if how == "exit":
                sys.exit(0)
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "apart":
                x.reduce("plus").new()
            if how == "other":
                x = gb.Vector.from_dense(np.arange(90))
            if how == "caught":
                try:
                    here.over(x._store.map.tasks, lambda task: 1 / 0, 0.0)
                except ZeroDivisionError:
                    pass
        x << x + 1
        (x[[5, 3]].new() if how == "other" else x).to_coo()


def numbers() -> None:
    """As many from each rank, more than are read where all meet, and sums."""
    ranks = gb.init("cpu:1").ranks
    for count in (1, 64, 65, 1000):
        found = ranks.numbers([k * (ranks.rank - 1) for k in range(count)], "a test")
        assert [[*each] for each in found] == [[k * (rank - 1) for k in range(count)] for rank in range(ranks.size)]
    assert ranks.total(np.int64(1 << 60), "a test") == ranks.size << 60
    assert type(ranks.total(np.int64(3), "a test")) is int
    say("numbers")


def moving(*given: str) -> None:
    """The same statements while all rows move before every other one."""
    import test_moving as t

    from gbgpu.engine.session import Session

    rng, run, moves = np.random.default_rng(5), Session._run, []

    def unsettled(session, statement, *more):
        if session.made is None and rng.random() < 0.5:
            moves.append(t.move_all(session, rng))
        return run(session, statement, *more)

    Session._run = unsettled
    statements(*given)
    Session._run = run
    assert sum(moves) > 10


def repartitioning(spec: str) -> None:
    """Rows move among ranks by what a stand-in clock says: to even among all; within each rank where the network is
    too slow. Objects follow, with their transposes; answers stay."""
    import test_repartitioning as t

    made, moved = t.repartitioning.Timed, 0
    t.repartitioning.Timed = lambda matrix, *given: made(matrix, *given[:2], t.Marks(matrix, [1e-3] * 99))
    for far in (False, True):
        here = gb.init(spec, gb.partition.shares(9, *[1] * (len(gb.init(spec).devices) - 1)))
        A, p = gb.io.generate.rmat(15, 4, seed=2, weights=(1, 9), dtype="INT64"), len(here.devices)
        here.kernels.costs = type(here.kernels).costs._replace(byte=1e9 if far else 1e-10)
        dense, x, first = A.to_scipy_sparse(), np.arange(A.ncols), here.maps.of(A.nrows)
        B, v, old = (A > 0).new(), gb.Vector.from_dense(x), first.bounds
        A.T.new()
        assert np.array_equal(plus_times(A.T @ v).new().to_dense(0), dense.T @ x)
        for _ in range(30):
            assert np.array_equal(plus_times(A @ v).new(direction="pull").to_dense(0), dense @ x)
            map = here.maps.of(A.nrows)
            moved, old = moved + (not np.array_equal(map.bounds, old)), map.bounds
        assert A._store.rowmap is v._store.map is map is not first and len({*everywhere(tuple(map.bounds))}) == 1
        work = t.work(A._store)
        for rank in range(here.ranks.size) if far else ():
            mine = [d for d in range(p) if here.ranks.rank_of(d) == rank]
            assert work[mine].max() < 1.12 * work[mine].mean()
            ends = [mine[0], mine[-1] + 1]
            assert np.array_equal(map.bounds[ends], first.bounds[ends])
        assert far == (work.max() > 1.12 * work.mean())
        for way in ("pull", "push"):
            assert np.array_equal(plus_times(A.T @ v).new(direction=way).to_dense(0), dense.T @ x)
            assert np.array_equal(plus_times(B @ v).new(direction=way).to_dense(0), (dense > 0) @ x)
        mine = everywhere([array.tolist() for array in A.to_coo(local=True)])
        parts = sorted(entry for part in mine for entry in zip(*part, strict=True))
        assert parts == sorted(zip(*(array.tolist() for array in A.to_coo()), strict=True))
    say(f"{moved} moves")


if __name__ == "__main__":
    sys.modules["ranked"] = sys.modules["__main__"]
    gb.distribute.ranks._YIELDS = 20  # tests have fewer cores than processes: a rank that waits leaves its core soon
    for call in " ".join(sys.argv[1:]).split(" + "):
        name, *arguments = call.split()
        (globals().get(name) or getattr(import_module("loading"), name))(*arguments)  # which imports hypothesis
