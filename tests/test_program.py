"""gb.program: calls that are recorded and run again give what the functions themselves give."""

from __future__ import annotations

import gc
import inspect
import threading
import time
import weakref
from collections import namedtuple
from contextlib import suppress

import numpy as np
import pytest

import algos
import gbgpu as gb
from algos.runs import ALGORITHMS
from gbgpu import binary, monoid, replace, unary
from gbgpu.distribute.blocks import VectorStore
from gbgpu.engine import segments
from gbgpu.engine.loop import device
from gbgpu.engine.loop.loans import Loans
from gbgpu.errors import InvalidValue
from gbgpu.language import program as programs
from gbgpu.semiring import any_pair, min_plus, plus_pair, plus_times

N = 60


def graph(seed: int = 1, n: int = N, dtype: str = "FP64") -> gb.Matrix:
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, n, (2, 5 * n))
    return gb.Matrix.from_coo(i, j, rng.integers(1, 9, 5 * n), nrows=n, ncols=n, dtype=dtype, dup_op="min")


def at(i: int, n: int = N) -> gb.Vector:
    v = gb.Vector(bool, n)
    v[i] = True
    return v


def kept() -> list[programs.Program]:
    return [one for known in gb.settings.session().programs._known.values() for one in known.programs]


def alike(one, two) -> bool:
    """Whether two results are the same, objects and numbers."""
    if isinstance(one, (tuple, list)):
        return type(one) is type(two) and len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, (gb.Vector, gb.Matrix)):
        close = one.dtype.name.startswith("FP")
        return one.isclose(two, rel_tol=1e-6, check_dtype=True) if close else one.isequal(two, check_dtype=True)
    if isinstance(one, gb.Scalar):
        return one.isequal(two, check_dtype=True)
    return type(one) is type(two) and (one == two or one != one and two != two)


class Counted:
    """A function, and how often its Python ran."""

    def __init__(self, function):
        self.plain, self.calls = function, 0
        self.call = gb.program(self._counted)

    def _counted(self, *args, **kwargs):
        self.calls += 1
        return self.plain(*args, **kwargs)


def runs_once(function) -> None:
    """A function of a vector gives what it does as Python, which runs in the first call only."""
    counted = Counted(function)
    for i in range(3):
        v = gb.Vector.from_dense(np.arange(N) + float(i))
        assert alike(counted.call(v), function(v))
    assert counted.calls == 1


def search(A, sources, most=None):
    q, level = sources.dup(), gb.Vector(int, A.nrows)
    with gb.loop(most) as it:
        level(q.S) << it.index
        q(~level.S, replace) << any_pair(q @ A)
        it.until(q.nvals == 0)
    return level


def test_python_runs_once(devices):
    counted, A, B = Counted(search), graph(), graph(2)
    for source in (0, 7, 7, 31):
        for matrix in (A, B):
            assert counted.call(matrix, at(source)).isequal(search(matrix, at(source)), check_dtype=True)
    assert counted.calls == 1 and len(kept()) == 1
    assert counted.call(A, at(3), 2).isequal(search(A, at(3), 2)) and counted.calls == 2  # a number is a part of it
    C = graph(3, N + 1)
    assert counted.call(C, at(3, N + 1)).isequal(search(C, at(3, N + 1))) and counted.calls == 3  # so are sizes
    assert counted.call(A, most=2, sources=at(5)).isequal(search(A, at(5), 2)) and len(kept()) == 4


NAMED = {
    "bfs": lambda A: algos.bfs(A, 3),
    "bfs to a depth": lambda A: algos.bfs_levels(A, 3, 2),
    "sssp": lambda A: algos.sssp(A, 3),
    "tree": lambda A: algos.shortest_path_tree(A, 3),
    "components": algos.connected_components,
    "pagerank": lambda A: algos.pagerank(A, tol=1e-9),
    "pagerank, rounds": lambda A: algos.pagerank(A, tol=0, max_iterations=7, dtype="FP32"),
    "betweenness": lambda A: algos.betweenness(A, [0, 5]),
    "hits": algos.hits,
    "strong": algos.strongly_connected_components,
    "push": lambda A: algos.pagerank_push(A),
}
SYMMETRIC = ("cores", "coloring", "forest", "independent", "labels", "triangles", "clustering")


