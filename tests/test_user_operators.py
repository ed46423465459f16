"""Operators made of Python functions: what is read, what NumPy says of the result, and what is refused."""

import functools
import gc
import json
import math
import operator
import subprocess
import sys
import weakref

import numpy as np
import pytest
from user_functions import USER, clipped

from gbgpu import binary, exceptions, select, unary
from gbgpu.dtypes import BOOL, FP32, FP64, INT8, INT32, INT64, UINT8, UINT64, lookup_dtype
from gbgpu.semiring import _parse, _paths
from gbgpu.semiring._functions import from_function
from gbgpu.semiring._lower import to_python
from gbgpu.semiring._scalar import ordered
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
    with pytest.raises(exceptions.UdfParseError, match="not allowed in an operator"):
        binary.register_anonymous(lambda x, y: x + _grow(_calls))[INT32]
    with pytest.raises(TypeError, match="takes 1 arguments"):
        binary.register_anonymous(lambda x: x)
    with pytest.raises(ValueError, match="must have BOOL"):
        select.register_anonymous(lambda x, i, j, t: x)[INT32]


_calls: list[int] = []


def _grow(state):
    state.append(0)
    return len(state)


# What a function could ask a symbol, to which a number answers otherwise; each with a word of the refusal.
class Scaled:
    factor = 3

    def __call__(self, x):
        return self.factor * x

    def step(self, x):
        return self(x) + 1


def caught(x):
    try:
        return math.gcd(x, 4)
    except TypeError:
        return 0


def matched(x):
    match x:
        case int():
            return 1
        case _:
            return 2


def counting():
    calls = 0

    def count(x):
        nonlocal calls
        calls += 1
        return x + calls

    return count


def stored(x):
    global _stored
    _stored = x
    return x


def printed(x):
    print(x)
    return x


TABLE = {5: 1}
ASKING = {
    "isinstance": lambda x: x * 2 if isinstance(x, int) else x,
    "isinstance ": lambda x: isinstance(x, int) + x,
    "isinstance  ": lambda x, ask=isinstance: ask(x, int) + x,
    "issubclass": lambda x: issubclass(type(x), int) + x,
    "type": lambda x: (type(x) is int) + x,
    "callable": lambda x: callable(x) + x,
    "hasattr": lambda x: hasattr(x, "real") + x,
    "getattr": lambda x: getattr(x, "real", 99),
    "real": lambda x: x.real,
    "__class__": lambda x: (x.__class__ == 3) + x,
    "dtype": lambda x: (x.dtype == INT64) + x,
    "node": lambda x: (x.node == 3) + x,
    "__add__": lambda x: x.__add__(1),
    "len": lambda x: len(str(x)),
    "len ": lambda x: len(f"{x}"),
    "len  ": lambda x: len("%s" % x),  # noqa: UP031
    "len   ": lambda x: len("{}".format(x)),  # noqa: UP032
    "f-string": lambda x: x + (f"{x}" > "a"),
    "repr": lambda x: x + (repr(x) > "a"),
    "hash": lambda x: hash(x),
    "id": lambda x: (id(x) > 0) + x,
    "`is`": lambda x: 1 if x is None else 2,
    "`is not`": lambda x: (x is not None) + x,
    "`in`": lambda x: (x in (1, 5)) + x,
    "`not in`": lambda x: 1 if x not in TABLE else 2,
    "`subscript`": lambda x: TABLE[x],
    "get": lambda x: TABLE.get(x, 3),
    "locals": lambda x: x + (locals() == 3),
    "isscalar": lambda x: np.isscalar(x) + x,
    "is_": lambda x: operator.is_(x, 5) + x,
    "None": lambda x: (x == None) + x,  # noqa: E711
    "`try`": caught,
    "`match`": matched,
    "`nonlocal`": counting(),
    "`global`": stored,
    "`expr`": printed,
}


@pytest.mark.parametrize("word", ASKING)
def test_what_tells_symbols_from_numbers_is_refused_by_name(word):
    for dtype in (INT64, FP64):
        with pytest.raises(exceptions.UdfParseError, match="line ") as caught:
            unary.register_anonymous(ASKING[word])[dtype]
        assert word.strip() in str(caught.value).split("\n")[0]


COEFFICIENTS = [1, 2, 3]
NUMBERS = np.array([1.0, 2.0])


def horner(x, *rest):
    total = 0
    for c in reversed(COEFFICIENTS):
        total = total * x + c
    return total


