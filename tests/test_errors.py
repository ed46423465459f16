"""Bad input: the right class, a message with what was expected, what came and a hint, and nothing half-changed."""

from __future__ import annotations

import numpy as np
import pytest

import algos
import gbgpu as gb
from gbgpu import binary, exceptions, monoid, replace, select, semiring, unary  # noqa: F401  (cases are source text)
from gbgpu.device import cuda, cuda_devices
from gbgpu.kernels import backends

DIMENSION, TYPE, VALUE = "DimensionMismatch", "TypeError", "ValueError"
BOUND, INDEX, INVALID, DEVICE = "IndexOutOfBound", "IndexError", "InvalidValue", "DeviceError"

# A is 3 x 4, B 2 x 2; x has size 3; v and w have size 4, p is BOOL of size 4; s is a scalar, none an empty one. Each:
# statement, class, words of the message
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
    ("w << (v | v)", TYPE, ["operator"]),
    ("w << (x @ v)", DIMENSION, ["inner sizes"]),
    ("A @ A", DIMENSION, ["inner sizes"]),
    ("v @ x", DIMENSION, ["inner sizes"]),
    ("v + x", DIMENSION, ["shape"]),
    ("v == x", DIMENSION, ["shape"]),
    ("A + x.dup()[:2]", DIMENSION, ["4", "2"]),
    ("A * v[:3]", DIMENSION, ["4"]),
    ("v + 'text'", TYPE, ["text"]),
    ("v + [1, 2]", TYPE, []),
    ("w += x", DIMENSION, ["shape"]),
    ("w |= v", TYPE, ["BOOL"]),
    ("w ^ v", TYPE, ["BOOL"]),
    ("p ^ 3", TYPE, ["BOOL", "INT64", "binary.lxor(x | y)"]),
    ("p &= 3", TYPE, ["BOOL", "INT64", "binary.land(x & y)"]),
    ("~v", TYPE, ["BOOL", ".S"]),
    ("v.T", "AttributeError", ["T"]),
    ("(v | v).new()", TYPE, ["operator", "monoid.plus"]),
    ("(v | v) & v", TYPE, ["ambiguous"]),
    ("binary.plus(v & v, left_default=0, right_default=0)", TYPE, ["left_default"]),
    ("binary.plus(v | v, left_default=0)", TYPE, ["right_default"]),
    ("A.T[0, 0] << 1", TYPE, ["assignment"]),
    ("A.T[0, :] << x", TYPE, ["assignment"]),
    ("(A + A)[0, :](v.S) << v", TYPE, ["assignment"]),
    ("A[0]", TYPE, ["2-tuple", "A[i, :]"]),
    ("A[0, :, :]", TYPE, ["2-tuple"]),
    ("v[0, 1]", TYPE, ["tuple"]),
    ("v[p]", TYPE, ["mask"]),
    ("v[p.S]", TYPE, ["mask"]),
    ("v[A]", TYPE, ["dup(mask"]),
    ("v[[True, False, True, False]]", TYPE, ["mask"]),
    ("v[[0.5]]", TYPE, ["ints"]),
    ("v['ab']", TYPE, ["str"]),
    ("v[None]", TYPE, ["NoneType"]),
    ("A[[0, 3], :]", BOUND, ["3"]),
    ("A[:, [-5]]", BOUND, ["-5"]),
    ("A[0, :] << x", DIMENSION, ["shape"]),
    ("A[0, 0] << v", TYPE, ["scalar"]),
    ("A[:, :] << v", TYPE, ["Matrix"]),
    ("A[0, :] << A", TYPE, ["Vector"]),
    ("A[0, :] << [1, 2]", VALUE, ["shape mismatch", "(2,)"]),
    ("A(x.S)[:, :] << 1", TYPE, ["Vector mask"]),
    ("A(x.S)[0, 0] << 1", TYPE, ["Vector mask"]),
    ("A(x.S)[0, :] << 1", DIMENSION, ["mask"]),
    ("A(x.S) << 1", DIMENSION, ["mask"]),
    ("A[0, :](A.S) << 1", TYPE, ["submask"]),
    ("w[0](p.S) << 1", TYPE, ["submask"]),
    ("w[:2](p.S) << 1", DIMENSION, ["mask"]),
    ("w[:2][0] << 1", TYPE, ["assignment"]),
    ("w(p.S)[:2][0] << 1", TYPE, ["Indexing"]),
    ("s(p.S) << 1", TYPE, ["Scalars"]),
    ("s << v", DIMENSION, ["shape"]),
    ("int(none)", "EmptyObject", [".get"]),
    ("v.apply('+', right=none).new()", "EmptyObject", []),
    ("v[x.reduce(monoid.plus).new(float)]", TYPE, ["integer"]),
    ("p.S == p.S", TYPE, ["__eq__"]),
    ("bool(p.S)", TYPE, ["nvals"]),
    ("w() == w()", TYPE, ["__eq__"]),
    ("bool(v == v)", TYPE, ["nvals"]),
    ("v.reduce('no such')", VALUE, ["no such"]),
    ("A.reduce_scalar(gb.agg.argmin)", VALUE, ["argmin", "reduce_scalar"]),
    ("v.reduce(gb.agg.mean, allow_empty=False)", VALUE, ["allow_empty"]),
    ("gb.agg.sum(v, rowwise=True)", VALUE, ["rowwise"]),
    ("gb.agg.sum(3)", TYPE, ["Vector"]),
    ("gb.agg.no_such", "AttributeError", ["no_such"]),
    ("A.power(2)", DIMENSION, ["square"]),
    ("B.power(-1)", VALUE, ["nonnegative"]),
    ("B.power(1.5)", TYPE, ["integer n"]),
    ("B.power(0, 'plus_minus')", VALUE, ["identity"]),
    ("A.setdiag(v)", DIMENSION, ["3"]),
    ("A.setdiag(1, 4)", INDEX, ["4"]),
    ("A.setdiag('text')", TYPE, ["str"]),
    ("A.setdiag(1, mask=v)", TYPE, [".S"]),
    ("A.resize(-1, 2)", INVALID, ["-1"]),
    ("v.diag(float('inf'))", TYPE, ["integer k", "inf"]),
    ("A.diag('x')", TYPE, ["integer k"]),
    ("A.reposition(0.5, 1)", TYPE, ["integer row_offset"]),
    ("B.power(float('inf'))", TYPE, ["integer n"]),
    ("s << v.reposition(1)", DIMENSION, ["shape"]),
    ("s.value = v", TYPE, ["scalar", "Vector"]),
    ("w(binary.firsti) << v", "DomainMismatch", ["values"]),
    ("A(binary.secondj)[0, :] << 1", "DomainMismatch", ["values"]),
    ("binary.times((v + v) & unary.abs)", TYPE, []),
    ("(v * v).ewise_mult(unary.abs)", TYPE, ["UnaryOp"]),
    ("import pickle; pickle.dumps(v + v)", TYPE, [".new()"]),
    ("v.wait(3)", TYPE, ["string", "int"]),
    ("binary.from_string(3)", TYPE, ["string", "int"]),
    ("gb.Vector(int, v + v)", TYPE, []),
    ("A.mxm(v)", TYPE, ["Matrix"]),
    ("A.mxv(A)", TYPE, ["Vector"]),
    ("A.mxv(v, binary.plus)", TYPE, ["Semiring"]),
    ("v.isequal(A)", TYPE, ["Vector"]),
    ("A.to_dicts('sideways')", VALUE, ["sideways"]),
    ("A.wait('now')", VALUE, ["now"]),
    ("v.nothing", "AttributeError", ["nothing"]),
    ("(v + v).build([0], [1])", "AttributeError", ["build"]),
    ("w << gb", TYPE, ["module"]),
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
    ("gb.Vector.from_coo([0, 1], [1], size=4)", VALUE, ["2 values"]),
    ("gb.Vector.from_coo([0.5], [1], size=4)", TYPE, ["float64"]),
    ("gb.Vector.from_coo([[0, 1]], [1, 2], size=4)", INVALID, ["dimension"]),
    ("gb.Vector.from_coo([0], ['a'], size=4)", (TYPE, "NotImplementedException"), []),
    ("gb.Vector.from_coo([0], [1j], size=4)", (TYPE, "NotImplementedException"), []),
    ("gb.Vector(int, size=-1)", INVALID, ["-1"]),
    ("gb.Vector(int, size=2.5)", TYPE, ["float"]),
    ("gb.Vector('INT128', size=3)", VALUE, ["INT128"]),
    ("gb.Vector('FC32', size=3)", "NotImplementedException", ["FC32", "INT32", "FP64"]),
    ("gb.Matrix.from_edgelist([(0, 1, 2, 3)])", VALUE, ["pairs"]),
    ("gb.Matrix.from_dcsr([0], [0, 1, 2], [0, 1], nrows=2, ncols=2)", INVALID, ["offsets"]),
    ("gb.Matrix.from_csc([0, 1], [3], [1], nrows=3, ncols=1)", BOUND, ["3"]),
    ("gb.Matrix.from_csc([0, 1], [0], [1], nrows=3, ncols=2)", DIMENSION, ["columns"]),
    ("gb.Matrix.from_dicts([{0: 1}], order='sideways')", VALUE, ["sideways"]),
    ("gb.Vector.from_pairs([(0, 1, 2)])", VALUE, ["tuples of 2"]),
    ("gb.Scalar.from_value('text')", TYPE, ["str"]),
    ("gb.Scalar.from_value(v)", TYPE, ["Vector"]),
    ("gb.ss.concat([[A, v]])", DIMENSION, ["fit"]),
    ("gb.ss.concat(3)", TYPE, []),
    ("v.ss.split([1, 1])", DIMENSION, ["4"]),
    ("v.ss.iso_value", VALUE, ["iso"]),
    ("A.ss.export('no such')", VALUE, ["no such", "csr"]),
    ("A.ss.reshape(5, 5)", VALUE, ["reshape"]),
    ("gb.Vector(object, size=3)", VALUE, []),
    ("gb.Vector.from_dense(5)", TYPE, ["from_scalar"]),
    ("gb.Matrix.from_dense(5)", TYPE, ["from_scalar"]),
    ("gb.Vector.ss.import_full(np.arange(3), foo=1)", VALUE, ["foo", "nthreads"]),
    ("gb.Vector.ss.import_full(np.arange(3), size=4)", INVALID, ["4", "3"]),
    ("gb.Matrix.ss.import_coo([0], [0], [1], nrows=1, ncols=1, format='csc')", VALUE, ["coo", "csc"]),
    ("A.ss.reshape(-1, -1)", VALUE, ["one", "-1"]),
    ("A.ss.reshape(12)", VALUE, ["nrows, ncols"]),
    ("A.ss.split([3])", VALUE, ["rows", "columns"]),
    ("gb.ss.concat([[]])", VALUE, ["tiles"]),
    ("gb.Vector.from_dense([[1, 2]])", DIMENSION, ["one-dimensional"]),
    ("gb.Matrix.from_coo([0], [4], [1], nrows=3, ncols=4)", BOUND, ["4"]),
    ("gb.Matrix.from_coo([3], [0], [1], nrows=3, ncols=4)", BOUND, ["3"]),
    ("gb.Matrix.from_coo([-1], [0], [1], nrows=3, ncols=4)", BOUND, ["-1"]),
    ("gb.Matrix.from_coo([0, 1], [0], [1, 2], nrows=3, ncols=4)", VALUE, ["2", "1"]),
    ("gb.Matrix.from_coo([0, 0], [1, 1], [1, 2], nrows=3, ncols=4)", VALUE, ["Duplicate indices found", "dup_op"]),
    ("gb.Matrix.from_coo([0], [0], [1, 2], nrows=3, ncols=4)", VALUE, ["values"]),
    ("gb.Matrix(int, nrows=-1, ncols=2)", INVALID, ["-1"]),
    ("gb.Matrix.from_csr([0, 2, 1], [0, 1], [1, 2], ncols=3)", INVALID, ["ascend"]),
    ("gb.Matrix.from_csr([0, 1, 3], [0, 1], [1, 2], ncols=3)", INVALID, []),
    ("gb.Matrix.from_csr([], [], [], ncols=3)", (INVALID, TYPE), []),
    ("gb.Matrix.from_csr([0, 1], [3], [1], ncols=3)", BOUND, ["3"]),
    ("gb.Matrix.from_dense([1, 2])", VALUE, ["two-dimensional"]),
    ("gb.Matrix.from_scipy_sparse([[1, 2]])", TYPE, []),
    ("v.to_dense()", TYPE, ["fill_value"]),
    ("gb.Vector.from_coo([0, 0], [1, 2], dup_op='firsti')", "DomainMismatch", ["values"]),
    ("gb.Matrix.from_coo([0, 0], [0, 0], [1, 2], dup_op=binary.secondj)", "DomainMismatch", ["values"]),
    ("gb.Vector.from_dict([1, 2])", TYPE, ["dict", "list"]),
    ("gb.Matrix.from_dicts([1, 2])", TYPE, ["dicts"]),
    ("gb.ss.diag(3)", TYPE, ["Matrix"]),
    ("A.ss.build_diag(3)", TYPE, ["Vector"]),
    ("A.ss.reshape(0, -1)", VALUE, ["reshape"]),
    ("A.ss.export(3)", TYPE, ["string"]),
    ("v.ss.split(0)", VALUE, ["chunks"]),
    ("gb.Matrix.ss.import_any(format='no such')", VALUE, ["csr", "no such"]),
    ("gb.io.to_networkx(v)", TYPE, ["Matrix"]),
    ("gb.io.from_networkx([1])", TYPE, ["graph"]),
    ("gb.io.to_scipy_sparse(3)", TYPE, ["Matrix"]),
    ("gb.io.to_scipy_sparse(A, 3)", TYPE, ["string"]),
    ("gb.sparse.vstack([A], 'no such')", VALUE, ["csr", "no such"]),
    ("gb.sparse.diags_array({1: 2})", TYPE, ["diagonals"]),
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
        "B": gb.Matrix.from_coo([0, 1], [1, 0], [1, 2], nrows=2, ncols=2),
        "s": gb.Scalar.from_value(3),
        "none": gb.Scalar(int),
    }


