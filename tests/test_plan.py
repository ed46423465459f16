"""Plans as text: what is chosen, in which order, for which forms. Nothing here looks at results."""

import numpy as np
import pytest

import algos
import gbgpu as gb
from gbgpu import binary, monoid, replace
from gbgpu.device import cpu
from gbgpu.engine import direction
from gbgpu.errors import InvalidValue
from gbgpu.kernels.null import NullKernels
from gbgpu.semiring import any_pair, min_plus, plus_times


def ring(n: int, extra: int = 0) -> gb.Matrix:
    """A cycle i -> i + 1, and `extra` arcs out of vertex 0."""
    rows = np.concatenate([np.arange(n), np.zeros(extra, int)])
    cols = np.concatenate([(np.arange(n) + 1) % n, np.arange(2, 2 + extra)])
    return gb.Matrix.from_coo(rows, cols, 1.0, nrows=n, ncols=n, name="A")


def steps(plan: str) -> list[str]:
    """The lines below the statement, without numbers and runs of blanks."""
    return [" ".join(line.split()[1:]) for line in plan.splitlines()[1:]]


@pytest.fixture
def one():
    return gb.init("cpu:1")


@pytest.fixture
def three():
    return gb.init("cpu:3", gb.partition.shares(1, 5, 3))


def test_thin_frontier_is_pushed_and_becomes_the_output(one):
    A, q, seen = (
        ring(500),
        gb.Vector.from_coo([3], True, size=500, name="q"),
        gb.Vector.from_coo([3, 4, 9], 1, size=500),
    )
    seen(seen.S) << 0  # a bitmap now
    q_next = gb.Vector(bool, 500)
    plan = gb.explain(q_next(~seen.S, replace) << any_pair[bool](q @ A))
    assert steps(plan) == [
        "mask ~mask.S, bitmap",
        "push any_pair[BOOL] by rows of A, x list, mask ~mask.S",
        "drain rows reached -> list iso",
        "move list iso becomes the output",
    ]


def test_a_push_combines_with_the_output_of_one_device_itself(one):
    A, q = ring(500), gb.Vector.from_coo([3], 1.0, size=500, name="q")
    d = gb.Vector.from_coo([3, 4], [0.0, 9.0], size=500, name="d")
    pushed = "push min_plus[FP64] by rows of A, x list"
    assert steps(gb.explain(d(binary.min) << min_plus(q @ A))) == [f"{pushed} -> into bitmap by binary.min[FP64]"]
    for other in (d(d.S, binary.min, replace), d(binary.plus), d(binary.min, form="bitmap")):  # sums come in no order
        assert steps(gb.explain(other << min_plus(q @ A)))[-1].startswith(("write ", "write_list "))
    total = gb.explain(d(binary.plus) << plus_times(q @ A))
    assert steps(total)[-1] == "write_list list into bitmap by binary.plus[FP64]"


def test_three_devices_exchange_lists_and_combine_at_the_owner(three):
    A, q = ring(500), gb.Vector.from_coo([3], 1.0, size=500, name="q")
    d = gb.Vector.from_coo([3, 4], [0.0, 9.0], size=500, name="d")
    assert steps(gb.explain(d(binary.min, direction="push") << min_plus(q @ A))) == [
        "push min_plus[FP64] by rows of A, x list",
        "drain rows reached -> 3 lists iso a device",
        "exchange lists to their owners",
        "combine received entries by monoid.min[FP64]",
        "write_list list into bitmap by binary.min[FP64]",
    ]