@pytest.mark.parametrize("name", [*NAMED, *SYMMETRIC])
def test_algorithms(devices, name):
    """Each as a program, on content that changes between calls."""
    plain = NAMED[name] if name in NAMED else ALGORITHMS[name].run
    call = gb.program(lambda A: plain(A))
    given = [graph(seed) for seed in (1, 2, 1)]
    if name in SYMMETRIC:
        given = [gb.Matrix.from_scipy_sparse((G := A.to_scipy_sparse()).maximum(G.T)) for A in given]
    expected = [plain(A) for A in given]
    for A, right in zip(given * 2, expected * 2, strict=True):
        assert alike(call(A), right)


def test_what_python_read_has_to_be_the_same(devices):
    def branches(v):
        w = v.dup()
        if v.nvals > 10:
            w << v.apply(binary.plus, right=v.nvals)
        total = w.reduce(monoid.plus).new()
        return w, (total.value or 0) > 50

    counted = Counted(branches)
    for many in (5, 20, 20, 5, 30):
        for _ in range(2):
            v = gb.Vector.from_coo(np.arange(many), np.arange(many) % 5, size=N)
            assert alike(counted.call(v), branches(v))
    assert counted.calls == 3 and len(kept()) == 3


def test_a_function_that_reads_another_number_each_time_runs_as_python(devices):
    counted = Counted(lambda v: v.reduce(monoid.plus).new().value + 1)
    for i in range(3 * programs.MAX_FAILURES):
        assert counted.call(gb.Vector.from_coo([1], [i], size=3)) == i + 1
    assert counted.calls == 3 * programs.MAX_FAILURES


def test_results_are_the_callers(devices):
    call = gb.program(lambda A, q: (level := search(A, q), level, q.dup(), A))
    A, q = graph(), at(2)
    first = call(A, q)
    for _ in range(2):
        level, same, copy, matrix = found = call(A, q)
        assert alike(found, first) and level is same and matrix is A and level is not first[0] and copy is not q
        level[:] = 5
        copy.clear()
        level(binary.plus) << first[0]
    assert first[0].isequal(search(A, q)) and q.isequal(at(2))
    assert first[0]._session is level._session is gb.settings.session()


def test_results_stay_where_a_loop_lends_its_buffers(devices, monkeypatch):
    """As on GPUs: a bitmap that a loop left is the caller's until the loop runs again, whoever has it by then."""
    lends = lambda self, store: isinstance(store, VectorStore) and store.form == "bitmap" and not store.iso  # noqa: E731
    monkeypatch.setattr(Loans, "_lends", lends)
    monkeypatch.setattr(device, "SOON", 1)
    ring = np.arange(N)
    A = gb.Matrix.from_coo(ring, (ring + 1) % N, True, nrows=N, ncols=N)
    call, plain = gb.program(search), [search(A, at(source)).to_dict() for source in range(5)]
    found = [call(A, at(source)) for source in range(5)]
    for _ in range(2):
        call(A, at(9))
    assert [level.to_dict() for level in found] == plain


def test_all_that_makes_content(devices):
    """Builds, scalars with values, clear, elements, objects that no statement writes."""

    def builds(A, v):
        w = gb.Vector.from_coo([1, 3], [2.0, 4.0], size=N)
        w[5] = 7
        s = gb.Scalar.from_value(2.0)
        s.value = float(s) * 3
        t = gb.Vector("FP64", N)
        t << w
        t.clear()
        B = gb.Matrix.from_coo([0, 1], [1, 2], [1.0, 5.0], nrows=N, ncols=N)
        B[4, 4] = 9
        C = binary.plus(A | B).new()
        x = plus_times(C @ v).new()
        x << x.apply(binary.times, right=s)
        t(x.S) << w
        empty = gb.Vector(bool, N)
        t(~empty.S) << 1
        y = gb.Vector("FP64", N)
        y.build([2], [3.0])
        del y[2]
        y.resize(N + 3)
        return t, x, y, B, s, gb.Vector.from_dense(np.arange(4)), w.ss.is_iso, A.nvals, t.ss.format

    A, B = graph(), graph(1)
    counted = Counted(builds)
    for matrix in (A, B, A):
        v = gb.Vector.from_dense(np.arange(N) + 1.0)
        assert alike(counted.call(matrix, v), builds(matrix, v))
    assert counted.calls == 1 and kept()


