"""Bad input: the right class, a message with what was expected, what came and a hint, and nothing half-changed."""

from __future__ import annotations

import numpy as np
import pytest

import gbgpu as gb
from gbgpu import binary, exceptions, monoid, replace, select, semiring, unary  # noqa: F401  (cases are source text)

DIMENSION, TYPE, VALUE = "DimensionMismatch", "TypeError", "ValueError"
BOUND, INDEX, INVALID, DEVICE = "IndexOutOfBound", "IndexError", "InvalidValue", "DeviceError"

# A is 3 x 4; x has size 3; v and w have size 4, p is BOOL of size 4. Each: statement, class, words of the message
STATEMENTS = [
    ("v @ A", DIMENSION, ["inner sizes"]),
    ("A @ x", DIMENSION, ["inner sizes"]),
    ("semiring.min_plus(A.T @ v)", DIMENSION, ["inner sizes"]),
    ("x | v", DIMENSION, ["shape"]),
    ("x & v", DIMENSION, ["shape"]),
    ("w << x", DIMENSION, ["shape"]),
    ("w << semiring.plus_times(A @ v)", DIMENSION, ["shape"]),
    ("A << A.T", DIMENSION, ["shape"]),
    ("w(x.S) << v", DIMENSION, ["mask"]),
    ("w(mask=~x.S, accum=binary.plus) << v", DIMENSION, ["mask"]),
    ("w[[0, 1]] << v", DIMENSION, []),
    ("w[1:3] << x", DIMENSION, []),
    ("w(v) << 1", TYPE, [".S", ".V"]),
    ("w('no such operator') << v", VALUE, ["no such operator"]),
    ("w(replace=True) << v", TYPE, ["replace", "mask"]),
    ("w(replace) << v", TYPE, ["replace", "mask"]),
    ("w(p.S, p.V) << v", TYPE, ["mask"]),
    ("w(binary.plus, binary.min) << v", TYPE, ["accum"]),
    ("w(p.S, colour='red') << v", TYPE, ["colour", "direction"]),
    ("w(p.S, direction='sideways') << v", VALUE, ["push", "pull", "sideways"]),
    ("w << 'text'", TYPE, []),
    ("w << None", TYPE, []),
    ("w << (v | v)", TYPE, []),
    ("w << (x @ A)", TYPE, ["semiring"]),
    ("monoid.plus(x @ A)", TYPE, ["Semiring"]),
    ("binary.plus(x @ A)", TYPE, ["Semiring"]),
    ("semiring.min_plus(v | v)", TYPE, []),
    ("semiring.min_plus(v)", TYPE, []),
    ("v.reduce(binary.minus)", TYPE, ["Monoid"]),
    ("v.reduce(semiring.min_plus)", TYPE, ["Monoid"]),
    ("v.apply(binary.plus)", TYPE, []),
    ("v.apply(binary.plus, right=1, left=2)", TYPE, []),
    ("v.apply(semiring.min_plus)", TYPE, []),
    ("v.select(binary.plus, 1)", TYPE, []),
    ("semiring.no_such(x @ A)", "AttributeError", ["no_such"]),
    ("binary.no_such(v | v)", "AttributeError", ["no_such"]),
    ("bool(A)", TYPE, ["nvals"]),
    ("bool(v)", TYPE, ["nvals"]),
    ("bool(v | v)", TYPE, []),
    ("np.asarray(v)", TYPE, ["to_coo"]),
    ("np.asarray(A)", TYPE, ["to_coo"]),
    ("len(v)", TYPE, []),
    ("v[4]", INDEX, ["4"]),
    ("v[-5]", INDEX, ["-5"]),
    ("A[3, 0]", INDEX, ["3"]),
    ("A[0, -5]", INDEX, ["-5"]),
    ("w[4] = 1", INDEX, ["4"]),
    ("del w[-5]", INDEX, ["-5"]),
    ("w[[0, 4]] << 1", BOUND, ["4"]),
    ("w[np.array([-5])] << 1", BOUND, ["-5"]),
    ("w << v[[0, 1, 2, 7]]", BOUND, ["7"]),
    ("w[1.5] = 1", TYPE, ["float"]),
    ("w['a'] = 1", TYPE, []),
    ("A['a', 0]", TYPE, []),
    ("w[0] = 'text'", TYPE, []),
]