def contents(made: dict) -> dict:
    def held(handle):
        return [handle.value] if handle.ndim == 0 else [part.tolist() for part in handle.to_coo()]

    return {name: [*held(handle), str(handle.dtype), handle.shape] for name, handle in made.items()}


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
BAD_SPECS += ["cpu:1-2", "1,cpu:2", "cpu:1,2", "cuda:1-0", "cuda:0,0", "cuda:0-1,1", "cuda:0-99999", "cuda:0--1"]
BAD_SPECS += ["cuda:0-99999999999", "cuda:99999999999", "cpu:\u0663"]
BAD_SPECS += ["cuda:0,cpu:1-2"]


@pytest.mark.parametrize("spec", BAD_SPECS)
def test_device_strings(spec):
    with pytest.raises(exceptions.DeviceError) as caught:
        gb.init(spec)
    assert "expected" in str(caught.value) and "came" in str(caught.value)
    gb.init("cpu:1")
    assert gb.Vector.from_coo([0], [1], size=2).nvals == 1


SPECS = {
    "cuda:0": [(0, 0)],
    "cuda:0-2": [(0, 0), (1, 0), (2, 0)],
    "cuda:0,2": [(0, 0), (2, 0)],
    "cuda:0-1,3": [(0, 0), (1, 0), (3, 0)],
    "cuda:0*2,cuda:1": [(0, 0), (0, 1), (1, 0)],
    "cuda:0-1*2": [(0, 0), (0, 1), (1, 0), (1, 1)],
}