def test_wide_pushes_of_three_devices_are_united_at_the_owner(three):
    A, ids = ring(500), np.arange(0, 500, 3)
    q, few = (gb.Vector.from_coo(ids[:k], 1.0 + ids[:k], size=500, name="q") for k in (500, 100))
    d = gb.Vector.from_coo(np.arange(400), 0.5, size=500, name="d")
    shown = steps(gb.explain(d(~d.S, binary.min, direction="push") << min_plus(q @ A)))
    assert shown[1:3] == [
        "push min_plus[FP64] by rows of A, x list, mask ~mask.S",
        "reduce_scatter rows reached on 3 devices, by monoid.min[FP64], mask ~mask.S -> bitmap",
    ]
    reached = steps(gb.explain(d(~d.S, direction="push") << any_pair(q @ A)))
    assert reached[1:3] == [
        "push any_pair[FP64] by rows of A, x list, mask ~mask.S",
        "reduce_scatter rows reached on 3 devices, by monoid.any[FP64], mask ~mask.S -> bitmap iso",
    ]
    kinds = [line.split()[0] for line in steps(gb.explain(d(direction="push") << min_plus(few @ A)))]
    assert "reduce_scatter" not in kinds and "combine" in kinds


def test_full_vector_is_pulled_without_any_bitmap(one):
    A, x, y = ring(500), gb.Vector.from_dense(np.ones(500)), gb.Vector(float, 500)
    assert steps(gb.explain(y << plus_times(A @ x))) == [
        "pull plus_times[FP64] by rows of A, x full -> full",
        "move full becomes the output",
    ]


def test_three_devices_gather_a_full_vector(three):
    A, x, y = ring(500), gb.Vector.from_dense(np.ones(500)), gb.Vector(float, 500)
    assert steps(gb.explain(y << plus_times(A @ x)))[0] == "gather x full to all 3 devices"


def test_wide_frontier_of_an_early_monoid_is_pulled(one):
    n = 5000
    rng = np.random.default_rng(0)
    A = gb.Matrix.from_coo(
        rng.integers(0, n, 200_000), rng.integers(0, n, 200_000), True, nrows=n, ncols=n, dup_op="any", name="A"
    )
    q = gb.Vector.from_coo(np.arange(0, n, 2), True, size=n, name="q")
    w = gb.Vector(bool, n)
    assert any(line.startswith("pull any_pair") for line in steps(gb.explain(w << any_pair(A @ q))))


def test_a_transpose_is_made_once_it_would_have_paid(one):
    """Pushes that pulls would have spared are counted; plans that nobody runs are not."""
    n = 5000
    rng = np.random.default_rng(0)
    A = gb.Matrix.from_coo(*rng.integers(0, n, (2, 200_000)), True, nrows=n, ncols=n, dup_op="any", name="A")
    q = gb.Vector.from_coo(np.arange(0, n, 2), True, size=n, name="q")
    w, ran = gb.Vector(bool, n), []
    for _ in range(50):
        for _ in range(5):
            planned = " ".join(steps(gb.explain(any_pair(q @ A))))
        with gb.trace() as records:
            w << any_pair(q @ A)
        ran.append(next(record.direction for record in records if record.direction))
        assert ("pull any_pair" in planned) == (ran[-1] == "pull")
        assert w.nvals == len(np.unique(A.to_coo()[1][A.to_coo()[0] % 2 == 0]))
    first = ran.index("pull")
    assert 2 < first < 40 and set(ran[:first]) == {"push"} and set(ran[first:]) == {"pull"}


def test_hints_decide(one):
    A, q, w = ring(500), gb.Vector.from_coo([3], 1.0, size=500), gb.Vector(float, 500)
    assert steps(gb.explain(w(direction="push") << min_plus(q @ A)))[0].startswith("push")
    assert "pull" in gb.explain(w(direction="pull") << min_plus(q @ A))


def test_scalar_on_a_listed_mask_writes_a_list(one):
    level, q = gb.Vector.from_coo([0], 0, size=500), gb.Vector.from_coo([3, 8], True, size=500)
    assert steps(gb.explain(level(q.S) << 7)) == [
        "borrow INT64 on the mask's rows",
        "write_list list into bitmap",
    ]