CONSTRUCTORS = [
    ("gb.Vector.from_coo([0, 4], [1, 2], size=4)", BOUND, ["4"]),
    ("gb.Vector.from_coo([-1], [1], size=4)", BOUND, ["-1"]),
    ("gb.Vector.from_coo([0, 0], [1, 2], size=4)", VALUE, ["Duplicate indices found", "dup_op"]),
    ("gb.Vector.from_coo([0, 1], [1], size=4)", INVALID, ["2 values"]),
    ("gb.Vector.from_coo([0.5], [1], size=4)", TYPE, ["float64"]),
    ("gb.Vector.from_coo([[0, 1]], [1, 2], size=4)", INVALID, ["dimension"]),
    ("gb.Vector.from_coo([0], ['a'], size=4)", (TYPE, "NotImplementedException"), []),
    ("gb.Vector.from_coo([0], [1j], size=4)", (TYPE, "NotImplementedException"), []),
    ("gb.Vector(int, size=-1)", INVALID, ["-1"]),
    ("gb.Vector(int, size=2.5)", TYPE, ["float"]),
    ("gb.Vector('INT128', size=3)", (TYPE, VALUE), ["INT128"]),
    ("gb.Vector('INT8', size=3)", "NotImplementedException", ["INT8", "INT32", "FP64"]),
    ("gb.Vector(object, size=3)", (TYPE, VALUE), []),
    ("gb.Vector.from_dense([[1, 2]])", DIMENSION, ["one-dimensional"]),
    ("gb.Matrix.from_coo([0], [4], [1], nrows=3, ncols=4)", BOUND, ["4"]),
    ("gb.Matrix.from_coo([3], [0], [1], nrows=3, ncols=4)", BOUND, ["3"]),
    ("gb.Matrix.from_coo([-1], [0], [1], nrows=3, ncols=4)", BOUND, ["-1"]),
    ("gb.Matrix.from_coo([0, 1], [0], [1, 2], nrows=3, ncols=4)", INVALID, ["2", "1"]),
    ("gb.Matrix.from_coo([0, 0], [1, 1], [1, 2], nrows=3, ncols=4)", VALUE, ["Duplicate indices found", "dup_op"]),
    ("gb.Matrix.from_coo([0], [0], [1, 2], nrows=3, ncols=4)", INVALID, ["values"]),
    ("gb.Matrix(int, nrows=-1, ncols=2)", INVALID, ["-1"]),
    ("gb.Matrix.from_csr([0, 2, 1], [0, 1], [1, 2], ncols=3)", INVALID, ["ascend"]),
    ("gb.Matrix.from_csr([0, 1, 3], [0, 1], [1, 2], ncols=3)", INVALID, []),
    ("gb.Matrix.from_csr([], [], [], ncols=3)", (INVALID, TYPE), []),
    ("gb.Matrix.from_csr([0, 1], [3], [1], ncols=3)", BOUND, ["3"]),
    ("gb.Matrix.from_dense([1, 2])", DIMENSION, ["two-dimensional"]),
    ("gb.Matrix.from_scipy_sparse([[1, 2]])", TYPE, []),
    ("v.to_dense()", TYPE, ["fill_value"]),
]

# What python-graphblas says in its own words is kept as it is; everything else has the three parts
OWN_WORDS = (
    "Duplicate indices found", "Bad type for argument", "Bad type when calling", "Mask must be", "not defined for",
    "Got multiple values", "Index out of range", "Unknown", "has no attribute", "'replace'", "does not work with",
    "supported are", "Hint:",
)


def class_named(name: str) -> type[BaseException]:
    return getattr(exceptions, name, None) or getattr(__builtins__, name, None) or __builtins__[name]


def objects() -> dict:
    return {
        "A": gb.Matrix.from_coo([0, 1, 2], [1, 3, 0], [1, 2, 3], nrows=3, ncols=4),
        "x": gb.Vector.from_coo([0, 2], [1, 2], size=3),
        "v": gb.Vector.from_coo([1, 3], [5, 6], size=4),
        "w": gb.Vector.from_coo([0, 1], [7, 8], size=4),
        "p": gb.Vector.from_coo([0, 2], [True, False], size=4),
    }


def contents(made: dict) -> dict:
    return {name: [part.tolist() for part in handle.to_coo()] + [str(handle.dtype)] for name, handle in made.items()}


def refuse(text: str, expected, words, made: dict) -> None:
    """Run `text`, and check that it raises one of `expected` with these words and leaves every object as it was."""
    names = (expected,) if isinstance(expected, str) else expected
    before = contents(made)
    with pytest.raises(tuple(class_named(name) for name in names)) as caught:
        exec(text, globals() | made)
    said = str(caught.value)
    assert all(word.lower() in said.lower() for word in words), said
    assert ("expected" in said and "came" in said) or any(own in said for own in OWN_WORDS), said
    assert contents(made) == before


@pytest.mark.parametrize(("text", "expected", "words"), STATEMENTS, ids=[case[0] for case in STATEMENTS])
def test_statements(devices, text, expected, words):
    refuse(text, expected, words, objects())