@pytest.mark.parametrize("spec", SPECS)
def test_lists_of_gpus(spec, monkeypatch):
    """Pairs of a GPU and a logical device on it."""
    monkeypatch.setattr(cuda, "available", lambda: 4)
    monkeypatch.setattr(cuda_devices, "CudaDevices", lambda pairs: pairs)
    pairs, _ = backends.open_devices(spec)
    assert pairs == SPECS[spec]


def test_cpus_come_after_gpus(monkeypatch):
    monkeypatch.setattr(cuda, "available", lambda: 0)
    with pytest.raises(exceptions.DeviceError, match="a GPU that exists"):
        gb.init("cuda:0,cpu:2")
    with pytest.raises(exceptions.DeviceError, match="GPUs before CPUs"):
        gb.init("cpu:2,cuda:0")


def test_a_device_string_is_a_string():
    with pytest.raises(TypeError):
        gb.init(3)


WRONG = [(1, 2), (1, 2, 3, 4), (-1, 1, 1), (0, 0, 0), (float("nan"), 1, 1), (1e308,) * 3, ("1",) * 3, (None, 1, 1)]


@pytest.mark.parametrize("shares", WRONG, ids=str)
def test_shares_that_do_not_fit(shares):
    with pytest.raises(exceptions.InvalidValue):
        gb.init("cpu:3", partition=gb.partition.shares(*shares))
        gb.Vector.from_coo([0], [1], size=200)
    gb.init("cpu:1")


