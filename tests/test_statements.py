"""The oracle: random statements give what python-graphblas gives, on every set of devices (see `oracle.py`)."""

from __future__ import annotations

import os
from functools import cache

import assignments as a
import graphblas
import instances
import numpy as np
import programs as p
import pytest
import statements as s
from conftest import chosen
from hypothesis import given, note, settings
from hypothesis import strategies as st
from oracle import Mismatch, Run, read
from programs import Key, Program, Statement

import gbgpu as gb

KINDS = {
    "products": [s.vector_product],
    "matrix products": [s.mxm],
    "elementwise": [s.elementwise, s.elementwise, s.union, s.chain, s.positional, s.infix, s.broadcast, s.in_place],
    "one operand": [s.unary, s.bound, s.index_unary, s.select, s.select_inside],
    "reductions": [s.reduce, s.aggregate, s.inner],
    "assignments": [a.assign, a.assign, a.assign_within, a.assign_line, a.assign_element, a.copy],
    "extractions": [a.extract, a.extract, a.line, a.element, a.change],
    "matrices of vectors": [s.kronecker, s.outer, a.diag, a.setdiag],
}
# An example is a program of about four statements: 20,000 statements and more in the long run. Their kernels take most
# of the time on CPU devices, for which they are compiled anew; GPUs have them compiled beforehand.
examples = settings(max_examples=560 if p.WIDE else 25 if "GBGPU_TEST_DEVICES" in os.environ else 8)
KINDS["mixed"] = [kind for kinds in KINDS.values() for kind in kinds if kind is not s.kronecker]


@pytest.fixture(autouse=True)
def kernels_noted():
    yield
    instances.note(gb.settings.session())


def check(program: Program, devices) -> None:
    note(devices.text())
    Run(program, devices).all()


@examples
@given(program=p.programs(KINDS["products"]))
def test_products(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["matrix products"]))
def test_matrix_products(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["elementwise"]))
def test_elementwise(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["one operand"]))
def test_one_operand(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["reductions"]))
def test_reductions(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["assignments"]))
def test_assignments(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["extractions"]))
def test_extractions(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["matrices of vectors"], small=True))
def test_matrices_of_vectors(devices, program):
    check(program, devices)


@examples
@given(program=p.programs(KINDS["mixed"], most=12))
def test_mixed(devices, program):
    check(program, devices)


def formula(x, y):
    return 2 * x - y + 1


@cache
def user_operators(module) -> dict:
    mine = module.binary.register_anonymous(formula, "mine")
    return {"mine": mine, "mine_least": module.semiring.register_anonymous(module.monoid.min, mine, "mine_least")}


@examples
@given(data=st.data())
def test_user_operators(devices, data):
    """One formula, compiled by python-graphblas with Numba and by gbgpu through its own scalar programs."""
    shape = data.draw(p.shapes())
    r, c = "r", shape.fold("c")
    keys = [Key("x", r, "INT64"), Key("A", r + c, "INT64"), Key("w", c, "INT64"), Key("y", c, "INT64")]
    contents = {key: data.draw(p.contents(key))._replace(palette="small") for key in keys}
    x, A, w, y = keys
    product, union, both = f"{x.name} @ {A.name}", f"{w.name} | {y.name}", f"{y.name} & {w.name}"
    steps = [(w, f"mine_least({product})"), (w, f"mine({union})"), (y, f"mine({both})")]
    program = Program(shape, contents, tuple(Statement("mine", target, rhs, tuple(keys)) for target, rhs in steps))
    run = Run(program, devices)
    run.ours |= user_operators(gb)
    run.theirs |= user_operators(graphblas)
    run.all()


SUMS, ROOTS = "A_rc_fp64.reduce_rowwise(monoid.plus)", "A_rc_fp64.reduce_rowwise('max').new().apply(unary.cbrt)"
MEANS, THIRDS = "A_rc_fp64.reduce_rowwise(agg.harmonic_mean)", [[-1, -1, -3, 1], [2, 1, 2, 2]]  # -3 and 1.6
WRAPS = [[9, 9, 9, np.nextafter(1, 0)], [5, 5, 5, 5]]  # 100 + 28 is more than INT8 has
LARGE = 4 * 10**17  # whose neighbours in FP64 are 64 apart


