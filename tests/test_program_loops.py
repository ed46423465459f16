"""Loops of programs (`gb.program`): however they begin, calls give what the functions give as Python."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from test_program import alike, at, graph, kept

import gbgpu as gb
from gbgpu import binary, monoid, replace
from gbgpu.engine import segments
from gbgpu.engine.loop.loans import Loans
from gbgpu.semiring import any_pair, min_first, min_plus, min_secondi, plus_times
from gbgpu.trace import counters

N = 700


def levels(A, v):
    q, level = v.dup(dtype=bool), gb.Vector(int, size=v.size)
    with gb.loop() as it:
        level(q.S) << it.index
        q(~level.S, replace) << any_pair(q @ A)
        it.until(q.nvals == 0)
    return level


def parents(A, v):
    q, parent = gb.Vector(int, size=v.size), gb.Vector(int, size=v.size)
    q(v.S) << gb.indexunary.rowindex(v)
    with gb.loop(4):
        parent(q.S) << q
        q(~parent.S, replace) << min_secondi(q @ A)
    return parent, q


def lengths(A, v):
    """The loop reads `v`, which no statement does."""
    d, q = v.dup(dtype="FP64"), v.dup(dtype="FP64")
    with gb.loop() as it:
        q(~d.S, replace) << min_plus(q @ A)
        q(~v.S, replace) << gb.select.valuelt(q, 40)
        d(q.S) << q
        it.until(q.nvals == 0)
    return d


def powers(A, v):
    x, s = v.dup(dtype="FP64"), gb.Scalar.from_value(0.0)
    x(~v.S) << 0.5
    with gb.loop(6) as it:
        x << plus_times(A @ x)
        x << x / 100
        s << s + 1.5
        it.until(s > 7)
    return x, s


def labels(A, v):
    """The loop changes a vector that is empty when it begins, and reads one of the caller's alone."""
    x, y = gb.indexunary.rowindex(A.reduce_rowwise(monoid.any)).new(), gb.Vector("FP64", size=v.size)
    with gb.loop(3):
        y(binary.plus) << v
        x(binary.min) << min_first(x @ A)
    return x, y


def twice(A, v):
    first = levels(A, v)
    return first, lengths(A, v), levels(A.T, first)


def given(rng: np.random.Generator, n: int, dtype: str, share: float) -> gb.Vector:
    many = max(int(share * n), 1)
    at = rng.choice(n, many, replace=False) if share else []
    values = rng.integers(1, 5, len(at)) if rng.random() < 0.5 else np.ones(len(at))
    return gb.Vector.from_coo(at, values, dtype=dtype, size=n)


class Graph:
    """Does what a CUDA graph of a segment does, at once."""

    def __init__(self, segment, taken):
        self.segment, self.taken, self.launched = segment, taken and weakref.ref(taken), 0
        segment._graph = self

    def launch(self):
        self.launched += 1
        for statement in self.segment._statements:
            self.segment._session.run(statement)
        if self.taken is not None:
            taken = self.taken()
            taken.fill(taken.starts(self.segment._signature))
            for device, flag, *_ in taken.flags:
                device.clear(flag)


@pytest.fixture
def graphs(monkeypatch):
    """On every device, one or several, segments capture what stands for graphs: these."""
    found = []
    monkeypatch.setattr(segments, "graphs", lambda session: True)
    monkeypatch.setattr(
        segments.Segment, "_write_down", lambda self, taken: found.append(Graph(self, taken))
    )
    return found


def farther(A, v, step):
    d = v.dup(dtype="FP64")
    d(~v.S) << 9
    with gb.loop(3):
        d(binary.min) << min_plus(d @ A)
        d << d.apply(binary.plus, right=step)
    return d


def numbers(A) -> None:
    call = gb.program(farther)
    for i, step in enumerate([1.0] * 30 + [2.5] * 3 + [1.0, 4.0, 1.0, 2.5]):
        given = A, at(i, N), gb.Scalar.from_value(step)
        assert alike(call(*given), farther(*given))


def test_a_round_that_reads_another_number_is_not_begun(graphs):
    gb.init("cpu:1")
    numbers(graph(3, N))
    assert any(each.taken is not None and each.launched for each in graphs)


def test_loops_read_the_numbers_of_each_call(devices):
    numbers(graph(3, N))


BODIES = levels, parents, lengths, powers, labels, twice


@pytest.mark.parametrize("body", [parents, powers])  # whose rounds CPU devices take from the first one on
def test_rounds_that_graphs_begin_give_what_python_gives(body, graphs):
    gb.init("cpu:1")
    compare(body, 40)
    assert any(graph.taken is not None and graph.launched for graph in graphs)


