"""What is told is what ran: the steps of plans are those of traces, for random statements; and work may be cut into any
tasks."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from hypothesis import given, settings
from oracle import REFUSALS, namespace
from test_statements import KINDS

import gbgpu as gb
from gbgpu import monoid, semiring
from gbgpu.distribute.rowmap import Task


def plans_of(session, work) -> list:
    """The plans of the statements that `work()` gives to the session."""
    plans, plain, inside = [], type(session).run.__get__(session), []

    def run(statement):
        if inside:
            return plain(statement)
        inside.append(statement)
        try:
            plans.append(plain(statement).plan)
        finally:
            inside.clear()
        return statement

    session.run = run
    try:
        work()
    finally:
        del session.run
    return plans


@pytest.fixture
def uncompiled(session, monkeypatch):
    """`devices` whose kernels are interpreted in the ordinary run: the steps are the same."""
    monkeypatch.setattr(gb.settings, "interpret", not p.WIDE or gb.settings.interpret)
    session.start()


def test_a_trace_has_the_steps_of_the_plans(uncompiled):
    compared = []

    @settings(max_examples=400 if p.WIDE else 30)
    @given(program=p.programs(KINDS["mixed"], most=8))
    def run(program):
        space, session = namespace(gb, program), gb.settings.session()
        for statement in program.statements:
            text = statement.text()
            with gb.trace() as records:
                try:
                    plans = plans_of(session, lambda text=text: exec(text, space))
                except REFUSALS:  # python-graphblas refuses it too: test_statements
                    return
            told = [step.kind for plan in plans for step in plan.steps]
            assert [record.step for record in records if record.device == session.devices[0].name] == told, text
            compared.append(text)

    run()
    assert len(compared) > 40


def test_what_a_statement_takes_beside_is_in_its_plan(devices):
    A = gb.Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 1], [1.0, 2.0, 3.0, 4.0], nrows=5, ncols=5)
    v, ids = gb.Vector.from_dense([1.0, 2.0, 3.0, 4.0, 5.0]), gb.Vector.from_dense([4, 0, 0])
    w = gb.Vector(float, 3)
    with gb.explain() as text:
        w << v[ids]
        w << A.reduce_rowwise(gb.agg.mean)[[0, 1, 2]]
    assert "take" in text[0] and w.nvals == 0
    w << v[ids]
    assert w.to_dict() == {0: 5.0, 1: 1.0, 2: 1.0}
    mean = gb.Vector(float, 5)
    kinds = [step.kind for step in (mean << gb.agg.mean(A, rowwise=True)).plan.steps]
    assert kinds.count("pull") == 2 and kinds[-1] == "move"  # a count and a sum
    total = gb.Vector.from_dense([0.0, 0.0, 0.0, 0.0, 0.0])
    total[0] = 0.0
    kinds = [step.kind for step in (total(monoid.plus)[ids] << w).plan.steps]
    assert total.to_dense().tolist() == [2.0, 0.0, 0.0, 0.0, 5.0]
    assert "scatter" in kinds or "selection" in kinds


@pytest.mark.parametrize("accum", [None, monoid.plus])
def test_rows_named_by_a_vector_go_to_rows_named_by_a_list(devices, accum):
    """Only the left side's index says where values go."""
    v, ids = gb.Vector.from_dense([10, 20, 30, 40, 50]), gb.Vector.from_dense([4, 0, 2])
    w = gb.Vector.from_dense([1, 2, 3, 4, 5, 6])
    w(accum)[[5, 0, 3]] << v[ids] if accum else w[[5, 0, 3]] << v[ids]
    assert w.to_dense().tolist() == ([11, 2, 3, 34, 5, 56] if accum else [10, 2, 3, 30, 5, 50])


class Cut:
    """Every block and frontier in pieces, of whole words on GPUs, which go round the devices."""

    def __init__(self, session, pieces: int):
        self.session, self.pieces = session, pieces

    def cares(self, edges):
        return False

    def push(self, spec, x, matrix, found):
        return self.cut(x.map, x)

    def pull(self, spec, map, matrix, probed, mask):
        return self.cut(map)

    def cut(self, map, frontier=None):
        tasks = []
        for task in map.tasks:
            size, step = task.hi, 1 if self.session.devices[task.device].kind == "cpu" else 64
            if frontier is not None and frontier.form == "list":
                size, step = int(self.session.devices[task.device].get(frontier.blocks[task.block].count)[0]), 1
            each = -(-size // self.pieces // step) * step or step
            # Each device has a task, as steps leave the one value of all on each.
            ranges = [(lo, min(lo + each, size)) for lo in range(0, size, each)] or [(0, 0)]
            alike = self.alike(task.device)
            tasks += [Task(alike[i % len(alike)], task.block, lo, hi) for i, (lo, hi) in enumerate(ranges)]
        return tasks

    def alike(self, first):
        """Devices of the same kind, from one on."""
        devices, p = self.session.devices, len(self.session.devices)
        order = [(first + i) % p for i in range(p)]
        return [d for d in order if devices[d].kind == devices[first].kind]

    def done(self):
        pass


@pytest.mark.few(8)
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "any_pair", "min_firstj"])
def test_work_may_be_cut_into_any_tasks(devices, name, direction, pieces, monkeypatch):
    session, n, rng = gb.settings.session(), 700, np.random.default_rng(3)
    A = gb.Matrix.from_coo(
        rng.integers(0, n, 3000), rng.integers(0, n, 3000), rng.integers(1, 9, 3000), nrows=n, ncols=n, dup_op="first"
    )
    some = rng.permutation(n)[:150]
    x, full = gb.Vector.from_coo(some, rng.integers(1, 9, 150), size=n), gb.Vector.from_dense(rng.integers(1, 9, n))
    bitmap = gb.Vector.from_coo(some, 1, size=n)
    bitmap(bitmap.S) << 2
    op, mask = getattr(semiring, name), gb.Vector.from_coo(rng.permutation(n)[:300], True, size=n)
    for v in (x, full, bitmap):
        for options in ({}, {"mask": mask.S}, {"mask": ~mask.S}):
            for product in (op(v @ A), op(A @ v)):
                whole = product.new(direction=direction, **options).to_coo()
                monkeypatch.setattr(session, "assigner", Cut(session, pieces))
                parts = product.new(direction=direction, **options)
                monkeypatch.undo()
                assert parts.nvals == len(whole[0])
                for found, expected in zip(parts.to_coo(), whole, strict=True):
                    np.testing.assert_array_equal(found, expected)