@functools.wraps(horner)
def wrapping(*values, **named):
    return horner(*values, **named) + 1


ACCEPTED = [
    horner,
    wrapping,
    Scaled(),
    Scaled().step,
    functools.partial(lambda a, x: a * x, 3),
    functools.partial(operator.add, 2),
    lambda x: sum(c * x**i for i, c in enumerate(COEFFICIENTS)),
    lambda x: sum([c * x for c in COEFFICIENTS]),
    lambda x: functools.reduce(operator.mul, [x, x + 1, 3]),
    lambda x: x * NUMBERS[1],
    lambda x: (y := x + 1) * y,
    lambda x: (x > 0) if x > 5 else (x > 1),
    lambda x: pow(x, 3) + +x,
    lambda x, *, scale=COEFFICIENTS[1]: x * scale,
    lambda x: 1 if x else 2,
    lambda x: x and 3,
    lambda x: round(x / 3) + int(x * 1.5) + float(x),
]


@pytest.mark.parametrize("number", range(len(ACCEPTED)))
def test_what_is_accepted_gives_what_python_gives(number):
    function = ACCEPTED[number]
    for dtype, values in ((INT64, range(-5, 9)), (FP64, [-2.5, -1.0, 0.0, 0.5, 3.0, 7.25])):
        run = to_python(unary.register_anonymous(function, "f")[dtype].program)
        assert [run(x) for x in values] == [function(x) for x in values]


