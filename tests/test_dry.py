"""Planning acts on nothing: `gb.explain` leaves objects, caches and devices as they were, and shows what a run does."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_told import plans_of

import gbgpu as gb
from gbgpu import agg, binary, monoid, replace, select, semiring, unary  # noqa: F401  (statements are source text)
from gbgpu.distribute.blocks import MatrixBlock, MatrixStore, VectorBlock, VectorStore
from gbgpu.engine import assign
from gbgpu.errors import InvalidValue
from gbgpu.language.expr import Expression
from gbgpu.language.handle import Handle
from gbgpu.semiring import any_pair, min_plus, plus_pair, plus_times  # noqa: F401
from gbgpu.trace import counters

# x is full, q a list, b a bitmap, e and w have no entries, f is full with an entry that was set; L has a log of entries
OF_EACH = [
    "w << plus_times(A @ {v})",
    "w << plus_times({v} @ A)",
    "w(~m.S, replace) << min_plus({v} @ A)",
    "w(m.S, binary.plus) << plus_times(A.T @ {v})",
    "w(direction='pull') << any_pair({v} @ A)",
    "w(m.V, direction='push') << any_pair(A @ {v})",
    "w << unary.abs({v})",
    "w << {v}.select('>', 0.5)",
    "s << {v}.reduce(monoid.max)",
    "w(m.S) << {v} * x",
    "w[0:50] << {v}[10:60]",
    "w << {v}[ids]",
    "w(binary.plus)[ids] << {v}",
    "w[ids] << {v}",
    "w[[3, 1, 7]] << {v}[[1, 2, 3]]",
    "w << ({v} + x) * q",
    "w << plus_times(A @ ({v} * 2.0))",
    "C << {v}.outer(x, binary.times)",
    "C << {v}.diag()",
    "C << binary.times(A & {v})",
    "s << {v}.reduce(agg.argmin)",
    "s << {v}.reduce(agg.mean)",
    "w << {v}",
    "w << {v} * s",
    "w << {v}.apply(binary.times, right=x.reduce(monoid.plus))",
]
OTHERS = """
w << A.reduce_rowwise(monoid.plus)
w << A.reduce_columnwise(monoid.plus)
s << A.reduce_scalar(monoid.plus)
s << A.T.reduce_scalar(monoid.plus)
s << A.reduce_scalar(agg.count)
s << A.reduce_scalar(agg.exists)
s(binary.plus) << x.reduce(monoid.plus)
w << agg.mean(A, rowwise=True)
w << agg.varp(A, columnwise=True)
w << A.reduce_rowwise(agg.any_value)
C << plus_times(A @ B)
C(B.S) << plus_times(A @ A)
C(B.S, method='dot') << plus_pair(A @ B)
C(~B.S) << plus_times(A @ B)
C << plus_times(A.T @ A.T)
C << plus_times(D @ A)
C << A + B
C(binary.plus) << A * B
C << A.T + B
C << A.apply(unary.one)
C << A.select('>', 0.5)
C << select.tril(A)
C(A.S) << 3.0
C[0:50, 0:40] << A[10:60, 0:40]
C[[1, 2], [3, 4]] << A[[5, 6], [7, 8]]
C[[1, 2], [3, 4]] << 2.0
C << A[ids, :]
C << A.power(3)
C << A.reposition(1, 2)
C[3, 4] << 5.0
w << A[3, :]
w << A[:, 3]
w[3] << 5.0
w << plus_times(L @ x)
w << plus_times(x @ L)
C << L + A
u << plus_times(R @ x)
w << plus_times((A + B) @ x)
w << plus_times(x @ (A.apply(unary.one)))
w << plus_times((A + B).T @ q)
w << plus_times(C @ x)
w << plus_times(x @ C)
s << x.inner(q)
w << 1
w(m.S) << 1
w(~m.V, replace) << 1
w[ids] << 1
w << x.select(m.S)
w << (x > 0.5)
w << x.ewise_union(q, binary.minus, 1.0, 0.0)
""".strip().splitlines()  # fmt: skip
STATEMENTS = [text.format(v=v) for text in OF_EACH for v in "xqbewf"] + OTHERS
SEQUENCES = [
    "w(m.S) << x; w(~m.S) << q; w(direction='push') << plus_times(w @ A)",
    "w << x.select('>', 0.5); q(w.S) << w; w << q * x",
    "C << plus_times(x.diag() @ A); C(binary.plus) << A; w << plus_times(C @ x)",
    "w << A.diag(); w[0:299] << A.diag(1)",
    "w((x > 0.5).S) << q; w << 1; w(binary.plus)[ids] << w",
]
# What a run takes depends on numbers of which a plan assumes the ordinary case; numbers of the host have no plan.
GUESSED = [
    "w << agg.ss.argmax(A, rowwise=True)",
    "w << agg.ss.first(A, rowwise=True)",
    "w << plus_times(plus_times(q @ A) @ B)",
    "w << plus_times(plus_times(e @ A) @ B)",
    "w << plus_times(R.T @ u)",
    "s << x[3] + A[3, 4]",
    "s << s + 1",
    "K << R.kronecker(R)",
]


def objects() -> dict:
    n, rng = 300, np.random.default_rng(0)
    i, j = rng.integers(0, n, (2, 3000))
    some = [np.sort(rng.permutation(n)[:count]) for count in (20, 90, 100)]
    A = gb.Matrix.from_coo(i, j, rng.random(3000), nrows=n, ncols=n, dup_op="first", name="A")
    B = gb.Matrix.from_coo(j[:900], i[:900], 1.5, nrows=n, ncols=n, dup_op="first", name="B")
    R = gb.Matrix.from_coo(i[:500] // 10, j[:500], 1.0, nrows=30, ncols=n, dup_op="first", name="R")
    C, L, K = gb.Matrix(float, n, n, name="C"), A.dup(name="L"), gb.Matrix(float, 900, n * n, name="K")
    D = gb.Vector.from_dense(rng.random(n)).diag(name="D")
    L[3, 4] = L[5, 6] = 9.0
    del L[0, 0]
    x, f, u = (gb.Vector.from_dense(rng.random(size), name=name) for size, name in ((n, "x"), (n, "f"), (30, "u")))
    q, b = (gb.Vector.from_coo(ids, 1.0 + ids, size=n, name=name) for ids, name in zip(some, "qb", strict=False))
    m = gb.Vector.from_coo(some[2], True, size=n, name="m")
    e, w = gb.Vector(float, n, name="e"), gb.Vector(float, n, name="w")
    ids, s = gb.Vector.from_dense(rng.integers(0, n, n), name="ids"), gb.Scalar(float, name="s")
    b(b.S) << 2.0
    f[2] = 4.0
    s << x.reduce(monoid.plus)  # its value is not read
    return {name: found for name, found in locals().items() if isinstance(found, Handle)}


def noted(x, path: str, found: dict, seen: dict) -> None:
    """What an object consists of, by paths: numbers as they are, other objects by their ids, arrays by their bytes."""
    if x is None or isinstance(x, (bool, int, float, str, np.generic)):
        found[path] = x
    elif isinstance(x, (list, tuple)):
        found[path] = len(x)
        for k, one in enumerate(x):
            noted(one, f"{path}[{k}]", found, seen)
    elif isinstance(x, Handle):
        noted(x._held if x.ndim == 2 else (x._store, getattr(x, "_value", None)), path, found, seen)
    elif id(x) not in seen:
        found[path], seen[id(x)] = id(x), x
        if isinstance(x, np.ndarray):
            found[f"{path} bytes"] = x.tobytes()
        elif isinstance(x, dict):
            found[f"{path} keys"] = list(map(id, x))
            for key, one in x.items():
                noted(one, f"{path}[{key if isinstance(key, (str, int)) else id(key)}]", found, seen)
        elif isinstance(x, (MatrixStore, MatrixBlock, VectorStore, VectorBlock)):
            for slot in type(x).__slots__:
                if slot != "__weakref__":
                    noted(getattr(x, slot), f"{path}.{slot}", found, seen)


def state(session, space: dict) -> dict:
    """All that statements could leave behind."""
    pool, maps = session.pool, session.maps
    kept = [
        space, pool._spaces, pool._cached, pool.placeholders, session.plans, maps._defaults, maps._first,
        maps.unsettled, session._watched, session.doubted, session.loops.__dict__, list(session.replicas._stores),
        *(None if each is None else each.__dict__ for each in (session.assigner, session.sharing)),
        list(assign._whole.items()), counters.launches, counters.host_reads, counters.exchanged, counters.statements,
    ]  # fmt: skip
    found: dict = {}
    noted(kept, "", found, {})
    return found


def forbid(session, monkeypatch) -> None:
    """Whatever acts on devices raises from now on."""

    def acts(*_, **__):
        raise AssertionError("planning acts on devices")

    names = "empty zeros full put get clear copy equal is_line has_empty set_bits offsets take checked kept longest"
    for kind in {type(device) for device in session.devices}:
        for name in (*names.split(), "order", "owners", "transpose", "rows_of", "lengths"):
            if name in dir(kind):
                monkeypatch.setattr(kind, name, acts)
    monkeypatch.setattr(session, "over", acts)
    monkeypatch.setattr(session.kernels, "get", acts)
    monkeypatch.setattr(session.kernels, "ahead", acts)


def changed(session, space: dict, before: dict) -> list:
    after = state(session, space)
    return [path for path in before | after if path not in before or before[path] != after.get(path)]


@pytest.mark.parametrize("ran", [False, True], ids=["at first", "later"])
def test_planning_leaves_all_as_it_was(devices, ran, monkeypatch):
    session, space = gb.settings.session(), objects()
    if ran:  # transposes are there, and what products note
        for _ in range(3):
            space["w"] << plus_times(space["x"] @ space["A"])
            space["w"] << plus_times(space["A"] @ space["x"])
        space["s"] << space["A"].reduce_scalar(monoid.plus)
    names, every = {**globals(), **space}, STATEMENTS + GUESSED
    right = [(text, eval(text.partition(" << ")[2], names)) for text in every]
    before = state(session, space)
    forbid(session, monkeypatch)
    for text in every:
        with gb.explain() as plans:
            exec(text, names)
        assert plans and not changed(session, space, before), text
    for text, expression in right:
        if isinstance(expression, Expression):
            assert gb.explain(expression) and not changed(session, space, before), text


def test_a_plan_is_the_one_that_a_run_takes(devices):
    session, names = gb.settings.session(), {**globals(), **objects()}
    for text in STATEMENTS + SEQUENCES:
        with gb.explain() as plans:
            exec(text, names)
        ran = plans_of(session, lambda text=text: exec(text, names))
        shown = [plan.partition("\n")[2] for plan in plans]
        assert [unnamed(plan) for plan in shown] == [unnamed(plan) for plan in ran], text


def looped(x, A, w, q, m, **_) -> None:
    with gb.loop(3) as it:
        w(q.S) << it.index
        q(~m.V, replace) << min_plus(q @ A)
        w << x * w.reduce(monoid.plus)
        it.until(q.nvals == 0)


def relaxed(A, q, m, **_) -> None:
    with gb.fixpoint():
        q(~m.V, binary.min) << min_plus(q @ A)


def summed(B, x, q, **_) -> None:
    with gb.fixpoint(tol=0.1):
        x(binary.plus) << q
        q << plus_times(q @ B)


@pytest.mark.parametrize("work", [looped, relaxed, summed])
def test_planning_loops_leaves_all_as_it_was(devices, work, monkeypatch):
    session, space = gb.settings.session(), objects()
    before = state(session, space)
    forbid(session, monkeypatch)
    with gb.explain() as plans:
        work(**space)
    assert plans and not changed(session, space, before)


def test_what_ran_is_told_from_notes(devices, monkeypatch):
    """A statement and a loop that ran, and sizes of a matrix that nobody made."""
    session, space = gb.settings.session(), objects()
    statement = space["w"] << plus_times(space["x"] @ space["A"])
    with gb.loop(2) as it:
        space["w"] << plus_times(space["w"] @ space["A"])
    before = state(session, space)
    forbid(session, monkeypatch)
    assert "pull" in gb.explain(statement) and "2 rounds" in gb.explain(it)
    assert gb.estimate_memory(1000, 1000, 5000).held > 0
    assert not changed(session, space, before)


def test_a_plan_resizes_nothing(devices):
    v, A = gb.Vector.from_dense([1.0, 2.0, 3.0]), gb.Matrix.from_coo([0, 1], [1, 2], [1.0, 2.0], nrows=3, ncols=3)
    for x, smaller in ((v, (2,)), (A, (2, 2))):
        with gb.explain(), pytest.raises(InvalidValue, match="planned and did not run"):
            x.resize(*smaller)
        assert x.nvals == (3 if x is v else 2) and set(x.shape) == {3}


def unnamed(plan) -> str:
    """The text of a plan without the names of objects that nobody named."""
    return re.sub(r"\b[vm]_\d+", "_", str(plan))
