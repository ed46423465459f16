"""`gb.loop`: a body recorded once does what the same statements do when Python repeats them."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from threading import Thread

import assignments as a
import numpy as np
import programs as p
import pytest
import statements as s
from hypothesis import given, note, settings
from hypothesis import strategies as st
from oracle import REFUSALS, namespace, read, same

import gbgpu as gb
from gbgpu import binary, monoid, replace
from gbgpu.engine import loop as loops
from gbgpu.engine.loop import single_device
from gbgpu.semiring import any_pair, min_plus, plus_times

KINDS = [s.vector_product, s.mxm, s.elementwise, s.union, s.chain, s.infix, s.broadcast, s.in_place, s.unary, s.bound]
KINDS += [s.select, s.select_inside, s.reduce, s.aggregate, s.inner, a.assign, a.assign_within, a.assign_line]
KINDS += [a.assign_element, a.copy, a.extract, a.line, a.element, s.outer, a.diag, a.setdiag]
GUARDS = ["", "", "", "it.index % 2 == 0", "(it.index * 3) % 4 < 2", "loop 2"]


def recorded(space: dict, body: list[tuple[str, str]], rounds: int) -> str:
    with gb.loop() as it:
        for guard, text in body:
            with it.when(eval(guard)) if "it" in guard else gb.loop(2) if guard else nullcontext():
                exec(text, space)
        it.until(it.index == rounds - 1)
    assert it.rounds == rounds and it.converged
    return it.how


def unrolled(space: dict, body: list[tuple[str, str]], rounds: int) -> None:
    class it:
        index = 0

    for it.index in range(rounds):
        for guard, text in body:
            for _ in range(2 if guard == "loop 2" else 1 if "it" not in guard or eval(guard) else 0):
                exec(text, space)


def certain(program: p.Program) -> list[p.Statement]:
    """Statements of a program that give the same each time and everywhere: `any` may take another term."""
    return [each for each in program.statements if each.check != "any"]


def agree(
    program: p.Program, body: list[tuple[str, str]], rounds: int, rtol: float = 0.0, matrices: dict | None = None
) -> str:
    """Recorded and unrolled give the same, or the same error. Returns what ran the recorded loop. `matrices`: objects
    that both take."""
    ours, theirs = (namespace(gb, program) | (matrices or {}) for _ in range(2))
    try:
        unrolled(theirs, body, rounds)
    except REFUSALS as error:
        with pytest.raises(type(error)):
            recorded(ours, body, rounds)
        return "error"
    try:
        how = recorded(ours, body, rounds)
    except REFUSALS as error:  # what is refused, in a part that no round runs
        with pytest.raises(type(error)):
            unrolled(theirs, [("", text) for _, text in body], 1)
        return "error"
    for key in program.contents:
        mine, other = read(ours[key.name], key), read(theirs[key.name], key)
        assert mine[0] == other[0] and np.array_equal(mine[1], other[1]), key
        assert same(mine[2], other[2]).all() or rtol and np.allclose(mine[2], other[2], rtol, equal_nan=True), key
    return how


def test_random_bodies(devices):
    hows = []

    @settings(max_examples=1500 if p.WIDE else 20)
    @given(data=st.data())
    def run(data):
        program = data.draw(p.programs(KINDS, most=5, small=True))
        chosen = certain(program) if "cuda" in devices.spec else program.statements  # CPUs take the same each time
        body = [(data.draw(st.sampled_from(GUARDS)), statement.text()) for statement in chosen]
        rounds = data.draw(st.integers(1, 3))
        note(f"{devices.text()} {rounds} rounds of {body}")
        hows.append(agree(program, body, rounds))

    run()
    assert hows.count("error") < len(hows) / 2


class Alone:
    """A loop of several devices that goes on, and back again, on the first one alone."""

    known = False

    def __init__(self, session, loop):
        self.single, self.rounds = single_device.SingleDevice(session, loop), 0

    def advance(self) -> bool:
        self.rounds += 1
        if self.rounds == 2:
            self.single.enter()
            self.single.leave()
            self.single.enter()
        return False

    def close(self) -> None:
        if self.single.entered:
            self.single.leave()


@settings(max_examples=1000 if p.WIDE else 20)
@given(data=st.data())
def test_random_bodies_on_one_of_several_devices(data):
    gb.init("cpu:3", partition=gb.partition.shares(1, 5, 3))
    kinds = [kind for kind in KINDS if kind not in (s.mxm, s.outer, a.diag, a.setdiag)]
    program = data.draw(p.programs(kinds, most=5, small=True))
    body = [("", each.text()) for each in certain(program) if len(each.target.space) < 2]
    with pytest.MonkeyPatch.context() as patch:
        of = lambda session, loop: Alone(session, loop) if not loop.has_callback else None  # noqa: E731
        patch.setattr(loops.DeviceLoop, "of", of)
        for rounds in (2, 3) if body else ():
            note(f"{rounds} rounds of {body}")
            agree(program, body, rounds, 1e-5)  # sums of floats on another number of devices
    assert not gb.settings.session().maps.alone


def test_what_is_cleared_on_one_of_several_devices(monkeypatch):
    gb.init("cpu:3", partition=gb.partition.shares(1, 5, 3))
    monkeypatch.setattr(loops.DeviceLoop, "of", Alone)
    v, ids, never = gb.Vector.from_dense([1, 2, 3, 4]), gb.Vector.from_dense([2, 0, 2]), gb.Vector.from_dense([1, 1, 3])
    with gb.loop(5) as it:
        v(binary.plus)[ids] << 5
        with it.when(it.index == 2):
            ids.clear()
        with it.when(it.index == 7):
            never.clear()
    assert v.to_dict() == {0: 16, 1: 2, 2: 33, 3: 4} and ids.to_dict() == {} and never.nvals == 3


def test_a_matrix_on_one_device_is_the_same():
    gb.init("cpu:3", partition=gb.partition.shares(1, 5, 3))
    A = gb.io.rmat(8, 6, seed=3, weights=(1, 255))
    x = gb.Vector.from_dense(np.arange(256.0))
    expected = [plus_times(A @ x).new().to_dict(), plus_times(x @ A).new().to_dict()]
    store, whole = A._store, A._session.replicas.of(A._store)
    assert A._session.replicas.of(store) is whole and whole.rowmap.p == 1 and whole.lengths == (A.nvals,)
    A._store = whole
    assert [plus_times(A @ x).new().to_dict(), plus_times(x @ A).new().to_dict()] == expected
    A._store = store


def graph(n: int = 60, m: int = 150):
    rng = np.random.default_rng(4)
    i, j = rng.integers(0, n, (2, m))
    return gb.Matrix.from_coo(i, j, rng.integers(1, 9, m), nrows=n, ncols=n, dup_op="first")


def test_levels_of_a_search(devices):
    A = graph()
    level, q = gb.Vector(int, 60), gb.Vector(bool, 60)
    q[3] = True
    with gb.loop() as it:
        level(q.S) << it.index
        q(~level.S, replace) << any_pair(q @ A)
        it.until(q.nvals == 0)
    expected, frontier, depth = {}, {3}, 0
    i, j, _ = A.to_coo()
    while frontier:
        expected |= dict.fromkeys(frontier, depth)
        frontier = {int(b) for a, b in zip(i, j, strict=True) if a in frontier} - set(expected)
        depth += 1
    assert level.to_dict() == expected and it.rounds == depth and it.converged


def test_temporaries_scalars_and_what_is_made_inside(devices):
    A, d = graph(), gb.Vector(int, 60)
    d[0] = 0
    total, best = gb.Scalar(int), gb.Scalar.from_value(10**6)
    with gb.loop(max_iterations=40) as it:
        new = min_plus(d @ A).new()
        seen = gb.Vector(bool, 60)  # empty in each round
        seen(new.S) << True
        new(~d.S) << new
        before = d.dup()
        d(binary.min) << new
        total << d.reduce()
        best << best - 1
        it.until(binary.isne(before & d).reduce("lor") == False)  # noqa: E712
        it.until(seen.nvals == -1)
    check, rounds = gb.Vector(int, 60), 0
    check[0] = 0
    while True:
        before, rounds = check.dup(), rounds + 1
        check(binary.min) << min_plus(check @ A)
        if not binary.isne(before & check).new().reduce("lor").new().value:
            break
    assert d.isequal(check) and total.value == check.reduce().new().value
    assert it.rounds == rounds and best.value == 10**6 - rounds


CONDITIONS = [
    "v.nvals > 2", "v.nvals == it.index", "(s + 1) * 2 > 9", "s == 3", "s != t", "abs(-s) >= t", "v[1] == 7",
    "s.value < 4",
    "v.get(0, 5) == 5", "v.get(1) > 6", "v.reduce('max') == 9", "gb.agg.mean(v) > 7.9", "v.is_empty", "s.nvals == 1",
    "none.nvals == 0", "none.get(2) == 2", "~(s < 2)", "(s > 1) & (t > 1)", "(s > 5) | (t < 2)", "(u @ v) > 3",
    "s % 2 == 1", "binary.max(s | t) == 3", "(v * u).nvals == 2", "s.select('>', 2).nvals == 1", "A.nvals == 3",
    "A[0, 1] == 2", "A.T.nvals == 3", "A.reduce_scalar() == 9",
    "((s > 5) & (t > 1)) | (t < 2)", "(s > 2) & ((t > 2) | ~(s < 2))", "(s > 2) ^ (t > 1) | (t > 2) & (s < 0)",
    "it.index + s > 3", "v.isequal is None or s == 3",
]  # fmt: skip


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_mean_what_they_mean_outside(devices, text):
    space = {"gb": gb, "binary": binary, "A": gb.Matrix.from_coo([0, 1, 3], [1, 2, 0], [2, 3, 4], nrows=4, ncols=4)}
    space |= {"v": gb.Vector.from_coo([1, 2, 3], [7, 8, 9], size=4), "u": gb.Vector.from_coo([1, 3], [1, 1], size=4)}
    space |= {"s": gb.Scalar.from_value(3), "t": gb.Scalar.from_value(1.5), "none": gb.Scalar(int)}
    with gb.loop(2) as it:
        met = gb.Scalar(bool)
        met << False
        with it.when(eval(text, space | {"it": it})):
            met << True
        it.until(it.index == 0)

    class now:
        index = 0

    expected = eval(text, space | {"it": now})
    assert met.value == bool(expected) and it.rounds == 1


MIXTURES = [
    "(a & b) | c", "a & (b | c)", "a | b & c", "a & b | c", "~(a & b) | c", "~a & b | ~c", "(a ^ b) & c", "a ^ (b & c)",
    "(a | b) ^ c", "a ^ b | c", "~(a | b) & ~c", "(a & b) | (b & c)", "(a | b) & (b | c)", "~((a & b) | c) ^ b",
]  # fmt: skip


def test_conditions_of_both_kinds_mean_what_they_mean_of_booleans(first):
    """Python's precedence; in it.when all of them, in it.until one after another."""
    for k in range(8):
        truths = dict(zip("abc", (np.bool_(k >> i & 1) for i in range(3)), strict=True))
        for ending in MIXTURES[k::8]:
            v, met = gb.Vector(int, 5), {text: gb.Scalar.from_value(False) for text in MIXTURES}
            with gb.loop(2) as it:
                v << 1
                recorded = {name: v.nvals == (5 if holds else 0) for name, holds in truths.items()}
                for text, scalar in met.items():
                    with it.when(eval(text, recorded.copy())):
                        scalar << True
                it.until(eval(ending, recorded.copy()))
            wanted = {text: bool(eval(text, truths.copy())) for text in MIXTURES}
            assert {text: scalar.value for text, scalar in met.items()} == wanted, truths
            assert it.rounds == (1 if wanted[ending] else 2), (ending, truths)