def test_partitions_take_whole_numbers_of_numpy():
    part = gb.partition
    wrong = (part.segments, (True, 0, 1.5, "x")), (part.random, (-1, "x", 1.5, None)), (part.metis, (-1, 2**31))
    for make, bad in wrong:
        for number in bad:
            with pytest.raises(exceptions.InvalidValue):
                make(number)
    with pytest.raises(exceptions.InvalidValue):
        part.degree_separated(True)
    assert str(part.segments(np.int64(4))) == str(part.segments(4))
    assert str(part.degree_separated(np.int8(4))) == str(part.degree_separated(4))
    others = len(gb.init("cpu:2").devices) - 1  # of all processes
    gb.init("cpu:2", part.shares(*[np.int8(100)] * others, np.uint8(200)))
    assert gb.Vector(int, 300).nvals == 0
    with pytest.raises(TypeError, match="deterministic"):
        gb.init("cpu:2", deterministic="no")
    with pytest.raises(TypeError, match="ranks"):
        gb.init("cpu:2", ranks="all")
    for wrong in ({"t1": "x"}, {"patience": None}, {"overhead": "30us"}):
        with pytest.raises(TypeError, match=f"a number as {[*wrong][0]}"):
            gb.balance.Policy(**wrong)
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
    with pytest.raises(exceptions.InvalidValue):
        exec("A[0, :] = w", globals() | {"A": fresh["A"], "w": made["w"]})
    assert fresh["w"].to_coo()[1].tolist() == [7, 8] and fresh["A"].nvals == 3