def test_scalars_are_arguments(devices):
    def farther(d, A, step):
        with gb.loop(3):
            d2 = min_plus(d @ A).new()
            d2 << d2.apply(binary.plus, right=step)
        return d2

    counted, A = Counted(farther), graph()
    for step in (1.0, 2.5):
        d = gb.Vector.from_coo([0], [0.0], size=N)
        given = d, A, gb.Scalar.from_value(step)
        assert alike(counted.call(*given), farther(*given))
    assert counted.calls == 1


@pytest.mark.parametrize("symmetric", [True, False])
def test_what_is_known_of_a_matrix_later_changes_no_program(devices, symmetric):
    def told(A):
        return A.isequal(A.T), A.reduce_rowwise("plus").new()

    counted, A = Counted(told), graph()
    if symmetric:
        A = binary.plus(A | A.T).new()
    A = A.apply("identity").new("INT64")
    dense = A.to_dense(0)
    for _ in range(3):
        found, sums = counted.call(A)
        assert found == np.array_equal(dense, dense.T) == symmetric
        np.testing.assert_array_equal(sums.to_dense(0), dense.sum(axis=1))
    assert counted.calls == 1


@pytest.mark.parametrize("change", ["v << v.apply(binary.plus, right=1)", "v[3] = 1", "v.clear()", "s.value = 4"])
def test_functions_that_change_what_they_are_given_run_as_python(devices, change):
    def changes(v, s):
        exec(change, {"v": v, "s": s, "binary": binary})
        return v.dup()

    counted = Counted(changes)
    for _ in range(3):
        v, s = gb.Vector.from_dense(np.arange(6)), gb.Scalar.from_value(1)
        w, r = v.dup(), s.dup()
        assert alike((counted.call(v, s), v, s), (changes(w, r), w, r))
    assert counted.calls >= 3 and not kept()


def test_reads_of_objects_from_outside(devices):
    """They have no guard: such a function runs as Python, once a call."""
    outside, s = gb.Vector.from_coo([1, 2], [1, 2], size=5), gb.Scalar.from_value(1)
    functions = [
        lambda v: (v.dup(), outside.nvals),
        lambda v: v.apply(binary.plus, right=s.value).new(),
        lambda v: (v.dup(), outside.to_dense(0).sum().item()),
        lambda v: (v.dup(), outside.ss.is_iso),
        lambda v: binary.plus(v | outside).new(),
        lambda v: [v.dup() for _ in range(int(s))],
    ]
    for plain in functions:
        counted, v = Counted(plain), gb.Vector.from_dense([1, 2, 3, 4, 5])
        for k in range(3):
            outside[3] = k
            s.value = k + 1
            before = counted.calls
            assert alike(counted.call(v), plain(v))
            assert counted.calls - before <= 1 + (k == 0)
        del outside[3]
    assert not kept()


def test_what_is_not_recorded(devices):
    outside, A = gb.Vector.from_dense(np.arange(N) + 0.0), graph()
    given = {
        "an object from outside": (lambda A: plus_times(A @ outside).new(), (A,)),
        "a list": (lambda A, ids: outside[ids].new(), (A, [1, 2])),
        "an array": (lambda A, ids: outside[ids].new(), (A, np.array([1, 2]))),
        "a transpose": (lambda A, T: plus_times(T @ gb.Vector.from_dense(np.ones(N))).new(), (A, A.T)),
        "an iterator": (lambda A: iter([search(A, at(1))]), (A,)),
        "no object": (lambda n: n + 1, (3,)),
        "what is neither": (lambda A: np.arange(3), (A,)),
    }
    for what, (plain, args) in given.items():
        counted = Counted(plain)
        for _ in range(2):
            found, right = counted.call(*args), plain(*args)
            if what == "an iterator":
                found, right = [*found], [*right]
            assert np.array_equal(found, right) if isinstance(right, np.ndarray) else alike(found, right), what
        assert counted.calls >= 2, what
    assert not kept()