REFUSED = [
    ("if v.nvals: pass", "v.nvals|_"), ("int(s.value)", "known when it runs"), ("float(v.nvals)", "known"),
    ("v.to_coo()", "content"), ("bool(s)", "known"), ("v.resize(2)", "resize"), ("it.until(3)", "BOOL"),
    ("it.until(v)", "BOOL"), ("it.until(s)", "BOOL"), ("it.when(1).__enter__()", "BOOL"), ("1 < v.nvals < 3", "& |"),
    ("s == 3 and 1", "known"), ("v[s]", "known"), ("v.to_dense(0)", "content"), ("A.to_coo()", "content"),
    ("range(v.nvals)", "known"), ("v.to_dict()", "content"), ("list(v)", "content"), ("3 in v", "known"),
    ("[1, 2, 3][s]", "known"), ("while v.nvals > 3: pass", "known"), ("import pickle; pickle.dumps(v)", "content"),
    ("not v.isequal(v)", "& |"), ("float(s)", "known"), ("v << int(it.index)", "known"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_reads_values_is_refused(devices, text, words):
    v, s, A = gb.Vector.from_coo([1, 2], [3, 4], size=4, name="v"), gb.Scalar.from_value(1), graph(4, 5)
    before = v.to_dict(), s.value, A.nvals
    with pytest.raises(TypeError, match=words), gb.loop(3) as it:
        v << 5
        exec(text, {"v": v, "s": s, "A": A, "it": it})
    assert (v.to_dict(), s.value, A.nvals) == before  # nothing ran, and nothing is recorded any more


def test_loops_that_would_not_end(devices):
    v = gb.Vector(int, 3)
    with pytest.raises(gb.exceptions.InvalidValue, match="ends"), gb.loop():
        v << 1
    assert v.nvals == 0
    for most in (0, -1, 1.5, True, "3"):
        with pytest.raises(gb.exceptions.InvalidValue, match="max_iterations"):
            gb.loop(most)
    for every in (0, -1, 1.5, True, None):
        with pytest.raises(gb.exceptions.InvalidValue, match=f"every.*came {every}"):
            gb.loop(3, every=every)
    with pytest.raises(TypeError, match="on_iteration.*came 3"):
        gb.loop(3, on_iteration=3)
    with pytest.raises(TypeError, match="rounds=True or False; came 'no'"), gb.trace(rounds="no"):
        pass
    with gb.loop(7) as it:
        v << it.index
        it.until(v.nvals == 4)
    assert it.rounds == 7 and not it.converged and v.to_dense().tolist() == [6, 6, 6]
    with pytest.raises(gb.exceptions.InvalidValue, match="inside"):
        it.until(gb.Scalar.from_value(True) & True)


def test_rounds_are_told_and_may_stop_it(devices):
    v, told = gb.Vector.from_dense([0, 0]), []

    def enough(rounds: int) -> None:
        told.append((rounds, v[0].value))
        if rounds == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), gb.loop(100, on_iteration=enough, every=2):
        v << v + 1
    assert told == [(2, 2), (4, 4), (6, 6)]
    v << v + 1  # the session goes on
    assert v[1].value == 7


def test_loops_in_loops(devices):
    A, counts = graph(), gb.Vector.from_dense(np.zeros(60, int))
    with gb.loop() as outer:
        q = gb.Vector(bool, 60)
        level = gb.Vector(int, 60)
        with outer.when(outer.index == 0):
            q[0] = True
        with outer.when(outer.index > 0):
            q[5] = True
        with gb.loop() as inner:
            level(q.S) << inner.index
            q(~level.S, replace) << any_pair(q @ A)
            inner.until(q.nvals == 0)
        counts(binary.plus) << level
        outer.until(outer.index == 1)
    expected = np.zeros(60, int)
    for source in (0, 5):
        level, q, depth = gb.Vector(int, 60), gb.Vector(bool, 60), 0
        q[source] = True
        while q.nvals:
            level(q.S) << depth
            q(~level.S, replace) << any_pair(q @ A)
            depth += 1
        expected += level.to_dense(0)
    np.testing.assert_array_equal(counts.to_dense(), expected)


def test_loops_leave_nothing_behind(devices):
    A, x = graph(), gb.Vector.from_dense(np.ones(60))

    def once() -> None:
        with gb.loop(2) as it:
            y = plus_times(A @ x).new()
            it.until(y.reduce(monoid.max) < 0)

    for _ in range(20):  # in which GPUs capture a round
        once()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        once()
    gc.collect()
    assert len(gc.get_objects()) - before < 50 and not gb.settings.session().recorders


def test_other_threads_run_while_one_records(devices):
    from threading import Thread

    v, found = gb.Vector.from_dense([1, 2, 3]), []
    with gb.loop(2):
        w = v.dup()
        thread = Thread(target=lambda: found.append((v + v).new().to_dense().tolist()))
        thread.start()
        thread.join()
        v << w + 1
    assert found == [[2, 4, 6]] and v.to_dense().tolist() == [3, 4, 5]


HOLES = {
    "fill": "v[ix] << 5",
    "added": "v(binary.plus)[ix] << 5",
    "then fewer": "v(binary.plus)[ix] << 5; ix << ix.select('<', 2)",
    "fewer then": "ix << ix.select('<', 2); v(binary.plus)[ix] << 5",
    "masked": "ix(x.S, replace) << ix; v[ix] << 5",
    "then none": "v[ix] << 5; ix.clear()",
    "rows": "A[ix, :] << 7",
    "both": "A(binary.plus)[ix, ix] << 1",
}


@pytest.mark.few(30)
@pytest.mark.parametrize("filled", ["all", "some", "none"])
@pytest.mark.parametrize("text", HOLES.values(), ids=HOLES)
def test_vectors_of_ids_that_lack_places(devices, text, filled):
    """Those that are there when the statement runs are the ids, as without a loop; captured or not."""
    found = []
    for recorded in (False, True, True, True, True):
        ids = {"all": {0: 2, 1: 0, 2: 2}, "some": {1: 2}, "none": {}}[filled]
        given = {"ix": gb.Vector(int, 3), "x": gb.Vector.from_coo([0, 1], True, size=3), "binary": binary}
        given["ix"] << gb.Vector.from_dict(ids, size=3, dtype=int)
        given["v"], given["A"] = gb.Vector.from_dense([1, 2, 3, 4]), gb.Matrix.from_dense([[1, 2, 3]] * 3)
        given["replace"], lines = replace, text.split("; ")
        if recorded:
            with gb.loop(9):
                for line in lines:
                    exec(line, given)
        else:
            for line in lines * 9:
                exec(line, given)
        found.append((given["v"].to_dict(), given["A"].to_dense(0).tolist(), given["ix"].to_dict()))
    assert all(one == found[0] for one in found), found


def test_ids_that_are_too_few_to_be_read(devices):
    """Without a loop the result has another size, too."""
    v, w, ix = gb.Vector.from_dense([1, 2, 3, 4]), gb.Vector(int, 3), gb.Vector.from_coo([1], [2], size=3)
    with pytest.raises(gb.exceptions.DimensionMismatch, match="give every place an id"):
        with gb.loop(1):
            w << v[ix]
    with pytest.raises(gb.exceptions.DimensionMismatch, match="give every place an id"):
        with gb.loop(1):
            v[ix] << w
    ix << gb.Vector.from_dense([0, 3, 3])
    with gb.loop(1):
        w << v[ix]
    assert w.to_dict() == {0: 1, 1: 4, 2: 4}


def test_a_loop_is_recorded_once(devices):
    v, it = gb.Vector.from_scalar(0, 3), gb.loop(2)
    with it:
        v(binary.plus) << 1
    with pytest.raises(gb.exceptions.InvalidValue, match="a new loop"), it:
        v(binary.plus) << 10
    with pytest.raises(gb.exceptions.InvalidValue, match="a new loop"), gb.loop(2) as it, it:
        v(binary.plus) << 10
    assert v.to_dict() == {0: 2, 1: 2, 2: 2} and not gb.settings.session().recorders
    outer, inner = gb.loop(2), gb.loop(3)  # made before, begun inside
    with outer:
        with inner:
            v(binary.plus) << 1
    assert v.to_dict() == {0: 8, 1: 8, 2: 8}


def test_bodies_that_end_in_another_order(devices):
    """The one that others are still open in is none; those go on."""

    def body(value):
        v = gb.Vector.from_scalar(0, 3)
        with gb.loop(3):
            yield v
            v(binary.plus) << value

    one, other = body(1), body(100)
    _, second = next(one), next(other)
    with pytest.raises(gb.exceptions.InvalidValue, match="reverse order"):
        next(one)
    assert next(other, "ended") == "ended" and second.to_dict() == {0: 300, 1: 300, 2: 300}
    one, other = body(1), body(100)
    first, second = next(one), next(other)
    one.close()
    assert next(other, "ended") == "ended" and second.to_dict() == {0: 300, 1: 300, 2: 300}
    one, w = body(1), gb.Vector.from_scalar(0, 3)
    next(one)
    with gb.loop(2) as it:
        del one  # as Python's search for garbage may
        gc.collect()
        w(binary.plus) << 1
        assert "known when" in repr(w.nvals)
    assert (w.to_dict(), it.rounds, first.to_dict()) == ({0: 2, 1: 2, 2: 2}, 2, {0: 0, 1: 0, 2: 0})
    with pytest.raises(gb.exceptions.InvalidValue, match="reverse order"):
        gb.loop(2).__exit__(None, None, None)
    assert not gb.settings.session().recorders


def test_a_thread_that_ends_within_a_body_leaves_nothing(devices):
    found = []

    def left() -> None:
        gb.loop(2).__enter__()

    for work in (left, lambda: found.append(gb.Vector.from_coo([0], [1], size=2).nvals)) * 3:
        thread = Thread(target=work)
        thread.start()
        thread.join()
    assert found == [1, 1, 1]
    gb.settings.session().recorders.clear()


TAKES = "n = v.get(1, 7)|n = A.get(0, 1, 5)|n = s.nvals|n = s.get(4)"  # which loops of the devices do not know
TAKES = f"n = v.nvals|n = s.value|n = v.nvals + s.value|{TAKES}"
DOES = "v << select.valuegt(v, 1)|v << n|s << n|s << n + 1|s << s.value + 1|w[0] << n|v[1] << n|v.clear()|w << v"
DOES += "|v(~v.S) << n|s << v.reduce(monoid.max, allow_empty=False)|v << v.apply('plus', right=n)|v << w.dup()"
MORE = "A[0, 1] << n|same = v.isequal(w); w << same|s << same|near = w.isclose(v)|s << near|w << select.valuelt(w, n)"


def numbers(data, rounds: int, most: bool = True) -> str:
    """A drawn body that reads numbers, and writes what they tell of, recorded and unrolled; what ran it. `most`: with
    what devices do not do by themselves."""
    takes, does = TAKES.split("|")[: None if most else 3], DOES.split("|") + MORE.split("|") * most
    body = [("", "n = v.nvals" + "; same = v.isequal(w); near = v.isclose(w)" * most)]
    guards = ["", "", "loop 2" * most]
    for _ in range(data.draw(st.integers(2, 9))):
        line = data.draw(st.sampled_from(takes + does))
        names = line.startswith(("n =", "same =", "near ="))  # what a part that is passed over does not do
        body.append((data.draw(st.sampled_from(guards + ["it.index % 2 == 0"] * (not names))), line))
    note(f"{rounds} rounds of {body}")
    found = []
    for run in (unrolled, recorded):
        x = {
            "v": gb.Vector.from_coo([0, 1, 3], [3, 1, 2], size=4), "w": gb.Vector.from_coo([2], [5], size=4),
            "s": gb.Scalar.from_value(2), "A": gb.Matrix.from_coo([0], [0], [1], nrows=2, ncols=2),
            "select": gb.select, "monoid": monoid,
        }  # fmt: skip
        how = run(x, body, rounds)
        found.append((x["v"].to_dict(), x["w"].to_dict(), x["s"].value, x["A"].to_dicts()))
    assert found[0] == found[1]
    return how


@given(data=st.data())
@settings(max_examples=1500 if p.WIDE else 30)
def test_numbers_are_what_they_were_where_they_are_read(devices, data):
    """Whatever is written afterwards, also in another round of a loop inside."""
    numbers(data, 3)


def test_a_loop_may_end_where_nothing_changes(devices):
    f = gb.Vector.from_scalar(True, 8)
    with gb.loop(20) as it:
        before = f.nvals
        f << gb.select.indexle(f, 5 - it.index)
        it.until(f.nvals == before)
    assert (it.rounds, f.nvals) == (8, 0)
    d, old = gb.Vector.from_dense([8, 5, 9]), gb.Vector(int, 3)
    with gb.loop(20) as it:
        old << d
        d << d.apply(binary.min, right=5)
        unchanged = d.isequal(old)
        old << 0
        it.until(unchanged)
    assert (it.rounds, d.to_dense().tolist()) == (2, [5, 5, 5])


def test_a_number_of_a_loop_that_is_over_says_so(devices):
    v = gb.Vector.from_dense([1, 2])
    with gb.loop(3) as it:
        n = v.nvals
        v << v + 1
    for number in (int, float, bool, round, "{:d}".format, [5, 6, 7].__getitem__, np.array):
        with pytest.raises(TypeError, match="of a loop that is over.*once more"):
            number(n)
    with pytest.raises(TypeError, match="it.rounds"):
        int(it.index)
    s = gb.Scalar(int)
    with gb.loop(2):
        s << n + 1  # what there is now
    assert s.value == 3


def test_what_a_part_read_that_was_passed_over(devices):
    q, s, t = gb.Vector.from_coo([0], [1], size=10), gb.Scalar(int), gb.Scalar(int)
    with gb.loop(4) as it:
        with it.when(it.index == 0):
            n = q.nvals
        s << n
        q[:] << 1
        with gb.loop(2):
            m = q.nvals
        t << m
    assert (s.value, t.value) == (1, 10)
    A, o = gb.Matrix.from_coo([0], [1], [1], nrows=3, ncols=3), gb.Scalar(int)
    with gb.loop(1):
        n, same = A.T.get(1, 0, -1), A.isequal(A.T)
        A.clear()
        o << n + 10 * same
    assert o.value == 1
    with gb.loop(1) as it:
        n = q.nvals
        q.clear()
        o << n
    assert o.value == 10 and f"{o.name} << {q.name}" not in it.explained()


READS = "Python reads a number in each round (conditions of recorded scalars are computed on the device)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("with gb.loop(2): v << v + 1", "it has an inner loop"),
        ("v << gb.Vector.from_coo([1], [2.0], size=9)", "it makes objects (make them before it, and write into them)"),
        ("it.until(it.index > 5); v << v + 1", "statements follow it.until (write it.until last)"),
        ("n = v.isequal(v); v << v + 1; it.until(n)", READS),
        (
            "with it.when(it.index > 1): it.until(it.index > 5)\nv << v + 1",
            "it.when contains it.until, a loop or a new object",
        ),
        ("A << A + A", "the matrix A changes (write matrices before it or after it)"),
        ("it.until(it.index > 5)", "it has no statements"),
        ("v << v + 1", ""),
    ],
)
def test_what_keeps_loops_with_statements_is_told(text, reason, monkeypatch):
    def how(*traces):
        v, A = gb.Vector.from_dense(np.ones(9)), gb.Matrix.from_coo([0], [1], [1.0], nrows=2, ncols=2, name="A")
        with traces[0] if traces else nullcontext(), gb.loop(8) as it:
            exec(text, {"gb": gb, "v": v, "A": A, "it": it})
        return it.how

    monkeypatch.setattr(gb.settings, "interpret", False)
    gb.init("cpu:1")
    told = f"statements, as {reason}" if reason else "statements"
    assert how() == told
    if not reason:
        assert how(gb.trace()) == "statements, as a trace records each step (gb.trace(rounds=True) records rounds)"
        gb.init("cpu:1", deterministic=True)
        assert how() == "statements, as the session is deterministic"
        monkeypatch.setattr(gb.settings, "interpret", True)
        gb.init("cpu:1")
        assert how() == "statements, as kernels are interpreted (gb.settings.interpret, GBGPU_INTERPRET)"


def test_what_is_built_in_a_body(devices):
    v = gb.Vector.from_coo([0, 1], [1, 2], size=4)
    with gb.loop(1):
        n = v.nvals
        v.build([2], [5], clear=True)
        v[0] << n
    assert v.to_dict() == {0: 2, 2: 5}


READS = [np.array, np.float64, np.int64, round, "{:d}".format, lambda x: np.array([x, 1])]
READS += [lambda x: gb.Vector.from_dense([x, 1]), lambda x: gb.Matrix.from_coo([0], [0], [x])]


@pytest.mark.parametrize("read", READS)
def test_what_reads_a_recorded_number_says_so(devices, read):
    s = gb.Scalar.from_value(3)
    for number in (lambda it: it.index, lambda it: s.value):
        with pytest.raises(TypeError, match="known while a loop is recorded.*it.until"), gb.loop(1) as it:
            read(number(it))