@pytest.mark.parametrize(("text", "expected", "words"), CONSTRUCTORS, ids=[case[0] for case in CONSTRUCTORS])
def test_constructors(devices, text, expected, words):
    refuse(text, expected, words, objects())


def test_an_index_error_is_both(devices):
    """Scripts catch either: python-graphblas's class or Python's own."""
    for kind in (exceptions.IndexOutOfBound, IndexError, exceptions.GraphblasException):
        with pytest.raises(kind):
            gb.Vector.from_coo([9], [1], size=4)


def test_build_wants_an_empty_object(devices):
    w = objects()["w"]
    with pytest.raises(exceptions.OutputNotEmpty, match="clear"):
        w.build([0], [1])
    assert w.to_coo()[1].tolist() == [7, 8]


def test_types_that_do_not_fit_an_operator(devices):
    """The lookup is a KeyError, as in python-graphblas; it names the operator and the type."""
    with pytest.raises(KeyError, match="min_plus does not work with BOOL"):
        semiring.min_plus["BOOL"]


LOOP = """
def f(x, y):
    while x < y:
        x = x + 1
    return x
"""
CALL = """
def f(x, y):
    return x + open(y)
"""
MISSING = """
def f(x, y):
    if x < y:
        return x
"""


OUTSIDE = {"loop": (LOOP, "line 3"), "call": (CALL, "open"), "no return": (MISSING, "return")}


@pytest.mark.parametrize(("source", "word"), OUTSIDE.values(), ids=OUTSIDE)
def test_user_functions_outside_the_language(devices, source, word, tmp_path):
    path = tmp_path / "user.py"
    path.write_text(source)
    space: dict = {}
    exec(compile(source, str(path), "exec"), space)
    v = objects()["v"]
    with pytest.raises(exceptions.UdfParseError) as caught:
        binary.register_anonymous(space["f"])(v | v).new()
    assert word in str(caught.value)


BAD_SPECS = ["cpu:0", "cpu:-1", "cpu:x", "cpu:", "gpu:1", "", "cpu:2,", "cuda:0*0", "cpu:99999999"]


@pytest.mark.parametrize("spec", BAD_SPECS)
def test_device_strings(spec):
    with pytest.raises(exceptions.DeviceError) as caught:
        gb.init(spec)
    assert "expected" in str(caught.value) and "came" in str(caught.value)
    gb.init("cpu:1")
    assert gb.Vector.from_coo([0], [1], size=2).nvals == 1


def test_a_device_string_is_a_string():
    with pytest.raises(TypeError):
        gb.init(3)


@pytest.mark.parametrize("shares", [(1, 2), (1, 2, 3, 4), (-1, 1, 1), (0, 0, 0), (float("nan"), 1, 1)], ids=str)
def test_shares_that_do_not_fit(shares):
    with pytest.raises(exceptions.InvalidValue):
        gb.init("cpu:3", partition=gb.partition.shares(*shares))
        gb.Vector.from_coo([0], [1], size=200)
    gb.init("cpu:1")


def test_a_bad_init_keeps_the_session(devices):
    v = objects()["v"]
    with pytest.raises(exceptions.DeviceError):
        gb.init("cpu:0")
    assert v.nvals == 2


def test_handles_of_an_ended_session():
    gb.init("cpu:1")
    made = objects()
    gb.init("cpu:2")
    fresh = objects()
    reads = ["A.nvals", "v.to_coo()", "v.dup()", "semiring.min_plus(x @ A).new()", "v.reduce(monoid.plus).new()"]
    for text in [*reads, "w << v", "w << 1", "w[0] = 1", "w.clear()"]:
        with pytest.raises(exceptions.InvalidValue, match="init"):
            exec(text, globals() | made)
    with pytest.raises(exceptions.InvalidValue):
        exec("semiring.min_plus(x @ A).new()", globals() | {"A": fresh["A"], "x": made["x"]})
    with pytest.raises(exceptions.InvalidValue):
        exec("fresh << v", globals() | {"fresh": fresh["w"], "v": made["v"]})
    assert fresh["w"].to_coo()[1].tolist() == [7, 8]


def test_operators_never_raise_on_nan(devices):
    nan = float("nan")
    x = gb.Vector.from_coo([0, 1, 2], [nan, 1.0, nan], dtype="FP64", size=3)
    A = gb.Matrix.from_coo([0, 1, 2], [0, 0, 1], [1.0, 2.0, nan], nrows=3, ncols=3)
    y = semiring.min_plus(x @ A).new()
    assert y[0].new().value == 3.0 and np.isnan(y[1].new().value)
    assert unary.abs(x).new().nvals == 3 and select.valuegt(x, 0).new().nvals == 1


def test_a_missing_element_is_no_error(devices):
    v = objects()["v"]
    assert v[0].new().value is None and v.get(0, "nothing") == "nothing" and v.get(1) == 5
