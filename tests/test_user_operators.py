"""Operators made of Python functions: what is read, what NumPy says of the result, and what is refused."""

import math

import numpy as np
import pytest
from user_functions import USER, clipped

from gbgpu import binary, exceptions, select, unary
from gbgpu.dtypes import BOOL, FP32, FP64, INT8, INT32, INT64, UINT8, UINT64, lookup_dtype
from gbgpu.semiring._lower import to_python
from gbgpu.semiring._scalar import from_function
from gbgpu.semiring._types import SUPPORTED as TYPES


def numpy_result(function, *values):
    with np.errstate(all="ignore"):
        return function(*values)


PLAIN = [*USER[:5], USER[6], lambda x, y: x * 2.5, lambda x, y: np.sqrt(abs(x)) + y, lambda x, y: float(x) * y]
PLAIN += [lambda x, y: math.floor(y / 3) + x, lambda x, y: (x > y) & (y != 2), lambda x, y: np.float32(x) + y]
PLAIN += [lambda x, y: x < 2**40, lambda x, y: 3, lambda x, y: 0.5, lambda x, y: int(x) - 1]
PLAIN += [lambda x, y: x > 0 and y > 0, lambda x, y: np.minimum(x, y) * (not x), lambda x, y: math.sqrt(x) + y]


@pytest.mark.parametrize("number", range(len(PLAIN)))
@pytest.mark.parametrize("dtype", TYPES[1:])
def test_result_type_and_value_are_numpys(number, dtype):
    function, number_type = PLAIN[number], dtype.np_type.type
    typed = binary.register_anonymous(function)[dtype]
    run = to_python(typed.program)
    for x, y in [(1, 2), (7, 3), (4, 2 if dtype.kind == "u" else -2), (5, 1)]:
        expected = numpy_result(function, number_type(x), number_type(y))
        half = isinstance(expected, np.float16)  # what NumPy makes of the root of an INT8; FP32 here
        kind = FP32 if half else lookup_dtype(expected.dtype if isinstance(expected, np.generic) else type(expected))
        assert typed.return_type is kind
        assert np.isclose(run(x, y), expected, rtol=2e-3 if half else 0, atol=0)


def test_branching_function_equals_python():
    rng = np.random.default_rng(1)
    run = to_python(binary.register_anonymous(clipped)[INT64].program)
    for x, y in rng.integers(-9, 9, (200, 2)).tolist():
        assert run(x, y) == clipped(x, y)


def test_one_branch_returns_and_later_code_runs():
    def f(x, y):
        s = 0
        if x > 2:
            s += y
            if y > 5:
                return 100
        else:
            s = s - 1
        s *= 2
        return s + x

    run = to_python(binary.register_anonymous(f)[INT32].program)
    assert all(run(x, y) == f(x, y) for x in range(-3, 9) for y in range(-3, 9))


def test_chains_and_or_not_and_helpers():
    def near(x, y):
        return 0 < y - x <= 3

    def f(x, y):
        return (near(x, y) or x == y) and not (x > 4)

    run = to_python(binary.register_anonymous(f)[INT32].program)
    assert all(run(x, y) == f(x, y) for x in range(-3, 9) for y in range(-3, 9))


def test_captured_scalars_and_defaults_are_in_the_key():
    def make(c):
        return lambda x, y: x + c * y

    def keyed(x, y, scale=3):
        return x * scale if x > y else y

    key = binary.register_anonymous(make(2))[INT32].program.key
    assert key == binary.register_anonymous(make(2))[INT32].program.key
    assert key != binary.register_anonymous(make(3))[INT32].program.key
    before = binary.register_anonymous(keyed)[INT32].program.key
    keyed.__defaults__ = (4,)
    assert before != binary.register_anonymous(keyed)[INT32].program.key


def test_keys_tell_types_and_zeros_apart():
    keys = {binary.plus[dtype].program.key for dtype in TYPES}
    keys |= {from_function(lambda x, c=c: x * c, [("x", FP64)]).key for c in (0.0, -0.0, 1.0, np.inf, np.nan)}
    assert len(keys) == len(TYPES) + 5


def test_two_lambdas_on_one_line_are_told_apart():
    smaller, larger = (lambda x, y: x if x < y else y), (lambda x, y: x if x > y else y)
    low, high = (to_python(binary.register_anonymous(f)[INT64].program) for f in (smaller, larger))
    assert (low(1, 2), high(1, 2)) == (1, 2)