def test_objects_of_an_ended_session_are_shown_in_words():
    """As notebooks and logs do, which nobody asked for values."""
    gb.init("cpu:1")
    made = objects()
    made["S"] = gb.sparse.csr_array(np.eye(3))
    made["S1"] = gb.sparse.coo_array(np.arange(3.0))
    with gb.loop(2) as it:
        made["w"] << made["v"]
        made["count"] = made["w"].nvals
    texts = ["A", "v", "s", "A.T", "v[1]", "A[0, :]", "v | v", "A.T @ x", "semiring.min_plus(x @ A)", "v == v", "S"]
    texts += ["S1", "v.reduce(monoid.plus)", "A.reduce_rowwise(monoid.plus)", "v.apply(binary.plus, right=s)"]
    kept = {text: eval(text, globals() | made) for text in texts}
    others = [made["v"].S, ~made["v"].V, made["w"](made["v"].S), it, made["count"], made["A"].ss]
    before = {text: repr(thing) for text, thing in kept.items()}
    assert "(needs an operator)" in before["v | v"] and "session" not in before["v | v"]
    gb.init("cpu:2")
    for text, thing in kept.items():
        for shown in (repr(thing), str(thing), f"{thing}"):
            assert "a session that has ended" in shown and before[text] not in shown, text
        if hasattr(thing, "_repr_html_"):
            assert "a session that has ended" in thing._repr_html_() and thing._repr_html_().startswith("<p>")
    assert all(map(repr, others)) and all(map(str, others))


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