def test_functions_without_source_are_traced_or_refused_by_name():
    script = """
import json, gbgpu as gb
from gbgpu.semiring._lower import to_python
found = []
for f in (lambda x: sum([x > 0, x > 5]) * x, lambda x: isinstance(x, int) + x, lambda x: x if x is None else 1):
    try:
        found.append(int(to_python(gb.unary.register_anonymous(f)["INT64"].program)(7)))
    except gb.exceptions.UdfParseError as error:
        found.append(str(error))
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    number, first, second = json.loads(done.stdout)
    assert number == 14
    assert "uses isinstance in line 5, and its source can't be read" in first
    assert "uses `is` in line 5, and its source can't be read" in second


def test_a_file_that_changed_is_not_read(tmp_path):
    """The formula would be the new text's, not the loaded function's."""
    file = tmp_path / "formulas.py"
    file.write_text("def f(x):\n    return x if x > 3 else -x\n")
    space: dict = {}
    exec(compile(file.read_text(), file, "exec"), space)
    assert to_python(unary.register_anonymous(space["f"])[INT64].program)(5) == 5
    file.write_text("def f(x):\n    return x if x < 3 else -x\n")
    exec(compile("def f(x):\n    return x if x > 3 else +x\n", file, "exec"), space)
    assert to_python(unary.register_anonymous(space["f"])[INT64].program)(-2) == -2
    exec(compile("def f(x):\n    return (1).real if x > 3 else +x\n", file, "exec"), space)
    with pytest.raises(exceptions.UdfParseError, match="has changed since it was loaded"):
        unary.register_anonymous(space["f"])[INT64]


def test_a_file_is_parsed_once_for_all_its_functions(tmp_path, monkeypatch):
    file, parsed = tmp_path / "formulas.py", []
    file.write_text("a, b = lambda x: x if x > 1 else -x, lambda x: x if x > 2 else -x\n" + "".join(
        f"def f{k}(x):\n    return x if x > {k} else -x\n" for k in range(3, 9)
    ))  # fmt: skip
    space: dict = {}
    exec(compile(file.read_text(), file, "exec"), space)
    parse = _parse.ast.parse
    monkeypatch.setattr(_parse.ast, "parse", lambda *given: parsed.append(given) or parse(*given))
    functions = [space[name] for name in ("a", "b", *(f"f{k}" for k in range(3, 9)))]
    for k, function in enumerate(functions, 1):
        program = to_python(unary.register_anonymous(function)[INT64].program)
        assert [program(x) for x in (k - 1, k, k + 1)] == [1 - k, -k, k + 1]
    assert len(parsed) == 1


def nested(count):
    def f(x):
        for i in range(count):
            x = x + 1 if i % 3 else x * 3
        return x

    return f


def counted(x, y):
    count = 0
    for c in COEFFICIENTS:
        if x > c:
            count += 1
        elif y == c:
            break
    return count


def deeper(x, y, left=3):
    return x if not left or x > y else deeper(x + y, y, left=left - 1)


def guarded(x, y):
    i = 0
    while i < 4 and x > i:
        i += 1
    return i if y else -i


PATHS = [*USER, counted, deeper, guarded]
PATHS += [lambda x, y: any(x > c for c in COEFFICIENTS) or y, lambda x, y: sum(c for c in COEFFICIENTS if c < x) + y]
PATHS += [lambda x, y: max([x, y, 2]), lambda x, y: 0 < x <= y != 3, lambda x, y: x and y or 3, lambda x, y: not x]
PATHS += [lambda x, y: NUMBERS[1] * x if x > y else math.hypot(x, y), lambda x, y: bool(x) + (not y) * 2]
PATHS += [lambda x, y: (x if x > 0 else -x) + (y if y > 0 else -y), lambda x, y: math.copysign(x, -1 if y else 1)]


@pytest.mark.parametrize("number", range(len(PATHS)))
@pytest.mark.parametrize("dtype", [INT64, FP64])
def test_paths_give_what_python_gives(number, dtype):
    function = PATHS[number]
    params = [("x", dtype), ("y", dtype)]
    program = _paths.program(function, params)
    assert program.result is from_function(function, params).result
    run = to_python(program)
    values = [-3, -1, 0, 1, 2, 3, 5] if dtype is INT64 else [-2.5, -1.0, 0.0, 1.0, 2.5, 3.0, math.inf, math.nan]
    for x in values:
        for y in values:
            try:
                with np.errstate(all="ignore"):
                    expected = function(dtype.np_type.type(x), dtype.np_type.type(y))
            except (ZeroDivisionError, OverflowError):
                continue
            found = run(x, y)
            own = math.nan in (x, y) and function is clipped  # its min and max leave out NaN
            assert own or found == expected or found != found and expected != expected, (x, y, found, expected)


def changing(x, seen=COEFFICIENTS):
    seen += [1]
    return x + len(seen) if x > 0 else -x


def in_place(x, seen=NUMBERS):
    seen += 1
    return x * seen[0] if x > 0 else -x


REFUSED_PATHS = {
    "changes a list": changing,
    "read-only": in_place,
    "more than 64 paths": lambda x: sum(x > c for c in range(70) if x != c),
    "Python needs the number": lambda x: COEFFICIENTS[x] if x else 0,
    "`in` is not allowed": lambda x: 1 if x in (1, x) else 0,
    "does not fit INT8": lambda x: 300 if x > 1 else x,
    "every path must return": silent,
}


@pytest.mark.parametrize("word", REFUSED_PATHS)
def test_what_paths_refuse_is_told_with_the_line(word):
    function = REFUSED_PATHS[word]
    params = [(name, INT8) for name in "xy"[: function.__code__.co_argcount - len(function.__defaults__ or ())]]
    with pytest.raises(exceptions.UdfParseError, match=r"\) in line \d+$") as caught:
        _paths.program(function, params)
    assert word in str(caught.value)
    assert COEFFICIENTS == [1, 2, 3] and NUMBERS.tolist() == [1.0, 2.0]


def test_programs_of_paths_share_what_they_have_in_common():
    def steps(x):
        for c in range(6):
            x = x + 1 if x > c else x
        return x

    assert len(ordered(_paths.program(steps, [("x", INT64)]).body)) < 300


PLAIN_PYTHON = """
import gbgpu as gb
gb.init("cpu:1")
v = gb.Vector.from_coo([0, 1, 2], [5, -7, 2])
def f(x):
    if x > 3:
        return 10
    return -x if x < 0 else x
print(v.apply(f).new().to_coo()[1].tolist())
op = gb.binary.register_anonymous(lambda x, y: x if x is y else y)
try:
    gb.semiring.register_anonymous(gb.monoid.plus, op)(v @ v)
except gb.exceptions.UdfParseError as error:
    print(error)