def walks(A, v):
    """Statements write all that the loop starts from."""
    x = v.dup(dtype="FP64")
    x(~v.S) << 0.5
    with gb.loop(6):
        x << plus_times(A @ x)
        x << x / 100
    return x


@pytest.mark.parametrize("body", [parents, powers, labels, walks])
def test_graphs_are_captured_when_a_program_is_recorded(body, graphs):
    gb.init("cpu:1")
    A = graph(3, N)
    for i in range(20):
        body(A, at(i, N))  # CPU devices take captured rounds once such loops have run
    call, loop = gb.program(body), []
    for i in range(4):
        v = at(i, N)
        assert alike(call(A, v), body(A, v))
        loop.append((len(graphs), [each.launched for each in graphs]))
    assert loop[0][0] and all(many == loop[0][0] for many, _ in loop)
    assert [launched for _, launched in loop] == [[i] * loop[0][0] for i in range(4)]


@pytest.mark.parametrize("body", [walks, levels])
def test_a_round_that_is_gone_is_not_begun(graphs, body):
    gb.init("cpu:1")
    A, call = graph(3, N), gb.program(body)
    for i in range(40):
        call(A, at(i, N))
    last, loops = graphs[-1], gb.settings.session().loops
    assert last.taken() is not None and last.launched > 3
    before = last.launched
    loops.forget(last.taken())  # as where memory is short
    gc.collect()
    assert last.taken() is None
    for i in range(9):
        assert alike(call(A, at(i, N)), body(A, at(i, N)))
    assert last.launched == before


def test_other_matrices_leave_captures_for_later_ones(graphs):
    gb.init("cpu:1")
    A, call = graph(3, N), gb.program(levels)
    for change in range(2):
        A[0, change] = 3.0
        for i in range(40):
            assert alike(call(A, at(i, N)), levels(A, at(i, N)))
        assert graphs[-1].taken() is not None and graphs[-1].launched > 3


def compare(body, few: int) -> None:
    """Calls from a few vertices, `few` of them before others, and from more."""
    rng, A = np.random.default_rng(5), graph(3, N)
    call, wanted, found = gb.program(body), [], []
    for share in [0.001] * few + [0.3, 0.001, 0.01, 1.0, 0.001, 0.0, 0.01] + [0.001] * 3:
        v = given(rng, N, "FP64" if body is not levels else "BOOL", share)
        wanted.append(body(A, v))
        found.append(call(A, v))
        assert alike(found[-1], wanted[-1])
    assert all(map(alike, found, wanted))  # later calls have changed nothing


@pytest.mark.parametrize("body", BODIES)
def test_calls_give_what_python_gives(devices, body):
    compare(body, 6)


def test_the_graph_begins_the_round(devices):
    A = graph(3, N)
    call = gb.program(levels)
    call(A, at(0, N))
    (program,), captured = kept(), counters.captured
    for i in range(6):
        call(A, at(i, N))
    if len(gb.settings.session().devices) == 1 and gb.settings.session().kernels.kind == "cuda":
        assert program.steps[-1]._round() is not None and counters.captured == captured
    A[0, 0] = 3.0  # another matrix, which that round does not read
    for i in range(4):
        v = given(np.random.default_rng(i), N, "BOOL", 0.01)
        assert alike(call(A, v), levels(A, v))


def test_a_loop_that_breaks_off_leaves_its_round(devices, monkeypatch):
    A = graph(3, N)
    call = gb.program(levels)
    v = [given(np.random.default_rng(i), N, "BOOL", 0.001) for i in range(8)]
    for each in v[:5]:
        call(A, each)

    def broken(self, *_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Loans, "recall", broken)
        patch.setattr("gbgpu.engine.loop.captured.Captured.run", broken)
        try:
            call(A, v[5])
        except KeyboardInterrupt:
            pass
    assert all(alike(call(A, each), levels(A, each)) for each in v[5:])


def test_threads_take_turns(devices):
    A, rng = graph(3, N), np.random.default_rng(2)
    call, wrong = gb.program(levels), []
    given_to = [[given(rng, N, "BOOL", share) for share in (0.001, 0.01, 0.001) * 3] for _ in range(3)]
    wanted = [[levels(A, v) for v in each] for each in given_to]

    def work(me: int) -> None:
        wrong.extend(not alike(call(A, v), one) for v, one in zip(given_to[me], wanted[me], strict=True))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 27 and not any(wrong)