def test_numbers_that_algorithms_take_are_looked_at_alike():
    gb.init("cpu:2")
    A = gb.Matrix.from_coo([0, 1, 2, 3, 1, 2, 3, 4], [1, 2, 3, 4, 0, 1, 2, 3], 1, nrows=5, ncols=5)
    for source in (True, np.True_, 1.0, "1", None):
        for call in (algos.bfs, algos.bfs_levels, algos.sssp, algos.shortest_path_tree):
            with pytest.raises(TypeError, match="a vertex number"):
                call(A, source)
    assert algos.shortest_path_tree(A, np.array(3)).distances.isequal(algos.sssp(A, 3))
    assert algos.k_truss(A, 10**30).nvals == 0
    assert np.isfinite(algos.pagerank_push(A, tol=float("inf")).ranks.to_dense()).all()
    with pytest.raises(TypeError, match="a gbgpu Vector"):
        algos.greedy_color(A, order=[1, 2])
    with pytest.raises(exceptions.InvalidValue, match="iterations of at least 1") as refused:
        algos.collaborative_filtering(A.dup(float), iterations=0)
    assert "max_iterations" not in str(refused.value)
    with pytest.raises(exceptions.IndexOutOfBound, match="a vertex from 0 to 4"):
        algos.common_neighbors(A, [(0, 7)])


def test_hints_name_what_to_write():
    from scipy.sparse import csr_array

    for x in (csr_array(np.eye(3)), np.eye(3), gb.Vector(int, 3), gb.sparse.eye_array(2)):
        for kind in (gb.Matrix, gb.Vector):
            with pytest.raises(TypeError, match="a dtype.*from_dense"):
                kind(x)
    with pytest.raises(ValueError, match="unary string: 'inv'.*'abs"):
        gb.Vector.from_dense([1, 2]).apply("inv")
    with pytest.raises(TypeError, match="value, row, column, thunk"):
        gb.Vector.from_dense([1, 2]).select(lambda x: x > 2)
    ours = gb.sparse.eye_array(2)
    for x, hint in ((csr_array((2, 2)), "from_scipy_sparse"), (np.eye(2), "from_dense"), (ours, ".matrix")):
        with pytest.raises(TypeError, match=hint):
            algos.pagerank(x)


ASSIGNED = {  # object -> names that may be assigned
    "v": {"name"}, "A": {"name"}, "s": {"name", "value"}, "A.T": set(), "v.S": set(), "~A.V": set(),
}  # fmt: skip
FIXED = {
    "it": ["index", "rounds", "converged", "how", "max_iterations"], "it.index": ["dtype", "shape"],
    "v + v": ["dtype", "shape"], "v | v": ["dtype", "shape"], "A @ v": ["dtype", "shape"], "v[0]": ["dtype", "shape"],
    "gb.sparse.csr_array(A)": ["shape", "format", "dtype", "nnz", "has_sorted_indices", "indptr", "matrix"],
    "gb.sparse.coo_matrix(A)": ["format", "dtype", "nnz", "has_canonical_format", "row", "T"],
}  # fmt: skip


@pytest.mark.parametrize("text", [*ASSIGNED, *FIXED])
def test_what_an_object_is_cannot_be_assigned(first, text):
    """Assigned, a shape would be told by a handle that holds another."""
    v, A = gb.Vector.from_dense([1, 2, 3]), gb.Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=3)
    with gb.loop(1) as it:
        v << v + 1
    x = eval(text, {"v": v, "A": A, "s": gb.Scalar.from_value(3), "it": it, "gb": gb})
    names = FIXED.get(text) or [name for name in dir(x) if not name.startswith("_") and name not in ASSIGNED[text]]
    assert {"shape", "parent", "rounds"} & set(names) or "format" in names
    for name in names:
        with pytest.raises(AttributeError):
            setattr(x, name, None)
        with pytest.raises(AttributeError):
            delattr(x, name)
    for name in ASSIGNED.get(text, ()):
        setattr(x, name, getattr(x, name))
    with pytest.raises(AttributeError, match=r"Vector.shape can't be assigned.*Hint: x.resize"):
        v.shape = (9,)
    v.resize(9)
    assert v.shape == (9,) and v.nvals == 3