"""


def test_branches_work_in_plain_python():
    """They needed the source, which `python -c` does not keep; a semiring told a KeyError instead."""
    done = subprocess.run([sys.executable, "-c", PLAIN_PYTHON], capture_output=True, text=True, check=True)
    values, error = done.stdout.splitlines()
    assert values == "[10, 7, 2]"
    assert "uses `is` in line 10" in error


@pytest.mark.parametrize("count", [60, 70, 2000])
def test_long_and_deep_formulas(count):
    terms = eval("lambda x: " + " + ".join(f"x * {i}" for i in range(count)))
    for function in (terms, nested(count)):
        run = to_python(unary.register_anonymous(function)[INT64].program)
        assert int(run(5)) == (function(5) + 2**63) % 2**64 - 2**63


def test_formulas_that_are_too_long_or_too_deep_are_refused(tmp_path):
    with pytest.raises(exceptions.UdfParseError, match="a formula of 5100 operations is too long; at most 5000"):
        to_python(unary.register_anonymous(nested(5100))[INT64].program)
    file = tmp_path / "deep.py"
    file.write_text("def f(x):\n    return (1).real if x > 3 else " + "x + " * 800 + "1\n")
    space: dict = {}
    exec(compile(file.read_text(), file, "exec"), space)
    with pytest.raises(exceptions.UdfParseError, match="nested too deep"):
        unary.register_anonymous(space["f"])[INT64]


def test_formulas_go_with_their_operators():
    """Each was remembered for ever."""

    def formula(x):  # of numbers that no other test has: equal formulas are one
        return nested(40)(x * 7919 + 104729)

    made = unary.register_anonymous(formula)[INT64]
    nodes = [weakref.ref(made.program.body)]
    for node in nodes:
        nodes += map(weakref.ref, node().args)
    del made, node
    gc.collect()
    alive = [node().op for node in nodes if node() is not None]
    assert len(nodes) > 40 and set(alive) <= {"const", "param"}, alive  # those are other formulas' too


BOOLS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "**": lambda x, y: x**y,
    "<<": lambda x, y: x << y,
    ">>": lambda x, y: x >> y,
    "/": lambda x, y: x / y,
    "neg": lambda x, y: -x,
    "pos": lambda x, y: +x,
    "abs": lambda x, y: abs(x),
    "sum": lambda x, y: sum([x, y, x]),
    "round": lambda x, y: round(x),
    "min": lambda x, y: min(x, y),
    "max": lambda x, y: max(x, y),
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "<": lambda x, y: x < y,
    "==": lambda x, y: x == y,
    "+ 1": lambda x, y: x + 1,
    "+ 0.5": lambda x, y: x + 0.5,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": lambda x, y: not x,
    "else": lambda x, y: x if y else 3,
    "isnan": lambda x, y: math.isnan(x) + math.isfinite(y),
    "bool": lambda x, y: bool(x) + bool(y),
    "chain": lambda x, y: (-1 < x <= y) + (x == y),
}


@pytest.mark.parametrize("name", BOOLS)
def test_bools_are_ints_to_arithmetic_as_in_python(name):
    """`(a > 0) + (a > 5)` was `or`, while sum([...]) counted; both for comparisons and for operands of BOOL."""
    function = BOOLS[name]
    given = binary.register_anonymous(function)[BOOL]
    compared = binary.register_anonymous(lambda x, y: function(x > 0, y > 0))[INT8]
    own, other = to_python(given.program), to_python(compared.program)
    for x in (False, True):
        for y in (False, True):
            try:
                expected = function(x, y)
            except ZeroDivisionError:
                continue
            assert given.return_type is compared.return_type
            if name != "else":
                assert given.return_type is lookup_dtype(type(expected))
            assert own(x, y) == other(x, y) == expected
    wide = unary.register_anonymous(lambda x: x + ((x > 0) + (x > 5)))
    assert [wide[dtype].return_type for dtype in (INT8, FP32)] == [INT8, FP32]  # ints take the type of what they meet


def test_negation_of_bools_is_not_pythons():
    """~ of a BOOL is its negation, as python-graphblas and NumPy have it; Python's is -1 or -2, and going."""
    typed = unary.register_anonymous(lambda x: ~(x > 2))[INT64]
    assert typed.return_type is BOOL and [bool(to_python(typed.program)(x)) for x in (1, 5)] == [True, False]


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


LAZY = """
import importlib.util, sys
import gbgpu as gb

spec = importlib.util.find_spec("gbgpu.report")  # nobody has asked for it as yet
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules["gbgpu.report"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
op = gb.binary.register_anonymous(lambda x, y: x if x > y else y + 1)
assert gb.Vector.from_dense([1, 5]).ewise_mult(gb.Vector.from_dense([2, 3]), op).new().to_dense().tolist() == [3, 5]
print(type(module).__name__)
"""


def test_modules_that_others_have_put_off_are_not_imported(tmp_path):
    """`inspect.getsource` asks each module for its file: cupyx took half a second then."""
    (tmp_path / "program.py").write_text(LAZY)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True)
    assert done.stdout == "_LazyModule\n"