def test_mask_of_the_copied_vector_changes_nothing(one):
    parent, q = gb.Vector.from_coo([0], 0, size=500), gb.Vector.from_coo([3, 8], 1, size=500)
    assert steps(gb.explain(parent(q.S) << q)) == ["write_list list into bitmap"]


def test_vectors_on_different_maps_meet_through_a_printed_remap():
    gb.init("cpu:3")
    early = gb.Vector.from_dense(np.ones(400))  # equal rows: no matrix of this size yet
    A = ring(400, extra=300)  # equal edges: vertex 0 is heavy
    y = gb.Vector(float, 400)
    plan = gb.explain(y << plus_times(A @ early))
    assert steps(plan)[0] == "remap x to the rows of the output"
    assert y.reduce(monoid.plus).new().value == 700


def test_explain_plans_an_expression_without_running_it(one):
    A, x = ring(50), gb.Vector.from_dense(np.ones(50))
    text = gb.explain(plus_times(A @ x))
    assert "pull" in text and text.startswith("w << plus_times") and repr(text) == str(text)


def test_names_in_texts_follow_creation_or_are_the_user_s(one):
    A, x, s = gb.Matrix(float, 2, 2), gb.Vector(float, 2), gb.Scalar(float)
    y, B, mine = gb.Vector(float, 2), gb.Matrix(float, 2, 2), gb.Vector(float, 2, name="ranks")
    k = int(A.name.removeprefix("m_"))
    assert [z.name for z in (A, x, s, y, B)] == [f"m_{k}", f"v_{k + 1}", f"s_{k + 2}", f"v_{k + 3}", f"m_{k + 4}"]
    assert [z.name for z in (A, x, A.T)] == [f"m_{k}", f"v_{k + 1}", f"m_{k}.T"]  # looking at it changes nothing
    product = f"plus_times[FP64](m_{k} @ v_{k + 1})"
    for out, name in ((y, f"v_{k + 3}"), (mine, "ranks")):
        statement = out(x.S) << plus_times(A @ x)
        assert repr(statement) == gb.explain(statement).splitlines()[0] == f"{name}(v_{k + 1}.S) << {product}"
        assert repr(out).startswith(f'"{name}"')
    assert repr(plus_times(A @ x)).startswith(product)
    mine.name = "levels"
    assert repr(mine << x).startswith("levels <<") and "levels" in gb.explain(y << plus_times(A @ mine))


def test_planning_calls_no_kernel(one):
    A, q, w = ring(50), gb.Vector.from_coo([3], 1.0, size=50), gb.Vector(float, 50)
    one.kernels = NullKernels()
    expression = min_plus(q @ A)
    gb.explain(expression)
    with gb.explain():
        w(q.S, replace, direction="pull") << expression
    planning = {"frontier_edges"}  # a count of the frontier, for the choice of direction
    assert set(one.kernels.calls) <= planning
    w(direction="push") << expression
    assert set(one.kernels.calls) - planning == {"push", "drain"}


def test_explain_as_a_context_runs_nothing(one):
    A, x, y = ring(50), gb.Vector.from_dense(np.ones(50)), gb.Vector(float, 50)
    with gb.explain() as text:
        y << plus_times(A @ x)
        y(binary.plus) << x
    assert y.nvals == 0
    assert len(text) == 2 and "write" not in str(text[0]) and "pull" in str(text)