def test_in_loops_programs_and_explain(devices):
    A, q = graph(), at(1)
    inner = gb.program(lambda A, v: plus_times(A @ v).new())
    outer = gb.program(lambda A, v: inner(A, inner(A, v)))
    v = gb.Vector.from_dense(np.ones(N))
    expected = plus_times(A @ plus_times(A @ v).new()).new()
    for _ in range(3):
        assert alike(outer(A, v), expected)
    assert len(kept()) == 1
    w = v.dup()
    with gb.loop(2):
        w << inner(A, w)
    assert alike(w, expected)
    counted = Counted(search)
    counted.call(A, q)
    with gb.explain() as text:
        counted.call(A, q)
    assert counted.calls == 2 and "any_pair" in str(text)
    with gb.trace() as records:
        assert counted.call(A, q).isequal(search(A, q))
    assert counted.calls == 2 and {"push", "pull"} & {record.step for record in records}


def test_errors(devices):
    def fails(v, most):
        w = v.apply(binary.plus, right=1).new()
        if w.nvals > 3:
            raise ValueError("too many")
        try:
            w.build([N], [1])
        except gb.exceptions.OutputNotEmpty:
            w << w.apply(binary.plus, right=1)
        return w[most].new().value

    counted = Counted(fails)
    for many in (2, 2, 5, 2, 5, 0, 1):
        v = gb.Vector.from_coo(np.arange(many), 1, size=N)
        if many > 3:
            with pytest.raises(ValueError, match="too many"):
                counted.call(v, 1)
        else:
            expected = error = None
            try:
                expected = fails(v, 1)
            except Exception as raised:
                error = type(raised)
            if error:
                with pytest.raises(error):
                    counted.call(v, 1)
            else:
                assert counted.call(v, 1) == expected
    with pytest.raises(InvalidValue, match="gb.program"):
        gb.program(3)


def test_callbacks_and_numbers_of_rounds(devices):
    told = []

    def rounds(A, q):
        level, w = gb.Vector(int, N), q.dup()
        with gb.loop(on_iteration=told.append) as it:
            level(w.S) << it.index
            w(~level.S, replace) << any_pair(w @ A)
            it.until(w.nvals == 0)
        return level, it.rounds, it.converged

    A, call = graph(), gb.program(rounds)
    for source in (0, 0, 4):
        told.clear()
        expected = rounds(A, at(source))
        right = told[:]
        told.clear()
        assert alike(call(A, at(source)), expected) and told[-len(right) :] == right


def test_arrays_that_the_function_changes_later(devices):
    def builds(v):
        places, values = np.array([1, 2]), np.array([3.0, 4.0])
        u = gb.Vector.from_coo(places, values, size=N)
        places[:], values[:] = [4, 5], 9
        w = v.dup()
        w[places] = values
        dense = np.ones((3, 3))
        B = gb.Matrix.from_dense(dense)
        B[1, 1] = 7
        B << B.apply(binary.plus, right=1)
        places[:], values[:], dense[:] = 0, 0, 0
        return u, w, B

    runs_once(builds)


def test_arrays_in_loops_that_the_function_changes_later(devices):
    def builds(v):
        places, values = np.array([1, 2]), np.array([3.0, 4.0])
        with gb.loop(2):
            u = gb.Vector.from_coo(places, values, size=N)
            u(binary.plus) << v
        values[:] = 9
        return u

    runs_once(builds)


def hidden_by_a_handler(v):
    with suppress(BaseException):
        v[0] = 9
    return v.dup()


def written_by_a_callback(v):
    w, x = gb.Vector("FP64", N), v.dup()
    with gb.loop(2, on_iteration=lambda _: w(binary.plus) << 1.0):
        x << x.apply(binary.plus, right=1)
    return binary.plus(x | w).new()


def an_argument_written_by_a_callback(v):
    x = v.dup()
    with gb.loop(2, on_iteration=lambda _: v << v.apply(unary.exp)):
        x << x.apply(binary.plus, right=1)
    return x