def looping(x, y):
    total = 0
    while total < x:
        total += y
    return total


def calling(x, y):
    if x > y:
        return sorted([x, y])
    return y


def unassigned(x, y):
    if x > y:
        z = x
    return z + y  # noqa: F821


def silent(x, y):
    if x > y:
        return x


@pytest.mark.parametrize(
    "function, line, problem",
    [
        (looping, "while total < x:", "`while` is not allowed"),
        (calling, "return sorted([x, y])", "is not allowed"),
        (unassigned, "return z + y", "no value on one of the branches"),
        (silent, "def silent(x, y):", "every path must return"),
    ],
)
def test_refused_functions_name_the_line(function, line, problem):
    with pytest.raises(exceptions.UdfParseError) as caught:
        binary.register_anonymous(function)[INT32]
    assert line in str(caught.value) and problem in str(caught.value)
    first = function.__code__.co_firstlineno
    assert any(f"line {n}:" in str(caught.value) for n in range(first, first + 6))


def test_other_refusals():
    for function in (lambda x, y: x + "a", lambda x, y: x.bit_length(), lambda x, y: x + 2**40, lambda x, y: x << 0.5):
        with pytest.raises(exceptions.UdfParseError, match="line "):
            binary.register_anonymous(function)[INT32]
    with pytest.raises(exceptions.UdfParseError, match="another formula"):
        binary.register_anonymous(lambda x, y: x + _grow(_calls))[INT32]
    with pytest.raises(exceptions.UdfParseError, match="BOOL values can't be subtracted"):
        binary.register_anonymous(lambda x, y: x - y)[BOOL]
    with pytest.raises(TypeError, match="takes 1 arguments"):
        binary.register_anonymous(lambda x: x)
    with pytest.raises(ValueError, match="must have BOOL"):
        select.register_anonymous(lambda x, i, j, t: x)[INT32]


_calls: list[int] = []


def _grow(state):
    state.append(0)
    return len(state)


def squared(x):
    return x * x - 3


def test_user_select_and_unary():
    inside = to_python(select.register_anonymous(lambda x, i, j, t: (i != j) & (x > t))[FP32].program)
    assert inside(2.0, 0, 1, 1.0) and not inside(2.0, 1, 1, 1.0)
    assert to_python(unary.register_anonymous(squared)[INT32].program)(4) == 13


def test_shifts_and_powers_of_integers_are_numpys():
    rng = np.random.default_rng(5)
    for dtype in TYPES[1:-2]:
        number, top = dtype.np_type.type, np.iinfo(dtype.np_type)
        left, right, power = (
            to_python(binary.register_anonymous(f)[dtype].program)
            for f in (lambda x, y: x << y, lambda x, y: x >> y, lambda x, y: x**y)
        )
        for x in map(number, rng.integers(top.min, top.max, 20, dtype.np_type, endpoint=True)):
            for y in map(number, (0, 1, 7, dtype.bits - 1, dtype.bits, 100)):
                with np.errstate(all="ignore"):
                    assert (left(x, y), right(x, y), power(x, y)) == (x << y, x >> y, x**y)
        if dtype.kind == "i":
            assert [power(x, -2) for x in (2, -1, 1, 0)] == [0, 1, 1, 0]


def test_integers_compare_exactly():
    outside = to_python(unary.register_anonymous(lambda x: (x < 300) & (x > -1) & (x != 2**70))[UINT8].program)
    assert outside(0) and outside(255)
    mixed = to_python(unary.register_anonymous(lambda x: np.int64(-1) < x)[UINT64].program)
    assert mixed(0) and mixed(2**64 - 1)
    large = to_python(unary.register_anonymous(lambda x: x == 2**63)[UINT64].program)
    assert large(2**63) and not large(2**63 - 1)


def test_literals_take_the_type_of_what_they_meet():
    assert unary.register_anonymous(lambda x: x + 100)[INT8].return_type is INT8
    assert unary.register_anonymous(lambda x: x + 2**63)[UINT64].return_type is UINT64
    for function, dtype, literal in [(lambda x: x + 200, INT8, "200"), (lambda x: x - -1, UINT8, "-1")]:
        with pytest.raises(exceptions.UdfParseError, match=f"literal {literal} does not fit {dtype.name}"):
            unary.register_anonymous(function)[dtype]
    with pytest.raises(exceptions.UdfParseError, match="does not fit INT64"):
        unary.register_anonymous(lambda x: 2**63)[INT64]