def test_what_was_only_planned_is_not_read(one):
    """A number that no statement has computed is no number; what Python fills meanwhile is read."""
    A, x, y = ring(50), gb.Vector.from_dense(np.ones(50)), gb.Vector(float, 50)
    reads = {
        "nvals": lambda: y.nvals,
        "entries": lambda: y.to_coo(),
        "an element": lambda: y[3].value,
        "a transpose": lambda: plus_times(A @ A).new().T.nvals,
        "a sum": lambda: x.reduce(monoid.plus).new().value,
        "a number in a statement": lambda: y << x.apply(binary.times, right=x.reduce(monoid.plus).new()),
        "an algorithm's own": lambda: algos.sssp(A, 0),
    }
    for what, read in reads.items():
        with gb.explain() as text:
            y << plus_times(A @ x)
            assert x.nvals == 50, what
            with pytest.raises(InvalidValue, match=r"planned and did not run\. Hint: gb\.trace"):
                read()
            assert "planned and did not run" in repr(y) and "planned and did not run" in y._repr_html_()
            y.build([3], [2.0], clear=True)
            assert y.to_dict() == {3: 2.0} and repr(x + y)
            s = gb.Scalar(float)
            s << x.reduce(monoid.plus)
            s.value = 4
            assert s.value == 4 and len(text) >= 2
            y << plus_times(A @ x)
            y.clear()
            assert y.nvals == 0
    with gb.explain():
        y << plus_times(A @ x)
    assert y.nvals == 0  # outside, it is what it was


def test_a_plan_is_made_once_for_operands_of_the_same_kinds(one):
    A, x, y = ring(50), gb.Vector.from_dense(np.ones(50)), gb.Vector(float, 50)
    first = y << plus_times(A @ x)
    again = y << plus_times(A @ x)  # y is full now: another kind of output
    third = y << plus_times(A @ x)
    assert again.plan is third.plan and first.plan is not again.plan


def test_matrix_statements_have_plans_too(one):
    A = ring(50)
    C = gb.Matrix(float, 50, 50)
    plan = gb.explain(C(A.S, binary.plus) << A.apply(binary.times, right=2.0))
    assert [line.split()[0] for line in steps(plan)] == ["apply", "merge", "merge"]  # an empty output keeps nothing
    plan = gb.explain(C(A.S, binary.plus) << A.apply(binary.times, right=2.0))
    assert [line.split()[0] for line in steps(plan)] == ["apply"] + 4 * ["merge"]


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
def test_what_a_matrix_was_reduced_to_is_remembered_with_its_content(devices):
    gb.init(devices)
    A = ring(50, 3)
    total = A.reduce_scalar(monoid.plus)
    assert steps(gb.explain(total)) == ["reduce monoid.plus[FP64] of full"]
    first = total.new()
    assert steps(gb.explain(total)) == ["cached monoid.plus[FP64] of the matrix, computed before"]
    again = total.new()
    again << binary.plus(again | 1)
    assert (first.value, again.value, total.new().value) == (53, 54, 53)  # each has a buffer of its own
    assert steps(gb.explain(A.reduce_scalar(monoid.max))) == ["reduce monoid.max[FP64] of full"]
    assert A.T.reduce_scalar(monoid.plus).new().value == 53
    A[0, 1] = 5
    assert total.new().value == 57
    x = gb.Vector.from_coo([0], [0.0], size=50)
    with gb.loop(3) as it:
        x << x.apply(binary.plus, right=A.reduce_scalar(monoid.plus).new())
    assert it.rounds == 3 and x[0].value == 171


def test_edges_of_a_small_frontier_are_counted_only_where_that_may_change_the_direction(one, monkeypatch):
    """As on a GPU, from which the host would have to read their sum."""
    n, counted = 1 << 16, []
    i = np.arange(n)
    A = gb.Matrix.from_coo(np.r_[i, i], np.r_[i, (i + 1) % n], True, nrows=n, ncols=n)
    plain = direction.counted_edges
    monkeypatch.setattr(cpu.CpuDevice, "peek", lambda device, buffer: None)
    monkeypatch.setattr(direction, "counted_edges", lambda *given: counted.append(given[2]) or plain(*given))
    for count in (direction.FEW - 1, direction.FEW, 100, 200, 1000, n // 8):
        x = gb.Vector.from_coo(np.arange(count), True, size=n)
        any_pair(x @ A).new()
    assert counted == [200, 1000]