def cleared_and_filled_by_a_callback(v):
    x, y, s = v.dup(), v.dup(), gb.Scalar("FP64")

    def changes(number):
        s.value = s.get(0) + number
        y.clear()

    with gb.loop(2, on_iteration=changes):
        x << x.apply(binary.plus, right=1)
    return x, y, s


def an_argument_cleared_by_a_callback(v):
    x = v.dup()
    with gb.loop(2, on_iteration=lambda _: v.clear()):
        x << x.apply(binary.plus, right=1)
    return x


def written_by_a_thread(v):
    w = v.dup()
    thread = threading.Thread(target=lambda: w << w.apply(binary.plus, right=1))
    thread.start()
    thread.join()
    return w


HIDDEN = hidden_by_a_handler, written_by_a_callback, an_argument_written_by_a_callback, written_by_a_thread
HIDDEN += cleared_and_filled_by_a_callback, an_argument_cleared_by_a_callback


@pytest.mark.parametrize("function", HIDDEN)
def test_changes_in_other_places(devices, function):
    call = gb.program(function)
    for i in range(3):
        v, same = (gb.Vector.from_dense(np.arange(N) + float(i)) for _ in range(2))
        assert alike((call(v), v), (function(same), same))


def test_scalars_that_a_statement_wrote_are_given_values(devices):
    def fills(v):
        s, t = v.reduce(monoid.plus).new(), v.reduce(monoid.max).new()
        s.value = 5
        t.clear()
        return s, t

    counted = Counted(fills)
    for i in range(3):
        v = gb.Vector.from_dense(np.arange(4) + i)
        assert alike(counted.call(v), fills(v))
    assert counted.calls == 1


def test_scalars_that_become_content(first):
    def builds(s):
        x = gb.Vector("FP64", 4)
        x.build([1], s)
        y = gb.Vector.from_dense([1.0, 3.0, 5.0], missing_value=s)
        return x, y, gb.Matrix.from_scalar(s + 1, 2, 2), gb.Vector.from_scalar(s, 3)

    call = gb.program(builds)
    for value in (3.0, 3.0, 5.0, 3.0):
        s = gb.Scalar.from_value(value)
        assert alike(call(s), builds(s))


def test_errors_that_the_function_handles_come_again(devices):
    def handles(v, s):
        w = v.dup()
        try:
            w << v.apply(binary.plus, right=s)
        except gb.exceptions.EmptyObject as error:
            return w, str(error)
        return w, ""

    counted, v = Counted(handles), gb.Vector.from_dense(np.arange(N) + 0.0)
    for value in (None, None, 1.0, 2.0, None):
        s = gb.Scalar("FP64")
        s.value = value
        assert alike(counted.call(v, s), handles(v, s))
    assert counted.calls == 3


def test_what_tells_calls_apart(first):
    v, w = (gb.Vector.from_dense(np.ones(3, np.float32), name=name) for name in "vw")
    same = gb.program(lambda v, w: v is w)
    assert [same(v, w), same(v, v), same(w, v)] == [False, True, False]
    named = gb.program(lambda v: v.dup(name=v.name + " too").name)
    assert [named(v), named(w)] == ["v too", "w too"]
    divided = gb.program(lambda v, x: v.apply(binary.truediv, right=x).new())
    found = [divided(v, x)[0].value for x in (np.float32(0.0), np.float32(-0.0), 0.0, -0.0)]
    assert found == [np.inf, -np.inf] * 2


def test_arguments_that_may_change(first):
    class Scaled(gb.Vector):
        factor = 2.0

        @gb.program
        def scaled(self):
            return self.apply(binary.times, right=self.factor).new()

    class Ranking:
        factor = 2.0

        @gb.program
        def scaled(self, v):
            return v.apply(binary.times, right=self.factor).new()

    ranking, v, subclass = Ranking(), gb.Vector.from_dense([1.0, 2.0]), Scaled("FP64", 2)
    subclass << v
    for factor in (2.0, 3.0):
        ranking.factor = Scaled.factor = factor
        assert ranking.scaled(v)[0].value == factor == subclass.scaled()[0].value
    gone = weakref.ref(ranking)
    del ranking
    assert gone() is None