@pytest.mark.parametrize(
    ("dtype", "rows", "rhs", "accum", "check", "right", "wrong"),
    [
        ("INT8", THIRDS, MEANS, "", "close", [[-3, 1], [-2, 1]], [[-4, 1], [-1, 1], [-3, 2], [-2, 0]]),
        ("INT8", THIRDS, MEANS, "'+'", "close", [[97, 101], [98, 101]], [[96, 101], [99, 101], [-3, 101], [97, 102]]),
        ("INT8", WRAPS, SUMS, "'+'", "sum", [[127, 119], [-128, 120]], [[126, 120], [0, 120], [127, 121]]),
        ("INT8", [[27] * 4, [30] * 4], ROOTS, "", "ulp", [[3, 3], [2, 3]], [[4, 3], [1, 3], [3, 2]]),
        ("BOOL", [[0.1, 0.2, -0.3, 0], [1, 1, 1, -1]], SUMS, "", "sum", [[True] * 2, [False, True]], [[True, False]]),
        ("INT64", [[LARGE, 1, 1, 1]] * 2, SUMS, "", "sum", [[LARGE, LARGE + 5]], [[LARGE, LARGE + 10**6]]),
    ],
)
def test_a_float_may_be_what_its_rounding_decides(first, dtype, rows, rhs, accum, check, right, wrong):
    """The comparison itself: it takes what floats rounded otherwise give as another type, and nothing else."""
    A, x = Key("A", "rc", "FP64"), Key("x", "r", dtype)
    nothing = p.Content("empty", 0, "small", False, 0)
    statement = Statement("aggregate", x, rhs, (A, x), accum=accum, check=check)
    run = Run(Program(p.Shape(2, 4), {A: nothing, x: nothing}, (statement,)), chosen()[0])
    for module, space in ((gb, run.ours), (graphblas, run.theirs)):
        space[A.name] = module.Matrix.from_dense(np.array(rows, float))
        space[x.name] = module.Vector.from_dense(np.full(2, 100), dtype=dtype)
    before = read(run.theirs[x.name], x)
    assert run.step(statement)
    for values in wrong:
        run.ours[x.name] = gb.Vector.from_dense(np.array(values), dtype=dtype)
        with pytest.raises(Mismatch, match="place, value, expected"):
            run.compare(x, check, before)
    for values in right:
        run.ours[x.name] = gb.Vector.from_dense(np.array(values), dtype=dtype)
        run.compare(x, check, before)


def test_thunks_and_scalars_take_the_type_of_the_operand(devices):
    """What the oracle gets wrong (it hands 64-bit thunks to 32-bit operators), stated outright."""
    for dtype in ("INT32", "INT64", "FP32", "FP64"):
        x = gb.Vector.from_coo([1, 2, 3], [2, 1, -3], dtype=dtype, size=9)
        for one in (1, 1.0, np.float32(1), np.int64(1)):
            assert gb.select.valuegt(x, one).new().to_coo()[0].tolist() == [1]
            assert x.select("<=", one).new().to_coo()[0].tolist() == [2, 3]


@pytest.mark.parametrize("mask", ["", "~w.S", "w.S", "w.V", "~w.V", "m.S", "~m.V"])
@pytest.mark.parametrize("content", ["some", "all", "one value", "nothing"])
def test_a_product_reads_what_it_accumulates_into(devices, mask, content):
    """A push may go straight into the output; what it reads, mask and operand, is what was there before."""
    devices.start()
    rng = np.random.default_rng(3)
    edges = rng.integers(0, 40, (2, 160))
    places = {"some": np.arange(0, 40, 3), "all": np.arange(40), "one value": np.arange(8), "nothing": []}[content]
    values = np.full(len(places), 5) if content == "one value" else rng.integers(0, 30, len(places))
    results = []
    for module in (gb, graphblas):
        A = module.Matrix.from_coo(*edges, np.arange(160) % 7, nrows=40, ncols=40, dup_op=module.binary.min)
        for thin in (False, True):
            w = module.Vector.from_coo(places, values, dtype=int, size=40)
            m, q = (module.Vector.from_coo(ids, [1, 0], dtype=int, size=40) for ids in ([7, 9], [2, 5]))
            given = {"w": w, "m": m}
            if content == "some":
                w(module.binary.plus)[0] << 0  # written in place
            x = q if thin else w
            args = [eval(mask, given)] if mask else []
            for _ in range(2):
                hints = {"direction": "push"} if module is gb else {}
                w(*args, module.binary.min, **hints) << module.semiring.min_plus(x @ A)
            results.append([part.tolist() for part in w.to_coo()])
    assert results[:2] == results[2:]


def test_ordinary_statements_use_few_kernels(session):
    """The last test here. What GPUs compile beforehand stays small; the long run may use as many as it likes."""
    assert p.WIDE or len(instances.USED) <= instances.MOST
