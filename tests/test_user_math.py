"""Functions of `math` in user operators against `math` itself: compiled for CPUs and for CUDA, and as plain Python."""

import itertools
import math
import shutil

import numpy as np
import pytest
from test_operators import Case, run_compiled, run_cuda_text

from gbgpu import exceptions, unary
from gbgpu.dtypes import BOOL, FP32, FP64, INT8, INT64, UINT64
from gbgpu.semiring._functions import from_function
from gbgpu.semiring._lower import to_python

NUMBERS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, -2.5, 3.0, -3.0, 7.25, 10.0, -25.5, 100.5, 170.5, 172.0]
NUMBERS += [710.0, -745.0, 1e-300, -1e300, 2.0**53, math.inf, -math.inf, math.nan]
WHOLE = [0, 1, -1, 2, 3, 5, -7, 12, 18, 33, 66, 10**6, 2**40, 2**62, -(2**63), 2**63 - 1]
ONE = "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
ONE += " fabs floor ceil trunc isnan isinf isfinite erf erfc gamma lgamma degrees radians"
TWO = "hypot copysign fmod pow atan2 remainder nextafter isclose log"
EXACT = "fabs floor ceil trunc isnan isinf isfinite copysign fmod remainder nextafter isclose degrees radians sqrt"


def loose(x, y):
    return math.isclose(x, y, rel_tol=0.5, abs_tol=1.5)


def scaled(x, n):
    return math.ldexp(x, n)


def cases():
    """(what Python computes, the case)."""
    floats, wholes = np.array(NUMBERS), np.array(WHOLE)
    pairs = np.array(list(itertools.product(NUMBERS, NUMBERS))).T
    few = [k for k in WHOLE if k <= 66]  # math.comb of larger ones takes long
    whole_pairs = np.array(list(itertools.product(WHOLE, few))).T
    for name in ONE.split():
        yield getattr(math, name), Case(name, program(getattr(math, name), FP64), (floats,))
    for name in TWO.split():
        yield getattr(math, name), Case(name, program(getattr(math, name), FP64, FP64), tuple(map(np.copy, pairs)))
    yield loose, Case("isclose", program(loose, FP64, FP64), tuple(map(np.copy, pairs)))
    powers = np.array(list(itertools.product(NUMBERS, WHOLE)), object).T
    yield scaled, Case("ldexp", program(scaled, FP64, INT64), (powers[0].astype(float), powers[1].astype(np.int64)))
    for name in ("gcd", "lcm", "comb"):
        yield (
            getattr(math, name),
            Case(name, program(getattr(math, name), INT64, INT64), tuple(map(np.copy, whole_pairs))),
        )
    for name in ("floor", "ceil", "trunc"):  # exact beyond 2**53 too
        yield getattr(math, name), Case(name, program(getattr(math, name), INT64), (wholes,))


def program(function, *dtypes):
    return from_function(function, list(zip("xy", dtypes, strict=False)))


def expected(function, name, values):
    """What Python gives in the type of the result; None where it raises, or where the number is too large for it."""
    try:
        found = function(*values)
    except (ValueError, ArithmeticError):
        return None
    return None if type(found) is int and abs(found) >= 2**63 else found


def check(function, case):
    for *row, found in zip(*case.arrays, case.values, strict=True):
        wanted = expected(function, case.label, [v.item() for v in row])
        if wanted is None:  # C's result; integers have no NaN
            assert case.program.result is not FP64 or not math.isfinite(found), (case.label, row, found)
        elif case.label in EXACT.split() or case.program.result is not FP64:
            assert found == wanted or found != found and wanted != wanted, (case.label, row, found, wanted)
            assert wanted != 0 or math.copysign(1, found) == math.copysign(1, wanted), (case.label, row)
        else:
            assert np.isclose(found, wanted, rtol=1e-12, atol=0, equal_nan=True), (case.label, row, found, wanted)


def test_functions_of_math_give_what_math_gives(tmp_path):
    given = list(cases())
    for function, case in given:
        case.values = case.run_python()
        check(function, case)
    run_compiled([case for _, case in given])
    for function, case in given:
        check(function, case)
    if shutil.which("g++"):
        run_cuda_text([case for _, case in given], tmp_path)
        for function, case in given:
            case.values = case.cuda
            check(function, case)


def test_too_large_counts_are_zero_and_others_right_to_the_end():
    run = to_python(program(math.comb, INT64, INT64))
    for n in range(60, 70):
        for k in range(n + 1):
            exact = math.comb(n, k)
            assert run(n, k) == (exact if exact < 2**63 else 0)


def test_results_are_python_numbers():
    functions = {FP64: math.erf, INT64: lambda x: math.gcd(x, 4), BOOL: lambda x: math.isclose(x, 4)}
    for dtype, function in functions.items():
        assert unary.register_anonymous(function)[INT8].return_type is dtype
    assert unary.register_anonymous(lambda x: x * math.erf(x))[FP32].return_type is FP32
    assert unary.register_anonymous(lambda x: x + math.gcd(x, 4))[UINT64].return_type is UINT64
    assert to_python(unary.register_anonymous(lambda x: math.gcd(x, 4, 6))[INT64].program)(12) == 2


REFUSED = {
    "factorial": lambda x: math.factorial(x),
    "dist": lambda x: math.dist([x], [1]),
    "frexp": lambda x: math.frexp(x)[0],
    "two integers": lambda x: math.gcd(x, 2.5),
    "integer exponent": lambda x: math.ldexp(x, 0.5),
    "non-negative": lambda x: math.isclose(x, 1, rel_tol=-1.0),
    "expected 2 arguments; came 3": lambda x: math.hypot(x, x, x),
    "expected 1 arguments; came 2": lambda x: math.sqrt(x, 2),
}


@pytest.mark.parametrize("word", REFUSED)
def test_other_functions_are_refused_by_name(word):
    with pytest.raises(exceptions.UdfParseError, match="line ") as caught:
        unary.register_anonymous(REFUSED[word])[INT64]
    assert word in str(caught.value)