class Pair(namedtuple("Pair", "one two")):
    def __new__(cls, one):
        return super().__new__(cls, one, 1)


class Several(tuple):
    pass


def test_results_of_other_kinds(first):
    outside = gb.Vector("FP64", 3)
    call = {kind: gb.program(lambda v, kind=kind: kind(v)) for kind in (Pair, lambda v: Several([v]), lambda v: {v: 1})}
    for value in (1.0, 2.0):
        v = gb.Vector.from_dense(np.full(3, value))
        for kind, made in call.items():
            found = made(v)
            assert type(found) is type(kind(v)) and next(iter(found)) is v
    call = gb.program(lambda v: outside)
    for _ in range(2):
        assert call(v) is outside
        outside[1] = 2.0


def test_calls_in_vain(first):
    """An object from outside is found a few times; a program that is right more often than wrong stays."""
    outside = gb.Vector.from_dense([1.0, 2.0])
    counted, v = Counted(lambda v: binary.plus(v | outside).new()), gb.Vector.from_dense([1.0, 2.0])
    many = 3 * programs.MAX_FAILURES
    for _ in range(many):
        counted.call(v)
    assert counted.calls <= many + programs.MAX_FAILURES + 1 and not kept()
    counted = Counted(lambda v: v.reduce(monoid.plus).new().value)
    for i in range(many):
        for _ in range(3):
            assert counted.call(gb.Vector.from_dense([float(i)])) == i
    assert counted.calls == many and len(kept()) == programs.VARIANTS


def test_what_is_called_often_is_kept(first):
    counted, other = Counted(lambda v: v.dup()), gb.program(lambda v, k: v.dup())
    v = gb.Vector.from_dense([1.0, 2.0])
    for k in range(programs.MAX_SIGNATURES + 1):
        counted.call(v)
        other(v, k)
    assert counted.calls == 1 and len(kept()) == programs.MAX_SIGNATURES


def test_threads_and_sessions(devices):
    A, call, wrong = graph(), gb.program(search), []
    expected = [search(A, at(source)) for source in range(6)]

    def many(k):
        for _ in range(5):
            if not call(A, at(k)).isequal(expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=many, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gb.init("cpu:2")
    B = graph()
    assert call(B, at(3)).isequal(search(B, at(3))) and len(kept()) == 1
    with pytest.raises(InvalidValue):
        call(A, at(3))


def test_arguments_are_taken_while_no_other_thread_has_the_session(devices):
    """While a call of another thread runs on the first of several GPUs, objects hold what that one has."""
    call, A, B, q, found = gb.program(search), graph(), graph(2), at(3), []
    expected = [call(A, q).to_dict() for _ in range(2)]
    lock, store = gb.settings.session().lock, A._store
    other = threading.Thread(target=lambda: found.append(call(A, q).to_dict()))
    with lock:
        A._store = B._store
        other.start()
        while not lock.wanted:
            time.sleep(1e-4)
        A._store = store
    other.join()
    assert [*expected, *found] == 3 * expected[:1]


def test_a_session_that_ends_during_a_call(first):
    def ends(v):
        w = v.dup()
        with gb.loop(1, on_iteration=lambda _: gb.init("cpu:2") if last[0] else None):
            w << w.apply(binary.plus, right=1)
        return w

    last, call = [False], gb.program(ends)
    for last[0] in (False, True):
        v = gb.Vector.from_dense(np.ones(3))
        w = call(v)
        assert w._session is v._session
    with pytest.raises(InvalidValue, match="ended session"):
        _ = w.nvals


def test_nothing_is_held(devices):
    call = gb.program(search)
    A = graph()
    for _ in range(2):
        level = call(A, at(1))
    gone = [weakref.ref(A), weakref.ref(A._store), weakref.ref(level._store)]
    del A, level
    gc.collect()  # a matrix and its transpose have each other
    assert [one() for one in gone] == [None] * 3


def test_a_call_that_breaks_off_leaves_nothing(first):
    call = gb.program(lambda v: ((w := v.apply(unary.ainv).new()), w.reduce(monoid.plus).new().value))
    for value in (1.0, 2.0):  # the first program does not fit the second call
        call(gb.Vector.from_dense([value]))
        assert kept() and all(x._store is None for each in kept() for x in each.written.values())


class Graph:
    """Stands for a CUDA graph, which a segment would work on."""

    def __init__(self, segment):
        self.launched, self.buffers = 0, np.zeros(1)
        segment._graph, segment._held = self, self.buffers

    def launch(self):
        self.launched += 1


@pytest.fixture
def captured(monkeypatch):
    """Weak references to what the graphs work on that segments capture."""
    found = []

    def write_down(self, taken):
        found.append(weakref.ref(Graph(self).buffers))

    monkeypatch.setattr(segments.Segment, "_write_down", write_down)
    return found


def segment(A):
    w, v = gb.Vector("FP64", N), gb.Vector.from_dense(np.ones(N))
    return segments.Segment(gb.settings.session(), [w << plus_times(A @ v)], None, set())


def test_graphs_are_captured_some_times_and_used_for_good(first, captured):
    A = graph()
    one = segment(A)
    one()
    for i in range(segments.TRIES - 1):
        A[0, 0] = i + 10  # another matrix now
        one()
        assert captured[i]() is None
    for _ in range(2):
        one()
    assert len(captured) == segments.TRIES and one._graph.launched == 3
    A[0, 0] = 9
    for _ in range(2):
        one()
    assert len(captured) == segments.TRIES and one._graph is None and captured[-1]() is None


def test_graphs_go_with_their_programs(first, captured):
    A = graph()
    one = segment(A)
    one()
    gc.collect()
    gc.disable()  # memory of GPUs is short before Python's garbage is collected
    try:
        gone = weakref.ref(one)
        del one
        assert gone() is None and captured[0]() is None
    finally:
        gc.enable()


def test_signature_keeps_the_names_of_arguments():
    assert [*inspect.signature(algos.connected_components).parameters] == ["A"]
    assert algos.pagerank.__doc__.startswith("PageRank")


def test_parts_of_matrices_are_written_in_each_call(devices):
    def common(A):
        C, D = gb.Matrix(int, N, N), gb.Matrix(int, N, N)
        C(A.S) << plus_pair(A @ A.T)
        C(~A.S, binary.plus) << plus_pair(A @ A)
        D[1:3, :] << C[3:5, :]
        return C, D

    counted, A = Counted(common), graph()
    for change in range(4):
        A[change, 0] = 2.0
        assert alike(counted.call(A), common(A))
    assert counted.calls == 1


def test_what_is_made_of_matrices_alone_is_made_once(devices):
    """As long as they hold the same: entries of them that are set, results that the caller changes, others, none."""

    @gb.program
    def reached(A, v):
        both = binary.plus(A | A.T).new()
        return both, plus_times(v @ both).new()

    def right(A, v):
        both = A.to_dense(0) + A.to_dense(0).T
        return both, v.to_dense(0) @ both

    def check(A, v):
        with gb.trace() as records:
            found = reached(A, v)
        for one, two in zip(found, right(A, v), strict=True):
            assert np.array_equal(one.to_dense(0), two)
        return found[0], sum(record.step == "merge" for record in records)

    A, v = graph(), gb.Vector.from_dense(np.arange(float(N)))
    made = [check(A, v)[1] for _ in range(3)]
    assert made[0] > 0 and made[1:] == [0, 0]
    both, _ = check(A, v)
    both[0, 1] = 77.0
    both.clear()
    for _ in range(2):
        check(A, v)
    for change in (lambda: A.__setitem__((2, 3), 50.0), lambda: A.__delitem__((2, 3)), A.clear):
        change()
        for _ in range(3):
            check(A, v)
    B = graph(seed=5)
    for C in (B, B.dup(), graph(seed=6), B):
        check(C, v)


def test_what_was_made_of_a_matrix_goes_with_it(first):
    @gb.program
    def both(A):
        return binary.plus(A | A.T).new().reduce_scalar(monoid.plus).new()

    A = graph()
    for _ in range(4):
        both(A)
    steps = [step for one in kept() for step in one.steps if isinstance(step, programs.Run) and step._kept]
    assert steps
    known = weakref.ref(steps[0]._kept[1])
    del A
    gc.collect()
    assert known() is None
